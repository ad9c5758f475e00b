/* What `vx init` writes: a project's vx.json, made from its scripts or from what turbo.json says
 * about it. Pure: the caller writes the files. */
#ifndef VX_INITGEN_H
#define VX_INITGEN_H

#include "vx/plan.h"

struct vx_arena;
struct vx_buf;

/* Appends the text of p's vx.json and returns the number of tasks in it; 0: there is nothing to
 * write. Notes (one line each, what could not be said in a vx file) are added to `notes`. The
 * workspace was loaded with its configuration. */
uint32_t vx_init_from_scripts(const struct vx_workspace *ws, const struct vx_project *p,
	struct vx_arena *a, struct vx_buf *out);
uint32_t vx_init_from_turbo(const struct vx_workspace *ws, const struct vx_project *p,
	struct vx_arena *a, struct vx_buf *out, struct vx_strlist *notes);

#endif
