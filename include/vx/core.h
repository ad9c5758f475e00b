/* The core: a pure state machine that decides what a run does next.
 *
 * Events go in (vx_core_event), decisions come out (vx_core_next) until there is none; then the caller waits for the world to produce another event.
 * No clock, no I/O, no allocation after vx_core_new. Driven by the real loop and, in tests, by a simulator with a virtual clock.
 *
 * The caller carries out each decision and answers with the event named beside it. Everything it decides about a task is in its `struct vx_core_task`,
 * copied at vx_core_new; what only becomes known later (a late key's verdict) comes with an event.
 *
 *   DO_KEY      compute the task's key now, probe the store                 -> EV_KEYED
 *   DO_RESTORE  confirm the hit: up to date or restore                      -> EV_RESTORED (ok, or damaged: the task becomes a miss)
 *   DO_RUN      clean outputs, dispatch one attempt                         -> EV_STARTED? EV_READY? then EV_EXITED or EV_LOST
 *   DO_SAVE     hand the outputs to the save lane                           -> EV_CAPTURED then EV_SETTLED (or EV_SETTLED alone)
 *   DO_STOP     send `signal` to the task's tree                            -> (its EV_EXITED follows)
 *   DO_RETRY    between attempts: report why; DO_RUN of the next follows
 *   DO_DONE     the task's result is final; report it (groups are not told)
 *   DO_END      everything has settled; exit with `code`
 *
 * Rules (docs/running.md): only executing tasks hold slots; persistent ones give theirs back on ready; ready order is longest remaining path first, ties in
 * declaration order; confirmed hits never hold a slot and do not wait for anything; `cpus`, `memory`, `exclusive`; failure policies; a persistent
 * task starts only if it was requested or a dependent will execute, is stopped when its dependents are done and it was not requested; a damaged
 * hit revokes what was decided because of it; a task that ran after a failed upstream is not saved; captured releases dependents, settled ends the run. */
#ifndef VX_CORE_H
#define VX_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_core;

enum vx_verdict {
	VX_V_LATE,     /* not known yet: ask by DO_KEY once every upstream is done */
	VX_V_HIT,      /* an entry and its artifact exist */
	VX_V_MISS,     /* cached, no entry: run and save */
	VX_V_NOCACHE,  /* run, save nothing */
	VX_V_FAILED,   /* the key could not be made (a runtime probe failed): the task fails */
};

enum vx_continue { VX_CONTINUE_DEPS_OK, VX_CONTINUE_NEVER, VX_CONTINUE_ALWAYS };

struct vx_core_task {
	const uint32_t *deps;      /* borrowed for the core's life */
	uint32_t n_deps;
	bool group, persistent, requested, exclusive, waits_ready; /* waits_ready: persistent with readyWhen */
	enum vx_verdict verdict;   /* of stable tasks; VX_V_LATE otherwise */
	uint32_t cpus;             /* slots it takes; cut to the number there are */
	uint64_t memory_bytes;     /* 0: not counted */
	uint32_t retries;
	uint64_t predicted_ns;     /* from history; 0 unknown */
	uint32_t weight;           /* transitive dependents */
};

struct vx_core_opts {
	uint32_t slots;
	uint64_t memory_bytes;     /* admitted against this; 0 no limit */
	enum vx_continue policy;
	uint32_t restore_lane, save_lane; /* how many at once; more wait in order */
};

enum vx_core_kind {
	VX_EV_KEYED = 1,  /* verdict */
	VX_EV_RESTORED,   /* ok; false = damaged, treat as a miss */
	VX_EV_STARTED,
	VX_EV_READY,      /* a persistent task's readyWhen line */
	VX_EV_EXITED,     /* ok, interrupted attempts too; `save`: may its result be saved */
	VX_EV_LOST,       /* run again once, then failed */
	VX_EV_CAPTURED,
	VX_EV_SETTLED,
	VX_EV_INTERRUPT,  /* first signal: stop everything with `signal`; second: SIGKILL */
	VX_EV_GRACE_OVER, /* the grace after an interrupt (or after a stop) has passed: SIGKILL whatever is live now */
};

struct vx_core_event {
	enum vx_core_kind kind;
	uint32_t task;
	bool ok, save;
	enum vx_verdict verdict;
	int signal;
};

enum vx_core_do { VX_DO_KEY = 1, VX_DO_RESTORE, VX_DO_RUN, VX_DO_SAVE, VX_DO_STOP, VX_DO_RETRY, VX_DO_DONE, VX_DO_END };

enum vx_result {
	VX_R_SUCCESS = 1, VX_R_HIT, VX_R_FAILED, VX_R_SKIPPED, VX_R_ABORTED, /* aborted: an interrupt or `never` ended it; not counted */
	VX_R_NOT_STARTED, /* a server that nobody needed */
};

struct vx_core_decision {
	enum vx_core_do what;
	uint32_t task;
	uint16_t attempt;
	int signal;              /* DO_STOP */
	enum vx_result result;   /* DO_DONE */
	bool flaky;              /* DO_DONE: passed after a failure */
	bool unsaved;            /* DO_RUN: the result will not be saved whatever happens (a failed upstream) */
	uint32_t blocker;        /* DO_DONE skipped: the failed task at the root of its block */
	int code;                /* DO_END: 0, 1, 128 + n */
};

struct vx_core_counts {
	uint32_t total, done, running, ready, restoring, saving, failed, skipped, hits, executed;
	uint32_t slots_used;
};

struct vx_core *vx_core_new(const struct vx_core_opts *o, const struct vx_core_task *tasks, uint32_t n);
void vx_core_event(struct vx_core *c, const struct vx_core_event *e);
bool vx_core_next(struct vx_core *c, struct vx_core_decision *ret);
void vx_core_counts(const struct vx_core *c, struct vx_core_counts *ret);
void vx_core_free(struct vx_core *c);

#endif
