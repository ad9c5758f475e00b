/* From a task descriptor to a running command, in its own session, with the capture pipes as 1 and
 * 2 and nothing else of ours. */
#include "worker.h"

#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/point.h"
#include "vx/spawn.h"
#include "vx/strs.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Nothing runs: the completion says why. */
static void not_started(struct worker *w, enum vx_end end)
{
	struct attempt *a = &w->a;

	capture_close(a);
	a->done.end = (uint16_t)end;
	a->done.start_ns = a->done.end_ns = vx_now_ns();
	limits_settle(w);
	worker_publish(w, &a->done, true);
	vx_arena_free(&w->arena);
	a->phase = IDLE;
}

static const char *path_of(struct vx_strs env)
{
	for (uint32_t i = 0; i < env.n; i++)
		if (vx_starts_with(env.v[i], "PATH="))
			return env.v[i] + 5;
	return NULL;
}

static void describe_exec(const struct vx_task_desc *d, const char *path, int r, char *ret)
{
	struct stat st;

	if (r == -ENOENT && stat(path, &st) == 0)
		snprintf(ret, VX_DONE_TEXT,
			"exec: %s cannot be run: the interpreter in its #! line or its loader does not exist",
			path);
	else if (r == -ENOENT)
		snprintf(ret, VX_DONE_TEXT, "exec: %s does not exist", path);
	else if (r == -EACCES)
		snprintf(ret, VX_DONE_TEXT, "exec: %s is not executable", path);
	else if (r == -ENOEXEC)
		snprintf(ret, VX_DONE_TEXT, "exec: %s is not a program and has no #! line", path);
	else if (r == -E2BIG)
		snprintf(ret, VX_DONE_TEXT,
			"exec: the command line and environment of %s are longer than the system allows",
			d->id);
	else
		snprintf(ret, VX_DONE_TEXT, "exec: %s: %s", path, vx_strerror(r));
}

static void describe(
	const struct vx_task_desc *d, const char *step, const char *path, int r, char *ret)
{
	if (vx_streq(step, "chdir")) {
		if (r == -ENOENT)
			snprintf(ret, VX_DONE_TEXT, "chdir: cwd does not exist: %s", d->cwd);
		else
			snprintf(ret, VX_DONE_TEXT, "chdir: cannot enter %s: %s", d->cwd,
				vx_strerror(r));
	} else if (vx_streq(step, "path")) {
		snprintf(ret, VX_DONE_TEXT, "exec: %s is not found on the task's PATH",
			d->argv.v[0]);
	} else if (vx_streq(step, "exec")) {
		describe_exec(d, path, r, ret);
	} else if (r == -EMFILE || r == -ENFILE) {
		snprintf(ret, VX_DONE_TEXT, "%s: no more file descriptors (ulimit -n)", step);
	} else if (r == -EAGAIN) {
		snprintf(ret, VX_DONE_TEXT,
			"%s: no more processes allowed (ulimit -u, or the pids limit of the cgroup)",
			step);
	} else {
		snprintf(ret, VX_DONE_TEXT, "%s: %s", step, vx_strerror(r));
	}
}

/* The child's standard descriptors, in `fds`; 0 is left to /dev/null unless the task keeps a pipe
 * on it. */
static int standard_fds(struct attempt *a, struct vx_spawn_fd fds[3], uint32_t *ret_n,
	int *ret_close, const char **ret_step)
{
	int p[2], r;

	*ret_n = 0;
	*ret_close = -1;
	for (int i = 0; i < 2; i++)
		fds[(*ret_n)++] = (struct vx_spawn_fd){a->streams[i].keep_fd, i + 1};
	if (!a->d.persistent)
		return 0;
	r = vx_pipe(p);
	if (r < 0) {
		*ret_step = "pipe";
		return r;
	}
	a->in_fd = p[1];
	*ret_close = p[0];
	fds[(*ret_n)++] = (struct vx_spawn_fd){p[0], 0};
	return 0;
}

/* Runs argv[0] from the task's directory, which is ours for that moment only: relative entries of
 * PATH and a relative program mean what the command itself would take them for. */
static int spawn_here(struct worker *w, const struct vx_spawn_fd *fds, uint32_t n_fds,
	const char **ret_step, char path[VX_MAX_PATH])
{
	struct attempt *a = &w->a;
	struct vx_spawn s = VX_SPAWN_INIT;
	int r, pidfd;

	*ret_step = "chdir";
	if (chdir(a->d.cwd) < 0)
		return -errno;
	*ret_step = "path";
	if (strchr(a->d.argv.v[0], '/') != NULL)
		snprintf(path, VX_MAX_PATH, "%s", a->d.argv.v[0]);
	else if ((r = vx_which(a->d.argv.v[0], path_of(a->d.env), path)) < 0)
		return r;
	s.path = path;
	s.argv = a->d.argv.v;
	s.envp = a->d.env.v;
	s.fds = fds;
	s.n_fds = n_fds;
	s.new_session = true;
	/* the last resort: whoever kills us kills our killers too, all at once */
	s.death_signal = SIGKILL;
	s.join_cgroup_fd = w->limits.cgroup.procs_fd[CGROUP_MEMORY];
	s.join_cgroup_fd2 = w->limits.cgroup.procs_fd[CGROUP_PIDS];
	/* in front: the command may be over by the time that the call returns */
	a->done.start_ns = vx_now_ns();
	r = vx_spawn(&s, &a->pid, &pidfd, ret_step);
	if (r < 0)
		return r;
	w->childless = false;
	vx_close(pidfd); /* we alone reap it: its number cannot be given away while we use it */
	return 0;
}

static void started(struct worker *w)
{
	struct attempt *a = &w->a;
	struct vx_done *d = &a->done;

	VX_POINT("worker.spawned");
	a->phase = RUNNING;
	d->kind = VX_DONE_STARTED;
	a->deadline_ns = a->d.timeout_ms > 0 ? d->start_ns + a->d.timeout_ms * 1000000ULL : 0;
	/* Somebody may wait for a server to be up; for anything else an early exit tells it
	 * along. */
	worker_publish(w, d, a->d.persistent);
	d->kind = VX_DONE_EXITED;
	VX_POINT("worker.started");
}

static void spawn_box(struct worker *w)
{
	struct attempt *a = &w->a;
	struct vx_spawn_fd fds[3];
	struct vx_err err = {0};
	const char *step = NULL;
	uint32_t n;
	int close_fd, r = standard_fds(a, fds, &n, &close_fd, &step);

	if (r < 0) {
		describe(&a->d, step, NULL, r, a->done.text);
		not_started(w, VX_END_SPAWN);
		return;
	}
	w->childless = false;
	r = worker_box(w);
	if (r == 0)
		vx_box_join(w->box, w->limits.cgroup.procs_fd, CGROUP_KINDS);
	if (r == 0)
		r = vx_box_start(w->box, &a->d, close_fd, a->streams[0].keep_fd,
			a->streams[1].keep_fd, &err);
	vx_close(close_fd);
	if (r < 0) {
		if (err.code == 0)
			vx_err_set(&err, r, "sandbox: %s", vx_strerror(r));
		vx_err_line(&err, a->done.text, sizeof a->done.text);
		not_started(w, VX_END_REFUSED);
		return;
	}
	a->phase = BOXING;
}

void spawn_attempt(struct worker *w)
{
	struct attempt *a = &w->a;
	struct vx_spawn_fd fds[3];
	char path[VX_MAX_PATH];
	const char *step = NULL;
	uint32_t n;
	int close_fd = -1, r = capture_open(a, &step);

	a->done = (struct vx_done){
		.kind = VX_DONE_EXITED, .task = a->d.task, .attempt = a->d.attempt};
	if (r < 0) {
		describe(&a->d, step, NULL, r, a->done.text);
		not_started(w, VX_END_SPAWN);
		return;
	}
	limits_join(w);
	if (a->d.sandboxed) {
		spawn_box(w);
		return;
	}
	r = standard_fds(a, fds, &n, &close_fd, &step);
	if (r == 0) {
		r = spawn_here(w, fds, n, &step, path);
		if (r < 0)
			describe(&a->d, step, path, r, a->done.text);
		if (chdir("/") < 0)
			worker_die(w, 71);
	} else {
		describe(&a->d, step, NULL, r, a->done.text);
	}
	vx_close(close_fd);
	if (r < 0)
		not_started(w, VX_END_SPAWN);
	else
		started(w);
}
