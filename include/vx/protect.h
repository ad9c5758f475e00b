/* Names that decide what a later run or a developer's shell does: what a program acts on by itself,
 * whoever wrote it, because the file is there. No sandboxed task changes one or makes one, but
 * where its configuration allows that by name (allow.protected). The table is in
 * shm/base/protect.c; docs/sandbox.md gives the criterion and the list.
 *
 * Names are compared as a file system that folds case would: ASCII letters without case, the two
 * other characters that fold to ASCII, and without the characters that such file systems ignore. */
#ifndef VX_PROTECT_H
#define VX_PROTECT_H

#include <stdbool.h>
#include <stddef.h>

enum vx_protect {
	VX_PROTECT_NO,
	VX_PROTECT_ANYWHERE, /* but below a node_modules: packages ship settings that nobody uses */
	VX_PROTECT_MANIFEST, /* where scripts run from it: in the root, in a member's directory */
	VX_PROTECT_GIT,      /* .git: one that is no directory decides where git looks */
	VX_PROTECT_IN_GIT,   /* in a .git, wherever that is */
	VX_PROTECT_GIT_CONFIG, /* the same, unless gitConfig permits it */
};

/* What `name` is in a directory of the name `parent`; neither needs a NUL. */
enum vx_protect vx_protect(const char *parent, size_t parent_len, const char *name, size_t len);
/* May a path with wildcards in its directories end like this? Then it names something of the
 * table. */
bool vx_protect_path(const char *path);
/* Does `name` read as `plain` (lower case, ASCII) on a file system that folds? */
bool vx_protect_same(const char *name, size_t len, const char *plain);

#endif
