/* Listing files while the plan is still being made. See vx/key.h. */
#include "file_list.h"

#include "vx/arena.h"
#include "vx/worktree.h"
#include "vx/limits.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

/* an index smaller than this is read in less time than a thread takes */
#define PAYS_BYTES (256 << 10)

struct vx_ahead {
	pthread_t thread;
	bool running;
	char *root;
	struct vx_source *src; /* the thread's until it has been joined */
	pthread_mutex_t lock;
	pthread_cond_t said;
	enum { UNDECIDED, LIST, ENOUGH } then;
};

static void *list_files(void *arg)
{
	struct vx_ahead *h = arg;
	if (vx_source_ahead(h->root, vx_cpus(), &h->src) < 0)
		return NULL;
	pthread_mutex_lock(&h->lock);
	while (h->then == UNDECIDED)
		pthread_cond_wait(&h->said, &h->lock);
	bool list = h->then == LIST;
	pthread_mutex_unlock(&h->lock);
	if (list && vx_source_list_ahead(h->src) < 0) {
		vx_source_close(h->src);
		h->src = NULL;
	}
	return NULL;
}

static void say(struct vx_ahead *h, int then)
{
	pthread_mutex_lock(&h->lock);
	if (h->then == UNDECIDED)
		h->then = then;
	pthread_cond_signal(&h->said);
	pthread_mutex_unlock(&h->lock);
}

void vx_ahead_list(struct vx_ahead *h)
{
	say(h, LIST);
}

static bool has_large_index(const char *root)
{
	char path[VX_MAX_PATH];
	struct stat st;
	return snprintf(path, sizeof path, "%s/.git/index", root) < (int)sizeof path &&
	       stat(path, &st) == 0 && st.st_size >= PAYS_BYTES;
}

struct vx_ahead *vx_ahead_start(const char *root, bool index_alone)
{
	if (vx_cpus() < 2 || (index_alone && !has_large_index(root)))
		return NULL;
	struct vx_ahead *h = vx_xcalloc(1, sizeof *h);
	sigset_t all, old;
	h->root = vx_xstrdup(root);
	h->then = index_alone ? UNDECIDED : LIST;
	pthread_mutex_init(&h->lock, NULL);
	pthread_cond_init(&h->said, NULL);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	h->running = pthread_create(&h->thread, NULL, list_files, h) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return h;
}

struct vx_source *vx_ahead_take(struct vx_ahead *h)
{
	if (h && h->running) {
		say(h, ENOUGH);
		pthread_join(h->thread, NULL);
	}
	struct vx_source *src = h ? h->src : NULL;
	if (h) {
		h->running = false;
		h->src = NULL;
	}
	return src;
}

void vx_ahead_free(struct vx_ahead *h)
{
	if (!h)
		return;
	vx_source_close(vx_ahead_take(h));
	pthread_mutex_destroy(&h->lock);
	pthread_cond_destroy(&h->said);
	free(h->root);
	free(h);
}
