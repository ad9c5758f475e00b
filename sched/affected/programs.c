/* Configurations that are programs. What one says in the commit is known only where it would be
 * what it says now: nothing of the commit is run. It is, where nothing that it read has changed. */
#include "narrow.h"

#include "vx/path.h"

#include <string.h>

/* A path, or (a directory whose names were read) a name that came to it or went. */
static const char *moved_at(const struct narrower *w, const char *rel)
{
	size_t n = strlen(rel);

	if (changed_has(w, rel))
		return rel;
	for (uint32_t i = 0; i < w->came_or_went.n; i++) {
		const char *path = w->came_or_went.v[i];
		if (strncmp(path, rel, n) != 0 || path[n] != '/')
			continue;
		const char *name = vx_arena_strndup(w->a, path, n + 1 + strcspn(path + n + 1, "/"));
		if (base_holds(&w->now->table, name) != base_holds(&w->base.files, name))
			return path;
	}
	return NULL;
}

/* The first of what it read that has changed; NULL none. */
static const char *moved(const struct narrower *w, const struct vx_evaluated *e)
{
	if (!e->all_known && w->changed.n)
		return w->changed.v[0];
	for (uint32_t i = 0; i < e->read.n; i++) {
		char *real = NULL;
		const char *paths[2] = {e->read.v[i], NULL};
		if (vx_path_canon(w->a, e->read.v[i], &real) == 0)
			paths[1] = real;
		for (int k = 0; k < 2; k++) {
			const char *rel = paths[k] ? vx_path_below(paths[k], w->ws->root) : NULL;
			const char *found = rel && *rel ? moved_at(w, rel) : NULL;
			if (found)
				return found;
		}
	}
	return NULL;
}

/* That of the workspace bears on every project. */
static void set_untold(struct narrower *w, const char *file, const char *why)
{
	if (vx_starts_with(file, "vx.workspace.")) {
		w->base.untold = why;
		return;
	}
	for (uint32_t p = 0; p < w->ws->n_projects; p++)
		if (strcmp(w->ws->projects[p].dir, vx_path_dir(w->a, file)) == 0)
			w->untold[p] = why;
}

int programs_sort_out(struct narrower *w, struct vx_evaluations *ret)
{
	const struct vx_evaluations *now = w->o->evaluated, none = {0};
	struct vx_map files = {0};

	if (!now)
		now = &none;
	struct vx_evaluated *v = vx_arena_array(w->a, (size_t)now->n + 1, sizeof *v);
	uint32_t n = 0;
	for (uint32_t i = 0; i < now->n; i++) {
		const struct vx_evaluated *e = &now->v[i];
		const char *path = moved(w, e);
		vx_map_puts(&files, e->file, i);
		if (path && !e->all_known)
			set_untold(w, e->file,
				vx_arena_printf(w->a, "%s changed, and what %s reads is not known",
					path, e->file));
		else if (path && strcmp(path, e->file) == 0)
			set_untold(w, e->file, vx_arena_printf(w->a, "%s changed", path));
		else if (path)
			set_untold(w, e->file,
				vx_arena_printf(w->a, "%s changed, which %s reads", path, e->file));
		/* one that git does not know is taken to be there */
		if (vx_files_find(&w->base.files, e->file) ||
			!vx_files_find(&w->now->table, e->file))
			v[n++] = *e;
	}
	for (uint32_t i = 0; i < w->base.files.n; i++) {
		const char *path = w->base.files.v[i]->path;
		if (!base_is_program(path) || vx_map_gets(&files, path) != VX_MAP_NONE ||
			!changed_has(w, path))
			continue;
		w->program_gone = path;
		set_untold(w, path, vx_arena_printf(w->a, "%s was removed", path));
	}
	vx_map_free(&files);
	*ret = (struct vx_evaluations){v, n};
	return 0;
}
