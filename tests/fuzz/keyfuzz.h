/* Damage for the parsers of keys: git's index, ignore files, attributes, git's configuration,
 * memories of the worktree; and globs against a plain matcher that tries everything. Each function
 * is one round on bytes drawn from kf_rand; what must hold is asserted inside. */
#ifndef KEYFUZZ_H
#define KEYFUZZ_H

#include "vxtest.h"

#include "../../sched/git/config.h"
#include "../../sched/git/index.h"
#include "../../sched/git/ignore.h"
#include "../../sched/worktree/dircache.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/glob.h"

#include <errno.h>

static uint64_t kf_state;

static uint32_t kf_rand(uint32_t n)
{
	kf_state ^= kf_state << 13;
	kf_state ^= kf_state >> 7;
	kf_state ^= kf_state << 17;
	return n ? (uint32_t)(kf_state >> 20) % n : 0;
}

/* A string of pieces, malloc'ed to its exact size, so that a sanitizer sees a read beyond it. */
static char *kf_string(const char *const *pieces, uint32_t n_pieces, uint32_t max)
{
	struct vx_buf b = VX_BUF(1U << 16);
	for (uint32_t n = kf_rand(max); n; n--)
		vx_buf_adds(&b, pieces[kf_rand(n_pieces)]);
	char *s = strdup(vx_buf_str(&b));
	vx_buf_free(&b);
	return s;
}

/* ---- globs ---- */

/* Every way a component pattern without braces can match, tried one by one. */
static bool kf_seg(const char *p, const char *pe, const char *s, const char *se)
{
	if (p == pe)
		return s == se;
	if (*p == '*')
		return kf_seg(p + 1, pe, s, se) || (s < se && kf_seg(p, pe, s + 1, se));
	if (s == se)
		return false;
	if (*p == '?')
		return kf_seg(p + 1, pe, s + 1, se);
	if (*p == '\\' && p + 1 < pe)
		p++;
	return *p == *s && kf_seg(p + 1, pe, s + 1, se);
}

static const char *kf_end(const char *s)
{
	return s + strcspn(s, "/");
}

/* Components. `s` NULL: none left. */
static bool kf_path(const char *p, const char *s)
{
	while (*p == '/')
		p++;
	if (!*p)
		return !s;
	const char *pe = kf_end(p), *rest = pe;
	if (pe - p == 1 && *p == '.')
		return kf_path(rest, s);
	const char *se = s ? kf_end(s) : NULL, *next = s && *se ? se + 1 : NULL;
	if (pe - p == 2 && p[0] == '*' && p[1] == '*')
		return kf_path(rest, s) || (s && kf_path(p, next));
	return s && kf_seg(p, pe, s, se) && kf_path(rest, next);
}

static bool kf_braces(const char *text, const char *path);

/* The leftmost group that is closed and has a comma of its own. */
static bool kf_group(const char *t, size_t *ret_open, size_t *ret_close)
{
	for (size_t i = 0; t[i]; i++) {
		if (t[i] == '\\' && t[i + 1] && t[i + 1] != '/') {
			i++;
			continue;
		}
		if (t[i] != '{')
			continue;
		int depth = 0;
		bool comma = false;
		for (size_t k = i; t[k]; k++) {
			if (t[k] == '\\' && t[k + 1] && t[k + 1] != '/')
				k++;
			else if (t[k] == '{')
				depth++;
			else if (t[k] == ',' && depth == 1)
				comma = true;
			else if (t[k] == '}' && --depth == 0) {
				if (comma) {
					*ret_open = i;
					*ret_close = k;
					return true;
				}
				break;
			}
		}
	}
	return false;
}

static bool kf_braces(const char *text, const char *path)
{
	size_t open, close;
	if (!kf_group(text, &open, &close))
		return kf_path(text, path);
	int depth = 0;
	bool yes = false;
	for (size_t k = open + 1, arm = k; k <= close; k++) {
		if (text[k] == '\\' && text[k + 1] && text[k + 1] != '/') {
			k++;
		} else if ((text[k] == ',' && !depth) || k == close) {
			char one[4096];
			snprintf(one, sizeof one, "%.*s%.*s%s", (int)open, text, (int)(k - arm),
				text + arm, text + close + 1);
			yes |= kf_braces(one, path);
			arm = k + 1;
		} else if (text[k] == '{') {
			depth++;
		} else if (text[k] == '}') {
			depth--;
		}
	}
	return yes;
}

static bool kf_wild(const char *t)
{
	size_t a, b;
	for (const char *p = t; *p; p++) {
		if (*p == '\\' && p[1] && p[1] != '/')
			p++;
		else if (*p == '*' || *p == '?')
			return true;
	}
	return kf_group(t, &a, &b);
}

static bool kf_entry(const char *t, const char *path)
{
	size_t n = strlen(t);
	if (kf_wild(t) && !(n && t[n - 1] == '/'))
		return kf_braces(t, path);
	char tree[4096];
	snprintf(tree, sizeof tree, "%s/**", t);
	return kf_braces(tree, path);
}

static void kf_globs(void)
{
	static const char *const pieces[] = {"a", "b", "/", "*", "**", "?", "{", "}", ",", "\\",
		"a/", "/**/", "{a,b}", ".", "[b]", "**/", "ab"};
	static const char *const path_pieces[] = {
		"a", "b", "/", "ab", "a/b", ",", "{", ".", "[b]", "aa", "*", "\\"};
	struct vx_arena a = {0};
	char *p[2], *path = kf_string(path_pieces, VX_ARRAY_LEN(path_pieces), 8);
	struct vx_globset *set[2] = {NULL, NULL};
	bool hit[2] = {false, false};
	bool sane = *path && path[0] != '/' && path[strlen(path) - 1] != '/' &&
		    !strstr(path, "//") && strcmp(path, ".") != 0 && strncmp(path, "./", 2) != 0 &&
		    !strstr(path, "/./") &&
		    !(strlen(path) > 1 && strcmp(path + strlen(path) - 2, "/.") == 0);
	for (int i = 0; i < 2; i++) {
		p[i] = kf_string(pieces, VX_ARRAY_LEN(pieces), 9);
		struct vx_strs list = {(const char *const *)&p[i], 1};
		int r = vx_globset_compile(list, VX_DIALECT_VX, &a, &set[i], NULL);
		if (r < 0) {
			assert_true(r == -EINVAL || r == -E2BIG);
			continue;
		}
		if (!sane || !*p[i] || *p[i] == '!')
			continue;
		hit[i] = vx_globset_match(set[i], path, strlen(path));
		if (hit[i] != kf_entry(p[i], path))
			fail_msg("\"%s\" %s \"%s\"", p[i], hit[i] ? "matches" : "does not match",
				path);
		if (!hit[i])
			continue;
		const char *prefix = vx_globset_prefix(set[i], 0);
		assert_true(strncmp(path, prefix, strlen(prefix)) == 0);
		for (const char *slash = strchr(path, '/'); slash; slash = strchr(slash + 1, '/'))
			if (!vx_globset_may_reach(set[i], path, (size_t)(slash - path)))
				fail_msg("\"%s\" does not reach \"%.*s\" on the way to \"%s\"",
					p[i], (int)(slash - path), path, path);
	}
	if (hit[0] && hit[1] && !vx_globset_overlap(set[0], "x", set[1], "x"))
		fail_msg("\"%s\" and \"%s\" meet in \"%s\"", p[0], p[1], path);
	free(p[0]);
	free(p[1]);
	free(path);
	vx_arena_free(&a);
}

/* ---- rules ---- */

static void kf_rules(void)
{
	static const char *const pieces[] = {"a", "b", "/", "*", "**", "?", "[", "]", "!", "\\",
		"\n", " ", "#", "[a-b]", "[[:alpha:]]", "[^", "\r\n", "\xff", "text", " -text",
		" eol=lf", "[attr]", "\"", "**/", "\t"};
	static const char *const path_pieces[] = {"a", "b", "/", "ab", "x", "!", "[", "\xff", " "};
	struct vx_arena a = {0};
	char *text = kf_string(pieces, VX_ARRAY_LEN(pieces), 24),
	     *path = kf_string(path_pieces, VX_ARRAY_LEN(path_pieces), 8);
	const struct vx_rules *r =
		vx_ignore_parse(text, strlen(text), kf_rand(2) ? "" : "a", NULL, &a);
	const struct vx_rules *attrs = vx_attr_parse(text, strlen(text), "", NULL, &a);
	const char *slash = strrchr(path, '/');
	size_t base = slash ? (size_t)(slash - path) + 1 : 0;
	int got = vx_ignore_match(r, path, strlen(path), base, kf_rand(2));
	assert_true(got >= -1 && got <= 1 && (r || got == -1));
	(void)vx_attr_match(attrs, path, strlen(path), base);
	/* What has nothing special matches itself alone. */
	if (strspn(text, "ab/") == strlen(text))
		assert_int_equal(vx_wildmatch(text, path, true), strcmp(text, path) == 0);
	free(text);
	free(path);
	vx_arena_free(&a);
}

static int kf_variable(void *arg, const char *name, const char *value)
{
	(*(uint32_t *)arg)++;
	assert_non_null(strchr(name, '.'));
	if (value)
		(void)vx_gitconf_bool(value);
	return 0;
}

static void kf_config(void)
{
	static const char *const pieces[] = {"[core]\n", "[a \"b\"]", "\texcludesFile = ~/x\n", "k",
		"=", " ", "\n", "\\", "\"", "#", ";", "[", "]", "\r\n", "true", "\\n",
		"[includeIf \"gitdir:~/\"]\npath=x\n", "\xff"};
	char *text = kf_string(pieces, VX_ARRAY_LEN(pieces), 20);
	uint32_t n = 0;
	int r = vx_gitconf_parse(text, strlen(text), kf_variable, &n);
	assert_true(r == 0 || r == -EINVAL);
	free(text);
}

/* ---- the index ---- */

static void kf_be32(struct vx_buf *b, uint32_t v)
{
	uint8_t x[4] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
	vx_buf_add(b, x, 4);
}

static void kf_sum(struct vx_buf *b)
{
	struct vx_sha1 c;
	uint8_t sum[20];
	vx_sha1_init(&c);
	vx_sha1_add(&c, vx_buf_str(b), b->len);
	vx_sha1_done(&c, sum);
	vx_buf_add(b, sum, sizeof sum);
}

/* A well-formed index of version 2 or 4 with the given names. */
static void kf_make_index(struct vx_buf *b, uint32_t version, const char *const *names, uint32_t n)
{
	vx_buf_adds(b, "DIRC");
	kf_be32(b, version);
	kf_be32(b, n);
	for (uint32_t i = 0; i < n; i++) {
		size_t start = b->len, len = strlen(names[i]);
		for (int k = 0; k < 10; k++)
			kf_be32(b, k == 6 ? 0100644 : (uint32_t)k + 1);
		uint8_t oid[20] = {1};
		vx_buf_add(b, oid, 20);
		vx_buf_addc(b, 0);
		vx_buf_addc(b, (char)len);
		if (version == 4) {
			size_t keep = 0;
			if (i)
				while (names[i - 1][keep] && names[i - 1][keep] == names[i][keep])
					keep++;
			vx_buf_addc(b, (char)(i ? strlen(names[i - 1]) - keep : 0));
			vx_buf_add(b, names[i] + keep, len - keep + 1);
			continue;
		}
		vx_buf_add(b, names[i], len);
		do
			vx_buf_addc(b, 0);
		while ((b->len - start) % 8);
	}
	vx_buf_adds(b, "TREE");
	kf_be32(b, 4);
	vx_buf_adds(b, "abcd");
}

static const char *const kf_names[] = {"a", "a-b", "a/b", "a/bb/c", "b", "b.c"};

static void kf_index(void)
{
	struct vx_buf b = VX_BUF(1U << 16);
	struct vx_gitindex x;
	char why[200] = "";
	kf_make_index(&b, kf_rand(2) ? 2 : 4, kf_names, VX_ARRAY_LEN(kf_names));
	for (uint32_t n = kf_rand(4); n; n--) {
		if (kf_rand(4) == 0)
			b.len -= kf_rand((uint32_t)b.len);
		else if (b.len)
			b.data[kf_rand((uint32_t)b.len)] = (char)kf_rand(256);
	}
	if (kf_rand(8))
		kf_sum(&b);
	char *raw = malloc(b.len ? b.len : 1);
	memcpy(raw, vx_buf_str(&b), b.len);
	int r = vx_gitindex_parse(raw, b.len, VX_OID_SHA1, &x, why, sizeof why);
	assert_true(r == 0 || (r == 1 && why[0]));
	for (uint32_t i = 0; r == 0 && i < x.n; i++) {
		struct stat st = {.st_mode = S_IFREG | 0644};
		struct vx_oid oid;
		assert_int_equal(strlen(x.v[i].path), x.v[i].len);
		assert_true(!i || strcmp(x.v[i - 1].path, x.v[i].path) < 0);
		assert_int_equal(vx_gitindex_lower(&x, 0, x.n, x.v[i].path, x.v[i].len), i);
		(void)vx_gitindex_clean(&x, &x.v[i], &st, true);
		vx_gitindex_oid(&x, &x.v[i], &oid);
	}
	if (r == 0)
		vx_gitindex_free(&x);
	vx_buf_free(&b);
}

/* ---- memories ---- */

static char kf_blob[1U << 16];
static size_t kf_blob_n;

static int kf_get(void *self, const char *space, const void *key, size_t n, struct vx_arena *a,
	void **ret, size_t *ret_n)
{
	(void)self, (void)space, (void)key, (void)n;
	*ret = vx_arena_dup(a, kf_blob, kf_blob_n);
	*ret_n = kf_blob_n;
	return 0;
}

static int kf_put(
	void *self, const char *space, const void *key, size_t n, const void *val, size_t val_n)
{
	(void)self, (void)space, (void)key, (void)n;
	assert_true(val_n <= sizeof kf_blob);
	memcpy(kf_blob, val, val_n);
	kf_blob_n = val_n;
	return 0;
}

static void kf_memory(void)
{
	static const struct vx_key_memory m = {NULL, kf_get, kf_put};
	struct vx_arena a = {0};
	struct vx_wtmem_writer *w = vx_wtmem_writer_new();
	struct vx_dir_memory d = {.st = {1, 2, 3, 4, 5},
				     .n_names = 2,
				     .bytes = 8,
				     .names = "\x08"
					      "ab\0"
					      "\x04"
					      "cd"},
			     got;
	struct vx_file f = {.path = "a/f",
		.len = 3,
		.has_oid = true,
		.hashed = true,
		.oid = {.n = 20},
		.st = {1, 2, 3, 4, 5},
		.looked_ns = 1ULL << 62};
	struct vx_oid oid;
	vx_wtmem_add_dir(w, "b", &d);
	vx_wtmem_add_dir(w, "a", &d);
	vx_wtmem_add_id(w, &f);
	assert_int_equal(vx_wtmem_store(w, &m, "/r"), 0);
	vx_wtmem_writer_free(w);
	bool whole = kf_rand(4) == 0;
	if (!whole && kf_rand(3) == 0)
		kf_blob_n = kf_rand((uint32_t)kf_blob_n);
	for (uint32_t n = whole ? 0 : 1 + kf_rand(3); n && kf_blob_n; n--)
		kf_blob[kf_rand((uint32_t)kf_blob_n)] = (char)kf_rand(256);
	struct vx_wtmem *mem = vx_wtmem_load(&m, "/r", &a);
	bool dir = vx_wtmem_dir(mem, "a", 1, &got),
	     id = vx_wtmem_id(mem, "a/f", 3, VX_OID_SHA1, &f.st, &oid);
	assert_true(!whole || (dir && id && got.n_names == 2 && oid.n == 20));
	const char *p = got.names;
	for (uint32_t i = 0; dir && i < got.n_names; i++)
		p += strlen(p) + 1;
	vx_wtmem_free(mem);
	vx_arena_free(&a);
}

static void kf_rounds(uint64_t seed, uint32_t rounds)
{
	kf_state = seed * 0x9E3779B97F4A7C15ULL + 1;
	for (uint32_t i = 0; i < rounds; i++) {
		kf_globs();
		kf_rules();
		kf_config();
		kf_index();
		if (i % 8 == 0)
			kf_memory();
	}
}

#endif
