/* Package edges: which entries of a manifest the package manager links to a package of the
 * workspace. docs/config.md, "Package edges". */
#include "edges.h"

#include "semver.h"

#include "vx/arena.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <stdlib.h>
#include <string.h>

struct maker {
	struct vx_workspace *ws;
	const struct vx_edge_rules *rules;
	struct vx_arena *keep, *scratch;
	struct vx_map catalog; /* "catalog\nname" -> entry */
};

static uint32_t at_path(const struct maker *m, const struct vx_project *from, const char *path)
{
	if (*path == '/') {
		path = vx_path_below(vx_path_norm(m->scratch, path), m->ws->root);
		return path ? vx_map_gets(&m->ws->by_dir, *path ? path : ".") : VX_MAP_NONE;
	}
	return vx_map_gets(&m->ws->by_dir, vx_path_join(m->scratch, from->dir, path));
}

static uint32_t named(const struct maker *m, const char *name)
{
	return strcmp(name, "//") == 0 ? VX_MAP_NONE : vx_map_gets(&m->ws->by_name, name);
}

/* "name@range": the part before the last '@' that is not the scope's. NULL when there is none. */
static const char *alias_name(const struct maker *m, const char *s, const char **ret_range)
{
	const char *at = *s ? strrchr(s + 1, '@') : NULL;

	if (!at)
		return NULL;
	*ret_range = at + 1;
	return vx_arena_strndup(m->scratch, s, (size_t)(at - s));
}

static bool is_path(const char *s)
{
	return vx_starts_with(s, "./") || vx_starts_with(s, "../") || *s == '/' ||
	       strcmp(s, ".") == 0 || strcmp(s, "..") == 0;
}

/* A range against the local version. A manifest without a version, or a tag instead of a range,
 * cannot be checked: what is there locally is then taken, since a missing edge would mean a stale
 * result and one too many only an early start of nothing. */
static bool satisfied(const struct vx_project *target, const char *range)
{
	while (*range == ' ')
		range++;
	if (*range == '\0' || strcmp(range, "*") == 0 || !target->version ||
		!vx_semver_is_version(target->version) || !vx_semver_is_range(range))
		return true;
	return vx_semver_satisfies(target->version, range);
}

static uint32_t workspace_protocol(
	const struct maker *m, const struct vx_project *from, const char *name, const char *rest)
{
	const char *range;

	if (is_path(rest))
		return at_path(m, from, rest);
	const char *alias = alias_name(m, rest, &range);
	if (alias)
		return named(m, alias);
	uint32_t p = named(m, name);
	if (p == VX_MAP_NONE && *rest && !vx_semver_is_range(rest) && strcmp(rest, "^") != 0 &&
		strcmp(rest, "~") != 0)
		p = at_path(m, from, rest); /* Yarn: workspace:packages/x is a path from the root */
	if (p == VX_MAP_NONE && *rest)
		p = vx_map_gets(&m->ws->by_dir, vx_path_norm(m->scratch, rest));
	return p;
}

static uint32_t plain_range(const struct maker *m, const char *name, const char *range)
{
	if (!m->rules->link_ranges || strchr(range, ':') || strchr(range, '/'))
		return VX_MAP_NONE;
	uint32_t p = named(m, name);
	return p != VX_MAP_NONE && satisfied(&m->ws->projects[p], range) ? p : VX_MAP_NONE;
}

static uint32_t npm_protocol(const struct maker *m, const char *name, const char *rest)
{
	const char *range, *alias = alias_name(m, rest, &range);

	if (!alias && *rest != '@' && vx_semver_is_range(rest))
		return plain_range(m, name, rest);
	if (!alias) {
		alias = rest;
		range = "*";
	}
	/* An alias of its own name is none. */
	return m->rules->alias_links || strcmp(alias, name) == 0 ? plain_range(m, alias, range)
								 : VX_MAP_NONE;
}

static const char *from_catalog(const struct maker *m, const char *name, const char *catalog)
{
	const char *key =
		vx_arena_printf(m->scratch, "%s\n%s", *catalog ? catalog : "default", name);
	uint32_t i = vx_map_gets(&m->catalog, key);

	return i == VX_MAP_NONE ? NULL : m->rules->catalogs[i].spec;
}

static uint32_t target_of(
	const struct maker *m, const struct vx_project *from, const struct vx_dep_spec *d)
{
	const char *s = d->spec;

	while (*s == ' ')
		s++;
	if (vx_starts_with(s, "catalog:")) {
		s = from_catalog(m, d->name, s + 8);
		if (!s)
			return VX_MAP_NONE;
	}
	if (vx_starts_with(s, "workspace:"))
		return workspace_protocol(m, from, d->name, s + 10);
	if (vx_starts_with(s, "link:"))
		return at_path(m, from, s + 5);
	if (vx_starts_with(s, "file:"))
		return at_path(m, from, s + 5 + (vx_starts_with(s + 5, "//") ? 2 : 0));
	if (vx_starts_with(s, "portal:"))
		return at_path(m, from, s + 7);
	if (is_path(s))
		return at_path(m, from, s);
	if (vx_starts_with(s, "npm:"))
		return npm_protocol(m, d->name, s + 4);
	return plain_range(m, d->name, s);
}

/* A Turborepo repository keeps the edges that Turborepo draws, which are not quite what package
 * managers link. Where ranges are not linked nothing but `workspace:` counts; else a path counts
 * whatever it leads to, and what is no range at all; an alias counts for `*`, `^` and `~` alone;
 * and a package without a version satisfies nothing but `*`. */
static uint32_t target_as_turbo(
	const struct maker *m, const struct vx_project *from, const struct vx_dep_spec *d)
{
	const char *s = d->spec, *range;

	while (*s == ' ')
		s++;
	if (vx_starts_with(s, "catalog:") &&
		(m->ws->kind != VX_WS_PNPM || !(s = from_catalog(m, d->name, s + 8))))
		return VX_MAP_NONE; /* it knows no catalogs but those of pnpm */
	if (vx_starts_with(s, "workspace:")) {
		const char *alias = is_path(s + 10) ? NULL : alias_name(m, s + 10, &range);
		if (alias)
			return vx_streq(range, "*") || vx_streq(range, "^") || vx_streq(range, "~")
				       ? named(m, alias)
				       : VX_MAP_NONE;
		return workspace_protocol(m, from, d->name, s + 10);
	}
	uint32_t p = named(m, d->name);
	if (p == VX_MAP_NONE || !m->rules->link_ranges)
		return VX_MAP_NONE;
	if (vx_starts_with(s, "link:") || vx_starts_with(s, "file:"))
		return p;
	bool npm = vx_starts_with(s, "npm:");
	s += npm ? 4 : 0;
	if (strchr(s, ':') ||
		(npm && *s && strchr(s + 1, '@'))) /* an alias with a range; without one it is no
						      range at all, and counts */
		return VX_MAP_NONE;
	return m->ws->projects[p].version ? (satisfied(&m->ws->projects[p], s) ? p : VX_MAP_NONE)
	       : vx_streq(s, "*")         ? p
					  : VX_MAP_NONE;
}

struct edge_list {
	uint32_t *v;
	uint32_t n, cap;
};

static void push(struct edge_list *l, struct vx_arena *a, uint32_t x)
{
	if (l->n == l->cap) {
		l->cap = l->cap ? l->cap * 2 : 8;
		uint32_t *v = vx_arena_array(a, l->cap, sizeof *v);
		if (l->n)
			memcpy(v, l->v, l->n * sizeof *v);
		l->v = v;
	}
	l->v[l->n++] = x;
}

static bool has(const struct edge_list *l, uint32_t x)
{
	for (uint32_t i = 0; i < l->n; i++)
		if (l->v[i] == x)
			return true;
	return false;
}

/* Positions in a dependencies-first order, by an iterative depth-first walk. An edge from a higher
 * to a lower position cannot close a cycle as long as all edges agree with the order; *ret_acyclic
 * tells. */
static void order(const struct edge_list *e, uint32_t n, uint32_t *pos, uint32_t *stack,
	uint32_t *next, bool *ret_acyclic)
{
	uint32_t placed = 0;

	*ret_acyclic = true;
	memset(pos, 0xff, n * sizeof *pos);
	memset(next, 0xff, n * sizeof *next);
	for (uint32_t r = 0; r < n; r++) {
		uint32_t depth = 0;
		if (next[r] != UINT32_MAX)
			continue;
		stack[depth++] = r;
		next[r] = 0;
		while (depth) {
			uint32_t u = stack[depth - 1];
			if (next[u] == e[u].n) {
				pos[u] = placed++;
				depth--;
				continue;
			}
			uint32_t v = e[u].v[next[u]++];
			if (next[v] == UINT32_MAX) {
				next[v] = 0;
				stack[depth++] = v;
			} else if (pos[v] == UINT32_MAX) {
				*ret_acyclic = false;
			}
		}
	}
}

/* Does `from` lead to `to`? Nodes placed below `floor` cannot (when the order is sound). */
static bool reaches(const struct edge_list *e, uint32_t from, uint32_t to, const uint32_t *pos,
	uint32_t floor, uint32_t *seen, uint32_t stamp, uint32_t *stack)
{
	uint32_t depth = 0;

	stack[depth++] = from;
	seen[from] = stamp;
	while (depth) {
		uint32_t u = stack[--depth];
		if (u == to)
			return true;
		for (uint32_t i = 0; i < e[u].n; i++) {
			uint32_t v = e[u].v[i];
			if (seen[v] != stamp && pos[v] >= floor) {
				seen[v] = stamp;
				stack[depth++] = v;
			}
		}
	}
	return false;
}

/* Peer entries come last, each unless it would close a cycle, so their order (project, then
 * manifest) decides. */
static void add_peers(
	struct maker *m, struct edge_list *e, const struct edge_list *peers, uint32_t n)
{
	uint32_t *pos = vx_arena_array(m->scratch, n, sizeof *pos),
		 *stack = vx_arena_array(m->scratch, n, sizeof *stack);
	uint32_t *next = vx_arena_array(m->scratch, n, sizeof *next),
		 *seen = vx_arena_array(m->scratch, n, sizeof *seen), stamp = 0;
	bool acyclic, stale = true;

	for (uint32_t u = 0; u < n; u++)
		for (uint32_t i = 0; i < peers[u].n; i++) {
			uint32_t v = peers[u].v[i];
			if (u == v || has(&e[u], v))
				continue;
			if (stale)
				order(e, n, pos, stack, next, &acyclic);
			stale = false;
			if (!acyclic || pos[v] > pos[u]) {
				if (reaches(e, v, u, pos, acyclic ? pos[u] : 0, seen, ++stamp,
					    stack))
					continue;
				stale = true;
			}
			push(&e[u], m->scratch, v);
		}
}

static void index_catalogs(struct maker *m)
{
	for (uint32_t i = 0; i < m->rules->n_catalogs; i++) {
		const struct vx_catalog_entry *c = &m->rules->catalogs[i];
		vx_map_puts(
			&m->catalog, vx_arena_printf(m->scratch, "%s\n%s", c->catalog, c->name), i);
	}
}

int vx_edges_make(struct vx_workspace *ws, const struct vx_manifest *manifests,
	const struct vx_edge_rules *rules, struct vx_arena *keep, struct vx_arena *scratch,
	struct vx_err *err)
{
	struct maker m = {.ws = ws, .rules = rules, .keep = keep, .scratch = scratch};
	uint32_t n = ws->n_projects;
	struct edge_list *e = vx_arena_array(scratch, n ? n : 1, sizeof *e),
			 *peers = vx_arena_array(scratch, n ? n : 1, sizeof *peers);
	bool any_peer = false;

	(void)err;
	index_catalogs(&m);
	for (uint32_t u = 0; u < n; u++)
		for (uint32_t i = 0; i < manifests[u].n_deps; i++) {
			const struct vx_dep_spec *d = &manifests[u].deps[i];
			if (rules->turbo && d->peer)
				/* Turborepo leaves the order of peers to the packages that install
				 * them */
				continue;
			uint32_t v = rules->turbo ? target_as_turbo(&m, &ws->projects[u], d)
						  : target_of(&m, &ws->projects[u], d);
			if (v == VX_MAP_NONE || v == u)
				continue;
			if (d->peer) {
				push(&peers[u], scratch, v);
				any_peer = true;
			} else if (!has(&e[u], v)) {
				push(&e[u], scratch, v);
			}
		}
	if (any_peer)
		add_peers(&m, e, peers, n);
	for (uint32_t u = 0; u < n; u++) {
		ws->projects[u].deps =
			e[u].n ? vx_arena_dup(keep, e[u].v, e[u].n * sizeof *e[u].v) : NULL;
		ws->projects[u].n_deps = e[u].n;
	}
	vx_map_free(&m.catalog);
	return 0;
}
