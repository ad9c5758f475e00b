/* A fact of planning as a memory keeps it (facts.h has what they are), and the test whether it
 * still holds. */
#ifndef VX_PROOF_H
#define VX_PROOF_H

#include "vx/facts.h"

#include <stddef.h>

struct vx_fact {
	struct vx_seen_stat st;
	uint32_t kind, path_len, target_len, total, names, unused;
}; /* path, NUL, target, NUL, padded to eight: `total` bytes */

static inline const char *vx_fact_path(const struct vx_fact *f)
{
	return (const char *)(f + 1);
}

/* Is there a whole fact at `at`? Nothing of it is believed before. */
bool vx_fact_sane(const char *at, const char *end);
/* Stats it, and lists a directory that has moved where only names count. ret_now (may be NULL): the
 * stat that it has now, which may be another then. */
bool vx_fact_holds(const struct vx_fact *f, struct vx_seen_stat *ret_now);
void vx_fact_put(struct vx_buf *b, const struct vx_seen *seen);
/* A stat that no directory has: what only names count in is listed again. */
void vx_fact_forget_stat(struct vx_fact *f);
/* May what it is about have changed after it was looked at, without its stat saying so?
 * `started_ns`: wall time in front of all looks. */
bool vx_fact_young(const struct vx_seen *seen, uint64_t started_ns);

#endif
