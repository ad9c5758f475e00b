/* vx_rm_rf: removal that never follows a link and never enters a mount.
 *
 * Every level is opened relative to its parent's descriptor, so nobody who moves directories
 * meanwhile can lead it elsewhere. Descriptors are bounded: below HOIST_DEPTH levels a directory is
 * moved up to the top one and emptied from there. Directories without permission bits are given
 * them. What is mounted in the tree is left alone and makes the call fail with -EBUSY. */
#include "vx/assert.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HOIST_DEPTH = 64 };

struct removal {
	int top_fd;       /* the directory whose removal was asked for */
	unsigned hoisted; /* how many were moved up into it so far */
};

static int open_dir(int dirfd, const char *name)
{
	struct open_how how = {
		.flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC,
		.resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH,
	};
	long fd;

	do
		fd = syscall(SYS_openat2, dirfd, name, &how, sizeof how);
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	if (fd < 0)
		return errno == EXDEV ? -EBUSY : -errno;
	return (int)fd;
}

/* Gives the owner all rights on a directory that was named, not on what a link there points to. */
static int make_accessible(int dirfd, const char *name)
{
	VX_CLEANUP_FD int fd = vx_open(dirfd, name, O_PATH | O_NOFOLLOW | O_DIRECTORY, 0);
	char proc[64];

	if (fd < 0)
		return fd;
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", fd);
	return chmod(proc, 0700) < 0 ? -errno : 0;
}

static int remove_entry(struct removal *rm, int dirfd, const char *name, unsigned depth);

static int hoist(struct removal *rm, int dirfd, const char *name)
{
	char to[64];
	int r;

	do {
		snprintf(to, sizeof to, ".vx-rm-%d-%u", (int)getpid(), rm->hoisted++);
		r = renameat2(dirfd, name, rm->top_fd, to, RENAME_NOREPLACE) < 0 ? -errno : 0;
	} while (r == -EEXIST);
	return r;
}

/* Takes fd. One pass: what others add meanwhile makes the parent's rmdir fail with ENOTEMPTY, which
 * is retried there. */
static int empty_dir(struct removal *rm, int fd, unsigned depth)
{
	DIR *d = fdopendir(fd);
	int first = 0;

	if (!d) {
		int r = -errno;
		vx_close(fd);
		return r;
	}
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(d);
		if (!e) {
			if (errno && !first)
				first = -errno;
			break;
		}
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		int r = remove_entry(rm, dirfd(d), e->d_name, depth);
		if (r < 0 && !first)
			first = r;
	}
	closedir(d);
	return first;
}

static int remove_dir(struct removal *rm, int dirfd, const char *name, unsigned depth)
{
	int fd = open_dir(dirfd, name);

	if (fd == -EACCES && make_accessible(dirfd, name) == 0)
		fd = open_dir(dirfd, name);
	if (fd == -ENOENT)
		return 0;
	if (fd < 0)
		return fd;
	if (depth > HOIST_DEPTH) {
		vx_close(fd);
		return hoist(rm, dirfd, name);
	}

	struct stat st; /* entries of a directory that its owner may not write cannot be removed */
	if (fstat(fd, &st) == 0 && (st.st_mode & 0700) != 0700)
		fchmod(fd, 0700);
	if (depth == 0)
		rm->top_fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);

	int r = empty_dir(rm, fd, depth + 1);
	if (depth == 0)
		for (unsigned seen = 0; r == 0 && seen != rm->hoisted;) {
			seen = rm->hoisted;
			fd = open_dir(dirfd, name);
			r = fd < 0 ? fd : empty_dir(rm, fd, depth + 1);
		}
	return r;
}

static int remove_entry(struct removal *rm, int dirfd, const char *name, unsigned depth)
{
	if (unlinkat(dirfd, name, 0) == 0 || errno == ENOENT)
		return 0;
	if (errno != EISDIR && errno != EPERM) /* POSIX says EPERM for a directory, Linux EISDIR */
		return -errno;

	int not_a_file = -errno;
	for (int tries = 0;; tries++) {
		int r = remove_dir(rm, dirfd, name, depth);

		if (r < 0)
			return r == -ENOTDIR && not_a_file == -EPERM ? not_a_file : r;
		if (unlinkat(dirfd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
			return 0;
		/* Moved up just now and dealt with there, or filled again by a process that is
		 * being killed. */
		if (errno != ENOTEMPTY || tries == 10)
			return -errno;
	}
}

int vx_rm_rf(int dirfd, const char *path)
{
	struct removal rm = {.top_fd = -1};
	char text[VX_MAX_PATH];
	size_t n = strlen(path);

	while (n > 1 && path[n - 1] == '/')
		n--;
	if (n >= sizeof text)
		return -ENAMETOOLONG;
	memcpy(text, path, n);
	text[n] = '\0';

	char *slash = strrchr(text, '/');
	const char *base = slash ? slash + 1 : text;
	if (!*base || strcmp(base, ".") == 0 || strcmp(base, "..") == 0)
		return -EINVAL;

	VX_CLEANUP_FD int parent = -1;
	if (slash) {
		char first = *slash;

		*slash = '\0';
		parent = text[0] == '/' || dirfd == AT_FDCWD
				 ? vx_open(dirfd, slash == text ? "/" : text, O_PATH | O_DIRECTORY,
					   0)
				 : vx_open_beneath(dirfd, text, O_PATH | O_DIRECTORY, 0);
		*slash = first;
	} else {
		parent = vx_open(dirfd, ".", O_PATH | O_DIRECTORY, 0);
	}
	if (parent < 0)
		return parent == -ENOENT ? 0 : parent;

	int r = remove_entry(&rm, parent, base, 0);
	vx_close(rm.top_fd);
	return r;
}
