/* From the command line to a task graph. */
#include "cli.h"

#include "vx/affected.h"
#include "vx/config.h"
#include "vx/facts.h"
#include "vx/graph.h"
#include "vx/key.h"
#include "vx/limits.h"
#include "vx/lock.h"
#include "vx/path.h"
#include "vx/secret.h"
#include "vx/snapshot.h"
#include "vx/store.h"
#include "vx/workspace.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int vx_cli_root(struct vx_plan *p, struct vx_err *err)
{
	char *cwd = NULL, *root = NULL;
	int r = vx_workspace_find(".", &p->arena, &root, err);
	if (r)
		return r;
	r = vx_path_canon(&p->arena, ".", &cwd);
	if (r)
		return vx_err_set(
			err, r, "the current directory cannot be read: %s", vx_strerror(r));
	const char *below = vx_path_below(cwd, root);
	p->root = root;
	p->cwd = below && *below ? below : ".";
	return 0;
}

static void ask(struct vx_strlist *l, struct vx_plan *p, const char *what, struct vx_strs values)
{
	vx_strlist_add(l, &p->arena, vx_arena_printf(&p->arena, "%s:%u", what, values.n));
	for (uint32_t i = 0; i < values.n; i++)
		vx_strlist_add(l, &p->arena, values.v[i]);
}

/* Opens the memory of this plan. What asks git is not kept: its answer depends on more than
 * files. */
static struct vx_snapshot *open_snapshot(
	const struct vx_run_opts *o, struct vx_plan *p, const char *root)
{
	struct vx_strlist asked = {0};
	if (o->affected || o->frozen)
		return NULL;
	for (uint32_t i = 0; i < o->filters.n; i++)
		if (strchr(o->filters.v[i], '['))
			return NULL;
	vx_strlist_add(&asked, &p->arena, p->cwd);
	vx_strlist_add(&asked, &p->arena, o->all ? "all" : "");
	vx_strlist_add(&asked, &p->arena, o->exclude_deps ? "exclude" : "");
	vx_strlist_add(&asked, &p->arena, o->wants_tasks ? "tasks" : "");
	vx_strlist_add(&asked, &p->arena, o->no_inference ? "no inference" : "");
	ask(&asked, p, "filters", o->filters);
	ask(&asked, p, "words", o->words);
	ask(&asked, p, "names", o->exclude_names);
	return vx_snapshot_open(root, vx_strlist_done(&asked));
}

/* What neither the selection nor the graph needed. */
static void warn_of_broken(struct vx_plan *p)
{
	struct vx_strlist l = {0};
	const struct vx_project *first = NULL;
	uint32_t n = 0;

	for (uint32_t i = 0; i < p->ws.n_projects; i++)
		if (p->ws.projects[i].broken) {
			first = first ? first : &p->ws.projects[i];
			n++;
		}
	if (!n)
		return;
	for (uint32_t i = 0; i < p->ws.warnings.n; i++)
		vx_strlist_add(&l, &p->arena, p->ws.warnings.v[i]);
	const char *more = n > 1 ? vx_arena_printf(&p->arena,
					   ", nor %u more whose configuration is broken", n - 1)
				 : "";
	vx_strlist_add(&l, &p->arena,
		vx_arena_printf(&p->arena, "%s%s%s (this run does not need %s%s)",
			first->broken->what, *first->broken->fix ? ": " : "", first->broken->fix,
			first->name, more));
	p->ws.warnings = vx_strlist_done(&l);
}

/* --affected: what of the selection a change concerns. */
static int narrow(const struct vx_run_opts *o, struct vx_plan *p,
	const struct vx_evaluations *evaluated, struct vx_err *err)
{
	const struct vx_ws_settings *set = &p->ws.settings;
	struct vx_affected_opts ao = {
		.evaluated = evaluated, .frozen = o->frozen, .no_inference = o->no_inference};
	char *dir = NULL;
	int r = vx_store_dir(
		o->cache_dir, set->cache_dir, set->shared_store, p->ws.root, &p->arena, &dir, err);

	ao.cache_dir = dir;
	return r < 0 ? r
		     : vx_affected_narrow(&p->ws, o->affected_base, &ao, &p->arena, &p->sel, err);
}

static int derive(
	const struct vx_run_opts *o, struct vx_plan *p, const char *root, struct vx_err *err)
{
	struct vx_evaluations evaluated = {0};

	if (p->snapshot)
		vx_facts_use(vx_snapshot_facts(p->snapshot));
	int r = o->frozen ? vx_lock_read(root, &p->arena, &p->ws, err)
			  : vx_workspace_load(root, &p->arena, &p->ws, err);
	for (uint32_t i = 0; !r && o->no_inference && i < p->ws.n_projects; i++)
		p->ws.projects[i].framework_env = (struct vx_strs){0};
	if (!r && !o->frozen)
		r = vx_config_load_as(
			&p->ws, &p->arena, NULL, o->affected ? &evaluated : NULL, err);
	vx_facts_use(NULL);
	if (r)
		return r;
	struct vx_select_opts so = {.cwd = p->cwd,
		.all = o->all,
		.filters = o->filters,
		.affected = o->affected,
		.words = o->words,
		.wants_tasks = o->wants_tasks,
		.global = vx_affected_global};
	r = vx_select(&p->ws, &so, &p->arena, &p->sel, err);
	if (!r && o->affected)
		r = narrow(o, p, &evaluated, err);
	if (r || p->sel.nothing)
		return r;
	struct vx_graph_opts go = {
		.exclude_dependencies = o->exclude_deps, .exclude_names = o->exclude_names};
	r = vx_graph_build(&p->ws, &p->sel, &go, &p->arena, &p->graph, err);
	if (!r)
		warn_of_broken(p);
	if (!r && p->snapshot)
		vx_snapshot_planned(p->snapshot, &p->ws, &p->sel, &p->graph);
	return r;
}

/* What a task declares secret, and what it sets under a secret name. */
static void learn_secrets_of(const struct vx_exec_decl *x, struct vx_arena *a)
{
	struct vx_strlist env = {0};

	for (uint32_t i = 0; i < x->secret.n; i++) {
		const char *value = getenv(x->secret.v[i]);
		if (value)
			vx_strlist_add(&env, a, vx_arena_printf(a, "%s=%s", x->secret.v[i], value));
	}
	for (uint32_t i = 0; i < x->n_define; i++)
		vx_strlist_add(&env, a,
			vx_arena_printf(a, "%s=%s", x->define[i].name, x->define[i].value));
	vx_secrets_learn(vx_strlist_done(&env), x->secret);
}

void vx_cli_learn_secrets(const struct vx_workspace *ws)
{
	struct vx_arena a = {0};
	const struct vx_task_decl *last = NULL;

	for (uint32_t p = 0; p < ws->n_projects; p++)
		for (uint32_t i = 0; i < ws->projects[p].n_tasks; i++) {
			const struct vx_task_decl *t = ws->projects[p].tasks[i];
			if (t != last && (t->exec.secret.n || t->exec.n_define))
				learn_secrets_of(&t->exec, &a);
			last = t;
		}
	vx_arena_free(&a);
}

static int make_plan(const struct vx_run_opts *o, struct vx_plan *p, struct vx_err *err)
{
	int r = p->root ? 0 : vx_cli_root(p, err);
	if (r)
		return r;
	p->snapshot = open_snapshot(o, p, p->root);
	if (p->snapshot && p->wants_files)
		p->ahead = vx_ahead_start(p->root, true);
	if (p->snapshot && vx_snapshot_take(p->snapshot, &p->ws, &p->sel, &p->graph))
		return 0;
	if (p->ahead)
		vx_ahead_list(p->ahead);
	else if (p->wants_files)
		p->ahead = vx_ahead_start(p->root, false);
	r = derive(o, p, p->root, err);
	if (r || p->sel.nothing) {
		vx_ahead_free(p->ahead);
		p->ahead = NULL;
	}
	return r;
}

int vx_cli_plan(const struct vx_run_opts *o, struct vx_plan *p, struct vx_err *err)
{
	int r = make_plan(o, p, err);

	if (!r && !p->sel.nothing)
		r = vx_run_check_scripts(p, err);
	/* also of a plan that failed: its error may quote what is secret */
	vx_cli_learn_secrets(&p->ws);
	return r ? r : vx_run_check_forwarded(p, o->forwarded, err);
}
