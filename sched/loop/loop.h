/* The run loop's own state; private to sched/loop.
 *
 *   loop.c     set up, wait, tear down         keys.c     keys and verdicts, ahead and late
 *   act.c      carries out the core's decisions  answer.c   turns what the pool and the lanes say
 *              into the core's events
 *   request.c  descriptors: argv, environment, sandbox spec   ending.c   words for how a task ended
 *   script.c   the same for package scripts
 *
 * One thread. Per-task state is an array parallel to the graph's; a task's phase says who is
 * expected to answer next. */
#ifndef VX_LOOP_H
#define VX_LOOP_H

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/core.h"
#include "vx/err.h"
#include "vx/executor.h"
#include "vx/glob.h"
#include "vx/key.h"
#include "vx/lane.h"
#include "vx/pool.h"
#include "vx/report.h"
#include "vx/run.h"
#include "vx/secret.h"
#include "vx/store.h"
#include "vx/tasklog.h"
#include "vx/trace.h"

struct vx_ready; /* readiness matcher, ready.c */

enum loop_phase {
	PH_IDLE,
	PH_CLEANING, /* the lane removes outputs */
	PH_ARMING,   /* waits for the sandbox's verdict, in l->held */
	PH_RUNNING,  /* the pool has it */
};

struct loop_task {
	enum loop_phase phase;
	uint32_t slot; /* worker slot while PH_ARMING, PH_RUNNING */
	uint16_t attempt;
	bool keyed, key_failed;
	bool key_behind;  /* key_failed for want of an upstream key alone */
	bool unsaved;     /* the core: whatever happens, nothing is saved */
	bool left_out;    /* tasks that it builds on were left out */
	bool stop_wanted; /* a stop came before there was a process */
	bool shell;       /* direct execution failed to start: through the shell this time */
	bool executed, ready, up_to_date, saved;
	bool outputs_known;
	bool no_entry;          /* neither restored nor saved: see overlap.c */
	bool restore_waits;     /* for `behind` */
	bool restore_begun;     /* ahead of the core's word */
	const uint32_t *behind; /* tasks before it whose outputs it overlaps, and those between */
	uint32_t n_behind;
	enum vx_cache_outcome cache;
	struct vx_outputs outputs;
	struct vx_entry *entry; /* of a hit */
	struct vx_tasklog *log;
	struct vx_ready *matcher;
	void *stored; /* a hit's log, malloc */
	size_t stored_bytes;
	struct vx_buf packed; /* the log in stored form while a save is under way */
	const char *status, *note;
	enum vx_result result; /* 0 until DO_DONE */
	/* when the core said run; set-up apart, what passes until the start is dispatch */
	uint64_t decided_ns;
	uint64_t start_ns, end_ns, cpu_ns, peak_bytes;
	bool peak_is_tree, leftover_cut;
	uint32_t less;             /* VX_DONE_* of the last attempt */
	uint64_t stop_deadline_ns; /* SIGKILL then; 0 none */
	uint64_t ready_deadline_ns;
	uint32_t index; /* its own, for callbacks that get only this struct */
	struct loop *loop;
};

struct loop {
	const struct vx_run_opts *o;
	struct vx_plan *plan;
	const struct vx_graph *g;
	struct vx_arena arena;
	uint32_t *levels; /* act.c, for restores; NULL not yet known */
	char **env;       /* ours at the start */
	uint32_t slots, worker_slots;
	uint32_t grace_ms;
	int64_t env_timeout_ms; /* VX_TASK_TIMEOUT; -1 not given */
	const char *store_dir;
	struct vx_store *store;
	struct vx_keyer *keyer;
	struct vx_key_memory memory;
	struct vx_lane *lane;
	struct vx_pool *pool;
	bool said_no_pool;
	struct vx_executor executor;
	struct vx_report *report;
	struct vx_trace *trace; /* NULL: nothing was asked for */
	struct vx_core *core;
	struct loop_task *t;
	const struct vx_globset **globs; /* of outputs, by their lists; an empty one is NULL */
	uint32_t n_globs, cap_globs;
	struct vx_map by_globs;
	struct vx_buf globs_key;
	uint32_t *free_slots, n_free;
	uint32_t *slot_task; /* what each worker slot runs; VX_MAP_NONE free */
	enum { ARM_NONE, ARM_ASKED, ARM_OK, ARM_REFUSED } arm;
	uint32_t *held, n_held;       /* tasks in PH_ARMING */
	uint32_t timers;              /* tasks with a deadline set */
	uint32_t n_waiting;           /* restores that wait */
	struct vx_strs base_env;      /* allowlist, without PATH */
	struct vx_strs turbo_env;     /* under a turbo.json: what Turborepo lets through besides */
	const char *path;             /* PATH of vx, or the usual one */
	const char **project_path;    /* "PATH=..." per project, made when first needed */
	struct loop_scripts *scripts; /* script.c; made when a script first runs */
	int signal_fd, lock_fd;
	bool keying_canceled; /* by a signal that is still to be read */
	int first_signal;
	bool unchanged; /* nothing was done: an earlier run's word held */
	uint64_t grace_deadline_ns;
	int fatal_code;     /* 1: the run fails whatever the tasks say */
	bool ended, writes; /* writes: results are saved at all */
	bool all_hits, remembered;
	/* what the store had to say at its opening; what it finds on the way is said at the end */
	bool said_note;
	/* VX_DONE_*: how tasks are less confined than they ask for, as far as it was said */
	uint32_t said_less;
	bool said_left_out;
	bool said_tracked; /* outputs that git tracks: said once a run */
	int code;
	uint64_t keys_ns, probe_ns, setup_ns, sandbox_setup_ns, dispatch_ns;
	/* of any attempt: what passes from then to the end is waiting for saves */
	uint64_t last_exit_ns;
	/* saves whose outputs hold the root's path, and the first of them */
	uint32_t not_portable, not_portable_task;
	uint32_t not_saved, up_to_date, restored, missed, nocache;
	uint64_t saved_ns;
};

/* keys.c */
/* verdicts of what is stable; groups resolved */
/* Reads the signals that came, and tells everybody. */
void loop_took_signal(struct loop *l);
int loop_keys_ahead(struct loop *l, struct vx_core_task *ct, struct vx_err *err);
enum vx_verdict loop_key_late(struct loop *l, uint32_t task);
bool loop_needs_keys(const struct loop *l);

/* empty.c: at the end, entries of inputs that selected nothing for what has run */
void loop_say_empty(struct loop *l);

/* act.c */
void loop_act(struct loop *l, const struct vx_core_decision *d);
/* outputs are clean: hand it to a worker, or hold it until the sandbox is armed */
void loop_dispatch(struct loop *l, uint32_t task);
void loop_armed(struct loop *l, const struct vx_done *done);
bool loop_start_pool(struct loop *l);
bool loop_start_lane(struct loop *l);
/* Of a hit, while other keys are still being made: the core, which is made only when all verdicts
 * are there, has every such hit restored at once. What the lane answers is looked at when the core
 * has said so. */
void loop_restore_early(struct loop *l, uint32_t task);
/* NULL when it declares none */
const struct vx_outputs *loop_outputs(struct loop *l, uint32_t task);

/* overlap.c */
void loop_find_overlaps(struct loop *l); /* once, ahead of the keys */
/* for a task before it, whose outputs it overlaps */
bool loop_restore_waits(const struct loop *l, uint32_t task);

/* answer.c */
/* to the recorder, then to the core */
void loop_event(struct loop *l, const struct vx_core_event *e);
bool loop_pool_events(struct loop *l); /* true: something came */
bool loop_lane_events(struct loop *l);
void loop_say_less(struct loop *l, uint32_t flags); /* VX_DONE_* of an attempt */
void loop_exited(struct loop *l, uint32_t task, const struct vx_done *done);
/* an attempt that never ran */
void loop_failed_start(struct loop *l, uint32_t task, enum vx_end end, const char *text);
/* deadlines of single tasks */
void loop_expire(struct loop *l, uint64_t now_ns);
uint64_t loop_next_deadline(const struct loop *l);

/* request.c */
void loop_env_init(struct loop *l);
int loop_describe(struct loop *l, uint32_t task, struct vx_task_desc *ret, struct vx_err *err);
/* script.c: tasks that are package scripts */
/* Appends what the package manager sets, "NAME=value"; nothing for other tasks. */
int loop_script_env(
	struct loop *l, uint32_t task, const char *cwd, struct vx_strlist *out, struct vx_err *err);
/* "PATH=..." of a package's scripts */
const char *loop_script_path(struct loop *l, uint32_t project);
/* `command` is the script with the words of the command line, `extra` those words. */
int loop_script_argv(struct loop *l, uint32_t task, const char *command, struct vx_strs extra,
	struct vx_strs *ret, struct vx_err *err);
/* May the command be taken apart and executed without its shell? */
bool loop_script_apart(const struct loop *l, const struct vx_exec_decl *x);
int vx_run_no_yarn(struct vx_err *err);
/* exec.timeout, else --timeout, else VX_TASK_TIMEOUT, else the workspace's; 0 none. */
uint32_t loop_timeout_ms(const struct loop *l, const struct vx_exec_decl *x);
bool loop_sandboxed(const struct loop *l, uint32_t task);
/* declares a sandbox, and runs without (--sandbox=off) */
bool loop_unboxed(const struct loop *l, uint32_t task);
/* A command without shell syntax, taken apart; false: it needs the shell. Pure. */
bool loop_direct_split(const char *command, struct vx_arena *a, struct vx_strs *ret);
/* `arg` as one word of a POSIX shell. Pure. */
void loop_shell_quote(const char *arg, struct vx_buf *out);

/* shell_end.c. Where words may be appended to a command: *ret_at, the end of its last simple
 * command. NULL, or why that cannot be told. Pure. */
const char *loop_command_end(const char *command, size_t *ret_at);

/* unchanged.c: after a run that had nothing to do, what it rested on */
void loop_keep_unchanged(struct loop *l);

/* ready.c: does a line of output match `pattern`? Lines are put together from chunks, escape
 * sequences stripped. */
int vx_ready_new(const char *pattern, struct vx_ready **ret, struct vx_err *err);
bool vx_ready_feed(struct vx_ready *r, const void *p, size_t n);
void vx_ready_free(struct vx_ready *r);

/* ending.c */
/* NULL: it ended well; in the run's arena */
const char *loop_status(struct loop *l, uint32_t task, const struct vx_done *d);

/* finish.c: the last lines, the traces. The report is complete then */
void loop_finish(struct loop *l);

/* summary.c: --summarize */
void loop_write_summary(struct loop *l);

/* stats.c */
void loop_write_stats(struct loop *l);

#endif
