/* Very many worlds for the core (tests/sim/sim.h). SIM_SEEDS=how many, SIM_FROM=first seed. */
#include "../sim/sim.h"

static void campaign(void **state)
{
	static struct sim s;
	uint64_t from = getenv("SIM_FROM") ? strtoull(getenv("SIM_FROM"), NULL, 10) : 1000000;
	uint64_t count = getenv("SIM_SEEDS") ? strtoull(getenv("SIM_SEEDS"), NULL, 10) : 1000000;

	(void)state;
	for (uint64_t k = 0; k < count; k++) {
		sim_world(&s, from + k);
		sim_go(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
