/* Keys and verdicts: what is known before anything runs, and what is asked when a task's upstream
 * is done. */
#include "loop.h"

#include "vx/clock.h"

#include <errno.h>
#include <stdlib.h>

/* keys that are probed together: the lane begins with those that are hits while the others are
 * made */
#define PROBE_AT_ONCE 256U

static int memory_get(void *self, const char *space, const void *key, size_t key_n,
	struct vx_arena *a, void **ret, size_t *ret_n)
{
	return vx_store_blob_get(self, space, key, key_n, a, ret, ret_n);
}

static int memory_put(
	void *self, const char *space, const void *key, size_t key_n, const void *val, size_t n)
{
	return vx_store_writable(self) ? vx_store_blob_put(self, space, key, key_n, val, n) : 0;
}

struct vx_key_memory vx_run_key_memory(struct vx_store *s)
{
	return (struct vx_key_memory){.self = s, .get = memory_get, .put = memory_put};
}

bool loop_needs_keys(const struct loop *l)
{
	if (l->o->no_cache)
		return false;
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		if (l->g->tasks[i].decl->has_cache && !vx_task_is_group(&l->g->tasks[i]))
			return true;
	return false;
}

/* Makes the key of a task, and first those that it folds and that have none yet: groups and
 * excluded tasks are keyed only when somebody asks. The stack is our own, since a chain may be as
 * long as the graph. */
static bool make_key(struct loop *l, uint32_t task)
{
	uint32_t *stack = NULL, top = 0, cap = 0;
	bool ok = true;
	for (uint32_t at = task;;) {
		struct loop_task *t = &l->t[at];
		const struct vx_task *g = &l->g->tasks[at];
		uint32_t next = VX_MAP_NONE;
		for (uint32_t i = 0;
			i < g->n_key_deps && next == VX_MAP_NONE && !t->keyed && !t->key_failed;
			i++)
			if (!l->t[g->key_deps[i]].keyed && !l->t[g->key_deps[i]].key_failed)
				next = g->key_deps[i];
		if (next != VX_MAP_NONE) {
			if (top == cap) {
				cap = cap ? 2 * cap : 16;
				stack = vx_xrealloc(stack, cap * sizeof *stack);
			}
			stack[top++] = at;
			at = next;
			continue;
		}
		if (!t->keyed && !t->key_failed) {
			const struct vx_key_record *record;
			struct vx_err err = {0};
			uint32_t up = VX_MAP_NONE;
			int r;
			for (uint32_t i = 0; i < g->n_key_deps && up == VX_MAP_NONE; i++)
				if (l->t[g->key_deps[i]].key_failed)
					up = g->key_deps[i];
			t->key_failed = t->key_behind = up != VX_MAP_NONE;
			if (t->key_behind)
				t->status = vx_arena_printf(
					&l->arena, "no key: %s has none", l->g->tasks[up].id);
			else if ((r = vx_key_compute(l->keyer, at, &record, &err)) < 0) {
				t->key_failed = true;
				l->keying_canceled |= r == -ECANCELED;
				t->status = vx_arena_printf(&l->arena,
					err.fix[0] ? "no key: %s (%s)" : "no key: %s", err.what,
					err.fix);
			} else {
				t->keyed = true;
			}
		}
		if (at == task)
			ok = t->keyed;
		if (!top)
			break;
		at = stack[--top];
	}
	free(stack);
	return ok;
}

/* What a key alone says; VX_V_LATE: the store must be asked. */
static enum vx_verdict verdict_of(struct loop *l, uint32_t task)
{
	const struct vx_task *t = &l->g->tasks[task];
	if (!l->t[task].keyed)
		/* A key that lacks only because one upstream could not be made is upstream's
		 * failure: the core skips what comes after it. */
		return l->t[task].key_behind ? VX_V_LATE : VX_V_FAILED;
	if (!t->decl->has_cache || t->decl->exec.persistent || l->t[task].no_entry)
		return VX_V_NOCACHE;
	return l->o->force || !l->o->cache_read || !l->store ? VX_V_MISS : VX_V_LATE;
}

static void take_hit(struct loop *l, uint32_t task, const struct vx_entry *e)
{
	l->t[task].entry = vx_arena_dup(&l->arena, e, sizeof *e);
}

/* One batched read of the store for the tasks of `list`; hits go to the lane. */
static void probe(struct loop *l, const uint32_t *list, uint32_t n, struct vx_core_task *ct)
{
	struct vx_digest *keys = vx_xcalloc(n + 1, sizeof *keys);
	struct vx_entry *entries = vx_xcalloc(n + 1, sizeof *entries);
	bool *found = vx_xcalloc(n + 1, sizeof *found);
	uint64_t start = vx_now_ns();
	for (uint32_t i = 0; i < n; i++)
		keys[i] = vx_key_get(l->keyer, list[i])->key;
	if (n && vx_store_probe(l->store, keys, n, found, entries) < 0)
		for (uint32_t i = 0; i < n; i++)
			found[i] = false;
	for (uint32_t i = 0; i < n; i++) {
		ct[list[i]].verdict = found[i] ? VX_V_HIT : VX_V_MISS;
		if (!found[i])
			continue;
		take_hit(l, list[i], &entries[i]);
		loop_restore_early(l, list[i]);
	}
	l->probe_ns += vx_now_ns() - start;
	free(keys);
	free(entries);
	free(found);
}

int loop_keys_ahead(struct loop *l, struct vx_core_task *ct, struct vx_err *err)
{
	uint32_t n = l->g->n_tasks, n_ask = 0;
	if (!l->keyer) {
		for (uint32_t i = 0; i < n; i++)
			ct[i].verdict = VX_V_NOCACHE;
		return 0;
	}
	uint64_t start = vx_now_ns(), probed_ns = l->probe_ns;
	uint32_t *ask = vx_xcalloc(PROBE_AT_ONCE, sizeof *ask);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t task = l->g->topo[i];
		ct[task].verdict = VX_V_LATE;
		if (vx_task_is_group(&l->g->tasks[task]) || !vx_key_stable(l->keyer, task))
			continue;
		make_key(l, task);
		if (l->keying_canceled)
			break;
		ct[task].verdict = verdict_of(l, task);
		if (ct[task].verdict != VX_V_LATE || !l->t[task].keyed)
			continue;
		ask[n_ask++] = task;
		if (n_ask == PROBE_AT_ONCE) {
			probe(l, ask, n_ask, ct);
			n_ask = 0;
		}
	}
	if (!l->keying_canceled)
		probe(l, ask, n_ask, ct);
	l->keys_ns += vx_now_ns() - start - (l->probe_ns - probed_ns);
	free(ask);
	return l->keying_canceled ? vx_err_set(err, -ECANCELED, "interrupted while keys were made")
				  : 0;
}

/* A server goes on writing after it was ready. */
static void servers_may_have_written(struct loop *l)
{
	for (uint32_t s = 0; l->worker_slots > l->slots && s < l->worker_slots; s++) {
		uint32_t t = l->slot_task[s];
		if (t != VX_MAP_NONE && l->t[t].phase == PH_RUNNING &&
			l->g->tasks[t].decl->exec.persistent)
			vx_keyer_ran(l->keyer, t);
	}
}

/* Its turn has come though something upstream has no key: with --continue=always, or because that
 * is left out (--exclude-dependencies). It runs, unsaved, and the reason is said. */
static enum vx_verdict without_key(struct loop *l, uint32_t task)
{
	uint32_t up = task;
	for (bool deeper = true; deeper;) {
		const struct vx_task *g = &l->g->tasks[up];
		deeper = false;
		for (uint32_t i = 0; i < g->n_key_deps && !deeper; i++)
			if (l->t[g->key_deps[i]].key_failed) {
				up = g->key_deps[i];
				deeper = true;
			}
	}
	vx_report_warn(l->report, "vx run: %s runs without a key and is not saved; %s has %s",
		l->g->tasks[task].id, l->g->tasks[up].id,
		l->t[up].status ? l->t[up].status : "none");
	l->t[task].no_entry = true;
	l->t[task].status = NULL;
	return VX_V_NOCACHE;
}

enum vx_verdict loop_key_late(struct loop *l, uint32_t task)
{
	uint64_t start = vx_now_ns();
	servers_may_have_written(l);
	make_key(l, task);
	l->keys_ns += vx_now_ns() - start;
	if (l->keying_canceled) /* the core hears of the signal before it does of the lost key */
		loop_took_signal(l);
	enum vx_verdict v = verdict_of(l, task);
	if (v != VX_V_LATE)
		return v;
	if (!l->t[task].keyed)
		return without_key(l, task);
	struct vx_entry e;
	bool found = false;
	if (vx_store_probe(l->store, &vx_key_get(l->keyer, task)->key, 1, &found, &e) < 0 || !found)
		return VX_V_MISS;
	take_hit(l, task, &e);
	return VX_V_HIT;
}
