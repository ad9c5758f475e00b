/* A run: from a plan to an exit code.
 *
 *   plan      workspace, configs, selection, graph (vx_cli_plan, sched/cli)
 *   vx_run    keys, probe, restore, dispatch, save, report, end (sched/loop)
 *
 * vx_run owns the process while it works: it takes the workspace lock, reads SIGINT, SIGTERM and
 * SIGHUP through a signalfd, starts the fork server when the first miss is known, and returns when
 * everything has settled and nothing that it started is alive. It prints through the report
 * only. */
#ifndef VX_RUN_H
#define VX_RUN_H

#include "vx/arena.h"
#include "vx/core.h"
#include "vx/plan.h"
#include "vx/report.h"
#include "vx/select.h"

enum vx_sandbox_mode { VX_SANDBOX_CONFIG, VX_SANDBOX_REQUIRE, VX_SANDBOX_OFF };
enum vx_dry { VX_DRY_NONE, VX_DRY_TEXT, VX_DRY_JSON, VX_DRY_FULL };

/* What the command line decided; strings live as long as the process. */
struct vx_run_opts {
	struct vx_strs words, forwarded, filters;
	bool all, affected;
	bool help;        /* --help stood among the options: print it, do nothing */
	bool wants_tasks; /* no word at all is refused */
	const char *affected_base;
	const char *concurrency; /* "4", "50%", NULL */
	enum vx_continue policy;
	int32_t retry;      /* -1 not given */
	int64_t timeout_ms; /* -1 not given */
	bool no_cache, force;
	/* turbo.json: variables that a framework is known to build into results do not count */
	bool no_inference;
	/* the workspace is what vx-lock.json says; nothing is read or evaluated for it */
	bool frozen;
	bool cache_read, cache_write; /* --cache */
	const char *cache_dir;
	bool exclude_deps;
	struct vx_strs exclude_names;
	enum vx_output_logs logs;
	enum vx_dry dry;
	int verbosity;
	enum vx_sandbox_mode sandbox;
	/* --summarize; NULL not asked for */
	const char *summary_path;
	/* NULL: not asked for */
	const char *events_path, *profile_path, *report_html, *report_markdown;
	/* VX_STATS: counters of the run as JSON, for tests and benches */
	const char *stats_path;
	uint64_t start_ns;
	/* resolved once; bwrap and init may be NULL */
	const char *init_path, *bwrap_path, *shell_path;
};

struct vx_snapshot;
struct vx_unchanged;
struct vx_ahead;

struct vx_plan {
	struct vx_arena arena;
	struct vx_workspace ws;
	struct vx_selection sel;
	struct vx_graph graph;
	const char *root, *cwd; /* canonical, absolute; root-relative */
	/* memory of this plan (snapshot.h), for the keyer; NULL: of a kind that is not kept */
	struct vx_snapshot *snapshot;
	/* a keyer will be made: its files may be listed while the plan is made */
	bool wants_files;
	struct vx_ahead *ahead; /* ... here; NULL: it lists them itself */
	/* memory of a run that had nothing to do (unchanged.h), for the next one; NULL: this run
	 * leaves none */
	struct vx_unchanged *unchanged;
};

/* Before anything is planned, with p->root and p->cwd set: has this run nothing to do, as an
 * earlier one found, with nothing changed since? Then it has been reported as vx_run would have
 * done, with exit code 0. */
bool vx_run_unchanged(const struct vx_run_opts *o, struct vx_plan *p);

/* The exit code (0, 1, 128 + n), or -errno with err set when the run could not begin. */
int vx_run(const struct vx_run_opts *o, struct vx_plan *p, struct vx_err *err);

/* Can the scripts that the plan would run be run at all (Plug'n'Play without Yarn)? */
int vx_run_check_scripts(const struct vx_plan *p, struct vx_err *err);

struct vx_json;
struct vx_keyer;
struct vx_store;

/* A task as --dry and --summarize show it. The caller owns the value. */
struct vx_task_view {
	const struct vx_keyer *keyer; /* NULL: no hash, inputs nor key */
	/* reason: why --affected chose it, or NULL */
	const char *store_dir, *cache_status, *reason;
	/* stable: the key holds whatever runs; full: inputs, key parts and sandbox too */
	bool stable, full;
	uint64_t predicted_ns;
};
struct vx_json *vx_run_task_json(
	const struct vx_plan *p, uint32_t task, const struct vx_task_view *v, struct vx_arena *a);

struct vx_key_memory;
/* The store as the key module's memory; nothing is remembered when it cannot be written. */
struct vx_key_memory vx_run_key_memory(struct vx_store *s);

/* What a task's sandbox is resolved from; lists live in the arena. The same value is sent to the
 * worker and shown by --dry=full. */
void vx_run_sandbox_spec(const struct vx_plan *p, uint32_t task, const char *store_dir,
	struct vx_arena *a, struct vx_sbx_spec *ret);

/* CPUs this process may use: affinity and cgroup quota (v1 and v2, ancestors included), never below
 * 1. */
uint32_t vx_cpu_count(void);
/* Memory a run may count on: the tightest cgroup limit's free part or the machine's available
 * memory. */
uint64_t vx_memory_free(void);
/* "4", "50%", NULL (all CPUs) to slots. */
int vx_concurrency(const char *text, uint32_t *ret, struct vx_err *err);

/* Can the words after `--` be appended to the command of each requested task, and is there one? 0,
 * or -EINVAL with the line to print. */
int vx_run_check_forwarded(const struct vx_plan *p, struct vx_strs forwarded, struct vx_err *err);

/* As many of `slots` as the limit of open files allows, at least 1. Raises the soft limit first. */
uint32_t vx_affordable_slots(uint32_t slots, uint64_t *ret_limit);

#endif
