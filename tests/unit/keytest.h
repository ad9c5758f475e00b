/* A workspace and a task graph made by hand, for the tests of keys. */
#ifndef KEYTEST_H
#define KEYTEST_H

#include "vxtest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/graph.h"
#include "vx/key.h"

struct kt {
	struct vx_arena a;
	char *dir;
	struct vx_workspace ws;
	struct vx_graph g;
	struct vx_project projects[8];
	struct vx_task tasks[16];
	uint32_t topo[16];
	struct vx_keyer_opts o;
};

VXT_UNUSED static struct vx_strs kt_list(struct kt *t, const char *text)
{
	struct vx_strlist l = {0};
	char *copy = vx_arena_strdup(&t->a, text), *save = NULL;
	for (char *s = strtok_r(copy, " ", &save); s; s = strtok_r(NULL, " ", &save))
		vx_strlist_add(&l, &t->a, s);
	return vx_strlist_done(&l);
}

VXT_UNUSED static void kt_sh(struct kt *t, const char *command)
{
	char full[8192];
	const char *out;
	snprintf(full, sizeof full,
		"cd '%s' && exec 2>&1; export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1; %s",
		t->dir, command);
	int r = vxt_sh(full, &out);
	if (r)
		fail_msg("%s: %d: %s", command, r, out);
}

VXT_UNUSED static void kt_open(struct kt *t)
{
	memset(t, 0, sizeof *t);
	t->dir = vxt_tmpdir();
	t->ws.root = t->dir;
	t->ws.projects = t->projects;
	t->ws.root_project = VX_MAP_NONE;
	t->g.tasks = t->tasks;
	t->g.topo = t->topo;
	t->o.cancel_fd = -1;
	kt_sh(t, "git init -q -b main . && git config user.email a@b && git config user.name n");
}

VXT_UNUSED static void kt_close(struct kt *t)
{
	vxt_rm(t->dir);
	vx_arena_free(&t->a);
}

VXT_UNUSED static uint32_t kt_project(
	struct kt *t, const char *name, const char *dir, const char *nested)
{
	struct vx_project *p = &t->projects[t->ws.n_projects];
	p->name = name;
	p->dir = dir;
	p->nested = kt_list(t, nested);
	return t->ws.n_projects++;
}

/* A cached task when `files` is not NULL; deps are the tasks of this order's earlier numbers, as a
 * string of digits and letters. */
VXT_UNUSED static struct vx_task_decl *kt_task(struct kt *t, uint32_t project, const char *name,
	const char *files, const char *outs, const char *deps)
{
	struct vx_task *k = &t->tasks[t->g.n_tasks];
	struct vx_task_decl *d = vx_arena_alloc(&t->a, sizeof *d);
	d->name = name;
	d->has_exec = true;
	d->exec.command = "true";
	d->canonical = vx_arena_printf(&t->a, "{\"name\":\"%s\"}", name);
	d->has_cache = files != NULL;
	d->cache.files = kt_list(t, files ? files : "");
	d->cache.out_files = kt_list(t, outs ? outs : "");
	k->id = vx_arena_printf(&t->a, "%s#%s", t->projects[project].name, name);
	k->project = project;
	k->decl = d;
	uint32_t *v = vx_arena_array(&t->a, strlen(deps) + 1, sizeof *v);
	for (const char *p = deps; *p; p++)
		v[k->n_deps++] = (uint32_t)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
	k->deps = k->key_deps = v;
	k->n_key_deps = k->n_deps;
	t->topo[t->g.n_tasks] = t->g.n_tasks;
	t->g.n_tasks++;
	return d;
}

VXT_UNUSED static struct vx_keyer *kt_keyer(struct kt *t)
{
	struct vx_keyer *k = NULL;
	struct vx_err err = {0};
	if (vx_keyer_new(&t->ws, &t->g, &t->o, &k, &err) < 0)
		fail_msg("vx_keyer_new: %s", err.what);
	return k;
}

VXT_UNUSED static const struct vx_key_record *kt_compute(struct vx_keyer *k, uint32_t task)
{
	const struct vx_key_record *r = NULL;
	struct vx_err err = {0};
	if (vx_key_compute(k, task, &r, &err) < 0)
		fail_msg("vx_key_compute: %s", err.what);
	return r;
}

/* Key of a task by a fresh keyer (and of its upstream, which must have lower numbers). */
VXT_UNUSED static struct vx_digest kt_key(struct kt *t, uint32_t task)
{
	struct vx_keyer *k = kt_keyer(t);
	for (uint32_t i = 0; i < task; i++)
		kt_compute(k, i);
	struct vx_digest d = kt_compute(k, task)->key;
	vx_keyer_free(k);
	return d;
}

VXT_UNUSED static bool kt_same(struct vx_digest a, struct vx_digest b)
{
	return memcmp(&a, &b, sizeof a) == 0;
}

/* "path path" of a record's inputs. */
VXT_UNUSED static const char *kt_paths(const struct vx_key_record *r)
{
	static char text[8192];
	text[0] = '\0';
	for (uint32_t i = 0; i < r->n_inputs; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", i ? " " : "",
			r->inputs[i].path);
	return text;
}

#endif
