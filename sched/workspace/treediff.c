/* See treediff.h. A state is a table of files sorted by path (struct vx_files); two tables are
 * compared by one walk over both. */
#include "treediff.h"

#include "../git/ignore.h"
#include "../worktree/file_list.h"

#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#define MAX_TREE_BYTES ((size_t)4 << 30)
#define MAX_ATTRIBUTES_BYTES (100U << 20)
#define MAX_NESTED 32 /* submodules inside submodules */
#define GITLINK 0160000U

struct differ {
	const struct vx_git *g;
	const char *root;
	struct vx_arena *a;
	struct vx_err *err;
	struct vx_source *source; /* NULL: not opened yet */
	struct vx_files now;      /* the worktree, once the source is open */
	struct vx_strlist read;   /* repositories of which a tree was read */
	/* submodules of which a commit could not be read: all in them counts as changed */
	struct vx_strlist opaque;
	struct vx_strlist *paths;
};

static int open_source(struct differ *d)
{
	if (d->source)
		return 0;
	int r = vx_source_open(d->root, 0, -1, NULL, &d->source, d->err);
	return r < 0 ? r : vx_source_list(d->source, "", d->a, &d->now, d->err);
}

/* ---- the tree of a commit ---- */

static bool left_out(const char *path)
{
	for (const char *p = path; *p; p += *p == '/') {
		size_t n = strcspn(p, "/");
		if (n == 3 && memcmp(p, ".vx", 3) == 0)
			return true;
		p += n;
	}
	return false;
}

static bool parse_oid(const char *hex, size_t n, struct vx_oid *ret)
{
	*ret = (struct vx_oid){.n = (uint8_t)(n / 2)};
	return (n == 40 || n == 64) && vx_unhex(hex, n / 2, ret->b) == 0;
}

/* "mode type id<TAB>path". NULL: not understood. */
static struct vx_file *parse_entry(struct differ *d, const char *rec, const char *prefix)
{
	const char *tab = strchr(rec, '\t'), *type = strchr(rec, ' '),
		   *id = type ? strchr(type + 1, ' ') : NULL;
	struct vx_file *f = vx_arena_alloc(d->a, sizeof *f);
	*f = (struct vx_file){.tracked = true, .has_oid = true};
	if (!tab || !id || id > tab || !parse_oid(id + 1, (size_t)(tab - id - 1), &f->oid))
		return NULL;
	f->mode = (uint32_t)strtoul(rec, NULL, 8);
	if (f->mode == 0100664)
		f->mode = 0100644;
	f->path = vx_arena_printf(d->a, "%s%s", prefix, tab + 1);
	f->len = (uint32_t)strlen(f->path);
	return f;
}

static int tree_failed(struct differ *d, const char *commit, const struct vx_buf *errout)
{
	/* warnings come first */
	const char *said = vx_buf_str(errout), *fatal = strstr(said, "fatal: ");
	said = fatal ? fatal + strlen("fatal: ") : said;
	vx_err_set(d->err, -EIO, "git ls-tree of %.12s failed: %.*s", commit,
		(int)strcspn(said, "\n"), said);
	return vx_err_fix(d->err,
		"in a partial clone git must have fetched that commit's trees: git ls-tree -r %.12s",
		commit);
}

static int read_tree(
	struct differ *d, const char *dir, const char *commit, int depth, struct vx_files *out);

/* A submodule: the files of the commit that it is at, where its repository is here and has that
 * commit. git is started only in one that the index around it records. */
static int read_submodule(struct differ *d, struct vx_file *link, int depth, struct vx_files *out)
{
	struct vx_recorded now;
	char hex[65];
	int r = open_source(d);
	if (r < 0)
		return r;
	if (vx_source_recorded(d->source, link->path, &now) && now.mode == GITLINK &&
		vx_source_has_repository(d->source, link->path)) {
		vx_hex(link->oid.b, link->oid.n, hex);
		r = depth < MAX_NESTED ? read_tree(d, link->path, hex, depth + 1, out) : 1;
		if (r <= 0)
			return r;
		vx_strlist_add(&d->opaque, d->a, link->path);
	}
	vx_files_add(out, link);
	return 0;
}

/* Appends what `commit` of the repository at `dir` ("" the workspace's own) holds. 1: it cannot be
 * read there, of a submodule alone. */
static int read_tree(
	struct differ *d, const char *dir, const char *commit, int depth, struct vx_files *out)
{
	const char *const args[] = {"ls-tree", "-r", "-z", commit, NULL};
	const char *cwd = *dir ? vx_arena_printf(d->a, "%s/%s", d->root, dir) : d->root,
		   *prefix = *dir ? vx_arena_printf(d->a, "%s/", dir) : "";
	struct vx_buf text = VX_BUF(MAX_TREE_BYTES), errout = VX_BUF(64U << 10);
	int status = 0, r = vx_git_run(d->g, cwd, args, &text, &errout, &status, d->err);
	if (r == 0 && status)
		r = *dir ? 1 : tree_failed(d, commit, &errout);
	else if (r == 0)
		vx_strlist_add(&d->read, d->a, dir);
	for (size_t at = 0; r == 0 && at < text.len; at += strlen(text.data + at) + 1) {
		struct vx_file *f = parse_entry(d, text.data + at, prefix);
		if (!f)
			r = vx_err_set(d->err, -EPROTO,
				"git ls-tree printed what vx does not understand: %.60s",
				text.data + at);
		else if (out->n >= VX_MAX_FILES)
			r = vx_err_set(d->err, -EFBIG, "%.12s has more than %u files", commit,
				VX_MAX_FILES);
		else if (f->mode == GITLINK)
			r = read_submodule(d, f, depth, out);
		else if (!left_out(f->path))
			vx_files_add(out, f);
	}
	vx_buf_free(&text);
	vx_buf_free(&errout);
	return r;
}

/* ---- the worktree ---- */

struct hashing {
	struct differ *d;
	struct vx_file **v;
};

static void hash_one(void *arg, uint32_t i)
{
	struct hashing *h = arg;
	struct vx_source *s = h->d->source;
	if (vx_identity_take(vx_source_fd(s), h->v[i]->path, vx_source_kind(s),
		    vx_source_trusts_exec(s), NULL, h->v[i]) == 0)
		h->v[i]->has_oid = true;
}

/* Gives an id to each file that `was` has too. One that cannot be read stays without. */
static void identify(struct differ *d, const struct vx_files *was)
{
	struct vx_files todo = {0};
	for (uint32_t i = 0; i < d->now.n; i++)
		if (!d->now.v[i]->has_oid && vx_files_find(was, d->now.v[i]->path))
			vx_files_add(&todo, d->now.v[i]);
	struct hashing h = {d, todo.v};
	vx_parallel(todo.n, todo.n < 32 ? 1 : vx_cpus(), 8, hash_one, &h);
	vx_files_free(&todo);
}

static bool same_file(const struct vx_file *x, const struct vx_file *y)
{
	return x->mode == y->mode && x->has_oid && y->has_oid && x->oid.n == y->oid.n &&
	       memcmp(x->oid.b, y->oid.b, x->oid.n) == 0;
}

/* The index has an answer where the bytes on disk have none: of a file that a sparse checkout left
 * out, of a submodule that is not checked out, of a file that attributes convert. */
static bool index_says_same(struct differ *d, const struct vx_file *was, const struct vx_file *now)
{
	struct vx_recorded r;
	if (!d->source || !vx_source_recorded(d->source, was->path, &r) || r.mode != was->mode ||
		r.oid.n != was->oid.n || memcmp(r.oid.b, was->oid.b, r.oid.n) != 0)
		return false;
	return now ? r.clean : r.absent || r.mode == GITLINK;
}

/* ---- two states ---- */

/* The names of the first list go with the source. */
static void changed(struct differ *d, const char *path)
{
	vx_strlist_add(d->paths, d->a, vx_arena_strdup(d->a, path));
}

static void compare(
	struct differ *d, const struct vx_files *was, const struct vx_files *now, bool worktree)
{
	uint32_t i = 0, k = 0;
	while (i < was->n || k < now->n) {
		const struct vx_file *x = i < was->n ? was->v[i] : NULL,
				     *y = k < now->n ? now->v[k] : NULL;
		int order = !x ? 1 : !y ? -1 : strcmp(x->path, y->path);
		const char *path = order <= 0 ? x->path : y->path;
		bool same = order == 0 && same_file(x, y);
		if (!same && worktree && order <= 0)
			same = index_says_same(d, x, order == 0 ? y : NULL);
		if (!same && !(order > 0 && y->modules) && (order <= 0 || !left_out(path)))
			changed(d, path);
		i += order <= 0;
		k += order >= 0;
	}
}

static bool is_attributes(const char *path)
{
	return vx_streq(vx_path_base(path), ".gitattributes");
}

/* The repository that a path of a tree lies in: the innermost of those that a tree was read of. */
static const char *repository_of(const struct differ *d, const char *path)
{
	const char *best = "";
	for (uint32_t i = 0; i < d->read.n; i++)
		if (vx_path_below(path, d->read.v[i]) && strlen(d->read.v[i]) > strlen(best))
			best = d->read.v[i];
	return best;
}

/* What an attributes file converts, in front of `up`. One that cannot be read converts everything
 * below it. */
static const struct vx_rules *rules_of(struct differ *d, const struct vx_file *f, bool on_disk,
	const char *dir, const struct vx_rules *up)
{
	struct vx_buf text = VX_BUF(MAX_ATTRIBUTES_BYTES);
	const char *repo = repository_of(d, f->path);
	char hex[65];
	int status = 0, r;
	vx_hex(f->oid.b, f->oid.n, hex);
	if (on_disk)
		r = vx_read_file(vx_source_fd(d->source), f->path, &text);
	else
		r = vx_git_run(d->g, vx_path_join(d->a, d->root, *repo ? repo : "."),
			(const char *const[]){"cat-file", "blob", hex, NULL}, &text, NULL, &status,
			NULL);
	const struct vx_rules *rules =
		r || status ? vx_attr_parse("* text", 6, dir, up, d->a)
			    : vx_attr_parse(vx_buf_str(&text), text.len, dir, up, d->a);
	vx_buf_free(&text);
	return rules;
}

/* Attributes that changed: of the files below, those that the old or the new ones convert. */
static void spread_attributes(struct differ *d, const char *path, const struct vx_files *was,
	const struct vx_files *now, bool worktree)
{
	const struct vx_files *const sides[] = {was, now};
	const char *dir = vx_path_dir(d->a, path);
	const struct vx_rules *rules = NULL;
	if (vx_streq(dir, "."))
		dir = "";
	for (int i = 0; i < 2; i++) {
		const struct vx_file *f = vx_files_find(sides[i], path);
		if (f)
			rules = rules_of(d, f, worktree && i == 1, dir, rules);
	}
	for (int i = 0; rules && i < 2; i++) {
		uint32_t lo, hi;
		vx_files_below(sides[i], dir, &lo, &hi);
		for (uint32_t k = lo; k < hi; k++) {
			const struct vx_file *f = sides[i]->v[k];
			size_t base_at = (size_t)(vx_path_base(f->path) - f->path);
			if (!f->modules && vx_attr_match(rules, f->path, f->len, base_at))
				changed(d, f->path);
		}
	}
}

static void spread(
	struct differ *d, const struct vx_files *was, const struct vx_files *now, bool worktree)
{
	uint32_t direct = d->paths->n;
	for (uint32_t i = 0; i < direct; i++)
		if (is_attributes(d->paths->v[i]))
			spread_attributes(d, d->paths->v[i], was, now, worktree);
	for (uint32_t i = 0; i < d->opaque.n; i++) {
		const char *dir = d->opaque.v[i];
		const struct vx_file *x = vx_files_find(was, dir), *y = vx_files_find(now, dir);
		uint32_t lo, hi;
		if (!worktree && x && y && same_file(x, y))
			continue;
		vx_files_below(&d->now, dir, &lo, &hi);
		changed(d, dir);
		for (uint32_t k = lo; k < hi; k++)
			changed(d, d->now.v[k]->path);
	}
}

int vx_treediff(const struct vx_git *g, const char *root, const char *from, const char *to,
	struct vx_arena *a, struct vx_strlist *paths, struct vx_err *err)
{
	struct differ d = {.g = g, .root = root, .a = a, .err = err, .paths = paths};
	struct vx_files was = {0}, then = {0};
	int r = to ? 0 : open_source(&d);
	if (r == 0)
		r = read_tree(&d, "", from, 0, &was);
	if (r == 0 && to)
		r = read_tree(&d, "", to, 0, &then);
	if (r == 0) {
		const struct vx_files *now = to ? &then : &d.now;
		vx_files_sort_unique(&was);
		if (to)
			vx_files_sort_unique(&then);
		else
			identify(&d, &was);
		compare(&d, &was, now, !to);
		spread(&d, &was, now, !to);
	}
	vx_files_free(&was);
	vx_files_free(&then);
	vx_files_free(&d.now);
	vx_source_close(d.source);
	return r;
}
