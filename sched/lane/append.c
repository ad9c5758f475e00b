/* Appending a small artifact to a segment: see cache/segment.h. */
#include "lane_int.h"

#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>

/* Does the place hold these very bytes? A damaged one is not used again. */
static bool holds(struct vx_hand *h, const struct vx_place *at, const void *p, size_t n)
{
	char path[VX_SEGMENT_PATH];
	if (at->bytes != n)
		return false;
	vx_segment_path(at->segment, path);
	int fd = vx_io_open_beneath(
		h->io, h->l->o.store->dir_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return false;
	uint8_t *copy = vx_xmalloc(n);
	bool same =
		vx_io_read_at(h->io, fd, copy, n, at->off) == (int64_t)n && memcmp(copy, p, n) == 0;
	free(copy);
	vx_io_close_fd(h->io, fd);
	return same;
}

/* Under the lock. From now on `fd`, which is locked, is what is appended to. */
static void use(struct vx_store *s, int fd, uint64_t segment, uint64_t end)
{
	if (s->segs.n == s->segs.cap) {
		s->segs.cap = s->segs.cap ? s->segs.cap * 2 : 4;
		s->segs.v = vx_xrealloc(s->segs.v, s->segs.cap * sizeof *s->segs.v);
	}
	s->segs.v[s->segs.n++] = fd;
	atomic_store(&s->seg_id, segment);
	s->seg_end = end;
}

/* How long a segment may become for this process (ulimit -f). */
static uint64_t most_bytes(void)
{
	struct rlimit l;
	return getrlimit(RLIMIT_FSIZE, &l) == 0 && l.rlim_cur < 2 * VX_SEGMENT_BYTES
		       ? l.rlim_cur
		       : 2 * VX_SEGMENT_BYTES;
}

/* Its bytes are there up to where its places end? `end`: what has been noted of that; it may have
 * been cut off since. */
static bool is_complete(struct vx_store *s, uint64_t segment, uint64_t bytes, uint64_t end)
{
	return end <= bytes || (vx_segment_end(s, segment, &end) == 0 && end <= bytes);
}

/* Locks a segment that is there, if nobody else has and there is room for n bytes. -errno. */
static int try_segment(struct vx_hand *h, uint64_t segment, int flags, uint64_t end, size_t n)
{
	struct vx_store *s = h->l->o.store;
	char path[VX_SEGMENT_PATH];
	struct stat st;
	vx_segment_path(segment, path);
	int fd = vx_io_open_beneath(
		h->io, s->dir_fd, path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | flags, 0666);
	if (fd < 0)
		return fd;
	VX_POINT("save.segment_opened");
	/* A prune may have removed it before it was locked. */
	if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		st.st_nlink == 1 && (uint64_t)st.st_size < VX_SEGMENT_BYTES &&
		(!st.st_size || (uint64_t)st.st_size + n <= most_bytes()) &&
		is_complete(s, segment, (uint64_t)st.st_size, end)) {
		use(s, fd, segment, (uint64_t)st.st_size);
		return 0;
	}
	if (flags & O_EXCL)
		vx_io_unlink_at(h->io, s->dir_fd, path, 0);
	vx_io_close_fd(h->io, fd);
	return -EBUSY;
}

static int new_segment(struct vx_hand *h, size_t n, struct vx_fail *f)
{
	struct vx_store *s = h->l->o.store;
	int r = -EBUSY;
	for (int tries = 0; tries < 8 && (r == -EBUSY || r == -EEXIST); tries++) {
		uint64_t id;
		if (getrandom(&id, sizeof id, 0) != (ssize_t)sizeof id || !id)
			id = (uint64_t)(uintptr_t)h ^ vx_fs_now_ns();
		r = try_segment(h, id, O_CREAT | O_EXCL, 0, n);
		if (r == -ENOENT) {
			struct vx_io_step mk = {
				.op = VX_IO_MKDIR, .dirfd = s->dir_fd, .path = "s", .mode = 0777};
			int64_t k = vx_io_one(h->io, &mk);
			VX_POINT("save.dir_made");
			r = k == 0 || k == -EEXIST ? try_segment(h, id, O_CREAT | O_EXCL, 0, n)
						   : (int)k;
		}
	}
	return r < 0 ? vx_fail_set(f, r, "create", "an artifact could not be written to the cache")
		     : 0;
}

/* Has the one that we append to been removed, or become full? A commit may have found out as
 * well. */
static bool is_over(struct vx_store *s, size_t n)
{
	struct stat st;
	bool lost = atomic_exchange(&s->seg_lost, false);
	return lost || s->seg_end >= VX_SEGMENT_BYTES ||
	       (s->seg_end && s->seg_end + n > most_bytes()) ||
	       fstat(s->segs.v[s->segs.n - 1], &st) < 0 || !st.st_nlink;
}

/* Where n bytes are to go. The descriptor stays the store's. */
static int reserve(
	struct vx_hand *h, size_t n, struct vx_place *ret, int *ret_fd, struct vx_fail *f)
{
	struct vx_store *s = h->l->o.store;
	int r = 0;
	pthread_mutex_lock(&s->seg_lock);
	if (!s->segs.n) {
		uint64_t end = 0, last = vx_segment_last(s, &end);
		r = last && try_segment(h, last, 0, end, n) == 0 ? 0 : new_segment(h, n, f);
	} else if (is_over(s, n)) {
		r = new_segment(h, n, f);
	}
	if (r == 0) {
		*ret = (struct vx_place){.segment = s->seg_id, .off = s->seg_end, .bytes = n};
		*ret_fd = s->segs.v[s->segs.n - 1];
		s->seg_end += n;
	}
	pthread_mutex_unlock(&s->seg_lock);
	return r;
}

/* What could not be written leaves nothing, unless another has appended since: then it leaves a
 * gap. */
static void take_back(struct vx_hand *h, const struct vx_place *at, int fd)
{
	struct vx_store *s = h->l->o.store;
	pthread_mutex_lock(&s->seg_lock);
	if (s->seg_id == at->segment && s->seg_end == at->off + at->bytes) {
		struct vx_io_step cut = {.op = VX_IO_TRUNCATE, .fd = fd, .n = at->off};
		vx_io_sys(h->io, &cut);
		s->seg_end = at->off;
	}
	pthread_mutex_unlock(&s->seg_lock);
}

int vx_append(struct vx_hand *h, const void *p, size_t n, const struct vx_digest *digest,
	struct vx_place *ret, bool *ret_reused, struct vx_fail *f)
{
	struct vx_store *s = h->l->o.store;
	struct vx_place at;
	int fd = -1;
	*ret_reused = vx_place_find(s, digest, &at) == 0 && holds(h, &at, p, n);
	if (*ret_reused) {
		*ret = at;
		return 0;
	}
	int r = reserve(h, n, &at, &fd, f);
	if (r < 0)
		return r;
	struct vx_io_step v[2] = {
		{.op = VX_IO_WRITE, .fd = fd, .buf = (void *)(uintptr_t)p, .n = n, .off = at.off},
		{.op = VX_IO_FSYNC, .fd = fd, .flags = 1}};
	VX_POINT("save.before_write");
	for (int i = 0; i < (s->fsync ? 2 : 1) && r == 0; i++) {
		int64_t k = vx_io_one(h->io, &v[i]);
		r = k < 0 ? (int)k : 0;
	}
	VX_POINT("save.written");
	if (r < 0) {
		take_back(h, &at, fd);
		return vx_fail_set(f, r, "write", "an artifact could not be written to the cache");
	}
	*ret = at;
	return 0;
}
