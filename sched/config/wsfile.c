/* vx.workspace.json: the workspace's settings and default tasks. */
#include "cfg.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

static const char *const ws_keys[] = {"$schema", "concurrency", "cacheDir", "sharedStore",
	"timeout", "cacheRetention", "affectedBase", "rules", "tasks", "remoteCache", NULL};
static const char *const retention_keys[] = {"olderThan", "maxSize", NULL};
static const char *const rule_keys[] = {"exclusiveOutputs", "upfrontKeys", NULL};
static const char *const remote_keys[] = {"url", "readOnly", NULL};

static int take_concurrency(const struct cfg *c, const struct vx_json *v, const char **ret)
{
	const char *s = NULL;
	int64_t n = 0;

	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_STRING) {
		int r = cfg_int(c, v, "concurrency", 1, VX_MAX_SLOTS, &n);
		if (r == 0)
			*ret = vx_arena_printf(c->a, "%lld", (long long)n);
		return r;
	}
	int r = cfg_str(c, v, "concurrency", &s);
	if (r < 0)
		return r;
	size_t len = strlen(s);
	uint64_t value;
	bool percent = len > 1 && s[len - 1] == '%';
	const char *digits = percent ? vx_arena_strndup(c->a, s, len - 1) : s;
	if (vx_parse_u64(digits, percent ? 100000 : VX_MAX_SLOTS, &value) < 0 || value == 0)
		return cfg_fail(c, "concurrency",
			"must be a number from 1 to %u or a percentage like \"50%%\", not \"%.60s\"",
			VX_MAX_SLOTS, s);
	*ret = s;
	return 0;
}

static bool is_duration(const char *s)
{
	size_t n = strspn(s, "0123456789");

	return n > 0 && n < 10 && s[n] && strchr("smhdw", s[n]) && s[n + 1] == '\0';
}

static int take_retention(const struct cfg *c, const struct vx_json *v, struct vx_ws_settings *s)
{
	uint64_t bytes;

	if (!v)
		return 0;
	int r = cfg_object(c, v, "cacheRetention", retention_keys);
	if (r == 0)
		r = cfg_str(c, vx_json_get(v, "olderThan"), "cacheRetention.olderThan",
			&s->retention_older_than);
	if (r == 0 && s->retention_older_than && !is_duration(s->retention_older_than))
		r = cfg_fail(c, "cacheRetention.olderThan",
			"must be a time like \"30d\", \"12h\" or \"45m\", not \"%.60s\"",
			s->retention_older_than);
	if (r == 0)
		r = cfg_str(c, vx_json_get(v, "maxSize"), "cacheRetention.maxSize",
			&s->retention_max_size);
	if (r == 0 && s->retention_max_size && vx_parse_bytes(s->retention_max_size, &bytes) < 0)
		r = cfg_fail(c, "cacheRetention.maxSize",
			"must be a size like \"10G\" or \"500M\", not \"%.60s\"",
			s->retention_max_size);
	return r;
}

static int take_rules(const struct cfg *c, const struct vx_json *v, struct vx_ws_settings *s)
{
	if (!v)
		return 0;
	int r = cfg_object(c, v, "rules", rule_keys);
	if (r == 0)
		r = cfg_bool(c, vx_json_get(v, "exclusiveOutputs"), "rules.exclusiveOutputs",
			&s->exclusive_outputs);
	if (r == 0)
		r = cfg_bool(
			c, vx_json_get(v, "upfrontKeys"), "rules.upfrontKeys", &s->upfront_keys);
	return r;
}

static int take_tasks(const struct cfg *c, struct vx_json *v, struct vx_json **ret)
{
	struct cfg at = *c;

	if (!v)
		return 0;
	if (vx_json_type(v) != VX_JSON_OBJECT)
		return cfg_fail(c, "tasks", "must be an object of tasks");
	int count = cfg_count(c, v, "tasks");
	if (count < 0)
		return count;
	for (struct vx_json_iter it = vx_json_iter(v); vx_json_next(&it);) {
		at.task = it.key;
		int r = cfg_task_name(c, it.key);
		if (r == 0)
			r = cfg_task_shape(&at, it.val, NULL);
		if (r < 0)
			return r;
	}
	*ret = v;
	return 0;
}

static int take_remote(const struct cfg *c, const struct vx_json *v, struct vx_workspace *ws)
{
	struct vx_strlist w = {0};

	if (!v)
		return 0;
	int r = cfg_object(c, v, "remoteCache", remote_keys);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < ws->warnings.n; i++)
		vx_strlist_add(&w, c->a, ws->warnings.v[i]);
	vx_strlist_add(&w, c->a,
		vx_arena_printf(c->a,
			"%s: remoteCache is set, but this build of vx has no remote cache: results are kept locally only",
			c->file));
	ws->warnings = vx_strlist_done(&w);
	return 0;
}

int cfg_ws_settings(const struct cfg *c, const struct vx_json *v, struct vx_workspace *ws,
	struct vx_json **ret_tasks)
{
	struct vx_ws_settings *s = &ws->settings;
	int r = cfg_object(c, v, NULL, ws_keys);

	if (r == 0)
		r = take_concurrency(c, vx_json_get(v, "concurrency"), &s->concurrency);
	if (r == 0)
		r = cfg_str(c, vx_json_get(v, "cacheDir"), "cacheDir", &s->cache_dir);
	if (r == 0 && s->cache_dir && *s->cache_dir == '\0')
		r = cfg_fail(c, "cacheDir", "is empty");
	if (r == 0)
		r = cfg_bool(c, vx_json_get(v, "sharedStore"), "sharedStore", &s->shared_store);
	if (r == 0)
		r = cfg_int(c, vx_json_get(v, "timeout"), "timeout", 0, VX_MAX_TIMEOUT_MS,
			&s->timeout_ms);
	if (r == 0)
		r = take_retention(c, vx_json_get(v, "cacheRetention"), s);
	if (r == 0)
		r = cfg_str(c, vx_json_get(v, "affectedBase"), "affectedBase", &s->affected_base);
	if (r == 0)
		r = take_rules(c, vx_json_get(v, "rules"), s);
	if (r == 0)
		r = take_remote(c, vx_json_get(v, "remoteCache"), ws);
	if (r == 0)
		r = take_tasks(c, vx_json_get(v, "tasks"), ret_tasks);
	return r;
}
