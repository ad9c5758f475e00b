/* Inside --affected: narrow.c (from a selection to a narrower one), base.c, room.c (the commit's
 * workspace), compare.c (keys of both), converted.c (attributes), programs.c (configurations that
 * are programs). */
#ifndef VX_AFFECTED_NARROW_H
#define VX_AFFECTED_NARROW_H

#include "base.h"

#include "../key/key_int.h"

#include "vx/affected.h"
#include "vx/lock.h"

struct narrower {
	const struct vx_workspace *ws;
	const struct vx_affected_opts *o;
	struct vx_arena *a;
	struct vx_err *err;
	struct base base;
	struct vx_graph g, base_g;
	struct vx_keyer *now, *then; /* of the workspace, of the commit */
	/* paths whose identity differs, sorted; those that one side alone has too */
	struct vx_strs changed, came_or_went;
	bool distrusts; /* some files may be converted otherwise in the commit */
	/* by task of g: why it is affected; NULL it is not */
	const char **why;
	/* by project of ws: why nothing is known of its configuration in the commit; NULL */
	const char **untold;
	const char *program_gone; /* a configuration that the commit alone has; NULL none */
};

/* Identities of files whose bytes attributes may convert: what is known to be unchanged gets the
 * identity that it has in the commit, what may be otherwise there gets none that it has. */
int converted_settle(struct narrower *w);
/* Fills w->changed and w->came_or_went. */
int changed_find(struct narrower *w);
bool changed_has(const struct narrower *w, const char *path);
/* May it be converted otherwise in the commit? */
bool converted_distrusts(const struct narrower *w, const char *path);
/* That, or it is not known to be as it was checked out. */
bool converted_doubts(const struct narrower *w, const char *path);
/* Does it differ from the commit's blob in its line ends alone? What git would make of that is not
 * known where the index does not prove that the file is as it was checked out. */
bool converted_ends(const struct narrower *w, const char *path);

/* Which evaluations hold for the commit; fills w->untold and w->program_gone. */
int programs_sort_out(struct narrower *w, struct vx_evaluations *ret);

/* Fills w->why. */
int compare_all(struct narrower *w);

#endif
