/* The tree builder: a request becomes mounts in a task's mount namespace. It knows nothing of
 * bubblewrap; a backend makes the namespace, with the base as its root and a /proc of its own, and
 * lets nothing of the task run before tree_attach has returned.
 *
 * One struct tree_base per box host, made after it has entered a user and a mount namespace of its
 * own:
 *
 *   SCRATCH        a tmpfs on a directory that exists everywhere, in our mount namespace alone
 *   SCRATCH/host   the host's files as they are: every source of a bind is opened below it, SCRATCH
 *                  hides nothing there
 *   SCRATCH/base   the same read-only, with a minimal /dev: the root that a backend gives to a task
 *
 * Per task: tree_prepare makes the mounts, detached, in our namespace (while the backend is still
 * at work), tree_attach enters the task's namespace and puts them in place. Grants are never copied
 * from namespace to namespace and never listed by anyone, so that many cost little.
 *
 * Paths are resolved once, from descriptors, without following any link (openat2); a mount is
 * attached by descriptor to descriptor. A directory that somebody swaps for a link meanwhile is an
 * error, never another place. */
#ifndef VX_BOX_TREE_H
#define VX_BOX_TREE_H

#include "vx/limits.h"
#include "vx/sandbox.h"

struct vx_err;

#define TREE_MAX_TMPFS 64 /* file systems of our own in one tree */
#define TREE_BATCH 128    /* detached mounts held at once, each by a descriptor */

struct tree_base {
	const char *scratch; /* where the tmpfs is */
	char base_path[64];  /* SCRATCH/base */
	int scratch_fd, host_fd, base_fd;
	int own_ns_fd; /* our mount namespace, to come back to */
};

#define TREE_BASE_INIT \
	((struct tree_base){.scratch_fd = -1, .host_fd = -1, .base_fd = -1, .own_ns_fd = -1})

struct tree {
	const struct vx_sbx_request *r;
	uint32_t first, n; /* the batch at hand: mounts [first, first + n) of the request */
	int fd[TREE_BATCH];
	int source_fd; /* the directory whose entry was bound last; valid while source_dir is not
			  "": neighbours are bound without walking there again */
	char source_dir[VX_MAX_PATH];
};

int tree_base_open(struct tree_base *b, struct vx_err *err);
/* The first batch of r's mounts; r stays the caller's. On failure nothing is left. */
int tree_prepare(
	struct tree_base *b, const struct vx_sbx_request *r, struct tree *t, struct vx_err *err);
/* Everything, into the mount namespace of `pid`. Whatever the result, t is empty afterwards and we
 * are in our own namespace again (or the process ends). */
int tree_attach(struct tree_base *b, struct tree *t, pid_t pid, struct vx_err *err);
void tree_forget(struct tree *t); /* closes what is prepared; an empty tree is fine */

#endif
