/* One task of a plan as JSON: what --dry and --summarize print. docs/schemas/plan.json describes
 * it. */
#include "vx/arena.h"
#include "vx/err.h"
#include "vx/hash.h"
#include "vx/json.h"
#include "vx/key.h"
#include "vx/path.h"
#include "vx/run.h"
#include "vx/sandbox.h"

#include <string.h>
#include <unistd.h>

struct view {
	const struct vx_plan *p;
	const char *store_dir;
	struct vx_arena *a;
};

static struct vx_json *strings(struct vx_strs s, bool negated)
{
	struct vx_json *a = vx_json_array();
	for (uint32_t i = 0; i < s.n; i++)
		if ((s.v[i][0] == '!') == negated)
			vx_json_add(a, vx_json_new_str(s.v[i] + negated));
	return a;
}

/* Output globs of both kinds, relative to the project: workspace ones lead out of it. */
static struct vx_json *outputs(struct view *d, const struct vx_task *t, bool negated)
{
	struct vx_json *a = strings(t->decl->cache.out_files, negated);
	struct vx_strs ws = t->decl->cache.out_workspace_files;
	const char *dir = d->p->ws.projects[t->project].dir;
	for (uint32_t i = 0; i < ws.n; i++)
		if ((ws.v[i][0] == '!') == negated)
			vx_json_add(
				a, vx_json_new_str(vx_path_relative(d->a, dir, ws.v[i] + negated)));
	return a;
}

/* Turborepo lists no symlinks among its inputs, but what they lead to. They are in the key all the
 * same (a link that points elsewhere is a change), so they stand in a member of their own. */
static bool is_apart(const struct vx_task *t, const struct vx_key_input *in)
{
	return t->decl->dialect == VX_DIALECT_TURBO && (in->mode & 0170000) == 0120000;
}

static struct vx_json *inputs_json(
	struct view *d, const struct vx_task *t, const struct vx_key_record *r, bool apart)
{
	struct vx_json *o = vx_json_object();
	const char *dir = d->p->ws.projects[t->project].dir;
	char hex[2 * 32 + 1];
	for (uint32_t i = 0; i < r->n_inputs; i++) {
		const char *below = vx_path_below(r->inputs[i].path, dir);
		if (is_apart(t, &r->inputs[i]) != apart)
			continue;
		vx_hex(r->inputs[i].oid.b, r->inputs[i].oid.n, hex);
		vx_json_set(o,
			below && *below ? below : vx_path_relative(d->a, dir, r->inputs[i].path),
			vx_json_new_str(hex));
	}
	return o;
}

static struct vx_json *parts_json(const struct vx_key_record *r)
{
	struct vx_json *a = vx_json_array();
	for (uint32_t i = 0; i < r->n_parts; i++) {
		struct vx_json *o = vx_json_object();
		vx_json_set(o, "part", vx_json_new_str(r->parts[i].label));
		vx_json_set(o, "value", vx_json_new_str(r->parts[i].value));
		vx_json_add(a, o);
	}
	return a;
}

static struct vx_json *sandbox_json(struct view *d, uint32_t task)
{
	struct vx_sbx_spec spec;
	struct vx_sbx_request request;
	struct vx_err err = {0};
	struct vx_sbx_facts facts = vx_sbx_real_facts();
	vx_run_sandbox_spec(d->p, task, d->store_dir, d->a, &spec);
	if (!vx_sbx_resolve(&spec, &facts, d->a, &request, &err))
		return vx_sbx_request_json(&request);
	struct vx_json *o = vx_json_object();
	char line[sizeof err.what + sizeof err.fix + 8];
	vx_err_line(&err, line, sizeof line);
	vx_json_set(o, "refused", vx_json_new_str(line));
	return o;
}

static struct vx_json *names(struct vx_strs s)
{
	struct vx_json *a = vx_json_array();
	for (uint32_t i = 0; i < s.n; i++)
		vx_json_add(a, vx_json_new_str(s.v[i]));
	return a;
}

/* The variables that are set, of those that the framework adds to `env`. */
static struct vx_json *inferred(const struct vx_task_decl *t, struct vx_arena *a)
{
	const struct vx_cache_decl *d = &t->cache;
	struct vx_json *o = vx_json_array();
	struct vx_strlist list = {0};
	for (uint32_t i = 0; i < d->env.n; i++)
		if (i >= d->env.n - d->n_inferred || d->env.v[i][0] == '!')
			vx_strlist_add(&list, a, d->env.v[i]);
	struct vx_strs set =
		vx_env_select(vx_strlist_done(&list), (const char *const *)environ, t->dialect, a);
	for (uint32_t i = 0; i < set.n; i++)
		vx_json_add(
			o, vx_json_new_str(vx_arena_strndup(a, set.v[i], strcspn(set.v[i], "="))));
	return o;
}

static struct vx_json *script_json(const struct vx_exec_decl *x)
{
	struct vx_json *o = vx_json_object();
	vx_json_set(o, "name", vx_json_new_str(x->script));
	if (x->pre)
		vx_json_set(o, "pre", vx_json_new_str(x->pre));
	if (x->post)
		vx_json_set(o, "post", vx_json_new_str(x->post));
	return o;
}

struct vx_json *vx_run_task_json(
	const struct vx_plan *plan, uint32_t i, const struct vx_task_view *v, struct vx_arena *a)
{
	struct view *d = &(struct view){.p = plan, .store_dir = v->store_dir, .a = a};
	const struct vx_task *t = &d->p->graph.tasks[i];
	const struct vx_project *p = &d->p->ws.projects[t->project];
	const struct vx_task_decl *decl = t->decl;
	const struct vx_key_record *r = v->keyer ? vx_key_get(v->keyer, i) : NULL;
	struct vx_json *o = vx_json_object(), *deps = vx_json_array();
	char hex[VX_DIGEST_HEX];
	vx_json_set(o, "id", vx_json_new_str(t->id));
	vx_json_set(o, "project", vx_json_new_str(p->name));
	vx_json_set(o, "task", vx_json_new_str(decl->name));
	vx_json_set(o, "dir", vx_json_new_str(p->dir));
	if (decl->has_exec)
		vx_json_set(o, "command", vx_json_new_str(decl->exec.command));
	if (decl->exec.script)
		vx_json_set(o, "script", script_json(&decl->exec));
	for (uint32_t k = 0; k < t->n_deps; k++)
		vx_json_add(deps, vx_json_new_str(d->p->graph.tasks[t->deps[k]].id));
	vx_json_set(o, "deps", deps);
	vx_json_set(o, "requested", vx_json_new_bool(t->requested));
	vx_json_set(o, "cacheStatus", vx_json_new_str(v->cache_status));
	if (r) {
		vx_hex(r->key.b, VX_DIGEST_BYTES, hex);
		vx_json_set(o, v->stable ? "hash" : "preliminaryHash", vx_json_new_str(hex));
	}
	vx_json_set(o, "cache", vx_json_new_bool(decl->has_cache || decl->says_cache));
	vx_json_set(o, "persistent", vx_json_new_bool(decl->has_exec && decl->exec.persistent));
	vx_json_set(o, "outputs", outputs(d, t, false));
	vx_json_set(o, "excludedOutputs", outputs(d, t, true));
	vx_json_set(o, "env",
		names((struct vx_strs){
			decl->cache.env.v, decl->cache.env.n - decl->cache.n_inferred}));
	if (decl->cache.n_inferred)
		vx_json_set(o, "inferredEnv", inferred(decl, a));
	vx_json_set(o, "passThroughEnv", names(decl->exec.pass_through));
	vx_json_set(o, "predictedMs", vx_json_new_int((int64_t)(v->predicted_ns / 1000000)));
	if (v->reason)
		vx_json_set(o, "reason", vx_json_new_str(v->reason));
	if (v->full && r) {
		vx_json_set(o, "inputs", inputs_json(d, t, r, false));
		if (decl->dialect == VX_DIALECT_TURBO)
			vx_json_set(o, "links", inputs_json(d, t, r, true));
		vx_json_set(o, "key", parts_json(r));
		if (decl->has_exec && decl->exec.sandboxed)
			vx_json_set(o, "sandbox", sandbox_json(d, i));
	}
	return o;
}
