/* The worker's handle on its box host, the process that builds sandboxes and spawns bubblewrap.
 *
 * A worker makes at most one box host, on its first sandboxed task (or VX_REQ_ARM), and keeps it.
 * The host is an exec of the same binary in a user and a mount namespace of its own; the worker
 * writes its id maps, then both talk over a socket pair, one task at a time. The host polls the
 * worker's pidfd: when the worker dies, it kills and reaps everything and goes. If the host dies,
 * the attempt under way ends as VX_BOX_LOST (its tree has died with its pid namespace), and the
 * next start makes a new host.
 *
 *   vx_box_start   resolve, create placeholders, build the tree, spawn bwrap -> vx-init -> command.
 *                  Returns when the request is handed over.
 *   vx_box_fd      is readable when vx_box_next has an event
 *   vx_box_signal  to the command's session inside, through vx-init; SIGKILL kills pid 1 and thus
 *                  everything
 *
 * The host sweeps placeholders after the attempt; what it created is also on record in
 * spec.record_dir, so that the worker sweeps when vx dies and the next run when all died. Thread
 * rule: one thread. */
#ifndef VX_BOX_H
#define VX_BOX_H

#include "vx/desc.h"

#define VX_BOX_MAX_CGROUPS 2 /* hierarchies */

struct vx_box;

struct vx_box_opts {
	const char *bwrap_path; /* NULL: every start is refused with the reason */
	int init_fd;            /* vx-init, open for execution; -1 likewise */
};

enum vx_box_kind {
	VX_BOX_STARTED = 1, /* the command runs; done.start_ns and setup_ns are set */
	/* done: end, code, signal, cpu_ns, peak_bytes, text; the tree is gone, placeholders are
	 * swept */
	VX_BOX_EXITED = 2,
	VX_BOX_REFUSED = 3, /* nothing ran; done.text is the reason */
	VX_BOX_LOST = 4,    /* the host or vx-init's supervision died */
	VX_BOX_ARMED = 5    /* verdict; done.end is VX_END_EXIT or VX_END_REFUSED with done.text */
};

int vx_box_new(const struct vx_box_opts *o, struct vx_box **ret); /* starts nothing yet */
/* `out_fd`, `err_fd`: the write ends of the capture pipes; `in_fd`: stdin, -1 /dev/null. All stay
 * the caller's. */
int vx_box_start(struct vx_box *b, const struct vx_task_desc *d, int in_fd, int out_fd, int err_fd,
	struct vx_err *err);
/* Of the next start: cgroup.procs descriptors (-1 none, at most VX_BOX_MAX_CGROUPS) that what runs
 * in the sandbox joins, bubblewrap included. Borrowed until then. */
void vx_box_join(struct vx_box *b, const int *procs_fds, uint32_t n);
/* `weaker`: the nested profile will do as well */
int vx_box_arm(struct vx_box *b, bool weaker, struct vx_err *err);
/* changes after a loss: ask before each poll; -1 while there is no host */
int vx_box_fd(const struct vx_box *b);
/* 1, 0 nothing now */
int vx_box_next(struct vx_box *b, enum vx_box_kind *ret_kind, struct vx_done *ret);
int vx_box_signal(struct vx_box *b, int sig);
/* 0 while there is none; the worker's sweep must spare it */
pid_t vx_box_pid(const struct vx_box *b);
void vx_box_free(struct vx_box *b); /* ends the host and reaps it */

/* Sweeps what earlier runs left on record in `record_dir` (a record is locked by whoever may still
 * use it). -EPERM with `err` set: an attempt was cut short, and where it could write there is a
 * name now that no task may make (vx/protect.h); until a person has decided, nothing is run. Other
 * -errno without a text: nothing could be swept. Called once at the start of a run. */
int vx_box_sweep_records(const char *record_dir, struct vx_err *err);

#endif
