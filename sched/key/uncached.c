/* Tasks without cache stand in the keys of their dependents with every file of their project, and
 * no save of theirs ever looks at those again: the save of each task whose key holds them does.
 *
 * Such a task may write in its own project when it runs. What its files are held to is therefore
 * how they stood when the command of the dependent was about to start; where the task cannot write
 * there, it is what the key folded. Outputs of cached tasks in between are theirs to write. A
 * server that may write in its project does so while its dependents run, and answers for nothing.
 */
#include "key_int.h"

#include "vx/clock.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct held {
	const struct record *r;
	uint64_t writes; /* vx_keyer.writes of its project when it was made */
	_Atomic uint64_t checked_ns;
};

static bool uncached(const struct vx_task *t)
{
	return t->decl->has_exec && !t->decl->has_cache;
}

/* Also of what stands above it: a task's record is made after those of its key_deps. */
void vx_key_note_uncached(struct vx_keyer *k, uint32_t task)
{
	const struct vx_task *t = &k->g->tasks[task];
	bool any = false;
	for (uint32_t i = 0; i < t->n_key_deps && !any; i++)
		any = uncached(&k->g->tasks[t->key_deps[i]]) || k->uncached_up[t->key_deps[i]];
	k->uncached_up[task] = any;
}

/* The state that the files of one task are held to from now on; NULL where none can be told. */
static int hold(struct vx_keyer *k, uint32_t task, struct held **ret, struct vx_err *err)
{
	const struct vx_task *t = &k->g->tasks[task];
	bool fingerprint;
	bool writes = vx_key_reach(k, task, &fingerprint) != VX_REACH_NONE;
	uint64_t now = k->writes[t->project];
	struct held *h = k->held[task];
	*ret = NULL;
	if (writes && t->decl->exec.persistent)
		return 0;
	if (!h || (writes && h->writes != now)) {
		struct record *r = k->records[task];
		int res = writes ? vx_key_record_now(k, task, &r, err)
				 : vx_key_fill_one(k, task, err);
		if (res < 0)
			return res;
		h = vx_arena_alloc(&k->a, sizeof *h);
		h->r = r;
		h->writes = now;
		atomic_init(&h->checked_ns, 0);
		k->held[task] = h;
	}
	*ret = h;
	return 0;
}

/* The recheck looks for these on other threads, which compile nothing. */
static int compile_all(struct vx_keyer *k, struct vx_err *err)
{
	const struct decl_globs *dg;
	int r = 0;
	for (uint32_t i = 0; i < k->g->n_tasks && r == 0 && !k->compiled; i++)
		r = vx_key_globs(k, k->g->tasks[i].decl, &dg, err);
	k->compiled = r == 0;
	return r;
}

struct walk {
	uint8_t *seen; /* by task */
	uint32_t *stack, depth;
};

static void push(const struct vx_keyer *k, struct walk *w, uint32_t task)
{
	const struct vx_task *t = &k->g->tasks[task];
	for (uint32_t i = 0; i < t->n_key_deps; i++) {
		uint32_t u = t->key_deps[i];
		if (!w->seen[u] && (uncached(&k->g->tasks[u]) || k->uncached_up[u])) {
			w->seen[u] = 1;
			w->stack[w->depth++] = u;
		}
	}
}

int vx_key_hold_uncached(struct vx_keyer *k, uint32_t task, struct vx_err *err)
{
	struct record *rec = k->records[task];
	if (!rec || !k->uncached_up[task])
		return 0;
	struct walk w = {
		vx_xcalloc(k->g->n_tasks, 1), vx_xcalloc(k->g->n_tasks, sizeof *w.stack), 0};
	struct held **v = vx_xcalloc(k->g->n_tasks, sizeof(struct held *));
	uint32_t n = 0;
	int r = compile_all(k, err);
	push(k, &w, task);
	while (w.depth && r == 0) {
		uint32_t u = w.stack[--w.depth];
		if (uncached(&k->g->tasks[u]))
			r = hold(k, u, &v[n], err);
		n += v[n] != NULL;
		push(k, &w, u);
	}
	if (r == 0) {
		rec->held = vx_arena_dup(&k->a, v, n * sizeof(struct held *));
		rec->n_held = n;
	}
	rec->holds = r == 0;
	free(w.seen);
	free(w.stack);
	free(v);
	return r;
}

int vx_key_uncached_moved(
	struct vx_keyer *k, const struct record *r, uint64_t since_ns, char *ret_what, size_t cap)
{
	int res = 0;
	if (k->uncached_up[r->pub.task] && !r->holds)
		return -ENODATA;
	for (uint32_t i = 0; i < r->n_held && res == 0; i++) {
		struct held *h = r->held[i];
		const struct vx_task *t = &k->g->tasks[h->r->pub.task];
		if (atomic_load(&h->checked_ns) >= since_ns)
			continue;
		uint64_t start_ns = vx_now_ns();
		if (h->r->moved) {
			snprintf(ret_what, cap, "%s", k->ws->projects[t->project].dir);
			return 1;
		}
		res = vx_key_files_moved(k, h->r, ret_what, cap);
		for (uint32_t j = 0; j < t->n_passed && res == 0; j++)
			res = vx_key_stand_moved(k, h->r->passed[j], since_ns, ret_what, cap);
		if (res == 0)
			atomic_store(&h->checked_ns, start_ns);
	}
	return res;
}
