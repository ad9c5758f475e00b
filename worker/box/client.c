/* The worker's side of the box host. */
#include "handover.h"
#include "availability.h"
#include "wire.h"
#include "hidden_packages.h"

#include "vx/arena.h"
#include "vx/box.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/initproto.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define HANDSHAKE_MS 20000
/* for a host to end its attempt and sweep; whoever waits for us waits less */
#define END_MS 2000
#define NOT_FOUND_STATUS 127 /* of a shell that did not find a command */
#define MAX_MAP_LINES 340    /* what the kernel takes */

struct vx_box {
	struct vx_box_opts opts;
	int sock, pidfd;
	pid_t pid;
	bool busy, arming;
	bool fell_back; /* to a host without namespaces of its own */
	/* VX_DONE_* of the attempt under way: how it falls short */
	uint32_t less;
	/* whether a /proc can be mounted; asked only for tasks that accept one that is not their
	 * own */
	enum { UNKNOWN, WHOLE, WEAKER } proc;
	char *record_dir; /* of the attempt under way */
	/* of the attempt under way, when packages are withheld from it: */
	struct vx_arena withheld;
	const struct vx_withheld *withheld_v;
	uint32_t n_withheld;
	const char *program, *path_var, *project, *cwd;
	int join[VX_BOX_MAX_CGROUPS]; /* of the next start */
	uint32_t n_join;
};

int vx_box_new(const struct vx_box_opts *o, struct vx_box **ret)
{
	struct vx_box *b = vx_xcalloc(1, sizeof *b);

	b->opts = *o;
	b->opts.bwrap_path = o->bwrap_path ? vx_xstrdup(o->bwrap_path) : NULL;
	b->sock = b->pidfd = -1;
	*ret = b;
	return 0;
}

int vx_box_fd(const struct vx_box *b)
{
	return b->sock;
}

pid_t vx_box_pid(const struct vx_box *b)
{
	return b->pid;
}

/* Ends the host. It sweeps when its socket ends; what it cannot sweep, because it is dead, its
 * record lets us sweep. */
static void end_host(struct vx_box *b, bool patient)
{
	b->sock = vx_close(b->sock);
	if (b->pid > 0) {
		struct pollfd p = {.fd = b->pidfd, .events = POLLIN};
		if (patient)
			vx_pidfd_signal(b->pidfd, SIGCONT); /* one that is stopped sees nothing */
		if (!patient || poll(&p, 1, END_MS) <= 0)
			vx_pidfd_signal(b->pidfd, SIGKILL);
		while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
			continue;
	}
	b->pidfd = vx_close(b->pidfd);
	b->pid = 0;
	b->busy = b->arming = false;
	if (b->record_dir)
		vx_box_sweep_records(b->record_dir, NULL); /* the next host says what it finds */
	free(b->record_dir);
	b->record_dir = NULL;
	vx_arena_free(&b->withheld);
	b->n_withheld = 0;
}

void vx_box_free(struct vx_box *b)
{
	if (!b)
		return;
	end_host(b, true);
	free((char *)(uintptr_t)b->opts.bwrap_path);
	free(b);
}

static int write_proc(pid_t pid, const char *name, const char *text, size_t n)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%ld/%s", (long)pid, name);
	int fd = vx_open(AT_FDCWD, path, O_WRONLY, 0);
	if (fd < 0)
		return fd;
	int r = vx_write_full(fd, text, n); /* one write(2), as these files want it */
	vx_close(fd);
	return r;
}

/* The identity of everything that our own namespace maps: "inside outside count" becomes "inside
 * inside count". */
static int write_identity(pid_t pid, const char *name)
{
	struct vx_buf own = VX_BUF(1 << 16), map = VX_BUF(1 << 16);
	char path[64];
	unsigned long inside, outside, count;
	int used, lines = 0;

	snprintf(path, sizeof path, "/proc/self/%s", name);
	int r = vx_read_file(AT_FDCWD, path, &own);
	for (const char *s = vx_buf_str(&own);
		r >= 0 && sscanf(s, "%lu %lu %lu%n", &inside, &outside, &count, &used) == 3 &&
		lines < MAX_MAP_LINES;
		lines++) {
		vx_buf_printf(&map, "%lu %lu %lu\n", inside, inside, count);
		s += used;
	}
	if (r >= 0)
		r = map.overflow ? -E2BIG : write_proc(pid, name, vx_buf_str(&map), map.len);
	vx_buf_free(&own);
	vx_buf_free(&map);
	return r;
}

static int write_maps(pid_t pid)
{
	char line[64];
	int n, r;

	if (geteuid() == 0) {
		r = write_identity(pid, "uid_map");
		return r < 0 ? r : write_identity(pid, "gid_map");
	}
	n = snprintf(line, sizeof line, "%u %u 1\n", (unsigned)geteuid(), (unsigned)geteuid());
	r = write_proc(pid, "uid_map", line, (size_t)n);
	if (r == 0)
		r = write_proc(pid, "setgroups", "deny", 4);
	n = snprintf(line, sizeof line, "%u %u 1\n", (unsigned)getegid(), (unsigned)getegid());
	return r < 0 ? r : write_proc(pid, "gid_map", line, (size_t)n);
}

static int hear(struct vx_box *b, struct box_msg *m)
{
	struct pollfd p = {.fd = b->sock, .events = POLLIN};
	int fds[BOX_MAX_FDS], r;

	do
		r = poll(&p, 1, HANDSHAKE_MS);
	while (r < 0 && errno == EINTR);
	if (r <= 0)
		return r < 0 ? -errno : -ETIMEDOUT;
	r = box_recv(b->sock, 0, m, fds);
	for (int i = 0; i < BOX_MAX_FDS; i++)
		vx_close(fds[i]);
	return r == 1 ? 0 : r < 0 ? r : -EPIPE;
}

/* Asked only when something has failed: it costs a process. */
static int check_bwrap(struct vx_box *b, struct vx_err *err)
{
	const char *const argv[] = {"bwrap", "--version", NULL}, *const envp[] = {NULL};
	struct vx_buf out = VX_BUF(4096);
	struct vx_spawn s = VX_SPAWN_INIT;
	int status, r;

	s.path = b->opts.bwrap_path;
	s.argv = argv;
	s.envp = envp;
	r = vx_spawn_capture(&s, &out, NULL, HANDSHAKE_MS, -1, &status);
	if (r < 0)
		vx_err_set(err, r, "sandbox not available: cannot run %s: %s", b->opts.bwrap_path,
			vx_strerror(r));
	else
		r = verdict_bwrap_version(vx_buf_str(&out), err);
	vx_buf_free(&out);
	return r;
}

static int spawn_host(struct vx_box *b, bool plain)
{
	const char *const argv[] = {
		"vx", "-boxhost", b->opts.bwrap_path, plain ? "plain" : "own", NULL};
	int pair[2], self = vx_pidfd_open(getpid());
	struct vx_spawn s = VX_SPAWN_INIT;

	if (self < 0)
		return self;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0) {
		int e = -errno;
		vx_close(self);
		return e;
	}
	struct vx_spawn_fd fds[] = {{pair[1], BOX_FD_SOCKET}, {self, BOX_FD_WORKER},
		{b->opts.init_fd, BOX_FD_INIT}, {2, 2}};
	s.path = "/proc/self/exe";
	s.argv = argv;
	s.cwd = "/";
	s.fds = fds;
	s.n_fds = 4;
	s.new_session = true;
	int r = vx_spawn(&s, &b->pid, &b->pidfd, NULL);
	vx_close(pair[1]);
	vx_close(self);
	if (r < 0) {
		vx_close(pair[0]);
		b->pid = 0;
		return r;
	}
	b->sock = pair[0];
	return 0;
}

/* One host, or the step at which it failed. `plain`: without namespaces of its own. */
static int try_host(struct vx_box *b, bool plain, enum box_step *ret_step, struct box_msg *m)
{
	int r = spawn_host(b, plain);

	*ret_step = BOX_STEP_SPAWN;
	if (r == 0)
		r = hear(b, m);
	if (r == 0 && m->kind == BOX_UNSHARED) {
		struct box_msg go = {.kind = BOX_MAPPED};
		*ret_step = m->error ? BOX_STEP_USERNS : BOX_STEP_MAPS;
		r = m->error ? m->error : write_maps(b->pid);
		if (r == 0)
			r = box_send(b->sock, &go, NULL, 0);
		if (r == 0) {
			*ret_step = BOX_STEP_BASE;
			r = hear(b, m);
		}
	}
	if (r == 0 && m->kind == BOX_BROKEN) {
		*ret_step = (enum box_step)m->step;
		r = m->error < 0 ? m->error : -EIO;
	}
	if (r < 0)
		end_host(b, false);
	return r;
}

/* vx-init must be a file that can be executed: what bubblewrap says of one that cannot names a
 * descriptor, not the file. */
static int check_init(const struct vx_box *b, struct vx_err *err)
{
	char path[VX_MAX_PATH], link[64];
	struct stat st;
	int fd = b->opts.init_fd;

	if (fd < 0) {
		vx_err_set(err, -ENOENT,
			"sandbox not available: vx-init is missing: neither beside vx nor in ../libexec/vx is there a file of that name");
		return vx_err_fix(err, "install vx whole, by make install");
	}
	if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) &&
		faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) == 0)
		return 0;
	snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
	if (vx_readlink(AT_FDCWD, link, path, sizeof path) < 0)
		snprintf(path, sizeof path, "vx-init");
	vx_err_set(err, -EACCES,
		"sandbox not available: vx-init is missing: %s is not a file that can be executed",
		path);
	return vx_err_fix(err, "install vx whole, by make install, or: chmod 755 %s", path);
}

static int ensure_host(struct vx_box *b, struct vx_err *err)
{
	struct verdict_facts f;
	enum box_step step = BOX_STEP_BWRAP;
	struct box_msg m = {0};

	if (b->pid > 0)
		return 0;
	verdict_read_facts("", &f);
	if (!b->opts.bwrap_path)
		return verdict(&f, BOX_STEP_BWRAP, -ENOENT, NULL, err);
	if (check_init(b, err) < 0)
		return -ENOTSUP;
	if (!f.seccomp)
		return verdict(&f, BOX_STEP_SECCOMP, -EINVAL, NULL, err);
	const char *wish =
		getenv("VX_SANDBOX_BACKEND"); /* "plain": bubblewrap makes every mount itself */
	bool plain = wish && !strcmp(wish, "plain");
	int r = try_host(b, plain, &step, &m);
	if (r < 0 && !plain &&
		f.apparmor_restricts == 1) /* bubblewrap may have a profile of its own */
		b->fell_back = (r = try_host(b, true, &step, &m)) == 0;
	return r < 0 ? verdict(&f, step, r, m.done.text, err) : 0;
}

/* ---- handing over a task ---- */

static int hand_over(struct vx_box *b, const struct vx_sbx_request *q, const char *record_dir,
	struct vx_strs argv, struct vx_strs env, int in, int out, int errfd, struct vx_err *err)
{
	struct box_msg m = {.kind = BOX_RUN};
	int own_in = in < 0 ? vx_open(AT_FDCWD, "/dev/null", O_RDONLY, 0) : -1;
	int request = handover_request(q, record_dir),
	    payload = handover_payload(argv, env, q->cwd, q);
	int r = request < 0 ? request : payload < 0 ? payload : in < 0 && own_in < 0 ? own_in : 0;

	if (r == 0) {
		int fds[BOX_MAX_FDS] = {request, payload, in < 0 ? own_in : in, out, errfd};
		memcpy(fds + BOX_FIXED_FDS, b->join, b->n_join * sizeof *fds);
		r = box_send(b->sock, &m, fds, BOX_FIXED_FDS + b->n_join);
	}
	vx_close(request);
	vx_close(payload);
	vx_close(own_in);
	if (r < 0)
		return vx_err_set(err, r, "sandbox: cannot hand the task to the box host: %s",
			vx_strerror(r));
	free(b->record_dir);
	b->record_dir = q->n_placeholders || q->deny_in.n ? vx_xstrdup(record_dir) : NULL;
	b->busy = true;
	b->less = (q->weaker ? VX_DONE_HOST_PROC : 0) | (b->fell_back ? VX_DONE_PLAIN : 0);
	return 0;
}

static void say(struct vx_done *d, const struct vx_err *err)
{
	vx_err_line(err, d->text, sizeof d->text);
}

/* The probe's own end, as a verdict. */
static void armed(struct vx_box *b, struct vx_done *d, enum vx_box_kind *kind)
{
	struct verdict_facts f;
	struct vx_err err = {0};
	bool fine = *kind == VX_BOX_EXITED && d->end == VX_END_EXIT && d->code == 0;

	*kind = VX_BOX_ARMED;
	if (fine)
		return;
	verdict_read_facts("", &f);
	if (check_bwrap(b, &err) == 0 && verdict_bwrap_text(&f, d->text, &err) == 0)
		verdict(&f, BOX_STEP_SPAWN, -EIO,
			d->text[0] ? d->text : "the probe's command did not run", &err);
	d->end = VX_END_REFUSED;
	say(d, &err);
}

/* bubblewrap's own words about the machine, where they are known, become the verdict that they
 * are. */
static void explain(struct vx_box *b, struct vx_done *d)
{
	struct verdict_facts f;
	struct vx_err err = {0};

	verdict_read_facts("", &f);
	if (strstr(d->text, "bubblewrap") &&
		(check_bwrap(b, &err) < 0 || verdict_bwrap_text(&f, d->text, &err) < 0))
		say(d, &err);
}

/* What it takes to say at the end why the command was not found. */
static void remember_withheld(
	struct vx_box *b, const struct vx_sbx_request *q, const struct vx_task_desc *d)
{
	struct vx_arena *a = &b->withheld;
	const char *program = q->n_withheld ? withheld_program(a, d->argv) : NULL,
		   *path = handover_env(d->env, "PATH");

	b->n_withheld = program ? q->n_withheld : 0;
	if (!b->n_withheld)
		return;
	struct vx_withheld *v = vx_arena_array(a, q->n_withheld, sizeof *v);
	for (uint32_t i = 0; i < q->n_withheld; i++)
		v[i] = (struct vx_withheld){vx_arena_strdup(a, q->withheld[i].link),
			vx_arena_strdup(a, q->withheld[i].target),
			q->withheld[i].package ? vx_arena_strdup(a, q->withheld[i].package) : NULL,
			q->withheld[i].why};
	b->withheld_v = v;
	b->program = vx_arena_strdup(a, program);
	b->path_var = vx_arena_strdup(a, path ? path : "");
	b->cwd = vx_arena_strdup(a, q->cwd);
	b->project = vx_path_join(a, d->sandbox.root, d->sandbox.project_dir);
}

static void explain_withheld(struct vx_box *b, struct vx_done *d)
{
	bool missing =
		d->end == VX_END_SPAWN || (d->end == VX_END_EXIT && d->code == NOT_FOUND_STATUS);
	size_t n = strlen(d->text);

	if (b->n_withheld && missing) {
		const char *path = withheld_find(&b->withheld, b->program, b->path_var, b->cwd);
		const char *line = path ? withheld_line(&b->withheld, b->withheld_v, b->n_withheld,
						  b->project, path)
					: NULL;
		if (line)
			snprintf(d->text + n, sizeof d->text - n, "%s%s", n ? "\n" : "", line);
	}
	vx_arena_free(&b->withheld);
	b->n_withheld = 0;
}

int vx_box_next(struct vx_box *b, enum vx_box_kind *ret_kind, struct vx_done *ret)
{
	struct box_msg m;
	int fds[BOX_MAX_FDS], r;

	if (b->sock < 0)
		return 0;
	for (;;) {
		r = box_recv(b->sock, MSG_DONTWAIT, &m, fds);
		for (int i = 0; i < BOX_MAX_FDS; i++)
			vx_close(fds[i]);
		if (r == -EAGAIN)
			return 0;
		bool arming = b->arming, busy = b->busy;
		if (r != 1) {
			end_host(b, false);
			if (!busy)
				return 0;
			*ret = (struct vx_done){.end = VX_END_LOST};
			snprintf(ret->text, sizeof ret->text,
				"sandbox: the box host died (run it again)");
			*ret_kind = arming ? VX_BOX_ARMED : VX_BOX_LOST;
			if (arming)
				ret->end = VX_END_REFUSED;
			return 1;
		}
		if (m.kind != BOX_EVENT || (arming && m.box_kind == VX_BOX_STARTED))
			continue;
		*ret = m.done;
		ret->flags |= b->less;
		*ret_kind = (enum vx_box_kind)m.box_kind;
		if (m.box_kind != VX_BOX_STARTED) {
			b->busy = b->arming = false;
			free(b->record_dir);
			b->record_dir = NULL;
			if (arming)
				armed(b, ret, ret_kind);
			else if (m.box_kind == VX_BOX_REFUSED)
				explain(b, ret);
			else
				explain_withheld(b, ret);
		}
		return 1;
	}
}

/* The real thing around a command that does nothing. */
static int start_probe(struct vx_box *b, bool weaker, struct vx_err *err)
{
	static const struct vx_mount mounts[] = {
		{.kind = VX_MNT_TMPFS,
			.why = VX_WHY_BASE,
			.target = "/tmp",
			.writable = true,
			.source_is_dir = true,
			.mode = 01777},
		{.kind = VX_MNT_TMPFS,
			.why = VX_WHY_BASE,
			.target = "/dev/shm",
			.writable = true,
			.source_is_dir = true,
			.mode = 01777},
	};
	static const char *const argv[] = {"/bin/sh", "-c", ":"}, *const env[] = {
									  "PATH=/usr/bin:/bin"};
	struct vx_sbx_request q = {.mounts = mounts,
		.n_mounts = 2,
		.wall = "/",
		.cwd = "/",
		.no_unix = true,
		.weaker = weaker};

	if (b->busy)
		return vx_err_set(err, -EBUSY, "sandbox: the box host is running another task");
	int r = ensure_host(b, err);
	int null = r < 0 ? -1 : vx_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
	if (r == 0)
		r = hand_over(b, &q, "/", (struct vx_strs){argv, 3}, (struct vx_strs){env, 1}, null,
			null, null, err);
	vx_close(null);
	b->arming = r == 0;
	return r;
}

/* One probe to its end: 0, or its verdict. */
static int probe(struct vx_box *b, bool weaker, struct vx_err *err)
{
	enum vx_box_kind kind;
	struct vx_done d;
	int r = start_probe(b, weaker, err);

	while (r == 0 && (r = vx_box_next(b, &kind, &d)) == 0) {
		struct pollfd p = {.fd = b->sock, .events = POLLIN};
		if (poll(&p, 1, HANDSHAKE_MS) == 0) {
			end_host(b, false);
			vx_err_set(err, -ETIMEDOUT, "sandbox not available: the probe did not end");
			return vx_err_fix(err, "run it again when the machine is less busy");
		}
	}
	return r < 0 ? r : d.end == VX_END_EXIT ? 0 : vx_err_set(err, -ENOTSUP, "%s", d.text);
}

/* A task that accepts the host's /proc gets it only where it cannot have its own: a probe that
 * fails for another reason is no leave. */
static int choose_proc(struct vx_box *b, struct vx_sbx_request *q, struct vx_err *err)
{
	if (!q->weaker)
		return 0;
	int r = 0;
	if (b->proc == UNKNOWN && (r = probe(b, false, err)) == 0)
		b->proc = WHOLE;
	else if (b->proc == UNKNOWN && strstr(err->what, VERDICT_NO_PROC) &&
		 (r = probe(b, true, err)) == 0)
		b->proc = WEAKER;
	q->weaker = b->proc == WEAKER;
	return r;
}

int vx_box_arm(struct vx_box *b, bool weaker, struct vx_err *err)
{
	struct vx_sbx_request q = {.weaker = weaker};
	int r = choose_proc(b, &q, err);

	return r < 0 ? r : start_probe(b, q.weaker, err);
}

int vx_box_start(struct vx_box *b, const struct vx_task_desc *d, int in_fd, int out_fd, int err_fd,
	struct vx_err *err)
{
	struct vx_arena a = {0};
	struct vx_sbx_facts facts = vx_sbx_real_facts();
	struct vx_sbx_request q;

	if (b->busy)
		return vx_err_set(err, -EBUSY, "sandbox: the box host is running another task");
	int r = vx_sbx_resolve(&d->sandbox, &facts, &a, &q, err);
	if (r == 0) {
		q.cwd = d->cwd ? d->cwd : q.cwd;
		r = ensure_host(b, err);
	}
	if (r == 0)
		r = choose_proc(b, &q, err);
	if (r == 0)
		r = hand_over(b, &q, d->sandbox.record_dir, d->argv,
			handover_merge(&a, d->env, q.env), in_fd, out_fd, err_fd, err);
	b->n_join = 0;
	if (r == 0)
		remember_withheld(b, &q, d);
	vx_arena_free(&a);
	return r;
}

void vx_box_join(struct vx_box *b, const int *procs_fds, uint32_t n)
{
	b->n_join = 0;
	for (uint32_t i = 0; i < n; i++)
		if (procs_fds[i] >= 0 && b->n_join < VX_BOX_MAX_CGROUPS)
			b->join[b->n_join++] = procs_fds[i];
}

int vx_box_signal(struct vx_box *b, int sig)
{
	struct box_msg m = {.kind = BOX_SIGNAL, .signal = sig};

	if (sig == SIGKILL && b->pid > 0)
		vx_pidfd_signal(b->pidfd, SIGCONT); /* one that is stopped sees nothing */
	return b->busy && b->sock >= 0 ? box_send(b->sock, &m, NULL, 0) : 0;
}
