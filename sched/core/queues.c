/* The core's queues and its ready heap. */
#include "internal.h"

#include "vx/assert.h"

/* ---- queues: FIFO lists threaded through the tasks. A task is in at most one of key, restore,
 * save, retry and done. ---- */

void core_push(struct vx_core *c, struct queue *q, uint32_t i)
{
	c->tasks[i].next = NONE;
	if (q->head == NONE)
		q->head = i;
	else
		c->tasks[q->tail].next = i;
	q->tail = i;
}

uint32_t core_pop(struct vx_core *c, struct queue *q)
{
	uint32_t i = q->head;

	if (i != NONE)
		q->head = c->tasks[i].next;
	return i;
}

/* Asks for a signal to a live tree. One that is queued already gives way to the newer one, which is
 * the harsher. */
void core_stop(struct vx_core *c, uint32_t i, int sig)
{
	struct task *t = &c->tasks[i];

	t->stop_signal = (uint8_t)sig;
	if (t->in_stop)
		return;
	t->in_stop = true;
	t->next_stop = NONE;
	if (c->stop.head == NONE)
		c->stop.head = i;
	else
		c->tasks[c->stop.tail].next_stop = i;
	c->stop.tail = i;
}

/* ---- the ready heap, of ranks; entries of tasks that are no longer ready are dropped when they
 * surface ---- */

static void heap_push(struct vx_core *c, uint32_t rank)
{
	uint32_t k = c->n_heap++;

	for (; k && c->heap[(k - 1) / 2] > rank; k = (k - 1) / 2)
		c->heap[k] = c->heap[(k - 1) / 2];
	c->heap[k] = rank;
}

void core_pop_ready(struct vx_core *c)
{
	uint32_t last = c->heap[--c->n_heap], k = 0;

	for (;;) {
		uint32_t child = 2 * k + 1;

		if (child >= c->n_heap)
			break;
		if (child + 1 < c->n_heap && c->heap[child + 1] < c->heap[child])
			child++;
		if (c->heap[child] >= last)
			break;
		c->heap[k] = c->heap[child];
		k = child;
	}
	c->heap[k] = last;
}

void core_make_ready(struct vx_core *c, uint32_t i)
{
	struct task *t = &c->tasks[i];

	t->state = S_READY;
	c->counts.ready++;
	if (!t->in_heap) {
		t->in_heap = true;
		heap_push(c, t->rank);
	}
}

void core_give_slot_back(struct vx_core *c, struct task *t)
{
	vx_assert(c->counts.slots_used >= t->cpus);
	c->counts.slots_used -= t->cpus;
	if (t->alone)
		c->alone_runs = false;
}
