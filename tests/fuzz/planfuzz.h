/* The parsers of planning under arbitrary bytes: semver, member globs, filters' and configuration
 * globs, YAML, manifests.
 *
 * planfuzz_one has libFuzzer's signature in all but name: `clang -fsanitize=fuzzer,address
 * -DPLANFUZZ_MAIN ...` makes it a target; tests/unit/test_planfuzz.c replays its corpus and some
 * random damage in every check, tests/fuzz/test_plan.c a lot more of it. The first byte of the
 * input (a digit; its value modulo their number) says which parser gets the rest. What must hold:
 * no crash, no sanitizer report, and what the parsers promise (see the asserts). */
#ifndef PLANFUZZ_H
#define PLANFUZZ_H

#include "../../sched/glob/globrel.h"
#include "../../sched/workspace/manifest.h"
#include "../../sched/workspace/semver.h"
#include "vx/wsglob.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/err.h"
#include "vx/workspace.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { PLANFUZZ_PARSERS = 5 };

static void planfuzz_semver(const char *text)
{
	char *nl = strchr(text, '\n');

	if (nl)
		*nl = '\0';
	const char *version = text, *range = nl ? nl + 1 : text;
	bool holds = vx_semver_satisfies(version, range);
	if (holds) {
		vx_assert(vx_semver_is_version(version));
		vx_assert(vx_semver_is_range(range));
	}
	if (vx_semver_is_version(version)) /* a version satisfies itself */
		vx_assert(vx_semver_satisfies(version, version));
}

static void planfuzz_globs(const char *text, struct vx_arena *a)
{
	char *nl = strchr(text, '\n');
	struct vx_wsglobs g = {0};
	struct vx_err err = {0};

	if (nl)
		*nl = '\0';
	const char *pattern = text, *path = nl ? nl + 1 : "a/b";
	if (vx_wsglob_add(&g, pattern, a, &err) < 0) {
		vx_assert(err.what[0]);
		return;
	}
	vx_wsglobs_match(&g, path, true);
	if (vx_wsglobs_match(&g, path, false)) /* dots only ever widen */
		vx_assert(vx_wsglobs_match(&g, path, true));
}

static void planfuzz_relations(const char *text)
{
	char *nl = strchr(text, '\n');

	if (nl)
		*nl = '\0';
	const char *x = text, *y = nl ? nl + 1 : text;
	bool meet = vx_globrel_meet(x, y);
	vx_assert(meet == vx_globrel_meet(y, x));
	vx_globrel_within(x, y);
}

static void planfuzz_one(const uint8_t *data, size_t size)
{
	struct vx_arena a = {0}, b = {0};
	struct vx_err err = {0};
	struct vx_pnpm_workspace w;
	struct vx_manifest m;
	int r;

	if (size < 1)
		return;
	/* A block of exactly its size, so that a sanitizer sees a read beyond; with its NUL where
	 * the parser takes C strings. */
	size_t n = size - 1;
	char *text = malloc(n + 1);
	memcpy(text, data + 1, n);
	text[n] = '\0';
	switch ((unsigned)(data[0] - '0') % PLANFUZZ_PARSERS) {
	case 0:
		planfuzz_semver(text);
		break;
	case 1:
		planfuzz_globs(text, &a);
		break;
	case 2:
		planfuzz_relations(text);
		break;
	case 3:
		r = vx_pnpm_parse(text, n, "pnpm-workspace.yaml", &a, &w, &err);
		vx_assert(r == 0 || (r < 0 && err.what[0]));
		break;
	default:
		r = vx_manifest_parse(text, n, "package.json", &a, &b, &m, &err);
		vx_assert(r == 0 || (r < 0 && err.what[0]));
		break;
	}
	free(text);
	vx_arena_free(&a);
	vx_arena_free(&b);
}

/* Seeds, and what was once found: the digit of the parser, then the text. */
static const char *const planfuzz_corpus[] = {
	"01.2.3\n^1.0.0 || >=2 <3 - 4",
	"01.2.3-a.1+b\n1.2.x - 2 || ~>1 || =v1.2.3",
	"00.0.0\n>*",
	"01.2.3\n1.2.3 - ",
	"01.0.0\n-  -  -",
	"1packages/**/{a,{b,c}}/[!x-z]?*\npackages/.x/a/y1",
	"1{a,b}{c,d}{e,f}\nace",
	"1**/**/**/a/**/b\nx/a/y/b",
	"1[\n[",
	"1\\\n\\",
	"2src/**/*.{h,c}\nsrc/a/**",
	"2{a,b/}{c,}\n**",
	"2./a//b\na/b",
	"3packages:\n  - 'a/*'\n  - \"!b\"\nlinkWorkspacePackages: deep\ncatalog: {x: ^1}\ncatalogs: {y: {z: 1}}\n",
	"3a: &a [*a, *a]\npackages: *a\n",
	"3? {x: y}\n: z\n",
	"3packages: [\"\\x41\", ~, 1.5]\n",
	"4{\"name\":\"a\",\"version\":\"1.0.0\",\"scripts\":{\"b\":\"c\"},\"dependencies\":{\"d\":\"*\"},\"workspaces\":{\"packages\":[\"e/*\"],\"catalog\":{\"x\":\"1\"}}}",
	"4{\"catalogs\":{\"a\":{\"b\":\"c\"},\"d\":1},\"workspaces\":[\"x\"]}",
};

#endif
