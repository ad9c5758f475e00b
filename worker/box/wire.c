/* Messages between worker and box host. */
#include "wire.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/fd.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int box_send(int sock, const struct box_msg *m, const int *fds, uint32_t n_fds)
{
	struct iovec v = {.iov_base = (void *)(uintptr_t)m, .iov_len = sizeof *m};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * BOX_MAX_FDS)];
	} c = {0};
	struct msghdr h = {.msg_iov = &v, .msg_iovlen = 1};
	ssize_t n;

	vx_assert(n_fds <= BOX_MAX_FDS);
	if (n_fds) {
		h.msg_control = c.space;
		h.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
		struct cmsghdr *k = CMSG_FIRSTHDR(&h);
		k->cmsg_level = SOL_SOCKET;
		k->cmsg_type = SCM_RIGHTS;
		k->cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
		memcpy(CMSG_DATA(k), fds, sizeof(int) * n_fds);
	}
	do
		n = sendmsg(sock, &h, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n < 0 ? -errno : 0;
}

int box_recv(int sock, int flags, struct box_msg *ret, int fds[BOX_MAX_FDS])
{
	struct iovec v = {.iov_base = ret, .iov_len = sizeof *ret};
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(int) * BOX_MAX_FDS)];
	} c;
	struct msghdr h = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = c.space,
		.msg_controllen = sizeof c.space};
	ssize_t n;

	for (int i = 0; i < BOX_MAX_FDS; i++)
		fds[i] = -1;
	do
		n = recvmsg(sock, &h, flags | MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return errno == ECONNRESET ? 0 : -errno;
	for (struct cmsghdr *k = CMSG_FIRSTHDR(&h); k; k = CMSG_NXTHDR(&h, k))
		if (k->cmsg_level == SOL_SOCKET && k->cmsg_type == SCM_RIGHTS)
			memcpy(fds, CMSG_DATA(k), k->cmsg_len - CMSG_LEN(0));
	if (n == 0)
		return 0;
	return n == (ssize_t)sizeof *ret ? 1 : -EBADMSG;
}

/* ---- requests: numbers as u32le, strings with their NUL behind a length that counts it; 0 is NULL
 * ---- */

static void put_str(struct vx_buf *b, const char *s)
{
	uint32_t n = s ? (uint32_t)strlen(s) + 1 : 0;

	vx_buf_u32le(b, n);
	vx_buf_add(b, s ? s : "", n);
}

static void put_strs(struct vx_buf *b, struct vx_strs s)
{
	vx_buf_u32le(b, s.n);
	for (uint32_t i = 0; i < s.n; i++)
		put_str(b, s.v[i]);
}

enum {
	F_NET = 1,
	F_UNIX_ALL = 2,
	F_NO_UNIX = 4,
	F_PTY = 8,
	F_NESTING = 16,
	F_WEAKER = 32,
	F_GIT_CONFIG = 64
};

int box_request_encode(const struct vx_sbx_request *r, const char *record_dir, struct vx_buf *b)
{
	vx_buf_u32le(b, (r->share_net ? F_NET : 0) | (r->unix_all ? F_UNIX_ALL : 0) |
				(r->no_unix ? F_NO_UNIX : 0) | (r->pty ? F_PTY : 0) |
				(r->nesting ? F_NESTING : 0) | (r->weaker ? F_WEAKER : 0) |
				(r->git_config ? F_GIT_CONFIG : 0));
	put_str(b, record_dir);
	put_str(b, r->wall);
	put_str(b, r->cwd);
	put_strs(b, r->deny_in);
	put_strs(b, r->deny_known);
	put_strs(b, r->members);
	put_strs(b, r->protect);
	vx_buf_u32le(b, r->n_mounts);
	for (uint32_t i = 0; i < r->n_mounts; i++) {
		const struct vx_mount *m = &r->mounts[i];
		vx_buf_u32le(b, (uint32_t)m->kind | (uint32_t)m->why << 8 |
					(m->writable ? 1U << 16 : 0) |
					(m->source_is_dir ? 1U << 17 : 0));
		vx_buf_u32le(b, m->mode);
		put_str(b, m->source);
		put_str(b, m->target);
		put_str(b, m->grant);
	}
	vx_buf_u32le(b, r->n_placeholders);
	for (uint32_t i = 0; i < r->n_placeholders; i++) {
		vx_buf_u32le(b, (r->placeholders[i].is_dir ? 1U : 0) |
					(r->placeholders[i].outside ? 2U : 0));
		put_str(b, r->placeholders[i].path);
		put_str(b, r->placeholders[i].grant);
	}
	vx_buf_u32le(b, r->n_skeleton);
	for (uint32_t i = 0; i < r->n_skeleton; i++) {
		put_str(b, r->skeleton[i].path);
		put_str(b, r->skeleton[i].link_target);
	}
	return b->overflow ? -E2BIG : 0;
}

struct reader {
	const unsigned char *p;
	size_t left;
	struct vx_arena *a;
	bool bad;
};

static uint32_t get_u32(struct reader *d)
{
	if (d->left < 4) {
		d->bad = true;
		return 0;
	}
	uint32_t v = (uint32_t)d->p[0] | (uint32_t)d->p[1] << 8 | (uint32_t)d->p[2] << 16 |
		     (uint32_t)d->p[3] << 24;
	d->p += 4;
	d->left -= 4;
	return v;
}

static const char *get_str(struct reader *d)
{
	uint32_t n = get_u32(d);

	if (!n)
		return NULL;
	if (n > d->left || memchr(d->p, 0, n) != d->p + n - 1) {
		d->bad = true;
		return NULL;
	}
	const char *s = vx_arena_dup(d->a, d->p, n);
	d->p += n;
	d->left -= n;
	return s;
}

static const char *get_path(struct reader *d)
{
	const char *s = get_str(d);

	if (!s || s[0] != '/')
		d->bad = true;
	return s ? s : "/";
}

/* A count whose items take at least `least` bytes each: never more than could follow. */
static uint32_t get_count(struct reader *d, size_t least)
{
	uint32_t n = get_u32(d);

	if (n > d->left / least) {
		d->bad = true;
		return 0;
	}
	return n;
}

static struct vx_strs get_paths(struct reader *d)
{
	struct vx_strlist l = {0};

	for (uint32_t i = get_count(d, 4); i > 0 && !d->bad; i--)
		vx_strlist_add(&l, d->a, get_path(d));
	return vx_strlist_done(&l);
}

static struct vx_strs get_strs(struct reader *d)
{
	struct vx_strlist l = {0};

	for (uint32_t i = get_count(d, 4); i > 0 && !d->bad; i--) {
		const char *s = get_str(d);
		vx_strlist_add(&l, d->a, s ? s : "");
	}
	return vx_strlist_done(&l);
}

static void get_mounts(struct reader *d, struct vx_sbx_request *r)
{
	r->n_mounts = get_count(d, 20);
	struct vx_mount *m = vx_arena_array(d->a, r->n_mounts, sizeof *m);
	r->mounts = m;
	for (uint32_t i = 0; i < r->n_mounts && !d->bad; i++) {
		uint32_t bits = get_u32(d);
		m[i].kind = (enum vx_mount_kind)(bits & 0xff);
		m[i].why = (enum vx_mount_why)(bits >> 8 & 0xff);
		m[i].writable = bits >> 16 & 1;
		m[i].source_is_dir = bits >> 17 & 1;
		m[i].mode = get_u32(d);
		m[i].source = get_str(d);
		m[i].target = get_path(d);
		m[i].grant = get_str(d);
		bool bind = m[i].kind == VX_MNT_BIND || m[i].kind == VX_MNT_DEVICE;
		if (m[i].kind > VX_MNT_DEVICE || m[i].why > VX_WHY_SOCKET ||
			(bind && (!m[i].source || m[i].source[0] != '/')))
			d->bad = true;
	}
}

int box_request_decode(const void *p, size_t n, struct vx_arena *a, struct vx_sbx_request *ret,
	const char **ret_record_dir)
{
	struct reader d = {.p = p, .left = n, .a = a};
	struct vx_sbx_request r = {0};
	uint32_t flags = get_u32(&d);

	r.share_net = flags & F_NET;
	r.unix_all = flags & F_UNIX_ALL;
	r.no_unix = flags & F_NO_UNIX;
	r.pty = flags & F_PTY;
	r.nesting = flags & F_NESTING;
	r.weaker = flags & F_WEAKER;
	r.git_config = flags & F_GIT_CONFIG;
	const char *record_dir = get_path(&d);
	r.wall = get_path(&d);
	r.cwd = get_path(&d);
	r.deny_in = get_paths(&d);
	r.deny_known = get_paths(&d);
	r.members = get_strs(&d);
	r.protect = get_paths(&d);
	get_mounts(&d, &r);
	r.n_placeholders = get_count(&d, 12);
	struct vx_placeholder *q = vx_arena_array(a, r.n_placeholders, sizeof *q);
	r.placeholders = q;
	for (uint32_t i = 0; i < r.n_placeholders && !d.bad; i++) {
		uint32_t bits = get_u32(&d);
		q[i].path = get_path(&d);
		q[i].grant = get_str(&d);
		q[i].is_dir = bits & 1;
		q[i].outside = bits & 2;
	}
	r.n_skeleton = get_count(&d, 8);
	struct vx_skeleton *k = vx_arena_array(a, r.n_skeleton, sizeof *k);
	r.skeleton = k;
	for (uint32_t i = 0; i < r.n_skeleton && !d.bad; i++) {
		k[i].path = get_path(&d);
		k[i].link_target = get_str(&d);
	}
	if (d.bad || d.left)
		return -EBADMSG;
	*ret = r;
	*ret_record_dir = record_dir;
	return 0;
}
