#include "internal.h"

#include "vx/assert.h"
#include "vx/err.h"

#include <stdio.h>
#include <string.h>

static void part(struct vx_report *r, bool *first, const char *sgr, uint64_t n, const char *what)
{
	if (!n)
		return;
	if (!*first)
		text(r, ", ");
	*first = false;
	if (sgr)
		paint(r, sgr, "%llu %s", (unsigned long long)n, what);
	else
		text(r, "%llu %s", (unsigned long long)n, what);
}

static void label(struct vx_report *r, const char *what)
{
	paint(r, DIM, "%-9s", what);
}

static void tasks_line(struct vx_report *r, const struct vx_run_end *e)
{
	const struct vx_core_counts *c = &e->counts;
	/* a task may fail without having been executed: its key could not be made */
	uint32_t bad = c->failed - (c->failed < r->n_unrun ? c->failed : r->n_unrun),
		 ok = c->executed + c->hits > bad ? c->executed + c->hits - bad : 0;
	bool first = true;

	label(r, "tasks");
	part(r, &first, ok ? GREEN : NULL, ok, "ok");
	part(r, &first, RED, c->failed, "failed");
	part(r, &first, YELLOW, c->skipped, "skipped");
	if (first)
		text(r, "none run");
	text(r, " of %u in %u project%s\n", r->o.n_tasks, r->o.n_projects,
		r->o.n_projects == 1 ? "" : "s");
}

/* In a long log, that of CI above all, the frames of failures are far away: here is what to search
 * for. */
static void failed_line(struct vx_report *r)
{
	if (!r->n_failed || r->o.n_tasks < 2)
		return;
	label(r, "failed");
	for (uint32_t k = 0; k < r->n_failed && k < VX_ARRAY_LEN(r->failed); k++)
		text(r, "%s%.200s", k ? ", " : "", r->failed[k]);
	if (r->n_failed > VX_ARRAY_LEN(r->failed))
		text(r, " and %u more", r->n_failed - (uint32_t)VX_ARRAY_LEN(r->failed));
	text(r, "\n");
}

static void cache_line(struct vx_report *r, const struct vx_run_end *e)
{
	bool first = true;
	char saved[32];

	if (!(e->missed + e->up_to_date + e->restored + e->nocache))
		return;
	label(r, "cache");
	part(r, &first, NULL, e->missed, "miss");
	part(r, &first, NULL, e->up_to_date, "up to date");
	part(r, &first, NULL, e->restored, "restored");
	part(r, &first, NULL, e->nocache, "no-cache");
	part(r, &first, YELLOW, e->not_saved, "not saved");
	if (e->saved_ns)
		text(r, "; saved %s", vx_fmt_ns(e->saved_ns, saved, sizeof saved));
	text(r, "\n");
}

/* The ideal schedule: no shorter than its longest path, nor than all its work spread evenly over
 * the slots. */
static void time_line(struct vx_report *r, const struct vx_run_end *e)
{
	char a[32], b[32], c[32];
	uint64_t spread = r->o.slots ? r->work_ns / r->o.slots : 0,
		 ideal = e->critical_ns > spread ? e->critical_ns : spread;

	label(r, "time");
	text(r, "%s", vx_fmt_ns(e->wall_ns, a, sizeof a));
	if (e->workers)
		text(r, " with %u worker%s", e->workers, e->workers == 1 ? "" : "s");
	if (e->critical_ns)
		text(r, "; critical path %s, ideal schedule %s",
			vx_fmt_ns(e->critical_ns, b, sizeof b), vx_fmt_ns(ideal, c, sizeof c));
	text(r, "\n");
}

static void overhead_line(struct vx_report *r, const struct vx_run_end *e)
{
	const struct {
		const char *name;
		uint64_t ns;
	} parts[] = {{"plan", e->plan_ns}, {"keys", e->keys_ns}, {"probe", e->probe_ns},
		{"dispatch", e->dispatch_ns}, {"sandbox", e->setup_ns}, {"save", e->save_ns}};
	const char *comma = "";
	char t[32];

	label(r, "overhead");
	for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
		if (!parts[k].ns)
			continue;
		text(r, "%s%s %s", comma, parts[k].name, vx_fmt_ns(parts[k].ns, t, sizeof t));
		comma = ", ";
	}
	text(r, "%s\n", *comma ? "" : "none");
}

void footer_write(struct vx_report *r, const struct vx_run_end *e)
{
	if (!piece(r, 16384))
		return;
	if (r->out.left_out_bytes)
		text(r, "[vx: %llu bytes of output were left out: they were not read in time]\n",
			(unsigned long long)r->out.left_out_bytes);
	text(r, "\n");
	if (e->signal) {
		label(r, "ended");
		paint(r, RED, "interrupted by %s", vx_signal_name(e->signal));
		text(r, "\n");
	}
	tasks_line(r, e);
	failed_line(r);
	cache_line(r, e);
	time_line(r, e);
	overhead_line(r, e);
	if (e->log_hint) {
		label(r, "log");
		text(r, "%s\n", e->log_hint);
	}
}
