/* Evaluations that outlive the load that made them, and that another load takes instead. */
#include "js.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/limits.h"
#include "vx/map.h"

#include <errno.h>
#include <string.h>

static int give(const struct vx_evaluations *given, const char *file, struct vx_json *results,
	struct vx_err *err)
{
	struct vx_json *value = NULL, *one;
	uint32_t k = 0;

	while (k < given->n && strcmp(given->v[k].file, file) != 0)
		k++;
	if (k == given->n)
		return vx_err_set(err, -ENOENT, "%s was not evaluated", file);
	int r = vx_json_parse(given->v[k].json, strlen(given->v[k].json), 0, file, &value, err);
	if (r < 0)
		return r;
	one = vx_json_object();
	vx_json_set(one, "value", value);
	vx_json_add(results, one);
	return 0;
}

int js_given(const struct vx_workspace *ws, const struct vx_evaluations *given, struct vx_arena *a,
	struct js_results *ret, struct vx_err *err)
{
	struct vx_json *answer = vx_json_object(), *results = vx_json_array();
	struct vx_strlist files = {0};
	int r = 0;

	for (uint32_t i = 0; i <= ws->n_projects && r == 0; i++) {
		const char *file = i ? js_file_of(&ws->projects[i - 1], a) : js_workspace_file(ws);
		if (file)
			r = give(given, file, results, err);
		if (file)
			vx_strlist_add(&files, a, file);
	}
	vx_json_set(answer, "results", results);
	*ret = (struct js_results){0};
	if (r < 0) {
		vx_json_free(answer);
		return r;
	}
	ret->json = answer;
	ret->files = vx_strlist_done(&files);
	return 0;
}

static bool holds(const struct vx_json *list, uint32_t i)
{
	for (size_t k = 0; k < vx_json_len(list); k++)
		if (vx_json_int(vx_json_at(list, k)) == (int64_t)i)
			return true;
	return false;
}

void js_told(const struct js_results *r, struct vx_arena *a, struct vx_evaluations *ret)
{
	/* A fresh answer has what was read below "read", a kept one beside the results. */
	const struct vx_json *read = vx_json_get(r->json, "read"), *list, *by;
	struct vx_evaluated *v = vx_arena_array(a, (size_t)r->files.n + 1, sizeof *v);
	struct vx_strlist paths = {0};
	struct vx_map at = {0};
	const struct vx_json **of;
	uint32_t n_of = 0;

	by = vx_json_get(read ? read : r->json, "by");
	list = vx_json_get(read ? read : r->json, "paths");
	for (size_t k = 0; vx_json_type(list) == VX_JSON_ARRAY && k < vx_json_len(list); k++)
		vx_strlist_add(&paths, a, vx_arena_strdup(a, vx_json_str(vx_json_at(list, k))));
	if (vx_json_type(list) == VX_JSON_OBJECT)
		for (struct vx_json_iter it = vx_json_iter(list); vx_json_next(&it);)
			vx_strlist_add(&paths, a, vx_arena_strdup(a, it.key));
	of = vx_arena_array(a, vx_json_len(by) + 1, sizeof *of);
	for (struct vx_json_iter it = vx_json_iter(by); vx_json_next(&it);) {
		of[n_of] = it.val;
		vx_map_puts(&at, it.key, n_of++);
	}
	for (uint32_t i = 0; i < r->files.n; i++) {
		struct vx_buf text = VX_BUF(2 * (size_t)VX_MAX_CONFIG_BYTES);
		struct vx_strlist mine = {0};
		vx_json_write(vx_json_get(vx_json_at(vx_json_get(r->json, "results"), i), "value"),
			false, &text);
		for (uint32_t k = 0; k < paths.n; k++) {
			uint32_t m = vx_map_gets(&at, paths.v[k]);
			/* where nothing says for which it was read: for all */
			if (m == VX_MAP_NONE || holds(of[m], i))
				vx_strlist_add(&mine, a, paths.v[k]);
		}
		v[i] = (struct vx_evaluated){.file = r->files.v[i],
			.json = vx_arena_strdup(a, vx_buf_str(&text)),
			.read = vx_strlist_done(&mine),
			.all_known = by && (!read || vx_json_bool(vx_json_get(read, "keep")))};
		vx_buf_free(&text);
	}
	vx_map_free(&at);
	*ret = (struct vx_evaluations){v, r->files.n};
}
