/* Topological order, cycles, and how much hangs on each task. */
#include "build.h"

#include "vx/buf.h"
#include "vx/err.h"

#include <errno.h>
#include <string.h>

static int cycle(const struct vx_graph *g, const uint32_t *stack, uint32_t depth, uint32_t back_to,
	struct vx_err *err)
{
	struct vx_buf b = VX_BUF(2500);
	uint32_t at = depth;

	while (at > 0 && stack[at - 1] != back_to)
		at--;
	for (uint32_t i = at - 1; i < depth && b.len < 1800; i++)
		vx_buf_printf(&b, "%.200s -> ", g->tasks[stack[i]].id);
	if (b.len >= 1800)
		vx_buf_adds(&b, "... -> ");
	vx_buf_printf(&b, "%.200s", g->tasks[back_to].id);
	vx_err_set(err, -ELOOP, "tasks depend on each other in a circle: %s", vx_buf_str(&b));
	vx_buf_free(&b);
	return vx_err_fix(err, "remove one of these dependsOn entries");
}

int order_tasks(
	struct vx_graph *g, struct vx_arena *keep, struct vx_arena *scratch, struct vx_err *err)
{
	uint32_t n = g->n_tasks, placed = 0;
	uint32_t *topo = vx_arena_array(keep, n ? n : 1, sizeof *topo),
		 *stack = vx_arena_array(scratch, n ? n : 1, sizeof *stack);
	uint32_t *next = vx_arena_array(scratch, n ? n : 1, sizeof *next);
	char *state = vx_arena_alloc(scratch, n ? n : 1); /* 0 new, 1 on the stack, 2 placed */

	for (uint32_t r = 0; r < n; r++) {
		uint32_t depth = 0;
		if (state[r])
			continue;
		stack[depth++] = r;
		state[r] = 1;
		while (depth) {
			uint32_t u = stack[depth - 1];
			const struct vx_task *t = &g->tasks[u];
			if (next[u] == t->n_deps) {
				state[u] = 2;
				topo[placed++] = u;
				depth--;
				continue;
			}
			uint32_t v = t->deps[next[u]++];
			if (state[v] == 1)
				return cycle(g, stack, depth, v, err);
			if (state[v] == 0) {
				state[v] = 1;
				stack[depth++] = v;
			}
		}
	}
	g->topo = topo;
	return 0;
}

enum { CHUNK_WORDS = 64, CHUNK = CHUNK_WORDS * 64 };

/* One chunk of columns: bit c of row t says that task `first + c` is downstream of t. */
static void count_chunk(const struct vx_graph *g, uint32_t first, uint64_t *rows, uint32_t *ret)
{
	memset(rows, 0, (size_t)g->n_tasks * CHUNK_WORDS * sizeof *rows);
	for (uint32_t k = g->n_tasks; k-- > 0;) {
		uint32_t u = g->topo[k];
		uint64_t *mine = rows + (size_t)u * CHUNK_WORDS;
		const struct vx_task *t = &g->tasks[u];
		for (uint32_t i = 0; i < t->n_dependents; i++) {
			uint32_t v = t->dependents[i];
			const uint64_t *other = rows + (size_t)v * CHUNK_WORDS;
			for (int w = 0; w < CHUNK_WORDS; w++)
				mine[w] |= other[w];
			if (v - first < CHUNK)
				mine[(v - first) / 64] |= UINT64_C(1) << ((v - first) % 64);
		}
		for (int w = 0; w < CHUNK_WORDS; w++)
			ret[u] += (uint32_t)__builtin_popcountll(mine[w]);
	}
}

void vx_graph_weights(const struct vx_graph *g, struct vx_arena *a, uint32_t *ret)
{
	struct vx_arena scratch = {0};
	uint64_t edges = 0;

	(void)a;
	memset(ret, 0, g->n_tasks * sizeof *ret);
	for (uint32_t i = 0; i < g->n_tasks; i++)
		edges += g->tasks[i].n_dependents;
	if ((edges + g->n_tasks) * (g->n_tasks / 64 + 1) <= 100000000) {
		uint64_t *rows = vx_arena_array(
			&scratch, (size_t)g->n_tasks * CHUNK_WORDS + 1, sizeof *rows);
		for (uint32_t first = 0; first < g->n_tasks; first += CHUNK)
			count_chunk(g, first, rows, ret);
		vx_arena_free(&scratch);
		return;
	}
	/* Counting exactly is quadratic. Beyond some ten thousand tasks paths are counted instead
	 * of tasks: as good for ranking. */
	for (uint32_t k = g->n_tasks; k-- > 0;) {
		const struct vx_task *t = &g->tasks[g->topo[k]];
		uint64_t sum = 0;
		for (uint32_t i = 0; i < t->n_dependents; i++)
			sum += (uint64_t)ret[t->dependents[i]] + 1;
		ret[g->topo[k]] = sum > UINT32_MAX ? UINT32_MAX : (uint32_t)sum;
	}
}
