/* The store by itself: where it is, how it opens, what damage does to it, upkeep, the lock of a
 * workspace. */
#include "lanetest.h"

#include "vx/clock.h"
#include "vx/json.h"

#include <signal.h>
#include <sys/mount.h>

static struct vx_store *open_at(const char *dir, const char *ws, bool write, uint64_t map)
{
	struct vx_store *s;
	struct vx_err err = {0};
	struct vx_store_opts o = {
		.dir = dir, .workspace = ws, .read = true, .write = write, .map_bytes = map};
	assert_int_equal(vx_store_open(&o, &s, &err), 0);
	return s;
}

static int put_row(struct vx_store *s, const char *key, uint64_t used_ns, const void *log, size_t n)
{
	struct vx_row row = {.e = {.portable = true, .duration_ns = 9, .peak_bytes = 8},
		.used_ns = used_ns,
		.log = log,
		.log_n = n,
		.log_bytes = n,
		.log_kind = n ? VX_LOG_PLAIN : VX_LOG_NONE};
	struct vx_buf b = VX_BUF(64 << 20);
	vx_row_encode(&row, &b);
	struct vx_commit c = {.key = lt_key(key), .row = b.data, .row_n = b.len, .entry = true};
	int r = vx_store_commit(s, &c, 1);
	vx_buf_free(&b);
	return r;
}

static bool has(struct vx_store *s, const char *key)
{
	struct vx_digest d = lt_key(key);
	bool found;
	struct vx_entry e;
	int n = vx_store_probe(s, &d, 1, &found, &e);
	assert_true(n >= 0);
	return n == 1;
}

static void test_where(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), *got;
	struct vx_arena a = {0};
	struct vx_err err = {0};
	unsetenv("VX_CACHE_DIR");
	setenv("HOME", dir, 1);
	unsetenv("XDG_CACHE_HOME");
	assert_int_equal(vx_store_dir(NULL, NULL, false, dir, &a, &got, &err), 0);
	assert_string_equal(got, vxt_path(dir, ".vx/cache"));
	assert_int_equal(vx_store_dir(NULL, NULL, true, dir, &a, &got, &err), 0);
	assert_string_equal(got, vxt_path(dir, ".cache/vx/store"));
	setenv("XDG_CACHE_HOME", vxt_path(dir, "xdg"), 1);
	assert_int_equal(vx_store_dir(NULL, NULL, true, dir, &a, &got, &err), 0);
	assert_string_equal(got, vxt_path(dir, "xdg/vx/store"));
	assert_int_equal(vx_store_dir(NULL, "c/d", true, dir, &a, &got, &err), 0);
	assert_string_equal(got, vxt_path(dir, "c/d"));
	assert_int_equal(vx_store_dir(NULL, ".vx/cache", true, dir, &a, &got, &err), 0);
	/* a configuration names no place that is not its workspace's, nor git's and vx's own */
	assert_int_equal(symlink("/tmp", vxt_path(dir, "link")), 0);
	static const char *const bad[] = {"..", "../c", "c/../../d", "/", "/tmp", "~", "~/c",
		"link/c", ".git", ".git/c", "c/.git/d", ".vx", ".vx/stage", ".vx/cache/v1"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		assert_int_equal(vx_store_dir(NULL, bad[i], true, dir, &a, &got, &err), -EPERM);
		assert_non_null(strstr(err.what, bad[i]));
		assert_true(err.fix[0]);
	}
	assert_int_equal(vx_store_dir(vxt_path(dir, ".git/c"), "..", true, dir, &a, &got, &err), 0);
	setenv("VX_CACHE_DIR", vxt_path(dir, "env"), 1);
	assert_int_equal(vx_store_dir(NULL, "c", true, dir, &a, &got, &err), 0);
	assert_string_equal(got, vxt_path(dir, "env"));
	assert_int_equal(vx_store_dir(vxt_path(dir, "flag"), "c", true, dir, &a, &got, &err), 0);
	assert_string_equal(got, vxt_path(dir, "flag"));
	assert_int_equal(vx_store_dir("", "c", true, dir, &a, &got, &err), -EINVAL);
	unsetenv("VX_CACHE_DIR");
	unsetenv("XDG_CACHE_HOME");
	unsetenv("HOME");
	assert_int_equal(vx_store_dir(NULL, NULL, true, dir, &a, &got, &err), -ENOENT);
	assert_true(err.fix[0]);
	vx_arena_free(&a);
	vxt_rm(dir);
}

static void test_history_and_blobs(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), longid[3000];
	struct vx_arena a = {0};
	memset(longid, 'x', sizeof longid - 1);
	longid[sizeof longid - 1] = '\0';
	const char *ids[] = {"a#b", longid, "unknown"};
	struct vx_history h[3] = {{1, 2, 3, lt_key("k")}, {4, 5, 6, lt_key("l")}}, got[3];
	struct vx_store *s = open_at(dir, "/w", true, 0);
	assert_int_equal(vx_store_history_put(s, ids, 2, h), 0);
	assert_int_equal(vx_store_blob_put(s, "plan", "key", 3, "value", 5), 0);
	assert_int_equal(vx_store_blob_put(s, "plan", longid, 3000, "", 0), 0);
	uint8_t mask[32];
	memcpy(mask, vx_store_mask_key(s), 32);
	vx_store_close(s);
	s = open_at(dir, "/w", false, 0);
	assert_memory_equal(mask, vx_store_mask_key(s), 32);
	assert_int_equal(vx_store_history_get(s, ids, 3, got), 0);
	assert_memory_equal(got, h, sizeof h);
	void *v;
	size_t n;
	assert_int_equal(vx_store_blob_get(s, "plan", "key", 3, &a, &v, &n), 0);
	assert_int_equal(n, 5);
	assert_memory_equal(v, "value", 5);
	assert_int_equal(vx_store_blob_get(s, "plan", longid, 3000, &a, &v, &n), 0);
	assert_int_equal(n, 0);
	assert_int_equal(vx_store_blob_get(s, "other", "key", 3, &a, &v, &n), -ENOENT);
	assert_int_equal(vx_store_blob_put(s, "plan", "key", 3, "value", 5), -EROFS);
	vx_store_close(s);
	s = open_at(dir, "/elsewhere", true, 0);
	assert_int_equal(vx_store_history_get(s, ids, 1, got), 0);
	assert_int_equal(got[0].duration_ns, 0); /* another workspace's */
	vx_store_close(s);
	vx_arena_free(&a);
	vxt_rm(dir);
}

/* The map is grown while rows are put, and what another process wrote beyond ours is read. */
static void test_map_grows(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), *log = calloc(1, 100000), key[16];
	struct vx_store *s = open_at(dir, "/w", true, 1 << 20);
	for (int i = 0; i < 100; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_int_equal(put_row(s, key, 1, log, 100000), 0);
	}
	pid_t pid = fork();
	assert_true(pid >= 0);
	vx_store_close(s); /* in both; the child opens anew */
	if (pid == 0) {
		s = open_at(dir, "/w", true, 1 << 20);
		for (int i = 100; i < 300; i++) {
			snprintf(key, sizeof key, "k%d", i);
			if (put_row(s, key, 1, log, 100000) != 0)
				_exit(1);
		}
		vx_store_close(s);
		_exit(0);
	}
	int status;
	s = open_at(dir, "/w", true, 1 << 20);
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	for (int i = 0; i < 300; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_true(has(s, key));
	}
	vx_store_close(s);
	free(log);
	vxt_rm(dir);
}

static void test_unwritable(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir();
	vxt_write(dir, "file", "x");
	struct vx_store *s = open_at(vxt_path(dir, "file/cache"), "/w", true, 0);
	assert_false(vx_store_writable(s));
	assert_non_null(strstr(vx_store_why(s), "cannot be written"));
	assert_false(has(s, "k"));
	assert_int_equal(put_row(s, "k", 1, NULL, 0), -EROFS);
	vx_store_close(s);
	/* nothing is made for reading */
	s = open_at(vxt_path(dir, "none"), "/w", false, 0);
	assert_null(vx_store_why(s));
	assert_false(has(s, "k"));
	vx_store_close(s);
	assert_int_equal(access(vxt_path(dir, "none"), F_OK), -1);
	/* neither */
	struct vx_store_opts o = {.dir = vxt_path(dir, "none"), .workspace = "/w"};
	assert_int_equal(vx_store_open(&o, &s, NULL), 0);
	assert_null(vx_store_why(s));
	vx_store_close(s);
	vxt_rm(dir);
}

/* As a plain user, on a store of somebody else: read, not written. */
static void test_read_only(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir();
	struct vx_store *s = open_at(dir, "/w", true, 0);
	assert_int_equal(put_row(s, "k", vx_wall_ns(), "log", 3), 0);
	vx_store_close(s);
	if (geteuid() != 0) {
		vxt_rm(dir);
		vxt_skip("needs root to become another user");
	}
	char cmd[PATH_MAX + 64];
	snprintf(cmd, sizeof cmd, "chmod -R a+rX,go-w '%s'", dir);
	assert_int_equal(vxt_sh(cmd, NULL), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (setgid(54321) || setuid(54321))
			_exit(9);
		s = open_at(dir, "/w", true, 0);
		bool ok = !vx_store_writable(s) && vx_store_why(s) &&
			  strstr(vx_store_why(s), "Permission denied") && has(s, "k") &&
			  !has(s, "other");
		vx_store_close(s);
		_exit(ok ? 0 : 1);
	}
	int status;
	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
	vxt_rm(dir);
}

static int put_schema(struct vx_tx *t, void *arg)
{
	(void)arg;
	uint32_t v = 99;
	return vx_tx_put(t, VX_DB_META, "schema", 6, &v, sizeof v);
}

static void test_other_version(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir();
	struct vx_store *s = open_at(dir, "/w", true, 0);
	assert_int_equal(vx_store_blob_put(s, "x", "k", 1, "v", 1), 0);
	vx_store_close(s);
	struct vx_index *ix;
	bool aside;
	assert_int_equal(vx_index_open(vxt_path(dir, "v1"), true, false, 0, &ix, &aside), 0);
	assert_int_equal(vx_index_write(ix, put_schema, NULL), 0);
	vx_index_close(ix);
	s = open_at(dir, "/w", true, 0);
	assert_false(vx_store_writable(s));
	assert_non_null(strstr(vx_store_why(s), "another version"));
	vx_store_close(s);
	vxt_rm(dir);
}

enum { FLIP_ROWS = 300 };

/* In a process of its own: 0, 1 when damage was said, above that what is wrong. `anything`: whole
 * pages are noise, which may be met later than here. */
static int use_flipped(const char *dir, bool anything)
{
	char key[32];
	int notes = 0;
	for (int round = 0; round < 3; round++) {
		struct vx_store *s = open_at(dir, "/w", true, 0);
		notes += vx_store_note(s) != NULL || vx_store_why(s) != NULL;
		for (int i = 0; i < FLIP_ROWS; i++) {
			struct vx_entry e;
			bool found;
			snprintf(key, sizeof key, "k%d", i);
			struct vx_digest d = lt_key(key);
			if (vx_store_probe(s, &d, 1, &found, &e) < 0)
				return 21;
			if (found && (e.duration_ns != 9 || e.peak_bytes != 8 || e.artifact_bytes))
				return 22;
		}
		for (int i = 0; i < 20; i++) {
			snprintf(key, sizeof key, "new%d", i);
			put_row(s, key, vx_wall_ns(), key, strlen(key));
		}
		int r = put_row(s, "new", vx_wall_ns(), "new", 3);
		if (round == 2 && !anything && (r != 0 || !has(s, "new")))
			return 23;
		notes += vx_store_note(s) != NULL;
		vx_store_close(s);
	}
	return notes ? 1 : 0;
}

/* One bit of the index flipped, or a page filled with noise, at 200 places: what is found is what
 * was put, nothing crashes, and after at most one more opening the store works. */
static void test_index_flips(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), key[32];
	char *file = strdup(vxt_path(dir, "v1/index/data.mdb"));
	struct vx_buf clean = VX_BUF(64 << 20);
	struct vx_store *s = open_at(dir, "/w", true, 0);
	for (int i = 0; i < FLIP_ROWS; i++) {
		snprintf(key, sizeof key, "k%d", i);
		assert_int_equal(put_row(s, key, vx_wall_ns(), key, strlen(key)), 0);
	}
	vx_store_close(s);
	assert_int_equal(vx_read_file(AT_FDCWD, file, &clean), 0);
	unsigned seed = 7;
	int said = 0;
	for (int flip = 0; flip < 200; flip++) {
		bool page = flip % 3 == 2;
		/* many of them where the structure is: headers of pages and the pointers behind */
		size_t at = flip % 2 ? (size_t)rand_r(&seed) % clean.len
				     : ((size_t)rand_r(&seed) % (clean.len / 4096)) * 4096 +
					       (size_t)rand_r(&seed) % 64;
		pid_t pid = fork();
		assert_true(pid >= 0);
		if (pid == 0) {
			clean.data[at] ^= (char)(1 << rand_r(&seed) % 8);
			for (size_t i = at & ~(size_t)4095, end = i + 4096;
				page && i < end && i < clean.len; i++)
				clean.data[i] = (char)rand_r(&seed);
			int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
			if (fd < 0 || vx_write_full(fd, clean.data, clean.len) != 0)
				_exit(20);
			close(fd);
			_exit(use_flipped(dir, page));
		}
		int status;
		waitpid(pid, &status, 0);
		if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
			fail_msg("flip %d at %zu: status %x", flip, at, (unsigned)status);
		said += WEXITSTATUS(status);
		char cmd[PATH_MAX + 64];
		snprintf(cmd, sizeof cmd,
			"rm -rf '%s/v1/index' '%s/v1/index.damaged'; mkdir '%s/v1/index'", dir, dir,
			dir);
		assert_int_equal(vxt_sh(cmd, NULL), 0);
	}
	assert_true(said > 5);
	vx_buf_free(&clean);
	free(file);
	vxt_rm(dir);
}

/* What is no file in its place is damage too, and nothing waits for it. */
static void test_index_is_no_file(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), cmd[PATH_MAX + 64];
	for (int i = 0; i < 4; i++) {
		struct vx_store *s = open_at(dir, "/w", true, 0);
		assert_int_equal(put_row(s, "k", vx_wall_ns(), "k", 1), 0);
		vx_store_close(s);
		const char *name = i % 2 ? "lock.mdb" : "data.mdb";
		snprintf(cmd, sizeof cmd, "cd '%s/v1/index' && rm %s && %s %s", dir, name,
			i < 2 ? "mkfifo" : "ln -s ../../elsewhere", name);
		assert_int_equal(vxt_sh(cmd, NULL), 0);
		s = open_at(dir, "/w", true, 0);
		assert_non_null(vx_store_note(s));
		assert_true(vx_store_writable(s));
		assert_int_equal(access(vxt_path(dir, "elsewhere"), F_OK), -1);
		vx_store_close(s);
	}
	vxt_rm(dir);
}

static int64_t num(const struct vx_json *j, const char *key)
{
	return vx_json_int(vx_json_get(j, key));
}

static void save_one(struct lt *t, const char *key, size_t bytes)
{
	struct vx_lane_event e;
	char cmd[256];
	struct vx_outputs o = lt_outputs(t, "p", "dist/**");
	snprintf(cmd, sizeof cmd,
		"rm -rf p && mkdir -p p/dist && head -c %zu /dev/urandom >p/dist/f", bytes);
	assert_int_equal(lt_sh(t, cmd), 0);
	assert_true(lt_save(t, key, &o, &e));
}

/* Changes a byte of an entry's artifact, wherever that lies. */
static void harm_one(struct lt *t, const char *key)
{
	struct vx_digest d = lt_key(key);
	struct vx_entry e;
	bool found;
	char path[VX_ARTIFACT_PATH];
	assert_int_equal(vx_store_probe(t->store, &d, 1, &found, &e), 1);
	if (e.segment)
		vx_segment_path(e.segment, path);
	else
		vx_artifact_path(&e.artifact, VX_SUFFIX_TAR, path);
	int dir = e.segment ? t->store->dir_fd : t->store->a_fd;
	assert_int_equal(fchmodat(dir, path, 0644, 0), 0);
	int fd = vx_open(dir, path, O_RDWR, 0);
	char c;
	off_t at = (off_t)(e.segment ? e.offset : 0) + 99;
	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= 1;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	vx_close(fd);
}

#define DAY_NS (86400 * 1000000000ULL)

static void prune_of(size_t bytes)
{
	struct lt t = {0};
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t problems;
	lt_begin(&t);
	char name[8];
	for (int i = 0; i < 6; i++) {
		snprintf(name, sizeof name, "k%d", i);
		save_one(&t, name, bytes);
	}
	lt_used_at(&t, "k4", vx_wall_ns() - 10 * DAY_NS);
	assert_int_equal(vx_store_stats(t.store, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 6);
	assert_int_equal(num(j, "artifacts"), 6);
	int64_t all = num(j, "bytes");
	vx_json_free(j);
	struct vx_prune_opts o = {.older_than_ns = 9 * DAY_NS, .dry_run = true};
	assert_int_equal(vx_store_prune(t.store, &o, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 1);
	vx_json_free(j);
	assert_true(has(t.store, "k4"));
	/* orphans and litter: old ones go, young ones and those of the living stay */
	assert_int_equal(
		lt_sh(&t,
			"cd .vx/cache/v1 && mkdir -p a/00 tmp/deaddeaddeaddead tmp/damaged-12-3 tmp/work a/xx a/00/mine && echo x >a/00/old.tar.zst && touch -d '2 hours ago' a/00/old.tar.zst && echo y >a/00/young.tar.zst && : > tmp/work/1 && : >tmp/deaddeaddeaddead/1"),
		0);
	o.dry_run = false;
	assert_int_equal(vx_store_prune(t.store, &o, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 1);
	assert_int_equal(num(j, "files"), 1);
	assert_int_equal(num(j, "leftEntries"), 5);
	assert_int_equal(num(j, "temporaries"), 2);
	vx_json_free(j);
	assert_false(has(t.store, "k4"));
	/* ctime cannot be set back: the old orphan is young by it */
	assert_int_equal(
		lt_sh(&t,
			"test -e .vx/cache/v1/a/00/young.tar.zst && test -e .vx/cache/v1/tmp/work/1 && test ! -e .vx/cache/v1/tmp/deaddeaddeaddead && test ! -e .vx/cache/v1/tmp/damaged-12-3 && rm -r .vx/cache/v1/tmp/work"),
		0);
	assert_int_equal(
		lt_sh(&t, "test -d .vx/cache/v1/tmp/*") == 0, bytes > VX_SEGMENT_ARTIFACT_BYTES);
	/* to a size: the least recently used go */
	o = (struct vx_prune_opts){.max_bytes = (uint64_t)all / 2 + 1000};
	assert_int_equal(vx_store_prune(t.store, &o, &j, &err), 0);
	assert_int_equal(num(j, "leftEntries"), 3);
	assert_true((uint64_t)num(j, "leftBytes") <= o.max_bytes);
	vx_json_free(j);
	assert_true(has(t.store, "k5") && has(t.store, "k3") && !has(t.store, "k0"));
	assert_int_equal(vx_store_verify(t.store, &j, &problems, &err), 0);
	assert_int_equal(problems, 0);
	vx_json_free(j);
	harm_one(&t, "k3");
	assert_int_equal(vx_store_verify(t.store, &j, &problems, &err), 0);
	assert_int_equal(problems, 1);
	vx_json_free(j);
	lt_end(&t);
}

static void test_prune(void **state)
{
	(void)state;
	prune_of(10000);
	prune_of(100000);
}

/* Two entries of one artifact: it goes with the last. */
static void test_prune_shared(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_json *j;
	struct vx_err err = {0};
	lt_begin(&t);
	save_one(&t, "s", 100);
	struct vx_lane_event e;
	struct vx_outputs outs = lt_outputs(&t, "p", "dist/**");
	assert_true(lt_save(&t, "s2", &outs, &e));
	lt_used_at(&t, "s", vx_wall_ns() - 10 * DAY_NS);
	struct vx_prune_opts o = {.older_than_ns = DAY_NS};
	assert_int_equal(vx_store_prune(t.store, &o, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 1);
	assert_int_equal(num(j, "files"), 0);
	vx_json_free(j);
	assert_true(has(t.store, "s2") && !has(t.store, "s"));
	lt_end(&t);
}

/* By the settings of a workspace. */
static void test_retention(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_err err = {0};
	lt_begin(&t);
	save_one(&t, "k5", 200);
	save_one(&t, "s2", 100);
	lt_used_at(&t, "k5", vx_wall_ns() - 10 * DAY_NS);
	assert_int_equal(vx_store_retain(t.store, NULL, NULL, &err), 0);
	assert_true(has(t.store, "k5"));
	assert_int_equal(vx_store_retain(t.store, "9d", "1G", &err), 0);
	assert_true(!has(t.store, "k5") && has(t.store, "s2"));
	assert_int_equal(vx_store_retain(t.store, "9", NULL, &err), -EINVAL);
	assert_non_null(strstr(err.what, "cacheRetention.olderThan"));
	assert_int_equal(vx_store_retain(t.store, NULL, "much", &err), -EINVAL);
	lt_end(&t);
}

static void *prune_all(void *arg)
{
	struct vx_json *j = NULL;
	struct vx_err err = {0};
	struct vx_prune_opts o = {.max_bytes = 1};
	usleep(2000);
	int r = vx_store_prune(arg, &o, &j, &err);
	vx_json_free(j);
	return (void *)(intptr_t)r;
}

/* What a prune takes while it is being verified is no damage. */
static void test_verify_while_pruned(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t problems;
	pthread_t thread;
	void *ret;
	char name[16];
	lt_begin(&t);
	for (int i = 0; i < 24; i++) {
		snprintf(name, sizeof name, "v%d", i);
		save_one(&t, name, 1500000);
	}
	assert_int_equal(pthread_create(&thread, NULL, prune_all, t.store), 0);
	assert_int_equal(vx_store_verify(t.store, &j, &problems, &err), 0);
	assert_int_equal(problems, 0);
	vx_json_free(j);
	assert_int_equal(pthread_join(thread, &ret), 0);
	assert_null(ret);
	/* a FIFO in an artifact's place */
	save_one(&t, "v", 100000);
	assert_int_equal(lt_sh(&t, "f=$(find .vx/cache/v1/a -type f) && rm $f && mkfifo $f"), 0);
	alarm(VXT_HANG_S);
	assert_int_equal(vx_store_verify(t.store, &j, &problems, &err), 0);
	alarm(0);
	assert_int_equal(problems, 1);
	vx_json_free(j);
	lt_end(&t);
}

static void on_wait(void *arg, const char *holder)
{
	snprintf(arg, 128, "%s", holder);
}

static void test_lock(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), holder[128] = "", want[64];
	struct vx_err err = {0};
	int fd = -1, ready[2], cancel[2];
	assert_int_equal(pipe(ready), 0);
	assert_int_equal(pipe(cancel), 0);
	pid_t pid = fork();
	if (pid == 0) {
		if (vx_workspace_lock(dir, -1, NULL, NULL, &fd, &err) != 0 ||
			write(ready[1], "x", 1) != 1)
			_exit(1);
		pause();
	}
	char c;
	assert_int_equal(read(ready[0], &c, 1), 1);
	assert_int_equal(write(cancel[1], "x", 1), 1);
	assert_int_equal(vx_workspace_lock(dir, cancel[0], on_wait, holder, &fd, &err), -ECANCELED);
	snprintf(want, sizeof want, "vx run (pid %d)", (int)pid);
	assert_string_equal(holder, want);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(vx_workspace_lock(dir, -1, on_wait, holder, &fd, &err), 0);
	assert_true(fd >= 0);
	char text[8] = "";
	FILE *f = fopen(vxt_path(dir, ".vx/.gitignore"), "re");
	assert_non_null(f);
	assert_non_null(fgets(text, sizeof text, f));
	fclose(f);
	assert_string_equal(text, "*\n");
	vx_close(fd);
	assert_int_equal(vx_rm_rf(AT_FDCWD, vxt_path(dir, ".vx")), 0);
	assert_int_equal(symlink("/tmp", vxt_path(dir, ".vx")), 0);
	assert_true(vx_workspace_lock(dir, -1, NULL, NULL, &fd, &err) < 0);
	assert_non_null(strstr(err.what, ".vx is a symbolic link"));
	for (int i = 0; i < 2; i++) {
		close(ready[i]);
		close(cancel[i]);
	}
	vxt_rm(dir);
}

static void test_age(void **state)
{
	(void)state;
	uint64_t ns;
	assert_int_equal(vx_parse_age("30d", &ns), 0);
	assert_int_equal(ns, 30ULL * 86400 * 1000000000);
	assert_int_equal(vx_parse_age("90s", &ns), 0);
	assert_int_equal(ns, 90ULL * 1000000000);
	static const char *const bad[] = {
		"", "d", "30", "30x", "-1d", "1.5d", " 1d", "999999999999d"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_true(vx_parse_age(bad[i], &ns) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_where),
		cmocka_unit_test(test_history_and_blobs),
		cmocka_unit_test(test_map_grows),
		cmocka_unit_test(test_unwritable),
		cmocka_unit_test(test_read_only),
		cmocka_unit_test(test_other_version),
		cmocka_unit_test(test_index_flips),
		cmocka_unit_test(test_index_is_no_file),
		cmocka_unit_test(test_prune),
		cmocka_unit_test(test_prune_shared),
		cmocka_unit_test(test_retention),
		cmocka_unit_test(test_verify_while_pruned),
		cmocka_unit_test(test_lock),
		cmocka_unit_test(test_age),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
