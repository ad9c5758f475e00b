#include "vx/facts.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static struct vx_facts *recorder;

void vx_facts_init(struct vx_facts *f, struct vx_arena *a)
{
	*f = (struct vx_facts){.arena = a};
}

void vx_facts_use(struct vx_facts *f)
{
	recorder = f;
}

void vx_seen_stat_of(const struct stat *st, struct vx_seen_stat *ret)
{
	*ret = (struct vx_seen_stat){
		.dev = st->st_dev,
		.ino = st->st_ino,
		.size = (uint64_t)st->st_size,
		.mtime_s = st->st_mtim.tv_sec,
		.mtime_ns = (uint32_t)st->st_mtim.tv_nsec,
		.ctime_s = st->st_ctim.tv_sec,
		.ctime_ns = (uint32_t)st->st_ctim.tv_nsec,
		.mode = st->st_mode,
	};
}

static struct vx_seen *record(const struct vx_base_dir *base, const char *rel,
	enum vx_seen_kind kind, const struct stat *st, const char *target)
{
	struct vx_facts *f = recorder;

	if (!f)
		return NULL;
	if (f->n == f->cap)
		f->v = vx_arena_grow(f->arena, f->v, f->n, sizeof *f->v, &f->cap, 256);
	struct vx_seen *s = &f->v[f->n++];
	*s = (struct vx_seen){.kind = kind};
	if (*rel == '/')
		s->path = vx_arena_strdup(f->arena, rel);
	else if (strcmp(rel, ".") == 0)
		s->path = vx_arena_strdup(f->arena, base->path);
	else
		s->path = vx_arena_printf(
			f->arena, "%s/%s", strcmp(base->path, "/") == 0 ? "" : base->path, rel);
	s->target = target ? vx_arena_strdup(f->arena, target) : NULL;
	if (st)
		vx_seen_stat_of(st, &s->st);
	return s;
}

static bool same_stat(const struct stat *x, const struct stat *y)
{
	return x->st_ino == y->st_ino && x->st_dev == y->st_dev && x->st_size == y->st_size &&
	       x->st_mode == y->st_mode && x->st_mtim.tv_sec == y->st_mtim.tv_sec &&
	       x->st_mtim.tv_nsec == y->st_mtim.tv_nsec && x->st_ctim.tv_sec == y->st_ctim.tv_sec &&
	       x->st_ctim.tv_nsec == y->st_ctim.tv_nsec;
}

static int absent(const struct vx_base_dir *base, const char *rel, int r)
{
	if (r == -ENOENT || r == -ENOTDIR) {
		record(base, rel, VX_SEEN_ABSENT, NULL, NULL);
		return -ENOENT;
	}
	return r;
}

/* Reads to the end, at most what the buffer takes. */
static int read_all(int fd, uint64_t size, struct vx_buf *b)
{
	for (;;) {
		size_t want = size > 0 && b->len < size ? (size_t)(size - b->len) + 1 : 65536;
		if (want > b->max - b->len)
			want = b->max - b->len + (b->max - b->len ? 0 : 1);
		char probe = 0;
		void *p = b->len == b->max ? &probe : vx_buf_reserve(b, want);
		if (!p)
			return -EFBIG;
		ssize_t n = vx_read(fd, p, want);
		if (n < 0)
			return (int)n;
		if (n == 0)
			return 0;
		if (p == &probe)
			return -EFBIG;
		vx_buf_commit(b, (size_t)n);
	}
}

int vx_seen_read(const struct vx_base_dir *base, const char *rel, struct vx_buf *b)
{
	/* O_NONBLOCK: a FIFO under the name of a manifest must not hang planning. */
	int fd = vx_open(base->fd, rel, O_RDONLY | O_NONBLOCK, 0);
	struct stat before, after;

	if (fd < 0)
		return absent(base, rel, fd);
	if (fstat(fd, &before) < 0) {
		int r = -errno;
		vx_close(fd);
		return r;
	}
	if (!S_ISREG(before.st_mode)) {
		vx_close(fd);
		return S_ISDIR(before.st_mode) ? -EISDIR : -EINVAL;
	}
	if ((uint64_t)before.st_size > b->max - b->len) {
		vx_close(fd);
		return -EFBIG;
	}
	int r = read_all(fd, (uint64_t)before.st_size, b);
	if (r == 0 && recorder) {
		if (fstat(fd, &after) < 0 || !same_stat(&before, &after))
			recorder->unstable = true;
		record(base, rel, VX_SEEN_FILE, &before, NULL);
	}
	vx_close(fd);
	return r;
}

/* The kernel's record; getdents64(2). */
struct kernel_dirent {
	uint64_t ino;
	int64_t off;
	unsigned short reclen;
	unsigned char type;
	char name[];
};

static int list_fd(int fd, int (*each)(void *arg, const struct vx_dirent *e), void *arg)
{
	_Alignas(16) char buf[32768];

	for (;;) {
		long n = syscall(SYS_getdents64, fd, buf, sizeof buf);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (n == 0)
			return 0;
		for (long at = 0; at < n;) {
			const struct kernel_dirent *k = (const void *)(buf + at);
			at += k->reclen;
			if (k->name[0] == '.' &&
				(k->name[1] == '\0' || (k->name[1] == '.' && k->name[2] == '\0')))
				continue;
			struct vx_dirent e = {k->name, strlen(k->name), k->type};
			int r = each(arg, &e);
			if (r)
				return r;
		}
	}
}

int vx_seen_list(const struct vx_base_dir *base, const char *rel,
	int (*each)(void *arg, const struct vx_dirent *e), void *arg)
{
	int fd = vx_open(base->fd, rel, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);
	struct stat before, after;

	if (fd < 0)
		return absent(base, rel, fd);
	if (recorder && fstat(fd, &before) < 0) {
		int r = -errno;
		vx_close(fd);
		return r;
	}
	int r = list_fd(fd, each, arg);
	if (recorder && r == 0) {
		if (fstat(fd, &after) < 0 || !same_stat(&before, &after))
			recorder->unstable = true;
		record(base, rel, VX_SEEN_DIR, &before, NULL);
	}
	vx_close(fd);
	return r;
}

struct picking {
	vx_name_bit *bit;
	uint32_t names;
};

static int pick(void *arg, const struct vx_dirent *e)
{
	struct picking *p = arg;
	p->names |= p->bit(e->name, e->len);
	return 0;
}

int vx_names_in(
	int dir_fd, const char *rel, vx_name_bit *bit, struct vx_seen_stat *ret_st, uint32_t *ret)
{
	struct picking p = {bit, 0};
	struct stat before, after;
	VX_CLEANUP_FD int fd = vx_open(dir_fd, rel, O_RDONLY | O_DIRECTORY | O_NONBLOCK, 0);

	if (fd < 0)
		return fd;
	if (ret_st && fstat(fd, &before) < 0)
		return -errno;
	int r = list_fd(fd, pick, &p);
	if (r == 0 && ret_st && fstat(fd, &after) < 0)
		r = -errno;
	if (r)
		return r;
	*ret = p.names;
	if (!ret_st)
		return 0;
	vx_seen_stat_of(&before, ret_st);
	return same_stat(&before, &after) ? 0 : -EAGAIN;
}

int vx_seen_names(const struct vx_base_dir *base, const char *rel, vx_name_bit *bit, uint32_t *ret)
{
	struct vx_seen_stat st;
	int r = vx_names_in(base->fd, rel, bit, &st, ret);

	if (r < 0 && r != -EAGAIN)
		return absent(base, rel, r);
	struct vx_seen *s = record(base, rel, VX_SEEN_NAMES, NULL, NULL);
	if (s) {
		s->st = st;
		s->names = *ret;
		recorder->unstable |= r != 0;
	}
	return 0;
}

int vx_seen_exists(const struct vx_base_dir *base, const char *rel, bool *ret)
{
	struct stat st;

	if (fstatat(base->fd, rel, &st, 0) < 0) {
		int r = absent(base, rel, -errno);
		if (r == -ENOENT)
			*ret = false;
		return r == -ENOENT ? 0 : r;
	}
	record(base, rel, S_ISDIR(st.st_mode) ? VX_SEEN_DIR : VX_SEEN_FILE, &st, NULL);
	*ret = true;
	return 0;
}

int vx_seen_is_dir(
	const struct vx_base_dir *base, const char *rel, bool *ret, uint64_t ret_dev_ino[2])
{
	struct stat st, lst;
	char target[VX_MAX_PATH];

	if (fstatat(base->fd, rel, &lst, AT_SYMLINK_NOFOLLOW) < 0) {
		int r = absent(base, rel, -errno);
		if (r == -ENOENT)
			*ret = false;
		return r == -ENOENT ? 0 : r;
	}
	if (S_ISLNK(lst.st_mode)) {
		if (vx_readlink(base->fd, rel, target, sizeof target) < 0)
			target[0] = '\0';
		record(base, rel, VX_SEEN_LINK, &lst, target);
		/* A dangling link, a loop: not a directory. */
		if (fstatat(base->fd, rel, &st, 0) < 0)
			st.st_mode = 0;
	} else {
		st = lst;
	}
	*ret = S_ISDIR(st.st_mode);
	if (*ret && ret_dev_ino) {
		ret_dev_ino[0] = st.st_dev;
		ret_dev_ino[1] = st.st_ino;
	}
	return 0;
}
