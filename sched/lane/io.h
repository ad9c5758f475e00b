/* Every system call of the lanes, as data: so that it can go through a ring, be made by a plain
 * call, or be failed by a test.
 *
 * A step is one operation; a chain is steps in order, of which the first that fails ends the chain:
 * the ones after it get -ECANCELED. A chain may open one descriptor and use it in its later steps
 * as VX_IO_CHAINED; it is closed with the chain whatever happens, unless the opening step says
 * `keep`.
 *
 *   vx_io_run   several chains, each independent of the others; returns when all are done. The ring
 *               runs them side by side.
 *   vx_io_sys   one step, always by a plain system call
 *
 * A short read does not end a chain (its count is in res); a short write does. vx_io_one and
 * vx_io_careful make what callers usually want of this: EINTR, EAGAIN and short writes are
 * continued there, whichever implementation is below.
 *
 * An object belongs to one thread. Two implementations: vx_io_uring_new (only io_uring.c includes
 * liburing.h) and vx_io_blocking_new; tests wrap them. */
#ifndef VX_LANE_IO_H
#define VX_LANE_IO_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum vx_io_op {
	/* what the ring does; vx_lane_stats counts these */
	VX_IO_OPEN,
	VX_IO_READ,
	VX_IO_WRITE,
	VX_IO_CLOSE,
	VX_IO_RENAME,
	VX_IO_MKDIR,
	VX_IO_UNLINK,
	VX_IO_FSYNC,
	VX_IO_RINGED,
	/* what is always a plain call */
	VX_IO_STAT = VX_IO_RINGED, /* of dirfd/path, not following; of fd when path is NULL */
	VX_IO_LIST,                /* getdents64 of fd into buf */
	VX_IO_READLINK,            /* into buf */
	VX_IO_SYMLINK,             /* path2 is the target */
	VX_IO_TIMES,               /* mtime_ns of dirfd/path, not following, or of fd */
	VX_IO_CHMOD,               /* mode of fd */
	VX_IO_TRUNCATE,            /* fd to n bytes */
	VX_IO_SEEK,                /* lseek of fd from off; flags: SEEK_DATA or SEEK_HOLE */
	VX_IO_OPS
};

#define VX_IO_CHAINED (-2)

struct vx_io_step {
	enum vx_io_op op;
	/* OPEN: openat2 with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS */
	bool beneath;
	bool one_mount; /* OPEN with beneath: RESOLVE_NO_XDEV too */
	bool keep;      /* OPEN: res is a descriptor that the caller closes */
	int fd;
	int dirfd, dirfd2; /* dirfd2, path2: RENAME's target, or SYMLINK's content (path2 alone) */
	const char *path, *path2;
	int flags; /* OPEN: O_*; UNLINK: AT_REMOVEDIR; RENAME: RENAME_*; FSYNC: 1 data only */
	mode_t mode;
	void *buf;
	size_t n;
	uint64_t off;
	struct stat *st;
	int64_t mtime_ns;
	int64_t res; /* out: >= 0, or -errno */
};

struct vx_io_chain {
	struct vx_io_step *steps;
	uint32_t n;
};

/* One record of what LIST reads: getdents64(2). */
struct vx_dent {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};
#define VX_LIST_BYTES (32U << 10)

#define VX_IO_MAX_CHAIN 8 /* steps */

struct vx_io {
	const char *name;
	void (*run)(struct vx_io *io, struct vx_io_chain *chains, uint32_t n);
	void (*sys)(struct vx_io *io, struct vx_io_step *s);
	void (*free)(struct vx_io *io);
	/* [VX_IO_RINGED], counted by the ring as it submits; may be NULL */
	_Atomic uint64_t *ring_ops;
	_Atomic uint64_t *steps; /* [VX_IO_RINGED], counted by vx_io_run */
};

struct vx_io *vx_io_blocking_new(void);
/* NULL with the reason: -ENOSYS, -EPERM (forbidden), -ENOMEM ... */
struct vx_io *vx_io_uring_new(int *ret_errno);
/* Plain calls, unless VX_IO=uring asks for the ring: on the kernels that we measured (bench/save
 * read, 4k, 100) an open that creates, a rename and a mkdir go to the ring's worker threads, which
 * costs several times the call, and reading side by side gains nothing over plain calls on files
 * that were just written. *ret_name: "io_uring", or "blocking: <why>". */
struct vx_io *vx_io_new(char *ret_name, size_t cap);
void vx_io_free(struct vx_io *io);

void vx_io_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n);
int64_t vx_io_sys(struct vx_io *io, struct vx_io_step *s);
/* One step by run, EINTR and short writes continued. */
int64_t vx_io_one(struct vx_io *io, struct vx_io_step *s);
/* One chain again, step by step, after it came back with EINTR, EAGAIN or a short write. Returns
 * the first error, 0 when all is done. */
int vx_io_careful(struct vx_io *io, struct vx_io_chain *c);
bool vx_io_transient(int64_t res);

/* The plain call of a step; fd is what VX_IO_CHAINED stands for. For implementations. */
int64_t vx_io_call(struct vx_io_step *s, int fd);

/* Short forms over vx_io_sys, for what is not counted. All return >= 0 or -errno. */
int vx_io_open_at(struct vx_io *io, int dirfd, const char *path, int flags, mode_t mode);
int vx_io_open_beneath(struct vx_io *io, int dirfd, const char *path, int flags, mode_t mode);
/* What lies at or below outputs: beneath root_fd, and in no other mount than the directory that the
 * first base_n bytes of path name with their slash (0: root_fd). That directory may be a mount
 * itself. -EXDEV: another mount is met. O_NOATIME is left out where it is not allowed. */
int vx_io_open_inside(struct vx_io *io, int root_fd, const char *path, size_t base_n, int flags);
int vx_io_stat_at(struct vx_io *io, int dirfd, const char *path, struct stat *st);
int vx_io_stat_fd(struct vx_io *io, int fd, struct stat *st);
void vx_io_close_fd(struct vx_io *io, int fd);
int vx_io_unlink_at(struct vx_io *io, int dirfd, const char *path, int flags);
int vx_io_mkdir_at(struct vx_io *io, int dirfd, const char *path, mode_t mode);
int vx_io_rename_at(struct vx_io *io, int dirfd, const char *from, int dirfd2, const char *to);
/* until n bytes or the end */
int64_t vx_io_read_at(struct vx_io *io, int fd, void *p, size_t n, uint64_t off);
int vx_io_write_at(struct vx_io *io, int fd, const void *p, size_t n, uint64_t off); /* all of it */

#endif
