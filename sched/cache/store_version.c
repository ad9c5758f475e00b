/* What a store was like, for whoever wants to know whether it still is. */
#include "lmdb_check.h"
#include "store_int.h"

#include "vx/arena.h"
#include "vx/fd.h"
#include "vx/hash.h"
#include "vx/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static uint64_t commit_of(const uint8_t *page)
{
	uint32_t magic, version;
	uint64_t commit;
	memcpy(&magic, page + VX_META_MAGIC, 4);
	memcpy(&version, page + VX_META_VERSION, 4);
	memcpy(&commit, page + VX_META_COMMIT, 8);
	return magic == 0xBEEFC0DE && version == 1 ? commit : 0;
}

/* The last commit, read from the file; 0 when it does not look as expected. vx_store_outputs
 * compares it with LMDB's own word before anybody relies on it. */
static uint64_t last_commit(int fd)
{
	_Alignas(8) uint8_t a[VX_META_BYTES], b[VX_META_BYTES];
	uint32_t page;
	if (pread(fd, a, sizeof a, 0) != (ssize_t)sizeof a)
		return 0;
	memcpy(&page, a + VX_META_DBS, 4);
	if (page < 512 || page > 65536 || pread(fd, b, sizeof b, page) != (ssize_t)sizeof b)
		return 0;
	uint64_t x = commit_of(a), y = commit_of(b);
	return x && y ? (x > y ? x : y) : 0;
}

static int stamp_index(int v1_fd, struct vx_store_stamp *s)
{
	struct statx st;
	VX_CLEANUP_FD int fd =
		vx_open_beneath(v1_fd, "index/data.mdb", O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || statx(fd, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &st) < 0)
		return -ENOENT;
	s->v[0] = st.stx_ino;
	s->v[1] = (uint64_t)st.stx_btime.tv_sec * 1000000000U + st.stx_btime.tv_nsec;
	s->v[2] = last_commit(fd);
	s->v[4] = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	return s->v[2] ? 0 : -ENOENT;
}

/* At most 258 directories, and they change when an artifact that is a file, or a segment, comes or
 * goes. Which artifacts a segment holds the index's commit tells. */
static void stamp_artifacts(int v1_fd, struct vx_store_stamp *s)
{
	struct {
		int64_t mtime, ctime;
		uint32_t mtime_ns, ctime_ns;
		uint64_t ino;
	} all[258];
	struct stat st;
	char path[8] = "a";
	VX_CLEANUP_FD int a_fd = vx_open_beneath(v1_fd, "a", O_PATH | O_DIRECTORY, 0);
	memset(all, 0, sizeof all);
	for (int i = 0; i <= 257; i++) {
		snprintf(path, sizeof path, i < 256 ? "%02x" : i == 256 ? "." : "s", (unsigned)i);
		int at = i == 257 ? v1_fd : a_fd;
		if (at < 0 || fstatat(at, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		all[i].mtime = st.st_mtim.tv_sec;
		all[i].ctime = st.st_ctim.tv_sec;
		all[i].mtime_ns = (uint32_t)st.st_mtim.tv_nsec;
		all[i].ctime_ns = (uint32_t)st.st_ctim.tv_nsec;
		all[i].ino = st.st_ino;
	}
	struct vx_digest d;
	vx_sha256_of(all, sizeof all, &d);
	memcpy(&s->v[3], d.b, 8);
}

int vx_store_stamp(const char *dir, struct vx_store_stamp *ret)
{
	struct vx_store_stamp s = {{0}};
	char path[4096];
	if (snprintf(path, sizeof path, "%s/v1", dir) >= (int)sizeof path)
		return -ENAMETOOLONG;
	VX_CLEANUP_FD int fd = vx_state_open(AT_FDCWD, path, O_PATH | O_DIRECTORY, 0);
	int r = fd < 0 ? fd : stamp_index(fd, &s);
	if (r < 0)
		return r;
	stamp_artifacts(fd, &s);
	*ret = s;
	return 0;
}

struct outputs {
	struct vx_store *s;
	const struct vx_store_known *v;
	uint32_t n;
	bool (*each)(void *arg, const struct vx_store_item *i);
	void *arg;
	uint64_t commit;
	bool good;
};

static bool items_of(struct outputs *o, const struct vx_store_known *k, struct vx_snap *snap)
{
	struct vx_seen e;
	uint32_t n = 0;
	int r;
	while ((r = vx_snap_next(snap, &e)) == 1) {
		if (vx_seen_racy(snap, &e))
			return false;
		if (n++ < snap->n_dirs && k->additive && e.mode)
			continue;
		struct vx_store_item i = {
			e.path, e.mode, e.size, e.ino, (uint64_t)e.mtime_ns, (uint64_t)e.ctime_ns};
		if (!o->each(o->arg, &i))
			return false;
	}
	return r == 0 && n == snap->n_dirs + snap->n_files;
}

static int read_outputs(struct vx_tx *t, void *arg)
{
	struct outputs *o = arg;
	o->commit = vx_tx_id(t);
	for (uint32_t i = 0; i < o->n; i++) {
		const struct vx_store_known *k = &o->v[i];
		const void *p;
		size_t n;
		struct vx_row row;
		struct vx_snap snap;
		uint8_t key[VX_INDEX_KEY_BYTES];
		if (vx_tx_get(t, VX_DB_ENTRIES, k->entry->key.b, 32, &p, &n) < 0 ||
			vx_row_decode(&k->entry->key, p, n, &row) < 0 ||
			!vx_digest_equal(&row.e.artifact, &k->entry->artifact) ||
			!vx_store_usable_row(o->s, &row))
			return 0;
		if (!k->outputs && !k->entry->n_outputs)
			continue;
		if (vx_tx_get(t, VX_DB_SNAPS, key, vx_store_id_key(o->s, k->id, key), &p, &n) < 0 ||
			vx_snap_decode(p, n, &snap) < 0)
			return 0;
		if (!vx_digest_equal(&snap.key, &k->entry->key) ||
			!vx_digest_equal(&snap.artifact, &k->entry->artifact) ||
			!items_of(o, k, &snap))
			return 0;
	}
	o->good = true;
	return 0;
}

int vx_store_outputs(struct vx_store *s, const struct vx_store_known *v, uint32_t n,
	bool (*each)(void *arg, const struct vx_store_item *i), void *arg,
	struct vx_store_stamp *ret_stamp)
{
	struct outputs o = {.s = s, .v = v, .n = n, .each = each, .arg = arg};
	struct vx_store_stamp stamp = {{0}};
	if (!s->ix || vx_index_read(s->ix, read_outputs, &o) < 0 || !o.good)
		return 0;
	if (stamp_index(s->dir_fd, &stamp) < 0 || stamp.v[2] != o.commit)
		return 0; /* another process has written since, or the file is not as we think */
	stamp_artifacts(s->dir_fd, &stamp);
	*ret_stamp = stamp;
	return 1;
}
