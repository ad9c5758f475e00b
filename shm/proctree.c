/* Process trees; the contract is vx/proctree.h. */
#include "vx/proctree.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/fd.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* A walk that freezes looks again at most this often for what came meanwhile; who calls it comes
 * back anyway while somebody is left. */
enum { LOOKS = 8 };

void vx_tree_keep(const char *name, void (*on_sigchld)(int))
{
	struct sigaction sa = {.sa_handler = on_sigchld};
	sigset_t chld;

	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prctl(PR_SET_NAME, name);
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_SETMASK, &chld, NULL);
	sigaction(SIGCHLD, &sa, NULL);
}

void vx_tree_ignore_signals(void)
{
	static const int ignored[] = {
		SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP, SIGTTIN, SIGTTOU};

	for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++)
		signal(ignored[i], SIG_IGN);
}

static void add(struct vx_pids *p, pid_t pid)
{
	if (p->n == p->cap) {
		p->cap = p->cap > 0 ? 2 * p->cap : 64;
		p->v = vx_xrealloc(p->v, p->cap * sizeof *p->v);
	}
	p->v[p->n++] = pid;
}

void vx_pids_free(struct vx_pids *p)
{
	free(p->v);
	*p = (struct vx_pids){0};
}

/* Reads a list of decimal numbers; one may straddle two reads. */
static int read_pids(int fd, struct vx_pids *ret)
{
	char buf[4096];
	pid_t pid = 0;

	for (;;) {
		ssize_t n = vx_read(fd, buf, sizeof buf);

		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] >= '0' && buf[i] <= '9') {
				pid = pid * 10 + (buf[i] - '0');
			} else if (pid > 0) {
				add(ret, pid);
				pid = 0;
			}
		}
	}
	if (pid > 0)
		add(ret, pid);
	return 0;
}

/* The parent of `pid`, or -1 when there is no such process. */
static pid_t parent_of(pid_t pid)
{
	char path[64], buf[512], *p;
	ssize_t n;
	int fd, ppid;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return -1;
	n = vx_read(fd, buf, sizeof buf - 1);
	vx_close(fd);
	if (n <= 0)
		return -1;
	buf[n] = 0;
	/* the name may hold anything, but nothing after it holds a parenthesis */
	p = strrchr(buf, ')');
	return p != NULL && sscanf(p + 1, " %*c %d", &ppid) == 1 ? ppid : -1;
}

static int children_by_scan(pid_t of, struct vx_pids *ret)
{
	DIR *d = opendir("/proc");
	struct dirent *e;

	if (d == NULL)
		return -errno;
	while ((e = readdir(d)) != NULL) {
		pid_t pid = e->d_name[0] >= '1' && e->d_name[0] <= '9' ? atoi(e->d_name) : 0;

		if (pid > 0 && parent_of(pid) == of)
			add(ret, pid);
	}
	closedir(d);
	return 0;
}

static int children_of_thread(pid_t pid, pid_t tid, struct vx_pids *ret)
{
	char path[96];
	int fd, r;

	snprintf(path, sizeof path, "/proc/%d/task/%d/children", (int)pid, (int)tid);
	fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	r = read_pids(fd, ret);
	vx_close(fd);
	return r;
}

int vx_tree_children(struct vx_pids *ret)
{
	pid_t self = getpid();
	int r = children_of_thread(self, self, ret);

	return r == -ENOENT ? children_by_scan(self, ret) : r;
}

/* Of any process; one that is gone has none. */
static void children_of(pid_t pid, struct vx_pids *ret)
{
	char path[64];
	struct dirent *e;
	bool listed = false;
	DIR *d;

	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (d == NULL)
		return;
	while ((e = readdir(d)) != NULL)
		if (e->d_name[0] != '.')
			listed |= children_of_thread(pid, atoi(e->d_name), ret) == 0;
	closedir(d);
	if (!listed)
		children_by_scan(pid, ret);
}

struct node {
	pid_t pid;
	/* -1: a child of ours, whose number stays its own until we reap it; or we are out of
	 * descriptors, and the number must do */
	int pidfd;
};

struct nodes {
	struct node *v;
	uint32_t n, cap;
	uint32_t own; /* children of ours at the first look that can be killed, or are dead */
	bool freeze;  /* stops each as it is found, and its children are looked for after that */
};

static int node_signal(const struct node *n, int sig)
{
	if (n->pidfd >= 0)
		return vx_pidfd_signal(n->pidfd, sig);
	return kill(n->pid, sig) < 0 ? -errno : 0;
}

static bool is_known(const struct nodes *t, pid_t pid)
{
	for (uint32_t i = t->n; i-- > 0;)
		if (t->v[i].pid == pid)
			return true;
	return false;
}

/* False: it is another user's. */
static bool keep(struct nodes *t, pid_t pid, int pidfd)
{
	struct node *n;

	if (t->n == t->cap) {
		t->cap = t->cap > 0 ? 2 * t->cap : 64;
		t->v = vx_xrealloc(t->v, t->cap * sizeof *t->v);
	}
	n = &t->v[t->n++];
	*n = (struct node){pid, pidfd};
	return node_signal(n, t->freeze ? SIGSTOP : 0) != -EPERM;
}

/* Pins `pid`, and keeps it when it still hangs below `parent` or has come to us as an orphan. */
static void pin(struct nodes *t, pid_t pid, pid_t parent, pid_t self)
{
	int fd;
	pid_t now;

	if (is_known(t, pid)) /* it came to us while we walked */
		return;
	fd = vx_pidfd_open(pid);
	if (fd == -ESRCH)
		return;
	now = parent_of(pid);
	if (now == parent || now == self)
		keep(t, pid, fd < 0 ? -1 : fd);
	else
		vx_close(fd);
}

static bool is_dead(pid_t child)
{
	siginfo_t info = {0};

	return waitid(P_PID, (id_t)child, &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
	       info.si_pid == child;
}

/* Our own children, the newest first and at once: what hands itself on as fast as it can is caught
 * here or hardly. */
static int walk_own(struct nodes *t, vx_spare_fn spare, void *arg, bool count)
{
	struct vx_pids pids = {0};
	int r = vx_tree_children(&pids);

	for (uint32_t i = pids.n; i-- > 0;) {
		pid_t pid = pids.v[i];

		if (spare != NULL && spare(arg, pid))
			continue;
		if (is_dead(pid) || is_known(t, pid) || keep(t, pid, -1))
			t->own += count;
	}
	vx_pids_free(&pids);
	return r;
}

/* Everything below us, parents before children. Frozen, a tree cannot grow away from the walk: what
 * is stopped makes no more processes, and what it had made is found below it. Only what forked and
 * went between two looks appears as a new child of ours, so that the look is repeated until it
 * finds nothing new. */
static int walk(struct nodes *t, vx_spare_fn spare, void *arg)
{
	struct vx_pids pids = {0};
	pid_t self = getpid();
	uint32_t at = 0, before;
	int r = 0;

	for (int look = 0; look < LOOKS; look++) {
		before = t->n;
		r = walk_own(t, spare, arg, look == 0);
		for (; at < t->n; at++) {
			pids.n = 0;
			children_of(t->v[at].pid, &pids);
			for (uint32_t i = 0; i < pids.n; i++)
				pin(t, pids.v[i], t->v[at].pid, self);
		}
		if (r < 0 || !t->freeze || t->n == before)
			break;
	}
	vx_pids_free(&pids);
	return r;
}

static void forget(struct nodes *t)
{
	for (uint32_t i = 0; i < t->n; i++)
		vx_close(t->v[i].pidfd);
	free(t->v);
}

int vx_tree_kill(vx_spare_fn spare, void *arg)
{
	struct nodes t = {.freeze = true};
	int r = walk(&t, spare, arg);

	/* Children before parents: nobody lives to see one that he watches die, and no stopped one
	 * is woken because his parent's end orphans his group. */
	for (uint32_t i = t.n; i-- > 0;)
		node_signal(&t.v[i], SIGKILL);
	forget(&t);
	return r < 0 ? r : (int)t.own;
}

struct ending {
	vx_spare_fn spare, patient; /* patient: NULL when the time is over */
	void *arg;
	struct vx_pids last; /* who was there in the pass before */
};

static bool is_left_alone(void *arg, pid_t pid)
{
	const struct ending *e = arg;

	return (e->spare != NULL && e->spare(e->arg, pid)) ||
	       (e->patient != NULL && e->patient(e->arg, pid));
}

/* One pass of vx_tree_end; true when another is needed. `ret_moved`: something has died or come
 * since the last pass. */
static bool end_pass(struct ending *e, bool *ret_moved)
{
	struct vx_pids now = {0};
	bool again = vx_tree_children(&now) < 0, unkind = again;
	uint32_t kept = 0;

	*ret_moved = false;
	for (uint32_t i = 0; i < now.n; i++) {
		if (e->spare != NULL && e->spare(e->arg, now.v[i]))
			continue;
		if (waitpid(now.v[i], NULL, WNOHANG) == now.v[i]) {
			again = *ret_moved = true; /* what was below it has come to us */
			continue;
		}
		now.v[kept++] = now.v[i];
		if (e->patient != NULL && e->patient(e->arg, now.v[i]))
			again = true;
		else
			unkind = true;
	}
	now.n = kept;
	*ret_moved |= now.n != e->last.n ||
		      (now.n > 0 && memcmp(now.v, e->last.v, now.n * sizeof *now.v) != 0);
	vx_pids_free(&e->last);
	e->last = now;
	return (unkind && vx_tree_kill(is_left_alone, e) != 0) || again;
}

int vx_tree_end(
	vx_spare_fn spare, vx_spare_fn patient, void *arg, uint32_t patience_ms, uint32_t limit_ms)
{
	struct ending e = {spare, patient, arg, {0}};
	uint64_t start = vx_now_ns(), since = start, ms = 1000000;
	struct timespec pause = {0, 500000};
	bool moved;
	int r = 0;

	while (end_pass(&e, &moved)) {
		uint64_t now = vx_now_ns();

		if (moved || e.patient != NULL)
			since = now;
		if ((now - start) / ms >= patience_ms)
			e.patient = NULL;
		if (limit_ms != 0 && (now - since) / ms >= limit_ms) {
			r = -ETIMEDOUT;
			break;
		}
		nanosleep(&pause, NULL);
	}
	vx_pids_free(&e.last);
	return r;
}

int vx_tree_signal(int sig, vx_spare_fn spare, void *arg)
{
	struct nodes t = {.freeze = false};
	int r = walk(&t, spare, arg), n = 0;

	for (uint32_t i = 0; i < t.n; i++)
		n += node_signal(&t.v[i], sig) == 0;
	forget(&t);
	return r < 0 ? r : n;
}
