/* What the pool and the lanes say, turned into the core's events. */
#include "loop.h"

#include "vx/assert.h"
#include "vx/clock.h"

#include <stdlib.h>
#include <string.h>

void loop_event(struct loop *l, const struct vx_core_event *e)
{
	if (l->trace)
		vx_trace_event(l->trace, vx_now_ns(), e);
	vx_core_event(l->core, e);
}

static void release_slot(struct loop *l, uint32_t task)
{
	struct loop_task *t = &l->t[task];
	if (l->slot_task[t->slot] != task) /* it had none: it failed before it got one */
		return;
	l->slot_task[t->slot] = VX_MAP_NONE;
	l->free_slots[l->n_free++] = t->slot;
}

static void clear_timers(struct loop *l, struct loop_task *t)
{
	l->timers -= (t->stop_deadline_ns != 0) + (t->ready_deadline_ns != 0);
	t->stop_deadline_ns = t->ready_deadline_ns = 0;
}

void loop_failed_start(struct loop *l, uint32_t task, enum vx_end end, const char *text)
{
	struct vx_done done = {.end = (uint16_t)end, .task = task};
	done.start_ns = done.end_ns = vx_now_ns();
	memcpy(done.text, text, strnlen(text, sizeof done.text - 1));
	loop_exited(l, task, &done);
}

/* May this result be saved? */
static bool saveable(struct loop *l, uint32_t task)
{
	const struct vx_task *g = &l->g->tasks[task];
	const struct loop_task *t = &l->t[task];
	return g->decl->has_cache && !g->decl->exec.persistent && t->keyed && !t->unsaved &&
	       !t->no_entry && l->writes && !l->first_signal && !t->stop_wanted &&
	       !loop_unboxed(l, task);
}

/* A task that is less confined than it asks for is never so without a word: one line for each way,
 * in a run. */
void loop_say_less(struct loop *l, uint32_t flags)
{
	static const struct {
		uint32_t flag;
		const char *text;
	} ways[] = {
		{VX_DONE_NO_MEMORY_LIMIT,
			"resources.memory is no limit here: no cgroup with the memory controller can be made (run vx as root, or where its cgroup "
			"hands `memory` on)"},
		{VX_DONE_HOST_PROC,
			"no /proc can be mounted here: sandboxed tasks see the one of the host, read-only, as their weakerWhenNested allows"},
		{VX_DONE_HOST_PIPES,
			"this kernel has no Landlock (5.19 or newer, and `landlock` in lsm=): sandboxed tasks can write to named pipes of the host"},
		{VX_DONE_PLAIN,
			"only bubblewrap may make namespaces here (AppArmor), so it makes every mount itself: slower, and at most 9,000 arguments"},
	};
	for (size_t i = 0; i < VX_ARRAY_LEN(ways); i++)
		if (flags & ways[i].flag & ~l->said_less)
			vx_report_warn(l->report, "vx run: %s", ways[i].text);
	l->said_less |= flags;
}

void loop_exited(struct loop *l, uint32_t task, const struct vx_done *done)
{
	struct loop_task *t = &l->t[task];
	bool ok = done->end == VX_END_EXIT && done->code == 0 && !(done->flags & VX_DONE_VIOLATION);
	release_slot(l, task);
	clear_timers(l, t);
	t->phase = PH_IDLE;
	t->status = loop_status(l, task, done);
	/* What the worker has to say of a command that ran; what it says of one that did not is the
	 * status. */
	t->note = done->text[0] && (done->end == VX_END_EXIT || done->end == VX_END_SIGNAL)
			  ? vx_arena_strdup(&l->arena, done->text)
			  : NULL;
	t->less = done->flags;
	loop_say_less(l, done->flags);
	if (l->g->tasks[task].decl->exec.persistent && t->matcher && !t->ready && !t->stop_wanted)
		t->status = done->end == VX_END_STOPPED
				    ? "timed out before it was ready" /* nobody else stops a server
									 that is waited for */
			    : t->status ? vx_arena_printf(
						  &l->arena, "%s before it was ready", t->status)
					: "exited before it was ready";
	t->start_ns = done->start_ns ? done->start_ns : t->start_ns;
	t->end_ns = done->end_ns > t->start_ns ? done->end_ns : t->start_ns;
	t->cpu_ns = done->cpu_ns;
	t->peak_bytes = done->peak_bytes;
	t->peak_is_tree = done->flags & VX_DONE_PEAK_IS_TREE;
	t->leftover_cut = done->flags & VX_DONE_CUT_LEFTOVER;
	l->sandbox_setup_ns += done->setup_ns;
	if (done->start_ns > t->decided_ns + done->setup_ns)
		l->dispatch_ns += done->start_ns - t->decided_ns - done->setup_ns;
	l->last_exit_ns = t->end_ns;
	if (t->executed)
		vx_report_exited(l->report, task);
	if (l->keyer)
		vx_keyer_ran(l->keyer, task);
	struct vx_core_event e = {.kind = VX_EV_EXITED,
		.task = task,
		.ok = ok,
		.save = ok && saveable(l, task),
		.moved = loop_unboxed(l, task)};
	loop_event(l, &e);
}

static void shown(void *arg, int stream, const void *p, size_t n)
{
	const struct loop_task *t = arg;
	vx_report_output(t->loop->report, t->index, stream, p, n);
}

static void took_output(struct loop *l, const struct vx_pool_event *e)
{
	struct loop_task *t = &l->t[e->task];
	if (t->phase != PH_RUNNING || e->attempt != t->attempt || !t->log)
		return;
	vx_tasklog_add(t->log, e->stream, e->bytes, e->length, shown, t);
	if (!t->matcher || t->ready || !vx_ready_feed(t->matcher, e->bytes, e->length))
		return;
	t->ready = true;
	l->timers -= t->ready_deadline_ns != 0;
	t->ready_deadline_ns = 0;
	vx_report_ready(l->report, e->task);
	loop_event(l, &(struct vx_core_event){.kind = VX_EV_READY, .task = e->task});
}

static void took_exit(struct loop *l, const struct vx_pool_event *e)
{
	struct loop_task *t = &l->t[e->task];
	if (t->phase != PH_RUNNING || e->attempt != t->attempt)
		return;
	if (e->kind == VX_POOL_LOST) {
		release_slot(l, e->task);
		clear_timers(l, t);
		t->phase = PH_IDLE;
		t->status = loop_status(l, e->task, &e->done);
		t->end_ns = vx_now_ns();
		vx_tasklog_end(t->log, shown, t);
		vx_report_exited(l->report, e->task);
		if (l->keyer)
			vx_keyer_ran(l->keyer, e->task);
		loop_event(l, &(struct vx_core_event){.kind = VX_EV_LOST, .task = e->task});
		return;
	}
	if (e->done.end == VX_END_SPAWN && !t->shell && !t->stop_wanted) {
		/* Taken apart, it could not be executed: the shell may do something else with it,
		 * or says better why not. */
		t->shell = true;
		release_slot(l, e->task);
		clear_timers(l, t);
		t->phase = PH_IDLE;
		loop_dispatch(l, e->task);
		return;
	}
	vx_tasklog_end(t->log, shown, t);
	loop_exited(l, e->task, &e->done);
}

bool loop_pool_events(struct loop *l)
{
	struct vx_pool_event e;
	bool any = false;
	while (l->pool && l->executor.next(l->executor.self, &e) > 0) {
		any = true;
		switch (e.kind) {
		case VX_POOL_STARTED:
			if (l->t[e.task].phase == PH_RUNNING && e.attempt == l->t[e.task].attempt) {
				loop_say_less(l, e.done.flags);
				loop_event(l, &(struct vx_core_event){.kind = VX_EV_STARTED,
						      .task = e.task,
						      .moved = loop_unboxed(l, e.task)});
			}
			break;
		case VX_POOL_OUTPUT:
			took_output(l, &e);
			break;
		case VX_POOL_EXITED:
		case VX_POOL_LOST:
			if (l->arm == ARM_ASKED && l->slot_task[e.slot] != VX_MAP_NONE &&
				l->t[l->slot_task[e.slot]].phase == PH_ARMING)
				loop_armed(l,
					&(struct vx_done){.end = VX_END_REFUSED,
						.text = "the worker that tried it died (run it again)"});
			else
				took_exit(l, &e);
			break;
		case VX_POOL_ARMED:
			loop_armed(l, &e.done);
			break;
		}
	}
	return any;
}

static void settled(struct loop *l, const struct vx_lane_event *e)
{
	struct loop_task *t = &l->t[e->task];
	vx_buf_free(&t->packed);
	t->saved = e->ok;
	if (!e->ok) {
		if (e->text[0] && !l->first_signal) /* after an interrupt that is what was asked
						       for, and the end has the count */
			vx_report_warn(l->report, "vx run: %s", e->text);
	} else if (e->not_portable && !l->not_portable++) {
		l->not_portable_task = e->task;
	}
	loop_event(
		l, &(struct vx_core_event){
			   .kind = VX_EV_SETTLED, .task = e->task, .ok = e->ok, .moved = e->moved});
}

static void restored(struct loop *l, const struct vx_lane_event *e)
{
	struct loop_task *t = &l->t[e->task];
	if (e->text[0])
		vx_report_warn(l->report, "vx run: %s", e->text);
	t->up_to_date = e->up_to_date;
	if (l->keyer && !e->up_to_date)
		vx_keyer_ran(l->keyer, e->task); /* its outputs have just been written */
	if (e->ok && e->log_bytes) {
		t->stored = vx_xmalloc(e->log_bytes);
		memcpy(t->stored, e->log, e->log_bytes);
		t->stored_bytes = e->log_bytes;
	}
	loop_event(
		l, &(struct vx_core_event){.kind = VX_EV_RESTORED, .task = e->task, .ok = e->ok});
}

static void cleaned(struct loop *l, const struct vx_lane_event *e)
{
	struct loop_task *t = &l->t[e->task];
	if (t->stop_wanted) {
		loop_failed_start(l, e->task, VX_END_STOPPED, "");
	} else if (!e->ok) {
		loop_failed_start(l, e->task, VX_END_SPAWN, e->text);
	} else {
		if (e->text[0] && !l->said_tracked)
			vx_report_warn(l->report,
				"vx run: %s: %s (leave them out of its outputs, or out of git)",
				l->g->tasks[e->task].id, e->text);
		l->said_tracked |= e->text[0] != 0;
		loop_dispatch(l, e->task);
	}
}

bool loop_lane_events(struct loop *l)
{
	struct vx_lane_event e;
	bool any = false;
	while (l->lane && vx_lane_next(l->lane, &e)) {
		any = true;
		switch (e.kind) {
		case VX_LANE_CLEANED:
			cleaned(l, &e);
			break;
		case VX_LANE_RESTORED:
			restored(l, &e);
			break;
		case VX_LANE_CAPTURED:
			loop_event(
				l, &(struct vx_core_event){.kind = VX_EV_CAPTURED, .task = e.task});
			break;
		case VX_LANE_SETTLED:
			settled(l, &e);
			break;
		}
	}
	return any;
}

uint64_t loop_next_deadline(const struct loop *l)
{
	uint64_t next = l->grace_deadline_ns ? l->grace_deadline_ns : UINT64_MAX;
	for (uint32_t s = 0; l->timers && s < l->worker_slots; s++) {
		if (l->slot_task[s] == VX_MAP_NONE)
			continue;
		const struct loop_task *t = &l->t[l->slot_task[s]];
		if (t->stop_deadline_ns && t->stop_deadline_ns < next)
			next = t->stop_deadline_ns;
		if (t->ready_deadline_ns && t->ready_deadline_ns < next)
			next = t->ready_deadline_ns;
	}
	return next;
}

void loop_expire(struct loop *l, uint64_t now_ns)
{
	if (l->grace_deadline_ns && now_ns >= l->grace_deadline_ns) {
		l->grace_deadline_ns = 0;
		if (l->lane)
			vx_lane_give_up(l->lane);
		loop_event(
			l, &(struct vx_core_event){.kind = VX_EV_GRACE_OVER, .task = VX_CORE_ALL});
	}
	for (uint32_t s = 0; l->timers && s < l->worker_slots; s++) {
		uint32_t task = l->slot_task[s];
		if (task == VX_MAP_NONE)
			continue;
		struct loop_task *t = &l->t[task];
		if (t->ready_deadline_ns && now_ns >= t->ready_deadline_ns) {
			/* Never became ready: SIGTERM now, SIGKILL after the grace. */
			t->ready_deadline_ns = 0;
			t->stop_deadline_ns = now_ns + l->grace_ms * 1000000ULL;
			l->executor.stop(l->executor.self, t->slot, 15);
		} else if (t->stop_deadline_ns && now_ns >= t->stop_deadline_ns) {
			t->stop_deadline_ns = 0;
			l->timers--;
			l->executor.stop(l->executor.self, t->slot, 9);
			loop_event(
				l, &(struct vx_core_event){.kind = VX_EV_GRACE_OVER, .task = task});
		}
	}
}
