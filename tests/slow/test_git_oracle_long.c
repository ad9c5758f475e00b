/* Our file lists against git's: 10,000 random edits in 100 trees. */
#include "../model/git_oracle.h"

static void campaign(void **state)
{
	(void)state;
	uint32_t own = 0;
	for (uint64_t seed = 100; seed < 200; seed++) {
		fprintf(stderr, "# VX_SEED=%llu\n", (unsigned long long)seed);
		own += go_run(seed, 100);
	}
	assert_true(own > 5000); /* else it was git that was compared with git */
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};
	return cmocka_run_group_tests_name("git_oracle_long", tests, NULL, NULL);
}
