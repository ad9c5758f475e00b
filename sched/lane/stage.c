/* Where a restore puts what it unpacks until all of it is there: a directory per thread below
 * .vx/stage. A whole directory that is missing is staged as a tree. */
#include "restore_int.h"

#include "vx/fd.h"
#include "vx/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* A directory of .vx, made when absent and entered through no link. */
static int own_dir(struct vx_hand *h, const char *name)
{
	int own = vx_state_dir(h->l->root_fd, true);
	int fd = own < 0 ? own : vx_state_open(own, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT) {
		int k = vx_io_mkdir_at(h->io, own, name, 0777);
		fd = k == 0 || k == -EEXIST ? vx_state_open(own, name, O_RDONLY | O_DIRECTORY, 0)
					    : k;
	}
	vx_close(own);
	return fd;
}

/* Makes this thread's directory. Somebody may have removed .vx/stage since it was opened. */
static int make_stage(struct vx_hand *h)
{
	for (int tries = 0;; tries++) {
		if (h->stages_fd < 0)
			h->stages_fd = own_dir(h, "stage");
		if (h->stages_fd < 0)
			return h->stages_fd;
		int k = vx_io_mkdir_at(h->io, h->stages_fd, h->stage, 0700);
		if (k != -ENOENT || tries)
			return k;
		h->stages_fd = vx_close(h->stages_fd);
	}
}

int vx_stage_open(struct restoring *r)
{
	struct vx_hand *h = r->h;
	struct stat st;
	if (r->stage_fd >= 0)
		return 0;
	if (h->stage_fd >= 0 && vx_io_stat_fd(h->io, h->stage_fd, &st) == 0 && st.st_nlink) {
		r->stage_fd = h->stage_fd;
		return 0;
	}
	vx_stage_drop(h); /* somebody has removed it */
	snprintf(h->stage, sizeof h->stage, "%d-%llu", (int)getpid(),
		(unsigned long long)atomic_fetch_add(&h->l->stage_seq, 1));
	int k = make_stage(h);
	VX_POINT("restore.stage_made");
	if (k < 0)
		return vx_fail_set(r->f, k, "stage", ".vx/stage/%s", h->stage);
	h->stage_fd = r->stage_fd = vx_io_open_at(
		h->io, h->stages_fd, h->stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r->stage_fd >= 0)
		return 0;
	vx_fail_set(r->f, r->stage_fd, "stage", ".vx/stage/%s", h->stage);
	vx_io_unlink_at(h->io, h->stages_fd, h->stage, AT_REMOVEDIR);
	return r->stage_fd;
}

void vx_stage_drop(struct vx_hand *h)
{
	if (h->stage_fd < 0)
		return;
	vx_io_close_fd(h->io, h->stage_fd);
	h->stage_fd = -1;
	if (vx_io_unlink_at(h->io, h->stages_fd, h->stage, AT_REMOVEDIR) < 0)
		vx_rm_rf(h->stages_fd, h->stage);
	VX_POINT("restore.stage_dropped");
}

static int take_secret(struct vx_hand *h)
{
	int own = vx_state_dir(h->l->root_fd, true);
	int r = own < 0 ? own : vx_state_key(own, true, &h->secret);
	vx_close(own);
	return r < 0 ? r : 1;
}

int vx_stage_journal(struct vx_hand *h, struct vx_journal *ret, struct vx_fail *f)
{
	struct stat st;
	if (!h->secret_r)
		h->secret_r = take_secret(h);
	if (h->secret_r < 0)
		return 1;
	if (h->journals_fd >= 0 && (vx_io_stat_fd(h->io, h->journals_fd, &st) < 0 || !st.st_nlink))
		h->journals_fd = vx_close(h->journals_fd);
	if (h->journals_fd < 0)
		h->journals_fd = own_dir(h, "journal");
	if (h->journals_fd < 0)
		return vx_fail_set(f, h->journals_fd, "journal", ".vx/journal");
	*ret = (struct vx_journal){h->io, h->stages_fd, h->journals_fd, &h->secret, h->stage};
	return 0;
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
