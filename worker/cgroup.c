/* Cgroups, v1 and v2. */
#include "cgroup.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/strs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_BYTES 65536 /* of one file; a list of processes is read again until it is empty */
#define LOOK_AGAIN_MS 5
/* how deep cgroups are removed: what a task makes below its own is its own affair */
#define BELOW 8

static const char *const names[CGROUP_KINDS] = {"memory", "pids"};

static int write_text(const char *dir, const char *name, const char *text)
{
	char path[CGROUP_PATH + 64];

	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = vx_open(AT_FDCWD, path, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	int r = vx_write_full(fd, text, strlen(text));
	vx_close(fd);
	return r;
}

static int read_text(const char *dir, const char *name, char *ret, size_t cap)
{
	char path[CGROUP_PATH + 64];

	ret[0] = '\0';
	snprintf(path, sizeof path, "%s/%s", dir, name);
	int fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	ssize_t n = vx_read_full(fd, ret, cap - 1);
	vx_close(fd);
	ret[n > 0 ? n : 0] = '\0';
	return n < 0 ? (int)n : 0;
}

/* The value after `name` in lines of "name value"; 0 when absent. */
static uint64_t named_value(const char *text, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = text; p != NULL && *p != 0;
		p = strchr(p, '\n'), p = p != NULL ? p + 1 : NULL)
		if (strncmp(p, name, n) == 0 && p[n] == ' ')
			return strtoull(p + n + 1, NULL, 10);
	return 0;
}

static bool has_word(const char *text, const char *word)
{
	size_t n = strlen(word);

	for (const char *p = strstr(text, word); p != NULL; p = strstr(p + 1, word))
		if ((p == text || strchr(", ", p[-1]) != NULL) &&
			(p[n] == 0 || strchr(", \n", p[n]) != NULL))
			return true;
	return false;
}

/* Our cgroup of the hierarchy whose line has `controller` ("" for v2), below `mount`. Inside a
 * container that sees only its own part, the line's path does not exist there and the mount itself
 * is our cgroup. */
static bool own_cgroup(
	const char *lines, const char *controller, const char *mount, char ret[CGROUP_PATH])
{
	for (const char *p = lines; p != NULL && *p != 0;
		p = strchr(p, '\n'), p = p != NULL ? p + 1 : NULL) {
		const char *list = strchr(p, ':'),
			   *path = list != NULL ? strchr(list + 1, ':') : NULL;
		char have[256];

		if (path == NULL)
			continue;
		snprintf(have, sizeof have, "%.*s", (int)(path - list - 1), list + 1);
		if (controller[0] == 0 ? have[0] != 0 : !has_word(have, controller))
			continue;
		int n = snprintf(
			ret, CGROUP_PATH, "%s%.*s", mount, (int)strcspn(path + 1, "\n"), path + 1);
		if (n >= CGROUP_PATH || access(ret, F_OK) < 0)
			n = snprintf(ret, CGROUP_PATH, "%s", mount);
		if (n > 1 && ret[n - 1] == '/')
			ret[n - 1] = '\0';
		return n < CGROUP_PATH - 32; /* room for what is made below */
	}
	return false;
}

/* A cgroup and those below it, as far as nobody is in them. */
static void remove_cgroup(const char *dir, int depth)
{
	DIR *d;
	struct dirent *e;

	if (rmdir(dir) == 0 || depth == 0 || (errno != EBUSY && errno != ENOTEMPTY))
		return;
	d = opendir(dir);
	while (d != NULL && (e = readdir(d)) != NULL) {
		char sub[CGROUP_PATH + 300];

		if (e->d_type == DT_DIR && e->d_name[0] != '.' &&
			snprintf(sub, sizeof sub, "%s/%s", dir, e->d_name) < CGROUP_PATH)
			remove_cgroup(sub, depth - 1);
	}
	if (d != NULL)
		closedir(d);
	rmdir(dir);
}

/* Removes what runs left that died: their pids are gone. */
static void sweep(const char *base, const char *keep)
{
	DIR *d = opendir(base);
	struct dirent *e;

	while (d != NULL && (e = readdir(d)) != NULL) {
		pid_t pid = vx_starts_with(e->d_name, "vx.") ? atoi(e->d_name + 3) : 0;
		char dir[CGROUP_PATH + 300];

		if (pid <= 0 || vx_streq(e->d_name, keep) || kill(pid, 0) == 0 || errno != ESRCH)
			continue;
		if (snprintf(dir, sizeof dir, "%s/%s", base, e->d_name) < CGROUP_PATH)
			remove_cgroup(dir, BELOW);
	}
	if (d != NULL)
		closedir(d);
}

static bool make_in(const char *base, pid_t run, char ret[CGROUP_PATH])
{
	char name[32];

	snprintf(name, sizeof name, "vx.%d", (int)run);
	snprintf(ret, CGROUP_PATH, "%.*s/%s", CGROUP_PATH - 40, base, name);
	if (mkdir(ret, 0755) < 0 && errno != EEXIST) {
		ret[0] = '\0';
		return false;
	}
	sweep(base, name);
	return true;
}

/* v2: the controllers must be on for our children already. Whoever has processes cannot switch them
 * on, and ours has us. */
static bool find_v2(const char *fs, const char *lines, pid_t run, struct cgroup_place *ret)
{
	char mount[CGROUP_PATH], base[CGROUP_PATH], text[1024], dir[CGROUP_PATH];

	snprintf(mount, sizeof mount, "%s/unified", fs); /* beside v1 hierarchies */
	if (access(mount, F_OK) < 0)
		snprintf(mount, sizeof mount, "%s", fs);
	if (!own_cgroup(lines, "", mount, base) ||
		read_text(base, "cgroup.subtree_control", text, sizeof text) < 0 ||
		!has_word(text, "memory") || !make_in(base, run, dir))
		return false;
	bool pids =
		has_word(text, "pids") && write_text(dir, "cgroup.subtree_control", "+pids") == 0;
	if (write_text(dir, "cgroup.subtree_control", "+memory") < 0) {
		rmdir(dir);
		return false;
	}
	ret->v2 = true;
	snprintf(ret->dir[CGROUP_MEMORY], CGROUP_PATH, "%s", dir);
	if (pids)
		snprintf(ret->dir[CGROUP_PIDS], CGROUP_PATH, "%s", dir);
	return true;
}

void cgroup_find(const char *fs, const char *lines, pid_t run, struct cgroup_place *ret)
{
	char mount[CGROUP_PATH], base[CGROUP_PATH];

	*ret = (struct cgroup_place){.v2 = false};
	if (find_v2(fs, lines, run, ret))
		return;
	for (int k = 0; k < CGROUP_KINDS; k++) {
		snprintf(mount, sizeof mount, "%s/%s", fs, names[k]);
		if (!own_cgroup(lines, names[k], mount, base) || !make_in(base, run, ret->dir[k]))
			ret->dir[k][0] = '\0';
	}
}

void cgroup_forget(struct cgroup_place *p)
{
	for (int k = 0; k < CGROUP_KINDS; k++)
		if (p->dir[k][0] != '\0')
			rmdir(p->dir[k]);
}

static bool same(const struct cgroup *g)
{
	return strcmp(g->dir[CGROUP_MEMORY], g->dir[CGROUP_PIDS]) == 0;
}

static int limit_memory(const struct cgroup *g, uint64_t bytes)
{
	char text[32];

	snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
	int r = write_text(
		g->dir[CGROUP_MEMORY], g->v2 ? "memory.max" : "memory.limit_in_bytes", text);
	/* Swap would make the limit soft; where swap is not accounted the file is absent. */
	if (r == 0 && g->v2)
		write_text(g->dir[CGROUP_MEMORY], "memory.swap.max", "0");
	else if (r == 0)
		write_text(g->dir[CGROUP_MEMORY], "memory.memsw.limit_in_bytes", text);
	return r;
}

static int open_kind(struct cgroup *g, const struct cgroup_place *p, int kind, uint32_t slot,
	uint64_t memory_bytes, uint32_t max_processes)
{
	char path[CGROUP_PATH + 64], text[16];

	if (p->dir[kind][0] == '\0')
		return -ENOTSUP;
	int n = snprintf(g->dir[kind], CGROUP_PATH, "%s/%u", p->dir[kind], slot);
	if (n < CGROUP_PATH && !(kind == CGROUP_PIDS && same(g)))
		remove_cgroup(g->dir[kind], BELOW); /* its counts would be taken for ours */
	int r = n >= CGROUP_PATH                                   ? -ENAMETOOLONG
		: mkdir(g->dir[kind], 0755) < 0 && errno != EEXIST ? -errno
								   : 0;
	if (r == 0 && kind == CGROUP_MEMORY)
		r = limit_memory(g, memory_bytes);
	snprintf(text, sizeof text, "%u", max_processes);
	if (r == 0 && kind == CGROUP_PIDS)
		r = write_text(g->dir[kind], "pids.max", text);
	snprintf(path, sizeof path, "%s/cgroup.procs", g->dir[kind]);
	if (r == 0 && (kind == CGROUP_MEMORY || !same(g)))
		r = g->procs_fd[kind] = vx_open(AT_FDCWD, path, O_WRONLY, 0);
	if (r < 0) {
		g->procs_fd[kind] = -1;
		if (kind == CGROUP_MEMORY || !same(g))
			rmdir(g->dir[kind]);
		g->dir[kind][0] = '\0';
	}
	return r < 0 ? r : 0;
}

static struct cgroup_use read_use(const struct cgroup *g)
{
	struct cgroup_use u = {0};
	char text[4096];

	if (read_text(g->dir[CGROUP_MEMORY], g->v2 ? "memory.peak" : "memory.max_usage_in_bytes",
		    text, sizeof text) == 0)
		u.peak_bytes = strtoull(text, NULL, 10);
	if (read_text(g->dir[CGROUP_MEMORY], g->v2 ? "memory.events" : "memory.oom_control", text,
		    sizeof text) == 0)
		u.oom_kills = named_value(text, "oom_kill");
	if (g->dir[CGROUP_PIDS][0] != '\0' &&
		read_text(g->dir[CGROUP_PIDS], "pids.events", text, sizeof text) == 0)
		u.fork_denied = named_value(text, "max");
	return u;
}

int cgroup_open(const struct cgroup_place *p, uint32_t slot, uint64_t memory_bytes,
	uint32_t max_processes, struct cgroup *ret)
{
	struct cgroup g = CGROUP_INIT;

	g.v2 = p->v2;
	*ret = CGROUP_INIT;
	int r = open_kind(&g, p, CGROUP_MEMORY, slot, memory_bytes, max_processes);
	if (r < 0)
		return r;
	open_kind(&g, p, CGROUP_PIDS, slot, memory_bytes, max_processes);
	g.before = read_use(&g);
	*ret = g;
	return 0;
}

/* One of the lines of /proc/PID/cgroup names our cgroup, "/vx.RUN/SLOT", or one below it that the
 * task has made. */
static bool has_path_end(const char *lines, const char *name)
{
	size_t n = strlen(name);

	for (const char *p = strstr(lines, name); p != NULL; p = strstr(p + 1, name))
		if (p[n] == '\n' || p[n] == '/' || p[n] == '\0')
			return true;
	return false;
}

/* A number from a list may mean somebody else by the time that it is used: only a process that is
 * still in the cgroup once a descriptor holds it is killed. */
static void kill_member(const char *dir, pid_t pid)
{
	char proc[32], lines[4096];
	const char *slash = strrchr(dir, '/'), *up = slash;

	while (up > dir && *--up != '/')
		continue;
	int fd = vx_pidfd_open(pid);
	if (fd < 0)
		return;
	snprintf(proc, sizeof proc, "/proc/%d", (int)pid);
	if (read_text(proc, "cgroup", lines, sizeof lines) == 0 && has_path_end(lines, up))
		vx_pidfd_signal(fd, SIGKILL);
	vx_close(fd);
}

/* How many there were. */
static unsigned kill_members(const char *dir)
{
	static char text[TEXT_BYTES];
	unsigned n = 0;
	char *end;

	read_text(dir, "cgroup.procs", text, sizeof text);
	for (const char *p = text; *p != '\0'; p = *end == '\n' ? end + 1 : end) {
		long pid = strtol(p, &end, 10);
		if (end == p)
			break;
		kill_member(dir, (pid_t)pid);
		n++;
	}
	return n;
}

void cgroup_kill(const struct cgroup *g)
{
	if (g->v2 && g->dir[CGROUP_MEMORY][0] != '\0' &&
		write_text(g->dir[CGROUP_MEMORY], "cgroup.kill", "1") == 0)
		return;
	for (int k = 0; k < CGROUP_KINDS; k++)
		if (g->dir[k][0] != '\0' && (k == 0 || !same(g)))
			kill_members(g->dir[k]);
}

/* Until nobody is left, or the time is up. */
static void empty(const struct cgroup *g)
{
	static char text[TEXT_BYTES];
	uint64_t until = vx_now_ns() + CGROUP_CLOSE_MS * 1000000ULL;

	for (;;) {
		bool left = false;
		for (int k = 0; k < CGROUP_KINDS; k++)
			left |= g->dir[k][0] != '\0' &&
				read_text(g->dir[k], "cgroup.procs", text, sizeof text) == 0 &&
				text[0] != '\0';
		if (!left || vx_now_ns() >= until)
			return;
		cgroup_kill(g);
		poll(NULL, 0, LOOK_AGAIN_MS);
	}
}

void cgroup_close(struct cgroup *g, struct cgroup_use *ret)
{
	for (int k = 0; k < CGROUP_KINDS; k++)
		g->procs_fd[k] = vx_close(g->procs_fd[k]);
	empty(g);
	struct cgroup_use u = read_use(g), b = g->before;
	*ret = (struct cgroup_use){u.peak_bytes > b.peak_bytes ? u.peak_bytes : 0,
		u.oom_kills > b.oom_kills ? u.oom_kills - b.oom_kills : 0,
		u.fork_denied > b.fork_denied ? u.fork_denied - b.fork_denied : 0};
	for (int k = 0; k < CGROUP_KINDS; k++)
		if (g->dir[k][0] != '\0' && (k == 0 || !same(g)))
			remove_cgroup(g->dir[k], BELOW);
	*g = CGROUP_INIT;
}
