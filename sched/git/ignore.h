/* Ignore rules and attributes of git: parsed lists that form chains, from a directory's own upward.
 * Rules: gitignore(5), gitattributes(5).
 *
 * A chain is immutable; any thread may match. Paths are relative to the repository, NUL-terminated.
 * Case is never folded (a repository with core.ignoreCase goes to git itself). */
#ifndef VX_GIT_IGNORE_H
#define VX_GIT_IGNORE_H

#include "vx/arena.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_rule {
	const char *text; /* without the marks that became flags */
	uint32_t len;
	uint32_t plain; /* bytes in front of the first special one */
	uint8_t flags;
};

struct vx_rules {
	const struct vx_rules *up; /* what is asked when nothing here decides */
	const char *base;          /* directory that the rules are relative to, "" the repository */
	uint32_t base_len;
	uint32_t n;
	struct vx_rule *v;
};

/* Parses an ignore file found in `base`. Returns `up` itself when there is no rule in it. */
const struct vx_rules *vx_ignore_parse(const char *text, size_t n, const char *base,
	const struct vx_rules *up, struct vx_arena *a);
/* 1 ignored, 0 told not to be, -1 nothing decides. `base_at` is where the last component of the
 * path begins. What lies in an ignored directory is ignored: the caller walks from the top. */
int vx_ignore_match(
	const struct vx_rules *chain, const char *path, size_t len, size_t base_at, bool is_dir);

/* Keeps of an attributes file the lines that may make the bytes on disk differ from the blob: text,
 * crlf, eol, ident, filter, working-tree-encoding set to anything. A line that does not is not
 * kept, so a later "-text" does not take an earlier rule back: a file too many is hashed. */
const struct vx_rules *vx_attr_parse(const char *text, size_t n, const char *base,
	const struct vx_rules *up, struct vx_arena *a);
bool vx_attr_match(const struct vx_rules *chain, const char *path, size_t len, size_t base_at);

/* Elementary steps of matching that this thread has taken since vx_ignore_begin, and how many may
 * be: VX_MAX_IGNORE_STEPS and VX_IGNORE_STEPS_PER_FILE for each file that was asked about. A match
 * that alone needs far more than any that is meant is given up, and counts as more than that limit.
 */
struct vx_ignore_budget {
	uint64_t since, allowed;
};
void vx_ignore_begin(struct vx_ignore_budget *b);
bool vx_ignore_spent(struct vx_ignore_budget *b, uint32_t more_files);

/* git's wildmatch: with `pathname` a `*` stops at '/', and `**` between slashes does not. */
bool vx_wildmatch(const char *pattern, const char *text, bool pathname);

#endif
