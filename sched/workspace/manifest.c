#include "manifest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/json.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

static const char *const sections[] = {
	"dependencies", "devDependencies", "optionalDependencies", "peerDependencies"};
enum { N_SECTIONS = 4, PEER = 3 };

static const char *dup_str(struct vx_arena *a, const struct vx_json *v)
{
	return vx_arena_strndup(a, vx_json_str(v), vx_json_str_len(v));
}

static int wrong(const char *where, const char *field, const char *expected, struct vx_err *err)
{
	return vx_err_set(err, -EINVAL, "%s: %s must be %s", where, field, expected);
}

static int too_many(
	const char *where, const char *field, size_t n, uint32_t limit, struct vx_err *err)
{
	return vx_err_set(err, -E2BIG, "%s: %s has %zu entries, more than the limit of %u", where,
		field, n, limit);
}

/* An optional string member. */
static int take_str(const struct vx_json *o, const char *key, const char *where, struct vx_arena *a,
	const char **ret, struct vx_err *err)
{
	const struct vx_json *v = vx_json_get(o, key);

	*ret = NULL;
	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_STRING)
		return wrong(where, key, "a string", err);
	if (memchr(vx_json_str(v), '\0', vx_json_str_len(v)))
		return wrong(where, key, "a string without NUL", err);
	*ret = dup_str(a, v);
	return 0;
}

static int take_scripts(const struct vx_json *o, const char *where, struct vx_arena *a,
	struct vx_manifest *m, struct vx_err *err)
{
	const struct vx_json *s = vx_json_get(o, "scripts");

	if (!s)
		return 0;
	if (vx_json_type(s) != VX_JSON_OBJECT)
		return wrong(where, "scripts", "an object of strings", err);
	if (vx_json_len(s) > VX_MAX_MEMBERS)
		return too_many(where, "scripts", vx_json_len(s), VX_MAX_MEMBERS, err);
	struct vx_kv *kv = vx_arena_array(a, vx_json_len(s), sizeof *kv);
	uint32_t n = 0;
	for (struct vx_json_iter it = vx_json_iter(s); vx_json_next(&it);) {
		/* Some tools keep comments and nulls in here; npm ignores what is no string. */
		if (vx_json_type(it.val) != VX_JSON_STRING)
			continue;
		kv[n++] = (struct vx_kv){vx_arena_strdup(a, it.key), dup_str(a, it.val)};
	}
	m->scripts = kv;
	m->n_scripts = n;
	return 0;
}

static int take_deps(const struct vx_json *o, const char *where, struct vx_arena *a,
	struct vx_manifest *m, struct vx_err *err)
{
	const struct vx_json *sec[N_SECTIONS];
	size_t max = 0;
	uint32_t n = 0;

	for (int i = 0; i < N_SECTIONS; i++) {
		sec[i] = vx_json_get(o, sections[i]);
		if (sec[i] && vx_json_type(sec[i]) == VX_JSON_ARRAY && vx_json_len(sec[i]) == 0)
			sec[i] = NULL; /* PHP's empty object, seen in the wild */
		if (sec[i] && vx_json_type(sec[i]) != VX_JSON_OBJECT)
			return wrong(where, sections[i], "an object of strings", err);
		max += sec[i] ? vx_json_len(sec[i]) : 0;
		if (max > VX_MAX_LIST)
			return too_many(where, sections[i], max, VX_MAX_LIST, err);
	}
	struct vx_dep_spec *d = max ? vx_arena_array(a, max, sizeof *d) : NULL;
	for (int i = 0; i < N_SECTIONS; i++) {
		if (!sec[i])
			continue;
		for (struct vx_json_iter it = vx_json_iter(sec[i]); vx_json_next(&it);) {
			if (vx_json_type(it.val) != VX_JSON_STRING)
				return vx_err_set(err, -EINVAL, "%s: %s.%s must be a string", where,
					sections[i], it.key);
			d[n++] = (struct vx_dep_spec){
				vx_arena_strdup(a, it.key), dup_str(a, it.val), i == PEER};
		}
	}
	m->deps = d;
	m->n_deps = n;
	return 0;
}

static void add_catalog(const char *catalog, const struct vx_json *o, struct vx_arena *a,
	struct vx_catalog_entry *v, uint32_t *n)
{
	if (vx_json_type(o) != VX_JSON_OBJECT)
		return;
	for (struct vx_json_iter it = vx_json_iter(o); vx_json_next(&it);)
		if (vx_json_type(it.val) == VX_JSON_STRING)
			v[(*n)++] = (struct vx_catalog_entry){vx_arena_strdup(a, catalog),
				vx_arena_strdup(a, it.key), dup_str(a, it.val)};
}

/* Bun keeps catalogs in the root manifest, in `workspaces` or beside it. */
static void take_catalogs(const struct vx_json *o, struct vx_arena *a, struct vx_manifest *m)
{
	const struct vx_json *ws = vx_json_get(o, "workspaces");
	const struct vx_json *in =
		vx_json_type(ws) == VX_JSON_OBJECT &&
				(vx_json_get(ws, "catalog") || vx_json_get(ws, "catalogs"))
			? ws
			: o;
	const struct vx_json *one = vx_json_get(in, "catalog"), *many = vx_json_get(in, "catalogs");
	size_t max = vx_json_type(one) == VX_JSON_OBJECT ? vx_json_len(one) : 0;
	uint32_t n = 0;

	if (vx_json_type(many) != VX_JSON_OBJECT)
		many = NULL;
	if (many)
		for (struct vx_json_iter it = vx_json_iter(many); vx_json_next(&it);)
			max += vx_json_type(it.val) == VX_JSON_OBJECT ? vx_json_len(it.val) : 0;
	if (!max)
		return;
	struct vx_catalog_entry *v = vx_arena_array(a, max, sizeof *v);
	add_catalog("default", one, a, v, &n);
	if (many)
		for (struct vx_json_iter it = vx_json_iter(many); vx_json_next(&it);)
			add_catalog(it.key, it.val, a, v, &n);
	m->catalogs = v;
	m->n_catalogs = n;
}

static int take_workspaces(const struct vx_json *o, const char *where, struct vx_arena *a,
	struct vx_manifest *m, struct vx_err *err)
{
	const struct vx_json *w = vx_json_get(o, "workspaces");
	struct vx_strlist l = {0};

	if (!w)
		return 0;
	if (vx_json_type(w) == VX_JSON_OBJECT) {
		w = vx_json_get(w, "packages");
		if (!w) {
			m->has_workspaces = true;
			return 0;
		}
	}
	if (vx_json_type(w) != VX_JSON_ARRAY)
		return wrong(where, "workspaces",
			"an array of patterns, or an object with one in `packages`", err);
	if (vx_json_len(w) > VX_MAX_LIST)
		return too_many(where, "workspaces", vx_json_len(w), VX_MAX_LIST, err);
	for (size_t i = 0; i < vx_json_len(w); i++) {
		const struct vx_json *s = vx_json_at(w, i);
		if (vx_json_type(s) != VX_JSON_STRING)
			return vx_err_set(
				err, -EINVAL, "%s: workspaces[%zu] must be a string", where, i);
		vx_strlist_add(&l, a, dup_str(a, s));
	}
	m->has_workspaces = true;
	m->workspaces = vx_strlist_done(&l);
	return 0;
}

int vx_manifest_parse(const char *text, size_t n, const char *where, struct vx_arena *keep,
	struct vx_arena *scratch, struct vx_manifest *ret, struct vx_err *err)
{
	struct vx_manifest m = {0};
	struct vx_json *root;
	int r = vx_json_parse(text, n, 0, where, &root, err);

	if (r < 0)
		return r;
	if (vx_json_type(root) != VX_JSON_OBJECT)
		r = vx_err_set(err, -EINVAL, "%s: a manifest must be a JSON object", where);
	if (r == 0)
		r = take_str(root, "name", where, keep, &m.name, err);
	if (r == 0)
		r = take_str(root, "version", where, keep, &m.version, err);
	if (r == 0)
		r = take_str(root, "packageManager", where, scratch, &m.package_manager, err);
	if (r == 0)
		r = take_scripts(root, where, keep, &m, err);
	if (r == 0)
		r = take_deps(root, where, scratch, &m, err);
	if (r == 0)
		r = take_workspaces(root, where, scratch, &m, err);
	if (r == 0) {
		take_catalogs(root, scratch, &m);
		*ret = m;
	}
	vx_json_free(root);
	return r;
}
