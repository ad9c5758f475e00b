/* The walk over an index's pages: see pages.h. */
#include "lmdb_check.h"

#include "vx/arena.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_HEADER = 16, NODE_HEADER = 8, DB_BYTES = 48 };
enum { BRANCH = 1, LEAF = 2, OVERFLOW = 4 };
enum { NODE_BIG = 1, NODE_DB = 2 };
enum { INTEGER_KEY = 8, MAX_DEPTH = 32 };
enum kind { FREE_LIST, MAIN, NAMED };

#define NO_ROOT UINT64_MAX

struct walk {
	const unsigned char *file;
	uint64_t pages; /* whole pages that the file has */
	/* the last page that is or was in use: freed ones at the end may never have been written */
	uint64_t last;
	uint32_t page_bytes;
	uint8_t *seen; /* a bit each */
};

static uint16_t u16(const unsigned char *p)
{
	uint16_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static uint32_t u32(const unsigned char *p)
{
	uint32_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

static uint64_t u64(const unsigned char *p)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return v;
}

/* False where the page was met before, or is none. */
static bool mark(struct walk *w, uint64_t page)
{
	if (page < 2 || page > w->last || (w->seen[page / 8] >> (page % 8) & 1))
		return false;
	w->seen[page / 8] |= (uint8_t)(1U << (page % 8));
	return true;
}

/* NULL where there is no such page, it was met before, or it is not of that kind. */
static const unsigned char *page_of(struct walk *w, uint64_t number, unsigned kind)
{
	const unsigned char *p = w->file + number * w->page_bytes;

	return number < w->pages && mark(w, number) && u64(p) == number && u16(p + 10) == kind
		       ? p
		       : NULL;
}

static bool check_tree(struct walk *w, const unsigned char *db, enum kind kind);

/* A list of free pages: how many, then their numbers, falling. */
static bool check_free(struct walk *w, const unsigned char *list, size_t n)
{
	uint64_t count = n >= 8 ? u64(list) : UINT64_MAX, before = UINT64_MAX;

	if (count > n / 8 - 1)
		return false;
	for (uint64_t i = 1; i <= count; i++) {
		uint64_t page = u64(list + 8 * i);

		if (page >= before || !mark(w, page))
			return false;
		before = page;
	}
	return true;
}

/* A value that is too long for a leaf lies in pages of its own, one after the other, with one
 * header. */
static const unsigned char *big_value(struct walk *w, uint64_t number, uint64_t n)
{
	const unsigned char *p = page_of(w, number, OVERFLOW);
	uint64_t pages = p != NULL ? u32(p + 12) : 0;

	if (pages == 0 || pages > w->pages - number || PAGE_HEADER + n > pages * w->page_bytes)
		return NULL;
	for (uint64_t i = 1; i < pages; i++)
		if (!mark(w, number + i))
			return NULL;
	return p + PAGE_HEADER;
}

/* `room`: bytes from the node to the end of its page. */
static bool check_leaf_node(struct walk *w, const unsigned char *node, size_t room, enum kind kind)
{
	unsigned flags = u16(node + 4);
	size_t key = u16(node + 6), n = u32(node);
	const unsigned char *value = node + NODE_HEADER + key;

	if (flags & ~(unsigned)(kind == MAIN ? NODE_BIG | NODE_DB : NODE_BIG))
		return false;
	if (NODE_HEADER + key + (flags & NODE_BIG ? 8 : n) > room ||
		(kind == FREE_LIST && key != 8))
		return false;
	if (flags & NODE_DB)
		return flags == NODE_DB && n == DB_BYTES && check_tree(w, value, NAMED);
	if (flags & NODE_BIG)
		value = big_value(w, u64(value), n);
	return value != NULL && (kind != FREE_LIST || check_free(w, value, n));
}

static bool check_page(struct walk *w, uint64_t number, unsigned depth, enum kind kind)
{
	const unsigned char *p = page_of(w, number, depth > 1 ? BRANCH : LEAF);
	unsigned lower = p != NULL ? u16(p + 12) : 0, upper = p != NULL ? u16(p + 14) : 0;

	if (lower < PAGE_HEADER || lower > upper || upper > w->page_bytes || lower % 2 != 0 ||
		(depth > 1 && lower == PAGE_HEADER))
		return false;
	for (unsigned at = PAGE_HEADER; at < lower; at += 2) {
		unsigned offset = u16(p + at);
		const unsigned char *node = p + offset;
		size_t room = w->page_bytes - offset;

		if (offset < upper || offset % 2 != 0 || offset + NODE_HEADER > w->page_bytes)
			return false;
		if (depth == 1) {
			if (!check_leaf_node(w, node, room, kind))
				return false;
		} else if (NODE_HEADER + (size_t)u16(node + 6) > room ||
			   !check_page(
				   w, u32(node) | (uint64_t)u16(node + 4) << 32, depth - 1, kind)) {
			return false;
		}
	}
	return true;
}

static bool check_tree(struct walk *w, const unsigned char *db, enum kind kind)
{
	unsigned flags = u16(db + 4), depth = u16(db + 6);
	uint64_t root = u64(db + 40);

	if (kind == FREE_LIST ? !(flags & INTEGER_KEY) : flags != 0)
		return false;
	if (root == NO_ROOT)
		return depth == 0;
	return depth > 0 && depth <= MAX_DEPTH && check_page(w, root, depth, kind);
}

int vx_pages_check(const unsigned char *file, size_t n, uint32_t page_bytes, uint64_t txn)
{
	struct walk w = {.file = file, .pages = n / page_bytes, .page_bytes = page_bytes};
	/* the newer of the two: they take turns */
	const unsigned char *meta = file + (txn - 1) % 2 * page_bytes;
	bool good;

	if (w.pages < 2 || page_bytes < VX_META_BYTES || u64(meta + VX_META_COMMIT) != txn - 1 ||
		u32(meta + VX_META_DBS) != page_bytes)
		return txn == 1 && n == 0 ? 0 : -EBADMSG;
	w.last = u64(meta + VX_META_LAST);
	if (w.last > UINT32_MAX)
		return -EFBIG;
	w.seen = vx_xcalloc(1, w.last / 8 + 1);
	/* the free list last: its pages are those that the others are not */
	good = check_tree(&w, meta + VX_META_DBS + DB_BYTES, MAIN) &&
	       check_tree(&w, meta + VX_META_DBS, FREE_LIST);
	free(w.seen);
	return good ? 0 : -EBADMSG;
}
