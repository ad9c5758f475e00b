/* Outputs against outputs, and inputs against other tasks' outputs. docs/config.md, "Errors at
 * load".
 *
 * Patterns are compared by their text (glob/globrel.h). Files of a project never reach into
 * another one: nested projects are left out of a project's files, and cache globs have no `..`. So
 * project globs meet only within a project; workspaceFiles are compared with everything. */
#include "build.h"

#include "../glob/globrel.h"

#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>

struct entry {
	uint32_t decl;
	const char *glob; /* root-relative; without `!` */
	const char *text; /* as written */
	const struct vx_strs *set;
	/* literal directories in front, joined to `set` for negations: the base */
	const char *prefix;
};

struct entries {
	struct entry *v;
	uint32_t n, cap;
};

static void push(struct entries *l, struct vx_arena *a, struct entry e)
{
	if (l->n == l->cap)
		l->v = vx_arena_grow(a, l->v, l->n, sizeof *l->v, &l->cap, 32);
	l->v[l->n++] = e;
}

static const char *based(struct builder *b, const char *base, const char *glob)
{
	return strcmp(base, ".") == 0 ? glob : vx_arena_printf(b->scratch, "%s/%s", base, glob);
}

static void collect(struct builder *b, uint32_t d, const struct vx_strs *set, const char *base,
	struct entries *out)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (*set->v[i] != '!')
			push(out, b->scratch,
				(struct entry){d, based(b, base, set->v[i]), set->v[i], set, base});
}

/* Does a `!` entry of e's own set take away all of `glob`? */
static bool subtracted(struct builder *b, const struct entry *e, const char *glob)
{
	for (uint32_t i = 0; i < e->set->n; i++)
		if (*e->set->v[i] == '!' &&
			vx_globrel_within(glob, based(b, e->prefix, e->set->v[i] + 1)))
			return true;
	return false;
}

static bool has_negation_near(struct builder *b, const struct entry *e, const char *glob)
{
	for (uint32_t i = 0; i < e->set->n; i++)
		if (*e->set->v[i] == '!' &&
			vx_globrel_meet(glob, based(b, e->prefix, e->set->v[i] + 1)))
			return true;
	return false;
}

static bool ordered(struct builder *b, uint32_t from, uint32_t to)
{
	struct idlist stack = {0};

	b->stamp++;
	idlist_push(&stack, b->scratch, from);
	while (stack.n) {
		uint32_t d = stack.v[--stack.n];
		if (d == to)
			return true;
		if (b->seen[d] == b->stamp || !b->wanted[d])
			continue;
		b->seen[d] = b->stamp;
		for (uint32_t i = 0; i < b->deps[d].n; i++)
			idlist_push(&stack, b->scratch, b->deps[d].v[i]);
	}
	return false;
}

static int outputs_meet(struct builder *b, const struct entry *x, const struct entry *y)
{
	if (!vx_globrel_meet(x->glob, y->glob))
		return 0;
	/* Only what is certain is an error: with a `!` near, they may well be disjoint. */
	if (has_negation_near(b, x, y->glob) || has_negation_near(b, y, x->glob))
		return 0;
	if (!b->ws->settings.exclusive_outputs &&
		(ordered(b, x->decl, y->decl) || ordered(b, y->decl, x->decl)))
		return 0;
	vx_err_set(b->err, -EINVAL,
		"%s: the outputs of %s (\"%.200s\") and %s (\"%.200s\") overlap",
		decl_source(b, x->decl), decl_id(b, x->decl, b->scratch), x->text,
		decl_id(b, y->decl, b->scratch), y->text);
	return vx_err_fix(b->err,
		"give each task outputs of its own, or order them by dependsOn and set rules.exclusiveOutputs to false");
}

static int input_meets(struct builder *b, const struct entry *in, const struct entry *out)
{
	if (in->decl == out->decl || !vx_globrel_meet(in->glob, out->glob) ||
		subtracted(b, in, out->glob) || subtracted(b, out, in->glob))
		return 0;
	vx_err_set(b->err, -EINVAL,
		"%s: the inputs of %s (\"%.200s\") can match what %s makes (\"%.200s\")",
		decl_source(b, in->decl), decl_id(b, in->decl, b->scratch), in->text,
		decl_id(b, out->decl, b->scratch), out->text);
	return vx_err_fix(b->err,
		"add \"!%s\" to the inputs and depend on the task's key instead, or set rules.upfrontKeys to false",
		out->text);
}

/* Thousands of globs, and long ones, are compared each with each. */
static int too_many_steps(struct builder *b, uint32_t task)
{
	if (vx_globrel_steps() - b->steps_before <= VX_MAX_GLOB_STEPS)
		return 0;
	vx_err_set(b->err, -E2BIG,
		"%s: the inputs and outputs of %s take more than %u steps to compare with those of other tasks",
		decl_source(b, task), decl_id(b, task, b->scratch), VX_MAX_GLOB_STEPS);
	return vx_err_fix(b->err, "write fewer globs, or simpler ones");
}

static int compare_inputs(struct builder *b, const struct entries *in, const struct entries *out)
{
	if (!b->ws->settings.upfront_keys)
		return 0;
	for (uint32_t i = 0; i < in->n; i++)
		for (uint32_t j = 0; j < out->n; j++) {
			int r = input_meets(b, &in->v[i], &out->v[j]);
			if (r == 0)
				r = too_many_steps(b, in->v[i].decl);
			if (r < 0)
				return r;
		}
	return 0;
}

/* All pairs of two lists, or of one with itself. */
static int compare_outputs(struct builder *b, const struct entries *x, const struct entries *y)
{
	for (uint32_t i = 0; i < x->n; i++)
		for (uint32_t j = x == y ? i + 1 : 0; j < y->n; j++) {
			int r = x->v[i].decl == y->v[j].decl ? 0
							     : outputs_meet(b, &x->v[i], &y->v[j]);
			if (r == 0)
				r = too_many_steps(b, x->v[i].decl);
			if (r < 0)
				return r;
		}
	return 0;
}

static void collect_project(
	struct builder *b, uint32_t p, const char *base, struct entries *in, struct entries *out)
{
	for (uint32_t d = b->base[p]; d < b->base[p + 1]; d++) {
		const struct vx_task_decl *t = decl_of(b, d);
		if (!t->has_cache || t->dialect == VX_DIALECT_TURBO)
			continue;
		collect(b, d, &t->cache.files, base, in);
		collect(b, d, &t->cache.out_files, base, out);
	}
}

/* `in` and `out` are room that every project uses again. */
static int check_project(struct builder *b, uint32_t p, const struct entries *ws_out,
	struct entries *in, struct entries *out)
{
	/* Among themselves relative to the project: joining the directory to thousands of patterns
	 * is most of the cost. */
	in->n = out->n = 0;
	b->steps_before = vx_globrel_steps();
	collect_project(b, p, ".", in, out);
	int r = compare_outputs(b, out, out);
	if (r == 0)
		r = compare_inputs(b, in, out);
	if (r < 0 || ws_out->n == 0)
		return r;
	in->n = out->n = 0;
	collect_project(b, p, b->ws->projects[p].dir, in, out);
	r = compare_outputs(b, out, ws_out);
	return r == 0 ? compare_inputs(b, in, ws_out) : r;
}

/* workspaceFiles as inputs against every output of the workspace: each only with the projects that
 * its literal prefix can reach. */
static int check_workspace_inputs(
	struct builder *b, const struct entries *ws_in, const struct entries *ws_out)
{
	for (uint32_t i = 0; i < ws_in->n; i++) {
		const struct entry *in = &ws_in->v[i];
		b->steps_before = vx_globrel_steps();
		for (uint32_t j = 0; j < ws_out->n; j++) {
			int r = input_meets(b, in, &ws_out->v[j]);
			if (r < 0)
				return r;
		}
		for (uint32_t d = 0; d < b->n_decls; d++) {
			const struct vx_task_decl *t = decl_of(b, d);
			const char *dir = b->ws->projects[b->owner[d]].dir;
			if (!t->has_cache || t->cache.out_files.n == 0 ||
				t->dialect == VX_DIALECT_TURBO)
				continue;
			if (strcmp(dir, ".") != 0 &&
				!vx_globrel_meet(in->glob, based(b, dir, "**")))
				continue;
			struct entries out = {0};
			collect(b, d, &t->cache.out_files, dir, &out);
			for (uint32_t k = 0; k < out.n; k++) {
				int r = input_meets(b, in, &out.v[k]);
				if (r == 0)
					r = too_many_steps(b, in->decl);
				if (r < 0)
					return r;
			}
		}
	}
	return 0;
}

int check_files(struct builder *b)
{
	struct entries ws_in = {0}, ws_out = {0}, in = {0}, out = {0};

	for (uint32_t d = 0; d < b->n_decls; d++) {
		const struct vx_task_decl *t = decl_of(b, d);
		if (!t->has_cache || t->dialect == VX_DIALECT_TURBO)
			continue;
		collect(b, d, &t->cache.workspace_files, ".", &ws_in);
		collect(b, d, &t->cache.out_workspace_files, ".", &ws_out);
	}
	b->steps_before = vx_globrel_steps();
	int r = compare_outputs(b, &ws_out, &ws_out);
	struct vx_map seen = {0}; /* projects that share their list of tasks need one look */
	for (uint32_t p = 0; p < b->ws->n_projects && r == 0; p++) {
		const struct vx_project *project = &b->ws->projects[p];
		if (project->n_tasks &&
			(ws_out.n || vx_map_put(&seen, &project->tasks, sizeof project->tasks, p)))
			r = check_project(b, p, &ws_out, &in, &out);
	}
	vx_map_free(&seen);
	if (r < 0)
		return r;
	return b->ws->settings.upfront_keys ? check_workspace_inputs(b, &ws_in, &ws_out) : 0;
}
