/* Links that stand where outputs begin: what lies behind one is the task's output as well, and must
 * be saved with it. */
#include "lane_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

/* Where a link leads, as a path that passes no other link as far as this tells: `..` is followed
 * only before any name. False: out of the root, or not to be told. */
static bool lead(const char *path, const char *target, char ret[VX_MAX_PATH])
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	bool named = false;
	if (*target == '/')
		return false;
	memcpy(ret, path, n);
	ret[n] = '\0';
	for (const char *at = target; *at;) {
		size_t len = strcspn(at, "/");
		if (len == 2 && memcmp(at, "..", 2) == 0) {
			if (named || !n)
				return false;
			const char *up = memrchr(ret, '/', n);
			n = up ? (size_t)(up - ret) : 0;
		} else if (len && !(len == 1 && *at == '.')) {
			if (n + len + 2 > VX_MAX_PATH)
				return false;
			if (n)
				ret[n++] = '/';
			memcpy(ret + n, at, len);
			ret[n + len] = '\0';
			n += len;
			named = true;
		}
		ret[n] = '\0';
		at += len;
		at += *at == '/';
	}
	return n && vx_tar_path_ok(ret);
}

/* Is all that may lie below a directory an output? Asked with names that no pattern has. */
static bool all_below(const struct vx_outputs *o, const char *dir)
{
	static const char *const below[] = {"\001", "\001/\001", ".\001", "\001/.\001"};
	char path[VX_MAX_PATH + 8];
	for (size_t i = 0; i < sizeof below / sizeof *below; i++) {
		snprintf(path, sizeof path, "%s/%s", dir, below[i]);
		if (!vx_outputs_match(o, path))
			return false;
	}
	return true;
}

/* Does the link lead to what is saved with it? */
static bool leads_to_outputs(struct vx_io *io, int root_fd, const struct vx_outputs *o,
	const struct vx_walk *w, const struct vx_out *link)
{
	char to[VX_MAX_PATH];
	struct stat st;
	if (!lead(link->seen.path, link->target, to) || !vx_outputs_match(o, to))
		return false;
	int fd = vx_io_open_beneath(io, root_fd, to, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOENT;
	int r = vx_io_stat_fd(io, fd, &st);
	vx_io_close_fd(io, fd);
	if (r < 0)
		return false;
	if (S_ISREG(st.st_mode))
		return vx_walk_out(w, to);
	const struct vx_seen *d = S_ISDIR(st.st_mode) ? vx_walk_dir(w, to, strlen(to)) : NULL;
	return d && S_ISDIR(d->mode) && all_below(o, to);
}

/* What lies behind a link that stands where outputs begin is theirs. The link alone would be
 * restored, and lead to whatever is there by then. */
void vx_walk_behind(struct vx_io *io, int root_fd, const struct vx_outputs *o, struct vx_walk *w,
	const struct vx_top *tops, uint32_t n_tops)
{
	for (uint32_t i = 0; i < n_tops && !w->astray; i++) {
		const struct vx_top *t = &tops[i];
		const struct vx_out *link = vx_walk_out(w, t->path);
		struct stat st;
		if (!link || !link->target)
			continue;
		if (!t->fixed && (fstatat(root_fd, t->path, &st, 0) < 0 || !S_ISDIR(st.st_mode)))
			continue;
		if (!leads_to_outputs(io, root_fd, o, w, link))
			w->astray = link;
	}
}
