/* From words on the command line to tasks: scopes, filters, requested names. Rules: docs/config.md,
 * "Filters". */
#ifndef VX_SELECT_H
#define VX_SELECT_H

#include "vx/plan.h"

struct vx_arena;
struct vx_err;

struct vx_select_opts {
	const char *cwd;        /* root-relative directory the command was given in */
	bool all;               /* --all */
	struct vx_strs filters; /* --filter, as written */
	bool affected; /* --affected: the selection is broad, and narrowed later (affected.h) */
	struct vx_strs words; /* "task" or "pkg#task", as typed */
	bool wants_tasks;     /* no word at all is an error that lists what there is */
	/* Which of the changed paths concerns every project, besides those that
	 * vx_changed_concerns_all knows; NULL: not asked (vx_affected_global). */
	int (*global)(const struct vx_workspace *ws, struct vx_strs paths, struct vx_arena *a,
		const char **ret_path, struct vx_err *err);
};

struct vx_request_task {
	uint32_t project;
	const char *task;
};

struct vx_selection {
	const uint32_t *projects; /* chosen by scope or filters, workspace order */
	uint32_t n_projects;
	const struct vx_request_task *tasks; /* requested */
	uint32_t n_tasks;
	/* a selection flag was given, or all projects of a root run: how the report shows it */
	bool broad;
	const char *nothing; /* set: an empty git selection; say this line and exit 0 */
	/* --affected chooses tasks: reason of each requested one, parallel to `tasks`; NULL
	 * otherwise */
	const char *const *reasons;
};

/* Every word must name a task that at least one selected project declares (else -ENOENT with what
 * was asked, the nearest spelling, what exists). */
int vx_select(const struct vx_workspace *ws, const struct vx_select_opts *o, struct vx_arena *a,
	struct vx_selection *ret, struct vx_err *err);

#endif
