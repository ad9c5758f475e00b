/* The recorder's memory, shared by the writers of files. Inside sched/report only. */
#ifndef VX_SCHED_REPORT_TRACE_INTERNAL_H
#define VX_SCHED_REPORT_TRACE_INTERNAL_H

#include "out.h"

#include "vx/arena.h"
#include "vx/trace.h"

enum lane { LANE_RUN, LANE_RESTORE, LANE_SAVE, LANE_KEY, LANES };

struct span {
	uint64_t start_ns, end_ns;
	uint32_t task, row;
	uint16_t attempt;
	uint8_t lane;
	bool ok;
};

struct traced {
	uint32_t open[LANES]; /* index of the open span, plus 1; 0 none */
	/* in slots and lanes, for the critical path: from the first decision to the release of
	 * dependents */
	uint64_t ns;
	uint64_t wall_ns, cpu_ns, peak_bytes, saved_ns;
	uint8_t result, cache;
	uint16_t attempts;
	bool flaky, ended;
	const char *status, *key; /* in the arena */
};

struct rows {
	uint8_t *taken;
	uint32_t n; /* how many were ever needed at once */
};

struct phase {
	const char *name;
	uint64_t start_ns, end_ns;
};

struct vx_trace {
	const struct vx_trace_task *in;
	struct traced *task;
	uint32_t n, slots;
	uint64_t start_ns, end_ns;
	struct span *spans;
	uint32_t n_spans, cap_spans;
	struct rows rows[LANES];
	struct phase phases[32];
	uint32_t n_phases;
	struct vx_run_end end;
	bool finished;
	uint32_t *critical, n_critical;
	uint64_t critical_ns;
	struct vx_arena arena;
	bool has_events, close_events;
	struct out events;
	const char *events_path;
};

extern const char *const trace_lane_names[LANES];
/* No schedule of this run's tasks is shorter than its critical path, nor than all its work spread
 * evenly over the slots. */
uint64_t trace_ideal(struct vx_trace *t);
const char *trace_result(uint8_t result);
const char *trace_cache(const struct traced *t);

/* A JSON string with its quotes, by vx_text_json, as the page's script element needs it. */
void trace_json(struct vx_buf *b, const char *s);

/* Writes the whole file beside and renames it; an error that names path. */
int trace_write(const char *path, const char *what, const struct vx_buf *b, struct vx_err *err);

#endif
