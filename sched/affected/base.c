/* The files of the commit, from git's trees. See base.h. */
#include "base.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_TREE_BYTES ((size_t)1 << 30) /* what `git ls-tree` prints of one repository */
#define MAX_NESTED 32U                   /* submodules inside submodules */

void base_cannot_tell(struct base *b, const char *why)
{
	if (!b->untold)
		b->untold = why;
}

const char *base_said(const struct base *b, const struct vx_err *err)
{
	const char *at = b->room ? strstr(err->what, b->room) : NULL;
	size_t n = at ? strlen(b->room) : 0;

	if (!at)
		return vx_arena_strdup(b->a, err->what);
	return vx_arena_printf(
		b->a, "%.*s%s%s", (int)(at - err->what), err->what, b->now->root, at + n);
}

bool base_holds(const struct vx_files *t, const char *path)
{
	uint32_t lo, hi;

	if (vx_files_find(t, path))
		return true;
	vx_files_below(t, path, &lo, &hi);
	return lo < hi;
}

/* ---- trees ---- */

static int list_repo(struct base *b, const char *dir, const char *commit, uint32_t depth);

/* A submodule. Where it is not checked out it has no files, then as now. git is started only in one
 * that the index around it records. */
static int list_submodule(struct base *b, const char *dir, const char *commit, uint32_t depth)
{
	struct vx_recorded now;

	if (!vx_source_has_repository(b->now_source, dir))
		return 0;
	if (!vx_source_recorded(b->now_source, dir, &now) || now.mode != 0160000)
		base_cannot_tell(
			b, vx_arena_printf(b->a, "%s is a submodule in %s, and is none now", dir,
				   b->since));
	else if (depth == MAX_NESTED)
		base_cannot_tell(
			b, vx_arena_printf(b->a, "%s: submodules are nested more than %u deep", dir,
				   MAX_NESTED));
	else
		return list_repo(b, dir, commit, depth + 1);
	return 0;
}

/* Names that no checkout has: a tree that holds one was made by hand. */
static bool is_odd(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");
		if (n == 0 || (n == 1 && *p == '.') || (n == 2 && !memcmp(p, "..", 2)) ||
			(n == 4 && !strncasecmp(p, ".git", 4)))
			return true;
		p += n;
		if (!*p)
			return false;
	}
}

/* "MODE TYPE ID<TAB>PATH" */
static int read_entry(
	struct base *b, const char *entry, const char *dir, uint32_t repo, uint32_t depth)
{
	const char *tab = strchr(entry, '\t'), *id = tab;
	uint32_t mode = (uint32_t)strtoul(entry, NULL, 8);

	while (id && id > entry && id[-1] != ' ')
		id--;
	if (!id || id == entry || is_odd(tab + 1)) {
		base_cannot_tell(
			b, vx_arena_printf(b->a, "%s holds what vx does not understand: %.80s",
				   b->since, entry));
		return 0;
	}
	size_t hex = (size_t)(tab - id);
	const char *path = *dir ? vx_arena_printf(b->a, "%s/%s", dir, tab + 1)
				: vx_arena_strdup(b->a, tab + 1);
	if (strlen(path) >= VX_MAX_PATH) {
		base_cannot_tell(b, vx_arena_printf(b->a, "%s has a path of more than %u bytes",
					    b->since, VX_MAX_PATH - 1));
		return 0;
	}
	if (mode == 0160000)
		return list_submodule(b, path, vx_arena_strndup(b->a, id, hex), depth);
	struct tree_file *t = vx_arena_alloc(b->a, sizeof *t);
	t->repo = repo;
	t->f = (struct vx_file){.path = path,
		.len = (uint32_t)strlen(path),
		.mode = mode == 0120000 ? mode
			: mode & 0111   ? 0100755
					: 0100644,
		.tracked = true,
		.has_oid = true,
		.oid.n = (uint8_t)(hex / 2)};
	if (hex != 2 * (size_t)b->kind || vx_unhex(id, hex / 2, t->f.oid.b) < 0)
		base_cannot_tell(b, vx_arena_printf(b->a, "%s has object names of another kind",
					    *dir ? dir : b->since));
	vx_files_add(&b->files, &t->f);
	return 0;
}

static int list_repo(struct base *b, const char *dir, const char *commit, uint32_t depth)
{
	const char *cwd = *dir ? vx_arena_printf(b->a, "%s/%s", b->now->root, dir) : b->now->root;
	const char *const args[] = {"ls-tree", "-r", "-z", commit, NULL};
	struct vx_buf out = VX_BUF(MAX_TREE_BYTES), errout = VX_BUF(64U << 10);
	uint32_t repo = b->repos.n;
	int status = 0;

	vx_strlist_add(&b->repos, b->a, dir);
	int r = vx_git_run(&b->git, cwd, args, &out, &errout, &status, b->err);
	if (r == 0 && status != 0 && *dir)
		base_cannot_tell(
			b, vx_arena_printf(b->a,
				   "the submodule %s does not have its commit of %s, %.12s", dir,
				   b->since, commit));
	else if (r == 0 && status != 0)
		base_cannot_tell(
			b, vx_arena_printf(b->a, "git cannot list %s: %.*s", b->since,
				   (int)strcspn(vx_buf_str(&errout), "\n"), vx_buf_str(&errout)));
	for (size_t at = 0; r == 0 && status == 0 && at < out.len;) {
		r = read_entry(b, out.data + at, dir, repo, depth);
		at += strlen(out.data + at) + 1;
	}
	vx_buf_free(&out);
	vx_buf_free(&errout);
	return r;
}

int base_list(struct base *b)
{
	int r = list_repo(b, "", b->commit, 0);

	vx_files_sort_unique(&b->files);
	return r;
}

int base_text(struct base *b, const struct vx_file *f, struct vx_buf *out)
{
	const struct tree_file *t = (const struct tree_file *)f;
	struct vx_buf name = VX_BUF(256), answer = VX_BUF(BASE_MAX_BYTES);
	char hex[65];

	vx_hex(f->oid.b, f->oid.n, hex);
	vx_buf_printf(&name, "%s\n", hex);
	int r = vx_git_blobs(&b->git, vx_path_join(b->a, b->now->root, b->repos.v[t->repo]), &name,
		&answer, b->err);
	const char *nl = r == 0 ? memchr(answer.data, '\n', answer.len) : NULL;
	unsigned long long size = 0;
	if (r == 0 && (!nl || sscanf(answer.data, "%*64s blob %llu", &size) != 1 ||
			      (size_t)(nl + 1 - answer.data) + size >= answer.len))
		base_cannot_tell(b,
			vx_arena_printf(b->a, "%s of %s is not in this clone", f->path, b->since));
	else if (r == 0)
		vx_buf_add(out, nl + 1, size);
	vx_buf_free(&name);
	vx_buf_free(&answer);
	return r;
}
