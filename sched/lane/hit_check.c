/* Hits: is everything in place already? Stats first; then a look at what is there; only then the
 * artifact. */
#include "lane_int.h"

#include "vx/clock.h"
#include "vx/err.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the index says about one request; copied out of the transaction. */
struct known {
	bool have_row, have_snap;
	struct vx_row row;
	struct vx_snap snap;
};

struct look_up {
	struct vx_hand *h;
	struct vx_job *jobs;
	struct known *v;
	struct vx_arena *a;
};

static int look_up(struct vx_tx *t, void *arg)
{
	struct look_up *k = arg;
	struct vx_store *s = k->h->l->o.store;
	struct known *v = k->v;
	for (const struct vx_job *j = k->jobs; j; j = j->next, v++) {
		const void *p;
		size_t n;
		uint8_t key[VX_INDEX_KEY_BYTES];
		*v = (struct known){0};
		int r = vx_tx_get(t, VX_DB_ENTRIES, j->entry.key.b, 32, &p, &n);
		if (r < 0 && r != -ENOENT)
			return r;
		v->have_row =
			r == 0 &&
			vx_row_decode(&j->entry.key, vx_arena_dup(k->a, p, n), n, &v->row) == 0 &&
			vx_digest_equal(&v->row.e.artifact, &j->entry.artifact);
		if (vx_outputs_none(&j->outputs))
			continue;
		r = vx_tx_get(t, VX_DB_SNAPS, key, vx_store_id_key(s, j->id, key), &p, &n);
		if (r < 0 && r != -ENOENT)
			return r;
		v->have_snap = r == 0 && vx_snap_decode(vx_arena_dup(k->a, p, n), n, &v->snap) == 0;
	}
	return 0;
}

/* ---- the log ---- */

static int read_log_file(struct vx_hand *h, const struct vx_row *row, void **ret, size_t *ret_n)
{
	char path[VX_ARTIFACT_PATH];
	vx_artifact_path(&row->log_digest, VX_SUFFIX_LOG, path);
	if (row->log_file_bytes > VX_LOG_MAX_BYTES)
		return -EBADMSG;
	int fd = vx_io_open_beneath(
		h->io, h->l->o.store->a_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd;
	struct vx_digest d;
	void *p = vx_xmalloc(row->log_file_bytes + 1);
	int64_t n = vx_io_read_at(h->io, fd, p, row->log_file_bytes + 1, 0);
	vx_io_close_fd(h->io, fd);
	int r = n < 0 ? (int)n : (uint64_t)n != row->log_file_bytes ? -EBADMSG : 0;
	if (r == 0)
		vx_sha256_of(p, (size_t)n, &d);
	if (r == 0 && !vx_digest_equal(&d, &row->log_digest))
		r = -EBADMSG;
	if (r < 0) {
		free(p);
		return r;
	}
	*ret = p;
	*ret_n = (size_t)n;
	return 0;
}

/* malloc'ed; NULL with *ret_n 0 when there is none. */
static int read_log(struct vx_hand *h, const struct vx_row *row, void **ret, size_t *ret_n)
{
	*ret = NULL;
	*ret_n = 0;
	if (row->log_kind == VX_LOG_NONE)
		return 0;
	void *packed = NULL, *plain = vx_xmalloc(row->log_bytes + 1);
	const void *p = row->log;
	size_t n = row->log_n, got = 0;
	int r = 0;
	if (row->log_kind == VX_LOG_FILE) {
		r = read_log_file(h, row, &packed, &n);
		p = packed;
	}
	if (r == 0 && row->log_kind == VX_LOG_PLAIN) {
		got = n;
		if (n == row->log_bytes)
			memcpy(plain, p, n);
	} else if (r == 0) {
		if (!h->unzip)
			h->unzip = vx_unzip_new();
		r = vx_unzip_all(h->unzip, p, n, plain, row->log_bytes + 1, &got);
	}
	free(packed);
	if (r == 0 && got != row->log_bytes)
		r = -EBADMSG;
	if (r < 0) {
		free(plain);
		return r;
	}
	*ret = plain;
	*ret_n = got;
	return 0;
}

/* ---- looking ---- */

/* Everything as the snapshot has it, by stats alone, and out of reach of a race. */
static bool in_place(struct vx_hand *h, const struct vx_job *j, const struct vx_snap *snap)
{
	struct vx_snap s = *snap;
	struct vx_seen was;
	uint32_t n = 0;
	if (!vx_digest_equal(&s.key, &j->entry.key) ||
		!vx_digest_equal(&s.artifact, &j->entry.artifact))
		return false;
	int base = -1, r;
	bool same = true;
	const char *dir = vx_outputs_base(&j->outputs);
	size_t dir_n = strlen(dir);
	if (dir_n) { /* the way to the project passes no link */
		base = vx_io_open_beneath(h->io, h->l->root_fd, dir, O_PATH | O_DIRECTORY, 0);
		if (base < 0)
			return false;
	}
	while (same && (r = vx_snap_next(&s, &was)) == 1) {
		bool below = dir_n && was.len > dir_n && was.path[dir_n] == '/' &&
			     memcmp(was.path, dir, dir_n) == 0;
		struct vx_seen now = {0};
		struct stat st;
		const char *path = below ? was.path + dir_n + 1 : *was.path ? was.path : ".";
		r = vx_io_stat_at(h->io, below ? base : h->l->root_fd, path, &st);
		if (r == 0)
			vx_seen_of(&st, &now);
		/* others may add beside; but it is no link to one elsewhere */
		if (n++ < s.n_dirs && j->outputs.additive && was.mode) {
			same = r == 0 && now.mode == was.mode;
			continue;
		}
		same = (r >= 0 || r == -ENOENT || r == -ENOTDIR) && vx_seen_equal(&was, &now) &&
		       !vx_seen_racy(&s, &was);
	}
	vx_io_close_fd(h->io, base);
	return same && r == 0 && n == s.n_dirs + s.n_files;
}

/* The outputs' part of a snapshot, as an array sorted by path. */
static struct vx_seen *snap_files(const struct vx_snap *snap, uint32_t *ret_n)
{
	struct vx_snap s = *snap;
	struct vx_seen e, *v = NULL;
	uint32_t i = 0, n = 0, cap = 0;
	while (vx_snap_next(&s, &e) == 1) {
		if (i++ < s.n_dirs)
			continue;
		if (n == cap) {
			cap = cap ? cap * 2 : 16;
			v = vx_xrealloc(v, cap * sizeof *v);
		}
		v[n++] = e;
	}
	*ret_n = n;
	return v;
}

/* Have the directories that the artifact holds, those between the base and an output, the modes
 * that they had? */
static bool same_dir_modes(const struct vx_walk *w, const struct vx_snap *snap)
{
	struct vx_snap s = *snap;
	struct vx_seen was;
	for (uint32_t i = 0; i < s.n_dirs && vx_snap_next(&s, &was) == 1; i++) {
		const struct vx_seen *now = vx_walk_dir(w, was.path, was.len);
		if (now && was.mode && now->mode && now->mode != was.mode &&
			vx_walk_leads(w, was.path, was.len))
			return false;
	}
	return true;
}

/* The directories changed, or it is another key with the same outputs: is nevertheless every output
 * as it was, and none more? */
static bool same_outputs(
	const struct vx_job *j, const struct vx_snap *snap, const struct vx_walk *w)
{
	if (!vx_digest_equal(&snap->artifact, &j->entry.artifact) ||
		snap->n_files != j->entry.n_outputs)
		return false;
	uint32_t n = 0, k = 0;
	struct vx_seen *v = snap_files(snap, &n);
	bool same = n == snap->n_files;
	for (uint32_t i = 0; i < w->n_outs && same; i++) {
		const struct vx_seen *now = &w->outs[i].seen;
		if (k < n && strcmp(v[k].path, now->path) == 0) {
			same = vx_seen_equal(&v[k], now) && !vx_seen_racy(snap, &v[k]);
			k++;
		} else {
			same = j->outputs.additive && (k == n || strcmp(now->path, v[k].path) < 0);
		}
	}
	free(v);
	return same && k == n && (j->outputs.additive || same_dir_modes(w, snap));
}

/* ---- answering ---- */

static void answer(struct vx_hand *h, const struct vx_job *j, const struct vx_row *row,
	bool up_to_date, uint64_t bytes)
{
	void *log;
	size_t n;
	int r = read_log(h, row, &log, &n);
	if (r < 0) {
		char text[256];
		snprintf(text, sizeof text,
			"the cached result of %.100s cannot be used: its log is %s; it runs instead",
			j->id, r == -EBADMSG ? "damaged" : "missing");
		vx_hand_send(h, &(struct vx_lane_event){.kind = VX_LANE_RESTORED, .task = j->task},
			NULL, text);
		return;
	}
	atomic_fetch_add(up_to_date ? &h->l->n_up_to_date : &h->l->n_restores, 1);
	vx_hand_send(h,
		&(struct vx_lane_event){.kind = VX_LANE_RESTORED,
			.task = j->task,
			.ok = true,
			.up_to_date = up_to_date,
			.bytes = bytes,
			.log = log,
			.log_bytes = n,
			.n_outputs = j->entry.n_outputs},
		log, NULL);
}

void vx_keep_snapshot(
	struct vx_hand *h, const struct vx_job *j, const struct vx_walk *w, uint64_t taken_ns)
{
	if (!vx_store_writable(h->l->o.store))
		return;
	struct vx_snap head = {
		.key = j->entry.key, .artifact = j->entry.artifact, .taken_ns = taken_ns};
	head.fine = vx_lane_fine_stamps(h) && !w->elsewhere;
	struct vx_pending *c = vx_xcalloc(1, sizeof *c);
	c->id = vx_xstrdup(j->id);
	vx_snap_of(w, &head, &c->snap, &c->c.snap_n);
	vx_lane_commit(h->l, c);
}

/* `res`, where it came so far: says whether the entry itself is at fault. */
static void give_up(struct vx_hand *h, const struct vx_job *j, const struct vx_restored *res,
	const struct vx_fail *f)
{
	bool damaged = res && res->damaged;
	char text[sizeof f->text + 160];
	struct vx_fail cause = {.code = f->code};
	snprintf(cause.step, sizeof cause.step, "restore/%.14s", f->step);
	snprintf(text, sizeof text,
		damaged ? "the cached result of %.100s is damaged: %s; it runs instead"
			: "%.100s could not be restored: %s; it runs instead",
		j->id, f->text);
	if (damaged)
		vx_store_drop(h->l->o.store, &j->entry, res->file_seen ? &res->file : NULL);
	else if (!vx_lane_first_of(h->l, &cause))
		/* what keeps one from being restored keeps many; a damaged entry is told each */
		text[0] = '\0';
	vx_hand_send(
		h, &(struct vx_lane_event){.kind = VX_LANE_RESTORED, .task = j->task}, NULL, text);
}

static void restore_one(struct vx_hand *h, const struct vx_job *j, const struct known *k)
{
	struct vx_fail f = {0};
	struct vx_walk w;
	if (!k->have_row) {
		vx_fail_set(&f, -ENOENT, "look up", "its entry");
		snprintf(f.text, sizeof f.text, "its entry is gone from the index");
		give_up(h, j, NULL, &f);
		return;
	}
	bool none = vx_outputs_none(&j->outputs);
	if ((none && !j->entry.n_outputs) || (k->have_snap && in_place(h, j, &k->snap))) {
		answer(h, j, &k->row, true, 0);
		return;
	}
	uint64_t taken = vx_fs_now_ns();
	if (vx_walk(h->io, h->l->root_fd, h->l->root_dev, &j->outputs, &w, &f) < 0) {
		give_up(h, j, NULL, &f);
		return;
	}
	if (k->have_snap && same_outputs(j, &k->snap, &w)) {
		vx_keep_snapshot(h, j, &w, taken);
		answer(h, j, &k->row, true, 0);
		vx_walk_free(&w);
		return;
	}
	if (h->held.newest && (j->entry.artifact_bytes > VX_LANE_HOLD_BYTES ||
				      vx_now_ns() - h->held_ns > VX_LANE_HOLD_MS * 1000000ULL))
		vx_hand_flush(h); /* those before wait long enough for company */
	struct vx_restored res = {0};
	int r = vx_restore_entry(h, j, &w,
		k->have_snap && vx_digest_equal(&k->snap.artifact, &j->entry.artifact) ? &k->snap
										       : NULL,
		&res, &f);
	vx_walk_free(&w);
	VX_POINT("restore.end");
	if (r < 0)
		give_up(h, j, &res, &f);
	else
		answer(h, j, &k->row, res.untouched, res.bytes);
}

void vx_do_restores(struct vx_hand *h, struct vx_job *jobs)
{
	struct vx_arena a = {0};
	uint32_t n = 0, i = 0;
	for (const struct vx_job *j = jobs; j; j = j->next)
		n++;
	struct known *v = vx_xcalloc(n, sizeof *v);
	struct look_up k = {h, jobs, v, &a};
	struct vx_store *s = h->l->o.store;
	if (!s->ix || vx_index_read(s->ix, look_up, &k) < 0)
		memset(v, 0, n * sizeof *v);
	for (const struct vx_job *j = jobs; j; j = j->next)
		restore_one(h, j, &v[i++]);
	pthread_mutex_lock(&h->l->lock);
	bool more = h->l->front.queued;
	pthread_mutex_unlock(&h->l->lock);
	if (!more)
		vx_stage_drop(h);
	vx_hand_flush(h);
	free(v);
	vx_arena_free(&a);
}
