/* The lanes: queues, threads, events. See vx/lane.h. */
#include "lane_int.h"

#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int vx_fail_set(struct vx_fail *f, int code, const char *step, const char *fmt, ...)
{
	va_list ap;
	f->code = code;
	snprintf(f->step, sizeof f->step, "%s", step);
	va_start(ap, fmt);
	int n = vsnprintf(f->text, sizeof f->text, fmt, ap);
	va_end(ap);
	size_t at = n < 0 ? 0 : (size_t)n < sizeof f->text ? (size_t)n : sizeof f->text - 1;
	snprintf(f->text + at, sizeof f->text - at, ": %s", vx_strerror(code));
	return code;
}

/* ---- events ---- */

void vx_evts_add(struct vx_evts *v, const struct vx_lane_event *e, void *own, const char *text)
{
	struct vx_evt *x = vx_xmalloc(sizeof *x);
	x->next = v->newest;
	memcpy(&x->e, e, offsetof(struct vx_lane_event, text));
	x->own = own;
	x->text = text && *text ? vx_xstrdup(text) : NULL;
	if (!v->newest)
		v->oldest = x;
	v->newest = x;
}

static struct vx_evt quiet; /* behind the events that nobody was woken for */

/* No lock: whom this wakes would run into it. */
void vx_evts_send(struct vx_lane *l, struct vx_evts *v)
{
	if (!v->newest)
		return;
	bool can_wait = v->can_wait;
	struct vx_evt *before = atomic_load(&l->events);
	do
		v->oldest->next = before;
	while (!atomic_compare_exchange_weak(&l->events, &before, v->newest));
	*v = (struct vx_evts){0};
	if (before && (can_wait || !atomic_exchange(&l->dozes, false)))
		return;
	/* before it: a reader that knows of none does not look for it */
	atomic_fetch_add(&l->signals, 1);
	vx_event_signal(l->event_fd);
}

void vx_lane_send(struct vx_lane *l, const struct vx_lane_event *e, void *own, const char *text)
{
	struct vx_evts v = {.can_wait = e->kind == VX_LANE_CAPTURED || e->kind == VX_LANE_SETTLED};
	vx_evts_add(&v, e, own, text);
	vx_evts_send(l, &v);
}

void vx_hand_send(struct vx_hand *h, const struct vx_lane_event *e, void *own, const char *text)
{
	if (!h->held.newest)
		h->held_ns = vx_now_ns();
	vx_evts_add(&h->held, e, own, text);
}

void vx_hand_flush(struct vx_hand *h)
{
	vx_evts_send(h->l, &h->held);
}

static void free_event(struct vx_evt *v)
{
	if (!v)
		return;
	free(v->own);
	free(v->text);
	free(v);
}

/* Takes over what was sent. Signals are read before that look, not after: so none is read away
 * whose event the look does not see. One may come later than its event, hence they are counted. */
static void take_over(struct vx_lane *l)
{
	uint64_t n;
	if (atomic_load(&l->signals) != l->signals_read &&
		read(l->event_fd, &n, sizeof n) == (ssize_t)sizeof n)
		l->signals_read += n;
	if (!atomic_load(&l->events))
		return;
	struct vx_evt *v = atomic_exchange(&l->events, NULL);
	while (v && v != &quiet) {
		struct vx_evt *before = v->next;
		v->next = l->ready;
		l->ready = v;
		v = before;
	}
}

static void let_go(struct vx_lane *l);

bool vx_lane_doze(struct vx_lane *l, bool doze)
{
	struct vx_evt *none = NULL;
	l->gathers = doze;
	if (l->n_held && (!doze || l->n_held >= VX_LANE_HELD ||
				 vx_now_ns() - l->held_ns > VX_LANE_HELD_MS * 1000000ULL))
		let_go(l);
	if (l->ready)
		return false;
	if (!doze) {
		atomic_store(&l->dozes, false);
		none = &quiet;
		return atomic_compare_exchange_strong(&l->events, &none, NULL) || !none;
	}
	/* first: an event that cannot wait sees that, or is seen here */
	atomic_store(&l->dozes, true);
	if (atomic_compare_exchange_strong(&l->events, &none, &quiet) || none == &quiet)
		return true;
	atomic_store(&l->dozes, false);
	return false;
}

bool vx_lane_next(struct vx_lane *l, struct vx_lane_event *ret)
{
	free_event(l->last);
	l->last = NULL;
	if (!l->ready)
		take_over(l);
	struct vx_evt *v = l->ready;
	if (!v)
		return false;
	l->ready = v->next;
	memcpy(ret, &v->e, offsetof(struct vx_lane_event, text));
	ret->text[0] = '\0';
	if (v->text)
		snprintf(ret->text, sizeof ret->text, "%s", v->text);
	l->last = v;
	return true;
}

int vx_lane_fd(const struct vx_lane *l)
{
	return l->event_fd;
}

bool vx_lane_first_of(struct vx_lane *l, const struct vx_fail *f)
{
	bool first = true;
	pthread_mutex_lock(&l->lock);
	for (uint32_t i = 0; i < l->n_causes && first; i++)
		first = l->causes[i].code != f->code || strcmp(l->causes[i].step, f->step) != 0;
	if (first && l->n_causes < VX_ARRAY_LEN(l->causes)) {
		struct vx_cause *c = &l->causes[l->n_causes++];
		c->code = f->code;
		memcpy(c->step, f->step, sizeof c->step);
	}
	pthread_mutex_unlock(&l->lock);
	return first;
}

void vx_lane_settle_failed(struct vx_lane *l, struct vx_evts *v, uint32_t task, const char *id,
	const struct vx_fail *f)
{
	char text[sizeof f->text + 128] = "";
	atomic_fetch_add(&l->n_failed, 1);
	if (vx_lane_first_of(l, f))
		snprintf(text, sizeof text, "%.100s was not saved: %s", id, f->text);
	vx_evts_add(v, &(struct vx_lane_event){.kind = VX_LANE_SETTLED, .task = task}, NULL, text);
}

/* ---- budget ---- */

void vx_lane_budget_take(struct vx_lane *l, uint64_t bytes, bool at_once)
{
	pthread_mutex_lock(&l->lock);
	while (!at_once && l->budget_used && l->budget_used + bytes > VX_LANE_BUDGET_BYTES) {
		l->flush = true; /* what waits in rows gives back soonest when committed */
		pthread_cond_signal(&l->rows_more);
		pthread_cond_wait(&l->budget_more, &l->lock);
	}
	l->budget_used += bytes;
	pthread_mutex_unlock(&l->lock);
}

void vx_lane_budget_give(struct vx_lane *l, uint64_t bytes)
{
	pthread_mutex_lock(&l->lock);
	l->budget_used -= bytes;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_broadcast(&l->budget_more);
}

/* ---- threads ---- */

struct start {
	struct vx_lane *l;
	struct vx_queue *q;
};

/* Up to `max` jobs of the first one's kind. Restores come in batches, everything else by itself. */
static struct vx_job *take(struct vx_queue *q)
{
	struct vx_job *first = q->head, *j = first;
	uint32_t n = 1,
		 most = first->kind == JOB_RESTORE ? q->queued / (q->max_threads * 2) + 1 : 1;
	if (most > VX_LANE_BATCH)
		most = VX_LANE_BATCH;
	while (n < most && j->next && j->next->kind == JOB_RESTORE) {
		j = j->next;
		n++;
	}
	q->head = j->next;
	if (!q->head)
		q->tail = &q->head;
	j->next = NULL;
	q->queued -= n;
	return first;
}

static void work(struct vx_hand *h, struct vx_job *jobs)
{
	if (jobs->kind == JOB_RESTORE)
		vx_do_restores(h, jobs);
	else if (jobs->kind == JOB_CLEAN)
		vx_do_clean(h, jobs);
	else
		vx_do_save(h, jobs);
	while (jobs) {
		struct vx_job *next = jobs->next;
		if (jobs->kind == JOB_RESTORE) {
			pthread_mutex_lock(&h->l->lock);
			h->l->n_restoring--;
			pthread_mutex_unlock(&h->l->lock);
		}
		free(jobs);
		jobs = next;
	}
}

static void end_hand(struct vx_hand *h)
{
	vx_stage_drop(h);
	vx_close(h->stages_fd);
	vx_close(h->journals_fd);
	vx_io_free(h->io);
	vx_zip_free(h->zip);
	vx_unzip_free(h->unzip);
	vx_buf_free(&h->tar);
	vx_buf_free(&h->packed);
}

static void *hand_main(void *arg)
{
	struct start st = *(struct start *)arg;
	struct vx_lane *l = st.l;
	struct vx_queue *q = st.q;
	free(arg);
	struct vx_hand h = {.l = l,
		.back = q == &l->back,
		.tar = VX_BUF(SIZE_MAX / 2),
		.packed = VX_BUF(SIZE_MAX / 2),
		.stage_fd = -1,
		.stages_fd = -1,
		.journals_fd = -1};
	char name[sizeof l->io_name];
	h.io = h.back                            ? l->new_io(l->io_arg, name, sizeof name)
	       : l->new_io == vx_lane_default_io ? vx_io_blocking_new()
						 : l->new_io(l->io_arg, name, sizeof name);
	h.io->ring_ops = l->ring_ops;
	h.io->steps = l->steps;
	pthread_mutex_lock(&l->lock);
	if (h.back)
		memcpy(l->io_name, name, sizeof name);
	for (;;) {
		while (!q->head && !l->stop) {
			q->idle++;
			pthread_cond_wait(&q->more, &l->lock);
			q->idle--;
			q->woken -= q->woken > 0;
		}
		if (!q->head)
			break;
		struct vx_job *jobs = take(q);
		q->running++;
		pthread_mutex_unlock(&l->lock);
		work(&h, jobs);
		pthread_mutex_lock(&l->lock);
		q->running--;
		q->slow -= h.slow;
		h.slow = false;
		if (h.back && l->wait_idle && !q->running && !q->queued)
			pthread_cond_signal(&l->rows_more);
	}
	pthread_mutex_unlock(&l->lock);
	end_hand(&h);
	return NULL;
}

/* Under the lock. Threads are started when there is work for them; when none can be, the error is
 * returned. */
static int more_threads(struct vx_lane *l, struct vx_queue *q)
{
	if (q->idle || q->n_threads == q->max_threads || q->n_threads > q->queued + q->running)
		return 0;
	struct start *st = vx_xmalloc(sizeof *st);
	*st = (struct start){l, q};
	int e = pthread_create(&q->threads[q->n_threads], NULL, hand_main, st);
	if (e) {
		free(st);
		return q->n_threads ? 0 : -e;
	}
	q->n_threads++;
	return 0;
}

/* Under the lock: is one more thread worth waking for what is queued? */
static bool wants_thread(const struct vx_queue *q)
{
	return q->queued &&
	       (!q->shares || q->queued > VX_LANE_TURNS * (q->running - q->slow + q->woken));
}

/* Under the lock. Returns whether the caller is to signal q->more. */
static bool wake_one(struct vx_queue *q)
{
	bool wake = q->idle > q->woken || (q->idle && !q->shares);
	q->woken += wake && q->shares;
	return wake;
}

void vx_lane_slow(struct vx_hand *h)
{
	struct vx_lane *l = h->l;
	bool wake = false;
	if (!h->back || h->slow)
		return;
	pthread_mutex_lock(&l->lock);
	h->slow = true;
	l->back.slow++;
	if (wants_thread(&l->back) && more_threads(l, &l->back) == 0)
		wake = wake_one(&l->back);
	pthread_mutex_unlock(&l->lock);
	if (wake)
		pthread_cond_signal(&l->back.more);
}

/* Under the lock, which it gives up: sees to it that what is queued is done. When no thread can be
 * had at all that is here and now. */
static void set_to_work(struct vx_lane *l, struct vx_queue *q)
{
	struct vx_job *here = NULL;
	bool another = wants_thread(q);
	int r = another ? more_threads(l, q) : 0;
	if (r < 0) {
		here = q->head;
		q->head = NULL;
		q->tail = &q->head;
		q->queued = 0;
	}
	bool wake = another && r == 0 && wake_one(q);
	pthread_mutex_unlock(&l->lock);
	if (wake) /* outside of the lock, which the woken thread takes first */
		pthread_cond_signal(&q->more);
	if (!here)
		return;
	struct vx_hand h = {.l = l,
		.io = vx_io_blocking_new(),
		.tar = VX_BUF(SIZE_MAX / 2),
		.packed = VX_BUF(SIZE_MAX / 2),
		.stage_fd = -1,
		.stages_fd = -1,
		.journals_fd = -1};
	while (here) {
		struct vx_job *next = here->next;
		here->next = NULL;
		work(&h, here);
		here = next;
	}
	end_hand(&h);
}

static void enqueue(struct vx_lane *l, struct vx_queue *q, struct vx_job *j)
{
	pthread_mutex_lock(&l->lock);
	*q->tail = j;
	q->tail = &j->next;
	q->queued++;
	if (q != &l->back || !l->gathers) {
		set_to_work(l, q);
		return;
	}
	pthread_mutex_unlock(&l->lock);
	if (!l->n_held++)
		l->held_ns = vx_now_ns();
}

/* Saves that wait for company have waited long enough. */
static void let_go(struct vx_lane *l)
{
	if (!l->n_held)
		return;
	l->n_held = 0;
	pthread_mutex_lock(&l->lock);
	set_to_work(l, &l->back);
}

/* ---- requests ---- */

void vx_lane_clean(struct vx_lane *l, uint32_t task, const struct vx_outputs *o)
{
	struct vx_job *j = vx_xcalloc(1, sizeof *j);
	j->kind = JOB_CLEAN;
	j->task = task;
	j->outputs = *o;
	if (vx_outputs_none(o) || o->additive) { /* nothing to do, no thread to wake */
		vx_lane_send(l,
			&(struct vx_lane_event){.kind = VX_LANE_CLEANED, .task = task, .ok = true},
			NULL, NULL);
		free(j);
		return;
	}
	enqueue(l, &l->front, j);
}

void vx_lane_restore(struct vx_lane *l, const struct vx_restore_req *r)
{
	struct vx_job *j = vx_xcalloc(1, sizeof *j);
	j->kind = JOB_RESTORE;
	j->task = r->task;
	j->id = r->id;
	j->outputs = r->outputs;
	j->entry = r->entry;
	pthread_mutex_lock(&l->lock);
	if (!l->n_restoring++)
		l->wave_ns = vx_wall_ns();
	j->stamp_ns = l->wave_ns + (uint64_t)r->level * VX_LANE_LEVEL_NS;
	pthread_mutex_unlock(&l->lock);
	enqueue(l, &l->front, j);
}

static void drop_save(struct vx_lane *l, const struct vx_job *j)
{
	vx_lane_send(l, &(struct vx_lane_event){.kind = VX_LANE_SETTLED, .task = j->task}, NULL,
		"dropped");
}

void vx_lane_save(struct vx_lane *l, const struct vx_save_req *r)
{
	struct vx_job *j = vx_xcalloc(1, sizeof *j);
	j->kind = JOB_SAVE;
	j->task = r->task;
	j->id = r->id;
	j->outputs = r->outputs;
	j->save = *r;
	pthread_mutex_lock(&l->lock);
	bool drop = l->interrupted;
	pthread_mutex_unlock(&l->lock);
	if (drop) {
		drop_save(l, j);
		free(j);
		return;
	}
	enqueue(l, &l->back, j);
}

void vx_lane_flush(struct vx_lane *l)
{
	let_go(l);
	pthread_mutex_lock(&l->lock);
	/* rows that come later look for themselves; a thread that runs dry wakes it anyway */
	bool wake = l->rows && !(l->flush && l->wait_idle);
	l->flush = true;
	pthread_mutex_unlock(&l->lock);
	if (wake)
		pthread_cond_signal(&l->rows_more);
}

void vx_lane_interrupt(struct vx_lane *l)
{
	pthread_mutex_lock(&l->lock);
	l->interrupted = true;
	l->flush = true;
	struct vx_job *dropped = l->back.head;
	l->back.head = NULL;
	l->back.tail = &l->back.head;
	l->back.queued = 0;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_signal(&l->rows_more);
	while (dropped) {
		struct vx_job *next = dropped->next;
		drop_save(l, dropped);
		free(dropped);
		dropped = next;
	}
}

void vx_lane_give_up(struct vx_lane *l)
{
	atomic_store(&l->give_up, true);
}

void vx_lane_stats(const struct vx_lane *l, struct vx_lane_stats *ret)
{
	struct vx_lane *m = (struct vx_lane *)(uintptr_t)l;
	*ret = (struct vx_lane_stats){.saves = atomic_load(&m->n_saves),
		.restores = atomic_load(&m->n_restores),
		.up_to_date = atomic_load(&m->n_up_to_date),
		.cleans = atomic_load(&m->n_cleans),
		.commits = atomic_load(&m->n_commits),
		.commit_rows = atomic_load(&m->n_commit_rows),
		.failed = atomic_load(&m->n_failed)};
	for (int i = 0; i < VX_IO_RINGED; i++) {
		ret->ring_ops[i] = atomic_load(&m->ring_ops[i]);
		ret->steps[i] = atomic_load(&m->steps[i]);
	}
	pthread_mutex_lock(&m->lock);
	ret->io = m->io_name;
	pthread_mutex_unlock(&m->lock);
}

void vx_lane_io_name(char *ret, size_t cap)
{
	vx_io_free(vx_io_new(ret, cap));
}

/* ---- life ---- */

struct vx_io *vx_lane_default_io(void *arg, char *ret_name, size_t cap)
{
	(void)arg;
	return vx_io_new(ret_name, cap);
}

static void queue_init(struct vx_queue *q, uint32_t max)
{
	q->tail = &q->head;
	q->max_threads = max;
	pthread_cond_init(&q->more, NULL);
}

static void cond_init_monotonic(pthread_cond_t *c)
{
	pthread_condattr_t a;
	pthread_condattr_init(&a);
	pthread_condattr_setclock(&a, CLOCK_MONOTONIC);
	pthread_cond_init(c, &a);
	pthread_condattr_destroy(&a);
}

/* umask(2) can only be read by changing it, which other threads would notice. */
static mode_t read_umask(void)
{
	struct vx_buf b = VX_BUF(64 << 10);
	mode_t m = 022;
	if (vx_read_file(AT_FDCWD, "/proc/self/status", &b) == 0) {
		const char *p = strstr(vx_buf_str(&b), "\nUmask:");
		if (p)
			m = (mode_t)strtoul(p + 7, NULL, 8);
	}
	vx_buf_free(&b);
	return m;
}

struct vx_lane *vx_lane_make(const struct vx_lane_opts *o,
	struct vx_io *(*new_io)(void *arg, char *ret_name, size_t cap), void *io_arg,
	int *ret_errno)
{
	struct vx_lane *l = vx_xcalloc(1, sizeof *l);
	l->o = *o;
	l->new_io = new_io;
	l->umask = read_umask();
	l->io_arg = io_arg;
	l->root_fd = vx_open(AT_FDCWD, o->root, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;
	if (l->root_fd >= 0 && fstat(l->root_fd, &st) == 0)
		l->root_dev = st.st_dev;
	l->event_fd = l->root_fd < 0 ? -1 : vx_eventfd();
	if (l->root_fd < 0 || l->event_fd < 0) {
		*ret_errno = l->root_fd < 0 ? l->root_fd : l->event_fd;
		vx_close(l->root_fd);
		free(l);
		return NULL;
	}
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	uint32_t max = cpus > 1 ? (uint32_t)cpus : 2, slots = o->slots ? o->slots : 1;
	if (max > 2 * slots)
		max = 2 * slots;
	if (max > VX_LANE_MAX_THREADS)
		max = VX_LANE_MAX_THREADS;
	pthread_mutex_init(&l->lock, NULL);
	pthread_mutex_init(&l->tmp_lock, NULL);
	queue_init(&l->front, max);
	queue_init(&l->back, max);
	l->back.shares = true;
	cond_init_monotonic(&l->rows_more);
	pthread_cond_init(&l->budget_more, NULL);
	l->rows_tail = &l->rows;
	snprintf(l->io_name, sizeof l->io_name, "not used");
	return l;
}

int vx_lane_new(const struct vx_lane_opts *o, struct vx_lane **ret, struct vx_err *err)
{
	int e = 0;
	struct vx_lane *l = vx_lane_make(o, vx_lane_default_io, NULL, &e);
	if (!l)
		return vx_err_set(err, e, "%s: %s", o->root, vx_strerror(e));
	*ret = l;
	return 0;
}

static void join_all(struct vx_queue *q)
{
	for (uint32_t i = 0; i < q->n_threads; i++)
		pthread_join(q->threads[i], NULL);
	pthread_cond_destroy(&q->more);
}

void vx_lane_free(struct vx_lane *l)
{
	if (!l)
		return;
	let_go(l);
	pthread_mutex_lock(&l->lock);
	l->stop = true;
	pthread_cond_broadcast(&l->front.more);
	pthread_cond_broadcast(&l->back.more);
	pthread_mutex_unlock(&l->lock);
	join_all(&l->front);
	join_all(&l->back);
	vx_lane_commit_stop(l);
	for (struct vx_lane_event e; vx_lane_next(l, &e);)
		continue;
	pthread_cond_destroy(&l->rows_more);
	pthread_cond_destroy(&l->budget_more);
	pthread_mutex_destroy(&l->lock);
	pthread_mutex_destroy(&l->tmp_lock);
	vx_close(l->root_fd);
	vx_close(l->event_fd);
	free(l);
}
