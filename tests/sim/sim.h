/* A world for the core: a virtual clock, tasks with fates, and a judge that checks every decision
 * against what it has seen itself.
 *
 * sim_world(s, seed) makes a graph and its fates from the seed, sim_go(s) drives a core to its end
 * and fails the test at the first broken rule (the message names the seed). The judge (judge.h)
 * keeps its own books, from first principles and without cleverness, and shares nothing with the
 * core but vx/core.h. Header-only, since each test is one file: test_core.c runs many small worlds,
 * tests/slow/test_core_campaign.c very many. */
#ifndef VX_TEST_SIM_H
#define VX_TEST_SIM_H

#include "vxtest.h"

#include "vx/core.h"

#include <signal.h>

#define SIM_MAX 32
#define SIM_EVENTS 1024

/* What is going to happen to a task, whatever the core decides. */
struct fate {
	uint32_t fails; /* how many attempts fail before one succeeds; 9: all */
	uint32_t lost;  /* bit k: dispatch k is lost with its worker */
	bool damaged;   /* its hit turns out damaged */
	bool moved, no_save, capture_fails;
	bool unboxed; /* said to have moved when it starts, and when it ends */
	bool deaf;    /* to all but SIGKILL */
	bool hasty;   /* exits before EV_STARTED could be told */
	/* a server: 0 until stopped, 1 exits well, 2 exits badly, 3 exits before it is ready */
	int serve;
	enum vx_verdict late;
};

enum phase {
	P_WAIT,
	P_KEYING,
	P_RESTORE,
	P_RESTORING,
	P_RUNNING,
	P_SERVING,
	P_FAILED,
	P_LOST,
	P_SAVE,
	P_SAVING,
	P_OVER
};

struct sim_task {
	enum phase phase;
	enum vx_verdict verdict;
	enum vx_result result;
	uint32_t attempt, failures, losses, generation;
	bool done, restored, was_ready, stopping, killed, unsettled, want_save, saved, moved,
		key_failed, exited_ok, failed;
};

struct sim_event {
	uint64_t at, seq;
	/* of the task when it was planned: an attempt that was killed does not exit twice */
	uint32_t generation;
	struct vx_core_event e;
};

struct sim {
	uint64_t seed, rng, now, seq;
	uint32_t n;
	struct vx_core_opts o;
	struct vx_core *c;
	struct vx_core_task in[SIM_MAX];
	uint32_t deps[SIM_MAX][SIM_MAX];
	struct fate fate[SIM_MAX];
	struct sim_task t[SIM_MAX];
	bool down[SIM_MAX][SIM_MAX]; /* down[a][b]: b is downstream of a */
	bool requested[SIM_MAX];     /* groups pass it on */
	uint64_t path[SIM_MAX];
	struct sim_event ev[SIM_EVENTS];
	uint32_t n_ev;
	int signal, code;
	bool ended, halted, foreground_over;
	uint32_t decisions;
};

static uint64_t sim_rand(struct sim *s, uint64_t below)
{
	uint64_t z = (s->rng += 0x9e3779b97f4a7c15ULL); /* splitmix64: Steele, Lea, Flood 2014 */

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return (z ^ (z >> 31)) % below;
}

static bool sim_chance(struct sim *s, unsigned percent)
{
	return sim_rand(s, 100) < percent;
}

/* SIM_SEED=n runs that world alone and tells its story. */
static bool sim_trace;

#define SIM_CHECK(s, cond, i)                                                 \
	do {                                                                  \
		if (!(cond))                                                  \
			fail_msg("seed %llu, task %u, time %llu: %s",         \
				(unsigned long long)(s)->seed, (unsigned)(i), \
				(unsigned long long)(s)->now, #cond);         \
	} while (0)

#include "judge.h"

/* ---- making a world ---- */

static void sim_task(struct sim *s, uint32_t i, unsigned servers, unsigned trouble)
{
	static const enum vx_verdict verdicts[] = {
		VX_V_HIT, VX_V_MISS, VX_V_MISS, VX_V_NOCACHE, VX_V_LATE, VX_V_LATE};
	static const enum vx_verdict lates[] = {
		VX_V_HIT, VX_V_HIT, VX_V_MISS, VX_V_MISS, VX_V_NOCACHE};
	struct vx_core_task *t = &s->in[i];
	struct fate *f = &s->fate[i];

	t->group = sim_chance(s, 12);
	t->persistent = !t->group && sim_chance(s, servers);
	t->requested = sim_chance(s, t->persistent ? 25 : 40);
	t->exclusive = sim_chance(s, 5);
	t->waits_ready = t->persistent && sim_chance(s, 60);
	t->verdict = sim_chance(s, trouble / 4) ? VX_V_FAILED : verdicts[sim_rand(s, 6)];
	t->cpus = sim_chance(s, 80) ? 1 : (uint32_t)sim_rand(s, 6);
	t->memory_bytes = sim_chance(s, 70) ? 0 : sim_rand(s, 120);
	t->retries = sim_chance(s, 75) ? 0 : (uint32_t)sim_rand(s, 4);
	f->fails = sim_chance(s, trouble) ? sim_chance(s, 50) ? 9 : 1 : 0;
	for (int k = 0; k < 8; k++)
		f->lost |= (uint32_t)sim_chance(s, trouble / 5) << k;
	f->damaged = sim_chance(s, trouble);
	f->moved = sim_chance(s, trouble / 3);
	f->no_save = sim_chance(s, trouble / 3);
	f->capture_fails = sim_chance(s, trouble);
	f->deaf = sim_chance(s, 10);
	f->hasty = sim_chance(s, 10);
	f->serve = sim_chance(s, 40 + trouble) ? 1 + (int)sim_rand(s, 3) : 0;
	f->unboxed = sim_chance(s, trouble / 3);
	f->late = sim_chance(s, trouble / 4) ? VX_V_FAILED : lates[sim_rand(s, 5)];
}

static void sim_graph(struct sim *s)
{
	uint32_t order[SIM_MAX];
	unsigned density = 5 + (unsigned)sim_rand(s, 30);

	for (uint32_t i = 0; i < s->n; i++)
		order[i] = i;
	for (uint32_t i = s->n; i > 1; i--) {
		uint32_t j = (uint32_t)sim_rand(s, i), x = order[j];

		order[j] = order[i - 1];
		order[i - 1] = x;
	}
	for (uint32_t i = 0; i < s->n; i++)
		for (uint32_t j = 0; j < i; j++)
			if (sim_chance(s, density)) {
				uint32_t a = order[j], b = order[i];

				s->deps[b][s->in[b].n_deps++] = a;
				s->down[a][b] = true;
			}
	for (uint32_t i = 0; i < s->n; i++) {
		s->in[i].deps = s->deps[i];
		for (uint32_t k = 0; k < s->n; k++) /* paths, in topological order of the middle */
			for (uint32_t j = 0; j < s->n; j++)
				s->down[k][j] |= s->down[k][order[i]] && s->down[order[i]][j];
	}
	bool known = sim_chance(s, 50);
	for (uint32_t k = s->n; k-- > 0;) {
		uint32_t i = order[k];

		s->in[i].predicted_ns = known ? 1 + sim_rand(s, 50) : 0;
		s->path[i] +=
			s->in[i].group || (s->in[i].verdict == VX_V_HIT && !s->in[i].persistent)
				? 0
				: s->in[i].predicted_ns;
		for (uint32_t d = 0; d < s->in[i].n_deps; d++)
			if (s->path[s->deps[i][d]] < s->path[i])
				s->path[s->deps[i][d]] = s->path[i];
		for (uint32_t j = 0; j < s->n; j++)
			s->in[i].weight += s->down[i][j];
	}
}

static void sim_world(struct sim *s, uint64_t seed)
{
	memset(s, 0, sizeof *s);
	s->seed = s->rng = seed;
	s->n = 1 + (uint32_t)sim_rand(s, sim_chance(s, 50) ? 8 : SIM_MAX);
	unsigned servers = sim_chance(s, 50) ? 0 : 25,
		 trouble = sim_chance(s, 30) ? 0 : (unsigned)sim_rand(s, 45);
	for (uint32_t i = 0; i < s->n; i++)
		sim_task(s, i, servers, trouble);
	sim_graph(s);
	s->o = (struct vx_core_opts){.slots = 1 + (uint32_t)sim_rand(s, 5),
		.memory_bytes = sim_chance(s, 50) ? 100 : 0,
		.policy = (enum vx_continue)sim_rand(s, 3),
		.restore_lane = 1 + (uint32_t)sim_rand(s, 4),
		.save_lane = 1 + (uint32_t)sim_rand(s, 4)};
	for (uint32_t i = 0; i < s->n; i++)
		s->t[i].verdict = s->in[i].persistent && s->in[i].verdict != VX_V_LATE &&
						  s->in[i].verdict != VX_V_FAILED
					  ? VX_V_NOCACHE
					  : s->in[i].verdict;
	for (uint32_t i = 0; i < s->n; i++)
		judge_requested(s, i, s->in[i].requested);
	for (uint32_t i = 0; i < s->n; i++)
		if (!s->in[i].group && s->t[i].verdict == VX_V_FAILED)
			s->t[i].key_failed = true;
		else if (!s->in[i].group && s->t[i].verdict == VX_V_HIT)
			s->t[i].phase = P_RESTORE;
}

/* ---- the world's answers ---- */

static void sim_plan(struct sim *s, uint64_t in, struct vx_core_event e)
{
	assert_true(s->n_ev < SIM_EVENTS);
	s->ev[s->n_ev++] = (struct sim_event){
		s->now + in, s->seq++, e.task < s->n ? s->t[e.task].generation : 0, e};
}

static void sim_serve(struct sim *s, uint32_t i)
{
	const struct fate *f = &s->fate[i];
	uint64_t up = 5 + sim_rand(s, 50), end = up + 1 + sim_rand(s, 300);
	bool lost = f->lost >> (s->t[i].attempt - 1) & 1;

	if (lost) {
		end = 2 + sim_rand(s, end);
	} else if (f->serve == 3) {
		end = 2 + sim_rand(s, up - 2);
	}
	if (!f->hasty || f->serve != 1)
		sim_plan(s, 1,
			(struct vx_core_event){
				.kind = VX_EV_STARTED, .task = i, .moved = f->unboxed});
	if (s->in[i].waits_ready && up < end)
		sim_plan(s, up, (struct vx_core_event){.kind = VX_EV_READY, .task = i});
	if (lost)
		sim_plan(s, end, (struct vx_core_event){.kind = VX_EV_LOST, .task = i});
	else if (f->serve)
		sim_plan(s, end,
			(struct vx_core_event){.kind = VX_EV_EXITED,
				.task = i,
				.ok = f->serve == 1 || (f->serve == 3 && s->in[i].waits_ready),
				.moved = f->unboxed});
}

static void sim_run(struct sim *s, uint32_t i)
{
	const struct fate *f = &s->fate[i];
	uint64_t end = 2 + sim_rand(s, 200);

	if (s->in[i].persistent) {
		sim_serve(s, i);
		return;
	}
	if (!f->hasty)
		sim_plan(s, 1,
			(struct vx_core_event){
				.kind = VX_EV_STARTED, .task = i, .moved = f->unboxed});
	if (f->lost >> (s->t[i].attempt - 1) & 1)
		sim_plan(s, end, (struct vx_core_event){.kind = VX_EV_LOST, .task = i});
	else
		sim_plan(s, end,
			(struct vx_core_event){.kind = VX_EV_EXITED,
				.task = i,
				.ok = s->t[i].failures >= f->fails,
				.save = !f->no_save,
				.moved = f->unboxed});
}

static void sim_stop(struct sim *s, uint32_t i, int sig)
{
	if (sig != SIGKILL && !s->signal)
		sim_plan(s, 200, (struct vx_core_event){.kind = VX_EV_GRACE_OVER, .task = i});
	if (s->t[i].killed || (s->fate[i].deaf && sig != SIGKILL))
		return;
	s->t[i].killed = true;
	s->t[i].generation++;
	sim_plan(s, 1 + sim_rand(s, 100),
		(struct vx_core_event){
			.kind = VX_EV_EXITED, .task = i, .ok = sim_chance(s, 30), .save = true});
}

static void sim_save(struct sim *s, uint32_t i)
{
	const struct fate *f = &s->fate[i];
	uint64_t captured = 1 + sim_rand(s, 50);

	if (!f->capture_fails)
		sim_plan(s, captured,
			(struct vx_core_event){
				.kind = VX_EV_CAPTURED, .task = i, .moved = f->moved});
	sim_plan(s, captured + 1 + sim_rand(s, 300),
		(struct vx_core_event){
			.kind = VX_EV_SETTLED, .task = i, .moved = f->capture_fails && f->moved});
}

static void sim_obey(struct sim *s, const struct vx_core_decision *d)
{
	switch (d->what) {
	case VX_DO_KEY:
		sim_plan(s, 1 + sim_rand(s, 20),
			(struct vx_core_event){.kind = VX_EV_KEYED,
				.task = d->task,
				.verdict = s->fate[d->task].late});
		break;
	case VX_DO_RESTORE:
		sim_plan(s, 1 + sim_rand(s, 100),
			(struct vx_core_event){.kind = VX_EV_RESTORED,
				.task = d->task,
				.ok = !s->fate[d->task].damaged});
		break;
	case VX_DO_RUN:
		sim_run(s, d->task);
		break;
	case VX_DO_SAVE:
		sim_save(s, d->task);
		break;
	case VX_DO_STOP:
		sim_stop(s, d->task, d->signal);
		break;
	default:
		break;
	}
}

/* ---- telling ---- */

VXT_UNUSED static void sim_tell_world(const struct sim *s)
{
	printf("slots %u, memory %llu, policy %d, lanes %u %u\n", s->o.slots,
		(unsigned long long)s->o.memory_bytes, (int)s->o.policy, s->o.restore_lane,
		s->o.save_lane);
	for (uint32_t i = 0; i < s->n; i++) {
		const struct vx_core_task *t = &s->in[i];

		printf("task %u: %s%s%s%sverdict %d late %d cpus %u memory %llu retries %u path %llu weight %u fails %u damaged %d serve %d, after",
			i, t->group ? "group " : "",
			t->persistent ? t->waits_ready ? "server(waits) " : "server " : "",
			t->requested ? "requested " : "", t->exclusive ? "exclusive " : "",
			(int)t->verdict, (int)s->fate[i].late, t->cpus,
			(unsigned long long)t->memory_bytes, t->retries,
			(unsigned long long)s->path[i], t->weight, s->fate[i].fails,
			s->fate[i].damaged, s->fate[i].serve);
		for (uint32_t k = 0; k < t->n_deps; k++)
			printf(" %u", t->deps[k]);
		printf("\n");
	}
}

static void sim_tell_event(const struct sim *s, const struct vx_core_event *e)
{
	static const char *const names[] = {"", "keyed", "restored", "started", "ready", "exited",
		"lost", "captured", "settled", "interrupt", "grace over"};

	printf("%6llu  <- %s %d ok %d save %d moved %d verdict %d signal %d\n",
		(unsigned long long)s->now, names[e->kind], (int)e->task, e->ok, e->save, e->moved,
		(int)e->verdict, e->signal);
}

static void sim_tell_decision(const struct sim *s, const struct vx_core_decision *d)
{
	static const char *const names[] = {
		"", "KEY", "RESTORE", "RUN", "SAVE", "STOP", "RETRY", "DONE", "END"};
	static const char *const results[] = {
		"", "success", "hit", "failed", "skipped", "aborted", "not started"};

	printf("%6llu  -> %s %d attempt %u signal %d %s unsaved %d\n", (unsigned long long)s->now,
		names[d->what], (int)d->task, d->attempt, d->signal, results[d->result],
		d->unsaved);
}

/* ---- time ---- */

static void sim_drain(struct sim *s)
{
	struct vx_core_decision d;

	while (vx_core_next(s->c, &d)) {
		SIM_CHECK(s, ++s->decisions < 100000, d.task);
		if (sim_trace)
			sim_tell_decision(s, &d);
		judge_decision(s, &d);
		sim_obey(s, &d);
	}
	judge_quiet(s);
}

static void sim_feed(struct sim *s, const struct vx_core_event *e)
{
	if (sim_trace)
		sim_tell_event(s, e);
	judge_event(s, e);
	vx_core_event(s->c, e);
}

static bool sim_pop(struct sim *s, struct vx_core_event *ret)
{
	while (s->n_ev) {
		uint32_t k = 0;

		for (uint32_t j = 1; j < s->n_ev; j++)
			if (s->ev[j].at < s->ev[k].at ||
				(s->ev[j].at == s->ev[k].at && s->ev[j].seq < s->ev[k].seq))
				k = j;
		struct sim_event v = s->ev[k];
		s->ev[k] = s->ev[--s->n_ev];
		s->now = v.at > s->now ? v.at : s->now;
		if (v.e.kind != VX_EV_GRACE_OVER && v.e.task < s->n &&
			v.generation != s->t[v.e.task].generation)
			continue;
		*ret = v.e;
		return true;
	}
	return false;
}

/* Nothing will happen by itself: then servers must be what is left, and somebody ends one of them,
 * or the run. */
static void sim_nudge(struct sim *s)
{
	for (uint32_t i = 0; i < s->n; i++)
		if ((s->t[i].phase == P_RUNNING || s->t[i].phase == P_SERVING) && s->requested[i]) {
			SIM_CHECK(s, s->in[i].persistent && !s->signal && !s->foreground_over, i);
			if (sim_chance(s, 50))
				sim_plan(s, 1,
					(struct vx_core_event){.kind = VX_EV_EXITED,
						.task = i,
						.ok = sim_chance(s, 50)});
			else
				sim_plan(s, 1,
					(struct vx_core_event){.kind = VX_EV_INTERRUPT,
						.task = VX_CORE_ALL,
						.signal = SIGINT});
			return;
		}
	SIM_CHECK(s, !"stuck", SIM_MAX);
}

static void sim_go(struct sim *s)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
	struct vx_core_event e;

	if (sim_chance(s, 20))
		sim_plan(s, sim_rand(s, 800),
			(struct vx_core_event){.kind = VX_EV_INTERRUPT,
				.task = VX_CORE_ALL,
				.signal = signals[sim_rand(s, 3)]});
	s->c = vx_core_new(&s->o, s->in, s->n);
	sim_drain(s);
	while (!s->ended) {
		if (!sim_pop(s, &e)) {
			sim_drain(s); /* a batch may have ended here */
			if (!s->n_ev && !s->ended)
				sim_nudge(s);
			continue;
		}
		bool first = e.kind == VX_EV_INTERRUPT && !s->signal;
		sim_feed(s, &e);
		if (first) {
			sim_plan(s, 200,
				(struct vx_core_event){
					.kind = VX_EV_GRACE_OVER, .task = VX_CORE_ALL});
			if (sim_chance(s, 30))
				sim_plan(s, sim_rand(s, 200),
					(struct vx_core_event){.kind = VX_EV_INTERRUPT,
						.task = VX_CORE_ALL,
						.signal = SIGTERM});
		}
		if (!sim_chance(s, 25)) /* else: a batch of events before decisions are fetched */
			sim_drain(s);
	}
	struct vx_core_decision d;
	assert_false(vx_core_next(s->c, &d));
	vx_core_free(s->c);
}

#endif
