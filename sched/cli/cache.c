/* vx cache prune|stats|verify. */
#include "cli.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/config.h"
#include "vx/err.h"
#include "vx/json.h"
#include "vx/store.h"
#include "vx/text.h"
#include "vx/verbs.h"
#include "vx/workspace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct cache_args {
	const char *verb, *cache_dir;
	bool json;
	struct vx_prune_opts prune;
};

static int bad_value(struct vx_err *err, const char *option, const char *value, const char *fix)
{
	vx_err_set(err, -EINVAL, "%s %s is not understood", option, value);
	vx_err_fix(err, "%s", fix);
	return -EINVAL;
}

static int take_value(struct cache_args *a, const char *name, const char *value, struct vx_err *err)
{
	if (strcmp(name, "--older-than") == 0)
		return vx_parse_age(value, &a->prune.older_than_ns) < 0
			       ? bad_value(err, name, value, "a number and s, m, h, d or w: 30d")
			       : 0;
	if (strcmp(name, "--max-size") == 0) {
		if (vx_parse_bytes(value, &a->prune.max_bytes) < 0)
			return bad_value(
				err, name, value, "bytes, or a number and K, M, G or T: 10G");
		/* 0 would be no limit, and nothing fits in 1 either */
		a->prune.max_bytes += a->prune.max_bytes == 0;
		return 0;
	}
	if (strcmp(name, "--cache-dir") == 0) {
		a->cache_dir = value;
		return 0;
	}
	if (strcmp(name, "-C") == 0)
		return vx_cli_chdir(value, err);
	a->json = strcmp(value, "json") == 0;
	return a->json || strcmp(value, "pretty") == 0
		       ? 0
		       : bad_value(err, name, value, "pretty or json");
}

static int parse(int argc, char **argv, struct cache_args *a, struct vx_err *err)
{
	static const char *const valued[] = {
		"--older-than", "--max-size", "--cache-dir", "-C", "--format"};
	static const char *const verbs[] = {"prune", "stats", "verify"};
	for (int i = 1; i < argc; i++) {
		const char *name = NULL, *value = NULL;
		int r = 0;
		for (size_t k = 0; k < sizeof valued / sizeof *valued && r == 0; k++) {
			name = valued[k];
			r = vx_cli_value(argc, argv, &i, name, &value, err);
		}
		if (r == 1)
			r = take_value(a, name, value, err);
		else if (r < 0)
			return r;
		else if (strcmp(argv[i], "--dry-run") == 0 || strcmp(argv[i], "--dry") == 0)
			a->prune.dry_run = true;
		else if (!a->verb && argv[i][0] != '-')
			a->verb = argv[i];
		else {
			vx_err_set(err, -EINVAL, "%s is not understood", argv[i]);
			vx_err_fix(err,
				"vx cache prune [--older-than 30d] [--max-size 10G] [--dry-run] | stats | verify [--format json]");
			r = -EINVAL;
		}
		if (r < 0)
			return r;
	}
	struct vx_strs known = {verbs, 3};
	if (a->verb && vx_strs_has(known, a->verb))
		return 0;
	vx_err_set(err, -EINVAL, a->verb ? "there is no vx cache %s" : "what about the cache?%s",
		a->verb ? a->verb : "");
	vx_err_fix(err, "prune, stats or verify");
	return -EINVAL;
}

/* The store of the workspace here, or the one named. */
static int open_store(const struct cache_args *a, struct vx_arena *arena, struct vx_store **ret,
	struct vx_err *err)
{
	char *root, *dir;
	struct vx_workspace ws = {0};
	int r = vx_workspace_find(".", arena, &root, err);
	if (r == 0 && !a->cache_dir)
		r = vx_workspace_load(root, arena, &ws, err);
	if (r == 0 && !a->cache_dir)
		r = vx_config_load(&ws, arena, err);
	if (r < 0)
		return r;
	r = vx_store_dir(a->cache_dir, ws.settings.cache_dir, ws.settings.shared_store, root, arena,
		&dir, err);
	vx_map_free(&ws.by_name);
	vx_map_free(&ws.by_dir);
	if (r < 0)
		return r;
	bool write = strcmp(a->verb, "prune") == 0 && !a->prune.dry_run;
	if (write && access(vx_arena_printf(arena, "%s/v1", dir), F_OK) < 0)
		write = false; /* nothing is made only to be pruned */
	struct vx_store_opts so = {.dir = dir, .workspace = root, .read = true, .write = write};
	return vx_store_open(&so, ret, err);
}

static const char *bytes_text(char *ret, size_t cap, uint64_t n)
{
	static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
	double v = (double)n;
	int u = 0;
	for (; v >= 1000 && u < 4; u++)
		v /= 1000;
	snprintf(ret, cap, u ? "%.1f %s" : "%.0f %s", v, units[u]);
	return ret;
}

static uint64_t num(const struct vx_json *j, const char *key)
{
	return (uint64_t)vx_json_int(vx_json_get(j, key));
}

static const char *entries(uint64_t n)
{
	return n == 1 ? "entry" : "entries";
}

static void show_stats(struct vx_buf *out, const struct vx_json *j)
{
	char b[32], c[32];

	vx_text_printf(out, "%s\n", vx_json_str(vx_json_get(j, "dir")));
	vx_text_printf(out, "  entries    %" PRIu64 " (%" PRIu64 " hold this workspace's path)\n",
		num(j, "entries"), num(j, "notPortable"));
	vx_text_printf(out, "  artifacts  %" PRIu64 ", %s with their logs (%s unpacked)\n",
		num(j, "artifacts"), bytes_text(b, sizeof b, num(j, "bytes")),
		bytes_text(c, sizeof c, num(j, "outputBytes")));
	vx_text_printf(out, "  index      %s\n", bytes_text(b, sizeof b, num(j, "indexBytes")));
	if (num(j, "orphans"))
		vx_text_printf(out, "  orphans    %" PRIu64 ", %s (vx cache prune removes them)\n",
			num(j, "orphans"), bytes_text(b, sizeof b, num(j, "orphanBytes")));
}

static void show_pruned(const struct cache_args *a, struct vx_buf *out, const struct vx_json *j)
{
	char b[32];

	vx_text_printf(out, "%s %" PRIu64 " %s, %s", a->prune.dry_run ? "would remove" : "removed",
		num(j, "entries"), entries(num(j, "entries")),
		bytes_text(b, sizeof b, num(j, "bytes")));
	if (num(j, "orphans"))
		vx_text_printf(out, ", %" PRIu64 " orphans", num(j, "orphans"));
	if (num(j, "temporaries"))
		vx_text_printf(out, ", %" PRIu64 " temporaries", num(j, "temporaries"));
	vx_text_printf(out, "; %" PRIu64 " %s, %s remain\n", num(j, "leftEntries"),
		entries(num(j, "leftEntries")), bytes_text(b, sizeof b, num(j, "leftBytes")));
}

static void show_verified(struct vx_buf *out, const struct vx_json *j)
{
	const struct vx_json *list = vx_json_get(j, "problems");

	for (size_t i = 0; i < vx_json_len(list); i++)
		vx_text_printf(out, "%s %s\n",
			vx_json_str(vx_json_get(vx_json_at(list, i), "what")),
			vx_json_str(vx_json_get(vx_json_at(list, i), "problem")));
	vx_text_printf(out, "%" PRIu64 " %s, %" PRIu64 " file%s: %s\n", num(j, "entries"),
		entries(num(j, "entries")), num(j, "files"), num(j, "files") == 1 ? "" : "s",
		vx_json_len(list) ? "damaged (what is damaged is a miss, and made anew)"
				  : "all whole");
}

static void show_pretty(const struct cache_args *a, const struct vx_json *j)
{
	struct vx_buf out = VX_BUF(SIZE_MAX / 4);

	if (strcmp(a->verb, "stats") == 0)
		show_stats(&out, j);
	else if (strcmp(a->verb, "prune") == 0)
		show_pruned(a, &out, j);
	else
		show_verified(&out, j);
	vx_cli_out(&out);
	vx_buf_free(&out);
}

int vx_cli_cache(int argc, char **argv)
{
	struct cache_args a = {0};
	struct vx_err err = {0};
	struct vx_arena arena = {0};
	struct vx_store *s = NULL;
	struct vx_json *j = NULL;
	uint32_t problems = 0;
	int r = parse(argc, argv, &a, &err);
	if (r == 0)
		r = open_store(&a, &arena, &s, &err);
	if (r == 0 && strcmp(a.verb, "stats") == 0)
		r = vx_store_stats(s, &j, &err);
	else if (r == 0 && strcmp(a.verb, "verify") == 0)
		r = vx_store_verify(s, &j, &problems, &err);
	else if (r == 0)
		r = vx_store_prune(s, &a.prune, &j, &err);
	if (r == 0 && a.json)
		vx_cli_json(j);
	else if (r == 0)
		show_pretty(&a, j);
	vx_json_free(j);
	vx_store_close(s);
	vx_arena_free(&arena);
	return r < 0 ? vx_cli_fail("cache", &err) : problems ? 1 : 0;
}
