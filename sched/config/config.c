#include "vx/config.h"

#include "cfg.h"
#include "js.h"
#include "turbo.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char *const project_keys[] = {"$schema", "tags", "tasks", NULL};

struct loader {
	struct vx_workspace *ws;
	struct vx_arena *a;
	struct vx_err *err;
	struct vx_base_dir base;
	struct vx_buf text;
	const char *defaults_file;
	struct vx_json *defaults_json, *defaults; /* vx.workspace.json and its tasks */
	/* Large workspaces are full of equal files: what one says is kept by its text (and by the
	 * scripts that defaults look at). */
	struct vx_map by_text;
	struct known *known;
	uint32_t n_known, cap_known;
	struct vx_arena texts;
	/* the same for single tasks: everything that a declaration is made from -> shared */
	struct vx_map by_task;
	const struct vx_task_decl **shared;
	uint32_t n_shared, cap_shared;
	struct vx_buf said;
	struct js_results js;
	struct vx_err js_broken; /* code 0: they could be evaluated */
	const struct vx_evaluations *given;
	struct vx_evaluations *ret_evaluations;
	struct vx_buf print;
};

/* What a file turned out to say: shared by every project whose file is the same. */
struct known {
	struct vx_strs tags;
	const struct vx_task_decl *const *tasks;
	uint32_t n_tasks;
};

static int read_text(struct loader *l, const char *rel)
{
	int r = cfg_read(&l->base, rel, &l->text, l->err);

	if (r != -ENOENT)
		return r;
	vx_err_set(l->err, r,
		"%s cannot be read: it was there a moment ago, or is a symbolic link to nothing",
		rel);
	return vx_err_fix(l->err, "put the file back, or remove the link");
}

static int read_json(struct loader *l, const char *rel, int flags, struct vx_json **ret)
{
	int r = read_text(l, rel);

	return r < 0 ? r
		     : vx_json_parse(vx_buf_str(&l->text), l->text.len, flags, rel, ret, l->err);
}

static const char *in_dir(struct loader *l, const char *dir, const char *name)
{
	return strcmp(dir, ".") == 0 ? name : vx_arena_printf(l->a, "%s/%s", dir, name);
}

static const char *const ws_files[] = {"vx.workspace.json", "vx.workspace.jsonc", "vx.workspace.ts",
	"vx.workspace.mts", "vx.workspace.cts", "vx.workspace.js", "vx.workspace.mjs",
	"vx.workspace.cjs"};

/* The file of the workspace; NULL none. */
static int settings_file(struct loader *l, const char **ret)
{
	*ret = NULL;
	for (uint32_t i = 0; i < VX_ARRAY_LEN(ws_files); i++) {
		uint32_t bit = i < 2 ? (uint32_t)VX_HAS_VX_WORKSPACE_JSON << i
				     : (uint32_t)VX_HAS_VX_WORKSPACE_TS << (i - 2);
		if (!(l->ws->root_files & bit))
			continue;
		if (*ret) {
			vx_err_set(l->err, -EEXIST, "both %s and %s are there", *ret, ws_files[i]);
			return vx_err_fix(l->err, "remove one of them");
		}
		*ret = ws_files[i];
	}
	return 0;
}

static int load_settings(struct loader *l)
{
	const struct vx_json *evaluated = NULL;
	int r = settings_file(l, &l->defaults_file);

	if (r < 0 || !l->defaults_file)
		return r;
	bool comments = l->ws->root_files & VX_HAS_VX_WORKSPACE_JSONC;
	if (l->ws->root_files & VX_WORKSPACE_PROGRAMS)
		r = js_take(&l->js, l->defaults_file, &evaluated, l->err);
	else
		r = read_json(l, l->defaults_file,
			VX_JSON_UNIQUE | (comments ? VX_JSON_COMMENTS : 0), &l->defaults_json);
	struct cfg c = {l->a, l->err, l->defaults_file, NULL, NULL, NULL};
	return r < 0 ? r
		     : cfg_ws_settings(
			       &c, evaluated ? evaluated : l->defaults_json, l->ws, &l->defaults);
}

struct decls {
	const struct vx_task_decl **v;
	uint32_t n;
};

/* A script and what runs around it, to a text by which declarations are told apart. */
static void put_scripts(struct vx_buf *b, const struct vx_project *p, const char *name)
{
	static const char *const prefixes[] = {"", "pre", "post"};

	for (size_t k = 0; k < VX_ARRAY_LEN(prefixes); k++) {
		const char *text = NULL;
		size_t n = strlen(prefixes[k]);
		for (uint32_t i = 0; i < p->n_scripts && !text; i++)
			if (vx_starts_with(p->scripts[i].name, prefixes[k]) &&
				strcmp(p->scripts[i].name + n, name) == 0)
				text = p->scripts[i].value;
		vx_buf_addc(b, text ? 's' : '-');
		vx_buf_add(b, text ? text : "", text ? strlen(text) + 1 : 1);
	}
}

static int add_task(struct loader *l, const struct cfg *c, const struct vx_json *own,
	const struct vx_json *fallback, const struct vx_project *p, struct decls *out)
{
	const char *const words[] = {
		c->source ? c->source : c->file, c->task, c->source ? "own" : ""};
	const struct cfg_scripts scripts = {p, &l->ws->manager};
	const char *script = cfg_task_script(own, fallback, c->task);

	vx_buf_clear(&l->said);
	vx_buf_add(&l->said, &fallback, sizeof fallback);
	for (size_t i = 0; i < VX_ARRAY_LEN(words); i++)
		vx_buf_add(&l->said, words[i], strlen(words[i]) + 1);
	if (script)
		put_scripts(&l->said, p, script);
	if (own)
		vx_json_write(own, false, &l->said);
	uint32_t k =
		l->said.overflow ? VX_MAP_NONE : vx_map_get(&l->by_task, l->said.data, l->said.len);
	if (k != VX_MAP_NONE) {
		out->v[out->n++] = l->shared[k];
		return 0;
	}
	struct vx_task_decl *t = vx_arena_alloc(l->a, sizeof *t);
	int r = cfg_task(c, own, fallback, &scripts, t);
	if (r < 0)
		return r;
	out->v[out->n++] = t;
	if (l->n_shared == l->cap_shared) {
		l->cap_shared = l->cap_shared ? l->cap_shared * 2 : 64;
		l->shared = vx_xrealloc(l->shared, l->cap_shared * sizeof(struct vx_task_decl *));
	}
	l->shared[l->n_shared] = t;
	if (!l->said.overflow)
		vx_map_put(&l->by_task, vx_arena_dup(&l->texts, l->said.data, l->said.len),
			l->said.len, l->n_shared);
	l->n_shared++;
	return 0;
}

/* The tasks that the project's own file lists, each over the workspace default of its name. */
static int own_tasks(struct loader *l, struct cfg *c, const struct vx_project *p,
	const struct vx_json *tasks, struct decls *out)
{
	if (!tasks)
		return 0;
	for (struct vx_json_iter it = vx_json_iter(tasks); vx_json_next(&it);) {
		c->task = NULL;
		int r = cfg_task_name(c, it.key);
		if (r < 0)
			return r;
		c->task = vx_arena_strdup(l->a, it.key);
		if (!it.val)
			return cfg_fail(c, NULL, "the task must be an object, not null");
		r = add_task(l, c, it.val, l->defaults ? vx_json_get(l->defaults, it.key) : NULL, p,
			out);
		if (r < 0)
			return r;
	}
	return 0;
}

/* The workspace defaults that apply because the project has a script of that name. */
static int default_tasks(
	struct loader *l, const struct vx_project *p, const struct vx_json *own, struct decls *out)
{
	struct cfg c = {l->a, l->err, l->defaults_file, p->name, NULL, NULL};

	if (!l->defaults)
		return 0;
	for (struct vx_json_iter it = vx_json_iter(l->defaults); vx_json_next(&it);) {
		if (!cfg_script(p, it.key) || (own && vx_json_has(own, it.key)))
			continue;
		c.task = vx_arena_strdup(l->a, it.key);
		int r = add_task(l, &c, NULL, it.val, p, out);
		if (r < 0)
			return r;
	}
	return 0;
}

/* `json` NULL: a project without a file of its own. */
static int take_project(
	struct loader *l, struct vx_project *p, const char *file, const struct vx_json *json)
{
	struct cfg c = {l->a, l->err, file, p->name, NULL, file ? vx_path_base(file) : NULL};
	const struct vx_json *tasks = NULL;
	struct decls out = {0};

	if (file) {
		int r = cfg_object(&c, json, NULL, project_keys);
		if (r == 0)
			r = cfg_strs(&c, vx_json_get(json, "tags"), "tags", &p->tags);
		tasks = r == 0 ? vx_json_get(json, "tasks") : NULL;
		if (r == 0 && tasks && vx_json_type(tasks) != VX_JSON_OBJECT)
			r = cfg_fail(&c, "tasks", "must be an object of tasks");
		if (r == 0 && tasks)
			r = cfg_count(&c, tasks, "tasks");
		if (r < 0)
			return r;
	}
	size_t room =
		(tasks ? vx_json_len(tasks) : 0) + (l->defaults ? vx_json_len(l->defaults) : 0);
	if (!room)
		return 0;
	out.v = vx_arena_array(l->a, room, sizeof *out.v);
	int r = own_tasks(l, &c, p, tasks, &out);
	if (r == 0)
		r = default_tasks(l, p, tasks, &out);
	p->tasks = out.v;
	p->n_tasks = out.n;
	return r;
}

static int one_config(struct loader *l, const struct vx_project *p)
{
	static const char *const names[] = {"vx.json", "vx.jsonc", "vx.config.ts", "vx.config.mts",
		"vx.config.cts", "vx.config.js", "vx.config.mjs", "vx.config.cjs"};
	const char *first = NULL;

	for (uint32_t i = 0; i < VX_ARRAY_LEN(names); i++) {
		if (!(p->files & (VX_HAS_VX_JSON << i)))
			continue;
		if (first) {
			vx_err_set(l->err, -EEXIST,
				"project \"%s\" has two configurations: %s and %s", p->name,
				in_dir(l, p->dir, first), in_dir(l, p->dir, names[i]));
			return vx_err_fix(l->err, "keep exactly one");
		}
		first = names[i];
	}
	return 0;
}

/* Everything that the outcome for p depends on: the file's text, for each default the scripts that
 * would run, and all of them where the file may name some. */
static void fingerprint(struct loader *l, const struct vx_project *p, uint32_t config_bit)
{
	vx_buf_clear(&l->print);
	vx_buf_add(&l->print, &config_bit, sizeof config_bit);
	if (l->defaults)
		for (struct vx_json_iter it = vx_json_iter(l->defaults); vx_json_next(&it);) {
			put_scripts(&l->print, p, it.key);
			put_scripts(&l->print, p, cfg_task_script(NULL, it.val, it.key));
		}
	if (!config_bit)
		return;
	vx_buf_add(&l->print, l->text.data ? l->text.data : "", l->text.len);
	for (uint32_t i = 0; i < p->n_scripts && strstr(vx_buf_str(&l->text), "\"script\""); i++) {
		vx_buf_add(&l->print, p->scripts[i].name, strlen(p->scripts[i].name) + 1);
		vx_buf_add(&l->print, p->scripts[i].value, strlen(p->scripts[i].value) + 1);
	}
}

static void remember(struct loader *l, const struct vx_project *p)
{
	if (l->n_known == l->cap_known) {
		l->cap_known = l->cap_known ? l->cap_known * 2 : 64;
		struct known *v = vx_arena_array(l->a, l->cap_known, sizeof *v);
		if (l->n_known)
			memcpy(v, l->known, l->n_known * sizeof *v);
		l->known = v;
	}
	vx_map_put(&l->by_text, vx_arena_dup(&l->texts, l->print.data, l->print.len), l->print.len,
		l->n_known);
	l->known[l->n_known++] = (struct known){p->tags, p->tasks, p->n_tasks};
}

static int parse_project(struct loader *l, struct vx_project *p, const char *file, bool comments)
{
	struct vx_json *json = NULL;
	int r = vx_json_parse(vx_buf_str(&l->text), l->text.len,
		VX_JSON_UNIQUE | (comments ? VX_JSON_COMMENTS : 0), file, &json, l->err);

	if (r == 0)
		r = take_project(l, p, file, json);
	vx_json_free(json);
	return r;
}

static int load_project(struct loader *l, struct vx_project *p)
{
	uint32_t bit = p->files & (VX_HAS_VX_JSON | VX_HAS_VX_JSONC);
	const char *file = js_file_of(p, l->a);
	const struct vx_json *evaluated;
	int r = one_config(l, p);

	if (r == 0 && file && l->js_broken.code) {
		*l->err = l->js_broken;
		return l->js_broken.code;
	}
	if (r == 0 && file) {
		r = js_take(&l->js, file, &evaluated, l->err);
		return r == 0 ? take_project(l, p, file, evaluated) : r;
	}
	if (r == 0 && bit) {
		file = in_dir(l, p->dir, bit == VX_HAS_VX_JSONC ? "vx.jsonc" : "vx.json");
		r = read_text(l, file);
	}
	if (r < 0)
		return r;
	fingerprint(l, p, bit);
	uint32_t k = vx_map_get(&l->by_text, l->print.data, l->print.len);
	if (k != VX_MAP_NONE) {
		p->tags = l->known[k].tags;
		p->tasks = l->known[k].tasks;
		p->n_tasks = l->known[k].n_tasks;
		return 0;
	}
	r = bit ? parse_project(l, p, file, bit == VX_HAS_VX_JSONC)
		: take_project(l, p, NULL, NULL);
	if (r == 0)
		remember(l, p);
	return r;
}

/* One project's configuration that cannot be taken is nobody's error but theirs who need it. */
static void take_or_mark(struct loader *l, struct vx_project *p)
{
	struct vx_err err = {0}, *was = l->err;

	l->err = &err;
	int r = load_project(l, p);
	l->err = was;
	if (r == 0)
		return;
	struct vx_broken *b = vx_arena_alloc(l->a, sizeof *b);
	*b = (struct vx_broken){r, vx_arena_strdup(l->a, err.what), vx_arena_strdup(l->a, err.fix)};
	p->broken = b;
	p->tasks = NULL;
	p->n_tasks = 0;
}

static int load_vx(struct loader *l)
{
	struct vx_workspace *ws = l->ws;
	int r = l->given ? js_given(ws, l->given, l->a, &l->js, &l->js_broken)
			 : js_evaluate(ws, l->a, &l->js, &l->js_broken);

	if (r == 0 && l->ret_evaluations)
		js_told(&l->js, l->a, l->ret_evaluations);
	l->js_broken.code = r;
	if (r < 0 && !(ws->root_files & VX_WORKSPACE_PROGRAMS)) {
		r = 0;
	} else if (r < 0) {
		vx_err_set(l->err, r, "%s", l->js_broken.what);
		vx_err_fix(l->err, "%s", l->js_broken.fix);
	}
	if (r == 0)
		r = load_settings(l);
	if (r == 0 && ws->root_project == VX_MAP_NONE &&
		(ws->root_files & (VX_HAS_VX_JSON | VX_HAS_VX_JSONC))) {
		vx_err_set(l->err, -EINVAL,
			"the workspace root has a vx.json, but no package.json with a name, so it is no project");
		r = vx_err_fix(l->err, "add \"name\" to the root package.json");
	}
	for (uint32_t i = 0; i < ws->n_projects && r == 0; i++)
		take_or_mark(l, &ws->projects[i]);
	js_free(&l->js);
	vx_json_free(l->defaults_json);
	return r;
}

/* Does the grant of a sandboxed task lead out of its project, as it is spelled? */
static bool leads_out(const char *grant)
{
	return *grant == '/' || *grant == '~' || strcmp(grant, "..") == 0 ||
	       strncmp(grant, "../", 3) == 0 || strstr(grant, "/..");
}

/* (What a broken configuration grants is not known: it may.) */
static bool write_outward(const struct vx_workspace *ws)
{
	for (uint32_t i = 0; i < ws->n_projects; i++) {
		if (ws->projects[i].broken)
			return true;
		for (uint32_t k = 0; k < ws->projects[i].n_tasks; k++) {
			const struct vx_exec_decl *x = &ws->projects[i].tasks[k]->exec;
			for (uint32_t n = 0; x->sandboxed && n < x->sandbox.write.n; n++)
				if (leads_out(x->sandbox.write.v[n]))
					return true;
		}
	}
	return false;
}

int vx_config_load(struct vx_workspace *ws, struct vx_arena *a, struct vx_err *err)
{
	return vx_config_load_as(ws, a, NULL, NULL, err);
}

int vx_config_load_as(struct vx_workspace *ws, struct vx_arena *a,
	const struct vx_evaluations *given, struct vx_evaluations *ret, struct vx_err *err)
{
	struct loader l = {.ws = ws,
		.given = given,
		.ret_evaluations = ret,
		.a = a,
		.err = err,
		.base = {-1, ws->root},
		.text = VX_BUF(VX_MAX_CONFIG_BYTES),
		.said = VX_BUF(2 * (size_t)VX_MAX_CONFIG_BYTES),
		.print = VX_BUF(2 * (size_t)VX_MAX_CONFIG_BYTES)};

	ws->settings = (struct vx_ws_settings){.timeout_ms = -1,
		.exclusive_outputs = true,
		.upfront_keys = true,
		.turbo = ws->settings.turbo};
	l.base.fd = vx_open(AT_FDCWD, ws->root, O_PATH | O_DIRECTORY, 0);
	if (l.base.fd < 0)
		return vx_err_set(
			err, l.base.fd, "cannot enter %s: %s", ws->root, vx_strerror(l.base.fd));
	int r = ws->settings.turbo ? turbo_load(ws, &l.base, a, err) : load_vx(&l);
	ws->outward_writes = r == 0 && write_outward(ws);
	vx_map_free(&l.by_text);
	vx_map_free(&l.by_task);
	vx_buf_free(&l.said);
	free(l.shared);
	vx_arena_free(&l.texts);
	vx_buf_free(&l.print);
	vx_buf_free(&l.text);
	vx_close(l.base.fd);
	return r;
}
