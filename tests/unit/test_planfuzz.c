/* The corpus of the planning parsers, and some damage to it: tests/fuzz/planfuzz.h. VX_FUZZ_ROUNDS
 * (2,000) mutations, seed VX_FUZZ_SEED. */
#include "vxtest.h"

#include "../fuzz/planfuzz.h"

static uint64_t rng;

static uint32_t below(uint32_t n) /* xorshift64 (Marsaglia 2003) */
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (uint32_t)(rng >> 20) % n : 0;
}

static void test_corpus(void **state)
{
	(void)state;
	for (size_t i = 0; i < VX_ARRAY_LEN(planfuzz_corpus); i++)
		planfuzz_one((const uint8_t *)planfuzz_corpus[i], strlen(planfuzz_corpus[i]));
}

/* A seed with bytes flipped, removed, doubled and spliced in from another seed of the same
 * parser. */
static size_t mutate(uint8_t *out, size_t cap)
{
	const char *seed = planfuzz_corpus[below(VX_ARRAY_LEN(planfuzz_corpus))],
		   *other = planfuzz_corpus[below(VX_ARRAY_LEN(planfuzz_corpus))];
	size_t n = strlen(seed);

	memcpy(out, seed, n);
	for (uint32_t edits = 1 + below(6); edits; edits--) {
		size_t at = n > 1 ? 1 + below((uint32_t)n - 1) : 1, k;
		switch (below(4)) {
		case 0:
			out[at < n ? at : n - 1] = (uint8_t)below(256);
			break;
		case 1:
			k = below(4);
			if (at + k < n) {
				memmove(out + at, out + at + k, n - at - k);
				n -= k;
			}
			break;
		case 2:
			k = below(8);
			if (at + k <= n && n + k < cap) {
				memmove(out + at + k, out + at, n - at);
				n += k;
			}
			break;
		default:
			k = 1 + below((uint32_t)strlen(other));
			if (k < strlen(other) && at < n && n + k < cap) {
				memmove(out + at + k, out + at, n - at);
				memcpy(out + at, other + below((uint32_t)(strlen(other) - k)), k);
				n += k;
			}
			break;
		}
	}
	return n;
}

static void test_damage(void **state)
{
	const char *rounds = getenv("VX_FUZZ_ROUNDS"), *seed = getenv("VX_FUZZ_SEED");
	uint8_t text[4096];

	(void)state;
	rng = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 88172645463325252ULL;
	for (long i = 0, n = rounds ? atol(rounds) : 2000; i < n; i++) {
		size_t len = mutate(text, sizeof text);
		planfuzz_one(text, len);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_corpus), cmocka_unit_test(test_damage)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
