/* Ignore rules and attributes. See ignore.h. */
#include "ignore.h"

#include "vx/limits.h"

#include <ctype.h>
#include <string.h>

/* R_TAIL: a star and then nothing special */
enum { R_NEGATIVE = 1, R_DIR_ONLY = 2, R_NO_SLASH = 4, R_TAIL = 8 };

/* of one match; a pattern that needs more is hostile, and the listing that asks fails */
#define WILD_STEPS 2000000

static _Thread_local uint64_t steps;

void vx_ignore_begin(struct vx_ignore_budget *b)
{
	*b = (struct vx_ignore_budget){steps, VX_MAX_IGNORE_STEPS};
}

bool vx_ignore_spent(struct vx_ignore_budget *b, uint32_t more_files)
{
	b->allowed += (uint64_t)more_files * VX_IGNORE_STEPS_PER_FILE;
	return steps - b->since > b->allowed;
}

/* W_END: text used up, no later start can help; W_DEEP: only a `**` further out can */
enum wild { W_YES, W_NO, W_END, W_DEEP };

struct wild_run {
	bool pathname;
	uint32_t steps;
};

static bool in_named_class(const char *name, size_t n, unsigned char c, bool *ret_known)
{
	static const struct {
		const char *name;
		int (*is)(int);
	} classes[] = {{"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank},
		{"cntrl", iscntrl}, {"digit", isdigit}, {"graph", isgraph}, {"lower", islower},
		{"print", isprint}, {"punct", ispunct}, {"space", isspace}, {"upper", isupper},
		{"xdigit", isxdigit}};
	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		if (strlen(classes[i].name) == n && memcmp(classes[i].name, name, n) == 0)
			return c < 128 && classes[i].is(c);
	*ret_known = false;
	return false;
}

/* A bracket expression at *pp (on '['); leaves *pp on its ']'. Returns false when it is broken:
 * then nothing matches at all. */
static bool match_bracket(const char **pp, unsigned char c, bool *ret_hit)
{
	const char *p = *pp + 1;
	bool negated = *p == '!' || *p == '^', hit = false;
	if (negated)
		p++;
	unsigned char prev = 0;
	do {
		unsigned char now = (unsigned char)*p;
		if (!now)
			return false;
		if (now == '\\') {
			now = (unsigned char)*++p;
			if (!now)
				return false;
			hit |= now == c;
		} else if (now == '-' && prev && p[1] && p[1] != ']') {
			now = (unsigned char)*++p;
			if (now == '\\' && !(now = (unsigned char)*++p))
				return false;
			hit |= c >= prev && c <= now;
			now = 0;
		} else if (now == '[' && p[1] == ':') {
			const char *name = p + 2, *close = strchr(name, ']');
			if (!close)
				return false;
			if (close == name || close[-1] != ':') { /* a plain '[' */
				hit |= c == '[';
			} else {
				bool known = true;
				hit |= in_named_class(name, (size_t)(close - name) - 1, c, &known);
				if (!known)
					return false;
				p = close;
				now = 0;
			}
		} else {
			hit |= now == c;
		}
		prev = now;
	} while (*++p != ']');
	*pp = p;
	*ret_hit = hit != negated;
	return true;
}

static enum wild run_wild(struct wild_run *w, const char *p, const char *t);

/* p stands on the first star. */
static enum wild run_star(struct wild_run *w, const char *start, const char *p, const char *t)
{
	const char *first = p;
	while (*p == '*')
		p++;
	bool crosses = !w->pathname;
	if (w->pathname && p - first >= 2) {
		bool left = first == start || first[-1] == '/';
		bool right = !*p || *p == '/' || (p[0] == '\\' && p[1] == '/');
		crosses = left && right;
		if (crosses && *p == '/' && run_wild(w, p + 1, t) == W_YES)
			return W_YES; /* no component at all */
	}
	if (!*p)
		return crosses || !strchr(t, '/') ? W_YES : W_NO;
	if (!crosses && *p == '/') {
		const char *slash = strchr(t, '/');
		return slash ? run_wild(w, p, slash) : W_NO;
	}
	for (; *t; t++) {
		enum wild r = run_wild(w, p, t);
		if (r != W_NO) {
			if (!crosses || r != W_DEEP)
				return r;
		} else if (!crosses && *t == '/') {
			return W_DEEP;
		}
	}
	return W_END;
}

static enum wild run_wild(struct wild_run *w, const char *p, const char *t)
{
	const char *start = p;
	for (; *p; p++, t++) {
		if (++w->steps > WILD_STEPS)
			return W_END;
		if (*p == '*')
			return run_star(w, start, p, t);
		if (!*t)
			return W_END;
		if (*p == '?') {
			if (w->pathname && *t == '/')
				return W_NO;
		} else if (*p == '[') {
			bool hit;
			if (!match_bracket(&p, (unsigned char)*t, &hit))
				return W_END;
			if (!hit || (w->pathname && *t == '/'))
				return W_NO;
		} else {
			if (*p == '\\')
				p++;
			if (*p != *t || !*p)
				return W_NO;
		}
	}
	return *t ? W_NO : W_YES;
}

bool vx_wildmatch(const char *pattern, const char *text, bool pathname)
{
	struct wild_run w = {.pathname = pathname};
	bool yes = run_wild(&w, pattern, text) == W_YES;
	steps += w.steps > WILD_STEPS ? VX_MAX_IGNORE_STEPS + 1ULL : w.steps;
	return yes;
}

static bool is_special(char c)
{
	return c == '*' || c == '?' || c == '[' || c == '\\';
}

/* Splits marks from text. `p` is NUL-terminated and stays. */
static void read_rule(char *p, struct vx_rule *r)
{
	size_t n = strlen(p);
	r->flags = 0;
	if (*p == '!') {
		r->flags |= R_NEGATIVE;
		p++;
		n--;
	}
	if (n && p[n - 1] == '/') {
		r->flags |= R_DIR_ONLY;
		p[--n] = '\0';
	}
	if (!memchr(p, '/', n))
		r->flags |= R_NO_SLASH;
	size_t plain = 0;
	while (plain < n && !is_special(p[plain]))
		plain++;
	if (*p == '*') {
		size_t i = 1;
		while (i < n && !is_special(p[i]))
			i++;
		if (i == n)
			r->flags |= R_TAIL;
	}
	r->text = p;
	r->len = (uint32_t)n;
	r->plain = (uint32_t)plain;
}

/* Trailing spaces go, unless a backslash keeps the last. */
static void trim(char *p)
{
	char *last = NULL;
	for (; *p; p++) {
		if (*p == ' ') {
			if (!last)
				last = p;
			continue;
		}
		last = NULL;
		if (*p == '\\' && !*++p)
			return;
	}
	if (last)
		*last = '\0';
}

static struct vx_rules *new_rules(
	const char *base, const struct vx_rules *up, size_t max, struct vx_arena *a)
{
	struct vx_rules *r = vx_arena_alloc(a, sizeof *r);
	r->up = up;
	r->base = vx_arena_strdup(a, base);
	r->base_len = (uint32_t)strlen(base);
	r->v = vx_arena_array(a, max ? max : 1, sizeof *r->v);
	return r;
}

/* The next line of [*at, n) as a string of its own in `copy`, which the caller has made; NULL at
 * the end. A carriage return in front of the end goes. */
static char *next_line(char *copy, size_t n, size_t *at)
{
	if (*at >= n)
		return NULL;
	char *line = copy + *at, *end = memchr(line, '\n', n - *at);
	if (!end)
		end = copy + n;
	*at = (size_t)(end - copy) + 1;
	*end = '\0';
	if (end > copy && end[-1] == '\r')
		end[-1] = '\0';
	return line;
}

static size_t count_lines(const char *text, size_t n)
{
	size_t lines = 1;
	for (const char *p = text; n && (p = memchr(p, '\n', n - (size_t)(p - text))) != NULL; p++)
		lines++;
	return lines;
}

static void skip_bom(const char **text, size_t *n)
{
	if (*n >= 3 && memcmp(*text, "\xef\xbb\xbf", 3) == 0) {
		*text += 3;
		*n -= 3;
	}
}

const struct vx_rules *vx_ignore_parse(
	const char *text, size_t n, const char *base, const struct vx_rules *up, struct vx_arena *a)
{
	skip_bom(&text, &n);
	if (!n)
		return up;
	struct vx_rules *r = new_rules(base, up, count_lines(text, n), a);
	char *copy = vx_arena_strndup(a, text, n), *line;
	for (size_t at = 0; (line = next_line(copy, n, &at)) != NULL;) {
		if (*line == '#')
			continue;
		trim(line);
		if (!*line)
			continue;
		read_rule(line, &r->v[r->n]);
		r->n++;
	}
	return r->n ? r : up;
}

static bool match_name(const struct vx_rule *r, const char *name, size_t n)
{
	if (r->plain == r->len)
		return n == r->len && memcmp(name, r->text, n) == 0;
	if (r->flags & R_TAIL)
		return r->len - 1 <= n &&
		       memcmp(name + n - (r->len - 1), r->text + 1, r->len - 1) == 0;
	return vx_wildmatch(r->text, name, false);
}

static bool match_path(
	const struct vx_rules *l, const struct vx_rule *r, const char *path, size_t len)
{
	const char *pattern = r->text, *name = path;
	size_t plain = r->plain, n = len, plen = r->len;
	if (l->base_len) {
		if (len <= l->base_len || path[l->base_len] != '/' ||
			memcmp(path, l->base, l->base_len) != 0)
			return false;
		name += l->base_len + 1;
		n -= l->base_len + 1;
	}
	if (*pattern == '/') {
		pattern++;
		plen--;
		plain -= plain > 0;
	}
	if (plain > n || memcmp(pattern, name, plain) != 0)
		return false;
	if (plain == plen)
		return plain == n;
	return vx_wildmatch(pattern + plain, name + plain, true);
}

static bool match_rule(const struct vx_rules *l, const struct vx_rule *r, const char *path,
	size_t len, size_t base_at)
{
	return r->flags & R_NO_SLASH ? match_name(r, path + base_at, len - base_at)
				     : match_path(l, r, path, len);
}

int vx_ignore_match(
	const struct vx_rules *chain, const char *path, size_t len, size_t base_at, bool is_dir)
{
	for (const struct vx_rules *l = chain; l; l = l->up)
		for (uint32_t i = l->n; i-- > 0;) {
			steps++;
			const struct vx_rule *r = &l->v[i];
			if ((!(r->flags & R_DIR_ONLY) || is_dir) &&
				match_rule(l, r, path, len, base_at))
				return !(r->flags & R_NEGATIVE);
		}
	return -1;
}

static bool alters_bytes(const char *word, size_t n)
{
	static const char *const names[] = {
		"text", "crlf", "eol", "ident", "filter", "working-tree-encoding"};
	size_t k = 0;
	while (k < n && word[k] != '=')
		k++;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strlen(names[i]) == k && memcmp(names[i], word, k) == 0)
			return true;
	return false;
}

static const char *const blanks = " \t\r\n";

/* Does some word of the line set one of the attributes that matter? ("-text" and "!text" do
 * not.) */
static bool line_matters(const char *words)
{
	for (const char *p = words; *(p += strspn(p, blanks));) {
		size_t n = strcspn(p, blanks);
		if (*p != '-' && *p != '!' && alters_bytes(p, n))
			return true;
		p += n;
	}
	return false;
}

/* Macros of one's own are not followed: where one sets what matters, every file is taken to be
 * touched by it. */
const struct vx_rules *vx_attr_parse(
	const char *text, size_t n, const char *base, const struct vx_rules *up, struct vx_arena *a)
{
	skip_bom(&text, &n);
	if (!n)
		return up;
	struct vx_rules *r = new_rules(base, up, count_lines(text, n), a);
	char *copy = vx_arena_strndup(a, text, n), *line;
	for (size_t at = 0; (line = next_line(copy, n, &at)) != NULL;) {
		line += strspn(line, blanks);
		if (!*line || *line == '#')
			continue;
		size_t k = strcspn(line, blanks);
		bool odd = *line == '"' || strncmp(line, "[attr]", 6) == 0;
		if (!line_matters(odd ? line + (*line == '"' ? 0 : 6) : line + k))
			continue;
		line[k] = '\0';
		read_rule(odd ? vx_arena_strdup(a, "*") : line, &r->v[r->n]);
		if (!(r->v[r->n].flags &
			    (R_NEGATIVE | R_DIR_ONLY))) /* git refuses the first and the second
							   matches no file */
			r->n++;
	}
	return r->n ? r : up;
}

bool vx_attr_match(const struct vx_rules *chain, const char *path, size_t len, size_t base_at)
{
	for (const struct vx_rules *l = chain; l; l = l->up)
		for (uint32_t i = 0; i < l->n; i++, steps++)
			if (match_rule(l, &l->v[i], path, len, base_at))
				return true;
	return false;
}
