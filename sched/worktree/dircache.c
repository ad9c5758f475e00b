/* Memories of the worktree. See dircache.h. Numbers are of this machine's byte order: a store is not
 * moved between them. */
#include "dircache.h"

#include "vx/buf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC 0x334d5658U /* "XVM3"; changes with the format */
#define MAX_MEMORY_BYTES ((size_t)1 << 30)

struct header {
	uint32_t magic, n_dirs, n_ids, unused;
	struct vx_wtmem_attrs attrs;
};

/* Records follow each other, sorted by path, each padded to eight bytes. */
struct dir_record {
	struct vx_fstat st;
	uint32_t path_len, n_names, bytes, total; /* total: of the record with its tail */
};                                                /* path, NUL, names */

struct id_record {
	struct vx_fstat st;
	uint8_t oid[32];
	uint32_t path_len, oid_n, total, unused;
}; /* path, NUL */

struct vx_wtmem {
	const struct dir_record **dirs;
	const struct id_record **ids;
	uint32_t n_dirs, n_ids;
	bool loaded;
	struct vx_wtmem_attrs attrs;
};

static const char *dir_path(const struct dir_record *r)
{
	return (const char *)(r + 1);
}

static const char *id_path(const struct id_record *r)
{
	return (const char *)(r + 1);
}

/* The names of a listing must be as many as it says and end inside it. */
static bool sane_names(const char *p, size_t bytes, uint32_t n)
{
	const char *end = p + bytes;
	for (uint32_t i = 0; i < n; i++) {
		const char *nul = p < end ? memchr(p, 0, (size_t)(end - p)) : NULL;
		if (!nul || nul - p < 2)
			return false;
		p = nul + 1;
	}
	return p == end;
}

static bool parse(struct vx_wtmem *m, const char *blob, size_t n)
{
	const struct header *h = (const void *)blob;
	const char *p = blob + sizeof *h, *end = blob + n;
	if (n < sizeof *h || h->magic != MAGIC || h->n_dirs > n / sizeof(struct dir_record) ||
		h->n_ids > n / sizeof(struct id_record))
		return false;
	m->attrs = h->attrs;
	m->dirs = vx_xcalloc(h->n_dirs + 1, sizeof *m->dirs);
	m->ids = vx_xcalloc(h->n_ids + 1, sizeof *m->ids);
	for (uint32_t i = 0; i < h->n_dirs; i++) {
		const struct dir_record *r = (const void *)p;
		if ((size_t)(end - p) < sizeof *r || r->total % 8 || r->total > (size_t)(end - p) ||
			sizeof *r + r->path_len + 1ULL + r->bytes > r->total ||
			dir_path(r)[r->path_len] ||
			!sane_names(dir_path(r) + r->path_len + 1, r->bytes, r->n_names))
			return false;
		m->dirs[m->n_dirs++] = r;
		p += r->total;
	}
	for (uint32_t i = 0; i < h->n_ids; i++) {
		const struct id_record *r = (const void *)p;
		if ((size_t)(end - p) < sizeof *r || r->total % 8 || r->total > (size_t)(end - p) ||
			sizeof *r + r->path_len + 1ULL > r->total || id_path(r)[r->path_len] ||
			r->oid_n > 32)
			return false;
		m->ids[m->n_ids++] = r;
		p += r->total;
	}
	m->loaded = p == end;
	return m->loaded;
}

struct vx_wtmem *vx_wtmem_load(const struct vx_key_memory *km, const char *root, struct vx_arena *a)
{
	struct vx_wtmem *m = vx_xcalloc(1, sizeof *m);
	void *blob;
	size_t n;
	if (km && km->get(km->self, "worktree", root, strlen(root), a, &blob, &n) == 0 &&
		((uintptr_t)blob % 8 != 0 || !parse(m, blob, n))) {
		free(m->dirs);
		free(m->ids);
		*m = (struct vx_wtmem){0};
	}
	return m;
}

void vx_wtmem_free(struct vx_wtmem *m)
{
	if (!m)
		return;
	free(m->dirs);
	free(m->ids);
	free(m);
}

bool vx_wtmem_dir(const struct vx_wtmem *m, const char *path, size_t len, struct vx_dir_memory *ret)
{
	uint32_t lo = 0, hi = m->n_dirs;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct dir_record *r = m->dirs[mid];
		int c = strcmp(dir_path(r), path);
		if (c == 0) {
			*ret = (struct vx_dir_memory){.st = r->st,
				.n_names = r->n_names,
				.bytes = r->bytes,
				.names = dir_path(r) + r->path_len + 1};
			return true;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	(void)len;
	return false;
}

bool vx_wtmem_attrs(const struct vx_wtmem *m, struct vx_wtmem_attrs *ret)
{
	if (m->loaded)
		*ret = m->attrs;
	return m->loaded;
}

bool vx_wtmem_id(const struct vx_wtmem *m, const char *path, size_t len, enum vx_oid_kind kind,
	const struct vx_fstat *st, struct vx_oid *ret)
{
	uint32_t lo = 0, hi = m->n_ids;
	(void)len;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct id_record *r = m->ids[mid];
		int c = strcmp(id_path(r), path);
		if (c == 0) {
			if (r->oid_n != (uint32_t)kind || !vx_fstat_equal(&r->st, st))
				return false;
			memset(ret, 0, sizeof *ret);
			memcpy(ret->b, r->oid, r->oid_n);
			ret->n = (uint8_t)r->oid_n;
			return true;
		}
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return false;
}

struct listed {
	const char *path;
	struct vx_dir_memory d;
};

struct vx_wtmem_writer {
	struct listed *dirs;
	const struct vx_file **ids;
	uint32_t n_dirs, cap_dirs, n_ids, cap_ids;
	bool not_all;
	struct vx_wtmem_attrs attrs;
};

struct vx_wtmem_writer *vx_wtmem_writer_new(void)
{
	return vx_xcalloc(1, sizeof(struct vx_wtmem_writer));
}

void vx_wtmem_writer_free(struct vx_wtmem_writer *w)
{
	if (!w)
		return;
	free(w->dirs);
	free(w->ids);
	free(w);
}

void vx_wtmem_add_dir(struct vx_wtmem_writer *w, const char *path, const struct vx_dir_memory *d)
{
	if (w->n_dirs == w->cap_dirs) {
		w->cap_dirs = w->cap_dirs ? w->cap_dirs * 2 : 256;
		w->dirs = vx_xrealloc(w->dirs, w->cap_dirs * sizeof *w->dirs);
	}
	w->dirs[w->n_dirs++] = (struct listed){path, *d};
}

void vx_wtmem_set_attrs(struct vx_wtmem_writer *w, const struct vx_wtmem_attrs *a)
{
	w->attrs = *a;
}

void vx_wtmem_not_all(struct vx_wtmem_writer *w)
{
	w->not_all = true;
}

bool vx_wtmem_each_dir(const struct vx_wtmem_writer *w,
	bool (*each)(void *arg, const char *path, const struct vx_dir_memory *d), void *arg)
{
	bool all = !w->not_all;
	for (uint32_t i = 0; i < w->n_dirs && all; i++)
		all = each(arg, w->dirs[i].path, &w->dirs[i].d);
	return all;
}

/* Not one whose file may have changed unseen right after the look. */
void vx_wtmem_add_id(struct vx_wtmem_writer *w, const struct vx_file *f)
{
	if (!f->has_oid || vx_fstat_racy(&f->st, f->looked_ns))
		return;
	if (w->n_ids == w->cap_ids) {
		w->cap_ids = w->cap_ids ? w->cap_ids * 2 : 256;
		w->ids = vx_xrealloc(w->ids, w->cap_ids * sizeof *w->ids);
	}
	w->ids[w->n_ids++] = f;
}

bool vx_wtmem_same(const struct vx_wtmem *m, const struct vx_wtmem_writer *w)
{
	if (m->n_dirs != w->n_dirs || m->n_ids != w->n_ids || m->attrs.places != w->attrs.places ||
		m->attrs.distrust_ns != w->attrs.distrust_ns)
		return false;
	for (uint32_t i = 0; i < w->n_dirs; i++) {
		struct vx_dir_memory d;
		const struct vx_dir_memory *now = &w->dirs[i].d;
		if (!vx_wtmem_dir(m, w->dirs[i].path, strlen(w->dirs[i].path), &d))
			return false;
		if (d.names != now->names &&
			(!vx_fstat_equal(&d.st, &now->st) || d.n_names != now->n_names ||
				d.bytes != now->bytes || memcmp(d.names, now->names, d.bytes) != 0))
			return false;
	}
	for (uint32_t i = 0; i < w->n_ids; i++) {
		struct vx_oid id;
		if (!vx_wtmem_id(m, w->ids[i]->path, w->ids[i]->len,
			    (enum vx_oid_kind)w->ids[i]->oid.n, &w->ids[i]->st, &id))
			return false;
	}
	return true;
}

static int listed_cmp(const void *a, const void *b)
{
	return strcmp(((const struct listed *)a)->path, ((const struct listed *)b)->path);
}

static int id_cmp(const void *a, const void *b)
{
	return strcmp((*(const struct vx_file *const *)a)->path,
		(*(const struct vx_file *const *)b)->path);
}

struct vx_wtseen {
	uint32_t n;
	struct listed v[];
};

struct vx_wtseen *vx_wtmem_seen_new(const struct vx_wtmem_writer *w)
{
	struct vx_wtseen *s = vx_xcalloc(1, sizeof *s + w->n_dirs * sizeof *s->v);
	s->n = w->n_dirs;
	if (s->n) {
		memcpy(s->v, w->dirs, s->n * sizeof *s->v);
		qsort(s->v, s->n, sizeof *s->v, listed_cmp);
	}
	return s;
}

void vx_wtmem_seen_free(struct vx_wtseen *s)
{
	free(s);
}

bool vx_wtmem_seen_dir(const struct vx_wtseen *s, const char *path, struct vx_dir_memory *ret)
{
	const struct listed want = {.path = path},
			    *at = bsearch(&want, s->v, s->n, sizeof *s->v, listed_cmp);
	if (at)
		*ret = at->d;
	return at != NULL;
}

static void pad(struct vx_buf *b)
{
	static const char zero[8];
	vx_buf_add(b, zero, (8 - b->len % 8) % 8);
}

int vx_wtmem_store(struct vx_wtmem_writer *w, const struct vx_key_memory *m, const char *root)
{
	struct vx_buf b = VX_BUF(MAX_MEMORY_BYTES);
	struct header h = {
		.magic = MAGIC, .n_dirs = w->n_dirs, .n_ids = w->n_ids, .attrs = w->attrs};
	if (w->n_dirs)
		qsort(w->dirs, w->n_dirs, sizeof *w->dirs, listed_cmp);
	if (w->n_ids)
		qsort(w->ids, w->n_ids, sizeof *w->ids, id_cmp);
	vx_buf_add(&b, &h, sizeof h);
	for (uint32_t i = 0; i < w->n_dirs; i++) {
		const struct listed *l = &w->dirs[i];
		struct dir_record r = {.st = l->d.st,
			.path_len = (uint32_t)strlen(l->path),
			.n_names = l->d.n_names,
			.bytes = l->d.bytes};
		r.total = (uint32_t)((sizeof r + r.path_len + 1 + r.bytes + 7) & ~(size_t)7);
		vx_buf_add(&b, &r, sizeof r);
		vx_buf_add(&b, l->path, r.path_len + 1);
		vx_buf_add(&b, l->d.names, r.bytes);
		pad(&b);
	}
	for (uint32_t i = 0; i < w->n_ids; i++) {
		const struct vx_file *f = w->ids[i];
		struct id_record r = {.st = f->st, .path_len = f->len, .oid_n = f->oid.n};
		memcpy(r.oid, f->oid.b, sizeof r.oid);
		r.total = (uint32_t)((sizeof r + r.path_len + 1 + 7) & ~(size_t)7);
		vx_buf_add(&b, &r, sizeof r);
		vx_buf_add(&b, f->path, r.path_len + 1);
		pad(&b);
	}
	int r = b.overflow ? -EFBIG
			   : m->put(m->self, "worktree", root, strlen(root), vx_buf_str(&b), b.len);
	vx_buf_free(&b);
	return r;
}
