#include "vxtest.h"

#include "vx/buf.h"
#include "vx/err.h"
#include "vx/json.h"
#include "vx/limits.h"

#include <errno.h>
#include <math.h>

static struct vx_json *parse(const char *text, int flags)
{
	struct vx_json *v = NULL;
	struct vx_err e = {0};

	if (vx_json_parse(text, strlen(text), flags, "f.json", &v, &e) != 0)
		fail_msg("%s: %s", text, e.what);
	return v;
}

/* The text, written again. Static. */
static const char *again(const char *text, int flags, bool sorted)
{
	static char out[4096];
	struct vx_buf b = VX_BUF(sizeof out - 1);
	struct vx_json *v = parse(text, flags);

	vx_json_write(v, sorted, &b);
	assert_false(b.overflow);
	strcpy(out, vx_buf_str(&b));
	vx_buf_free(&b);
	vx_json_free(v);
	return out;
}

static void refuse(const char *text, int flags, const char *wanted)
{
	struct vx_json *v = (void *)0x10;
	struct vx_err e = {0};
	int r = vx_json_parse(text, strlen(text), flags, "f.json", &v, &e);

	if (r != -EINVAL)
		fail_msg("accepted: %s", text);
	assert_ptr_equal(v, (void *)0x10); /* untouched */
	assert_int_equal(e.code, r);
	assert_string_equal(e.what, wanted);
}

static void values(void **state)
{
	struct vx_json *v = parse(
		" {\"s\":\"x\\u00e9\\n\", \"i\":-12, \"d\":1.5e3, \"t\":true, \"f\":false, \"n\":null, \"a\":[1,\"two\",[]], \"o\":{}} \r\n",
		0);

	(void)state;
	assert_int_equal(vx_json_type(v), VX_JSON_OBJECT);
	assert_int_equal(vx_json_len(v), 8);
	assert_string_equal(vx_json_str(vx_json_get(v, "s")), "x\xc3\xa9\n");
	assert_int_equal(vx_json_str_len(vx_json_get(v, "s")), 4);
	assert_int_equal(vx_json_int(vx_json_get(v, "i")), -12);
	assert_true(vx_json_double(vx_json_get(v, "d")) == 1500.0);
	assert_true(vx_json_double(vx_json_get(v, "i")) == -12.0);
	assert_int_equal(vx_json_type(vx_json_get(v, "d")), VX_JSON_DOUBLE);
	assert_true(vx_json_bool(vx_json_get(v, "t")));
	assert_false(vx_json_bool(vx_json_get(v, "f")));
	assert_int_equal(vx_json_type(vx_json_get(v, "f")), VX_JSON_BOOL);
	assert_null(vx_json_get(v, "n"));
	assert_true(vx_json_has(v, "n"));
	assert_false(vx_json_has(v, "absent"));
	struct vx_json *a = vx_json_get(v, "a");
	assert_int_equal(vx_json_type(a), VX_JSON_ARRAY);
	assert_int_equal(vx_json_len(a), 3);
	assert_string_equal(vx_json_str(vx_json_at(a, 1)), "two");
	assert_null(vx_json_at(a, 3));
	vx_json_free(v);
}

static void asking_the_wrong_type(void **state)
{
	struct vx_json *v = parse("[\"12\", 1]", 0), *s = vx_json_at(v, 0), *i = vx_json_at(v, 1);

	(void)state;
	assert_int_equal(vx_json_int(s), 0);
	assert_true(vx_json_double(s) == 0);
	assert_false(vx_json_bool(i));
	assert_null(vx_json_str(i));
	assert_int_equal(vx_json_str_len(i), 0);
	assert_int_equal(vx_json_len(i), 0);
	assert_null(vx_json_get(v, "x"));
	assert_null(vx_json_at(s, 0));
	assert_false(vx_json_has(NULL, "x"));
	assert_int_equal(vx_json_type(NULL), VX_JSON_NULL);
	struct vx_json_iter it = vx_json_iter(v);
	assert_false(vx_json_next(&it));
	vx_json_free(v);
	vx_json_free(NULL);
}

static void scalars_and_null_at_the_top(void **state)
{
	(void)state;
	assert_string_equal(again("null", 0, false), "null");
	assert_string_equal(again("12", 0, false), "12");
	assert_string_equal(again("-0", 0, false), "0");
	assert_string_equal(again("\"x\"", 0, false), "\"x\"");
	assert_string_equal(again("1.50", 0, false), "1.50");
}

static void members_in_file_order(void **state)
{
	struct vx_json *v = parse("{\"z\":1,\"a\":2,\"m\":null,\"z\":3}", 0);
	char keys[16] = "";
	int sum = 0;

	(void)state;
	for (struct vx_json_iter it = vx_json_iter(v); vx_json_next(&it);) {
		strcat(keys, it.key);
		sum += (int)vx_json_int(it.val);
	}
	assert_string_equal(keys, "zam");
	assert_int_equal(sum, 5); /* of equal names the last one counts */
	vx_json_free(v);
}

static void strict_json(void **state)
{
	static const char *const t[][2] = {
		{"", "f.json:1:1: expected a value, found the end of the file"},
		{"  \n ", "f.json:2:2: expected a value, found the end of the file"},
		{"{\"a\":1,}", "f.json:1:7: a comma after the last item is not allowed in JSON"},
		{"[1,\n2,\n]", "f.json:2:2: a comma after the last item is not allowed in JSON"},
		{"[1] // c", "f.json:1:5: a comment is not allowed in JSON"},
		{"/* c */ 1", "f.json:1:1: a comment is not allowed in JSON"},
		{"{\"a\":1} x",
			"f.json:1:9: expected the end of the file after the value, found 'x'"},
		{"1 2", "f.json:1:3: expected the end of the file after the value, found '2'"},
		{"{'a':1}", "f.json:1:2: expected a name in double quotes, found '''"},
		{"{a:1}", "f.json:1:2: expected a name in double quotes, found 'a'"},
		{"{\"a\" 1}", "f.json:1:6: expected ':' after the name, found '1'"},
		{"{\"a\":}", "f.json:1:6: expected a value, found '}'"},
		{"{\"a\":1 \"b\":2}",
			"f.json:1:8: expected ',' or '}' after the value, found '\"'"},
		{"[1 2]", "f.json:1:4: expected ',' or ']' after the value, found '2'"},
		{"[1,,2]", "f.json:1:4: expected a value, found ','"},
		{"[,1]", "f.json:1:2: expected a value, found ','"},
		{"{,}", "f.json:1:2: expected a name in double quotes, found ','"},
		{"[1}", "f.json:1:3: expected ',' or ']' after the value, found '}'"},
		{"{\"a\":1",
			"f.json:1:7: expected ',' or '}' after the value, found the end of the file"},
		{"[", "f.json:1:2: expected a value, found the end of the file"},
		{"'x'", "f.json:1:1: a string stands in double quotes, not in single ones"},
		{"NaN", "f.json:1:1: expected a value, found 'N'"},
		{"nan", "f.json:1:1: expected a value, found 'n'"},
		{"Infinity", "f.json:1:1: expected a value, found 'I'"},
		{"-Infinity", "f.json:1:2: expected a digit, found 'I'"},
		{"TRUE", "f.json:1:1: expected a value, found 'T'"},
		{"tru", "f.json:1:1: expected a value, found 't'"},
		{"truex", "f.json:1:5: expected the end of the file after the value, found 'x'"},
		{"01", "f.json:1:1: a number cannot begin with 0"},
		{"-01", "f.json:1:1: a number cannot begin with 0"},
		{"+1", "f.json:1:1: expected a value, found '+'"},
		{".5", "f.json:1:1: expected a value, found '.'"},
		{"1.", "f.json:1:3: expected a digit after the point, found the end of the file"},
		{"1.x", "f.json:1:3: expected a digit after the point, found 'x'"},
		{"1e", "f.json:1:3: expected a digit in the exponent, found the end of the file"},
		{"1e+", "f.json:1:4: expected a digit in the exponent, found the end of the file"},
		{"-", "f.json:1:2: expected a digit, found the end of the file"},
		{"0x10", "f.json:1:2: expected the end of the file after the value, found 'x'"},
		{"\"a", "f.json:1:1: this string has no end"},
		{"\"a\\", "f.json:1:1: this string has no end"},
		{"[\n\"a\nb\"]", "f.json:2:1: this string does not end on its line"},
		{"\"a\tb\"",
			"f.json:1:3: expected an escape such as \\u0000 in place of a control character, found the byte 0x09"},
		{"\"\\x\"",
			"f.json:1:3: expected one of \" \\ / b f n r t u after a backslash, found 'x'"},
		{"\"\\u12g4\"", "f.json:1:2: \\u is not followed by four hexadecimal digits"},
		{"\"\\u12", "f.json:1:2: \\u is not followed by four hexadecimal digits"},
		{"{\"a\\u0000b\":1}", "f.json:1:4: a name cannot hold the character NUL"},
		{"\v1", "f.json:1:1: expected a value, found the byte 0x0b"},
		/* columns count characters */
		{"{\"\xc3\xa4\xc3\xb6\": x}", "f.json:1:8: expected a value, found 'x'"},
		{"\xef\xbb\xbf{x", "f.json:1:2: expected a name in double quotes, found 'x'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++)
		refuse(t[i][0], 0, t[i][1]);
}

static void nul_bytes_are_no_end(void **state)
{
	struct vx_json *v = NULL;
	struct vx_err e = {0};

	(void)state;
	assert_int_equal(vx_json_parse("1\0", 2, 0, "f.json", &v, &e), -EINVAL);
	assert_string_equal(e.what,
		"f.json:1:2: expected the end of the file after the value, found the byte 0x00");
	assert_int_equal(vx_json_parse("\"\\\0\"", 4, 0, "f.json", &v, &e), -EINVAL);
	assert_string_equal(e.what,
		"f.json:1:3: expected one of \" \\ / b f n r t u after a backslash, found the byte 0x00");
	assert_int_equal(vx_json_parse("\"a\0b\"", 5, 0, "f.json", &v, NULL), -EINVAL);
}

static void comments_and_trailing_commas(void **state)
{
	(void)state;
	assert_string_equal(
		again("// first\n{ /* a */ \"a\" /**/ : /* * */ 1, // one\n \"b\": [1, 2, /* end */ ], }\n// last",
			VX_JSON_COMMENTS, false),
		"{\"a\":1,\"b\":[1,2]}");
	assert_string_equal(
		again("{\"url\":\"http://x/*y*/\", \"q\":\"\\\"//\"}", VX_JSON_COMMENTS, false),
		"{\"url\":\"http://x/*y*/\",\"q\":\"\\\"//\"}");
	assert_string_equal(again("[1/**/]", VX_JSON_COMMENTS, false), "[1]");
	refuse("[1,,]", VX_JSON_COMMENTS, "f.json:1:4: expected a value, found ','");
	refuse("[,]", VX_JSON_COMMENTS, "f.json:1:2: expected a value, found ','");
	refuse("{,}", VX_JSON_COMMENTS, "f.json:1:2: expected a name in double quotes, found ','");
	refuse("1,", VX_JSON_COMMENTS,
		"f.json:1:2: expected the end of the file after the value, found ','");
	refuse("/* open", VX_JSON_COMMENTS, "f.json:1:1: this comment has no end");
	refuse("/*/", VX_JSON_COMMENTS, "f.json:1:1: this comment has no end");
	refuse("/ 1", VX_JSON_COMMENTS, "f.json:1:1: expected a value, found '/'");
	refuse("// only", VX_JSON_COMMENTS,
		"f.json:1:8: expected a value, found the end of the file");
	refuse("/* two\nlines */ {\n// x\n  y}", VX_JSON_COMMENTS,
		"f.json:4:3: expected a name in double quotes, found 'y'");
	refuse("1/**/2", VX_JSON_COMMENTS,
		"f.json:1:6: expected the end of the file after the value, found '2'");
}

static void names_that_stand_twice(void **state)
{
	(void)state;
	assert_string_equal(again("{\"a\":1,\"a\":2}", 0, false), "{\"a\":2}");
	refuse("{\"a\":1,\n \"b\":{}, \"a\":2}", VX_JSON_UNIQUE,
		"f.json:2:10: \"a\" stands here a second time in one object");
	refuse("[{\"x\":{\"a\":1,\"ab\":3,\"a\":2}}]", VX_JSON_UNIQUE,
		"f.json:1:21: \"a\" stands here a second time in one object");
	refuse("{\"a\":{\"a\":[{}]},\"a\":[],}", VX_JSON_UNIQUE | VX_JSON_COMMENTS,
		"f.json:1:17: \"a\" stands here a second time in one object");
	assert_string_equal(
		again("{\"a\":{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]}},\"b\":{\"a\":\"a\"}}",
			VX_JSON_UNIQUE, false),
		"{\"a\":{\"a\":{\"a\":[{\"a\":1},{\"a\":1}]}},\"b\":{\"a\":\"a\"}}");
}

static void marks_and_line_ends(void **state)
{
	(void)state;
	assert_string_equal(again("\xef\xbb\xbf{\r\n\"a\":1\r\n}\r\n", 0, false), "{\"a\":1}");
	refuse("{\r\n\"a\":\r\nx}", 0, "f.json:3:1: expected a value, found 'x'");
}

static void big_numbers_keep_their_digits(void **state)
{
	struct vx_json *v = parse(
		"[9223372036854775807,-9223372036854775808,9223372036854775808,123456789012345678901234567890,-9223372036854775809,1e400]",
		0);

	(void)state;
	assert_true(vx_json_int(vx_json_at(v, 0)) == INT64_MAX);
	assert_true(vx_json_int(vx_json_at(v, 1)) == INT64_MIN);
	for (size_t i = 2; i < 6; i++)
		assert_int_equal(vx_json_type(vx_json_at(v, i)), VX_JSON_DOUBLE);
	vx_json_free(v);
	/* Two numbers never become one in a key. */
	assert_string_equal(again("9223372036854775808", 0, true), "9223372036854775808e0");
	assert_string_equal(again("9223372036854775809", 0, true), "9223372036854775809e0");
}

static void depth(void **state)
{
	char text[2 * VX_MAX_JSON_DEPTH + 4];
	struct vx_json *v = NULL;
	struct vx_err e = {0};

	(void)state;
	memset(text, '[', VX_MAX_JSON_DEPTH);
	text[VX_MAX_JSON_DEPTH] = '1';
	memset(text + VX_MAX_JSON_DEPTH + 1, ']', VX_MAX_JSON_DEPTH);
	assert_int_equal(vx_json_parse(text, 2 * VX_MAX_JSON_DEPTH + 1, 0, "f.json", &v, &e), 0);
	vx_json_free(v);
	text[VX_MAX_JSON_DEPTH] = '[';
	assert_int_equal(
		vx_json_parse(text, 2 * VX_MAX_JSON_DEPTH + 1, 0, "f.json", &v, &e), -E2BIG);
	assert_string_equal(e.what, "f.json:1:65: nested deeper than 64 levels");

	size_t n = 1 << 20; /* no recursion: a hostile file costs no stack */
	char *hostile = malloc(n);
	memset(hostile, '[', n);
	assert_int_equal(vx_json_parse(hostile, n, 0, "f.json", &v, NULL), -E2BIG);
	assert_int_equal(
		vx_json_parse(hostile, VX_MAX_CONFIG_BYTES + 1UL, 0, "f.json", &v, &e), -EFBIG);
	assert_string_equal(e.what,
		"f.json: larger than 67108864 bytes, the most a configuration file may have");
	free(hostile);
}

static void strings_of_any_bytes(void **state)
{
	struct vx_json *v =
		parse("[\"\xff\xfe\", \"a\\u0000b\", \"\\ud83d\\ude00\", \"\\ud800\"]", 0);
	struct vx_buf b = VX_BUF(1000);

	(void)state;
	assert_string_equal(vx_json_str(vx_json_at(v, 0)), "\xff\xfe");
	assert_int_equal(vx_json_str_len(vx_json_at(v, 1)), 3);
	assert_memory_equal(vx_json_str(vx_json_at(v, 1)), "a\0b", 4);
	assert_string_equal(vx_json_str(vx_json_at(v, 2)), "\xf0\x9f\x98\x80");
	assert_string_equal(vx_json_str(vx_json_at(v, 3)), "\xef\xbf\xbd");
	vx_json_write(v, false, &b);
	assert_string_equal(vx_buf_str(&b),
		"[\"\xff\xfe\",\"a\\u0000b\",\"\xf0\x9f\x98\x80\",\"\xef\xbf\xbd\"]");
	vx_buf_free(&b);
	vx_json_free(v);
}

/* In a tree bytes stay what they are; a document that leaves the process is UTF-8, and its spelling
 * of other bytes can be told from what was there. */
static void shown_documents_are_utf8(void **state)
{
	static const char *const t[][2] = {
		{"plain", "\"plain\""},
		{"a\xff", "\"a\xef\xbf\xbd"
			  "ff\""},
		{"a\xc3", "\"a\xef\xbf\xbd"
			  "c3\""},
		{"\xc0\xaf", "\"\xef\xbf\xbd"
			     "c0\xef\xbf\xbd"
			     "af\""},
		{"\xed\xa0\x80", "\"\xef\xbf\xbd"
				 "ed\xef\xbf\xbd"
				 "a0\xef\xbf\xbd"
				 "80\""},
		{"\xf4\x90\x80\x80", "\"\xef\xbf\xbd"
				     "f4\xef\xbf\xbd"
				     "90\xef\xbf\xbd"
				     "80\xef\xbf\xbd"
				     "80\""},
		{"\xef\xbf\xbd"
		 "ff",
			"\"\xef\xbf\xbd"
			"ef\xef\xbf\xbd"
			"bf\xef\xbf\xbd"
			"bdff\""},
		{"\xf0\x9f\x98\x80!", "\"\xf0\x9f\x98\x80!\""},
		{"\x1b\x7f\xc2\x9b\xe2\x80\xae", "\"\\u001b\\u007f\\u009b\\u202e\""},
		{"", "\"\""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct vx_json *v = vx_json_new_str(t[i][0]), *o = vx_json_object();
		struct vx_buf b = VX_BUF(1000);

		assert_string_equal(vx_json_str(v), t[i][0]);
		vx_json_write_shown(v, false, &b);
		assert_string_equal(vx_buf_str(&b), t[i][1]);
		vx_buf_clear(&b);
		vx_json_set(o, t[i][0], v); /* names are spelled likewise */
		vx_json_write_shown(o, false, &b);
		assert_int_equal(b.data[0], '{');
		assert_memory_equal(b.data + 1, t[i][1], strlen(t[i][1]));
		vx_buf_free(&b);
		vx_json_free(o);
	}
}

static void canonical_form(void **state)
{
	(void)state;
	assert_string_equal(
		again("{\"b\":{\"z\":1,\"a\":[3,1,{\"y\":0,\"x\":0}]},\"B\":1,\"\xc3\xa4\":2,\"a\":\"/\\/\"}",
			0, true),
		"{\"B\":1,\"a\":\"//\",\"b\":{\"a\":[3,1,{\"x\":0,\"y\":0}],\"z\":1},\"\xc3\xa4\":2}");
	assert_string_equal(again("\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\\\"\\\\\"", 0, true),
		"\"\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\\"\\\\\"");
	assert_string_equal(again("{}", 0, true), "{}");
	assert_string_equal(again("[]", 0, true), "[]");
}

static void building(void **state)
{
	struct vx_json *o = vx_json_object(), *a = vx_json_array();
	struct vx_buf b = VX_BUF(1000);

	(void)state;
	vx_json_add(a, vx_json_new_int(INT64_MIN));
	vx_json_add(a, vx_json_new_double(0.5));
	vx_json_add(a, vx_json_new_double(INFINITY)); /* has no JSON: null */
	vx_json_add(a, NULL);
	vx_json_set(o, "list", a);
	vx_json_set(o, "yes", vx_json_new_bool(true));
	vx_json_set(o, "yes", vx_json_new_str("replaced"));
	vx_json_set(o, "empty", vx_json_object());
	vx_json_write(o, false, &b);
	assert_string_equal(vx_buf_str(&b),
		"{\"list\":[-9223372036854775808,0.5,null,null],\"yes\":\"replaced\",\"empty\":{}}");
	vx_buf_clear(&b);
	vx_json_write_pretty(o, &b);
	assert_string_equal(vx_buf_str(&b),
		"{\n  \"list\": [\n    -9223372036854775808,\n    0.5,\n    null,\n    null\n  ],\n  \"yes\": \"replaced\",\n  \"empty\": {}\n}");
	vx_buf_free(&b);
	vx_json_free(o);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values),
		cmocka_unit_test(asking_the_wrong_type),
		cmocka_unit_test(scalars_and_null_at_the_top),
		cmocka_unit_test(members_in_file_order),
		cmocka_unit_test(strict_json),
		cmocka_unit_test(nul_bytes_are_no_end),
		cmocka_unit_test(comments_and_trailing_commas),
		cmocka_unit_test(names_that_stand_twice),
		cmocka_unit_test(marks_and_line_ends),
		cmocka_unit_test(big_numbers_keep_their_digits),
		cmocka_unit_test(depth),
		cmocka_unit_test(strings_of_any_bytes),
		cmocka_unit_test(shown_documents_are_utf8),
		cmocka_unit_test(canonical_form),
		cmocka_unit_test(building),
	};

	return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
