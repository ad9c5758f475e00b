/* Is a directory's listing still what the first one of this run was? Proven without listing it: a
 * directory whose stat is the same (and was old enough when it was listed, else it is not among the
 * seen) holds the same names, and files of rules that are the same ignore the same of them. */
#include "../git/rulefile.h"
#include "scan.h"

#include "vx/limits.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

struct look {
	const struct vx_repo *repo;
	const struct vx_wtseen *seen;
	char path[VX_MAX_PATH]; /* the directory that is looked at */
	size_t len;
};

static bool put(struct look *k, const char *name, size_t n)
{
	if (k->len + n + 2 > sizeof k->path)
		return false;
	if (k->len)
		k->path[k->len++] = '/';
	memcpy(k->path + k->len, name, n);
	k->len += n;
	k->path[k->len] = '\0';
	return true;
}

static void cut(struct look *k, size_t len)
{
	k->len = len;
	k->path[len] = '\0';
}

/* The directory as it was seen, where that holds. */
static bool unmoved(const struct look *k, const struct stat *st, struct vx_dir_memory *ret)
{
	struct vx_fstat now;
	if (!vx_wtmem_seen_dir(k->seen, k->path, ret))
		return false;
	vx_fstat_of(st, &now);
	return vx_fstat_equal(&now, &ret->st);
}

static bool same_rules(const struct look *k)
{
	return vx_rule_same(k->repo->rules, k->repo->top_fd, k->path);
}

static bool is_there(struct look *k, const char *name)
{
	struct stat st;
	size_t len = k->len;
	bool yes = !put(k, name, strlen(name)) ||
		   fstatat(k->repo->top_fd, k->path, &st, AT_SYMLINK_NOFOLLOW) == 0;
	cut(k, len);
	return yes;
}

/* A directory that the way to others leads through: only rules count, and that no repository has
 * come to be there. */
static bool same_passing(struct look *k, const struct stat *st)
{
	struct vx_dir_memory d;
	if (st && unmoved(k, st, &d))
		return !(d.has & VX_DIR_GIT) && (!(d.has & VX_DIR_IGNORE) || same_rules(k));
	return same_rules(k) && (!st || !is_there(k, ".git"));
}

static bool same_below(struct look *k, const struct stat *st)
{
	struct vx_dir_memory d;
	if (!unmoved(k, st, &d) || (d.has & VX_DIR_GIT && k->len) ||
		(d.has & VX_DIR_IGNORE && !same_rules(k)))
		return false;
	if (!(d.has & VX_DIR_BELOW))
		return true;
	const char *p = d.names;
	for (uint32_t i = 0; i < d.n_names; i++, p += strlen(p) + 1) {
		unsigned char type = (unsigned char)*p++;
		struct stat sub;
		size_t len = k->len;
		if (type == DT_UNKNOWN || (type == DT_DIR && !put(k, p, strlen(p))))
			return false;
		if (type != DT_DIR)
			continue;
		bool same =
			/* its type cannot have changed */
			fstatat(k->repo->top_fd, k->path, &sub, AT_SYMLINK_NOFOLLOW) == 0 &&
			same_below(k, &sub);
		cut(k, len);
		if (!same)
			return false; /* also where it was passed by: that is not written down */
	}
	return true;
}

int vx_scan_same(const struct vx_repo *r, const char *dir, const struct vx_wtseen *seen)
{
	struct look k = {.repo = r, .seen = seen};
	struct stat st;
	for (const char *p = dir; *p;) {
		const char *slash = strchrnul(p, '/');
		if (!same_passing(&k, k.len ? &st : NULL) || !put(&k, p, (size_t)(slash - p)))
			return 0;
		if (fstatat(r->top_fd, k.path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return errno == ENOENT ? VX_SAME_GONE : 0;
		if (!S_ISDIR(st.st_mode))
			return *slash ? 0 : VX_SAME_FILE;
		p = *slash ? slash + 1 : slash;
	}
	if (!k.len && fstatat(r->top_fd, ".", &st, 0) < 0)
		return 0;
	return same_below(&k, &st) ? VX_SAME : 0;
}
