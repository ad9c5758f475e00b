#include "globrel.h"

#include "vx/assert.h"

#include <stdint.h>
#include <string.h>

enum { MAX_PARTS = 64, MAX_TEXT = 1024, MAX_ARMS = 64 };

static uint64_t steps; /* the plan is made by one thread */

uint64_t vx_globrel_steps(void)
{
	return steps;
}

/* One brace-free pattern in components; a literal pattern names its whole tree, so a `**` follows
 * it. */
struct glob {
	char text[MAX_TEXT];
	const char *part[MAX_PARTS + 1];
	int n;
};

static bool is_globstar(const char *p)
{
	return p[0] == '*' && p[1] == '*' && p[2] == '\0';
}

static bool parse(const char *s, struct glob *g)
{
	bool wild = strpbrk(s, "*?") != NULL;
	size_t len = strlen(s);

	steps += len;
	if (len >= sizeof g->text)
		return false;
	memcpy(g->text, s, len + 1);
	g->n = 0;
	for (char *p = g->text; *p;) {
		char *end = p + strcspn(p, "/");
		char stop = *end;
		*end = '\0';
		if (end > p && strcmp(p, ".") != 0) {
			if (g->n == MAX_PARTS)
				return false;
			g->part[g->n++] = p;
		}
		p = end + (stop == '/');
	}
	if (!wild)
		g->part[g->n++] = "**";
	return true;
}

/* Two component patterns of `*`, `?` and bytes: is there a name that matches both? By a table over
 * (bytes of a, bytes of b), row by row. */
static bool parts_meet(const char *a, const char *b)
{
	size_t n = strlen(a), m = strlen(b);
	bool rows[2][MAX_TEXT + 1] = {{true}}, *row = rows[0], *next = rows[1];

	steps += (n + 1) * (m + 1);
	for (size_t i = 0; i <= n; i++) {
		bool star_a = i < n && a[i] == '*';
		memset(next, 0, m + 1);
		for (size_t j = 0; j <= m; j++) {
			bool star_b = j < m && b[j] == '*';
			if (!row[j])
				continue;
			if (j < m && (star_a || star_b))
				row[j + 1] = true;
			if (i < n && (star_a || star_b))
				next[j] = true;
			if (i < n && j < m && !star_a && !star_b &&
				(a[i] == '?' || b[j] == '?' || a[i] == b[j]))
				next[j + 1] = true;
		}
		if (i < n) {
			bool *t = row;
			row = next;
			next = t;
		}
	}
	return row[m];
}

static bool meet_from(const struct glob *a, int i, const struct glob *b, int j, int8_t *memo)
{
	int8_t *m = &memo[i * (MAX_PARTS + 2) + j];

	if (*m)
		return *m > 0;
	bool r;
	if (i == a->n && j == b->n)
		r = true;
	else if (i < a->n && is_globstar(a->part[i]))
		r = meet_from(a, i + 1, b, j, memo) ||
		    (j < b->n && meet_from(a, i, b, j + 1, memo));
	else if (j < b->n && is_globstar(b->part[j]))
		r = meet_from(a, i, b, j + 1, memo) ||
		    (i < a->n && meet_from(a, i + 1, b, j, memo));
	else if (i == a->n || j == b->n)
		r = false;
	else
		r = parts_meet(a->part[i], b->part[j]) && meet_from(a, i + 1, b, j + 1, memo);
	*m = r ? 1 : -1;
	return r;
}

static bool plain_meet(const char *x, const char *y, bool file)
{
	int8_t memo[(MAX_PARTS + 2) * (MAX_PARTS + 2)];
	struct glob a, b;

	if (!parse(x, &a) || !parse(y, &b))
		return true;
	if (file)
		b.n--; /* the tree that a literal stands for */
	memset(memo, 0, sizeof memo);
	return meet_from(&a, 0, &b, 0, memo);
}

/* The first brace group with a comma; NULL when there is none. */
static const char *group(const char *p, const char **ret_close)
{
	for (; *p; p++) {
		int depth = 0;
		bool comma = false;
		if (*p != '{')
			continue;
		for (const char *q = p; *q; q++, steps++) {
			depth += (*q == '{') - (*q == '}');
			comma = comma || (*q == ',' && depth == 1);
			if (depth == 0) {
				*ret_close = q;
				if (comma)
					return p;
				break;
			}
		}
	}
	return NULL;
}

/* Calls `test` for each brace-free form of x. `any`: true as soon as one is true; else true only if
 * all are. Too many or too long: `unsure`. */
struct each {
	bool (*test)(const char *one, const void *arg);
	const void *arg;
	bool any, unsure;
	int arms;
};

static bool each_arm(struct each *e, const char *x)
{
	const char *close, *open = group(x, &close);
	steps++;
	char one[MAX_TEXT];

	if (!open)
		return e->arms++ < MAX_ARMS ? e->test(x, e->arg) : e->unsure;
	int depth = 0;
	const char *arm = open + 1;
	for (const char *q = open; q <= close; q++) {
		if ((*q == ',' && depth == 1) || q == close) {
			size_t head = (size_t)(open - x), mid = (size_t)(q - arm),
			       tail = strlen(close + 1);
			if (head + mid + tail >= sizeof one)
				return e->unsure;
			memcpy(one, x, head);
			memcpy(one + head, arm, mid);
			memcpy(one + head + mid, close + 1, tail + 1);
			if (each_arm(e, one) == e->any)
				return e->any;
			arm = q + 1;
		}
		depth += (*q == '{') - (*q == '}');
	}
	return !e->any;
}

static bool meets_plain(const char *one, const void *arg)
{
	return plain_meet(one, arg, false);
}

static bool takes_file(const char *one, const void *arg)
{
	return plain_meet(one, arg, true);
}

static bool meets(const char *one, const void *arg)
{
	struct each e = {meets_plain, one, true, true, 0};

	return each_arm(&e, arg);
}

static bool is_plain(const char *s)
{
	return *s != '.' && !strstr(s, "//") && !strstr(s, "/.");
}

/* Most pairs differ before the first wildcard: seen without taking anything apart. */
static bool apart_at_once(const char *x, const char *y)
{
	if (!is_plain(x) || !is_plain(y))
		return false;
	steps++;
	while (*x && *y && !strchr("*?{", *x) && !strchr("*?{", *y)) {
		steps++;
		if (*x != *y)
			return true;
		x++;
		y++;
	}
	return false;
}

bool vx_globrel_meet(const char *x, const char *y)
{
	if (apart_at_once(x, y))
		return false;
	struct each e = {meets, y, true, true, 0};

	return each_arm(&e, x);
}

bool vx_globrel_takes(const char *pattern, const char *file)
{
	struct each e = {takes_file, file, true, true, 0};

	return each_arm(&e, pattern);
}

/* Sufficient, not necessary: same text, or `outer` is a whole tree (a literal, or literal + `**`)
 * and x starts with those components literally. */
static bool plain_within(const char *x, const char *outer)
{
	struct glob a, b;

	if (!parse(x, &a) || !parse(outer, &b) || b.n == 0)
		return false;
	int fixed = b.n;
	bool tail = is_globstar(b.part[b.n - 1]);
	if (tail)
		fixed--;
	/* "dist/<two stars>/<star>" takes whole files below dist as well */
	if (!tail && b.n >= 2 && strcmp(b.part[b.n - 1], "*") == 0 &&
		is_globstar(b.part[b.n - 2])) {
		fixed = b.n - 2;
		tail = true;
	}
	if (a.n < fixed || (!tail && a.n != b.n))
		return false;
	for (int i = 0; i < fixed; i++)
		if (strcmp(a.part[i], b.part[i]) != 0)
			return false;
	return true;
}

static bool within_plain(const char *one, const void *arg)
{
	return plain_within(arg, one);
}

static bool within(const char *one, const void *arg)
{
	struct each e = {within_plain, one, true, false, 0};

	return each_arm(&e, arg);
}

bool vx_globrel_within(const char *x, const char *outer)
{
	struct each e = {within, outer, false, false, 0};

	return each_arm(&e, x);
}
