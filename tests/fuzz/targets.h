/* The parsers that read a repository's files, each as one function of some bytes: index, ignore,
 * globs, semver, jsonc, yaml.
 *
 * Each is used twice. libFuzzer drives it (libfuzzer.sh: clang, 60 s each, in make check-slow),
 * starting from the seeds in corpus/NAME; and make check replays those seeds, among them what the
 * fuzzer once found, through the same function (tests/unit/test_fuzz_corpus.c). What must hold is
 * asserted inside: no crash, no report of a sanitizer, and what the parsers promise. Input is
 * handed over in blocks of exactly its size, so that a read beyond is seen. */
#ifndef FUZZ_TARGETS_H
#define FUZZ_TARGETS_H

#include "keyfuzz.h"
#include "planfuzz.h"

#include "vx/json.h"

#define FUZZ_CHECK(x) ((x) ? (void)0 : fuzz_broken(#x, __LINE__))

__attribute__((noreturn)) static void fuzz_broken(const char *what, int line)
{
	fprintf(stderr, "# targets.h:%d: does not hold: %s\n", line, what);
	abort();
}

/* Text with its NUL; the two lines of it, the second "" when there is none. */
static char *fuzz_text(const uint8_t *data, size_t size, char **ret_rest)
{
	char *text = malloc(size + 1);
	FUZZ_CHECK(text);
	if (size)
		memcpy(text, data, size);
	text[size] = '\0';
	char *nl = ret_rest ? strchr(text, '\n') : NULL;
	if (nl)
		*nl = '\0';
	if (ret_rest)
		*ret_rest = nl ? nl + 1 : text + strlen(text);
	return text;
}

/* The first byte: SHA-1 or SHA-256, and whether the checksum is made to fit, without which nothing
 * gets far. */
static void fuzz_index(const uint8_t *data, size_t size)
{
	struct vx_gitindex x;
	struct vx_buf b = VX_BUF(1U << 24);
	char why[200] = "";
	if (!size)
		return;
	bool long_ids = data[0] & 1, fit = data[0] & 2;
	vx_buf_add(&b, (const char *)data + 1, size - 1);
	if (fit && !long_ids) {
		kf_sum(&b);
	} else if (fit) {
		struct vx_digest d;
		vx_sha256_of(vx_buf_str(&b), b.len, &d);
		vx_buf_add(&b, d.b, sizeof d.b);
	}
	char *raw = malloc(b.len ? b.len : 1);
	FUZZ_CHECK(raw);
	memcpy(raw, vx_buf_str(&b), b.len);
	int r = vx_gitindex_parse(
		raw, b.len, long_ids ? VX_OID_SHA256 : VX_OID_SHA1, &x, why, sizeof why);
	FUZZ_CHECK(r == 0 || (r == 1 && why[0]));
	for (uint32_t i = 0; r == 0 && i < x.n; i++) {
		struct stat st = {.st_mode = S_IFREG | 0644};
		struct vx_oid oid;
		FUZZ_CHECK(strlen(x.v[i].path) == x.v[i].len && x.v[i].len > 0);
		FUZZ_CHECK(!i || strcmp(x.v[i - 1].path, x.v[i].path) < 0);
		FUZZ_CHECK(vx_gitindex_lower(&x, 0, x.n, x.v[i].path, x.v[i].len) == i);
		(void)vx_gitindex_clean(&x, &x.v[i], &st, true);
		vx_gitindex_oid(&x, &x.v[i], &oid);
		FUZZ_CHECK(oid.n == (long_ids ? 32 : 20));
	}
	if (r == 0)
		vx_gitindex_free(&x);
	vx_buf_free(&b);
}

/* A path, then an ignore file; the same text as attributes and as a configuration file. */
static void fuzz_ignore(const uint8_t *data, size_t size)
{
	struct vx_arena a = {0};
	char *rules, *path = fuzz_text(data, size, &rules);
	size_t n = size - (size_t)(rules - path), len = strlen(path);
	char *exact = malloc(n ? n : 1);
	FUZZ_CHECK(exact);
	memcpy(exact, rules, n);
	const char *slash = strrchr(path, '/');
	size_t base = slash ? (size_t)(slash - path) + 1 : 0;
	for (int dir = 0; dir < 2; dir++) {
		const struct vx_rules *r = vx_ignore_parse(exact, n, dir ? "a" : "", NULL, &a);
		int got = vx_ignore_match(r, path, len, base, dir);
		FUZZ_CHECK(got >= -1 && got <= 1 && (r || got == -1));
	}
	(void)vx_attr_match(vx_attr_parse(exact, n, "", NULL, &a), path, len, base);
	uint32_t variables = 0;
	int r = vx_gitconf_parse(exact, n, kf_variable, &variables);
	FUZZ_CHECK(r == 0 || r == -EINVAL);
	(void)vx_wildmatch(rules, path, true);
	free(exact);
	free(path);
	vx_arena_free(&a);
}

static bool fuzz_is_path(const char *p)
{
	size_t n = strlen(p);
	return n && n < 400 && p[0] != '/' && p[n - 1] != '/' && !strstr(p, "//") &&
	       strcmp(p, ".") != 0 && strncmp(p, "./", 2) != 0 && !strstr(p, "/./") &&
	       !(n > 1 && strcmp(p + n - 2, "/.") == 0) && strcmp(p, "..") != 0 &&
	       strncmp(p, "../", 3) != 0 && !strstr(p, "/../");
}

/* Is it small enough for a matcher that tries everything? And without bytes that make one character
 * of several. */
static bool fuzz_is_plain(const char *p)
{
	uint32_t stars = 0, braces = 0;
	for (const char *c = p; *c; c++) {
		stars += *c == '*';
		braces += *c == '{' || *c == ',';
		if ((unsigned char)*c >= 0x80)
			return false;
	}
	return strlen(p) < 60 && stars < 8 && braces < 12;
}

/* "path\npattern\npattern": the set as a whole, the first pattern against a plain matcher, two
 * against each other, and members' globs. */
static void fuzz_globs(const uint8_t *data, size_t size)
{
	struct vx_arena a = {0};
	char *rest, *path = fuzz_text(data, size, &rest), *second = strchr(rest, '\n');
	if (second)
		*second++ = '\0';
	const char *list[2] = {rest, second ? second : "b"};
	struct vx_globset *set, *one[2] = {NULL, NULL};
	bool sane = fuzz_is_path(path), hit[2] = {false, false};
	size_t len = strlen(path);
	for (int d = 0; d < 2; d++) {
		int r = vx_globset_compile((struct vx_strs){list, 2},
			d ? VX_DIALECT_TURBO : VX_DIALECT_VX, &a, &set, NULL);
		FUZZ_CHECK(r == 0 || r == -EINVAL || r == -E2BIG || r == -ENAMETOOLONG);
		if (r == 0 && vx_globset_match(set, path, len)) {
			bool by_one = false;
			for (uint32_t i = 0; i < vx_globset_count(set); i++)
				by_one |= vx_globset_match_one(set, i, path, len);
			FUZZ_CHECK(by_one && !vx_globset_negates(set, path, len));
		}
	}
	for (int i = 0; i < 2; i++) {
		int r = vx_globset_compile(
			(struct vx_strs){&list[i], 1}, VX_DIALECT_VX, &a, &one[i], NULL);
		if (r < 0 || !sane || !*list[i] || *list[i] == '!') {
			one[i] = NULL;
			continue;
		}
		hit[i] = vx_globset_match(one[i], path, len);
		if (fuzz_is_plain(list[i]) && fuzz_is_plain(path))
			FUZZ_CHECK(hit[i] == kf_entry(list[i], path));
		const char *prefix = vx_globset_prefix(one[i], 0);
		FUZZ_CHECK(!hit[i] || strncmp(path, prefix, strlen(prefix)) == 0);
		for (const char *s = strchr(path, '/'); hit[i] && s; s = strchr(s + 1, '/'))
			FUZZ_CHECK(vx_globset_may_reach(one[i], path, (size_t)(s - path)));
	}
	FUZZ_CHECK(!(hit[0] && hit[1]) || vx_globset_overlap(one[0], "x", one[1], "x"));
	char *members = malloc(strlen(rest) + len + 2);
	FUZZ_CHECK(members);
	sprintf(members, "%s\n%s", rest, path);
	planfuzz_globs(members, &a);
	sprintf(members, "%s\n%s", rest, path);
	planfuzz_relations(members);
	free(members);
	free(path);
	vx_arena_free(&a);
}

static void fuzz_semver(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size, NULL);
	planfuzz_semver(text);
	free(text);
}

/* The first byte: comments allowed or not; then a document. What is accepted is written, and that
 * is accepted again and written the same. */
static void fuzz_jsonc(const uint8_t *data, size_t size)
{
	struct vx_arena a = {0}, b = {0};
	struct vx_err err = {0};
	struct vx_json *v = NULL, *again = NULL;
	struct vx_buf text = VX_BUF(1U << 26), second = VX_BUF(1U << 26);
	struct vx_manifest m;
	if (!size)
		return;
	size_t n = size - 1;
	char *exact = malloc(n ? n : 1);
	FUZZ_CHECK(exact);
	memcpy(exact, data + 1, n);
	int r = vx_json_parse(exact, n, data[0] & 1 ? VX_JSON_COMMENTS : 0, "f", &v, &err);
	FUZZ_CHECK(r == 0 || (r < 0 && err.what[0]));
	if (r == 0) {
		vx_json_write(v, true, &text);
		FUZZ_CHECK(vx_json_parse(vx_buf_str(&text), text.len, 0, "f", &again, &err) == 0);
		vx_json_write(again, true, &second);
		FUZZ_CHECK(text.len == second.len &&
			   memcmp(vx_buf_str(&text), vx_buf_str(&second), text.len) == 0);
		vx_json_free(again);
		vx_json_free(v);
	}
	err.what[0] = '\0';
	err.code = 0;
	r = vx_manifest_parse(exact, n, "package.json", &a, &b, &m, &err);
	FUZZ_CHECK(r == 0 || (r < 0 && err.what[0]));
	free(exact);
	vx_buf_free(&text);
	vx_buf_free(&second);
	vx_arena_free(&a);
	vx_arena_free(&b);
}

static void fuzz_yaml(const uint8_t *data, size_t size)
{
	struct vx_arena a = {0};
	struct vx_err err = {0};
	struct vx_pnpm_workspace w;
	const char *value = NULL;
	char *exact = malloc(size ? size : 1);
	FUZZ_CHECK(exact);
	if (size)
		memcpy(exact, data, size);
	int r = vx_pnpm_parse(exact, size, "pnpm-workspace.yaml", &a, &w, &err);
	FUZZ_CHECK(r == 0 || (r < 0 && err.what[0]));
	err = (struct vx_err){0};
	r = vx_yaml_scalar(
		exact, size, ".yarnrc.yml", "enableTransparentWorkspaces", &a, &value, &err);
	FUZZ_CHECK(r == 0 || (r < 0 && err.what[0]));
	free(exact);
	vx_arena_free(&a);
}

static const struct fuzz_target {
	const char *name;
	void (*run)(const uint8_t *data, size_t size);
} fuzz_targets[] = {{"index", fuzz_index}, {"ignore", fuzz_ignore}, {"globs", fuzz_globs},
	{"semver", fuzz_semver}, {"jsonc", fuzz_jsonc}, {"yaml", fuzz_yaml}};

#endif
