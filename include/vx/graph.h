/* The task graph: dependsOn resolved, closed over what was requested, checked.
 *
 * Forms: name, ^name, pkg#name, name.*, ^name.* (docs/config.md). Errors: a missing target with a
 * suggestion, a cycle that prints its path, overlapping outputs, inputs that reach another task's
 * outputs, an inputs.tasks entry that no dependsOn names, VX_MAX_TASKS, VX_MAX_TASK_DEPS. Pure: no
 * I/O. */
#ifndef VX_GRAPH_H
#define VX_GRAPH_H

#include "vx/plan.h"
#include "vx/select.h"

struct vx_graph_opts {
	bool exclude_dependencies;    /* --exclude-dependencies: only what was requested */
	struct vx_strs exclude_names; /* --exclude-dependencies=NAMES */
};

int vx_graph_build(const struct vx_workspace *ws, const struct vx_selection *sel,
	const struct vx_graph_opts *o, struct vx_arena *a, struct vx_graph *ret,
	struct vx_err *err);

/* The number of tasks downstream of each task (transitively), into ret[n_tasks]: the priority where
 * history knows nothing. */
void vx_graph_weights(const struct vx_graph *g, struct vx_arena *a, uint32_t *ret);

#endif
