/* Segments and places: see segment.h. */
#include "segment.h"

#include "store_int.h"

#include "vx/arena.h"
#include "vx/fd.h"
#include "vx/point.h"
#include "vx/strs.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define SKIPPABLE 0x184D2A50U /* magic number of a skippable frame */
#define SKIPPABLE_BYTES 8     /* it, and the size of what follows */

void vx_segment_path(uint64_t segment, char ret[VX_SEGMENT_PATH])
{
	snprintf(ret, VX_SEGMENT_PATH, "s/%016llx" VX_SUFFIX_TAR, (unsigned long long)segment);
}

bool vx_place_equal(const struct vx_place *a, const struct vx_place *b)
{
	return a->segment == b->segment && a->off == b->off && a->bytes == b->bytes;
}

/* ---- rows ---- */

struct disk_place {
	uint64_t segment, off, bytes;
};

static int decode(const void *v, size_t n, struct vx_place *ret)
{
	struct disk_place d;
	if (n != sizeof d)
		return -ENOENT;
	memcpy(&d, v, sizeof d);
	*ret = (struct vx_place){le64toh(d.segment), le64toh(d.off), le64toh(d.bytes)};
	return ret->segment && ret->off <= 2 * VX_SEGMENT_BYTES && ret->bytes <= VX_SEGMENT_ARTIFACT_BYTES ? 0 : -ENOENT;
}

int vx_place_get(struct vx_tx *t, const struct vx_digest *artifact, struct vx_place *ret)
{
	const void *v;
	size_t n;
	int r = vx_tx_get(t, VX_DB_PLACES, artifact->b, sizeof artifact->b, &v, &n);
	return r < 0 ? r : decode(v, n, ret);
}

int vx_place_put(struct vx_tx *t, const struct vx_digest *artifact, const struct vx_place *p)
{
	struct disk_place d = {htole64(p->segment), htole64(p->off), htole64(p->bytes)};
	return vx_tx_put(t, VX_DB_PLACES, artifact->b, sizeof artifact->b, &d, sizeof d);
}

int vx_place_del(struct vx_tx *t, const struct vx_digest *artifact)
{
	return vx_tx_del(t, VX_DB_PLACES, artifact->b, sizeof artifact->b);
}

struct each {
	int (*fn)(void *arg, const struct vx_digest *artifact, const struct vx_place *p);
	void *arg;
};

static int one_of_each(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok)
{
	const struct each *e = arg;
	struct vx_digest d;
	struct vx_place p;
	if (!ok || key_n != sizeof d.b || decode(val, n, &p) < 0)
		return 0;
	memcpy(d.b, key, sizeof d.b);
	return e->fn(e->arg, &d, &p);
}

int vx_place_each(struct vx_tx *t, int (*fn)(void *arg, const struct vx_digest *artifact, const struct vx_place *p), void *arg)
{
	struct each e = {fn, arg};
	return vx_tx_each(t, VX_DB_PLACES, one_of_each, &e);
}

struct find {
	const struct vx_digest *artifact;
	struct vx_place *ret;
};

static int find_one(struct vx_tx *t, void *arg)
{
	const struct find *f = arg;
	return vx_place_get(t, f->artifact, f->ret);
}

int vx_place_find(struct vx_store *s, const struct vx_digest *artifact, struct vx_place *ret)
{
	struct find f = {artifact, ret};
	return vx_index_read(s->ix, find_one, &f);
}

static int get_last(struct vx_tx *t, void *arg)
{
	const void *v;
	size_t n;
	uint64_t id;
	int r = vx_tx_get(t, VX_DB_META, "segment", 7, &v, &n);
	if (r < 0 || n != sizeof id)
		return r < 0 ? r : -ENOENT;
	memcpy(&id, v, sizeof id);
	*(uint64_t *)arg = le64toh(id);
	return 0;
}

uint64_t vx_segment_last(struct vx_store *s)
{
	uint64_t id = 0;
	return vx_index_read(s->ix, get_last, &id) < 0 ? 0 : id;
}

int vx_segment_set_last(struct vx_tx *t, uint64_t segment)
{
	uint64_t id = htole64(segment);
	return vx_tx_put(t, VX_DB_META, "segment", 7, &id, sizeof id);
}

/* ---- are they there? ---- */

bool vx_segment_holds(const struct vx_store *s, struct vx_segment_sizes *z, const struct vx_place *p)
{
	uint32_t i = z->n;
	while (i > 0 && z->v[i - 1].segment != p->segment)
		i--;
	if (!i) {
		char path[VX_SEGMENT_PATH];
		struct stat st;
		vx_segment_path(p->segment, path);
		bool file = fstatat(s->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode);
		if (z->n == z->cap) {
			z->cap = z->cap ? z->cap * 2 : 16;
			z->v = vx_xrealloc(z->v, z->cap * sizeof *z->v);
		}
		z->v[z->n++] = (struct vx_segment_size){p->segment, file ? (uint64_t)st.st_size : 0};
		i = z->n;
	}
	return p->off + p->bytes <= z->v[i - 1].bytes;
}

void vx_segment_sizes_free(struct vx_segment_sizes *z)
{
	free(z->v);
	*z = (struct vx_segment_sizes){0};
}

/* ---- gaps ---- */

struct places {
	struct vx_place *v;
	uint32_t n, cap;
	uint64_t segment; /* whose places are wanted */
};

static int collect(void *arg, const struct vx_digest *artifact, const struct vx_place *p)
{
	struct places *c = arg;
	(void)artifact;
	if (p->segment != c->segment)
		return 0;
	if (c->n == c->cap) {
		c->cap = c->cap ? c->cap * 2 : 256;
		c->v = vx_xrealloc(c->v, c->cap * sizeof *c->v);
	}
	c->v[c->n++] = *p;
	return 0;
}

static int by_offset(const void *a, const void *b)
{
	const struct vx_place *x = a, *y = b;
	return x->off < y->off ? -1 : x->off > y->off;
}

static int collect_all(struct vx_tx *t, void *arg)
{
	((struct places *)arg)->n = 0;
	return vx_place_each(t, collect, arg);
}

static int read_places(struct vx_store *s, struct places *ret)
{
	int r = vx_index_read(s->ix, collect_all, ret);
	if (r == 0 && ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_offset);
	return r;
}

struct gaps {
	struct vx_store *s;
	bool reclaim;
	const struct vx_place *gone;
	uint32_t n_gone;
	uint64_t n, bytes; /* found beside `gone` */
};

/* Was it reclaimed before? One too short for a frame counts as such: nothing can be had from it. */
static bool is_reclaimed(int fd, uint64_t from, uint64_t to)
{
	uint32_t head[2];
	if (to - from < SKIPPABLE_BYTES)
		return true;
	return pread(fd, head, sizeof head, (off_t)from) == (ssize_t)sizeof head && le32toh(head[0]) == SKIPPABLE &&
	       le32toh(head[1]) == to - from - SKIPPABLE_BYTES;
}

/* The hole first: a frame without it would look as if all were done. */
static void reclaim(int fd, uint64_t from, uint64_t to)
{
	uint32_t head[2] = {htole32(SKIPPABLE), htole32((uint32_t)(to - from - SKIPPABLE_BYTES))};
	if (to - from < SKIPPABLE_BYTES || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)from, (off_t)(to - from)) < 0)
		return;
	VX_POINT("prune.hole_made");
	ssize_t n = pwrite(fd, head, sizeof head, (off_t)from);
	(void)n; /* without it the gap is looked at again by the next */
}

/* The gaps that nobody has reclaimed yet. */
static void count(struct gaps *g, int fd, const struct places *v, uint64_t size)
{
	uint64_t at = 0;
	for (uint32_t i = 0; i <= v->n; i++) {
		uint64_t to = i < v->n ? v->v[i].off : size;
		if (at < to && !is_reclaimed(fd, at, to)) {
			g->n++;
			g->bytes += to - at;
		}
		if (i < v->n && v->v[i].off + v->v[i].bytes > at)
			at = v->v[i].off + v->v[i].bytes;
	}
}

/* Of a segment that nobody can begin to append to meanwhile. */
static void reclaim_all(struct gaps *g, int fd, const char *path, const struct places *live, uint64_t size)
{
	uint64_t at = 0;
	for (uint32_t i = 0; i < live->n; i++) {
		if (at < live->v[i].off && !is_reclaimed(fd, at, live->v[i].off))
			reclaim(fd, at, live->v[i].off);
		if (live->v[i].off + live->v[i].bytes > at)
			at = live->v[i].off + live->v[i].bytes;
	}
	if (!live->n)
		unlinkat(g->s->dir_fd, path, 0);
	else if (at < size && ftruncate(fd, (off_t)at) < 0)
		reclaim(fd, at, size);
	VX_POINT("prune.segment_done");
}

static void idle_segment(struct gaps *g, uint64_t segment, const char *path, int fd, uint64_t size)
{
	struct places v = {.segment = segment};
	int r = read_places(g->s, &v);
	uint32_t n_live = v.n;
	for (uint32_t i = 0; i < g->n_gone; i++)
		collect(&v, NULL, &g->gone[i]);
	if (v.n > n_live)
		qsort(v.v, v.n, sizeof *v.v, by_offset);
	if (r == 0)
		count(g, fd, &v, size);
	if (r == 0 && g->reclaim && (v.n == n_live || read_places(g->s, &v) == 0))
		reclaim_all(g, fd, path, &v, size);
	free(v.v);
}

static void one_segment(struct gaps *g, const char *name)
{
	char path[VX_SEGMENT_PATH], *end;
	struct stat st;
	uint64_t segment = strtoull(name, &end, 16);
	vx_segment_path(segment, path);
	if (!segment || strcmp(path + 2, name) != 0)
		return;
	VX_CLEANUP_FD int fd = vx_open(g->s->dir_fd, path, (g->reclaim ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return;
	bool idle = flock(fd, (g->reclaim ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0;
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || !st.st_nlink)
		return;
	if (idle) {
		idle_segment(g, segment, path, fd, (uint64_t)st.st_size);
		return;
	}
	for (uint32_t i = 0; i < g->n_gone; i++)
		if (g->gone[i].segment == segment)
			reclaim(fd, g->gone[i].off, g->gone[i].off + g->gone[i].bytes);
}

static int each_segment(struct gaps *g)
{
	int fd = vx_open(g->s->dir_fd, "s", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	if (!d) {
		vx_close(fd);
		return fd == -ENOENT ? 0 : fd < 0 ? fd : -ENOMEM;
	}
	for (struct dirent *e; (e = readdir(d));)
		if (vx_ends_with(e->d_name, VX_SUFFIX_TAR))
			one_segment(g, e->d_name);
	closedir(d);
	return 0;
}

int vx_segments_gaps(struct vx_store *s, uint64_t *ret_n, uint64_t *ret_bytes)
{
	struct gaps g = {.s = s};
	int r = s->ix ? each_segment(&g) : 0;
	*ret_n = g.n;
	*ret_bytes = g.bytes;
	return r;
}

int vx_segments_reclaim(struct vx_store *s, const struct vx_place *gone, uint32_t n_gone, uint64_t *ret_n, uint64_t *ret_bytes)
{
	struct gaps g = {.s = s, .reclaim = true, .gone = gone, .n_gone = n_gone};
	int r = each_segment(&g);
	*ret_n = g.n;
	*ret_bytes = g.bytes;
	return r;
}
