/* Slabs of the shared arena. Class c has slabs of 4 KiB << 2c, one area after the other. */
#include "vx/slab.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdlib.h>

_Static_assert(((uint64_t)VX_SLAB_MIN_BYTES << (2 * (VX_SLAB_CLASSES - 1))) == VX_MAX_DESC_BYTES,
	"the largest slab holds the largest descriptor");

static uint64_t class_bytes(uint32_t c)
{
	return (uint64_t)VX_SLAB_MIN_BYTES << (2 * c);
}

static uint64_t class_offset(uint32_t slabs, uint32_t c)
{
	uint64_t at = 0;

	for (uint32_t i = 0; i < c; i++)
		at += class_bytes(i) * slabs;
	return at;
}

uint64_t vx_slabs_bytes(uint32_t slabs)
{
	return class_offset(slabs, VX_SLAB_CLASSES);
}

void vx_slabs_init(struct vx_slabs *s, uint32_t slabs)
{
	vx_assert(slabs > 0 && slabs <= VX_MAX_SLOTS);
	*s = (struct vx_slabs){.slabs = slabs};
	for (uint32_t c = 0; c < VX_SLAB_CLASSES; c++)
		s->free[c] = vx_xcalloc(slabs, sizeof *s->free[c]);
}

int vx_slab_alloc(struct vx_slabs *s, size_t bytes, uint64_t *ret_offset)
{
	uint32_t c = 0, i;

	if (bytes > VX_MAX_DESC_BYTES)
		return -E2BIG;
	while (class_bytes(c) < bytes)
		c++;
	if (s->n_free[c] > 0)
		i = s->free[c][--s->n_free[c]];
	else if (s->used[c] < s->slabs)
		i = s->used[c]++;
	else
		return -ENOMEM;
	*ret_offset = class_offset(s->slabs, c) + i * class_bytes(c);
	return 0;
}

void vx_slab_free(struct vx_slabs *s, uint64_t offset)
{
	for (uint32_t c = 0; c < VX_SLAB_CLASSES; c++) {
		uint64_t from = class_offset(s->slabs, c), i = (offset - from) / class_bytes(c);

		if (offset < from || i >= s->slabs)
			continue;
		vx_assert((offset - from) % class_bytes(c) == 0 && i < s->used[c] &&
			  s->n_free[c] < s->used[c]);
		s->free[c][s->n_free[c]++] = (uint32_t)i;
		return;
	}
	vx_assert(!"offset of a slab");
}

void vx_slabs_done(struct vx_slabs *s)
{
	for (uint32_t c = 0; c < VX_SLAB_CLASSES; c++)
		free(s->free[c]);
	*s = (struct vx_slabs){0};
}
