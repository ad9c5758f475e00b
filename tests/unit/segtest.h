/* A workspace whose outputs are one file, saved under keys; and what is in its segments. For the
 * tests of segments. */
#ifndef SEGTEST_H
#define SEGTEST_H

#include "lanetest.h"

#include "vx/json.h"

struct world {
	struct lt t;
	struct vx_outputs o;
};

VXT_UNUSED static void begin(struct world *w)
{
	*w = (struct world){0};
	lt_begin(&w->t);
	w->o = lt_outputs(&w->t, "p", "dist/**");
}

/* Saves outputs of about that size, all different. */
VXT_UNUSED static void save(struct world *w, const char *key, size_t bytes)
{
	struct vx_lane_event e;
	char cmd[256];
	snprintf(cmd, sizeof cmd,
		"rm -rf p && mkdir -p p/dist && head -c %zu /dev/urandom >p/dist/f", bytes);
	assert_int_equal(lt_sh(&w->t, cmd), 0);
	if (!lt_save(&w->t, key, &w->o, &e))
		fail_msg("%s", e.text);
}

VXT_UNUSED static struct vx_entry entry(struct world *w, const char *key)
{
	struct vx_digest d = lt_key(key);
	struct vx_entry e;
	bool found = false;
	assert_true(vx_store_probe(w->t.store, &d, 1, &found, &e) >= 0);
	if (!found)
		e = (struct vx_entry){0};
	return e;
}

VXT_UNUSED static bool has(struct world *w, const char *key)
{
	return entry(w, key).artifact_bytes > 0;
}

VXT_UNUSED static struct stat segment_stat(struct world *w, uint64_t segment)
{
	char path[VX_SEGMENT_PATH];
	struct stat st = {0};
	vx_segment_path(segment, path);
	fstatat(w->t.store->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW);
	return st;
}

VXT_UNUSED static int segments(struct world *w)
{
	const char *out;
	char cmd[PATH_MAX + 64];
	snprintf(cmd, sizeof cmd, "find '%s/.vx/cache/v1/s' -type f | wc -l", w->t.root);
	assert_int_equal(vxt_sh(cmd, &out), 0);
	return atoi(out);
}

VXT_UNUSED static int64_t num(const struct vx_json *j, const char *key)
{
	return vx_json_int(vx_json_get(j, key));
}

VXT_UNUSED static struct vx_json *prune(struct world *w, uint64_t max_bytes)
{
	struct vx_json *j = NULL;
	struct vx_err err = {0};
	struct vx_prune_opts o = {.max_bytes = max_bytes};
	assert_int_equal(vx_store_prune(w->t.store, &o, &j, &err), 0);
	return j;
}

/* Removes this entry and nothing else. */
VXT_UNUSED static struct vx_json *prune_one(struct world *w, const char *key)
{
	struct vx_json *j = NULL;
	struct vx_err err = {0};
	struct vx_prune_opts o = {.older_than_ns = 86400 * 1000000000ULL};
	lt_used_at(&w->t, key, 1000000000);
	assert_int_equal(vx_store_prune(w->t.store, &o, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 1);
	assert_int_equal(num(j, "files"), 1);
	return j;
}

VXT_UNUSED static void assert_whole(struct world *w)
{
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t problems;
	assert_int_equal(vx_store_verify(w->t.store, &j, &problems, &err), 0);
	assert_int_equal(problems, 0);
	vx_json_free(j);
}

/* What tar makes of all segments: the number of members named f. */
VXT_UNUSED static int listed(struct world *w)
{
	const char *out;
	char cmd[PATH_MAX + 96];
	snprintf(cmd, sizeof cmd, "cat '%s'/.vx/cache/v1/s/* | tar --zstd -itf - | grep -c '/f$'",
		w->t.root);
	vxt_sh(cmd, &out);
	return atoi(out);
}

VXT_UNUSED static void assert_restores(struct world *w, const char *key)
{
	struct vx_lane_event e;
	assert_int_equal(lt_sh(&w->t, "rm -rf p"), 0);
	assert_true(lt_restore(&w->t, key, &w->o, &e));
	if (!e.ok)
		fail_msg("%s", e.text);
	assert_int_equal(lt_sh(&w->t, "test -f p/dist/f"), 0);
}

#endif
