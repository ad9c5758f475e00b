/* The filter grammar. docs/config.md, "Filters". */
#include "filter.h"

#include "vx/wsglob.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/changed.h"
#include "vx/err.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <errno.h>
#include <string.h>

/* One filter, taken apart. */
struct selector {
	const char *raw;
	bool exclude, dependencies, dependents, not_self;
	bool or_depends;        /* pkg...[ref]: those that changed or depend on one that did */
	const char *name, *tag; /* patterns; NULL when not given */
	bool has_dir;
	struct vx_wsglobs dir;
	const char *from, *to; /* [from] or [from...to]; NULL: no git part */
};

struct ctx {
	const struct vx_workspace *ws;
	const struct vx_select_opts *o;
	struct vx_arena *a;
	struct vx_err *err;
	uint32_t *rdeps, *rdeps_at; /* dependents, as one array with offsets */
	const char *nothing;        /* a git selection was empty: the line that says so */
	/* turbo: what the root depends on, a dependency of every project; NULL when there is
	 * none */
	bool *implied;
};

static int bad(struct ctx *x, const struct selector *s, const char *why)
{
	vx_err_set(x->err, -EINVAL, "the filter \"%.200s\" %s", s->raw, why);
	return vx_err_fix(x->err,
		"a filter is a name, {dir}, [ref], ./path or tag:name, with ... before or after it; see vx help run");
}

static int take_dir(struct ctx *x, struct selector *s, const char *dir)
{
	const char *below = vx_path_join(x->a, x->o->cwd ? x->o->cwd : ".", dir);

	if (*dir == '/') {
		below = vx_path_below(vx_path_norm(x->a, dir), x->ws->root);
		if (!below)
			return bad(x, s, "names a directory outside the workspace");
	}
	if (vx_starts_with(below, "../") || strcmp(below, "..") == 0)
		return bad(x, s, "names a directory outside the workspace");
	s->has_dir = true;
	return vx_wsglob_add(&s->dir, below, x->a, x->err);
}

static int take_git(struct ctx *x, struct selector *s, const char *ref)
{
	const char *dots = strstr(ref, "...");

	if (*ref == '\0' || (dots && (dots == ref || dots[3] == '\0')))
		return bad(x, s, "has an incomplete [ref]");
	s->from = dots ? vx_arena_strndup(x->a, ref, (size_t)(dots - ref)) : ref;
	s->to = dots ? dots + 3 : NULL;
	return 0;
}

/* name, {dir} and [ref], in that order. */
static int take_rest(struct ctx *x, struct selector *s, const char *rest)
{
	size_t n = strlen(rest);
	const char *open;
	int r = 0;

	if (n == 0)
		return bad(x, s, "selects nothing");
	if (rest[n - 1] == ']' && (open = strchr(rest, '['))) {
		r = take_git(x, s,
			vx_arena_strndup(x->a, open + 1, (size_t)(rest + n - 1 - (open + 1))));
		n = (size_t)(open - rest);
		if (n > 3 && strncmp(rest + n - 3, "...", 3) == 0) {
			s->or_depends = true;
			n -= 3;
		}
	}
	if (r == 0 && n && rest[n - 1] == '}' && (open = memchr(rest, '{', n))) {
		if (rest + n - 1 == open + 1)
			return bad(x, s, "has an empty {dir}");
		r = take_dir(x, s,
			vx_arena_strndup(x->a, open + 1, (size_t)(rest + n - 1 - (open + 1))));
		n = (size_t)(open - rest);
	}
	if (r < 0 || n == 0)
		return r;
	const char *name = vx_arena_strndup(x->a, rest, n);
	if (*name == '.' && !s->has_dir)
		return take_dir(x, s, name);
	if (vx_starts_with(name, "tag:"))
		s->tag = name + 4;
	else
		s->name = name;
	return 0;
}

static int parse(struct ctx *x, const char *raw, struct selector *s)
{
	*s = (struct selector){.raw = raw};
	const char *p = raw;
	if (*p == '!') {
		s->exclude = true;
		p++;
	}
	char *rest = vx_arena_strdup(x->a, p);
	size_t n = strlen(rest);
	if (n >= 3 && strcmp(rest + n - 3, "...") == 0) {
		s->dependencies = true;
		rest[n -= 3] = '\0';
		if (n && rest[n - 1] == '^') {
			s->not_self = true;
			rest[n - 1] = '\0';
		}
	}
	if (vx_starts_with(rest, "...")) {
		s->dependents = true;
		rest += 3;
		if (*rest == '^') {
			s->not_self = true;
			rest++;
		}
	}
	return take_rest(x, s, rest);
}

static void index_dependents(struct ctx *x)
{
	const struct vx_workspace *ws = x->ws;
	uint32_t n = ws->n_projects, edges = 0;
	uint32_t *at = vx_arena_array(x->a, (size_t)n + 2, sizeof *at);

	for (uint32_t p = 0; p < n; p++) {
		edges += ws->projects[p].n_deps;
		for (uint32_t i = 0; i < ws->projects[p].n_deps; i++)
			at[ws->projects[p].deps[i] + 2]++;
	}
	for (uint32_t p = 0; p < n; p++)
		at[p + 2] += at[p + 1];
	x->rdeps = vx_arena_array(x->a, edges ? edges : 1, sizeof *x->rdeps);
	for (uint32_t p = 0; p < n; p++)
		for (uint32_t i = 0; i < ws->projects[p].n_deps; i++)
			x->rdeps[at[ws->projects[p].deps[i] + 1]++] = p;
	x->rdeps_at = at;
}

/* Adds everything reachable from p (p itself left out) to `seen`. */
static void reach(const struct ctx *x, uint32_t p, bool up, bool *seen, uint32_t *stack)
{
	uint32_t depth = 0;
	bool *mine = vx_arena_array(x->a, x->ws->n_projects, sizeof *mine);

	stack[depth++] = p;
	mine[p] = true;
	while (depth) {
		uint32_t u = stack[--depth];
		const uint32_t *v = up ? x->rdeps + x->rdeps_at[u] : x->ws->projects[u].deps;
		uint32_t n = up ? x->rdeps_at[u + 1] - x->rdeps_at[u] : x->ws->projects[u].n_deps;
		for (uint32_t i = 0; i < n; i++)
			if (!mine[v[i]]) {
				mine[v[i]] = true;
				stack[depth++] = v[i];
			}
	}
	mine[p] = false;
	for (uint32_t q = 0; q < x->ws->n_projects; q++)
		seen[q] = seen[q] || mine[q];
}

/* Many starts at once: what the sources reach, the sources themselves left out unless another one
 * reaches them. */
static void reach_all(const struct ctx *x, const bool *from, bool up, bool *seen)
{
	uint32_t n = x->ws->n_projects, depth = 0, sources = 0, last = 0;
	uint32_t *stack = vx_arena_array(x->a, (size_t)n + 1, sizeof *stack);

	for (uint32_t p = 0; p < n; p++)
		if (from[p]) {
			sources++;
			last = p;
		}
	if (sources == 1) {
		reach(x, last, up, seen, stack);
		return;
	}
	for (uint32_t p = 0; p < n; p++)
		if (from[p])
			stack[depth++] = p;
	bool *entered = vx_arena_array(x->a, n ? n : 1, sizeof *entered);
	memcpy(entered, from, n * sizeof *entered);
	while (depth) {
		uint32_t u = stack[--depth];
		const uint32_t *v = up ? x->rdeps + x->rdeps_at[u] : x->ws->projects[u].deps;
		uint32_t k = up ? x->rdeps_at[u + 1] - x->rdeps_at[u] : x->ws->projects[u].n_deps;
		for (uint32_t i = 0; i < k; i++) {
			seen[v[i]] = true;
			if (!entered[v[i]]) {
				entered[v[i]] = true;
				stack[depth++] = v[i];
			}
		}
	}
}

/* Under turbo.json what the root package depends on counts as a dependency of every package; so a
 * dependent of such a one is every package. */
static void index_implied(struct ctx *x)
{
	const struct vx_workspace *ws = x->ws;
	uint32_t root = ws->root_project;

	if (!ws->settings.turbo || root == VX_MAP_NONE || ws->projects[root].n_deps == 0)
		return;
	x->implied = vx_arena_array(x->a, ws->n_projects, sizeof *x->implied);
	bool *from = vx_arena_array(x->a, ws->n_projects, sizeof *from);
	from[root] = true;
	reach_all(x, from, false, x->implied);
}

/* One start by itself is no dependency or dependent of its own, by whatever way it is reached. */
static void leave_out_single(const struct ctx *x, const bool *from, bool *seen)
{
	uint32_t sources = 0, last = 0;

	for (uint32_t p = 0; p < x->ws->n_projects; p++)
		if (from[p]) {
			sources++;
			last = p;
		}
	if (sources == 1)
		seen[last] = false;
}

static void add_dependencies(const struct ctx *x, const bool *from, bool *seen)
{
	reach_all(x, from, false, seen);
	for (uint32_t p = 0; x->implied && p < x->ws->n_projects; p++)
		seen[p] = seen[p] || x->implied[p];
	leave_out_single(x, from, seen);
}

static void add_dependents(const struct ctx *x, const bool *from, bool *seen)
{
	bool all = false;

	reach_all(x, from, true, seen);
	for (uint32_t p = 0; x->implied && p < x->ws->n_projects; p++)
		all = all || (from[p] && x->implied[p]);
	for (uint32_t p = 0; all && p < x->ws->n_projects; p++)
		seen[p] = seen[p] || (p != x->ws->root_project && !from[p]) || x->implied[p];
	leave_out_single(x, from, seen);
}

static bool is_root(const struct ctx *x, uint32_t p)
{
	return p == x->ws->root_project;
}

static bool selectable(const struct ctx *x, uint32_t p)
{
	return !is_root(x, p) || ((x->ws->projects[p].n_tasks > 0 || x->ws->projects[p].broken) &&
					 !x->ws->settings.turbo);
}

static bool tag_matches(const struct vx_project *p, const char *pattern)
{
	for (uint32_t i = 0; i < p->tags.n; i++)
		if (vx_name_matches(pattern, p->tags.v[i]))
			return true;
	return false;
}

static uint32_t match_names(struct ctx *x, const char *pattern, bool *hit)
{
	uint32_t n = 0;

	for (uint32_t p = 0; p < x->ws->n_projects; p++) {
		hit[p] = selectable(x, p) && vx_name_matches(pattern, x->ws->projects[p].name);
		n += hit[p];
	}
	if (strcmp(pattern, "//") == 0 && x->ws->root_project != VX_MAP_NONE &&
		!hit[x->ws->root_project]) {
		hit[x->ws->root_project] = true;
		n++;
	}
	if (n > 0 || *pattern == '@' || strchr(pattern, '/'))
		return n;
	/* Unscoped and unknown: the one scoped package of that name, if it is one. */
	const char *scoped = vx_arena_printf(x->a, "@*/%s", pattern);
	for (uint32_t p = 0; p < x->ws->n_projects; p++) {
		hit[p] = selectable(x, p) && vx_name_matches(scoped, x->ws->projects[p].name);
		n += hit[p];
	}
	if (n == 1)
		return 1;
	memset(hit, 0, x->ws->n_projects * sizeof *hit);
	return 0;
}

const char *vx_filter_list(struct vx_strs there, struct vx_arena *a)
{
	struct vx_buf b = VX_BUF(800);
	for (uint32_t i = 0; i < there.n; i++) {
		if (b.len > 400) {
			vx_buf_printf(&b, " and %u more", there.n - i);
			break;
		}
		vx_buf_printf(&b, "%s%.100s", i ? ", " : "", there.v[i]);
	}
	const char *list = vx_arena_strdup(a, vx_buf_str(&b));
	vx_buf_free(&b);
	return list;
}

const char *vx_filter_nearest(const char *asked, struct vx_strs there)
{
	const char *near = vx_nearest(asked, there);

	for (uint32_t i = 0; i < there.n && !near; i++) {
		const char *slash = *there.v[i] == '@' ? strchr(there.v[i], '/') : NULL,
			   *bare = slash ? slash + 1 : NULL;
		if (bare && (!strcmp(bare, asked) || vx_nearest(asked, (struct vx_strs){&bare, 1})))
			near = there.v[i];
	}
	return near;
}

static int nothing_matches(struct ctx *x, const struct selector *s)
{
	struct vx_strlist names = {0};

	vx_err_set(x->err, -ENOENT, "the filter \"%.200s\" matches no project", s->raw);
	if (s->has_dir && !s->name)
		return vx_err_fix(x->err,
			"paths are relative to the current directory, and * matches one level: use ** for all below");
	for (uint32_t p = 0; p < x->ws->n_projects; p++) {
		if (s->tag)
			for (uint32_t i = 0; i < x->ws->projects[p].tags.n; i++)
				vx_strlist_add(&names, x->a, x->ws->projects[p].tags.v[i]);
		else
			vx_strlist_add(&names, x->a, x->ws->projects[p].name);
	}
	vx_strlist_sort_unique(&names);
	struct vx_strs there = vx_strlist_done(&names);
	const char *near = vx_filter_nearest(s->tag ? s->tag : s->name, there);
	if (near)
		return vx_err_fix(x->err, "did you mean \"%s%s\"?", s->tag ? "tag:" : "", near);
	if (s->tag && !there.n)
		return vx_err_fix(x->err, "no project has a tag");
	return vx_err_fix(x->err, "there are %s: %s", s->tag ? "tags" : "projects",
		vx_filter_list(there, x->a));
}

/* Narrows `hit` to the projects that changed, or (pkg...[ref]) that depend on one that did. */
static int keep_changed(struct ctx *x, const struct selector *s, bool *hit)
{
	uint32_t n = x->ws->n_projects;
	bool *moved = vx_arena_array(x->a, n + 1, sizeof *moved),
	     *below = vx_arena_array(x->a, n + 1, sizeof *below);
	struct vx_changed c;
	int r = vx_changed_paths(x->ws, s->from, s->to, x->a, &c, x->err);

	const char *global = NULL;
	if (r == 0 && x->o->global)
		r = x->o->global(x->ws, c.paths, x->a, &global, x->err);
	if (r < 0)
		return r;
	c.everything |= global != NULL;
	for (uint32_t i = 0; i < c.paths.n && !c.everything; i++) {
		uint32_t p = vx_workspace_project_at(x->ws, c.paths.v[i]);
		if (p != VX_MAP_NONE)
			moved[p] = true;
	}
	for (uint32_t p = 0; p < n; p++)
		moved[p] = moved[p] || c.everything;
	if (s->or_depends)
		add_dependents(x, moved, below);
	uint32_t left = 0;
	for (uint32_t p = 0; p < n; p++) {
		hit[p] = hit[p] && (moved[p] || below[p]);
		left += hit[p];
	}
	if (!left)
		x->nothing = vx_arena_printf(x->a, "nothing affected since %s",
			s->to ? vx_arena_printf(x->a, "%s...%s", s->from, s->to) : s->from);
	return 0;
}

/* The projects that the selector itself names, before dependencies and dependents. */
static int match(struct ctx *x, const struct selector *s, bool *hit)
{
	uint32_t n = 0;

	if (s->name)
		match_names(x, s->name, hit);
	for (uint32_t p = 0; p < x->ws->n_projects; p++) {
		const struct vx_project *project = &x->ws->projects[p];
		if (!s->name)
			hit[p] = selectable(x, p);
		if (hit[p] && s->tag && vx_workspace_need(x->ws, p, x->err) < 0)
			return project->broken->code;
		if (hit[p] && s->tag)
			hit[p] = tag_matches(project, s->tag);
		if (hit[p] && s->has_dir)
			hit[p] = vx_wsglobs_match(&s->dir, project->dir, true);
		n += hit[p];
	}
	if (!n)
		return nothing_matches(x, s);
	return s->from ? keep_changed(x, s, hit) : 0;
}

static int apply(struct ctx *x, const struct selector *s, bool *out)
{
	uint32_t n = x->ws->n_projects;
	bool *hit = vx_arena_array(x->a, n + 1, sizeof *hit),
	     *deps = vx_arena_array(x->a, n + 1, sizeof *deps);
	bool *ups = vx_arena_array(x->a, n + 1, sizeof *ups);
	int r = match(x, s, hit);

	if (r < 0)
		return r;
	if (s->dependencies)
		add_dependencies(x, hit, deps);
	if (s->dependents) {
		add_dependents(x, hit, ups);
		if (s->dependencies)
			add_dependencies(x, ups, deps);
	}
	for (uint32_t p = 0; p < n; p++)
		if ((hit[p] && !s->not_self) ||
			((deps[p] || ups[p]) && (selectable(x, p) || hit[p])))
			out[p] = true;
	return 0;
}

int vx_filter_select(const struct vx_workspace *ws, const struct vx_select_opts *o,
	struct vx_arena *a, bool *chosen, const char **ret_nothing, struct vx_err *err)
{
	struct ctx x = {.ws = ws, .o = o, .a = a, .err = err};
	uint32_t n = ws->n_projects, count = 0;
	bool *excluded = vx_arena_array(a, n + 1, sizeof *excluded), included = false;

	index_dependents(&x);
	index_implied(&x);
	for (uint32_t i = 0; i < o->filters.n; i++) {
		struct selector s;
		int r = parse(&x, o->filters.v[i], &s);
		if (r == 0)
			r = apply(&x, &s, s.exclude ? excluded : chosen);
		if (r < 0)
			return r;
		included = included || !s.exclude;
	}
	for (uint32_t p = 0; p < n; p++) {
		chosen[p] = (included ? chosen[p] : selectable(&x, p)) && !excluded[p];
		count += chosen[p];
	}
	if (count == 0 && x.nothing) {
		*ret_nothing = x.nothing;
	} else if (count == 0) {
		vx_err_set(err, -ENOENT, "the filters select no project");
		return vx_err_fix(err, "what one of them selects, another one excludes");
	}
	return 0;
}
