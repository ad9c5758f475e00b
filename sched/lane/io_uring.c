/* Steps through io_uring(7). One ring per lane thread, owned by it (SINGLE_ISSUER); completions are
 * taken where they are waited for (DEFER_TASKRUN). A chain becomes linked requests over a direct
 * descriptor, which never enters the process's table. */
#include "io.h"

#include "vx/arena.h"
#include "vx/assert.h"

#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RING_ENTRIES 256
#define SUBMIT_TRIES 30000            /* half a minute and more without memory for a request */
#define RING_SLOTS (RING_ENTRIES / 2) /* direct descriptors: chains under way at once */

struct uring {
	struct vx_io io;
	struct io_uring ring;
	struct open_how how[RING_ENTRIES]; /* requests of one batch refer to these */
	uint32_t n_how;
};

/* Gives the request of one step. */
static void prep(struct uring *u, struct io_uring_sqe *q, struct vx_io_step *s, uint32_t slot)
{
	int fd = s->fd == VX_IO_CHAINED ? (int)slot : s->fd;
	struct open_how *how;
	switch (s->op) {
	case VX_IO_OPEN:
		how = &u->how[u->n_how++];
		*how = (struct open_how){
			.flags = (uint64_t)(uint32_t)s->flags | (s->keep ? O_CLOEXEC : 0),
			.mode = s->flags & O_CREAT ? s->mode : 0};
		if (s->beneath)
			how->resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
				       RESOLVE_NO_MAGICLINKS | (s->one_mount ? RESOLVE_NO_XDEV : 0);
		if (s->keep)
			io_uring_prep_openat2(q, s->dirfd, s->path, how);
		else
			io_uring_prep_openat2_direct(q, s->dirfd, s->path, how, slot);
		break;
	case VX_IO_READ:
		io_uring_prep_read(q, fd, s->buf, (unsigned)s->n, s->off);
		break;
	case VX_IO_WRITE:
		io_uring_prep_write(q, fd, s->buf, (unsigned)s->n, s->off);
		break;
	case VX_IO_FSYNC:
		io_uring_prep_fsync(q, fd, s->flags ? IORING_FSYNC_DATASYNC : 0);
		break;
	case VX_IO_CLOSE:
		if (s->fd == VX_IO_CHAINED)
			io_uring_prep_close_direct(q, slot);
		else
			io_uring_prep_close(q, fd);
		break;
	case VX_IO_RENAME:
		io_uring_prep_renameat(
			q, s->dirfd, s->path, s->dirfd2, s->path2, (unsigned)s->flags);
		break;
	case VX_IO_MKDIR:
		io_uring_prep_mkdirat(q, s->dirfd, s->path, s->mode);
		break;
	case VX_IO_UNLINK:
		io_uring_prep_unlinkat(q, s->dirfd, s->path, s->flags);
		break;
	default:
		io_uring_prep_nop(q);
		break;
	}
	if (s->fd == VX_IO_CHAINED &&
		(s->op == VX_IO_READ || s->op == VX_IO_WRITE || s->op == VX_IO_FSYNC))
		q->flags |= IOSQE_FIXED_FILE;
	io_uring_sqe_set_data(q, s);
	if (u->io.ring_ops)
		atomic_fetch_add_explicit(&u->io.ring_ops[s->op], 1, memory_order_relaxed);
}

static void push_chain(struct uring *u, struct vx_io_chain *c, uint32_t slot)
{
	for (uint32_t i = 0; i < c->n; i++) {
		struct io_uring_sqe *q = io_uring_get_sqe(&u->ring);
		c->steps[i].res = -EIO;
		prep(u, q, &c->steps[i], slot);
		if (i + 1 < c->n) /* a short read is not the end of its chain */
			q->flags |=
				c->steps[i].op == VX_IO_READ ? IOSQE_IO_HARDLINK : IOSQE_IO_LINK;
	}
}

/* Waits for every request: they refer to the caller's memory, so there is no giving up on one. */
static void reap(struct uring *u, uint32_t want)
{
	for (int tries = 0; want;) {
		int r = io_uring_submit_and_wait(&u->ring, want);
		/* EAGAIN, EBUSY, ENOMEM: the kernel is short of something */
		if (r < 0 && r != -EINTR) {
			vx_assert(tries++ < SUBMIT_TRIES);
			nanosleep(&(struct timespec){0, 1000000}, NULL);
		}
		struct io_uring_cqe *c;
		unsigned head, n = 0;
		io_uring_for_each_cqe(&u->ring, head, c)
		{
			struct vx_io_step *s = io_uring_cqe_get_data(c);
			s->res = c->res;
			n++;
		}
		io_uring_cq_advance(&u->ring, n);
		want = n > want ? 0 : want - n;
	}
}

/* A chain that broke off leaves its slot taken. */
static void mend(struct uring *u, struct vx_io_chain *c, uint32_t slot)
{
	bool open = false;
	for (uint32_t i = 0; i < c->n; i++) {
		struct vx_io_step *s = &c->steps[i];
		if (s->op == VX_IO_OPEN && !s->keep && s->res >= 0)
			open = true;
		if (s->op == VX_IO_CLOSE && s->fd == VX_IO_CHAINED && s->res >= 0)
			open = false;
	}
	int none = -1;
	if (open)
		io_uring_register_files_update(&u->ring, slot, &none, 1);
}

static void uring_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n)
{
	struct uring *u = (struct uring *)io;
	for (uint32_t from = 0; from < n;) {
		uint32_t to = from, steps = 0;
		u->n_how = 0;
		while (to < n && to - from < RING_SLOTS && steps + chains[to].n <= RING_ENTRIES) {
			push_chain(u, &chains[to], to - from);
			steps += chains[to++].n;
		}
		reap(u, steps);
		for (uint32_t i = from; i < to; i++)
			mend(u, &chains[i], i - from);
		from = to;
	}
}

static void uring_sys(struct vx_io *io, struct vx_io_step *s)
{
	(void)io;
	s->res = vx_io_call(s, -1);
}

static void uring_free(struct vx_io *io)
{
	struct uring *u = (struct uring *)io;
	io_uring_queue_exit(&u->ring);
	free(u);
}

/* All of what is used, or the ring is not used: openat2 with direct descriptors came with 5.15, as
 * did mkdirat. */
static int check_ops(struct io_uring *ring)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(ring);
	static const int ops[] = {IORING_OP_OPENAT2, IORING_OP_READ, IORING_OP_WRITE,
		IORING_OP_CLOSE, IORING_OP_RENAMEAT, IORING_OP_MKDIRAT, IORING_OP_UNLINKAT,
		IORING_OP_FSYNC};
	int r = p ? 0 : -ENOSYS;
	for (size_t i = 0; i < sizeof ops / sizeof *ops && r == 0; i++)
		if (!io_uring_opcode_supported(p, ops[i]))
			r = -ENOSYS;
	if (p)
		io_uring_free_probe(p);
	return r;
}

struct vx_io *vx_io_uring_new(int *ret_errno)
{
	struct uring *u = vx_xcalloc(1, sizeof *u);
	struct io_uring_params p = {
		.flags = IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN};
	int r = io_uring_queue_init_params(RING_ENTRIES, &u->ring, &p);
	if (r == -EINVAL) { /* before 6.1 */
		p = (struct io_uring_params){0};
		r = io_uring_queue_init_params(RING_ENTRIES, &u->ring, &p);
	}
	if (r < 0) {
		free(u);
		*ret_errno = r;
		return NULL;
	}
	r = check_ops(&u->ring);
	if (r == 0)
		r = io_uring_register_files_sparse(&u->ring, RING_SLOTS);
	if (r < 0) {
		io_uring_queue_exit(&u->ring);
		free(u);
		*ret_errno = r;
		return NULL;
	}
	u->io = (struct vx_io){
		.name = "io_uring", .run = uring_run, .sys = uring_sys, .free = uring_free};
	return &u->io;
}
