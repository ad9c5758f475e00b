/* The files of a workspace: tables sorted bytewise by path, and how a file's identity is taken.
 *
 * A table borrows its entries from the arenas of whoever listed them. Entries are immutable once
 * listed, except that the keyer's thread (or its hashing threads, each its own entries) fills in
 * identities. */
#ifndef VX_FILES_H
#define VX_FILES_H

#include "../git/fstat.h"

#include "vx/arena.h"
#include "vx/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_file {
	const char *path; /* relative to the workspace root */
	uint32_t len;
	uint32_t mode; /* git mode of what is on disk; 0 in front of a look */
	bool tracked, has_oid;
	/* the id was computed, now or in an earlier run, and not read from an index */
	bool hashed;
	bool modules; /* untracked, below a node_modules: in no input set */
	struct vx_oid oid;
	struct vx_fstat st; /* of the look that saw it ... */
	uint64_t looked_ns; /* ... and the wall time in front of that look */
};

struct vx_files {
	struct vx_file **v;
	uint32_t n, cap;
};

void vx_files_add(struct vx_files *t, struct vx_file *f);
void vx_files_sort_unique(struct vx_files *t);
void vx_files_free(struct vx_files *t); /* the array only */
/* First index whose path is >= p. */
uint32_t vx_files_lower(const struct vx_files *t, const char *p, size_t n);
/* The range of what lies below directory `dir` ("" or ".": everything), as indexes [*lo, *hi). */
void vx_files_below(const struct vx_files *t, const char *dir, uint32_t *lo, uint32_t *hi);
struct vx_file *vx_files_find(const struct vx_files *t, const char *path);
/* Replaces what is `dir` or lies below it by `with` (all of which lies there). */
void vx_files_splice(struct vx_files *t, const char *dir, const struct vx_files *with);
bool vx_below_modules(const char *path, size_t len); /* a component is node_modules */

struct vx_err;

/* What ends the reading of long files, on whatever thread it is. */
struct vx_cancel {
	int fd; /* readable: canceled; -1 none */
	_Atomic bool asked;
};
bool vx_canceled(const struct vx_cancel *c);

/* Takes mode, id and stat of root_fd/path from the disk, without passing through a link. -ENOENT:
 * no file or link is there; -EBUSY: it kept changing; -EFBIG: it is larger than VX_MAX_INPUT_BYTES;
 * -ECANCELED: `cancel` (NULL: none) said so while a long file was read. Without trust_exec the mode
 * of a plain file is the one that is in f->mode already (from the index), else 0100644, as git
 * would record it. */
int vx_identity_take(int root_fd, const char *path, enum vx_oid_kind kind, bool trust_exec,
	const struct vx_cancel *cancel, struct vx_file *f);
/* Says why vx_identity_take failed; `whose` input it is. Returns r. */
int vx_identity_failed(int r, const char *whose, const char *path, struct vx_err *err);
/* Mode and stat alone. -ENOENT as above. */
int vx_identity_look(int root_fd, const char *path, bool trust_exec, struct vx_file *f);

/* Runs fn(arg, i) for i in [0, n) on up to `threads` threads (the caller's among them), in chunks;
 * returns when all are done. All signals are blocked in the threads it makes. */
void vx_parallel(
	uint32_t n, uint32_t threads, uint32_t chunk, void (*fn)(void *arg, uint32_t i), void *arg);
uint32_t vx_cpus(void);

#endif
