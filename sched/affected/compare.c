/* The keys of the workspace and those of the commit, part by part. */
#include "narrow.h"

#include "vx/assert.h"
#include "vx/err.h"
#include "vx/path.h"

#include <stdlib.h>
#include <string.h>

/* Parts that are compared in another way: the ids of upstream keys say nothing that the tasks
 * themselves do not, and globals may hold files that git does not know. */
static bool is_apart(const char *label)
{
	return vx_starts_with(label, "upstream:") || vx_starts_with(label, "globalFile");
}

static const char *in_dir(struct narrower *w, const char *dir, const char *name)
{
	return strcmp(dir, ".") == 0 ? name : vx_arena_printf(w->a, "%s/%s", dir, name);
}

/* The file that the configuration of the task comes from, if that changed. */
static const char *config_reason(struct narrower *w, const struct vx_task *t)
{
	static const char *const at_root[] = {"vx.workspace.json", "vx.workspace.jsonc",
		"turbo.json", "turbo.jsonc", "package.json", VX_LOCK_FILE};
	static const char *const in_project[] = {
		"vx.json", "vx.jsonc", "turbo.json", "turbo.jsonc", "package.json"};
	const struct vx_project *p = &w->ws->projects[t->project];

	if (t->decl->source) {
		const char *path =
			t->decl->in_project ? in_dir(w, p->dir, t->decl->source) : t->decl->source;
		if (changed_has(w, path))
			return vx_arena_printf(w->a, "%s changed", path);
	}
	for (size_t i = 0; i < VX_ARRAY_LEN(in_project); i++) {
		const char *path = in_dir(w, p->dir, in_project[i]);
		if (changed_has(w, path))
			return vx_arena_printf(w->a, "%s changed", path);
	}
	for (size_t i = 0; i < VX_ARRAY_LEN(at_root); i++)
		if (changed_has(w, at_root[i]))
			return vx_arena_printf(w->a, "%s changed", at_root[i]);
	return "its configuration changed";
}

static const char *converted_reason(struct narrower *w, const char *path)
{
	return vx_arena_printf(w->a, "attributes of git changed, which may convert %s", path);
}

static bool same_sides(const struct narrower *w, const char *path)
{
	return !vx_files_find(&w->now->table, path) == !vx_files_find(&w->base.files, path);
}

static const char *file_reason(
	struct narrower *w, const char *path, const struct vx_key_input *now, bool one_side)
{
	if (converted_distrusts(w, path))
		return converted_reason(w, path);
	if (!one_side && converted_ends(w, path))
		return vx_arena_printf(w->a,
			"%s may have changed: git converts it, and its index proves nothing", path);
	/* the same file, and it was or became an input: a project came or went around it, or the
	 * inputs are others */
	if (one_side && !changed_has(w, path))
		return vx_arena_printf(
			w->a, "%s %s an input", path, now ? "became" : "is no longer");
	return vx_arena_printf(w->a, "%s changed", path);
}

/* The first changed file in the directory of a project (under a turbo.json packages inside of it
 * count with it); NULL none. */
static const char *project_reason(struct narrower *w, uint32_t project)
{
	for (uint32_t i = 0; i < w->changed.n; i++) {
		const char *path = w->changed.v[i];
		if (vx_path_within(path, w->ws->projects[project].dir))
			return vx_arena_printf(w->a, "depends on %s: %s",
				w->ws->projects[project].name,
				file_reason(w, path, NULL, !same_sides(w, path)));
	}
	return NULL;
}

/* Packages that stand in a key with all their files. */
static const char *package_reason(struct narrower *w, const char *name)
{
	uint32_t p = vx_map_gets(&w->ws->by_name, name);
	const char *why = p == VX_MAP_NONE ? NULL : project_reason(w, p);

	return why ? why : vx_arena_printf(w->a, "depends on %s: it changed", name);
}

static const char *root_packages_reason(struct narrower *w)
{
	const char *why = NULL;

	for (uint32_t i = 0; i < w->now->n_root_projects && !why; i++)
		why = project_reason(w, w->now->root_projects[i]);
	return why ? why : "depends on other packages, as the root does";
}

static const char *part_reason(struct narrower *w, const struct vx_task *t, const char *label)
{
	const struct vx_project *p = &w->ws->projects[t->project];

	if (vx_starts_with(label, "fingerprint:"))
		return vx_arena_printf(w->a, "%s changed", label + strlen("fingerprint:"));
	if (strcmp(label, "package.json") == 0) {
		const char *path = in_dir(w, p->dir, label);
		return file_reason(w, path, NULL, !same_sides(w, path));
	}
	if (strcmp(label, "package.json behind its link") == 0)
		return vx_arena_printf(
			w->a, "what %s links to changed", in_dir(w, p->dir, "package.json"));
	if (strcmp(label, "rootDependencies") == 0)
		return root_packages_reason(w);
	if (vx_starts_with(label, "passed:"))
		return package_reason(w, label + strlen("passed:"));
	return config_reason(w, t);
}

static bool has_label(const struct vx_key_record *r, const char *label)
{
	for (uint32_t i = 0; i < r->n_parts; i++)
		if (strcmp(r->parts[i].label, label) == 0)
			return true;
	return false;
}

/* The first part that differs; NULL none. */
static const char *parts_reason(struct narrower *w, const struct vx_task *t,
	const struct vx_key_record *x, const struct vx_key_record *y)
{
	for (uint32_t i = 0, j = 0; i < x->n_parts || j < y->n_parts; i++, j++) {
		while (i < x->n_parts && is_apart(x->parts[i].label))
			i++;
		while (j < y->n_parts && is_apart(y->parts[j].label))
			j++;
		if (i == x->n_parts && j == y->n_parts)
			break;
		if (i == x->n_parts || j == y->n_parts)
			return part_reason(
				w, t, i < x->n_parts ? x->parts[i].label : y->parts[j].label);
		const struct vx_key_part *p = &x->parts[i], *q = &y->parts[j];
		if (strcmp(p->label, q->label) == 0 && strcmp(p->value, q->value) == 0)
			continue;
		return part_reason(w, t, has_label(y, p->label) ? q->label : p->label);
	}
	return NULL;
}

/* Is it known to git, now or in the commit? What is not is not compared: the patterns that find it
 * are the same (else the configuration is another one), and so it is found in both. */
static bool is_compared(const struct narrower *w, const char *path)
{
	return vx_files_find(&w->now->table, path) || vx_files_find(&w->base.files, path);
}

static bool same_input(const struct vx_key_input *x, const struct vx_key_input *y)
{
	return x->mode == y->mode && x->oid.n == y->oid.n &&
	       memcmp(x->oid.b, y->oid.b, x->oid.n) == 0;
}

static const char *files_reason(struct narrower *w, const struct vx_key_input *x, uint32_t n,
	const struct vx_key_input *y, uint32_t m, bool ignored_too)
{
	for (uint32_t i = 0, j = 0; i < n || j < m;) {
		int c = i == n ? 1 : j == m ? -1 : strcmp(x[i].path, y[j].path);
		const char *path = c <= 0 ? x[i].path : y[j].path;
		if ((c != 0 || !same_input(&x[i], &y[j])) && (ignored_too || is_compared(w, path)))
			return file_reason(w, path, c <= 0 ? &x[i] : NULL, c != 0);
		i += c <= 0;
		j += c >= 0;
	}
	return NULL;
}

/* What links among the globals lead to. */
static const char *linked_reason(struct narrower *w)
{
	const struct fixed_round *x = w->now->fixed, *y = w->then->fixed;

	/* both in the order of the walk */
	for (uint32_t i = 0, j = 0; i < x->n_linked && j < y->n_linked;) {
		const struct fixed_file *p = &x->linked[i], *q = &y->linked[j];
		int c = strcmp(p->name, q->name);
		if (c == 0 && (p->present != q->present ||
				      memcmp(&p->digest, &q->digest, sizeof p->digest) != 0))
			return vx_arena_printf(w->a, "what %s links to changed", p->name);
		i += c <= 0;
		j += c >= 0;
	}
	return NULL;
}

static const char *globals_reason(struct narrower *w)
{
	const struct fixed_round *x = w->now->fixed, *y = w->then->fixed;
	const char *why = NULL;

	for (uint32_t i = 0; i < N_FINGERPRINT; i++)
		if (x->v[i].present && converted_doubts(w, x->v[i].name))
			return file_reason(w, x->v[i].name, NULL, false);
	for (uint32_t i = 0; i < x->n_globals; i++)
		if (converted_doubts(w, x->globals[i].path))
			return file_reason(w, x->globals[i].path, NULL, false);
	if (x->n_linked && w->distrusts)
		return converted_reason(w, x->linked[0].name);
	why = files_reason(w, x->globals, x->n_globals, y->globals, y->n_globals, true);

	return why ? why : linked_reason(w);
}

/* Do they fold the keys of the same tasks? */
static bool same_upstream(
	const struct narrower *w, const struct vx_task *x, const struct vx_task *y)
{
	struct vx_map ids = {0};
	bool same = x->n_key_deps == y->n_key_deps;

	for (uint32_t j = 0; same && j < y->n_key_deps; j++)
		vx_map_puts(&ids, w->base_g.tasks[y->key_deps[j]].id, j);
	for (uint32_t i = 0; same && i < x->n_key_deps; i++)
		same = vx_map_gets(&ids, w->g.tasks[x->key_deps[i]].id) != VX_MAP_NONE;
	vx_map_free(&ids);
	return same;
}

/* `node --version` and its kind tell of the machine. Whatever else is run may read the workspace.
 */
static bool tells_of_machine(const char *command)
{
	static const char *const asks[] = {"--version", "-version", "-v", "-V", "version"};
	const char *blank = strchr(command, ' ');

	if (!blank || strcspn(command, "/\"'`$&|;<>()\\*?[]{}~#=\n\t") != strlen(command))
		return false;
	for (size_t i = 0; i < VX_ARRAY_LEN(asks); i++)
		if (strcmp(blank + 1, asks[i]) == 0)
			return true;
	return false;
}

static const char *probes_reason(struct narrower *w, const struct vx_task *t)
{
	const struct vx_strs lists[] = {t->decl->cache.runtime, t->decl->cache.workspace_runtime};

	if (!t->decl->has_cache || !w->changed.n)
		return NULL;
	for (size_t k = 0; k < VX_ARRAY_LEN(lists); k++)
		for (uint32_t i = 0; i < lists[k].n; i++)
			if (!tells_of_machine(lists[k].v[i]))
				return vx_arena_printf(w->a,
					"%s changed, and what \"%.60s\" tells of it is not known",
					w->changed.v[0], lists[k].v[i]);
	return NULL;
}

static bool names_upstream(const struct vx_task *t)
{
	for (uint32_t i = 0; i < t->decl->depends_on.n; i++)
		if (t->decl->depends_on.v[i][0] == '^')
			return true;
	return false;
}

/* A configuration that cannot be told may have declared, or not, what `^` finds. Which projects lie
 * upstream: those that a project reaches by package edges. */
static const char *untold_reason(
	struct narrower *w, const struct vx_task *t, const char *const *untold_up)
{
	if (w->untold[t->project])
		return w->untold[t->project];
	if (!names_upstream(t))
		return NULL;
	if (w->program_gone)
		return vx_arena_printf(w->a, "%s was removed", w->program_gone);
	return untold_up[t->project];
}

static const char *own_reason(struct narrower *w, uint32_t task, uint32_t then, const char *globals,
	const char *const *untold_up)
{
	const struct vx_task *t = &w->g.tasks[task];
	const char *why = untold_reason(w, t, untold_up);

	if (why)
		return why;
	if (then == VX_MAP_NONE)
		return vx_arena_printf(w->a, "%s does not have it", w->base.since);
	const struct vx_key_record *x = vx_key_get(w->now, task), *y = vx_key_get(w->then, then);
	if (w->distrusts && has_label(x, "package.json behind its link"))
		return converted_reason(
			w, in_dir(w, w->ws->projects[t->project].dir, "package.json"));
	why = globals ? globals : parts_reason(w, t, x, y);
	if (!why)
		why = files_reason(w, x->inputs, x->n_inputs, y->inputs, y->n_inputs, false);
	if (!why && !same_upstream(w, t, &w->base_g.tasks[then]))
		why = "it depends on other tasks";
	return why ? why : probes_reason(w, t);
}

/* By project: what an untold configuration upstream of it says; marks spread until none is new. */
static const char **untold_upstream(struct narrower *w)
{
	uint32_t n = w->ws->n_projects;
	const char **up = vx_arena_array(w->a, (size_t)n + 1, sizeof *up);
	bool more = true;

	while (more) {
		more = false;
		for (uint32_t p = 0; p < n; p++)
			for (uint32_t i = 0; i < w->ws->projects[p].n_deps && !up[p]; i++) {
				uint32_t q = w->ws->projects[p].deps[i];
				up[p] = w->untold[q] ? w->untold[q] : up[q];
				more = more || up[p];
			}
	}
	return up;
}

static const char *through(struct narrower *w, uint32_t dep, const char *why, bool writes)
{
	/* The root of it stays in sight, the way to it does not: chains are long. */
	if (vx_starts_with(why, "depends on ") || vx_starts_with(why, "may read "))
		return why;
	return vx_arena_printf(w->a, "%s %s: %s",
		writes ? "may read what is written by" : "depends on", w->g.tasks[dep].id, why);
}

/* Down the graph. A key that folds a moved one moves. One that does not may do so by what upstream
 * commands write, where keys.md would take it late. */
static void spread(struct narrower *w, uint32_t u, const char **below)
{
	const struct vx_task *t = &w->g.tasks[u];

	for (uint32_t i = 0; i < t->n_key_deps && !w->why[u]; i++)
		if (w->why[t->key_deps[i]])
			w->why[u] = through(w, t->key_deps[i], w->why[t->key_deps[i]], false);
	for (uint32_t i = 0; i < t->n_deps && !below[u]; i++) {
		uint32_t d = t->deps[i];
		if (w->why[d])
			below[u] = through(w, d, w->why[d], true);
		else
			below[u] = below[d];
	}
	if (!w->why[u] && below[u] && !vx_key_stable(w->now, u))
		w->why[u] = below[u];
}

static int keys(struct vx_keyer *k, const struct vx_graph *g, struct vx_err *err)
{
	const struct vx_key_record *rec;
	int r = 0;

	for (uint32_t i = 0; i < g->n_tasks && r == 0; i++)
		r = vx_key_compute(k, g->topo[i], &rec, err);
	return r;
}

int compare_all(struct narrower *w)
{
	struct vx_map then = {0};
	struct vx_err err = {0};
	int r = keys(w->now, &w->g, w->err);

	if (r == 0 && keys(w->then, &w->base_g, &err) < 0)
		w->base.untold = vx_arena_printf(w->a, "keys of %s cannot be made: %s",
			w->base.since, base_said(&w->base, &err));
	if (r < 0 || w->base.untold)
		return r;
	for (uint32_t i = 0; i < w->base_g.n_tasks; i++)
		vx_map_puts(&then, w->base_g.tasks[i].id, i);
	const char *globals = globals_reason(w);
	const char **untold_up = untold_upstream(w),
		   **below = vx_arena_array(w->a, (size_t)w->g.n_tasks + 1, sizeof *below);
	for (uint32_t i = 0; i < w->g.n_tasks; i++) {
		uint32_t u = w->g.topo[i];
		w->why[u] =
			own_reason(w, u, vx_map_gets(&then, w->g.tasks[u].id), globals, untold_up);
		spread(w, u, below);
	}
	vx_map_free(&then);
	return 0;
}
