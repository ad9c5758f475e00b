#include "vx/err.h"

#include "vx/assert.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

int vx_err_set(struct vx_err *err, int code, const char *fmt, ...)
{
	vx_assert(code < 0);
	if (!err)
		return code;

	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->what, sizeof err->what, fmt, ap);
	va_end(ap);
	err->fix[0] = '\0';
	err->code = code;
	return code;
}

int vx_err_fix(struct vx_err *err, const char *fmt, ...)
{
	if (!err)
		return 0;

	va_list ap;
	va_start(ap, fmt);
	vsnprintf(err->fix, sizeof err->fix, fmt, ap);
	va_end(ap);
	return err->code;
}

void vx_err_line(const struct vx_err *err, char *ret, size_t cap)
{
	size_t fix = err->fix[0] ? strlen(err->fix) + strlen(" ()") : 0;
	int room = fix < cap ? (int)(cap - 1 - fix) : 0;

	snprintf(
		ret, cap, "%.*s%s%s%s", room, err->what, fix ? " (" : "", err->fix, fix ? ")" : "");
}

const char *vx_strerror(int err)
{
	/* strerrordesc_np returns constant strings, so it is safe with threads, which strerror is
	 * not. */
	const char *s = strerrordesc_np(err < 0 ? -err : err);

	return s ? s : "Unknown error";
}

const char *vx_signal_name(int sig)
{
	static const char names[][16] = {
		[SIGHUP] = "SIGHUP",
		[SIGINT] = "SIGINT",
		[SIGQUIT] = "SIGQUIT",
		[SIGILL] = "SIGILL",
		[SIGTRAP] = "SIGTRAP",
		[SIGABRT] = "SIGABRT",
		[SIGBUS] = "SIGBUS",
		[SIGFPE] = "SIGFPE",
		[SIGKILL] = "SIGKILL",
		[SIGUSR1] = "SIGUSR1",
		[SIGSEGV] = "SIGSEGV",
		[SIGUSR2] = "SIGUSR2",
		[SIGPIPE] = "SIGPIPE",
		[SIGALRM] = "SIGALRM",
		[SIGTERM] = "SIGTERM",
		[SIGCHLD] = "SIGCHLD",
		[SIGCONT] = "SIGCONT",
		[SIGSTOP] = "SIGSTOP",
		[SIGTSTP] = "SIGTSTP",
		[SIGTTIN] = "SIGTTIN",
		[SIGTTOU] = "SIGTTOU",
		[SIGURG] = "SIGURG",
		[SIGXCPU] = "SIGXCPU",
		[SIGXFSZ] = "SIGXFSZ",
		[SIGVTALRM] = "SIGVTALRM",
		[SIGPROF] = "SIGPROF",
		[SIGWINCH] = "SIGWINCH",
		[SIGIO] = "SIGIO",
		[SIGPWR] = "SIGPWR",
		[SIGSYS] = "SIGSYS",
#ifdef SIGSTKFLT
		[SIGSTKFLT] = "SIGSTKFLT",
#endif
	};
	static _Thread_local char other[32];

	if (sig > 0 && sig < (int)VX_ARRAY_LEN(names) && names[sig][0])
		return names[sig];
	snprintf(other, sizeof other, "signal %d", sig);
	return other;
}
