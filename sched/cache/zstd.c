/* Compression by libzstd: see zstd.h. */
#include "zstd.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/hash.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* The calls that compress block by block, without copies in between, are in every libzstd, but only
 * declared for those who link it statically. Later releases would rather have nobody use them. */
#define ZSTD_STATIC_LINKING_ONLY
#define ZSTD_DISABLE_DEPRECATE_WARNINGS
#include <zstd.h>

/* of what is compressed: a frame is made of so much at a time, however it was fed */
#define PIECE (256U << 10)
#define RING_BYTES (2U << 20) /* one huge page, and small enough to stay in a cache */
/* what level 1 uses: 512 KiB that compression looks back to, which must stay as they are in the
 * ring */
#define WINDOW_LOG 19
/* taken from the caller and not yet compressed, at most */
#define AHEAD_BYTES (RING_BYTES - (1U << WINDOW_LOG))
/* what a piece may become, the frame's header included */
#define PACKED_BYTES (ZSTD_COMPRESSBOUND(PIECE) + 64)
#define SAMPLE_BYTES 1024U /* in so many places: */
#define SAMPLES 16U

/* A compressed piece on its way to the caller. */
struct packed {
	struct packed *next;
	size_t n;
	bool digested;
	uint8_t b[PACKED_BYTES];
};

/* A frame in pieces. What is fed goes into a ring, from which it is compressed in place, so that
 * libzstd neither copies it nor looks for matches in two separate parts of memory (except just
 * behind the ring's end). A large one is compressed by a thread; what comes out is handed to the
 * caller's sink when it calls again. */
struct stream {
	uint8_t *ring;
	/* the caller's alone: bytes of the piece that is being filled, which begins at `given` */
	size_t part;
	bool threaded;
	struct vx_sha256 *sha;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t to_thread, to_caller;
	/* under the lock, if there is a thread */
	uint64_t given, done; /* bytes of the frame: handed over, compressed */
	uint64_t wake_at;     /* the caller waits until so many are compressed */
	/* the thread, which had nothing left, waits until so many are handed over */
	uint64_t run_at;
	size_t undigested; /* pieces that came out and have yet to be digested by the caller */
	size_t last;       /* bytes of the last piece, once `end` */
	bool end, ended, stop, failed;
	/* spare: the last used first, since it is still in a cache */
	struct packed *out, **out_tail, *spare;
};

struct vx_zip {
	ZSTD_CCtx *c;
	struct stream s;
};

struct vx_unzip {
	ZSTD_DCtx *d;
	uint8_t *out;
	bool done;
};

static void *need(void *p)
{
	if (!p)
		abort(); /* as vx_xmalloc does */
	return p;
}

struct vx_zip *vx_zip_new(void)
{
	struct vx_zip *z = vx_xcalloc(1, sizeof *z);
	z->c = need(ZSTD_createCCtx());
	ZSTD_CCtx_setParameter(z->c, ZSTD_c_compressionLevel, VX_ZIP_LEVEL);
	pthread_mutex_init(&z->s.lock, NULL);
	pthread_cond_init(&z->s.to_thread, NULL);
	pthread_cond_init(&z->s.to_caller, NULL);
	return z;
}

/* ---- a frame in pieces ---- */

/* The next piece, of n bytes, into `o`. 0 or -EIO. */
static int compress_piece(struct vx_zip *z, uint64_t from, size_t n, bool end, struct packed *o)
{
	const uint8_t *p = z->s.ring + from % RING_BYTES;
	size_t r = end ? ZSTD_compressEnd(z->c, o->b, sizeof o->b, p, n)
		       : ZSTD_compressContinue(z->c, o->b, sizeof o->b, p, n);
	o->n = ZSTD_isError(r) ? 0 : r;
	return ZSTD_isError(r) ? -EIO : 0;
}

static struct packed *get_spare(struct stream *s)
{
	struct packed *o = s->spare;
	if (!o)
		return vx_xmalloc(sizeof *o);
	s->spare = o->next;
	return o;
}

static void put_spare(struct stream *s, struct packed *o)
{
	o->next = s->spare;
	s->spare = o;
}

/* Who digests a piece? The caller, as a rule, which has less to do than the thread; but this thread
 * what could hardly be compressed, since that was soon done. Pieces are digested in order. The lock
 * is held, but not while it works. */
static void digest_here(struct stream *s, struct packed *o)
{
	o->digested = !s->sha;
	if (s->sha && o->n > PIECE - PIECE / 8) {
		while (s->undigested && !s->stop) {
			/* it may be waiting for more than has come out */
			pthread_cond_signal(&s->to_caller);
			pthread_cond_wait(&s->to_thread, &s->lock);
		}
		o->digested = !s->undigested;
	}
	if (s->sha && o->digested) {
		pthread_mutex_unlock(&s->lock);
		vx_sha256_add(s->sha, o->b, o->n);
		pthread_mutex_lock(&s->lock);
	}
	s->undigested += !o->digested;
}

static void *compress_main(void *arg)
{
	struct vx_zip *z = arg;
	struct stream *s = &z->s;
	pthread_mutex_lock(&s->lock);
	while (!s->stop && !s->ended && !s->failed) {
		bool last = s->done == s->given;
		if (last && !s->end) {
			s->run_at = s->given + AHEAD_BYTES / 2;
			pthread_cond_wait(&s->to_thread, &s->lock);
			continue;
		}
		struct packed *o = get_spare(s);
		size_t n = last ? s->last : PIECE;
		pthread_mutex_unlock(&s->lock);
		/* `done` is changed by this thread alone */
		int r = compress_piece(z, s->done, n, last, o);
		pthread_mutex_lock(&s->lock);
		digest_here(s, o);
		o->next = NULL;
		*s->out_tail = o;
		s->out_tail = &o->next;
		s->done += n;
		s->ended = last;
		s->failed = r < 0;
		if (s->done >= s->wake_at || s->ended || s->failed)
			pthread_cond_signal(&s->to_caller);
	}
	pthread_mutex_unlock(&s->lock);
	return NULL;
}

static void start_thread(struct vx_zip *z)
{
	sigset_t all, old;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	/* else it is done in line */
	z->s.threaded = pthread_create(&z->s.thread, NULL, compress_main, z) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Also of a frame that was given up half way. */
void vx_zip_stop(struct vx_zip *z)
{
	struct stream *s = &z->s;
	if (s->threaded) {
		pthread_mutex_lock(&s->lock);
		s->stop = true;
		pthread_cond_signal(&s->to_thread);
		pthread_mutex_unlock(&s->lock);
		pthread_join(s->thread, NULL);
		s->threaded = false;
	}
	for (struct packed *o; (o = s->out);) {
		s->out = o->next;
		free(o);
	}
	for (struct packed *o; (o = s->spare);) {
		s->spare = o->next;
		free(o);
	}
	free(s->ring);
	s->ring = NULL;
}

static void digest_taken(struct stream *s, const struct packed *o)
{
	vx_sha256_add(s->sha, o->b, o->n);
	pthread_mutex_lock(&s->lock);
	if (--s->undigested == 0)
		pthread_cond_signal(&s->to_thread);
	pthread_mutex_unlock(&s->lock);
}

/* Hands over what has come out, and waits until the next piece has room, or all is compressed. Not
 * woken for every piece: half of the ring may become free first. The lock is held. */
static int take_out(struct stream *s, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	for (;;) {
		struct packed *o = s->out;
		if (o) {
			if (!(s->out = o->next))
				s->out_tail = &s->out;
			pthread_mutex_unlock(&s->lock);
			if (!o->digested)
				digest_taken(s, o);
			int r = o->n ? sink(arg, o->b, o->n) : 0;
			pthread_mutex_lock(&s->lock);
			put_spare(s, o);
			if (r < 0)
				return r;
		} else if (s->failed) {
			return -EIO;
		} else if (s->ended || (!s->end && s->given + PIECE - s->done <= AHEAD_BYTES)) {
			return 0;
		} else {
			s->wake_at = s->end ? 0 : s->given - AHEAD_BYTES / 2;
			pthread_cond_wait(&s->to_caller, &s->lock);
			s->wake_at = UINT64_MAX;
		}
	}
}

/* The piece that was filled is compressed, or will be. */
static int give_piece(
	struct vx_zip *z, bool end, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	struct stream *s = &z->s;
	size_t n = s->part;
	int r;
	s->part = 0;
	if (s->threaded) {
		pthread_mutex_lock(&s->lock);
		s->given += end ? 0 : n;
		s->last = n;
		s->end = end;
		if (end || s->given >= s->run_at)
			pthread_cond_signal(&s->to_thread);
		r = take_out(s, sink, arg);
		pthread_mutex_unlock(&s->lock);
		return r;
	}
	struct packed *o = get_spare(s);
	r = compress_piece(z, s->given, n, end, o);
	s->given += n;
	if (s->sha)
		vx_sha256_add(s->sha, o->b, o->n);
	if (r == 0 && o->n)
		r = sink(arg, o->b, o->n);
	put_spare(s, o);
	return r;
}

int vx_zip_begin(struct vx_zip *z, uint64_t total, struct vx_sha256 *sha)
{
	struct stream *s = &z->s;
	vx_zip_stop(z);
	ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only);
	ZSTD_parameters p = ZSTD_getParams(VX_ZIP_LEVEL, total, 0);
	if (p.cParams.windowLog > WINDOW_LOG)
		p.cParams.windowLog = WINDOW_LOG;
	if (ZSTD_isError(ZSTD_compressBegin_advanced(z->c, NULL, 0, p, total)))
		return -EIO;
	s->ring = need(aligned_alloc(RING_BYTES, RING_BYTES));
	/* advice: its failure changes nothing but speed */
	madvise(s->ring, RING_BYTES, MADV_HUGEPAGE);
	s->sha = sha;
	s->part = s->last = s->undigested = 0;
	s->given = s->done = s->run_at = 0;
	s->wake_at = UINT64_MAX;
	s->end = s->ended = s->stop = s->failed = false;
	s->out_tail = &s->out;
	if (total >= VX_ZIP_THREADED_BYTES)
		start_thread(z);
	return 0;
}

void *vx_zip_room(struct vx_zip *z, size_t *ret_n)
{
	vx_assert(z->s.ring);
	*ret_n = PIECE - z->s.part;
	/* pieces do not span the ring's end; only the caller changes `given` */
	return z->s.ring + z->s.given % RING_BYTES + z->s.part;
}

int vx_zip_filled(
	struct vx_zip *z, size_t n, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	z->s.part += n;
	int r = z->s.part == PIECE ? give_piece(z, false, sink, arg) : 0;
	if (r < 0)
		vx_zip_stop(z);
	return r;
}

int vx_zip_feed(struct vx_zip *z, const void *p, size_t n, bool end,
	int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	int r = 0;
	for (size_t k; n && r == 0; n -= k, p = (const char *)p + k) {
		void *room = vx_zip_room(z, &k);
		k = k < n ? k : n;
		memcpy(room, p, k);
		r = vx_zip_filled(z, k, sink, arg);
	}
	if (r == 0 && end) {
		r = give_piece(z, true, sink, arg);
		vx_zip_stop(z);
	}
	return r;
}

/* ---- all at once ---- */

void vx_zip_free(struct vx_zip *z)
{
	if (!z)
		return;
	vx_zip_stop(z);
	pthread_mutex_destroy(&z->s.lock);
	pthread_cond_destroy(&z->s.to_thread);
	pthread_cond_destroy(&z->s.to_caller);
	ZSTD_freeCCtx(z->c);
	free(z);
}

size_t vx_zip_bound(size_t n)
{
	return ZSTD_compressBound(n);
}

/* Do bytes from all over it occur about equally often? The sum of the squares of their counts is n
 * + n(n - 1)/255 on average for random ones, with a deviation of 2 % for a sample of this size;
 * text has ten times that, base64 three times. Zeros are left out: they fill up what tar puts
 * around the files. */
static bool looks_random(const uint8_t *p, size_t n)
{
	uint32_t count[256] = {0}, sum = 0;
	if (n < 4 * SAMPLE_BYTES || n > VX_ZIP_HASTY_BYTES)
		return false;
	for (size_t i = 0; i < SAMPLES; i++) {
		const uint8_t *at = p + (n - SAMPLE_BYTES / SAMPLES) / (SAMPLES - 1) * i;
		for (size_t k = 0; k < SAMPLE_BYTES / SAMPLES; k++)
			sum += 2U * count[at[k]]++ + 1;
	}
	uint32_t counted = SAMPLE_BYTES - count[0], mean = counted + counted * (counted - 1) / 255;
	return counted > SAMPLE_BYTES / 2 && sum - count[0] * count[0] < mean + mean / 8;
}

int vx_zip_all(struct vx_zip *z, const void *p, size_t n, void *dst, size_t cap, size_t *ret)
{
	vx_zip_stop(z);
	ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only);
	bool hasty = looks_random(p, n);
	if (hasty)
		ZSTD_CCtx_setParameter(z->c, ZSTD_c_compressionLevel, VX_ZIP_HASTY_LEVEL);
	size_t r = ZSTD_compress2(z->c, dst, cap, p, n);
	if (hasty)
		ZSTD_CCtx_setParameter(z->c, ZSTD_c_compressionLevel, VX_ZIP_LEVEL);
	if (ZSTD_isError(r))
		return -EIO;
	*ret = r;
	return 0;
}

struct vx_unzip *vx_unzip_new(void)
{
	struct vx_unzip *z = vx_xcalloc(1, sizeof *z);
	z->d = need(ZSTD_createDCtx());
	ZSTD_DCtx_setParameter(z->d, ZSTD_d_windowLogMax, VX_UNZIP_MAX_WINDOW_LOG);
	return z;
}

void vx_unzip_free(struct vx_unzip *z)
{
	if (!z)
		return;
	ZSTD_freeDCtx(z->d);
	free(z->out);
	free(z);
}

int vx_unzip_all(struct vx_unzip *z, const void *p, size_t n, void *dst, size_t cap, size_t *ret)
{
	ZSTD_DCtx_reset(z->d, ZSTD_reset_session_only);
	size_t r = ZSTD_decompressDCtx(z->d, dst, cap, p, n);
	if (ZSTD_isError(r))
		return -EBADMSG;
	*ret = r;
	return 0;
}

void vx_unzip_begin(struct vx_unzip *z)
{
	ZSTD_DCtx_reset(z->d, ZSTD_reset_session_only);
	z->done = false;
	if (!z->out)
		z->out = vx_xmalloc(PIECE);
}

int vx_unzip_feed(struct vx_unzip *z, const void *p, size_t n, bool *ret_done,
	int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	ZSTD_inBuffer in = {p, n, 0};
	bool full = true;
	while (in.pos < in.size || full) {
		if (z->done && in.pos < in.size)
			return -EBADMSG;
		if (z->done)
			break;
		ZSTD_outBuffer out = {z->out, PIECE, 0};
		size_t r = ZSTD_decompressStream(z->d, &out, &in);
		if (ZSTD_isError(r))
			return -EBADMSG;
		z->done = r == 0;
		full = out.pos == out.size; /* there may be more inside */
		int k = out.pos ? sink(arg, z->out, out.pos) : 0;
		if (k < 0)
			return k;
	}
	*ret_done = z->done;
	return 0;
}
