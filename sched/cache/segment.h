/* Segments: small artifacts one after another in a file, because making a file costs several times
 * what writing a small one does.
 *
 *   <cache>/v1/s/<16 hex digits>.tar.zst     each artifact is a zstd frame of its own, so `tar
 *                                            --zstd -itvf` lists a whole segment
 *
 * Where an artifact lies is a row of its own, its place: segment, offset, size, by the artifact's
 * digest. One store object appends to a segment at a time, the one that holds its lock (flock), and
 * it holds it until the store is closed, when all its rows are committed or given up. The next one
 * goes on where that one stopped; `segment` in the database `meta` says which to try, and how long
 * it is at least. Full, held by another, gone or shorter than its places say (the power failed,
 * somebody cut it): a new one is begun. So no two places overlap.
 *
 * Bytes first, then the place, in the transaction of the row that needs it. What no place covers is
 * a gap: a save that failed or died, an artifact that went. Nobody reads a gap. vx_segments_reclaim
 * gives its blocks back to the disk (fallocate(2), FALLOC_FL_PUNCH_HOLE) and leaves a skippable
 * frame (RFC 8878, 3.1.2) that covers it, so that what follows can still be read; a gap at the end
 * is cut off, a segment without places is removed. In a segment that somebody appends to, only the
 * places that were given up are touched: the rest may be about to become places. Where holes cannot
 * be made a gap stays until its segment goes.
 *
 * One process reclaims at a time, under a lock of the directory that it has had since before it
 * gave places up: what another one cuts off meanwhile is appended to again, and then a given-up
 * place would be somebody's bytes. Who does not get it leaves gaps to the next. Nobody reclaims by
 * an index that is not the store's any more.
 *
 * A reader may be overtaken by all that: what it reads is checked by its digest, as ever. */
#ifndef VX_CACHE_SEGMENT_H
#define VX_CACHE_SEGMENT_H

#include "index.h"

#include "vx/hash.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_store;

#define VX_SEGMENT_BYTES (256ULL << 20)         /* a segment this long is full */
#define VX_SEGMENT_ARTIFACT_BYTES (64ULL << 10) /* a larger artifact is a file of its own */
#define VX_SEGMENT_PATH 32

struct vx_place {
	uint64_t segment; /* 0: no place; the artifact is a file of its own, or is none */
	uint64_t off, bytes;
};

/* "s/0123456789abcdef.tar.zst", relative to <cache>/v1. */
void vx_segment_path(uint64_t segment, char ret[VX_SEGMENT_PATH]);

/* -ENOENT */
int vx_place_get(struct vx_tx *t, const struct vx_digest *artifact, struct vx_place *ret);
int vx_place_put(struct vx_tx *t, const struct vx_digest *artifact, const struct vx_place *p);
int vx_place_del(struct vx_tx *t, const struct vx_digest *artifact);
/* Every place; rows that do not check are passed over. A non-zero return ends it. */
int vx_place_each(struct vx_tx *t,
	int (*fn)(void *arg, const struct vx_digest *artifact, const struct vx_place *p),
	void *arg);

/* In a read transaction of its own. -ENOENT. */
int vx_place_find(struct vx_store *s, const struct vx_digest *artifact, struct vx_place *ret);
/* The segment that a commit last put a place in (0 none), and where its places end at least. */
uint64_t vx_segment_last(struct vx_store *s, uint64_t *ret_end);
int vx_segment_set_last(struct vx_tx *t, uint64_t segment, uint64_t end);
/* Where its places end, from the places themselves. */
int vx_segment_end(struct vx_store *s, uint64_t segment, uint64_t *ret);
/* Does the place hold the bytes of this artifact? Also false when that cannot be found out. */
bool vx_place_whole(
	const struct vx_store *s, const struct vx_place *p, const struct vx_digest *artifact);

/* How long is each segment that places name? For many places: one look at each segment. Zeroed is
 * new; free with vx_segment_sizes_free. */
struct vx_segment_sizes {
	struct vx_segment_size {
		uint64_t segment, bytes;
	} * v;
	uint32_t n, cap;
};
/* Could the place be read: is there a regular file, and long enough? */
bool vx_segment_holds(
	const struct vx_store *s, struct vx_segment_sizes *z, const struct vx_place *p);
void vx_segment_sizes_free(struct vx_segment_sizes *z);

/* Gaps of segments that nobody appends to, and which have not been reclaimed yet: their number and
 * bytes. */
int vx_segments_gaps(struct vx_store *s, uint64_t *ret_n, uint64_t *ret_bytes);
/* To be held from before places are given up until they are reclaimed: a descriptor to close.
 * -errno: another process reclaims, or there are no segments. */
int vx_segments_lock(struct vx_store *s);
/* Reclaims them, and the `gone` places (whose rows are deleted and committed) wherever they are.
 * ret_*: the gaps that there were beside `gone`. */
int vx_segments_reclaim(struct vx_store *s, const struct vx_place *gone, uint32_t n_gone,
	uint64_t *ret_n, uint64_t *ret_bytes);

#endif
