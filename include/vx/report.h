/* What a run shows. The loop tells the report what happened; the report decides what a person sees,
 * by mode and --output-logs. docs/running.md, "Output".
 *
 * Modes: a terminal, a pipe, CI (CI set), GitHub Actions. Focused (no selection flag): the
 * requested task streams raw. Broad: one row per executed task, nothing for hits, failures framed
 * at the end. CI: full grouped output. Rows: glyph time status cache project#task. Frames are
 * whole, never interleaved. Everything of a task goes to stdout, vx's own warnings to stderr. A
 * closed stdout changes nothing but the output. NO_COLOR and FORCE_COLOR are honoured.
 *
 * A focused run streams raw while one requested task runs at a time; where several stream together
 * (and for requested servers of a broad run) each line says whose it is. Tasks that printed nothing
 * have no frame. Aborted and not started tasks have no row.
 *
 * Nothing here waits without end: what the reader of stdout does not take is buffered (64 MiB) and
 * offered again by vx_report_tick; past that the report waits as a full pipe makes anyone wait, but
 * only until a signal is pending, and then names what it left out. The caller ignores SIGPIPE and
 * blocks the signals that it reads from a descriptor.
 *
 * The loop waits no longer than vx_report_next_tick_ms and calls vx_report_tick each time round: it
 * draws the live rows of a terminal and empties the buffer.
 *
 * All calls from the loop's thread. Strings are borrowed for the call only, except `task` ids, and
 * the `log` of failed tasks, which must live until vx_report_finish. */
#ifndef VX_REPORT_H
#define VX_REPORT_H

#include "vx/core.h"
#include "vx/tasklog.h"

#include <stdbool.h>
#include <stdint.h>

enum vx_output_logs {
	VX_LOGS_DEFAULT,
	VX_LOGS_FULL,
	VX_LOGS_ERRORS,
	VX_LOGS_HASH,
	VX_LOGS_NONE,
	VX_LOGS_NEW
};

/* "full", "errors-only", "hash-only", "none", "new-only": 0, or -EINVAL with *ret untouched. */
int vx_output_logs_parse(const char *word, enum vx_output_logs *ret);

struct vx_report_opts {
	bool broad;
	enum vx_output_logs logs;
	const uint8_t
		/* enum vx_output_logs of each task, for those that say so themselves; counts where
		 * `logs` is DEFAULT; NULL: none does */
		*task_logs;
	int verbosity;
	uint32_t n_tasks; /* not counting groups */
	uint32_t n_projects;
	uint32_t slots;
	uint64_t start_ns;
	int out_fd, err_fd;     /* 1 and 2 */
	const char *const *env; /* CI, GITHUB_ACTIONS, NO_COLOR, FORCE_COLOR, TERM, COLUMNS;
				   "NAME=value", NULL-terminated */
};

enum vx_cache_outcome { VX_C_MISS, VX_C_UP_TO_DATE, VX_C_RESTORED, VX_C_NOCACHE };

/* How one task ended. */
struct vx_task_end {
	uint32_t task;
	const char *id;
	bool requested;
	enum vx_result result;
	enum vx_cache_outcome cache;
	const char *status; /* "exit 2", "exit 137, 128 + SIGKILL", "timed out", "lost", "skipped:
			       lib#build failed" ...; NULL when fine */
	const char *key_hex;
	/* saved_ns: what a hit's command had taken */
	uint64_t wall_ns, cpu_ns, peak_bytes, saved_ns;
	bool flaky, leftover_cut, peak_is_tree;
	bool unrun;                   /* failed without an attempt: its key could not be made */
	const struct vx_tasklog *log; /* executed: what it printed; NULL otherwise */
	const void *stored;           /* hit: the stored log */
	size_t stored_bytes;
	const char *
		note; /* extra lines: violations, "not saved: src/a.c changed while it ran"; NULL */
};

struct vx_run_end {
	int code;
	/* 0: not known, not shown */
	uint64_t wall_ns, plan_ns, keys_ns, probe_ns, dispatch_ns, setup_ns, save_ns, critical_ns;
	struct vx_core_counts counts;
	uint32_t workers, up_to_date, restored, missed, nocache, not_saved;
	uint64_t saved_ns;
	int signal;           /* interrupted by; 0 */
	const char *log_hint; /* NULL */
};

struct vx_report;
struct vx_report *vx_report_new(const struct vx_report_opts *o);
void vx_report_free(struct vx_report *r);
void vx_report_started(struct vx_report *r, uint32_t task, const char *id, bool requested,
	bool persistent, uint16_t attempt);
/* masked; streamed or not as the mode says */
void vx_report_output(struct vx_report *r, uint32_t task, int stream, const void *p, size_t n);
void vx_report_retry(struct vx_report *r, uint32_t task, uint16_t attempt, const char *why);
void vx_report_ready(struct vx_report *r, uint32_t task);
/* its attempt is over, the result is not final: saving, or to be repeated */
void vx_report_exited(struct vx_report *r, uint32_t task);
void vx_report_ended(struct vx_report *r, const struct vx_task_end *e);
/* one line on stderr */
void vx_report_warn(struct vx_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* the same in red, where stderr is a terminal */
void vx_report_alarm(struct vx_report *r, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Appends what has been written so far, if that is all there was to see: nothing on stderr, no live
 * rows, nothing left out, and not too much. */
bool vx_report_transcript(const struct vx_report *r, struct vx_buf *out);
/* a transcript of an earlier run */
void vx_report_replay(struct vx_report *r, const char *p, size_t n);
/* for the meters of the live rows; before a tick */
void vx_report_counts(struct vx_report *r, const struct vx_core_counts *c);
void vx_report_tick(struct vx_report *r, uint64_t now_ns);
int vx_report_next_tick_ms(const struct vx_report *r, uint64_t now_ns); /* -1: no tick is needed */
/* the first signal: the live rows go and do not come back */
void vx_report_interrupted(struct vx_report *r);
void vx_report_finish(struct vx_report *r, const struct vx_run_end *e); /* failure frames, footer */

/* "1.23s", "340ms", "2m 05s"; and "1.5 GB"; into ret, returned. */
const char *vx_fmt_ns(uint64_t ns, char *ret, size_t cap);
const char *vx_fmt_bytes(uint64_t bytes, char *ret, size_t cap);

#endif
