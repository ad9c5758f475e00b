/* git as the oracle: a random worktree, random edits, and after each one our list of files against
 * what git says.
 *
 * Compared after every step: the set of files (tracked ones on disk, untracked ones not ignored),
 * which tracked ones differ from the index, every id with the bytes on disk and with git
 * hash-object; a random directory listed alone with its part of the whole, also later, when the
 * tree has changed under a source that is open; now and then ignored paths with git check-ignore.
 * The seed of a failure is printed: VX_SEED=N VX_STEPS=N repeat it. */
#ifndef GIT_ORACLE_H
#define GIT_ORACLE_H

#include "vxtest.h"

#include "../../sched/worktree/scan.h"
#include "../../sched/worktree/file_list.h"

#include "vx/map.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/spawn.h"

#include <errno.h>
#include <ftw.h>
#include <sys/time.h>

struct go {
	char *top; /* temporary directory: repo, home */
	char *repo;
	uint64_t rng;
	uint32_t step, own, gits, proven;
	struct vx_buf out;
	char *memory; /* what was remembered */
	size_t memory_n;
	bool attributes; /* edits of attributes too; other seeds compare what has changed instead */
	/* only edits of the worktree itself, not of what is read when a source is opened */
	bool plain;
	char last[256]; /* the last edit, for messages */
};

#include "git_oracle_edit.h"

/* What git says, as one sorted list of lines "path" (workspace-relative). */
struct go_want {
	struct vx_arena a;
	struct vx_strlist files; /* what should be listed */
	/* tracked files that differ from the index, of those that can be judged */
	struct vx_strlist changed;
	struct vx_strlist judged;  /* tracked files whose difference can be judged */
	struct vx_strlist entries; /* "mode id" of each in judged, same order */
};

static bool go_real_dirs(struct go *g, const char *rel)
{
	int fd = open(g->repo, O_PATH | O_CLOEXEC);
	int f = vx_open_beneath(fd, rel, O_PATH | O_NOFOLLOW, 0);
	struct stat st;
	bool yes = f >= 0 && fstat(f, &st) == 0 && (S_ISREG(st.st_mode) || S_ISLNK(st.st_mode));
	vx_close(f);
	vx_close(fd);
	return yes;
}

static bool go_left_out(const char *path, bool tracked)
{
	char p[PATH_MAX];
	snprintf(p, sizeof p, "/%s", path);
	return !tracked && strstr(p, "/node_modules/") != NULL;
}

static bool go_ask(struct go *g, struct go_want *w, const char *sub, int depth);

static bool go_ask_nested(struct go *g, struct go_want *w, const char *full, int depth)
{
	char dot[PATH_MAX];
	snprintf(dot, sizeof dot, "%s/.git", full);
	if (access(go_abs(g, dot), F_OK) == 0 && depth < 8 &&
		go_git_in(g, full, (const char *const[]){"rev-parse", "--show-toplevel", NULL}) ==
			0) {
		char *nl = strchr(vx_buf_str(&g->out), '\n');
		if (nl &&
			strncmp(vx_buf_str(&g->out), go_abs(g, full),
				(size_t)(nl - vx_buf_str(&g->out))) == 0 &&
			strlen(go_abs(g, full)) == (size_t)(nl - vx_buf_str(&g->out)))
			return go_ask(g, w, full, depth + 1);
	}
	return true;
}

static bool go_ask(struct go *g, struct go_want *w, const char *sub, int depth)
{
	const char *prefix = *sub ? vx_arena_printf(&w->a, "%s/", sub) : "";
	struct vx_strlist nested = {0};
	struct vx_map status = {0};
	if (go_git_in(g, sub,
		    (const char *const[]){"-c", "core.quotePath=false", "status", "--porcelain=v2",
			    "-z", "-uall", "--ignore-submodules=none", "--no-renames", NULL}) != 0)
		/* a submodule whose repository is broken: git gives up, we list its files */
		return false;
	char *text = vx_arena_dup(&w->a, vx_buf_str(&g->out), g->out.len + 1);
	for (char *p = text; p < text + g->out.len; p += strlen(p) + 1) {
		if (p[0] == '?') {
			char *path = p + 2;
			size_t n = strlen(path);
			const char *inside = vx_arena_printf(&w->a, "%s%sx", prefix, path);
			if (path[n - 1] == '/' && go_left_out(inside, false)) {
				continue;
			} else if (path[n - 1] == '/') {
				vx_strlist_add(&nested, &w->a,
					vx_arena_printf(&w->a, "%s%.*s", prefix, (int)n - 1, path));
			} else if (!go_left_out(
					   vx_arena_printf(&w->a, "%s%s", prefix, path), false)) {
				vx_strlist_add(&w->files, &w->a,
					vx_arena_printf(&w->a, "%s%s", prefix, path));
			}
			continue;
		}
		const char *path = p; /* "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2
					 h3 path" */
		for (int i = p[0] == 'u' ? 10 : 8; i; i--)
			path = strchr(path, ' ') + 1;
		vx_map_set(&status, path, strlen(path),
			p[0] == 'u' ? 1000 : (uint32_t)(unsigned char)p[3]);
	}
	if (go_git_in(g, sub, (const char *const[]){"ls-files", "-z", "-s", "-v", NULL}) != 0)
		fail_msg("step %u: git ls-files failed", g->step);
	text = vx_arena_dup(&w->a, vx_buf_str(&g->out), g->out.len + 1);
	const char *before = "";
	for (char *p = text; p < text + g->out.len; p += strlen(p) + 1) {
		char *path = strchr(p, '\t') + 1;
		const char *full = vx_arena_printf(&w->a, "%s%s", prefix, path);
		if (strncmp(p + 2, "160000", 6) == 0) {
			vx_strlist_add(&nested, &w->a, full);
			continue;
		}
		if (strcmp(before, full) != 0 && go_real_dirs(g, full))
			vx_strlist_add(&w->files, &w->a, full);
		before = full;
		uint32_t y = vx_map_gets(&status, path);
		if (p[0] != 'H' || y == 1000 || y == 'A' || depth)
			continue; /* assumed, skipped, in conflict, intended: not to be judged */
		vx_strlist_add(&w->judged, &w->a, full);
		vx_strlist_add(&w->entries, &w->a,
			vx_arena_printf(
				&w->a, "%.6s %.*s", p + 2, (int)strcspn(p + 9, " "), p + 9));
		if (y != VX_MAP_NONE && y != '.')
			vx_strlist_add(&w->changed, &w->a, full);
	}
	vx_map_free(&status);
	bool all = true;
	for (uint32_t i = 0; i < nested.n; i++)
		all &= go_ask_nested(g, w, nested.v[i], depth);
	return all;
}

__attribute__((format(printf, 2, 3), noreturn)) static void go_fail(
	struct go *g, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "# VX_STEPS=%u, last edit: %s, tree kept in %s\n", g->step, g->last,
		g->top);
	fail_msg("step %u: %s", g->step, text);
	abort();
}

static void go_compare_sets(struct go *g, const struct vx_files *t, struct go_want *w)
{
	vx_strlist_sort_unique(&w->files);
	uint32_t i = 0, j = 0;
	while (i < t->n || j < w->files.n) {
		int c = i == t->n ? 1 : j == w->files.n ? -1 : strcmp(t->v[i]->path, w->files.v[j]);
		if (c < 0)
			go_fail(g, "listed, but not by git: \"%s\"", t->v[i]->path);
		if (c > 0)
			go_fail(g, "not listed: \"%s\"", w->files.v[j]);
		i++, j++;
	}
}

static void go_compare_ids(struct go *g, struct vx_source *s, struct vx_files *t)
{
	for (uint32_t i = 0; i < t->n; i++) {
		struct vx_file now = {0}, *f = t->v[i];
		if (vx_identity_take(
			    vx_source_fd(s), f->path, vx_source_kind(s), true, NULL, &now) < 0)
			go_fail(g, "\"%s\" cannot be read", f->path);
		if (f->has_oid && (memcmp(&f->oid, &now.oid, sizeof now.oid) != 0 ||
					  (f->mode ^ now.mode) & 0170000))
			go_fail(g, "\"%s\" has a wrong id%s", f->path,
				f->hashed ? " from memory" : " from the index");
		if (!f->has_oid) {
			f->oid = now.oid;
			f->has_oid = f->hashed = true;
			f->looked_ns = now.looked_ns;
			f->st = now.st;
		}
	}
}

/* Every id against git's own, of plain files: git reads through links. */
static void go_compare_hashes(struct go *g, const struct vx_files *t)
{
	const char *list = vxt_path(g->top, "paths"), *out;
	FILE *f = fopen(list, "we");
	char cmd[1024], hex[65];
	assert_non_null(f);
	for (uint32_t i = 0; i < t->n; i++) {
		if (!S_ISREG(t->v[i]->mode))
			continue;
		fputc('"', f);
		for (const char *p = t->v[i]->path; *p; p++)
			if (*p == '\n')
				fputs("\\n", f);
			else
				fprintf(f, *p == '"' || *p == '\\' ? "\\%c" : "%c", *p);
		fputs("\"\n", f);
	}
	assert_int_equal(fclose(f), 0);
	snprintf(cmd, sizeof cmd, "cd '%s' && git hash-object --no-filters --stdin-paths <'%s'",
		g->repo, list);
	if (vxt_sh(cmd, &out) != 0)
		go_fail(g, "git hash-object failed");
	for (uint32_t i = 0; i < t->n; i++) {
		if (!S_ISREG(t->v[i]->mode))
			continue;
		vx_hex(t->v[i]->oid.b, t->v[i]->oid.n, hex);
		if (strncmp(out, hex, strlen(hex)) != 0 || out[strlen(hex)] != '\n')
			go_fail(g, "\"%s\" is %s, and for git %.64s", t->v[i]->path, hex, out);
		out += strlen(hex) + 1;
	}
}

/* Not where attributes are: what they touch differs from the index in a way that only git knows. */
static void go_compare_changed(struct go *g, struct vx_files *t, struct go_want *w)
{
	struct vx_strs changed = vx_strlist_done(&w->changed);
	struct vx_map set = {0};
	for (uint32_t i = 0; i < changed.n; i++)
		vx_map_puts(&set, changed.v[i], 1);
	for (uint32_t i = 0; i < w->judged.n; i++) {
		const struct vx_file *f = vx_files_find(t, w->judged.v[i]);
		char text[128] = "", hex[65];
		if (f) {
			vx_hex(f->oid.b, f->oid.n, hex);
			snprintf(text, sizeof text, "%06o %s", f->mode, hex);
		}
		bool ours = strcmp(text, w->entries.v[i]) != 0,
		     gits = vx_map_gets(&set, w->judged.v[i]) != VX_MAP_NONE;
		if (ours != gits)
			go_fail(g, "\"%s\" is %schanged for git: index %s, disk %s", w->judged.v[i],
				gits ? "" : "not ", w->entries.v[i], text);
	}
	vx_map_free(&set);
}

static void go_drop_modules(struct vx_files *t)
{
	uint32_t kept = 0;
	for (uint32_t i = 0; i < t->n; i++)
		if (!t->v[i]->modules)
			t->v[kept++] = t->v[i];
	t->n = kept;
}

static void go_compare_part(
	struct go *g, struct vx_source *s, const char *dir, const struct vx_files *all)
{
	struct vx_arena a = {0};
	struct vx_files part = {0};
	struct vx_err err = {0};
	if (vx_source_list(s, dir, &a, &part, &err) < 0)
		go_fail(g, "part \"%s\": %s", dir, err.what);
	uint32_t lo, hi;
	go_drop_modules(&part);
	vx_files_below(all, dir, &lo, &hi);
	struct vx_file *self = *dir ? vx_files_find(all, dir) : NULL;
	if (part.n != hi - lo + (self != NULL))
		go_fail(g, "part \"%s\" holds %u files, the whole %u there", dir, part.n,
			hi - lo + (self != NULL));
	for (uint32_t i = 0; i < part.n; i++) {
		const struct vx_file *f = part.v[i],
				     *in_all = self && i == 0 ? self
							      : all->v[lo + i - (self != NULL)];
		if (strcmp(f->path, in_all->path) != 0)
			go_fail(g, "part \"%s\": \"%s\"", dir, f->path);
		if (f->has_oid && in_all->has_oid &&
			memcmp(&f->oid, &in_all->oid, sizeof f->oid) != 0)
			go_fail(g, "part \"%s\": \"%s\" has another id", dir, f->path);
	}
	vx_files_free(&part);
	vx_arena_free(&a);
}

/* What is proven to be listed as at first must be. */
static void go_compare_same(struct go *g, struct vx_source *s, const char *dir,
	const struct vx_files *first, const struct vx_files *now)
{
	uint32_t lo, hi, lo_now, hi_now;
	int same = vx_source_same(s, dir);
	if (!same)
		return;
	vx_files_below(first, dir, &lo, &hi);
	vx_files_below(now, dir, &lo_now, &hi_now);
	if (same != VX_SAME) {
		if (same == VX_SAME_GONE && vx_files_find(now, dir))
			go_fail(g, "\"%s\" was said to be gone", dir);
		if (hi_now > lo_now || (same == VX_SAME_FILE && vx_files_find(first, dir) &&
					       !vx_files_find(now, dir)))
			go_fail(g, "\"%s\" was said to be a file that is listed as before", dir);
		return;
	}
	g->proven++;
	if (hi - lo != hi_now - lo_now)
		go_fail(g, "\"%s\" was said to hold the same, and holds %u files in place of %u",
			dir, hi_now - lo_now, hi - lo);
	for (uint32_t i = 0; i < hi - lo; i++)
		if (strcmp(first->v[lo + i]->path, now->v[lo_now + i]->path) != 0)
			go_fail(g, "\"%s\" was said to hold the same, and holds \"%s\"", dir,
				now->v[lo_now + i]->path);
}

/* A source that stays open while the tree changes, as in a run: what it lists then is what one
 * opened then lists. */
static void go_compare_later(struct go *g, struct vx_source *s, const struct vx_files *first)
{
	g->plain = true;
	for (int round = 0; round < 3; round++) {
		struct vx_source *fresh = NULL;
		struct vx_files t = {0};
		struct vx_arena a = {0};
		struct vx_err err = {0};
		for (uint32_t n = go_rand(g, 3); n; n--)
			go_edit(g);
		if (go_rand(g, 2))
			go_edit_ignore(g);
		if (vx_source_open(g->repo, 1, -1, NULL, &fresh, &err) < 0 ||
			vx_source_list(fresh, "", &a, &t, &err) < 0)
			go_fail(g, "later: %s", err.what);
		go_drop_modules(&t);
		for (int i = 0; i < 6 && strcmp(vx_source_why(fresh), "index") == 0; i++) {
			const char *dir = i ? go_pick_dir(g) : "";
			go_compare_part(g, s, dir, &t);
			go_compare_same(g, s, dir, first, &t);
			go_compare_same(g, s, go_pick(g), first, &t);
		}
		vx_files_free(&t);
		vx_source_close(fresh);
		vx_arena_free(&a);
	}
	g->plain = false;
}

static bool go_in_nested(struct go *g, const char *p)
{
	char dir[512], dot[600];
	/* itself too: what is listed by its own index is not ignored, whatever a rule of the outer
	 * one says */
	snprintf(dir, sizeof dir, "%s/", p);
	for (char *slash; (slash = strrchr(dir, '/')) != NULL;) {
		*slash = '\0';
		snprintf(dot, sizeof dot, "%s/.git", dir);
		if (access(go_abs(g, dot), F_OK) == 0)
			return true;
	}
	return false;
}

static void go_compare_ignored(struct go *g, struct vx_source *s)
{
	for (int i = 0; i < 6; i++) {
		const char *p = go_pick(g);
		bool ours;
		struct vx_err err = {0};
		if (go_in_nested(g, p))
			continue; /* another repository's rules */
		int r = GO_GIT(g, "check-ignore", "-q", "--no-index", "--", p);
		if (!WIFEXITED(r) || WEXITSTATUS(r) > 1)
			continue; /* beyond a link, in a repository of its own */
		if (vx_source_ignored(s, p, &ours, &err) < 0)
			go_fail(g, "ignored \"%s\": %s", p, err.what);
		if (ours != (WEXITSTATUS(r) == 0))
			go_fail(g, "\"%s\" is %signored for git", p, ours ? "not " : "");
	}
}

static void go_check(struct go *g)
{
	struct vx_key_memory m = {g, go_mem_get, go_mem_put};
	struct vx_source *s = NULL;
	struct vx_files t = {0};
	struct vx_arena a = {0};
	struct vx_err err = {0};
	struct go_want w = {0};
	if (go_rand(g, 3) == 0)
		usleep(30000); /* old enough for their directories to be known again */
	if (vx_source_open(g->repo, 2, -1, &m, &s, &err) < 0 ||
		vx_source_list(s, "", &a, &t, &err) < 0)
		go_fail(g, "%s", err.what);
	bool own = strcmp(vx_source_why(s), "index") == 0;
	g->own += own;
	g->gits += vx_source_gits(s);
	if (own && vx_source_gits(s))
		go_fail(g, "git was run beside the index");
	go_drop_modules(&t);
	bool answered = go_ask(g, &w, "", 0);
	if (answered)
		go_compare_sets(g, &t, &w);
	go_compare_ids(g, s, &t);
	go_compare_hashes(g, &t);
	bool strict = GO_GIT(g, "config", "--get-regexp", "^core\\.(trustctime|checkstat)$") != 0 ||
		      (!strstr(vx_buf_str(&g->out), "trustctime false") &&
			      !strstr(vx_buf_str(&g->out), "minimal"));
	if (strict && !g->attributes && answered)
		go_compare_changed(g, &t, &w);
	if (go_rand(g, 2))
		go_compare_part(g, s, go_rand(g, 3) ? go_pick_dir(g) : go_pick(g), &t);
	if (go_rand(g, 10) == 0)
		go_compare_ignored(g, s);
	assert_int_equal(vx_source_remember(s, &t), 0);
	if (own && go_rand(g, 2))
		go_compare_later(g, s, &t);
	vx_files_free(&t);
	vx_source_close(s);
	vx_arena_free(&a);
	vx_arena_free(&w.a);
}

static void go_open(struct go *g, uint64_t seed)
{
	memset(g, 0, sizeof *g);
	g->rng = seed * 0x9E3779B97F4A7C15ULL + 1;
	g->attributes = seed % 2 == 0;
	g->top = vxt_tmpdir();
	g->repo = strdup(vxt_path(g->top, "repo"));
	g->out = VX_BUF(64U << 20);
	assert_int_equal(vx_mkdir_p(AT_FDCWD, g->repo, 0777), 0);
	assert_int_equal(vx_mkdir_p(AT_FDCWD, vxt_path(g->top, "home"), 0777), 0);
	setenv("HOME", vxt_path(g->top, "home"), 1);
	unsetenv("XDG_CONFIG_HOME");
	unsetenv("GIT_CONFIG_GLOBAL");
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_OPTIONAL_LOCKS", "0", 1);
	setenv("GIT_AUTHOR_NAME", "n", 1);
	setenv("GIT_AUTHOR_EMAIL", "e", 1);
	setenv("GIT_COMMITTER_NAME", "n", 1);
	setenv("GIT_COMMITTER_EMAIL", "e", 1);
	if (seed % 4 == 3)
		assert_int_equal(GO_GIT(g, "init", "-q", "--object-format=sha256", "."), 0);
	else
		assert_int_equal(GO_GIT(g, "init", "-q", "."), 0);
}

static void go_close(struct go *g)
{
	vx_buf_free(&g->out);
	free(g->memory);
	free(g->repo);
	vxt_rm(g->top);
}

/* A tree made by a script, checked by our reader and by git's way. */
VXT_UNUSED static void go_fixed(const char *script)
{
	struct go g;
	char cmd[4096];
	go_open(&g, 1);
	/* with them git and we differ on what has changed */
	g.attributes = strstr(script, "attributes") != NULL;
	snprintf(cmd, sizeof cmd, "cd '%s' && { %s; } >/dev/null 2>&1", g.repo, script);
	assert_int_equal(vxt_sh(cmd, NULL), 0);
	for (int way = 0; way < 2; way++) {
		snprintf(g.last, sizeof g.last, "%s: %.200s", way ? "git" : "own", script);
		if (way)
			setenv("VX_FILES", "git", 1);
		go_check(&g);
	}
	unsetenv("VX_FILES");
	go_close(&g);
}

static uint32_t go_proven; /* how often a directory was proven to hold the same, in all */

/* One tree for `steps` edits; a check after each. Returns how many were answered without git. */
static uint32_t go_run(uint64_t seed, uint32_t steps)
{
	struct go g;
	go_open(&g, seed);
	for (g.step = 1; g.step <= steps; g.step++) {
		go_edit(&g);
		go_check(&g);
		if (go_rand(&g, 8) == 0) /* an index that only git reads does not stay for long */
			GO_GIT(&g, "update-index", "--no-split-index");
	}
	uint32_t own = g.own;
	go_proven += g.proven;
	go_close(&g);
	return own;
}

#endif
