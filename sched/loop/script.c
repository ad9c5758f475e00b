/* Package scripts: what the package manager of the workspace would add to their environment and to
 * PATH, and what it would execute. The facts are those of npm 10 and 11, pnpm 6 to 12, Yarn 1 and
 * 4 and bun 1.4, measured (tests/slow/managers.sh compares); docs/running.md, "Package scripts".
 *
 * What comes of package.json is in the key, which folds that file whole. Paths and versions of
 * programs are in none: they differ from machine to machine. */
#include "loop.h"

#include "vx/assert.h"
#include "vx/fd.h"
#include "vx/json.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Most that the npm_package_* variables of one package may come to. */
#define MAX_PACKAGE_ENV (256U << 10)

struct loop_scripts {
	bool known;         /* the fields up to `shell` are made */
	struct vx_strs all; /* variables that all scripts of the run have alike */
	const char *gyp_bin;
	const char *yarn;
	const char *shell;       /* NULL: script-shell was not found */
	struct vx_strs *package; /* per project: made when v is not NULL */
	const char **path;       /* per project */
};

static const char *const pm_names[] = {"npm", "yarn", "yarn", "pnpm", "bun"};

static const char *own_env(const struct loop *l, const char *name)
{
	size_t n = strlen(name);

	for (char **e = l->env; *e; e++)
		if (strncmp(*e, name, n) == 0 && (*e)[n] == '=')
			return *e + n + 1;
	return NULL;
}

/* ---- of a package ---- */

struct flat {
	struct vx_arena *a;
	struct vx_strlist out;
	enum vx_pm pm;
	int major; /* of the manager; 0 unknown */
	size_t bytes;
};

static void put(struct flat *f, const char *name, const char *value)
{
	if (f->bytes > MAX_PACKAGE_ENV || strchr(name, '='))
		return;
	const char *entry = vx_arena_printf(f->a, "%s=%s", name, value);
	f->bytes += strlen(entry) + 1;
	vx_strlist_add(&f->out, f->a, entry);
}

static const char *written(const struct vx_json *v, struct vx_arena *a)
{
	struct vx_buf b = VX_BUF(MAX_PACKAGE_ENV);

	vx_json_write(v, false, &b);
	const char *s = vx_arena_strdup(a, vx_buf_str(&b));
	vx_buf_free(&b);
	return s;
}

static const char *joined(struct flat *f, const char *prefix, const char *key)
{
	char *s = vx_arena_printf(f->a, "%s_%s", prefix, key);

	for (char *p = s + strlen(prefix); *p && f->pm != VX_PM_NPM; p++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_", *p))
			*p = '_';
	return s;
}

static void put_string(struct flat *f, const char *name, const struct vx_json *v)
{
	const char *s = vx_json_str(v);
	bool raw = f->pm == VX_PM_NPM || f->pm == VX_PM_BUN || !strchr(s, '\n');

	put(f, name, raw ? s : written(v, f->a));
}

static void flatten(struct flat *f, const char *name, const struct vx_json *v)
{
	char index[24];

	switch (vx_json_type(v)) {
	case VX_JSON_NULL:
		if (f->pm != VX_PM_YARN_1)
			put(f, name,
				f->pm == VX_PM_PNPM && f->major && f->major < 11 ? "null" : "");
		break;
	case VX_JSON_BOOL:
		put(f, name, vx_json_bool(v) ? "true" : f->pm == VX_PM_NPM ? "" : "false");
		break;
	case VX_JSON_INT:
	case VX_JSON_DOUBLE:
		put(f, name, written(v, f->a));
		break;
	case VX_JSON_STRING:
		put_string(f, name, v);
		break;
	case VX_JSON_ARRAY:
		for (size_t i = 0; i < vx_json_len(v) && f->bytes <= MAX_PACKAGE_ENV; i++) {
			snprintf(index, sizeof index, "%zu", i);
			flatten(f, joined(f, name, index), vx_json_at(v, i));
		}
		break;
	case VX_JSON_OBJECT:
		for (struct vx_json_iter it = vx_json_iter(v);
			vx_json_next(&it) && f->bytes <= MAX_PACKAGE_ENV;)
			flatten(f, joined(f, name, it.key), it.val);
		break;
	}
}

static void put_bin(struct flat *f, const struct vx_json *bin, const char *package)
{
	static const char name[] = "npm_package_bin";

	if (f->pm != VX_PM_NPM && f->pm != VX_PM_YARN_1) {
		flatten(f, name, bin);
	} else if (vx_json_type(bin) == VX_JSON_STRING && package) {
		const char *s = vx_json_str(bin);
		put(f, joined(f, name, vx_path_base(package)), vx_starts_with(s, "./") ? s + 2 : s);
	} else if (vx_json_type(bin) == VX_JSON_OBJECT) {
		for (struct vx_json_iter it = vx_json_iter(bin); vx_json_next(&it);) {
			const char *s = vx_json_str(it.val);
			if (s)
				put(f, joined(f, name, it.key),
					vx_starts_with(s, "./") ? s + 2 : s);
		}
	}
}

/* Yarn 1, and pnpm up to 9: the whole manifest, less what could only be long. */
static void put_whole(struct flat *f, const struct vx_json *m)
{
	static const char *const left_out[] = {"name", "version", "bin", "readme", "notice",
		"licenseText", "activationEvents", "contributes"};
	const struct vx_strs without = {left_out, VX_ARRAY_LEN(left_out)};

	for (struct vx_json_iter it = vx_json_iter(m); vx_json_next(&it);)
		if (*it.key != '_' && !vx_strs_has(without, it.key))
			flatten(f, joined(f, "npm_package", it.key), it.val);
}

static void put_manifest(struct flat *f, const struct vx_json *m)
{
	const struct vx_json *config = vx_json_get(m, "config");
	const char *name = vx_json_str(vx_json_get(m, "name")),
		   *version = vx_json_str(vx_json_get(m, "version"));

	if (name)
		put(f, "npm_package_name", name);
	if (version)
		put(f, "npm_package_version", version);
	if (f->pm == VX_PM_BUN) {
		for (struct vx_json_iter it = vx_json_iter(config);
			vx_json_type(config) == VX_JSON_OBJECT && vx_json_next(&it);)
			if (vx_json_type(it.val) == VX_JSON_STRING)
				put(f, vx_arena_printf(f->a, "npm_package_config_%s", it.key),
					vx_json_str(it.val));
	} else if (f->pm == VX_PM_YARN_1 || (f->pm == VX_PM_PNPM && f->major && f->major < 10)) {
		put_whole(f, m);
		put_bin(f, vx_json_get(m, "bin"), name);
	} else if (f->pm != VX_PM_YARN) {
		if (config)
			flatten(f, "npm_package_config", config);
		if (vx_json_get(m, "engines"))
			flatten(f, "npm_package_engines", vx_json_get(m, "engines"));
		put_bin(f, vx_json_get(m, "bin"), name);
	}
}

static int package_env(
	struct loop *l, uint32_t project, const char *cwd, struct vx_strs *ret, struct vx_err *err)
{
	const struct vx_workspace *ws = &l->plan->ws;
	const char *path = vx_arena_printf(&l->arena, "%s/package.json", cwd),
		   *shown = ws->projects[project].manifest;
	struct flat f = {.a = &l->arena,
		.pm = ws->manager.pm,
		.major = ws->manager.version ? atoi(ws->manager.version) : 0};
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_json *m = NULL;
	int r = vx_read_file(AT_FDCWD, path, &b);

	if (r < 0)
		r = vx_err_set(err, r, "cannot read %s: %s", shown, vx_strerror(r));
	if (r == 0)
		r = vx_json_parse(vx_buf_str(&b), b.len, 0, shown, &m, err);
	if (r == 0)
		put_manifest(&f, m);
	if (f.bytes > MAX_PACKAGE_ENV)
		r = vx_err_set(err, -E2BIG,
			"%s gives more than %u bytes of npm_package_* variables", shown,
			MAX_PACKAGE_ENV);
	vx_json_free(m);
	vx_buf_free(&b);
	put(&f, "npm_package_json", path);
	put(&f, "INIT_CWD", cwd);
	if (f.pm == VX_PM_PNPM)
		put(&f, "PNPM_SCRIPT_SRC_DIR", cwd);
	if (f.pm == VX_PM_BUN)
		put(&f, "npm_config_local_prefix", cwd);
	*ret = vx_strlist_done(&f.out);
	return r;
}

/* ---- of the run ---- */

/* Canonical; NULL: it is not on vx's PATH. */
static const char *program(struct loop *l, const char *name)
{
	char path[VX_MAX_PATH], *canon;

	if (vx_which(name, l->path, path) < 0 || vx_path_canon(&l->arena, path, &canon) < 0)
		return NULL;
	return canon;
}

/* "10.9.0" of the manager that is installed; its program lies in a directory of its package. */
static const char *installed_version(struct loop *l, const char *program, const char *name)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_err err = {0};
	struct vx_json *m = NULL;
	const char *dir = vx_path_dir(&l->arena, vx_path_dir(&l->arena, program)), *version = NULL;

	if (vx_read_file(AT_FDCWD, vx_path_join(&l->arena, dir, "package.json"), &b) == 0 &&
		vx_json_parse(vx_buf_str(&b), b.len, 0, "", &m, &err) == 0 &&
		vx_streq(vx_json_str(vx_json_get(m, "name")), name))
		version = vx_json_str(vx_json_get(m, "version"));
	version = version ? vx_arena_strdup(&l->arena, version) : NULL;
	vx_json_free(m);
	vx_buf_free(&b);
	return version;
}

static const char *user_agent(struct loop *l, const char *version)
{
	const struct vx_manager *m = &l->plan->ws.manager;
	struct utsname u;
	const char *arch = uname(&u) < 0 ? "" : u.machine;

	if (strcmp(arch, "x86_64") == 0)
		arch = "x64";
	else if (strcmp(arch, "aarch64") == 0)
		arch = "arm64";
	return vx_arena_printf(&l->arena, "%s/%s %snode/? linux %s%s", pm_names[m->pm],
		version ? version : "?", m->pm == VX_PM_NPM ? "" : "npm/? ", arch,
		m->pm == VX_PM_NPM ? " workspaces/true" : "");
}

/* node-gyp, which npm and pnpm bring along for the scripts of packages that build addons. */
static void find_gyp(struct loop *l, struct vx_strlist *out, const char *program)
{
	const bool npm = l->plan->ws.manager.pm == VX_PM_NPM;
	const char *dir = vx_path_dir(&l->arena, vx_path_dir(&l->arena, program));
	const char *bin = vx_path_join(&l->arena, dir,
		npm ? "node_modules/@npmcli/run-script/lib/node-gyp-bin" : "dist/node-gyp-bin");
	const char *js = vx_path_join(&l->arena, dir,
		npm ? "node_modules/node-gyp/bin/node-gyp.js"
		    : "dist/node_modules/node-gyp/bin/node-gyp.js");

	if (access(bin, X_OK) == 0)
		l->scripts->gyp_bin = bin;
	if (access(js, R_OK) == 0)
		vx_strlist_add(
			out, &l->arena, vx_arena_printf(&l->arena, "npm_config_node_gyp=%s", js));
}

/* The programs: those that run us, where the same manager does, else what PATH has. */
static void find_programs(struct loop *l, struct vx_strlist *out)
{
	const struct vx_manager *m = &l->plan->ws.manager;
	const char *name = pm_names[m->pm], *outer = own_env(l, "npm_config_user_agent"),
		   *exec = NULL, *node = NULL, *agent = NULL;

	if (outer && vx_starts_with(outer, name) && outer[strlen(name)] == '/') {
		agent = outer;
		exec = own_env(l, "npm_execpath");
		node = own_env(l, "npm_node_execpath");
	}
	exec = exec ? exec : program(l, name);
	node = node ? node : program(l, "node");
	if (!agent)
		agent = user_agent(l, m->version ? m->version
				      : exec     ? installed_version(l, exec, name)
						 : NULL);
	vx_strlist_add(
		out, &l->arena, vx_arena_printf(&l->arena, "npm_config_user_agent=%s", agent));
	if (exec)
		vx_strlist_add(out, &l->arena, vx_arena_printf(&l->arena, "npm_execpath=%s", exec));
	if (node) {
		vx_strlist_add(
			out, &l->arena, vx_arena_printf(&l->arena, "npm_node_execpath=%s", node));
		vx_strlist_add(out, &l->arena, vx_arena_printf(&l->arena, "NODE=%s", node));
	}
	if (exec && (m->pm == VX_PM_NPM || m->pm == VX_PM_PNPM))
		find_gyp(l, out, exec);
}

static void find_shell(struct loop *l)
{
	const struct vx_manager *m = &l->plan->ws.manager;
	const char *name = m->shell             ? m->shell
			   : m->pm == VX_PM_BUN ? "bash"
						: NULL,
		   *sh = l->o->shell_path ? l->o->shell_path : "/bin/sh";
	char path[VX_MAX_PATH];

	if (!name || strchr(name, '/'))
		l->scripts->shell = name ? name : sh;
	else if (vx_which_own(name, l->plan->ws.root, path) == 0)
		l->scripts->shell = vx_arena_strdup(&l->arena, path);
	else
		l->scripts->shell = m->shell ? NULL : sh;
}

static void make_known(struct loop *l)
{
	const struct vx_workspace *ws = &l->plan->ws;
	const struct vx_manager *m = &ws->manager;
	int major = m->version ? atoi(m->version) : 0;
	struct vx_strlist out = {0};
	char yarn[VX_MAX_PATH];

	if (!l->scripts) {
		l->scripts = vx_arena_alloc(&l->arena, sizeof *l->scripts);
		*l->scripts = (struct loop_scripts){0};
		l->scripts->package =
			vx_arena_array(&l->arena, ws->n_projects, sizeof *l->scripts->package);
		l->scripts->path =
			vx_arena_array(&l->arena, ws->n_projects, sizeof *l->scripts->path);
	}
	if (l->scripts->known)
		return;
	l->scripts->known = true;
	find_shell(l);
	find_programs(l, &out);
	if (m->pnp && vx_which("yarn", l->path, yarn) == 0)
		l->scripts->yarn = vx_arena_strdup(&l->arena, yarn);
	if (m->pm != VX_PM_YARN && m->pm != VX_PM_YARN_1)
		vx_strlist_add(&out, &l->arena,
			m->pm == VX_PM_NPM && major > 10 ? "npm_command=run"
							 : "npm_command=run-script");
	if (m->node_options)
		vx_strlist_add(&out, &l->arena,
			vx_arena_printf(&l->arena, "NODE_OPTIONS=%s", m->node_options));
	if (m->pm == VX_PM_NPM)
		vx_strlist_add(&out, &l->arena,
			vx_arena_printf(&l->arena, "npm_config_local_prefix=%s", ws->root));
	if (m->pm == VX_PM_YARN)
		vx_strlist_add(
			&out, &l->arena, vx_arena_printf(&l->arena, "PROJECT_CWD=%s", ws->root));
	/* a pnpm within a script does not look again whether what it needs is installed */
	if (m->pm == VX_PM_PNPM && (major == 0 || major >= 10))
		vx_strlist_add(&out, &l->arena, "pnpm_config_verify_deps_before_run=false");
	if (m->pm == VX_PM_PNPM && major == 10)
		vx_strlist_add(&out, &l->arena, "npm_config_verify_deps_before_run=false");
	l->scripts->all = vx_strlist_done(&out);
}

/* ---- of a task ---- */

static bool by_yarn(const struct loop *l, const struct vx_exec_decl *x)
{
	return x->script && l->plan->ws.manager.pnp;
}

int loop_script_env(
	struct loop *l, uint32_t task, const char *cwd, struct vx_strlist *out, struct vx_err *err)
{
	const struct vx_task *t = &l->g->tasks[task];
	const struct vx_exec_decl *x = &t->decl->exec;

	if (!x->script || by_yarn(l, x)) /* Yarn sets what it wants */
		return 0;
	make_known(l);
	struct vx_strs *package = &l->scripts->package[t->project];
	int r = package->v ? 0 : package_env(l, t->project, cwd, package, err);
	if (r < 0) {
		*package = (struct vx_strs){0};
		return r;
	}
	for (uint32_t i = 0; i < l->scripts->all.n; i++)
		vx_strlist_add(out, &l->arena, l->scripts->all.v[i]);
	for (uint32_t i = 0; i < package->n; i++)
		vx_strlist_add(out, &l->arena, package->v[i]);
	vx_strlist_add(
		out, &l->arena, vx_arena_printf(&l->arena, "npm_lifecycle_event=%s", x->script));
	vx_strlist_add(
		out, &l->arena, vx_arena_printf(&l->arena, "npm_lifecycle_script=%s", x->command));
	return 0;
}

/* npm and bun add node_modules/.bin of every directory above the package, the root's last; those
 * above the root are not the workspace's. */
const char *loop_script_path(struct loop *l, uint32_t project)
{
	const struct vx_workspace *ws = &l->plan->ws;
	bool all = ws->manager.pm == VX_PM_NPM || ws->manager.pm == VX_PM_BUN;
	const char *dir = ws->projects[project].dir;
	struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);

	make_known(l);
	if (l->scripts->path[project])
		return l->scripts->path[project];
	vx_buf_adds(&b, "PATH=");
	for (bool first = true; strcmp(dir, ".") != 0; first = false) {
		if (first || all)
			vx_buf_printf(&b, "%s/%s/node_modules/.bin:", ws->root, dir);
		dir = vx_path_dir(&l->arena, dir);
	}
	vx_buf_printf(&b, "%s/node_modules/.bin:", ws->root);
	if (l->scripts->gyp_bin)
		vx_buf_printf(&b, "%s:", l->scripts->gyp_bin);
	vx_buf_adds(&b, l->path);
	const char *s = vx_arena_strdup(&l->arena, vx_buf_str(&b));
	vx_buf_free(&b);
	return l->scripts->path[project] = s;
}

/* Yarn from 2 on has a command `run` within scripts. Is it used? As the first word of a command:
 * what stands in quotes may be taken for one, which does no harm. */
static bool calls_run(const struct loop *l, const struct vx_exec_decl *x)
{
	if (l->plan->ws.manager.pm != VX_PM_YARN)
		return false;
	for (const char *s = strstr(x->command, "run"); s; s = strstr(s + 1, "run")) {
		const char *before = s;
		while (before > x->command && (before[-1] == ' ' || before[-1] == '\t'))
			before--;
		if ((before == x->command || strchr(";&|({\n", before[-1])) &&
			(s[3] == ' ' || s[3] == '\t'))
			return true;
	}
	return false;
}

/* What runs around a script runs in a shell of its own, like the script; the first that fails ends
 * the task. A stop goes to the whole tree: this shell ends at once and starts nothing more, while
 * the script has its grace. $0 is the shell, then the script's name and the three texts. */
static const char around[] =
	"if [ -n \"$2\" ]; then\n"
	"\tnpm_lifecycle_event=pre$1 npm_lifecycle_script=$2 \"$0\" -c \"$2\" || exit\n"
	"fi\n"
	"[ -n \"$4\" ] || exec \"$0\" -c \"$3\"\n"
	"\"$0\" -c \"$3\" || exit\n"
	"npm_lifecycle_event=post$1 npm_lifecycle_script=$4\n"
	"exec \"$0\" -c \"$4\"";

int loop_script_argv(struct loop *l, uint32_t task, const char *command, struct vx_strs extra,
	struct vx_strs *ret, struct vx_err *err)
{
	const struct vx_exec_decl *x = &l->g->tasks[task].decl->exec;
	struct vx_strlist argv = {0};

	make_known(l);
	l->t[task].shell = true; /* none of these is taken apart */
	if (by_yarn(l, x)) {
		if (!l->scripts->yarn)
			return vx_run_no_yarn(err);
		const char *const words[] = {l->scripts->yarn, "run", x->script};
		for (size_t i = 0; i < VX_ARRAY_LEN(words); i++)
			vx_strlist_add(&argv, &l->arena, words[i]);
		for (uint32_t i = 0; i < extra.n; i++)
			vx_strlist_add(&argv, &l->arena, extra.v[i]);
		*ret = vx_strlist_done(&argv);
		return 0;
	}
	if (!l->scripts->shell)
		return vx_err_set(err, -ENOENT, "script-shell \"%.100s\" was not found on PATH",
			l->plan->ws.manager.shell);
	if (calls_run(l, x))
		command = vx_arena_printf(&l->arena, "run() { yarn run \"$@\"; }\n%s", command);
	const char *sh = l->o->shell_path ? l->o->shell_path : "/bin/sh",
		   *const words[] = {sh, "-c", around, l->scripts->shell, x->script,
			   x->pre ? x->pre : "", command, x->post ? x->post : ""},
		   *const alone[] = {l->scripts->shell, "-c", command};
	bool more = x->pre || x->post;
	for (size_t i = 0; i < (more ? VX_ARRAY_LEN(words) : VX_ARRAY_LEN(alone)); i++)
		vx_strlist_add(&argv, &l->arena, more ? words[i] : alone[i]);
	*ret = vx_strlist_done(&argv);
	return 0;
}

bool loop_script_apart(const struct loop *l, const struct vx_exec_decl *x)
{
	const struct vx_manager *m = &l->plan->ws.manager;

	return !x->script || !(x->pre || x->post || m->pnp || m->shell || calls_run(l, x));
}

int vx_run_no_yarn(struct vx_err *err)
{
	vx_err_set(err, -ENOENT,
		"the workspace uses Yarn Plug'n'Play, whose scripts only Yarn can run, and yarn is not on PATH");
	return vx_err_fix(err,
		"install yarn (corepack enable), or set nodeLinker: node-modules in .yarnrc.yml and install again");
}

int vx_run_check_scripts(const struct vx_plan *p, struct vx_err *err)
{
	char path[VX_MAX_PATH];
	const char *var = getenv("PATH");

	if (!p->ws.manager.pnp)
		return 0;
	for (uint32_t i = 0; i < p->graph.n_tasks; i++)
		if (!vx_task_is_group(&p->graph.tasks[i]) && p->graph.tasks[i].decl->exec.script)
			return vx_which("yarn", var && *var ? var : "/usr/local/bin:/usr/bin:/bin",
				       path) < 0
				       ? vx_run_no_yarn(err)
				       : 0;
	return 0;
}
