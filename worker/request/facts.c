/* The resolver's facts from the file system that this process sees. */
#include "denies.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/sandbox.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FACT_FILE_BYTES 4096 /* a worktree's .git, a commondir */

static int real_lstat(
	void *self, const char *path, enum vx_fact_type *ret_type, uid_t *ret_uid, mode_t *ret_mode)
{
	struct stat st;

	(void)self;
	if (lstat(path, &st) < 0) {
		if (errno != ENOENT && errno != ENOTDIR)
			return -errno;
		*ret_type = VX_FACT_NONE;
		return 0;
	}
	*ret_type = S_ISREG(st.st_mode)   ? VX_FACT_FILE
		    : S_ISDIR(st.st_mode) ? VX_FACT_DIR
		    : S_ISLNK(st.st_mode) ? VX_FACT_LINK
					  : VX_FACT_OTHER;
	*ret_uid = st.st_uid;
	*ret_mode = st.st_mode & 07777;
	return 0;
}

static int real_list(void *self, const char *dir, struct vx_arena *a, struct vx_strs *ret)
{
	struct vx_strlist names = {0};
	int fd = vx_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0), r = 0;
	struct dirent *e;

	(void)self;
	if (fd < 0)
		return fd;
	DIR *d = fdopendir(fd);
	if (!d) {
		r = -errno;
		vx_close(fd);
		return r;
	}
	for (errno = 0; (e = readdir(d)); errno = 0)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			vx_strlist_add(&names, a, vx_arena_strdup(a, e->d_name));
	r = -errno;
	closedir(d);
	if (r == 0)
		*ret = vx_strlist_done(&names);
	return r;
}

static int real_readlink(void *self, const char *path, struct vx_arena *a, char **ret)
{
	char buf[VX_MAX_PATH];
	int n = vx_readlink(AT_FDCWD, path, buf, sizeof buf);

	(void)self;
	if (n < 0)
		return n;
	*ret = vx_arena_strndup(a, buf, (size_t)n);
	return 0;
}

static int real_readfile(void *self, const char *path, struct vx_arena *a, char **ret)
{
	struct vx_buf b = VX_BUF(FACT_FILE_BYTES);
	int r = vx_read_file(AT_FDCWD, path, &b);

	(void)self;
	if (r >= 0 && memchr(vx_buf_str(&b), 0, b.len))
		r = -EINVAL;
	if (r >= 0)
		*ret = vx_arena_strndup(a, vx_buf_str(&b), b.len);
	vx_buf_free(&b);
	return r < 0 ? r : 0;
}

static int real_walk(void *self, const char *dir,
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
	void *arg)
{
	(void)self;
	return deny_walk(dir, look, arg);
}

/* Asked once per process: the answer may come over the network. */
static const char *passwd_home(void)
{
	static const char *home;

	if (!home) {
		struct passwd *pw = getpwuid(geteuid());
		home = vx_xstrdup(pw && pw->pw_dir ? pw->pw_dir : "");
	}
	return home;
}

struct vx_sbx_facts vx_sbx_real_facts(void)
{
	return (struct vx_sbx_facts){.lstat = real_lstat,
		.list = real_list,
		.readlink = real_readlink,
		.readfile = real_readfile,
		.walk = real_walk,
		.uid = geteuid(),
		.pw_home = passwd_home()};
}
