/* One task in the box host: from its request to its verdict. */
#include "../request/denies.h"
#include "host.h"

#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/point.h"
#include "vx/proctree.h"
#include "vx/spawn.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void answer(struct host *h, enum vx_box_kind kind)
{
	struct box_msg m = {.kind = BOX_EVENT, .box_kind = kind, .done = h->at.done};

	/* When the worker is gone its pidfd says so, and the loop ends. */
	box_send(h->sock, &m, NULL, 0);
}

static void add_text(struct attempt *a, const char *text)
{
	size_t n = strlen(a->done.text);

	snprintf(a->done.text + n, sizeof a->done.text - n, "%s%s", n ? "\n" : "", text);
	n = strlen(a->done.text);
	while (n && a->done.text[n - 1] == '\n')
		a->done.text[--n] = '\0';
}

/* Everything of an attempt but its process, which is gone. */
static void clean_up(struct host *h, struct vx_buf *untouched)
{
	struct attempt *a = &h->at;

	a->control = vx_close(a->control);
	a->errors = vx_close(a->errors);
	a->pidfd = vx_close(a->pidfd);
	tree_forget(&a->tree);
	place_sweep(&a->places, untouched);
}

static void forget(struct host *h)
{
	vx_buf_free(&h->at.complaints);
	vx_arena_free(&h->at.arena);
	h->at = (struct attempt){
		.pidfd = -1, .control = -1, .errors = -1, .places = PLACE_SET_INIT};
}

static void refuse(struct host *h, const struct vx_err *err)
{
	clean_up(h, NULL);
	place_record_clear(&h->record);
	h->at.done.end = VX_END_REFUSED;
	vx_err_line(err, h->at.done.text, sizeof h->at.done.text);
	answer(h, VX_BOX_REFUSED);
	forget(h);
}

static int read_request(struct host *h, int fd, const char **ret_record_dir, struct vx_err *err)
{
	struct stat st;
	int r = fstat(fd, &st) < 0 ? -errno : 0;

	if (r == 0 && (st.st_size <= 0 || st.st_size > (off_t)BOX_MAX_REQUEST))
		r = -EBADMSG;
	if (r == 0) {
		void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		r = p == MAP_FAILED ? -errno
				    : box_request_decode(p, (size_t)st.st_size, &h->at.arena,
					      &h->at.r, ret_record_dir);
		if (p != MAP_FAILED)
			munmap(p, (size_t)st.st_size);
	}
	return r < 0 ? vx_err_set(err, r, "sandbox: the request did not arrive whole: %s",
			       vx_strerror(r))
		     : 0;
}

/* What of /proc root's uid could write is bound read-only over itself, before everything else. */
static void add_covers(struct host *h)
{
	struct vx_sbx_request *r = &h->at.r;

	if (r->weaker || !h->n_covers)
		return;
	struct vx_mount *m = vx_arena_array(&h->at.arena, r->n_mounts + h->n_covers, sizeof *m);
	for (uint32_t i = 0; i < h->n_covers; i++)
		m[i] = (struct vx_mount){.kind = VX_MNT_BIND,
			.why = VX_WHY_BASE,
			.source = h->covers[i].path,
			.target = h->covers[i].path,
			.source_is_dir = h->covers[i].is_dir};
	memcpy(m + h->n_covers, r->mounts, r->n_mounts * sizeof *m);
	r->mounts = m;
	r->n_mounts += h->n_covers;
}

void attempt_begin(struct host *h, int fds[BOX_MAX_FDS])
{
	struct vx_err err = {0};
	const char *record_dir = NULL;
	struct attempt *a = &h->at;

	forget(h);
	a->active = true;
	a->complaints = VX_BUF(HOST_ERRTEXT_BYTES);
	a->asked_ns = vx_now_ns();
	int r = read_request(h, fds[0], &record_dir, &err);
	if (r == 0)
		r = place_make(&a->places, &h->record, h->root_fd, record_dir, &a->r, &err);
	if (r == 0 && !h->plain)
		add_covers(h);
	if (r == 0)
		r = launch(h, fds, &err);
	for (int i = 0; i < BOX_MAX_FDS; i++)
		fds[i] = vx_close(fds[i]); /* the pipes' ends are the sandbox's now */
	if (r < 0)
		refuse(h, &err);
	else if (!h->plain && tree_prepare(&h->base, &a->r, &a->tree, &a->build_err) <
				      0) /* while bwrap starts */
		vx_pidfd_signal(a->pidfd, SIGKILL);
}

/* Is `pid` where bubblewrap was to put it? One that is none, a wrapper that only executes its last
 * arguments, would leave the command unconfined. */
static int check_namespaces(struct host *h, pid_t pid, struct vx_err *err)
{
	static const char *const names[] = {"pid", "mnt", "ipc", "uts", "net"};

	for (size_t i = 0; i < sizeof names / sizeof *names - h->at.r.share_net; i++) {
		char path[64];
		struct stat own, its;

		snprintf(path, sizeof path, "/proc/self/ns/%s", names[i]);
		int r = stat(path, &own) < 0 ? -errno : 0;
		snprintf(path, sizeof path, "/proc/%d/ns/%s", (int)pid, names[i]);
		if (r == 0 && stat(path, &its) < 0)
			r = -errno;
		if (r < 0)
			return vx_err_set(err, r,
				"sandbox: cannot look at the %s namespace that %s has made: %s",
				names[i], h->bwrap, vx_strerror(r));
		if (own.st_dev == its.st_dev && own.st_ino == its.st_ino)
			return vx_err_set(err, -ENOTSUP,
				"sandbox: %s has not set the command apart (%s): it is no bubblewrap that works",
				h->bwrap, names[i]);
	}
	return 0;
}

/* vx-init runs, as `pid`: the mounts go into its namespace, then it may begin. */
static void ready(struct host *h, pid_t pid)
{
	struct attempt *a = &h->at;
	struct vx_init_cmd go = {.signal = VX_INIT_GO};

	if (a->build_err.code || a->ready)
		return;
	if (check_namespaces(h, pid, &a->build_err) < 0 ||
		(!h->plain && tree_attach(&h->base, &a->tree, pid, &a->build_err) < 0)) {
		vx_pidfd_signal(a->pidfd, SIGKILL);
		return;
	}
	a->ready = true;
	send(a->control, &go, sizeof go, MSG_NOSIGNAL);
	for (int sig = 1; sig <= 64; sig++) {
		struct vx_init_cmd early = {.signal = sig};

		if (a->early >> (sig - 1) & 1)
			send(a->control, &early, sizeof early, MSG_NOSIGNAL);
	}
}

static void heard(struct host *h, const struct vx_init_msg *m, pid_t pid)
{
	struct attempt *a = &h->at;

	if (m->kind == VX_INIT_READY) {
		ready(h, pid);
	} else if (m->kind == VX_INIT_STARTED) {
		a->done.start_ns = m->ns;
		a->done.setup_ns = m->ns - a->asked_ns;
		a->done.flags |= m->status ? VX_DONE_HOST_PIPES : 0;
		answer(h, VX_BOX_STARTED);
	} else if (m->kind == VX_INIT_FAILED || m->kind == VX_INIT_EXITED) {
		a->last = *m;
	}
}

/* One message and who sent it, in our pid namespace. */
static ssize_t receive(int sock, struct vx_init_msg *ret, pid_t *ret_pid)
{
	union {
		struct cmsghdr align;
		char space[CMSG_SPACE(sizeof(struct ucred))];
	} c;
	struct iovec v = {.iov_base = ret, .iov_len = sizeof *ret};
	struct msghdr h = {.msg_iov = &v,
		.msg_iovlen = 1,
		.msg_control = c.space,
		.msg_controllen = sizeof c.space};
	ssize_t n = recvmsg(sock, &h, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);

	*ret_pid = 0;
	for (struct cmsghdr *k = n < 0 ? NULL : CMSG_FIRSTHDR(&h); k; k = CMSG_NXTHDR(&h, k))
		if (k->cmsg_level == SOL_SOCKET && k->cmsg_type == SCM_CREDENTIALS) {
			struct ucred u;
			memcpy(&u, CMSG_DATA(k), sizeof u);
			*ret_pid = u.pid;
		}
	return n;
}

void attempt_control(struct host *h)
{
	struct vx_init_msg m;
	pid_t pid;

	for (;;) {
		ssize_t n = receive(h->at.control, &m, &pid);
		if (n == (ssize_t)sizeof m)
			heard(h, &m, pid);
		else if (n < 0 && errno == EINTR)
			continue;
		else if (n < 0 && errno == EAGAIN)
			return;
		else
			break;
	}
	h->at.control = vx_close(h->at.control);
}

void attempt_errors(struct host *h)
{
	char text[1024];
	ssize_t n = vx_read(h->at.errors, text, sizeof text);

	if (n > 0)
		vx_buf_add(&h->at.complaints, text, (size_t)n); /* past the maximum: dropped */
	else if (n != -EAGAIN)
		h->at.errors = vx_close(h->at.errors);
}

static const char *step_text(int32_t step)
{
	static const char *const text[] = {"start", "prepare", "read its orders for",
		"start a process for", "make a session for", "enter the directory of", "execute",
		"check the binds for", "keep the host's pipes from"};

	return step > 0 && step < (int32_t)(sizeof text / sizeof *text) ? text[step] : text[0];
}

/* Fills `done` from what vx-init said last, or from its silence. */
static void judge(struct attempt *a)
{
	struct vx_done *d = &a->done;
	char line[256];

	d->end_ns = a->last.kind ? a->last.ns : vx_now_ns();
	if (a->last.kind == VX_INIT_FAILED) {
		d->end = VX_END_SPAWN;
		snprintf(line, sizeof line, "sandbox: cannot %s the command: %s",
			step_text(a->last.step), vx_strerror(a->last.error));
		add_text(a, line);
	} else if (a->last.kind == VX_INIT_EXITED) {
		int s = a->last.status;
		d->end = WIFEXITED(s) ? VX_END_EXIT : VX_END_SIGNAL;
		d->code = WIFEXITED(s) ? WEXITSTATUS(s) : 0;
		d->signal = WIFEXITED(s) ? 0 : WTERMSIG(s);
		d->cpu_ns = (a->last.user_us + a->last.system_us) * 1000;
		d->peak_bytes = a->last.max_rss_kib * 1024;
	} else { /* pid 1 was killed: by us, or by the kernel for want of memory */
		d->end = VX_END_SIGNAL;
		d->signal = SIGKILL;
	}
}

/* bwrap has ended or is about to. Its child waits for its parent's word before it asks to die with
 * it: where bwrap was killed in between, nobody else would ever end that. What bwrap left behind
 * became ours when it ended, so that without a child there is nothing left: the common case, told
 * by two calls. */
static void reap_all(struct host *h)
{
	pid_t p;

	while (waitpid(h->at.pid, NULL, __WALL) < 0 && errno == EINTR)
		continue;
	while ((p = waitpid(-1, NULL, __WALL | WNOHANG)) > 0)
		continue;
	if ((p < 0 && errno == ECHILD) || vx_tree_end(NULL, NULL, NULL, 0, 0) == 0)
		return;
	while (waitpid(-1, NULL, __WALL) > 0 || errno == EINTR)
		continue;
}

void attempt_end(struct host *h)
{
	struct attempt *a = &h->at;
	struct vx_buf lines = VX_BUF(sizeof a->done.text);
	struct vx_buf untouched = VX_BUF(sizeof a->done.text);

	if (a->control >= 0)
		attempt_control(h);
	while (a->errors >= 0 && !a->complaints.overflow) {
		struct vx_buf before = a->complaints;
		attempt_errors(h);
		if (a->complaints.len == before.len)
			break;
	}
	/* bwrap's own process has ended. What it ran, should that be alive, loses its control
	 * socket and its parent, and dies: pid 1, and all with it. */
	a->control = vx_close(a->control);
	reap_all(h);
	if (a->build_err.code && !a->killed) {
		struct vx_err err = a->build_err;
		refuse(h, &err);
		vx_buf_free(&lines);
		return;
	}
	if (!a->ready && !a->killed) {
		struct vx_err err = {0};
		const char *text = vx_buf_str(&a->complaints);
		if (a->last.kind == VX_INIT_FAILED && a->last.step >= VX_INIT_STEP_PIDNS)
			vx_err_set(&err, -ENOTSUP,
				"sandbox: %s has not %s: it is no bubblewrap that works", h->bwrap,
				a->last.step == VX_INIT_STEP_PIDNS
					? "set the command apart (pid)"
					: "filtered the command's system calls");
		else
			vx_err_set(&err, -EIO, "sandbox: bubblewrap could not set it up: %.*s",
				*text ? (int)strcspn(text, "\n") : 24,
				*text ? text : "it ended without a word.");
		refuse(h, &err);
		vx_buf_free(&lines);
		return;
	}
	judge(a);
	clean_up(h, &untouched);
	if (deny_enforce(h->root_fd, &a->r, &lines) > 0) {
		a->done.flags |= VX_DONE_VIOLATION;
		add_text(a, vx_buf_str(&lines));
	}
	place_record_clear(&h->record);
	bool failed = a->done.end != VX_END_EXIT || a->done.code != 0;
	if (failed && !a->done.text[0] && untouched.len && !a->killed)
		add_text(a, vx_buf_str(&untouched));
	vx_buf_free(&lines);
	vx_buf_free(&untouched);
	answer(h, VX_BOX_EXITED);
	forget(h);
}

void attempt_signal(struct host *h, int sig)
{
	struct attempt *a = &h->at;
	struct vx_init_cmd c = {.signal = sig};

	VX_POINT("boxhost.signal");
	if (!a->active)
		return;
	if (sig == SIGKILL) {
		a->killed = true;
		/* --die-with-parent: pid 1 and everything inside go with it */
		vx_pidfd_signal(a->pidfd, SIGKILL);
	} else if (!a->ready) {
		a->early |= sig > 0 && sig <= 64 ? 1ULL << (sig - 1) : 0;
	} else if (a->control >= 0) {
		send(a->control, &c, sizeof c, MSG_NOSIGNAL | MSG_DONTWAIT);
	}
}

void attempt_abandon(struct host *h)
{
	if (h->at.active) {
		vx_pidfd_signal(h->at.pidfd, SIGKILL);
		h->at.control = vx_close(h->at.control);
		reap_all(h);
		clean_up(h, NULL);
		struct vx_buf lines = VX_BUF(1 << 16);
		deny_enforce(h->root_fd, &h->at.r, &lines);
		vx_buf_free(&lines);
		forget(h);
	}
	place_record_close(&h->record);
}
