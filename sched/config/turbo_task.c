/* One task of a turbo.json: the fields of its chain merged, `$TURBO_...$` resolved, brought into
 * vx's terms. */
#include "turbo.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/path.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char DEFAULT[] = "$TURBO_DEFAULT$", ROOT[] = "$TURBO_ROOT$",
		  EXTENDS[] = "$TURBO_EXTENDS$";

static const char *const known[] = {"cache", "dependsOn", "env", "inputs", "interactive",
	"interruptible", "outputLogs", "outputMode", "outputs", "passThroughEnv", "persistent",
	"with", "description", "extends", "dotEnv", NULL};

static const char *const log_modes[] = {
	"full", "hash-only", "new-only", "errors-only", "none", NULL};

int turbo_check_task(const struct cfg *c, const struct vx_json *task, struct vx_strlist *warnings)
{
	struct vx_strs names = {known, sizeof known / sizeof *known - 1};

	if (vx_json_type(task) != VX_JSON_OBJECT)
		return cfg_fail(c, NULL, "the task must be an object");
	for (struct vx_json_iter it = vx_json_iter(task); vx_json_next(&it);) {
		if (vx_strs_has(names, it.key))
			continue;
		const char *near = vx_nearest(it.key, names);
		if (near) {
			cfg_fail(c, NULL, "unknown key \"%.100s\"", it.key);
			return vx_err_fix(c->err, "did you mean \"%s\"?", near);
		}
		vx_strlist_add(warnings, c->a,
			vx_arena_printf(c->a,
				"%s: task \"%s\": \"%s\" means nothing to vx and is ignored",
				c->file, c->task, it.key));
	}
	return 0;
}

/* The list of a field: the last object that gives it replaces the earlier ones, or adds to them
 * where it holds $TURBO_EXTENDS$. */
static int list(const struct cfg *c, const struct turbo_chain *chain, uint32_t upto,
	const char *key, struct vx_strlist *out, bool *ret_given)
{
	struct vx_strs mine = {0};
	struct cfg at = *c;

	while (upto > 0 && !vx_json_get(chain->v[upto - 1], key))
		upto--;
	if (upto == 0)
		return 0;
	at.file = chain->file[upto - 1];
	*ret_given = true;
	int r = cfg_strs(&at, vx_json_get(chain->v[upto - 1], key), key, &mine);
	if (r == 0 && vx_strs_has(mine, EXTENDS))
		r = list(c, chain, upto - 1, key, out, ret_given);
	for (uint32_t i = 0; r == 0 && i < mine.n; i++)
		if (strcmp(mine.v[i], EXTENDS) != 0)
			vx_strlist_add(out, c->a, mine.v[i]);
	return r;
}

static int flag(const struct cfg *c, const struct turbo_chain *chain, const char *key, bool *ret)
{
	struct cfg at = *c;

	for (uint32_t i = chain->n; i > 0; i--)
		if (vx_json_get(chain->v[i - 1], key)) {
			at.file = chain->file[i - 1];
			return cfg_bool(&at, vx_json_get(chain->v[i - 1], key), key, ret);
		}
	return 0;
}

static int text(
	const struct cfg *c, const struct turbo_chain *chain, const char *key, const char **ret)
{
	struct cfg at = *c;

	for (uint32_t i = chain->n; i > 0; i--)
		if (vx_json_get(chain->v[i - 1], key)) {
			at.file = chain->file[i - 1];
			return cfg_str(&at, vx_json_get(chain->v[i - 1], key), key, ret);
		}
	return 0;
}

/* A glob as written -> a project glob, or (ret_root) one that is relative to the root:
 * "$TURBO_ROOT$/x" and "../x". NULL after an error. */
static const char *place(const struct cfg *c, const struct vx_project *p, const char *field,
	const char *glob, bool *ret_root)
{
	bool negated = *glob == '!';
	const char *g = glob + negated, *bare = g;

	while (vx_starts_with(bare, "./"))
		bare += 2;
	if (vx_starts_with(bare, "../"))
		g = bare;
	*ret_root = false;
	if (vx_starts_with(g, ROOT)) {
		g += sizeof ROOT - 1;
		if (*g != '/') {
			cfg_fail(c, field, "entry \"%.200s\": $TURBO_ROOT$ must be followed by '/'",
				glob);
			return NULL;
		}
		*ret_root = true;
		g++;
	} else if (strstr(g, ROOT)) {
		cfg_fail(c, field, "entry \"%.200s\": $TURBO_ROOT$ must stand at the start", glob);
		return NULL;
	} else if (vx_starts_with(g, "../") || strcmp(g, "..") == 0) {
		*ret_root = true;
		g = vx_path_join(c->a, p->dir, g);
		if (vx_starts_with(g, "../") || strcmp(g, "..") == 0) {
			cfg_fail(c, field, "entry \"%.200s\" leaves the workspace", glob);
			return NULL;
		}
	} else if (*g == '/') {
		cfg_fail(c, field,
			"entry \"%.200s\" is absolute; patterns are relative to the package", glob);
		return NULL;
	}
	return negated     ? vx_arena_printf(c->a, "!%s", g)
	       : g == glob ? glob
			   : vx_arena_strdup(c->a, g);
}

static int place_all(const struct cfg *c, const struct vx_project *p, const char *field,
	const struct vx_strlist *in, struct vx_strs *ret, struct vx_strs *ret_root)
{
	struct vx_strlist own = {0}, root = {0};

	for (uint32_t i = 0; i < in->n; i++) {
		bool at_root;
		const char *g = place(c, p, field, in->v[i], &at_root);
		if (!g)
			return -EINVAL;
		vx_strlist_add(at_root ? &root : &own, c->a, g);
	}
	*ret = vx_strlist_done(&own);
	*ret_root = vx_strlist_done(&root);
	return 0;
}

static int take_inputs(const struct cfg *c, const struct turbo_chain *chain,
	const struct vx_project *p, struct vx_cache_decl *d)
{
	struct vx_strlist in = {0}, rest = {0};
	bool given = false;
	int r = list(c, chain, chain->n, "inputs", &in, &given);

	d->default_inputs = in.n == 0;
	if (r == 0)
		/* Turborepo 1: files beside the inputs */
		r = list(c, chain, chain->n, "dotEnv", &in, &given);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < chain->global_inputs.n; i++) {
		const char *g = chain->global_inputs.v[i];
		vx_strlist_add(&rest, c->a,
			vx_arena_printf(
				c->a, "%s%s/%s", *g == '!' ? "!" : "", ROOT, g + (*g == '!')));
	}
	for (uint32_t i = 0; i < in.n; i++) {
		if (strcmp(in.v[i], DEFAULT) == 0)
			d->default_inputs = true;
		else
			vx_strlist_add(&rest, c->a, in.v[i]);
	}
	return place_all(c, p, "inputs", &rest, &d->files, &d->workspace_files);
}

/* Variables that the package's framework builds into its results, behind those of the file. Those
 * that begin with the value of VX_VENDOR_SWITCH are set by the CI itself and are not inferred, but
 * the file may name them. */
static void infer_env(const struct vx_project *p, struct vx_arena *a, struct vx_strlist *env,
	struct vx_cache_decl *d)
{
	struct vx_strs inferred = p->framework_env;
	const char *skew = getenv(VX_SKEW_SWITCH), *vendor = getenv(VX_VENDOR_SWITCH);
	uint32_t before = env->n;
	bool bars = vendor && *vendor && inferred.n;

	if (bars)
		vx_strlist_add(env, a, vx_arena_printf(a, "=%s*", vendor));
	for (uint32_t i = 0; i < inferred.n; i++) {
		if (strcmp(inferred.v[i], VX_SKEW_ID) == 0 && !vx_streq(skew, "1"))
			continue;
		vx_strlist_add(env, a, inferred.v[i]);
	}
	if (bars)
		vx_strlist_add(env, a, "=");
	d->n_inferred = env->n - before;
}

static int take_env(const struct cfg *c, const struct turbo_chain *chain,
	const struct vx_workspace *ws, const struct vx_project *p, struct vx_task_decl *t)
{
	const struct vx_strs *global[] = {
		&ws->settings.global_env, &ws->settings.global_pass_through};
	struct vx_strlist env = {0}, pass = {0};
	bool given = false;
	int r = list(c, chain, chain->n, "env", &env, &given);

	if (r == 0)
		r = list(c, chain, chain->n, "passThroughEnv", &pass, &given);
	for (uint32_t i = 0; r == 0 && i < env.n + pass.n; i++) {
		const char *name = i < env.n ? env.v[i] : pass.v[i - env.n];
		if (strchr(name, '=') || *name == '$')
			return cfg_fail(c, i < env.n ? "env" : "passThroughEnv",
				"entry \"%.100s\" is no name of a variable", name);
	}
	if (r < 0)
		return r;
	infer_env(p, c->a, &env, &t->cache);
	t->cache.env = vx_strlist_done(&env);
	/* What a task is keyed by it may see, so the command gets all of it. */
	for (uint32_t i = 0; i < env.n; i++)
		vx_strlist_add(&pass, c->a, env.v[i]);
	for (int g = 0; g < 2; g++)
		for (uint32_t i = 0; i < global[g]->n; i++)
			vx_strlist_add(&pass, c->a, global[g]->v[i]);
	t->exec.pass_through = vx_strlist_done(&pass);
	return 0;
}

static int take_depends(
	const struct cfg *c, const struct turbo_chain *chain, struct vx_task_decl *t)
{
	struct vx_strlist l = {0}, with = {0};
	bool given = false;
	int r = list(c, chain, chain->n, "dependsOn", &l, &given);

	for (uint32_t i = 0; r == 0 && i < l.n; i++) {
		if (*l.v[i] == '$')
			return cfg_fail(c, "dependsOn", "entry \"%.200s\": name variables in `env`",
				l.v[i]);
		if (strcmp(l.v[i], "^") == 0 || (*l.v[i] == '^' && strchr(l.v[i], '#')))
			return cfg_fail(c, "dependsOn", "entry \"%.200s\" names no task", l.v[i]);
	}
	if (r == 0)
		r = list(c, chain, chain->n, "with", &with, &given);
	for (uint32_t i = 0; r == 0 && i < with.n; i++)
		if (*with.v[i] == '^')
			return cfg_fail(c, "with",
				"entry \"%.200s\": a sibling cannot be named by '^'", with.v[i]);
	t->depends_on = vx_strlist_done(&l);
	t->with = vx_strlist_done(&with);
	return r;
}

static int take_logs(const struct cfg *c, const struct turbo_chain *chain, struct vx_task_decl *t)
{
	int r = text(c, chain, "outputMode", &t->output_logs);

	if (r == 0)
		r = text(c, chain, "outputLogs", &t->output_logs);
	if (r < 0 || !t->output_logs)
		return r;
	for (const char *const *m = log_modes; *m; m++)
		if (strcmp(*m, t->output_logs) == 0)
			return 0;
	return cfg_fail(c, "outputLogs",
		"must be full, hash-only, new-only, errors-only or none, not \"%.60s\"",
		t->output_logs);
}

/* Without the entries that name such a file, which is then meant: a build that writes its own
 * manifest. It is never cleaned (vx/lane.h, `tracked`). */
static struct vx_strs not_named(const struct cfg *c, struct vx_strs out, const char *const *own)
{
	struct vx_strlist l = {0};

	for (uint32_t i = 0; i < out.n; i++) {
		bool named = false;
		for (const char *const *o = own; *o && !named; o++)
			named = strcmp(out.v[i], *o) == 0;
		if (!named)
			vx_strlist_add(&l, c->a, out.v[i]);
	}
	return vx_strlist_done(&l);
}

/* Turborepo removes nothing before a command runs and so allows outputs such as "**"; here they
 * would take the sources along. Such a task runs, but is not cached. */
static bool takes_own_files(const struct cfg *c, const struct turbo_chain *chain,
	const struct vx_project *p, const struct vx_task_decl *t)
{
	static const char *const own[] = {"package.json", "turbo.json", "turbo.jsonc", NULL},
				 *const root[] = {"package.json", "turbo.json", NULL};
	const char *entry, *file = cfg_taken(not_named(c, t->cache.out_files, own), own, &entry);

	if (!file)
		file = cfg_taken(not_named(c, t->cache.out_workspace_files, root), root, &entry);
	if (file)
		vx_strlist_add(chain->warnings, c->a,
			vx_arena_printf(c->a,
				"%s#%s is not cached: its outputs \"%.200s\" take its own %s (name what the command makes, such as dist/**)",
				p->name, c->task, entry, file));
	return file != NULL;
}

int turbo_task(const struct cfg *c, const struct turbo_chain *chain, const struct vx_workspace *ws,
	const struct vx_project *p, struct vx_task_decl *ret)
{
	struct vx_task_decl t = {.name = c->task,
		.dialect = VX_DIALECT_TURBO,
		.exec = {.timeout_ms = -1, .retries = -1, .cpus = 1}};
	struct vx_strlist outputs = {0};
	bool cache = true, given = false;
	const char *script = cfg_script(p, c->task);

	t.source = chain->n ? chain->file[chain->n - 1] : c->file;
	t.has_exec = script && script[strspn(script, " \t\r\n")];
	if (t.has_exec)
		cfg_use_script(&ws->manager, p, c->task, c->a, &t.exec);
	int r = text(c, chain, "description", &t.description);
	if (r == 0)
		r = take_depends(c, chain, &t);
	if (r == 0)
		r = take_inputs(c, chain, p, &t.cache);
	if (r == 0)
		r = list(c, chain, chain->n, "outputs", &outputs, &given);
	if (r == 0)
		r = place_all(c, p, "outputs", &outputs, &t.cache.out_files,
			&t.cache.out_workspace_files);
	if (r == 0)
		r = take_env(c, chain, ws, p, &t);
	if (r == 0)
		r = flag(c, chain, "cache", &cache);
	if (r == 0)
		r = flag(c, chain, "persistent", &t.exec.persistent);
	if (r == 0)
		r = flag(c, chain, "interactive", &t.exec.interactive);
	if (r == 0)
		r = take_logs(c, chain, &t);
	if (r < 0)
		return r;
	t.says_cache = t.has_exec && cache && t.exec.persistent;
	t.has_cache =
		t.has_exec && cache && !t.exec.persistent && !takes_own_files(c, chain, p, &t);
	if (!t.has_exec)
		t.exec = (struct vx_exec_decl){.pass_through = t.exec.pass_through,
			.timeout_ms = -1,
			.retries = -1,
			.cpus = 1};
	t.canonical = cfg_canonical(&t, c->a);
	*ret = t;
	return 0;
}
