/* The tasks that --affected chooses. In sched/key, since it needs globs. */
#ifndef VX_AFFECTED_H
#define VX_AFFECTED_H

#include "vx/select.h"

/* --affected: keeps those of sel->tasks whose dependsOn closure holds a task that a change seeds,
 * and fills sel->reasons; with none left sel->nothing says so. A task is seeded when a changed path
 * is one of its declared inputs; every task of a project when its manifest or config changed, or a
 * path that no task of the project declares. Does nothing unless o->affected. */
int vx_affected_narrow(const struct vx_workspace *ws, const struct vx_select_opts *o,
	struct vx_arena *a, struct vx_selection *sel, struct vx_err *err);

/* The first of the paths that is one of turbo.json's globalDependencies, which concern every task;
 * NULL none. For vx_select_opts.global. */
int vx_affected_global(const struct vx_workspace *ws, struct vx_strs paths, struct vx_arena *a,
	const char **ret_path, struct vx_err *err);

#endif
