/* The memory of a plan: workspace, selection, graph and keys of an earlier run, used whole while
 * every fact that the plan came from still holds.
 *
 *   vx_snapshot_open     looks for one that was made for the same question by the same build; reads
 *                        it, proves nothing yet
 *   vx_snapshot_take     stats every file, directory and absence that the plan was read from, and
 *                        lists directories anew in which names alone
 *                        counted; true: workspace, selection and graph are filled from it
 *   vx_snapshot_facts    the recorder to plan under when there was none (vx_facts_use)
 *   vx_snapshot_planned  here is the plan that was derived instead; kept for the next run by
 *                        vx_keyer_remember, if it may be
 *   vx_snapshot_free     after the plan and every keyer that used it: what vx_snapshot_take filled
 *                        in lives here
 *
 * It is one file of the workspace, .vx/plan, written beside and renamed in, never a database: it is
 * wanted before any setting is known that says where the store is. Its body is an image of the
 * plan's structs at a fixed address (VX_IMAGE_BASE): where that address is taken, there is no
 * snapshot. A file that is another user's, another build's, cut off, changed, or of another
 * question is no snapshot. A checkout cannot bring one along: inode and change time of the root and
 * of every file read are among what must hold before anything of the body is looked at.
 *
 * Not kept: plans that asked git (--affected, [ref] filters), workspaces with configs that are
 * programs, facts that may have changed unseen (their time stamps are too young). VX_NO_SNAPSHOT=1
 * turns it off. Input files are no facts of the plan: the keyer looks at all of them in every run,
 * and reuses a key only where everything that it folds is equal (key.h, opts.snapshot). Thread
 * rule: one thread. */
#ifndef VX_SNAPSHOT_H
#define VX_SNAPSHOT_H

#include "vx/plan.h"
#include "vx/select.h"

#define VX_IMAGE_BASE 0x200000000000ULL
#define VX_MAX_IMAGE_BYTES ((size_t)1 << 30)

struct vx_facts;
struct vx_snapshot;

/* `asked`: everything besides files that decides the plan (cwd, flags, words), in one order. Never
 * NULL; nothing fails. */
struct vx_snapshot *vx_snapshot_open(const char *root, struct vx_strs asked);
bool vx_snapshot_take(struct vx_snapshot *s, struct vx_workspace *ws, struct vx_selection *sel,
	struct vx_graph *g);
struct vx_facts *vx_snapshot_facts(struct vx_snapshot *s);
/* All three are borrowed until vx_snapshot_free. */
void vx_snapshot_planned(struct vx_snapshot *s, const struct vx_workspace *ws,
	const struct vx_selection *sel, const struct vx_graph *g);
void vx_snapshot_free(struct vx_snapshot *s);

#endif
