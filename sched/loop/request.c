/* Descriptors: what exactly a worker is asked to run. */
#include "loop.h"

#include "vx/assert.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What every task sees of our own environment; docs/running.md, "What a command gets". */
static const char *const allowed[] = {
	"HOME",
	"SHELL",
	"USER",
	"LOGNAME",
	"TMPDIR",
	"TEMP",
	"TMP",
	"LANG",
	"LC_ALL",
	"LC_CTYPE",
	"TERM",
	"COLORTERM",
	"FORCE_COLOR",
	"NO_COLOR",
	"CI",
	"NODE_OPTIONS",
	"COREPACK_HOME",
	"PNPM_HOME",
	"npm_execpath",
	"HTTP_PROXY",
	"HTTPS_PROXY",
	"ALL_PROXY",
	"NO_PROXY",
	"FTP_PROXY",
	"http_proxy",
	"https_proxy",
	"all_proxy",
	"no_proxy",
	"ftp_proxy",
	"SSL_CERT_FILE",
	"SSL_CERT_DIR",
	"NODE_EXTRA_CA_CERTS",
	"REQUESTS_CA_BUNDLE",
	"CURL_CA_BUNDLE",
	"GIT_SSL_CAINFO",
};

/* What Turborepo 2.11 lets through besides, in strict mode too and without a part in keys. It lists
 * variables of Windows and macOS as well; they mean nothing here. */
static const char *const turbo_allowed[] = {"TZ", "HOMEPATH", "HOMEDRIVE", "USERPROFILE",
	"XDG_RUNTIME_DIR", "XDG_DATA_*", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "COREPACK_*",
	"LD_LIBRARY_PATH", "DYLD_FALLBACK_LIBRARY_PATH", "LIBPATH", "LD_PRELOAD",
	"DYLD_INSERT_LIBRARIES", "TERM_PROGRAM", "DISPLAY", "WINDIR", "ProgramFiles",
	"ProgramFiles(x86)", "PROGRAMDATA", "APPDATA", "LOCALAPPDATA", "SYSTEMROOT", "SYSTEMDRIVE",
	"COMSPEC", "PATHEXT", "VSCODE_*", "ELECTRON_RUN_AS_NODE", "DOCKER_*", "BUILDKIT_*",
	"COMPOSE_*", "JB_IDE_*", "JB_INTERPRETER", "_JETBRAINS_TEST_RUNNER_RUN_SCOPE_TYPE",
	"VERCEL", "VERCEL_*", "NEXT_*", "USE_OUTPUT_FOR_EDGE_FUNCTIONS", "NOW_BUILDER",
	"VC_MICROFRONTENDS_CONFIG_FILE_NAME", "GITHUB_*", "RUNNER_*", "TURBO_*", "!TURBO_HASH",
	"NIX_*", "__NIXOS_*", "pnpm_config_verify_deps_before_run", "NPM_CONFIG_STORE_DIR"};

static const char *env_entry(char **env, const char *name)
{
	size_t n = strlen(name);
	for (char **e = env; *e; e++)
		if (!strncmp(*e, name, n) && (*e)[n] == '=')
			return *e;
	return NULL;
}

void loop_env_init(struct loop *l)
{
	struct vx_strlist base = {0};
	for (size_t i = 0; i < sizeof allowed / sizeof *allowed; i++) {
		const char *e = env_entry(l->env, allowed[i]);
		if (e)
			vx_strlist_add(&base, &l->arena, e);
	}
	l->base_env = vx_strlist_done(&base);
	if (l->plan->ws.settings.turbo)
		l->turbo_env =
			vx_env_select((struct vx_strs){turbo_allowed, VX_ARRAY_LEN(turbo_allowed)},
				(const char *const *)l->env, VX_DIALECT_TURBO, &l->arena);
	const char *path = getenv("PATH");
	l->path = path && *path ? path : "/usr/local/bin:/usr/bin:/bin";
	l->project_path =
		vx_arena_array(&l->arena, l->plan->ws.n_projects, sizeof *l->project_path);
}

/* PATH with the project's and the root's node_modules/.bin in front. */
static const char *path_of(struct loop *l, uint32_t project)
{
	if (l->project_path[project])
		return l->project_path[project];
	const char *root = l->plan->ws.root, *dir = l->plan->ws.projects[project].dir;
	char *s = strcmp(dir, ".") ? vx_arena_printf(&l->arena,
					     "PATH=%s/%s/node_modules/.bin:%s/node_modules/.bin:%s",
					     root, dir, root, l->path)
				   : vx_arena_printf(&l->arena, "PATH=%s/node_modules/.bin:%s",
					     root, l->path);
	return l->project_path[project] = s;
}

struct env {
	struct vx_arena *a;
	struct vx_strlist list;
};

/* The last word on a name wins. */
static void env_set(struct env *e, const char *entry)
{
	size_t n = strcspn(entry, "=");
	for (uint32_t i = 0; i < e->list.n; i++)
		if (!strncmp(e->list.v[i], entry, n + 1)) {
			e->list.v[i] = entry;
			return;
		}
	vx_strlist_add(&e->list, e->a, entry);
}

static void pass(struct loop *l, struct env *e, struct vx_strs names, enum vx_dialect dialect)
{
	if (!names.n)
		return;
	struct vx_strs picked = vx_env_select(names, (const char *const *)l->env, dialect, e->a);
	for (uint32_t i = 0; i < picked.n; i++)
		env_set(e, picked.v[i]);
}

/* PATH, PWD and what is ours come behind what is let through, which may be everything. */
static int environment(
	struct loop *l, uint32_t task, const char *cwd, struct vx_strs *ret, struct vx_err *err)
{
	const struct vx_task *t = &l->g->tasks[task];
	const struct vx_exec_decl *x = &t->decl->exec;
	const struct vx_ws_settings *set = &l->plan->ws.settings;
	struct env e = {.a = &l->arena};
	struct vx_strlist script = {0};
	for (uint32_t i = 0; i < l->base_env.n; i++)
		vx_strlist_add(&e.list, e.a, l->base_env.v[i]);
	if (t->decl->dialect == VX_DIALECT_TURBO) {
		for (uint32_t i = 0; i < l->turbo_env.n; i++)
			env_set(&e, l->turbo_env.v[i]);
		/* Turborepo lets a task see what its hash covers, and what is passed through. */
		pass(l, &e, set->global_env, VX_DIALECT_TURBO);
		pass(l, &e, set->global_pass_through, VX_DIALECT_TURBO);
		pass(l, &e, t->decl->cache.env, VX_DIALECT_TURBO);
	}
	pass(l, &e, x->pass_through, t->decl->dialect);
	pass(l, &e, x->secret, VX_DIALECT_VX);
	if (t->decl->dialect == VX_DIALECT_TURBO && l->t[task].keyed) {
		char hex[VX_DIGEST_HEX];
		vx_hex(vx_key_get(l->keyer, task)->key.b, VX_DIGEST_BYTES, hex);
		env_set(&e, vx_arena_printf(e.a, "TURBO_HASH=%.16s", hex));
	}
	int r = loop_script_env(l, task, cwd, &script, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < script.n; i++)
		env_set(&e, script.v[i]);
	env_set(&e, x->script ? loop_script_path(l, t->project) : path_of(l, t->project));
	env_set(&e, vx_arena_printf(e.a, "PWD=%s", cwd));
	env_set(&e, vx_arena_printf(e.a, "VX_RUN_WORKSPACE=%s", l->plan->ws.root));
	env_set(&e, vx_arena_printf(e.a, "VX_RUN_TASK=%s", t->id));
	for (uint32_t i = 0; i < x->n_define; i++)
		env_set(&e, vx_arena_printf(e.a, "%s=%s", x->define[i].name, x->define[i].value));
	*ret = vx_strlist_done(&e.list);
	return 0;
}

static int arguments(struct loop *l, uint32_t task, struct vx_strs *ret, struct vx_err *err)
{
	const struct vx_task *t = &l->g->tasks[task];
	struct vx_strlist argv = {0};
	struct vx_strs words;
	const struct vx_strs *extra = t->requested ? &l->o->forwarded : &(struct vx_strs){0};
	if (!l->t[task].shell && loop_script_apart(l, &t->decl->exec) &&
		loop_direct_split(t->decl->exec.command, &l->arena, &words)) {
		for (uint32_t i = 0; i < words.n; i++)
			vx_strlist_add(&argv, &l->arena, words.v[i]);
		for (uint32_t i = 0; i < extra->n; i++)
			vx_strlist_add(&argv, &l->arena, extra->v[i]);
		*ret = vx_strlist_done(&argv);
		return 0;
	}
	l->t[task].shell = true;
	const char *command = t->decl->exec.command;
	if (extra->n) {
		struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);
		/* that it can be told was checked before the run began */
		size_t at = strlen(command);
		(void)loop_command_end(command, &at);
		vx_buf_add(&b, command, at);
		for (uint32_t i = 0; i < extra->n; i++) {
			vx_buf_addc(&b, ' ');
			loop_shell_quote(extra->v[i], &b);
		}
		vx_buf_adds(&b, command + at);
		command = vx_arena_strdup(&l->arena, vx_buf_str(&b));
		vx_buf_free(&b);
	}
	if (t->decl->exec.script)
		return loop_script_argv(l, task, command, *extra, ret, err);
	vx_strlist_add(&argv, &l->arena, l->o->shell_path ? l->o->shell_path : "/bin/sh");
	vx_strlist_add(&argv, &l->arena, "-c");
	vx_strlist_add(&argv, &l->arena, command);
	*ret = vx_strlist_done(&argv);
	return 0;
}

uint32_t loop_timeout_ms(const struct loop *l, const struct vx_exec_decl *x)
{
	if (x->timeout_ms >= 0)
		return (uint32_t)x->timeout_ms;
	if (l->o->timeout_ms >= 0)
		return (uint32_t)l->o->timeout_ms;
	if (l->env_timeout_ms >= 0)
		return (uint32_t)l->env_timeout_ms;
	return l->plan->ws.settings.timeout_ms > 0 ? (uint32_t)l->plan->ws.settings.timeout_ms : 0;
}

bool loop_sandboxed(const struct loop *l, uint32_t task)
{
	return l->g->tasks[task].decl->exec.sandboxed && l->o->sandbox != VX_SANDBOX_OFF;
}

bool loop_unboxed(const struct loop *l, uint32_t task)
{
	return l->g->tasks[task].decl->exec.sandboxed && l->o->sandbox == VX_SANDBOX_OFF;
}

int loop_describe(struct loop *l, uint32_t task, struct vx_task_desc *d, struct vx_err *err)
{
	const struct vx_task *t = &l->g->tasks[task];
	const struct vx_exec_decl *x = &t->decl->exec;
	const char *dir = l->plan->ws.projects[t->project].dir;
	*d = (struct vx_task_desc){.task = task, .attempt = l->t[task].attempt, .id = t->id};
	d->cwd = strcmp(dir, ".") ? vx_path_join(&l->arena, l->plan->ws.root, dir)
				  : l->plan->ws.root;
	int r = arguments(l, task, &d->argv, err);
	if (r == 0)
		r = environment(l, task, d->cwd, &d->env, err);
	if (r < 0)
		return r;
	/* of a persistent task it bounds the wait for readiness, which is ours */
	d->timeout_ms = x->persistent ? 0 : loop_timeout_ms(l, x);
	d->grace_ms = l->grace_ms;
	d->persistent = x->persistent;
	d->memory_bytes = x->memory_bytes;
	d->sandboxed = loop_sandboxed(l, task);
	if (d->sandboxed)
		vx_run_sandbox_spec(l->plan, task, l->store_dir, &l->arena, &d->sandbox);
	return 0;
}
