/* Lines of allow.read and allow.write: prefix, links, globs, and what of them must be bound. */
#include "resolve.h"

#include "vx/limits.h"

#include <errno.h>
#include <string.h>

void *sbx_grow(struct vx_arena *a, const void *old, uint32_t n, uint32_t *cap, size_t item_bytes)
{
	*cap = *cap ? *cap * 2 : 16;
	void *p = vx_arena_array(a, *cap, item_bytes);
	if (n)
		memcpy(p, old, n * item_bytes);
	return p;
}

void sbx_skeleton(struct sbx_work *w, const char *path, const char *link_target)
{
	*SBX_PUSH(w, w->skeleton, w->n_skeleton, w->cap_skeleton) =
		(struct vx_skeleton){.path = path, .link_target = link_target};
}

int sbx_lstat(struct sbx_work *w, const char *path, struct sbx_place *ret)
{
	struct sbx_place p = {.path = path};
	int r = w->f->lstat(w->f->self, path, &p.type, &p.uid, &p.mode);

	if (r == -EACCES || r == -ENOTDIR || r == -ENOENT || r == -ELOOP)
		p.type = VX_FACT_NONE;
	else if (r < 0)
		return vx_err_set(
			w->err, r, "sandbox: cannot look at %s: %s", path, vx_strerror(r));
	*ret = p;
	return 0;
}

/* Normal form, absolute, without links but perhaps in `rest`: the classical walk, one component at
 * a time. */
static int follow(struct sbx_work *w, const char *path, struct sbx_place *ret)
{
	const char *at = "/", *rest = path + 1;
	struct sbx_place p = {.path = "/", .type = VX_FACT_DIR, .mode = 0755};
	const char *link[VX_SBX_MAX_LINKS];
	int links = 0;

	while (*rest) {
		size_t n = strcspn(rest, "/");
		const char *name = vx_arena_strndup(w->a, rest, n),
			   *after = rest + n + (rest[n] == '/');
		const char *here = vx_path_join(w->a, at, name);

		rest = after;
		if (p.type == VX_FACT_DIR && vx_map_gets(&w->known_dirs, here) != VX_MAP_NONE &&
			*rest) {
			at = here;
			continue;
		}
		if (p.type != VX_FACT_DIR) { /* nothing there: the rest is taken as it is spelled */
			p = (struct sbx_place){.path = vx_path_join(w->a, here, rest),
				.type = VX_FACT_NONE,
				.dangling = links > 0};
			break;
		}
		int r = sbx_lstat(w, here, &p);
		if (r < 0)
			return r;
		if (p.type == VX_FACT_LINK) {
			char *to = NULL;
			if (++links > VX_SBX_MAX_LINKS)
				return vx_err_set(w->err, -ELOOP,
					"sandbox: too many levels of symbolic links in %s", path);
			link[links - 1] = here;
			r = w->f->readlink(w->f->self, here, w->a, &to);
			if (r < 0)
				return vx_err_set(w->err, r, "sandbox: cannot read the link %s: %s",
					here, vx_strerror(r));
			if (vx_path_within(here, w->s->root) || vx_path_within(here, w->tmp))
				sbx_skeleton(w, here, to);
			rest = vx_path_join(w->a, vx_path_join(w->a, at, to), rest) + 1;
			at = "/";
			p = (struct sbx_place){.path = "/", .type = VX_FACT_DIR, .mode = 0755};
			continue;
		}
		if (p.type == VX_FACT_DIR)
			vx_map_puts(&w->known_dirs, here, 0);
		at = here;
	}
	if (!*rest && p.type != VX_FACT_NONE)
		p.path = at;
	p.dangling = p.type == VX_FACT_NONE && links > 0;
	for (int i = 0; i < links && !p.by_task; i++)
		if (sbx_leads_out(w, link[i], p.path))
			p.by_task = link[i];
	*ret = p;
	return 0;
}

int sbx_follow(struct sbx_work *w, const char *path, struct sbx_place *ret)
{
	if (strlen(path) >= VX_MAX_PATH)
		return vx_err_set(w->err, -ENAMETOOLONG,
			"sandbox: a path is longer than VX_MAX_PATH (%u): %.200s...", VX_MAX_PATH,
			path);
	return follow(w, vx_path_norm(w->a, path), ret);
}

/* `*` and `?` stay inside a component; everything else is literal. `?` takes a whole UTF-8
 * character, or one byte of what is none. */
bool sbx_glob_match(const char *p, const char *s)
{
	const char *star = NULL, *again = NULL;

	for (;;) {
		if (*p == '*') {
			star = ++p;
			again = s;
		} else if (*s && *p == '?') {
			bool lead = (unsigned char)*s >= 0xc0;
			p++, s++;
			while (lead && ((unsigned char)*s & 0xc0) == 0x80)
				s++;
		} else if (*p == *s) {
			if (!*s)
				return true;
			p++, s++;
		} else if (star && *again) {
			p = star;
			s = ++again;
		} else {
			return false;
		}
	}
}

static bool is_wild(const char *component, size_t n)
{
	return memchr(component, '*', n) || memchr(component, '?', n);
}

/* Where the first component with a wildcard begins, or the end. */
static size_t fixed_part(const char *text)
{
	size_t fixed = 0;

	while (text[fixed]) {
		size_t n = strcspn(text + fixed, "/");
		if (is_wild(text + fixed, n))
			break;
		fixed += n + (text[fixed + n] == '/');
	}
	return fixed;
}

/* Past "~/": HOME is what the rest is relative to. */
static size_t home_part(const char *text)
{
	return text[0] == '~' && (text[1] == '/' || !text[1]) ? 1 + (text[1] == '/') : 0;
}

const char *vx_sbx_grant_path(
	const char *text, const char *project, const char *home, struct vx_arena *a)
{
	size_t skip = home_part(text);

	if (skip && !(home && *home))
		return NULL;
	return vx_path_join(a, skip ? home : project,
		vx_arena_strndup(a, text + skip, fixed_part(text + skip)));
}

int sbx_parse_grant(struct sbx_work *w, const char *field, const char *text, struct sbx_grant *ret)
{
	struct sbx_grant g = {.text = text};

	if (!*text)
		return vx_err_set(w->err, -EINVAL, "sandbox: %s holds an empty path", field);
	g.lexical = vx_sbx_grant_path(text, w->project, w->s->home, w->a);
	if (!g.lexical)
		return vx_err_set(w->err, -EINVAL,
			"sandbox: %s \"%s\" needs HOME, which is not set", field, text);
	const char *t = text + home_part(text);
	size_t fixed = fixed_part(t);
	const char *pattern = t + fixed;
	if (vx_streq(pattern, "**") || vx_streq(pattern, "**/") || vx_streq(pattern, "**/*"))
		g.as_dir = true; /* the directory itself */
	else if (*pattern)
		g.pattern = pattern, g.as_dir = true;
	else if (fixed && t[fixed - 1] == '/')
		g.as_dir = true;
	g.inside = vx_path_within(g.lexical, w->project);
	*ret = g;
	return 0;
}

int sbx_left_project(
	struct sbx_work *w, const char *field, const struct sbx_grant *g, const struct sbx_place *p)
{
	if (!g->inside || vx_path_within(p->path, w->project))
		return 0;
	vx_err_set(w->err, -EPERM,
		"sandbox: %s \"%s\" leaves the project through a symbolic link, to %s", field,
		g->text, p->path);
	return vx_err_fix(w->err, "grant that path itself, if the task may touch it");
}

int sbx_add_bind(struct sbx_work *w, struct sbx_binds *b, const char *path, const char *grant,
	enum vx_mount_why why, bool is_dir)
{
	if (b->n >= VX_MAX_MOUNTS)
		return vx_err_set(w->err, -E2BIG,
			"sandbox: \"%s\" needs more mounts than VX_MAX_MOUNTS (%u)",
			grant ? grant : path, VX_MAX_MOUNTS);
	*SBX_PUSH(w, b->v, b->n, b->cap) =
		(struct sbx_bind){.path = path, .grant = grant, .why = why, .is_dir = is_dir};
	return 0;
}

bool sbx_covered(const struct sbx_binds *b, const char *path)
{
	for (uint32_t i = 0; i < b->n; i++)
		if (vx_path_within(path, b->v[i].path))
			return true;
	return false;
}

/* Binds a directory in pieces, so that a wall inside it leaves no trace: its entries one by one, in
 * a directory of our own. */
static int cut_around(struct sbx_work *w, const char *dir, const char *grant)
{
	struct vx_strs names = {0};
	int r = w->f->list(w->f->self, dir, w->a, &names);

	if (r == -EACCES || r == -ENOENT)
		return 0;
	if (r < 0)
		return vx_err_set(w->err, r, "sandbox: cannot list %s for allow.read \"%s\": %s",
			dir, grant, vx_strerror(r));
	sbx_skeleton(w, dir, NULL);
	for (uint32_t i = 0; i < names.n && r == 0; i++) {
		const char *path = vx_path_join(w->a, dir, names.v[i]);
		struct sbx_place p = {0};

		if (sbx_wall_over(w, path) || sbx_wall_at(w, path))
			continue;
		r = sbx_lstat(w, path, &p);
		if (r == 0)
			r = sbx_add_read(w, path, p.type, grant);
	}
	return r;
}

int sbx_add_read(struct sbx_work *w, const char *path, enum vx_fact_type type, const char *grant)
{
	if (type == VX_FACT_NONE)
		return 0;
	if (type == VX_FACT_LINK) {
		char *to = NULL;
		if (w->f->readlink(w->f->self, path, w->a, &to) == 0)
			sbx_skeleton(w, path, to);
		return 0;
	}
	if (type == VX_FACT_DIR && sbx_wall_within(w, path))
		return cut_around(w, path, grant);
	return sbx_add_bind(w, &w->reads, path, grant, VX_WHY_READ, type == VX_FACT_DIR);
}

static int expand(struct sbx_work *w, const char *dir, const char *pattern, const char *grant)
{
	size_t n = strcspn(pattern, "/");
	const char *comp = vx_arena_strndup(w->a, pattern, n),
		   *next = pattern + n + strspn(pattern + n, "/");
	bool any_depth = vx_streq(comp, "**");
	struct vx_strs names = {0};

	if (any_depth && *next) {
		int r = expand(w, dir, next, grant);
		if (r < 0)
			return r;
	}
	int r = w->f->list(w->f->self, dir, w->a, &names);
	if (r == -EACCES || r == -ENOENT || r == -ENOTDIR)
		return 0;
	if (r < 0)
		return vx_err_set(w->err, r, "sandbox: cannot list %s for allow.read \"%s\": %s",
			dir, grant, vx_strerror(r));
	for (uint32_t i = 0; i < names.n; i++) {
		struct sbx_place p = {0};
		if (!any_depth && !sbx_glob_match(comp, names.v[i]))
			continue;
		const char *path = vx_path_join(w->a, dir, names.v[i]);
		if (sbx_wall_over(w, path) || sbx_wall_at(w, path))
			continue;
		r = sbx_lstat(w, path, &p);
		if (r < 0)
			return r;
		if (!*next || (p.type == VX_FACT_DIR && !any_depth &&
				      (vx_streq(next, "**") || vx_streq(next, "**/*"))))
			r = sbx_add_read(w, path, p.type, grant);
		else if (p.type == VX_FACT_DIR)
			r = expand(w, path, any_depth ? pattern : next, grant);
		if (r < 0)
			return r;
	}
	return 0;
}

int sbx_expand(struct sbx_work *w, const struct sbx_grant *g, const char *dir)
{
	for (const char *p = g->pattern; p; p = strchr(p, '/') ? strchr(p, '/') + 1 : NULL)
		if (vx_starts_with(p, "..") && (p[2] == '/' || !p[2]))
			return vx_err_set(w->err, -EINVAL,
				"sandbox: allow.read \"%s\" has a \"..\" after a wildcard",
				g->text);
	return expand(w, dir, g->pattern, g->text);
}

/* A grant of .git where that is a file (a worktree, a submodule): the directories that it leads to
 * come along. */
static int read_git(struct sbx_work *w, const struct sbx_place *p, const char *grant)
{
	int r = sbx_add_bind(w, &w->reads, p->path, grant, VX_WHY_READ, p->type == VX_FACT_DIR);

	for (uint32_t i = 0; i < w->n_walls && r == 0; i++)
		if (w->walls[i].kind == SBX_WALL_GIT) {
			struct sbx_place q = {0};
			w->walls[i].granted = true;
			r = sbx_lstat(w, w->walls[i].path, &q);
			if (r == 0 && q.type == VX_FACT_DIR)
				r = sbx_add_bind(w, &w->reads, q.path, grant, VX_WHY_READ, true);
		}
	return r;
}

static int read_one(struct sbx_work *w, const char *text)
{
	struct sbx_grant g = {0};
	struct sbx_place p = {0};
	int r = sbx_parse_grant(w, "allow.read", text, &g);

	if (r == 0)
		r = sbx_follow(w, g.lexical, &p);
	if (r == 0)
		r = sbx_left_project(w, "allow.read", &g, &p);
	if (r == 0)
		r = sbx_refuse_task_link(w, "allow.read", text, &p);
	if (r < 0 || p.type == VX_FACT_NONE)
		return r;
	const struct sbx_wall *wall = sbx_wall_over(w, p.path);
	if (wall && wall->kind != SBX_WALL_GIT)
		return vx_err_set(w->err, -EPERM,
			"sandbox: allow.read \"%s\" names %s, which no task may see", text,
			wall->path);
	if (g.pattern)
		return p.type == VX_FACT_DIR ? sbx_expand(w, &g, p.path) : 0;
	if (wall && vx_streq(wall->path, p.path))
		return read_git(w, &p, text);
	return sbx_add_read(w, p.path, p.type, text);
}

int sbx_read_grants(struct sbx_work *w)
{
	int r = 0;

	/* git first: whether its walls stand decides how every other grant is cut. */
	for (int pass = 0; pass < 2 && r == 0; pass++)
		for (uint32_t i = 0; i < w->s->decl.read.n && r == 0; i++) {
			const char *t = w->s->decl.read.v[i];
			bool git = vx_streq(t, ".git") || vx_ends_with(t, "/.git") ||
				   vx_ends_with(t, ".git/") || vx_ends_with(t, ".git/**");
			if (git == (pass == 0))
				r = read_one(w, t);
		}
	return r;
}

static void place(
	struct sbx_work *w, const char *path, const char *grant, bool is_dir, bool outside)
{
	for (uint32_t i = 0; i < w->n_places; i++)
		if (vx_streq(w->places[i].path, path))
			return;
	*SBX_PUSH(w, w->places, w->n_places, w->cap_places) = (struct vx_placeholder){
		.path = path, .grant = grant, .is_dir = is_dir, .outside = outside};
}

/* What a write grant needs on the host so that there is something to bind. Parents come before
 * children. */
static int make_places(struct sbx_work *w, const struct sbx_grant *g, const char *path)
{
	struct vx_strlist missing = {0};
	const char *dir = path;

	for (;;) {
		struct sbx_place p = {0};
		dir = vx_path_dir(w->a, dir);
		int r = sbx_lstat(w, dir, &p);
		if (r < 0)
			return r;
		if (p.type == VX_FACT_DIR)
			break;
		if (p.type != VX_FACT_NONE)
			return vx_err_set(w->err, -ENOTDIR,
				"sandbox: allow.write \"%s\": %s is not a directory", g->text, dir);
		vx_strlist_add(&missing, w->a, dir);
	}
	if (!g->inside && !g->as_dir) {
		if (missing.n)
			vx_err_set(w->err, -ENOENT,
				"sandbox: allow.write \"%s\": the directory %s does not exist",
				g->text, missing.v[0]);
		else
			vx_err_set(w->err, -ENOENT,
				"sandbox: allow.write \"%s\": outside the project no file is created, and %s does not exist",
				g->text, path);
		return vx_err_fix(w->err, "create it, or grant a directory: end it with '/'");
	}
	for (uint32_t i = missing.n; i-- > 0;)
		place(w, missing.v[i], g->text, true, !g->inside);
	place(w, path, g->text, g->as_dir, !g->inside);
	return 0;
}

/* Root without capabilities is an ordinary user in the eyes of the file system. */
static int refuse_owner(struct sbx_work *w, const struct sbx_grant *g, const struct sbx_place *p)
{
	if (w->f->uid != 0 || p->uid == 0 || p->type == VX_FACT_NONE || (p->mode & 0002))
		return 0;
	vx_err_set(w->err, -EPERM,
		"sandbox: allow.write \"%s\": %s belongs to user %u, and root without capabilities cannot write it",
		g->text, p->path, (unsigned)p->uid);
	return vx_err_fix(w->err, "run vx as user %u, or chown it to root", (unsigned)p->uid);
}

static int write_one(struct sbx_work *w, const char *text)
{
	struct sbx_grant g = {0};
	struct sbx_place p = {0}, own = {0};
	int r = sbx_parse_grant(w, "allow.write", text, &g);

	if (r == 0)
		r = sbx_follow(w, g.lexical, &p);
	if (r == 0)
		r = sbx_left_project(w, "allow.write", &g, &p);
	if (r == 0)
		r = sbx_refuse_task_link(w, "allow.write", text, &p);
	if (r == 0)
		r = sbx_refuse_write(w, &g, p.path);
	if (r == 0)
		r = refuse_owner(w, &g, &p);
	if (r < 0)
		return r;
	if (p.type == VX_FACT_NONE) {
		r = sbx_lstat(w, g.lexical, &own);
		if (r < 0 || own.type == VX_FACT_LINK) /* a dangling link is left alone: there is
							  nothing to bind */
			return r;
		r = make_places(w, &g, p.path);
		return r < 0 ? r
			     : sbx_add_bind(w, &w->writes, p.path, text, VX_WHY_WRITE, g.as_dir);
	}
	if (g.as_dir && p.type != VX_FACT_DIR)
		return vx_err_set(w->err, -ENOTDIR,
			"sandbox: allow.write \"%s\": %s is not a directory", text, p.path);
	return sbx_add_bind(w, &w->writes, p.path, text, VX_WHY_WRITE, p.type == VX_FACT_DIR);
}

int sbx_write_grants(struct sbx_work *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->s->decl.write.n && r == 0; i++)
		r = write_one(w, w->s->decl.write.v[i]);
	return r;
}
