/* One task of a vx file. docs/config.md, "Project config". */
#include "cfg.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

static const char *const task_keys[] = {"description", "dependsOn", "exec", "cache", NULL};
static const char *const exec_keys[] = {"command", "script", "env", "timeout", "retries",
	"persistent", "interactive", "resources", "sandbox", NULL};
static const char *const env_keys[] = {"passThrough", "define", "secret", NULL};
static const char *const persistent_keys[] = {"readyWhen", NULL};
static const char *const resource_keys[] = {"cpus", "memory", "exclusive", NULL};
static const char *const cache_keys[] = {"inputs", "outputs", NULL};
static const char *const input_keys[] = {
	"files", "workspaceFiles", "env", "runtime", "workspaceRuntime", "tasks", NULL};
static const char *const output_keys[] = {"files", "workspaceFiles", NULL};

enum { MAX_RETRIES = 1000 };

/* A value that may be given as `false` for "none": NULL then. */
static const struct vx_json *unless_false(const struct vx_json *v)
{
	return vx_json_type(v) == VX_JSON_BOOL && !vx_json_bool(v) ? NULL : v;
}

static int take_define(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e)
{
	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_OBJECT)
		return cfg_fail(c, "exec.env.define", "must be an object of strings");
	int count = cfg_count(c, v, "exec.env.define");
	if (count < 0)
		return count;
	struct vx_kv *kv = vx_arena_array(c->a, vx_json_len(v) + 1, sizeof *kv);
	uint32_t n = 0;
	for (struct vx_json_iter it = vx_json_iter(v); vx_json_next(&it);) {
		const char *field = vx_arena_printf(c->a, "exec.env.define.%s", it.key),
			   *value = NULL;
		if (!it.val)
			return cfg_fail(c, field, "must be a string, not null");
		int r = cfg_str(c, it.val, field, &value);
		if (r < 0)
			return r;
		kv[n++] = (struct vx_kv){vx_arena_strdup(c->a, it.key), value};
	}
	e->define = kv;
	e->n_define = n;
	return 0;
}

static int take_env(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e)
{
	if (!v)
		return 0;
	int r = cfg_object(c, v, "exec.env", env_keys);
	if (r == 0)
		r = cfg_strs(
			c, vx_json_get(v, "passThrough"), "exec.env.passThrough", &e->pass_through);
	if (r == 0)
		r = take_define(c, vx_json_get(v, "define"), e);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "secret"), "exec.env.secret", &e->secret);
	return r;
}

static int take_persistent(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e)
{
	v = unless_false(v);
	if (!v)
		return 0;
	e->persistent = true;
	if (vx_json_type(v) == VX_JSON_BOOL)
		return 0;
	int r = cfg_object(c, v, "exec.persistent", persistent_keys);
	return r == 0 ? cfg_str(c, vx_json_get(v, "readyWhen"), "exec.persistent.readyWhen",
				&e->ready_when)
		      : r;
}

static int take_memory(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e)
{
	static const char field[] = "exec.resources.memory";
	const char *s;

	if (!v)
		return 0;
	if (vx_json_type(v) == VX_JSON_INT && vx_json_int(v) > 0) {
		e->memory_bytes = (uint64_t)vx_json_int(v);
		return 0;
	}
	if (vx_json_type(v) != VX_JSON_STRING)
		return cfg_fail(c, field, "must be a size like \"4G\", \"512M\" or \"64K\"");
	int r = cfg_str(c, v, field, &s);
	if (r == 0 && (vx_parse_bytes(s, &e->memory_bytes) < 0 || e->memory_bytes == 0))
		r = cfg_fail(c, field,
			"must be a size like \"4G\", \"512M\" or \"64K\", not \"%.60s\"", s);
	return r;
}

static int take_resources(const struct cfg *c, const struct vx_json *v, struct vx_exec_decl *e)
{
	int64_t cpus = 1;

	e->cpus = 1;
	if (!v)
		return 0;
	int r = cfg_object(c, v, "exec.resources", resource_keys);
	if (r == 0)
		r = cfg_int(
			c, vx_json_get(v, "cpus"), "exec.resources.cpus", 1, VX_MAX_SLOTS, &cpus);
	if (r == 0)
		r = take_memory(c, vx_json_get(v, "memory"), e);
	if (r == 0)
		r = cfg_bool(
			c, vx_json_get(v, "exclusive"), "exec.resources.exclusive", &e->exclusive);
	e->cpus = (uint32_t)cpus;
	return r;
}

/* A command, or the name of a script. Who gives one of the two takes the other's default away. */
static int take_command(const struct cfg *c, const struct vx_json *own,
	const struct vx_json *fallback, struct vx_exec_decl *e)
{
	bool mine = vx_json_get(own, "command") || vx_json_get(own, "script");
	const struct vx_json *command = mine ? vx_json_get(own, "command")
					     : cfg_pick(own, fallback, "command"),
			     *script = mine ? vx_json_get(own, "script")
					    : cfg_pick(own, fallback, "script");

	if (command && script) {
		cfg_fail(c, "exec", "has both a command and a script");
		return vx_err_fix(c->err, "keep one of them");
	}
	int r = cfg_str(c, command, "exec.command", &e->command);
	return r == 0 ? cfg_str(c, script, "exec.script", &e->script) : r;
}

static int take_exec(const struct cfg *c, const struct vx_json *own, const struct vx_json *fallback,
	struct vx_exec_decl *e)
{
	int64_t retries = -1;

	if (own) {
		int r = cfg_object(c, own, "exec", exec_keys);
		if (r < 0)
			return r;
	}
#define PICK(key) cfg_pick(own, fallback, key)
	int r = take_command(c, own, fallback, e);
	if (r == 0)
		r = take_env(c, PICK("env"), e);
	if (r == 0)
		r = cfg_int(
			c, PICK("timeout"), "exec.timeout", 0, VX_MAX_TIMEOUT_MS, &e->timeout_ms);
	if (r == 0)
		r = cfg_int(c, PICK("retries"), "exec.retries", 0, MAX_RETRIES, &retries);
	if (r == 0)
		r = take_persistent(c, PICK("persistent"), e);
	if (r == 0)
		r = cfg_bool(c, PICK("interactive"), "exec.interactive", &e->interactive);
	if (r == 0)
		r = take_resources(c, PICK("resources"), e);
	if (r == 0)
		r = cfg_sandbox(c, unless_false(PICK("sandbox")), e);
#undef PICK
	e->retries = (int32_t)retries;
	return r;
}

static int take_inputs(
	const struct cfg *c, const struct vx_json *v, struct vx_cache_decl *d, bool *ret_files)
{
	if (!v)
		return 0;
	int r = cfg_object(c, v, "cache.inputs", input_keys);
	*ret_files = vx_json_get(v, "files") != NULL;
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "files"), "cache.inputs.files", &d->files);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "workspaceFiles"), "cache.inputs.workspaceFiles",
			&d->workspace_files);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "env"), "cache.inputs.env", &d->env);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "runtime"), "cache.inputs.runtime", &d->runtime);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "workspaceRuntime"), "cache.inputs.workspaceRuntime",
			&d->workspace_runtime);
	if (r == 0)
		r = cfg_strs(c, vx_json_get(v, "tasks"), "cache.inputs.tasks", &d->tasks);
	d->tasks_given = vx_json_get(v, "tasks") != NULL;
	return r;
}

static int take_cache(const struct cfg *c, const struct vx_json *own,
	const struct vx_json *fallback, struct vx_cache_decl *d)
{
	const struct vx_json *in = cfg_pick(own, fallback, "inputs"),
			     *out = cfg_pick(own, fallback, "outputs");
	bool in_files = false, out_files = false;
	int r = own ? cfg_object(c, own, "cache", cache_keys) : 0;

	if (r == 0)
		r = take_inputs(c, in, d, &in_files);
	if (r == 0 && out) {
		r = cfg_object(c, out, "cache.outputs", output_keys);
		out_files = r == 0 && vx_json_get(out, "files");
	}
	if (r == 0 && out)
		r = cfg_strs(c, vx_json_get(out, "files"), "cache.outputs.files", &d->out_files);
	if (r == 0 && out)
		r = cfg_strs(c, vx_json_get(out, "workspaceFiles"), "cache.outputs.workspaceFiles",
			&d->out_workspace_files);
	if (r == 0 && (!in_files || !out_files)) {
		r = cfg_fail(c, "cache", "lacks %s",
			!in_files && !out_files ? "inputs.files and outputs.files"
			: in_files              ? "outputs.files"
						: "inputs.files");
		vx_err_fix(c->err,
			"say which files the result depends on and which it makes; an empty list is an answer");
	}
	return r;
}

int cfg_task_name(const struct cfg *c, const char *name)
{
	size_t n = strlen(name);
	const char *why = NULL;

	if (n == 0)
		return cfg_fail(c, NULL, "a task name must not be empty");
	if (n > VX_MAX_NAME)
		return cfg_fail(c, NULL, "the task name \"%.60s...\" is longer than %u bytes", name,
			VX_MAX_NAME);
	if (strchr(" \t\r\n", name[0]) || strchr(" \t\r\n", name[n - 1]))
		why = "start or end with a blank";
	else if (strchr(name, '#'))
		why = "hold '#', which separates project and task";
	else if (strchr(name, '*'))
		why = "hold '*', which is for patterns";
	else if (name[0] == '^' || name[0] == '!')
		why = "start with '^' or '!'";
	else if (vx_has_control(name))
		why = "hold a control character";
	return why ? cfg_fail(c, NULL, "the task name \"%.100s\" must not %s", name, why) : 0;
}

static int shape_of(
	const struct cfg *c, const struct vx_json *v, const char *field, const char *const *keys)
{
	return v && vx_json_type(v) != VX_JSON_BOOL ? cfg_object(c, v, field, keys) : 0;
}

int cfg_task_shape(const struct cfg *c, const struct vx_json *task, const char *field)
{
	int r = cfg_object(c, task, field, task_keys);

	if (r == 0)
		r = shape_of(c, vx_json_get(task, "exec"), "exec", exec_keys);
	if (r == 0)
		r = shape_of(c, vx_json_get(task, "cache"), "cache", cache_keys);
	return r;
}

const char *cfg_task_script(
	const struct vx_json *own, const struct vx_json *fallback, const char *task)
{
	const struct vx_json *mine = vx_json_get(own, "exec"),
			     *theirs = vx_json_get(fallback, "exec");
	const char *name = vx_json_str(vx_json_get(mine, "script"));

	if (!name && !vx_json_get(mine, "command"))
		name = vx_json_str(vx_json_get(theirs, "script"));
	return name ? name : fallback ? task : NULL;
}

/* The script that is named, or the one of the task's name where the workspace default applies and
 * names no command itself. */
static int apply_script(const struct cfg *c, const struct vx_json *fallback,
	const struct cfg_scripts *s, struct vx_task_decl *t)
{
	const char *name = t->exec.script;

	if (!s || (!name && (!fallback || t->exec.command)))
		return 0;
	if (!name && !cfg_script(s->project, c->task))
		return 0;
	if (name && !cfg_script(s->project, name)) {
		struct vx_strlist there = {0};
		for (uint32_t i = 0; i < s->project->n_scripts; i++)
			vx_strlist_add(&there, c->a, s->project->scripts[i].name);
		const char *near = vx_nearest(name, vx_strlist_done(&there));
		cfg_fail(c, "exec.script", "names \"%.100s\", which is no script of %s", name,
			s->project->manifest);
		return near ? vx_err_fix(c->err, "did you mean \"%s\"?", near)
			    : vx_err_fix(c->err, "add it to \"scripts\" there");
	}
	t->has_exec = true;
	cfg_use_script(s->manager, s->project, name ? name : c->task, c->a, &t->exec);
	return 0;
}

static int take_task(const struct cfg *c, const struct vx_json *own, const struct vx_json *fallback,
	const struct cfg_scripts *scripts, struct vx_task_decl *ret)
{
	struct vx_task_decl t = {.name = c->task,
		.source = c->source ? c->source : c->file,
		.in_project = c->source != NULL,
		.exec = {.timeout_ms = -1, .retries = -1, .cpus = 1}};
	int r = cfg_str(c, cfg_pick(own, fallback, "description"), "description", &t.description);

	if (r == 0)
		r = cfg_strs(c, cfg_pick(own, fallback, "dependsOn"), "dependsOn", &t.depends_on);
	const struct vx_json *exec_own = own ? vx_json_get(own, "exec") : NULL;
	const struct vx_json *exec_default =
		fallback && !(own && vx_json_has(own, "exec") && !exec_own)
			? vx_json_get(fallback, "exec")
			: NULL;
	if (r == 0 && (exec_own || exec_default)) {
		t.has_exec = true;
		r = take_exec(c, exec_own, exec_default, &t.exec);
	}
	if (r == 0)
		r = apply_script(c, fallback, scripts, &t);
	if (r == 0 && t.has_exec &&
		(!t.exec.command || t.exec.command[strspn(t.exec.command, " \t\r\n")] == '\0'))
		r = cfg_fail(c, t.exec.script ? "exec.script" : "exec.command",
			t.exec.command ? "is empty" : "is missing");
	const struct vx_json *cache_own = own ? vx_json_get(own, "cache") : NULL;
	const struct vx_json *cache_default =
		fallback && !(own && vx_json_has(own, "cache") && !cache_own)
			? vx_json_get(fallback, "cache")
			: NULL;
	if (cache_own && !unless_false(cache_own))
		cache_own = cache_default = NULL;
	cache_default = unless_false(cache_default);
	if (r == 0 && (cache_own || cache_default)) {
		t.has_cache = true;
		r = take_cache(c, cache_own, cache_default, &t.cache);
	}
	if (r == 0)
		*ret = t;
	return r;
}

int cfg_task_fields(const struct cfg *c, const struct vx_json *task, struct vx_task_decl *ret)
{
	if (vx_json_type(task) != VX_JSON_OBJECT)
		return cfg_fail(c, NULL, "the task must be an object");
	return take_task(c, task, NULL, NULL, ret);
}

int cfg_task(const struct cfg *c, const struct vx_json *own, const struct vx_json *fallback,
	const struct cfg_scripts *scripts, struct vx_task_decl *ret)
{
	struct vx_task_decl t;
	int r = own ? cfg_object(c, own, NULL, task_keys) : 0;

	if (r == 0)
		r = take_task(c, own, fallback, scripts, &t);
	if (r == 0)
		r = cfg_rules(c, &t);
	if (r < 0)
		return r;
	t.canonical = cfg_canonical(&t, c->a);
	*ret = t;
	return 0;
}
