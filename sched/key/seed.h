/* Keys of an earlier run and when one may be taken over: the keyer's side of a snapshot, and what
 * the two say to each other.
 *
 * A key is a function of the plan (which the snapshot proves), the files of its project, the fixed
 * files, the environment that keys name, and upstream keys. Where digests of all of these are
 * equal, so is the key. Tasks that fold anything else (workspaceFiles, probes, ignored files) are
 * never taken over. */
#ifndef VX_SEED_H
#define VX_SEED_H

#include "image.h"

/* snapshot.c */
/* of a plan that was taken; NULL none */
const struct vx_seed *vx_snapshot_seed(const struct vx_snapshot *s);
/* is this plan of a kind that is kept? */
bool vx_snapshot_keeps(const struct vx_snapshot *s);
/* Had directories changed in a way that does not matter, and not again since? Then the next run has
 * less to look at when it is kept anew. */
bool vx_snapshot_stale(const struct vx_snapshot *s);
int vx_snapshot_keep(struct vx_snapshot *s, const struct vx_seed *seed);
/* Every fact of a plan that was taken, until `each` returns false. False also when none was
 * taken. */
struct vx_fact;
bool vx_snapshot_each_fact(
	const struct vx_snapshot *s, bool (*each)(void *arg, const struct vx_fact *f), void *arg);

/* seed.c */
struct vx_keyer;
struct vx_seed_state;
struct record;
/* files and fixed files have been read */
void vx_seed_begin(struct vx_keyer *k);
/* fills the stability of all tasks, if it is known */
bool vx_seed_stable(struct vx_keyer *k, uint8_t *ret);
/* r's key is the one of the earlier run */
bool vx_seed_take(struct vx_keyer *k, uint32_t task, struct record *r);
/* variables that keys may fold */
void vx_seed_env(const struct vx_keyer *k, struct vx_strlist *ret_names, struct vx_arena *a,
	bool *ret_whole);
/* with their values, now */
void vx_seed_env_digest(
	struct vx_strs names, bool whole, struct vx_strs forwarded, struct vx_digest *ret);
/* a key has been made */
void vx_seed_note(struct vx_keyer *k, uint32_t task);
int vx_seed_keep(struct vx_keyer *k, bool over);
void vx_seed_free(struct vx_keyer *k);
/* same plan, arrays in place */
void vx_seed_copy(
	struct vx_seed *to, const struct vx_seed *from, uint32_t n_tasks, uint32_t n_projects);

#endif
