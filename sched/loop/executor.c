/* The local executor: the pool behind the seam of vx/executor.h. It accepts everything. */
#include "vx/executor.h"

static bool accepts(void *self, const struct vx_exec_request *r)
{
	(void)self;
	(void)r;
	return true;
}

static int start(void *self, uint32_t slot, const struct vx_exec_request *r, struct vx_err *err)
{
	return vx_pool_run(self, slot, r->desc, err);
}

static int stop(void *self, uint32_t slot, int sig)
{
	return vx_pool_stop(self, slot, sig);
}

static int fd(void *self)
{
	return vx_pool_fd(self);
}

static int next(void *self, struct vx_pool_event *ret)
{
	return vx_pool_next(self, ret);
}

struct vx_executor vx_local_executor(struct vx_pool *p)
{
	return (struct vx_executor){"local", p, accepts, start, stop, fd, next};
}
