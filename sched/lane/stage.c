/* Where a restore puts what it unpacks until all of it is there: a directory per thread below
 * .vx/stage. A whole directory that is missing is staged as a tree. */
#include "restore_int.h"

#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int vx_stage_open(struct restoring *r)
{
	struct vx_hand *h = r->h;
	struct stat st;
	char path[80];
	if (r->stage_fd >= 0)
		return 0;
	if (h->stage_fd >= 0 && vx_io_stat_fd(h->io, h->stage_fd, &st) == 0 && st.st_nlink) {
		r->stage_fd = h->stage_fd;
		return 0;
	}
	vx_stage_drop(h); /* somebody has removed it */
	snprintf(h->stage, sizeof h->stage, "%d-%llu", (int)getpid(),
		(unsigned long long)atomic_fetch_add(&h->l->stage_seq, 1));
	snprintf(path, sizeof path, ".vx/stage/%s", h->stage);
	int k = vx_io_mkdir_at(h->io, h->l->root_fd, path, 0700);
	if (k == -ENOENT) {
		k = vx_io_mkdir_at(h->io, h->l->root_fd, ".vx", 0777);
		if (k == 0 || k == -EEXIST)
			k = vx_io_mkdir_at(h->io, h->l->root_fd, ".vx/stage", 0777);
		if (k == 0 || k == -EEXIST)
			k = vx_io_mkdir_at(h->io, h->l->root_fd, path, 0700);
	}
	VX_POINT("restore.stage_made");
	if (k < 0)
		return vx_fail_set(r->f, k, "stage", "%s", path);
	h->stage_fd = r->stage_fd =
		vx_io_open_beneath(h->io, h->l->root_fd, path, O_RDONLY | O_DIRECTORY, 0);
	if (r->stage_fd >= 0)
		return 0;
	vx_fail_set(r->f, r->stage_fd, "stage", "%s", path);
	vx_io_unlink_at(h->io, h->l->root_fd, path, AT_REMOVEDIR);
	return r->stage_fd;
}

void vx_stage_drop(struct vx_hand *h)
{
	char path[80];
	if (h->stage_fd < 0)
		return;
	vx_io_close_fd(h->io, h->stage_fd);
	h->stage_fd = -1;
	snprintf(path, sizeof path, ".vx/stage/%s", h->stage);
	if (vx_io_unlink_at(h->io, h->l->root_fd, path, AT_REMOVEDIR) < 0)
		vx_rm_rf(h->l->root_fd, path);
	VX_POINT("restore.stage_dropped");
}

static struct dir_place *add_place(
	struct restoring *r, const char *path, size_t n, struct dir_place p)
{
	if (r->n_places == r->cap_places) {
		r->cap_places = r->cap_places ? r->cap_places * 2 : 16;
		r->places_v = vx_xrealloc(r->places_v, r->cap_places * sizeof *r->places_v);
	}
	p.path = vx_arena_strndup(&r->a, path, n);
	r->places_v[r->n_places] = p;
	vx_map_set(&r->places, p.path, n, r->n_places);
	return &r->places_v[r->n_places++];
}

static uint32_t member_mode(const struct restoring *r, const char *path, size_t n)
{
	uint32_t i = vx_map_get(&r->dir_members, path, n);
	return i == VX_MAP_NONE ? 0755 : r->dirs_v[i].mode;
}

/* Makes a directory in the stage: inside `parent` when that is staged, else as something to be
 * placed. */
static int stage_dir(struct restoring *r, const char *path, size_t n,
	const struct dir_place *parent, struct dir_place *ret)
{
	int k = vx_stage_open(r);
	if (k < 0)
		return k;
	const char *slash = memrchr(path, '/', n), *name = slash ? slash + 1 : path;
	uint32_t mode = member_mode(r, path, n);
	*ret = (struct dir_place){.state = STAGED,
		.mode = mode,
		.made = (mode | 0700) & 0777,
		.top = parent->state == AT_HOME};
	if (ret->top)
		ret->stage = vx_arena_printf(&r->a, "%u", r->n_staged++);
	else
		ret->stage = vx_arena_printf(
			&r->a, "%s/%.*s", parent->stage, (int)(path + n - name), name);
	k = vx_io_mkdir_at(r->h->io, r->stage_fd, ret->stage, ret->made);
	if (k < 0)
		return vx_fail_set(r->f, k, "mkdir", "%.*s", (int)n, path);
	if (ret->top)
		vx_ops_add(&r->placing, OP_PLACE, vx_arena_strndup(&r->a, path, n), ret->stage,
			S_IFDIR);
	VX_POINT("restore.dir_staged");
	return 0;
}

/* Where a directory is to be there is something else, that is no output itself. */
static int in_the_way(struct restoring *r, const char *path, bool link)
{
	int k = vx_fail_set(r->f, link ? -ELOOP : -ENOTDIR, "restore", "%s", path);
	if (link)
		snprintf(r->f->text, sizeof r->f->text,
			"%.400s is a symbolic link, and links are not followed", path);
	return k;
}

int vx_stage_find(struct restoring *r, const char *path, size_t n, struct dir_place *ret)
{
	*ret = (struct dir_place){.state = AT_HOME};
	for (size_t at = 0; at < n;) {
		const char *slash = memchr(path + at, '/', n - at);
		size_t end = slash ? (size_t)(slash - path) : n;
		at = end + 1;
		uint32_t i = vx_map_get(&r->places, path, end);
		if (i != VX_MAP_NONE) {
			*ret = r->places_v[i];
			continue;
		}
		struct dir_place p = {.state = AT_HOME};
		const struct vx_seen *seen = vx_walk_dir(r->w, path, end);
		int k = 0;
		/* Where the walk found nothing there may be something by now: placing it would
		 * show. */
		if (ret->state == AT_HOME && !(seen && !seen->mode)) {
			char dir[VX_MAX_PATH];
			struct stat st;
			memcpy(dir, path, end);
			dir[end] = '\0';
			k = vx_io_stat_at(r->h->io, r->h->l->root_fd, dir, &st);
			if (k < 0 && k != -ENOENT)
				return vx_fail_set(r->f, k, "stat", "%s", dir);
			if (k == 0 && !S_ISDIR(st.st_mode) &&
				!vx_outputs_match(&r->j->outputs, dir))
				return in_the_way(r, dir, S_ISLNK(st.st_mode));
			bool here = k == 0 && S_ISDIR(st.st_mode);
			k = here ? 0 : stage_dir(r, path, end, ret, &p);
			uint32_t mode = member_mode(r, path, end);
			if (here && vx_map_get(&r->dir_members, path, end) != VX_MAP_NONE &&
				(st.st_mode & 07777) != mode &&
				vx_outputs_match(&r->j->outputs, dir))
				vx_ops_add(&r->modes, OP_MODE, vx_arena_strdup(&r->a, dir), NULL,
					mode);
		} else {
			k = stage_dir(r, path, end, ret, &p);
		}
		if (k < 0)
			return k;
		*ret = *add_place(r, path, end, p);
	}
	return 0;
}

int vx_stage_member(struct restoring *r)
{
	const char *slash = strrchr(r->path, '/');
	struct dir_place parent;
	int k = vx_stage_find(r, r->path, slash ? (size_t)(slash - r->path) : 0, &parent);
	if (k == 0)
		k = vx_stage_open(r);
	if (k < 0)
		return k;
	if (parent.state == STAGED) {
		r->stage_path = vx_arena_printf(&r->a, "%s/%s", parent.stage, slash + 1);
	} else {
		r->stage_path = vx_arena_printf(&r->a, "%u", r->n_staged++);
		vx_ops_add(&r->placing, OP_PLACE, r->path, r->stage_path, 0);
		r->after.known = false;
	}
	return 0;
}
