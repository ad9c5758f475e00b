/* Steps by plain system calls; and what is the same above every implementation. */
#include "io.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/limits.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define OPEN_TRIES 16 /* openat2 answers EAGAIN when somebody renames directories meanwhile */

static int64_t call_open(struct vx_io_step *s)
{
	if (!s->beneath)
		return openat(s->dirfd, s->path, s->flags | O_CLOEXEC, s->mode);
	struct open_how how = {.flags = (uint64_t)(uint32_t)(s->flags | O_CLOEXEC),
		.mode = s->flags & (O_CREAT | O_TMPFILE) ? s->mode : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS |
			   (s->one_mount ? RESOLVE_NO_XDEV : 0)};
	int64_t r = -1;
	for (int i = 0; i < OPEN_TRIES; i++) {
		r = syscall(SYS_openat2, s->dirfd, s->path, &how, sizeof how);
		if (r >= 0 || errno != EAGAIN)
			break;
	}
	return r;
}

static int64_t call_times(const struct vx_io_step *s, int fd)
{
	int64_t sec = s->mtime_ns / 1000000000, ns = s->mtime_ns % 1000000000;
	if (ns < 0) {
		ns += 1000000000;
		sec--;
	}
	struct timespec ts[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = sec, .tv_nsec = ns}};
	return s->path ? utimensat(s->dirfd, s->path, ts, AT_SYMLINK_NOFOLLOW) : futimens(fd, ts);
}

static int64_t call_once(struct vx_io_step *s, int fd)
{
	switch (s->op) {
	case VX_IO_OPEN:
		return call_open(s);
	case VX_IO_READ:
		return pread(fd, s->buf, s->n, (off_t)s->off);
	case VX_IO_WRITE:
		return pwrite(fd, s->buf, s->n, (off_t)s->off);
	case VX_IO_CLOSE:
		return close(fd);
	case VX_IO_RENAME:
		return s->flags ? renameat2(s->dirfd, s->path, s->dirfd2, s->path2,
					  (unsigned)s->flags)
				: renameat(s->dirfd, s->path, s->dirfd2, s->path2);
	case VX_IO_MKDIR:
		return mkdirat(s->dirfd, s->path, s->mode);
	case VX_IO_UNLINK:
		return unlinkat(s->dirfd, s->path, s->flags);
	case VX_IO_FSYNC:
		return s->flags ? fdatasync(fd) : fsync(fd);
	case VX_IO_STAT:
		return s->path ? fstatat(s->dirfd, s->path, s->st, AT_SYMLINK_NOFOLLOW)
			       : fstat(fd, s->st);
	case VX_IO_LIST:
		return syscall(SYS_getdents64, fd, s->buf, s->n);
	case VX_IO_READLINK:
		return readlinkat(s->dirfd, s->path, s->buf, s->n);
	case VX_IO_SYMLINK:
		return symlinkat(s->path2, s->dirfd, s->path);
	case VX_IO_TIMES:
		return call_times(s, fd);
	case VX_IO_CHMOD:
		return fchmod(fd, s->mode);
	case VX_IO_TRUNCATE:
		return ftruncate(fd, (off_t)s->n);
	case VX_IO_SEEK:
		return lseek(fd, (off_t)s->off, s->flags);
	case VX_IO_OPS:
		break;
	}
	vx_assert(!"a step of no kind");
}

int64_t vx_io_call(struct vx_io_step *s, int fd)
{
	int64_t r = call_once(s, s->fd == VX_IO_CHAINED ? fd : s->fd);
	return r < 0 ? -errno : r;
}

static void run_chain(struct vx_io_chain *c)
{
	int fd = -1;
	bool ended = false;
	for (uint32_t i = 0; i < c->n; i++) {
		struct vx_io_step *s = &c->steps[i];
		if (ended) {
			s->res = -ECANCELED;
			continue;
		}
		s->res = vx_io_call(s, fd);
		if (s->op == VX_IO_OPEN && !s->keep && s->res >= 0)
			fd = (int)s->res;
		if (s->op == VX_IO_CLOSE && s->fd == VX_IO_CHAINED)
			fd = -1;
		ended = s->res < 0 || (s->op == VX_IO_WRITE && (size_t)s->res < s->n);
	}
	if (fd >= 0)
		close(fd);
}

static void blocking_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n)
{
	(void)io;
	for (uint32_t i = 0; i < n; i++)
		run_chain(&chains[i]);
}

static void blocking_sys(struct vx_io *io, struct vx_io_step *s)
{
	(void)io;
	s->res = vx_io_call(s, -1);
}

static void blocking_free(struct vx_io *io)
{
	free(io);
}

struct vx_io *vx_io_blocking_new(void)
{
	struct vx_io *io = vx_xcalloc(1, sizeof *io);
	*io = (struct vx_io){.name = "blocking",
		.run = blocking_run,
		.sys = blocking_sys,
		.free = blocking_free};
	return io;
}

struct vx_io *vx_io_new(char *ret_name, size_t cap)
{
	const char *want = getenv("VX_IO");
	if (!want || strcmp(want, "uring") != 0) {
		snprintf(ret_name, cap, "blocking: %s",
			vx_streq(want, "blocking")
				? "VX_IO=blocking"
				: "faster here than io_uring (VX_IO=uring asks for it)");
		return vx_io_blocking_new();
	}
	int e = 0;
	struct vx_io *io = vx_io_uring_new(&e);
	if (io) {
		snprintf(ret_name, cap, "io_uring");
		return io;
	}
	snprintf(ret_name, cap, "blocking: io_uring %s",
		e == -ENOSYS                  ? "is not in this kernel"
		: e == -EPERM || e == -EACCES ? "is forbidden here"
					      : strerrordesc_np(-e));
	return vx_io_blocking_new();
}

void vx_io_free(struct vx_io *io)
{
	if (io)
		io->free(io);
}

/* ---- above the implementations ---- */

bool vx_io_transient(int64_t res)
{
	return res == -EINTR || res == -EAGAIN;
}

void vx_io_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n)
{
	for (uint32_t i = 0; i < n && io->steps; i++)
		for (uint32_t k = 0; k < chains[i].n; k++)
			atomic_fetch_add_explicit(
				&io->steps[chains[i].steps[k].op], 1, memory_order_relaxed);
	io->run(io, chains, n);
}

int64_t vx_io_sys(struct vx_io *io, struct vx_io_step *s)
{
	int tries = 0;
	do
		io->sys(io, s);
	while (vx_io_transient(s->res) && s->op != VX_IO_CLOSE && ++tries < 100);
	return s->res;
}

int64_t vx_io_one(struct vx_io *io, struct vx_io_step *s)
{
	struct vx_io_step rest = *s;
	struct vx_io_chain c = {&rest, 1};
	size_t done = 0;
	for (int tries = 0; tries < 1000; tries++) {
		vx_io_run(io, &c, 1);
		if (vx_io_transient(rest.res) || rest.res == -ECANCELED)
			continue;
		if (s->op != VX_IO_WRITE || rest.res < 0)
			return s->res = rest.res;
		if (rest.res == 0 && rest.n)
			return s->res = -EIO;
		done += (size_t)rest.res;
		if (done == s->n)
			return s->res = (int64_t)done;
		rest.buf = (char *)s->buf + done;
		rest.n = s->n - done;
		rest.off = s->off + done;
	}
	return s->res = -EINTR;
}

int vx_io_careful(struct vx_io *io, struct vx_io_chain *c)
{
	int fd = -1, r = 0;
	for (uint32_t i = 0; i < c->n && r == 0; i++) {
		struct vx_io_step one = c->steps[i], *s = &c->steps[i];
		bool closes = one.op == VX_IO_CLOSE && one.fd == VX_IO_CHAINED;
		if (one.fd == VX_IO_CHAINED)
			one.fd = fd;
		one.keep = true;
		s->res = vx_io_one(io, &one);
		if (closes)
			fd = -1;
		if (s->op == VX_IO_OPEN && !s->keep && s->res >= 0)
			fd = (int)s->res;
		r = s->res < 0 ? (int)s->res : 0;
	}
	if (fd >= 0)
		vx_io_close_fd(io, fd);
	return r;
}

int vx_io_open_at(struct vx_io *io, int dirfd, const char *path, int flags, mode_t mode)
{
	struct vx_io_step s = {.op = VX_IO_OPEN,
		.dirfd = dirfd,
		.path = path,
		.flags = flags,
		.mode = mode,
		.keep = true};
	return (int)vx_io_sys(io, &s);
}

int vx_io_open_beneath(struct vx_io *io, int dirfd, const char *path, int flags, mode_t mode)
{
	struct vx_io_step s = {.op = VX_IO_OPEN,
		.dirfd = dirfd,
		.path = path,
		.flags = flags,
		.mode = mode,
		.keep = true,
		.beneath = true};
	return (int)vx_io_sys(io, &s);
}

static int open_one_mount(struct vx_io *io, int dirfd, const char *path, int flags)
{
	struct vx_io_step s = {.op = VX_IO_OPEN,
		.dirfd = dirfd,
		.path = path,
		.flags = flags,
		.keep = true,
		.beneath = true,
		.one_mount = true};
	int fd = (int)vx_io_sys(io, &s);
	if (fd != -EPERM || !(flags & O_NOATIME))
		return fd;
	s.flags = flags & ~O_NOATIME;
	return (int)vx_io_sys(io, &s);
}

int vx_io_open_inside(struct vx_io *io, int root_fd, const char *path, size_t base_n, int flags)
{
	int fd = open_one_mount(io, root_fd, path, flags);
	size_t n = strlen(path);
	if (fd != -EXDEV || !base_n || n + 1 < base_n || base_n > VX_MAX_PATH)
		return fd;
	char base[VX_MAX_PATH];
	memcpy(base, path, base_n - 1);
	base[base_n - 1] = '\0';
	int base_fd = vx_io_open_beneath(io, root_fd, base, O_PATH | O_DIRECTORY, 0);
	if (base_fd < 0)
		return base_fd;
	fd = open_one_mount(io, base_fd, n > base_n ? path + base_n : ".", flags);
	vx_io_close_fd(io, base_fd);
	return fd;
}

int vx_io_stat_at(struct vx_io *io, int dirfd, const char *path, struct stat *st)
{
	struct vx_io_step s = {.op = VX_IO_STAT, .dirfd = dirfd, .path = path, .st = st};
	return (int)vx_io_sys(io, &s);
}

int vx_io_stat_fd(struct vx_io *io, int fd, struct stat *st)
{
	struct vx_io_step s = {.op = VX_IO_STAT, .fd = fd, .st = st};
	return (int)vx_io_sys(io, &s);
}

void vx_io_close_fd(struct vx_io *io, int fd)
{
	struct vx_io_step s = {.op = VX_IO_CLOSE, .fd = fd};
	if (fd >= 0)
		vx_io_sys(io, &s);
}

int vx_io_unlink_at(struct vx_io *io, int dirfd, const char *path, int flags)
{
	struct vx_io_step s = {.op = VX_IO_UNLINK, .dirfd = dirfd, .path = path, .flags = flags};
	return (int)vx_io_sys(io, &s);
}

int vx_io_mkdir_at(struct vx_io *io, int dirfd, const char *path, mode_t mode)
{
	struct vx_io_step s = {.op = VX_IO_MKDIR, .dirfd = dirfd, .path = path, .mode = mode};
	return (int)vx_io_sys(io, &s);
}

int vx_io_rename_at(struct vx_io *io, int dirfd, const char *from, int dirfd2, const char *to)
{
	struct vx_io_step s = {
		.op = VX_IO_RENAME, .dirfd = dirfd, .path = from, .dirfd2 = dirfd2, .path2 = to};
	return (int)vx_io_sys(io, &s);
}

int64_t vx_io_read_at(struct vx_io *io, int fd, void *p, size_t n, uint64_t off)
{
	size_t done = 0;
	while (done < n) {
		struct vx_io_step s = {.op = VX_IO_READ,
			.fd = fd,
			.buf = (char *)p + done,
			.n = n - done,
			.off = off + done};
		int64_t r = vx_io_sys(io, &s);
		if (r < 0)
			return r;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (int64_t)done;
}

int vx_io_write_at(struct vx_io *io, int fd, const void *p, size_t n, uint64_t off)
{
	size_t done = 0;
	while (done < n) {
		struct vx_io_step s = {.op = VX_IO_WRITE,
			.fd = fd,
			.buf = (char *)(uintptr_t)p + done,
			.n = n - done,
			.off = off + done};
		int64_t r = vx_io_sys(io, &s);
		if (r < 0)
			return (int)r;
		if (r == 0)
			return -EIO;
		done += (size_t)r;
	}
	return 0;
}
