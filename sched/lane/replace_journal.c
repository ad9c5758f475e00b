/* The last step of a restore: small operations that each are atomic, in an order written down
 * before (the journal), so that a crash between any two of them can be completed. Paths are walked
 * beneath the root without passing a link. */
#include "lane_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_MAGIC "vx journal 1"

void vx_ops_add(struct vx_plan_ops *p, enum vx_op_kind kind, const char *path, const char *stage,
	uint32_t mode)
{
	if (p->n == p->cap) {
		p->cap = p->cap ? p->cap * 2 : 16;
		p->v = vx_xrealloc(p->v, p->cap * sizeof *p->v);
	}
	p->v[p->n++] = (struct vx_op){kind, mode, path, stage};
}

/* The parent directory of a path, kept open while the next path has the same. */
struct parent {
	struct vx_io *io;
	int root_fd, fd;
	const char *base; /* of the plan */
	char dir[VX_MAX_PATH];
};

/* A directory at or below the root or the base, and in its mount. */
static int open_dir(struct parent *p, const char *dir)
{
	size_t n = p->base ? strlen(p->base) : 0;
	bool below = n && strncmp(dir, p->base, n) == 0 && (!dir[n] || dir[n] == '/');
	return vx_io_open_inside(p->io, p->root_fd, dir, below ? n + 1 : 0, O_RDONLY | O_DIRECTORY);
}

static int open_parent(struct parent *p, const char *path, const char **ret_name)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	*ret_name = slash ? slash + 1 : path;
	if (p->fd >= 0 && strncmp(p->dir, path, n) == 0 && p->dir[n] == '\0')
		return p->fd;
	vx_io_close_fd(p->io, p->fd);
	memcpy(p->dir, path, n);
	p->dir[n] = '\0';
	p->fd = open_dir(p, n ? p->dir : ".");
	return p->fd;
}

/* A directory of ours without write permission: made writable for a moment. *ret_mode: what it was,
 * 0 unchanged. */
static bool make_writable(struct vx_io *io, int fd, mode_t *ret_mode)
{
	struct stat st;
	if (vx_io_stat_fd(io, fd, &st) < 0 || (st.st_mode & 0300) == 0300 || st.st_uid != geteuid())
		return false;
	struct vx_io_step s = {.op = VX_IO_CHMOD, .fd = fd, .mode = (st.st_mode & 07777) | 0700};
	if (vx_io_sys(io, &s) < 0)
		return false;
	*ret_mode = st.st_mode & 07777;
	return true;
}

static void give_back_mode(struct vx_io *io, int fd, mode_t mode)
{
	struct vx_io_step s = {.op = VX_IO_CHMOD, .fd = fd, .mode = mode};
	if (mode)
		vx_io_sys(io, &s);
}

static int whose(struct vx_io *io, int fd, const char *name, int r, const char *step,
	const char *path, struct vx_fail *f)
{
	struct stat st;
	vx_fail_set(f, r, step, "%s", path);
	if ((r == -EACCES || r == -EPERM) && vx_io_stat_at(io, fd, name, &st) == 0 &&
		st.st_uid != geteuid())
		snprintf(f->text, sizeof f->text,
			"%.400s belongs to another user (uid %u): permission denied", path,
			(unsigned)st.st_uid);
	return r;
}

static int remove_at(struct parent *p, const char *path, int flags, struct vx_fail *f)
{
	const char *name;
	int fd = open_parent(p, path, &name);
	if (fd == -ENOENT || fd == -ENOTDIR)
		return 0;
	if (fd < 0)
		return vx_fail_open(f, fd, path);
	mode_t mode = 0;
	int r = vx_io_unlink_at(p->io, fd, name, flags);
	if (r == -EACCES && make_writable(p->io, fd, &mode)) {
		r = vx_io_unlink_at(p->io, fd, name, flags);
		give_back_mode(p->io, fd, mode);
	}
	if (r == -ENOENT || r == -ENOTDIR ||
		r == -EISDIR) /* EISDIR: a directory was placed there meanwhile */
		r = 0;
	if (r == -ENOTEMPTY || r == -EEXIST || (flags && r == -EBUSY))
		return r;
	return r < 0 ? whose(p->io, fd, name, r, "remove", path, f) : 0;
}

int vx_ops_remove(struct vx_io *io, int root_fd, const char *path, int flags, struct vx_fail *f)
{
	struct parent p = {.io = io, .root_fd = root_fd, .fd = -1};
	int r = remove_at(&p, path, flags, f);
	vx_io_close_fd(io, p.fd);
	return r;
}

/* What stands where something is to be placed: a directory under a file, or the other way round.
 * What was an output in a directory is gone by now: what is still in it is not ours to remove. */
static int clear_way(
	struct parent *p, int fd, const char *name, const char *path, struct vx_fail *f)
{
	struct stat st;
	int r = vx_io_stat_at(p->io, fd, name, &st);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = vx_io_unlink_at(p->io, fd, name, S_ISDIR(st.st_mode) ? AT_REMOVEDIR : 0);
	if (r == -ENOTEMPTY || r == -EEXIST) {
		vx_fail_set(f, r, "rename", "%s", path);
		snprintf(f->text, sizeof f->text,
			"%.400s is a directory that holds what is not among the task's outputs",
			path);
		return r;
	}
	return r < 0 ? whose(p->io, fd, name, r, "remove", path, f) : 0;
}

static int move(struct parent *p, int from_fd, const char *from, int fd, const char *name, bool dir,
	const char *path, struct vx_fail *f);

/* Moves what one read of a directory has listed. *ret_n: how many entries that were. */
static int move_listed(struct parent *p, int from_fd, int fd, char *list, const char *path,
	uint32_t *ret_n, struct vx_fail *f)
{
	struct vx_io_step s = {.op = VX_IO_LIST, .fd = from_fd, .buf = list, .n = VX_LIST_BYTES};
	int64_t got = vx_io_sys(p->io, &s);
	int r = got < 0 ? vx_fail_set(f, (int)got, "list", "%s", path) : 0;
	*ret_n = 0;
	for (int64_t at = 0; at < got && r == 0;) {
		const struct vx_dent *e = (const struct vx_dent *)(const void *)(list + at);
		struct stat st;
		at += e->reclen;
		++*ret_n;
		if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
			continue;
		r = vx_io_stat_at(p->io, from_fd, e->name, &st);
		r = r < 0 ? vx_fail_set(f, r, "stat", "%s", path)
			  : move(p, from_fd, e->name, fd, e->name, S_ISDIR(st.st_mode), path, f);
	}
	return r;
}

/* A directory has come where none was when the restore was planned: another task's, or one that a
 * command works in. What was staged goes into it. */
static int merge(struct parent *p, int from_fd, const char *from, int fd, const char *name,
	const char *path, struct vx_fail *f)
{
	int a = vx_io_open_at(p->io, from_fd, from, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int b = vx_io_open_at(p->io, fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	char *list = vx_xmalloc(VX_LIST_BYTES);
	uint32_t n = 1;
	int r = a < 0 || b < 0 ? vx_fail_set(f, a < 0 ? a : b, "open", "%s", path) : 0;
	while (r == 0 && n)
		r = move_listed(p, a, b, list, path, &n, f);
	free(list);
	vx_io_close_fd(p->io, a);
	vx_io_close_fd(p->io, b);
	if (r == 0)
		vx_io_unlink_at(p->io, from_fd, from, AT_REMOVEDIR); /* or it goes with the stage */
	return r;
}

/* A file takes the place of what is there. A directory never does: somebody may be at work in it,
 * even when it is empty. */
static int move(struct parent *p, int from_fd, const char *from, int fd, const char *name, bool dir,
	const char *path, struct vx_fail *f)
{
	struct vx_io_step s = {.op = VX_IO_RENAME,
		.dirfd = from_fd,
		.path = from,
		.dirfd2 = fd,
		.path2 = name,
		.flags = dir ? RENAME_NOREPLACE : 0};
	struct stat st;
	mode_t mode = 0;
	int r = (int)vx_io_sys(p->io, &s);
	if (r == -EACCES && make_writable(p->io, fd, &mode))
		r = (int)vx_io_sys(p->io, &s);
	/* a file system that knows no such rename */
	if (dir && r == -EINVAL && vx_io_stat_at(p->io, fd, name, &st) == -ENOENT) {
		s.flags = 0;
		r = (int)vx_io_sys(p->io, &s);
	}
	bool taken = r == -EISDIR || r == -ENOTDIR || r == -ENOTEMPTY || r == -EEXIST ||
		     (dir && r == -EINVAL);
	if (taken && dir && vx_io_stat_at(p->io, fd, name, &st) == 0 && S_ISDIR(st.st_mode)) {
		r = merge(p, from_fd, from, fd, name, path, f);
		give_back_mode(p->io, fd, mode);
		return r;
	}
	if (taken) {
		r = clear_way(p, fd, name, path, f);
		if (r < 0) { /* said already */
			give_back_mode(p->io, fd, mode);
			return r;
		}
		r = (int)vx_io_sys(p->io, &s);
	}
	give_back_mode(p->io, fd, mode);
	return r < 0 ? whose(p->io, fd, name, r, "rename", path, f) : 0;
}

static int place(
	struct parent *p, int stage_fd, const struct vx_op *op, bool again, struct vx_fail *f)
{
	const char *name;
	struct stat st;
	if (again && vx_io_stat_at(p->io, stage_fd, op->stage, &st) == -ENOENT)
		return 0;
	int fd = open_parent(p, op->path, &name);
	if (fd == -EXDEV)
		return vx_fail_open(f, fd, op->path);
	if (fd < 0)
		return vx_fail_set(f, fd, "open", "the directory of %s", op->path);
	return move(p, stage_fd, op->stage, fd, name, S_ISDIR(op->mode), op->path, f);
}

static int set_mode(struct parent *p, const struct vx_op *op, struct vx_fail *f)
{
	int fd = open_dir(p, op->path);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return vx_fail_open(f, fd, op->path);
	struct vx_io_step s = {.op = VX_IO_CHMOD, .fd = fd, .mode = op->mode};
	int r = (int)vx_io_sys(p->io, &s);
	vx_io_close_fd(p->io, fd);
	return r < 0 ? vx_fail_set(f, r, "chmod", "%s", op->path) : 0;
}

int vx_ops_apply(struct vx_io *io, int root_fd, int stage_fd, const struct vx_plan_ops *ops,
	bool again, struct vx_fail *f)
{
	struct parent p = {.io = io, .root_fd = root_fd, .fd = -1, .base = ops->base};
	int r = 0;
	for (uint32_t i = 0; i < ops->n && r == 0; i++) {
		const struct vx_op *op = &ops->v[i];
		switch (op->kind) {
		case OP_REMOVE:
			r = remove_at(&p, op->path, 0, f);
			break;
		case OP_PLACE:
			r = place(&p, stage_fd, op, again, f);
			break;
		case OP_MODE:
			r = set_mode(&p, op, f);
			break;
		case OP_EMPTY:
			r = remove_at(&p, op->path, AT_REMOVEDIR, f);
			r = r == -ENOTEMPTY || r == -EEXIST || r == -EBUSY ? 0 : r;
			break;
		}
		VX_POINT("restore.op");
	}
	vx_io_close_fd(io, p.fd);
	return r;
}

/* ---- the journal ---- */

/* One line per operation, its strings NUL-terminated since names may hold newlines, and at the end
 * a digest of it all, keyed by the secret of this .vx: nobody else writes one that is believed. */
static void encode(const struct vx_plan_ops *p, const struct vx_digest *secret, struct vx_buf *b)
{
	vx_buf_add(b, JOURNAL_MAGIC, sizeof JOURNAL_MAGIC);
	vx_buf_u32le(b, p->n);
	for (uint32_t i = 0; i < p->n; i++) {
		const struct vx_op *op = &p->v[i];
		vx_buf_addc(b, (char)op->kind);
		vx_buf_u32le(b, op->mode);
		vx_buf_add(b, op->path, strlen(op->path) + 1);
		vx_buf_add(b, op->stage ? op->stage : "", strlen(op->stage ? op->stage : "") + 1);
	}
	struct vx_digest d;
	vx_journal_seal(secret, b->data, b->len, &d);
	vx_buf_add(b, d.b, sizeof d.b);
}

void vx_journal_seal(const struct vx_digest *secret, const void *p, size_t n, struct vx_digest *ret)
{
	vx_hmac_sha256(secret, sizeof *secret, p, n, ret);
}

static int write_new(struct vx_io *io, int dir_fd, const char *name, const struct vx_buf *b)
{
	int fd = vx_io_open_at(io, dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return fd;
	int r = vx_io_write_at(io, fd, b->data, b->len, 0);
	vx_io_close_fd(io, fd);
	return r;
}

int vx_journal_write(const struct vx_journal *j, const struct vx_plan_ops *p, struct vx_fail *f)
{
	char tmp[96];
	struct vx_buf b = VX_BUF(VX_JOURNAL_MAX_BYTES);
	snprintf(tmp, sizeof tmp, "%s.journal", j->stage);
	encode(p, j->secret, &b);
	int r = b.overflow ? -EFBIG : write_new(j->io, j->stages_fd, tmp, &b);
	VX_POINT("journal.written");
	if (r == 0)
		r = vx_io_rename_at(j->io, j->stages_fd, tmp, j->journals_fd, j->stage);
	VX_POINT("journal.renamed");
	if (r < 0)
		vx_io_unlink_at(j->io, j->stages_fd, tmp, 0);
	vx_buf_free(&b);
	return r < 0 ? vx_fail_set(f, r, "journal", "the journal of a restore in .vx") : 0;
}

void vx_journal_done(const struct vx_journal *j)
{
	vx_io_unlink_at(j->io, j->journals_fd, j->stage, 0);
	VX_POINT("journal.removed");
}
