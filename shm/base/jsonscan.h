/* The strict reader in front of json-c: private to shm/base.
 *
 * json-c's own strictness has holes (NaN, control characters in strings, integers cut to 64 bits,
 * NUL in member names) and its messages name no line. So the text is checked here, by the grammar
 * of RFC 8259, and handed on as text that json-c cannot misread. */
#ifndef VX_BASE_JSONSCAN_H
#define VX_BASE_JSONSCAN_H

#include <stddef.h>

struct vx_buf;
struct vx_err;

/* Checks `text` and appends it to `clean` without byte order mark, comments and trailing commas; an
 * integer beyond 64 bits gets an exponent, so that it becomes a double that keeps its digits. 0,
 * -EINVAL (err says where), -E2BIG (nesting), -EFBIG (clean's maximum). */
int vx_jsonscan(const char *text, size_t n, int flags, const char *where, struct vx_buf *clean,
	struct vx_err *err);

#endif
