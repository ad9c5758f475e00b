/* The core: a pure state machine that decides what a run does next.
 *
 * Events go in (vx_core_event), decisions come out (vx_core_next) until there is none; then the
 * caller waits for the world to produce another event. No clock, no I/O, no allocation after
 * vx_core_new. Driven by the real loop and, in tests, by a simulator with a virtual clock.
 *
 * The caller carries out each decision and answers with the event named beside it. Everything it
 * decides about a task is in its `struct vx_core_task`, copied at vx_core_new; what only becomes
 * known later (a late key's verdict) comes with an event.
 *
 *   DO_KEY      compute the task's key now, probe the store                 -> EV_KEYED
 *   DO_RESTORE  confirm the hit: up to date or restore                      -> EV_RESTORED (ok, or
 *               damaged: the task becomes a miss)
 *   DO_RUN      clean outputs, dispatch one attempt                         -> EV_STARTED?
 *               EV_READY? then EV_EXITED or EV_LOST
 *   DO_SAVE     hand the outputs to the save lane                           -> EV_CAPTURED then
 *               EV_SETTLED (or EV_SETTLED alone)
 *   DO_STOP     send `signal` to the task's tree                            -> (its EV_EXITED
 *               follows)
 *   DO_RETRY    between attempts: report why; DO_RUN of the next follows
 *   DO_DONE     the task's result is final; report it (groups are not told)
 *   DO_END      everything has settled; exit with `code`
 *
 * How to drive it: after vx_core_new, and after every event (or batch of events), call vx_core_next
 * until it returns false. Decisions are made as they are fetched: what an event makes moot (a
 * queued stop of a task that has exited) never comes out. Exactly what to answer:
 *
 *   - Every DO_RUN ends in exactly one EV_EXITED or EV_LOST, whatever stops were sent in between; a
 *     DO_STOP may come for a task whose EV_STARTED has
 *     not come yet. An attempt that could not be started at all is EV_EXITED with ok = false (a
 *       failed attempt), or EV_LOST when its worker died.
 *   - attempt counts from 1 and grows with every DO_RUN of the task, re-runs of lost ones included,
 *     so that it tells frames of a dead attempt apart.
 *     DO_RETRY names the attempt that has ended (failed or lost); its DO_RUN comes when a slot is
 *       free.
 *   - DO_KEY is never asked for a group: make a late group's key when a dependent's key folds it.
 *     Where an upstream has no key (its own could not be
 *     made, and the policy is always), answer VX_V_NOCACHE.
 *   - A persistent task without waits_ready is ready by EV_STARTED, one with it by EV_READY; its
 *     slot is free from then on, and its DO_DONE comes
 *     when it exits. EV_READY of any other task, or too late, is ignored. Readiness and task time
 *       limits are the caller's: stop the task, then
 *     EV_EXITED with ok = false.
 *   - A task to be saved is DO_DONE when it is captured (or when EV_SETTLED comes without
 *     EV_CAPTURED), so that its report can say "not saved";
 *     others are DO_DONE at once. EV_SETTLED may thus follow DO_DONE, and must: exactly one per
 *       DO_SAVE. A save counts against save_lane until then.
 *     A failed save is no failure.
 *   - `moved` on EV_STARTED, EV_EXITED, EV_CAPTURED or EV_SETTLED: the key of this result no longer
 *     stands (its inputs moved while it ran, or it runs
 *     without its sandbox): what runs after it, or beside it if it serves, is unsaved too.
 *   - EV_INTERRUPT: decisions that start something stop coming; what the core had queued ends as
 *     aborted (saves not handed out are dropped, their
 *     tasks succeeded). Answers to KEY, RESTORE, RUN and SAVE that are under way are still owed.
 *       Arm the grace timer at the first EV_INTERRUPT.
 *   - DO_STOP with SIGTERM outside an interrupt is the end of a persistent task: arm a grace timer
 *     for it, then EV_GRACE_OVER with its `task`. For
 *     the interrupt's timer `task` is VX_CORE_ALL. One that comes too late is ignored.
 *   - DO_DONE comes exactly once for every task that is not a group. DO_END is last, once.
 *
 * Rules (docs/running.md tells them to users):
 *   - Only executing tasks hold slots. Ready order is longest remaining path first; where durations
 *     are known for some, an unknown one counts as
 *     their mean; then more transitive dependents first, then declaration order. Confirmed hits
 *       take part in none of this: they restore at once,
 *     restore_lane many.
 *   - The first ready task that does not fit (cpus, memory, exclusive) holds everything behind it
 *     back, so that nothing small can pass it for ever.
 *   - Memory is admitted against memory_bytes; a task that asks for more, or is exclusive, shares
 *     the slots with nobody. When no slot is taken the
 *     first one is admitted whatever servers keep in memory.
 *   - A persistent task starts only if it was requested or a direct dependent (through groups) will
 *     execute; a dependent whose key is late counts as
 *     one that will. Nobody depends on it and it was not requested: it is never started (tasks
 *       started "with" another must be marked requested). A
 *     requested group stands for the persistent tasks below it. One that was not requested is
 *       stopped when nothing downstream of it is left to
 *     execute, be it direct or not; the requested ones are stopped likewise once one of them has
 *       exited. Stopped so, it succeeded whatever its exit;
 *     stopped before ready: aborted.
 *   - deps-ok: what depends on a failure is skipped at once. never: nothing more is started nor
 *     retried, confirmed hits are still restored, what is
 *     left is skipped or aborted, servers are stopped. always: dependents run unsaved (also those
 *       further down); a late key is still asked for and
 *     may hit.
 *   - A damaged hit becomes a miss, and everything that its being a hit had decided is decided
 *     again.
 *   - EV_LOST: run again once without counting as a retry, then failed; a server that was ready has
 *     failed at once. */
#ifndef VX_CORE_H
#define VX_CORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_core;

#define VX_CORE_ALL UINT32_MAX /* EV_GRACE_OVER: the interrupt's grace */

enum vx_verdict {
	VX_V_LATE,    /* not known yet: ask by DO_KEY once every upstream is done */
	VX_V_HIT,     /* an entry and its artifact exist */
	VX_V_MISS,    /* cached, no entry: run and save */
	VX_V_NOCACHE, /* run, save nothing */
	VX_V_FAILED,  /* the key could not be made (a runtime probe failed): the task fails */
};

enum vx_continue { VX_CONTINUE_DEPS_OK, VX_CONTINUE_NEVER, VX_CONTINUE_ALWAYS };

struct vx_core_task {
	const uint32_t *deps; /* borrowed for the core's life */
	uint32_t n_deps;
	/* waits_ready: persistent with readyWhen */
	bool group, persistent, requested, exclusive, waits_ready;
	/* of stable tasks; VX_V_LATE otherwise */
	enum vx_verdict verdict;
	/* slots it takes; cut to the number there are */
	uint32_t cpus;
	uint64_t memory_bytes; /* 0: not counted */
	uint32_t retries;
	uint64_t predicted_ns; /* from history; 0 unknown */
	uint32_t weight;       /* number of transitive dependents */
	/* should it run, then unsaved: what it finds on disk may not be what its key says */
	bool unsaved;
};

struct vx_core_opts {
	uint32_t slots;
	uint64_t memory_bytes; /* admitted against this; 0 no limit */
	enum vx_continue policy;
	uint32_t restore_lane, save_lane; /* how many at once; more wait in order */
};

enum vx_core_kind {
	VX_EV_KEYED = 1, /* verdict */
	VX_EV_RESTORED,  /* ok; false = damaged, treat as a miss */
	VX_EV_STARTED,
	VX_EV_READY,  /* a persistent task's readyWhen line */
	VX_EV_EXITED, /* ok, interrupted attempts too; `save`: may its result be saved */
	VX_EV_LOST,   /* run again once, then failed */
	VX_EV_CAPTURED,
	VX_EV_SETTLED,
	VX_EV_INTERRUPT, /* first signal: stop everything with `signal`; second: SIGKILL */
	/* the grace after an interrupt (VX_CORE_ALL) or after the stop of `task` has passed:
	 * SIGKILL whatever is live now */
	VX_EV_GRACE_OVER,
};

struct vx_core_event {
	enum vx_core_kind kind;
	uint32_t task;
	bool ok, save, moved;
	enum vx_verdict verdict;
	int signal;
};

enum vx_core_do {
	VX_DO_KEY = 1,
	VX_DO_RESTORE,
	VX_DO_RUN,
	VX_DO_SAVE,
	VX_DO_STOP,
	VX_DO_RETRY,
	VX_DO_DONE,
	VX_DO_END
};

enum vx_result {
	VX_R_SUCCESS = 1,
	VX_R_HIT,
	VX_R_FAILED,
	VX_R_SKIPPED,
	/* aborted: an interrupt or `never` ended it or kept it from starting; not counted */
	VX_R_ABORTED,
	VX_R_NOT_STARTED, /* a server that nobody needed */
};

struct vx_core_decision {
	enum vx_core_do what;
	uint32_t task;
	uint16_t attempt;
	int signal;            /* DO_STOP */
	enum vx_result result; /* DO_DONE */
	bool flaky;            /* DO_DONE: passed after a failure */
	/* DO_RUN: the result will not be saved whatever happens (a failed upstream) */
	bool unsaved;
	uint32_t blocker; /* DO_DONE skipped: the failed task at the root of its block */
	int code;         /* DO_END: 0, 1, 128 + n */
};

struct vx_core_counts {
	uint32_t total, done;       /* groups not counted */
	uint32_t running;           /* trees that live now, servers too */
	uint32_t ready;             /* wait for a slot */
	uint32_t restoring, saving; /* on the lanes now */
	uint32_t failed, skipped, hits;
	uint32_t executed; /* ran to a result of their own: success or failed */
	uint32_t slots_used;
};

/* `deps` name tasks of the same array and hold no cycle (the graph was checked). All memory is
 * allocated here. */
struct vx_core *vx_core_new(
	const struct vx_core_opts *o, const struct vx_core_task *tasks, uint32_t n);
void vx_core_event(struct vx_core *c, const struct vx_core_event *e);
bool vx_core_next(struct vx_core *c, struct vx_core_decision *ret);
/* O(1). `next` and `event` are O(log n) plus the edges of what they finish; interrupts, and the end
 * of a `never` run, O(n). */
void vx_core_counts(const struct vx_core *c, struct vx_core_counts *ret);
void vx_core_free(struct vx_core *c);

#endif
