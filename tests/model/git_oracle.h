/* git as the oracle: a random worktree, random edits, and after each one our list of files against what git says.
 *
 * Compared after every step: the set of files (tracked ones on disk, untracked ones not ignored), which tracked ones differ from the index, every id with
 * the bytes on disk and with git hash-object; a random directory listed alone with its part of the whole; now and then ignored paths with git check-ignore. The seed of a failure is printed: VX_SEED=N VX_STEPS=N repeat it. */
#ifndef GIT_ORACLE_H
#define GIT_ORACLE_H

#include "vxtest.h"

#include "../../sched/key/source.h"

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
	uint32_t step, own, gits;
	struct vx_buf out;
	char *memory; /* what was remembered */
	size_t memory_n;
	bool attributes; /* edits of attributes too; other seeds compare what has changed instead */
	char last[256];  /* the last edit, for messages */
};

static uint32_t go_rand(struct go *g, uint32_t n)
{
	g->rng ^= g->rng << 13;
	g->rng ^= g->rng >> 7;
	g->rng ^= g->rng << 17;
	return (uint32_t)(g->rng >> 20) % n;
}

static int go_mem_get(void *self, const char *space, const void *key, size_t n, struct vx_arena *a, void **ret, size_t *ret_n)
{
	struct go *g = self;
	(void)space, (void)key, (void)n;
	if (!g->memory)
		return -ENOENT;
	*ret = vx_arena_dup(a, g->memory, g->memory_n);
	*ret_n = g->memory_n;
	return 0;
}

static int go_mem_put(void *self, const char *space, const void *key, size_t n, const void *val, size_t val_n)
{
	struct go *g = self;
	(void)space, (void)key, (void)n;
	free(g->memory);
	g->memory = malloc(val_n);
	memcpy(g->memory, val, val_n);
	g->memory_n = val_n;
	return 0;
}

/* Runs git in the repository (or `sub` below it); its output is in g->out. */
static int go_git_in(struct go *g, const char *sub, const char *const *args)
{
	const char *argv[32] = {"git"};
	char cwd[PATH_MAX];
	uint32_t n = 1;
	while (*args)
		argv[n++] = *args++;
	snprintf(cwd, sizeof cwd, "%s%s%s", g->repo, *sub ? "/" : "", sub);
	struct vx_spawn sp = VX_SPAWN_INIT;
	int status = 0;
	sp.path = "/usr/bin/git";
	sp.argv = argv;
	sp.cwd = cwd;
	vx_buf_clear(&g->out);
	if (vx_spawn_capture(&sp, &g->out, NULL, 0, -1, &status) < 0)
		return -1;
	return status;
}
#define GO_GIT(g, ...) go_git_in(g, "", (const char *const[]){__VA_ARGS__, NULL})

static const char *go_pick_dir(struct go *g)
{
	static const char *const dirs[] = {"", "a", "a/b", "a/b/c", "src", "src/[id]", "build", "build/out", "lib.d", "lib", "x y", "node_modules/m",
		"a/node_modules", ".hid", "sub", "sub/in", "deep/er/still", "\xc3\xa9"};
	return dirs[go_rand(g, sizeof dirs / sizeof *dirs)];
}

/* A random path below the repository (static buffers). */
static const char *go_pick(struct go *g)
{
	static const char *const names[] = {"f", "g.c", "h.o", "x.log", "keep.log", "build", "lib", "-dash", "sp ace", "new\nline", "\xff\xfe",
		"\xc3\xbc.txt", ".env", "crlf.txt", "README.md", "a", "[id]", "sub", "t.tmp", "f~"};
	static char ring[4][512];
	static unsigned at;
	char *p = ring[at++ % 4];
	const char *d = go_pick_dir(g);
	snprintf(p, 512, "%s%s%s", d, *d ? "/" : "", names[go_rand(g, sizeof names / sizeof *names)]);
	return p;
}

static const char *go_abs(struct go *g, const char *rel)
{
	return vxt_path(g->repo, rel);
}

static void go_mkdirs(struct go *g, const char *rel)
{
	char p[512];
	snprintf(p, sizeof p, "%s", rel);
	char *slash = strrchr(p, '/');
	if (slash) {
		*slash = '\0';
		vx_mkdir_p(AT_FDCWD, go_abs(g, p), 0777);
	}
}

static void go_write(struct go *g, const char *rel, const char *text)
{
	go_mkdirs(g, rel);
	int fd = open(go_abs(g, rel), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
	if (fd >= 0) {
		assert_int_equal(vx_write_full(fd, text, strlen(text)), 0);
		close(fd);
	}
}

static const char *go_content(struct go *g)
{
	static const char *const texts[] = {"1\n", "2\n", "", "a\r\nb\r\n", "a\nb\n", "longer text\n", "$Id$\n", "3\n"};
	return texts[go_rand(g, sizeof texts / sizeof *texts)];
}

static void go_rules(struct go *g, char *text, size_t cap)
{
	static const char *const rules[] = {"*.o", "*.log", "!keep.log", "build/", "/build", "a/b", "lib*", "!lib.d", "**/c", "c/**", "a/**/f", "f",
		"!f", "\\#x", "\\!y", "trail \\ ", "trail   ", "[fg]", "[!a]*.c", "?.c", "src/[id]", "src/\\[id\\]", "*", "!*/", "!*.c", "/a/*",
		"node_modules", "sub/", "x y/", "**/er/**", "ab**/c", "*.t?p", "\xff*", "\xc3\xbc.txt", "[[:alpha:]]", "*~", "#comment", "/", "!",
		"**", "a*/b", "d**r/still", "README.md\r", "dee?/*r", "de*/**/f", "[a-", "src/**"};
	*text = '\0';
	for (uint32_t n = 1 + go_rand(g, 4); n; n--)
		snprintf(text + strlen(text), cap - strlen(text), "%s\n", rules[go_rand(g, sizeof rules / sizeof *rules)]);
	if (go_rand(g, 6) == 0 && *text)
		text[strlen(text) - 1] = '\0';
}

static void go_edit_ignore(struct go *g)
{
	char text[512], rel[256];
	go_rules(g, text, sizeof text);
	switch (go_rand(g, 8)) {
	case 0:
		go_write(g, ".git/info/exclude", text);
		break;
	case 1:
		vxt_write(g->top, "home/.config/git/ignore", text);
		break;
	case 2: /* a link counts for nothing */
		snprintf(rel, sizeof rel, "%s/.gitignore", go_pick_dir(g));
		unlink(go_abs(g, rel));
		(void)!symlink("../f", go_abs(g, rel));
		break;
	case 3:
		snprintf(rel, sizeof rel, "%s/.gitignore", go_pick_dir(g));
		unlink(go_abs(g, rel));
		break;
	default:
		snprintf(rel, sizeof rel, "%s/.gitignore", go_pick_dir(g));
		unlink(go_abs(g, rel[0] == '/' ? rel + 1 : rel));
		go_write(g, rel[0] == '/' ? rel + 1 : rel, text);
	}
}

static void go_edit_attributes(struct go *g)
{
	static const char *const lines[] = {"* text=auto\n", "*.c text eol=crlf\n", "*.txt -text\n", "* binary\n", "*.md ident\n",
		"[attr]mine text\n* mine\n", "f filter=none\n", "\"sp ace\" text\n", ""};
	char rel[256];
	const char *d = go_pick_dir(g);
	snprintf(rel, sizeof rel, "%s%s.gitattributes", d, *d ? "/" : "");
	if (go_rand(g, 3) == 0)
		unlink(go_abs(g, rel));
	else
		go_write(g, go_rand(g, 6) ? rel : ".git/info/attributes", lines[go_rand(g, sizeof lines / sizeof *lines)]);
}

static void go_edit_times(struct go *g, const char *p)
{
	struct timespec ts[2] = {{.tv_sec = 1600000000 + go_rand(g, 3)}, {.tv_sec = 1600000000 + go_rand(g, 3), .tv_nsec = go_rand(g, 2) * 5}};
	if (go_rand(g, 2))
		ts[1].tv_nsec = UTIME_NOW;
	utimensat(AT_FDCWD, go_abs(g, p), ts, AT_SYMLINK_NOFOLLOW);
}

/* Same length, perhaps with the old time stamps put back. */
static void go_edit_in_place(struct go *g, const char *p)
{
	struct stat st;
	if (lstat(go_abs(g, p), &st) < 0 || !S_ISREG(st.st_mode) || !st.st_size || st.st_size > 64)
		return;
	int fd = open(go_abs(g, p), O_WRONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		(void)!pwrite(fd, go_rand(g, 2) ? "7" : "8", 1, 0);
		close(fd);
	}
	if (go_rand(g, 2)) {
		struct timespec ts[2] = {st.st_atim, st.st_mtim};
		utimensat(AT_FDCWD, go_abs(g, p), ts, 0);
	}
}

static void go_edit_nested(struct go *g)
{
	const char *d = go_pick_dir(g);
	char rel[256];
	if (!*d)
		return;
	vx_mkdir_p(AT_FDCWD, go_abs(g, d), 0777);
	snprintf(rel, sizeof rel, "%s/.git", d);
	switch (go_rand(g, 6)) {
	case 0:
		vx_rm_rf(AT_FDCWD, go_abs(g, rel));
		break;
	case 1: /* not a repository */
		vx_rm_rf(AT_FDCWD, go_abs(g, rel));
		vx_mkdir_p(AT_FDCWD, go_abs(g, rel), 0777);
		break;
	case 2:
		vx_rm_rf(AT_FDCWD, go_abs(g, rel));
		go_write(g, rel, "gitdir: nowhere\n");
		break;
	case 3:
		GO_GIT(g, "init", "-q", d);
		go_git_in(g, d, (const char *const[]){"add", "-A", ".", NULL});
		go_git_in(g, d, (const char *const[]){"commit", "-q", "--allow-empty", "-m", "x", NULL});
		GO_GIT(g, "add", "--", d); /* a gitlink, unless there are tracked files below */
		break;
	default:
		GO_GIT(g, "init", "-q", d);
	}
}

static void go_edit_swap(struct go *g)
{
	const char *d = go_pick_dir(g), *p = go_pick(g);
	char rel[300], target[300];
	snprintf(rel, sizeof rel, "%s.real", d);
	if (!*d)
		return;
	switch (go_rand(g, 4)) {
	case 0: /* a directory becomes a link to itself under another name: every stat below stays equal */
		if (rename(go_abs(g, d), go_abs(g, rel)) == 0) {
			const char *slash = strrchr(rel, '/');
			snprintf(target, sizeof target, "%s", slash ? slash + 1 : rel);
			(void)!symlink(target, go_abs(g, d));
		}
		break;
	case 1: /* and back */
		if (unlink(go_abs(g, d)) == 0)
			(void)!rename(go_abs(g, rel), go_abs(g, d));
		break;
	case 2: /* a file becomes a directory */
		if (unlink(go_abs(g, p)) == 0)
			vx_mkdir_p(AT_FDCWD, go_abs(g, p), 0777);
		break;
	default: /* a file becomes a link, or a link a file */
		if (unlink(go_abs(g, p)) == 0)
			(void)!symlink(go_rand(g, 2) ? "f" : "nowhere", go_abs(g, p));
	}
}

static void go_edit_index(struct go *g, const char *p)
{
	static const char *const flags[] = {"--assume-unchanged", "--no-assume-unchanged", "--skip-worktree", "--no-skip-worktree", "--force-remove"};
	switch (go_rand(g, 10)) {
	case 0:
		GO_GIT(g, "update-index", "--index-version", (const char *const[]){"2", "3", "4"}[go_rand(g, 3)]);
		break;
	case 1:
		GO_GIT(g, "update-index", go_rand(g, 2) ? "--untracked-cache" : "--no-untracked-cache");
		break;
	case 2:
		if (go_rand(g, 3) == 0)
			GO_GIT(g, "update-index", "--split-index");
		else
			GO_GIT(g, "update-index", "--no-split-index");
		break;
	case 3:
		GO_GIT(g, "update-index", "-q", "--refresh");
		break;
	case 4: {
		char line[700], cmd[1500];
		if (strchr(p, '\n') || GO_GIT(g, "hash-object", "-w", "--stdin") != 0)
			break;
		snprintf(line, sizeof line, "%.40s", vx_buf_str(&g->out));
		snprintf(cmd, sizeof cmd, "cd '%s' && printf '100644 %s 1\\t%s\\n100644 %s 3\\t%s\\n' | git update-index --index-info 2>/dev/null",
			g->repo, line, p, line, p);
		vxt_sh(cmd, NULL);
		break;
	}
	default:
		GO_GIT(g, "update-index", flags[go_rand(g, 5)], "--", p);
	}
}

static void go_edit_config(struct go *g)
{
	static const char *const pairs[][2] = {{"core.fileMode", "false"}, {"core.fileMode", "true"}, {"core.trustctime", "false"},
		{"core.trustctime", "true"}, {"core.checkStat", "minimal"}, {"core.checkStat", "default"}, {"core.fileMode", "true"},
		{"core.trustctime", "true"}, {"core.checkStat", "default"}, {"index.skipHash", "true"}};
	uint32_t i = go_rand(g, sizeof pairs / sizeof *pairs);
	GO_GIT(g, "config", pairs[i][0], pairs[i][1]);
}

static void go_edit(struct go *g)
{
	const char *p = go_pick(g), *q = go_pick(g);
	uint32_t kind = go_rand(g, 30);
	snprintf(g->last, sizeof g->last, "kind %u on \"%.80s\" \"%.80s\"", kind, p, q);
	switch (kind) {
	case 0 ... 5:
		go_write(g, p, go_content(g));
		break;
	case 6 ... 7:
		go_edit_in_place(g, p);
		break;
	case 8:
		unlink(go_abs(g, p));
		break;
	case 9:
		if (*(p = go_pick_dir(g)))
			vx_rm_rf(AT_FDCWD, go_abs(g, p));
		break;
	case 10:
		chmod(go_abs(g, p), go_rand(g, 2) ? 0755 : 0644);
		break;
	case 11:
		go_edit_swap(g);
		break;
	case 12 ... 14:
		GO_GIT(g, "add", "-f", "--", p);
		break;
	case 15:
		GO_GIT(g, "add", "-A");
		break;
	case 16:
		GO_GIT(g, "commit", "-q", "-m", "x");
		break;
	case 17:
		GO_GIT(g, "add", "-N", "--", p);
		break;
	case 18 ... 20:
		go_edit_ignore(g);
		break;
	case 21:
		if (g->attributes)
			go_edit_attributes(g);
		break;
	case 22:
		go_edit_times(g, p);
		break;
	case 23:
		go_edit_nested(g);
		break;
	case 24 ... 25:
		go_edit_index(g, p);
		break;
	case 26:
		(void)!rename(go_abs(g, p), go_abs(g, q));
		break;
	case 27:
		go_mkdirs(g, p);
		(void)!mkfifo(go_abs(g, p), 0666);
		break;
	case 28:
		go_edit_config(g);
		break;
	default:
		go_mkdirs(g, p);
		(void)!symlink(go_rand(g, 2) ? "f" : "..", go_abs(g, p));
	}
}

/* What git says, as one sorted list of lines "path" (workspace-relative). */
struct go_want {
	struct vx_arena a;
	struct vx_strlist files;   /* what should be listed */
	struct vx_strlist changed; /* tracked files that differ from the index, of those that can be judged */
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
	if (access(go_abs(g, dot), F_OK) == 0 && depth < 8 && go_git_in(g, full, (const char *const[]){"rev-parse", "--show-toplevel", NULL}) == 0) {
		char *nl = strchr(vx_buf_str(&g->out), '\n');
		if (nl && strncmp(vx_buf_str(&g->out), go_abs(g, full), (size_t)(nl - vx_buf_str(&g->out))) == 0 &&
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
		    (const char *const[]){"-c", "core.quotePath=false", "status", "--porcelain=v2", "-z", "-uall", "--ignore-submodules=none",
			    "--no-renames", NULL}) != 0)
		return false; /* a submodule whose repository is broken: git gives up, we list its files */
	char *text = vx_arena_dup(&w->a, vx_buf_str(&g->out), g->out.len + 1);
	for (char *p = text; p < text + g->out.len; p += strlen(p) + 1) {
		if (p[0] == '?') {
			char *path = p + 2;
			size_t n = strlen(path);
			const char *inside = vx_arena_printf(&w->a, "%s%sx", prefix, path);
			if (path[n - 1] == '/' && go_left_out(inside, false)) {
				continue;
			} else if (path[n - 1] == '/') {
				vx_strlist_add(&nested, &w->a, vx_arena_printf(&w->a, "%s%.*s", prefix, (int)n - 1, path));
			} else if (!go_left_out(vx_arena_printf(&w->a, "%s%s", prefix, path), false)) {
				vx_strlist_add(&w->files, &w->a, vx_arena_printf(&w->a, "%s%s", prefix, path));
			}
			continue;
		}
		const char *path = p; /* "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path" */
		for (int i = p[0] == 'u' ? 10 : 8; i; i--)
			path = strchr(path, ' ') + 1;
		vx_map_set(&status, path, strlen(path), p[0] == 'u' ? 1000 : (uint32_t)(unsigned char)p[3]);
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
		vx_strlist_add(&w->entries, &w->a, vx_arena_printf(&w->a, "%.6s %.*s", p + 2, (int)strcspn(p + 9, " "), p + 9));
		if (y != VX_MAP_NONE && y != '.')
			vx_strlist_add(&w->changed, &w->a, full);
	}
	vx_map_free(&status);
	bool all = true;
	for (uint32_t i = 0; i < nested.n; i++)
		all &= go_ask_nested(g, w, nested.v[i], depth);
	return all;
}

__attribute__((format(printf, 2, 3), noreturn)) static void go_fail(struct go *g, const char *fmt, ...)
{
	char text[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	fprintf(stderr, "# VX_STEPS=%u, last edit: %s, tree kept in %s\n", g->step, g->last, g->top);
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
		if (vx_identity_take(vx_source_fd(s), f->path, vx_source_kind(s), true, &now) < 0)
			go_fail(g, "\"%s\" cannot be read", f->path);
		if (f->has_oid && (memcmp(&f->oid, &now.oid, sizeof now.oid) != 0 || (f->mode ^ now.mode) & 0170000))
			go_fail(g, "\"%s\" has a wrong id%s", f->path, f->hashed ? " from memory" : " from the index");
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
	snprintf(cmd, sizeof cmd, "cd '%s' && git hash-object --no-filters --stdin-paths <'%s'", g->repo, list);
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
		bool ours = strcmp(text, w->entries.v[i]) != 0, gits = vx_map_gets(&set, w->judged.v[i]) != VX_MAP_NONE;
		if (ours != gits)
			go_fail(g, "\"%s\" is %schanged for git: index %s, disk %s", w->judged.v[i], gits ? "" : "not ", w->entries.v[i], text);
	}
	vx_map_free(&set);
}

static void go_compare_part(struct go *g, struct vx_source *s, const struct vx_files *all)
{
	struct vx_arena a = {0};
	struct vx_files part = {0};
	const char *dir = go_rand(g, 3) ? go_pick_dir(g) : go_pick(g);
	struct vx_err err = {0};
	if (vx_source_list(s, dir, &a, &part, &err) < 0)
		go_fail(g, "part \"%s\": %s", dir, err.what);
	uint32_t lo, hi, kept = 0;
	for (uint32_t i = 0; i < part.n; i++)
		if (!part.v[i]->modules)
			part.v[kept++] = part.v[i];
	part.n = kept;
	vx_files_below(all, dir, &lo, &hi);
	struct vx_file *self = *dir ? vx_files_find(all, dir) : NULL;
	if (part.n != hi - lo + (self != NULL))
		go_fail(g, "part \"%s\" holds %u files, the whole %u there", dir, part.n, hi - lo + (self != NULL));
	for (uint32_t i = 0; i < part.n; i++)
		if (strcmp(part.v[i]->path, self && i == 0 ? self->path : all->v[lo + i - (self != NULL)]->path) != 0)
			go_fail(g, "part \"%s\": \"%s\"", dir, part.v[i]->path);
	vx_files_free(&part);
	vx_arena_free(&a);
}

static bool go_in_nested(struct go *g, const char *p)
{
	char dir[512], dot[600];
	snprintf(dir, sizeof dir, "%s/", p); /* itself too: what is listed by its own index is not ignored, whatever a rule of the outer one says */
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
	if (vx_source_open(g->repo, 2, &m, &s, &err) < 0 || vx_source_list(s, "", &a, &t, &err) < 0)
		go_fail(g, "%s", err.what);
	bool own = strcmp(vx_source_why(s), "index") == 0;
	g->own += own;
	g->gits += vx_source_gits(s);
	if (own && vx_source_gits(s))
		go_fail(g, "git was run beside the index");
	uint32_t kept = 0;
	for (uint32_t i = 0; i < t.n; i++)
		if (!t.v[i]->modules)
			t.v[kept++] = t.v[i];
	t.n = kept;
	bool answered = go_ask(g, &w, "", 0);
	if (answered)
		go_compare_sets(g, &t, &w);
	go_compare_ids(g, s, &t);
	go_compare_hashes(g, &t);
	bool strict = GO_GIT(g, "config", "--get-regexp", "^core\\.(trustctime|checkstat)$") != 0 ||
		      (!strstr(vx_buf_str(&g->out), "trustctime false") && !strstr(vx_buf_str(&g->out), "minimal"));
	if (strict && !g->attributes && answered)
		go_compare_changed(g, &t, &w);
	if (go_rand(g, 2))
		go_compare_part(g, s, &t);
	if (go_rand(g, 10) == 0)
		go_compare_ignored(g, s);
	assert_int_equal(vx_source_remember(s, &t), 0);
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
	go_close(&g);
	return own;
}

#endif
