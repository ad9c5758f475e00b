/* Why a sandbox cannot be had here, told apart, each with its fix. */
#ifndef VX_AVAILABILITY_H
#define VX_AVAILABILITY_H

#include "wire.h"

struct vx_err;

/* What the machine says, read from files below `root` ("/" but in tests): sysctls, AppArmor, the
 * kernel. */
struct verdict_facts {
	long max_user_namespaces; /* -1 unknown */
	long apparmor_restricts;  /* kernel.apparmor_restrict_unprivileged_userns; -1 unknown */
	/* kernel.unprivileged_userns_clone (Debian's patch); -1 unknown */
	long unprivileged_clone;
	bool seccomp;      /* the kernel has filters */
	bool in_filter;    /* a seccomp filter is on us: inside another sandbox */
	bool in_container; /* /proc is covered in part */
	bool root;
};
void verdict_read_facts(const char *root, struct verdict_facts *ret);

/* for which alone the nested profile stands in */
#define VERDICT_NO_PROC "no /proc can be mounted here"

/* One line in the form "sandbox not available: REASON", and its fix. Returns -ENOTSUP. */
int verdict(const struct verdict_facts *f, enum box_step step, int error, const char *detail,
	struct vx_err *err);
/* Of "bubblewrap X.Y.Z": 0, or -ENOTSUP with the line. */
int verdict_bwrap_version(const char *text, struct vx_err *err);
/* What bubblewrap's own complaint means: -ENOTSUP with the line, or 0 when it says nothing about
 * the machine. */
int verdict_bwrap_text(const struct verdict_facts *f, const char *complaint, struct vx_err *err);

#endif
