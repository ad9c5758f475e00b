/* Walls: nested projects, .git, .vx, the cache directory; by path, whether they exist or not. */
#include "denies.h"
#include "resolve.h"

#include <errno.h>
#include <string.h>

const char *sbx_wall_name(const struct sbx_wall *wall)
{
	static const char *const name[] = {
		"a nested project", "a git directory", "vx's own directory", "the cache directory"};

	return name[wall->kind];
}

static void add_wall(struct sbx_work *w, const char *path, enum sbx_wall_kind kind)
{
	for (uint32_t i = 0; i < w->n_walls; i++)
		if (vx_streq(w->walls[i].path, path))
			return;
	*SBX_PUSH(w, w->walls, w->n_walls, w->cap_walls) =
		(struct sbx_wall){.path = path, .kind = kind};
}

const struct sbx_wall *sbx_wall_at(const struct sbx_work *w, const char *path)
{
	for (uint32_t i = 0; i < w->n_walls; i++)
		if (!w->walls[i].granted && vx_streq(w->walls[i].path, path))
			return &w->walls[i];
	return NULL;
}

const struct sbx_wall *sbx_wall_within(const struct sbx_work *w, const char *path)
{
	for (uint32_t i = 0; i < w->n_walls; i++)
		if (!w->walls[i].granted && vx_path_within(w->walls[i].path, path) &&
			!vx_streq(w->walls[i].path, path))
			return &w->walls[i];
	return NULL;
}

const struct sbx_wall *sbx_wall_over(const struct sbx_work *w, const char *path)
{
	for (uint32_t i = 0; i < w->n_walls; i++)
		if (w->walls[i].kind != SBX_WALL_NESTED && !w->walls[i].granted &&
			vx_path_within(path, w->walls[i].path))
			return &w->walls[i];
	return NULL;
}

/* gitrepository-layout(5): .git may be a file, "gitdir: PATH"; that directory may hold a
 * `commondir`, relative to it. */
static int git_file(struct sbx_work *w, const char *file)
{
	char *text;
	struct sbx_place p = {0};
	int r = w->f->readfile(w->f->self, file, w->a, &text);

	if (r < 0 || !vx_starts_with(text, "gitdir:"))
		return 0; /* not git's: the wall around the file itself stands */
	text += strlen("gitdir:");
	text += strspn(text, " \t");
	text[strcspn(text, "\r\n")] = '\0';
	const char *dir = vx_path_join(w->a, vx_path_dir(w->a, file), text);
	r = sbx_follow(w, dir, &p);
	if (r < 0)
		return r;
	add_wall(w, p.path, SBX_WALL_GIT);
	dir = p.path;
	if (w->f->readfile(w->f->self, vx_path_join(w->a, dir, "commondir"), w->a, &text) < 0)
		return 0;
	text[strcspn(text, "\r\n")] = '\0';
	r = sbx_follow(w, vx_path_join(w->a, dir, text), &p);
	if (r < 0)
		return r;
	add_wall(w, p.path, SBX_WALL_GIT);
	return 0;
}

static int git_wall(struct sbx_work *w, const char *top, bool always)
{
	struct sbx_place p = {0};
	const char *git = vx_path_join(w->a, top, ".git");
	int r = sbx_lstat(w, git, &p);

	if (r < 0 || (p.type == VX_FACT_NONE && !always))
		return r;
	add_wall(w, git, SBX_WALL_GIT);
	if (p.type == VX_FACT_FILE)
		return git_file(w, git);
	if (p.type == VX_FACT_LINK) {
		r = sbx_follow(w, git, &p);
		if (r == 0)
			add_wall(w, p.path, SBX_WALL_GIT);
	}
	return r;
}

int sbx_find_walls(struct sbx_work *w)
{
	const struct vx_sbx_spec *s = w->s;
	int r = git_wall(w, s->root, true);

	if (r == 0)
		r = git_wall(w, w->project, false);
	add_wall(w, vx_path_join(w->a, s->root, ".vx"), SBX_WALL_VX);
	for (uint32_t i = 0; i < s->store_dirs.n; i++)
		if (s->store_dirs.v[i][0] == '/')
			add_wall(w, vx_path_norm(w->a, s->store_dirs.v[i]), SBX_WALL_STORE);
	for (uint32_t i = 0; i < s->nested.n; i++)
		add_wall(w, vx_path_join(w->a, s->root, s->nested.v[i]), SBX_WALL_NESTED);
	/* Links met on the way lead to walls: they must not show. */
	w->n_skeleton = 0;
	return r;
}

static int refuse(struct sbx_work *w, const struct sbx_grant *g, const char *path,
	const char *relation, const char *what, const char *which)
{
	vx_err_set(w->err, -EPERM, "sandbox: allow.write \"%s\" would bind %s, which %s %s%s%s",
		g->text, path, relation, what, *which ? ", " : "", which);
	return vx_err_fix(w->err, "grant only the directories that the task writes to");
}

static int refuse_outside(struct sbx_work *w, const struct sbx_grant *g, const char *path)
{
	static const char *const kernel[] = {"/proc", "/sys", "/dev"};
	const struct vx_sbx_spec *s = w->s;
	struct sbx_place home = {0};

	if (vx_path_within(s->root, path))
		return refuse(w, g, path, "holds", "the workspace", "");
	if (s->home && *s->home) {
		int r = sbx_follow(w, s->home, &home);
		if (r < 0)
			return r;
		if (vx_path_within(home.path, path))
			return refuse(w, g, path, vx_streq(home.path, path) ? "is" : "holds",
				"the home directory", "");
	}
	for (uint32_t i = 0; i < 3; i++)
		if (vx_path_within(path, kernel[i]))
			return refuse(w, g, path, "lies in", kernel[i], "");
	return 0;
}

/* Before anything is created: what this grant would bind writable must hold no wall, be none, and
 * lie in none that a task may not write. */
int sbx_refuse_write(struct sbx_work *w, const struct sbx_grant *g, const char *path)
{
	for (uint32_t i = 0; i < w->n_walls; i++) {
		const struct sbx_wall *wall = &w->walls[i];
		bool same = vx_streq(wall->path, path);

		if (vx_path_within(wall->path, path))
			return refuse(w, g, path, same ? "is" : "holds", sbx_wall_name(wall),
				same ? "" : wall->path);
		if (wall->kind == SBX_WALL_NESTED || !vx_path_within(path, wall->path))
			continue;
		if (wall->kind == SBX_WALL_GIT && w->s->decl.git_config &&
			vx_streq(vx_path_below(path, wall->path), "config"))
			continue;
		return refuse(w, g, path, "lies in", sbx_wall_name(wall), wall->path);
	}
	struct deny_rules rules = sbx_deny_rules(w);
	const char *denied = deny_name_in(
		&rules, w->a, path, vx_path_within(path, w->s->root) ? w->s->root : "/");
	if (denied) {
		refuse(w, g, path, "no task may change:", denied, "");
		return vx_err_fix(
			w->err, "where the task is meant to make it, name it in allow.protected");
	}
	return vx_path_within(path, w->s->root) ? 0 : refuse_outside(w, g, path);
}
