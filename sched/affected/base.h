/* Inside --affected: the commit that is compared with, as a workspace of its own.
 *
 * Its files are known by name and blob id from git's trees, submodules included. A few of them are
 * needed as files: what planning reads, and what keys take from the disk. They are written to a
 * directory of their own (the room), where the commit's workspace is then loaded and keyed by the
 * code that does it for the workspace itself. Nothing of the commit is run.
 *
 * What git does not know (ignored files) is taken to be in the commit what it is now. */
#ifndef VX_AFFECTED_BASE_H
#define VX_AFFECTED_BASE_H

#include "../git/git.h"
#include "../worktree/file_list.h"

#include "vx/config.h"
#include "vx/plan.h"

/* A file of the commit. */
struct tree_file {
	struct vx_file f; /* `f` is the first member: tables hold pointers to it */
	uint32_t repo;    /* index into base.repos */
	bool written;     /* it is in the room */
};

struct base {
	const struct vx_workspace *now;
	const struct vx_files *now_files; /* as the keyer of the workspace lists them */
	struct vx_source *now_source;
	struct vx_arena *a;
	struct vx_err *err;
	struct vx_git git;
	const char *commit, *since;
	enum vx_oid_kind kind;
	struct vx_files files;
	struct vx_strlist repos; /* directories of repositories, "" the workspace's own */
	const char *room;        /* its path; NULL: not made yet */
	int room_fd;
	struct vx_workspace ws;
	/* why nothing can be told of the commit, so that everything is affected; NULL */
	const char *untold;
};

#define BASE_MAX_BYTES ((size_t)1 << 30) /* of files of one repository that are read at a time */

/* Sets b->untold, unless it is. */
void base_cannot_tell(struct base *b, const char *why);
/* Each returns 0 (base.untold may be set then) or -errno with err set. */
int base_list(struct base *b);
/* Loads b->ws. `evaluated`: what the commit's configurations that are programs say. */
int base_load(struct base *b, const struct vx_evaluations *evaluated, bool frozen);
void base_free(struct base *b);
/* What an error says, with paths as in the workspace. */
const char *base_said(const struct base *b, const struct vx_err *err);
/* Appends the bytes of one file of the commit. */
int base_text(struct base *b, const struct vx_file *f, struct vx_buf *out);

/* Is it the name of a configuration that is a program? */
bool base_is_program(const char *path);
/* Is there anything at the path or below it? */
bool base_holds(const struct vx_files *t, const char *path);

#endif
