/* How an attempt ends: the time limit, requests to stop, leftovers, reaping and what all of it
 * used. */
#include "worker.h"

#include "vx/clock.h"
#include "vx/point.h"
#include "vx/proctree.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

/* The box host is no part of any attempt. */
bool stop_spares(void *worker, pid_t pid)
{
	const struct worker *w = worker;

	return w->box != NULL && pid == vx_box_pid(w->box);
}

static void account(struct worker *w, pid_t pid, int status, const struct rusage *ru)
{
	struct attempt *a = &w->a;

	if (a->phase == IDLE)
		return;
	a->cpu_ns +=
		((uint64_t)ru->ru_utime.tv_sec + (uint64_t)ru->ru_stime.tv_sec) * 1000000000ULL;
	a->cpu_ns += ((uint64_t)ru->ru_utime.tv_usec + (uint64_t)ru->ru_stime.tv_usec) * 1000ULL;
	if ((uint64_t)ru->ru_maxrss > a->peak_kib)
		a->peak_kib = (uint64_t)ru->ru_maxrss;
	if (a->phase == RUNNING && !a->d.sandboxed && pid == a->pid)
		stop_exited(w, status);
}

/* With a box host among our children: each child by itself, so that the host's status stays for who
 * waits for it. */
static bool reap_beside_box(struct worker *w)
{
	struct vx_pids pids = {0};
	struct rusage ru;
	/* who cannot look has not seen that nobody is there */
	bool left = vx_tree_children(&pids) < 0;
	int status;

	for (uint32_t i = 0; i < pids.n; i++) {
		if (stop_spares(w, pids.v[i]))
			continue;
		if (wait4(pids.v[i], &status, WNOHANG, &ru) == pids.v[i])
			account(w, pids.v[i], status, &ru);
		else
			left = true;
	}
	vx_pids_free(&pids);
	return left;
}

bool stop_reap(struct worker *w)
{
	struct rusage ru;
	int status;
	pid_t pid;

	if (w->box != NULL && vx_box_pid(w->box) > 0)
		return reap_beside_box(w);
	while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0)
		account(w, pid, status, &ru);
	w->childless = pid < 0;
	return pid == 0;
}

void stop_exited(struct worker *w, int status)
{
	struct attempt *a = &w->a;

	a->done.end_ns = vx_now_ns();
	VX_POINT("worker.exited");
	a->phase = LEAVING;
	if (WIFSIGNALED(status)) {
		a->done.end = VX_END_SIGNAL;
		a->done.signal = WTERMSIG(status);
	} else {
		a->done.end = VX_END_EXIT;
		a->done.code = WEXITSTATUS(status);
	}
}

/* Of the command only its leftovers are alive. They go at once; after a polite signal to the whole
 * tree they have what is left of the grace. */
void stop_leave(struct worker *w)
{
	struct attempt *a = &w->a;

	/* Who has no child gets none: orphans come from below children. */
	if (!w->childless && stop_reap(w)) {
		if (!a->killing && a->kill_ns > vx_now_ns())
			return;
		a->killing = true;
		limits_kill(w);
		if (vx_tree_kill(stop_spares, w) != 0)
			return; /* SIGCHLD or VX_KILL_AGAIN_MS brings us back */
		stop_reap(w);
	}
	VX_POINT("worker.left");
	capture_drain(w);
}

static void signal_tree(struct worker *w, int sig)
{
	struct attempt *a = &w->a;

	a->sent = sig;
	if (sig == SIGKILL)
		a->killing = true;
	if (a->d.sandboxed && a->phase <= RUNNING)
		vx_box_signal(w->box, sig);
	if (sig == SIGKILL) {
		vx_tree_kill(stop_spares, w);
		limits_kill(w);
	} else if (!a->d.sandboxed)
		vx_tree_signal(sig, stop_spares, w);
}

void stop_request(struct worker *w, int sig)
{
	struct attempt *a = &w->a;

	if (a->phase == IDLE || a->phase == DRAINING)
		return;
	/* What the command's own exit has decided stays decided; only its leftovers hear of the
	 * request then. */
	if (a->phase != LEAVING && a->why == WHY_ITSELF)
		a->why = WHY_STOPPED;
	if (a->kill_ns == 0)
		a->kill_ns = vx_now_ns() + a->d.grace_ms * 1000000ULL;
	signal_tree(w, sig);
}

void stop_timers(struct worker *w, uint64_t now)
{
	struct attempt *a = &w->a;

	if (a->phase == IDLE || a->phase == DRAINING)
		return;
	if (a->phase == RUNNING && a->deadline_ns != 0 && now >= a->deadline_ns) {
		a->deadline_ns = 0;
		if (a->why == WHY_ITSELF) {
			a->why = WHY_TIMEOUT;
			a->kill_ns = now + a->d.grace_ms * 1000000ULL;
			signal_tree(w, SIGTERM);
		}
	}
	/* After a request to stop, when to kill the command is the scheduler's to say; after the
	 * time limit it is ours. */
	if (!a->killing && a->why == WHY_TIMEOUT && a->kill_ns != 0 && now >= a->kill_ns)
		signal_tree(w, SIGKILL);
	else if (a->killing && a->phase == RUNNING && !a->d.sandboxed)
		vx_tree_kill(stop_spares, w);
}

/* The kernel starts a program with the mark of who spawned it: what is not above ours (read after
 * the exit) says nothing. Since ours only grows, an earlier reading is enough to say so of most. */
static void settle_peak(struct worker *w)
{
	struct attempt *a = &w->a;
	struct rusage self;

	if (a->done.peak_bytes > 0 || a->peak_kib <= w->own_peak_kib + VX_PEAK_SLACK_KIB)
		return;
	getrusage(RUSAGE_SELF, &self);
	w->own_peak_kib = (uint64_t)self.ru_maxrss;
	if (a->peak_kib > w->own_peak_kib + VX_PEAK_SLACK_KIB)
		a->done.peak_bytes = a->peak_kib * 1024;
}

void stop_settle(struct worker *w)
{
	struct attempt *a = &w->a;

	if (!a->d.sandboxed) {
		a->done.cpu_ns = a->cpu_ns;
		limits_settle(w);
		settle_peak(w);
	} else {
		limits_settle(w);
	}
	if (a->why == WHY_ITSELF || a->done.end == VX_END_LOST || a->done.end == VX_END_REFUSED)
		return;
	a->done.end = a->why == WHY_TIMEOUT ? VX_END_TIMEOUT : VX_END_STOPPED;
	if (a->done.signal == 0)
		a->done.signal = a->sent;
}
