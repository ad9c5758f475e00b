/* How git is started: its arguments and its environment, as a program in git's place sees them. */
#include "vxtest.h"

#include "../../sched/git/git.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct place {
	char *dir, *old_path;
	struct vx_arena a;
	struct vx_git g;
	struct vx_buf out, errout;
};

static int set_up(void **state)
{
	static struct place p;

	p = (struct place){.dir = vxt_tmpdir(), .out = VX_BUF(1 << 20), .errout = VX_BUF(1 << 16)};
	p.old_path = strdup(getenv("PATH"));
	vxt_write(p.dir, "bin/git",
		"#!/bin/sh\nfor a in \"$@\"; do echo \"arg $a\"; done\nenv | sed 's/^/env /'\n"
		"echo in $(pwd)\nexit ${FAKE_STATUS-0}\n");
	assert_int_equal(chmod(vxt_path(p.dir, "bin/git"), 0755), 0);
	char path[8192];
	snprintf(path, sizeof path, "%s/bin:%s", p.dir, p.old_path);
	setenv("PATH", path, 1);
	*state = &p;
	return 0;
}

static int tear_down(void **state)
{
	struct place *p = *state;

	setenv("PATH", p->old_path, 1);
	free(p->old_path);
	vx_buf_free(&p->out);
	vx_buf_free(&p->errout);
	vx_arena_free(&p->a);
	vxt_rm(p->dir);
	return 0;
}

static void run(struct place *p)
{
	int status = -1;

	vx_buf_clear(&p->out);
	assert_int_equal(vx_git_find("/nowhere", &p->a, &p->g, NULL), 0);
	assert_int_equal(vx_git_run(&p->g, p->dir, (const char *const[]){"ls-files", "-z", NULL},
				 &p->out, &p->errout, &status, NULL),
		0);
	assert_int_equal(status, 0);
}

static bool has(const struct place *p, const char *line)
{
	char whole[512];

	snprintf(whole, sizeof whole, "\n%s\n", line);
	return strstr(vx_buf_str(&p->out), whole) != NULL;
}

static void settings_stand_in_front_of_the_command(void **state)
{
	static const char *const wanted[] = {"core.fsmonitor=", "core.hooksPath=/dev/null",
		"protocol.allow=never", "safe.bareRepository=explicit",
		"credential.helper=", "fetch.bundleURI=", "submodule.recurse=false", "gc.auto=0",
		"maintenance.auto=false"};
	struct place *p = *state;
	char line[128];

	run(p);
	assert_true(vx_buf_str(&p->out) == strstr(vx_buf_str(&p->out), "arg --no-pager\n"));
	for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
		snprintf(line, sizeof line, "arg -c\narg %s", wanted[i]);
		assert_true(has(p, line));
	}
	assert_true(has(p, "arg ls-files\narg -z"));
	assert_null(strstr(strstr(vx_buf_str(&p->out), "arg ls-files"), "arg -c"));
	assert_null(strstr(vx_buf_str(&p->out), "ignoreCase"));
	snprintf(line, sizeof line, "in %s", p->dir);
	assert_true(has(p, line));
}

static void what_would_run_or_connect_is_not_passed_on(void **state)
{
	static const char *const bad[] = {"GIT_SSH", "GIT_SSH_COMMAND", "GIT_ASKPASS", "GIT_EDITOR",
		"GIT_PAGER", "GIT_EXTERNAL_DIFF", "GIT_PROXY_COMMAND", "GIT_EXEC_PATH", "GIT_TRACE",
		"GIT_TRACE2", "GIT_TRACE2_EVENT", "GIT_TRACE_SETUP", "GIT_ALLOW_PROTOCOL",
		"GIT_CONFIG", "GIT_LITERAL_PATHSPECS", "GIT_TEMPLATE_DIR", "GIT_SOMETHING_NEW",
		"SSH_ASKPASS", "PAGER", "EDITOR", "VISUAL"};
	static const char *const good[] = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
		"GIT_CONFIG_GLOBAL", "GIT_CONFIG_COUNT", "GIT_CONFIG_KEY_0", "GIT_CONFIG_VALUE_0",
		"GIT_DIRTY_IS_NOT_GIT_DIR"};
	struct place *p = *state;
	char line[128];

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		setenv(bad[i], "/bad", 1);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		setenv(good[i], "/good", 1);
	setenv("LC_ALL", "de_DE.UTF-8", 1);
	run(p);
	assert_null(strstr(vx_buf_str(&p->out), "/bad"));
	for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
		snprintf(line, sizeof line, "env %s=/good", good[i]);
		/* a name that only begins like one of those that are passed on */
		assert_int_equal(has(p, line), i + 1 < sizeof good / sizeof *good);
	}
	assert_true(has(p, "env GIT_NO_LAZY_FETCH=1"));
	assert_true(has(p, "env GIT_ALLOW_PROTOCOL=vx-allows-none"));
	assert_true(has(p, "env GIT_OPTIONAL_LOCKS=0"));
	assert_true(has(p, "env GIT_TERMINAL_PROMPT=0"));
	assert_true(has(p, "env GIT_TRACE2=0"));
	assert_true(has(p, "env LC_ALL=C"));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		unsetenv(bad[i]);
	for (size_t i = 0; i < sizeof good / sizeof *good; i++)
		unsetenv(good[i]);
	setenv("LC_ALL", "C.UTF-8", 1);
}

static void names_of_two_cases_are_two_files_where_the_disk_says_so(void **state)
{
	struct place *p = *state;
	int status = 0;

	assert_int_equal(vx_git_find(NULL, &p->a, &p->g, NULL), 0);
	p->g.tells_case = true;
	assert_int_equal(vx_git_run(&p->g, p->dir, (const char *const[]){"ls-files", NULL}, &p->out,
				 NULL, &status, NULL),
		0);
	assert_true(has(p, "arg -c\narg core.ignoreCase=false\narg ls-files"));
}

static void the_exit_status_is_handed_on(void **state)
{
	struct place *p = *state;
	int status = 0;

	setenv("FAKE_STATUS", "7", 1);
	assert_int_equal(vx_git_find(NULL, &p->a, &p->g, NULL), 0);
	assert_int_equal(vx_git_run(&p->g, p->dir, (const char *const[]){"version", NULL}, NULL,
				 NULL, &status, NULL),
		0);
	unsetenv("FAKE_STATUS");
	assert_int_equal(status, 7);
}

static void git_of_the_workspace_is_none(void **state)
{
	struct place *p = *state;
	struct vx_err err = {0};

	setenv("PATH", vxt_path(p->dir, "bin"), 1);
	assert_int_equal(vx_git_find(p->dir, &p->a, &p->g, &err), -ENOENT);
	assert_non_null(strstr(err.what, "not found on PATH"));
}

static void what_cannot_be_run_is_said(void **state)
{
	struct place *p = *state;
	struct vx_err err = {0};
	int status = 0;

	assert_int_equal(vx_git_find(NULL, &p->a, &p->g, NULL), 0);
	assert_int_equal(vx_git_run(&p->g, "/no/such/place", (const char *const[]){"version", NULL},
				 NULL, NULL, &status, &err),
		-ENOENT);
	assert_non_null(strstr(err.what, "git version could not be run in /no/such/place"));
}

int main(void)
{
#define TEST(t) cmocka_unit_test_setup_teardown(t, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(settings_stand_in_front_of_the_command),
		TEST(what_would_run_or_connect_is_not_passed_on),
		TEST(names_of_two_cases_are_two_files_where_the_disk_says_so),
		TEST(the_exit_status_is_handed_on),
		TEST(git_of_the_workspace_is_none),
		TEST(what_cannot_be_run_is_said),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
