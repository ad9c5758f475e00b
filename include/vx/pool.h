/* The pool: the scheduler's side of fork server and workers.
 *
 *   vx_pool_start   executes the fork server (a clean image of the same binary) and returns at
 *                   once; workers are created on demand
 *   vx_pool_run     hands a task to a free worker slot (forked on first use, then kept)
 *   vx_pool_fd      is readable when vx_pool_next has something
 *   vx_pool_next    yields one event at a time, never blocks
 *   vx_pool_end     asks everyone to go, waits, kills what is left; after it nothing that the pool
 *                   started is alive
 *
 * Processes (docs/architecture.md): scheduler, fork server and workers are child subreapers; fork
 * server and workers lead their own sessions and poll their parent's pidfd. When the parent dies
 * they kill and reap all their children, and exit. When a worker dies unexpectedly, the fork server
 * sweeps the orphans that it received, the pool reports the slot's task as VX_POOL_LOST, and the
 * slot's next run forks a new worker. A task that lay in the ring of a worker dying idle, and was
 * provably never taken out, is not lost: a new worker gets it, once. When the fork server dies, the
 * pool sweeps, reports every running task lost, and starts one replacement; when that dies too,
 * vx_pool_run answers -EPIPE for ever. Slots below `slots` of vx_pool_opts are all equal; the
 * caller chooses which slot runs what, one task at a time in each.
 *
 * Whose children are swept. When a fork server has died, what it leaves comes to this process as
 * orphans, and the pool kills and reaps every child of the MAIN thread (orphans always arrive
 * there) but
 *   - those that were there when the pool started: a shell may have left children to the program
 *     that it became;
 *   - those named by vx_pool_exempt: children that the main thread has spawned and that are still
 *     its own (a helper, an asynchronous probe).
 * Children spawned by other threads, and calls of vx_spawn_capture, which return only when their
 * child is gone, need nothing.
 *
 * Events of one slot come in order: STARTED, OUTPUT ..., then EXITED or LOST, after which the slot
 * is free. LOST is also what a worker says whose box host died. A slot that was asked for the
 * sandbox verdict answers ARMED; if its worker dies meanwhile, with done.end = VX_END_LOST. `task`
 * is UINT32_MAX there.
 *
 * Sleeping. vx_pool_next returning 0 means that the caller is about to wait on vx_pool_fd: from
 * then on workers write to it. It may be called at any time, however the caller was woken.
 * Completions wake at once; output, and the start of a task that is not persistent, within 10 ms
 * (or with the next completion), so that a short task costs one wake-up.
 *
 * A slot that was asked for SIGKILL is over within a few seconds, whoever hangs: a worker that does
 * not obey in VX_FS_END_MS is killed, a fork server that does not see to that likewise, and the
 * task is EXITED as stopped.
 *
 * Descriptors: four, one for each slot once it was used, and one after the first SIGKILL. -EMFILE
 * names the limit. Thread rule: everything here is called from the main thread. */
#ifndef VX_POOL_H
#define VX_POOL_H

#include "vx/desc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vx_pool;
struct vx_err;

struct vx_pool_opts {
	uint32_t slots; /* the most workers: CPU slots plus persistent tasks */
	/* vx-init, opened once and passed down by descriptor; NULL: sandboxing is refused with the
	 * reason */
	const char *init_path;
	const char *bwrap_path; /* resolved on vx's own PATH; NULL: as above */
};

enum vx_pool_kind {
	VX_POOL_STARTED = 1,
	VX_POOL_OUTPUT,
	VX_POOL_EXITED,
	VX_POOL_LOST,
	VX_POOL_ARMED
};

struct vx_pool_event {
	enum vx_pool_kind kind;
	uint32_t slot, task;
	uint16_t attempt;
	/* STARTED, EXITED, ARMED; LOST: end = VX_END_LOST and the reason in text */
	struct vx_done done;
	uint8_t stream;    /* OUTPUT */
	const void *bytes; /* OUTPUT: valid until the next call */
	uint32_t length;
	uint64_t ns;
};

struct vx_pool_stats {
	uint32_t fork_servers, workers, box_hosts; /* started so far */
	uint64_t wakes;                            /* eventfd writes to workers */
	uint64_t dispatches;
};

int vx_pool_start(const struct vx_pool_opts *o, struct vx_pool **ret, struct vx_err *err);
int vx_pool_fd(const struct vx_pool *p);
/* -E2BIG, -EPIPE, -EBUSY, -ENOMEM, -EMFILE */
int vx_pool_run(struct vx_pool *p, uint32_t slot, const struct vx_task_desc *d, struct vx_err *err);
int vx_pool_arm(
	/* asks a free slot for the sandbox verdict; `weaker`: the nested profile will do as well */
	struct vx_pool *p, uint32_t slot, bool weaker);
/* to whatever the slot runs now; nothing when it is free */
int vx_pool_stop(struct vx_pool *p, uint32_t slot, int sig);
/* 1, 0 nothing now, -EPIPE the pool is broken for good */
int vx_pool_next(struct vx_pool *p, struct vx_pool_event *ret);
/* spare this child of the main thread in a sweep */
void vx_pool_exempt(struct vx_pool *p, pid_t pid, bool on);
void vx_pool_stats(const struct vx_pool *p, struct vx_pool_stats *ret);
void vx_pool_end(struct vx_pool *p); /* also frees; NULL is fine */

/* Hidden verbs of the binary, for main alone, which ends with what they return. argv as executed by
 * the pool and by workers. */
int vx_forkserver_main(int argc, char **argv); /* "vx" "-forkserver" ... */
int vx_boxhost_main(int argc, char **argv);    /* "vx" "-boxhost" ... */

#endif
