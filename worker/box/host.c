/* The box host's life: it makes itself a place to work in, serves one task at a time, and goes when
 * its worker goes. */
#include "host.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/pool.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

__attribute__((noreturn)) static void broken(
	struct host *h, enum box_step step, int error, const struct vx_err *err)
{
	struct box_msg m = {.kind = BOX_BROKEN, .step = step, .error = error};

	if (err)
		vx_err_line(err, m.done.text, sizeof m.done.text);
	box_send(h->sock, &m, NULL, 0);
	_exit(1);
}

/* Namespaces of our own. The worker writes the id maps: a full range cannot be written from
 * inside. */
static void enter_namespaces(struct host *h)
{
	struct box_msg m = {.kind = BOX_UNSHARED};
	int fds[BOX_MAX_FDS];
	struct vx_err err = {0};

	if (unshare(CLONE_NEWUSER) < 0)
		m.error = -errno;
	if (box_send(h->sock, &m, NULL, 0) < 0 || box_recv(h->sock, 0, &m, fds) != 1 ||
		m.kind != BOX_MAPPED)
		_exit(1);
	if (unshare(CLONE_NEWNS) < 0)
		broken(h, BOX_STEP_MOUNTNS, -errno, NULL);
	int r = tree_base_open(&h->base, &err);
	if (r < 0)
		broken(h, BOX_STEP_BASE, r, &err);
	h->root_fd = h->base.host_fd;
}

static void enter(struct host *h)
{
	struct box_msg ready = {.kind = BOX_READY};

	if (h->plain)
		h->root_fd = vx_open(AT_FDCWD, "/", O_PATH | O_DIRECTORY, 0);
	else
		enter_namespaces(h);
	h->root = geteuid() == 0;
	int r = h->root_fd < 0 ? h->root_fd : h->root ? launch_find_covers(h) : 0;
	if (r < 0)
		broken(h, BOX_STEP_BASE, r, NULL);
	if (box_send(h->sock, &ready, NULL, 0) < 0)
		_exit(1);
}

static void from_worker(struct host *h)
{
	struct box_msg m;
	int fds[BOX_MAX_FDS];
	int r = box_recv(h->sock, MSG_DONTWAIT, &m, fds);

	if (r == -EAGAIN)
		return;
	if (r != 1) {
		attempt_abandon(h);
		_exit(0);
	}
	if (m.kind == BOX_RUN && !h->at.active)
		attempt_begin(h, fds);
	else if (m.kind == BOX_SIGNAL)
		attempt_signal(h, m.signal);
	for (int i = 0; i < BOX_MAX_FDS; i++)
		vx_close(fds[i]);
}

__attribute__((noreturn)) static void serve(struct host *h)
{
	for (;;) {
		struct pollfd p[5] = {{.fd = h->worker, .events = POLLIN},
			{.fd = h->sock, .events = POLLIN}, {.fd = h->at.pidfd, .events = POLLIN},
			{.fd = h->at.control, .events = POLLIN},
			{.fd = h->at.errors, .events = POLLIN}};

		if (poll(p, 5, -1) < 0 && errno != EINTR)
			_exit(1);
		if (p[0].revents) { /* the worker is dead: nothing of ours outlives it */
			attempt_abandon(h);
			_exit(0);
		}
		if (p[4].revents)
			attempt_errors(h);
		if (p[3].revents)
			attempt_control(h);
		if (p[2].revents)
			attempt_end(h);
		if (p[1].revents)
			from_worker(h);
	}
}

/* vx -boxhost BWRAP own|plain, with BOX_FD_* open. */
int vx_boxhost_main(int argc, char **argv)
{
	struct host h = {.sock = BOX_FD_SOCKET,
		.worker = BOX_FD_WORKER,
		.init = BOX_FD_INIT,
		.base = TREE_BASE_INIT,
		.root_fd = -1,
		.newer_fd = -1,
		.record = PLACE_RECORD_INIT};

	if (argc != 4)
		return 1;
	h.bwrap = argv[2];
	h.plain = !strcmp(argv[3], "plain");
	h.at = (struct attempt){.pidfd = -1, .control = -1, .errors = -1, .places = PLACE_SET_INIT};
	for (size_t i = 0; i < sizeof h.rules_fd / sizeof *h.rules_fd; i++)
		h.rules_fd[i] = -1;
	for (int fd = BOX_FD_SOCKET; fd <= BOX_FD_INIT; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return 1;
	/* What whoever started vx has left open is not for bubblewrap and vx-init either. */
	if (close_range(BOX_FD_INIT + 1, ~0U, 0) < 0)
		return 1;
	signal(SIGPIPE, SIG_IGN);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return 1;
	enter(&h);
	serve(&h);
}
