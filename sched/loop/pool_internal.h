/* The pool, inside: pool.c dispatches and yields events, pool_server.c starts, watches, replaces
 * and ends the fork server. */
#ifndef POOL_INTERNAL_H
#define POOL_INTERNAL_H

#include "vx/buf.h"
#include "vx/forkserver.h"
#include "vx/pool.h"
#include "vx/proctree.h"
#include "vx/region.h"
#include "vx/slab.h"

#define NO_TASK UINT32_MAX

struct pool_slot {
	int request_fd;      /* -1 until first use; kept from worker to worker */
	uint32_t generation; /* of its latest worker */
	bool has_worker;     /* asked for, and not known to be dead */
	bool hosts;          /* that worker has been given sandboxed work */
	bool busy;           /* in p->active: runs a task, or is asked for the verdict */
	bool arming;
	/* its worker broke the protocol: nothing more is read from it, it is being killed */
	bool poisoned;
	bool holding; /* `held` is EXITED, and waits for the output before it */
	bool has_slab;
	uint32_t task;
	uint16_t attempt;
	int pending_signal; /* a stop that did not fit into the ring */
	uint64_t kill_ns;   /* when SIGKILL was first asked for; 0 not */
	bool overdue;       /* its worker did not carry that out, and is killed itself */
	/* why has_worker went: wait(2) status, -errno of the fork, or POOL_LOST_SERVER */
	int lost_status;
	uint64_t slab;
	struct vx_request request; /* what it is busy with */
	uint64_t request_at;       /* where that lies in the ring */
	bool sandboxed, again;     /* `again`: this request was handed over a second time */
	struct vx_done held;
};

enum { POOL_LOST_SERVER = 1 << 20 };

struct vx_pool {
	struct vx_region region;
	struct vx_slabs slabs;
	struct pool_slot *slots;
	uint32_t n_slots;
	uint32_t *active, n_active, at; /* busy slots; where the next look starts */
	uint32_t streak;                /* events that came from that slot, one after the other */
	int epoll_fd, event_fd, self_fd, init_fd;
	/* while a SIGKILL is to be carried out, to see that it is; -1 until the first */
	int timer_fd;
	int control_fd, server_fd; /* the fork server's socket and pidfd; -1 when there is none */
	pid_t server_pid;
	char *bwrap_path;
	bool broken;           /* the replacement died too */
	bool unswept;          /* something that was killed did not die in time */
	bool sleeping;         /* vx_pool_next has answered 0 since the last look at epoll */
	uint32_t unlooked;     /* events since the last look */
	struct vx_pids exempt; /* children of ours that no sweep may touch */
	struct vx_pool_stats stats;
	struct vx_buf desc;
	unsigned char bytes[VX_FRAME_MAX];
};

/* pool_server.c */
int pool_server_start(struct vx_pool *p, struct vx_err *err);
int pool_server_fork(struct vx_pool *p, uint32_t slot);  /* asks for a worker */
void pool_server_kill(struct vx_pool *p, uint32_t slot); /* asks for its end */
/* takes messages and deaths; marks slots that lost their worker */
void pool_server_look(struct vx_pool *p);
void pool_server_expect(
	/* of a slot that has been asked for SIGKILL: it is over in time, or whoever does not obey
	 * is killed */
	struct vx_pool *p, uint32_t slot);
void pool_server_overdue(struct vx_pool *p); /* when the timer says so */
void pool_server_end(struct vx_pool *p);     /* the polite end, then the other */

#endif
