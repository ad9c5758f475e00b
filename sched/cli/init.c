/* vx init: vx.json files from the scripts of each project, or from turbo.json. */
#include "cli.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/config.h"
#include "vx/fd.h"
#include "vx/graph.h"
#include "vx/initgen.h"
#include "vx/limits.h"
#include "vx/text.h"
#include "vx/verbs.h"
#include "vx/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

enum { HAS_CONFIG = VX_HAS_VX_JSON | VX_HAS_VX_JSONC | VX_CONFIG_PROGRAMS };

struct init {
	bool from_turbo;
	struct vx_workspace ws;
	struct vx_arena *a;
	struct vx_strlist notes;
	uint32_t written, kept;
	int root_fd;
	struct vx_err *err;
};

static int write_new(struct init *x, const char *path, const struct vx_buf *text)
{
	/* O_EXCL: what somebody wrote is never replaced. */
	int fd = vx_open(x->root_fd, path, O_WRONLY | O_CREAT | O_EXCL, 0644);

	if (fd == -EEXIST) {
		x->kept++;
		return 0;
	}
	int r = fd < 0 ? fd : vx_write_full(fd, text->data, text->len);
	vx_close(fd);
	if (r < 0) {
		if (fd >= 0)
			/* half a file would be taken for one that somebody wrote */
			(void)unlinkat(x->root_fd, path, 0);
		vx_err_set(x->err, r, "cannot write %s: %s", path, vx_strerror(r));
		return vx_err_fix(
			x->err, "see to that, and run vx init again: it goes on where it stopped");
	}
	vx_say(1, "wrote %s\n", path);
	x->written++;
	return 0;
}

static int one_project(struct init *x, const struct vx_project *p)
{
	struct vx_buf text = VX_BUF(VX_MAX_CONFIG_BYTES);
	int r = 0;

	if (p->files & HAS_CONFIG) {
		x->kept++;
		return 0;
	}
	uint32_t n = x->from_turbo ? vx_init_from_turbo(&x->ws, p, x->a, &text, &x->notes)
				   : vx_init_from_scripts(&x->ws, p, x->a, &text);
	if (n)
		r = write_new(x,
			strcmp(p->dir, ".") == 0 ? "vx.json"
						 : vx_arena_printf(x->a, "%s/vx.json", p->dir),
			&text);
	vx_buf_free(&text);
	return r;
}

/* turbo.json lets tasks read what others make and share outputs; a file that says the same must
 * switch these rules off. */
static int workspace_file(struct init *x)
{
	struct vx_buf text = VX_BUF(1024);
	int r = 0;

	vx_buf_adds(&text,
		"{\n  \"rules\": {\n    \"exclusiveOutputs\": false,\n    \"upfrontKeys\": false\n  }\n}\n");
	if (x->from_turbo && !(x->ws.root_files & VX_WORKSPACE_CONFIGS))
		r = write_new(x, "vx.workspace.json", &text);
	vx_buf_free(&text);
	return r;
}

/* What turbo.json allows and vx refuses (two tasks that write one file) is for a person to decide:
 * said at once, not at the next run. */
static int try_out(struct init *x, const char *root)
{
	struct vx_workspace ws = {0};
	struct vx_selection sel = {0};
	struct vx_graph g;
	struct vx_err err = {0};
	int r = x->written ? vx_workspace_load(root, x->a, &ws, &err) : 0;

	if (r == 0 && x->written)
		r = vx_config_load(&ws, x->a, &err);
	if (r == 0 && x->written)
		r = vx_workspace_need_all(&ws, &err);
	vx_cli_learn_secrets(&ws);
	if (r == 0 && x->written)
		r = vx_graph_build(&ws, &sel, NULL, x->a, &g, &err);
	if (r < 0)
		vx_strlist_add(&x->notes, x->a,
			vx_arena_printf(x->a, "what was written does not load yet: %s%s%s%s",
				err.what, *err.fix ? " (" : "", err.fix, *err.fix ? ")" : ""));
	vx_map_free(&ws.by_name);
	vx_map_free(&ws.by_dir);
	return 0;
}

/* Another runner's configuration beside which, or in whose place, the files will count. */
static void say_replaced(struct init *x)
{
	bool ours = x->ws.root_files & VX_WORKSPACE_CONFIGS;

	for (uint32_t i = 0; i < x->ws.n_projects; i++)
		ours = ours || (x->ws.projects[i].files & HAS_CONFIG);
	if ((x->ws.root_files & (VX_HAS_TURBO_JSON | VX_HAS_TURBO_JSONC)) && !ours)
		vx_strlist_add(&x->notes, x->a,
			x->from_turbo
				? "these files replace turbo.json for vx: from now on they count, and it is not read (turbo goes on reading it)"
				: "these files replace turbo.json for vx: they are made from the scripts alone, and what turbo.json says no longer counts (vx init --from-turbo takes it over; remove them first)");
	if (faccessat(x->root_fd, "nx.json", F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		vx_strlist_add(&x->notes, x->a,
			"nx.json is there: its targetDefaults, and the targets of project.json files, are not read; these files are made from the scripts and stand in their place for vx");
}

static int init(struct init *x)
{
	char *root;

	int r = vx_workspace_find(".", x->a, &root, x->err);
	if (r == 0)
		r = vx_workspace_load(root, x->a, &x->ws, x->err);
	if (r == 0 && x->from_turbo && !x->ws.settings.turbo) {
		vx_err_set(x->err, -ENOENT,
			"there is no turbo.json to start from, or there are vx configurations already");
		r = vx_err_fix(x->err, "vx init without --from-turbo starts from the scripts");
	}
	if (r == 0 && x->from_turbo)
		r = vx_config_load(&x->ws, x->a, x->err);
	if (r < 0)
		return r;
	x->root_fd = vx_open(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0);
	if (x->root_fd < 0)
		return vx_err_set(
			x->err, x->root_fd, "cannot enter %s: %s", root, vx_strerror(x->root_fd));
	for (uint32_t i = 0; i < x->ws.n_projects && r == 0; i++)
		r = one_project(x, &x->ws.projects[i]);
	if (r == 0 && x->from_turbo && x->written)
		vx_strlist_add(&x->notes, x->a,
			"variables that Turborepo lets through unasked (TZ, DISPLAY, GITHUB_*, DOCKER_* and their kind) reach these tasks where exec.env.passThrough names them");
	if (r == 0)
		r = workspace_file(x);
	if (r == 0 && x->written)
		say_replaced(x);
	vx_close(x->root_fd);
	return r < 0 ? r : try_out(x, root);
}

int vx_cli_init(int argc, char **argv)
{
	struct vx_arena a = {0};
	struct vx_err err = {0};
	struct init x = {.a = &a, .err = &err};
	int r = vx_cli_flag_only(argc, argv, "--from-turbo", &x.from_turbo, &err);

	if (r == 0)
		r = init(&x);
	if (r == 0) {
		for (uint32_t i = 0; i < x.notes.n; i++)
			vx_say(1, "note: %s\n", x.notes.v[i]);
		if (x.kept)
			vx_say(1, "%u configuration%s already there, and left alone\n", x.kept,
				x.kept == 1 ? " is" : "s are");
		if (!x.written)
			vx_say(1, "nothing to write\n");
		else if (!x.from_turbo)
			vx_say(1,
				"add \"cache\" to the tasks whose result depends only on files: see docs/config.md\n");
	}
	vx_map_free(&x.ws.by_name);
	vx_map_free(&x.ws.by_dir);
	vx_arena_free(&a);
	return r < 0 ? vx_cli_fail("init", &err) : 0;
}
