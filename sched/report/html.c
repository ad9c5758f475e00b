/* --report=html: one page that needs nothing but itself. The data are arrays in a script element,
 * the rest is html_page.html. */
#include "html_page.h"
#include "trace_internal.h"

#include "vx/strs.h"
#include "vx/text.h"

#include <string.h>

static void html_text(struct vx_buf *b, const char *text)
{
	struct vx_buf shown = VX_BUF(SIZE_MAX / 4);

	vx_text_add(&shown, text, strlen(text));
	for (const char *s = vx_buf_str(&shown); *s; s++) {
		if (*s == '<' || *s == '>' || *s == '&' || *s == '"')
			vx_buf_printf(b, "&#%d;", *s);
		else
			vx_buf_addc(b, *s);
	}
	vx_buf_free(&shown);
}

static double ms(uint64_t ns)
{
	return (double)ns / 1e6;
}

static double at_ms(const struct vx_trace *t, uint64_t ns)
{
	return ns > t->start_ns ? ms(ns - t->start_ns) : 0;
}

/* [id, result, cache, wall ms, cpu ms, peak bytes, attempts, status, key, requested] */
static void tasks(const struct vx_trace *t, struct vx_buf *b)
{
	vx_buf_adds(b, "\"tasks\":[");
	for (uint32_t i = 0; i < t->n; i++) {
		const struct traced *x = &t->task[i];

		vx_buf_adds(b, i ? ",\n[" : "[");
		trace_json(b, t->in[i].id);
		vx_buf_printf(b, ",\"%s\",\"%s\",%.3f,%.3f,%llu,%u,",
			t->in[i].group ? "group" : trace_result(x->result),
			trace_cache(x) ? trace_cache(x) : "", ms(x->wall_ns), ms(x->cpu_ns),
			(unsigned long long)x->peak_bytes, x->attempts);
		trace_json(b, x->status ? x->status : x->flaky ? "ok, flaky" : "");
		vx_buf_printf(b, ",\"%s\",%d]", x->key ? x->key : "", t->in[i].requested);
	}
	vx_buf_adds(b, "],\n");
}

/* [task, lane, row, start ms, length ms, ok, attempt] */
static void spans(const struct vx_trace *t, struct vx_buf *b)
{
	vx_buf_adds(b, "\"spans\":[");
	for (uint32_t k = 0; k < t->n_spans; k++) {
		const struct span *s = &t->spans[k];

		vx_buf_printf(b, "%s[%u,%u,%u,%.3f,%.3f,%d,%u]", k ? ",\n" : "", s->task, s->lane,
			s->row, at_ms(t, s->start_ns), ms(s->end_ns - s->start_ns), s->ok,
			s->attempt);
	}
	vx_buf_adds(b, "],\n\"phases\":[");
	for (uint32_t k = 0; k < t->n_phases; k++) {
		const struct phase *p = &t->phases[k];

		vx_buf_printf(b, "%s[\"%s\",%.3f,%.3f]", k ? "," : "", p->name,
			at_ms(t, p->start_ns),
			p->end_ns > p->start_ns ? ms(p->end_ns - p->start_ns) : 0);
	}
	vx_buf_adds(b, "],\n\"rows\":[");
	for (int k = 0; k < LANES; k++)
		vx_buf_printf(b, "%s%u", k ? "," : "", t->rows[k].n);
	vx_buf_adds(b, "],\n");
}

static void run(struct vx_trace *t, struct vx_buf *b)
{
	const struct vx_run_end *e = &t->end;
	const uint32_t *chain;
	uint32_t n;
	uint64_t critical_ns = vx_trace_critical(t, &chain, &n);

	vx_buf_adds(b, "\"critical\":[");
	for (uint32_t k = 0; k < n; k++)
		vx_buf_printf(b, "%s%u", k ? "," : "", chain[k]);
	vx_buf_printf(b,
		"],\n\"run\":{\"code\":%d,\"wall\":%.3f,\"critical\":%.3f,\"ideal\":%.3f,\"saved\":%.3f,\"slots\":%u,\"workers\":%u,",
		e->code, ms(t->end_ns - t->start_ns), ms(critical_ns), ms(trace_ideal(t)),
		ms(e->saved_ns), t->slots, e->workers);
	vx_buf_printf(b,
		"\"total\":%u,\"executed\":%u,\"failed\":%u,\"skipped\":%u,\"upToDate\":%u,\"restored\":%u,\"missed\":%u,\"nocache\":%u,\"notSaved\":%u,",
		e->counts.total, e->counts.executed, e->counts.failed, e->counts.skipped,
		e->up_to_date, e->restored, e->missed, e->nocache, e->not_saved);
	vx_buf_printf(b,
		"\"overhead\":{\"plan\":%.3f,\"keys\":%.3f,\"probe\":%.3f,\"dispatch\":%.3f,\"sandbox\":%.3f,\"save\":%.3f}}",
		ms(e->plan_ns), ms(e->keys_ns), ms(e->probe_ns), ms(e->dispatch_ns),
		ms(e->setup_ns), ms(e->save_ns));
}

static void data(struct vx_trace *t, struct vx_buf *b)
{
	vx_buf_addc(b, '{');
	tasks(t, b);
	spans(t, b);
	run(t, b);
	vx_buf_addc(b, '}');
}

int vx_trace_write_html(struct vx_trace *t, const char *path, const char *title, struct vx_err *err)
{
	static const char title_mark[] = "@TITLE@", data_mark[] = "@DATA@";
	struct vx_buf b = VX_BUF(SIZE_MAX);
	const char *at = vx_html_page;

	for (const char *mark; (mark = strchr(at, '@')) != NULL;) {
		vx_buf_add(&b, at, (size_t)(mark - at));
		if (vx_starts_with(mark, title_mark)) {
			html_text(&b, title);
			at = mark + sizeof title_mark - 1;
		} else if (vx_starts_with(mark, data_mark)) {
			data(t, &b);
			at = mark + sizeof data_mark - 1;
		} else {
			vx_buf_addc(&b, '@');
			at = mark + 1;
		}
	}
	vx_buf_adds(&b, at);
	int r = trace_write(path, "--report=html", &b, err);
	vx_buf_free(&b);
	return r;
}
