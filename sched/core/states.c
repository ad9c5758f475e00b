#include "internal.h"

#include "vx/assert.h"

#include <signal.h>

typedef void handler(struct vx_core *c, uint32_t i, const struct vx_core_event *e);

static bool lives(const struct task *t)
{
	return t->state == S_RUNNING || t->state == S_SERVING;
}

/* ---- keys and restores ---- */

static void on_keyed(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	struct task *t = &c->tasks[i];

	vx_assert(e->verdict != VX_V_LATE);
	c->keying--;
	t->state = S_IDLE;
	t->verdict =
		t->persistent && e->verdict != VX_V_FAILED ? VX_V_NOCACHE : (uint8_t)e->verdict;
	if (c->signal) {
		core_finish(c, i, VX_R_ABORTED);
	} else if (t->verdict == VX_V_HIT) {
		t->state = S_RESTORE_WAIT;
		core_push(c, &c->restore, i);
	} else {
		core_consider(c, i);
	}
	core_work(c, i, W_NEED);
	core_work(c, i, W_OVER);
}

static void on_restored(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	struct task *t = &c->tasks[i];

	c->counts.restoring--;
	if (e->ok) {
		core_finish(c, i, VX_R_HIT);
		return;
	}
	if (c->signal) {
		core_finish(c, i, VX_R_ABORTED);
		return;
	}
	/* revoked: it needs its servers, and upstream failures count, from now on */
	t->verdict = VX_V_MISS;
	t->state = S_IDLE;
	core_work(c, i, W_NEED);
	core_consider(c, i);
}

/* ---- attempts ---- */

static void become_ready(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];

	core_give_slot_back(c, t);
	t->state = S_SERVING;
	t->was_ready = true;
	core_work(c, i, W_RELEASE);
}

static void on_started(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	c->tasks[i].moved |= e->moved;
	if (c->tasks[i].persistent && !c->tasks[i].waits_ready)
		become_ready(c, i);
}

static void on_ready(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	(void)e;
	if (c->tasks[i].persistent)
		become_ready(c, i);
}

static void end_attempt(struct vx_core *c, struct task *t)
{
	c->counts.running--;
	c->memory_used_bytes -= t->memory_bytes;
	if (t->state == S_RUNNING)
		core_give_slot_back(c, t);
	t->stop_signal = 0;
}

static void server_exited(struct vx_core *c, uint32_t i, bool ok)
{
	struct task *t = &c->tasks[i];
	/* one that is ready at once may be over before EV_STARTED is told */
	bool ready = t->was_ready || (!t->waits_ready && ok);

	if (c->signal)
		core_finish(c, i, VX_R_ABORTED);
	else if (t->stopping)
		core_finish(c, i, t->was_ready ? VX_R_SUCCESS : VX_R_ABORTED);
	else
		core_finish(c, i, ready && ok ? VX_R_SUCCESS : VX_R_FAILED);
	if (t->requested)
		core_end_foreground(c);
}

static void again(struct vx_core *c, uint32_t i)
{
	c->tasks[i].state = S_RETRY_WAIT;
	core_push(c, &c->retry, i);
}

static void on_exited(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	struct task *t = &c->tasks[i];

	end_attempt(c, t);
	t->moved |= e->moved;
	if (t->persistent) {
		server_exited(c, i, e->ok);
	} else if (c->signal) {
		core_finish(c, i, VX_R_ABORTED);
	} else if (e->ok) {
		t->flaky = t->failures;
		if (e->save && t->verdict == VX_V_MISS && !t->tainted) {
			t->state = S_SAVE_WAIT;
			core_push(c, &c->save, i);
			core_work(c, i, W_NEED);
			core_work(c, i, W_OVER);
		} else {
			core_finish(c, i, VX_R_SUCCESS);
		}
	} else {
		t->last_failed = true;
		if (t->failures++ < t->retries && !c->halted)
			again(c, i);
		else
			core_finish(c, i, VX_R_FAILED);
	}
}

static void on_lost(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	struct task *t = &c->tasks[i];

	(void)e;
	end_attempt(c, t);
	if (t->persistent && (t->was_ready || t->stopping || t->lost_once)) {
		server_exited(c, i, false);
	} else if (c->signal) {
		core_finish(c, i, VX_R_ABORTED);
	} else if (t->lost_once) {
		core_finish(c, i, VX_R_FAILED);
	} else {
		t->lost_once = true;
		again(c, i);
	}
}

/* ---- saves ---- */

static void on_captured(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	c->tasks[i].moved |= e->moved;
	core_finish(c, i, VX_R_SUCCESS);
}

static void on_settled(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	struct task *t = &c->tasks[i];

	vx_assert(t->save_open);
	t->save_open = false;
	c->settling--;
	c->counts.saving--;
	t->moved |= e->moved;
	if (t->state == S_SAVING)
		core_finish(c, i, VX_R_SUCCESS);
	else if (e->moved)
		core_work(c, i, W_RELEASE);
}

/* ---- the end of everything ---- */

static void on_interrupt(struct vx_core *c, int sig)
{
	bool first = !c->signal;

	if (first) {
		c->signal = sig;
		c->key = c->restore = c->save = c->retry = (struct queue){NONE, NONE};
		c->n_heap = 0;
	}
	for (uint32_t i = 0; i < c->n; i++) {
		switch ((enum state)c->tasks[i].state) {
		case S_RUNNING:
		case S_SERVING:
			core_stop(c, i, !first ? SIGKILL : sig == SIGINT ? SIGINT : SIGTERM);
			break;
		case S_IDLE:
		case S_READY:
		case S_KEY_WAIT:
		case S_RESTORE_WAIT:
		case S_RETRY_WAIT:
			core_finish(c, i, VX_R_ABORTED);
			break;
		case S_SAVE_WAIT:
			core_finish(c, i, VX_R_SUCCESS);
			break;
		default: /* its answer is owed */
			break;
		}
	}
}

static void on_grace_over(struct vx_core *c, uint32_t task)
{
	for (uint32_t i = task == VX_CORE_ALL ? 0 : task; i < c->n; i++) {
		if (lives(&c->tasks[i]) && (c->signal || c->tasks[i].stopping))
			core_stop(c, i, SIGKILL);
		if (task != VX_CORE_ALL)
			break;
	}
}

/* Moot: a readiness line found after the exit or the restart, or of a task that is ready
 * already. */
static void ignore(struct vx_core *c, uint32_t i, const struct vx_core_event *e)
{
	(void)c;
	(void)i;
	(void)e;
}

/* What is not in the table cannot happen: the caller would have answered a question that was not
 * asked. */
static handler *const table[S_COUNT][VX_EV_SETTLED + 1] = {
	[S_IDLE] = {[VX_EV_READY] = ignore},
	[S_READY] = {[VX_EV_READY] = ignore},
	[S_KEYING] = {[VX_EV_KEYED] = on_keyed},
	[S_RESTORING] = {[VX_EV_RESTORED] = on_restored},
	[S_RETRY_WAIT] = {[VX_EV_READY] = ignore},
	[S_RUNNING] = {[VX_EV_STARTED] = on_started,
		[VX_EV_READY] = on_ready,
		[VX_EV_EXITED] = on_exited,
		[VX_EV_LOST] = on_lost},
	[S_SERVING] = {[VX_EV_STARTED] = ignore,
		[VX_EV_READY] = ignore,
		[VX_EV_EXITED] = on_exited,
		[VX_EV_LOST] = on_lost},
	[S_SAVE_WAIT] = {[VX_EV_READY] = ignore},
	[S_SAVING] = {[VX_EV_READY] = ignore,
		[VX_EV_CAPTURED] = on_captured,
		[VX_EV_SETTLED] = on_settled},
	[S_DONE] = {[VX_EV_READY] = ignore, [VX_EV_SETTLED] = on_settled},
};

void core_dispatch_event(struct vx_core *c, const struct vx_core_event *e)
{
	if (e->kind == VX_EV_INTERRUPT) {
		on_interrupt(c, e->signal);
		return;
	}
	if (e->kind == VX_EV_GRACE_OVER) {
		on_grace_over(c, e->task);
		return;
	}
	vx_assert(e->kind >= VX_EV_KEYED && e->kind <= VX_EV_SETTLED && e->task < c->n);
	handler *h = table[c->tasks[e->task].state][e->kind];
	vx_assert(h);
	h(c, e->task, e);
}
