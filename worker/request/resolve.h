/* Inside the resolver: what its files share. Nothing here makes a system call; every question about
 * the file system goes through w->f.
 *
 *   resolve.c  the order of work, and the mounts in their order        grants.c  one line of config
 *              -> paths: prefix, links, globs
 *   walls.c    what must stay hidden, and what a write may not touch   deps.c    node_modules and
 *              linked packages
 *   masks.c    credential stores, sockets, devices                     reach.c   write reach, JSON
 *   denies.c   the names that no task may change                      written.c links that a task
 *              could have written */
#ifndef VX_RESOLVE_H
#define VX_RESOLVE_H

#include "denies.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/map.h"
#include "vx/path.h"
#include "vx/sandbox.h"
#include "vx/strs.h"
#include "vx/wsglob.h"

#define VX_SBX_MAX_LINKS 40 /* symlinks followed for one path, as the kernel does */

enum sbx_wall_kind { SBX_WALL_NESTED, SBX_WALL_GIT, SBX_WALL_VX, SBX_WALL_STORE };

struct sbx_wall {
	const char *path; /* canonical */
	enum sbx_wall_kind kind;
	bool granted; /* a read grant names it (git alone) */
};

/* Where a path leads. */
struct sbx_place {
	const char *path; /* canonical */
	enum vx_fact_type type;
	uid_t uid;
	mode_t mode;
	bool dangling; /* the path itself exists, as a link to nothing */
	/* A link on the way that a sandboxed task could have written, and that leads out of what
	 * it may write; NULL none. */
	const char *by_task;
};

/* A line of allow.read or allow.write, taken apart. */
struct sbx_grant {
	const char *text; /* as written */
	/* absolute: the whole path, or what stands before the first wildcard */
	const char *lexical;
	const char *pattern; /* what follows, or NULL */
	bool as_dir;         /* it was written as a directory: a trailing '/', or a glob */
	bool inside;         /* lexically inside the project */
};

struct sbx_bind {
	const char *path, *grant;
	enum vx_mount_why why;
	bool is_dir;
};

struct sbx_binds {
	struct sbx_bind *v;
	uint32_t n, cap;
};

struct sbx_work {
	const struct vx_sbx_spec *s;
	const struct vx_sbx_facts *f;
	struct vx_arena *a;
	struct vx_err *err;
	const char *project; /* absolute */
	const char *tmp;     /* where /tmp really is */
	/* paths known to be plain directories, links excluded, all the way down */
	struct vx_map known_dirs;
	struct sbx_wall *walls;
	uint32_t n_walls, cap_walls;
	/* what sandboxed tasks may write: as it is spelled, and where that leads */
	struct vx_strlist written;
	struct vx_wsglobs members, no_members;
	struct vx_strlist protect; /* allow.protected: absolute patterns */
	/* late: what lies inside a mask and is granted by name */
	struct sbx_binds reads, writes, late;
	struct vx_strlist unmasked; /* credential stores that a grant names */
	struct vx_placeholder *places;
	uint32_t n_places, cap_places;
	struct vx_skeleton *skeleton;
	uint32_t n_skeleton, cap_skeleton;
	struct vx_withheld *withheld;
	uint32_t n_withheld, cap_withheld;
	struct vx_mount *mounts;
	uint32_t n_mounts, cap_mounts;
	struct vx_strlist deny_in, deny_known;
	struct vx_map bound_dirs; /* bound on themselves, so that they cannot be renamed away */
};

/* Room for one more item in an arena array that doubles. */
#define SBX_PUSH(w, arr, count, capacity)                                                        \
	((count) < (capacity)                                                                    \
			? &(arr)[(count)++]                                                      \
			: ((arr) = sbx_grow((w)->a, (arr), (count), &(capacity), sizeof *(arr)), \
				  &(arr)[(count)++]))
void *sbx_grow(struct vx_arena *a, const void *old, uint32_t n, uint32_t *cap, size_t item_bytes);

/* grants.c */
int sbx_follow(struct sbx_work *w, const char *path,
	/* follows links; those that the wall or the private /tmp hides join the skeleton */
	struct sbx_place *ret);
int sbx_parse_grant(struct sbx_work *w, const char *field, const char *text, struct sbx_grant *ret);
int sbx_left_project(struct sbx_work *w, const char *field, const struct sbx_grant *g,
	const struct sbx_place *p);
int sbx_add_bind(struct sbx_work *w, struct sbx_binds *b, const char *path, const char *grant,
	enum vx_mount_why why, bool is_dir);
/* a read glob -> w->reads */
int sbx_expand(struct sbx_work *w, const struct sbx_grant *g, const char *dir);
/* walls cut out */
int sbx_add_read(struct sbx_work *w, const char *path, enum vx_fact_type type, const char *grant);
void sbx_skeleton(struct sbx_work *w, const char *path, const char *link_target);
bool sbx_glob_match(const char *pattern, const char *name);
int sbx_read_grants(struct sbx_work *w);
int sbx_write_grants(struct sbx_work *w);
/* path is, or lies in, one of the binds */
bool sbx_covered(const struct sbx_binds *b, const char *path);

/* walls.c */
int sbx_find_walls(struct sbx_work *w);
/* path is this wall */
const struct sbx_wall *sbx_wall_at(const struct sbx_work *w, const char *path);
/* a wall strictly inside path */
const struct sbx_wall *sbx_wall_within(const struct sbx_work *w, const char *path);
/* path is, or lies inside, a wall that is never opened */
const struct sbx_wall *sbx_wall_over(const struct sbx_work *w, const char *path);
int sbx_refuse_write(struct sbx_work *w, const struct sbx_grant *g, const char *path);
const char *sbx_wall_name(const struct sbx_wall *wall);

/* written.c */
/* before any grant is looked at: w->written */
int sbx_find_written(struct sbx_work *w);
/* a task could have written `link`, and may not write all of where it leads */
bool sbx_leads_out(const struct sbx_work *w, const char *link, const char *target);
/* -EPERM for a path that a link of a task leads to */
int sbx_refuse_task_link(
	struct sbx_work *w, const char *field, const char *text, const struct sbx_place *p);

/* deps.c */
int sbx_dependencies(struct sbx_work *w);
/* the member patterns of the spec, compiled */
int sbx_compile_members(struct sbx_work *w);

/* masks.c */
/* the credential stores that exist, canonical */
int sbx_credentials(struct sbx_work *w, struct vx_strs *ret);
const char *sbx_mask_over(struct vx_strs masks, const char *path);
int sbx_masks(struct sbx_work *w, struct vx_strs masks);
int sbx_sockets(struct sbx_work *w);
int sbx_devices(struct sbx_work *w);

/* denies.c */
int sbx_denies(struct sbx_work *w, const struct sbx_bind *b);
struct deny_rules sbx_deny_rules(const struct sbx_work *w);
int sbx_find_protected(struct sbx_work *w);

/* resolve.c */
/* for sorting: a directory stands directly before all that it holds */
int sbx_path_order(const char *a, const char *b);
void sbx_mount(struct sbx_work *w, enum vx_mount_kind kind, enum vx_mount_why why, const char *path,
	const char *grant, bool writable, bool is_dir);
bool sbx_visible(
	/* would be seen before masks: not behind the wall or the private /tmp, or bound there */
	const struct sbx_work *w, const char *path);
/* of a canonical path; what may not be looked at counts as absent */
int sbx_lstat(struct sbx_work *w, const char *path, struct sbx_place *ret);

#endif
