/* The system calls that a sandboxed command may not make. The only file that includes libseccomp is
 * seccomp.c.
 *
 * Two programs, both installed (the stricter answer wins): the rules, made by libseccomp for this
 * machine's architectures (x86-64 with its i386 and x32 entry points; arm64 with 32-bit arm), and
 * one of our own that answers ENOSYS to every number above the last that libseccomp knows, so that
 * a call newer than the rules is no way around them. */
#ifndef VX_BOX_SECCOMP_H
#define VX_BOX_SECCOMP_H

#include <stdbool.h>
#include <stdint.h>

enum box_arch { BOX_ARCH_NATIVE, BOX_ARCH_X86_64, BOX_ARCH_ARM64 };

struct box_seccomp {
	bool no_unix; /* socket(AF_UNIX) is refused; socketpair stays */
	/* the command has no network: socket families that know no network namespace are refused
	 * too */
	bool no_net;
	bool nesting; /* mount calls and namespaces are left to an inner sandbox */
};

/* Writes the program, an array of struct sock_filter, to fd. */
int box_seccomp_rules(enum box_arch arch, struct box_seccomp o, int fd);
int box_seccomp_newer(enum box_arch arch, int fd);

#endif
