/* What a sandbox costs a task: `sh -c true` unsandboxed, in this sandbox, in bare bubblewrap given
 * the same policy, and in sandbox-runtime, in turns.
 *
 * usage: sandbox [ROUNDS [TASKS]]    default 40 rounds of 6 tasks for each point: 2, 20 and 200
 *                                    grants at concurrency 1; 20 grants at 2 and 16
 *
 * Every round runs every point in every way, a few tasks each, so that what is compared ran within
 * the same second; a ratio is the median of the rounds' ratios, which a busy machine distorts
 * least. Beside it stands the ratio of the CPU time of all rounds: user and system time of
 * everything that the tasks needed, box hosts and bubblewrap included. At the end each goal of
 * docs/sandbox.md is printed with what was measured and whether it is met.
 *
 * Bare bubblewrap gets every mount, mask, cover, namespace and filter of the request as its own
 * options. sandbox-runtime (SRT_DIR: where npm has installed @anthropic-ai/sandbox-runtime;
 * bench/sandbox_srt.mjs) is used as a library in one node process that lives through all rounds,
 * one task in every fourth round, its start not counted; left out when not there. Writes
 * $VX_BUILD/bench/sandbox-*.json, sandbox-goals.json and sandbox.svg. */
#include "../worker/box/seccomp.h"

#include "vx/arena.h"
#include "vx/box.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/pool.h"
#include "vx/spawn.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sandbox_report.h"

#define MAX_CONCURRENCY 16
#define MAX_GRANTS 200
#define STRAY_MS 30 /* within which what sandbox-runtime leaves has ended */
#define COVERS_MAX 64

static struct vx_arena arena;
static char workspace[VX_MAX_PATH], bwrap[VX_MAX_PATH], init_path[VX_MAX_PATH];
static struct vx_box *boxes[MAX_CONCURRENCY];
static FILE *srt_out;
static pid_t srt_pid;
static int null_fd, rules_fd, newer_fd;

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench/sandbox: %s: %s\n", what, why);
	exit(1);
}

/* ---- the policy ---- */

static void make_task(int grants, struct vx_task_desc *d)
{
	static const char *const argv[] = {"/bin/sh", "-c", "true"}, *const env[] = {
									     "PATH=/usr/bin:/bin",
									     "HOME=/root"};
	struct vx_strlist read = {0}, write = {0};

	memset(d, 0, sizeof *d);
	for (int i = 0; i < grants; i++)
		vx_strlist_add(i ? &read : &write, &arena, vx_arena_printf(&arena, "g%d", i));
	d->id = "bench#task";
	d->sandboxed = true;
	d->argv = (struct vx_strs){argv, 3};
	d->env = (struct vx_strs){env, 2};
	d->cwd = vx_arena_printf(&arena, "%s/p", workspace);
	d->sandbox.root = workspace;
	d->sandbox.project_dir = "p";
	d->sandbox.home = getenv("HOME") ? getenv("HOME") : "";
	d->sandbox.record_dir = vx_arena_printf(&arena, "%s/.vx/sweep", workspace);
	d->sandbox.decl.read = vx_strlist_done(&read);
	d->sandbox.decl.write = vx_strlist_done(&write);
}

static void add(struct vx_strlist *l, const char *a, const char *b, const char *c)
{
	const char *const v[] = {a, b, c};

	for (int i = 0; i < 3 && v[i]; i++)
		vx_strlist_add(l, &arena, v[i]);
}

/* The same request as options of bubblewrap. */
static const char *const *bwrap_argv(const struct vx_sbx_request *r)
{
	static const char *const covers[] = {"/proc/sys", "/proc/sysrq-trigger", "/proc/irq",
		"/proc/bus", "/proc/mtrr", "/proc/acpi", "/proc/fs", "/proc/pressure"};
	struct vx_strlist l = {0};

	add(&l, "bwrap", NULL, NULL);
	add(&l, "--ro-bind", "/", "/");
	add(&l, "--dev", "/dev", NULL);
	add(&l, "--proc", "/proc", NULL);
	for (uint32_t i = 0; i < r->n_mounts; i++) {
		const struct vx_mount *m = &r->mounts[i];
		if (m->kind == VX_MNT_BIND)
			add(&l, m->writable ? "--bind" : "--ro-bind", m->source, m->target);
		else if (m->kind == VX_MNT_HIDE_FILE)
			add(&l, "--ro-bind", "/dev/null", m->target);
		else
			add(&l, "--tmpfs", m->target, NULL);
	}
	for (size_t i = 0; geteuid() == 0 && i < sizeof covers / sizeof *covers; i++)
		if (access(covers[i], F_OK) == 0)
			add(&l, "--ro-bind", covers[i], covers[i]);
	add(&l, "--remount-ro", r->wall, NULL);
	add(&l, "--unshare-user", "--unshare-pid", "--unshare-ipc");
	add(&l, "--unshare-uts", "--unshare-net", "--new-session");
	add(&l, "--cap-drop", "ALL", "--die-with-parent");
	add(&l, "--add-seccomp-fd", "3", NULL);
	add(&l, "--add-seccomp-fd", "4", NULL);
	add(&l, "--chdir", r->cwd, NULL);
	add(&l, "/bin/sh", "-c", "true");
	vx_strlist_add(&l, &arena, NULL);
	return l.v;
}

/* ---- one batch ---- */

static double children_cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_CHILDREN, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Of a process and the children it has waited for, by proc(5), in clock ticks. */
static double process_cpu_ms(pid_t pid)
{
	char path[64], text[1024] = "";
	unsigned long t[4] = {0};

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	FILE *f = fopen(path, "re");
	if (f && fgets(text, sizeof text, f) && strrchr(text, ')'))
		sscanf(strrchr(text, ')') + 2,
			"%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0], &t[1],
			&t[2], &t[3]);
	if (f)
		fclose(f);
	return (double)(t[0] + t[1] + t[2] + t[3]) * 1e3 / (double)sysconf(_SC_CLK_TCK);
}

static void start_box(struct vx_box *b, const struct vx_task_desc *d)
{
	struct vx_err err = {0};

	if (vx_box_start(b, d, null_fd, null_fd, null_fd, &err) < 0)
		die("vx", err.what);
}

/* True when the task of this box has ended. */
static bool box_over(struct vx_box *b)
{
	enum vx_box_kind kind;
	struct vx_done done;

	while (vx_box_next(b, &kind, &done) == 1) {
		if (kind == VX_BOX_EXITED && done.end == VX_END_EXIT && done.code == 0)
			return true;
		if (kind != VX_BOX_STARTED)
			die("vx", done.text);
	}
	return false;
}

static void batch_vx(const struct vx_task_desc *d, int concurrency, int n)
{
	int started = 0, over = 0;
	struct pollfd p[MAX_CONCURRENCY];

	for (; started < concurrency && started < n; started++)
		start_box(boxes[started], d);
	while (over < n) {
		for (int i = 0; i < concurrency; i++)
			p[i] = (struct pollfd){.fd = vx_box_fd(boxes[i]), .events = POLLIN};
		poll(p, (nfds_t)concurrency, -1);
		for (int i = 0; i < concurrency; i++)
			if (p[i].revents && box_over(boxes[i])) {
				over++;
				if (started < n) {
					start_box(boxes[i], d);
					started++;
				}
			}
	}
}

static void batch_spawn(
	const char *path, const char *const *argv, bool filters, int concurrency, int n)
{
	struct vx_spawn_fd fds[] = {{rules_fd, 3}, {newer_fd, 4}};
	int started = 0, over = 0;
	pid_t running[MAX_CONCURRENCY] = {0};

	while (over < n) {
		for (; started < n && started - over < concurrency; started++) {
			struct vx_spawn s = VX_SPAWN_INIT;
			pid_t pid;
			int pidfd;
			s.path = path;
			s.argv = argv;
			s.fds = fds;
			s.n_fds = filters ? 2 : 0;
			/* bwrap reads to the end: each gets a position of its own */
			char a[64], b[64];
			snprintf(a, sizeof a, "/proc/self/fd/%d", rules_fd);
			snprintf(b, sizeof b, "/proc/self/fd/%d", newer_fd);
			fds[0].from = filters ? vx_open(AT_FDCWD, a, O_RDONLY, 0) : -1;
			fds[1].from = filters ? vx_open(AT_FDCWD, b, O_RDONLY, 0) : -1;
			if (vx_spawn(&s, &pid, &pidfd, NULL) < 0)
				die(path, strerror(errno));
			for (int i = 0; i < MAX_CONCURRENCY; i++)
				if (!running[i]) {
					running[i] = pid;
					break;
				}
			vx_close(pidfd);
			vx_close(fds[0].from);
			vx_close(fds[1].from);
		}
		int status;
		/* what bwrap leaves unreaped comes to us, for the sake of its CPU time */
		pid_t p = waitpid(-1, &status, 0);
		for (int i = 0; i < MAX_CONCURRENCY && p > 0; i++)
			if (running[i] == p) {
				running[i] = 0;
				over++;
				if (status)
					die(path, "the task failed");
			}
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void batch_srt(int grants, int concurrency, int n)
{
	char line[256];

	fprintf(srt_in, "%d %d %d\n", grants, concurrency, n);
	fflush(srt_in);
	if (!fgets(line, sizeof line, srt_out) || strncmp(line, "ok", 2) != 0)
		die("sandbox-runtime", line);
}

/* Of our own process, which is a vx worker's part. */
static double own_cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Box hosts are idle but in their own batches: what the clock ticks of proc(5) lose in one batch
 * they give back in the next. */
static double cpu_now_ms(enum way way)
{
	double ms = own_cpu_ms();

	if (way == SRT)
		return process_cpu_ms(srt_pid) + children_cpu_ms();
	if (way != VX)
		return children_cpu_ms();
	for (int i = 0; i < MAX_CONCURRENCY; i++)
		ms += vx_box_pid(boxes[i]) > 0 ? process_cpu_ms(vx_box_pid(boxes[i])) : 0;
	return ms;
}

static void run_batch(struct point *p, enum way way, int n)
{
	static const char *const plain[] = {"/bin/sh", "-c", "true", NULL};

	if (way == VX)
		batch_vx(&p->d, p->concurrency, n);
	else if (way == BWRAP)
		batch_spawn(bwrap, p->bare, true, p->concurrency, n);
	else if (way == PLAIN)
		batch_spawn("/bin/sh", plain, false, p->concurrency, n);
	else
		batch_srt(p->grants, p->concurrency, n);
}

/* Orphans of sandbox-runtime come to us; their time is its own. */
static void reap_strays(void)
{
	while (waitpid(-1, NULL, WNOHANG) > 0)
		continue;
}

static void measure(struct point *p, enum way way, int n)
{
	if (way == SRT)
		/* it starts anew for each number of grants */
		batch_srt(p->grants, p->concurrency, 0);
	reap_strays();
	double cpu = cpu_now_ms(way);
	uint64_t begin = vx_now_ns();
	run_batch(p, way, n);
	p->wall[way][p->rounds[way]++] = (double)(vx_now_ns() - begin) / 1e6 / n;
	if (way == SRT)
		poll(NULL, 0, STRAY_MS);
	reap_strays();
	p->cpu_ms[way] += cpu_now_ms(way) - cpu;
	p->tasks[way] += n;
}

static void run_rounds(struct point *p, int n_points, int rounds, int tasks)
{
	for (int i = 0; i < n_points; i++) /* box hosts start, files come into memory */
		for (int w = 0; w < SRT; w++)
			run_batch(&p[i], (enum way)w, p[i].concurrency);
	for (int round = 0; round < rounds; round++)
		for (int i = 0; i < n_points; i++) {
			int n = tasks > p[i].concurrency ? tasks : p[i].concurrency;
			/* who goes first changes, too */
			measure(&p[i], round % 2 ? BWRAP : VX, n);
			measure(&p[i], round % 2 ? VX : BWRAP, n);
			measure(&p[i], PLAIN, n);
			if (srt_in && round % SRT_EVERY == 0)
				measure(&p[i], SRT, p[i].concurrency);
		}
}

/* ---- an open inside against one outside ---- */

/* A program of ours (this one) on either side, told by a byte to open a granted file again and
 * again, answers with the CPU time that it took. They take turns. */
struct opener {
	int to, from; /* its stdin and stdout */
	struct vx_box *box;
	pid_t pid;
};

static void start_opener(struct opener *o, struct vx_box *box)
{
	const char *const argv[] = {vx_arena_printf(&arena, "%s/p/g1/bench", workspace), "-opens",
		vx_arena_printf(&arena, "%s/p/g1/file", workspace), NULL};
	int in[2], out[2];

	if (vx_pipe(in) < 0 || vx_pipe(out) < 0)
		die("opens", "no pipe");
	*o = (struct opener){.to = in[1], .from = out[0], .box = box};
	if (box) {
		struct vx_task_desc d;
		struct vx_err err = {0};
		make_task(2, &d);
		d.argv = (struct vx_strs){argv, 3};
		if (vx_box_start(box, &d, in[0], out[1], null_fd, &err) < 0)
			die("vx", err.what);
	} else {
		struct vx_spawn s = VX_SPAWN_INIT;
		struct vx_spawn_fd fds[] = {{in[0], 0}, {out[1], 1}};
		int pidfd;
		s.path = argv[0];
		s.argv = argv;
		s.fds = fds;
		s.n_fds = 2;
		if (vx_spawn(&s, &o->pid, &pidfd, NULL) < 0)
			die("opens", strerror(errno));
		vx_close(pidfd);
	}
	vx_close(in[0]);
	vx_close(out[1]);
}

static double ask_opener(const struct opener *o)
{
	double ns;

	if (write(o->to, "x", 1) != 1 ||
		vx_read_full(o->from, &ns, sizeof ns) != (ssize_t)sizeof ns)
		die("opens", "no answer");
	return ns;
}

static void end_opener(struct opener *o)
{
	vx_close(o->to);
	vx_close(o->from);
	while (o->box && !box_over(o->box)) {
		struct pollfd p = {.fd = vx_box_fd(o->box), .events = POLLIN};
		poll(&p, 1, -1);
	}
	if (!o->box)
		waitpid(o->pid, NULL, 0);
}

static double measure_opens(void)
{
	enum { TURNS = MAX_ROUNDS };
	struct opener in, out;
	double r[TURNS], i[TURNS], o[TURNS], lo, hi;

	start_opener(&in, boxes[0]);
	start_opener(&out, NULL);
	ask_opener(&in);
	ask_opener(&out);
	for (int k = 0; k < TURNS; k++) {
		i[k] = k % 2 ? ask_opener(&in) : 0;
		o[k] = ask_opener(&out);
		i[k] = k % 2 ? i[k] : ask_opener(&in);
		r[k] = i[k] / o[k];
	}
	end_opener(&in);
	end_opener(&out);
	double inside = median(i, TURNS, &lo, &hi), outside = median(o, TURNS, &lo, &hi);
	printf("an open and close: %.0f ns inside, %.0f ns outside (CPU time, medians of %d turns)\n",
		inside, outside, TURNS);
	return median(r, TURNS, &lo, &hi);
}

static double process_clock_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int count_opens(const char *path)
{
	enum { OPENS = 2000 };
	char c;

	while (vx_read(0, &c, 1) == 1) {
		double begin = process_clock_ns();
		for (int i = 0; i < OPENS; i++) {
			int fd = open(path, O_RDONLY | O_CLOEXEC);
			if (fd < 0)
				return 1;
			close(fd);
		}
		double ns = (process_clock_ns() - begin) / OPENS;
		if (vx_write_full(1, &ns, sizeof ns) < 0)
			return 1;
	}
	return 0;
}

/* ---- set-up ---- */

static void make_workspace(const char *self)
{
	char path[VX_MAX_PATH * 2];

	snprintf(workspace, sizeof workspace, "/var/tmp/vx-bench.XXXXXX");
	if (!mkdtemp(workspace))
		die(workspace, strerror(errno));
	for (int i = 0; i < MAX_GRANTS; i++) {
		snprintf(path, sizeof path, "%s/p/g%d", workspace, i);
		if (vx_mkdir_p(AT_FDCWD, path, 0755) < 0)
			die(path, "cannot be made");
	}
	snprintf(path, sizeof path, "cp %s %s/p/g1/bench && echo x >%s/p/g1/file", self, workspace,
		workspace);
	if (system(path) != 0)
		die(path, "failed");
}

static void start_srt(void)
{
	const char *dir = getenv("SRT_DIR");
	int in[2], out[2];

	if (!dir || pipe(in) < 0 || pipe(out) < 0)
		return;
	srt_pid = fork();
	if (srt_pid == 0) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		close(in[1]);
		close(out[0]);
		execlp("node", "node", "bench/sandbox_srt.mjs", dir, workspace, (char *)NULL);
		_exit(1);
	}
	close(in[0]);
	close(out[1]);
	srt_in = fdopen(in[1], "w");
	srt_out = fdopen(out[0], "r");
}

static void prepare(const char *self)
{
	struct vx_box_opts o = {.bwrap_path = bwrap};
	const char *build = getenv("VX_BUILD") ? getenv("VX_BUILD") : "build";

	make_workspace(self);
	snprintf(init_path, sizeof init_path, "%s/vx-init", build);
	if (vx_which("bwrap", getenv("PATH"), bwrap) < 0 ||
		(o.init_fd = vx_open(AT_FDCWD, init_path, O_RDONLY, 0)) < 0)
		die("bwrap or vx-init", "not found");
	null_fd = vx_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
	rules_fd = vx_memfd("rules");
	newer_fd = vx_memfd("newer");
	if (box_seccomp_rules(BOX_ARCH_NATIVE,
		    (struct box_seccomp){.no_unix = true, .no_net = true}, rules_fd) < 0 ||
		box_seccomp_newer(BOX_ARCH_NATIVE, newer_fd) < 0)
		die("filters", "cannot be made");
	start_srt();
	for (int i = 0; i < MAX_CONCURRENCY; i++)
		vx_box_new(&o, &boxes[i]);
}

int main(int argc, char **argv)
{
	static struct point points[] = {{2, 1}, {20, 1}, {200, 1}, {20, 2}, {20, 16}};
	enum { POINTS = sizeof points / sizeof *points };
	char self[VX_MAX_PATH];

	if (argc > 1 && !strcmp(argv[1], "-boxhost"))
		return vx_boxhost_main(argc, argv);
	if (argc > 2 && !strcmp(argv[1], "-opens"))
		return count_opens(argv[2]);
	int rounds = argc > 1 ? atoi(argv[1]) : 40, tasks = argc > 2 ? atoi(argv[2]) : 6;
	if (rounds < 1 || rounds > MAX_ROUNDS || tasks < 1)
		die("usage", "sandbox [ROUNDS [TASKS]]");
	vx_readlink(AT_FDCWD, "/proc/self/exe", self, sizeof self);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prepare(self);
	for (int i = 0; i < POINTS; i++) {
		struct vx_sbx_facts facts = vx_sbx_real_facts();
		struct vx_sbx_request q;
		struct vx_err err = {0};
		make_task(points[i].grants, &points[i].d);
		if (vx_sbx_resolve(&points[i].d.sandbox, &facts, &arena, &q, &err) < 0)
			die("request", err.what);
		points[i].bare = bwrap_argv(&q);
	}
	run_rounds(points, POINTS, rounds, tasks);
	for (int i = 0; i < POINTS; i++)
		report(&points[i], tasks);
	draw(points, POINTS);
	goals(points, POINTS, measure_opens());
	for (int i = 0; i < MAX_CONCURRENCY; i++)
		vx_box_free(boxes[i]);
	if (srt_in) {
		fclose(srt_in);
		waitpid(srt_pid, NULL, 0);
	}
	return vx_rm_rf(AT_FDCWD, workspace) == 0 ? 0 : 1;
}
