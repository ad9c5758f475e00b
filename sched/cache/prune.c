/* Pruning: entries that are too old or too many go, least recently used first. Rows are deleted and
 * committed before any file is unlinked; a file is unlinked only inside a write transaction (which
 * every save's commit waits for, in all processes) that finds no row referring to it. A save that
 * reuses a file checks within its own commit that the file is still there. */
#include "upkeep.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/err.h"
#include "vx/json.h"
#include "vx/point.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ORPHAN_AGE_S 3600 /* a file without a row may be a save's that is about to commit */

struct prune {
	struct vx_store *s;
	const struct vx_prune_opts *o;
	struct vx_census c;
	uint64_t now_ns;
	uint64_t entries, bytes, left_bytes; /* removed; what remains */
	/* files to unlink if nothing refers to them */
	struct vx_arena a;
	const char **files;
	uint64_t *file_bytes;
	uint32_t n_files, cap_files;
	/* that are given up: of removed entries, and such as no entry needs */
	struct vx_place *places;
	uint32_t n_places, cap_places;
	uint64_t files_gone, orphans_gone, bytes_gone;
	/* of files: those before are of removed entries, those after are orphans */
	uint32_t n_candidates;
};

static int by_use(const void *a, const void *b)
{
	const struct vx_census_entry *x = a, *y = b;
	if (x->used_ns != y->used_ns)
		return x->used_ns < y->used_ns ? -1 : 1;
	return memcmp(x->key.b, y->key.b, sizeof x->key.b);
}

static void let_go(struct prune *p, struct vx_census_entry *e)
{
	uint32_t files[2] = {e->artifact, e->log};
	e->goes = true;
	p->entries++;
	for (int i = 0; i < 2; i++) {
		if (files[i] == VX_MAP_NONE || --p->c.files[files[i]].refs)
			continue;
		p->bytes += p->c.files[files[i]].bytes;
		p->left_bytes -= p->c.files[files[i]].bytes;
	}
}

static void choose(struct prune *p)
{
	p->entries = p->bytes = p->left_bytes = 0;
	for (uint32_t i = 0; i < p->c.n_files; i++)
		p->left_bytes += p->c.files[i].bytes;
	if (p->c.n)
		qsort(p->c.v, p->c.n, sizeof *p->c.v, by_use);
	for (uint32_t i = 0; i < p->c.n; i++) {
		struct vx_census_entry *e = &p->c.v[i];
		bool old = p->o->older_than_ns && e->used_ns + p->o->older_than_ns < p->now_ns;
		bool much = p->o->max_bytes && p->left_bytes > p->o->max_bytes &&
			    (e->artifact != VX_MAP_NONE || e->log != VX_MAP_NONE);
		if ((!e->ok && !e->odd_key) || old || much)
			let_go(p, e);
	}
}

static int look(struct vx_tx *t, void *arg)
{
	struct prune *p = arg;
	int r = vx_census_entries(t, &p->c);
	if (r == 0)
		choose(p);
	return r;
}

struct snap_scan {
	const struct vx_map *gone;
	struct vx_arena *a;
	const void **keys;
	size_t *lens;
	uint32_t n, cap;
};

static int find_snap(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok)
{
	struct snap_scan *k = arg;
	struct vx_snap s;
	if (ok && vx_snap_decode(val, n, &s) == 0 &&
		vx_map_get(k->gone, s.key.b, sizeof s.key.b) == VX_MAP_NONE)
		return 0;
	if (k->n == k->cap) {
		k->cap = k->cap ? k->cap * 2 : 64;
		k->keys = vx_xrealloc(k->keys, k->cap * sizeof *k->keys);
		k->lens = vx_xrealloc(k->lens, k->cap * sizeof *k->lens);
	}
	k->keys[k->n] = vx_arena_dup(k->a, key, key_n);
	k->lens[k->n++] = key_n;
	return 0;
}

static int give_up_place(struct vx_tx *t, struct prune *p, const struct vx_digest *artifact,
	const struct vx_place *place)
{
	if (p->n_places == p->cap_places) {
		p->cap_places = p->cap_places ? p->cap_places * 2 : 64;
		p->places = vx_xrealloc(p->places, p->cap_places * sizeof *p->places);
	}
	p->places[p->n_places++] = *place;
	return vx_place_del(t, artifact);
}

/* With their rows: from then on nobody finds what lies there. A save that meant to use it again
 * looks for the place within its own commit. */
static int delete_places(struct vx_tx *t, struct prune *p)
{
	int r = 0;
	p->n_places = 0;
	for (uint32_t i = 0; i < p->c.n_files && r == 0; i++)
		if (!p->c.files[i].refs && p->c.files[i].place.segment)
			r = give_up_place(t, p, &p->c.files[i].digest, &p->c.files[i].place);
	for (uint32_t i = 0; i < p->c.n_spare && r == 0; i++)
		r = give_up_place(t, p, &p->c.spare[i].artifact, &p->c.spare[i].place);
	return r;
}

/* Snapshots of entries that go. */
static int delete_snaps(struct vx_tx *t, struct prune *p)
{
	struct vx_map gone = {0};
	struct vx_arena a = {0};
	struct snap_scan k = {.gone = &gone, .a = &a};
	for (uint32_t i = 0; i < p->c.n; i++)
		if (p->c.v[i].goes)
			vx_map_put(&gone, p->c.v[i].key.b, sizeof p->c.v[i].key.b, i);
	int r = gone.n ? vx_tx_each(t, VX_DB_SNAPS, find_snap, &k) : 0;
	for (uint32_t i = 0; i < k.n && r == 0; i++)
		r = vx_tx_del(t, VX_DB_SNAPS, k.keys[i], k.lens[i]);
	free(k.keys);
	free(k.lens);
	vx_map_free(&gone);
	vx_arena_free(&a);
	return r;
}

static int delete_rows(struct vx_tx *t, void *arg)
{
	struct prune *p = arg;
	int r = look(t, arg);
	for (uint32_t i = 0; i < p->c.n && r == 0; i++)
		if (p->c.v[i].goes)
			r = vx_tx_del(t, VX_DB_ENTRIES, p->c.v[i].key.b, sizeof p->c.v[i].key.b);
	if (r == 0)
		r = delete_snaps(t, p);
	if (r == 0)
		r = delete_places(t, p);
	VX_POINT("prune.rows_deleted");
	return r;
}

static void add_candidate(struct prune *p, const char *path, uint64_t bytes)
{
	if (p->n_files == p->cap_files) {
		p->cap_files = p->cap_files ? p->cap_files * 2 : 64;
		p->files = vx_xrealloc(p->files, p->cap_files * sizeof *p->files);
		p->file_bytes = vx_xrealloc(p->file_bytes, p->cap_files * sizeof *p->file_bytes);
	}
	p->files[p->n_files] = vx_arena_strdup(&p->a, path);
	p->file_bytes[p->n_files++] = bytes;
}

static void add_orphan(void *arg, const char *path, const struct stat *st)
{
	struct prune *p = arg;
	bool old = (uint64_t)st->st_mtim.tv_sec + ORPHAN_AGE_S < p->now_ns / 1000000000 &&
		   (uint64_t)st->st_ctim.tv_sec + ORPHAN_AGE_S < p->now_ns / 1000000000;
	uint32_t i = vx_map_gets(&p->c.by_path, path);
	if (old && (i == VX_MAP_NONE || p->c.files[i].place.segment))
		add_candidate(p, path, (uint64_t)st->st_size);
}

/* In a write transaction: nobody commits meanwhile. It changes no row, so it may be run again. */
static int unlink_files(struct vx_tx *t, void *arg)
{
	struct prune *p = arg;
	struct vx_census now = {0};
	int r = vx_census_entries(t, &now);
	for (uint32_t i = 0; i < p->n_files && r == 0; i++) {
		uint32_t k = vx_map_gets(&now.by_path, p->files[i]);
		if (k != VX_MAP_NONE && !now.files[k].place.segment)
			continue;
		if (vx_artifact_unlink(p->s, p->files[i]) < 0)
			continue;
		*(i < p->n_candidates ? &p->files_gone : &p->orphans_gone) += 1;
		p->bytes_gone += p->file_bytes[i];
		VX_POINT("prune.unlinked");
	}
	vx_census_free(&now);
	return r;
}

static void reclaim_segments(struct prune *p, int lock)
{
	uint64_t n = 0, bytes = 0;
	if (lock >= 0)
		vx_segments_reclaim(p->s, p->places, p->n_places, &n, &bytes);
	for (uint32_t i = 0; i < p->c.n_spare; i++)
		bytes += p->c.spare[i].place.bytes;
	p->orphans_gone += n + p->c.n_spare;
	p->bytes_gone += bytes;
}

/* How many there would be. */
static void orphans_of(struct prune *p)
{
	uint64_t n = 0, bytes;
	vx_store_each_file(p->s, add_orphan, p);
	vx_segments_gaps(p->s, &n, &bytes);
	p->orphans_gone = p->n_files + p->c.n_spare + n;
}

static int prune_now(struct prune *p)
{
	VX_CLEANUP_FD int lock = vx_segments_lock(p->s);
	if (!vx_index_damaged(p->s->ix) && !vx_index_in_place(p->s->ix))
		return -ESTALE;
	VX_POINT("prune.begin");
	int r = vx_index_write(p->s->ix, delete_rows, p);
	VX_POINT("prune.committed");
	for (uint32_t i = 0; i < p->c.n_files && r == 0; i++) {
		const struct vx_census_file *f = &p->c.files[i];
		if (!f->refs && f->place.segment) {
			p->files_gone++;
			p->bytes_gone += f->place.bytes;
		} else if (!f->refs) {
			add_candidate(p, f->path, f->bytes);
		}
	}
	p->n_candidates = p->n_files;
	if (r == 0)
		vx_store_each_file(p->s, add_orphan, p);
	VX_POINT("prune.orphans_listed");
	if (r == 0 && p->n_files)
		r = vx_index_write(p->s->ix, unlink_files, p);
	VX_POINT("prune.files_gone");
	if (r == 0)
		reclaim_segments(p, lock);
	return r;
}

int vx_store_prune(
	struct vx_store *s, const struct vx_prune_opts *o, struct vx_json **ret, struct vx_err *err)
{
	struct prune p = {.s = s, .o = o, .now_ns = vx_wall_ns()};
	int r = vx_store_open_err(s, err);
	if (r < 0)
		return r;
	if (s->ix && !o->dry_run && !vx_store_writable(s)) {
		const char *why = vx_store_why(s);
		return vx_err_set(
			err, -EROFS, "%s", why ? why : "the cache was opened for reading only");
	}
	if (s->ix)
		r = o->dry_run ? vx_index_read(s->ix, look, &p) : prune_now(&p);
	uint32_t swept = 0;
	if (r == 0 && s->ix && o->dry_run)
		orphans_of(&p);
	else if (r == 0 && s->ix)
		vx_store_sweep_tmp(s->tmps_fd, &swept);
	VX_POINT("prune.swept");
	if (r == 0) {
		struct vx_json *j = vx_json_object();
		vx_json_set(j, "dryRun", vx_json_new_bool(o->dry_run));
		vx_json_set(j, "entries", vx_json_new_int((int64_t)p.entries));
		vx_json_set(j, "files", vx_json_new_int((int64_t)p.files_gone));
		vx_json_set(j, "bytes",
			vx_json_new_int((int64_t)(o->dry_run ? p.bytes : p.bytes_gone)));
		vx_json_set(j, "orphans", vx_json_new_int((int64_t)(p.orphans_gone)));
		vx_json_set(j, "temporaries", vx_json_new_int(swept));
		vx_json_set(j, "leftEntries", vx_json_new_int((int64_t)(p.c.n - p.entries)));
		vx_json_set(j, "leftBytes", vx_json_new_int((int64_t)p.left_bytes));
		*ret = j;
	} else {
		vx_err_set(err, r, "the cache %s could not be pruned: %s", s->dir,
			r == -EBADMSG  ? "its index is damaged (the next run begins a new one)"
			: r == -ESTALE ? "another process has put its index aside meanwhile"
				       : vx_strerror(r));
	}
	vx_census_free(&p.c);
	vx_arena_free(&p.a);
	free(p.files);
	free(p.places);
	free(p.file_bytes);
	return r;
}

static int bad_setting(struct vx_err *err, const char *name, const char *value, const char *fix)
{
	vx_err_set(err, -EINVAL, "cacheRetention.%s \"%s\" is not understood", name, value);
	vx_err_fix(err, "%s", fix);
	return -EINVAL;
}

int vx_store_retain(
	struct vx_store *s, const char *older_than, const char *max_size, struct vx_err *err)
{
	struct vx_prune_opts o = {0};
	struct vx_json *j = NULL;
	if (older_than && vx_parse_age(older_than, &o.older_than_ns) < 0)
		return bad_setting(
			err, "olderThan", older_than, "a number and s, m, h, d or w: 30d");
	if (max_size && vx_parse_bytes(max_size, &o.max_bytes) < 0)
		return bad_setting(err, "maxSize", max_size, "a number and K, M or G: 10G");
	if ((!older_than && !max_size) || !vx_store_writable(s))
		return 0;
	int r = vx_store_prune(s, &o, &j, err);
	vx_json_free(j);
	return r;
}
