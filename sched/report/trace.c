#include "trace_internal.h"

#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/vfs.h>

#define NONE UINT32_MAX
/* but for the slots: hits that are checked all at once could be any number */
#define MAX_LANE_ROWS 64U

const char *const trace_lane_names[LANES] = {"run", "restore", "save", "key"};

struct vx_trace *vx_trace_new(
	const struct vx_trace_task *tasks, uint32_t n, uint32_t slots, uint64_t start_ns)
{
	struct vx_trace *t = vx_xcalloc(1, sizeof *t);

	t->in = vx_arena_dup(&t->arena, tasks, n * sizeof *tasks);
	t->task = vx_xcalloc((size_t)n + 1, sizeof *t->task);
	t->n = n;
	t->slots = slots;
	t->start_ns = t->end_ns = start_ns;
	return t;
}

void vx_trace_free(struct vx_trace *t)
{
	if (!t)
		return;
	if (t->has_events) {
		out_free(&t->events);
		if (t->close_events)
			vx_close(t->events.fd);
	}
	for (int k = 0; k < LANES; k++)
		free(t->rows[k].taken);
	free(t->spans);
	free(t->task);
	free(t->critical);
	vx_arena_free(&t->arena);
	free(t);
}

/* ---- spans ---- */

static uint32_t take_row(struct rows *r, uint32_t max)
{
	uint32_t k = 0;

	while (k < r->n && r->taken[k])
		k++;
	if (k == max) {
		k--; /* the last one holds what there is no room for */
	} else if (k == r->n) {
		r->taken = vx_xrealloc(r->taken, ++r->n);
	}
	r->taken[k] = 1;
	return k;
}

static void open_span(
	struct vx_trace *t, uint32_t task, enum lane lane, uint16_t attempt, uint64_t now_ns)
{
	if (t->task[task].open[lane])
		return;
	if (t->n_spans == t->cap_spans) {
		t->cap_spans = t->cap_spans ? 2 * t->cap_spans : 256;
		t->spans = vx_xrealloc(t->spans, t->cap_spans * sizeof *t->spans);
	}
	t->spans[t->n_spans++] = (struct span){now_ns, 0, task,
		take_row(&t->rows[lane], lane == LANE_RUN ? VX_MAX_SLOTS : MAX_LANE_ROWS), attempt,
		(uint8_t)lane, true};
	t->task[task].open[lane] = t->n_spans;
}

static void close_span(struct vx_trace *t, uint32_t task, enum lane lane, bool ok, uint64_t now_ns)
{
	uint32_t k = t->task[task].open[lane];

	if (!k)
		return;
	struct span *s = &t->spans[k - 1];
	s->end_ns = now_ns;
	s->ok = ok;
	t->rows[lane].taken[s->row] = 0;
	t->task[task].open[lane] = 0;
	if (lane != LANE_SAVE)
		t->task[task].ns += now_ns - s->start_ns;
}

/* ---- NDJSON ---- */

static bool proc_link(const char *path)
{
	VX_CLEANUP_FD int fd = vx_open(AT_FDCWD, path, O_PATH | O_NOFOLLOW, 0);
	struct statfs fs;

	return fd >= 0 && fstatfs(fd, &fs) == 0 && fs.f_type == PROC_SUPER_MAGIC;
}

int vx_trace_events(struct vx_trace *t, const char *path, struct vx_err *err)
{
	bool is_stdout = !strcmp(path, "-");
	int fd =
		is_stdout
			? 1
			: vx_open(AT_FDCWD, path,
				  O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY,
				  0666);

	/* A link may be a repository's, and lead to any file of the user's. Those of /proc are the
	 * kernel's: a shell names a pipe to a command so. */
	if (fd == -ELOOP && proc_link(path))
		fd = vx_open(AT_FDCWD, path, O_WRONLY | O_TRUNC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ELOOP) {
		vx_err_set(err, fd, "--events: %s is a symbolic link", path);
		return vx_err_fix(
			err, "remove it, name what it leads to, or - for standard output");
	}
	if (fd == -ENXIO) {
		vx_err_set(err, fd, "--events: nobody reads the FIFO %s", path);
		return vx_err_fix(err, "start its reader first");
	}
	if (fd < 0) {
		vx_err_set(err, fd, "--events: %s: %s", path, vx_strerror(fd));
		return vx_err_fix(err,
			"name a file in a directory that is there and writable, or - for standard output");
	}
	out_init(&t->events, fd);
	t->has_events = true;
	t->close_events = !is_stdout;
	t->events_path = vx_arena_strdup(&t->arena, path);
	if (out_begin(&t->events, 256))
		vx_buf_printf(&t->events.buf,
			"{\"ns\":%llu,\"event\":\"begin\",\"wall_ns\":%llu,\"tasks\":%u,\"slots\":%u}\n",
			(unsigned long long)vx_now_ns(), (unsigned long long)vx_wall_ns(), t->n,
			t->slots);
	return 0;
}

/* Begins a line; NULL when there is no sink. The caller adds members and line_end. */
static struct vx_buf *line(struct vx_trace *t, uint64_t now_ns, const char *event, uint32_t task)
{
	if (!t->has_events ||
		!out_begin(&t->events, 1024 + (task < t->n ? 6 * strlen(t->in[task].id) : 0)))
		return NULL;
	vx_buf_printf(
		&t->events.buf, "{\"ns\":%llu,\"event\":\"%s\"", (unsigned long long)now_ns, event);
	if (task < t->n) {
		vx_buf_adds(&t->events.buf, ",\"task\":");
		trace_json(&t->events.buf, t->in[task].id);
	}
	return &t->events.buf;
}

static void line_end(struct vx_buf *b)
{
	if (b)
		vx_buf_adds(b, "}\n");
}

void vx_trace_flush(struct vx_trace *t)
{
	if (t && t->has_events)
		out_flush(&t->events);
}

/* ---- what happens ---- */

void vx_trace_decision(struct vx_trace *t, uint64_t now_ns, const struct vx_core_decision *d)
{
	static const char *const names[] = {
		NULL, "key", "restore", "run", "save", "stop", "retry", NULL, NULL};
	static const uint8_t lanes[] = {[VX_DO_KEY] = LANE_KEY,
		[VX_DO_RESTORE] = LANE_RESTORE,
		[VX_DO_RUN] = LANE_RUN,
		[VX_DO_SAVE] = LANE_SAVE};

	if (!t || d->what == VX_DO_DONE || d->what == VX_DO_END || d->task >= t->n)
		/* those are told, with more to say, by vx_trace_ended and vx_trace_finish */
		return;
	if (d->what <= VX_DO_SAVE)
		open_span(t, d->task, (enum lane)lanes[d->what], d->attempt, now_ns);
	if (d->what == VX_DO_RUN)
		t->task[d->task].attempts = d->attempt;
	struct vx_buf *b = line(t, now_ns, names[d->what], d->task);
	if (b && d->attempt)
		vx_buf_printf(b, ",\"attempt\":%u", d->attempt);
	if (b && d->what == VX_DO_STOP)
		vx_buf_printf(b, ",\"signal\":\"%s\"", vx_signal_name(d->signal));
	if (b && d->what == VX_DO_RUN && d->unsaved)
		vx_buf_adds(b, ",\"unsaved\":true");
	line_end(b);
}

static void note_event(struct vx_trace *t, uint64_t now_ns, const struct vx_core_event *e)
{
	switch (e->kind) {
	case VX_EV_KEYED:
		close_span(t, e->task, LANE_KEY, e->verdict != VX_V_FAILED, now_ns);
		break;
	case VX_EV_RESTORED:
		close_span(t, e->task, LANE_RESTORE, e->ok, now_ns);
		break;
	case VX_EV_EXITED:
	case VX_EV_LOST:
		close_span(t, e->task, LANE_RUN, e->kind == VX_EV_EXITED && e->ok, now_ns);
		break;
	case VX_EV_SETTLED:
		close_span(t, e->task, LANE_SAVE, e->ok, now_ns);
		break;
	default:
		break;
	}
}

void vx_trace_event(struct vx_trace *t, uint64_t now_ns, const struct vx_core_event *e)
{
	static const char *const names[] = {NULL, "keyed", "restored", "started", "ready", "exited",
		"lost", "captured", "settled", "interrupt", "grace"};
	static const char *const verdicts[] = {"late", "hit", "miss", "no-cache", "failed"};
	bool of_task = e->kind != VX_EV_INTERRUPT &&
		       !(e->kind == VX_EV_GRACE_OVER && e->task == VX_CORE_ALL);

	if (!t || (of_task && e->task >= t->n))
		return;
	if (of_task)
		note_event(t, now_ns, e);
	struct vx_buf *b = line(t, now_ns, names[e->kind], of_task ? e->task : NONE);
	if (!b)
		return;
	if (e->kind == VX_EV_KEYED)
		vx_buf_printf(b, ",\"verdict\":\"%s\"", verdicts[e->verdict]);
	if (e->kind == VX_EV_RESTORED || e->kind == VX_EV_EXITED || e->kind == VX_EV_SETTLED)
		vx_buf_printf(b, ",\"ok\":%s", e->ok ? "true" : "false");
	if (e->kind == VX_EV_INTERRUPT)
		vx_buf_printf(b, ",\"signal\":\"%s\"", vx_signal_name(e->signal));
	line_end(b);
}

void vx_trace_ended(struct vx_trace *t, uint64_t now_ns, const struct vx_task_end *e)
{
	if (!t || e->task >= t->n)
		return;
	struct traced *x = &t->task[e->task];
	x->wall_ns = e->wall_ns;
	x->cpu_ns = e->cpu_ns;
	x->peak_bytes = e->peak_bytes;
	x->saved_ns = e->saved_ns;
	x->result = (uint8_t)e->result;
	x->cache = (uint8_t)e->cache;
	x->flaky = e->flaky;
	x->ended = true;
	x->status = e->status ? vx_arena_strdup(&t->arena, e->status) : NULL;
	x->key = e->key_hex ? vx_arena_strdup(&t->arena, e->key_hex) : NULL;
	struct vx_buf *b = line(t, now_ns, "done", e->task);
	if (!b)
		return;
	vx_buf_printf(b, ",\"result\":\"%s\"", trace_result(x->result));
	if (trace_cache(x))
		vx_buf_printf(b, ",\"cache\":\"%s\"", trace_cache(x));
	if (x->key)
		vx_buf_printf(b, ",\"hash\":\"%s\"", x->key);
	if (x->attempts)
		vx_buf_printf(b,
			",\"attempts\":%u,\"wall_ns\":%llu,\"cpu_ns\":%llu,\"peak_bytes\":%llu",
			x->attempts, (unsigned long long)x->wall_ns, (unsigned long long)x->cpu_ns,
			(unsigned long long)x->peak_bytes);
	if (x->flaky)
		vx_buf_adds(b, ",\"flaky\":true");
	if (x->status && out_begin(&t->events, 6 * strlen(x->status))) {
		vx_buf_adds(b, ",\"status\":");
		trace_json(b, x->status);
	}
	line_end(b);
}

void vx_trace_phase(struct vx_trace *t, const char *name, uint64_t start_ns, uint64_t end_ns)
{
	if (!t)
		return;
	if (t->n_phases < VX_ARRAY_LEN(t->phases))
		t->phases[t->n_phases++] = (struct phase){name, start_ns, end_ns};
	struct vx_buf *b = line(t, end_ns, "phase", NONE);
	if (b)
		vx_buf_printf(b, ",\"name\":\"%s\",\"start_ns\":%llu", name,
			(unsigned long long)start_ns);
	line_end(b);
}

int vx_trace_finish(
	struct vx_trace *t, uint64_t now_ns, const struct vx_run_end *e, struct vx_err *err)
{
	if (!t)
		return 0;
	t->end = *e;
	t->end_ns = now_ns;
	t->finished = true;
	for (uint32_t k = 0; k < t->n_spans;
		k++) /* nothing is open after a run that ended in order */
		if (!t->spans[k].end_ns)
			close_span(t, t->spans[k].task, (enum lane)t->spans[k].lane, false, now_ns);
	struct vx_buf *b = line(t, now_ns, "end", NONE);
	if (b)
		vx_buf_printf(b, ",\"code\":%d", e->code);
	line_end(b);
	if (!t->has_events)
		return 0;
	out_drain(&t->events);
	bool bad = t->events.dead || t->events.left_out_bytes || out_pending(&t->events);
	out_free(&t->events);
	if (t->close_events)
		vx_close(t->events.fd);
	t->has_events = false;
	return bad ? vx_err_set(err, -EIO, "--events: not everything could be written to %s",
			     t->events_path)
		   : 0;
}

/* ---- the longest chain ---- */

/* Tasks in an order in which upstream comes first, by Kahn's algorithm, and for each the upstream
 * task that its longest chain comes through. */
static void longest_chains(const struct vx_trace *t, uint32_t *order, uint32_t *via, uint64_t *sum)
{
	uint32_t *left = vx_xcalloc((size_t)t->n + 1, sizeof *left),
		 *first = vx_xcalloc((size_t)t->n + 2, sizeof *first), *out, n = 0, seen = 0;

	for (uint32_t i = 0; i < t->n; i++)
		for (uint32_t k = 0; k < t->in[i].n_deps; k++)
			first[t->in[i].deps[k] + 2]++;
	for (uint32_t i = 2; i <= t->n + 1; i++)
		first[i] += first[i - 1];
	out = vx_xcalloc((size_t)first[t->n + 1] + 1, sizeof *out);
	for (uint32_t i = 0; i < t->n; i++) {
		left[i] = t->in[i].n_deps;
		via[i] = NONE;
		if (!left[i])
			order[n++] = i;
		for (uint32_t k = 0; k < t->in[i].n_deps; k++)
			out[first[t->in[i].deps[k] + 1]++] = i;
	}
	while (seen < n) {
		uint32_t i = order[seen++];

		sum[i] += t->in[i].persistent ? 0 : t->task[i].ns;
		for (uint32_t k = first[i]; k < first[i + 1]; k++) {
			uint32_t x = out[k];

			if (sum[i] > sum[x]) {
				sum[x] = sum[i];
				via[x] = i;
			}
			if (!--left[x])
				order[n++] = x;
		}
	}
	free(left);
	free(first);
	free(out);
}

uint64_t vx_trace_critical(struct vx_trace *t, const uint32_t **ret_tasks, uint32_t *ret_n)
{
	if (!t->critical && t->n) {
		uint32_t *order = vx_xcalloc((size_t)t->n + 1, sizeof *order),
			 *via = vx_xcalloc((size_t)t->n + 1, sizeof *via), last = 0;
		uint64_t *sum = vx_xcalloc((size_t)t->n + 1, sizeof *sum);

		longest_chains(t, order, via, sum);
		for (uint32_t i = 1; i < t->n; i++)
			if (sum[i] > sum[last])
				last = i;
		t->critical_ns = sum[last];
		t->critical = vx_xcalloc((size_t)t->n + 1, sizeof *t->critical);
		for (uint32_t i = last; i != NONE; i = via[i])
			if (!t->in[i].group)
				t->critical[t->n_critical++] = i;
		for (uint32_t a = 0, b = t->n_critical; a + 1 < b; a++) {
			uint32_t x = t->critical[--b];

			t->critical[b] = t->critical[a];
			t->critical[a] = x;
		}
		free(order);
		free(via);
		free(sum);
	}
	if (ret_tasks)
		*ret_tasks = t->critical;
	if (ret_n)
		*ret_n = t->n_critical;
	return t->critical_ns;
}

uint64_t trace_ideal(struct vx_trace *t)
{
	uint64_t work_ns = 0, critical_ns = vx_trace_critical(t, NULL, NULL);

	for (uint32_t k = 0; k < t->n_spans; k++)
		if (t->spans[k].lane == LANE_RUN && !t->in[t->spans[k].task].persistent)
			work_ns += t->spans[k].end_ns - t->spans[k].start_ns;
	uint64_t spread_ns = t->slots ? work_ns / t->slots : 0;
	return critical_ns > spread_ns ? critical_ns : spread_ns;
}
