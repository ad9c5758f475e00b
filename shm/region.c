/* Layout, creation and checks of the shared region; the contract is vx/region.h. */
#include "vx/region.h"

#include "vx/assert.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE 4096ULL
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static size_t dones_offset(void)
{
	return vx_ring_bytes(VX_REQ_CAPACITY, sizeof(struct vx_request));
}

static size_t output_offset(void)
{
	return dones_offset() + vx_ring_bytes(VX_DONE_CAPACITY, sizeof(struct vx_done));
}

/* The one header that a region with these sizes may have. */
static void expected_header(uint32_t slots, uint64_t arena_bytes, struct vx_region_header *ret)
{
	memset(ret, 0, sizeof *ret);
	ret->magic = VX_REGION_MAGIC;
	ret->version = VX_REGION_VERSION;
	ret->slots = slots;
	ret->slot_bytes =
		page_up(sizeof(struct vx_slot) + output_offset() + vx_bring_bytes(VX_OUT_BYTES));
	ret->slots_offset = page_up(sizeof *ret);
	ret->arena_offset = ret->slots_offset + ret->slot_bytes * slots;
	ret->arena_bytes = arena_bytes;
	ret->total_bytes = page_up(ret->arena_offset + arena_bytes);
	ret->request_bytes = sizeof(struct vx_request);
	ret->done_bytes = sizeof(struct vx_done);
}

static int map(int fd, const struct vx_region_header *h, struct vx_region *ret)
{
	uint64_t bytes = h->total_bytes;
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);

	if (p == MAP_FAILED)
		return -errno;
	*ret = (struct vx_region){fd, p, bytes, h->arena_offset, h->arena_bytes};
	return 0;
}

int vx_region_create(uint32_t slots, uint64_t arena_bytes, struct vx_region *ret)
{
	struct vx_region_header h;
	int r, fd;

	vx_assert(slots > 0 && slots <= VX_MAX_SLOTS && arena_bytes <= UINT64_MAX / 4);
	expected_header(slots, arena_bytes, &h);
	fd = vx_memfd("vx-region");
	if (fd < 0)
		return fd;
	if (ftruncate(fd, (off_t)h.total_bytes) < 0 || fcntl(fd, F_ADD_SEALS, SEALS) < 0) {
		r = -errno;
		vx_close(fd);
		return r;
	}
	r = map(fd, &h, ret);
	if (r < 0) {
		vx_close(fd);
		return r;
	}
	memcpy(ret->base, &h, sizeof h);
	return 0;
}

int vx_region_attach(int fd, struct vx_region *ret)
{
	struct vx_region_header h, want;
	struct stat st;
	int seals = fcntl(fd, F_GET_SEALS);
	ssize_t n;

	if (seals < 0 || fstat(fd, &st) < 0)
		return errno == EINVAL ? -EPROTO : -errno;
	if ((seals & SEALS) != SEALS || st.st_size < (off_t)sizeof h)
		return -EPROTO;
	n = pread(fd, &h, sizeof h, 0);
	if (n != (ssize_t)sizeof h)
		return n < 0 ? -errno : -EPROTO;
	if (h.slots == 0 || h.slots > VX_MAX_SLOTS || h.arena_bytes > UINT64_MAX / 4)
		return -EPROTO;
	expected_header(h.slots, h.arena_bytes, &want);
	if (memcmp(&h, &want, offsetof(struct vx_region_header, scheduler_sleeps)) != 0 ||
		(uint64_t)st.st_size != want.total_bytes)
		return -EPROTO;
	return map(fd, &want, ret);
}

void vx_region_close(struct vx_region *r)
{
	if (r->base != NULL)
		munmap(r->base, r->total_bytes);
	vx_close(r->fd);
	*r = (struct vx_region){.fd = -1};
}

struct vx_region_header *vx_region_header(const struct vx_region *r)
{
	return r->base;
}

/* Offsets are computed from the mapping's checked sizes, never from what a peer may have written
 * since. */
struct vx_slot *vx_region_slot(const struct vx_region *r, uint32_t slot)
{
	struct vx_region_header h;

	expected_header(slot + 1, 0, &h);
	vx_assert(slot < VX_MAX_SLOTS && h.arena_offset <= r->total_bytes);
	return (struct vx_slot *)((char *)r->base + h.slots_offset + h.slot_bytes * slot);
}

struct vx_ring *vx_slot_requests(struct vx_slot *s)
{
	return (struct vx_ring *)(void *)s->rings;
}

struct vx_ring *vx_slot_dones(struct vx_slot *s)
{
	return (struct vx_ring *)(void *)(s->rings + dones_offset());
}

struct vx_bring *vx_slot_output(struct vx_slot *s)
{
	return (struct vx_bring *)(void *)(s->rings + output_offset());
}

void *vx_region_arena(const struct vx_region *r, uint64_t offset, uint64_t bytes)
{
	if (offset > r->arena_bytes || bytes > r->arena_bytes - offset)
		return NULL;
	return (char *)r->base + r->arena_offset + offset;
}

void vx_slot_reset(struct vx_slot *s)
{
	atomic_store_explicit(&s->worker_sleeps, 0, memory_order_relaxed);
	vx_ring_init(vx_slot_requests(s), VX_REQ_CAPACITY, sizeof(struct vx_request));
	vx_ring_init(vx_slot_dones(s), VX_DONE_CAPACITY, sizeof(struct vx_done));
	vx_bring_init(vx_slot_output(s), VX_OUT_BYTES);
}

int vx_slot_check(struct vx_slot *s)
{
	const struct vx_ring *q = vx_slot_requests(s), *d = vx_slot_dones(s);

	if (q->mask != VX_REQ_CAPACITY - 1 || q->item_bytes != sizeof(struct vx_request))
		return -EPROTO;
	if (d->mask != VX_DONE_CAPACITY - 1 || d->item_bytes != sizeof(struct vx_done))
		return -EPROTO;
	return vx_slot_output(s)->bytes == VX_OUT_BYTES ? 0 : -EPROTO;
}
