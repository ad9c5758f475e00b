/* --summarize: the run as one JSON object, docs/schemas/summary.json. */
#include "trace_internal.h"

#include "vx/clock.h"
#include "vx/err.h"

#include <string.h>
#include <time.h>

static void member_ms(struct vx_buf *b, const char *name, uint64_t ns)
{
	vx_buf_printf(b, "\"%s\": %llu.%03u", name, (unsigned long long)(ns / 1000000), (unsigned)(ns / 1000 % 1000));
}

/* When the run began, by the wall clock: what it shows now, less what has passed. */
static void began(const struct vx_trace *t, struct vx_buf *b)
{
	uint64_t since_ns = vx_now_ns() - t->start_ns, wall_ns = vx_wall_ns();
	time_t s = (time_t)((wall_ns > since_ns ? wall_ns - since_ns : 0) / 1000000000);
	struct tm tm;
	char text[40] = "";

	if (gmtime_r(&s, &tm))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &tm);
	vx_buf_printf(b, "  \"began\": \"%s\",\n", text);
}

static void totals(struct vx_trace *t, struct vx_buf *b)
{
	const struct vx_run_end *e = &t->end;
	const struct vx_core_counts *c = &e->counts;
	const struct {
		const char *name;
		uint64_t ns;
	} parts[] = {{"plan", e->plan_ns}, {"keys", e->keys_ns}, {"probe", e->probe_ns}, {"dispatch", e->dispatch_ns}, {"sandbox", e->setup_ns},
		{"save", e->save_ns}};

	vx_buf_printf(b, "  \"code\": %d,\n  \"signal\": ", e->code);
	if (e->signal)
		trace_json(b, vx_signal_name(e->signal));
	else
		vx_buf_adds(b, "null");
	vx_buf_adds(b, ",\n  ");
	member_ms(b, "wallMs", t->end_ns - t->start_ns);
	vx_buf_adds(b, ",\n  ");
	member_ms(b, "criticalMs", vx_trace_critical(t, NULL, NULL));
	vx_buf_adds(b, ",\n  ");
	member_ms(b, "idealMs", trace_ideal(t));
	vx_buf_printf(b, ",\n  \"slots\": %u,\n  \"workers\": %u,\n", t->slots, e->workers);
	vx_buf_printf(b, "  \"counts\": {\"total\": %u, \"executed\": %u, \"hits\": %u, \"failed\": %u, \"skipped\": %u},\n", c->total, c->executed,
		c->hits, c->failed, c->skipped);
	vx_buf_printf(b, "  \"cache\": {\"miss\": %u, \"upToDate\": %u, \"restored\": %u, \"noCache\": %u, \"notSaved\": %u, ", e->missed,
		e->up_to_date, e->restored, e->nocache, e->not_saved);
	member_ms(b, "savedMs", e->saved_ns);
	vx_buf_adds(b, "},\n  \"overheadMs\": {");
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		vx_buf_adds(b, k ? ", " : "");
		member_ms(b, parts[k].name, parts[k].ns);
	}
	vx_buf_adds(b, "},\n");
}

static void task(const struct vx_trace *t, uint32_t i, struct vx_buf *b)
{
	const struct traced *x = &t->task[i];

	vx_buf_adds(b, "    {\"id\": ");
	trace_json(b, t->in[i].id);
	vx_buf_printf(b, ", \"requested\": %s, \"result\": \"%s\"", t->in[i].requested ? "true" : "false", trace_result(x->result));
	if (trace_cache(x))
		vx_buf_printf(b, ", \"cache\": \"%s\"", trace_cache(x));
	if (x->key)
		vx_buf_printf(b, ", \"hash\": \"%s\"", x->key);
	if (x->status) {
		vx_buf_adds(b, ", \"status\": ");
		trace_json(b, x->status);
	}
	if (x->attempts) {
		vx_buf_printf(b, ", \"attempts\": %u, \"flaky\": %s, ", x->attempts, x->flaky ? "true" : "false");
		member_ms(b, "startMs", x->run_ns > t->start_ns ? x->run_ns - t->start_ns : 0);
		vx_buf_adds(b, ", ");
		member_ms(b, "wallMs", x->wall_ns);
		vx_buf_adds(b, ", ");
		member_ms(b, "cpuMs", x->cpu_ns);
		vx_buf_printf(b, ", \"peakBytes\": %llu", (unsigned long long)x->peak_bytes);
	}
	if (x->result == VX_R_HIT) {
		vx_buf_adds(b, ", ");
		member_ms(b, "savedMs", x->saved_ns);
	}
	vx_buf_addc(b, '}');
}

int vx_trace_write_summary(struct vx_trace *t, const char *path, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(SIZE_MAX);
	const uint32_t *chain;
	uint32_t n;
	bool first = true;

	vx_buf_adds(&b, "{\n  \"version\": 1,\n");
	began(t, &b);
	totals(t, &b);
	vx_trace_critical(t, &chain, &n);
	vx_buf_adds(&b, "  \"critical\": [");
	for (uint32_t k = 0; k < n; k++) {
		vx_buf_adds(&b, k ? ", " : "");
		trace_json(&b, t->in[chain[k]].id);
	}
	vx_buf_adds(&b, "],\n  \"tasks\": [\n");
	for (uint32_t i = 0; i < t->n; i++) {
		if (t->in[i].group)
			continue;
		vx_buf_adds(&b, first ? "" : ",\n");
		first = false;
		task(t, i, &b);
	}
	vx_buf_adds(&b, "\n  ]\n}\n");
	int r = trace_write(path, "--summarize", &b, err);
	vx_buf_free(&b);
	return r;
}
