#include "vx/text.h"

#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/secret.h"

#include <stdint.h>
#include <string.h>
#include <strings.h>

static bool ascii_only;

size_t vx_utf8_len(const unsigned char *p, size_t n)
{
	size_t k = p[0] < 0x80                   ? 1
		   : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
		   : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
		   : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
						 : 0;

	if (!k || k > n)
		return 0;
	for (size_t i = 1; i < k; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
		(p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
		return 0;
	return k;
}

static uint32_t code_point(const unsigned char *p, size_t k)
{
	uint32_t c = k == 1 ? p[0] : p[0] & (0x7fU >> k);

	for (size_t i = 1; i < k; i++)
		c = c << 6 | (p[i] & 0x3f);
	return c;
}

/* What a terminal obeys, or what makes a line look like another one: control characters, marks and
 * overrides of direction, separators of lines, characters without a width, tags (Unicode, UAX 9 and
 * chapter 23). U+200C and U+200D stay: scripts and emoji are written with them. */
static bool is_unsafe(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0xad || c == 0x61c || c == 0x180e ||
	       c == 0x200b || c == 0x200e || c == 0x200f || (c >= 0x2028 && c <= 0x202e) ||
	       (c >= 0x2060 && c <= 0x206f) || c == 0xfeff || (c >= 0xfff9 && c <= 0xfffb) ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

static void escape_char(struct vx_buf *b, uint32_t c)
{
	if (c == '\t')
		vx_buf_addc(b, ' ');
	else if (c == '\n' || c == '\r')
		vx_buf_adds(b, c == '\n' ? "\\n" : "\\r");
	else
		vx_buf_printf(b, c < 0x80 ? "\\x%02x" : c > 0xffff ? "\\U%08x" : "\\u%04x", c);
}

static bool is_plain(unsigned char c)
{
	return c >= 0x20 && c < 0x7f;
}

static void escape(struct vx_buf *b, const char *s, size_t n)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t plain = 0;

	for (size_t i = 0; i < n;) {
		if (is_plain(p[i])) {
			i++;
			continue;
		}
		size_t k = vx_utf8_len(p + i, n - i);
		uint32_t c = k ? code_point(p + i, k) : 0;
		if (k && !is_unsafe(c) && !(ascii_only && c > 0x7f)) {
			i += k;
			continue;
		}
		vx_buf_add(b, s + plain, i - plain);
		if (k)
			escape_char(b, c);
		else
			vx_buf_printf(b, "\\x%02x", p[i]);
		i += k ? k : 1;
		plain = i;
	}
	vx_buf_add(b, s + plain, n - plain);
}

void vx_text_add(struct vx_buf *b, const char *s, size_t n)
{
	struct vx_buf masked = VX_BUF(SIZE_MAX / 4);

	if (vx_secrets_none()) {
		escape(b, s, n);
		return;
	}
	vx_secrets_mask(&masked, s, n);
	escape(b, vx_buf_str(&masked), masked.len);
	vx_buf_free(&masked);
}

static size_t newlines_at_end(const char *s)
{
	size_t n = strlen(s), k = 0;

	while (k < n && s[n - 1 - k] == '\n')
		k++;
	return k;
}

static void add_newlines(struct vx_buf *b, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vx_buf_addc(b, '\n');
}

void vx_text_vprintf(struct vx_buf *b, const char *fmt, va_list ap)
{
	struct vx_buf line = VX_BUF(SIZE_MAX / 4);
	size_t front = strspn(fmt, "\n"), back = fmt[front] ? newlines_at_end(fmt) : 0;

	vx_buf_vprintf(&line, fmt, ap);
	add_newlines(b, front);
	vx_text_add(b, vx_buf_str(&line) + front, line.len - front - back);
	add_newlines(b, back);
	vx_buf_free(&line);
}

void vx_text_printf(struct vx_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vx_text_vprintf(b, fmt, ap);
	va_end(ap);
}

void vx_say(int fd, const char *fmt, ...)
{
	struct vx_buf b = VX_BUF(SIZE_MAX / 4);
	va_list ap;

	va_start(ap, fmt);
	vx_text_vprintf(&b, fmt, ap);
	va_end(ap);
	(void)vx_write_full(fd, vx_buf_str(&b), b.len);
	vx_buf_free(&b);
}

static const char *value_of(const char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return *env + n + 1;
	return NULL;
}

bool vx_text_locale(const char *const *env)
{
	static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};

	ascii_only = false;
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		const char *v = value_of(env, names[k]);

		if (!v || !*v)
			continue;
		ascii_only = !strcasestr(v, "utf-8") && !strcasestr(v, "utf8") &&
			     strcmp(v, "C") != 0 && strcmp(v, "POSIX") != 0;
		break;
	}
	return !ascii_only;
}

/* ---- JSON ---- */

static void json_char(struct vx_buf *b, uint32_t c)
{
	static const char names[32] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};

	if (c == '"' || c == '\\')
		vx_buf_printf(b, "\\%c", (char)c);
	else if (c < 0x20 && names[c])
		vx_buf_printf(b, "\\%c", names[c]);
	else if (c > 0xffff) /* RFC 8259, 7: as a pair of surrogates */
		vx_buf_printf(b, "\\u%04x\\u%04x", 0xd800 + ((c - 0x10000) >> 10),
			0xdc00 + ((c - 0x10000) & 0x3ff));
	else
		vx_buf_printf(b, "\\u%04x", c);
}

/* Bytes that JSON cannot hold, or that look like how such are written. */
static void json_bytes(struct vx_buf *b, const unsigned char *p, size_t n)
{
	for (size_t i = 0; i < n; i++)
		vx_buf_printf(b, "\xef\xbf\xbd%02x", p[i]);
}

static void quote(struct vx_buf *b, const char *s, size_t n, bool html)
{
	const unsigned char *p = (const unsigned char *)s;
	size_t plain = 0;

	vx_buf_addc(b, '"');
	for (size_t i = 0; i < n;) {
		size_t k = is_plain(p[i]) ? 1 : vx_utf8_len(p + i, n - i);
		uint32_t c = k ? code_point(p + i, k) : 0;
		bool odd = !k || c == 0xfffd,
		     escaped = odd || is_unsafe(c) || c == '"' || c == '\\' || (html && c == '<');
		if (!escaped) {
			i += k;
			continue;
		}
		vx_buf_add(b, s + plain, i - plain);
		if (odd)
			json_bytes(b, p + i, k ? k : 1);
		else
			json_char(b, c);
		i += k ? k : 1;
		plain = i;
	}
	vx_buf_add(b, s + plain, n - plain);
	vx_buf_addc(b, '"');
}

void vx_text_json(struct vx_buf *b, const char *s, size_t n, bool html)
{
	struct vx_buf masked = VX_BUF(SIZE_MAX / 4);

	if (vx_secrets_none()) {
		quote(b, s, n, html);
		return;
	}
	vx_secrets_mask(&masked, s, n);
	quote(b, vx_buf_str(&masked), masked.len, html);
	vx_buf_free(&masked);
}
