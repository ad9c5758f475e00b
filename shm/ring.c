/* Single-producer single-consumer rings; see vx/ring.h for who writes what and in which order. */
#include "vx/ring.h"

#include "vx/assert.h"

#include <errno.h>
#include <string.h>

static bool power_of_two(uint32_t v)
{
	return v != 0 && (v & (v - 1)) == 0;
}

static size_t line_up(size_t n)
{
	return (n + VX_CACHE_LINE - 1) & ~(size_t)(VX_CACHE_LINE - 1);
}

size_t vx_ring_bytes(uint32_t capacity, uint32_t item_bytes)
{
	vx_assert(power_of_two(capacity));
	return sizeof(struct vx_ring) + line_up((size_t)capacity * item_bytes);
}

void vx_ring_init(struct vx_ring *r, uint32_t capacity, uint32_t item_bytes)
{
	vx_assert(power_of_two(capacity) && item_bytes > 0);
	r->mask = capacity - 1;
	r->item_bytes = item_bytes;
	atomic_store_explicit(&r->head, 0, memory_order_relaxed);
	atomic_store_explicit(&r->tail, 0, memory_order_release);
}

int vx_ring_push(struct vx_ring *r, const void *item)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	/* Acquire: the consumer has read the slot before it gave it back. */
	uint64_t used = tail - atomic_load_explicit(&r->head, memory_order_acquire);
	uint32_t mask = r->mask;

	if (used > (uint64_t)mask + 1)
		return -EBADMSG;
	if (used == (uint64_t)mask + 1)
		return -EAGAIN;
	memcpy(r->items + (size_t)(tail & mask) * r->item_bytes, item, r->item_bytes);
	atomic_store_explicit(&r->tail, tail + 1, memory_order_release);
	return 0;
}

int vx_ring_pop(struct vx_ring *r, void *ret_item)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&r->tail, memory_order_acquire) - head;
	uint32_t mask = r->mask;

	if (used == 0)
		return 0;
	if (used > (uint64_t)mask + 1)
		return -EBADMSG;
	memcpy(ret_item, r->items + (size_t)(head & mask) * r->item_bytes, r->item_bytes);
	atomic_store_explicit(&r->head, head + 1, memory_order_release);
	return 1;
}

bool vx_ring_empty(const struct vx_ring *r)
{
	return atomic_load_explicit(&r->tail, memory_order_acquire) ==
	       atomic_load_explicit(&r->head, memory_order_acquire);
}

/* Frames take a multiple of 8 bytes, so that the cursors stay aligned. */
static uint64_t frame_bytes(uint32_t length)
{
	return (sizeof(struct vx_frame) + (uint64_t)length + 7) & ~7ULL;
}

size_t vx_bring_bytes(uint32_t capacity)
{
	vx_assert(power_of_two(capacity) && capacity >= VX_CACHE_LINE);
	return sizeof(struct vx_bring) + capacity;
}

void vx_bring_init(struct vx_bring *r, uint32_t capacity)
{
	vx_assert(power_of_two(capacity) && capacity >= VX_CACHE_LINE);
	r->bytes = capacity;
	atomic_store_explicit(&r->head, 0, memory_order_relaxed);
	atomic_store_explicit(&r->tail, 0, memory_order_release);
}

size_t vx_bring_used(const struct vx_bring *r)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_acquire);

	return (size_t)(atomic_load_explicit(&r->tail, memory_order_acquire) - head);
}

size_t vx_bring_space(const struct vx_bring *r)
{
	uint64_t used = vx_bring_used(r);
	uint64_t room = used > r->bytes ? 0 : r->bytes - used;

	if (room <= sizeof(struct vx_frame))
		return 0;
	room -= sizeof(struct vx_frame);
	return room > VX_FRAME_MAX ? VX_FRAME_MAX : (size_t)room;
}

static void put(struct vx_bring *r, uint64_t at, const void *p, size_t n)
{
	size_t from = (size_t)(at & (r->bytes - 1)), first = r->bytes - from;

	if (first > n)
		first = n;
	memcpy(r->data + from, p, first);
	memcpy(r->data, (const char *)p + first, n - first);
}

static void get(const struct vx_bring *r, uint64_t at, void *ret, size_t n)
{
	size_t from = (size_t)(at & (r->bytes - 1)), first = r->bytes - from;

	if (first > n)
		first = n;
	memcpy(ret, r->data + from, first);
	memcpy((char *)ret + first, r->data, n - first);
}

int vx_bring_push(struct vx_bring *r, const struct vx_frame *f, const void *bytes)
{
	uint64_t tail = atomic_load_explicit(&r->tail, memory_order_relaxed);
	uint64_t used = tail - atomic_load_explicit(&r->head, memory_order_acquire);
	uint64_t need = frame_bytes(f->length);

	vx_assert(f->length <= VX_FRAME_MAX);
	if (used > r->bytes)
		return -EBADMSG;
	if (need > r->bytes - used)
		return -EAGAIN;
	put(r, tail, f, sizeof *f);
	if (f->length > 0)
		put(r, tail + sizeof *f, bytes, f->length);
	atomic_store_explicit(&r->tail, tail + need, memory_order_release);
	return 0;
}

int vx_bring_pop(struct vx_bring *r, struct vx_frame *ret_frame, void *ret_bytes)
{
	uint64_t head = atomic_load_explicit(&r->head, memory_order_relaxed);
	uint64_t used = atomic_load_explicit(&r->tail, memory_order_acquire) - head;
	struct vx_frame f;

	if (used == 0)
		return 0;
	if (used > r->bytes || used < sizeof f)
		return -EBADMSG;
	get(r, head, &f, sizeof f);
	if (f.length > VX_FRAME_MAX || frame_bytes(f.length) > used)
		return -EBADMSG;
	get(r, head + sizeof f, ret_bytes, f.length);
	*ret_frame = f;
	atomic_store_explicit(&r->head, head + frame_bytes(f.length), memory_order_release);
	return 1;
}
