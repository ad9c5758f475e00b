/* A cgroup for one attempt: limits on memory and processes, what it used, and a way to end all of
 * it (cgroups(7); Documentation/admin-guide/cgroup-v2.rst, cgroup-v1/memory.rst,
 * cgroup-v1/pids.rst).
 *
 *   cgroup_find    once per worker: where cgroups can be made. v2 where our own cgroup hands
 *                  controllers on to its children, else v1 where its
 *                  hierarchies are writable; neither is no error. What died runs left there is
 *                    removed.
 *   cgroup_open    makes one with its limits; the command joins by writing "0" to procs_fd[]
 *                  itself, before it is executed
 *   cgroup_kill    SIGKILL to everything in it: cgroup.kill of v2 (Linux 5.14), else each process
 *                  by a descriptor that is known to mean it
 *   cgroup_close   what is still in it is killed; then it is read and removed, with those that the
 *                  task has made below it. One that cannot be removed is
 *                  taken again by the slot's next attempt, which counts from where it stands then
 *
 * Neither worker nor box host is ever a member. Directories are `vx.<run>/<slot>` in each
 * hierarchy; `run` is the fork server's pid. */
#ifndef VX_CGROUP_H
#define VX_CGROUP_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define CGROUP_PATH 512
#define CGROUP_CLOSE_MS 1000 /* how long what was killed may take to be gone */

enum { CGROUP_MEMORY, CGROUP_PIDS, CGROUP_KINDS };

struct cgroup_place {
	char dir[CGROUP_KINDS]
		[CGROUP_PATH]; /* vx.<run>; "" where there is none. v2: the same for both */
	bool v2;
};

struct cgroup_use {
	uint64_t peak_bytes;  /* 0 unknown */
	uint64_t oom_kills;   /* processes killed for want of memory below the limit */
	uint64_t fork_denied; /* times that the limit of processes was met */
};

struct cgroup {
	char dir[CGROUP_KINDS][CGROUP_PATH]; /* "" none */
	bool v2;
	int procs_fd[CGROUP_KINDS]; /* -1 none */
	struct cgroup_use before;   /* of an earlier attempt whose cgroup could not be removed */
};

#define CGROUP_INIT ((struct cgroup){.procs_fd = {-1, -1}})

/* `fs` is where cgroup file systems are mounted ("/sys/fs/cgroup"), `lines` the text of
 * /proc/self/cgroup. */
void cgroup_find(const char *fs, const char *lines, pid_t run, struct cgroup_place *ret);
void cgroup_forget(struct cgroup_place *p); /* the last worker's call removes the directories */
/* -ENOTSUP where no memory limit can be had; a limit of processes comes along where there can be
 * one. ret is CGROUP_INIT on failure. */
int cgroup_open(const struct cgroup_place *p, uint32_t slot, uint64_t memory_bytes,
	uint32_t max_processes, struct cgroup *ret);
void cgroup_kill(const struct cgroup *g);
void cgroup_close(struct cgroup *g, struct cgroup_use *ret);

#endif
