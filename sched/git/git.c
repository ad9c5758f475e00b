/* The one function that starts git. See git.h. */
#include "git.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"
#include "vx/strs.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAX_ARGS 16

/* What may be asked of git. Each reads the index, refs, objects and configuration; none reads a
 * file of the worktree except ignore rules. */
static const char *const commands[] = {"cat-file", "check-ignore", "config", "ls-files", "ls-tree",
	"merge-base", "rev-parse", "version"};

/* Of git's own variables only these are passed on: they say what is to be read. */
static const char *const passed[] = {"GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_ATTR_NOSYSTEM",
	"GIT_ATTR_SOURCE", "GIT_CEILING_DIRECTORIES", "GIT_COMMON_DIR", "GIT_CONFIG_COUNT",
	"GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM", "GIT_CONFIG_PARAMETERS", "GIT_CONFIG_SYSTEM",
	"GIT_DIR", "GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_INDEX_FILE", "GIT_NAMESPACE",
	"GIT_NO_REPLACE_OBJECTS", "GIT_OBJECT_DIRECTORY", "GIT_REPLACE_REF_BASE",
	"GIT_SHALLOW_FILE", "GIT_WORK_TREE"};

/* Others that name a program for git to run, and those that `fixed` sets. */
static const char *const dropped[] = {
	"SSH_ASKPASS", "PAGER", "EDITOR", "VISUAL", "LC_ALL", "LANGUAGE"};

static const char *const fixed[] = {"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0",
	/* Lazy fetches. GIT_NO_LAZY_FETCH is unknown to git before 2.39.4; such a git starts `git
	 * fetch`, which inherits all of this and may then speak no protocol. The name is that of no
	 * remote helper, and a list that is not empty lets an empty name ("::url") be none of it.
	 */
	"GIT_NO_LAZY_FETCH=1", "GIT_ALLOW_PROTOCOL=vx-allows-none", "GIT_PROTOCOL_FROM_USER=0",
	"GIT_SSH_COMMAND=false", "GIT_PROXY_COMMAND=", "GIT_ASKPASS=", "GIT_TERMINAL_PROMPT=0",
	"GIT_PAGER=cat", "GIT_EDITOR=false", "GIT_SEQUENCE_EDITOR=false",
	/* trace2.*Target of the user's or the system's configuration may be a socket */
	"GIT_TRACE2=0", "GIT_TRACE2_EVENT=0", "GIT_TRACE2_PERF=0"};

/* Settings in front of every command; they win over every file and over GIT_CONFIG_*. */
static const char *const settings[] = {
	/* Empty, not "false": git before 2.36 took the value for the name of a program. */
	"core.fsmonitor=", "core.hooksPath=/dev/null", "protocol.allow=never",
	"safe.bareRepository=explicit",
	"credential.helper=", "fetch.bundleURI=", "submodule.recurse=false", "gc.auto=0",
	"maintenance.auto=false"};

static bool named(const char *const *names, size_t n, const char *variable)
{
	size_t len = strcspn(variable, "=");

	for (size_t i = 0; i < n; i++)
		if (strlen(names[i]) == len && memcmp(names[i], variable, len) == 0)
			return true;
	return false;
}

static bool passes(const char *variable)
{
	if (vx_starts_with(variable, "GIT_"))
		return named(passed, VX_ARRAY_LEN(passed), variable) ||
		       vx_starts_with(variable, "GIT_CONFIG_KEY_") ||
		       vx_starts_with(variable, "GIT_CONFIG_VALUE_");
	return !named(dropped, VX_ARRAY_LEN(dropped), variable);
}

int vx_git_find(const char *root, struct vx_arena *a, struct vx_git *ret, struct vx_err *err)
{
	char found[VX_MAX_PATH];
	struct vx_strlist env = {0};

	if (vx_which_own("git", root, found) < 0) {
		vx_err_set(err, -ENOENT,
			"git was not found on PATH (what lies in the workspace does not count)");
		vx_err_fix(err, "install git: vx takes files and history from it");
		return -ENOENT;
	}
	for (const char *const *e = vx_env_own(a, root); *e; e++)
		if (passes(*e))
			vx_strlist_add(&env, a, *e);
	for (size_t i = 0; i < VX_ARRAY_LEN(fixed); i++)
		vx_strlist_add(&env, a, fixed[i]);
	vx_strlist_add(&env, a, NULL);
	*ret = (struct vx_git){.path = vx_arena_strdup(a, found), .env = env.v, .cancel_fd = -1};
	return 0;
}

/* `in`: a descriptor for its stdin; -1 none. */
static int run(const struct vx_git *g, const char *cwd, const char *const *args, int in,
	struct vx_buf *out, struct vx_buf *errout, int *ret_status, struct vx_err *err)
{
	const char *argv[2 * (VX_ARRAY_LEN(settings) + 1) + MAX_ARGS + 3] = {"git", "--no-pager"};
	const char *command = args[0];
	uint32_t n = 2, first;
	int status = 0;

	vx_assert(named(commands, VX_ARRAY_LEN(commands), command));
	for (size_t i = 0; i < VX_ARRAY_LEN(settings); i++) {
		argv[n++] = "-c";
		argv[n++] = settings[i];
	}
	if (g->tells_case) {
		argv[n++] = "-c";
		argv[n++] = "core.ignoreCase=false";
	}
	for (first = n; *args; args++) {
		vx_assert(n - first < MAX_ARGS);
		argv[n++] = *args;
	}
	struct vx_spawn s = VX_SPAWN_INIT;
	s.path = g->path;
	s.argv = argv;
	s.envp = g->env;
	s.cwd = cwd;
	s.fds = &(struct vx_spawn_fd){in, 0};
	s.n_fds = in >= 0;
	int r = vx_spawn_capture(&s, out, errout, VX_GIT_TIMEOUT_MS, g->cancel_fd, &status);
	if (r < 0)
		return vx_err_set(
			err, r, "git %s could not be run in %s: %s", command, cwd, vx_strerror(r));
	*ret_status = WIFEXITED(status) ? WEXITSTATUS(status) : 128;
	return 0;
}

int vx_git_run(const struct vx_git *g, const char *cwd, const char *const *args, struct vx_buf *out,
	struct vx_buf *errout, int *ret_status, struct vx_err *err)
{
	return run(g, cwd, args, -1, out, errout, ret_status, err);
}

int vx_git_blobs(const struct vx_git *g, const char *cwd, const struct vx_buf *names,
	struct vx_buf *out, struct vx_err *err)
{
	static const char *const args[] = {"cat-file", "--batch", NULL};
	struct vx_buf errout = VX_BUF(64U << 10);
	VX_CLEANUP_FD int in = vx_memfd("vx-git-names");
	int status = 0, r = in < 0 ? in : vx_write_full(in, names->data, names->len);

	if (r == 0 && lseek(in, 0, SEEK_SET) < 0)
		r = -errno;
	if (r < 0)
		return vx_err_set(err, r, "git cat-file could not be asked: %s", vx_strerror(r));
	r = run(g, cwd, args, in, out, &errout, &status, err);
	if (r == 0 && status != 0)
		r = vx_err_set(err, -EIO, "git cat-file failed in %s: %.*s", cwd,
			(int)strcspn(vx_buf_str(&errout), "\n"), vx_buf_str(&errout));
	vx_buf_free(&errout);
	return r;
}
