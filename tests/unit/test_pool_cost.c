/* What the pool costs and where it ends: wakes, system calls, descriptors; nothing leaks. And the
 * seam that it stands behind. */
#include "vxtest.h"
#include "vxpool.h"

#include "../../sched/loop/pool_internal.h"

#include "vx/executor.h"
#include "vx/limits.h"
#include "vx/proctree.h"

#include <sys/ptrace.h>
#include <sys/resource.h>
#include <time.h>

#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})
#define SH(text) ARGV("/bin/sh", "-c", text)

/* Counted, not timed: a run of short tasks costs one wake of the worker each, and no more processes
 * than slots. */
static void wakes_are_few(void **state)
{
	struct vx_pool *p = vxp_start(1);
	struct vx_task_desc d = vxp_desc(1, SH(":"));
	struct vx_pool_stats s;

	(void)state;
	for (int i = 0; i < 50; i++) {
		struct vxp_result r = {0};

		assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
		vxp_finish(p, 0, &r);
		vxp_free(&r);
	}
	vx_pool_stats(p, &s);
	assert_int_equal(s.dispatches, 50);
	assert_int_equal(s.workers, 1);
	assert_int_equal(s.fork_servers, 1);
	assert_int_equal(s.box_hosts, 0);
	assert_true(s.wakes < 50); /* the first task is found without */
	vx_pool_end(p);
}

/* Lets the traced worker go on from whatever it stopped at. Returns 1 for the entry or the exit of
 * a system call. */
static int trace_on(pid_t worker)
{
	int status, sig = 0, call = 0;

	if (waitpid(worker, &status, WNOHANG | __WALL) != worker)
		return 0;
	assert_true(WIFSTOPPED(status));
	if (WSTOPSIG(status) == (SIGTRAP | 0x80))
		call = 1;
	else if (status >> 16 == 0)
		sig = WSTOPSIG(status);
	ptrace(PTRACE_SYSCALL, worker, NULL, sig);
	return call;
}

/* Counted, not timed: what a worker asks of the kernel for a program that is executed directly and
 * says nothing. Wake up: ppoll, read. Start: two pipes, chdir there and back, getpid, mask twice,
 * clone, close of the pidfd. Sleep: ppoll, the return of the signal handler. End: wait4 twice, four
 * closes, poll; one write when the scheduler sleeps. That is 20; the kernel restarts some under a
 * tracer. */
static void system_calls_are_few(void **state)
{
	enum { TASKS = 20, MOST = 22 };
	struct vx_pool *p = vxp_start(1);
	struct vx_task_desc d = vxp_desc(1, ARGV("/bin/true"));
	struct vx_pool_event e;
	int stops = 0;
	pid_t worker;

	(void)state;
	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	do
		assert_int_equal(vxp_event(p, &e, VXT_HANG_MS), 1);
	while (e.kind != VX_POOL_EXITED);
	worker = (pid_t)vx_region_slot(&p->region, 0)->worker_pid;
	if (ptrace(PTRACE_SEIZE, worker, NULL, PTRACE_O_TRACESYSGOOD) < 0) {
		vx_pool_end(p);
		vxt_skip("tracing is not allowed here");
	}
	assert_int_equal(ptrace(PTRACE_INTERRUPT, worker, NULL, NULL), 0);
	while (waitpid(worker, NULL, WNOHANG | __WALL) != worker)
		;
	ptrace(PTRACE_SYSCALL, worker, NULL, 0);
	for (int i = 0; i < TASKS; i++) {
		assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
		e.kind = VX_POOL_STARTED;
		while (vx_pool_next(p, &e) == 0 || e.kind != VX_POOL_EXITED)
			stops += trace_on(worker);
	}
	ptrace(PTRACE_INTERRUPT, worker, NULL, NULL);
	while (waitpid(worker, NULL, WNOHANG | __WALL) != worker)
		;
	ptrace(PTRACE_DETACH, worker, NULL, NULL);
	if (stops / 2 > TASKS * MOST)
		fail_msg(
			"%d system calls per task, at most %d are needed", stops / 2 / TASKS, MOST);
	assert_true(stops / 2 > TASKS * 10); /* they were counted */
	vx_pool_end(p);
}

/* Descriptors run out: said with the way out, and the pool goes on with the workers that it has. */
static void no_more_descriptors(void **state)
{
	struct vx_pool *p = vxp_start(2), *q = NULL;
	struct vx_task_desc d = vxp_desc(1, ARGV("/bin/true"));
	struct vx_pool_opts o = {.slots = 1};
	struct vx_err err = {0};
	struct vxp_result r = {0};
	struct rlimit old, now;

	(void)state;
	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	vxp_finish(p, 0, &r);
	vxp_free(&r);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	now = (struct rlimit){3, old.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
	assert_int_equal(vx_pool_run(p, 1, &d, &err), -EMFILE);
	assert_non_null(strstr(err.what, "worker 1"));
	assert_non_null(strstr(err.fix, "ulimit -n"));
	err = (struct vx_err){0};
	assert_int_equal(vx_pool_start(&o, &q, &err), -EMFILE);
	assert_non_null(strstr(err.fix, "ulimit -n"));
	assert_null(q);
	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	vxp_finish(p, 0, &r);
	assert_int_equal(r.done.end, VX_END_EXIT);
	vxp_free(&r);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(vx_pool_run(p, 1, &d, NULL), 0);
	vxp_finish(p, 1, &r);
	vxp_free(&r);
	vx_pool_end(p);
}

/* The seam of vx/executor.h: the pool stands at its tail. */
static void local_executor(void **state)
{
	struct vx_executor x = vx_local_executor(vxp_pool);
	struct vx_task_desc d = vxp_desc(9, SH("echo seam; exec sleep 86134"));
	struct vx_exec_request q = {.desc = &d, .pinned = true};
	struct vx_pool_event e = {0};

	(void)state;
	assert_string_equal(x.name, "local");
	assert_true(x.accepts(x.self, &q));
	assert_int_equal(x.fd(x.self), vx_pool_fd(vxp_pool));
	assert_int_equal(x.start(x.self, 2, &q, NULL), 0);
	while (e.kind != VX_POOL_EXITED) {
		struct pollfd f = {x.fd(x.self), POLLIN, 0};

		if (x.next(x.self, &e) == 0)
			poll(&f, 1, 1000);
		else if (e.kind == VX_POOL_OUTPUT)
			assert_int_equal(x.stop(x.self, 2, SIGKILL), 0);
	}
	assert_int_equal(e.slot, 2);
	assert_int_equal(e.done.end, VX_END_STOPPED);
}

static void nothing_leaks(void **state)
{
	int before = vxt_open_fds();
	struct vx_pids kids = {0};

	(void)state;
	for (int i = 0; i < 3; i++) {
		struct vx_pool *p = vxp_start(VX_MAX_SLOTS);
		struct vx_task_desc d = vxp_desc(1, SH("sleep 86126"));

		if (i > 0)
			assert_int_equal(vx_pool_run(p, 4095, &d, NULL), 0);
		if (i > 1)
			assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
		vxt_wait_for(vxp_alive("86126") == i);
		vx_pool_end(p);
		assert_int_equal(vxp_alive("86126"), 0);
	}
	assert_int_equal(vxt_open_fds(), before);
	assert_int_equal(vx_tree_children(&kids), 0);
	assert_int_equal(kids.n, 1); /* the group's own fork server */
	vx_pids_free(&kids);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(wakes_are_few),
		cmocka_unit_test(system_calls_are_few),
		cmocka_unit_test(no_more_descriptors),
		cmocka_unit_test(local_executor),
		cmocka_unit_test(nothing_leaks),
	};

	vxp_main(argc, argv);
	return cmocka_run_group_tests_name("pool, cost", tests, vxp_set_up, vxp_tear_down);
}
