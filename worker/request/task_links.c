/* Links that a task could have written. What such a link names, the task chose: it grants nothing
 * beyond what the task that wrote it may write itself.
 *
 * A link is a task's where it lies below a write grant: one of this task, or one of another
 * sandboxed task of the workspace (vx_sbx_spec.written). A grant's own directory is a mount point
 * while its task runs, so that only what lies strictly inside counts. */
#include "resolve.h"

#include <errno.h>
#include <string.h>

static void add_written(struct sbx_work *w, const char *path)
{
	for (uint32_t i = 0; i < w->written.n; i++)
		if (vx_streq(w->written.v[i], path))
			return;
	vx_strlist_add(&w->written, w->a, path);
}

/* As it is spelled, and where that leads. */
static int written_at(struct sbx_work *w, const char *lexical)
{
	struct sbx_place p = {0};
	uint32_t before = w->n_skeleton;

	add_written(w, lexical);
	int r = sbx_follow(w, lexical, &p);
	w->n_skeleton = before;
	if (r == -ELOOP || r == -ENAMETOOLONG)
		return 0; /* refused where it is granted */
	if (r == 0)
		add_written(w, p.path);
	return r;
}

int sbx_find_written(struct sbx_work *w)
{
	struct vx_strs own = w->s->decl.write;
	int r = 0;

	for (uint32_t i = 0; i < w->s->written.n && r == 0; i++)
		r = written_at(w, vx_path_norm(w->a, w->s->written.v[i]));
	for (uint32_t i = 0; i < own.n && r == 0; i++) {
		struct sbx_grant g = {0};
		r = sbx_parse_grant(w, "allow.write", own.v[i], &g);
		if (r == 0)
			r = written_at(w, g.lexical);
	}
	return r;
}

bool sbx_leads_out(const struct sbx_work *w, const char *link, const char *target)
{
	for (uint32_t i = 0; i < w->written.n; i++)
		if (vx_path_within(link, w->written.v[i]) && !vx_streq(link, w->written.v[i]) &&
			!vx_path_within(target, w->written.v[i]))
			return true;
	return false;
}

int sbx_refuse_task_link(
	struct sbx_work *w, const char *field, const char *text, const struct sbx_place *p)
{
	if (!p->by_task)
		return 0;
	vx_err_set(w->err, -EPERM,
		"sandbox: %s \"%s\" leads through %s to %s: a sandboxed task may have written that link, so it grants nothing",
		field, text, p->by_task, p->path);
	return vx_err_fix(w->err, "grant the path that it leads to, if the task may touch it");
}
