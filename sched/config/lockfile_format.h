/* Inside the config module: what the writer and the reader of vx-lock.json share. */
#ifndef VX_LOCKFILE_FORMAT_H
#define VX_LOCKFILE_FORMAT_H

#include "cfg.h"

enum { VX_LOCK_VERSION = 2, LOCK_KINDS = 5, LOCK_PMS = 5 };

extern const char *const lock_kind_names[LOCK_KINDS]; /* by enum vx_ws_kind */
extern const char *const lock_pm_names[LOCK_PMS];     /* by enum vx_pm */

struct vx_json *lock_task_json(const struct vx_task_decl *t);

#endif
