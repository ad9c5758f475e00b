/* The lanes: cleaning, checking, restoring and saving, off the CPU slots.
 *
 * One object with its own threads and one I/O interface in two implementations (blocking; io_uring
 * with VX_IO=uring, where it is not forbidden). Requests are queued, results come as events:
 *
 *   vx_lane_clean    removes a task's declared outputs before an attempt               -> CLEANED
 *   vx_lane_restore  is every output in place? else verify, stage, replace: the tree ends
 *                    as the entry has it: what changes gets the time of the restore (in the order
 *                    that was saved), what is right already keeps its own
 *                                                                                      -> RESTORED
 *                                                                                        (ok, or
 *                                                                                        the entry
 *                                                                                        was
 *                                                                                        damaged
 *                                                                                        and is
 *                                                                                        gone)
 *   vx_lane_save     resolve outputs, read, check the inputs again, pack, write, rename, commit ->
 *                    CAPTURED, then SETTLED; or SETTLED alone
 *
 * At most 2 x slots saves and as many restores are under way (and no more than threads pay for:
 * about the CPUs), the rest queue first in first out; bytes held in memory have a limit
 * (VX_LANE_BUDGET_BYTES). Rows are committed in groups while saves follow each other (within 400
 * ms), at once otherwise; vx_lane_flush ends a wait. A failed save leaves no temporary and no row;
 * it is told once per cause (the text of later events of the same cause is empty; vx_lane_stats has
 * the count). Nothing here follows a symlink out of the tree (openat2 beneath). Paths in requests
 * are root-relative.
 *
 * Ownership: request strings and callbacks' args stay the caller's and must live until the
 * request's last event. Events own their buffers until the next vx_lane_next. Thread rule: requests
 * and vx_lane_next from one thread; callbacks (tracked, recheck) are called on lane threads. */
#ifndef VX_LANE_H
#define VX_LANE_H

#include "vx/glob.h"
#include "vx/store.h"

#include <stdbool.h>
#include <stdint.h>

#define VX_LANE_BUDGET_BYTES (256ULL << 20)
/* Rows that make the committer stop waiting for more. A caller that lets fewer saves than this be
 * unsettled, beside those under way, waits for the clock instead. */
#define VX_LANE_GROUP 256U

struct vx_lane;

struct vx_lane_opts {
	struct vx_store *store;
	const char *root; /* canonical workspace root */
	uint32_t slots;   /* concurrency */
	/* by git, or it describes a project: never cleaned */
	bool (*tracked)(void *arg, const char *path);
	void *arg;
};

/* The outputs of one task. */
struct vx_outputs {
	const struct vx_globset *files;           /* relative to dir; may be NULL */
	const char *dir;                          /* the project's directory */
	const struct vx_globset *workspace_files; /* relative to the root; may be NULL */
	/* projects nested in dir (root-relative): not part of `files` */
	struct vx_strs nested;
	/* overlaps an upstream's outputs by leave of the configuration: nothing is cleaned, and a
	 * restore removes nothing */
	bool additive;
};

struct vx_save_req {
	uint32_t task;
	const char *id;
	struct vx_digest key;
	struct vx_outputs outputs;
	const void *log; /* tasklog.h's stored form */
	size_t log_bytes;
	uint64_t duration_ns, cpu_ns, peak_bytes;
	bool peak_is_tree;
	/* 0 nothing moved, 1 moved (what is named), -errno; called after the outputs have been
	 * read */
	int (*recheck)(void *arg, char *ret_what, size_t cap);
	void *arg;
};

struct vx_restore_req {
	uint32_t task;
	const char *id;
	struct vx_entry entry;
	struct vx_outputs outputs;
	/* How many tasks are upstream of it, one behind the other. Restores side by side give times
	 * by it: nothing looks older than what it was made from. */
	uint32_t level;
};

enum vx_lane_kind { VX_LANE_CLEANED = 1, VX_LANE_RESTORED, VX_LANE_CAPTURED, VX_LANE_SETTLED };

struct vx_lane_event {
	enum vx_lane_kind kind;
	uint32_t task;
	bool ok;         /* CLEANED, RESTORED: done; SETTLED: the row is committed */
	bool up_to_date; /* RESTORED: everything was in place, nothing was written */
	bool moved;      /* SETTLED, not ok: inputs moved while the task ran; text names what */
	/* SETTLED, ok: an output holds the root's path, so that only this root can use the entry */
	bool not_portable;
	uint64_t bytes;     /* RESTORED: bytes written; SETTLED: bytes of the artifact */
	uint32_t n_outputs; /* SETTLED */
	const void *log;    /* RESTORED: the stored log */
	size_t log_bytes;
	/* not ok: step, path and errno in words, one line; or a warning to say once */
	char text[768];
};

struct vx_lane_stats {
	const char *io; /* "io_uring" or "blocking: <why>" */
	uint64_t saves, restores, up_to_date, cleans, commits, commit_rows;
	/* saves that failed; text is sent with the first of each cause only */
	uint64_t failed;
	/* by enum vx_io_op of lane/io.h: open, read, write, close, rename, mkdir, unlink, fsync */
	uint64_t ring_ops[8];
	/* what the saves asked for, same order: equal to ring_ops under io_uring */
	uint64_t steps[8];
};

int vx_lane_new(const struct vx_lane_opts *o, struct vx_lane **ret, struct vx_err *err);
int vx_lane_fd(const struct vx_lane *l); /* readable when vx_lane_next has something */
void vx_lane_clean(struct vx_lane *l, uint32_t task, const struct vx_outputs *o);
/* Is it certain that vx_lane_clean would find nothing? One look at each place where outputs begin,
 * by the caller's thread, spares two wake-ups where a task has not run before. False also where it
 * cannot be told so cheaply. */
bool vx_lane_clean_already(const struct vx_lane *l, const struct vx_outputs *o);
/* checks first, restores only what is not in place */
void vx_lane_restore(struct vx_lane *l, const struct vx_restore_req *r);
void vx_lane_save(struct vx_lane *l, const struct vx_save_req *r);
/* Nothing more will be saved for now (no task runs or waits): rows that wait for company are
 * committed at once. */
void vx_lane_flush(struct vx_lane *l);
bool vx_lane_next(struct vx_lane *l, struct vx_lane_event *ret);
/* Before each sleep of a caller that ever dozes. true: it may sleep; false: an event is there. With
 * `doze` vx_lane_fd stays unreadable for CAPTURED and SETTLED, so it must wake by itself before
 * long: a wake-up costs more than what they tell is worth to one who could not act on it. For the
 * same reason saves that are queued between one doze and the next wait for a few more, or some
 * milliseconds, before a thread is woken for them; vx_lane_flush or a call without `doze` ends
 * that. */
bool vx_lane_doze(struct vx_lane *l, bool doze);
void vx_lane_stats(const struct vx_lane *l, struct vx_lane_stats *ret);
/* What VX_IO and the machine allow: "io_uring" or "blocking: <why>"; for vx info. */
void vx_lane_io_name(char *ret, size_t cap);
/* Queued saves are dropped (SETTLED, not ok, "dropped"), those under way finish. */
void vx_lane_interrupt(struct vx_lane *l);
/* The grace is over: what is being streamed is given up too (SETTLED, not ok). Any thread. */
void vx_lane_give_up(struct vx_lane *l);
/* After the last event: stops the threads, leaves no temporary. With work under way it waits for
 * it. */
void vx_lane_free(struct vx_lane *l);

/* Completes what a killed run left half done under <root>/.vx (journal, stage). Called with the
 * workspace lock held, before anything else. */
int vx_lane_recover(const char *root, struct vx_err *err);

#endif
