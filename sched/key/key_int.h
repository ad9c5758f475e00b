/* Inside of a keyer. keyer.c (life, compute), inputs.c (which files), encode.c (the parts), fixed.c
 * (fingerprint and globals), passed.c (projects without a task), stable.c (the gate), recheck.c,
 * probe.c (runtime commands). */
#ifndef VX_KEY_INT_H
#define VX_KEY_INT_H

#include "seed.h"
#include "../worktree/file_list.h"

#include "vx/buf.h"
#include "vx/err.h"
#include "vx/glob.h"
#include "vx/graph.h"
#include "vx/key.h"
#include "vx/map.h"

#include <pthread.h>

/* The glob sets of one declaration; equal declarations are shared by pointer. */
struct decl_globs {
	const struct vx_task_decl *decl;
	struct vx_globset *files, *ws_files, *outs, *ws_outs;
	struct vx_strs up_files; /* turbo: entries of `files` that begin with ".." */
};

/* What a project holds: tracked and untracked files, without what no input set has. Two of a kind:
 * vx leaves nested projects out, turbo does not. */
struct own_files {
	uint32_t generation; /* of the table it was made from; 0 none */
	struct vx_files files;
};

struct input_list {
	struct vx_file *const *files;
	uint32_t n;
	const struct vx_key_input *inputs;
};
#define VX_MAX_SHARED_LISTS 64 /* of one project; beyond that each record has its own */

/* A project that stands in keys with every file of it; immutable once made. */
struct stand {
	uint32_t project, n;
	const struct vx_key_input *v; /* sorted by path */
	struct vx_digest digest;      /* paths, modes and ids */
	/* monotonic start of the last check that found it unmoved; any thread */
	_Atomic uint64_t *checked_ns;
};

struct project_state {
	const struct stand *stand; /* the latest; NULL: nothing has asked */
	uint32_t stand_generation; /* of the table it is known to hold for */
	bool dirty;                /* a command may have written there: list it anew */
	bool in_fixed;             /* of root_projects: its files are in every key */
	struct own_files own[2];
	struct input_list *lists;
	uint32_t n_lists;
};

/* A root file whose bytes are in every key. */
struct fixed_file {
	const char *name;
	bool present;
	struct vx_digest digest;
	struct vx_fstat st;
	uint64_t looked_ns; /* wall time in front of the look */
};
#define N_FINGERPRINT 10

struct probe_result {
	int status; /* wait(2) */
	const char *out, *err;
	size_t out_n, err_n;
};

/* The fixed files as they stood at one time; immutable once made. */
struct fixed_round {
	struct fixed_file v[N_FINGERPRINT];
	const struct vx_key_input *globals; /* turbo's globalDependencies */
	uint32_t n_globals;
	const struct fixed_file *linked; /* what the links among them lead to */
	uint32_t n_linked;
	struct vx_digest globals_digest;
	/* of vx_keyer.root_projects, and the digest of theirs */
	const struct stand *const *stands;
	struct vx_digest stands_digest;
};

/* A record and what a later look needs beside it. */
struct record {
	struct vx_key_record pub;
	const struct fixed_round *fixed;
	struct vx_key_input manifest; /* the project's package.json; mode 0 when there was none */
	bool thin;                    /* taken over: inputs not listed yet */
	bool moved;                   /* taken over, and listed since with another outcome */
	/* links are followed: what it answers for lies outside of what its globs reach */
	bool links;
	struct fixed_file behind;          /* where that is a link: the bytes it leads to */
	const struct stand *const *passed; /* as many as the task passes through */
	/* uncached.c: tasks without cache that the key folds, as vx_key_fill found them */
	struct held *const *held;
	uint32_t n_held;
	bool holds; /* that has been done */
};

/* A file's bytes, links followed; not `present` when there is none. */
int vx_key_read_through(int root_fd, const char *name, struct fixed_file *f);
/* Says why; returns r. */
int vx_key_read_failed(struct vx_keyer *k, int r, const char *name, struct vx_err *err);

struct vx_keyer {
	const struct vx_workspace *ws;
	const struct vx_graph *g;
	struct vx_keyer_opts o;
	struct vx_cancel cancel;
	struct vx_arena a;
	struct vx_source *src;
	struct vx_files table; /* the whole workspace; entries live in `a` or the source */
	uint32_t generation;   /* of the table; from 1 */
	bool all_dirty, fixed_dirty;
	struct project_state *projects;
	uint32_t *dirty; /* projects marked so */
	uint32_t n_dirty, cap_dirty;
	struct record **records; /* by task */
	const char *cache_rel;   /* cache directory relative to the root; NULL outside */
	struct vx_map by_decl;   /* declaration pointer -> globs */
	struct decl_globs **globs;
	uint32_t n_globs, cap_globs;
	struct vx_map by_list; /* dialect and patterns -> sets */
	struct vx_globset **sets;
	uint32_t n_sets, cap_sets;
	struct vx_buf set_key;
	pthread_mutex_t globs_lock; /* by_decl and globs: the recheck compiles nothing, but reads */
	struct vx_map probes;       /* "cwd\0command" -> results */
	struct probe_result *results;
	uint32_t n_results, cap_results;
	const struct fixed_round *fixed;
	/* under a turbo.json: projects that the root depends on; NULL none */
	uint32_t *root_projects, n_root_projects;
	/* by task that runs nothing: as stand.checked_ns */
	_Atomic uint64_t *checked_ns;
	/* uncached.c. By task: what its files are held to; does its key fold a task without cache?
	 * By project: commands without cache that have ended and may have written there. */
	struct held **held;
	uint8_t *uncached_up;
	uint64_t *writes;
	bool compiled; /* the globs of every task */
	struct vx_globset *global_set;
	struct global_walk {
		pthread_mutex_t lock;
		struct vx_arena a;
		struct vx_glob_memory *memory; /* of directories; NULL: nothing was walked */
		/* what globalDependencies matched, sorted, in the last walk of a recheck, and its
		 * monotonic begin; 0: there was none */
		struct vx_strs paths;
		uint64_t began_ns;
	} walk;
	struct absent {
		pthread_mutex_t lock;
		/* the files of this that `mask` names were not there, and no link either ... */
		const struct fixed_round *round;
		/* ... while the root had this stat, which was old enough */
		struct vx_fstat root;
		uint32_t mask;
	} absent;
	/* empty.c: turbo's entries -> 1 finds something in some package, 0 nowhere */
	struct vx_map elsewhere;
	/* by task: 0 unknown, 1 yes, 2 preliminary; filled by stable.c */
	uint8_t *stable;
	struct vx_seed_state *seed; /* seed.c; NULL without a snapshot */
	struct vx_keyer_stats st;
};

/* keyer.c: what the project holds now. */
const struct vx_files *vx_key_own(struct vx_keyer *k, uint32_t project, bool with_nested);
/* Takes the identity of each that has none; what has vanished drops out. `whose` is for the
 * error. */
int vx_key_identify(
	struct vx_keyer *k, const char *whose, struct vx_files *chosen, struct vx_err *err);
/* A record as it would be made now; that of the keyer stays. */
int vx_key_record_now(struct vx_keyer *k, uint32_t task, struct record **ret, struct vx_err *err);
/* vx_key_fill of this task alone */
int vx_key_fill_one(struct vx_keyer *k, uint32_t task, struct vx_err *err);

/* Which files of its project stand in a task's key? Every file of a task that is not cached; those
 * that its inputs choose of a cached one. Under a turbo.json the latter also of what runs nothing
 * in the package, as in Turborepo, and beside the former of what is not cached. */
static inline bool vx_key_takes_all(const struct vx_task_decl *d)
{
	return d->has_exec && !d->has_cache;
}

static inline bool vx_key_takes_chosen(const struct vx_task_decl *d)
{
	return d->has_cache || d->dialect == VX_DIALECT_TURBO;
}

/* inputs.c */
int vx_key_globs(struct vx_keyer *k, const struct vx_task_decl *d, const struct decl_globs **ret,
	struct vx_err *err);
/* The input files of a task out of `table` (which need not hold more than the task can reach),
 * sorted. `own`: what the project holds of it. */
int vx_key_select(struct vx_keyer *k, uint32_t task, const struct decl_globs *dg,
	const struct vx_files *table, const struct vx_files *own, struct vx_files *ret,
	struct vx_arena *a, struct vx_strlist *ret_empty);
void vx_key_own_files(const struct vx_keyer *k, uint32_t project, bool with_nested,
	const struct vx_files *table, struct vx_files *ret);
/* Directories (root-relative, "" the root) that hold every possible input of the task; none inside
 * another. */
void vx_key_input_roots(const struct vx_keyer *k, uint32_t task, const struct decl_globs *dg,
	struct vx_arena *a, struct vx_strlist *ret);
/* Does a task of the plan say that it makes this? */
bool vx_key_is_made(struct vx_keyer *k, const char *path);
/* Turbo: do its inputs name any file, so that the disk is walked for them? */
bool vx_key_names_files(const struct decl_globs *dg);
/* Turbo: files that the globs select on disk, ignored by git or not, and what the links among all
 * of them lead to. */
int vx_key_walk_turbo(struct vx_keyer *k, uint32_t task, const struct decl_globs *dg,
	struct vx_arena *a, struct vx_files *ret, struct vx_err *err);

/* fixed.c: the fingerprint and turbo's globals. */
extern const char *const vx_fingerprint_names[N_FINGERPRINT];
/* a new round if anything changed */
int vx_key_fixed_read(struct vx_keyer *k, struct vx_err *err);
/* 0, 1, -errno; any thread */
int vx_key_fixed_moved(struct vx_keyer *k, const struct fixed_round *r, uint64_t since_ns,
	char *ret_what, size_t cap);

/* passed.c: the project as it stands now. */
int vx_key_stand(
	struct vx_keyer *k, uint32_t project, const struct stand **ret, struct vx_err *err);
int vx_key_stands(struct vx_keyer *k, const uint32_t *projects, uint32_t n,
	const struct stand *const **ret, struct vx_err *err);
void vx_key_root_projects(struct vx_keyer *k); /* fills k->root_projects */
/* Has a file of it moved, or come? A check that began at since_ns (monotonic) or later is
 * enough. 0, 1, -errno; any thread. */
int vx_key_stand_moved(
	struct vx_keyer *k, const struct stand *s, uint64_t since_ns, char *ret_what, size_t cap);
/* The same of every file that a key holds by way of tasks that run nothing. */
int vx_key_upstream_moved(
	struct vx_keyer *k, const struct record *r, uint64_t since_ns, char *ret_what, size_t cap);
int vx_key_fill_groups(struct vx_keyer *k, uint32_t task, struct vx_err *err);

/* uncached.c: notes whether the key folds tasks without cache; takes down how their files stand;
 * have those moved? 0, 1, -errno; the last on any thread. */
void vx_key_note_uncached(struct vx_keyer *k, uint32_t task);
int vx_key_hold_uncached(struct vx_keyer *k, uint32_t task, struct vx_err *err);
int vx_key_uncached_moved(
	struct vx_keyer *k, const struct record *r, uint64_t since_ns, char *ret_what, size_t cap);

/* probe.c */
int vx_key_probe(struct vx_keyer *k, const char *cwd_rel, const char *command,
	const struct probe_result **ret, const char *task_id, struct vx_err *err);

/* encode.c */
int vx_key_encode(struct vx_keyer *k, uint32_t task, struct record *r, struct vx_err *err);

/* stable.c */
/* write reach, `cache` ignored */
enum vx_reach vx_key_reach(struct vx_keyer *k, uint32_t task, bool *ret_fingerprint);

/* recheck.c: has this input moved? 0, 1, -errno. Any thread. */
int vx_key_input_moved(struct vx_keyer *k, const struct vx_key_input *in);
void vx_key_input_of(const struct vx_file *f, struct vx_key_input *ret);
/* A list of inputs that is looked at again. */
struct watched {
	const struct vx_key_input *v; /* sorted by path */
	uint32_t n;
	/* LOOK_STAT: a file that was written counts as moved though its bytes are the same again.
	 * LOOK_BYTES: by its bytes alone */
	enum { LOOK_STAT, LOOK_BYTES } how;
	bool but_made; /* what a cached task of the plan makes is left out */
};
/* 0, 1 (named), -errno: one after another, and against what a listing begun at wall_ns has
 * found. */
int vx_key_each_moved(struct vx_keyer *k, const struct watched *w, char *ret_what, size_t cap);
int vx_key_list_moved(struct vx_keyer *k, const struct watched *w, const struct vx_files *now,
	uint64_t wall_ns, char *ret_what, size_t cap);
/* Of a record's own files. */
int vx_key_files_moved(struct vx_keyer *k, const struct record *r, char *ret_what, size_t cap);

static inline bool vx_key_dir_is_root(const char *dir)
{
	return !dir[0] || (dir[0] == '.' && !dir[1]);
}

#endif
