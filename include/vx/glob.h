/* Globs: compiled once, matched many times.
 *
 * A set is the list as written: plain entries select, `!` entries subtract wherever they stand.
 * Wildcards: `*` (not '/'), `**` (whole components), `?` (one character), `{a,b}` (nests; braces
 * without a comma of their own are literal); brackets are literal; a backslash makes the next byte
 * literal. Wildcards match leading dots. An entry without wildcards, or one that ends in '/', names
 * a whole directory tree too. Paths are bytes, relative to the set's base directory, without
 * leading "./". The turbo dialect has classes `[a-z]`, `foo**` for `foo*` and what lies below,
 * negations that take whole trees, and lexical ".."; a ".." that leaves the base is -EINVAL in
 * both.
 *
 * Sets are immutable once compiled: any thread may match. Errors: -E2BIG more than VX_MAX_GLOB_ARMS
 * alternatives or VX_MAX_GLOB_BYTES of them, -ENAMETOOLONG, -EINVAL.
 *
 * A match takes time with the product of both lengths at most. What bounds many of them (a
 * repository may have long patterns and long names) is a count of steps, by thread: who matches a
 * list against many paths begins a round, and stops with -E2BIG when it is spent. */
#ifndef VX_GLOB_H
#define VX_GLOB_H

#include "vx/plan.h"

#include <stdbool.h>
#include <stdint.h>

#define VX_MAX_GLOB_ARMS 1024U /* alternatives that one entry's braces may expand to */

struct vx_arena;
struct vx_err;
struct vx_globset;

/* The steps that this thread has taken so far, and whether those since `since` are more than
 * VX_MAX_GLOB_STEPS. */
uint64_t vx_glob_steps(void);
bool vx_glob_spent(uint64_t since);

int vx_globset_compile(struct vx_strs patterns, enum vx_dialect dialect, struct vx_arena *a,
	struct vx_globset **ret, struct vx_err *err);
/* a file's (or link's, or empty directory's) path */
bool vx_globset_match(const struct vx_globset *s, const char *path, size_t len);
/* could anything below `dir` match? false prunes a walk */
bool vx_globset_may_reach(const struct vx_globset *s, const char *dir, size_t len);
/* May a walk go into `dir`? As may_reach, and node_modules only as vx_globset_walk treats it. */
bool vx_globset_may_enter(const struct vx_globset *s, const char *dir, size_t len);
bool vx_globset_empty(const struct vx_globset *s);     /* no selecting entry */
uint32_t vx_globset_count(const struct vx_globset *s); /* selecting entries, in order */
const char *vx_globset_pattern(const struct vx_globset *s, uint32_t i);
/* entry i selects it and nothing subtracts it */
bool vx_globset_match_one(const struct vx_globset *s, uint32_t i, const char *path, size_t len);
/* some `!` entry matches it */
bool vx_globset_negates(const struct vx_globset *s, const char *path, size_t len);
/* selecting entry i has no wildcard */
bool vx_globset_literal(const struct vx_globset *s, uint32_t i);
/* The literal directory prefix of selecting entry i ("" when it starts with a wildcard; a literal
 * entry whole). */
const char *vx_globset_prefix(const struct vx_globset *s, uint32_t i);
/* For a walk that starts at the prefixes: whether entry i is reached from another one's, and
 * whether it lies in .git or .vx, which no walk enters. */
bool vx_globset_prefix_covered(const struct vx_globset *s, uint32_t i);
bool vx_globset_prefix_own(const struct vx_globset *s, uint32_t i);
/* Could some path match both (negations ignored: they never add reach)? Bases are root-relative
 * directories. When unsure: true. */
bool vx_globset_overlap(const struct vx_globset *x, const char *base_x, const struct vx_globset *y,
	const char *base_y);

/* Walks the file system below base_fd for what matches: files, symlinks (not followed) and empty
 * directories. Never enters .git or .vx, and node_modules only where a pattern names it (turbo: or
 * has a literal directory in front of its first wildcard). Starts at the literal prefixes, so what
 * cannot match is not listed. Calls back with the path relative to base_fd; a callback's non-zero
 * return ends the walk and is returned. Unreadable directory: -errno. Order: bytewise by path. */
struct vx_glob_hit {
	const char *path;
	size_t len;
	enum { VX_GLOB_FILE, VX_GLOB_LINK, VX_GLOB_EMPTY_DIR, VX_GLOB_OTHER } type;
};
int vx_globset_walk(const struct vx_globset *s, int base_fd,
	int (*found)(void *arg, const struct vx_glob_hit *h), void *arg);
/* The same again and again: a directory whose stat is what it was when it was last read, and was
 * old enough then to prove it, is not read another time. The memory is of one set and one base,
 * and is used by one thread at a time. */
struct vx_glob_memory;
struct vx_glob_memory *vx_glob_memory_new(void);
void vx_glob_memory_free(struct vx_glob_memory *m);
int vx_globset_walk_again(const struct vx_globset *s, int base_fd, struct vx_glob_memory *m,
	int (*found)(void *arg, const struct vx_glob_hit *h), void *arg);

#endif
