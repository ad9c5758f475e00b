#include "internal.h"

#include "vx/text.h"

#include <stdio.h>
#include <string.h>

void text(struct vx_report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vx_text_vprintf(&r->out.buf, fmt, ap);
	va_end(ap);
}

void control(struct vx_report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vx_buf_vprintf(&r->out.buf, fmt, ap);
	va_end(ap);
}

void task_bytes(struct vx_report *r, const void *p, size_t n)
{
	vx_buf_add(&r->out.buf, p, n);
}

void paint(struct vx_report *r, const char *sgr, const char *fmt, ...)
{
	va_list ap;

	if (r->color)
		control(r, "\033[%sm", sgr);
	va_start(ap, fmt);
	vx_text_vprintf(&r->out.buf, fmt, ap);
	va_end(ap);
	if (r->color)
		control(r, "\033[0m");
}

struct look {
	const char *glyph, *ascii, *sgr;
};

static struct look look_of(const struct vx_task_end *e)
{
	switch (e->result) {
	case VX_R_SUCCESS:
		return e->flaky ? (struct look){"✓", "+", YELLOW} : (struct look){"✓", "+", GREEN};
	case VX_R_HIT:
		return (struct look){"✓", "+", CYAN};
	case VX_R_FAILED:
		return (struct look){"✗", "x", RED};
	default:
		return (struct look){"○", "-", DIM};
	}
}

static const char *cache_word(const struct vx_task_end *e)
{
	static const char *const words[] = {[VX_C_MISS] = "miss",
		[VX_C_UP_TO_DATE] = "up-to-date",
		[VX_C_RESTORED] = "restored",
		[VX_C_NOCACHE] = "no-cache"};

	return e->result == VX_R_SKIPPED ? "-" : words[e->cache];
}

bool has_reasons(const char *status)
{
	return status && strlen(status) > 40 && strstr(status, ": ");
}

const char *brief(const char *status, char *ret, size_t cap)
{
	snprintf(ret, cap, "%s", status);
	if (has_reasons(status))
		ret[strcspn(ret, ":")] = '\0';
	return ret;
}

void reason_write(struct vx_report *r, const char *status)
{
	if (has_reasons(status))
		text(r, "  %s\n", status);
}

/* glyph time status cache project#task. Nothing stands after the task, so that it is easily cut
 * out. */
void row_write(struct vx_report *r, const struct vx_task_end *e, bool with_key)
{
	struct look l = look_of(e);
	char time[32] = "", status[256];
	const char *s = e->status               ? e->status
			: e->result == VX_R_HIT ? "cached"
			: e->flaky              ? "ok, flaky"
						: "ok";

	if (e->result != VX_R_SKIPPED)
		vx_fmt_ns(e->wall_ns, time, sizeof time);
	paint(r, l.sgr, "%s", r->ascii ? l.ascii : l.glyph);
	text(r, " %8s  ", time);
	paint(r, l.sgr, "%-9s", e->result == VX_R_FAILED ? brief(s, status, sizeof status) : s);
	text(r, " ");
	paint(r, DIM, "%-10s", cache_word(e));
	if (with_key)
		text(r, " %s", e->key_hex ? e->key_hex : "-");
	text(r, " %s\n", e->id);
}

/* What there is to say below a row, a line each. */
void note_write(struct vx_report *r, const struct vx_task_end *e)
{
	char a[32], b[32];

	if (e->result == VX_R_FAILED)
		reason_write(r, e->status);
	if (e->flaky)
		text(r, "  flaky: %s passed after a failed attempt\n", e->id);
	if (e->leftover_cut)
		text(r, "  output was cut: something that the command left running held it open\n");
	for (const char *p = e->note; p && *p;) {
		size_t n = strcspn(p, "\n");

		text(r, "  %.*s\n", (int)n, p);
		p += n + (p[n] == '\n');
	}
	if (r->o.verbosity >= 2 && e->result != VX_R_HIT && e->result != VX_R_SKIPPED) {
		text(r, "  cpu %s", vx_fmt_ns(e->cpu_ns, a, sizeof a));
		if (e->peak_bytes)
			text(r, ", peak %s of %s", vx_fmt_bytes(e->peak_bytes, b, sizeof b),
				e->peak_is_tree ? "the whole tree" : "the largest process");
		text(r, "\n");
	}
}
