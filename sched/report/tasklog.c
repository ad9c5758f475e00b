#include "vx/tasklog.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/limits.h"
#include "vx/secret.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void shown_fn(void *arg, int stream, const void *p, size_t n);

#define STREAMS 2
#define MAGIC "vxlog\0\0\1" /* the last byte is the version */
/* magic, u64le head bytes, cut bytes, tail bytes, u32le head runs, tail runs */
#define HEADER_BYTES 40

/* Bytes and, beside them, which stream they came from: runs of (length << 1 | stream - 1). The
 * front can be dropped; what was dropped is moved away only when it is as much as what is left, so
 * that a byte is moved once on average. */
struct part {
	uint8_t *bytes;
	uint32_t *runs;
	size_t start, n, cap; /* bytes[start ..< start + n] */
	size_t run_start, n_runs, run_cap;
};

struct held {
	uint8_t *bytes;
	size_t n, cap;
	size_t hide; /* so many of the next bytes belong to a mask that has been shown already */
};

struct vx_tasklog {
	const struct vx_masks *masks;
	struct part head, tail;
	struct held held[STREAMS];
	uint64_t cut_bytes;
};

/* ---- parts ---- */

static void part_run(struct part *a, int stream, size_t n)
{
	uint32_t *last = a->n_runs ? &a->runs[a->run_start + a->n_runs - 1] : NULL;

	if (last && (*last & 1U) == (uint32_t)stream - 1) {
		*last += (uint32_t)n << 1;
		return;
	}
	if (a->run_start + a->n_runs == a->run_cap) {
		if (a->run_start > a->n_runs) {
			memmove(a->runs, a->runs + a->run_start, a->n_runs * sizeof *a->runs);
			a->run_start = 0;
		} else {
			a->run_cap = a->run_cap ? 2 * a->run_cap : 8;
			a->runs = vx_xrealloc(a->runs, a->run_cap * sizeof *a->runs);
		}
	}
	a->runs[a->run_start + a->n_runs++] = (uint32_t)n << 1 | ((uint32_t)stream - 1);
}

static void part_add(struct part *a, int stream, const uint8_t *p, size_t n)
{
	if (!n)
		return;
	if (a->start + a->n + n > a->cap) {
		if (a->start > a->n) {
			memmove(a->bytes, a->bytes + a->start, a->n);
			a->start = 0;
		}
		size_t want = a->start + a->n + n;
		if (want > a->cap) {
			a->cap = want < 2048 ? 4096 : 2 * want;
			a->bytes = vx_xrealloc(a->bytes, a->cap);
		}
	}
	memcpy(a->bytes + a->start + a->n, p, n);
	a->n += n;
	part_run(a, stream, n);
}

static void part_drop(struct part *a, size_t n)
{
	vx_assert(n <= a->n);
	a->start += n;
	a->n -= n;
	while (n) {
		uint32_t *r = &a->runs[a->run_start];
		size_t k = *r >> 1;

		if (k > n) {
			*r -= (uint32_t)n << 1;
			return;
		}
		n -= k;
		a->run_start++;
		a->n_runs--;
	}
}

static void part_free(struct part *a)
{
	free(a->bytes);
	free(a->runs);
	*a = (struct part){0};
}

static void part_each(const struct part *a, shown_fn *f, void *arg)
{
	const uint8_t *p = a->bytes + a->start;

	for (size_t k = 0; k < a->n_runs; k++) {
		uint32_t r = a->runs[a->run_start + k];

		f(arg, (int)(r & 1U) + 1, p, r >> 1);
		p += r >> 1;
	}
}

/* ---- keeping ---- */

static void keep(struct vx_tasklog *l, int stream, const uint8_t *p, size_t n)
{
	size_t room = VX_KEEP_HEAD_BYTES - l->head.n, k = n < room ? n : room;

	part_add(&l->head, stream, p, k);
	p += k;
	n -= k;
	if (n > VX_KEEP_TAIL_BYTES) { /* of one huge piece the end alone */
		l->cut_bytes += n - VX_KEEP_TAIL_BYTES;
		p += n - VX_KEEP_TAIL_BYTES;
		n = VX_KEEP_TAIL_BYTES;
	}
	if (l->tail.n + n > VX_KEEP_TAIL_BYTES) {
		size_t drop = l->tail.n + n - VX_KEEP_TAIL_BYTES;

		part_drop(&l->tail, drop);
		l->cut_bytes += drop;
	}
	part_add(&l->tail, stream, p, n);
}

static void emit(
	struct vx_tasklog *l, int stream, const uint8_t *p, size_t n, shown_fn *shown, void *arg)
{
	if (!n)
		return;
	keep(l, stream, p, n);
	if (shown)
		shown(arg, stream, p, n);
}

/* Shows what is known of p; returns how much that was. The rest may begin a mask, and is known only
 * at the end. */
static size_t sift(struct vx_tasklog *l, int stream, const uint8_t *p, size_t n, bool end,
	shown_fn *shown, void *arg)
{
	struct held *h = &l->held[stream - 1];
	size_t k = 0, plain = 0; /* p[plain ..< k] is to be shown as it is */

	while (k < n) {
		bool partial;

		if (!h->hide) {
			k += vx_masks_skip(l->masks, p + k, n - k);
			if (k == n)
				break;
		}
		size_t m = vx_masks_at(l->masks, p + k, n - k, &partial);
		if (partial && !end)
			break;
		if (m && !h->hide) {
			emit(l, stream, p + plain, k - plain, shown, arg);
			emit(l, stream, (const uint8_t *)VX_MASK_TEXT, sizeof VX_MASK_TEXT - 1,
				shown, arg);
		}
		if (m > h->hide)
			h->hide = m;
		k++;
		if (h->hide) {
			h->hide--;
			plain = k;
		}
	}
	emit(l, stream, p + plain, k - plain, shown, arg);
	return k;
}

static void hold(struct held *h, const uint8_t *p, size_t n)
{
	if (h->n + n > h->cap) {
		h->cap = 2 * (h->n + n);
		h->bytes = vx_xrealloc(h->bytes, h->cap);
	}
	memcpy(h->bytes + h->n, p, n);
	h->n += n;
}

void vx_tasklog_add(
	struct vx_tasklog *l, int stream, const void *p, size_t n, shown_fn *shown, void *arg)
{
	vx_assert(stream >= 1 && stream <= STREAMS);
	struct held *h = &l->held[stream - 1];

	if (!n)
		return;
	if (vx_masks_none(l->masks)) {
		emit(l, stream, p, n, shown, arg);
	} else if (!h->n) {
		size_t k = sift(l, stream, p, n, false, shown, arg);

		if (k < n)
			hold(h, (const uint8_t *)p + k, n - k);
	} else {
		hold(h, p, n);
		size_t k = sift(l, stream, h->bytes, h->n, false, shown, arg);
		h->n -= k;
		memmove(h->bytes, h->bytes + k, h->n);
	}
}

void vx_tasklog_end(struct vx_tasklog *l, shown_fn *shown, void *arg)
{
	for (int stream = 1; stream <= STREAMS; stream++) {
		struct held *h = &l->held[stream - 1];

		if (h->n)
			sift(l, stream, h->bytes, h->n, true, shown, arg);
		h->n = h->hide = 0;
	}
}

void vx_tasklog_clear(struct vx_tasklog *l)
{
	part_free(&l->head);
	part_free(&l->tail);
	for (int k = 0; k < STREAMS; k++)
		l->held[k].n = l->held[k].hide = 0;
	l->cut_bytes = 0;
}

struct vx_tasklog *vx_tasklog_new(const struct vx_masks *masks)
{
	struct vx_tasklog *l = vx_xcalloc(1, sizeof *l);

	l->masks = masks;
	return l;
}

void vx_tasklog_free(struct vx_tasklog *l)
{
	if (!l)
		return;
	vx_tasklog_clear(l);
	for (int k = 0; k < STREAMS; k++)
		free(l->held[k].bytes);
	free(l);
}

bool vx_tasklog_empty(const struct vx_tasklog *l)
{
	return !l->head.n;
}

uint64_t vx_tasklog_cut_bytes(const struct vx_tasklog *l)
{
	return l->cut_bytes;
}

/* ---- showing and storing ---- */

static void name_cut(uint64_t cut_bytes, bool at_line, shown_fn *f, void *arg)
{
	char text[160];
	int n = snprintf(text, sizeof text,
		"%s[vx: %llu bytes of output are left out here; the first %u and the last %u MiB are kept]\n",
		at_line ? "" : "\n", (unsigned long long)cut_bytes, VX_KEEP_HEAD_BYTES >> 20,
		VX_KEEP_TAIL_BYTES >> 20);

	f(arg, 1, text, (size_t)n);
}

void vx_tasklog_each(const struct vx_tasklog *l, shown_fn *f, void *arg)
{
	part_each(&l->head, f, arg);
	if (l->cut_bytes)
		name_cut(l->cut_bytes, l->head.bytes[l->head.n - 1] == '\n', f, arg);
	part_each(&l->tail, f, arg);
}

/* An empty log is stored as no bytes. */
void vx_tasklog_store(const struct vx_tasklog *l, struct vx_buf *out)
{
	const struct part *parts[] = {&l->head, &l->tail};

	if (vx_tasklog_empty(l))
		return;
	vx_buf_add(out, MAGIC, 8);
	vx_buf_u64le(out, l->head.n);
	vx_buf_u64le(out, l->cut_bytes);
	vx_buf_u64le(out, l->tail.n);
	vx_buf_u32le(out, (uint32_t)l->head.n_runs);
	vx_buf_u32le(out, (uint32_t)l->tail.n_runs);
	for (int k = 0; k < 2; k++)
		for (size_t r = 0; r < parts[k]->n_runs; r++)
			vx_buf_u32le(out, parts[k]->runs[parts[k]->run_start + r]);
	for (int k = 0; k < 2; k++)
		if (parts[k]->n)
			vx_buf_add(out, parts[k]->bytes + parts[k]->start, parts[k]->n);
}

static uint32_t u32le(const uint8_t *p)
{
	return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static uint64_t u64le(const uint8_t *p)
{
	return u32le(p) | (uint64_t)u32le(p + 4) << 32;
}

/* Do n runs make up exactly `bytes`, each of them something, no two of one stream in a row? */
static bool runs_valid(const uint8_t *runs, uint32_t n, uint64_t bytes)
{
	uint64_t sum = 0;

	for (uint32_t k = 0; k < n; k++) {
		uint32_t r = u32le(runs + 4UL * k);

		if (!(r >> 1) || (k && (r & 1U) == (u32le(runs + 4UL * (k - 1)) & 1U)))
			return false;
		sum += r >> 1;
	}
	return sum == bytes;
}

static void runs_each(const uint8_t *runs, uint32_t n, const uint8_t *bytes, shown_fn *f, void *arg)
{
	for (uint32_t k = 0; k < n; k++) {
		uint32_t r = u32le(runs + 4UL * k);

		f(arg, (int)(r & 1U) + 1, bytes, r >> 1);
		bytes += r >> 1;
	}
}

int vx_tasklog_replay(const void *stored, size_t n, shown_fn *f, void *arg)
{
	const uint8_t *p = stored;

	if (!n)
		return 0;
	if (n < HEADER_BYTES || memcmp(p, MAGIC, 8) != 0)
		return -EBADMSG;
	uint64_t head = u64le(p + 8), cut = u64le(p + 16), tail = u64le(p + 24);
	uint32_t head_runs = u32le(p + 32), tail_runs = u32le(p + 36);
	if (!head || head > VX_KEEP_HEAD_BYTES || tail > VX_KEEP_TAIL_BYTES || head_runs > head ||
		tail_runs > tail)
		return -EBADMSG;
	if ((tail && head != VX_KEEP_HEAD_BYTES) || (cut && tail != VX_KEEP_TAIL_BYTES))
		return -EBADMSG; /* never written so */
	uint64_t runs_bytes = 4ULL * ((uint64_t)head_runs + tail_runs);
	if (n != HEADER_BYTES + runs_bytes + head + tail)
		return -EBADMSG;
	const uint8_t *runs = p + HEADER_BYTES, *bytes = runs + runs_bytes;
	if (!runs_valid(runs, head_runs, head) ||
		!runs_valid(runs + 4UL * head_runs, tail_runs, tail))
		return -EBADMSG;
	runs_each(runs, head_runs, bytes, f, arg);
	if (cut)
		name_cut(cut, bytes[head - 1] == '\n', f, arg);
	runs_each(runs + 4UL * head_runs, tail_runs, bytes + head, f, arg);
	return 0;
}
