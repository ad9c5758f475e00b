/* The worker's loop: requests in, completions out, one ppoll in between. */
#include "worker.h"

#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/point.h"
#include "vx/proctree.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

enum { P_REQUEST, P_FORK_SERVER, P_SCHEDULER, P_STDOUT, P_STDERR, P_BOX, P_COUNT };

static volatile sig_atomic_t child_died;

/* Ends everything below us and us; also our own way out when the region cannot be trusted any more.
 * The box host is asked and not killed, since it has placeholders to sweep; should it hang, those
 * who wait for us kill us and then it. */
void worker_die(struct worker *w, int status)
{
	vx_tree_end(w->box != NULL ? stop_spares : NULL, NULL, w, 0, 0);
	vx_box_free(w->box);
	w->box = NULL;
	vx_tree_end(NULL, NULL, NULL, 0, 0);
	limits_remove(w);
	_exit(status);
}

int worker_box(struct worker *w)
{
	struct vx_box_opts o = {w->bwrap_path, w->init_fd};

	return w->box != NULL ? 0 : vx_box_new(&o, &w->box);
}

/* Wakes the scheduler if it sleeps: at once, or together with what comes within VX_TELL_DELAY_MS.
 * If it does not sleep, it looks before it does. */
void worker_tell(struct worker *w, bool at_once)
{
	if (vx_sleep_seen(&vx_region_header(&w->region)->scheduler_sleeps) == 0)
		return;
	if (at_once) {
		w->tell_ns = 0;
		vx_event_signal(w->pool_event_fd);
	} else if (w->tell_ns == 0) {
		w->tell_ns = vx_now_ns() + VX_TELL_DELAY_MS * 1000000ULL;
	}
}

void worker_publish(struct worker *w, const struct vx_done *d, bool at_once)
{
	/* There is room for every completion of one task at a time; a full ring is a scheduler that
	 * broke the rules. */
	if (vx_ring_push(vx_slot_dones(w->slot), d) < 0)
		worker_die(w, 70);
	VX_POINT(d->kind == VX_DONE_EXITED ? "worker.published" : "worker.told");
	worker_tell(w, at_once);
}

static void refuse_request(struct worker *w, const struct vx_request *q)
{
	struct vx_done d = {.kind = VX_DONE_EXITED,
		.task = q->task,
		.attempt = q->attempt,
		.end = VX_END_SPAWN};

	snprintf(d.text, sizeof d.text, "descriptor: the worker cannot read it");
	d.start_ns = d.end_ns = vx_now_ns();
	worker_publish(w, &d, true);
}

static void run_request(struct worker *w, const struct vx_request *q)
{
	struct attempt *a = &w->a;
	const void *p = vx_region_arena(&w->region, q->offset, q->length);

	if (a->phase != IDLE)
		worker_die(w, 70);
	memset(a, 0, offsetof(struct attempt, done));
	memset((char *)a + offsetof(struct attempt, streams), 0,
		sizeof *a - offsetof(struct attempt, streams));
	if (p == NULL || vx_desc_decode(p, q->length, &w->arena, &a->d) < 0 ||
		a->d.task != q->task || a->d.attempt != q->attempt) {
		vx_arena_free(&w->arena);
		refuse_request(w, q);
		return;
	}
	VX_POINT("worker.taken");
	spawn_attempt(w);
}

static void publish_verdict(struct worker *w, enum vx_end end, uint32_t flags, const char *text)
{
	struct vx_done d = {.kind = VX_DONE_ARMED, .end = (uint16_t)end, .flags = flags};

	w->arming = false;
	snprintf(d.text, sizeof d.text, "%s", text);
	worker_publish(w, &d, true);
}

/* What is no verdict on the machine: whatever it was, it can be tried again. */
static void arming_broke(struct vx_err *err, int r, const char *why)
{
	vx_err_set(err, r, "sandbox not available: %s", why);
	vx_err_fix(err, "run it again; where it stays, `vx info` tries it alone");
}

static void arm_request(struct worker *w, bool weaker)
{
	struct vx_err err = {0};
	int r = worker_box(w);

	w->childless = false;
	if (r == 0)
		r = vx_box_arm(w->box, weaker, &err);
	if (r == 0) {
		w->arming = true;
		return;
	}
	char line[VX_DONE_TEXT];
	if (err.code == 0)
		arming_broke(&err, r, vx_strerror(r));
	vx_err_line(&err, line, sizeof line);
	publish_verdict(w, VX_END_REFUSED, 0, line);
}

static void take_requests(struct worker *w)
{
	struct vx_request q;
	int r;

	while ((r = vx_ring_pop(vx_slot_requests(w->slot), &q)) == 1) {
		bool current =
			w->a.phase != IDLE && q.task == w->a.d.task && q.attempt == w->a.d.attempt;

		if (q.kind == VX_REQ_RUN)
			run_request(w, &q);
		else if (q.kind == VX_REQ_STOP && current && q.signal > 0 && q.signal < NSIG)
			stop_request(w, q.signal);
		else if (q.kind == VX_REQ_ARM)
			arm_request(w, q.signal != 0);
		else if (q.kind == VX_REQ_SHUTDOWN)
			w->ending = true;
	}
	if (r < 0)
		worker_die(w, 70);
}

static void box_started(struct worker *w, const struct vx_done *got)
{
	struct attempt *a = &w->a;
	struct vx_done *d = &a->done;

	if (a->phase != BOXING)
		return;
	a->phase = RUNNING;
	d->kind = VX_DONE_STARTED;
	d->start_ns = got->start_ns;
	d->setup_ns = got->setup_ns;
	d->flags |= got->flags;
	a->deadline_ns = a->d.timeout_ms > 0 ? d->start_ns + a->d.timeout_ms * 1000000ULL : 0;
	worker_publish(w, d, a->d.persistent);
	/* what was asked for while the sandbox was being built, the box host has kept */
	d->kind = VX_DONE_EXITED;
}

static void box_ended(struct worker *w, enum vx_box_kind kind, const struct vx_done *got)
{
	struct attempt *a = &w->a;
	struct vx_done *d = &a->done;
	uint64_t start = d->start_ns, setup = d->setup_ns;
	uint32_t flags = d->flags;

	if (a->phase != BOXING && a->phase != RUNNING)
		return;
	*d = *got;
	d->kind = VX_DONE_EXITED;
	d->task = a->d.task;
	d->attempt = a->d.attempt;
	d->flags |= flags;
	if (d->start_ns == 0)
		d->start_ns = start;
	if (d->setup_ns == 0)
		d->setup_ns = setup;
	if (d->end_ns == 0)
		d->end_ns = vx_now_ns();
	if (kind == VX_BOX_REFUSED)
		d->end = VX_END_REFUSED;
	if (kind == VX_BOX_LOST) {
		d->end = VX_END_LOST;
		if (d->text[0] == 0)
			snprintf(d->text, sizeof d->text, "the sandbox's supervisor died");
	}
	a->phase = LEAVING;
	/* its tree died with its pid namespace; nothing below us is meant to live */
	a->killing = true;
}

static void take_box_events(struct worker *w)
{
	static struct vx_done d;
	enum vx_box_kind kind;

	while (w->box != NULL && vx_box_next(w->box, &kind, &d) == 1) {
		if (kind == VX_BOX_ARMED || (w->arming && w->a.phase == IDLE))
			publish_verdict(w,
				kind == VX_BOX_ARMED ? (enum vx_end)d.end : VX_END_REFUSED, d.flags,
				d.text[0] != 0 || kind == VX_BOX_ARMED
					? d.text
					: "sandbox not available: its supervisor died (run it again)");
		else if (kind == VX_BOX_STARTED)
			box_started(w, &d);
		else
			box_ended(w, kind, &d);
	}
}

static uint64_t sooner(uint64_t a, uint64_t b)
{
	return a == 0 || (b != 0 && b < a) ? b : a;
}

/* When the loop must look again though nothing happens; 0 never. */
static uint64_t next_timer(const struct worker *w, uint64_t now)
{
	const struct attempt *a = &w->a;
	uint64_t at = w->tell_ns;

	if (a->phase == RUNNING)
		at = sooner(at, a->deadline_ns);
	if ((a->phase == RUNNING || a->phase == BOXING) && a->why == WHY_TIMEOUT && !a->killing)
		at = sooner(at, a->kill_ns);
	if (a->phase == LEAVING && !a->killing)
		at = sooner(at, a->kill_ns);
	if (a->killing && (a->phase == LEAVING || a->phase == RUNNING))
		at = sooner(at, now + VX_KILL_AGAIN_MS * 1000000ULL);
	if (a->phase == DRAINING &&
		!(capture_blocked(w) && a->streams[0].must + a->streams[1].must > 0))
		at = sooner(at, a->cut_ns);
	return at;
}

/* Work that is due whatever woke us. */
static void step(struct worker *w)
{
	struct attempt *a = &w->a;
	uint64_t now = w->tell_ns != 0 || a->deadline_ns != 0 || a->kill_ns != 0 ? vx_now_ns() : 0;

	if (w->tell_ns != 0 && now >= w->tell_ns) {
		w->tell_ns = 0;
		/* Somebody else may have woken the scheduler meanwhile, and it has taken what was
		 * there. */
		if (!vx_ring_empty(vx_slot_dones(w->slot)) ||
			vx_bring_used(vx_slot_output(w->slot)) > 0)
			worker_tell(w, true);
	}
	stop_timers(w, now);
	if (a->phase == LEAVING)
		stop_leave(w);
	else if (a->phase == DRAINING)
		capture_drain(w);
}

static void on_sigchld(int sig)
{
	(void)sig;
	child_died = 1;
}

/* Sleeps until something happens, and reads what the pipes hold. Announces the sleep, looks again,
 * sleeps. */
static void wait_for_work(struct worker *w)
{
	struct attempt *a = &w->a;
	bool capture = a->phase != IDLE, blocked = capture && capture_blocked(w);
	struct pollfd p[P_COUNT] = {{w->request_fd, POLLIN, 0}, {w->fork_server_fd, POLLIN, 0},
		{w->scheduler_fd, POLLIN, 0},
		{capture && !blocked ? a->streams[0].fd : -1, POLLIN, 0},
		{capture && !blocked ? a->streams[1].fd : -1, POLLIN, 0},
		{w->box != NULL ? vx_box_fd(w->box) : -1, POLLIN, 0}};
	sigset_t none;
	uint64_t now, at;
	struct timespec ts, *timeout = NULL;

	vx_sleep_announce(
		&w->slot->worker_sleeps, VX_SLEEP_REQUEST | (blocked ? VX_SLEEP_SPACE : 0));
	if (!vx_ring_empty(vx_slot_requests(w->slot)) || (blocked && !capture_blocked(w))) {
		vx_sleep_announce(&w->slot->worker_sleeps, 0);
		return;
	}
	now = w->tell_ns != 0 || capture ? vx_now_ns() : 0;
	at = next_timer(w, now);
	if (at != 0) {
		at = at > now ? at - now : 0;
		ts = (struct timespec){(time_t)(at / 1000000000ULL), (long)(at % 1000000000ULL)};
		timeout = &ts;
	}
	sigemptyset(&none);
	if (ppoll(p, P_COUNT, timeout, &none) < 0)
		memset(p, 0, sizeof p); /* EINTR: a child has died */
	atomic_store_explicit(&w->slot->worker_sleeps, 0, memory_order_relaxed);
	if (p[P_REQUEST].revents != 0)
		vx_event_clear(w->request_fd);
	if (p[P_FORK_SERVER].revents != 0 || p[P_SCHEDULER].revents != 0)
		worker_die(w, 0);
	for (int i = 0; i < 2; i++)
		if (p[P_STDOUT + i].revents != 0)
			capture_read(w, i);
	if (p[P_BOX].revents != 0)
		take_box_events(w);
}

static struct worker the_worker;

void vx_worker_main(const struct vx_worker_start *s)
{
	struct worker *w = &the_worker;

	setsid();
	prctl(PR_SET_PDEATHSIG, SIGCONT); /* one that is stopped would not see its parent die */
	vx_tree_keep("vx-worker", on_sigchld);
	w->region = s->region;
	w->index = s->slot;
	w->slot = vx_region_slot(&s->region, s->slot);
	w->request_fd = s->request_fd;
	w->pool_event_fd = s->pool_event_fd;
	w->fork_server_fd = s->fork_server_fd;
	w->scheduler_fd = s->scheduler_fd;
	w->init_fd = s->init_fd;
	w->bwrap_path = s->bwrap_path;
	w->limits.cgroup = CGROUP_INIT;
	if (vx_slot_check(w->slot) < 0)
		worker_die(w, 70);
	while (!w->ending) {
		take_requests(w);
		if (child_died) {
			child_died = 0; /* first: who dies from here on sets it again */
			stop_reap(w);
		}
		step(w);
		if (!w->ending && vx_ring_empty(vx_slot_requests(w->slot)))
			wait_for_work(w);
	}
	worker_die(w, 0);
}
