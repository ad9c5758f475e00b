/* The lanes' inside: what lane.c (queues, threads, events), commit.c (the committer), walk.c,
 * behind.c, save.c, pack.c, check.c, restore.c, stage.c, place.c, clean.c and recover.c share.
 * Thread rule: a struct vx_hand belongs to one lane thread; struct vx_lane is locked by its mutex.
 */
#ifndef VX_LANE_INT_H
#define VX_LANE_INT_H

#include "io.h"

#include "../cache/store_int.h"
#include "../cache/tar.h"
#include "../cache/zstd.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/lane.h"
#include "vx/limits.h"
#include "vx/point.h"

#include <pthread.h>

#define VX_LANE_MAX_THREADS 16U /* of each of the two lanes */
/* outputs up to this in all are packed in memory, more is streamed */
#define VX_LANE_SMALL_BYTES (4U << 20)
/* what each of them counts for beside its bytes: header, name and padding */
#define VX_LANE_MEMBER_BYTES 1024U
#define VX_LANE_PIECE_BYTES (1U << 20) /* of what is streamed */
/* from this many files on outputs are read through the ring */
#define VX_LANE_RING_FILES 8U
/* saves that wait for a thread which is awake before another is woken ... */
#define VX_LANE_TURNS 2U
/* saves that a caller who dozes lets gather before a thread is woken for them, ... */
#define VX_LANE_HELD 4U
#define VX_LANE_HELD_MS 10              /* ... or for so long, at his next doze */
#define VX_LANE_SLOW_BYTES (256U << 10) /* ... unless that one has outputs beyond these to save */
#define VX_LANE_SLOW_FILES 64U
/* What a task's restored files differ by in time, one behind the other, and what those of a task
 * behind it are later, in ns. */
#define VX_LANE_RANKS 9999U
#define VX_LANE_LEVEL_NS 10000U
#define VX_LANE_BATCH 32U              /* restores taken from the queue at once */
#define VX_LANE_GROUP_WAIT_MS 400      /* unless the last commit is as long ago as this */
#define VX_LANE_SNAPS 512U             /* snapshots alone, which nobody waits for: this many, or */
#define VX_LANE_SNAPS_BYTES (8U << 20) /* so much, or */
#define VX_LANE_SNAPS_WAIT_MS 1000     /* so long make a transaction */
/* answers to restores are held back no longer than this for company, */
#define VX_LANE_HOLD_MS 2
/* and not at all while an artifact larger than this is unpacked */
#define VX_LANE_HOLD_BYTES (1U << 20)

#define VX_JOURNAL_MAX_BYTES (1U << 30) /* the names of all that one restore replaces */

struct vx_fail {
	int code;      /* -errno */
	char step[24]; /* "read", "write", "rename" ...: with the code what makes a cause */
	char text[640];
};
/* Fills it and returns code; " : <errno in words>" is added unless fmt says it all (code 0 is not
 * allowed). */
int vx_fail_set(struct vx_fail *f, int code, const char *step, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* vx_io_open_inside has returned r for what lies at path. */
int vx_fail_open(struct vx_fail *f, int r, const char *path);

/* ---- outputs on disk (walk.c) ---- */

struct vx_out {
	struct vx_seen seen; /* path, mode and the rest as seen before its content is read */
	const char *target;  /* of a symbolic link */
	uint32_t nlink, uid;
	/* bytes of `path` that are its base directory and the slash: not part of what is the
	 * outputs' */
	uint32_t base_n;
};

struct vx_walk {
	struct vx_arena a;
	/* files, links, empty directories and others that match, sorted bytewise by path, unique */
	struct vx_out *outs;
	uint32_t n_outs, cap_outs;
	/* every directory whose entries decide what the outputs are, and places where there was
	 * none (mode 0); sorted */
	struct vx_seen *dirs;
	uint32_t n_dirs, cap_dirs;
	uint64_t bytes; /* of files */
	bool elsewhere; /* something lies on another file system than the root */
	/* an output place that lies behind a symbolic link: not looked into; NULL */
	char *through_link;
	/* an output that is a link in place of a file or a directory of outputs, and leads to what
	 * is no output: NULL */
	const struct vx_out *astray;
};

/* Everything below root_fd that `o` names. Unreadable: fails. Contents are freed by
 * vx_walk_free. */
int vx_walk(struct vx_io *io, int root_fd, dev_t root_dev, const struct vx_outputs *o,
	struct vx_walk *ret, struct vx_fail *f);
/* A link that stands where outputs begin. */
struct vx_top {
	const char *path;
	bool fixed; /* by name, not by a wildcard */
};
/* Sets w->astray (behind.c). */
void vx_walk_behind(struct vx_io *io, int root_fd, const struct vx_outputs *o, struct vx_walk *w,
	const struct vx_top *tops, uint32_t n_tops);
void vx_walk_sort(struct vx_walk *w); /* and each path once */
void vx_walk_free(struct vx_walk *w);
const struct vx_seen *vx_walk_dir(const struct vx_walk *w, const char *path, size_t len);
const struct vx_out *vx_walk_out(const struct vx_walk *w, const char *path);
const char *vx_outputs_base(
	const struct vx_outputs *o); /* the directory that `files` are below; "" the root */
/* a directory below the base of an output that lies in it */
bool vx_walk_leads(const struct vx_walk *w, const char *path, size_t len);
/* Could `path` (root-relative) be an output of o? `dir` asks whether a directory is itself part of
 * the outputs. */
bool vx_outputs_match(const struct vx_outputs *o, const char *path);
bool vx_outputs_none(const struct vx_outputs *o); /* nothing is declared */
uint64_t vx_fs_now_ns(void);

/* ---- events ---- */

struct vx_evt {
	struct vx_evt *next;    /* the one before it */
	struct vx_lane_event e; /* all but text */
	void *own;              /* the event's buffer */
	char *text;
};

/* Events that are sent together: one wake-up for many. */
struct vx_evts {
	struct vx_evt *newest, *oldest;
	bool can_wait; /* nobody who dozes is woken for these */
};

/* ---- threads ---- */

struct vx_hand {
	struct vx_lane *l;
	struct vx_evts held; /* of a batch, not yet sent */
	struct vx_io *io;
	struct vx_zip *zip;
	struct vx_unzip *unzip;
	struct vx_buf tar, packed; /* kept between jobs */
	bool back;                 /* of the saving lane */
	bool slow;                 /* counted as such in its queue */
	uint64_t held_ns;          /* when the first of `held` was held back */
	/* the directory below .vx/stage that this thread's restores use one after the other, */
	char stage[48];
	int stage_fd;               /* empty between them; -1 none yet */
	int stages_fd, journals_fd; /* .vx/stage and .vx/journal; -1 not yet asked for */
	/* the secret of .vx, by which journals are bound: 0 not yet asked for, 1 there, else -errno
	 */
	struct vx_digest secret;
	int secret_r;
};

enum vx_job_kind { JOB_CLEAN, JOB_RESTORE, JOB_SAVE };

struct vx_job {
	struct vx_job *next;
	enum vx_job_kind kind;
	uint32_t task;
	const char *id;
	struct vx_outputs outputs;
	struct vx_save_req save;
	struct vx_entry entry;
	uint64_t stamp_ns; /* of a restore: the time of the files that it changes */
};

struct vx_queue {
	struct vx_job *head, **tail;
	pthread_cond_t more;
	pthread_t threads[VX_LANE_MAX_THREADS];
	uint32_t n_threads, max_threads, idle, running, queued;
	uint32_t woken; /* told to wake, and not yet awake */
	uint32_t slow;  /* running, and at something that takes its time */
	/* small jobs: an awake thread takes several in turn, since waking one costs about as much
	 * as a job */
	bool shares;
};

/* A row on its way to the index; owns its buffers. */
struct vx_pending {
	struct vx_pending *next;
	struct vx_commit c;
	char *id;
	void *row, *snap;
	char need[2][VX_ARTIFACT_PATH]; /* artifact, log; "" none */
	bool settles;                   /* a save: its event is sent after the commit */
	bool not_portable;
	uint32_t task, n_outputs;
	uint64_t bytes;
	uint64_t budget;    /* given back afterwards */
	uint64_t log_bytes; /* the caller keeps its log until the event */
};

struct vx_cause {
	char step[24];
	int code;
};

struct vx_lane {
	struct vx_lane_opts o;
	int root_fd, event_fd;
	struct vx_io *(*new_io)(void *arg, char *ret_name, size_t cap); /* tests put theirs here */
	void *io_arg;
	pthread_mutex_t lock;
	struct vx_queue front, back; /* cleans and restores; saves */
	bool stop, interrupted, flush;
	atomic_bool give_up;
	bool wait_idle; /* the committer waits for the saving lane to run dry */
	dev_t root_dev;
	mode_t umask; /* of this process */
	/* Sent and not yet taken over, the newest first. Who finds it empty signals event_fd. While
	 * the caller dozes a mark is there instead; then nobody does but the first who sends what
	 * cannot wait, and puts `dozes` back. */
	_Atomic(struct vx_evt *) events;
	atomic_bool dozes;
	_Atomic uint64_t signals; /* sent or about to be, to event_fd */
	/* the caller's alone */
	struct vx_evt *ready; /* taken over, the oldest first */
	struct vx_evt *last;  /* whose buffers the caller holds */
	uint64_t signals_read;
	bool gathers;     /* he dozed last time: saves may wait for company */
	uint32_t n_held;  /* of the saves queued: that no thread was woken for */
	uint64_t held_ns; /* when the first of them was queued */
	/* committer */
	pthread_cond_t rows_more;
	pthread_t committer;
	bool committer_runs;
	bool rows_end; /* no more rows will come: those who make them have ended */
	struct vx_pending *rows, **rows_tail;
	uint32_t n_rows, n_settling; /* of the rows: those whose save waits for them */
	uint64_t first_row_ns, row_bytes;
	/* budget */
	pthread_cond_t budget_more;
	uint64_t budget_used;
	/* what is said once */
	struct vx_cause causes[32];
	uint32_t n_causes;
	/* our directory in the store's tmp */
	pthread_mutex_t tmp_lock;
	atomic_uint_fast64_t tmp_seq;
	/* time stamps of the workspace's file system: 0 not yet known, 1 fine, 2 coarse */
	atomic_int stamps;
	atomic_uint_fast64_t stage_seq;
	uint64_t wave_ns;     /* when the first of the restores that are under way was asked for */
	uint32_t n_restoring; /* those; both under the lock */
	char io_name[96];
	_Atomic uint64_t ring_ops[VX_IO_RINGED], steps[VX_IO_RINGED];
	atomic_uint_fast64_t n_saves, n_restores, n_up_to_date, n_cleans, n_commits, n_commit_rows,
		n_failed;
};

struct vx_lane *vx_lane_make(const struct vx_lane_opts *o,
	struct vx_io *(*new_io)(void *arg, char *ret_name, size_t cap), void *io_arg,
	int *ret_errno);

struct vx_io *vx_lane_default_io(void *arg, char *ret_name, size_t cap);

/* Adds an event to those that are sent together; `own` (malloc'ed, may be NULL) becomes its buffer,
 * `text` is copied. */
void vx_evts_add(struct vx_evts *v, const struct vx_lane_event *e, void *own, const char *text);
void vx_evts_send(struct vx_lane *l, struct vx_evts *v); /* leaves it empty */
/* Sends one at once. */
void vx_lane_send(struct vx_lane *l, const struct vx_lane_event *e, void *own, const char *text);
/* The same, held back until vx_hand_flush. */
void vx_hand_send(struct vx_hand *h, const struct vx_lane_event *e, void *own, const char *text);
void vx_hand_flush(struct vx_hand *h);
/* Hands a row to the committer; takes ownership. */
void vx_lane_commit(struct vx_lane *l, struct vx_pending *p);
void vx_lane_commit_stop(struct vx_lane *l);
void vx_pending_free(struct vx_pending *p);
/* A save is about to take its time: what waits for this thread is left to another. */
void vx_lane_slow(struct vx_hand *h);
/* Waits while others hold too much, unless `at_once`: for what is held already and must go on. */
void vx_lane_budget_take(struct vx_lane *l, uint64_t bytes, bool at_once);
void vx_lane_budget_give(struct vx_lane *l, uint64_t bytes);
/* True the first time that this cause is seen. */
bool vx_lane_first_of(struct vx_lane *l, const struct vx_fail *f);
void vx_lane_settle_failed(struct vx_lane *l, struct vx_evts *v, uint32_t task, const char *id,
	const struct vx_fail *f);
/* Do time stamps tell any two changes apart here? Tried out once, on a file in .vx. */
bool vx_lane_fine_stamps(struct vx_hand *h);

/* ---- what a restore leaves (after.c) ---- */

struct vx_after {
	bool known;       /* so far */
	struct vx_walk w; /* borrows its paths */
	uint64_t taken_ns;
};
void vx_after_begin(struct vx_after *a, const struct vx_walk *before, const struct vx_outputs *o);
/* A file or a link is complete in its staged directory; a staged directory is; one has been placed
 * by itself; nothing is here. */
void vx_after_file(
	struct vx_after *a, struct vx_hand *h, const char *path, int stage_fd, const char *stage);
void vx_after_staged(
	struct vx_after *a, struct vx_hand *h, const char *path, int stage_fd, const char *stage);
/* the very pointer that vx_after_staged had */
void vx_after_placed(struct vx_after *a, struct vx_hand *h, const char *path);
void vx_after_absent(struct vx_after *a, const char *path);
/* Keeps it as the task's snapshot; false: it is not known. */
bool vx_after_keep(struct vx_after *a, struct vx_hand *h, const struct vx_job *j);

/* ---- artifacts (pack.c) ---- */

struct vx_pack {
	struct vx_digest digest;
	uint64_t bytes;              /* 0: no artifact */
	char path[VX_ARTIFACT_PATH]; /* of a file of its own; "" in a segment */
	struct vx_place place;       /* in a segment */
	bool portable;
	bool reused;  /* it was there already */
	char tmp[32]; /* streamed: written, not yet renamed; "" none */
};

/* Reads the outputs of a walk. Small ones end in h->packed, not yet written; large ones in a
 * temporary file. */
int vx_pack_read(
	struct vx_hand *h, const struct vx_walk *w, struct vx_pack *ret, struct vx_fail *f);
/* Makes what vx_pack_read has read an artifact. */
int vx_pack_finish(struct vx_hand *h, struct vx_pack *p, struct vx_fail *f);
void vx_pack_drop(struct vx_hand *h, struct vx_pack *p);
/* Appends a small artifact to a segment of the store (append.c), unless these very bytes are in
 * one. */
int vx_append(struct vx_hand *h, const void *p, size_t n, const struct vx_digest *digest,
	struct vx_place *ret, bool *ret_reused, struct vx_fail *f);
/* Writes bytes as a file of the store named by their digest, unless it is there. */
int vx_store_file(struct vx_hand *h, const void *p, size_t n, const char *suffix,
	struct vx_digest *ret, char ret_path[VX_ARTIFACT_PATH], struct vx_fail *f);
uint64_t vx_pack_bytes(const struct vx_walk *w); /* about what they are as a tar */
bool vx_bytes_hold(const uint8_t *hay, size_t n, const char *needle, size_t m);

/* ---- replacing (place.c, recover.c) ---- */

enum vx_op_kind {
	OP_REMOVE = 'D', /* a file or link */
	OP_PLACE = 'P',  /* from the stage: a file, a link, or a directory with all that is in it */
	OP_MODE = 'M',   /* of a directory */
	OP_EMPTY = 'R',  /* a directory, if it is empty */
};

struct vx_op {
	enum vx_op_kind kind;
	uint32_t mode;     /* of OP_MODE; OP_PLACE: S_IFDIR for a directory */
	const char *path;  /* root-relative */
	const char *stage; /* relative to the stage directory */
};

struct vx_plan_ops {
	struct vx_op *v;
	uint32_t n, cap;
	/* a directory that may lie in another mount than the root: no path leads into another than
	 * its or the root's; NULL none */
	const char *base;
};

void vx_ops_add(struct vx_plan_ops *p, enum vx_op_kind kind, const char *path, const char *stage,
	uint32_t mode);
/* Does all of them in order. `again`: after a crash; what is done already is passed over. */
int vx_ops_apply(struct vx_io *io, int root_fd, int stage_fd, const struct vx_plan_ops *p,
	bool again, struct vx_fail *f);
/* The journal of a stage directory is .vx/journal/<stage>, bound to the secret of .vx. */
struct vx_journal {
	struct vx_io *io;
	int stages_fd, journals_fd; /* where it is written, and where it is renamed to */
	const struct vx_digest *secret;
	const char *stage;
};
int vx_journal_write(const struct vx_journal *j, const struct vx_plan_ops *p, struct vx_fail *f);
void vx_journal_done(const struct vx_journal *j);
void vx_journal_seal(
	const struct vx_digest *secret, const void *p, size_t n, struct vx_digest *ret);
/* The journal of this thread's stage; 1: there is none, since there is no secret (the next run
 * finds by itself what a crash left half done). */
int vx_stage_journal(struct vx_hand *h, struct vx_journal *ret, struct vx_fail *f);
int vx_ops_remove(struct vx_io *io, int root_fd, const char *path, int flags, struct vx_fail *f);

/* What restoring ends with, for check.c. */
struct vx_restored {
	bool damaged;   /* with an error: the entry itself is bad, not the place */
	bool untouched; /* nothing had to be written */
	bool file_seen; /* the artifact was there, and was `file` */
	struct stat file;
	uint64_t bytes;
};
/* Removes a thread's stage directory, and all that is in it. */
void vx_stage_drop(struct vx_hand *h);
int vx_restore_entry(struct vx_hand *h, const struct vx_job *j, const struct vx_walk *w,
	const struct vx_snap *snap, struct vx_restored *ret, struct vx_fail *f);

/* What is on disk by `w` is the entry's, to compare with next time. */
void vx_keep_snapshot(
	struct vx_hand *h, const struct vx_job *j, const struct vx_walk *w, uint64_t taken_ns);

/* ---- work ---- */

void vx_do_clean(struct vx_hand *h, const struct vx_job *j);
void vx_do_save(struct vx_hand *h, const struct vx_job *j);
void vx_do_restores(struct vx_hand *h, struct vx_job *jobs); /* a batch */

/* The encoded snapshot of a walk. malloc'ed. */
void vx_snap_of(const struct vx_walk *w, const struct vx_snap *head, void **ret, size_t *ret_n);

#endif
