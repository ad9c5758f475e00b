/* Rows: what the index holds for an entry, and what is known of outputs on disk. Encodings are
 * little-endian and fixed (docs/cache.md); decoding validates all of it and copies nothing: strings
 * and logs of a decoded row point into the bytes it was decoded from. */
#ifndef VX_CACHE_ROW_H
#define VX_CACHE_ROW_H

#include "vx/store.h"

#include <sys/stat.h>

struct vx_buf;

enum vx_log_kind {
	VX_LOG_NONE,
	VX_LOG_PLAIN, /* in the row as it is */
	VX_LOG_ZSTD,  /* in the row, compressed */
	/* a file beside the artifacts, compressed, named by the SHA-256 of its bytes */
	VX_LOG_FILE,
};

#define VX_LOG_ROW_BYTES (32U << 10) /* a compressed log larger than this becomes a file */
#define VX_LOG_MAX_BYTES (64U << 20) /* a stored log larger than this is refused */

struct vx_row {
	struct vx_entry e;
	uint64_t used_ns; /* wall time of its last use, to VX_USED_GRAIN_NS */
	enum vx_log_kind log_kind;
	uint64_t log_bytes;          /* before compression */
	struct vx_digest log_digest; /* VX_LOG_FILE */
	uint64_t log_file_bytes;
	const void *log; /* VX_LOG_PLAIN, VX_LOG_ZSTD */
	size_t log_n;
	const char *made_in; /* the workspace it was made in; kept only when not portable */
	size_t made_in_n;
};

#define VX_USED_GRAIN_NS 3600000000000ULL

void vx_row_encode(const struct vx_row *r, struct vx_buf *out);
/* -EINVAL */
int vx_row_decode(const struct vx_digest *key, const void *p, size_t n, struct vx_row *ret);
/* Changes the time of last use within encoded bytes. */
void vx_row_touch(void *p, uint64_t used_ns);

/* A snapshot: directories and outputs as they were on disk when their contents were known to be the
 * entry's. Keyed by workspace and task id. */
struct vx_seen {
	const char *path; /* root-relative */
	uint32_t len;
	uint32_t mode; /* st_mode; 0: there was nothing */
	uint64_t size, ino;
	int64_t mtime_ns, ctime_ns;
};

struct vx_snap {
	struct vx_digest key, artifact;
	uint64_t taken_ns; /* the file system's time before the first content was read */
	bool fine;         /* time stamps distinguish any two changes: no racy window */
	uint32_t n_dirs, n_files;
	const uint8_t *at, *end; /* items, read one after another: directories, then outputs */
};

void vx_snap_begin(struct vx_buf *out, const struct vx_snap *s);
void vx_snap_add(struct vx_buf *out, const struct vx_seen *e);
int vx_snap_decode(const void *p, size_t n, struct vx_snap *ret); /* header; -EINVAL */
/* 1 an item, 0 no more, -EINVAL */
int vx_snap_next(struct vx_snap *s, struct vx_seen *ret);

void vx_seen_of(const struct stat *st, struct vx_seen *ret); /* everything but the path */
bool vx_seen_equal(const struct vx_seen *a, const struct vx_seen *b);
/* Could it have changed without a trace since the snapshot was taken? */
bool vx_seen_racy(const struct vx_snap *s, const struct vx_seen *e);

#endif
