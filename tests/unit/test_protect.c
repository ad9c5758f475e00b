/* The names that no task may write: what counts as one, and where. */
#include "vxtest.h"

#include "vx/protect.h"

static enum vx_protect at(const char *parent, const char *name)
{
	return vx_protect(parent, strlen(parent), name, strlen(name));
}

static void names(void **state)
{
	static const char *const yes[] = {".bashrc", ".zshenv", ".envrc", ".husky", ".npmrc",
		".yarnrc.yml", ".pnpmfile.cjs", "vx.json", "vx.config.mts", "vx.workspace.jsonc",
		"vx-lock.json", "turbo.json", "turbo.jsonc", ".claude", ".mcp.json",
		".aider.conf.yml", ".vscode", "x.code-workspace", "mise.toml", "mise.local.toml",
		".mise.local.toml", "pnpm-workspace.yaml", "bunfig.toml", "lefthook.yml",
		"opencode.json"};
	static const char *const no[] = {"bashrc", ".bashrc2", "vscode", ".vscode-test", "vx.json5",
		"my-vx.json", "turbo.json.bak", ".npmrc.template", "npmrc", ".husky.js",
		"tsconfig.json", ".eslintrc", ".github", ".gitignore", ".gitattributes", ".env",
		"code-workspace", "releases", "fish", "config.toml", "hooks", "config", "HEAD", ".",
		"x"};

	(void)state;
	for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
		if (at("dist", yes[i]) != VX_PROTECT_ANYWHERE)
			fail_msg("%s is not protected", yes[i]);
	for (size_t i = 0; i < sizeof no / sizeof *no; i++)
		if (at("dist", no[i]) != VX_PROTECT_NO)
			fail_msg("%s is protected", no[i]);
	assert_int_equal(at("dist", "package.json"), VX_PROTECT_MANIFEST);
	assert_int_equal(at("dist", ".git"), VX_PROTECT_GIT);
	assert_int_equal(at(".git", "hooks"), VX_PROTECT_IN_GIT);
	assert_int_equal(at(".git", "config"), VX_PROTECT_GIT_CONFIG);
	assert_int_equal(at(".git", "config.worktree"), VX_PROTECT_GIT_CONFIG);
	assert_int_equal(at(".git", "objects"), VX_PROTECT_NO);
	assert_int_equal(at(".config", "fish"), VX_PROTECT_ANYWHERE);
	assert_int_equal(at(".yarn", "releases"), VX_PROTECT_ANYWHERE);
	assert_int_equal(at(".yarn", "cache"), VX_PROTECT_NO);
	assert_int_equal(at(".cargo", "config.toml"), VX_PROTECT_ANYWHERE);
	assert_int_equal(at("", ".bashrc"), VX_PROTECT_ANYWHERE);
}

/* As a file system that folds case would look them up. */
static void folded(void **state)
{
	(void)state;
	assert_int_equal(at("dist", ".VSCode"), VX_PROTECT_ANYWHERE);
	assert_int_equal(at("dist", "Package.JSON"), VX_PROTECT_MANIFEST);
	assert_int_equal(at(".GIT", "Hooks"), VX_PROTECT_IN_GIT);
	assert_int_equal(at("dist", ".Git"), VX_PROTECT_GIT);
	assert_int_equal(at("dist", ".ba\xc5\xbfhrc"), VX_PROTECT_ANYWHERE);    /* long s */
	assert_int_equal(at("dist", ".hus\xe2\x84\xaay"), VX_PROTECT_ANYWHERE); /* Kelvin */
	assert_int_equal(at("dist", ".vs\xe2\x80\x8b"
				    "code"),
		VX_PROTECT_ANYWHERE); /* zero width */
	assert_int_equal(at("dist", "\xef\xbb\xbf.npmrc"), VX_PROTECT_ANYWHERE);
	assert_int_equal(at(".g\xe2\x80\x8cit", "hooks"), VX_PROTECT_IN_GIT);
	assert_int_equal(at("dist", ".vs\xc3\xa9"
				    "code"),
		VX_PROTECT_NO);
	assert_int_equal(at("dist", ".vscode\xff"), VX_PROTECT_NO);
	assert_int_equal(at("dist", ".vscode\xe2\x80"), VX_PROTECT_NO); /* cut off */
}

static void paths(void **state)
{
	(void)state;
	assert_true(vx_protect_path("dist/template/.vscode/"));
	assert_true(vx_protect_path(".vscode"));
	assert_true(vx_protect_path("dist/**/package.json"));
	assert_true(vx_protect_path("dist/x/.git/hooks"));
	assert_true(vx_protect_path("~/.config/fish//"));
	assert_true(vx_protect_path("dist/.git"));
	assert_false(vx_protect_path("dist/hooks"));
	assert_false(vx_protect_path("dist/**"));
	assert_false(vx_protect_path("/"));
	assert_false(vx_protect_path(""));
	assert_false(vx_protect_path(".vscode/settings.json"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names),
		cmocka_unit_test(folded),
		cmocka_unit_test(paths),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
