/* Trees of processes: who our children are, killing them, signalling everything below them.
 *
 * For child subreapers: whatever lived below a child that died becomes a child itself, so that
 * "kill every child until there is none" ends a tree however it forked, changed its session or
 * daemonised. A kill pass and the reaping that follows are separate, since the reaper wants the
 * figures:
 *
 *     while ((n = vx_tree_kill(spare, arg)) > 0) { reap what has died; wait a little }
 *
 * Children are read from /proc/self/task/<pid>/children (proc(5)): those of the MAIN thread alone.
 * Orphans always arrive there (the kernel hands them to the first living thread), while a child
 * spawned by another thread is listed with that thread, and is never touched. Where the kernel
 * lacks that file (CONFIG_PROC_CHILDREN), the parents of all processes are read instead, and
 * children of other threads are not told apart.
 *
 * `spare` says which children are not to be touched, nor anything below them; NULL spares none.
 * Thread rule: any, one at a time. */
#ifndef VX_PROCTREE_H
#define VX_PROCTREE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef bool (*vx_spare_fn)(void *arg, pid_t pid);

/* Makes the calling process one that keeps a tree: a child subreaper called `name` (prctl(2)).
 * SIGCHLD is blocked and has this handler, so that it is heard in ppoll(2) alone; what is started
 * below gets an empty mask (vx/spawn.h). */
void vx_tree_keep(const char *name, void (*on_sigchld)(int));
/* Ignores what a terminal and kill(1) send: the tree is ended by its parent's word or death. Handed
 * on to forks. */
void vx_tree_ignore_signals(void);

struct vx_pids {
	pid_t *v; /* {0} is empty */
	uint32_t n, cap;
};

/* appends the main thread's children, zombies included */
int vx_tree_children(struct vx_pids *ret);
void vx_pids_free(struct vx_pids *p);

/* Kills every child that is not spared and everything below it, once: all of it is stopped first,
 * from the top down, and then killed from the bottom up, so that nothing can fork away from the
 * walk, and nobody sees the one die that he watches over. Returns how many children there were,
 * zombies included, those aside that may not be killed (EPERM: a child that has become another
 * user); -errno when the list cannot be read: then nothing is known. */
int vx_tree_kill(vx_spare_fn spare, void *arg);

/* Kills and reaps until no child is left but those that are spared. Children of whom `patient` says
 * true (NULL: none) end by themselves, sweeping what is below them; only after `patience_ms` they
 * are killed too. That order matters: whoever kills a sweeper first and is then killed himself
 * leaves its tree to nobody. Returns 0, or -ETIMEDOUT when nothing has died or come for `limit_ms`
 * (0: none), which is a child that waits in the kernel and cannot die; something that goes on
 * making processes is never given up. Children that may not be killed (EPERM) do not count. */
int vx_tree_end(
	vx_spare_fn spare, vx_spare_fn patient, void *arg, uint32_t patience_ms, uint32_t limit_ms);

/* Sends `sig` once to everything below us, parents before children. A pid is pinned by a pidfd and
 * its parent looked at again before it is signalled, so that a number that was given away meanwhile
 * is not hit. Returns how many were signalled, or -errno. */
int vx_tree_signal(int sig, vx_spare_fn spare, void *arg);

#endif
