/* Between worker and box host: fixed messages on a SOCK_SEQPACKET socket pair, descriptors beside
 * them, requests in a memfd.
 *
 *   worker -> host   BOX_MAPPED (id maps are written), BOX_RUN, BOX_ARM (descriptors: request,
 *                    payload, stdin, stdout, stderr, then cgroup.procs of each hierarchy to join),
 *                    BOX_SIGNAL
 *   host -> worker   BOX_UNSHARED (write my maps), BOX_READY, BOX_BROKEN (with the reason; then it
 *                    exits), BOX_EVENT (struct vx_done)
 *
 * Both ends are one binary, so the layout needs no version. The request's encoding is checked on
 * decoding all the same: lengths, counts, NULs. */
#ifndef VX_BOX_WIRE_H
#define VX_BOX_WIRE_H

#include "vx/box.h"
#include "vx/sandbox.h"

struct vx_arena;
struct vx_buf;

#define BOX_FD_SOCKET 3
#define BOX_FD_WORKER 4 /* the worker's pidfd */
#define BOX_FD_INIT 5   /* vx-init */
#define BOX_FIXED_FDS 5
#define BOX_MAX_FDS (BOX_FIXED_FDS + VX_BOX_MAX_CGROUPS)
/* bytes of one encoded request: VX_MAX_MOUNTS of the longest paths do not fit, what is met in
 * practice does */
#define BOX_MAX_REQUEST (256U << 20)

enum box_msg_kind {
	BOX_MAPPED = 1,
	BOX_RUN,
	BOX_SIGNAL,
	BOX_UNSHARED,
	BOX_READY,
	BOX_BROKEN,
	BOX_EVENT
};

/* What failed while the host made itself a place to work in; worker/box/availability.c turns it into
 * advice. */
enum box_step {
	BOX_STEP_NONE,
	BOX_STEP_USERNS,
	BOX_STEP_MAPS,
	BOX_STEP_MOUNTNS,
	BOX_STEP_BASE,
	BOX_STEP_SECCOMP,
	BOX_STEP_SPAWN,
	BOX_STEP_BWRAP
};

struct box_msg {
	uint32_t kind;
	uint32_t box_kind; /* BOX_EVENT: enum vx_box_kind */
	uint32_t step;     /* BOX_BROKEN */
	int32_t error;     /* BOX_BROKEN: -errno */
	int32_t signal;    /* BOX_SIGNAL */
	struct vx_done done;
};

int box_send(int sock, const struct box_msg *m, const int *fds, uint32_t n_fds);
/* 1 with a message (fds[] filled, close-on-exec, -1 where none), 0 the other end is gone, -EAGAIN
 * (with MSG_DONTWAIT in flags). */
int box_recv(int sock, int flags, struct box_msg *ret, int fds[BOX_MAX_FDS]);

int box_request_encode(const struct vx_sbx_request *r, const char *record_dir, struct vx_buf *out);
/* -EBADMSG */
int box_request_decode(const void *p, size_t n, struct vx_arena *a, struct vx_sbx_request *ret,
	const char **ret_record_dir);

#endif
