/* Inside the config module: reading JSON values with errors that say where. */
#ifndef VX_CFG_H
#define VX_CFG_H

#include "vx/json.h"
#include "vx/plan.h"

struct vx_arena;
struct vx_err;

/* Where we are: the file, and in it the project and task (NULL outside of one). Errors start with
 * it. */
struct cfg {
	struct vx_arena *a;
	struct vx_err *err;
	const char *file, *project, *task;
	/* the file's name where it lies in the project's directory: what the declarations keep;
	 * NULL: `file` */
	const char *source;
};

/* Sets err to "FILE: project "p", task "t": FIELD MESSAGE" and returns -EINVAL. `field` may be
 * NULL. */
int cfg_fail(const struct cfg *c, const char *field, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* No more than VX_MAX_MEMBERS in it? */
int cfg_count(const struct cfg *c, const struct vx_json *v, const char *field);

/* The value must be an object and its keys all be in the NULL-terminated list; the error names the
 * nearest known one. */
int cfg_object(
	const struct cfg *c, const struct vx_json *v, const char *field, const char *const *known);

/* Values. An absent one (NULL) leaves *ret alone. Strings hold no NUL; those of lists are not
 * empty. */
int cfg_str(const struct cfg *c, const struct vx_json *v, const char *field, const char **ret);
int cfg_strs(const struct cfg *c, const struct vx_json *v, const char *field, struct vx_strs *ret);
int cfg_bool(const struct cfg *c, const struct vx_json *v, const char *field, bool *ret);
int cfg_int(const struct cfg *c, const struct vx_json *v, const char *field, int64_t min,
	int64_t max, int64_t *ret);

/* `key` of the project's object, else of the workspace's default (each may be NULL). A null takes
 * the default away. */
const struct vx_json *cfg_pick(
	const struct vx_json *own, const struct vx_json *fallback, const char *key);

/* A file of the workspace as text; -ENOENT without a message when absent. The buffer is the
 * caller's. */
struct vx_base_dir;
struct vx_buf;
int cfg_read(const struct vx_base_dir *root, const char *rel, struct vx_buf *b, struct vx_err *err);

/* task.c: one task from its own declaration and the workspace default of its name (either may be
 * NULL). Where the default applies and names no command, the project's script of the task's name is
 * the command. Rules that one task can break alone are checked here. */
struct cfg_scripts {
	const struct vx_project *project;
	const struct vx_manager *manager;
};
int cfg_task(const struct cfg *c, const struct vx_json *own, const struct vx_json *fallback,
	const struct cfg_scripts *scripts, struct vx_task_decl *ret);
/* The script that such a task runs; NULL: none. */
const char *cfg_task_script(
	const struct vx_json *own, const struct vx_json *fallback, const char *task);
/* The fields of a resolved task, without defaults, rules or canonical form; members that it does
 * not know are let pass. */
int cfg_task_fields(const struct cfg *c, const struct vx_json *task, struct vx_task_decl *ret);
int cfg_task_name(const struct cfg *c, const char *name);
/* Shape only: what a default may look like, before it is met with a project. */
int cfg_task_shape(const struct cfg *c, const struct vx_json *task, const char *field);

/* sandbox.c */
int cfg_sandbox(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e);
/* Which of `own` (NULL at its end) the outputs would take, and by which entry; NULL none. */
const char *cfg_taken(struct vx_strs out, const char *const *own, const char **ret_entry);
int cfg_rules(const struct cfg *c, const struct vx_task_decl *t);            /* rules.c */
const char *cfg_canonical(const struct vx_task_decl *t, struct vx_arena *a); /* canon.c */

/* wsfile.c: vx.workspace.json. `tasks` stays owned by root_json. */
struct cfg_ws_file {
	const char *path;
	struct vx_json *json, *tasks;
};
int cfg_ws_settings(const struct cfg *c, const struct vx_json *v, struct vx_workspace *ws,
	struct vx_json **ret_tasks);

/* The command of a project's script; NULL when it has none of that name. */
const char *cfg_script(const struct vx_project *p, const char *name);
/* Makes the script `name`, which the project has, the command, with what the package manager runs
 * around it. */
void cfg_use_script(const struct vx_manager *m, const struct vx_project *p, const char *name,
	struct vx_arena *a, struct vx_exec_decl *e);

#endif
