/* Verdicts on the machine. */
#include "availability.h"

#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The first bubblewrap with --add-seccomp-fd and --perms. */
#define BWRAP_MAJOR 0
#define BWRAP_MINOR 5

static char *read_text(const char *root, const char *path)
{
	struct vx_buf b = VX_BUF(1 << 20);
	char full[VX_MAX_PATH];

	snprintf(full, sizeof full, "%s%s", root, path);
	if (vx_read_file(AT_FDCWD, full, &b) < 0)
		vx_buf_clear(&b);
	vx_buf_addc(&b, '\n');
	return b.data;
}

static long read_number(const char *root, const char *path)
{
	char *text = read_text(root, path), *end;
	long v = strtol(text, &end, 10);

	if (end == text)
		v = -1;
	free(text);
	return v;
}

void verdict_read_facts(const char *root, struct verdict_facts *f)
{
	char *status = read_text(root, "/proc/self/status"),
	     *mounts = read_text(root, "/proc/self/mountinfo");
	const char *filter = strstr(status, "\nSeccomp:");

	*f = (struct verdict_facts){
		.max_user_namespaces = read_number(root, "/proc/sys/user/max_user_namespaces"),
		.apparmor_restricts =
			read_number(root, "/proc/sys/kernel/apparmor_restrict_unprivileged_userns"),
		.unprivileged_clone =
			read_number(root, "/proc/sys/kernel/unprivileged_userns_clone"),
		.seccomp = filter != NULL,
		.in_filter = filter && strtol(filter + strlen("\nSeccomp:"), NULL, 10) == 2,
		.in_container = strstr(mounts, " /proc/sys ") || strstr(mounts, " /proc/kcore ") ||
				strstr(mounts, " /proc/acpi "),
		.root = geteuid() == 0};
	free(status);
	free(mounts);
}

static int say(struct vx_err *err, const char *reason, const char *fix)
{
	vx_err_set(err, -ENOTSUP, "sandbox not available: %s", reason);
	return vx_err_fix(err, "%s", fix);
}

static int say_root(struct vx_err *err)
{
	return say(err,
		"root without capabilities cannot map itself into a user namespace (vx runs as root inside a sandbox or a container)",
		"run the outer one as a normal user, or give the container CAP_SETUID, CAP_SETGID and CAP_SETFCAP, and no system call filter "
		"(docker: --security-opt seccomp=unconfined)");
}

static int userns(const struct verdict_facts *f, int error, struct vx_err *err)
{
	if (f->max_user_namespaces == 0)
		return say(err, "user namespaces are switched off (user.max_user_namespaces is 0)",
			"run: sudo sysctl -w user.max_user_namespaces=15000");
	if (f->unprivileged_clone == 0 && !f->root)
		return say(err,
			"unprivileged user namespaces are switched off (kernel.unprivileged_userns_clone is 0)",
			"run: sudo sysctl -w kernel.unprivileged_userns_clone=1");
	if (f->apparmor_restricts == 1 && !f->root)
		return say(err,
			"AppArmor restricts unprivileged user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1)",
			"install bubblewrap's profile: sudo ln -s /usr/share/apparmor/extra-profiles/bwrap-userns-restrict /etc/apparmor.d/ && sudo apparmor_parser -r "
			"/etc/apparmor.d/bwrap-userns-restrict; or run: sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0");
	if (error == -ENOSPC)
		return say(err,
			"no further user namespace may be made (user.max_user_namespaces is used up, or 32 are nested)",
			"raise it: sudo sysctl -w user.max_user_namespaces=15000");
	if (f->in_filter && f->root)
		return say_root(err);
	if (f->in_filter)
		return say(err,
			"a system call filter around vx forbids user namespaces (it runs in a container or in another sandbox)",
			"docker: --security-opt seccomp=unconfined; inside a sandboxed task of vx: \"weakerWhenNested\": true in that task");
	if (error == -EINVAL || error == -ENOSYS)
		return say(err, "this kernel has no user namespaces",
			"use a kernel built with CONFIG_USER_NS");
	vx_err_set(err, -ENOTSUP, "sandbox not available: a user namespace cannot be made: %s",
		vx_strerror(error));
	return vx_err_fix(err, "allow user namespaces to the user who runs vx");
}

int verdict(const struct verdict_facts *f, enum box_step step, int error, const char *detail,
	struct vx_err *err)
{
	switch (step) {
	case BOX_STEP_BWRAP:
		return say(err, "bubblewrap (bwrap) is not on the PATH",
			"install it: sudo apt install bubblewrap");
	case BOX_STEP_MAPS:
		if (f->root && error == -EPERM)
			return say_root(err);
		return userns(f, error, err);
	case BOX_STEP_USERNS:
		return userns(f, error, err);
	case BOX_STEP_SECCOMP:
		return say(err, "this kernel has no seccomp filters",
			"use a kernel built with CONFIG_SECCOMP_FILTER");
	case BOX_STEP_MOUNTNS:
	case BOX_STEP_BASE:
		if (error == -ENOSYS)
			return say(err, "this kernel has no mount_setattr(2)",
				"use Linux 5.12 or newer");
		if ((error == -EACCES || error == -EPERM) &&
			(f->apparmor_restricts == 1 || f->in_filter))
			return userns(f, error, err);
		break;
	default:
		break;
	}
	if (!detail || !*detail)
		detail = vx_strerror(error);
	const char *plain =
		vx_starts_with(detail, "sandbox: ") ? detail + strlen("sandbox: ") : detail;
	vx_err_set(err, -ENOTSUP, "sandbox not available: %s", plain);
	return vx_err_fix(err, "allow mounts in a user namespace to the user who runs vx");
}

int verdict_bwrap_version(const char *text, struct vx_err *err)
{
	unsigned major, minor;

	if (sscanf(text, "bubblewrap %u.%u", &major, &minor) != 2)
		return say(err, "bwrap on the PATH is not bubblewrap",
			"install it: sudo apt install bubblewrap");
	if (major > BWRAP_MAJOR || minor >= BWRAP_MINOR)
		return 0;
	vx_err_set(
		err, -ENOTSUP, "sandbox not available: bubblewrap %u.%u is too old", major, minor);
	return vx_err_fix(err, "install bubblewrap %u.%u or newer", BWRAP_MAJOR, BWRAP_MINOR);
}

int verdict_bwrap_text(const struct verdict_facts *f, const char *complaint, struct vx_err *err)
{
	if (strstr(complaint, "no bubblewrap that works")) /* our own words, when it left the
							      command unconfined */
		return say(err,
			vx_starts_with(complaint, "sandbox: ") ? complaint + strlen("sandbox: ")
							       : complaint,
			"let vx find bubblewrap's own bwrap first on its PATH: sudo apt install bubblewrap");
	if (strstr(complaint, "mount proc") || strstr(complaint, "proc on /newroot/proc"))
		return say(err, VERDICT_NO_PROC " (a container that covers parts of its own)",
			"docker: --security-opt systempaths=unconfined; or \"weakerWhenNested\": true in every sandboxed task");
	if (strstr(complaint, "seccomp") || strstr(complaint, "SECCOMP"))
		return verdict(f, BOX_STEP_SECCOMP, -EINVAL, NULL, err);
	if (strstr(complaint, "Unknown option"))
		return say(err, "bubblewrap is too old", "install bubblewrap 0.5 or newer");
	if (strstr(complaint, "namespace") || strstr(complaint, "uid map") ||
		strstr(complaint, "loopback"))
		return userns(f, -EPERM, err);
	return 0;
}
