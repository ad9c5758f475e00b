/* Inside the config module: vx.config.{ts,mts,cts,js,mjs,cjs}. docs/config.md, "JS and TypeScript".
 *
 * All files of a run are evaluated in one process, whose answers are kept for vx_js_take. Nothing
 * is spawned when there are none. */
#ifndef VX_JS_H
#define VX_JS_H

#include "cfg.h"

#include "vx/config.h"

struct js_results {
	struct vx_json *json; /* NULL: nothing was evaluated. Freed by js_free */
	struct vx_strs files; /* root-relative, parallel to the results */
	uint32_t next;
};

/* The root-relative name of the JS configuration of a project's directory; NULL when it has
 * none. */
/* The one of the workspace, NULL none. */
const char *js_workspace_file(const struct vx_workspace *ws);
const char *js_file_of(const struct vx_project *p, struct vx_arena *a);

int js_evaluate(const struct vx_workspace *ws, struct vx_arena *a, struct js_results *ret,
	struct vx_err *err);
/* The same from evaluations that were made before. */
int js_given(const struct vx_workspace *ws, const struct vx_evaluations *given, struct vx_arena *a,
	struct js_results *ret, struct vx_err *err);
/* What was evaluated, for another load. */
void js_told(const struct js_results *r, struct vx_arena *a, struct vx_evaluations *ret);
/* The value of one file (borrowed), or the error that its evaluation ended in. */
int js_take(struct js_results *r, const char *file, const struct vx_json **ret, struct vx_err *err);
void js_free(struct js_results *r);

#endif
