/* After a crash: restores whose journal was written are completed, what was merely staged is
 * dropped.
 *
 * What lies below .vx is believed no further than it is ours: its directories are entered by
 * descriptor and never through a link, a journal is a plain file that is bound to the secret of
 * this .vx (a clone or an archive brings none) and says nothing but what a restore writes there,
 * and what it places comes out of its own stage directory, by the names that a stage has. Where
 * things are placed is bounded as in any restore: beneath the root, through no link, and never in
 * .git or .vx. */
#include "lane_int.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define JOURNAL_MAGIC "vx journal 1"

static uint32_t u32le(const char *p)
{
	const uint8_t *b = (const uint8_t *)p;
	return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

/* What a restore places is numbered within its stage (stage.c): a name of digits, and no path.
 * Everything else has none. */
static bool stage_ok(char kind, const char *stage)
{
	size_t n = strlen(stage);
	if (kind != OP_PLACE)
		return !n;
	return n && n <= 10 && strspn(stage, "0123456789") == n && (n == 1 || *stage != '0');
}

static bool mode_ok(char kind, uint32_t mode)
{
	return kind == OP_PLACE  ? !mode || mode == S_IFDIR
	       : kind == OP_MODE ? mode <= 07777
				 : !mode;
}

/* Strings of the operations point into b. -EBADMSG: not whole. */
static int decode(const struct vx_buf *b, const struct vx_digest *secret, struct vx_plan_ops *p)
{
	struct vx_digest d;
	size_t head = sizeof JOURNAL_MAGIC + 4;
	if (b->len < head + sizeof d.b || memcmp(b->data, JOURNAL_MAGIC, sizeof JOURNAL_MAGIC) != 0)
		return -EBADMSG;
	const char *end = b->data + b->len - sizeof d.b, *at = b->data + head;
	vx_journal_seal(secret, b->data, (size_t)(end - b->data), &d);
	if (memcmp(d.b, end, sizeof d.b) != 0)
		return -EBADMSG;
	for (uint32_t n = u32le(b->data + sizeof JOURNAL_MAGIC); n; n--) {
		if (end - at < 7)
			return -EBADMSG;
		char kind = at[0];
		uint32_t mode = u32le(at + 1);
		const char *path = at + 5, *stage = memchr(path, '\0', (size_t)(end - path));
		const char *stop =
			stage && ++stage < end ? memchr(stage, '\0', (size_t)(end - stage)) : NULL;
		if (!stop || !kind || !strchr("DPMR", kind) || !vx_tar_path_ok(path) ||
			!stage_ok(kind, stage) || !mode_ok(kind, mode))
			return -EBADMSG;
		vx_ops_add(p, (enum vx_op_kind)kind, path, stage, mode);
		at = stop + 1;
	}
	return at == end ? 0 : -EBADMSG;
}

struct recovery {
	struct vx_io *io;
	int root_fd, vx_fd, stages_fd; /* stages_fd: .vx/stage, -1 there is none */
	struct vx_digest secret;
	bool has_secret;
	struct vx_err *err;
};

/* -EBADMSG: no journal of ours, whatever it is. */
static int read_journal(int dir_fd, const char *name, struct vx_buf *b)
{
	struct stat st;
	VX_CLEANUP_FD int fd = vx_open(dir_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0)
		return fd == -ELOOP || fd == -ENXIO || fd == -ENOENT ? -EBADMSG : fd;
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size <= 0 || st.st_size > VX_JOURNAL_MAX_BYTES)
		return -EBADMSG;
	void *p = vx_buf_reserve(b, (size_t)st.st_size);
	ssize_t n = p ? vx_read_full(fd, p, (size_t)st.st_size) : -EFBIG;
	if (n >= 0)
		vx_buf_commit(b, (size_t)n);
	return n < 0 ? (int)n : 0;
}

static int on_journal(void *arg, int dir_fd, const char *name)
{
	struct recovery *k = arg;
	struct vx_buf b = VX_BUF(VX_JOURNAL_MAX_BYTES);
	struct vx_plan_ops ops = {0};
	struct vx_fail f;
	int r = k->has_secret ? read_journal(dir_fd, name, &b) : -EBADMSG;
	if (r == 0)
		r = decode(&b, &k->secret, &ops);
	if (r == 0) {
		int stage_fd = k->stages_fd < 0 ? -1
						: vx_open(k->stages_fd, name,
							  O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
		if (stage_fd >= 0) {
			VX_POINT("recover.begin");
			/* What cannot be completed is found by the next check of that task, and
			 * named there. */
			vx_ops_apply(k->io, k->root_fd, stage_fd, &ops, true, &f);
		}
		vx_close(stage_fd);
	} else if (r == -EBADMSG) {
		r = 0; /* never made whole, so that nothing was done by it, or not ours */
	} else {
		vx_err_set(k->err, r, ".vx/journal/%s: %s", name, vx_strerror(r));
	}
	if (r == 0) {
		vx_rm_rf(dir_fd, name);
		VX_POINT("recover.journal_removed");
	}
	free(ops.v);
	vx_buf_free(&b);
	return r;
}

/* A directory of ours below .vx. What stands in its place, a link above all, is none and goes; what
 * a link leads to is left alone. */
static int open_own(int vx_fd, const char *dir)
{
	int fd = vx_open(vx_fd, dir, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	if ((fd == -ELOOP || fd == -ENOTDIR) && unlinkat(vx_fd, dir, 0) == 0)
		fd = -ENOENT;
	return fd;
}

/* Calls f for every name of a directory, and the directory itself; takes over fd. */
static int each(int fd, int (*f)(void *arg, int dir_fd, const char *name), void *arg)
{
	DIR *d = fdopendir(fd);
	if (!d) {
		vx_close(fd);
		return -ENOMEM;
	}
	int r = 0;
	for (struct dirent *e; r == 0 && (e = readdir(d));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
			r = f(arg, dirfd(d), e->d_name);
	closedir(d);
	return r;
}

static int on_stage(void *arg, int dir_fd, const char *name)
{
	(void)arg;
	VX_POINT("recover.stage");
	vx_rm_rf(dir_fd, name); /* what cannot be removed is in nobody's way */
	return 0;
}

/* What was being written beside, to be renamed: the plan (key/snapshot.c), other files
 * (vx_write_file_atomic), and the file that time stamps are tried on. A run that writes such a file
 * just now without the lock merely does not keep it. */
static int on_own(void *arg, int dir_fd, const char *name)
{
	size_t n = strlen(name);
	(void)arg;
	if (strncmp(name, "stamp-", 6) == 0 || strncmp(name, "plan.", 5) == 0 ||
		strncmp(name, "key.", 4) == 0 ||
		(strncmp(name, ".vx-", 4) == 0 && n > 8 && strcmp(name + n - 4, ".tmp") == 0))
		unlinkat(dir_fd, name, 0);
	return 0;
}

static int recover(struct recovery *k)
{
	int own = vx_open(k->vx_fd, ".", O_RDONLY | O_DIRECTORY, 0),
	    journals = open_own(k->vx_fd, "journal"), r = 0;
	k->stages_fd = open_own(k->vx_fd, "stage");
	if (journals >= 0)
		r = each(journals, on_journal, k);
	else if (journals != -ENOENT)
		r = vx_err_set(k->err, journals, ".vx/journal: %s", vx_strerror(journals));
	if (r == 0 && k->stages_fd >= 0)
		each(k->stages_fd, on_stage, NULL);
	else
		vx_close(k->stages_fd);
	if (own >= 0)
		each(own, on_own, NULL);
	return r;
}

int vx_lane_recover(const char *root, struct vx_err *err)
{
	int root_fd = vx_open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
	if (root_fd < 0)
		return vx_err_set(err, root_fd, "%s: %s", root, vx_strerror(root_fd));
	int vx_fd = vx_state_dir(root_fd, false);
	int r = 0;
	if (vx_fd >= 0) {
		struct recovery k = {
			.io = vx_io_blocking_new(), .root_fd = root_fd, .vx_fd = vx_fd, .err = err};
		k.has_secret = vx_state_key(vx_fd, false, &k.secret) == 0;
		r = recover(&k);
		vx_io_free(k.io);
	}
	vx_close(vx_fd);
	vx_close(root_fd);
	return r;
}
