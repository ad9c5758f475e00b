/* A reader of git's index. See index.h. */
#include "index.h"

#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_INDEX_BYTES ((size_t)4 << 30)
#define STAT_BYTES 40 /* ten words */
#define RACY_NS 20000000ULL
#define COARSE_RACY_NS 2000000000ULL

struct reader {
	const uint8_t *p, *end; /* end: where the trailing checksum begins */
	uint32_t version;
	struct vx_gitindex *x;
	char *why;
	size_t cap;
};

static uint32_t be32(const uint8_t *p)
{
	return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static uint16_t be16(const uint8_t *p)
{
	return (uint16_t)(p[0] << 8 | p[1]);
}

__attribute__((format(printf, 2, 3))) static int refuse(struct reader *r, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(r->why, r->cap, fmt, ap);
	va_end(ap);
	return 1;
}

/* The offset encoding of pack files: seven bits a byte, each continuation adds one. */
static bool read_varint(const uint8_t **p, const uint8_t *end, uint64_t *ret)
{
	if (*p >= end)
		return false;
	uint8_t c = *(*p)++;
	uint64_t v = c & 127;
	while (c & 128) {
		if (*p >= end || v >> 50)
			return false;
		c = *(*p)++;
		v = ((v + 1) << 7) | (c & 127);
	}
	*ret = v;
	return true;
}

/* Names as git would never write them would let an entry stand for another file. */
static bool sane_path(const char *p, size_t n)
{
	size_t at = 0;
	if (!n || n >= VX_MAX_PATH)
		return false;
	while (at <= n) {
		const char *slash = memchr(p + at, '/', n - at);
		size_t len = (slash ? (size_t)(slash - p) : n) - at;
		if (!len || (p[at] == '.' && (len == 1 || (len == 2 && p[at + 1] == '.') ||
						     (len == 4 && memcmp(p + at, ".git", 4) == 0))))
			return false;
		at += len + 1;
	}
	return true;
}

static int read_name(struct reader *r, const uint8_t *start, const struct vx_ix_entry *prev,
	struct vx_ix_entry *e)
{
	if (r->version < 4) {
		const uint8_t *nul = memchr(r->p, 0, (size_t)(r->end - r->p));
		if (!nul)
			return refuse(r, "the index is cut off");
		e->path = (const char *)r->p;
		e->len = (uint32_t)(nul - r->p);
		size_t total = ((size_t)(nul - start) + 8) & ~(size_t)7; /* one to eight NULs */
		if (total > (size_t)(r->end - start))
			return refuse(r, "the index is cut off");
		r->p = start + total;
		return 0;
	}
	uint64_t strip;
	if (!read_varint(&r->p, r->end, &strip) || strip > (prev ? prev->len : 0))
		return refuse(r, "a name in the index is broken");
	const uint8_t *nul = memchr(r->p, 0, (size_t)(r->end - r->p));
	if (!nul)
		return refuse(r, "the index is cut off");
	size_t keep = prev ? prev->len - (size_t)strip : 0, add = (size_t)(nul - r->p);
	if (keep + add >= VX_MAX_PATH)
		return refuse(r, "a name in the index is too long");
	char *name = vx_arena_alloc(&r->x->a, keep + add + 1);
	if (keep)
		memcpy(name, prev->path, keep);
	memcpy(name + keep, r->p, add);
	e->path = name;
	e->len = (uint32_t)(keep + add);
	r->p = nul + 1;
	return 0;
}

static int read_entry(struct reader *r, const struct vx_ix_entry *prev, struct vx_ix_entry *e)
{
	const uint8_t *start = r->p;
	size_t fixed = STAT_BYTES + (size_t)r->x->kind + 2;
	if ((size_t)(r->end - r->p) < fixed + 2) /* flags and a name, or extended flags, at least */
		return refuse(r, "the index is cut off");
	uint16_t flags = be16(start + fixed - 2), more = 0;
	r->p += fixed;
	if (flags & 0x4000) {
		if (r->version < 3)
			return refuse(r, "an index of version 2 has extended flags");
		more = be16(r->p);
		r->p += 2;
		if (more & ~0x6000)
			return refuse(r, "an index entry has unknown flags");
	}
	e->raw = start;
	e->mode = be32(start + 24);
	e->flags = (uint16_t)((flags & 0x8000 ? VX_IX_ASSUME_VALID : 0) |
			      (more & 0x4000 ? VX_IX_SKIP_WORKTREE : 0) |
			      (more & 0x2000 ? VX_IX_INTENT_TO_ADD : 0) |
			      (flags & 0x3000 ? VX_IX_UNMERGED : 0));
	int res = read_name(r, start, prev, e);
	if (res)
		return res;
	uint32_t said = flags & 0xFFF;
	if (!sane_path(e->path, e->len) || (said < 0xFFF && said != e->len))
		return refuse(r, "a name in the index is not what git writes");
	if (e->mode != 0100644 && e->mode != 0100755 && e->mode != 0120000 && e->mode != 0160000 &&
		e->mode != 0100664)
		return refuse(r,
			e->mode == 040000 ? "the index is sparse" : "an index entry has mode %o",
			e->mode);
	if (prev) {
		int c = strcmp(prev->path, e->path);
		if (c > 0 || (c == 0 && !(prev->flags & e->flags & VX_IX_UNMERGED)))
			return refuse(r, "the index is not sorted");
	}
	return 0;
}

static int read_extensions(struct reader *r)
{
	while (r->p < r->end) {
		if (r->end - r->p < 8)
			return refuse(r, "the index is cut off");
		uint32_t size = be32(r->p + 4);
		if (size > (size_t)(r->end - r->p) - 8)
			return refuse(r, "the index is cut off");
		if (memcmp(r->p, "link", 4) == 0)
			return refuse(r, "the index is split");
		if (memcmp(r->p, "sdir", 4) == 0)
			return refuse(r, "the index is sparse");
		if (r->p[0] < 'A' || r->p[0] > 'Z')
			return refuse(
				r, "the index has the extension \"%.4s\"", (const char *)r->p);
		r->p += 8 + size;
	}
	return 0;
}

/* The trailing checksum; all zero where index.skipHash is set. */
static bool checksum_fits(const char *raw, size_t n, enum vx_oid_kind kind)
{
	static const uint8_t zero[32];
	size_t body = n - (size_t)kind;
	uint8_t sum[32];
	if (memcmp(raw + body, zero, (size_t)kind) == 0)
		return true;
	if (kind == VX_OID_SHA1) {
		struct vx_sha1 c;
		vx_sha1_init(&c);
		vx_sha1_add(&c, raw, body);
		vx_sha1_done(&c, sum);
	} else {
		struct vx_digest d;
		vx_sha256_of(raw, body, &d);
		memcpy(sum, d.b, sizeof sum);
	}
	return memcmp(raw + body, sum, (size_t)kind) == 0;
}

static int parse(struct reader *r, const char *raw, size_t n)
{
	struct vx_gitindex *x = r->x;
	if (n < 12 + (size_t)x->kind || memcmp(raw, "DIRC", 4) != 0)
		return refuse(r, "the index has no header");
	r->version = be32((const uint8_t *)raw + 4);
	uint32_t count = be32((const uint8_t *)raw + 8);
	if (r->version < 2 || r->version > 4)
		return refuse(r, "the index has version %u", r->version);
	if (!checksum_fits(raw, n, x->kind))
		return refuse(r, "the index does not fit its checksum");
	r->p = (const uint8_t *)raw + 12;
	r->end = (const uint8_t *)raw + n - (size_t)x->kind;
	if (count > (size_t)(r->end - r->p) / (STAT_BYTES + (size_t)x->kind + 3) ||
		count > VX_MAX_FILES)
		return refuse(r, "the index is cut off");
	x->v = vx_arena_array(&x->a, (size_t)count + 1, sizeof *x->v);
	for (uint32_t i = 0; i < count; i++) {
		struct vx_ix_entry *prev = x->n ? &x->v[x->n - 1] : NULL;
		int res = read_entry(r, prev, &x->v[x->n]);
		if (res)
			return res;
		if (!prev || strcmp(prev->path, x->v[x->n].path) !=
				     0) /* the stages of a conflict are one path */
			x->n++;
	}
	return read_extensions(r);
}

int vx_gitindex_parse(
	char *raw, size_t n, enum vx_oid_kind kind, struct vx_gitindex *ret, char *why, size_t cap)
{
	*ret = (struct vx_gitindex){.raw = raw, .raw_bytes = n, .kind = kind};
	struct reader r = {.x = ret, .why = why, .cap = cap};
	int res = parse(&r, raw, n);
	if (res)
		vx_gitindex_free(ret);
	return res;
}

int vx_gitindex_read(int dirfd, const char *path, enum vx_oid_kind kind, struct vx_gitindex *ret,
	char *why, size_t cap)
{
	/* Non-blocking, since a task may have left a fifo in its place. */
	VX_CLEANUP_FD int fd = vx_open(dirfd, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ENOENT) {
		*ret = (struct vx_gitindex){.kind = kind};
		return 0;
	}
	if (fd < 0)
		return fd;
	struct stat st, after;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		snprintf(why, cap, "git's index is no file (remove it; git reset makes a new one)");
		return S_ISDIR(st.st_mode) ? 1 : -ENXIO;
	}
	if ((uint64_t)st.st_size > MAX_INDEX_BYTES) {
		snprintf(why, cap, "the index is larger than vx reads");
		return 1;
	}
	size_t n = (size_t)st.st_size;
	char *raw = malloc(n + 1);
	if (!raw)
		return -ENOMEM;
	ssize_t got = vx_read_full(fd, raw, n + 1);
	if (got < 0 || (size_t)got != n || fstat(fd, &after) < 0) {
		free(raw);
		snprintf(why, cap, "the index changed while it was read");
		return got < 0 ? (int)got : 1;
	}
	int r = vx_gitindex_parse(raw, n, kind, ret, why, cap);
	if (r == 0)
		vx_fstat_of(&st, &ret->st);
	return r;
}

void vx_gitindex_free(struct vx_gitindex *x)
{
	free(x->raw);
	vx_arena_free(&x->a);
	*x = (struct vx_gitindex){0};
}

uint32_t vx_gitindex_lower(
	const struct vx_gitindex *x, uint32_t lo, uint32_t hi, const char *p, size_t n)
{
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct vx_ix_entry *e = &x->v[mid];
		size_t k = e->len < n ? e->len : n;
		int c = memcmp(e->path, p, k);
		if (c < 0 || (c == 0 && e->len < n))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Git's own rule is by the second; ours is by the tick of the clock that files are stamped with. An
 * index on another file system may be stamped by another clock. */
static bool racy(const struct vx_gitindex *x, const struct vx_ix_entry *e, const struct stat *st)
{
	uint64_t mtime_ns = be32(e->raw + 8) * 1000000000ULL + be32(e->raw + 12);
	bool coarse = be32(e->raw + 12) == 0 || x->st.mtime_ns % 1000000000U == 0 ||
		      x->st.dev != (uint64_t)st->st_dev;
	return mtime_ns + (coarse ? COARSE_RACY_NS : RACY_NS) >= x->st.mtime_ns;
}

static bool is_empty_blob(const struct vx_gitindex *x, const uint8_t *oid)
{
	uint8_t empty[32];
	vx_git_blob_id(x->kind, "", 0, empty);
	return memcmp(oid, empty, (size_t)x->kind) == 0;
}

bool vx_gitindex_clean(const struct vx_gitindex *x, const struct vx_ix_entry *e,
	const struct stat *st, bool trust_exec)
{
	const uint8_t *d = e->raw;
	if (e->flags)
		return false;
	if (be32(d) != (uint32_t)st->st_ctim.tv_sec ||
		be32(d + 4) != (uint32_t)st->st_ctim.tv_nsec ||
		be32(d + 8) != (uint32_t)st->st_mtim.tv_sec ||
		be32(d + 12) != (uint32_t)st->st_mtim.tv_nsec)
		return false;
	if (be32(d + 20) != (uint32_t)st->st_ino || be32(d + 28) != st->st_uid ||
		be32(d + 32) != st->st_gid || be32(d + 36) != (uint32_t)st->st_size)
		return false;
	uint32_t mode = vx_git_mode(st->st_mode, trust_exec),
		 said = e->mode == 0100664 ? 0100644 : e->mode;
	if (!trust_exec && said == 0100755)
		said = 0100644;
	if (mode != said || (uint64_t)st->st_size > UINT32_MAX)
		return false;
	if (st->st_size == 0 && !is_empty_blob(x, d + STAT_BYTES))
		return false;
	return !racy(x, e, st);
}

void vx_gitindex_oid(const struct vx_gitindex *x, const struct vx_ix_entry *e, struct vx_oid *ret)
{
	memset(ret, 0, sizeof *ret);
	memcpy(ret->b, e->raw + STAT_BYTES, (size_t)x->kind);
	ret->n = (uint8_t)x->kind;
}
