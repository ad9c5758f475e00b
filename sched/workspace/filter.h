/* Inside the workspace module: `--filter`. */
#ifndef VX_FILTER_H
#define VX_FILTER_H

#include "vx/select.h"

/* Sets chosen[project] for what the filters select. *ret_nothing is set where a git selection is
 * empty, which is no error. */
int vx_filter_select(const struct vx_workspace *ws, const struct vx_select_opts *o,
	struct vx_arena *a, bool *chosen, const char **ret_nothing, struct vx_err *err);

/* The nearest of the names to what was asked, if one is near; a scope need not have been typed. */
const char *vx_filter_nearest(const char *asked, struct vx_strs there);
/* What there is, for an error's last line: "a, b, c", cut where it gets long. */
const char *vx_filter_list(struct vx_strs there, struct vx_arena *a);

#endif
