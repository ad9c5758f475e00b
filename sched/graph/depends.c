/* dependsOn and cache.inputs.tasks. docs/config.md, "dependsOn". */
#include "build.h"

#include "vx/err.h"
#include "vx/limits.h"
#include "vx/workspace.h"

#include <errno.h>
#include <string.h>

static int add(struct builder *b, struct idlist *out, uint32_t task, uint32_t d)
{
	if (b->seen[d] == b->stamp)
		return 0;
	b->seen[d] = b->stamp;
	if (out->n == VX_MAX_TASK_DEPS)
		return vx_err_set(b->err, -E2BIG, "%s depends on more than %u tasks",
			decl_id(b, task, b->scratch), VX_MAX_TASK_DEPS);
	idlist_push(out, b->scratch, d);
	return 0;
}

/* Errors of a task's declaration start with where it stands. */
static const char *where(const struct builder *b, uint32_t d)
{
	const struct vx_project *p = &b->ws->projects[b->owner[d]];

	return vx_arena_printf(b->scratch, "%s: project \"%s\", task \"%s\"", decl_source(b, d),
		p->name, decl_of(b, d)->name);
}

static int missing(struct builder *b, uint32_t task, const char *entry, const char *what,
	const char *name, struct vx_strs candidates)
{
	const char *near = vx_nearest(name, candidates);

	vx_err_set(b->err, -ENOENT, "%s: dependsOn \"%.200s\": %s", where(b, task), entry, what);
	if (near)
		return vx_err_fix(b->err, "did you mean \"%s\"?", near);
	return vx_err_fix(b->err, "declare it, or remove the entry");
}

static struct vx_strs task_names(struct builder *b, uint32_t project)
{
	const struct vx_project *p = &b->ws->projects[project];
	struct vx_strlist l = {0};

	for (uint32_t i = 0; i < p->n_tasks; i++)
		vx_strlist_add(&l, b->scratch, p->tasks[i]->name);
	return vx_strlist_done(&l);
}

static struct vx_strs project_names(struct builder *b)
{
	struct vx_strlist l = {0};

	for (uint32_t i = 0; i < b->ws->n_projects; i++)
		vx_strlist_add(&l, b->scratch, b->ws->projects[i].name);
	return vx_strlist_done(&l);
}

/* name, or a pattern: tasks of one project. */
static int in_project(struct builder *b, uint32_t task, const char *entry, const char *name,
	uint32_t project, struct idlist *out)
{
	if (strchr(name, '*')) {
		for (uint32_t d = b->base[project]; d < b->base[project + 1]; d++)
			if (d != task && vx_name_matches(name, decl_of(b, d)->name)) {
				int r = add(b, out, task, d);
				if (r < 0)
					return r;
			}
		return 0;
	}
	uint32_t id = vx_map_gets(&b->name_ids, name),
		 d = id == VX_MAP_NONE ? VX_MAP_NONE : find_decl(b, project, id);
	if (d != VX_MAP_NONE)
		return add(b, out, task, d);
	const char *what = vx_arena_printf(b->scratch, "project \"%s\" declares no task \"%.200s\"",
		b->ws->projects[project].name, name);
	return missing(b, task, entry, what, name, task_names(b, project));
}

/* Does an entry of cache.inputs.tasks take tasks of the name in the project `p`? */
static bool names_upstream(const struct builder *b, const char *e, uint32_t p, const char *name)
{
	const char *hash = strrchr(e, '#');

	if (*e == '^')
		return vx_name_matches(e + 1, name);
	if (!hash)
		return false;
	return vx_map_gets(&b->ws->by_name, vx_arena_strndup(b->scratch, e, (size_t)(hash - e))) ==
		       p &&
	       vx_name_matches(hash + 1, name);
}

/* A project that the task's "^name" passes through stands in the key with its files: what it would
 * have been keyed by, had it declared the task. */
static void note_through(struct builder *b, uint32_t task, const char *entry, uint32_t p)
{
	const struct vx_cache_decl *c = &decl_of(b, task)->cache;
	bool taken = !decl_of(b, task)->has_cache || !c->tasks_given;

	if (b->noted[p] == b->note_stamp)
		return;
	for (uint32_t i = 0; i < c->tasks.n && !taken; i++)
		taken = vx_streq(c->tasks.v[i], entry) ||
			names_upstream(b, c->tasks.v[i], p, entry + 1);
	if (!taken)
		return;
	b->noted[p] = b->note_stamp;
	idlist_push(&b->through[task], b->scratch, p);
}

/* Tasks of a project that a `^` entry names; VX_MAP_NONE: none. */
struct upstream {
	const char *entry;
	uint32_t name;       /* one name, or ... */
	const char *pattern; /* ... every name that matches; NULL */
};

static bool declares(const struct builder *b, uint32_t p, const struct upstream *u)
{
	if (!u->pattern)
		return find_decl(b, p, u->name) != VX_MAP_NONE;
	for (uint32_t d = b->base[p]; d < b->base[p + 1]; d++)
		if (vx_name_matches(u->pattern, decl_of(b, d)->name))
			return true;
	return false;
}

/* The nearest projects down the package graph that declare the name; one without it is passed
 * through (turbo has a node everywhere: no need). With VX_MAP_NONE for a name: which are passed by
 * all names of a pattern. */
static int nearest(struct builder *b, uint32_t task, const struct upstream *u, struct idlist *out)
{
	bool through = decl_of(b, task)->dialect == VX_DIALECT_VX;
	uint32_t stamp = ++b->pass_stamp, start = b->owner[task];

	b->stack.n = 0;
	b->passed[start] = stamp;
	idlist_push(&b->stack, b->scratch, start);
	while (b->stack.n) {
		const struct vx_project *p = &b->ws->projects[b->stack.v[--b->stack.n]];
		uint32_t first = b->stack.n;
		for (uint32_t i = 0; i < p->n_deps; i++) {
			uint32_t q = p->deps[i], d;
			if (b->passed[q] == stamp)
				continue;
			b->passed[q] = stamp;
			int r = vx_workspace_need(b->ws, q, b->err);
			if (r < 0)
				return r;
			d = u->name == VX_MAP_NONE ? VX_MAP_NONE : find_decl(b, q, u->name);
			if (d == VX_MAP_NONE && through) {
				idlist_push(&b->stack, b->scratch, q);
				if (!declares(b, q, u))
					note_through(b, task, u->entry, q);
			} else if (d != VX_MAP_NONE) {
				r = add(b, out, task, d);
				if (r < 0)
					return r;
			}
		}
		/* Depth first in manifest order: what was pushed last is taken first. */
		for (uint32_t i = first, j = b->stack.n; i + 1 < j; i++) {
			uint32_t t = b->stack.v[i];
			b->stack.v[i] = b->stack.v[--j];
			b->stack.v[j] = t;
		}
	}
	return 0;
}

/* A pattern may match any task of the projects below: those must be known. */
static int need_below(struct builder *b, uint32_t project)
{
	uint32_t stamp = ++b->pass_stamp;
	int r = 0;

	b->stack.n = 0;
	b->passed[project] = stamp;
	idlist_push(&b->stack, b->scratch, project);
	while (b->stack.n && r == 0) {
		const struct vx_project *p = &b->ws->projects[b->stack.v[--b->stack.n]];
		for (uint32_t i = 0; i < p->n_deps && r == 0; i++) {
			if (b->passed[p->deps[i]] == stamp)
				continue;
			b->passed[p->deps[i]] = stamp;
			r = vx_workspace_need(b->ws, p->deps[i], b->err);
			idlist_push(&b->stack, b->scratch, p->deps[i]);
		}
	}
	return r;
}

static int upstream(
	struct builder *b, uint32_t task, const char *entry, const char *name, struct idlist *out)
{
	if (strchr(name, '*')) {
		struct upstream u = {entry, VX_MAP_NONE, name};
		int whole = need_below(b, b->owner[task]);
		if (whole < 0)
			return whole;
		for (uint32_t id = 0; id < b->names.n; id++)
			if (vx_name_matches(name, b->names.v[id])) {
				u.name = id;
				int r = nearest(b, task, &u, out);
				if (r < 0)
					return r;
			}
		/* no project declares one: all are passed through */
		return u.name == VX_MAP_NONE ? nearest(b, task, &u, out) : 0;
	}
	uint32_t id = vx_map_gets(&b->name_ids, name);
	if (id != VX_MAP_NONE)
		return nearest(b, task, &(struct upstream){entry, id, NULL}, out);
	int r = vx_workspace_need_all(b->ws, b->err); /* one of these might declare it */
	if (r < 0)
		return r;
	const char *what = vx_arena_printf(
		b->scratch, "no project in the workspace declares a task \"%.200s\"", name);
	return missing(b, task, entry, what, name, vx_strlist_done(&b->names));
}

static int in_named(
	struct builder *b, uint32_t task, const char *entry, const char *hash, struct idlist *out)
{
	const char *project = vx_arena_strndup(b->scratch, entry, (size_t)(hash - entry));
	uint32_t p = vx_map_gets(&b->ws->by_name, project);

	int r = p == VX_MAP_NONE ? 0 : vx_workspace_need(b->ws, p, b->err);
	if (r < 0)
		return r;
	if (p != VX_MAP_NONE)
		return in_project(b, task, entry, hash + 1, p, out);
	const char *what = vx_arena_printf(b->scratch, "there is no project \"%.200s\"", project);
	return missing(b, task, entry, what, project, project_names(b));
}

int resolve_depends(struct builder *b, uint32_t d)
{
	const struct vx_task_decl *t = decl_of(b, d);
	struct idlist *out = &b->deps[d];

	b->stamp++;
	b->note_stamp++;
	for (uint32_t i = 0; i < t->depends_on.n; i++) {
		const char *e = t->depends_on.v[i], *hash = strrchr(e, '#');
		int r = *e == '^' ? upstream(b, d, e, e + 1, out)
			: hash    ? in_named(b, d, e, hash, out)
				  : in_project(b, d, e, e, b->owner[d], out);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Does an entry of cache.inputs.tasks take this dependency? */
static bool takes(const struct builder *b, uint32_t task, const char *e, uint32_t dep)
{
	bool own = b->owner[dep] == b->owner[task];
	const char *hash = strrchr(e, '#'), *name = decl_of(b, dep)->name;

	if (*e == '^')
		return !own && vx_name_matches(e + 1, name);
	if (!hash)
		return own && vx_name_matches(e, name);
	const char *project = vx_arena_strndup(b->scratch, e, (size_t)(hash - e));
	return vx_map_gets(&b->ws->by_name, project) == b->owner[dep] &&
	       vx_name_matches(hash + 1, name);
}

int resolve_key_deps(struct builder *b, uint32_t d, const struct idlist *deps, struct idlist *ret)
{
	const struct vx_task_decl *t = decl_of(b, d);

	for (uint32_t e = 0; e < t->cache.tasks.n; e++) {
		const char *entry = t->cache.tasks.v[e];
		bool used = strcmp(entry, "*") == 0 || strcmp(entry, "^*") == 0 ||
			    vx_strs_has(t->depends_on, entry);
		for (uint32_t i = 0; i < deps->n && !used; i++)
			used = takes(b, d, entry, deps->v[i]);
		if (used)
			continue;
		const char *near = vx_nearest(entry, t->depends_on);
		vx_err_set(b->err, -EINVAL,
			"%s: cache.inputs.tasks names \"%.200s\", which no dependsOn of the task names",
			where(b, d), entry);
		return near ? vx_err_fix(b->err, "did you mean \"%s\"?", near)
			    : vx_err_fix(b->err, "add it to dependsOn, or remove it here");
	}
	for (uint32_t i = 0; i < deps->n; i++) {
		bool taken = !t->has_cache || !t->cache.tasks_given;
		for (uint32_t e = 0; e < t->cache.tasks.n && !taken; e++)
			taken = takes(b, d, t->cache.tasks.v[e], deps->v[i]);
		if (taken)
			idlist_push(ret, b->scratch, deps->v[i]);
	}
	return 0;
}
