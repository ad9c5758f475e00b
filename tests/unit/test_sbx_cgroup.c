/* Cgroups, against directories that look like cgroup file systems, and against real ones where they
 * can be had. */
#include "vxtest.h"

#include "../../worker/cgroup.h"

#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static char *fs;
/* What a test finds, opens, and is told at the end. */
static struct cgroup_place p;
static struct cgroup g;
static struct cgroup_use use;

static void holds(const char *rel, const char *text)
{
	struct vx_buf b = VX_BUF(4096);

	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(fs, rel), &b), 0);
	assert_string_equal(vx_buf_str(&b), text);
	vx_buf_free(&b);
}

static int fresh(void **state)
{
	(void)state;
	fs = vxt_tmpdir();
	return 0;
}

static int gone(void **state)
{
	(void)state;
	vxt_rm(fs);
	return 0;
}

/* What the kernel would put into a directory of that name. */
static void attempt_v2(const char *dir)
{
	static const char *const files[] = {
		"memory.max", "memory.swap.max", "pids.max", "cgroup.procs", "cgroup.kill"};
	char rel[256];

	for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
		snprintf(rel, sizeof rel, "%s/%s", dir, files[i]);
		vxt_write(fs, rel, "");
	}
}

static void version_2(void **state)
{
	(void)state;
	vxt_write(fs, "cgroup.subtree_control", "cpuset cpu io memory pids\n");
	vxt_write(fs, "vx.4242/cgroup.subtree_control", "");
	attempt_v2("vx.4242/3");
	cgroup_find(fs, "0::/\n", 4242, &p);
	assert_true(p.v2);
	assert_string_equal(p.dir[CGROUP_MEMORY], vxt_path(fs, "vx.4242"));
	assert_string_equal(p.dir[CGROUP_PIDS], p.dir[CGROUP_MEMORY]);
	/* a file of ours keeps only the last of two writes */
	holds("vx.4242/cgroup.subtree_control", "+memory");
	assert_int_equal(cgroup_open(&p, 3, 100 << 20, 500, &g), 0);
	holds("vx.4242/3/memory.max", "104857600");
	holds("vx.4242/3/memory.swap.max", "0");
	holds("vx.4242/3/pids.max", "500");
	/* one hierarchy is joined once */
	assert_true(g.procs_fd[CGROUP_MEMORY] >= 0 && g.procs_fd[CGROUP_PIDS] < 0);
	cgroup_kill(&g);
	holds("vx.4242/3/cgroup.kill", "1");
	vxt_write(fs, "vx.4242/3/memory.peak", "123456789\n");
	vxt_write(fs, "vx.4242/3/memory.events",
		"low 0\nhigh 0\nmax 17\noom 2\noom_kill 1\noom_group_kill 0\n");
	vxt_write(fs, "vx.4242/3/pids.events", "max 5\n");
	cgroup_close(&g, &use);
	assert_int_equal(use.peak_bytes, 123456789);
	assert_int_equal(use.oom_kills, 1);
	assert_int_equal(use.fork_denied, 5);
	assert_true(g.procs_fd[0] < 0 && g.dir[0][0] == '\0');
	/* It could not be removed. The next attempt finds it as it was left, and what is there is
	 * not its own. */
	assert_int_equal(cgroup_open(&p, 3, 100 << 20, 500, &g), 0);
	cgroup_close(&g, &use);
	assert_int_equal(use.peak_bytes | use.oom_kills | use.fork_denied, 0);
	assert_int_equal(cgroup_open(&p, 3, 100 << 20, 500, &g), 0);
	vxt_write(fs, "vx.4242/3/memory.peak", "123456790\n");
	vxt_write(fs, "vx.4242/3/memory.events",
		"low 0\nhigh 0\nmax 17\noom 2\noom_kill 3\noom_group_kill 0\n");
	vxt_write(fs, "vx.4242/3/pids.events", "max 9\n");
	cgroup_close(&g, &use);
	assert_int_equal(use.peak_bytes, 123456790);
	assert_int_equal(use.oom_kills, 2);
	assert_int_equal(use.fork_denied, 4);
}

static void version_2_below_and_beside(void **state)
{
	(void)state;
	/* our own cgroup is deeper; the hierarchy stands beside v1's */
	vxt_write(fs, "unified/user.slice/me/cgroup.subtree_control", "memory\n");
	vxt_write(fs, "unified/user.slice/me/vx.1/cgroup.subtree_control", "");
	cgroup_find(fs, "4:memory:/elsewhere\n0::/user.slice/me\n", 1, &p);
	assert_true(p.v2);
	assert_string_equal(p.dir[CGROUP_MEMORY], vxt_path(fs, "unified/user.slice/me/vx.1"));
	assert_string_equal(p.dir[CGROUP_PIDS], ""); /* not handed on */
	/* a container shows its own part only */
	vxt_write(fs, "unified/cgroup.subtree_control", "memory pids\n");
	vxt_write(fs, "unified/vx.1/cgroup.subtree_control", "");
	cgroup_find(fs, "0::/docker/0123\n", 1, &p);
	assert_string_equal(p.dir[CGROUP_MEMORY], vxt_path(fs, "unified/vx.1"));
	assert_string_equal(p.dir[CGROUP_PIDS], vxt_path(fs, "unified/vx.1"));
}

static void version_1(void **state)
{
	(void)state;
	/* v2 is there and does not hand memory on */
	vxt_write(fs, "cgroup.subtree_control", "cpu pids\n");
	vxt_write(fs, "vx.77/cgroup.subtree_control", "");
	vxt_write(fs, "memory/job/vx.77/0/memory.limit_in_bytes", "");
	vxt_write(fs, "memory/job/vx.77/0/memory.memsw.limit_in_bytes", "");
	vxt_write(fs, "memory/job/vx.77/0/cgroup.procs", "");
	vxt_write(fs, "memory/job/vx.77/0/memory.max_usage_in_bytes", "1024\n");
	/* an earlier attempt's */
	vxt_write(fs, "memory/job/vx.77/0/memory.oom_control",
		"oom_kill_disable 0\nunder_oom 0\noom_kill 2\n");
	vxt_write(fs, "pids/vx.77/0/pids.max", "");
	vxt_write(fs, "pids/vx.77/0/cgroup.procs", "");
	vxt_write(fs, "pids/vx.77/0/pids.events", "max 0\n");
	cgroup_find(fs, "9:pids:/\n4:cpu,memory:/job\n1:name=systemd:/\n0::/\n", 77, &p);
	assert_false(p.v2);
	assert_string_equal(p.dir[CGROUP_MEMORY], vxt_path(fs, "memory/job/vx.77"));
	assert_string_equal(p.dir[CGROUP_PIDS], vxt_path(fs, "pids/vx.77"));
	assert_int_equal(cgroup_open(&p, 0, 1 << 20, 9, &g), 0);
	holds("memory/job/vx.77/0/memory.limit_in_bytes", "1048576");
	holds("memory/job/vx.77/0/memory.memsw.limit_in_bytes", "1048576");
	holds("pids/vx.77/0/pids.max", "9");
	assert_true(g.procs_fd[CGROUP_MEMORY] >= 0 && g.procs_fd[CGROUP_PIDS] >= 0);
	vxt_write(fs, "memory/job/vx.77/0/memory.max_usage_in_bytes", "4096\n");
	vxt_write(fs, "memory/job/vx.77/0/memory.oom_control",
		"oom_kill_disable 0\nunder_oom 0\noom_kill 5\n");
	cgroup_close(&g, &use);
	assert_int_equal(use.peak_bytes, 4096);
	assert_int_equal(use.oom_kills, 3);
	assert_int_equal(use.fork_denied, 0);
}

static void memory_without_pids(void **state)
{
	(void)state;
	vxt_write(fs, "memory/vx.5/1/memory.limit_in_bytes", "");
	vxt_write(fs, "memory/vx.5/1/cgroup.procs", "");
	cgroup_find(fs, "4:memory:/\n", 5, &p);
	assert_string_equal(p.dir[CGROUP_PIDS], "");
	/* swap is not accounted: the limit stands all the same */
	assert_int_equal(cgroup_open(&p, 1, 4096, 1, &g), 0);
	assert_true(g.procs_fd[CGROUP_PIDS] < 0);
	cgroup_close(&g, &use);
	/* what cannot be read is not known */
	assert_int_equal(use.peak_bytes | use.oom_kills | use.fork_denied, 0);
}

static void neither(void **state)
{
	(void)state;
	cgroup_find(fs, "", 5, &p);
	assert_true(p.dir[0][0] == '\0' && p.dir[1][0] == '\0');
	assert_int_equal(cgroup_open(&p, 0, 1 << 20, 1, &g), -ENOTSUP);
	assert_true(g.procs_fd[0] < 0 && g.procs_fd[1] < 0);
	cgroup_find(vxt_path(fs, "none"), "4:memory:/\n0::/\n", 5, &p);
	assert_int_equal(cgroup_open(&p, 0, 1 << 20, 1, &g), -ENOTSUP);
	/* made, but the limit is not taken: no cgroup is joined, nothing stays */
	vxt_write(fs, "memory/x", "");
	cgroup_find(fs, "4:memory:/\n", 5, &p);
	assert_int_equal(cgroup_open(&p, 0, 1 << 20, 1, &g), -ENOENT);
	assert_int_equal(access(vxt_path(fs, "memory/vx.5/0"), F_OK), -1);
	cgroup_forget(&p);
	assert_int_equal(access(vxt_path(fs, "memory/vx.5"), F_OK), -1);
	/* v2 that cannot be switched on for us: v1, where there is one */
	vxt_write(fs, "cgroup.subtree_control", "memory\n");
	cgroup_find(fs, "4:memory:/\n0::/\n", 6, &p);
	assert_false(p.v2);
	assert_string_equal(p.dir[CGROUP_MEMORY], vxt_path(fs, "memory/vx.6"));
	assert_int_equal(access(vxt_path(fs, "vx.6"), F_OK), -1);
}

static void dead_runs_are_swept(void **state)
{
	char rel[64];
	(void)state;

	snprintf(rel, sizeof rel, "memory/vx.%d", (int)getppid());
	vxt_write(fs, "memory/x", "");
	assert_int_equal(mkdir(vxt_path(fs, "memory/vx.99999999"), 0755), 0); /* above any pid */
	assert_int_equal(mkdir(vxt_path(fs, "memory/vx.99999999/4"), 0755), 0);
	assert_int_equal(mkdir(vxt_path(fs, rel), 0755), 0);
	cgroup_find(fs, "4:memory:/\n", getpid(), &p);
	assert_int_equal(access(vxt_path(fs, "memory/vx.99999999"), F_OK), -1);
	assert_int_equal(access(vxt_path(fs, rel), F_OK), 0);
}

static pid_t sleeper(int procs_fd)
{
	static const char *const argv[] = {"sleep", "60", NULL};
	struct vx_spawn s = VX_SPAWN_INIT;
	int pidfd;
	pid_t pid;

	s.path = "/bin/sleep";
	s.argv = argv;
	s.join_cgroup_fd = procs_fd;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	vx_close(pidfd);
	return pid;
}

/* A number in the list that has come to mean somebody else. */
static void only_members_are_killed(void **state)
{
	char text[64];
	pid_t pid = sleeper(-1);
	(void)state;

	g = CGROUP_INIT;
	snprintf(text, sizeof text, "%d\n%d\n", (int)pid, 99999999);
	vxt_write(fs, "memory/vx.8/0/cgroup.procs", text);
	snprintf(g.dir[CGROUP_MEMORY], CGROUP_PATH, "%s", vxt_path(fs, "memory/vx.8/0"));
	cgroup_kill(&g);
	poll(NULL, 0, 20);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

/* Nor one that belongs to another slot, whose name only begins like ours. */
static void members_of_another_slot_are_not_killed(void **state)
{
	char other[CGROUP_PATH], rel[64], text[32];
	int fd;
	pid_t pid;
	(void)state;

	snprintf(other, sizeof other, "/sys/fs/cgroup/pids/vx.%d", (int)getpid());
	if (mkdir(other, 0755) < 0)
		vxt_skip("no cgroup can be made here");
	snprintf(other, sizeof other, "/sys/fs/cgroup/pids/vx.%d/12", (int)getpid());
	assert_int_equal(mkdir(other, 0755), 0);
	snprintf(other, sizeof other, "/sys/fs/cgroup/pids/vx.%d/12/cgroup.procs", (int)getpid());
	fd = vx_open(AT_FDCWD, other, O_WRONLY, 0);
	pid = sleeper(fd);
	vx_close(fd);
	snprintf(rel, sizeof rel, "memory/vx.%d/1/cgroup.procs", (int)getpid());
	snprintf(text, sizeof text, "%d\n", (int)pid);
	vxt_write(fs, rel, text);
	*strrchr(rel, '/') = '\0';
	g = CGROUP_INIT;
	snprintf(g.dir[CGROUP_MEMORY], CGROUP_PATH, "%s", vxt_path(fs, rel));
	cgroup_kill(&g);
	poll(NULL, 0, 20);
	pid_t dead = waitpid(pid, NULL, WNOHANG);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	for (int i = 0; i < 2; i++) {
		*strrchr(other, '/') = '\0';
		rmdir(other);
	}
	assert_int_equal(dead, 0);
}

static int members(const char *procs)
{
	char text[256], *line = text;
	int fd = vx_open(AT_FDCWD, procs, O_RDONLY, 0), n = 0;
	ssize_t r = vx_read(fd, text, sizeof text - 1);

	vx_close(fd);
	text[r > 0 ? r : 0] = '\0';
	while ((line = strchr(line, '\n')) != NULL)
		line++, n++;
	return n;
}

/* In a real hierarchy: the process and its child, which has left its session and ignores what it
 * can. */
static void real(const char *base, bool v2)
{
	static const char *const argv[] = {
		"sh", "-c", "trap '' TERM HUP; setsid sleep 60 & wait", NULL};
	char path[CGROUP_PATH + 64];
	struct vx_spawn s = VX_SPAWN_INIT;
	int pidfd, status;
	pid_t pid;

	snprintf(path, sizeof path, "%s/vx.%d", base, (int)getpid());
	if (access(base, W_OK) < 0 || mkdir(path, 0755) < 0)
		vxt_skip("no cgroup can be made here");
	g = CGROUP_INIT;
	g.v2 = v2;
	snprintf(g.dir[CGROUP_MEMORY], CGROUP_PATH, "%s/0", path);
	assert_int_equal(mkdir(g.dir[CGROUP_MEMORY], 0755), 0);
	snprintf(path, sizeof path, "%s/cgroup.procs", g.dir[CGROUP_MEMORY]);
	g.procs_fd[CGROUP_MEMORY] = vx_open(AT_FDCWD, path, O_WRONLY, 0);
	s.path = "/bin/sh";
	s.argv = argv;
	s.join_cgroup_fd = g.procs_fd[CGROUP_MEMORY];
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	vx_close(pidfd);
	vxt_wait_for(members(path) == 2);
	cgroup_kill(&g);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	snprintf(path, sizeof path, "%s", g.dir[CGROUP_MEMORY]);
	cgroup_close(&g, &use); /* whoever was late */
	assert_int_equal(access(path, F_OK), -1);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

static void real_kill_v2(void **state)
{
	(void)state;
	real(access("/sys/fs/cgroup/unified", F_OK) == 0 ? "/sys/fs/cgroup/unified"
							 : "/sys/fs/cgroup",
		true);
}

static void real_kill_v1(void **state)
{
	(void)state;
	real("/sys/fs/cgroup/pids", false);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(version_2, fresh, gone),
		cmocka_unit_test_setup_teardown(version_2_below_and_beside, fresh, gone),
		cmocka_unit_test_setup_teardown(version_1, fresh, gone),
		cmocka_unit_test_setup_teardown(memory_without_pids, fresh, gone),
		cmocka_unit_test_setup_teardown(neither, fresh, gone),
		cmocka_unit_test_setup_teardown(dead_runs_are_swept, fresh, gone),
		cmocka_unit_test_setup_teardown(only_members_are_killed, fresh, gone),
		cmocka_unit_test_setup_teardown(
			members_of_another_slot_are_not_killed, fresh, gone),
		cmocka_unit_test(real_kill_v2),
		cmocka_unit_test(real_kill_v1),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
