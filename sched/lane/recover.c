/* After a crash: restores whose journal was written are completed, what was merely staged is dropped. */
#include "lane_int.h"

#include "vx/err.h"
#include "vx/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_MAGIC "vx journal 1"
#define JOURNAL_MAX_BYTES (1U << 30)

static uint32_t u32le(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* Strings of the operations point into b. -EBADMSG: not whole. */
static int decode(const struct vx_buf *b, struct vx_plan_ops *p)
{
	struct vx_digest d;
	size_t head = sizeof JOURNAL_MAGIC + 4;
	if (b->len < head + sizeof d.b || memcmp(b->data, JOURNAL_MAGIC, sizeof JOURNAL_MAGIC) != 0)
		return -EBADMSG;
	const char *end = b->data + b->len - sizeof d.b, *at = b->data + head;
	vx_sha256_of(b->data, (size_t)(end - b->data), &d);
	if (memcmp(d.b, end, sizeof d.b) != 0)
		return -EBADMSG;
	for (uint32_t n = u32le(b->data + sizeof JOURNAL_MAGIC); n; n--) {
		if (end - at < 7)
			return -EBADMSG;
		char kind = at[0];
		uint32_t mode = u32le(at + 1);
		const char *path = at + 5, *stage = memchr(path, '\0', (size_t)(end - path));
		const char *stop = stage && ++stage < end ? memchr(stage, '\0', (size_t)(end - stage)) : NULL;
		if (!stop || !strchr("DPMR", kind) || !kind || !vx_tar_path_ok(path))
			return -EBADMSG;
		vx_ops_add(p, (enum vx_op_kind)kind, path, stage, mode);
		at = stop + 1;
	}
	return at == end ? 0 : -EBADMSG;
}

static int complete(struct vx_io *io, int root_fd, int vx_fd, const char *name, struct vx_err *err)
{
	char path[300];
	struct vx_buf b = VX_BUF(JOURNAL_MAX_BYTES);
	struct vx_plan_ops ops = {0};
	struct vx_fail f;
	snprintf(path, sizeof path, "journal/%s", name);
	int r = vx_read_file(vx_fd, path, &b);
	if (r == 0)
		r = decode(&b, &ops);
	if (r == 0) {
		snprintf(path, sizeof path, "stage/%s", name);
		int stage_fd = vx_open(vx_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (stage_fd >= 0) {
			VX_POINT("recover.begin");
			/* What cannot be completed is found by the next check of that task, and named there. */
			vx_ops_apply(io, root_fd, stage_fd, &ops, true, &f);
		}
		vx_close(stage_fd);
	} else if (r == -EBADMSG || r == -ENOENT) {
		r = 0; /* it was never made whole, so nothing was done by it */
	} else {
		vx_err_set(err, r, ".vx/journal/%s: %s", name, vx_strerror(r));
	}
	if (r == 0) {
		snprintf(path, sizeof path, "journal/%s", name);
		unlinkat(vx_fd, path, 0);
		VX_POINT("recover.journal_removed");
	}
	free(ops.v);
	vx_buf_free(&b);
	return r;
}

/* Calls f for every name of a directory below .vx; an absent one has none. */
static int each(int vx_fd, const char *dir, int (*f)(void *arg, int vx_fd, const char *name), void *arg)
{
	int fd = vx_open(vx_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	DIR *d = fdopendir(fd);
	if (!d) {
		vx_close(fd);
		return -ENOMEM;
	}
	int r = 0;
	for (struct dirent *e; r == 0 && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = f(arg, vx_fd, e->d_name);
	closedir(d);
	return r;
}

struct recovery {
	struct vx_io *io;
	int root_fd;
	struct vx_err *err;
};

static int on_journal(void *arg, int vx_fd, const char *name)
{
	struct recovery *k = arg;
	return complete(k->io, k->root_fd, vx_fd, name, k->err);
}

static int on_stage(void *arg, int vx_fd, const char *name)
{
	char path[300];
	(void)arg;
	snprintf(path, sizeof path, "stage/%s", name);
	VX_POINT("recover.stage");
	vx_rm_rf(vx_fd, path); /* what cannot be removed is in nobody's way */
	return 0;
}

/* What was being written beside, to be renamed: the plan (key/snapshot.c), other files (vx_write_file_atomic), and the file that time stamps are tried on. A run that
 * writes such a file just now without the lock merely does not keep it. */
static int on_own(void *arg, int vx_fd, const char *name)
{
	size_t n = strlen(name);
	(void)arg;
	if (strncmp(name, "stamp-", 6) == 0 || strncmp(name, "plan.", 5) == 0 ||
		(strncmp(name, ".vx-", 4) == 0 && n > 8 && strcmp(name + n - 4, ".tmp") == 0))
		unlinkat(vx_fd, name, 0);
	return 0;
}

int vx_lane_recover(const char *root, struct vx_err *err)
{
	int root_fd = vx_open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
	if (root_fd < 0)
		return vx_err_set(err, root_fd, "%s: %s", root, vx_strerror(root_fd));
	int vx_fd = vx_open(root_fd, ".vx", O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = 0;
	if (vx_fd >= 0) {
		struct recovery k = {vx_io_blocking_new(), root_fd, err};
		r = each(vx_fd, "journal", on_journal, &k);
		if (r == 0)
			each(vx_fd, "stage", on_stage, NULL);
		each(vx_fd, ".", on_own, NULL);
		vx_io_free(k.io);
	}
	vx_close(vx_fd);
	vx_close(root_fd);
	return r;
}
