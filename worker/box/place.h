/* Placeholders: what is made on the host so that a write grant has something to bind, and its
 * sweep.
 *
 * Before anything is made it is written down in record_dir, in a file that stays locked (flock)
 * while it may still be used; place_sweep removes what is untouched and then the record. Whoever
 * finds a record that nobody locks sweeps it. Every path is opened below `root_fd` without
 * following links.
 *
 * A record: "vx-sweep 2\n", a line by which it is told to be ours (bound to .vx/key: any other one
 * leads to nothing), then per item 'f' or 'd', the absolute path, NUL; in order of
 * creation. */
#ifndef VX_BOX_PLACE_H
#define VX_BOX_PLACE_H

#include "vx/sandbox.h"

struct vx_buf;
struct vx_err;

struct place_set {
	int root_fd, record_fd, dir_fd;
	char record[64];                /* its name in dir_fd */
	const struct vx_placeholder *v; /* the request's */
	uint32_t n;
	bool *made; /* n, malloc'ed: those that we made, not found */
};

#define PLACE_SET_INIT ((struct place_set){.root_fd = -1, .record_fd = -1, .dir_fd = -1})

/* On failure nothing is left. -errno with a text that names the grant. */
int place_make(struct place_set *p, int root_fd, const char *record_dir,
	const struct vx_sbx_request *r, struct vx_err *err);
/* Removes what is untouched; `untouched` (may be NULL) is told the file grants that named nothing,
 * one line each. Idempotent. */
void place_sweep(struct place_set *p, struct vx_buf *untouched);

#endif
