/* Globs: compile and match. See vx/glob.h for the dialect. */
#include "glob_int.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

static _Thread_local uint64_t steps;

uint64_t vx_glob_steps(void)
{
	return steps;
}

bool vx_glob_spent(uint64_t since)
{
	return steps - since > VX_MAX_GLOB_STEPS;
}

struct compiler {
	struct vx_arena *a;
	enum vx_dialect dialect;
	struct vx_err *err;
	const char *entry; /* as written, for errors */
	struct vx_strlist arms;
	size_t bytes; /* of all arms of the set */
	struct vx_gclass *classes;
	uint32_t n_classes, cap_classes;
};

static bool is_escape(const char *p)
{
	return p[0] == '\\' && p[1] && p[1] != '/';
}

/* Finds the leftmost brace group: closed, with a comma at its own level. Other braces are ordinary
 * bytes. One pass, since patterns may be hostile. Kept out of line, so that its table of open
 * braces is not part of every frame of expand(). */
__attribute__((noinline)) static bool find_group(
	const char *text, const char **ret_open, const char **ret_close)
{
	const char *open[VX_MAX_PATH];
	bool comma[VX_MAX_PATH];
	uint32_t depth = 0;
	const char *best = NULL;
	for (const char *p = text; *p; p++) {
		if (is_escape(p)) {
			p++;
		} else if (*p == '{') {
			open[depth] = p;
			comma[depth++] = false;
		} else if (*p == ',' && depth) {
			comma[depth - 1] = true;
		} else if (*p == '}' && depth) {
			depth--;
			if (comma[depth] && (!best || open[depth] < best)) {
				best = open[depth];
				*ret_open = best;
				*ret_close = p;
			}
		}
	}
	return best != NULL;
}

/* Appends every expansion of `text` to c->arms. */
static int expand(struct compiler *c, const char *text)
{
	const char *open, *close;
	if (!find_group(text, &open, &close)) {
		if (c->arms.n >= VX_MAX_GLOB_ARMS)
			return vx_err_set(c->err, -E2BIG,
				"glob \"%.200s\" has more than %u alternatives in its braces",
				c->entry, VX_MAX_GLOB_ARMS);
		c->bytes += strlen(text) + 1;
		if (c->bytes > VX_MAX_GLOB_BYTES)
			return vx_err_set(c->err, -E2BIG,
				"the globs of one list are more than %u bytes with their braces expanded (at \"%.200s\")",
				VX_MAX_GLOB_BYTES, c->entry);
		vx_strlist_add(&c->arms, c->a, text);
		return 0;
	}
	const char *arm = open + 1;
	int depth = 0;
	for (const char *p = open + 1; p <= close; p++) {
		if (is_escape(p)) {
			p++;
			continue;
		}
		if ((*p == ',' && depth == 0) || p == close) {
			int r = expand(c, vx_arena_printf(c->a, "%.*s%.*s%s", (int)(open - text),
						  text, (int)(p - arm), arm, close + 1));
			if (r < 0)
				return r;
			arm = p + 1;
		} else if (*p == '{') {
			depth++;
		} else if (*p == '}') {
			depth--;
		}
	}
	return 0;
}

/* Reads a class "[...]" of the turbo dialect at p; returns the byte after it, or NULL when it is
 * none (then '[' is an ordinary byte). */
static const char *read_class(
	struct compiler *c, const char *p, const char *end, uint16_t *ret_unit)
{
	struct vx_gclass k = {{0}};
	const char *q = p + 1;
	bool invert = q < end && (*q == '!' || *q == '^');
	if (invert)
		q++;
	const char *start = q;
	for (; q < end && (*q != ']' || q == start); q++) {
		unsigned lo = (uint8_t)*q, hi = lo;
		if (q + 2 < end && q[1] == '-' && q[2] != ']') {
			hi = (uint8_t)q[2];
			q += 2;
		}
		for (unsigned b = lo; b <= hi; b++)
			k.bits[b / 32] |= 1U << (b % 32);
	}
	if (q >= end || q == start)
		return NULL;
	if (invert)
		for (int i = 0; i < 8; i++)
			k.bits[i] = ~k.bits[i];
	if (c->n_classes == c->cap_classes)
		c->classes = vx_arena_grow(
			c->a, c->classes, c->n_classes, sizeof *c->classes, &c->cap_classes, 4);
	if (c->n_classes >= UINT16_MAX - GU_CLASS)
		return NULL;
	*ret_unit = (uint16_t)(GU_CLASS + c->n_classes);
	c->classes[c->n_classes++] = k;
	return q + 1;
}

/* One component [p, p+n). Stars that stand together are one star: `**` inside a name is `*`. */
static struct vx_gseg compile_seg(struct compiler *c, const char *p, size_t n)
{
	struct vx_gseg g = {0};
	if (n == 2 && p[0] == '*' && p[1] == '*') {
		g.kind = GS_DEEP;
		return g;
	}
	uint16_t *u = vx_arena_array(c->a, n ? n : 1, sizeof *u);
	uint32_t k = 0;
	bool wild = false;
	for (const char *q = p, *end = p + n; q < end; q++) {
		if (*q == '\\' && q + 1 < end) {
			u[k++] = (uint8_t) * ++q;
		} else if (*q == '*') {
			wild = true;
			if (!k || u[k - 1] != GU_STAR)
				u[k++] = GU_STAR;
		} else if (*q == '?') {
			wild = true;
			u[k++] = GU_ANY;
		} else if (*q == '[' && c->dialect == VX_DIALECT_TURBO) {
			const char *after = read_class(c, q, end, &u[k]);
			if (after) {
				wild = true;
				k++;
				q = after - 1;
			} else {
				u[k++] = '[';
			}
		} else {
			u[k++] = (uint8_t)*q;
		}
	}
	g.n = k;
	if (wild) {
		g.kind = GS_PAT;
		g.units = u;
		return g;
	}
	char *text = vx_arena_alloc(c->a, k + 1);
	for (uint32_t i = 0; i < k; i++)
		text[i] = (char)u[i];
	g.kind = GS_LIT;
	g.text = text;
	return g;
}

/* Turbo: `foo**` is `foo*` and what lies below, `**foo` is `*foo` at any depth. */
static uint32_t compile_turbo_stars(
	struct compiler *c, const char *p, size_t n, struct vx_gseg *ret)
{
	const char *stars = memmem(p, n, "**", 2);
	if (!stars || n == 2) {
		ret[0] = compile_seg(c, p, n);
		return 1;
	}
	uint32_t k = 0;
	const char *after = stars;
	while (after < p + n && *after == '*')
		after++;
	if (stars > p)
		ret[k++] = compile_seg(c, p, (size_t)(stars - p) + 1);
	ret[k++] = (struct vx_gseg){.kind = GS_DEEP};
	if (after < p + n)
		ret[k++] = compile_seg(c, after - 1, (size_t)(p + n - after) + 1);
	return k;
}

/* The bytes that every path matching the last component ends in. */
static void find_tail(struct compiler *c, struct vx_galt *alt)
{
	if (!alt->n || alt->segs[alt->n - 1].kind != GS_PAT)
		return;
	const struct vx_gseg *g = &alt->segs[alt->n - 1];
	uint32_t k = g->n;
	while (k > 0 && g->units[k - 1] < 256)
		k--;
	alt->tail_len = g->n - k;
	char *tail = vx_arena_alloc(c->a, alt->tail_len + 1);
	for (uint32_t i = k; i < g->n; i++)
		tail[i - k] = (char)g->units[i];
	alt->tail = tail;
}

static void finish_alt(struct compiler *c, struct vx_galt *alt)
{
	size_t bytes = 1;
	while (alt->n_lit < alt->n && alt->segs[alt->n_lit].kind == GS_LIT)
		bytes += alt->segs[alt->n_lit++].n + 1;
	char *lit = vx_arena_alloc(c->a, bytes), *w = lit;
	for (uint32_t i = 0; i < alt->n_lit; i++) {
		if (i)
			*w++ = '/';
		memcpy(w, alt->segs[i].text, alt->segs[i].n);
		w += alt->segs[i].n;
	}
	alt->lit = lit;
	alt->lit_len = (uint32_t)(w - lit);
	find_tail(c, alt);
}

/* One alternative: components, "." dropped, `**` / `**` merged. `tree`: what lies below a match
 * matches too. */
static int compile_alt(struct compiler *c, const char *text, bool tree, struct vx_galt *ret)
{
	uint32_t max = 2;
	for (const char *p = text; *p; p++)
		max += *p == '/';
	struct vx_gseg *segs = vx_arena_array(c->a, 3 * (size_t)max, sizeof *segs);
	uint32_t k = 0;
	for (const char *p = text; *p;) {
		const char *slash = strchrnul(p, '/');
		size_t n = (size_t)(slash - p);
		if (n == 2 && p[0] == '.' && p[1] == '.') {
			bool back = c->dialect == VX_DIALECT_TURBO && k > 0 &&
				    segs[k - 1].kind == GS_LIT;
			if (!back)
				return vx_err_set(c->err, -EINVAL,
					"glob \"%.200s\" leaves its directory with \"..\"",
					c->entry);
			k--;
		} else if (n > 0 && !(n == 1 && p[0] == '.')) {
			if (c->dialect == VX_DIALECT_TURBO)
				k += compile_turbo_stars(c, p, n, &segs[k]);
			else
				segs[k++] = compile_seg(c, p, n);
		}
		p = *slash ? slash + 1 : slash;
	}
	if (tree)
		segs[k++] = (struct vx_gseg){.kind = GS_DEEP};
	uint32_t w = 0;
	for (uint32_t i = 0; i < k; i++)
		if (!(w > 0 && segs[i].kind == GS_DEEP && segs[w - 1].kind == GS_DEEP))
			segs[w++] = segs[i];
	*ret = (struct vx_galt){.segs = segs, .n = w};
	finish_alt(c, ret);
	return 0;
}

/* The first wildcard of an entry, NULL when there is none: then it is a literal and names a
 * tree. */
static const char *first_wildcard(const struct compiler *c, const char *text)
{
	const char *open = NULL, *close;
	if (!find_group(text, &open, &close))
		open = NULL;
	for (const char *p = text; *p; p++) {
		if (is_escape(p))
			p++;
		else if (*p == '*' || *p == '?' || p == open ||
			 (*p == '[' && c->dialect == VX_DIALECT_TURBO && strchr(p, ']')))
			return p;
	}
	return NULL;
}

/* The literal directories in front of the first wildcard; a literal entry whole. */
static const char *entry_prefix(struct compiler *c, const char *text, const char *wild)
{
	size_t cut = strlen(text);
	if (wild) {
		const char *slash = memrchr(text, '/', (size_t)(wild - text));
		cut = slash ? (size_t)(slash - text) : 0;
	}
	struct vx_galt alt;
	struct compiler quiet = *c;
	quiet.err = NULL;
	if (compile_alt(&quiet, vx_arena_strndup(c->a, text, cut), false, &alt) < 0)
		return "";
	return alt.lit;
}

static int compile_entry(struct compiler *c, const char *text, bool negative, struct vx_gentry *ret)
{
	const char *wild = first_wildcard(c, text);
	size_t n = strlen(text);
	bool tree = !wild || (n > 0 && text[n - 1] == '/') ||
		    (negative && c->dialect == VX_DIALECT_TURBO);
	c->arms = (struct vx_strlist){0};
	int r = expand(c, text);
	if (r < 0)
		return r;
	struct vx_galt *alts = vx_arena_array(c->a, c->arms.n, sizeof *alts);
	for (uint32_t i = 0; i < c->arms.n; i++) {
		r = compile_alt(c, c->arms.v[i], tree, &alts[i]);
		if (r < 0)
			return r;
	}
	*ret = (struct vx_gentry){.text = c->entry,
		.prefix = entry_prefix(c, text, wild),
		.literal = !wild,
		.alts = alts,
		.n_alts = c->arms.n};
	return 0;
}

int vx_globset_compile(struct vx_strs patterns, enum vx_dialect dialect, struct vx_arena *a,
	struct vx_globset **ret, struct vx_err *err)
{
	struct vx_globset *s = vx_arena_alloc(a, sizeof *s);
	struct compiler c = {.a = a, .dialect = dialect, .err = err};
	s->dialect = dialect;
	s->pos = vx_arena_array(a, patterns.n + 1, sizeof *s->pos);
	s->neg = vx_arena_array(a, patterns.n + 1, sizeof *s->neg);
	for (uint32_t i = 0; i < patterns.n; i++) {
		const char *p = patterns.v[i];
		c.entry = p;
		if (strlen(p) >= VX_MAX_PATH)
			return vx_err_set(err, -ENAMETOOLONG,
				"glob \"%.60s...\" is longer than %u bytes", p, VX_MAX_PATH - 1);
		bool negative = p[0] == '!';
		if (negative)
			p++;
		int r = compile_entry(
			&c, p, negative, negative ? &s->neg[s->n_neg] : &s->pos[s->n_pos]);
		if (r < 0)
			return r;
		if (negative)
			s->n_neg++;
		else
			s->n_pos++;
	}
	s->classes = c.classes;
	s->n_classes = c.n_classes;
	*ret = s;
	return 0;
}

/* Bytes of the character at p: its UTF-8 length when it is well formed, else 1. */
static size_t char_len(const char *p, size_t n)
{
	uint8_t b = (uint8_t)p[0];
	size_t want = b >= 0xF0 && b <= 0xF4 ? 4 : b >= 0xE0 ? 3 : b >= 0xC2 ? 2 : 1;
	if (b > 0xF4 || want > n)
		return 1;
	for (size_t i = 1; i < want; i++)
		if (((uint8_t)p[i] & 0xC0) != 0x80)
			return 1;
	return want;
}

/* How many bytes unit u takes at p, 0 when it does not match. */
static size_t unit_match(const struct vx_globset *s, uint16_t u, const char *p, size_t n)
{
	if (!n)
		return 0;
	if (u < 256)
		return (uint8_t)*p == u;
	if (u == GU_ANY)
		return char_len(p, n);
	const struct vx_gclass *k = &s->classes[u - GU_CLASS];
	uint8_t b = (uint8_t)*p;
	return (k->bits[b / 32] >> (b % 32)) & 1U;
}

bool vx_gseg_match(const struct vx_globset *s, const struct vx_gseg *g, const char *p, size_t n)
{
	if (g->kind == GS_LIT)
		return g->n == n && memcmp(g->text, p, n) == 0;
	uint32_t i = 0, star_i = UINT32_MAX;
	size_t k = 0, star_k = 0;
	bool met = true;
	uint64_t count = 1;
	while (k < n || i < g->n) {
		count++;
		if (i < g->n && g->units[i] == GU_STAR) {
			star_i = i++;
			star_k = k;
			continue;
		}
		size_t took = i < g->n ? unit_match(s, g->units[i], p + k, n - k) : 0;
		if (took) {
			i++;
			k += took;
		} else if (star_i != UINT32_MAX && star_k < n) {
			star_k += char_len(p + star_k, n - star_k);
			k = star_k;
			i = star_i + 1;
		} else {
			met = false;
			break;
		}
	}
	steps += count;
	return met;
}

/* Components from byte `pos` on (pos > len: none left) against segs. One `**` remembered suffices,
 * as with stars in a name. */
static bool match_comps(const struct vx_globset *s, const struct vx_gseg *segs, uint32_t n,
	const char *path, size_t len, size_t pos)
{
	uint32_t i = 0, deep_i = UINT32_MAX;
	size_t deep_pos = 0;
	while (pos <= len || i < n) {
		steps++;
		if (i < n && segs[i].kind == GS_DEEP) {
			if (i + 1 == n)
				return true;
			deep_i = i++;
			deep_pos = pos;
			continue;
		}
		size_t end = 0;
		bool took = false;
		if (pos <= len) {
			const char *slash = memchr(path + pos, '/', len - pos);
			end = slash ? (size_t)(slash - path) : len;
			took = i < n && vx_gseg_match(s, &segs[i], path + pos, end - pos);
		}
		if (took) {
			i++;
			pos = end + 1;
		} else if (deep_i != UINT32_MAX && deep_pos <= len) {
			const char *slash = memchr(path + deep_pos, '/', len - deep_pos);
			deep_pos = (slash ? (size_t)(slash - path) : len) + 1;
			pos = deep_pos;
			i = deep_i + 1;
		} else {
			return false;
		}
	}
	return true;
}

bool vx_galt_match(
	const struct vx_globset *s, const struct vx_galt *a, const char *path, size_t len)
{
	if (a->lit_len) {
		if (len < a->lit_len || memcmp(path, a->lit, a->lit_len) != 0 ||
			(len > a->lit_len && path[a->lit_len] != '/'))
			return false;
		if (a->n_lit == a->n)
			return len == a->lit_len;
		return match_comps(
			s, a->segs + a->n_lit, a->n - a->n_lit, path, len, a->lit_len + 1);
	}
	if (a->tail_len &&
		(len < a->tail_len || memcmp(path + len - a->tail_len, a->tail, a->tail_len) != 0))
		return false;
	return match_comps(s, a->segs, a->n, path, len, len ? 0 : 1);
}

static bool entry_match(
	const struct vx_globset *s, const struct vx_gentry *e, const char *path, size_t len)
{
	for (uint32_t i = 0; i < e->n_alts; i++)
		if (vx_galt_match(s, &e->alts[i], path, len))
			return true;
	return false;
}

static bool negated(const struct vx_globset *s, const char *path, size_t len)
{
	for (uint32_t i = 0; i < s->n_neg; i++)
		if (entry_match(s, &s->neg[i], path, len))
			return true;
	return false;
}

bool vx_globset_match(const struct vx_globset *s, const char *path, size_t len)
{
	for (uint32_t i = 0; i < s->n_pos; i++)
		if (entry_match(s, &s->pos[i], path, len))
			return !negated(s, path, len);
	return false;
}

bool vx_globset_match_one(const struct vx_globset *s, uint32_t i, const char *path, size_t len)
{
	return i < s->n_pos && entry_match(s, &s->pos[i], path, len) && !negated(s, path, len);
}

bool vx_globset_negates(const struct vx_globset *s, const char *path, size_t len)
{
	return negated(s, path, len);
}

bool vx_globset_empty(const struct vx_globset *s)
{
	return s->n_pos == 0;
}

uint32_t vx_globset_count(const struct vx_globset *s)
{
	return s->n_pos;
}

const char *vx_globset_pattern(const struct vx_globset *s, uint32_t i)
{
	return s->pos[i].text;
}

bool vx_globset_literal(const struct vx_globset *s, uint32_t i)
{
	return s->pos[i].literal;
}

const char *vx_globset_prefix(const struct vx_globset *s, uint32_t i)
{
	return s->pos[i].prefix;
}
