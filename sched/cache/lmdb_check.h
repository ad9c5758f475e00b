/* The pages of an index, looked at before LMDB changes them.
 *
 * LMDB believes its own file: a length in a damaged page header makes a writer copy past the end of
 * a heap block, and a damaged free list makes it write over pages in use. Reading such a page can
 * fault at worst, which index.c catches; writing cannot be made good. So each process walks the
 * trees once, inside its first write transaction (nobody else changes anything then): every page
 * reached says its own number and its kind, lies at the depth that its tree has, is reached once,
 * and keeps its nodes within its bounds; every free page is a page, and not one of those. What the
 * nodes hold is not judged: rows carry checksums.
 *
 * Format: LMDB 0.9 (data version 1), mdb.c "Page header", "struct MDB_node", "struct MDB_db",
 * "struct MDB_meta"; little-endian 64-bit hosts and databases without duplicates, which is all that
 * the index uses. Anything else counts as damage.
 *
 * Cost: one look at each page in use, once a process that writes. */
#ifndef VX_LMDB_CHECK_H
#define VX_LMDB_CHECK_H

#include <stddef.h>
#include <stdint.h>

/* A meta page, in bytes from its beginning (the first two pages are such, the newer commit counts):
 * a header of 16, then magic, version, address, size of the map, two databases of 48 bytes each
 * (the free list's begins with the size of a page), the last page's number, the commit's number. */
enum {
	VX_META_MAGIC = 16,
	VX_META_VERSION = 20,
	VX_META_DBS = 40,
	VX_META_LAST = 136,
	VX_META_COMMIT = 144,
	VX_META_BYTES = 152
};

/* `file`: the whole of data.mdb, `n` bytes, mapped; `txn`: the write transaction that has just
 * begun. 0, -EBADMSG, -EFBIG beyond 2^32 pages. */
int vx_pages_check(const unsigned char *file, size_t n, uint32_t page_bytes, uint64_t txn);

#endif
