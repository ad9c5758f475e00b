#include "vx/select.h"

#include "filter.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <errno.h>
#include <string.h>

struct selector {
	const struct vx_workspace *ws;
	const struct vx_select_opts *o;
	struct vx_arena *a;
	struct vx_err *err;
	bool *chosen; /* per project */
	struct vx_request_task *tasks;
	uint32_t n_tasks, cap;
};

/* The root without tasks is no project for anyone who selects. */
static bool is_project(const struct vx_workspace *ws, uint32_t p)
{
	return p != ws->root_project || ws->projects[p].n_tasks > 0 || ws->projects[p].broken;
}

static bool declares(const struct vx_project *p, const char *task)
{
	for (uint32_t i = 0; i < p->n_tasks; i++)
		if (strcmp(p->tasks[i]->name, task) == 0)
			return true;
	return false;
}

static void request(struct selector *s, uint32_t project, const char *task)
{
	if (s->n_tasks == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 64;
		struct vx_request_task *v = vx_arena_array(s->a, s->cap, sizeof *v);
		if (s->n_tasks)
			memcpy(v, s->tasks, s->n_tasks * sizeof *v);
		s->tasks = v;
	}
	s->tasks[s->n_tasks++] = (struct vx_request_task){project, task};
}

static struct vx_strs names_of_projects(const struct selector *s)
{
	struct vx_strlist l = {0};

	for (uint32_t i = 0; i < s->ws->n_projects; i++)
		if (is_project(s->ws, i))
			vx_strlist_add(&l, s->a, s->ws->projects[i].name);
	return vx_strlist_done(&l);
}

/* Task names that the given projects declare; `only` NULL: all projects. */
static struct vx_strs names_of_tasks(
	const struct selector *s, const bool *only, bool vx_only_commands)
{
	struct vx_strlist l = {0};
	struct vx_map seen = {0};

	for (uint32_t p = 0; p < s->ws->n_projects; p++)
		for (uint32_t i = 0; (!only || only[p]) && i < s->ws->projects[p].n_tasks; i++) {
			const struct vx_task_decl *t = s->ws->projects[p].tasks[i];
			if ((!vx_only_commands || t->has_exec || t->dialect == VX_DIALECT_VX) &&
				vx_map_puts(&seen, t->name, l.n))
				vx_strlist_add(&l, s->a, t->name);
		}
	vx_map_free(&seen);
	vx_strlist_sort_unique(&l);
	return vx_strlist_done(&l);
}

/* Nothing to choose from: most often a workspace that is new to vx, or patterns that match no
 * member. */
static int no_tasks_yet(const struct selector *s)
{
	bool members = false, tasks = false;

	for (uint32_t p = 0; p < s->ws->n_projects; p++) {
		members = members || p != s->ws->root_project;
		tasks = tasks || s->ws->projects[p].n_tasks > 0;
	}
	if (tasks)
		return vx_err_fix(s->err, "there are none");
	if (!members && s->ws->warnings.n)
		return vx_err_fix(s->err, "%s", s->ws->warnings.v[0]);
	if (!members && s->ws->kind != VX_WS_SINGLE)
		return vx_err_fix(s->err,
			"there are no tasks, and the workspace's patterns match no directory with a package.json that has a name");
	if (s->ws->settings.turbo)
		return vx_err_fix(s->err,
			"there are no tasks: turbo.json defines none that a package has a script for");
	return vx_err_fix(s->err,
		"there are no tasks: vx init writes a vx.json for each project from its scripts");
}

/* "did you mean ...?", or the list of what there is, cut where it gets long. */
static int suggest(
	const struct selector *s, const char *asked, const char *kind, struct vx_strs there)
{
	const char *near = vx_filter_nearest(asked, there), *list = vx_filter_list(there, s->a);
	int r;

	if (near)
		r = vx_err_fix(s->err, "did you mean \"%s\"? There %s: %s", near, kind, list);
	else if (there.n)
		r = vx_err_fix(s->err, "there %s: %s", kind, list);
	else
		r = no_tasks_yet(s);
	return s->err ? r : -ENOENT;
}

static int qualified(struct selector *s, const char *word, const char *hash)
{
	const char *name = vx_arena_strndup(s->a, word, (size_t)(hash - word));
	uint32_t p = vx_map_gets(&s->ws->by_name, name);

	if (p == VX_MAP_NONE || !is_project(s->ws, p)) {
		vx_err_set(
			s->err, -ENOENT, "\"%.200s\": there is no project \"%.200s\"", word, name);
		return suggest(s, name, "are projects", names_of_projects(s));
	}
	const struct vx_project *project = &s->ws->projects[p];
	int r = vx_workspace_need(s->ws, p, s->err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < project->n_tasks; i++)
		if (strcmp(project->tasks[i]->name, hash + 1) == 0) {
			request(s, p, project->tasks[i]->name);
			return 0;
		}
	bool *only = vx_arena_array(s->a, s->ws->n_projects, sizeof *only);
	only[p] = true;
	vx_err_set(s->err, -ENOENT, "\"%.200s\": project \"%s\" declares no task \"%.200s\"", word,
		name, hash + 1);
	return suggest(s, hash + 1, "are tasks", names_of_tasks(s, only, false));
}

static int plain(struct selector *s, const char *word)
{
	bool any = false;

	for (uint32_t p = 0; p < s->ws->n_projects; p++) {
		if (!s->chosen[p])
			continue;
		const struct vx_project *project = &s->ws->projects[p];
		int r = vx_workspace_need(s->ws, p, s->err);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < project->n_tasks; i++)
			if (strcmp(project->tasks[i]->name, word) == 0) {
				request(s, p, project->tasks[i]->name);
				any = true;
			}
	}
	if (any)
		return 0;
	struct vx_strs all = names_of_tasks(s, NULL, true);
	uint32_t n = 0, last = 0;
	for (uint32_t p = 0; p < s->ws->n_projects; p++)
		if (s->chosen[p]) {
			n++;
			last = p;
		}
	if (n == 1)
		vx_err_set(s->err, -ENOENT, "project \"%s\" declares no task \"%.200s\"",
			s->ws->projects[last].name, word);
	else
		vx_err_set(s->err, -ENOENT, "no selected project declares a task \"%.200s\"", word);
	if (vx_strs_has(all, word))
		return vx_err_fix(
			s->err, "other projects do: use --all, or --filter to choose them");
	return suggest(s, word, "are tasks", all);
}

/* Nothing was asked for. What could be is said; to run everything there is would rarely be
 * meant. */
static int no_words(struct selector *s)
{
	vx_err_set(s->err, -EINVAL, "no task is named");
	return suggest(s, "", "are tasks", names_of_tasks(s, NULL, true));
}

/* Word by word: `a b` requests a everywhere, then b. */
static int take_words(struct selector *s)
{
	for (uint32_t i = 0; i < s->o->words.n; i++) {
		const char *word = s->o->words.v[i], *hash = strrchr(word, '#');
		if (vx_strs_has((struct vx_strs){s->o->words.v, i}, word))
			continue;
		int r = hash ? qualified(s, word, hash) : plain(s, word);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool has_plain_word(const struct vx_select_opts *o)
{
	for (uint32_t i = 0; i < o->words.n; i++)
		if (!strchr(o->words.v[i], '#'))
			return true;
	return false;
}

static void choose_all(struct selector *s)
{
	for (uint32_t p = 0; p < s->ws->n_projects; p++)
		s->chosen[p] = is_project(s->ws, p);
}

/* As Turborepo selects without a filter, in a directory that belongs to no package: every package
 * below it. At the root these are all packages and the root itself, whose tasks are those that
 * turbo.json writes as //#TASK. */
static void choose_below(struct selector *s)
{
	for (uint32_t p = 0; p < s->ws->n_projects; p++)
		s->chosen[p] =
			is_project(s->ws, p) && vx_path_within(s->ws->projects[p].dir, s->o->cwd);
}

/* No selection flag: the project that we stand in; at the root its own task, else every
 * project's. */
static int scope_of_cwd(struct selector *s, bool *ret_broad)
{
	uint32_t p = vx_workspace_project_at(s->ws, s->o->cwd);
	bool root_has = s->ws->root_project != VX_MAP_NONE;

	if (!has_plain_word(s->o) && s->o->words.n > 0)
		return 0;
	if (s->ws->settings.turbo && s->ws->kind != VX_WS_SINGLE &&
		(p == VX_MAP_NONE || p == s->ws->root_project)) {
		choose_below(s);
		*ret_broad = true;
		return 0;
	}
	for (uint32_t i = 0; i < s->o->words.n && root_has; i++)
		root_has = strchr(s->o->words.v[i], '#') ||
			   declares(&s->ws->projects[s->ws->root_project], s->o->words.v[i]);
	if (p != VX_MAP_NONE && p != s->ws->root_project)
		s->chosen[p] = true;
	else if (p != VX_MAP_NONE && root_has)
		s->chosen[p] = true;
	else {
		choose_all(s);
		*ret_broad = true;
	}
	return 0;
}

int vx_select(const struct vx_workspace *ws, const struct vx_select_opts *o, struct vx_arena *a,
	struct vx_selection *ret, struct vx_err *err)
{
	struct selector s = {.ws = ws, .o = o, .a = a, .err = err};
	struct vx_selection sel = {0};
	int r = 0;

	if (o->wants_tasks && !o->words.n)
		return no_words(&s);
	s.chosen = vx_arena_array(a, ws->n_projects ? ws->n_projects : 1, sizeof *s.chosen);
	sel.broad = o->all || o->filters.n > 0 || o->affected;
	if (o->filters.n > 0)
		r = vx_filter_select(ws, o, a, s.chosen, &sel.nothing, err);
	else if (sel.broad)
		choose_all(&s);
	else
		r = scope_of_cwd(&s, &sel.broad);
	if (r < 0)
		return r;
	uint32_t *projects =
		vx_arena_array(a, ws->n_projects ? ws->n_projects : 1, sizeof *projects);
	for (uint32_t p = 0; p < ws->n_projects; p++)
		if (s.chosen[p])
			projects[sel.n_projects++] = p;
	sel.projects = projects;
	if (!sel.nothing)
		r = take_words(&s);
	if (r < 0)
		return r;
	sel.tasks = s.tasks;
	sel.n_tasks = s.n_tasks;
	*ret = sel;
	return 0;
}
