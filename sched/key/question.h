/* What a memory was made for: by which build, and for which question. Both are digests that a
 * memory carries in its header; with another one it is none. */
#ifndef VX_QUESTION_H
#define VX_QUESTION_H

#include "vx/hash.h"
#include "vx/strs.h"

#include <stdbool.h>

/* Only the same binary reads its own memories. `layout` is whatever of its format is not told by
 * the binary's identity. */
bool vx_question_build(const uint32_t *layout, size_t n, struct vx_digest *ret);
/* What the caller asks, the user, the root, and the variables that tools of this kind obey, without
 * those that change only what is reported (VX_STATS). */
void vx_question_of(const char *root, struct vx_strs asked, struct vx_digest *ret);

/* Fast, against accidents; what an enemy could write is kept out by the facts. */
uint64_t vx_question_sum(const char *p, size_t n);

#endif
