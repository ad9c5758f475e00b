/* Restoring one entry: its artifact is read and verified while what is not yet right on disk is
 * staged under .vx/stage; only then is anything replaced. Where a whole directory is missing it is
 * staged as a tree and put in place by one rename. */
#include "restore_int.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* a file up to this is held in memory and compared with what is on disk; a larger one is written
 * anew */
#define COMPARE_BYTES (16U << 20)
#define HOLE_BYTES 4096U /* zeros from this many on become holes */

static int bad(struct restoring *r, const char *what)
{
	r->bad = true;
	vx_fail_set(r->f, -EBADMSG, "verify", "%s", what);
	snprintf(r->f->text, sizeof r->f->text, "%s", what);
	return -EBADMSG;
}

/* ---- members ---- */

static int dir_member(struct restoring *r)
{
	if (r->n_dirs == r->cap_dirs) {
		r->cap_dirs = r->cap_dirs ? r->cap_dirs * 2 : 16;
		r->dirs_v = vx_xrealloc(r->dirs_v, r->cap_dirs * sizeof *r->dirs_v);
	}
	r->dirs_v[r->n_dirs] = (struct dir_member){.path = r->path, .mode = r->m.mode};
	vx_map_set(&r->dir_members, r->path, strlen(r->path), r->n_dirs++);
	return 0;
}

/* What is right already keeps its time. */
static int keep_time(struct restoring *r)
{
	r->outs_v[r->n_outs_v - 1].mtime_ns = r->disk->seen.mtime_ns;
	return 0;
}

static void note_staged_out(struct restoring *r)
{
	if (r->n_staged_v == r->cap_staged_v) {
		r->cap_staged_v = r->cap_staged_v ? r->cap_staged_v * 2 : 32;
		r->staged_v = vx_xrealloc(r->staged_v, r->cap_staged_v * sizeof *r->staged_v);
	}
	r->staged_v[r->n_staged_v++] =
		(struct staged){r->n_outs_v - 1, r->stage_path, r->m.mtime_ns};
}

static int by_saved(const void *a, const void *b)
{
	const struct staged *x = a, *y = b;
	if (x->saved_ns != y->saved_ns)
		return x->saved_ns < y->saved_ns ? -1 : 1;
	return x->out < y->out ? -1 : x->out > y->out;
}

/* A file whose content changes must not look older than what was made from its former content: its
 * time is the time of the restore, and what was saved in an order is in that order again. */
static int give_times(struct restoring *r)
{
	uint64_t n = 1, rank = 0;
	if (r->n_staged_v)
		qsort(r->staged_v, r->n_staged_v, sizeof *r->staged_v, by_saved);
	for (uint32_t i = 1; i < r->n_staged_v; i++)
		n += r->staged_v[i].saved_ns != r->staged_v[i - 1].saved_ns;
	for (uint32_t i = 0; i < r->n_staged_v; i++) {
		const struct staged *s = &r->staged_v[i];
		struct vx_tar_member *m = &r->outs_v[s->out];
		rank += i && s->saved_ns != r->staged_v[i - 1].saved_ns;
		m->mtime_ns = (int64_t)(r->j->stamp_ns +
					(n > VX_LANE_RANKS ? rank * VX_LANE_RANKS / n : rank));
		struct vx_io_step t = {.op = VX_IO_TIMES,
			.dirfd = r->stage_fd,
			.path = s->path,
			.mtime_ns = m->mtime_ns};
		int k = (int)vx_io_sys(r->h->io, &t);
		if (k < 0)
			return vx_fail_set(r->f, k, "write", "%s", m->path);
		vx_after_file(&r->after, r->h, m->path, r->stage_fd, s->path);
	}
	VX_POINT("restore.times_given");
	return 0;
}

static int link_member(struct restoring *r)
{
	struct vx_io *io = r->h->io;
	if (r->disk && r->disk->target && strcmp(r->disk->target, r->m.target) == 0)
		return keep_time(r);
	int k = vx_stage_member(r);
	if (k < 0)
		return k;
	struct vx_io_step s = {.op = VX_IO_SYMLINK,
		.dirfd = r->stage_fd,
		.path = r->stage_path,
		.path2 = r->m.target};
	k = (int)vx_io_sys(io, &s);
	note_staged_out(r);
	VX_POINT("restore.link_staged");
	return k < 0 ? vx_fail_set(r->f, k, "symlink", "%s", r->path) : 0;
}

static int open_staged(struct restoring *r)
{
	int k = vx_stage_member(r);
	if (k < 0)
		return k;
	r->fd = vx_io_open_at(r->h->io, r->stage_fd, r->stage_path,
		O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, (r->m.mode & 0777) | 0200);
	VX_POINT("restore.file_staged");
	return r->fd < 0 ? vx_fail_set(r->f, r->fd, "create", "%s", r->path) : 0;
}

/* Is the file on disk, known by its stat, the very one that was saved or restored? */
static bool known_same(const struct restoring *r)
{
	uint32_t i = vx_map_gets(&r->known, r->path);
	return i != VX_MAP_NONE && vx_seen_equal(&r->known_v[i], &r->disk->seen) &&
	       !vx_seen_racy(r->snap, &r->known_v[i]);
}

static int file_member(struct restoring *r)
{
	const struct vx_out *d = r->disk;
	bool may = d && S_ISREG(d->seen.mode) && d->seen.size == r->m.size &&
		   (d->seen.mode & 07777) == r->m.mode;
	r->off = 0;
	r->hole = false;
	vx_buf_clear(&r->hold);
	r->how = may && known_same(r)                                 ? H_SKIP
		 : may && d->nlink == 1 && r->m.size <= COMPARE_BYTES ? H_COMPARE
								      : H_WRITE;
	return r->how == H_WRITE ? open_staged(r) : keep_time(r);
}

static void note_out(struct restoring *r)
{
	if (r->n_outs_v == r->cap_outs_v) {
		r->cap_outs_v = r->cap_outs_v ? r->cap_outs_v * 2 : 32;
		r->outs_v = vx_xrealloc(r->outs_v, r->cap_outs_v * sizeof *r->outs_v);
	}
	r->outs_v[r->n_outs_v] = r->m;
	r->outs_v[r->n_outs_v].path = r->path;
	vx_map_set(&r->members, r->path, strlen(r->path), r->n_outs_v++);
}

static int on_member(void *arg, const struct vx_tar_member *m)
{
	struct restoring *r = arg;
	r->m = *m;
	r->path = vx_arena_strdup(&r->a, m->path);
	if (m->target)
		r->m.target = vx_arena_strdup(&r->a, m->target);
	const char *slash = strrchr(r->path, '/');
	uint32_t up = slash ? vx_map_get(&r->dir_members, r->path, (size_t)(slash - r->path))
			    : VX_MAP_NONE;
	if (up != VX_MAP_NONE)
		r->dirs_v[up].has_child = true;
	if (!vx_map_put(&r->members, r->path, strlen(r->path),
		    0)) /* of files and links: their place in outs_v */
		return bad(r, "its artifact names a path twice");
	if (m->type == VX_TAR_DIR)
		return dir_member(r);
	if (m->type == VX_TAR_FILE && (m->mode & (S_ISUID | S_ISGID)))
		return bad(r, "its artifact holds a set-id program, and none is restored");
	if (!vx_outputs_match(&r->j->outputs, r->path))
		return bad(r, "its artifact holds what is not among the task's outputs");
	r->n_outs++;
	note_out(r);
	r->disk = vx_walk_out(r->w, r->path);
	return m->type == VX_TAR_LINK ? link_member(r) : file_member(r);
}

static bool all_zero(const uint8_t *p, size_t n)
{
	return n >= HOLE_BYTES && p[0] == 0 && memcmp(p, p + 1, n - 1) == 0;
}

static int write_piece(struct restoring *r, const void *p, size_t n)
{
	r->hole = all_zero(p, n);
	int k = r->hole ? 0 : vx_io_write_at(r->h->io, r->fd, p, n, r->off);
	r->off += n;
	r->written += n;
	return k < 0 ? vx_fail_set(r->f, k, "write", "%s", r->path) : 0;
}

static int on_data(void *arg, const void *p, size_t n)
{
	struct restoring *r = arg;
	if (r->how == H_WRITE)
		return write_piece(r, p, n);
	if (r->how == H_COMPARE)
		vx_buf_add(&r->hold, p, n);
	return 0;
}

static int finish_file(struct restoring *r)
{
	struct vx_io *io = r->h->io;
	int k = 0;
	struct vx_io_step s = {.op = VX_IO_TRUNCATE, .fd = r->fd, .n = (size_t)r->m.size};
	if (r->hole)
		k = (int)vx_io_sys(io, &s);
	if (k == 0 && (((r->m.mode & 0777) | 0200) & ~r->h->l->umask) != r->m.mode) {
		s = (struct vx_io_step){.op = VX_IO_CHMOD, .fd = r->fd, .mode = r->m.mode};
		k = (int)vx_io_sys(io, &s);
	}
	note_staged_out(r);
	s = (struct vx_io_step){.op = VX_IO_CLOSE, .fd = r->fd};
	int c = (int)vx_io_sys(io, &s);
	r->fd = -1;
	k = k < 0 ? k : c == -EINTR ? 0 : c;
	VX_POINT("restore.file_done");
	return k < 0 ? vx_fail_set(r->f, k, "write", "%s", r->path) : 0;
}

/* Does the disk hold these bytes? */
static bool disk_holds(struct restoring *r)
{
	struct vx_io *io = r->h->io;
	int fd = vx_io_open_inside(
		io, r->h->l->root_fd, r->path, r->disk->base_n, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return false;
	size_t n = r->hold.len;
	char *p = vx_xmalloc(n + 1);
	bool same = vx_io_read_at(io, fd, p, n + 1, 0) == (int64_t)n &&
		    (!n || memcmp(p, r->hold.data, n) == 0);
	free(p);
	vx_io_close_fd(io, fd);
	return same;
}

static int on_end(void *arg)
{
	struct restoring *r = arg;
	if (r->how == H_SKIP)
		return 0;
	if (r->how == H_COMPARE) {
		if (disk_holds(r))
			return 0;
		int k = open_staged(r);
		if (k == 0 && r->hold.len)
			k = write_piece(r, r->hold.data, r->hold.len);
		if (k < 0)
			return k;
	}
	return finish_file(r);
}

/* ---- the artifact ---- */

static int unzip_sink(void *arg, const void *p, size_t n)
{
	return vx_tar_feed(arg, p, n);
}

/* The bytes of the artifact through digest, zstd and tar. A small one is verified before it is
 * looked into. */
static int read_artifact(struct restoring *r, int fd, uint64_t from, struct vx_tar_reader *tar)
{
	struct vx_hand *h = r->h;
	struct vx_sha256 sha;
	struct vx_digest d;
	bool done = false;
	uint64_t size = r->j->entry.artifact_bytes;
	if (!h->unzip)
		h->unzip = vx_unzip_new();
	vx_unzip_begin(h->unzip);
	vx_sha256_init(&sha);
	size_t cap = size <= VX_LANE_SMALL_BYTES ? (size_t)size : VX_LANE_PIECE_BYTES;
	vx_buf_clear(&h->packed);
	void *buf = vx_buf_reserve(&h->packed, cap);
	for (uint64_t off = 0; off < size;) {
		size_t want = size - off < cap ? (size_t)(size - off) : cap;
		int64_t n = vx_io_read_at(h->io, fd, buf, want, from + off);
		if (n < 0)
			return vx_fail_set(r->f, (int)n, "read", "its artifact");
		if ((size_t)n != want)
			return bad(r, "its artifact is cut short");
		vx_sha256_add(&sha, buf, want);
		if (want == size) {
			vx_sha256_done(&sha, &d);
			if (!vx_digest_equal(&d, &r->j->entry.artifact))
				return bad(
					r, "its artifact does not have the bytes that were saved");
		}
		r->f->code = 0;
		int k = vx_unzip_feed(h->unzip, buf, want, &done, unzip_sink, tar);
		if (k < 0)
			return r->f->code ? k : bad(r, "its artifact cannot be unpacked");
		off += want;
	}
	if (size > cap)
		vx_sha256_done(&sha, &d);
	if (!vx_digest_equal(&d, &r->j->entry.artifact))
		return bad(r, "its artifact does not have the bytes that were saved");
	return done && vx_tar_complete(tar) ? 0 : bad(r, "its artifact is cut short");
}

static int open_artifact(struct restoring *r)
{
	char path[VX_ARTIFACT_PATH];
	struct stat *st = &r->ret->file;
	const struct vx_store *s = r->h->l->o.store;
	const struct vx_entry *e = &r->j->entry;
	if (e->segment)
		vx_segment_path(e->segment, path);
	else
		vx_artifact_path(&e->artifact, VX_SUFFIX_TAR, path);
	int fd = vx_io_open_beneath(r->h->io, e->segment ? s->dir_fd : s->a_fd, path,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -ENOENT)
		return bad(r, "its artifact is missing");
	if (fd < 0)
		return vx_fail_set(r->f, fd, "open", "its artifact");
	int k = vx_io_stat_fd(r->h->io, fd, st);
	r->ret->file_seen = k == 0;
	if (k < 0)
		vx_fail_set(r->f, k, "stat", "its artifact");
	else if (e->segment ? (uint64_t)st->st_size < e->offset + e->artifact_bytes
			    : (uint64_t)st->st_size != e->artifact_bytes)
		k = bad(r, "its artifact has another size than was saved");
	if (k == 0)
		return fd;
	vx_io_close_fd(r->h->io, fd);
	return k;
}

static int fetch(struct restoring *r)
{
	static const struct vx_tar_events ev = {on_member, on_data, on_end};
	if (!r->j->entry.artifact_bytes)
		return 0;
	int fd = open_artifact(r);
	if (fd < 0)
		return fd;
	struct vx_tar_reader *tar = vx_tar_reader_new(&ev, r);
	int k = read_artifact(r, fd, r->j->entry.segment ? r->j->entry.offset : 0, tar);
	vx_tar_reader_free(tar);
	vx_io_close_fd(r->h->io, fd);
	vx_io_close_fd(r->h->io, r->fd);
	r->fd = -1;
	return k;
}

/* ---- afterwards ---- */

/* Directories of the entry: those that are outputs by themselves must be there; staged ones get
 * their modes, the deepest first. */
static int finish_dirs(struct restoring *r)
{
	for (uint32_t i = 0; i < r->n_dirs; i++) {
		const struct dir_member *d = &r->dirs_v[i];
		struct dir_place p;
		bool match = vx_outputs_match(&r->j->outputs, d->path);
		r->n_outs += match && !d->has_child;
		r->after.known &= d->has_child;
		if (!match && !d->has_child)
			return bad(r, "its artifact holds what is not among the task's outputs");
		int k = match ? vx_stage_find(r, d->path, strlen(d->path), &p) : 0;
		if (k < 0)
			return k;
	}
	for (uint32_t i = r->n_places; i-- > 0;) {
		const struct dir_place *p = &r->places_v[i];
		if (p->state != STAGED || p->mode == (p->made & ~r->h->l->umask))
			continue;
		int fd = vx_io_open_at(
			r->h->io, r->stage_fd, p->stage, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		/* One without write permission could not be renamed by a plain user: it is finished
		 * in place. */
		bool later = p->top && !(p->mode & 0200);
		struct vx_io_step s = {
			.op = VX_IO_CHMOD, .fd = fd, .mode = later ? p->mode | 0200 : p->mode};
		int k = fd < 0 ? fd : (int)vx_io_sys(r->h->io, &s);
		vx_io_close_fd(r->h->io, fd);
		if (k < 0)
			return vx_fail_set(r->f, k, "chmod", "%s", p->stage);
		for (uint32_t n = 0; later && n < r->placing.n; n++)
			if (strcmp(r->placing.v[n].stage, p->stage) == 0)
				vx_ops_add(&r->modes, OP_MODE, r->placing.v[n].path, NULL, p->mode);
	}
	return 0;
}

/* What is in the outputs and not in the entry. */
static void find_extras(struct restoring *r)
{
	const struct vx_lane *l = r->h->l;
	if (r->j->outputs.additive)
		return;
	struct vx_map thinned = {0}; /* directories out of which something goes */
	for (uint32_t i = 0; i < r->w->n_outs; i++) {
		const struct vx_out *o = &r->w->outs[i];
		if (vx_map_gets(&r->members, o->seen.path) != VX_MAP_NONE ||
			(l->o.tracked && l->o.tracked(l->o.arg, o->seen.path)))
			continue;
		vx_ops_add(&r->removing, S_ISDIR(o->seen.mode) ? OP_EMPTY : OP_REMOVE, o->seen.path,
			NULL, 0);
		for (const char *slash = strchr(o->seen.path, '/'); slash;
			slash = strchr(slash + 1, '/'))
			vx_map_put(&thinned, o->seen.path, (size_t)(slash - o->seen.path), 1);
	}
	for (uint32_t i = r->w->n_dirs; thinned.n && i-- > 0;) {
		const struct vx_seen *d = &r->w->dirs[i];
		bool empties = S_ISDIR(d->mode) && *d->path &&
			       vx_map_get(&thinned, d->path, d->len) != VX_MAP_NONE;
		if (empties && vx_map_gets(&r->members, d->path) == VX_MAP_NONE &&
			vx_outputs_match(&r->j->outputs, d->path))
			vx_ops_add(&r->removing, OP_EMPTY, d->path, NULL, 0);
	}
	vx_map_free(&thinned);
}

static int replace(struct restoring *r)
{
	struct vx_io *io = r->h->io;
	int root = r->h->l->root_fd;
	struct vx_plan_ops all = {.base = vx_outputs_base(&r->j->outputs)};
	const struct vx_plan_ops *parts[] = {&r->removing, &r->placing, &r->modes};
	for (int k = 0; k < 3; k++)
		for (uint32_t i = 0; i < parts[k]->n; i++)
			vx_ops_add(&all, parts[k]->v[i].kind, parts[k]->v[i].path,
				parts[k]->v[i].stage, parts[k]->v[i].mode);
	/* One operation is atomic by itself. */
	bool journal = all.n > 1;
	struct vx_journal j;
	int k = journal ? vx_stage_open(r) : 0;
	if (k == 0 && journal) {
		k = vx_stage_journal(r->h, &j, r->f);
		journal = k == 0;
		k = k < 0 ? k : 0;
	}
	if (k == 0 && journal)
		k = vx_journal_write(&j, &all, r->f);
	VX_POINT("restore.before_replace");
	if (k == 0) {
		k = vx_ops_apply(io, root, r->stage_fd, &all, false, r->f);
		VX_POINT("restore.replaced");
		if (journal)
			vx_journal_done(&j);
	}
	free(all.v);
	return k;
}

static void load_known(struct restoring *r)
{
	if (!r->snap)
		return;
	struct vx_snap s = *r->snap;
	struct vx_seen e;
	uint32_t i = 0;
	r->known_v = vx_arena_array(&r->a, s.n_files ? s.n_files : 1, sizeof *r->known_v);
	while (vx_snap_next(&s, &e) == 1 && r->n_known < s.n_files) {
		if (i++ < s.n_dirs)
			continue;
		r->known_v[r->n_known] = e;
		vx_map_set(&r->known, e.path, e.len, r->n_known++);
	}
}

/* Is this what was found right, or placed? Whoever writes to an output leaves another time in it.
 */
static bool as_saved(const struct restoring *r, const struct vx_out *o)
{
	if (S_ISDIR(o->seen.mode))
		return vx_map_gets(&r->dir_members, o->seen.path) != VX_MAP_NONE;
	uint32_t i = vx_map_gets(&r->members, o->seen.path);
	if (i >= r->n_outs_v || strcmp(r->outs_v[i].path, o->seen.path) != 0)
		return false;
	const struct vx_tar_member *m = &r->outs_v[i];
	if (m->type == VX_TAR_LINK)
		return o->target && strcmp(o->target, m->target) == 0;
	return S_ISREG(o->seen.mode) && o->seen.size == m->size &&
	       (o->seen.mode & 07777) == m->mode && o->seen.mtime_ns == m->mtime_ns;
}

static void note_staged(struct restoring *r)
{
	r->after.known &= r->placing.n && !r->removing.n && !r->modes.n;
	for (uint32_t i = 0; i < r->n_places; i++)
		if (r->places_v[i].state == STAGED)
			vx_after_staged(&r->after, r->h, r->places_v[i].path, r->stage_fd,
				r->places_v[i].stage);
}

/* Directories as they are now: those placed, and where nothing was found and nothing was placed.
 * One that has come from elsewhere meanwhile is not known. */
static void note_placed(struct restoring *r)
{
	for (uint32_t i = 0; i < r->n_places && r->after.known; i++)
		if (r->places_v[i].state == STAGED && r->places_v[i].top)
			vx_after_placed(&r->after, r->h, r->places_v[i].path);
	for (uint32_t i = 0; i < r->w->n_dirs && r->after.known; i++) {
		uint32_t at = vx_map_get(&r->places, r->w->dirs[i].path, r->w->dirs[i].len);
		if (at == VX_MAP_NONE)
			vx_after_absent(&r->after, r->w->dirs[i].path);
		else
			r->after.known = r->places_v[at].state == STAGED;
	}
}

/* What is there now, to compare with next time: kept only if it is the entry and nothing else,
 * since others may write there meanwhile. */
static int look_again(struct restoring *r)
{
	struct vx_walk w;
	note_placed(r);
	if (vx_after_keep(&r->after, r->h, r->j))
		return 0;
	uint64_t taken = vx_fs_now_ns();
	int k = vx_walk(r->h->io, r->h->l->root_fd, r->h->l->root_dev, &r->j->outputs, &w, r->f);
	if (k < 0)
		return k;
	bool same = w.n_outs == r->j->entry.n_outputs;
	for (uint32_t i = 0; i < w.n_outs && same; i++)
		same = as_saved(r, &w.outs[i]);
	if (same)
		vx_keep_snapshot(r->h, r->j, &w, taken);
	vx_walk_free(&w);
	return 0;
}

static bool nothing_to_do(const struct restoring *r)
{
	return !r->removing.n && !r->placing.n && !r->modes.n;
}

int vx_restore_entry(struct vx_hand *h, const struct vx_job *j, const struct vx_walk *w,
	const struct vx_snap *snap, struct vx_restored *ret, struct vx_fail *f)
{
	struct restoring r = {.h = h,
		.j = j,
		.w = w,
		.snap = snap,
		.f = f,
		.ret = ret,
		.stage_fd = -1,
		.fd = -1,
		.hold = VX_BUF(SIZE_MAX / 2)};
	load_known(&r);
	vx_after_begin(&r.after, w, &j->outputs);
	VX_POINT("restore.begin");
	int k = fetch(&r);
	VX_POINT("restore.fetched");
	if (k == 0)
		k = give_times(&r);
	if (k == 0)
		k = finish_dirs(&r);
	if (k == 0 && r.n_outs != j->entry.n_outputs)
		k = bad(&r, "its artifact holds another number of files than was saved");
	if (k == 0)
		find_extras(&r);
	if (k == 0)
		note_staged(&r);
	if (k == 0 && !nothing_to_do(&r))
		k = replace(&r);
	if (k == 0)
		k = look_again(&r);
	ret->damaged = r.bad;
	ret->untouched = nothing_to_do(&r);
	ret->bytes = r.written;
	if (k < 0)
		vx_stage_drop(h);
	free(r.outs_v);
	free(r.staged_v);
	free(r.dirs_v);
	free(r.places_v);
	free(r.placing.v);
	free(r.modes.v);
	free(r.removing.v);
	vx_walk_free(&r.after.w);
	vx_map_free(&r.known);
	vx_map_free(&r.members);
	vx_map_free(&r.dir_members);
	vx_map_free(&r.places);
	vx_buf_free(&r.hold);
	vx_arena_free(&r.a);
	return k;
}
