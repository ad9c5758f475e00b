/* Entries of the inputs that select nothing: is it a mistake? Asked only for tasks that have
 * run. */
#include "key_int.h"

#include "vx/fd.h"

#include <fcntl.h>
#include <string.h>

/* A single entry, by itself: what it would select with no output and no `!` in the way. */
struct entry {
	struct vx_keyer *k;
	const struct vx_globset *set;
	const char *base;              /* "" the root */
	struct vx_strs nested;         /* whose files are not the entry's */
	const struct vx_globset *outs; /* of the task, from the same base */
	bool own_output;               /* one was seen */
};

static bool names_a_listed_file(
	const struct entry *e, const struct vx_files *from, const char *base, struct vx_arena *a)
{
	const char *prefix = vx_globset_prefix(e->set, 0);
	const char *dir = !*base    ? prefix
			  : *prefix ? vx_arena_printf(a, "%s/%s", base, prefix)
				    : base;
	size_t strip = *base ? strlen(base) + 1 : 0;
	uint32_t lo, hi;
	struct vx_file *itself = *dir ? vx_files_find(from, dir) : NULL;
	if (itself && itself->len >= strip &&
		vx_globset_match_one(e->set, 0, itself->path + strip, itself->len - strip))
		return true;
	vx_files_below(from, dir, &lo, &hi);
	for (uint32_t i = lo; i < hi; i++)
		if (vx_globset_match_one(
			    e->set, 0, from->v[i]->path + strip, from->v[i]->len - strip))
			return true;
	return false;
}

static int seen(void *arg, const struct vx_glob_hit *h)
{
	struct entry *e = arg;
	if (h->type != VX_GLOB_FILE && h->type != VX_GLOB_LINK)
		return 0;
	size_t strip = *e->base ? strlen(e->base) + 1 : 0;
	for (uint32_t i = 0; i < e->nested.n; i++) {
		size_t n = strlen(e->nested.v[i] + strip);
		if (strncmp(h->path, e->nested.v[i] + strip, n) == 0 && h->path[n] == '/')
			return 0;
	}
	e->own_output |= vx_globset_match(e->outs, h->path, h->len);
	return !vx_globset_match(e->outs, h->path, h->len);
}

/* What is on the disk, and in no list: true where that is not made by the task itself. A wildcard
 * in front would have all projects walked, were it the root's. */
static bool names_a_file(struct entry *e)
{
	if (!*e->base && !*vx_globset_prefix(e->set, 0) && e->k->ws->n_projects > 1)
		return false;
	int fd = vx_open_beneath(
		vx_source_fd(e->k->src), *e->base ? e->base : ".", O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : vx_globset_walk(e->set, fd, seen, e);
	vx_close(fd);
	return r > 0;
}

/* A definition of the root's turbo.json is for all packages: an entry that finds something in one
 * of them is no mistake in the others. */
static bool finds_elsewhere(const struct entry *e, const char *glob, struct vx_arena *a)
{
	uint32_t known = vx_map_gets(&e->k->elsewhere, glob);
	if (known != VX_MAP_NONE)
		return known;
	bool found = false;
	for (uint32_t i = 0; i < e->k->ws->n_projects && !found; i++) {
		const char *dir = e->k->ws->projects[i].dir;
		found = names_a_listed_file(e, &e->k->table, vx_key_dir_is_root(dir) ? "" : dir, a);
	}
	vx_map_puts(&e->k->elsewhere, glob, found);
	return found;
}

enum vx_key_empty vx_key_why_empty(
	struct vx_keyer *k, uint32_t task, bool workspace, const char *glob)
{
	const struct vx_task *t = &k->g->tasks[task];
	const struct vx_project *p = &k->ws->projects[t->project];
	bool turbo = t->decl->dialect == VX_DIALECT_TURBO,
	     root = workspace || vx_key_dir_is_root(p->dir);
	const struct vx_files *from = workspace ? &k->table : vx_key_own(k, t->project, turbo);
	const struct decl_globs *dg;
	struct vx_arena a = {0};
	struct vx_globset *set;
	enum vx_key_empty why = VX_EMPTY_MEANT;
	if (vx_key_globs(k, t->decl, &dg, NULL) == 0 &&
		vx_globset_compile((struct vx_strs){&glob, 1}, t->decl->dialect, &a, &set, NULL) ==
			0 &&
		vx_globset_count(set) == 1) {
		struct entry e = {.k = k,
			.set = set,
			.base = root ? "" : p->dir,
			.outs = workspace ? dg->ws_outs : dg->outs};
		if (!workspace && !turbo)
			e.nested = p->nested;
		if (!names_a_listed_file(&e, from, e.base, &a) &&
			!(turbo && !workspace && finds_elsewhere(&e, glob, &a))) {
			bool ignored = names_a_file(&e);
			why = (ignored && turbo) || (!ignored && e.own_output) ? VX_EMPTY_MEANT
			      : ignored                                        ? VX_EMPTY_IGNORED
									       : VX_EMPTY_NOTHING;
		}
	}
	vx_arena_free(&a);
	return why;
}
