#include "vxtest.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/limits.h"
#include "vx/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static struct vx_spawn sh(const char *script, const char **argv)
{
	struct vx_spawn s = VX_SPAWN_INIT;

	argv[0] = "sh";
	argv[1] = "-c";
	argv[2] = script;
	argv[3] = NULL;
	s.path = "/bin/sh";
	s.argv = argv;
	return s;
}

static int reap(pid_t pid, int pidfd)
{
	int status = -1;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	vx_close(pidfd);
	return status;
}

/* Spawns with stdout into a pipe besides what `s` says, and returns what was written there
 * (static). The exit status must be 0. */
static const char *output_of(struct vx_spawn s)
{
	static char out[32 << 10];
	struct vx_spawn_fd fds[VX_MAX_SPAWN_FDS];
	int p[2], pidfd;
	pid_t pid;
	const char *step = "";

	assert_int_equal(vx_pipe(p), 0);
	for (uint32_t i = 0; i < s.n_fds; i++)
		fds[i] = s.fds[i];
	fds[s.n_fds++] = (struct vx_spawn_fd){p[1], 1};
	s.fds = fds;
	int r = vx_spawn(&s, &pid, &pidfd, &step);
	if (r < 0)
		fail_msg("%s: %s", step, strerror(-r));
	vx_close(p[1]);
	ssize_t n = vx_read_full(p[0], out, sizeof out - 1);
	assert_true(n >= 0);
	out[n] = '\0';
	vx_close(p[0]);
	assert_int_equal(reap(pid, pidfd), 0);
	return out;
}

static const char *output_of_sh(const char *script)
{
	const char *argv[4];

	return output_of(sh(script, argv));
}

static void runs_a_program(void **state)
{
	const char *argv[4];
	struct vx_spawn s = sh("exit 7", argv);
	pid_t pid;
	int pidfd, before = vxt_open_fds();

	(void)state;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	assert_true(fcntl(pidfd, F_GETFD) & FD_CLOEXEC);
	struct pollfd p = {pidfd, POLLIN, 0};
	assert_int_equal(poll(&p, 1, -1), 1);
	int status = reap(pid, pidfd);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 7);
	assert_int_equal(vxt_open_fds(), before);
}

static void environment(void **state)
{
	const char *argv[4], *envp[] = {"A=1", "B=two words", NULL}, *none[] = {NULL};
	struct vx_spawn s = sh("echo $A-$B-$INHERITED", argv);

	(void)state;
	setenv("INHERITED", "yes", 1);
	assert_string_equal(output_of(s), "--yes\n");
	s.envp = envp;
	assert_string_equal(output_of(s), "1-two words-\n");
	s.envp = none;
	assert_string_equal(output_of(s), "--\n");
}

/* Whatever fails, the call says where, leaves no child and no descriptor, and touches no output. */
static void refused(struct vx_spawn s, int code, const char *wanted_step)
{
	pid_t pid = 4711;
	int pidfd = 4712, before = vxt_open_fds();
	const char *step = NULL;

	assert_int_equal(vx_spawn(&s, &pid, &pidfd, &step), code);
	assert_string_equal(step, wanted_step);
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), code);
	assert_int_equal(pid, 4711);
	assert_int_equal(pidfd, 4712);
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(vxt_open_fds(), before);
}

static void refusals_of_exec(void **state)
{
	char *dir = vxt_tmpdir();
	const char *argv[4];
	struct vx_spawn s = sh("true", argv);

	(void)state;
	vxt_write(dir, "plain", "no program");
	s.path = vxt_path(dir, "no");
	refused(s, -ENOENT, "exec");
	s.path = vxt_path(dir, "plain");
	refused(s, -EACCES, "exec");
	assert_int_equal(chmod(s.path, 0755), 0);
	refused(s, -ENOEXEC, "exec");
	s.path = dir;
	refused(s, -EACCES, "exec");

	s.path = "/bin/sh";
	char *big = malloc(200 << 10); /* one argument may have 128 KiB */
	memset(big, 'x', (200 << 10) - 1);
	big[(200 << 10) - 1] = '\0';
	argv[2] = big;
	refused(s, -E2BIG, "exec");
	free(big);
	vxt_rm(dir);
}

static void refusals_before_exec(void **state)
{
	const char *argv[4];
	struct vx_spawn s = sh("true", argv), t = s;
	struct vx_spawn_fd many[VX_MAX_SPAWN_FDS + 1], bad = {999, 1};
	int ro = vx_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	(void)state;
	t.cwd = "/no/such/dir";
	refused(t, -ENOENT, "chdir");
	t = s;
	t.cwd_fd = ro;
	refused(t, -ENOTDIR, "chdir");
	t = s;
	t.join_cgroup_fd = ro;
	refused(t, -EBADF, "cgroup");
	t = s;
	t.pgroup = 1; /* of another session */
	refused(t, -EPERM, "setpgid");
	t = s;
	t.fds = &bad;
	t.n_fds = 1;
	refused(t, -EBADF, "dup2");
	t = s;
	for (int i = 0; i < (int)(sizeof many / sizeof *many); i++)
		many[i] = (struct vx_spawn_fd){ro, i};
	t.fds = many;
	t.n_fds = sizeof many / sizeof *many;
	refused(t, -E2BIG, "descriptors");
	t.n_fds--;
	assert_string_equal(output_of_sh("echo fine"), "fine\n");
	pid_t pid;
	int pidfd;
	assert_int_equal(vx_spawn(&t, &pid, &pidfd, NULL), 0);
	reap(pid, pidfd);
	vx_close(ro);
}

static void working_directory(void **state)
{
	char *dir = vxt_tmpdir();
	const char *argv[4];
	struct vx_spawn s = sh("pwd -P", argv);
	char wanted[PATH_MAX];

	(void)state;
	snprintf(wanted, sizeof wanted, "%s\n", dir);
	s.cwd = dir;
	assert_string_equal(output_of(s), wanted);
	s.cwd = NULL;
	s.cwd_fd = vx_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
	assert_string_equal(output_of(s), wanted);
	vx_close(s.cwd_fd);
	vxt_rm(dir);
}

static void only_named_descriptors(void **state)
{
	int a = vx_open(AT_FDCWD, "/dev/zero", O_RDONLY, 0), b = fcntl(a, F_DUPFD_CLOEXEC, 200);

	(void)state;
	/* ls needs one for the directory. */
	assert_string_equal(output_of_sh("ls /proc/self/fd"), "0\n1\n2\n3\n");
	assert_string_equal(
		output_of_sh("readlink /proc/$$/fd/0 /proc/$$/fd/2"), "/dev/null\n/dev/null\n");
	assert_string_equal(output_of_sh("head -c 1 <&0 | wc -c"), "0\n");
	vx_close(a);
	vx_close(b);
}

/* Four files over four places, in every order and with every repetition; three of the places are
 * where sources stand. */
static void any_source_at_any_target(void **state)
{
	static const char *const names[] = {"0", "1", "2", "3"};
	char *dir = vxt_tmpdir(), prog[VX_MAX_PATH];
	const char *argv[] = {"readlink", "/proc/self/fd/3", "/proc/self/fd/4", "/proc/self/fd/5",
		"/proc/self/fd/6", NULL};
	struct vx_spawn s = VX_SPAWN_INIT;
	int fd[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		vxt_write(dir, names[i], "");
		fd[i] = vx_open(AT_FDCWD, vxt_path(dir, names[i]), O_RDONLY, 0);
	}
	assert_in_range(fd[0], 3, 6);
	assert_int_equal(vx_which("readlink", NULL, prog), 0);
	s.path = prog;
	s.argv = argv;
	for (int p = 0; p < 256; p++) {
		struct vx_spawn_fd fds[4];
		char wanted[4 * PATH_MAX] = "", line[PATH_MAX];

		for (int i = 0; i < 4; i++) {
			int from = p >> 2 * i & 3;

			fds[i] = (struct vx_spawn_fd){fd[from], 3 + i};
			snprintf(line, sizeof line, "%s/%s\n", dir, names[from]);
			strcat(wanted, line);
		}
		s.fds = fds;
		s.n_fds = 4;
		assert_string_equal(output_of(s), wanted);
	}
	for (int i = 0; i < 4; i++) {
		assert_true(fcntl(fd[i], F_GETFD) & FD_CLOEXEC); /* ours are as they were */
		vx_close(fd[i]);
	}
	vxt_rm(dir);
}

/* The caller's own 0, 1, 2 closed: /dev/null and the sources land there and must survive. */
static void standard_streams_closed(void **state)
{
	(void)state;
	pid_t pid = fork();
	if (pid == 0) {
		int p[2], report = fcntl(2, F_DUPFD_CLOEXEC, 50), pidfd, status;
		const char *argv[4];
		struct vx_spawn s = sh("readlink /proc/$$/fd/0; echo out; echo err >&2", argv);
		struct vx_spawn_fd fds[2];
		char got[100] = "";
		pid_t kid;

		close(0);
		close(1);
		close(2);
		if (vx_pipe(p) != 0 || p[0] != 0 || p[1] != 1)
			_exit(1);
		fds[0] = (struct vx_spawn_fd){1, 2};
		fds[1] = (struct vx_spawn_fd){1, 1};
		s.fds = fds;
		s.n_fds = 2;
		if (vx_spawn(&s, &kid, &pidfd, NULL) != 0)
			_exit(2);
		close(1);
		vx_read_full(0, got, sizeof got - 1);
		waitpid(kid, &status, 0);
		(void)report;
		_exit(strcmp(got, "/dev/null\nout\nerr\n") == 0 && status == 0 ? 0 : 3);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void on_signal(int sig)
{
	(void)sig;
}

static void signals_are_as_new(void **state)
{
	struct sigaction handler = {.sa_handler = on_signal};
	sigset_t block, old, now;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL);
	signal(SIGUSR1, SIG_IGN);
	sigaction(SIGTERM, &handler, NULL);
	sigfillset(&block);
	sigprocmask(SIG_SETMASK, &block, &old);
	const char *got = output_of_sh("cat /proc/self/status");
	sigprocmask(SIG_SETMASK, NULL, &now);
	assert_true(sigismember(&now, SIGINT) == 1); /* ours is as it was */
	sigprocmask(SIG_SETMASK, &old, NULL);
	signal(SIGPIPE, SIG_DFL);
	signal(SIGUSR1, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	assert_non_null(strstr(got,
		"SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nSigCgt:\t0000000000000000\n"));
	assert_ptr_equal(signal(SIGRTMIN + 5, SIG_DFL), SIG_IGN); /* set at the start of main */
}

static void sessions_and_groups(void **state)
{
	const char *argv[4];
	struct vx_spawn s = sh("read x", argv);
	struct vx_spawn_fd in;
	int p[2], pidfd, pidfd2;
	pid_t pid, pid2;

	(void)state;
	assert_int_equal(vx_pipe(p), 0);
	in = (struct vx_spawn_fd){p[0], 0};
	s.fds = &in;
	s.n_fds = 1;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	assert_int_equal(getsid(pid), getsid(0));
	assert_int_equal(getpgid(pid), getpgrp());
	vx_write_full(p[1], "\n", 1);
	reap(pid, pidfd);

	s.new_session = true;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	assert_int_equal(getsid(pid), pid);
	vx_write_full(p[1], "\n", 1);
	reap(pid, pidfd);

	s.new_session = false;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	/* after exec it is too late for the parent: hence the field */
	assert_int_equal(setpgid(pid, pid), -1);
	s.pgroup = getpgrp();
	assert_int_equal(vx_spawn(&s, &pid2, &pidfd2, NULL), 0);
	assert_int_equal(getpgid(pid2), getpgrp());
	vx_write_full(p[1], "\n", 1);
	vx_write_full(p[1], "\n", 1);
	vx_close(p[1]);
	reap(pid, pidfd);
	reap(pid2, pidfd2);
	vx_close(p[0]);
}

/* A middle process spawns with a death signal and goes; we, its subreaper, see the grandchild
 * killed. */
static void death_follows_the_parent(void **state)
{
	int p[2], status;

	(void)state;
	for (int pidns = 0; pidns < 2; pidns++) {
		assert_int_equal(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
		assert_int_equal(vx_pipe(p), 0);
		pid_t middle = fork();
		if (middle == 0) {
			const char *argv[4];
			struct vx_spawn s = sh("exec sleep 100", argv);
			pid_t kid = -1;
			int pidfd;

			s.death_signal = SIGKILL;
			s.new_pidns = pidns;
			int r = vx_spawn(&s, &kid, &pidfd, NULL);
			if (r < 0)
				kid = r;
			vx_write_full(p[1], &kid, sizeof kid);
			_exit(0);
		}
		pid_t kid = 0;
		vx_close(p[1]);
		assert_int_equal(vx_read_full(p[0], &kid, sizeof kid), sizeof kid);
		vx_close(p[0]);
		assert_int_equal(waitpid(middle, &status, 0), middle);
		if (kid == -EPERM && pidns)
			break; /* as a normal user */
		assert_true(kid > 0);
		assert_int_equal(waitpid(kid, &status, 0), kid);
		assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
		prctl(PR_SET_CHILD_SUBREAPER, 0);
	}
}

static void first_in_a_pid_namespace(void **state)
{
	const char *argv[4];
	struct vx_spawn s = sh("exit $(($$ - 1))", argv);
	pid_t pid;
	int pidfd;

	(void)state;
	s.new_pidns = true;
	int r = vx_spawn(&s, &pid, &pidfd, NULL);
	if (r == -EPERM) {
		assert_int_not_equal(geteuid(), 0);
		vxt_skip("a normal user makes no pid namespace");
	}
	assert_int_equal(r, 0);
	assert_int_equal(reap(pid, pidfd), 0);
}

static void joins_a_cgroup_first(void **state)
{
	const char *argv[4];
	struct vx_spawn s = sh("true", argv);
	int fd = vx_memfd("procs"), pidfd;
	char got[8] = "";
	pid_t pid;

	(void)state;
	s.join_cgroup_fd = fd;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	reap(pid, pidfd);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(vx_read_full(fd, got, sizeof got), 1);
	assert_string_equal(got, "0");
	vx_close(fd);
}

static void executes_a_descriptor(void **state)
{
	const char *argv[4];
	struct vx_spawn s = sh("echo by descriptor", argv);
	int null = vx_open(AT_FDCWD, "/dev/null", O_RDONLY, 0);

	(void)state;
	s.path = NULL;
	s.exec_fd = vx_open(AT_FDCWD, "/bin/sh", O_PATH, 0);
	assert_string_equal(output_of(s), "by descriptor\n");
	/* It stands where a target will be. */
	struct vx_spawn_fd fds[4];
	for (int i = 0; i < 4; i++)
		fds[i] = (struct vx_spawn_fd){null, 2 + i};
	assert_true(s.exec_fd < 8);
	s.fds = fds;
	s.n_fds = 4;
	assert_string_equal(output_of(s), "by descriptor\n");
	vx_close(s.exec_fd);
	s.exec_fd = null; /* no program */
	refused(s, -EACCES, "exec");
	vx_close(null);
}

static void finding_programs(void **state)
{
	char *dir = vxt_tmpdir(), ret[VX_MAX_PATH] = "untouched", var[PATH_MAX * 2];

	(void)state;
	vxt_write(dir, "one/prog", "");
	vxt_write(dir, "two/prog", "");
	assert_int_equal(chmod(vxt_path(dir, "two/prog"), 0755), 0);
	assert_int_equal(mkdir(vxt_path(dir, "one/dir"), 0755), 0);
	snprintf(var, sizeof var, "%s/no:%s/one:%s/two", dir, dir, dir);
	assert_int_equal(vx_which("nothing", var, ret), -ENOENT);
	assert_int_equal(vx_which("dir", var, ret), -ENOENT);
	assert_int_equal(vx_which("", var, ret), -ENOENT);
	assert_int_equal(vx_which("prog", "", ret), -ENOENT);
	assert_int_equal(vx_which(vxt_path(dir, "one/prog"), var, ret), -ENOENT);
	assert_string_equal(ret, "untouched");
	assert_int_equal(vx_which("prog", var, ret), 0); /* the first one may not be executed */
	assert_string_equal(ret, vxt_path(dir, "two/prog"));
	assert_int_equal(vx_which(vxt_path(dir, "two/prog"), NULL, ret), 0);
	assert_string_equal(ret, vxt_path(dir, "two/prog"));
	assert_int_equal(vx_which("sh", NULL, ret), 0);

	char *here = getcwd(NULL, 0);
	assert_int_equal(chdir(dir), 0);
	assert_int_equal(vx_which("prog", "one:two", ret), 0);
	assert_string_equal(ret, vxt_path(dir, "two/prog"));
	assert_int_equal(chdir("two"), 0);
	/* an empty entry is the current directory */
	assert_int_equal(vx_which("prog", "/no:", ret), 0);
	assert_string_equal(ret, vxt_path(dir, "two/prog"));
	assert_int_equal(vx_which("./prog", "", ret), 0);
	assert_string_equal(ret, "./prog");
	assert_int_equal(chdir(here), 0);
	free(here);
	vxt_rm(dir);
}

static void program(const char *dir, const char *rel)
{
	vxt_write(dir, rel, "");
	assert_int_equal(chmod(vxt_path(dir, rel), 0755), 0);
}

/* What vx runs on its own account is neither of the workspace nor of a package, however PATH says
 * it. */
static void own_programs(void **state)
{
	static const char *const theirs[] = {"ws/bin", "ws/sub/../bin", "ws/node_modules/.bin",
		"npx/node_modules/.bin", "npx/node_modules/.bin/", "npx//node_modules//.bin/.",
		"npx/link", "out/towards", "linked"};
	char *old = strdup(getenv("PATH")), *dir = vxt_tmpdir(), root[PATH_MAX],
	     ret[VX_MAX_PATH] = "untouched", var[PATH_MAX * 2], here[PATH_MAX];
	struct vx_arena a = {0};

	(void)state;
	snprintf(root, sizeof root, "%s/ws", dir);
	vxt_write(dir, "ws/sub/x", "");
	program(dir, "ws/bin/prog");
	program(dir, "ws/node_modules/.bin/prog");
	program(dir, "npx/node_modules/.bin/prog");
	program(dir, "out/prog");
	program(dir, "wsx/prog");
	vxt_write(dir, "linked/x", "");
	assert_int_equal(symlink("node_modules/.bin", vxt_path(dir, "npx/link")), 0);
	assert_int_equal(symlink("../ws/bin", vxt_path(dir, "out/towards")), 0);
	assert_int_equal(symlink("../ws/bin/prog", vxt_path(dir, "linked/prog")), 0);
	assert_int_equal(symlink("../../out", vxt_path(dir, "ws/sub/profile")), 0);
	for (size_t i = 0; i < VX_ARRAY_LEN(theirs); i++) {
		snprintf(var, sizeof var, "%s/%s", dir, theirs[i]);
		setenv("PATH", var, 1);
		assert_int_equal(vx_which_own("prog", root, ret), -ENOENT);
		assert_string_equal(ret, "untouched");
		strcat(var, ":");
		strcat(var, vxt_path(dir, "out"));
		setenv("PATH", var, 1);
		assert_int_equal(vx_which_own("prog", root, ret), 0);
		assert_string_equal(ret, vxt_path(dir, "out/prog"));
		strcpy(ret, "untouched");
	}
	assert_non_null(getcwd(here, sizeof here));
	/* relative and empty entries, wherever they lead */
	assert_int_equal(chdir(vxt_path(dir, "out")), 0);
	setenv("PATH", ":.:../out:", 1);
	assert_int_equal(vx_which_own("prog", root, ret), -ENOENT);
	assert_int_equal(vx_which_own(vxt_path(dir, "out/prog"), root, ret), -ENOENT);
	assert_int_equal(chdir(here), 0);
	setenv("PATH", vxt_path(dir, "wsx"), 1); /* begins like the workspace */
	assert_int_equal(vx_which_own("prog", root, ret), 0);
	/* leads out of the workspace: a profile of a tool manager */
	setenv("PATH", vxt_path(dir, "ws/sub/profile"), 1);
	assert_int_equal(vx_which_own("prog", root, ret), 0);
	setenv("PATH", vxt_path(dir, "ws/bin"), 1);
	assert_int_equal(vx_which_own("prog", "/", ret), 0);
	assert_int_equal(vx_which_own("prog", NULL, ret), 0);
	unsetenv("PATH");
	assert_int_equal(vx_which_own("sh", root, ret), 0);

	snprintf(var, sizeof var, "rel:%s/ws/bin::%s/out:%s/npx/node_modules/.bin:%s/wsx:", dir,
		dir, dir, dir);
	setenv("PATH", var, 1);
	setenv("VX_TEST_OWN", "kept", 1);
	snprintf(var, sizeof var, "PATH=%s/out:%s/wsx", dir, dir);
	int paths = 0, kept = 0, n = 0;
	for (const char *const *e = vx_env_own(&a, root); *e; e++, n++) {
		if (strncmp(*e, "PATH=", 5) == 0)
			assert_string_equal(*e, var);
		paths += strncmp(*e, "PATH=", 5) == 0;
		kept += strcmp(*e, "VX_TEST_OWN=kept") == 0;
	}
	assert_int_equal(paths + kept, 2);
	for (char **e = environ; *e; e++)
		n--;
	assert_int_equal(n, 0);
	vx_arena_free(&a);
	setenv("PATH", old, 1);
	unsetenv("VX_TEST_OWN");
	free(old);
	vxt_rm(dir);
}

/* Whoever has more descriptors open than the child may have can still start one, and the child gets
 * the limit that there was at first. */
static void more_descriptors_than_the_child_may_have(void **state)
{
	int status;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		const char *argv[4];
		struct rlimit low;
		struct vx_spawn s =
			sh("test $(ulimit -S -n) = 64 && test ! -t 0 && echo fine >&2", argv);
		int last = 0, pidfd = -1;

		getrlimit(RLIMIT_NOFILE, &low);
		low.rlim_cur = 64;
		if (setrlimit(RLIMIT_NOFILE, &low) < 0 || vx_nofile_raise() < 256)
			_exit(50);
		while (last < 200)
			if ((last = vx_open(AT_FDCWD, "/dev/null", O_RDWR, 0)) < 0)
				_exit(51);
		s.fds = (struct vx_spawn_fd[]){{last, 2}, {4, 3}};
		s.n_fds = 2;
		_exit(vx_spawn(&s, &pid, &pidfd, NULL) == 0 ? WEXITSTATUS(reap(pid, pidfd)) : 52);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		/* first: what was ignored at the start is looked up once */
		cmocka_unit_test(signals_are_as_new),
		cmocka_unit_test(runs_a_program),
		cmocka_unit_test(environment),
		cmocka_unit_test(refusals_of_exec),
		cmocka_unit_test(refusals_before_exec),
		cmocka_unit_test(working_directory),
		cmocka_unit_test(only_named_descriptors),
		cmocka_unit_test(any_source_at_any_target),
		cmocka_unit_test(standard_streams_closed),
		cmocka_unit_test(sessions_and_groups),
		cmocka_unit_test(death_follows_the_parent),
		cmocka_unit_test(first_in_a_pid_namespace),
		cmocka_unit_test(joins_a_cgroup_first),
		cmocka_unit_test(executes_a_descriptor),
		cmocka_unit_test(finding_programs),
		cmocka_unit_test(own_programs),
		cmocka_unit_test(more_descriptors_than_the_child_may_have),
	};

	signal(SIGRTMIN + 5, SIG_IGN);
	return cmocka_run_group_tests_name("spawn", tests, NULL, NULL);
}
