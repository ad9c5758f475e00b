/* A workspace with a store and a lane, for the tests of both. Header-only; every helper fails the
 * running test itself. */
#ifndef LANETEST_H
#define LANETEST_H

#include "vxtest.h"

#include "../../sched/lane/lane_int.h"

#include "vx/err.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>

struct lt {
	char *root;
	struct vx_store *store;
	struct vx_lane *lane;
	struct vx_arena a;
	struct vx_io *(*new_io)(void *arg, char *ret_name, size_t cap);
	void *io_arg;
	bool (*tracked)(void *arg, const char *path);
};

VXT_UNUSED static void lt_open(struct lt *t)
{
	struct vx_err err = {0};
	char dir[PATH_MAX];
	const char *elsewhere = getenv("LT_STORE");
	if (elsewhere)
		snprintf(dir, sizeof dir, "%s", elsewhere);
	else
		snprintf(dir, sizeof dir, "%s/.vx/cache", t->root);
	struct vx_store_opts so = {.dir = dir, .workspace = t->root, .read = true, .write = true};
	assert_int_equal(vx_store_open(&so, &t->store, &err), 0);
	struct vx_lane_opts lo = {
		.store = t->store, .root = t->root, .slots = 2, .tracked = t->tracked};
	int e = 0;
	t->lane = vx_lane_make(&lo, t->new_io ? t->new_io : vx_lane_default_io, t->io_arg, &e);
	assert_non_null(t->lane);
}

VXT_UNUSED static void lt_close(struct lt *t)
{
	vx_lane_free(t->lane);
	vx_store_close(t->store);
	t->lane = NULL;
	t->store = NULL;
}

VXT_UNUSED static void lt_reopen(struct lt *t)
{
	lt_close(t);
	lt_open(t);
}

VXT_UNUSED static void lt_begin(struct lt *t)
{
	*t = (struct lt){.new_io = t->new_io, .io_arg = t->io_arg, .tracked = t->tracked};
	t->root = vxt_tmpdir();
	assert_int_equal(vx_mkdir_p(AT_FDCWD, vxt_path(t->root, ".vx"), 0777), 0);
	lt_open(t);
}

VXT_UNUSED static void lt_end(struct lt *t)
{
	lt_close(t);
	vx_arena_free(&t->a);
	vxt_rm(t->root);
}

/* Globs as a space-separated list. */
VXT_UNUSED static struct vx_globset *lt_globs(struct lt *t, const char *text)
{
	struct vx_strlist l = {0};
	char *copy = vx_arena_strdup(&t->a, text), *save = NULL;
	for (char *p = strtok_r(copy, " ", &save); p; p = strtok_r(NULL, " ", &save))
		vx_strlist_add(&l, &t->a, p);
	struct vx_globset *g;
	struct vx_err err = {0};
	assert_int_equal(
		vx_globset_compile(vx_strlist_done(&l), VX_DIALECT_VX, &t->a, &g, &err), 0);
	return g;
}

VXT_UNUSED static struct vx_outputs lt_outputs(struct lt *t, const char *dir, const char *files)
{
	return (struct vx_outputs){.files = lt_globs(t, files), .dir = dir};
}

VXT_UNUSED static struct vx_digest lt_key(const char *text)
{
	struct vx_digest d;
	vx_sha256_of(text, strlen(text), &d);
	return d;
}

struct lt_used {
	const char *key;
	uint64_t ns;
};

VXT_UNUSED static int lt_touch_row(struct vx_tx *t, void *arg)
{
	const struct lt_used *u = arg;
	struct vx_digest d = lt_key(u->key);
	const void *v;
	size_t n;
	int r = vx_tx_get(t, VX_DB_ENTRIES, d.b, 32, &v, &n);
	if (r < 0)
		return r;
	uint8_t copy[512];
	assert_true(n <= sizeof copy);
	memcpy(copy, v, n);
	vx_row_touch(copy, u->ns);
	return vx_tx_put(t, VX_DB_ENTRIES, d.b, 32, copy, n);
}

/* As if the entry had been used last at that time. */
VXT_UNUSED static void lt_used_at(struct lt *t, const char *key, uint64_t ns)
{
	struct lt_used u = {key, ns};
	assert_int_equal(vx_index_write(t->store->ix, lt_touch_row, &u), 0);
}

/* The next event; its text and log live until the one after. */
VXT_UNUSED static void lt_next(struct lt *t, struct vx_lane_event *ret)
{
	for (int i = 0; i < 3000; i++) {
		if (vx_lane_next(t->lane, ret))
			return;
		struct pollfd p = {.fd = vx_lane_fd(t->lane), .events = POLLIN};
		poll(&p, 1, 10);
	}
	fail_msg("no event within 30 seconds");
}

/* Saves and waits; returns whether the row was committed. */
VXT_UNUSED static bool lt_save_req(
	struct lt *t, const struct vx_save_req *r, struct vx_lane_event *ret)
{
	bool captured = false;
	vx_lane_save(t->lane, r);
	vx_lane_flush(t->lane);
	for (;;) {
		lt_next(t, ret);
		if (ret->kind == VX_LANE_SETTLED)
			break;
		assert_int_equal(ret->kind, VX_LANE_CAPTURED);
		captured = true;
	}
	assert_int_equal(ret->task, r->task);
	assert_true(captured || !ret->ok);
	return ret->ok;
}

VXT_UNUSED static bool lt_save(
	struct lt *t, const char *key, const struct vx_outputs *o, struct vx_lane_event *ret)
{
	struct vx_save_req r = {.task = 7,
		.id = "a#build",
		.key = lt_key(key),
		.outputs = *o,
		.log = "log",
		.log_bytes = 3,
		.duration_ns = 5};
	return lt_save_req(t, &r, ret);
}

/* Probes and restores; false when there is no entry. */
VXT_UNUSED static bool lt_restore(
	struct lt *t, const char *key, const struct vx_outputs *o, struct vx_lane_event *ret)
{
	struct vx_digest d = lt_key(key);
	bool found = false;
	struct vx_restore_req r = {.task = 9, .id = "a#build", .outputs = *o};
	assert_true(vx_store_probe(t->store, &d, 1, &found, &r.entry) >= 0);
	if (!found)
		return false;
	vx_lane_restore(t->lane, &r);
	lt_next(t, ret);
	assert_int_equal(ret->kind, VX_LANE_RESTORED);
	assert_int_equal(ret->task, 9);
	return true;
}

VXT_UNUSED static void lt_clean(struct lt *t, const struct vx_outputs *o, struct vx_lane_event *ret)
{
	vx_lane_clean(t->lane, 3, o);
	lt_next(t, ret);
	assert_int_equal(ret->kind, VX_LANE_CLEANED);
	assert_int_equal(ret->task, 3);
}

VXT_UNUSED static int lt_by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* The names in a directory, sorted; malloc'ed, a NULL at the end. NULL: there is no such
 * directory. */
VXT_UNUSED static char **lt_names(const char *dir)
{
	DIR *d = opendir(dir);
	if (!d)
		return NULL;
	char **v = vx_xcalloc(1, sizeof *v);
	size_t n = 0;
	for (struct dirent *e; (e = readdir(d));) {
		if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0)
			continue;
		v = vx_xrealloc(v, (n + 2) * sizeof *v);
		v[n++] = vx_xstrdup(e->d_name);
		v[n] = NULL;
	}
	closedir(d);
	qsort(v, n, sizeof *v, lt_by_name);
	return v;
}

VXT_UNUSED static void lt_digest(struct vx_buf *b, const char *path)
{
	uint8_t piece[16384];
	struct vx_sha256 sha;
	struct vx_digest d;
	int fd = vx_open(AT_FDCWD, path, O_RDONLY | O_NOFOLLOW, 0);
	if (fd < 0) {
		vx_buf_adds(b, "unreadable");
		return;
	}
	vx_sha256_init(&sha);
	for (ssize_t n; (n = read(fd, piece, sizeof piece)) != 0;) {
		assert_true(n > 0);
		vx_sha256_add(&sha, piece, (size_t)n);
	}
	vx_close(fd);
	vx_sha256_done(&sha, &d);
	for (size_t i = 0; i < sizeof d.b; i++)
		vx_buf_printf(b, "%02x", d.b[i]);
}

VXT_UNUSED static void lt_tree_line(
	struct vx_buf *b, const char *path, const char *rel, const struct stat *st)
{
	vx_buf_printf(b, "%s %c %o", rel,
		S_ISDIR(st->st_mode)   ? 'd'
		: S_ISLNK(st->st_mode) ? 'l'
				       : 'f',
		(unsigned)(st->st_mode & 07777));
	if (!S_ISDIR(st->st_mode))
		vx_buf_printf(b, " %lld %lld.%09ld", (long long)st->st_size,
			(long long)st->st_mtim.tv_sec, st->st_mtim.tv_nsec);
	if (S_ISLNK(st->st_mode)) {
		char target[PATH_MAX];
		ssize_t n = readlink(path, target, sizeof target - 1);
		assert_true(n >= 0);
		vx_buf_printf(b, " %.*s", (int)n, target);
	} else if (S_ISREG(st->st_mode)) {
		vx_buf_addc(b, ' ');
		lt_digest(b, path);
	}
	vx_buf_addc(b, '\n');
}

VXT_UNUSED static void lt_tree_dir(struct vx_buf *b, const char *dir, const char *rel)
{
	char **names = lt_names(dir);
	if (!names)
		vx_buf_adds(b, "unreadable\n");
	for (char **name = names; name && *name; name++) {
		char *path = NULL, *below = NULL;
		struct stat st;
		assert_true(asprintf(&path, "%s/%s", dir, *name) > 0);
		assert_true(asprintf(&below, "%s%s%s", rel, *rel ? "/" : "", *name) > 0);
		assert_int_equal(lstat(path, &st), 0);
		lt_tree_line(b, path, below, &st);
		if (S_ISDIR(st.st_mode))
			lt_tree_dir(b, path, below);
		free(path);
		free(below);
		free(*name);
	}
	free(names);
}

/* Everything about a tree as text: kinds, modes, sizes, mtimes of files and links, contents'
 * digests. malloc'ed. Without a process of its own: campaigns call it tens of thousands of
 * times. */
VXT_UNUSED static char *lt_tree(const char *dir)
{
	struct vx_buf b = VX_BUF(64 << 20);
	if (access(dir, F_OK) < 0)
		vx_buf_printf(&b, "none\n");
	else
		lt_tree_dir(&b, dir, "");
	char *text = strdup(vx_buf_str(&b));
	vx_buf_free(&b);
	return text;
}

/* The same without the times: a restore gives its own to what it changes. malloc'ed. */
VXT_UNUSED static char *lt_timeless(const char *tree)
{
	char *text = strdup(tree), *to = text;
	for (const char *p = text; *p;) {
		size_t s = *p == ' ' ? strspn(p + 1, "-0123456789") : 0;
		bool time = s && p[1 + s] == '.' && strspn(p + 2 + s, "0123456789") == 9;
		p += time ? s + 11 : 0;
		*to++ = *p++;
	}
	*to = '\0';
	return text;
}

/* Bytes, kinds, modes, targets. Names the first line that differs: a tree may be large. */
VXT_UNUSED static void lt_same_tree(const char *dir, const char *was)
{
	char *whole = lt_tree(dir), *now = lt_timeless(whole), *before = lt_timeless(was);
	const char *a = before, *b = now;
	free(whole);
	while (*a && *a == *b)
		a++, b++;
	if (*a || *b) {
		while (a > before && a[-1] != '\n')
			a--, b--;
		fail_msg(
			"%.*s | is now | %.*s", (int)strcspn(a, "\n"), a, (int)strcspn(b, "\n"), b);
	}
	free(before);
	free(now);
}

VXT_UNUSED static int lt_sh(const struct lt *t, const char *command)
{
	char *cmd = NULL;
	assert_true(asprintf(&cmd, "cd '%s' && { %s ; }", t->root, command) > 0);
	int r = vxt_sh(cmd, NULL);
	free(cmd);
	return r;
}

VXT_UNUSED static int lt_count_below(const char *dir, bool dirs)
{
	int n = 0;
	char **names = lt_names(dir);
	for (char **name = names; name && *name; name++) {
		char *path = NULL;
		struct stat st;
		assert_true(asprintf(&path, "%s/%s", dir, *name) > 0);
		bool is_dir = lstat(path, &st) == 0 && S_ISDIR(st.st_mode);
		n += (dirs || !is_dir) + (is_dir ? lt_count_below(path, dirs) : 0);
		free(path);
		free(*name);
	}
	free(names);
	return n;
}

/* How many files and directories lie below a directory of the root. */
VXT_UNUSED static int lt_count(const struct lt *t, const char *dir)
{
	return lt_count_below(vxt_path(t->root, dir), true);
}

#endif
