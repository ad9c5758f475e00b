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

static bool has_ended(pid_t pid)
{
	char path[64], line[512] = "";

	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	int fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return true;
	vx_read(fd, line, sizeof line - 1);
	vx_close(fd);
	const char *paren = strrchr(line, ')');
	return !paren || paren[2] == 'Z' || paren[2] == 'X';
}

/* The script has printed its helper's pid; a zombie (its parent may be slow to reap) counts as
 * ended. */
static void gone(void)
{
	pid_t pid = atoi(vx_buf_str(&out));

	assert_true(pid > 1);
	vxt_wait_for(has_ended(pid));
}

/* The limit is longer until the script has come as far as to print. */
static int into_limit(int (*how)(const char *script, uint32_t timeout_ms, int cancel_fd),
	const char *script, uint32_t timeout_ms)
{
	int r;

	do {
		vx_buf_clear(&out);
		r = how(script, timeout_ms, -1);
		timeout_ms *= 2;
	} while (r == -ETIMEDOUT && out.len == 0 && timeout_ms < VXT_HANG_MS);
	return r;
}

static void both_streams_and_status(void **state)
{
	(void)state;
	assert_int_equal(capture("echo o; echo e >&2; cat; exit 3", 0, -1), 0);
	assert_string_equal(vx_buf_str(&out), "o\n");
	assert_string_equal(vx_buf_str(&err), "e\n");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(capture("kill -TERM $$", VXT_HANG_MS, -1), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
}

static void much_on_both_streams(void **state)
{
	(void)state;
	assert_int_equal(
		capture("i=0; while [ $i -lt 300 ]; do printf '%01000d' 0; printf '%01000d' 0 >&2; i=$((i+1)); done",
			0, -1),
		0);
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
	assert_int_equal(into_limit(capture, "sleep 100 & echo $!; wait", 100), -ETIMEDOUT);
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
	assert_int_equal(
		into_limit(capture,
			"bash -c \"set -m; trap '' TERM HUP; sleep 100 & echo \\$!; wait\"", 300),
		-ETIMEDOUT);
	gone();
	vx_buf_clear(&out);
	assert_int_equal(
		/* nothing but its exit to wait for */
		into_limit(
			capture, "trap '' TERM HUP; echo $$; exec sleep 100 >/dev/null 2>&1", 200),
		-ETIMEDOUT);
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

/* ---- below a keeper ---- */

static int kept(const char *script, uint32_t timeout_ms, int cancel_fd)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"sh", "-c", script, NULL};
	int before = vxt_open_fds();

	s.path = "/bin/sh";
	s.argv = argv;
	s.keep = true;
	int r = vx_spawn_capture(&s, &out, &err, timeout_ms, cancel_fd, &status);
	assert_int_equal(vxt_open_fds(), before);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	return r;
}

static void kept_says_the_same(void **state)
{
	(void)state;
	assert_int_equal(kept("echo o; echo e >&2; cat; exit 3", 0, -1), 0);
	assert_string_equal(vx_buf_str(&out), "o\n");
	assert_string_equal(vx_buf_str(&err), "e\n");
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 3);
	assert_int_equal(kept("kill -TERM $$", VXT_HANG_MS, -1), 0);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGTERM);
	vx_buf_clear(&out);
	assert_int_equal(
		kept("i=0; while [ $i -lt 300 ]; do printf '%01000d' 0; printf '%01000d' 0 >&2; i=$((i+1)); done",
			0, -1),
		0);
	assert_int_equal(out.len, 300000);
	out.max = 400000;
	assert_int_equal(kept("yes", 0, -1), -EFBIG);
}

static void kept_gets_descriptors_and_directory(void **state)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"sh", "-c",
		"cat <&3; echo there >&4; pwd; ls /proc/self/fd | wc -w; echo \"$X\"", NULL},
		   *envp[] = {"X=y z", "PATH=/usr/bin:/bin", NULL};
	int fd = vx_memfd("x"), other = vx_memfd("y");
	struct vx_spawn_fd fds[] = {{fd, 3}, {other, 4}};
	char text[16] = "";

	(void)state;
	vx_write_full(fd, "hello\n", 6);
	lseek(fd, 0, SEEK_SET);
	s.path = "/bin/sh";
	s.argv = argv;
	s.envp = envp;
	s.cwd = "/usr";
	s.fds = fds;
	s.n_fds = 2;
	s.keep = true;
	assert_int_equal(vx_spawn_capture(&s, &out, NULL, 0, -1, &status), 0);
	/* the sixth is that of ls */
	assert_string_equal(vx_buf_str(&out), "hello\n/usr\n6\ny z\n");
	assert_int_equal(pread(other, text, sizeof text, 0), 6);
	assert_string_equal(text, "there\n");
	vx_close(fd);
	vx_close(other);
}

static void kept_cannot_be_started(void **state)
{
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"x", NULL};

	(void)state;
	s.path = "/no/such/program";
	s.argv = argv;
	s.keep = true;
	assert_int_equal(vx_spawn_capture(&s, &out, &err, 0, -1, &status), -ENOENT);
	assert_int_equal(status, -1);
	s.path = "/bin/sh";
	s.cwd = "/no/such/directory";
	assert_int_equal(vx_spawn_capture(&s, &out, &err, 0, -1, &status), -ENOENT);
}

/* Whatever the program leaves is ended with the call, in whatever session, however it ends. */
static void nothing_kept_is_left(void **state)
{
	static const char *const endings[] = {"exit 0", "wait", "kill -9 $$", "yes"};

	(void)state;
	out.max = 400000;
	for (size_t i = 0; i < 4; i++) {
		char script[256];

		snprintf(script, sizeof script,
			"setsid sh -c 'trap \"\" TERM HUP; sleep 100 & sleep 101' >/dev/null 2>&1 & echo $!; sleep .05; %s",
			endings[i]);
		vx_buf_clear(&out);
		/* only the one that waits has a limit to meet */
		int r = i == 1 ? into_limit(kept, script, 400) : kept(script, VXT_HANG_MS, -1);

		assert_int_equal(r, i == 0 || i == 2 ? 0 : i == 1 ? -ETIMEDOUT : -EFBIG);
		gone();
	}
}

/* A keeper that dies takes all of it along; two that die leave it to us. */
static void keepers_are_killed(void **state)
{
	static const char *const kills[] = {"$inner", "$outer", "$outer $inner"};

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		char script[400];

		snprintf(script, sizeof script,
			"setsid sleep 100 >/dev/null 2>&1 & echo $!; inner=$PPID; outer=$(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$inner/stat); sleep .05; kill -9 %s; "
			"sleep 100",
			kills[i]);
		vx_buf_clear(&out);
		assert_int_equal(kept(script, VXT_HANG_MS, -1), 0);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		gone();
	}
}

/* Stopped keepers are woken to end. */
static void keepers_are_stopped(void **state)
{
	(void)state;
	assert_int_equal(
		kept("setsid sleep 100 >/dev/null 2>&1 & echo $!; kill -STOP $(sed 's/.*) . \\([0-9]*\\).*/\\1/' /proc/$PPID/stat)",
			VXT_HANG_MS, -1),
		0);
	assert_int_equal(status, 0);
	gone();
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(int argc, char **argv)
{
	vxt_keeper(argc, argv);
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
		TEST(kept_says_the_same),
		TEST(kept_gets_descriptors_and_directory),
		TEST(kept_cannot_be_started),
		TEST(nothing_kept_is_left),
		TEST(keepers_are_killed),
		TEST(keepers_are_stopped),
	};

	return cmocka_run_group_tests_name("capture", tests, NULL, NULL);
}
