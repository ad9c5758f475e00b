/* Inside the config module: evaluations of JS configurations that are used again.
 *
 * Kept in ROOT/.vx/config-evaluations.json (when ROOT/.vx is there), all of a run together. Used
 * only while the same files are asked for, by the same runtime and the same driver, and everything
 * that the evaluation read gives the same digest: contents of files, names in directories, what was
 * absent, and the values of environment variables (of which only digests are stored). */
#ifndef VX_JS_MEMORY_H
#define VX_JS_MEMORY_H

#include "cfg.h"

/* `runtime` names the program and what it is. 1: *ret_json is the kept answer; 0: there is none
 * that holds. */
int js_memory_get(const struct vx_workspace *ws, struct vx_strs files, const char *runtime,
	struct vx_arena *a, struct vx_json **ret_json);
/* Takes `answer`'s members "read" and "results". Nothing is kept when something that was read
 * changed after start_ns (wall time, before the evaluation began): its digest would not be that of
 * what the evaluation saw. Failures to write are nobody's error. */
void js_memory_put(const struct vx_workspace *ws, struct vx_strs files, const char *runtime,
	uint64_t start_ns, const struct vx_json *answer, struct vx_arena *a);

#endif
