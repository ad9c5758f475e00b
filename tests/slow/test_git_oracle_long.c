/* Our file lists against git's: 10,000 random edits in 100 trees. */
#include "../model/git_oracle.h"

static void campaign(void **state)
{
	(void)state;
	for (uint64_t seed = 100; seed < 200; seed++) {
		fprintf(stderr, "# VX_SEED=%llu\n", (unsigned long long)seed);
		go_run(seed, 100);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};
	return cmocka_run_group_tests_name("git_oracle_long", tests, NULL, NULL);
}
