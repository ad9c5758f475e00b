/* turbo.json: finding the files, what extends what, which tasks each package has. */
#include "turbo.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

/* One turbo.json, parsed. */
struct file {
	const char *path;
	struct vx_json *json, *tasks;
	struct vx_strs extends;
	bool loaded;
};

/* "task" or "package#task" in the root file. */
struct root_entry {
	const char *task;
	const struct vx_json *def;
	uint32_t project; /* VX_MAP_NONE: of every package */
	/* resolved once for all packages that neither have the script nor say anything of their
	 * own */
	const struct vx_task_decl *group;
};

struct loader {
	struct vx_workspace *ws;
	const struct vx_base_dir *base;
	struct vx_arena *a;
	struct vx_err *err;
	struct vx_buf text;
	struct file root;
	struct file *files; /* per project */
	struct root_entry *entries;
	uint32_t n_entries;
	struct vx_map by_name; /* unqualified task -> entry */
	struct vx_map by_id;   /* "package#task" -> entry */
	struct vx_strlist warnings;
	struct vx_strs global_inputs;
};

/* Members of a file that vx does without: they say nothing about what a task reads. */
static const char *const file_keys[] = {"$schema", "extends", "tasks", "pipeline", "tags",
	"boundaries", "global", "globalDependencies", "globalEnv", "globalPassThroughEnv",
	"globalDotEnv", "envMode", "concurrency", "cacheDir", "cacheMaxAge", "cacheMaxSize",
	"daemon", "ui", "remoteCache", "futureFlags", "noUpdateNotifier",
	"dangerouslyDisablePackageManagerCheck", "signature", "baseBranch", "experimentalUI",
	"experimentalSpaces", "experimentalCI", "experimentalObservability", NULL};

/* Anything else may have been meant to be in keys (a misspelled globalEnv), so it is said. */
static void check_file_keys(struct loader *l, const struct file *f)
{
	struct vx_strs names = {file_keys, sizeof file_keys / sizeof *file_keys - 1};

	for (struct vx_json_iter it = vx_json_iter(f->json); vx_json_next(&it);) {
		if (vx_strs_has(names, it.key) || *it.key == '$' || *it.key == '/')
			continue;
		const char *near = vx_nearest(it.key, names);
		vx_strlist_add(&l->warnings, l->a,
			vx_arena_printf(l->a,
				"%s: \"%.100s\" means nothing to vx and is ignored%s%s%s", f->path,
				it.key, near ? " (did you mean \"" : "", near ? near : "",
				near ? "\"?)" : ""));
	}
}

static int parse(struct loader *l, const char *path, struct file *f)
{
	int r = cfg_read(l->base, path, &l->text, l->err);

	if (r == -ENOENT) {
		vx_err_set(l->err, r,
			"%s cannot be read: it was there a moment ago, or is a symbolic link to nothing",
			path);
		return vx_err_fix(l->err, "put the file back, or remove the link");
	}
	if (r == 0)
		r = vx_json_parse(vx_buf_str(&l->text), l->text.len, VX_JSON_COMMENTS, path,
			&f->json, l->err);
	if (r < 0)
		return r;
	struct cfg c = {l->a, l->err, path, NULL, NULL, NULL};
	f->path = path;
	f->loaded = true;
	if (vx_json_type(f->json) != VX_JSON_OBJECT)
		return cfg_fail(&c, NULL, "the file must be an object");
	check_file_keys(l, f);
	f->tasks = vx_json_get(f->json, "tasks");
	if (!f->tasks)
		f->tasks = vx_json_get(f->json, "pipeline");
	if (f->tasks && vx_json_type(f->tasks) != VX_JSON_OBJECT)
		return cfg_fail(&c, "tasks", "must be an object of tasks");
	if (!f->tasks)
		return 0;
	int count = cfg_count(&c, f->tasks, "tasks");
	if (count < 0)
		return count;
	for (struct vx_json_iter it = vx_json_iter(f->tasks); vx_json_next(&it);) {
		c.task = it.key;
		r = turbo_check_task(&c, it.val, &l->warnings);
		if (r < 0)
			return r;
	}
	return 0;
}

/* turbo.json or turbo.jsonc of a directory; NULL when it has none, an error when it has both. */
static int path_of(struct loader *l, const char *dir, uint32_t files, const char **ret)
{
	const char *name = files & VX_HAS_TURBO_JSON ? "turbo.json" : "turbo.jsonc";

	*ret = NULL;
	if (!(files & (VX_HAS_TURBO_JSON | VX_HAS_TURBO_JSONC)))
		return 0;
	if ((files & VX_HAS_TURBO_JSON) && (files & VX_HAS_TURBO_JSONC)) {
		vx_err_set(l->err, -EEXIST, "%s has both a turbo.json and a turbo.jsonc",
			strcmp(dir, ".") == 0 ? "the workspace root" : dir);
		return vx_err_fix(l->err, "remove one of them");
	}
	*ret = strcmp(dir, ".") == 0 ? name : vx_arena_printf(l->a, "%s/%s", dir, name);
	return 0;
}

static int env_mode(struct cfg *c, const struct vx_json *o, struct vx_ws_settings *s)
{
	const char *mode = NULL;
	int r = cfg_str(c, vx_json_get(o, "envMode"), "envMode", &mode);

	if (r < 0)
		return r;
	if (mode && strcmp(mode, "loose") == 0) {
		struct vx_strlist all = {0};
		for (uint32_t i = 0; i < s->global_pass_through.n; i++)
			vx_strlist_add(&all, c->a, s->global_pass_through.v[i]);
		vx_strlist_add(&all, c->a, "*");
		s->global_pass_through = vx_strlist_done(&all);
	} else if (mode && strcmp(mode, "strict") != 0) {
		return cfg_fail(c, "envMode", "must be strict or loose, not \"%.60s\"", mode);
	}
	return 0;
}

/* Files elsewhere are in no list of files: a task would not notice that they change. */
static int inside(const struct cfg *c, const char *field, struct vx_strs globs)
{
	for (uint32_t i = 0; i < globs.n; i++) {
		const char *s = globs.v[i] + (*globs.v[i] == '!');
		if (*s != '/' && strcmp(s, "..") != 0 && !vx_starts_with(s, "../"))
			continue;
		cfg_fail(c, field, "entry \"%.200s\" leaves the workspace", globs.v[i]);
		return vx_err_fix(c->err, "name files by their path from the workspace root");
	}
	return 0;
}

/* Turborepo 1: files beside globalDependencies. */
static int dot_env(struct cfg *c, const struct vx_json *o, struct vx_ws_settings *s)
{
	struct vx_strs own = {0};
	struct vx_strlist all = {0};
	int r = cfg_strs(c, vx_json_get(o, "globalDotEnv"), "globalDotEnv", &own);

	if (r < 0 || own.n == 0)
		return r;
	for (uint32_t i = 0; i < s->global_files.n + own.n; i++)
		vx_strlist_add(&all, c->a,
			i < s->global_files.n ? s->global_files.v[i]
					      : own.v[i - s->global_files.n]);
	s->global_files = vx_strlist_done(&all);
	return 0;
}

/* The global settings stand at the top, or under `global` with shorter names where that is switched
 * on; its `inputs` then are inputs of every task. */
static int root_settings(struct loader *l)
{
	struct cfg c = {l->a, l->err, l->root.path, NULL, NULL, NULL};
	struct vx_ws_settings *s = &l->ws->settings;
	const struct vx_json *o = l->root.json, *on = vx_json_get(vx_json_get(o, "futureFlags"),
							"globalConfiguration");
	bool block = vx_json_type(on) == VX_JSON_BOOL && vx_json_bool(on);
	const char *files = block ? "inputs" : "globalDependencies",
		   *env = block ? "env" : "globalEnv",
		   *pass = block ? "passThroughEnv" : "globalPassThroughEnv";

	if (block)
		o = vx_json_get(o, "global");
	if (o && vx_json_type(o) != VX_JSON_OBJECT)
		return cfg_fail(&c, "global", "must be an object");
	const struct vx_json *n = vx_json_get(o, "concurrency");
	int r = cfg_strs(
		&c, vx_json_get(o, files), files, block ? &l->global_inputs : &s->global_files);
	if (r == 0)
		r = dot_env(&c, o, s);
	if (r == 0)
		r = inside(&c, files, block ? l->global_inputs : s->global_files);
	if (r == 0)
		r = cfg_strs(&c, vx_json_get(o, env), env, &s->global_env);
	if (r == 0)
		r = cfg_strs(&c, vx_json_get(o, pass), pass, &s->global_pass_through);
	if (r == 0 && vx_json_type(n) == VX_JSON_STRING)
		r = cfg_str(&c, n, "concurrency", &s->concurrency);
	return r < 0 ? r : env_mode(&c, o, s);
}

static int root_entries(struct loader *l)
{
	struct cfg c = {l->a, l->err, l->root.path, NULL, NULL, NULL};

	if (!l->root.tasks)
		return 0;
	l->entries = vx_arena_array(l->a, vx_json_len(l->root.tasks) + 1, sizeof *l->entries);
	for (struct vx_json_iter it = vx_json_iter(l->root.tasks); vx_json_next(&it);) {
		const char *key = vx_arena_strdup(l->a, it.key), *hash = strrchr(key, '#');
		struct root_entry e = {hash ? hash + 1 : key, it.val, VX_MAP_NONE, NULL};
		if (*e.task == '\0' || *e.task == '^' || *e.task == '!')
			return cfg_fail(
				&c, "tasks", "has \"%.100s\", which is no name of a task", key);
		if (hash) {
			e.project = vx_map_gets(
				&l->ws->by_name, vx_arena_strndup(l->a, key, (size_t)(hash - key)));
			if (e.project == VX_MAP_NONE)
				/* of a package that is not there: Turborepo says nothing either */
				continue;
			vx_map_puts(&l->by_id, key, l->n_entries);
		} else {
			vx_map_puts(&l->by_name, key, l->n_entries);
		}
		l->entries[l->n_entries++] = e;
	}
	return 0;
}

static int load_package_file(struct loader *l, uint32_t p)
{
	const struct vx_project *project = &l->ws->projects[p];
	struct file *f = &l->files[p];
	const char *path;
	int r = p == l->ws->root_project ? 0 : path_of(l, project->dir, project->files, &path);

	if (p == l->ws->root_project || r < 0 || !path)
		return r;
	r = parse(l, path, f);
	if (r < 0)
		return r;
	struct cfg c = {l->a, l->err, path, project->name, NULL, NULL};
	r = cfg_strs(&c, vx_json_get(f->json, "extends"), "extends", &f->extends);
	if (r == 0)
		r = cfg_strs(&c, vx_json_get(f->json, "tags"), "tags", &l->ws->projects[p].tags);
	if (r == 0 && !vx_strs_has(f->extends, "//")) {
		cfg_fail(
			&c, NULL, "a package's turbo.json must have \"extends\" with \"//\" in it");
		return vx_err_fix(l->err, "add \"extends\": [\"//\"]");
	}
	if (r < 0 || !f->tasks)
		return r;
	for (struct vx_json_iter it = vx_json_iter(f->tasks); vx_json_next(&it);)
		if (strchr(it.key, '#')) {
			cfg_fail(&c, "tasks",
				"has \"%.100s\": a package's turbo.json names its own tasks only",
				it.key);
			return vx_err_fix(l->err,
				"write the task's name alone, or move the entry to the root turbo.json");
		}
	return 0;
}

/* The files whose tasks package p inherits, itself last, the root left out. */
static int chain_files(
	struct loader *l, uint32_t p, const struct file **v, uint32_t *n, uint32_t depth)
{
	const struct file *f = &l->files[p];
	struct cfg c = {l->a, l->err, f->path, l->ws->projects[p].name, NULL, NULL};

	if (depth > TURBO_MAX_CHAIN - 2)
		return cfg_fail(&c, "extends",
			"goes round in a circle, or is nested more than %d deep",
			TURBO_MAX_CHAIN - 2);
	if (!f->loaded)
		return 0;
	for (uint32_t i = 0; i < *n; i++)
		if (v[i] == f)
			return 0;
	for (uint32_t i = 0; i < f->extends.n; i++) {
		if (strcmp(f->extends.v[i], "//") == 0)
			continue;
		uint32_t q = vx_map_gets(&l->ws->by_name, f->extends.v[i]);
		if (q == VX_MAP_NONE || !l->files[q].loaded)
			return cfg_fail(&c, "extends",
				"names \"%.100s\", which is no package with a turbo.json",
				f->extends.v[i]);
		int r = chain_files(l, q, v, n, depth + 1);
		if (r < 0)
			return r;
	}
	if (*n == TURBO_MAX_CHAIN - 1)
		return cfg_fail(&c, "extends", "leads to more than %d files", TURBO_MAX_CHAIN - 1);
	v[(*n)++] = f;
	return 0;
}

/* `"extends": false` in a task cuts off what it would inherit; with nothing else in it, it takes
 * the task away. */
static void add_link(struct turbo_chain *c, const struct vx_json *def, const char *file)
{
	const struct vx_json *extends = vx_json_get(def, "extends");

	if (vx_json_type(extends) == VX_JSON_BOOL && !vx_json_bool(extends)) {
		c->n = 0;
		if (vx_json_len(def) == 1)
			return;
	}
	c->v[c->n] = def;
	c->file[c->n++] = file;
}

struct package {
	struct loader *l;
	uint32_t p;
	const struct file *files[TURBO_MAX_CHAIN];
	uint32_t n_files;
	const struct vx_task_decl **out;
	uint32_t n_out;
	struct vx_map done;      /* task names handled */
	struct vx_strlist taken; /* taken away by "extends": false */
};

/* A pattern that means something else in every package cannot be shared. */
static bool says_dotdot(const struct vx_json *def)
{
	const struct vx_json *lists[] = {vx_json_get(def, "inputs"), vx_json_get(def, "outputs")};

	for (int i = 0; i < 2; i++)
		for (size_t k = 0; lists[i] && k < vx_json_len(lists[i]); k++) {
			const char *s = vx_json_str(vx_json_at(lists[i], k));
			if (s && strstr(s, ".."))
				return true;
		}
	return false;
}

/* `name` must outlive the files. */
static int add_task(struct package *k, const char *name, struct root_entry *from)
{
	struct loader *l = k->l;
	struct vx_project *project = &l->ws->projects[k->p];
	struct turbo_chain chain = {
		.n = 0, .global_inputs = l->global_inputs, .warnings = &l->warnings};
	bool own = false;

	if (!vx_map_puts(&k->done, name, 1))
		return 0;
	if (from)
		add_link(&chain, from->def, l->root.path);
	for (uint32_t i = 0; i < k->n_files; i++) {
		const struct vx_json *def =
			k->files[i]->tasks ? vx_json_get(k->files[i]->tasks, name) : NULL;
		own = own || def;
		if (def)
			add_link(&chain, def, k->files[i]->path);
	}
	if (chain.n == 0) {
		vx_strlist_add(&k->taken, l->a, name);
		return 0;
	}
	bool shared = from && !own && !cfg_script(project, name) && !says_dotdot(from->def) &&
		      !project->framework_env.n;
	if (shared && from->group) {
		k->out[k->n_out++] = from->group;
		return 0;
	}
	struct cfg c = {l->a, l->err, l->root.path, shared ? NULL : project->name, name, NULL};
	struct vx_task_decl *t = vx_arena_alloc(l->a, sizeof *t);
	int r = turbo_task(&c, &chain, l->ws, project, t);
	if (r < 0)
		return r;
	k->out[k->n_out++] = t;
	if (shared)
		from->group = t;
	return 0;
}

static struct root_entry *entry_for(
	struct loader *l, const char *project, const char *task, bool unqualified)
{
	uint32_t i = l->by_id.n
			     ? vx_map_gets(&l->by_id, vx_arena_printf(l->a, "%s#%s", project, task))
			     : VX_MAP_NONE;

	if (i == VX_MAP_NONE && unqualified)
		i = vx_map_gets(&l->by_name, task);
	return i == VX_MAP_NONE ? NULL : &l->entries[i];
}

static int add_tasks(struct package *k)
{
	struct loader *l = k->l;
	bool root = k->p == l->ws->root_project, single = l->ws->kind == VX_WS_SINGLE;
	const char *name = root ? "//" : l->ws->projects[k->p].name;
	int r = 0;

	/* The root has the tasks that are spelled //#task, and no others, unless it is all there
	 * is. */
	for (uint32_t i = 0; i < l->n_entries && r == 0; i++) {
		struct root_entry *e = &l->entries[i];
		bool mine = e->project == VX_MAP_NONE ? !root || single : e->project == k->p;
		if (mine)
			r = add_task(k, e->task, entry_for(l, name, e->task, !root || single));
	}
	for (uint32_t i = 0; i < k->n_files && r == 0; i++) {
		if (!k->files[i]->tasks)
			continue;
		for (struct vx_json_iter it = vx_json_iter(k->files[i]->tasks);
			vx_json_next(&it) && r == 0;)
			r = add_task(k, vx_arena_strdup(l->a, it.key),
				entry_for(l, name, it.key, !root || single));
	}
	return r;
}

/* A task that the package has taken away from itself is nothing for its others to wait for. */
static void forget_taken(struct package *k)
{
	struct vx_strs taken = vx_strlist_done(&k->taken);

	for (uint32_t i = 0; i < k->n_out; i++) {
		const struct vx_task_decl *was = k->out[i];
		struct vx_strlist kept = {0};
		for (uint32_t d = 0; d < was->depends_on.n; d++)
			if (!vx_strs_has(taken, was->depends_on.v[d]))
				vx_strlist_add(&kept, k->l->a, was->depends_on.v[d]);
		if (kept.n == was->depends_on.n)
			continue;
		/* it may be shared with packages that have the task */
		struct vx_task_decl *t = vx_arena_dup(k->l->a, was, sizeof *was);
		t->depends_on = vx_strlist_done(&kept);
		t->canonical = cfg_canonical(t, k->l->a);
		k->out[i] = t;
	}
}

static int load_package(struct loader *l, uint32_t p)
{
	struct package k = {.l = l, .p = p};
	uint32_t room = l->n_entries;
	int r = chain_files(l, p, k.files, &k.n_files, 0);

	if (r < 0)
		return r;
	for (uint32_t i = 0; i < k.n_files; i++)
		room += k.files[i]->tasks ? (uint32_t)vx_json_len(k.files[i]->tasks) : 0;
	k.out = vx_arena_array(l->a, room ? room : 1, sizeof *k.out);
	r = add_tasks(&k);
	if (r == 0 && k.taken.n)
		forget_taken(&k);
	l->ws->projects[p].tasks = k.out;
	l->ws->projects[p].n_tasks = k.n_out;
	vx_map_free(&k.done);
	return r;
}

static int load_all(struct loader *l)
{
	uint32_t n = l->ws->n_projects;
	const char *path;
	int r = path_of(l, ".", l->ws->root_files, &path);

	if (r == 0)
		r = parse(l, path, &l->root);
	if (r == 0)
		r = root_settings(l);
	if (r == 0)
		r = root_entries(l);
	for (uint32_t p = 0; p < n && r == 0; p++)
		r = load_package_file(l, p);
	for (uint32_t p = 0; p < n && r == 0; p++)
		r = load_package(l, p);
	return r;
}

int turbo_load(struct vx_workspace *ws, const struct vx_base_dir *base, struct vx_arena *a,
	struct vx_err *err)
{
	struct loader l = {
		.ws = ws, .base = base, .a = a, .err = err, .text = VX_BUF(VX_MAX_CONFIG_BYTES)};

	ws->settings.turbo = true;
	ws->settings.exclusive_outputs = ws->settings.upfront_keys = false;
	for (uint32_t i = 0; i < ws->warnings.n; i++)
		vx_strlist_add(&l.warnings, a, ws->warnings.v[i]);
	l.files = vx_arena_array(a, (size_t)ws->n_projects + 1, sizeof *l.files);
	int r = load_all(&l);
	ws->warnings = vx_strlist_done(&l.warnings);
	for (uint32_t p = 0; p < ws->n_projects; p++)
		vx_json_free(l.files[p].json);
	vx_json_free(l.root.json);
	vx_map_free(&l.by_name);
	vx_map_free(&l.by_id);
	vx_buf_free(&l.text);
	return r;
}
