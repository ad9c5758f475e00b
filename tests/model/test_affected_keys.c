/* --affected against keys: some hundred random edits. tests/slow has the long run. */
#include "affected_model.h"

static void random_edits(void **state)
{
	const char *seed = getenv("VX_SEED"), *steps = getenv("VX_STEPS");

	(void)state;
	if (seed) {
		am_run(strtoull(seed, NULL, 10), steps ? (uint32_t)atoi(steps) : 60);
	} else {
		for (uint64_t s = 1; s <= 5; s++)
			am_run(s, s == 1 ? 12 : 30);
		assert_true(am_total.edits > 80);
	}
	am_say();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_edits)};

	vxt_keeper(argc, argv);
	return cmocka_run_group_tests_name("affected_keys", tests, NULL, NULL);
}
