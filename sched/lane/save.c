/* Saving: outputs are found and read, the inputs are looked at once more, and what was read becomes
 * an artifact and a row. */
#include "lane_int.h"

#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOG_PLAIN_BYTES 200 /* a log up to this is not worth compressing */

/* Changes a file three times and looks whether each left a stamp of its own. */
static bool try_stamps(struct vx_hand *h)
{
	char name[64];
	snprintf(name, sizeof name, ".vx/stamp-%d", (int)getpid());
	int fd = vx_io_open_beneath(
		h->io, h->l->root_fd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
	if (fd < 0)
		return false;
	struct timespec last = {0};
	bool fine = true;
	for (int i = 0; i < 4 && fine; i++) {
		struct stat st;
		fine = vx_io_write_at(h->io, fd, "x", 1, 0) == 0 &&
		       vx_io_stat_fd(h->io, fd, &st) == 0;
		if (fine && i) {
			int64_t d = (st.st_ctim.tv_sec - last.tv_sec) * 1000000000LL +
				    st.st_ctim.tv_nsec - last.tv_nsec;
			/* a tick of a coarse clock takes a millisecond or more */
			fine = d > 0 && (i == 1 || d < 900000);
		}
		if (fine)
			last = st.st_ctim;
	}
	vx_io_close_fd(h->io, fd);
	vx_io_unlink_at(h->io, h->l->root_fd, name, 0);
	return fine;
}

bool vx_lane_fine_stamps(struct vx_hand *h)
{
	struct vx_lane *l = h->l;
	int v = atomic_load(&l->stamps);
	if (!v) {
		pthread_mutex_lock(&l->tmp_lock);
		v = atomic_load(&l->stamps);
		if (!v) {
			const char *force = getenv("VX_STAMPS");
			v = (force ? strcmp(force, "fine") == 0 : try_stamps(h)) ? 1 : 2;
			atomic_store(&l->stamps, v);
		}
		pthread_mutex_unlock(&l->tmp_lock);
	}
	return v == 1;
}

/* What cannot be saved is refused by name. */
static int refuse(const struct vx_walk *w, struct vx_fail *f)
{
	if (w->through_link) {
		vx_fail_set(f, -ELOOP, "walk", "%s", w->through_link);
		snprintf(f->text, sizeof f->text,
			"the outputs lie behind the symbolic link %.400s, and links are not followed",
			w->through_link);
		return -ELOOP;
	}
	if (w->astray) {
		const char *path = w->astray->seen.path;
		vx_fail_set(f, -ELOOP, "walk", "%s", path);
		snprintf(f->text, sizeof f->text,
			"%.250s is a symbolic link to %.250s, which is not among its outputs (name what it leads to there too)",
			path, w->astray->target);
		return -ELOOP;
	}
	for (uint32_t i = 0; i < w->n_outs; i++) {
		const struct vx_out *o = &w->outs[i];
		mode_t m = o->seen.mode;
		const char *what =
			S_ISREG(m) && (m & (S_ISUID | S_ISGID))
				? "is a set-id program, and none is kept (chmod ug-s it in the command)"
			: S_ISREG(m) || S_ISLNK(m) || S_ISDIR(m) ? NULL
			: S_ISFIFO(m)                            ? "is a FIFO"
			: S_ISSOCK(m)                            ? "is a socket"
								 : "is a device";
		if (!what)
			continue;
		vx_fail_set(f, -EOPNOTSUPP, "walk", "%s", o->seen.path);
		snprintf(f->text, sizeof f->text, "%.400s %s", o->seen.path, what);
		return -EOPNOTSUPP;
	}
	return 0;
}

/* Nothing may have changed between the look and the end of reading. */
static int same_as_walked(struct vx_hand *h, const struct vx_walk *w, struct vx_fail *f)
{
	for (uint32_t i = 0; i < w->n_outs + w->n_dirs; i++) {
		const struct vx_seen *e =
			i < w->n_outs ? &w->outs[i].seen : &w->dirs[i - w->n_outs];
		struct vx_seen now = {0};
		struct stat st;
		int r = vx_io_stat_at(h->io, h->l->root_fd, *e->path ? e->path : ".", &st);
		if (r == -ENOENT || r == -ENOTDIR)
			r = 0;
		else if (r == 0)
			vx_seen_of(&st, &now);
		if (r < 0)
			return vx_fail_set(f, r, "stat", "%s", e->path);
		if (i >= w->n_outs && !S_ISDIR(e->mode) && !S_ISDIR(now.mode))
			continue;
		/* A directory that merely leads to the outputs may change beside them; what it may
		 * not do is become another. */
		bool ok = i < w->n_outs ? vx_seen_equal(e, &now)
					: e->ino == now.ino && e->mode == now.mode;
		if (!ok)
			return vx_fail_set(
				f, -EBUSY, "read", "%s changed while it was read", e->path);
	}
	return 0;
}

static int make_log(struct vx_hand *h, const struct vx_save_req *q, struct vx_row *row,
	struct vx_buf *hold, struct vx_fail *f)
{
	if (!q->log_bytes)
		return 0;
	if (q->log_bytes > VX_LOG_MAX_BYTES)
		return vx_fail_set(f, -EFBIG, "log", "a log of %zu bytes (the limit is %u)",
			q->log_bytes, VX_LOG_MAX_BYTES);
	row->log_bytes = q->log_bytes;
	row->log = q->log;
	row->log_n = q->log_bytes;
	row->log_kind = VX_LOG_PLAIN;
	if (q->log_bytes <= LOG_PLAIN_BYTES)
		return 0;
	if (!h->zip)
		h->zip = vx_zip_new();
	size_t cap = vx_zip_bound(q->log_bytes), n = 0;
	void *dst = vx_buf_reserve(hold, cap);
	int r = vx_zip_all(h->zip, q->log, q->log_bytes, dst, cap, &n);
	if (r < 0)
		return vx_fail_set(f, r, "compress", "the log");
	vx_buf_commit(hold, n);
	row->log = hold->data;
	row->log_n = n;
	row->log_kind = VX_LOG_ZSTD;
	if (n <= VX_LOG_ROW_BYTES)
		return 0;
	char path[VX_ARTIFACT_PATH];
	r = vx_store_file(h, hold->data, n, VX_SUFFIX_LOG, &row->log_digest, path, f);
	row->log_kind = VX_LOG_FILE;
	row->log_file_bytes = n;
	row->log = NULL;
	row->log_n = 0;
	return r;
}

/* The row, its snapshot, and off to the committer. */
static int send_row(struct vx_hand *h, const struct vx_job *j, const struct vx_walk *w,
	const struct vx_pack *p, const struct vx_snap *head, struct vx_fail *f)
{
	const struct vx_save_req *q = &j->save;
	struct vx_row row = {
		.e = {.key = q->key,
			.artifact_bytes = p->bytes,
			.n_outputs = w->n_outs,
			.output_bytes = w->bytes,
			.duration_ns = q->duration_ns,
			.cpu_ns = q->cpu_ns,
			.peak_bytes = q->peak_bytes,
			.saved_wall_ns = q->duration_ns,
			.portable = p->portable,
			.peak_is_tree = q->peak_is_tree},
		.used_ns = vx_fs_now_ns(),
	};
	if (p->bytes)
		row.e.artifact = p->digest;
	if (!p->portable) {
		row.made_in = h->l->o.root;
		row.made_in_n = strlen(h->l->o.root);
	}
	struct vx_buf hold = VX_BUF(SIZE_MAX / 2), enc = VX_BUF(SIZE_MAX / 2);
	int r = make_log(h, q, &row, &hold, f);
	if (r == 0) {
		struct vx_pending *c = vx_xcalloc(1, sizeof *c);
		vx_row_encode(&row, &enc);
		c->c = (struct vx_commit){.key = q->key, .row_n = enc.len, .entry = true};
		c->row = enc.data;
		c->id = vx_xstrdup(j->id);
		c->settles = true;
		c->not_portable = !p->portable;
		c->task = j->task;
		c->n_outputs = w->n_outs;
		c->bytes = p->bytes;
		c->c.artifact = p->digest;
		c->c.place = p->place;
		c->c.placed = p->reused;
		memcpy(c->need[0], p->path, sizeof c->need[0]);
		if (row.log_kind == VX_LOG_FILE)
			vx_artifact_path(&row.log_digest, VX_SUFFIX_LOG, c->need[1]);
		if (!vx_outputs_none(&j->outputs)) {
			struct vx_snap s = *head;
			s.artifact = row.e.artifact;
			vx_snap_of(w, &s, &c->snap, &c->c.snap_n);
		}
		c->budget = enc.len + c->c.snap_n;
		c->log_bytes = q->log_bytes;
		vx_lane_budget_take(h->l, c->budget, true);
		vx_lane_commit(h->l, c);
	} else {
		vx_buf_free(&enc);
	}
	vx_buf_free(&hold);
	return r;
}

/* 0 go on; 1 the inputs moved and that has been said; < 0 failed. */
static int recheck(struct vx_hand *h, const struct vx_job *j, struct vx_fail *f)
{
	char what[512] = "";
	int r = j->save.recheck ? j->save.recheck(j->save.arg, what, sizeof what) : 0;
	if (r < 0)
		return vx_fail_set(
			f, r, "recheck", "whether its inputs had changed could not be told");
	if (r > 0) {
		char text[700];
		snprintf(text, sizeof text,
			"%.100s was not saved: its inputs changed while it ran: %s", j->id, what);
		vx_lane_send(h->l,
			&(struct vx_lane_event){
				.kind = VX_LANE_SETTLED, .task = j->task, .moved = true},
			NULL, text);
	}
	return r;
}

static int save_walked(struct vx_hand *h, const struct vx_job *j, const struct vx_walk *w,
	const struct vx_snap *head, struct vx_fail *f)
{
	struct vx_pack p = {.portable = true};
	int r = refuse(w, f);
	if (r == 0 && w->n_outs)
		r = vx_pack_read(h, w, &p, f);
	VX_POINT("save.read");
	if (r == 0 && (w->n_outs || w->n_dirs))
		r = same_as_walked(h, w, f);
	if (r == 0)
		r = recheck(h, j, f);
	VX_POINT("save.rechecked");
	if (r != 0) {
		vx_pack_drop(h, &p);
		return r;
	}
	vx_lane_send(h->l,
		&(struct vx_lane_event){.kind = VX_LANE_CAPTURED, .task = j->task, .ok = true},
		NULL, NULL);
	VX_POINT("save.captured");
	if (w->n_outs)
		r = vx_pack_finish(h, &p, f);
	VX_POINT("save.packed");
	return r < 0 ? r : send_row(h, j, w, &p, head, f);
}

void vx_do_save(struct vx_hand *h, const struct vx_job *j)
{
	struct vx_lane *l = h->l;
	struct vx_walk w = {0};
	struct vx_fail f = {0};
	struct vx_snap head = {.key = j->save.key, .taken_ns = vx_fs_now_ns()};
	int r = vx_store_writable(l->o.store)
			? 0
			: vx_fail_set(&f, -EROFS, "open", "the cache cannot be written");
	VX_POINT("save.begin");
	if (r == 0 && !vx_outputs_none(&j->outputs)) {
		head.fine = vx_lane_fine_stamps(h);
		r = vx_walk(h->io, l->root_fd, l->root_dev, &j->outputs, &w, &f);
		head.fine &= !w.elsewhere;
	}
	VX_POINT("save.walked");
	if (r == 0) {
		uint64_t bytes = vx_pack_bytes(&w), held = bytes > VX_LANE_SMALL_BYTES
								   ? 4ULL * VX_LANE_PIECE_BYTES
								   : 2 * bytes + 4096;
		if (bytes > VX_LANE_SLOW_BYTES || w.n_outs > VX_LANE_SLOW_FILES)
			vx_lane_slow(h);
		vx_lane_budget_take(l, held, false);
		r = save_walked(h, j, &w, &head, &f);
		vx_lane_budget_give(l, held);
	}
	if (r < 0) {
		struct vx_evts v = {.can_wait = true};
		vx_lane_settle_failed(l, &v, j->task, j->id, &f);
		vx_evts_send(l, &v);
	}
	vx_walk_free(&w);
	VX_POINT("save.end");
}
