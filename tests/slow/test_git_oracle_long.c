/* Our file lists against git's: 10,000 random edits in 100 trees, from seed VX_SEED (100) on. */
#include "../model/git_oracle.h"

static void campaign(void **state)
{
	const char *from = getenv("VX_SEED");
	uint64_t first = from ? strtoull(from, NULL, 10) : 100;
	uint32_t own = 0;
	(void)state;
	for (uint64_t seed = first; seed < first + 100; seed++) {
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
