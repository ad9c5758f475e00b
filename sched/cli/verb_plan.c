/* From the command line to a task graph. */
#include "cli.h"

#include "vx/affected.h"
#include "vx/config.h"
#include "vx/graph.h"
#include "vx/limits.h"
#include "vx/lock.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static int find_root(struct vx_plan *p, char **ret_root, struct vx_err *err)
{
	char *cwd = NULL;
	int r = vx_workspace_find(".", &p->arena, ret_root, err);
	if (r)
		return r;
	r = vx_path_canon(&p->arena, ".", &cwd);
	if (r)
		return vx_err_set(err, r, "the current directory cannot be read: %s", vx_strerror(r));
	const char *below = vx_path_below(cwd, *ret_root);
	p->cwd = below && *below ? below : ".";
	return 0;
}

int vx_cli_plan(const struct vx_run_opts *o, struct vx_plan *p, struct vx_err *err)
{
	char *root = NULL;
	int r = find_root(p, &root, err);
	if (!r && o->frozen)
		r = vx_lock_read(root, &p->arena, &p->ws, err);
	else if (!r)
		r = vx_workspace_load(root, &p->arena, &p->ws, err);
	if (!r && !o->frozen)
		r = vx_config_load(&p->ws, &p->arena, err);
	if (r)
		return r;
	struct vx_select_opts so = {.cwd = p->cwd,
	                            .all = o->all,
	                            .filters = o->filters,
	                            .affected = o->affected,
	                            .affected_base = o->affected_base,
	                            .words = o->words};
	r = vx_select(&p->ws, &so, &p->arena, &p->sel, err);
	if (!r)
		r = vx_affected_narrow(&p->ws, &so, &p->arena, &p->sel, err);
	if (r || p->sel.nothing)
		return r;
	struct vx_graph_opts go = {.exclude_dependencies = o->exclude_deps, .exclude_names = o->exclude_names};
	return vx_graph_build(&p->ws, &p->sel, &go, &p->arena, &p->graph, err);
}
