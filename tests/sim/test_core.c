/* The core in many small random worlds, and in one of a million tasks. SIM_SEED=n runs one small
 * world alone and tells its story. */
#include "sim.h"

#include <time.h>

/* Every allocation of this program passes here: none may happen after vx_core_new. (Sanitizers
 * bring their own; the count then stays 0.) */
static unsigned long n_allocations;

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	n_allocations++;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	n_allocations++;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	n_allocations++;
	return __libc_realloc(p, n);
}
#endif

static void many_worlds(void **state)
{
	static struct sim s;

	(void)state;
	if (getenv("SIM_SEED")) {
		sim_trace = true;
		setvbuf(stdout, NULL, _IOLBF, 0);
		sim_world(&s, strtoull(getenv("SIM_SEED"), NULL, 10));
		sim_tell_world(&s);
		sim_go(&s);
		exit(0);
	}
	for (uint64_t seed = 1; seed <= 40000; seed++) {
		sim_world(&s, seed);
		sim_go(&s);
	}
}

/* The same world twice makes the same decisions. */
static void deterministic(void **state)
{
	static struct sim a, b;

	(void)state;
	for (uint64_t seed = 1; seed <= 200; seed++) {
		sim_world(&a, seed);
		sim_go(&a);
		sim_world(&b, seed);
		sim_go(&b);
		assert_int_equal(a.decisions, b.decisions);
		assert_int_equal(a.now, b.now);
		assert_memory_equal(a.t, b.t, sizeof a.t);
	}
}

/* ---- a million ---- */

#define MILLION 1000000U
#define SLOTS 64U

struct crowd {
	struct vx_core *c;
	uint32_t running[SLOTS], n_running, runs, done, attempts_lost;
	struct {
		uint32_t task;
		bool captured;
	} saves[2 * SLOTS];
	uint32_t n_saves, restores[2 * SLOTS], n_restores;
	bool ended;
	int code;
};

static void crowd_drain(struct crowd *w)
{
	struct vx_core_decision d;

	while (vx_core_next(w->c, &d)) {
		switch (d.what) {
		case VX_DO_RUN:
			assert_true(w->n_running < SLOTS);
			w->running[w->n_running++] = d.task;
			w->runs++;
			break;
		case VX_DO_SAVE:
			assert_true(w->n_saves < 2 * SLOTS);
			w->saves[w->n_saves].captured = false;
			w->saves[w->n_saves++].task = d.task;
			break;
		case VX_DO_RESTORE:
			assert_true(w->n_restores < 2 * SLOTS);
			w->restores[w->n_restores++] = d.task;
			break;
		case VX_DO_DONE:
			w->done++;
			break;
		case VX_DO_END:
			w->ended = true;
			w->code = d.code;
			break;
		default:
			break;
		}
	}
}

/* The oldest thing under way comes to its end. */
static void crowd_step(struct crowd *w, uint32_t round)
{
	struct vx_core_event e = {0};

	if (w->n_saves && round % 3 == 1) {
		e.task = w->saves[0].task;
		e.kind = w->saves[0].captured ? VX_EV_SETTLED : VX_EV_CAPTURED;
		if (w->saves[0].captured)
			w->saves[0] = w->saves[--w->n_saves];
		else
			w->saves[0].captured = true;
	} else if (w->n_restores && round % 3 == 2) {
		e = (struct vx_core_event){
			.kind = VX_EV_RESTORED, .task = w->restores[0], .ok = round % 1000 != 2};
		w->restores[0] = w->restores[--w->n_restores];
	} else if (w->n_running) {
		uint32_t k = round % w->n_running;

		e = (struct vx_core_event){.kind = round % 977 == 0 ? VX_EV_LOST : VX_EV_EXITED,
			.task = w->running[k],
			.ok = true,
			.save = true};
		w->attempts_lost += e.kind == VX_EV_LOST;
		w->running[k] = w->running[--w->n_running];
	} else {
		return;
	}
	vx_core_event(w->c, &e);
}

static void million(void **state)
{
	struct vx_core_task *in = calloc(MILLION, sizeof *in);
	uint32_t *deps = calloc(MILLION, 3 * sizeof *deps), round = 0;
	struct vx_core_opts o = {.slots = SLOTS,
		.restore_lane = 2 * SLOTS,
		.save_lane = 2 * SLOTS,
		.policy = VX_CONTINUE_ALWAYS};
	struct crowd *w = calloc(1, sizeof *w);
	struct sim r = {.rng = 7};
	struct vx_core_counts n;

	(void)state;
	for (uint32_t i = 0; i < MILLION; i++) { /* half of them one long chain, the rest wide */
		in[i].deps = deps + 3UL * i;
		in[i].n_deps = i < MILLION / 2 ? i > 0 : 3;
		for (uint32_t k = 0; k < in[i].n_deps; k++)
			deps[3UL * i + k] = i < MILLION / 2 ? i - 1 : (uint32_t)sim_rand(&r, i);
		in[i].verdict = i % 5 == 0 ? VX_V_HIT : i % 5 == 1 ? VX_V_NOCACHE : VX_V_MISS;
		in[i].group = i % 17 == 3;
		in[i].predicted_ns = i % 3 * 1000000;
		in[i].cpus = 1;
	}
	w->c = vx_core_new(&o, in, MILLION);
	unsigned long before = n_allocations;
	while (crowd_drain(w), !w->ended)
		crowd_step(w, round++);
	assert_int_equal(n_allocations, before);
	vx_core_counts(w->c, &n);
	assert_int_equal(w->done, n.total);
	assert_int_equal(n.done, n.total);
	assert_int_equal(n.hits + n.executed, n.total);
	/* a task that is lost twice has failed */
	assert_int_equal(w->code, n.failed ? 1 : 0);
	assert_int_equal(w->runs, n.executed + w->attempts_lost - n.failed);
	vx_core_free(w->c);
	free(in);
	free(deps);
	free(w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(many_worlds),
		cmocka_unit_test(deterministic), cmocka_unit_test(million)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
