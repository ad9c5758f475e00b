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
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

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
	p = strrchr(buf, ')'); /* the name may hold anything, but nothing after it holds a parenthesis */
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

int vx_tree_kill(vx_spare_fn spare, void *arg)
{
	struct vx_pids pids = {0};
	int r = vx_tree_children(&pids), n = 0;

	for (uint32_t i = 0; i < pids.n; i++) {
		if (spare != NULL && spare(arg, pids.v[i]))
			continue;
		/* Only we reap our children, so the number cannot have been given away. */
		if (kill(pids.v[i], SIGKILL) == 0 || errno != EPERM)
			n++;
	}
	vx_pids_free(&pids);
	return r < 0 ? r : n;
}

/* One pass of vx_tree_end; true when another is needed. */
static bool end_pass(vx_spare_fn spare, vx_spare_fn patient, void *arg)
{
	struct vx_pids pids = {0};
	bool again = vx_tree_children(&pids) < 0;

	for (uint32_t i = 0; i < pids.n; i++) {
		if (spare != NULL && spare(arg, pids.v[i]))
			continue;
		if (waitpid(pids.v[i], NULL, WNOHANG) == pids.v[i])
			again = true; /* what was below it has come to us */
		else if (patient != NULL && patient(arg, pids.v[i]))
			again = true;
		else
			again |= kill(pids.v[i], SIGKILL) == 0 || errno != EPERM;
	}
	vx_pids_free(&pids);
	return again;
}

int vx_tree_end(vx_spare_fn spare, vx_spare_fn patient, void *arg, uint32_t patience_ms, uint32_t limit_ms)
{
	uint64_t start = vx_now_ns(), ms = 1000000;
	struct timespec pause = {0, 500000};

	while (end_pass(spare, patient, arg)) {
		uint64_t passed = (vx_now_ns() - start) / ms;

		if (passed >= patience_ms)
			patient = NULL;
		if (limit_ms != 0 && passed >= limit_ms)
			return -ETIMEDOUT;
		nanosleep(&pause, NULL);
	}
	return 0;
}

struct node {
	pid_t pid;
	int pidfd; /* -1: out of descriptors; the number must do */
};

struct nodes {
	struct node *v;
	uint32_t n, cap;
};

/* Pins `pid`, and keeps it when it still hangs below `parent` or has come to us as an orphan. */
static void pin(struct nodes *t, pid_t pid, pid_t parent, pid_t self)
{
	int fd;
	pid_t now;

	for (uint32_t i = 0; i < t->n; i++)
		if (t->v[i].pid == pid) /* it came to us while we walked */
			return;
	fd = vx_pidfd_open(pid);
	if (fd == -ESRCH)
		return;
	now = parent_of(pid);
	if (now != parent && now != self) {
		vx_close(fd);
		return;
	}
	if (t->n == t->cap) {
		t->cap = t->cap > 0 ? 2 * t->cap : 64;
		t->v = vx_xrealloc(t->v, t->cap * sizeof *t->v);
	}
	t->v[t->n++] = (struct node){pid, fd < 0 ? -1 : fd};
}

int vx_tree_signal(int sig, vx_spare_fn spare, void *arg)
{
	struct vx_pids pids = {0};
	struct nodes t = {0};
	pid_t self = getpid();
	int r = vx_tree_children(&pids), n = 0;

	for (uint32_t i = 0; i < pids.n; i++)
		if (spare == NULL || !spare(arg, pids.v[i]))
			pin(&t, pids.v[i], self, self);
	for (uint32_t at = 0; at < t.n; at++) {
		pids.n = 0;
		children_of(t.v[at].pid, &pids);
		for (uint32_t i = 0; i < pids.n; i++)
			pin(&t, pids.v[i], t.v[at].pid, self);
	}
	for (uint32_t i = 0; i < t.n; i++) {
		n += (t.v[i].pidfd >= 0 ? vx_pidfd_signal(t.v[i].pidfd, sig) : kill(t.v[i].pid, sig)) == 0;
		vx_close(t.v[i].pidfd);
	}
	free(t.v);
	vx_pids_free(&pids);
	return r < 0 ? r : n;
}
