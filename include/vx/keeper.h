/* Keepers: a program that is run for its output leaves nothing behind, whoever dies.
 *
 * What has to end with vx whatever it starts (runtime probes, configurations that are programs)
 * runs below two small processes, both the clean image of this binary:
 *
 *     vx → outer keeper → inner keeper → PROGRAM, in a session of its own → what that starts
 *
 * Both are child subreapers and watch vx's pidfd; the inner one watches the outer one's too. So
 * whatever PROGRAM starts, in new sessions too, stays below them, and any one or two of the three
 * may be killed:
 *   - vx dies, or says that the run is over, or the outer keeper dies: the inner one kills and
 *     reaps everything below it, again and again until
 *     nothing is left, and goes (vx/proctree.h). PROGRAM's own process dies with the inner keeper
 *       in any case;
 *   - the inner one dies: the outer one inherits what it leaves, and does the same;
 *   - both die: vx inherits it (vx_keeper_end), being a child subreaper from the first keeper on.
 * One that is stopped is woken by its parent's death. Whoever kills by the name "vx" (pkill) does
 * not find the outer one.
 *
 * The socket (SOCK_SEQPACKET). The inner keeper sends one struct vx_keeper_word when PROGRAM has
 * ended or could not be started; what PROGRAM has left goes on until vx closes its end. No word and
 * the end of the file: the inner keeper died.
 *
 * Thread rule: vx_keeper_end sweeps what both keepers left only when it is called from the main
 * thread, whose children alone it can tell apart. */
#ifndef VX_KEEPER_H
#define VX_KEEPER_H

#include "vx/proctree.h"
#include "vx/spawn.h"

#include <stdint.h>
#include <sys/types.h>

/* how long the inner keeper may take to end its tree before the outer one kills it; vx waits three
 * times this */
#define VX_KEEPER_END_MS 1000
#define VX_KEEPER_FDS 2U /* descriptors of VX_MAX_SPAWN_FDS that a keeper takes for itself */

struct vx_keeper_word {
	int32_t error;  /* -errno: PROGRAM could not be started */
	int32_t status; /* wait(2) */
};

struct vx_keeper {
	pid_t pid; /* the outer keeper */
	int pidfd, socket;
	struct vx_pids before; /* children of the main thread that are not the keeper's */
};

/* Starts s->path (not exec_fd) below keepers, in a session of its own; new_session, death_signal,
 * pgroup, the cgroups and new_pidns are not used. 0 or -errno; that PROGRAM itself cannot be
 * executed is said by its word. */
int vx_keeper_start(const struct vx_spawn *s, struct vx_keeper *ret);
/* k->socket was readable: 0 with the status, or the -errno of PROGRAM's start. The keeper's death
 * is the command's: a status of SIGKILL. */
int vx_keeper_status(const struct vx_keeper *k, int *ret_status);
/* Ends PROGRAM and everything that it has started, and reaps the keeper; closes and frees.
 * Something that waits in the kernel and cannot die is left to a keeper after 3 *
 * VX_KEEPER_END_MS. */
void vx_keeper_end(struct vx_keeper *k);

/* Hidden verb of the binary, called from main: "keeper" "-keeper" N_FDS PATH ARGV... */
int vx_keeper_main(int argc, char **argv);

#endif
