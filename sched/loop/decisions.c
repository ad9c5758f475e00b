/* What the core decided, carried out. */
#include "loop.h"

#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/limits.h"
#include "vx/workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool loop_start_pool(struct loop *l)
{
	if (l->pool)
		return true;
	/* also where a hit turned out damaged, after a start that expected nothing to run */
	if (!l->project_path)
		loop_env_init(l);
	struct vx_err err = {0};
	struct vx_pool_opts po = {.slots = l->worker_slots,
		.init_path = l->o->init_path,
		.bwrap_path = l->o->bwrap_path};
	if (vx_pool_start(&po, &l->pool, &err)) {
		if (!l->said_no_pool) /* it is tried again for each task */
			vx_report_warn(l->report, "vx run: no worker can be started: %s", err.what);
		l->said_no_pool = true;
		l->pool = NULL;
		return false;
	}
	l->executor = vx_local_executor(l->pool);
	return true;
}

/* A manifest or configuration where a project has it: never removed, even where git does not know
 * it yet and outputs name it. */
static bool describes_project(const struct vx_workspace *ws, const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	size_t n = slash ? (size_t)(slash - path) : 0;
	bool found = vx_dir_file_bit(name, strlen(name)) != 0;
	if (!found || !n)
		return found;
	uint32_t p = vx_workspace_project_at(ws, path);
	return p != VX_MAP_NONE && strncmp(ws->projects[p].dir, path, n) == 0 &&
	       ws->projects[p].dir[n] == 0;
}

static bool tracked(void *arg, const char *path)
{
	struct loop *l = arg;
	return (l->keyer && vx_keyer_tracked(l->keyer, path)) ||
	       describes_project(&l->plan->ws, path);
}

bool loop_start_lane(struct loop *l)
{
	if (l->lane)
		return true;
	struct vx_err err = {0};
	struct vx_lane_opts lo = {.store = l->store,
		.root = l->plan->ws.root,
		.slots = l->slots,
		.tracked = tracked,
		.arg = l};
	if (vx_lane_new(&lo, &l->lane, &err)) {
		vx_report_warn(l->report,
			"vx run: the save and restore lanes cannot be started: %s", err.what);
		l->lane = NULL;
		return false;
	}
	return true;
}

/* Most projects of a workspace say the same: equal lists are compiled once. */
static const struct vx_globset *compile(
	struct loop *l, struct vx_strs patterns, enum vx_dialect dialect)
{
	struct vx_globset *set = NULL;
	struct vx_err err = {0};
	if (!patterns.n)
		return NULL;
	vx_buf_clear(&l->globs_key);
	vx_buf_addc(&l->globs_key, (char)dialect);
	for (uint32_t i = 0; i < patterns.n; i++)
		vx_buf_add(&l->globs_key, patterns.v[i], strlen(patterns.v[i]) + 1);
	uint32_t at = vx_map_get(&l->by_globs, l->globs_key.data, l->globs_key.len);
	if (at != VX_MAP_NONE)
		return l->globs[at];
	if (vx_globset_compile(patterns, dialect, &l->arena, &set, &err)) {
		/* The load has compiled them all once: only memory or a limit can fail here. */
		vx_report_warn(l->report, "vx run: output globs: %s", err.what);
		return NULL;
	}
	if (l->n_globs == l->cap_globs) {
		l->cap_globs = l->cap_globs ? 2 * l->cap_globs : 16;
		l->globs = vx_xrealloc(l->globs, l->cap_globs * sizeof *l->globs);
	}
	l->globs[l->n_globs] = vx_globset_empty(set) ? NULL : set;
	vx_map_put(&l->by_globs, vx_arena_dup(&l->arena, l->globs_key.data, l->globs_key.len),
		l->globs_key.len, l->n_globs);
	return l->globs[l->n_globs++];
}

const struct vx_outputs *loop_outputs(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	const struct vx_task *g = &l->g->tasks[task];
	const struct vx_project *p = &l->plan->ws.projects[g->project];
	if (!g->decl->has_cache)
		return NULL;
	if (!t->outputs_known) {
		t->outputs_known = true;
		t->outputs = (struct vx_outputs){
			.files = compile(l, g->decl->cache.out_files, g->decl->dialect),
			.dir = p->dir,
			.workspace_files =
				compile(l, g->decl->cache.out_workspace_files, g->decl->dialect),
			.nested = p->nested};
	}
	return t->outputs.files || t->outputs.workspace_files ? &t->outputs : NULL;
}

static void do_key(struct loop *l, uint32_t task)
{
	struct vx_core_event e = {.kind = VX_EV_KEYED, .task = task};
	e.verdict = l->keyer ? loop_key_late(l, task) : VX_V_NOCACHE;
	loop_event(l, &e);
}

/* No outputs and no log: the row says it all, and it was read a moment ago. */
static bool is_row_alone(struct loop *l, uint32_t task)
{
	const struct vx_entry *e = l->t[task].entry;
	return e->silent && !e->n_outputs && !loop_outputs(l, task);
}

/* The longest way to what has nothing upstream. */
static uint32_t level_of(struct loop *l, uint32_t task)
{
	if (!l->levels) {
		l->levels = vx_arena_array(&l->arena, l->g->n_tasks + 1, sizeof *l->levels);
		for (uint32_t k = 0; k < l->g->n_tasks; k++) {
			const struct vx_task *t = &l->g->tasks[l->g->topo[k]];
			uint32_t *at = &l->levels[l->g->topo[k]];
			*at = 0;
			for (uint32_t d = 0; d < t->n_deps; d++)
				if (l->levels[t->deps[d]] >= *at)
					*at = l->levels[t->deps[d]] + 1;
		}
	}
	return l->levels[task];
}

static bool hand_to_lane(struct loop *l, uint32_t task)
{
	struct vx_restore_req r = {
		.task = task, .id = l->g->tasks[task].id, .entry = *l->t[task].entry};
	const struct vx_outputs *o = loop_outputs(l, task);
	if (o)
		r.outputs = *o;
	else
		r.outputs = (struct vx_outputs){
			.dir = l->plan->ws.projects[l->g->tasks[task].project].dir};
	r.level = level_of(l, task);
	if (!loop_start_lane(l))
		return false;
	vx_lane_restore(l->lane, &r);
	return true;
}

void loop_restore_early(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	t->restore_begun =
		!is_row_alone(l, task) && !loop_restore_waits(l, task) && hand_to_lane(l, task);
}

static void do_restore(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	bool begun = t->restore_begun;
	t->restore_begun = false;
	if (begun)
		return;
	if (is_row_alone(l, task)) {
		t->up_to_date = true;
		loop_event(l,
			&(struct vx_core_event){.kind = VX_EV_RESTORED, .task = task, .ok = true});
	} else if (loop_restore_waits(l, task)) {
		t->restore_waits = true;
		l->n_waiting++;
	} else if (!hand_to_lane(l, task)) {
		loop_event(l,
			&(struct vx_core_event){.kind = VX_EV_RESTORED, .task = task, .ok = false});
	}
}

/* What waits for those whose outputs it overlaps. */
static void wake_restores(struct loop *l)
{
	for (uint32_t i = 0; l->n_waiting && i < l->g->n_tasks; i++) {
		if (!l->t[i].restore_waits || loop_restore_waits(l, i))
			continue;
		l->t[i].restore_waits = false;
		l->n_waiting--;
		do_restore(l, i);
	}
}

static void do_run(struct loop *l, const struct vx_core_decision *d)
{
	struct loop_task *t = &l->t[d->task];
	const struct vx_task *g = &l->g->tasks[d->task];
	t->attempt = d->attempt;
	t->unsaved = d->unsaved;
	if (t->left_out && l->writes && !l->said_left_out) {
		vx_report_warn(l->report,
			"vx run: %s runs on what the tasks that --exclude-dependencies leaves out have left on disk, and is not saved (so for each such task); run it with its dependencies to cache it",
			g->id);
		l->said_left_out = true;
	}
	t->stop_wanted = false;
	t->ready = false;
	t->executed = true;
	t->decided_ns = vx_now_ns();
	t->cache =
		g->decl->has_cache && !g->decl->exec.persistent && !t->no_entry && !l->o->no_cache
			? VX_C_MISS
			: VX_C_NOCACHE;
	if (t->keyed && t->cache == VX_C_MISS)
		/* what cannot be listed cannot be checked again, and is not saved */
		(void)vx_key_fill(l->keyer, d->task, NULL);
	const struct vx_outputs *o = loop_outputs(l, d->task);
	if (o && loop_start_lane(l) && !vx_lane_clean_already(l->lane, o)) {
		t->phase = PH_CLEANING;
		vx_lane_clean(l->lane, d->task, o);
	} else {
		loop_dispatch(l, d->task);
	}
}

/* The log and the readiness matcher of a new attempt. */
static bool prepare(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	const struct vx_exec_decl *x = &l->g->tasks[task].decl->exec;
	struct vx_err err = {0};
	if (!t->log)
		t->log = vx_tasklog_new(vx_secrets());
	else
		vx_tasklog_clear(t->log);
	if (x->ready_when && !t->matcher && vx_ready_new(x->ready_when, &t->matcher, &err)) {
		loop_failed_start(l, task, VX_END_SPAWN, err.what);
		return false;
	}
	return true;
}

void loop_dispatch(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	const struct vx_task *g = &l->g->tasks[task];
	struct vx_task_desc d;
	struct vx_err err = {0};
	if (!loop_start_pool(l) || loop_describe(l, task, &d, &err)) {
		loop_failed_start(
			l, task, VX_END_SPAWN, err.what[0] ? err.what : "there is no worker");
		return;
	}
	if (d.sandboxed && l->arm == ARM_REFUSED) {
		loop_failed_start(l, task, VX_END_REFUSED, "sandbox not available");
		return;
	}
	if (t->phase != PH_ARMING) {
		/* the core never runs more than there are slots and persistent tasks */
		vx_assert(l->n_free > 0);
		t->slot = l->free_slots[--l->n_free];
		l->slot_task[t->slot] = task;
	}
	if (d.sandboxed && l->arm != ARM_OK) {
		t->phase = PH_ARMING;
		l->held[l->n_held++] = task;
		if (l->arm == ARM_NONE) {
			l->arm = ARM_ASKED;
			if (vx_pool_arm(l->pool, t->slot, d.sandbox.weaker))
				loop_armed(l,
					&(struct vx_done){.end = VX_END_REFUSED,
						.text = "no worker could be asked (run it again)"});
		}
		return;
	}
	if (!prepare(l, task))
		return;
	bool has_requests = g->decl->cache.runtime.n || g->decl->cache.workspace_runtime.n;
	struct vx_exec_request r = {
		.desc = &d, .pinned = d.persistent || d.sandboxed || has_requests};
	int code = l->executor.start(l->executor.self, t->slot, &r, &err);
	if (code) {
		loop_failed_start(
			l, task, VX_END_SPAWN, err.what[0] ? err.what : vx_strerror(code));
		return;
	}
	t->phase = PH_RUNNING;
	t->start_ns = vx_now_ns();
	if (g->decl->exec.persistent && t->matcher) {
		uint64_t ms = loop_timeout_ms(l, &g->decl->exec);
		t->ready_deadline_ns = ms ? t->start_ns + ms * 1000000ULL : 0;
		l->timers += ms != 0;
	}
	vx_report_started(
		l->report, task, g->id, g->requested, g->decl->exec.persistent, t->attempt);
}

void loop_armed(struct loop *l, const struct vx_done *done)
{
	uint32_t n = l->n_held;
	l->arm = done->end == VX_END_EXIT && done->code == 0 ? ARM_OK : ARM_REFUSED;
	loop_say_less(l, done->flags);
	if (l->arm == ARM_REFUSED)
		vx_report_warn(l->report,
			vx_starts_with(done->text, "sandbox not available")
				? "vx run: %s"
				: "vx run: sandbox not available: %s",
			done->text);
	l->n_held = 0;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t task = l->held[i];
		if (l->arm == ARM_REFUSED || l->t[task].stop_wanted)
			loop_failed_start(l, task,
				l->t[task].stop_wanted ? VX_END_STOPPED : VX_END_REFUSED,
				"sandbox not available");
		else
			loop_dispatch(l, task);
	}
}

static int recheck(void *arg, char *ret_what, size_t cap)
{
	const struct loop_task *t = arg;
	return vx_key_recheck(t->loop->keyer, vx_key_get(t->loop->keyer, t->index), ret_what, cap);
}

static void do_save(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	const struct vx_outputs *o = loop_outputs(l, task);
	t->packed = VX_BUF(VX_KEEP_HEAD_BYTES + VX_KEEP_TAIL_BYTES + (1U << 20));
	vx_tasklog_store(t->log, &t->packed);
	struct vx_save_req r = {.task = task,
		.id = l->g->tasks[task].id,
		.key = vx_key_get(l->keyer, task)->key,
		.log = t->packed.data,
		.log_bytes = t->packed.len,
		.duration_ns = t->end_ns - t->start_ns,
		.cpu_ns = t->cpu_ns,
		.peak_bytes = t->peak_bytes,
		.peak_is_tree = t->peak_is_tree,
		.recheck = recheck,
		.arg = t};
	if (o)
		r.outputs = *o;
	else
		r.outputs = (struct vx_outputs){
			.dir = l->plan->ws.projects[l->g->tasks[task].project].dir};
	if (t->packed.overflow || !loop_start_lane(l))
		loop_event(l, &(struct vx_core_event){.kind = VX_EV_SETTLED, .task = task});
	else
		vx_lane_save(l->lane, &r);
}

static void do_stop(struct loop *l, const struct vx_core_decision *d)
{
	struct loop_task *t = &l->t[d->task];
	t->stop_wanted = true;
	if (t->phase == PH_RUNNING) {
		l->executor.stop(l->executor.self, t->slot, d->signal);
		if (!l->first_signal && d->signal != 9 && !t->stop_deadline_ns) {
			t->stop_deadline_ns = vx_now_ns() + l->grace_ms * 1000000ULL;
			l->timers++;
		}
		return;
	}
	/* While the verdict is asked for its slot is busy: loop_armed ends the task, unless no
	 * verdict comes within the grace. */
	for (uint32_t i = 0; d->signal == 9 && t->phase == PH_ARMING && i < l->n_held; i++)
		if (l->held[i] == d->task) {
			l->held[i] = l->held[--l->n_held];
			loop_failed_start(l, d->task, VX_END_STOPPED, "");
			break;
		}
	/* PH_CLEANING: its CLEANED event sees stop_wanted. */
}

static void do_done(struct loop *l, const struct vx_core_decision *d)
{
	struct loop_task *t = &l->t[d->task];
	const struct vx_task *g = &l->g->tasks[d->task];
	char hex[VX_DIGEST_HEX] = "";
	t->result = d->result;
	if (t->keyed)
		vx_hex(vx_key_get(l->keyer, d->task)->key.b, VX_DIGEST_BYTES, hex);
	struct vx_task_end e = {.task = d->task,
		.id = g->id,
		.requested = g->requested,
		.result = d->result,
		.status = t->status,
		.note = t->note,
		.unrun = !t->executed,
		.flaky = d->flaky};
	e.key_hex = hex[0] ? hex : NULL;
	e.cache = t->cache;
	if (d->result == VX_R_HIT) {
		e.cache = t->up_to_date ? VX_C_UP_TO_DATE : VX_C_RESTORED;
		e.saved_ns = t->entry->duration_ns;
		e.stored = t->stored;
		e.stored_bytes = t->stored_bytes;
		e.status = NULL;
		l->saved_ns += t->entry->duration_ns;
		l->up_to_date += t->up_to_date;
		l->restored += !t->up_to_date;
	} else if (d->result == VX_R_SKIPPED) {
		e.status = vx_arena_printf(
			&l->arena, "skipped: %s failed", l->g->tasks[d->blocker].id);
	} else if (d->result == VX_R_SUCCESS) {
		e.status = NULL;
	}
	if (t->executed) {
		e.log = t->log;
		e.wall_ns = t->end_ns > t->start_ns ? t->end_ns - t->start_ns : 0;
		e.cpu_ns = t->cpu_ns;
		e.peak_bytes = t->peak_bytes;
		e.peak_is_tree = t->peak_is_tree;
		e.leftover_cut = t->leftover_cut;
		l->missed += t->cache == VX_C_MISS;
		l->nocache += t->cache == VX_C_NOCACHE;
	}
	vx_report_ended(l->report, &e);
	if (l->trace)
		vx_trace_ended(l->trace, vx_now_ns(), &e);
	/* the report frames failures at the end: it may still want the log */
	if (d->result != VX_R_FAILED) {
		vx_tasklog_free(t->log);
		t->log = NULL;
	}
	free(t->stored);
	t->stored = NULL;
	if (l->n_waiting)
		wake_restores(l);
}

void loop_act(struct loop *l, const struct vx_core_decision *d)
{
	if (l->trace)
		vx_trace_decision(l->trace, vx_now_ns(), d);
	switch (d->what) {
	case VX_DO_KEY:
		do_key(l, d->task);
		break;
	case VX_DO_RESTORE:
		do_restore(l, d->task);
		break;
	case VX_DO_RUN:
		do_run(l, d);
		break;
	case VX_DO_SAVE:
		do_save(l, d->task);
		break;
	case VX_DO_STOP:
		do_stop(l, d);
		break;
	case VX_DO_RETRY:
		vx_report_retry(l->report, d->task, d->attempt,
			l->t[d->task].status ? l->t[d->task].status : "failed");
		break;
	case VX_DO_DONE:
		do_done(l, d);
		break;
	case VX_DO_END:
		l->ended = true;
		l->code = d->code;
		break;
	}
}
