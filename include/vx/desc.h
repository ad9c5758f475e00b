/* What the scheduler tells a worker, and what a worker tells back.
 *
 * A task descriptor is written once, as msgpack, into a slab of the shared arena, and a request in
 * the worker's ring refers to it by offset. The worker copies the slab out, decodes it into its own
 * arena and validates every field before use; the scheduler frees the slab when the completion has
 * come (or the worker is lost). A descriptor is at most VX_MAX_DESC_BYTES; a task that needs more
 * is refused by name before it is queued.
 *
 * All strings are bytes without NUL. Paths are absolute unless said.
 *
 * On the wire (https://msgpack.org, arrays, unsigned integers, booleans and strings only) every
 * string carries its NUL, so that a decoded one points into the copy of the message. A count that
 * the message's own size cannot hold is refused before anything is allocated for it. */
#ifndef VX_DESC_H
#define VX_DESC_H

#include "vx/sandbox.h"
#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_arena;
struct vx_buf;
struct vx_err;

/* A fully resolved command. */
struct vx_task_desc {
	uint32_t task;       /* the scheduler's task index */
	uint16_t attempt;    /* from 1 */
	const char *id;      /* "project#task" */
	struct vx_strs argv; /* what to execute: {"/bin/sh","-c","..."} or a command taken apart;
				argv[0] is looked up on the PATH in env when without '/' */
	const char *cwd;
	struct vx_strs env;    /* the whole environment, "NAME=value" */
	uint32_t timeout_ms;   /* 0 none; from the command's start */
	uint32_t grace_ms;     /* SIGTERM to SIGKILL */
	bool persistent;       /* stdin is a pipe that stays open; else /dev/null */
	uint64_t memory_bytes; /* hard limit where a cgroup can be had; 0 none */
	bool sandboxed;
	struct vx_sbx_spec sandbox; /* read only when sandboxed */
};

/* -E2BIG names the task and the limit */
int vx_desc_encode(const struct vx_task_desc *d, struct vx_buf *out, struct vx_err *err);
int vx_desc_decode(
	/* -EBADMSG; the copy of p lives in a; argv.v and env.v end in NULL */
	const void *p, size_t n, struct vx_arena *a, struct vx_task_desc *ret);

/* Requests: fixed-size items of the request ring. */
enum vx_req_kind {
	VX_REQ_RUN = 1, /* run the descriptor at `offset`, `length` */
	/* send `signal` to the whole tree of `task`; SIGKILL ends it now. Ignored when that attempt
	 * is over. */
	VX_REQ_STOP = 2,
	/* make the box host, probe a sandbox around `true`, answer VX_DONE_ARMED; `signal` 1: the
	 * nested profile will do as well */
	VX_REQ_ARM = 3,
	VX_REQ_SHUTDOWN = 4, /* end everything, exit */
};

struct vx_request {
	uint32_t kind;
	uint32_t task;
	uint16_t attempt, pad0;
	int32_t signal;
	uint64_t offset; /* into the region's arena */
	uint32_t length, pad1;
};

/* Completions: fixed-size items of the completion ring. */
enum vx_done_kind {
	/* the command has been executed: the time limit counts from `start_ns` */
	VX_DONE_STARTED = 1,
	/* the attempt is over, its tree is gone, all its output is in the output ring before this
	 * was published */
	VX_DONE_EXITED = 2,
	/* verdict of VX_REQ_ARM: `end` is VX_END_EXIT with code 0 (and `flags`), or VX_END_REFUSED
	 * with the reason in `text` */
	VX_DONE_ARMED = 3,
};

enum vx_end {
	VX_END_EXIT = 1,    /* `code` */
	VX_END_SIGNAL = 2,  /* killed by `signal`, not of our sending */
	VX_END_TIMEOUT = 3, /* the time limit; `signal` is what ended it */
	VX_END_STOPPED = 4, /* we were told to stop it */
	VX_END_SPAWN = 5,   /* the command could not be started: `text` says which step and why */
	VX_END_REFUSED = 6, /* the sandbox refused before the start: `text` */
	/* the worker, the box host or the attempt's supervision died; the pool reports it as
	 * VX_POOL_LOST */
	VX_END_LOST = 7,
	VX_END_OOM = 8, /* killed for memory by its own limit */
};

enum {
	/* a leftover held a pipe open; reading was cut after VX_LEFTOVER_READ_MS */
	VX_DONE_CUT_LEFTOVER = 1,
	/* peak_bytes covers the whole tree (cgroup); else it is the largest single process */
	VX_DONE_PEAK_IS_TREE = 2,
	/* the sandbox saw a violation: the attempt failed even if the command exited 0; lines in
	 * `text` */
	VX_DONE_VIOLATION = 4,
	VX_DONE_NO_MEMORY_LIMIT = 8, /* a memory limit was asked for and could not be applied */
	/* the nested profile: the host's /proc, read-only, since no other can be had */
	VX_DONE_HOST_PROC = 16,
	VX_DONE_PLAIN =
		32, /* bubblewrap makes every mount itself, since vx may make no namespaces */
	/* no Landlock: named pipes of the host that its user may write are written */
	VX_DONE_HOST_PIPES = 64
};

#define VX_DONE_TEXT 1400

struct vx_done {
	uint32_t kind, task;
	uint16_t attempt, end;
	int32_t code, signal;
	uint32_t flags;
	uint64_t setup_ns; /* sandbox set-up, before start_ns */
	uint64_t start_ns, end_ns;
	uint64_t cpu_ns;         /* user + system of the whole tree; 0 unknown */
	uint64_t peak_bytes;     /* 0 unknown */
	char text[VX_DONE_TEXT]; /* NUL-terminated: one reason, or several lines */
};

#endif
