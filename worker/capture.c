/* Captured output: two pipes, frames in the output ring, back-pressure, and the end of reading. */
#include "worker.h"

#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/point.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* Reading goes on while a frame of this size fits: smaller ones would turn a full ring into a
 * trickle of headers. */
enum { LEAST_SPACE = 4096 };

int capture_open(struct attempt *a, const char **ret_step)
{
	for (int i = 0; i < 2; i++)
		a->streams[i] = (struct stream){-1, -1, 0};
	a->in_fd = -1;
	for (int i = 0; i < 2; i++) {
		int p[2], r = vx_pipe(p);

		if (r < 0) {
			capture_close(a);
			*ret_step = "pipe";
			return r;
		}
		a->streams[i] = (struct stream){p[0], p[1], 0};
	}
	return 0;
}

static void close_writers(struct attempt *a)
{
	for (int i = 0; i < 2; i++)
		a->streams[i].keep_fd = vx_close(a->streams[i].keep_fd);
}

void capture_close(struct attempt *a)
{
	close_writers(a);
	for (int i = 0; i < 2; i++)
		a->streams[i].fd = vx_close(a->streams[i].fd);
	a->in_fd = vx_close(a->in_fd);
}

bool capture_blocked(const struct worker *w)
{
	return vx_bring_space(vx_slot_output(w->slot)) < LEAST_SPACE;
}

/* One read, one frame. The pipe may block, so this is called only for a stream that is readable
 * now; we are its one reader. */
void capture_read(struct worker *w, int i)
{
	static char buf[VX_FRAME_MAX];
	struct vx_bring *out = vx_slot_output(w->slot);
	struct stream *s = &w->a.streams[i];
	size_t room = vx_bring_space(out);
	struct vx_frame f;
	ssize_t n;

	if (s->fd < 0 || room < LEAST_SPACE)
		return;
	n = vx_read(s->fd, buf, room);
	if (n <= 0) { /* an error on a pipe is as final as its end */
		s->fd = vx_close(s->fd);
		return;
	}
	s->must -= (uint64_t)n < s->must ? (uint64_t)n : s->must;
	f = (struct vx_frame){
		w->a.d.task, w->a.d.attempt, (uint8_t)(i + 1), 0, (uint32_t)n, 0, vx_now_ns()};
	if (vx_bring_push(out, &f, buf) < 0)
		worker_die(w, 70); /* we measured the space: the cursors are damaged */
	VX_POINT("worker.output");
	worker_tell(w, vx_bring_used(out) > VX_OUT_BYTES / 2);
}

static bool both_ended(const struct attempt *a)
{
	return a->streams[0].fd < 0 && a->streams[1].fd < 0;
}

/* Looks at both pipes without waiting; true when one of them had something to read. */
static bool read_what_is_there(struct worker *w)
{
	struct attempt *a = &w->a;
	struct pollfd p[2] = {{.fd = a->streams[0].fd, .events = POLLIN},
		{.fd = a->streams[1].fd, .events = POLLIN}};
	bool any = false;

	if (poll(p, 2, 0) <= 0)
		return false;
	for (int i = 0; i < 2; i++) {
		if (p[i].revents & POLLIN) {
			capture_read(w, i);
			any = true;
		} else if (p[i].revents != 0) {
			a->streams[i].fd = vx_close(a->streams[i].fd);
		}
	}
	return any;
}

static void enter(struct worker *w)
{
	struct attempt *a = &w->a;

	a->phase = DRAINING;
	close_writers(a);
	a->in_fd = vx_close(a->in_fd);
	a->cut_ns = 0;
	/* Nearly always this sees both ends, or what is left to read before them. */
	read_what_is_there(w);
	if (both_ended(a))
		return;
	a->cut_ns = vx_now_ns() + VX_LEFTOVER_READ_MS * 1000000ULL;
	for (int i = 0; i < 2; i++) {
		int n = 0;

		if (a->streams[i].fd >= 0 && ioctl(a->streams[i].fd, FIONREAD, &n) == 0)
			a->streams[i].must = (uint64_t)n;
	}
}

/* Reads on; true when there is nothing more to wait for. */
static bool drained(struct worker *w)
{
	struct attempt *a = &w->a;

	while (!both_ended(a)) {
		if (vx_now_ns() >= a->cut_ns && a->streams[0].must == 0 &&
			a->streams[1].must == 0) {
			a->done.flags |= VX_DONE_CUT_LEFTOVER;
			return true;
		}
		if (capture_blocked(w) || !read_what_is_there(w))
			return both_ended(a);
	}
	return true;
}

/* The tree is gone. Usually both pipes have ended too. Where something outside the tree holds one
 * open, what was in it is read in any case, and what comes later until the cut. */
void capture_drain(struct worker *w)
{
	struct attempt *a = &w->a;

	if (a->phase != DRAINING)
		enter(w);
	if (!drained(w))
		return;
	capture_close(a);
	VX_POINT("worker.drained");
	stop_settle(w);
	worker_publish(w, &a->done, true);
	vx_arena_free(&w->arena);
	a->phase = IDLE;
}
