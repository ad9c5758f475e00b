#include "members.h"

#include "vx/wsglob.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct vx_member_globs {
	struct vx_wsglobs add, sub;
};

static const struct {
	const char *name;
	uint32_t bit;
} known[] = {
	{"package.json", VX_HAS_PACKAGE_JSON},
	{"vx.json", VX_HAS_VX_JSON},
	{"vx.jsonc", VX_HAS_VX_JSONC},
	{"vx.config.ts", VX_HAS_VX_CONFIG_TS},
	{"vx.config.mts", VX_HAS_VX_CONFIG_MTS},
	{"vx.config.cts", VX_HAS_VX_CONFIG_CTS},
	{"vx.config.js", VX_HAS_VX_CONFIG_JS},
	{"vx.config.mjs", VX_HAS_VX_CONFIG_MJS},
	{"vx.config.cjs", VX_HAS_VX_CONFIG_CJS},
	{"turbo.json", VX_HAS_TURBO_JSON},
	{"turbo.jsonc", VX_HAS_TURBO_JSONC},
	{"vx-lock.json", VX_HAS_VX_LOCK},
	{"vx.workspace.json", VX_HAS_VX_WORKSPACE_JSON},
	{"vx.workspace.jsonc", VX_HAS_VX_WORKSPACE_JSONC},
	{"vx.workspace.ts", VX_HAS_VX_WORKSPACE_TS},
	{"vx.workspace.mts", VX_HAS_VX_WORKSPACE_MTS},
	{"vx.workspace.cts", VX_HAS_VX_WORKSPACE_CTS},
	{"vx.workspace.js", VX_HAS_VX_WORKSPACE_JS},
	{"vx.workspace.mjs", VX_HAS_VX_WORKSPACE_MJS},
	{"vx.workspace.cjs", VX_HAS_VX_WORKSPACE_CJS},
	{"pnpm-workspace.yaml", VX_HAS_PNPM_WORKSPACE},
	{"bun.lock", VX_HAS_BUN_LOCK},
	{"bun.lockb", VX_HAS_BUN_LOCK},
	{"yarn.lock", VX_HAS_YARN_LOCK},
	{"pnpm-lock.yaml", VX_HAS_PNPM_LOCK},
	{"package-lock.json", VX_HAS_NPM_LOCK},
	{"npm-shrinkwrap.json", VX_HAS_NPM_LOCK},
	{".yarnrc.yml", VX_HAS_YARNRC_YML},
	{".npmrc", VX_HAS_NPMRC},
	{".pnp.cjs", VX_HAS_PNP},
	{".pnp.js", VX_HAS_PNP},
};

uint32_t vx_dir_file_bit(const char *name, size_t len)
{
	if (len < 6 || !strchr("pvtby.n", name[0]))
		return 0;
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].name[0] == name[0] && strcmp(known[i].name, name) == 0)
			return known[i].bit;
	return 0;
}

const char *vx_dir_file_name(uint32_t bit)
{
	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (known[i].bit == bit)
			return known[i].name;
	return NULL;
}

int vx_member_globs_compile(struct vx_strs patterns, const char *where, struct vx_arena *a,
	struct vx_member_globs **ret, struct vx_err *err)
{
	struct vx_member_globs *g = vx_arena_alloc(a, sizeof *g);

	for (uint32_t i = 0; i < patterns.n; i++) {
		const char *p = patterns.v[i];
		bool sub = *p == '!';
		p += sub;
		const char *q = p;
		while (vx_starts_with(q, "./"))
			q += 2;
		if (*q == '/' || strcmp(q, "..") == 0 || vx_starts_with(q, "../") ||
			strstr(q, "/../") || vx_ends_with(q, "/..")) {
			vx_err_set(err, -EINVAL,
				"%s: the workspace pattern \"%s\" leaves the workspace", where,
				patterns.v[i]);
			return vx_err_fix(err, "members must lie below the directory of %s", where);
		}
		int r = vx_wsglob_add(sub ? &g->sub : &g->add, q, a, err);
		if (r < 0)
			return r;
	}
	*ret = g;
	return 0;
}

bool vx_member_globs_match(const struct vx_member_globs *g, const char *dir)
{
	return vx_wsglob_member(&g->add, &g->sub, dir);
}

bool vx_member_globs_claim(const struct vx_member_globs *g, const char *dir)
{
	char path[VX_MAX_PATH];
	size_t n = strlen(dir);

	if (n >= sizeof path)
		return false;
	memcpy(path, dir, n + 1);
	for (;;) {
		if (vx_wsglobs_match(&g->add, path, false) &&
			!vx_wsglobs_match(&g->sub, path, true))
			return true;
		char *slash = strrchr(path, '/');
		if (!slash)
			return false;
		*slash = '\0';
	}
}

/* Where in the patterns a directory stands: glob `g` has matched its first `i` parts. */
struct state {
	uint32_t g, i;
};

struct states {
	struct state *v;
	uint32_t n;
};

struct walk {
	const struct vx_base_dir *root;
	const struct vx_member_globs *globs;
	struct vx_arena *keep, *scratch;
	struct vx_members *out;
	uint64_t since; /* steps of matching */
	struct vx_err *err;
};

struct child {
	struct child *next;
	const char *name;
	unsigned char type;
};

struct listing {
	struct walk *w;
	uint32_t files;
	bool deeper;
	struct child *children;
};

static bool never_entered(const char *name)
{
	return strcmp(name, "node_modules") == 0 || strcmp(name, ".git") == 0 ||
	       strcmp(name, ".vx") == 0;
}

static int note(void *arg, const struct vx_dirent *e)
{
	struct listing *l = arg;

	l->files |= vx_dir_file_bit(e->name, e->len);
	if (!l->deeper || (e->type != DT_DIR && e->type != DT_LNK && e->type != DT_UNKNOWN) ||
		never_entered(e->name))
		return 0;
	struct child *c = vx_arena_alloc(l->w->scratch, sizeof *c);
	*c = (struct child){l->children, vx_arena_strndup(l->w->scratch, e->name, e->len), e->type};
	l->children = c;
	return 0;
}

static void put(struct states *s, const struct vx_wsglobs *globs, uint32_t g, uint32_t i)
{
	for (;;) {
		vx_wsglob_count(s->n + 1);
		for (uint32_t k = 0; k < s->n; k++)
			if (s->v[k].g == g && s->v[k].i == i)
				return;
		s->v[s->n++] = (struct state){g, i};
		/* `**` may also stand for nothing. */
		if (i == globs->v[g].n || globs->v[g].parts[i] != NULL)
			return;
		i++;
	}
}

/* The states after entering `name`. A symlink is entered, but `**` does not go on behind it: that
 * way lie cycles. */
static struct states advance(struct walk *w, const struct states *from, const char *name, bool link)
{
	const struct vx_wsglobs *globs = &w->globs->add;
	uint32_t room = 0;

	vx_wsglob_count(from->n);
	for (uint32_t k = 0; k < from->n; k++)
		room += globs->v[from->v[k].g].n + 1;
	struct states to = {vx_arena_array(w->scratch, room, sizeof(struct state)), 0};
	for (uint32_t k = 0; k < from->n; k++) {
		const struct vx_wsglob *g = &globs->v[from->v[k].g];
		uint32_t i = from->v[k].i;
		if (i == g->n)
			continue;
		if (g->parts[i] == NULL) {
			if (*name != '.')
				put(&to, globs, from->v[k].g, link ? i + 1 : i);
		} else if (vx_wsglob_part(g->parts[i], name, false)) {
			put(&to, globs, from->v[k].g, i + 1);
		}
	}
	return to;
}

static int add_member(struct walk *w, const char *path, uint32_t files, bool via_link)
{
	struct vx_members *m = w->out;

	if (m->n == VX_MAX_PROJECTS)
		return vx_err_set(
			w->err, -E2BIG, "more than %u projects in the workspace", VX_MAX_PROJECTS);
	if (m->n == m->cap)
		m->v = vx_arena_grow(w->scratch, m->v, m->n, sizeof *m->v, &m->cap, 128);
	m->v[m->n++] = (struct vx_member){vx_arena_strdup(w->keep, path), files, via_link};
	return 0;
}

static int visit(struct walk *w, const char *path, const struct states *at, bool via_link);

static int enter(struct walk *w, const char *path, const struct states *at, const struct child *c,
	bool via_link)
{
	struct states to = advance(w, at, c->name, c->type == DT_LNK);

	if (to.n == 0)
		return 0;
	if (strlen(path) + strlen(c->name) + 16 > VX_MAX_PATH)
		return vx_err_set(w->err, -ENAMETOOLONG, "%s: the path is longer than %u bytes",
			path, VX_MAX_PATH);
	const char *sub = strcmp(path, ".") == 0
				  ? c->name
				  : vx_arena_printf(w->scratch, "%s/%s", path, c->name);
	bool link = c->type == DT_LNK;
	if (c->type != DT_DIR) {
		bool dir;
		int r = vx_seen_is_dir(w->root, sub, &dir, NULL);
		if (r < 0 || !dir)
			return 0;
		/* A file system that does not tell types: be as careful as with a link. */
		if (c->type == DT_UNKNOWN) {
			struct vx_base_dir b = *w->root;
			char target[2];
			link = readlinkat(b.fd, sub, target, sizeof target) >= 0;
			to = advance(w, at, c->name, link);
		}
	}
	return to.n ? visit(w, sub, &to, via_link || link) : 0;
}

static int visit(struct walk *w, const char *path, const struct states *at, bool via_link)
{
	struct listing l = {.w = w};
	bool accepted = false;

	if (vx_wsglob_steps() - w->since > VX_MAX_GLOB_STEPS) {
		vx_err_set(w->err, -E2BIG,
			"the patterns of the workspace take more than %u steps to match with its directories (at %s/%s)",
			VX_MAX_GLOB_STEPS, w->root->path, path);
		return vx_err_fix(w->err, "write fewer patterns, or simpler ones");
	}

	for (uint32_t k = 0; k < at->n; k++) {
		bool end = at->v[k].i == w->globs->add.v[at->v[k].g].n;
		accepted = accepted || end;
		l.deeper = l.deeper || !end;
	}
	/* Where nothing is looked for further down, other entries may come and go (a build's
	 * outputs do) without the plan being another. */
	int r = l.deeper || strcmp(path, ".") == 0
			? vx_seen_list(w->root, path, note, &l)
			: vx_seen_names(w->root, path, vx_dir_file_bit, &l.files);
	if (r == -ENOENT && strcmp(path, ".") != 0)
		return 0;
	if (r == -EACCES && strcmp(path, ".") != 0) {
		vx_strlist_add(&w->out->warnings, w->keep,
			vx_arena_printf(w->keep,
				"%s: permission denied, so no project is looked for in it", path));
		return 0;
	}
	if (r < 0)
		return vx_err_set(
			w->err, r, "cannot list %s/%s: %s", w->root->path, path, vx_strerror(r));
	if (strcmp(path, ".") == 0)
		w->out->root_files = l.files;
	else if (accepted && (l.files & VX_HAS_PACKAGE_JSON) &&
		 !vx_wsglobs_match(&w->globs->sub, path, true))
		r = add_member(w, path, l.files, via_link);
	for (const struct child *c = l.children; c && r == 0; c = c->next)
		r = enter(w, path, at, c, via_link);
	return r;
}

static int by_dir(const void *a, const void *b)
{
	const struct vx_member *x = a, *y = b;

	return strcmp(x->dir, y->dir);
}

struct identity {
	uint64_t id[2];
	uint32_t member;
	bool via_link;
};

static int by_identity(const void *a, const void *b)
{
	const struct identity *x = a, *y = b;
	int c = memcmp(x->id, y->id, sizeof x->id);

	if (c)
		return c;
	if (x->via_link != y->via_link)
		return x->via_link - y->via_link;
	return (x->member > y->member) - (x->member < y->member);
}

/* One directory under two names, at least one of them through a link: the real name stays, else the
 * first. */
static void drop_aliases(struct walk *w)
{
	struct vx_members *m = w->out;
	bool links = false, dir;

	for (uint32_t i = 0; i < m->n; i++)
		links = links || m->v[i].via_link;
	if (!links)
		return;
	struct identity *ids = vx_arena_array(w->scratch, m->n + 1, sizeof *ids);
	for (uint32_t i = 0; i < m->n; i++) {
		ids[i] = (struct identity){.member = i, .via_link = m->v[i].via_link};
		vx_seen_is_dir(w->root, m->v[i].dir, &dir, ids[i].id);
	}
	ids[m->n] = (struct identity){.member = UINT32_MAX};
	vx_seen_is_dir(w->root, ".", &dir, ids[m->n].id);
	qsort(ids, m->n + 1, sizeof *ids, by_identity);
	for (uint32_t i = 1; i <= m->n; i++)
		if (memcmp(ids[i].id, ids[i - 1].id, sizeof ids[i].id) == 0 && ids[i].via_link)
			m->v[ids[i].member].dir = NULL;
	uint32_t kept = 0;
	for (uint32_t i = 0; i < m->n; i++)
		if (m->v[i].dir)
			m->v[kept++] = m->v[i];
	m->n = kept;
}

static bool passes_skipped(const char *path)
{
	char name[VX_MAX_PATH];

	for (const char *p = path; *p; p += *p == '/') {
		size_t n = strcspn(p, "/");
		if (n >= sizeof name)
			return true;
		memcpy(name, p, n);
		name[n] = '\0';
		if (never_entered(name))
			return true;
		p += n;
	}
	return false;
}

/* A member behind a link goes by the path that git and the file lists know it by. via_link stays
 * where no such path exists: outside of the workspace, or where no input is ever taken from. */
static void settle_links(struct walk *w)
{
	struct vx_members *m = w->out;
	char *top = NULL, *canon;

	for (uint32_t i = 0; i < m->n; i++) {
		if (!m->v[i].via_link)
			continue;
		if ((!top && vx_path_canon(w->scratch, w->root->path, &top) < 0) ||
			vx_path_canon(w->scratch,
				vx_path_join(w->scratch, w->root->path, m->v[i].dir), &canon) < 0)
			continue;
		const char *dir = vx_path_below(canon, top);
		if (!dir || !*dir || passes_skipped(dir))
			continue;
		m->v[i].dir = vx_arena_strdup(w->keep, dir);
		m->v[i].via_link = false;
	}
}

int vx_members_list(const struct vx_base_dir *root, const struct vx_member_globs *g,
	struct vx_arena *keep, struct vx_arena *scratch, struct vx_members *ret, struct vx_err *err)
{
	struct walk w = {root, g, keep, scratch, ret, vx_wsglob_steps(), err};
	uint32_t room = 1;

	*ret = (struct vx_members){0};
	for (uint32_t i = 0; i < g->add.n; i++)
		room += g->add.v[i].n + 1;
	struct states at = {vx_arena_array(scratch, room, sizeof(struct state)), 0};
	for (uint32_t i = 0; i < g->add.n; i++)
		put(&at, &g->add, i, 0);
	int r = visit(&w, ".", &at, false);
	if (r < 0)
		return r;
	drop_aliases(&w);
	settle_links(&w);
	if (ret->n)
		qsort(ret->v, ret->n, sizeof *ret->v, by_dir);
	return 0;
}
