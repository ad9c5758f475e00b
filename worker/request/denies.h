/* The names that no task may change, wherever below a write grant they stand (vx/protect.h has the
 * table). They are asked for before an attempt, when what is there is made read-only, and after it,
 * when what has appeared is removed. */
#ifndef VX_DENIES_H
#define VX_DENIES_H

#include "vx/protect.h"
#include "vx/sandbox.h"
#include "vx/wsglob.h"

struct vx_arena;
struct vx_buf;

#define DENY_MAX_DEPTH \
	200U /* directories below a grant; what lies deeper cannot be looked through */

struct denied {
	const char *path;
	enum vx_fact_type type;
};

/* What decides, besides the name. */
struct deny_rules {
	const char *root; /* of the workspace */
	bool git_config;  /* .git/config may be written */
	const struct vx_wsglobs *members, *no_members;
	struct vx_strs allowed; /* absolute patterns */
};

/* What is known of the directory at hand. */
struct deny_dir {
	const char *path;
	bool in_modules, member;
};

enum deny_verdict { DENY_NO, DENY_ENTER, DENY_IT };

struct deny_dir deny_dir(const struct deny_rules *r, const char *path);
enum deny_verdict deny_judge(const struct deny_rules *r, const struct deny_dir *d, const char *name,
	enum vx_fact_type type);

/* Takes part in a walk: give it to vx_sbx_facts.walk as `arg` of deny_look, then read v. */
struct deny_search {
	struct vx_arena *a;
	const struct deny_rules *rules;
	struct denied *v;
	uint32_t n, cap;
	struct deny_dir dir;
};

bool deny_look(void *search, const char *dir, const char *name, enum vx_fact_type type);
/* The denied name that `path` is or lies in, looking only below `base`; NULL none. */
const char *deny_name_in(
	const struct deny_rules *r, struct vx_arena *a, const char *path, const char *base);

/* vx_sbx_facts.walk on the real file system. */
int deny_walk(const char *dir,
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
	void *arg);

/* After an attempt: what has appeared is removed, and what cannot be looked through is removed
 * whole; one line each. Returns how many. */
int deny_enforce(int root_fd, const struct vx_sbx_request *r, struct vx_buf *lines);
/* The same look without touching anything: is there what deny_enforce would remove? `ret` is the
 * first of it. */
bool deny_find(int root_fd, const struct vx_sbx_request *r, char *ret, size_t cap);

#endif
