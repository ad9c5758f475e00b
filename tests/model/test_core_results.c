/* The core against a reference scheduler of a page: what each task's result must be, from the graph
 * and the fates alone, whatever the timing was. Worlds with servers, interrupts or policy `never`
 * depend on timing and are left to the judge of tests/sim. */
#include "../sim/sim.h"

struct expected {
	enum vx_result result; /* 0: not known yet */
	uint32_t attempts;
	bool flaky;
};

static void reference_run(const struct sim *s, uint32_t i, struct expected *x)
{
	uint32_t failures = 0, losses = 0;

	for (;;) {
		x->attempts++;
		if (s->fate[i].lost >> (x->attempts - 1) & 1) {
			if (++losses == 2)
				break;
		} else if (failures >= s->fate[i].fails) {
			x->flaky = failures;
			x->result = VX_R_SUCCESS;
			return;
		} else if (failures++ == s->in[i].retries) {
			break;
		}
	}
	x->result = VX_R_FAILED;
}

static void reference(const struct sim *s, uint32_t i, struct expected *all)
{
	struct expected *x = &all[i];
	bool blocked = false;

	if (x->result)
		return;
	for (uint32_t k = 0; k < s->in[i].n_deps; k++) {
		uint32_t d = s->deps[i][k];

		reference(s, d, all);
		blocked |= s->o.policy == VX_CONTINUE_DEPS_OK &&
			   (all[d].result == VX_R_FAILED || all[d].result == VX_R_SKIPPED);
	}
	enum vx_verdict first = s->in[i].verdict, late = s->fate[i].late;
	bool good = !s->fate[i].damaged;
	if (s->in[i].group)
		x->result = blocked ? VX_R_SKIPPED : VX_R_SUCCESS;
	else if (first == VX_V_HIT && good)
		x->result = VX_R_HIT;
	else if (first == VX_V_FAILED)
		x->result = VX_R_FAILED;
	else if (blocked)
		x->result = VX_R_SKIPPED;
	else if (first == VX_V_LATE && late == VX_V_HIT && good)
		x->result = VX_R_HIT;
	else if (first == VX_V_LATE && late == VX_V_FAILED)
		x->result = VX_R_FAILED;
	else
		reference_run(s, i, x);
}

static void results_agree(void **state)
{
	static struct sim s;
	unsigned compared = 0;

	(void)state;
	for (uint64_t seed = 5000000; seed < 5030000; seed++) {
		struct expected x[SIM_MAX] = {0};
		bool servers = false;

		sim_world(&s, seed);
		for (uint32_t i = 0; i < s.n; i++)
			servers |= s.in[i].persistent;
		if (servers || s.o.policy == VX_CONTINUE_NEVER)
			continue;
		sim_go(&s);
		if (s.signal)
			continue;
		compared++;
		for (uint32_t i = 0; i < s.n; i++) {
			reference(&s, i, x);
			if (s.in[i].group)
				continue;
			SIM_CHECK(&s, s.t[i].result == x[i].result, i);
			SIM_CHECK(&s, s.t[i].attempt == x[i].attempts, i);
		}
	}
	assert_true(compared > 5000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(results_agree)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
