/* The rules that one task can break by itself. docs/config.md, "Errors at load". */
#include "cfg.h"

#include "../glob/globrel.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

static const struct {
	const char *token, *instead;
} foreign[] = {
	{"$TURBO_DEFAULT$", "this is Turborepo's; write \"**\" for every file of the project"},
	{"$TURBO_ROOT$",
		"this is Turborepo's; put the pattern, relative to the workspace root, in workspaceFiles"},
	{"$TURBO_EXTENDS$", "this is Turborepo's; write the whole list"},
	{"{projectRoot}",
		"this is Nx's; patterns are relative to the project already, so leave it out"},
	{"{workspaceRoot}",
		"this is Nx's; put the pattern, relative to the workspace root, in workspaceFiles"},
	{"{projectName}", "this is Nx's; write the project's name"},
	{"{options.", "this is Nx's; write the value itself"},
};

static int no_tokens(const struct cfg *c, const char *field, const char *s)
{
	for (size_t i = 0; i < sizeof foreign / sizeof *foreign; i++)
		if (strstr(s, foreign[i].token)) {
			cfg_fail(c, field,
				"entry \"%.200s\" uses %s, which means nothing in a vx file", s,
				foreign[i].token);
			return vx_err_fix(c->err, "%s", foreign[i].instead);
		}
	return 0;
}

/* A `..` component, also one that a brace arm makes. */
static bool has_dotdot(const char *s)
{
	for (const char *p = s; (p = strstr(p, "..")) != NULL; p += 2)
		if ((p == s || strchr("/{,!", p[-1])) && (p[2] == '\0' || strchr("/},", p[2])))
			return true;
	return false;
}

static bool is_absolute(const char *s)
{
	if (*s == '/')
		return true;
	for (const char *p = s; *s == '{' && *p && *p != '}'; p++)
		if ((*p == '{' || *p == ',') && p[1] == '/')
			return true;
	return false;
}

static const char *extglob(const char *s)
{
	for (const char *p = s; *p; p++)
		if (strchr("@+?*!", *p) && p[1] == '(')
			return p;
	return NULL;
}

static int check_glob(const struct cfg *c, const char *field, const char *entry)
{
	const char *s = entry + (*entry == '!');
	int r = no_tokens(c, field, entry);

	if (r < 0)
		return r;
	if (*s == '\0')
		return cfg_fail(c, field, "entry \"%.200s\" names nothing", entry);
	if (is_absolute(s))
		return cfg_fail(c, field,
			"entry \"%.200s\" is absolute; patterns are relative to the %s", entry,
			strstr(field, "workspaceFiles") ? "workspace root" : "project");
	if (has_dotdot(s)) {
		cfg_fail(c, field, "entry \"%.200s\" has a \"..\" component", entry);
		return vx_err_fix(c->err,
			"for files elsewhere in the workspace use workspaceFiles, relative to the workspace root");
	}
	if (extglob(s)) {
		cfg_fail(c, field, "entry \"%.200s\" uses an extglob, \"%.2s\"", entry, extglob(s));
		return vx_err_fix(
			c->err, "write the alternatives as {a,b}, or as entries of their own");
	}
	return 0;
}

static int check_globs(const struct cfg *c, const char *field, struct vx_strs globs)
{
	for (uint32_t i = 0; i < globs.n; i++) {
		int r = check_glob(c, field, globs.v[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static bool only_negated(struct vx_strs globs)
{
	for (uint32_t i = 0; i < globs.n; i++)
		if (*globs.v[i] != '!')
			return false;
	return globs.n > 0;
}

static int check_env_name(const struct cfg *c, const char *field, const char *name)
{
	if (*name == '\0')
		return cfg_fail(c, field, "has an empty name");
	if (strchr(name, '='))
		return cfg_fail(
			c, field, "holds \"%.100s\": the name of a variable has no '='", name);
	/* Turborepo has patterns here. Taken literally one would select nothing, and what it was to
	 * say would be in no key. */
	if (strchr(name, '*') || *name == '!') {
		cfg_fail(c, field,
			"holds \"%.100s\", but there are no patterns of variables in a vx file",
			name);
		return vx_err_fix(c->err, "write each name");
	}
	return no_tokens(c, field, name);
}

static int check_env(const struct cfg *c, const char *field, struct vx_strs names)
{
	for (uint32_t i = 0; i < names.n; i++) {
		int r = check_env_name(c, field, names.v[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

static int check_depends(const struct cfg *c, struct vx_strs deps)
{
	for (uint32_t i = 0; i < deps.n; i++) {
		const char *d = deps.v[i], *name = d + (*d == '^'), *hash = strrchr(d, '#');
		int r = no_tokens(c, "dependsOn", d);
		if (r < 0)
			return r;
		if (*name == '\0' || *name == '^' || *name == '!' ||
			(hash && (hash == d || hash[1] == '\0')))
			return cfg_fail(c, "dependsOn", "entry \"%.200s\" names no task", d);
		if (*d == '^' && hash)
			return cfg_fail(c, "dependsOn", "entry \"%.200s\" mixes '^' and '#'", d);
		if (strchr(" \t\r\n", *name) || strchr(" \t\r\n", name[strlen(name) - 1]))
			return cfg_fail(
				c, "dependsOn", "entry \"%.200s\" starts or ends with a blank", d);
	}
	return 0;
}

/* What the outputs take, the inputs do not get. An entry that is lost whole was surely meant
 * otherwise; one that a `!` of the outputs gives back in part was not. */
static int check_taken_back(
	const struct cfg *c, const char *field, struct vx_strs in, struct vx_strs out)
{
	uint64_t since = vx_globrel_steps();

	for (uint32_t i = 0; i < in.n; i++) {
		uint32_t o = 0;
		bool given_back = false;
		while (o < out.n && (*in.v[i] == '!' || *out.v[o] == '!' ||
					    !vx_globrel_within(in.v[i], out.v[o])))
			o++;
		if (vx_globrel_steps() - since > VX_MAX_GLOB_STEPS)
			return cfg_fail(c, field,
				"takes more than %u steps to compare with the outputs: write fewer globs, or simpler ones",
				VX_MAX_GLOB_STEPS);
		for (uint32_t k = 0; o < out.n && k < out.n && !given_back; k++)
			given_back = *out.v[k] == '!' && vx_globrel_meet(out.v[k] + 1, in.v[i]);
		if (o == out.n || given_back)
			continue;
		cfg_fail(c, field,
			"entry \"%.200s\" lies wholly in the task's own outputs (\"%.200s\"), which are never inputs",
			in.v[i], out.v[o]);
		return vx_err_fix(c->err, "remove the entry, or narrow the outputs");
	}
	return 0;
}

const char *cfg_taken(struct vx_strs out, const char *const *own, const char **ret_entry)
{
	for (; *own; own++) {
		bool given_back = false;
		for (uint32_t k = 0; k < out.n && !given_back; k++)
			given_back = *out.v[k] == '!' && vx_globrel_takes(out.v[k] + 1, *own);
		for (uint32_t o = 0; o < out.n && !given_back; o++) {
			if (*out.v[o] == '!' || !vx_globrel_takes(out.v[o], *own))
				continue;
			*ret_entry = out.v[o];
			return *own;
		}
	}
	return NULL;
}

/* Outputs are removed before the command runs. A set that takes a manifest or configuration of ours
 * would remove what nobody can have meant. */
static int check_own_files(const struct cfg *c, const char *field, struct vx_strs out,
	const char *const *own, const char *whose)
{
	const char *entry, *file = cfg_taken(out, own, &entry);

	if (!file)
		return 0;
	cfg_fail(c, field,
		"entry \"%.200s\" takes the %s's own %s, and outputs are removed before the command runs",
		entry, whose, file);
	return vx_err_fix(c->err, "name what the command makes, such as dist/**");
}

static int check_cache(const struct cfg *c, const struct vx_task_decl *t)
{
	static const char *const of_project[] = {"package.json", "vx.json", "vx.jsonc",
		"vx.config.ts", "vx.config.mts", "vx.config.cts", "vx.config.js", "vx.config.mjs",
		"vx.config.cjs", NULL};
	static const char *const of_root[] = {"package.json", "pnpm-workspace.yaml",
		"vx.workspace.json", "vx.workspace.jsonc", "vx.workspace.ts", "vx.workspace.mts",
		"vx.workspace.cts", "vx.workspace.js", "vx.workspace.mjs", "vx.workspace.cjs",
		NULL};
	const struct vx_cache_decl *d = &t->cache;
	int r = check_globs(c, "cache.inputs.files", d->files);

	if (r == 0)
		r = check_globs(c, "cache.inputs.workspaceFiles", d->workspace_files);
	if (r == 0)
		r = check_globs(c, "cache.outputs.files", d->out_files);
	if (r == 0)
		r = check_globs(c, "cache.outputs.workspaceFiles", d->out_workspace_files);
	if (r == 0 && only_negated(d->files)) {
		cfg_fail(c, "cache.inputs.files", "has only `!` entries, which select nothing");
		r = vx_err_fix(c->err, "put \"**\" in front for every other file of the project");
	}
	if (r == 0 && only_negated(d->workspace_files))
		r = cfg_fail(c, "cache.inputs.workspaceFiles",
			"has only `!` entries, which select nothing");
	if (r == 0 && only_negated(d->out_files))
		r = cfg_fail(
			c, "cache.outputs.files", "has only `!` entries, which select nothing");
	if (r == 0 && only_negated(d->out_workspace_files))
		r = cfg_fail(c, "cache.outputs.workspaceFiles",
			"has only `!` entries, which select nothing");
	if (r == 0)
		r = check_env(c, "cache.inputs.env", d->env);
	if (r == 0)
		r = check_own_files(c, "cache.outputs.files", d->out_files, of_project, "project");
	if (r == 0)
		r = check_own_files(c, "cache.outputs.workspaceFiles", d->out_workspace_files,
			of_root, "workspace");
	if (r == 0)
		r = check_taken_back(c, "cache.inputs.files", d->files, d->out_files);
	if (r == 0)
		r = check_taken_back(c, "cache.inputs.workspaceFiles", d->workspace_files,
			d->out_workspace_files);
	for (uint32_t i = 0; r == 0 && i < d->tasks.n; i++)
		r = no_tokens(c, "cache.inputs.tasks", d->tasks.v[i]);
	return r;
}

static int check_exec(const struct cfg *c, const struct vx_task_decl *t)
{
	const struct vx_exec_decl *e = &t->exec;
	int r = check_env(c, "exec.env.passThrough", e->pass_through);

	if (r == 0)
		r = check_env(c, "exec.env.secret", e->secret);
	for (uint32_t i = 0; r == 0 && i < e->n_define; i++)
		r = check_env_name(c, "exec.env.define", e->define[i].name);
	for (uint32_t i = 0; r == 0 && i < e->sandbox.read.n; i++)
		r = no_tokens(c, "exec.sandbox.allow.read", e->sandbox.read.v[i]);
	for (uint32_t i = 0; r == 0 && i < e->sandbox.write.n; i++)
		r = no_tokens(c, "exec.sandbox.allow.write", e->sandbox.write.v[i]);
	if (r == 0 && e->command &&
		(strstr(e->command, "{projectRoot}") || strstr(e->command, "{workspaceRoot}"))) {
		cfg_fail(c, "exec.command",
			"uses Nx's {projectRoot} or {workspaceRoot}, which mean nothing in a vx file");
		r = vx_err_fix(c->err,
			"the command runs in the project directory; write a path relative to it");
	}
	if (r == 0 && e->persistent && e->retries > 0)
		r = cfg_fail(c, "exec.retries", "cannot be given for a persistent task");
	return r;
}

int cfg_rules(const struct cfg *c, const struct vx_task_decl *t)
{
	int r = check_depends(c, t->depends_on);

	if (r == 0 && !t->has_exec && t->depends_on.n == 0) {
		r = cfg_fail(c, NULL, "the task has neither exec nor dependsOn");
		vx_err_fix(c->err,
			"give it a command in exec.command, or make it a group with dependsOn");
	}
	if (r == 0 && t->has_exec)
		r = check_exec(c, t);
	if (r == 0 && t->has_cache && !t->has_exec)
		r = cfg_fail(c, "cache",
			"cannot be given for a group: a task without exec makes nothing to keep");
	if (r == 0 && t->has_cache && t->exec.persistent)
		r = cfg_fail(c, "cache", "cannot be given for a persistent task");
	if (r == 0 && t->has_cache)
		r = check_cache(c, t);
	return r;
}
