/* The judge of sim.h: the rules of docs/running.md, each looked up the slow way. */
#ifndef VX_TEST_JUDGE_H
#define VX_TEST_JUDGE_H

static void judge_requested(struct sim *s, uint32_t i, bool yes)
{
	if (!yes)
		return;
	s->requested[i] = true;
	for (uint32_t k = 0; s->in[i].group && k < s->in[i].n_deps; k++)
		if (s->in[s->deps[i][k]].group || s->in[s->deps[i][k]].persistent)
			judge_requested(s, s->deps[i][k], true);
}

static bool judge_exec_over(const struct sim *s, uint32_t i)
{
	const struct sim_task *t = &s->t[i];

	return t->done || t->phase == P_OVER || t->phase == P_SAVE || t->phase == P_SAVING;
}

static bool judge_wanted(const struct sim *s, uint32_t i);

/* Will a direct dependent of i, through groups, execute? */
static bool judge_needed(const struct sim *s, uint32_t i)
{
	for (uint32_t x = 0; x < s->n; x++)
		for (uint32_t k = 0; k < s->in[x].n_deps; k++) {
			if (s->deps[x][k] != i)
				continue;
			if (s->in[x].group
					? judge_needed(s, x)
					: !judge_exec_over(s, x) &&
						  (s->in[x].persistent
								  ? judge_wanted(s, x)
								  : s->t[x].verdict != VX_V_HIT &&
									    s->t[x].verdict !=
										    VX_V_FAILED))
				return true;
		}
	return false;
}

static bool judge_wanted(const struct sim *s, uint32_t i)
{
	return (s->requested[i] && !s->foreground_over) || judge_needed(s, i);
}

/* Has i let its dependents go? */
static bool judge_released(const struct sim *s, uint32_t i)
{
	const struct sim_task *t = &s->t[i];

	if (s->in[i].group) {
		for (uint32_t k = 0; k < s->in[i].n_deps; k++)
			if (!judge_released(s, s->deps[i][k]))
				return false;
		return true;
	}
	return t->was_ready || t->restored || (t->phase == P_OVER && t->exited_ok) ||
	       (t->failed && s->o.policy == VX_CONTINUE_ALWAYS);
}

static bool judge_deps_released(const struct sim *s, uint32_t i)
{
	for (uint32_t k = 0; k < s->in[i].n_deps; k++)
		if (!judge_released(s, s->deps[i][k]))
			return false;
	return true;
}

/* Is something directly upstream, through groups, failed or skipped? */
static bool judge_blocked(const struct sim *s, uint32_t i)
{
	for (uint32_t k = 0; s->o.policy != VX_CONTINUE_ALWAYS && k < s->in[i].n_deps; k++) {
		uint32_t d = s->deps[i][k];

		if (s->in[d].group ? judge_blocked(s, d)
				   : s->t[d].failed ||
					     (s->t[d].done && s->t[d].result == VX_R_SKIPPED))
			return true;
	}
	return false;
}

/* Does i come after something whose result is not to be built on? */
static bool judge_tainted(const struct sim *s, uint32_t i, signed char *memo)
{
	if (memo[i])
		return memo[i] > 0;
	memo[i] = -1;
	for (uint32_t k = 0; k < s->in[i].n_deps && memo[i] < 0; k++) {
		uint32_t d = s->deps[i][k];
		const struct sim_task *t = &s->t[d];

		if (s->in[d].group ? judge_tainted(s, d, memo)
				   : !t->restored &&
					     (t->moved || t->failed || judge_tainted(s, d, memo)))
			memo[i] = 1;
	}
	return memo[i] > 0;
}

static bool judge_is_tainted(const struct sim *s, uint32_t i)
{
	signed char memo[SIM_MAX] = {0};

	return judge_tainted(s, i, memo);
}

static bool judge_better(const struct sim *s, uint32_t a, uint32_t b)
{
	if (s->path[a] != s->path[b])
		return s->path[a] > s->path[b];
	if (s->in[a].weight != s->in[b].weight)
		return s->in[a].weight > s->in[b].weight;
	return a < b;
}

static bool judge_may_run(const struct sim *s, uint32_t i)
{
	const struct sim_task *t = &s->t[i];

	if (s->in[i].group || t->done || s->signal || s->halted)
		return false;
	if (s->in[i].persistent && !judge_wanted(s, i))
		return false;
	if (t->phase == P_FAILED || t->phase == P_LOST)
		return true;
	return t->phase == P_WAIT && (t->verdict == VX_V_MISS || t->verdict == VX_V_NOCACHE) &&
	       judge_deps_released(s, i) && !judge_blocked(s, i);
}

static uint32_t judge_cpus(const struct sim *s, uint32_t i)
{
	uint32_t cpus = s->in[i].cpus ? s->in[i].cpus : 1;

	return cpus < s->o.slots ? cpus : s->o.slots;
}

static bool judge_fits(const struct sim *s, uint32_t i)
{
	uint32_t used = 0;
	uint64_t memory = 0, limit = s->o.memory_bytes;
	bool alone = s->in[i].exclusive || (limit && s->in[i].memory_bytes > limit),
	     other_alone = false;

	for (uint32_t k = 0; k < s->n; k++) {
		if (s->t[k].phase == P_RUNNING) {
			used += judge_cpus(s, k);
			other_alone |=
				s->in[k].exclusive || (limit && s->in[k].memory_bytes > limit);
		}
		if (s->t[k].phase == P_RUNNING || s->t[k].phase == P_SERVING)
			memory += s->in[k].memory_bytes;
	}
	if (!used)
		return true;
	return !alone && !other_alone && used + judge_cpus(s, i) <= s->o.slots &&
	       (!limit || !s->in[i].memory_bytes || memory + s->in[i].memory_bytes <= limit);
}

static void judge_run(struct sim *s, const struct vx_core_decision *d)
{
	uint32_t i = d->task;

	SIM_CHECK(s, judge_may_run(s, i), i);
	SIM_CHECK(s, judge_fits(s, i), i);
	SIM_CHECK(s, d->attempt == s->t[i].attempt + 1, i);
	SIM_CHECK(s, d->unsaved == judge_is_tainted(s, i), i);
	for (uint32_t k = 0; k < s->n; k++)
		SIM_CHECK(s, k == i || !judge_may_run(s, k) || judge_better(s, i, k), i);
	s->t[i].attempt++;
	s->t[i].phase = P_RUNNING;
}

static void judge_stop(struct sim *s, const struct vx_core_decision *d)
{
	uint32_t i = d->task;

	SIM_CHECK(s, s->t[i].phase == P_RUNNING || s->t[i].phase == P_SERVING, i);
	if (!s->signal && d->signal != SIGKILL) {
		SIM_CHECK(s,
			d->signal == SIGTERM && s->in[i].persistent && !s->t[i].stopping &&
				!judge_wanted(s, i),
			i);
		for (uint32_t k = 0; k < s->n; k++)
			SIM_CHECK(s, !s->down[i][k] || s->in[k].group || judge_exec_over(s, k), i);
	}
	SIM_CHECK(s, s->signal || s->t[i].stopping || d->signal == SIGTERM, i);
	SIM_CHECK(s,
		!s->signal || d->signal == SIGKILL ||
			d->signal == (s->signal == SIGINT ? SIGINT : SIGTERM),
		i);
	s->t[i].stopping = true;
}

static void judge_result(struct sim *s, const struct vx_core_decision *d)
{
	uint32_t i = d->task;
	const struct sim_task *t = &s->t[i];
	bool server = s->in[i].persistent;

	switch (d->result) {
	case VX_R_HIT:
		SIM_CHECK(s, t->restored && !t->attempt && !server, i);
		break;
	case VX_R_SUCCESS:
		SIM_CHECK(s,
			t->attempt && t->phase == P_OVER &&
				(t->exited_ok || (server && t->stopping && t->was_ready)),
			i);
		SIM_CHECK(s, d->flaky == (!server && t->failures > 0), i);
		SIM_CHECK(s, !t->want_save || t->saved || s->signal, i);
		break;
	case VX_R_FAILED:
		SIM_CHECK(s,
			t->key_failed || (t->attempt && !t->exited_ok &&
						 (t->failures || t->losses > 1 || server)),
			i);
		SIM_CHECK(s, t->failures <= s->in[i].retries + 1 && t->losses <= 2, i);
		SIM_CHECK(s,
			s->halted || s->o.policy == VX_CONTINUE_NEVER ||
				t->failures == s->in[i].retries + 1 || t->losses > 1 || server ||
				t->key_failed,
			i);
		break;
	case VX_R_SKIPPED:
		SIM_CHECK(s,
			!t->attempt && s->o.policy != VX_CONTINUE_ALWAYS && d->blocker < s->n &&
				s->down[d->blocker][i],
			i);
		SIM_CHECK(s,
			s->t[d->blocker].done && s->t[d->blocker].result == VX_R_FAILED &&
				judge_blocked(s, i),
			i);
		break;
	case VX_R_ABORTED:
		SIM_CHECK(s,
			s->signal || s->halted || (server && !t->was_ready && !judge_wanted(s, i)),
			i);
		break;
	case VX_R_NOT_STARTED:
		SIM_CHECK(s, server && !t->attempt && !judge_wanted(s, i), i);
		for (uint32_t k = 0; k < s->n; k++)
			SIM_CHECK(s, !s->down[i][k] || s->in[k].group || judge_exec_over(s, k), i);
		break;
	default:
		SIM_CHECK(s, !"result", i);
	}
}

static void judge_end(struct sim *s, const struct vx_core_decision *d)
{
	bool bad = false;

	for (uint32_t i = 0; i < s->n; i++) {
		SIM_CHECK(s, (s->t[i].done || s->in[i].group) && !s->t[i].unsettled, i);
		SIM_CHECK(s,
			s->t[i].phase != P_RUNNING && s->t[i].phase != P_SERVING &&
				s->t[i].phase != P_RESTORING && s->t[i].phase != P_KEYING,
			i);
		bad |= !s->in[i].group &&
		       (s->t[i].result == VX_R_FAILED || s->t[i].result == VX_R_SKIPPED);
	}
	SIM_CHECK(s, d->code == (s->signal ? 128 + s->signal : bad), 0);
	s->ended = true;
	s->code = d->code;
}

static uint32_t judge_count(const struct sim *s, enum phase p)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		n += s->t[i].phase == p;
	return n;
}

static uint32_t judge_unsettled(const struct sim *s)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < s->n; i++)
		n += s->t[i].unsettled;
	return n;
}

static void judge_done(struct sim *s, const struct vx_core_decision *d)
{
	struct sim_task *t = &s->t[d->task];

	SIM_CHECK(s, !t->done && !s->in[d->task].group, d->task);
	judge_result(s, d);
	t->done = true;
	t->result = d->result;
	t->failed |= d->result == VX_R_FAILED;
}

/* A task is done that failed, or was skipped for one that did: was it, or a group above it, asked
 * for? Then servers are no longer kept because they were. */
static void judge_foreground(struct sim *s, uint32_t task)
{
	s->foreground_over |= s->in[task].requested && !s->in[task].persistent;
	for (uint32_t i = 0; i < s->n; i++)
		s->foreground_over |= s->in[i].group && s->in[i].requested && judge_blocked(s, i);
}

static void judge_decision(struct sim *s, const struct vx_core_decision *d)
{
	struct sim_task *t = d->task < s->n ? &s->t[d->task] : NULL;
	bool starts = d->what == VX_DO_KEY || d->what == VX_DO_RESTORE || d->what == VX_DO_RUN ||
		      d->what == VX_DO_SAVE;

	SIM_CHECK(s, !s->ended && (t || d->what == VX_DO_END) && !(starts && s->signal), d->task);
	switch (d->what) {
	case VX_DO_KEY:
		SIM_CHECK(s,
			t->phase == P_WAIT && t->verdict == VX_V_LATE &&
				judge_deps_released(s, d->task) && !s->halted,
			d->task);
		t->phase = P_KEYING;
		break;
	case VX_DO_RESTORE:
		SIM_CHECK(s,
			t->phase == P_RESTORE && judge_count(s, P_RESTORING) < s->o.restore_lane,
			d->task);
		t->phase = P_RESTORING;
		break;
	case VX_DO_RUN:
		judge_run(s, d);
		break;
	case VX_DO_SAVE:
		SIM_CHECK(s, t->phase == P_SAVE && judge_unsettled(s) < s->o.save_lane, d->task);
		t->phase = P_SAVING;
		t->unsettled = true;
		break;
	case VX_DO_STOP:
		judge_stop(s, d);
		break;
	case VX_DO_RETRY:
		SIM_CHECK(s,
			(t->phase == P_FAILED || t->phase == P_LOST) && !s->signal && !s->halted &&
				d->attempt == t->attempt,
			d->task);
		break;
	case VX_DO_DONE:
		judge_done(s, d);
		break;
	case VX_DO_END:
		judge_end(s, d);
		break;
	}
	/* the loop may only now learn that something failed for good */
	if (d->what == VX_DO_DONE && d->result == VX_R_FAILED && s->o.policy == VX_CONTINUE_NEVER)
		s->halted = s->foreground_over = true;
	if (d->what == VX_DO_DONE && (d->result == VX_R_FAILED || d->result == VX_R_SKIPPED))
		judge_foreground(s, d->task);
}

/* No decision is left: then nothing that could go on may be standing still. */
static void judge_quiet(struct sim *s)
{
	uint32_t best = SIM_MAX;
	struct vx_core_counts n;

	for (uint32_t i = 0; i < s->n; i++) {
		if (judge_may_run(s, i) && (best == SIM_MAX || judge_better(s, i, best)))
			best = i;
		SIM_CHECK(s,
			s->signal || s->t[i].phase != P_RESTORE ||
				judge_count(s, P_RESTORING) == s->o.restore_lane,
			i);
		SIM_CHECK(s,
			s->signal || s->t[i].phase != P_SAVE ||
				judge_unsettled(s) == s->o.save_lane,
			i);
		bool asleep = !s->in[i].group && !s->t[i].done && s->t[i].phase == P_WAIT &&
			      (!s->in[i].persistent || judge_wanted(s, i));
		/* told at the end of what is under way */
		bool unkeyed =
			s->halted && s->t[i].verdict == VX_V_LATE && judge_deps_released(s, i);
		SIM_CHECK(s, !asleep || unkeyed || !judge_blocked(s, i), i);
	}
	SIM_CHECK(s, best == SIM_MAX || !judge_fits(s, best), best);
	vx_core_counts(s->c, &n);
	SIM_CHECK(s, n.running == judge_count(s, P_RUNNING) + judge_count(s, P_SERVING), SIM_MAX);
	SIM_CHECK(s, n.restoring == judge_count(s, P_RESTORING) && n.saving == judge_unsettled(s),
		SIM_MAX);
	SIM_CHECK(s, n.slots_used <= s->o.slots && n.done <= n.total, SIM_MAX);
}

/* ---- events, before the core hears of them ---- */

static void judge_attempt_over(struct sim *s, uint32_t i, const struct vx_core_event *e)
{
	struct sim_task *t = &s->t[i];
	bool lost = e->kind == VX_EV_LOST;

	t->generation++;
	t->moved |= e->moved;
	if (s->in[i].persistent) {
		bool again = lost && !t->was_ready && !t->stopping && !t->losses && !s->signal;

		t->losses += lost;
		t->exited_ok =
			!lost && e->ok && (t->was_ready || !s->in[i].waits_ready) && !s->signal;
		t->phase = again ? P_LOST : P_OVER;
		t->failed = !again && !t->exited_ok && !t->stopping && !s->signal;
		s->foreground_over |= !again && s->requested[i];
		return;
	}
	t->losses += lost;
	t->failures += !lost && !e->ok;
	if (!lost && e->ok && !s->signal) {
		t->exited_ok = true;
		t->want_save = e->save && t->verdict == VX_V_MISS && !judge_is_tainted(s, i);
		t->phase = t->want_save ? P_SAVE : P_OVER;
	} else if (s->signal || (lost && t->losses > 1) ||
		   (!lost && (t->failures > s->in[i].retries || s->halted))) {
		t->phase = P_OVER;
		t->failed = !s->signal;
	} else {
		t->phase = lost ? P_LOST : P_FAILED;
	}
}

static void judge_event(struct sim *s, const struct vx_core_event *e)
{
	struct sim_task *t = e->task < s->n ? &s->t[e->task] : NULL;

	switch (e->kind) {
	case VX_EV_KEYED:
		t->verdict = s->in[e->task].persistent && e->verdict != VX_V_FAILED ? VX_V_NOCACHE
										    : e->verdict;
		t->phase = t->verdict == VX_V_HIT && !s->signal     ? P_RESTORE
			   : t->verdict == VX_V_FAILED || s->signal ? P_OVER
								    : P_WAIT;
		t->key_failed = t->verdict == VX_V_FAILED;
		break;
	case VX_EV_RESTORED:
		t->restored = e->ok;
		t->phase = e->ok || s->signal ? P_OVER : P_WAIT;
		t->verdict = e->ok ? VX_V_HIT : VX_V_MISS;
		break;
	case VX_EV_STARTED:
	case VX_EV_READY:
		t->moved |= e->moved;
		if (s->in[e->task].persistent && t->phase == P_RUNNING &&
			(e->kind == VX_EV_READY || !s->in[e->task].waits_ready)) {
			t->was_ready = true;
			t->phase = P_SERVING;
		}
		break;
	case VX_EV_EXITED:
	case VX_EV_LOST:
		judge_attempt_over(s, e->task, e);
		break;
	case VX_EV_CAPTURED:
		t->phase = P_OVER;
		t->saved = true;
		t->moved |= e->moved;
		break;
	case VX_EV_SETTLED:
		t->phase = P_OVER;
		t->saved = true;
		t->unsettled = false;
		t->moved |= e->moved;
		break;
	case VX_EV_INTERRUPT:
		s->signal = s->signal ? s->signal : e->signal;
		for (uint32_t i = 0; i < s->n; i++)
			if (s->t[i].phase == P_RESTORE || s->t[i].phase == P_SAVE ||
				s->t[i].phase == P_FAILED || s->t[i].phase == P_LOST)
				s->t[i].phase = P_OVER;
		break;
	case VX_EV_GRACE_OVER:
		break;
	}
}

#endif
