/* The box host, in three files: host.c (its life: namespaces, the loop, the end), attempt.c (one
 * task: placeholders, tree, supervision, verdict) and launch.c (the bubblewrap backend: arguments,
 * descriptors, filters). See vx/box.h for its place, wire.h for its messages. */
#ifndef VX_BOX_HOST_H
#define VX_BOX_HOST_H

#include "placeholders.h"
#include "seccomp.h"
#include "tree.h"
#include "wire.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/initproto.h"

#define HOST_MAX_COVERS 32      /* entries of /proc that root's uid could write */
#define HOST_ERRTEXT_BYTES 4096 /* what is kept of bubblewrap's complaints */

struct attempt {
	bool active;
	struct vx_arena arena;
	struct vx_sbx_request r;
	struct place_set places;
	pid_t pid;                  /* bwrap, outside */
	int pidfd, control, errors; /* its pidfd; vx-init's control socket; its error pipe */
	uint64_t asked_ns;
	bool ready;     /* vx-init runs and the mounts are in place */
	bool killed;    /* SIGKILL was asked for */
	uint64_t early; /* signals that came before it was ready, bit per signal */
	struct tree tree;
	/* code 0: none. Why the mounts could not be made, after bwrap had started */
	struct vx_err build_err;
	struct vx_init_msg last; /* FAILED or EXITED; kind 0: neither */
	struct vx_done done;
	struct vx_buf complaints;
};

struct host {
	int sock, worker, init; /* BOX_FD_* */
	const char *bwrap;
	bool plain; /* no namespaces of our own: bubblewrap makes every mount */
	bool root;  /* uid 0 */
	struct tree_base base;
	int root_fd;               /* the host's files: base.host_fd, or / when plain */
	int rules_fd[8], newer_fd; /* filters, made on first need; index: enum of launch.c */
	struct {
		const char *path;
		bool is_dir;
	} covers[HOST_MAX_COVERS];
	uint32_t n_covers;
	struct vx_arena arena;
	struct place_record record;
	struct attempt at;
};

/* attempt.c */
/* takes the descriptors; answers the worker itself when it refuses */
void attempt_begin(struct host *h, int fds[BOX_MAX_FDS]);
void attempt_control(struct host *h); /* vx-init has spoken */
void attempt_errors(struct host *h);  /* bubblewrap has complained */
/* bwrap has ended: reaps, sweeps, answers */
void attempt_end(struct host *h);
void attempt_signal(struct host *h, int sig);
void attempt_abandon(struct host *h); /* the worker is dead: kills, reaps, sweeps */

/* launch.c */
int launch(struct host *h, const int fds[BOX_MAX_FDS], struct vx_err *err);
int launch_find_covers(struct host *h);
/* descriptor of the rules, kept */
int launch_filter(struct host *h, struct box_seccomp o, struct vx_err *err);
/* plain.c: the whole request as bubblewrap's own arguments */
int plain_args(struct host *h, struct vx_buf *args, struct vx_err *err);
int plain_checks(struct host *h, struct vx_err *err); /* a memfd for VX_INIT_FD_CHECKS */

#endif
