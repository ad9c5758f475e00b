/* The memory of a run that had nothing to do: what its reader (unchanged.c), its maker
 * (unchanged_make.c) and the keyer's part (unchanged_keyer.c) share.
 *
 * Layout of the file: head | directories | files | facts (proof.h) | text. Directories are sorted
 * by path, files stand in the order of their directories; text is paths, names and variables, each
 * with its NUL. */
#ifndef VX_UNCHANGED_INT_H
#define VX_UNCHANGED_INT_H

#include "proof.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/hash.h"
#include "vx/map.h"
#include "vx/unchanged.h"

#define UNCHANGED_MAGIC 0x31676e6863555856ULL
#define UNCHANGED_LAYOUT 4U

struct kept_head {
	uint64_t magic, sum; /* of all that follows the head */
	struct vx_digest build, asked, env;
	uint64_t bytes, made_ns, dev, saved_ns, store[6];
	uint64_t facts_at, text_at; /* from the beginning of the file */
	uint32_t n_dirs, n_files, n_facts, n_env, n_tasks, n_projects;
	uint32_t env_at, store_dir_at, root_at; /* in text */
	uint32_t printed_at, printed_n;
	uint32_t whole_env, broad;
};

struct kept_dir {
	uint64_t ino, mtime_ns, ctime_ns;
	uint32_t path_at, first, n, unused; /* its files */
};

struct kept_file {
	uint64_t ino, size, mtime_ns, ctime_ns;
	uint32_t name_at, unused;
};

struct item {
	const char *path;
	uint32_t len, dir; /* dir: index of the directory it is in; of a directory its own */
	struct vx_unchanged_stat st;
};

struct vx_unchanged {
	struct vx_arena a;
	const char *root;
	bool off;
	struct vx_digest build, asked;
	struct vx_digest bound; /* `asked`, by the secret that was there when it was opened */
	uint64_t started_ns;    /* wall time in front of the run */
	/* found */
	const char *map;
	uint64_t map_bytes;
	struct vx_unchanged_answer answer;
	/* making */
	bool broken; /* something is too young, or of a kind that is not kept */
	int root_fd;
	uint64_t dev;
	struct item *dirs, *files;
	uint32_t n_dirs, cap_dirs, n_files, cap_files;
	struct vx_map dir_of; /* path -> index in dirs */
	struct vx_strlist absent;
	struct vx_buf facts;
	uint32_t n_facts;
	struct vx_strlist env;
	bool whole_env;
	struct vx_digest env_digest;
};

/* Sees to it that the directory is a fact: looks at it now if it is not one yet, and at those above
 * it. */
uint32_t vx_unchanged_dir(struct vx_unchanged *u, const char *path, size_t len);
/* A path of the root as it is now, which must be older than the run; it may be absent or
 * anything. */
void vx_unchanged_look(struct vx_unchanged *u, const char *path);
/* An absolute path, links followed, anywhere: as it is now, which must be older than the run. */
void vx_unchanged_outside(struct vx_unchanged *u, const char *path);
void vx_unchanged_fact(struct vx_unchanged *u, const struct vx_seen *seen);
const struct item *vx_unchanged_known_dir(
	const struct vx_unchanged *u, const char *path, size_t len);

#endif
