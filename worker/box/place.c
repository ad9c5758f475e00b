/* Placeholders and their sweep. */
#include "place.h"

#include "vx/arena.h"
#include "vx/box.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/hash.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define RECORD_HEAD "vx-sweep 2\n"
#define RECORD_BYTES (16U << 20)

/* The mark of an untouched placeholder file: a time that no clock of ours has shown. */
static const struct timespec mark = {.tv_sec = 357710706, .tv_nsec = 789012345};

/* The directory that holds `path`, opened without following a link anywhere; *ret_name is the last
 * component. */
static int open_parent(int root_fd, const char *path, const char **ret_name)
{
	char dir[VX_MAX_PATH];
	const char *slash = strrchr(path, '/');

	if (path[0] != '/' || !slash[1])
		return -EINVAL;
	*ret_name = slash + 1;
	if (slash == path)
		return fcntl(root_fd, F_DUPFD_CLOEXEC, 3);
	snprintf(dir, sizeof dir, "%.*s", (int)(slash - path - 1), path + 1);
	return vx_open_beneath(root_fd, dir, O_PATH | O_DIRECTORY, 0);
}

static int make_one(int root_fd, const struct vx_placeholder *p)
{
	const char *name;
	int parent = open_parent(root_fd, p->path, &name), r = 0;

	if (parent < 0)
		return parent;
	if (p->is_dir) {
		r = mkdirat(parent, name, 0777) < 0 ? -errno : 0;
	} else {
		struct timespec t[2] = {mark, mark};
		int fd = openat(
			parent, name, O_CREAT | O_EXCL | O_WRONLY | O_NOFOLLOW | O_CLOEXEC, 0666);
		r = fd < 0 ? -errno : futimens(fd, t) < 0 ? -errno : 0;
		vx_close(fd);
	}
	vx_close(parent);
	return r;
}

/* True when it was there, untouched, and is gone now. */
static bool sweep_one(int root_fd, const char *path, bool is_dir)
{
	const char *name;
	struct stat st;
	int parent = open_parent(root_fd, path, &name);
	bool gone = false;

	if (parent < 0)
		return false;
	if (is_dir)
		gone = unlinkat(parent, name, AT_REMOVEDIR) == 0; /* only an empty one goes */
	else if (fstatat(parent, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) &&
		 st.st_size == 0 && st.st_nlink == 1 && st.st_mtim.tv_sec == mark.tv_sec &&
		 st.st_mtim.tv_nsec == mark.tv_nsec)
		gone = unlinkat(parent, name, 0) == 0;
	vx_close(parent);
	return gone;
}

/* Opens the directory of records, and the one around it, through no link; makes them when asked
 * to. `head` gets how a record of ours begins: with what only who can read .vx/key knows. */
static int open_records(int root_fd, const char *record_dir, bool make, struct vx_buf *head)
{
	char own_path[VX_MAX_PATH];
	const char *name;
	struct vx_digest d;
	char hex[VX_DIGEST_HEX];

	snprintf(own_path, sizeof own_path, "%s", record_dir + 1);
	char *slash = strrchr(own_path, '/');
	if (!slash)
		return -EINVAL;
	*slash = '\0';
	name = slash + 1;

	int own = vx_open_beneath(root_fd, own_path, O_RDONLY | O_DIRECTORY, 0);
	if (own == -ENOENT && make && (own = vx_mkdir_p(root_fd, own_path, 0777)) == 0)
		own = vx_open_beneath(root_fd, own_path, O_RDONLY | O_DIRECTORY, 0);
	if (own < 0)
		return own;
	int r = make && mkdirat(own, name, 0777) < 0 && errno != EEXIST ? -errno : 0;
	if (r == 0)
		r = vx_open_beneath(own, name, O_RDONLY | O_DIRECTORY, 0);
	if (r >= 0 && vx_state_key(own, make, &d) == 0) {
		vx_hmac_sha256(&d, sizeof d, RECORD_HEAD, strlen(RECORD_HEAD), &d);
		vx_hex(d.b, sizeof d.b, hex);
		vx_buf_printf(head, "%s%s\n", RECORD_HEAD, hex);
	}
	vx_close(own);
	return r;
}

static int open_record(struct place_set *p, const char *record_dir, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(RECORD_BYTES);
	static unsigned serial;
	int r = p->dir_fd = open_records(p->root_fd, record_dir, true, &b);

	snprintf(p->record, sizeof p->record, "%ld-%u", (long)getpid(), serial++);
	if (r >= 0)
		r = p->record_fd = vx_open(p->dir_fd, p->record, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (r >= 0 && flock(p->record_fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (!b.len) /* no secret can be had here: what a kill leaves stays where it is */
		vx_buf_adds(&b, RECORD_HEAD);
	for (uint32_t i = 0; i < p->n; i++) {
		vx_buf_addc(&b, p->v[i].is_dir ? 'd' : 'f');
		vx_buf_add(&b, p->v[i].path, strlen(p->v[i].path) + 1);
	}
	if (r >= 0)
		r = b.overflow ? -EFBIG : vx_write_full(p->record_fd, vx_buf_str(&b), b.len);
	vx_buf_free(&b);
	return r < 0 ? vx_err_set(err, r, "sandbox: cannot write down what is created, in %s: %s",
			       record_dir, vx_strerror(r))
		     : 0;
}

int place_make(struct place_set *p, int root_fd, const char *record_dir,
	const struct vx_sbx_request *r, struct vx_err *err)
{
	int res = 0;

	*p = PLACE_SET_INIT;
	if (!r->n_placeholders)
		return 0;
	p->root_fd = root_fd;
	p->v = r->placeholders;
	p->n = r->n_placeholders;
	p->made = vx_xcalloc(p->n, sizeof *p->made);
	res = open_record(p, record_dir, err);
	for (uint32_t i = 0; i < p->n && res == 0; i++) {
		int one = make_one(root_fd, &p->v[i]);
		p->made[i] = one == 0;
		if (one < 0 && one != -EEXIST && !p->v[i].outside) {
			res = vx_err_set(err, one,
				"sandbox: allow.write \"%s\": cannot create %s: %s", p->v[i].grant,
				p->v[i].path, vx_strerror(one));
			vx_err_fix(err, "create it, or correct the grant");
		}
	}
	if (res < 0)
		place_sweep(p, NULL);
	return res;
}

void place_sweep(struct place_set *p, struct vx_buf *untouched)
{
	for (uint32_t i = p->n; i-- > 0;)
		if (p->made && p->made[i] && sweep_one(p->root_fd, p->v[i].path, p->v[i].is_dir) &&
			!p->v[i].is_dir && untouched)
			vx_buf_printf(untouched,
				"sandbox: allow.write \"%s\" named nothing and was bound as a file; for a directory write \"%s/\"\n",
				p->v[i].grant, p->v[i].grant);
	if (p->record_fd >= 0)
		unlinkat(p->dir_fd, p->record, 0);
	vx_close(p->record_fd);
	vx_close(p->dir_fd);
	free(p->made);
	*p = PLACE_SET_INIT;
}

/* True when the file is a record of ours, perhaps one that was never filled: it may go. */
static bool sweep_record(int root_fd, int fd, const struct vx_buf *want)
{
	struct vx_buf b = VX_BUF(RECORD_BYTES);
	size_t head = want->len, n = 0;
	char text[4096];
	ssize_t got;

	while ((got = vx_read(fd, text, sizeof text)) > 0)
		vx_buf_add(&b, text, (size_t)got);
	const char *s = vx_buf_str(&b);
	bool ours = got == 0 && (b.len == 0 || (!b.overflow && head && b.len >= head &&
						       !memcmp(s, want->data, head)));
	if (ours && b.len > head) {
		const char **item = vx_xcalloc(b.len, sizeof *item);
		for (size_t i = head; i < b.len && memchr(s + i, 0, b.len - i);
			i += strlen(s + i) + 1)
			item[n++] = s + i;
		while (n-- > 0)
			if (*item[n] == 'd' || *item[n] == 'f')
				sweep_one(root_fd, item[n] + 1, *item[n] == 'd');
		free(item);
	}
	vx_buf_free(&b);
	return ours;
}

int vx_box_sweep_records(const char *record_dir)
{
	struct vx_buf head = VX_BUF(4096);
	int fd, root = vx_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0),
		dir = root < 0 ? root : open_records(root, record_dir, false, &head);
	struct dirent *e;
	DIR *d = dir < 0 ? NULL : fdopendir(dir);

	if (!d || root < 0) {
		int r = dir < 0 ? dir : root < 0 ? root : -errno;
		if (d)
			closedir(d);
		else
			vx_close(dir);
		vx_close(root);
		vx_buf_free(&head);
		return r == -ENOENT ? 0 : r;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		fd = vx_open(dirfd(d), e->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
		if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && sweep_record(root, fd, &head))
			unlinkat(dirfd(d), e->d_name, 0);
		vx_close(fd);
	}
	closedir(d);
	vx_close(root);
	vx_buf_free(&head);
	return 0;
}
