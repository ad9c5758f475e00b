/* vx info: what a bug report needs. Changes nothing, except that the sandbox is tried once. */
#include "cli.h"

#include "../git/git.h"

#include "vx/buf.h"
#include "vx/json.h"
#include "vx/key.h"
#include "vx/lane.h"
#include "vx/pool.h"
#include "vx/spawn.h"
#include "vx/store.h"
#include "vx/text.h"
#include "vx/workspace.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* First line of what a program answered with, or why there is none. */
static const char *first_line(const struct vx_buf *out, const char *path, struct vx_arena *a)
{
	const char *text = out->len ? vx_arena_strndup(a, out->data, strcspn(out->data, "\n"))
				    : "does not answer";
	return vx_arena_printf(a, "%s (%s)",
		text + (vx_starts_with(text, "git version ") ? strlen("git version ") : 0), path);
}

static const char *git_version(const char *root, struct vx_arena *a)
{
	struct vx_buf out = VX_BUF(1 << 16);
	struct vx_git g;
	int status = 0;
	if (vx_git_find(root, a, &g, NULL))
		return "not found on PATH";
	if (vx_git_run(
		    &g, "/", (const char *const[]){"version", NULL}, &out, NULL, &status, NULL) ||
		status)
		vx_buf_clear(&out);
	const char *text = first_line(&out, g.path, a);
	vx_buf_free(&out);
	return text;
}

static const char *bwrap_version(const char *path, struct vx_arena *a)
{
	if (!path)
		return "not found on PATH";
	const char *argv[] = {"bwrap", "--version", NULL};
	struct vx_spawn s = VX_SPAWN_INIT;
	s.path = path;
	s.argv = argv;
	struct vx_buf out = VX_BUF(1 << 16);
	int status = 0;
	if (vx_spawn_capture(&s, &out, NULL, 5000, -1, &status) || status)
		vx_buf_clear(&out);
	const char *text = first_line(&out, path, a);
	vx_buf_free(&out);
	return text;
}

static const char *not_available(struct vx_arena *a, const char *text)
{
	return vx_starts_with(text, "sandbox not available")
		       ? text + strlen("sandbox ")
		       : vx_arena_printf(a, "not available: %s", text);
}

/* The sandbox's verdict, by the same way a task would take. */
static const char *sandbox_verdict(const char *bwrap, struct vx_arena *a)
{
	struct vx_pool_opts po = {.slots = 1, .init_path = vx_cli_init_path(), .bwrap_path = bwrap};
	struct vx_pool *pool = NULL;
	struct vx_err err = {0};
	const char *verdict = "no answer within 10 s";
	if (vx_pool_start(&po, &pool, &err))
		return vx_arena_printf(a, "not tried: %s", err.what);
	struct vx_pool_event e;
	int r = vx_pool_arm(pool, 0, false);
	for (int i = 0; !r && i < 100; i++) {
		struct pollfd p = {.fd = vx_pool_fd(pool), .events = POLLIN};
		poll(&p, 1, 100);
		bool done = false;
		while (vx_pool_next(pool, &e) > 0) {
			if (e.kind == VX_POOL_ARMED) {
				verdict = e.done.end == 1 && !e.done.code
						  ? "available"
						  : not_available(a, e.done.text);
				done = true;
			} else if (e.kind == VX_POOL_LOST) {
				verdict = not_available(a, e.done.text);
				done = true;
			}
		}
		if (done)
			break;
	}
	vx_pool_end(pool);
	return verdict;
}

static void workspace_info(struct vx_json *o, const char *cache_dir, struct vx_arena *a)
{
	static struct vx_plan p;
	struct vx_err err = {0};
	struct vx_run_opts ro = {.retry = -1, .timeout_ms = -1, .all = true};
	char *dir = NULL;
	if (vx_cli_plan(&ro, &p, &err) && !p.ws.root) {
		vx_json_set(
			o, "workspace", vx_json_new_str(vx_arena_printf(a, "none: %s", err.what)));
		return;
	}
	if (!err.code)
		(void)vx_workspace_need_all(&p.ws, &err);
	static const char *const kinds[] = {"single project", "npm", "yarn", "pnpm", "bun"};
	vx_json_set(o, "workspace", vx_json_new_str(p.ws.root));
	vx_json_set(o, "packageManager", vx_json_new_str(kinds[p.ws.kind]));
	vx_json_set(o, "projects", vx_json_new_int(p.ws.n_projects));
	vx_json_set(o, "configuration",
		vx_json_new_str(err.code              ? err.what
				: p.ws.settings.turbo ? "turbo.json"
						      : "vx.json"));
	if (vx_store_dir(cache_dir, p.ws.settings.cache_dir, p.ws.settings.shared_store, p.ws.root,
		    a, &dir, &err)) {
		vx_json_set(o, "cacheProblem", vx_json_new_str(err.what));
		return;
	}
	struct vx_store_opts so = {.dir = dir, .workspace = p.ws.root, .read = true};
	struct vx_store *s = NULL;
	vx_json_set(o, "cache", vx_json_new_str(dir));
	if (vx_store_open(&so, &s, &err))
		vx_json_set(o, "cacheProblem", vx_json_new_str(err.what));
	char io[160];
	vx_lane_io_name(io, sizeof io);
	vx_json_set(o, "saveLane", vx_json_new_str(io));
	struct vx_keyer_opts ko = {.cache_dir = dir, .cancel_fd = -1};
	struct vx_keyer *k = NULL;
	if (p.graph.tasks || p.ws.n_projects) {
		if (vx_keyer_new(&p.ws, &p.graph, &ko, &k, &err)) {
			vx_json_set(o, "fileLists", vx_json_new_str(err.what));
		} else {
			struct vx_keyer_stats ks = {0};
			vx_keyer_stats(k, &ks);
			const char *lists = ks.source ? ks.source : "git";
			for (uint32_t i = 0; i < ks.said.n; i++)
				lists = vx_arena_printf(a, "%s; %s", lists, ks.said.v[i]);
			vx_json_set(o, "fileLists", vx_json_new_str(lists));
			vx_keyer_free(k);
		}
	}
	vx_store_close(s);
}

static void print_pretty(const struct vx_json *o)
{
	struct vx_buf out = VX_BUF(SIZE_MAX / 4);

	for (struct vx_json_iter it = vx_json_iter(o); vx_json_next(&it);) {
		vx_text_printf(&out, "%-15s ", it.key);
		if (vx_json_str(it.val))
			vx_text_add(&out, vx_json_str(it.val), vx_json_str_len(it.val));
		else
			vx_json_write_shown(it.val, false, &out);
		vx_buf_addc(&out, '\n');
	}
	vx_cli_out(&out);
	vx_buf_free(&out);
}

static int parse(
	int argc, char **argv, bool *ret_json, const char **ret_cache_dir, struct vx_err *err)
{
	for (int i = 1; i < argc; i++) {
		const char *format = NULL, *dir = NULL, *arg = argv[i];
		int r = vx_cli_value(argc, argv, &i, "--format", &format, err);
		if (!r)
			r = vx_cli_value(argc, argv, &i, "-C", &dir, err);
		if (!r)
			r = vx_cli_value(argc, argv, &i, "--cache-dir", ret_cache_dir, err);
		if (r < 0)
			return r;
		if (dir && vx_cli_chdir(dir, err))
			return -EINVAL;
		if (format)
			*ret_json = !strcmp(format, "json");
		if (r && (!format || *ret_json || !strcmp(format, "pretty")))
			continue;
		vx_err_set(err, -EINVAL, "%s is not understood", format ? format : arg);
		return vx_err_fix(err, "vx info [--format pretty|json] [-C DIR] [--cache-dir DIR]");
	}
	return 0;
}

int vx_cli_info(int argc, char **argv)
{
	bool json = false;
	const char *cache_dir = NULL;
	struct vx_err err = {0};
	if (parse(argc, argv, &json, &cache_dir, &err))
		return vx_cli_fail("info", &err);
	struct vx_arena a = {0};
	struct vx_json *o = vx_json_object();
	struct utsname u;
	struct vx_plan here = {0};
	const char *root = vx_cli_root(&here, &err) ? NULL : here.root,
		   *bwrap = vx_cli_program("bwrap", root);
	uname(&u);
	vx_json_set(o, "vx", vx_json_new_str(vx_version));
	vx_json_set(o, "system",
		vx_json_new_str(vx_arena_printf(&a, "%s %s %s", u.sysname, u.release, u.machine)));
	vx_json_set(o, "cpus", vx_json_new_int(vx_cpu_count()));
	vx_json_set(o, "git", vx_json_new_str(git_version(root, &a)));
	vx_json_set(o, "bwrap", vx_json_new_str(bwrap_version(bwrap, &a)));
	vx_json_set(o, "vxInit",
		vx_json_new_str(vx_cli_init_path() ? vx_cli_init_path()
						   : "not found beside vx nor in ../libexec/vx"));
	vx_json_set(o, "sandbox", vx_json_new_str(sandbox_verdict(bwrap, &a)));
	workspace_info(o, cache_dir, &a);
	if (json)
		vx_cli_json(o);
	else
		print_pretty(o);
	vx_json_free(o);
	vx_arena_free(&here.arena);
	vx_arena_free(&a);
	return 0;
}
