/* What a task's sandbox is resolved from: the part of it that the plan knows. */
#include "vx/arena.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/run.h"
#include "vx/workspace.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Projects, each at most once. */
struct projects {
	uint32_t *v, n;
	bool *in;
};

static void take(struct projects *s, uint32_t project)
{
	if (!s->in[project])
		s->v[s->n++] = project;
	s->in[project] = true;
}

static struct projects none_of(const struct vx_workspace *ws)
{
	return (struct projects){.v = vx_xcalloc(ws->n_projects + 1, sizeof(uint32_t)),
		.in = vx_xcalloc(ws->n_projects + 1, 1)};
}

static void drop(struct projects *s)
{
	free(s->v);
	free(s->in);
}

/* The projects whose tasks this task's key folds, directly or through upstream keys. */
static void keyed(const struct vx_plan *p, uint32_t task, struct projects *ret)
{
	const struct vx_graph *g = &p->graph;
	uint32_t top = 0, *stack = vx_xmalloc(g->n_tasks * sizeof *stack);
	bool *seen = vx_xcalloc(g->n_tasks, 1);

	stack[top++] = task;
	seen[task] = true;
	while (top) {
		const struct vx_task *t = &g->tasks[stack[--top]];
		take(ret, t->project);
		for (uint32_t i = 0; i < t->n_key_deps; i++)
			if (!seen[t->key_deps[i]]) {
				seen[t->key_deps[i]] = true;
				stack[top++] = t->key_deps[i];
			}
	}
	free(stack);
	free(seen);
}

/* The projects that the manifests of `own` and of the root lead to. */
static void declared(const struct vx_workspace *ws, uint32_t own, struct projects *ret)
{
	take(ret, own);
	if (ws->root_project != VX_MAP_NONE)
		take(ret, ws->root_project);
	for (uint32_t i = 0; i < ret->n; i++) {
		const struct vx_project *p = &ws->projects[ret->v[i]];
		for (uint32_t k = 0; k < p->n_deps; k++)
			take(ret, p->deps[k]);
	}
}

static void packages(const struct vx_plan *p, uint32_t task, bool links, struct vx_arena *a,
	struct vx_sbx_spec *s)
{
	const struct vx_workspace *ws = &p->ws;
	uint32_t own = p->graph.tasks[task].project, n = 0;
	struct projects by_key = none_of(ws), by_manifest = none_of(ws);

	if (s->narrow)
		keyed(p, task, &by_key);
	if (links)
		declared(ws, own, &by_manifest);
	struct vx_sbx_package *v = vx_arena_array(a, by_key.n + by_manifest.n + 1, sizeof *v);
	for (uint32_t i = 0; i < ws->n_projects; i++)
		if ((by_key.in[i] || by_manifest.in[i]) && i != own)
			v[n++] = (struct vx_sbx_package){.name = ws->projects[i].name,
				.dir = ws->projects[i].dir,
				.keyed = by_key.in[i],
				.declared = by_manifest.in[i]};
	s->packages = v;
	s->n_packages = n;
	drop(&by_key);
	drop(&by_manifest);
}

/* ---- what sandboxed tasks may write, of that which concerns one of them ---- */

struct search {
	const struct vx_workspace *ws;
	struct vx_arena *a;
	const char *home, *project; /* absolute */
	const char *modules[2];     /* where dependencies are linked: of the project, of the root */
	struct vx_strlist grants;   /* the task's own, absolute */
	struct vx_strlist found;
	bool links; /* what is found may hold links to packages */
};

static bool concerns(struct search *s, const char *path)
{
	bool links = false;

	for (int i = 0; i < 2; i++)
		links |= vx_path_within(path, s->modules[i]) || vx_path_within(s->modules[i], path);
	s->links |= links;
	if (links || vx_path_within(path, s->project) || vx_path_within(s->project, path))
		return true;
	for (uint32_t i = 0; i < s->grants.n; i++)
		if (vx_path_within(s->grants.v[i], path))
			return true;
	return false;
}

static void writes_of(struct search *s, const struct vx_project *p)
{
	for (uint32_t i = 0; i < p->n_tasks; i++) {
		const struct vx_exec_decl *x = &p->tasks[i]->exec;
		for (uint32_t k = 0; x->sandboxed && k < x->sandbox.write.n; k++) {
			const char *path = vx_sbx_grant_path(x->sandbox.write.v[k],
				vx_path_join(s->a, s->ws->root, p->dir), s->home, s->a);
			if (path && concerns(s, path))
				vx_strlist_add(&s->found, s->a, path);
		}
	}
}

/* Most grants stay in their project: then the projects to ask are few. */
static void find_written(struct search *s, uint32_t own)
{
	const struct vx_workspace *ws = s->ws;
	struct projects ask = none_of(ws);

	take(&ask, own);
	if (ws->root_project != VX_MAP_NONE)
		take(&ask, ws->root_project);
	for (uint32_t i = 0; i < s->grants.n; i++) {
		const char *dir = vx_path_below(s->grants.v[i], ws->root);
		uint32_t at = dir ? vx_workspace_project_at(ws, *dir ? dir : ".") : VX_MAP_NONE;
		if (at != VX_MAP_NONE)
			take(&ask, at);
	}
	for (uint32_t i = 0; i < ws->n_projects; i++)
		if (ask.in[i] || ws->outward_writes)
			writes_of(s, &ws->projects[i]);
	drop(&ask);
	vx_strlist_sort_unique(&s->found);
}

/* The nested profile is used only if every sandboxed task accepts it. */
static bool all_accept_nested(const struct vx_plan *p)
{
	for (uint32_t i = 0; i < p->graph.n_tasks; i++) {
		const struct vx_exec_decl *x = &p->graph.tasks[i].decl->exec;
		if (x->sandboxed && !x->sandbox.weaker_when_nested)
			return false;
	}
	return true;
}

/* What moves credential stores: as vx itself has it, and as the task defines it. */
static struct vx_strs moves(const struct vx_exec_decl *x, struct vx_arena *a)
{
	struct vx_strlist out = {0};

	for (char **e = environ; *e; e++)
		if (vx_sbx_moves_store(*e))
			vx_strlist_add(&out, a, *e);
	for (uint32_t i = 0; i < x->n_define; i++)
		if (vx_sbx_moves_store(x->define[i].name))
			vx_strlist_add(&out, a,
				vx_arena_printf(a, "%s=%s", x->define[i].name, x->define[i].value));
	return vx_strlist_done(&out);
}

void vx_run_sandbox_spec(const struct vx_plan *p, uint32_t task, const char *store_dir,
	struct vx_arena *a, struct vx_sbx_spec *ret)
{
	const struct vx_task *t = &p->graph.tasks[task];
	const struct vx_project *project = &p->ws.projects[t->project];
	const struct vx_sbx_decl *d = &t->decl->exec.sandbox;
	const char *home = getenv("HOME");
	struct vx_strlist hidden = {0};
	struct search s = {.ws = &p->ws,
		.a = a,
		.home = home ? home : "",
		.project = vx_path_join(a, p->ws.root, project->dir)};

	s.modules[0] = vx_path_join(a, s.project, "node_modules");
	s.modules[1] = vx_path_join(a, p->ws.root, "node_modules");
	for (uint32_t i = 0; i < d->read.n + d->write.n; i++) {
		const char *path =
			vx_sbx_grant_path(i < d->read.n ? d->read.v[i] : d->write.v[i - d->read.n],
				s.project, s.home, a);
		if (path)
			vx_strlist_add(&s.grants, a, path);
	}
	find_written(&s, t->project);
	vx_strlist_add(&hidden, a, store_dir);
	*ret = (struct vx_sbx_spec){.decl = *d,
		.root = p->ws.root,
		.project_dir = project->dir,
		.nested = project->nested,
		.store_dirs = vx_strlist_done(&hidden),
		.members = p->ws.members,
		.written = vx_strlist_done(&s.found),
		.narrow = t->decl->has_cache && !t->decl->exec.persistent,
		.home = s.home,
		.moves = moves(&t->decl->exec, a),
		.record_dir = vx_arena_printf(a, "%s/.vx/sweep", p->ws.root)};
	ret->weaker = ret->decl.weaker_when_nested && all_accept_nested(p);
	if (ret->narrow || s.links)
		packages(p, task, s.links, a, ret);
}
