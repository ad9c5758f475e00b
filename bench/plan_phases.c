/* Where the time of planning goes: each phase of a plan of everything, wall and CPU, in a workspace
 * given as the first argument (else it is skipped). Usage: plan_phases DIR TASK... */
#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/config.h"
#include "vx/err.h"
#include "vx/graph.h"
#include "vx/keeper.h"
#include "vx/key.h"
#include "vx/workspace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static uint64_t wall, cpu;

static uint64_t cpu_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static void phase(const char *name, int r, const struct vx_err *err)
{
	if (r < 0) {
		fprintf(stderr, "%s: %s\n", name, err->what);
		exit(1);
	}
	printf("%-12s %8.2f ms wall %8.2f ms cpu\n", name, (double)(vx_now_ns() - wall) / 1e6,
		(double)(cpu_ns() - cpu) / 1e6);
	wall = vx_now_ns();
	cpu = cpu_ns();
}

int main(int argc, char **argv)
{
	struct vx_arena a = {0};
	struct vx_err err = {0};
	struct vx_workspace ws = {0};
	struct vx_selection sel = {0};
	struct vx_graph g = {0};
	char *root = NULL;
	if (argc > 1 && strcmp(argv[1], "-keeper") == 0)
		return vx_keeper_main(argc, argv);
	if (argc < 3) {
		printf("plan_phases DIR TASK...: skipped, no directory given\n");
		return 0;
	}
	wall = vx_now_ns();
	cpu = cpu_ns();
	phase("find", vx_workspace_find(argv[1], &a, &root, &err), &err);
	phase("workspace", vx_workspace_load(root, &a, &ws, &err), &err);
	phase("config", vx_config_load(&ws, &a, &err), &err);
	struct vx_select_opts so = {.cwd = ".",
		.all = true,
		.words = {(const char *const *)(void *)(argv + 2), (uint32_t)argc - 2}};
	phase("select", vx_select(&ws, &so, &a, &sel, &err), &err);
	struct vx_graph_opts go = {0};
	phase("graph", vx_graph_build(&ws, &sel, &go, &a, &g, &err), &err);
	struct vx_keyer_opts ko = {.cancel_fd = -1};
	struct vx_keyer *k = NULL;
	phase("files", vx_keyer_new(&ws, &g, &ko, &k, &err), &err);
	if (g.n_tasks)
		(void)vx_key_stable(k, 0);
	phase("stable", 0, &err);
	for (uint32_t i = 0; i < g.n_tasks; i++) {
		const struct vx_key_record *r;
		int e = vx_key_compute(k, g.topo[i], &r, &err);
		if (e < 0)
			phase("keys", e, &err);
	}
	phase("keys", 0, &err);
	struct vx_keyer_stats st;
	vx_keyer_stats(k, &st);
	printf("%u tasks; ids: %u from the index, %u hashed; %s\n", g.n_tasks, st.index_ids,
		st.hashed, st.source);
	vx_keyer_free(k);
	phase("free", 0, &err);
	vx_arena_free(&a);
	return 0;
}
