/* Projects that stand in keys with their files, though no task of theirs is run: those that a
 * `^name` passes through (struct vx_task, passed), and under a turbo.json those that the root
 * depends on. They stand there as a task without cache does: with every file.
 *
 * No save of a task of theirs ever checks these files, so the save of each task whose key holds
 * them does: vx_key_upstream_moved. One check serves every save that waited for it. */
#include "key_int.h"
#include "../worktree/scan.h"

#include "vx/clock.h"
#include "vx/path.h"

#include <endian.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* As in Turborepo, packages inside of one are among its files. */
static bool with_nested(const struct vx_keyer *k)
{
	return k->ws->settings.turbo;
}

static bool same_files(const struct stand *s, const struct vx_files *now)
{
	if (!s || s->n != now->n)
		return false;
	for (uint32_t i = 0; i < s->n; i++) {
		const struct vx_key_input *x = &s->v[i];
		const struct vx_file *f = now->v[i];
		if (x->mode != f->mode || memcmp(&x->oid, &f->oid, sizeof x->oid) != 0 ||
			strcmp(x->path, f->path) != 0 || x->ino != f->st.ino ||
			x->ctime_ns != f->st.ctime_ns || x->mtime_ns != f->st.mtime_ns)
			return false;
	}
	return true;
}

static struct stand *stand_of(struct vx_keyer *k, uint32_t project, const struct vx_files *files)
{
	struct stand *s = vx_arena_alloc(&k->a, sizeof *s);
	struct vx_key_input *v = vx_arena_array(&k->a, files->n + 1, sizeof *v);
	struct vx_sha256 h;
	vx_sha256_init(&h);
	for (uint32_t i = 0; i < files->n; i++) {
		vx_key_input_of(files->v[i], &v[i]);
		uint32_t mode = htole32(v[i].mode);
		vx_sha256_add(&h, v[i].path, strlen(v[i].path) + 1);
		vx_sha256_add(&h, &mode, sizeof mode);
		vx_sha256_add(&h, v[i].oid.b, v[i].oid.n);
	}
	vx_sha256_done(&h, &s->digest);
	s->project = project;
	s->checked_ns = vx_arena_alloc(&k->a, sizeof *s->checked_ns);
	atomic_init(s->checked_ns, 0);
	s->v = v;
	s->n = files->n;
	return s;
}

int vx_key_stand(struct vx_keyer *k, uint32_t project, const struct stand **ret, struct vx_err *err)
{
	struct project_state *p = &k->projects[project];
	if (!p->stand || p->stand_generation != k->generation) {
		const struct vx_files *own = vx_key_own(k, project, with_nested(k));
		struct vx_files files = {0};
		for (uint32_t i = 0; i < own->n; i++)
			vx_files_add(&files, own->v[i]);
		int r = vx_key_identify(k, k->ws->projects[project].name, &files, err);
		if (r == 0 && !same_files(p->stand, &files))
			p->stand = stand_of(k, project, &files);
		vx_files_free(&files);
		if (r < 0)
			return r;
		p->stand_generation = k->generation;
	}
	*ret = p->stand;
	return 0;
}

int vx_key_stands(struct vx_keyer *k, const uint32_t *projects, uint32_t n,
	const struct stand *const **ret, struct vx_err *err)
{
	const struct stand **v = n ? vx_arena_array(&k->a, n, sizeof *v) : NULL;
	int r = 0;
	for (uint32_t i = 0; i < n && r == 0; i++)
		r = vx_key_stand(k, projects[i], &v[i], err);
	*ret = v;
	return r;
}

/* Everything that the root of a turbo.json depends on, through others too: Turborepo has the direct
 * ones in every hash; what those build on is read with them. */
void vx_key_root_projects(struct vx_keyer *k)
{
	const struct vx_workspace *ws = k->ws;
	uint32_t root = ws->root_project, depth = 0;
	if (!ws->settings.turbo || root == VX_MAP_NONE || !ws->projects[root].n_deps)
		return;
	bool *seen = vx_xcalloc(ws->n_projects, sizeof *seen);
	uint32_t *stack = vx_xcalloc(ws->n_projects, sizeof *stack);
	seen[root] = true;
	stack[depth++] = root;
	while (depth) {
		const struct vx_project *p = &ws->projects[stack[--depth]];
		for (uint32_t i = 0; i < p->n_deps; i++)
			if (!seen[p->deps[i]]) {
				seen[p->deps[i]] = true;
				stack[depth++] = p->deps[i];
			}
	}
	k->root_projects = vx_arena_array(&k->a, ws->n_projects, sizeof *k->root_projects);
	for (uint32_t p = 0; p < ws->n_projects; p++)
		if (seen[p] && p != root)
			k->root_projects[k->n_root_projects++] = p;
	for (uint32_t i = 0; i < k->n_root_projects; i++)
		for (uint32_t p = 0; p < ws->n_projects; p++)
			k->projects[p].in_fixed |= vx_path_within(
				ws->projects[p].dir, ws->projects[k->root_projects[i]].dir);
	free(seen);
	free(stack);
}

static int list_now(
	struct vx_keyer *k, const struct stand *s, struct vx_arena *a, struct vx_files *ret)
{
	struct vx_files table = {0};
	int r = vx_source_list(k->src, k->ws->projects[s->project].dir, a, &table, NULL);
	if (r == 0) {
		vx_files_sort_unique(&table);
		vx_key_own_files(k, s->project, with_nested(k), &table, ret);
	}
	vx_files_free(&table);
	return r;
}

int vx_key_stand_moved(
	struct vx_keyer *k, const struct stand *s, uint64_t since_ns, char *ret_what, size_t cap)
{
	if (atomic_load(s->checked_ns) >= since_ns)
		return 0;
	struct vx_arena a = {0};
	struct vx_files now = {0};
	struct watched w = {s->v, s->n, k->ws->settings.turbo ? LOOK_BYTES : LOOK_STAT, false};
	uint64_t start_ns = vx_now_ns(), wall_ns = vx_wall_ns();
	int r;
	if (vx_source_same(k->src, k->ws->projects[s->project].dir) == VX_SAME) {
		r = vx_key_each_moved(k, &w, ret_what, cap);
	} else {
		r = list_now(k, s, &a, &now);
		if (r == 0)
			r = vx_key_list_moved(k, &w, &now, wall_ns, ret_what, cap);
	}
	if (r == 0)
		atomic_store(s->checked_ns, start_ns);
	vx_files_free(&now);
	vx_arena_free(&a);
	return r;
}

struct upstream_walk {
	struct vx_keyer *k;
	uint64_t since_ns;
	uint8_t *seen; /* by task */
	uint32_t *stack, depth;
	char *what;
	size_t cap;
};

static int stands_moved(struct upstream_walk *w, const struct record *r, uint32_t n)
{
	int res = 0;
	for (uint32_t i = 0; i < n && res == 0; i++)
		res = vx_key_stand_moved(w->k, r->passed[i], w->since_ns, w->what, w->cap);
	return res;
}

/* A task that runs nothing answers for no file by a save of its own. */
static int group_moved(struct upstream_walk *w, uint32_t task)
{
	struct vx_keyer *k = w->k;
	const struct record *r = k->records[task];
	int res = 0;
	if (!r || r->thin)
		return -ENODATA;
	if (atomic_load(&k->checked_ns[task]) < w->since_ns) {
		uint64_t start_ns = vx_now_ns();
		res = vx_key_files_moved(k, r, w->what, w->cap);
		if (res == 0)
			atomic_store(&k->checked_ns[task], start_ns);
	}
	return res ? res : stands_moved(w, r, k->g->tasks[task].n_passed);
}

static void push_groups(struct upstream_walk *w, const struct vx_task *t)
{
	for (uint32_t i = 0; i < t->n_key_deps; i++) {
		uint32_t u = t->key_deps[i];
		if (!w->k->g->tasks[u].decl->has_exec && !w->seen[u]) {
			w->seen[u] = 1;
			w->stack[w->depth++] = u;
		}
	}
}

static bool has_groups(const struct vx_keyer *k, const struct vx_task *t)
{
	for (uint32_t i = 0; i < t->n_key_deps; i++)
		if (!k->g->tasks[t->key_deps[i]].decl->has_exec)
			return true;
	return false;
}

int vx_key_upstream_moved(
	struct vx_keyer *k, const struct record *r, uint64_t since_ns, char *ret_what, size_t cap)
{
	const struct vx_task *t = &k->g->tasks[r->pub.task];
	struct upstream_walk w = {.k = k, .since_ns = since_ns, .what = ret_what, .cap = cap};
	int res = stands_moved(&w, r, t->n_passed);
	if (res || !has_groups(k, t))
		return res;
	w.seen = vx_xcalloc(k->g->n_tasks, 1);
	w.stack = vx_xcalloc(k->g->n_tasks, sizeof *w.stack);
	push_groups(&w, t);
	while (w.depth && res == 0) {
		uint32_t u = w.stack[--w.depth];
		res = group_moved(&w, u);
		push_groups(&w, &k->g->tasks[u]);
	}
	free(w.seen);
	free(w.stack);
	return res;
}

/* The groups that a key holds, as vx_key_upstream_moved will walk them. Without recursion: a chain
 * may be as long as the graph. */
int vx_key_fill_groups(struct vx_keyer *k, uint32_t task, struct vx_err *err)
{
	struct upstream_walk w = {.k = k};
	const struct vx_task *t = &k->g->tasks[task];
	int r = 0;
	if (!has_groups(k, t))
		return 0;
	w.seen = vx_xcalloc(k->g->n_tasks, 1);
	w.stack = vx_xcalloc(k->g->n_tasks, sizeof *w.stack);
	push_groups(&w, t);
	while (w.depth && r == 0) {
		uint32_t u = w.stack[--w.depth];
		r = vx_key_fill_one(k, u, err);
		push_groups(&w, &k->g->tasks[u]);
	}
	free(w.seen);
	free(w.stack);
	return r;
}
