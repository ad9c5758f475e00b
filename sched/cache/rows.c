/* The store's rows: probing, committing groups, history, blobs. */
#include "store_int.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/point.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* artifacts that one thread looks for: below this a thread costs more than it saves */
#define STAT_SHARE 512
#define STAT_THREADS 4

size_t vx_store_id_key(const struct vx_store *s, const char *id, uint8_t ret[VX_INDEX_KEY_BYTES])
{
	size_t n = strlen(id);
	memcpy(ret, s->ws_id, 16);
	if (n <= VX_INDEX_KEY_BYTES - 16 - 1) {
		ret[16] = 'p';
		memcpy(ret + 17, id, n);
		return 17 + n;
	}
	struct vx_digest d;
	vx_sha256_of(id, n, &d);
	ret[16] = 'h';
	memcpy(ret + 17, d.b, 32);
	return 17 + 32;
}

bool vx_store_usable_row(const struct vx_store *s, const struct vx_row *r)
{
	return r->e.portable || (r->made_in_n == strlen(s->workspace) &&
					memcmp(r->made_in, s->workspace, r->made_in_n) == 0);
}

/* ---- probing ---- */

struct probe {
	struct vx_store *s;
	const struct vx_digest *keys;
	uint32_t n;
	bool *found;
	struct vx_entry *ret;
	uint64_t *log_file_bytes; /* per key: size of a log kept as a file, 0 none */
	struct vx_digest *log_digest;
	struct vx_segment_sizes sizes;
	uint64_t now;
};

static void note_stale(struct vx_store *s, const struct vx_digest *key)
{
	pthread_mutex_lock(&s->lock);
	if (s->n_stale == s->cap_stale) {
		s->cap_stale = s->cap_stale ? s->cap_stale * 2 : 256;
		s->stale = vx_xrealloc(s->stale, s->cap_stale * sizeof *s->stale);
	}
	s->stale[s->n_stale++] = *key;
	pthread_mutex_unlock(&s->lock);
}

static int probe_rows(struct vx_tx *t, void *arg)
{
	struct probe *p = arg;
	for (uint32_t i = 0; i < p->n; i++) {
		const void *v;
		size_t n;
		struct vx_row row;
		p->found[i] = false;
		int r = vx_tx_get(t, VX_DB_ENTRIES, p->keys[i].b, 32, &v, &n);
		if (r < 0 && r != -ENOENT)
			return r;
		if (r < 0 || vx_row_decode(&p->keys[i], v, n, &row) < 0 ||
			!vx_store_usable_row(p->s, &row))
			continue;
		struct vx_place place;
		bool small =
			row.e.artifact_bytes && row.e.artifact_bytes <= VX_SEGMENT_ARTIFACT_BYTES;
		r = small ? vx_place_get(t, &row.e.artifact, &place) : -ENOENT;
		if (r < 0 && r != -ENOENT)
			return r;
		if (r == 0) {
			if (place.bytes != row.e.artifact_bytes ||
				!vx_segment_holds(p->s, &p->sizes, &place))
				continue;
			row.e.segment = place.segment;
			row.e.offset = place.off;
		}
		p->found[i] = true;
		p->ret[i] = row.e;
		p->log_file_bytes[i] = row.log_kind == VX_LOG_FILE ? row.log_file_bytes : 0;
		p->log_digest[i] = row.log_digest;
		if (p->s->write &&
			(row.used_ns + VX_USED_GRAIN_NS < p->now || row.used_ns > p->now))
			note_stale(p->s, &p->keys[i]);
	}
	return 0;
}

static bool there(
	const struct vx_store *s, const struct vx_digest *d, const char *suffix, uint64_t bytes)
{
	char path[VX_ARTIFACT_PATH];
	struct stat st;
	vx_artifact_path(d, suffix, path);
	return fstatat(s->a_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
	       (uint64_t)st.st_size == bytes;
}

struct share {
	struct probe *p;
	uint32_t from, to;
	pthread_t thread;
	bool started;
};

static void *stat_share(void *arg)
{
	const struct share *h = arg;
	struct probe *p = h->p;
	for (uint32_t i = h->from; i < h->to; i++) {
		if (!p->found[i])
			continue;
		if (p->ret[i].artifact_bytes && !p->ret[i].segment &&
			!there(p->s, &p->ret[i].artifact, VX_SUFFIX_TAR, p->ret[i].artifact_bytes))
			p->found[i] = false;
		else if (p->log_file_bytes[i] &&
			 !there(p->s, &p->log_digest[i], VX_SUFFIX_LOG, p->log_file_bytes[i]))
			p->found[i] = false;
	}
	return NULL;
}

/* Which of what was found has its artifact? */
static void stat_artifacts(struct probe *p)
{
	uint32_t want = 0;
	for (uint32_t i = 0; i < p->n; i++)
		want += p->found[i] &&
			((p->ret[i].artifact_bytes && !p->ret[i].segment) || p->log_file_bytes[i]);
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t k = want / STAT_SHARE + 1;
	if (k > STAT_THREADS)
		k = STAT_THREADS;
	if (cpus > 0 && k > (uint32_t)cpus)
		k = (uint32_t)cpus;
	struct share v[STAT_THREADS];
	for (uint32_t i = 0; i < k; i++) {
		v[i] = (struct share){.p = p,
			.from = (uint32_t)((uint64_t)p->n * i / k),
			.to = (uint32_t)((uint64_t)p->n * (i + 1) / k)};
		v[i].started =
			i + 1 < k && pthread_create(&v[i].thread, NULL, stat_share, &v[i]) == 0;
		if (!v[i].started)
			stat_share(&v[i]);
	}
	for (uint32_t i = 0; i < k; i++)
		if (v[i].started)
			pthread_join(v[i].thread, NULL);
}

int vx_store_probe(struct vx_store *s, const struct vx_digest *keys, uint32_t n, bool *found,
	struct vx_entry *ret)
{
	memset(found, 0, n * sizeof *found);
	if (!s->ix || !s->read || !n)
		return 0;
	struct probe p = {
		.s = s, .keys = keys, .n = n, .found = found, .ret = ret, .now = vx_wall_ns()};
	p.log_file_bytes = vx_xcalloc(n, sizeof *p.log_file_bytes);
	p.log_digest = vx_xcalloc(n, sizeof *p.log_digest);
	int r = vx_index_read(s->ix, probe_rows, &p);
	if (r < 0)
		memset(found, 0, n * sizeof *found);
	else
		stat_artifacts(&p);
	vx_segment_sizes_free(&p.sizes);
	free(p.log_file_bytes);
	free(p.log_digest);
	if (r == -EBADMSG)
		return 0; /* damaged: everything is a miss, vx_store_note says why */
	if (r < 0)
		return r;
	int count = 0;
	for (uint32_t i = 0; i < n; i++)
		count += found[i];
	return count;
}

static int count_entries(struct vx_tx *t, void *arg)
{
	*(uint64_t *)arg = vx_tx_count(t, VX_DB_ENTRIES);
	return 0;
}

bool vx_store_empty(struct vx_store *s)
{
	uint64_t n = 0;
	return !s->ix || vx_index_read(s->ix, count_entries, &n) < 0 || n == 0;
}

/* ---- committing ---- */

struct group {
	struct vx_store *s;
	struct vx_commit *v;
	uint32_t n;
	struct vx_segment_sizes sizes;
	bool note; /* what is to be noted of the segment appended to has changed */
};

/* 0, or -ENOENT: what was to be used again has gone, or so has the segment. */
static int put_place(struct vx_tx *t, struct group *g, const struct vx_commit *c)
{
	struct vx_store *s = g->s;
	struct vx_place now;
	if (c->placed) { /* elsewhere by now, perhaps: somebody else has saved the same */
		int r = vx_place_get(t, &c->artifact, &now);
		return r < 0 || vx_segment_holds(s, &g->sizes, &now) ? r : -ENOENT;
	}
	if (!vx_segment_holds(s, &g->sizes, &c->place)) {
		atomic_store(&s->seg_lost, true);
		return -ENOENT;
	}
	uint64_t segment = atomic_load(&s->seg_id), end = c->place.off + c->place.bytes;
	if (c->place.segment == segment && (s->noted.segment != segment || s->noted.end < end)) {
		s->noted.segment = segment;
		s->noted.end = end;
		g->note = true;
	}
	return vx_place_put(t, &c->artifact, &c->place);
}

static int put_one(struct vx_tx *t, struct group *g, struct vx_commit *c)
{
	struct vx_store *s = g->s;
	struct stat st;
	c->res = 0;
	for (int i = 0; i < 2; i++)
		if (c->need[i] && fstatat(s->a_fd, c->need[i], &st, AT_SYMLINK_NOFOLLOW) < 0) {
			c->res = -errno;
			return 0;
		}
	int r = c->place.segment ? put_place(t, g, c) : 0;
	if (r == -ENOENT) {
		c->res = r;
		return 0;
	}
	if (r < 0)
		return r;
	if (c->entry && c->row_n)
		r = vx_tx_put(t, VX_DB_ENTRIES, c->key.b, 32, c->row, c->row_n);
	else if (c->entry)
		r = vx_tx_del(t, VX_DB_ENTRIES, c->key.b, 32);
	if (r == 0 && c->snap_n) {
		uint8_t key[VX_INDEX_KEY_BYTES];
		size_t key_n = vx_store_id_key(s, c->id, key);
		r = vx_tx_put(t, VX_DB_SNAPS, key, key_n, c->snap, c->snap_n);
	}
	return r;
}

static int put_group(struct vx_tx *t, void *arg)
{
	struct group *g = arg;
	struct vx_store *s = g->s;
	int r = 0;
	vx_segment_sizes_free(&g->sizes); /* this may be another attempt */
	for (uint32_t i = 0; i < g->n && r == 0; i++)
		r = put_one(t, g, &g->v[i]);
	if (r == 0 && g->note)
		r = vx_segment_set_last(t, s->noted.segment, s->noted.end);
	VX_POINT("commit.inside");
	return r;
}

int vx_store_commit(struct vx_store *s, struct vx_commit *v, uint32_t n)
{
	struct group g = {.s = s, .v = v, .n = n};
	int r = s->ix && s->write ? vx_index_write(s->ix, put_group, &g) : -EROFS;
	vx_segment_sizes_free(&g.sizes);
	return r;
}

/* ---- history ---- */

struct disk_history {
	uint64_t duration_ns, cpu_ns, peak_bytes;
	uint8_t last_key[32];
};

struct history {
	struct vx_store *s;
	const char *const *ids;
	uint32_t n;
	struct vx_history *ret;
	const struct vx_history *put;
};

static int history_get(struct vx_tx *t, void *arg)
{
	struct history *h = arg;
	for (uint32_t i = 0; i < h->n; i++) {
		uint8_t key[VX_INDEX_KEY_BYTES];
		size_t key_n = vx_store_id_key(h->s, h->ids[i], key), n;
		const void *v;
		struct disk_history d;
		h->ret[i] = (struct vx_history){0};
		int r = vx_tx_get(t, VX_DB_HISTORY, key, key_n, &v, &n);
		if (r == -ENOENT || (r == 0 && n != sizeof d))
			continue;
		if (r < 0)
			return r;
		memcpy(&d, v, sizeof d);
		h->ret[i] = (struct vx_history){
			le64toh(d.duration_ns), le64toh(d.cpu_ns), le64toh(d.peak_bytes), {{0}}};
		memcpy(h->ret[i].last_key.b, d.last_key, 32);
	}
	return 0;
}

int vx_store_history_get(
	struct vx_store *s, const char *const *ids, uint32_t n, struct vx_history *ret)
{
	struct history h = {.s = s, .ids = ids, .n = n, .ret = ret};
	memset(ret, 0, n * sizeof *ret);
	int r = s->ix && n ? vx_index_read(s->ix, history_get, &h) : 0;
	if (r < 0)
		memset(ret, 0, n * sizeof *ret);
	return r == -EBADMSG ? 0 : r;
}

static int history_put(struct vx_tx *t, void *arg)
{
	struct history *h = arg;
	for (uint32_t i = 0; i < h->n; i++) {
		uint8_t key[VX_INDEX_KEY_BYTES];
		size_t key_n = vx_store_id_key(h->s, h->ids[i], key);
		const struct vx_history *p = &h->put[i];
		struct disk_history d = {
			htole64(p->duration_ns), htole64(p->cpu_ns), htole64(p->peak_bytes), {0}};
		memcpy(d.last_key, p->last_key.b, 32);
		int r = vx_tx_put(t, VX_DB_HISTORY, key, key_n, &d, sizeof d);
		if (r < 0)
			return r;
	}
	return 0;
}

int vx_store_history_put(
	struct vx_store *s, const char *const *ids, uint32_t n, const struct vx_history *p)
{
	struct history h = {.s = s, .ids = ids, .n = n, .put = p};
	if (!n)
		return 0;
	return s->ix && s->write ? vx_index_write(s->ix, history_put, &h) : -EROFS;
}

/* ---- blobs ---- */

struct blob_call {
	const char *space;
	const struct vx_blob *v;
	uint32_t n;
	struct vx_arena *a;
	void *ret;
	size_t ret_n;
};

static size_t blob_key(
	const char *space, const void *key, size_t key_n, uint8_t ret[VX_INDEX_KEY_BYTES])
{
	size_t n = strnlen(space, 32);
	memcpy(ret, space, n);
	ret[n++] = '\0';
	if (key_n <= VX_INDEX_KEY_BYTES - n - 1) {
		ret[n++] = 'p';
		if (key_n)
			memcpy(ret + n, key, key_n);
		return n + key_n;
	}
	struct vx_digest d;
	vx_sha256_of(key, key_n, &d);
	ret[n++] = 'h';
	memcpy(ret + n, d.b, 32);
	return n + 32;
}

static int blob_get(struct vx_tx *t, void *arg)
{
	struct blob_call *c = arg;
	uint8_t key[VX_INDEX_KEY_BYTES];
	size_t key_n = blob_key(c->space, c->v->key, c->v->key_n, key);
	const void *v;
	int r = vx_tx_get(t, VX_DB_BLOBS, key, key_n, &v, &c->ret_n);
	if (r == 0)
		c->ret = vx_arena_dup(c->a, v, c->ret_n);
	return r;
}

int vx_store_blob_get(struct vx_store *s, const char *space, const void *key, size_t key_n,
	struct vx_arena *a, void **ret, size_t *ret_n)
{
	struct vx_blob b = {.key = key, .key_n = key_n};
	struct blob_call c = {.space = space, .v = &b, .n = 1, .a = a};
	int r = s->ix ? vx_index_read(s->ix, blob_get, &c) : -ENOENT;
	if (r < 0)
		return r == -EBADMSG ? -ENOENT : r;
	*ret = c.ret;
	*ret_n = c.ret_n;
	return 0;
}

static int blob_put(struct vx_tx *t, void *arg)
{
	const struct blob_call *c = arg;
	int r = 0;
	for (uint32_t i = 0; i < c->n && r == 0; i++) {
		uint8_t key[VX_INDEX_KEY_BYTES];
		size_t key_n = blob_key(c->space, c->v[i].key, c->v[i].key_n, key);
		r = vx_tx_put(t, VX_DB_BLOBS, key, key_n, c->v[i].val, c->v[i].n);
	}
	return r;
}

int vx_store_blob_put_many(
	struct vx_store *s, const char *space, const struct vx_blob *v, uint32_t n)
{
	struct blob_call c = {.space = space, .v = v, .n = n};
	if (!n)
		return 0;
	return s->ix && s->write ? vx_index_write(s->ix, blob_put, &c) : -EROFS;
}

int vx_store_blob_put(struct vx_store *s, const char *space, const void *key, size_t key_n,
	const void *val, size_t n)
{
	struct vx_blob b = {.key = key, .val = val, .key_n = key_n, .n = n};
	return vx_store_blob_put_many(s, space, &b, 1);
}
