/* The tree builder: mounts by descriptor, with the mount API of Linux 5.2 and mount_setattr(2) of 5.12. */
#include "tree.h"

#include "vx/assert.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PLAIN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)

struct build {
	struct tree_base *b;
	const struct vx_sbx_request *r;
	struct vx_err *err;
	int root_fd;                 /* of the tree */
	dev_t own[TREE_MAX_TMPFS];   /* our file systems: the only places where a mount point may be made */
	int seal_fd[TREE_MAX_TMPFS]; /* those that become read-only in the end */
	uint32_t n_own, n_seal;
};

static int fail(struct vx_err *err, int r, const char *what, const char *path)
{
	return vx_err_set(err, r, "sandbox: cannot %s %s: %s", what, path, vx_strerror(r));
}

static int set_attr(int fd, uint64_t set, bool recursive)
{
	struct mount_attr a = {.attr_set = set};

	return mount_setattr(fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &a, sizeof a) < 0 ? -errno : 0;
}

/* A detached copy of what is mounted at an open path. Always recursive: the kernel refuses to uncover what its owner covered. */
static int clone_mount(int fd)
{
	int m = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return m < 0 ? -errno : m;
}

static int attach(int mount_fd, int target_fd)
{
	return move_mount(mount_fd, "", target_fd, "", MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0 ? -errno : 0;
}

static int new_tmpfs(mode_t mode)
{
	char text[16];
	int r = 0, m = -1, fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0)
		return -errno;
	snprintf(text, sizeof text, "%o", (unsigned)mode);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "mode", text, 0) < 0 || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	else if ((m = fsmount(fs, FSMOUNT_CLOEXEC, PLAIN)) < 0)
		r = -errno;
	vx_close(fs);
	return r < 0 ? r : m;
}

/* ---- the base ---- */

static const char *const scratch_places[] = {"/mnt", "/media", "/srv", "/var/tmp", "/tmp", "/home", "/run"};

static int make_scratch(struct tree_base *b, struct vx_err *err)
{
	int m = new_tmpfs(0755);

	if (m < 0)
		return fail(err, m, "mount a", "tmpfs");
	for (size_t i = 0; i < VX_ARRAY_LEN(scratch_places); i++) {
		struct stat st;
		if (lstat(scratch_places[i], &st) < 0 || !S_ISDIR(st.st_mode))
			continue;
		if (move_mount(m, "", AT_FDCWD, scratch_places[i], MOVE_MOUNT_F_EMPTY_PATH) < 0)
			continue;
		b->scratch = scratch_places[i];
		b->scratch_fd = m;
		snprintf(b->tree_path, sizeof b->tree_path, "%s/t", b->scratch);
		static const char *const dirs[] = {"host", "base", "t", "empty"};
		for (size_t k = 0; k < VX_ARRAY_LEN(dirs); k++)
			if (mkdirat(m, dirs[k], 0755) < 0)
				return fail(err, -errno, "make a directory in", b->scratch);
		int none = vx_open(m, "none", O_CREAT | O_EXCL | O_WRONLY, 0);
		if (none < 0)
			return fail(err, none, "make a file in", b->scratch);
		vx_close(none);
		return 0;
	}
	vx_close(m);
	return vx_err_set(err, -ENOENT, "sandbox: none of /mnt, /media, /srv, /var/tmp, /tmp, /home, /run is a directory to build in");
}

static int attach_at(int mount_fd, int dir_fd, const char *name)
{
	int t = vx_open(dir_fd, name, O_PATH | O_NOFOLLOW, 0);

	if (t < 0)
		return t;
	int r = attach(mount_fd, t);
	vx_close(t);
	return r;
}

static int bind_device(struct tree_base *b, int dev_fd, const char *rel, bool is_dir)
{
	char host[VX_MAX_PATH];
	int r = 0, src, m = -1;

	snprintf(host, sizeof host, "dev/%s", rel);
	src = vx_open_beneath(b->host_fd, host, O_PATH, 0);
	if (src < 0)
		return src;
	for (const char *s = strchr(rel, '/'); s && r == 0; s = strchr(s + 1, '/')) { /* its directories in our /dev */
		char dir[VX_MAX_PATH];
		snprintf(dir, sizeof dir, "%.*s", (int)(s - rel), rel);
		if (mkdirat(dev_fd, dir, 0755) < 0 && errno != EEXIST)
			r = -errno;
	}
	if (r == 0 && (is_dir ? mkdirat(dev_fd, rel, 0755) : mknodat(dev_fd, rel, S_IFREG | 0666, 0)) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = m = clone_mount(src);
	if (r >= 0)
		r = set_attr(m, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, true);
	if (r >= 0)
		r = attach_at(m, dev_fd, rel);
	vx_close(m);
	vx_close(src);
	return r;
}

static int new_devpts(int dev_fd)
{
	int r = 0, m = -1, fs = fsopen("devpts", FSOPEN_CLOEXEC);

	if (fs < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "620", 0) < 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 || (m = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)) < 0)
		r = -errno;
	if (r == 0)
		r = attach_at(m, dev_fd, "pts");
	vx_close(m);
	vx_close(fs);
	return r;
}

/* A /dev with the harmless nodes, and with what `r` asks for (NULL: nothing), on `dev` of the tree whose root is root_fd. */
static int make_dev(struct tree_base *b, int root_fd, const struct vx_sbx_request *r, struct vx_err *err)
{
	static const char *const nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
	static const char *const links[][2] = {{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"}, {"/proc/self/fd/1", "stdout"},
		{"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}};
	int m = new_tmpfs(0755), res = m;
	const char *at = "/dev";

	if (m < 0)
		return fail(err, m, "mount a tmpfs for", at);
	res = attach_at(m, root_fd, "dev");
	for (size_t i = 0; i < VX_ARRAY_LEN(nodes) && res >= 0; i++)
		res = bind_device(b, m, at = nodes[i], false);
	for (size_t i = 0; i < VX_ARRAY_LEN(links) && res >= 0; i++)
		if (symlinkat(links[i][0], m, at = links[i][1]) < 0)
			res = -errno;
	if (res >= 0 && (mkdirat(m, at = "shm", 0755) < 0 || mkdirat(m, at = "pts", 0755) < 0))
		res = -errno;
	if (res >= 0 && r && r->pty)
		res = new_devpts(m);
	for (uint32_t i = 0; r && i < r->n_mounts && res >= 0; i++)
		if (r->mounts[i].kind == VX_MNT_DEVICE)
			res = bind_device(b, m, vx_path_below(at = r->mounts[i].source, "/dev"), r->mounts[i].source_is_dir);
	if (res >= 0)
		res = set_attr(m, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, false);
	vx_close(m);
	return res < 0 ? fail(err, res, "make the device", at) : 0;
}

int tree_base_open(struct tree_base *b, struct vx_err *err)
{
	int r, host = -1, base = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail(err, -errno, "keep mounts private below", "/");
	/* Both copies are taken before SCRATCH covers anything. */
	host = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	base = host < 0 ? -1 : open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	r = base < 0 ? fail(err, -errno, "copy the mounts of", "/") : set_attr(base, PLAIN | MOUNT_ATTR_RDONLY, true);
	if (r < 0 && base >= 0)
		fail(err, r, "make a read-only copy of", "/");
	if (r == 0)
		r = make_scratch(b, err);
	if (r == 0 && ((r = attach_at(host, b->scratch_fd, "host")) < 0 || (r = attach_at(base, b->scratch_fd, "base")) < 0))
		fail(err, r, "attach the mounts below", b->scratch);
	b->host_fd = host;
	b->base_fd = base;
	return r < 0 ? r : make_dev(b, base, NULL, err);
}

/* ---- one tree ---- */

static int remember(struct build *c, int mount_fd, bool seal)
{
	struct stat st;

	if (fstat(mount_fd, &st) < 0)
		return -errno;
	if (c->n_own >= TREE_MAX_TMPFS)
		return -E2BIG;
	c->own[c->n_own++] = st.st_dev;
	if (seal)
		c->seal_fd[c->n_seal++] = mount_fd;
	return 0;
}

static bool is_own(const struct build *c, int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	for (uint32_t i = 0; i < c->n_own; i++)
		if (c->own[i] == st.st_dev)
			return true;
	return false;
}

/* Opens `path` (absolute) in the tree; what is missing is made, but only in file systems of our own: never on the host. */
static int open_target(struct build *c, const char *path, bool is_dir)
{
	char dir[VX_MAX_PATH];
	const char *slash = strrchr(path, '/');
	int fd = path[1] ? vx_open_beneath(c->root_fd, path + 1, O_PATH | O_NOFOLLOW, 0) : fcntl(c->root_fd, F_DUPFD_CLOEXEC, 3);

	if (fd != -ENOENT)
		return fd;
	snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	int parent = open_target(c, dir, true);
	if (parent < 0)
		return parent;
	int r = is_own(c, parent) ? 0 : -ENOENT;
	if (r == 0 && (is_dir ? mkdirat(parent, slash + 1, 0755) : mknodat(parent, slash + 1, S_IFREG | 0444, 0)) < 0 && errno != EEXIST)
		r = -errno;
	if (r == 0)
		r = vx_open_beneath(parent, slash + 1, O_PATH | O_NOFOLLOW, 0);
	vx_close(parent);
	return r;
}

static int attach_in(struct build *c, int mount_fd, const struct vx_mount *m)
{
	int t = open_target(c, m->target, m->source_is_dir);
	int r = t < 0 ? t : attach(mount_fd, t);

	vx_close(t);
	return r;
}

static int do_tmpfs(struct build *c, const struct vx_mount *m)
{
	int fd = new_tmpfs(m->mode);

	if (fd < 0)
		return fd;
	bool seal = !m->writable;
	int r = attach_in(c, fd, m);
	if (r == 0)
		r = remember(c, fd, seal);
	if (r < 0 || !seal)
		vx_close(fd);
	return r;
}

static int do_bind(struct build *c, const struct vx_mount *m)
{
	int fd = -1, r, src = vx_open_beneath(c->b->host_fd, m->source + 1, O_PATH | O_NOFOLLOW, 0);
	struct stat st;

	if (src < 0)
		return src;
	r = fstat(src, &st) < 0 ? -errno : 0;
	if (r == 0 && S_ISDIR(st.st_mode) != m->source_is_dir)
		r = -ESTALE; /* not what it was when the request was made */
	if (r == 0)
		r = fd = clone_mount(src);
	if (r >= 0)
		r = set_attr(fd, PLAIN | (m->writable ? 0 : MOUNT_ATTR_RDONLY), true);
	if (r >= 0)
		r = attach_in(c, fd, m);
	vx_close(fd);
	vx_close(src);
	return r;
}

/* An empty directory or an unreadable file over something. A directory that later mounts need is a tmpfs of its own. */
static int do_hide(struct build *c, uint32_t i)
{
	const struct vx_mount *m = &c->r->mounts[i];
	bool dir = m->kind == VX_MNT_HIDE_DIR;

	for (uint32_t k = i + 1; dir && k < c->r->n_mounts; k++)
		if (vx_path_within(c->r->mounts[k].target, m->target))
			return do_tmpfs(c, m);
	int src = vx_open(c->b->scratch_fd, dir ? "empty" : "none", O_PATH, 0);
	if (src < 0)
		return src;
	int fd = clone_mount(src), r = fd;
	if (r >= 0)
		r = set_attr(fd, PLAIN | MOUNT_ATTR_RDONLY, false);
	if (r >= 0)
		r = attach_in(c, fd, m);
	vx_close(fd);
	vx_close(src);
	return r;
}

/* Directories and links that lead to grants. They stand in the wall, or in the private /tmp, before anything is mounted there. */
static int do_skeleton(struct build *c)
{
	char dir[VX_MAX_PATH];

	for (uint32_t i = 0; i < c->r->n_skeleton; i++) {
		const struct vx_skeleton *k = &c->r->skeleton[i];
		const char *slash = strrchr(k->path, '/');
		int r, parent;

		snprintf(dir, sizeof dir, "%.*s", k->link_target ? (int)(slash - k->path) : (int)strlen(k->path), k->path);
		r = parent = open_target(c, dir, true);
		if (r >= 0 && k->link_target && !is_own(c, parent))
			r = -ENOENT;
		if (r >= 0 && k->link_target && symlinkat(k->link_target, parent, slash + 1) < 0)
			r = -errno;
		vx_close(parent);
		if (r < 0)
			return fail(c->err, r, "show", k->path);
	}
	return 0;
}

static int do_mounts(struct build *c)
{
	bool skeleton = false;

	for (uint32_t i = 0; i < c->r->n_mounts; i++) {
		const struct vx_mount *m = &c->r->mounts[i];
		int r = 0;

		if (!skeleton && m->why != VX_WHY_BASE && m->why != VX_WHY_WALL && m->why != VX_WHY_SOCKET) {
			skeleton = true;
			r = do_skeleton(c);
			if (r < 0)
				return r;
		}
		if (m->kind == VX_MNT_TMPFS)
			r = do_tmpfs(c, m);
		else if (m->kind == VX_MNT_BIND)
			r = do_bind(c, m);
		else if (m->kind != VX_MNT_DEVICE) /* those went into /dev when it was made */
			r = do_hide(c, i);
		if (r < 0)
			return vx_err_set(c->err, r, "sandbox: cannot bind %s%s%s%s: %s", m->target, m->grant ? " for \"" : "",
				m->grant ? m->grant : "", m->grant ? "\"" : "",
				r == -ELOOP || r == -ESTALE ? "it was replaced while the sandbox was built" : vx_strerror(r));
	}
	return skeleton ? 0 : do_skeleton(c);
}

static bool own_dev(const struct vx_sbx_request *r)
{
	for (uint32_t i = 0; i < r->n_mounts; i++)
		if (r->mounts[i].kind == VX_MNT_DEVICE)
			return true;
	return r->pty;
}

int tree_build(struct tree_base *b, const struct vx_sbx_request *r, struct vx_err *err)
{
	struct build c = {.b = b, .r = r, .err = err, .root_fd = -1};
	int res;

	vx_assert(!b->built);
	c.root_fd = clone_mount(b->base_fd);
	if (c.root_fd < 0)
		return fail(err, c.root_fd, "copy the mounts of", "/");
	res = attach_at(c.root_fd, b->scratch_fd, "t");
	if (res < 0)
		fail(err, res, "attach the tree at", b->tree_path);
	else
		b->built = true;
	if (res == 0 && own_dev(r))
		res = make_dev(b, c.root_fd, r, err);
	if (res == 0)
		res = do_mounts(&c);
	for (uint32_t i = 0; i < c.n_seal; i++) {
		int s = res == 0 ? set_attr(c.seal_fd[i], MOUNT_ATTR_RDONLY, false) : 0;
		if (s < 0)
			res = fail(err, s, "make the wall read-only at", r->wall);
		vx_close(c.seal_fd[i]);
	}
	vx_close(c.root_fd);
	if (res < 0)
		tree_drop(b);
	return res;
}

void tree_drop(struct tree_base *b)
{
	if (!b->built)
		return;
	umount2(b->tree_path, MNT_DETACH);
	b->built = false;
}
