#include "plantest.h"

#include "vx/affected.h"

static void git(struct plan *p, const char *args)
{
	char cmd[2048];
	const char *out;

	snprintf(cmd, sizeof cmd,
		"cd '%s' && git -c user.name=t -c user.email=t@example.com -c commit.gpgsign=false %s 2>&1",
		p->dir, args);
	if (vxt_sh(cmd, &out) != 0)
		fail_msg("%s: %s", cmd, out);
}

#define CACHED(cmd, in, out, deps)                               \
	"{\"dependsOn\":[" deps "],\"exec\":{\"command\":\"" cmd \
	"\"},\"cache\":{\"inputs\":{\"files\":[" in "]},\"outputs\":{\"files\":[" out "]}}}"

/* lib <- app, both build and test; docs alone, without cache. */
static void repository(struct plan *p)
{
	plan_open(p);
	unsetenv("TURBO_SCM_BASE");
	unsetenv("GITHUB_BASE_REF");
	vxt_write(p->dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	vxt_write(p->dir, "p/lib/package.json", "{\"name\":\"lib\"}");
	vxt_write(p->dir, "p/lib/vx.json",
		"{\"tasks\":{\"build\":" CACHED("b", "\"src/**\"", "\"dist/**\"",
			"") ",\"test\":" CACHED("t", "\"test/**\"", "", "\"build\"") "}}");
	vxt_write(p->dir, "p/app/package.json",
		"{\"name\":\"app\",\"dependencies\":{\"lib\":\"*\"}}");
	vxt_write(p->dir, "p/app/vx.json",
		"{\"tasks\":{\"build\":" CACHED("b", "\"src/**\"", "\"dist/**\"",
			"\"^build\"") ",\"test\":" CACHED("t", "\"test/**\"", "", "") "}}");
	vxt_write(p->dir, "p/docs/package.json", "{\"name\":\"docs\"}");
	vxt_write(
		p->dir, "p/docs/vx.json", "{\"tasks\":{\"build\":{\"exec\":{\"command\":\"d\"}}}}");
	vxt_write(p->dir, "p/lib/src/l.c", "1");
	vxt_write(p->dir, "p/lib/test/l.c", "1");
	vxt_write(p->dir, "p/app/src/a.c", "1");
	vxt_write(p->dir, "p/docs/x.md", "1");
	vxt_write(p->dir, "package-lock.json", "{}");
	vxt_write(p->dir, ".gitignore", "dist\n");
	git(p, "init -q -b main .");
	git(p, "add -A");
	git(p, "commit -qm one");
	git(p, "checkout -qb work");
	git(p, "commit -qm two --allow-empty");
	assert_int_equal(plan_load(p), 0);
}

/* "id: reason" lines of what --affected leaves of `build test --all`. */
static const char *affected(struct plan *p, const char *base)
{
	static char out[8192];
	static const char *const words[] = {"build", "test"};
	struct vx_select_opts o = {.cwd = ".", .affected = true, .words = {words, 2}};
	struct vx_affected_opts ao = {0};
	size_t n = 0;

	out[0] = '\0';
	memset(&p->err, 0, sizeof p->err);
	p->r = vx_select(&p->ws, &o, &p->a, &p->sel, &p->err);
	if (p->r == 0)
		p->r = vx_affected_narrow(&p->ws, base, &ao, &p->a, &p->sel, &p->err);
	snprintf(p->text, sizeof p->text, "%s (%s)", p->err.what, p->err.fix);
	if (p->r < 0)
		return p->text;
	if (p->sel.nothing)
		return p->sel.nothing;
	for (uint32_t i = 0; i < p->sel.n_tasks; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s#%s: %s", n ? "\n" : "",
			p->ws.projects[p->sel.tasks[i].project].name, p->sel.tasks[i].task,
			p->sel.reasons[i]);
	return out;
}

static void test_by_task(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	assert_string_equal(affected(&p, NULL), "nothing affected since main");
	/* an input of one task: it, and what depends on it */
	vxt_write(p.dir, "p/lib/src/l.c", "2");
	assert_string_equal(affected(&p, NULL),
		"app#build: depends on lib#build: p/lib/src/l.c changed\n"
		"lib#build: p/lib/src/l.c changed\n"
		"lib#test: depends on lib#build: p/lib/src/l.c changed");
	git(&p, "commit -qam three");
	vxt_write(p.dir, "p/lib/test/l.c", "2");
	assert_string_equal(affected(&p, "HEAD"), "lib#test: p/lib/test/l.c changed");
	git(&p, "checkout -q .");
	/* what is in no key, or ignored: nobody; untracked: whoever has it as an input */
	vxt_write(p.dir, "p/app/other.txt", "1");
	vxt_write(p.dir, "p/app/dist/x", "1");
	assert_string_equal(affected(&p, "HEAD"), "nothing affected since HEAD");
	vxt_write(p.dir, "p/app/test/new", "1");
	assert_string_equal(affected(&p, "HEAD"), "app#test: p/app/test/new changed");
	git(&p, "clean -qfd");
	/* a manifest: the whole project, and dependents of its tasks */
	vxt_write(p.dir, "p/lib/package.json", "{\"name\":\"lib\",\"private\":true}");
	assert_string_equal(affected(&p, "HEAD"),
		"app#build: depends on lib#build: p/lib/package.json changed\n"
		"lib#build: p/lib/package.json changed\n"
		"lib#test: p/lib/package.json changed");
	git(&p, "checkout -q .");
	/* no cache: any file of the project */
	vxt_write(p.dir, "p/docs/x.md", "2");
	assert_string_equal(affected(&p, "HEAD"), "docs#build: p/docs/x.md changed");
	/* a lockfile: everything */
	vxt_write(p.dir, "package-lock.json", "{ }");
	assert_int_equal(strncmp(affected(&p, "HEAD"),
				 "app#build: package-lock.json changed\ndocs#build: ", 49),
		0);
	/* deleted is changed */
	git(&p, "checkout -q .");
	git(&p, "rm -q p/app/src/a.c");
	assert_string_equal(affected(&p, "HEAD"), "app#build: p/app/src/a.c changed");
	plan_close(&p);
}

static void test_bases(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	vxt_write(p.dir, "p/docs/x.md", "2");
	git(&p, "commit -qam three");
	vxt_write(p.dir, "p/app/src/a.c", "2");
	git(&p, "commit -qam four");
	/* main moves on: compared is from where we left it */
	git(&p, "checkout -q main");
	vxt_write(p.dir, "p/lib/src/l.c", "9");
	git(&p, "commit -qam main2");
	git(&p, "checkout -q work");
	assert_string_equal(affected(&p, NULL),
		"app#build: p/app/src/a.c changed\ndocs#build: p/docs/x.md changed");
	setenv("TURBO_SCM_BASE", "HEAD~1", 1);
	assert_string_equal(affected(&p, NULL), "app#build: p/app/src/a.c changed");
	p.ws.settings.affected_base = "HEAD~2";
	assert_string_equal(affected(&p, NULL),
		"app#build: p/app/src/a.c changed\ndocs#build: p/docs/x.md changed");
	p.ws.settings.affected_base = NULL;
	unsetenv("TURBO_SCM_BASE");
	/* on main itself the only candidate is HEAD: the commit before */
	git(&p, "checkout -q main");
	assert_string_equal(affected(&p, NULL),
		"app#build: depends on lib#build: p/lib/src/l.c changed\n"
		"lib#build: p/lib/src/l.c changed\n"
		"lib#test: depends on lib#build: p/lib/src/l.c changed");
	affected(&p, "nonsense");
	plan_says(&p, "git knows no revision \"nonsense\"", "git fetch", NULL);
	affected(&p, "--output=/tmp/x");
	plan_says(&p, "git knows no revision \"--output=/tmp/x\"", NULL);
	plan_close(&p);
}

static void test_no_history(void **state)
{
	struct plan p, q;
	char args[1024];

	(void)state;
	repository(&p);
	plan_open(&q);
	snprintf(args, sizeof args, "clone -q --depth 1 'file://%s' .", p.dir);
	git(&q, args);
	assert_int_equal(plan_load(&q), 0);
	affected(&q, NULL);
	plan_says(&q, "shallow clone", "fetch-depth: 0", NULL);
	affected(&q, "main");
	plan_says(&q, "shallow clone", "git fetch --unshallow", NULL);
	plan_close(&q);
	plan_close(&p);

	plan_open(&p);
	vxt_write(p.dir, "package.json", "{\"name\":\"root\"}");
	vxt_write(p.dir, "vx.json",
		"{\"tasks\":{\"build\":{\"exec\":{\"command\":\"b\"}},\"test\":{\"exec\":{\"command\":\"b\"}}}}");
	assert_int_equal(plan_load(&p), 0);
	setenv("GIT_CEILING_DIRECTORIES", "/tmp", 1);
	affected(&p, NULL);
	plan_says(&p, "not in a git repository", NULL);
	unsetenv("GIT_CEILING_DIRECTORIES");
	git(&p, "init -q .");
	git(&p, "add -A");
	git(&p, "commit -qm one");
	git(&p, "branch -m only");
	affected(&p, NULL);
	plan_says(&p, "only one", "--affected=REVISION", NULL);
	plan_close(&p);
}

/* Loads what is there now and asks. */
static const char *now(struct plan *p)
{
	if (plan_load(p) < 0)
		fail_msg("%s", p->text);
	return affected(p, "HEAD");
}

static void test_configurations(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	/* what moves no key selects nothing */
	vxt_write(p.dir, "package.json", "{\"name\":\"root\", \"workspaces\":[\"p/*\"]}\n");
	vxt_write(p.dir, "vx.workspace.json", "{\"concurrency\":\"2\"}");
	assert_string_equal(now(&p), "nothing affected since HEAD");
	vxt_write(p.dir, "p/docs/vx.json",
		"{\"tags\":[\"x\"],\"tasks\":{\"build\":{\"exec\":{\"command\":\"d\"}}}}");
	/* its file is an input, since it has no cache */
	assert_string_equal(now(&p), "docs#build: p/docs/vx.json changed");
	git(&p, "checkout -q .");
	/* one task of a project is another one */
	vxt_write(p.dir, "p/lib/vx.json",
		"{\"tasks\":{\"build\":" CACHED("b", "\"src/**\"", "\"dist/**\"",
			"") ",\"test\":" CACHED("t2", "\"test/**\"", "", "\"build\"") "}}");
	assert_string_equal(now(&p), "lib#test: p/lib/vx.json changed");
	git(&p, "checkout -q .");
	/* a package that comes: what depends on it now; a default that reaches one project */
	vxt_write(p.dir, "p/new/package.json", "{\"name\":\"new\"}");
	vxt_write(p.dir, "p/new/vx.json", "{\"tasks\":{\"build\":" CACHED("n", "", "", "") "}}");
	assert_string_equal(now(&p), "new#build: HEAD does not have it");
	git(&p, "clean -qfd");
	/* a package that goes takes its task out of a key */
	git(&p, "rm -rq p/lib");
	assert_string_equal(now(&p), "app#build: it depends on other tasks");
	git(&p, "reset -q --hard");
	/* the same files, now of a nested project */
	vxt_write(
		p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\",\"p/docs/*\"]}");
	vxt_write(p.dir, "p/docs/in/package.json", "{\"name\":\"in\"}");
	git(&p, "add -A");
	git(&p, "commit -qm in");
	vxt_write(p.dir, "package.json", "{\"name\":\"root\",\"workspaces\":[\"p/*\"]}");
	assert_string_equal(now(&p), "docs#build: p/docs/in/package.json became an input");
	/* what the commit says cannot be understood */
	vxt_write(p.dir, "p/app/vx.json", "{");
	git(&p, "commit -qam broken");
	git(&p, "checkout -q HEAD~1 p/app/vx.json");
	assert_non_null(strstr(
		now(&p), "app#build: its configuration in HEAD cannot be taken: p/app/vx.json"));
	assert_null(strstr(now(&p), "docs#build"));
	vxt_write(p.dir, "package.json", "{");
	git(&p, "commit -qam broken2");
	git(&p, "checkout -q HEAD~1 package.json");
	assert_non_null(strstr(now(&p), "docs#build: the workspace of HEAD cannot be loaded: "));
	plan_close(&p);
}

static void test_probes(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	vxt_write(p.dir, "p/lib/vx.json",
		"{\"tasks\":{\"build\":{\"exec\":{\"command\":\"b\"},\"cache\":{\"inputs\":{\"files\":[],\"runtime\":[\"node --version\"]},"
		"\"outputs\":{\"files\":[]}}},\"test\":{\"exec\":{\"command\":\"b\"},\"cache\":{\"inputs\":{\"files\":[],"
		"\"workspaceRuntime\":[\"./probe.sh\"]},\"outputs\":{\"files\":[]}}}}}");
	git(&p, "add -A");
	git(&p, "commit -qm probes");
	assert_string_equal(now(&p), "nothing affected since HEAD");
	vxt_write(p.dir, "README", "x");
	assert_string_equal(now(&p),
		"lib#test: README changed, and what \"./probe.sh\" tells of it is not known");
	plan_close(&p);
}

/* A task whose key does not fold that of its dependency, but whose inputs it may write. */
static void test_written_upstream(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	vxt_write(p.dir, "p/lib/vx.json",
		"{\"tasks\":{\"build\":" CACHED("b", "\"src/**\"", "\"gen/**\"",
			"") ",\"test\":{\"dependsOn\":[\"build\"],\"exec\":{\"command\":\"t\"},\"cache\":{\"inputs\":{\"files\":[\"test/**\"],\"tasks\":[]},"
			    "\"outputs\":{\"files\":[]}}}}}");
	git(&p, "add -A");
	git(&p, "commit -qm x");
	vxt_write(p.dir, "p/lib/src/l.c", "2");
	assert_string_equal(now(&p), "app#build: depends on lib#build: p/lib/src/l.c changed\n"
				     "lib#build: p/lib/src/l.c changed");
	vxt_write(p.dir, "vx.workspace.json", "{\"rules\":{\"upfrontKeys\":false}}");
	vxt_write(p.dir, "p/lib/vx.json",
		"{\"tasks\":{\"build\":" CACHED("b", "\"src/**\"", "\"gen/**\"",
			"") ",\"test\":{\"dependsOn\":[\"build\"],\"exec\":{\"command\":\"t\"},\"cache\":{\"inputs\":{\"files\":[\"gen/**\"],\"tasks\":[]},"
			    "\"outputs\":{\"files\":[]}}}}}");
	git(&p, "add -A");
	git(&p, "commit -qm y");
	vxt_write(p.dir, "p/lib/src/l.c", "3");
	assert_string_equal(now(&p),
		"app#build: depends on lib#build: p/lib/src/l.c changed\n"
		"lib#build: p/lib/src/l.c changed\n"
		"lib#test: may read what is written by lib#build: p/lib/src/l.c changed");
	plan_close(&p);
}

/* Bytes on disk that are not the blob's. */
static void test_converted(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	vxt_write(p.dir, ".gitattributes", "*.c eol=crlf\n");
	vxt_write(p.dir, "p/app/src/a.c", "1\n2\n");
	git(&p, "add -A");
	git(&p, "commit -qm crlf");
	unlink(vxt_path(p.dir, "p/app/src/a.c"));
	git(&p, "checkout -q p/app/src/a.c");
	/* the index is to prove it */
	git(&p, "update-index -q --refresh && touch -d 2020-01-01 p/app/src/a.c && git update-index -q --refresh");
	vxt_write(p.dir, "README", "x");
	assert_string_equal(now(&p), "nothing affected since HEAD");
	/* the blob's bytes, which a checkout would not have */
	vxt_write(p.dir, "p/app/src/a.c", "1\n2\n");
	assert_string_equal(now(&p),
		"app#build: p/app/src/a.c may have changed: git converts it, and its index proves nothing");
	git(&p, "checkout -q . && touch -d 2020-01-01 p/app/src/a.c && git update-index -q --refresh");
	vxt_write(p.dir, ".gitattributes", "*.c eol=lf\n");
	assert_string_equal(now(&p),
		"app#build: attributes of git changed, which may convert p/app/src/a.c\n"
		"lib#build: attributes of git changed, which may convert p/lib/src/l.c\n"
		"lib#test: attributes of git changed, which may convert p/lib/test/l.c");
	vxt_write(p.dir, ".gitattributes", "*.c eol=crlf\n*.md linguist-documentation\n");
	assert_string_equal(now(&p), "nothing affected since HEAD");
	plan_close(&p);
}

static void expect(struct plan *p, const char *words, const char *want)
{
	if (plan_graph(p, words) != 0)
		fail_msg("%s: %s", words, p->text);
	assert_string_equal(plan_selected(p), want);
}

static void test_ref_filters(void **state)
{
	struct plan p;

	(void)state;
	repository(&p);
	vxt_write(p.dir, "p/lib/src/l.c", "2");
	git(&p, "commit -qam three");
	vxt_write(p.dir, "p/docs/x.md", "2");
	expect(&p, "build --filter=[main]", "docs lib");
	expect(&p, "build --filter=...[main]", "app docs lib");
	expect(&p, "build --filter=[main...HEAD]", "lib");
	expect(&p, "build --filter={p/d*}[main]", "docs");
	expect(&p, "build --filter=app...[main]", "app");
	expect(&p, "build --filter=*...[HEAD~1...HEAD]", "app lib");
	expect(&p, "build --filter=![main]", "app");
	assert_int_equal(plan_graph(&p, "build --filter=app[main]"), 0);
	assert_string_equal(p.sel.nothing, "nothing affected since main");
	plan_graph(&p, "build --filter=[nope]");
	plan_says(&p, "git knows no revision \"nope\"", NULL);
	plan_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_by_task),
		cmocka_unit_test(test_bases),
		cmocka_unit_test(test_no_history),
		cmocka_unit_test(test_configurations),
		cmocka_unit_test(test_probes),
		cmocka_unit_test(test_written_upstream),
		cmocka_unit_test(test_converted),
		cmocka_unit_test(test_ref_filters),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
