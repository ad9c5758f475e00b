/* Tasks whose outputs overlap, by leave of the configuration (rules.exclusiveOutputs off): none of
 * them may take for its own what another has made.
 *
 * Of two where one comes after the other, the later one is additive: it cleans nothing and its
 * restore removes nothing. The earlier one still does, so the later one is restored after it, never
 * ahead; and after whatever comes between the two, which must not find there what only comes later.
 * Two in no order, which only a turbo.json may have, are both additive. */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

static bool meet(const struct vx_outputs *x, const struct vx_outputs *y)
{
	const struct vx_globset *xs[] = {x->files, x->workspace_files},
				*ys[] = {y->files, y->workspace_files};
	const char *xb[] = {x->dir, "."}, *yb[] = {y->dir, "."};
	for (int i = 0; i < 2; i++)
		for (int k = 0; k < 2; k++) {
			/* What is a project's own never reaches into another. */
			bool apart = i == 0 && k == 0 && strcmp(x->dir, y->dir) != 0;
			if (!apart && xs[i] && ys[k] &&
				vx_globset_overlap(xs[i], xb[i], ys[k], yb[k]))
				return true;
		}
	return false;
}

struct search {
	const struct loop *l;
	uint32_t *seen, stamp; /* by task */
	uint32_t *stack;
};

/* Does `from` come after `to`? By keys: does its key fold the other's? */
static bool reaches(struct search *s, uint32_t from, uint32_t to, bool by_keys)
{
	uint32_t n = 0;
	s->stack[n++] = from;
	s->seen[from] = ++s->stamp;
	while (n) {
		const struct vx_task *t = &s->l->g->tasks[s->stack[--n]];
		const uint32_t *deps = by_keys ? t->key_deps : t->deps;
		for (uint32_t i = 0; i < (by_keys ? t->n_key_deps : t->n_deps); i++) {
			if (deps[i] == to)
				return true;
			if (s->seen[deps[i]] != s->stamp) {
				s->seen[deps[i]] = s->stamp;
				s->stack[n++] = deps[i];
			}
		}
	}
	return false;
}

/* Marks all that come before a task, or after it. */
static void mark(struct search *s, uint8_t *marks, uint8_t with, uint32_t from, bool before)
{
	uint32_t n = 0;
	s->stack[n++] = from;
	while (n) {
		const struct vx_task *t = &s->l->g->tasks[s->stack[--n]];
		const uint32_t *next = before ? t->deps : t->dependents;
		for (uint32_t i = 0; i < (before ? t->n_deps : t->n_dependents); i++) {
			if (marks[next[i]] & with)
				continue;
			marks[next[i]] |= with;
			s->stack[n++] = next[i];
		}
	}
}

/* Has it an end that can be waited for? One that is kept out (--exclude-dependencies) never comes
 * to a result, a persistent one when all is over. */
static bool ends(const struct loop *l, uint32_t task)
{
	return !vx_task_is_group(&l->g->tasks[task]) && !l->g->tasks[task].decl->exec.persistent;
}

/* The later one's restore waits for the earlier one and for those between. */
static void wait_for(struct search *s, uint32_t later, uint32_t earlier)
{
	struct loop *l = (struct loop *)(uintptr_t)s->l;
	struct loop_task *t = &l->t[later];
	uint8_t *marks = vx_xcalloc(l->g->n_tasks, sizeof *marks);
	uint32_t n = 1;
	mark(s, marks, 1, later, true);
	mark(s, marks, 2, earlier, false);
	for (uint32_t i = 0; i < t->n_behind; i++)
		marks[t->behind[i]] = 0; /* waited for already */
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		n += marks[i] == 3;
	uint32_t *v = vx_arena_array(&l->arena, t->n_behind + n, sizeof *v);
	if (t->n_behind)
		memcpy(v, t->behind, t->n_behind * sizeof *v);
	marks[earlier] = 3;
	for (uint32_t i = 0; i < l->g->n_tasks; i++)
		if (marks[i] == 3 && ends(l, i))
			v[t->n_behind++] = i;
	t->behind = v;
	free(marks);
}

static void goes_behind(struct search *s, uint32_t later, uint32_t earlier)
{
	struct loop *l = (struct loop *)(uintptr_t)s->l;
	struct loop_task *t = &l->t[later];
	wait_for(s, later, earlier);
	t->outputs.additive = true;
	/* Its entry would hold files of the other that the other has long made anew. */
	if (reaches(s, later, earlier, true) || t->no_entry)
		return;
	t->no_entry = true;
	vx_report_warn(l->report,
		"vx run: %s is not cached: its outputs overlap those of %s, whose key its own does not fold (name it in cache.inputs.tasks)",
		l->g->tasks[later].id, l->g->tasks[earlier].id);
}

static void compare(struct search *s, uint32_t x, uint32_t y)
{
	struct loop *l = (struct loop *)(uintptr_t)s->l;
	const struct vx_outputs *a = loop_outputs(l, x), *b = loop_outputs(l, y);
	if (!a || !b || !meet(a, b))
		return;
	if (reaches(s, x, y, false))
		goes_behind(s, x, y);
	else if (reaches(s, y, x, false))
		goes_behind(s, y, x);
	else
		l->t[x].outputs.additive = l->t[y].outputs.additive = true;
}

/* Tasks with outputs, those of a project side by side; those that write below the root are compared
 * with everybody. */
void loop_find_overlaps(struct loop *l)
{
	uint32_t n = l->g->n_tasks, *head = NULL, *next = NULL;
	if (l->plan->ws.settings.exclusive_outputs || !n)
		return;
	struct search s = {.l = l,
		.seen = vx_xcalloc(n, sizeof *s.seen),
		.stack = vx_xcalloc(n, sizeof *s.stack)};
	head = vx_xmalloc((l->plan->ws.n_projects + 1) * sizeof *head);
	next = vx_xmalloc(n * sizeof *next);
	for (uint32_t p = 0; p < l->plan->ws.n_projects; p++)
		head[p] = VX_MAP_NONE;
	for (uint32_t i = 0; i < n; i++) {
		const struct vx_task *t = &l->g->tasks[i];
		if (!t->decl->has_cache || t->decl->exec.persistent || !loop_outputs(l, i))
			continue;
		for (uint32_t k = head[t->project]; k != VX_MAP_NONE; k = next[k])
			compare(&s, i, k);
		next[i] = head[t->project];
		head[t->project] = i;
	}
	for (uint32_t i = 0; i < n; i++) {
		if (!l->t[i].outputs_known || !l->t[i].outputs.workspace_files)
			continue;
		for (uint32_t k = 0; k < n; k++) {
			bool twice =
				l->t[k].outputs_known && l->t[k].outputs.workspace_files && k >= i;
			if (!twice && l->t[k].outputs_known &&
				l->g->tasks[k].project != l->g->tasks[i].project)
				compare(&s, i, k);
		}
	}
	free(s.seen);
	free(s.stack);
	free(head);
	free(next);
}

bool loop_restore_waits(const struct loop *l, uint32_t task)
{
	const struct loop_task *t = &l->t[task];
	for (uint32_t i = 0; i < t->n_behind; i++)
		if (!l->t[t->behind[i]].result)
			return true;
	return false;
}
