/* How two globs relate, from their text alone: the vx dialect of vx/glob.h, paths already joined to
 * one base. Pure. */
#ifndef VX_GLOBREL_H
#define VX_GLOBREL_H

#include <stdbool.h>
#include <stdint.h>

/* Elementary steps taken so far, for whoever compares many (VX_MAX_GLOB_STEPS). */
uint64_t vx_globrel_steps(void);

/* Could some path match both? true when unsure. */
bool vx_globrel_meet(const char *x, const char *y);
/* Could `pattern` match the file `file`, whose name is to be taken as it stands? true when
 * unsure. */
bool vx_globrel_takes(const char *pattern, const char *file);
/* Does every path that matches `x` match `outer` too? false when unsure. */
bool vx_globrel_within(const char *x, const char *outer);

#endif
