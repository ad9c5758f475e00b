/* Globs over directory paths, as package managers write workspace members; also used for `{dir}`
 * filters.
 *
 * Components are separated by '/'. `*` any run of bytes in one component, `?` one byte, `[a-z]`,
 * `[!a]` and `[^a]` one byte of a class, `**` as a whole component any number of components,
 * `{a,b}` alternatives (nested; expanded when compiled), `\` takes the next byte literally. `*`,
 * `?` and `**` do not match a component that starts with a dot unless `dots`; a pattern component
 * that starts with a dot does. A leading "./", doubled and trailing slashes are dropped. Everything
 * lives in the arena. */
#ifndef VX_WSGLOB_H
#define VX_WSGLOB_H

#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_arena;
struct vx_err;

enum { VX_WSGLOB_MAX_ALTERNATIVES = 4096, VX_WSGLOB_MAX_PARTS = 128 };

struct vx_wsglob {
	const char *const *parts; /* "**" is NULL */
	uint32_t n;
};

struct vx_wsglobs {
	struct vx_wsglob *v;
	uint32_t n;
};

/* Elementary steps of matching that were taken so far, for whoever bounds them
 * (VX_MAX_GLOB_STEPS). */
uint64_t vx_wsglob_steps(void);
void vx_wsglob_count(uint64_t n);

/* Braces expanded; appended to *out. -E2BIG past the limits. */
int vx_wsglob_add(
	struct vx_wsglobs *out, const char *pattern, struct vx_arena *a, struct vx_err *err);

bool vx_wsglob_part(const char *pattern, const char *name, bool dots); /* one component */
bool vx_wsglob_match(const struct vx_wsglob *g, const char *path,
	bool dots); /* a whole directory path; "." is the root */
bool vx_wsglobs_match(const struct vx_wsglobs *g, const char *path, bool dots); /* any of them */

/* A member's directory, or what would be one with a manifest: `add` matches, `sub` does not, and
 * nothing on the way is one that is never entered (node_modules, .git, .vx). */
bool vx_wsglob_member(const struct vx_wsglobs *add, const struct vx_wsglobs *sub, const char *dir);
/* The pattern that matches `dir` alone. */
const char *vx_wsglob_literal(const char *dir, struct vx_arena *a);

#endif
