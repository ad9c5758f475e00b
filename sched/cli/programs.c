/* Where the other programs are: vx-init beside us, bubblewrap and the shell on our own PATH (never
 * a task's, see vx_which_own). */
#include "cli.h"

#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/spawn.h"

#include <stdio.h>
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

const char *vx_cli_program(const char *name, const char *root)
{
	static struct {
		char name[16], path[VX_MAX_PATH];
	} known[4];
	for (size_t i = 0; i < 4; i++) {
		if (!known[i].name[0]) {
			snprintf(known[i].name, sizeof known[i].name, "%s", name);
			if (vx_which_own(name, root, known[i].path) < 0)
				known[i].path[0] = 0;
		}
		if (!strcmp(known[i].name, name))
			return known[i].path[0] ? known[i].path : NULL;
	}
	return NULL;
}
