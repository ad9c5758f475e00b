/* Words for how a task ended. */
#include "loop.h"

#include "vx/err.h"
#include "vx/strs.h"

#include <string.h>

const char *loop_status(struct loop *l, uint32_t task, const struct vx_done *d)
{
	struct vx_arena *a = &l->arena;
	const struct vx_exec_decl *x = &l->g->tasks[task].decl->exec;
	char amount[32];
	switch ((enum vx_end)d->end) {
	case VX_END_EXIT:
		if (d->code > 128 && d->code <= 128 + 64)
			return vx_arena_printf(
				a, "exit %d, 128 + %s", d->code, vx_signal_name(d->code - 128));
		if (d->code)
			return vx_arena_printf(a, "exit %d", d->code);
		return d->flags & VX_DONE_VIOLATION ? "sandbox violation" : NULL;
	case VX_END_SIGNAL:
		return vx_arena_printf(
			a, "exit %d, 128 + %s", 128 + d->signal, vx_signal_name(d->signal));
	case VX_END_TIMEOUT:
		return "timed out";
	case VX_END_STOPPED:
		return "stopped";
	case VX_END_SPAWN:
		return vx_arena_printf(a, "could not be started: %s", d->text);
	case VX_END_REFUSED:
		return vx_arena_printf(a, "refused by the sandbox: %s",
			d->text + (vx_starts_with(d->text, "sandbox: ") ? strlen("sandbox: ") : 0));
	case VX_END_LOST:
		return vx_arena_printf(a, "lost: %s", d->text[0] ? d->text : "its worker died");
	case VX_END_OOM:
		return vx_arena_printf(a, "out of memory, limit %s",
			vx_fmt_bytes(x->memory_bytes, amount, sizeof amount));
	}
	return "ended in an unknown way";
}
