/* Counters of a run as JSON, to the file that VX_STATS names: what tests and benches hold the
 * product to. */
#include "loop.h"

#include "vx/fd.h"
#include "vx/json.h"

#include <fcntl.h>

static void put(struct vx_json *o, const char *key, uint64_t v)
{
	vx_json_set(o, key, vx_json_new_int((int64_t)v));
}

static struct vx_json *lane_json(const struct loop *l)
{
	static const char *const ops[8] = {
		"open", "read", "write", "close", "rename", "mkdir", "unlink", "fsync"};
	struct vx_lane_stats s = {0};
	vx_lane_stats(l->lane, &s);
	struct vx_json *o = vx_json_object(), *ring = vx_json_object(), *steps = vx_json_object();
	vx_json_set(o, "io", vx_json_new_str(s.io));
	put(o, "saves", s.saves);
	put(o, "restores", s.restores);
	put(o, "upToDate", s.up_to_date);
	put(o, "cleans", s.cleans);
	put(o, "commits", s.commits);
	put(o, "commitRows", s.commit_rows);
	for (int i = 0; i < 8; i++) {
		put(ring, ops[i], s.ring_ops[i]);
		put(steps, ops[i], s.steps[i]);
	}
	vx_json_set(o, "ring", ring);
	vx_json_set(o, "steps", steps);
	return o;
}

static struct vx_json *pool_json(const struct loop *l)
{
	struct vx_pool_stats s = {0};
	vx_pool_stats(l->pool, &s);
	struct vx_json *o = vx_json_object();
	put(o, "forkServers", s.fork_servers);
	put(o, "workers", s.workers);
	put(o, "boxHosts", s.box_hosts);
	put(o, "wakes", s.wakes);
	put(o, "dispatches", s.dispatches);
	return o;
}

static struct vx_json *keys_json(const struct loop *l)
{
	struct vx_keyer_stats s = {0};
	vx_keyer_stats(l->keyer, &s);
	struct vx_json *o = vx_json_object();
	put(o, "gits", s.gits);
	put(o, "indexIds", s.index_ids);
	put(o, "hashed", s.hashed);
	put(o, "memo", s.memo);
	put(o, "probes", s.probes);
	put(o, "taken", s.taken);
	vx_json_set(o, "source", vx_json_new_str(s.source ? s.source : ""));
	return o;
}

void loop_write_stats(struct loop *l)
{
	if (!l->o->stats_path)
		return;
	struct vx_json *o = vx_json_object();
	if (l->lane)
		vx_json_set(o, "lane", lane_json(l));
	if (l->pool)
		vx_json_set(o, "pool", pool_json(l));
	if (l->keyer)
		vx_json_set(o, "keys", keys_json(l));
	vx_json_set(o, "unchanged", vx_json_new_bool(l->unchanged));
	put(o, "planNs", l->setup_ns);
	put(o, "keysNs", l->keys_ns);
	put(o, "probeNs", l->probe_ns);
	put(o, "upToDate", l->up_to_date);
	put(o, "restored", l->restored);
	put(o, "missed", l->missed);
	put(o, "noCache", l->nocache);
	put(o, "notSaved", l->not_saved);
	struct vx_buf b = VX_BUF(1 << 20);
	vx_json_write_shown(o, true, &b);
	vx_buf_addc(&b, '\n');
	int r = vx_write_file_atomic(AT_FDCWD, l->o->stats_path, b.data, b.len, 0644);
	if (r)
		vx_report_warn(
			l->report, "vx run: VX_STATS %s: %s", l->o->stats_path, vx_strerror(r));
	vx_buf_free(&b);
	vx_json_free(o);
}
