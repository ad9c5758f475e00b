#include "vxtest.h"

#include "vx/buf.h"
#include "vx/limits.h"
#include "vx/secret.h"
#include "vx/tasklog.h"

#include <errno.h>

#define STRS(...)                                             \
	((struct vx_strs){(const char *const[]){__VA_ARGS__}, \
		sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)})
#define NO_STRS ((struct vx_strs){NULL, 0})

static void collect(void *arg, int stream, const void *p, size_t n)
{
	struct vx_buf *b = arg;

	assert_true(n > 0);
	assert_true(stream == 1 || stream == 2);
	vx_buf_add(b + stream - 1, p, n);
}

static void collect_all(void *arg, int stream, const void *p, size_t n)
{
	vx_buf_printf(arg, "%d", stream);
	vx_buf_addc(arg, '<');
	vx_buf_add(arg, p, n);
	vx_buf_addc(arg, '>');
}

/* `text` through masks, in pieces of `step` bytes; returns what is kept, which must be what was
 * shown. */
static const char *masked(const struct vx_masks *m, const char *text, size_t step)
{
	static struct vx_buf kept[2], shown[2];
	struct vx_tasklog *l = vx_tasklog_new(m);

	for (int k = 0; k < 2; k++) {
		vx_buf_free(&kept[k]);
		vx_buf_free(&shown[k]);
		kept[k] = shown[k] = VX_BUF(1 << 20);
	}
	for (size_t n = strlen(text), k = 0; k < n; k += step)
		vx_tasklog_add(l, 1, text + k, step < n - k ? step : n - k, collect, shown);
	vx_tasklog_end(l, collect, shown);
	vx_tasklog_each(l, collect, kept);
	assert_string_equal(vx_buf_str(&kept[0]), vx_buf_str(&shown[0]));
	vx_tasklog_free(l);
	return vx_buf_str(&kept[0]);
}

static void check_masked(const struct vx_masks *m, const char *text, const char *want)
{
	for (size_t step = 1; step <= strlen(text); step++)
		assert_string_equal(masked(m, text, step), want);
}

static void values_are_hidden(void **state)
{
	struct vx_masks *m =
		vx_masks_new(STRS("API_TOKEN=abcdef123", "my_secret=s3cr3t!", "PLAIN=visible-value",
				     "SHORT_KEY=12345", "MINE=declared", "DB_PASSWD=passwdpass",
				     "AWS_CREDENTIALS=credcred", "NOVALUE", "EMPTY_KEY="),
			STRS("MINE"));

	(void)state;
	check_masked(m, "a abcdef123 b\n", "a *** b\n");
	check_masked(m, "s3cr3t!s3cr3t!", "******");
	check_masked(m, "declared passwdpass credcred", "*** *** ***");
	check_masked(
		m, "visible-value 12345 abcdef12 s3cr3t", "visible-value 12345 abcdef12 s3cr3t");
	check_masked(m, "abcdef12", "abcdef12"); /* held back till the end, then shown */
	check_masked(m, "abcdabcdef123", "abcd***");
	vx_masks_free(m);
}

static void lines_and_overlaps(void **state)
{
	struct vx_masks *m = vx_masks_new(
		STRS("PEM_KEY=-----BEGIN\nline-one\r\nline-two\nxy\n", "A_TOKEN=secret",
			"B_TOKEN=secretkey", "C_TOKEN=keykeykey", "D_TOKEN=aaaaaa"),
		NO_STRS);

	(void)state;
	check_masked(m, "-----BEGIN\nline-one\r\nline-two\nxy\n", "***\n"); /* the whole value */
	check_masked(m, "| line-one\n| line-two\n| xy\n", "| ***\n| ***\n| xy\n");
	check_masked(m, "secret secretkey secretke", "*** *** ***ke");
	check_masked(m, "secretkeykeykey.", "***."); /* overlapping ones as one */
	check_masked(m, "aaaaaaaaaaaaaab", "***b");
	check_masked(m, "aaaaab", "aaaaab");
	vx_masks_free(m);
}

static void streams_are_masked_apart(void **state)
{
	struct vx_masks *m = vx_masks_new(STRS("A_TOKEN=secret"), NO_STRS);
	struct vx_tasklog *l = vx_tasklog_new(m);
	struct vx_buf b = VX_BUF(4096);

	(void)state;
	vx_tasklog_add(l, 1, "1 sec", 5, NULL, NULL);
	vx_tasklog_add(l, 2, "2 sec\n", 6, NULL, NULL);
	vx_tasklog_add(l, 1, "ret\n", 4, NULL, NULL);
	vx_tasklog_end(l, NULL, NULL);
	vx_tasklog_each(l, collect_all, &b);
	assert_string_equal(vx_buf_str(&b), "1<1 >2<2 sec\n>1<***\n>");
	vx_buf_free(&b);
	vx_tasklog_free(l);
	vx_masks_free(m);
}

/* Random texts of few letters, random masks, random chunks: the result does not depend on the
 * chunks, and holds no mask. */
static void any_split_is_the_same(void **state)
{
	(void)state;
	srandom(1);
	for (int round = 0; round < 300; round++) {
		char env[3][64], text[400];
		const char *v[3] = {env[0], env[1], env[2]};

		for (int k = 0; k < 3; k++) {
			int n = snprintf(env[k], sizeof env[k], "K%d_KEY=", k),
			    len = 6 + (int)(random() % 10);

			for (int j = 0; j < len; j++)
				env[k][n + j] = "ab"[random() % 2];
			env[k][n + len] = '\0';
		}
		for (size_t k = 0; k < sizeof text - 1; k++)
			text[k] = "ababc"[random() % 5];
		text[sizeof text - 1] = '\0';
		struct vx_masks *m = vx_masks_new((struct vx_strs){v, 3}, NO_STRS);
		char *whole = strdup(masked(m, text, sizeof text));
		for (int k = 0; k < 3; k++)
			assert_null(strstr(whole, strchr(env[k], '=') + 1));
		for (size_t step = 1; step < 40; step += 1 + (size_t)(random() % 5))
			assert_string_equal(masked(m, text, step), whole);
		free(whole);
		vx_masks_free(m);
	}
}

static void head_and_tail_are_kept(void **state)
{
	struct vx_tasklog *l = vx_tasklog_new(NULL);
	struct vx_buf got[2] = {VX_BUF(64 << 20), VX_BUF(64 << 20)};
	static char line[1000];
	uint64_t written = 0;

	(void)state;
	for (uint32_t k = 0; written < 3ULL * (VX_KEEP_HEAD_BYTES + VX_KEEP_TAIL_BYTES); k++) {
		memset(line, 'a' + (int)(k % 26), sizeof line);
		line[sizeof line - 1] = '\n';
		size_t n = 1 + (k * 7919) % (sizeof line - 1);
		vx_tasklog_add(l, 1, line + sizeof line - n, n, NULL, NULL);
		written += n;
		if (k == 0)
			assert_false(vx_tasklog_empty(l));
	}
	assert_int_equal(
		vx_tasklog_cut_bytes(l), written - VX_KEEP_HEAD_BYTES - VX_KEEP_TAIL_BYTES);
	vx_tasklog_each(l, collect, got);
	char note[100];
	snprintf(note, sizeof note, "[vx: %llu bytes of output are left out here",
		(unsigned long long)vx_tasklog_cut_bytes(l));
	char *at = memmem(got[0].data + VX_KEEP_HEAD_BYTES, 200, note, strlen(note));
	assert_non_null(at);
	char *tail = strchr(at, '\n') + 1;
	assert_int_equal(got[0].data + got[0].len - tail, VX_KEEP_TAIL_BYTES);
	assert_memory_equal(got[0].data + got[0].len - 5, line + sizeof line - 5, 5);
	vx_tasklog_clear(l);
	assert_true(vx_tasklog_empty(l));
	assert_int_equal(vx_tasklog_cut_bytes(l), 0);
	vx_buf_free(&got[0]);
	vx_tasklog_free(l);
}

static void fill_random(struct vx_tasklog *l, size_t total)
{
	static char chunk[300000];

	for (size_t k = 0; k < sizeof chunk; k++)
		chunk[k] = (char)('a' + k % 23);
	for (size_t n = 0; n < total;) {
		size_t k = 1 + (size_t)random() % (random() % 4 ? 20 : sizeof chunk - 1);

		vx_tasklog_add(l, 1 + (int)(random() % 2), chunk, k, NULL, NULL);
		n += k;
	}
	vx_tasklog_end(l, NULL, NULL);
}

static void stored_form_replays(void **state)
{
	const size_t sizes[] = {0, 1, 100, 100000, VX_KEEP_HEAD_BYTES + 1000,
		VX_KEEP_HEAD_BYTES + VX_KEEP_TAIL_BYTES + 12345};

	(void)state;
	srandom(2);
	for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
		struct vx_tasklog *l = vx_tasklog_new(NULL);
		struct vx_buf stored = VX_BUF(SIZE_MAX), again = VX_BUF(SIZE_MAX),
			      a = VX_BUF(SIZE_MAX), b = VX_BUF(SIZE_MAX);

		fill_random(l, sizes[k]);
		vx_tasklog_store(l, &stored);
		vx_tasklog_store(l, &again);
		assert_int_equal(stored.len, again.len);
		vx_tasklog_each(l, collect_all, &a);
		assert_int_equal(vx_tasklog_replay(stored.data, stored.len, collect_all, &b), 0);
		assert_int_equal(a.len, b.len);
		if (a.len)
			assert_memory_equal(a.data, b.data, a.len);
		vx_buf_free(&stored);
		vx_buf_free(&again);
		vx_buf_free(&a);
		vx_buf_free(&b);
		vx_tasklog_free(l);
	}
}

/* Neither cut, nor changed, nor random bytes may be read beyond their end, or shown in part. */
static void damaged_forms_are_refused(void **state)
{
	struct vx_tasklog *l = vx_tasklog_new(NULL);
	struct vx_buf stored = VX_BUF(1 << 20), out = VX_BUF(1 << 20);
	unsigned refused = 0;

	(void)state;
	srandom(3);
	for (int k = 0; k < 20; k++)
		vx_tasklog_add(l, 1 + k % 2, "some text\n", 1 + (size_t)k % 10, NULL, NULL);
	vx_tasklog_store(l, &stored);
	for (size_t n = 1; n < stored.len; n++) {
		char *exact = malloc(n); /* so that a sanitizer sees a read too far */

		memcpy(exact, stored.data, n);
		assert_int_equal(vx_tasklog_replay(exact, n, collect_all, &out), -EBADMSG);
		free(exact);
	}
	assert_int_equal(out.len, 0);
	for (int round = 0; round < 20000; round++) {
		char *bad = malloc(stored.len);

		memcpy(bad, stored.data, stored.len);
		for (int k = 1 + (int)(random() % 3); k > 0; k--)
			bad[(size_t)random() % (random() % 2 ? 40 : stored.len)] =
				(char)(random() % 3 ? random() : 0xff);
		vx_buf_clear(&out);
		int r = vx_tasklog_replay(bad, stored.len, collect_all, &out);
		assert_true(r == 0 || (r == -EBADMSG && out.len == 0));
		refused += r != 0;
		free(bad);
	}
	assert_true(refused > 1000);
	assert_int_equal(vx_tasklog_replay("", 0, collect_all, &out), 0);
	vx_buf_free(&stored);
	vx_buf_free(&out);
	vx_tasklog_free(l);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(values_are_hidden),
		cmocka_unit_test(lines_and_overlaps), cmocka_unit_test(streams_are_masked_apart),
		cmocka_unit_test(any_split_is_the_same), cmocka_unit_test(head_and_tail_are_kept),
		cmocka_unit_test(stored_form_replays), cmocka_unit_test(damaged_forms_are_refused)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
