/* A parser of git's configuration files. See gitconf.h. */
#include "config.h"

#include "vx/buf.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define MAX_VALUE_BYTES (1U << 20)

struct conf {
	const char *p, *end;
	struct vx_buf section, name, value;
};

static int peek(const struct conf *c)
{
	if (c->p >= c->end)
		return -1;
	if (c->p[0] == '\r' && c->p + 1 < c->end && c->p[1] == '\n')
		return '\n';
	return (unsigned char)*c->p;
}

static int take(struct conf *c)
{
	int ch = peek(c);
	if (ch >= 0)
		c->p += *c->p == '\r' && ch == '\n' ? 2 : 1;
	return ch;
}

static void skip_line(struct conf *c)
{
	while (peek(c) >= 0 && take(c) != '\n')
		;
}

/* After '[': section, perhaps a quoted subsection, ']'. */
static int read_section(struct conf *c)
{
	vx_buf_clear(&c->section);
	int ch;
	while ((ch = take(c)) != ']') {
		if (ch == ' ' || ch == '\t') {
			while (peek(c) == ' ' || peek(c) == '\t')
				take(c);
			if (take(c) != '"')
				return -EINVAL;
			vx_buf_addc(&c->section, '.');
			while ((ch = take(c)) != '"') {
				if (ch == '\\')
					ch = take(c);
				if (ch < 0 || ch == '\n')
					return -EINVAL;
				vx_buf_addc(&c->section, (char)ch);
			}
			return take(c) == ']' ? 0 : -EINVAL;
		}
		if (ch < 0 || (!isalnum(ch) && ch != '-' && ch != '.'))
			return -EINVAL;
		vx_buf_addc(&c->section, (char)tolower(ch));
	}
	return 0;
}

static int unescape(int ch)
{
	switch (ch) {
	case 'n':
		return '\n';
	case 't':
		return '\t';
	case 'b':
		return '\b';
	case '\\':
	case '"':
		return ch;
	default:
		return -1;
	}
}

/* After '=': quotes, escapes, comments, continued lines; outer blanks go. */
static int read_value(struct conf *c)
{
	bool quoted = false;
	size_t solid = 0; /* bytes up to the last one that is not an outer blank */
	vx_buf_clear(&c->value);
	for (;;) {
		int ch = take(c);
		if (ch < 0 || ch == '\n') {
			if (quoted)
				return -EINVAL;
			break;
		}
		if (!quoted && (ch == '#' || ch == ';')) {
			skip_line(c);
			break;
		}
		if (!quoted && isspace(ch)) {
			if (c->value.len)
				vx_buf_addc(&c->value, (char)ch);
			continue;
		}
		if (ch == '"') {
			quoted = !quoted;
			solid = c->value.len;
			continue;
		}
		if (ch == '\\') {
			ch = take(c);
			if (ch == '\n')
				continue;
			ch = unescape(ch);
			if (ch < 0)
				return -EINVAL;
		}
		vx_buf_addc(&c->value, (char)ch);
		solid = c->value.len;
	}
	if (c->value.overflow || memchr(vx_buf_str(&c->value), 0, c->value.len))
		return -EINVAL;
	if (c->value.len > solid) {
		c->value.len = solid;
		c->value.data[solid] = '\0';
	}
	return 0;
}

static int read_variable(struct conf *c, int first, vx_gitconf_fn *each, void *arg)
{
	if (!isalpha(first) || !c->section.len)
		return -EINVAL;
	vx_buf_clear(&c->name);
	vx_buf_adds(&c->name, vx_buf_str(&c->section));
	vx_buf_addc(&c->name, '.');
	vx_buf_addc(&c->name, (char)tolower(first));
	while (peek(c) >= 0 && (isalnum(peek(c)) || peek(c) == '-'))
		vx_buf_addc(&c->name, (char)tolower(take(c)));
	while (peek(c) == ' ' || peek(c) == '\t')
		take(c);
	int ch = peek(c);
	if (ch == '=') {
		take(c);
		int r = read_value(c);
		return r ? r : each(arg, vx_buf_str(&c->name), vx_buf_str(&c->value));
	}
	if (ch >= 0 && ch != '\n' && ch != '#' && ch != ';')
		return -EINVAL;
	skip_line(c);
	return each(arg, vx_buf_str(&c->name), NULL);
}

int vx_gitconf_parse(const char *text, size_t n, vx_gitconf_fn *each, void *arg)
{
	struct conf c = {.p = text,
		.end = text + n,
		.section = VX_BUF(4096),
		.name = VX_BUF(8192),
		.value = VX_BUF(MAX_VALUE_BYTES)};
	int r = 0;
	if (n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		c.p += 3;
	while (r == 0 && peek(&c) >= 0) {
		int ch = take(&c);
		if (isspace(ch))
			continue;
		if (ch == '#' || ch == ';')
			skip_line(&c);
		else if (ch == '[')
			r = read_section(&c);
		else
			r = read_variable(&c, ch, each, arg);
		if (c.section.overflow || c.name.overflow)
			r = -EINVAL;
	}
	vx_buf_free(&c.section);
	vx_buf_free(&c.name);
	vx_buf_free(&c.value);
	return r;
}

int vx_gitconf_bool(const char *v)
{
	if (!v || strcasecmp(v, "true") == 0 || strcasecmp(v, "yes") == 0 ||
		strcasecmp(v, "on") == 0)
		return 1;
	if (!*v || strcasecmp(v, "false") == 0 || strcasecmp(v, "no") == 0 ||
		strcasecmp(v, "off") == 0)
		return 0;
	char *end;
	long n = strtol(v, &end, 10);
	return *end ? -1 : n != 0;
}
