/* File lists from git itself: one process a repository, `git ls-files`, in the workspace's and in
 * those that it records. Used where our own reader does not suffice (file_list.c says why). Ids are
 * taken from the disk, not from git's answer: whether an index entry can be trusted is what the
 * reader was not sure of. */
#include "../git/config.h"
#include "../git/repository.h"
#include "file_list_int.h"

#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_LIST_BYTES ((size_t)4 << 30)
#define MAX_NESTED 32 /* repositories inside repositories */

/* Does the disk tell names apart that differ in case only? Known where a name of ours is there and
 * its other case is not. */
static bool tells_case(const struct vx_source *s)
{
	static const char *const names[][2] = {{".vx", ".VX"}, {".git", ".GIT"},
		{"package.json", "PACKAGE.JSON"}, {"vx.json", "VX.JSON"}};
	struct stat st;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (fstatat(s->root_fd, names[i][0], &st, AT_SYMLINK_NOFOLLOW) == 0)
			return fstatat(s->root_fd, names[i][1], &st, AT_SYMLINK_NOFOLLOW) < 0 &&
			       errno == ENOENT;
	return false;
}

/* The program and its environment, found when first needed; copied out, since threads share them.
 */
static int find_git(struct vx_source *s, struct vx_git *ret, struct vx_err *err)
{
	vx_assert(!s->given); /* its root is no workspace that would keep its own programs out */
	pthread_mutex_lock(&s->lock);
	int r = s->git.path ? 0 : vx_git_find(s->root, &s->a, &s->git, err);
	if (r == 0) {
		s->git.tells_case = tells_case(s);
		s->git.cancel_fd = s->cancel_fd;
		*ret = s->git;
	}
	pthread_mutex_unlock(&s->lock);
	return r;
}

/* The nearest .git from `dir` upwards, where that is a file or a link and so no repository by
 * itself; else NULL. */
static const char *dotgit_file(struct vx_source *s, const char *dir)
{
	for (const char *d = dir;; d = vx_path_dir(&s->a, d)) {
		const char *dot = vx_arena_printf(&s->a, "%s/.git", vx_streq(d, "/") ? "" : d);
		struct stat st;
		if (lstat(dot, &st) == 0)
			return S_ISDIR(st.st_mode) ? NULL : dot;
		if (vx_streq(d, "/"))
			return NULL;
	}
}

static int git_failed(
	struct vx_source *s, const char *cwd, const struct vx_buf *errout, struct vx_err *err)
{
	const char *text = vx_buf_str(errout);
	bool none = strstr(text, "not a git repository") != NULL;
	const char *dot = none || strstr(text, "invalid gitfile") ? dotgit_file(s, cwd) : NULL;
	/* a linked worktree or a submodule: `git init` would not bring its repository back */
	if (dot) {
		vx_err_set(err, -EIO, "%s leads to no git repository: git says: %.*s", dot,
			(int)strcspn(text, "\n"), text);
		vx_err_fix(err,
			"correct the path in it: where a worktree or its repository was moved, run `git worktree repair` in the repository; in a "
			"submodule, `git submodule update --init` in the repository around it");
		return -EIO;
	}
	if (none) {
		vx_err_set(err, -ENOENT, "%s is not in a git repository", s->root);
		vx_err_fix(err,
			"run `git init` there: vx takes the list of files, and what to ignore, from git");
		return -ENOENT;
	}
	vx_err_set(
		err, -EIO, "git ls-files failed in %s: %.*s", cwd, (int)strcspn(text, "\n"), text);
	vx_err_fix(err, "make `git status` work there");
	return -EIO;
}

/* Runs git in cwd (absolute); `out` gets what it prints. */
static int run_git(struct vx_source *s, const char *cwd, const char *const *args,
	struct vx_buf *out, struct vx_buf *errout, int *ret_status, struct vx_err *err)
{
	struct vx_git g;
	int r = find_git(s, &g, err);
	if (r < 0)
		return r;
	atomic_fetch_add(&s->gits, 1);
	return vx_git_run(&g, cwd, args, out, errout, ret_status, err);
}

struct listing {
	struct vx_source *s;
	struct vx_arena *a;
	struct vx_files *out;
	struct vx_err *err;
	struct vx_strlist nested, embedded; /* repositories found; those that nothing records */
	uint64_t started_ns;
	bool first;           /* fill the source's sets too */
	bool trust_exec;      /* core.fileMode of the repository that is being listed */
	const char *last_dir; /* the last directory found to be real ... */
	size_t last_dir_len;
	int last_fd; /* ... opened */
};

/* An O_PATH descriptor of the path's directory, reached without passing through a link; kept, since
 * listings are sorted. */
static int parent_fd(struct listing *l, const char *path)
{
	const char *slash = strrchr(path, '/');
	size_t n = slash ? (size_t)(slash - path) : 0;
	if (!n)
		return l->s->root_fd;
	if (l->last_dir && l->last_dir_len == n && memcmp(l->last_dir, path, n) == 0)
		return l->last_fd;
	vx_close(l->last_fd);
	l->last_dir = vx_arena_strndup(l->a, path, n);
	l->last_dir_len = n;
	l->last_fd = vx_open_beneath(l->s->root_fd, l->last_dir, O_PATH | O_DIRECTORY, 0);
	return l->last_fd;
}

/* "T mode id stage": kept where the disk has no answer. */
static void keep_record(struct vx_source *s, const char *path, const char *rec)
{
	const char *id = rec + strlen("T 100644 ");
	struct vx_recorded r = {
		.mode = (uint32_t)strtoul(rec + 2, NULL, 8), .absent = rec[0] == 'S'};
	r.oid.n = strcspn(id, " ") == 64 ? 32 : 20;
	if (vx_unhex(id, r.oid.n, r.oid.b) < 0 ||
		!vx_map_puts(&s->recorded_at, path, s->n_recorded))
		return;
	if (s->n_recorded == s->cap_recorded) {
		s->cap_recorded = s->cap_recorded ? s->cap_recorded * 2 : 64;
		s->recorded = vx_xrealloc(s->recorded, s->cap_recorded * sizeof r);
	}
	s->recorded[s->n_recorded++] = r;
}

bool vx_git_recorded(const struct vx_source *s, const char *path, struct vx_recorded *ret)
{
	uint32_t i = vx_map_gets(&s->recorded_at, path);
	if (i == VX_MAP_NONE)
		return false;
	*ret = s->recorded[i];
	return true;
}

/* `recorded`: the mode in the index, 0 untracked. Where git does not trust the executable bit it
 * keeps what is recorded, and records 0100644 for what is new. */
static int add_file(struct listing *l, const char *path, uint32_t recorded)
{
	bool tracked = recorded != 0;
	int dir = parent_fd(l, path);
	struct stat st;
	if (l->first && tracked)
		vx_map_puts(&l->s->tracked, path, 1);
	if (dir < 0 || fstatat(dir, vx_path_base(path), &st, AT_SYMLINK_NOFOLLOW) < 0)
		return 0;
	uint32_t mode = vx_git_mode(st.st_mode, l->trust_exec);
	if (!mode)
		return 0;
	if (!l->trust_exec && S_ISREG(st.st_mode) && (recorded & 0111))
		mode = 0100755;
	if (l->out->n >= VX_MAX_FILES)
		return vx_err_set(
			l->err, -EFBIG, "the workspace has more than %u files", VX_MAX_FILES);
	struct vx_file *f = vx_arena_alloc(l->a, sizeof *f);
	f->path = path;
	f->len = (uint32_t)strlen(path);
	f->mode = mode;
	f->tracked = tracked;
	f->modules = !tracked && vx_below_modules(path, f->len);
	vx_fstat_of(&st, &f->st);
	f->looked_ns = l->started_ns;
	vx_files_add(l->out, f);
	return 0;
}

/* One record of `ls-files -z -t -s -o`: "T mode id stage<TAB>path", or "? path"; a path with a
 * trailing slash is an embedded repository. */
static int read_record(struct listing *l, const char *rec, const char *prefix)
{
	bool tracked = rec[0] != '?';
	const char *path = tracked ? strchr(rec, '\t') : rec + 1;
	if (!path || !path[0] || !path[1])
		return vx_err_set(l->err, -EPROTO,
			"git ls-files printed what vx does not understand: %.60s", rec);
	path++;
	size_t n = strlen(path);
	bool repo = tracked ? strncmp(rec + 2, "160000 ", 7) == 0 : path[n - 1] == '/';
	if (repo && strcmp(path, "./") == 0)
		/* the directory git was run in: a submodule without a repository, so it was the one
		 * around it that answered */
		return 0;
	if (n + strlen(prefix) >= VX_MAX_PATH)
		return vx_err_set(l->err, -ENAMETOOLONG,
			"a path is longer than %u bytes: %.200s...", VX_MAX_PATH - 1, path);
	char *full =
		vx_arena_printf(l->a, "%s%.*s", prefix, (int)(repo && !tracked ? n - 1 : n), path);
	if (l->first && tracked && (repo || rec[0] == 'S'))
		keep_record(l->s, full, rec);
	if (!repo)
		return add_file(l, full, tracked ? (uint32_t)strtoul(rec + 2, NULL, 8) : 0);
	size_t full_n = strlen(full);
	bool modules = vx_below_modules(vx_arena_printf(l->a, "%s/.", full), full_n + 2);
	if ((!tracked && modules) || vx_strs_has(vx_strlist_done(&l->nested), full))
		return 0;
	int fd = vx_open_beneath(l->s->root_fd, vx_arena_printf(l->a, "%s/.git", full), O_PATH, 0);
	if (fd >= 0) {
		vx_strlist_add(&l->nested, l->a, full);
		if (!tracked)
			vx_strlist_add(&l->embedded, l->a, full);
	}
	vx_close(fd);
	return 0;
}

/* What the configuration of the repository at cwd says of modes and ids; the last value counts.
 * "name\nvalue", or "name" for a bare one. */
static int ask_config(struct listing *l, const char *cwd, bool main)
{
	static const char *const args[] = {"config", "-z", "--get-regexp",
		"^(core\\.filemode|extensions\\.objectformat)$", NULL};
	struct vx_buf out = VX_BUF(64U << 10);
	int status = 0, r = run_git(l->s, cwd, args, &out, NULL, &status, l->err);
	l->trust_exec = true;
	for (size_t at = 0; r == 0 && at < out.len; at += strlen(out.data + at) + 1) {
		const char *name = out.data + at, *value = strchr(name, '\n');
		if (vx_starts_with(name, "core.filemode"))
			l->trust_exec = !value || vx_gitconf_bool(value + 1) != 0;
		else if (main && value && strcmp(value + 1, "sha256") == 0)
			l->s->kind = VX_OID_SHA256;
	}
	if (r == 0 && main)
		l->s->trust_exec = l->trust_exec;
	vx_buf_free(&out);
	return r;
}

/* Lists `spec` ("" everything) of the repository that `repo` ("" the workspace's own) stands in. */
static int list_repo(struct listing *l, const char *repo, const char *spec)
{
	struct vx_source *s = l->s;
	const char *cwd = *repo ? vx_arena_printf(l->a, "%s/%s", s->root, repo) : s->root;
	const char *prefix = *repo ? vx_arena_printf(l->a, "%s/", repo) : "";
	const char *args[] = {
		"ls-files", "-z", "-t", "-s", "-o", "--exclude-standard", NULL, NULL, NULL};
	if (*spec) {
		args[6] = "--";
		args[7] = vx_arena_printf(l->a, ":(literal)%s", spec);
	}
	struct vx_buf out = VX_BUF(MAX_LIST_BYTES), errout = VX_BUF(64U << 10);
	int status = 0;
	int r = ask_config(l, cwd, l->first && !*repo);
	if (r == 0)
		r = run_git(s, cwd, args, &out, &errout, &status, l->err);
	if (r == 0 && status != 0)
		r = git_failed(s, cwd, &errout, l->err);
	for (size_t at = 0; r == 0 && at < out.len;) {
		r = read_record(l, out.data + at, prefix);
		at += strlen(out.data + at) + 1;
	}
	vx_buf_free(&out);
	vx_buf_free(&errout);
	return r;
}

/* One that nothing records: by our own reader, which runs nothing. */
static int list_embedded(struct listing *l, const char *repo, const char *spec)
{
	uint32_t from = l->out->n;
	int r = vx_own_list_embedded(l->s, repo, spec, l->a, l->out, l->err);
	for (uint32_t i = from; r == 0 && l->first && i < l->out->n; i++)
		if (l->out->v[i]->tracked)
			vx_map_puts(&l->s->tracked, l->out->v[i]->path, 1);
	return r;
}

static int list_all(struct listing *l, const char *repo, const char *spec)
{
	bool embedded = vx_strs_has(vx_strlist_done(&l->s->embedded), repo);
	int r = embedded ? list_embedded(l, repo, spec) : list_repo(l, repo, spec);
	for (uint32_t i = 0; i < l->nested.n && r == 0; i++) {
		const char *dir = l->nested.v[i];
		int depth = 0;
		for (uint32_t k = 0; k < l->nested.n; k++)
			depth += vx_path_below(dir, l->nested.v[k]) != NULL;
		if (depth > MAX_NESTED)
			return vx_err_set(l->err, -ELOOP,
				"%s: repositories are nested more than %d deep", dir, MAX_NESTED);
		r = vx_strs_has(vx_strlist_done(&l->embedded), dir) ? list_embedded(l, dir, "")
								    : list_repo(l, dir, "");
	}
	vx_close(l->last_fd);
	l->last_fd = -1;
	if (r == 0)
		vx_files_sort_unique(l->out);
	return r;
}

int vx_git_open(struct vx_source *s, struct vx_err *err)
{
	struct listing l = {.s = s,
		.a = &s->a,
		.out = &s->first,
		.err = err,
		.first = true,
		.last_fd = -1,
		.started_ns = vx_wall_ns()};
	int r = list_all(&l, "", "");
	if (r < 0)
		return r;
	s->repos = l.nested;
	s->embedded = l.embedded;
	vx_strlist_sort_unique(&s->repos);
	vx_strlist_sort_unique(&s->embedded);
	s->first_ready = s->listed = true;
	return 0;
}

/* An embedded repository may be gone by now: then what it held is of the one around it. */
static bool is_there(const struct vx_source *s, const char *repo)
{
	char path[VX_MAX_PATH];
	return !vx_strs_has(vx_strlist_done(&s->embedded), repo) ||
	       snprintf(path, sizeof path, "%s/%s", s->root, repo) >= (int)sizeof path ||
	       vx_gitrepo_is(path);
}

/* The repository that a path lies in, and the path in it. */
static const char *repo_of(const struct vx_source *s, const char *path, const char **ret_rest)
{
	const char *repo = "";
	*ret_rest = path;
	for (uint32_t i = 0; i < s->repos.n; i++) {
		const char *at = s->repos.v[i], *rest = vx_path_below(path, at);
		if (rest && strlen(at) >= strlen(repo) && is_there(s, at)) {
			repo = at;
			*ret_rest = rest;
		}
	}
	return repo;
}

int vx_git_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out,
	struct vx_err *err)
{
	const char *spec, *repo = repo_of(s, dir, &spec);
	struct listing l = {
		.s = s, .a = a, .out = out, .err = err, .last_fd = -1, .started_ns = vx_wall_ns()};
	return list_all(&l, repo, spec);
}

int vx_git_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err)
{
	struct vx_arena a = {0};
	const char *rest, *repo = repo_of(s, path, &rest);
	const char *args[] = {"check-ignore", "-q", "--no-index", "--", *rest ? rest : ".", NULL};
	struct vx_buf errout = VX_BUF(64U << 10);
	int status = 0;
	if (vx_strs_has(vx_strlist_done(&s->embedded), repo)) {
		vx_arena_free(&a);
		return vx_own_ignored_embedded(s, repo, rest, ret, err);
	}
	int r = run_git(s, *repo ? vx_arena_printf(&a, "%s/%s", s->root, repo) : s->root, args,
		NULL, &errout, &status, err);
	if (r == 0 && status <= 1)
		*ret = status == 0;
	else if (r == 0)
		r = vx_err_set(err, -EIO, "git check-ignore failed on %s: %.*s", path,
			(int)strcspn(vx_buf_str(&errout), "\n"), vx_buf_str(&errout));
	vx_buf_free(&errout);
	vx_arena_free(&a);
	return r;
}

int vx_git_tracks_below(struct vx_source *s, const char *dir, struct vx_err *err)
{
	struct vx_arena a = {0};
	const char *args[] = {
		"ls-files", "-z", "--", vx_arena_printf(&a, ":(literal)%s", dir), NULL};
	struct vx_buf out = VX_BUF(MAX_LIST_BYTES), errout = VX_BUF(64U << 10);
	int status = 0, r = run_git(s, s->root, args, &out, &errout, &status, err);
	if (r == 0)
		r = status ? git_failed(s, s->root, &errout, err) : out.len != 0;
	vx_buf_free(&out);
	vx_buf_free(&errout);
	vx_arena_free(&a);
	return r;
}
