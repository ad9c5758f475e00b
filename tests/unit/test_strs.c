/* strs and map. */
#include "vxtest.h"

#include "vx/arena.h"
#include "vx/map.h"
#include "vx/strs.h"

#include <errno.h>

static void lists(void **state)
{
	struct vx_arena a = {0};
	struct vx_strlist l = {0};

	(void)state;
	assert_int_equal(vx_strlist_done(&l).n, 0);
	vx_strlist_sort_unique(&l);
	for (int i = 0; i < 100; i++)
		vx_strlist_add(&l, &a, vx_arena_printf(&a, "%02d", (i * 7) % 50));
	assert_int_equal(l.n, 100);
	assert_string_equal(l.v[1], "07"); /* order is kept */
	vx_strlist_sort_unique(&l);
	assert_int_equal(l.n, 50);
	for (uint32_t i = 0; i < l.n; i++)
		assert_int_equal(atoi(l.v[i]), i);
	assert_true(vx_strs_has(vx_strlist_done(&l), "33"));
	assert_false(vx_strs_has(vx_strlist_done(&l), "3"));
	vx_arena_free(&a);
}

static void sorting_is_bytewise(void **state)
{
	const char *v[] = {"b", "\xc3\xa4", "a", "B", "a"};
	struct vx_strlist l = {v, 5, 5};

	(void)state;
	vx_strlist_sort_unique(&l);
	assert_int_equal(l.n, 4);
	assert_string_equal(v[0], "B");
	assert_string_equal(v[3], "\xc3\xa4"); /* bytes are unsigned */
}

static void comparing(void **state)
{
	(void)state;
	assert_true(vx_streq(NULL, NULL));
	assert_false(vx_streq(NULL, ""));
	assert_false(vx_streq("", NULL));
	assert_true(vx_streq("a", "a"));
	assert_true(vx_starts_with("abc", "ab"));
	assert_true(vx_starts_with("abc", ""));
	assert_false(vx_starts_with("a", "ab"));
	assert_true(vx_ends_with("abc", "bc"));
	assert_true(vx_ends_with("abc", ""));
	assert_false(vx_ends_with("c", "bc"));
}

static void names_with_stars(void **state)
{
	static const struct {
		const char *pattern, *name;
		bool yes;
	} v[] = {
		{"web", "web", true},
		{"web", "webs", false},
		{"", "", true},
		{"*", "", true},
		{"*", "@a/b", true},
		{"@a/*", "@a/b/c", true},
		{"*b", "abab", true},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"a**", "a", true},
		{"?", "x", false},
		{"A", "a", false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof v / sizeof *v; i++)
		if (vx_name_matches(v[i].pattern, v[i].name) != v[i].yes)
			fail_msg("%s and %s", v[i].pattern, v[i].name);
}

static void nearest(void **state)
{
	const char *names[] = {"build", "test", "lint", "typecheck", "a"};
	struct vx_strs c = {names, 5};
	char far[300];

	(void)state;
	assert_string_equal(vx_nearest("biuld", c), "build"); /* a transposition counts one */
	assert_string_equal(vx_nearest("buil", c), "build");
	assert_string_equal(vx_nearest("tset", c), "test");
	assert_string_equal(vx_nearest("typcehek", c), "typecheck");
	assert_string_equal(vx_nearest("lint", c), "lint");
	assert_null(vx_nearest("deploy", c));
	assert_null(vx_nearest("b", c)); /* nothing of it would remain */
	assert_null(vx_nearest("", c));
	assert_null(vx_nearest("build", (struct vx_strs){NULL, 0}));
	memset(far, 'x', sizeof far - 1);
	far[sizeof far - 1] = '\0';
	assert_null(vx_nearest(far, c));
	names[0] = far;
	assert_string_equal(vx_nearest("tests", c), "test");
}

static void nearest_prefers_the_nearer_then_the_first(void **state)
{
	const char *names[] = {"builds1", "builds", "buildt"};
	struct vx_strs c = {names, 3};

	(void)state;
	assert_string_equal(vx_nearest("build", c), "builds");
	assert_string_equal(vx_nearest("buildt", c), "buildt");
}

static void numbers(void **state)
{
	uint64_t v = 77;
	const char *bad[] = {"", " 1", "1 ", "-1", "+1", "1x", "0x10", "1.0", "x"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(vx_parse_u64(bad[i], UINT64_MAX, &v), -EINVAL);
	assert_int_equal(vx_parse_u64("11", 10, &v), -ERANGE);
	assert_int_equal(vx_parse_u64("18446744073709551616", UINT64_MAX, &v), -ERANGE);
	assert_int_equal(vx_parse_u64("99999999999999999999999999999x", UINT64_MAX, &v), -EINVAL);
	assert_true(v == 77); /* untouched */
	assert_int_equal(vx_parse_u64("18446744073709551615", UINT64_MAX, &v), 0);
	assert_true(v == UINT64_MAX);
	assert_int_equal(vx_parse_u64("007", 7, &v), 0);
	assert_true(v == 7);
}

static void byte_sizes(void **state)
{
	uint64_t v = 77;
	const char *bad[] = {"", "K", "4k", "4GB", "4 G", "-4G", "4.5G", "G4", "4Gx"};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(vx_parse_bytes(bad[i], &v), -EINVAL);
	assert_int_equal(vx_parse_bytes("16777216T", &v), -ERANGE);
	assert_int_equal(vx_parse_bytes("18446744073709551616", &v), -ERANGE);
	assert_true(v == 77);
	assert_int_equal(vx_parse_bytes("123", &v), 0);
	assert_true(v == 123);
	assert_int_equal(vx_parse_bytes("64K", &v), 0);
	assert_true(v == 65536);
	assert_int_equal(vx_parse_bytes("512M", &v), 0);
	assert_true(v == 512ULL << 20);
	assert_int_equal(vx_parse_bytes("4G", &v), 0);
	assert_true(v == 4ULL << 30);
	assert_int_equal(vx_parse_bytes("2T", &v), 0);
	assert_true(v == 2ULL << 40);
}

static void map_against_an_array(void **state)
{
	enum { N = 20000 };
	struct vx_map m = {0};
	static char keys[N][12];

	(void)state;
	assert_int_equal(vx_map_gets(&m, "nothing"), VX_MAP_NONE);
	for (uint32_t i = 0; i < N; i++) {
		snprintf(keys[i], sizeof keys[i], "k%u", i * 2654435761U);
		assert_true(vx_map_puts(&m, keys[i], i));
	}
	assert_int_equal(m.n, N);
	for (uint32_t i = 0; i < N; i++) {
		assert_int_equal(vx_map_gets(&m, keys[i]), i);
		assert_false(vx_map_puts(&m, keys[i], 0)); /* the old value stays */
	}
	assert_int_equal(vx_map_gets(&m, "k"), VX_MAP_NONE);
	vx_map_set(&m, keys[5], (uint32_t)strlen(keys[5]), 99);
	assert_int_equal(vx_map_gets(&m, keys[5]), 99);
	vx_map_set(&m, "new", 3, 100);
	assert_int_equal(vx_map_gets(&m, "new"), 100);
	assert_int_equal(m.n, N + 1);
	vx_map_free(&m);
	assert_int_equal(vx_map_gets(&m, keys[5]), VX_MAP_NONE);
	assert_true(vx_map_puts(&m, keys[5], 1));
	vx_map_free(&m);
}

static void map_keys_are_bytes(void **state)
{
	struct vx_map m = {0};

	(void)state;
	assert_true(vx_map_put(&m, "a\0b", 3, 1));
	assert_true(vx_map_put(&m, "a\0c", 3, 2));
	assert_true(vx_map_put(&m, "a", 1, 3));
	assert_true(vx_map_put(&m, NULL, 0, 4));
	assert_false(vx_map_put(&m, "", 0, 5));
	assert_int_equal(vx_map_get(&m, "a\0b", 3), 1);
	assert_int_equal(vx_map_get(&m, "a\0c", 3), 2);
	assert_int_equal(vx_map_get(&m, "a", 1), 3);
	assert_int_equal(vx_map_get(&m, "", 0), 4);
	assert_int_equal(vx_map_get(&m, "ab", 2), VX_MAP_NONE);
	vx_map_reserve(&m, 1000);
	assert_true(m.cap >= 1000);
	assert_int_equal(vx_map_get(&m, "a\0c", 3), 2);
	vx_map_free(&m);
}

static void hash_depends_on_every_byte_and_the_seed(void **state)
{
	unsigned char p[40] = {0};

	(void)state;
	for (size_t n = 0; n <= sizeof p; n++) {
		uint64_t h = vx_hash64(p, n, 1);

		assert_true(h != vx_hash64(p, n, 2));
		if (n)
			assert_true(h != vx_hash64(p, n - 1, 1)); /* zeros of another length */
		for (size_t i = 0; i < n; i++) {
			p[i] ^= 0x40;
			assert_true(h != vx_hash64(p, n, 1));
			p[i] ^= 0x40;
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lists),
		cmocka_unit_test(sorting_is_bytewise),
		cmocka_unit_test(comparing),
		cmocka_unit_test(names_with_stars),
		cmocka_unit_test(nearest),
		cmocka_unit_test(nearest_prefers_the_nearer_then_the_first),
		cmocka_unit_test(numbers),
		cmocka_unit_test(byte_sizes),
		cmocka_unit_test(map_against_an_array),
		cmocka_unit_test(map_keys_are_bytes),
		cmocka_unit_test(hash_depends_on_every_byte_and_the_seed),
	};

	return cmocka_run_group_tests_name("strs", tests, NULL, NULL);
}
