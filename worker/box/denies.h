/* The names that no task may change, wherever below a write grant they stand: what programs act on
 * by themselves, whoever wrote it (git's hooks and configuration, shells, editors, agents). One
 * place knows them; it is asked before an attempt, when what is there is made read-only, and after
 * it, when what has appeared is removed.
 *
 * Below a directory named node_modules only git's names count: packages ship editors' settings,
 * which nobody opens there. */
#ifndef VX_BOX_DENIES_H
#define VX_BOX_DENIES_H

#include "vx/sandbox.h"

struct vx_arena;
struct vx_buf;

struct denied {
	const char *path;
	enum vx_fact_type type;
};

/* Takes part in a walk: give it to vx_sbx_facts.walk as `arg` of deny_look, then read v. */
struct deny_search {
	struct vx_arena *a;
	bool git_config; /* .git/config may be written */
	struct denied *v;
	uint32_t n, cap;
	const char *dir; /* the directory being looked at, and what is known of it */
	bool in_git, in_modules;
};

bool deny_look(void *search, const char *dir, const char *name, enum vx_fact_type type);
/* The denied name that `path` is or lies in, looking only below `base`; NULL none. */
const char *deny_name_in(const char *path, const char *base, bool git_config);

/* A walk of the real file system. `dir` is opened below root_fd, or as it is when root_fd is
 * AT_FDCWD. `mend`: a directory of our own that may not be read is read all the same. Calls and
 * errors: vx_sbx_facts.walk. */
int deny_walk(int root_fd, const char *dir, bool mend,
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
	void *arg);

/* After an attempt: what has appeared is removed, one line each. Returns how many, and counts a
 * directory that cannot be looked through. */
int deny_enforce(int root_fd, const struct vx_sbx_request *r, struct vx_buf *lines);

#endif
