/* A reader of git's index: versions 2, 3 and 4, SHA-1 and SHA-256. Format: gitformat-index(5).
 *
 * What is not understood exactly (a split or sparse index, an unknown mandatory extension, entries
 * out of order, a checksum that does not fit) is refused with a reason, and git itself is asked
 * instead. The parsed index borrows nothing and is immutable. */
#ifndef VX_GIT_INDEX_H
#define VX_GIT_INDEX_H

#include "fstat.h"

#include "vx/arena.h"
#include "vx/hash.h"

struct vx_ix_entry {
	const char *path; /* relative to the repository; NUL-terminated */
	uint32_t len;
	uint32_t mode;
	/* its stat data: ctime, mtime, dev, ino, mode, uid, gid, size, each u32be; then the id */
	const uint8_t *raw;
	uint16_t flags; /* VX_IX_... */
};
enum {
	VX_IX_ASSUME_VALID = 1,
	VX_IX_SKIP_WORKTREE = 2,
	VX_IX_INTENT_TO_ADD = 4,
	VX_IX_UNMERGED = 8
};

struct vx_gitindex {
	char *raw;
	size_t raw_bytes;
	struct vx_arena a; /* names of version 4 */
	struct vx_ix_entry *v;
	uint32_t n;
	enum vx_oid_kind kind;
	struct vx_fstat st; /* of the file, before it was read; zero when there is none */
};

/* 0; 1 not understood, and `why` says what; -ENXIO (with `why`) for a pipe or device in its place,
 * for which git would wait for ever; -errno. A missing file is an empty index. */
int vx_gitindex_read(int dirfd, const char *path, enum vx_oid_kind kind, struct vx_gitindex *ret,
	char *why, size_t cap);
/* The same from memory; takes ownership of `raw` (malloc'ed) in every case. */
int vx_gitindex_parse(
	char *raw, size_t n, enum vx_oid_kind kind, struct vx_gitindex *ret, char *why, size_t cap);
void vx_gitindex_free(struct vx_gitindex *x);
/* First entry whose path is >= p (n bytes). */
uint32_t vx_gitindex_lower(
	const struct vx_gitindex *x, uint32_t lo, uint32_t hi, const char *p, size_t n);
/* Does the entry's stat data prove that a file with this stat still has the entry's content? Not
 * when it is racy, flagged, or never had a stat. */
bool vx_gitindex_clean(const struct vx_gitindex *x, const struct vx_ix_entry *e,
	const struct stat *st, bool trust_exec);
void vx_gitindex_oid(const struct vx_gitindex *x, const struct vx_ix_entry *e, struct vx_oid *ret);

#endif
