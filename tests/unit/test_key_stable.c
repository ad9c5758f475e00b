/* The stability gate: which keys are known up front. */
#include "keytest.h"

static struct kt t;

static bool stable(uint32_t task)
{
	struct vx_keyer *k = kt_keyer(&t);
	bool r = vx_key_stable(k, task);
	vx_keyer_free(k);
	return r;
}

static int setup(void **state)
{
	(void)state;
	kt_open(&t);
	kt_project(&t, "a", "packages/a", "");
	kt_project(&t, "b", "packages/b", "");
	kt_project(&t, "root", ".", "packages/a packages/b");
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	kt_close(&t);
	return 0;
}

static void same_project_outputs(void **state)
{
	(void)state;
	kt_task(&t, 0, "gen", "schema/**", "src/gen/**", "");
	kt_task(&t, 0, "build", "src/**", "dist/**", "0");
	kt_task(&t, 0, "test", "test/**", "", "1");
	kt_task(&t, 0, "lint", "lib/**", "", "0");
	kt_task(&t, 0, "neg", "src/** !src/gen/**", "", "0");
	kt_task(&t, 1, "other", "src/**", "", "0");
	assert_true(stable(0));
	assert_false(stable(1));
	assert_false(stable(2)); /* its upstream's key is preliminary */
	assert_true(stable(3));
	assert_false(stable(4)); /* negations never take reach away */
	assert_true(stable(5));
}

static void through_another_project_and_back(void **state)
{
	(void)state;
	kt_task(&t, 0, "gen", "schema/**", "src/gen/**", "");
	kt_task(&t, 1, "mid", "x/**", "y/**", "0");
	kt_task(&t, 0, "build", "src/**", "dist/**", "1");
	kt_task(&t, 0, "far", "lib/**", "", "1");
	assert_true(stable(1));
	assert_false(stable(2));
	assert_true(stable(3));
}

static void package_json_is_read_by_all(void **state)
{
	(void)state;
	kt_task(&t, 0, "gen", "schema/**", "package.json", "");
	kt_task(&t, 0, "build", "src/**", "dist/**", "0");
	assert_false(stable(1));
}

static void workspace_files(void **state)
{
	(void)state;
	kt_task(&t, 0, "build", "src/**", "dist/**", "");
	kt_task(&t, 1, "reads", "src/**", "", "0")->cache.workspace_files =
		kt_list(&t, "packages/a/dist/x");
	kt_task(&t, 1, "elsewhere", "src/**", "", "0")->cache.workspace_files =
		kt_list(&t, "tsconfig.json packages/b/x");
	kt_task(&t, 1, "holds", "src/**", "", "0")->cache.workspace_files =
		kt_list(&t, "packages/*/x");
	kt_task(&t, 1, "everything", "src/**", "", "0")->cache.workspace_files =
		kt_list(&t, "**/*.json");
	kt_task(&t, 1, "nothing-upstream", "src/**", "", "")->cache.workspace_files =
		kt_list(&t, "**/*.json");
	kt_task(&t, 1, "through", "src/**", "", "0");
	kt_task(&t, 1, "far", "lib/**", "", "6")->cache.workspace_files = kt_list(&t, "packages/a");
	assert_false(stable(1));
	assert_true(stable(2));
	assert_false(stable(3));
	assert_false(stable(4));
	assert_true(stable(5));
	assert_true(stable(6));
	assert_false(stable(7));
}

static void workspace_outputs(void **state)
{
	(void)state;
	kt_task(&t, 0, "build", "src/**", "dist/**", "")->cache.out_workspace_files =
		kt_list(&t, "gen/**");
	kt_task(&t, 1, "next", "src/**", "", "0");
	kt_task(&t, 1, "after", "src/**", "", "1");
	assert_true(stable(0));
	assert_false(stable(1));
	assert_false(stable(2));
}

static void uncached_upstream(void **state)
{
	(void)state;
	kt_task(&t, 0, "free", NULL, NULL, "");
	kt_task(&t, 0, "same", "src/**", "", "0");
	kt_task(&t, 1, "other", "src/**", "", "0");
	kt_task(&t, 1, "reads", "src/**", "", "0")->cache.workspace_files =
		kt_list(&t, "packages/a/x");
	kt_task(&t, 2, "root-free", NULL, NULL, "");
	kt_task(&t, 1, "after-root", "src/**", "", "4");
	struct vx_task_decl *box = kt_task(&t, 0, "boxed", NULL, NULL, "");
	box->exec.sandboxed = true;
	kt_task(&t, 0, "after-boxed", "src/**", "", "6");
	struct vx_task_decl *group = kt_task(&t, 0, "group", NULL, NULL, "");
	group->has_exec = false;
	kt_task(&t, 0, "after-group", "src/**", "", "8");
	assert_false(stable(1));
	assert_true(stable(2));
	assert_false(stable(3));
	assert_false(stable(5));
	assert_true(stable(7));
	assert_true(stable(9));
	box->exec.sandbox.write = kt_list(&t, "gen");
	assert_false(stable(7));
	struct vx_task_decl *wide = kt_task(&t, 0, "wide", NULL, NULL, "");
	wide->exec.sandboxed = true;
	kt_task(&t, 1, "after-wide", "src/**", "", "a");
	wide->exec.sandbox.write = kt_list(&t, "gen");
	assert_true(stable(11)); /* inside its own project */
	wide->exec.sandbox.write = kt_list(&t, "../b/gen");
	assert_false(stable(11));
	wide->exec.sandbox.write = kt_list(&t, "/tmp/elsewhere");
	assert_true(stable(11));
}

static void uncached_reads_all_of_its_project(void **state)
{
	(void)state;
	kt_task(&t, 0, "build", "src/**", "dist/**", "");
	kt_task(&t, 0, "serve", NULL, NULL, "0");
	kt_task(&t, 1, "serve", NULL, NULL, "0");
	assert_false(stable(1));
	assert_true(stable(2));
}

static void root_outputs_reach_into_packages(void **state)
{
	(void)state;
	kt_task(&t, 2, "gen", "schema/**", "packages/a/src/gen/**", "");
	kt_task(&t, 0, "build", "src/**", "dist/**", "0");
	kt_task(&t, 1, "build", "src/**", "dist/**", "0");
	assert_false(stable(1));
	assert_true(stable(2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(same_project_outputs, setup, teardown),
		cmocka_unit_test_setup_teardown(through_another_project_and_back, setup, teardown),
		cmocka_unit_test_setup_teardown(package_json_is_read_by_all, setup, teardown),
		cmocka_unit_test_setup_teardown(workspace_files, setup, teardown),
		cmocka_unit_test_setup_teardown(workspace_outputs, setup, teardown),
		cmocka_unit_test_setup_teardown(uncached_upstream, setup, teardown),
		cmocka_unit_test_setup_teardown(uncached_reads_all_of_its_project, setup, teardown),
		cmocka_unit_test_setup_teardown(root_outputs_reach_into_packages, setup, teardown),
	};
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	return cmocka_run_group_tests_name("key_stable", tests, NULL, NULL);
}
