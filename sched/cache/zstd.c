/* Compression by libzstd: see zstd.h. */
#include "zstd.h"

#include "vx/arena.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#define PIECE (256U << 10)
#define SAMPLE_BYTES 1024U /* in so many places: */
#define SAMPLES 16U
#define MAX_AHEAD_BYTES (4U << 20) /* taken from the caller and not yet compressed */

/* Bytes on their way to the compressing thread, or back. */
struct piece {
	struct piece *next;
	size_t n, cap;
	bool end;
	uint8_t b[];
};

struct pieces {
	struct piece *head, **tail;
};

/* Compression beside the caller: what it feeds is copied here, and what comes out is handed to its sink when it calls again. */
struct beside {
	pthread_t thread;
	bool runs; /* the caller's alone; the rest under the lock */
	pthread_mutex_t lock;
	pthread_cond_t to_thread, to_caller;
	struct piece *part;              /* the caller's alone: what is being gathered, since crumbs are not worth a hand-over each */
	struct pieces in, out, spare[2]; /* small and large ones to be used again, since fresh memory costs page faults */
	size_t ahead;
	bool stop, done, failed;
};

struct vx_zip {
	ZSTD_CCtx *c;
	uint8_t *out; /* PIECE bytes, made on first use */
	struct beside t;
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
	pthread_mutex_init(&z->t.lock, NULL);
	pthread_cond_init(&z->t.to_thread, NULL);
	pthread_cond_init(&z->t.to_caller, NULL);
	z->t.in.tail = &z->t.in.head;
	z->t.out.tail = &z->t.out.head;
	for (int i = 0; i < 2; i++)
		z->t.spare[i].tail = &z->t.spare[i].head;
	return z;
}

/* ---- the compressing thread ---- */

static void put(struct pieces *q, struct piece *p)
{
	p->next = NULL;
	*q->tail = p;
	q->tail = &p->next;
}

static struct piece *get(struct pieces *q)
{
	struct piece *p = q->head;
	if (p && !(q->head = p->next))
		q->tail = &q->head;
	return p;
}

static void put_spare(struct beside *t, struct piece *p)
{
	put(&t->spare[p->cap > PIECE], p);
}

/* Room for n bytes. The lock is held. */
static struct piece *room_for(struct beside *t, size_t n)
{
	struct piece *p = get(&t->spare[n > PIECE]);
	if (p && p->cap < n) {
		free(p);
		p = NULL;
	}
	if (!p) {
		size_t cap = n < PIECE ? PIECE : n;
		p = vx_xmalloc(sizeof *p + cap);
		p->cap = cap;
	}
	p->n = 0;
	p->end = false;
	return p;
}

/* One piece through the compressor. The lock is held, but not while it works. 0 or -EIO. */
static int compress_piece(struct vx_zip *z, const struct piece *p)
{
	struct beside *t = &z->t;
	ZSTD_inBuffer in = {p->b, p->n, 0};
	for (;;) {
		struct piece *o = room_for(t, PIECE);
		pthread_mutex_unlock(&t->lock);
		ZSTD_outBuffer out = {o->b, PIECE, 0};
		size_t left = ZSTD_compressStream2(z->c, &out, &in, p->end ? ZSTD_e_end : ZSTD_e_continue);
		pthread_mutex_lock(&t->lock);
		o->n = ZSTD_isError(left) ? 0 : out.pos;
		if (o->n) {
			put(&t->out, o);
			pthread_cond_signal(&t->to_caller);
		} else {
			put_spare(t, o);
		}
		if (ZSTD_isError(left))
			return -EIO;
		if (p->end ? left == 0 : in.pos == in.size)
			return 0;
	}
}

static void *compress_main(void *arg)
{
	struct vx_zip *z = arg;
	struct beside *t = &z->t;
	pthread_mutex_lock(&t->lock);
	while (!t->stop && !t->done) {
		struct piece *p = get(&t->in);
		if (!p) {
			pthread_cond_wait(&t->to_thread, &t->lock);
			continue;
		}
		t->failed = compress_piece(z, p) < 0;
		t->done = t->failed || p->end;
		t->ahead -= p->n;
		put_spare(t, p);
		pthread_cond_signal(&t->to_caller);
	}
	pthread_mutex_unlock(&t->lock);
	return NULL;
}

static void start_thread(struct vx_zip *z)
{
	struct beside *t = &z->t;
	sigset_t all, old;
	t->ahead = 0;
	t->stop = t->done = t->failed = false;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	t->runs = pthread_create(&t->thread, NULL, compress_main, z) == 0; /* else it is done in line */
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Also of a stream that was given up half way. */
static void end_thread(struct vx_zip *z)
{
	struct beside *t = &z->t;
	if (!t->runs)
		return;
	pthread_mutex_lock(&t->lock);
	t->stop = true;
	pthread_cond_signal(&t->to_thread);
	pthread_mutex_unlock(&t->lock);
	pthread_join(t->thread, NULL);
	t->runs = false;
	free(t->part);
	t->part = NULL;
	for (struct piece *p; (p = get(&t->in)) || (p = get(&t->out)) || (p = get(&t->spare[0])) || (p = get(&t->spare[1]));)
		free(p);
}

/* Hands over what has come out; waits until the thread has little enough ahead of it, or has ended (`end`). The lock is held. */
static int take_out(struct vx_zip *z, bool end, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	struct beside *t = &z->t;
	int r = 0;
	for (;;) {
		struct piece *o = get(&t->out);
		if (o) {
			pthread_mutex_unlock(&t->lock);
			r = sink(arg, o->b, o->n);
			pthread_mutex_lock(&t->lock);
			put_spare(t, o);
			if (r < 0)
				return r;
		} else if (t->failed) {
			return -EIO;
		} else if (t->done || (!end && t->ahead <= MAX_AHEAD_BYTES)) {
			return 0;
		} else {
			pthread_cond_wait(&t->to_caller, &t->lock);
		}
	}
}

static int hand_over(struct vx_zip *z, bool end, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	struct beside *t = &z->t;
	struct piece *c = t->part;
	t->part = NULL;
	c->end = end;
	pthread_mutex_lock(&t->lock);
	t->ahead += c->n;
	put(&t->in, c);
	pthread_cond_signal(&t->to_thread);
	int r = take_out(z, end, sink, arg);
	pthread_mutex_unlock(&t->lock);
	return r;
}

static int feed_thread(struct vx_zip *z, const void *p, size_t n, bool end, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	struct beside *t = &z->t;
	int r = 0;
	if (t->part && (end || t->part->n + n > t->part->cap)) /* the end comes alone: a frame may not depend on what came along with it */
		r = hand_over(z, false, sink, arg);
	if (r == 0 && !t->part) {
		pthread_mutex_lock(&t->lock);
		t->part = room_for(t, n);
		pthread_mutex_unlock(&t->lock);
	}
	if (r == 0) {
		if (n)
			memcpy(t->part->b + t->part->n, p, n);
		t->part->n += n;
		if (end || t->part->n >= PIECE / 2)
			r = hand_over(z, end, sink, arg);
	}
	if (r < 0 || end)
		end_thread(z);
	return r;
}

/* ---- compressing ---- */

void vx_zip_free(struct vx_zip *z)
{
	if (!z)
		return;
	end_thread(z);
	pthread_mutex_destroy(&z->t.lock);
	pthread_cond_destroy(&z->t.to_thread);
	pthread_cond_destroy(&z->t.to_caller);
	ZSTD_freeCCtx(z->c);
	free(z->out);
	free(z);
}

size_t vx_zip_bound(size_t n)
{
	return ZSTD_compressBound(n);
}

/* Do bytes from all over it occur about equally often? The sum of the squares of their counts is n + n(n - 1)/255 on average for random ones, with a deviation of
 * 2 % for a sample of this size; text has ten times that, base64 three times. Zeros are left out: they fill up what tar puts around the files. */
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
	end_thread(z);
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

int vx_zip_begin(struct vx_zip *z, uint64_t total)
{
	end_thread(z);
	ZSTD_CCtx_reset(z->c, ZSTD_reset_session_only);
	size_t r = ZSTD_CCtx_setPledgedSrcSize(z->c, total);
	if (!z->out)
		z->out = vx_xmalloc(PIECE);
	if (ZSTD_isError(r))
		return -EIO;
	if (total >= VX_ZIP_THREADED_BYTES)
		start_thread(z);
	return 0;
}

int vx_zip_feed(struct vx_zip *z, const void *p, size_t n, bool end, int (*sink)(void *arg, const void *p, size_t n), void *arg)
{
	if (z->t.runs)
		return feed_thread(z, p, n, end, sink, arg);
	ZSTD_inBuffer in = {p, n, 0};
	for (;;) {
		ZSTD_outBuffer out = {z->out, PIECE, 0};
		size_t left = ZSTD_compressStream2(z->c, &out, &in, end ? ZSTD_e_end : ZSTD_e_continue);
		if (ZSTD_isError(left))
			return -EIO;
		int r = out.pos ? sink(arg, z->out, out.pos) : 0;
		if (r < 0)
			return r;
		if (end ? left == 0 : in.pos == in.size)
			return 0;
	}
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

int vx_unzip_feed(struct vx_unzip *z, const void *p, size_t n, bool *ret_done, int (*sink)(void *arg, const void *p, size_t n), void *arg)
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
