#include "vx/graph.h"

#include "build.h"

#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void idlist_push(struct idlist *l, struct vx_arena *a, uint32_t x)
{
	if (l->n == l->cap)
		l->v = vx_arena_grow(a, l->v, l->n, sizeof *l->v, &l->cap, 4);
	l->v[l->n++] = x;
}

const struct vx_task_decl *decl_of(const struct builder *b, uint32_t d)
{
	uint32_t p = b->owner[d];

	return b->ws->projects[p].tasks[d - b->base[p]];
}

const char *decl_id(const struct builder *b, uint32_t d, struct vx_arena *a)
{
	uint32_t p = b->owner[d];
	const char *project = p == b->ws->root_project ? "//" : b->ws->projects[p].name,
		   *task = decl_of(b, d)->name;
	size_t n = strlen(project), m = strlen(task);
	char *id = vx_arena_alloc(a, n + m + 2);

	memcpy(id, project, n);
	id[n] = '#';
	memcpy(id + n + 1, task, m + 1);
	return id;
}

const char *decl_source(const struct builder *b, uint32_t d)
{
	const struct vx_task_decl *t = decl_of(b, d);
	const char *dir = b->ws->projects[b->owner[d]].dir;

	return t->in_project && strcmp(dir, ".") != 0
		       ? vx_arena_printf(b->scratch, "%s/%s", dir, t->source)
		       : t->source;
}

uint32_t find_decl(const struct builder *b, uint32_t project, uint32_t name)
{
	if (b->base[project + 1] - b->base[project] > FEW) {
		struct declared key = {project, name};
		return vx_map_get(&b->by_pair, &key, sizeof key);
	}
	for (uint32_t d = b->base[project]; d < b->base[project + 1]; d++)
		if (b->name[d] == name)
			return d;
	return VX_MAP_NONE;
}

void want(struct builder *b, uint32_t d)
{
	if (b->wanted[d])
		return;
	b->wanted[d] = true;
	idlist_push(&b->queue, b->scratch, d);
}

static int number_decls(struct builder *b)
{
	const struct vx_workspace *ws = b->ws;
	uint64_t total = 0;

	b->base = vx_arena_array(b->scratch, (size_t)ws->n_projects + 1, sizeof *b->base);
	for (uint32_t p = 0; p < ws->n_projects; p++) {
		b->base[p] = (uint32_t)total;
		total += ws->projects[p].n_tasks;
		if (total > VX_MAX_TASKS)
			return vx_err_set(b->err, -E2BIG,
				"the workspace declares more than %u tasks", VX_MAX_TASKS);
	}
	b->base[ws->n_projects] = b->n_decls = (uint32_t)total;
	size_t room = total ? total : 1;
	b->owner = vx_arena_array(b->scratch, room, sizeof *b->owner);
	b->name = vx_arena_array(b->scratch, room, sizeof *b->name);
	b->pairs = vx_arena_array(b->scratch, room, sizeof *b->pairs);
	b->deps = vx_arena_array(b->scratch, room, sizeof *b->deps);
	b->through = vx_arena_array(b->scratch, room, sizeof *b->through);
	b->wanted = vx_arena_array(b->scratch, room, sizeof *b->wanted);
	b->seen = vx_arena_array(b->scratch, room, sizeof *b->seen);
	b->passed = vx_arena_array(b->scratch, (size_t)ws->n_projects + 1, sizeof *b->passed);
	b->noted = vx_arena_array(b->scratch, (size_t)ws->n_projects + 1, sizeof *b->noted);
	for (uint32_t p = 0, d = 0; p < ws->n_projects; p++)
		for (uint32_t i = 0; i < ws->projects[p].n_tasks; i++, d++) {
			const char *name = ws->projects[p].tasks[i]->name;
			b->owner[d] = p;
			if (vx_map_puts(&b->name_ids, name, b->names.n))
				vx_strlist_add(&b->names, b->scratch, name);
			b->name[d] = vx_map_gets(&b->name_ids, name);
			b->pairs[d] = (struct declared){p, b->name[d]};
			if (ws->projects[p].n_tasks > FEW)
				vx_map_put(&b->by_pair, &b->pairs[d], sizeof b->pairs[d], d);
		}
	return 0;
}

static int want_requested(struct builder *b, const struct vx_selection *sel, bool *requested)
{
	for (uint32_t i = 0; i < sel->n_tasks; i++) {
		uint32_t id = vx_map_gets(&b->name_ids, sel->tasks[i].task);
		uint32_t d =
			id == VX_MAP_NONE ? VX_MAP_NONE : find_decl(b, sel->tasks[i].project, id);
		if (d == VX_MAP_NONE)
			return vx_err_set(b->err, -ENOENT, "project \"%s\" declares no task \"%s\"",
				b->ws->projects[sel->tasks[i].project].name, sel->tasks[i].task);
		requested[d] = true;
		want(b, d);
	}
	return 0;
}

/* turbo's `with`: in the graph whenever its sibling is, without an edge. */
static int want_siblings(struct builder *b, uint32_t d)
{
	const struct vx_task_decl *t = decl_of(b, d);

	for (uint32_t i = 0; i < t->with.n; i++) {
		const char *e = t->with.v[i], *hash = strrchr(e, '#');
		uint32_t p = hash ? vx_map_gets(&b->ws->by_name,
					    vx_arena_strndup(b->scratch, e, (size_t)(hash - e)))
				  : b->owner[d];
		uint32_t id = vx_map_gets(&b->name_ids, hash ? hash + 1 : e);
		uint32_t other =
			p == VX_MAP_NONE || id == VX_MAP_NONE ? VX_MAP_NONE : find_decl(b, p, id);
		if (other == VX_MAP_NONE)
			return vx_err_set(b->err, -ENOENT,
				"%s: \"with\" names \"%s\", which no project declares",
				decl_id(b, d, b->scratch), e);
		want(b, other);
	}
	return 0;
}

static int close_over(struct builder *b)
{
	for (uint32_t at = 0; at < b->queue.n; at++) {
		uint32_t d = b->queue.v[at];
		int r = resolve_depends(b, d);
		if (r == 0)
			r = want_siblings(b, d);
		if (r < 0)
			return r;
		for (uint32_t i = 0; i < b->deps[d].n; i++)
			want(b, b->deps[d].v[i]);
	}
	return 0;
}

static const uint32_t *renumbered(struct builder *b, const struct idlist *l, const uint32_t *index)
{
	if (!l->n)
		return NULL;
	uint32_t *v = vx_arena_array(b->keep, l->n, sizeof *v);
	for (uint32_t i = 0; i < l->n; i++)
		v[i] = index[l->v[i]];
	return v;
}

static int id_cmp(const void *x, const void *y)
{
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	return a < b ? -1 : a > b;
}

static const uint32_t *sorted(struct builder *b, const struct idlist *l)
{
	if (!l->n)
		return NULL;
	uint32_t *v = vx_arena_dup(b->keep, l->v, l->n * sizeof *v);
	qsort(v, l->n, sizeof *v, id_cmp);
	return v;
}

static int emit_task(struct builder *b, uint32_t d, const uint32_t *index, const bool *requested,
	struct vx_task *t)
{
	struct idlist key = {0};

	t->id = decl_id(b, d, b->keep);
	t->project = b->owner[d];
	t->decl = decl_of(b, d);
	t->deps = renumbered(b, &b->deps[d], index);
	t->n_deps = b->deps[d].n;
	t->requested = requested[d];
	t->n_passed = b->through[d].n;
	t->passed = sorted(b, &b->through[d]);
	t->key_deps = t->deps;
	t->n_key_deps = t->n_deps;
	if (!t->decl->has_cache || !t->decl->cache.tasks_given)
		return 0;
	int r = resolve_key_deps(b, d, &b->deps[d], &key);
	t->key_deps = renumbered(b, &key, index);
	t->n_key_deps = key.n;
	return r;
}

static void link_dependents(struct vx_graph *g, struct vx_arena *keep)
{
	size_t edges = 0;

	for (uint32_t i = 0; i < g->n_tasks; i++) {
		edges += g->tasks[i].n_deps;
		for (uint32_t k = 0; k < g->tasks[i].n_deps; k++)
			g->tasks[g->tasks[i].deps[k]].n_dependents++;
	}
	uint32_t *pool = vx_arena_array(keep, edges ? edges : 1, sizeof *pool);
	for (uint32_t i = 0; i < g->n_tasks; i++) {
		g->tasks[i].dependents = pool;
		pool += g->tasks[i].n_dependents;
		g->tasks[i].n_dependents = 0;
	}
	for (uint32_t i = 0; i < g->n_tasks; i++)
		for (uint32_t k = 0; k < g->tasks[i].n_deps; k++) {
			struct vx_task *up = &g->tasks[g->tasks[i].deps[k]];
			((uint32_t *)(uintptr_t)up->dependents)[up->n_dependents++] = i;
		}
}

static bool is_excluded(const struct vx_task *t, const struct vx_graph_opts *o)
{
	return !t->requested &&
	       (o->exclude_dependencies || vx_strs_has(o->exclude_names, t->decl->name) ||
		       vx_strs_has(o->exclude_names, t->id));
}

static int check_exclude_names(
	const struct vx_graph *g, const struct vx_graph_opts *o, struct builder *b)
{
	for (uint32_t e = 0; e < o->exclude_names.n; e++) {
		bool found = false;
		for (uint32_t i = 0; i < g->n_tasks && !found; i++)
			found = strcmp(g->tasks[i].decl->name, o->exclude_names.v[e]) == 0 ||
				strcmp(g->tasks[i].id, o->exclude_names.v[e]) == 0;
		if (found)
			continue;
		const char *near = vx_nearest(o->exclude_names.v[e], vx_strlist_done(&b->names));
		vx_err_set(b->err, -ENOENT,
			"--exclude-dependencies names \"%.200s\", which is no task of this run",
			o->exclude_names.v[e]);
		return near     ? vx_err_fix(b->err, "did you mean \"%s\"?", near)
		       : b->err ? b->err->code
				: -ENOENT;
	}
	return 0;
}

/* What is kept out, and what nobody but the kept-out needs. */
static int exclude(struct builder *b, struct vx_graph *g, const struct vx_graph_opts *o)
{
	struct idlist stack = {0};

	if (!o->exclude_dependencies && o->exclude_names.n == 0)
		return 0;
	int r = check_exclude_names(g, o, b);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < g->n_tasks; i++) {
		g->tasks[i].excluded = !g->tasks[i].requested;
		if (g->tasks[i].requested)
			idlist_push(&stack, b->scratch, i);
	}
	while (stack.n) {
		const struct vx_task *t = &g->tasks[stack.v[--stack.n]];
		for (uint32_t k = 0; k < t->n_deps; k++) {
			struct vx_task *up = &g->tasks[t->deps[k]];
			if (!up->excluded || is_excluded(up, o))
				continue;
			up->excluded = false;
			idlist_push(&stack, b->scratch, t->deps[k]);
		}
	}
	return 0;
}

static int emit(
	struct builder *b, const bool *requested, const struct vx_graph_opts *o, struct vx_graph *g)
{
	uint32_t *index = vx_arena_array(b->scratch, b->n_decls ? b->n_decls : 1, sizeof *index),
		 n = 0;

	for (uint32_t d = 0; d < b->n_decls; d++)
		index[d] = b->wanted[d] ? n++ : VX_MAP_NONE;
	g->tasks = vx_arena_array(b->keep, n ? n : 1, sizeof *g->tasks);
	g->n_tasks = n;
	for (uint32_t d = 0; d < b->n_decls; d++) {
		int r = b->wanted[d] ? emit_task(b, d, index, requested, &g->tasks[index[d]]) : 0;
		if (r < 0)
			return r;
	}
	link_dependents(g, b->keep);
	int r = order_tasks(g, b->keep, b->scratch, b->err);
	return r < 0 ? r : exclude(b, g, o);
}

int vx_graph_build(const struct vx_workspace *ws, const struct vx_selection *sel,
	const struct vx_graph_opts *o, struct vx_arena *a, struct vx_graph *ret, struct vx_err *err)
{
	static const struct vx_graph_opts none;
	struct vx_arena scratch = {0};
	struct builder b = {.ws = ws, .keep = a, .scratch = &scratch, .err = err};
	struct vx_graph g = {0};
	int r = number_decls(&b);

	bool *requested = vx_arena_array(&scratch, b.n_decls ? b.n_decls : 1, sizeof *requested);
	if (r == 0)
		r = want_requested(&b, sel, requested);
	if (r == 0)
		r = close_over(&b);
	if (r == 0)
		r = emit(&b, requested, o ? o : &none, &g);
	if (r == 0)
		r = check_files(&b);
	vx_map_free(&b.name_ids);
	vx_map_free(&b.by_pair);
	vx_arena_free(&scratch);
	if (r == 0)
		*ret = g;
	return r;
}
