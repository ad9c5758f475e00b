/* Arenas: memory that is freed all at once.
 *
 * Lifetime picks the arena: process, run or task. Allocation never fails (running out of memory
 * aborts with one line, since a runner that cannot allocate a few bytes cannot report either);
 * sizes are bounded by the callers' named limits. Memory is zeroed and aligned to 16. An arena
 * belongs to one thread. Blocks grow from 16 KiB to 4 MiB; large ones are mapped with huge-page
 * advice, since first touch is dear. */
#ifndef VX_ARENA_H
#define VX_ARENA_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

struct vx_arena_block;

struct vx_arena {
	/* newest block; NULL in a fresh arena: `struct vx_arena a = {0}` is a valid empty arena */
	struct vx_arena_block *head;
	size_t used_bytes; /* handed out in all, for reports and tests */
};

#define VX_NEVER_NULL __attribute__((malloc, returns_nonnull, warn_unused_result))

void *vx_arena_alloc(struct vx_arena *a, size_t bytes) __attribute__((malloc, returns_nonnull));
/* overflow-checked */
void *vx_arena_array(struct vx_arena *a, size_t count, size_t item_bytes)
	__attribute__((malloc, returns_nonnull));
/* For an array that grows: `v`, whose `n` items fill it, in twice the room (at first `first`); *cap
 * becomes what fits. The old one is left to the arena. */
void *vx_arena_grow(struct vx_arena *a, const void *v, uint32_t n, size_t item_bytes, uint32_t *cap,
	uint32_t first) __attribute__((returns_nonnull, warn_unused_result));
void *vx_arena_dup(struct vx_arena *a, const void *p, size_t bytes)
	__attribute__((returns_nonnull, warn_unused_result)); /* may hold pointers: not "malloc" */
char *vx_arena_strdup(struct vx_arena *a, const char *s) VX_NEVER_NULL;
/* copies n bytes and adds a NUL */
char *vx_arena_strndup(struct vx_arena *a, const char *s, size_t n) VX_NEVER_NULL;
char *vx_arena_printf(struct vx_arena *a, const char *fmt, ...)
	__attribute__((format(printf, 2, 3))) VX_NEVER_NULL;
void vx_arena_free(struct vx_arena *a); /* frees everything; the arena is empty and usable again */

/* malloc, calloc and realloc that abort with one line instead of returning NULL. */
void *vx_xmalloc(size_t bytes) VX_NEVER_NULL;
void *vx_xcalloc(size_t count, size_t bytes) VX_NEVER_NULL;
void *vx_xrealloc(void *p, size_t bytes) __attribute__((returns_nonnull, warn_unused_result));
char *vx_xstrdup(const char *s) VX_NEVER_NULL;

#endif
