/* Dropping what was found damaged. Other processes save meanwhile, perhaps the very same: rows go
 * in one transaction, and the file in a second one, each after another look at whether it is still
 * what was found. A save checks within its own transaction that its file is there. */
#include "store_int.h"

#include "vx/arena.h"
#include "vx/point.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct drop {
	struct vx_store *s;
	const struct vx_entry *e;
	const struct stat *seen;
	char path[VX_ARTIFACT_PATH];
	struct vx_digest *keys; /* of rows with this artifact */
	uint32_t n, cap;
};

/* Is the file the one that was found damaged, or still missing? In a segment: does the artifact
 * still lie where it was looked for, and is it still not whole? */
static bool still_bad(struct vx_tx *t, const struct drop *d)
{
	struct stat st;
	struct vx_place now;
	if (d->e->segment)
		return vx_place_get(t, &d->e->artifact, &now) == 0 &&
		       now.segment == d->e->segment && now.off == d->e->offset &&
		       !vx_place_whole(d->s, &now, &d->e->artifact);
	if (fstatat(d->s->a_fd, d->path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT;
	return d->seen && st.st_ino == d->seen->st_ino &&
	       st.st_ctim.tv_sec == d->seen->st_ctim.tv_sec &&
	       st.st_ctim.tv_nsec == d->seen->st_ctim.tv_nsec;
}

static int find(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok)
{
	struct drop *d = arg;
	struct vx_digest k;
	struct vx_row row;
	if (!ok || key_n != sizeof k.b)
		return 0;
	memcpy(k.b, key, sizeof k.b);
	if (vx_row_decode(&k, val, n, &row) < 0 || !row.e.artifact_bytes ||
		!vx_digest_equal(&row.e.artifact, &d->e->artifact))
		return 0;
	if (d->n == d->cap) {
		d->cap = d->cap ? d->cap * 2 : 16;
		d->keys = vx_xrealloc(d->keys, d->cap * sizeof *d->keys);
	}
	d->keys[d->n++] = k;
	return 0;
}

static int drop_rows(struct vx_tx *t, void *arg)
{
	struct drop *d = arg;
	d->n = 0;
	if (!still_bad(t, d))
		return 0;
	int r = vx_tx_each(t, VX_DB_ENTRIES, find, d);
	for (uint32_t i = 0; i < d->n && r == 0; i++)
		r = vx_tx_del(t, VX_DB_ENTRIES, d->keys[i].b, sizeof d->keys[i].b);
	if (r == 0 && d->e->segment)
		r = vx_place_del(t, &d->e->artifact);
	return r;
}

static int drop_file(struct vx_tx *t, void *arg)
{
	struct drop *d = arg;
	int r = still_bad(t, d) ? vx_artifact_unlink(d->s, d->path) : 0;
	return r == -ENOENT ? 0 : r;
}

int vx_store_drop(struct vx_store *s, const struct vx_entry *e, const struct stat *seen)
{
	struct drop d = {.s = s, .e = e, .seen = seen};
	if (!e->artifact_bytes || !vx_store_writable(s))
		return 0;
	vx_artifact_path(&e->artifact, VX_SUFFIX_TAR, d.path);
	VX_POINT("restore.drop_row");
	int r = vx_index_write(s->ix, drop_rows, &d);
	VX_POINT("restore.drop_artifact");
	if (r == 0 && seen && !e->segment)
		r = vx_index_write(s->ix, drop_file, &d);
	free(d.keys);
	return r;
}
