/* Globs: what lies below a directory, and whether two sets can meet. */
#include "glob_int.h"

#include "vx/arena.h"

#include <stdlib.h>
#include <string.h>

/* Adds state i and what `**` reaches without reading anything. */
static uint64_t with_closure(const struct vx_galt *a, uint64_t states, uint32_t i)
{
	states |= 1ULL << i;
	while (i < a->n && a->segs[i].kind == GS_DEEP)
		states |= 1ULL << ++i;
	return states;
}

static uint64_t step(const struct vx_globset *s, const struct vx_galt *a, uint64_t states,
	const char *p, size_t n, bool literal_only)
{
	uint64_t next = 0;
	for (uint32_t i = 0; i < a->n; i++) {
		if (!((states >> i) & 1U))
			continue;
		const struct vx_gseg *g = &a->segs[i];
		if (g->kind == GS_DEEP) {
			if (!literal_only)
				next = with_closure(a, next, i);
		} else if ((g->kind == GS_LIT || !literal_only) && vx_gseg_match(s, g, p, n)) {
			next = with_closure(a, next, i + 1);
		}
	}
	return next;
}

enum vx_greach vx_galt_reach(const struct vx_globset *s, const struct vx_galt *a, const char *dir,
	size_t len, bool name_modules)
{
	if (a->n >= 63)
		return GR_MAYBE;
	uint64_t states = with_closure(a, 0, 0);
	for (size_t pos = 0; pos < len && states;) {
		const char *slash = memchr(dir + pos, '/', len - pos);
		size_t n = (slash ? (size_t)(slash - dir) : len) - pos;
		bool modules =
			name_modules && n == 12 && memcmp(dir + pos, "node_modules", 12) == 0;
		states = step(s, a, states, dir + pos, n, modules);
		pos += n + 1;
	}
	if (a->n && a->segs[a->n - 1].kind == GS_DEEP && ((states >> (a->n - 1)) & 1U))
		return GR_ALL;
	return (states & ((1ULL << a->n) - 1)) ? GR_MAYBE : GR_NO;
}

bool vx_globset_may_reach(const struct vx_globset *s, const char *dir, size_t len)
{
	if (len == 1 && dir[0] == '.')
		len = 0;
	bool may = false;
	for (uint32_t i = 0; i < s->n_pos && !may; i++)
		for (uint32_t k = 0; k < s->pos[i].n_alts && !may; k++)
			may = vx_galt_reach(s, &s->pos[i].alts[k], dir, len, false) != GR_NO;
	if (!may)
		return false;
	for (uint32_t i = 0; i < s->n_neg; i++)
		for (uint32_t k = 0; k < s->neg[i].n_alts; k++)
			if (vx_galt_reach(s, &s->neg[i].alts[k], dir, len, false) == GR_ALL)
				return false;
	return true;
}

/* A component of one side of an overlap question. */
struct unit_seq {
	enum vx_gseg_kind kind;
	uint32_t n;
	const uint16_t *units;
	const char *text;
};

static uint16_t unit_at(const struct unit_seq *q, uint32_t i)
{
	return q->kind == GS_LIT ? (uint8_t)q->text[i] : q->units[i];
}

static bool units_meet(
	const struct vx_globset *x, uint16_t u, const struct vx_globset *y, uint16_t v)
{
	if (u == GU_ANY || v == GU_ANY)
		return true;
	if (u < 256 && v < 256)
		return u == v;
	if (u >= GU_CLASS && v >= GU_CLASS)
		return true; /* not worth telling apart */
	const struct vx_gclass *k =
		u >= GU_CLASS ? &x->classes[u - GU_CLASS] : &y->classes[v - GU_CLASS];
	uint16_t b = u >= GU_CLASS ? v : u;
	return (k->bits[b / 32] >> (b % 32)) & 1U;
}

static bool has_high_byte(const struct unit_seq *q)
{
	for (uint32_t i = 0; i < q->n; i++)
		if (unit_at(q, i) >= 128 && unit_at(q, i) < 256)
			return true;
	return false;
}

/* Is there a name that both components match? Table over (i, j), row by row. A `?` may take several
 * bytes, so beside non-ASCII names: yes. */
static bool segs_meet(const struct vx_globset *x, const struct unit_seq *a,
	const struct vx_globset *y, const struct unit_seq *b)
{
	if (a->kind == GS_LIT && b->kind == GS_LIT)
		return a->n == b->n && memcmp(a->text, b->text, a->n) == 0;
	if (has_high_byte(a) || has_high_byte(b))
		return true;
	bool *row = vx_xcalloc(2 * ((size_t)b->n + 1), sizeof *row), *next = row + b->n + 1,
	     *base = row;
	row[0] = true;
	for (uint32_t i = 0; i <= a->n; i++) {
		memset(next, 0, b->n + 1);
		bool star_a = i < a->n && unit_at(a, i) == GU_STAR;
		for (uint32_t j = 0; j <= b->n; j++) {
			if (!row[j])
				continue;
			bool star_b = j < b->n && unit_at(b, j) == GU_STAR;
			if (star_a)
				next[j] = true;
			if (j < b->n && (star_a || star_b))
				row[j + 1] = true;
			if (star_b && i < a->n)
				next[j] = true;
			if (i < a->n && j < b->n && !star_a && !star_b &&
				units_meet(x, unit_at(a, i), y, unit_at(b, j)))
				next[j + 1] = true;
		}
		if (i < a->n) {
			bool *t = row;
			row = next;
			next = t;
		}
	}
	bool meet = row[b->n];
	free(base);
	return meet;
}

/* The alternative's components behind those of its base directory. */
static uint32_t sequence(const struct vx_galt *a, const char *base, struct unit_seq *ret)
{
	uint32_t k = 0;
	for (const char *p = base; *p;) {
		const char *slash = strchrnul(p, '/');
		size_t n = (size_t)(slash - p);
		if (n && !(n == 1 && *p == '.'))
			ret[k++] = (struct unit_seq){.kind = GS_LIT, .n = (uint32_t)n, .text = p};
		p = *slash ? slash + 1 : slash;
	}
	for (uint32_t i = 0; i < a->n; i++)
		ret[k++] = (struct unit_seq){.kind = a->segs[i].kind,
			.n = a->segs[i].n,
			.units = a->segs[i].units,
			.text = a->segs[i].text};
	return k;
}

static uint32_t count_comps(const char *base)
{
	uint32_t n = 1;
	for (const char *p = base; *p; p++)
		n += *p == '/';
	return n;
}

static bool sequences_meet(const struct vx_globset *x, const struct unit_seq *a, uint32_t n,
	const struct vx_globset *y, const struct unit_seq *b, uint32_t m)
{
	bool *row = vx_xcalloc(2 * ((size_t)m + 1), sizeof *row), *next = row + m + 1, *base = row;
	row[0] = true;
	for (uint32_t i = 0; i <= n; i++) {
		memset(next, 0, m + 1);
		bool deep_a = i < n && a[i].kind == GS_DEEP;
		for (uint32_t j = 0; j <= m; j++) {
			if (!row[j])
				continue;
			bool deep_b = j < m && b[j].kind == GS_DEEP;
			if (j < m && (deep_a || deep_b))
				row[j + 1] = true;
			if (i < n && (deep_a || deep_b))
				next[j] = true;
			if (i < n && j < m && !deep_a && !deep_b && segs_meet(x, &a[i], y, &b[j]))
				next[j + 1] = true;
		}
		if (i < n) {
			bool *t = row;
			row = next;
			next = t;
		}
	}
	bool meet = row[m];
	free(base);
	return meet;
}

/* A cheap no: literal beginnings that part ways. */
static bool heads_differ(const struct unit_seq *a, uint32_t n, const struct unit_seq *b, uint32_t m)
{
	for (uint32_t i = 0; i < n && i < m && a[i].kind == GS_LIT && b[i].kind == GS_LIT; i++)
		if (a[i].n != b[i].n || memcmp(a[i].text, b[i].text, a[i].n) != 0)
			return true;
	return false;
}

static bool alts_meet(const struct vx_globset *x, const struct vx_galt *a, const char *base_x,
	const struct vx_globset *y, const struct vx_galt *b, const char *base_y)
{
	struct unit_seq *sa = vx_xcalloc(count_comps(base_x) + a->n, sizeof *sa),
			*sb = vx_xcalloc(count_comps(base_y) + b->n, sizeof *sb);
	uint32_t n = sequence(a, base_x, sa), m = sequence(b, base_y, sb);
	bool meet = !heads_differ(sa, n, sb, m) && sequences_meet(x, sa, n, y, sb, m);
	free(sa);
	free(sb);
	return meet;
}

bool vx_globset_overlap(const struct vx_globset *x, const char *base_x, const struct vx_globset *y,
	const char *base_y)
{
	for (uint32_t i = 0; i < x->n_pos; i++)
		for (uint32_t k = 0; k < x->pos[i].n_alts; k++)
			for (uint32_t j = 0; j < y->n_pos; j++)
				for (uint32_t l = 0; l < y->pos[j].n_alts; l++)
					if (alts_meet(x, &x->pos[i].alts[k], base_x, y,
						    &y->pos[j].alts[l], base_y))
						return true;
	return false;
}
