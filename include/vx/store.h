/* The store: what every task's result was.
 *
 * <cache>/v1/index/   LMDB: entries, places in segments, snapshots of outputs on disk, run history,
 *                     small memories of other modules
 * <cache>/v1/a/XX/    artifacts, named by the SHA-256 of their bytes: tar (pax), zstd
 * <cache>/v1/s/       segments: many small artifacts in one file, found by rows of the index
 * <cache>/v1/tmp/     what is being written; anything here not locked by a living process is litter
 *
 * Data before index: an artifact is written, (synced,) renamed unless it is in a segment, and only
 * then does its row commit. A crash leaves orphans, never a row that lies: a row whose artifact is
 * missing or damaged is a miss. Readers never block; there is one committer (the lane's) that
 * groups. Several processes and checkouts may use one store at once. A store of another version is
 * left alone. A store on a network file system is refused, naming --cache-dir. An unwritable store
 * is not an error: it opens read-only or not at all, `vx_store_why` says so in one line, and
 * nothing is saved.
 *
 * Open after the last fork of the process (LMDB). Thread rules: probe and reads from any thread,
 * each in its own read transaction; writes go through the lane's committer (lane.h) except history,
 * which the loop writes at the end of a run through vx_store_history_put. */
#ifndef VX_STORE_H
#define VX_STORE_H

#include "vx/hash.h"
#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_arena;
struct vx_err;
struct vx_json;
struct vx_store;

struct vx_store_opts {
	const char *dir;       /* canonical cache directory (made when absent) */
	const char *workspace; /* canonical root: whose on-disk snapshots are meant */
	bool read, write;      /* --no-cache, --cache=local:r */
	/* first size of the index's map; 0: the default (it grows by itself) */
	uint64_t map_bytes;
};

/* Where the store is: flag, VX_CACHE_DIR, settings, default. Result canonical, in the arena. */
int vx_store_dir(const char *flag, const char *setting, bool shared, const char *root,
	struct vx_arena *a, char **ret, struct vx_err *err);

/* 0 with *ret set; *ret may be a store that saves nothing (see vx_store_why). Errors only for what
 * the user must decide (network file system). */
int vx_store_open(const struct vx_store_opts *o, struct vx_store **ret, struct vx_err *err);
void vx_store_close(struct vx_store *s);
bool vx_store_writable(const struct vx_store *s);
/* NULL, or the one line that says why nothing is saved */
const char *vx_store_why(const struct vx_store *s);
/* 32 bytes, made once per store; for showing secrets as HMACs */
const uint8_t *vx_store_mask_key(const struct vx_store *s);

bool vx_store_empty(struct vx_store *s); /* no entries: nothing that is asked for will be found */

struct vx_entry {
	struct vx_digest key;
	struct vx_digest artifact; /* zero when there is none */
	uint64_t artifact_bytes;   /* 0: no output files, no artifact */
	/* of one that was probed: where its artifact lies; segment 0: in a file of its own */
	uint64_t segment, offset;
	uint32_t n_outputs;
	uint64_t output_bytes;
	uint64_t duration_ns, cpu_ns, peak_bytes, saved_wall_ns;
	/* false: an output holds the workspace's absolute path (the path it was made in is checked
	 * on a hit) */
	bool portable;
	bool peak_is_tree;
	bool silent; /* of one that was read: it printed nothing */
};

const char *vx_store_note(
	/* NULL, or one line to say once (a damaged index was put aside); ask again at the end of
	 * the run */
	const struct vx_store *s);

/* One batched read: found[i] and ret[i] for keys[i]. An entry counts as found only when its
 * artifact is there (stat, of it or its segment) with its size, and it is portable to this
 * workspace. Returns the number found or -errno. */
int vx_store_probe(struct vx_store *s, const struct vx_digest *keys, uint32_t n, bool *found,
	struct vx_entry *ret);

/* History: what a task (by id) took when it last ran here. */
struct vx_history {
	uint64_t duration_ns, cpu_ns, peak_bytes;
	struct vx_digest last_key;
};
/* zeroed where unknown */
int vx_store_history_get(
	struct vx_store *s, const char *const *ids, uint32_t n, struct vx_history *ret);
int vx_store_history_put(
	struct vx_store *s, const char *const *ids, uint32_t n, const struct vx_history *h);

/* Small named blobs for other modules (file identities, listings of directories): `space` is a
 * short fixed name. */
int vx_store_blob_get(
	/* -ENOENT */
	struct vx_store *s, const char *space, const void *key, size_t key_n, struct vx_arena *a,
	void **ret, size_t *ret_n);
int vx_store_blob_put(struct vx_store *s, const char *space, const void *key, size_t key_n,
	const void *val, size_t n);

struct vx_blob {
	const void *key, *val;
	size_t key_n, n;
};
/* one transaction */
int vx_store_blob_put_many(
	struct vx_store *s, const char *space, const struct vx_blob *v, uint32_t n);

/* Upkeep; each prints nothing and fills a JSON value for the command line to show. */
int vx_store_stats(struct vx_store *s, struct vx_json **ret, struct vx_err *err);
int vx_store_verify(
	struct vx_store *s, struct vx_json **ret, uint32_t *ret_problems, struct vx_err *err);
struct vx_prune_opts {
	uint64_t older_than_ns; /* 0: no age limit */
	uint64_t max_bytes;     /* 0: no size limit */
	bool dry_run;
};
int vx_store_prune(struct vx_store *s, const struct vx_prune_opts *o, struct vx_json **ret,
	struct vx_err *err);

/* cacheRetention, at the end of a run that saved something: prunes by the settings as written
 * ("30d", "10G"; NULL each: no limit). Errors name the setting. */
int vx_store_retain(
	struct vx_store *s, const char *older_than, const char *max_size, struct vx_err *err);

/* "30d": a number and s, m, h, d or w. -EINVAL, -ERANGE. */
int vx_parse_age(const char *s, uint64_t *ret_ns);

/* The state of a store, without opening it: its index's last commit and the directories that its
 * artifacts lie in. Equal stamps: every row is what it was, and no artifact has come or gone.
 * -ENOENT where it cannot be said. `dir` as for vx_store_open. */
struct vx_store_stamp {
	/* index: inode, birth in ns, commit; artifacts: digest of the directories; device;
	 * unused */
	uint64_t v[6];
};
int vx_store_stamp(const char *dir, struct vx_store_stamp *ret);

/* What the store knows of outputs on disk, for tasks that were all found up to date: calls `each`
 * for every item of their snapshots (mode 0: nothing is to be there). 1 when each entry is still
 * there and each snapshot is of that entry and beyond doubt, in one read transaction whose commit
 * is that of *ret_stamp; 0 when not, or `each` returned false. */
struct vx_store_known {
	const char *id;
	const struct vx_entry *entry;
	bool outputs;  /* it declares some */
	bool additive; /* directories may change, by leave of the configuration */
};
struct vx_store_item {
	const char *path;
	uint32_t mode;
	uint64_t size, ino, mtime_ns, ctime_ns;
};
int vx_store_outputs(struct vx_store *s, const struct vx_store_known *v, uint32_t n,
	bool (*each)(void *arg, const struct vx_store_item *i), void *arg,
	struct vx_store_stamp *ret_stamp);

/* The lock of a workspace: <root>/.vx/lock, held while a run executes; released by death. Waits
 * while another run holds it, after calling `waiting` once with who holds it ("vx run (pid 4711)");
 * cancel_fd readable ends the wait with -ECANCELED. Makes .vx and .vx/.gitignore. Where .vx cannot
 * be written at all (EROFS, EACCES) nothing needs a turn: 0 with *ret_fd -1. Closing the descriptor
 * releases it. */
int vx_workspace_lock(const char *root, int cancel_fd,
	void (*waiting)(void *arg, const char *holder), void *arg, int *ret_fd, struct vx_err *err);

#endif
