/* What a sandbox costs a task: `sh -c true` unsandboxed, in this sandbox, in bare bubblewrap given the same policy, and in sandbox-runtime, in turns.
 *
 * usage: sandbox [ROUNDS [TASKS]]    default 15 rounds of 24 tasks for each point: concurrency 1, 2 and 16 with 20 grants; 2, 20 and 200 grants at 1
 *
 * Bare bubblewrap gets every mount, mask, cover, namespace and filter of the request as its own options. sandbox-runtime (SRT_DIR: where npm has installed
 * @anthropic-ai/sandbox-runtime; bench/sandbox_srt.mjs) is used as a library in one node process that lives through all rounds; left out when not there. CPU
 * is user and system time of everything that the tasks needed, box hosts and bubblewrap included. Writes $VX_BUILD/bench/sandbox-*.json and sandbox.svg. */
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

enum way { VX, BWRAP, PLAIN, SRT, WAYS };
static const char *const labels[WAYS] = {"vx", "bare bwrap", "unsandboxed", "sandbox-runtime"};

#define MAX_CONCURRENCY 16
#define MAX_GRANTS 200
#define MAX_ROUNDS 101
#define COVERS_MAX 64

static struct vx_arena arena;
static char workspace[VX_MAX_PATH], bwrap[VX_MAX_PATH], init_path[VX_MAX_PATH];
static struct vx_box *boxes[MAX_CONCURRENCY];
static FILE *srt_in, *srt_out;
static pid_t srt_pid;
static int null_fd, rules_fd, newer_fd;

struct point {
	int grants, concurrency;
	double wall[WAYS][MAX_ROUNDS], cpu[WAYS][MAX_ROUNDS]; /* ms per task */
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "bench/sandbox: %s: %s\n", what, why);
	exit(1);
}

/* ---- the policy ---- */

static void make_task(int grants, struct vx_task_desc *d)
{
	static const char *const argv[] = {"/bin/sh", "-c", "true"}, *const env[] = {"PATH=/usr/bin:/bin", "HOME=/root"};
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
	static const char *const covers[] = {
		"/proc/sys", "/proc/sysrq-trigger", "/proc/irq", "/proc/bus", "/proc/mtrr", "/proc/acpi", "/proc/fs", "/proc/pressure"};
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
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

/* Of a process and the children it has waited for, by proc(5), in clock ticks. */
static double process_cpu_ms(pid_t pid)
{
	char path[64], text[1024] = "";
	unsigned long t[4] = {0};

	snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
	FILE *f = fopen(path, "re");
	if (f && fgets(text, sizeof text, f) && strrchr(text, ')'))
		sscanf(strrchr(text, ')') + 2, "%*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %lu %lu", &t[0], &t[1], &t[2], &t[3]);
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

static void batch_spawn(const char *path, const char *const *argv, bool filters, int concurrency, int n)
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
		pid_t p = waitpid(-1, &status, 0); /* what bwrap leaves unreaped comes to us, for the sake of its CPU time */
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

static double cpu_now_ms(enum way way, int concurrency)
{
	double ms = 0;

	if (way == SRT)
		return process_cpu_ms(srt_pid);
	if (way != VX)
		return children_cpu_ms();
	for (int i = 0; i < concurrency; i++)
		ms += process_cpu_ms(vx_box_pid(boxes[i]));
	return ms + process_cpu_ms(getpid()) - children_cpu_ms();
}

static void measure(struct point *p, enum way way, const struct vx_task_desc *d, const char *const *argv, int n, int round)
{
	static const char *const plain[] = {"/bin/sh", "-c", "true", NULL};
	double cpu = cpu_now_ms(way, p->concurrency);
	uint64_t begin = vx_now_ns();

	if (way == VX)
		batch_vx(d, p->concurrency, n);
	else if (way == BWRAP)
		batch_spawn(bwrap, argv, true, p->concurrency, n);
	else if (way == PLAIN)
		batch_spawn("/bin/sh", plain, false, p->concurrency, n);
	else
		batch_srt(p->grants, p->concurrency, n);
	p->wall[way][round] = (double)(vx_now_ns() - begin) / 1e6 / n;
	p->cpu[way][round] = (cpu_now_ms(way, p->concurrency) - cpu) / n;
}

/* ---- what comes out ---- */

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *v, int n, double *ret_min, double *ret_max)
{
	double s[MAX_ROUNDS];

	memcpy(s, v, (size_t)n * sizeof *s);
	qsort(s, (size_t)n, sizeof *s, by_value);
	*ret_min = s[0];
	*ret_max = s[n - 1];
	return s[n / 2];
}

static FILE *result_file(const char *name)
{
	const char *build = getenv("VX_BUILD") ? getenv("VX_BUILD") : "build";
	char path[VX_MAX_PATH];

	snprintf(path, sizeof path, "%s/bench", build);
	vx_mkdir_p(AT_FDCWD, path, 0777);
	snprintf(path, sizeof path, "%s/bench/%s", build, name);
	FILE *f = fopen(path, "we");
	if (!f)
		die(path, strerror(errno));
	return f;
}

static void report(const struct point *p, int rounds, int tasks)
{
	char name[128];
	double lo, hi, base = median(p->wall[BWRAP], rounds, &lo, &hi);

	snprintf(name, sizeof name, "sandbox-g%d-c%d.json", p->grants, p->concurrency);
	FILE *f = result_file(name);
	fprintf(f, "{\"bench\": \"sandbox, %d grants, concurrency %d\", \"rounds\": %d, \"per\": %d, \"cpus\": %ld, \"rows\": [", p->grants,
		p->concurrency, rounds, tasks, sysconf(_SC_NPROCESSORS_ONLN));
	for (int w = 0; w < WAYS; w++) {
		if (w == SRT && !srt_in)
			continue;
		double wall = median(p->wall[w], rounds, &lo, &hi), wlo = lo, whi = hi, cpu = median(p->cpu[w], rounds, &lo, &hi);
		fprintf(f,
			"%s\n {\"label\": \"%s\", \"wall_ms\": %.3f, \"wall_ms_min\": %.3f, \"wall_ms_max\": %.3f, \"cpu_ms\": %.3f, \"ratio\": %.3f}",
			w ? "," : "", labels[w], wall, wlo, whi, cpu, wall / base);
	}
	fprintf(f, "\n]}\n");
	fclose(f);
}

/* One group of bars per point: wall time per task. */
static void draw(const struct point *p, int n_points, int rounds)
{
	static const char *const color[WAYS] = {"#2a7", "#47b", "#999", "#c63"};
	double lo, hi, top = 1;
	FILE *f = result_file("sandbox.svg");

	for (int i = 0; i < n_points; i++)
		for (int w = 0; w < WAYS; w++)
			if (median(p[i].wall[w], rounds, &lo, &hi) > top)
				top = median(p[i].wall[w], rounds, &lo, &hi);
	fprintf(f, "<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='300' font-family='sans-serif' font-size='11'>\n", 60 + n_points * 130);
	for (int i = 0; i < n_points; i++)
		for (int w = 0; w < WAYS; w++) {
			double v = median(p[i].wall[w], rounds, &lo, &hi), h = v / top * 200;
			int x = 40 + i * 130 + w * 26;
			fprintf(f, "<rect x='%d' y='%.1f' width='22' height='%.1f' fill='%s'/><text x='%d' y='%.1f'>%.1f</text>\n", x, 240 - h, h,
				color[w], x, 236 - h, v);
		}
	for (int i = 0; i < n_points; i++)
		fprintf(f, "<text x='%d' y='256'>%d grants, %d at once</text>\n", 40 + i * 130, p[i].grants, p[i].concurrency);
	for (int w = 0; w < WAYS; w++)
		fprintf(f, "<text x='%d' y='280' fill='%s'>%s</text>\n", 40 + w * 130, color[w], labels[w]);
	fprintf(f, "<text x='40' y='16'>ms per task, median of %d rounds</text></svg>\n", rounds);
	fclose(f);
}

/* An open inside against one outside, by `sh` counting as fast as it can is no measure: a program of ours opens one granted file again and again. */
static double open_ns(bool inside)
{
	struct vx_task_desc d;
	char out[VX_MAX_PATH], text[64] = "";
	const char *argv[] = {
		vx_arena_printf(&arena, "%s/p/g1/bench", workspace), "-opens", vx_arena_printf(&arena, "%s/p/g1/file", workspace), NULL};

	snprintf(out, sizeof out, "%s/opens", workspace);
	int fd = vx_open(AT_FDCWD, out, O_RDWR | O_CREAT | O_TRUNC, 0600);
	if (inside) {
		struct vx_err err = {0};
		make_task(2, &d);
		d.argv = (struct vx_strs){argv, 3};
		if (vx_box_start(boxes[0], &d, null_fd, fd, null_fd, &err) < 0)
			die("vx", err.what);
		do {
			struct pollfd p = {.fd = vx_box_fd(boxes[0]), .events = POLLIN};
			poll(&p, 1, -1);
		} while (!box_over(boxes[0]));
	} else {
		struct vx_spawn s = VX_SPAWN_INIT;
		struct vx_spawn_fd to = {fd, 1};
		pid_t pid;
		int pidfd;
		s.path = argv[0];
		s.argv = argv;
		s.fds = &to;
		s.n_fds = 1;
		if (vx_spawn(&s, &pid, &pidfd, NULL) < 0)
			die("opens", strerror(errno));
		waitpid(pid, NULL, 0);
		vx_close(pidfd);
	}
	if (pread(fd, text, sizeof text - 1, 0) <= 0)
		die("opens", "no answer");
	vx_close(fd);
	return strtod(text, NULL);
}

static int count_opens(const char *path)
{
	enum { OPENS = 20000 };
	uint64_t begin = vx_now_ns();

	for (int i = 0; i < OPENS; i++) {
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0)
			return 1;
		close(fd);
	}
	printf("%.1f\n", (double)(vx_now_ns() - begin) / OPENS);
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
	snprintf(path, sizeof path, "cp %s %s/p/g1/bench && echo x >%s/p/g1/file", self, workspace, workspace);
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
	if (vx_which("bwrap", getenv("PATH"), bwrap) < 0 || (o.init_fd = vx_open(AT_FDCWD, init_path, O_RDONLY, 0)) < 0)
		die("bwrap or vx-init", "not found");
	null_fd = vx_open(AT_FDCWD, "/dev/null", O_RDWR, 0);
	rules_fd = vx_memfd("rules");
	newer_fd = vx_memfd("newer");
	if (box_seccomp_rules(BOX_ARCH_NATIVE, (struct box_seccomp){.no_unix = true, .no_net = true}, rules_fd) < 0 ||
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
	int rounds = argc > 1 ? atoi(argv[1]) : 15, tasks = argc > 2 ? atoi(argv[2]) : 24;
	if (rounds < 1 || rounds > MAX_ROUNDS || tasks < 1)
		die("usage", "sandbox [ROUNDS [TASKS]]");
	vx_readlink(AT_FDCWD, "/proc/self/exe", self, sizeof self);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	prepare(self);
	for (int i = 0; i < POINTS; i++) {
		struct vx_sbx_facts facts = vx_sbx_real_facts();
		struct vx_task_desc d;
		struct vx_sbx_request q;
		struct vx_err err = {0};
		make_task(points[i].grants, &d);
		if (vx_sbx_resolve(&d.sandbox, &facts, &arena, &q, &err) < 0)
			die("request", err.what);
		const char *const *bare = bwrap_argv(&q);
		for (int round = -1; round < rounds; round++) /* the first warms up */
			for (int w = 0; w < WAYS; w++)
				if (w != SRT || srt_in)
					measure(&points[i], (enum way)w, &d, bare, w == SRT ? (tasks + 3) / 4 : tasks, round < 0 ? 0 : round);
		report(&points[i], rounds, tasks);
	}
	draw(points, POINTS, rounds);
	double in = 0, out = 0;
	for (int k = 0; k < 9; k++) {
		double i = open_ns(true), o = open_ns(false);
		in = k && in < i ? in : i;
		out = k && out < o ? out : o;
	}
	printf("an open: %.0f ns inside, %.0f ns outside, ratio %.2f\n", in, out, in / out);
	for (int i = 0; i < MAX_CONCURRENCY; i++)
		vx_box_free(boxes[i]);
	if (srt_in) {
		fclose(srt_in);
		waitpid(srt_pid, NULL, 0);
	}
	return vx_rm_rf(AT_FDCWD, workspace) == 0 ? 0 : 1;
}
