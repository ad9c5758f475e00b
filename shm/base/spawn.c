#include "vx/spawn.h"

#include "vx/assert.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* The child shares our memory, so nothing in it may be watched by a sanitizer, and it calls the
 * kernel directly: no wrapper that takes a lock, runs a cancellation point or is intercepted. */
#define IN_CHILD __attribute__((no_sanitize("address", "thread", "undefined")))

enum { STACK_BYTES = 64 << 10, GUARD_BYTES = 64 << 10 /* a page, however large pages are */ };

struct child {
	const struct vx_spawn *s;
	const char *const *envp;
	pid_t parent;        /* whose death ends the child */
	int parent_pidfd;    /* the same where the child cannot ask for its parent's pid; or -1 */
	uint64_t rt_signals; /* real-time signals that are not at their default, bit per signal */
	int from[VX_MAX_SPAWN_FDS];
	volatile int err;          /* set by the child: errno of ... */
	const char *volatile step; /* ... what failed */
};

/* What children get back; set once, by vx_nofile_raise. */
static struct rlimit first_nofile;
static bool raised_nofile;

uint64_t vx_nofile_raise(void)
{
	struct rlimit now;

	if (getrlimit(RLIMIT_NOFILE, &now) < 0)
		return 1024;
	if (now.rlim_cur == now.rlim_max)
		return now.rlim_cur;
	struct rlimit most = {now.rlim_max, now.rlim_max};
	if (setrlimit(RLIMIT_NOFILE, &most) < 0)
		return now.rlim_cur;
	first_nofile = now;
	raised_nofile = true;
	return most.rlim_cur;
}

/* ---- in the child ---- */

IN_CHILD static int fail(struct child *c, const char *step)
{
	c->err = errno;
	c->step = step;
	return -1;
}

IN_CHILD static int child_ties(struct child *c)
{
	const struct vx_spawn *s = c->s;

	if (s->death_signal) {
		if (syscall(SYS_prctl, PR_SET_PDEATHSIG, s->death_signal, 0, 0, 0) < 0)
			return fail(c, "prctl");
		/* Who died before the request was made sends nothing. */
		struct pollfd p = {.fd = c->parent_pidfd, .events = POLLIN};
		struct timespec zero = {0};
		bool orphan = c->parent_pidfd >= 0 ? syscall(SYS_ppoll, &p, 1, &zero, NULL, 0) > 0
						   : syscall(SYS_getppid) != c->parent;
		if (orphan) {
			errno = ESRCH;
			return fail(c, "parent");
		}
	}
	if (s->new_session && syscall(SYS_setsid) < 0)
		return fail(c, "setsid");
	if (s->pgroup > 0 && syscall(SYS_setpgid, 0, s->pgroup) < 0)
		return fail(c, "setpgid");
	if (s->join_cgroup_fd >= 0 && syscall(SYS_write, s->join_cgroup_fd, "0", 1) < 0)
		return fail(c, "cgroup");
	if (s->join_cgroup_fd2 >= 0 && syscall(SYS_write, s->join_cgroup_fd2, "0", 1) < 0)
		return fail(c, "cgroup");
	if (s->cwd && syscall(SYS_chdir, s->cwd) < 0)
		return fail(c, "chdir");
	if (!s->cwd && s->cwd_fd >= 0 && syscall(SYS_fchdir, s->cwd_fd) < 0)
		return fail(c, "chdir");
	return 0;
}

IN_CHILD static int put_at(struct child *c, int from, int to)
{
	/* dup3 to itself is an error, and the descriptor is ours alone already: only its flag has
	 * to go. */
	long r = from == to ? syscall(SYS_fcntl, to, F_SETFD, 0) : syscall(SYS_dup3, from, to, 0);

	return r < 0 ? fail(c, "dup2") : 0;
}

/* Moves a descriptor that stands where a target will be. */
IN_CHILD static int out_of_the_way(int fd, int limit)
{
	return fd < limit ? (int)syscall(SYS_fcntl, fd, F_DUPFD_CLOEXEC, limit) : fd;
}

/* Targets are below `limit`. Sources below it are first copied above, so that no dup2 hits one that
 * is needed later. */
IN_CHILD static int child_fds(struct child *c, int *exec_fd)
{
	const struct vx_spawn *s = c->s;
	int limit = (int)s->n_fds + 3, null_fd = -1;
	unsigned named = 0;

	for (uint32_t i = 0; i < s->n_fds; i++) {
		c->from[i] = s->fds[i].from == s->fds[i].to ? s->fds[i].from
							    : out_of_the_way(s->fds[i].from, limit);
		if (c->from[i] < 0)
			return fail(c, "dup2");
		if (s->fds[i].to < 3)
			named |= 1U << s->fds[i].to;
	}
	if (!s->path) {
		*exec_fd = out_of_the_way(s->exec_fd, limit);
		if (*exec_fd < 0)
			return fail(c, "exec");
	}
	if (named != 7) {
		null_fd = (int)syscall(SYS_openat, AT_FDCWD, "/dev/null", O_RDWR | O_CLOEXEC);
		if (null_fd >= 0)
			null_fd = out_of_the_way(null_fd, limit);
		if (null_fd < 0)
			return fail(c, "/dev/null");
	}
	for (int to = 0; to < 3; to++)
		if (!(named & 1U << to) && put_at(c, null_fd, to) < 0)
			return -1;
	for (uint32_t i = 0; i < s->n_fds; i++)
		if (put_at(c, c->from[i], s->fds[i].to) < 0)
			return -1;
	/* Last: with the old limit a caller who has more open than it allows could open nothing
	 * here. */
	if (raised_nofile && syscall(SYS_prlimit64, 0, RLIMIT_NOFILE, &first_nofile, NULL) < 0)
		return fail(c, "setrlimit");
	return 0;
}

/* Every handler and every "ignored" goes before the mask opens: a handler of ours must not run in
 * the child, and exec keeps what is ignored. */
IN_CHILD static void child_signals(const struct child *c)
{
	/* The kernel's sigaction is not glibc's; all zero is SIG_DFL without flags in any
	 * layout. */
	static const unsigned long deflt[8];
	uint64_t empty = 0;

	for (int sig = 1; sig <= 64; sig++)
		if (sig < 32 ? sig != SIGKILL && sig != SIGSTOP
			     : (c->rt_signals >> (sig - 1) & 1) != 0)
			syscall(SYS_rt_sigaction, sig, deflt, NULL, sizeof empty);
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &empty, NULL, sizeof empty);
}

IN_CHILD static int child_main(void *arg)
{
	struct child *c = arg;
	const struct vx_spawn *s = c->s;
	int exec_fd = -1;

	if (child_ties(c) == 0 && child_fds(c, &exec_fd) == 0) {
		child_signals(c);
		if (s->path)
			syscall(SYS_execve, s->path, s->argv, c->envp);
		else
			syscall(SYS_execveat, exec_fd, "", s->argv, c->envp, AT_EMPTY_PATH);
		fail(c, "exec");
	}
	syscall(SYS_exit_group, 127);
	__builtin_unreachable();
}

/* ---- in the parent ---- */

static pthread_key_t stack_key;
static int stack_key_error;
static uint64_t rt_not_default;

static void free_stack(void *stack)
{
	munmap(stack, STACK_BYTES + GUARD_BYTES);
}

static void prepare_process(void)
{
	stack_key_error = pthread_key_create(&stack_key, free_stack);
	/* We never touch real-time signals, so what was inherited at our start is looked up once.
	 * 32 and 33 are glibc's own. */
	for (int sig = 32; sig <= 64; sig++) {
		unsigned long now[8] = {0};

		if (syscall(SYS_rt_sigaction, sig, NULL, now, sizeof(uint64_t)) == 0 && now[0] != 0)
			rt_not_default |= (uint64_t)1 << (sig - 1);
	}
}

/* One stack a thread, kept: mapping and touching a new one each time costs more than the clone. */
static int thread_stack(char **ret_top)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	char *stack;

	pthread_once(&once, prepare_process);
	if (stack_key_error)
		return -stack_key_error;
	stack = pthread_getspecific(stack_key);
	if (!stack) {
		stack = mmap(NULL, STACK_BYTES + GUARD_BYTES, PROT_NONE,
			MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
		if (stack == MAP_FAILED)
			return -errno;
		if (mprotect(stack + GUARD_BYTES, STACK_BYTES, PROT_READ | PROT_WRITE) < 0 ||
			pthread_setspecific(stack_key, stack) != 0) {
			free_stack(stack);
			return -ENOMEM;
		}
	}
	*ret_top = stack + GUARD_BYTES + STACK_BYTES;
	return 0;
}

static void check_request(const struct vx_spawn *s)
{
	uint64_t seen = 0;

	vx_assert(s->argv && s->argv[0]);
	vx_assert(s->path || s->exec_fd >= 0);
	for (uint32_t i = 0; i < s->n_fds; i++) {
		int to = s->fds[i].to;

		vx_assert(to >= 0 && to < (int)s->n_fds + 3);
		vx_assert(s->fds[i].from >= 0);
		vx_assert(!(seen & (uint64_t)1 << to));
		seen |= (uint64_t)1 << to;
	}
}

#ifdef __SANITIZE_THREAD__
/* ThreadSanitizer takes every clone() for a fork and changes its own state in the child, which is
 * here ours. glibc exports this name as well. */
int __clone(int (*fn)(void *), void *stack, int flags, void *arg, ...);
#define clone __clone
#endif

static pid_t clone_masked(struct child *c, char *stack_top, int *ret_pidfd)
{
	uint64_t all = UINT64_MAX, saved = 0;
	int flags = CLONE_VM | CLONE_VFORK | CLONE_PIDFD | SIGCHLD |
		    (c->s->new_pidns ? CLONE_NEWPID : 0);

	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &saved, sizeof all);
	pid_t pid = clone(child_main, stack_top, flags, c, ret_pidfd);
	int failed = pid < 0 ? errno : 0;
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, &saved, NULL, sizeof saved);
	errno = failed;
	return pid;
}

static int failed_at(const char **ret_step, const char *step, int code)
{
	if (ret_step)
		*ret_step = step;
	return code;
}

int vx_spawn(const struct vx_spawn *s, pid_t *ret_pid, int *ret_pidfd, const char **ret_step)
{
	struct child c = {.s = s,
		.envp = s->envp ? s->envp : (const char *const *)environ,
		.parent = getpid(),
		.parent_pidfd = -1};
	char *stack_top = NULL;
	int pidfd = -1;

	if (s->n_fds > VX_MAX_SPAWN_FDS)
		return failed_at(ret_step, "descriptors", -E2BIG);
	check_request(s);
	int r = thread_stack(&stack_top);
	if (r < 0)
		return failed_at(ret_step, "stack", r);
	if (s->death_signal && s->new_pidns) { /* from inside a new pid namespace getppid() is 0 */
		c.parent_pidfd = vx_pidfd_open(c.parent);
		if (c.parent_pidfd < 0)
			return failed_at(ret_step, "pidfd", c.parent_pidfd);
	}

	c.rt_signals = rt_not_default;
	pid_t pid = clone_masked(&c, stack_top, &pidfd);
	r = pid < 0 ? -errno : 0;
	vx_close(c.parent_pidfd);
	if (r < 0)
		return failed_at(ret_step, "clone", r);
	if (c.err) {
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		vx_close(pidfd);
		return failed_at(ret_step, c.step, -c.err);
	}
	*ret_pid = pid;
	*ret_pidfd = pidfd;
	return 0;
}
