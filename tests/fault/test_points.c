/* A worker or a fork server that dies at a chosen moment: the task is over or lost, nothing of it
 * is alive then, and the pool goes on or says that it cannot. Where rlimits keep a process from
 * being made, that is what is said. */
#include "vxtest.h"
#include "../unit/vxpool.h"

#include "../../sched/loop/pool_internal.h"

#include <sys/resource.h>

#define TAG "87654.3"

static struct vx_task_desc leaving_task(uint32_t task)
{
	static const char *const argv[] = {"/bin/sh", "-c",
		"echo hello; setsid sleep $0 & setsid sh -c 'sleep $0; :' $0 & exit 3", TAG, NULL};

	return vxp_desc(task, argv);
}

static struct vxp_result run(struct vx_pool *p, uint32_t slot, uint32_t task)
{
	struct vx_task_desc d = leaving_task(task);
	struct vxp_result r = {0};

	assert_int_equal(vx_pool_run(p, slot, &d, NULL), 0);
	vxp_finish(p, slot, &r);
	assert_int_equal(vxp_alive(TAG), 0);
	if (!r.lost) {
		assert_int_equal(r.done.end, VX_END_EXIT);
		assert_int_equal(r.done.code, 3);
		assert_string_equal(vx_buf_str(&r.out), "hello\n");
	}
	return r;
}

static int clean(void **state)
{
	(void)state;
	unsetenv("VX_CRASH_AT");
	vxp_end_all();
	return 0;
}

/* The third time that a worker passes the point it dies there. */
static void workers(void **state)
{
	static const char *const points[] = {"taken", "spawned", "told", "started", "output",
		"exited", "left", "drained", "published"};

	(void)state;
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		char at[64];
		struct vx_pool *p;
		struct vx_pool_stats s;

		snprintf(at, sizeof at, "worker.%s:3", points[i]);
		setenv("VX_CRASH_AT", at, 1);
		p = vxp_start(1);
		for (uint32_t task = 1; task <= 5; task++) {
			struct vxp_result r = run(p, 0, task);
			/* Once an end is published it counts, whatever becomes of the worker. */
			bool lost = task == 3 && strcmp(points[i], "published") != 0;

			if (r.lost != lost)
				fail_msg("%s: task %u was%s lost", at, task, r.lost ? "" : " not");
			if (lost)
				assert_string_equal(
					r.done.text, "its worker was killed by SIGKILL");
			vxp_free(&r);
		}
		vx_pool_stats(p, &s);
		assert_int_equal(s.workers, 2);
		assert_int_equal(s.fork_servers, 1);
		vx_pool_end(p);
		assert_int_equal(vxp_alive(TAG), 0);
	}
}

/* A worker that is killed between two tasks, when the next one lies in its ring already. */
static void an_idle_worker(void **state)
{
	(void)state;
	for (int stop = 0; stop < 2; stop++) {
		struct vx_pool *p = vxp_start(1);
		struct vx_task_desc d = leaving_task(2);
		struct vxp_result r = run(p, 0, 1);
		struct vx_pool_stats s;
		pid_t pid = (pid_t)vx_region_slot(&p->region, 0)->worker_pid;

		vxp_free(&r);
		assert_int_equal(kill(pid, SIGSTOP), 0);
		assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
		if (stop)
			assert_int_equal(vx_pool_stop(p, 0, SIGTERM), 0);
		assert_int_equal(kill(pid, SIGKILL), 0);
		vxp_finish(p, 0, &r);
		assert_int_equal(r.lost, stop);
		if (!stop) {
			assert_int_equal(r.done.code, 3);
			assert_string_equal(vx_buf_str(&r.out), "hello\n");
		}
		vxp_free(&r);
		vx_pool_stats(p, &s);
		assert_int_equal(s.workers, stop ? 1 : 2);
		vx_pool_end(p);
		assert_int_equal(vxp_alive(TAG), 0);
	}
}

/* It dies where it handles its second worker; so does its replacement. */
static void fork_servers(void **state)
{
	static const char *const points[] = {"forked", "reaped", "swept"};

	(void)state;
	for (size_t i = 0; i < sizeof points / sizeof points[0]; i++) {
		struct vx_pool *p;
		struct vx_pool_stats s;
		char at[64];
		int lost = 0, r = 0;

		snprintf(at, sizeof at, "forkserver.%s:2", points[i]);
		setenv("VX_CRASH_AT", at, 1);
		p = vxp_start(8);
		for (uint32_t slot = 0; slot < 8 && r == 0; slot++) {
			struct vx_task_desc d = leaving_task(slot);
			struct vxp_result got = {0};

			r = vx_pool_run(p, slot, &d, NULL);
			if (r < 0)
				break;
			vxp_finish(p, slot, &got);
			lost += got.lost;
			assert_int_equal(vxp_alive(TAG), 0);
			if (i > 0 && p->slots[slot].has_worker) /* and the worker dies, so that
								   there is something to handle */
				kill((pid_t)vx_region_slot(&p->region, slot)->worker_pid, SIGKILL);
			vxp_free(&got);
		}
		assert_int_equal(r, -EPIPE);
		vx_pool_stats(p, &s);
		assert_int_equal(s.fork_servers, 2);
		if (i == 0)
			assert_int_equal(lost, 2);
		vx_pool_end(p);
		assert_int_equal(vxp_alive(TAG), 0);
	}
}

/* ---- no more processes: as a user of its own, since root is not counted ---- */

static void limit_processes(pid_t of, rlim_t n)
{
	struct rlimit l = {n, 1000};

	assert_int_equal(prlimit(of, RLIMIT_NPROC, &l, NULL), 0);
}

static int no_more_processes_as_user(void)
{
	struct vx_pool *p = vxp_start(1);
	struct vx_task_desc d = vxp_desc(1, (const char *const[]){"/bin/true", NULL});
	struct vxp_result r = {0};

	limit_processes(p->server_pid, 1);
	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	vxp_finish(p, 0, &r);
	assert_true(r.lost);
	assert_string_equal(
		r.done.text, "no worker could be forked: Resource temporarily unavailable");
	vxp_free(&r);
	limit_processes(p->server_pid, 1000);
	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	vxp_finish(p, 0, &r);
	assert_int_equal(r.done.end, VX_END_EXIT);
	vxp_free(&r);
	limit_processes((pid_t)vx_region_slot(&p->region, 0)->worker_pid, 1);
	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	vxp_finish(p, 0, &r);
	assert_int_equal(r.done.end, VX_END_SPAWN);
	assert_string_equal(r.done.text,
		"clone: no more processes allowed (ulimit -u, or the pids limit of the cgroup)");
	vxp_free(&r);
	vx_pool_end(p);
	return 0;
}

static void no_more_processes(void **state)
{
	int status;
	pid_t pid;

	(void)state;
	if (geteuid() != 0)
		vxt_skip("needs root: as a normal user, other processes of ours count too");
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		if (setgid(64321) < 0 || setuid(64321) < 0)
			_exit(1);
		if (access("/proc/self/exe", X_OK) < 0)
			_exit(77); /* the build lies where that user may not go */
		_exit(no_more_processes_as_user());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		vxt_skip("the build lies where another user may not go");
	assert_int_equal(status, 0);
}

/* A signal for a command whose sandbox is being built waits in the box host. That one would die if
 * it were sent another time; the command lives on, since nobody has asked to hear of SIGWINCH. */
static void a_stop_during_set_up_is_sent_once(void **state)
{
	static const char *const argv[] = {"/bin/sh", "-c", "echo end; exit 5", NULL};
	struct vx_task_desc d = vxp_desc(1, argv);
	char *root = vxt_tmpdir();
	struct vxp_result r = {0};
	struct vx_pool_event e;
	struct vx_pool *p;
	pid_t worker;

	(void)state;
	setenv("VX_CRASH_AT", "boxhost.signal:2", 1);
	p = vxp_start(1);
	assert_int_equal(vx_pool_arm(p, 0, false), 0);
	assert_int_equal(vxp_event(p, &e, VXT_HANG_MS), 1);
	if (e.done.end == VX_END_EXIT) {
		d.sandboxed = true;
		d.cwd = root;
		d.sandbox.root = root;
		d.sandbox.project_dir = ".";
		d.sandbox.home = "";
		d.sandbox.record_dir = vxt_path(root, ".vx/sweep");
		/* Both requests are there when it looks. */
		worker = (pid_t)vx_region_slot(&p->region, 0)->worker_pid;
		assert_int_equal(kill(worker, SIGSTOP), 0);
		assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
		vx_pool_stop(p, 0, SIGWINCH);
		assert_int_equal(kill(worker, SIGCONT), 0);
		vxp_finish(p, 0, &r);
		assert_false(r.lost);
		assert_int_equal(r.done.end, VX_END_STOPPED);
		assert_string_equal(vx_buf_str(&r.out), "end\n");
		vxp_free(&r);
	}
	vx_pool_end(p);
	vxt_rm(root);
}

static void wrong_arguments(void **state)
{
	char exe[4096], cmd[4200];

	(void)state;
	assert_true(vx_readlink(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) > 0);
	snprintf(cmd, sizeof cmd, "%s -forkserver", exe);
	assert_int_equal(vxt_sh(cmd, NULL), 64);
	snprintf(cmd, sizeof cmd, "%s -forkserver 0 0 ''", exe);
	assert_int_equal(vxt_sh(cmd, NULL), 64);
	snprintf(cmd, sizeof cmd, "%s -forkserver 9999 0 ''", exe);
	assert_int_equal(vxt_sh(cmd, NULL), 64);
	snprintf(cmd, sizeof cmd, "%s -forkserver 1 0 '' 3>&- 4>&- 5>&- 6>&-", exe);
	assert_int_equal(vxt_sh(cmd, NULL), 70);
	snprintf(cmd, sizeof cmd,
		"%s -forkserver 1 0 '' 3</dev/null 4</dev/null 5</dev/null 6</dev/null", exe);
	assert_int_equal(vxt_sh(cmd, NULL), 70);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(workers, clean),
		cmocka_unit_test_teardown(an_idle_worker, clean),
		cmocka_unit_test_teardown(fork_servers, clean),
		cmocka_unit_test(no_more_processes),
		cmocka_unit_test_teardown(a_stop_during_set_up_is_sent_once, clean),
		cmocka_unit_test(wrong_arguments),
	};

	vxp_main(argc, argv);
	return cmocka_run_group_tests_name("points", tests, NULL, NULL);
}
