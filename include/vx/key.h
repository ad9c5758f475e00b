/* Keys: what a task's result depends on, as a SHA-256. Parts and their order: docs/keys.md (format
 * version VX_KEY_VERSION).
 *
 *   vx_keyer_new      takes workspace and graph; reads file lists and ids (git's index and our
 *                     scan; git itself where those do not suffice)
 *   vx_key_stable     may this task be keyed before anything has run? (reach of upstream writers)
 *   vx_key_compute    makes the record of one task; its key_deps must have theirs
 *   vx_keyer_ran      a command has run (pass or fail), or its outputs have been restored: what may
 *                     be written is read anew by later vx_key_compute
 *                     calls
 *   vx_key_recheck    have the inputs of a record moved since? on any thread
 *   vx_keyer_remember keeps what makes the next run cheaper (identities, directories) in
 *   opts.memory
 *
 * Errors: vx_keyer_new -ENOENT not a git repository (or git's own refusal, in git's words).
 * vx_key_compute: -ECHILD a runtime probe failed, -EINVAL a literal input is ignored by git, -EBUSY
 * a file kept changing while it was read, -ECANCELED, else -errno; all name task and file.
 *
 * Records are immutable and live as long as the keyer. Thread rule: one thread, except
 * vx_key_recheck and vx_keyer_tracked, which any thread may call on any record at any time. */
#ifndef VX_KEY_H
#define VX_KEY_H

#include "vx/hash.h"
#include "vx/plan.h"
#include "vx/worktree.h"

#define VX_KEY_VERSION 1

struct vx_arena;
struct vx_err;
struct vx_graph;
struct vx_keyer;
struct vx_source;
struct vx_snapshot;
struct vx_workspace;

struct vx_key_input {
	const char *path; /* relative to the root */
	/* git mode: 0100644, 0100755, 0120000; 0160000 never */
	uint32_t mode;
	struct vx_oid oid;                      /* blob id of the bytes on disk */
	uint64_t size, mtime_ns, ctime_ns, ino; /* stat when its identity was taken ... */
	uint64_t looked_ns;                     /* ... and the wall time in front of that */
};

struct vx_key_part {
	const char *label;
	const char *value; /* printable form; secrets as keyed digests */
};

struct vx_key_record {
	uint32_t task;
	struct vx_digest key;
	const struct vx_key_input *inputs; /* sorted bytewise by path */
	uint32_t n_inputs;
	struct vx_strs empty_globs; /* input entries that matched nothing: said on the miss */
	bool folds_runtime;         /* has runtime probes: pinned to this machine */
	/* all but the inputs, in their order; filled only with opts.explain */
	const struct vx_key_part *parts;
	uint32_t n_parts;
};

struct vx_keyer_opts {
	struct vx_strs forwarded; /* args after -- : folded into requested tasks */
	/* canonical; left out of every input set when inside the workspace */
	const char *cache_dir;
	const uint8_t *mask_key; /* 32 bytes, per store: values of secrets are shown as HMACs under
				    it; NULL: shown as "sha256:?" */
	bool explain;            /* keep the parts (--dry=full) */
	/* Keys to be compared with each other, never looked up: runtime probes are named in them
	 * and not run. */
	bool unprobed;
	/* of the same root, taken over; NULL: one is opened */
	struct vx_source *source;
	/* readable: runtime probes are killed and long files read no further, -ECANCELED; -1
	 * none */
	int cancel_fd;
	uint32_t threads; /* for scanning and hashing; 0 = CPUs */
	/* NULL: nothing is remembered; borrowed for the keyer's life */
	const struct vx_key_memory *memory;
	struct vx_ahead *ahead; /* of the same root; NULL none */
	struct vx_snapshot
		*snapshot; /* of this very plan (snapshot.h), taken or planned; NULL none. Keys may
			    * be taken over from it, and vx_keyer_remember keeps it. */
};

struct vx_keyer_stats {
	uint32_t gits; /* git processes started */
	/* directories listed with what is below, the whole first */
	uint32_t lists;
	uint32_t index_ids, hashed, memo; /* identities by source */
	uint32_t probes;                  /* runtime commands run */
	uint32_t taken;                   /* keys taken over from a snapshot */
	const char *source;               /* "index" or "git: <why>" for vx info */
	struct vx_strs said; /* what listing the files met and a user must know, a line each */
};

int vx_keyer_new(const struct vx_workspace *ws, const struct vx_graph *g,
	const struct vx_keyer_opts *o, struct vx_keyer **ret, struct vx_err *err);
void vx_keyer_free(struct vx_keyer *k);
/* Long files are read no further, whatever has been read from cancel_fd since; on any thread. */
void vx_keyer_cancel(struct vx_keyer *k);
bool vx_key_stable(struct vx_keyer *k, uint32_t task);
int vx_key_compute(
	struct vx_keyer *k, uint32_t task, const struct vx_key_record **ret, struct vx_err *err);
/* A key that was taken over from a snapshot comes without its inputs (n_inputs is 0). This lists
 * them: to be called in front of the command whose result is to be saved, since vx_key_recheck
 * needs them. Nothing happens where they are there already. -errno as vx_key_compute. */
int vx_key_fill(struct vx_keyer *k, uint32_t task, struct vx_err *err);
/* NULL before vx_key_compute */
const struct vx_key_record *vx_key_get(const struct vx_keyer *k, uint32_t task);
/* Of an entry that is among a record's empty_globs; `workspace`: it stands in workspaceFiles. For
 * saying it when the task has run: the files are looked at as they are now, and the disk is
 * walked. */
enum vx_key_empty {
	/* it matches what is left out on purpose: own outputs, what a `!` takes away; or, of a
	 * definition for all packages, in another one */
	VX_EMPTY_MEANT,
	VX_EMPTY_IGNORED, /* it matches only what git ignores */
	VX_EMPTY_NOTHING,
};
enum vx_key_empty vx_key_why_empty(
	struct vx_keyer *k, uint32_t task, bool workspace, const char *glob);
void vx_keyer_ran(struct vx_keyer *k, uint32_t task);
void vx_keyer_stats(const struct vx_keyer *k, struct vx_keyer_stats *ret);
/* May be called while restores are under way, and again when the run is over: then it is known
 * which directories have come to rest. */
/* 0 also when there is nothing to keep; -errno of the memory or of the snapshot's file */
int vx_keyer_remember(struct vx_keyer *k, bool over);

/* 0: every input is as it was and none came or went, and no fingerprint file moved; 1: something
 * moved, ret_what names it; -errno: could not tell. */
int vx_key_recheck(struct vx_keyer *k, const struct vx_key_record *r, char *ret_what, size_t cap);

/* Is this root-relative path tracked by git? Tracked files are never cleaned. Any thread. */
bool vx_keyer_tracked(struct vx_keyer *k, const char *path);

/* The env wildcards of turbo (`*`, `!` subtracts, a backslash makes either literal; `=` in front:
 * see env.c), and plain names: which variables of `env` ("NAME=value" list, NULL-terminated) a list
 * selects, as pointers into it, sorted by name. */
struct vx_strs vx_env_select(
	struct vx_strs list, const char *const *env, enum vx_dialect d, struct vx_arena *a);

#endif
