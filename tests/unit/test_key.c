/* Keys: the input set, every part of a key. */
#include "keytest.h"

#include <errno.h>

static void input_set(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "packages/a/src/x.c", "1");
	vxt_write(t.dir, "packages/a/src/gen/y.c", "1");
	vxt_write(t.dir, "packages/a/README", "1");
	vxt_write(t.dir, "packages/a/dist/out", "1");
	vxt_write(t.dir, "packages/a/debug.log", "1");
	vxt_write(t.dir, "packages/a/node_modules/m/tracked.js", "1");
	vxt_write(t.dir, "packages/a/inner/src/z.c", "1");
	vxt_write(t.dir, "packages/ab/src/x.c", "1");
	vxt_write(t.dir, "base.json", "1");
	vxt_write(t.dir, ".vx/cache/x", "1");
	vxt_write(t.dir, "store/x", "1");
	vxt_write(t.dir, "gone.txt", "1");
	vxt_write(t.dir, ".gitignore", "*.log\n");
	kt_sh(&t,
		"git add -f packages/a/node_modules packages/a/src gone.txt && git commit -qm x && rm gone.txt && ln -s x.c packages/a/src/link");
	vxt_write(t.dir, "packages/a/node_modules/m/untracked.js", "1");
	uint32_t a = kt_project(&t, "a", "packages/a", "packages/a/inner"),
		 in = kt_project(&t, "in", "packages/a/inner", ""),
		 root = kt_project(&t, "r", ".", "packages/a packages/a/inner packages/ab");
	kt_task(&t, a, "all", "**", "dist/**", "");
	kt_task(&t, a, "src", "src/** !src/gen", "dist/**", "");
	kt_task(&t, in, "z", "src", "", "");
	kt_task(&t, a, "ws", "README", "", "")->cache.workspace_files =
		kt_list(&t, "base.json packages/*/src/x.c missing.json");
	kt_task(&t, root, "root", "**", "", "");
	kt_task(&t, a, "uncached", NULL, NULL, "");
	t.o.cache_dir = vx_arena_printf(&t.a, "%s/store", t.dir);
	struct vx_keyer *k = kt_keyer(&t);
	assert_string_equal(kt_paths(kt_compute(k, 0)),
		"packages/a/README packages/a/node_modules/m/tracked.js packages/a/src/gen/y.c packages/a/src/link packages/a/src/x.c");
	assert_string_equal(kt_paths(kt_compute(k, 1)), "packages/a/src/link packages/a/src/x.c");
	assert_string_equal(kt_paths(kt_compute(k, 2)), "packages/a/inner/src/z.c");
	const struct vx_key_record *r = kt_compute(k, 3);
	assert_string_equal(
		kt_paths(r), "base.json packages/a/README packages/a/src/x.c packages/ab/src/x.c");
	assert_int_equal(r->empty_globs.n, 1);
	assert_string_equal(r->empty_globs.v[0], "missing.json");
	assert_string_equal(kt_paths(kt_compute(k, 4)), ".gitignore base.json");
	assert_string_equal(kt_paths(kt_compute(k, 5)),
		"packages/a/README packages/a/dist/out packages/a/node_modules/m/tracked.js packages/a/src/gen/y.c packages/a/src/link packages/a/src/x.c");
	assert_true(vx_keyer_tracked(k, "gone.txt"));
	assert_true(vx_keyer_tracked(k, "packages/a/src/x.c"));
	assert_false(vx_keyer_tracked(k, "packages/a/README"));
	vx_keyer_free(k);
	kt_close(&t);
}

static void identities_are_gits(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/f", "hello\n");
	vxt_write(t.dir, "a/x.sh", "hello\n");
	kt_sh(&t,
		"chmod +x a/x.sh && ln -s f a/l && printf 'a\\r\\n' >a/crlf && echo '* text=auto' >.gitattributes && git add . && git commit -qm x && echo more >>a/x.sh");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "**", "", "");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = kt_compute(k, 0);
	assert_int_equal(r->n_inputs, 4);
	static const char *const names[] = {"a/crlf", "a/f", "a/l", "a/x.sh"};
	static const uint32_t modes[] = {0100644, 0100644, 0120000, 0100755};
	for (int i = 0; i < 4; i++) {
		char cmd[512], hex[65];
		const char *out;
		snprintf(cmd, sizeof cmd,
			i == 2 ? "cd '%s' && printf f | git hash-object --stdin"
			       : "cd '%s' && git hash-object --no-filters %s",
			t.dir, names[i]);
		assert_int_equal(vxt_sh(cmd, &out), 0);
		vx_hex(r->inputs[i].oid.b, r->inputs[i].oid.n, hex);
		assert_string_equal(r->inputs[i].path, names[i]);
		assert_memory_equal(hex, out, 40);
		assert_int_equal(r->inputs[i].mode, modes[i]);
	}
	vx_keyer_free(k);
	kt_close(&t);
}

static void sha256_repository(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	kt_sh(&t,
		"rm -rf .git && git init -q --object-format=sha256 . && mkdir a && echo hi >a/f && git add a");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "f", "", "");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = kt_compute(k, 0);
	char cmd[512], hex[65];
	const char *out;
	snprintf(cmd, sizeof cmd, "cd '%s' && git hash-object a/f", t.dir);
	assert_int_equal(vxt_sh(cmd, &out), 0);
	assert_int_equal(r->inputs[0].oid.n, 32);
	vx_hex(r->inputs[0].oid.b, 32, hex);
	assert_memory_equal(hex, out, 64);
	vx_keyer_free(k);
	kt_close(&t);
}

/* Every thing that must change a key does, and what must not does not. */
static void every_part_counts(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/src/f", "1");
	vxt_write(t.dir, "a/package.json", "{}");
	vxt_write(t.dir, "b/f", "1");
	kt_sh(&t, "git add .");
	kt_project(&t, "a", "a", "");
	kt_project(&t, "b", "b", "");
	kt_task(&t, 1, "up", "f", "", "");
	struct vx_task_decl *d = kt_task(&t, 0, "t", "src/**", "", "0");
	d->cache.env = kt_list(&t, "VXT_A VXT_B");
	d->cache.runtime = kt_list(&t, "./probe.sh");
	d->cache.workspace_runtime = kt_list(&t, "pwd");
	vxt_write(t.dir, "a/probe.sh", "#!/bin/sh\ncat version; echo e >&2\n");
	vxt_write(t.dir, "a/version", "1\n");
	kt_sh(&t, "chmod +x a/probe.sh");
	t.tasks[1].requested = true;
	unsetenv("VXT_A");
	setenv("VXT_B", "x", 1);
	struct vx_digest base = kt_key(&t, 1), now;
	assert_true(kt_same(base, kt_key(&t, 1)));
#define CHANGES(undo, ...)                                 \
	do {                                               \
		__VA_ARGS__;                               \
		now = kt_key(&t, 1);                       \
		assert_false(kt_same(base, now));          \
		undo;                                      \
		assert_true(kt_same(base, kt_key(&t, 1))); \
	} while (0)
	CHANGES(vxt_write(t.dir, "a/src/f", "1"), vxt_write(t.dir, "a/src/f", "2"));
	CHANGES(kt_sh(&t, "chmod -x a/src/f"), kt_sh(&t, "chmod +x a/src/f"));
	CHANGES(kt_sh(&t, "rm a/src/new"), vxt_write(t.dir, "a/src/new", ""));
	CHANGES(vxt_write(t.dir, "a/src/f", "1"), kt_sh(&t, "rm a/src/f"));
	CHANGES(vxt_write(t.dir, "a/package.json", "{}"),
		vxt_write(t.dir, "a/package.json", "{ }"));
	CHANGES(vxt_write(t.dir, "a/package.json", "{}"), kt_sh(&t, "rm a/package.json"));
	vxt_write(t.dir, "shared.json", "{}");
	kt_sh(&t, "ln -sf ../shared.json a/package.json");
	base = kt_key(&t, 1);
	CHANGES(vxt_write(t.dir, "shared.json", "{}"), vxt_write(t.dir, "shared.json", "{ }"));
	CHANGES(vxt_write(t.dir, "shared.json", "{}"), kt_sh(&t, "rm shared.json"));
	kt_sh(&t, "rm a/package.json");
	vxt_write(t.dir, "a/package.json", "{}");
	base = kt_key(&t, 1);
	CHANGES(vxt_write(t.dir, "b/f", "1"), vxt_write(t.dir, "b/f", "3"));
	CHANGES(unsetenv("VXT_A"), setenv("VXT_A", "", 1));
	CHANGES(setenv("VXT_B", "x", 1), setenv("VXT_B", "y", 1));
	CHANGES(vxt_write(t.dir, "a/version", "1\n"), vxt_write(t.dir, "a/version", "2\n"));
	CHANGES(kt_sh(&t, "rm yarn.lock"), vxt_write(t.dir, "yarn.lock", ""));
	CHANGES(kt_sh(&t, "rm .npmrc"), vxt_write(t.dir, ".npmrc", "x"));
	CHANGES(d->canonical = "{\"name\":\"t\"}", d->canonical = "{\"name\":\"T\"}");
	CHANGES(t.o.forwarded.n = 0, t.o.forwarded = kt_list(&t, "--fix"));
	CHANGES(t.tasks[1].id = "a#t", t.tasks[1].id = "a#t2");
	kt_sh(&t, "touch a/src/f && echo 1 >unrelated && git add . && git commit -qm x");
	assert_true(kt_same(base, kt_key(&t, 1)));
	t.tasks[1].requested = false;
	t.o.forwarded = kt_list(&t, "--fix");
	struct vx_digest not_requested = kt_key(&t, 1);
	t.o.forwarded.n = 0;
	assert_true(kt_same(not_requested, kt_key(&t, 1)));
	unsetenv("VXT_B");
	kt_close(&t);
}

static void upstream_order_does_not_count(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/f", "1");
	vxt_write(t.dir, "b/f", "2");
	kt_project(&t, "a", "a", "");
	kt_project(&t, "b", "b", "");
	kt_task(&t, 0, "u", "f", "", "");
	kt_task(&t, 1, "u", "f", "", "");
	kt_task(&t, 0, "g", "f", "", "01");
	struct vx_digest x = kt_key(&t, 2);
	t.tasks[2].key_deps = (const uint32_t[]){1, 0};
	assert_true(kt_same(x, kt_key(&t, 2)));
	t.tasks[2].n_key_deps = 1;
	assert_false(kt_same(x, kt_key(&t, 2)));
	kt_close(&t);
}

static void failing_probe(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/f", "1");
	kt_project(&t, "a", "a", "");
	struct vx_task_decl *d = kt_task(&t, 0, "t", "f", "", "");
	kt_task(&t, 0, "t2", "f", "", "")->cache.workspace_runtime =
		(struct vx_strs){(const char *const[]){"echo once >>count; echo v"}, 1};
	kt_task(&t, 0, "t3", "f", "", "")->cache.workspace_runtime =
		(struct vx_strs){(const char *const[]){"echo once >>count; echo v"}, 1};
	d->cache.runtime = (struct vx_strs){(const char *const[]){"echo broken >&2; exit 3"}, 1};
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r = NULL;
	struct vx_err err = {0};
	assert_int_equal(vx_key_compute(k, 0, &r, &err), -ECHILD);
	assert_null(r);
	assert_null(vx_key_get(k, 0));
	assert_string_equal(
		err.what, "a#t: runtime input \"echo broken >&2; exit 3\" exited with 3: broken");
	assert_true(kt_compute(k, 1)->folds_runtime);
	kt_compute(k, 2);
	struct vx_keyer_stats st;
	vx_keyer_stats(k, &st);
	assert_int_equal(st.probes, 2);
	vx_keyer_free(k);
	int p[2];
	assert_int_equal(vx_pipe(p), 0);
	assert_int_equal(vx_write_full(p[1], "x", 1), 0); /* readable: the run is being cancelled */
	t.o.cancel_fd = p[0];
	d->cache.runtime = (struct vx_strs){(const char *const[]){"sleep 100"}, 1};
	k = kt_keyer(&t);
	assert_int_equal(vx_key_compute(k, 0, &r, &err), -ECANCELED);
	vx_keyer_free(k);
	vx_close(p[0]);
	vx_close(p[1]);
	kt_close(&t);
}

static void literal_that_git_ignores(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, ".gitignore", "dist/\n*.log\n");
	vxt_write(t.dir, "a/dist/x", "1");
	vxt_write(t.dir, "a/x.log", "1");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "x.log", "", "");
	kt_task(&t, 0, "dir", "dist", "", "");
	kt_task(&t, 0, "glob", "*.log", "", "");
	kt_task(&t, 0, "none", "nothing-there", "", "");
	struct vx_keyer *k = kt_keyer(&t);
	const struct vx_key_record *r;
	struct vx_err err = {0};
	assert_int_equal(vx_key_compute(k, 0, &r, &err), -EINVAL);
	assert_non_null(strstr(err.what, "a#t: cache.inputs names \"x.log\", which git ignores"));
	assert_true(err.fix[0]);
	assert_int_equal(vx_key_compute(k, 1, &r, NULL), -EINVAL);
	assert_int_equal(kt_compute(k, 2)->empty_globs.n, 1);
	assert_int_equal(kt_compute(k, 3)->empty_globs.n, 1);
	vx_keyer_free(k);
	kt_sh(&t, "git add -f a/x.log");
	k = kt_keyer(&t);
	assert_string_equal(kt_paths(kt_compute(k, 0)), "a/x.log");
	vx_keyer_free(k);
	kt_close(&t);
}

static void not_a_repository(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	kt_sh(&t, "rm -rf .git");
	struct vx_keyer *k = NULL;
	struct vx_err err = {0};
	assert_int_equal(vx_keyer_new(&t.ws, &t.g, &t.o, &k, &err), -ENOENT);
	assert_null(k);
	assert_non_null(strstr(err.what, "is not in a git repository"));
	assert_non_null(strstr(err.fix, "git init"));
	kt_close(&t);
}

static void why_entries_are_empty(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, ".gitignore", "*.log\n");
	vxt_write(t.dir, "a/src/x", "1");
	vxt_write(t.dir, "a/src/x.log", "1");
	vxt_write(t.dir, "a/dist/x", "1");
	vxt_write(t.dir, "a/in/y.html", "1");
	kt_project(&t, "a", "a", "a/in");
	kt_project(&t, "in", "a/in", "");
	kt_task(&t, 0, "t", "scr/** src/*.log dist/* src/x !src/x **/*.html", "dist/**", "")
		->cache.workspace_files = kt_list(&t, "b/**");
	struct vx_keyer *k = kt_keyer(&t);
	assert_int_equal(kt_compute(k, 0)->empty_globs.n, 6);
	assert_int_equal(vx_key_why_empty(k, 0, false, "scr/**"), VX_EMPTY_NOTHING);
	assert_int_equal(vx_key_why_empty(k, 0, false, "src/*.log"), VX_EMPTY_IGNORED);
	assert_int_equal(vx_key_why_empty(k, 0, false, "dist/*"), VX_EMPTY_MEANT);
	assert_int_equal(vx_key_why_empty(k, 0, false, "src/x"), VX_EMPTY_MEANT);
	/* another project's */
	assert_int_equal(vx_key_why_empty(k, 0, false, "**/*.html"), VX_EMPTY_NOTHING);
	assert_int_equal(vx_key_why_empty(k, 0, true, "b/**"), VX_EMPTY_NOTHING);
	vx_keyer_free(k);
	kt_close(&t);
}

static void nested_repositories(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	kt_sh(&t,
		"git init -q a/sub && echo 1 >a/sub/f && echo '*.o' >a/sub/.gitignore && touch a/sub/x.o && git -C a/sub add f"
		" && git init -q a/sub/deep && echo 1 >a/sub/deep/g && mkdir a/fake && mkdir a/fake/.git && echo 1 >a/fake/h && echo 1 >a/e");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "**", "", "");
	struct vx_keyer *k = kt_keyer(&t);
	assert_string_equal(
		kt_paths(kt_compute(k, 0)), "a/e a/fake/h a/sub/.gitignore a/sub/deep/g a/sub/f");
	vx_keyer_free(k);
	kt_close(&t);
}

/* Untracked node_modules are no input, whatever stands in them; a submodule there is tracked, but
 * what it does not track is not. */
static void repositories_in_node_modules(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	kt_sh(&t,
		"mkdir -p a && git init -q a/node_modules/m && cd a/node_modules/m && echo 1 >f && git add f && git -c user.name=n -c user.email=e commit -qm x"
		" && echo 1 >new && cd ../../.. && git add a/node_modules/m 2>/dev/null && git init -q a/x/node_modules && echo 1 >a/x/node_modules/g && git -C a/x/node_modules add g");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "**", "", "");
	for (int git = 0; git < 2; git++) {
		if (git)
			setenv("VX_FILES", "git", 1);
		struct vx_keyer *k = kt_keyer(&t);
		assert_string_equal(kt_paths(kt_compute(k, 0)), "a/node_modules/m/f");
		vx_keyer_free(k);
	}
	unsetenv("VX_FILES");
	kt_close(&t);
}

static void odd_names_and_modes(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	kt_sh(&t,
		"mkdir a && touch 'a/new\nline' \"a/$(printf '\\377')\" 'a/ sp' && git add 'a/ sp' && ln -s missing a/dangling && mkfifo a/pipe");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "t", "**", "", "");
	struct vx_keyer *k = kt_keyer(&t);
	assert_string_equal(kt_paths(kt_compute(k, 0)), "a/ sp a/dangling a/new\nline a/\xff");
	vx_keyer_free(k);
	kt_close(&t);
}

static void explain(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, "a/f", "1");
	vxt_write(t.dir, "yarn.lock", "y");
	kt_project(&t, "a", "a", "");
	kt_task(&t, 0, "u", "f", "", "");
	struct vx_task_decl *d = kt_task(&t, 0, "t", "f", "", "0");
	d->cache.env = kt_list(&t, "VXT_SECRET VXT_UNSET VXT_EMPTY");
	d->exec.secret = kt_list(&t, "VXT_SECRET");
	d->cache.workspace_runtime = kt_list(&t, "pwd");
	setenv("VXT_SECRET", "hunter2", 1);
	setenv("VXT_EMPTY", "", 1);
	struct vx_digest plain = kt_key(&t, 1);
	t.o.explain = true;
	t.o.mask_key = (const uint8_t *)"0123456789abcdef0123456789abcdef";
	struct vx_keyer *k = kt_keyer(&t);
	kt_compute(k, 0);
	const struct vx_key_record *r = kt_compute(k, 1);
	assert_true(kt_same(plain, r->key));
	char text[4096] = "";
	for (uint32_t i = 0; i < r->n_parts; i++) {
		assert_null(strstr(r->parts[i].value, "hunter2"));
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s;", r->parts[i].label);
		if (strcmp(r->parts[i].label, "env:VXT_SECRET") == 0)
			assert_true(strncmp(r->parts[i].value, "sha256:", 7) == 0 &&
				    strlen(r->parts[i].value) == 71);
		if (strcmp(r->parts[i].label, "env:VXT_EMPTY") == 0)
			assert_string_equal(r->parts[i].value, "=");
		if (strcmp(r->parts[i].label, "env:VXT_UNSET") == 0)
			assert_string_equal(r->parts[i].value, "");
	}
	assert_string_equal(text,
		"version;platform;task;fingerprint:yarn.lock;package.json;config;env:VXT_EMPTY;env:VXT_SECRET;env:VXT_UNSET;workspaceRuntime;stdout;stderr;upstream:a#u;");
	vx_keyer_free(k);
	unsetenv("VXT_SECRET");
	unsetenv("VXT_EMPTY");
	kt_close(&t);
}

static void turbo_inputs(void **state)
{
	(void)state;
	struct kt t;
	kt_open(&t);
	vxt_write(t.dir, ".gitignore", "dist/\n.env\n");
	vxt_write(t.dir, "a/src/f", "1");
	vxt_write(t.dir, "a/README.md", "1");
	vxt_write(t.dir, "a/dist/x", "1");
	vxt_write(t.dir, "a/.env", "1");
	vxt_write(t.dir, "a/in/g", "1");
	vxt_write(t.dir, "shared/x.json", "1");
	vxt_write(t.dir, ".env", "1");
	kt_project(&t, "a", "a", "a/in");
	t.ws.settings.turbo = true;
	struct vx_task_decl *d = kt_task(&t, 0, "default", "!README.md", "dist/**", "");
	d->dialect = VX_DIALECT_TURBO;
	d->cache.default_inputs = true;
	kt_task(&t, 0, "given", "src/** .env ../shared/*.json", "dist/**", "")->dialect =
		VX_DIALECT_TURBO;
	/* what is named counts, ignored or not, beside $TURBO_DEFAULT$ too; a tracked output always
	 * does */
	d = kt_task(&t, 0, "both", ".env ../.env dist/y !README.md", "gen/**", "");
	d->dialect = VX_DIALECT_TURBO;
	d->cache.default_inputs = true;
	d = kt_task(&t, 0, "root", "", "gen/** !gen/no", "");
	d->dialect = VX_DIALECT_TURBO;
	d->cache.workspace_files = kt_list(&t, ".env");
	vxt_write(t.dir, "a/gen/tracked", "1");
	vxt_write(t.dir, "a/gen/no", "1");
	vxt_write(t.dir, "a/dist/y", "1");
	kt_sh(&t, "git add a/gen");
	vxt_write(t.dir, "a/gen/untracked", "1");
	struct vx_keyer *k = kt_keyer(&t);
	char moved[128];
	assert_string_equal(kt_paths(kt_compute(k, 0)),
		"a/gen/no a/gen/tracked a/gen/untracked a/in/g a/src/f");
	assert_string_equal(kt_paths(kt_compute(k, 1)), "a/.env a/src/f shared/x.json");
	assert_string_equal(kt_paths(kt_compute(k, 2)),
		".env a/.env a/dist/y a/gen/no a/gen/tracked a/in/g a/src/f");
	assert_string_equal(kt_paths(kt_compute(k, 3)), ".env a/gen/tracked");
	const struct vx_key_record *both = vx_key_get(k, 2), *only = vx_key_get(k, 3);
	for (uint32_t i = 0; i < 4; i++)
		assert_int_equal(vx_key_recheck(k, vx_key_get(k, i), moved, sizeof moved), 0);
	vxt_write(t.dir, "a/gen/tracked", "2");
	assert_int_equal(vx_key_recheck(k, only, moved, sizeof moved), 1);
	assert_string_equal(moved, "a/gen/tracked");
	vxt_write(t.dir, ".env", "2");
	assert_int_equal(vx_key_recheck(k, both, moved, sizeof moved), 1);
	assert_string_equal(moved, ".env");
	vx_keyer_free(k);
	kt_close(&t);
}

static void turbo_globals(void **state)
{
	(void)state;
	struct kt t;
	char moved[128];
	kt_open(&t);
	vxt_write(t.dir, ".gitignore", ".env\n");
	vxt_write(t.dir, "a/src/f", "1");
	vxt_write(t.dir, "shared/x.json", "1");
	vxt_write(t.dir, ".env", "1");
	kt_project(&t, "a", "a", "");
	t.ws.settings.turbo = true;
	struct vx_task_decl *d = kt_task(&t, 0, "default", "", "dist/**", "");
	d->dialect = VX_DIALECT_TURBO;
	d->cache.default_inputs = true;
	struct vx_digest base = kt_key(&t, 0);
	t.ws.settings.global_files = kt_list(&t, ".env");
	struct vx_digest with = kt_key(&t, 0);
	assert_false(kt_same(base, with));
	vxt_write(t.dir, ".env", "3");
	assert_false(kt_same(with, kt_key(&t, 0)));
	/* a file that came after the key was taken is seen too */
	t.ws.settings.global_files = kt_list(&t, ".env **/*.global");
	struct vx_keyer *k = kt_keyer(&t);
	assert_int_equal(vx_key_recheck(k, kt_compute(k, 0), moved, sizeof moved), 0);
	usleep(100000); /* longer than the answer is kept */
	vxt_write(t.dir, "shared/x.global", "1");
	assert_int_equal(vx_key_recheck(k, kt_compute(k, 0), moved, sizeof moved), 1);
	assert_string_equal(moved, "shared/x.global");
	vx_keyer_free(k);
	t.ws.settings.global_files = kt_list(&t, ".env");
	t.ws.settings.global_env = kt_list(&t, "VXT_* !VXT_NOT");
	with = kt_key(&t, 0);
	setenv("VXT_NOT", "1", 1);
	assert_true(kt_same(with, kt_key(&t, 0)));
	setenv("VXT_YES", "1", 1);
	assert_false(kt_same(with, kt_key(&t, 0)));
	unsetenv("VXT_NOT");
	unsetenv("VXT_YES");
	kt_close(&t);
}

static void env_select(void **state)
{
	(void)state;
	struct kt t;
	memset(&t, 0, sizeof t);
	const char *const env[] = {"B_X=1", "A=2", "B_Y=3", "AB=4", "*=5", "junk", NULL};
	struct vx_strs r =
		vx_env_select(kt_list(&t, "A B_* !B_Y NONE"), env, VX_DIALECT_TURBO, &t.a);
	assert_int_equal(r.n, 2);
	assert_string_equal(r.v[0], "A=2");
	assert_string_equal(r.v[1], "B_X=1");
	r = vx_env_select(kt_list(&t, "B_* AB"), env, VX_DIALECT_VX, &t.a);
	assert_int_equal(r.n, 1);
	r = vx_env_select(kt_list(&t, "\\*"), env, VX_DIALECT_TURBO, &t.a);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.v[0], "*=5");
	assert_int_equal(vx_env_select((struct vx_strs){0}, env, VX_DIALECT_VX, &t.a).n, 0);
	vx_arena_free(&t.a);
}

int main(int argc, char **argv)
{
	vxt_keeper(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(input_set),
		cmocka_unit_test(identities_are_gits),
		cmocka_unit_test(sha256_repository),
		cmocka_unit_test(every_part_counts),
		cmocka_unit_test(upstream_order_does_not_count),
		cmocka_unit_test(failing_probe),
		cmocka_unit_test(literal_that_git_ignores),
		cmocka_unit_test(not_a_repository),
		cmocka_unit_test(why_entries_are_empty),
		cmocka_unit_test(nested_repositories),
		cmocka_unit_test(repositories_in_node_modules),
		cmocka_unit_test(odd_names_and_modes),
		cmocka_unit_test(explain),
		cmocka_unit_test(turbo_inputs),
		cmocka_unit_test(turbo_globals),
		cmocka_unit_test(env_select),
	};
	setenv("GIT_CONFIG_GLOBAL", "/dev/null", 1);
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	return cmocka_run_group_tests_name("key", tests, NULL, NULL);
}
