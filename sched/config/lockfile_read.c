/* Reading vx-lock.json. */
#include "lockfile_format.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/lock.h"
#include "vx/path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

const char *const lock_kind_names[LOCK_KINDS] = {"single", "npm", "yarn", "pnpm", "bun"};

const char *const lock_pm_names[LOCK_PMS] = {"npm", "yarn@1", "yarn", "pnpm", "bun"};

struct reader {
	struct cfg c;
	struct vx_workspace ws;
};

static int broken(struct reader *r, const char *what)
{
	vx_err_set(r->c.err, -EINVAL, VX_LOCK_FILE ": %s", what);
	return vx_err_fix(r->c.err, "write it again: vx lock");
}

static int read_turbo(struct reader *r, const struct vx_json *v, struct vx_task_decl *t)
{
	const struct vx_json *cache = vx_json_get(v, "cache");
	int e = 0;

	t->dialect = VX_DIALECT_TURBO;
	if (cache) {
		const struct vx_json *in = vx_json_get(cache, "inputs"),
				     *out = vx_json_get(cache, "outputs");
		e = cfg_strs(&r->c, vx_json_get(in, "files"), "files", &t->cache.files);
		if (e == 0)
			e = cfg_strs(&r->c, vx_json_get(in, "workspaceFiles"), "workspaceFiles",
				&t->cache.workspace_files);
		if (e == 0)
			e = cfg_strs(&r->c, vx_json_get(in, "env"), "env", &t->cache.env);
		if (e == 0)
			e = cfg_strs(
				&r->c, vx_json_get(out, "files"), "files", &t->cache.out_files);
		if (e == 0)
			e = cfg_strs(&r->c, vx_json_get(out, "workspaceFiles"), "workspaceFiles",
				&t->cache.out_workspace_files);
	}
	if (e == 0 && !t->has_exec)
		e = cfg_strs(
			&r->c, vx_json_get(v, "passThrough"), "passThrough", &t->exec.pass_through);
	if (e == 0)
		e = cfg_bool(&r->c, vx_json_get(v, "defaultInputs"), "defaultInputs",
			&t->cache.default_inputs);
	int64_t inferred = 0;
	if (e == 0)
		e = cfg_int(&r->c, vx_json_get(v, "inferredEnv"), "inferredEnv", 0, t->cache.env.n,
			&inferred);
	t->cache.n_inferred = (uint32_t)inferred;
	if (e == 0)
		e = cfg_bool(&r->c, vx_json_get(v, "saysCache"), "saysCache", &t->says_cache);
	if (e == 0)
		e = cfg_strs(&r->c, vx_json_get(v, "with"), "with", &t->with);
	return e == 0 ? cfg_str(&r->c, vx_json_get(v, "outputLogs"), "outputLogs", &t->output_logs)
		      : e;
}

static int read_script(struct reader *r, const struct vx_json *v, struct vx_exec_decl *x)
{
	int e = cfg_str(&r->c, vx_json_get(v, "name"), "script.name", &x->script);

	if (e == 0)
		e = cfg_str(&r->c, vx_json_get(v, "pre"), "script.pre", &x->pre);
	return e == 0 ? cfg_str(&r->c, vx_json_get(v, "post"), "script.post", &x->post) : e;
}

static int read_manager(struct reader *r, const struct vx_json *v, struct vx_manager *m)
{
	const char *name = vx_json_str(vx_json_get(v, "name"));
	int k = 0;

	while (k < LOCK_PMS && !vx_streq(name, lock_pm_names[k]))
		k++;
	if (k == LOCK_PMS)
		return broken(r, "it names no package manager");
	m->pm = (enum vx_pm)k;
	int e = cfg_str(&r->c, vx_json_get(v, "version"), "manager.version", &m->version);
	if (e == 0)
		e = cfg_bool(&r->c, vx_json_get(v, "plugAndPlay"), "manager.plugAndPlay", &m->pnp);
	if (e == 0)
		e = cfg_str(&r->c, vx_json_get(v, "scriptShell"), "manager.scriptShell", &m->shell);
	return e == 0 ? cfg_str(&r->c, vx_json_get(v, "nodeOptions"), "manager.nodeOptions",
				&m->node_options)
		      : e;
}

static int read_task(struct reader *r, const struct vx_json *v, struct vx_task_decl *t)
{
	const struct vx_json *turbo = vx_json_get(v, "turbo"), *script = vx_json_get(v, "script");
	int e = cfg_task_fields(&r->c, v, t);

	if (e == 0 && script)
		e = read_script(r, script, &t->exec);

	if (e == 0)
		e = cfg_str(&r->c, vx_json_get(v, "source"), "source", &t->source);
	if (e == 0)
		e = cfg_bool(&r->c, vx_json_get(v, "inProject"), "inProject", &t->in_project);
	if (e == 0 && turbo)
		e = read_turbo(r, turbo, t);
	if (e == 0 && !turbo)
		e = cfg_rules(&r->c, t);
	if (e == 0)
		t->canonical = cfg_canonical(t, r->c.a);
	return e;
}

static int read_tasks(struct reader *r, const struct vx_json *v, struct vx_project *p)
{
	const struct vx_task_decl **list = vx_arena_array(r->c.a, vx_json_len(v) + 1, sizeof *list);
	uint32_t n = 0;

	for (struct vx_json_iter it = vx_json_iter(v); vx_json_next(&it);) {
		struct vx_task_decl *t = vx_arena_alloc(r->c.a, sizeof *t);
		r->c.task = NULL;
		int e = cfg_task_name(&r->c, it.key);
		r->c.task = vx_arena_strdup(r->c.a, it.key);
		if (e == 0)
			e = read_task(r, it.val, t);
		if (e < 0)
			return e;
		list[n++] = t;
	}
	r->c.task = NULL;
	p->tasks = list;
	p->n_tasks = n;
	return 0;
}

static int read_project(struct reader *r, const struct vx_json *v)
{
	struct vx_workspace *ws = &r->ws;
	struct vx_project *p = &ws->projects[ws->n_projects];

	r->c.project = NULL;
	int e = cfg_str(&r->c, vx_json_get(v, "name"), "name", &p->name);
	if (e == 0)
		e = cfg_str(&r->c, vx_json_get(v, "dir"), "dir", &p->dir);
	if (e < 0)
		return e;
	if (!p->name || !*p->name || !p->dir || !*p->dir || *p->dir == '/' ||
		vx_starts_with(p->dir, "..") || strcmp(vx_path_norm(r->c.a, p->dir), p->dir) != 0)
		return broken(r, "a project lacks its name or its directory");
	if (!vx_map_puts(&ws->by_name, p->name, ws->n_projects) ||
		!vx_map_puts(&ws->by_dir, p->dir, ws->n_projects))
		return broken(r, "two projects have one name or one directory");
	if (strcmp(p->dir, ".") == 0) {
		ws->root_project = ws->n_projects;
		vx_map_puts(&ws->by_name, "//", ws->n_projects);
	}
	p->manifest = strcmp(p->dir, ".") == 0 ? "package.json"
					       : vx_arena_printf(r->c.a, "%s/package.json", p->dir);
	r->c.project = p->name;
	e = cfg_str(&r->c, vx_json_get(v, "version"), "version", &p->version);
	if (e == 0)
		e = cfg_strs(&r->c, vx_json_get(v, "tags"), "tags", &p->tags);
	if (e == 0)
		e = read_tasks(r, vx_json_get(v, "tasks"), p);
	ws->n_projects++;
	return e;
}

/* Edges name directories, which are all known by now; and which projects lie in which. */
static int read_links(struct reader *r, const struct vx_json *projects)
{
	struct vx_workspace *ws = &r->ws;
	struct vx_strlist *in = vx_arena_array(r->c.a, (size_t)ws->n_projects + 1, sizeof *in);

	for (uint32_t i = 0; i < ws->n_projects; i++) {
		const struct vx_json *deps = vx_json_get(vx_json_at(projects, i), "deps");
		uint32_t *v = vx_arena_array(r->c.a, vx_json_len(deps) + 1, sizeof *v), n = 0;
		for (size_t k = 0; k < vx_json_len(deps); k++) {
			const char *dir = vx_json_str(vx_json_at(deps, k));
			uint32_t d = dir ? vx_map_gets(&ws->by_dir, dir) : VX_MAP_NONE;
			if (d == VX_MAP_NONE)
				return broken(r, "a project depends on one that is not in it");
			v[n++] = d;
		}
		ws->projects[i].deps = v;
		ws->projects[i].n_deps = n;
		const char *dir = ws->projects[i].dir;
		for (size_t at = strlen(dir); at-- > 0 && strcmp(dir, ".") != 0;) {
			uint32_t p =
				dir[at] == '/' ? vx_map_get(&ws->by_dir, dir, at) : VX_MAP_NONE;
			if (p != VX_MAP_NONE)
				vx_strlist_add(&in[p], r->c.a, dir);
		}
		if (ws->root_project != VX_MAP_NONE && i != ws->root_project)
			vx_strlist_add(&in[ws->root_project], r->c.a, dir);
	}
	for (uint32_t i = 0; i < ws->n_projects; i++)
		ws->projects[i].nested = vx_strlist_done(&in[i]);
	return 0;
}

static int read_turbo_settings(struct reader *r, const struct vx_json *v)
{
	struct vx_ws_settings *s = &r->ws.settings;

	s->turbo = true;
	int e = cfg_strs(&r->c, vx_json_get(v, "globalDependencies"), "globalDependencies",
		&s->global_files);
	if (e == 0)
		e = cfg_strs(&r->c, vx_json_get(v, "globalEnv"), "globalEnv", &s->global_env);
	return e == 0 ? cfg_strs(&r->c, vx_json_get(v, "globalPassThroughEnv"),
				"globalPassThroughEnv", &s->global_pass_through)
		      : e;
}

static int read_all(struct reader *r, const struct vx_json *v)
{
	const struct vx_json *projects = vx_json_get(v, "projects"),
			     *kind = vx_json_get(v, "workspace");
	struct vx_json *tasks = NULL;
	int e = 0;

	if (vx_json_int(vx_json_get(v, "lockVersion")) != VX_LOCK_VERSION ||
		vx_json_type(projects) != VX_JSON_ARRAY)
		return broken(r, "it is no lock of this version of vx");
	if (vx_json_len(projects) > VX_MAX_PROJECTS)
		return vx_err_set(
			r->c.err, -E2BIG, VX_LOCK_FILE ": more than %u projects", VX_MAX_PROJECTS);
	for (int k = 0; k < LOCK_KINDS; k++)
		if (vx_streq(vx_json_str(kind), lock_kind_names[k]))
			r->ws.kind = (enum vx_ws_kind)k;
	r->ws.settings = (struct vx_ws_settings){
		.timeout_ms = -1, .exclusive_outputs = true, .upfront_keys = true};
	e = read_manager(r, vx_json_get(v, "manager"), &r->ws.manager);
	if (e == 0)
		e = cfg_ws_settings(&r->c, vx_json_get(v, "settings"), &r->ws, &tasks);
	if (e == 0 && vx_json_get(v, "turbo"))
		e = read_turbo_settings(r, vx_json_get(v, "turbo"));
	r->ws.projects = vx_arena_array(r->c.a, vx_json_len(projects) + 1, sizeof *r->ws.projects);
	for (size_t i = 0; i < vx_json_len(projects) && e == 0; i++)
		e = read_project(r, vx_json_at(projects, i));
	return e == 0 ? read_links(r, projects) : e;
}

int vx_lock_read(const char *root, struct vx_arena *a, struct vx_workspace *ret, struct vx_err *err)
{
	struct reader r = {.c = {a, err, VX_LOCK_FILE, NULL, NULL, NULL},
		.ws = {.root = vx_arena_strdup(a, root), .root_project = VX_MAP_NONE}};
	struct vx_base_dir base = {vx_open(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0), r.ws.root};
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_json *v = NULL;

	if (base.fd < 0)
		return vx_err_set(err, base.fd, "cannot enter %s: %s", root, vx_strerror(base.fd));
	int e = cfg_read(&base, VX_LOCK_FILE, &b, err);
	if (e == -ENOENT) {
		vx_err_set(err, e, "--frozen: there is no " VX_LOCK_FILE " in %s", root);
		vx_err_fix(err, "write it with: vx lock");
	}
	if (e == 0)
		e = vx_json_parse(vx_buf_str(&b), b.len, 0, VX_LOCK_FILE, &v, err);
	if (e == 0)
		e = read_all(&r, v);
	vx_json_free(v);
	vx_buf_free(&b);
	vx_close(base.fd);
	if (e == 0)
		*ret = r.ws;
	return e;
}
