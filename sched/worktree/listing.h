/* Listings of directories, in the form that memories keep them (dircache.h): a type, a name and a
 * NUL for each name. */
#ifndef VX_LISTING_H
#define VX_LISTING_H

#include "dircache.h"

/* Room that one listing after the other is read into; {0} is empty. `bytes` is freed by its
 * owner. */
struct vx_listing {
	char *bytes;
	size_t n, cap;
};

/* Reads an open directory whole, but "." and "..", in the order it comes. 0 or -errno. */
int vx_listing_read(int fd, struct vx_listing *l, uint32_t *ret_names);

/* The names that are more than names: VX_DIR_... */
uint32_t vx_listing_special(const struct vx_dir_memory *d);

/* The same listing sorted bytewise by name, in the arena. */
const char *vx_listing_sorted(const struct vx_dir_memory *d, struct vx_arena *a);

#endif
