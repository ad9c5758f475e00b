#include "vxtest.h"

#include "vx/buf.h"
#include "vx/limits.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/time.h>

static char *dir;
static int dirfd_;

static int set_up(void **state)
{
	(void)state;
	dir = vxt_tmpdir();
	dirfd_ = vx_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	assert_true(dirfd_ >= 0);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	dirfd_ = vx_close(dirfd_);
	vxt_rm(dir);
	return 0;
}

static bool exists(const char *name)
{
	struct stat st;

	return lstat(vxt_path(dir, name), &st) == 0;
}

static void everything_is_close_on_exec(void **state)
{
	int fds[8], p[2], n = 0;

	(void)state;
	assert_int_equal(vx_pipe(p), 0);
	fds[n++] = p[0];
	fds[n++] = p[1];
	fds[n++] = vx_open(dirfd_, "x", O_CREAT | O_RDWR, 0600);
	fds[n++] = vx_eventfd();
	fds[n++] = vx_memfd("m");
	fds[n++] = vx_pidfd_open(getpid());
	fds[n++] = vx_open_beneath(dirfd_, "x", O_RDONLY, 0);
	for (int i = 0; i < n; i++) {
		assert_true(fds[i] >= 0);
		assert_true(fcntl(fds[i], F_GETFD) & FD_CLOEXEC);
		vx_close(fds[i]);
	}
}

static void closing(void **state)
{
	int before = vxt_open_fds();

	(void)state;
	assert_int_equal(vx_close(-1), -1);
	errno = E2BIG;
	assert_int_equal(vx_close(999999), -1);
	assert_int_equal(errno, E2BIG);
	{
		VX_CLEANUP_FD int fd = vx_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);
		assert_true(fd >= 0);
	}
	assert_int_equal(vxt_open_fds(), before);
}

static void errors_are_negative_errnos(void **state)
{
	char c;

	(void)state;
	assert_int_equal(vx_open(dirfd_, "no", O_RDONLY, 0), -ENOENT);
	assert_int_equal(vx_read(-1, &c, 1), -EBADF);
	assert_int_equal(vx_read_full(-1, &c, 1), -EBADF);
	assert_int_equal(vx_write_full(-1, &c, 1), -EBADF);
	assert_int_equal(vx_nonblock(-1), -EBADF);
	assert_int_equal(vx_pidfd_open(-1), -EINVAL);
	assert_int_equal(vx_pidfd_signal(-1, 0), -EBADF);
	assert_int_equal(vx_write_full(vx_close(-1), NULL, 0), 0);
}

static void on_alarm(int sig)
{
	(void)sig;
}

/* A pipe is read in pieces while signals interrupt the reads. */
static void short_and_interrupted_reads(void **state)
{
	int p[2];
	char got[10] = "";
	struct sigaction sa = {.sa_handler = on_alarm}, old;
	struct itimerval every = {{0, 2000}, {0, 2000}}, off = {{0, 0}, {0, 0}};

	(void)state;
	assert_int_equal(vx_pipe(p), 0);
	sigaction(SIGALRM, &sa, &old);
	pid_t pid = fork();
	if (pid == 0) {
		for (int i = 0; i < 7; i++) {
			usleep(10000);
			vx_write_full(p[1], &"abcdefg"[i], 1);
		}
		_exit(0);
	}
	vx_close(p[1]);
	setitimer(ITIMER_REAL, &every, NULL);
	assert_int_equal(vx_read_full(p[0], got, sizeof got), 7); /* the end came first */
	setitimer(ITIMER_REAL, &off, NULL);
	sigaction(SIGALRM, &old, NULL);
	assert_string_equal(got, "abcdefg");
	waitpid(pid, NULL, 0);
	vx_close(p[0]);
}

static void whole_files(void **state)
{
	struct vx_buf b = VX_BUF(1 << 20);

	(void)state;
	vxt_write(dir, "f", "hello");
	vxt_write(dir, "empty", "");
	vx_buf_adds(&b, "<");
	assert_int_equal(vx_read_file(dirfd_, "f", &b), 0);
	assert_int_equal(vx_read_file(dirfd_, "empty", &b), 0);
	assert_string_equal(vx_buf_str(&b), "<hello"); /* appended */
	vx_buf_clear(&b);
	assert_int_equal(vx_read_file(AT_FDCWD, "/proc/self/status", &b), 0); /* says 0 bytes */
	assert_non_null(strstr(vx_buf_str(&b), "SigIgn"));
	vx_buf_free(&b);
}

static void reading_stops_at_the_maximum(void **state)
{
	struct vx_buf five = VX_BUF(5), four = VX_BUF(4), zero = VX_BUF(0), hundred = VX_BUF(100);

	(void)state;
	vxt_write(dir, "f", "hello");
	assert_int_equal(vx_read_file(dirfd_, "f", &five), 0);
	assert_int_equal(vx_read_file(dirfd_, "f", &four), -EFBIG);
	assert_int_equal(vx_read_file(dirfd_, "f", &zero), -EFBIG);
	assert_int_equal(vx_read_file(AT_FDCWD, "/proc/self/status", &hundred), -EFBIG);
	assert_int_equal(vx_read_file(AT_FDCWD, "/dev/zero", &hundred), -EFBIG);
	vx_buf_free(&five);
	vx_buf_free(&four);
	vx_buf_free(&zero);
	vx_buf_free(&hundred);
}

static void what_is_no_file_is_not_read(void **state)
{
	struct vx_buf b = VX_BUF(100);

	(void)state;
	assert_int_equal(mkfifo(vxt_path(dir, "fifo"), 0600), 0);
	assert_int_equal(vx_read_file(dirfd_, "fifo", &b), -EINVAL); /* and does not hang */
	assert_int_equal(vx_read_file(dirfd_, ".", &b), -EISDIR);
	assert_int_equal(vx_read_file(dirfd_, "no", &b), -ENOENT);
	vx_buf_free(&b);
}

static void atomic_writes(void **state)
{
	struct vx_buf b = VX_BUF(100);
	struct stat st;
	char cmd[PATH_MAX + 64], longest[300];
	const char *out;

	(void)state;
	assert_int_equal(vx_write_file_atomic(dirfd_, "f", "one", 3, 0640), 0);
	assert_int_equal(vx_write_file_atomic(dirfd_, "f", "two", 3, 0600), 0);
	assert_int_equal(vx_read_file(dirfd_, "f", &b), 0);
	assert_string_equal(vx_buf_str(&b), "two");
	assert_int_equal(fstatat(dirfd_, "f", &st, 0), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(mkdir(vxt_path(dir, "sub"), 0700), 0);
	assert_int_equal(vx_write_file_atomic(dirfd_, "sub/g", NULL, 0, 0600), 0);
	assert_true(exists("sub/g"));
	/* The link is replaced, not what it points to. */
	assert_int_equal(symlink("f", vxt_path(dir, "l")), 0);
	assert_int_equal(vx_write_file_atomic(dirfd_, "l", "three", 5, 0600), 0);
	vx_buf_clear(&b);
	assert_int_equal(vx_read_file(dirfd_, "f", &b), 0);
	assert_string_equal(vx_buf_str(&b), "two");

	memset(longest, 'n', sizeof longest - 1);
	longest[sizeof longest - 1] = '\0';
	/* the rename fails */
	assert_int_equal(vx_write_file_atomic(dirfd_, longest, "x", 1, 0600), -ENAMETOOLONG);
	/* and here */
	assert_int_equal(vx_write_file_atomic(dirfd_, "sub", "x", 1, 0600), -EISDIR);
	assert_int_equal(vx_write_file_atomic(dirfd_, "no/g", "x", 1, 0600), -ENOENT);
	snprintf(cmd, sizeof cmd, "cd %s && echo $(ls -A . sub)", dir);
	assert_int_equal(vxt_sh(cmd, &out), 0);
	assert_string_equal(out, ".: f l sub sub: g\n"); /* no temporary is left */
	vx_buf_free(&b);
}

static void atomic_write_that_does_not_fit(void **state)
{
	static char big[8192];
	struct vx_buf b = VX_BUF(100);

	(void)state;
	vxt_write(dir, "f", "old");
	pid_t pid = fork();
	/* the limit stands in for a full disk: a part is written, then write(2) fails */
	if (pid == 0) {
		struct rlimit small = {4096, 4096};

		signal(SIGXFSZ, SIG_IGN);
		setrlimit(RLIMIT_FSIZE, &small);
		_exit(vx_write_file_atomic(dirfd_, "f", big, sizeof big, 0600) == -EFBIG ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(vx_read_file(dirfd_, "f", &b), 0);
	assert_string_equal(vx_buf_str(&b), "old");
	assert_int_equal(unlink(vxt_path(dir, "f")), 0);
	assert_int_equal(rmdir(dir), 0); /* nothing else was left */
	assert_int_equal(mkdir(dir, 0700), 0);
	vx_buf_free(&b);
}

static void links(void **state)
{
	char text[VX_MAX_PATH] = "untouched";

	(void)state;
	assert_int_equal(symlink("target", vxt_path(dir, "l")), 0);
	assert_int_equal(vx_readlink(dirfd_, "l", text, 6), -ENAMETOOLONG);
	assert_string_equal(text, "untouched");
	assert_int_equal(vx_readlink(dirfd_, "l", text, 7), 6);
	assert_string_equal(text, "target");
	assert_int_equal(vx_readlink(dirfd_, "no", text, 7), -ENOENT);
	assert_int_equal(vx_readlink(dirfd_, ".", text, 7), -EINVAL);
}

static void mkdir_p(void **state)
{
	char longest[VX_MAX_PATH + 1];

	(void)state;
	assert_int_equal(vx_mkdir_p(dirfd_, "a/b//c/", 0700), 0);
	assert_true(exists("a/b/c"));
	assert_int_equal(vx_mkdir_p(dirfd_, "a/b/c", 0700), 0);
	assert_int_equal(vx_mkdir_p(dirfd_, "a", 0700), 0);
	assert_int_equal(vx_mkdir_p(AT_FDCWD, vxt_path(dir, "x/y"), 0700), 0);
	assert_true(exists("x/y"));
	assert_int_equal(symlink("a", vxt_path(dir, "l")), 0);
	assert_int_equal(vx_mkdir_p(dirfd_, "l", 0700), 0);
	assert_int_equal(vx_mkdir_p(dirfd_, "l/m", 0700), 0);
	assert_true(exists("a/m"));
	vxt_write(dir, "f", "");
	assert_int_equal(vx_mkdir_p(dirfd_, "f", 0700), -ENOTDIR);
	assert_int_equal(vx_mkdir_p(dirfd_, "f/g", 0700), -ENOTDIR);
	assert_int_equal(vx_mkdir_p(dirfd_, "", 0700), -ENOENT);
	memset(longest, 'x', VX_MAX_PATH);
	longest[VX_MAX_PATH] = '\0';
	assert_int_equal(vx_mkdir_p(dirfd_, longest, 0700), -ENAMETOOLONG);
}

static void rm_rf_trees(void **state)
{
	int before = vxt_open_fds();

	(void)state;
	vxt_write(dir, "keep/file", "");
	vxt_write(dir, "t/a/b/file", "");
	vxt_write(dir, "t/.hidden", "");
	assert_int_equal(symlink("../keep", vxt_path(dir, "t/link")), 0);
	assert_int_equal(mkfifo(vxt_path(dir, "t/fifo"), 0600), 0);
	assert_int_equal(vx_rm_rf(dirfd_, "t"), 0);
	assert_false(exists("t"));
	assert_true(exists("keep/file")); /* links are removed, not followed */
	assert_int_equal(vx_rm_rf(dirfd_, "t"), 0);
	assert_int_equal(vx_rm_rf(dirfd_, "no/such/thing"), 0);
	vxt_write(dir, "f", "");
	assert_int_equal(vx_rm_rf(dirfd_, "f"), 0);
	assert_false(exists("f"));
	assert_int_equal(symlink("keep", vxt_path(dir, "l")), 0);
	assert_int_equal(vx_rm_rf(dirfd_, "l"), 0);
	assert_true(exists("keep/file"));
	assert_int_equal(vx_rm_rf(AT_FDCWD, vxt_path(dir, "keep/")), 0);
	assert_false(exists("keep"));
	assert_int_equal(vxt_open_fds(), before);
}

static void rm_rf_refuses_what_is_no_name(void **state)
{
	(void)state;
	vxt_write(dir, "f", "");
	assert_int_equal(vx_rm_rf(dirfd_, ""), -EINVAL);
	assert_int_equal(vx_rm_rf(dirfd_, "."), -EINVAL);
	assert_int_equal(vx_rm_rf(dirfd_, "x/.."), -EINVAL);
	assert_int_equal(vx_rm_rf(dirfd_, "/"), -EINVAL);
	assert_true(exists("f"));
}

/* Far deeper than descriptors and PATH_MAX allow for. */
static void rm_rf_deep(void **state)
{
	enum { DEPTH = 400 };
	struct rlimit lim, few = {128, 0};
	int fd = dup(dirfd_);

	(void)state;
	for (int i = 0; i < DEPTH; i++) {
		assert_int_equal(mkdirat(fd, "deeper-than-descriptors", 0700), 0);
		int next = vx_open(fd, "deeper-than-descriptors", O_RDONLY | O_DIRECTORY, 0);
		assert_true(next >= 0);
		vx_close(fd);
		fd = next;
		if (i % 90 == 0)
			vx_close(vx_open(fd, "file", O_CREAT | O_WRONLY, 0600));
	}
	vx_close(fd);
	getrlimit(RLIMIT_NOFILE, &lim);
	few.rlim_max = lim.rlim_max;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	assert_int_equal(vx_rm_rf(dirfd_, "deeper-than-descriptors"), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &lim), 0);
	assert_false(exists("deeper-than-descriptors"));
}

/* As a user whom permission bits bind. */
static void rm_rf_without_permissions(void **state)
{
	(void)state;
	vxt_write(dir, "t/readonly/f", "");
	vxt_write(dir, "t/nothing/f", "");
	assert_int_equal(chmod(vxt_path(dir, "t/readonly"), 0500), 0);
	assert_int_equal(chmod(vxt_path(dir, "t/nothing"), 0), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (geteuid() == 0) {
			char cmd[PATH_MAX + 64];

			snprintf(cmd, sizeof cmd, "chown -R 54321 %s", dir);
			if (vxt_sh(cmd, NULL) != 0 || setresuid(54321, 54321, 54321) != 0)
				_exit(2);
		}
		_exit(vx_rm_rf(dirfd_, "t") == 0 ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_false(exists("t"));
}

static void rm_rf_leaves_mounts_alone(void **state)
{
	(void)state;
	vxt_write(dir, "precious/f", "");
	vxt_write(dir, "t/m/x", "");
	pid_t pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWNS) != 0 ||
			mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
			mount(vxt_path(dir, "precious"), vxt_path(dir, "t/m"), NULL, MS_BIND,
				NULL) != 0)
			_exit(77);
		/* By its path: dirfd_ belongs to the old mount namespace. */
		_exit(vx_rm_rf(AT_FDCWD, vxt_path(dir, "t")) == -EBUSY ? 0 : 1);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
		vxt_skip("nothing can be mounted here");
	}
	assert_int_equal(status, 0);
	assert_true(exists("precious/f"));
	assert_true(exists("t/m/x"));
}

static void events(void **state)
{
	int fd = vx_eventfd();
	struct pollfd p = {fd, POLLIN, 0};

	(void)state;
	assert_int_equal(poll(&p, 1, 0), 0);
	vx_event_clear(fd); /* nothing there: does not block */
	vx_event_signal(fd);
	vx_event_signal(fd);
	assert_int_equal(poll(&p, 1, 0), 1);
	vx_event_clear(fd);
	assert_int_equal(poll(&p, 1, 0), 0);
	uint64_t most = UINT64_MAX - 1;
	assert_int_equal(write(fd, &most, sizeof most), sizeof most);
	vx_event_signal(fd); /* full: does not block, stays signalled */
	assert_int_equal(poll(&p, 1, 0), 1);
	vx_close(fd);
}

static void pidfds(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		pause();
		_exit(0);
	}
	int fd = vx_pidfd_open(pid), status;
	assert_true(fd >= 0);
	assert_int_equal(vx_pidfd_signal(fd, 0), 0);
	assert_int_equal(vx_pidfd_signal(fd, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WTERMSIG(status), SIGKILL);
	assert_int_equal(vx_pidfd_signal(fd, SIGKILL), -ESRCH);
	vx_close(fd);
}

static void memfds_take_seals(void **state)
{
	int fd = vx_memfd("test");

	(void)state;
	assert_int_equal(vx_write_full(fd, "abc", 3), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW), 0);
	assert_int_equal(vx_write_full(fd, "d", 1), -EPERM);
	vx_close(fd);
}

static void nothing_leads_out_of_beneath(void **state)
{
	int fd;

	(void)state;
	vxt_write(dir, "d/f", "");
	assert_int_equal(symlink("f", vxt_path(dir, "d/link")), 0);
	assert_int_equal(symlink("d", vxt_path(dir, "ld")), 0);
	fd = vx_open_beneath(dirfd_, "d/f", O_RDONLY, 0);
	assert_true(fd >= 0);
	vx_close(fd);
	assert_int_equal(vx_open_beneath(dirfd_, "d/link", O_RDONLY, 0), -ELOOP);
	assert_int_equal(vx_open_beneath(dirfd_, "ld/f", O_RDONLY, 0), -ELOOP);
	assert_int_equal(vx_open_beneath(dirfd_, "../x", O_RDONLY, 0), -EXDEV);
	assert_int_equal(vx_open_beneath(dirfd_, "/etc/passwd", O_RDONLY, 0), -EXDEV);
	/* a mode without a use is fine, as with open */
	assert_int_equal(vx_open_beneath(dirfd_, "no", O_RDONLY, 0644), -ENOENT);
	/* so are the type bits of a stat */
	fd = vx_open_beneath(dirfd_, "d/new", O_CREAT | O_WRONLY, 0100600);
	assert_true(fd >= 0);
	vx_close(fd);
	assert_true(exists("d/new"));
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(everything_is_close_on_exec),
		TEST(closing),
		TEST(errors_are_negative_errnos),
		TEST(short_and_interrupted_reads),
		TEST(whole_files),
		TEST(reading_stops_at_the_maximum),
		TEST(what_is_no_file_is_not_read),
		TEST(atomic_writes),
		TEST(atomic_write_that_does_not_fit),
		TEST(links),
		TEST(mkdir_p),
		TEST(rm_rf_trees),
		TEST(rm_rf_refuses_what_is_no_name),
		TEST(rm_rf_deep),
		TEST(rm_rf_without_permissions),
		TEST(rm_rf_leaves_mounts_alone),
		TEST(events),
		TEST(pidfds),
		TEST(memfds_take_seals),
		TEST(nothing_leads_out_of_beneath),
	};

	return cmocka_run_group_tests_name("fd", tests, NULL, NULL);
}
