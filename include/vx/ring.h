/* Single-producer single-consumer rings in shared memory.
 *
 * Two shapes share one idea: a fixed power-of-two area, two monotonic 64-bit cursors on cache lines
 * of their own, the producer writes the item and then publishes the tail (release), the consumer
 * reads the tail (acquire), copies the item out, and then publishes the head. No lock: a process
 * that dies in the middle leaves at most one unpublished item, which nobody sees.
 *
 *   vx_ring   items of one fixed size          (requests, completions)
 *   vx_bring  frames of a header and bytes     (captured output)
 *
 * Who writes what: `tail` and the items only the producer; `head` only the consumer; `mask`,
 * `item_bytes` only the creator before anyone attaches. A reader trusts nothing: cursors that
 * differ by more than the capacity, or a frame length beyond what is published, are -EBADMSG, and
 * the peer is treated as lost. The creator's fields are compared with the build's own constants
 * when a slot is attached (vx_slot_check in region.h). The idea is that of PostgreSQL's shm_mq and
 * of every kernel ring; nothing in shared memory is a pointer.
 *
 * Sleeping is not the ring's business (eventfds and a flag, see region.h). Order: publish, then
 * wake; announce sleep, look again, then sleep. */
#ifndef VX_RING_H
#define VX_RING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define VX_CACHE_LINE 64

struct vx_ring {
	_Alignas(VX_CACHE_LINE) _Atomic uint64_t tail; /* producer */
	_Alignas(VX_CACHE_LINE) _Atomic uint64_t head; /* consumer */
	_Alignas(VX_CACHE_LINE) uint32_t mask;         /* creator: capacity - 1, in items */
	uint32_t item_bytes;                           /* creator */
	_Alignas(VX_CACHE_LINE) unsigned char items[]; /* producer */
};

/* size of the whole, a multiple of the cache line; capacity a power of two */
size_t vx_ring_bytes(uint32_t capacity, uint32_t item_bytes);
void vx_ring_init(struct vx_ring *r, uint32_t capacity, uint32_t item_bytes);
int vx_ring_push(struct vx_ring *r, const void *item); /* 0, -EAGAIN when full, -EBADMSG */
int vx_ring_pop(struct vx_ring *r, void *ret_item);    /* 1, 0 when empty, -EBADMSG */
bool vx_ring_empty(const struct vx_ring *r);

/* A frame: which task attempt wrote which bytes to which stream, and when. Frames start at
 * multiples of 8 bytes and wrap as bytes do. */
struct vx_frame {
	uint32_t task; /* the scheduler's task index */
	uint16_t attempt;
	uint8_t stream;  /* 1 stdout, 2 stderr */
	uint8_t flags;   /* 0 */
	uint32_t length; /* bytes that follow, at most VX_FRAME_MAX */
	uint32_t pad;    /* 0 */
	uint64_t ns;     /* CLOCK_MONOTONIC when it was read */
};
#define VX_FRAME_MAX 32768U

struct vx_bring {
	_Alignas(VX_CACHE_LINE) _Atomic uint64_t tail;
	_Alignas(VX_CACHE_LINE) _Atomic uint64_t head;
	_Alignas(VX_CACHE_LINE) uint32_t bytes; /* creator: capacity, a power of two */
	_Alignas(VX_CACHE_LINE) unsigned char data[];
};

size_t vx_bring_bytes(uint32_t capacity);
void vx_bring_init(struct vx_bring *r, uint32_t capacity);
/* payload bytes that fit in one frame now; 0 also when corrupt */
size_t vx_bring_space(const struct vx_bring *r);
/* published and not yet taken, headers included */
size_t vx_bring_used(const struct vx_bring *r);
/* 0, -EAGAIN, -EBADMSG */
int vx_bring_push(struct vx_bring *r, const struct vx_frame *f, const void *bytes);
/* ret_bytes holds VX_FRAME_MAX; 1, 0, -EBADMSG */
int vx_bring_pop(struct vx_bring *r, struct vx_frame *ret_frame, void *ret_bytes);

#endif
