/* Between the pool and its fork server: descriptors, arguments, control messages.
 *
 * The pool executes /proc/self/exe as `forkserver -forkserver SLOTS INIT BWRAP` with the
 * descriptors below, in a session of its own, in "/". INIT is "1" when vx-init's descriptor is
 * there, else "0"; BWRAP is "" when there is none. Everything else that vx was started with is
 * closed, so that no task sees it. Control messages are single packets on a SOCK_SEQPACKET pair;
 * VX_FS_FORK carries the slot's request eventfd (SCM_RIGHTS).
 *
 *   pool -> fork server   FORK    create the worker of `slot`, its `generation`th
 *                         KILL    SIGKILL to the worker of `slot` if it is still of that generation
 *                         END     wait until all workers have gone, kill the rest after
 *                                 VX_FS_END_MS, exit. A closed socket means the same.
 *   fork server -> pool   DIED    the worker is gone, and so is everything that it left; `status`
 *                         is its wait(2) status
 *                         FAILED  it could not be forked: `status` is -errno
 *
 * A worker is created with the request eventfd, the region, the pool's eventfd, both pidfds and
 * vx-init's descriptor; everything else is closed in it. What a fork server and a worker ignore:
 * SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE.
 *
 * Death. A worker watches the pidfds of fork server and scheduler, the fork server that of the
 * scheduler. Whoever sees one die ends everything below itself and exits. Nobody kills a worker for
 * that before VX_FS_END_MS have passed: it is the one that knows its tree, and its killer may be
 * killed next. Only orphans of workers that are dead are killed at once. So of the three any two
 * may die at any moment. That all three are killed in one instant is made unlikely rather than
 * survived: who kills by name (pkill, killall) means "vx", and neither the fork server's name nor
 * its command line has that. A fourth process above it would only move the case to four. */
#ifndef VX_FORKSERVER_H
#define VX_FORKSERVER_H

#include <stdint.h>

enum {
	VX_FS_CONTROL_FD = 3,
	VX_FS_REGION_FD,
	VX_FS_SCHEDULER_FD,
	VX_FS_POOL_EVENT_FD,
	VX_FS_INIT_FD /* absent without vx-init */
};
#define VX_FS_END_MS 1000

enum vx_fs_kind { VX_FS_FORK = 1, VX_FS_KILL, VX_FS_END, VX_FS_DIED, VX_FS_FAILED };

struct vx_fs_message {
	uint32_t kind, slot, generation;
	int32_t status;
};

#endif
