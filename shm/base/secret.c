#include "vx/secret.h"

#include "vx/arena.h"
#include "vx/buf.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

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

static void add_bytes(struct vx_masks *m, const char *p, size_t n)
{
	if (n < VX_MASK_MIN_BYTES)
		return;
	if (m->n == m->cap) {
		m->cap = m->cap ? 2 * m->cap : 16;
		m->v = vx_xrealloc(m->v, m->cap * sizeof *m->v);
	}
	m->v[m->n++] = (struct mask){vx_arena_dup(&m->bytes, p, n), n};
}

/* ---- how other writers spell a value ---- */

typedef void spell_fn(struct vx_buf *b, unsigned char c);

static void spell_json(struct vx_buf *b, unsigned char c)
{
	static const char names[32] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	if (c == '"' || c == '\\')
		vx_buf_printf(b, "\\%c", c);
	else if (c >= 0x20)
		vx_buf_addc(b, (char)c);
	else if (names[c])
		vx_buf_printf(b, "\\%c", names[c]);
	else
		vx_buf_printf(b, "\\u%04x", c);
}

static void spell_html(struct vx_buf *b, unsigned char c)
{
	const char *name = c == '&'    ? "&amp;"
			   : c == '<'  ? "&lt;"
			   : c == '>'  ? "&gt;"
			   : c == '"'  ? "&quot;"
			   : c == '\'' ? "&#39;"
				       : NULL;

	if (name)
		vx_buf_adds(b, name);
	else
		vx_buf_addc(b, (char)c);
}

/* RFC 3986, 2.3: the unreserved characters stay. */
static void spell_url(struct vx_buf *b, unsigned char c)
{
	if ((c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
		(c && strchr("-._~", c)))
		vx_buf_addc(b, (char)c);
	else
		vx_buf_printf(b, "%%%02X", c);
}

static void spell_shell(struct vx_buf *b, unsigned char c)
{
	if (c == '\'')
		vx_buf_adds(b, "'\\''");
	else
		vx_buf_addc(b, (char)c);
}

/* One value or line, as it is and as others spell it. */
static void add(struct vx_masks *m, const char *p, size_t n)
{
	static spell_fn *const spellings[] = {spell_json, spell_html, spell_url, spell_shell};

	add_bytes(m, p, n);
	for (size_t k = 0; n >= VX_MASK_MIN_BYTES && k < sizeof spellings / sizeof *spellings;
		k++) {
		struct vx_buf b = VX_BUF(SIZE_MAX / 4);

		for (size_t i = 0; i < n; i++)
			spellings[k](&b, (unsigned char)p[i]);
		if (b.len != n)
			add_bytes(m, b.data, b.len);
		vx_buf_free(&b);
	}
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
		if ((name[k] | 32) == (word[0] | 32) && !strncasecmp(name + k, word, w))
			return true;
	return false;
}

/* Names that hold such a word and are known for what they are: members of a package.json (its
 * keywords, to begin with), and a prefix of other variables' names. */
static bool is_public(const char *name, size_t n)
{
	static const char package[] = "npm_package_", vendor[] = "TURBO_CI_VENDOR_ENV_KEY";

	return (n >= sizeof package - 1 && !memcmp(name, package, sizeof package - 1)) ||
	       (n == sizeof vendor - 1 && !memcmp(name, vendor, n));
}

bool vx_secret_name(const char *name, size_t n, struct vx_strs declared)
{
	static const char *const words[] = {
		"TOKEN", "SECRET", "KEY", "PASSWORD", "PASSWD", "CREDENTIAL"};

	for (size_t k = 0; k < sizeof words / sizeof *words; k++)
		if (holds(name, n, words[k]) && !is_public(name, n))
			return true;
	for (uint32_t k = 0; k < declared.n; k++)
		if (strlen(declared.v[k]) == n && !memcmp(declared.v[k], name, n))
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

static void learn(struct vx_masks *m, struct vx_strs env, struct vx_strs declared)
{
	for (uint32_t i = 0; i < env.n; i++) {
		const char *eq = strchr(env.v[i], '=');

		if (eq && vx_secret_name(env.v[i], (size_t)(eq - env.v[i]), declared))
			add_value(m, eq + 1);
	}
}

static void make_index(struct vx_masks *m)
{
	uint32_t k = 0, n = 0;

	if (m->n)
		qsort(m->v, m->n, sizeof *m->v, compare);
	for (uint32_t i = 0; i < m->n; i++)
		if (!n || compare(&m->v[n - 1], &m->v[i]) != 0)
			m->v[n++] = m->v[i];
	m->n = n;
	for (unsigned b = 0; b < 256; b++) {
		m->first[b] = k;
		while (k < m->n && m->v[k].p[0] == b)
			k++;
	}
	m->first[256] = k;
}

struct vx_masks *vx_masks_new(struct vx_strs env, struct vx_strs secret)
{
	struct vx_masks *m = vx_xcalloc(1, sizeof *m);

	learn(m, env, secret);
	make_index(m);
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

bool vx_masks_none(const struct vx_masks *m)
{
	return !m || !m->n;
}

size_t vx_masks_skip(const struct vx_masks *m, const uint8_t *p, size_t n)
{
	size_t k = 0;

	while (k < n && m->first[p[k]] == m->first[p[k] + 1U])
		k++;
	return k;
}

size_t vx_masks_at(const struct vx_masks *m, const uint8_t *p, size_t n, bool *ret_partial)
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

/* ---- the process's own ---- */

static struct vx_masks process;
static bool knows_environment;

static void learn_environment(void)
{
	uint32_t n = 0;

	if (knows_environment)
		return;
	knows_environment = true;
	while (environ && environ[n])
		n++;
	learn(&process, (struct vx_strs){(const char *const *)environ, n}, (struct vx_strs){0});
	make_index(&process);
}

void vx_secrets_learn(struct vx_strs env, struct vx_strs declared)
{
	uint32_t n;

	learn_environment();
	n = process.n;
	learn(&process, env, declared);
	if (process.n != n)
		make_index(&process);
}

const struct vx_masks *vx_secrets(void)
{
	learn_environment();
	return &process;
}

bool vx_secrets_none(void)
{
	learn_environment();
	return !process.n;
}

/* The end of the text that begins with a mask at p[k] and is hidden as one; k: none begins
 * there. */
static size_t hidden_end(const uint8_t *p, size_t n, size_t k)
{
	size_t end = k;

	for (size_t i = k; i < n && (i < end || i == k); i++) {
		bool partial;
		size_t m = vx_masks_at(&process, p + i, n - i, &partial);

		if (m && i + m > end)
			end = i + m;
	}
	return end;
}

void vx_secrets_mask(struct vx_buf *out, const char *s, size_t n)
{
	const uint8_t *p = (const uint8_t *)s;
	size_t plain = 0, k = 0;

	if (vx_secrets_none()) {
		vx_buf_add(out, s, n);
		return;
	}
	while (k < n) {
		k += vx_masks_skip(&process, p + k, n - k);
		size_t end = k < n ? hidden_end(p, n, k) : k;
		if (end == k) {
			k++;
			continue;
		}
		vx_buf_add(out, s + plain, k - plain);
		vx_buf_adds(out, VX_MASK_TEXT);
		plain = k = end;
	}
	vx_buf_add(out, s + plain, n - plain);
}

bool vx_secrets_in(const char *s, size_t n)
{
	const uint8_t *p = (const uint8_t *)s;
	bool partial;

	for (size_t k = 0; !vx_secrets_none() && k < n; k++) {
		k += vx_masks_skip(&process, p + k, n - k);
		if (k < n && vx_masks_at(&process, p + k, n - k, &partial))
			return true;
	}
	return false;
}
