/* The store's inside, for sched/cache and sched/lane. */
#ifndef VX_CACHE_STORE_INT_H
#define VX_CACHE_STORE_INT_H

#include "index.h"
#include "row.h"
#include "segment.h"

#include "vx/buf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/stat.h>

struct vx_store {
	struct vx_index *ix;   /* NULL: nothing is read or saved */
	char *dir, *workspace; /* <cache>/v1; the root whose snapshots are meant */
	uint8_t ws_id[16];     /* digest of the root: part of the keys of snapshots and history */
	int dir_fd, a_fd, tmps_fd; /* <cache>/v1, and a and tmp below it; -1 */
	bool read, write, fsync;
	char why[512], note[512]; /* "" none */
	uint8_t mask[32];
	pthread_mutex_t lock; /* of the three below and of tmp */
	/* entries that were used and whose recorded time of use is older than the grain */
	struct vx_digest *stale;
	uint32_t n_stale, cap_stale;
	int tmp_fd; /* our directory in tmp, locked; -1 until the first save of something large */
	char tmp_name[32];
	/* The segment that we append to; those that were full before stay locked too. Its own
	 * lock. */
	pthread_mutex_t seg_lock;
	struct vx_fds {
		int *v;
		uint32_t n, cap;
	} segs;
	atomic_uint_fast64_t seg_id; /* of the last of `segs` */
	uint64_t seg_end;            /* where the next artifact goes */
	/* a commit did not find it where it was: the next save begins another */
	atomic_bool seg_lost;
	struct {
		uint64_t segment, end;
	} noted; /* in the index, by this store. Used in commits only, and those take turns */
};

#define VX_ARTIFACT_PATH 80
#define VX_SUFFIX_TAR ".tar.zst"
#define VX_SUFFIX_LOG ".log.zst"

/* "ab/abcd....tar.zst", relative to <cache>/v1/a. */
void vx_artifact_path(const struct vx_digest *d, const char *suffix, char ret[VX_ARTIFACT_PATH]);

/* The index key of something that belongs to this workspace and is named by a task id. Returns its
 * length, at most VX_INDEX_KEY_BYTES. */
size_t vx_store_id_key(const struct vx_store *s, const char *id, uint8_t ret[VX_INDEX_KEY_BYTES]);

/* The name of our directory of temporaries: hexadecimal digits, random. It is locked once it is
 * made. Those of dead processes are removed by vx_store_sweep_tmp, and no other name is. */
#define VX_TMP_HEX 16
bool vx_is_hex(const char *s, size_t n); /* do n lower-case digits begin here? */
int vx_store_sweep_tmp(int tmps_fd, uint32_t *ret_removed);

/* The directory of a/ that a file lies in ("ab/abcd..."), entered through no link; *ret_name is the
 * file's name there. */
int vx_artifact_dir(const struct vx_store *s, const char *path, const char **ret_name);
int vx_artifact_unlink(const struct vx_store *s, const char *path); /* -errno */

/* Rows of a group, committed in one transaction. */
struct vx_commit {
	struct vx_digest key;
	const void *row; /* encoded entry; NULL with row_n 0: the entry is removed */
	size_t row_n;
	const char *id;   /* with snap: the task's id */
	const void *snap; /* encoded snapshot; NULL none */
	size_t snap_n;
	bool entry; /* false: only the snapshot is meant */
	/* files that must be there (paths below a/), since a prune may have come between; NULL
	 * none */
	const char *need[2];
	struct vx_digest artifact;
	struct vx_place place; /* of the artifact, in a segment */
	/* it was there already, and must still be somewhere; else it is new */
	bool placed;
	int res; /* 0, or -ENOENT when one of `need` or the place had gone */
};
int vx_store_commit(struct vx_store *s, struct vx_commit *v, uint32_t n);

/* An entry whose artifact was found damaged (seen: as it was then) or missing (NULL): its row goes,
 * those of others with the same artifact go with it, and then the file. Of one in a segment its
 * place goes with the rows. What was saved anew meanwhile stays. -errno. */
int vx_store_drop(struct vx_store *s, const struct vx_entry *e, const struct stat *seen);

bool vx_store_usable_row(const struct vx_store *s, const struct vx_row *r);

#endif
