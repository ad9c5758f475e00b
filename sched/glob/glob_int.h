/* Inside of a compiled glob set; shared by glob.c (compile, match), glob_reach.c (reach, overlap)
 * and glob_walk.c (the walk).
 *
 * Braces are expanded when a set is compiled, so an entry is a list of alternatives and an
 * alternative is a list of path components: a literal name, a pattern with `*` or `?` (or a class,
 * turbo only), or `**`. A literal entry ends in an implied `**`: it names a tree. */
#ifndef VX_GLOB_INT_H
#define VX_GLOB_INT_H

#include "vx/glob.h"

#include <stddef.h>

/* One unit of a pattern component: a byte, or one of these. */
enum { GU_ANY = 256, GU_STAR = 257, GU_CLASS = 258 }; /* GU_CLASS + k: class k of the set */

enum vx_gseg_kind { GS_LIT, GS_PAT, GS_DEEP };

struct vx_gseg {
	enum vx_gseg_kind kind;
	uint32_t n;
	const char *text;      /* GS_LIT */
	const uint16_t *units; /* GS_PAT */
};

struct vx_gclass {
	uint32_t bits[8];
};

struct vx_galt {
	const struct vx_gseg *segs;
	uint32_t n;
	uint32_t n_lit;   /* leading literal components ... */
	const char *lit;  /* ... joined by '/' ... */
	uint32_t lit_len; /* ... and their length */
	const char *tail; /* literal bytes that every matching path ends in; a quick no */
	uint32_t tail_len;
};

struct vx_gentry {
	const char *text, *prefix;
	const struct vx_galt *alts;
	uint32_t n_alts;
	bool literal;
};

struct vx_globset {
	enum vx_dialect dialect;
	struct vx_gentry *pos, *neg;
	uint32_t n_pos, n_neg;
	const struct vx_gclass *classes;
	uint32_t n_classes;
};

bool vx_gseg_match(const struct vx_globset *s, const struct vx_gseg *g, const char *p, size_t n);
bool vx_galt_match(
	const struct vx_globset *s, const struct vx_galt *a, const char *path, size_t len);

/* What a path looks like to an alternative once all components of `dir` have been read. `named`
 * counts components that must be named literally (node_modules): those are not matched by
 * wildcards. */
/* nothing below can match; something may; everything does */
enum vx_greach { GR_NO, GR_MAYBE, GR_ALL };
enum vx_greach vx_galt_reach(const struct vx_globset *s, const struct vx_galt *a, const char *dir,
	size_t len, bool name_modules);

#endif
