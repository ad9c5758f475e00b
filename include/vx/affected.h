/* --affected: the tasks whose key would be another one in the commit that is compared with.
 *
 * The commit's workspace is loaded from its own files and keyed by the code that keys this one
 * (keys.md), so whatever moves a key selects its task. What cannot be told selects as well, and
 * says so: see docs/config.md, "Affected". Of the commit nothing is run. */
#ifndef VX_AFFECTED_H
#define VX_AFFECTED_H

#include "vx/select.h"

struct vx_evaluations;

struct vx_affected_opts {
	const char *cache_dir; /* canonical, as of the keyer (key.h); NULL: none */
	/* of this workspace's configurations that are programs; NULL: there are none */
	const struct vx_evaluations *evaluated;
	bool frozen;       /* the workspace came from vx-lock.json */
	bool no_inference; /* without what frameworks add to env */
};

/* Keeps those of sel->tasks that are affected, and fills sel->reasons; with none left sel->nothing
 * says so. `from` NULL: the base is found (changed.h). */
int vx_affected_narrow(const struct vx_workspace *ws, const char *from,
	const struct vx_affected_opts *o, struct vx_arena *a, struct vx_selection *sel,
	struct vx_err *err);

/* The first of the paths that is one of turbo.json's globalDependencies, which concern every task;
 * NULL none. For vx_select_opts.global. */
int vx_affected_global(const struct vx_workspace *ws, struct vx_strs paths, struct vx_arena *a,
	const char **ret_path, struct vx_err *err);

#endif
