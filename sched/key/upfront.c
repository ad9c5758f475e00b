/* Which keys are known up front. A key is preliminary while something upstream may still change
 * what it reads in this run; docs/keys.md gives the rules. When unsure: preliminary.
 *
 * Upstream closures are never built: what can be summed up travels along the topological order as a
 * bit, and only a task that some writer could concern at all has its upstream walked. */
#include "key_int.h"

#include "vx/buf.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <stdlib.h>
#include <string.h>

/* Writers that differ in what they write, by one task each: whatever one of them does not change,
 * none of their kind changes. */
struct kinds {
	uint32_t n; /* MANY + 1: too many to be worth a look */
	uint32_t v[16];
};
#define MANY 16U

struct gate {
	struct vx_keyer *k;
	/* by task: enum vx_reach of what it writes undeclared; 0 for a cached task */
	uint8_t *reach;
	bool *everywhere_up; /* by task: something upstream may write anywhere */
	bool *writes;        /* by project: some task of it writes declared or undeclared files */
	bool *root_up;       /* by task: a task of the root project that writes is upstream */
	bool *cyclic;        /* by project: a way out of it may lead back */
	uint8_t *near;       /* by project: some writer in, around or below it; 1 yes, 2 no */
	bool any_writes, any_nested; /* any_nested: projects lie in others than the root */
	uint32_t *passed_in; /* by project: the round of a search whose task passes through it */
	uint32_t *stamp, *stack, round;
	struct vx_map by_dir;
	struct kinds *of_project, all;
};

/* From what would be bound, so the file system is asked; only for tasks that have a write grant at
 * all. */
static enum vx_reach sandbox_reach(
	struct vx_keyer *k, const struct vx_task *t, bool *ret_fingerprint)
{
	const struct vx_project *p = &k->ws->projects[t->project];
	struct vx_sbx_spec spec = {.decl = t->decl->exec.sandbox,
		.root = k->ws->root,
		.project_dir = p->dir,
		.nested = p->nested};
	const char *home = getenv("HOME"), *store = k->o.cache_dir;
	spec.home = home ? home : "";
	if (store)
		spec.store_dirs = (struct vx_strs){&store, 1};
	struct vx_strs names = {vx_fingerprint_names, N_FINGERPRINT};
	struct vx_sbx_facts facts = vx_sbx_real_facts();
	return vx_sbx_reach(&spec, &facts, names, ret_fingerprint);
}

enum vx_reach vx_key_reach(struct vx_keyer *k, uint32_t task, bool *ret_fingerprint)
{
	const struct vx_task *t = &k->g->tasks[task];
	*ret_fingerprint = false;
	if (!t->decl->has_exec || t->excluded)
		return VX_REACH_NONE;
	if (t->decl->exec.sandboxed)
		return t->decl->exec.sandbox.write.n ? sandbox_reach(k, t, ret_fingerprint)
						     : VX_REACH_NONE;
	*ret_fingerprint = vx_key_dir_is_root(k->ws->projects[t->project].dir);
	return VX_REACH_PROJECT;
}

static bool has_outputs(const struct vx_task *t)
{
	return t->decl->has_cache && !t->excluded &&
	       (t->decl->cache.out_files.n || t->decl->cache.out_workspace_files.n);
}

static bool task_writes(const struct gate *g, uint32_t task)
{
	return g->reach[task] != VX_REACH_NONE || has_outputs(&g->k->g->tasks[task]);
}

static const char *dir_of(const struct gate *g, uint32_t task)
{
	return g->k->ws->projects[g->k->g->tasks[task].project].dir;
}

/* May this task, by itself, write in the directory of any other, or what is in every key? */
static bool writes_everywhere(const struct gate *g, uint32_t task)
{
	const struct vx_task *t = &g->k->g->tasks[task];
	if (t->decl->has_cache && !t->excluded && t->decl->cache.out_workspace_files.n)
		return true;
	return g->reach[task] == VX_REACH_WORKSPACE ||
	       (g->reach[task] == VX_REACH_PROJECT && (vx_key_dir_is_root(dir_of(g, task)) ||
							      g->k->projects[t->project].in_fixed));
}

/* Projects from which a chain of tasks may leave and come back: what remains of the project graph
 * when sources, then sinks, are peeled off. */
static void find_cyclic(struct gate *g)
{
	const struct vx_graph *gr = g->k->g;
	uint32_t n = g->k->ws->n_projects, edges = 0;
	for (uint32_t t = 0; t < gr->n_tasks; t++)
		edges += gr->tasks[t].n_deps;
	uint32_t *from = vx_xcalloc(edges + 1, sizeof *from),
		 *to = vx_xcalloc(edges + 1, sizeof *to), m = 0;
	for (uint32_t t = 0; t < gr->n_tasks; t++)
		for (uint32_t i = 0; i < gr->tasks[t].n_deps; i++) {
			uint32_t a = gr->tasks[t].project,
				 b = gr->tasks[gr->tasks[t].deps[i]].project;
			if (a != b) {
				from[m] = a;
				to[m++] = b;
			}
		}
	for (uint32_t p = 0; p < n; p++)
		g->cyclic[p] = true;
	for (int side = 0; side < 2; side++) { /* peel by in-degree, then by out-degree */
		uint32_t *head = vx_xcalloc(n + 2, sizeof *head),
			 *next = vx_xcalloc(m + 1, sizeof *next),
			 *degree = vx_xcalloc(n + 1, sizeof *degree);
		uint32_t *queue = vx_xcalloc(n + 1, sizeof *queue), qn = 0;
		const uint32_t *src = side ? to : from, *dst = side ? from : to;
		for (uint32_t e = 0; e < m; e++) {
			next[e] = head[src[e]];
			head[src[e]] = e + 1;
			degree[dst[e]] += g->cyclic[src[e]];
		}
		for (uint32_t p = 0; p < n; p++)
			if (g->cyclic[p] && !degree[p])
				queue[qn++] = p;
		for (uint32_t i = 0; i < qn; i++) {
			g->cyclic[queue[i]] = false;
			for (uint32_t e = head[queue[i]]; e; e = next[e - 1])
				if (--degree[dst[e - 1]] == 0 && g->cyclic[dst[e - 1]])
					queue[qn++] = dst[e - 1];
		}
		free(head);
		free(next);
		free(degree);
		free(queue);
	}
	free(from);
	free(to);
}

/* What one walk over a task's upstream looks for. */
struct search {
	uint32_t task;
	const struct decl_globs *dg;
	bool same_project; /* only chains that can come back to the project */
	const char *dir;
	const char *const *prefixes; /* of workspaceFiles */
	uint32_t n_prefixes;
	bool passed; /* projects that are passed through too */
};

static bool related(const char *a, const char *b)
{
	return vx_key_dir_is_root(a) || vx_key_dir_is_root(b) || vx_path_within(a, b) ||
	       vx_path_within(b, a);
}

/* May upstream task u change what the searched task reads? */
static bool changes(const struct gate *g, const struct search *s, uint32_t u)
{
	const struct vx_task *t = &g->k->g->tasks[s->task], *up = &g->k->g->tasks[u];
	if (!task_writes(g, u))
		return false;
	const char *up_dir = dir_of(g, u);
	for (uint32_t i = 0; i < s->n_prefixes; i++)
		if (related(s->prefixes[i], up_dir))
			return true;
	if (!vx_key_takes_all(t->decl) && !vx_key_takes_chosen(t->decl))
		return false; /* its own project is not in its key */
	if (g->reach[u] == VX_REACH_PROJECT && related(up_dir, s->dir))
		return up->project == t->project || vx_path_within(s->dir, up_dir) ||
		       t->decl->dialect == VX_DIALECT_TURBO;
	if (!has_outputs(up) || !related(up_dir, s->dir))
		return false;
	const struct decl_globs *ug;
	if (vx_key_globs(g->k, up->decl, &ug, NULL) < 0)
		return true;
	if (vx_key_takes_all(t->decl) || t->decl->cache.default_inputs)
		return up->project == t->project || vx_path_within(up_dir, s->dir) ||
		       vx_globset_may_reach(ug->outs, vx_path_relative(&g->k->a, up_dir, s->dir),
			       strlen(vx_path_relative(&g->k->a, up_dir, s->dir)));
	if (up->project == t->project && vx_globset_match(ug->outs, "package.json", 12))
		return true;
	return vx_globset_overlap(s->dg->files, s->dir, ug->outs, up_dir);
}

/* Does the project of an upstream writer lie in, around or below one that is passed through? */
static bool meets_passed(const struct gate *g, const struct search *s, uint32_t u)
{
	const struct vx_task *t = &g->k->g->tasks[s->task];
	uint32_t p = g->k->g->tasks[u].project;
	if (!s->passed || !task_writes(g, u))
		return false;
	if (g->passed_in[p] == g->round || vx_key_dir_is_root(dir_of(g, u)))
		return true;
	for (uint32_t i = 0; g->any_nested && i < t->n_passed; i++)
		if (related(g->k->ws->projects[t->passed[i]].dir, dir_of(g, u)))
			return true;
	return false;
}

static bool search(struct gate *g, const struct search *s)
{
	const struct vx_graph *gr = g->k->g;
	uint32_t n = 0, home = gr->tasks[s->task].project;
	g->round++;
	g->stack[n++] = s->task;
	g->stamp[s->task] = g->round;
	for (uint32_t i = 0; s->passed && i < gr->tasks[s->task].n_passed; i++)
		g->passed_in[gr->tasks[s->task].passed[i]] = g->round;
	while (n) {
		uint32_t t = g->stack[--n];
		if (t != s->task && (!s->same_project || gr->tasks[t].project == home) &&
			(changes(g, s, t) || meets_passed(g, s, t)))
			return true;
		for (uint32_t i = 0; i < gr->tasks[t].n_deps; i++) {
			uint32_t u = gr->tasks[t].deps[i], p = gr->tasks[u].project;
			bool follow =
				!s->same_project || p == home || (g->cyclic[home] && g->cyclic[p]);
			if (follow && g->stamp[u] != g->round) {
				g->stamp[u] = g->round;
				g->stack[n++] = u;
			}
		}
	}
	return false;
}

static void add_kind(struct kinds *k, uint32_t task)
{
	if (k->n < MANY)
		k->v[k->n++] = task;
	else
		k->n = MANY + 1;
}

/* The kinds of writers, of each project and of all. */
static void find_kinds(struct gate *g)
{
	const struct vx_graph *gr = g->k->g;
	struct vx_arena a = {0};
	struct vx_map seen = {0};
	struct vx_buf b = VX_BUF((size_t)1 << 30);
	for (uint32_t t = 0; t < gr->n_tasks; t++) {
		const struct vx_task *w = &gr->tasks[t];
		if (!task_writes(g, t) || (g->of_project[w->project].n > MANY && g->all.n > MANY))
			continue;
		uint32_t head[] = {
			w->project, g->reach[t], (uint32_t)w->decl->dialect, has_outputs(w)};
		vx_buf_clear(&b);
		vx_buf_add(&b, head, sizeof head);
		for (uint32_t i = 0; i < w->decl->cache.out_files.n; i++)
			vx_buf_add(&b, w->decl->cache.out_files.v[i],
				strlen(w->decl->cache.out_files.v[i]) + 1);
		if (vx_map_get(&seen, b.data, b.len) != VX_MAP_NONE)
			continue;
		vx_map_put(&seen, vx_arena_dup(&a, b.data, b.len), b.len, t);
		add_kind(&g->of_project[w->project], t);
		add_kind(&g->all, t);
	}
	vx_buf_free(&b);
	vx_map_free(&seen);
	vx_arena_free(&a);
}

/* No writer of these kinds changes what the task reads, wherever it stands: nobody needs to walk
 * upstream to know. */
static bool harmless(const struct gate *g, const struct search *s, const struct kinds *k)
{
	if (k->n > MANY)
		return false;
	for (uint32_t i = 0; i < k->n; i++)
		if (changes(g, s, k->v[i]))
			return false;
	return true;
}

/* Does a project that writes stand around `dir` (the root left out: it travels as a bit), or inside
 * it? */
static bool writer_around(const struct gate *g, const char *dir, bool inside_too)
{
	char up[VX_MAX_PATH];
	size_t n = strlen(dir);
	if (n >= sizeof up)
		return true;
	memcpy(up, dir, n + 1);
	for (char *slash; (slash = strrchr(up, '/')) != NULL;) {
		*slash = '\0';
		uint32_t p = vx_map_gets(&g->by_dir, up);
		if (p != VX_MAP_NONE && g->writes[p])
			return true;
	}
	for (uint32_t p = 0; inside_too && p < g->k->ws->n_projects; p++) {
		const char *d = g->k->ws->projects[p].dir;
		if (g->writes[p] && !vx_streq(d, dir) && vx_path_within(d, dir))
			return true;
	}
	return false;
}

/* Directories that workspaceFiles reach into: literal prefixes. */
static struct vx_strs ws_prefixes(const struct gate *g, const struct decl_globs *dg)
{
	struct vx_strlist l = {0};
	for (uint32_t i = 0; i < vx_globset_count(dg->ws_files); i++)
		vx_strlist_add(&l, &g->k->a, vx_globset_prefix(dg->ws_files, i));
	if (dg->up_files.n)
		vx_strlist_add(&l, &g->k->a, "");
	return vx_strlist_done(&l);
}

static bool writer_near_prefix(const struct gate *g, const char *prefix)
{
	if (vx_key_dir_is_root(prefix))
		return g->any_writes;
	uint32_t p = vx_map_gets(&g->by_dir, prefix);
	if (p == VX_MAP_NONE)
		return writer_around(g, prefix, true);
	if (!g->near[p]) /* many tasks pass through the same projects */
		g->near[p] = g->writes[p] || writer_around(g, prefix, true) ? 1 : 2;
	return g->near[p] == 1;
}

static bool preliminary(struct gate *g, uint32_t task)
{
	const struct vx_task *t = &g->k->g->tasks[task];
	for (uint32_t i = 0; i < t->n_deps; i++)
		if (g->k->stable[t->deps[i]] == 2)
			return true;
	if (!t->decl->has_exec && !vx_key_takes_chosen(t->decl) && !t->n_passed)
		return false;
	if (g->everywhere_up[task])
		return true;
	struct search s = {.task = task, .dir = dir_of(g, task), .same_project = true};
	if (vx_key_globs(g->k, t->decl, &s.dg, NULL) < 0)
		return true;
	if ((g->cyclic[t->project] || !harmless(g, &s, &g->of_project[t->project])) &&
		search(g, &s))
		return true;
	struct vx_strs prefixes =
		vx_key_takes_chosen(t->decl) ? ws_prefixes(g, s.dg) : (struct vx_strs){0};
	bool wide = g->root_up[task] || writer_around(g, s.dir,
						t->decl->dialect == VX_DIALECT_TURBO &&
							g->k->ws->projects[t->project].nested.n);
	for (uint32_t i = 0; i < prefixes.n && !wide; i++)
		wide = writer_near_prefix(g, prefixes.v[i]);
	for (uint32_t i = 0; i < t->n_passed && !s.passed; i++) {
		if (t->passed[i] == g->k->ws->root_project && g->any_writes)
			return true;
		s.passed = writer_near_prefix(g, g->k->ws->projects[t->passed[i]].dir);
	}
	if (!wide && !s.passed)
		return false;
	s.same_project = false;
	s.prefixes = prefixes.v;
	s.n_prefixes = prefixes.n;
	return (s.passed || !harmless(g, &s, &g->all)) && search(g, &s);
}

static void sum_up(struct gate *g)
{
	struct vx_keyer *k = g->k;
	const struct vx_graph *gr = k->g;
	for (uint32_t t = 0; t < gr->n_tasks; t++) {
		bool fingerprint;
		if (!gr->tasks[t].decl->has_cache)
			g->reach[t] = (uint8_t)vx_key_reach(k, t, &fingerprint);
		if (task_writes(g, t))
			g->writes[gr->tasks[t].project] = g->any_writes = true;
	}
	for (uint32_t i = 0; i < gr->n_tasks; i++) {
		uint32_t t = gr->topo[i];
		for (uint32_t j = 0; j < gr->tasks[t].n_deps; j++) {
			uint32_t u = gr->tasks[t].deps[j];
			g->everywhere_up[t] |= g->everywhere_up[u] || writes_everywhere(g, u);
			g->root_up[t] |= g->root_up[u] ||
					 (vx_key_dir_is_root(dir_of(g, u)) && task_writes(g, u));
		}
	}
}

static void decide_all(struct vx_keyer *k)
{
	const struct vx_graph *gr = k->g;
	uint32_t n = gr->n_tasks, np = k->ws->n_projects;
	struct gate g = {.k = k};
	g.reach = vx_xcalloc(n + 1, 1);
	g.everywhere_up = vx_xcalloc(n + 1, sizeof(bool));
	g.root_up = vx_xcalloc(n + 1, sizeof(bool));
	g.writes = vx_xcalloc(np + 1, sizeof(bool));
	g.cyclic = vx_xcalloc(np + 1, sizeof(bool));
	g.near = vx_xcalloc(np + 1, 1);
	g.stamp = vx_xcalloc(n + 1, sizeof *g.stamp);
	g.stack = vx_xcalloc(n + 1, sizeof *g.stack);
	g.passed_in = vx_xcalloc(np + 1, sizeof *g.passed_in);
	for (uint32_t p = 0; p < np; p++) {
		vx_map_puts(&g.by_dir, k->ws->projects[p].dir, p);
		g.any_nested |= p != k->ws->root_project && k->ws->projects[p].nested.n;
	}
	g.of_project = vx_xcalloc(np + 1, sizeof *g.of_project);
	sum_up(&g);
	find_cyclic(&g);
	find_kinds(&g);
	for (uint32_t i = 0; i < n; i++)
		k->stable[gr->topo[i]] = preliminary(&g, gr->topo[i]) ? 2 : 1;
	vx_map_free(&g.by_dir);
	free(g.reach);
	free(g.everywhere_up);
	free(g.root_up);
	free(g.writes);
	free(g.cyclic);
	free(g.near);
	free(g.passed_in);
	free(g.stamp);
	free(g.stack);
	free(g.of_project);
}

bool vx_key_stable(struct vx_keyer *k, uint32_t task)
{
	if (!k->stable) {
		k->stable = vx_xcalloc(k->g->n_tasks + 1, 1);
		if (!vx_seed_stable(k, k->stable))
			decide_all(k);
	}
	return k->stable[task] == 1;
}
