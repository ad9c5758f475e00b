#include "internal.h"

#include "vx/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

/* The live rows: one per running task, then the meters, below everything else on a terminal. They
 * are drawn by vx_report_tick, at most every REGION_MS, and permanent text waits for the tick in
 * the buffer, so that rubbing out, text and new rows are one write. */

static const char *env_get(const struct vx_report *r, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *e = r->o.env; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

static void screen(const struct vx_report *r, uint32_t *ret_rows, uint32_t *ret_cols)
{
	struct winsize w = {0};
	const char *c = env_get(r, "COLUMNS");

	*ret_rows = 24;
	*ret_cols = c && atoi(c) > 0 ? (uint32_t)atoi(c) : 80;
	if (ioctl(r->out.fd, TIOCGWINSZ, &w) == 0 && w.ws_row && w.ws_col) {
		*ret_rows = w.ws_row;
		*ret_cols = w.ws_col;
	}
}

void region_erase(struct vx_report *r)
{
	if (r->region_lines)
		control(r, "\r\033[%uA\033[J", r->region_lines);
	r->region_lines = 0;
}

void region_off(struct vx_report *r)
{
	region_erase(r);
	r->region = false;
}

/* At most `cols` columns of s and a newline; a character of several bytes counts as one and stays
 * whole. */
static void clipped(struct vx_report *r, const char *s, uint32_t cols)
{
	struct vx_buf shown = VX_BUF(SIZE_MAX / 4);
	size_t n = 0;

	vx_text_add(&shown, s, strlen(s));
	for (const char *p = vx_buf_str(&shown); p[n]; n++)
		if (((unsigned char)p[n] & 0xc0) != 0x80 && cols-- == 0)
			break;
	control(r, "%.*s\n", (int)n, vx_buf_str(&shown));
	vx_buf_free(&shown);
}

/* Tenths are restless enough. */
static const char *ticking(uint64_t from_ns, uint64_t now_ns, char *ret, size_t cap)
{
	uint64_t ns = now_ns > from_ns ? now_ns - from_ns : 0;

	if (ns >= 60000000000ULL)
		return vx_fmt_ns(ns, ret, cap);
	snprintf(ret, cap, "%u.%us", (unsigned)(ns / 1000000000), (unsigned)(ns / 100000000 % 10));
	return ret;
}

static void live_row(struct vx_report *r, const struct live *t, uint64_t now_ns, uint32_t cols)
{
	static const char *const spin[] = {"⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"};
	char time[32];

	paint(r, t->ready ? GREEN : CYAN, "%s",
		r->ascii   ? "*"
		: t->ready ? "●"
			   : spin[now_ns / 100000000 % 10]);
	text(r, " %8s  ", ticking(t->start_ns, now_ns, time, sizeof time));
	clipped(r, t->id, cols > 14 ? cols - 14 : 1);
}

static void meters(struct vx_report *r, uint64_t now_ns, uint32_t cols)
{
	const struct vx_core_counts *c = &r->counts;
	struct vx_buf line = VX_BUF(512);
	char time[32];
	uint32_t width = cols > 60 ? 20 : 0,
		 full = r->o.n_tasks ? (uint32_t)((uint64_t)width * r->n_ended / r->o.n_tasks) : 0;

	vx_buf_addc(&line, ' ');
	for (uint32_t k = 0; k < width; k++)
		vx_buf_adds(&line, r->ascii ? k < full ? "#" : "." : k < full ? "█" : "░");
	vx_buf_printf(&line, " %u/%u", r->n_ended, r->o.n_tasks);
	if (r->n_failed)
		vx_buf_printf(&line, "  %u failed", r->n_failed);
	vx_buf_printf(&line, "  %u running", r->n_live - r->n_exited);
	if (c->ready)
		vx_buf_printf(&line, "  %u ready", c->ready);
	if (c->restoring)
		vx_buf_printf(&line, "  %u restoring", c->restoring);
	if (c->saving)
		vx_buf_printf(&line, "  %u saving", c->saving);
	vx_buf_printf(&line, "  %s", ticking(r->o.start_ns, now_ns, time, sizeof time));
	clipped(r, vx_buf_str(&line), cols > 1 ? cols - 1 : 1);
	vx_buf_free(&line);
}

void region_draw(struct vx_report *r, uint64_t now_ns)
{
	uint32_t rows, cols, shown = 0;

	if (!out_begin(&r->out, 64 << 10))
		return;
	region_erase(r);
	screen(r, &rows, &cols);
	for (uint32_t k = 0; k < r->n_live && shown + 3 < rows && shown < 64; k++) {
		if (r->live[k].exited)
			continue;
		live_row(r, &r->live[k], now_ns, cols);
		shown++;
	}
	meters(r, now_ns, cols);
	r->region_lines = shown + 1;
	r->drawn_ns = now_ns;
	r->dirty = false;
}
