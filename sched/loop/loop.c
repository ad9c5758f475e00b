/* A run, from its lock to its exit code. */
#include "loop.h"

#include "vx/box.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/graph.h"
#include "vx/limits.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* Saves that may wait for their rows to be committed, beside those under way: more than make a
 * group, so that it is never the clock that they wait for. */
#define SAVES_WAITING (2 * VX_LANE_GROUP)
_Static_assert(SAVES_WAITING > VX_LANE_GROUP,
	"the last save of a group must be let in while the others wait for it");

/* How late it may be noticed at most that outputs have been captured, while all slots are taken. */
#define DOZE_MS 20

/* Signals come through a descriptor while the run lasts; the mask before it is put back at the
 * end. */
static int take_signals(struct loop *l, sigset_t *ret_old)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, ret_old);
	signal(SIGPIPE, SIG_IGN);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return l->signal_fd < 0 ? -errno : 0;
}

void loop_took_signal(struct loop *l)
{
	struct signalfd_siginfo si;
	while (vx_read(l->signal_fd, &si, sizeof si) == (ssize_t)sizeof si) {
		int sig = (int)si.ssi_signo;
		if (!l->first_signal) {
			l->first_signal = sig;
			l->grace_deadline_ns = vx_now_ns() + l->grace_ms * 1000000ULL;
			if (l->lane)
				vx_lane_interrupt(l->lane);
			vx_keyer_cancel(l->keyer);
			vx_report_interrupted(l->report);
		} else if (l->lane) {
			vx_lane_give_up(l->lane);
		}
		if (l->core)
			loop_event(
				l, &(struct vx_core_event){.kind = VX_EV_INTERRUPT, .signal = sig});
	}
}

static void lock_waits(void *arg, const char *holder)
{
	struct loop *l = arg;
	vx_report_warn(l->report, "vx run: waiting for %s, which works on this workspace", holder);
}

/* The store: not opened at all where nothing is read nor written. */
static int open_store(struct loop *l, struct vx_err *err)
{
	const struct vx_ws_settings *set = &l->plan->ws.settings;
	char *dir = NULL;
	int r = vx_store_dir(l->o->cache_dir, set->cache_dir, set->shared_store, l->plan->ws.root,
		&l->arena, &dir, err);
	if (r)
		return r;
	l->store_dir = dir;
	if (!loop_needs_keys(l))
		return 0;
	bool write = l->o->cache_write;
	struct vx_store_opts so = {.dir = dir,
		.workspace = l->plan->ws.root,
		.read = l->o->cache_read && !l->o->force,
		.write = write};
	r = vx_store_open(&so, &l->store, err);
	if (r)
		return r;
	l->writes = write && vx_store_writable(l->store);
	if (write && !l->writes && vx_store_why(l->store))
		vx_report_warn(l->report, "vx run: %s", vx_store_why(l->store));
	l->said_note = vx_store_note(l->store) != NULL;
	if (l->said_note)
		vx_report_warn(l->report, "vx run: %s", vx_store_note(l->store));
	return 0;
}

static bool cleans_outputs(const struct loop *l)
{
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		const struct vx_task_decl *d = l->g->tasks[i].decl;
		if (d->has_cache && (d->cache.out_files.n || d->cache.out_workspace_files.n))
			return true;
	}
	return false;
}

static int open_keyer(struct loop *l, struct vx_err *err)
{
	/* Without a cache it is still needed to tell tracked files from outputs. */
	if (!l->store && !cleans_outputs(l))
		return 0;
	struct vx_keyer_opts ko = {.forwarded = l->o->forwarded,
		.cache_dir = l->store_dir,
		.cancel_fd = l->signal_fd,
		.explain = l->o->summary_path != NULL,
		.ahead = l->plan->ahead,
		.snapshot = l->plan->snapshot};
	if (l->store) {
		l->memory = vx_run_key_memory(l->store);
		ko.mask_key = vx_store_mask_key(l->store);
		ko.memory = &l->memory;
	}
	uint64_t start = vx_now_ns();
	struct vx_err why = {0};
	int r = vx_keyer_new(&l->plan->ws, l->g, &ko, &l->keyer, &why);
	l->keys_ns += vx_now_ns() - start;
	if (r == -ENOENT && !l->store)
		return 0; /* no repository: nothing is tracked, and nobody needs a key */
	struct vx_keyer_stats ks = {0};
	if (!r)
		vx_keyer_stats(l->keyer, &ks);
	for (uint32_t i = 0; i < ks.said.n; i++)
		vx_report_warn(l->report, "vx run: %s", ks.said.v[i]);
	if (r && err)
		*err = why;
	return r;
}

static uint32_t count_persistent(const struct loop *l)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		n += !vx_task_is_group(&l->g->tasks[i]) && l->g->tasks[i].decl->exec.persistent;
	return n;
}

static int make_slots(struct loop *l, struct vx_err *err)
{
	uint32_t persistent = count_persistent(l);
	if (l->slots + persistent > VX_MAX_SLOTS) {
		vx_err_set(err, -ERANGE,
			"%u slots and %u persistent tasks are more than the limit of %u workers",
			l->slots, persistent, VX_MAX_SLOTS);
		return vx_err_fix(err, "ask for fewer with --concurrency");
	}
	l->worker_slots = l->slots + persistent;
	l->free_slots = vx_arena_array(&l->arena, l->worker_slots, sizeof *l->free_slots);
	l->slot_task = vx_arena_array(&l->arena, l->worker_slots, sizeof *l->slot_task);
	l->held = vx_arena_array(&l->arena, l->worker_slots, sizeof *l->held);
	for (uint32_t s = 0; s < l->worker_slots; s++) {
		l->free_slots[s] = l->worker_slots - 1 - s;
		l->slot_task[s] = VX_MAP_NONE;
	}
	l->n_free = l->worker_slots;
	return 0;
}

static int check_sandbox_mode(struct loop *l, struct vx_err *err)
{
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		const struct vx_task *t = &l->g->tasks[i];
		if (vx_task_is_group(t))
			continue;
		if (l->o->sandbox == VX_SANDBOX_REQUIRE && !t->decl->exec.sandboxed) {
			vx_err_set(err, -EPERM,
				"%s declares no sandbox, and --sandbox=require was given", t->id);
			return vx_err_fix(err, "add exec.sandbox to it in %s",
				t->decl->source ? t->decl->source : "its vx.json");
		}
		if (l->o->sandbox == VX_SANDBOX_OFF && t->decl->exec.sandboxed) {
			vx_report_alarm(l->report,
				"vx run: --sandbox=off: tasks that declare a sandbox run without one; neither they nor what runs after them is saved");
			break;
		}
	}
	return 0;
}

/* History: what tasks took when they last ran, for the order of dispatch. Read only when something
 * will run. */
static void predict(struct loop *l, struct vx_core_task *ct)
{
	uint32_t n = l->g->n_tasks;
	uint32_t *weights = vx_arena_array(&l->arena, n, sizeof *weights);
	vx_graph_weights(l->g, &l->arena, weights);
	for (uint32_t i = 0; i < n; i++)
		ct[i].weight = weights[i];
	if (!l->store)
		return;
	const char **ids = vx_xcalloc(n + 1, sizeof *ids);
	struct vx_history *h = vx_xcalloc(n + 1, sizeof *h);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = l->g->tasks[i].id;
	if (vx_store_history_get(l->store, ids, n, h) >= 0)
		for (uint32_t i = 0; i < n; i++)
			ct[i].predicted_ns = h[i].duration_ns;
	free(ids);
	free(h);
}

/* A task that was left out may have left on disk what an earlier state of its sources gave, while
 * keys say what the present one would give. */
static bool may_be_stale(const struct vx_task *t)
{
	const struct vx_cache_decl *c = &t->decl->cache;
	return t->excluded && t->decl->has_exec &&
	       !(t->decl->has_cache && !c->out_files.n && !c->out_workspace_files.n);
}

/* Whatever has such a task upstream is not saved if it runs. */
static void find_left_out(const struct loop *l, struct vx_core_task *ct)
{
	for (uint32_t k = 0; k < l->g->n_tasks; k++) {
		uint32_t i = l->g->topo[k];
		const struct vx_task *t = &l->g->tasks[i];
		for (uint32_t d = 0; d < t->n_deps + t->n_key_deps && !ct[i].unsaved; d++) {
			uint32_t up = d < t->n_deps ? t->deps[d] : t->key_deps[d - t->n_deps];
			ct[i].unsaved = ct[up].unsaved || may_be_stale(&l->g->tasks[up]);
		}
		if (ct[i].unsaved && !vx_task_is_group(t) && t->decl->has_cache)
			l->t[i].left_out = true;
	}
}

/* The core's view of every task; verdicts are there already. */
static void describe(struct loop *l, struct vx_core_task *ct)
{
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		const struct vx_task *t = &l->g->tasks[i];
		const struct vx_exec_decl *x = &t->decl->exec;
		ct[i].deps = t->deps;
		ct[i].n_deps = t->n_deps;
		ct[i].group = vx_task_is_group(t);
		ct[i].requested = t->requested;
		ct[i].cpus = 1;
		if (ct[i].group)
			continue;
		ct[i].persistent = x->persistent;
		ct[i].waits_ready = x->persistent && x->ready_when;
		ct[i].exclusive = x->exclusive;
		ct[i].cpus = x->cpus ? x->cpus : 1;
		ct[i].memory_bytes = x->memory_bytes;
		ct[i].retries = x->persistent     ? 0
				: x->retries >= 0 ? (uint32_t)x->retries
				: l->o->retry > 0 ? (uint32_t)l->o->retry
						  : 0;
	}
}

static bool all_hits(const struct loop *l, const struct vx_core_task *ct)
{
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		if (!vx_task_is_group(&l->g->tasks[i]) && ct[i].verdict != VX_V_HIT)
			return false;
	return true;
}

/* Is it known before there are keys that something will run? */
static bool sure_to_run(const struct loop *l)
{
	if (l->store && l->o->cache_read && !l->o->force && !vx_store_empty(l->store))
		return false;
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		if (!vx_task_is_group(&l->g->tasks[i]))
			return true;
	return false;
}

static bool any_memory(const struct loop *l)
{
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		if (l->g->tasks[i].decl->exec.memory_bytes)
			return true;
	return false;
}

static int set_up(struct loop *l, struct vx_err *err)
{
	struct vx_core_task *ct = vx_xcalloc(l->g->n_tasks + 1, sizeof *ct);
	struct vx_core_opts co = {.slots = l->slots,
		.policy = l->o->policy,
		.restore_lane = UINT32_MAX,
		.save_lane = 2 * l->slots + SAVES_WAITING};
	int r = check_sandbox_mode(l, err);
	if (!r)
		r = make_slots(l, err);
	if (!r)
		r = vx_workspace_lock(
			l->plan->ws.root, l->signal_fd, lock_waits, l, &l->lock_fd, err);
	if (!r)
		r = vx_lane_recover(l->plan->ws.root, err);
	if (!r && vx_box_sweep_records(vx_arena_printf(&l->arena, "%s/.vx/sweep", l->plan->ws.root),
			  err) == -EPERM)
		r = -EPERM;
	if (!r)
		r = open_store(l, err);
	if (!r && sure_to_run(l))
		loop_start_pool(l); /* its processes start while keys are made */
	if (!r)
		r = open_keyer(l, err);
	if (!r)
		loop_find_overlaps(l);
	if (!r && (l->store || l->keyer)) {
		if (!l->store) { /* no cache: the keyer only knows what is tracked */
			for (uint32_t i = 0; i < l->g->n_tasks; i++)
				ct[i].verdict = VX_V_NOCACHE;
		} else {
			r = loop_keys_ahead(l, ct, err);
		}
	} else if (!r) {
		r = loop_keys_ahead(l, ct, err);
	}
	if (r) {
		free(ct);
		return r;
	}
	l->all_hits = all_hits(l, ct);
	if (!l->all_hits) {
		loop_start_pool(l); /* its processes start while we go on */
		predict(l, ct);
		if (any_memory(l))
			co.memory_bytes = vx_memory_free();
	}
	describe(l, ct);
	find_left_out(l, ct);
	l->core = vx_core_new(&co, ct, l->g->n_tasks);
	free(ct);
	return 0;
}

/* The recorder, where the run is to leave a trace. */
static int start_trace(struct loop *l, struct vx_err *err)
{
	const struct vx_run_opts *o = l->o;
	if (!o->events_path && !o->profile_path && !o->report_html && !o->report_markdown)
		return 0;
	struct vx_trace_task *t = vx_arena_array(&l->arena, l->g->n_tasks + 1, sizeof *t);
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		const struct vx_task *g = &l->g->tasks[i];
		t[i] = (struct vx_trace_task){.id = g->id,
			.deps = g->deps,
			.n_deps = g->n_deps,
			.group = vx_task_is_group(g),
			.requested = g->requested};
		t[i].persistent = g->decl->has_exec && g->decl->exec.persistent;
	}
	l->trace = vx_trace_new(t, l->g->n_tasks, l->slots, o->start_ns);
	return o->events_path ? vx_trace_events(l->trace, o->events_path, err) : 0;
}

/* One wait for the world: signals, pool, lanes, time. */
static void wait_for_events(struct loop *l)
{
	struct pollfd fds[3] = {{.fd = l->signal_fd, .events = POLLIN},
		{.fd = l->pool ? l->executor.fd(l->executor.self) : -1, .events = POLLIN},
		{.fd = l->lane ? vx_lane_fd(l->lane) : -1, .events = POLLIN}};
	uint64_t now = vx_now_ns(), next = loop_next_deadline(l);
	int timeout = -1;
	struct vx_core_counts c;
	vx_core_counts(l->core, &c);
	if (l->lane && c.saving && !c.running && c.total - c.done <= c.saving)
		vx_lane_flush(l->lane); /* nothing can join the group any more */
	if (next != UINT64_MAX)
		timeout = next > now ? (int)((next - now + 999999) / 1000000) : 0;
	int tick = vx_report_next_tick_ms(l->report, now);
	if (tick >= 0 && (timeout < 0 || tick < timeout))
		timeout = tick;
	/* With all slots taken nothing can start for a save's sake, and whoever frees one wakes
	 * us. */
	bool doze = c.saving && !c.restoring && c.slots_used >= l->slots;
	if (l->lane && !vx_lane_doze(l->lane, doze))
		return;
	if (doze && (timeout < 0 || timeout > DOZE_MS))
		timeout = DOZE_MS;
	vx_trace_flush(l->trace);
	if (poll(fds, 3, timeout) > 0 && fds[0].revents)
		loop_took_signal(l);
}

/* What keys and plan leave for the next run. Where everything is a hit that is written while the
 * lanes restore; else at the end, when more is known. */
static bool remember_keys(struct loop *l)
{
	if (l->remembered || !l->store || !l->writes)
		return false;
	l->remembered = true;
	(void)vx_keyer_remember(l->keyer, false);
	return true;
}

static void work(struct loop *l)
{
	struct vx_core_decision d;
	while (!l->ended) {
		while (!l->ended && vx_core_next(l->core, &d))
			loop_act(l, &d);
		if (l->ended)
			break;
		bool any = loop_pool_events(l);
		any |= loop_lane_events(l);
		if (!any && !(l->all_hits && remember_keys(l)))
			wait_for_events(l);
		/* Also while events keep coming: deadlines and the live rows do not wait for a
		 * quiet moment. */
		struct vx_core_counts counts;
		uint64_t now = vx_now_ns();
		loop_expire(l, now);
		vx_core_counts(l->core, &counts);
		vx_report_counts(l->report, &counts);
		vx_report_tick(l->report, now);
	}
}

static void remember(struct loop *l)
{
	if (l->lane)
		vx_lane_flush(l->lane); /* of snapshots, meanwhile */
	if (!l->store || !l->writes)
		return;
	(void)vx_keyer_remember(l->keyer, true);
	uint32_t n = 0;
	const char **ids = vx_xcalloc(l->g->n_tasks + 1, sizeof *ids);
	struct vx_history *h = vx_xcalloc(l->g->n_tasks + 1, sizeof *h);
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		const struct loop_task *t = &l->t[i];
		if (!t->executed || t->status || t->end_ns <= t->start_ns)
			continue;
		ids[n] = l->g->tasks[i].id;
		h[n] = (struct vx_history){.duration_ns = t->end_ns - t->start_ns,
			.cpu_ns = t->cpu_ns,
			.peak_bytes = t->peak_bytes};
		if (t->keyed)
			h[n].last_key = vx_key_get(l->keyer, i)->key;
		n++;
	}
	if (n)
		(void)vx_store_history_put(l->store, ids, n, h);
	free(ids);
	free(h);
}

/* cacheRetention, where this run has saved something and all of it has settled. */
static void retain(struct loop *l)
{
	const struct vx_ws_settings *set = &l->plan->ws.settings;
	struct vx_err err = {0};
	if (l->writes && l->missed &&
		vx_store_retain(l->store, set->retention_older_than, set->retention_max_size, &err))
		vx_report_warn(l->report, err.fix[0] ? "vx run: %s (%s)" : "vx run: %s", err.what,
			err.fix);
}

static void free_tasks(struct loop *l)
{
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		struct loop_task *t = &l->t[i];
		vx_tasklog_free(t->log);
		vx_ready_free(t->matcher);
		vx_buf_free(&t->packed);
		free(t->stored);
	}
	free(l->t);
}

/* Lanes before the store (they write it), the pool before the lock: when the lock is free nothing
 * of ours works on the workspace any more. */
static void tear_down(struct loop *l, const sigset_t *old)
{
	vx_pool_end(l->pool);
	vx_lane_free(l->lane);
	vx_core_free(l->core);
	vx_trace_free(l->trace);
	vx_keyer_free(l->keyer);
	vx_store_close(l->store);
	free_tasks(l);
	vx_report_free(l->report);
	vx_close(l->lock_fd);
	vx_close(l->signal_fd);
	vx_map_free(&l->by_globs);
	vx_buf_free(&l->globs_key);
	free(l->globs);
	vx_arena_free(&l->arena);
	sigprocmask(SIG_SETMASK, old, NULL);
	signal(SIGPIPE, SIG_DFL);
}

/* What tasks of a turbo.json say of their own output. "full" is its default, and ours is
 * another. */
static const uint8_t *task_logs(struct loop *l)
{
	uint8_t *logs = NULL;
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		const char *word = l->g->tasks[i].decl->output_logs;
		enum vx_output_logs v = VX_LOGS_DEFAULT;
		if (!word || vx_output_logs_parse(word, &v) || v == VX_LOGS_FULL)
			continue;
		if (!logs)
			logs = vx_arena_array(&l->arena, l->g->n_tasks, sizeof *logs);
		logs[i] = (uint8_t)v;
	}
	return logs;
}

static struct vx_report *make_report(struct loop *l)
{
	struct vx_report_opts ro = {.broad = l->plan->sel.broad,
		.logs = l->o->logs,
		.task_logs = task_logs(l),
		.verbosity = l->o->verbosity,
		.slots = l->slots,
		.start_ns = l->o->start_ns,
		/* there stdout holds nothing but JSON */
		.out_fd = l->o->events_path && !strcmp(l->o->events_path, "-") ? 2 : 1,
		.err_fd = 2,
		.env = (const char *const *)l->env};
	bool *seen = vx_xcalloc(l->plan->ws.n_projects + 1, sizeof *seen);
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		ro.n_tasks += !vx_task_is_group(&l->g->tasks[i]);
		ro.n_projects += !seen[l->g->tasks[i].project];
		seen[l->g->tasks[i].project] = true;
	}
	free(seen);
	return vx_report_new(&ro);
}

static int env_number(
	const char *name, uint64_t max, bool *ret_given, uint64_t *ret, struct vx_err *err)
{
	const char *text = getenv(name);
	*ret_given = text && *text;
	if (!*ret_given || !vx_parse_u64(text, max, ret))
		return 0;
	vx_err_set(err, -EINVAL, "%s=%s is not understood", name, text);
	return vx_err_fix(err, "milliseconds from 0 to %llu", (unsigned long long)max);
}

static int read_environment(struct loop *l, struct vx_err *err)
{
	bool given;
	uint64_t ms;
	int r = env_number("VX_KILL_GRACE_MS", 600000, &given, &ms, err);
	if (!r && given)
		l->grace_ms = (uint32_t)ms;
	if (!r)
		r = env_number("VX_TASK_TIMEOUT", VX_MAX_TIMEOUT_MS, &given, &ms, err);
	l->env_timeout_ms = !r && given ? (int64_t)ms : -1;
	return r;
}

int vx_run(const struct vx_run_opts *o, struct vx_plan *p, struct vx_err *err)
{
	struct loop *l = vx_xcalloc(1, sizeof *l);
	sigset_t old;
	*l = (struct loop){.o = o,
		.plan = p,
		.g = &p->graph,
		.env = environ,
		.signal_fd = -1,
		.lock_fd = -1,
		.grace_ms = VX_DEFAULT_GRACE_MS,
		.globs_key = VX_BUF(SIZE_MAX / 2)};
	int r = read_environment(l, err);
	if (!r)
		r = vx_concurrency(o->concurrency ? o->concurrency : p->ws.settings.concurrency,
			&l->slots, err);
	if (r) {
		free(l);
		return r;
	}
	uint32_t asked = l->slots;
	uint64_t files;
	l->slots = vx_affordable_slots(asked, &files);
	l->t = vx_xcalloc(p->graph.n_tasks + 1, sizeof *l->t);
	for (uint32_t i = 0; i < p->graph.n_tasks; i++) {
		l->t[i].loop = l;
		l->t[i].index = i;
	}
	l->report = make_report(l);
	if (l->slots < asked)
		vx_report_warn(l->report,
			"vx run: at most %u of %u slots are used, for only %llu files may be open (raise the limit: ulimit -n)",
			l->slots, asked, (unsigned long long)files);
	for (uint32_t i = 0; i < p->ws.warnings.n; i++)
		vx_report_warn(l->report, "vx run: %s", p->ws.warnings.v[i]);
	r = take_signals(l, &old);
	if (r)
		vx_err_set(err, r, "signals cannot be watched: %s", vx_strerror(r));
	else
		r = start_trace(l, err);
	if (!r)
		r = set_up(l, err);
	l->setup_ns = vx_now_ns() - o->start_ns;
	if (l->trace)
		vx_trace_phase(l->trace, "plan", o->start_ns, o->start_ns + l->setup_ns);
	if (!r) {
		work(l);
		remember(l);
		retain(l);
		loop_keep_unchanged(l);
		loop_finish(l);
		loop_write_stats(l);
		loop_write_summary(l);
		r = l->code;
	} else if (r == -ECANCELED) {
		loop_took_signal(l);
		r = 128 + (l->first_signal ? l->first_signal : SIGTERM);
	}
	tear_down(l, &old);
	free(l);
	return r;
}
