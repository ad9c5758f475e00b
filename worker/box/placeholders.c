/* Placeholders and their sweep. */
#include "placeholders.h"

#include "../request/denies.h"

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

/* The record of this host, made with its first task that needs one. */
static int open_record(
	struct place_record *rec, int root_fd, const char *record_dir, struct vx_err *err)
{
	struct vx_buf head = VX_BUF(sizeof rec->head);
	int r;

	if (rec->fd >= 0)
		return 0;
	r = rec->dir_fd = open_records(root_fd, record_dir, true, &head);
	if (!head.len) /* no secret can be had here: what a kill leaves stays where it is */
		vx_buf_adds(&head, RECORD_HEAD);
	rec->head_n = head.len;
	memcpy(rec->head, head.data, head.len);
	vx_buf_free(&head);
	snprintf(rec->name, sizeof rec->name, "%ld", (long)getpid());
	if (r >= 0)
		r = rec->fd = vx_open(rec->dir_fd, rec->name, O_CREAT | O_EXCL | O_WRONLY, 0600);
	if (r >= 0 && flock(rec->fd, LOCK_EX | LOCK_NB) < 0)
		r = -errno;
	if (r >= 0)
		return 0;
	place_record_close(rec);
	return vx_err_set(err, r, "sandbox: cannot write down what is created, in %s: %s",
		record_dir, vx_strerror(r));
}

static void put_item(struct vx_buf *b, char tag, const char *text)
{
	vx_buf_addc(b, tag);
	vx_buf_add(b, text, strlen(text) + 1);
}

static void put_items(struct vx_buf *b, char tag, struct vx_strs list)
{
	for (uint32_t i = 0; i < list.n; i++)
		put_item(b, tag, list.v[i]);
}

static int write_record(const struct place_record *rec, const struct vx_sbx_request *r,
	const char *record_dir, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(RECORD_BYTES);

	vx_buf_add(&b, rec->head, rec->head_n);
	for (uint32_t i = 0; i < r->n_placeholders; i++)
		put_item(&b, r->placeholders[i].is_dir ? 'd' : 'f', r->placeholders[i].path);
	if (r->deny_in.n) {
		put_item(&b, 'w', r->wall);
		put_item(&b, 'c', r->git_config ? "1" : "");
		put_items(&b, 'm', r->members);
		put_items(&b, 'p', r->protect);
		put_items(&b, 'k', r->deny_known);
		put_items(&b, 'i', r->deny_in);
	}
	int res = b.overflow ? -EFBIG : vx_write_full(rec->fd, vx_buf_str(&b), b.len);
	vx_buf_free(&b);
	return res < 0 ? vx_err_set(err, res,
				 "sandbox: cannot write down what is created, in %s: %s",
				 record_dir, vx_strerror(res))
		       : 0;
}

void place_record_clear(struct place_record *rec)
{
	if (rec->fd >= 0 && (ftruncate(rec->fd, 0) < 0 || lseek(rec->fd, 0, SEEK_SET) < 0))
		place_record_close(rec);
}

void place_record_close(struct place_record *rec)
{
	if (rec->fd >= 0)
		unlinkat(rec->dir_fd, rec->name, 0);
	vx_close(rec->fd);
	vx_close(rec->dir_fd);
	*rec = PLACE_RECORD_INIT;
}

int place_make(struct place_set *p, struct place_record *rec, int root_fd, const char *record_dir,
	const struct vx_sbx_request *r, struct vx_err *err)
{
	int res = 0;

	*p = PLACE_SET_INIT;
	if (!r->n_placeholders && !r->deny_in.n)
		return 0;
	/* What was cut short before this host was made: by now its tree is gone. */
	if (rec->fd < 0)
		res = vx_box_sweep_records(record_dir, err) == -EPERM ? -EPERM : 0;
	if (res == 0)
		res = open_record(rec, root_fd, record_dir, err);
	if (res == 0)
		res = write_record(rec, r, record_dir, err);
	p->root_fd = root_fd;
	p->v = r->placeholders;
	p->n = r->n_placeholders;
	p->made = vx_xcalloc(p->n, sizeof *p->made);
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
	free(p->made);
	*p = PLACE_SET_INIT;
}

/* What an attempt that was cut short has written down. */
struct leftover {
	struct vx_arena a;
	struct vx_sbx_request r;
	struct vx_strlist members, protect, known, in;
	struct vx_strlist items; /* of placeholders, with their tags */
};

static void read_item(struct leftover *l, const char *item)
{
	const char *text = item + 1;
	struct vx_strlist *list = *item == 'm'   ? &l->members
				  : *item == 'p' ? &l->protect
				  : *item == 'k' ? &l->known
				  : *item == 'i' ? &l->in
						 : NULL;
	if (*item == 'f' || *item == 'd')
		vx_strlist_add(&l->items, &l->a, item);
	else if (*item == 'w')
		l->r.wall = text;
	else if (*item == 'c')
		l->r.git_config = *text != 0;
	else if (list)
		vx_strlist_add(list, &l->a, text);
}

/* Sweeps the placeholders, and looks for names that no task may make. 1: there is one; the record
 * stays until somebody has decided what it is. */
static int sweep_leftover(int root_fd, struct leftover *l, char *ret, size_t cap)
{
	for (uint32_t i = l->items.n; i-- > 0;)
		sweep_one(root_fd, l->items.v[i] + 1, *l->items.v[i] == 'd');
	l->r.members = vx_strlist_done(&l->members);
	l->r.protect = vx_strlist_done(&l->protect);
	l->r.deny_known = vx_strlist_done(&l->known);
	l->r.deny_in = vx_strlist_done(&l->in);
	return l->r.wall && l->r.deny_in.n && deny_find(root_fd, &l->r, ret, cap);
}

/* -ENOENT: no record of ours. 0: it may go, also where it was never filled. 1: as above. */
static int sweep_record(int root_fd, int fd, const struct vx_buf *want, char *ret, size_t cap)
{
	struct vx_buf b = VX_BUF(RECORD_BYTES);
	struct leftover l = {0};
	size_t head = want->len;
	char text[4096];
	ssize_t got;
	int r = -ENOENT;

	while ((got = vx_read(fd, text, sizeof text)) > 0)
		vx_buf_add(&b, text, (size_t)got);
	const char *s = vx_buf_str(&b);
	if (got == 0 && !b.len) {
		r = 0;
	} else if (got == 0 && !b.overflow && head && b.len >= head &&
		   !memcmp(s, want->data, head)) {
		for (size_t i = head; i < b.len && memchr(s + i, 0, b.len - i);
			i += strlen(s + i) + 1)
			read_item(&l, s + i);
		r = sweep_leftover(root_fd, &l, ret, cap);
	}
	vx_arena_free(&l.a);
	vx_buf_free(&b);
	return r;
}

static int say_found(
	struct vx_err *err, const char *found, const char *record_dir, const char *record)
{
	vx_err_set(err, -EPERM,
		"sandbox: %s is there since a task was cut short, and no task may make it", found);
	vx_err_fix(err, "look at it and delete it; to keep it, delete %s/%s", record_dir, record);
	return -EPERM;
}

int vx_box_sweep_records(const char *record_dir, struct vx_err *err)
{
	struct vx_buf head = VX_BUF(4096);
	int fd, root = vx_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0),
		dir = root < 0 ? root : open_records(root, record_dir, false, &head);
	char found[VX_MAX_PATH + NAME_MAX + 2];
	int result = 0;
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
		int r = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0
				? sweep_record(root, fd, &head, found, sizeof found)
				: -ENOENT;
		if (r == 0)
			unlinkat(dirfd(d), e->d_name, 0);
		if (r == 1 && result == 0)
			result = say_found(err, found, record_dir, e->d_name);
		vx_close(fd);
	}
	closedir(d);
	vx_close(root);
	vx_buf_free(&head);
	return result;
}
