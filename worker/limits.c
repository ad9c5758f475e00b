/* What a task may use, for tasks that ask: its cgroup (cgroup.h) from before the spawn to after the
 * end. */
#include "worker.h"

#include "vx/fd.h"
#include "vx/limits.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void find(struct worker *w)
{
	char lines[8192] = "";
	int fd = vx_open(AT_FDCWD, "/proc/self/cgroup", O_RDONLY, 0);
	ssize_t n = fd < 0 ? 0 : vx_read_full(fd, lines, sizeof lines - 1);

	vx_close(fd);
	lines[n > 0 ? n : 0] = '\0';
	cgroup_find("/sys/fs/cgroup", lines, getppid(), &w->limits.place);
	w->limits.found = true;
}

void limits_join(struct worker *w)
{
	struct limits *l = &w->limits;

	l->joined = false;
	if (w->a.d.memory_bytes == 0)
		return;
	if (!l->found)
		find(w);
	if (cgroup_open(&l->place, w->index, w->a.d.memory_bytes, VX_MAX_TASK_PROCESSES,
		    &l->cgroup) < 0)
		w->a.done.flags |= VX_DONE_NO_MEMORY_LIMIT;
	else
		l->joined = true;
}

void limits_kill(struct worker *w)
{
	if (w->limits.joined)
		cgroup_kill(&w->limits.cgroup);
}

void limits_settle(struct worker *w)
{
	struct limits *l = &w->limits;
	struct vx_done *d = &w->a.done;
	struct cgroup_use use;

	if (!l->joined)
		return;
	l->joined = false;
	cgroup_close(&l->cgroup, &use);
	if (use.peak_bytes > 0) {
		d->peak_bytes = use.peak_bytes;
		d->flags |= VX_DONE_PEAK_IS_TREE;
	}
	if (d->end != VX_END_SIGNAL && (d->end != VX_END_EXIT || d->code == 0))
		return;
	if (use.oom_kills > 0)
		d->end = VX_END_OOM;
	if (use.fork_denied > 0 && d->text[0] == '\0')
		snprintf(d->text, sizeof d->text,
			"it was refused further processes: more than VX_MAX_TASK_PROCESSES (%u)",
			VX_MAX_TASK_PROCESSES);
}

void limits_remove(struct worker *w)
{
	if (w->limits.found)
		cgroup_forget(&w->limits.place);
}
