#include "vx/fd.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/limits.h"
#include "vx/point.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int vx_open(int dirfd, const char *path, int flags, mode_t mode)
{
	int fd;

	do
		fd = openat(dirfd, path, flags | O_CLOEXEC, mode);
	while (fd < 0 && errno == EINTR);
	return fd < 0 ? -errno : fd;
}

int vx_close(int fd)
{
	int saved = errno;

	if (fd >= 0)
		close(fd); /* Linux has closed it whatever it answers; close(2) */
	errno = saved;
	return -1;
}

void vx_cleanup_fd(int *fd)
{
	*fd = vx_close(*fd);
}

ssize_t vx_read(int fd, void *p, size_t n)
{
	ssize_t r;

	do
		r = read(fd, p, n);
	while (r < 0 && errno == EINTR);
	return r < 0 ? -errno : r;
}

ssize_t vx_read_full(int fd, void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = vx_read(fd, (char *)p + done, n - done);

		if (r < 0)
			return r;
		if (r == 0)
			break;
		done += (size_t)r;
	}
	return (ssize_t)done;
}

int vx_write_full(int fd, const void *p, size_t n)
{
	size_t done = 0;

	while (done < n) {
		ssize_t r = write(fd, (const char *)p + done, n - done);

		if (r < 0 && errno == EINTR)
			continue;
		if (r < 0)
			return -errno;
		done += (size_t)r;
	}
	return 0;
}

/* Reads to the end. When the buffer is full to its maximum, one byte more decides between "just
 * fits" and -EFBIG. */
static int read_to_end(int fd, struct vx_buf *b, size_t hint)
{
	size_t chunk = hint + 1;

	for (;;) {
		size_t room = b->max - b->len;
		char extra;

		if (!room) {
			ssize_t r = vx_read(fd, &extra, 1);
			if (r > 0)
				b->overflow = true;
			return r > 0 ? -EFBIG : (int)r;
		}
		if (chunk > room)
			chunk = room;

		void *p = vx_buf_reserve(b, chunk);
		if (!p)
			return -EFBIG;
		ssize_t r = vx_read(fd, p, chunk);
		if (r <= 0)
			return (int)r;
		vx_buf_commit(b, (size_t)r);
		chunk = 64 << 10;
	}
}

int vx_read_file(int dirfd, const char *path, struct vx_buf *b)
{
	/* Non-blocking, so that a fifo in a file's place cannot hang us before it is seen for what
	 * it is. */
	VX_CLEANUP_FD int fd = vx_open(dirfd, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, 0);

	return fd < 0 ? fd : vx_read_file_fd(fd, b);
}

int vx_read_file_fd(int fd, struct vx_buf *b)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EISDIR;
	if (!S_ISREG(st.st_mode) && !S_ISCHR(st.st_mode))
		return -EINVAL;
	/* what claims too much is refused unread; size 0 is also said of what has bytes */
	if (S_ISREG(st.st_mode) && (uint64_t)st.st_size > b->max - b->len)
		b->overflow = true;
	if (b->overflow)
		return -EFBIG;
	return read_to_end(fd, b, st.st_size > 0 ? (size_t)st.st_size : 4095);
}

int vx_write_file_atomic(int dirfd, const char *path, const void *p, size_t n, mode_t mode)
{
	static atomic_uint counter;
	char tmp[VX_MAX_PATH];
	const char *slash = strrchr(path, '/');
	int dir_n = slash ? (int)(slash + 1 - path) : 0;
	int len = snprintf(tmp, sizeof tmp, "%.*s.vx-%d-%u.tmp", dir_n, path, (int)getpid(),
		atomic_fetch_add(&counter, 1U));

	if (len < 0 || (size_t)len >= sizeof tmp)
		return -ENAMETOOLONG;

	/* The pid may belong to somebody else in another pid namespace, or be left from a crash:
	 * O_EXCL decides, and a leftover is replaced. */
	int fd = vx_open(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (fd == -EEXIST && unlinkat(dirfd, tmp, 0) == 0)
		fd = vx_open(dirfd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode);
	if (fd < 0)
		return fd;

	int r = vx_write_full(fd, p, n);
	if (close(fd) < 0 && r == 0 && errno != EINTR)
		r = -errno; /* NFS and quotas report here */
	VX_POINT("file.written");
	if (r == 0 && renameat(dirfd, tmp, dirfd, path) < 0)
		r = -errno;
	if (r < 0)
		unlinkat(dirfd, tmp, 0);
	return r;
}

int vx_readlink(int dirfd, const char *path, char *ret, size_t cap)
{
	char target[VX_MAX_PATH];
	ssize_t n = readlinkat(dirfd, path, target, sizeof target);

	if (n < 0)
		return -errno;
	if ((size_t)n == sizeof target || (size_t)n >= cap)
		return -ENAMETOOLONG;
	memcpy(ret, target, (size_t)n);
	ret[n] = '\0';
	return (int)n;
}

static int mkdir_one(int dirfd, const char *path, mode_t mode)
{
	struct stat st;

	if (mkdirat(dirfd, path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return -errno;
	if (fstatat(dirfd, path, &st, 0) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int vx_mkdir_p(int dirfd, const char *path, mode_t mode)
{
	char text[VX_MAX_PATH];
	size_t n = strlen(path);

	if (n >= sizeof text)
		return -ENAMETOOLONG;

	/* Mostly the parent is there, so the whole path is tried first. */
	int r = mkdir_one(dirfd, path, mode);
	if (r != -ENOENT || !n)
		return r;
	memcpy(text, path, n + 1);
	for (size_t i = 1; i < n; i++) {
		if (text[i] != '/' || text[i - 1] == '/')
			continue;
		text[i] = '\0';
		r = mkdir_one(dirfd, text, mode);
		text[i] = '/';
		if (r < 0)
			return r;
	}
	return mkdir_one(dirfd, text, mode);
}

int vx_pipe(int ret[2])
{
	return pipe2(ret, O_CLOEXEC) < 0 ? -errno : 0;
}

int vx_eventfd(void)
{
	int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

	return fd < 0 ? -errno : fd;
}

void vx_event_signal(int fd)
{
	uint64_t one = 1;
	ssize_t r;

	/* EAGAIN: the counter is at its maximum, hence signalled already. */
	do
		r = write(fd, &one, sizeof one);
	while (r < 0 && errno == EINTR);
}

void vx_event_clear(int fd)
{
	uint64_t n;
	ssize_t r;

	do
		r = read(fd, &n, sizeof n);
	while (r < 0 && errno == EINTR);
}

int vx_nonblock(int fd)
{
	int flags = fcntl(fd, F_GETFL);

	return flags < 0 || fcntl(fd, F_SETFL, flags | O_NONBLOCK) < 0 ? -errno : 0;
}

int vx_pidfd_open(pid_t pid)
{
	int fd = (int)syscall(SYS_pidfd_open, pid, 0); /* always close-on-exec */

	return fd < 0 ? -errno : fd;
}

int vx_pidfd_signal(int pidfd, int sig)
{
	return syscall(SYS_pidfd_send_signal, pidfd, sig, NULL, 0) < 0 ? -errno : 0;
}

int vx_memfd(const char *name)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	return fd < 0 ? -errno : fd;
}

int vx_open_beneath(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		/* openat2 refuses a mode that has no use */
		.mode = flags & (O_CREAT | __O_TMPFILE) ? mode & 07777 : 0,
		.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	/* EAGAIN: a rename raced with the walk, openat2(2). */
	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}
