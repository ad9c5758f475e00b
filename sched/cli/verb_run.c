/* vx run. */
#include "cli.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/key.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int vx_cli_fail(const char *verb, const struct vx_err *err)
{
	/* One line whatever it holds: a file name may have newlines. */
	char line[sizeof err->what + sizeof err->fix + 64];
	int n = err->fix[0] ? snprintf(line, sizeof line, "vx %s: %s (%s)", verb, err->what, err->fix)
			    : snprintf(line, sizeof line, "vx %s: %s", verb, err->what);
	size_t len = n < 0 ? 0 : (size_t)n < sizeof line ? (size_t)n : sizeof line - 1;
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)line[i] < ' ')
			line[i] = line[i] == '\t' ? ' ' : '?';
	line[len] = '\n';
	(void)vx_write_full(2, line, len + 1);
	return 1;
}

/* A task that starts vx on the workspace it is part of would wait for itself. */
static int refuse_nested(const struct vx_plan *p, struct vx_err *err)
{
	const char *outer = getenv("VX_RUN_WORKSPACE");
	if (!outer || strcmp(outer, p->ws.root) != 0)
		return 0;
	const char *task = getenv("VX_RUN_TASK");
	vx_err_set(err, -EDEADLK, "this is inside the task %s of the same workspace", task ? task : "of a run");
	return vx_err_fix(err, "declare the task in dependsOn instead of starting vx from a command");
}

int vx_cli_run(int argc, char **argv)
{
	struct vx_err err = {0};
	struct vx_run_opts o;
	if (vx_cli_parse_run(argc, argv, &o, &err))
		return vx_cli_fail("run", &err);
	o.start_ns = vx_now_ns();
	o.stats_path = getenv("VX_STATS");
	static struct vx_plan plan;
	if (vx_cli_root(&plan, &err))
		return vx_cli_fail("run", &err);
	if (vx_run_unchanged(&o, &plan))
		return 0;
	plan.wants_files = !o.no_cache;
	int code;
	if (vx_cli_plan(&o, &plan, &err) || (!o.dry && refuse_nested(&plan, &err))) {
		code = vx_cli_fail("run", &err);
	} else if (plan.sel.nothing) {
		printf("%s\n", plan.sel.nothing);
		code = 0;
	} else if (o.dry) {
		code = vx_cli_dry(&o, &plan);
	} else {
		o.init_path = vx_cli_init_path();
		o.bwrap_path = vx_cli_program("bwrap");
		o.shell_path = vx_cli_program("sh");
		code = vx_run(&o, &plan, &err);
		if (code < 0)
			code = vx_cli_fail("run", &err);
	}
	fflush(stdout);
	vx_ahead_free(plan.ahead);
	/* The plan's memory goes with the process: unmapping it page by page would only cost time. */
	return code;
}
