#include "vx/changed.h"

#include "../git/git.h"
#include "treediff.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MAX_GIT_BYTES (1U << 20) /* a revision, an id, what git complains of */

struct git {
	const struct vx_workspace *ws;
	struct vx_arena *a;
	struct vx_err *err;
	struct vx_git program;
	struct vx_buf out, errout;
};

/* Runs git with the NULL-terminated arguments; out and errout hold what it printed. Returns its
 * exit status or -errno (err is set then). */
static int git(struct git *g, const char *const *args)
{
	int status = 0;

	vx_buf_clear(&g->out);
	vx_buf_clear(&g->errout);
	int r = vx_git_run(&g->program, g->ws->root, args, &g->out, &g->errout, &status, g->err);
	return r < 0 ? r : status;
}

/* What git said, as one line. */
static const char *complaint(struct git *g)
{
	const char *s = vx_buf_str(&g->errout);

	if (vx_starts_with(s, "fatal: "))
		s += strlen("fatal: ");
	size_t n = strcspn(s, "\n");
	return n ? vx_arena_strndup(g->a, s, n > 300 ? 300 : n) : "no reason given";
}

/* HEAD cannot be had. Either there is no commit, or git will not look: then its own reason is
 * passed on, since "no repository" would send people the wrong way. */
static int no_head(struct git *g)
{
	const char *said = vx_buf_str(&g->errout);

	if (!*said || strstr(said, "not a git repository")) {
		vx_err_set(g->err, -ENOENT, "%s is not in a git repository that has a commit",
			g->ws->root);
		return vx_err_fix(g->err, "selecting by what changed needs git history");
	}
	vx_err_set(g->err, -EPERM, "git refuses to work in %s: %s", g->ws->root, complaint(g));
	if (!strstr(said, "safe.directory"))
		return vx_err_fix(g->err, "make `git status` work there");
	return vx_err_fix(g->err,
		"give its files to the user who runs vx, or tell git that the directory is safe: git config --global --add safe.directory DIRECTORY");
}

static const char *first_line(struct git *g)
{
	const char *s = vx_buf_str(&g->out);

	return vx_arena_strndup(g->a, s, strcspn(s, "\n"));
}

/* The commit that a revision names; NULL when there is none. A negative *ret_err is an error that
 * is set. */
static const char *commit_of(struct git *g, const char *rev, int *ret_err)
{
	/* "--end-of-options": a revision never becomes an option. */
	const char *spec = vx_arena_printf(g->a, "%s^{commit}", rev);
	int r = git(g, (const char *const[]){
			       "rev-parse", "--verify", "--quiet", "--end-of-options", spec, NULL});

	*ret_err = r < 0 ? r : 0;
	return r == 0 ? first_line(g) : NULL;
}

static bool is_shallow(struct git *g)
{
	return git(g, (const char *const[]){"rev-parse", "--is-shallow-repository", NULL}) == 0 &&
	       strcmp(first_line(g), "true") == 0;
}

/* Says what to do where a commit is missing: in a shallow clone it was never fetched. */
static int missing(struct git *g, const char *rev)
{
	if (!is_shallow(g)) {
		vx_err_set(g->err, -ENOENT, "git knows no revision \"%.200s\"", rev);
		return vx_err_fix(g->err,
			"git branch -a lists branches; git fetch gets the ones of the remote");
	}
	vx_err_set(g->err, -ENOENT,
		"this is a shallow clone, and \"%.200s\" or the history that joins it to HEAD is not in it",
		rev);
	return vx_err_fix(g->err,
		"fetch it with: git fetch --unshallow, or in CI check out with fetch-depth: 0");
}

/* In a workflow of GitHub for a pull request: the branch that it is to be merged into. Its checkout
 * has that as a branch of the remote; one of its own by that name may be old. */
static int pull_request_base(
	struct git *g, const char *branch, const char **ret_name, const char **ret_commit)
{
	int r;

	*ret_name = vx_arena_printf(g->a, "origin/%s", branch);
	*ret_commit = commit_of(g, *ret_name, &r);
	if (r < 0 || *ret_commit)
		return r;
	*ret_commit = commit_of(g, branch, &r);
	if (r < 0 || !*ret_commit)
		return r < 0 ? r : missing(g, *ret_name);
	*ret_name = vx_arena_strdup(g->a, branch);
	return 0;
}

/* The base that --affected takes when nobody named one. */
static int find_base(
	struct git *g, const char *head, const char **ret_name, const char **ret_commit)
{
	static const char *const tries[] = {
		"origin/HEAD", "origin/main", "origin/master", "main", "master"};
	const char *env = getenv("TURBO_SCM_BASE"), *branch = getenv("GITHUB_BASE_REF");
	int r;

	if (g->ws->settings.affected_base || (env && *env)) {
		*ret_name = g->ws->settings.affected_base ? g->ws->settings.affected_base
							  : vx_arena_strdup(g->a, env);
		*ret_commit = commit_of(g, *ret_name, &r);
		return r < 0 ? r : *ret_commit ? 0 : missing(g, *ret_name);
	}
	if (branch && *branch)
		return pull_request_base(g, branch, ret_name, ret_commit);
	for (size_t i = 0; i < sizeof tries / sizeof *tries; i++) {
		const char *c = commit_of(g, tries[i], &r);
		if (r < 0)
			return r;
		if (c && strcmp(c, head) != 0) {
			*ret_name = tries[i];
			*ret_commit = c;
			return 0;
		}
	}
	*ret_name = "HEAD~1";
	*ret_commit = commit_of(g, "HEAD~1", &r);
	if (r < 0 || *ret_commit)
		return r;
	if (is_shallow(g))
		return missing(g, "HEAD~1");
	vx_err_set(
		g->err, -ENOENT, "there is no commit to compare with: the repository has only one");
	return vx_err_fix(g->err, "name a base: --affected=REVISION");
}

static int merge_base(struct git *g, const char *a_commit, const char *b_commit, const char *name,
	const char **ret)
{
	int r = git(g, (const char *const[]){"merge-base", a_commit, b_commit, NULL});

	if (r < 0)
		return r;
	if (r == 0) {
		*ret = first_line(g);
		return 0;
	}
	if (is_shallow(g))
		return missing(g, name);
	*ret = a_commit; /* unrelated histories: the commit itself */
	return 0;
}

static bool in_list(const char *const *names, const char *path)
{
	for (; *names; names++)
		if (strcmp(*names, path) == 0)
			return true;
	return false;
}

bool vx_changed_concerns_all(const struct vx_workspace *ws, const char *path)
{
	static const char *const always[] = {"pnpm-lock.yaml", "package-lock.json",
		"npm-shrinkwrap.json", "yarn.lock", "bun.lock", "bun.lockb", "pnpm-workspace.yaml",
		".yarnrc.yml", ".npmrc", "bunfig.toml", "vx.workspace.json", "vx.workspace.jsonc",
		"vx.workspace.ts", "vx.workspace.mts", "vx.workspace.cts", "vx.workspace.js",
		"vx.workspace.mjs", "vx.workspace.cjs", NULL};
	static const char *const turbo[] = {"turbo.json", "turbo.jsonc", "package.json", NULL};

	if (strchr(path, '/'))
		return false;
	return in_list(always, path) || (ws->settings.turbo && in_list(turbo, path));
}

/* The commits that are compared. */
static int resolve(struct git *g, const char *from, const char *to, const char **ret_since,
	const char **ret_base, const char **ret_end)
{
	const char *base = NULL, *head, *end;
	int r;

	head = commit_of(g, "HEAD", &r);
	if (r < 0)
		return r;
	if (!head)
		return no_head(g);
	end = to ? commit_of(g, to, &r) : head;
	if (r < 0 || !end)
		return r < 0 ? r : missing(g, to);
	if (from) {
		*ret_since = from;
		base = commit_of(g, from, &r);
		if (r < 0 || !base)
			return r < 0 ? r : missing(g, from);
	} else {
		r = find_base(g, head, ret_since, &base);
		if (r < 0)
			return r;
	}
	*ret_end = end;
	return merge_base(g, base, end, *ret_since, ret_base);
}

static int changed(struct git *g, const char *from, const char *to, struct vx_changed *ret)
{
	const char *base, *end;
	struct vx_strlist paths = {0};
	int r = resolve(g, from, to, &ret->since, &base, &end);

	if (r == 0)
		r = vx_treediff(
			&g->program, g->ws->root, base, to ? end : NULL, g->a, &paths, g->err);
	if (r < 0)
		return r;
	vx_strlist_sort_unique(&paths);
	ret->paths = vx_strlist_done(&paths);
	for (uint32_t i = 0; i < paths.n && !ret->everything; i++)
		if (vx_changed_concerns_all(g->ws, paths.v[i])) {
			ret->everything = true;
			ret->everything_path = paths.v[i];
		}
	return 0;
}

static int begin(
	struct git *g, const struct vx_workspace *ws, struct vx_arena *a, struct vx_err *err)
{
	*g = (struct git){.ws = ws,
		.a = a,
		.err = err,
		.out = VX_BUF(MAX_GIT_BYTES),
		.errout = VX_BUF(65536)};
	return vx_git_find(ws->root, a, &g->program, err);
}

static void end(struct git *g)
{
	vx_buf_free(&g->out);
	vx_buf_free(&g->errout);
}

int vx_changed_base(const struct vx_workspace *ws, const char *from, struct vx_arena *a,
	const char **ret_since, const char **ret_commit, struct vx_err *err)
{
	struct git g;
	const char *head;
	int r = begin(&g, ws, a, err);

	if (r == 0)
		r = resolve(&g, from, NULL, ret_since, ret_commit, &head);
	end(&g);
	return r;
}

int vx_changed_paths(const struct vx_workspace *ws, const char *from, const char *to,
	struct vx_arena *a, struct vx_changed *ret, struct vx_err *err)
{
	struct git g;
	struct vx_changed c = {0};
	int r = begin(&g, ws, a, err);

	if (r == 0)
		r = changed(&g, from, to, &c);
	end(&g);
	if (r == 0)
		*ret = c;
	return r;
}
