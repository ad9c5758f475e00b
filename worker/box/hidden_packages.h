/* The line that a denied look-up below a withheld package earns. Without somebody who watches
 * look-ups one denial is known all the same: the program of the command itself that is not found,
 * though the host has it, in a withheld package. */
#ifndef VX_HIDDEN_PACKAGES_H
#define VX_HIDDEN_PACKAGES_H

#include "vx/sandbox.h"

struct vx_arena;

/* The first word of a `sh -c` command, or argv[0]: what is looked for before anything else. NULL
 * for a builtin, and for what is not a plain word. */
const char *withheld_program(struct vx_arena *a, struct vx_strs argv);
/* One line about `path` (canonical), NULL when it lies in no withheld package. `project` is the
 * task's directory (absolute). */
const char *withheld_line(struct vx_arena *a, const struct vx_withheld *v, uint32_t n,
	const char *project, const char *path);
/* Asks the file system: where the program would be found on the host, by the task's PATH and
 * directory. NULL nowhere. */
const char *withheld_find(
	struct vx_arena *a, const char *program, const char *path_var, const char *cwd);

#endif
