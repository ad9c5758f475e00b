/* The pool's fork server: start, messages, death, sweep, replacement, end. */
#include "pool_internal.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/spawn.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

/* How long a sweep waits while nothing of what it has killed dies: that is an uninterruptible wait
 * in the kernel. It is looked at again at the end. */
#define SWEEP_MS 3000
/* The fork server kills what does not go by itself after VX_FS_END_MS; this is for the case that it
 * does not go itself. */
#define END_MS (2 * VX_FS_END_MS)
/* How long a request may wait for room in the socket, seconds. */
#define SEND_S 10

static int watch(struct vx_pool *p, int fd, uint32_t events)
{
	struct epoll_event e = {.events = events, .data.fd = fd};

	return epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0 ? -errno : 0;
}

static int spawn_server(struct vx_pool *p, int control, const char **ret_step)
{
	char slots[16];
	const char *argv[] = {"forkserver", "-forkserver", slots, p->init_fd >= 0 ? "1" : "0",
		p->bwrap_path, NULL};
	struct vx_spawn_fd fds[6] = {{control, VX_FS_CONTROL_FD}, {p->region.fd, VX_FS_REGION_FD},
		{p->self_fd, VX_FS_SCHEDULER_FD}, {p->event_fd, VX_FS_POOL_EVENT_FD},
		{STDERR_FILENO, STDERR_FILENO}, {p->init_fd, VX_FS_INIT_FD}};
	struct vx_spawn s = VX_SPAWN_INIT;

	snprintf(slots, sizeof slots, "%u", p->n_slots);
	s.path = "/proc/self/exe";
	s.argv = argv;
	s.cwd = "/";
	s.fds = fds;
	s.n_fds = p->init_fd >= 0 ? 6 : 5;
	s.new_session = true;
	s.death_signal = SIGCONT; /* one that is stopped would not see us die */
	return vx_spawn(&s, &p->server_pid, &p->server_fd, ret_step);
}

int pool_server_start(struct vx_pool *p, struct vx_err *err)
{
	const char *step = "socketpair";
	struct timeval patience = {SEND_S, 0};
	int pair[2], r;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return vx_err_set(err, -errno, "cannot start the fork server: socketpair: %s",
			vx_strerror(errno));
	r = spawn_server(p, pair[1], &step);
	vx_close(pair[1]);
	if (r < 0) {
		vx_close(pair[0]);
		return vx_err_set(
			err, r, "cannot start the fork server: %s: %s", step, vx_strerror(r));
	}
	p->control_fd = pair[0];
	/* A fork server that is stopped must not stop us for ever. */
	setsockopt(p->control_fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
	p->stats.fork_servers++;
	r = watch(p, p->control_fd, EPOLLIN);
	if (r == 0)
		r = watch(p, p->server_fd, EPOLLIN);
	if (r < 0) {
		pool_server_end(p);
		return vx_err_set(
			err, r, "cannot watch the fork server: epoll: %s", vx_strerror(r));
	}
	return 0;
}

static int send_fork(const struct vx_pool *p, uint32_t slot)
{
	struct vx_fs_message m = {VX_FS_FORK, slot, p->slots[slot].generation + 1, 0};
	struct iovec iov = {&m, sizeof m};
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} control = {.h = {.cmsg_len = CMSG_LEN(sizeof(int)),
			     .cmsg_level = SOL_SOCKET,
			     .cmsg_type = SCM_RIGHTS}};
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};

	memcpy(CMSG_DATA(&control.h), &p->slots[slot].request_fd, sizeof(int));
	if (sendmsg(p->control_fd, &h, MSG_NOSIGNAL) < 0)
		return errno == ECONNRESET ? -EPIPE : -errno;
	return 0;
}

int pool_server_fork(struct vx_pool *p, uint32_t slot)
{
	struct pollfd f = {p->server_fd, POLLIN, 0};
	int r = send_fork(p, slot);

	/* Its socket closes a moment before it is dead; then there is a replacement to ask. */
	if (r == -EPIPE && poll(&f, 1, VX_FS_END_MS) > 0) {
		pool_server_look(p);
		r = p->broken ? -EPIPE : send_fork(p, slot);
	}
	if (r < 0)
		return r;
	p->slots[slot].generation++;
	p->stats.workers++;
	return 0;
}

void pool_server_kill(struct vx_pool *p, uint32_t slot)
{
	struct vx_fs_message m = {VX_FS_KILL, slot, p->slots[slot].generation, 0};

	if (p->control_fd >= 0)
		/* a fork server that is gone has taken its workers along */
		send(p->control_fd, &m, sizeof m, MSG_NOSIGNAL);
}

static void worker_gone(struct pool_slot *s, int status)
{
	s->has_worker = false;
	s->hosts = false;
	s->lost_status = status;
}

static void take_messages(struct vx_pool *p)
{
	struct vx_fs_message m;

	while (recv(p->control_fd, &m, sizeof m, MSG_DONTWAIT) == sizeof m)
		if ((m.kind == VX_FS_DIED || m.kind == VX_FS_FAILED) && m.slot < p->n_slots &&
			p->slots[m.slot].generation == m.generation)
			worker_gone(&p->slots[m.slot], m.status);
}

static bool is_exempt(void *pool, pid_t pid)
{
	const struct vx_pool *p = pool;

	for (uint32_t i = 0; i < p->exempt.n; i++)
		if (p->exempt.v[i] == pid)
			return true;
	return false;
}

static bool is_worker(void *pool, pid_t pid)
{
	const struct vx_pool *p = pool;

	for (uint32_t i = 0; i < p->n_slots; i++)
		if (p->slots[i].has_worker &&
			atomic_load_explicit(&vx_region_slot(&p->region, i)->worker_pid,
				memory_order_acquire) == (uint32_t)pid)
			return true;
	return false;
}

/* The fork server is dead and reaped: what it left has come to us, or comes when its parent among
 * these dies. */
static void sweep(struct vx_pool *p)
{
	p->unswept = vx_tree_end(is_exempt, is_worker, p, VX_FS_END_MS, SWEEP_MS) < 0;
}

static void forget_server(struct vx_pool *p)
{
	while (waitpid(p->server_pid, NULL, 0) < 0 && errno == EINTR)
		;
	p->server_pid = 0;
	/* both leave the epoll set with their last descriptor */
	p->server_fd = vx_close(p->server_fd);
	p->control_fd = vx_close(p->control_fd);
}

static void server_died(struct vx_pool *p)
{
	bool first = p->stats.fork_servers < 2;

	forget_server(p);
	sweep(p);
	for (uint32_t i = 0; i < p->n_slots; i++)
		if (p->slots[i].has_worker)
			worker_gone(&p->slots[i], POOL_LOST_SERVER);
	p->broken = !first || pool_server_start(p, NULL) < 0;
}

static bool server_is_dead(const struct vx_pool *p)
{
	struct pollfd f = {p->server_fd, POLLIN, 0};

	return poll(&f, 1, 0) > 0;
}

void pool_server_look(struct vx_pool *p)
{
	if (p->server_pid == 0)
		return;
	take_messages(p);
	if (server_is_dead(p))
		server_died(p);
}

static void set_timer(struct vx_pool *p, uint32_t ms)
{
	struct timespec t = {ms / 1000, (ms % 1000) * 1000000L};

	timerfd_settime(p->timer_fd, 0, &(struct itimerspec){t, t}, NULL);
}

void pool_server_expect(struct vx_pool *p, uint32_t slot)
{
	if (p->slots[slot].kill_ns != 0)
		return;
	p->slots[slot].kill_ns = vx_now_ns();
	if (p->timer_fd < 0) {
		p->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
		if (p->timer_fd >= 0 && watch(p, p->timer_fd, EPOLLIN) < 0)
			p->timer_fd = vx_close(p->timer_fd);
	}
	if (p->timer_fd >= 0) /* without a descriptor for it the worker is trusted */
		set_timer(p, VX_FS_END_MS / 2);
}

/* A worker that is stopped, or hangs in the kernel, is killed by the fork server, which sweeps what
 * it had started; a fork server that does not do that in time is killed too, and then the sweep is
 * ours. */
void pool_server_overdue(struct vx_pool *p)
{
	uint64_t now = vx_now_ns(), ticks;
	bool waiting = false, hangs = false;

	if (vx_read(p->timer_fd, &ticks, sizeof ticks) < 0)
		return;
	for (uint32_t i = 0; i < p->n_active; i++) {
		struct pool_slot *s = &p->slots[p->active[i]];
		uint64_t ms = s->kill_ns != 0 && s->has_worker ? (now - s->kill_ns) / 1000000 : 0;

		waiting |= s->kill_ns != 0;
		hangs |= ms >= 2 * VX_FS_END_MS;
		if (ms >= VX_FS_END_MS && !s->overdue) {
			s->overdue = true;
			pool_server_kill(p, p->active[i]);
		}
	}
	if (hangs && p->server_pid > 0) {
		kill(p->server_pid, SIGKILL);
		while (!server_is_dead(p) && poll(NULL, 0, 1) == 0 &&
			vx_now_ns() - now < VX_FS_END_MS * 1000000ULL)
			continue;
		pool_server_look(p);
	}
	if (!waiting)
		set_timer(p, 0);
}

void pool_server_end(struct vx_pool *p)
{
	struct vx_fs_message m = {.kind = VX_FS_END};
	struct pollfd f = {p->server_fd, POLLIN, 0};
	uint64_t end = vx_now_ns() + END_MS * 1000000ULL, now;
	bool clean = false;
	int status;

	if (p->server_pid == 0)
		return;
	send(p->control_fd, &m, sizeof m, MSG_NOSIGNAL);
	while ((now = vx_now_ns()) < end)
		if (poll(&f, 1, (int)((end - now) / 1000000) + 1) > 0)
			break;
	if (now >= end)
		kill(p->server_pid, SIGKILL);
	else
		clean = waitpid(p->server_pid, &status, WNOHANG) == p->server_pid &&
			WIFEXITED(status) && WEXITSTATUS(status) == 0;
	if (clean) {
		p->server_fd = vx_close(p->server_fd);
		p->control_fd = vx_close(p->control_fd);
		p->server_pid = 0;
		if (p->unswept)
			sweep(p);
		return;
	}
	forget_server(p);
	sweep(p);
}
