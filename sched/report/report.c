#include "internal.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#define REGION_MS 30 /* between two drawings, at least */
#define REGION_FIRST_MS 100
#define REGION_IDLE_MS 100 /* while nothing happens, for the clocks */
#define PENDING_MS 10      /* a reader that is slow is asked again */

/* ---- what kind of place is this? ---- */

static const char *env_get(const struct vx_report_opts *o, const char *name)
{
	size_t n = strlen(name);

	for (const char *const *e = o->env; e && *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

static bool env_on(const struct vx_report_opts *o, const char *name)
{
	const char *v = env_get(o, name);

	return v && *v && strcmp(v, "0") != 0 && strcasecmp(v, "false") != 0;
}

static void look_around(struct vx_report *r)
{
	const struct vx_report_opts *o = &r->o;
	const char *no_color = env_get(o, "NO_COLOR"), *term = env_get(o, "TERM");
	bool tty = isatty(o->out_fd) == 1, dumb = !term || !*term || !strcmp(term, "dumb");

	r->mode = env_on(o, "GITHUB_ACTIONS") ? MODE_GITHUB
		  : env_on(o, "CI")           ? MODE_CI
		  : tty                       ? MODE_TERMINAL
					      : MODE_PLAIN;
	r->color = env_get(o, "FORCE_COLOR") && *env_get(o, "FORCE_COLOR")
			   ? env_on(o, "FORCE_COLOR")
			   : tty && !dumb;
	if (no_color && *no_color)
		r->color = false;
	r->ascii = !vx_text_locale(o->env);
	r->region = r->mode == MODE_TERMINAL && !dumb;
}

struct vx_report *vx_report_new(const struct vx_report_opts *o)
{
	struct vx_report *r = vx_xcalloc(1, sizeof *r);

	r->o = *o;
	out_init(&r->out, o->out_fd);
	r->out.keep = true;
	look_around(r);
	r->named = o->broad; /* there a stream is one among others from the start */
	return r;
}

void vx_report_free(struct vx_report *r)
{
	if (!r)
		return;
	for (uint32_t k = 0; k < r->n_live; k++)
		vx_buf_free(&r->live[k].line);
	for (uint32_t k = 0; k < r->n_failures; k++) {
		free(r->failures[k].status);
		free(r->failures[k].note);
	}
	free(r->live);
	free(r->failures);
	out_free(&r->out);
	free(r);
}

/* ---- helpers ---- */

bool piece(struct vx_report *r, size_t bytes)
{
	if (!out_begin(&r->out, bytes + 256))
		return false;
	region_erase(r);
	stream_break_line(r);
	r->dirty = true;
	return true;
}

/* Once there are live rows everything is written by the tick. */
static void flush(struct vx_report *r)
{
	if (!r->region || !r->drawn_ns || r->out.buf.len - r->out.done > (1U << 20))
		out_flush(&r->out);
}

static struct live *find(struct vx_report *r, uint32_t task)
{
	for (uint32_t k = 0; k < r->n_live; k++)
		if (r->live[k].task == task)
			return &r->live[k];
	return NULL;
}

enum vx_output_logs logs_of(const struct vx_report *r, uint32_t task)
{
	return r->o.logs == VX_LOGS_DEFAULT && r->o.task_logs
		       ? (enum vx_output_logs)r->o.task_logs[task]
		       : r->o.logs;
}

static bool grouped(const struct vx_report *r, uint32_t task, bool hit)
{
	enum vx_output_logs logs = logs_of(r, task);

	return logs == VX_LOGS_FULL || (logs == VX_LOGS_NEW && !hit) ||
	       (logs == VX_LOGS_DEFAULT && (r->mode == MODE_CI || r->mode == MODE_GITHUB));
}

/* A focused run streams what was requested. Servers that were requested stream everywhere: they
 * have no end at which a group could be shown. */
static bool to_stream(const struct vx_report *r, uint32_t task, bool requested, bool persistent)
{
	enum vx_output_logs logs = logs_of(r, task);

	if (!requested || (logs != VX_LOGS_DEFAULT && logs != VX_LOGS_FULL && logs != VX_LOGS_NEW))
		return false;
	return persistent || (!r->o.broad && r->mode != MODE_CI && r->mode != MODE_GITHUB);
}

/* ---- what happens ---- */

void vx_report_started(struct vx_report *r, uint32_t task, const char *id, bool requested,
	bool persistent, uint16_t attempt)
{
	struct live *t = find(r, task);

	(void)attempt;
	if (!t) {
		if (r->n_live == r->cap_live) {
			r->cap_live = r->cap_live ? 2 * r->cap_live : 16;
			r->live = vx_xrealloc(r->live, r->cap_live * sizeof *r->live);
		}
		t = &r->live[r->n_live++];
		*t = (struct live){
			.task = task, .id = id, .requested = requested, .persistent = persistent};
		if (to_stream(r, task, requested, persistent))
			stream_begin(r, t);
	}
	r->n_exited -= t->exited;
	t->exited = false;
	t->start_ns = vx_now_ns();
	r->dirty = true;
	if (r->o.verbosity >= 3 && !t->streams && piece(r, strlen(id) + 64))
		text(r, "  started %s\n", id);
	flush(r);
}

void vx_report_output(struct vx_report *r, uint32_t task, int stream, const void *p, size_t n)
{
	struct live *t = find(r, task);

	(void)stream;
	if (!t || !t->streams || !n)
		return;
	stream_bytes(r, t, p, n);
	flush(r);
}

void vx_report_retry(struct vx_report *r, uint32_t task, uint16_t attempt, const char *why)
{
	struct live *t = find(r, task);

	if (!t || logs_of(r, task) == VX_LOGS_NONE || !piece(r, strlen(t->id) + 512))
		return;
	paint(r, YELLOW, "%s", r->ascii ? "~" : "↻");
	text(r, " attempt %u of %s: %s; running it again\n", attempt, t->id, why ? why : "failed");
	flush(r);
}

void vx_report_ready(struct vx_report *r, uint32_t task)
{
	struct live *t = find(r, task);

	if (!t || t->ready)
		return;
	t->ready = true;
	r->dirty = true;
}

void vx_report_exited(struct vx_report *r, uint32_t task)
{
	struct live *t = find(r, task);

	if (!t || t->exited)
		return;
	t->exited = true;
	r->n_exited++;
	r->dirty = true;
}

static void keep_failure(struct vx_report *r, const struct vx_task_end *e)
{
	if (r->n_failures == r->cap_failures) {
		r->cap_failures = r->cap_failures ? 2 * r->cap_failures : 16;
		r->failures = vx_xrealloc(r->failures, r->cap_failures * sizeof *r->failures);
	}
	r->failures[r->n_failures++] =
		(struct failure){e->id, e->status ? vx_xstrdup(e->status) : NULL, e->wall_ns,
			e->log, e->note ? vx_xstrdup(e->note) : NULL};
}

/* Returns whether the task's output has been streamed. */
static bool leave_live(struct vx_report *r, uint32_t task)
{
	struct live *t = find(r, task);
	bool streamed = t && t->streams;

	if (!t)
		return false;
	stream_end(r, t);
	r->n_exited -= t->exited;
	memmove(t, t + 1, (size_t)(r->live + r->n_live - (t + 1)) * sizeof *t);
	r->n_live--;
	r->dirty = true;
	return streamed;
}

static void stream_hit(struct vx_report *r, const struct vx_task_end *e)
{
	if (!e->stored_bytes || !piece(r, log_bytes(NULL, e->stored_bytes)))
		return;
	region_off(r);
	log_write(r, NULL, e->stored, e->stored_bytes, NULL);
}

void vx_report_ended(struct vx_report *r, const struct vx_task_end *e)
{
	bool streamed = leave_live(r, e->task), failed = e->result == VX_R_FAILED,
	     hit = e->result == VX_R_HIT;
	enum vx_output_logs logs = logs_of(r, e->task);
	bool key = logs == VX_LOGS_HASH || (logs == VX_LOGS_NEW && hit);

	r->n_ended++;
	if (failed && r->n_failed < VX_ARRAY_LEN(r->failed))
		r->failed[r->n_failed] = e->id;
	r->n_failed += failed;
	r->n_unrun += failed && e->unrun;
	if (e->result == VX_R_SUCCESS || failed)
		r->work_ns += e->wall_ns;
	if (e->result == VX_R_ABORTED || e->result == VX_R_NOT_STARTED ||
		(logs == VX_LOGS_NONE && !failed)) {
		flush(r);
		return;
	}
	if (hit && logs != VX_LOGS_NEW && to_stream(r, e->task, e->requested, false)) {
		stream_hit(r, e);
		streamed = true;
	}
	if (grouped(r, e->task, hit) && !streamed) {
		frame_ended(r, e);
	} else if (!hit || key || streamed || r->o.verbosity >= 2) {
		struct vx_task_end row = *e;
		char status[256];
		if (failed && !streamed && logs != VX_LOGS_NONE && !key) {
			keep_failure(r, e);
			/* the reasons stand in its frame */
			row.status = e->status ? brief(e->status, status, sizeof status) : NULL;
		}
		if (piece(r, 8192 + (e->note ? strlen(e->note) * 3 : 0))) {
			row_write(r, &row, key);
			note_write(r, &row);
		}
	}
	flush(r);
}

static void warn(struct vx_report *r, bool red, const char *fmt, va_list ap)
{
	struct vx_buf b = VX_BUF(SIZE_MAX / 4);
	struct out err;

	r->warned = true;
	vx_buf_adds(&b, red ? "\033[" RED "m" : "");
	vx_text_vprintf(&b, fmt, ap);
	vx_buf_adds(&b, red ? "\033[0m\n" : "\n");
	if (r->mode == MODE_TERMINAL && piece(r, 16))
		/* the line must not land in the live rows, nor in the middle of another */
		out_flush(&r->out);
	out_init(&err, r->o.err_fd);
	if (out_begin(&err, b.len))
		vx_buf_add(&err.buf, vx_buf_str(&b), b.len);
	out_drain(&err);
	out_free(&err);
	vx_buf_free(&b);
}

void vx_report_warn(struct vx_report *r, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	warn(r, false, fmt, ap);
	va_end(ap);
}

void vx_report_alarm(struct vx_report *r, const char *fmt, ...)
{
	const char *no_color = env_get(&r->o, "NO_COLOR");
	va_list ap;

	va_start(ap, fmt);
	warn(r, isatty(r->o.err_fd) == 1 && !(no_color && *no_color), fmt, ap);
	va_end(ap);
}

bool vx_report_transcript(const struct vx_report *r, struct vx_buf *out)
{
	const struct out *o = &r->out;
	if (r->warned || r->drawn_ns || o->dead || o->left_out_bytes || o->kept.overflow)
		return false;
	vx_buf_add(out, vx_buf_str(&o->kept), o->kept.len);
	if (o->buf.len > o->done)
		vx_buf_add(out, o->buf.data + o->done, o->buf.len - o->done);
	return !out->overflow;
}

void vx_report_replay(struct vx_report *r, const char *p, size_t n)
{
	if (!n || !piece(r, n))
		return;
	task_bytes(r, p, n);
	r->mid_line = p[n - 1] != '\n';
	flush(r);
}

void vx_report_counts(struct vx_report *r, const struct vx_core_counts *c)
{
	r->counts = *c;
}

void vx_report_interrupted(struct vx_report *r)
{
	region_off(r);
	out_flush(&r->out);
}

/* When the live rows are due, from now. A run that is over at once never shows any. */
static uint64_t due_ms(const struct vx_report *r, uint64_t now_ns)
{
	uint64_t last_ns = r->drawn_ns ? r->drawn_ns : r->o.start_ns,
		 every = !r->drawn_ns ? REGION_FIRST_MS
			 : r->dirty   ? REGION_MS
				      : REGION_IDLE_MS;
	uint64_t since_ms = now_ns > last_ns ? (now_ns - last_ns) / 1000000 : 0;

	return since_ms >= every ? 0 : every - since_ms;
}

void vx_report_tick(struct vx_report *r, uint64_t now_ns)
{
	if (r->region && !due_ms(r, now_ns))
		region_draw(r, now_ns);
	else if (r->region && r->drawn_ns && r->dirty)
		return; /* its time will come */
	out_flush(&r->out);
}

int vx_report_next_tick_ms(const struct vx_report *r, uint64_t now_ns)
{
	if (r->region)
		return (int)due_ms(r, now_ns);
	return out_pending(&r->out) ? PENDING_MS : -1;
}

void vx_report_finish(struct vx_report *r, const struct vx_run_end *e)
{
	region_off(r);
	frame_failures(r);
	footer_write(r, e);
	out_drain(&r->out);
}
