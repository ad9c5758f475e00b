/* Sandboxed tasks as the pool and its workers handle them: the verdict, ends, signals, a lost box
 * host. What a sandbox allows is tested elsewhere. */
#include "vxtest.h"
#include "vxpool.h"

#include "../../sched/loop/pool_internal.h"

#define SH(text) ((const char *const[]){"/bin/sh", "-c", text, NULL})

static char *root; /* a workspace of its own */

static struct vx_task_desc boxed(const char *text)
{
	static const char *argv[] = {"/bin/sh", "-c", NULL, NULL};
	static char record[4200];
	struct vx_task_desc d;

	argv[2] = text;
	d = vxp_desc(20, argv);
	snprintf(record, sizeof record, "%s/.vx/sweep", root);
	d.sandboxed = true;
	d.cwd = root;
	d.sandbox.root = root;
	d.sandbox.project_dir = ".";
	d.sandbox.home = "";
	d.sandbox.record_dir = record;
	return d;
}

static int make_root(void **state)
{
	(void)state;
	root = vxt_tmpdir();
	return 0;
}

static int drop_root(void **state)
{
	(void)state;
	vxt_rm(root);
	return 0;
}

/* The verdict decides whether the other tests can run. */
static void need_sandbox(void)
{
	struct vx_pool_event e;

	assert_int_equal(vx_pool_arm(vxp_pool, 0, false), 0);
	assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
	assert_int_equal(e.kind, VX_POOL_ARMED);
	assert_int_equal(e.task, NO_TASK);
	if (e.done.end == VX_END_EXIT)
		return;
	assert_int_equal(e.done.end, VX_END_REFUSED);
	vxt_skip(e.done.text);
}

static void sandboxed_exits(void **state)
{
	struct vx_task_desc d = boxed("echo out; echo err >&2; ls /proc/self/fd; exit 6");
	struct vxp_result r;

	(void)state;
	need_sandbox();
	r = vxp_run(&d);
	assert_true(r.started);
	assert_int_equal(r.done.end, VX_END_EXIT);
	assert_int_equal(r.done.code, 6);
	assert_true(r.done.setup_ns > 0 && r.done.end_ns > r.done.start_ns);
	assert_string_equal(vx_buf_str(&r.out), "out\n0\n1\n2\n3\n");
	assert_string_equal(vx_buf_str(&r.err), "err\n");
	vxp_free(&r);
	/* What it left dies with its namespace, and the pipes with it. */
	d = boxed("setsid sleep 86127 & (sleep 86127 &) ; kill -KILL $$");
	r = vxp_run(&d);
	assert_int_equal(r.done.end, VX_END_SIGNAL);
	assert_int_equal(r.done.signal, SIGKILL);
	assert_int_equal(r.done.flags & VX_DONE_CUT_LEFTOVER, 0);
	assert_int_equal(vxp_alive("86127"), 0);
	vxp_free(&r);
}

static void sandboxed_time_limit_and_stop(void **state)
{
	struct vx_task_desc d =
		boxed("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep .01; done");
	struct vxp_result r = {0};
	struct vx_pool_event e = {0};

	(void)state;
	need_sandbox();
	d.grace_ms = VXT_HANG_MS;
	r = vxp_run_into_limit(&d);
	assert_int_equal(r.done.end, VX_END_TIMEOUT);
	assert_int_equal(r.done.code, 3);
	assert_string_equal(vx_buf_str(&r.out), "up\nbye\n");
	vxp_free(&r);
	d = boxed("trap '' TERM; echo up; sleep 86128");
	d.grace_ms = 100;
	r = vxp_run_into_limit(&d);
	assert_int_equal(r.done.end, VX_END_TIMEOUT);
	assert_int_equal(r.done.signal, SIGKILL);
	assert_int_equal(vxp_alive("86128"), 0);
	vxp_free(&r);
	d.timeout_ms = 0;
	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
	while (e.kind != VX_POOL_OUTPUT)
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
	vx_pool_stop(vxp_pool, 0, SIGTERM);
	vx_pool_stop(vxp_pool, 0, SIGKILL);
	vxp_finish(vxp_pool, 0, &r);
	assert_int_equal(r.done.end, VX_END_STOPPED);
	assert_int_equal(vxp_alive("86128"), 0);
	vxp_free(&r);
}

/* A stop that comes while the sandbox is being built counts. */
static void sandboxed_stop_before_the_start(void **state)
{
	struct vx_task_desc d = boxed("sleep 86129");
	struct vxp_result r = {0};

	(void)state;
	need_sandbox();
	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
	vx_pool_stop(vxp_pool, 0, SIGTERM);
	vxp_finish(vxp_pool, 0, &r);
	assert_int_equal(r.done.end, VX_END_STOPPED);
	assert_int_equal(vxp_alive("86129"), 0);
	vxp_free(&r);
}

/* Runs `d` until it prints something. */
static void run_until_up(const struct vx_task_desc *d)
{
	struct vx_pool_event e = {0};

	assert_int_equal(vx_pool_run(vxp_pool, 0, d, NULL), 0);
	while (e.kind != VX_POOL_OUTPUT)
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
}

static pid_t host_of(uint32_t worker)
{
	char path[64], host[32] = "";
	int fd;

	snprintf(path, sizeof path, "/proc/%u/task/%u/children", worker, worker);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(read(fd, host, sizeof host - 1) > 0);
	close(fd);
	return atoi(host);
}

/* Runs a task in a sandbox until it has said something, and sends a signal to its box host. Returns
 * the worker. */
static uint32_t signal_host(const struct vx_task_desc *d, int sig)
{
	uint32_t worker;

	need_sandbox();
	run_until_up(d);
	worker = vx_region_slot(&vxp_pool->region, 0)->worker_pid;
	assert_int_equal(kill(host_of(worker), sig), 0);
	return worker;
}

/* A box host that is stopped sees neither SIGKILL being asked for nor its worker's end. It is woken
 * for both. */
static void a_stopped_host_holds_up_nothing(void **state)
{
	struct vx_task_desc d = boxed("echo up; sleep 86133");
	struct vxp_result r = {0};
	uint32_t worker;

	(void)state;
	worker = signal_host(&d, SIGSTOP);
	assert_int_equal(vx_pool_stop(vxp_pool, 0, SIGKILL), 0);
	vxp_finish(vxp_pool, 0, &r);
	assert_int_equal(r.done.end, VX_END_STOPPED);
	assert_int_equal(vx_region_slot(&vxp_pool->region, 0)->worker_pid, worker);
	assert_int_equal(vxp_alive("86133"), 0);
	vxp_free(&r);
}

static void sandboxed_loses_its_host(void **state)
{
	struct vx_task_desc d = boxed("echo up; sleep 86130");
	struct vxp_result r = {0};
	uint32_t worker;

	(void)state;
	worker = signal_host(&d, SIGKILL);
	vxp_finish(vxp_pool, 0, &r);
	assert_true(r.lost);
	assert_int_equal(r.done.end, VX_END_LOST);
	vxp_free(&r);
	d = boxed("exit 4");
	r = vxp_run(&d);
	assert_int_equal(r.done.code, 4);
	assert_int_equal(vx_region_slot(&vxp_pool->region, 0)->worker_pid, worker);
	assert_int_equal(vxp_alive("86130"), 0);
	vxp_free(&r);
}

/* The limit holds for what the box host starts; the figures are those of the cgroup. */
static void sandboxed_memory_limit(void **state)
{
	struct vx_task_desc d = boxed("head -c 150m /dev/zero | tail -c 140m");
	struct vxp_result r;

	(void)state;
	need_sandbox();
	d.memory_bytes = 60 << 20;
	r = vxp_run(&d);
	if (r.done.flags & VX_DONE_NO_MEMORY_LIMIT) {
		vxp_free(&r);
		vxt_skip("no cgroup can be had here");
	}
	assert_int_equal(r.done.end, VX_END_OOM);
	assert_int_equal(r.done.flags & VX_DONE_PEAK_IS_TREE, VX_DONE_PEAK_IS_TREE);
	vxp_free(&r);
	d = boxed("exit 2");
	r = vxp_run(&d);
	assert_int_equal(r.done.code, 2);
	vxp_free(&r);
}

/* Beside a box host, an unsandboxed task's leftovers are still told apart from it. */
static void unsandboxed_beside_a_host(void **state)
{
	struct vxp_result r;

	(void)state;
	need_sandbox();
	r = vxp_run_sh("setsid sleep 86131 & (sleep 86131 &); exit 8");
	assert_int_equal(r.done.code, 8);
	assert_int_equal(vxp_alive("86131"), 0);
	vxp_free(&r);
	need_sandbox(); /* the host is still there */
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(sandboxed_exits, make_root, drop_root),
		cmocka_unit_test_setup_teardown(
			sandboxed_time_limit_and_stop, make_root, drop_root),
		cmocka_unit_test_setup_teardown(
			sandboxed_stop_before_the_start, make_root, drop_root),
		cmocka_unit_test_setup_teardown(
			a_stopped_host_holds_up_nothing, make_root, drop_root),
		cmocka_unit_test_setup_teardown(sandboxed_loses_its_host, make_root, drop_root),
		cmocka_unit_test_setup_teardown(sandboxed_memory_limit, make_root, drop_root),
		cmocka_unit_test_setup_teardown(unsandboxed_beside_a_host, make_root, drop_root),
	};

	vxp_main(argc, argv);
	vxp_slots = 1;
	return cmocka_run_group_tests_name("pool, sandboxed", tests, vxp_set_up, vxp_tear_down);
}
