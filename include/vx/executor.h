/* The executor seam: where a fully resolved task may run.
 *
 * The run asks a list of executors in order; the first whose accepts() says yes gets the task. The
 * local executor (the pool) stands at the tail and accepts everything. Pinned to it are: a
 * persistent task, anything that depends on one, a sandboxed task, and one whose key folds
 * `runtime` probes.
 *
 * An executor owns nothing of the request beyond the call of start(); outcomes come through its fd
 * and next(), like the pool's. */
#ifndef VX_EXECUTOR_H
#define VX_EXECUTOR_H

#include "vx/desc.h"
#include "vx/hash.h"
#include "vx/pool.h"

struct vx_exec_input {
	const char *path; /* relative to the workspace root */
	const char *oid;  /* mode and blob id as in the key */
};

struct vx_exec_request {
	const struct vx_task_desc *desc;
	const struct vx_exec_input *inputs;
	uint32_t n_inputs;
	bool pinned;
};

struct vx_executor {
	const char *name;
	void *self;
	bool (*accepts)(void *self, const struct vx_exec_request *r);
	int (*start)(
		void *self, uint32_t slot, const struct vx_exec_request *r, struct vx_err *err);
	int (*stop)(void *self, uint32_t slot, int sig);
	int (*fd)(void *self);
	int (*next)(void *self, struct vx_pool_event *ret);
};

struct vx_executor vx_local_executor(struct vx_pool *p);

#endif
