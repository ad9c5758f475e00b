/* Which environment variables a list of names selects. Turborepo's wildcards: `*` is any bytes, `!`
 * in front subtracts, a backslash makes either literal. `=` in front is ours (a name holds none):
 * what it matches is not selected by the entries behind it, up to an entry `=`. */
#include "vx/arena.h"
#include "vx/key.h"

#include <stdlib.h>
#include <string.h>

static bool name_matches(const char *p, const char *s, size_t n)
{
	const char *end = s + n, *star_p = NULL, *star_s = NULL;
	for (;;) {
		if (*p == '*') {
			star_p = ++p;
			star_s = s;
			continue;
		}
		const char *lit = *p == '\\' && (p[1] == '*' || p[1] == '!') ? p + 1 : p;
		if (s < end && *lit && *lit == *s) {
			p = lit + 1;
			s++;
		} else if (s == end && !*p) {
			return true;
		} else if (star_p && star_s < end) {
			s = ++star_s;
			p = star_p;
		} else {
			return false;
		}
	}
}

static bool selected(struct vx_strs list, enum vx_dialect d, const char *name, size_t n)
{
	bool yes = false, barred = false;
	for (uint32_t i = 0; i < list.n; i++) {
		const char *p = list.v[i];
		if (d == VX_DIALECT_VX) {
			if (strncmp(p, name, n) == 0 && !p[n])
				return true;
		} else if (*p == '!') {
			if (name_matches(p + 1, name, n))
				return false;
		} else if (*p == '=') {
			barred = p[1] && (barred || name_matches(p + 1, name, n));
		} else if (!yes && !barred) {
			yes = name_matches(p, name, n);
		}
	}
	return yes;
}

static int name_cmp(const void *a, const void *b)
{
	const char *x = *(const char *const *)a, *y = *(const char *const *)b;
	size_t n = strcspn(x, "="), m = strcspn(y, "=");
	int c = memcmp(x, y, n < m ? n : m);
	return c ? c : (n > m) - (n < m);
}

struct vx_strs vx_env_select(
	struct vx_strs list, const char *const *env, enum vx_dialect d, struct vx_arena *a)
{
	struct vx_strlist l = {0};
	for (; list.n && env && *env; env++) {
		size_t n = strcspn(*env, "=");
		if (n && (*env)[n] == '=' && selected(list, d, *env, n))
			vx_strlist_add(&l, a, *env);
	}
	if (l.n > 1)
		qsort(l.v, l.n, sizeof *l.v, name_cmp);
	return vx_strlist_done(&l);
}
