/* Readiness of persistent tasks: a PCRE2 expression over complete lines, and over the unfinished
 * last line too, since many servers print a prompt-like last line without a newline. Escape
 * sequences (ECMA-48 CSI and OSC) are stripped first. The only file that includes pcre2.h. */
#define PCRE2_CODE_UNIT_WIDTH 8
#include "loop.h"

#include <errno.h>
#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#define READY_LINE_MAX 65536U /* a longer line is judged by its first bytes */
#define READY_STEPS 1000000U  /* PCRE2's match limit: a hostile expression ends as "no match" */

struct vx_ready {
	pcre2_code *code;
	pcre2_match_data *match;
	pcre2_match_context *limits;
	struct vx_buf line;
	enum { TEXT, ESC, CSI, OSC, OSC_ESC } state;
};

int vx_ready_new(const char *pattern, struct vx_ready **ret, struct vx_err *err)
{
	int number;
	PCRE2_SIZE at;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED,
		PCRE2_DOLLAR_ENDONLY, &number, &at, NULL);
	if (!code) {
		PCRE2_UCHAR text[160];
		pcre2_get_error_message(number, text, sizeof text);
		return vx_err_set(err, -EINVAL, "readyWhen \"%s\": at byte %zu: %s", pattern,
			(size_t)at, (const char *)text);
	}
	struct vx_ready *r = vx_xcalloc(1, sizeof *r);
	r->code = code;
	r->match = pcre2_match_data_create(1, NULL);
	r->limits = pcre2_match_context_create(NULL);
	pcre2_set_match_limit(r->limits, READY_STEPS);
	r->line = VX_BUF(READY_LINE_MAX);
	*ret = r;
	return 0;
}

static bool matches(struct vx_ready *r)
{
	const char *text = vx_buf_str(&r->line);
	size_t n = r->line.len;
	if (n && text[n - 1] == '\r')
		n--;
	return pcre2_match(r->code, (PCRE2_SPTR)text, n, 0, 0, r->match, r->limits) >= 0;
}

/* One byte through the escape-sequence filter; true when it belongs to the text. */
static bool is_text(struct vx_ready *r, unsigned char c)
{
	switch (r->state) {
	case TEXT:
		if (c == 0x1b)
			r->state = ESC;
		return c != 0x1b;
	case ESC:
		r->state = c == '[' ? CSI : c == ']' ? OSC : TEXT;
		return false;
	case CSI:
		if (c >= 0x40 && c <= 0x7e)
			r->state = TEXT;
		return false;
	case OSC:
		r->state = c == 0x07 ? TEXT : c == 0x1b ? OSC_ESC : OSC;
		return false;
	case OSC_ESC:
		r->state = TEXT;
		return false;
	}
	return true;
}

bool vx_ready_feed(struct vx_ready *r, const void *p, size_t n)
{
	const unsigned char *s = p;
	for (size_t i = 0; i < n; i++) {
		if (!is_text(r, s[i]))
			continue;
		if (s[i] != '\n') {
			if (r->line.len < READY_LINE_MAX - 1)
				vx_buf_addc(&r->line, (char)s[i]);
			continue;
		}
		if (matches(r))
			return true;
		vx_buf_clear(&r->line);
	}
	return r->line.len && matches(r);
}

void vx_ready_free(struct vx_ready *r)
{
	if (!r)
		return;
	pcre2_code_free(r->code);
	pcre2_match_data_free(r->match);
	pcre2_match_context_free(r->limits);
	vx_buf_free(&r->line);
	free(r);
}
