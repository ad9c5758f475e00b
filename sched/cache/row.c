/* Encodings of rows: see row.h. */
#include "row.h"

#include "vx/buf.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define ROW_VERSION 1
#define SNAP_VERSION 1
/* clocks of kernels without fine stamps tick at most this coarsely */
#define RACY_FINE_NS 40000000LL
#define RACY_COARSE_NS 2100000000LL /* file systems that keep whole seconds, or two */

enum { F_PORTABLE = 1, F_PEAK_IS_TREE = 2 };

struct disk_row {
	uint64_t used_ns; /* first, so that vx_row_touch finds it */
	uint8_t version, flags, log_kind, zero;
	uint32_t n_outputs;
	uint8_t artifact[32], log_digest[32];
	uint64_t artifact_bytes, output_bytes, duration_ns, cpu_ns, peak_bytes, saved_wall_ns;
	uint64_t log_bytes, log_file_bytes;
	uint32_t log_n, made_in_n;
};
_Static_assert(sizeof(struct disk_row) == 152, "row layout");

void vx_row_encode(const struct vx_row *r, struct vx_buf *out)
{
	struct disk_row d = {
		.used_ns = htole64(r->used_ns),
		.version = ROW_VERSION,
		.flags = (uint8_t)((r->e.portable ? F_PORTABLE : 0) |
				   (r->e.peak_is_tree ? F_PEAK_IS_TREE : 0)),
		.log_kind = (uint8_t)r->log_kind,
		.n_outputs = htole32(r->e.n_outputs),
		.artifact_bytes = htole64(r->e.artifact_bytes),
		.output_bytes = htole64(r->e.output_bytes),
		.duration_ns = htole64(r->e.duration_ns),
		.cpu_ns = htole64(r->e.cpu_ns),
		.peak_bytes = htole64(r->e.peak_bytes),
		.saved_wall_ns = htole64(r->e.saved_wall_ns),
		.log_bytes = htole64(r->log_bytes),
		.log_file_bytes = htole64(r->log_file_bytes),
		.log_n = htole32((uint32_t)r->log_n),
		.made_in_n = htole32((uint32_t)r->made_in_n),
	};
	memcpy(d.artifact, r->e.artifact.b, 32);
	memcpy(d.log_digest, r->log_digest.b, 32);
	vx_buf_add(out, &d, sizeof d);
	if (r->log_n)
		vx_buf_add(out, r->log, r->log_n);
	if (r->made_in_n)
		vx_buf_add(out, r->made_in, r->made_in_n);
}

int vx_row_decode(const struct vx_digest *key, const void *p, size_t n, struct vx_row *ret)
{
	struct disk_row d;
	if (n < sizeof d)
		return -EINVAL;
	memcpy(&d, p, sizeof d);
	size_t log_n = le32toh(d.log_n), made_in_n = le32toh(d.made_in_n);
	if (d.version != ROW_VERSION || d.log_kind > VX_LOG_FILE ||
		n - sizeof d != log_n + made_in_n)
		return -EINVAL;
	*ret = (struct vx_row){
		.e = {.key = *key,
			.artifact_bytes = le64toh(d.artifact_bytes),
			.n_outputs = le32toh(d.n_outputs),
			.output_bytes = le64toh(d.output_bytes),
			.duration_ns = le64toh(d.duration_ns),
			.cpu_ns = le64toh(d.cpu_ns),
			.peak_bytes = le64toh(d.peak_bytes),
			.saved_wall_ns = le64toh(d.saved_wall_ns),
			.portable = d.flags & F_PORTABLE,
			.silent = d.log_kind == VX_LOG_NONE,
			.peak_is_tree = d.flags & F_PEAK_IS_TREE},
		.used_ns = le64toh(d.used_ns),
		.log_kind = (enum vx_log_kind)d.log_kind,
		.log_bytes = le64toh(d.log_bytes),
		.log_file_bytes = le64toh(d.log_file_bytes),
		.log = (const uint8_t *)p + sizeof d,
		.log_n = log_n,
		.made_in = (const char *)p + sizeof d + log_n,
		.made_in_n = made_in_n,
	};
	memcpy(ret->e.artifact.b, d.artifact, 32);
	memcpy(ret->log_digest.b, d.log_digest, 32);
	return ret->log_bytes > VX_LOG_MAX_BYTES ? -EINVAL : 0;
}

void vx_row_touch(void *p, uint64_t used_ns)
{
	used_ns = htole64(used_ns);
	memcpy(p, &used_ns, sizeof used_ns);
}

struct disk_snap {
	uint32_t version, fine;
	uint64_t taken_ns;
	uint8_t key[32], artifact[32];
	uint32_t n_dirs, n_files;
};
_Static_assert(sizeof(struct disk_snap) == 88, "snapshot layout");

struct disk_seen {
	uint32_t len, mode;
	uint64_t size, ino, mtime_ns, ctime_ns;
};
_Static_assert(sizeof(struct disk_seen) == 40, "snapshot item layout");

void vx_snap_begin(struct vx_buf *out, const struct vx_snap *s)
{
	struct disk_snap d = {.version = htole32(SNAP_VERSION),
		.fine = htole32(s->fine),
		.taken_ns = htole64(s->taken_ns),
		.n_dirs = htole32(s->n_dirs),
		.n_files = htole32(s->n_files)};
	memcpy(d.key, s->key.b, 32);
	memcpy(d.artifact, s->artifact.b, 32);
	vx_buf_add(out, &d, sizeof d);
}

void vx_snap_add(struct vx_buf *out, const struct vx_seen *e)
{
	struct disk_seen d = {htole32(e->len), htole32(e->mode), htole64(e->size), htole64(e->ino),
		htole64((uint64_t)e->mtime_ns), htole64((uint64_t)e->ctime_ns)};
	vx_buf_add(out, &d, sizeof d);
	vx_buf_add(out, e->path, e->len);
	vx_buf_addc(out, '\0');
}

int vx_snap_decode(const void *p, size_t n, struct vx_snap *ret)
{
	struct disk_snap d;
	if (n < sizeof d)
		return -EINVAL;
	memcpy(&d, p, sizeof d);
	if (le32toh(d.version) != SNAP_VERSION)
		return -EINVAL;
	*ret = (struct vx_snap){.taken_ns = le64toh(d.taken_ns),
		.fine = d.fine != 0,
		.n_dirs = le32toh(d.n_dirs),
		.n_files = le32toh(d.n_files),
		.at = (const uint8_t *)p + sizeof d,
		.end = (const uint8_t *)p + n};
	memcpy(ret->key.b, d.key, 32);
	memcpy(ret->artifact.b, d.artifact, 32);
	return 0;
}

int vx_snap_next(struct vx_snap *s, struct vx_seen *ret)
{
	struct disk_seen d;
	if (s->at == s->end)
		return 0;
	if ((size_t)(s->end - s->at) < sizeof d)
		return -EINVAL;
	memcpy(&d, s->at, sizeof d);
	size_t len = le32toh(d.len), left = (size_t)(s->end - s->at) - sizeof d;
	const char *path = (const char *)s->at + sizeof d;
	if (len >= left || path[len] != '\0' || strlen(path) != len)
		return -EINVAL;
	*ret = (struct vx_seen){path, (uint32_t)len, le32toh(d.mode), le64toh(d.size),
		le64toh(d.ino), (int64_t)le64toh(d.mtime_ns), (int64_t)le64toh(d.ctime_ns)};
	s->at += sizeof d + len + 1;
	return 1;
}

/* Times that no 64 bits of nanoseconds hold (before 1678, after 2262) are the nearest that they do:
 * a change still shows in the time of the change. */
static int64_t ns_of(struct timespec t)
{
	int64_t ns;
	if (__builtin_mul_overflow((int64_t)t.tv_sec, (int64_t)1000000000, &ns) ||
		__builtin_add_overflow(ns, (int64_t)t.tv_nsec, &ns))
		return t.tv_sec < 0 ? -INT64_MAX : INT64_MAX;
	return ns;
}

/* Of a directory size is not meant: file systems let it grow and shrink as they like. */
void vx_seen_of(const struct stat *st, struct vx_seen *ret)
{
	ret->mode = st->st_mode;
	ret->size = S_ISDIR(st->st_mode) ? 0 : (uint64_t)st->st_size;
	ret->ino = st->st_ino;
	ret->mtime_ns = ns_of(st->st_mtim);
	ret->ctime_ns = ns_of(st->st_ctim);
}

bool vx_seen_equal(const struct vx_seen *a, const struct vx_seen *b)
{
	return a->mode == b->mode && a->size == b->size && a->ino == b->ino &&
	       a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns;
}

bool vx_seen_racy(const struct vx_snap *s, const struct vx_seen *e)
{
	if (s->fine || !e->mode)
		return false;
	int64_t window = e->ctime_ns % 1000000000 ? RACY_FINE_NS : RACY_COARSE_NS;
	return e->ctime_ns + window >= (int64_t)s->taken_ns;
}
