#include "vx/json.h"

#include "jsonscan.h"
#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/limits.h"
#include "vx/text.h"

#include <errno.h>
#include <json-c/json.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* struct vx_json is json-c's object by another name; NULL is JSON's null in both. */
static struct json_object *in(const struct vx_json *v)
{
	return (struct json_object *)(void *)(uintptr_t)v;
}

static struct vx_json *out(struct json_object *v)
{
	return (struct vx_json *)(void *)v;
}

static struct vx_json *made(struct json_object *v)
{
	if (!v) {
		fputs("vx: out of memory\n", stderr);
		abort();
	}
	return out(v);
}

int vx_json_parse(const char *text, size_t n, int flags, const char *where, struct vx_json **ret,
	struct vx_err *err)
{
	struct vx_buf clean = VX_BUF(VX_MAX_CONFIG_BYTES);

	if (n > VX_MAX_CONFIG_BYTES)
		return vx_err_set(err, -EFBIG,
			"%s: larger than %u bytes, the most a configuration file may have", where,
			VX_MAX_CONFIG_BYTES);

	int r = vx_jsonscan(text, n, flags, where, &clean, err);
	if (r < 0) {
		vx_buf_free(&clean);
		return r;
	}

	/* The scanner allows VX_MAX_JSON_DEPTH; json-c counts the innermost scalar as one more
	 * level. */
	struct json_tokener *tok = json_tokener_new_ex(VX_MAX_JSON_DEPTH + 2);
	made((struct json_object *)(void *)tok);
	/* Told the length with the NUL included, so that a number at the end is seen to end. */
	struct json_object *v = json_tokener_parse_ex(tok, vx_buf_str(&clean), (int)clean.len + 1);
	enum json_tokener_error e = json_tokener_get_error(tok);
	json_tokener_free(tok);
	vx_buf_free(&clean);
	if (e != json_tokener_success) {
		json_object_put(v);
		return vx_err_set(err, -EINVAL, "%s: %s", where, json_tokener_error_desc(e));
	}
	*ret = out(v);
	return 0;
}

void vx_json_free(struct vx_json *v)
{
	json_object_put(in(v));
}

enum vx_json_type vx_json_type(const struct vx_json *v)
{
	switch (json_object_get_type(in(v))) {
	case json_type_boolean:
		return VX_JSON_BOOL;
	case json_type_int:
		return VX_JSON_INT;
	case json_type_double:
		return VX_JSON_DOUBLE;
	case json_type_string:
		return VX_JSON_STRING;
	case json_type_array:
		return VX_JSON_ARRAY;
	case json_type_object:
		return VX_JSON_OBJECT;
	case json_type_null:
		break;
	}
	return VX_JSON_NULL;
}

bool vx_json_bool(const struct vx_json *v)
{
	return vx_json_type(v) == VX_JSON_BOOL && json_object_get_boolean(in(v));
}

int64_t vx_json_int(const struct vx_json *v)
{
	return vx_json_type(v) == VX_JSON_INT ? json_object_get_int64(in(v)) : 0;
}

double vx_json_double(const struct vx_json *v)
{
	enum vx_json_type t = vx_json_type(v);

	return t == VX_JSON_DOUBLE || t == VX_JSON_INT ? json_object_get_double(in(v)) : 0;
}

const char *vx_json_str(const struct vx_json *v)
{
	return vx_json_type(v) == VX_JSON_STRING ? json_object_get_string(in(v)) : NULL;
}

size_t vx_json_str_len(const struct vx_json *v)
{
	return vx_json_type(v) == VX_JSON_STRING ? (size_t)json_object_get_string_len(in(v)) : 0;
}

size_t vx_json_len(const struct vx_json *v)
{
	enum vx_json_type t = vx_json_type(v);

	if (t == VX_JSON_ARRAY)
		return json_object_array_length(in(v));
	return t == VX_JSON_OBJECT ? (size_t)json_object_object_length(in(v)) : 0;
}

struct vx_json *vx_json_at(const struct vx_json *v, size_t i)
{
	return vx_json_type(v) == VX_JSON_ARRAY ? out(json_object_array_get_idx(in(v), i)) : NULL;
}

struct vx_json *vx_json_get(const struct vx_json *v, const char *key)
{
	return vx_json_type(v) == VX_JSON_OBJECT ? out(json_object_object_get(in(v), key)) : NULL;
}

bool vx_json_has(const struct vx_json *v, const char *key)
{
	return vx_json_type(v) == VX_JSON_OBJECT && json_object_object_get_ex(in(v), key, NULL);
}

struct vx_json_iter vx_json_iter(const struct vx_json *obj)
{
	struct vx_json_iter it = {.obj = obj};

	if (vx_json_type(obj) == VX_JSON_OBJECT)
		it.pos = lh_table_head(json_object_get_object(in(obj)));
	return it;
}

bool vx_json_next(struct vx_json_iter *it)
{
	struct lh_entry *e = it->pos;

	if (!e)
		return false;
	it->key = lh_entry_k(e);
	it->val = lh_entry_v(e);
	it->pos = lh_entry_next(e);
	return true;
}

struct vx_json *vx_json_object(void)
{
	return made(json_object_new_object());
}

struct vx_json *vx_json_array(void)
{
	return made(json_object_new_array());
}

struct vx_json *vx_json_new_bool(bool b)
{
	return made(json_object_new_boolean(b));
}

struct vx_json *vx_json_new_int(int64_t i)
{
	return made(json_object_new_int64(i));
}

struct vx_json *vx_json_new_double(double d)
{
	/* JSON has no infinities: null */
	return isfinite(d) ? made(json_object_new_double(d)) : NULL;
}

struct vx_json *vx_json_new_str(const char *s)
{
	return made(json_object_new_string_len(s, (int)strlen(s)));
}

void vx_json_set(struct vx_json *obj, const char *key, struct vx_json *val)
{
	vx_assert(vx_json_type(obj) == VX_JSON_OBJECT);
	vx_assert(json_object_object_add(in(obj), key, in(val)) == 0);
}

void vx_json_add(struct vx_json *arr, struct vx_json *val)
{
	vx_assert(vx_json_type(arr) == VX_JSON_ARRAY);
	vx_assert(json_object_array_add(in(arr), in(val)) == 0);
}

/* ---- writing ---- */

struct style {
	bool sorted, pretty;
	bool shown; /* for a document that leaves the process */
};

/* RFC 8259, 7: only what must be escaped is. */
static void write_str(const char *s, size_t n, struct style st, struct vx_buf *b)
{
	static const char names[32] = {
		['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
	size_t plain = 0;

	if (st.shown) {
		vx_text_json(b, s, n, false);
		return;
	}
	vx_buf_addc(b, '"');
	for (size_t i = 0; i < n; i++) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 0x20 && c != '"' && c != '\\')
			continue;
		vx_buf_add(b, s + plain, i - plain);
		plain = i + 1;
		if (c >= 0x20)
			vx_buf_printf(b, "\\%c", c);
		else if (names[c])
			vx_buf_printf(b, "\\%c", names[c]);
		else
			vx_buf_printf(b, "\\u%04x", c);
	}
	vx_buf_add(b, s + plain, n - plain);
	vx_buf_addc(b, '"');
}

static void new_line(struct style st, int depth, struct vx_buf *b)
{
	if (st.pretty) {
		vx_buf_addc(b, '\n');
		for (int i = 0; i < depth; i++)
			vx_buf_adds(b, "  ");
	}
}

static void write_value(const struct vx_json *v, struct style st, int depth, struct vx_buf *b);

static int by_name(const void *a, const void *b)
{
	const struct vx_json_iter *x = a, *y = b;

	return strcmp(x->key, y->key);
}

static void write_object(const struct vx_json *v, struct style st, int depth, struct vx_buf *b)
{
	size_t n = vx_json_len(v), i = 0;
	struct vx_json_iter *m = vx_xcalloc(n, sizeof *m);

	for (struct vx_json_iter it = vx_json_iter(v); vx_json_next(&it);)
		m[i++] = it;
	if (st.sorted)
		qsort(m, n, sizeof *m, by_name);
	vx_buf_addc(b, '{');
	for (i = 0; i < n; i++) {
		if (i)
			vx_buf_addc(b, ',');
		new_line(st, depth + 1, b);
		write_str(m[i].key, strlen(m[i].key), st, b);
		vx_buf_adds(b, st.pretty ? ": " : ":");
		write_value(m[i].val, st, depth + 1, b);
	}
	if (n)
		new_line(st, depth, b);
	vx_buf_addc(b, '}');
	free(m);
}

static void write_array(const struct vx_json *v, struct style st, int depth, struct vx_buf *b)
{
	size_t n = vx_json_len(v);

	vx_buf_addc(b, '[');
	for (size_t i = 0; i < n; i++) {
		if (i)
			vx_buf_addc(b, ',');
		new_line(st, depth + 1, b);
		write_value(vx_json_at(v, i), st, depth + 1, b);
	}
	if (n)
		new_line(st, depth, b);
	vx_buf_addc(b, ']');
}

static void write_value(const struct vx_json *v, struct style st, int depth, struct vx_buf *b)
{
	switch (vx_json_type(v)) {
	case VX_JSON_NULL:
		vx_buf_adds(b, "null");
		break;
	case VX_JSON_BOOL:
		vx_buf_adds(b, vx_json_bool(v) ? "true" : "false");
		break;
	case VX_JSON_INT:
		vx_buf_printf(b, "%lld", (long long)vx_json_int(v));
		break;
	case VX_JSON_DOUBLE: /* json-c keeps the text that a parsed one was read from */
		vx_buf_adds(b, json_object_to_json_string_ext(in(v), JSON_C_TO_STRING_PLAIN));
		break;
	case VX_JSON_STRING:
		write_str(vx_json_str(v), vx_json_str_len(v), st, b);
		break;
	case VX_JSON_ARRAY:
		write_array(v, st, depth, b);
		break;
	case VX_JSON_OBJECT:
		write_object(v, st, depth, b);
		break;
	}
}

void vx_json_write(const struct vx_json *v, bool sorted, struct vx_buf *b)
{
	write_value(v, (struct style){.sorted = sorted}, 0, b);
}

void vx_json_write_pretty(const struct vx_json *v, struct vx_buf *b)
{
	write_value(v, (struct style){.pretty = true}, 0, b);
}

void vx_json_write_shown(const struct vx_json *v, bool pretty, struct vx_buf *b)
{
	write_value(v, (struct style){.pretty = pretty, .shown = true}, 0, b);
}
