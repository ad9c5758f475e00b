/* Immutable lists of strings, and small string helpers.
 *
 * A struct vx_strs borrows: the array and its strings live in an arena named by whoever made the
 * list. Strings are bytes without NUL; nothing here assumes UTF-8. Order is meaningful unless a
 * field's comment says otherwise. */
#ifndef VX_STRS_H
#define VX_STRS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_arena;

struct vx_strs {
	const char *const *v;
	uint32_t n;
};

/* A list under construction. Start from {0}; the array lives in the arena (it doubles; the old one
 * is left to the arena). */
struct vx_strlist {
	const char **v;
	uint32_t n, cap;
};

/* keeps the pointer, copies nothing */
void vx_strlist_add(struct vx_strlist *l, struct vx_arena *a, const char *s);
struct vx_strs vx_strlist_done(const struct vx_strlist *l);
void vx_strlist_sort_unique(struct vx_strlist *l); /* bytewise */

bool vx_strs_has(struct vx_strs s, const char *x);
bool vx_streq(const char *a, const char *b); /* NULL equals only NULL */
bool vx_starts_with(const char *s, const char *prefix);
bool vx_ends_with(const char *s, const char *suffix);
bool vx_has_control(const char *s);                /* a byte below blank, or DEL */
int vx_strcmp_qsort(const void *a, const void *b); /* for arrays of const char * */

/* Names of projects, tasks and tags: `*` is the only wildcard, and is any bytes, a slash too. */
bool vx_name_matches(const char *pattern, const char *name);

/* The candidate nearest to `s` by edit distance (transpositions count one), the first of equals, or
 * NULL when none is near enough to be what was meant: at most a third of its length, one for short
 * names, never all of it. Borrowed. */
const char *vx_nearest(const char *s, struct vx_strs candidates);

/* Decimal digits only, no sign, blank or suffix. -EINVAL for anything else, -ERANGE above max. */
int vx_parse_u64(const char *s, uint64_t max, uint64_t *ret);

/* "2T", "4G", "512M", "64K", "123": bytes, powers of 1024; nothing else, no lower case. -EINVAL,
 * -ERANGE. */
int vx_parse_bytes(const char *s, uint64_t *ret_bytes);

#endif
