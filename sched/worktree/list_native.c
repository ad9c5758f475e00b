/* File lists by our own reader of git's index and our own scan: the repository of the workspace and
 * those inside it. */
#include "../git/rulefile.h"
#include "scan.h"
#include "file_list_int.h"

#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_REPOS 10000U /* inside one workspace */
#define MAX_SCAN_THREADS 16U

struct vx_own {
	struct vx_repo **repos; /* the workspace's own first; entries stay where they are */
	uint32_t n, cap;
	struct vx_arena a;                       /* guarded by `lock` after opening, like `repos` */
	struct vx_arena extra[MAX_SCAN_THREADS]; /* what other threads listed when it was opened */
	struct vx_wtmem_writer *writer;
	/* what the first list saw; made when something is listed anew, under the lock */
	struct vx_wtseen *seen;
	uint64_t attr_places; /* a sum over where attributes are, and whether all is converted */
	uint64_t distrust_ns; /* ids of the index do not count for what was last written before */
	bool remembered;      /* once is enough: the directories are those of the first list */
	pthread_mutex_t lock;
};

/* A file of rules that holds in the whole repository. Links are followed, as git does outside the
 * worktree. */
static int global_rules(struct vx_arena *a, const char *path, bool attrs,
	const struct vx_rules **chain, char *why, size_t cap)
{
	struct vx_buf b = VX_BUF(100U << 20);
	int r = path ? vx_read_file(AT_FDCWD, path, &b) : 0;
	if (r == 0)
		*chain = attrs ? vx_attr_parse(vx_buf_str(&b), b.len, "", *chain, a)
			       : vx_ignore_parse(vx_buf_str(&b), b.len, "", *chain, a);
	vx_buf_free(&b);
	if (r == 0 || r == -ENOENT || r == -ENOTDIR || r == -EACCES || r == -EISDIR)
		return 0;
	snprintf(why, cap, "%s cannot be read", path);
	return 1;
}

/* The same for attributes, which are also dated. */
static int global_attrs(
	struct vx_arena *a, const char *path, struct vx_repo *r, char *why, size_t cap)
{
	struct stat st;
	struct vx_fstat seen;
	if (path && stat(path, &st) == 0) {
		vx_fstat_of(&st, &seen);
		r->attr_places += vx_scan_place(path);
		if (seen.ctime_ns > r->attrs_ns)
			r->attrs_ns = seen.ctime_ns;
	}
	return global_rules(a, path, true, &r->attrs, why, cap);
}

/* Index and rules of a repository whose configuration is known. */
static int load_repo(struct vx_own *o, struct vx_repo *r, char *why, size_t cap)
{
	struct vx_arena *a = &o->a;
	const char *info = vx_arena_printf(a, "%s/info", r->git.commondir);
	r->top_fd = vx_open(AT_FDCWD, r->git.worktree, O_RDONLY | O_DIRECTORY, 0);
	if (r->top_fd < 0)
		return r->top_fd;
	int res = vx_gitindex_read(AT_FDCWD, vx_arena_printf(a, "%s/index", r->git.gitdir),
		r->git.kind, &r->index, why, cap);
	const char *const ignores[] = {r->git.excludes, vx_arena_printf(a, "%s/exclude", info)};
	for (size_t i = 0; i < VX_ARRAY_LEN(ignores) && res == 0; i++)
		res = global_rules(a, ignores[i], false, &r->ignore, why, cap);
	const char *const attrs[] = {r->git.system_attributes, r->git.attributes,
		vx_arena_printf(a, "%s/attributes", info)};
	for (size_t i = 0; i < VX_ARRAY_LEN(attrs) && res == 0; i++)
		res = global_attrs(a, attrs[i], r, why, cap);
	if (r->attrs_ns < o->distrust_ns)
		r->attrs_ns = o->distrust_ns;
	o->attr_places += r->attr_places + r->git.converts_all;
	if (res == 0)
		r->rules = vx_rule_memo_new(r->ignore, r->attrs);
	return res;
}

static void free_repo(struct vx_repo *r)
{
	vx_rule_memo_free(r->rules);
	vx_gitindex_free(&r->index);
	vx_close(r->top_fd);
	free(r);
}

static int keep_repo(struct vx_own *o, struct vx_repo *r, int res)
{
	if (res) {
		free_repo(r);
		return res;
	}
	if (o->n == o->cap) {
		o->cap = o->cap ? o->cap * 2 : 8;
		o->repos = vx_xrealloc(o->repos, o->cap * sizeof(struct vx_repo *));
	}
	o->repos[o->n++] = r;
	return 0;
}

static const char *repo_path(const struct vx_repo *r, const char *path, struct vx_arena *a)
{
	if (*r->mount)
		return vx_path_below(path, r->mount);
	if (!*r->prefix)
		return path;
	return *path ? vx_arena_printf(a, "%s/%s", r->prefix, path) : r->prefix;
}

static const struct vx_ix_entry *entry_of(const struct vx_repo *r, const char *path)
{
	size_t n = strlen(path);
	uint32_t i = vx_gitindex_lower(&r->index, 0, r->index.n, path, n);
	return i < r->index.n && strcmp(r->index.v[i].path, path) == 0 ? &r->index.v[i] : NULL;
}

/* A foreign repository that is not understood, or that this reader would have to leave to git: git
 * is not started in it. Too many files may move a key for nothing, too few would miss what a task
 * reads. The lock is held. */
static int take_whole(struct vx_source *s, struct vx_own *o, struct vx_repo *r, const char *why)
{
	if (r->top_fd < 0)
		r->top_fd = vx_open(s->root_fd, r->mount, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (r->top_fd < 0)
		return r->top_fd;
	vx_gitindex_free(&r->index);
	vx_rule_memo_free(r->rules);
	r->index = (struct vx_gitindex){.kind = s->kind};
	r->ignore = r->attrs = NULL;
	r->attrs_ns = r->attr_places = 0;
	r->rules = vx_rule_memo_new(NULL, NULL);
	r->git = (struct vx_gitrepo){.worktree = vx_arena_printf(&o->a, "%s/%s", s->root, r->mount),
		.gitdir = "",
		.commondir = "",
		.kind = s->kind,
		.trust_exec = true,
		.weak_stat = true};
	r->whole = true;
	if (!s->listed)
		vx_strlist_add(&s->said, &o->a,
			vx_arena_printf(&o->a,
				"%s is a git repository that the workspace's does not record, and it is not understood (%s): every file in it counts, ignored ones too",
				r->mount, why));
	return 0;
}

static int open_nested(
	struct vx_source *s, struct vx_own *o, struct vx_repo *r, char *why, size_t cap)
{
	const char *dir = vx_arena_printf(&o->a, "%s/%s", s->root, r->mount);
	int res = vx_gitrepo_at(dir, s->root, &o->a, &r->git, why, cap);
	if (res == -ENOENT)
		return res;
	if (res == 0)
		res = load_repo(o, r, why, cap);
	else if (res < 0)
		snprintf(why, cap, "its .git cannot be read: %s", vx_strerror(res));
	if (res && r->foreign)
		return take_whole(s, o, r, why);
	/* Ids of the other kind are all computed; so are those of an index that a task may have
	 * written: it could claim that a file still is what it was. */
	if (res == 0 && (r->foreign || r->git.kind != s->kind))
		r->git.weak_stat = true;
	return res;
}

/* The repository mounted at `mount`, found in `around`; NULL without an error where there is none
 * after all. The lock is held. */
static int nested_repo(struct vx_source *s, struct vx_own *o, const struct vx_repo *around,
	const char *mount, struct vx_repo **ret, char *why, size_t cap)
{
	*ret = NULL;
	for (uint32_t i = 0; i < o->n; i++)
		if (*o->repos[i]->mount && strcmp(o->repos[i]->mount, mount) == 0) {
			*ret = o->repos[i];
			return 0;
		}
	if (o->n >= MAX_REPOS) {
		snprintf(why, cap, "there are more than %u repositories in the workspace",
			MAX_REPOS);
		return 1;
	}
	struct vx_repo *r = vx_xcalloc(1, sizeof *r);
	const struct vx_ix_entry *e =
		around ? entry_of(around, repo_path(around, mount, &o->a)) : NULL;
	r->top_fd = -1;
	r->prefix = "";
	r->mount = vx_arena_strdup(&o->a, mount);
	r->foreign = !e || e->mode != 0160000 || around->foreign;
	int res = open_nested(s, o, r, why, cap);
	if (res == -ENOENT) {
		free_repo(r);
		return 0;
	}
	res = keep_repo(o, r, res);
	if (res == 0)
		*ret = r;
	return res;
}

/* Lists a directory of a repository, then all of each repository found in it. */
static int list_repo(struct vx_source *s, struct vx_own *o, struct vx_repo *r, const char *dir,
	const struct vx_scan_opts *opts, struct vx_arena *a, struct vx_files *out, char *why,
	size_t cap)
{
	struct vx_strlist nested = {0};
	struct vx_scan_opts mine = *opts;
	mine.rules = r->rules;
	int res = vx_scan(r, dir, &mine, a, out, &nested, why, cap);
	if (res && r->foreign && !r->whole && !s->listed) {
		/* nobody else looks at it yet */
		pthread_mutex_lock(&o->lock);
		res = take_whole(s, o, r, why);
		pthread_mutex_unlock(&o->lock);
		mine.rules = r->rules;
		if (res == 0)
			res = vx_scan(r, dir, &mine, a, out, &nested, why, cap);
	}
	for (uint32_t i = 0; i < nested.n && res == 0; i++) {
		struct vx_repo *inner;
		pthread_mutex_lock(&o->lock);
		res = nested_repo(s, o, r, nested.v[i], &inner, why, cap);
		pthread_mutex_unlock(&o->lock);
		if (res == 0 && inner && inner != r)
			res = list_repo(s, o, inner, "", opts, a, out, why, cap);
	}
	return res;
}

/* The repository that a workspace path lies in: the one mounted deepest. */
static struct vx_repo *repo_of(const struct vx_own *o, const char *path)
{
	struct vx_own *mut = (struct vx_own *)(uintptr_t)o; /* the lock alone is changed */
	pthread_mutex_lock(&mut->lock);
	struct vx_repo *best = o->repos[0];
	for (uint32_t i = 1; i < o->n; i++)
		if (vx_path_below(path, o->repos[i]->mount) &&
			strlen(o->repos[i]->mount) > strlen(best->mount))
			best = o->repos[i];
	pthread_mutex_unlock(&mut->lock);
	return best;
}

static int open_main(struct vx_source *s, struct vx_own *o, char *why, size_t cap)
{
	struct vx_repo *r = vx_xcalloc(1, sizeof *r);
	r->top_fd = -1;
	r->mount = r->prefix = "";
	int res = vx_gitrepo_find(s->root, &o->a, &r->git, why, cap);
	if (res == -ENOENT)
		snprintf(why, cap, "no repository was found");
	if (res == 0) {
		const char *below = vx_path_below(s->root, r->git.worktree);
		r->prefix = below ? below : "";
		s->kind = r->git.kind;
		s->trust_exec = r->git.trust_exec;
		res = load_repo(o, r, why, cap);
	}
	return keep_repo(o, r, res);
}

/* It is left to git itself. */
static int give_up(struct vx_source *s, int error)
{
	s->refused = error == -E2BIG || error == -ENXIO ? error : 0;
	vx_files_free(&s->first);
	vx_own_close(s->own);
	s->own = NULL;
	s->said = (struct vx_strlist){0};
	s->kind = VX_OID_SHA1;
	s->trust_exec = true;
	return 1;
}

int vx_own_open(struct vx_source *s, char *why, size_t cap)
{
	struct vx_own *o = vx_xcalloc(1, sizeof *o);
	pthread_mutex_init(&o->lock, NULL);
	s->own = o;
	snprintf(why, cap, "the repository cannot be read");
	int r = open_main(s, o, why, cap);
	return r ? give_up(s, r) : 0;
}

int vx_own_list_first(struct vx_source *s, char *why, size_t cap)
{
	struct vx_own *o = s->own;
	snprintf(why, cap, "the repository cannot be read");
	if (s->keep || s->ahead)
		o->writer = vx_wtmem_writer_new();
	struct vx_scan_opts opts = {
		.threads = s->threads < MAX_SCAN_THREADS ? s->threads : MAX_SCAN_THREADS,
		.extra = o->extra,
		.memory = s->memory,
		.writer = o->writer,
		.ret_attr_places = &o->attr_places};
	int r = list_repo(s, o, o->repos[0], repo_path(o->repos[0], "", &o->a), &opts, &s->a,
		&s->first, why, cap);
	if (r)
		return give_up(s, r);
	vx_files_sort_unique(&s->first);
	s->first_ready = s->listed = true;
	for (uint32_t i = 0; i < o->n; i++)
		vx_rule_memo_first_done(o->repos[i]->rules);
	if (s->memory)
		vx_own_distrust(s);
	return 0;
}

/* Attributes that are gone, or a setting that is, leave no date behind; but the last run has
 * written down where there were some. */
void vx_own_distrust(struct vx_source *s)
{
	struct vx_own *o = s->own;
	struct vx_wtmem_attrs was;
	if (!vx_wtmem_attrs(s->memory, &was))
		return;
	o->distrust_ns = was.places == o->attr_places ? was.distrust_ns : vx_wall_ns();
	if (!o->distrust_ns)
		return;
	for (uint32_t i = 0; i < o->n; i++)
		if (o->repos[i]->attrs_ns < o->distrust_ns)
			o->repos[i]->attrs_ns = o->distrust_ns;
	for (uint32_t i = 0; i < s->first.n; i++) {
		struct vx_file *f = s->first.v[i];
		if (f->has_oid && !f->hashed && f->mode != 0120000 &&
			f->st.ctime_ns <= o->distrust_ns)
			f->has_oid = f->hashed =
				vx_wtmem_id(s->memory, f->path, f->len, s->kind, &f->st, &f->oid);
	}
}

/* ---- where git lists what is around ---- */

static struct vx_own *aside(struct vx_source *s)
{
	pthread_mutex_lock(&s->lock);
	if (!s->aside) {
		s->aside = vx_xcalloc(1, sizeof *s->aside);
		pthread_mutex_init(&s->aside->lock, NULL);
	}
	pthread_mutex_unlock(&s->lock);
	return s->aside;
}

/* Also where git took for a repository what this reader does not: git lists nothing of it. */
static int embedded_at(
	struct vx_source *s, const char *mount, struct vx_repo **ret, char *why, size_t cap)
{
	struct vx_own *o = aside(s);
	pthread_mutex_lock(&o->lock);
	int res = nested_repo(s, o, NULL, mount, ret, why, cap);
	if (res == 0 && !*ret) {
		struct vx_repo *r = vx_xcalloc(1, sizeof *r);
		r->top_fd = -1;
		r->prefix = "";
		r->mount = vx_arena_strdup(&o->a, mount);
		r->foreign = true;
		res = keep_repo(o, r, take_whole(s, o, r, "its .git leads nowhere"));
		if (res == 0)
			*ret = r;
	}
	pthread_mutex_unlock(&o->lock);
	return res;
}

int vx_own_list_embedded(struct vx_source *s, const char *mount, const char *dir,
	struct vx_arena *a, struct vx_files *out, struct vx_err *err)
{
	struct vx_scan_opts opts = {.threads = 1, .memory = s->memory};
	struct vx_repo *r;
	char why[200] = "the file list cannot be read";
	int res = embedded_at(s, mount, &r, why, sizeof why);
	if (res == 0)
		res = list_repo(s, s->aside, r, dir, &opts, a, out, why, sizeof why);
	if (res)
		return vx_err_set(err, res < 0 ? res : -EIO, "%s/%s: %s", s->root, mount, why);
	return 0;
}

int vx_own_ignored_embedded(
	struct vx_source *s, const char *mount, const char *path, bool *ret, struct vx_err *err)
{
	struct vx_repo *r;
	char why[200] = "";
	int res = embedded_at(s, mount, &r, why, sizeof why);
	if (res == 0)
		res = vx_scan_ignored(r, path, ret, why, sizeof why);
	return res ? vx_err_set(err, res < 0 ? res : -EIO, "%s/%s: %s", s->root, mount, why) : 0;
}

void vx_own_close(struct vx_own *o)
{
	if (!o)
		return;
	for (uint32_t i = 0; i < o->n; i++)
		free_repo(o->repos[i]);
	free(o->repos);
	for (uint32_t i = 0; i < MAX_SCAN_THREADS; i++)
		vx_arena_free(&o->extra[i]);
	vx_wtmem_seen_free(o->seen);
	vx_wtmem_writer_free(o->writer);
	pthread_mutex_destroy(&o->lock);
	vx_arena_free(&o->a);
	free(o);
}

/* Would a list from the top still come upon this repository? Its own may be gone by now, or the
 * rules around it may have changed. */
static bool still_found(const struct vx_source *s, const struct vx_repo *r,
	const struct vx_repo *around, struct vx_arena *a)
{
	const char *path = repo_path(around, r->mount, a);
	size_t n = strlen(path);
	char why[200];
	bool ignored = false;
	VX_CLEANUP_FD int real = vx_open_beneath(s->root_fd, r->mount, O_PATH | O_DIRECTORY, 0);
	if (real < 0 || !vx_gitrepo_is(vx_arena_printf(a, "%s/%s", s->root, r->mount)))
		return false; /* also behind a link, which is a file of the repository around it */
	uint32_t i = vx_gitindex_lower(&around->index, 0, around->index.n, path, n);
	if (i < around->index.n && around->index.v[i].mode == 0160000 &&
		strcmp(around->index.v[i].path, path) == 0)
		return true;
	return vx_scan_ignored(around, path, &ignored, why, sizeof why) != 0 || !ignored;
}

static struct vx_repo *repo_now(const struct vx_source *s, const char *dir, struct vx_arena *a)
{
	struct vx_repo *r = repo_of(s->own, dir);
	while (*r->mount) {
		const char *slash = strrchr(r->mount, '/');
		struct vx_repo *around = repo_of(s->own,
			slash ? vx_arena_strndup(a, r->mount, (size_t)(slash - r->mount)) : "");
		if (still_found(s, r, around, a))
			break;
		r = around;
	}
	return r;
}

static const struct vx_wtseen *seen(struct vx_own *o)
{
	pthread_mutex_lock(&o->lock);
	if (!o->seen && o->writer)
		o->seen = vx_wtmem_seen_new(o->writer);
	const struct vx_wtseen *r = o->seen;
	pthread_mutex_unlock(&o->lock);
	return r;
}

int vx_own_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out,
	struct vx_err *err)
{
	struct vx_repo *r = repo_now(s, dir, a);
	struct vx_scan_opts opts = {.threads = 1, .memory = s->memory, .seen = seen(s->own)};
	char why[200] = "the file list cannot be read";
	int res = list_repo(s, s->own, r, repo_path(r, dir, a), &opts, a, out, why, sizeof why);
	if (res)
		return vx_err_set(err, res < 0 ? res : -EIO, "%s: %s", s->root, why);
	vx_files_sort_unique(out);
	return 0;
}

int vx_own_same(struct vx_source *s, const char *dir)
{
	pthread_mutex_lock(&s->own->lock);
	const struct vx_repo *r = s->own->repos[0];
	bool alone = s->own->n == 1;
	pthread_mutex_unlock(&s->own->lock);
	const struct vx_wtseen *known = alone && !*r->prefix ? seen(s->own) : NULL;
	return known ? vx_scan_same(r, dir, known) : 0;
}

int vx_own_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err)
{
	struct vx_arena a = {0};
	const struct vx_repo *r = repo_of(s->own, path);
	char why[200] = "";
	int res = vx_scan_ignored(r, repo_path(r, path, &a), ret, why, sizeof why);
	vx_arena_free(&a);
	return res ? vx_err_set(err, res < 0 ? res : -EIO, "%s: %s", s->root, why) : 0;
}

bool vx_own_tracked(const struct vx_own *o, const char *path)
{
	struct vx_arena a = {0};
	const struct vx_repo *r = repo_of(o, path);
	bool yes = r->whole || entry_of(r, repo_path(r, path, &a)) != NULL;
	vx_arena_free(&a);
	return yes;
}

bool vx_own_recorded(const struct vx_own *o, const char *path, struct vx_recorded *ret)
{
	struct vx_arena a = {0};
	const char *dir = vx_path_dir(&a, path);
	/* a submodule is recorded by the repository around it */
	const struct vx_repo *r = repo_of(o, vx_streq(dir, ".") ? "" : dir);
	const char *p = repo_path(r, path, &a);
	const struct vx_ix_entry *e = entry_of(r, p);
	struct stat st;
	if (e) {
		*ret = (struct vx_recorded){
			.mode = e->mode, .absent = (e->flags & VX_IX_SKIP_WORKTREE) != 0};
		vx_gitindex_oid(&r->index, e, &ret->oid);
		ret->clean = !r->git.weak_stat &&
			     fstatat(r->top_fd, p, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			     vx_gitindex_clean(&r->index, e, &st, r->git.trust_exec);
	}
	vx_arena_free(&a);
	return e != NULL;
}

bool vx_own_has_repository(const struct vx_own *o, const char *path)
{
	for (uint32_t i = 1; i < o->n; i++)
		if (vx_streq(o->repos[i]->mount, path))
			return true;
	return false;
}

bool vx_own_tracks_below(const struct vx_own *o, const char *dir)
{
	struct vx_arena a = {0};
	const struct vx_repo *r = repo_of(o, dir);
	const char *p = repo_path(r, dir, &a), *below = vx_arena_printf(&a, "%s/", p);
	size_t n = strlen(below);
	uint32_t i = vx_gitindex_lower(&r->index, 0, r->index.n, below, n);
	bool yes = vx_own_tracked(o, dir) ||
		   (i < r->index.n && strncmp(r->index.v[i].path, below, n) == 0);
	vx_arena_free(&a);
	return yes;
}

int vx_own_remember(struct vx_source *s, const struct vx_files *table)
{
	struct vx_own *o = s->own;
	if (!o || !o->writer || o->remembered)
		return 0;
	o->remembered = true;
	vx_wtmem_set_attrs(o->writer, &(struct vx_wtmem_attrs){o->attr_places, o->distrust_ns});
	for (uint32_t i = 0; i < table->n; i++)
		if (table->v[i]->hashed)
			vx_wtmem_add_id(o->writer, table->v[i]);
	return vx_wtmem_same(s->memory, o->writer) ? 0
						   : vx_wtmem_store(o->writer, s->keep, s->root);
}

static bool add_dir(void *arg, const char *path, const struct vx_dir_memory *d)
{
	const struct vx_list_facts *to = arg;
	if (d->st.dev != to->dev)
		return false;
	to->directory(to->self, *path ? path : ".", &d->st);
	const char *p = d->names;
	for (uint32_t i = 0; i < d->n_names; i++, p += strlen(p) + 1) {
		unsigned char type = (unsigned char)*p++;
		if (p[0] != '.' || p[1] != 'g')
			continue;
		if (*path && strcmp(p, ".git") == 0)
			return false; /* whether that is a repository depends on what is in it */
		if (type == DT_LNK ||
			(strcmp(p, ".gitignore") != 0 && strcmp(p, ".gitattributes") != 0))
			continue;
		char rel[VX_MAX_PATH];
		if (snprintf(rel, sizeof rel, "%s%s%s", path, *path ? "/" : "", p) >=
			(int)sizeof rel)
			return false;
		to->look(to->self, rel);
	}
	return true;
}

bool vx_own_facts(const struct vx_own *o, const struct vx_list_facts *to)
{
	if (o->n != 1 || !o->writer || *o->repos[0]->prefix || *o->repos[0]->mount)
		return false;
	const struct vx_gitrepo *g = &o->repos[0]->git;
	struct vx_arena a = {0};
	struct stat st;
	const char *const git[] = {vx_arena_printf(&a, "%s/index", g->gitdir),
		vx_arena_printf(&a, "%s/info/exclude", g->commondir),
		vx_arena_printf(&a, "%s/info/attributes", g->commondir), g->excludes, g->attributes,
		g->system_attributes};
	for (size_t i = 0; i < sizeof git / sizeof *git; i++)
		if (git[i])
			to->outside(to->self, git[i]);
	for (uint32_t i = 0; i < g->seen.n; i++)
		to->outside(to->self, g->seen.v[i]);
	const char *dot = vx_arena_printf(&a, "%s/.git", g->worktree);
	if (lstat(dot, &st) < 0 || !S_ISDIR(st.st_mode))
		to->outside(to->self, dot); /* a directory is held by the root's listing */
	vx_arena_free(&a);
	return vx_wtmem_each_dir(o->writer, add_dir, (void *)(uintptr_t)to);
}
