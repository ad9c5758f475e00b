#include "trace_internal.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/text.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char *trace_result(uint8_t result)
{
	static const char *const names[] = {
		"unknown", "success", "hit", "failed", "skipped", "aborted", "not-started"};

	return result < sizeof names / sizeof *names ? names[result] : names[0];
}

/* NULL where the cache had no say. */
const char *trace_cache(const struct traced *t)
{
	static const char *const names[] = {[VX_C_MISS] = "miss",
		[VX_C_UP_TO_DATE] = "up-to-date",
		[VX_C_RESTORED] = "restored",
		[VX_C_NOCACHE] = "no-cache"};
	bool said = t->result == VX_R_SUCCESS || t->result == VX_R_FAILED || t->result == VX_R_HIT;

	return said && t->cache < sizeof names / sizeof *names ? names[t->cache] : NULL;
}

void trace_json(struct vx_buf *b, const char *text)
{
	vx_text_json(b, text, strlen(text), true);
}

int trace_write(const char *path, const char *what, const struct vx_buf *b, struct vx_err *err)
{
	int r = b->overflow ? -EFBIG
			    : vx_write_file_atomic(AT_FDCWD, path, vx_buf_str(b), b->len, 0666);

	return r < 0 ? vx_err_set(err, r, "%s: %s: %s", what, path, vx_strerror(r)) : 0;
}

/* ---- Chrome trace ---- */

#define TID(lane, row) ((uint32_t)(lane)*10000 + (row) + 1)

static void chrome_names(const struct vx_trace *t, struct vx_buf *b)
{
	static const char *const names[LANES] = {"slot", "restore", "save", "key"};

	vx_buf_adds(b,
		"{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"vx run\"}},\n"
		"{\"ph\":\"M\",\"pid\":1,\"tid\":0,\"name\":\"thread_name\",\"args\":{\"name\":\"vx\"}}");
	for (int lane = 0; lane < LANES; lane++)
		for (uint32_t row = 0; row < t->rows[lane].n; row++) {
			vx_buf_printf(b,
				",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_name\",\"args\":{\"name\":\"%s %u\"}}",
				TID(lane, row), names[lane], row + 1);
			vx_buf_printf(b,
				",\n{\"ph\":\"M\",\"pid\":1,\"tid\":%u,\"name\":\"thread_sort_index\",\"args\":{\"sort_index\":%u}}",
				TID(lane, row), TID(lane, row));
		}
}

/* Microseconds with their fraction, from the run's start. */
static void chrome_time(
	const struct vx_trace *t, struct vx_buf *b, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t at = start_ns > t->start_ns ? start_ns - t->start_ns : 0,
		 took = end_ns > start_ns ? end_ns - start_ns : 0;

	vx_buf_printf(b, ",\"ts\":%llu.%03u,\"dur\":%llu.%03u", (unsigned long long)(at / 1000),
		(unsigned)(at % 1000), (unsigned long long)(took / 1000), (unsigned)(took % 1000));
}

static void chrome_span(const struct vx_trace *t, struct vx_buf *b, const struct span *s)
{
	const struct traced *x = &t->task[s->task];

	vx_buf_printf(b, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%u,\"cat\":\"%s\",\"name\":",
		TID(s->lane, s->row), trace_lane_names[s->lane]);
	trace_json(b, t->in[s->task].id);
	chrome_time(t, b, s->start_ns, s->end_ns);
	vx_buf_printf(b, ",\"args\":{\"ok\":%s", s->ok ? "true" : "false");
	if (s->lane == LANE_RUN)
		vx_buf_printf(b,
			",\"attempt\":%u,\"result\":\"%s\",\"cpu_ms\":%llu,\"peak_bytes\":%llu",
			s->attempt, trace_result(x->result),
			(unsigned long long)(x->cpu_ns / 1000000),
			(unsigned long long)x->peak_bytes);
	if (trace_cache(x))
		vx_buf_printf(b, ",\"cache\":\"%s\"", trace_cache(x));
	if (x->status) {
		vx_buf_adds(b, ",\"status\":");
		trace_json(b, x->status);
	}
	vx_buf_adds(b, "}}");
}

int vx_trace_write_chrome(struct vx_trace *t, const char *path, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(SIZE_MAX);

	vx_buf_adds(&b, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n");
	chrome_names(t, &b);
	for (uint32_t k = 0; k < t->n_phases; k++) {
		vx_buf_printf(&b,
			",\n{\"ph\":\"X\",\"pid\":1,\"tid\":0,\"cat\":\"vx\",\"name\":\"%s\"",
			t->phases[k].name);
		chrome_time(t, &b, t->phases[k].start_ns, t->phases[k].end_ns);
		vx_buf_addc(&b, '}');
	}
	for (uint32_t k = 0; k < t->n_spans; k++)
		chrome_span(t, &b, &t->spans[k]);
	vx_buf_adds(&b, "\n]}\n");
	int r = trace_write(path, "--profile", &b, err);
	vx_buf_free(&b);
	return r;
}

/* ---- Markdown ---- */

/* Text in a table cell: no pipes, no markup. */
static void cell(struct vx_buf *b, const char *text)
{
	struct vx_buf shown = VX_BUF(SIZE_MAX / 4);

	vx_text_add(&shown, text, strlen(text));
	for (const char *s = vx_buf_str(&shown); *s; s++) {
		if (strchr("|\\`*_<>[]#&~", *s))
			vx_buf_addc(b, '\\');
		vx_buf_addc(b, *s);
	}
	vx_buf_free(&shown);
}

static void markdown_rows(const struct vx_trace *t, struct vx_buf *b, const char *heading,
	const uint8_t *results, size_t n_results, uint32_t max)
{
	uint32_t shown = 0, all = 0;
	char time[32];

	for (uint32_t i = 0; i < t->n; i++) {
		const struct traced *x = &t->task[i];

		if (!x->ended || !memchr(results, x->result, n_results))
			continue;
		if (!all++)
			vx_buf_printf(b,
				"\n### %s\n\n| task | status | cache | time |\n|---|---|---|---:|\n",
				heading);
		if (shown == max)
			continue;
		shown++;
		vx_buf_adds(b, "| ");
		cell(b, t->in[i].id);
		vx_buf_adds(b, " | ");
		cell(b, x->status ? x->status : x->flaky ? "ok, flaky" : "ok");
		vx_buf_printf(b, " | %s | %s |\n", trace_cache(x) ? trace_cache(x) : "",
			vx_fmt_ns(x->wall_ns, time, sizeof time));
	}
	if (all > shown)
		vx_buf_printf(b, "\n... and %u more\n", all - shown);
}

int vx_trace_write_markdown(
	struct vx_trace *t, const char *path, const char *title, struct vx_err *err)
{
	static const uint8_t bad[] = {VX_R_FAILED, VX_R_SKIPPED}, ran[] = {VX_R_SUCCESS};
	const struct vx_core_counts *c = &t->end.counts;
	struct vx_buf b = VX_BUF(SIZE_MAX);
	char wall[32], saved[32], critical[32];

	vx_buf_adds(&b, "## ");
	cell(&b, title);
	vx_buf_printf(&b,
		"\n\n%s: %u task%s, %u executed, %u from the cache, %u failed, %u skipped; %s",
		t->end.code ? "**failed**" : "passed", c->total, c->total == 1 ? "" : "s",
		c->executed, c->hits, c->failed, c->skipped,
		vx_fmt_ns(t->end.wall_ns, wall, sizeof wall));
	if (t->end.saved_ns)
		vx_buf_printf(&b, ", %s saved", vx_fmt_ns(t->end.saved_ns, saved, sizeof saved));
	vx_buf_printf(&b, ", critical path %s\n",
		vx_fmt_ns(vx_trace_critical(t, NULL, NULL), critical, sizeof critical));
	markdown_rows(t, &b, "Failed", bad, sizeof bad, 200);
	markdown_rows(t, &b, "Executed", ran, sizeof ran, 500);
	int r = trace_write(path, "--report=markdown", &b, err);
	vx_buf_free(&b);
	return r;
}
