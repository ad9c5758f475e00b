/* The store: opening, probing, history, blobs. */
#include "store_int.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/path.h"
#include "vx/state.h"
#include "vx/strs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* f_type of file systems whose locks and mappings are not those of one machine: statfs(2). */
static const struct {
	unsigned long type;
	const char *name;
} network_fs[] = {{0x6969, "NFS"}, {0xFF534D42, "CIFS"}, {0xFE534D42, "SMB"}, {0x517B, "SMB"},
	{0x01021997, "9P"}, {0x00C36400, "Ceph"}, {0x5346414F, "AFS"}, {0x6B414653, "AFS"},
	{0x0BD00BD0, "Lustre"}, {0x7461636F, "OCFS2"}, {0x01161970, "GFS2"}, {0x73757245, "Coda"},
	{0x47504653, "GPFS"}, {0x19830326, "BeeGFS"}};

void vx_artifact_path(const struct vx_digest *d, const char *suffix, char ret[VX_ARTIFACT_PATH])
{
	char hex[VX_DIGEST_HEX];
	vx_hex(d->b, 32, hex);
	snprintf(ret, VX_ARTIFACT_PATH, "%.2s/%s%s", hex, hex, suffix);
}

int vx_artifact_dir(const struct vx_store *s, const char *path, const char **ret_name)
{
	char dir[VX_ARTIFACT_PATH];
	const char *slash = strchr(path, '/');
	*ret_name = slash + 1;
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - path), path);
	return vx_open_beneath(s->a_fd, dir, O_PATH | O_DIRECTORY, 0);
}

int vx_artifact_unlink(const struct vx_store *s, const char *path)
{
	const char *name;
	VX_CLEANUP_FD int dir = vx_artifact_dir(s, path, &name);
	return dir < 0 ? dir : unlinkat(dir, name, 0) < 0 ? -errno : 0;
}

/* ---- where ---- */

static int refuse_setting(struct vx_err *err, const char *setting, const char *why)
{
	vx_err_set(err, -EPERM, "cacheDir \"%s\" %s", setting, why);
	vx_err_fix(err,
		"name a directory of the workspace, or give this one with --cache-dir or VX_CACHE_DIR");
	return -EPERM;
}

/* A repository's configuration chooses among the places of its own workspace only: what lies
 * elsewhere belongs to the user, who names it on the command line or in the environment. */
static int check_setting(const char *setting, const char *dir, const char *root, struct vx_err *err)
{
	const char *below = vx_path_below(dir, root);

	if (!below)
		return refuse_setting(err, setting, "lies outside the workspace");
	if (strcmp(below, ".vx") == 0 ||
		(strncmp(below, ".vx/", 4) == 0 && strcmp(below, ".vx/cache") != 0))
		return refuse_setting(
			err, setting, "lies in .vx, where vx keeps other things than .vx/cache");
	for (const char *p = below; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (strncmp(p, ".git", 4) == 0 && (p[4] == '/' || !p[4]))
			return refuse_setting(err, setting, "lies in .git, which is git's own");
	}
	return 0;
}

int vx_store_dir(const char *flag, const char *setting, bool shared, const char *root,
	struct vx_arena *a, char **ret, struct vx_err *err)
{
	const char *env = getenv("VX_CACHE_DIR"), *path = NULL;
	char cwd[4096];
	if (flag && !*flag) {
		vx_err_set(err, -EINVAL, "--cache-dir is empty");
		vx_err_fix(err, "give it a directory");
		return -EINVAL;
	}
	if (flag || (env && *env)) {
		if (!getcwd(cwd, sizeof cwd))
			return vx_err_set(err, -errno, "the current directory cannot be named: %s",
				vx_strerror(errno));
		path = vx_path_join(a, cwd, flag ? flag : env);
	} else if (setting) {
		if (*setting == '~')
			return refuse_setting(
				err, setting, "begins with ~, which stands for nothing here");
		path = vx_path_join(a, root, setting);
	} else if (shared) {
		const char *xdg = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
		if (xdg && xdg[0] == '/')
			path = vx_path_join(a, xdg, "vx/store");
		else if (home && home[0] == '/')
			path = vx_path_join(a, home, ".cache/vx/store");
		else {
			vx_err_set(err, -ENOENT,
				"the shared store has no place: neither XDG_CACHE_HOME nor HOME is set");
			vx_err_fix(err, "set HOME, or name a directory with --cache-dir");
			return -ENOENT;
		}
	} else {
		path = vx_path_join(a, root, ".vx/cache");
	}
	if (!flag && !(env && *env) && !setting && !shared) {
		*ret = vx_arena_strdup(
			a, path); /* links below the root are refused, not followed */
		return 0;
	}
	int r = vx_path_canon(a, path, ret);
	if (r < 0)
		return vx_err_set(err, r, "cache directory %s: %s", path, vx_strerror(r));
	return flag || (env && *env) || !setting ? 0 : check_setting(setting, *ret, root, err);
}

static int refuse_network(const char *dir, struct vx_err *err)
{
	char p[4096];
	snprintf(p, sizeof p, "%s", dir);
	struct statfs fs;
	while (statfs(p, &fs) < 0) {
		char *slash = strrchr(p, '/');
		if (!slash || slash == p)
			return 0;
		*slash = '\0';
	}
	for (size_t i = 0; i < sizeof network_fs / sizeof *network_fs; i++)
		if ((unsigned long)(uint32_t)fs.f_type == network_fs[i].type) {
			vx_err_set(err, -EOPNOTSUPP,
				"the cache directory %s is on a network file system (%s)", dir,
				network_fs[i].name);
			vx_err_fix(err, "name one on a local disk with --cache-dir");
			return -EOPNOTSUPP;
		}
	return 0;
}

/* ---- opening ---- */

static void say_why(struct vx_store *s, const char *dir, int r)
{
	s->write = false;
	if (r == -EPROTO)
		snprintf(s->why, sizeof s->why,
			"nothing is saved: the cache %.300s was made by another version of vx (name another one with --cache-dir)",
			dir);
	else
		snprintf(s->why, sizeof s->why,
			"nothing is saved: the cache %.300s cannot be written: %s", dir,
			vx_strerror(r));
}

static bool in_own_dir(const struct vx_store *s)
{
	const char *below = vx_path_below(s->dir, s->workspace);
	return below && strncmp(below, ".vx/", 4) == 0;
}

/* <root>/.vx is ours and not for git. */
static void ignore_own_dir(const struct vx_store *s)
{
	if (!in_own_dir(s))
		return;
	char p[4096];
	snprintf(p, sizeof p, "%s/.vx/.gitignore", s->workspace);
	int fd = vx_open(AT_FDCWD, p, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
	if (fd >= 0) {
		vx_write_full(fd, "*\n", 2);
		vx_close(fd);
	}
}

/* ---- is it a store? ---- */

#define MARKER \
	"vx-store" /* in <cache>/v1: made by vx, which may replace and remove what is there */
#define MARKER_TEXT \
	"This directory is a cache of the task runner vx, which replaces and removes files in it.\n"

static bool is_marked(const struct vx_store *s)
{
	struct stat st;
	return fstatat(s->dir_fd, MARKER, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
}

/* 1 when nothing is in it, -errno. */
static int is_empty(const struct vx_store *s)
{
	int fd = vx_open(s->dir_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		int r = fd < 0 ? fd : -errno;
		vx_close(fd);
		return r;
	}
	bool empty = true;
	for (struct dirent *e; empty && (e = readdir(d));)
		empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
	closedir(d);
	return empty;
}

/* -ENOTEMPTY when <cache>/v1 is somebody else's: it holds something, but no marker. The workspace's
 * .vx is vx's as a whole. Another process may be making the same store: its marker comes first. */
static int check_store(const struct vx_store *s)
{
	if (in_own_dir(s) || is_marked(s))
		return 0;
	int r = is_empty(s);
	return r < 0 ? r : r == 1 || is_marked(s) ? 0 : -ENOTEMPTY;
}

static int mark(const struct vx_store *s)
{
	if (is_marked(s))
		return 0;
	int fd = vx_open(s->dir_fd, MARKER, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666);
	if (fd < 0)
		return fd == -EEXIST ? 0 : fd;
	int r = vx_write_full(fd, MARKER_TEXT, strlen(MARKER_TEXT));
	vx_close(fd);
	return r < 0 ? r : 0;
}

static int refuse_foreign(const struct vx_store *s, struct vx_err *err)
{
	vx_err_set(err, -ENOTEMPTY,
		"%s was not made by vx (there is no file " MARKER
		" in it): it is not used as a cache",
		s->dir);
	vx_err_fix(err, "delete it, or name another directory with --cache-dir");
	return -ENOTEMPTY;
}

/* Nothing is made that is there: an ordinary opening makes no directory. */
static int make_dirs(struct vx_store *s)
{
	s->dir_fd = vx_state_open(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY, 0);
	if (s->dir_fd == -ENOENT) {
		int r = vx_mkdir_p(AT_FDCWD, s->dir, 0777);
		if (r < 0)
			return r;
		ignore_own_dir(s);
		s->dir_fd = vx_state_open(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY, 0);
	}
	if (s->dir_fd < 0)
		return s->dir_fd;
	int m = check_store(s);
	if (m == 0)
		m = mark(s);
	if (m < 0)
		return m;
	static const char *const sub[] = {"a", "tmp", "index"};
	for (int i = 0; i < 3; i++) {
		int r = faccessat(s->dir_fd, sub[i], W_OK, AT_EACCESS) < 0 ? -errno : 0;
		if (r == -ENOENT)
			r = mkdirat(s->dir_fd, sub[i], 0777) < 0 && errno != EEXIST ? -errno : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

/* The parts of a store are directories and no links, and one that lies in the workspace's .vx
 * belongs to somebody who may own that. What must not be used is closed. */
static int check_dirs(struct vx_store *s, int dir_r, struct vx_err *err)
{
	static const char *const sub[] = {"a", "tmp", "index", "s"};
	char path[4096];
	struct stat st;
	int r = dir_r;
	snprintf(path, sizeof path, "%s", s->dir);
	for (int i = 0; i < 4 && r >= 0; i++) {
		if (fstatat(s->dir_fd, sub[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			S_ISLNK(st.st_mode))
			r = -ELOOP;
		if (r < 0)
			snprintf(path, sizeof path, "%s/%s", s->dir, sub[i]);
	}
	if (r >= 0 && in_own_dir(s)) {
		VX_CLEANUP_FD int root = vx_open(AT_FDCWD, s->workspace, O_PATH | O_DIRECTORY, 0);
		r = fstat(s->dir_fd, &st) == 0 && !vx_state_owner_ok(st.st_uid, root) ? -EUCLEAN
										      : 0;
	}
	if (r == -ELOOP || r == -EUCLEAN) {
		s->dir_fd = vx_close(s->dir_fd);
		return vx_state_refuse(err, r, path);
	}
	return 0;
}

static int make_mask(struct vx_tx *t, void *arg)
{
	struct vx_store *s = arg;
	const void *v;
	size_t n;
	int r = vx_tx_get(t, VX_DB_META, "mask", 4, &v, &n);
	if (r == 0 && n == sizeof s->mask) {
		memcpy(s->mask, v, n);
		return 0;
	}
	return vx_tx_put(t, VX_DB_META, "mask", 4, s->mask, sizeof s->mask);
}

static int read_mask(struct vx_tx *t, void *arg)
{
	struct vx_store *s = arg;
	const void *v;
	size_t n;
	int r = vx_tx_get(t, VX_DB_META, "mask", 4, &v, &n);
	if (r == 0 && n == sizeof s->mask)
		memcpy(s->mask, v, n);
	return r == 0 && n != sizeof s->mask ? -ENOENT : r;
}

static void open_index(struct vx_store *s, const char *dir, uint64_t map_bytes)
{
	bool aside = false;
	int r = vx_index_open(s->dir, s->write, s->fsync, map_bytes, &s->ix, &aside);
	if (r < 0 && s->write) {
		say_why(s, dir, r);
		r = vx_index_open(s->dir, false, false, map_bytes, &s->ix, &aside);
	}
	if (r < 0) {
		s->ix = NULL;
		if (r != -EROFS && !s->why[0]) {
			say_why(s, dir, r);
			if (r == -EBADMSG)
				snprintf(s->why, sizeof s->why,
					"the index of the cache %.300s is damaged: it is not used",
					dir);
		}
		return;
	}
	if (aside)
		snprintf(s->note, sizeof s->note,
			"the index of the cache %.300s was damaged: it was put aside and a new one begun",
			dir);
	if (getrandom(s->mask, sizeof s->mask, 0) != (ssize_t)sizeof s->mask)
		vx_sha256_of(s->dir, strlen(s->dir), (struct vx_digest *)(void *)s->mask);
	if (vx_index_read(s->ix, read_mask, s) < 0 && s->write)
		vx_index_write(s->ix, make_mask, s);
}

/* Errors only for what is refused; what cannot be opened stays closed. */
static int open_dirs(struct vx_store *s, const char *dir, struct vx_err *err)
{
	int r = s->write ? make_dirs(s) : 0;
	if (r == -ENOTEMPTY)
		return refuse_foreign(s, err);
	if (r < 0)
		say_why(s, dir, r);
	if (s->dir_fd < 0)
		s->dir_fd = vx_state_open(AT_FDCWD, s->dir, O_RDONLY | O_DIRECTORY, 0);
	if (s->dir_fd < 0 && s->dir_fd != -ELOOP)
		return 0;
	r = s->dir_fd < 0 || s->write ? 0 : check_store(s);
	if (r < 0)
		return refuse_foreign(s, err);
	r = check_dirs(s, s->dir_fd < 0 ? s->dir_fd : 0, err);
	if (r < 0)
		return r;
	s->a_fd = vx_open_beneath(s->dir_fd, "a", O_RDONLY | O_DIRECTORY, 0);
	s->tmps_fd = vx_open_beneath(s->dir_fd, "tmp", O_RDONLY | O_DIRECTORY, 0);
	return 0;
}

int vx_store_open(const struct vx_store_opts *o, struct vx_store **ret, struct vx_err *err)
{
	if (o->read || o->write) {
		int r = refuse_network(o->dir, err);
		if (r < 0)
			return r;
	}
	struct vx_store *s = vx_xcalloc(1, sizeof *s);
	const char *sync = getenv("VX_FSYNC");
	s->dir_fd = s->a_fd = s->tmps_fd = s->tmp_fd = -1;
	s->read = o->read;
	s->write = o->write;
	s->fsync = sync && strcmp(sync, "1") == 0;
	s->workspace = vx_xstrdup(o->workspace);
	pthread_mutex_init(&s->lock, NULL);
	pthread_mutex_init(&s->seg_lock, NULL);
	struct vx_digest d;
	vx_sha256_of(o->workspace, strlen(o->workspace), &d);
	memcpy(s->ws_id, d.b, sizeof s->ws_id);
	s->dir = vx_xmalloc(strlen(o->dir) + 4);
	sprintf(s->dir, "%s/v1", o->dir);
	int r = o->read || o->write ? open_dirs(s, o->dir, err) : 0;
	if (r < 0) {
		vx_store_close(s);
		return r;
	}
	*ret = s;
	if (s->a_fd >= 0)
		open_index(s, o->dir, o->map_bytes);
	if (s->ix)
		vx_index_ready(s->ix);
	if (s->ix && s->write)
		vx_store_sweep_tmp(s->tmps_fd, NULL);
	return 0;
}

static int touch_stale(struct vx_tx *t, void *arg)
{
	struct vx_store *s = arg;
	uint64_t now = vx_wall_ns();
	for (uint32_t i = 0; i < s->n_stale; i++) {
		const void *v;
		size_t n;
		if (vx_tx_get(t, VX_DB_ENTRIES, s->stale[i].b, 32, &v, &n) < 0 || n < 8)
			continue;
		uint8_t *copy = vx_xmalloc(n);
		memcpy(copy, v, n);
		vx_row_touch(copy, now);
		int r = vx_tx_put(t, VX_DB_ENTRIES, s->stale[i].b, 32, copy, n);
		free(copy);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Each of their rows is committed or given up. One that nothing could be written to is not left. */
static void close_segments(struct vx_store *s)
{
	for (uint32_t i = 0; i < s->segs.n; i++) {
		if (i + 1 == s->segs.n && !s->seg_end) {
			char path[VX_SEGMENT_PATH];
			vx_segment_path(s->seg_id, path);
			unlinkat(s->dir_fd, path, 0);
		}
		vx_close(s->segs.v[i]);
	}
	free(s->segs.v);
}

void vx_store_close(struct vx_store *s)
{
	if (!s)
		return;
	if (s->ix && s->write && s->n_stale)
		vx_index_write(s->ix, touch_stale, s);
	if (s->tmp_fd >= 0) {
		vx_rm_rf(s->tmps_fd, s->tmp_name);
		vx_close(s->tmp_fd);
	}
	close_segments(s);
	vx_index_close(s->ix);
	vx_close(s->a_fd);
	vx_close(s->tmps_fd);
	vx_close(s->dir_fd);
	pthread_mutex_destroy(&s->lock);
	pthread_mutex_destroy(&s->seg_lock);
	free(s->stale);
	free(s->dir);
	free(s->workspace);
	free(s);
}

bool vx_store_writable(const struct vx_store *s)
{
	return s->ix && s->write && vx_index_writable(s->ix);
}

const char *vx_store_why(const struct vx_store *s)
{
	return s->why[0] ? s->why : NULL;
}

const char *vx_store_note(const struct vx_store *s)
{
	if (s->ix && vx_index_damaged(s->ix))
		return "the index of the cache was found damaged: the next run begins a new one";
	if (s->ix && vx_index_bad_rows(s->ix))
		return "the index of the cache holds damaged rows: their results count as missing and are made anew";
	return s->note[0] ? s->note : NULL;
}

const uint8_t *vx_store_mask_key(const struct vx_store *s)
{
	return s->mask;
}

/* ---- litter ---- */

static void sweep_one(int tmp_fd, const char *name, uint32_t *removed)
{
	int fd = vx_open(tmp_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	bool ours = fd == -ENOENT || (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0);
	if (!ours && vx_rm_rf(tmp_fd, name) == 0)
		++*removed;
	vx_close(fd);
}

bool vx_is_hex(const char *s, size_t n)
{
	return strspn(s, "0123456789abcdef") >= n;
}

/* A directory of temporaries, or an index that was put aside: "damaged-SECONDS-PID". */
static bool is_litter(const char *name)
{
	if (strncmp(name, "damaged-", 8) == 0)
		return name[8 + strspn(name + 8, "0123456789-")] == '\0';
	return strlen(name) == VX_TMP_HEX && vx_is_hex(name, VX_TMP_HEX);
}

int vx_store_sweep_tmp(int tmps_fd, uint32_t *ret_removed)
{
	int fd = vx_open(tmps_fd, ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	DIR *d = fdopendir(fd);
	if (!d) {
		int r = -errno;
		vx_close(fd);
		return r;
	}
	uint32_t removed = 0;
	for (struct dirent *e; (e = readdir(d));)
		if (is_litter(e->d_name))
			sweep_one(fd, e->d_name, &removed);
	closedir(d);
	if (ret_removed)
		*ret_removed = removed;
	return 0;
}

int vx_parse_age(const char *s, uint64_t *ret_ns)
{
	static const struct {
		char unit;
		uint64_t s;
	} units[] = {{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}, {'w', 604800}};
	char digits[24];
	size_t n = strlen(s);
	if (n < 2 || n > sizeof digits)
		return -EINVAL;
	memcpy(digits, s, n - 1);
	digits[n - 1] = '\0';
	for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
		uint64_t v;
		if (units[i].unit != s[n - 1])
			continue;
		int r = vx_parse_u64(digits, UINT64_MAX / 1000000000 / units[i].s, &v);
		if (r == 0)
			*ret_ns = v * units[i].s * 1000000000;
		return r;
	}
	return -EINVAL;
}
