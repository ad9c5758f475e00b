#include "vx/arena.h"

#include "vx/assert.h"

#include "vx/assert.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
	BLOCK_MIN = 16 << 10,
	BLOCK_MAX = 4 << 20,
	ALIGN = 16,
	MAP_FROM = 256 << 10,
	HUGE_PAGE = 2 << 20
};

struct vx_arena_block {
	struct vx_arena_block *next;
	size_t size, used; /* both count the header */
	bool mapped;
	_Alignas(ALIGN) unsigned char data[];
};

static void out_of_memory(size_t bytes) __attribute__((noreturn, cold));
static void out_of_memory(size_t bytes)
{
	char text[96];
	int n = snprintf(text, sizeof text, "vx: out of memory (%zu bytes wanted)\n", bytes);
	ssize_t w = write(STDERR_FILENO, text, (size_t)n);

	(void)w;
	abort();
}

static size_t round_up(size_t n, size_t to)
{
	return (n + to - 1) / to * to;
}

/* `size` counts the header. Zeroed: calloc's and fresh maps' memory is, and nothing is handed out
 * twice. */
static struct vx_arena_block *block_new(size_t size)
{
	struct vx_arena_block *b;
	bool mapped = size >= MAP_FROM;

	if (mapped) {
		size = round_up(size, size >= HUGE_PAGE ? HUGE_PAGE : 4096);
		b = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b == MAP_FAILED)
			out_of_memory(size);
		if (size >= HUGE_PAGE)
			/* advice: its failure changes nothing but speed */
			madvise(b, size, MADV_HUGEPAGE);
	} else {
		b = calloc(1, size);
		if (!b)
			out_of_memory(size);
	}
	b->size = size;
	b->used = sizeof *b;
	b->mapped = mapped;
	return b;
}

/* A request larger than a quarter of the next block gets a block of its own behind the head, so the
 * head's rest stays in use. */
static void *alloc_apart(struct vx_arena *a, size_t bytes)
{
	struct vx_arena_block *b = block_new(sizeof *b + bytes);

	b->used = b->size;
	if (a->head) {
		b->next = a->head->next;
		a->head->next = b;
	} else {
		a->head = b;
	}
	return b->data;
}

void *vx_arena_alloc(struct vx_arena *a, size_t bytes)
{
	if (bytes > SIZE_MAX / 4)
		out_of_memory(bytes);

	size_t need = round_up(bytes ? bytes : 1, ALIGN);
	struct vx_arena_block *b = a->head;

	a->used_bytes += need;
	if (!b || b->size - b->used < need) {
		size_t size = BLOCK_MIN;

		if (b)
			size = b->size * 2 > BLOCK_MAX ? BLOCK_MAX : b->size * 2;
		if (need > size / 4)
			return alloc_apart(a, need);
		b = block_new(size);
		b->next = a->head;
		a->head = b;
	}

	void *p = (unsigned char *)b + b->used;
	b->used += need;
	return p;
}

void *vx_arena_array(struct vx_arena *a, size_t count, size_t item_bytes)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, item_bytes, &bytes))
		out_of_memory(SIZE_MAX);
	return vx_arena_alloc(a, bytes);
}

void *vx_arena_grow(struct vx_arena *a, const void *v, uint32_t n, size_t item_bytes, uint32_t *cap,
	uint32_t first)
{
	vx_assert(*cap <= UINT32_MAX / 2);
	*cap = *cap ? *cap * 2 : first;
	void *r = vx_arena_array(a, *cap, item_bytes);

	if (n)
		memcpy(r, v, n * item_bytes);
	return r;
}

void *vx_arena_dup(struct vx_arena *a, const void *p, size_t bytes)
{
	void *r = vx_arena_alloc(a, bytes);

	if (bytes)
		memcpy(r, p, bytes);
	return r;
}

char *vx_arena_strdup(struct vx_arena *a, const char *s)
{
	return vx_arena_dup(a, s, strlen(s) + 1);
}

char *vx_arena_strndup(struct vx_arena *a, const char *s, size_t n)
{
	char *r = vx_arena_alloc(a, n + 1);

	if (n)
		memcpy(r, s, n);
	return r;
}

char *vx_arena_printf(struct vx_arena *a, const char *fmt, ...)
{
	char small[512];
	va_list ap;

	va_start(ap, fmt);
	int n = vsnprintf(small, sizeof small, fmt, ap);
	va_end(ap);
	vx_assert(n >= 0);
	if ((size_t)n < sizeof small)
		return vx_arena_strndup(a, small, (size_t)n);

	char *r = vx_arena_alloc(a, (size_t)n + 1);
	va_start(ap, fmt);
	vsnprintf(r, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return r;
}

void vx_arena_free(struct vx_arena *a)
{
	for (struct vx_arena_block *b = a->head, *next; b; b = next) {
		next = b->next;
		if (b->mapped)
			munmap(b, b->size);
		else
			free(b);
	}
	*a = (struct vx_arena){0};
}

void *vx_xmalloc(size_t bytes)
{
	void *p = malloc(bytes ? bytes : 1);

	if (!p)
		out_of_memory(bytes);
	return p;
}

void *vx_xcalloc(size_t count, size_t bytes)
{
	void *p = calloc(count ? count : 1, bytes ? bytes : 1);

	if (!p)
		out_of_memory(bytes);
	return p;
}

void *vx_xrealloc(void *p, size_t bytes)
{
	p = realloc(p, bytes ? bytes : 1);
	if (!p)
		out_of_memory(bytes);
	return p;
}

char *vx_xstrdup(const char *s)
{
	size_t n = strlen(s) + 1;

	return memcpy(vx_xmalloc(n), s, n);
}
