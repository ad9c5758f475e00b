/* text and secret: what reaches a terminal or a reader's file. */
#include "vxtest.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/secret.h"
#include "vx/text.h"

#define STRS(...)                                             \
	((struct vx_strs){(const char *const[]){__VA_ARGS__}, \
		sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)})
#define NO_STRS ((struct vx_strs){NULL, 0})

static struct vx_buf b = VX_BUF(1 << 20);

static const char *text(const char *s)
{
	vx_buf_clear(&b);
	vx_text_add(&b, s, strlen(s));
	return vx_buf_str(&b);
}

static void what_a_terminal_obeys_is_escaped(void **state)
{
	static const char *const t[][2] = {
		{"plain \xc3\xa9 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \\n",
			"plain \xc3\xa9 \xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x92\xbb \\n"},
		{"a\tb", "a b"},
		{"\x1b[2J", "\\x1b[2J"},
		{"a\nb\rc", "a\\nb\\rc"},
		{"\a\b\x7f", "\\x07\\x08\\x7f"},
		{"\xc2\x9b"
		 "2J",
			"\\u009b2J"}, /* C1 */
		{"\x9b"
		 "2J",
			"\\x9b2J"}, /* the same, not UTF-8 */
		{"\xe2\x80\xae"
		 "gpj.exe",
			"\\u202egpj.exe"},
		{"\xe2\x81\xa6x\xe2\x81\xa9", "\\u2066x\\u2069"},
		{"\xd8\x9c\xe2\x80\x8f", "\\u061c\\u200f"},
		{"\xe2\x80\xa8\xe2\x80\xa9", "\\u2028\\u2029"},
		{"\xef\xbb\xbf\xe2\x80\x8b", "\\ufeff\\u200b"},
		{"\xf3\xa0\x81\x81", "\\U000e0041"}, /* a tag */
		{"a\xff\xc3", "a\\xff\\xc3"},
		{"\xe0\x80\x9b", "\\xe0\\x80\\x9b"}, /* an overlong form */
		{"", ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		assert_string_equal(text(t[i][0]), t[i][1]);
}

/* Whatever the bytes: what comes out is UTF-8 without anything that was to be escaped, and printing
 * it again changes nothing. */
static void no_bytes_get_through(void **state)
{
	uint32_t seed = 7;
	char in[64];

	(void)state;
	for (int round = 0; round < 20000; round++) {
		static const char odd[] =
			"\x1b\x9b\xc2\xe2\x80\xae\x7f\n\r\x07 a[2J\xef\xbb\xbf\xf3\xa0\x81";
		size_t n = 0;
		for (; n < sizeof in - 1; n++) {
			seed = seed * 1103515245 + 12345;
			in[n] = (seed >> 16) % 4 ? odd[(seed >> 18) % (sizeof odd - 1)]
						 : (char)(seed >> 20 | 1);
			if (!in[n])
				break;
		}
		in[n] = 0;
		char *once = vx_xstrdup(text(in));
		for (const unsigned char *p = (const unsigned char *)once; *p;) {
			size_t k = vx_utf8_len(p, strlen((const char *)p));
			assert_true(k > 0);
			assert_true(*p >= 0x20 && *p != 0x7f);
			assert_false(k == 2 && p[0] == 0xc2 && p[1] < 0xa0);
			p += k;
		}
		assert_string_equal(text(once), once);
		free(once);
	}
}

static void a_call_is_a_line(void **state)
{
	(void)state;
	vx_buf_clear(&b);
	vx_text_printf(&b, "\n%s: %s\n", "a\nb", "c\n");
	assert_string_equal(vx_buf_str(&b), "\na\\nb: c\\n\n");
	vx_buf_clear(&b);
	vx_text_printf(&b, "\n");
	vx_text_printf(&b, "%s", "");
	assert_string_equal(vx_buf_str(&b), "\n");
}

static void a_terminal_without_utf8(void **state)
{
	(void)state;
	assert_false(vx_text_locale((const char *const[]){"LANG=de_DE.ISO-8859-1", NULL}));
	assert_string_equal(text("\xc3\x9b"
				 "2J"),
		"\\u00db2J"); /* 0x9b is CSI there */
	assert_true(vx_text_locale((const char *const[]){"LC_ALL=C", "LANG=de_DE", NULL}));
	assert_string_equal(text("\xc3\x9b"), "\xc3\x9b");
	assert_true(vx_text_locale((const char *const[]){NULL}));
}

static const char *masked(const char *s)
{
	vx_buf_clear(&b);
	vx_secrets_mask(&b, s, strlen(s));
	return vx_buf_str(&b);
}

static void secret_names(void **state)
{
	(void)state;
	assert_true(vx_secret_name("API_TOKEN", 9, NO_STRS));
	assert_true(vx_secret_name("my_secret", 9, NO_STRS));
	assert_true(vx_secret_name("Passwd", 6, NO_STRS));
	assert_true(vx_secret_name("AWSCREDENTIALS", 14, NO_STRS));
	assert_false(vx_secret_name("PLAIN", 5, NO_STRS));
	assert_false(vx_secret_name("npm_package_keywords_0", 22, NO_STRS));
	assert_true(vx_secret_name("npm_package_keywords_0", 22, STRS("npm_package_keywords_0")));
	assert_false(vx_secret_name("TURBO_CI_VENDOR_ENV_KEY", 23, NO_STRS));
	assert_true(vx_secret_name("TURBO_CI_VENDOR_ENV_KEYS", 24, NO_STRS));
	assert_false(vx_secret_name("PLA", 3, STRS("PLAIN")));
	assert_true(vx_secret_name("PLAIN", 5, STRS("PLAIN")));
}

/* The process learns more as the plan is made; a value is found however a writer spells it. */
static void every_spelling_is_masked(void **state)
{
	(void)state;
	assert_string_equal(masked("say s3cr\"et<& now"), "say s3cr\"et<& now");
	vx_secrets_learn(STRS("A_TOKEN=s3cr\"et<&", "PLAIN=visible", "DECLARED=it's hidden",
				 "PEM_KEY=first line\nsecond\\line\n", "B_TOKEN=short"),
		STRS("DECLARED"));
	assert_string_equal(masked("say s3cr\"et<& now"), "say *** now");
	assert_string_equal(masked("{\"x\":\"s3cr\\\"et<&\"}"), "{\"x\":\"***\"}");
	assert_string_equal(masked("s3cr&quot;et&lt;&amp;"), "***");
	assert_string_equal(masked("?q=s3cr%22et%3C%26&r"), "?q=***&r");
	assert_string_equal(masked("'it'\\''s hidden'"), "'***'");
	assert_string_equal(masked("[first line] [second\\line]"), "[***] [***]");
	assert_string_equal(masked("\"first line\\nsecond\\\\line\""), "\"***\"");
	assert_string_equal(masked("visible and short"), "visible and short");
	assert_true(vx_secrets_in("xx it's hidden", 14));
	assert_false(vx_secrets_in("xx it's hidde", 13));
	/* masking comes before escaping, in a line and in JSON */
	assert_string_equal(text("first line\nsecond\\line!"), "***!");
	vx_buf_clear(&b);
	vx_text_json(&b, "<s3cr\"et<&>", 11, true);
	assert_string_equal(vx_buf_str(&b), "\"\\u003c***>\"");
}

static void masks_that_overlap_are_one(void **state)
{
	(void)state;
	vx_secrets_learn(STRS("K1_KEY=abcdefgh", "K2_KEY=efghijkl"), NO_STRS);
	assert_string_equal(masked("-abcdefghijkl-"), "-***-");
	assert_string_equal(masked("abcdefghabcdefgh"), "******");
	assert_string_equal(masked("abcdefg"), "abcdefg");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_terminal_obeys_is_escaped),
		cmocka_unit_test(no_bytes_get_through),
		cmocka_unit_test(a_call_is_a_line),
		cmocka_unit_test(a_terminal_without_utf8),
		cmocka_unit_test(secret_names),
		cmocka_unit_test(every_spelling_is_masked),
		cmocka_unit_test(masks_that_overlap_are_one),
	};

	const char *tap = getenv("CMOCKA_MESSAGE_OUTPUT");

	clearenv(); /* no secret of whoever runs this */
	if (tap)
		setenv("CMOCKA_MESSAGE_OUTPUT", tap, 1);
	int r = cmocka_run_group_tests_name("text", tests, NULL, NULL);
	vx_buf_free(&b);
	return r;
}
