/* What a restore leaves, where that is known from its making: nothing was there, and everything was
 * staged in directories that are put in place as they are.
 *
 * A staged file or directory is nobody else's, so its stat in the stage is that of what is placed;
 * a directory's own rename changes its ctime alone, which is why it is looked at once more. Whoever
 * writes there from then on leaves another stat than the one noted, as behind any snapshot. Where
 * any of this does not hold the outputs are walked again. */
#include "lane_int.h"

#include <stdlib.h>
#include <string.h>

void vx_after_begin(struct vx_after *a, const struct vx_walk *before, const struct vx_outputs *o)
{
	*a = (struct vx_after){.known = !before->n_outs && !before->through_link && !o->additive,
		.taken_ns = vx_fs_now_ns()};
	for (uint32_t i = 0; i < before->n_dirs; i++)
		a->known &= !before->dirs[i].mode;
}

static void add_dir(struct vx_after *a, const char *path, const struct stat *st)
{
	struct vx_walk *w = &a->w;
	if (w->n_dirs == w->cap_dirs) {
		w->cap_dirs = w->cap_dirs ? w->cap_dirs * 2 : 8;
		w->dirs = vx_xrealloc(w->dirs, w->cap_dirs * sizeof *w->dirs);
	}
	struct vx_seen *d = &w->dirs[w->n_dirs++];
	*d = (struct vx_seen){.path = path, .len = (uint32_t)strlen(path)};
	if (st)
		vx_seen_of(st, d);
}

void vx_after_file(
	struct vx_after *a, struct vx_hand *h, const char *path, int stage_fd, const char *stage)
{
	struct vx_walk *w = &a->w;
	struct stat st;
	if (!a->known)
		return;
	a->known = vx_io_stat_at(h->io, stage_fd, stage, &st) == 0;
	if (!a->known)
		return;
	if (w->n_outs == w->cap_outs) {
		w->cap_outs = w->cap_outs ? w->cap_outs * 2 : 16;
		w->outs = vx_xrealloc(w->outs, w->cap_outs * sizeof *w->outs);
	}
	struct vx_out *out = &w->outs[w->n_outs++];
	*out = (struct vx_out){.seen = {.path = path, .len = (uint32_t)strlen(path)}};
	vx_seen_of(&st, &out->seen);
}

void vx_after_staged(
	struct vx_after *a, struct vx_hand *h, const char *path, int stage_fd, const char *stage)
{
	struct stat st;
	if (!a->known)
		return;
	a->known = vx_io_stat_at(h->io, stage_fd, stage, &st) == 0 && st.st_dev == h->l->root_dev;
	if (a->known)
		add_dir(a, path, &st);
}

void vx_after_placed(struct vx_after *a, struct vx_hand *h, const char *path)
{
	struct vx_seen *was = NULL, now = {0};
	struct stat st;
	for (uint32_t i = 0; i < a->w.n_dirs && !was; i++)
		was = a->w.dirs[i].path == path ? &a->w.dirs[i] : NULL;
	a->known = a->known && was && vx_io_stat_at(h->io, h->l->root_fd, path, &st) == 0 &&
		   st.st_dev == h->l->root_dev;
	if (!a->known)
		return;
	vx_seen_of(&st, &now);
	a->known = now.ino == was->ino && now.mode == was->mode && now.mtime_ns == was->mtime_ns;
	was->ctime_ns = now.ctime_ns;
}

void vx_after_absent(struct vx_after *a, const char *path)
{
	if (a->known)
		add_dir(a, path, NULL);
}

bool vx_after_keep(struct vx_after *a, struct vx_hand *h, const struct vx_job *j)
{
	if (!a->known || a->w.n_outs != j->entry.n_outputs)
		return false;
	vx_walk_sort(&a->w);
	vx_keep_snapshot(h, j, &a->w, a->taken_ns);
	return true;
}
