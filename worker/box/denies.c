/* Mandatory denies: the names, and what is bound read-only before the attempt. */
#include "denies.h"
#include "resolve.h"

#include "vx/assert.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char *const anywhere[] = {
	".bashrc", ".zshrc", ".profile", ".gitconfig", ".mcp.json", ".vscode", ".idea"};
/* Inside a .git (gitrepository-layout(5)): `commondir` would lead git to another config, `modules`
 * and `worktrees` hold configs and hooks of their own. */
static const char *const in_git[] = {
	"config", "config.worktree", "hooks", "commondir", "modules", "worktrees"};
enum { GIT_CONFIGS = 2 }; /* the first two: what gitConfig permits */

static bool is_in_git(const char *name, size_t n, bool git_config)
{
	for (size_t i = git_config ? GIT_CONFIGS : 0; i < VX_ARRAY_LEN(in_git); i++)
		if (strlen(in_git[i]) == n && !memcmp(in_git[i], name, n))
			return true;
	return false;
}

const char *deny_name_in(const char *path, const char *base, bool git_config)
{
	const char *rel = vx_path_below(path, base);
	bool git = false;

	for (; rel && *rel; rel += strcspn(rel, "/"), rel += *rel == '/') {
		size_t n = strcspn(rel, "/");
		for (size_t i = 0; i < VX_ARRAY_LEN(anywhere); i++)
			if (strlen(anywhere[i]) == n && !memcmp(anywhere[i], rel, n))
				return anywhere[i];
		if (git && is_in_git(rel, n, git_config))
			return rel - strlen(".git/");
		git = n == strlen(".git") && !memcmp(rel, ".git", n);
	}
	return NULL;
}

static void enter(struct deny_search *s, const char *dir)
{
	s->dir = dir;
	s->in_git = vx_streq(vx_path_base(dir), ".git");
	s->in_modules = strstr(dir, "/node_modules/") || vx_ends_with(dir, "/node_modules");
}

static bool keep(struct deny_search *s, const char *name, enum vx_fact_type type)
{
	*SBX_PUSH(s, s->v, s->n, s->cap) = (struct denied){vx_path_join(s->a, s->dir, name), type};
	return false;
}

bool deny_look(void *search, const char *dir, const char *name, enum vx_fact_type type)
{
	struct deny_search *s = search;

	if (s->dir != dir)
		enter(s, dir);
	if (s->in_git) /* nothing else below it is anybody's business */
		return is_in_git(name, strlen(name), s->git_config) ? keep(s, name, type) : false;
	if (name[0] != '.')
		return type == VX_FACT_DIR;
	if (vx_streq(name, ".git")) /* one that is no directory decides where git looks */
		return type == VX_FACT_DIR ? true : keep(s, name, type);
	for (size_t i = 0; i < VX_ARRAY_LEN(anywhere) && !s->in_modules; i++)
		if (vx_streq(anywhere[i], name))
			return keep(s, name, type);
	return type == VX_FACT_DIR;
}

static int refuse_link(struct sbx_work *w, const char *path, const char *grant)
{
	vx_err_set(w->err, -EPERM,
		"sandbox: allow.write \"%s\" holds %s, which no task may change and which is a symbolic link: a link cannot be protected",
		grant, path);
	return vx_err_fix(
		w->err, "replace the link by what it names, or grant a narrower directory");
}

/* Every directory between grant and bind is bound on itself, once: a mount point cannot be
 * renamed. */
static int bind_between(struct sbx_work *w, const struct sbx_bind *b, const char *path)
{
	const char *rest = vx_path_below(path, b->path), *slash = rest ? strchr(rest, '/') : NULL;

	for (; slash; slash = strchr(slash + 1, '/')) {
		const char *at = vx_arena_strndup(w->a, path, (size_t)(slash - path));
		if (vx_map_puts(&w->bound_dirs, at, 0))
			sbx_mount(w, VX_MNT_BIND, VX_WHY_DENY, at, b->grant, true, true);
		if (w->n_mounts > VX_MAX_MOUNTS)
			return vx_err_set(w->err, -E2BIG,
				"sandbox: allow.write \"%s\" holds more that no task may change than VX_MAX_MOUNTS (%u)",
				b->grant, VX_MAX_MOUNTS);
	}
	return 0;
}

static int by_path(const void *a, const void *b)
{
	return sbx_path_order(((const struct denied *)a)->path, ((const struct denied *)b)->path);
}

/* One write grant: what is there of those names is bound read-only; after the attempt the grant is
 * looked through again. */
int sbx_denies(struct sbx_work *w, const struct sbx_bind *b)
{
	struct deny_search s = {.a = w->a, .git_config = w->s->decl.git_config};

	if (!b->is_dir)
		return 0;
	int r = w->f->walk(w->f->self, b->path, deny_look, &s);
	if (r < 0) {
		vx_err_set(w->err, r,
			"sandbox: allow.write \"%s\": not all of %s can be looked through for what no task may change: %s",
			b->grant, b->path,
			r == -EFBIG ? "it holds more than VX_MAX_FILES" : vx_strerror(r));
		return vx_err_fix(w->err,
			r == -EACCES ? "make its directories readable: chmod -R u+rX %s"
				     : "grant a narrower directory",
			b->path);
	}
	vx_strlist_add(&w->deny_in, w->a, b->path);
	if (s.n)
		qsort(s.v, s.n, sizeof *s.v, by_path);
	for (uint32_t i = 0; i < s.n && r == 0; i++) {
		if (s.v[i].type == VX_FACT_LINK)
			return refuse_link(w, s.v[i].path, b->grant);
		r = bind_between(w, b, s.v[i].path);
		sbx_mount(w, VX_MNT_BIND, VX_WHY_DENY, s.v[i].path, b->grant, false,
			s.v[i].type == VX_FACT_DIR);
		vx_strlist_add(&w->deny_known, w->a, s.v[i].path);
	}
	return r;
}
