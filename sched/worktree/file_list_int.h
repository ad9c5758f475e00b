/* Inside of a source; shared by file_list.c (the choice), list_git.c (git itself) and list_native.c
 * (our reader and scan). */
#ifndef VX_FILE_LIST_INT_H
#define VX_FILE_LIST_INT_H

#include "dircache.h"
#include "file_list.h"

#include "../git/git.h"

#include "vx/map.h"
#include "vx/strs.h"

#include <pthread.h>
#include <stdatomic.h>

struct vx_own;

struct vx_source {
	const char *root;
	int root_fd;
	uint32_t threads;
	enum vx_oid_kind kind;
	bool trust_exec;
	char why[256];
	_Atomic uint32_t gits, lists;
	struct vx_arena a;       /* lives as long as the source; open and the first list only */
	struct vx_git git;       /* path NULL: not looked for yet */
	struct vx_strlist repos; /* directories of nested repositories, sorted; git itself only */
	struct vx_strlist embedded; /* those among them that no index records, sorted */
	struct vx_map tracked;      /* set of tracked paths; git itself only */
	struct vx_map recorded_at;  /* path -> recorded; git itself only */
	struct vx_recorded *recorded;
	uint32_t n_recorded, cap_recorded;
	struct vx_files first; /* the listing that open made; handed out once */
	bool first_ready, ahead;
	/* -errno of what git itself is not asked about either: a limit was reached (it has none),
	 * or its index is a pipe (it would wait for it) */
	int refused;
	int cancel_fd;          /* readable: git is killed; -1 none */
	struct vx_own *own;     /* NULL: git itself */
	struct vx_own *aside;   /* git itself only: the repositories that it is not started in */
	struct vx_strlist said; /* by the first list; lives with own or aside */
	bool listed;            /* the first list is complete */
	const struct vx_files *given; /* the list itself; NULL: it is made */
	struct vx_wtmem *memory;
	const struct vx_key_memory *keep; /* where the memory lives; NULL nowhere */
	pthread_mutex_t lock;             /* git is made under it */
};

/* list_native.c. 1: not understood, `why` says what; git itself is to be asked. */
int vx_own_open(struct vx_source *s, char *why, size_t cap);
/* all of it, once; what was opened is closed where it fails */
int vx_own_list_first(struct vx_source *s, char *why, size_t cap);
void vx_own_close(struct vx_own *o);
int vx_own_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out,
	struct vx_err *err);
int vx_own_same(struct vx_source *s, const char *dir);
int vx_own_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err);
bool vx_own_tracked(const struct vx_own *o, const char *path);
/* A repository that no index around it records, where git lists the rest: git is never started in
 * it. `dir`, `path`: in it. */
int vx_own_list_embedded(struct vx_source *s, const char *mount, const char *dir,
	struct vx_arena *a, struct vx_files *out, struct vx_err *err);
int vx_own_ignored_embedded(
	struct vx_source *s, const char *mount, const char *path, bool *ret, struct vx_err *err);
bool vx_own_recorded(const struct vx_own *o, const char *path, struct vx_recorded *ret);
bool vx_own_has_repository(const struct vx_own *o, const char *path);
bool vx_own_tracks_below(const struct vx_own *o, const char *dir);
bool vx_own_facts(const struct vx_own *o, const struct vx_list_facts *to);
void vx_own_distrust(struct vx_source *s); /* once the memory is there */
int vx_own_remember(struct vx_source *s, const struct vx_files *table);

/* list_git.c */
int vx_git_open(struct vx_source *s, struct vx_err *err);
int vx_git_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out,
	struct vx_err *err);
int vx_git_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err);
bool vx_git_recorded(const struct vx_source *s, const char *path, struct vx_recorded *ret);
int vx_git_tracks_below(struct vx_source *s, const char *dir, struct vx_err *err);

#endif
