/* The end of a run: what is said last, and the files about it. */
#include "loop.h"

#include "vx/clock.h"

#include <stdio.h>
#include <stdlib.h>

static void end_trace(struct loop *l, const struct vx_run_end *e)
{
	const struct vx_run_opts *o = l->o;
	struct vx_err err = {0};
	const char *title = vx_arena_printf(&l->arena, "vx run in %s", l->plan->ws.root);
	int r = vx_trace_finish(l->trace, vx_now_ns(), e, &err);
	if (!r && o->profile_path)
		r = vx_trace_write_chrome(l->trace, o->profile_path, &err);
	if (!r && o->report_html)
		r = vx_trace_write_html(l->trace, o->report_html, title, &err);
	if (!r && o->report_markdown)
		r = vx_trace_write_markdown(l->trace, o->report_markdown, title, &err);
	if (r)
		vx_report_warn(l->report, "vx run: %s", err.what);
}

/* The longest chain of executed commands. */
static uint64_t critical_path(const struct loop *l)
{
	uint64_t *to = vx_xcalloc(l->g->n_tasks + 1, sizeof *to), most = 0;
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		uint32_t task = l->g->topo[i];
		const struct vx_task *t = &l->g->tasks[task];
		for (uint32_t k = 0; k < t->n_deps; k++)
			if (to[t->deps[k]] > to[task])
				to[task] = to[t->deps[k]];
		if (l->t[task].executed && !t->decl->exec.persistent)
			to[task] += l->t[task].end_ns - l->t[task].start_ns;
		most = to[task] > most ? to[task] : most;
	}
	free(to);
	return most;
}

static void say_not_portable(const struct loop *l)
{
	char more[48] = "";
	if (!l->not_portable)
		return;
	if (l->not_portable > 1)
		snprintf(more, sizeof more, " and %u more task%s", l->not_portable - 1,
			l->not_portable == 2 ? "" : "s");
	vx_report_warn(l->report,
		"vx run: outputs of %s%s hold the path of this workspace: what was saved of them is used here alone",
		l->g->tasks[l->not_portable_task].id, more);
}

/* Tasks whose results the next run will not find though they succeeded and are cached: whose save
 * failed, whose inputs moved, those downstream of one, and what ran less confined than it asks. */
static uint32_t count_not_saved(const struct loop *l)
{
	uint32_t n = 0;
	for (uint32_t i = 0; l->writes && l->missed && i < l->g->n_tasks; i++) {
		const struct loop_task *t = &l->t[i];
		n += t->executed && t->result == VX_R_SUCCESS && t->cache == VX_C_MISS && !t->saved;
	}
	return n;
}

void loop_finish(struct loop *l)
{
	l->not_saved = count_not_saved(l);
	say_not_portable(l);
	loop_say_empty(l);
	const char *note = l->store ? vx_store_note(l->store) : NULL;
	if (note && !l->said_note)
		vx_report_warn(l->report, "vx run: %s", note);
	uint64_t now = vx_now_ns(), saved_ns = l->writes && l->missed && now > l->last_exit_ns
						       ? now - l->last_exit_ns
						       : 0;
	struct vx_run_end e = {.code = l->code,
		.signal = l->first_signal,
		.keys_ns = l->keys_ns,
		.probe_ns = l->probe_ns,
		.dispatch_ns = l->dispatch_ns,
		.setup_ns = l->sandbox_setup_ns,
		.save_ns = saved_ns};
	struct vx_pool_stats ps = {0};
	if (l->pool)
		vx_pool_stats(l->pool, &ps);
	vx_core_counts(l->core, &e.counts);
	e.wall_ns = vx_now_ns() - l->o->start_ns;
	e.plan_ns = l->setup_ns;
	e.workers = ps.workers;
	e.up_to_date = l->up_to_date;
	e.restored = l->restored;
	e.missed = l->missed;
	e.nocache = l->nocache;
	e.not_saved = l->not_saved;
	e.saved_ns = l->saved_ns;
	e.critical_ns = critical_path(l);
	vx_report_finish(l->report, &e);
	if (l->trace)
		end_trace(l, &e);
}
