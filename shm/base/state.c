#include "vx/state.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

int vx_state_open(int dirfd, const char *path, int flags, mode_t mode)
{
	struct open_how how = {
		.flags = (unsigned)(flags | O_CLOEXEC),
		.mode = flags & O_CREAT ? mode & 07777 : 0,
		.resolve = RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS,
	};
	long fd;

	if (!(flags & O_PATH)) /* openat2 refuses what does not belong to O_PATH */
		how.flags |= O_NONBLOCK | O_NOCTTY;
	do
		fd = syscall(SYS_openat2, dirfd, path, &how, sizeof how);
	while (fd < 0 && (errno == EINTR || errno == EAGAIN));
	return fd < 0 ? -errno : (int)fd;
}

bool vx_state_owner_ok(uid_t owner, int root_fd)
{
	struct stat st;

	return owner == geteuid() || owner == 0 || (fstat(root_fd, &st) == 0 && st.st_uid == owner);
}

static void ignore_all(int fd)
{
	int git = vx_open(fd, ".gitignore", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);

	if (git >= 0)
		vx_write_full(git, "*\n", 2);
	vx_close(git);
}

int vx_state_dir(int root_fd, bool make)
{
	struct stat st;

	if (make && mkdirat(root_fd, ".vx", 0777) < 0 && errno != EEXIST)
		return -errno;
	int fd = vx_state_open(root_fd, ".vx", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	int r = fstat(fd, &st) < 0 ? -errno : !vx_state_owner_ok(st.st_uid, root_fd) ? -EUCLEAN : 0;
	if (r < 0) {
		vx_close(fd);
		return r;
	}
	if (make)
		ignore_all(fd);
	return fd;
}

int vx_state_refuse(struct vx_err *err, int r, const char *dir)
{
	char path[VX_MAX_PATH];
	struct stat st;
	size_t n = strlen(dir);

	/* The first link, or what is no directory, on the way. */
	for (size_t i = 1; i <= n && n < sizeof path && r != -EUCLEAN; i++) {
		if (dir[i] && dir[i] != '/')
			continue;
		memcpy(path, dir, i);
		path[i] = '\0';
		if (lstat(path, &st) < 0 || S_ISDIR(st.st_mode))
			continue;
		if (S_ISLNK(st.st_mode))
			vx_err_set(err, r,
				"%s is a symbolic link, and vx follows none in what it keeps for itself",
				path);
		else
			vx_err_set(err, r, "%s is not a directory", path);
		vx_err_fix(err,
			"remove it (to keep the cache elsewhere name a directory with --cache-dir)");
		return r;
	}
	vx_err_set(err, r, "%s belongs to another user", dir);
	if (lstat(dir, &st) == 0)
		vx_err_set(err, r, "%s belongs to another user (uid %u)", dir, (unsigned)st.st_uid);
	vx_err_fix(err, "remove it, or give it to the user that runs vx with chown -R");
	return r;
}

/* ---- the secret ---- */

#define KEY_MAGIC "vx key 1"

/* The inode that the secret belongs to is part of the file. Whoever writes such a file beforehand
 * cannot know it: the kernel gives inode number and time of birth, in nanoseconds, when a clone or
 * an archive is unpacked. */
struct key_file {
	char magic[16];
	uint64_t ino, born_s;
	uint32_t born_ns, zero;
	struct vx_digest secret;
};

static int identity(int fd, struct key_file *k)
{
	struct statx st;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME | STATX_TYPE | STATX_UID, &st) < 0)
		return -errno;
	if (!(st.stx_mask & STATX_BTIME))
		return -EOPNOTSUPP;
	if (!S_ISREG(st.stx_mode) || (st.stx_uid != geteuid() && st.stx_uid != 0))
		return -ENOENT;
	*k = (struct key_file){.magic = KEY_MAGIC,
		.ino = st.stx_ino,
		.born_s = (uint64_t)st.stx_btime.tv_sec,
		.born_ns = st.stx_btime.tv_nsec};
	return 0;
}

static int read_key(int vx_fd, struct vx_digest *ret)
{
	struct key_file is, want;
	VX_CLEANUP_FD int fd = vx_state_open(vx_fd, "key", O_RDONLY, 0);
	int r = fd < 0 ? fd : identity(fd, &want);

	if (r < 0)
		return r == -ELOOP || r == -EACCES ? -ENOENT : r;
	if (vx_read_full(fd, &is, sizeof is) != (ssize_t)sizeof is)
		return -ENOENT;
	want.secret = is.secret;
	if (memcmp(&is, &want, sizeof is) != 0)
		return -ENOENT;
	*ret = is.secret;
	return 0;
}

/* Made beside and renamed: of two that make one at once the last one's stays, and what the other
 * has bound is believed by nobody. */
static int make_key(int vx_fd, struct vx_digest *ret)
{
	struct key_file k;
	char tmp[32];

	snprintf(tmp, sizeof tmp, "key.%d", (int)getpid());
	unlinkat(vx_fd, tmp, 0);
	VX_CLEANUP_FD int fd = vx_open(vx_fd, tmp, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	int r = fd < 0 ? fd : identity(fd, &k);
	if (r == 0 && getrandom(&k.secret, sizeof k.secret, 0) != (ssize_t)sizeof k.secret)
		r = -EIO;
	if (r == 0)
		r = vx_write_full(fd, &k, sizeof k);
	if (r == 0 && renameat(vx_fd, tmp, vx_fd, "key") < 0)
		r = -errno;
	if (r < 0 && fd >= 0)
		unlinkat(vx_fd, tmp, 0);
	else if (r == 0)
		*ret = k.secret;
	return r;
}

int vx_state_key(int vx_fd, bool make, struct vx_digest *ret)
{
	int r = read_key(vx_fd, ret);

	return r == -ENOENT && make ? make_key(vx_fd, ret) : r;
}

int vx_state_bind(const char *root, bool make, struct vx_digest *d)
{
	struct vx_digest key;
	VX_CLEANUP_FD int root_fd = vx_open(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
	VX_CLEANUP_FD int fd = root_fd < 0 ? root_fd : vx_state_dir(root_fd, false);
	int r = fd < 0 ? fd : vx_state_key(fd, make, &key);

	if (r == 0)
		vx_hmac_sha256(&key, sizeof key, d, sizeof *d, d);
	return r;
}
