#include "internal.h"

#include "vx/arena.h"
#include "vx/assert.h"

#include <stdlib.h>

/* The expected time of each task, for the longest remaining path. What history does not know counts
 * as the mean of what it knows; where it knows nothing every path is 0 and the number of transitive
 * dependents decides. Groups and confirmed hits take no slot and no time. */
static void expected(const struct vx_core *c, const struct vx_core_task *in, uint64_t *ret_ns)
{
	uint64_t sum = 0, known = 0;

	for (uint32_t i = 0; i < c->n; i++) {
		ret_ns[i] =
			/* 49 days: sums stay in range */
			in[i].predicted_ns > UINT32_MAX * 1000000ULL ? UINT32_MAX * 1000000ULL
								     : in[i].predicted_ns;
		if (!ret_ns[i])
			continue;
		sum += ret_ns[i] / 1000000 + 1;
		known++;
	}
	for (uint32_t i = 0; i < c->n; i++) {
		if (in[i].group || (in[i].verdict == VX_V_HIT && !in[i].persistent))
			ret_ns[i] = 0;
		else if (!ret_ns[i] && known)
			ret_ns[i] = sum / known * 1000000;
	}
}

struct by {
	uint64_t path;
	uint32_t weight, task;
};

static int compare(const void *pa, const void *pb)
{
	const struct by *a = pa, *b = pb;

	if (a->path != b->path)
		return a->path > b->path ? -1 : 1;
	if (a->weight != b->weight)
		return a->weight > b->weight ? -1 : 1;
	return a->task < b->task ? -1 : 1;
}

/* Kahn's algorithm from the downstream end: a task's path is known when all its dependents' are. */
static void paths(struct vx_core *c, uint64_t *path)
{
	uint32_t *left = vx_xcalloc(c->n + 1, sizeof *left),
		 *stack = vx_xcalloc(c->n + 1, sizeof *stack), n = 0, seen = 0;
	uint64_t *longest = vx_xcalloc(c->n + 1, sizeof *longest);

	for (uint32_t i = 0; i < c->n; i++) {
		left[i] = c->tasks[i + 1].first_out - c->tasks[i].first_out;
		if (!left[i])
			stack[n++] = i;
	}
	while (n) {
		uint32_t i = stack[--n];
		const struct task *t = &c->tasks[i];

		seen++;
		path[i] = path[i] + longest[i];
		for (uint32_t k = 0; k < t->n_deps; k++) {
			uint32_t d = t->deps[k];

			if (path[i] > longest[d])
				longest[d] = path[i];
			if (!--left[d])
				stack[n++] = d;
		}
	}
	vx_assert(seen == c->n); /* the graph was checked for cycles */
	free(left);
	free(stack);
	free(longest);
}

void core_order(struct vx_core *c, const struct vx_core_task *in)
{
	uint64_t *path = vx_xcalloc(c->n + 1, sizeof *path);
	struct by *by = vx_xcalloc(c->n + 1, sizeof *by);

	expected(c, in, path);
	paths(c, path);
	for (uint32_t i = 0; i < c->n; i++)
		by[i] = (struct by){path[i], in[i].weight, i};
	qsort(by, c->n, sizeof *by, compare);
	for (uint32_t r = 0; r < c->n; r++) {
		c->by_rank[r] = by[r].task;
		c->tasks[by[r].task].rank = r;
	}
	free(path);
	free(by);
}
