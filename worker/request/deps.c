/* The one grant made for a task: node_modules of the project and of the root, and the workspace
 * packages that they link to. */
#include "resolve.h"

#include <errno.h>
#include <string.h>

static const struct vx_sbx_package *package_at(const struct sbx_work *w, const char *dir)
{
	const char *rel = vx_path_below(dir, w->s->root);

	if (!rel)
		return NULL;
	if (!*rel)
		rel = ".";
	for (uint32_t i = 0; i < w->s->n_packages; i++)
		if (vx_streq(w->s->packages[i].dir, rel))
			return &w->s->packages[i];
	return NULL;
}

static bool seen(const struct sbx_work *w, const char *target)
{
	for (uint32_t i = 0; i < w->n_withheld; i++)
		if (vx_streq(w->withheld[i].target, target))
			return true;
	return sbx_covered(&w->reads, target) || sbx_covered(&w->writes, target);
}

int sbx_compile_members(struct sbx_work *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->s->members.n && r == 0; i++) {
		const char *p = w->s->members.v[i];
		r = vx_wsglob_add(
			*p == '!' ? &w->no_members : &w->members, p + (*p == '!'), w->a, w->err);
	}
	return r;
}

/* The directory of a package of the workspace: one that is known by name, or that the patterns
 * match and that has a manifest. Nothing else is a dependency, wherever a link leads. */
static int is_member(struct sbx_work *w, const char *dir, bool *ret)
{
	const char *rel = vx_path_below(dir, w->s->root);
	struct sbx_place p = {0};
	int r = 0;

	*ret = package_at(w, dir) != NULL;
	if (*ret || !rel || !*rel || !vx_wsglob_member(&w->members, &w->no_members, rel))
		return 0;
	r = sbx_lstat(w, vx_path_join(w->a, dir, "package.json"), &p);
	*ret = r == 0 && p.type == VX_FACT_FILE;
	return r;
}

static int one_link(struct sbx_work *w, const char *link)
{
	struct sbx_place p = {0};
	uint32_t before = w->n_skeleton;
	bool member = false;
	int r = sbx_follow(w, link, &p);

	/* node_modules itself is bound, and its links with it. */
	w->n_skeleton = before;
	if (r == -ELOOP)
		return 0;
	if (r < 0 || p.type == VX_FACT_NONE || !vx_path_within(p.path, w->s->root))
		return r;
	if (vx_path_within(w->project, p.path) || sbx_wall_over(w, p.path) || seen(w, p.path))
		return 0;
	const struct vx_sbx_package *k = package_at(w, p.path);
	r = is_member(w, p.path, &member);
	if (r < 0)
		return r;
	/* A link of a task grants what the manifests, which no task writes, lead to. */
	bool stray = p.by_task && !(k && k->declared);
	if (!member || stray || (w->s->narrow && !(k && k->keyed))) {
		*SBX_PUSH(w, w->withheld, w->n_withheld, w->cap_withheld) =
			(struct vx_withheld){.link = link,
				.target = p.path,
				.package = k ? k->name : NULL,
				.why = !member ? VX_WITHHELD_MEMBER
				       : stray ? VX_WITHHELD_LINK
					       : VX_WITHHELD_KEY};
		return 0;
	}
	return sbx_add_bind(w, &w->reads, p.path, link, VX_WHY_DEPENDENCY, p.type == VX_FACT_DIR);
}

/* Links one level deep, and one level inside an @scope/. */
static int links_of(struct sbx_work *w, const char *dir, bool scope)
{
	struct vx_strs names = {0};
	struct vx_strlist sorted = {0};
	int r = w->f->list(w->f->self, dir, w->a, &names);

	if (r == -EACCES || r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return vx_err_set(w->err, r, "sandbox: cannot list %s: %s", dir, vx_strerror(r));
	for (uint32_t i = 0; i < names.n; i++)
		vx_strlist_add(&sorted, w->a, names.v[i]);
	vx_strlist_sort_unique(&sorted);
	for (uint32_t i = 0; i < sorted.n && r == 0; i++) {
		const char *path = vx_path_join(w->a, dir, sorted.v[i]);
		struct sbx_place p = {0};

		r = sbx_lstat(w, path, &p);
		if (r == 0 && p.type == VX_FACT_LINK)
			r = one_link(w, path);
		else if (r == 0 && p.type == VX_FACT_DIR && !scope && sorted.v[i][0] == '@')
			r = links_of(w, path, true);
	}
	return r;
}

int sbx_dependencies(struct sbx_work *w)
{
	const char *top[2] = {w->project, w->s->root}, *dir[2] = {NULL, NULL};
	int r = 0;

	for (int i = 0; i < 2 && r == 0; i++) {
		struct sbx_place p = {0};

		if (i && vx_streq(top[0], top[1]))
			break;
		r = sbx_follow(w, vx_path_join(w->a, top[i], "node_modules"), &p);
		if (r < 0 || p.type != VX_FACT_DIR || p.by_task || sbx_wall_over(w, p.path) ||
			vx_path_within(w->project, p.path))
			continue;
		dir[i] = p.path;
		if (!sbx_covered(&w->reads, p.path))
			r = sbx_add_bind(
				w, &w->reads, p.path, "node_modules", VX_WHY_DEPENDENCY, true);
	}
	for (int i = 0; i < 2 && r == 0; i++)
		if (dir[i])
			r = links_of(w, dir[i], false);
	return r;
}
