/* Cleaning: a task's declared outputs are removed before it runs, so that what is there afterwards
 * is what it made. */
#include "lane_int.h"

#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Tracked files stay; so does what cannot be an output at all (it fails the save, not the
 * clean). */
static bool may_remove(const struct vx_lane *l, const struct vx_out *o)
{
	return !(l->o.tracked && l->o.tracked(l->o.arg, o->seen.path));
}

static int clean_walked(struct vx_hand *h, const struct vx_outputs *o, const struct vx_walk *w,
	struct vx_fail *f, const char **ret_kept)
{
	struct vx_lane *l = h->l;
	struct vx_plan_ops ops = {.base = vx_outputs_base(o)};
	for (uint32_t i = 0; i < w->n_outs; i++)
		if (!may_remove(l, &w->outs[i]))
			*ret_kept = w->outs[i].seen.path;
		else
			vx_ops_add(&ops, S_ISDIR(w->outs[i].seen.mode) ? OP_EMPTY : OP_REMOVE,
				w->outs[i].seen.path, NULL, 0);
	uint32_t removed = ops.n;
	/* Directories that are outputs as a whole go with what was in them, the deepest first. */
	for (uint32_t i = w->n_dirs; removed && i-- > 0;)
		if (S_ISDIR(w->dirs[i].mode) && *w->dirs[i].path &&
			vx_outputs_match(o, w->dirs[i].path))
			vx_ops_add(&ops, OP_EMPTY, w->dirs[i].path, NULL, 0);
	VX_POINT("clean.begin");
	int r = vx_ops_apply(h->io, l->root_fd, -1, &ops, false, f);
	VX_POINT("clean.end");
	free(ops.v);
	return r;
}

#define MAX_PLACES 4

/* Nothing is where the set's entries begin, and no link on the way there. */
static bool nothing_there(int root_fd, const char *base, const struct vx_globset *set)
{
	char path[VX_MAX_PATH];
	uint32_t n = set ? vx_globset_count(set) : 0;
	if (n > MAX_PLACES)
		return false;
	for (uint32_t i = 0; i < n; i++) {
		const char *prefix = vx_globset_prefix(set, i);
		if (!*prefix || (size_t)snprintf(path, sizeof path, "%s%s%s", base,
					*base ? "/" : "", prefix) >= sizeof path)
			return false;
		int fd = vx_open_beneath(root_fd, path, O_PATH | O_NOFOLLOW, 0);
		vx_close(fd);
		if (fd != -ENOENT)
			return false;
	}
	return true;
}

bool vx_lane_clean_already(const struct vx_lane *l, const struct vx_outputs *o)
{
	return nothing_there(l->root_fd, vx_outputs_base(o), o->files) &&
	       nothing_there(l->root_fd, "", o->workspace_files);
}

void vx_do_clean(struct vx_hand *h, const struct vx_job *j)
{
	struct vx_walk w = {0};
	struct vx_fail f = {0};
	char text[sizeof f.text + 64] = "";
	const char *kept = NULL;
	int r = vx_walk(h->io, h->l->root_fd, h->l->root_dev, &j->outputs, &w, &f);
	if (r == 0)
		r = clean_walked(h, &j->outputs, &w, &f, &kept);
	if (r == 0 && kept)
		snprintf(text, sizeof text,
			"its output %.500s is tracked by git, or describes a project: such files are never cleaned",
			kept);
	if (r < 0)
		snprintf(text, sizeof text, "its outputs could not be cleaned: %s", f.text);
	else
		atomic_fetch_add(&h->l->n_cleans, 1);
	vx_walk_free(&w);
	vx_lane_send(h->l,
		&(struct vx_lane_event){.kind = VX_LANE_CLEANED, .task = j->task, .ok = r == 0},
		NULL, text);
}
