/* The shared region: one sealed memfd that scheduler, fork server and workers map.
 *
 * Layout:   header | slot[0] | slot[1] | ... | arena
 * Each slot belongs to one worker and holds its request ring, completion ring, output ring and state words. The arena holds descriptors; only
 * the scheduler allocates in it (slab allocator, bookkeeping in the scheduler's own memory), workers only read.
 *
 * The header carries magic, layout version and the size of every part; vx_region_attach refuses on any difference. The memfd is sealed against
 * shrinking, growing and further seals once it is laid out. It is close-on-exec; the fork server gets it by number through vx_spawn, workers by
 * fork; a task never sees it (not mapped after exec).
 *
 * One writer per field, named beside it. Untouched parts cost no memory. */
#ifndef VX_REGION_H
#define VX_REGION_H

#include "vx/desc.h"
#include "vx/ring.h"

#include <stdint.h>

#define VX_REGION_MAGIC 0x3152584756584756ULL
#define VX_REGION_VERSION 1U
#define VX_REQ_CAPACITY 8U
#define VX_DONE_CAPACITY 8U
#define VX_OUT_BYTES (256U << 10)

struct vx_region_header {
	uint64_t magic;        /* creator, like all of these */
	uint32_t version;
	uint32_t slots;
	uint64_t total_bytes;
	uint64_t slot_bytes;
	uint64_t slots_offset;
	uint64_t arena_offset, arena_bytes;
	uint32_t request_bytes, done_bytes; /* sizes of the ring items */
};

/* Per slot. The ring offsets are from the slot's start. */
struct vx_slot {
	_Alignas(VX_CACHE_LINE) _Atomic uint32_t worker_sleeps; /* worker: 1 while it sleeps for requests or ring space */
	_Alignas(VX_CACHE_LINE) _Atomic uint32_t worker_pid;    /* fork server: pid of the worker, 0 none */
	uint32_t generation;                                    /* fork server: counts workers of this slot; written before worker_pid is published */
	_Alignas(VX_CACHE_LINE) uint64_t requests, dones, output; /* creator: offsets of the rings */
};

struct vx_region {
	int fd;
	void *base;
	uint64_t total_bytes;
};

int vx_region_create(uint32_t slots, uint64_t arena_bytes, struct vx_region *ret);
int vx_region_attach(int fd, struct vx_region *ret); /* keeps fd; -EPROTO when magic, version or any size differs */
void vx_region_close(struct vx_region *r);
struct vx_region_header *vx_region_header(const struct vx_region *r);
struct vx_slot *vx_region_slot(const struct vx_region *r, uint32_t slot);
struct vx_ring *vx_slot_requests(struct vx_slot *s);
struct vx_ring *vx_slot_dones(struct vx_slot *s);
struct vx_bring *vx_slot_output(struct vx_slot *s);
void *vx_region_arena(const struct vx_region *r, uint64_t offset, uint64_t bytes); /* NULL when out of bounds */
void vx_slot_reset(struct vx_slot *s); /* empties the rings; only while the slot has no worker */

#endif
