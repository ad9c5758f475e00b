#include "vx/buf.h"

#include "vx/arena.h"
#include "vx/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for n more bytes and the NUL. */
static bool grow(struct vx_buf *b, size_t n)
{
	if (b->overflow || n > b->max - b->len) {
		b->overflow = true;
		return false;
	}

	size_t need = b->len + n;
	if (b->data && need < b->cap)
		return true;

	size_t cap = b->cap ? b->cap : 64;
	while (cap <= need) {
		if (cap > SIZE_MAX / 2) {
			b->overflow = true;
			return false;
		}
		cap *= 2;
	}
	if (cap - 1 > b->max && need <= b->max && b->max < SIZE_MAX)
		cap = b->max + 1;
	b->data = vx_xrealloc(b->data, cap);
	b->cap = cap;
	b->data[b->len] = '\0';
	return true;
}

void vx_buf_add(struct vx_buf *b, const void *p, size_t n)
{
	if (!n || !grow(b, n))
		return;
	memcpy(b->data + b->len, p, n);
	b->len += n;
	b->data[b->len] = '\0';
}

void vx_buf_addc(struct vx_buf *b, char c)
{
	vx_buf_add(b, &c, 1);
}

void vx_buf_adds(struct vx_buf *b, const char *s)
{
	vx_buf_add(b, s, strlen(s));
}

void vx_buf_printf(struct vx_buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vx_buf_vprintf(b, fmt, ap);
	va_end(ap);
}

void vx_buf_vprintf(struct vx_buf *b, const char *fmt, va_list ap)
{
	char small[256];
	va_list again;

	va_copy(again, ap);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	vx_assert(n >= 0);
	if ((size_t)n < sizeof small) {
		vx_buf_add(b, small, (size_t)n);
	} else if (grow(b, (size_t)n)) {
		vsnprintf(b->data + b->len, (size_t)n + 1, fmt, again);
		b->len += (size_t)n;
	}
	va_end(again);
}

void vx_buf_u32le(struct vx_buf *b, uint32_t v)
{
	uint8_t p[4];

	for (unsigned i = 0; i < sizeof p; i++)
		p[i] = (uint8_t)(v >> (8 * i));
	vx_buf_add(b, p, sizeof p);
}

void vx_buf_u64le(struct vx_buf *b, uint64_t v)
{
	uint8_t p[8];

	for (unsigned i = 0; i < sizeof p; i++)
		p[i] = (uint8_t)(v >> (8 * i));
	vx_buf_add(b, p, sizeof p);
}

void *vx_buf_reserve(struct vx_buf *b, size_t n)
{
	return grow(b, n) ? b->data + b->len : NULL;
}

void vx_buf_commit(struct vx_buf *b, size_t n)
{
	if (!n)
		return;
	vx_assert(b->data && n < b->cap - b->len);
	b->len += n;
	b->data[b->len] = '\0';
}

const char *vx_buf_str(const struct vx_buf *b)
{
	return b->data ? b->data : "";
}

void vx_buf_clear(struct vx_buf *b)
{
	b->len = 0;
	b->overflow = false;
	if (b->data)
		b->data[0] = '\0';
}

void vx_buf_drop(struct vx_buf *b, size_t n)
{
	vx_assert(n <= b->len);
	if (!n)
		return;
	b->len -= n;
	memmove(b->data, b->data + n, b->len + 1);
}

void vx_buf_free(struct vx_buf *b)
{
	free(b->data);
	*b = VX_BUF(b->max);
}
