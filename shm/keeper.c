/* Keepers; the contract is vx/keeper.h. */
#include "vx/keeper.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Descriptors of a keeper; PROGRAM's own for N and above stand at N + VX_KEEPER_FDS. */
enum { FD_SOCKET = 3, FD_VX, FD_FIRST };

_Static_assert(FD_FIRST == 3 + VX_KEEPER_FDS, "PROGRAM's descriptors begin behind the keeper's");

/* ---- vx ---- */

/* The program's descriptors for 3 and above move up; 0, 1 and 2 stay. */
static int keeper_fds(const struct vx_spawn *s, int socket, int self, struct vx_spawn_fd *fds,
	uint32_t *ret_n, int *ret_top)
{
	uint32_t n = 0;

	if (s->n_fds + VX_KEEPER_FDS > VX_MAX_SPAWN_FDS)
		return -E2BIG;
	*ret_top = 2;
	for (uint32_t i = 0; i < s->n_fds; i++) {
		int to = s->fds[i].to;

		if (to > *ret_top)
			*ret_top = to;
		fds[n++] =
			(struct vx_spawn_fd){s->fds[i].from, to < 3 ? to : to + (int)VX_KEEPER_FDS};
	}
	fds[n++] = (struct vx_spawn_fd){socket, FD_SOCKET};
	fds[n++] = (struct vx_spawn_fd){self, FD_VX};
	*ret_n = n;
	return 0;
}

static int start_below(const struct vx_spawn *s, int socket, int self, struct vx_keeper *k)
{
	struct vx_spawn_fd fds[VX_MAX_SPAWN_FDS];
	struct vx_spawn keeper = *s;
	uint32_t argc = 0, n_fds;
	char number[16];
	int top, r = keeper_fds(s, socket, self, fds, &n_fds, &top);

	if (r < 0)
		return r;
	while (s->argv[argc] != NULL)
		argc++;
	const char **argv = vx_xcalloc(argc + 5, sizeof *argv);
	snprintf(number, sizeof number, "%d", top);
	argv[0] = "keeper";
	argv[1] = "-keeper";
	argv[2] = number;
	argv[3] = s->path;
	memcpy(argv + 4, s->argv, argc * sizeof *argv);
	keeper.path = "/proc/self/exe";
	keeper.argv = argv;
	keeper.fds = fds;
	keeper.n_fds = n_fds;
	keeper.new_session = true;
	keeper.pgroup = 0;
	keeper.death_signal = SIGCONT; /* one that is stopped would not see us die */
	r = vx_spawn(&keeper, &k->pid, &k->pidfd, NULL);
	free(argv);
	return r;
}

int vx_keeper_start(const struct vx_spawn *s, struct vx_keeper *ret)
{
	struct vx_keeper k = {.pidfd = -1, .socket = -1};
	int pair[2], self, r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	r = self = vx_pidfd_open(getpid());
	if (r >= 0) {
		/* In front: what both keepers leave comes to us, and is what is there beside
		 * these. */
		prctl(PR_SET_CHILD_SUBREAPER, 1);
		r = vx_tree_children(&k.before);
	}
	if (r >= 0)
		r = start_below(s, pair[1], self, &k);
	vx_close(self);
	vx_close(pair[1]);
	if (r < 0) {
		vx_close(pair[0]);
		vx_pids_free(&k.before);
		return r;
	}
	k.socket = pair[0];
	*ret = k;
	return 0;
}

int vx_keeper_status(const struct vx_keeper *k, int *ret_status)
{
	struct vx_keeper_word w = {0, SIGKILL};

	if (recv(k->socket, &w, sizeof w, MSG_DONTWAIT) == sizeof w && w.error < 0)
		return w.error;
	*ret_status = w.status;
	return 0;
}

static bool was_before(void *keeper, pid_t pid)
{
	const struct vx_keeper *k = keeper;

	for (uint32_t i = 0; i < k->before.n; i++)
		if (k->before.v[i] == pid)
			return true;
	return false;
}

/* What outlived the outer keeper: an inner one that ends its tree itself, or that tree. */
static bool anybody(void *keeper, pid_t pid)
{
	(void)keeper;
	(void)pid;
	return true;
}

void vx_keeper_end(struct vx_keeper *k)
{
	struct pollfd p = {k->pidfd, POLLIN, 0};
	uint64_t end = vx_now_ns() + 3 * VX_KEEPER_END_MS * 1000000ULL, now;
	int status = 0;

	k->socket = vx_close(k->socket);
	vx_pidfd_signal(k->pidfd, SIGCONT);
	while ((now = vx_now_ns()) < end)
		if (poll(&p, 1, (int)((end - now) / 1000000) + 1) > 0)
			break;
	bool late = now >= end;
	if (late)
		vx_pidfd_signal(k->pidfd, SIGKILL); /* the inner one goes on below us */
	while (waitpid(k->pid, &status, 0) < 0 && errno == EINTR)
		continue;
	if (!late && status != 0 && gettid() == getpid())
		vx_tree_end(was_before, anybody, k, VX_KEEPER_END_MS, 3 * VX_KEEPER_END_MS);
	k->pidfd = vx_close(k->pidfd);
	vx_pids_free(&k->before);
}

/* ---- the keepers ---- */

static void on_sigchld(int sig)
{
	(void)sig; /* it ends the sleep */
}

/* What PROGRAM writes to is PROGRAM's alone, or it would not end with it. */
static int let_go(int top)
{
	int null = vx_open(AT_FDCWD, "/dev/null", O_RDWR, 0), r = null;

	for (int fd = 0; r >= 0 && fd < 3; fd++)
		r = dup3(null, fd, O_CLOEXEC);
	if (r < 0)
		return -errno;
	vx_close(null);
	return top > 2 && close_range(FD_FIRST, (unsigned)top + VX_KEEPER_FDS, 0) < 0 ? -errno : 0;
}

__attribute__((noreturn)) static void end_below(int status)
{
	vx_tree_end(NULL, NULL, NULL, 0, 0);
	_exit(status);
}

static int start_program(int top, char **argv, pid_t *ret)
{
	struct vx_spawn_fd fds[VX_MAX_SPAWN_FDS];
	struct vx_spawn s = VX_SPAWN_INIT;
	int pidfd, r;

	for (int fd = 0; fd <= top; fd++) {
		int from = fd < 3 ? fd : fd + (int)VX_KEEPER_FDS;

		if (fcntl(from, F_GETFD) >= 0)
			fds[s.n_fds++] = (struct vx_spawn_fd){from, fd};
	}
	s.path = argv[0];
	s.argv = (const char *const *)argv + 1;
	s.fds = fds;
	s.new_session = true;
	s.death_signal = SIGKILL;
	r = vx_spawn(&s, ret, &pidfd, NULL);
	if (r == 0)
		vx_close(pidfd);
	return r;
}

static void say(int error, int status)
{
	struct vx_keeper_word w = {error, status};

	send(FD_SOCKET, &w, sizeof w, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* Until somebody above is gone, or vx has closed the socket. */
__attribute__((noreturn)) static void inner(int outer_fd, int top, char **argv)
{
	struct pollfd p[3] = {{FD_SOCKET, POLLIN, 0}, {FD_VX, POLLIN, 0}, {outer_fd, POLLIN, 0}};
	sigset_t none;
	pid_t program = 0, pid;
	int status, r;

	prctl(PR_SET_NAME, "vx-keeper");
	prctl(PR_SET_PDEATHSIG, SIGCONT);
	prctl(PR_SET_CHILD_SUBREAPER, 1); /* that is not inherited */
	sigemptyset(&none);
	r = start_program(top, argv, &program);
	if (r == 0)
		r = let_go(top);
	if (r < 0)
		say(r, 0);
	for (;;) {
		if (ppoll(p, 3, NULL, &none) > 0)
			end_below(0);
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == program)
				say(0, status);
	}
}

/* The inner one ends its own tree; killed before that, with us killed next, it would leave it to
 * nobody. */
static bool is_inner(void *pid_of_inner, pid_t pid)
{
	return pid == *(const pid_t *)pid_of_inner;
}

__attribute__((noreturn)) static void outer(pid_t child)
{
	struct pollfd p = {FD_VX, POLLIN, 0};
	sigset_t none;
	int status;
	pid_t pid;

	sigemptyset(&none);
	for (;;) {
		int n = ppoll(&p, 1, NULL, &none);

		while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
			if (pid == child)
				end_below(0);
		if (n > 0) {
			vx_tree_end(NULL, is_inner, &child, VX_KEEPER_END_MS, 0);
			_exit(0);
		}
	}
}

int vx_keeper_main(int argc, char **argv)
{
	uint64_t top;
	int self;
	pid_t pid;

	if (argc < 5 || vx_parse_u64(argv[2], VX_MAX_SPAWN_FDS - VX_KEEPER_FDS, &top) < 0 ||
		top < 2)
		return 64;
	vx_tree_ignore_signals();
	vx_tree_keep("keeper", on_sigchld);
	for (int fd = FD_SOCKET; fd <= (int)top + (int)VX_KEEPER_FDS; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0 && errno != EBADF)
			return 70;
	/* What whoever started vx has left open is not for PROGRAM. */
	if (close_range((unsigned)top + VX_KEEPER_FDS + 1, ~0U, 0) < 0)
		return 70;
	self = vx_pidfd_open(getpid());
	pid = self < 0 ? -1 : fork();
	if (pid == 0)
		inner(self, (int)top, argv + 3);
	if (pid < 0) {
		say(-errno, 0);
		return 71;
	}
	vx_close(FD_SOCKET);
	if (let_go((int)top) < 0)
		end_below(71);
	outer(pid);
}
