/* Upkeep's inside: a census of what the index refers to. Shared by upkeep.c (stats, verify) and
 * prune.c. */
#ifndef VX_CACHE_UPKEEP_H
#define VX_CACHE_UPKEEP_H

#include "store_int.h"

#include "vx/arena.h"
#include "vx/map.h"

struct vx_err;

struct vx_census_file {
	const char *path;      /* below a/, where it is unless it has a place */
	struct vx_place place; /* segment 0: none */
	struct vx_digest digest;
	uint64_t bytes;
	uint32_t refs;
};

struct vx_census_entry {
	struct vx_digest key;
	uint64_t used_ns;
	uint32_t artifact, log, n_outputs; /* indexes of files, VX_MAP_NONE none */
	bool ok, portable, odd_key, goes;
};

/* A place that no entry needs. */
struct vx_census_place {
	struct vx_digest artifact;
	struct vx_place place;
};

struct vx_census {
	struct vx_arena a;
	struct vx_census_entry *v;
	uint32_t n, cap;
	struct vx_census_file *files;
	uint32_t n_files, cap_files;
	struct vx_map by_path;
	struct vx_census_place *spare;
	uint32_t n_spare, cap_spare;
	uint64_t output_bytes, log_bytes_in_rows, bad_rows;
};

int vx_census_entries(struct vx_tx *t, struct vx_census *c);
void vx_census_free(struct vx_census *c);
int vx_store_each_file(const struct vx_store *s,
	void (*f)(void *arg, const char *path, const struct stat *st), void *arg);
/* What nothing refers to: files, places, gaps. */
struct vx_orphans {
	const struct vx_census *c;
	uint64_t n, bytes;
};
void vx_store_orphans(struct vx_store *s, struct vx_orphans *o);
int vx_store_open_err(struct vx_store *s, struct vx_err *err);

#endif
