/* Where the other programs are: vx-init beside us, bubblewrap and the shell on our own PATH (never a task's). */
#include "cli.h"

#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"
#include "vx/strs.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef VX_VERSION
#define VX_VERSION "0.1.0"
#endif
const char vx_version[] = VX_VERSION;

const char *vx_cli_init_path(void)
{
	static char path[VX_MAX_PATH];
	static const char *const places[] = {"vx-init", "../libexec/vx/vx-init"};
	char self[VX_MAX_PATH];
	if (vx_readlink(-1, "/proc/self/exe", self, sizeof self) < 0)
		return NULL;
	char *slash = strrchr(self, '/');
	if (!slash)
		return NULL;
	slash[1] = 0;
	for (size_t i = 0; i < 2; i++) {
		int n = snprintf(path, sizeof path, "%s%s", self, places[i]);
		if (n > 0 && (size_t)n < sizeof path && access(path, X_OK) == 0)
			return path;
	}
	return NULL;
}

const char *vx_cli_program(const char *name)
{
	static struct {
		char name[16], path[VX_MAX_PATH];
	} known[4];
	for (size_t i = 0; i < 4; i++) {
		if (!strcmp(known[i].name, name))
			return known[i].path[0] ? known[i].path : NULL;
		if (known[i].name[0])
			continue;
		const char *path = getenv("PATH");
		snprintf(known[i].name, sizeof known[i].name, "%s", name);
		if (vx_which(name, path ? path : "/usr/local/bin:/usr/bin:/bin", known[i].path) < 0)
			known[i].path[0] = 0;
		return known[i].path[0] ? known[i].path : NULL;
	}
	return NULL;
}

/* Whatever a package brings must not make the sandbox that confines it: npm and its kind put the packages' programs in front of PATH. */
static bool is_of_packages(const char *dir, const char *root)
{
	char real[VX_MAX_PATH], program[VX_MAX_PATH + 8];

	if (dir[0] != '/' || vx_ends_with(dir, "node_modules/.bin") || vx_ends_with(dir, "node_modules/.bin/"))
		return true;
	snprintf(program, sizeof program, "%s/bwrap", dir);
	return realpath(program, real) && root && vx_path_within(real, root);
}

const char *vx_cli_bwrap(const char *root)
{
	static char path[VX_MAX_PATH];
	const char *var = getenv("PATH");

	for (const char *p = var ? var : "/usr/local/bin:/usr/bin:/bin";; p++) {
		size_t n = strcspn(p, ":");
		char dir[VX_MAX_PATH];

		snprintf(dir, sizeof dir, "%.*s", (int)n, p);
		if (n < sizeof dir && !is_of_packages(dir, root) && vx_which("bwrap", dir, path) == 0)
			return path;
		p += n;
		if (!*p)
			return NULL;
	}
}
