/* The core: makes decisions out of its queues. See vx/core.h. */
#include "internal.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/limits.h"

#include <signal.h>
#include <stdlib.h>

/* ---- decisions ---- */

static bool fits(const struct vx_core *c, const struct task *t)
{
	if (!c->counts.slots_used)
		/* whatever servers keep in memory: waiting for them could be for ever */
		return true;
	if (c->alone_runs || t->alone || t->cpus > c->o.slots - c->counts.slots_used)
		return false;
	return !c->o.memory_bytes || !t->memory_bytes ||
	       (c->memory_used_bytes <= c->o.memory_bytes &&
		       t->memory_bytes <= c->o.memory_bytes - c->memory_used_bytes);
}

static bool next_run(struct vx_core *c, struct vx_core_decision *ret)
{
	while (c->n_heap && !c->halted) {
		uint32_t i = c->by_rank[c->heap[0]];
		struct task *t = &c->tasks[i];

		if (t->state == S_READY && !fits(c, t))
			return false; /* and so holds back all behind it */
		core_pop_ready(c);
		t->in_heap = false;
		if (t->state != S_READY)
			continue;
		t->state = S_RUNNING;
		t->attempt++;
		c->counts.ready--;
		c->counts.running++;
		c->counts.slots_used += t->cpus;
		c->memory_used_bytes += t->memory_bytes;
		c->alone_runs |= t->alone;
		*ret = (struct vx_core_decision){
			.what = VX_DO_RUN, .task = i, .attempt = t->attempt, .unsaved = t->tainted};
		return true;
	}
	return false;
}

static bool next_stop(struct vx_core *c, struct vx_core_decision *ret)
{
	while (c->stop.head != NONE) {
		uint32_t i = c->stop.head;
		struct task *t = &c->tasks[i];
		int sig = t->stop_signal;

		c->stop.head = t->next_stop;
		t->in_stop = false;
		t->stop_signal = 0;
		if (!sig)
			continue; /* gone meanwhile, by itself */
		t->stopping = true;
		*ret = (struct vx_core_decision){
			.what = VX_DO_STOP, .task = i, .attempt = t->attempt, .signal = sig};
		return true;
	}
	return false;
}

static bool next_done(struct vx_core *c, struct vx_core_decision *ret)
{
	uint32_t i = core_pop(c, &c->done);

	if (i == NONE)
		return false;
	const struct task *t = &c->tasks[i];
	*ret = (struct vx_core_decision){.what = VX_DO_DONE,
		.task = i,
		.attempt = t->attempt,
		.result = (enum vx_result)t->result,
		.flaky = t->flaky,
		.unsaved = t->tainted,
		.blocker = t->result == VX_R_SKIPPED ? t->blocker : NONE};
	return true;
}

/* A retry whose turn has not come when the run halts is none: the attempt that failed was the last.
 * A lost one just never ran. */
static bool next_retry(struct vx_core *c, struct vx_core_decision *ret)
{
	uint32_t i;

	while ((i = core_pop(c, &c->retry)) != NONE) {
		struct task *t = &c->tasks[i];

		core_make_ready(c, i);
		if (t->persistent) {
			/* a lost server may have become superfluous meanwhile */
			core_work(c, i, W_NEED);
			core_drain(c);
		}
		if (c->halted || t->state != S_READY)
			continue; /* the sweep ends it */
		*ret = (struct vx_core_decision){
			.what = VX_DO_RETRY, .task = i, .attempt = t->attempt};
		return true;
	}
	return false;
}

static bool next_lanes(struct vx_core *c, struct vx_core_decision *ret)
{
	uint32_t i;

	if (c->settling < c->o.save_lane && (i = core_pop(c, &c->save)) != NONE) {
		c->tasks[i].state = S_SAVING;
		c->tasks[i].save_open = true;
		c->settling++;
		c->counts.saving++;
		*ret = (struct vx_core_decision){
			.what = VX_DO_SAVE, .task = i, .attempt = c->tasks[i].attempt};
		return true;
	}
	if (c->counts.restoring < c->o.restore_lane && (i = core_pop(c, &c->restore)) != NONE) {
		c->tasks[i].state = S_RESTORING;
		c->counts.restoring++;
		*ret = (struct vx_core_decision){.what = VX_DO_RESTORE, .task = i};
		return true;
	}
	if (!c->halted && (i = core_pop(c, &c->key)) != NONE) {
		c->tasks[i].state = S_KEYING;
		c->keying++;
		*ret = (struct vx_core_decision){.what = VX_DO_KEY, .task = i};
		return true;
	}
	return false;
}

bool vx_core_next(struct vx_core *c, struct vx_core_decision *ret)
{
	core_sweep(c);
	if (c->signal && next_stop(c, ret))
		return true; /* before a million tasks are told that they were aborted */
	if (next_done(c, ret) || next_stop(c, ret) || next_retry(c, ret) || next_run(c, ret) ||
		next_lanes(c, ret))
		return true;
	core_sweep(c);
	if (c->done.head != NONE || c->stop.head != NONE)
		return vx_core_next(c, ret); /* what the retries or the sweep have ended */
	if (c->total_done < c->n || c->settling || c->ended)
		return false;
	c->ended = true;
	*ret = (struct vx_core_decision){.what = VX_DO_END, .task = NONE, .blocker = NONE};
	ret->code = c->signal ? 128 + c->signal : c->counts.failed || c->counts.skipped ? 1 : 0;
	return true;
}

void vx_core_event(struct vx_core *c, const struct vx_core_event *e)
{
	core_dispatch_event(c, e);
	core_drain(c);
}

void vx_core_counts(const struct vx_core *c, struct vx_core_counts *ret)
{
	*ret = c->counts;
}

/* ---- birth ---- */

static void copy_tasks(struct vx_core *c, const struct vx_core_task *in)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct task *t = &c->tasks[i];

		t->deps = in[i].deps;
		t->n_deps = t->waiting = in[i].n_deps;
		t->group = in[i].group;
		t->persistent = in[i].persistent && !t->group;
		t->requested = in[i].requested;
		t->waits_ready = in[i].waits_ready;
		t->tainted = in[i].unsaved;
		t->memory_bytes = in[i].memory_bytes;
		t->alone = in[i].exclusive ||
			   (c->o.memory_bytes && t->memory_bytes > c->o.memory_bytes);
		t->cpus = in[i].cpus < 1 ? 1 : in[i].cpus > c->o.slots ? c->o.slots : in[i].cpus;
		t->retries = t->persistent ? 0 : in[i].retries;
		t->verdict = (uint8_t)in[i].verdict;
		if (t->persistent && (t->verdict == VX_V_HIT || t->verdict == VX_V_MISS))
			t->verdict = VX_V_NOCACHE;
		t->blocker = NONE;
		c->counts.total += !t->group;
	}
}

/* Dependents of each task, in task order, as one array: count, sum, fill. */
static void connect(struct vx_core *c)
{
	uint64_t edges = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		edges += c->tasks[i].n_deps;
		for (uint32_t k = 0; k < c->tasks[i].n_deps; k++) {
			vx_assert(c->tasks[i].deps[k] < c->n);
			c->tasks[c->tasks[i].deps[k]].open++;
		}
	}
	vx_assert(edges < NONE);
	c->out = vx_xcalloc(edges + 1, sizeof *c->out);
	for (uint32_t i = 0; i < c->n; i++) {
		c->tasks[i + 1].first_out = c->tasks[i].first_out + c->tasks[i].open;
		c->tasks[i].next = c->tasks[i].first_out;
	}
	for (uint32_t i = 0; i < c->n; i++)
		for (uint32_t k = 0; k < c->tasks[i].n_deps; k++)
			c->out[c->tasks[c->tasks[i].deps[k]].next++] = i;
}

/* Hits first, so that nothing that is decided below takes one for a task that waits. */
static void first_restores(struct vx_core *c)
{
	for (uint32_t r = 0; r < c->n; r++) {
		uint32_t i = c->by_rank[r];

		if (c->tasks[i].verdict == VX_V_HIT && !c->tasks[i].group) {
			c->tasks[i].state = S_RESTORE_WAIT;
			core_push(c, &c->restore, i);
		}
	}
}

static void first_moves(struct vx_core *c)
{
	for (uint32_t i = 0; i < c->n; i++) {
		core_consider(c, i);
		if (!c->tasks[i].open)
			core_work(c, i, W_OVER);
	}
	core_drain(c);
}

struct vx_core *vx_core_new(
	const struct vx_core_opts *o, const struct vx_core_task *tasks, uint32_t n)
{
	struct vx_core *c = vx_xcalloc(1, sizeof *c);

	vx_assert(n <= VX_MAX_TASKS);
	c->o = *o;
	c->o.slots = o->slots ? o->slots : 1;
	c->o.restore_lane = o->restore_lane ? o->restore_lane : 1;
	c->o.save_lane = o->save_lane ? o->save_lane : 1;
	c->n = n;
	c->foreground = true;
	c->key = c->restore = c->save = c->retry = c->done = c->stop = c->work =
		(struct queue){NONE, NONE};
	c->tasks = vx_xcalloc((size_t)n + 1, sizeof *c->tasks);
	c->heap = vx_xcalloc((size_t)n + 1, sizeof *c->heap);
	c->by_rank = vx_xcalloc((size_t)n + 1, sizeof *c->by_rank);
	copy_tasks(c, tasks);
	connect(c);
	core_order(c, tasks);
	first_restores(c);
	core_initial_needs(c);
	first_moves(c);
	return c;
}

void vx_core_free(struct vx_core *c)
{
	if (!c)
		return;
	free(c->tasks);
	free(c->out);
	free(c->heap);
	free(c->by_rank);
	free(c);
}
