#include "cfg.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/facts.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

int cfg_fail(const struct cfg *c, const char *field, const char *fmt, ...)
{
	struct vx_buf b = VX_BUF(2048);
	va_list ap;

	vx_buf_adds(&b, c->file);
	if (c->project)
		vx_buf_printf(&b, ": project \"%.200s\"", c->project);
	if (c->task)
		vx_buf_printf(&b, "%s task \"%.200s\"", c->project ? "," : ":", c->task);
	vx_buf_adds(&b, ": ");
	if (field)
		vx_buf_printf(&b, "%.300s ", field);
	va_start(ap, fmt);
	vx_buf_vprintf(&b, fmt, ap);
	va_end(ap);
	int r = vx_err_set(c->err, -EINVAL, "%s", vx_buf_str(&b));
	vx_buf_free(&b);
	return r;
}

static const char *type_name(const struct vx_json *v)
{
	switch (vx_json_type(v)) {
	case VX_JSON_NULL:
		return "null";
	case VX_JSON_BOOL:
		return vx_json_bool(v) ? "true" : "false";
	case VX_JSON_INT:
	case VX_JSON_DOUBLE:
		return "a number";
	case VX_JSON_STRING:
		return "a string";
	case VX_JSON_ARRAY:
		return "a list";
	case VX_JSON_OBJECT:
		return "an object";
	}
	return "?";
}

static bool is_known(const char *key, const char *const *known)
{
	for (; *known; known++)
		if (strcmp(*known, key) == 0)
			return true;
	return false;
}

int cfg_count(const struct cfg *c, const struct vx_json *v, const char *field)
{
	if (vx_json_len(v) <= VX_MAX_MEMBERS)
		return 0;
	return cfg_fail(c, field, "has %zu members, more than the limit of %u", vx_json_len(v),
		VX_MAX_MEMBERS);
}

int cfg_object(
	const struct cfg *c, const struct vx_json *v, const char *field, const char *const *known)
{
	struct vx_strs names = {known, 0};

	if (vx_json_type(v) != VX_JSON_OBJECT)
		return cfg_fail(c, field, "must be an object, not %s", type_name(v));
	int count = cfg_count(c, v, field);
	if (count < 0)
		return count;
	for (struct vx_json_iter it = vx_json_iter(v); vx_json_next(&it);) {
		if (is_known(it.key, known))
			continue;
		while (known[names.n])
			names.n++;
		const char *near = vx_nearest(it.key, names);
		int r = field ? cfg_fail(c, field, "has an unknown key \"%.100s\"", it.key)
			      : cfg_fail(c, NULL, "unknown key \"%.100s\"", it.key);
		if (near)
			return vx_err_fix(c->err, "did you mean \"%s\"?", near);
		struct vx_buf b = VX_BUF(900);
		for (uint32_t i = 0; i < names.n; i++)
			if (*names.v[i] != '$')
				vx_buf_printf(&b, "%s%s", b.len ? ", " : "", names.v[i]);
		vx_err_fix(c->err, "known keys: %s", vx_buf_str(&b));
		vx_buf_free(&b);
		return r;
	}
	return 0;
}

int cfg_str(const struct cfg *c, const struct vx_json *v, const char *field, const char **ret)
{
	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_STRING)
		return cfg_fail(c, field, "must be a string, not %s", type_name(v));
	if (memchr(vx_json_str(v), '\0', vx_json_str_len(v)))
		return cfg_fail(c, field, "must not hold a NUL");
	*ret = vx_arena_strndup(c->a, vx_json_str(v), vx_json_str_len(v));
	return 0;
}

int cfg_strs(const struct cfg *c, const struct vx_json *v, const char *field, struct vx_strs *ret)
{
	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_ARRAY)
		return cfg_fail(c, field, "must be a list of strings, not %s", type_name(v));
	size_t n = vx_json_len(v);
	if (n > VX_MAX_LIST)
		return cfg_fail(
			c, field, "has %zu entries, more than the limit of %u", n, VX_MAX_LIST);
	const char **s = vx_arena_array(c->a, n ? n : 1, sizeof *s);
	for (size_t i = 0; i < n; i++) {
		const struct vx_json *e = vx_json_at(v, i);
		if (vx_json_type(e) != VX_JSON_STRING)
			return cfg_fail(c, field, "must be a list of strings, but entry %zu is %s",
				i + 1, type_name(e));
		size_t len = vx_json_str_len(e);
		if (len == 0)
			return cfg_fail(c, field, "has an empty string as entry %zu", i + 1);
		if (memchr(vx_json_str(e), '\0', len))
			return cfg_fail(c, field, "must not hold a NUL (entry %zu)", i + 1);
		s[i] = vx_arena_strndup(c->a, vx_json_str(e), len);
	}
	*ret = (struct vx_strs){s, (uint32_t)n};
	return 0;
}

int cfg_bool(const struct cfg *c, const struct vx_json *v, const char *field, bool *ret)
{
	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_BOOL)
		return cfg_fail(c, field, "must be true or false, not %s", type_name(v));
	*ret = vx_json_bool(v);
	return 0;
}

int cfg_int(const struct cfg *c, const struct vx_json *v, const char *field, int64_t min,
	int64_t max, int64_t *ret)
{
	if (!v)
		return 0;
	bool whole = vx_json_type(v) == VX_JSON_INT;
	int64_t n = whole ? vx_json_int(v) : 0;
	if (vx_json_type(v) == VX_JSON_DOUBLE) {
		double d = vx_json_double(v);
		whole = d >= -9e15 && d <= 9e15 && (double)(int64_t)d == d;
		n = whole ? (int64_t)d : 0;
	}
	if (!whole || n < min || n > max)
		return cfg_fail(c, field, "must be a whole number from %lld to %lld",
			(long long)min, (long long)max);
	*ret = n;
	return 0;
}

const struct vx_json *cfg_pick(
	const struct vx_json *own, const struct vx_json *fallback, const char *key)
{
	if (own && vx_json_has(own, key))
		return vx_json_get(own, key);
	return fallback ? vx_json_get(fallback, key) : NULL;
}

int cfg_read(const struct vx_base_dir *root, const char *rel, struct vx_buf *b, struct vx_err *err)
{
	vx_buf_clear(b);
	int r = vx_seen_read(root, rel, b);
	if (r == 0 || r == -ENOENT)
		return r;
	if (r == -EFBIG)
		return vx_err_set(err, r,
			"%s: larger than %u bytes, the most a configuration file may have", rel,
			VX_MAX_CONFIG_BYTES);
	return vx_err_set(err, r, "cannot read %s: %s", rel,
		r == -EINVAL ? "not a regular file" : vx_strerror(r));
}

const char *cfg_script(const struct vx_project *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_scripts; i++)
		if (strcmp(p->scripts[i].name, name) == 0)
			return p->scripts[i].value;
	return NULL;
}

/* pnpm leaves out what the script seems to call itself. */
static const char *around(const struct vx_manager *m, const struct vx_project *p,
	const char *prefix, const char *name, const char *command)
{
	size_t n = strlen(prefix);

	for (uint32_t i = 0; m->runs_around && i < p->n_scripts; i++) {
		const struct vx_kv *s = &p->scripts[i];
		if (strncmp(s->name, prefix, n) != 0 || strcmp(s->name + n, name) != 0)
			continue;
		if (m->pm == VX_PM_PNPM && strstr(command, s->name))
			return NULL;
		return s->value[strspn(s->value, " \t\r\n")] ? s->value : NULL;
	}
	return NULL;
}

void cfg_use_script(const struct vx_manager *m, const struct vx_project *p, const char *name,
	struct vx_arena *a, struct vx_exec_decl *e)
{
	e->command = cfg_script(p, name);
	e->script = vx_arena_strdup(a, name);
	e->pre = around(m, p, "pre", name, e->command);
	e->post = around(m, p, "post", name, e->command);
}
