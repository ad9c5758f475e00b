/* The index: an LMDB environment with the store's databases. Only index.c includes lmdb.h.
 *
 *   vx_index_read    runs a function in a read transaction; any thread, never blocks on writers
 *   vx_index_write   runs a function in a write transaction and commits; writers of all processes
 *                    take turns. When the map is full it is grown and the function
 *                    runs again, so it must be repeatable
 *
 * Values are checksummed here together with database and key: a value that does not check is as if
 * it were not there. Damage to the tree itself (an LMDB error, an assertion of LMDB, a fault on a
 * page of the map) makes the call return -EBADMSG and marks the index: every later call returns
 * -EBADMSG too, and the next vx_index_open with write leave puts the index aside and begins a new
 * one. For this a handler for SIGSEGV and SIGBUS is installed that acts only inside a transaction
 * and hands everything else on.
 *
 * Pointers got from vx_tx_get and vx_tx_each point into the map and live until the function
 * returns. Transactions do not nest. Open after the last fork. */
#ifndef VX_CACHE_INDEX_H
#define VX_CACHE_INDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_index;
struct vx_tx;

enum vx_db {
	VX_DB_META,
	VX_DB_ENTRIES,
	VX_DB_SNAPS,
	VX_DB_HISTORY,
	VX_DB_BLOBS,
	VX_DB_PLACES,
	VX_DBS
};

#define VX_INDEX_SCHEMA 1
#define VX_INDEX_MAP_BYTES (1ULL << 30)     /* first size of the map: address space, not disk */
#define VX_INDEX_MAX_MAP_BYTES (1ULL << 40) /* -ENOSPC beyond */
#define VX_INDEX_READERS 1022               /* read transactions at once, of all processes */
#define VX_INDEX_KEY_BYTES 500              /* longest key; callers hash what is longer */

/* parent_fd: the directory that holds "index". map_bytes 0: the default. `*ret_aside`: a damaged
 * index was put aside and a new one begun. -EROFS: it does not exist and may not be made; -EPROTO:
 * of another schema; -EBADMSG: damaged and not ours to put aside. */
int vx_index_open(const char *parent, bool write, bool sync, uint64_t map_bytes,
	struct vx_index **ret, bool *ret_aside);
/* What makes a new index is not waited for on the disk; it goes there with the first commit after
 * this. Once, by who opened it, before there are others. */
void vx_index_ready(struct vx_index *ix);
void vx_index_close(struct vx_index *ix);
bool vx_index_writable(const struct vx_index *ix);
bool vx_index_damaged(const struct vx_index *ix);
/* Is this still the store's index? Another process may have put it aside, or somebody removed it:
 * then nobody may go by what it does not hold. */
bool vx_index_in_place(const struct vx_index *ix);

int vx_index_read(struct vx_index *ix, int (*fn)(struct vx_tx *t, void *arg), void *arg);
int vx_index_write(struct vx_index *ix, int (*fn)(struct vx_tx *t, void *arg), void *arg);
uint64_t vx_index_commits(const struct vx_index *ix);
uint64_t vx_index_bad_rows(const struct vx_index *ix); /* how often a value did not check */
uint64_t vx_index_bytes(struct vx_index *ix);          /* pages in use */

/* Rows of a database; of a read transaction. */
uint64_t vx_tx_count(struct vx_tx *t, enum vx_db db);
/* Of a read transaction: the commit that it sees. The same number of the same index is the same
 * content. */
uint64_t vx_tx_id(const struct vx_tx *t);
/* -ENOENT: absent or does not check */
int vx_tx_get(struct vx_tx *t, enum vx_db db, const void *key, size_t key_n, const void **ret,
	size_t *ret_n);
int vx_tx_put(
	struct vx_tx *t, enum vx_db db, const void *key, size_t key_n, const void *val, size_t n);
int vx_tx_del(struct vx_tx *t, enum vx_db db, const void *key, size_t key_n); /* absent is fine */
/* Every value in key order; `ok` false: it does not check (val NULL). A non-zero return ends it and
 * is returned. No changes meanwhile. */
int vx_tx_each(struct vx_tx *t, enum vx_db db,
	int (*fn)(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok),
	void *arg);

#endif
