/* Errors that a user reads.
 *
 * Functions return 0 or -errno (or a count, where their header says so). One that can fail for a
 * reason a user must read takes a `struct vx_err *` as its last parameter and fills it exactly
 * once, where the failure is decided: what happened and where, and how to fix it. Callers pass it
 * up unchanged; only the command line prints it, as one line:  vx VERB: <what> (<fix>). A NULL
 * `err` is allowed everywhere and drops the text. On success the struct is untouched. Long texts
 * are cut at the array's end. Thread rule: a vx_err belongs to one thread at a time. */
#ifndef VX_ERR_H
#define VX_ERR_H

#include <stdarg.h>
#include <stddef.h>

struct vx_err {
	int code; /* the -errno that was returned with it; 0 while nothing is set */
	char what[3072];
	char fix[1024]; /* empty: no advice */
};

/* Sets code and text, clears the advice, and returns `code`, so that `return vx_err_set(err,
 * -ENOENT, "...")` reads well. `code` must be < 0. */
int vx_err_set(struct vx_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

/* Adds the advice to an error that is set; returns its code. */
int vx_err_fix(struct vx_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* "what (fix)", in `cap` bytes; where that is too little it is the reason that is cut. */
void vx_err_line(const struct vx_err *err, char *ret, size_t cap);

/* "No space left on device" and the like, for 0, errno or -errno; thread-safe, never NULL. */
const char *vx_strerror(int err);

/* "SIGKILL" for 9; "signal 77" for what has no name. */
const char *vx_signal_name(int sig);

#endif
