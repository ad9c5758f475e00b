/* What no task may change, and what it is told of packages that are withheld: by a file system that
 * exists only in a table. */
#include "sbxfake.h"

#include "../../worker/box/hidden_packages.h"

static void denies(void **state)
{
	(void)state;
	dir("/w/p/a/work");
	dir("/w/p/a/work/.git");
	dir("/w/p/a/work/.git/hooks");
	file("/w/p/a/work/.bashrc");
	dir("/w/p/a/work/.vscode");
	WRITE("work/", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/work", true));
	assert_true(bound("/w/p/a/work/.git", true)); /* on itself: it cannot be renamed away */
	assert_true(bound("/w/p/a/work/.git/hooks", false));
	assert_true(bound("/w/p/a/work/.bashrc", false) && bound("/w/p/a/work/.vscode", false));
	assert_int_equal(req.deny_in.n, 1);
	assert_string_equal(req.deny_in.v[0], "/w/p/a/work");
	assert_int_equal(req.deny_known.n, 3);
	assert_int_equal(req.n_placeholders, 0); /* nothing is ever created for a deny */
	file("/w/p/a/work/.git/config");
	spec.decl.git_config = true;
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/a/work/.git/config"));
	spec.decl.git_config = false;
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/work/.git/config", false));
	sym("/w/p/a/work/.idea", "/opt");
	assert_int_equal(resolve(), -EPERM);
	/* a submodule's .git file decides where git looks */
	fresh(NULL);
	dir("/w/p/a/sub");
	add("/w/p/a/sub/.git", VX_FACT_FILE, "gitdir: ../../../.git/modules/sub\n", 1000);
	WRITE("sub/", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/sub/.git", false));
	/* a grant around the project: the way there is fixed, too */
	fresh(NULL);
	spec.nested = (struct vx_strs){0};
	file("/w/p/a/.profile");
	WRITE("..", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a", true) && bound("/w/p/a/.profile", false));
}

static uint32_t order_of(const char *target)
{
	for (uint32_t i = 0; i < req.n_mounts; i++)
		if (!strcmp(req.mounts[i].target, target))
			return i;
	return UINT32_MAX;
}

static void denies_at_any_depth(void **state)
{
	(void)state;
	dir("/w/p/a/work");
	dir("/w/p/a/work/x");
	dir("/w/p/a/work/x/y");
	file("/w/p/a/work/x/y/.mcp.json");
	file("/w/p/a/work/x/y/.mcp.json5");
	dir("/w/p/a/work/x/y/.idea");
	dir("/w/p/a/work/x/y/.idea/.vscode"); /* read-only with what holds it */
	dir("/w/p/a/work/z");
	dir("/w/p/a/work/z/.git");
	file("/w/p/a/work/z/.git/commondir");
	dir("/w/p/a/work/z/.git/modules");
	dir("/w/p/a/work/z/.git/objects");
	dir("/w/p/a/work/z/.git/objects/.vscode");
	dir("/w/p/a/work/plain");
	file("/w/p/a/work/plain/vscode");
	dir("/w/p/a/work/.hidden");
	file("/w/p/a/work/.hidden/.zshrc");
	WRITE("work/", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(
		bound("/w/p/a/work/x/y/.mcp.json", false) && bound("/w/p/a/work/x/y/.idea", false));
	assert_true(bound("/w/p/a/work/z/.git/commondir", false) &&
		    bound("/w/p/a/work/z/.git/modules", false));
	assert_true(bound("/w/p/a/work/.hidden/.zshrc", false));
	/* what leads there is bound on itself, before what it holds, and once */
	assert_true(bound("/w/p/a/work/x", true) && bound("/w/p/a/work/x/y", true) &&
		    bound("/w/p/a/work/z", true) && bound("/w/p/a/work/z/.git", true));
	assert_true(order_of("/w/p/a/work") < order_of("/w/p/a/work/x") &&
		    order_of("/w/p/a/work/x") < order_of("/w/p/a/work/x/y") &&
		    order_of("/w/p/a/work/x/y") < order_of("/w/p/a/work/x/y/.mcp.json"));
	uint32_t n = 0;
	for (uint32_t i = 0; i < req.n_mounts; i++)
		n += req.mounts[i].why == VX_WHY_DENY;
	assert_int_equal(n, 5 + 5);
	assert_null(mount_at("/w/p/a/work/plain"));
	assert_null(mount_at("/w/p/a/work/x/y/.mcp.json5"));
	assert_null(mount_at("/w/p/a/work/z/.git/objects"));
	assert_int_equal(req.deny_known.n, 5);
	sym("/w/p/a/work/plain/.profile", "elsewhere");
	assert_int_equal(resolve(), -EPERM);
	assert_non_null(strstr(err.what, "/w/p/a/work/plain/.profile"));
}

static void denies_in_packages(void **state)
{
	(void)state;
	dir("/w/p/a/node_modules");
	dir("/w/p/a/node_modules/dep");
	dir("/w/p/a/node_modules/dep/.vscode");
	dir("/w/p/a/node_modules/dep/.git");
	file("/w/p/a/node_modules/dep/.git/config");
	WRITE("node_modules/", NULL);
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/a/node_modules/dep/.vscode"));
	assert_true(bound("/w/p/a/node_modules/dep/.git/config", false) &&
		    bound("/w/p/a/node_modules/dep", true));
}

static void denies_cost_one_look(void **state)
{
	(void)state;
	dir("/w/p/a/work");
	dir("/w/p/a/work/x");
	n_walked = 0;
	WRITE("work/", "work/x/");
	assert_int_equal(resolve(), 0);
	assert_int_equal(n_walked, 2); /* a grant inside another is not looked through twice */
	assert_int_equal(req.deny_in.n, 1);
	WRITE("new/", NULL); /* what will be made is empty */
	assert_int_equal(resolve(), 0);
	assert_int_equal(n_walked, 2);
	assert_int_equal(req.deny_in.n, 1);
	WRITE("work/", NULL);
	walk_result = -EACCES;
	assert_int_equal(resolve(), -EACCES);
	assert_non_null(strstr(err.what, "work/"));
	assert_non_null(strstr(err.fix, "chmod"));
	walk_result = -EFBIG;
	assert_int_equal(resolve(), -EFBIG);
	assert_non_null(strstr(err.what, "VX_MAX_FILES"));
	walk_result = -ELOOP;
	assert_int_equal(resolve(), -ELOOP);
	assert_non_null(strstr(err.what, "DENY_MAX_DEPTH"));
	walk_result = 0;
}

/* package.json is one where scripts run from it; vx.json and its kind everywhere. */
static void what_decides_later_runs(void **state)
{
	(void)state;
	spec.nested = (struct vx_strs){0};
	spec.members = list_of("p/*", NULL);
	file("/w/p/a/vx.json");
	file("/w/p/a/.NPMRC");
	dir("/w/p/a/dist");
	file("/w/p/a/dist/package.json");
	file("/w/p/a/dist/turbo.json");
	WRITE(".", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/package.json", false) && bound("/w/p/a/vx.json", false));
	assert_true(bound("/w/p/a/.NPMRC", false) && bound("/w/p/a/dist/turbo.json", false));
	assert_null(mount_at("/w/p/a/dist/package.json"));
	spec.members = list_of("p/**", NULL); /* such a dist/ is a member */
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/dist/package.json", false));
	spec.members = list_of("p/**", "!**/dist");
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/a/dist/package.json"));
	WRITE("package.json", NULL);
	assert_int_equal(resolve(), -EPERM);
	assert_non_null(strstr(err.fix, "allow.protected"));
	WRITE("dist/package.json", NULL);
	assert_int_equal(resolve(), 0);
	WRITE("../new/", NULL);
	assert_int_equal(resolve(), 0);
}

static void allowed_by_name(void **state)
{
	(void)state;
	dir("/w/p/a/dist");
	dir("/w/p/a/dist/template");
	dir("/w/p/a/dist/template/.vscode");
	file("/w/p/a/dist/template/.vscode/.mcp.json");
	dir("/w/p/a/dist/.vscode");
	sym("/w/p/a/dist/template/.npmrc", "npmrc");
	WRITE("dist/", NULL);
	assert_int_equal(resolve(), -EPERM); /* a link cannot be protected */
	spec.decl.protect = list_of("dist/template/.vscode/", "dist/**/.npm*");
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/a/dist/template/.vscode"));
	assert_null(mount_at("/w/p/a/dist/template/.vscode/.mcp.json"));
	assert_true(bound("/w/p/a/dist/.vscode", false));
	assert_int_equal(req.protect.n, 2);
	assert_string_equal(req.protect.v[0], "/w/p/a/dist/template/.vscode");
	WRITE("dist/template/.vscode/", NULL);
	assert_int_equal(resolve(), 0);
	WRITE("dist/.vscode/", NULL);
	assert_int_equal(resolve(), -EPERM);
	/* every one of a name, in any directory */
	spec.decl.protect = list_of("**/.vscode", "dist/template/.npmrc");
	WRITE("dist/", NULL);
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/a/dist/.vscode"));
	/* a link of a task allows nothing elsewhere */
	sym("/w/p/a/dist/out", "../src");
	spec.decl.protect = list_of("dist/out/.vscode", "dist/template/.npmrc");
	assert_int_equal(resolve(), -EPERM);
}

static const char *program(const char *a0, const char *a1, const char *a2)
{
	const char *const v[] = {a0, a1, a2};

	return withheld_program(&arena, (struct vx_strs){v, a2 ? 3 : a1 ? 2 : 1});
}

static void withheld_lines(void **state)
{
	static const struct vx_withheld v[] = {{"/w/p/a/node_modules/lib", "/w/p/lib", NULL},
		{"/w/node_modules/@s/other", "/w/p/other", NULL},
		{"/w/node_modules/alias", "/w/p/named", "real-name"},
		{"/w/node_modules/vendor", "/w/vendor/x", NULL, VX_WITHHELD_MEMBER},
		{"/w/node_modules/y", "/w/p/y", "y", VX_WITHHELD_LINK}};
	const char *line;

	(void)state;
	assert_string_equal(program("tool", "x", NULL), "tool");
	assert_string_equal(program("/bin/sh", "-c", " tool --all && x"), "tool");
	assert_string_equal(program("sh", "-c", "./bin/tool;x"), "./bin/tool");
	assert_null(program("sh", "-c", "echo tool"));
	assert_null(program("sh", "-c", "A=b tool"));
	assert_null(program("sh", "-c", "\"tool\""));
	assert_null(program("sh", "-c", "$tool"));
	assert_null(program("sh", "-c", "f() { x; }"));
	assert_null(program("sh", "-c", ""));
	assert_null(withheld_line(&arena, v, 3, "/w/p/a", "/w/p/library/x"));
	line = withheld_line(&arena, v, 3, "/w/p/a", "/w/p/lib/bin/tool");
	assert_non_null(strstr(line, "/w/p/lib/bin/tool is withheld"));
	assert_non_null(strstr(line, "/w/p/a/node_modules/lib,"));
	assert_non_null(strstr(line, "dependsOn \"lib#"));
	assert_non_null(strstr(line, "allow.read \"../lib\""));
	assert_non_null(strstr(line, "inputs.workspaceFiles"));
	assert_non_null(
		strstr(withheld_line(&arena, v, 3, "/w/p/a", "/w/p/other"), "\"@s/other\""));
	assert_non_null(
		strstr(withheld_line(&arena, v, 3, "/w/p/a", "/w/p/named/x"), "\"real-name\""));
	assert_null(strchr(line, '\n'));
	line = withheld_line(&arena, v, 5, "/w/p/a", "/w/vendor/x/bin");
	assert_non_null(strstr(line, "only members"));
	assert_non_null(strstr(line, "allow.read \"../../vendor/x\""));
	assert_non_null(strstr(withheld_line(&arena, v, 5, "/w/p/a", "/w/p/y"), "task may have"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(denies, fresh),
		cmocka_unit_test_setup(denies_at_any_depth, fresh),
		cmocka_unit_test_setup(denies_in_packages, fresh),
		cmocka_unit_test_setup(denies_cost_one_look, fresh),
		cmocka_unit_test_setup(what_decides_later_runs, fresh),
		cmocka_unit_test_setup(allowed_by_name, fresh),
		cmocka_unit_test_setup(withheld_lines, fresh),
	};

	int r = cmocka_run_group_tests(tests, NULL, NULL);
	vx_arena_free(&arena);
	return r;
}
