/* Looking through write grants for what no task may change, on the real file system; and taking
 * away what has appeared.
 *
 * A walk goes down by descriptor, one per level, and never by a path: how long names are, and what
 * is renamed meanwhile, leads it nowhere else. Memory goes with the depth alone. A directory deeper
 * than DENY_MAX_DEPTH, or whose path is longer than VX_MAX_PATH, cannot be looked through. */
#include "denies.h"
#include "resolve.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/map.h"
#include "vx/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIST_BYTES 32768

/* One record of getdents64(2). */
struct record {
	uint64_t ino;
	int64_t off;
	unsigned short length;
	unsigned char type;
	char name[];
};

struct level {
	int fd;
	size_t path_length;
	char *list; /* kept for the next directory of this level */
	long have, at;
	bool mended; /* it was closed to its owner, and gets its mode back */
	mode_t mode;
};

struct walk {
	struct level level[DENY_MAX_DEPTH];
	uint32_t depth; /* levels in use */
	char path[VX_MAX_PATH];
	bool mend; /* a directory of our own that may not be read is read all the same */
	uint64_t n_entries, max_entries;
	/* A directory is at hand, from now on. */
	void (*enter)(struct walk *w);
	/* An entry of it: whether to go down. */
	bool (*look)(struct walk *w, int dir_fd, const char *name, enum vx_fact_type type);
	/* A directory that cannot be looked through. -errno ends the walk. */
	int (*stuck)(struct walk *w, int dir_fd, const char *name, int error);
	void *arg;
};

static enum vx_fact_type type_of(int dir_fd, const struct record *e)
{
	struct stat st;
	unsigned char t = e->type;

	if (t == DT_UNKNOWN)
		t = fstatat(dir_fd, e->name, &st, AT_SYMLINK_NOFOLLOW) < 0 ? DT_UNKNOWN
									   : IFTODT(st.st_mode);
	return t == DT_DIR   ? VX_FACT_DIR
	       : t == DT_REG ? VX_FACT_FILE
	       : t == DT_LNK ? VX_FACT_LINK
			     : VX_FACT_OTHER;
}

/* Gives the owner, whom we are, all rights on a directory at hand, until it is left. */
static int mend(struct level *l)
{
	struct stat st;

	if (l->mended || fstat(l->fd, &st) < 0 || st.st_uid != geteuid() ||
		(st.st_mode & 0700) == 0700)
		return -EACCES;
	if (fchmod(l->fd, (st.st_mode & 07777) | 0700) < 0)
		return -errno;
	l->mended = true;
	l->mode = st.st_mode & 07777;
	return 0;
}

/* A directory that may not be read, open as a path. */
static int open_closed(struct walk *w, int path_fd, struct level *ret)
{
	char link[64];
	struct stat st;

	if (fstat(path_fd, &st) < 0)
		return -errno;
	if (st.st_uid != geteuid())
		return -ENOENT; /* closed to us, and to what runs as us */
	if (!w->mend)
		return -EACCES;
	snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
	if (chmod(link, (st.st_mode & 07777) | 0700) < 0)
		return -errno;
	int fd = vx_open(path_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0) {
		chmod(link, st.st_mode & 07777);
		return fd;
	}
	*ret = (struct level){.fd = fd, .mended = true, .mode = st.st_mode & 07777};
	return 0;
}

/* `parent` may be NULL: `name` is a path then, below dir_fd. */
static int open_level(
	struct walk *w, struct level *parent, int dir_fd, const char *name, struct level *ret)
{
	int flags = O_DIRECTORY | O_NOFOLLOW;

	for (int tries = 0;; tries++) {
		int fd = parent || dir_fd == AT_FDCWD
				 ? vx_open(dir_fd, name, O_RDONLY | flags, 0)
				 : vx_open_beneath(dir_fd, name, O_RDONLY | flags, 0);
		if (fd >= 0) {
			*ret = (struct level){.fd = fd};
			return 0;
		}
		if (fd != -EACCES)
			return fd;
		fd = parent || dir_fd == AT_FDCWD
			     ? vx_open(dir_fd, name, O_PATH | flags, 0)
			     : vx_open_beneath(dir_fd, name, O_PATH | flags, 0);
		if (fd >= 0) {
			int r = open_closed(w, fd, ret);
			vx_close(fd);
			return r;
		}
		if (fd != -EACCES || !parent || !w->mend || tries || mend(parent) < 0)
			return fd;
	}
}

static void leave(struct walk *w)
{
	struct level *l = &w->level[--w->depth];

	if (l->mended)
		(void)fchmod(l->fd, l->mode);
	l->fd = vx_close(l->fd);
	l->mended = false;
	if (w->depth) {
		w->path[w->level[w->depth - 1].path_length] = '\0';
		w->enter(w);
	}
}

/* Down into `name` of the directory at hand; gone or replaced meanwhile is fine. */
static int descend(struct walk *w, const char *name)
{
	struct level *l = &w->level[w->depth - 1], *next = l + 1, opened;
	size_t n = strlen(name);

	if (w->depth == DENY_MAX_DEPTH || l->path_length + 1 + n >= sizeof w->path)
		return w->stuck(w, l->fd, name, -ELOOP);
	int r = open_level(w, l, l->fd, name, &opened);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0)
		return w->stuck(w, l->fd, name, r);
	opened.list = next->list;
	*next = opened;
	w->path[l->path_length] = '/';
	memcpy(w->path + l->path_length + 1, name, n + 1);
	next->path_length = l->path_length + 1 + n;
	w->depth++;
	w->enter(w);
	return 0;
}

/* The next part of the list of the directory at hand; 0 at its end. */
static long more(struct level *l)
{
	long n;

	if (!l->list)
		l->list = vx_xmalloc(LIST_BYTES);
	do
		n = syscall(SYS_getdents64, l->fd, l->list, LIST_BYTES);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ENOENT ? 0 : -errno; /* removed meanwhile: empty */
	l->have = n;
	l->at = 0;
	return n;
}

static int go(struct walk *w)
{
	while (w->depth) {
		struct level *l = &w->level[w->depth - 1];

		if (l->at == l->have) {
			long n = more(l);
			if (n < 0)
				return (int)n;
			if (n == 0)
				leave(w);
			continue;
		}
		const struct record *e = (const void *)(l->list + l->at);
		l->at += e->length;
		if (e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2])))
			continue;
		if (++w->n_entries > w->max_entries)
			return -EFBIG;
		int r = w->look(w, l->fd, e->name, type_of(l->fd, e)) ? descend(w, e->name) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* `dir` below root_fd, or as it is when root_fd is AT_FDCWD. */
static int walk(struct walk *w, int root_fd, const char *dir)
{
	size_t n = strlen(dir);

	if (n >= sizeof w->path)
		return -ENAMETOOLONG;
	int r = open_level(w, NULL, root_fd, root_fd == AT_FDCWD ? dir : dir + 1, &w->level[0]);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r == 0) {
		memcpy(w->path, dir, n + 1);
		w->level[0].path_length = n;
		w->depth = 1;
		w->enter(w);
		r = go(w);
	}
	while (w->depth)
		leave(w);
	for (uint32_t i = 0; i < DENY_MAX_DEPTH; i++)
		free(w->level[i].list);
	return r;
}

/* ---- before an attempt ---- */

struct looker {
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type);
	void *arg;
};

static void before_enter(struct walk *w)
{
	const struct looker *l = w->arg;

	l->look(l->arg, w->path, NULL, VX_FACT_DIR);
}

static bool before_look(struct walk *w, int dir_fd, const char *name, enum vx_fact_type type)
{
	const struct looker *l = w->arg;

	(void)dir_fd;
	return l->look(l->arg, w->path, name, type);
}

static int before_stuck(struct walk *w, int dir_fd, const char *name, int error)
{
	(void)w, (void)dir_fd, (void)name;
	return error;
}

int deny_walk(const char *dir,
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
	void *arg)
{
	struct looker l = {look, arg};
	struct walk *w = vx_xcalloc(1, sizeof *w);

	w->max_entries = VX_MAX_FILES;
	w->enter = before_enter;
	w->look = before_look;
	w->stuck = before_stuck;
	w->arg = &l;
	int r = walk(w, AT_FDCWD, dir);
	free(w);
	return r;
}

/* ---- after an attempt ---- */

struct enforcer {
	struct deny_rules rules;
	struct vx_map known;
	struct deny_dir dir;
	bool set_id; /* the filter could not keep the task from making such files */
	/* nothing is removed: the first name that is found goes here, and that is all */
	char *found;
	size_t found_cap;
	struct vx_buf *lines;
	int n;
};

static void after_enter(struct walk *w)
{
	struct enforcer *e = w->arg;

	e->dir = deny_dir(&e->rules, w->path);
}

/* What is in the directory at hand: the whole of it. */
static int take_away(struct walk *w, int dir_fd, const char *name)
{
	int r = vx_rm_rf(dir_fd, name);

	if (r == -EACCES && mend(&w->level[w->depth - 1]) == 0)
		r = vx_rm_rf(dir_fd, name);
	return r;
}

static void say_appeared(struct walk *w, const char *name, int removed)
{
	struct enforcer *e = w->arg;

	e->n++;
	if (removed == 0)
		vx_buf_printf(e->lines,
			"sandbox: %s/%s was created, which no task may: it has been removed. Where it is meant, name it in allow.protected\n",
			w->path, name);
	else
		vx_buf_printf(e->lines,
			"sandbox: %s/%s was created, which no task may, and cannot be removed: %s\n",
			w->path, name, vx_strerror(removed));
}

static void clear_set_id(struct walk *w, int dir_fd, const char *name)
{
	struct enforcer *e = w->arg;
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0 || !S_ISREG(st.st_mode) ||
		!(st.st_mode & (S_ISUID | S_ISGID)))
		return;
	int r = take_away(w, dir_fd, name);
	e->n++;
	vx_buf_printf(e->lines, "sandbox: %s/%s is set-id, which no task may make%s%s\n", w->path,
		name, r < 0 ? ", and cannot be removed: " : ": it has been removed",
		r < 0 ? vx_strerror(r) : "");
}

static bool after_look(struct walk *w, int dir_fd, const char *name, enum vx_fact_type type)
{
	struct enforcer *e = w->arg;
	enum deny_verdict v = deny_judge(&e->rules, &e->dir, name, type);

	if (v != DENY_IT) {
		if (e->set_id && type == VX_FACT_FILE)
			clear_set_id(w, dir_fd, name);
		return v == DENY_ENTER;
	}
	char path[VX_MAX_PATH + NAME_MAX + 2];
	snprintf(path, sizeof path, "%s/%s", w->path, name);
	if (vx_map_gets(&e->known, path) != VX_MAP_NONE)
		return false;
	if (e->found) {
		if (!e->n++)
			snprintf(e->found, e->found_cap, "%s", path);
	} else {
		say_appeared(w, name, take_away(w, dir_fd, name));
	}
	return false;
}

/* Too deep is removed whole: before the attempt nothing was, so that the task has made it. Where
 * the machine is at fault nothing is removed; the attempt fails all the same. */
static int after_stuck(struct walk *w, int dir_fd, const char *name, int error)
{
	struct enforcer *e = w->arg;

	if (e->found) {
		if (!e->n++)
			snprintf(e->found, e->found_cap, "%s/%s", w->path, name);
		return 0;
	}
	int r = error == -ELOOP ? take_away(w, dir_fd, name) : error;

	e->n++;
	if (r == 0)
		vx_buf_printf(e->lines,
			"sandbox: %.200s.../%.60s is deeper than DENY_MAX_DEPTH (%u) or longer than VX_MAX_PATH (%u) and cannot be looked through for what no task may create: it has been removed\n",
			w->path, name, DENY_MAX_DEPTH, VX_MAX_PATH);
	else
		vx_buf_printf(e->lines,
			"sandbox: %.200s/%.60s cannot be looked through for what no task may create: %s\n",
			w->path, name, vx_strerror(r));
	return 0;
}

static int enforce_in(int root_fd, const char *dir, struct enforcer *e)
{
	struct walk *w = vx_xcalloc(1, sizeof *w);

	w->mend = !e->found;
	w->max_entries = UINT64_MAX; /* a task that makes many waits for them to be looked at */
	w->enter = after_enter;
	w->look = after_look;
	w->stuck = after_stuck;
	w->arg = e;
	int r = walk(w, root_fd, dir);
	free(w);
	if (r < 0 && e->found) {
		if (!e->n++)
			snprintf(e->found, e->found_cap, "%s", dir);
	} else if (r < 0) {
		vx_buf_printf(e->lines,
			"sandbox: %s cannot be looked through for what no task may create: %s\n",
			dir, vx_strerror(r));
		e->n++;
	}
	return r;
}

static int look_through(int root_fd, const struct vx_sbx_request *r, struct enforcer *e)
{
	struct vx_arena a = {0};
	struct vx_wsglobs members = {0}, no_members = {0};
	struct vx_err err = {0};

	e->rules = (struct deny_rules){.root = r->wall,
		.git_config = r->git_config,
		.members = &members,
		.no_members = &no_members,
		.allowed = r->protect};
	if (!r->deny_in.n)
		return 0;
	for (uint32_t i = 0; i < r->members.n; i++) { /* they were compiled once already */
		const char *p = r->members.v[i];
		if (vx_wsglob_add(*p == '!' ? &no_members : &members, p + (*p == '!'), &a, &err) <
			0)
			vx_buf_printf(e->lines, "sandbox: %s\n", err.what), e->n++;
	}
	for (uint32_t i = 0; i < r->deny_known.n; i++)
		vx_map_puts(&e->known, r->deny_known.v[i], i);
	for (uint32_t i = 0; i < r->deny_in.n; i++)
		enforce_in(root_fd, r->deny_in.v[i], e);
	vx_map_free(&e->known);
	vx_arena_free(&a);
	return e->n;
}

int deny_enforce(int root_fd, const struct vx_sbx_request *r, struct vx_buf *lines)
{
	struct enforcer e = {.set_id = r->nesting, .lines = lines};

	return look_through(root_fd, r, &e);
}

bool deny_find(int root_fd, const struct vx_sbx_request *r, char *ret, size_t cap)
{
	struct vx_buf lines = VX_BUF(1U << 16);
	struct enforcer e = {.lines = &lines, .found = ret, .found_cap = cap};

	bool found = look_through(root_fd, r, &e) > 0;
	vx_buf_free(&lines);
	return found;
}
