/* Entries of the inputs that select nothing: said when the run is over, once for each entry,
 * however many tasks have it. */
#include "loop.h"

#include <stdlib.h>
#include <string.h>

#define SAY_AT_MOST 8U    /* lines */
#define LOOK_AT_MOST 200U /* entries: each look walks the disk */

struct said {
	const char *glob;
	bool workspace;
	enum vx_key_empty why;
	uint32_t first[2], n; /* tasks */
};

struct saying {
	struct said *v;
	uint32_t n, cap, looks, not_looked;
	struct vx_map by_entry;
};

static void note(struct loop *l, struct saying *s, uint32_t task, bool workspace, const char *glob)
{
	if (s->looks == LOOK_AT_MOST) {
		s->not_looked++;
		return;
	}
	s->looks++;
	struct said x = {.glob = glob,
		.workspace = workspace,
		.why = vx_key_why_empty(l->keyer, task, workspace, glob),
		.first = {task},
		.n = 1};
	if (x.why == VX_EMPTY_MEANT)
		return;
	const char *name = vx_arena_printf(&l->arena, "%d%d%s", x.why, workspace, glob);
	uint32_t at = vx_map_gets(&s->by_entry, name);
	if (at != VX_MAP_NONE) {
		if (s->v[at].n == 1)
			s->v[at].first[1] = task;
		s->v[at].n++;
		return;
	}
	if (s->n == s->cap) {
		s->cap = s->cap ? 2 * s->cap : 8;
		s->v = vx_xrealloc(s->v, s->cap * sizeof *s->v);
	}
	vx_map_puts(&s->by_entry, name, s->n);
	s->v[s->n++] = x;
}

static void note_task(struct loop *l, struct saying *s, uint32_t task)
{
	const struct vx_task_decl *d = l->g->tasks[task].decl;
	const struct vx_key_record *r = l->t[task].keyed ? vx_key_get(l->keyer, task) : NULL;
	if (!r || !l->t[task].executed || l->t[task].cache != VX_C_MISS || d->cache.default_inputs)
		/* beside Turborepo's default, names of files that some packages have are the
		 * custom */
		return;
	for (uint32_t i = 0; i < r->empty_globs.n; i++) {
		const char *glob = r->empty_globs.v[i];
		if (vx_strs_has(d->cache.files, glob))
			note(l, s, task, false, glob);
		if (vx_strs_has(d->cache.workspace_files, glob))
			note(l, s, task, true, glob);
	}
}

static void say(struct loop *l, const struct said *s)
{
	const struct vx_task *t = &l->g->tasks[s->first[0]];
	const char *dir = l->plan->ws.projects[t->project].dir,
		   *file = t->decl->source ? t->decl->source : "vx.json", *tasks = t->id;
	if (t->decl->in_project && !vx_streq(dir, "."))
		file = vx_arena_printf(&l->arena, "%s/%s", dir, file);
	if (s->n > 1)
		tasks = vx_arena_printf(&l->arena, s->n > 2 ? "%s, %s" : "%s and %s", t->id,
			l->g->tasks[s->first[1]].id);
	if (s->n > 2)
		tasks = vx_arena_printf(
			&l->arena, "%s and %u more task%s", tasks, s->n - 2, s->n == 3 ? "" : "s");
	const char *field = t->decl->dialect == VX_DIALECT_TURBO ? "inputs"
			    : s->workspace                       ? "cache.inputs.workspaceFiles"
								 : "cache.inputs.files";
	if (s->why == VX_EMPTY_IGNORED)
		vx_report_warn(l->report,
			"vx run: %s: \"%s\" in %s of %s matches only files that git ignores, so a change of them is never seen (take it out of the "
			"inputs, or them out of .gitignore)",
			file, s->glob, field, tasks);
	else
		vx_report_warn(l->report,
			"vx run: %s: \"%s\" in %s of %s selects no file (correct it, or take it out)",
			file, s->glob, field, tasks);
}

void loop_say_empty(struct loop *l)
{
	struct saying s = {0};
	for (uint32_t i = 0; i < l->g->n_tasks && l->keyer && l->missed; i++)
		note_task(l, &s, l->g->topo[i]);
	for (uint32_t i = 0; i < s.n && i < SAY_AT_MOST; i++)
		say(l, &s.v[i]);
	if (s.n > SAY_AT_MOST)
		vx_report_warn(l->report, "vx run: and %u more entries of inputs select no file",
			s.n - SAY_AT_MOST);
	if (s.not_looked)
		vx_report_warn(l->report,
			"vx run: %u more entries of inputs matched nothing, and were not looked into",
			s.not_looked);
	vx_map_free(&s.by_entry);
	free(s.v);
}
