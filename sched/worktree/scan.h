/* The scan: a repository's worktree against its index and ignore rules, on several threads.
 *
 * Answers what `git status -uall` would: which tracked files are there, with ids where the index
 * proves them; which untracked ones git does not ignore. Untracked files below a node_modules are
 * left out (no input set has them), and so is what lies in .vx. Repositories inside are reported,
 * not entered. */
#ifndef VX_SCAN_H
#define VX_SCAN_H

#include "../git/index.h"
#include "../git/repository.h"
#include "../git/ignore.h"
#include "dircache.h"

struct vx_rule_memo;

struct vx_repo {
	const char *mount;  /* where its worktree lies in the workspace; "" also for one that begins
			       further up */
	const char *prefix; /* where the workspace lies in its worktree; "" its top */
	struct vx_gitrepo git;
	struct vx_gitindex index;
	/* no repository that git lists for the workspace records it: a task may have made it */
	bool foreign;
	/* foreign, and not understood: every file in it is listed, ignored ones and node_modules
	 * too, and counts as tracked */
	bool whole;
	int top_fd;                            /* its worktree */
	const struct vx_rules *ignore, *attrs; /* what holds in all of it */
	/* when one of the files that attrs comes from was last changed */
	uint64_t attrs_ns;
	uint64_t attr_places;       /* vx_scan_place of each of those files */
	struct vx_rule_memo *rules; /* for listings after the first; NULL none */
};

struct vx_scan_opts {
	uint32_t threads;
	/* threads - 1 arenas for what other threads list; NULL: one thread */
	struct vx_arena *extra;
	const struct vx_wtmem *memory; /* of the last run; NULL none */
	const struct vx_wtseen *seen;  /* of this run; NULL none */
	struct vx_rule_memo *rules;    /* of this repository; NULL none */
	/* vx_scan_place of each .gitattributes met is added; NULL: nobody asks */
	uint64_t *ret_attr_places;
	struct vx_wtmem_writer *writer; /* takes the directories listed; NULL none */
};

/* Lists `dir` (relative to the repository's worktree; it may name a file) into `out`, unsorted,
 * entries in `a`; appends the workspace-relative directories of repositories found to `nested`. 0;
 * 1 not understood (`why`); -errno. */
int vx_scan(const struct vx_repo *r, const char *dir, const struct vx_scan_opts *o,
	struct vx_arena *a, struct vx_files *out, struct vx_strlist *nested, char *why, size_t cap);
/* Is it certain, by looks at directories and files of rules alone, that a scan of `dir` would emit
 * the paths that the first one of this run (`seen`, and the repository's memo of rules) emitted?
 * VX_SAME: yes. Where it is no directory now, only what the way to it says is certain:
 * VX_SAME_FILE, a file or a link, which is emitted if it was before; VX_SAME_GONE, nothing. 0: not
 * known. Any thread. */
#define VX_SAME 1
#define VX_SAME_FILE 2
#define VX_SAME_GONE 3
int vx_scan_same(const struct vx_repo *r, const char *dir, const struct vx_wtseen *seen);
/* A number for a path, of this format of memories for ever: sums of them tell sets apart. */
uint64_t vx_scan_place(const char *path);
/* Would an untracked path (relative to the worktree) be ignored? 0, 1 not understood, -errno. */
int vx_scan_ignored(const struct vx_repo *r, const char *path, bool *ret, char *why, size_t cap);

#endif
