/* Growable byte buffers with a maximum.
 *
 * `struct vx_buf b = VX_BUF(max)` is an empty buffer that refuses to hold more than `max` bytes.
 * Appending past it sets `b.overflow`, appends nothing, and every later append is refused too: a
 * caller may append freely and test once at the end. The bytes are always followed by a NUL that
 * does not count, so b.data is a C string when it holds no NUL. Freed by vx_buf_free. */
#ifndef VX_BUF_H
#define VX_BUF_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_buf {
	char *data; /* NULL while nothing was appended */
	size_t len, cap, max;
	bool overflow;
};

#define VX_BUF(max_bytes) ((struct vx_buf){NULL, 0, 0, (max_bytes), false})

void vx_buf_add(struct vx_buf *b, const void *p, size_t n);
void vx_buf_addc(struct vx_buf *b, char c);
void vx_buf_adds(struct vx_buf *b, const char *s);
void vx_buf_printf(struct vx_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void vx_buf_vprintf(struct vx_buf *b, const char *fmt, va_list ap);
void vx_buf_u32le(struct vx_buf *b, uint32_t v);
void vx_buf_u64le(struct vx_buf *b, uint64_t v);

/* Room for n more bytes, returned for writing in place; vx_buf_commit(b, k) then counts the first
 * k. NULL on overflow. */
void *vx_buf_reserve(struct vx_buf *b, size_t n);
void vx_buf_commit(struct vx_buf *b, size_t n);

const char *vx_buf_str(const struct vx_buf *b); /* "" when empty, never NULL */
void vx_buf_clear(struct vx_buf *b);            /* keeps the memory */
void vx_buf_drop(struct vx_buf *b, size_t n);   /* removes the first n bytes */
void vx_buf_free(struct vx_buf *b);

#endif
