#include "vx/wsglob.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

static uint64_t steps; /* the plan is made by one thread */

uint64_t vx_wsglob_steps(void)
{
	return steps;
}

void vx_wsglob_count(uint64_t n)
{
	steps += n;
}

/* The byte class at p (after '['); *ret_hit tells whether c is in it. Returns the end after ']',
 * NULL when it is not closed: then '[' is literal. */
static const char *byte_class(const char *p, unsigned char c, bool *ret_hit)
{
	bool negated = *p == '!' || *p == '^', hit = false;
	const char *start = p + negated;

	for (p = start; *p && (*p != ']' || p == start); p++, steps++) {
		unsigned char lo = (unsigned char)*p, hi = lo;
		if (p[1] == '-' && p[2] && p[2] != ']') {
			hi = (unsigned char)p[2];
			p += 2;
		}
		hit = hit || (c >= lo && c <= hi);
	}
	if (*p != ']')
		return NULL;
	*ret_hit = hit != negated;
	return p + 1;
}

/* Matches one pattern element against the byte c. Returns the pattern's rest, NULL on a
 * mismatch. */
static const char *element(const char *p, char c)
{
	bool hit;

	if (*p == '?')
		return p + 1;
	if (*p == '[') {
		const char *e = byte_class(p + 1, (unsigned char)c, &hit);
		if (e)
			return hit ? e : NULL;
	}
	if (*p == '\\' && p[1])
		p++;
	return *p == c ? p + 1 : NULL;
}

static bool match_part(const char *pattern, const char *name, size_t len, bool dots)
{
	const char *p = pattern, *s = name, *end = name + len, *star = NULL, *resume = NULL;

	if (*name == '.' && !dots && *pattern != '.' && !(*pattern == '\\' && pattern[1] == '.'))
		return false;
	while (s < end) {
		steps++;
		if (*p == '*') {
			star = ++p;
			resume = s;
			continue;
		}
		const char *e = *p ? element(p, *s) : NULL;
		if (e) {
			p = e;
			s++;
		} else if (star) {
			p = star;
			s = ++resume;
		} else {
			return false;
		}
	}
	while (*p == '*')
		p++;
	return *p == '\0';
}

bool vx_wsglob_part(const char *pattern, const char *name, bool dots)
{
	return match_part(pattern, name, strlen(name), dots);
}

/* Components of a path or pattern, NUL-terminated copies. */
static uint32_t split(const char *s, struct vx_arena *a, const char **v, uint32_t max)
{
	uint32_t n = 0;

	while (*s) {
		size_t len = strcspn(s, "/");
		if (len > 0 && !(len == 1 && *s == '.')) {
			if (n == max)
				return UINT32_MAX;
			v[n++] = vx_arena_strndup(a, s, len);
		}
		s += len;
		s += *s == '/';
	}
	return n;
}

static int add_one(
	struct vx_wsglobs *out, const char *pattern, struct vx_arena *a, struct vx_err *err)
{
	const char *v[VX_WSGLOB_MAX_PARTS];
	uint32_t n = split(pattern, a, v, VX_WSGLOB_MAX_PARTS);

	if (n == UINT32_MAX)
		return vx_err_set(err, -E2BIG,
			"the pattern \"%.200s\" has more than %d path components", pattern,
			VX_WSGLOB_MAX_PARTS);
	if (out->n >= VX_WSGLOB_MAX_ALTERNATIVES)
		return vx_err_set(err, -E2BIG,
			"the pattern \"%.200s\" has more than %d alternatives", pattern,
			VX_WSGLOB_MAX_ALTERNATIVES);
	if ((out->n & (out->n - 1)) == 0) {
		struct vx_wsglob *w = vx_arena_array(a, out->n ? (size_t)out->n * 2 : 1, sizeof *w);
		if (out->n)
			memcpy(w, out->v, out->n * sizeof *w);
		out->v = w;
	}
	uint32_t k = 0;
	for (uint32_t i = 0; i < n; i++) {
		bool globstar = strcmp(v[i], "**") == 0;
		if (globstar && k > 0 && v[k - 1] == NULL)
			continue;
		v[k++] = globstar ? NULL : v[i];
	}
	out->v[out->n++] = (struct vx_wsglob){vx_arena_dup(a, v, k * sizeof *v), k};
	return 0;
}

/* The brace group that opens first of those that are closed and have a comma of their own: its end.
 * NULL: there is none. One pass, since patterns may be hostile; out of line, so that its table is
 * not part of every frame of expand(). */
__attribute__((noinline)) static const char *first_group(const char *p, const char **ret_open)
{
	const char *open[VX_MAX_PATH], *close = NULL;
	bool comma[VX_MAX_PATH];
	uint32_t depth = 0;

	for (; *p; p++) {
		if (*p == '\\' && p[1]) {
			p++;
		} else if (*p == '{') {
			open[depth] = p;
			comma[depth++] = false;
		} else if (*p == ',' && depth) {
			comma[depth - 1] = true;
		} else if (*p == '}' && depth && comma[--depth] &&
			   (!close || open[depth] < *ret_open)) {
			*ret_open = open[depth];
			close = p;
		}
	}
	return close;
}

static int expand(
	struct vx_wsglobs *out, const char *pattern, struct vx_arena *a, struct vx_err *err)
{
	const char *open, *close = first_group(pattern, &open);

	if (!close)
		return add_one(out, pattern, a, err);
	int depth = 0;
	const char *arm = open + 1;
	for (const char *q = open; q <= close; q++) {
		if (*q == '\\' && q[1]) {
			q++;
			continue;
		}
		if ((*q == ',' && depth == 1) || q == close) {
			const char *one = vx_arena_printf(a, "%.*s%.*s%s", (int)(open - pattern),
				pattern, (int)(q - arm), arm, close + 1);
			int r = expand(out, one, a, err);
			if (r < 0)
				return r;
			arm = q + 1;
		}
		depth += (*q == '{') - (*q == '}');
	}
	return 0;
}

int vx_wsglob_add(
	struct vx_wsglobs *out, const char *pattern, struct vx_arena *a, struct vx_err *err)
{
	if (strlen(pattern) >= VX_MAX_PATH)
		return vx_err_set(err, -ENAMETOOLONG,
			"the pattern \"%.100s...\" is longer than %u bytes", pattern, VX_MAX_PATH);
	return expand(out, pattern, a, err);
}

static const char *next_component(const char *path)
{
	path += strcspn(path, "/");
	return path + (*path == '/');
}

/* As with `*` in one component, only the last `**` ever needs to take more: whatever an earlier one
 * could take, the last one can. */
bool vx_wsglob_match(const struct vx_wsglob *g, const char *path, bool dots)
{
	uint32_t i = 0, star = UINT32_MAX;
	const char *resume = NULL;

	if (strcmp(path, ".") == 0)
		path = "";
	while (*path) {
		steps++;
		if (i < g->n && g->parts[i] == NULL) {
			star = ++i;
			resume = path;
			continue;
		}
		if (i < g->n && match_part(g->parts[i], path, strcspn(path, "/"), dots)) {
			i++;
			path = next_component(path);
		} else if (star != UINT32_MAX && (dots || *resume != '.')) {
			i = star;
			resume = path = next_component(resume);
		} else {
			return false;
		}
	}
	while (i < g->n && g->parts[i] == NULL)
		i++;
	return i == g->n;
}

bool vx_wsglobs_match(const struct vx_wsglobs *g, const char *path, bool dots)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (vx_wsglob_match(&g->v[i], path, dots))
			return true;
	return false;
}

static bool never_entered(const char *dir)
{
	static const char *const names[] = {"node_modules", ".git", ".vx"};

	for (; *dir; dir += strcspn(dir, "/"), dir += *dir == '/')
		for (size_t i = 0; i < sizeof names / sizeof *names; i++)
			if (strcspn(dir, "/") == strlen(names[i]) &&
				!strncmp(dir, names[i], strlen(names[i])))
				return true;
	return false;
}

bool vx_wsglob_member(const struct vx_wsglobs *add, const struct vx_wsglobs *sub, const char *dir)
{
	return vx_wsglobs_match(add, dir, false) && !vx_wsglobs_match(sub, dir, true) &&
	       !never_entered(dir);
}

const char *vx_wsglob_literal(const char *dir, struct vx_arena *a)
{
	char *out = vx_arena_alloc(a, 2 * strlen(dir) + 1), *to = out;

	for (; *dir; *to++ = *dir++)
		if (strchr("*?[]{},\\!", *dir))
			*to++ = '\\';
	*to = '\0';
	return out;
}
