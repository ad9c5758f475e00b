/* A run that has nothing to do: told so by the memory of an earlier one, or kept for the next. See
 * vx/unchanged.h. */
#include "loop.h"

#include "vx/box.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/unchanged.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* What the command line asks for beyond the plan, where an ordinary run would do no more than look
 * and print its last lines. */
static bool ordinary(const struct vx_run_opts *o)
{
	return !o->dry && !o->no_cache && !o->force && !o->frozen && !o->affected &&
	       !o->no_inference && o->cache_read && o->cache_write &&
	       o->sandbox == VX_SANDBOX_CONFIG && !o->summary_path && !o->events_path &&
	       !o->profile_path && !o->report_html && !o->report_markdown;
}

static void ask(struct vx_strlist *l, struct vx_arena *a, const char *what, struct vx_strs values)
{
	vx_strlist_add(l, a, vx_arena_printf(a, "%s:%u", what, values.n));
	for (uint32_t i = 0; i < values.n; i++)
		vx_strlist_add(l, a, values.v[i]);
}

static const char *env_flag(struct vx_arena *a, const char *name)
{
	const char *v = getenv(name);
	return vx_arena_printf(a, "%s=%s", name, v ? v : "");
}

/* What decides how a report looks. */
static const char *const shown_by[] = {
	"CI", "GITHUB_ACTIONS", "NO_COLOR", "FORCE_COLOR", "TERM", "LC_ALL", "LC_CTYPE", "LANG"};

/* Everything that decides the run or what it prints, besides files and the variables that are asked
 * about anyway. */
static struct vx_strs question(const struct vx_run_opts *o, struct vx_plan *p)
{
	struct vx_strlist l = {0};
	struct vx_arena *a = &p->arena;
	vx_strlist_add(&l, a, p->cwd);
	vx_strlist_add(&l, a,
		vx_arena_printf(a, "%d %d %d %d %d %d %lld", o->all, o->exclude_deps,
			(int)o->policy, o->retry, (int)o->logs, o->verbosity,
			(long long)o->timeout_ms));
	vx_strlist_add(&l, a, o->concurrency ? o->concurrency : "");
	vx_strlist_add(&l, a, o->cache_dir ? vx_arena_printf(a, "cache %s", o->cache_dir) : "");
	vx_strlist_add(&l, a, isatty(1) == 1 ? "terminal" : "");
	for (size_t i = 0; i < sizeof shown_by / sizeof *shown_by; i++)
		vx_strlist_add(&l, a, env_flag(a, shown_by[i]));
	ask(&l, a, "filters", o->filters);
	ask(&l, a, "words", o->words);
	ask(&l, a, "names", o->exclude_names);
	ask(&l, a, "forwarded", o->forwarded);
	return vx_strlist_done(&l);
}

/* The lock at once or not at all: who has to wait for it goes the ordinary way. */
static int lock_now(const char *root)
{
	struct vx_err err = {0};
	int fd = -1, ready = vx_eventfd();
	if (ready < 0)
		return -1;
	vx_event_signal(ready); /* a wait is cancelled before it begins */
	int r = vx_workspace_lock(root, ready, NULL, NULL, &fd, &err);
	vx_close(ready);
	return r < 0 ? -1 : fd;
}

static bool holds(
	const struct vx_run_opts *o, struct vx_plan *p, const struct vx_unchanged_answer *a)
{
	struct vx_store_stamp now;
	struct vx_err err = {0};
	if (vx_lane_recover(p->root, &err) < 0)
		return false;
	if (vx_box_sweep_records(vx_arena_printf(&p->arena, "%s/.vx/sweep", p->root), &err) ==
		-EPERM)
		return false; /* the ordinary way says why */
	return vx_store_stamp(a->store_dir, &now) == 0 &&
	       memcmp(now.v, a->store, sizeof now.v) == 0 &&
	       vx_unchanged_holds(p->unchanged, o->forwarded);
}

/* vx_run ignores SIGPIPE as well: what a run does never depends on who reads it. */
static void tell(const struct vx_run_opts *o, const struct vx_unchanged_answer *a, uint32_t slots)
{
	struct loop l = {.o = o, .unchanged = true, .up_to_date = a->n_tasks};
	struct vx_report_opts ro = {.broad = a->broad,
		.logs = o->logs,
		.verbosity = o->verbosity,
		.n_tasks = a->n_tasks,
		.n_projects = a->n_projects,
		.slots = slots,
		.start_ns = o->start_ns,
		.out_fd = 1,
		.err_fd = 2,
		.env = (const char *const *)environ};
	signal(SIGPIPE, SIG_IGN);
	l.report = vx_report_new(&ro);
	l.setup_ns = vx_now_ns() - o->start_ns;
	struct vx_run_end e = {.wall_ns = l.setup_ns,
		.plan_ns = l.setup_ns,
		.up_to_date = a->n_tasks,
		.saved_ns = a->saved_ns};
	e.counts.total = e.counts.done = e.counts.hits = a->n_tasks;
	vx_report_replay(l.report, a->printed, a->printed_n);
	vx_report_finish(l.report, &e);
	loop_write_stats(&l);
	vx_report_free(l.report);
}

bool vx_run_unchanged(const struct vx_run_opts *o, struct vx_plan *p)
{
	uint32_t slots;
	struct vx_err err = {0};
	if (!ordinary(o))
		return false;
	p->unchanged = vx_unchanged_open(p->root, question(o, p));
	const struct vx_unchanged_answer *a = vx_unchanged_found(p->unchanged);
	if (!a || vx_concurrency(o->concurrency, &slots, &err))
		return false;
	int lock = lock_now(p->root);
	bool yes = lock >= 0 && holds(o, p, a);
	if (yes)
		tell(o, a, slots);
	vx_close(lock);
	return yes;
}

struct outputs {
	struct vx_unchanged *u;
};

static bool output(void *arg, const struct vx_store_item *i)
{
	struct outputs *o = arg;
	const char *path = *i->path ? i->path : ".";
	struct vx_unchanged_stat st = {
		.ino = i->ino, .size = i->size, .mtime_ns = i->mtime_ns, .ctime_ns = i->ctime_ns};
	if (i->mode)
		vx_unchanged_item(o->u, path, S_ISDIR(i->mode), &st);
	else
		vx_unchanged_absent(o->u, path);
	return true;
}

static bool add_outputs(struct loop *l, struct vx_unchanged_answer *a)
{
	struct vx_store_known *v = vx_xcalloc(l->g->n_tasks + 1, sizeof *v);
	struct vx_store_stamp stamp;
	struct outputs o = {l->plan->unchanged};
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		if (vx_task_is_group(&l->g->tasks[i]))
			continue;
		const struct vx_outputs *declared = loop_outputs(l, i);
		v[n++] = (struct vx_store_known){.id = l->g->tasks[i].id,
			.entry = l->t[i].entry,
			.outputs = declared != NULL,
			.additive = declared && declared->additive};
	}
	bool good = vx_store_outputs(l->store, v, n, output, &o, &stamp) == 1;
	if (good)
		memcpy(a->store, stamp.v, sizeof a->store);
	free(v);
	return good;
}

/* Nothing ran and nothing was restored. */
static bool had_nothing_to_do(const struct loop *l)
{
	struct vx_core_counts c;
	vx_core_counts(l->core, &c);
	return !l->code && !l->first_signal && c.hits == c.total && c.done == c.total &&
	       l->up_to_date == c.total && l->writes && !vx_store_note(l->store);
}

void loop_keep_unchanged(struct loop *l)
{
	struct vx_unchanged *u = l->plan->unchanged;
	if (!u || !l->keyer || !had_nothing_to_do(l))
		return;
	struct vx_unchanged_answer a = {.n_tasks = l->up_to_date,
		.saved_ns = l->saved_ns,
		.store_dir = l->store_dir,
		.broad = l->plan->sel.broad};
	bool *seen = vx_xcalloc(l->plan->ws.n_projects + 1, sizeof *seen);
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		a.n_projects += !seen[l->g->tasks[i].project];
		seen[l->g->tasks[i].project] = true;
	}
	free(seen);
	struct vx_buf printed = VX_BUF(2U << 20);
	bool all = vx_report_transcript(l->report, &printed);
	a.printed = vx_buf_str(&printed);
	a.printed_n = printed.len;
	vx_unchanged_begin(u);
	if (all && vx_unchanged_keyer(u, l->keyer) && add_outputs(l, &a))
		(void)vx_unchanged_keep(u, &a);
	vx_buf_free(&printed);
}
