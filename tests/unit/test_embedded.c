/* Repositories inside the workspace: which of them git is started in, whose index is believed, and
 * what is listed where nothing is understood. Each case by our own reader and by git's lists. */
#include "vxtest.h"

#include "../../sched/worktree/file_list.h"

#include "vx/err.h"
#include "vx/strs.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static char *top, root[4096];
static struct vx_source *source;
static struct vx_arena a;

__attribute__((format(printf, 1, 2))) static void sh(const char *fmt, ...)
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
}

static void close_source(void)
{
	vx_source_close(source);
	source = NULL;
	vx_arena_free(&a);
	a = (struct vx_arena){0};
}

/* What the source lists, as "path" or, with an id that came from an index, "path*". */
static const char *list(const char *dir)
{
	static char line[8192];
	struct vx_files files = {0};
	struct vx_err err = {0};
	size_t n = 0;

	if (!source && vx_source_open(root, 1, -1, NULL, &source, &err) < 0)
		fail_msg("%s", err.what);
	if (vx_source_list(source, dir, &a, &files, &err) < 0)
		fail_msg("%s", err.what);
	line[0] = '\0';
	for (uint32_t i = 0; i < files.n; i++)
		if (!files.v[i]->modules) /* which is in no input set */
			n += (size_t)snprintf(line + n, sizeof line - n, "%s%s%s", n ? " " : "",
				files.v[i]->path, files.v[i]->has_oid ? "*" : "");
	vx_files_free(&files);
	return line;
}

static const char *list_all(void)
{
	if (source)
		close_source();
	return list("");
}

static bool by_git(void)
{
	return getenv("VX_FILES") != NULL;
}

/* Each git that lists a repository is two: its settings, its files. */
static void git_was_started_in(uint32_t repositories)
{
	assert_int_equal(vx_source_gits(source), by_git() ? 2 * repositories : 0);
}

static const char *said(void)
{
	struct vx_strs s = vx_source_said(source);

	assert_true(s.n <= 1);
	return s.n ? s.v[0] : "";
}

static int set_up(void **state)
{
	(void)state;
	top = vxt_tmpdir();
	snprintf(root, sizeof root, "%s/ws", top);
	vxt_write(top, "ws/x", "1");
	sh("touch -d 2001-01-01 x; git init -q -b main .; git add -A; git commit -qm 1");
	return 0;
}

static int set_up_git(void **state)
{
	setenv("VX_FILES", "git", 1);
	return set_up(state);
}

static int tear_down(void **state)
{
	(void)state;
	close_source();
	unsetenv("VX_FILES");
	vxt_rm(top);
	return 0;
}

/* e: one tracked file, one ignored one, one new one */
static void embedded(const char *e)
{
	sh("mkdir -p %s; cd %s; git init -q .; echo 1 >t; touch -d 2001-01-01 t; git add t; echo '*.o' >.gitignore; echo o >i.o; echo n >n; mkdir node_modules; echo m >node_modules/m",
		e, e);
}

static void is(const char *got, const char *wanted_by_reader)
{
	char wanted[4096];
	size_t n = 0;

	for (const char *p = wanted_by_reader; *p; p++)
		if (*p != '*' || !by_git())
			wanted[n++] = *p;
	wanted[n] = '\0';
	assert_string_equal(got, wanted);
}

/* By its own index and rules; but that index may be a task's, and proves nothing. */
static void an_embedded_repository(void **state)
{
	(void)state;
	embedded("e");
	is(list_all(), "e/.gitignore e/n e/t x*");
	git_was_started_in(1);
	assert_string_equal(said(), "");
	assert_true(vx_source_tracked(source, "e/t"));
	assert_false(vx_source_tracked(source, "e/n"));
	bool ignored = false;
	assert_int_equal(vx_source_ignored(source, "e/i.o", &ignored, NULL), 0);
	assert_true(ignored);
	sh("echo 2 >e/later; echo o >e/more.o");
	is(list("e"), "e/.gitignore e/later e/n e/t");
	is(list("e/later"), "e/later");
	sh("rm -r e/.git");
	is(list("e"), "e/.gitignore e/later e/n e/t");
	assert_int_equal(vx_source_lists(source), 4);
}

static void one_that_is_not_understood_is_listed_whole(void **state)
{
	(void)state;
	embedded("e");
	sh("git -C e update-index --split-index; rm e/.git/sharedindex.*");
	is(list_all(), "e/.gitignore e/i.o e/n e/node_modules/m e/t x*");
	git_was_started_in(1);
	assert_non_null(
		strstr(said(), "e is a git repository that the workspace's does not record"));
	assert_non_null(strstr(said(), "every file in it counts"));
	/* which of them it tracks nobody knows: none is anybody's to remove */
	assert_true(vx_source_tracked(source, "e/n"));
	bool ignored = true;
	assert_int_equal(vx_source_ignored(source, "e/i.o", &ignored, NULL), 0);
	assert_false(ignored);
	sh("echo 2 >e/later.o");
	is(list("e"), "e/.gitignore e/i.o e/later.o e/n e/node_modules/m e/t");
}

/* Each of these is for git alone to judge, or broken; none keeps the rest from being listed. */
static void many_ways_not_to_be_understood(void **state)
{
	static const char *const ways[] = {"git -C e config core.ignoreCase true",
		"git -C e config core.worktree /", "git -C e config extensions.whatever 1",
		"echo '[core' >e/.git/config", "echo garbage >e/.git/index",
		"rm e/.git/index; mkfifo e/.git/index", "ln -sf /dev/zero e/.git/index",
		"git -C e config core.bare true",
		"git -C e config includeIf.hasconfig:remote.*.url:x.path ../more; printf '[core]\\nexcludesFile = q\\n' >e/more",
		"mv e/.git elsewhere; echo 'gitdir: ../elsewhere' >e/.git; echo '[core' >elsewhere/config; echo elsewhere >.git/info/exclude"};

	(void)state;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		embedded("e");
		sh("%s", ways[i]);
		const char *got = list_all();
		if (!strstr(got, "e/i.o e/") || !strstr(got, "e/node_modules/m e/t x"))
			fail_msg("%s: %s", ways[i], got);
		git_was_started_in(1);
		assert_non_null(strstr(said(), "every file in it counts"));
		close_source();
		sh("rm -rf e");
	}
}

static void submodule(void)
{
	vxt_write(top, "sub/y", "1");
	sh("cd ../sub; git init -q -b main .; git add -A; git commit -qm s1; cd ../ws; "
	   "git -c protocol.file.allow=always submodule --quiet add ../sub lib; touch -hd 2001-01-01 lib/y .gitmodules; git -C lib add y; git add .; git commit -qm lib");
}

static void a_submodule_is_recorded(void **state)
{
	(void)state;
	submodule();
	is(list_all(), ".gitmodules* lib/y* x*");
	git_was_started_in(2);
	/* one that the reader does not understand: git is asked about all that is recorded */
	sh("git -C lib update-index --split-index");
	assert_string_equal(list_all(), ".gitmodules lib/y x");
	assert_int_equal(vx_source_gits(source), 4);
	assert_string_equal(said(), "");
}

/* What a repository that nothing records holds or records is as foreign as itself. */
static void repositories_in_embedded_ones(void **state)
{
	(void)state;
	submodule();
	embedded("lib/e");
	embedded("lib/e/f");
	sh("cd lib/e/f; git commit -qm 1; cd ..; git add f 2>/dev/null; cd f; git config core.ignoreCase true");
	is(list_all(),
		".gitmodules* lib/e/.gitignore lib/e/f/.gitignore lib/e/f/i.o lib/e/f/n lib/e/f/node_modules/m lib/e/f/t lib/e/n lib/e/t lib/y* x*");
	git_was_started_in(2);
	assert_non_null(strstr(said(), "lib/e/f is a git repository"));
}

int main(void)
{
#define TEST(t)                                                \
	cmocka_unit_test_setup_teardown(t, set_up, tear_down), \
		cmocka_unit_test_setup_teardown(t, set_up_git, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(an_embedded_repository),
		TEST(one_that_is_not_understood_is_listed_whole),
		TEST(many_ways_not_to_be_understood),
		TEST(a_submodule_is_recorded),
		TEST(repositories_in_embedded_ones),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
