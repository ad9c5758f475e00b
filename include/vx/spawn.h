/* Starting programs, vfork-style.
 *
 * clone(CLONE_VM | CLONE_VFORK | CLONE_PIDFD): no page table is copied, however large the caller;
 * the caller's thread sleeps until exec or exit. Between the two the child runs on a stack of its
 * own and makes system calls only. All signals are blocked in the parent meanwhile; the child gets
 * default dispositions and `sigmask` empty before exec. Safe with other threads running. Used by
 * the scheduler (git, fork server, probes), workers (tasks) and the box host (bwrap).
 *
 * Descriptors: every descriptor of ours is close-on-exec, so the child has exactly `fds[i].from` as
 * `fds[i].to`, and /dev/null on 0, 1, 2 where nothing was named. Targets must be small (0 .. n_fds
 * + 2) and different; sources may be anything. At most VX_MAX_SPAWN_FDS (-E2BIG, step
 * "descriptors").
 *
 * Order in the child: death signal, setsid, setpgid, cgroup, chdir, descriptors, signals, exec. A
 * parent that died before the death signal was in place is noticed, and the child ends by itself.
 * The stack is kept per thread and freed with it.
 *
 * The child of vx_spawn is the caller's to reap (waitid on the pidfd, or waitpid on the pid). */
#ifndef VX_SPAWN_H
#define VX_SPAWN_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vx_arena;
struct vx_err;
struct vx_buf;

struct vx_spawn_fd {
	int from, to;
};

struct vx_spawn {
	const char *path; /* absolute path of the program; NULL when exec_fd is used */
	/* a descriptor to execute (execveat, AT_EMPTY_PATH) when path is NULL */
	int exec_fd;
	const char *const *argv; /* NULL-terminated */
	const char *const *envp; /* NULL-terminated; NULL = the caller's environment */
	const char *cwd;         /* NULL: the caller's */
	int cwd_fd;              /* used when >= 0 and cwd is NULL; set to -1 otherwise */
	const struct vx_spawn_fd *fds;
	uint32_t n_fds;
	bool new_session; /* setsid */
	/* PR_SET_PDEATHSIG, 0 none. It follows the spawning THREAD: only for callers with one
	 * thread. */
	int death_signal;
	int pgroup;          /* setpgid(0, pgroup) when > 0 */
	int join_cgroup_fd;  /* a cgroup.procs descriptor: "0" is written to it before exec; -1 none
			      */
	int join_cgroup_fd2; /* the same of a second hierarchy (cgroup v1) */
	bool new_pidns;      /* CLONE_NEWPID for the child */
	/* vx_spawn_capture alone: below a keeper (vx/keeper.h), so that nothing of it is left,
	 * whoever dies */
	bool keep;
};

#define VX_SPAWN_INIT       \
	((struct vx_spawn){ \
		.exec_fd = -1, .cwd_fd = -1, .join_cgroup_fd = -1, .join_cgroup_fd2 = -1})

/* Raises this process's soft limit of open files to the hard one; what vx_spawn starts gets the old
 * one back (programs size tables by it, select(2) fails above it). Returns the limit in force. Call
 * it before other threads spawn; more than once is fine. */
uint64_t vx_nofile_raise(void);

/* Returns 0 with the pid and a pidfd (close-on-exec), or -errno: also exec's own failure (-ENOENT,
 * -EACCES, -E2BIG ...), in which case no child is left. `ret_step`, where not NULL, is told what
 * failed: "chdir", "exec", "dup2", "setsid" ... (a static string). */
int vx_spawn(const struct vx_spawn *s, pid_t *ret_pid, int *ret_pidfd, const char **ret_step);

/* The absolute path of `name` on the PATH-like `path_var` (a name with '/' is returned as it is
 * when executable). Empty and relative entries count from the current directory; NULL means
 * /usr/bin:/bin. What may not be executed is passed over. -ENOENT. ret has VX_MAX_PATH bytes. */
int vx_which(const char *name, const char *path_var, char *ret);

/* The same on our own PATH (/usr/local/bin:/usr/bin:/bin where it is unset or empty), for what vx
 * runs on its own account: git, bwrap, the shell of tasks, the runtimes of JS configurations. `npm
 * run` and its kind put the packages' programs in front of PATH, and what a package brings must
 * neither confine tasks nor say what is in a key. Passed over: entries that are relative or empty,
 * that are a node_modules/.bin, or that lie, links resolved, in the workspace; and a program that
 * lies there. `root` is the workspace's canonical path; NULL none. A root "/" would hold every
 * program, and counts as none. -ENOENT. */
int vx_which_own(const char *name, const char *root, char *ret);
/* Our environment, its PATH without those entries, for programs that look for others themselves
 * (git: its filters). Ends with NULL. */
const char *const *vx_env_own(struct vx_arena *a, const char *root);

/* Runs a program to its end: stdin is /dev/null where s->fds name none, stdout goes to `out`,
 * stderr to `errout` (each may be NULL: discarded), bounded by their maxima (-EFBIG, the child
 * killed). `timeout_ms` 0 = none
 * (-ETIMEDOUT). `cancel_fd` >= 0: readable means kill and return -ECANCELED. The child leads its
 * own session, which is killed whole when the call gives up, and also VX_LEFTOVER_READ_MS after the
 * child's exit while a leftover holds its output open (what was read counts; processes that made a
 * session of their own and closed the streams stay: they are daemons). When the caller is killed
 * the child goes with it, but not what that has started. With s->keep everything that the child has
 * started ends with the call, daemons too, and with the caller; called from the main thread, in
 * programs whose main knows vx_keeper_main. Of s->fds those for 1 and 2 do not come along;
 * new_session, pgroup and death_signal are ours to set. `*ret_status` is a wait(2) status. */
int vx_spawn_capture(const struct vx_spawn *s, struct vx_buf *out, struct vx_buf *errout,
	uint32_t timeout_ms, int cancel_fd, int *ret_status);

#endif
