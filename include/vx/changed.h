/* What changed, by git: the paths behind `[ref]` filters, and the commit that --affected compares
 * with (affected.h).
 *
 * git finds revisions and lists the trees of commits; it never compares a file, which could run a
 * filter (sched/git/git.h). The worktree is what keys see (sched/workspace/treediff.h). Every
 * answer is for the working tree, untracked files that are not ignored included, unless a range
 * [a...b] names its own end. Paths are relative to the workspace root, of files in submodules too;
 * changes outside of it are left out. */
#ifndef VX_CHANGED_H
#define VX_CHANGED_H

#include "vx/select.h"

struct vx_changed {
	struct vx_strs paths; /* sorted, unique */
	const char *since;    /* what it was compared with, as a user would write it */
	bool everything;      /* a root lockfile or the workspace's own files are among them */
	const char *everything_path;
};

/* `from`: a revision; the comparison is from its merge base with HEAD (or `to`). `to` NULL: the
 * working tree. NULL `from`: the base of --affected: ws->settings.affected_base, else
 * TURBO_SCM_BASE, GITHUB_BASE_REF (of origin, else a branch here), origin/HEAD, origin/main,
 * origin/master, main, master (the first that is not HEAD), else HEAD~1. Errors: not a repository
 * (or git's own refusal, in git's words), an unknown revision, a shallow clone that does not
 * hold the base (says how to fetch it). */
int vx_changed_paths(const struct vx_workspace *ws, const char *from, const char *to,
	struct vx_arena *a, struct vx_changed *ret, struct vx_err *err);

/* Of that the commit alone: what --affected compares the working tree with, and how a user would
 * write it. */
int vx_changed_base(const struct vx_workspace *ws, const char *from, struct vx_arena *a,
	const char **ret_since, const char **ret_commit, struct vx_err *err);

/* Does a change of this root-relative path concern every project? */
bool vx_changed_concerns_all(const struct vx_workspace *ws, const char *path);

#endif
