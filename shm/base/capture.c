/* vx_spawn_capture: a program run to its end with its output kept. */
#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/keeper.h"
#include "vx/limits.h"
#include "vx/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct capture {
	pid_t pid;
	int end_fd;              /* readable when the program has ended; -1 once that was seen */
	struct vx_keeper keeper; /* where it runs below one */
	int fd[2];               /* read ends of stdout and stderr; -1 at their end */
	struct vx_buf *buf[2];
	uint64_t deadline_ns; /* UINT64_MAX: none */
	int cancel_fd;
};

/* The session's id of a process, from /proc/PID/stat: the fourth field after the name, which may
 * hold anything, ')' included. */
static pid_t session_of(const char *pid_text)
{
	struct vx_buf b = VX_BUF(4096);
	char path[64];
	int session = -1;

	snprintf(path, sizeof path, "/proc/%.20s/stat", pid_text);
	if (vx_read_file(AT_FDCWD, path, &b) == 0) {
		const char *p = strrchr(vx_buf_str(&b), ')');

		if (!p || sscanf(p + 1, " %*c %*d %*d %d", &session) != 1)
			session = -1;
	}
	vx_buf_free(&b);
	return session;
}

/* The leader is not reaped yet, so its number cannot belong to another session. */
static void kill_session(pid_t leader)
{
	bool again = true;

	kill(-leader, SIGKILL);
	/* Members may have made process groups of their own, and may fork while we look. */
	for (int pass = 0; again && pass < 10; pass++) {
		DIR *d = opendir("/proc");

		again = false;
		if (!d)
			return;
		for (struct dirent *e; (e = readdir(d));) {
			int pid = atoi(e->d_name);

			if (pid <= 0 || pid == leader || session_of(e->d_name) != leader)
				continue;
			again = kill(pid, SIGKILL) == 0 || again;
		}
		closedir(d);
	}
}

/* One read. -EFBIG when the buffer's maximum is passed; a stream without a buffer is discarded. */
static int take(struct capture *c, int i)
{
	char chunk[16 << 10];
	ssize_t n = vx_read(c->fd[i], chunk, sizeof chunk);

	if (n == -EAGAIN)
		return 0;
	if (n <= 0) {
		c->fd[i] = vx_close(c->fd[i]);
		return (int)n;
	}
	if (c->buf[i]) {
		vx_buf_add(c->buf[i], chunk, (size_t)n);
		if (c->buf[i]->overflow)
			return -EFBIG;
	}
	return 0;
}

static int wait_ms(uint64_t deadline_ns)
{
	uint64_t now = vx_now_ns();

	if (deadline_ns == UINT64_MAX)
		return -1;
	if (deadline_ns <= now)
		return 0;
	uint64_t ms = (deadline_ns - now + 999999) / 1000000;
	return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

/* Until the program has ended and its streams too, or a reason to give up. A leftover that holds a
 * stream open is given a moment, then ended. */
static int pump(struct capture *c)
{
	uint64_t leftover_ns = UINT64_MAX;

	while (c->end_fd >= 0 || c->fd[0] >= 0 || c->fd[1] >= 0) {
		struct pollfd p[4] = {{c->end_fd, POLLIN, 0}, {c->fd[0], POLLIN, 0},
			{c->fd[1], POLLIN, 0}, {c->cancel_fd, POLLIN, 0}};
		uint64_t until = c->deadline_ns < leftover_ns ? c->deadline_ns : leftover_ns;
		int n = poll(p, 4, wait_ms(until));

		if (n < 0 && errno != EINTR)
			return -errno;
		if (n <= 0) {
			uint64_t now = vx_now_ns();

			if (now >= leftover_ns)
				return 0;
			if (now >= c->deadline_ns)
				return -ETIMEDOUT;
			continue;
		}
		for (int i = 0; i < 2; i++) {
			int r = p[1 + i].revents ? take(c, i) : 0;
			if (r < 0)
				return r;
		}
		if (p[3].revents & POLLIN)
			return -ECANCELED;
		if (p[0].revents) {
			c->end_fd = -1;
			leftover_ns = vx_now_ns() + VX_LEFTOVER_READ_MS * (uint64_t)1000000;
		}
		/* A program that floods us never lets poll time out. */
		if (vx_now_ns() >= c->deadline_ns)
			return -ETIMEDOUT;
	}
	return 0;
}

static int reap(struct capture *c, int r)
{
	bool leftover = c->fd[0] >= 0 || c->fd[1] >= 0;
	int status = 0;

	if (r < 0 || leftover)
		kill_session(c->pid);
	vx_close(c->fd[0]);
	vx_close(c->fd[1]);
	while (waitpid(c->pid, &status, 0) < 0)
		if (errno != EINTR)
			return r < 0 ? r : -errno;
	return r < 0 ? r : status;
}

static int end_kept(struct capture *c, int r)
{
	int status = 0;

	if (r == 0)
		r = vx_keeper_status(&c->keeper, &status);
	vx_keeper_end(&c->keeper);
	vx_close(c->fd[0]);
	vx_close(c->fd[1]);
	return r < 0 ? r : status;
}

/* The caller's further descriptors come along, its stdin among them; 1 and 2 are ours. */
static int start(const struct vx_spawn *s, int out, int errout, struct capture *c)
{
	struct vx_spawn_fd fds[VX_MAX_SPAWN_FDS];
	struct vx_spawn spawn = *s;
	uint32_t n = 0;

	fds[n++] = (struct vx_spawn_fd){out, 1};
	fds[n++] = (struct vx_spawn_fd){errout, 2};
	for (uint32_t i = 0; i < s->n_fds; i++) {
		if (s->fds[i].to == 1 || s->fds[i].to == 2)
			continue;
		if (n == VX_MAX_SPAWN_FDS)
			return -E2BIG;
		fds[n++] = s->fds[i];
	}
	spawn.fds = fds;
	spawn.n_fds = n;
	if (s->keep) {
		int r = vx_keeper_start(&spawn, &c->keeper);

		c->end_fd = c->keeper.socket;
		return r;
	}
	spawn.new_session = true;
	spawn.pgroup = 0;
	/* the calling thread waits for it, so that this is our own death */
	spawn.death_signal = SIGKILL;
	return vx_spawn(&spawn, &c->pid, &c->end_fd, NULL);
}

int vx_spawn_capture(const struct vx_spawn *s, struct vx_buf *out, struct vx_buf *errout,
	uint32_t timeout_ms, int cancel_fd, int *ret_status)
{
	struct capture c = {
		.end_fd = -1, .fd = {-1, -1}, .buf = {out, errout}, .cancel_fd = cancel_fd};
	int p1[2], p2[2];

	int r = vx_pipe(p1);
	if (r < 0)
		return r;
	r = vx_pipe(p2);
	if (r < 0) {
		vx_close(p1[0]);
		vx_close(p1[1]);
		return r;
	}
	c.fd[0] = p1[0];
	c.fd[1] = p2[0];
	vx_nonblock(p1[0]);
	vx_nonblock(p2[0]);
	c.deadline_ns = timeout_ms ? vx_now_ns() + timeout_ms * (uint64_t)1000000 : UINT64_MAX;
	r = start(s, p1[1], p2[1], &c);
	vx_close(p1[1]);
	vx_close(p2[1]);
	if (r < 0) {
		vx_close(p1[0]);
		vx_close(p2[0]);
		return r;
	}

	int pidfd = s->keep ? -1 : c.end_fd;
	r = pump(&c);
	r = s->keep ? end_kept(&c, r) : reap(&c, r);
	vx_close(pidfd);
	if (r < 0)
		return r;
	*ret_status = r;
	return 0;
}
