#include "plantest.h"

#include "vx/facts.h"

#include <sys/time.h>

static void workspace(struct plan *p)
{
	plan_open(p);
	vxt_write(p->dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p->dir, "p/a/package.json",
		"{\"name\":\"a\",\"scripts\":{\"build\":\"tsc\",\"lint\":\"eslint .\"}}");
}

static const struct vx_task_decl *decl(const struct plan *p, const char *project, const char *task)
{
	uint32_t i = vx_map_gets(&p->ws.by_name, project);

	for (uint32_t k = 0; i != VX_MAP_NONE && k < p->ws.projects[i].n_tasks; k++)
		if (strcmp(p->ws.projects[i].tasks[k]->name, task) == 0)
			return p->ws.projects[i].tasks[k];
	return NULL;
}

#define TASK(body) "{\"tasks\":{\"t\":{" body "}}}"
#define EXEC(body) TASK("\"exec\":{\"command\":\"c\"," body "}")
#define CACHE(in, out)                                                           \
	TASK("\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":" in \
	     "},\"outputs\":{\"files\":" out "}}")
#define SANDBOX(body) EXEC("\"sandbox\":{" body "}")

/* Every rule of the schema and of docs/config.md that one file can break: its text. All errors of a
 * task name file, project and task. */
struct broken {
	const char *text, *says, *says_too;
};

/* Files, names, dependsOn. */
static const struct broken broken_tasks[] = {
	{"[]", "must be an object, not a list", ""},
	{"{\"task\":{}}", "unknown key \"task\"", "did you mean \"tasks\"?"},
	{"{\"zzz\":{}}", "unknown key \"zzz\"", "known keys: tags, tasks"},
	{"{\"tags\":\"x\"}", "tags must be a list of strings, not a string", ""},
	{"{\"tags\":[1]}", "entry 1 is a number", ""},
	{"{\"tasks\":[]}", "tasks must be an object of tasks", ""},
	{"{\"tasks\":{\"\":{}}}", "must not be empty", ""},
	{"{\"tasks\":{\" t\":{}}}", "start or end with a blank", ""},
	{"{\"tasks\":{\"a#b\":{}}}", "hold '#'", ""},
	{"{\"tasks\":{\"a*\":{}}}", "hold '*'", ""},
	{"{\"tasks\":{\"^a\":{}}}", "start with '^' or '!'", ""},
	{"{\"tasks\":{\"!a\":{}}}", "start with '^' or '!'", ""},
	{"{\"tasks\":{\"t\":null}}", "not null", "task \"t\""},
	{"{\"tasks\":{\"t\":[]}}", "must be an object", "task \"t\""},
	{TASK(""), "neither exec nor dependsOn", "task \"t\""},
	{TASK("\"dependsOn\":[]"), "neither exec nor dependsOn", "task \"t\""},
	{TASK("\"dependson\":[\"x\"]"), "unknown key \"dependson\"", "did you mean \"dependsOn\"?"},
	{TASK("\"dependsOn\":\"x\""), "dependsOn must be a list", "task \"t\""},
	{TASK("\"dependsOn\":[\"^\"]"), "names no task", "dependsOn entry \"^\""},
	{TASK("\"dependsOn\":[\"a#\"]"), "names no task", ""},
	{TASK("\"dependsOn\":[\"#a\"]"), "names no task", ""},
	{TASK("\"dependsOn\":[\"^a#b\"]"), "mixes '^' and '#'", ""},
	{TASK("\"dependsOn\":[\"\"]"), "empty string", ""},
	{TASK("\"description\":1,\"dependsOn\":[\"x\"]"),
		"description must be a string, not a number", ""},
	{"null", "must be an object, not null", ""},
	{"{\"tasks\":{\"a\\u0007b\":{}}}", "hold a control character", ""},
};

/* exec. */
static const struct broken broken_exec[] = {
	{TASK("\"exec\":\"tsc\""), "exec must be an object, not a string", ""},
	{TASK("\"exec\":{}"), "exec.command is missing", ""},
	{TASK("\"exec\":{\"command\":\" \"}"), "exec.command is empty", ""},
	{TASK("\"exec\":{\"script\":\"tests\"}"), "exec.script names \"tests\"", "add it to"},
	{TASK("\"exec\":{\"script\":7}"), "exec.script must be a string", ""},
	{TASK("\"exec\":{\"script\":\"a\",\"command\":\"b\"}"), "both a command and a script",
		"keep one"},
	{TASK("\"exec\":{\"command\":[\"a\"]}"), "exec.command must be a string, not a list", ""},
	{TASK("\"exec\":{\"command\":\"a\\u0000b\"}"), "must not hold a NUL", ""},
	{TASK("\"exec\":{\"command\":\"x {projectRoot}/y\"}"), "Nx's {projectRoot}",
		"project directory"},
	{EXEC("\"comand\":1"), "exec has an unknown key \"comand\"", "did you mean \"command\"?"},
	{EXEC("\"timeout\":2147483648"), "exec.timeout must be a whole number from 0 to 2147483647",
		""},
	{EXEC("\"timeout\":-1"), "exec.timeout must be", ""},
	{EXEC("\"timeout\":1.5"), "exec.timeout must be", ""},
	{EXEC("\"timeout\":\"1\""), "exec.timeout must be", ""},
	{EXEC("\"retries\":-1"), "exec.retries must be", ""},
	{EXEC("\"interactive\":1"), "exec.interactive must be true or false, not a number", ""},
	{EXEC("\"persistent\":{\"readyWen\":\"x\"}"), "exec.persistent has an unknown key",
		"readyWhen"},
	{EXEC("\"persistent\":true,\"retries\":1"),
		"exec.retries cannot be given for a persistent task", ""},
	{EXEC("\"env\":{\"passThrough\":[\"A=B\"]}"), "has no '='", "exec.env.passThrough"},
	{EXEC("\"env\":{\"passThrough\":[\"A\\u0000B\"]}"), "NUL", "exec.env.passThrough"},
	{EXEC("\"env\":{\"define\":{\"A=\":\"B\"}}"), "has no '='", "exec.env.define"},
	{EXEC("\"env\":{\"define\":{\"A\":1}}"), "exec.env.define.A must be a string", ""},
	{EXEC("\"env\":{\"define\":{\"A\":null}}"), "exec.env.define.A must be a string", ""},
	{EXEC("\"env\":{\"secret\":[\"\"]}"), "empty string", "exec.env.secret"},
	{EXEC("\"env\":{\"passthrough\":[]}"), "unknown key \"passthrough\"", "passThrough"},
	{EXEC("\"resources\":{\"cpus\":0}"), "exec.resources.cpus must be a whole number from 1",
		""},
	{EXEC("\"resources\":{\"memory\":\"lots\"}"), "exec.resources.memory must be a size", ""},
	{EXEC("\"resources\":{\"memory\":true}"), "exec.resources.memory must be a size", ""},
	{EXEC("\"resources\":{\"gpu\":1}"), "exec.resources has an unknown key \"gpu\"",
		"known keys"},
	{EXEC("\"env\":{\"passThrough\":[\"VITE_*\"]}"), "no patterns of variables",
		"exec.env.passThrough"},
	{EXEC("\"env\":{\"secret\":[\"!A\"]}"), "no patterns of variables", "write each name"},
};

/* cache. */
static const struct broken broken_cache[] = {
	{TASK("\"dependsOn\":[\"x\"],\"cache\":{\"inputs\":{\"files\":[]},\"outputs\":{\"files\":[]}}"),
		"cannot be given for a group", ""},
	{TASK("\"exec\":{\"command\":\"c\",\"persistent\":{}},\"cache\":{\"inputs\":{\"files\":[]},\"outputs\":{\"files\":[]}}"),
		"cache cannot be given for a persistent task", ""},
	{TASK("\"exec\":{\"command\":\"c\"},\"cache\":{}"),
		"cache lacks inputs.files and outputs.files", ""},
	{TASK("\"exec\":{\"command\":\"c\"},\"cache\":{\"outputs\":{\"files\":[]}}"),
		"cache lacks inputs.files", ""},
	{TASK("\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":[]}}"),
		"cache lacks outputs.files", ""},
	{TASK("\"exec\":{\"command\":\"c\"},\"cache\":{\"input\":{}}"),
		"cache has an unknown key \"input\"", "did you mean \"inputs\"?"},
	{CACHE("[\"/etc/passwd\"]", "[]"), "is absolute", "cache.inputs.files"},
	{CACHE("[\"!/etc\"]", "[]"), "is absolute", ""},
	{CACHE("[\"{a,/b}\"]", "[]"), "is absolute", ""},
	{CACHE("[\"../x\"]", "[]"), "has a \"..\" component", "workspaceFiles"},
	{CACHE("[\"a/..\"]", "[]"), "has a \"..\" component", ""},
	{CACHE("[\"a/{b,..}/c\"]", "[]"), "has a \"..\" component", ""},
	{CACHE("[]", "[\"../dist\"]"), "has a \"..\" component", "cache.outputs.files"},
	{CACHE("[\"a/@(b|c)\"]", "[]"), "extglob", "{a,b}"},
	{CACHE("[\"a/!(x)/y\"]", "[]"), "extglob", ""},
	{CACHE("[\"!\"]", "[]"), "names nothing", ""},
	{CACHE("[\"$TURBO_DEFAULT$\"]", "[]"), "uses $TURBO_DEFAULT$", "write \"**\""},
	{CACHE("[\"$TURBO_ROOT$/x\"]", "[]"), "uses $TURBO_ROOT$", "workspaceFiles"},
	{CACHE("[\"{projectRoot}/x\"]", "[]"), "uses {projectRoot}", "leave it out"},
	{CACHE("[\"{workspaceRoot}/x\"]", "[]"), "uses {workspaceRoot}", "workspaceFiles"},
	{CACHE("[]", "[\"{options.outputPath}\"]"), "uses {options.", "value itself"},
	{CACHE("[\"src/**\"]", "[\"!dist/x\"]"), "has only `!` entries", "cache.outputs.files"},
	{CACHE("[\"dist/x\"]", "[\"dist/**\"]"), "lies wholly in the task's own outputs",
		"dist/**"},
	{CACHE("[\"src/**\"]", "[\"**\"]"), "takes the project's own package.json", "dist/**"},
	{"{\"tasks\":{\"t\":{\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":[\"src/**\"]},\"outputs\":{\"files\":[\"dist/**\"],\"workspaceFiles\":[\"*.json\"]}}}}}",
		"takes the workspace's own package.json", "dist/**"},
	{CACHE("[\"src/**\"]", "[\"*.jsonc\"]"), "takes the project's own vx.jsonc", "dist/**"},
	{CACHE("[\"dist/{a,b}\"]", "[\"dist\"]"), "lies wholly in the task's own outputs", ""},
	{TASK("\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":[],\"env\":[\"A=1\"]},\"outputs\":{\"files\":[]}}"),
		"has no '='", "cache.inputs.env"},
	{TASK("\"exec\":{\"command\":\"c\"},\"cache\":{\"inputs\":{\"files\":[],\"env\":[\"A*\"]},\"outputs\":{\"files\":[]}}"),
		"no patterns of variables", "cache.inputs.env"},
	{CACHE("[\"!x\"]", "[]"), "has only `!` entries", "put \"**\" in front"},
};

/* exec.sandbox. */
static const struct broken broken_sandbox[] = {
	{EXEC("\"sandbox\":[]"), "exec.sandbox must be an object", ""},
	{SANDBOX("\"alow\":{}"), "exec.sandbox has an unknown key \"alow\"",
		"did you mean \"allow\"?"},
	{SANDBOX("\"allow\":{\"read\":\"x\"}"), "exec.sandbox.allow.read must be a list", ""},
	{SANDBOX("\"allow\":{\"network\":\"x\"}"),
		"exec.sandbox.allow.network must be true, false or a list", ""},
	{SANDBOX("\"allow\":{\"network\":[\"https://x.org\"]}"), "has a scheme", ""},
	{SANDBOX("\"allow\":{\"network\":[\"x.org/y\"]}"), "has a path", ""},
	{SANDBOX("\"allow\":{\"network\":[\"localhost\"]}"), "bare name without a dot", ""},
	{SANDBOX("\"allow\":{\"network\":[\"x.org:0\"]}"), "has a bad port", ""},
	{SANDBOX("\"allow\":{\"network\":[\"x.org:99999\"]}"), "has a bad port", ""},
	{SANDBOX("\"allow\":{\"network\":[\"x.org:\"]}"), "has a bad port", ""},
	{SANDBOX("\"allow\":{\"network\":[\"*\"]}"), "too broad a wildcard", ""},
	{SANDBOX("\"allow\":{\"network\":[\"*.org\"]}"), "too broad a wildcard", ""},
	{SANDBOX("\"allow\":{\"network\":[\"a.*.org\"]}"), "leading \"*.\"", ""},
	{SANDBOX("\"allow\":{\"network\":[\"a..org\"]}"), "empty label", ""},
	{SANDBOX("\"allow\":{\"network\":[\"[::1\"]}"), "unclosed '['", ""},
	{SANDBOX("\"allow\":{\"localBinding\":[0]}"), "from 1 to 65535", ""},
	{SANDBOX("\"allow\":{\"localBinding\":[null]}"), "1 to 65535", ""},
	{SANDBOX("\"allow\":{\"devices\":[\"/tmp/x\"]}"), "below /dev", ""},
	{SANDBOX("\"allow\":{\"read\":[\"$TURBO_ROOT$/x\"]}"), "$TURBO_ROOT$", ""},
	{SANDBOX("\"deny\":{\"net\":[]}"), "exec.sandbox.deny has an unknown key", ""},
	{SANDBOX("\"deny\":{\"network\":[\"*:x\"]}"), "has a bad port", ""},
	{SANDBOX("\"ignore\":{\"read\":7}"), "exec.sandbox.ignore.read must be a list", ""},
	{SANDBOX("\"weakerWhenNested\":1"), "must be true or false", ""},
};

static void refused(struct plan *p, const struct broken *b, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		vxt_write(p->dir, "p/a/vx.json", b[i].text);
		if (plan_load(p) == 0)
			fail_msg("accepted: %s", b[i].text);
		plan_says(p, "p/a/vx.json: project \"a\"", b[i].says, b[i].says_too, NULL);
	}
}

static void test_errors(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	refused(&p, broken_tasks, sizeof broken_tasks / sizeof *broken_tasks);
	refused(&p, broken_exec, sizeof broken_exec / sizeof *broken_exec);
	refused(&p, broken_cache, sizeof broken_cache / sizeof *broken_cache);
	refused(&p, broken_sandbox, sizeof broken_sandbox / sizeof *broken_sandbox);
	plan_close(&p);
}

/* What looks like it and is no claim on the project's own files. */
static void test_outputs_beside_own_files(void **state)
{
	static const char *const fine[] = {
		CACHE("[\"src/**\"]",
			"[\"**/*.map\",\"*.tgz\",\"vx/**\",\"**/dist/**\",\"*.d.ts\",\"lib/*.json\"]"),
		CACHE("[\"src/**\"]", "[\"*.json\",\"!package.json\",\"!vx.json\"]")};
	struct plan p;

	(void)state;
	workspace(&p);
	for (size_t i = 0; i < sizeof fine / sizeof *fine; i++) {
		vxt_write(p.dir, "p/a/vx.json", fine[i]);
		if (plan_load(&p) != 0)
			fail_msg("%s: %s", fine[i], p.text);
	}
	plan_close(&p);
}

static const struct {
	const char *text, *says, *says_too;
} broken_ws[] = {
	{"{\"concurency\":1}", "unknown key \"concurency\"", "did you mean \"concurrency\"?"},
	{"{\"concurrency\":0}", "concurrency must be", ""},
	{"{\"concurrency\":\"many\"}", "concurrency must be a number", "50%"},
	{"{\"concurrency\":\"0%\"}", "concurrency must be", ""},
	{"{\"cacheDir\":\"\"}", "cacheDir is empty", ""},
	{"{\"sharedStore\":1}", "sharedStore must be true or false", ""},
	{"{\"timeout\":-5}", "timeout must be", ""},
	{"{\"cacheRetention\":{\"olderThan\":\"soon\"}}", "cacheRetention.olderThan must be a time",
		"30d"},
	{"{\"cacheRetention\":{\"maxSize\":\"big\"}}", "cacheRetention.maxSize must be a size",
		"10G"},
	{"{\"cacheRetention\":{\"age\":1}}", "cacheRetention has an unknown key \"age\"",
		"olderThan"},
	{"{\"rules\":{\"upfrontkeys\":true}}", "rules has an unknown key", "upfrontKeys"},
	{"{\"rules\":{\"upfrontKeys\":\"yes\"}}", "rules.upfrontKeys must be true or false", ""},
	{"{\"tasks\":[]}", "tasks must be an object", ""},
	{"{\"tasks\":{\"a#b\":{}}}", "hold '#'", ""},
	{"{\"tasks\":{\"x\":{\"exce\":{}}}}", "unknown key \"exce\"", "did you mean \"exec\"?"},
	{"{\"tasks\":{\"x\":{\"exec\":{\"tmeout\":1}}}}", "unknown key \"tmeout\"", "timeout"},
	{"{\"remoteCache\":true}", "remoteCache must be an object", ""},
	{"{\"affectedBase\":[]}", "affectedBase must be a string", ""},
	{"{,}", ":1:2:", ""},
};

static void test_workspace_errors(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	for (size_t i = 0; i < sizeof broken_ws / sizeof *broken_ws; i++) {
		vxt_write(p.dir, "vx.workspace.json", broken_ws[i].text);
		if (plan_load(&p) == 0)
			fail_msg("accepted: %s", broken_ws[i].text);
		plan_says(&p, "vx.workspace.json", broken_ws[i].says, broken_ws[i].says_too, NULL);
	}
	vxt_write(p.dir, "vx.workspace.json", "{}");
	vxt_write(p.dir, "vx.workspace.jsonc", "{}");
	plan_load(&p);
	plan_says(&p, "both vx.workspace.json and vx.workspace.jsonc", NULL);
	plan_close(&p);
}

static void test_two_files(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	vxt_write(p.dir, "p/a/vx.json", "{}");
	vxt_write(p.dir, "p/a/vx.jsonc", "{}");
	plan_load(&p);
	plan_says(&p, "project \"a\" has two configurations: p/a/vx.json and p/a/vx.jsonc", NULL);
	plan_close(&p);
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"workspaces\":[\"p/*\"]}");
	vxt_write(p.dir, "vx.json", "{}");
	plan_load(&p);
	plan_says(&p, "the workspace root has a vx.json", "add \"name\"", NULL);
	plan_close(&p);
}

static void test_everything_that_can_be_said(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	vxt_write(p.dir, "p/a/vx.jsonc",
		"\xef\xbb\xbf{ // a comment\r\n"
		"\"$schema\": \"x\", \"tags\": [\"scope:web\"],\n"
		"\"tasks\": { /* another */ \"build\": { \"description\": \"d\", \"dependsOn\": [\"^build\"],\n"
		" \"exec\": {\"command\": \"tsc -b\", \"env\": {\"passThrough\": [\"CI\"], \"define\": {\"NODE_ENV\": \"production\"}, \"secret\": [\"GH_PAT\"]},\n"
		"  \"timeout\": 120000, \"retries\": 1, \"interactive\": false, \"resources\": {\"cpus\": 2, \"memory\": \"4G\", \"exclusive\": true},\n"
		"  \"sandbox\": {\"allow\": {\"read\": [\".\"], \"write\": [\"dist/\"], \"network\": [\"packages.example.com\", \"*.example.org:443\", \"10.0.0.1\", \"[::1]:80\"],\n"
		"    \"unixSockets\": true, \"localBinding\": [5173], \"pty\": true, \"gitConfig\": true, \"devices\": [\"/dev/dri\"]}, \"deny\": {\"network\": [\"*:22\"]},\n"
		"    \"ignore\": {\"read\": [\"x\"], \"write\": [], \"network\": [\"host.example.com:1\"]}, \"weakerWhenNested\": true}},\n"
		" \"cache\": {\"inputs\": {\"files\": [\"src/**\"], \"workspaceFiles\": [\"tsconfig.base.json\"], \"env\": [\"NODE_ENV\"], \"runtime\": [\"./probe.sh\"],\n"
		"  \"workspaceRuntime\": [\"node -v\"], \"tasks\": [\"*\", \"^*\"]}, \"outputs\": {\"files\": [\"dist/**\", \"!dist/x\"], \"workspaceFiles\": []}}},\n"
		"\"dev\": {\"exec\": {\"command\": \"vite\", \"persistent\": {\"readyWhen\": \"Local:\"}}},\n"
		"\"ci\": {\"dependsOn\": [\"build\"],},\n},}\r\n");
	if (plan_load(&p) != 0)
		fail_msg("%s", p.text);
	const struct vx_task_decl *t = decl(&p, "a", "build");
	assert_string_equal(t->exec.command, "tsc -b");
	assert_int_equal(t->exec.timeout_ms, 120000);
	assert_int_equal(t->exec.retries, 1);
	assert_int_equal(t->exec.cpus, 2);
	assert_true(t->exec.exclusive && t->exec.memory_bytes == (4ULL << 30));
	assert_string_equal(t->exec.define[0].value, "production");
	assert_true(t->exec.sandboxed && t->exec.sandbox.unix_all && t->exec.sandbox.pty &&
		    t->exec.sandbox.weaker_when_nested);
	assert_int_equal(t->exec.sandbox.net_allow.n, 4);
	assert_int_equal(t->exec.sandbox.bind_ports[0], 5173);
	assert_string_equal(t->exec.sandbox.net_deny.v[0], "*:22");
	assert_true(t->has_cache && t->cache.tasks_given);
	assert_int_equal(t->cache.out_files.n, 2);
	assert_string_equal(t->source, "vx.jsonc");
	assert_non_null(strstr(t->canonical, "\"command\":\"tsc -b\""));
	assert_null(strstr(t->canonical, "cpus"));
	assert_true(decl(&p, "a", "dev")->exec.persistent);
	assert_string_equal(decl(&p, "a", "dev")->exec.ready_when, "Local:");
	assert_int_equal(decl(&p, "a", "dev")->exec.timeout_ms, -1);
	assert_false(decl(&p, "a", "ci")->has_exec);
	assert_string_equal(p.ws.projects[1].tags.v[0], "scope:web");
	assert_null(decl(&p, "a", "lint")); /* a script alone is no task */
	plan_close(&p);
}

/* Equal files of projects whose scripts differ say different things. */
static void test_scripts(void **state)
{
	static const char file[] =
		"{\"tasks\":{\"build\":{\"exec\":{\"script\":\"build\"}},\"named\":{\"exec\":{\"script\":\"gen\"}}}}";
	struct plan p;

	(void)state;
	workspace(&p);
	for (const char *name = "xyz"; *name; name++) {
		char path[64], text[512];
		snprintf(path, sizeof path, "p/%c/package.json", *name);
		snprintf(text, sizeof text,
			"{\"name\":\"%c\",\"scripts\":{\"build\":\"make\",\"gen\":\"%c\",\"pregen\":\"%s\",\"postbuild\":\"after\"}}",
			*name, *name == 'z' ? 'g' : 'h', *name == 'x' ? "px" : "py");
		vxt_write(p.dir, path, text);
		snprintf(path, sizeof path, "p/%c/vx.json", *name);
		vxt_write(p.dir, path, file);
	}
	if (plan_load(&p) != 0)
		fail_msg("%s", p.text);
	const struct vx_exec_decl *x = &decl(&p, "x", "named")->exec,
				  *y = &decl(&p, "y", "named")->exec,
				  *z = &decl(&p, "z", "named")->exec,
				  *build = &decl(&p, "x", "build")->exec;
	assert_string_equal(x->script, "gen");
	assert_string_equal(x->command, "h");
	assert_string_equal(x->pre, "px");
	assert_null(x->post);
	assert_string_equal(y->pre, "py");
	assert_string_equal(z->command, "g");
	assert_string_equal(build->command, "make");
	assert_null(build->pre);
	assert_string_equal(build->post, "after");
	assert_string_not_equal(
		decl(&p, "x", "named")->canonical, decl(&p, "y", "named")->canonical);
	plan_close(&p);
}

static void test_defaults(void **state)
{
	struct plan p;

	(void)state;
	workspace(&p);
	vxt_write(p.dir, "p/b/package.json", "{\"name\":\"b\"}");
	vxt_write(p.dir, "p/b/vx.json",
		"{\"tasks\":{\"build\":{\"exec\":{\"command\":\"make\"}},\"gen\":{}}}");
	vxt_write(p.dir, "p/c/package.json", "{\"name\":\"c\",\"scripts\":{\"build\":\"x\"}}");
	vxt_write(p.dir, "p/c/vx.json",
		"{\"tasks\":{\"build\":{\"dependsOn\":[\"lint\"],\"cache\":{\"outputs\":{\"files\":[\"out\"]}}},\"lint\":{\"exec\":{\"command\":\"l\"}}}}");
	vxt_write(p.dir, "p/d/package.json", "{\"name\":\"d\",\"scripts\":{\"build\":\"x\"}}");
	vxt_write(p.dir, "p/d/vx.json",
		"{\"tasks\":{\"build\":{\"cache\":null,\"dependsOn\":null}}}");
	vxt_write(p.dir, "vx.workspace.json",
		"{\"concurrency\":\"50%\",\"cacheDir\":\"../c\",\"timeout\":5,\"cacheRetention\":{\"olderThan\":\"30d\",\"maxSize\":\"10G\"},\"affectedBase\":\"dev\","
		"\"tasks\":{\"build\":{\"dependsOn\":[\"^build\"],\"exec\":{\"timeout\":7},\"cache\":{\"inputs\":{\"files\":[\"src/**\"]},\"outputs\":{\"files\":[\"dist/**\"]}}},"
		"\"gen\":{\"exec\":{\"command\":\"gen\"}},\"lint\":{}}}");
	if (plan_load(&p) != 0)
		fail_msg("%s", p.text);
	/* a: by its script, which is the command */
	const struct vx_task_decl *t = decl(&p, "a", "build");
	assert_string_equal(t->exec.command, "tsc");
	assert_int_equal(t->exec.timeout_ms, 7);
	assert_string_equal(t->depends_on.v[0], "^build");
	assert_string_equal(decl(&p, "a", "lint")->exec.command, "eslint .");
	assert_null(decl(&p, "a", "gen"));
	/* b: because it lists them; its own words win field by field */
	assert_string_equal(decl(&p, "b", "build")->exec.command, "make");
	assert_int_equal(decl(&p, "b", "build")->exec.timeout_ms, 7);
	assert_string_equal(decl(&p, "b", "gen")->exec.command, "gen");
	t = decl(&p, "c", "build");
	assert_string_equal(t->depends_on.v[0], "lint");
	assert_string_equal(t->cache.files.v[0], "src/**");
	assert_string_equal(t->cache.out_files.v[0], "out");
	/* null takes a default away */
	t = decl(&p, "d", "build");
	assert_false(t->has_cache);
	assert_int_equal(t->depends_on.n, 0);
	assert_string_equal(p.ws.settings.concurrency, "50%");
	assert_string_equal(p.ws.settings.retention_max_size, "10G");
	assert_int_equal(p.ws.settings.timeout_ms, 5);
	assert_string_equal(p.ws.settings.affected_base, "dev");

	/* a default that cannot stand for a project that takes it */
	vxt_write(p.dir, "p/b/vx.json", "{\"tasks\":{\"build\":{}}}");
	plan_load(&p);
	plan_says(
		&p, "p/b/vx.json: project \"b\", task \"build\"", "exec.command is missing", NULL);
	vxt_write(
		p.dir, "vx.workspace.json", "{\"tasks\":{\"build\":{\"exec\":{\"retries\":-2}}}}");
	plan_load(&p);
	plan_says(&p, "project \"a\", task \"build\": exec.retries", "vx.workspace.json", NULL);
	plan_close(&p);
}

static void test_same_meaning_same_canonical(void **state)
{
	struct plan p;
	char first[4096];

	(void)state;
	workspace(&p);
	vxt_write(p.dir, "p/a/vx.json", EXEC("\"resources\":{\"cpus\":2}"));
	assert_int_equal(plan_load(&p), 0);
	snprintf(first, sizeof first, "%s", decl(&p, "a", "t")->canonical);
	vxt_write(p.dir, "p/a/vx.json",
		"{\"tasks\":{\"t\":{\"dependsOn\":[],\"exec\":{\"env\":{},\"command\":\"c\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(first, decl(&p, "a", "t")->canonical);
	vxt_write(p.dir, "p/a/vx.json",
		"{\"tasks\":{\"t\":{\"exec\":{\"command\":\"c\",\"timeout\":0}}}}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_not_equal(first, decl(&p, "a", "t")->canonical);
	plan_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_outputs_beside_own_files),
		cmocka_unit_test(test_workspace_errors),
		cmocka_unit_test(test_two_files),
		cmocka_unit_test(test_everything_that_can_be_said),
		cmocka_unit_test(test_scripts),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_same_meaning_same_canonical),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
