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

struct vx_arena;
struct vx_err;

int vx_config_load(struct vx_workspace *ws, struct vx_arena *a, struct vx_err *err);

#endif
