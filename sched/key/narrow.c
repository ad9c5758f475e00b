/* --affected: from changed paths to tasks. docs/config.md, "Affected". */
#include "vx/affected.h"

#include "vx/arena.h"
#include "vx/changed.h"
#include "vx/err.h"
#include "vx/glob.h"
#include "vx/graph.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <string.h>

struct narrower {
	const struct vx_workspace *ws;
	struct vx_arena *a;
	struct vx_err *err;
	struct vx_changed c;
	struct vx_graph g;
	const char **why;         /* per graph task: what seeds it, NULL not seeded */
	struct vx_strlist *paths; /* per project: its changed paths, relative to it */
};

static bool is_config(const char *path)
{
	return (vx_dir_file_bit(path, strlen(path)) & VX_HAS_TASKS) != 0;
}

static void share_out(struct narrower *w)
{
	w->paths = vx_arena_array(w->a, (size_t)w->ws->n_projects + 1, sizeof *w->paths);
	for (uint32_t i = 0; i < w->c.paths.n; i++) {
		const char *path = w->c.paths.v[i];
		uint32_t p = vx_workspace_project_at(w->ws, path);
		if (p != VX_MAP_NONE)
			vx_strlist_add(
				&w->paths[p], w->a, vx_path_below(path, w->ws->projects[p].dir));
	}
}

/* The first path of the list that is one of the task's declared project inputs; `ret_taken` (may be
 * NULL) marks every one that is. */
static int declared(struct narrower *w, const struct vx_task_decl *t,
	const struct vx_strlist *paths, bool *ret_taken, const char **ret_first)
{
	struct vx_globset *files, *outs;
	int r = vx_globset_compile(t->cache.files, t->dialect, w->a, &files, w->err);

	if (r == 0)
		r = vx_globset_compile(t->cache.out_files, t->dialect, w->a, &outs, w->err);
	for (uint32_t i = 0; r == 0 && i < paths->n; i++) {
		const char *path = paths->v[i];
		bool in = t->cache.default_inputs || vx_globset_match(files, path, strlen(path)),
		     out = vx_globset_match(outs, path, strlen(path));
		/* A task's own outputs are never its inputs. Under turbo.json they always are, when
		 * they are tracked. */
		if (t->dialect == VX_DIALECT_TURBO ? !in && !out : !in || out)
			continue;
		if (ret_taken)
			ret_taken[i] = true;
		if (ret_first && !*ret_first)
			*ret_first = path;
	}
	return r;
}

static int workspace_input(struct narrower *w, const struct vx_task_decl *t, const char **ret_first)
{
	struct vx_globset *files;

	if (t->cache.workspace_files.n == 0)
		return 0;
	int r = vx_globset_compile(t->cache.workspace_files, t->dialect, w->a, &files, w->err);
	for (uint32_t i = 0; r == 0 && i < w->c.paths.n && !*ret_first; i++)
		if (vx_globset_match(files, w->c.paths.v[i], strlen(w->c.paths.v[i])))
			*ret_first = w->c.paths.v[i];
	return r;
}

/* A changed path that concerns every task of the project: its manifest, its configuration, or what
 * no task declares. */
static int of_whole_project(struct narrower *w, uint32_t p, const char **ret_why)
{
	const struct vx_project *project = &w->ws->projects[p];
	const struct vx_strlist *paths = &w->paths[p];
	bool *taken = vx_arena_array(w->a, paths->n + 1, sizeof *taken);

	for (uint32_t i = 0; i < paths->n; i++)
		if (is_config(paths->v[i])) {
			*ret_why = vx_arena_printf(
				w->a, "%s changed", vx_path_join(w->a, project->dir, paths->v[i]));
			return 0;
		}
	for (uint32_t k = 0; k < project->n_tasks; k++) {
		int r = project->tasks[k]->has_cache
				? declared(w, project->tasks[k], paths, taken, NULL)
				: 0;
		if (r < 0)
			return r;
	}
	for (uint32_t i = 0; i < paths->n; i++)
		if (!taken[i]) {
			*ret_why = vx_arena_printf(w->a, "%s changed, which no task declares",
				vx_path_join(w->a, project->dir, paths->v[i]));
			return 0;
		}
	return 0;
}

static int seed_task(
	struct narrower *w, const struct vx_task *t, const char *whole, const char **ret_why)
{
	const struct vx_strlist *paths = &w->paths[t->project];
	const char *dir = w->ws->projects[t->project].dir, *first = NULL;
	int r = 0;

	if (!t->decl->has_exec || whole) {
		*ret_why = t->decl->has_exec ? whole : NULL;
		return 0;
	}
	if (!t->decl->has_cache) {
		if (paths->n)
			*ret_why = vx_arena_printf(
				w->a, "%s changed", vx_path_join(w->a, dir, paths->v[0]));
		return 0;
	}
	if (paths->n)
		r = declared(w, t->decl, paths, NULL, &first);
	if (r == 0 && first)
		first = vx_path_join(w->a, dir, first);
	if (r == 0 && !first)
		r = workspace_input(w, t->decl, &first);
	if (first)
		*ret_why = vx_arena_printf(w->a, "%s changed", first);
	return r;
}

static int seed_all(struct narrower *w)
{
	uint32_t last = VX_MAP_NONE;
	const char *whole = NULL;

	share_out(w);
	for (uint32_t i = 0; i < w->g.n_tasks; i++) {
		const struct vx_task *t = &w->g.tasks[i];
		if (t->project != last) {
			whole = NULL;
			int r = w->paths[t->project].n ? of_whole_project(w, t->project, &whole)
						       : 0;
			if (r < 0)
				return r;
			last = t->project;
		}
		int r = seed_task(w, t, whole, &w->why[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int vx_affected_global(const struct vx_workspace *ws, struct vx_strs paths, struct vx_arena *a,
	const char **ret_path, struct vx_err *err)
{
	struct vx_globset *files;

	*ret_path = NULL;
	if (!ws->settings.global_files.n)
		return 0;
	int r = vx_globset_compile(ws->settings.global_files, VX_DIALECT_TURBO, a, &files, err);
	for (uint32_t i = 0; r == 0 && i < paths.n && !*ret_path; i++)
		if (vx_globset_match(files, paths.v[i], strlen(paths.v[i])))
			*ret_path = paths.v[i];
	return r;
}

/* Down the graph: what depends on a seeded task is affected too, and says through which one. */
static void spread(struct narrower *w)
{
	for (uint32_t k = 0; k < w->g.n_tasks; k++) {
		uint32_t u = w->g.topo[k];
		const struct vx_task *t = &w->g.tasks[u];
		for (uint32_t i = 0; i < t->n_deps && !w->why[u]; i++)
			if (w->why[t->deps[i]]) {
				const char *up = w->why[t->deps[i]],
					   *id = w->g.tasks[t->deps[i]].id;
				/* The root of it stays in sight, the way to it does not: chains are
				 * long. */
				w->why[u] = vx_starts_with(up, "depends on ")
						    ? up
						    : vx_arena_printf(
							      w->a, "depends on %s: %s", id, up);
			}
	}
}

static void keep(struct narrower *w, const char *global, struct vx_selection *sel)
{
	struct vx_request_task *tasks = vx_arena_array(w->a, sel->n_tasks + 1, sizeof *tasks);
	const char **reasons = vx_arena_array(w->a, sel->n_tasks + 1, sizeof *reasons);
	struct vx_map by_id = {0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->g.n_tasks; i++)
		vx_map_puts(&by_id, w->g.tasks[i].id, i);
	for (uint32_t i = 0; i < sel->n_tasks; i++) {
		uint32_t p = sel->tasks[i].project;
		const char *project = p == w->ws->root_project ? "//" : w->ws->projects[p].name;
		uint32_t t = vx_map_gets(
			&by_id, vx_arena_printf(w->a, "%s#%s", project, sel->tasks[i].task));
		const char *why = global             ? vx_arena_printf(w->a, "%s changed", global)
				  : t == VX_MAP_NONE ? NULL
						     : w->why[t];
		if (!why)
			continue;
		reasons[n] = why;
		tasks[n++] = sel->tasks[i];
	}
	vx_map_free(&by_id);
	sel->tasks = tasks;
	sel->n_tasks = n;
	sel->reasons = reasons;
	if (n == 0)
		sel->nothing = vx_arena_printf(w->a, "nothing affected since %s", w->c.since);
}

int vx_affected_narrow(const struct vx_workspace *ws, const struct vx_select_opts *o,
	struct vx_arena *a, struct vx_selection *sel, struct vx_err *err)
{
	struct narrower w = {.ws = ws, .a = a, .err = err};
	const char *global = NULL;

	if (!o->affected || sel->nothing)
		return 0;
	int r = vx_changed_paths(ws, o->affected_base, NULL, a, &w.c, err);
	if (r == 0)
		r = vx_graph_build(ws, sel, NULL, a, &w.g, err);
	if (r == 0 && w.c.everything)
		global = w.c.everything_path;
	else if (r == 0)
		r = vx_affected_global(ws, w.c.paths, a, &global, err);
	if (r < 0)
		return r;
	w.why = vx_arena_array(a, w.g.n_tasks + 1, sizeof *w.why);
	if (!global) {
		r = seed_all(&w);
		spread(&w);
	}
	if (r == 0)
		keep(&w, global, sel);
	return r;
}
