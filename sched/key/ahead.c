/* Listing files while the plan is still being made. See vx/key.h. */
#include "source.h"

#include "vx/arena.h"
#include "vx/key.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct vx_ahead {
	pthread_t thread;
	bool running;
	char *root;
	struct vx_source *src; /* the thread's until it has been joined */
};

static void *list_files(void *arg)
{
	struct vx_ahead *h = arg;
	if (vx_source_ahead(h->root, vx_cpus(), &h->src) < 0)
		h->src = NULL;
	return NULL;
}

struct vx_ahead *vx_ahead_start(const char *root)
{
	if (vx_cpus() < 2)
		return NULL;
	struct vx_ahead *h = vx_xcalloc(1, sizeof *h);
	sigset_t all, old;
	h->root = vx_xstrdup(root);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	h->running = pthread_create(&h->thread, NULL, list_files, h) == 0;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return h;
}

struct vx_source *vx_ahead_take(struct vx_ahead *h)
{
	if (h && h->running)
		pthread_join(h->thread, NULL);
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
	free(h->root);
	free(h);
}
