/* The parts of the report: report.c decides what is shown of what; frames.c, rows.c, footer.c and
 * stream.c write it; region.c keeps the live rows of a terminal; out.c brings it to stdout. */
#ifndef VX_SCHED_REPORT_INTERNAL_H
#define VX_SCHED_REPORT_INTERNAL_H

#include "out.h"

#include "vx/report.h"

enum mode { MODE_PLAIN, MODE_TERMINAL, MODE_CI, MODE_GITHUB };

struct live {
	uint32_t task;
	const char *id;
	uint64_t start_ns;
	bool requested, persistent, ready, streams, exited;
	/* streamed with a name before each line: the line that is not complete yet */
	struct vx_buf line;
};

/* A failed task whose output is shown at the end. */
struct failure {
	const char *id;
	char *status;
	uint64_t wall_ns;
	const struct vx_tasklog *log; /* the caller keeps those of failed tasks */
	char *note;
};

struct vx_report {
	struct vx_report_opts o;
	struct out out;
	enum mode mode;
	bool color, ascii;
	struct live *live; /* in the order they were started */
	uint32_t n_live, cap_live, n_exited;
	uint32_t n_ended, n_failed;
	uint32_t n_unrun; /* of the failed: never executed */
	struct failure *failures;
	uint32_t n_failures, cap_failures;
	/* the first of all that failed, for the footer; n_failed counts all */
	const char *failed[10];
	uint64_t work_ns; /* of all executed tasks, for the ideal schedule */
	/* streaming */
	uint32_t streaming; /* live tasks that stream */
	bool named;         /* more than one has streamed at a time: each line says whose it is */
	bool mid_line;      /* the last streamed byte was no newline */
	/* the live region */
	bool region;           /* is there to be one? */
	uint32_t region_lines; /* on the screen now */
	uint64_t drawn_ns;
	bool dirty;
	bool warned; /* something went to stderr */
	struct vx_core_counts counts;
};

#define RED "31"
#define GREEN "32"
#define YELLOW "33"
#define CYAN "36"
#define DIM "2"
#define BOLD "1"

/* rows.c. Everything that is shown is one of three: text of ours, masked and escaped (text.h, also
 * for what `paint` colours); sequences of ours for the terminal, whose arguments are numbers; and
 * what a task printed, as it is. */
void text(struct vx_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void control(struct vx_report *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void task_bytes(struct vx_report *r, const void *p, size_t n);
void paint(struct vx_report *r, const char *sgr, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void row_write(struct vx_report *r, const struct vx_task_end *e, bool with_key);
void note_write(struct vx_report *r, const struct vx_task_end *e);
/* A status that gives its reasons at length stands in a row and a rule without them; reason_write
 * then writes it whole, as a line of its own. */
bool has_reasons(const char *status);
const char *brief(const char *status, char *ret, size_t cap);
void reason_write(struct vx_report *r, const char *status);

/* frames.c */
/* header, output, row; as the mode has it */
void frame_ended(struct vx_report *r, const struct vx_task_end *e);
/* those that were kept for the end */
void frame_failures(struct vx_report *r);
void log_write(struct vx_report *r, const struct vx_tasklog *log, const void *stored,
	size_t stored_bytes, const char *end_mark);
size_t log_bytes(const struct vx_tasklog *log, size_t stored_bytes);

/* stream.c */
void stream_begin(struct vx_report *r, struct live *t);
void stream_bytes(struct vx_report *r, struct live *t, const void *p, size_t n);
void stream_end(struct vx_report *r, struct live *t);
void stream_break_line(struct vx_report *r); /* before anything else is written */

/* footer.c */
void footer_write(struct vx_report *r, const struct vx_run_end *e);

/* region.c */
void region_erase(struct vx_report *r); /* before permanent text */
void region_draw(struct vx_report *r, uint64_t now_ns);
void region_off(struct vx_report *r);

/* report.c: what is to be shown of this task's output */
enum vx_output_logs logs_of(const struct vx_report *r, uint32_t task);

/* report.c: room for a piece and the cursor where it may be written; false: leave it out */
bool piece(struct vx_report *r, size_t bytes);

#endif
