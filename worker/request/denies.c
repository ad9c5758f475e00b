/* Mandatory denies: the names, and what is bound read-only before the attempt. */
#include "denies.h"
#include "resolve.h"

#include "vx/assert.h"
#include "vx/limits.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* `*` and `?` stay inside a component, `**` is any number of components; what lies below a match
 * counts as matched. */
static bool path_match(const char *pattern, const char *path)
{
	while (*pattern == '/')
		pattern++;
	while (*path == '/')
		path++;
	if (!*pattern)
		return true;
	size_t n = strcspn(pattern, "/"), k = strcspn(path, "/");
	char part[NAME_MAX + 2], name[NAME_MAX + 2];

	if (n == 2 && pattern[0] == '*' && pattern[1] == '*')
		return path_match(pattern + n, path) || (*path && path_match(pattern, path + k));
	if (!*path || n >= sizeof part || k >= sizeof name)
		return false;
	memcpy(part, pattern, n);
	memcpy(name, path, k);
	part[n] = name[k] = '\0';
	return sbx_glob_match(part, name) && path_match(pattern + n, path + k);
}

static bool is_allowed(const struct deny_rules *r, const char *dir, const char *name)
{
	char path[2 * VX_MAX_PATH];

	if (!r->allowed.n)
		return false;
	int n = snprintf(path, sizeof path, "%s/%s", dir, name);
	for (uint32_t i = 0; n < (int)sizeof path && i < r->allowed.n; i++)
		if (path_match(r->allowed.v[i], path))
			return true;
	return false;
}

/* The root of the workspace, a member, or what the patterns would make one. */
static bool has_scripts(const struct deny_rules *r, const char *dir)
{
	const char *rel = r->root ? vx_path_below(dir, r->root) : NULL;

	return rel && (!*rel || vx_wsglob_member(r->members, r->no_members, rel));
}

struct deny_dir deny_dir(const struct deny_rules *r, const char *path)
{
	return (struct deny_dir){.path = path,
		.in_modules = strstr(path, "/node_modules/") || vx_ends_with(path, "/node_modules"),
		.member = has_scripts(r, path)};
}

enum deny_verdict deny_judge(const struct deny_rules *r, const struct deny_dir *d, const char *name,
	enum vx_fact_type type)
{
	const char *parent = vx_path_base(d->path);
	size_t parent_len = strlen(parent);
	bool denied = false, dir = type == VX_FACT_DIR;

	switch (vx_protect(parent, parent_len, name, strlen(name))) {
	case VX_PROTECT_ANYWHERE:
		denied = !d->in_modules;
		break;
	case VX_PROTECT_MANIFEST:
		denied = d->member;
		break;
	case VX_PROTECT_GIT:
		denied = !dir;
		break;
	case VX_PROTECT_IN_GIT:
		denied = true;
		break;
	case VX_PROTECT_GIT_CONFIG:
		denied = !r->git_config;
		break;
	case VX_PROTECT_NO:
		break;
	}
	if (denied)
		return is_allowed(r, d->path, name) ? DENY_NO : DENY_IT;
	/* nothing else below a .git is anybody's business */
	if (!dir || vx_protect_same(parent, parent_len, ".git") || is_allowed(r, d->path, name))
		return DENY_NO;
	return DENY_ENTER;
}

const char *deny_name_in(
	const struct deny_rules *r, struct vx_arena *a, const char *path, const char *base)
{
	const char *rel = vx_path_below(path, base), *dir = base;

	for (; rel && *rel; rel += strcspn(rel, "/"), rel += *rel == '/') {
		const char *name = vx_arena_strndup(a, rel, strcspn(rel, "/"));
		struct deny_dir d = deny_dir(r, dir);
		/* what is below is what is granted: a directory on the way */
		enum deny_verdict v = deny_judge(r, &d, name, VX_FACT_DIR);
		if (v == DENY_IT)
			return vx_path_below(vx_path_join(a, dir, name), base);
		if (is_allowed(r, dir, name))
			return NULL;
		dir = vx_path_join(a, dir, name);
	}
	return NULL;
}

static bool keep(struct deny_search *s, const char *name, enum vx_fact_type type)
{
	*SBX_PUSH(s, s->v, s->n, s->cap) =
		(struct denied){vx_path_join(s->a, s->dir.path, name), type};
	return false;
}

/* A NULL name: `dir` is the directory at hand from now on. */
bool deny_look(void *search, const char *dir, const char *name, enum vx_fact_type type)
{
	struct deny_search *s = search;

	if (!name) {
		s->dir = deny_dir(s->rules, dir);
		return true;
	}
	enum deny_verdict v = deny_judge(s->rules, &s->dir, name, type);
	return v == DENY_IT ? keep(s, name, type) : v == DENY_ENTER;
}

static int refuse_link(struct sbx_work *w, const char *path, const char *grant)
{
	vx_err_set(w->err, -EPERM,
		"sandbox: allow.write \"%s\" holds %s, which no task may change and which is a symbolic link: a link cannot be protected",
		grant, path);
	return vx_err_fix(w->err,
		"replace the link by what it names, grant a narrower directory, or name it in allow.protected");
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

struct deny_rules sbx_deny_rules(const struct sbx_work *w)
{
	return (struct deny_rules){.root = w->s->root,
		.git_config = w->s->decl.git_config,
		.members = &w->members,
		.no_members = &w->no_members,
		.allowed = {w->protect.v, w->protect.n}};
}

/* allow.protected: canonical up to the first wildcard. */
int sbx_find_protected(struct sbx_work *w)
{
	struct vx_strs v = w->s->decl.protect;
	int r = 0;

	for (uint32_t i = 0; i < v.n && r == 0; i++) {
		struct sbx_grant g = {0};
		struct sbx_place p = {0};
		uint32_t before = w->n_skeleton;

		r = sbx_parse_grant(w, "allow.protected", v.v[i], &g);
		/* the name itself may be a link: where it stands counts, not where it leads */
		if (r == 0)
			r = sbx_follow(w, g.pattern ? g.lexical : vx_path_dir(w->a, g.lexical), &p);
		if (r == 0)
			r = sbx_refuse_task_link(w, "allow.protected", v.v[i], &p);
		w->n_skeleton = before;
		if (r == 0)
			vx_strlist_add(&w->protect, w->a,
				vx_arena_printf(w->a, "%s/%s", p.path,
					g.pattern ? g.pattern : vx_path_base(g.lexical)));
	}
	return r;
}

/* One write grant: what is there of those names is bound read-only; after the attempt the grant is
 * looked through again. */
int sbx_denies(struct sbx_work *w, const struct sbx_bind *b)
{
	struct deny_rules rules = sbx_deny_rules(w);
	struct deny_search s = {.a = w->a, .rules = &rules};

	if (!b->is_dir)
		return 0;
	int r = w->f->walk(w->f->self, b->path, deny_look, &s);
	if (r < 0) {
		vx_err_set(w->err, r,
			"sandbox: allow.write \"%s\": not all of %s can be looked through for what no task may change: %s",
			b->grant, b->path,
			r == -EFBIG ? "it holds more than VX_MAX_FILES"
			: r == -ELOOP
				? "it is deeper than DENY_MAX_DEPTH, or has longer paths than VX_MAX_PATH"
				: vx_strerror(r));
		return vx_err_fix(w->err,
			r == -EACCES  ? "make its directories readable: chmod -R u+rX %s"
			: r == -ELOOP ? "remove what is so deep: rm -rf %s"
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
