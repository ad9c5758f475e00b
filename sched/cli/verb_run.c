/* vx run. */
#include "cli.h"

#include "vx/clock.h"
#include "vx/key.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A task that starts vx on the workspace it is part of would wait for itself. */
static int refuse_nested(const struct vx_plan *p, struct vx_err *err)
{
	const char *outer = getenv("VX_RUN_WORKSPACE");
	if (!outer || strcmp(outer, p->ws.root) != 0)
		return 0;
	const char *task = getenv("VX_RUN_TASK");
	vx_err_set(err, -EDEADLK, "this is inside the task %s of the same workspace",
		task ? task : "of a run");
	return vx_err_fix(
		err, "declare the task in dependsOn instead of starting vx from a command");
}

/* Files that are written when all is done: what would fail then is said before anything is
 * started. */
static int check_file(const char *option, const char *path, struct vx_err *err)
{
	char dir[VX_MAX_PATH];
	struct stat st;
	const char *slash = path ? strrchr(path, '/') : NULL;
	if (!path)
		return 0;
	size_t n = slash ? (size_t)(slash - path) + (slash == path) : 1;
	if (!*path || n >= sizeof dir)
		return vx_err_set(err, -EINVAL, "%s has no usable path", option);
	memcpy(dir, slash ? path : ".", n);
	dir[n] = 0;
	int r = access(dir, W_OK | X_OK)                      ? -errno
		: stat(path, &st) == 0 && S_ISDIR(st.st_mode) ? -EISDIR
							      : 0;
	if (!r)
		return 0;
	vx_err_set(err, r, "%s: %s cannot be written: %s", option, path, vx_strerror(r));
	return vx_err_fix(
		err, "name a file in a directory that is there and writable: %s=PATH", option);
}

/* Where it is set at all it says one of the documented words. */
static int check_word(const char *name, const char *one, const char *other, struct vx_err *err)
{
	const char *text = getenv(name);
	if (!text || !*text || vx_streq(text, one) || vx_streq(text, other))
		return 0;
	vx_err_set(err, -EINVAL, "%s=%s is not understood", name, text);
	return vx_err_fix(
		err, other ? "%s or %s, or leave it unset" : "%s, or leave it unset", one, other);
}

static int check_opts(const struct vx_run_opts *o, struct vx_err *err)
{
	int r = check_word("VX_IO", "uring", "blocking", err);
	if (!r)
		r = check_word("VX_FILES", "git", NULL, err);
	if (!r)
		r = check_word("VX_SANDBOX_BACKEND", "own", "plain", err);
	if (r)
		return r;
	if (o->frozen && o->no_inference) {
		vx_err_set(err, -EINVAL,
			"--framework-inference=false says nothing to --frozen: vx-lock.json holds what was inferred");
		return vx_err_fix(err, "leave one of the two out");
	}
	if (o->dry)
		return 0;
	r = check_file("--summarize", o->summary_path, err);
	if (!r)
		r = check_file("--profile", o->profile_path, err);
	if (!r)
		r = check_file("--report", o->report_html, err);
	if (!r)
		r = check_file("--report", o->report_markdown, err);
	return r ? r : check_file("VX_STATS", o->stats_path, err);
}

int vx_cli_run(int argc, char **argv)
{
	struct vx_err err = {0};
	struct vx_run_opts o;
	if (vx_cli_parse_run(argc, argv, &o, &err))
		return vx_cli_fail("run", &err);
	if (o.help)
		return vx_cli_help(2, argv - 1);
	/* the JSON also says what a filter selects */
	o.wants_tasks = o.dry != VX_DRY_JSON && o.dry != VX_DRY_FULL;
	o.start_ns = vx_now_ns();
	o.stats_path = getenv("VX_STATS");
	if (o.stats_path && !*o.stats_path)
		o.stats_path = NULL;
	static struct vx_plan plan;
	if (vx_cli_root(&plan, &err) || check_opts(&o, &err))
		return vx_cli_fail("run", &err);
	if (vx_run_unchanged(&o, &plan))
		return 0;
	plan.wants_files = !o.no_cache;
	int code;
	if (vx_cli_plan(&o, &plan, &err) || (!o.dry && refuse_nested(&plan, &err))) {
		if (!strstr(err.fix, plan.ws.warnings.n ? plan.ws.warnings.v[0] : ""))
			vx_cli_warn("run", plan.ws.warnings); /* perhaps they say why */
		code = vx_cli_fail("run", &err);
	} else if (plan.sel.nothing && o.dry != VX_DRY_JSON && o.dry != VX_DRY_FULL) {
		vx_say(1, "%s\n", plan.sel.nothing);
		code = 0;
	} else if (o.dry) {
		code = vx_cli_dry(&o, &plan);
	} else {
		o.init_path = vx_cli_init_path();
		o.bwrap_path = vx_cli_program("bwrap", plan.ws.root);
		o.shell_path = vx_cli_program("sh", plan.ws.root);
		code = vx_run(&o, &plan, &err);
		if (code < 0)
			code = vx_cli_fail("run", &err);
	}
	vx_ahead_free(plan.ahead);
	/* The plan's memory goes with the process: unmapping it page by page would only cost
	 * time. */
	return code;
}
