#include "vxtest.h"

#include "vx/workspace.h"

static const struct {
	const char *version, *range;
	bool want;
} cases[] = {
	{"1.2.3", "1.2.3", true},
	{"1.2.3", "=1.2.3", true},
	{"1.2.3", "v1.2.3", true},
	{"v1.2.3", "1.2.3", true},
	{"1.2.3", "1.2.4", false},
	{"1.2.3", "", true},
	{"1.2.3", "*", true},
	{"1.2.3", "x", true},
	{"1.2.3", "1", true},
	{"2.0.0", "1", false},
	{"1.2.3", "1.2", true},
	{"1.3.0", "1.2.x", false},
	{"1.2.9", "1.2.*", true},
	{"1.9.9", "^1.2.3", true},
	{"1.2.2", "^1.2.3", false},
	{"2.0.0", "^1.2.3", false},
	{"0.2.9", "^0.2.3", true},
	{"0.3.0", "^0.2.3", false},
	{"0.0.3", "^0.0.3", true},
	{"0.0.4", "^0.0.3", false},
	{"0.0.9", "^0.0", true},
	{"0.9.0", "^0", true},
	{"0.9.0", "^0.x", true},
	{"1.0.0", "^0.x", false},
	{"1.2.9", "~1.2.3", true},
	{"1.3.0", "~1.2.3", false},
	{"1.9.0", "~1", true},
	{"1.2.9", "~>1.2.3", true},
	{"1.2.3", ">=1.2.3", true},
	{"1.2.3", ">= 1.2.3", true},
	{"1.2.3", ">1.2.3", false},
	{"1.2.3", ">1.2", false},
	{"1.3.0", ">1.2", true},
	{"2.0.0", ">1", true},
	{"1.9.9", ">1", false},
	{"1.9.9", "<=1", true},
	{"2.0.0", "<=1", false},
	{"1.2.0", "<1.2", false},
	{"1.1.9", "<1.2", true},
	{"1.2.3", ">*", false},
	{"1.2.3", ">=*", true},
	{"1.5.0", ">=1.2.0 <2.0.0", true},
	{"2.0.0", ">=1.2.0 <2.0.0", false},
	{"1.5.0", "1.2 - 1.6", true},
	{"1.6.9", "1.2 - 1.6", true},
	{"1.7.0", "1.2 - 1.6", false},
	{"2.9.0", "1.2.3 - 2", true},
	{"1.2.3", "1.2.3 - 1.2.3", true},
	{"3.0.0", "1.x || >=2.5.0 || 5.0.0 - 7.2.3", true},
	{"2.0.0", "1.x || >=2.5.0 || 5.0.0 - 7.2.3", false},
	{"1.0.0", "2||1", true},
	{"1.2.3-beta.4", "^1.2.3-beta.2", true},
	{"1.2.3-beta.1", "^1.2.3-beta.2", false},
	{"1.2.3-beta.10", "^1.2.3-beta.2", true},
	{"1.2.3-alpha.9", ">1.2.3-alpha.beta", false},
	{"1.2.3-alpha", ">1.2.3-alpha.1", false},
	{"1.2.4-beta.2", "^1.2.3-beta.2", false},
	{"1.2.3", "^1.2.3-beta.2", true},
	{"2.0.0-rc.1", "*", false},
	{"2.0.0-rc.1", "^1.0.0", false},
	{"2.0.0-rc.1", ">=2.0.0-rc.0", true},
	{"2.0.0-rc.1", "<2", false},
	{"1.2.3+build.5", "1.2.3", true},
	{"1.2.3", "1.2.3+other", true},
	{"1.2.3", "latest", false},
	{"1.2.3", "workspace:*", false},
	{"1.2", "1", false},
	{"", "*", false},
	{"1.2.3", "01.2.3", false},
	{"1.2.3", ">=1.2.3 garbage", false},
	{"1.2.3", "^", false},
	{"99999999999999999999.0.0", "*", false},
	{"9007199254740991.0.0", ">=9007199254740991.0.0", true},
	{"1.2.3-01", "*", false},
	{"1.0.0", "1.0.0 - ", false},
	{"1.0.0", " - 1.0.0", false},
};

static void test_satisfies(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		if (vx_semver_satisfies(cases[i].version, cases[i].range) != cases[i].want)
			fail_msg("%s in \"%s\": expected %d", cases[i].version, cases[i].range,
				cases[i].want);
	assert_false(vx_semver_satisfies(NULL, "*"));
	assert_false(vx_semver_satisfies("1.0.0", NULL));
}

static void test_long_range_is_refused(void **state)
{
	static char range[40000];

	(void)state;
	for (size_t i = 0; i + 8 < sizeof range; i += 7)
		memcpy(range + i, ">=1.0.0", 7);
	assert_false(vx_semver_satisfies("1.0.0", range));
	memset(range, ' ', sizeof range - 1);
	for (size_t i = 0; i + 3 < 4000; i += 3)
		memcpy(range + i, ">1 ", 3);
	range[4000] = '\0';
	assert_false(vx_semver_satisfies("2.0.0", range)); /* more comparators than the limit */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_satisfies),
		cmocka_unit_test(test_long_range_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
