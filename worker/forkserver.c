/* The fork server: small, single-threaded, boring. It creates workers, reaps them, and leaves
 * nothing of theirs alive; the contract with the pool is vx/forkserver.h.
 *
 * Its children are its workers, and orphans of workers that died, which the kernel hands to it as
 * the nearest subreaper. So: whatever is a child and not a worker is killed. A worker's death is
 * reported when all orphans of that moment are gone. */
#include "worker.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/forkserver.h"
#include "vx/limits.h"
#include "vx/point.h"
#include "vx/pool.h"
#include "vx/proctree.h"
#include "vx/spawn.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

struct entry {
	pid_t pid; /* 0: no worker */
	uint32_t generation;
	bool dead;   /* to be reported once the orphans are gone */
	bool failed; /* it could not be forked; to be reported like a dead one */
	int status;
};

struct fork_server {
	struct vx_region region;
	uint32_t slots, workers;
	struct entry *entries;  /* by slot */
	int self_fd;            /* pidfd of this process, for the workers */
	int init_fd;            /* -1 none */
	const char *bwrap_path; /* NULL none */
	bool sweeping, ending;
	uint64_t end_ns; /* when what has not gone by itself is killed */
};

static volatile sig_atomic_t child_died;

static void on_sigchld(int sig)
{
	(void)sig;
	child_died = 1;
}

static bool is_worker(void *server, pid_t pid)
{
	const struct fork_server *f = server;

	for (uint32_t i = 0; i < f->slots; i++)
		if (f->entries[i].pid == pid)
			return true;
	return false;
}

/* Our parent is dead, or something that cannot happen has: nothing below us may survive. The
 * workers end their own trees first. */
__attribute__((noreturn)) static void end_everything(struct fork_server *f, int status)
{
	/* The parent's socket closes before it is dead: then they have been waited for already. */
	uint64_t now = vx_now_ns(), until = f->ending ? f->end_ns : now + VX_FS_END_MS * 1000000ULL;

	vx_tree_end(NULL, is_worker, f, until > now ? (uint32_t)((until - now) / 1000000) : 0, 0);
	_exit(status);
}

/* False: the pool does not read just now; again later. */
static bool report(struct fork_server *f, uint32_t slot)
{
	const struct entry *e = &f->entries[slot];
	struct vx_fs_message m = {
		e->failed ? VX_FS_FAILED : VX_FS_DIED, slot, e->generation, e->status};

	if (send(VX_FS_CONTROL_FD, &m, sizeof m, MSG_NOSIGNAL | MSG_DONTWAIT) == sizeof m)
		return true;
	if (errno != EAGAIN && errno != EPIPE && errno != ECONNRESET)
		end_everything(f, 71);
	return errno != EAGAIN || f->ending;
}

__attribute__((noreturn)) static void become_worker(
	struct fork_server *f, uint32_t slot, int request_fd)
{
	struct vx_worker_start s = {f->region, slot, request_fd, VX_FS_POOL_EVENT_FD,
		VX_FS_SCHEDULER_FD, f->self_fd, f->init_fd, f->bwrap_path};

	vx_close(VX_FS_CONTROL_FD);
	vx_worker_main(&s);
}

static void create_worker(struct fork_server *f, const struct vx_fs_message *m, int request_fd)
{
	struct entry *e = &f->entries[m->slot];
	struct vx_slot *s = vx_region_slot(&f->region, m->slot);
	pid_t pid;

	if (e->pid != 0 || e->dead || request_fd < 0)
		end_everything(f, 70);
	pid = fork();
	if (pid == 0)
		become_worker(f, m->slot, request_fd);
	if (pid < 0) {
		*e = (struct entry){0, m->generation, true, true, -errno};
		f->sweeping = true;
		return;
	}
	VX_POINT("forkserver.forked");
	*e = (struct entry){pid, m->generation, false, false, 0};
	f->workers++;
	s->generation = m->generation;
	atomic_store_explicit(&s->worker_pid, (uint32_t)pid, memory_order_release);
}

/* Everybody was asked to go through his own ring. */
static void begin_end(struct fork_server *f)
{
	if (!f->ending)
		f->end_ns = vx_now_ns() + VX_FS_END_MS * 1000000ULL;
	f->ending = true;
}

static void take_message(struct fork_server *f)
{
	struct vx_fs_message m;
	struct iovec iov = {&m, sizeof m};
	union {
		struct cmsghdr h;
		char space[CMSG_SPACE(sizeof(int))];
	} control;
	struct msghdr h = {.msg_iov = &iov,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof control};
	ssize_t n = recvmsg(VX_FS_CONTROL_FD, &h, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	int fd = -1;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		begin_end(f);
		return;
	}
	if (h.msg_controllen >= sizeof(struct cmsghdr) && control.h.cmsg_level == SOL_SOCKET &&
		control.h.cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(&control.h), sizeof fd);
	if (n != (ssize_t)sizeof m || m.slot >= f->slots)
		end_everything(f, 70);
	if (m.kind == VX_FS_FORK)
		create_worker(f, &m, fd);
	else if (m.kind == VX_FS_KILL && f->entries[m.slot].pid > 0 &&
		 f->entries[m.slot].generation == m.generation)
		kill(f->entries[m.slot].pid, SIGKILL);
	else if (m.kind == VX_FS_END)
		begin_end(f);
	vx_close(fd);
}

static void reap(struct fork_server *f)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (uint32_t i = 0; i < f->slots; i++)
			if (f->entries[i].pid == pid) {
				struct entry *e = &f->entries[i];

				e->pid = 0;
				e->dead = true;
				e->status = status;
				f->workers--;
				f->sweeping = true;
				VX_POINT("forkserver.reaped");
				atomic_store_explicit(&vx_region_slot(&f->region, i)->worker_pid, 0,
					memory_order_release);
			}
}

/* One pass over the orphans; when there are known to be none left, the dead are reported. */
static void sweep(struct fork_server *f)
{
	if (vx_tree_kill(is_worker, f) != 0) {
		reap(f);
		if (vx_tree_kill(is_worker, f) != 0)
			return; /* SIGCHLD or VX_KILL_AGAIN_MS brings us back */
	}
	f->sweeping = false;
	VX_POINT("forkserver.swept");
	for (uint32_t i = 0; i < f->slots; i++)
		if (f->entries[i].dead) {
			f->entries[i].dead = !report(f, i);
			f->sweeping |= f->entries[i].dead;
		}
}

static void wait_for_work(struct fork_server *f)
{
	struct pollfd p[2] = {
		{VX_FS_SCHEDULER_FD, POLLIN, 0}, {f->ending ? -1 : VX_FS_CONTROL_FD, POLLIN, 0}};
	struct timespec ts = {0, VX_KILL_AGAIN_MS * 1000000L};
	sigset_t none;

	sigemptyset(&none);
	if (ppoll(p, 2, f->sweeping || f->ending ? &ts : NULL, &none) < 0)
		return;
	if (p[0].revents != 0)
		end_everything(f, 0);
}

/* The descriptors came through exec: close-on-exec again, so that no task inherits one. What else
 * came through is the business of who started vx. */
static int take_descriptors(struct fork_server *f, bool init)
{
	int n = init ? VX_FS_INIT_FD + 1 : VX_FS_INIT_FD;

	for (int fd = VX_FS_CONTROL_FD; fd < n; fd++)
		if (fcntl(fd, F_SETFD, FD_CLOEXEC) < 0)
			return -errno;
	f->init_fd = init ? VX_FS_INIT_FD : -1;
	if (close_range((unsigned)n, ~0U, 0) < 0)
		return -errno;
	f->self_fd = vx_pidfd_open(getpid());
	if (f->self_fd < 0)
		return f->self_fd;
	return vx_region_attach(VX_FS_REGION_FD, &f->region);
}

int vx_forkserver_main(int argc, char **argv)
{
	static struct fork_server f;
	uint64_t slots;

	if (argc != 5 || vx_parse_u64(argv[2], VX_MAX_SLOTS, &slots) < 0 || slots == 0)
		return 64;
	vx_nofile_raise(); /* for workers, which are forks; their tasks get the old limit back */
	vx_tree_ignore_signals();
	/* not what `pkill -KILL vx` takes for us: see vx/forkserver.h */
	vx_tree_keep("forkserver", on_sigchld);
	if (take_descriptors(&f, argv[3][0] == '1') < 0 ||
		vx_region_header(&f.region)->slots != slots)
		return 70;
	f.slots = (uint32_t)slots;
	f.bwrap_path = argv[4][0] != 0 ? argv[4] : NULL;
	f.entries = calloc(slots, sizeof *f.entries);
	if (f.entries == NULL)
		return 71;
	while (!f.ending || f.workers > 0 || f.sweeping) {
		wait_for_work(&f);
		if (child_died) {
			child_died = 0; /* first: who dies from here on sets it again */
			reap(&f);
		}
		if (!f.ending)
			take_message(&f);
		if (f.sweeping)
			sweep(&f);
		if (f.ending && f.workers > 0 && vx_now_ns() >= f.end_ns)
			end_everything(&f, 0);
	}
	end_everything(&f, 0);
}
