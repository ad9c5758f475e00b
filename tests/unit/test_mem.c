/* err, arena, buf, clock. */
#include "vxtest.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"

#include <errno.h>
#include <signal.h>

static void err_set_and_fix(void **state)
{
	struct vx_err e = {0};

	(void)state;
	assert_int_equal(vx_err_set(&e, -ENOENT, "%s is missing", "x"), -ENOENT);
	assert_int_equal(e.code, -ENOENT);
	assert_string_equal(e.what, "x is missing");
	assert_string_equal(e.fix, "");
	assert_int_equal(vx_err_fix(&e, "make %d", 1), -ENOENT);
	assert_string_equal(e.fix, "make 1");
	assert_int_equal(vx_err_set(&e, -EIO, "again"), -EIO);
	assert_string_equal(e.fix, ""); /* advice belongs to its error */
	assert_int_equal(vx_err_set(NULL, -EIO, "%d", 1), -EIO);
	vx_err_fix(NULL, "no %s", "matter");
}

static void err_long_texts_are_cut(void **state)
{
	struct vx_err e;
	char *big = malloc(10000);

	(void)state;
	memset(big, 'a', 9999);
	big[9999] = '\0';
	vx_err_set(&e, -EIO, "%s", big);
	vx_err_fix(&e, "%s", big);
	assert_int_equal(strlen(e.what), sizeof e.what - 1);
	assert_int_equal(strlen(e.fix), sizeof e.fix - 1);
	free(big);
}

static void err_names(void **state)
{
	(void)state;
	assert_string_equal(vx_strerror(-ENOSPC), "No space left on device");
	assert_string_equal(vx_strerror(ENOSPC), "No space left on device");
	assert_string_equal(vx_strerror(99999), "Unknown error");
	assert_non_null(vx_strerror(0));
	assert_string_equal(vx_signal_name(SIGKILL), "SIGKILL");
	assert_string_equal(vx_signal_name(SIGSYS), "SIGSYS");
	assert_string_equal(vx_signal_name(77), "signal 77");
	assert_string_equal(vx_signal_name(0), "signal 0");
	assert_string_equal(vx_signal_name(-3), "signal -3");
	for (int s = 1; s < 32; s++)
		assert_memory_equal(vx_signal_name(s), "SIG", 3);
}

static void arena_zeroed_aligned_and_apart(void **state)
{
	struct vx_arena a = {0};
	unsigned char *all[400];
	size_t sizes[400], sum = 0;

	(void)state;
	for (size_t i = 0; i < 400; i++) {
		sizes[i] = i * 37 + (i % 50 == 0 ? 100000 : 0) + (i == 123 ? 3 << 20 : 0);
		all[i] = vx_arena_alloc(&a, sizes[i]);
		assert_int_equal((uintptr_t)all[i] % 16, 0);
		for (size_t k = 0; k < sizes[i]; k++)
			if (all[i][k])
				fail_msg("byte %zu of block %zu is not zero", k, i);
		memset(all[i], (int)(i & 0xff) | 1, sizes[i]);
		sum += sizes[i];
	}
	for (size_t i = 0; i < 400; i++)
		for (size_t k = 0; k < sizes[i]; k++)
			if (all[i][k] != ((i & 0xff) | 1))
				fail_msg("byte %zu of block %zu was overwritten", k, i);
	assert_true(a.used_bytes >= sum);
	vx_arena_free(&a);
	assert_null(a.head);
	assert_int_equal(a.used_bytes, 0);
	assert_string_equal(vx_arena_strdup(&a, "usable again"), "usable again");
	vx_arena_free(&a);
	vx_arena_free(&a);
}

static void arena_grows_arrays(void **state)
{
	struct vx_arena a = {0};
	uint32_t cap = 0, *v = NULL;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		if (i == cap)
			v = vx_arena_grow(&a, v, i, sizeof *v, &cap, 3);
		v[i] = i;
	}
	assert_int_equal(cap, 192);
	for (uint32_t i = 0; i < 100; i++)
		assert_int_equal(v[i], i);
	vx_arena_free(&a);
}

static void arena_strings(void **state)
{
	struct vx_arena a = {0};
	char big[2000];

	(void)state;
	memset(big, 'x', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	assert_string_equal(vx_arena_strndup(&a, "abcdef", 3), "abc");
	assert_string_equal(vx_arena_strndup(&a, NULL, 0), "");
	assert_string_equal(vx_arena_printf(&a, "%d-%s", 7, "q"), "7-q");
	assert_string_equal(vx_arena_printf(&a, "%s", big), big);
	assert_memory_equal(vx_arena_dup(&a, "a\0b", 3), "a\0b", 3);
	assert_non_null(vx_arena_dup(&a, NULL, 0));
	assert_non_null(vx_arena_array(&a, 0, 8));
	vx_arena_free(&a);
}

static void arena_refuses_impossible_sizes(void **state)
{
	(void)state;
	for (int how = 0; how < 3; how++) {
		pid_t pid = fork();
		if (pid == 0) {
			struct vx_arena a = {0};
			int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

			dup2(null, 2);
			signal(SIGABRT, SIG_DFL);
			if (how == 0)
				vx_arena_array(&a, SIZE_MAX / 2, 3);
			else if (how == 1)
				vx_arena_alloc(&a, SIZE_MAX - 5);
			else
				vx_err_set(NULL, 1, "a code that is not negative is a bug of ours");
			_exit(0);
		}
		int status;
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	}
}

static void buf_appends(void **state)
{
	struct vx_buf b = VX_BUF(1 << 20);
	char big[1000];

	(void)state;
	memset(big, 'y', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	assert_string_equal(vx_buf_str(&b), "");
	vx_buf_add(&b, NULL, 0);
	vx_buf_adds(&b, "");
	assert_string_equal(vx_buf_str(&b), "");
	vx_buf_adds(&b, "ab");
	vx_buf_addc(&b, 'c');
	vx_buf_printf(&b, "-%d-", 12);
	assert_string_equal(b.data, "abc-12-");
	vx_buf_drop(&b, 4);
	assert_string_equal(b.data, "12-");
	vx_buf_drop(&b, 3);
	assert_string_equal(b.data, "");
	vx_buf_printf(&b, "%s", big);
	assert_string_equal(b.data, big);
	vx_buf_clear(&b);
	assert_int_equal(b.len, 0);
	vx_buf_u32le(&b, 0x04030201);
	vx_buf_u64le(&b, 0x0c0b0a0908070605);
	assert_memory_equal(b.data, "\x01\x02\x03\x04\x05\x06\x07\x08\x09\x0a\x0b\x0c", 12);
	vx_buf_free(&b);
	assert_null(b.data);
	vx_buf_adds(&b, "usable again");
	vx_buf_free(&b);
}

static void buf_overflow_refuses_everything_after(void **state)
{
	struct vx_buf b = VX_BUF(5);

	(void)state;
	vx_buf_adds(&b, "12345"); /* exactly the maximum */
	assert_false(b.overflow);
	assert_int_equal(b.cap, 6);
	vx_buf_addc(&b, '6');
	assert_true(b.overflow);
	assert_string_equal(b.data, "12345");
	vx_buf_drop(&b, 5);
	vx_buf_adds(&b, "a");
	/* room again, but refused: the caller tests once at the end */
	assert_string_equal(b.data, "");
	assert_null(vx_buf_reserve(&b, 1));
	vx_buf_clear(&b);
	vx_buf_printf(&b, "%s", "123456");
	assert_true(b.overflow);
	assert_int_equal(b.len, 0);
	vx_buf_free(&b);

	struct vx_buf none = VX_BUF(0);
	vx_buf_addc(&none, 'x');
	assert_true(none.overflow);
	vx_buf_free(&none);

	struct vx_buf huge = VX_BUF(SIZE_MAX);
	vx_buf_adds(&huge, "abc");
	assert_null(vx_buf_reserve(&huge, SIZE_MAX - 2));
	assert_true(huge.overflow);
	vx_buf_free(&huge);
}

static void buf_long_printf_overflows_whole(void **state)
{
	struct vx_buf b = VX_BUF(500);
	char big[600];

	(void)state;
	memset(big, 'z', sizeof big - 1);
	big[sizeof big - 1] = '\0';
	vx_buf_adds(&b, "keep");
	vx_buf_printf(&b, "%s", big);
	assert_true(b.overflow);
	assert_string_equal(b.data, "keep");
	vx_buf_free(&b);
}

static void buf_reserve_and_commit(void **state)
{
	struct vx_buf b = VX_BUF(100);
	char *p = vx_buf_reserve(&b, 10);

	(void)state;
	assert_non_null(p);
	assert_string_equal(vx_buf_str(&b), ""); /* nothing counts before the commit */
	memcpy(p, "0123456789", 10);
	vx_buf_commit(&b, 4);
	assert_string_equal(b.data, "0123");
	vx_buf_commit(&b, 0);
	assert_non_null(vx_buf_reserve(&b, 96));
	assert_null(vx_buf_reserve(&b, 97));
	vx_buf_free(&b);
	vx_buf_commit(&b, 0); /* nothing was reserved, nothing was read */
}

static void clock_runs_forward(void **state)
{
	uint64_t a = vx_now_ns(), b = vx_now_ns();

	(void)state;
	assert_true(b >= a && a > 0);
	assert_true(vx_wall_ns() > 1600000000ULL * 1000000000ULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(err_set_and_fix),
		cmocka_unit_test(err_long_texts_are_cut),
		cmocka_unit_test(err_names),
		cmocka_unit_test(arena_zeroed_aligned_and_apart),
		cmocka_unit_test(arena_grows_arrays),
		cmocka_unit_test(arena_strings),
		cmocka_unit_test(arena_refuses_impossible_sizes),
		cmocka_unit_test(buf_appends),
		cmocka_unit_test(buf_overflow_refuses_everything_after),
		cmocka_unit_test(buf_long_printf_overflows_whole),
		cmocka_unit_test(buf_reserve_and_commit),
		cmocka_unit_test(clock_runs_forward),
	};

	return cmocka_run_group_tests_name("mem", tests, NULL, NULL);
}
