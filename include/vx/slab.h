/* The slab allocator of the region's arena.
 *
 * Only the scheduler allocates; all bookkeeping lives in its own memory, so nothing in shared
 * memory can damage it. Five size classes (4 KiB to 1 MiB, VX_MAX_DESC_BYTES) have an area of
 * `slabs` slabs each. A task in flight holds one slab and there are at most `slabs` of those, so no
 * class can run dry and nothing fragments. A freed slab is the next one handed out: its pages are
 * there already.
 *
 *   vx_slabs_bytes   how large the arena must be (virtual: untouched slabs cost nothing)
 *   vx_slab_alloc    0 and an offset into the arena; -E2BIG above VX_MAX_DESC_BYTES, -ENOMEM when
 *                    the class is used up
 *   vx_slab_free     the offset that alloc gave, once
 *
 * Thread rule: one thread. */
#ifndef VX_SLAB_H
#define VX_SLAB_H

#include <stddef.h>
#include <stdint.h>

#define VX_SLAB_CLASSES 5U
#define VX_SLAB_MIN_BYTES 4096U

struct vx_slabs {
	uint32_t slabs; /* per class */
	/* handed out at least once: the others were never touched */
	uint32_t used[VX_SLAB_CLASSES];
	uint32_t n_free[VX_SLAB_CLASSES];
	uint32_t *free[VX_SLAB_CLASSES]; /* stacks of indexes */
};

uint64_t vx_slabs_bytes(uint32_t slabs);
void vx_slabs_init(struct vx_slabs *s, uint32_t slabs);
int vx_slab_alloc(struct vx_slabs *s, size_t bytes, uint64_t *ret_offset);
void vx_slab_free(struct vx_slabs *s, uint64_t offset);
void vx_slabs_done(struct vx_slabs *s);

#endif
