/* Attempts at getting out of a sandbox. Each runs as a sandboxed task of its own and tries one
 * thing; it must fail.
 *
 * An attempt returns HELD (the sandbox held), ESCAPED, or CANNOT (it cannot be tried here); a crash
 * counts as a broken test. What the attempts aim at stands in the environment, set by run.py: T_WS
 * the workspace, T_OUT a directory outside that the user owns, T_HOME, T_HOSTPID a process outside,
 * T_PORT a TCP port on the host's loopback, T_ABSTRACT and T_SOCK listening unix sockets, T_SHMKEY
 * a SysV segment, T_SHMNAME a file in /dev/shm. */
#ifndef ATTEMPT_H
#define ATTEMPT_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HELD = 0, ESCAPED = 1, CANNOT = 77 };

struct attempt {
	const char *name;
	int (*run)(void);
};

extern const struct attempt file_attempts[], kernel_attempts[], process_attempts[], net_attempts[],
	more_attempts[];

const char *env(const char *name);                 /* aborts when unset */
const char *in(const char *base, const char *rel); /* "$base/rel" */
int can_read(const char *path);                    /* ESCAPED when a byte can be read */
/* ESCAPED when it can be opened for writing, created, or made a directory */
int can_write(const char *path);
int cannot(const char *why);       /* CANNOT, and says why */
int cannot_call(const char *call); /* ... with errno in words */
int must_fail(long r);             /* of a system call that may never succeed */
int must_be(long r, int error);    /* ... and fails with this errno */

#endif
