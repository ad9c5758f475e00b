#include "out.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#define WAIT_MS 50

void out_init(struct out *o, int fd)
{
	struct stat st;

	*o = (struct out){
		.fd = fd, .buf = VX_BUF(OUT_MAX_BYTES + 4096), .kept = VX_BUF(OUT_KEPT_BYTES)};
	o->dead = fd < 0 || fstat(fd, &st) < 0;
	o->plain_file = !o->dead && S_ISREG(st.st_mode);
}

bool out_pending(const struct out *o)
{
	return !o->dead && o->done < o->buf.len;
}

static void forget_written(struct out *o)
{
	if (o->dead || o->done == o->buf.len) {
		vx_buf_clear(&o->buf);
		o->done = 0;
	} else if (o->done > o->buf.len / 2) {
		vx_buf_drop(&o->buf, o->done);
		o->done = 0;
	}
}

/* Can something be written without waiting? A pipe that polls writable takes PIPE_BUF bytes at
 * once. */
static bool writable(const struct out *o, int timeout_ms)
{
	struct pollfd p = {o->fd, POLLOUT, 0};

	return o->plain_file || poll(&p, 1, timeout_ms) > 0;
}

static bool signal_pending(void)
{
	sigset_t s;

	return sigpending(&s) == 0 &&
	       (sigismember(&s, SIGINT) == 1 || sigismember(&s, SIGTERM) == 1 ||
		       sigismember(&s, SIGHUP) == 1 || sigismember(&s, SIGQUIT) == 1);
}

static void write_some(struct out *o)
{
	size_t n = o->buf.len - o->done;

	if (!o->plain_file && n > PIPE_BUF)
		n = PIPE_BUF;
	ssize_t w = write(o->fd, o->buf.data + o->done, n);
	if (w > 0 && o->keep)
		vx_buf_add(&o->kept, o->buf.data + o->done, (size_t)w);
	if (w > 0)
		o->done += (size_t)w;
	else if (w < 0 && errno != EAGAIN && errno != EINTR)
		o->dead = true; /* EPIPE, EBADF, ENOSPC, EIO: nobody will read it */
}

void out_flush(struct out *o)
{
	while (out_pending(o) && writable(o, 0))
		write_some(o);
	forget_written(o);
}

/* Until at most `keep` bytes wait. */
static void wait_for_reader(struct out *o, size_t keep)
{
	while (out_pending(o) && o->buf.len - o->done > keep) {
		if (signal_pending()) {
			o->hasty = true;
			break;
		}
		if (writable(o, WAIT_MS))
			write_some(o);
	}
	if (o->dead || o->done) {
		vx_buf_drop(&o->buf, o->dead ? o->buf.len : o->done);
		o->done = 0;
	}
}

bool out_begin(struct out *o, size_t bytes)
{
	if (o->dead)
		return false;
	if (o->buf.len + bytes > OUT_MAX_BYTES && bytes < OUT_MAX_BYTES && !o->hasty)
		wait_for_reader(o, OUT_MAX_BYTES - bytes);
	if (!o->dead && o->buf.len + bytes <= OUT_MAX_BYTES)
		return true;
	o->left_out_bytes += bytes;
	return false;
}

void out_drain(struct out *o)
{
	out_flush(o);
	wait_for_reader(o, 0);
}

void out_free(struct out *o)
{
	vx_buf_free(&o->buf);
	vx_buf_free(&o->kept);
}
