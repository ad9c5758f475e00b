/* Drives the sandbox without the rest of vx: one process plays the worker.
 *
 *   boxrun [-r RESULTS] SPEC.json
 *
 * SPEC is one task or an array of tasks, run one after the other by one box host:
 *   { "root", "project", "command" or "argv", "env": {}, "cwd", "home", "nested": [], "stores": [],
 *   "record": dir, "packages": [{name, dir, keyed}],
 *     "narrow", "weaker", "read": [], "write": [], "network", "unixSockets": true|[], "devices":
 *       [], "pty", "gitConfig", "weakerWhenNested", "protected": [], "members": [], "moves": [],
 *     "signal": n, "after_ms": m (the signal is sent m ms after the start) }
 * A string "env:NAME" stands for that variable's value. {"sweep": dir} sweeps records. {"arm":
 * true} asks for the verdict. The command's output is ours. RESULTS (default: descriptor 2) gets
 * one JSON line per task. Exit: the last task's code, 128 + its signal, 90 refused, 91 lost.
 * VX_INIT names vx-init (default: beside this program's build). */
#include "vx/arena.h"
#include "vx/box.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/json.h"
#include "vx/path.h"
#include "vx/pool.h"
#include "vx/spawn.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

static struct vx_arena arena;

static const char *str(struct vx_json *o, const char *key, const char *otherwise)
{
	const char *s = vx_json_str(vx_json_get(o, key));

	if (s && !strncmp(s, "env:", 4)) /* bytes that JSON cannot carry */
		s = getenv(s + 4);
	return s ? vx_arena_strdup(&arena, s) : otherwise;
}

static bool flag(struct vx_json *o, const char *key)
{
	struct vx_json *v = vx_json_get(o, key);

	return v && vx_json_type(v) == VX_JSON_BOOL && vx_json_bool(v);
}

static struct vx_strs strs(struct vx_json *o, const char *key)
{
	struct vx_strlist l = {0};
	struct vx_json *v = vx_json_get(o, key);

	for (size_t i = 0; v && vx_json_type(v) == VX_JSON_ARRAY && i < vx_json_len(v); i++)
		vx_strlist_add(&l, &arena, vx_arena_strdup(&arena, vx_json_str(vx_json_at(v, i))));
	return vx_strlist_done(&l);
}

static void fill_spec(struct vx_json *o, struct vx_sbx_spec *s)
{
	struct vx_json *pk = vx_json_get(o, "packages");

	s->root = str(o, "root", "/no/such/workspace");
	s->project_dir = str(o, "project", ".");
	s->nested = strs(o, "nested");
	s->store_dirs = strs(o, "stores");
	s->home = str(o, "home", getenv("HOME") ? getenv("HOME") : "");
	s->record_dir = str(o, "record", vx_arena_printf(&arena, "%s/.vx/sweep", s->root));
	s->narrow = flag(o, "narrow");
	s->weaker = flag(o, "weaker");
	s->n_packages = (uint32_t)vx_json_len(pk);
	struct vx_sbx_package *p = vx_arena_array(&arena, s->n_packages + 1, sizeof *p);
	for (uint32_t i = 0; i < s->n_packages; i++) {
		struct vx_json *k = vx_json_at(pk, i);
		p[i] = (struct vx_sbx_package){.name = str(k, "name", "?"),
			.dir = str(k, "dir", "?"),
			.keyed = flag(k, "keyed")};
	}
	s->packages = p;
	s->decl.read = strs(o, "read");
	s->decl.write = strs(o, "write");
	s->decl.net_all = flag(o, "network");
	s->decl.net_allow = strs(o, "network");
	s->decl.unix_all = flag(o, "unixSockets");
	s->decl.unix_paths = strs(o, "unixSockets");
	s->decl.devices = strs(o, "devices");
	s->decl.pty = flag(o, "pty");
	s->decl.git_config = flag(o, "gitConfig");
	s->decl.protect = strs(o, "protected");
	s->members = strs(o, "members");
	s->moves = strs(o, "moves");
	s->decl.weaker_when_nested = flag(o, "weakerWhenNested");
}

static void fill_desc(struct vx_json *o, struct vx_task_desc *d)
{
	struct vx_strlist env = {0};
	struct vx_json *e = vx_json_get(o, "env");
	const char *const shell[] = {"/bin/sh", "-c", str(o, "command", "true")};

	fill_spec(o, &d->sandbox);
	d->id = "test#task";
	d->sandboxed = true;
	d->argv = strs(o, "argv");
	if (!d->argv.n)
		d->argv = (struct vx_strs){vx_arena_dup(&arena, shell, sizeof shell), 3};
	d->cwd = str(o, "cwd", vx_path_join(&arena, d->sandbox.root, d->sandbox.project_dir));
	if (!vx_json_has(e, "PATH"))
		vx_strlist_add(&env, &arena, vx_arena_printf(&arena, "PATH=%s", getenv("PATH")));
	vx_strlist_add(&env, &arena, vx_arena_printf(&arena, "HOME=%s", d->sandbox.home));
	for (struct vx_json_iter it = vx_json_iter(e); e && vx_json_next(&it);)
		vx_strlist_add(&env, &arena,
			vx_arena_printf(&arena, "%s=%s", it.key, vx_json_str(it.val)));
	d->env = vx_strlist_done(&env);
}

static void report(int fd, enum vx_box_kind kind, const struct vx_done *d)
{
	static const char *const names[] = {"?", "started", "exited", "refused", "lost", "armed"};
	struct vx_json *o = vx_json_object();
	struct vx_buf b = VX_BUF(1 << 16);

	vx_json_set(o, "kind", vx_json_new_str(names[kind]));
	vx_json_set(o, "end", vx_json_new_int(d->end));
	vx_json_set(o, "code", vx_json_new_int(d->code));
	vx_json_set(o, "signal", vx_json_new_int(d->signal));
	vx_json_set(o, "flags", vx_json_new_int(d->flags));
	vx_json_set(o, "cpu_ms", vx_json_new_double((double)d->cpu_ns / 1e6));
	vx_json_set(o, "setup_ms", vx_json_new_double((double)d->setup_ns / 1e6));
	vx_json_set(o, "peak_bytes", vx_json_new_int((int64_t)d->peak_bytes));
	vx_json_set(o, "text", vx_json_new_str(d->text));
	vx_json_write(o, false, &b);
	vx_buf_addc(&b, '\n');
	vx_write_full(fd, b.data, b.len);
	vx_buf_free(&b);
	vx_json_free(o);
}

static int wait_end(struct vx_box *box, struct vx_json *o, int results)
{
	enum vx_box_kind kind;
	struct vx_done d;
	uint64_t due = 0, sig = (uint64_t)vx_json_int(vx_json_get(o, "signal"));

	for (;;) {
		int r = vx_box_next(box, &kind, &d);
		if (r == 1 && kind == VX_BOX_STARTED && sig)
			due = vx_now_ns() +
			      (uint64_t)vx_json_int(vx_json_get(o, "after_ms")) * 1000000;
		if (r == 1 && kind != VX_BOX_STARTED)
			break;
		if (r == 1)
			continue;
		struct pollfd p = {.fd = vx_box_fd(box), .events = POLLIN};
		poll(&p, 1, due ? 10 : 1000);
		if (due && vx_now_ns() >= due) {
			vx_box_signal(box, (int)sig);
			due = 0;
		}
	}
	report(results, kind, &d);
	if (kind == VX_BOX_LOST)
		return 91;
	return d.end == VX_END_REFUSED || kind == VX_BOX_REFUSED ? 90
	       : d.end == VX_END_SPAWN                           ? 127
	       : d.end == VX_END_SIGNAL                          ? 128 + d.signal
								 : d.code;
}

static int run_one(struct vx_box *box, struct vx_json *o, int results)
{
	struct vx_task_desc d = {0};
	struct vx_err err = {0};
	bool arm = flag(o, "arm");
	int r;

	if (vx_json_has(o, "sweep"))
		return vx_box_sweep_records(str(o, "sweep", ""), NULL) == 0 ? 0 : 1;
	if (!arm)
		fill_desc(o, &d);
	r = arm ? vx_box_arm(box, false, &err) : vx_box_start(box, &d, -1, 1, 2, &err);
	if (r == 0)
		return wait_end(box, o, results);
	struct vx_done done = {.end = VX_END_REFUSED};
	snprintf(done.text, sizeof done.text, "%s%s%s%s", err.what, err.fix[0] ? " (" : "", err.fix,
		err.fix[0] ? ")" : "");
	report(results, arm ? VX_BOX_ARMED : VX_BOX_REFUSED, &done);
	return 90;
}

int main(int argc, char **argv)
{
	struct vx_buf text = VX_BUF(16 << 20);
	struct vx_json *spec;
	struct vx_err err = {0};
	char bwrap[4096], exe[4096], *slash;
	int results = 2, code = 0, c;

	if (argc > 1 && !strcmp(argv[1], "-boxhost"))
		return vx_boxhost_main(argc, argv);
	while ((c = getopt(argc, argv, "r:")) != -1)
		if (c == 'r' && (results = vx_open(AT_FDCWD, optarg, O_WRONLY | O_CREAT | O_APPEND,
					 0666)) < 0)
			return 2;
	if (optind >= argc || vx_read_file(AT_FDCWD, argv[optind], &text) < 0 ||
		vx_json_parse(text.data, text.len, VX_JSON_COMMENTS, argv[optind], &spec, &err) <
			0) {
		fprintf(stderr, "boxrun: no spec: %s\n", err.what);
		return 2;
	}
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	if (vx_readlink(AT_FDCWD, "/proc/self/exe", exe, sizeof exe) < 0 ||
		!(slash = strrchr(exe, '/')))
		return 2;
	const char *init = getenv("VX_INIT") ? getenv("VX_INIT")
					     : vx_arena_printf(&arena, "%.*s/vx-init",
						       (int)(slash - exe), exe);
	struct vx_box_opts opts = {
		.bwrap_path = vx_which("bwrap", getenv("PATH"), bwrap) == 0 ? bwrap : NULL,
		.init_fd = vx_open(AT_FDCWD, init, O_RDONLY, 0)};
	struct vx_box *box;
	vx_box_new(&opts, &box);
	bool many = vx_json_type(spec) == VX_JSON_ARRAY;
	for (size_t i = 0; i < (many ? vx_json_len(spec) : 1); i++)
		code = run_one(box, many ? vx_json_at(spec, i) : spec, results);
	vx_box_free(box);
	vx_close(opts.init_fd);
	vx_json_free(spec);
	vx_buf_free(&text);
	vx_arena_free(&arena);
	return code;
}
