#include "vx/workspace.h"

#include "edges.h"
#include "manifest.h"
#include "members.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/wsglob.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

static const char PNPM_YAML[] = "pnpm-workspace.yaml";

/* What one directory says about being a workspace. */
struct root_info {
	bool has_manifest, has_pnpm;
	struct vx_manifest manifest;
	struct vx_pnpm_workspace pnpm;
};

static int read_root(const struct vx_base_dir *dir, struct vx_arena *keep, struct vx_arena *scratch,
	struct root_info *ret, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	int r = vx_root_text(dir, PNPM_YAML, &b, &ret->has_pnpm, err);

	if (r == 0 && ret->has_pnpm)
		r = vx_pnpm_parse(vx_buf_str(&b), b.len,
			vx_path_join(scratch, dir->path, PNPM_YAML), scratch, &ret->pnpm, err);
	if (r == 0)
		r = vx_root_text(dir, "package.json", &b, &ret->has_manifest, err);
	if (r == 0 && ret->has_manifest)
		r = vx_manifest_parse(vx_buf_str(&b), b.len,
			vx_path_join(scratch, dir->path, "package.json"), keep, scratch,
			&ret->manifest, err);
	vx_buf_free(&b);
	return r;
}

static struct vx_strs patterns_of(const struct root_info *i)
{
	return i->has_pnpm ? i->pnpm.packages : i->manifest.workspaces;
}

/* Is the directory `below` (relative to the candidate) claimed by the candidate's member globs? */
static int claims(const struct vx_base_dir *dir, const struct root_info *info, const char *below,
	struct vx_arena *scratch, bool *ret, struct vx_err *err)
{
	struct vx_member_globs *g;
	struct vx_members m;

	if (*below == '\0') {
		*ret = true;
		return 0;
	}
	int r = vx_member_globs_compile(patterns_of(info),
		vx_path_join(scratch, dir->path, info->has_pnpm ? PNPM_YAML : "package.json"),
		scratch, &g, err);
	if (r < 0)
		return r;
	*ret = vx_member_globs_claim(g, below);
	if (*ret)
		return 0;
	/* Perhaps through a symlinked member: its canonical path is not below any glob. */
	r = vx_members_list(dir, g, scratch, scratch, &m, err);
	for (uint32_t i = 0; r == 0 && i < m.n && !*ret; i++) {
		*ret = !m.v[i].via_link && vx_path_within(below, m.v[i].dir);
	}
	return r;
}

static int find_up(
	const char *start, struct vx_arena *scratch, const char **ret_root, struct vx_err *err)
{
	const char *nearest = NULL, *dir = start;

	for (;;) {
		struct vx_base_dir base = {AT_FDCWD, dir};
		struct root_info info = {0};
		int fd = vx_open(AT_FDCWD, dir, O_PATH | O_DIRECTORY, 0);
		if (fd < 0)
			return vx_err_set(err, fd, "cannot enter %s: %s", dir, vx_strerror(fd));
		base.fd = fd;
		int r = read_root(&base, scratch, scratch, &info, err);
		bool candidate = info.has_pnpm || info.has_manifest, mine = false;
		/* A broken manifest above the nearest candidate is nobody's business here. */
		if (r < 0 && nearest) {
			vx_close(fd);
			break;
		}
		if (r == 0 && (info.has_pnpm || info.manifest.has_workspaces))
			r = claims(&base, &info, vx_path_below(start, dir), scratch, &mine, err);
		vx_close(fd);
		if (r < 0)
			return r;
		if (mine)
			nearest = dir;
		else if (candidate && !nearest)
			nearest = dir;
		if (mine || info.has_pnpm || strcmp(dir, "/") == 0)
			break;
		dir = vx_path_dir(scratch, dir);
	}
	if (!nearest) {
		vx_err_set(
			err, -ENOENT, "no workspace found in %s or any directory above it", start);
		return vx_err_fix(err,
			"run it below a directory with a package.json or pnpm-workspace.yaml, or name one with -C DIR");
	}
	*ret_root = nearest;
	return 0;
}

int vx_workspace_find(const char *start, struct vx_arena *a, char **ret_root, struct vx_err *err)
{
	struct vx_arena scratch = {0};
	char *canon;
	const char *root = NULL;
	int r = vx_path_canon(&scratch, start, &canon);

	if (r < 0)
		r = vx_err_set(err, r, "cannot enter %s: %s", start, vx_strerror(r));
	struct vx_err tmp = {0};
	if (r == 0)
		r = find_up(canon, &scratch, &root, err ? err : &tmp);
	if (r == 0) {
		if (err)
			err->code = 0, err->what[0] = '\0', err->fix[0] = '\0';
		*ret_root = vx_arena_strdup(a, root);
	}
	vx_arena_free(&scratch);
	return r;
}

struct loader {
	struct vx_base_dir base;
	struct vx_arena *keep, *scratch;
	struct vx_workspace *ws;
	struct vx_manifest *manifests;
	struct vx_strlist warnings;
	struct vx_buf text;
	const char *npmrc; /* the root's; NULL: there is none */
	struct vx_err *err;
};

static int check_name(struct loader *l, const char *manifest, const char *name)
{
	if (strlen(name) > VX_MAX_NAME)
		return vx_err_set(l->err, -ENAMETOOLONG,
			"%s: the name \"%.60s...\" is longer than %u bytes", manifest, name,
			VX_MAX_NAME);
	if (strchr(name, '#') || strcmp(name, "//") == 0 || *name == ' ' || *name == '!')
		return vx_err_set(l->err, -EINVAL, "%s: \"%s\" cannot be the name of a project",
			manifest, name);
	if (vx_has_control(name)) {
		vx_err_set(l->err, -EINVAL, "%s: the name \"%.100s\" holds a control character",
			manifest, name);
		return vx_err_fix(l->err, "give the package a name that fits a line");
	}
	return 0;
}

static int add_project(struct loader *l, const char *dir, uint32_t files, const char *manifest_path,
	const struct vx_manifest *m)
{
	struct vx_workspace *ws = l->ws;
	uint32_t i = ws->n_projects;
	int r = strcmp(dir, ".") == 0 && ws->settings.turbo ? 0
							    : check_name(l, manifest_path, m->name);

	if (r < 0)
		return r;
	if (!vx_map_puts(&ws->by_name, m->name, i)) {
		const struct vx_project *other = &ws->projects[vx_map_gets(&ws->by_name, m->name)];
		vx_err_set(l->err, -EEXIST, "two projects are named \"%s\": %s and %s", m->name,
			other->manifest, manifest_path);
		return vx_err_fix(l->err, "rename one of them");
	}
	vx_map_puts(&ws->by_dir, dir, i);
	ws->projects[i] = (struct vx_project){
		.name = m->name,
		.dir = dir,
		.manifest = manifest_path,
		.scripts = m->scripts,
		.n_scripts = m->n_scripts,
		.version = m->version,
		.files = files,
	};
	l->manifests[i] = *m;
	ws->n_projects++;
	return 0;
}

static int load_member(struct loader *l, const struct vx_member *m)
{
	struct vx_manifest manifest;
	const char *path = vx_arena_printf(l->keep, "%s/package.json", m->dir);
	bool found;
	int r = vx_root_text(&l->base, path, &l->text, &found, l->err);

	if (r < 0 || !found)
		return r;
	r = vx_manifest_parse(
		vx_buf_str(&l->text), l->text.len, path, l->keep, l->scratch, &manifest, l->err);
	if (r < 0)
		return r;
	if (manifest.name && *manifest.name && m->via_link) {
		vx_err_set(l->err, -EXDEV,
			"%s is reached through a symlink that leads out of the workspace, so its files cannot be keyed",
			m->dir);
		return vx_err_fix(l->err,
			"make it a directory of the workspace, or take it out of the members");
	}
	if (manifest.name && *manifest.name)
		return add_project(l, m->dir, m->files, path, &manifest);
	if (m->files & (VX_HAS_VX_JSON | VX_HAS_VX_JSONC)) {
		vx_err_set(l->err, -EINVAL, "%s: a project with a vx.json needs a name", path);
		return vx_err_fix(l->err, "add \"name\" to it");
	}
	return 0; /* nobody can refer to it; package managers allow it */
}

static enum vx_ws_kind kind_of(const struct root_info *i, uint32_t files)
{
	const char *pm = i->manifest.package_manager;

	if (i->has_pnpm)
		return VX_WS_PNPM;
	if (!i->manifest.has_workspaces)
		return VX_WS_SINGLE;
	if (pm && vx_starts_with(pm, "bun@"))
		return VX_WS_BUN;
	if (pm && vx_starts_with(pm, "yarn@"))
		return VX_WS_YARN;
	if (pm && vx_starts_with(pm, "npm@"))
		return VX_WS_NPM;
	if (files & VX_HAS_BUN_LOCK)
		return VX_WS_BUN;
	return files & VX_HAS_YARN_LOCK ? VX_WS_YARN : VX_WS_NPM;
}

/* pnpm links a plain range to the workspace by default only before version 9. The version:
 * packageManager, else the lockfile's. */
static int pnpm_links(struct loader *l, const struct root_info *i, bool *ret)
{
	const char *pm = i->manifest.package_manager;
	/* Before version 9 pnpm-workspace.yaml held no settings. */
	int link = pm && vx_starts_with(pm, "pnpm@") && atoi(pm + 5) < 9
			   ? -1
			   : i->pnpm.link_workspace_packages,
	    major = 0, r = 0;
	const char *v = vx_npmrc_value(l->npmrc, "link-workspace-packages", l->scratch);

	if (link < 0 && v)
		link = !vx_starts_with(v, "false");
	if (link < 0)
		r = vx_pnpm_major(&l->base, pm, l->ws->root_files, &major, l->err);
	*ret = link < 0 ? major > 0 && major < 9 : link > 0;
	return r;
}

static int edge_rules(struct loader *l, const struct root_info *i, struct vx_edge_rules *ret)
{
	const char *v = NULL;
	bool found;
	int r = 0;

	ret->link_ranges = true;
	ret->turbo = l->ws->settings.turbo;
	ret->alias_links = l->ws->kind == VX_WS_PNPM;
	ret->catalogs = i->has_pnpm ? i->pnpm.catalogs : i->manifest.catalogs;
	ret->n_catalogs = i->has_pnpm ? i->pnpm.n_catalogs : i->manifest.n_catalogs;
	if (l->ws->kind == VX_WS_PNPM)
		return pnpm_links(l, i, &ret->link_ranges);
	if (l->ws->kind == VX_WS_YARN && (l->ws->root_files & VX_HAS_YARNRC_YML)) {
		r = vx_root_text(&l->base, ".yarnrc.yml", &l->text, &found, l->err);
		if (r == 0)
			r = vx_yaml_scalar(vx_buf_str(&l->text), l->text.len, ".yarnrc.yml",
				"enableTransparentWorkspaces", l->scratch, &v, l->err);
		ret->link_ranges = !vx_streq(v, "false");
	}
	return r;
}

static int read_npmrc(struct loader *l)
{
	bool found = false;
	int r = l->ws->root_files & VX_HAS_NPMRC
			? vx_root_text(&l->base, ".npmrc", &l->text, &found, l->err)
			: 0;

	if (r == 0 && found)
		l->npmrc = vx_arena_strdup(l->scratch, vx_buf_str(&l->text));
	return r;
}

/* Which projects lie in which. */
static void find_nested(struct loader *l)
{
	struct vx_workspace *ws = l->ws;
	struct vx_strlist *in = vx_arena_array(l->scratch, ws->n_projects, sizeof *in);

	for (uint32_t i = 0; i < ws->n_projects; i++) {
		const char *dir = ws->projects[i].dir;
		if (strcmp(dir, ".") == 0)
			continue;
		for (size_t n = strlen(dir); n-- > 0;) {
			uint32_t p = dir[n] == '/' ? vx_map_get(&ws->by_dir, dir, n) : VX_MAP_NONE;
			if (p != VX_MAP_NONE)
				vx_strlist_add(&in[p], l->keep, dir);
		}
		if (ws->root_project != VX_MAP_NONE)
			vx_strlist_add(&in[ws->root_project], l->keep, dir);
	}
	for (uint32_t i = 0; i < ws->n_projects; i++)
		ws->projects[i].nested = vx_strlist_done(&in[i]);
}

/* Turborepo's file counts only where nothing of ours is to be seen anywhere. */
static bool is_turbo(uint32_t root_files, const struct vx_members *members)
{
	enum {
		OURS = VX_HAS_VX_JSON | VX_HAS_VX_JSONC | VX_CONFIG_PROGRAMS | VX_WORKSPACE_CONFIGS
	};
	uint32_t files = root_files;

	for (uint32_t i = 0; i < members->n; i++)
		files |= members->v[i].files;
	return !(files & OURS) && (root_files & (VX_HAS_TURBO_JSON | VX_HAS_TURBO_JSONC));
}

/* The root is a project when it has a name. To Turborepo it always is one, and its name is //
 * whatever its manifest says. */
static int add_root(struct loader *l, const struct root_info *info)
{
	struct vx_manifest m = info->manifest;
	int r;

	if (!info->has_manifest || (!l->ws->settings.turbo && !(m.name && *m.name)))
		return 0;
	if (l->ws->settings.turbo)
		m.name = "//";
	r = add_project(l, ".", l->ws->root_files, "package.json", &m);
	if (r == 0) {
		l->ws->root_project = 0;
		vx_map_puts(&l->ws->by_name, "//", 0);
	}
	return r;
}

/* Turborepo makes a second package of a root that is its own member; here one directory is one
 * project. */
static bool names_itself(struct vx_strs patterns)
{
	for (uint32_t i = 0; i < patterns.n; i++)
		if (strcmp(patterns.v[i], ".") == 0 || strcmp(patterns.v[i], "./") == 0)
			return true;
	return false;
}

static int load_projects(
	struct loader *l, const struct root_info *info, const struct vx_members *members)
{
	struct vx_workspace *ws = l->ws;
	struct vx_edge_rules rules;
	int r = 0;

	ws->kind = kind_of(info, ws->root_files);
	ws->root_scripts = info->manifest.scripts;
	ws->n_root_scripts = info->manifest.n_scripts;
	ws->projects = vx_arena_array(l->keep, (size_t)members->n + 1, sizeof *ws->projects);
	l->manifests = vx_arena_array(l->scratch, (size_t)members->n + 1, sizeof *l->manifests);
	vx_map_reserve(&ws->by_name, members->n + 2);
	vx_map_reserve(&ws->by_dir, members->n + 2);
	ws->settings.turbo = is_turbo(ws->root_files, members);
	if (ws->settings.turbo && names_itself(patterns_of(info)))
		vx_strlist_add(&l->warnings, l->keep,
			"the root is listed as a member of itself (\".\"): its tasks are those that turbo.json writes as //#TASK, and no others");
	r = add_root(l, info);
	for (uint32_t i = 0; i < members->n && r == 0; i++)
		r = load_member(l, &members->v[i]);
	if (r == 0)
		r = read_npmrc(l);
	if (r == 0)
		r = vx_manager_of(&l->base,
			&(struct vx_pm_facts){.package_manager = info->manifest.package_manager,
				.files = ws->root_files,
				.npmrc = l->npmrc,
				.pnpm = &info->pnpm},
			l->keep, &ws->manager, l->err);
	if (r == 0)
		r = edge_rules(l, info, &rules);
	if (r == 0)
		r = vx_edges_make(ws, l->manifests, &rules, l->keep, l->scratch, l->err);
	for (uint32_t i = 0; i < ws->n_projects && r == 0 && ws->settings.turbo; i++)
		ws->projects[i].framework_env =
			vx_framework_env(&l->manifests[i], ws, &ws->projects[i]);
	if (r == 0)
		find_nested(l);
	return r;
}

/* The patterns, and by name the members that they reach through a link alone. */
static struct vx_strs member_patterns(
	struct loader *l, struct vx_strs patterns, const struct vx_member_globs *globs)
{
	struct vx_strlist out = {0};

	for (uint32_t i = 0; i < patterns.n; i++)
		vx_strlist_add(&out, l->keep, vx_arena_strdup(l->keep, patterns.v[i]));
	for (uint32_t i = 0; i < l->ws->n_projects; i++) {
		const char *dir = l->ws->projects[i].dir;
		if (strcmp(dir, ".") != 0 && !vx_member_globs_match(globs, dir))
			vx_strlist_add(&out, l->keep, vx_wsglob_literal(dir, l->keep));
	}
	return vx_strlist_done(&out);
}

int vx_workspace_load(
	const char *root, struct vx_arena *a, struct vx_workspace *ret, struct vx_err *err)
{
	struct vx_arena scratch = {0};
	struct vx_workspace ws = {.root = vx_arena_strdup(a, root), .root_project = VX_MAP_NONE};
	struct loader l = {.base = {-1, ws.root},
		.keep = a,
		.scratch = &scratch,
		.ws = &ws,
		.text = VX_BUF(VX_MAX_CONFIG_BYTES),
		.err = err};
	struct root_info info = {.pnpm = VX_PNPM_NONE};
	struct vx_member_globs *globs;
	struct vx_members members = {0};

	l.base.fd = vx_open(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
	if (l.base.fd < 0)
		return vx_err_set(
			err, l.base.fd, "cannot enter %s: %s", root, vx_strerror(l.base.fd));
	int r = read_root(&l.base, a, &scratch, &info, err);
	if (r == 0)
		r = vx_member_globs_compile(patterns_of(&info),
			info.has_pnpm ? PNPM_YAML : "package.json", &scratch, &globs, err);
	if (r == 0)
		r = vx_members_list(&l.base, globs, a, &scratch, &members, err);
	ws.root_files = members.root_files;
	l.warnings = members.warnings;
	if (r == 0)
		r = load_projects(&l, &info, &members);
	if (r == 0)
		ws.members = member_patterns(&l, patterns_of(&info), globs);
	ws.warnings = vx_strlist_done(&l.warnings);
	vx_buf_free(&l.text);
	vx_close(l.base.fd);
	vx_arena_free(&scratch);
	if (r < 0) {
		vx_map_free(&ws.by_name);
		vx_map_free(&ws.by_dir);
		return r;
	}
	*ret = ws;
	return 0;
}

uint32_t vx_workspace_project_at(const struct vx_workspace *ws, const char *dir)
{
	size_t n = strlen(dir);

	for (;;) {
		uint32_t p = n ? vx_map_get(&ws->by_dir, dir, n) : VX_MAP_NONE;
		if (p != VX_MAP_NONE)
			return p;
		while (n > 0 && dir[n - 1] != '/')
			n--;
		if (n == 0)
			break;
		n--;
	}
	return ws->root_project;
}

int vx_workspace_need(const struct vx_workspace *ws, uint32_t project, struct vx_err *err)
{
	const struct vx_broken *b = ws->projects[project].broken;

	if (!b)
		return 0;
	vx_err_set(err, b->code, "%s", b->what);
	if (*b->fix)
		vx_err_fix(err, "%s", b->fix);
	return b->code;
}

int vx_workspace_need_all(const struct vx_workspace *ws, struct vx_err *err)
{
	int r = 0;

	for (uint32_t p = 0; p < ws->n_projects && r == 0; p++)
		r = vx_workspace_need(ws, p, err);
	return r;
}
