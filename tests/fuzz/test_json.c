/* The JSON reader under random damage: VX_FUZZ_ROUNDS documents (200,000), seed VX_FUZZ_SEED. Run
 * it under `make B=build/asan SAN=address,undefined` as well.
 *
 * What must hold: what is accepted is written in a form that is accepted again and written the
 * same; what is JSON is JSONC with the same value; an error names a line and column inside the
 * text. */
#include "vxtest.h"

#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/json.h"

static uint64_t rng;

static uint32_t below(
	uint32_t n) /* xorshift64 (Marsaglia 2003): repeatable, good enough to damage texts with */
{
	rng ^= rng << 13;
	rng ^= rng >> 7;
	rng ^= rng << 17;
	return n ? (uint32_t)(rng >> 20) % n : 0;
}

static const char *const docs[] = {
	"{\"a\":[1,2.5e3,-0,true,false,null,\"x\\u00e9\\n/\"],\"b\":{\"c\":{}},\"d\":[],\"a\":1}",
	"[[],{},\"\",0,-1.0E-2,\"\\ud83d\\ude00\",\"\\\"\\\\\"]",
	"  {\"k\" : \"v\" , // one\n \"n\":\r\n[ 12345678901234567890 , /* two */ -9223372036854775808, ]}\n",
	"\"\xc3\xa4\xff\"",
};
static const char *const bits[] = {"{", "}", "[", "]", ",", ":", "\"", "\\", "\\u", "0", "1", "-",
	".", "e", "E+", "true", "null", "NaN", " ", "\n", "\t", "//", "/*", "*/", "\x1f", "'",
	"\xef\xbb\xbf", "\\u0000", "\\ud800", "9223372036854775808", "{\"", "\":"};

static void damaged(struct vx_buf *b)
{
	const char *doc = docs[below(VX_ARRAY_LEN(docs))];

	vx_buf_clear(b);
	vx_buf_adds(b, doc);
	for (uint32_t edits = below(5); edits; edits--) {
		char rest[4096];
		size_t at = below((uint32_t)b->len + 1), cut = below(3) ? 0 : below(4);

		if (cut > b->len - at)
			cut = b->len - at;
		size_t n = b->len - at - cut;
		if (n > sizeof rest)
			return;
		memcpy(rest, b->data + at + cut, n);
		b->len = at;
		if (below(4))
			vx_buf_adds(b, bits[below(VX_ARRAY_LEN(bits))]);
		else if (!below(8))
			vx_buf_addc(b, '\0');
		vx_buf_add(b, rest, n);
	}
}

/* The canonical text, or NULL when it was refused. The text is handed over in a block of exactly
 * its size, so that a sanitizer sees a read beyond. */
static const char *canonical(const char *text, size_t n, int flags, struct vx_buf *out)
{
	struct vx_json *v = NULL;
	struct vx_err e = {0};
	char *exact = malloc(n ? n : 1);
	unsigned long line = 0, column = 0;

	memcpy(exact, text, n);
	int r = vx_json_parse(exact, n, flags, "f", &v, &e);
	free(exact);
	vx_buf_clear(out);
	if (r < 0) {
		if (sscanf(e.what, "f:%lu:%lu: ", &line, &column) != 2)
			fail_msg("%s: %.*s", e.what, (int)n, text);
		assert_true(line >= 1 && column >= 1 && line + column <= n + 3);
		return NULL;
	}
	vx_json_write(v, true, out);
	vx_json_free(v);
	return vx_buf_str(out);
}

static void random_damage(void **state)
{
	const char *rounds = getenv("VX_FUZZ_ROUNDS"), *seed = getenv("VX_FUZZ_SEED");
	struct vx_buf text = VX_BUF(4096), a = VX_BUF(1 << 16), b = VX_BUF(1 << 16);
	long accepted = 0, n = rounds ? atol(rounds) : 200000;

	(void)state;
	rng = seed ? strtoull(seed, NULL, 10) * 2 + 1 : 88172645463325252ULL;
	for (long i = 0; i < n; i++) {
		damaged(&text);
		const char *strict = canonical(text.data, text.len, 0, &a);
		const char *lax = canonical(text.data, text.len, VX_JSON_COMMENTS, &b);

		if (strict)
			assert_string_equal(strict, lax);
		if (!lax)
			continue;
		accepted++;
		const char *again = canonical(lax, b.len, 0, &a);
		assert_non_null(again);
		assert_string_equal(again, lax);
	}
	assert_true(accepted > n / 10); /* else the damage is too heavy to say anything */
	vx_buf_free(&text);
	vx_buf_free(&a);
	vx_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_damage)};

	return cmocka_run_group_tests_name("fuzz_json", tests, NULL, NULL);
}
