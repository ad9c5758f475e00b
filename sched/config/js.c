#include "js.h"

#include "js_driver.h"
#include "js_memory.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/hash.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JS_TIMEOUT_MS = 120000, VERSION_TIMEOUT_MS = 20000 };

static const char *const names[] = {"vx.config.ts", "vx.config.mts", "vx.config.cts",
	"vx.config.js", "vx.config.mjs", "vx.config.cjs"};

const char *js_file_of(const struct vx_project *p, struct vx_arena *a)
{
	for (uint32_t i = 0; i < sizeof names / sizeof *names; i++)
		if (p->files & (VX_HAS_VX_CONFIG_TS << i))
			return strcmp(p->dir, ".") == 0
				       ? names[i]
				       : vx_arena_printf(a, "%s/%s", p->dir, names[i]);
	return NULL;
}

const char *js_workspace_file(const struct vx_workspace *ws)
{
	static const char *const of_workspace[] = {"vx.workspace.ts", "vx.workspace.mts",
		"vx.workspace.cts", "vx.workspace.js", "vx.workspace.mjs", "vx.workspace.cjs"};

	for (uint32_t i = 0; i < VX_ARRAY_LEN(of_workspace); i++)
		if (ws->root_files & ((uint32_t)VX_HAS_VX_WORKSPACE_TS << i))
			return of_workspace[i];
	return NULL;
}

static const char *const helpers[] = {"tsx", "jiti", "esbuild"};

struct runtime {
	char program[VX_MAX_PATH];
	const char *mode;
};

static bool node_version(const char *node, unsigned *major, unsigned *minor)
{
	const char *argv[] = {node, "--version", NULL};
	struct vx_buf out = VX_BUF(4096);
	struct vx_spawn s = VX_SPAWN_INIT;
	int status;

	s.path = node;
	s.argv = argv;
	s.keep = true; /* it may be a script of a version manager */
	bool ok = vx_spawn_capture(&s, &out, NULL, VERSION_TIMEOUT_MS, -1, &status) == 0 &&
		  status == 0 && sscanf(vx_buf_str(&out), "v%u.%u", major, minor) == 2;
	vx_buf_free(&out);
	return ok;
}

static bool has_package(const struct vx_workspace *ws, const char *name)
{
	char path[VX_MAX_PATH];

	return snprintf(path, sizeof path, "%s/node_modules/%s/package.json", ws->root, name) <
		       (int)sizeof path &&
	       access(path, R_OK) == 0;
}

static const char *print_of(const char *path, struct vx_arena *a)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return "none";
	return vx_arena_printf(a, "%s %llu %llu %lld.%09ld", path, (unsigned long long)st.st_ino,
		(unsigned long long)st.st_size, (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

/* The program that would be asked, what it is, without running it, and the variables by which it is
 * told what to do. */
static const char *identify(const struct vx_workspace *ws, struct vx_arena *a)
{
	static const char *const its_own[] = {"NODE_", "BUN_", "TSX_", "ESBUILD_", "JITI_"};
	char program[VX_MAX_PATH];
	struct vx_strlist l = {0};
	struct vx_sha256 c;
	struct vx_digest d;
	char *hex = vx_arena_alloc(a, VX_DIGEST_HEX);

	if (vx_which_own("bun", ws->root, program) < 0 &&
		vx_which_own("node", ws->root, program) < 0)
		return "none";
	vx_strlist_add(&l, a, print_of(program, a));
	for (uint32_t i = 0; i < VX_ARRAY_LEN(helpers); i++)
		vx_strlist_add(&l, a,
			print_of(vx_arena_printf(a, "%s/node_modules/%s/package.json", ws->root,
					 helpers[i]),
				a));
	for (char **e = environ; *e; e++)
		for (uint32_t i = 0; i < VX_ARRAY_LEN(its_own); i++)
			if (vx_starts_with(*e, its_own[i]))
				vx_strlist_add(&l, a, *e);
	vx_strlist_sort_unique(&l);
	vx_sha256_init(&c);
	for (uint32_t i = 0; i < l.n; i++)
		vx_sha256_add(&c, l.v[i], strlen(l.v[i]) + 1);
	vx_sha256_done(&c, &d);
	vx_hex(d.b, sizeof d.b, hex);
	return hex;
}

static bool any_typescript(struct vx_strs files)
{
	for (uint32_t i = 0; i < files.n; i++)
		if (vx_ends_with(files.v[i], "ts"))
			return true;
	return false;
}

/* The first that can: bun, a node that strips types, node with tsx, jiti or esbuild of the
 * workspace. Plain JavaScript is fine with any node. */
static int choose(const struct vx_workspace *ws, struct vx_strs files, struct runtime *ret,
	struct vx_err *err)
{
	unsigned major = 0, minor = 0;
	char theirs[VX_MAX_PATH];

	if (vx_which_own("bun", ws->root, ret->program) == 0) {
		ret->mode = "bun";
		return 0;
	}
	bool found = vx_which_own("node", ws->root, ret->program) == 0,
	     node = found && node_version(ret->program, &major, &minor);
	if (node && (major > 22 || (major == 22 && minor >= 6))) {
		ret->mode = "strip";
		return 0;
	}
	for (size_t i = 0; node && i < sizeof helpers / sizeof *helpers; i++)
		if (has_package(ws, helpers[i])) {
			ret->mode = helpers[i];
			return 0;
		}
	if (node && major >= 18 && !any_typescript(files)) {
		ret->mode = "none";
		return 0;
	}
	if (!found && (vx_which("bun", getenv("PATH"), theirs) == 0 ||
			      vx_which("node", getenv("PATH"), theirs) == 0)) {
		vx_err_set(err, -ENOENT,
			"%s cannot be evaluated: %s belongs to a package or to the workspace, and vx runs no such program to plan",
			files.v[0], theirs);
		return vx_err_fix(err, "have bun, or node 22.6 or later, from elsewhere on PATH");
	}
	if (node && any_typescript(files))
		vx_err_set(err, -ENOENT,
			"%s cannot be evaluated: node is %u.%u, and TypeScript needs more",
			files.v[0], major, minor);
	else if (node)
		vx_err_set(err, -ENOENT, "%s cannot be evaluated: node is %u.%u, and 18 is needed",
			files.v[0], major, minor);
	else if (found)
		vx_err_set(err, -ENOENT, "%s cannot be evaluated: %s --version gives no answer",
			files.v[0], ret->program);
	else
		vx_err_set(err, -ENOENT, "%s cannot be evaluated: neither bun nor node is on PATH",
			files.v[0]);
	return vx_err_fix(err,
		"install bun, or node 22.6 or later, or one of tsx, jiti, esbuild in the workspace beside node");
}

/* A memfd that holds the request. */
static int write_request(const struct vx_workspace *ws, struct vx_strs files, const char *mode)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_json *o = vx_json_object(), *list = vx_json_array();
	int fd = vx_memfd("vx-config-request");

	for (uint32_t i = 0; i < files.n; i++) {
		struct vx_arena a = {0};
		vx_json_add(list, vx_json_new_str(vx_path_join(&a, ws->root, files.v[i])));
		vx_arena_free(&a);
	}
	vx_json_set(o, "mode", vx_json_new_str(mode));
	vx_json_set(o, "root", vx_json_new_str(ws->root));
	vx_json_set(o, "files", list);
	vx_json_write(o, false, &b);
	vx_json_free(o);
	int r = fd < 0 ? fd : vx_write_full(fd, b.data, b.len);
	vx_buf_free(&b);
	if (r >= 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0) {
		vx_close(fd);
		return r;
	}
	return fd;
}

static int run_driver(const struct vx_workspace *ws, const struct runtime *rt, int request,
	int answer, struct vx_buf *errout, int *ret_status)
{
	const char *bun[] = {"bun", "-e", vx_js_driver, NULL};
	const char *node[] = {
		"node", "--no-warnings", "--input-type=module", "-e", vx_js_driver, NULL};
	const char *strip[] = {"node", "--no-warnings", "--experimental-strip-types",
		"--input-type=module", "-e", vx_js_driver, NULL};
	const char *tsx[] = {"node", "--no-warnings", "--import", "tsx", "--input-type=module",
		"-e", vx_js_driver, NULL};
	const struct vx_spawn_fd fds[] = {{request, 3}, {answer, 4}};
	struct vx_spawn s = VX_SPAWN_INIT;

	s.path = rt->program;
	s.argv = strcmp(rt->mode, "bun") == 0     ? bun
		 : strcmp(rt->mode, "strip") == 0 ? strip
		 : strcmp(rt->mode, "tsx") == 0   ? tsx
						  : node;
	s.cwd = ws->root;
	s.fds = fds;
	s.n_fds = 2;
	s.keep = true;
	return vx_spawn_capture(&s, NULL, errout, JS_TIMEOUT_MS, -1, ret_status);
}

static int read_answer(int fd, struct vx_json **ret, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	char chunk[16384];
	ssize_t n;

	if (lseek(fd, 0, SEEK_SET) < 0)
		return vx_err_set(err, -errno, "cannot read the evaluated configurations: %s",
			vx_strerror(errno));
	while ((n = vx_read(fd, chunk, sizeof chunk)) > 0)
		vx_buf_add(&b, chunk, (size_t)n);
	int r = b.overflow ? vx_err_set(err, -EFBIG,
				     "the evaluated configurations are larger than %u bytes",
				     VX_MAX_CONFIG_BYTES)
		: b.len == 0
			? vx_err_set(err, -EINVAL,
				  "a vx.config file ended the process that evaluates it, so there is no answer")
			: vx_json_parse(
				  vx_buf_str(&b), b.len, 0, "evaluated configurations", ret, err);
	vx_buf_free(&b);
	return r;
}

/* The last line that the runtime printed before it gave up. */
static const char *last_line(struct vx_buf *b, struct vx_arena *a)
{
	const char *s = vx_buf_str(b), *best = "no reason given";
	size_t best_n = strlen(best);

	while (*s) {
		size_t n = strcspn(s, "\n");
		if (n > strspn(s, " \t\r") && !vx_starts_with(s, "    at ") &&
			!vx_starts_with(s, "Node.js v") && !vx_starts_with(s, "Bun v")) {
			best = s;
			best_n = n;
		}
		s += n + (s[n] == '\n');
	}
	return vx_arena_strndup(a, best, best_n > 300 ? 300 : best_n);
}

static int evaluate(const struct vx_workspace *ws, struct vx_strs files, struct vx_arena *a,
	struct vx_json **ret, struct vx_err *err)
{
	struct vx_buf errout = VX_BUF(1 << 20);
	struct runtime rt;
	int status = 0, r = choose(ws, files, &rt, err);

	if (r < 0)
		return r;
	int request = write_request(ws, files, rt.mode), answer = vx_memfd("vx-config-answer");
	if (request < 0 || answer < 0)
		r = vx_err_set(err, request < 0 ? request : answer,
			"cannot evaluate configurations: %s",
			vx_strerror(request < 0 ? request : answer));
	if (r == 0) {
		r = run_driver(ws, &rt, request, answer, &errout, &status);
		if (r == -ETIMEDOUT)
			vx_err_set(err, r, "evaluating %s took longer than %d seconds",
				files.n == 1 ? files.v[0] : "the vx.config files",
				JS_TIMEOUT_MS / 1000);
		else if (r < 0)
			vx_err_set(err, r, "cannot run %s to evaluate %s: %s", rt.program,
				files.v[0], vx_strerror(r));
	}
	if (r == 0 && status != 0)
		r = vx_err_set(err, -EINVAL, "%s ended with %s %d while it evaluated %s: %s",
			rt.program, WIFSIGNALED(status) ? "signal" : "exit",
			WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status),
			files.n == 1 ? files.v[0] : "the vx.config files", last_line(&errout, a));
	if (r == 0)
		r = read_answer(answer, ret, err);
	vx_close(request);
	vx_close(answer);
	vx_buf_free(&errout);
	return r;
}

int js_evaluate(const struct vx_workspace *ws, struct vx_arena *a, struct js_results *ret,
	struct vx_err *err)
{
	struct vx_strlist l = {0};
	struct vx_json *json = NULL;

	*ret = (struct js_results){0};
	if (js_workspace_file(ws))
		vx_strlist_add(&l, a, js_workspace_file(ws));
	for (uint32_t i = 0; i < ws->n_projects; i++) {
		const char *file = js_file_of(&ws->projects[i], a);
		if (file)
			vx_strlist_add(&l, a, file);
	}
	if (l.n == 0)
		return 0;
	const char *runtime = identify(ws, a);
	if (!js_memory_get(ws, vx_strlist_done(&l), runtime, a, &json)) {
		uint64_t start_ns = vx_wall_ns();
		int r = evaluate(ws, vx_strlist_done(&l), a, &json, err);
		if (r < 0)
			return r;
		js_memory_put(ws, vx_strlist_done(&l), runtime, start_ns, json, a);
	}
	const struct vx_json *results = vx_json_get(json, "results");
	if (vx_json_type(results) != VX_JSON_ARRAY || vx_json_len(results) != l.n) {
		vx_json_free(json);
		return vx_err_set(err, -EINVAL, "the evaluation of %s gave no answer", l.v[0]);
	}
	ret->json = json;
	ret->files = vx_strlist_done(&l);
	return 0;
}

int js_take(struct js_results *r, const char *file, const struct vx_json **ret, struct vx_err *err)
{
	/* Taken in the order in which they were asked for: the next one is the one. */
	for (uint32_t k = 0; k < r->files.n; k++) {
		uint32_t i = (r->next + k) % r->files.n;
		if (strcmp(r->files.v[i], file) != 0)
			continue;
		r->next = i + 1;
		const struct vx_json *one = vx_json_at(vx_json_get(r->json, "results"), i);
		const char *e = vx_json_str(vx_json_get(one, "error"));
		if (e)
			return vx_err_set(err, -EINVAL, "%s: %s", file, e);
		*ret = vx_json_get(one, "value");
		return 0;
	}
	return vx_err_set(err, -EINVAL, "%s was not evaluated", file);
}

void js_free(struct js_results *r)
{
	vx_json_free(r->json);
	*r = (struct js_results){0};
}
