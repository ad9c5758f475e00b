/* Our file lists against git's, on random trees: 300 steps. tests/slow has the long run. */
#include "git_oracle.h"

static void random_edits(void **state)
{
	(void)state;
	const char *seed = getenv("VX_SEED"), *steps = getenv("VX_STEPS");
	if (seed) {
		go_run(strtoull(seed, NULL, 10), steps ? (uint32_t)atoi(steps) : 100);
		return;
	}
	uint32_t own = 0;
	for (uint64_t s = 1; s <= 4; s++) {
		fprintf(stderr, "# VX_SEED=%llu\n", (unsigned long long)s);
		own += go_run(s, 75);
	}
	assert_true(own > 150); /* else it was git that was compared with git */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_edits)};
	return cmocka_run_group_tests_name("git_oracle", tests, NULL, NULL);
}
