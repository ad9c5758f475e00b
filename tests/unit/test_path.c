#include "vxtest.h"

#include "vx/arena.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>

static struct vx_arena A;

static void norm(void **state)
{
	static const char *const t[][2] = {
		{"", "."},
		{".", "."},
		{"./", "."},
		{"/", "/"},
		{"//", "/"},
		{"a", "a"},
		{"a/", "a"},
		{"./a//b/.", "a/b"},
		{"a/..", "."},
		{"a/../b", "b"},
		{"../a", "../a"},
		{"a/../../b", "../b"},
		{"../../a", "../../a"},
		{"/..", "/"},
		{"/../a", "/a"},
		{"/a/../../b", "/b"},
		{"a/b/../../..", ".."},
		{"/a/b/..", "/a"},
		{"...", "..."},
		{"a/...", "a/..."},
		{"a/..b/..", "a"},
		{"..a/..", "."},
		{"x/..a/../y", "x/y"},
		{"./..", ".."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		assert_string_equal(vx_path_norm(&A, t[i][0]), t[i][1]);
		/* what is normal stays so */
		assert_string_equal(vx_path_norm(&A, t[i][1]), t[i][1]);
	}
}

static void join(void **state)
{
	(void)state;
	assert_string_equal(vx_path_join(&A, "a/b", "../c"), "a/c");
	assert_string_equal(vx_path_join(&A, "a", "/x/./y"), "/x/y");
	assert_string_equal(vx_path_join(&A, "/", "a"), "/a");
	assert_string_equal(vx_path_join(&A, ".", "a"), "a");
	assert_string_equal(vx_path_join(&A, "", "a"), "a");
	assert_string_equal(vx_path_join(&A, "a", ""), "a");
	assert_string_equal(vx_path_join(&A, "a", "../.."), "..");
}

static void within(void **state)
{
	(void)state;
	assert_true(vx_path_within("a", "a"));
	assert_true(vx_path_within("a/b", "a"));
	assert_false(vx_path_within("ab", "a"));
	assert_false(vx_path_within("a", "a/b"));
	assert_true(vx_path_within("/a", "/"));
	assert_true(vx_path_within("/", "/"));
	assert_true(vx_path_within("a/b", "."));
	assert_true(vx_path_within("..a", "."));
	assert_false(vx_path_within("..", "."));
	assert_false(vx_path_within("../a", "."));
	assert_false(vx_path_within("/a", "."));
	assert_false(vx_path_within("a", "/"));
}

static void below(void **state)
{
	(void)state;
	assert_string_equal(vx_path_below("/a/b/c", "/a"), "b/c");
	assert_string_equal(vx_path_below("/a", "/a"), "");
	assert_string_equal(vx_path_below("/a/b", "/"), "a/b");
	assert_string_equal(vx_path_below("/", "/"), "");
	assert_string_equal(vx_path_below("a/b", "."), "a/b");
	assert_string_equal(vx_path_below(".", "."), "");
	assert_null(vx_path_below("/ab", "/a"));
	assert_null(vx_path_below("../x", "."));
}

static void relative(void **state)
{
	static const char *const t[][3] = {
		{"/a/b", "/a/c", "../c"},
		{"/a/b", "/a/b", "."},
		{"/a", "/a/b/c", "b/c"},
		{"/a/b/c", "/a", "../.."},
		{"/", "/a/b", "a/b"},
		{"/a/b", "/", "../.."},
		{"a", "b", "../b"},
		{".", "a/b", "a/b"},
		{"a/b", ".", "../.."},
		{"a/bc", "a/bd", "../bd"},
		{"a/b", "a/bc", "../bc"},
		{"a/bc", "a/b", "../b"},
		{".", ".", "."},
		{"/x", "/y", "../y"},
		{"/", "/", "."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		assert_string_equal(vx_path_relative(&A, t[i][0], t[i][1]), t[i][2]);
		/* and it leads there */
		assert_string_equal(vx_path_join(&A, t[i][0], t[i][2]), t[i][1]);
	}
}

static void base_and_dir(void **state)
{
	(void)state;
	assert_string_equal(vx_path_base("a/b"), "b");
	assert_string_equal(vx_path_base("b"), "b");
	assert_string_equal(vx_path_dir(&A, "a/b/c"), "a/b");
	assert_string_equal(vx_path_dir(&A, "a"), ".");
	assert_string_equal(vx_path_dir(&A, "/a"), "/");
}

static char *canon(const char *path)
{
	char *ret = NULL;

	assert_int_equal(vx_path_canon(&A, path, &ret), 0);
	return ret;
}

static void canonical_of_what_exists(void **state)
{
	char *dir = vxt_tmpdir();

	(void)state;
	vxt_write(dir, "d/e/f", "");
	assert_int_equal(symlink("d/e", vxt_path(dir, "l")), 0);
	assert_int_equal(symlink(dir, vxt_path(dir, "d/up")), 0);
	assert_int_equal(symlink("../l", vxt_path(dir, "d/ll")), 0);
	assert_string_equal(canon(vxt_path(dir, "l/f")), vxt_path(dir, "d/e/f"));
	assert_string_equal(canon(vxt_path(dir, "l/../e")),
		vxt_path(dir, "d/e")); /* ".." of where the link leads */
	assert_string_equal(canon(vxt_path(dir, "d/ll/f")), vxt_path(dir, "d/e/f"));
	assert_string_equal(canon(vxt_path(dir, "d/up/d/up/l")), vxt_path(dir, "d/e"));
	assert_string_equal(canon("/"), "/");
	assert_string_equal(canon("/.."), "/");

	char *here = getcwd(NULL, 0);
	assert_int_equal(chdir(vxt_path(dir, "l")), 0);
	assert_string_equal(canon("f"), vxt_path(dir, "d/e/f"));
	assert_string_equal(canon(""), vxt_path(dir, "d/e"));
	assert_string_equal(canon("../../l"), vxt_path(dir, "d/e"));
	assert_int_equal(chdir(here), 0);
	free(here);
	vxt_rm(dir);
}

static void canonical_of_what_is_missing(void **state)
{
	char *dir = vxt_tmpdir();

	(void)state;
	vxt_write(dir, "d/f", "");
	assert_int_equal(symlink("d", vxt_path(dir, "l")), 0);
	assert_int_equal(symlink("nowhere/x", vxt_path(dir, "dangling")), 0);
	assert_string_equal(canon(vxt_path(dir, "l/no/such")), vxt_path(dir, "d/no/such"));
	assert_string_equal(canon(vxt_path(dir, "dangling")), vxt_path(dir, "nowhere/x"));
	assert_string_equal(canon(vxt_path(dir, "dangling/y")), vxt_path(dir, "nowhere/x/y"));
	assert_string_equal(canon(vxt_path(dir, "no/../l")), vxt_path(dir, "d"));
	assert_string_equal(
		canon(vxt_path(dir, "d/f/below-a-file")), vxt_path(dir, "d/f/below-a-file"));
	vxt_rm(dir);
}

static void canonical_errors(void **state)
{
	char *dir = vxt_tmpdir(), *untouched = NULL, *ret = untouched;
	char longest[VX_MAX_PATH + 10];

	(void)state;
	assert_int_equal(symlink("b", vxt_path(dir, "a")), 0);
	assert_int_equal(symlink("a", vxt_path(dir, "b")), 0);
	assert_int_equal(vx_path_canon(&A, vxt_path(dir, "a"), &ret), -ELOOP);
	memset(longest, 'x', sizeof longest - 1);
	longest[0] = '/';
	longest[sizeof longest - 1] = '\0';
	assert_int_equal(vx_path_canon(&A, longest, &ret), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof longest - 1; i += 2)
		longest[i] = '/';
	longest[VX_MAX_PATH - 1] = '\0';
	/* with the current directory before it */
	assert_int_equal(vx_path_canon(&A, longest + 1, &ret), -ENAMETOOLONG);
	assert_ptr_equal(ret, untouched);
	vxt_rm(dir);
}

static int free_arena(void **state)
{
	(void)state;
	vx_arena_free(&A);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(norm, free_arena),
		cmocka_unit_test_teardown(join, free_arena),
		cmocka_unit_test_teardown(within, free_arena),
		cmocka_unit_test_teardown(below, free_arena),
		cmocka_unit_test_teardown(relative, free_arena),
		cmocka_unit_test_teardown(base_and_dir, free_arena),
		cmocka_unit_test_teardown(canonical_of_what_exists, free_arena),
		cmocka_unit_test_teardown(canonical_of_what_is_missing, free_arena),
		cmocka_unit_test_teardown(canonical_errors, free_arena),
	};

	return cmocka_run_group_tests_name("path", tests, NULL, NULL);
}
