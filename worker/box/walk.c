/* Looking through write grants for what no task may change, on the real file system; and taking
 * away what has appeared. */
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

struct closed {
	const char *rel;
	mode_t mode;
};

struct walk {
	struct vx_arena *a;      /* paths */
	struct vx_strlist to_do; /* directories seen and not yet listed, whole paths */
	size_t top_length;       /* of the grant's own path */
	int top;                 /* the grant, open */
	bool mend;
	struct closed *closed; /* directories that were opened, in that order */
	uint32_t n_closed, cap_closed;
	uint64_t n_entries;
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type);
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

static int list(struct walk *w, int fd, const char *path)
{
	_Alignas(16) char buf[LIST_BYTES];
	long n;

	for (;;) {
		n = syscall(SYS_getdents64, fd, buf, sizeof buf);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 && errno != ENOENT ? -errno : 0; /* removed meanwhile: empty */
		for (long at = 0; at < n;) {
			const struct record *e = (const void *)(buf + at);
			at += e->length;
			if (e->name[0] == '.' &&
				(!e->name[1] || (e->name[1] == '.' && !e->name[2])))
				continue;
			if (++w->n_entries > VX_MAX_FILES)
				return -EFBIG;
			if (w->look(w->arg, path, e->name, type_of(fd, e)))
				vx_strlist_add(&w->to_do, w->a, vx_path_join(w->a, path, e->name));
		}
	}
}

static int chmod_open(int path_fd, mode_t mode)
{
	char link[64];

	snprintf(link, sizeof link, "/proc/self/fd/%d", path_fd);
	return chmod(link, mode) < 0 ? -errno : 0;
}

/* A directory that its owner, whom we are, has closed to himself is opened until the walk is
 * over. */
static int open_closed(struct walk *w, const char *rel)
{
	struct stat st;
	int path = vx_open_beneath(w->top, rel, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0), fd = -EACCES;

	if (path < 0)
		return path;
	if (fstat(path, &st) < 0)
		fd = -errno;
	else if (st.st_uid != geteuid())
		fd = -ENOENT; /* closed to us, and to what runs as us */
	else if (w->mend && (fd = chmod_open(path, (st.st_mode & 07777) | 0700)) == 0) {
		*SBX_PUSH(w, w->closed, w->n_closed, w->cap_closed) =
			(struct closed){rel, st.st_mode & 07777};
		fd = vx_open(path, ".", O_RDONLY | O_DIRECTORY, 0);
	}
	vx_close(path);
	return fd;
}

static void close_again(struct walk *w)
{
	while (w->n_closed) {
		const struct closed *c = &w->closed[--w->n_closed];
		int path = vx_open_beneath(w->top, c->rel, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (path >= 0)
			chmod_open(path, c->mode);
		vx_close(path);
	}
}

static int open_dir(struct walk *w, const char *rel)
{
	int fd = vx_open_beneath(w->top, rel, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);

	return fd == -EACCES ? open_closed(w, rel) : fd;
}

static int walk(struct walk *w)
{
	while (w->to_do.n) {
		const char *path = w->to_do.v[--w->to_do.n], *rel = path + w->top_length;
		int fd = open_dir(w, *rel == '/' ? rel + 1 : ".");

		if (fd == -ENOENT || fd == -ENOTDIR ||
			fd == -ELOOP) /* removed or replaced meanwhile */
			continue;
		int r = fd < 0 ? fd : list(w, fd, path);
		vx_close(fd);
		if (r < 0)
			return r;
	}
	return 0;
}

int deny_walk(int root_fd, const char *dir, bool mend,
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
	void *arg)
{
	struct vx_arena a = {0};
	struct walk w = {
		.a = &a, .top_length = strlen(dir), .mend = mend, .look = look, .arg = arg};
	int r = 0;

	w.top = root_fd == AT_FDCWD
			? vx_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0)
			: vx_open_beneath(root_fd, dir + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
	if (w.top < 0)
		return w.top == -ENOENT || w.top == -ENOTDIR || w.top == -ELOOP || w.top == -EACCES
			       ? 0
			       : w.top;
	vx_strlist_add(&w.to_do, &a, dir);
	r = walk(&w);
	close_again(&w);
	vx_close(w.top);
	vx_arena_free(&a);
	return r;
}

/* The directory that holds `path`, opened without following a link anywhere; *ret_name is the last
 * component. */
static int open_parent(int root_fd, const char *path, const char **ret_name)
{
	char dir[VX_MAX_PATH];
	const char *slash = strrchr(path, '/');

	*ret_name = slash + 1;
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - path - 1), path + 1);
	return vx_open_beneath(root_fd, dir, O_RDONLY | O_DIRECTORY, 0);
}

/* Directories of our own between `dir` and `path` that are closed to ourselves are opened, for
 * good: the attempt has failed anyway. */
static void open_up(int root_fd, const char *dir, const char *path)
{
	char at[VX_MAX_PATH];
	struct stat st;

	for (const char *slash = path + strlen(dir); slash; slash = strchr(slash + 1, '/')) {
		snprintf(at, sizeof at, "%.*s", (int)(slash - path - 1), path + 1);
		int fd = vx_open_beneath(root_fd, at, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd < 0)
			return;
		if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && (st.st_mode & 0700) != 0700)
			chmod_open(fd, (st.st_mode & 07777) | 0700);
		vx_close(fd);
	}
}

static int remove_appeared(int root_fd, const char *dir, const char *path)
{
	const char *name;
	int r = -EACCES;

	for (int i = 0; i < 2 && r == -EACCES; i++) {
		int parent = open_parent(root_fd, path, &name);
		r = parent < 0 ? parent : vx_rm_rf(parent, name);
		vx_close(parent);
		if (r == -EACCES && i == 0)
			open_up(root_fd, dir, path);
	}
	return r;
}

static int enforce_in(int root_fd, const char *dir, const struct vx_map *known,
	const struct vx_sbx_request *r, struct vx_buf *lines)
{
	struct vx_arena a = {0};
	struct deny_search s = {.a = &a, .git_config = r->git_config};
	int n = 0, res = deny_walk(root_fd, dir, true, deny_look, &s);

	for (uint32_t i = 0; i < s.n; i++) {
		if (vx_map_gets(known, s.v[i].path) != VX_MAP_NONE)
			continue;
		int one = remove_appeared(root_fd, dir, s.v[i].path);
		n++;
		if (one == 0)
			vx_buf_printf(lines,
				"sandbox: %s was created, which no task may: it has been removed\n",
				s.v[i].path);
		else
			vx_buf_printf(lines,
				"sandbox: %s was created, which no task may, and cannot be removed: %s\n",
				s.v[i].path, vx_strerror(one));
	}
	if (res < 0) {
		vx_buf_printf(lines,
			"sandbox: %s cannot be looked through for what no task may create: %s\n",
			dir, res == -EFBIG ? "it holds more than VX_MAX_FILES" : vx_strerror(res));
		n++;
	}
	vx_arena_free(&a);
	return n;
}

int deny_enforce(int root_fd, const struct vx_sbx_request *r, struct vx_buf *lines)
{
	struct vx_map known = {0};
	int n = 0;

	for (uint32_t i = 0; i < r->deny_known.n; i++)
		vx_map_puts(&known, r->deny_known.v[i], i);
	for (uint32_t i = 0; i < r->deny_in.n; i++)
		n += enforce_in(root_fd, r->deny_in.v[i], &known, r, lines);
	vx_map_free(&known);
	return n;
}
