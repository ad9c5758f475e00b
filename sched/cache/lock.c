/* The lock of a workspace. */
#include "vx/arena.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/state.h"
#include "vx/store.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOOK_AGAIN_MS 50

/* .vx and its .gitignore. Returns its descriptor. */
static int make_own_dir(const char *root, struct vx_err *err)
{
	int root_fd = vx_open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
	if (root_fd < 0)
		return vx_err_set(err, root_fd, "%s: %s", root, vx_strerror(root_fd));
	int fd = vx_state_dir(root_fd, true);
	vx_close(root_fd);
	if (fd >= 0)
		return fd;
	if (fd != -ENOTDIR && fd != -ELOOP && fd != -EUCLEAN)
		return vx_err_set(err, fd, "%s/.vx: %s", root, vx_strerror(fd));
	char path[VX_MAX_PATH];
	snprintf(path, sizeof path, "%s/.vx", root);
	return vx_state_refuse(err, fd, path);
}

/* A plain file with no other name: it is written to. */
static int open_lock(int dir)
{
	struct stat st;
	int fd = vx_state_open(dir, "lock", O_RDWR | O_CREAT | O_NOFOLLOW, 0666);
	if (fd >= 0 && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_nlink > 1)) {
		vx_close(fd);
		return -EINVAL;
	}
	return fd;
}

/* "vx run (pid 4711)", as its holder wrote it. */
static pid_t read_holder(int fd, char *ret, size_t cap)
{
	ssize_t n = pread(fd, ret, cap - 1, 0);
	ret[n > 0 ? n : 0] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	const char *pid = strstr(ret, "(pid ");
	if (!ret[0])
		snprintf(ret, cap, "another vx");
	return pid ? (pid_t)strtol(pid + 5, NULL, 10) : 0;
}

/* Until the holder is gone, somebody cancels, or it is time to look again. */
static int wait_holder(pid_t pid, int cancel_fd)
{
	int pidfd = pid > 0 ? vx_pidfd_open(pid) : -1;
	struct pollfd p[2] = {{.fd = cancel_fd, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
	poll(p, 2, LOOK_AGAIN_MS);
	vx_close(pidfd);
	return cancel_fd >= 0 && p[0].revents ? -ECANCELED : 0;
}

int vx_workspace_lock(const char *root, int cancel_fd,
	void (*waiting)(void *arg, const char *holder), void *arg, int *ret_fd, struct vx_err *err)
{
	struct vx_err why;
	int dir = make_own_dir(root, &why);
	if (dir == -EROFS || dir == -EACCES || dir == -EPERM) {
		*ret_fd = -1; /* nothing here can be written, so nothing needs a turn */
		return 0;
	}
	if (dir < 0) {
		if (err)
			*err = why;
		return dir;
	}
	int fd = open_lock(dir);
	vx_close(dir);
	if (fd == -EROFS || fd == -EACCES || fd == -EPERM) {
		*ret_fd = -1;
		return 0;
	}
	if (fd == -EINVAL || fd == -ELOOP || fd == -EISDIR || fd == -ENXIO) {
		vx_err_set(err, fd, "%s/.vx/lock is not a plain file of vx's own", root);
		vx_err_fix(err, "remove it: vx makes it anew");
		return fd;
	}
	if (fd < 0)
		return vx_err_set(err, fd, "%s/.vx/lock: %s", root, vx_strerror(fd));
	bool told = false;
	while (flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (errno == EINTR)
			continue;
		int r = -errno;
		if (r != -EWOULDBLOCK) {
			vx_close(fd);
			return vx_err_set(err, r, "%s/.vx/lock: %s", root, vx_strerror(r));
		}
		char holder[128];
		pid_t pid = read_holder(fd, holder, sizeof holder);
		if (!told && waiting)
			waiting(arg, holder);
		told = true;
		if (wait_holder(pid, cancel_fd) < 0) {
			vx_close(fd);
			return vx_err_set(
				err, -ECANCELED, "interrupted while waiting for %s", holder);
		}
	}
	char text[64];
	int n = snprintf(text, sizeof text, "vx run (pid %d)\n", (int)getpid());
	if (ftruncate(fd, 0) < 0 || pwrite(fd, text, (size_t)n, 0) < 0) {
		/* a full disk: the lock holds, it only has no name */
	}
	*ret_fd = fd;
	return 0;
}
