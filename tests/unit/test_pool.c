/* The pool with real fork servers and workers: what a task sees, what is reported, and how attempts
 * end. */
#include "vxtest.h"
#include "vxpool.h"

#include "../../sched/loop/pool_internal.h"

#include "vx/limits.h"

#include <time.h>

#define SH(text) ((const char *const[]){"/bin/sh", "-c", text, NULL})
#ifdef __SANITIZE_ADDRESS__
#define EXTRA_MIB 200 /* what a program has without doing anything */
#else
#define EXTRA_MIB 16
#endif
#define ARGV(...) ((const char *const[]){__VA_ARGS__, NULL})

static void exits_and_signals(void **state)
{
	struct vxp_result r = vxp_run_sh("exit 7");

	(void)state;
	assert_true(r.started);
	assert_int_equal(r.done.end, VX_END_EXIT);
	assert_int_equal(r.done.code, 7);
	assert_true(r.done.end_ns >= r.done.start_ns && r.done.start_ns == r.start.start_ns &&
		    r.done.start_ns > 0);
	vxp_free(&r);
	r = vxp_run_sh("kill -KILL $$");
	assert_int_equal(r.done.end, VX_END_SIGNAL);
	assert_int_equal(r.done.signal, SIGKILL);
	vxp_free(&r);
	r = vxp_run_sh(":");
	assert_int_equal(r.done.end, VX_END_EXIT);
	assert_int_equal(r.done.code, 0);
	assert_int_equal(r.both.len, 0);
	vxp_free(&r);
}

static void what_a_task_sees(void **state)
{
	struct vx_task_desc d = vxp_desc(1, ARGV("env"));
	struct vxp_result r;

	(void)state;
	d.env = (struct vx_strs){ARGV("PATH=/usr/bin:/bin", "A=1 2", "EMPTY=", "NL=x\ny"), 4};
	r = vxp_run(&d);
	assert_string_equal(vx_buf_str(&r.out), "PATH=/usr/bin:/bin\nA=1 2\nEMPTY=\nNL=x\ny\n");
	vxp_free(&r);

	d = vxp_desc(1,
		SH("pwd; ls /proc/$$/fd; readlink /proc/$$/fd/0; cat; grep -E '^Sig(Blk|Ign)' /proc/self/status; "
		   "read -r pid x y z group session rest </proc/self/stat; test $session = $$ && test $group = $$ && echo leads"));
	d.cwd = "/usr/bin";
	r = vxp_run(&d);
	assert_string_equal(vx_buf_str(&r.out),
		"/usr/bin\n0\n1\n2\n/dev/null\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\nleads\n");
	assert_string_equal(vx_buf_str(&r.err), "");
	vxp_free(&r);
}

static void both_streams_in_order(void **state)
{
	/* Each waits until the worker has read what was written before. */
	const char *argv[] = {"/bin/sh", "-c",
		"cd $0; echo 1; read x <go; echo 2 >&2; read x <go; echo 3; read x <go; printf 'a\\0b' >&2",
		NULL, NULL};
	char *dir = vxt_tmpdir();
	struct vxp_result r = {0};
	struct vx_pool_event e;

	(void)state;
	argv[3] = dir;
	struct vx_task_desc d = vxp_desc(1, argv);
	assert_int_equal(mkfifo(vxt_path(dir, "go"), 0600), 0);
	int go = open(vxt_path(dir, "go"), O_RDWR | O_CLOEXEC);
	assert_true(go >= 0);
	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
	for (int said = 0; said < 3;) {
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
		vxp_take(&r, &e);
		if (e.kind == VX_POOL_OUTPUT && ++said)
			assert_int_equal(write(go, "\n", 1), 1);
	}
	vxp_finish(vxp_pool, 0, &r);
	close(go);
	vxt_rm(dir);
	assert_string_equal(vx_buf_str(&r.out), "1\n3\n");
	assert_int_equal(r.err.len, 5);
	assert_memory_equal(r.err.data, "2\na\0b", 5);
	assert_memory_equal(r.both.data, "1\n2\n3\na\0b", 9);
	vxp_free(&r);
}

static void a_lot_of_output(void **state)
{
	struct vx_task_desc d = vxp_desc(1, ARGV("/proc/self/exe", "-print", "8388608"));
	struct vxp_result r;
	char exe[4096];

	(void)state;
	assert_true(vx_readlink(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) > 0);
	d.argv.v = ARGV(exe, "-print", "8388608");
	r = vxp_run(&d);
	assert_int_equal(r.out.len, 8388608);
	for (size_t i = 0; i < r.out.len; i++)
		if ((unsigned char)r.out.data[i] != (unsigned char)(i * 7 + (i >> 12)))
			fail_msg("byte %zu", i);
	vxp_free(&r);
}

/* Nobody takes the output: the worker must go on reading its requests, and must not lose anything
 * when the reader comes. */
static void a_full_ring_stops_the_command_not_the_worker(void **state)
{
	struct vx_task_desc d = vxp_desc(1, SH("echo first; exec cat /dev/zero"));
	struct vxp_result r = {0};
	const struct vx_bring *ring;
	uint64_t used;

	(void)state;
	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
	ring = vx_slot_output(vx_region_slot(&vxp_pool->region, 0));
	vxt_wait_for((used = vx_bring_used(ring)) > VX_OUT_BYTES - 40000);
	assert_int_equal(vx_pool_stop(vxp_pool, 0, SIGTERM), 0);
	vxt_wait_for(vxp_alive("/dev/zero") == 0);
	vxp_finish(vxp_pool, 0, &r);
	assert_int_equal(r.done.end, VX_END_STOPPED);
	assert_int_equal(r.done.signal, SIGTERM);
	assert_true(r.out.len > used);
	assert_memory_equal(r.out.data, "first\n", 6);
	vxp_free(&r);
}

static void time_limits(void **state)
{
	struct vx_task_desc d = vxp_desc(
		1, SH("trap 'echo bye; exit 3' TERM; echo up; while :; do sleep .01; done"));
	struct vxp_result r;

	(void)state;
	d.grace_ms = VXT_HANG_MS;
	r = vxp_run_into_limit(&d);
	assert_int_equal(r.done.end, VX_END_TIMEOUT);
	assert_int_equal(r.done.code, 3);
	assert_string_equal(vx_buf_str(&r.out), "up\nbye\n");
	vxp_free(&r);

	/* The whole tree hears of it, and the whole tree goes: here the shell and a child ignore
	 * it. */
	d.argv.v = SH("trap '' TERM; setsid sleep 86123 & echo up; sleep 86123");
	d.grace_ms = 100;
	r = vxp_run_into_limit(&d);
	assert_int_equal(r.done.end, VX_END_TIMEOUT);
	assert_int_equal(r.done.signal, SIGKILL);
	assert_true(r.done.end_ns - r.done.start_ns > 240000000ULL);
	assert_int_equal(vxp_alive("86123"), 0);
	vxp_free(&r);

	/* The shell goes at once; what it ran still has the grace for itself. */
	d.argv.v = SH(
		"(trap 'sleep .1; echo cleaned up; exit' TERM; echo ready; while :; do sleep .01; done) & wait");
	d.grace_ms = VXT_HANG_MS;
	r = vxp_run_into_limit(&d);
	assert_int_equal(r.done.end, VX_END_TIMEOUT);
	assert_string_equal(vx_buf_str(&r.out), "ready\ncleaned up\n");
	vxp_free(&r);
}

static void stops(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGKILL};
	struct vx_task_desc d =
		vxp_desc(1, SH("trap 'exit 9' INT TERM; echo ready; while :; do sleep .01; done"));

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct vxp_result r = {0};
		struct vx_pool_event e = {0};

		assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
		while (e.kind != VX_POOL_OUTPUT)
			assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
		assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), -EBUSY);
		assert_int_equal(vx_pool_stop(vxp_pool, 0, signals[i]), 0);
		vxp_finish(vxp_pool, 0, &r);
		assert_int_equal(r.done.end, VX_END_STOPPED);
		if (signals[i] == SIGKILL)
			assert_int_equal(r.done.signal, SIGKILL);
		else
			assert_int_equal(r.done.code, 9);
		vxp_free(&r);
	}
	assert_int_equal(vx_pool_stop(vxp_pool, 0, SIGTERM), 0); /* free: nothing happens */
}

/* A worker that is stopped hears of nothing, nor does a fork server. SIGKILL is the end of the task
 * all the same. */
static void stopped_workers_do_not_hold_up_a_stop(void **state)
{
	struct vx_task_desc d = vxp_desc(1, SH("setsid sleep 86132 & echo ready; sleep 86132"));
	struct vx_pool *p = vxp_start(2);

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct vxp_result r = {0};
		struct vx_pool_event e = {0};

		assert_int_equal(vx_pool_run(p, 1, &d, NULL), 0);
		while (e.kind != VX_POOL_OUTPUT)
			assert_int_equal(vxp_event(p, &e, VXT_HANG_MS), 1);
		if (i == 1)
			assert_int_equal(kill(p->server_pid, SIGSTOP), 0);
		assert_int_equal(
			kill((pid_t)vx_region_slot(&p->region, 1)->worker_pid, SIGSTOP), 0);
		assert_int_equal(vx_pool_stop(p, 1, SIGTERM), 0);
		assert_int_equal(vxp_event(p, &e, 100), 0);
		assert_int_equal(vx_pool_stop(p, 1, SIGKILL), 0);
		vxp_finish(p, 1, &r);
		assert_false(r.lost);
		assert_int_equal(r.done.end, VX_END_STOPPED);
		assert_int_equal(r.done.signal, SIGKILL);
		assert_int_equal(vxp_alive("86132"), 0);
		vxp_free(&r);
	}
	d.argv.v = SH("exit 4");
	assert_int_equal(vx_pool_run(p, 1, &d, NULL), 0);
	struct vxp_result r = {0};
	vxp_finish(p, 1, &r);
	assert_int_equal(r.done.code, 4);
	vxp_free(&r);
	vx_pool_end(p);
}

static void leftovers_go_with_the_command(void **state)
{
	struct vxp_result r = vxp_run_sh(
		"sleep 86124 & setsid sleep 86124 & (setsid sh -c 'trap \"\" TERM HUP; sleep 86124 & sleep 86124' &) ; "
		"(sleep 86124 &) & (exec setsid -f sleep 86124); echo done");

	(void)state;
	assert_int_equal(r.done.end, VX_END_EXIT);
	assert_int_equal(r.done.flags & VX_DONE_CUT_LEFTOVER, 0);
	assert_string_equal(vx_buf_str(&r.out), "done\n");
	assert_int_equal(vxp_alive("86124"), 0);
	vxp_free(&r);
}

/* Runs a command whose pipe is held open here, and writes to the pipe once it has gone. False: that
 * was after the time for it. */
static bool written_in_time(struct vxp_result *ret)
{
	struct vx_task_desc d = vxp_desc(1, SH("echo $$; kill -STOP $$; echo last"));
	struct vx_pool_event e = {0};
	char path[64];
	uint64_t written;
	int fd, pid;

	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
	while (e.kind != VX_POOL_OUTPUT)
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
	pid = atoi(e.bytes);
	snprintf(path, sizeof path, "/proc/%d/fd/1", pid);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	/* again and again: it may not have stopped yet */
	vxt_wait_for(kill(pid, SIGCONT) < 0);
	bool late = write(fd, "late\n", 5) != 5;
	written = vx_now_ns();
	vxp_finish(vxp_pool, 0, ret);
	close(fd);
	late = late || written >= ret->done.end_ns + VX_LEFTOVER_READ_MS * 1000000ULL;
	return !late;
}

/* Somebody outside the tree has the pipe open: what was written is there, later writes within the
 * time too, then it is cut and said. */
static void a_pipe_held_open_is_cut(void **state)
{
	void (*old)(int) = signal(SIGPIPE, SIG_IGN);
	struct vxp_result r = {0};

	(void)state;
	while (!written_in_time(&r))
		vxp_free(&r);
	signal(SIGPIPE, old);
	assert_true(vx_now_ns() - r.done.end_ns > 200000000ULL);
	assert_int_equal(r.done.flags & VX_DONE_CUT_LEFTOVER, VX_DONE_CUT_LEFTOVER);
	assert_int_equal(r.done.end, VX_END_EXIT);
	assert_string_equal(vx_buf_str(&r.out), "last\nlate\n");
	vxp_free(&r);
}

static void what_cannot_be_started(void **state)
{
	static const struct {
		const char *argv0, *cwd, *says;
	} cases[] = {
		{"/bin/true", "/no/such/dir", "chdir: cwd does not exist: /no/such/dir"},
		{"/bin/true", "/etc/passwd", "chdir: cannot enter /etc/passwd: Not a directory"},
		{"/etc/passwd", "/", "exec: /etc/passwd is not executable"},
		{"/no/such/program", "/", "exec: /no/such/program does not exist"},
		{"no-such-program", "/", "exec: no-such-program is not found on the task's PATH"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct vx_task_desc d = vxp_desc(1, ARGV(cases[i].argv0));
		struct vxp_result r;

		d.cwd = cases[i].cwd;
		r = vxp_run(&d);
		assert_false(r.started);
		assert_int_equal(r.done.end, VX_END_SPAWN);
		assert_string_equal(r.done.text, cases[i].says);
		vxp_free(&r);
	}
}

static void scripts_that_cannot_be_started(void **state)
{
	char *dir = vxt_tmpdir();
	struct vx_task_desc d = vxp_desc(1, ARGV("./a"));
	struct vxp_result r;

	(void)state;
	vxt_write(dir, "a", "#!/no/such/interpreter\n");
	vxt_write(dir, "b", "no program");
	assert_int_equal(chmod(vxt_path(dir, "a"), 0755), 0);
	assert_int_equal(chmod(vxt_path(dir, "b"), 0755), 0);
	d.cwd = dir;
	r = vxp_run(&d);
	assert_non_null(strstr(r.done.text, "interpreter in its #! line"));
	vxp_free(&r);
	/* A relative entry of PATH is the task's, not ours. */
	d.argv.v = ARGV("b");
	d.env = (struct vx_strs){ARGV("PATH=."), 1};
	r = vxp_run(&d);
	assert_non_null(strstr(r.done.text, "b is not a program and has no #! line"));
	vxp_free(&r);
	vxt_rm(dir);
}

static void a_persistent_task_keeps_its_stdin(void **state)
{
	struct vx_task_desc d = vxp_desc(5, SH("echo up; cat; echo stdin ended"));
	struct vxp_result r = {0};
	struct vx_pool_event e;

	(void)state;
	d.persistent = true;
	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, NULL), 0);
	assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
	assert_int_equal(e.kind, VX_POOL_STARTED);
	assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
	assert_int_equal(e.kind, VX_POOL_OUTPUT);
	assert_int_equal(vxp_event(vxp_pool, &e, 300), 0);
	vx_pool_stop(vxp_pool, 0, SIGTERM);
	vxp_finish(vxp_pool, 0, &r);
	assert_int_equal(r.done.end, VX_END_STOPPED);
	assert_int_equal(r.both.len, 0);
	vxp_free(&r);
}

static void what_it_used(void **state)
{
	char exe[4096];
	struct vx_task_desc d = vxp_desc(1, SH(":"));
	struct vxp_result r;

	(void)state;
	assert_true(vx_readlink(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) > 0);
	d.argv = (struct vx_strs){ARGV(exe, "-use", "48", "120"), 4}; /* MiB, ms */
	r = vxp_run(&d);
	assert_int_equal(r.done.code, 0);
	assert_true(r.done.peak_bytes > 48 << 20 && r.done.peak_bytes < (48 + EXTRA_MIB) << 20);
	assert_int_equal(r.done.flags & VX_DONE_PEAK_IS_TREE, 0);
	assert_true(r.done.cpu_ns >= 115000000 && r.done.cpu_ns < 10000000000);
	vxp_free(&r);
	/* Grandchildren that a subshell waited for, and orphans that only we reap. */
	d.argv = (struct vx_strs){
		ARGV("/bin/sh", "-c", "($1 -use 8 60); ($1 -use 8 60 &) | cat", "-", exe), 5};
	r = vxp_run(&d);
	assert_true(r.done.cpu_ns >= 116000000 && r.done.cpu_ns < 10000000000);
	vxp_free(&r);
}

static void memory_limit(void **state)
{
	char exe[4096];
	struct vx_task_desc d = vxp_desc(1, SH(":"));
	struct vxp_result r;

	(void)state;
	assert_true(vx_readlink(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) > 0);
	d.argv = (struct vx_strs){ARGV(exe, "-use", "100", "0"), 4};
	d.memory_bytes = 40 << 20;
	r = vxp_run(&d);
	if (r.done.flags & VX_DONE_NO_MEMORY_LIMIT) {
		assert_int_equal(r.done.end, VX_END_EXIT);
		vxp_free(&r);
		vxt_skip("no cgroup can be had here");
	}
	assert_int_equal(r.done.end, VX_END_OOM);
	assert_int_equal(r.done.flags & VX_DONE_PEAK_IS_TREE, VX_DONE_PEAK_IS_TREE);
	assert_true(r.done.peak_bytes > 20 << 20 && r.done.peak_bytes <= 40 << 20);
	vxp_free(&r);
	d.memory_bytes = 300 << 20;
	r = vxp_run(&d);
	assert_int_equal(r.done.end, VX_END_EXIT);
	assert_true(r.done.peak_bytes > 100 << 20 && r.done.peak_bytes < 200 << 20);
	vxp_free(&r);
}

/* What a run that was killed has left among the cgroups goes when the next one needs a limit; what
 * a live one has stays. */
static void dead_runs_cgroups_are_swept(void **state)
{
	struct vx_task_desc d = vxp_desc(1, SH(":"));
	struct vxp_result r;
	const char *own;
	char base[600], dead[700], inner[760], live[700];

	(void)state;
	vxt_sh("sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup | tr -d '\\n'", &own);
	snprintf(base, sizeof base, "/sys/fs/cgroup/memory%s", own);
	if (access(base, F_OK) < 0)
		snprintf(base, sizeof base, "/sys/fs/cgroup/memory");
	snprintf(dead, sizeof dead, "%s/vx.99999999", base); /* above any pid */
	snprintf(inner, sizeof inner, "%s/0", dead);
	snprintf(live, sizeof live, "%s/vx.%d", base, getpid());
	if (own[0] == 0 || mkdir(dead, 0755) < 0 || mkdir(inner, 0755) < 0 || mkdir(live, 0755) < 0)
		vxt_skip("no cgroup can be made here");
	vx_pool_end(vxp_pool); /* a worker sweeps once */
	vxp_pool = vxp_start(3);
	d.memory_bytes = 100 << 20;
	r = vxp_run(&d);
	assert_int_equal(r.done.flags & VX_DONE_NO_MEMORY_LIMIT, 0);
	assert_int_equal(access(inner, F_OK), -1);
	assert_int_equal(access(dead, F_OK), -1);
	assert_int_equal(rmdir(live), 0);
	vxp_free(&r);
}

static void one_too_large_is_refused(void **state)
{
	struct vx_task_desc d = vxp_desc(1, SH(":"));
	char *big = malloc(VX_MAX_DESC_BYTES + 1);
	struct vx_err err = {0};
	struct vxp_result r;

	(void)state;
	memset(big, 'x', VX_MAX_DESC_BYTES);
	big[VX_MAX_DESC_BYTES] = 0;
	d.argv.v = ARGV("/bin/sh", "-c", big);
	assert_int_equal(vx_pool_run(vxp_pool, 0, &d, &err), -E2BIG);
	assert_non_null(strstr(err.what, "p#t"));
	/* One that fits the limit and not the system's own (MAX_ARG_STRLEN) fails when it is
	 * started. */
	big[VX_MAX_DESC_BYTES - 1000] = 0;
	r = vxp_run(&d);
	assert_int_equal(r.done.end, VX_END_SPAWN);
	assert_non_null(strstr(r.done.text, "longer than the system allows"));
	vxp_free(&r);
	free(big);
	r = vxp_run_sh("exit 2");
	assert_int_equal(r.done.code, 2);
	vxp_free(&r);
}

/* A worker that writes nonsense is killed, its task lost, and the slot goes on with another. */
static void nonsense_in_shared_memory(void **state)
{
	struct vx_task_desc d = vxp_desc(1, SH("sleep 86125"));
	struct vxp_result r = {0};
	struct vx_pool_event e;

	(void)state;
	for (int which = 0; which < 7; which++) {
		struct vx_slot *s = vx_region_slot(&vxp_pool->region, 1);

		assert_int_equal(vx_pool_run(vxp_pool, 1, &d, NULL), 0);
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
		assert_int_equal(e.kind, VX_POOL_STARTED);
		if (which == 0) {
			vx_slot_dones(s)->tail += 100;
		} else if (which == 1) {
			vx_slot_output(s)->tail += 1 << 30;
		} else if (which == 2) {
			struct vx_done lie = {.kind = VX_DONE_EXITED, .task = 77};

			assert_int_equal(vx_ring_push(vx_slot_dones(s), &lie), 0);
		} else if (which ==
			   /* sizes that only their creator writes: they would lead a reader out of
			    * the ring, and out of what it reads into */
			   3) {
			vx_slot_dones(s)->item_bytes = 16 << 20;
			vx_slot_dones(s)->tail++;
		} else if (which == 4) {
			vx_slot_dones(s)->mask = UINT32_MAX;
			vx_slot_dones(s)->head += 1 << 24;
			vx_slot_dones(s)->tail += (1 << 24) + 1;
		} else if (which == 5) {
			vx_slot_output(s)->bytes = 1U << 31;
			vx_slot_output(s)->head += 1 << 30;
			vx_slot_output(s)->tail += (1 << 30) + 64;
		} else {
			vx_slot_requests(s)->mask = UINT32_MAX;
			vx_slot_requests(s)->head += 1 << 30;
			vx_slot_requests(s)->tail += 1 << 30;
		}
		vx_pool_stop(vxp_pool, 1, SIGCONT); /* the worker has no reason to wake us */
		assert_int_equal(vx_pool_next(vxp_pool, &e), 0);
		vxp_finish(vxp_pool, 1, &r);
		assert_true(r.lost);
		assert_int_equal(r.done.end, VX_END_LOST);
		assert_non_null(strstr(r.done.text, "nonsense"));
		assert_int_equal(vxp_alive("86125"), 0);
		vxp_free(&r);
	}
}

static void many_slots_at_once(void **state)
{
	struct vx_task_desc d = vxp_desc(0, SH("echo $A; sleep .05"));
	int over = 0, got = 0;
	struct vx_pool_event e;
	char a[16];

	(void)state;
	d.env.v = ARGV("PATH=/usr/bin:/bin", a);
	for (uint32_t i = 0; i < 3; i++) {
		d.task = 10 + i;
		snprintf(a, sizeof a, "A=%u", i);
		assert_int_equal(vx_pool_run(vxp_pool, i, &d, NULL), 0);
	}
	while (over < 3) {
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
		assert_int_equal(e.task, 10 + e.slot);
		if (e.kind == VX_POOL_OUTPUT) {
			assert_int_equal(e.length, 2);
			assert_int_equal(*(const char *)e.bytes, '0' + e.slot);
			got++;
		}
		over += e.kind == VX_POOL_EXITED;
	}
	assert_int_equal(got, 3);
}

/* One that writes without end does not keep the others from being heard. */
static void an_endless_writer_starves_nobody(void **state)
{
	struct vx_task_desc loud = vxp_desc(1, ARGV("cat", "/dev/zero")),
			    quiet = vxp_desc(2, SH("exit 3"));
	struct vx_pool_event e = {0};
	uint64_t end = vx_now_ns() + VXT_HANG_S * 1000000000ULL;

	(void)state;
	assert_int_equal(vx_pool_run(vxp_pool, 0, &loud, NULL), 0);
	for (int done = 0; done < 20;) {
		if (e.kind == 0 || e.kind == VX_POOL_EXITED)
			assert_int_equal(vx_pool_run(vxp_pool, 1, &quiet, NULL), 0);
		do {
			if (vx_now_ns() > end)
				fail_msg("only %d of 20 were heard", done);
			assert_true(vxp_event(vxp_pool, &e, VXT_HANG_MS) == 1);
		} while (e.kind != VX_POOL_EXITED);
		assert_int_equal(e.slot, 1);
		done++;
	}
	vx_pool_stop(vxp_pool, 0, SIGKILL);
	do
		assert_int_equal(vxp_event(vxp_pool, &e, VXT_HANG_MS), 1);
	while (e.kind != VX_POOL_EXITED);
	assert_int_equal(e.slot, 0);
}

/* ---- what the tasks run ---- */

static int use(int mib, int ms)
{
	size_t n = (size_t)mib << 20;
	char *p = malloc(n + 1);
	clock_t end;

	for (size_t i = 0; i < n; i += 4096)
		*(volatile char *)(p + i) = (char)i;
	end = clock() + (clock_t)ms * CLOCKS_PER_SEC / 1000;
	while (clock() < end)
		;
	free(p);
	return 0;
}

static int print(size_t n)
{
	char buf[4099];
	size_t at = 0, k;

	while (at < n) {
		for (k = 0; k < sizeof buf && at < n; k++, at++)
			buf[k] = (char)(at * 7 + (at >> 12));
		if (vx_write_full(1, buf, k) < 0)
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(exits_and_signals),
		cmocka_unit_test(what_a_task_sees),
		cmocka_unit_test(both_streams_in_order),
		cmocka_unit_test(a_lot_of_output),
		cmocka_unit_test(a_full_ring_stops_the_command_not_the_worker),
		cmocka_unit_test(time_limits),
		cmocka_unit_test(stops),
		cmocka_unit_test(stopped_workers_do_not_hold_up_a_stop),
		cmocka_unit_test(leftovers_go_with_the_command),
		cmocka_unit_test(a_pipe_held_open_is_cut),
		cmocka_unit_test(what_cannot_be_started),
		cmocka_unit_test(scripts_that_cannot_be_started),
		cmocka_unit_test(a_persistent_task_keeps_its_stdin),
		cmocka_unit_test(what_it_used),
		cmocka_unit_test(memory_limit),
		cmocka_unit_test(dead_runs_cgroups_are_swept),
		cmocka_unit_test(one_too_large_is_refused),
		cmocka_unit_test(nonsense_in_shared_memory),
		cmocka_unit_test(many_slots_at_once),
		cmocka_unit_test(an_endless_writer_starves_nobody),
	};

	vxp_main(argc, argv);
	if (argc > 3 && strcmp(argv[1], "-use") == 0)
		return use(atoi(argv[2]), atoi(argv[3]));
	if (argc > 2 && strcmp(argv[1], "-print") == 0)
		return print(strtoul(argv[2], NULL, 10));
	return cmocka_run_group_tests_name("pool", tests, vxp_set_up, vxp_tear_down);
}
