/* In which paths do two states of the workspace differ? Without `git diff`, which runs the clean
 * filter of a file whose stat proves nothing.
 *
 * The state of a commit is what `git ls-tree` lists, submodules by the commit that they are at. The
 * state of the worktree is what the keys of tasks see (sched/worktree): tracked files, untracked
 * ones that are not ignored, those of submodules and embedded repositories, each with the id of its
 * bytes on disk. Ignored files, .vx and untracked node_modules are in neither.
 *
 * Bytes on disk differ from the blob where an attribute converts them (text, eol, filter ...).
 * Such a file has not changed where the index proves it clean and records the id that the commit
 * has; else it counts as changed. Where a .gitattributes changed, so has every file that the old or
 * the new one converts. Where a submodule's commit cannot be read, every file in it has. */
#ifndef VX_WORKSPACE_TREEDIFF_H
#define VX_WORKSPACE_TREEDIFF_H

#include "../git/git.h"

#include "vx/arena.h"
#include "vx/strs.h"

struct vx_err;

/* Appends the paths, relative to `root`, in which commit `to` (NULL: the worktree) differs from
 * commit `from`; unsorted. Both are full ids. -errno. */
int vx_treediff(const struct vx_git *g, const char *root, const char *from, const char *to,
	struct vx_arena *a, struct vx_strlist *paths, struct vx_err *err);

#endif
