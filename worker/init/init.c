/* vx-init: pid 1 of a sandbox. See vx/initproto.h for what it is given and what it says.
 *
 * It starts the command in a session of its own, reaps whatever is orphaned, passes signals on, and
 * tells the box host how the command ended. It is not dumpable, so that nothing inside can read its
 * memory or take its descriptors; it shares no memory with anyone after the command's exec; no
 * signal from inside reaches it, since pid 1 has no handlers. Static and without libc: LD_PRELOAD
 * and the like mean nothing to it. */
#include "sys.h"

#include "vx/initproto.h"

#include <linux/capability.h>
#include <linux/errno.h>
#include <linux/fcntl.h>
#include <linux/landlock.h>
#include <linux/mman.h>
#include <linux/poll.h>
#include <linux/prctl.h>
#include <linux/sched.h>
#include <linux/stat.h>
#include <linux/time_types.h>
#include <linux/wait.h>
#include <stddef.h>

/* The kernel's signal set; the headers for it cannot be had without libc's. */
typedef uint64_t sigset64;
#define SIGCHLD_ 17
#define SIGKILL_ 9
#define BIT(sig) (1ULL << ((sig)-1))
#define SIG_SETMASK_ 2
#define SFD_CLOEXEC_ 02000000
#define MSG_NOSIGNAL_ 0x4000
#define MSG_DONTWAIT_ 0x40
#define RUSAGE_CHILDREN_ (-1)
#define SECCOMP_FILTERED 2 /* what PR_GET_SECCOMP says then */
#define CHILD_STACK_BYTES 16384
#define PATH_BYTES 4096
#define O_PATH_ 010000000
#define LANDLOCK_WITH_REFER 2 /* the first ABI under which files can be moved about, Linux 5.19 */

/* As the kernel fills it on 64-bit machines. */
struct usage {
	int64_t user_s, user_us, system_s, system_us;
	int64_t max_rss_kib, rest[13];
};

static struct vx_init_payload *payload;
static char **command_argv, **command_env;
static volatile int32_t child_step, child_error; /* written by the vfork child, in our memory */
static volatile int32_t no_landlock;
static _Alignas(16) char child_stack[CHILD_STACK_BYTES];
static char candidate[PATH_BYTES];
void init_main(void);

/* gcc emits calls to these. */
void *memset(void *p, int c, size_t n);
void *memset(void *p, int c, size_t n)
{
	for (volatile char *d = p; n; n--)
		*d++ = (char)c;
	return p;
}
void *memcpy(void *restrict to, const void *restrict from, size_t n);
void *memcpy(void *restrict to, const void *restrict from, size_t n)
{
	volatile char *d = to;
	for (const char *s = from; n; n--)
		*d++ = *s++;
	return to;
}

__attribute__((noreturn)) static void leave(int code)
{
	for (;;)
		SYS1(__NR_exit_group, code);
}

static uint64_t now_ns(void)
{
	struct __kernel_timespec t = {0};

	SYS2(__NR_clock_gettime, 1, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void say(struct vx_init_msg m)
{
	m.ns = now_ns();
	while (SYS6(__NR_sendto, VX_INIT_FD_CONTROL, &m, sizeof m, MSG_NOSIGNAL_, 0, 0) == -EINTR)
		continue;
}

__attribute__((noreturn)) static void give_up(int32_t step, long error)
{
	say((struct vx_init_msg){.kind = VX_INIT_FAILED, .step = step, .error = (int32_t)-error});
	leave(1);
}

/* Whoever executed us must have made the sandbox first. Above all: whatever we signal is
 * "everything", and that must end at our own namespace. */
static void check_surroundings(void)
{
	if (SYS0(__NR_getpid) != 1)
		give_up(VX_INIT_STEP_PIDNS, -EOPNOTSUPP);
	if (SYS5(__NR_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 ||
		SYS5(__NR_prctl, PR_GET_SECCOMP, 0, 0, 0, 0) != SECCOMP_FILTERED)
		give_up(VX_INIT_STEP_FILTER, -EOPNOTSUPP);
}

/* Turns the offsets of a list into pointers, in place. */
static char **unfold(uint32_t list, uint32_t count)
{
	char *base = (char *)payload;
	uint64_t *word = (uint64_t *)(void *)(base + list);

	for (uint32_t i = 0; i < count; i++)
		word[i] += (uint64_t)(uintptr_t)base;
	return (char **)(void *)word;
}

/* No capability in any set, the bounding set included. bwrap has left us CAP_SETPCAP, for this. */
static void drop_capabilities(void)
{
	struct __user_cap_header_struct h = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct none[2] = {{0}, {0}};
	long r = 0;

	for (long cap = 0; r == 0 && cap < 64; cap++)
		r = SYS5(__NR_prctl, PR_CAPBSET_DROP, cap, 0, 0, 0);
	if (r == 0 || r == -EINVAL) /* beyond the last that this kernel has */
		r = SYS5(__NR_prctl, PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
	if (r == 0)
		r = SYS2(__NR_capset, &h, none);
	if (r < 0)
		give_up(VX_INIT_STEP_SETUP, r);
}

static void map_payload(void)
{
	long size = SYS3(__NR_lseek, VX_INIT_FD_PAYLOAD, 0, 2);
	if (size < (long)sizeof *payload)
		give_up(VX_INIT_STEP_PAYLOAD, size < 0 ? size : -EINVAL);
	long at = SYS6(
		__NR_mmap, 0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, VX_INIT_FD_PAYLOAD, 0);
	if (at <= 0 && at > -4096)
		give_up(VX_INIT_STEP_PAYLOAD, at);
	payload = (struct vx_init_payload *)at;
	if (payload->magic != VX_INIT_MAGIC || payload->total_bytes != (uint64_t)size)
		give_up(VX_INIT_STEP_PAYLOAD, -EINVAL);
	command_argv = unfold(payload->argv, payload->argc);
	command_env = unfold(payload->env, payload->envc);
	SYS1(__NR_close, VX_INIT_FD_PAYLOAD);
	SYS1(__NR_close, VX_INIT_FD_SELF);
}

/* Where bubblewrap made the binds, see that it bound what was meant. */
static void check_binds(void)
{
	long size = SYS3(__NR_lseek, VX_INIT_FD_CHECKS, 0, 2);

	if (size == -EBADF)
		return;
	long at = size <= 0
			  ? -EINVAL
			  : SYS6(__NR_mmap, 0, size, PROT_READ, MAP_PRIVATE, VX_INIT_FD_CHECKS, 0);
	if (at <= 0 && at > -4096)
		give_up(VX_INIT_STEP_CHECKS, at);
	const struct vx_init_checks *c = (const struct vx_init_checks *)at;
	for (uint32_t i = 0; i < c->count; i++) {
		struct statx st;
		long r = SYS5(__NR_statx, AT_FDCWD, (const char *)c + c->v[i].path,
			AT_SYMLINK_NOFOLLOW, STATX_INO, &st);
		if (r == 0 && (st.stx_ino != c->v[i].ino || st.stx_dev_major != c->v[i].dev_major ||
				      st.stx_dev_minor != c->v[i].dev_minor))
			r = -ESTALE;
		if (c->magic != VX_INIT_MAGIC || r < 0)
			give_up(VX_INIT_STEP_CHECKS, r < 0 ? r : -EINVAL);
	}
	SYS1(__NR_close, VX_INIT_FD_CHECKS);
}

/* execve, and what a shell does with a script that has no "#!" line. */
static long try_exec(char *file)
{
	long r = SYS3(__NR_execve, file, command_argv, command_env);

	if (r != -ENOEXEC)
		return r;
	/* argv[-1] is the last offset of nothing: the payload leaves one word in front of argv for
	 * this. */
	char **shell = command_argv - 1;
	static char sh[] = "/bin/sh";
	shell[0] = sh;
	command_argv[0] = file;
	return SYS3(__NR_execve, sh, shell, command_env);
}

static long exec_command(void)
{
	char *name = command_argv[0];
	const char *dir = (const char *)payload + payload->path;
	long worst = -ENOENT;

	for (const char *c = name; *c; c++)
		if (*c == '/')
			return try_exec(name);
	while (*name) {
		size_t n = 0, k = 0;
		while (*dir && *dir != ':' && n < PATH_BYTES - 2)
			candidate[n++] = *dir++;
		if (!n)
			candidate[n++] = '.'; /* an empty entry is the current directory */
		candidate[n++] = '/';
		while (name[k] && n + k < PATH_BYTES - 1) {
			candidate[n + k] = name[k];
			k++;
		}
		candidate[n + k] = '\0';
		long r = name[k] ? -ENAMETOOLONG : try_exec(candidate);
		if (r == -EACCES)
			worst = r;
		else if (r != -ENOENT && r != -ENOTDIR && r != -ENAMETOOLONG)
			return r;
		if (*dir != ':')
			break;
		dir++;
	}
	return worst;
}

/* Nothing of the host but what the task may write is opened for writing, pipes with a name above
 * all. Renames are not what this is about, but a ruleset that is silent on them forbids all between
 * directories. */
static long confine_writes(void)
{
	struct landlock_ruleset_attr a = {
		.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REFER};
	const char *path = (const char *)payload + payload->writable;
	long r = SYS3(__NR_landlock_create_ruleset, 0, 0, LANDLOCK_CREATE_RULESET_VERSION);

	if (!payload->writable)
		return 0;
	if (r < LANDLOCK_WITH_REFER) {
		no_landlock = 1;
		return 0;
	}
	/* not what later headers add to the struct: this is all that is meant */
	long set = SYS3(__NR_landlock_create_ruleset, &a, sizeof a.handled_access_fs, 0);
	if (set < 0)
		return set;
	for (int first = 1; first || *path; first = 0) {
		struct landlock_path_beneath_attr rule = {
			.allowed_access =
				first ? LANDLOCK_ACCESS_FS_REFER : LANDLOCK_ACCESS_FS_WRITE_FILE};
		long fd = SYS4(__NR_openat, AT_FDCWD, first ? "/" : path, O_PATH_ | O_CLOEXEC, 0);
		if (fd < 0 && (fd != -ENOENT || first))
			return fd;
		rule.parent_fd = (int32_t)fd;
		r = fd < 0 ? 0
			   : SYS4(__NR_landlock_add_rule, set, LANDLOCK_RULE_PATH_BENEATH, &rule,
				     0);
		if (fd >= 0)
			SYS1(__NR_close, fd);
		if (r < 0)
			return r;
		while (!first && *path++)
			continue;
	}
	r = SYS2(__NR_landlock_restrict_self, set, 0);
	SYS1(__NR_close, set);
	return r;
}

/* Runs in the child, on its own stack and in our memory, until exec. */
static void child(void)
{
	sigset64 none = 0;
	long r;

	child_step = VX_INIT_STEP_SETUP;
	r = SYS3(__NR_dup3, VX_INIT_FD_STDERR, 2, 0);
	if (r >= 0)
		r = SYS3(__NR_close_range, 3, ~0U, 0);
	if (r >= 0) {
		child_step = VX_INIT_STEP_WRITABLE;
		r = confine_writes();
	}
	if (r >= 0) {
		child_step = VX_INIT_STEP_SESSION;
		r = SYS0(__NR_setsid);
	}
	if (r >= 0) {
		child_step = VX_INIT_STEP_CHDIR;
		r = SYS1(__NR_chdir, (char *)payload + payload->cwd);
	}
	if (r >= 0) {
		SYS4(__NR_rt_sigprocmask, SIG_SETMASK_, &none, 0, sizeof none);
		child_step = VX_INIT_STEP_EXEC;
		r = exec_command();
	}
	child_error = (int32_t)r;
	leave(127);
}

/* The command has ended. What it left behind is killed and reaped, so that the figures cover all of
 * it. */
__attribute__((noreturn)) static void finish(int status)
{
	struct usage u = {0};
	int left;

	SYS2(__NR_kill, -1, SIGKILL_);
	for (;;) {
		long r = SYS4(__NR_wait4, -1, &left, __WALL, 0);
		if (r < 0 && r != -EINTR)
			break;
	}
	SYS2(__NR_getrusage, RUSAGE_CHILDREN_, &u);
	say((struct vx_init_msg){.kind = VX_INIT_EXITED,
		.status = status,
		.user_us = (uint64_t)u.user_s * 1000000U + (uint64_t)u.user_us,
		.system_us = (uint64_t)u.system_s * 1000000U + (uint64_t)u.system_us,
		.max_rss_kib = (uint64_t)u.max_rss_kib});
	leave(0);
}

static void reap(long command)
{
	int status = 0;

	for (;;) {
		long r = SYS4(__NR_wait4, -1, &status, WNOHANG | __WALL, 0);
		if (r == command)
			finish(status);
		if (r <= 0 && r != -EINTR)
			return;
	}
}

static void obey(void)
{
	struct vx_init_cmd c;
	long n = SYS6(__NR_recvfrom, VX_INIT_FD_CONTROL, &c, sizeof c, MSG_DONTWAIT_, 0, 0);

	if (n == -EAGAIN || n == -EINTR)
		return;
	if (n != (long)sizeof c) /* the box host is gone: with us goes everything inside */
		leave(1);
	if (c.signal > 0 && c.signal <= 64)
		SYS2(__NR_kill, -1, c.signal);
}

/* Nothing of the task runs before the box host has put its mounts in place. */
static void wait_for_go(void)
{
	struct vx_init_cmd c = {0};
	long n;

	do
		n = SYS6(__NR_recvfrom, VX_INIT_FD_CONTROL, &c, sizeof c, 0, 0, 0);
	while (n == -EINTR || (n == (long)sizeof c && c.signal != VX_INIT_GO));
	if (n != (long)sizeof c)
		leave(1);
}

__attribute__((noreturn)) static void serve(long command, int signals)
{
	struct pollfd p[2] = {
		{.fd = VX_INIT_FD_CONTROL, .events = POLLIN}, {.fd = signals, .events = POLLIN}};
	char info[128 * 4];

	for (;;) {
		reap(command);
		SYS5(__NR_ppoll, p, 2, 0, 0, 8);
		if (p[1].revents)
			SYS3(__NR_read, signals, info, sizeof info);
		if (p[0].revents)
			obey();
	}
}

void init_main(void)
{
	static char name[] = "vx-init";
	sigset64 block = ~0ULL, chld = BIT(SIGCHLD_);

	SYS5(__NR_prctl, PR_SET_DUMPABLE, 0, 0, 0, 0);
	SYS4(__NR_rt_sigprocmask, SIG_SETMASK_, &block, 0, sizeof block);
	SYS5(__NR_prctl, PR_SET_NAME, name, 0, 0, 0);
	check_surroundings();
	say((struct vx_init_msg){.kind = VX_INIT_READY});
	drop_capabilities();
	long signals = SYS4(__NR_signalfd4, -1, &chld, sizeof chld, SFD_CLOEXEC_);
	if (signals < 0)
		give_up(VX_INIT_STEP_SETUP, signals);
	map_payload();
	wait_for_go();
	check_binds();
	long command = sys_clone(
		CLONE_VM | CLONE_VFORK | SIGCHLD_, child_stack + sizeof child_stack, child);
	if (command < 0)
		give_up(VX_INIT_STEP_CLONE, command);
	if (child_error)
		give_up(child_step, child_error);
	/* the pipes end when the command and its children have gone */
	SYS1(__NR_close, VX_INIT_FD_STDERR);
	SYS1(__NR_close, 0);
	SYS1(__NR_close, 1);
	SYS1(__NR_close, 2);
	say((struct vx_init_msg){.kind = VX_INIT_STARTED, .status = no_landlock});
	serve(command, (int)signals);
}

__asm__(START);
