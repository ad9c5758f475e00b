/* Globs: the dialect, reach, overlap and the walk. */
#include "vxtest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/glob.h"

#include <errno.h>

static struct vx_arena arena;

static struct vx_globset *compile(enum vx_dialect d, const char *list)
{
	struct vx_strlist l = {0};
	char *copy = vx_arena_strdup(&arena, list), *save = NULL;
	for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save))
		vx_strlist_add(&l, &arena, t);
	struct vx_globset *s = NULL;
	struct vx_err err = {0};
	assert_int_equal(vx_globset_compile(vx_strlist_done(&l), d, &arena, &s, &err), 0);
	return s;
}

static bool vx_m(const char *list, const char *path)
{
	return vx_globset_match(compile(VX_DIALECT_VX, list), path, strlen(path));
}

static bool turbo_m(const char *list, const char *path)
{
	return vx_globset_match(compile(VX_DIALECT_TURBO, list), path, strlen(path));
}

static int setup(void **state)
{
	(void)state;
	arena = (struct vx_arena){0};
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vx_arena_free(&arena);
	return 0;
}

static void literal_names_file_or_tree(void **state)
{
	(void)state;
	assert_true(vx_m("src", "src"));
	assert_true(vx_m("src", "src/a/b.c"));
	assert_true(vx_m("./src/", "src/a"));
	assert_true(vx_m(".", "x/y"));
	assert_false(vx_m("src", "src2"));
	assert_false(vx_m("src", "a/src"));
	assert_false(vx_m("src/a.c", "src/a.cc"));
	assert_true(vx_m("app/[slug]/page.tsx", "app/[slug]/page.tsx"));
	assert_false(vx_m("app/[slug]/page.tsx", "app/s/page.tsx"));
	assert_true(vx_m("app/[...all]/*.tsx", "app/[...all]/x.tsx"));
	assert_true(vx_m("a+(b)", "a+(b)"));
}

static void wildcards(void **state)
{
	(void)state;
	assert_true(vx_m("*", "a"));
	assert_true(vx_m("*", ".hidden"));
	assert_false(vx_m("*", "a/b"));
	assert_true(vx_m("**", "a/b/c"));
	assert_true(vx_m("src/**", "src/a"));
	assert_true(vx_m("src/**", "src"));
	assert_false(vx_m("src/**", "srcs/a"));
	assert_true(vx_m("**/*.c", "x.c"));
	assert_true(vx_m("**/*.c", "a/b/x.c"));
	assert_false(vx_m("**/*.c", "a/x.cc"));
	assert_true(vx_m("a/**/b/**/c", "a/b/c"));
	assert_true(vx_m("a/**/b/**/c", "a/x/b/y/b/z/c"));
	assert_false(vx_m("a/**/b/**/c", "a/x/c/b"));
	assert_true(vx_m("a**b", "axxb"));
	assert_false(vx_m("a**b", "ax/xb"));
	assert_true(vx_m("?.c", "x.c"));
	assert_false(vx_m("?.c", ".c"));
	assert_false(vx_m("a?b", "a/b"));
	assert_true(vx_m("?.c", "\xc3\xa9.c"));
	assert_true(vx_m("?.c", "\xff.c"));
	assert_false(vx_m("?.c", "\xff\xff.c"));
	assert_true(vx_m("*.test.*", "a.test.test.ts"));
	assert_false(vx_m("a*b*c", "aXbX"));
	assert_true(vx_m("*a*", "bab"));
}

static void braces(void **state)
{
	(void)state;
	assert_true(vx_m("*.{ts,tsx}", "a.tsx"));
	assert_false(vx_m("*.{ts,tsx}", "a.js"));
	assert_true(vx_m("{src,test}/**/*.c", "test/x/y.c"));
	assert_true(vx_m("a{,b}", "a"));
	assert_true(vx_m("{a,b{c,d/e}}.x", "bd/e.x"));
	assert_true(vx_m("{a}", "{a}"));
	assert_true(vx_m("{a}", "{a}/x"));
	assert_true(vx_m("x{a{b,c}}", "x{ac}"));
	assert_true(vx_m("{-$locale}/**", "{-$locale}/a"));
	assert_true(vx_m("{a,{b}", "{a,{b}"));
	assert_true(vx_m("a}b{", "a}b{"));
	assert_true(vx_m("{src/**,lib/*.c}", "src/deep/x"));
	assert_false(vx_m("{src,lib}", "src/x"));
	struct vx_strs many = {
		(const char *const[]){"{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}"},
		1};
	struct vx_globset *s = NULL;
	struct vx_err err = {0};
	assert_int_equal(vx_globset_compile(many, VX_DIALECT_VX, &arena, &s, &err), -E2BIG);
	assert_non_null(strstr(err.what, "1024"));
	assert_null(s);
}

static void escapes(void **state)
{
	(void)state;
	assert_true(vx_m("a\\*b", "a*b"));
	assert_false(vx_m("a\\*b", "axb"));
	assert_true(vx_m("\\!x", "!x"));
	assert_true(vx_m("\\{a,b\\}", "{a,b}"));
	assert_string_equal(vx_globset_prefix(compile(VX_DIALECT_VX, "a\\*b/c*"), 0), "a*b");
}

static void negation_subtracts_wherever_it_stands(void **state)
{
	(void)state;
	assert_false(vx_m("!src/x.c src/**", "src/x.c"));
	assert_false(vx_m("src/** !src/x.c", "src/x.c"));
	assert_false(vx_m("** !gen", "gen/a/b"));
	assert_true(vx_m("** !gen", "gen2/a"));
	assert_false(vx_m("!x", "y"));
	assert_true(vx_globset_empty(compile(VX_DIALECT_VX, "!x")));
}

static void prefixes_that_walks_start_at(void **state)
{
	(void)state;
	const struct vx_globset *s =
		compile(VX_DIALECT_VX, "a/b/* a ab/* a/c/x ab/* x/.git/* .vx/y .github/* x/.vxx");
	static const bool covered[] = {true, false, false, true, true, false, false, false, false};
	static const bool own[] = {false, false, false, false, false, true, true, false, false};
	for (uint32_t i = 0; i < 9; i++) {
		assert_int_equal(vx_globset_prefix_covered(s, i), covered[i]);
		assert_int_equal(vx_globset_prefix_own(s, i), own[i]);
	}
	s = compile(VX_DIALECT_VX, "a *.c");
	assert_true(vx_globset_prefix_covered(s, 0));
	assert_false(vx_globset_prefix_covered(s, 1));
}

static void entries_one_by_one(void **state)
{
	(void)state;
	const struct vx_globset *s = compile(VX_DIALECT_VX, "a/b/** !a/b/no lit/x *.c {p,q}/z");
	assert_int_equal(vx_globset_count(s), 4);
	assert_string_equal(vx_globset_pattern(s, 1), "lit/x");
	assert_string_equal(vx_globset_prefix(s, 0), "a/b");
	assert_string_equal(vx_globset_prefix(s, 1), "lit/x");
	assert_string_equal(vx_globset_prefix(s, 2), "");
	assert_string_equal(vx_globset_prefix(s, 3), "");
	assert_true(vx_globset_literal(s, 1));
	assert_false(vx_globset_literal(s, 0));
	assert_false(vx_globset_literal(s, 3));
	assert_true(vx_globset_match_one(s, 0, "a/b/c", 5));
	assert_false(vx_globset_match_one(s, 0, "a/b/no", 6));
	assert_false(vx_globset_match_one(s, 2, "a/b/c", 5));
	assert_false(vx_globset_match_one(s, 9, "a", 1));
	assert_true(vx_globset_negates(s, "a/b/no/x", 8));
}

static bool reach(const char *list, const char *dir)
{
	return vx_globset_may_reach(compile(VX_DIALECT_VX, list), dir, strlen(dir));
}

static void reach_prunes(void **state)
{
	(void)state;
	assert_true(reach("src/**/*.c", ""));
	assert_true(reach("src/**/*.c", "."));
	assert_true(reach("src/**/*.c", "src/a/b"));
	assert_false(reach("src/**/*.c", "lib"));
	assert_false(reach("*.c", "src"));
	assert_true(reach("src/*/x.c", "src/a"));
	assert_false(reach("src/*/x.c", "src/a/b"));
	assert_true(reach("src", "src/a"));
	assert_true(reach("a/b/c", "a/b"));
	assert_false(reach("** !gen", "gen"));
	assert_false(reach("** !gen/**", "gen/x"));
	assert_true(reach("** !gen/*.c", "gen"));
	assert_true(reach("** !gen/**/x", "gen"));
}

static bool meet(const char *x, const char *bx, const char *y, const char *by)
{
	bool a = vx_globset_overlap(compile(VX_DIALECT_VX, x), bx, compile(VX_DIALECT_VX, y), by);
	bool b = vx_globset_overlap(compile(VX_DIALECT_VX, y), by, compile(VX_DIALECT_VX, x), bx);
	assert_int_equal(a, b);
	return a;
}

static void overlap(void **state)
{
	(void)state;
	assert_true(meet("dist/**", "a", "dist/x.js", "a"));
	assert_false(meet("dist/**", "a", "dist/**", "b"));
	assert_true(meet("a/dist/**", ".", "dist", "a"));
	assert_true(meet("**/*.js", ".", "dist/**", "a"));
	assert_false(meet("*.js", "a", "*.ts", "a"));
	assert_true(meet("*.js", "a", "x*", "a"));
	assert_false(meet("a*", "p", "b*", "p"));
	assert_true(meet("a*c", "p", "*b*", "p"));
	assert_false(meet("dist", "a", "dist2", "a"));
	assert_true(meet("dist", "a", "dist/a/b/c", "a"));
	assert_false(meet("*/x", "a", "*/y", "a"));
	assert_true(meet("{x,y}.js", "a", "{y,z}.js", "a"));
	assert_true(meet("dist/** !dist/x", "a", "dist/x", "a"));
	assert_true(meet("??", "a", "\xc3\xa9*", "a"));
	assert_false(meet("src/**/*.c", "a", "src/**/*.h", "a"));
	assert_true(meet("src/**/a/**", "a", "src/b/**", "a"));
	assert_false(meet("!x", "a", "**", "a"));
}

static void turbo_dialect(void **state)
{
	(void)state;
	assert_true(turbo_m("[ab]/x", "a/x"));
	assert_false(turbo_m("[!ab]/x", "a/x"));
	assert_true(turbo_m("[a-c]?", "b!"));
	assert_true(turbo_m("[ab", "[ab"));
	assert_true(turbo_m("foo**", "foobar/x/y"));
	assert_true(turbo_m("**.ts", "a/b/c.ts"));
	assert_false(turbo_m("** !dist/*", "dist/a/b"));
	assert_true(turbo_m("some-dir/", "some-dir/x/y"));
	assert_true(turbo_m("a/../b/*.c", "b/x.c"));
	assert_true(turbo_m("src/**/*.prebuilt*", "src/x.prebuilt.ts"));
	assert_false(turbo_m("**/* !test/**/*", "test/fixtures/a"));
	assert_true(turbo_m("**/* !test/**/*", "src/test"));
}

static void leaving_the_base_is_refused(void **state)
{
	(void)state;
	struct vx_globset *s = NULL;
	struct vx_err err = {0};
	struct vx_strs up = {(const char *const[]){"a/{b,../..}/c"}, 1};
	assert_int_equal(vx_globset_compile(up, VX_DIALECT_VX, &arena, &s, &err), -EINVAL);
	assert_non_null(strstr(err.what, "a/{b,../..}/c"));
	struct vx_strs up2 = {(const char *const[]){"../x"}, 1};
	assert_int_equal(vx_globset_compile(up2, VX_DIALECT_TURBO, &arena, &s, NULL), -EINVAL);
}

struct seen {
	char text[2048];
	int stop_after;
};

static int note(void *arg, const struct vx_glob_hit *h)
{
	struct seen *s = arg;
	size_t n = strlen(s->text);
	snprintf(s->text + n, sizeof s->text - n, "%s%c ", h->path, "f@/?"[h->type]);
	return s->stop_after && --s->stop_after == 0 ? 7 : 0;
}

static void check_walk(enum vx_dialect d, const char *dir, const char *list, const char *want)
{
	struct seen seen = {{0}, 0};
	int fd = vx_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0), before = vxt_open_fds();
	assert_int_equal(vx_globset_walk(compile(d, list), fd, note, &seen), 0);
	assert_int_equal(vxt_open_fds(), before);
	vx_close(fd);
	assert_string_equal(seen.text, want);
}

static void walk(void **state)
{
	(void)state;
	char *d = vxt_tmpdir();
	vxt_write(d, "dist/a.js", "1");
	vxt_write(d, "dist/a/b.js", "1");
	vxt_write(d, "dist/node_modules/x.js", "1");
	vxt_write(d, "dist/.git/x", "1");
	vxt_write(d, "dist/.vx/x", "1");
	vxt_write(d, "src/deep/x.c", "1");
	assert_int_equal(mkdir(vxt_path(d, "dist/empty"), 0777), 0);
	assert_int_equal(mkdir(vxt_path(d, "bare"), 0777), 0);
	assert_int_equal(symlink("nowhere", vxt_path(d, "dist/link")), 0);
	assert_int_equal(symlink("dist", vxt_path(d, "out")), 0);
	assert_int_equal(mkfifo(vxt_path(d, "src/pipe"), 0666), 0);
	check_walk(VX_DIALECT_VX, d, "dist/**", "dist/a.jsf dist/a/b.jsf dist/empty/ dist/link@ ");
	check_walk(VX_DIALECT_VX, d, "dist", "dist/a.jsf dist/a/b.jsf dist/empty/ dist/link@ ");
	check_walk(VX_DIALECT_VX, d, "dist/node_modules dist/**/a.js",
		"dist/a.jsf dist/node_modules/x.jsf ");
	check_walk(VX_DIALECT_VX, d, "**/*.js", "dist/a.jsf dist/a/b.jsf ");
	check_walk(VX_DIALECT_TURBO, d, "dist/**",
		"dist/a.jsf dist/a/b.jsf dist/empty/ dist/link@ dist/node_modules/x.jsf ");
	check_walk(VX_DIALECT_VX, d, "out", "out@ ");
	check_walk(VX_DIALECT_VX, d, "out/**", "out@ ");
	check_walk(VX_DIALECT_VX, d, "out/a.js", "");
	check_walk(VX_DIALECT_VX, d, "bare", "bare/ ");
	check_walk(VX_DIALECT_VX, d, "bare/** missing/** dist/.git", "bare/ ");
	check_walk(VX_DIALECT_VX, d, "src/**", "src/deep/x.cf src/pipe? ");
	check_walk(VX_DIALECT_VX, d, "** !dist !src/deep", "bare/ out@ src/pipe? ");
	check_walk(VX_DIALECT_VX, d, "dist/a.js dist/a.js/** dist/a.*", "dist/a.jsf ");
	struct seen seen = {{0}, 1};
	int fd = vx_open(AT_FDCWD, d, O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(vx_globset_walk(compile(VX_DIALECT_VX, "dist/**"), fd, note, &seen), 7);
	assert_string_equal(seen.text, "dist/a.jsf ");
	vx_close(fd);
	vxt_rm(d);
}

/* In a child that is no longer root, since root reads everything. */
static void unreadable_directory_is_an_error(void **state)
{
	(void)state;
	char *d = vxt_tmpdir();
	vxt_write(d, "dist/a/b.js", "1");
	assert_int_equal(chmod(d, 0755), 0);
	assert_int_equal(chmod(vxt_path(d, "dist/a"), 0), 0);
	const struct vx_globset *set = compile(VX_DIALECT_VX, "dist/**");
	pid_t pid = fork();
	if (pid == 0) {
		struct seen seen = {{0}, 0};
		if (geteuid() == 0 && setresuid(65534, 65534, 65534) < 0)
			_exit(2);
		int fd = vx_open(AT_FDCWD, d, O_RDONLY | O_DIRECTORY, 0);
		_exit(fd < 0 || vx_globset_walk(set, fd, note, &seen) != -EACCES);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(chmod(vxt_path(d, "dist/a"), 0755), 0);
	vxt_rm(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(literal_names_file_or_tree, setup, teardown),
		cmocka_unit_test_setup_teardown(wildcards, setup, teardown),
		cmocka_unit_test_setup_teardown(braces, setup, teardown),
		cmocka_unit_test_setup_teardown(escapes, setup, teardown),
		cmocka_unit_test_setup_teardown(
			negation_subtracts_wherever_it_stands, setup, teardown),
		cmocka_unit_test_setup_teardown(prefixes_that_walks_start_at, setup, teardown),
		cmocka_unit_test_setup_teardown(entries_one_by_one, setup, teardown),
		cmocka_unit_test_setup_teardown(reach_prunes, setup, teardown),
		cmocka_unit_test_setup_teardown(overlap, setup, teardown),
		cmocka_unit_test_setup_teardown(turbo_dialect, setup, teardown),
		cmocka_unit_test_setup_teardown(leaving_the_base_is_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(walk, setup, teardown),
		cmocka_unit_test_setup_teardown(unreadable_directory_is_an_error, setup, teardown),
	};
	return cmocka_run_group_tests_name("glob", tests, NULL, NULL);
}
