/* Compression (RFC 8878), by libzstd. Only zstd.c includes zstd.h of the library. Contexts are
 * reused; each belongs to one thread. */
#ifndef VX_CACHE_ZSTD_H
#define VX_CACHE_ZSTD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_sha256;
struct vx_zip;
struct vx_unzip;

#define VX_ZIP_LEVEL 1
#define VX_ZIP_HASTY_LEVEL (-40) /* no entropy coding, forty bytes a step */
/* above, short repeats far apart may be worth what a sample does not show */
#define VX_ZIP_HASTY_BYTES (64U << 10)
/* from here on compression runs beside its caller, on a thread of its own */
#define VX_ZIP_THREADED_BYTES (8ULL << 20)
#define VX_UNZIP_MAX_WINDOW_LOG 27 /* a frame that needs more memory is refused */

struct vx_zip *vx_zip_new(void);
void vx_zip_free(struct vx_zip *z);
size_t vx_zip_bound(size_t n);
/* One frame at once; of few bytes, those that a sample shows to be as good as random are looked
 * through in haste, and only for long repeats. 0 or -EIO. */
int vx_zip_all(struct vx_zip *z, const void *p, size_t n, void *dst, size_t cap, size_t *ret);
/* One frame of `total` bytes in pieces. The same bytes give the same frame however they are cut.
 * `sink` gets compressed bytes; its error is returned, and then the frame is over: begin another.
 *   begin, (feed | room, filled)*, feed with `end` or stop
 * sha, unless NULL: gets every compressed byte, before the sink does; not the caller's until the
 * frame is over, be it that stop gave it up half way. room: where the next bytes may be put, *ret_n
 * at most (never 0), so that they need not be copied; filled: so many were. */
int vx_zip_begin(struct vx_zip *z, uint64_t total, struct vx_sha256 *sha);
void *vx_zip_room(struct vx_zip *z, size_t *ret_n);
int vx_zip_filled(
	struct vx_zip *z, size_t n, int (*sink)(void *arg, const void *p, size_t n), void *arg);
int vx_zip_feed(struct vx_zip *z, const void *p, size_t n, bool end,
	int (*sink)(void *arg, const void *p, size_t n), void *arg);
void vx_zip_stop(struct vx_zip *z);

struct vx_unzip *vx_unzip_new(void);
void vx_unzip_free(struct vx_unzip *z);
/* -EBADMSG: not a whole, valid frame, or more than `cap` bytes. */
int vx_unzip_all(struct vx_unzip *z, const void *p, size_t n, void *dst, size_t cap, size_t *ret);
void vx_unzip_begin(struct vx_unzip *z);
/* *ret_done once the frame has ended; bytes after its end are -EBADMSG. */
int vx_unzip_feed(struct vx_unzip *z, const void *p, size_t n, bool *ret_done,
	int (*sink)(void *arg, const void *p, size_t n), void *arg);

#endif
