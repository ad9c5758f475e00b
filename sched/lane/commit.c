/* The committer: one thread that turns rows into transactions. A commit waits for the disk, so rows
 * gather: the first is committed at once, the next ones when 400 ms have passed since, or 256 are
 * there, or nothing more is to come. */
#include "lane_int.h"

#include "vx/clock.h"
#include "vx/err.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define MS 1000000ULL

void vx_pending_free(struct vx_pending *p)
{
	free(p->id);
	free(p->row);
	free(p->snap);
	free(p);
}

/* Under the lock: until when may the gathered rows wait? 0: not at all. */
static uint64_t wait_until(struct vx_lane *l, uint64_t last_ns)
{
	bool busy = l->back.running || l->back.queued;
	uint64_t until = l->first_row_ns + VX_LANE_SNAPS_WAIT_MS * MS;
	l->wait_idle = l->n_settling && busy && l->flush;
	if (l->n_settling >= VX_LANE_GROUP || l->n_rows >= VX_LANE_SNAPS ||
		l->row_bytes >= VX_LANE_SNAPS_BYTES)
		return 0;
	bool restoring = l->front.running || l->front.queued;
	if (l->n_settling ? (l->flush || l->stop) && !busy
			  : l->stop || (l->flush && !restoring && !busy))
		return 0;
	if (l->n_settling) /* a commit that is long past has been paid for */
		until = last_ns ? last_ns + VX_LANE_GROUP_WAIT_MS * MS : 0;
	return until > vx_now_ns() ? until : 0;
}

static void settle(struct vx_lane *l, struct vx_evts *v, const struct vx_pending *p, int r)
{
	if (!p->settles)
		return;
	if (r == 0) {
		atomic_fetch_add(&l->n_saves, 1);
		vx_evts_add(v,
			&(struct vx_lane_event){.kind = VX_LANE_SETTLED,
				.task = p->task,
				.ok = true,
				.not_portable = p->not_portable,
				.bytes = p->bytes,
				.n_outputs = p->n_outputs},
			NULL, NULL);
		return;
	}
	struct vx_fail f;
	if (r == -ENOENT)
		vx_fail_set(&f, r, "commit", "its artifact was removed meanwhile");
	else if (r == -EBADMSG)
		vx_fail_set(&f, r, "commit",
			"the index of the cache is damaged (the next run begins a new one)");
	else
		vx_fail_set(&f, r, "commit", "the index of the cache could not be written");
	vx_lane_settle_failed(l, v, p->task, p->id, &f);
}

static void commit_group(struct vx_lane *l, struct vx_pending *rows, uint32_t n)
{
	struct vx_commit *v = vx_xcalloc(n, sizeof *v);
	uint32_t i = 0;
	for (struct vx_pending *p = rows; p; p = p->next)
		v[i++] = p->c;
	VX_POINT("commit.before");
	int r = vx_store_commit(l->o.store, v, n);
	VX_POINT("commit.after");
	atomic_fetch_add(&l->n_commits, 1);
	atomic_fetch_add(&l->n_commit_rows, n);
	i = 0;
	struct vx_evts settled = {.can_wait = true};
	uint64_t budget = 0;
	while (rows) {
		struct vx_pending *next = rows->next;
		settle(l, &settled, rows, r < 0 ? r : v[i].res);
		budget += rows->budget;
		vx_pending_free(rows);
		rows = next;
		i++;
	}
	free(v);
	if (budget)
		vx_lane_budget_give(l, budget);
	vx_evts_send(l, &settled);
}

static void *committer_main(void *arg)
{
	struct vx_lane *l = arg;
	uint64_t last_ns = 0; /* when rows that saves wait for were last committed */
	pthread_mutex_lock(&l->lock);
	for (;;) {
		while (!l->rows && !l->rows_end)
			pthread_cond_wait(&l->rows_more, &l->lock);
		if (!l->rows)
			break;
		for (uint64_t until; (until = wait_until(l, last_ns));) {
			struct timespec ts = {.tv_sec = (time_t)(until / 1000000000),
				.tv_nsec = (long)(until % 1000000000)};
			pthread_cond_timedwait(&l->rows_more, &l->lock, &ts);
		}
		l->wait_idle = false;
		struct vx_pending *rows = l->rows;
		uint32_t n = l->n_rows;
		bool settling = l->n_settling;
		l->rows = NULL;
		l->rows_tail = &l->rows;
		l->n_rows = l->n_settling = 0;
		l->row_bytes = 0;
		if (!l->back.running && !l->back.queued)
			l->flush = false;
		pthread_mutex_unlock(&l->lock);
		commit_group(l, rows, n);
		last_ns = settling ? vx_now_ns() : last_ns;
		pthread_mutex_lock(&l->lock);
	}
	pthread_mutex_unlock(&l->lock);
	return NULL;
}

void vx_lane_commit(struct vx_lane *l, struct vx_pending *p)
{
	p->next = NULL;
	p->c.id = p->id;
	p->c.row = p->row;
	p->c.snap = p->snap;
	for (int i = 0; i < 2; i++)
		p->c.need[i] = p->need[i][0] ? p->need[i] : NULL;
	pthread_mutex_lock(&l->lock);
	if (!l->rows)
		l->first_row_ns = vx_now_ns();
	l->n_settling += p->settles;
	*l->rows_tail = p;
	l->rows_tail = &p->next;
	l->n_rows++;
	l->row_bytes += p->c.row_n + p->c.snap_n + p->log_bytes;
	if (!l->committer_runs)
		l->committer_runs = pthread_create(&l->committer, NULL, committer_main, l) == 0;
	bool alone = !l->committer_runs;
	struct vx_pending *rows = alone ? l->rows : NULL;
	uint32_t n = l->n_rows;
	if (alone) { /* no thread can be had: commit here */
		l->rows = NULL;
		l->rows_tail = &l->rows;
		l->n_rows = l->n_settling = 0;
		l->row_bytes = 0;
	}
	bool wake = l->row_bytes >= VX_LANE_SNAPS_BYTES ||
		    (p->settles ? l->n_settling == 1 || l->n_settling >= VX_LANE_GROUP
				: l->n_rows == 1 || l->n_rows >= VX_LANE_SNAPS);
	pthread_mutex_unlock(&l->lock);
	if (wake && !alone)
		pthread_cond_signal(&l->rows_more);
	if (alone)
		commit_group(l, rows, n);
}

void vx_lane_commit_stop(struct vx_lane *l)
{
	pthread_mutex_lock(&l->lock);
	bool runs = l->committer_runs;
	l->rows_end = true;
	pthread_mutex_unlock(&l->lock);
	pthread_cond_signal(&l->rows_more);
	if (runs)
		pthread_join(l->committer, NULL);
}
