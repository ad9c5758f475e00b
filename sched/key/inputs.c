/* Which files a task's key answers for: docs/keys.md, "Input files". */
#include "key_int.h"

#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/map.h"
#include "vx/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* Most declarations of a workspace name the same few lists: each is compiled once. The lock is
 * held. */
static int compile(struct vx_keyer *k, struct vx_strs list, enum vx_dialect d,
	struct vx_globset **ret, struct vx_err *err)
{
	char kind = (char)d;
	vx_buf_clear(&k->set_key);
	vx_buf_add(&k->set_key, &kind, 1);
	for (uint32_t i = 0; i < list.n; i++)
		vx_buf_add(&k->set_key, list.v[i], strlen(list.v[i]) + 1);
	uint32_t at = vx_map_get(&k->by_list, k->set_key.data, k->set_key.len);
	if (at != VX_MAP_NONE) {
		*ret = k->sets[at];
		return 0;
	}
	int r = vx_globset_compile(list, d, &k->a, ret, err);
	if (r < 0)
		return r;
	if (k->n_sets == k->cap_sets) {
		k->cap_sets = k->cap_sets ? k->cap_sets * 2 : 64;
		k->sets = vx_xrealloc(k->sets, k->cap_sets * sizeof(struct vx_globset *));
	}
	k->sets[k->n_sets] = *ret;
	vx_map_put(&k->by_list, vx_arena_dup(&k->a, k->set_key.data, k->set_key.len),
		k->set_key.len, k->n_sets++);
	return 0;
}

static bool goes_up(const char *p)
{
	p += *p == '!';
	return vx_starts_with(p, "../") || vx_streq(p, "..");
}

/* Turborepo lets `inputs` climb out of the package; those entries are told apart and joined with
 * the package's directory when they are used. */
static struct vx_strs without_up(struct vx_keyer *k, struct vx_strs list, struct vx_strs *ret_up)
{
	struct vx_strlist stay = {0}, up = {0};
	for (uint32_t i = 0; i < list.n; i++)
		vx_strlist_add(goes_up(list.v[i]) ? &up : &stay, &k->a, list.v[i]);
	*ret_up = vx_strlist_done(&up);
	return vx_strlist_done(&stay);
}

static int compile_globs(
	struct vx_keyer *k, const struct vx_task_decl *d, struct decl_globs *dg, struct vx_err *err)
{
	dg->decl = d;
	struct vx_strs files = d->cache.files;
	if (d->dialect == VX_DIALECT_TURBO)
		files = without_up(k, files, &dg->up_files);
	int r = compile(k, files, d->dialect, &dg->files, err);
	if (r == 0)
		r = compile(k, d->cache.workspace_files, d->dialect, &dg->ws_files, err);
	if (r == 0)
		r = compile(k, d->cache.out_files, d->dialect, &dg->outs, err);
	if (r == 0)
		r = compile(k, d->cache.out_workspace_files, d->dialect, &dg->ws_outs, err);
	return r;
}

int vx_key_globs(struct vx_keyer *k, const struct vx_task_decl *d, const struct decl_globs **ret,
	struct vx_err *err)
{
	pthread_mutex_lock(&k->globs_lock);
	uint32_t i = vx_map_get(&k->by_decl, &d, sizeof d);
	int r = 0;
	if (i == VX_MAP_NONE) {
		struct decl_globs *dg = vx_arena_alloc(&k->a, sizeof *dg);
		r = compile_globs(k, d, dg, err);
		if (r == 0) {
			if (k->n_globs == k->cap_globs) {
				k->cap_globs = k->cap_globs ? k->cap_globs * 2 : 64;
				k->globs = vx_xrealloc(
					k->globs, k->cap_globs * sizeof(struct decl_globs *));
			}
			i = k->n_globs;
			k->globs[k->n_globs++] = dg;
			vx_map_put(&k->by_decl, &dg->decl, sizeof dg->decl, i);
		}
	}
	if (r == 0)
		*ret = k->globs[i];
	pthread_mutex_unlock(&k->globs_lock);
	return r;
}

static bool below(const char *path, const char *dir, size_t n)
{
	return strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]);
}

static int slash_cmp(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	while (*x && *x == *y)
		x++, y++;
	unsigned char c = (unsigned char)(*x ? *x : '/'), d = (unsigned char)(*y ? *y : '/');
	if (!*x && !*y)
		return 0;
	if (c == d) /* one has ended where the other goes deeper */
		return *x ? 1 : -1;
	return c < d ? -1 : 1;
}

/* The nested directories, outermost ones only, so that they are apart from each other and sorted as
 * "dir/". */
static uint32_t outermost(struct vx_strs nested, const char **ret)
{
	if (!nested.n)
		return 0;
	memcpy(ret, nested.v, nested.n * sizeof *ret);
	qsort(ret, nested.n, sizeof *ret, slash_cmp);
	uint32_t w = 0;
	for (uint32_t i = 0; i < nested.n; i++)
		if (!w || !below(ret[i], ret[w - 1], strlen(ret[w - 1])))
			ret[w++] = ret[i];
	return w;
}

/* .git and .vx at any depth, untracked node_modules, the cache directory: in no input set. */
static bool never_input(const struct vx_keyer *k, const struct vx_file *f)
{
	if (f->modules)
		return true;
	if (k->cache_rel && below(f->path, k->cache_rel, strlen(k->cache_rel)))
		return true;
	for (const char *p = f->path; p; p = strchr(p, '/')) {
		p += *p == '/';
		if (p[0] == '.' && ((strncmp(p, ".vx", 3) == 0 && (p[3] == '/' || !p[3])) ||
					   (strncmp(p, ".git", 4) == 0 && (p[4] == '/' || !p[4]))))
			return true;
	}
	return false;
}

void vx_key_own_files(const struct vx_keyer *k, uint32_t project, bool with_nested,
	const struct vx_files *table, struct vx_files *ret)
{
	const struct vx_project *p = &k->ws->projects[project];
	uint32_t lo, hi, at = 0;
	vx_files_below(table, p->dir, &lo, &hi);
	const char **nested = vx_xcalloc(p->nested.n + 1, sizeof *nested);
	uint32_t n = with_nested ? 0 : outermost(p->nested, nested);
	for (uint32_t i = lo; i < hi; i++) {
		struct vx_file *f = table->v[i];
		while (at < n && !below(f->path, nested[at], strlen(nested[at])) &&
			slash_cmp(&nested[at], &f->path) < 0)
			at++;
		if (at < n && below(f->path, nested[at], strlen(nested[at])))
			continue;
		if (!never_input(k, f))
			vx_files_add(ret, f);
	}
	free(nested);
}

struct pick {
	const struct decl_globs *dg;
	const char *project_dir;
	size_t strip; /* bytes of "dir/" in front of project-relative paths */
	struct vx_files *ret;
	uint64_t since; /* steps of matching */
};

static bool is_own_output(const struct pick *p, const struct vx_file *f)
{
	if (p->dg->decl->dialect == VX_DIALECT_TURBO && f->tracked)
		return false;
	bool in_project = !p->strip || (strncmp(f->path, p->project_dir, p->strip - 1) == 0 &&
					       f->path[p->strip - 1] == '/');
	if (in_project && vx_globset_match(p->dg->outs, f->path + p->strip, f->len - p->strip))
		return true;
	return vx_globset_match(p->dg->ws_outs, f->path, f->len);
}

/* Entry by entry: the literal prefix makes each a range of the sorted table. */
static void pick_by_globs(const struct pick *p, const struct vx_globset *set,
	const struct vx_files *from, const char *base, struct vx_arena *a,
	struct vx_strlist *ret_empty)
{
	size_t strip = vx_key_dir_is_root(base) ? 0 : strlen(base) + 1;
	for (uint32_t i = 0; i < vx_globset_count(set); i++) {
		const char *prefix = vx_globset_prefix(set, i);
		const char *dir =
			strip ? (*prefix ? vx_arena_printf(a, "%s/%s", base, prefix) : base)
			      : prefix;
		uint32_t lo, hi;
		bool any = false;
		vx_files_below(from, dir, &lo, &hi);
		struct vx_file *itself = *dir ? vx_files_find(from, dir) : NULL;
		if (itself && itself->len >= strip &&
			vx_globset_match_one(set, i, itself->path + strip, itself->len - strip)) {
			any = !is_own_output(p, itself);
			if (any)
				vx_files_add(p->ret, itself);
		}
		for (uint32_t j = lo; j < hi && !vx_glob_spent(p->since); j++) {
			struct vx_file *f = from->v[j];
			if (!vx_globset_match_one(set, i, f->path + strip, f->len - strip) ||
				is_own_output(p, f))
				continue;
			any = true;
			vx_files_add(p->ret, f);
		}
		if (!any && ret_empty)
			vx_strlist_add(ret_empty, a, vx_globset_pattern(set, i));
	}
}

static void pick_all(const struct pick *p, const struct vx_files *own)
{
	for (uint32_t i = 0; i < own->n && !vx_glob_spent(p->since); i++)
		if (!vx_globset_negates(
			    p->dg->files, own->v[i]->path + p->strip, own->v[i]->len - p->strip) &&
			!is_own_output(p, own->v[i]))
			vx_files_add(p->ret, own->v[i]);
}

/* Turborepo counts tracked files that match `outputs` among the inputs even where `inputs` does not
 * name them: a committed output that is edited is a change. */
static void pick_tracked_outputs(const struct pick *p, const struct vx_files *own)
{
	for (uint32_t i = 0; i < own->n && !vx_glob_spent(p->since); i++) {
		struct vx_file *f = own->v[i];
		if (f->tracked &&
			vx_globset_match(p->dg->outs, f->path + p->strip, f->len - p->strip))
			vx_files_add(p->ret, f);
	}
}

/* Turbo's entries with "..": joined to the package's directory, matched from the root. */
static int up_globs(const struct pick *p, struct vx_arena *a, struct vx_globset **ret)
{
	struct vx_strlist l = {0};
	for (uint32_t i = 0; i < p->dg->up_files.n; i++) {
		const char *s = p->dg->up_files.v[i];
		const char *full = vx_path_join(a, p->project_dir, s + (*s == '!'));
		if (!vx_starts_with(full, ".."))
			vx_strlist_add(&l, a, *s == '!' ? vx_arena_printf(a, "!%s", full) : full);
	}
	return vx_globset_compile(vx_strlist_done(&l), VX_DIALECT_TURBO, a, ret, NULL);
}

static int pick_up(const struct pick *p, const struct vx_files *table, struct vx_arena *a)
{
	struct vx_globset *set;
	int r = up_globs(p, a, &set);
	if (r == 0)
		pick_by_globs(p, set, table, "", a, NULL);
	return r;
}

int vx_key_select(struct vx_keyer *k, uint32_t task, const struct decl_globs *dg,
	const struct vx_files *table, const struct vx_files *own, struct vx_files *ret,
	struct vx_arena *a, struct vx_strlist *ret_empty)
{
	const struct vx_task *t = &k->g->tasks[task];
	const struct vx_task_decl *d = t->decl;
	const char *dir = k->ws->projects[t->project].dir;
	struct pick p = {.dg = dg,
		.project_dir = dir,
		.strip = vx_key_dir_is_root(dir) ? 0 : strlen(dir) + 1,
		.ret = ret,
		.since = vx_glob_steps()};
	for (uint32_t i = 0; vx_key_takes_all(d) && i < own->n; i++)
		vx_files_add(ret, own->v[i]);
	if (!vx_key_takes_chosen(d))
		return 0;
	if (d->cache.default_inputs)
		pick_all(&p, own);
	else if (d->dialect == VX_DIALECT_TURBO && !vx_globset_empty(dg->outs))
		pick_tracked_outputs(&p, own);
	pick_by_globs(&p, dg->files, own, dir, a, ret_empty);
	uint32_t before = ret->n;
	pick_by_globs(&p, dg->ws_files, table, "", a, ret_empty);
	int r = dg->up_files.n ? pick_up(&p, table, a) : 0;
	uint32_t w = before;
	for (uint32_t i = before; i < ret->n; i++) /* the project's own have been sifted already */
		if (!never_input(k, ret->v[i]))
			ret->v[w++] = ret->v[i];
	ret->n = w;
	vx_files_sort_unique(ret);
	return r == 0 && vx_glob_spent(p.since) ? -EOVERFLOW : r;
}

static void add_root(struct vx_strlist *l, struct vx_arena *a, const char *dir)
{
	if (vx_key_dir_is_root(dir))
		dir = "";
	for (uint32_t i = 0; i < l->n; i++)
		if (!l->v[i][0] || below(dir, l->v[i], strlen(l->v[i])))
			return;
	uint32_t w = 0;
	for (uint32_t i = 0; i < l->n; i++)
		if (*dir && !below(l->v[i], dir, strlen(dir)))
			l->v[w++] = l->v[i];
	l->n = w;
	vx_strlist_add(l, a, dir);
}

void vx_key_input_roots(const struct vx_keyer *k, uint32_t task, const struct decl_globs *dg,
	struct vx_arena *a, struct vx_strlist *ret)
{
	const struct vx_task *t = &k->g->tasks[task];
	const struct vx_task_decl *d = t->decl;
	const char *dir = k->ws->projects[t->project].dir;
	bool chosen = vx_key_takes_chosen(d);
	if (vx_key_takes_all(d) || (chosen && d->cache.default_inputs))
		add_root(ret, a, dir);
	for (uint32_t i = 0; chosen && i < vx_globset_count(dg->files); i++) {
		const char *prefix = vx_globset_prefix(dg->files, i);
		add_root(ret, a,
			vx_key_dir_is_root(dir) ? prefix
			: *prefix               ? vx_arena_printf(a, "%s/%s", dir, prefix)
						: dir);
	}
	for (uint32_t i = 0;
		chosen && d->dialect == VX_DIALECT_TURBO && i < vx_globset_count(dg->outs); i++) {
		const char *prefix = vx_globset_prefix(dg->outs, i);
		add_root(ret, a,
			vx_key_dir_is_root(dir) ? prefix
			: *prefix               ? vx_arena_printf(a, "%s/%s", dir, prefix)
						: dir);
	}
	for (uint32_t i = 0; chosen && i < vx_globset_count(dg->ws_files); i++)
		add_root(ret, a, vx_globset_prefix(dg->ws_files, i));
	if (dg->up_files.n)
		add_root(ret, a, "");
}

struct walked {
	struct vx_keyer *k;
	struct pick p;
	const char *base;    /* what is walked */
	struct vx_files had; /* what was chosen already, sorted */
	struct vx_arena *a;
};

static int found(void *arg, const struct vx_glob_hit *h)
{
	struct walked *w = arg;
	if (h->type != VX_GLOB_FILE && h->type != VX_GLOB_LINK)
		return 0;
	struct vx_file *f = vx_arena_alloc(w->a, sizeof *f);
	f->path = vx_key_dir_is_root(w->base) ? vx_arena_strndup(w->a, h->path, h->len)
					      : vx_arena_printf(w->a, "%s/%s", w->base, h->path);
	f->len = (uint32_t)strlen(f->path);
	if (vx_files_find(&w->had, f->path) || is_own_output(&w->p, f) || never_input(w->k, f))
		return 0;
	int r = vx_identity_look(
		vx_source_fd(w->k->src), f->path, vx_source_trusts_exec(w->k->src), f);
	if (r == 0)
		vx_files_add(w->p.ret, f);
	return r == -ENOENT ? 0 : r;
}

static int walk_set(struct walked *w, const struct vx_globset *set, const char *base)
{
	if (vx_globset_empty(set))
		return 0;
	w->base = base;
	int fd = vx_open_beneath(vx_source_fd(w->k->src), base, O_RDONLY | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : vx_globset_walk(set, fd, found, w);
	vx_close(fd);
	return r;
}

/* Then that task's key answers for it. */
bool vx_key_is_made(struct vx_keyer *k, const char *path)
{
	size_t len = strlen(path);
	const struct decl_globs *dg;
	for (uint32_t i = 0; i < k->g->n_tasks; i++) {
		const struct vx_task *t = &k->g->tasks[i];
		const char *dir = k->ws->projects[t->project].dir;
		size_t n = vx_key_dir_is_root(dir) ? 0 : strlen(dir) + 1;
		if (!t->decl->has_cache || vx_key_globs(k, t->decl, &dg, NULL) < 0)
			continue;
		if (vx_globset_match(dg->ws_outs, path, len) ||
			(n < len && (!n || below(path, dir, n - 1)) &&
				vx_globset_match(dg->outs, path + n, len - n)))
			return true;
	}
	return false;
}

static bool may_be_followed_to(struct walked *w, const struct vx_file *f)
{
	return !is_own_output(&w->p, f) && !never_input(w->k, f) &&
	       (vx_source_tracked(w->k->src, f->path) || !vx_key_is_made(w->k, f->path));
}

static int follow_to_file(struct walked *w, const char *rel)
{
	struct vx_file *f = vx_arena_alloc(w->a, sizeof *f);
	f->path = vx_arena_strdup(w->a, rel);
	f->len = (uint32_t)strlen(rel);
	if (!may_be_followed_to(w, f))
		return 0;
	int r = vx_identity_look(
		vx_source_fd(w->k->src), f->path, vx_source_trusts_exec(w->k->src), f);
	if (r == 0)
		vx_files_add(w->p.ret, f);
	return r == -ENOENT ? 0 : r;
}

/* What git lists there. A link to a directory that the package lies in says nothing of it. */
static int follow_to_directory(struct walked *w, const char *rel)
{
	struct vx_files in = {0};
	if (below(w->p.project_dir, rel, strlen(rel)))
		return 0;
	int r = vx_source_list(w->k->src, rel, w->a, &in, NULL);
	for (uint32_t i = 0; r == 0 && i < in.n; i++)
		if (may_be_followed_to(w, in.v[i]))
			vx_files_add(w->p.ret, in.v[i]);
	vx_files_free(&in);
	return r;
}

static int follow(struct walked *w, const char *link, struct vx_map *seen)
{
	char path[VX_MAX_PATH], real[VX_MAX_PATH];
	struct stat st;
	int n = snprintf(path, sizeof path, "%s/%s", w->k->ws->root, link);
	if (n < 0 || (size_t)n >= sizeof path || !realpath(path, real) || stat(real, &st) < 0)
		return 0; /* it leads to nothing */
	const char *rel = vx_path_below(real, w->k->ws->root);
	if (!rel || !*rel || !vx_map_puts(seen, vx_arena_strdup(w->a, rel), 0))
		return 0;
	return S_ISREG(st.st_mode)   ? follow_to_file(w, rel)
	       : S_ISDIR(st.st_mode) ? follow_to_directory(w, rel)
				     : 0;
}

/* Turborepo hashes the bytes that a link leads to, in its package or not. Here they are inputs by
 * their own path, as far as they lie in the workspace. */
static int follow_links(struct walked *w)
{
	struct vx_files *ret = w->p.ret;
	struct vx_map seen = {0};
	int r = 0;
	for (uint32_t i = 0; r == 0 && i < ret->n; i++) /* it grows */
		if ((ret->v[i]->mode & 0170000) == 0120000)
			r = follow(w, ret->v[i]->path, &seen);
	vx_map_free(&seen);
	return r;
}

bool vx_key_names_files(const struct decl_globs *dg)
{
	return !vx_globset_empty(dg->files) || !vx_globset_empty(dg->ws_files) || dg->up_files.n;
}

/* What turbo's `inputs` names is taken from the file system, ignored by git or not; $TURBO_DEFAULT$
 * beside it does not change that. */
int vx_key_walk_turbo(struct vx_keyer *k, uint32_t task, const struct decl_globs *dg,
	struct vx_arena *a, struct vx_files *ret, struct vx_err *err)
{
	const struct vx_task *t = &k->g->tasks[task];
	const char *dir = k->ws->projects[t->project].dir;
	bool any = vx_key_names_files(dg);
	if (t->decl->dialect != VX_DIALECT_TURBO)
		return 0;
	struct walked w = {.k = k, .a = a};
	w.p = (struct pick){.dg = dg,
		.project_dir = dir,
		.strip = vx_key_dir_is_root(dir) ? 0 : strlen(dir) + 1,
		.ret = ret};
	struct vx_globset *up;
	if (any && ret->n)
		w.had = (struct vx_files){
			.v = vx_arena_dup(a, ret->v, ret->n * sizeof(struct vx_file *)),
			.n = ret->n};
	int r = walk_set(&w, dg->files, dir);
	if (r == 0)
		r = walk_set(&w, dg->ws_files, ".");
	if (r == 0 && dg->up_files.n) {
		r = up_globs(&w.p, a, &up);
		if (r == 0)
			r = walk_set(&w, up, ".");
	}
	if (r == 0)
		r = follow_links(&w);
	return r < 0 ? vx_err_set(err, r, "inputs of %s: %s cannot be listed: %s", t->id, dir,
			       vx_strerror(r))
		     : 0;
}
