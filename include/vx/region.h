/* The shared region: one sealed memfd that scheduler, fork server and workers map.
 *
 * Layout:   header | slot[0] | slot[1] | ... | arena
 * Each slot belongs to one worker and holds its state words, request ring, completion ring and
 * output ring, at offsets that are constants of the build. The arena holds descriptors; only the
 * scheduler allocates in it (vx/slab.h, bookkeeping in the scheduler's own memory), workers only
 * read.
 *
 *   vx_region_create   lays out and seals; the slots' rings are still untouched (4,096 slots cost
 *                      no memory)
 *   vx_slot_reset      makes a slot's rings ready and empty: before its first worker, and again
 *                      before each new one
 *   vx_slot_check      -EPROTO when the rings are not what this build makes: a worker's first look
 *                      at its slot, and the scheduler's before each use,
 *                      for the sizes lie in memory that a worker gone wild can write
 *
 * The header carries magic, layout version and the size of every part; vx_region_attach refuses on
 * any difference, and when the memfd is not sealed. It is sealed against shrinking, growing and
 * further seals once it is laid out. It is close-on-exec; the fork server gets it by number through
 * vx_spawn, workers by fork; a task never sees it (not mapped after exec).
 *
 * Sleeping. Whoever sleeps announces it in a word of its own, looks again, then sleeps; whoever
 * publishes does so first, then reads the word, and only makes a system call when it is set (a full
 * fence on both sides: vx_sleep_announce, vx_sleep_seen). One writer per field, named beside it.
 *
 * Errors: -errno of memfd_create, ftruncate, mmap; -EPROTO. Thread rule: none of its own. */
#ifndef VX_REGION_H
#define VX_REGION_H

#include "vx/desc.h"
#include "vx/ring.h"

#include <stdint.h>

#define VX_REGION_MAGIC 0x3152584756584756ULL
#define VX_REGION_VERSION 2U
#define VX_REQ_CAPACITY 8U
#define VX_DONE_CAPACITY 8U
#define VX_OUT_BYTES (256U << 10)

struct vx_region_header {
	uint64_t magic; /* creator, like all down to done_bytes */
	uint32_t version;
	uint32_t slots;
	uint64_t total_bytes;
	uint64_t slot_bytes;
	uint64_t slots_offset;
	uint64_t arena_offset, arena_bytes;
	uint32_t request_bytes, done_bytes; /* sizes of the ring items */
	/* scheduler: 1 while it waits on the pool's descriptor */
	_Alignas(VX_CACHE_LINE) _Atomic uint32_t scheduler_sleeps;
};

enum { VX_SLEEP_REQUEST = 1, VX_SLEEP_SPACE = 2 };

/* Per slot; the rings follow. */
struct vx_slot {
	/* worker: bits of VX_SLEEP_*: wake it for requests, for room in the output ring */
	_Alignas(VX_CACHE_LINE) _Atomic uint32_t worker_sleeps;
	/* fork server: pid of the worker, 0 none */
	_Alignas(VX_CACHE_LINE) _Atomic uint32_t worker_pid;
	/* fork server: counts workers of this slot; written before worker_pid is published */
	uint32_t generation;
	_Alignas(VX_CACHE_LINE) unsigned char rings[];
};

struct vx_region {
	int fd;
	void *base;
	/* as they were when it was mapped, whatever a peer has written over the header since */
	uint64_t total_bytes, arena_offset, arena_bytes;
};

int vx_region_create(uint32_t slots, uint64_t arena_bytes, struct vx_region *ret);
/* the region then owns fd; -EPROTO when magic, version, a size or the seals differ */
int vx_region_attach(int fd, struct vx_region *ret);
void vx_region_close(struct vx_region *r);
struct vx_region_header *vx_region_header(const struct vx_region *r);
struct vx_slot *vx_region_slot(const struct vx_region *r, uint32_t slot);
struct vx_ring *vx_slot_requests(struct vx_slot *s);
struct vx_ring *vx_slot_dones(struct vx_slot *s);
struct vx_bring *vx_slot_output(struct vx_slot *s);
/* NULL when out of bounds */
void *vx_region_arena(const struct vx_region *r, uint64_t offset, uint64_t bytes);
/* only while the slot has no worker */
void vx_slot_reset(struct vx_slot *s);
int vx_slot_check(struct vx_slot *s);

static inline void vx_sleep_announce(_Atomic uint32_t *word, uint32_t v)
{
	atomic_store_explicit(word, v, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

static inline uint32_t vx_sleep_seen(_Atomic uint32_t *word)
{
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(word, memory_order_relaxed);
}

#endif
