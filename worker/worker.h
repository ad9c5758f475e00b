/* The worker, inside.
 *
 * One process, one thread, one task at a time. Everything is non-blocking but vx_spawn; the loop in
 * main.c sleeps in one ppoll on the request eventfd, the pidfds of fork server and scheduler, the
 * capture pipes, the box host, and wakes for SIGCHLD, which is blocked everywhere else.
 *
 *   main.c      the loop, requests, publishing, sleeping
 *   spawn.c     from a descriptor to a running command
 *   capture.c   the pipes, frames, back-pressure, the end of output
 *   stop.c      time limit, stop requests, leftovers, reaping and what it cost
 *   limits.c    what a task may use; cgroup.c: the cgroups that see to it
 *
 * An attempt goes through the phases of enum phase in that order (a sandboxed one starts in
 * BOXING). */
#ifndef WORKER_H
#define WORKER_H

#include "cgroup.h"

#include "vx/arena.h"
#include "vx/box.h"
#include "vx/desc.h"
#include "vx/region.h"

#include <sys/resource.h>

/* output and starts may wait this long for an exit to be told with them */
#define VX_TELL_DELAY_MS 10
/* while something is being killed, look again after this: a fork may have escaped the pass */
#define VX_KILL_AGAIN_MS 10
/* the kernel's resident counters are approximate by a few pages a CPU */
#define VX_PEAK_SLACK_KIB 256

enum phase {
	IDLE,
	BOXING,   /* the box host is building the sandbox */
	RUNNING,  /* the command's own process lives */
	LEAVING,  /* it has exited; what it left is being ended */
	DRAINING, /* nothing of it is left; output that someone still holds open is read */
};

enum why { WHY_ITSELF, WHY_TIMEOUT, WHY_STOPPED };

struct stream {
	int fd; /* read end, -1 closed: its end was seen */
	/* our own write end: no end-of-file while the command runs, one wake less per task */
	int keep_fd;
	uint64_t must; /* bytes that were in the pipe when the tree was gone: read in any case */
};

struct limits {
	struct cgroup_place place; /* once found */
	struct cgroup cgroup;      /* the attempt's, while joined */
	bool found, joined;
};

struct attempt {
	enum phase phase;
	enum why why;
	struct vx_task_desc d;
	struct vx_done done;      /* filled as things become known, published at the end */
	struct stream streams[2]; /* stdout, stderr */
	int in_fd;                /* write end of a persistent task's stdin */
	pid_t pid;
	uint64_t cpu_ns, peak_kib;
	uint64_t deadline_ns; /* time limit; 0 none */
	uint64_t kill_ns;     /* SIGKILL for what has not gone; 0 not asked to go */
	uint64_t cut_ns;      /* end of reading what is held open */
	int sent;             /* the last signal that was sent to the tree */
	bool killing;         /* SIGKILL to everything, again and again until nothing is left */
};

struct worker {
	struct vx_region region;
	struct vx_slot *slot;
	uint32_t index;
	int request_fd, pool_event_fd, scheduler_fd, fork_server_fd, init_fd;
	const char *bwrap_path;
	struct vx_box *box;    /* made on the first sandboxed task */
	struct vx_arena arena; /* the attempt's */
	struct attempt a;
	struct limits limits;
	/* when the scheduler, asleep, is told of what was published; 0 nothing to tell */
	uint64_t tell_ns;
	bool arming, ending;
	bool childless;        /* the last look found no child, and none was made since */
	uint64_t own_peak_kib; /* our own high-water mark when it was last read; it only grows */
};

struct vx_worker_start {
	struct vx_region region;
	uint32_t slot;
	int request_fd, pool_event_fd, scheduler_fd, fork_server_fd, init_fd;
	const char *bwrap_path;
};

/* main.c. Called in the forked child; never returns. */
__attribute__((noreturn)) void vx_worker_main(const struct vx_worker_start *s);
void worker_publish(struct worker *w, const struct vx_done *d, bool at_once);
void worker_tell(struct worker *w, bool at_once);
__attribute__((noreturn)) void worker_die(struct worker *w, int status);
int worker_box(struct worker *w); /* makes the handle; 0 or -errno */

/* spawn.c */
/* from w->a.d to RUNNING or BOXING, or straight to the completion of a failure */
void spawn_attempt(struct worker *w);

/* capture.c */
int capture_open(struct attempt *a, const char **ret_step);
bool capture_blocked(const struct worker *w); /* the output ring is too full to go on reading */
void capture_read(struct worker *w, int i);   /* poll says that streams[i] is readable */
/* enters and works on DRAINING; IDLE when the end is reached */
void capture_drain(struct worker *w);
void capture_close(struct attempt *a);

/* stop.c */
void stop_request(struct worker *w, int sig);
void stop_timers(struct worker *w, uint64_t now);
bool stop_spares(void *worker, pid_t pid);
bool stop_reap(struct worker *w);  /* false: nobody is left but who is spared */
void stop_leave(struct worker *w); /* works on LEAVING; on to DRAINING when nobody is left */
void stop_exited(struct worker *w, int status);
void stop_settle(struct worker *w); /* how it ended and what it used, into a.done */

/* limits.c */
/* before the spawn: a cgroup with the limit, or the flag that there is none */
void limits_join(struct worker *w);
/* everything in the attempt's cgroup, where there is one: nothing escapes that */
void limits_kill(struct worker *w);
void limits_settle(struct worker *w); /* after the end: peak, out of memory; removes the cgroup */
void limits_remove(struct worker *w); /* at the worker's end */

#endif
