/* Semantic versions and npm's ranges, after https://semver.org 2.0.0 and the grammar in
 * node-semver's README ("Range Grammar", "Prerelease Tags"). */
#include "semver.h"

#include "vx/workspace.h"

#include <stdint.h>
#include <string.h>

enum { MAX_COMPARATORS = 512, MAX_RANGE_BYTES = 4096 };

/* A parsed version; the prerelease is borrowed text. parts: how many of major.minor.patch were
 * given (fewer, or an x, in a range only). */
struct ver {
	uint64_t n[3];
	int parts;
	const char *pre;
	size_t pre_len;
};

enum op { OP_LT, OP_LE, OP_GT, OP_GE, OP_EQ };

struct cmp {
	enum op op;
	struct ver v;
};

struct set {
	struct cmp c[MAX_COMPARATORS];
	int n;
	bool never; /* "<0.0.0-0" and the like: matches nothing */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_ident(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
}

/* Dot-separated identifiers; a numeric one has no leading zero where `strict`. Returns the end,
 * NULL when malformed. */
static const char *idents(const char *p, bool strict)
{
	for (;;) {
		const char *s = p;
		bool digits = true;
		while (is_ident(*p))
			digits = is_digit(*p++) && digits;
		if (p == s || (strict && digits && p - s > 1 && *s == '0'))
			return NULL;
		if (*p != '.')
			return p;
		p++;
	}
}

/* A number without leading zeros that a double holds exactly (node-semver's bound), or an x.
 * Returns the end; *ret_x for x, X and *. */
static const char *number(const char *p, uint64_t *ret, bool *ret_x)
{
	if (*p == 'x' || *p == 'X' || *p == '*') {
		*ret_x = true;
		return p + 1;
	}
	if (!is_digit(*p) || (*p == '0' && is_digit(p[1])))
		return NULL;
	uint64_t n = 0;
	for (; is_digit(*p); p++) {
		n = n * 10 + (uint64_t)(*p - '0');
		if (n > 9007199254740991ULL)
			return NULL;
	}
	*ret = n;
	*ret_x = false;
	return p;
}

/* [v=]* MAJOR[.MINOR[.PATCH[-PRE][+BUILD]]], x anywhere. Returns the end or NULL. */
static const char *partial(const char *p, struct ver *ret)
{
	struct ver v = {{0, 0, 0}, 0, NULL, 0};
	bool x_seen = false;

	while (*p == 'v' || *p == '=' || is_blank(*p))
		p++;
	for (int i = 0; i < 3; i++) {
		bool x;
		if (i > 0) {
			if (*p != '.')
				break;
			p++;
		}
		p = number(p, &v.n[i], &x);
		if (!p)
			return NULL;
		if (x)
			v.n[i] = 0;
		x_seen = x_seen || x;
		if (!x_seen)
			v.parts = i + 1;
		else
			v.n[i] = 0;
		if (i < 2)
			continue;
		if (*p == '-') {
			const char *e = idents(p + 1, true);
			if (!e)
				return NULL;
			v.pre = p + 1;
			v.pre_len = (size_t)(e - v.pre);
			p = e;
		}
		if (*p == '+') {
			p = idents(p + 1, false);
			if (!p)
				return NULL;
		}
	}
	if (v.parts < 3)
		v.pre = NULL, v.pre_len = 0;
	*ret = v;
	return p;
}

static int cmp_ident(const char *a, size_t an, const char *b, size_t bn)
{
	bool ad = true, bd = true;

	for (size_t i = 0; i < an; i++)
		ad = ad && is_digit(a[i]);
	for (size_t i = 0; i < bn; i++)
		bd = bd && is_digit(b[i]);
	if (ad && bd) {
		if (an != bn) /* no leading zeros: longer is larger */
			return an < bn ? -1 : 1;
		return memcmp(a, b, an);
	}
	if (ad != bd)
		return ad ? -1 : 1;
	int c = memcmp(a, b, an < bn ? an : bn);
	return c ? c : (an > bn) - (an < bn);
}

static int cmp_pre(const struct ver *a, const struct ver *b)
{
	if (!a->pre || !b->pre)
		return (a->pre == NULL) - (b->pre == NULL);
	const char *p = a->pre, *q = b->pre, *pe = p + a->pre_len, *qe = q + b->pre_len;
	for (;;) {
		const char *pd = memchr(p, '.', (size_t)(pe - p)),
			   *qd = memchr(q, '.', (size_t)(qe - q));
		int c = cmp_ident(p, (size_t)((pd ? pd : pe) - p), q, (size_t)((qd ? qd : qe) - q));
		if (c)
			return c;
		if (!pd || !qd)
			return (pd != NULL) - (qd != NULL);
		p = pd + 1;
		q = qd + 1;
	}
}

static int cmp_ver(const struct ver *a, const struct ver *b)
{
	for (int i = 0; i < 3; i++)
		if (a->n[i] != b->n[i])
			return a->n[i] < b->n[i] ? -1 : 1;
	return cmp_pre(a, b);
}

static bool push(struct set *s, enum op op, const struct ver *v)
{
	if (s->n == MAX_COMPARATORS)
		return false;
	s->c[s->n++] = (struct cmp){op, *v};
	return true;
}

/* >= lo and < (hi)-0: the upper bound leaves out the prereleases of hi too. */
static bool push_range(struct set *s, const struct ver *lo, uint64_t a, uint64_t b, uint64_t c)
{
	struct ver hi = {{a, b, c}, 3, "0", 1};
	return push(s, OP_GE, lo) && push(s, OP_LT, &hi);
}

static bool add_caret(struct set *s, const struct ver *v)
{
	if (v->parts == 0)
		return true;
	if (v->n[0] > 0 || v->parts == 1)
		return push_range(s, v, v->n[0] + 1, 0, 0);
	if (v->n[1] > 0 || v->parts == 2)
		return push_range(s, v, 0, v->n[1] + 1, 0);
	return push_range(s, v, 0, 0, v->n[2] + 1);
}

static bool add_tilde(struct set *s, const struct ver *v)
{
	if (v->parts == 0)
		return true;
	return v->parts == 1 ? push_range(s, v, v->n[0] + 1, 0, 0)
			     : push_range(s, v, v->n[0], v->n[1] + 1, 0);
}

/* The first version beyond every match of a partial one: 1 -> 2.0.0, 1.2 -> 1.3.0. */
static struct ver beyond(const struct ver *v)
{
	struct ver r = {{v->n[0], v->n[1], 0}, 3, NULL, 0};

	if (v->parts == 1) {
		r.n[0]++;
		r.n[1] = 0;
	} else {
		r.n[1]++;
	}
	return r;
}

static bool add_simple(struct set *s, enum op op, const struct ver *v)
{
	struct ver lo = *v, hi = beyond(v);

	lo.parts = 3;
	if (v->parts == 3)
		return push(s, op, v);
	if (v->parts == 0) {
		if (op == OP_LT || op == OP_GT)
			s->never = true;
		return true;
	}
	switch (op) {
	case OP_EQ:
		return push_range(s, &lo, hi.n[0], hi.n[1], 0);
	case OP_GT:
		return push(s, OP_GE, &hi);
	case OP_GE:
		return push(s, OP_GE, &lo);
	case OP_LT:
		lo.pre = "0", lo.pre_len = 1;
		return push(s, OP_LT, &lo);
	case OP_LE:
		hi.pre = "0", hi.pre_len = 1;
		return push(s, OP_LT, &hi);
	}
	return false;
}

static bool add_hyphen(struct set *s, const struct ver *from, const struct ver *to)
{
	return (from->parts == 0 || add_simple(s, OP_GE, from)) &&
	       (to->parts == 0 || add_simple(s, OP_LE, to));
}

/* One comparator at p, blanks allowed after its operator. Returns the end, NULL when malformed. */
static const char *comparator(const char *p, struct set *s)
{
	struct ver v;
	bool ok;
	char c = *p;
	enum op op = OP_EQ;

	if (c == '^' || c == '~') {
		p++;
		if (c == '~' && *p == '>')
			p++;
		p = partial(p, &v);
		ok = p && (c == '^' ? add_caret(s, &v) : add_tilde(s, &v));
		return ok ? p : NULL;
	}
	if (c == '<' || c == '>') {
		p++;
		op = c == '<' ? OP_LT : OP_GT;
		if (*p == '=') {
			op = c == '<' ? OP_LE : OP_GE;
			p++;
		}
	}
	p = partial(p, &v);
	return p && add_simple(s, op, &v) ? p : NULL;
}

/* A hyphen range "A - B" filling the whole alternative. 1 yes, 0 no, -1 malformed. */
static int hyphen(const char *p, const char *end, struct set *s)
{
	struct ver from, to;

	for (const char *q = p; q + 2 < end; q++) {
		if (q > p && is_blank(q[-1]) && q[0] == '-' && is_blank(q[1])) {
			const char *e = partial(p, &from);
			while (e && e < q && is_blank(*e))
				e++;
			if (e != q)
				return -1;
			for (q++; is_blank(*q); q++)
				;
			e = partial(q, &to);
			while (e && e < end && is_blank(*e))
				e++;
			return e == end && add_hyphen(s, &from, &to) ? 1 : -1;
		}
	}
	return 0;
}

/* One alternative of a range. false: malformed. */
static bool parse_set(const char *p, const char *end, struct set *s)
{
	s->n = 0;
	s->never = false;
	while (p < end && is_blank(*p))
		p++;
	int h = hyphen(p, end, s);
	if (h)
		return h > 0;
	while (p < end) {
		const char *e = comparator(p, s);
		if (!e || e > end)
			return false;
		if (e < end && !is_blank(*e))
			return false;
		for (p = e; p < end && is_blank(*p);)
			p++;
	}
	return true;
}

static bool set_holds(const struct set *s, const struct ver *v)
{
	if (s->never)
		return false;
	for (int i = 0; i < s->n; i++) {
		int c = cmp_ver(v, &s->c[i].v);
		bool ok = false;
		switch (s->c[i].op) {
		case OP_LT:
			ok = c < 0;
			break;
		case OP_LE:
			ok = c <= 0;
			break;
		case OP_GT:
			ok = c > 0;
			break;
		case OP_GE:
			ok = c >= 0;
			break;
		case OP_EQ:
			ok = c == 0;
			break;
		}
		if (!ok)
			return false;
	}
	if (!v->pre)
		return true;
	/* A prerelease is taken only by a set that names a prerelease of the very same
	 * major.minor.patch. */
	for (int i = 0; i < s->n; i++) {
		const struct ver *w = &s->c[i].v;
		if (w->pre && w->n[0] == v->n[0] && w->n[1] == v->n[1] && w->n[2] == v->n[2])
			return true;
	}
	return false;
}

static bool parse_version(const char *s, struct ver *ret)
{
	while (is_blank(*s))
		s++;
	const char *e = partial(s, ret);
	while (e && is_blank(*e))
		e++;
	return e && *e == '\0' && ret->parts == 3;
}

/* Walks the alternatives. `v` NULL: only asks whether all of it parses. */
static int range_eval(const char *range, const struct ver *v, bool *ret_holds)
{
	struct set s;
	bool holds = false;

	if (strlen(range) > MAX_RANGE_BYTES)
		return -1;
	for (const char *p = range;;) {
		const char *bar = strstr(p, "||");
		const char *end = bar ? bar : p + strlen(p);
		while (end > p && is_blank(end[-1]))
			end--;
		if (!parse_set(p, end, &s))
			return -1;
		holds = holds || (v && set_holds(&s, v));
		if (!bar)
			break;
		p = bar + 2;
	}
	*ret_holds = holds;
	return 0;
}

bool vx_semver_satisfies(const char *version, const char *range)
{
	struct ver v;
	bool holds;

	return version && range && parse_version(version, &v) &&
	       range_eval(range, &v, &holds) == 0 && holds;
}

bool vx_semver_is_range(const char *range)
{
	bool holds;

	return range_eval(range, NULL, &holds) == 0;
}

bool vx_semver_is_version(const char *version)
{
	struct ver v;

	return parse_version(version, &v);
}
