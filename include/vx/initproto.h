/* What passes between the box host and vx-init, pid 1 of a sandbox. Plain data, no libc: vx-init
 * has none.
 *
 * Descriptors that vx-init is started with; the command gets 0, 1 and 2 alone:
 *   0, 1     the command's stdin and stdout
 *   2        the box host's error pipe: complaints of bubblewrap, before vx-init runs
 *   3        control, a SOCK_SEQPACKET socket: struct vx_init_msg out, struct vx_init_cmd in. A
 *            socket, since /proc/1/fd/3 of one cannot be opened.
 *   4        the payload, a sealed memfd
 *   5        vx-init's own program
 *   9        the command's stderr
 *   10       where bubblewrap made the binds itself: what must have been bound, a memfd (struct
 *            vx_init_checks); else not open
 *
 * Sequence: READY once vx-init runs and has seen that it is pid 1 of a namespace and filtered (else
 * FAILED, and nothing has run); it waits for VX_INIT_GO (the box host mounts meanwhile); STARTED
 * when the command has been executed, or FAILED; EXITED when the command has ended, everything that
 * it left has been killed and reaped, and nothing but vx-init is alive. Then vx-init exits, and the
 * namespace with it. When the control socket ends (the box host died) vx-init exits at once.
 * Commands are signals to pass on to everything inside; SIGKILL is not among them: for that the box
 * host kills vx-init itself. */
#ifndef VX_INITPROTO_H
#define VX_INITPROTO_H

#include <stdint.h>

#define VX_INIT_FD_CONTROL 3
#define VX_INIT_FD_PAYLOAD 4
#define VX_INIT_FD_SELF 5
#define VX_INIT_FD_STDERR 9
#define VX_INIT_FD_CHECKS 10

#define VX_INIT_MAGIC 0x31695876U

/* The payload begins with this; offsets are from its start. `argv` and `env` point to arrays of
 * argc + 1 and envc + 1 words: offsets of strings, then a 0. vx-init maps it privately and turns
 * the offsets into pointers where they are. */
struct vx_init_payload {
	uint32_t magic, total_bytes;
	uint32_t argc, envc;
	uint32_t argv, env; /* multiples of 8 */
	uint32_t cwd;       /* a string */
	uint32_t path;      /* where argv[0] is looked for when it has no '/': a PATH-like string */
	/* What may be opened for writing: strings, one behind the other, and an empty one at the
	 * end. A read-only mount does not stop writing to a named pipe, so that all else is
	 * refused (Landlock). 0: not to be done, an inner sandbox mounts. */
	uint32_t writable;
	uint32_t zero;
};

/* bubblewrap resolves paths again when it binds. vx-init looks before anything runs: each path must
 * be the very file that was meant. */
struct vx_init_check {
	uint64_t ino;
	uint32_t dev_major, dev_minor;
	uint32_t path; /* offset of a string, from the start of the memfd */
	uint32_t zero;
};
struct vx_init_checks {
	uint32_t magic, count;
	struct vx_init_check v[];
};

enum vx_init_kind { VX_INIT_READY = 1, VX_INIT_STARTED, VX_INIT_FAILED, VX_INIT_EXITED };
enum vx_init_step {
	VX_INIT_STEP_SETUP = 1,
	VX_INIT_STEP_PAYLOAD,
	VX_INIT_STEP_CLONE,
	VX_INIT_STEP_SESSION,
	VX_INIT_STEP_CHDIR,
	VX_INIT_STEP_EXEC,
	VX_INIT_STEP_CHECKS,
	VX_INIT_STEP_WRITABLE,
	VX_INIT_STEP_PIDNS, /* before READY: it is not pid 1 of a namespace; */
	VX_INIT_STEP_FILTER /* no filter is on, or privileges can be gained */
};

struct vx_init_msg {
	uint32_t kind;
	int32_t step, error;         /* FAILED: a step, an errno */
	int32_t status;              /* EXITED: as of wait(2); STARTED: 1 without Landlock */
	uint64_t ns;                 /* CLOCK_MONOTONIC, when it happened */
	uint64_t user_us, system_us; /* EXITED: of every process that ended inside */
	uint64_t max_rss_kib;        /* EXITED: of the largest of them */
};

#define VX_INIT_GO (-1)

struct vx_init_cmd {
	int32_t signal; /* or VX_INIT_GO, once */
};

#endif
