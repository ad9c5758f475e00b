/* Descriptors and whole files. Everything opened here is close-on-exec from birth; EINTR is
 * retried. All return 0 (or a count) or -errno. */
#ifndef VX_FD_H
#define VX_FD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct vx_buf;

/* adds O_CLOEXEC; returns the fd */
int vx_open(int dirfd, const char *path, int flags, mode_t mode);
/* closes fd if >= 0; always returns -1, for `fd = vx_close(fd)` */
int vx_close(int fd);
#define VX_CLEANUP_FD __attribute__((cleanup(vx_cleanup_fd)))
void vx_cleanup_fd(int *fd);

ssize_t vx_read(int fd, void *p, size_t n);         /* one read, EINTR retried */
ssize_t vx_read_full(int fd, void *p, size_t n);    /* until n bytes or end; returns the count */
int vx_write_full(int fd, const void *p, size_t n); /* all of it */

/* Appends the whole file to b. -EFBIG when b's maximum is passed, -EISDIR, -ENOENT, -EINVAL for
 * what is neither a regular file nor a character device (a fifo in a file's place would hang us). A
 * file that grows while read is read to its new end. */
int vx_read_file(int dirfd, const char *path, struct vx_buf *b);
int vx_read_file_fd(int fd, struct vx_buf *b); /* the same of one that is open; fd stays open */
/* Writes beside and renames; no temporary is left behind on failure. Atomic for other processes;
 * not synced to the disk. `mode` is subject to the umask. */
int vx_write_file_atomic(int dirfd, const char *path, const void *p, size_t n, mode_t mode);
/* NUL-terminated; returns the length; -ENAMETOOLONG */
int vx_readlink(int dirfd, const char *path, char *ret, size_t cap);

int vx_mkdir_p(int dirfd, const char *path, mode_t mode); /* existing directories are fine */
/* Removes a file or a tree. Never follows a link (on the way to it either, where dirfd is a
 * descriptor), never enters a mount (-EBUSY), takes any depth
 * with few descriptors, gives itself permissions on its own directories; absent is fine. It goes on
 * past what it cannot remove and returns the first reason. -EINVAL for ".", ".." and "/". */
int vx_rm_rf(int dirfd, const char *path);
int vx_pipe(int ret[2]);
int vx_eventfd(void); /* non-blocking, starts at 0 */
void vx_event_signal(int fd);
void vx_event_clear(int fd);
int vx_nonblock(int fd);
int vx_pidfd_open(pid_t pid);
int vx_pidfd_signal(int pidfd, int sig);
int vx_memfd(const char *name); /* sealable */

/* openat2(2) with RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS: no path handed to
 * it can leave dirfd or pass through a link. */
int vx_open_beneath(int dirfd, const char *path, int flags, mode_t mode);

#endif
