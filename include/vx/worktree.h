/* What the rooms above ask of sched/worktree/ before and between keys: listing ahead of time, and
 * where its memory lies. */
#ifndef VX_WORKTREE_H
#define VX_WORKTREE_H

#include <stdbool.h>
#include <stddef.h>

struct vx_arena;

/* Where small blobs are kept between runs: vx_store_blob_get and _put behind two pointers, since
 * the key module knows no store. get: -ENOENT. */
struct vx_key_memory {
	void *self;
	int (*get)(void *self, const char *space, const void *key, size_t key_n, struct vx_arena *a,
		void **ret, size_t *ret_n);
	int (*put)(void *self, const char *space, const void *key, size_t key_n, const void *val,
		size_t n);
};

/* Lists the files of a workspace on threads of its own while the plan is still being made: it needs
 * nothing of the plan, and takes as long. Handed to the keyer (opts.ahead), which waits for it;
 * what could not be listed this way is listed by the keyer as ever. NULL where it would not pay.
 * With `index_alone` it goes no further than git's index, which is read while an earlier plan is
 * proven: the keyer, which knows what earlier runs have remembered, lists more cheaply.
 * vx_ahead_list: there is no such plan, the files are to be listed too. The caller frees it after
 * vx_keyer_new, or instead of it. */
struct vx_ahead;
struct vx_ahead *vx_ahead_start(const char *root, bool index_alone);
void vx_ahead_list(struct vx_ahead *h);
void vx_ahead_free(struct vx_ahead *h);

#endif
