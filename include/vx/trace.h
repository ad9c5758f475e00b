/* What happened when: a recorder that the loop feeds, and the files made of it.
 *
 *   vx_trace_new       before the core; tasks and their edges
 *   vx_trace_events    opens the NDJSON sink of --events: from now on each call below adds lines
 *   vx_trace_decision  with every decision, as it is fetched          \
 *   vx_trace_event     with every event, before the core gets it       } the clock is the loop's,
 *                      CLOCK_MONOTONIC
 *   vx_trace_ended     beside vx_report_ended                          /
 *   vx_trace_phase     plan, keys, probe ...: what vx itself did
 *   vx_trace_flush     before the loop waits: lines reach a reader that follows the file
 *   vx_trace_finish    once, with the run's end; then the writers, each for a file of its own
 *
 * Rows of the timeline are made here: a run, restore, save or key takes the lowest free row of its
 * lane, so no row ever holds two spans at a time (but the last of 64 of a lane, of VX_MAX_SLOTS
 * slots). The recorder allocates as it grows, and only when a run asked for one: every function
 * takes NULL and does nothing. A sink that cannot be written never fails the run: it is dropped,
 * and vx_trace_finish tells why.
 *
 * NDJSON, one object a line: {"ns": monotonic, "event": name, "task": id, ...}. Events: begin (with
 * "wall_ns", the wall clock at that moment), phase, key, keyed, restore, restored, run, started,
 * ready, exited, lost, retry, save, captured, settled, stop, done, interrupt, grace, end. Fields:
 * docs/events.md. Chrome trace: the JSON Array/Object format of the Trace Event Format document;
 * chrome://tracing, Perfetto and speedscope read it. HTML: one page, nothing fetched, made for
 * 10,000 tasks. Markdown: for a pull request or a CI summary. */
#ifndef VX_TRACE_H
#define VX_TRACE_H

#include "vx/core.h"
#include "vx/report.h"

struct vx_err;
struct vx_trace;

struct vx_trace_task {
	const char *id; /* lives as long as the recorder, like deps */
	const uint32_t *deps;
	uint32_t n_deps;
	bool group, persistent, requested;
};

struct vx_trace *vx_trace_new(
	const struct vx_trace_task *tasks, uint32_t n, uint32_t slots, uint64_t start_ns);
void vx_trace_free(struct vx_trace *t);

/* `path` is truncated; "-" is stdout. A FIFO must have its reader already. Returns 0 or -errno with
 * err filled. */
int vx_trace_events(struct vx_trace *t, const char *path, struct vx_err *err);
void vx_trace_decision(struct vx_trace *t, uint64_t now_ns, const struct vx_core_decision *d);
void vx_trace_event(struct vx_trace *t, uint64_t now_ns, const struct vx_core_event *e);
void vx_trace_ended(struct vx_trace *t, uint64_t now_ns, const struct vx_task_end *e);
/* name: a literal */
void vx_trace_phase(struct vx_trace *t, const char *name, uint64_t start_ns, uint64_t end_ns);
void vx_trace_flush(struct vx_trace *t);

/* Closes the NDJSON sink. -errno with err filled when it could not take everything. */
int vx_trace_finish(
	struct vx_trace *t, uint64_t now_ns, const struct vx_run_end *e, struct vx_err *err);

/* The longest chain of tasks by what they took in this run; as time, and as tasks, first to last
 * (borrowed). */
uint64_t vx_trace_critical(struct vx_trace *t, const uint32_t **ret_tasks, uint32_t *ret_n);

int vx_trace_write_chrome(struct vx_trace *t, const char *path, struct vx_err *err);
int vx_trace_write_html(
	struct vx_trace *t, const char *path, const char *title, struct vx_err *err);
int vx_trace_write_markdown(
	struct vx_trace *t, const char *path, const char *title, struct vx_err *err);

#endif
