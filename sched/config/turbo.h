/* Inside the config module: turbo.json, for a workspace without any vx configuration.
 * docs/config.md, "turbo.json". */
#ifndef VX_TURBO_H
#define VX_TURBO_H

#include "cfg.h"

#include "vx/facts.h"

/* A task's definition as it is inherited: objects of the files from the root to the package, later
 * ones over earlier ones. */
enum { TURBO_MAX_CHAIN = 32 };
struct turbo_chain {
	const struct vx_json *v[TURBO_MAX_CHAIN];
	const char *file[TURBO_MAX_CHAIN];
	uint32_t n;
	struct vx_strlist *warnings;
	/* global.inputs: relative to the root, in front of every task's own */
	struct vx_strs global_inputs;
};

/* turbo_task.c: resolves a chain for project `p`. The command is the project's script; without one
 * the task is a pass-through node. */
int turbo_task(const struct cfg *c, const struct turbo_chain *chain, const struct vx_workspace *ws,
	const struct vx_project *p, struct vx_task_decl *ret);
/* Keys and types of one definition. Unknown keys that are no misspelling become warnings. */
int turbo_check_task(const struct cfg *c, const struct vx_json *task, struct vx_strlist *warnings);

/* turbo.c */
int turbo_load(struct vx_workspace *ws, const struct vx_base_dir *base, struct vx_arena *a,
	struct vx_err *err);

#endif
