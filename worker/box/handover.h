/* What the worker hands over with a task. */
#ifndef VX_BOX_HANDOVER_H
#define VX_BOX_HANDOVER_H

#include "vx/sandbox.h"

struct vx_arena;

/* The value of a variable; NULL unset. */
const char *handover_env(struct vx_strs env, const char *name);
/* The task's environment, with what the sandbox sets over it. */
struct vx_strs handover_merge(struct vx_arena *a, struct vx_strs env, struct vx_strs over);
/* A memfd for vx-init (vx/initproto.h). */
int handover_payload(
	struct vx_strs argv, struct vx_strs env, const char *cwd, const struct vx_sbx_request *q);
/* A memfd for the box host. */
int handover_request(const struct vx_sbx_request *q, const char *record_dir);

#endif
