#include "jsonscan.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/json.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct scan {
	const char *text, *at, *end;
	int flags;
	const char *where;
	struct vx_buf *clean;
	struct vx_err *err;
	uint32_t n_values;
	char nest[VX_MAX_JSON_DEPTH]; /* '{' or '[', from the outside */
	int depth;
	/* With VX_JSON_UNIQUE the names of every object that is open, those of the innermost
	 * last. */
	struct name *names;
	size_t n_names, cap_names, first_name[VX_MAX_JSON_DEPTH];
};

struct name {
	const char *at; /* its opening quote */
	size_t n;
};

/* What stands at `at`, for a message. */
static void describe(const struct scan *s, const char *at, char *ret, size_t cap)
{
	unsigned char c = at < s->end ? (unsigned char)*at : 0;

	if (at >= s->end)
		snprintf(ret, cap, "the end of the file");
	else if (c == '\n' || c == '\r')
		snprintf(ret, cap, "the end of the line");
	else if (c < 0x20 || c >= 0x7f)
		snprintf(ret, cap, "the byte 0x%02x", c);
	else
		snprintf(ret, cap, "'%c'", c);
}

static void line_and_column(const struct scan *s, const char *at, size_t *line, size_t *column)
{
	*line = 1;
	*column = 1;
	for (const char *p = s->text; p < at; p++) {
		if (*p == '\n') {
			++*line;
			*column = 1;
		} else if (((unsigned char)*p & 0xc0) != 0x80) {
			/* characters, not bytes, as editors count */
			++*column;
		}
	}
}

static int bad(struct scan *s, const char *at, const char *wanted)
{
	char found[48];
	size_t line, column;

	describe(s, at, found, sizeof found);
	line_and_column(s, at, &line, &column);
	return vx_err_set(s->err, -EINVAL, "%s:%zu:%zu: expected %s, found %s", s->where, line,
		column, wanted, found);
}

static int not_json(struct scan *s, const char *at, const char *what, const char *fix)
{
	size_t line, column;

	line_and_column(s, at, &line, &column);
	int r = vx_err_set(s->err, -EINVAL, "%s:%zu:%zu: %s", s->where, line, column, what);
	if (fix)
		vx_err_fix(s->err, "%s", fix);
	return r;
}

/* A value or a member's name begins. */
static int count_value(struct scan *s)
{
	if (++s->n_values <= VX_MAX_JSON_VALUES)
		return 0;
	return vx_err_set(s->err, -E2BIG, "%s: more than %u values, the most a document may have",
		s->where, VX_MAX_JSON_VALUES);
}

static int comment(struct scan *s)
{
	const char *start = s->at;

	if (!(s->flags & VX_JSON_COMMENTS))
		return not_json(s, start, "a comment is not allowed in JSON", "remove the comment");
	if (s->end - s->at > 1 && s->at[1] == '/') {
		while (s->at < s->end && *s->at != '\n')
			s->at++;
		return 0;
	}
	if (s->end - s->at > 1 && s->at[1] == '*') {
		for (s->at += 2; s->end - s->at > 1; s->at++)
			if (s->at[0] == '*' && s->at[1] == '/') {
				s->at += 2;
				return 0;
			}
		return not_json(s, start, "this comment has no end", "close it with */");
	}
	return bad(s, start, "a value");
}

/* Blanks and comments. */
static int blanks(struct scan *s)
{
	while (s->at < s->end) {
		char c = *s->at;

		if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
			s->at++;
		} else if (c == '/') {
			int r = comment(s);
			if (r < 0)
				return r;
		} else {
			break;
		}
	}
	return 0;
}

static int hex4(const char *p, const char *end)
{
	int v = 0;

	for (int i = 0; i < 4; i++) {
		char c = p + i < end ? p[i] : 0;

		if (c >= '0' && c <= '9')
			v = v * 16 + c - '0';
		else if ((c | 32) >= 'a' && (c | 32) <= 'f')
			v = v * 16 + (c | 32) - 'a' + 10;
		else
			return -1;
	}
	return v;
}

/* s->at stands at the opening quote. Names of members are C strings further on, so they hold no
 * NUL. */
static int string(struct scan *s, int is_name)
{
	const char *start = s->at, *p = start + 1;

	for (; p < s->end && *p != '"'; p++) {
		if ((unsigned char)*p < 0x20) {
			s->at = p;
			if (*p == '\n' || *p == '\r')
				return not_json(s, start, "this string does not end on its line",
					"close it with \", or write \\n for a line break");
			return bad(
				s, p, "an escape such as \\u0000 in place of a control character");
		}
		if (*p != '\\')
			continue;
		p++;
		if (p >= s->end)
			break;
		if (*p == 'u') {
			int v = hex4(p + 1, s->end);
			if (v < 0)
				return not_json(s, p - 1,
					"\\u is not followed by four hexadecimal digits", NULL);
			if (v == 0 && is_name)
				return not_json(
					s, p - 1, "a name cannot hold the character NUL", NULL);
			p += 4;
		} else if (!*p || !strchr("\"\\/bfnrt", *p)) { /* strchr finds the NUL as well */
			return bad(s, p, "one of \" \\ / b f n r t u after a backslash");
		}
	}
	if (p >= s->end)
		return not_json(s, start, "this string has no end", "close it with \"");
	s->at = p + 1;
	vx_buf_add(s->clean, start, (size_t)(s->at - start));
	return 0;
}

static const char *skip_digits(const char *p, const char *end)
{
	while (p < end && *p >= '0' && *p <= '9')
		p++;
	return p;
}

/* Does this integer's text fit an int64_t? Leading zeros were refused before. */
static int fits_int64(const char *p, size_t n)
{
	static const char max[] = "9223372036854775807", min[] = "9223372036854775808";
	int negative = *p == '-';

	p += negative;
	n -= (size_t)negative;
	return n < sizeof max - 1 ||
	       (n == sizeof max - 1 && memcmp(p, negative ? min : max, n) <= 0);
}

static int number(struct scan *s)
{
	const char *start = s->at, *p = start + (*start == '-'), *q = skip_digits(p, s->end);
	int integer = 1;

	if (q == p)
		return bad(s, p, "a digit");
	if (*p == '0' && q - p > 1)
		return not_json(
			s, start, "a number cannot begin with 0", "remove the leading zero");
	if (q < s->end && *q == '.') {
		integer = 0;
		p = q + 1;
		q = skip_digits(p, s->end);
		if (q == p)
			return bad(s, p, "a digit after the point");
	}
	if (q < s->end && (*q == 'e' || *q == 'E')) {
		integer = 0;
		p = q + 1;
		if (p < s->end && (*p == '+' || *p == '-'))
			p++;
		q = skip_digits(p, s->end);
		if (q == p)
			return bad(s, p, "a digit in the exponent");
	}
	s->at = q;
	vx_buf_add(s->clean, start, (size_t)(q - start));
	if (integer && !fits_int64(start, (size_t)(q - start)))
		vx_buf_adds(s->clean, "e0");
	return 0;
}

static int word(struct scan *s)
{
	static const char *const words[] = {"true", "false", "null"};

	for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
		size_t n = strlen(words[i]);

		if ((size_t)(s->end - s->at) >= n && memcmp(s->at, words[i], n) == 0) {
			vx_buf_add(s->clean, s->at, n);
			s->at += n;
			return 0;
		}
	}
	return bad(s, s->at, "a value");
}

static int scalar(struct scan *s)
{
	char c = s->at < s->end ? *s->at : 0;

	if (c == '"')
		return string(s, 0);
	if (c == '-' || (c >= '0' && c <= '9'))
		return number(s);
	if (c == '\'')
		return not_json(s, s->at, "a string stands in double quotes, not in single ones",
			"write \"...\"");
	return word(s);
}

static void note_name(struct scan *s, const char *at)
{
	if (!(s->flags & VX_JSON_UNIQUE))
		return;
	if (s->n_names == s->cap_names) {
		s->cap_names = s->cap_names ? 2 * s->cap_names : 64;
		s->names = vx_xrealloc(s->names, s->cap_names * sizeof *s->names);
	}
	s->names[s->n_names++] = (struct name){at, (size_t)(s->at - at)};
}

/* By text, and equal ones in the order of the file. */
static int by_name(const void *x, const void *y)
{
	const struct name *a = x, *b = y;
	int r = memcmp(a->at, b->at, a->n < b->n ? a->n : b->n);

	if (r == 0 && a->n != b->n)
		r = a->n < b->n ? -1 : 1;
	return r ? r : a->at < b->at ? -1 : a->at > b->at;
}

/* An object ends: a name that it has twice would lose its first value without a word. (One that is
 * spelled differently by escapes does.) */
static int check_names(struct scan *s)
{
	size_t first = s->first_name[s->depth - 1], n = s->n_names - first;
	struct name *names = s->names + first;
	char what[160];

	if (s->nest[s->depth - 1] != '{' || n < 2)
		return 0;
	qsort(names, n, sizeof *names, by_name);
	for (size_t i = 1; i < n; i++) {
		if (names[i].n != names[i - 1].n ||
			memcmp(names[i].at, names[i - 1].at, names[i].n) != 0)
			continue;
		snprintf(what, sizeof what, "%.*s stands here a second time in one object",
			names[i].n > 100 ? 100 : (int)names[i].n, names[i].at);
		return not_json(s, names[i].at, what, "keep one of the two");
	}
	return 0;
}

static int close_nest(struct scan *s)
{
	int r = s->flags & VX_JSON_UNIQUE ? check_names(s) : 0;

	vx_buf_addc(s->clean, *s->at++);
	s->depth--;
	s->n_names = s->first_name[s->depth];
	return r;
}

static int member_name(struct scan *s)
{
	const char *at = s->at;

	if (s->at >= s->end || *s->at != '"')
		return bad(s, s->at, "a name in double quotes");

	int r = string(s, 1);
	if (r == 0)
		note_name(s, at);
	if (r < 0)
		return r;
	r = blanks(s);
	if (r < 0)
		return r;
	if (s->at >= s->end || *s->at != ':')
		return bad(s, s->at, "':' after the name");
	vx_buf_addc(s->clean, *s->at++);
	return 0;
}

static int open_nest(struct scan *s)
{
	if (s->depth == VX_MAX_JSON_DEPTH) {
		size_t line, column;

		line_and_column(s, s->at, &line, &column);
		return vx_err_set(s->err, -E2BIG, "%s:%zu:%zu: nested deeper than %d levels",
			s->where, line, column, VX_MAX_JSON_DEPTH);
	}
	s->first_name[s->depth] = s->n_names;
	s->nest[s->depth++] = *s->at;
	vx_buf_addc(s->clean, *s->at++);
	return 0;
}

/* After a value: closes what ends here, and stops in front of the next value or at the end. Returns
 * 1 when the outermost value is complete. */
static int after_value(struct scan *s)
{
	for (;;) {
		int r = blanks(s);

		if (r < 0)
			return r;
		if (!s->depth)
			return 1;

		char open = s->nest[s->depth - 1], close = open == '{' ? '}' : ']',
		     c = s->at < s->end ? *s->at : 0;
		if (c == close) {
			r = close_nest(s);
			if (r < 0)
				return r;
			continue;
		}
		if (c != ',')
			return bad(s, s->at,
				open == '{' ? "',' or '}' after the value"
					    : "',' or ']' after the value");

		const char *comma = s->at++;
		r = blanks(s);
		if (r < 0)
			return r;
		if (s->at < s->end && *s->at == close) {
			if (!(s->flags & VX_JSON_COMMENTS))
				return not_json(s, comma,
					"a comma after the last item is not allowed in JSON",
					"remove the comma");
			continue;
		}
		vx_buf_addc(s->clean, ',');
		return 0;
	}
}

/* s->at stands where a value (inside an object: a member) must begin. Without recursion, so hostile
 * nesting costs no stack. */
static int values(struct scan *s)
{
	for (;;) {
		int r = blanks(s);

		if (r == 0)
			r = count_value(s);
		if (r == 0 && s->depth && s->nest[s->depth - 1] == '{') {
			r = member_name(s);
			if (r == 0)
				r = blanks(s);
		}
		if (r < 0)
			return r;
		if (s->at < s->end && (*s->at == '{' || *s->at == '[')) {
			char close = *s->at == '{' ? '}' : ']';

			r = open_nest(s);
			if (r == 0)
				r = blanks(s);
			if (r < 0)
				return r;
			if (s->at >= s->end || *s->at != close)
				continue;
			r = close_nest(s);
		} else {
			r = scalar(s);
		}
		if (r < 0)
			return r;
		r = after_value(s);
		if (r != 0)
			return r;
	}
}

int vx_jsonscan(const char *text, size_t n, int flags, const char *where, struct vx_buf *clean,
	struct vx_err *err)
{
	struct scan s = {.text = text,
		.at = text,
		.end = text + n,
		.flags = flags,
		.where = where,
		.clean = clean,
		.err = err};

	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) {
		s.text += 3;
		s.at += 3;
	}

	int r = values(&s);
	free(s.names);
	if (r < 0)
		return r;
	if (s.at < s.end)
		return bad(&s, s.at, "the end of the file after the value");
	if (clean->overflow)
		return vx_err_set(err, -EFBIG, "%s: larger than %zu bytes", where, clean->max);
	return 0;
}
