/* git's index, ignore rules, attributes and configuration, case by case; and a few rounds of
 * damage. */
#include "../fuzz/keyfuzz.h"

#include "../../sched/git/repository.h"

static struct vx_arena arena;

static int ignored(const char *rules, const char *base, const char *path, bool is_dir)
{
	const char *slash = strrchr(path, '/');
	const struct vx_rules *r = vx_ignore_parse(rules, strlen(rules), base, NULL, &arena);
	return vx_ignore_match(
		r, path, strlen(path), slash ? (size_t)(slash - path) + 1 : 0, is_dir);
}

static void ignore_rules(void **state)
{
	(void)state;
	assert_int_equal(ignored("*.o", "", "a/b.o", false), 1);
	assert_int_equal(ignored("*.o\n!b.o", "", "a/b.o", false), 0);
	assert_int_equal(ignored("!b.o\n*.o", "", "a/b.o", false), 1);
	assert_int_equal(ignored("build/", "", "build", false), -1);
	assert_int_equal(ignored("build/", "", "x/build", true), 1);
	assert_int_equal(ignored("/build", "", "x/build", true), -1);
	assert_int_equal(ignored("a/b", "", "x/a/b", false), -1);
	assert_int_equal(ignored("a/b", "x", "x/a/b", false), 1);
	assert_int_equal(ignored("**/c", "", "a/b/c", false), 1);
	assert_int_equal(ignored("a/**/c", "", "a/c", false), 1);
	assert_int_equal(ignored("a/*/c", "", "a/x/y/c", false), -1);
	assert_int_equal(ignored("a/**", "", "a", true), -1);
	assert_int_equal(ignored("\\#x\n\\!y", "", "#x", false), 1);
	assert_int_equal(ignored("\\#x\n\\!y", "", "!y", false), 1);
	assert_int_equal(ignored("# x", "", "# x", false), -1);
	assert_int_equal(ignored("x   ", "", "x", false), 1);
	assert_int_equal(ignored("x\\ ", "", "x ", false), 1);
	assert_int_equal(ignored("x\r\ny", "", "x", false), 1);
	assert_int_equal(ignored("\xef\xbb\xbfx", "", "x", false), 1);
	assert_int_equal(ignored("[a-c]x", "", "bx", false), 1);
	assert_int_equal(ignored("[!a-c]x", "", "bx", false), -1);
	assert_int_equal(ignored("[[:digit:]]", "", "7", false), 1);
	assert_int_equal(ignored("[a-", "", "a", false), -1);
	assert_int_equal(ignored("a?c", "", "a/c", false), -1);
	assert_int_equal(ignored("", "", "a", false), -1);
}

static void hostile_patterns_end(void **state)
{
	(void)state;
	char pattern[400] = "", text[400];
	for (int i = 0; i < 60; i++)
		strcat(pattern, "**/a*");
	memset(text, 'a', sizeof text - 1);
	for (size_t i = 3; i < sizeof text - 1; i += 4)
		text[i] = '/';
	text[sizeof text - 1] = '\0';
	(void)vx_wildmatch(pattern, text, true);
}

static bool touched(const char *attributes, const char *path)
{
	const char *slash = strrchr(path, '/');
	const struct vx_rules *r = vx_attr_parse(attributes, strlen(attributes), "", NULL, &arena);
	return vx_attr_match(r, path, strlen(path), slash ? (size_t)(slash - path) + 1 : 0);
}

static void attributes(void **state)
{
	(void)state;
	assert_true(touched("* text=auto", "a/b"));
	assert_false(touched("* -text", "a/b"));
	assert_false(touched("*.png binary", "a.png"));
	assert_true(touched("*.sh eol=lf", "x/a.sh"));
	assert_false(touched("*.sh eol=lf", "x/a.c"));
	assert_true(touched("*.md diff ident", "a.md"));
	assert_true(touched("f filter=lfs -text", "f"));
	assert_true(touched("f working-tree-encoding=UTF-16", "f"));
	assert_false(touched("f !text merge=union", "f"));
	assert_false(touched("# * text", "f"));
	assert_true(touched("[attr]mine eol=crlf\nx mine", "y"));
	assert_true(touched("\"sp ace\" text", "whatever"));
}

static void index_versions(void **state)
{
	(void)state;
	for (uint32_t version = 2; version <= 4; version += 2) {
		struct vx_buf b = VX_BUF(1U << 16);
		struct vx_gitindex x;
		char why[200];
		kf_make_index(&b, version, kf_names, VX_ARRAY_LEN(kf_names));
		kf_sum(&b);
		char *raw = malloc(b.len);
		memcpy(raw, b.data, b.len);
		assert_int_equal(
			vx_gitindex_parse(raw, b.len, VX_OID_SHA1, &x, why, sizeof why), 0);
		assert_int_equal(x.n, VX_ARRAY_LEN(kf_names));
		for (uint32_t i = 0; i < x.n; i++)
			assert_string_equal(x.v[i].path, kf_names[i]);
		vx_gitindex_free(&x);
		vx_buf_free(&b);
	}
}

/* The smallest entry there is, and nothing behind it. */
static void index_of_one_short_name(void **state)
{
	static const char *const names[] = {"f"};

	(void)state;
	for (uint32_t version = 2; version <= 4; version += 2) {
		struct vx_buf b = VX_BUF(1U << 16);
		struct vx_gitindex x;
		char why[200];
		kf_make_index(&b, version, names, 1);
		b.len -= 12; /* the extension */
		kf_sum(&b);
		char *raw = malloc(b.len);
		memcpy(raw, b.data, b.len);
		assert_int_equal(
			vx_gitindex_parse(raw, b.len, VX_OID_SHA1, &x, why, sizeof why), 0);
		assert_int_equal(x.n, 1);
		assert_string_equal(x.v[0].path, "f");
		vx_gitindex_free(&x);
		vx_buf_free(&b);
	}
}

static void refuse(
	const char *what, const char *const *names, uint32_t n, const char *extension, int flip)
{
	struct vx_buf b = VX_BUF(1U << 16);
	struct vx_gitindex x;
	char why[200] = "";
	kf_make_index(&b, 2, names, n);
	if (extension) {
		vx_buf_adds(&b, extension);
		kf_be32(&b, 0);
	}
	kf_sum(&b);
	if (flip >= 0)
		b.data[flip] ^= 1;
	char *raw = malloc(b.len);
	memcpy(raw, b.data, b.len);
	assert_int_equal(vx_gitindex_parse(raw, b.len, VX_OID_SHA1, &x, why, sizeof why), 1);
	if (!strstr(why, what))
		fail_msg("\"%s\" is not in \"%s\"", what, why);
	vx_buf_free(&b);
}

static void index_not_understood(void **state)
{
	(void)state;
	refuse("sorted", (const char *const[]){"b", "a"}, 2, NULL, -1);
	refuse("sorted", (const char *const[]){"a", "a"}, 2, NULL, -1);
	refuse("not what git writes", (const char *const[]){"../x"}, 1, NULL, -1);
	refuse("not what git writes", (const char *const[]){"a/.git/x"}, 1, NULL, -1);
	refuse("not what git writes", (const char *const[]){"/x"}, 1, NULL, -1);
	refuse("split", kf_names, 2, "link", -1);
	refuse("sparse", kf_names, 2, "sdir", -1);
	refuse("extension", kf_names, 2, "zzzz", -1);
	refuse("checksum", kf_names, 2, NULL, 60);
	refuse("header", kf_names, 2, NULL, 0);
}

struct found {
	char text[512];
};

static int note(void *arg, const char *name, const char *value)
{
	struct found *f = arg;
	snprintf(f->text + strlen(f->text), sizeof f->text - strlen(f->text), "%s=%s|", name,
		value ? value : "(none)");
	return 0;
}

static void config_syntax(void **state)
{
	(void)state;
	struct found f = {""};
	const char *text =
		"[Core]\n\tExcludesFile = \"a b\" c # no\n  bare\n[a \"X.\\\"y\"] K = one\\\n two ; x\n\t[sec.sub]k=\"#\\t\\\\\"\r\n";
	assert_int_equal(vx_gitconf_parse(text, strlen(text), note, &f), 0);
	assert_string_equal(f.text,
		"core.excludesfile=a b c|core.bare=(none)|a.X.\"y.k=one two|sec.sub.k=#\t\\|");
	assert_int_equal(vx_gitconf_parse("[a", 2, note, &f), -EINVAL);
	assert_int_equal(vx_gitconf_parse("x=1", 3, note, &f), -EINVAL);
	assert_int_equal(vx_gitconf_bool("Yes"), 1);
	assert_int_equal(vx_gitconf_bool(""), 0);
	assert_int_equal(vx_gitconf_bool("2"), 1);
	assert_int_equal(vx_gitconf_bool("input"), -1);
}

static void repositories(void **state)
{
	(void)state;
	char *d = vxt_tmpdir(), cmd[2048], why[200] = "";
	struct vx_gitrepo r;
	setenv("GIT_CONFIG_NOSYSTEM", "1", 1);
	setenv("GIT_CONFIG_GLOBAL", vxt_path(d, "global"), 1);
	vxt_write(d, "global",
		"[core]\n\texcludesFile = /from/global\n[includeIf \"gitdir:**/repo/.git\"]\n\tpath = inc\n[includeIf \"gitdir:/nowhere/\"]\n\tpath = never\n");
	vxt_write(d, "inc", "[core]\n\ttrustctime = false\n");
	vxt_write(d, "never", "[core]\n\tfileMode = false\n");
	snprintf(cmd, sizeof cmd,
		"cd '%s' && exec >/dev/null 2>&1; git init -q repo && cd repo && git -c user.name=n -c user.email=e commit -q --allow-empty -m x && git worktree add -q ../wt && mkdir -p sub/deep bad/.git && echo junk >../file",
		d);
	assert_int_equal(vxt_sh(cmd, NULL), 0);
	assert_int_equal(
		vx_gitrepo_find(vxt_path(d, "repo/sub/deep"), &arena, &r, why, sizeof why), 0);
	assert_string_equal(r.worktree, vxt_path(d, "repo"));
	assert_string_equal(r.excludes, "/from/global");
	assert_true(r.weak_stat && r.trust_exec && r.kind == VX_OID_SHA1);
	assert_int_equal(vx_gitrepo_find(vxt_path(d, "wt"), &arena, &r, why, sizeof why), 0);
	assert_string_equal(r.commondir, vxt_path(d, "repo/.git"));
	assert_true(strstr(r.gitdir, "/worktrees/wt") != NULL && !r.weak_stat);
	assert_false(vx_gitrepo_is(vxt_path(d, "repo/bad")));
	assert_true(vx_gitrepo_is(vxt_path(d, "wt")));
	assert_int_equal(
		vx_gitrepo_at(vxt_path(d, "repo/sub"), d, &arena, &r, why, sizeof why), -ENOENT);
	vxt_write(d, "global", "[includeIf \"hasconfig:remote.*.url:x\"]\n\tpath = never\n");
	assert_int_equal(vx_gitrepo_find(vxt_path(d, "repo"), &arena, &r, why, sizeof why), 1);
	assert_non_null(strstr(why, "only git can judge"));
	vxt_write(d, "global", "[core\n");
	assert_int_equal(vx_gitrepo_find(vxt_path(d, "repo"), &arena, &r, why, sizeof why), 1);
	vxt_write(d, "global", "[core]\n\tignoreCase = true\n");
	assert_int_equal(vx_gitrepo_find(vxt_path(d, "wt"), &arena, &r, why, sizeof why), 1);
	vxt_write(d, "global", "");
	setenv("GIT_DIR", "x", 1);
	assert_int_equal(vx_gitrepo_find(vxt_path(d, "repo"), &arena, &r, why, sizeof why), 1);
	assert_string_equal(why, "GIT_DIR is set");
	unsetenv("GIT_DIR");
	vxt_rm(d);
}

static void damage(void **state)
{
	(void)state;
	kf_rounds(1, 3000);
}

static int teardown(void **state)
{
	(void)state;
	vx_arena_free(&arena);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ignore_rules),
		cmocka_unit_test(hostile_patterns_end),
		cmocka_unit_test(attributes),
		cmocka_unit_test(index_versions),
		cmocka_unit_test(index_of_one_short_name),
		cmocka_unit_test(index_not_understood),
		cmocka_unit_test(config_syntax),
		cmocka_unit_test(repositories),
		cmocka_unit_test(damage),
	};
	return cmocka_run_group_tests_name("key_parsers", tests, NULL, teardown);
}
