/* Globs against picomatch from npm: VX_GLOB_PAIRS (100,000) random pairs of a pattern and a path,
 * seed VX_SEED. Skipped, said, where there is no npm or nothing can be had by it; $VX_PICOMATCH
 * names a directory in whose node_modules it is. Differences that are meant are told by the script,
 * each with its reason. */
#include "vxtest.h"

#include "vx/wsglob.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/glob.h"

static bool ours(char dialect, const char *pattern, const char *path)
{
	struct vx_arena a = {0};
	bool yes = false;
	if (dialect == 'v') {
		struct vx_globset *s;
		if (vx_globset_compile(
			    (struct vx_strs){&pattern, 1}, VX_DIALECT_VX, &a, &s, NULL) == 0)
			yes = vx_globset_match(s, path, strlen(path));
	} else {
		struct vx_wsglobs g = {0};
		if (vx_wsglob_add(&g, pattern, &a, NULL) == 0)
			yes = vx_wsglobs_match(&g, path, false);
	}
	vx_arena_free(&a);
	return yes;
}

static const char *get_picomatch(const char *dir)
{
	const char *there = getenv("VX_PICOMATCH"), *out;
	char cmd[1024];
	if (there)
		return there;
	if (vxt_sh("command -v npm >/dev/null && command -v node >/dev/null", NULL) != 0) {
		fprintf(stderr, "# no npm, or no node\n");
		return NULL;
	}
	snprintf(cmd, sizeof cmd,
		"cd '%s' && echo '{}' >package.json && npm install --no-audit --no-fund picomatch@4.0.7 2>&1 | tail -3",
		dir);
	vxt_sh(cmd, &out);
	snprintf(cmd, sizeof cmd, "test -f '%s/node_modules/picomatch/package.json'", dir);
	if (vxt_sh(cmd, NULL) == 0)
		return dir;
	fprintf(stderr, "# npm cannot install picomatch: %s\n", out);
	return NULL;
}

static void random_pairs(void **state)
{
	char *dir = vxt_tmpdir(), cmd[2048];
	const char *at = get_picomatch(dir), *pairs = getenv("VX_GLOB_PAIRS"),
		   *seed = getenv("VX_SEED");
	uint32_t n = 0, matching = 0, wrong = 0, meant = 0;
	(void)state;
	if (!at) {
		vxt_rm(dir);
		vxt_skip("no npm or no network: picomatch cannot be had");
	}
	char here[512];
	assert_non_null(getcwd(here, sizeof here));
	snprintf(cmd, sizeof cmd, "cd '%s' && node '%s/tests/slow/picomatch.js' %s %s >'%s/pairs'",
		at, here, pairs ? pairs : "100000", seed ? seed : "1", dir);
	assert_int_equal(vxt_sh(cmd, NULL), 0);
	struct vx_buf b = VX_BUF(256U << 20);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, "pairs"), &b), 0);
	char *line = b.data, *end;
	for (; line && (end = strchr(line, '\n')) != NULL; line = end + 1) {
		*end = '\0';
		char *pattern = strchr(line, '\t') + 1, *path = strchr(pattern, '\t'), *answer;
		*path++ = '\0';
		answer = strchr(path, '\t');
		*answer++ = '\0';
		bool want = *answer == '1', got = ours(line[0], pattern, path);
		n++;
		matching += want;
		if (got == want)
			continue;
		if (answer[1] && answer[2]) {
			meant++;
			continue;
		}
		if (wrong++ < 40)
			fprintf(stderr, "# %c \"%s\" %s \"%s\", for picomatch it %s\n", line[0],
				pattern, got ? "matches" : "does not match", path,
				want ? "does" : "does not");
	}
	fprintf(stderr, "# %u pairs, %u of them match, %u apart, %u wrong\n", n, matching, meant,
		wrong);
	vx_buf_free(&b);
	vxt_rm(dir);
	assert_int_equal(wrong, 0);
	assert_true(n >= 1000 && matching > n / 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_pairs)};
	return cmocka_run_group_tests_name("glob_picomatch", tests, NULL, NULL);
}
