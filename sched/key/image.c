/* The image of a plan. See image.h. Every pointer of every struct is copied by name here; the sizes
 * are asserted, so that a struct that grows is met. */
#include "image.h"

#include "vx/arena.h"
#include "vx/map.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* When one of these fails: copy the new member below, then put the new size here. */
_Static_assert(sizeof(struct vx_workspace) == 288, "struct vx_workspace has changed");
/* vx_project.broken: a plan that has such a project is not kept */
_Static_assert(sizeof(struct vx_project) == 144, "struct vx_project has changed");
_Static_assert(sizeof(struct vx_task_decl) == 560, "struct vx_task_decl has changed");
_Static_assert(sizeof(struct vx_exec_decl) == 320, "struct vx_exec_decl has changed");
_Static_assert(sizeof(struct vx_cache_decl) == 144, "struct vx_cache_decl has changed");
_Static_assert(sizeof(struct vx_sbx_decl) == 192, "struct vx_sbx_decl has changed");
_Static_assert(sizeof(struct vx_task) == 88, "struct vx_task has changed");
_Static_assert(sizeof(struct vx_selection) == 48, "struct vx_selection has changed");

struct copier {
	struct vx_image *im;
	bool full;
	struct vx_map decls; /* declaration pointer -> index into copies */
	const struct vx_task_decl **copies;
	uint32_t n_copies, cap_copies;
};

static bool map_there(struct vx_image *im, size_t cap, int flags, int fd, off_t offset)
{
	void *want = (void *)(uintptr_t)VX_IMAGE_BASE; /* an address by design: see snapshot.h */
	void *p = mmap(want, cap, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED_NOREPLACE | flags,
		fd, offset);
	*im = (struct vx_image){0};
	if (p == MAP_FAILED)
		return false;
	if (p != want) { /* a kernel that does not know the flag */
		munmap(p, cap);
		return false;
	}
	*im = (struct vx_image){.base = p, .cap = cap};
	return true;
}

bool vx_image_map(struct vx_image *im, size_t cap)
{
	cap = (cap + (2U << 20) - 1) & ~(size_t)((2U << 20) - 1);
	if (!map_there(im, cap, MAP_ANONYMOUS | MAP_NORESERVE, -1, 0))
		return false;
	madvise(im->base, cap, MADV_HUGEPAGE);
	return true;
}

bool vx_image_map_file(struct vx_image *im, int fd, uint64_t offset, size_t n)
{
	return map_there(im, n, 0, fd, (off_t)offset);
}

void vx_image_unmap(struct vx_image *im)
{
	if (im->base)
		munmap(im->base, im->cap);
	*im = (struct vx_image){0};
}

static void *room(struct copier *c, size_t n)
{
	static _Alignas(16) char spill[64];
	size_t at = (c->im->used + 7) & ~(size_t)7;
	if (c->full || n > c->im->cap - at) {
		c->full = true;
		return n <= sizeof spill ? spill : NULL;
	}
	c->im->used = at + n;
	return c->im->base + at;
}

static void *put(struct copier *c, const void *p, size_t n)
{
	if (!p || !n)
		return NULL;
	void *to = room(c, n);
	if (to && !c->full)
		memcpy(to, p, n);
	return c->full ? NULL : to;
}

static const char *put_str(struct copier *c, const char *s)
{
	return s ? put(c, s, strlen(s) + 1) : NULL;
}

/* A list that is given but empty keeps a pointer: "given" is told by it. */
static struct vx_strs put_strs(struct copier *c, struct vx_strs s)
{
	if (!s.v)
		return s;
	const char **v = room(c, (s.n + 1) * sizeof *v);
	for (uint32_t i = 0; i < s.n && !c->full; i++)
		v[i] = put_str(c, s.v[i]);
	return (struct vx_strs){v, s.n};
}

static const struct vx_kv *put_kvs(struct copier *c, const struct vx_kv *kv, uint32_t n)
{
	if (!kv)
		return NULL;
	struct vx_kv *v = room(c, (n + 1) * sizeof *v);
	for (uint32_t i = 0; i < n && !c->full; i++)
		v[i] = (struct vx_kv){put_str(c, kv[i].name), put_str(c, kv[i].value)};
	return v;
}

static void fix_sandbox(struct copier *c, struct vx_sbx_decl *s)
{
	s->read = put_strs(c, s->read);
	s->write = put_strs(c, s->write);
	s->net_allow = put_strs(c, s->net_allow);
	s->net_deny = put_strs(c, s->net_deny);
	s->unix_paths = put_strs(c, s->unix_paths);
	s->bind_ports = put(c, s->bind_ports, s->n_bind_ports * sizeof *s->bind_ports);
	s->devices = put_strs(c, s->devices);
	s->protect = put_strs(c, s->protect);
	s->ignore_read = put_strs(c, s->ignore_read);
	s->ignore_write = put_strs(c, s->ignore_write);
	s->ignore_net = put_strs(c, s->ignore_net);
}

static void fix_exec(struct copier *c, struct vx_exec_decl *e)
{
	e->command = put_str(c, e->command);
	e->script = put_str(c, e->script);
	e->pre = put_str(c, e->pre);
	e->post = put_str(c, e->post);
	e->pass_through = put_strs(c, e->pass_through);
	e->define = put_kvs(c, e->define, e->n_define);
	e->secret = put_strs(c, e->secret);
	e->ready_when = put_str(c, e->ready_when);
	fix_sandbox(c, &e->sandbox);
}

static void fix_cache(struct copier *c, struct vx_cache_decl *d)
{
	d->files = put_strs(c, d->files);
	d->workspace_files = put_strs(c, d->workspace_files);
	d->env = put_strs(c, d->env);
	d->runtime = put_strs(c, d->runtime);
	d->workspace_runtime = put_strs(c, d->workspace_runtime);
	d->tasks = put_strs(c, d->tasks);
	d->out_files = put_strs(c, d->out_files);
	d->out_workspace_files = put_strs(c, d->out_workspace_files);
}

static const struct vx_task_decl *put_decl(struct copier *c, const struct vx_task_decl *d)
{
	uint32_t i = vx_map_get(&c->decls, &d, sizeof d);
	if (i != VX_MAP_NONE)
		return c->copies[i];
	struct vx_task_decl copy = *d;
	copy.name = put_str(c, d->name);
	copy.description = put_str(c, d->description);
	copy.depends_on = put_strs(c, d->depends_on);
	fix_exec(c, &copy.exec);
	fix_cache(c, &copy.cache);
	copy.with = put_strs(c, d->with);
	copy.output_logs = put_str(c, d->output_logs);
	copy.canonical = put_str(c, d->canonical);
	copy.source = put_str(c, d->source);
	const struct vx_task_decl *to = put(c, &copy, sizeof copy);
	if (c->n_copies == c->cap_copies) {
		c->cap_copies = c->cap_copies ? c->cap_copies * 2 : 256;
		c->copies = vx_xrealloc(c->copies, c->cap_copies * sizeof *c->copies);
	}
	c->copies[c->n_copies] = to;
	const struct vx_task_decl **key = room(c, sizeof *key); /* the map borrows its keys */
	if (!c->full) {
		*key = d;
		vx_map_put(&c->decls, key, sizeof *key, c->n_copies++);
	}
	return to;
}

static void fix_project(struct copier *c, struct vx_project *p)
{
	p->name = put_str(c, p->name);
	p->dir = put_str(c, p->dir);
	p->manifest = put_str(c, p->manifest);
	p->tags = put_strs(c, p->tags);
	p->scripts = put_kvs(c, p->scripts, p->n_scripts);
	p->deps = put(c, p->deps, p->n_deps * sizeof *p->deps);
	p->nested = put_strs(c, p->nested);
	p->version = put_str(c, p->version);
	p->framework_env = put_strs(c, p->framework_env);
	const struct vx_task_decl **v = room(c, (p->n_tasks + 1) * sizeof *v);
	for (uint32_t i = 0; i < p->n_tasks && !c->full; i++)
		v[i] = put_decl(c, p->tasks[i]);
	p->tasks = v;
}

static void fix_workspace(struct copier *c, struct vx_workspace *ws)
{
	struct vx_ws_settings *s = &ws->settings;
	ws->root = put_str(c, ws->root);
	ws->projects = put(c, ws->projects, ws->n_projects * sizeof *ws->projects);
	for (uint32_t i = 0; i < ws->n_projects && !c->full; i++)
		fix_project(c, &ws->projects[i]);
	ws->root_scripts = put_kvs(c, ws->root_scripts, ws->n_root_scripts);
	ws->by_name = ws->by_dir = (struct vx_map){0};
	ws->manager.version = put_str(c, ws->manager.version);
	ws->manager.shell = put_str(c, ws->manager.shell);
	ws->manager.node_options = put_str(c, ws->manager.node_options);
	s->concurrency = put_str(c, s->concurrency);
	s->cache_dir = put_str(c, s->cache_dir);
	s->retention_older_than = put_str(c, s->retention_older_than);
	s->retention_max_size = put_str(c, s->retention_max_size);
	s->affected_base = put_str(c, s->affected_base);
	s->global_files = put_strs(c, s->global_files);
	s->global_env = put_strs(c, s->global_env);
	s->global_pass_through = put_strs(c, s->global_pass_through);
	ws->members = put_strs(c, ws->members);
	ws->warnings = put_strs(c, ws->warnings);
}

static void fix_selection(struct copier *c, struct vx_selection *s)
{
	s->projects = put(c, s->projects, s->n_projects * sizeof *s->projects);
	struct vx_request_task *v = room(c, (s->n_tasks + 1) * sizeof *v);
	for (uint32_t i = 0; i < s->n_tasks && !c->full; i++)
		v[i] = (struct vx_request_task){
			.project = s->tasks[i].project, .task = put_str(c, s->tasks[i].task)};
	s->tasks = v;
	s->nothing = NULL;
	s->reasons = NULL;
}

static void fix_graph(struct copier *c, struct vx_graph *g)
{
	g->tasks = put(c, g->tasks, g->n_tasks * sizeof *g->tasks);
	for (uint32_t i = 0; i < g->n_tasks && !c->full; i++) {
		struct vx_task *t = &g->tasks[i];
		bool same = t->key_deps == t->deps && t->n_key_deps == t->n_deps;
		t->id = put_str(c, t->id);
		t->decl = put_decl(c, t->decl);
		t->deps = put(c, t->deps, t->n_deps * sizeof *t->deps);
		t->dependents = put(c, t->dependents, t->n_dependents * sizeof *t->dependents);
		t->key_deps =
			same ? t->deps : put(c, t->key_deps, t->n_key_deps * sizeof *t->key_deps);
		t->passed = put(c, t->passed, t->n_passed * sizeof *t->passed);
	}
	g->topo = put(c, g->topo, g->n_tasks * sizeof *g->topo);
}

static void fix_seed(struct copier *c, struct vx_seed *s, uint32_t n_tasks, uint32_t n_projects)
{
	s->keys = put(c, s->keys, n_tasks * sizeof *s->keys);
	s->reusable = put(c, s->reusable, n_tasks);
	s->stable = put(c, s->stable, n_tasks);
	s->projects = put(c, s->projects, 2 * (size_t)n_projects * sizeof *s->projects);
}

bool vx_image_build(struct vx_image *im, const struct vx_workspace *ws,
	const struct vx_selection *sel, const struct vx_graph *g, const struct vx_seed *seed)
{
	struct copier c = {.im = im};
	im->used = 0;
	struct vx_image_root *root = room(&c, sizeof *root);
	if (c.full)
		return false;
	memset(root, 0, sizeof *root);
	root->ws = *ws;
	root->sel = *sel;
	root->graph = *g;
	fix_workspace(&c, &root->ws);
	fix_selection(&c, &root->sel);
	fix_graph(&c, &root->graph);
	if (seed) {
		root->seed = *seed;
		root->has_seed = true;
		fix_seed(&c, &root->seed, g->n_tasks, ws->n_projects);
	}
	vx_map_free(&c.decls);
	free(c.copies);
	return !c.full;
}
