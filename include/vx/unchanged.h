/* The memory of a run that had nothing to do: every task was a hit and every output was in place.
 * While every fact that this rested on still holds, the next run of the same question by the same
 * build has nothing to do either, and is told so in one pass over the facts: no plan, no keys, no
 * index.
 *
 *   vx_unchanged_open     reads .vx/unchanged; proves nothing yet
 *   vx_unchanged_found    what it says, NULL where there is none: answer, environment and store are
 *                         the caller's to compare (they are cheap)
 *   vx_unchanged_holds    stats every file and directory, on all CPUs. With the workspace locked,
 *                         since a run that works there now changes them
 *
 * and where the ordinary way was gone and found every task in place:
 *
 *   vx_unchanged_begin    throws away what was found
 *   vx_unchanged_keyer    everything that plan and keys came from. False: of a kind that is not
 *                         kept
 *   vx_unchanged_item     a directory or file as it is known to have been (outputs); a path of the
 *                         root, "." the root itself
 *   vx_unchanged_absent   nothing is to be there
 *   vx_unchanged_keep     completes it and writes it beside and renames it in
 *
 * The facts: every file of the workspace that git tracks or does not ignore (each by lstat: size,
 * inode, mtime, ctime), every directory whose listing counted, every file and absence that planning
 * read, git's index, configuration, excludes and attributes, the fingerprint, outputs and their
 * directories. A name that appears or goes changes its directory, so absences inside known
 * directories need no fact of their own. Each directory on the way to a file is itself a fact: none
 * can be swapped for a link. A fact that may have changed unseen (time stamps too near to the run
 * that saw it) means that nothing is kept; the next run tries again.
 *
 * Not kept: what vx/snapshot.h does not keep; runtime probes; a turbo.json whose inputs or
 * globalDependencies are looked for on the disk; a workspace below the top of its repository, or
 * with repositories inside; a file list that git gave; facts on several file systems.
 * VX_NO_SNAPSHOT=1 turns it off. It is believed for VX_UNCHANGED_NS at most, so that the store
 * learns of the use of its entries. Thread rule: one thread. */
#ifndef VX_UNCHANGED_H
#define VX_UNCHANGED_H

#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>

#define VX_UNCHANGED_NS 3600000000000ULL
#define VX_UNCHANGED_MAX_BYTES ((uint64_t)1 << 30)

struct vx_keyer;
struct vx_unchanged;

struct vx_unchanged_answer {
	uint32_t n_tasks, n_projects; /* groups not counted */
	uint64_t saved_ns;
	uint64_t store[6];     /* the store's stamp, whatever that is to the caller */
	const char *store_dir; /* lives as long as the memory, as does ... */
	bool broad;
	const char *printed; /* ... what it printed in front of its last lines */
	size_t printed_n;
};

/* `asked`: everything besides files and environment that decides the run and what it prints. Never
 * NULL; nothing fails. */
struct vx_unchanged *vx_unchanged_open(const char *root, struct vx_strs asked);
const struct vx_unchanged_answer *vx_unchanged_found(const struct vx_unchanged *u);
bool vx_unchanged_holds(struct vx_unchanged *u, struct vx_strs forwarded);
void vx_unchanged_close(struct vx_unchanged *u);

void vx_unchanged_begin(struct vx_unchanged *u);
bool vx_unchanged_keyer(struct vx_unchanged *u, struct vx_keyer *k);
struct vx_unchanged_stat {
	uint64_t ino, size, mtime_ns, ctime_ns; /* of a directory the size is not looked at */
};
void vx_unchanged_item(struct vx_unchanged *u, const char *path, bool directory,
	const struct vx_unchanged_stat *st);
void vx_unchanged_absent(struct vx_unchanged *u, const char *path);
/* 0 also when something is too young to be kept. */
int vx_unchanged_keep(struct vx_unchanged *u, const struct vx_unchanged_answer *a);

#endif
