/* Concurrency as written, and what the machine gives. */
#include "vxtest.h"

#include "vx/err.h"
#include "vx/limits.h"
#include "vx/run.h"

#include <sched.h>

static void reads_concurrency(void **state)
{
	(void)state;
	struct vx_err err = {0};
	uint32_t n = 0, cpus = vx_cpu_count();
	assert_int_equal(vx_concurrency("7", &n, &err), 0);
	assert_int_equal(n, 7);
	assert_int_equal(vx_concurrency("100%", &n, &err), 0);
	assert_int_equal(n, cpus);
	assert_int_equal(vx_concurrency("1%", &n, &err), 0);
	assert_int_equal(n, 1);
	assert_int_equal(vx_concurrency(NULL, &n, &err), 0);
	assert_int_equal(n, cpus);
	assert_int_equal(vx_concurrency("4096", &n, &err), 0);
}

static void refuses_what_is_no_number(void **state)
{
	(void)state;
	static const char *const words[] = {"", "0", "-1", "+2", "2x", "0x10", "1e3", "%", "0%",
		"4097", "99999999999999999999999999", " 2", "2 "};
	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		struct vx_err err = {0};
		uint32_t n = 77;
		if (vx_concurrency(words[i], &n, &err) == 0)
			fail_msg("accepted: \"%s\"", words[i]);
		assert_int_equal(n, 77);
		assert_true(err.what[0] && err.fix[0]);
	}
}

static void follows_affinity(void **state)
{
	(void)state;
	cpu_set_t old, one;
	assert_int_equal(sched_getaffinity(0, sizeof old, &old), 0);
	CPU_ZERO(&one);
	for (int i = 0; i < CPU_SETSIZE; i++)
		if (CPU_ISSET(i, &old)) {
			CPU_SET(i, &one);
			break;
		}
	assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
	assert_int_equal(vx_cpu_count(), 1);
	assert_int_equal(sched_setaffinity(0, sizeof old, &old), 0);
	assert_true(vx_cpu_count() >= 1);
	assert_true(vx_memory_free() > 1 << 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reads_concurrency),
		cmocka_unit_test(refuses_what_is_no_number), cmocka_unit_test(follows_affinity)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
