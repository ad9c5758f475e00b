/* Starting git: the only place of vx that does.
 *
 *   struct vx_git g;
 *   r = vx_git_find(root, &arena, &g, err);                    the program and its environment
 *   r = vx_git_run(&g, cwd, args, &out, &errout, &status, err) args: {"ls-files", "-z", NULL}
 *   r = vx_git_blobs(&g, cwd, &names, &out, err)               bytes of blobs, by name
 *
 * git reads the configuration of the repository that it is started in, and that repository may be
 * a stranger's, or hold what a task wrote. So no git of ours can run another program or open a
 * connection, whatever it reads:
 *
 *   - only commands that run no filter, textconv, external diff, signature check or trailer: those
 *     of the table in git.c. Anything else is an assertion. Missing among them is each command
 *     that may compare a file of the worktree with the index (diff, diff-files, diff-index,
 *     status, ls-files -m): git runs the clean filter of a file whose stat proves nothing.
 *   - no protocol is allowed and no object is fetched lazily: not from a promisor remote, not by a
 *     remote helper, not from a path. git fails where an object is missing.
 *   - no hooks, fsmonitor, pager, editor, credential helper or maintenance; no trace2 target.
 *   - a git directory is used only where a `.git` leads to it (safe.bareRepository).
 *   - of GIT_* in our environment only the variables that say which repository, index and
 *     configuration are meant are passed on.
 *
 * What the user's own configuration says about listing (core.excludesFile) holds as ever. git takes
 * no lock and writes nothing. */
#ifndef VX_GIT_H
#define VX_GIT_H

#include <stdbool.h>

struct vx_arena;
struct vx_buf;
struct vx_err;

struct vx_git {
	const char *path; /* of the program, absolute; never one that lies in the workspace */
	const char *const *env;
	/* the disk tells names apart that differ in case only: the caller sets it. A clone that
	 * came from another disk may say otherwise (core.ignoreCase), and git would hide a file
	 * beside one of the other case. */
	bool tells_case;
	/* readable: git is killed, -ECANCELED; -1 none. The caller sets it. */
	int cancel_fd;
};

/* `root`: the workspace's canonical path, NULL none. -ENOENT: not on PATH. `ret` lives in `a`, and
 * any thread may use it. */
int vx_git_find(const char *root, struct vx_arena *a, struct vx_git *ret, struct vx_err *err);
/* Runs git in `cwd` to its end. `out` and `errout` (each may be NULL) get what it prints, up to
 * their maxima. `*ret_status` is its exit status, 128 where a signal ended it. -errno: it could not
 * be run, took longer than VX_GIT_TIMEOUT_MS, or printed too much; err is set. */
int vx_git_run(const struct vx_git *g, const char *cwd, const char *const *args, struct vx_buf *out,
	struct vx_buf *errout, int *ret_status, struct vx_err *err);
/* `git cat-file --batch`: `names` holds an object name a line. `out` gets for each, in order,
 * "ID TYPE SIZE\n", its bytes and a newline, or "NAME missing\n". */
int vx_git_blobs(const struct vx_git *g, const char *cwd, const struct vx_buf *names,
	struct vx_buf *out, struct vx_err *err);

#endif
