#include "vx/strs.h"

#include "vx/arena.h"
#include "vx/assert.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void vx_strlist_add(struct vx_strlist *l, struct vx_arena *a, const char *s)
{
	if (l->n == l->cap)
		l->v = vx_arena_grow(a, l->v, l->n, sizeof *l->v, &l->cap, 8);
	l->v[l->n++] = s;
}

struct vx_strs vx_strlist_done(const struct vx_strlist *l)
{
	return (struct vx_strs){(const char *const *)l->v, l->n};
}

int vx_strcmp_qsort(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

void vx_strlist_sort_unique(struct vx_strlist *l)
{
	uint32_t kept = 0;

	if (l->n < 2)
		return;
	qsort(l->v, l->n, sizeof *l->v, vx_strcmp_qsort);
	for (uint32_t i = 0; i < l->n; i++)
		if (!kept || strcmp(l->v[kept - 1], l->v[i]) != 0)
			l->v[kept++] = l->v[i];
	l->n = kept;
}

bool vx_name_matches(const char *pattern, const char *name)
{
	const char *star = NULL, *resume = NULL;

	while (*name) {
		if (*pattern == '*') {
			star = ++pattern;
			resume = name;
		} else if (*pattern == *name) {
			pattern++;
			name++;
		} else if (star) {
			pattern = star;
			name = ++resume;
		} else {
			return false;
		}
	}
	while (*pattern == '*')
		pattern++;
	return *pattern == '\0';
}

bool vx_strs_has(struct vx_strs s, const char *x)
{
	for (uint32_t i = 0; i < s.n; i++)
		if (strcmp(s.v[i], x) == 0)
			return true;
	return false;
}

bool vx_streq(const char *a, const char *b)
{
	return a == b || (a && b && strcmp(a, b) == 0);
}

bool vx_starts_with(const char *s, const char *prefix)
{
	return strncmp(s, prefix, strlen(prefix)) == 0;
}

bool vx_has_control(const char *s)
{
	while (*s && (unsigned char)*s >= ' ' && *s != 0x7f)
		s++;
	return *s != '\0';
}

bool vx_ends_with(const char *s, const char *suffix)
{
	size_t n = strlen(s), k = strlen(suffix);

	return n >= k && memcmp(s + n - k, suffix, k) == 0;
}

enum { NEAREST_MAX = 128 }; /* longer names are not what somebody mistyped */

static unsigned min3(unsigned a, unsigned b, unsigned c)
{
	unsigned m = a < b ? a : b;

	return m < c ? m : c;
}

/* Optimal string alignment: Levenshtein's distance where swapping two neighbours costs one (Damerau
 * 1964), three rows at a time. */
static unsigned edit_distance(const char *a, size_t an, const char *b, size_t bn)
{
	unsigned rows[3][NEAREST_MAX + 1];
	unsigned *before = rows[0], *prev = rows[1], *cur = rows[2];

	for (size_t j = 0; j <= bn; j++)
		prev[j] = (unsigned)j;
	for (size_t i = 1; i <= an; i++) {
		cur[0] = (unsigned)i;
		for (size_t j = 1; j <= bn; j++) {
			cur[j] = min3(
				prev[j] + 1, cur[j - 1] + 1, prev[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] &&
				before[j - 2] + 1 < cur[j])
				cur[j] = before[j - 2] + 1;
		}
		unsigned *t = before;
		before = prev;
		prev = cur;
		cur = t;
	}
	return prev[bn];
}

const char *vx_nearest(const char *s, struct vx_strs candidates)
{
	size_t n = strlen(s);
	unsigned best = n / 3 ? (unsigned)(n / 3) : 1;
	const char *found = NULL;

	if (!n || n > NEAREST_MAX)
		return NULL;
	for (uint32_t i = 0; i < candidates.n; i++) {
		size_t k = strlen(candidates.v[i]);
		size_t apart = k > n ? k - n : n - k;

		if (k > NEAREST_MAX || apart > best)
			continue;
		unsigned d = edit_distance(s, n, candidates.v[i], k);
		if (d < best || (d == best && !found)) {
			best = d;
			found = candidates.v[i];
		}
	}
	/* Everything replaced is not a typing error ("a" is not a mistyped "b"). */
	return found && best < n ? found : NULL;
}

/* Reads digits up to the first other byte; -EINVAL without one, -ERANGE above UINT64_MAX. */
static int digits(const char **ps, uint64_t *ret)
{
	const char *s = *ps;
	uint64_t v = 0;
	bool over = false;

	if (*s < '0' || *s > '9')
		return -EINVAL;
	for (; *s >= '0' && *s <= '9'; s++)
		over |= __builtin_mul_overflow(v, 10U, &v) ||
			__builtin_add_overflow(v, (uint64_t)(*s - '0'), &v);
	*ps = s;
	*ret = v;
	return over ? -ERANGE : 0;
}

int vx_parse_u64(const char *s, uint64_t max, uint64_t *ret)
{
	uint64_t v;
	int r = digits(&s, &v);

	if (r == -EINVAL || *s)
		return -EINVAL;
	if (r < 0 || v > max)
		return -ERANGE;
	*ret = v;
	return 0;
}

int vx_parse_bytes(const char *s, uint64_t *ret_bytes)
{
	static const char units[] = "KMGT";
	uint64_t v, unit = 1;
	int r = digits(&s, &v);

	if (r == -EINVAL)
		return r;
	if (*s) {
		const char *u = strchr(units, *s);

		if (!u || s[1])
			return -EINVAL;
		unit = (uint64_t)1 << (10 * (u - units + 1));
	}
	if (r < 0 || __builtin_mul_overflow(v, unit, &v))
		return -ERANGE;
	*ret_bytes = v;
	return 0;
}
