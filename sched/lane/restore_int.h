/* A restore under way: what restore.c (the entry, member by member) and stage.c (where its files
 * wait, and where they will go) share. */
#ifndef VX_LANE_RESTORE_INT_H
#define VX_LANE_RESTORE_INT_H

#include "lane_int.h"

#include "vx/map.h"

enum place_state { AT_HOME, STAGED };

struct dir_place {
	enum place_state state;
	const char *path;
	const char *stage;   /* STAGED: its path within the stage directory */
	uint32_t mode, made; /* to be set at the end when they differ */
	bool top;            /* STAGED: placed by itself */
};

struct dir_member {
	const char *path;
	uint32_t mode;
	bool has_child;
};

enum how { H_SKIP, H_COMPARE, H_WRITE };

/* A file or link that waits in the stage for its time. */
struct staged {
	uint32_t out; /* in outs_v */
	const char *path;
	int64_t saved_ns; /* what its time was when it was saved */
};

struct restoring {
	struct vx_hand *h;
	const struct vx_job *j;
	const struct vx_walk *w;
	const struct vx_snap *snap;
	struct vx_fail *f;
	struct vx_arena a;
	struct vx_map known; /* path -> its stat in the snapshot */
	struct vx_seen *known_v;
	uint32_t n_known;
	struct vx_map members;     /* every path of the entry */
	struct vx_map dir_members; /* path -> dirs_v */
	struct dir_member *dirs_v;
	uint32_t n_dirs, cap_dirs;
	struct vx_map places; /* directories as they will be */
	struct dir_place *places_v;
	uint32_t n_places, cap_places;
	struct vx_plan_ops placing, modes, removing;
	int stage_fd; /* -1: not asked for yet */
	uint32_t n_staged, n_outs;
	struct vx_tar_member *outs_v; /* files and links of the entry, in its order */
	uint32_t n_outs_v, cap_outs_v;
	struct staged *staged_v;
	uint32_t n_staged_v, cap_staged_v;
	struct vx_restored *ret;
	uint64_t written;
	bool bad; /* the entry, not the place, is at fault */
	struct vx_after after;
	/* the member under way */
	struct vx_tar_member m;
	const char *path, *stage_path;
	const struct vx_out *disk;
	enum how how;
	struct vx_buf hold;
	int fd;
	uint64_t off;
	bool hole;
};

/* Opens the directory of this thread below .vx/stage as r->stage_fd; made once, it is empty again
 * after each restore that went well. */
int vx_stage_open(struct restoring *r);
/* What the directory path[0..n) is and will be; n 0: the root. One that is missing is staged. */
int vx_stage_find(struct restoring *r, const char *path, size_t n, struct dir_place *ret);
/* Where the member under way is staged: r->stage_path. */
int vx_stage_member(struct restoring *r);

#endif
