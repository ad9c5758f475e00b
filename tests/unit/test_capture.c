/* vx_spawn_capture. */
#include "vxtest.h"

#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/spawn.h"

#include <errno.h>
#include <signal.h>

static struct vx_buf out, err;
static int status;

static int set_up(void **state)
{
	(void)state;
	out = VX_BUF(1 << 20);
	err = VX_BUF(1 << 20);
	status = -1;
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	vx_buf_free(&out);
	vx_buf_free(&err);
	return 0;
}

static int capture(const char *script, uint32_t timeout_ms, int cancel_fd)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"sh", "-c", script, NULL};
	int before = vxt_open_fds();

	s.path = "/bin/sh";
	s.argv = argv;
	int r = vx_spawn_capture(&s, &out, &err, timeout_ms, cancel_fd, &status);
	assert_int_equal(vxt_open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* nothing left to reap */
	return r;
}

/* The script has printed its helper's pid; a zombie (its parent may be slow to reap) counts as ended. */
static void gone(void)
{
	pid_t pid = atoi(vx_buf_str(&out));

	assert_true(pid > 1);
	for (int i = 0; i < 500; i++) {
		char path[64], line[512] = "";

		snprintf(path, sizeof path, "/proc/%d/stat", pid);
		int fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
		if (fd < 0)
			return;
		vx_read(fd, line, sizeof line - 1);
		vx_close(fd);
		const char *paren = strrchr(line, ')');
		if (!paren || paren[2] == 'Z' || paren[2] == 'X')
			return;
		usleep(10000);
	}
	fail_msg("process %d is still there", pid);
}

static void both_streams_and_status(void **state)
{
	(void)state;
	assert_int_equal(capture("echo o; echo e >&2; cat; exit 3", 0, -1), 0);
	assert_string_equal(vx_buf_str(&out), "o\n");
	assert_string_equal(vx_buf_str(&err), "e\n");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(capture("kill -TERM $$", 10000, -1), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void much_on_both_streams(void **state)
{
	(void)state;
	assert_int_equal(capture("i=0; while [ $i -lt 300 ]; do printf '%01000d' 0; printf '%01000d' 0 >&2; i=$((i+1)); done", 0, -1), 0);
	assert_int_equal(out.len, 300000);
	assert_int_equal(err.len, 300000);
}

static void streams_may_be_discarded(void **state)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"sh", "-c", "head -c 300000 /dev/zero; echo e >&2", NULL};

	(void)state;
	s.path = "/bin/sh";
	s.argv = argv;
	assert_int_equal(vx_spawn_capture(&s, NULL, &err, 0, -1, &status), 0);
	assert_string_equal(vx_buf_str(&err), "e\n");
	assert_int_equal(vx_spawn_capture(&s, NULL, NULL, 0, -1, &status), 0);
	assert_int_equal(status, 0);
}

static void further_descriptors_come_along(void **state)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"sh", "-c", "cat <&3", NULL};
	int fd = vx_memfd("x");
	struct vx_spawn_fd fds[] = {{fd, 3}, {fd, 1}};

	(void)state;
	vx_write_full(fd, "hello", 5);
	lseek(fd, 0, SEEK_SET);
	s.path = "/bin/sh";
	s.argv = argv;
	s.fds = fds;
	s.n_fds = 2; /* the one for stdout is ours to place */
	assert_int_equal(vx_spawn_capture(&s, &out, NULL, 0, -1, &status), 0);
	assert_string_equal(vx_buf_str(&out), "hello");
	vx_close(fd);
}

static void too_much_output(void **state)
{
	(void)state;
	out.max = 1000;
	assert_int_equal(capture("yes", 0, -1), -EFBIG);
	assert_int_equal(status, -1); /* untouched */
	vx_buf_clear(&out);
	err.max = 10;
	assert_int_equal(capture("yes >&2", 0, -1), -EFBIG);
}

static void too_long(void **state)
{
	(void)state;
	uint64_t begin = vx_now_ns();
	assert_int_equal(capture("sleep 100 & echo $!; wait", 100, -1), -ETIMEDOUT);
	assert_true(vx_now_ns() - begin >= 100 * 1000000ULL);
	gone();
}

static void too_long_while_writing(void **state)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"yes", NULL};

	(void)state;
	s.path = "/usr/bin/yes";
	s.argv = argv;
	assert_int_equal(vx_spawn_capture(&s, NULL, NULL, 100, -1, &status), -ETIMEDOUT);
}

/* Members with a process group of their own, and those that ignore what can be ignored, go too. */
static void the_whole_session_is_killed(void **state)
{
	(void)state;
	assert_int_equal(capture("bash -c \"set -m; trap '' TERM HUP; sleep 100 & echo \\$!; wait\"", 300, -1), -ETIMEDOUT);
	gone();
	vx_buf_clear(&out);
	assert_int_equal(
		capture("trap '' TERM HUP; echo $$; exec sleep 100 >/dev/null 2>&1", 200, -1), -ETIMEDOUT); /* nothing but its exit to wait for */
	gone();
}

static void cancelled(void **state)
{
	int fd = vx_eventfd();

	(void)state;
	vx_event_signal(fd);
	assert_int_equal(capture("sleep 100 & echo $!; wait", 0, fd), -ECANCELED);
	vx_close(fd);
}

/* A leftover that holds the streams open does not hold us, and does not stay. */
static void leftovers(void **state)
{
	(void)state;
	assert_int_equal(capture("sleep 100 & echo $!", 0, -1), 0);
	assert_int_equal(status, 0);
	gone();
}

static void no_such_program(void **state)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"x", NULL};
	int before = vxt_open_fds();

	(void)state;
	s.path = "/no/such/program";
	s.argv = argv;
	assert_int_equal(vx_spawn_capture(&s, &out, &err, 0, -1, &status), -ENOENT);
	assert_int_equal(vxt_open_fds(), before);
	assert_int_equal(status, -1);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(both_streams_and_status),
		TEST(much_on_both_streams),
		TEST(streams_may_be_discarded),
		TEST(further_descriptors_come_along),
		TEST(too_much_output),
		TEST(too_long),
		TEST(too_long_while_writing),
		TEST(the_whole_session_is_killed),
		TEST(cancelled),
		TEST(leftovers),
		TEST(no_such_program),
	};

	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
