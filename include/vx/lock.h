/* vx-lock.json: the resolved workspace as one file. `vx lock` writes it, `--frozen` reads it and
 * evaluates and reads no manifest and no configuration, `vx lock --check` writes it anew in memory
 * and compares.
 *
 * It holds what planning found: kind, settings, projects with their edges and tags, and every task
 * resolved (defaults merged, scripts and evaluated configurations taken in), in a fixed order, so
 * that equal workspaces give equal bytes. What git and the files themselves say is not in it. */
#ifndef VX_LOCK_H
#define VX_LOCK_H

#include "vx/plan.h"

struct vx_arena;
struct vx_buf;
struct vx_err;

#define VX_LOCK_FILE "vx-lock.json"

void vx_lock_write(const struct vx_workspace *ws, struct vx_buf *out);

/* Fills *ret from root/vx-lock.json as vx_workspace_load and vx_config_load would. -ENOENT: there
 * is none; -EINVAL: broken, or of another version of vx. */
int vx_lock_read(
	const char *root, struct vx_arena *a, struct vx_workspace *ret, struct vx_err *err);

#endif
