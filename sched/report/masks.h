/* Which byte strings are hidden, and where the next one is. Inside sched/report only.
 *
 * A mask is one value, or one line of a value of several lines, of six bytes or more. Matching is
 * per stream and over chunk borders: what could be the beginning of a mask is held back. Masks that
 * overlap are hidden together. */
#ifndef VX_SCHED_REPORT_MASKS_H
#define VX_SCHED_REPORT_MASKS_H

#include "vx/tasklog.h"

#define MASK_MIN_BYTES 6
#define MASK_TEXT "***"

/* Does a mask begin at p[0]? Returns the length of the longest that is all there (0 none).
 * *ret_partial: a longer one may, the bytes end too early to tell. */
size_t masks_at(const struct vx_masks *m, const uint8_t *p, size_t n, bool *ret_partial);

/* The number of leading bytes of p that begin no mask. */
size_t masks_skip(const struct vx_masks *m, const uint8_t *p, size_t n);

bool masks_none(const struct vx_masks *m);

#endif
