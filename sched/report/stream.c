#include "internal.h"

#include <string.h>

/* Streams are raw while one task streams at a time. From the moment a second one joins, every line
 * says whose it is. */

#define MAX_LINE_BYTES (64U << 10) /* longer ones are shown in pieces */

void stream_break_line(struct vx_report *r)
{
	if (r->mid_line)
		text(r, "\n");
	r->mid_line = false;
}

void stream_begin(struct vx_report *r, struct live *t)
{
	t->streams = true;
	r->streaming++;
	if (r->streaming > 1)
		r->named = true;
	if (!r->named)
		region_off(r);
}

static void named_line(struct vx_report *r, struct live *t, const char *p, size_t n)
{
	static const char *const colors[] = {CYAN, GREEN, YELLOW, "35", "34", "96", "92", "95"};
	bool reset = r->mode == MODE_TERMINAL && memchr(p, '\033', n);

	if (!piece(r, strlen(t->id) + n + 64))
		return;
	paint(r, colors[t->task % 8], "%s:", t->id);
	text(r, " ");
	task_bytes(r, p, n);
	if (reset)
		control(r, "\033[0m");
	text(r, "\n");
}

static void named(struct vx_report *r, struct live *t, const char *p, size_t n)
{
	if (!t->line.max)
		t->line = VX_BUF(2 * MAX_LINE_BYTES);
	while (n) {
		const char *nl = memchr(p, '\n', n);
		size_t k = nl ? (size_t)(nl - p) : n;

		if (k > MAX_LINE_BYTES) {
			k = MAX_LINE_BYTES;
			nl = NULL;
		}
		vx_buf_add(&t->line, p, k);
		if (nl || t->line.len >= MAX_LINE_BYTES) {
			named_line(r, t, vx_buf_str(&t->line), t->line.len);
			vx_buf_clear(&t->line);
		}
		p += k + (nl != NULL);
		n -= k + (nl != NULL);
	}
}

void stream_bytes(struct vx_report *r, struct live *t, const void *p, size_t n)
{
	if (r->named) {
		named(r, t, p, n);
		return;
	}
	bool mid = r->mid_line;
	r->mid_line = false; /* the stream goes on where it was */
	if (piece(r, n)) {
		task_bytes(r, p, n);
		mid = ((const char *)p)[n - 1] != '\n';
	}
	r->mid_line = mid;
}

void stream_end(struct vx_report *r, struct live *t)
{
	if (!t->streams)
		return;
	if (t->line.len)
		named_line(r, t, t->line.data, t->line.len);
	vx_buf_free(&t->line);
	t->streams = false;
	r->streaming--;
	if (piece(r, 16))
		stream_break_line(r);
}
