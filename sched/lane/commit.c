/* The committer: one thread that turns rows into transactions. While saves come in quick succession it lets rows gather, so that a commit (which waits for the disk)
 * serves many; a row that comes alone is committed at once. */
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
static uint64_t wait_until(struct vx_lane *l, bool brisk)
{
	bool busy = l->back.running || l->back.queued;
	if (!l->n_settling) { /* snapshots: nobody waits for them */
		l->wait_idle = false;
		if (l->stop || l->n_rows >= VX_LANE_SNAPS || l->row_bytes >= VX_LANE_SNAPS_BYTES)
			return 0;
		uint64_t until = l->first_row_ns + VX_LANE_SNAPS_WAIT_MS * MS;
		return until > vx_now_ns() ? until : 0;
	}
	l->wait_idle = busy && (!brisk || l->flush);
	if (l->n_settling >= VX_LANE_GROUP || (!busy && (!brisk || l->flush || l->stop)))
		return 0;
	uint64_t most = l->first_settling_ns + VX_LANE_GROUP_WAIT_MS * MS, gap = l->last_row_ns + VX_LANE_GROUP_GAP_MS * MS;
	uint64_t until = brisk && !busy && gap < most ? gap : most;
	return until > vx_now_ns() ? until : 0;
}

static void settle(struct vx_lane *l, struct vx_pending *p, int r)
{
	if (p->budget)
		vx_lane_budget_give(l, p->budget);
	if (!p->settles)
		return;
	if (r == 0) {
		atomic_fetch_add(&l->n_saves, 1);
		vx_lane_send(l,
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
		vx_fail_set(&f, r, "commit", "the index of the cache is damaged (the next run begins a new one)");
	else
		vx_fail_set(&f, r, "commit", "the index of the cache could not be written");
	vx_lane_settle_failed(l, p->task, p->id, &f);
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
	while (rows) {
		struct vx_pending *next = rows->next;
		settle(l, rows, r < 0 ? r : v[i].res);
		vx_pending_free(rows);
		rows = next;
		i++;
	}
	free(v);
}

static void *committer_main(void *arg)
{
	struct vx_lane *l = arg;
	uint64_t prev_row_ns = 0;
	pthread_mutex_lock(&l->lock);
	for (;;) {
		while (!l->rows && !l->stop)
			pthread_cond_wait(&l->rows_more, &l->lock);
		if (!l->rows)
			break;
		for (uint64_t until;;) {
			bool brisk = prev_row_ns && l->first_settling_ns - prev_row_ns < VX_LANE_GROUP_GAP_MS * MS;
			until = wait_until(l, brisk || l->n_settling > 1);
			if (!until)
				break;
			struct timespec ts = {.tv_sec = (time_t)(until / 1000000000), .tv_nsec = (long)(until % 1000000000)};
			pthread_cond_timedwait(&l->rows_more, &l->lock, &ts);
		}
		l->wait_idle = false;
		struct vx_pending *rows = l->rows;
		uint32_t n = l->n_rows;
		prev_row_ns = l->n_settling ? l->last_row_ns : prev_row_ns;
		l->rows = NULL;
		l->rows_tail = &l->rows;
		l->n_rows = l->n_settling = 0;
		l->row_bytes = 0;
		if (!l->back.running && !l->back.queued)
			l->flush = false;
		pthread_mutex_unlock(&l->lock);
		commit_group(l, rows, n);
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
	uint64_t now = vx_now_ns();
	if (!l->rows)
		l->first_row_ns = now;
	if (p->settles) {
		l->last_row_ns = now;
		if (!l->n_settling++)
			l->first_settling_ns = now;
	}
	*l->rows_tail = p;
	l->rows_tail = &p->next;
	l->n_rows++;
	l->row_bytes += p->c.row_n + p->c.snap_n;
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
	} else if (p->settles ? l->n_settling == 1 || l->n_settling >= VX_LANE_GROUP
			      : l->n_rows == 1 || l->n_rows >= VX_LANE_SNAPS || l->row_bytes >= VX_LANE_SNAPS_BYTES) {
		pthread_cond_signal(&l->rows_more);
	}
	pthread_mutex_unlock(&l->lock);
	if (alone)
		commit_group(l, rows, n);
}

void vx_lane_commit_stop(struct vx_lane *l)
{
	pthread_mutex_lock(&l->lock);
	pthread_cond_signal(&l->rows_more);
	bool runs = l->committer_runs;
	pthread_mutex_unlock(&l->lock);
	if (runs)
		pthread_join(l->committer, NULL);
}
