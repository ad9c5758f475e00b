/* --affected: from a selection to what of it a change concerns. docs/config.md, "Affected". */
#include "narrow.h"

#include "vx/changed.h"
#include "vx/err.h"
#include "vx/path.h"

#include <string.h>

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

static const char *id_name(const struct vx_workspace *ws, uint32_t p)
{
	return p == ws->root_project ? "//" : ws->projects[p].name;
}

static bool declares(const struct vx_project *p, const char *task)
{
	for (uint32_t i = 0; i < p->n_tasks; i++)
		if (strcmp(p->tasks[i]->name, task) == 0)
			return true;
	return false;
}

/* Every task of the graph that the commit has, with what it depends on there. */
static void base_graph(struct narrower *w)
{
	struct vx_request_task *v = vx_arena_array(w->a, (size_t)w->g.n_tasks + 1, sizeof *v);
	struct vx_selection sel = {.tasks = v};
	struct vx_err err = {0};

	for (uint32_t i = 0; i < w->g.n_tasks; i++) {
		const struct vx_task *t = &w->g.tasks[i];
		uint32_t p = vx_map_gets(&w->base.ws.by_name, id_name(w->ws, t->project));
		if (p != VX_MAP_NONE && declares(&w->base.ws.projects[p], t->decl->name))
			v[sel.n_tasks++] = (struct vx_request_task){p, t->decl->name};
	}
	if (vx_graph_build(&w->base.ws, &sel, NULL, w->a, &w->base_g, &err) < 0)
		w->base.untold = vx_arena_printf(w->a, "tasks of %s cannot be ordered: %s",
			w->base.since, base_said(&w->base, &err));
}

static int open_now(struct narrower *w)
{
	struct vx_keyer_opts ko = {
		.cache_dir = w->o->cache_dir, .explain = true, .unprobed = true, .cancel_fd = -1};

	return vx_keyer_new(w->ws, &w->g, &ko, &w->now, w->err);
}

static int open_then(struct narrower *w)
{
	struct vx_keyer_opts ko = {.explain = true, .unprobed = true, .cancel_fd = -1};
	const char *below = w->o->cache_dir ? vx_path_below(w->o->cache_dir, w->ws->root) : NULL;
	struct vx_err err = {0};

	if (below && *below)
		ko.cache_dir = vx_arena_printf(w->a, "%s/%s", w->base.room, below);
	int r = vx_source_given(w->base.room, w->base.kind, vx_source_trusts_exec(w->now->src),
		&w->base.files, &ko.source);
	if (r < 0)
		return vx_err_set(
			w->err, r, "%s cannot be opened: %s", w->base.room, vx_strerror(r));
	if (vx_keyer_new(&w->base.ws, &w->base_g, &ko, &w->then, &err) < 0)
		w->base.untold = vx_arena_printf(w->a, "keys of %s cannot be made: %s",
			w->base.since, base_said(&w->base, &err));
	return 0;
}

/* Projects whose configuration in the commit cannot be taken. (Who needs them there makes the graph
 * fail.) */
static void mark_broken(struct narrower *w)
{
	for (uint32_t i = 0; i < w->base.ws.n_projects; i++) {
		const struct vx_broken *b = w->base.ws.projects[i].broken;
		uint32_t p = vx_map_gets(&w->ws->by_name, id_name(&w->base.ws, i));
		if (b && p != VX_MAP_NONE && !w->untold[p])
			w->untold[p] =
				vx_arena_printf(w->a, "its configuration in %s cannot be taken: %s",
					w->base.since, b->what);
	}
}

/* Files first: where none has changed, nothing has. */
static int compare(struct narrower *w)
{
	struct vx_evaluations evaluated;
	int r = open_now(w);

	if (r < 0)
		return r;
	w->base.now_files = &w->now->table;
	w->base.now_source = w->now->src;
	w->base.kind = vx_source_kind(w->now->src);
	r = base_list(&w->base);
	if (r == 0 && !w->base.untold)
		r = converted_settle(w);
	if (r == 0 && !w->base.untold)
		r = changed_find(w);
	if (r < 0 || w->base.untold || !w->changed.n)
		return r;
	r = programs_sort_out(w, &evaluated);
	if (r == 0 && !w->base.untold)
		r = base_load(&w->base, &evaluated, w->o->frozen);
	if (r < 0 || w->base.untold)
		return r;
	mark_broken(w);
	for (uint32_t i = 0; w->o->no_inference && i < w->base.ws.n_projects; i++)
		w->base.ws.projects[i].framework_env = (struct vx_strs){0};
	base_graph(w);
	if (!w->base.untold)
		r = open_then(w);
	return r < 0 || w->base.untold ? r : compare_all(w);
}

static void keep(struct narrower *w, struct vx_selection *sel)
{
	struct vx_request_task *tasks = vx_arena_array(w->a, sel->n_tasks + 1, sizeof *tasks);
	const char **reasons = vx_arena_array(w->a, sel->n_tasks + 1, sizeof *reasons);
	struct vx_map by_id = {0};
	uint32_t n = 0;

	for (uint32_t i = 0; i < w->g.n_tasks; i++)
		vx_map_puts(&by_id, w->g.tasks[i].id, i);
	for (uint32_t i = 0; i < sel->n_tasks; i++) {
		uint32_t t = vx_map_gets(
			&by_id, vx_arena_printf(w->a, "%s#%s",
					id_name(w->ws, sel->tasks[i].project), sel->tasks[i].task));
		const char *why = w->base.untold     ? w->base.untold
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
		sel->nothing = vx_arena_printf(w->a, "nothing affected since %s", w->base.since);
}

int vx_affected_narrow(const struct vx_workspace *ws, const char *from,
	const struct vx_affected_opts *o, struct vx_arena *a, struct vx_selection *sel,
	struct vx_err *err)
{
	struct narrower w = {.ws = ws, .o = o, .a = a, .err = err};

	if (sel->nothing)
		return 0;
	w.base = (struct base){.now = ws, .a = a, .err = err, .room_fd = -1};
	w.untold = vx_arena_array(a, (size_t)ws->n_projects + 1, sizeof *w.untold);
	int r = vx_changed_base(ws, from, a, &w.base.since, &w.base.commit, err);
	if (r == 0)
		r = vx_git_find(ws->root, a, &w.base.git, err);
	if (r == 0)
		r = vx_graph_build(ws, sel, NULL, a, &w.g, err);
	if (r < 0)
		return r;
	w.why = vx_arena_array(a, (size_t)w.g.n_tasks + 1, sizeof *w.why);
	r = compare(&w);
	if (r == 0)
		keep(&w, sel);
	vx_keyer_free(w.then);
	vx_keyer_free(w.now);
	base_free(&w.base);
	return r;
}
