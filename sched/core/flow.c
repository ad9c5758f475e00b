#include "internal.h"

#include "vx/assert.h"

#include <signal.h>

/* Consequences travel along edges by a work list, never by recursion: chains may be a million tasks
 * long. A task is on the list once, with what it has to tell. */
void core_work(struct vx_core *c, uint32_t i, enum work w)
{
	struct task *t = &c->tasks[i];
	bool listed = t->work;

	t->work |= (uint8_t)w;
	if (listed)
		return;
	t->next_work = NONE;
	if (c->work.head == NONE)
		c->work.head = i;
	else
		c->tasks[c->work.tail].next_work = i;
	c->work.tail = i;
}

bool core_wanted(const struct vx_core *c, const struct task *t)
{
	return (t->requested && c->foreground) || t->needers;
}

static bool exec_over(const struct task *t)
{
	return t->state == S_DONE || t->state == S_SAVE_WAIT || t->state == S_SAVING;
}

/* Does the task count, for the servers directly upstream of it, as one that will execute? A group
 * stands for its dependents, whether it is complete or not. */
static bool will_execute(const struct vx_core *c, const struct task *t)
{
	if (t->group)
		return t->needers;
	if (exec_over(t))
		return false;
	if (t->persistent)
		return core_wanted(c, t);
	return t->verdict != VX_V_HIT && t->verdict != VX_V_FAILED;
}

void core_consider(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];

	if (t->state != S_IDLE || (t->persistent && !core_wanted(c, t)))
		return;
	if (t->verdict == VX_V_FAILED && !t->group) {
		core_finish(c, i, VX_R_FAILED); /* needs no upstream to fail */
	} else if (t->blocked) {
		core_finish(c, i, VX_R_SKIPPED);
	} else if (t->waiting) {
		return;
	} else if (t->group) {
		core_finish(c, i, VX_R_SUCCESS);
	} else if (t->verdict == VX_V_LATE) {
		t->state = S_KEY_WAIT;
		core_push(c, &c->key, i);
	} else {
		core_make_ready(c, i);
	}
}

void core_finish(struct vx_core *c, uint32_t i, enum vx_result r)
{
	struct task *t = &c->tasks[i];

	vx_assert(t->state != S_DONE);
	if (t->state == S_READY)
		c->counts.ready--;
	t->state = S_DONE;
	t->result = (uint8_t)r;
	c->total_done++;
	if (!t->group) {
		core_push(c, &c->done, i);
		c->counts.done++;
		c->counts.hits += r == VX_R_HIT;
		c->counts.failed += r == VX_R_FAILED;
		c->counts.skipped += r == VX_R_SKIPPED;
		c->counts.executed += t->attempt && (r == VX_R_SUCCESS || r == VX_R_FAILED);
	}
	core_work(c, i, W_NEED);
	core_work(c, i, W_OVER);
	bool always = c->o.policy == VX_CONTINUE_ALWAYS;
	if (r != VX_R_SKIPPED && (r != VX_R_FAILED || always || t->released))
		core_work(c, i,
			/* a server that was not needed: groups wait for it; one that failed when it
			 * was ready: what runs beside it is tainted */
			W_RELEASE);
	if ((r == VX_R_FAILED || r == VX_R_SKIPPED) && !always)
		core_work(c, i, W_BLOCK);
	if (r == VX_R_FAILED && c->o.policy == VX_CONTINUE_NEVER)
		core_halt(c);
	/* Servers that were asked for are kept for what was asked for beside them, or for whoever
	 * looks at them: a run that has failed has an end. */
	if ((r == VX_R_FAILED || r == VX_R_SKIPPED) && t->requested && !t->persistent)
		core_end_foreground(c);
}

/* Dependents may go on. May be told again, when something about a released task spoils what comes
 * after it. */
static void release(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];
	bool first = !t->released;
	bool done = t->state == S_DONE;
	bool taint = t->moved || (done && t->result == VX_R_FAILED) ||
		     (t->tainted && !(done && t->result == VX_R_HIT));

	t->released = true;
	for (uint32_t k = t->first_out; k < t[1].first_out; k++) {
		struct task *x = &c->tasks[c->out[k]];

		if (taint && !x->tainted) {
			x->tainted = true;
			if (x->released)
				core_work(c, c->out[k], W_RELEASE);
		}
		if (first && !--x->waiting)
			core_consider(c, c->out[k]);
	}
}

/* Dependents may not go on, hits aside: those restore, and only if one turns out damaged does the
 * mark count. */
static void block(struct vx_core *c, uint32_t i)
{
	const struct task *t = &c->tasks[i];
	uint32_t root = t->result == VX_R_FAILED ? i : t->blocker;

	for (uint32_t k = t->first_out; k < t[1].first_out; k++) {
		struct task *x = &c->tasks[c->out[k]];

		if (x->blocked)
			continue;
		x->blocked = true;
		x->blocker = root;
		if (x->state == S_READY && !x->attempt)
			/* a server failed after it had become ready */
			core_finish(c, c->out[k], VX_R_SKIPPED);
		else if (x->group && x->state == S_DONE)
			/* the same, and the group was complete: what waits for more than the
			 * group */
			core_work(c, c->out[k], W_BLOCK);
		else
			core_consider(c, c->out[k]);
	}
}

/* A server whose circumstances have changed: start it, take it back from the heap, find it
 * superfluous, or stop it. */
static void reconsider_server(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];

	if (core_wanted(c, t)) {
		core_consider(c, i);
		return;
	}
	if (t->state == S_READY) {
		t->state = S_IDLE;
		c->counts.ready--;
	}
	if (t->open)
		/* a dependent's hit may yet turn out damaged, or something further down may still
		 * want it */
		return;
	if (t->state == S_IDLE)
		core_finish(c, i, t->attempt ? VX_R_ABORTED : VX_R_NOT_STARTED);
	else if ((t->state == S_RUNNING || t->state == S_SERVING) && !t->stopping &&
		 !t->stop_signal)
		core_stop(c, i, SIGTERM);
}

static void need(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];
	bool now = will_execute(c, t);

	if (t->persistent)
		reconsider_server(c, i);
	if (now == t->counted)
		return;
	t->counted = now;
	for (uint32_t k = 0; k < t->n_deps; k++) {
		struct task *d = &c->tasks[t->deps[k]];

		if (now)
			d->needers++;
		else
			d->needers--;
		if (d->group || d->persistent)
			core_work(c, t->deps[k], W_NEED);
	}
}

static void over(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];

	if (t->over || t->open)
		return;
	/* a group may wait for the very server that waits to be found superfluous */
	if (!t->group && !exec_over(t)) {
		if (t->persistent)
			reconsider_server(c, i);
		return;
	}
	t->over = true;
	for (uint32_t k = 0; k < t->n_deps; k++)
		if (!--c->tasks[t->deps[k]].open)
			core_work(c, t->deps[k], W_OVER);
}

void core_drain(struct vx_core *c)
{
	while (c->work.head != NONE) {
		uint32_t i = c->work.head;
		struct task *t = &c->tasks[i];
		uint8_t w = t->work;

		c->work.head = t->next_work;
		t->work = 0;
		if (w & W_RELEASE)
			release(c, i);
		if (w & W_BLOCK)
			block(c, i);
		if (w & W_NEED)
			need(c, i);
		if (w & W_OVER)
			over(c, i);
	}
}

/* Being requested no longer keeps a server: one of them has exited, something else that was
 * requested has failed, or the run halts. */
void core_end_foreground(struct vx_core *c)
{
	if (!c->foreground)
		return;
	c->foreground = false;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->tasks[i].persistent)
			core_work(c, i, W_NEED);
}

void core_halt(struct vx_core *c)
{
	c->halted = true;
	core_end_foreground(c);
}

/* Waits until nothing is under way that could still fail and so give a better reason than
 * "aborted". */
void core_sweep(struct vx_core *c)
{
	if (!c->halted || c->swept || c->signal || c->counts.slots_used || c->keying ||
		c->counts.restoring || c->restore.head != NONE || c->retry.head != NONE)
		return;
	c->swept = true;
	for (uint32_t i = 0; i < c->n; i++)
		if (c->tasks[i].state == S_READY && c->tasks[i].last_failed)
			/* its retry never came: the attempt that failed was the last */
			core_finish(c, i, VX_R_FAILED);
	core_drain(c);
	c->key = (struct queue){NONE, NONE};
	for (uint32_t i = 0; i < c->n; i++) {
		enum state s = c->tasks[i].state;

		if (s == S_IDLE || s == S_READY || s == S_KEY_WAIT)
			core_finish(c, i,
				s == S_KEY_WAIT && c->tasks[i].blocked ? VX_R_SKIPPED
								       : VX_R_ABORTED);
	}
	core_drain(c);
}

/* A requested group requests the servers below it; then who needs whom is counted once for
 * everybody. */
void core_initial_needs(struct vx_core *c)
{
	struct queue q = {NONE, NONE};

	for (uint32_t i = 0; i < c->n; i++)
		if (c->tasks[i].group && c->tasks[i].requested)
			core_push(c, &q, i);
	for (uint32_t i = q.head; i != NONE; i = c->tasks[i].next) {
		for (uint32_t k = 0; k < c->tasks[i].n_deps; k++) {
			struct task *d = &c->tasks[c->tasks[i].deps[k]];

			if (d->requested || !(d->group || d->persistent))
				continue;
			d->requested = true;
			if (d->group)
				core_push(c, &q, c->tasks[i].deps[k]);
		}
	}
	for (uint32_t i = 0; i < c->n; i++)
		core_work(c, i, W_NEED);
	core_drain(c);
}
