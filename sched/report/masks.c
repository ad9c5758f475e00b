#include "masks.h"

#include "vx/arena.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct mask {
	const uint8_t *p; /* in `bytes` */
	size_t n;
};

struct vx_masks {
	struct vx_arena bytes;
	struct mask *v; /* by first byte, the longer ones first */
	uint32_t n, cap;
	uint32_t first[257]; /* v[first[b] ..< first[b + 1]] begin with b */
};

static void add(struct vx_masks *m, const char *p, size_t n)
{
	if (n < MASK_MIN_BYTES)
		return;
	if (m->n == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 16;
		m->v = vx_xrealloc(m->v, m->cap * sizeof *m->v);
	}
	m->v[m->n++] = (struct mask){vx_arena_dup(&m->bytes, p, n), n};
}

/* The value without newlines at its end, and each of its lines: printed with a prefix, or with CR
 * LF, only the lines would be found. */
static void add_value(struct vx_masks *m, const char *value)
{
	size_t n = strlen(value);

	while (n && (value[n - 1] == '\n' || value[n - 1] == '\r'))
		n--;
	add(m, value, n);
	for (size_t a = 0; memchr(value, '\n', n) && a < n;) {
		const char *nl = memchr(value + a, '\n', n - a);
		size_t b = nl ? (size_t)(nl - value) : n, e = b;

		while (e > a && value[e - 1] == '\r')
			e--;
		add(m, value + a, e - a);
		a = b + 1;
	}
}

static bool holds(const char *name, size_t n, const char *word)
{
	size_t w = strlen(word);

	for (size_t k = 0; k + w <= n; k++)
		if (!strncasecmp(name + k, word, w))
			return true;
	return false;
}

static bool secret_name(const char *name, size_t n, struct vx_strs secret)
{
	static const char *const words[] = {
		"TOKEN", "SECRET", "KEY", "PASSWORD", "PASSWD", "CREDENTIAL"};

	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		if (holds(name, n, words[k]))
			return true;
	for (uint32_t k = 0; k < secret.n; k++)
		if (strlen(secret.v[k]) == n && !memcmp(secret.v[k], name, n))
			return true;
	return false;
}

static int compare(const void *pa, const void *pb)
{
	const struct mask *a = pa, *b = pb;

	if (a->p[0] != b->p[0])
		return a->p[0] < b->p[0] ? -1 : 1;
	if (a->n != b->n)
		return a->n > b->n ? -1 : 1;
	return memcmp(a->p, b->p, a->n);
}

struct vx_masks *vx_masks_new(struct vx_strs env, struct vx_strs secret)
{
	struct vx_masks *m = vx_xcalloc(1, sizeof *m);
	uint32_t k = 0;

	for (uint32_t i = 0; i < env.n; i++) {
		const char *eq = strchr(env.v[i], '=');

		if (eq && secret_name(env.v[i], (size_t)(eq - env.v[i]), secret))
			add_value(m, eq + 1);
	}
	if (m->n)
		qsort(m->v, m->n, sizeof *m->v, compare);
	for (unsigned b = 0; b < 256; b++) {
		m->first[b] = k;
		while (k < m->n && m->v[k].p[0] == b)
			k++;
	}
	m->first[256] = k;
	return m;
}

void vx_masks_free(struct vx_masks *m)
{
	if (!m)
		return;
	vx_arena_free(&m->bytes);
	free(m->v);
	free(m);
}

bool masks_none(const struct vx_masks *m)
{
	return !m || !m->n;
}

size_t masks_skip(const struct vx_masks *m, const uint8_t *p, size_t n)
{
	size_t k = 0;

	while (k < n && m->first[p[k]] == m->first[p[k] + 1U])
		k++;
	return k;
}

size_t masks_at(const struct vx_masks *m, const uint8_t *p, size_t n, bool *ret_partial)
{
	*ret_partial = false;
	for (uint32_t k = m->first[p[0]]; k < m->first[p[0] + 1U]; k++) {
		const struct mask *v = &m->v[k];
		size_t have = v->n < n ? v->n : n;

		if (memcmp(v->p, p, have) != 0)
			continue;
		if (have == v->n)
			return v->n; /* the rest is shorter */
		*ret_partial = true;
	}
	return 0;
}
