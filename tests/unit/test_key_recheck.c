/* Keys and time: whether inputs have moved since a key was taken, and what a run changes for keys
 * that are taken later. */
#include "keytest.h"

#include <errno.h>

static void check_moved(struct vx_keyer *k, const struct vx_key_record *r, const char *want)
{
	char what[256] = "";
	assert_int_equal(vx_key_recheck(k, r, what, sizeof what), want != NULL);
	assert_string_equal(what, want ? want : "");
}

static int no_blob(void *self, const char *space, const void *key, size_t key_n, struct vx_arena *a,
	void **ret, size_t *ret_n)
{
	(void)self, (void)space, (void)key, (void)key_n, (void)a, (void)ret, (void)ret_n;
	return -ENOENT;
}

static int drop_blob(
	void *self, const char *space, const void *key, size_t key_n, const void *val, size_t n)
{
	(void)self, (void)space, (void)key, (void)key_n, (void)val, (void)n;
	return 0;
}

static uint32_t lists_of(const struct vx_keyer *k)
{
	struct vx_keyer_stats st;
	vx_keyer_stats(k, &st);
	return st.lists;
}

/* A check sees globalDependencies as they are then, however short a time ago another one looked. */
static void global_dependencies_are_checked_as_they_are(void **state)
{
	(void)state;
	static const char *const edits[][3] = {
		{"touch p/a/.env", "rm p/a/.env", "p/a/.env"},
		{"touch p/deep/er/.env", "rm p/deep/er/.env", "p/deep/er/.env"},
		{"mkdir p/new && touch p/new/.env", "rm -r p/new", "p/new/.env"},
		{"mv away p/here", "mv p/here away", "p/here/.env"},
		{"ln -s ../away/.env p/a/.env", "rm p/a/.env", "p/a/.env"},
		{"rm p/.env", "echo 1 >p/.env", "p/.env"},
		{"echo 2 >p/.env", "echo 1 >p/.env", "p/.env"},
		{"mkdir -p conf/x && touch conf/x/y", "rm -r conf", "conf/x/y"},
		{"mv p q; ln -s q p", "rm p; mv q p", "p/.env"},
	};
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "p/.env", "1\n");
	vxt_write(t.dir, "p/a/in", "1");
	vxt_write(t.dir, "p/deep/er/x", "1");
	vxt_write(t.dir, "away/.env", "1");
	t.ws.settings.turbo = true;
	t.ws.settings.global_files = kt_list(&t, "p/**/.env conf/**");
	kt_project(&t, "a", "p/a", "");
	kt_task(&t, 0, "t", "in", "dist/**", "");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = kt_compute(k, 0);
	check_moved(k, r, NULL);
	for (int round = 0; round < 2; round++) {
		for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
			kt_sh(&t, edits[i][0]);
			check_moved(k, r, edits[i][2]);
			kt_sh(&t, edits[i][1]);
			check_moved(k, r, NULL);
		}
		usleep(50000); /* now directories are older than a tick: they are not read again */
		check_moved(k, r, NULL);
	}
	vx_keyer_free(k);
	kt_close(&t);
}

/* Directories and rules that have not moved since the run began need not be listed again for a
 * recheck; any that has is. */
static void recheck_without_lists(void **state)
{
	(void)state;
	struct kt t;
	struct vx_key_memory nothing = {NULL, no_blob, drop_blob};
	kt_open(&t);
	t.o.memory = &nothing;
	vxt_write(t.dir, "p/a/src/f", "1");
	vxt_write(t.dir, "p/a/src/sub/g", "1");
	vxt_write(t.dir, "p/a/one", "1");
	vxt_write(t.dir, "p/a/package.json", "{}");
	vxt_write(t.dir, ".gitignore", "*.log\n");
	kt_project(&t, "a", "p/a", "");
	kt_task(&t, 0, "t", "src/** one two", "dist/**", "");
	usleep(50000); /* older than a tick */
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = kt_compute(k, 0);
	uint32_t n = lists_of(k);
	check_moved(k, r, NULL);
	vxt_write(t.dir, "p/a/dist/out", "1"); /* what the task does */
	check_moved(k, r, NULL);
	kt_sh(&t, "printf 2 >p/a/src/f");
	check_moved(k, r, "p/a/src/f");
	assert_int_equal(lists_of(k), n);
	vx_keyer_free(k);
	static const char *const edits[][3] = {
		{"touch p/a/src/sub/new", "rm p/a/src/sub/new", "p/a/src/sub/new"},
		{"touch p/a/two", "rm p/a/two", "p/a/two"},
		{"mv p/a/one p/a/gone", "mv p/a/gone p/a/one", "p/a/one"},
		{"mv p/a/src/sub p/a/src/f p/a", "mv p/a/sub p/a/f p/a/src", "p/a/src/f"},
		{"mv p q; ln -s q p", "rm p; mv q p", "p/a/one"},
		{"echo sub >p/.gitignore", "rm p/.gitignore", "p/a/src/sub/g"},
		{"echo sub >.gitignore", "echo '*.log' >.gitignore", "p/a/src/sub/g"},
		{"mkdir p/a/two; touch p/a/two/x", "rm -r p/a/two", "p/a/two/x"},
	};
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		usleep(50000);
		k = kt_keyer(&t);
		r = kt_compute(k, 0);
		check_moved(k, r, NULL);
		kt_sh(&t, edits[i][0]);
		check_moved(k, r, edits[i][2]);
		kt_sh(&t, edits[i][1]);
		vx_keyer_free(k);
	}
	kt_close(&t);
}

static void recheck(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/src/f", "1");
	vxt_write(t.dir, "a/package.json", "{}");
	vxt_write(t.dir, ".gitignore", "*.log\n");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "src/**", "src/gen/**", "");
	kt_task(&t, 0, "ws", "src/f", "", "")->cache.workspace_files = kt_list(&t, "shared/**");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = kt_compute(k, 0), *ws = kt_compute(k, 1);
	check_moved(k, r, NULL);
	vxt_write(t.dir, "a/src/x.log", "1");
	vxt_write(t.dir, "a/src/gen/out", "1");
	vxt_write(t.dir, "b/new", "1");
	kt_sh(&t, "cp -p a/src/f was && cp -p a/package.json manifest");
	kt_sh(&t, "touch a/src/f");
	check_moved(k, r, "a/src/f"); /* there may have been other bytes for a while */
	kt_sh(&t, "printf 2 >a/src/f");
	check_moved(k, r, "a/src/f");
	kt_sh(&t, "printf 1 >a/src/f");
	check_moved(k, r, "a/src/f");
	kt_sh(&t, "touch -r was a/src/f; ln a/src/f link; rm link");
	check_moved(k, r, NULL);
	kt_sh(&t, "printf '{}' >a/package.json");
	check_moved(k, r, "a/package.json");
	kt_sh(&t, "touch -r manifest a/package.json");
	check_moved(k, r, NULL);
	kt_sh(&t, "chmod +x a/src/f");
	check_moved(k, r, "a/src/f");
	kt_sh(&t, "chmod -x a/src/f");
	vxt_write(t.dir, "a/src/came", "");
	check_moved(k, r, "a/src/came");
	kt_sh(&t, "rm a/src/came; mv a/src/f a/src/g");
	check_moved(k, r, "a/src/f");
	kt_sh(&t, "mv a/src/g a/src/f; mv a/src real; ln -s ../real a/src");
	check_moved(k, r, "a/src/f");
	kt_sh(&t, "rm a/src; mv real a/src");
	check_moved(k, r, NULL);
	vxt_write(t.dir, "yarn.lock", "");
	check_moved(k, r, "yarn.lock");
	kt_sh(&t, "rm yarn.lock");
	kt_sh(&t, "printf '{ }' >a/package.json");
	check_moved(k, r, "a/package.json");
	kt_sh(&t, "cat manifest >a/package.json; touch -r manifest a/package.json");
	check_moved(k, r, NULL);
	check_moved(k, ws, NULL);
	vxt_write(t.dir, "shared/new", "");
	check_moved(k, ws, "shared/new");
	vx_keyer_free(k);
	kt_close(&t);
}

static void fill(struct vx_keyer *k, uint32_t task)
{
	struct vx_err err = {0};
	if (vx_key_fill(k, task, &err) < 0)
		fail_msg("vx_key_fill: %s", err.what);
}

/* The key of a dependent holds every file of a task without cache, through cached ones too. What
 * that task has written itself by the time the dependent starts is as it should be, and so is what
 * a cached one makes later. */
static void files_of_tasks_without_cache(void **state)
{
	(void)state;
	static const char *const edits[][3] = {
		{"printf 1 >p/s/x", "touch -r was p/s/x", "p/s/x"}, /* the same bytes again */
		{"touch p/new", "rm p/new", "p/new"},
		{"mv p/s/x p/s/y", "mv p/s/y p/s/x", "p/s/x"},
		{"printf 2 >p/gen", "printf 1 >p/gen; touch -r was p/gen", "p/gen"},
	};
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "p/s/x", "1");
	vxt_write(t.dir, "b/in", "1");
	vxt_write(t.dir, "a/in", "1");
	kt_project(&t, "p", "p", "");
	kt_project(&t, "b", "b", "");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "gen", NULL, NULL, "");
	kt_task(&t, 1, "t", "in", "dist/**", "0");
	kt_task(&t, 2, "t", "in", "dist/**", "1");
	kt_task(&t, 2, "apart", "in", "", "");
	kt_task(&t, 0, "build", "s/**", "dist/**", "");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r[4];
	for (uint32_t i = 0; i < 4; i++)
		r[i] = kt_compute(k, i);
	vxt_write(t.dir, "p/gen", "1"); /* what it does */
	kt_sh(&t, "touch -r p/s/x was; touch -r was p/gen");
	vx_keyer_ran(k, 0);
	for (uint32_t i = 1; i < 4; i++)
		fill(k, i);
	for (uint32_t i = 1; i < 4; i++)
		check_moved(k, r[i], NULL);
	for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
		kt_sh(&t, edits[i][0]);
		check_moved(k, r[1], edits[i][2]);
		check_moved(k, r[2], edits[i][2]);
		check_moved(k, r[3], NULL);
		kt_sh(&t, edits[i][1]);
		check_moved(k, r[2], NULL);
	}
	vxt_write(t.dir, "p/dist/out", "1");
	check_moved(k, r[2], NULL);
	vx_keyer_free(k);
	kt_close(&t);
}

/* One that cannot write there: its files are held to what the key folded. A turbo.json's: to their
 * bytes. A server that may write: to nothing. */
static void what_a_task_without_cache_may_write(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct kt t;
		kt_open(&t);
		vxt_write(t.dir, "p/x", "1");
		vxt_write(t.dir, "a/in", "1");
		kt_project(&t, "p", "p", "");
		kt_project(&t, "a", "a", "");
		struct vx_task_decl *d = kt_task(&t, 0, "t", NULL, NULL, "");
		d->exec.sandboxed = kind == 0;
		d->exec.persistent = kind == 2;
		d->dialect = kind == 1 ? VX_DIALECT_TURBO : VX_DIALECT_VX;
		kt_task(&t, 1, "t", "in", "", "0");
		struct vx_keyer *k = kt_keyer(&t);
		kt_compute(k, 0);
		const struct vx_key_record *r = kt_compute(k, 1);
		if (kind == 0)
			vxt_write(t.dir, "p/x", "2");
		if (kind != 2)
			vx_keyer_ran(k, 0);
		fill(k, 1);
		check_moved(k, r, kind == 0 ? "p/x" : NULL);
		vxt_write(t.dir, "p/x", "1");
		check_moved(k, r, kind == 0 ? "p/x" : NULL);
		vxt_write(t.dir, "p/x", "3");
		check_moved(k, r, kind == 2 ? NULL : "p/x");
		vx_keyer_free(k);
		kt_close(&t);
	}
}

/* A lockfile that is written and written back counts as moved; under a turbo.json its bytes do. A
 * command that has ended and may write it leaves it as later keys take it. */
static void fingerprint_written_back(void **state)
{
	(void)state;
	for (int turbo = 0; turbo < 2; turbo++) {
		struct kt t;
		kt_open(&t);
		vxt_write(t.dir, "yarn.lock", "1");
		vxt_write(t.dir, "a/in", "1");
		t.ws.settings.turbo = turbo;
		kt_project(&t, "root", ".", "a");
		kt_project(&t, "a", "a", "");
		kt_task(&t, 0, "install", NULL, NULL, "");
		kt_task(&t, 1, "t", "in", "", "");
		struct vx_keyer *k = kt_keyer(&t);
		const struct vx_key_record *r = kt_compute(k, 1);
		check_moved(k, r, NULL);
		kt_sh(&t,
			"printf 2 >yarn.lock; printf 1 >yarn.lock; touch -d '1 hour ago' yarn.lock");
		check_moved(k, r, turbo ? NULL : "yarn.lock");
		struct vx_digest was = r->key;
		vx_keyer_ran(k, 0);
		r = kt_compute(k, 1);
		assert_true(kt_same(was, r->key));
		check_moved(k, r, NULL);
		kt_sh(&t, "printf 2 >yarn.lock");
		check_moved(k, r, "yarn.lock");
		vx_keyer_free(k);
		kt_close(&t);
	}
}

/* What was a repository when the run began and is a link to one now is a link. */
static void nested_repository_behind_a_link(void **state)
{
	(void)state;
	struct kt t;
	char what[128] = "";
	kt_open(&t);
	kt_sh(&t, "git init -q a/lib && echo 1 >a/lib/f");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "lib/**", "", "");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = kt_compute(k, 0);
	assert_string_equal(kt_paths(r), "a/lib/f");
	kt_sh(&t, "mv a/lib a/real && ln -s real a/lib");
	assert_int_equal(vx_key_recheck(k, r, what, sizeof what), 1);
	vx_keyer_free(k);
	kt_close(&t);
}

static void runs_are_seen_by_later_keys(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/src/f", "1");
	vxt_write(t.dir, "b/f", "1");
	kt_project(&t, "a", "a", "");
	kt_project(&t, "b", "b", "");
	kt_task(&t, 0, "gen", "src/f", "src/gen/**", "");
	kt_task(&t, 0, "build", "src/**", "dist/**", "0");
	kt_task(&t, 1, "other", "f", "", "");
	kt_task(&t, 1, "free", NULL, NULL, "");
	struct vx_keyer *k = kt_keyer(&t);
	kt_compute(k, 0);
	assert_false(vx_key_stable(k, 1));
	vxt_write(t.dir, "a/src/gen/x", "1");
	vx_keyer_ran(k, 0);
	assert_string_equal(kt_paths(kt_compute(k, 1)), "a/src/f a/src/gen/x");
	struct vx_digest was = kt_compute(k, 2)->key;
	vxt_write(t.dir, "b/f", "22");
	/* nothing ran there: the old look holds */
	assert_true(kt_same(was, kt_compute(k, 2)->key));
	vx_keyer_ran(k, 3);
	assert_false(kt_same(was, kt_compute(k, 2)->key));
	vx_keyer_free(k);
	kt_close(&t);
}

int main(int argc, char **argv)
{
	vxt_keeper(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recheck),
		cmocka_unit_test(recheck_without_lists),
		cmocka_unit_test(global_dependencies_are_checked_as_they_are),
		cmocka_unit_test(files_of_tasks_without_cache),
		cmocka_unit_test(what_a_task_without_cache_may_write),
		cmocka_unit_test(fingerprint_written_back),
		cmocka_unit_test(nested_repository_behind_a_link),
		cmocka_unit_test(runs_are_seen_by_later_keys),
	};
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	return cmocka_run_group_tests_name("key_recheck", tests, NULL, NULL);
}
