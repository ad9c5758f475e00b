#include "plantest.h"

/* util <- lib <- app; gen stands alone. */
static void basic(struct plan *p)
{
	plan_open(p);
	vxt_write(p->dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"packages/*\"]}");
	vxt_write(p->dir, "packages/app/package.json",
		"{\"name\":\"app\",\"dependencies\":{\"lib\":\"*\"}}");
	vxt_write(p->dir, "packages/lib/package.json",
		"{\"name\":\"lib\",\"dependencies\":{\"util\":\"*\"}}");
	vxt_write(p->dir, "packages/util/package.json", "{\"name\":\"util\"}");
	vxt_write(p->dir, "packages/gen/package.json", "{\"name\":\"gen\"}");
	vxt_write(p->dir, "packages/gen/vx.json",
		"{\"tasks\":{\"schema\":{\"exec\":{\"command\":\"gen\"}}}}");
	vxt_write(p->dir, "packages/app/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"^build\",\"gen.*\",\"gen#schema\"],\"exec\":{\"command\":\"cc\"}},"
		"\"gen.a\":{\"exec\":{\"command\":\"a\"}},\"gen.b\":{\"exec\":{\"command\":\"b\"}},"
		"\"ci\":{\"dependsOn\":[\"build\"]}}}");
	vxt_write(p->dir, "packages/util/vx.json",
		"{\"tasks\":{\"build\":{\"exec\":{\"command\":\"cc\"}}}}");
}

static void test_forms(void **state)
{
	struct plan p;

	(void)state;
	basic(&p);
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(plan_graph(&p, "app#ci"), 0);
	/* lib declares no build: it is passed through to util's */
	assert_string_equal(plan_ids(&p, "app#build"), "util#build app#gen.a app#gen.b gen#schema");
	assert_string_equal(
		plan_ids(&p, NULL), "app#build app#gen.a app#gen.b app#ci gen#schema util#build");
	assert_true(vx_task_is_group(plan_task(&p, "app#ci")));
	assert_true(plan_task(&p, "app#ci")->requested);
	assert_false(plan_task(&p, "app#build")->requested);
	for (uint32_t i = 0; i < p.g.n_tasks; i++)
		for (uint32_t k = 0; k < i; k++)
			for (uint32_t d = 0; d < p.g.tasks[p.g.topo[k]].n_deps; d++)
				assert_true(p.g.tasks[p.g.topo[k]].deps[d] != p.g.topo[i]);

	uint32_t w[16];
	vx_graph_weights(&p.g, &p.a, w);
	assert_int_equal(w[0], 1); /* app#build: ci */
	assert_int_equal(w[5], 2); /* util#build: app#build, ci */
	assert_int_equal(w[3], 0);
	plan_close(&p);
}

static void test_missing_targets(void **state)
{
	struct plan p;

	(void)state;
	basic(&p);
	vxt_write(p.dir, "packages/util/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"genn\"],\"exec\":{\"command\":\"cc\"}},\"gen\":{\"exec\":{\"command\":\"x\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	plan_graph(&p, "util#build");
	plan_says(&p, "packages/util/vx.json", "project \"util\"", "task \"build\"",
		"declares no task \"genn\"", "did you mean \"gen\"?", NULL);
	vxt_write(p.dir, "packages/util/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"^bild\"],\"exec\":{\"command\":\"cc\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	plan_graph(&p, "util#build");
	plan_says(&p, "no project in the workspace declares a task \"bild\"",
		"did you mean \"build\"?", NULL);
	vxt_write(p.dir, "packages/util/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"genn#schema\"],\"exec\":{\"command\":\"cc\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	plan_graph(&p, "util#build");
	plan_says(&p, "there is no project \"genn\"", "did you mean \"gen\"?", NULL);
	plan_close(&p);
}

static void test_cycle(void **state)
{
	struct plan p;

	(void)state;
	basic(&p);
	vxt_write(p.dir, "packages/util/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"app#ci\"],\"exec\":{\"command\":\"cc\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	plan_graph(&p, "app#ci");
	assert_int_equal(p.r, -ELOOP);
	plan_says(&p, "app#build -> util#build -> app#ci -> app#build", NULL);
	plan_close(&p);
}

static void test_key_deps(void **state)
{
	struct plan p;

	(void)state;
	basic(&p);
	vxt_write(p.dir, "packages/app/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"^build\",\"gen.*\",\"gen#schema\"],\"exec\":{\"command\":\"cc\"},"
		"\"cache\":{\"inputs\":{\"files\":[\"src/**\"],\"tasks\":[\"^build\",\"gen.b\"]},\"outputs\":{\"files\":[\"dist/**\"]}}},"
		"\"gen.a\":{\"exec\":{\"command\":\"a\"}},\"gen.b\":{\"exec\":{\"command\":\"b\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(plan_graph(&p, "app#build"), 0);
	const struct vx_task *t = plan_task(&p, "app#build");
	assert_int_equal(t->n_key_deps, 2);
	assert_string_equal(p.g.tasks[t->key_deps[0]].id, "util#build");
	assert_string_equal(p.g.tasks[t->key_deps[1]].id, "app#gen.b");
	vxt_write(p.dir, "packages/gen/vx.json",
		"{\"tasks\":{\"x\":{\"exec\":{\"command\":\"x\"}},\"schema\":{\"dependsOn\":[\"x\"],\"exec\":{\"command\":\"cc\"},"
		"\"cache\":{\"inputs\":{\"files\":[],\"tasks\":[\"y\"]},\"outputs\":{\"files\":[]}}}}}");
	assert_int_equal(plan_load(&p), 0);
	plan_graph(&p, "app#build");
	plan_says(&p, "cache.inputs.tasks names \"y\"", "no dependsOn", NULL);
	plan_close(&p);
}

/* Names of the projects that a task passes through. */
static const char *passed(struct plan *p, const char *id)
{
	static char text[256];
	const struct vx_task *t = plan_task(p, id);

	text[0] = '\0';
	for (uint32_t i = 0; i < t->n_passed; i++) {
		strcat(text, i ? " " : "");
		strcat(text, p->ws.projects[t->passed[i]].name);
	}
	return text;
}

static void projects_passed_through_stand_in_the_task(void **state)
{
	static const struct {
		const char *depends, *more, *want;
	} cases[] = {
		{"^build", "", "lib"},     /* util declares it */
		{"^test", "", "lib util"}, /* nothing further down does: app alone */
		{"^gen.*", "", "lib util"},
		{"^no.*", "", "lib util"}, /* nobody does */
		{"^build\",\"^test", "", "lib util"},
		{"^build", ",\"tasks\":[]", ""},
		{"^build", ",\"tasks\":[\"*\"]", ""},
		{"^build", ",\"tasks\":[\"^*\"]", "lib"},
		{"^build", ",\"tasks\":[\"^build\"]", "lib"},
		{"^build\",\"^test", ",\"tasks\":[\"^build\"]", "lib"},
		{"^no.*", ",\"tasks\":[\"^no.*\"]", "lib util"},
		{"util#build", "", ""},
	};
	char text[1024];
	struct plan p;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		basic(&p);
		snprintf(text, sizeof text,
			"{\"tasks\":{\"build\":{\"dependsOn\":[\"%s\"],\"exec\":{\"command\":\"cc\"},"
			"\"cache\":{\"inputs\":{\"files\":[]%s},\"outputs\":{\"files\":[]}}},"
			"\"test\":{\"exec\":{\"command\":\"t\"}},\"gen.a\":{\"exec\":{\"command\":\"a\"}}}}",
			cases[i].depends, cases[i].more);
		vxt_write(p.dir, "packages/app/vx.json", text);
		assert_int_equal(plan_load(&p), 0);
		assert_int_equal(plan_graph(&p, "app#build"), 0);
		assert_string_equal(passed(&p, "app#build"), cases[i].want);
		plan_close(&p);
	}
}

static const char *cached(const char *in, const char *out)
{
	static char ring[4][1024];
	static int i;
	char *s = ring[i++ % 4];

	snprintf(s, 1024,
		"{\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":[%s]},\"outputs\":{\"files\":[%s]}}}",
		in, out);
	return s;
}

static void two(struct plan *p, const char *a, const char *b)
{
	char text[4096];

	snprintf(text, sizeof text, "{\"tasks\":{\"a\":%s,\"b\":%s}}", a, b);
	vxt_write(p->dir, "packages/util/vx.json", text);
	assert_int_equal(plan_load(p), 0);
	plan_graph(p, "util#a util#b");
}

static void test_files_that_meet(void **state)
{
	struct plan p;

	(void)state;
	basic(&p);
	two(&p, cached("\"src/**\"", "\"dist/**\""), cached("\"src/**\"", "\"dist/b.js\""));
	plan_says(&p, "the outputs of util#a (\"dist/**\") and util#b (\"dist/b.js\") overlap",
		"packages/util/vx.json", NULL);
	two(&p, cached("\"src/**\"", "\"dist/**\", \"!dist/b.js\""),
		cached("\"src/**\"", "\"dist/b.js\""));
	assert_int_equal(p.r, 0);
	two(&p, cached("\"src/**\"", "\"dist/**\""), cached("\"src/**\"", "\"distribution/**\""));
	assert_int_equal(p.r, 0);
	two(&p, cached("\"src/**\"", "\"dist/**\""), cached("\"**\"", "\"\\\\out\""));
	plan_says(&p, "the inputs of util#b (\"**\") can match what util#a makes (\"dist/**\")",
		"!dist/**", NULL);
	two(&p, cached("\"src/**\"", "\"dist/**\""), cached("\"**\", \"!dist/**\"", "\"out\""));
	assert_int_equal(p.r, 0);
	two(&p, cached("\"src/**\"", "\"dist/**\""), cached("\"**\", \"!dist\"", "\"out\""));
	assert_int_equal(p.r, 0);
	two(&p, cached("\"src/*.c\"", "\"src/*.o\""), cached("\"src/*.{h,c}\"", "\"out\""));
	assert_int_equal(p.r, 0);
	two(&p, cached("\"src/*.c\"", "\"src/*.o\""), cached("\"src/{a,b}.*\"", "\"out\""));
	plan_says(&p, "can match", NULL);
	vxt_write(p.dir, "vx.workspace.json", "{\"rules\":{\"upfrontKeys\":false}}");
	two(&p, cached("\"src/*.c\"", "\"src/*.o\""), cached("\"src/{a,b}.*\"", "\"out\""));
	assert_int_equal(p.r, 0);
	plan_close(&p);
}

static void test_shared_outputs_in_order(void **state)
{
	struct plan p;

	(void)state;
	basic(&p);
	vxt_write(p.dir, "vx.workspace.json",
		"{\"rules\":{\"exclusiveOutputs\":false,\"upfrontKeys\":false}}");
	two(&p, cached("\"src/**\"", "\"dist/**\""),
		"{\"dependsOn\":[\"a\"],\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":[]},\"outputs\":{\"files\":[\"dist/x\"]}}}");
	assert_int_equal(p.r, 0);
	two(&p, cached("\"src/**\"", "\"dist/**\""), cached("", "\"dist/x\""));
	plan_says(&p, "overlap", NULL);
	plan_close(&p);
}

static void test_exclude(void **state)
{
	struct plan p;
	struct vx_graph_opts o = {.exclude_dependencies = true};

	(void)state;
	basic(&p);
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(plan_graph(&p, "app#build"), 0);
	assert_int_equal(vx_graph_build(&p.ws, &p.sel, &o, &p.a, &p.g, &p.err), 0);
	assert_int_equal(p.g.n_tasks, 5);
	for (uint32_t i = 0; i < p.g.n_tasks; i++)
		assert_int_equal(p.g.tasks[i].excluded, !p.g.tasks[i].requested);
	static const char *const names[] = {"gen.a"}, *const wrong[] = {"gen.x"};
	o = (struct vx_graph_opts){.exclude_names = {names, 1}};
	assert_int_equal(vx_graph_build(&p.ws, &p.sel, &o, &p.a, &p.g, &p.err), 0);
	assert_true(plan_task(&p, "app#gen.a")->excluded);
	assert_false(plan_task(&p, "app#gen.b")->excluded);
	o = (struct vx_graph_opts){.exclude_names = {wrong, 1}};
	assert_int_equal(vx_graph_build(&p.ws, &p.sel, &o, &p.a, &p.g, &p.err), -ENOENT);
	plan_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),
		cmocka_unit_test(test_missing_targets),
		cmocka_unit_test(test_cycle),
		cmocka_unit_test(test_key_deps),
		cmocka_unit_test(projects_passed_through_stand_in_the_task),
		cmocka_unit_test(test_files_that_meet),
		cmocka_unit_test(test_shared_outputs_in_order),
		cmocka_unit_test(test_exclude),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
