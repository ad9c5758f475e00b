/* Helpers for tests of planning: a workspace in a temporary directory, loaded whole or up to the
 * first error. */
#ifndef PLANTEST_H
#define PLANTEST_H

#include "vxtest.h"

#include <errno.h>

#include "vx/arena.h"
#include "vx/config.h"
#include "vx/err.h"
#include "vx/graph.h"
#include "vx/select.h"
#include "vx/workspace.h"

struct plan {
	char *dir;
	struct vx_arena a;
	struct vx_err err;
	struct vx_workspace ws;
	struct vx_selection sel;
	struct vx_graph g;
	int r;
	char text[8192]; /* of the last error: "what (fix)" */
};

VXT_UNUSED static void plan_open(struct plan *p)
{
	memset(p, 0, sizeof *p);
	p->dir = vxt_tmpdir();
}

VXT_UNUSED static void plan_close(struct plan *p)
{
	vx_map_free(&p->ws.by_name);
	vx_map_free(&p->ws.by_dir);
	vx_arena_free(&p->a);
	vxt_rm(p->dir);
}

VXT_UNUSED static int plan_load(struct plan *p)
{
	vx_map_free(&p->ws.by_name);
	vx_map_free(&p->ws.by_dir);
	memset(&p->ws, 0, sizeof p->ws);
	memset(&p->err, 0, sizeof p->err);
	p->r = vx_workspace_load(p->dir, &p->a, &p->ws, &p->err);
	if (p->r == 0)
		p->r = vx_config_load(&p->ws, &p->a, &p->err);
	if (p->r == 0)
		/* as who needs every project asks */
		p->r = vx_workspace_need_all(&p->ws, &p->err);
	snprintf(p->text, sizeof p->text, "%s (%s)", p->err.what, p->err.fix);
	if (p->r < 0)
		assert_true(p->err.code < 0 && p->err.what[0]);
	return p->r;
}

/* Words separated by blanks. A word that starts with "--filter=" is one; "--all" too. */
VXT_UNUSED static int plan_graph(struct plan *p, const char *words)
{
	struct vx_select_opts o = {.cwd = "."};
	struct vx_strlist w = {0}, f = {0};
	char *copy = vx_arena_strdup(&p->a, words), *save;

	for (char *t = strtok_r(copy, " ", &save); t; t = strtok_r(NULL, " ", &save)) {
		if (strncmp(t, "--filter=", 9) == 0)
			vx_strlist_add(&f, &p->a, t + 9);
		else if (strncmp(t, "--cwd=", 6) == 0)
			o.cwd = t + 6;
		else if (strcmp(t, "--all") == 0)
			o.all = true;
		else
			vx_strlist_add(&w, &p->a, t);
	}
	o.words = vx_strlist_done(&w);
	o.filters = vx_strlist_done(&f);
	memset(&p->err, 0, sizeof p->err);
	p->r = vx_select(&p->ws, &o, &p->a, &p->sel, &p->err);
	if (p->r == 0)
		p->r = vx_graph_build(&p->ws, &p->sel, NULL, &p->a, &p->g, &p->err);
	snprintf(p->text, sizeof p->text, "%s (%s)", p->err.what, p->err.fix);
	return p->r;
}

VXT_UNUSED static const struct vx_task *plan_task(const struct plan *p, const char *id)
{
	for (uint32_t i = 0; i < p->g.n_tasks; i++)
		if (strcmp(p->g.tasks[i].id, id) == 0)
			return &p->g.tasks[i];
	return NULL;
}

/* "a#x b#y": the ids of all tasks, or of one task's dependencies. */
VXT_UNUSED static const char *plan_ids(const struct plan *p, const char *of)
{
	static char out[16384];
	const struct vx_task *t = of ? plan_task(p, of) : NULL;
	size_t n = 0;

	out[0] = '\0';
	assert_true(!of || t);
	for (uint32_t i = 0; i < (t ? t->n_deps : p->g.n_tasks); i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? " " : "",
			p->g.tasks[t ? t->deps[i] : i].id);
	return out;
}

VXT_UNUSED static const char *plan_selected(const struct plan *p)
{
	static char out[16384];
	size_t n = 0;

	out[0] = '\0';
	for (uint32_t i = 0; i < p->sel.n_projects; i++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? " " : "",
			p->ws.projects[p->sel.projects[i]].name);
	return out;
}

VXT_UNUSED static const char *plan_edges(const struct plan *p, const char *name)
{
	static char out[4096];
	uint32_t i = vx_map_gets(&p->ws.by_name, name);
	size_t n = 0;

	assert_int_not_equal(i, VX_MAP_NONE);
	out[0] = '\0';
	for (uint32_t k = 0; k < p->ws.projects[i].n_deps; k++)
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? " " : "",
			p->ws.projects[p->ws.projects[i].deps[k]].name);
	return out;
}

/* The message holds every one of the NULL-terminated pieces. */
VXT_UNUSED static void plan_says(const struct plan *p, ...)
{
	va_list ap;
	const char *piece;

	assert_true(p->r < 0);
	va_start(ap, p);
	while ((piece = va_arg(ap, const char *)))
		if (!strstr(p->text, piece))
			fail_msg("expected \"%s\" in: %s", piece, p->text);
	va_end(ap);
	assert_null(strchr(p->text, '\n'));
}

#endif
