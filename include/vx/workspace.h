/* Finding the workspace and its projects. Rules: docs/config.md, "Workspace root and projects".
 * Reads files, runs nothing. */
#ifndef VX_WORKSPACE_H
#define VX_WORKSPACE_H

#include "vx/plan.h"

struct vx_arena;
struct vx_err;

/* The workspace that claims `start` (absolute or relative to the cwd). *ret_root is canonical.
 * -ENOENT when there is none above it. */
int vx_workspace_find(const char *start, struct vx_arena *a, char **ret_root, struct vx_err *err);

/* Lists members, reads manifests, makes package edges, sorts projects by directory. Tasks stay
 * empty (config.h fills them), and settings too but for `turbo`: there is a turbo.json at the root
 * and no configuration of vx's own anywhere. The root is then called "//". */
int vx_workspace_load(
	const char *root, struct vx_arena *a, struct vx_workspace *ret, struct vx_err *err);

/* A broken configuration is an error only for who needs it: whoever asks what tasks or tags a
 * project has says so first. 0, or its error. */
int vx_workspace_need(const struct vx_workspace *ws, uint32_t project, struct vx_err *err);
int vx_workspace_need_all(const struct vx_workspace *ws, struct vx_err *err);

/* The project whose directory holds `dir` most narrowly; VX_MAP_NONE when none does. */
uint32_t vx_workspace_project_at(const struct vx_workspace *ws, const char *dir);

/* The one list of files that describe a project or the workspace: the enum vx_dir_files of a name, 0
 * for any other. No output removes one of them. */
uint32_t vx_dir_file_bit(const char *name, size_t len);
const char *vx_dir_file_name(uint32_t bit); /* a name of the bit; NULL none */

/* Semantic versions, node-semver's grammar: does `version` satisfy `range`? false also for what
 * does not parse. */
bool vx_semver_satisfies(const char *version, const char *range);

#endif
