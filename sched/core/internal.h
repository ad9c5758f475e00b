/* Inside the core: one record per task, a few queues threaded through the records, and a work list
 * that carries consequences along the edges.
 *
 * states.c answers events (a state x event table), flow.c carries consequences (released, blocked,
 * needed, over) from task to task without recursion, queues.c holds the queues, order.c computes
 * the ready order once, core.c makes decisions out of the queues. Everything is allocated in
 * vx_core_new. */
#ifndef VX_SCHED_CORE_INTERNAL_H
#define VX_SCHED_CORE_INTERNAL_H

#include "vx/core.h"

#define NONE UINT32_MAX

enum state {
	S_IDLE,     /* waits for upstream, or is a server that nobody needs yet */
	S_READY,    /* in the heap */
	S_KEY_WAIT, /* DO_KEY not fetched yet */
	S_KEYING,
	S_RESTORE_WAIT, /* waits for the lane */
	S_RESTORING,
	S_RETRY_WAIT, /* DO_RETRY not fetched yet */
	S_RUNNING,    /* holds slots */
	S_SERVING,    /* persistent and ready: lives, holds none */
	S_SAVE_WAIT,  /* exited well, waits for the lane */
	S_SAVING,     /* not captured yet */
	S_DONE,       /* `result` stands; the save may still be settling */
	S_COUNT
};

enum work {
	W_RELEASE = 1, /* tell dependents that this one is ready, restored or captured */
	W_BLOCK = 2,   /* tell dependents that this one failed or was skipped */
	/* does it still count as one that will execute? tell upstream if that changed */
	W_NEED = 4,
	W_OVER = 8, /* nothing downstream of it is left, perhaps: tell upstream */
};

struct task {
	/* what it is */
	const uint32_t *deps;
	uint64_t memory_bytes;
	/* dependents are c->out[first_out ..< tasks[i + 1].first_out] */
	uint32_t n_deps, first_out;
	uint32_t rank, cpus, retries;
	bool group, persistent, requested, alone, waits_ready;
	/* where it is */
	uint8_t state, verdict, result, work;
	bool released, blocked, tainted, counted, over, in_heap, save_open, save, moved, stopping,
		was_ready, lost_once, last_failed, flaky, in_stop;
	uint8_t stop_signal; /* the queued DO_STOP; 0 none */
	uint16_t attempt;
	uint32_t failures;
	uint32_t waiting; /* upstream not released yet */
	uint32_t needers; /* direct dependents that will execute */
	uint32_t open;    /* direct dependents that are not over */
	uint32_t blocker; /* the failure at the root */
	uint32_t next, next_stop, next_work;
};

struct queue {
	uint32_t head, tail;
};

struct vx_core {
	struct vx_core_opts o;
	struct task *tasks; /* n + 1, the last one bounds `out` */
	uint32_t *out;
	uint32_t *heap, *by_rank; /* ranks; rank -> task */
	uint32_t n, n_heap;
	struct queue key, restore, save, retry, done, stop, work;
	struct vx_core_counts counts;
	uint64_t memory_used_bytes;
	uint32_t total_done;       /* groups too */
	uint32_t keying, settling; /* settling: DO_SAVE without EV_SETTLED */
	int signal;                /* the first interrupt */
	bool alone_runs, halted, swept, foreground, ended;
};

/* queues.c */
void core_push(struct vx_core *c, struct queue *q, uint32_t i);
uint32_t core_pop(struct vx_core *c, struct queue *q); /* NONE: empty */
void core_pop_ready(struct vx_core *c);                /* the lowest rank goes */
void core_stop(struct vx_core *c, uint32_t i, int sig);
void core_make_ready(struct vx_core *c, uint32_t i);
void core_give_slot_back(struct vx_core *c, struct task *t);

/* order.c: ranks by longest remaining path */
void core_order(struct vx_core *c, const struct vx_core_task *in);

/* flow.c */
void core_work(struct vx_core *c, uint32_t i, enum work w);
void core_drain(struct vx_core *c);                /* until no consequence is left */
void core_consider(struct vx_core *c, uint32_t i); /* an idle task: may it go on? */
void core_finish(struct vx_core *c, uint32_t i, enum vx_result r);
/* requested servers are no longer kept for their own sake */
void core_end_foreground(struct vx_core *c);
void core_halt(struct vx_core *c); /* policy never, after a failure */
/* halted and quiet: what is left is aborted */
void core_sweep(struct vx_core *c);
/* would a server be started or kept for its own sake or a dependent's? */
bool core_wanted(const struct vx_core *c, const struct task *t);
void core_initial_needs(struct vx_core *c);

/* states.c */
void core_dispatch_event(struct vx_core *c, const struct vx_core_event *e);

#endif
