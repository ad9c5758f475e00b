/* Configurations: vx.json(c), vx.workspace.json(c), JS configs, turbo.json(c). Rules and errors:
 * docs/config.md.
 *
 * vx_config_load reads the workspace settings and every project's tasks, resolves defaults and
 * overrides, validates each file against the rules and fills ws->settings and
 * ws->projects[i].tasks. The first broken rule is the error: file, project, task and field named,
 * the nearest known key for an unknown one. Of a project's own file it is kept in
 * ws->projects[i].broken, for vx_workspace_need; under a turbo.json, and of the workspace's file,
 * it is returned. Rules that need the graph (dependsOn targets, overlapping outputs, inputs
 * reaching outputs) are graph.h's. */
#ifndef VX_CONFIG_H
#define VX_CONFIG_H

#include "vx/plan.h"
#include "vx/strs.h"

struct vx_arena;
struct vx_err;

int vx_config_load(struct vx_workspace *ws, struct vx_arena *a, struct vx_err *err);

/* What a configuration that is a program has said, and what it read for that. */
struct vx_evaluated {
	const char *file, *json; /* root-relative; its value */
	struct vx_strs read;     /* absolute paths: files, directories, and what was not there */
	bool all_known;          /* nothing else bears on the value, as far as files go */
};
struct vx_evaluations {
	const struct vx_evaluated *v;
	uint32_t n;
};

/* The same. `given`: evaluations to be taken for the configurations of those names; nothing is run,
 * and one that is missing there is an error. NULL: they are evaluated. `ret` (may be NULL): how
 * they were, in the arena. */
int vx_config_load_as(struct vx_workspace *ws, struct vx_arena *a,
	const struct vx_evaluations *given, struct vx_evaluations *ret, struct vx_err *err);

#endif
