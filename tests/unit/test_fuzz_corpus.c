/* Replays the seeds of the fuzz targets, tests/fuzz/corpus, what was once found among them. See
 * tests/fuzz/targets.h. */
#include "vxtest.h"

#include "../fuzz/targets.h"

#include <dirent.h>

static void replay(const struct fuzz_target *t, const char *path, uint32_t *n)
{
	struct vx_buf b = VX_BUF(64U << 20);
	DIR *d = opendir(path);
	if (!d)
		fail_msg("%s cannot be opened: run it from the top of the source tree", path);
	for (struct dirent *e; (e = readdir(d)) != NULL;) {
		if (e->d_name[0] == '.')
			continue;
		vx_buf_clear(&b);
		assert_int_equal(vx_read_file(dirfd(d), e->d_name, &b), 0);
		/* the last one is the one that failed */
		fprintf(stderr, "# %s/%s\n", t->name, e->d_name);
		t->run((const uint8_t *)vx_buf_str(&b), b.len);
		for (size_t cut = 1; cut < b.len && cut < 64; cut++) /* and cut off */
			t->run((const uint8_t *)vx_buf_str(&b), b.len - cut);
		(*n)++;
	}
	closedir(d);
	vx_buf_free(&b);
}

static void corpus(void **state)
{
	(void)state;
	(void)kf_rounds;
	(void)planfuzz_corpus;
	(void)planfuzz_one;
	for (size_t i = 0; i < VX_ARRAY_LEN(fuzz_targets); i++) {
		char path[128];
		uint32_t n = 0;
		snprintf(path, sizeof path, "tests/fuzz/corpus/%s", fuzz_targets[i].name);
		replay(&fuzz_targets[i], path, &n);
		assert_true(n >= 5);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(corpus)};
	return cmocka_run_group_tests_name("fuzz_corpus", tests, NULL, NULL);
}
