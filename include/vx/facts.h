/* What planning looked at: every file read, directory listed and absence seen, so that a later run
 * can prove that nothing of it changed.
 *
 * All file access of sched/workspace and sched/config goes through vx_seen_read, vx_seen_list,
 * vx_seen_names, vx_seen_exists and vx_seen_is_dir. Where a recorder is in use (vx_facts_use), each
 * call leaves one fact in it: path, kind and the stat that the file had before and after it was
 * read. A fact whose two stats differ makes the record `unstable`: the plan is right for this run
 * but no snapshot may be built on it.
 *
 * One recorder at a time per process, used by the planning thread only; NULL turns recording off.
 * Facts and their paths live in the arena given to vx_facts_init. Paths are absolute. A path may
 * occur more than once with equal content. */
#ifndef VX_FACTS_H
#define VX_FACTS_H

#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_arena;
struct vx_buf;
struct stat;

enum vx_seen_kind {
	VX_SEEN_ABSENT, /* ENOENT or ENOTDIR; stat is zero */
	VX_SEEN_FILE,   /* read whole; links followed */
	VX_SEEN_DIR,    /* listed whole; links followed */
	/* a symlink whose target mattered: stat of the link itself, `target` what it said */
	VX_SEEN_LINK,
	/* a directory in which it mattered which of a few names it holds: `names`. It may change in
	 * any other way */
	VX_SEEN_NAMES,
};

struct vx_seen_stat {
	uint64_t dev, ino, size;
	int64_t mtime_s, ctime_s;
	uint32_t mtime_ns, ctime_ns, mode, unused; /* 0, so that two can be compared as bytes */
};

struct vx_seen {
	const char *path;
	const char *target; /* of a link; NULL otherwise */
	enum vx_seen_kind kind;
	uint32_t names;
	struct vx_seen_stat st;
};

struct vx_facts {
	struct vx_arena *arena;
	struct vx_seen *v;
	uint32_t n, cap;
	bool unstable;
};

void vx_facts_init(struct vx_facts *f, struct vx_arena *a);
void vx_facts_use(struct vx_facts *f);
void vx_seen_stat_of(const struct stat *st, struct vx_seen_stat *ret);

/* Names of environment variables that planning read belong to the record too; the caller keeps that
 * list (config evaluation, TURBO_SCM_BASE). */

/* A directory that paths are relative to: an open descriptor and its absolute path. */
struct vx_base_dir {
	int fd;
	const char *path;
};

/* Appends the file to b. -ENOENT is recorded as an absence. -EFBIG when b is full, -EISDIR ... as
 * vx_read_file. */
int vx_seen_read(const struct vx_base_dir *base, const char *rel, struct vx_buf *b);

struct vx_dirent {
	const char *name; /* borrowed until the callback returns */
	size_t len;
	unsigned char type; /* DT_REG, DT_DIR, DT_LNK, DT_UNKNOWN ... */
};
/* Calls `each` for every entry but "." and ".."; a non-zero return ends the listing and is
 * returned. -ENOENT is recorded as an absence. */
int vx_seen_list(const struct vx_base_dir *base, const char *rel,
	int (*each)(void *arg, const struct vx_dirent *e), void *arg);

/* Bits of names: 0 for one that does not matter. */
typedef uint32_t vx_name_bit(const char *name, size_t len);
/* Which of the names that have a bit does the directory hold? -errno as vx_seen_list. */
int vx_seen_names(const struct vx_base_dir *base, const char *rel, vx_name_bit *bit, uint32_t *ret);
/* The same without a record. ret_st (may be NULL): the stat that the directory had all the while;
 * -EAGAIN when it changed meanwhile. */
int vx_names_in(
	int dir_fd, const char *rel, vx_name_bit *bit, struct vx_seen_stat *ret_st, uint32_t *ret);

/* Does it exist (links followed)? Either answer is recorded. -errno for what is neither. */
int vx_seen_exists(const struct vx_base_dir *base, const char *rel, bool *ret);

/* Is it, links followed, a directory? A symlink is recorded with its target. ret_dev_ino (may be
 * NULL) takes the identity of the directory. */
int vx_seen_is_dir(
	const struct vx_base_dir *base, const char *rel, bool *ret, uint64_t ret_dev_ino[2]);

#endif
