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
	return ret->segment && ret->off <= 2 * VX_SEGMENT_BYTES &&
			       ret->bytes <= VX_SEGMENT_ARTIFACT_BYTES
		       ? 0
		       : -ENOENT;
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

int vx_place_each(struct vx_tx *t,
	int (*fn)(void *arg, const struct vx_digest *artifact, const struct vx_place *p), void *arg)
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

struct disk_last {
	uint64_t segment, end;
};

static int get_last(struct vx_tx *t, void *arg)
{
	struct disk_last *ret = arg;
	const void *v;
	size_t n;
	int r = vx_tx_get(t, VX_DB_META, "segment", 7, &v, &n);
	if (r < 0 || n != sizeof *ret)
		return r < 0 ? r : -ENOENT;
	memcpy(ret, v, n);
	return 0;
}

uint64_t vx_segment_last(struct vx_store *s, uint64_t *ret_end)
{
	struct disk_last d;
	if (vx_index_read(s->ix, get_last, &d) < 0)
		return 0;
	*ret_end = le64toh(d.end);
	return le64toh(d.segment);
}

int vx_segment_set_last(struct vx_tx *t, uint64_t segment, uint64_t end)
{
	struct disk_last d = {htole64(segment), htole64(end)};
	return vx_tx_put(t, VX_DB_META, "segment", 7, &d, sizeof d);
}

/* ---- are they there? ---- */

bool vx_segment_holds(
	const struct vx_store *s, struct vx_segment_sizes *z, const struct vx_place *p)
{
	uint32_t i = z->n;
	while (i > 0 && z->v[i - 1].segment != p->segment)
		i--;
	if (!i) {
		char path[VX_SEGMENT_PATH];
		struct stat st;
		vx_segment_path(p->segment, path);
		bool file = fstatat(s->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			    S_ISREG(st.st_mode);
		if (z->n == z->cap) {
			z->cap = z->cap ? z->cap * 2 : 16;
			z->v = vx_xrealloc(z->v, z->cap * sizeof *z->v);
		}
		z->v[z->n++] =
			(struct vx_segment_size){p->segment, file ? (uint64_t)st.st_size : 0};
		i = z->n;
	}
	return p->off + p->bytes <= z->v[i - 1].bytes;
}

bool vx_place_whole(
	const struct vx_store *s, const struct vx_place *p, const struct vx_digest *artifact)
{
	char path[VX_SEGMENT_PATH];
	struct vx_digest d;
	vx_segment_path(p->segment, path);
	VX_CLEANUP_FD int fd =
		vx_open_beneath(s->dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	void *buf = vx_xmalloc(p->bytes + 1);
	bool all = pread(fd, buf, p->bytes, (off_t)p->off) == (ssize_t)p->bytes;
	if (all)
		vx_sha256_of(buf, p->bytes, &d);
	free(buf);
	return all && vx_digest_equal(&d, artifact);
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
	uint64_t segment; /* whose places are wanted; 0: all */
};

static int collect(void *arg, const struct vx_digest *artifact, const struct vx_place *p)
{
	struct places *c = arg;
	(void)artifact;
	if (c->segment && p->segment != c->segment)
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
	if (x->segment != y->segment)
		return x->segment < y->segment ? -1 : 1;
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

/* Those of one segment among all of them. They share the memory. */
static struct places of_segment(const struct places *all, uint64_t segment)
{
	uint32_t from = 0, to = all->n;
	while (from < to) {
		uint32_t mid = from + (to - from) / 2;
		if (all->v[mid].segment < segment)
			from = mid + 1;
		else
			to = mid;
	}
	while (to < all->n && all->v[to].segment == segment)
		to++;
	return (struct places){.v = all->v + from, .n = to - from, .segment = segment};
}

int vx_segment_end(struct vx_store *s, uint64_t segment, uint64_t *ret)
{
	struct places v = {.segment = segment};
	uint64_t end = 0;
	int r = read_places(s, &v);
	for (uint32_t i = 0; i < v.n; i++)
		if (v.v[i].off + v.v[i].bytes > end)
			end = v.v[i].off + v.v[i].bytes;
	free(v.v);
	if (r == 0)
		*ret = end;
	return r;
}

struct gaps {
	struct vx_store *s;
	bool reclaim;
	struct places all, gone; /* as they were at the beginning; sorted */
	uint64_t n, bytes;       /* found beside `gone` */
};

/* Was it reclaimed before? One too short for a frame counts as such: nothing can be had from it. */
static bool is_reclaimed(int fd, uint64_t from, uint64_t to)
{
	uint32_t head[2];
	if (to - from < SKIPPABLE_BYTES)
		return true;
	return pread(fd, head, sizeof head, (off_t)from) == (ssize_t)sizeof head &&
	       le32toh(head[0]) == SKIPPABLE && le32toh(head[1]) == to - from - SKIPPABLE_BYTES;
}

/* The hole first: a frame without it would look as if all were done. */
static void reclaim(int fd, uint64_t from, uint64_t to)
{
	uint32_t head[2] = {htole32(SKIPPABLE), htole32((uint32_t)(to - from - SKIPPABLE_BYTES))};
	if (to - from < SKIPPABLE_BYTES || fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
						   (off_t)from, (off_t)(to - from)) < 0)
		return;
	VX_POINT("prune.hole_made");
	ssize_t n = pwrite(fd, head, sizeof head, (off_t)from);
	(void)n; /* without it the gap is looked at again by the next */
}

/* The gaps that nobody has reclaimed yet. */
static void count(int fd, const struct places *v, uint64_t size, uint64_t *n, uint64_t *bytes)
{
	uint64_t at = 0;
	for (uint32_t i = 0; i <= v->n; i++) {
		uint64_t to = i < v->n ? v->v[i].off : size;
		if (at < to && !is_reclaimed(fd, at, to)) {
			++*n;
			*bytes += to - at;
		}
		if (i < v->n && v->v[i].off + v->v[i].bytes > at)
			at = v->v[i].off + v->v[i].bytes;
	}
}

/* Of a segment that nobody can begin to append to meanwhile. */
static void reclaim_all(
	struct gaps *g, int fd, const char *path, const struct places *live, uint64_t size)
{
	uint64_t at = 0;
	if (!vx_index_in_place(g->s->ix))
		return;
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

/* Once more, now that nobody can commit a place in it. */
static void idle_segment(struct gaps *g, uint64_t segment, const char *path, int fd, uint64_t size)
{
	struct places live = {.segment = segment}, both = {.segment = segment},
		      gone = of_segment(&g->gone, segment);
	if (read_places(g->s, &live) < 0)
		return;
	for (uint32_t i = 0; i < live.n; i++)
		collect(&both, NULL, &live.v[i]);
	for (uint32_t i = 0; i < gone.n; i++)
		collect(&both, NULL, &gone.v[i]);
	if (both.n)
		qsort(both.v, both.n, sizeof *both.v, by_offset);
	count(fd, &both, size, &g->n, &g->bytes);
	if (g->reclaim)
		reclaim_all(g, fd, path, &live, size);
	free(live.v);
	free(both.v);
}

/* What was given up of a segment that somebody appends to. Should it overlap with what is needed,
 * somebody has meddled: it is left alone. */
static void busy_segment(struct gaps *g, uint64_t segment, int fd)
{
	struct places live = of_segment(&g->all, segment), gone = of_segment(&g->gone, segment);
	uint32_t k = 0;
	uint64_t end = 0; /* of the places before the k-th */
	for (uint32_t i = 0; i < gone.n; i++) {
		const struct vx_place *p = &gone.v[i];
		for (; k < live.n && live.v[k].off <= p->off; k++)
			if (live.v[k].off + live.v[k].bytes > end)
				end = live.v[k].off + live.v[k].bytes;
		if (end <= p->off && (k == live.n || p->off + p->bytes <= live.v[k].off))
			reclaim(fd, p->off, p->off + p->bytes);
	}
}

/* Is there anything to be done? Most segments are as they were. */
static bool has_gaps(const struct gaps *g, uint64_t segment, int fd, uint64_t size)
{
	struct places live = of_segment(&g->all, segment);
	uint64_t n = 0, bytes = 0;
	count(fd, &live, size, &n, &bytes);
	return n || !live.n;
}

static void one_segment(struct gaps *g, const char *name)
{
	char path[VX_SEGMENT_PATH], *end;
	struct stat st;
	uint64_t segment = strtoull(name, &end, 16);
	vx_segment_path(segment, path);
	if (!segment || strcmp(path + 2, name) != 0)
		return;
	VX_CLEANUP_FD int fd = vx_open_beneath(
		g->s->dir_fd, path, (g->reclaim ? O_RDWR : O_RDONLY) | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -EACCES && g->reclaim) /* another user's: it can still be removed as a whole */
		fd = vx_open_beneath(g->s->dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
		!has_gaps(g, segment, fd, (uint64_t)st.st_size))
		return;
	bool idle = flock(fd, (g->reclaim ? LOCK_EX : LOCK_SH) | LOCK_NB) == 0;
	if (fstat(fd, &st) < 0 || !st.st_nlink)
		return;
	if (idle)
		idle_segment(g, segment, path, fd, (uint64_t)st.st_size);
	else
		busy_segment(g, segment, fd);
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

static int all_gaps(struct gaps *g, uint64_t *ret_n, uint64_t *ret_bytes)
{
	int r = g->s->ix ? read_places(g->s, &g->all) : 0;
	if (r == 0 && g->s->ix)
		r = each_segment(g);
	free(g->all.v);
	*ret_n = g->n;
	*ret_bytes = g->bytes;
	return r;
}

int vx_segments_gaps(struct vx_store *s, uint64_t *ret_n, uint64_t *ret_bytes)
{
	return all_gaps(&(struct gaps){.s = s}, ret_n, ret_bytes);
}

int vx_segments_lock(struct vx_store *s)
{
	int fd = vx_open(s->dir_fd, "s", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		int r = -errno;
		vx_close(fd);
		return r;
	}
	return fd;
}

int vx_segments_reclaim(struct vx_store *s, const struct vx_place *gone, uint32_t n_gone,
	uint64_t *ret_n, uint64_t *ret_bytes)
{
	struct gaps g = {.s = s, .reclaim = true};
	for (uint32_t i = 0; i < n_gone; i++)
		collect(&g.gone, NULL, &gone[i]);
	if (n_gone)
		qsort(g.gone.v, n_gone, sizeof *g.gone.v, by_offset);
	int r = all_gaps(&g, ret_n, ret_bytes);
	free(g.gone.v);
	return r;
}
