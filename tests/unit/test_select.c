#include "plantest.h"

#include <time.h>

/* app -> lib -> util; site -> lib; docs stands alone. */
static void workspace(struct plan *p)
{
	static const char tasks[] =
		"{\"tags\":[\"scope:x\"],\"tasks\":{\"build\":{\"exec\":{\"command\":\"b\"}}}}";

	plan_open(p);
	vxt_write(p->dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"apps/*\",\"libs/**\"]}");
	vxt_write(p->dir, "apps/app/package.json",
		"{\"name\":\"@s/app\",\"dependencies\":{\"@s/lib\":\"*\"}}");
	vxt_write(p->dir, "apps/site/package.json",
		"{\"name\":\"site\",\"dependencies\":{\"@s/lib\":\"*\"}}");
	vxt_write(p->dir, "apps/docs/package.json", "{\"name\":\"docs\"}");
	vxt_write(p->dir, "libs/lib/package.json",
		"{\"name\":\"@s/lib\",\"dependencies\":{\"@t/util\":\"*\"}}");
	vxt_write(p->dir, "libs/in/util/package.json", "{\"name\":\"@t/util\"}");
	vxt_write(p->dir, "libs/two/package.json", "{\"name\":\"@t/lib2\"}");
	vxt_write(p->dir, "apps/app/vx.json", tasks);
	vxt_write(p->dir, "apps/site/vx.json", tasks);
	vxt_write(p->dir, "apps/docs/vx.json",
		"{\"tags\":[\"scope:docs\",\"k\"],\"tasks\":{\"build\":{\"exec\":{\"command\":\"b\"}},\"docs\":{\"exec\":{\"command\":\"d\"}}}}");
	vxt_write(p->dir, "libs/lib/vx.json", tasks);
	vxt_write(p->dir, "libs/in/util/vx.json", tasks);
	vxt_write(p->dir, "libs/two/vx.json", tasks);
	assert_int_equal(plan_load(p), 0);
}

static void expect(struct plan *p, const char *words, const char *want)
{
	if (plan_graph(p, words) != 0)
		fail_msg("%s: %s", words, p->text);
	if (strcmp(plan_selected(p), want) != 0)
		fail_msg("%s: selected \"%s\", want \"%s\"", words, plan_selected(p), want);
}

static void test_filters(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	expect(&p, "build --filter=docs", "docs");
	expect(&p, "build --filter=@s/lib", "@s/lib");
	expect(&p, "build --filter=@s/lib...", "@t/util @s/lib");
	expect(&p, "build --filter=@s/lib^...", "@t/util");
	expect(&p, "build --filter=...@s/lib", "@s/app site @s/lib");
	expect(&p, "build --filter=...^@s/lib", "@s/app site");
	expect(&p, "build --filter=...@s/lib...", "@s/app site @t/util @s/lib");
	expect(&p, "build --filter=...^@t/util...", "@s/app site @t/util @s/lib");
	expect(&p, "build --filter=@s/*", "@s/app @s/lib");
	expect(&p, "build --filter=*lib*", "@s/lib @t/lib2");
	expect(&p, "build --filter=*", "@s/app docs site @t/util @s/lib @t/lib2");
	/* an unscoped name that only a scope knows */
	expect(&p, "build --filter=util", "@t/util");
	expect(&p, "build --filter=./apps/*", "@s/app docs site");
	expect(&p, "build --filter={apps/*}", "@s/app docs site");
	expect(&p, "build --filter=./libs/*", "@s/lib @t/lib2");
	expect(&p, "build --filter=./libs/**", "@t/util @s/lib @t/lib2");
	expect(&p, "build --filter=@s/*{apps/*}", "@s/app");
	expect(&p, "build --filter=...{libs/in/*}", "@s/app site @t/util @s/lib");
	expect(&p, "build --filter=tag:scope:docs", "docs");
	expect(&p, "build --filter=tag:scope:*", "@s/app docs site @t/util @s/lib @t/lib2");
	expect(&p, "build --filter=./* --cwd=apps", "@s/app docs site");
	expect(&p, "build --filter=. --cwd=apps/docs", "docs");
	/* order does not matter; no include is everything */
	expect(&p, "build --filter=!site --filter=./apps/*", "@s/app docs");
	expect(&p, "build --filter=!./apps/*", "@t/util @s/lib @t/lib2");
	expect(&p, "build --filter=!@s/lib...", "@s/app docs site @t/lib2");
	expect(&p, "docs --all", "@s/app docs site @t/util @s/lib @t/lib2");
	plan_close(&p);
}

/* What the root depends on is a dependency of all, itself among them: a cycle that shows nowhere in
 * the manifests. */
static void test_not_itself(void **state)
{
	static const struct {
		const char *filter, *want;
	} cases[] = {
		{"a^...", "b d"},
		{"...^a", "b c d"},
		{"b^...", "a d"},
		{"...^b", "a c d"},
		{"...^b...", "a b c d"},
		{"a...", "a b d"},
		{"c^...", "a b d"},
		{"...^c", ""},
		{"...^d", "a b c"},
	};
	struct plan p;
	char words[256];

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"p/*\"],\"devDependencies\":{\"a\":\"*\",\"b\":\"*\"}}");
	vxt_write(p.dir, "turbo.json", "{\"tasks\":{\"build\":{}}}");
	vxt_write(p.dir, "p/a/package.json",
		"{\"name\":\"a\",\"dependencies\":{\"d\":\"*\"},\"scripts\":{\"build\":\"true\"}}");
	vxt_write(p.dir, "p/b/package.json",
		"{\"name\":\"b\",\"dependencies\":{\"a\":\"*\"},\"scripts\":{\"build\":\"true\"}}");
	vxt_write(p.dir, "p/c/package.json", "{\"name\":\"c\",\"scripts\":{\"build\":\"true\"}}");
	vxt_write(p.dir, "p/d/package.json", "{\"name\":\"d\",\"scripts\":{\"build\":\"true\"}}");
	assert_int_equal(plan_load(&p), 0);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(words, sizeof words, "build --filter=%s", cases[i].filter);
		if (*cases[i].want) {
			expect(&p, words, cases[i].want);
		} else {
			plan_graph(&p, words);
			plan_says(&p, "select no project", NULL);
		}
	}
	plan_close(&p);
}

static void test_filters_refused(void **state)
{
	static const struct {
		const char *filter, *says, *fix;
	} cases[] = {
		{"dosc", "the filter \"dosc\" matches no project", "did you mean \"docs\"?"},
		{"!dosc", "matches no project", "did you mean"},
		{"lib3", "matches no project", ""},
		{"tag:scope:dox", "matches no project", "did you mean \"tag:scope:docs\"?"},
		{"./nothing/*", "matches no project", "**"},
		{"{}", "empty {dir}", "vx help run"},
		{"...", "selects nothing", ""},
		{"!", "selects nothing", ""},
		{"[]", "incomplete [ref]", ""},
		{"[a...]", "incomplete [ref]", ""},
		{"../up", "outside the workspace", ""},
		{"{/etc}", "outside the workspace", ""},
	};
	struct plan p;
	char words[256];

	(void)state;
	workspace(&p);
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		snprintf(words, sizeof words, "build --filter=%s", cases[i].filter);
		plan_graph(&p, words);
		plan_says(&p, cases[i].says, cases[i].fix, NULL);
	}
	plan_graph(&p, "build --filter=docs --filter=!docs");
	plan_says(&p, "select no project", NULL);
	plan_close(&p);
}

static void test_scopes(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	expect(&p, "build --cwd=apps/docs/src/deep", "docs");
	assert_false(p.sel.broad);
	assert_string_equal(plan_ids(&p, NULL), "docs#build");
	/* at the root, which has no such task: all */
	expect(&p, "build", "@s/app docs site @t/util @s/lib @t/lib2");
	assert_true(p.sel.broad);
	expect(&p, "@s/app#build", "");
	assert_false(p.sel.broad);
	assert_string_equal(plan_ids(&p, NULL), "@s/app#build");
	expect(&p, "docs build", "@s/app docs site @t/util @s/lib @t/lib2");
	assert_string_equal(plan_ids(&p, NULL),
		"@s/app#build docs#build docs#docs site#build @t/util#build @s/lib#build @t/lib2#build");
	vxt_write(p.dir, "vx.json", "{\"tasks\":{\"build\":{\"exec\":{\"command\":\"root\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	expect(&p, "build", "root");
	assert_string_equal(plan_ids(&p, NULL), "//#build");
	expect(&p, "build --filter=//", "root");
	expect(&p, "docs", "root @s/app docs site @t/util @s/lib @t/lib2");
	plan_close(&p);
}

static void test_words_refused(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	plan_graph(&p, "biuld");
	plan_says(&p, "no selected project declares a task \"biuld\"",
		"did you mean \"build\"? There are tasks: build, docs", NULL);
	plan_graph(&p, "docs --cwd=apps/site");
	plan_says(&p, "project \"site\" declares no task \"docs\"", "other projects do", NULL);
	plan_graph(&p, "dosc#build");
	plan_says(&p, "there is no project \"dosc\"", "did you mean \"docs\"?", NULL);
	plan_graph(&p, "docs#buld");
	plan_says(
		&p, "project \"docs\" declares no task \"buld\"", "did you mean \"build\"?", NULL);
	plan_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_filters),
		cmocka_unit_test(test_filters_refused),
		cmocka_unit_test(test_not_itself),
		cmocka_unit_test(test_scopes),
		cmocka_unit_test(test_words_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
