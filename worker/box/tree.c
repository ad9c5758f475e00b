/* The tree builder: mounts by descriptor, with the mount API of Linux 5.2 and mount_setattr(2) of
 * 5.12. */
#include "tree.h"

#include "vx/assert.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define PLAIN (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV)
#define SYS_OPEN_TREE_ATTR 467 /* the same on every architecture; newer than the headers */

struct build {
	struct tree_base *b;
	const struct vx_sbx_request *r;
	struct vx_err *err;
	int root_fd; /* of the task's namespace */
	/* our file systems: the only places where a mount point may be made */
	dev_t own[TREE_MAX_TMPFS];
	int seal_fd[TREE_MAX_TMPFS]; /* those that become read-only in the end */
	/* where the last mount point was made, -1: one of many in a row is made without walking
	 * there again */
	int dir_fd;
	char dir[VX_MAX_PATH];
	uint32_t n_own, n_seal;
	bool shown; /* the skeleton stands */
};

static int fail(struct vx_err *err, int r, const char *what, const char *path)
{
	return vx_err_set(err, r, "sandbox: cannot %s %s: %s", what, path, vx_strerror(r));
}

static int set_attr(int fd, uint64_t set, bool recursive)
{
	struct mount_attr a = {.attr_set = set};

	return mount_setattr(fd, "", AT_EMPTY_PATH | (recursive ? AT_RECURSIVE : 0), &a, sizeof a) <
			       0
		       ? -errno
		       : 0;
}

/* A detached copy of what is mounted at an open path. Always recursive: the kernel refuses to
 * uncover what its owner covered. */
static int clone_mount(int fd)
{
	int m = open_tree(
		fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);

	return m < 0 ? -errno : m;
}

/* A detached copy of `name` in dir_fd, or of dir_fd itself where name is "", with attributes. A
 * link is copied as what it is: it fits no directory. One call with open_tree_attr(2) of Linux
 * 6.15, two before. */
static int clone_with(int dir_fd, const char *name, uint64_t set)
{
	static bool two_calls;
	unsigned flags = (*name ? AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT : AT_EMPTY_PATH) |
			 OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
	struct mount_attr a = {.attr_set = set};
	long m = two_calls ? -1 : syscall(SYS_OPEN_TREE_ATTR, dir_fd, name, flags, &a, sizeof a);

	if (m >= 0)
		return (int)m;
	if (!two_calls && errno != ENOSYS && errno != EPERM && errno != EINVAL)
		return -errno;
	m = open_tree(dir_fd, name, flags);
	int r = m < 0 ? -errno : set_attr((int)m, set, true);
	if (r == 0)
		two_calls = true; /* what the first way could not do this way can */
	else if (m >= 0)
		vx_close((int)m);
	return r < 0 ? r : (int)m;
}

static int attach(int mount_fd, int target_fd)
{
	return move_mount(mount_fd, "", target_fd, "",
		       MOVE_MOUNT_F_EMPTY_PATH | MOVE_MOUNT_T_EMPTY_PATH) < 0
		       ? -errno
		       : 0;
}

static int new_tmpfs(mode_t mode)
{
	char text[16];
	int r = 0, m = -1, fs = fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs < 0)
		return -errno;
	snprintf(text, sizeof text, "%o", (unsigned)mode);
	if (fsconfig(fs, FSCONFIG_SET_STRING, "mode", text, 0) < 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		r = -errno;
	else if ((m = fsmount(fs, FSMOUNT_CLOEXEC, PLAIN)) < 0)
		r = -errno;
	vx_close(fs);
	return r < 0 ? r : m;
}

/* ---- the base ---- */

static const char *const scratch_places[] = {
	"/mnt", "/media", "/srv", "/var/tmp", "/tmp", "/home", "/run"};

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
		snprintf(b->base_path, sizeof b->base_path, "%s/base", b->scratch);
		static const char *const dirs[] = {"host", "base", "empty"};
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
	return vx_err_set(err, -ENOENT,
		"sandbox: none of /mnt, /media, /srv, /var/tmp, /tmp, /home, /run is a directory to build in");
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

static const char *const dev_nodes[] = {"null", "zero", "full", "random", "urandom", "tty"};
static const char *const dev_links[][2] = {{"/proc/self/fd", "fd"}, {"/proc/self/fd/0", "stdin"},
	{"/proc/self/fd/1", "stdout"}, {"/proc/self/fd/2", "stderr"}, {"pts/ptmx", "ptmx"}};

/* A detached copy of a device, or of a directory of devices, below `dir_fd`. */
static int clone_device(int dir_fd, const char *path)
{
	int src = vx_open_beneath(dir_fd, path, O_PATH | O_NOFOLLOW, 0),
	    m = src < 0 ? src : clone_mount(src);
	int r = m < 0 ? m : set_attr(m, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC, true);

	vx_close(src);
	if (r < 0 && m >= 0)
		vx_close(m);
	return r < 0 ? r : m;
}

static int new_devpts(int dev_fd)
{
	int r = 0, m = -1, fs = fsopen("devpts", FSOPEN_CLOEXEC);

	if (fs < 0)
		return -errno;
	if (fsconfig(fs, FSCONFIG_SET_STRING, "ptmxmode", "0666", 0) < 0 ||
		fsconfig(fs, FSCONFIG_SET_STRING, "mode", "620", 0) < 0 ||
		fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0 ||
		(m = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC)) < 0)
		r = -errno;
	if (r == 0)
		r = attach_at(m, dev_fd, "pts");
	vx_close(m);
	vx_close(fs);
	return r;
}

/* A /dev with the harmless nodes, taken from `nodes_dir`/dev of the namespace we are in, on /dev
 * below root_fd. Returns its tmpfs, still writable. */
static int new_dev(int root_fd, int nodes_dir, struct vx_err *err)
{
	int node[VX_ARRAY_LEN(dev_nodes)], m = new_tmpfs(0755), r = m;
	const char *at = "/dev";
	char path[32];

	/* before the new one covers them */
	for (size_t i = 0; i < VX_ARRAY_LEN(dev_nodes); i++) {
		snprintf(path, sizeof path, "dev/%s", dev_nodes[i]);
		node[i] = r < 0 ? -1 : clone_device(nodes_dir, path);
		if (r >= 0 && node[i] < 0)
			r = node[i], at = dev_nodes[i];
	}
	if (r >= 0)
		r = attach_at(m, root_fd, "dev");
	for (size_t i = 0; i < VX_ARRAY_LEN(dev_nodes); i++) {
		if (r >= 0)
			r = mknodat(m, at = dev_nodes[i], S_IFREG | 0666, 0) < 0
				    ? -errno
				    : attach_at(node[i], m, dev_nodes[i]);
		vx_close(node[i]);
	}
	for (size_t i = 0; i < VX_ARRAY_LEN(dev_links) && r >= 0; i++)
		if (symlinkat(dev_links[i][0], m, at = dev_links[i][1]) < 0)
			r = -errno;
	if (r >= 0 && (mkdirat(m, at = "shm", 0755) < 0 || mkdirat(m, at = "pts", 0755) < 0))
		r = -errno;
	if (r >= 0)
		return m;
	vx_close(m);
	return fail(err, r, "make the device", at);
}

int tree_base_open(struct tree_base *b, struct vx_err *err)
{
	int r, host = -1, base = -1;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return fail(err, -errno, "keep mounts private below", "/");
	/* Both copies are taken before SCRATCH covers anything. */
	host = open_tree(AT_FDCWD, "/", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	base = host < 0 ? -1
			: open_tree(AT_FDCWD, "/",
				  OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE);
	r = base < 0 ? fail(err, -errno, "copy the mounts of", "/")
		     : set_attr(base, PLAIN | MOUNT_ATTR_RDONLY, true);
	if (r < 0 && base >= 0)
		fail(err, r, "make a read-only copy of", "/");
	if (r == 0)
		r = make_scratch(b, err);
	if (r == 0 && ((r = attach_at(host, b->scratch_fd, "host")) < 0 ||
			      (r = attach_at(base, b->scratch_fd, "base")) < 0))
		fail(err, r, "attach the mounts below", b->scratch);
	b->host_fd = host;
	b->base_fd = base;
	if (r < 0)
		return r;
	b->own_ns_fd = vx_open(AT_FDCWD, "/proc/self/ns/mnt", O_RDONLY, 0);
	if (b->own_ns_fd < 0)
		return fail(err, b->own_ns_fd, "open", "/proc/self/ns/mnt");
	int dev = new_dev(base, host, err);
	r = dev < 0 ? dev : set_attr(dev, MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC, false);
	vx_close(dev);
	return r;
}

/* ---- one tree ---- */

/* A file system of ours in the tree; one to be sealed is kept by `seal_fd`. */
static int remember(struct build *c, int mount_fd, int seal_fd)
{
	struct stat st;

	if (fstat(mount_fd, &st) < 0)
		return -errno;
	if (c->n_own >= TREE_MAX_TMPFS)
		return -E2BIG;
	c->own[c->n_own++] = st.st_dev;
	if (seal_fd >= 0)
		c->seal_fd[c->n_seal++] = seal_fd;
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

static int make_point(int dir_fd, const char *name, bool is_dir)
{
	int r = is_dir ? mkdirat(dir_fd, name, 0755) : mknodat(dir_fd, name, S_IFREG | 0444, 0);

	return r < 0 && errno != EEXIST ? -errno : 0;
}

/* Opens `path` (absolute) in the tree; what is missing is made, but only in file systems of our
 * own: never on the host. */
static int open_target(struct build *c, const char *path, bool is_dir)
{
	char dir[VX_MAX_PATH];
	const char *slash = strrchr(path, '/');
	int fd = path[1] ? vx_open_beneath(c->root_fd, path + 1, O_PATH | O_NOFOLLOW, 0)
			 : fcntl(c->root_fd, F_DUPFD_CLOEXEC, 3);

	if (fd != -ENOENT)
		return fd;
	snprintf(dir, sizeof dir, "%.*s", slash == path ? 1 : (int)(slash - path), path);
	int parent = open_target(c, dir, true);
	if (parent < 0)
		return parent;
	int r = is_own(c, parent) ? make_point(parent, slash + 1, is_dir) : -ENOENT;
	if (r == 0)
		r = vx_open_beneath(parent, slash + 1, O_PATH | O_NOFOLLOW, 0);
	vx_close(parent);
	return r;
}

static void forget_source(struct tree *t)
{
	if (t->source_dir[0])
		vx_close(t->source_fd);
	t->source_dir[0] = '\0';
}

/* A directory, by its name in the one that holds it. */
static int bind_directory(struct tree_base *b, struct tree *t, const char *path, uint64_t attr)
{
	const char *slash = strrchr(path, '/');
	size_t n = (size_t)(slash - path);

	if (n == 0 || n >= sizeof t->source_dir)
		return -EINVAL;
	if (strncmp(t->source_dir, path, n) != 0 || t->source_dir[n]) {
		forget_source(t);
		char dir[VX_MAX_PATH];
		snprintf(dir, sizeof dir, "%.*s", (int)n, path);
		t->source_fd =
			vx_open_beneath(b->host_fd, dir + 1, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0);
		if (t->source_fd < 0)
			return t->source_fd;
		memcpy(t->source_dir, dir, n + 1);
	}
	return clone_with(t->source_fd, slash + 1, attr);
}

static int prepare_bind(struct tree_base *b, struct tree *t, const struct vx_mount *m)
{
	uint64_t attr = PLAIN | (m->writable ? 0 : MOUNT_ATTR_RDONLY);
	struct stat st;

	if (m->source_is_dir && strrchr(m->source, '/') != m->source)
		return bind_directory(b, t, m->source, attr);
	int src = vx_open_beneath(b->host_fd, m->source + 1, O_PATH | O_NOFOLLOW, 0);
	if (src < 0)
		return src;
	int r = fstat(src, &st) < 0                       ? -errno
		: S_ISDIR(st.st_mode) != m->source_is_dir ? -ESTALE
							  : clone_with(src, "", attr);
	vx_close(src);
	return r;
}

/* A directory that is hidden, but that later mounts need, is a tmpfs of its own. */
static bool holds_later(const struct vx_sbx_request *r, uint32_t i)
{
	for (uint32_t k = i + 1; k < r->n_mounts; k++)
		if (vx_path_within(r->mounts[k].target, r->mounts[i].target))
			return true;
	return false;
}

static bool is_tmpfs(const struct vx_sbx_request *r, uint32_t i)
{
	return r->mounts[i].kind == VX_MNT_TMPFS ||
	       (r->mounts[i].kind == VX_MNT_HIDE_DIR && holds_later(r, i));
}

static int prepare_one(struct tree_base *b, struct tree *t, uint32_t i)
{
	const struct vx_sbx_request *r = t->r;
	const struct vx_mount *m = &r->mounts[i];

	if (is_tmpfs(r, i))
		return new_tmpfs(m->mode);
	if (m->kind == VX_MNT_BIND)
		return prepare_bind(b, t, m);
	if (m->kind == VX_MNT_DEVICE)
		return clone_device(b->host_fd, m->source + 1);
	/* hidden: an empty directory or an unreadable file */
	int src = vx_open(b->scratch_fd, m->kind == VX_MNT_HIDE_DIR ? "empty" : "none", O_PATH, 0),
	    fd = src < 0 ? src : clone_mount(src);
	int res = fd < 0 ? fd : set_attr(fd, PLAIN | MOUNT_ATTR_RDONLY, false);
	vx_close(src);
	if (res < 0 && fd >= 0)
		vx_close(fd);
	return res < 0 ? res : fd;
}

static int fail_mount(struct vx_err *err, int r, const struct vx_mount *m)
{
	const char *why = r == -ELOOP || r == -ESTALE || r == -ENOENT || r == -ENOTDIR
				  ? "it was replaced while the sandbox was built"
				  : vx_strerror(r);

	return vx_err_set(err, r, "sandbox: cannot bind %s%s%s%s: %s", m->target,
		m->grant ? " for \"" : "", m->grant ? m->grant : "", m->grant ? "\"" : "", why);
}

void tree_forget(struct tree *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		vx_close(t->fd[i]);
	t->n = 0;
	forget_source(t);
}

/* The batch that begins at t->first. */
static int prepare(struct tree_base *b, struct tree *t, struct vx_err *err)
{
	for (t->n = 0; t->n < TREE_BATCH && t->first + t->n < t->r->n_mounts; t->n++) {
		int fd = prepare_one(b, t, t->first + t->n);
		if (fd < 0) {
			tree_forget(t);
			return fail_mount(err, fd, &t->r->mounts[t->first + t->n]);
		}
		t->fd[t->n] = fd;
	}
	return 0;
}

int tree_prepare(
	struct tree_base *b, const struct vx_sbx_request *r, struct tree *t, struct vx_err *err)
{
	t->r = r;
	t->first = 0;
	return prepare(b, t, err);
}

/* As open_target, and attaches; a directory of ours in which mount points are made is kept open for
 * the next. */
static int attach_point(struct build *c, int mount_fd, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	size_t n = (size_t)(slash - path);

	if (n && c->dir_fd >= 0 && !strncmp(c->dir, path, n) && !c->dir[n]) {
		int r = make_point(c->dir_fd, slash + 1, is_dir);
		return r < 0 ? r
		       : move_mount(mount_fd, "", c->dir_fd, slash + 1, MOVE_MOUNT_F_EMPTY_PATH) < 0
			       ? -errno
			       : 0;
	}
	int target = open_target(c, path, is_dir),
	    r = target < 0 ? target : attach(mount_fd, target);
	vx_close(target);
	if (target < 0 || !n)
		return r;
	c->dir_fd = vx_close(c->dir_fd);
	snprintf(c->dir, sizeof c->dir, "%.*s", (int)n, path);
	int fd = vx_open_beneath(c->root_fd, c->dir + 1, O_PATH | O_NOFOLLOW, 0);
	if (fd >= 0 && is_own(c, fd))
		c->dir_fd = fd;
	else if (fd >= 0)
		vx_close(fd);
	return r;
}

static int attach_in(struct build *c, int mount_fd, uint32_t i)
{
	const struct vx_mount *m = &c->r->mounts[i];
	int seal = -1, r = attach_point(c, mount_fd, m->target, m->source_is_dir);

	if (c->dir_fd >= 0 &&
		vx_path_within(
			c->dir, m->target)) /* covered now: what is made next belongs on top */
		c->dir_fd = vx_close(c->dir_fd);
	if (r == 0 && is_tmpfs(c->r, i)) {
		if (!m->writable)
			r = seal = fcntl(mount_fd, F_DUPFD_CLOEXEC, 3);
		if (r >= 0)
			r = remember(c, mount_fd, seal);
		if (r < 0)
			vx_close(seal);
	}
	return r;
}

/* Directories and links that lead to grants. They stand in the wall, or in the private /tmp, before
 * anything is mounted there. */
static int do_skeleton(struct build *c)
{
	char dir[VX_MAX_PATH];

	for (uint32_t i = 0; i < c->r->n_skeleton; i++) {
		const struct vx_skeleton *k = &c->r->skeleton[i];
		const char *slash = strrchr(k->path, '/');
		int r, parent;

		snprintf(dir, sizeof dir, "%.*s",
			k->link_target ? (int)(slash - k->path) : (int)strlen(k->path), k->path);
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

static bool own_dev(const struct vx_sbx_request *r)
{
	for (uint32_t i = 0; i < r->n_mounts; i++)
		if (r->mounts[i].kind == VX_MNT_DEVICE)
			return true;
	return r->pty;
}

/* Devices and a terminal go into a /dev of the task's own: nothing of them is left for the next. */
static int renew_dev(struct build *c)
{
	int m = new_dev(c->root_fd, c->root_fd, c->err), r = m;

	if (r >= 0 && c->r->pty)
		r = new_devpts(m);
	if (r >= 0)
		r = remember(c, m, m);
	if (r < 0 && m >= 0) {
		vx_close(m);
		fail(c->err, r, "make a terminal in", "/dev");
	}
	return r;
}

/* In the task's namespace: the batch at hand, in order. */
static int attach_batch(struct build *c, const struct tree *t)
{
	for (uint32_t i = t->first; i < t->first + t->n; i++) {
		const struct vx_mount *m = &c->r->mounts[i];

		if (!c->shown && m->why != VX_WHY_BASE && m->why != VX_WHY_WALL &&
			m->why != VX_WHY_SOCKET) {
			int r = do_skeleton(c);
			if (r < 0)
				return r;
			c->shown = true;
		}
		int r = attach_in(c, t->fd[i - t->first], i);
		if (r < 0)
			return fail_mount(c->err, r, m);
	}
	return 0;
}

static int finish(struct build *c)
{
	int r = c->shown ? 0 : do_skeleton(c);

	for (uint32_t i = 0; i < c->n_seal && r == 0; i++)
		if ((r = set_attr(c->seal_fd[i], MOUNT_ATTR_RDONLY, false)) < 0)
			fail(c->err, r, "make the wall read-only at", c->r->wall);
	return r;
}

/* One visit to the task's namespace. */
static int visit(struct build *c, const struct tree *t, int pidfd, bool last)
{
	int r = setns(pidfd, CLONE_NEWNS) < 0 ? -errno : 0;

	if (r < 0)
		return fail(c->err, r, "enter", "the task's mount namespace");
	c->root_fd = r = vx_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	if (r < 0)
		fail(c->err, r, "open", "the task's root");
	if (r >= 0 && t->first == 0 && own_dev(c->r))
		r = renew_dev(c);
	if (r >= 0)
		r = attach_batch(c, t);
	if (r >= 0 && last)
		r = finish(c);
	c->root_fd = vx_close(c->root_fd);
	c->dir_fd = vx_close(c->dir_fd);
	if (setns(c->b->own_ns_fd, CLONE_NEWNS) < 0)
		/* where we are is no place to go on from: the attempt is lost, and our worker makes
		 * a new host */
		_exit(1);
	return r < 0 ? r : 0;
}

int tree_attach(struct tree_base *b, struct tree *t, pid_t pid, struct vx_err *err)
{
	struct build c = {.b = b, .r = t->r, .err = err, .root_fd = -1, .dir_fd = -1};
	int pidfd = vx_pidfd_open(pid), r = pidfd < 0 ? fail(err, pidfd, "find", "vx-init") : 0;
	bool last = false;

	while (r == 0 && !last) {
		last = t->first + t->n >= t->r->n_mounts;
		r = visit(&c, t, pidfd, last);
		tree_forget(t);
		t->first += TREE_BATCH;
		if (r == 0 && !last)
			r = prepare(b, t, err);
	}
	tree_forget(t);
	for (uint32_t i = 0; i < c.n_seal; i++)
		vx_close(c.seal_fd[i]);
	vx_close(pidfd);
	return r;
}
