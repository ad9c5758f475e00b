/* Commands that need no shell, quoting for those that do, and readiness lines. */
#include "vxtest.h"

#include "../../sched/loop/loop.h"

#include <string.h>

static void splits_plain_commands(void **state)
{
	(void)state;
	struct vx_arena a = {0};
	struct vx_strs w;
	assert_true(loop_direct_split("tsc -b  --pretty=false src/a.ts", &a, &w));
	assert_int_equal(w.n, 4);
	assert_string_equal(w.v[0], "tsc");
	assert_string_equal(w.v[2], "--pretty=false");
	assert_true(loop_direct_split("./build.sh", &a, &w));
	assert_int_equal(w.n, 1);
	vx_arena_free(&a);
}

static void leaves_shell_syntax_to_the_shell(void **state)
{
	(void)state;
	struct vx_arena a = {0};
	struct vx_strs w;
	static const char *const shell[] = {
		"",
		" ",
		":",
		"true",
		"echo hi",
		"a && b",
		"a | b",
		"a > b",
		"A=1 b",
		"a $B",
		"a `b`",
		"a 'b'",
		"a \"b\"",
		"a;b",
		"a *",
		"a ?",
		"a [b]",
		"a {b,c}",
		"a ~",
		"a # b",
		"a \\b",
		"! a",
		"cd x",
		"exec x",
		"test -f x",
		"a\nb",
		"a\tb",
		"if x",
		"while x",
		". ./x",
		"source x",
		"time make",
		"printf x",
		"a (b)",
		"a & b",
		"\xc3\xa9",
	};
	for (size_t i = 0; i < sizeof shell / sizeof *shell; i++)
		if (loop_direct_split(shell[i], &a, &w))
			fail_msg("taken apart: %s", shell[i]);
	vx_arena_free(&a);
}

static void quotes_words(void **state)
{
	(void)state;
	static const char *const pairs[][2] = {{"plain", "plain"}, {"", "''"}, {"a b", "'a b'"},
		{"it's", "'it'\\''s'"}, {"$x", "'$x'"}, {"-n", "-n"}, {"a\nb", "'a\nb'"}};
	for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
		struct vx_buf b = VX_BUF(1024);
		loop_shell_quote(pairs[i][0], &b);
		assert_string_equal(vx_buf_str(&b), pairs[i][1]);
		vx_buf_free(&b);
	}
}

static bool feed(const char *pattern, const char *const *chunks)
{
	struct vx_ready *r;
	struct vx_err err = {0};
	bool hit = false;
	assert_int_equal(vx_ready_new(pattern, &r, &err), 0);
	for (; *chunks && !hit; chunks++)
		hit = vx_ready_feed(r, *chunks, strlen(*chunks));
	vx_ready_free(r);
	return hit;
}

static void finds_ready_lines(void **state)
{
	(void)state;
	assert_true(feed(
		"Local:", (const char *const[]){"starting\n", "  Lo", "cal: http://x\n", NULL}));
	assert_true(feed("^ready in \\d+ ms$",
		(const char *const[]){"\x1b[32mready\x1b[0m in 4", "2 ms\r\n", NULL}));
	assert_true(feed(
		"listening", (const char *const[]){"\x1b]0;title\x07listening, no newline", NULL}));
	assert_false(feed("Local:", (const char *const[]){"Lo\n", "cal:\n", NULL}));
	assert_false(feed("^b", (const char *const[]){"ab\n", NULL}));
}

static void refuses_a_broken_expression(void **state)
{
	(void)state;
	struct vx_ready *r = NULL;
	struct vx_err err = {0};
	assert_true(vx_ready_new("a(", &r, &err) < 0);
	assert_null(r);
	assert_non_null(strstr(err.what, "readyWhen \"a(\""));
}

/* `^` stands where words may be appended. */
static void finds_where_a_command_ends(void **state)
{
	(void)state;
	static const char *const t[] = {"a b^", "a b^  ", "a b^\n\n # c\n", "a b^ # c", "a b#c^ #",
		"a b^;", "a b^ & # c", "a; b^", "a && \\\n b^ \\\n", "a\n b c^\n", "a 'b # c'^",
		"a \"$(b \"c\" ')')\"^", "a ${b#c} `d 'e` $((1+(2)))^ # f", "if a; then b; fi; c^",
		"(a); b^ >c^"};
	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		struct vx_buf b = VX_BUF(200);
		size_t at = 0, want = (size_t)(strrchr(t[i], '^') - t[i]), marks = 0;
		for (const char *p = t[i]; *p; p++)
			if (*p != '^')
				vx_buf_addc(&b, *p);
			else
				marks++;
		assert_null(loop_command_end(vx_buf_str(&b), &at));
		assert_int_equal(at, want - (marks - 1));
		vx_buf_free(&b);
	}
}

/* Every beginning of a command that is understood is understood or refused, within its bytes. */
static void hostile_commands_end_too(void **state)
{
	(void)state;
	static const char bytes[] = "ab 'a\"`$(){}[]\\#;&|<>\n=!0";
	uint32_t seed = 3;
	char s[40];
	for (int round = 0; round < 200000; round++) {
		size_t n = 0, at = SIZE_MAX;
		for (; n < sizeof s - 1; n++) {
			seed = seed * 1103515245 + 12345;
			s[n] = bytes[(seed >> 16) % (sizeof bytes)];
			if (!s[n])
				break;
		}
		s[n] = 0;
		if (!loop_command_end(s, &at))
			assert_true(at > 0 && at <= n);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_plain_commands),
		cmocka_unit_test(leaves_shell_syntax_to_the_shell),
		cmocka_unit_test(quotes_words),
		cmocka_unit_test(finds_where_a_command_ends),
		cmocka_unit_test(hostile_commands_end_too),
		cmocka_unit_test(finds_ready_lines),
		cmocka_unit_test(refuses_a_broken_expression),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
