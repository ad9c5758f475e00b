#include "plantest.h"

#include "vx/key.h"

static void workspace(struct plan *p, const char *turbo)
{
	plan_open(p);
	vxt_write(p->dir, "package.json",
		"{\"name\":\"web\",\"workspaces\":[\"p/*\"],\"scripts\":{\"build\":\"root\",\"fmt\":\"fmt .\"},\"devDependencies\":{\"conf\":\"*\"}}");
	vxt_write(p->dir, "p/web/package.json",
		"{\"name\":\"web\",\"scripts\":{\"build\":\"next build\",\"test\":\"t\"},\"dependencies\":{\"lib\":\"*\"}}");
	vxt_write(p->dir, "p/lib/package.json",
		"{\"name\":\"lib\",\"scripts\":{\"test\":\"t\"},\"dependencies\":{\"util\":\"*\"}}");
	vxt_write(p->dir, "p/util/package.json",
		"{\"name\":\"util\",\"scripts\":{\"build\":\"tsc\",\"empty\":\" \"}}");
	vxt_write(p->dir, "p/conf/package.json", "{\"name\":\"conf\"}");
	vxt_write(p->dir, "turbo.json", turbo);
}

static const char *join(struct vx_strs s)
{
	static char ring[4][1024];
	static int i;
	char *out = ring[i++ % 4];
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t k = 0; k < s.n; k++)
		n += (size_t)snprintf(out + n, 1024 - n, "%s%s", n ? " " : "", s.v[k]);
	return out;
}

static void load(struct plan *p, const char *words)
{
	if (plan_load(p) != 0 || plan_graph(p, words) != 0)
		fail_msg("%s", p->text);
}

static void test_tasks_and_edges(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p,
		"{// comments are fine\n\"globalEnv\":[\"G\"],\"globalPassThroughEnv\":[\"P\"],\"globalDependencies\":[\"x\"],\"concurrency\":\"3\",\n"
		"\"tasks\":{\"build\":{\"dependsOn\":[\"^build\"],\"outputs\":[\"dist/**\",\"!dist/x\"],\"env\":[\"E_*\",\"!E_X\"],\"passThroughEnv\":[\"PT\"]},"
		"\"test\":{\"dependsOn\":[\"build\",\"//#fmt\"],\"inputs\":[\"$TURBO_DEFAULT$\",\"!README.md\",\"$TURBO_ROOT$/tsconfig.json\",\"../shared/*.ts\"]},"
		"\"//#fmt\":{\"cache\":false},\"web#build\":{\"outputs\":[\".next/**\"]},\"gone#x\":{},\"empty\":{}}}");
	load(&p, "test");
	assert_true(p.ws.settings.turbo && !p.ws.settings.upfront_keys &&
		    !p.ws.settings.exclusive_outputs);
	assert_string_equal(p.ws.projects[0].name, "//");
	assert_string_equal(p.ws.settings.concurrency, "3");
	/* every package has every task; those without the script pass dependencies on */
	assert_string_equal(plan_ids(&p, "lib#test"), "lib#build //#fmt");
	assert_string_equal(plan_ids(&p, "lib#build"), "util#build");
	assert_true(vx_task_is_group(plan_task(&p, "lib#build")));
	assert_false(plan_task(&p, "util#build")->decl->exec.command == NULL);
	/* pkg#task replaces the general definition whole */
	assert_string_equal(plan_ids(&p, "web#build"), "");
	assert_string_equal(join(plan_task(&p, "web#build")->decl->cache.out_files), ".next/**");
	const struct vx_task_decl *u = plan_task(&p, "util#build")->decl;
	assert_string_equal(join(u->cache.out_files), "dist/** !dist/x");
	assert_string_equal(join(u->cache.env), "E_* !E_X");
	assert_string_equal(join(u->exec.pass_through), "PT E_* !E_X G P");
	assert_true(u->cache.default_inputs && u->has_cache);
	const struct vx_task_decl *t = plan_task(&p, "lib#test")->decl;
	assert_true(t->cache.default_inputs);
	assert_string_equal(join(t->cache.files), "!README.md");
	assert_string_equal(join(t->cache.workspace_files), "tsconfig.json p/shared/*.ts");
	assert_false(plan_task(&p, "//#fmt")->decl->has_cache);
	assert_string_equal(plan_task(&p, "//#fmt")->decl->exec.command, "fmt .");
	assert_null(plan_task(&p, "//#build"));
	/* a blank script is none */
	assert_int_equal(plan_graph(&p, "util#empty"), 0);
	assert_true(vx_task_is_group(plan_task(&p, "util#empty")));
	plan_close(&p);
}

static void write_member(struct plan *p, const char *name, const char *more)
{
	char path[64], text[512];

	snprintf(path, sizeof path, "p/%s/package.json", name);
	snprintf(text, sizeof text,
		"{\"name\":\"%s\",\"scripts\":{\"build\":\"b\",\"lint\":\"l\"}%s}", name, more);
	vxt_write(p->dir, path, text);
}

/* Edges as Turborepo draws them: tests/slow/turborepo.sh compares many more with the program
 * itself. */
static void test_edges(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"p/*\"],\"packageManager\":\"npm@10.0.0\"}");
	vxt_write(p.dir, "turbo.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"^build\"]},\"lint\":{}}}");
	write_member(&p, "b", ",\"version\":\"2.3.4\"");
	write_member(&p, "none", "");
	write_member(&p, "peer", ",\"peerDependencies\":{\"b\":\"*\"}");
	write_member(&p, "range", ",\"dependencies\":{\"b\":\"^2.0.0\"}");
	write_member(&p, "other", ",\"dependencies\":{\"b\":\"^1.0.0\",\"none\":\"^1.0.0\"}");
	write_member(&p, "any", ",\"dependencies\":{\"none\":\"*\"}");
	write_member(&p, "file", ",\"dependencies\":{\"b\":\"file:../b\"}");
	write_member(&p, "npm", ",\"dependencies\":{\"b\":\"npm:b@^2.0.0\"}");
	write_member(
		&p, "own", ",\"dependencies\":{\"b\":\"npm:@x/b\",\"none\":\"npm:@x/b@^1.0.0\"}");
	write_member(&p, "odd", ",\"dependencies\":{\"b\":\"x@1.0.0\"}");
	write_member(&p, "alias",
		",\"dependencies\":{\"x\":\"workspace:b@*\",\"y\":\"workspace:none@^1\"}");
	load(&p, "build");
	assert_string_equal(plan_ids(&p, "peer#build"), "");
	assert_string_equal(plan_ids(&p, "range#build"), "b#build");
	assert_string_equal(plan_ids(&p, "other#build"), "");
	assert_string_equal(plan_ids(&p, "any#build"), "none#build");
	assert_string_equal(plan_ids(&p, "file#build"), "b#build");
	assert_string_equal(plan_ids(&p, "npm#build"), "");
	assert_string_equal(plan_ids(&p, "own#build"), "b#build"); /* what is no range counts */
	assert_string_equal(plan_ids(&p, "odd#build"), "b#build");
	assert_string_equal(plan_ids(&p, "alias#build"), "b#build");
	plan_close(&p);
}

/* The first framework of the table counts; peers and packages of the workspace do not; a variable
 * may be taken out. */
static void test_frameworks(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p.dir, "turbo.json",
		"{\"tasks\":{\"build\":{\"env\":[\"A\"]},\"lint\":{\"env\":[\"!VITE_X\"]}}}");
	write_member(&p, "app",
		",\"dependencies\":{\"next\":\"1\"},\"devDependencies\":{\"vite\":\"1\"}");
	write_member(&p, "vite", ",\"devDependencies\":{\"vite\":\"1\"}");
	write_member(&p, "peer", ",\"peerDependencies\":{\"vite\":\"1\"}");
	write_member(&p, "solid", ",\"dependencies\":{\"solid-js\":\"1\"}");
	write_member(&p, "astro", "");
	write_member(&p, "own", ",\"devDependencies\":{\"astro\":\"*\",\"gatsby\":\"1\"}");
	unsetenv("VERCEL_SKEW_PROTECTION_ENABLED");
	load(&p, "build");
	assert_string_equal(join(plan_task(&p, "own#build")->decl->cache.env), "A GATSBY_*");
	const struct vx_task_decl *t = plan_task(&p, "app#build")->decl;
	assert_string_equal(join(t->cache.env), "A NEXT_PUBLIC_* NEXT_DEPLOYMENT_ID");
	assert_int_equal(t->cache.n_inferred, 2);
	assert_string_equal(join(t->exec.pass_through), "A NEXT_PUBLIC_* NEXT_DEPLOYMENT_ID");
	assert_string_equal(join(plan_task(&p, "vite#build")->decl->cache.env), "A VITE_*");
	assert_string_equal(join(plan_task(&p, "peer#build")->decl->cache.env), "A");
	assert_string_equal(join(plan_task(&p, "solid#build")->decl->cache.env), "A");
	load(&p, "lint");
	assert_string_equal(join(plan_task(&p, "vite#lint")->decl->cache.env), "!VITE_X VITE_*");
	plan_close(&p);
	setenv("VERCEL_SKEW_PROTECTION_ENABLED", "1", 1);
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p.dir, "turbo.json", "{\"tasks\":{\"build\":{}}}");
	write_member(&p, "app", ",\"dependencies\":{\"next\":\"1\"}");
	load(&p, "build");
	assert_string_equal(join(plan_task(&p, "app#build")->decl->cache.env),
		"NEXT_PUBLIC_* NEXT_DEPLOYMENT_ID VERCEL_DEPLOYMENT_ID");
	plan_close(&p);
	unsetenv("VERCEL_SKEW_PROTECTION_ENABLED");
}

/* What begins with the value of TURBO_CI_VENDOR_ENV_KEY is not inferred; where the file names it,
 * it counts. */
static void test_vendor_variables(void **state)
{
	static const char *const env[] = {"VITE_A=1", "VITE_CI_B=2", "OTHER=3", NULL};
	struct plan p;

	(void)state;
	setenv("TURBO_CI_VENDOR_ENV_KEY", "VITE_CI_", 1);
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p.dir, "turbo.json",
		"{\"globalPassThroughEnv\":[\"VITE_CI_PASS\"],\"tasks\":{\"build\":{},\"lint\":{\"env\":[\"VITE_CI_*\"]}}}");
	write_member(&p, "vite", ",\"devDependencies\":{\"vite\":\"1\"}");
	load(&p, "build lint");
	const struct vx_task_decl *build = plan_task(&p, "vite#build")->decl,
				  *lint = plan_task(&p, "vite#lint")->decl;
	assert_string_equal(
		join(vx_env_select(build->cache.env, env, VX_DIALECT_TURBO, &p.a)), "VITE_A=1");
	assert_string_equal(join(vx_env_select(lint->cache.env, env, VX_DIALECT_TURBO, &p.a)),
		"VITE_A=1 VITE_CI_B=2");
	static const char *const passed[] = {"VITE_CI_PASS=1", "VITE_CI_B=2", NULL};
	assert_string_equal(
		join(vx_env_select(build->exec.pass_through, passed, VX_DIALECT_TURBO, &p.a)),
		"VITE_CI_PASS=1");
	const char *with = vx_arena_strdup(&p.a, build->canonical);
	unsetenv("TURBO_CI_VENDOR_ENV_KEY");
	load(&p, "build");
	build = plan_task(&p, "vite#build")->decl;
	assert_string_equal(join(vx_env_select(build->cache.env, env, VX_DIALECT_TURBO, &p.a)),
		"VITE_A=1 VITE_CI_B=2");
	/* a machine without the variable shares the keys of one that has it */
	assert_string_equal(build->canonical, with);
	plan_close(&p);
}

/* As Turborepo selects without a filter: in a directory of no package every package below it, at
 * the root the root's own tasks too. */
static void test_root_tasks(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"p/*\",\"q/*\"],\"scripts\":{\"lint\":\"l\",\"fmt\":\"f\"}}");
	vxt_write(p.dir, "turbo.json",
		"{\"tasks\":{\"build\":{},\"lint\":{},\"//#lint\":{},\"//#fmt\":{}}}");
	write_member(&p, "a", "");
	vxt_write(p.dir, "q/b/package.json", "{\"name\":\"b\",\"scripts\":{\"lint\":\"l\"}}");
	load(&p, "lint");
	assert_string_equal(plan_ids(&p, NULL), "//#lint a#lint b#lint");
	load(&p, "fmt");
	assert_string_equal(plan_ids(&p, NULL), "//#fmt");
	load(&p, "fmt lint");
	assert_string_equal(plan_ids(&p, NULL), "//#lint //#fmt a#lint b#lint");
	load(&p, "//#lint");
	assert_string_equal(plan_ids(&p, NULL), "//#lint");
	load(&p, "lint --cwd=p");
	assert_string_equal(plan_ids(&p, NULL), "a#lint");
	load(&p, "lint --cwd=p/a");
	assert_string_equal(plan_ids(&p, NULL), "a#lint");
	plan_close(&p);
}

/* The block of global settings, and a task that a package has taken away from itself. */
static void test_global_block(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p.dir, "turbo.json",
		"{\"futureFlags\":{\"globalConfiguration\":true},\"global\":{\"inputs\":[\"a/**\",\"!a/x\"],\"env\":[\"G\"],\"passThroughEnv\":[\"P\"]},"
		"\"tasks\":{\"build\":{\"inputs\":[\"src/**\",\"!$TURBO_ROOT$/a/y\"],\"outputs\":[\"./out/**\"]},\"lint\":{\"dependsOn\":[\"build\"]}}}");
	write_member(&p, "app", "");
	vxt_write(p.dir, "p/app/turbo.json", "{\"extends\":[\"//\"],\"tasks\":{}}");
	write_member(&p, "less", "");
	vxt_write(p.dir, "p/less/turbo.json",
		"{\"extends\":[\"//\"],\"tasks\":{\"build\":{\"extends\":false}}}");
	load(&p, "lint");
	const struct vx_task_decl *t = plan_task(&p, "app#build")->decl;
	assert_string_equal(join(t->cache.workspace_files), "a/** !a/x !a/y");
	assert_string_equal(join(t->cache.files), "src/**");
	assert_string_equal(join(t->cache.out_files), "./out/**");
	assert_true(plan_task(&p, "app#lint")->decl->cache.default_inputs);
	assert_string_equal(join(p.ws.settings.global_env), "G");
	assert_int_equal(p.ws.settings.global_files.n, 0);
	assert_string_equal(plan_ids(&p, "app#lint"), "app#build");
	assert_string_equal(plan_ids(&p, "less#lint"), "");
	plan_close(&p);
}

/* Outputs are removed before a command runs; those that would take the sources along are none. */
static void test_outputs_of_everything(void **state)
{
	static const char *const lists[] = {"\"**\"", "\"./**\"", "\"*.json\"",
		"\"$TURBO_ROOT$/**\"", "\"package.json\",\"**\"", "\"package.json\",\"dist/**\"",
		"\"**\",\"!package.json\",\"!turbo.json*\"", "\"dist/**\"", "\"**/dist/**\""};
	struct plan p;

	(void)state;
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		char text[256];
		plan_open(&p);
		vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
		snprintf(text, sizeof text, "{\"tasks\":{\"build\":{\"outputs\":[%s]}}}", lists[i]);
		vxt_write(p.dir, "turbo.json", text);
		write_member(&p, "app", "");
		load(&p, "build");
		if (plan_task(&p, "app#build")->decl->has_cache != (i >= 5))
			fail_msg("%s", lists[i]);
		assert_int_equal(p.ws.warnings.n, i < 5);
		plan_close(&p);
	}
}

static void test_package_files(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p,
		"{\"pipeline\":{\"build\":{\"dependsOn\":[\"^build\"],\"outputs\":[\"dist/**\"],\"env\":[\"A\"],\"outputLogs\":\"new-only\"},"
		"\"test\":{\"persistent\":true,\"cache\":false}}}");
	vxt_write(p.dir, "p/web/turbo.json",
		"{\"extends\":[\"//\"],\"tags\":[\"app\"],\"tasks\":{\"build\":{\"outputs\":[\"$TURBO_EXTENDS$\",\".next/**\"],\"env\":[\"B\"]},"
		"\"test\":{\"persistent\":false,\"cache\":true},\"own\":{}}}");
	vxt_write(p.dir, "p/lib/turbo.jsonc",
		"{\"extends\":[\"//\",\"web\"],\"tasks\":{\"test\":{\"extends\":false,\"dependsOn\":[\"build\"]},\"own\":{\"extends\":false}}}");
	load(&p, "test build");
	const struct vx_task_decl *w = plan_task(&p, "web#build")->decl;
	assert_string_equal(join(w->cache.out_files), "dist/** .next/**");
	assert_string_equal(join(w->cache.env), "B");
	assert_string_equal(w->output_logs, "new-only");
	assert_string_equal(plan_ids(&p, "web#build"), "lib#build");
	assert_false(plan_task(&p, "web#test")->decl->exec.persistent);
	assert_true(plan_task(&p, "web#test")->decl->has_cache);
	/* lib inherits web's build; its test starts afresh */
	assert_string_equal(
		join(plan_task(&p, "lib#build")->decl->cache.out_files), "dist/** .next/**");
	assert_false(plan_task(&p, "lib#test")->decl->exec.persistent);
	assert_string_equal(plan_ids(&p, "lib#test"), "lib#build");
	plan_graph(&p, "lib#own");
	plan_says(&p, "project \"lib\" declares no task \"own\"", NULL);
	assert_int_equal(plan_graph(&p, "web#own"), 0);
	uint32_t i = vx_map_gets(&p.ws.by_name, "web");
	assert_string_equal(join(p.ws.projects[i].tags), "app");
	plan_close(&p);
}

static void test_with(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p, "{\"tasks\":{\"build\":{\"with\":[\"test\",\"util#build\"]},\"test\":{}}}");
	load(&p, "web#build");
	assert_non_null(plan_task(&p, "web#test"));
	assert_non_null(plan_task(&p, "util#build"));
	assert_string_equal(plan_ids(&p, "web#build"), "");
	plan_close(&p);
}

static void test_not_beside_vx(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p, "{\"tasks\":{\"build\":{}}}");
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p.dir, "p/util/vx.json", "{\"tasks\":{\"b\":{\"exec\":{\"command\":\"c\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	assert_false(p.ws.settings.turbo);
	assert_int_equal(plan_graph(&p, "util#b"), 0);
	assert_int_not_equal(plan_graph(&p, "util#build"), 0);
	plan_close(&p);
}

static const struct {
	const char *root, *package, *says, *says_too;
} broken[] = {
	{"{\"tasks\":{\"build\":{\"dependOn\":[]}}}", NULL,
		"turbo.json: task \"build\": unknown key \"dependOn\"",
		"did you mean \"dependsOn\"?"},
	{"{\"tasks\":{\"build\":{\"cache\":\"no\"}}}", NULL, "cache must be true or false", ""},
	{"{\"tasks\":{\"build\":{\"outputs\":\"dist\"}}}", NULL, "outputs must be a list", ""},
	{"{\"tasks\":{\"build\":{\"outputs\":[\"/abs\"]}}}", NULL, "is absolute", ""},
	{"{\"tasks\":{\"build\":{\"inputs\":[\"../../../x\"]}}}", NULL, "leaves the workspace", ""},
	{"{\"tasks\":{\"build\":{\"inputs\":[\"$TURBO_ROOT$x\"]}}}", NULL,
		"must be followed by '/'", ""},
	{"{\"tasks\":{\"build\":{\"inputs\":[\"a/$TURBO_ROOT$/x\"]}}}", NULL,
		"must stand at the start", ""},
	{"{\"tasks\":{\"build\":{\"env\":[\"A=B\"]}}}", NULL, "is no name of a variable", ""},
	{"{\"tasks\":{\"build\":{\"dependsOn\":[\"$X\"]}}}", NULL, "name variables in `env`", ""},
	{"{\"tasks\":{\"build\":{\"with\":[\"^x\"]}}}", NULL, "cannot be named by '^'", ""},
	{"{\"tasks\":{\"build\":{\"outputLogs\":\"some\"}}}", NULL, "outputLogs must be full", ""},
	{"{\"tasks\":{\"build\":7}}", NULL, "must be an object", "task \"build\""},
	{"{\"tasks\":[]}", NULL, "tasks must be an object", ""},
	{"{\"tasks\":{\"^x\":{}}}", NULL, "no name of a task", ""},
	{"{\"envMode\":\"lax\"}", NULL, "envMode must be strict or loose", ""},
	{"{\"tasks\":{}", NULL, "turbo.json:1:", ""},
	{"{}", "{\"tasks\":{}}", "p/web/turbo.json", "\"extends\": [\"//\"]"},
	{"{}", "{\"extends\":[\"//\"],\"tasks\":{\"web#x\":{}}}", "names its own tasks only",
		"p/web/turbo.json"},
	{"{}", "{\"extends\":[\"//\",\"nobody\"],\"tasks\":{}}", "no package with a turbo.json",
		"nobody"},
	{"{}", "{\"extends\":[\"//\",\"web\"],\"tasks\":{}}", "goes round in a circle", ""},
};

static void test_errors(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		struct plan p;
		workspace(&p, broken[i].root);
		if (broken[i].package)
			vxt_write(p.dir, "p/web/turbo.json", broken[i].package);
		if (plan_load(&p) == 0)
			fail_msg("accepted: %s %s", broken[i].root,
				broken[i].package ? broken[i].package : "");
		plan_says(&p, broken[i].says, broken[i].says_too, NULL);
		plan_close(&p);
	}
}

static void test_filters_know_the_root(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p, "{\"tasks\":{\"build\":{}}}");
	load(&p, "build --filter=util...");
	/* what the root depends on is a dependency of all */
	assert_string_equal(plan_selected(&p), "conf util");
	load(&p, "build --filter=...conf");
	assert_string_equal(plan_selected(&p), "conf lib util web");
	load(&p, "build --filter=!lib");
	assert_string_equal(plan_selected(&p), "conf util web");
	plan_close(&p);
}

static void test_single_package(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"scripts\":{\"build\":\"b\",\"lint\":\"l\"}}");
	vxt_write(p.dir, "turbo.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"lint\"]},\"lint\":{}}}");
	load(&p, "build");
	assert_string_equal(plan_ids(&p, NULL), "//#build //#lint");
	plan_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_tasks_and_edges),
		cmocka_unit_test(test_package_files),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_frameworks),
		cmocka_unit_test(test_vendor_variables),
		cmocka_unit_test(test_root_tasks),
		cmocka_unit_test(test_global_block),
		cmocka_unit_test(test_outputs_of_everything),
		cmocka_unit_test(test_with),
		cmocka_unit_test(test_not_beside_vx),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_filters_know_the_root),
		cmocka_unit_test(test_single_package),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
