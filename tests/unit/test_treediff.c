/* Changed paths, with real git: a commit's tree against the worktree or another commit. Every case
 * runs by our own reader and by git's lists. */
#include "vxtest.h"

#include "../../sched/workspace/treediff.h"

#include "vx/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char *top, root[4096], marker[4096];
static struct vx_err err;

/* In the workspace; `%s` of the arguments as in printf. Returns what it prints. */
__attribute__((format(printf, 1, 2))) static const char *sh(const char *fmt, ...)
{
	char script[4096], cmd[9000];
	const char *out;
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(script, sizeof script, fmt, ap);
	va_end(ap);
	snprintf(cmd, sizeof cmd,
		"set -e; cd '%s'; export GIT_AUTHOR_NAME=t GIT_AUTHOR_EMAIL=t@example.org GIT_COMMITTER_NAME=t "
		"GIT_COMMITTER_EMAIL=t@example.org GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1; { %s; } 2>&1",
		root, script);
	if (vxt_sh(cmd, &out) != 0)
		fail_msg("%s: %s", script, out);
	return out;
}

/* The changed paths, sorted, on one line; the error where there is one. */
static const char *diff(const char *from, const char *to)
{
	static char line[8192];
	char ids[2][65] = {{0}};
	struct vx_arena a = {0};
	struct vx_git g;
	struct vx_strlist paths = {0};
	size_t n = 0;

	snprintf(ids[0], 65, "%.40s", sh("git rev-parse %s", from));
	if (to)
		snprintf(ids[1], 65, "%.40s", sh("git rev-parse %s", to));
	memset(&err, 0, sizeof err);
	int fds = vxt_open_fds();
	assert_int_equal(vx_git_find(root, &a, &g, NULL), 0);
	int r = vx_treediff(&g, root, ids[0], to ? ids[1] : NULL, &a, &paths, &err);
	assert_int_equal(vxt_open_fds(), fds);
	line[0] = '\0';
	vx_strlist_sort_unique(&paths);
	for (uint32_t i = 0; r == 0 && i < paths.n; i++)
		n += (size_t)snprintf(line + n, sizeof line - n, "%s%s", n ? " " : "", paths.v[i]);
	if (r < 0)
		snprintf(line, sizeof line, "%s", err.what);
	vx_arena_free(&a);
	return line;
}

static int set_up(void **state)
{
	(void)state;
	top = vxt_tmpdir();
	snprintf(root, sizeof root, "%s/ws", top);
	snprintf(marker, sizeof marker, "%s/ran", top);
	vxt_write(top, "ws/a/x", "1");
	vxt_write(top, "ws/a/y", "1");
	vxt_write(top, "ws/b/z", "1");
	vxt_write(top, "ws/.gitignore", "*.o\n");
	sh("ln -s x a/link; touch -hd 2001-01-01 a/* b/*; git init -q -b main .; git add -A; git commit -qm 1");
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	unsetenv("VX_FILES");
	assert_int_not_equal(access(marker, F_OK), 0); /* no program of the repository's has run */
	vxt_rm(top);
	return 0;
}

/* By our own reader, or by git: the test's state says which. */
static int set_up_git(void **state)
{
	setenv("VX_FILES", "git", 1);
	return set_up(state);
}

static bool by_git(void)
{
	return getenv("VX_FILES") != NULL;
}

static void the_worktree_against_a_commit(void **state)
{
	(void)state;
	assert_string_equal(diff("HEAD", NULL), "");
	sh("touch a/x b/z; echo o >a/x.o; mkdir -p .vx a/.vx; echo v >.vx/f; echo v >a/.vx/f");
	assert_string_equal(diff("HEAD", NULL), ""); /* ignored, or only looked at */
	sh("printf 2 >a/x; rm a/y; echo n >b/new; chmod +x b/z; ln -sf y a/link");
	assert_string_equal(diff("HEAD", NULL), "a/link a/x a/y b/new b/z");
	sh("git add -A; git commit -qm 2");
	assert_string_equal(diff("HEAD", NULL), "");
	assert_string_equal(diff("HEAD~1", NULL), "a/link a/x a/y b/new b/z");
	sh("printf 1 >a/x; printf 1 >a/y");
	assert_string_equal(diff("HEAD~1", NULL), "a/link b/new b/z");
	sh("rm -r b; echo file >b");
	assert_string_equal(diff("HEAD~1", NULL), "a/link b b/z");
}

static void one_commit_against_another(void **state)
{
	(void)state;
	sh("printf 2 >a/x; git mv a/y b/y; git add -A; git commit -qm 2; printf 3 >b/z; echo u >u");
	assert_string_equal(diff("HEAD~1", "HEAD"), "a/x a/y b/y");
	assert_string_equal(diff("HEAD", "HEAD"), "");
}

/* A filter's bytes on disk are never those of the blob. The index proves that they are the ones
 * that were checked out; else nobody can tell without running the filter. */
static void a_filter_is_not_run(void **state)
{
	(void)state;
	sh("git config filter.f.clean 'touch %s; tr a-z A-Z'; echo '*.f filter=f' >.gitattributes; echo text >a/t.f",
		marker);
	sh("touch -d 2001-01-01 a/t.f .gitattributes; git add -A; git commit -qm f; rm %s", marker);
	assert_string_equal(diff("HEAD", NULL), by_git() ? "a/t.f" : "");
	sh("touch a/t.f");
	assert_string_equal(diff("HEAD", NULL), "a/t.f");
	sh("echo tezt >a/t.f; git config core.fsmonitor 'touch %s; false'", marker);
	assert_string_equal(diff("HEAD", NULL), "a/t.f");
}

static void changed_attributes_change_what_they_convert(void **state)
{
	(void)state;
	sh("echo '* -diff' >a/.gitattributes; git add -A; git commit -qm 1");
	sh("printf '*x text\\n*.png binary\\n' >a/.gitattributes");
	assert_string_equal(diff("HEAD", NULL), "a/.gitattributes a/x");
	sh("git add -A; git commit -qm 2");
	assert_string_equal(diff("HEAD~1", "HEAD"), "a/.gitattributes a/x");
	sh("git rm -q a/.gitattributes");
	assert_string_equal(diff("HEAD", NULL), "a/.gitattributes a/x");
	assert_string_equal(diff("HEAD~1", NULL), "a/.gitattributes");
}

static void what_a_sparse_checkout_leaves_out_has_not_changed(void **state)
{
	(void)state;
	sh("git sparse-checkout set --cone a");
	assert_int_not_equal(access(vxt_path(root, "b/z"), F_OK), 0);
	assert_string_equal(diff("HEAD", NULL), "");
	sh("git sparse-checkout set --cone --sparse-index a; printf 2 >a/x");
	assert_string_equal(diff("HEAD", NULL), "a/x");
}

static void submodule(void)
{
	vxt_write(top, "sub/s/x", "1");
	vxt_write(top, "sub/s/y", "1");
	sh("cd ../sub; git init -q -b main .; git add -A; git commit -qm s1; cd ../ws; "
	   "git -c protocol.file.allow=always submodule --quiet add ../sub lib; git commit -qm lib");
}

static void submodules_by_their_files(void **state)
{
	(void)state;
	submodule();
	assert_string_equal(diff("HEAD", NULL), "");
	sh("printf 2 >lib/s/x; echo n >lib/n");
	assert_string_equal(diff("HEAD", NULL), "lib/n lib/s/x");
	sh("git -C lib add -A; git -C lib commit -qm s2");
	assert_string_equal(diff("HEAD", NULL), "lib/n lib/s/x");
	sh("git commit -qam moved");
	assert_string_equal(diff("HEAD", NULL), "");
	assert_string_equal(diff("HEAD~1", "HEAD"), "lib/n lib/s/x");
	assert_string_equal(diff("HEAD~2", "HEAD"), ".gitmodules lib/n lib/s/x lib/s/y");
	sh("git submodule --quiet deinit -f lib");
	assert_string_equal(diff("HEAD", NULL), "");
	assert_string_equal(diff("HEAD~1", NULL), "lib");
	assert_string_equal(diff("HEAD~1", "HEAD"), "lib");
}

/* The commit that the base records was never fetched. */
static void a_submodule_that_cannot_be_read_has_changed_whole(void **state)
{
	(void)state;
	submodule();
	sh("git update-index --cacheinfo 160000,1234567890123456789012345678901234567890,lib; git commit -qm odd");
	assert_string_equal(diff("HEAD", NULL), "lib lib/s/x lib/s/y");
	assert_string_equal(diff("HEAD~1", "HEAD"), "lib lib/s/x lib/s/y");
	assert_string_equal(diff("HEAD", "HEAD"), "");
	assert_string_equal(diff("HEAD~1", NULL), "");
}

static void an_embedded_repository_is_new_files(void **state)
{
	(void)state;
	sh("mkdir e; cd e; git init -q; echo 1 >t; git add t; echo 2 >u");
	sh("git -C e config core.fsmonitor 'touch %s; false'; git -C e config diff.external 'touch %s'",
		marker, marker);
	assert_string_equal(diff("HEAD", NULL), "e/t e/u");
}

static void a_missing_tree_is_said(void **state)
{
	char id[64];

	(void)state;
	sh("printf 2 >b/z; git commit -qam 2");
	snprintf(id, sizeof id, "%.40s", sh("git rev-parse HEAD~1:b"));
	sh("rm -f .git/objects/%.2s/%s", id, id + 2);
	sh("git config extensions.partialClone o; git config core.repositoryFormatVersion 1; git config remote.o.promisor true; "
	   "git config remote.o.url ssh://nowhere/x; git config core.sshCommand 'touch %s; false'",
		marker);
	const char *said = diff("HEAD~1", NULL);
	assert_non_null(strstr(said, "git ls-tree of "));
	assert_non_null(strstr(err.fix, "git ls-tree -r "));
}

int main(void)
{
#define TEST(t)                                                \
	cmocka_unit_test_setup_teardown(t, set_up, tear_down), \
		cmocka_unit_test_setup_teardown(t, set_up_git, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(the_worktree_against_a_commit),
		TEST(one_commit_against_another),
		TEST(a_filter_is_not_run),
		TEST(changed_attributes_change_what_they_convert),
		TEST(what_a_sparse_checkout_leaves_out_has_not_changed),
		TEST(submodules_by_their_files),
		TEST(a_submodule_that_cannot_be_read_has_changed_whole),
		TEST(an_embedded_repository_is_new_files),
		TEST(a_missing_tree_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
