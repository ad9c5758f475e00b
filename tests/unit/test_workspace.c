#include "plantest.h"

#include "vx/assert.h"

#include "vx/facts.h"
#include "vx/limits.h"

static void pkg(struct plan *p, const char *dir, const char *rest)
{
	char path[256], text[2048];

	snprintf(path, sizeof path, "%s/package.json", dir);
	snprintf(text, sizeof text, "{\"name\":\"%s\"%s%s}",
		strrchr(dir, '/') ? strrchr(dir, '/') + 1 : dir, *rest ? "," : "", rest);
	vxt_write(p->dir, path, text);
}

static const char *names(const struct plan *p)
{
	static char out[4096];
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < p->ws.n_projects; i++)
		n += (size_t)snprintf(
			out + n, sizeof out - n, "%s%s", n ? " " : "", p->ws.projects[i].dir);
	return out;
}

static void test_npm_members(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":{\"packages\":[\"packages/*\",\"!packages/old\",\"tools/**\",\"./one/\",\"x{1,2}\"]}}");
	pkg(&p, "packages/a", "");
	pkg(&p, "packages/b", "");
	pkg(&p, "packages/old", "");
	pkg(&p, "packages/.hidden", "");
	pkg(&p, "packages/a/node_modules/dep", "");
	pkg(&p, "packages/a/inner", "");
	pkg(&p, "tools/deep/er/t", "");
	pkg(&p, "tools/node_modules/u", "");
	pkg(&p, "one", "");
	pkg(&p, "x1", "");
	pkg(&p, "x3", "");
	vxt_write(p.dir, "packages/nothing/readme", "no manifest here");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(names(&p), ". one packages/a packages/b tools/deep/er/t x1");
	assert_int_equal(p.ws.kind, VX_WS_NPM);
	assert_int_equal(p.ws.root_project, 0);
	assert_int_equal(vx_map_gets(&p.ws.by_name, "//"), 0);
	assert_string_equal(
		p.ws.projects[vx_workspace_project_at(&p.ws, "packages/a/inner/src")].dir,
		"packages/a");
	assert_int_equal(vx_workspace_project_at(&p.ws, "elsewhere"), 0);
	plan_close(&p);
}

static void test_pnpm_members(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "pnpm-workspace.yaml",
		"\xef\xbb\xbf# comment\r\npackages:\r\n  - 'packages/**'\r\n  - \"!**/test/**\"\r\n  - examples/.*/*\r\n");
	pkg(&p, "packages/a", "");
	pkg(&p, "packages/a/sub", "");
	pkg(&p, "packages/a/test/fixture", "");
	pkg(&p, "examples/.exp/one", "");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(names(&p), "examples/.exp/one packages/a packages/a/sub");
	assert_int_equal(p.ws.kind, VX_WS_PNPM);
	assert_int_equal(p.ws.root_project, VX_MAP_NONE);
	const struct vx_project *a = &p.ws.projects[1];
	assert_int_equal(a->nested.n, 1);
	assert_string_equal(a->nested.v[0], "packages/a/sub");

	vxt_write(p.dir, "pnpm-workspace.yaml", "packages:\n  - [a]\n");
	plan_load(&p);
	plan_says(&p, "pnpm-workspace.yaml", "line 2", "string", NULL);
	vxt_write(p.dir, "pnpm-workspace.yaml", "packages: 'x'\n");
	plan_load(&p);
	plan_says(&p, "pnpm-workspace.yaml", "line 1", "list of patterns", NULL);
	vxt_write(p.dir, "pnpm-workspace.yaml", "packages: [\n");
	plan_load(&p);
	plan_says(&p, "pnpm-workspace.yaml", "line 2", NULL);
	vxt_write(p.dir, "pnpm-workspace.yaml", "packages:\n  - ../outside/*\n");
	plan_load(&p);
	plan_says(&p, "leaves the workspace", NULL);
	vxt_write(p.dir, "pnpm-workspace.yaml", "");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.n_projects, 0);
	plan_close(&p);
}

static void test_kinds(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"r\",\"workspaces\":[\"a\"]}");
	vxt_write(p.dir, "yarn.lock", "");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.kind, VX_WS_YARN);
	vxt_write(p.dir, "bun.lock", "{}");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.kind, VX_WS_BUN);
	vxt_write(p.dir, "package.json",
		"{\"name\":\"r\",\"workspaces\":[\"a\"],\"packageManager\":\"npm@10.0.0\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.kind, VX_WS_NPM);
	vxt_write(p.dir, "package.json", "{\"name\":\"r\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.kind, VX_WS_SINGLE);
	assert_int_equal(p.ws.n_projects, 1);
	plan_close(&p);
}

static void test_edges(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	pkg(&p, "p/shared", "\"version\":\"2.0.0\"");
	pkg(&p, "p/util", "\"version\":\"1.4.0\"");
	pkg(&p, "p/noversion", "");
	pkg(&p, "p/linked", "\"version\":\"1.0.0\"");
	pkg(&p, "p/app",
		"\"dependencies\":{\"shared\":\"^1.0.0\",\"util\":\"^1.2.0\",\"noversion\":\"^3.0.0\",\"react\":\"*\",\"x\":\"github:a/b\"},"
		"\"devDependencies\":{\"linked\":\"link:../linked\",\"util\":\"*\"}");
	pkg(&p, "p/b",
		"\"dependencies\":{\"shared\":\"workspace:^\",\"al\":\"workspace:util@*\",\"l\":\"workspace:../linked\",\"f\":\"file:../noversion\"}");
	pkg(&p, "p/c",
		"\"optionalDependencies\":{\"util\":\">=1 <2\"},\"dependencies\":{\"shared\":\"npm:shared@2.0.0\",\"linked\":\"latest\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "app"), "util noversion linked");
	assert_string_equal(plan_edges(&p, "b"), "shared util linked noversion");
	assert_string_equal(plan_edges(&p, "c"), "shared linked util");

	/* pnpm 9 and later link only what says workspace:, unless told otherwise */
	vxt_write(p.dir, "pnpm-workspace.yaml",
		"packages: ['p/*']\ncatalog:\n  util: ^1.0.0\ncatalogs:\n  old:\n    shared: ^1.0.0\n");
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"packageManager\":\"pnpm@10.1.0\"}");
	pkg(&p, "p/c",
		"\"dependencies\":{\"util\":\"catalog:\",\"shared\":\"catalog:old\",\"s2\":\"npm:shared@^2\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "app"), "linked");
	assert_string_equal(plan_edges(&p, "b"), "shared util linked noversion");
	assert_string_equal(plan_edges(&p, "c"), "");
	vxt_write(p.dir, ".npmrc", "a=b\nlink-workspace-packages = true\n");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "app"), "util noversion linked");
	assert_string_equal(plan_edges(&p, "c"), "util shared");
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"packageManager\":\"pnpm@8.1.0\"}");
	vxt_write(p.dir, ".npmrc", "");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "app"), "util noversion linked");
	vxt_write(p.dir, "package.json", "{\"name\":\"root\"}");
	vxt_write(p.dir, "pnpm-lock.yaml", "lockfileVersion: '9.0'\n");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "app"), "linked");
	plan_close(&p);
}

static void test_yarn_transparent(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"p/*\"],\"packageManager\":\"yarn@4.0.0\"}");
	pkg(&p, "p/a", "\"version\":\"1.0.0\"");
	pkg(&p, "p/b", "\"dependencies\":{\"a\":\"npm:^1.0.0\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "b"), "a");
	pkg(&p, "p/b", "\"dependencies\":{\"a\":\"npm:a\",\"c\":\"npm:a@1\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "b"), "a");
	pkg(&p, "p/b", "\"dependencies\":{\"c\":\"npm:a@1\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "b"), "");
	pkg(&p, "p/b", "\"dependencies\":{\"a\":\"npm:^1.0.0\"}");
	vxt_write(p.dir, ".yarnrc.yml", "enableTransparentWorkspaces: false\n");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "b"), "");
	plan_close(&p);
}

static void test_peers(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	pkg(&p, "p/core", "\"devDependencies\":{\"plugin\":\"*\"}");
	pkg(&p, "p/plugin", "\"peerDependencies\":{\"core\":\"*\",\"base\":\"*\"}");
	pkg(&p, "p/base", "");
	/* two peers of each other: the first in project order stands, the second would close a
	 * cycle */
	pkg(&p, "p/x", "\"peerDependencies\":{\"y\":\"*\"}");
	pkg(&p, "p/y", "\"peerDependencies\":{\"z\":\"*\"}");
	pkg(&p, "p/z", "\"peerDependencies\":{\"x\":\"*\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "core"), "plugin");
	assert_string_equal(plan_edges(&p, "plugin"), "base");
	assert_string_equal(plan_edges(&p, "x"), "y");
	assert_string_equal(plan_edges(&p, "y"), "z");
	assert_string_equal(plan_edges(&p, "z"), "");
	/* a cycle of ordinary edges does not confuse it */
	pkg(&p, "p/base", "\"dependencies\":{\"core\":\"*\"}");
	pkg(&p, "p/core", "\"dependencies\":{\"base\":\"*\"},\"peerDependencies\":{\"z\":\"*\"}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(plan_edges(&p, "core"), "base z");
	assert_string_equal(plan_edges(&p, "plugin"), "core base");
	plan_close(&p);
}

static void test_duplicates_and_names(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	pkg(&p, "p/a", "");
	vxt_write(p.dir, "p/b/package.json", "{\"name\":\"a\"}");
	plan_load(&p);
	plan_says(&p, "two projects are named \"a\"", "p/a/package.json", "p/b/package.json", NULL);
	vxt_write(p.dir, "p/b/package.json", "{\"name\":\"a#b\"}");
	plan_load(&p);
	plan_says(&p, "p/b/package.json", "cannot be the name of a project", NULL);
	vxt_write(p.dir, "p/b/package.json", "{\"private\":true}");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.n_projects, 2);
	vxt_write(p.dir, "p/b/vx.json", "{}");
	plan_load(&p);
	plan_says(&p, "p/b/package.json", "needs a name", NULL);
	plan_close(&p);
}

static void test_broken_manifests(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{"{\"name\": \"a\",\n  \"version\": }", ":2:14: expected a value"},
		{"{\"name\": \"a\"", ":1:"},
		{"[]", "must be a JSON object"},
		{"{\"name\": 7}", "name must be a string"},
		{"{\"name\":\"a\",\"dependencies\":{\"x\":1}}", "dependencies.x must be a string"},
		{"{\"name\":\"a\",\"devDependencies\":7}", "devDependencies must be an object"},
		{"{\"name\":\"a\",\"scripts\":[]}", "scripts must be an object"},
		{"// no comments here\n{}", ":1:"},
		{"", ":1:"},
	};
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		vxt_write(p.dir, "p/a/package.json", cases[i].text);
		plan_load(&p);
		plan_says(&p, "p/a/package.json", cases[i].says, NULL);
	}
	vxt_write(p.dir, "p/a/package.json",
		"\xef\xbb\xbf{\r\n  \"name\": \"a\",\r\n \"scripts\": {\"x\": \"y\", \"//\": null}\r\n}\r\n");
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(p.ws.projects[1].n_scripts, 1);
	plan_close(&p);
}

static void test_hostile(void **state)
{
	struct plan p;
	char *deep = malloc(1 << 20);

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/**\"]}");
	pkg(&p, "p/a", "");
	/* members that are links: to themselves, upwards, nowhere, and to another member */
	assert_int_equal(symlink("loop", vxt_path(p.dir, "p/loop")), 0);
	assert_int_equal(symlink("..", vxt_path(p.dir, "p/up")), 0);
	assert_int_equal(symlink("../..", vxt_path(p.dir, "p/a/upup")), 0);
	assert_int_equal(symlink("nowhere", vxt_path(p.dir, "p/dangling")), 0);
	assert_int_equal(symlink("a", vxt_path(p.dir, "p/alias")), 0);
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(names(&p), ". p/a");
	/* a link to where no pattern reaches: the member goes by the path that its files are known
	 * by */
	pkg(&p, "elsewhere/out", "");
	assert_int_equal(symlink("../elsewhere/out", vxt_path(p.dir, "p/out")), 0);
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(names(&p), ". elsewhere/out p/a");
	/* one that leads to what has no such path is refused, or passed over when it has no name */
	pkg(&p, "node_modules/dep", "");
	assert_int_equal(symlink("../node_modules/dep", vxt_path(p.dir, "p/dep")), 0);
	plan_load(&p);
	plan_says(&p, "p/dep", "symlink that leads out", NULL);
	vxt_write(p.dir, "node_modules/dep/package.json", "{}");
	assert_int_equal(plan_load(&p), 0);
	assert_string_equal(names(&p), ". elsewhere/out p/a");

	memset(deep, '[', 100000);
	strcpy(deep + 100000, "");
	vxt_write(p.dir, "p/a/package.json", deep);
	plan_load(&p);
	plan_says(&p, "p/a/package.json", NULL);
	/* too large: refused by its size, without being read */
	int fd = open(vxt_path(p.dir, "p/a/package.json"), O_WRONLY | O_TRUNC | O_CLOEXEC);
	assert_int_equal(ftruncate(fd, 100 << 20), 0);
	close(fd);
	plan_load(&p);
	plan_says(&p, "p/a/package.json", "larger than", NULL);
	/* not a file at all */
	assert_int_equal(unlink(vxt_path(p.dir, "p/a/package.json")), 0);
	assert_int_equal(mkfifo(vxt_path(p.dir, "p/a/package.json"), 0600), 0);
	plan_load(&p);
	plan_says(&p, "p/a/package.json", "not a regular file", NULL);
	plan_close(&p);
	free(deep);
}

static void test_braces_have_a_limit(void **state)
{
	struct plan p;
	char text[512] = "{\"name\":\"root\",\"workspaces\":[\"";

	(void)state;
	plan_open(&p);
	for (int i = 0; i < 20; i++)
		strcat(text, "{a,b}");
	strcat(text, "\"]}");
	vxt_write(p.dir, "package.json", text);
	plan_load(&p);
	plan_says(&p, "alternatives", NULL);
	plan_close(&p);
}

static const char *find(struct plan *p, const char *from)
{
	char *root;

	p->r = vx_workspace_find(vxt_path(p->dir, from), &p->a, &root, &p->err);
	snprintf(p->text, sizeof p->text, "%s (%s)", p->err.what, p->err.fix);
	if (p->r < 0)
		return "none";
	assert_int_equal(strncmp(root, p->dir, strlen(p->dir)), 0);
	return root[strlen(p->dir)] ? root + strlen(p->dir) + 1 : ".";
}

static void test_find(void **state)
{
	struct plan p;

	(void)state;
	plan_open(&p);
	vxt_write(
		p.dir, "ws/package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\",\"!p/no\"]}");
	pkg(&p, "ws/p/a", "");
	pkg(&p, "ws/p/no", "");
	pkg(&p, "ws/lone", "");
	vxt_write(p.dir, "ws/p/a/src/x.c", "");
	vxt_write(p.dir, "ws/docs/x.md", "");
	assert_string_equal(find(&p, "ws"), "ws");
	assert_string_equal(find(&p, "ws/p/a"), "ws");
	assert_string_equal(find(&p, "ws/p/a/src"), "ws");
	assert_string_equal(find(&p, "ws/docs"), "ws");
	assert_string_equal(find(&p, "ws/p/no"), "ws/p/no");
	assert_string_equal(find(&p, "ws/lone"), "ws/lone");
	/* an inner workspace that does not claim us is passed; pnpm's file ends the walk */
	vxt_write(p.dir, "ws/p/a/package.json", "{\"name\":\"a\",\"workspaces\":[\"q/*\"]}");
	pkg(&p, "ws/p/a/q/z", "");
	assert_string_equal(find(&p, "ws/p/a/q/z"), "ws/p/a");
	assert_string_equal(find(&p, "ws/p/a/src"), "ws");
	vxt_write(p.dir, "ws/p/a/pnpm-workspace.yaml", "packages: ['q/*']\n");
	assert_string_equal(find(&p, "ws/p/a/src"), "ws/p/a");
	/* through a link: the canonical path lies below no glob */
	assert_int_equal(symlink("../lone", vxt_path(p.dir, "ws/p/linked")), 0);
	assert_string_equal(find(&p, "ws/lone"), "ws");
	assert_string_equal(find(&p, "nowhere"), "none");
	plan_close(&p);
}

static void test_facts(void **state)
{
	struct plan p;
	struct vx_facts f;
	bool file = false, dir = false, names = false, absent = false;

	(void)state;
	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	pkg(&p, "p/a", "");
	vxt_write(p.dir, "p/a/vx.json", "{}");
	vx_facts_init(&f, &p.a);
	vx_facts_use(&f);
	assert_int_equal(plan_load(&p), 0);
	vx_facts_use(NULL);
	assert_false(f.unstable);
	for (uint32_t i = 0; i < f.n; i++) {
		file = file || (f.v[i].kind == VX_SEEN_FILE &&
				       strcmp(f.v[i].path, vxt_path(p.dir, "p/a/vx.json")) == 0 &&
				       f.v[i].st.size == 2);
		dir = dir || (f.v[i].kind == VX_SEEN_DIR &&
				     strcmp(f.v[i].path, vxt_path(p.dir, "p")) == 0);
		names = names || (f.v[i].kind == VX_SEEN_NAMES &&
					 strcmp(f.v[i].path, vxt_path(p.dir, "p/a")) == 0 &&
					 f.v[i].names == (VX_HAS_PACKAGE_JSON | VX_HAS_VX_JSON) &&
					 f.v[i].st.ino);
		absent = absent ||
			 (f.v[i].kind == VX_SEEN_ABSENT &&
				 strcmp(f.v[i].path, vxt_path(p.dir, "pnpm-workspace.yaml")) == 0);
	}
	assert_true(file && dir && names && absent);
	uint32_t n = f.n;
	assert_int_equal(plan_load(&p), 0);
	assert_int_equal(f.n, n);
	plan_close(&p);
}

/* Which manager runs the scripts, and how, by what a root says. */
static void test_manager(void **state)
{
	static const struct {
		const char *manager, *file, *text; /* of the root; NULL: not there */
		enum vx_pm pm;
		bool around, pnp;
		const char *shell;
	} cases[] = {
		{NULL, NULL, NULL, VX_PM_NPM, true, false, NULL},
		{"npm@10.0.0", "yarn.lock", "", VX_PM_NPM, true, false, NULL},
		{NULL, ".npmrc", "script-shell=/bin/bash\n", VX_PM_NPM, true, false, "/bin/bash"},
		{NULL, ".npmrc", " ignore-scripts = true\r\n", VX_PM_NPM, false, false, NULL},
		{NULL, ".npmrc", "ignore-scripts=false\nignore-scripts-x=true", VX_PM_NPM, true,
			false, NULL},
		{NULL, ".npmrc", "; ignore-scripts=true\n", VX_PM_NPM, true, false, NULL},
		{NULL, "yarn.lock", "# yarn lockfile v1\n", VX_PM_YARN_1, true, false, NULL},
		{NULL, "yarn.lock", "__metadata:\n  version: 8\n", VX_PM_YARN, false, false, NULL},
		{"yarn@1.22.22+sha512.x", NULL, NULL, VX_PM_YARN_1, true, false, NULL},
		{"yarn@10.0.0", NULL, NULL, VX_PM_YARN, false, false, NULL},
		{"yarn@4.0.0", ".pnp.cjs", "", VX_PM_YARN, false, true, NULL},
		{"yarn@4.0.0", ".yarnrc.yml", "nodeLinker: pnp\n", VX_PM_YARN, false, true, NULL},
		{"yarn@4.0.0", ".yarnrc.yml", "nodeLinker: pnpm\n", VX_PM_YARN, false, false, NULL},
		{"npm@10.0.0", ".pnp.cjs", "", VX_PM_NPM, true, false, NULL},
		{"pnpm@9.0.0", NULL, NULL, VX_PM_PNPM, true, false, NULL},
		{"pnpm@8.9.0", NULL, NULL, VX_PM_PNPM, false, false, NULL},
		{"pnpm@8.9.0", ".npmrc", "enable-pre-post-scripts=true", VX_PM_PNPM, true, false,
			NULL},
		{"pnpm@10.0.0", ".npmrc", "enable-pre-post-scripts=false", VX_PM_PNPM, false, false,
			NULL},
		{"pnpm@11.0.0", ".npmrc", "enable-pre-post-scripts=false\nscript-shell=zsh",
			VX_PM_PNPM, true, false, NULL},
		{"pnpm@11.0.0", "pnpm-workspace.yaml",
			"enablePrePostScripts: false\nscriptShell: /bin/zsh\n", VX_PM_PNPM, false,
			false, "/bin/zsh"},
		{NULL, "pnpm-lock.yaml", "lockfileVersion: '6.0'\n", VX_PM_PNPM, false, false,
			NULL},
		{NULL, "pnpm-lock.yaml", "lockfileVersion: '9.0'\n", VX_PM_PNPM, true, false, NULL},
		{NULL, "bun.lock", "", VX_PM_BUN, true, false, NULL},
	};

	(void)state;
	for (size_t i = 0; i < VX_ARRAY_LEN(cases); i++) {
		struct plan p;
		char text[256];
		plan_open(&p);
		snprintf(text, sizeof text, "{\"name\":\"root\",\"workspaces\":[\"p/*\"]%s%s%s}",
			cases[i].manager ? ",\"packageManager\":\"" : "",
			cases[i].manager ? cases[i].manager : "", cases[i].manager ? "\"" : "");
		vxt_write(p.dir, "package.json", text);
		if (cases[i].file)
			vxt_write(p.dir, cases[i].file, cases[i].text);
		if (plan_load(&p) != 0)
			fail_msg("%zu: %s", i, p.text);
		const struct vx_manager *m = &p.ws.manager;
		if (m->pm != cases[i].pm || m->runs_around != cases[i].around ||
			m->pnp != cases[i].pnp || !vx_streq(m->shell, cases[i].shell))
			fail_msg("%zu (%s): manager %d, around %d, pnp %d, shell %s", i,
				cases[i].file ? cases[i].file : cases[i].manager, m->pm,
				m->runs_around, m->pnp, m->shell ? m->shell : "none");
		plan_close(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_npm_members),
		cmocka_unit_test(test_pnpm_members),
		cmocka_unit_test(test_kinds),
		cmocka_unit_test(test_edges),
		cmocka_unit_test(test_yarn_transparent),
		cmocka_unit_test(test_peers),
		cmocka_unit_test(test_duplicates_and_names),
		cmocka_unit_test(test_broken_manifests),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_braces_have_a_limit),
		cmocka_unit_test(test_find),
		cmocka_unit_test(test_facts),
		cmocka_unit_test(test_manager),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
