/* A task's captured output: both streams in the order they were written, bounded, masked.
 *
 * Bytes are appended as they come; the first VX_KEEP_HEAD_BYTES and the last VX_KEEP_TAIL_BYTES are
 * kept, and what was cut in between is named when it is shown. Values to be hidden (secrets) are
 * replaced by `***` before anything is kept, shown or stored, also when a value is split over
 * chunks, and each line of a value of several lines by itself; bytes that may be the beginning of
 * one are held back until they are known or vx_tasklog_end.
 *
 * Holding back is per stream, so bytes of one stream may pass held ones of the other.
 *
 * Stored form (deterministic, versioned, endian-fixed): what the store keeps and a hit replays. One
 * thread. */
#ifndef VX_TASKLOG_H
#define VX_TASKLOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct vx_buf;
struct vx_tasklog;
struct vx_masks;

struct vx_tasklog *vx_tasklog_new(const struct vx_masks *masks); /* masks (secret.h) may be NULL */
void vx_tasklog_free(struct vx_tasklog *l);
/* `shown` (may be NULL) gets the masked bytes that became final with this call, for streaming. */
void vx_tasklog_add(struct vx_tasklog *l, int stream, const void *p, size_t n,
	void (*shown)(void *arg, int stream, const void *p, size_t n), void *arg);
void vx_tasklog_end(struct vx_tasklog *l,
	void (*shown)(void *arg, int stream, const void *p, size_t n), void *arg);
void vx_tasklog_clear(struct vx_tasklog *l); /* between attempts */
bool vx_tasklog_empty(const struct vx_tasklog *l);
uint64_t vx_tasklog_cut_bytes(const struct vx_tasklog *l);

/* Chunks in order; a line in brackets, as of stream 1, stands where bytes were cut. Call
 * vx_tasklog_end first. */
void vx_tasklog_each(const struct vx_tasklog *l,
	void (*f)(void *arg, int stream, const void *p, size_t n), void *arg);
void vx_tasklog_store(const struct vx_tasklog *l, struct vx_buf *out);
/* Chunks of a stored form, validated first: -EBADMSG calls f for nothing. An empty log is stored as
 * no bytes. */
int vx_tasklog_replay(const void *p, size_t n,
	void (*f)(void *arg, int stream, const void *p, size_t n), void *arg);

#endif
