/* --affected against keys: 10,000 (VX_EDITS) random edits, from seed VX_SEED (100) on. */
#include "../model/affected_model.h"

static void campaign(void **state)
{
	const char *from = getenv("VX_SEED"), *many = getenv("VX_EDITS");
	uint64_t edits = many ? strtoull(many, NULL, 10) : 10000;

	(void)state;
	for (uint64_t seed = from ? strtoull(from, NULL, 10) : 100; am_total.edits < edits;
		seed++) {
		fprintf(stderr, "# VX_SEED=%llu\n", (unsigned long long)seed);
		am_run(seed, seed % 8 == 1 ? 40 : 80);
	}
	am_say();
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(campaign)};

	vxt_keeper(argc, argv);
	return cmocka_run_group_tests_name("affected_keys_long", tests, NULL, NULL);
}
