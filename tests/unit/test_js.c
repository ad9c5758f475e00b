#include "plantest.h"

#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/spawn.h"

static char only_node[PATH_MAX]; /* a directory with node and nothing else; "" without node */
static char empty[PATH_MAX];
static char *old_path;

static int setup(void **state)
{
	char node[4096];
	char *dir = vxt_tmpdir();

	(void)state;
	old_path = strdup(getenv("PATH"));
	vxt_write(dir, "empty/x", "");
	snprintf(empty, sizeof empty, "%s/empty", dir);
	if (vx_which("node", old_path, node) == 0) {
		assert_int_equal(vx_mkdir_p(AT_FDCWD, vxt_path(dir, "bin"), 0755), 0);
		assert_int_equal(symlink(node, vxt_path(dir, "bin/node")), 0);
		snprintf(only_node, sizeof only_node, "%s/bin", dir);
	}
	*state = dir;
	return 0;
}

static int teardown(void **state)
{
	setenv("PATH", old_path, 1);
	free(old_path);
	vxt_rm(*state);
	return 0;
}

static void workspace(struct plan *p)
{
	plan_open(p);
	vxt_write(p->dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p->dir, "p/a/package.json", "{\"name\":\"a\"}");
	vxt_write(p->dir, "p/b/package.json", "{\"name\":\"b\"}");
}

static void test_nothing_runs_without_one(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	vxt_write(p.dir, "p/a/vx.json", "{\"tasks\":{\"t\":{\"exec\":{\"command\":\"c\"}}}}");
	setenv("PATH", empty, 1);
	assert_int_equal(plan_load(&p), 0);
	vxt_write(p.dir, "p/b/vx.config.ts", "export default {}");
	plan_load(&p);
	plan_says(&p, "p/b/vx.config.ts cannot be evaluated", "neither bun nor node",
		"tsx, jiti, esbuild", NULL);
	plan_close(&p);
}

static void test_two_configurations(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	vxt_write(p.dir, "p/a/vx.json", "{}");
	vxt_write(p.dir, "p/a/vx.config.mjs", "export default {}");
	setenv("PATH", only_node, 1);
	plan_load(&p);
	if (*only_node)
		plan_says(&p, "project \"a\" has two configurations", "p/a/vx.json",
			"p/a/vx.config.mjs", NULL);
	plan_close(&p);
}

static void test_values(void **state)
{
	struct plan p;

	(void)state;
	if (!*only_node)
		vxt_skip("no node on PATH");
	workspace(&p);
	setenv("PATH", only_node, 1);
	vxt_write(p.dir, "p/a/vx.config.mjs",
		"import {defineProject} from '@vzn/vx/config';\nimport {cmd} from './shared.mjs';\nconsole.log('noise'); process.stdout.write('noise');\n"
		"export default async () => defineProject({tags: ['x'], tasks: {build: {dependsOn: undefined, exec: {command: cmd}}}});\n");
	vxt_write(p.dir, "p/a/shared.mjs", "export const cmd = 'tsc';\n");
	vxt_write(p.dir, "p/b/vx.config.cjs",
		"const {defineProject} = require('@vzn/vx');\nmodule.exports = defineProject({tasks: {build: {exec: {command: require('path').basename(__dirname)}}}});\n");
	if (plan_load(&p) != 0)
		fail_msg("%s", p.text);
	assert_int_equal(plan_graph(&p, "build --all"), 0);
	assert_string_equal(plan_task(&p, "a#build")->decl->exec.command, "tsc");
	assert_string_equal(plan_task(&p, "b#build")->decl->exec.command, "b");
	assert_string_equal(p.ws.projects[1].tags.v[0], "x");
	plan_close(&p);
}

static const struct {
	const char *text, *says;
} broken[] = {
	{"export default {tasks: {build: {exec: {command: () => 1}}}}",
		"tasks.build.exec.command is a function, but must be plain JSON data"},
	{"export default {tasks: {build: {exec: {timeout: NaN}}}}",
		"tasks.build.exec.timeout is NaN"},
	{"export default {tags: [Symbol('q')]}", "tags[0] is a symbol"},
	{"export default {tags: [undefined]}", "tags[0] is undefined"},
	{"export default {[Symbol('k')]: 1}", "an object with a symbol as a key"},
	{"const x = {}; x.tasks = x; export default x", "tasks is part of a cycle"},
	{"export default {tasks: new Map()}", "tasks is an instance of Map"},
	{"export default {tags: [1n]}", "tags[0] is a bigint"},
	{"export default 5", "must export an object as default"},
	{"throw new TypeError('boom\\nsecond line')", "TypeError: boom second line"},
	{"export default {", "SyntaxError"},
	{"import 'no-such-package'; export default {}", "no-such-package"},
	{"process.exit(3)", "it calls process.exit, but must export an object"},
	{"process.exit(0); export default {}", "it calls process.exit"},
	{"process.reallyExit(0)", "ended the process that evaluates it"},
	{"process.reallyExit(3)", "exit 3"},
	{"export const x = 1", "must export an object as default"},
	{"export default null", "must export an object as default"},
	{"export default {tasks: {build: {exce: {}}}}", "unknown key \"exce\""},
};

static void test_refused(void **state)
{
	struct plan p;

	(void)state;
	if (!*only_node)
		vxt_skip("no node on PATH");
	setenv("PATH", only_node, 1);
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		workspace(&p);
		vxt_write(p.dir, "p/a/vx.config.mjs", broken[i].text);
		if (plan_load(&p) == 0)
			fail_msg("accepted: %s", broken[i].text);
		plan_says(&p, broken[i].says, NULL);
		plan_close(&p);
	}
}

static void test_one_process(void **state)
{
	struct plan p;
	struct vx_buf b = VX_BUF(4096);

	(void)state;
	if (!*only_node)
		vxt_skip("no node on PATH");
	setenv("PATH", only_node, 1);
	workspace(&p);
	for (int i = 0; i < 2; i++)
		vxt_write(p.dir, i ? "p/a/vx.config.mjs" : "p/b/vx.config.mjs",
			"import fs from 'node:fs'; fs.appendFileSync('pids', process.pid + '\\n'); export default {}");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(p.dir, "pids"), &b), 0);
	const char *second = strchr(vx_buf_str(&b), '\n') + 1;
	assert_int_equal(atoi(vx_buf_str(&b)), atoi(second));
	vx_buf_free(&b);
	plan_close(&p);
}

/* How often the configuration below was evaluated since it was last asked. */
static int evaluations(struct plan *p)
{
	struct vx_buf b = VX_BUF(4096);
	int n = 0;

	if (plan_load(p) != 0)
		fail_msg("%s", p->text);
	if (vx_read_file(AT_FDCWD, vxt_path(p->dir, "log"), &b) == 0)
		n = (int)b.len;
	vx_buf_free(&b);
	unlink(vxt_path(p->dir, "log"));
	usleep(150000); /* what was written up to now is settled for the next evaluation */
	return n;
}

static void test_kept(void **state)
{
	struct plan p;

	(void)state;
	if (!*only_node)
		vxt_skip("no node on PATH");
	setenv("PATH", only_node, 1);
	workspace(&p);
	unsetenv("VXT_JS");
	vxt_write(p.dir, "p/a/vx.config.mjs",
		"import fs from 'node:fs'; import {readFileSync, existsSync} from 'fs'; import {x} from './shared.mjs';\n"
		"fs.appendFileSync('log', 'x'); readFileSync('data.txt'); existsSync('maybe'); fs.readdirSync('listed');\n"
		"export default {tags: [x, process.env.VXT_JS ?? 'unset']}");
	vxt_write(p.dir, "p/a/shared.mjs", "export const x = 'one';");
	vxt_write(p.dir, "data.txt", "1");
	vxt_write(p.dir, "listed/a", "1");
	vxt_write(p.dir, "p/b/vx.config.cjs", "module.exports = require('./more.cjs')");
	vxt_write(p.dir, "p/b/more.cjs", "module.exports = {tags: ['m']}");
	usleep(150000);
	assert_int_equal(evaluations(&p), 1); /* without a .vx nothing is kept */
	assert_int_equal(evaluations(&p), 1);
	vxt_write(p.dir, ".vx/.gitignore", "*");
	assert_int_equal(evaluations(&p), 1);
	assert_int_equal(evaluations(&p), 0);
	assert_string_equal(p.ws.projects[1].tags.v[0], "one");
	assert_string_equal(p.ws.projects[1].tags.v[1], "unset");
	assert_string_equal(p.ws.projects[2].tags.v[0], "m");
	vxt_write(p.dir, "p/a/shared.mjs", "export const x = 'two';");
	assert_int_equal(evaluations(&p), 1); /* written a moment ago: used, but not kept */
	assert_string_equal(p.ws.projects[1].tags.v[0], "two");
	evaluations(&p);
	assert_int_equal(evaluations(&p), 0);
	setenv("VXT_JS", "set", 1);
	assert_int_equal(evaluations(&p), 1);
	assert_string_equal(p.ws.projects[1].tags.v[1], "set");
	assert_int_equal(evaluations(&p), 0);
	setenv("VXT_OTHER", "not read", 1);
	assert_int_equal(evaluations(&p), 0);
	static const char *const touched[] = {"data.txt", "maybe", "listed/b", "p/b/more.cjs"};
	for (size_t i = 0; i < sizeof touched / sizeof *touched; i++) {
		vxt_write(p.dir, touched[i], i == 3 ? "module.exports = {tags: ['n']}" : "2");
		int n = evaluations(&p);
		if (n != 1)
			fail_msg("%s changed: %d evaluations", touched[i], n);
		evaluations(&p);
		assert_int_equal(evaluations(&p), 0);
	}
	vxt_write(p.dir, ".vx/config-evaluations.json", "{\"identity\":");
	assert_int_equal(evaluations(&p), 1);
	/* what cannot be compared is never kept */
	vxt_write(p.dir, "p/b/more.cjs",
		"require('child_process').execFileSync(process.execPath, ['--version']); module.exports = {}");
	evaluations(&p);
	assert_int_equal(evaluations(&p), 1);
	assert_int_equal(evaluations(&p), 1);
	unsetenv("VXT_JS");
	unsetenv("VXT_OTHER");
	plan_close(&p);
}

/* What is imported may be decided by files that are never loaded. */
static void test_kept_by_what_imports_lead_to(void **state)
{
	static const struct {
		const char *file, *text, *tag;
	} changes[] = {
		{"node_modules/pre/package.json",
			"{\"name\":\"pre\",\"type\":\"module\",\"exports\":\"./two.js\"}", "two"},
		{"p/a/node_modules/pre/index.js", "exports.x = 'nearer'", "nearer"},
		{"p/a/package.json", "{\"name\":\"a\",\"imports\":{\"#own\":\"./own2.mjs\"}}",
			"own2"},
		{"p/a/lib.js", "exports.y = 'a file before a directory'",
			"a file before a directory"},
		{"flag", "2", "2"},
	};
	struct plan p;

	(void)state;
	if (!*only_node)
		vxt_skip("no node on PATH");
	setenv("PATH", only_node, 1);
	workspace(&p);
	vxt_write(p.dir, ".vx/.gitignore", "*");
	vxt_write(p.dir, "node_modules/pre/package.json",
		"{\"name\":\"pre\",\"type\":\"module\",\"exports\":\"./one.js\"}");
	vxt_write(p.dir, "node_modules/pre/one.js", "export const x = 'one'");
	vxt_write(p.dir, "node_modules/pre/two.js", "export const x = 'two'");
	vxt_write(p.dir, "p/a/package.json",
		"{\"name\":\"a\",\"imports\":{\"#own\":\"./own1.mjs\"}}");
	vxt_write(p.dir, "p/a/own1.mjs", "export const own = 'own1'");
	vxt_write(p.dir, "p/a/own2.mjs", "export const own = 'own2'");
	vxt_write(p.dir, "p/a/lib/index.js", "exports.y = 'a directory'");
	vxt_write(p.dir, "p/a/more.cjs", "exports.y = require('./lib').y");
	vxt_write(p.dir, "flag", "1");
	vxt_write(p.dir, "p/a/vx.config.mjs",
		"import fs from 'node:fs'; import {x} from 'pre'; import {own} from '#own'; import more from './more.cjs';\n"
		"fs.appendFileSync('log', 'x'); const h = await fs.promises.open('flag'); const flag = await h.readFile('utf8'); await h.close();\n"
		"export default {tags: [x, own, more.y, flag]}");
	usleep(150000);
	assert_int_equal(evaluations(&p), 1);
	assert_int_equal(evaluations(&p), 0);
	for (size_t i = 0; i < VX_ARRAY_LEN(changes); i++) {
		vxt_write(p.dir, changes[i].file, changes[i].text);
		if (evaluations(&p) != 1 || !vx_strs_has(p.ws.projects[1].tags, changes[i].tag))
			fail_msg("%s changed: the evaluation of before was used", changes[i].file);
		evaluations(&p);
		assert_int_equal(evaluations(&p), 0);
	}
	setenv("NODE_OPTIONS", "--conditions=development", 1);
	assert_int_equal(evaluations(&p), 1);
	unsetenv("NODE_OPTIONS");
	/* what is read in ways that are not watched is never kept */
	static const char *const unwatched[] = {"fs.cpSync('listed', 'copy', {recursive: true})",
		"fs.readdirSync('listed', {recursive: true})",
		"new fs.ReadStream('flag').destroy()"};
	vxt_write(p.dir, "listed/a", "1");
	for (size_t i = 0; i < VX_ARRAY_LEN(unwatched); i++) {
		struct vx_buf b = VX_BUF(4096);
		vx_buf_printf(&b, "const fs = require('fs'); %s; exports.y = 'y'", unwatched[i]);
		vxt_write(p.dir, "p/a/more.cjs", vx_buf_str(&b));
		vx_buf_free(&b);
		evaluations(&p);
		if (evaluations(&p) != 1)
			fail_msg("%s: kept", unwatched[i]);
	}
	plan_close(&p);
}

/* A node that cannot be run is not told as one that is not there. */
static void test_broken_node(void **state)
{
	struct plan p;
	char *dir = vxt_tmpdir();

	(void)state;
	workspace(&p);
	vxt_write(dir, "bin/node", "#!/bin/sh\nexit 3\n");
	assert_int_equal(chmod(vxt_path(dir, "bin/node"), 0755), 0);
	setenv("PATH", vxt_path(dir, "bin"), 1);
	vxt_write(p.dir, "p/b/vx.config.mjs", "export default {}");
	plan_load(&p);
	plan_says(&p, "p/b/vx.config.mjs cannot be evaluated", "bin/node --version gives no answer",
		NULL);
	vxt_write(dir, "bin/node", "#!/bin/sh\necho v16.2.0\n");
	plan_load(&p);
	plan_says(
		&p, "p/b/vx.config.mjs cannot be evaluated: node is 16.2, and 18 is needed", NULL);
	vxt_write(p.dir, "tools/node", "#!/bin/sh\necho v22.6.0\n");
	assert_int_equal(chmod(vxt_path(p.dir, "tools/node"), 0755), 0);
	setenv("PATH", vxt_path(p.dir, "tools"), 1);
	plan_load(&p);
	plan_says(&p, "p/b/vx.config.mjs cannot be evaluated",
		"/tools/node belongs to a package or to the workspace", "from elsewhere on PATH",
		NULL);
	plan_close(&p);
	vxt_rm(dir);
}

int main(int argc, char **argv)
{
	vxt_keeper(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_runs_without_one),
		cmocka_unit_test(test_two_configurations),
		cmocka_unit_test(test_values),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_one_process),
		cmocka_unit_test(test_kept),
		cmocka_unit_test(test_kept_by_what_imports_lead_to),
		cmocka_unit_test(test_broken_node),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
