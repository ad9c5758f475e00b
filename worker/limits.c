/* Memory limits by cgroup, for tasks that ask for one: `vx.<pid of the fork server>/<slot>` below our own cgroup (cgroups(7), memory controller of
 * cgroup v2 in Documentation/admin-guide/cgroup-v2.rst, of v1 in cgroup-v1/memory.rst).
 *
 * v2 is used where our cgroup hands the memory controller on to its children, else v1 where its hierarchy is writable. A cgroup lives as long as its
 * attempt. A sandboxed command is started by the box host, so the host (and we, who may start it) join for the attempt and leave afterwards. */
#include "worker.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/strs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int write_text(const char *dir, const char *name, const char *text)
{
	char path[700];
	int fd, r;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = vx_open(AT_FDCWD, path, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	r = vx_write_full(fd, text, strlen(text));
	vx_close(fd);
	return r;
}

static int read_text(const char *dir, const char *name, char *ret, size_t cap)
{
	char path[700];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "%s/%s", dir, name);
	fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = vx_read_full(fd, ret, cap - 1);
	vx_close(fd);
	if (n < 0)
		return (int)n;
	ret[n] = 0;
	return 0;
}

/* The value after `name` in lines of "name value"; 0 when absent. */
static uint64_t named_value(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p != NULL && *p != 0; p = strchr(p, '\n'), p = p != NULL ? p + 1 : NULL)
		if (strncmp(p, name, n) == 0 && p[n] == ' ')
			return strtoull(p + n + 1, NULL, 10);
	return 0;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word))
		if ((p == text || strchr(", ", p[-1]) != NULL) && (p[n] == 0 || strchr(", \n", p[n]) != NULL))
			return true;
	return false;
}

/* Our cgroup of the hierarchy whose line in /proc/self/cgroup has `controllers` ("" for v2), below `mount`. Inside a container that sees only its own
 * part, the line's path does not exist there and the mount itself is our cgroup. */
static bool own_cgroup(const char *lines, const char *controllers, const char *mount, char *ret, size_t cap)
{
	for (const char *p = lines; p != NULL && *p != 0; p = strchr(p, '\n'), p = p != NULL ? p + 1 : NULL) {
		const char *list = strchr(p, ':'), *path = list != NULL ? strchr(list + 1, ':') : NULL;
		char names[256];

		if (path == NULL)
			continue;
		snprintf(names, sizeof names, "%.*s", (int)(path - list - 1), list + 1);
		if (controllers[0] == 0 ? names[0] != 0 : !has_word(names, controllers))
			continue;
		snprintf(ret, cap, "%s%.*s", mount, (int)strcspn(path + 1, "\n"), path + 1);
		if (access(ret, F_OK) < 0)
			snprintf(ret, cap, "%s", mount);
		return true;
	}
	return false;
}

/* Removes what runs left that died: their pids are gone. */
static void sweep(const char *base, const char *keep)
{
	DIR *d = opendir(base);
	struct dirent *e, *s;

	while (d != NULL && (e = readdir(d)) != NULL) {
		pid_t pid = vx_starts_with(e->d_name, "vx.") ? atoi(e->d_name + 3) : 0;
		char dir[800], sub[1100];
		DIR *inner;

		if (pid <= 0 || vx_streq(e->d_name, keep) || kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		snprintf(dir, sizeof dir, "%s/%s", base, e->d_name);
		inner = opendir(dir);
		while (inner != NULL && (s = readdir(inner)) != NULL)
			if (s->d_type == DT_DIR && s->d_name[0] != '.') {
				snprintf(sub, sizeof sub, "%s/%s", dir, s->d_name);
				rmdir(sub);
			}
		if (inner != NULL)
			closedir(inner);
		rmdir(dir);
	}
	if (d != NULL)
		closedir(d);
}

static bool use_base(struct limits *l, const char *base, bool v2)
{
	char text[1024], name[32];
	int n;

	snprintf(name, sizeof name, "vx.%d", (int)getppid());
	n = snprintf(l->dir, sizeof l->dir, "%s/%s", base, name);
	if (n < 0 || (size_t)n >= sizeof l->dir)
		return false;
	if (v2 && (read_text(base, "cgroup.subtree_control", text, sizeof text) < 0 || !has_word(text, "memory")))
		return false;
	if (mkdir(l->dir, 0755) < 0 && errno != EEXIST)
		return false;
	if (v2 && write_text(l->dir, "cgroup.subtree_control", "+memory") < 0) {
		rmdir(l->dir);
		return false;
	}
	l->v2 = v2;
	sweep(base, name);
	return true;
}

static void find_base(struct limits *l)
{
	char lines[8192], base[400];

	if (read_text("/proc/self", "cgroup", lines, sizeof lines) == 0) {
		if (own_cgroup(lines, "", "/sys/fs/cgroup", base, sizeof base) && use_base(l, base, true))
			return;
		if (own_cgroup(lines, "memory", "/sys/fs/cgroup/memory", base, sizeof base) && use_base(l, base, false))
			return;
	}
	snprintf(l->dir, sizeof l->dir, "-");
}

static void slot_dir(const struct worker *w, char *ret, size_t cap)
{
	snprintf(ret, cap, "%s/%u", w->limits.dir, w->index);
}

static int apply(const struct worker *w, const char *dir)
{
	char bytes[32];
	int r;

	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)w->a.d.memory_bytes);
	r = write_text(dir, w->limits.v2 ? "memory.max" : "memory.limit_in_bytes", bytes);
	/* Swap would make the limit soft; where swap is not accounted the file is absent. */
	if (r == 0 && w->limits.v2)
		write_text(dir, "memory.swap.max", "0");
	else if (r == 0)
		write_text(dir, "memory.memsw.limit_in_bytes", bytes);
	return r;
}

/* Moves us and the box host between the attempt's cgroup and our own. */
static void move_box(const struct worker *w, const char *dir)
{
	char pid[16];

	write_text(dir, "cgroup.procs", "0");
	if (w->box != NULL && vx_box_pid(w->box) > 0) {
		snprintf(pid, sizeof pid, "%d", (int)vx_box_pid(w->box));
		write_text(dir, "cgroup.procs", pid);
	}
}

void limits_join(struct worker *w)
{
	struct limits *l = &w->limits;
	char dir[600], procs[700];

	l->procs_fd = -1;
	l->joined = false;
	if (w->a.d.memory_bytes == 0)
		return;
	if (l->dir[0] == 0)
		find_base(l);
	slot_dir(w, dir, sizeof dir);
	if (l->dir[0] == '-' || (mkdir(dir, 0755) < 0 && errno != EEXIST)) {
		w->a.done.flags |= VX_DONE_NO_MEMORY_LIMIT;
		return;
	}
	snprintf(procs, sizeof procs, "%s/cgroup.procs", dir);
	l->procs_fd = apply(w, dir) == 0 ? vx_open(AT_FDCWD, procs, O_WRONLY, 0) : -1;
	if (l->procs_fd < 0) {
		l->procs_fd = -1;
		rmdir(dir);
		w->a.done.flags |= VX_DONE_NO_MEMORY_LIMIT;
		return;
	}
	l->joined = true;
	if (w->a.d.sandboxed)
		move_box(w, dir);
}

void limits_settle(struct worker *w)
{
	struct limits *l = &w->limits;
	struct vx_done *d = &w->a.done;
	char dir[600], text[4096], own[600];

	if (!l->joined)
		return;
	l->joined = false;
	l->procs_fd = vx_close(l->procs_fd);
	slot_dir(w, dir, sizeof dir);
	if (w->a.d.sandboxed) {
		snprintf(own, sizeof own, "%.*s", (int)(strrchr(l->dir, '/') - l->dir), l->dir);
		move_box(w, own);
	}
	if (read_text(dir, l->v2 ? "memory.peak" : "memory.max_usage_in_bytes", text, sizeof text) == 0) {
		d->peak_bytes = strtoull(text, NULL, 10);
		d->flags |= d->peak_bytes > 0 ? VX_DONE_PEAK_IS_TREE : 0;
	}
	if ((d->end == VX_END_SIGNAL || (d->end == VX_END_EXIT && d->code != 0)) &&
		read_text(dir, l->v2 ? "memory.events" : "memory.oom_control", text, sizeof text) == 0 && named_value(text, "oom_kill") > 0)
		d->end = VX_END_OOM;
	rmdir(dir);
}

void limits_remove(struct worker *w)
{
	if (w->limits.dir[0] == '/')
		rmdir(w->limits.dir); /* the last worker's succeeds */
}
