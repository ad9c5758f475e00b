/* Where programs are: on a PATH (vx_which), and on vx's own, less what the workspace and packages
 * bring (vx_which_own, vx_env_own). */
#include "vx/arena.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int is_program(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return errno == EACCES ? -EACCES : -ENOENT;
	if (!S_ISREG(st.st_mode))
		return -ENOENT;
	return faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0 ? -EACCES : 0;
}

/* dir/name below the current directory where `dir` is relative; PATH's empty entries mean the
 * current directory. */
static int candidate(const char *dir, size_t n, const char *name, char *ret)
{
	char cwd[VX_MAX_PATH] = "";

	if ((n == 0 || dir[0] != '/') && !getcwd(cwd, sizeof cwd))
		return -ENOENT;
	int len = snprintf(
		ret, VX_MAX_PATH, "%s%s%.*s/%s", cwd, *cwd && n ? "/" : "", (int)n, dir, name);
	return len < 0 || (size_t)len >= VX_MAX_PATH ? -ENAMETOOLONG : 0;
}

int vx_which(const char *name, const char *path_var, char *ret)
{
	char path[VX_MAX_PATH];

	if (!*name || strlen(name) >= sizeof path)
		return -ENOENT;
	if (strchr(name, '/')) {
		if (is_program(name) < 0)
			return -ENOENT;
		strcpy(ret, name);
		return 0;
	}
	for (const char *p = path_var ? path_var : "/usr/bin:/bin";; p++) {
		size_t n = strcspn(p, ":");

		if (candidate(p, n, name, path) == 0 && is_program(path) == 0) {
			strcpy(ret, path);
			return 0;
		}
		p += n;
		if (!*p)
			return -ENOENT;
	}
}

/* The entries of vx's own PATH one after the other: `p` is NULL at first, and when there is none
 * left. */
static const char *next_entry(const char *p, size_t *ret_n)
{
	if (!p) {
		p = getenv("PATH");
		if (!p || !*p)
			p = "/usr/local/bin:/usr/bin:/bin";
	} else if (*(p += *ret_n) == '\0') {
		return NULL;
	} else {
		p++;
	}
	*ret_n = strcspn(p, ":");
	return p;
}

/* Does what `path` leads to lie in the workspace? "/" as its root would hold every program there
 * is. */
static bool of_workspace(const char *path, const char *root)
{
	char real[VX_MAX_PATH];

	return root && root[1] && realpath(path, real) && vx_path_within(real, root);
}

static bool is_own_dir(const char *dir, const char *root)
{
	char real[VX_MAX_PATH];

	return dir[0] == '/' && !vx_ends_with(dir, "node_modules/.bin") && realpath(dir, real) &&
	       !vx_ends_with(real, "/node_modules/.bin") && !of_workspace(real, root);
}

int vx_which_own(const char *name, const char *root, char *ret)
{
	char dir[VX_MAX_PATH], program[VX_MAX_PATH];
	size_t n = 0;

	if (!*name || strchr(name, '/'))
		return -ENOENT;
	for (const char *p = next_entry(NULL, &n); p; p = next_entry(p, &n)) {
		if (p[0] != '/' || n >= sizeof dir || candidate(p, n, name, program) < 0 ||
			is_program(program) < 0)
			continue;
		snprintf(dir, sizeof dir, "%.*s", (int)n, p);
		if (is_own_dir(dir, root) && !of_workspace(program, root)) {
			strcpy(ret, program);
			return 0;
		}
	}
	return -ENOENT;
}

const char *const *vx_env_own(struct vx_arena *a, const char *root)
{
	struct vx_strlist env = {0};
	const char *path = "PATH=";
	size_t n = 0;

	for (const char *p = next_entry(NULL, &n); p; p = next_entry(p, &n)) {
		const char *dir = vx_arena_strndup(a, p, n);

		if (n < VX_MAX_PATH && is_own_dir(dir, root))
			path = vx_arena_printf(a, "%s%s%s", path, path[5] ? ":" : "", dir);
	}
	for (char **e = environ; *e; e++)
		if (!vx_starts_with(*e, "PATH="))
			vx_strlist_add(&env, a, *e);
	vx_strlist_add(&env, a, path);
	vx_strlist_add(&env, a, NULL);
	return env.v;
}
