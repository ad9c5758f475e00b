/* Where the list of files comes from: tracked ones and untracked ones that git does not ignore,
 * submodules and embedded repositories by their own indexes. Two makers, one answer: our own reader
 * of git's index with our own scan, and git itself where the reader does not suffice.
 *
 * git is started in the workspace's repository and in those that its index records (submodules, and
 * theirs) alone. Any other repository may be what a task left behind: our reader lists it, believes
 * no id of its index, and where it does not understand it lists every file in it and says so.
 *
 * vx_source_list may be called from any thread; the entries it makes live in the arena that it is
 * given. */
#ifndef VX_FILE_LIST_H
#define VX_FILE_LIST_H

#include "files.h"

#include "vx/strs.h"
#include "vx/worktree.h"

struct vx_source;
struct vx_err;

/* `cancel_fd`: readable while git lists: it is killed, -ECANCELED; -1 none. */
int vx_source_open(const char *root, uint32_t threads, int cancel_fd,
	const struct vx_key_memory *memory, struct vx_source **ret, struct vx_err *err);
/* The same before it is known where anything is remembered: by our own reader alone, nothing looked
 * up, and nothing listed before vx_source_list_ahead. Any thread. -EAGAIN: to be opened as ever. */
int vx_source_ahead(const char *root, uint32_t threads, struct vx_source **ret);
int vx_source_list_ahead(struct vx_source *s);
/* What vx_source_ahead opened, listed or not, becomes what vx_source_open would have made; before
 * its first list. */
int vx_source_adopt(
	struct vx_source *s, int cancel_fd, const struct vx_key_memory *memory, struct vx_err *err);
struct vx_ahead;
struct vx_source *vx_ahead_take(struct vx_ahead *h); /* waits; NULL: to be opened as ever */
/* One whose list is given: the files of a commit, each with its id, sorted. `root` is where the
 * few of them lie that are read (and is not the source of any list); `files` is borrowed. */
int vx_source_given(const char *root, enum vx_oid_kind kind, bool trust_exec,
	const struct vx_files *files, struct vx_source **ret);
void vx_source_close(struct vx_source *s);
/* Appends what `dir` holds ("" the whole workspace; it may name a file) to `out`: only what is on
 * disk as a file or a link, sorted. An id is given only where the index entry is provably clean. A
 * directory that is not there holds nothing. */
int vx_source_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out,
	struct vx_err *err);
/* Would a list of `dir` name what the first list of the source named there, as far as looks at
 * directories tell? As vx_scan_same (scan.h). Any thread. */
int vx_source_same(struct vx_source *s, const char *dir);
/* Would git ignore this path, which it does not track? */
int vx_source_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err);
/* Keeps what the first list and the identities in `table` have shown for the next run. */
int vx_source_remember(struct vx_source *s, const struct vx_files *table);
/* Takes what a list came from, piece by piece. Paths are relative to the root but for `outside`,
 * where they are absolute. */
struct vx_list_facts {
	void *self;
	uint64_t dev; /* of the root; a list that spans several file systems has no facts */
	void (*directory)(void *self, const char *path, const struct vx_fstat *st);
	void (*look)(void *self, const char *path); /* at it as it is now */
	void (*outside)(void *self, const char *path);
};
/* False: it cannot be said what the first list came from. */
bool vx_source_facts(const struct vx_source *s, const struct vx_list_facts *to);
bool vx_source_tracked(const struct vx_source *s, const char *path); /* any thread */
/* What the index of the repository around says of a path. */
struct vx_recorded {
	uint32_t mode; /* 0160000: a submodule */
	struct vx_oid oid;
	bool absent; /* left out of a sparse checkout */
	bool clean;  /* and the file on disk is provably the one that was recorded */
};
/* False: it does not record it. Where git itself lists, it is known of submodules and of what is
 * absent alone. */
bool vx_source_recorded(struct vx_source *s, const char *path, struct vx_recorded *ret);
/* Did the list find a repository whose worktree is this directory? */
bool vx_source_has_repository(const struct vx_source *s, const char *path);
/* Does git track a directory, or anything below it? 1, 0, -errno. */
int vx_source_tracks_below(struct vx_source *s, const char *dir, struct vx_err *err);
enum vx_oid_kind vx_source_kind(const struct vx_source *s);
bool vx_source_trusts_exec(const struct vx_source *s);
int vx_source_fd(const struct vx_source *s);          /* the root; the source's own */
const char *vx_source_why(const struct vx_source *s); /* "index", or "git: <reason>" */
/* What the first list met and a user must know: a line each. Lives as long as the source. */
struct vx_strs vx_source_said(const struct vx_source *s);
uint32_t vx_source_gits(const struct vx_source *s);  /* git processes so far */
uint32_t vx_source_lists(const struct vx_source *s); /* calls of vx_source_list so far */

#endif
