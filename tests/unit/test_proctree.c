/* vx/proctree.h against trees that do not want to end: whoever kills only what he sees first loses
 * against some of them. Each trial runs below a child of this program, which is a subreaper too. */
#include "vxtest.h"

#include "vx/clock.h"
#include "vx/proctree.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <time.h>

enum { STACK_BYTES = 16384, LIMIT_MS = VXT_HANG_MS, LIFE_MS = VXT_HANG_MS };

/* Nothing here lives longer than that, whatever becomes of this program. */
static uint64_t over_ns;

static void live(void)
{
	if (vx_now_ns() > over_ns)
		_exit(0);
}

static void pause_us(long us)
{
	nanosleep(&(struct timespec){0, us * 1000}, NULL);
}

__attribute__((noreturn)) static void stay(void)
{
	for (;;) {
		live();
		pause_us(100000);
	}
}

/* Every generation makes the next and exits. */
__attribute__((noreturn)) static void chain(void)
{
	for (;;) {
		live();
		setsid();
		if (fork() > 0)
			_exit(0);
	}
}

/* The same as fast as the kernel makes processes: no memory is copied. */
enum { STACKS = 64 }; /* who made the one before may still be on his way out, on his own */
static char *stacks[STACKS];
static int turn;

static int quick_generation(void *arg)
{
	(void)arg;
	live();
	turn = (turn + 1) % STACKS;
	clone(quick_generation, stacks[turn] + STACK_BYTES, CLONE_VM | SIGCHLD, NULL);
	_exit(0);
}

__attribute__((noreturn)) static void quick_chain(void)
{
	for (int i = 0; i < STACKS; i++)
		stacks[i] = mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE,
			MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	quick_generation(NULL);
	_exit(0);
}

/* Two that watch over each other: whichever dies, the other makes a new one. There is never a
 * moment at which killing one of them is enough. */
__attribute__((noreturn)) static void watchers(void)
{
	for (;;) {
		pid_t above = getpid(), below;

		live();
		below = fork();

		if (below == 0) {
			while (getppid() == above)
				pause_us(50);
			setsid();
			continue;
		}
		waitpid(below, NULL, 0);
	}
}

/* Many, each of them with many. */
__attribute__((noreturn)) static void wide(void)
{
	for (int depth = 0; depth < 3; depth++)
		for (int i = 0; i < 4; i++)
			if (fork() == 0)
				break;
			else if (i == 3)
				depth = 3;
	stay();
}

/* In a child subreaper: starts `n` of `what`, ends them. 0, or what went wrong. */
static int end_them(void (*what)(void), int n)
{
	struct vx_pids left = {0};

	signal(SIGSEGV, SIG_DFL); /* cmocka's handler would go on with the tests here */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	for (int i = 0; i < n; i++)
		if (fork() == 0)
			what();
	pause_us(20000);
	if (vx_tree_end(NULL, NULL, NULL, 0, LIMIT_MS) != 0)
		return 1;
	pause_us(5000);
	if (vx_tree_children(&left) != 0 || left.n != 0)
		return 2;
	return waitpid(-1, NULL, 0) == -1 && errno == ECHILD ? 0 : 3;
}

/* Whatever the trial did: nothing may stay on the machine. A pid namespace would be surer, but is
 * not to be had everywhere. */
static void clean_up(void)
{
	while (vx_tree_end(NULL, NULL, NULL, 0, LIMIT_MS) != 0)
		;
}

static int trial(void (*what)(void), int n)
{
	int status;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
		_exit(end_them(what, n));
	assert_int_equal(waitpid(pid, &status, 0), pid);
	clean_up();
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static void chains(void **state)
{
	(void)state;
	for (int i = 0; i < 10; i++)
		assert_int_equal(trial(chain, 3), 0);
}

static void quick_chains(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(trial(quick_chain, 2), 0);
}

static void who_watch_over_each_other(void **state)
{
	(void)state;
	for (int i = 0; i < 5; i++)
		assert_int_equal(trial(watchers, 2), 0);
}

static void a_wide_tree(void **state)
{
	(void)state;
	assert_int_equal(trial(wide, 3), 0);
}

/* ---- what is spared, and what will not die ---- */

static pid_t kept;

static bool is_kept(void *arg, pid_t pid)
{
	(void)arg;
	return pid == kept;
}

static pid_t stopped_below(pid_t pid)
{
	char path[64], text[32] = "";
	int fd;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0 && read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	vx_close(fd);
	return atoi(text);
}

static char state_of(pid_t pid)
{
	char path[64], text[256] = "";
	int fd;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof text - 1) < 0)
		text[0] = 0;
	vx_close(fd);
	return text[0] != 0 ? strrchr(text, ')')[2] : 0;
}

/* Who is spared is neither killed nor stopped, and nor is anything below it. */
static void the_spared_go_on(void **state)
{
	pid_t other, below;

	(void)state;
	kept = fork();
	if (kept == 0) {
		if (fork() == 0)
			stay();
		stay();
	}
	other = fork();
	if (other == 0)
		stay();
	while ((below = stopped_below(kept)) == 0)
		pause_us(1000);
	assert_int_equal(vx_tree_kill(is_kept, NULL), 1);
	assert_int_equal(waitpid(other, NULL, 0), other);
	assert_int_equal(vx_tree_end(is_kept, NULL, NULL, 0, LIMIT_MS), 0);
	assert_true(strchr("RSD", state_of(kept)) != NULL && state_of(kept) != 0);
	assert_true(strchr("RSD", state_of(below)) != NULL && state_of(below) != 0);
	clean_up();
	assert_int_equal(kill(kept, 0), -1);
}

/* One that is patient ends by itself and is not stopped meanwhile; when the patience is over it
 * goes like all others. */
static void the_patient_have_their_time(void **state)
{
	uint64_t begin = vx_now_ns();

	(void)state;
	kept = fork();
	if (kept == 0) {
		pause_us(100000);
		_exit(0);
	}
	/* The limit is for what does not die though it was killed, and counts from then. */
	assert_int_equal(vx_tree_end(NULL, is_kept, NULL, LIMIT_MS, 20), 0);
	assert_true(vx_now_ns() - begin >= 90000000ULL);
	kept = fork();
	if (kept == 0)
		stay();
	assert_int_equal(vx_tree_end(NULL, is_kept, NULL, 50, LIMIT_MS), 0);
}

/* A process in a frozen cgroup (v1) does not die when it is killed, as one that waits for a dead
 * disk does not: it is given up after the limit, and what is below it, which does die, is not left
 * running until it can be reaped. */
static void what_will_not_die_is_given_up(void **state)
{
	char dir[128], path[160], text[32];
	pid_t stuck, below;
	uint64_t begin;

	(void)state;
	snprintf(dir, sizeof dir, "/sys/fs/cgroup/freezer/vxtest.%d", getpid());
	if (mkdir(dir, 0755) < 0)
		vxt_skip("no freezer (cgroup v1) can be had here");
	stuck = fork();
	if (stuck == 0) {
		if (fork() == 0)
			stay();
		stay();
	}
	while ((below = stopped_below(stuck)) == 0)
		pause_us(1000);
	snprintf(path, sizeof path, "%s/cgroup.procs", dir);
	snprintf(text, sizeof text, "%d", (int)stuck);
	vxt_write("/", path + 1, text);
	snprintf(path, sizeof path, "%s/freezer.state", dir);
	vxt_write("/", path + 1, "FROZEN");
	begin = vx_now_ns();
	int r = vx_tree_end(NULL, NULL, NULL, 0, 200);
	uint64_t took = vx_now_ns() - begin;
	char how = 0;
	vxt_wait_for((how = state_of(below)) == 'Z' || how == 0);
	vxt_write("/", path + 1, "THAWED");
	clean_up();
	rmdir(dir);
	assert_int_equal(r, -ETIMEDOUT);
	assert_true(took >= 200000000ULL);
	assert_true(how == 'Z' || how == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains),
		cmocka_unit_test(quick_chains),
		cmocka_unit_test(who_watch_over_each_other),
		cmocka_unit_test(a_wide_tree),
		cmocka_unit_test(the_spared_go_on),
		cmocka_unit_test(the_patient_have_their_time),
		cmocka_unit_test(what_will_not_die_is_given_up),
	};

	over_ns = vx_now_ns() + LIFE_MS * 1000000ULL;
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	return cmocka_run_group_tests_name("proctree", tests, NULL, NULL);
}
