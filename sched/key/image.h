/* The image of a plan: its structs, copied into one stretch of memory at a fixed address, so that
 * the bytes can be written to a file and read back to the same place with every pointer in
 * force. */
#ifndef VX_IMAGE_H
#define VX_IMAGE_H

#include "vx/hash.h"
#include "vx/snapshot.h"

/* Keys of an earlier run, by which this one may save itself the trouble. All arrays are by task or
 * project of the same plan. */
struct vx_seed {
	struct vx_digest *keys; /* by task */
	/* by task: what it folds is all in the digests below and in upstream keys */
	uint8_t *reusable;
	/* by task: 1 or 2 as in the keyer; NULL where it must be decided anew */
	uint8_t *stable;
	/* two of a project: its own files without nested projects, and with */
	struct vx_digest *projects;
	struct vx_digest fixed, env;
};

/* What stands at the image's beginning. Maps are not in it: they are made anew. */
struct vx_image_root {
	struct vx_workspace ws;
	struct vx_selection sel;
	struct vx_graph graph;
	struct vx_seed seed;
	bool has_seed;
};

struct vx_image {
	char *base; /* VX_IMAGE_BASE; NULL when it could not be had */
	size_t used, cap;
};

/* Takes the address range; false when it is not to be had. */
bool vx_image_map(struct vx_image *im, size_t cap);
/* The same range, from a file, privately. */
bool vx_image_map_file(struct vx_image *im, int fd, uint64_t offset, size_t n);
void vx_image_unmap(struct vx_image *im);
/* Copies all of it. The image is `used` bytes afterwards; false when it would be too large. */
bool vx_image_build(struct vx_image *im, const struct vx_workspace *ws,
	const struct vx_selection *sel, const struct vx_graph *g, const struct vx_seed *seed);

#endif
