/* Writing vx-lock.json. The tasks are written as a vx.json would say them, with a member "turbo"
 * for what only turbo.json can say. */
#include "lockfile_format.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/json.h"
#include "vx/lock.h"

#include <string.h>

static void put_str(struct vx_json *o, const char *key, const char *s)
{
	if (s)
		vx_json_set(o, key, vx_json_new_str(s));
}

static void put_strs(struct vx_json *o, const char *key, struct vx_strs s, bool always)
{
	if (s.n == 0 && !always)
		return;
	struct vx_json *a = vx_json_array();
	for (uint32_t i = 0; i < s.n; i++)
		vx_json_add(a, vx_json_new_str(s.v[i]));
	vx_json_set(o, key, a);
}

static void put_flag(struct vx_json *o, const char *key, bool on)
{
	if (on)
		vx_json_set(o, key, vx_json_new_bool(true));
}

/* Members of an object that says nothing are left out. */
static void put_object(struct vx_json *o, const char *key, struct vx_json *v)
{
	if (vx_json_len(v))
		vx_json_set(o, key, v);
	else
		vx_json_free(v);
}

static void put_all_or_list(struct vx_json *o, const char *key, bool all, struct vx_strs s)
{
	if (all)
		vx_json_set(o, key, vx_json_new_bool(true));
	else
		put_strs(o, key, s, false);
}

static struct vx_json *sandbox_json(const struct vx_sbx_decl *s)
{
	struct vx_json *o = vx_json_object(), *allow = vx_json_object(), *deny = vx_json_object(),
		       *ignore = vx_json_object();

	put_strs(allow, "read", s->read, false);
	put_strs(allow, "write", s->write, false);
	put_all_or_list(allow, "network", s->net_all, s->net_allow);
	put_all_or_list(allow, "unixSockets", s->unix_all, s->unix_paths);
	if (s->bind_all) {
		put_flag(allow, "localBinding", true);
	} else if (s->n_bind_ports) {
		struct vx_json *a = vx_json_array();
		for (uint32_t i = 0; i < s->n_bind_ports; i++)
			vx_json_add(a, vx_json_new_int(s->bind_ports[i]));
		vx_json_set(allow, "localBinding", a);
	}
	put_flag(allow, "pty", s->pty);
	put_flag(allow, "gitConfig", s->git_config);
	put_strs(allow, "devices", s->devices, false);
	put_strs(allow, "protected", s->protect, false);
	put_strs(deny, "network", s->net_deny, false);
	put_strs(ignore, "read", s->ignore_read, false);
	put_strs(ignore, "write", s->ignore_write, false);
	put_strs(ignore, "network", s->ignore_net, false);
	put_object(o, "allow", allow);
	put_object(o, "deny", deny);
	put_object(o, "ignore", ignore);
	put_flag(o, "weakerWhenNested", s->weaker_when_nested);
	return o;
}

static struct vx_json *exec_json(const struct vx_exec_decl *e)
{
	struct vx_json *o = vx_json_object(), *env = vx_json_object(), *define = vx_json_object(),
		       *res = vx_json_object();

	put_str(o, "command", e->command);
	if (!e->command)
		put_str(o, "script", e->script); /* a vx.json names it alone */
	put_strs(env, "passThrough", e->pass_through, false);
	for (uint32_t i = 0; i < e->n_define; i++)
		put_str(define, e->define[i].name, e->define[i].value);
	put_object(env, "define", define);
	put_strs(env, "secret", e->secret, false);
	put_object(o, "env", env);
	if (e->timeout_ms >= 0)
		vx_json_set(o, "timeout", vx_json_new_int(e->timeout_ms));
	if (e->retries >= 0)
		vx_json_set(o, "retries", vx_json_new_int(e->retries));
	if (e->persistent) {
		struct vx_json *p = vx_json_object();
		put_str(p, "readyWhen", e->ready_when);
		vx_json_set(o, "persistent", p);
	}
	put_flag(o, "interactive", e->interactive);
	if (e->cpus > 1)
		vx_json_set(res, "cpus", vx_json_new_int(e->cpus));
	if (e->memory_bytes)
		vx_json_set(res, "memory", vx_json_new_int((int64_t)e->memory_bytes));
	put_flag(res, "exclusive", e->exclusive);
	put_object(o, "resources", res);
	if (e->sandboxed)
		vx_json_set(o, "sandbox", sandbox_json(&e->sandbox));
	return o;
}

static struct vx_json *cache_json(const struct vx_cache_decl *d)
{
	struct vx_json *o = vx_json_object(), *in = vx_json_object(), *out = vx_json_object();

	put_strs(in, "files", d->files, true);
	put_strs(in, "workspaceFiles", d->workspace_files, false);
	put_strs(in, "env", d->env, false);
	put_strs(in, "runtime", d->runtime, false);
	put_strs(in, "workspaceRuntime", d->workspace_runtime, false);
	put_strs(in, "tasks", d->tasks, d->tasks_given);
	put_strs(out, "files", d->out_files, true);
	put_strs(out, "workspaceFiles", d->out_workspace_files, false);
	vx_json_set(o, "inputs", in);
	vx_json_set(o, "outputs", out);
	return o;
}

struct vx_json *lock_task_json(const struct vx_task_decl *t)
{
	struct vx_json *o = vx_json_object();

	put_str(o, "description", t->description);
	put_strs(o, "dependsOn", t->depends_on, false);
	if (t->has_exec)
		vx_json_set(o, "exec", exec_json(&t->exec));
	if (t->has_cache)
		vx_json_set(o, "cache", cache_json(&t->cache));
	if (t->exec.script && t->exec.command) {
		struct vx_json *s = vx_json_object();
		put_str(s, "name", t->exec.script);
		put_str(s, "pre", t->exec.pre);
		put_str(s, "post", t->exec.post);
		vx_json_set(o, "script", s);
	}
	put_str(o, "source", t->source);
	put_flag(o, "inProject", t->in_project);
	if (t->dialect == VX_DIALECT_TURBO) {
		struct vx_json *turbo = vx_json_object();
		put_flag(turbo, "defaultInputs", t->cache.default_inputs);
		if (t->cache.n_inferred)
			vx_json_set(turbo, "inferredEnv", vx_json_new_int(t->cache.n_inferred));
		put_flag(turbo, "saysCache", t->says_cache);
		put_strs(turbo, "with", t->with, false);
		put_str(turbo, "outputLogs", t->output_logs);
		/* what is not cached or not run stands with these in its dependents' keys */
		if (!t->has_cache)
			vx_json_set(turbo, "cache", cache_json(&t->cache));
		if (!t->has_exec)
			put_strs(turbo, "passThrough", t->exec.pass_through, false);
		vx_json_set(o, "turbo", turbo);
	}
	return o;
}

static struct vx_json *settings_json(const struct vx_ws_settings *s)
{
	struct vx_json *o = vx_json_object(), *keep = vx_json_object(), *rules = vx_json_object();

	put_str(o, "concurrency", s->concurrency);
	put_str(o, "cacheDir", s->cache_dir);
	put_flag(o, "sharedStore", s->shared_store);
	if (s->timeout_ms >= 0)
		vx_json_set(o, "timeout", vx_json_new_int(s->timeout_ms));
	put_str(keep, "olderThan", s->retention_older_than);
	put_str(keep, "maxSize", s->retention_max_size);
	put_object(o, "cacheRetention", keep);
	put_str(o, "affectedBase", s->affected_base);
	vx_json_set(rules, "exclusiveOutputs", vx_json_new_bool(s->exclusive_outputs));
	vx_json_set(rules, "upfrontKeys", vx_json_new_bool(s->upfront_keys));
	vx_json_set(o, "rules", rules);
	return o;
}

static struct vx_json *manager_json(const struct vx_manager *m)
{
	struct vx_json *o = vx_json_object();

	put_str(o, "name", lock_pm_names[m->pm]);
	put_str(o, "version", m->version);
	put_flag(o, "plugAndPlay", m->pnp);
	put_str(o, "scriptShell", m->shell);
	put_str(o, "nodeOptions", m->node_options);
	return o;
}

static struct vx_json *project_json(const struct vx_workspace *ws, const struct vx_project *p)
{
	struct vx_json *o = vx_json_object(), *deps = vx_json_array(), *tasks = vx_json_object();

	put_str(o, "name", p->name);
	put_str(o, "dir", p->dir);
	put_str(o, "version", p->version);
	put_strs(o, "tags", p->tags, false);
	for (uint32_t i = 0; i < p->n_deps; i++)
		vx_json_add(deps, vx_json_new_str(ws->projects[p->deps[i]].dir));
	vx_json_set(o, "deps", deps);
	for (uint32_t i = 0; i < p->n_tasks; i++)
		vx_json_set(tasks, p->tasks[i]->name, lock_task_json(p->tasks[i]));
	vx_json_set(o, "tasks", tasks);
	return o;
}

void vx_lock_write(const struct vx_workspace *ws, struct vx_buf *out)
{
	struct vx_json *o = vx_json_object(), *projects = vx_json_array();

	vx_json_set(o, "lockVersion", vx_json_new_int(VX_LOCK_VERSION));
	vx_json_set(o, "workspace", vx_json_new_str(lock_kind_names[ws->kind]));
	vx_json_set(o, "manager", manager_json(&ws->manager));
	vx_json_set(o, "settings", settings_json(&ws->settings));
	if (ws->settings.turbo) {
		struct vx_json *t = vx_json_object();
		put_strs(t, "globalDependencies", ws->settings.global_files, false);
		put_strs(t, "globalEnv", ws->settings.global_env, false);
		put_strs(t, "globalPassThroughEnv", ws->settings.global_pass_through, false);
		vx_json_set(o, "turbo", t);
	}
	for (uint32_t i = 0; i < ws->n_projects; i++)
		vx_json_add(projects, project_json(ws, &ws->projects[i]));
	vx_json_set(o, "projects", projects);
	vx_json_write_pretty(o, out);
	if (out->len && out->data[out->len - 1] != '\n')
		vx_buf_addc(out, '\n');
	vx_json_free(o);
}
