/* The pool: dispatch, events, sleeping. The contract is vx/pool.h; the fork server's side of it is
 * in pool_server.c. */
#include "pool_internal.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

/* A caller that always finds something to do must still see deaths. */
#define LOOK_EVERY 256U
/* Events of one slot in a row while others wait: its memory is warm, but an endless writer must not
 * starve them. */
#define STREAK 8U

static int fail(struct vx_err *err, int r, const char *what)
{
	vx_err_set(err, r, "cannot make the worker pool: %s: %s", what, vx_strerror(r));
	return r == -EMFILE || r == -ENFILE
		       ? vx_err_fix(err, "raise the limit of open files: ulimit -n")
		       : r;
}

static int open_all(struct vx_pool *p, const struct vx_pool_opts *o, struct vx_err *err)
{
	struct epoll_event e = {.events = EPOLLIN | EPOLLET};
	int r = vx_region_create(o->slots, vx_slabs_bytes(o->slots), &p->region);

	if (r < 0)
		return fail(err, r, "shared memory");
	p->event_fd = r = vx_eventfd();
	if (r < 0)
		return fail(err, r, "eventfd");
	p->self_fd = r = vx_pidfd_open(getpid());
	if (r < 0)
		return fail(err, r, "pidfd_open");
	p->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (p->epoll_fd < 0)
		return fail(err, -errno, "epoll");
	/* Edge-triggered: looking at epoll is then all it takes, and the event is never read. */
	e.data.fd = p->event_fd;
	if (epoll_ctl(p->epoll_fd, EPOLL_CTL_ADD, p->event_fd, &e) < 0)
		return fail(err, -errno, "epoll");
	/* Without it sandboxed tasks are refused with the reason; everything else runs. */
	p->init_fd = o->init_path != NULL ? vx_open(AT_FDCWD, o->init_path, O_RDONLY, 0) : -1;
	if (p->init_fd == -EMFILE || p->init_fd == -ENFILE)
		return fail(err, p->init_fd, o->init_path);
	return pool_server_start(p, err);
}

int vx_pool_start(const struct vx_pool_opts *o, struct vx_pool **ret, struct vx_err *err)
{
	struct vx_pool *p = vx_xcalloc(1, sizeof *p);
	int r;

	vx_assert(o->slots > 0 && o->slots <= VX_MAX_SLOTS);
	p->n_slots = o->slots;
	p->slots = vx_xcalloc(o->slots, sizeof *p->slots);
	p->active = vx_xcalloc(o->slots, sizeof *p->active);
	for (uint32_t i = 0; i < o->slots; i++)
		p->slots[i].request_fd = -1;
	vx_slabs_init(&p->slabs, o->slots);
	p->desc = VX_BUF(VX_MAX_DESC_BYTES);
	p->bwrap_path = vx_xstrdup(o->bwrap_path != NULL ? o->bwrap_path : "");
	p->region.fd = p->epoll_fd = p->event_fd = p->self_fd = p->init_fd = p->timer_fd =
		p->control_fd = p->server_fd = -1;
	vx_tree_children(&p->exempt);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	r = open_all(p, o, err);
	if (r < 0) {
		vx_pool_end(p);
		return r;
	}
	*ret = p;
	return 0;
}

int vx_pool_fd(const struct vx_pool *p)
{
	return p->epoll_fd;
}

void vx_pool_exempt(struct vx_pool *p, pid_t pid, bool on)
{
	struct vx_pids *e = &p->exempt;

	for (uint32_t i = 0; i < e->n; i++)
		if (e->v[i] == pid) {
			if (!on)
				e->v[i] = e->v[--e->n];
			return;
		}
	if (!on)
		return;
	if (e->n == e->cap) {
		e->cap = e->cap > 0 ? 2 * e->cap : 16;
		e->v = vx_xrealloc(e->v, e->cap * sizeof *e->v);
	}
	e->v[e->n++] = pid;
}

void vx_pool_stats(const struct vx_pool *p, struct vx_pool_stats *ret)
{
	*ret = p->stats;
}

/* Publish, then wake whoever announced that it sleeps. */
static int push(struct vx_pool *p, uint32_t slot, const struct vx_request *q)
{
	struct vx_slot *s = vx_region_slot(&p->region, slot);
	int r = vx_slot_check(s) < 0 ? -EBADMSG : vx_ring_push(vx_slot_requests(s), q);

	if (r == 0 && (vx_sleep_seen(&s->worker_sleeps) & VX_SLEEP_REQUEST)) {
		vx_event_signal(p->slots[slot].request_fd);
		p->stats.wakes++;
	}
	return r;
}

/* A worker for the slot, if it has none. What is pushed into its ring now it finds when it
 * starts. */
static int need_worker(struct vx_pool *p, uint32_t slot, bool *ret_new, struct vx_err *err)
{
	struct pool_slot *s = &p->slots[slot];
	int r;

	*ret_new = !s->has_worker;
	if (s->has_worker)
		return 0;
	if (s->request_fd < 0) {
		r = vx_eventfd();
		if (r < 0) {
			vx_err_set(
				err, r, "cannot make worker %u: eventfd: %s", slot, vx_strerror(r));
			return r == -EMFILE || r == -ENFILE
				       ? vx_err_fix(err,
						 "raise the limit of open files (ulimit -n), or lower --concurrency")
				       : r;
		}
		s->request_fd = r;
	}
	vx_slot_reset(vx_region_slot(&p->region, slot));
	return 0;
}

static int new_worker(struct vx_pool *p, uint32_t slot, struct vx_err *err)
{
	struct pool_slot *s = &p->slots[slot];
	int r = pool_server_fork(p, slot);

	if (r < 0)
		return vx_err_set(err, r,
			"cannot make worker %u: the fork server does not take requests: %s", slot,
			vx_strerror(r));
	s->has_worker = true;
	s->hosts = s->poisoned = false;
	return 0;
}

static void occupy(struct vx_pool *p, uint32_t slot)
{
	struct pool_slot *s = &p->slots[slot];

	s->busy = true;
	s->holding = s->again = s->overdue = false;
	s->pending_signal = 0;
	s->kill_ns = 0;
	p->active[p->n_active++] = slot;
}

static void vacate(struct vx_pool *p, uint32_t slot)
{
	struct pool_slot *s = &p->slots[slot];

	s->busy = s->arming = s->holding = false;
	s->pending_signal = 0;
	if (s->has_slab)
		vx_slab_free(&p->slabs, s->slab);
	s->has_slab = false;
	for (uint32_t i = 0; i < p->n_active; i++)
		if (p->active[i] == slot) {
			p->active[i] = p->active[--p->n_active];
			break;
		}
}

static int check_free(struct vx_pool *p, uint32_t slot, struct vx_err *err)
{
	vx_assert(slot < p->n_slots);
	/* A fork server whose death was not noticed yet has taken the worker along. */
	if (!p->broken && !p->slots[slot].has_worker)
		pool_server_look(p);
	if (p->broken)
		return vx_err_set(err, -EPIPE,
			"the fork server died, and its replacement too: nothing more can be started");
	return p->slots[slot].busy ? vx_err_set(err, -EBUSY, "slot %u runs a task already", slot)
				   : 0;
}

/* The request goes into the slot's ring, with a worker forked to read it where there is none. */
static int hand_over(struct vx_pool *p, uint32_t slot, struct vx_err *err)
{
	struct pool_slot *s = &p->slots[slot];
	bool fresh;
	int r = need_worker(p, slot, &fresh, err);

	if (r < 0)
		return r;
	s->request_at = atomic_load_explicit(
		&vx_slot_requests(vx_region_slot(&p->region, slot))->tail, memory_order_relaxed);
	r = push(p, slot, &s->request);
	if (r == -EBADMSG)
		pool_server_kill(p, slot);
	if (r < 0)
		return vx_err_set(
			err, r, "worker %u does not take requests: %s", slot, vx_strerror(r));
	if (fresh)
		r = new_worker(p, slot, err);
	if (r < 0)
		return r;
	if (s->sandboxed && !s->hosts) {
		s->hosts = true;
		p->stats.box_hosts++;
	}
	return 0;
}

static int submit(struct vx_pool *p, uint32_t slot, const struct vx_request *q, bool sandboxed,
	struct vx_err *err)
{
	int r;

	p->slots[slot].request = *q;
	p->slots[slot].sandboxed = sandboxed;
	r = hand_over(p, slot, err);
	if (r == 0)
		occupy(p, slot);
	return r;
}

int vx_pool_run(struct vx_pool *p, uint32_t slot, const struct vx_task_desc *d, struct vx_err *err)
{
	struct pool_slot *s = &p->slots[slot];
	struct vx_request q = {.kind = VX_REQ_RUN, .task = d->task, .attempt = d->attempt};
	int r = check_free(p, slot, err);

	if (r < 0)
		return r;
	vx_buf_clear(&p->desc);
	r = vx_desc_encode(d, &p->desc, err);
	if (r < 0) {
		vx_buf_free(&p->desc); /* an overflow stays set otherwise */
		p->desc = VX_BUF(VX_MAX_DESC_BYTES);
		return r;
	}
	r = vx_slab_alloc(&p->slabs, p->desc.len, &s->slab);
	if (r < 0)
		return vx_err_set(
			err, r, "no room for the descriptor of %s: %s", d->id, vx_strerror(r));
	s->has_slab = true;
	s->task = d->task;
	s->attempt = d->attempt;
	q.offset = s->slab;
	q.length = (uint32_t)p->desc.len;
	memcpy(vx_region_arena(&p->region, s->slab, p->desc.len), p->desc.data, p->desc.len);
	r = submit(p, slot, &q, d->sandboxed, err);
	if (r < 0) {
		vx_slab_free(&p->slabs, s->slab);
		s->has_slab = false;
		return r;
	}
	p->stats.dispatches++;
	return 0;
}

int vx_pool_arm(struct vx_pool *p, uint32_t slot, bool weaker)
{
	struct vx_request q = {.kind = VX_REQ_ARM, .task = NO_TASK, .signal = weaker};
	int r = check_free(p, slot, NULL);

	if (r < 0)
		return r;
	p->slots[slot].task = NO_TASK;
	p->slots[slot].attempt = 0;
	r = submit(p, slot, &q, true, NULL);
	if (r == 0)
		p->slots[slot].arming = true;
	return r;
}

static void send_stop(struct vx_pool *p, uint32_t slot, int sig)
{
	struct pool_slot *s = &p->slots[slot];
	struct vx_request q = {
		.kind = VX_REQ_STOP, .task = s->task, .attempt = s->attempt, .signal = sig};

	s->pending_signal = push(p, slot, &q) == -EAGAIN ? sig : 0;
}

int vx_pool_stop(struct vx_pool *p, uint32_t slot, int sig)
{
	struct pool_slot *s = &p->slots[slot];

	vx_assert(slot < p->n_slots && sig > 0);
	if (s->busy && !s->has_worker)
		s->again = true; /* it is LOST then: no second worker gets what was to be stopped */
	if (!s->busy || !s->has_worker || s->arming || s->holding || s->pending_signal == SIGKILL)
		return 0;
	send_stop(p, slot, sig);
	if (sig == SIGKILL)
		pool_server_expect(p, slot);
	return 0;
}

static void fill_event(
	const struct pool_slot *s, uint32_t slot, enum vx_pool_kind kind, struct vx_pool_event *ret)
{
	ret->kind = kind;
	ret->slot = slot;
	ret->task = s->task;
	ret->attempt = s->attempt;
	ret->bytes = NULL;
	ret->length = 0;
}

/* The worker wrote what no worker writes. It gets no second look; its death is reported when the
 * fork server confirms it. */
static int poison(struct vx_pool *p, uint32_t slot)
{
	p->slots[slot].poisoned = true;
	pool_server_kill(p, slot);
	return 0;
}

static int take_output(struct vx_pool *p, uint32_t slot, struct vx_pool_event *ret)
{
	struct pool_slot *s = &p->slots[slot];
	struct vx_slot *shared = vx_region_slot(&p->region, slot);
	struct vx_bring *out = vx_slot_output(shared);
	struct vx_frame f;
	int r = vx_bring_pop(out, &f, p->bytes);

	if (r == 0)
		return 0;
	if (r < 0 || s->arming || f.task != s->task || f.attempt != s->attempt ||
		(f.stream != 1 && f.stream != 2))
		return poison(p, slot);
	if (vx_bring_used(out) <= VX_OUT_BYTES / 2 &&
		(vx_sleep_seen(&shared->worker_sleeps) & VX_SLEEP_SPACE)) {
		vx_event_signal(s->request_fd);
		p->stats.wakes++;
	}
	fill_event(s, slot, VX_POOL_OUTPUT, ret);
	ret->stream = f.stream;
	ret->bytes = p->bytes;
	ret->length = f.length;
	ret->ns = f.ns;
	return 1;
}

/* 1 an event, 0 go on with output (maybe now with a completion in hand). */
static int take_done(struct vx_pool *p, uint32_t slot, struct vx_pool_event *ret)
{
	struct pool_slot *s = &p->slots[slot];
	int r = vx_ring_pop(vx_slot_dones(vx_region_slot(&p->region, slot)), &s->held);
	struct vx_done *d = &s->held;

	if (r == 0)
		return 0;
	d->text[VX_DONE_TEXT - 1] = 0;
	if (r < 0)
		return poison(p, slot);
	if (s->arming) {
		if (d->kind != VX_DONE_ARMED)
			return poison(p, slot);
		fill_event(s, slot, VX_POOL_ARMED, ret);
		ret->done = *d;
		vacate(p, slot);
		return 1;
	}
	if (d->task != s->task || d->attempt != s->attempt ||
		(d->kind != VX_DONE_STARTED && d->kind != VX_DONE_EXITED))
		return poison(p, slot);
	if (d->kind == VX_DONE_EXITED) {
		s->holding = true;
		return 0;
	}
	fill_event(s, slot, VX_POOL_STARTED, ret);
	ret->done = *d;
	return 1;
}

static void describe_loss(const struct pool_slot *s, char *ret)
{
	if (s->lost_status == POOL_LOST_SERVER)
		snprintf(ret, VX_DONE_TEXT, "the fork server died");
	else if (s->lost_status < 0)
		snprintf(ret, VX_DONE_TEXT, "no worker could be forked: %s",
			vx_strerror(s->lost_status));
	else if (s->poisoned)
		snprintf(ret, VX_DONE_TEXT,
			"its worker wrote nonsense into shared memory and was killed");
	else if (WIFSIGNALED(s->lost_status))
		snprintf(ret, VX_DONE_TEXT, "its worker was killed by %s",
			vx_signal_name(WTERMSIG(s->lost_status)));
	else
		snprintf(ret, VX_DONE_TEXT, "its worker exited with %d",
			WEXITSTATUS(s->lost_status));
}

/* All that the slot had to say has been taken. */
static int finish(struct vx_pool *p, uint32_t slot, bool lost, struct vx_pool_event *ret)
{
	struct pool_slot *s = &p->slots[slot];

	fill_event(s, slot, lost ? VX_POOL_LOST : VX_POOL_EXITED, ret);
	if (!lost) {
		ret->done = s->held;
		if (s->held.end == VX_END_LOST)
			ret->kind = VX_POOL_LOST;
	} else {
		ret->done = (struct vx_done){.kind = VX_DONE_EXITED,
			.task = s->task,
			.attempt = s->attempt,
			.end = VX_END_LOST};
		ret->done.end_ns = vx_now_ns();
		describe_loss(s, ret->done.text);
		if (s->overdue) { /* that was what had been asked for */
			ret->kind = VX_POOL_EXITED;
			ret->done.end = VX_END_STOPPED;
			ret->done.signal = SIGKILL;
		}
		if (s->arming) {
			ret->kind = VX_POOL_ARMED;
			ret->done.kind = VX_DONE_ARMED;
		}
	}
	vacate(p, slot);
	return 1;
}

/* A worker that died between two tasks may have been given the next one before anybody knew. It
 * copies a request out before it moves the ring's head on, and acts only then: a head that has not
 * passed the request proves that nothing of it was started, so that another worker may have it.
 * Once, and not where a stop has been asked for since: then it is over anyway. */
static bool handed_over_again(struct vx_pool *p, uint32_t slot)
{
	struct pool_slot *s = &p->slots[slot];
	const struct vx_ring *q = vx_slot_requests(vx_region_slot(&p->region, slot));

	if (s->again || s->poisoned || p->broken || s->lost_status < 0 ||
		s->lost_status == POOL_LOST_SERVER || s->pending_signal != 0)
		return false;
	if (atomic_load_explicit(&q->head, memory_order_acquire) != s->request_at ||
		atomic_load_explicit(&q->tail, memory_order_acquire) != s->request_at + 1)
		return false;
	s->again = true;
	return hand_over(p, slot, NULL) == 0;
}

/* One slot: starts, then output, then the end. `gone` is read first: what a dead worker had
 * published is all there by then. */
static int take(struct vx_pool *p, uint32_t slot, struct vx_pool_event *ret)
{
	struct pool_slot *s = &p->slots[slot];
	bool gone = !s->has_worker;

	if (!s->poisoned && vx_slot_check(vx_region_slot(&p->region, slot)) < 0)
		poison(p, slot);
	if (s->pending_signal != 0 && !gone)
		send_stop(p, slot, s->pending_signal);
	if (!s->poisoned && !s->holding && take_done(p, slot, ret) == 1)
		return 1;
	if (!s->poisoned && take_output(p, slot, ret) == 1)
		return 1;
	if (!s->poisoned && s->holding)
		return finish(p, slot, false, ret);
	if (!gone || handed_over_again(p, slot))
		return 0;
	return finish(p, slot, true, ret);
}

static int scan(struct vx_pool *p, struct vx_pool_event *ret)
{
	for (uint32_t i = 0; i < p->n_active; i++) {
		if (p->streak >= STREAK) {
			p->at++;
			p->streak = 0;
		}
		if (p->at >= p->n_active)
			p->at = 0;
		if (take(p, p->active[p->at], ret) == 1) {
			p->streak++;
			return 1;
		}
		p->at++;
		p->streak = 0;
	}
	return 0;
}

/* Consumes what epoll knows, so that its descriptor is not readable any more, and looks at the fork
 * server if it is about that. */
static void look(struct vx_pool *p)
{
	struct epoll_event e[4];
	int n = epoll_wait(p->epoll_fd, e, 4, 0);

	p->unlooked = 0;
	for (int i = 0; i < n; i++) {
		if (e[i].data.fd == p->timer_fd)
			pool_server_overdue(p);
		else if (e[i].data.fd != p->event_fd)
			pool_server_look(p);
	}
}

int vx_pool_next(struct vx_pool *p, struct vx_pool_event *ret)
{
	struct vx_region_header *h = vx_region_header(&p->region);

	if (p->sleeping || ++p->unlooked > LOOK_EVERY) {
		atomic_store_explicit(&h->scheduler_sleeps, 0, memory_order_relaxed);
		p->sleeping = false;
		look(p);
	}
	if (scan(p, ret) == 1)
		return 1;
	if (p->broken)
		return -EPIPE;
	vx_sleep_announce(&h->scheduler_sleeps, 1);
	if (scan(p, ret) == 1) {
		atomic_store_explicit(&h->scheduler_sleeps, 0, memory_order_relaxed);
		return 1;
	}
	p->sleeping = true;
	return 0;
}

/* Everybody is asked through his own ring, so that the fork server, asked next, has little to wait
 * for. */
static void ask_to_go(struct vx_pool *p)
{
	struct vx_request q = {.kind = VX_REQ_SHUTDOWN};

	for (uint32_t i = 0; i < p->n_slots; i++)
		if (p->slots[i].has_worker)
			push(p, i, &q);
}

void vx_pool_end(struct vx_pool *p)
{
	if (p == NULL)
		return;
	if (p->region.base != NULL)
		ask_to_go(p);
	pool_server_end(p);
	for (uint32_t i = 0; i < p->n_slots; i++)
		vx_close(p->slots[i].request_fd);
	vx_close(p->epoll_fd);
	vx_close(p->event_fd);
	vx_close(p->self_fd);
	vx_close(p->init_fd);
	vx_close(p->timer_fd);
	if (p->region.base != NULL)
		vx_region_close(&p->region);
	vx_slabs_done(&p->slabs);
	vx_pids_free(&p->exempt);
	vx_buf_free(&p->desc);
	free(p->bwrap_path);
	free(p->slots);
	free(p->active);
	free(p);
}
