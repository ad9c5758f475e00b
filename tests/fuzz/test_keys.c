/* The parsers of keys under random damage: VX_FUZZ_ROUNDS rounds of each (300,000), seed
 * VX_FUZZ_SEED. Run it under `make B=build/asan SAN=address,undefined` as well. make check runs a
 * few rounds of the same (tests/unit/test_key_parsers.c). */
#include "keyfuzz.h"

static void rounds(void **state)
{
	const char *n = getenv("VX_FUZZ_ROUNDS"), *seed = getenv("VX_FUZZ_SEED");
	(void)state;
	kf_rounds(seed ? strtoull(seed, NULL, 10) : 1, n ? (uint32_t)strtoul(n, NULL, 10) : 300000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(rounds)};
	return cmocka_run_group_tests_name("fuzz_keys", tests, NULL, NULL);
}
