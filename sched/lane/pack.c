/* From outputs on disk to an artifact of the store. */
#include "lane_int.h"

#include "vx/err.h"
#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Does `needle` occur? Looks for two of its bytes at their distance, 16 places at a time (the idea
 * is that of W. Mula, "SIMD-friendly algorithms for substring searching"). */
bool vx_bytes_hold(const uint8_t *hay, size_t n, const char *needle, size_t m)
{
	if (!m || n < m)
		return false;
#ifdef __SSE2__
	const __m128i first = _mm_set1_epi8(needle[m / 2]), last = _mm_set1_epi8(needle[m - 1]);
	size_t i = 0;
	for (; i + m - 1 + 16 <= n; i += 16) {
		__m128i a = _mm_loadu_si128((const __m128i *)(const void *)(hay + i + m / 2)),
			b = _mm_loadu_si128((const __m128i *)(const void *)(hay + i + m - 1));
		unsigned mask = (unsigned)_mm_movemask_epi8(
			_mm_and_si128(_mm_cmpeq_epi8(a, first), _mm_cmpeq_epi8(b, last)));
		for (; mask; mask &= mask - 1)
			if (memcmp(hay + i + __builtin_ctz(mask), needle, m) == 0)
				return true;
	}
	hay += i;
	n -= i;
#endif
	return memmem(hay, n, needle, m) != NULL;
}

/* ---- our place in <cache>/v1/tmp ---- */

static int make_tmp_dir(struct vx_hand *h, struct vx_store *s, struct vx_fail *f)
{
	for (int tries = 0; tries < 8; tries++) {
		uint64_t id;
		struct stat st;
		if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id)
			id = (uint64_t)(uintptr_t)h ^ vx_fs_now_ns();
		snprintf(s->tmp_name, sizeof s->tmp_name, "%016llx", (unsigned long long)id);
		struct vx_io_step mk = {
			.op = VX_IO_MKDIR, .dirfd = s->tmps_fd, .path = s->tmp_name, .mode = 0777};
		int64_t r = vx_io_one(h->io, &mk);
		if (r < 0 && r != -EEXIST)
			return vx_fail_set(f, (int)r, "mkdir",
				"a directory for temporary files in the cache could not be made");
		VX_POINT("tmp.made");
		int fd = vx_io_open_at(
			h->io, s->tmps_fd, s->tmp_name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (fd == -ENOENT)
			continue; /* swept before it was locked */
		if (fd < 0)
			return vx_fail_set(f, fd, "open", "the cache's temporary directory");
		if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && st.st_nlink > 0) {
			s->tmp_fd = fd;
			return 0;
		}
		vx_close(fd);
	}
	return vx_fail_set(f, -EBUSY, "mkdir", "the cache's temporary directory");
}

static int tmp_dir(struct vx_hand *h, struct vx_fail *f)
{
	struct vx_lane *l = h->l;
	pthread_mutex_lock(&l->tmp_lock);
	int r = l->o.store->tmp_fd >= 0 ? 0 : make_tmp_dir(h, l->o.store, f);
	pthread_mutex_unlock(&l->tmp_lock);
	return r;
}

static void unlink_tmp(struct vx_hand *h, const char *name)
{
	struct vx_io_step s = {.op = VX_IO_UNLINK, .dirfd = h->l->o.store->tmp_fd, .path = name};
	vx_io_one(h->io, &s);
}

/* Renames a temporary to its place, making the place's directory when need be. */
static int rename_in(struct vx_hand *h, const char *tmp, const char *path, struct vx_fail *f)
{
	struct vx_store *s = h->l->o.store;
	const char *name;
	int64_t r = 0;
	int to = vx_artifact_dir(s, path, &name);
	if (to == -ENOENT) {
		char dir[3] = {path[0], path[1], '\0'};
		struct vx_io_step mk = {
			.op = VX_IO_MKDIR, .dirfd = s->a_fd, .path = dir, .mode = 0777};
		r = vx_io_one(h->io, &mk);
		VX_POINT("save.dir_made");
		r = r == -EEXIST ? 0 : r;
		if (r == 0)
			to = vx_artifact_dir(s, path, &name);
	}
	struct vx_io_step mv = {
		.op = VX_IO_RENAME, .dirfd = s->tmp_fd, .path = tmp, .dirfd2 = to, .path2 = name};
	if (r == 0)
		r = to < 0 ? to : vx_io_one(h->io, &mv);
	vx_close(to);
	return r < 0 ? vx_fail_set(f, (int)r, "rename",
			       "an artifact could not be put in its place in the cache")
		     : 0;
}

/* Is a file with these very bytes there? A damaged one of the same length is not taken. */
static bool there_already(struct vx_hand *h, const char *path, const void *p, size_t n)
{
	struct stat st;
	int a_fd = h->l->o.store->a_fd;
	if (vx_io_stat_at(h->io, a_fd, path, &st) < 0 || !S_ISREG(st.st_mode) ||
		(uint64_t)st.st_size != n)
		return false;
	int fd = vx_io_open_beneath(h->io, a_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	uint8_t *copy = vx_xmalloc(n);
	bool same = vx_io_read_at(h->io, fd, copy, n, 0) == (int64_t)n && memcmp(copy, p, n) == 0;
	free(copy);
	vx_io_close_fd(h->io, fd);
	return same;
}

static int store_bytes(struct vx_hand *h, const void *p, size_t n, const char *path,
	bool *ret_reused, struct vx_fail *f)
{
	struct vx_store *s = h->l->o.store;
	*ret_reused = there_already(h, path, p, n);
	if (*ret_reused)
		return 0;
	int r = tmp_dir(h, f);
	if (r < 0)
		return r;
	char tmp[32];
	snprintf(tmp, sizeof tmp, "%llu", (unsigned long long)atomic_fetch_add(&h->l->tmp_seq, 1));
	struct vx_io_step v[5] = {
		{.op = VX_IO_OPEN,
			.dirfd = s->tmp_fd,
			.path = tmp,
			.flags = O_WRONLY | O_CREAT | O_TRUNC,
			.mode = 0444},
		{.op = VX_IO_WRITE, .fd = VX_IO_CHAINED, .buf = (void *)(uintptr_t)p, .n = n},
		{.op = VX_IO_FSYNC, .fd = VX_IO_CHAINED},
		{.op = VX_IO_CLOSE, .fd = VX_IO_CHAINED},
	};
	uint32_t k = 4;
	if (!s->fsync) {
		v[2] = v[3];
		k = 3;
	}
	struct vx_io_chain c = {v, k};
	VX_POINT("save.before_write");
	vx_io_run(h->io, &c, 1);
	bool again = v[1].res >= 0 && (size_t)v[1].res < n;
	for (uint32_t i = 0; i < k; i++) {
		again |= vx_io_transient(v[i].res);
		r = v[i].res < 0 && r == 0 ? (int)v[i].res : r;
	}
	if (again) {
		v[0].mode |= 0200; /* it may exist by now, and is opened again */
		unlink_tmp(h, tmp);
		r = vx_io_careful(h->io, &c);
	}
	VX_POINT("save.written");
	if (r < 0)
		vx_fail_set(f, r,
			v[0].res < 0   ? "create"
			: v[1].res < 0 ? "write"
				       : "close",
			"an artifact could not be written to the cache");
	else
		r = rename_in(h, tmp, path, f);
	VX_POINT("save.renamed");
	if (r < 0)
		unlink_tmp(h, tmp);
	return r;
}

int vx_store_file(struct vx_hand *h, const void *p, size_t n, const char *suffix,
	struct vx_digest *ret, char ret_path[VX_ARTIFACT_PATH], struct vx_fail *f)
{
	bool reused;
	vx_sha256_of(p, n, ret);
	vx_artifact_path(ret, suffix, ret_path);
	return store_bytes(h, p, n, ret_path, &reused, f);
}

/* ---- members ---- */

static void member_of(const struct vx_out *o, struct vx_tar_member *m)
{
	*m = (struct vx_tar_member){.path = o->seen.path,
		.target = o->target,
		.type = S_ISREG(o->seen.mode)   ? VX_TAR_FILE
			: S_ISLNK(o->seen.mode) ? VX_TAR_LINK
						: VX_TAR_DIR,
		.mode = S_ISLNK(o->seen.mode) ? 0777 : o->seen.mode & 07777,
		.size = S_ISREG(o->seen.mode) ? o->seen.size : 0,
		.mtime_ns = S_ISDIR(o->seen.mode) ? 0 : o->seen.mtime_ns};
}

/* The directories that lead to an output, below its base, as far as the output before it did not
 * have them. */
static int add_parents(struct vx_hand *h, const struct vx_walk *w, uint32_t i, struct vx_buf *out,
	struct vx_fail *f)
{
	const struct vx_out *o = &w->outs[i];
	const char *path = o->seen.path, *prev = i ? w->outs[i - 1].seen.path : "";
	for (const char *slash = strchr(path + o->base_n, '/'); slash;
		slash = strchr(slash + 1, '/')) {
		size_t n = (size_t)(slash - path);
		if (strncmp(prev, path, n + 1) == 0)
			continue;
		char dir[VX_MAX_PATH];
		struct stat st;
		memcpy(dir, path, n);
		dir[n] = '\0';
		const struct vx_seen *d = vx_walk_dir(w, path, n);
		uint32_t mode = d && d->mode ? d->mode : 0;
		if (!mode) {
			int r = vx_io_stat_at(h->io, h->l->root_fd, dir, &st);
			if (r < 0)
				return vx_fail_set(f, r, "stat", "%s", dir);
			mode = st.st_mode;
		}
		struct vx_tar_member m = {.path = dir, .type = VX_TAR_DIR, .mode = mode & 07777};
		vx_tar_header(&m, out);
	}
	return 0;
}

static int add_header(struct vx_hand *h, const struct vx_walk *w, uint32_t i, struct vx_buf *out,
	struct vx_fail *f)
{
	struct vx_tar_member m;
	int r = add_parents(h, w, i, out, f);
	if (r < 0)
		return r;
	member_of(&w->outs[i], &m);
	vx_tar_header(&m, out);
	return 0;
}

static int changed(const struct vx_out *o, struct vx_fail *f)
{
	return vx_fail_set(f, -EBUSY, "read", "%s changed while it was read", o->seen.path);
}

/* ---- small: all in memory ---- */

static int read_plain(struct vx_hand *h, const struct vx_out *o, void *at, struct vx_fail *f)
{
	int fd = vx_io_open_inside(h->io, h->l->root_fd, o->seen.path, o->base_n,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME);
	if (fd < 0)
		return vx_fail_open(f, fd, o->seen.path);
	int64_t n = vx_io_read_at(h->io, fd, at, o->seen.size, 0);
	vx_io_close_fd(h->io, fd);
	if (n < 0)
		return vx_fail_set(f, (int)n, "read", "%s", o->seen.path);
	return (uint64_t)n != o->seen.size ? changed(o, f) : 0;
}

/* Reads many files side by side: each opened, read and closed by one chain. */
static int read_ringed(struct vx_hand *h, const struct vx_walk *w, uint8_t **at, uint32_t n_files,
	struct vx_fail *f)
{
	struct vx_io_chain *c = vx_xcalloc(n_files, sizeof *c);
	struct vx_io_step *v = vx_xcalloc(n_files, 3 * sizeof *v);
	const struct vx_out **of = vx_xcalloc(n_files, sizeof *of);
	uint32_t k = 0;
	for (uint32_t i = 0; i < w->n_outs; i++) {
		const struct vx_out *o = &w->outs[i];
		if (!at[i])
			continue;
		struct vx_io_step *s = v + 3 * (size_t)k;
		s[0] = (struct vx_io_step){.op = VX_IO_OPEN,
			.beneath = true,
			.one_mount = true,
			.dirfd = h->l->root_fd,
			.path = o->seen.path,
			.flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME};
		s[1] = (struct vx_io_step){
			.op = VX_IO_READ, .fd = VX_IO_CHAINED, .buf = at[i], .n = o->seen.size};
		s[2] = (struct vx_io_step){.op = VX_IO_CLOSE, .fd = VX_IO_CHAINED};
		of[k] = o;
		c[k++] = (struct vx_io_chain){s, 3};
	}
	vx_io_run(h->io, c, k);
	int r = 0;
	for (uint32_t i = 0; i < k && r == 0; i++) {
		const struct vx_io_step *s = c[i].steps;
		bool odd = s[0].res == -EPERM || s[0].res == -EXDEV || vx_io_transient(s[0].res) ||
			   vx_io_transient(s[1].res) || s[0].res == -ECANCELED ||
			   s[1].res == -ECANCELED;
		if (odd || (s[1].res >= 0 && (size_t)s[1].res < s[1].n))
			/* interrupted, short, of another user or in another mount: plainly once
			 * more */
			r = read_plain(h, of[i], s[1].buf, f);
		else if (s[0].res < 0 || s[1].res < 0)
			r = vx_fail_set(f, (int)(s[0].res < 0 ? s[0].res : s[1].res),
				s[0].res < 0 ? "open" : "read", "%s", of[i]->seen.path);
	}
	free(of);
	free(v);
	free(c);
	return r;
}

static int read_small(struct vx_hand *h, const struct vx_walk *w, struct vx_fail *f)
{
	struct vx_buf *b = &h->tar;
	size_t room = w->bytes + VX_TAR_END_BYTES;
	for (uint32_t i = 0; i < w->n_outs;
		i++) /* two headers, records and padding; as much for each parent directory */
		room += 4 * VX_TAR_BLOCK + 3 * (size_t)w->outs[i].seen.len +
			(w->outs[i].target ? strlen(w->outs[i].target) : 0) + 256;
	vx_buf_clear(b);
	if (!vx_buf_reserve(b, room))
		return vx_fail_set(f, -ENOMEM, "pack", "outputs of %zu bytes", room);
	size_t *at = vx_xcalloc(w->n_outs, sizeof *at);
	uint8_t **ptr = vx_xcalloc(w->n_outs, sizeof *ptr);
	uint32_t files = 0;
	int r = 0;
	for (uint32_t i = 0; i < w->n_outs && r == 0; i++) {
		static const char zeros[VX_TAR_BLOCK];
		uint64_t size = S_ISREG(w->outs[i].seen.mode) ? w->outs[i].seen.size : 0;
		r = add_header(h, w, i, b, f);
		at[i] = b->len;
		if (size && vx_buf_reserve(b, size)) {
			vx_buf_commit(b, size);
			vx_buf_add(b, zeros, vx_tar_padding(size));
			files++;
		}
	}
	if (r == 0) {
		memset(vx_buf_reserve(b, VX_TAR_END_BYTES), 0, VX_TAR_END_BYTES);
		vx_buf_commit(b, VX_TAR_END_BYTES);
		for (uint32_t i = 0; i < w->n_outs; i++)
			if (S_ISREG(w->outs[i].seen.mode) && w->outs[i].seen.size)
				ptr[i] = (uint8_t *)b->data + at[i];
		if (files >= VX_LANE_RING_FILES)
			r = read_ringed(h, w, ptr, files, f);
		else
			for (uint32_t i = 0; i < w->n_outs && r == 0; i++)
				r = ptr[i] ? read_plain(h, &w->outs[i], ptr[i], f) : 0;
	}
	free(at);
	free(ptr);
	return r;
}

static int zip_small(struct vx_hand *h, struct vx_pack *p, struct vx_fail *f)
{
	if (!h->zip)
		h->zip = vx_zip_new();
	vx_buf_clear(&h->packed);
	size_t cap = vx_zip_bound(h->tar.len), n = 0;
	void *dst = vx_buf_reserve(&h->packed, cap);
	int r = vx_zip_all(h->zip, h->tar.data, h->tar.len, dst, cap, &n);
	if (r < 0)
		return vx_fail_set(f, r, "compress", "outputs");
	vx_buf_commit(&h->packed, n);
	p->bytes = n;
	vx_sha256_of(h->packed.data, n, &p->digest);
	return 0;
}

/* ---- large: streamed ---- */

struct stream {
	struct vx_hand *h;
	struct vx_sha256 sha;
	int fd;
	uint64_t off;
	const char *root;
	/* bytes in `seam`: the last ones of what was read of a file, for a path that goes on in the
	 * next piece */
	size_t root_n, kept;
	uint8_t *seam;
	bool *portable;
	struct vx_fail *f;
};

static int sink(void *arg, const void *p, size_t n)
{
	struct stream *s = arg;
	struct vx_io_step w = {
		.op = VX_IO_WRITE, .fd = s->fd, .buf = (void *)(uintptr_t)p, .n = n, .off = s->off};
	int64_t r = vx_io_one(s->h->io, &w);
	VX_POINT("save.stream_piece");
	if (r < 0)
		return vx_fail_set(
			s->f, (int)r, "write", "an artifact could not be written to the cache");
	s->off += n;
	return 0;
}

static int fed(struct stream *s, int r)
{
	return r < 0 && !s->f->code ? vx_fail_set(s->f, r, "compress", "outputs") : r;
}

static int feed(struct stream *s, const void *p, size_t n, bool end)
{
	s->f->code = 0;
	if (atomic_load_explicit(&s->h->l->give_up, memory_order_relaxed))
		return vx_fail_set(s->f, -ECANCELED, "interrupt",
			"it was too large to be saved within the grace");
	return fed(s, vx_zip_feed(s->h->zip, p, n, end, sink, s));
}

/* Does the workspace's path stand in these bytes of a file, or across their beginning? */
static void look_for_root(struct stream *s, const uint8_t *p, size_t n)
{
	size_t most = s->root_n - 1, head = n < most ? n : most;
	memcpy(s->seam + s->kept, p, head);
	if (vx_bytes_hold(s->seam, s->kept + head, s->root, s->root_n) ||
		vx_bytes_hold(p, n, s->root, s->root_n))
		*s->portable = false;
	size_t all = s->kept + head;
	s->kept = all < most ? all : most;
	memmove(s->seam, n < most ? s->seam + all - s->kept : p + n - s->kept, s->kept);
}

/* A piece of a file that holds data: read to where it is compressed. At most *n bytes; *n says how
 * many. */
static int feed_data(struct stream *s, const struct vx_out *o, int fd, uint64_t off, uint64_t *n)
{
	size_t room;
	s->f->code = 0;
	if (atomic_load_explicit(&s->h->l->give_up, memory_order_relaxed))
		return vx_fail_set(s->f, -ECANCELED, "interrupt",
			"it was too large to be saved within the grace");
	uint8_t *p = vx_zip_room(s->h->zip, &room);
	room = *n < room ? (size_t)*n : room;
	*n = room;
	int64_t got = vx_io_read_at(s->h->io, fd, p, room, off);
	if (got < 0)
		return vx_fail_set(s->f, (int)got, "read", "%s", o->seen.path);
	if ((size_t)got != room)
		return changed(o, s->f);
	if (*s->portable && s->root_n > 1)
		look_for_root(s, p, room);
	return fed(s, vx_zip_filled(s->h->zip, room, sink, s));
}

/* Zeros without reading them. */
static int feed_hole(struct stream *s, uint64_t n)
{
	static char zeros[256U << 10];
	int r = 0;
	for (uint64_t k; n && r == 0; n -= k) {
		k = n < sizeof zeros ? n : sizeof zeros;
		r = feed(s, zeros, (size_t)k, false);
	}
	return r;
}

/* From where on is there data (or a hole)? A file system that does not say has data everywhere.
 * What a hole is filled with meanwhile shows in the file's stat. */
static uint64_t seek_from(struct vx_hand *h, int fd, uint64_t off, int whence, uint64_t size)
{
	struct vx_io_step s = {.op = VX_IO_SEEK, .fd = fd, .off = off, .flags = whence};
	int64_t r = vx_io_sys(h->io, &s);
	if (r < 0)
		return whence == SEEK_DATA && r != -ENXIO ? off : size;
	return (uint64_t)r < off ? off : (uint64_t)r > size ? size : (uint64_t)r;
}

static int feed_file(struct stream *s, const struct vx_out *o)
{
	struct vx_hand *h = s->h;
	int fd = vx_io_open_inside(h->io, h->l->root_fd, o->seen.path, o->base_n,
		O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOATIME);
	if (fd < 0)
		return vx_fail_open(s->f, fd, o->seen.path);
	/* small ones are not worth the question */
	uint64_t size = o->seen.size, data_end = size < VX_LANE_PIECE_BYTES ? size : 0;
	int r = 0;
	s->kept = 0;
	for (uint64_t off = 0; off < size && r == 0;) {
		uint64_t n = 0;
		if (off >= data_end) {
			n = seek_from(h, fd, off, SEEK_DATA, size) - off;
			if (n) { /* a path does not go on behind a zero */
				s->kept = 0;
				r = feed_hole(s, n);
			} else {
				data_end = seek_from(h, fd, off, SEEK_HOLE, size);
				if (data_end == off)
					data_end = size;
			}
		}
		if (!n) {
			n = data_end - off;
			r = feed_data(s, o, fd, off, &n);
		}
		off += n;
	}
	vx_io_close_fd(h->io, fd);
	return r;
}

static int feed_all(struct stream *s, const struct vx_walk *w, struct vx_buf *header)
{
	static const char zeros[VX_TAR_END_BYTES];
	int r = 0;
	for (uint32_t i = 0; i < w->n_outs && r == 0; i++) {
		uint64_t size = S_ISREG(w->outs[i].seen.mode) ? w->outs[i].seen.size : 0;
		vx_buf_clear(header);
		r = add_header(s->h, w, i, header, s->f);
		if (r == 0)
			r = feed(s, header->data, header->len, false);
		if (r == 0 && size)
			r = feed_file(s, &w->outs[i]);
		if (r == 0 && size)
			r = feed(s, zeros, vx_tar_padding(size), false);
	}
	return r < 0 ? r : feed(s, zeros, VX_TAR_END_BYTES, true);
}

static int stream_to(struct stream *s, const struct vx_walk *w)
{
	struct vx_hand *h = s->h;
	/* of one member at a time, made twice: there may be very many */
	struct vx_buf header = VX_BUF(SIZE_MAX / 2);
	uint64_t total = VX_TAR_END_BYTES;
	int r = 0;
	for (uint32_t i = 0; i < w->n_outs && r == 0; i++) {
		vx_buf_clear(&header);
		r = add_header(h, w, i, &header, s->f);
		total += header.len;
		if (S_ISREG(w->outs[i].seen.mode))
			total += w->outs[i].seen.size + vx_tar_padding(w->outs[i].seen.size);
	}
	if (!h->zip)
		h->zip = vx_zip_new();
	vx_buf_clear(&h->packed);
	s->seam = vx_buf_reserve(&h->packed, 2 * s->root_n);
	if (r == 0 && vx_zip_begin(h->zip, total, &s->sha) < 0)
		r = vx_fail_set(s->f, -EIO, "compress", "outputs");
	if (r == 0)
		r = feed_all(s, w, &header);
	vx_zip_stop(h->zip); /* a thread that is left from what failed elsewhere writes to s->sha */
	vx_buf_free(&header);
	return r;
}

static int pack_stream(
	struct vx_hand *h, const struct vx_walk *w, struct vx_pack *p, struct vx_fail *f)
{
	struct vx_store *store = h->l->o.store;
	int r = tmp_dir(h, f);
	if (r < 0)
		return r;
	snprintf(p->tmp, sizeof p->tmp, "%llu",
		(unsigned long long)atomic_fetch_add(&h->l->tmp_seq, 1));
	struct vx_io_step open = {.op = VX_IO_OPEN,
		.keep = true,
		.dirfd = store->tmp_fd,
		.path = p->tmp,
		.flags = O_WRONLY | O_CREAT | O_TRUNC,
		.mode = 0444};
	int fd = (int)vx_io_one(h->io, &open);
	if (fd < 0) {
		p->tmp[0] = '\0';
		return vx_fail_set(
			f, fd, "create", "an artifact could not be written to the cache");
	}
	struct stream s = {.h = h,
		.fd = fd,
		.root = h->l->o.root,
		.root_n = strlen(h->l->o.root),
		.portable = &p->portable,
		.f = f};
	vx_sha256_init(&s.sha);
	r = stream_to(&s, w);
	struct vx_io_step end[2] = {{.op = VX_IO_FSYNC, .fd = fd}, {.op = VX_IO_CLOSE, .fd = fd}};
	for (int i = r == 0 && store->fsync ? 0 : 1; i < 2; i++) {
		int64_t k = vx_io_one(h->io, &end[i]);
		if (k < 0 && r == 0)
			r = vx_fail_set(f, (int)k, "close",
				"an artifact could not be written to the cache");
	}
	VX_POINT("save.streamed");
	if (r < 0)
		return r;
	vx_sha256_done(&s.sha, &p->digest);
	p->bytes = s.off;
	vx_artifact_path(&p->digest, VX_SUFFIX_TAR, p->path);
	return 0;
}

/* ---- both ---- */

uint64_t vx_pack_bytes(const struct vx_walk *w)
{
	return w->bytes + (uint64_t)w->n_outs * VX_LANE_MEMBER_BYTES;
}

int vx_pack_read(struct vx_hand *h, const struct vx_walk *w, struct vx_pack *p, struct vx_fail *f)
{
	const char *root = h->l->o.root;
	size_t root_n = strlen(root);
	*p = (struct vx_pack){.portable = true};
	for (uint32_t i = 0; i < w->n_outs && p->portable; i++)
		if (w->outs[i].target && root_n > 1 &&
			vx_bytes_hold((const uint8_t *)w->outs[i].target, strlen(w->outs[i].target),
				root, root_n))
			p->portable = false;
	if (vx_pack_bytes(w) > VX_LANE_SMALL_BYTES) {
		int r = pack_stream(h, w, p, f);
		if (r < 0)
			vx_pack_drop(h, p);
		return r;
	}
	int r = read_small(h, w, f);
	if (r == 0 && p->portable && root_n > 1)
		p->portable =
			!vx_bytes_hold((const uint8_t *)h->tar.data, h->tar.len, root, root_n);
	return r;
}

int vx_pack_finish(struct vx_hand *h, struct vx_pack *p, struct vx_fail *f)
{
	int r;
	if (p->tmp[0]) {
		r = rename_in(h, p->tmp, p->path, f);
		if (r < 0)
			vx_pack_drop(h, p);
		p->tmp[0] = '\0';
		return r;
	}
	r = zip_small(h, p, f);
	if (r < 0)
		return r;
	if (p->bytes <= VX_SEGMENT_ARTIFACT_BYTES)
		return vx_append(
			h, h->packed.data, h->packed.len, &p->digest, &p->place, &p->reused, f);
	vx_artifact_path(&p->digest, VX_SUFFIX_TAR, p->path);
	return store_bytes(h, h->packed.data, h->packed.len, p->path, &p->reused, f);
}

void vx_pack_drop(struct vx_hand *h, struct vx_pack *p)
{
	if (p->tmp[0])
		unlink_tmp(h, p->tmp);
	p->tmp[0] = '\0';
}
