/* Inside the workspace module: which directories are members. */
#ifndef VX_MEMBERS_H
#define VX_MEMBERS_H

#include "vx/facts.h"
#include "vx/plan.h"

struct vx_arena;
struct vx_err;

struct vx_member {
	const char *dir; /* relative to the root, and canonical unless via_link */
	uint32_t files;  /* enum vx_dir_files */
	/* reached through a symlink that leads out of the workspace, or to where no input is taken
	 * from */
	bool via_link;
};

struct vx_members {
	struct vx_member *v;
	uint32_t n, cap;
	uint32_t root_files;
	struct vx_strlist warnings;
};

/* The patterns of a workspace, compiled: those that add and those (`!`) that subtract. */
struct vx_member_globs;
int vx_member_globs_compile(struct vx_strs patterns, const char *where, struct vx_arena *a,
	struct vx_member_globs **ret, struct vx_err *err);

/* Lexically: is `dir` (root-relative) or a directory above it a member? */
bool vx_member_globs_claim(const struct vx_member_globs *g, const char *dir);

/* Is `dir` one that the patterns take as a member, if it has a manifest? */
bool vx_member_globs_match(const struct vx_member_globs *g, const char *dir);

/* Walks. Directories with a package.json, sorted by path, the root ("." ) left out; node_modules,
 * .git and .vx never entered; a symlinked directory that is also reached by its own path counts
 * once. Directory names live in `keep`. */
int vx_members_list(const struct vx_base_dir *root, const struct vx_member_globs *g,
	struct vx_arena *keep, struct vx_arena *scratch, struct vx_members *ret,
	struct vx_err *err);

#endif
