/* The tree builder: a request becomes a mount tree. It knows nothing of bubblewrap; a backend takes the tree as its root.
 *
 * One struct tree_base per box host, made after it has entered a user and a mount namespace of its own:
 *
 *   SCRATCH        a tmpfs on a directory that exists everywhere, in our mount namespace alone
 *   SCRATCH/host   the host's files as they are: every source of a bind is opened below it, SCRATCH hides nothing there
 *   SCRATCH/base   the same read-only, with a minimal /dev: what each task's tree is cloned from
 *   SCRATCH/t      the tree of the task at hand
 *
 * Paths are resolved once, from descriptors, without following any link (openat2); a mount is attached by descriptor to descriptor. A directory that
 * somebody swaps for a link meanwhile is an error, never another place. */
#ifndef VX_BOX_TREE_H
#define VX_BOX_TREE_H

#include "vx/sandbox.h"

struct vx_err;

#define TREE_MAX_TMPFS 64 /* file systems of our own in one tree */

struct tree_base {
	const char *scratch; /* where the tmpfs is */
	char tree_path[64];  /* SCRATCH/t */
	int scratch_fd, host_fd, base_fd;
	bool built; /* there is a tree on SCRATCH/t */
};

#define TREE_BASE_INIT ((struct tree_base){.scratch_fd = -1, .host_fd = -1, .base_fd = -1})

int tree_base_open(struct tree_base *b, struct vx_err *err);
int tree_build(struct tree_base *b, const struct vx_sbx_request *r, struct vx_err *err); /* on failure nothing is left */
void tree_drop(struct tree_base *b);

#endif
