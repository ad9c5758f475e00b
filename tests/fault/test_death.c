/* SIGKILL of scheduler, fork server, worker, and of every pair of them: nothing that was started
 * stays alive, and a scheduler that survives says what was lost and goes on. The program is its own
 * scheduler (-driver) and fork server. */
#include "vxtest.h"
#include "../unit/vxpool.h"

#include "../../sched/loop/pool_internal.h"

#include "vx/proctree.h"
#include "vx/spawn.h"

#include <pthread.h>
#include <time.h>

#ifndef TRIALS
#define TRIALS 5
#endif

enum { SCHEDULER = 1, FORK_SERVER = 2, WORKER = 4 };

/* Everything that is hard to end, each with the argument $0 in its own name: a daemon in its own
 * session, a double fork, one that ignores signals, one that keeps making daemons, and one whose
 * every generation starts the next and exits. */
static const char nasty[] =
	"trap '' TERM INT HUP\n"
	"setsid sleep $0 &\n"
	"(setsid sh -c 'trap \"\" TERM HUP INT; sleep $0 & sleep $0; :' $0 &) &\n"
	"(sleep $0 &) &\n"
	"(while :; do (setsid sleep $0 &); sleep .02; done) &\n"
	"G='(setsid sh -c \"$G\" $0 &); :'; export G; setsid sh -c \"$G\" $0\n"
	"sleep .03; echo up; sleep $0; sleep $0\n";

static void pause_ms(int ms)
{
	nanosleep(&(struct timespec){ms / 1000, (ms % 1000) * 1000000L}, NULL);
}

/* ---- the scheduler under test ---- */

struct driver {
	struct vx_pool *pool;
	const char *tags[2];
	uint32_t slots[2];
};

static int driver_run(struct driver *d, int i, bool again)
{
	const char *argv[] = {"/bin/sh", "-c", again ? "exit 5" : nasty, d->tags[i], NULL};
	struct vx_task_desc t = vxp_desc((uint32_t)i, argv);
	const char *root = getenv("VXD_BOXED");
	char record[4200];

	if (root != NULL && !again) {
		snprintf(record, sizeof record, "%s/.vx/sweep", root);
		t.sandboxed = true;
		t.cwd = root;
		t.sandbox = (struct vx_sbx_spec){
			.root = root, .project_dir = ".", .home = "", .record_dir = record};
	}

	t.attempt = again;
	return vx_pool_run(d->pool, d->slots[i], &t, NULL);
}

static void driver_event(struct driver *d, const struct vx_pool_event *e, int *ups)
{
	if (e->kind == VX_POOL_OUTPUT && e->attempt == 0 && ++*ups == 2)
		printf("ready %d %u %u\n", (int)d->pool->server_pid,
			vx_region_slot(&d->pool->region, d->slots[0])->worker_pid,
			vx_region_slot(&d->pool->region, d->slots[1])->worker_pid);
	if (e->kind == VX_POOL_LOST) {
		printf("lost %u %s\n", e->task, e->done.text);
		if (driver_run(d, (int)e->task, true) < 0)
			printf("broken\n");
	}
	if (e->kind == VX_POOL_EXITED)
		printf("exited %u %d\n", e->task, e->done.code);
}

static int driver(char **argv)
{
	enum { SLOTS = 300 };
	/* The path of bwrap is a name for our processes; for sandboxed tasks it must be one that
	 * can be run. */
	struct vx_pool_opts o = {
		.slots = SLOTS, .bwrap_path = argv[2], .init_path = vxp_init_path()};
	struct driver d = {
		.tags = {getenv("VXD_TAG0"), getenv("VXD_TAG1")}, .slots = {0, SLOTS - 1}};
	struct vx_pool_event e;
	int ups = 0, r;

	setvbuf(stdout, NULL, _IOLBF, 0);
	if (vx_pool_start(&o, &d.pool, NULL) < 0 || driver_run(&d, 0, false) < 0 ||
		driver_run(&d, 1, false) < 0)
		return 1;
	for (;;) {
		struct pollfd p[2] = {{vx_pool_fd(d.pool), POLLIN, 0}, {0, POLLIN, 0}};

		while ((r = vx_pool_next(d.pool, &e)) == 1)
			driver_event(&d, &e, &ups);
		if (r < 0) {
			printf("broken\n");
			return 0;
		}
		poll(p, 2, -1);
		if (p[1].revents != 0)
			break;
	}
	vx_pool_end(d.pool);
	printf("ended\n");
	return 0;
}

/* ---- the test's side ---- */

struct trial {
	char ours[300], tags[2][16]; /* arguments that only this trial's processes have */
	pid_t pids[3];               /* scheduler, fork server, first worker */
	pid_t other_worker;
	int in;
	FILE *out;
	int killed;
};

static char *boxed_root; /* not NULL: the tasks are sandboxed, in this workspace */
static char bwrap[VX_MAX_PATH];

static int clean(void **state)
{
	(void)state;
	vxp_end_all();
	if (boxed_root != NULL)
		vxt_rm(boxed_root);
	boxed_root = NULL;
	return 0;
}

static void begin(struct trial *t)
{
	static uint32_t number;
	int in[2], out[2];
	char exe[4096], line[256];

	number++;
	snprintf(t->ours, sizeof t->ours, "%s/bwrap.%d.%u", boxed_root != NULL ? boxed_root : "/no",
		getpid(), number);
	if (boxed_root != NULL)
		if (symlink(bwrap, t->ours) < 0)
			fail_msg("%s: %s", t->ours, vx_strerror(errno));
	for (int i = 0; i < 2; i++)
		snprintf(t->tags[i], sizeof t->tags[i], "%d.%u%d", 86400 + getpid(), number, i + 1);
	assert_true(vx_readlink(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) > 0);
	assert_int_equal(vx_pipe(in), 0);
	assert_int_equal(vx_pipe(out), 0);
	t->pids[0] = fork();
	assert_true(t->pids[0] >= 0);
	if (t->pids[0] == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		/* not as arguments: the scheduler is no part of its tasks */
		setenv("VXD_TAG0", t->tags[0], 1);
		setenv("VXD_TAG1", t->tags[1], 1);
		if (boxed_root != NULL)
			setenv("VXD_BOXED", boxed_root, 1);
		execl(exe, "driver", "-driver", t->ours, (char *)NULL);
		_exit(99);
	}
	close(in[0]);
	close(out[1]);
	t->in = in[1];
	t->out = fdopen(out[0], "re");
	assert_non_null(fgets(line, sizeof line, t->out));
	if (sscanf(line, "ready %d %d %d", &t->pids[1], &t->pids[2], &t->other_worker) != 3)
		fail_msg("driver says: %s", line);
	vxt_wait_for(vxp_alive(t->tags[0]) >= 4 && vxp_alive(t->tags[1]) >= 4);
}

/* Seen none in several looks one after the other: one look alone may fall between two generations
 * of something that goes on. */
static void gone(const char *word, const char *what)
{
	uint64_t end = vx_now_ns() + VXT_HANG_S * 1000000000ULL;

	for (int quiet = 0; quiet < 4;) {
		int n = vxp_alive(word);

		quiet = n == 0 ? quiet + 1 : 0;
		if (vx_now_ns() > end && quiet == 0)
			fail_msg("%d processes of %s are alive after %d s", n, what, VXT_HANG_S);
		pause_ms(3);
	}
}

/* The test is a subreaper: what gets away from all of the driver's processes becomes its child,
 * under whatever name. */
static void nothing_is_below_us(void)
{
	uint64_t end = vx_now_ns() + VXT_HANG_S * 1000000000ULL;
	pid_t pid;

	while ((pid = waitpid(-1, NULL, WNOHANG)) >= 0) {
		if (pid == 0 && vx_now_ns() > end)
			fail_msg("something is still alive below the test");
		if (pid == 0)
			pause_ms(3);
	}
	assert_int_equal(errno, ECHILD);
}

/* Reads what the driver prints until all of the wanted lines have come, in any order. */
static void expect(struct trial *t, const char *const *lines)
{
	uint32_t seen = 0, all = 0;
	char line[256];

	for (int i = 0; lines[i] != NULL; i++)
		all |= 1U << i;
	while (seen != all) {
		if (fgets(line, sizeof line, t->out) == NULL)
			fail_msg("the driver ended early");
		line[strcspn(line, "\n")] = 0;
		for (int i = 0; lines[i] != NULL; i++)
			if (strcmp(line, lines[i]) == 0)
				seen |= 1U << i;
	}
}

static void finish(struct trial *t)
{
	int status;

	if (!(t->killed & SCHEDULER))
		assert_int_equal(write(t->in, "\n", 1), 1);
	assert_int_equal(waitpid(t->pids[0], &status, 0), t->pids[0]);
	if (!(t->killed & SCHEDULER)) {
		assert_int_equal(status, 0);
		expect(t, (const char *const[]){"ended", NULL});
		/* The end of the pool waits for everything. */
		assert_int_equal(
			vxp_alive(t->tags[0]) + vxp_alive(t->tags[1]) + vxp_alive(t->ours), 0);
	}
	close(t->in);
	fclose(t->out);
	nothing_is_below_us();
}

static void kill_and_check(int set)
{
	struct trial t = {.killed = set};

	begin(&t);
	for (int i = 0; i < 3; i++)
		if (set & 1 << i && kill(t.pids[i], SIGKILL) < 0)
			/* it has seen the one before it die, and was quick */
			assert_int_equal(errno, ESRCH);
	if (set & SCHEDULER) {
		gone(t.tags[0], "the first task");
		gone(t.tags[1], "the second task");
		gone(t.ours, "ours");
	} else if (set & FORK_SERVER) {
		gone(t.tags[0], "the first task");
		gone(t.tags[1], "the second task");
		expect(&t,
			(const char *const[]){"lost 0 the fork server died",
				"lost 1 the fork server died", "exited 0 5", "exited 1 5", NULL});
	} else {
		gone(t.tags[0], "the first task");
		expect(&t, (const char *const[]){
				   "lost 0 its worker was killed by SIGKILL", "exited 0 5", NULL});
		vxt_wait_for(vxp_alive(t.tags[1]) >= 4); /* the other worker's task goes on */
		assert_int_equal(kill(t.other_worker, 0), 0);
	}
	finish(&t);
}

static void trials(int set)
{
	for (int i = 0; i < TRIALS; i++)
		kill_and_check(set);
}

static void scheduler(void **state)
{
	(void)state;
	trials(SCHEDULER);
}

static void fork_server(void **state)
{
	(void)state;
	trials(FORK_SERVER);
}

static void worker(void **state)
{
	(void)state;
	trials(WORKER);
}

static void scheduler_and_fork_server(void **state)
{
	(void)state;
	trials(SCHEDULER | FORK_SERVER);
}

static void scheduler_and_worker(void **state)
{
	(void)state;
	trials(SCHEDULER | WORKER);
}

static void fork_server_and_worker(void **state)
{
	(void)state;
	trials(FORK_SERVER | WORKER);
}

/* The same, sandboxed, for each of the six; skipped where no sandbox can be had. */
static void sandboxed(void **state)
{
	static const int sets[] = {SCHEDULER, FORK_SERVER, WORKER, SCHEDULER | FORK_SERVER,
		SCHEDULER | WORKER, FORK_SERVER | WORKER};
	struct vx_pool *p = vxp_start(1);
	struct vx_pool_event e = {0};

	(void)state;
	assert_int_equal(vx_pool_arm(p, 0, false), 0);
	assert_int_equal(vxp_event(p, &e, VXT_HANG_MS), 1);
	vx_pool_end(p);
	if (e.done.end != VX_END_EXIT) {
		vxt_skip(e.done.text);
	}
	assert_int_equal(vx_which("bwrap", getenv("PATH"), bwrap), 0);
	boxed_root = vxt_tmpdir();
	for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++)
		trials(sets[i]);
}

static void a_plain_end(void **state)
{
	struct trial t = {.killed = 0};

	(void)state;
	begin(&t);
	finish(&t);
}

/* Processes that are stopped do not see what happens: the end of the pool goes through them all the
 * same. */
static void stopped_processes_do_not_hold_up_the_end(void **state)
{
	(void)state;
	for (int i = 1; i <= 2; i++) {
		struct trial t = {.killed = 0};

		begin(&t);
		assert_int_equal(kill(t.pids[i], SIGSTOP), 0);
		finish(&t);
	}
}

/* Nor do they see the scheduler die. They are woken for it. */
static void stopped_processes_go_with_the_scheduler(void **state)
{
	(void)state;
	for (int i = 1; i <= 2; i++) {
		struct trial t = {.killed = SCHEDULER};

		begin(&t);
		assert_int_equal(kill(t.pids[i], SIGSTOP), 0);
		assert_int_equal(kill(t.pids[0], SIGKILL), 0);
		gone(t.tags[0], "the first task");
		gone(t.tags[1], "the second task");
		gone(t.ours, "ours");
		finish(&t);
	}
}

/* The test process is killed in the middle of a trial: the driver's stdin closes, and it ends
 * everything. */
static void the_test_itself_is_killed(void **state)
{
	(void)state;
	for (int i = 0; i < 3; i++) {
		struct trial t = {.killed = 0};
		int up[2], status;
		pid_t pid;

		assert_int_equal(vx_pipe(up), 0);
		pid = fork();
		if (pid == 0) {
			begin(&t);
			if (i > 0)
				kill(t.pids[i], SIGKILL);
			if (write(up[1], "u", 1) == 1)
				kill(getpid(), SIGKILL);
			_exit(1);
		}
		close(up[1]);
		assert_int_equal(read(up[0], &status, 1), 1);
		close(up[0]);
		assert_int_equal(waitpid(pid, &status, 0), pid);
		assert_true(WIFSIGNALED(status));
		nothing_is_below_us();
	}
}

static void signals_of_the_terminal_reach_nobody(void **state)
{
	static const int signals[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct trial t = {.killed = 0};

	(void)state;
	begin(&t);
	for (size_t i = 0; i < 4; i++) {
		kill(t.pids[1], signals[i]);
		kill(t.pids[2], signals[i]);
	}
	pause_ms(50);
	assert_int_equal(kill(t.pids[1], 0), 0);
	assert_int_equal(kill(t.pids[2], 0), 0);
	assert_int_not_equal(getsid(t.pids[1]), getsid(0));
	assert_int_not_equal(getsid(t.pids[2]), getsid(t.pids[1]));
	finish(&t);
}

/* ---- in this process: what a sweep spares, and a pool that is broken for good ---- */

static pid_t sleeper(const char *tag)
{
	const char *argv[] = {"sleep", tag, NULL};
	struct vx_spawn s = VX_SPAWN_INIT;
	pid_t pid;
	int pidfd;

	s.path = "/bin/sleep";
	s.argv = argv;
	assert_int_equal(vx_spawn(&s, &pid, &pidfd, NULL), 0);
	close(pidfd);
	return pid;
}

static pthread_barrier_t barrier;

static void *thread_with_child(void *arg)
{
	pid_t pid = sleeper(arg);

	pthread_barrier_wait(&barrier);
	pthread_barrier_wait(&barrier);
	assert_int_equal(waitpid(pid, NULL, WNOHANG), 0); /* alive, and nobody has reaped it */
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	return NULL;
}

static void lose_server(struct vx_pool *p, const char *tag)
{
	const char *argv[] = {"/bin/sh", "-c", "setsid sleep $0 & sleep $0", tag, NULL};
	struct vx_task_desc d = vxp_desc(3, argv);
	struct vxp_result r = {0};

	assert_int_equal(vx_pool_run(p, 0, &d, NULL), 0);
	vxt_wait_for(vxp_alive(tag) >= 3);
	kill(p->server_pid, SIGKILL);
	vxp_finish(p, 0, &r);
	assert_true(r.lost);
	assert_int_equal(vxp_alive(tag), 0); /* LOST is said when everything is gone */
	vxp_free(&r);
}

static void a_sweep_spares_what_is_not_the_pools(void **state)
{
	static char third[] = "86903";
	pid_t before = sleeper("86901"), exempt;
	struct vx_pool *p = vxp_start(2);
	struct vx_task_desc d;
	struct vx_pool_stats s;
	struct vx_err err = {0};
	pthread_t t;

	(void)state;
	exempt = sleeper("86902");
	vx_pool_exempt(p, exempt, true);
	assert_int_equal(pthread_barrier_init(&barrier, NULL, 2), 0);
	assert_int_equal(pthread_create(&t, NULL, thread_with_child, third), 0);
	pthread_barrier_wait(&barrier);
	lose_server(p, "86904");
	assert_int_equal(waitpid(before, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(exempt, NULL, WNOHANG), 0);
	vx_pool_stats(p, &s);
	assert_int_equal(s.fork_servers, 2);

	/* The replacement dies as well: that is the end. */
	vx_pool_exempt(p, exempt, false);
	lose_server(p, "86905");
	assert_int_equal(waitpid(before, NULL, WNOHANG), 0);
	assert_int_equal(waitpid(exempt, NULL, 0), -1); /* not spared any more */
	d = vxp_desc(4, (const char *const[]){"/bin/true", NULL});
	assert_int_equal(vx_pool_run(p, 1, &d, &err), -EPIPE);
	assert_non_null(strstr(err.what, "replacement"));
	assert_int_equal(vx_pool_next(p, &(struct vx_pool_event){0}), -EPIPE);
	vx_pool_end(p);
	pthread_barrier_wait(&barrier);
	pthread_join(t, NULL);
	kill(before, SIGKILL);
	waitpid(before, NULL, 0);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(a_plain_end, clean),
		cmocka_unit_test_teardown(scheduler, clean),
		cmocka_unit_test_teardown(fork_server, clean),
		cmocka_unit_test_teardown(worker, clean),
		cmocka_unit_test_teardown(scheduler_and_fork_server, clean),
		cmocka_unit_test_teardown(scheduler_and_worker, clean),
		cmocka_unit_test_teardown(fork_server_and_worker, clean),
		cmocka_unit_test_teardown(sandboxed, clean),
		cmocka_unit_test_teardown(stopped_processes_do_not_hold_up_the_end, clean),
		cmocka_unit_test_teardown(stopped_processes_go_with_the_scheduler, clean),
		cmocka_unit_test_teardown(the_test_itself_is_killed, clean),
		cmocka_unit_test_teardown(signals_of_the_terminal_reach_nobody, clean),
		cmocka_unit_test_teardown(a_sweep_spares_what_is_not_the_pools, clean),
	};

	vxp_main(argc, argv);
	if (argc == 3 && strcmp(argv[1], "-driver") == 0)
		return driver(argv);
	return cmocka_run_group_tests_name("death", tests, NULL, NULL);
}
