/* Finding a repository and reading what of its configuration bears on file lists, without running
 * git. Formats: gitrepository-layout(5), git-config(1).
 *
 * Everything is either understood as git understands it, or refused with a reason (then git itself
 * is asked). Nothing is executed. */
#ifndef VX_GIT_REPOSITORY_H
#define VX_GIT_REPOSITORY_H

#include "vx/arena.h"
#include "vx/hash.h"
#include "vx/strs.h"

#include <stdbool.h>
#include <stddef.h>

struct vx_gitrepo {
	const char *worktree, *gitdir, *commondir; /* absolute, canonical */
	enum vx_oid_kind kind;
	bool trust_exec; /* core.fileMode */
	/* core.trustctime=false or core.checkStat=minimal: no stat proves anything */
	bool weak_stat;
	bool converts_all; /* core.autocrlf: any file may differ from its blob */
	/* core.excludesFile and core.attributesFile, or their defaults; may not exist */
	const char *excludes, *attributes;
	const char *system_attributes; /* NULL: not to be read */
	/* every file that was read or found absent, absolute: what a memory of this depends on */
	struct vx_strlist seen;
};

/* The repository whose worktree holds `dir` (absolute, canonical), the workspace's root. 0; 1 not
 * understood (`why`); -ENOENT none. */
int vx_gitrepo_find(
	const char *dir, struct vx_arena *a, struct vx_gitrepo *ret, char *why, size_t cap);
/* The repository whose worktree is exactly `dir`, in the workspace at `root`. As above; -ENOENT
 * also for a `.git` that is not one. */
int vx_gitrepo_at(const char *dir, const char *root, struct vx_arena *a, struct vx_gitrepo *ret,
	char *why, size_t cap);
/* Is `dir` the worktree of a repository? As git decides it for directories that it finds. */
bool vx_gitrepo_is(const char *dir);

#endif
