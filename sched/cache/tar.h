/* tar in the pax interchange format (POSIX.1-2017, pax), written and read.
 *
 * Members are regular files, symbolic links and directories; owner 0:0, no names of owners; modes
 * with the set-id and sticky bits; mtime to the nanosecond in a pax record where ustar cannot hold
 * it. The writer is deterministic. Names are bytes and are written as they are.
 *
 * The reader takes bytes in pieces of any size and calls back. It accepts what the writer writes
 * and what GNU tar and libarchive write in pax format for these three kinds; everything else is
 * -EBADMSG: other kinds, global headers, bad checksums, absolute paths, empty or ".." components,
 * components .git and .vx, anything after the end. */
#ifndef VX_CACHE_TAR_H
#define VX_CACHE_TAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VX_TAR_BLOCK 512
#define VX_TAR_MAX_PAX (64U << 10) /* records of one member */

struct vx_buf;

enum vx_tar_type { VX_TAR_FILE = '0', VX_TAR_LINK = '2', VX_TAR_DIR = '5' };

struct vx_tar_member {
	const char *path, *target; /* target: of a link */
	enum vx_tar_type type;
	uint32_t mode; /* 07777 */
	uint64_t size; /* of a file */
	int64_t mtime_ns;
};

/* the file's bytes follow, then vx_tar_padding(size) zeros */
void vx_tar_header(const struct vx_tar_member *m, struct vx_buf *out);
size_t vx_tar_padding(uint64_t size);
#define VX_TAR_END_BYTES 1024 /* two zero blocks */

struct vx_tar_reader;
struct vx_tar_events {
	/* strings live until the member's end */
	int (*member)(void *arg, const struct vx_tar_member *m);
	int (*data)(void *arg, const void *p, size_t n);
	int (*end)(void *arg); /* of a file */
};

struct vx_tar_reader *vx_tar_reader_new(const struct vx_tar_events *ev, void *arg);
int vx_tar_feed(struct vx_tar_reader *r, const void *p, size_t n);
bool vx_tar_complete(const struct vx_tar_reader *r); /* the end was seen */
void vx_tar_reader_free(struct vx_tar_reader *r);

/* May this path stand in an artifact? */
bool vx_tar_path_ok(const char *path);

#endif
