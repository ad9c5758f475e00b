#include "internal.h"

#include "vx/limits.h"
#include "vx/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

struct writer {
	struct vx_report *r;
	char last;
	bool escapes;
};

static void write_chunk(void *arg, int stream, const void *p, size_t n)
{
	struct writer *w = arg;

	(void)stream;
	task_bytes(w->r, p, n);
	w->last = ((const char *)p)[n - 1];
	w->escapes |= memchr(p, '\033', n) != NULL;
}

/* The output as it was written, ended by a newline, and colours that it left on ended too. */
void log_write(struct vx_report *r, const struct vx_tasklog *log, const void *stored,
	size_t stored_bytes, const char *end_mark)
{
	struct writer w = {r, '\n', false};

	if (log)
		vx_tasklog_each(log, write_chunk, &w);
	else if (stored_bytes && vx_tasklog_replay(stored, stored_bytes, write_chunk, &w) < 0)
		text(r, "[vx: the stored output is damaged]");
	if (w.escapes && (r->color || r->mode == MODE_TERMINAL))
		control(r, "\033[0m");
	if (w.last != '\n')
		text(r, "\n");
	if (end_mark)
		control(r, "%s", end_mark);
}

/* At most; a log in memory is bounded by what is kept of one. */
static void count_chunk(void *arg, int stream, const void *p, size_t n)
{
	(void)stream;
	(void)p;
	*(size_t *)arg += n;
}

size_t log_bytes(const struct vx_tasklog *log, size_t stored_bytes)
{
	size_t n = stored_bytes + 200;

	if (log)
		vx_tasklog_each(log, count_chunk, &n);
	return n;
}

/* ---- GitHub Actions:
 * https://docs.github.com/actions/reference/workflows-and-actions/workflow-commands ---- */

static void escape(struct vx_report *r, const char *what, bool property)
{
	struct vx_buf shown = VX_BUF(SIZE_MAX / 4);

	vx_text_add(&shown, what, strlen(what));
	for (const char *s = vx_buf_str(&shown); *s; s++) {
		if (*s == '%' || (property && (*s == ':' || *s == ',')))
			control(r, "%%%02X", (unsigned)(unsigned char)*s);
		else
			control(r, "%c", *s);
	}
	vx_buf_free(&shown);
}

/* What a task prints must not be taken for commands. The fence's word is random, so that no output
 * can end it. */
static void fenced_log(
	struct vx_report *r, const struct vx_tasklog *log, const void *stored, size_t stored_bytes)
{
	uint64_t word[2] = {0, 0};
	char fence[64], mark[80];

	if (getrandom(word, sizeof word, 0) < 0)
		/* cannot happen since Linux 5.6; unguessable enough */
		word[0] = (uint64_t)(uintptr_t)r;
	snprintf(fence, sizeof fence, "vx-%016llx%016llx", (unsigned long long)word[0],
		(unsigned long long)word[1]);
	text(r, "::stop-commands::%s\n", fence);
	snprintf(mark, sizeof mark, "::%s::\n", fence);
	log_write(r, log, stored, stored_bytes, mark);
}

static void github(struct vx_report *r, const struct vx_task_end *e, bool output)
{
	char time[32];
	bool failed = e->result == VX_R_FAILED;

	if (failed) {
		text(r, "::error title=");
		escape(r, e->id, true);
		text(r, "::");
		escape(r, e->id, false);
		text(r, " failed: ");
		escape(r, e->status ? e->status : "failed", false);
		text(r, "\n");
	} else if (output) {
		text(r, "::group::");
		escape(r, e->id, false);
		text(r, " (%s)\n", vx_fmt_ns(e->wall_ns, time, sizeof time));
	}
	if (output)
		fenced_log(r, e->log, e->stored, e->stored_bytes);
	if (output && !failed)
		text(r, "::endgroup::\n");
}

/* ---- everywhere else ---- */

static void rule(struct vx_report *r, const char *id, const char *status, uint64_t wall_ns)
{
	char time[32], line[256];

	paint(r, status ? RED : BOLD, "%s %s%s%s", r->ascii ? "---" : "───", id, status ? ": " : "",
		status ? brief(status, line, sizeof line) : "");
	if (status)
		text(r, " after %s", vx_fmt_ns(wall_ns, time, sizeof time));
	text(r, " %s\n", r->ascii ? "---" : "───");
}

/* A task without output has a row and no frame. */
void frame_ended(struct vx_report *r, const struct vx_task_end *e)
{
	bool output = e->log ? !vx_tasklog_empty(e->log) : e->stored_bytes > 0;

	if (!piece(r, log_bytes(e->log, e->stored_bytes) + 8192 +
			      (e->note ? strlen(e->note) * 3 : 0)))
		return;
	if (r->mode == MODE_GITHUB) {
		github(r, e, output);
	} else if (output) {
		rule(r, e->id, e->result == VX_R_FAILED ? e->status : NULL, e->wall_ns);
		log_write(r, e->log, e->stored, e->stored_bytes, NULL);
	}
	row_write(r, e, false);
	note_write(r, e);
}

void frame_failures(struct vx_report *r)
{
	for (uint32_t k = 0; k < r->n_failures; k++) {
		struct failure *f = &r->failures[k];

		if (!piece(r, log_bytes(f->log, 0) + 8192 + (f->note ? strlen(f->note) * 3 : 0)))
			continue;
		text(r, "\n");
		rule(r, f->id, f->status ? f->status : "failed", f->wall_ns);
		reason_write(r, f->status);
		if (f->log && !vx_tasklog_empty(f->log))
			log_write(r, f->log, NULL, 0, NULL);
		else if (!has_reasons(f->status))
			text(r, "(it printed nothing)\n");
		struct vx_task_end e = {.note = f->note, .result = VX_R_SKIPPED};
		note_write(r, &e);
		out_flush(&r->out);
	}
}
