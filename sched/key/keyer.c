/* The keyer: its life, and one task's key from beginning to end. See vx/key.h. */
#include "key_int.h"

#include "vx/limits.h"
#include "vx/path.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* What a repository brings where vx keeps its own would be believed: results above all. */
static int refuse_tracked(struct vx_keyer *k, struct vx_err *err)
{
	const char *dirs[] = {".vx", k->cache_rel};
	for (int i = 0; i < 2; i++) {
		if (!dirs[i] || (i && vx_path_within(dirs[i], ".vx")))
			continue;
		int r = vx_source_tracks_below(k->src, dirs[i], err);
		if (r < 0)
			return r;
		if (!r)
			continue;
		vx_err_set(err, -EEXIST,
			"git tracks files in %s/%s, where vx keeps its own: what a repository brings there is not believed",
			k->ws->root, dirs[i]);
		vx_err_fix(err, "run `git rm -r --cached %s`, then remove the directory", dirs[i]);
		return -EEXIST;
	}
	return 0;
}

int vx_keyer_new(const struct vx_workspace *ws, const struct vx_graph *g,
	const struct vx_keyer_opts *o, struct vx_keyer **ret, struct vx_err *err)
{
	struct vx_keyer *k = vx_xcalloc(1, sizeof *k);
	k->ws = ws;
	k->g = g;
	k->o = *o;
	k->cancel.fd = o->cancel_fd;
	if (!k->o.threads)
		k->o.threads = vx_cpus();
	pthread_mutex_init(&k->globs_lock, NULL);
	pthread_mutex_init(&k->walk.lock, NULL);
	pthread_mutex_init(&k->absent.lock, NULL);
	k->set_key = VX_BUF((size_t)1 << 30);
	k->projects = vx_xcalloc(ws->n_projects + 1, sizeof *k->projects);
	k->records = vx_xcalloc(g->n_tasks + 1, sizeof(struct record *));
	k->checked_ns = vx_xcalloc(g->n_tasks + 1, sizeof *k->checked_ns);
	k->held = vx_xcalloc(g->n_tasks + 1, sizeof(struct held *));
	k->uncached_up = vx_xcalloc(g->n_tasks + 1, 1);
	k->writes = vx_xcalloc(ws->n_projects + 1, sizeof *k->writes);
	k->generation = 1;
	vx_key_root_projects(k);
	if (o->cache_dir) {
		const char *rel = vx_path_below(o->cache_dir, ws->root);
		k->cache_rel = rel && *rel ? vx_arena_strdup(&k->a, rel) : NULL;
	}
	k->src = o->source ? o->source : vx_ahead_take(o->ahead);
	int r = o->source ? 0
		: k->src  ? vx_source_adopt(k->src, o->cancel_fd, o->memory, err)
			  : vx_source_open(
				    ws->root, k->o.threads, o->cancel_fd, o->memory, &k->src, err);
	if (r == 0)
		r = vx_source_list(k->src, "", &k->a, &k->table, err);
	if (r == 0)
		r = refuse_tracked(k, err);
	if (r == 0)
		r = vx_key_fixed_read(k, err);
	if (r < 0) {
		vx_keyer_free(k);
		return r;
	}
	vx_seed_begin(k);
	*ret = k;
	return 0;
}

void vx_keyer_cancel(struct vx_keyer *k)
{
	if (k)
		atomic_store(&k->cancel.asked, true);
}

void vx_keyer_free(struct vx_keyer *k)
{
	if (!k)
		return;
	for (uint32_t p = 0; p < k->ws->n_projects; p++) {
		vx_files_free(&k->projects[p].own[0].files);
		vx_files_free(&k->projects[p].own[1].files);
		free(k->projects[p].lists);
	}
	vx_files_free(&k->table);
	vx_map_free(&k->by_decl);
	vx_map_free(&k->by_list);
	vx_buf_free(&k->set_key);
	free(k->sets);
	vx_map_free(&k->probes);
	free(k->projects);
	free(k->records);
	free(k->checked_ns);
	free(k->held);
	free(k->uncached_up);
	free(k->writes);
	free(k->globs);
	free(k->results);
	free(k->stable);
	free(k->dirty);
	vx_map_free(&k->elsewhere);
	vx_seed_free(k);
	vx_source_close(k->src);
	pthread_mutex_destroy(&k->globs_lock);
	pthread_mutex_destroy(&k->walk.lock);
	pthread_mutex_destroy(&k->absent.lock);
	vx_arena_free(&k->walk.a);
	vx_glob_memory_free(k->walk.memory);
	vx_arena_free(&k->a);
	free(k);
}

/* An identity outlives a new listing when its file's stat says so. */
static void keep_identities(const struct vx_files *old, struct vx_files *now)
{
	for (uint32_t i = 0; i < now->n; i++) {
		struct vx_file *f = now->v[i],
			       *was = f->has_oid ? NULL : vx_files_find(old, f->path);
		if (was && was->has_oid && was->mode == f->mode &&
			vx_fstat_equal(&was->st, &f->st) &&
			!vx_fstat_racy(&was->st, was->looked_ns)) {
			f->oid = was->oid;
			f->has_oid = true;
			f->hashed = was->hashed;
		}
	}
}

static int list_anew(struct vx_keyer *k, const char *dir, struct vx_err *err)
{
	struct vx_files now = {0};
	if (vx_key_dir_is_root(dir))
		dir = "";
	int r = vx_source_list(k->src, dir, &k->a, &now, err);
	if (r == 0) {
		keep_identities(&k->table, &now);
		vx_files_splice(&k->table, dir, &now);
	}
	vx_files_free(&now);
	k->generation++;
	return r;
}

static void mark_dirty(struct vx_keyer *k, uint32_t project)
{
	if (vx_key_dir_is_root(k->ws->projects[project].dir)) {
		k->all_dirty = true;
	} else if (!k->projects[project].dirty) {
		if (k->n_dirty == k->cap_dirty) {
			k->cap_dirty = k->cap_dirty ? k->cap_dirty * 2 : 64;
			k->dirty = vx_xrealloc(k->dirty, k->cap_dirty * sizeof *k->dirty);
		}
		k->dirty[k->n_dirty++] = project;
		k->projects[project].dirty = true;
	}
}

/* Lists what commands may have changed since the table was made. */
static int freshen(struct vx_keyer *k, struct vx_err *err)
{
	int r = 0;
	if (k->n_dirty > 64 && k->n_dirty > k->ws->n_projects / 4)
		k->all_dirty = true;
	if (k->all_dirty)
		r = list_anew(k, "", err);
	for (uint32_t i = 0; i < k->n_dirty && r == 0 && !k->all_dirty; i++)
		r = list_anew(k, k->ws->projects[k->dirty[i]].dir, err);
	if (r < 0)
		return r;
	k->fixed_dirty |= k->all_dirty && k->n_root_projects;
	for (uint32_t i = 0; i < k->n_dirty; i++) {
		k->fixed_dirty |= k->projects[k->dirty[i]].in_fixed;
		k->projects[k->dirty[i]].dirty = false;
	}
	k->n_dirty = 0;
	k->all_dirty = false;
	return k->fixed_dirty ? vx_key_fixed_read(k, err) : 0;
}

const struct vx_files *vx_key_own(struct vx_keyer *k, uint32_t project, bool with_nested)
{
	struct own_files *o = &k->projects[project].own[with_nested];
	if (o->generation != k->generation) {
		o->files.n = 0;
		vx_key_own_files(k, project, with_nested, &k->table, &o->files);
		o->generation = k->generation;
	}
	return &o->files;
}

#define FILES_BETWEEN_LOOKS 256U /* at what cancels the hashing */

struct hashing {
	struct vx_keyer *k;
	struct vx_file **v;
	_Atomic int first_error;
	struct vx_file *_Atomic culprit;
};

static void hash_one(void *arg, uint32_t i)
{
	struct hashing *h = arg;
	struct vx_file *f = h->v[i];
	if (atomic_load_explicit(&h->first_error, memory_order_relaxed))
		return;
	int r = i % FILES_BETWEEN_LOOKS == 0 && vx_canceled(&h->k->cancel) ? -ECANCELED : 0;
	if (r == 0)
		r = vx_identity_take(vx_source_fd(h->k->src), f->path, vx_source_kind(h->k->src),
			vx_source_trusts_exec(h->k->src), &h->k->cancel, f);
	int zero = 0;
	if (r == -ENOENT)
		f->mode = 0; /* gone meanwhile */
	else if (r < 0 && atomic_compare_exchange_strong(&h->first_error, &zero, r))
		atomic_store(&h->culprit, f);
}

int vx_key_identify(
	struct vx_keyer *k, const char *whose, struct vx_files *chosen, struct vx_err *err)
{
	struct vx_files todo = {0};
	for (uint32_t i = 0; i < chosen->n; i++)
		if (!chosen->v[i]->has_oid && chosen->v[i]->mode)
			vx_files_add(&todo, chosen->v[i]);
	struct hashing h = {.k = k, .v = todo.v};
	if (todo.n)
		vx_parallel(todo.n, todo.n < 32 ? 1 : k->o.threads, 8, hash_one, &h);
	k->st.hashed += todo.n;
	k->st.index_ids += chosen->n - todo.n;
	vx_files_free(&todo);
	int r = atomic_load(&h.first_error);
	if (r < 0)
		return vx_identity_failed(r, whose, atomic_load(&h.culprit)->path, err);
	uint32_t w = 0;
	for (uint32_t i = 0; i < chosen->n; i++)
		if (chosen->v[i]->mode)
			chosen->v[w++] = chosen->v[i];
	chosen->n = w;
	return 0;
}

/* A literal that selects nothing is an error when git ignores it: it could never be seen. */
static int check_literals(struct vx_keyer *k, const struct vx_task *t, const struct vx_globset *set,
	const char *dir, const struct vx_strlist *empty, struct vx_err *err)
{
	if (t->decl->dialect == VX_DIALECT_TURBO)
		return 0;
	for (uint32_t i = 0; i < vx_globset_count(set); i++) {
		const char *text = vx_globset_pattern(set, i);
		if (!vx_globset_literal(set, i) || !vx_strs_has(vx_strlist_done(empty), text))
			continue;
		const char *path = vx_path_join(&k->a, dir, vx_globset_prefix(set, i));
		bool ignored = false;
		int r = vx_source_ignored(k->src, path, &ignored, err);
		if (r < 0)
			return r;
		if (ignored) {
			vx_err_set(err, -EINVAL,
				"%s: cache.inputs names \"%s\", which git ignores, so a change of it would never be seen",
				t->id, text);
			vx_err_fix(err, "take it out of the inputs, or out of .gitignore");
			return -EINVAL;
		}
	}
	return 0;
}

/* The records' input arrays: tasks of a project that chose the same files share one. */
static const struct vx_key_input *input_array(
	struct vx_keyer *k, uint32_t project, const struct vx_files *chosen)
{
	static const struct vx_key_input none[1];
	struct project_state *p = &k->projects[project];
	if (!chosen->n)
		return none;
	for (uint32_t i = 0; i < p->n_lists; i++)
		if (p->lists[i].n == chosen->n &&
			!memcmp(p->lists[i].files, chosen->v, chosen->n * sizeof chosen->v[0]))
			return p->lists[i].inputs;
	struct vx_key_input *v = vx_arena_array(&k->a, chosen->n + 1, sizeof *v);
	for (uint32_t i = 0; i < chosen->n; i++)
		vx_key_input_of(chosen->v[i], &v[i]);
	if (p->n_lists < VX_MAX_SHARED_LISTS) {
		p->lists = vx_xrealloc(p->lists, (p->n_lists + 1) * sizeof *p->lists);
		p->lists[p->n_lists++] = (struct input_list){
			vx_arena_dup(&k->a, chosen->v, chosen->n * sizeof(struct vx_file *)),
			chosen->n, v};
	}
	return v;
}

static int compute(struct vx_keyer *k, uint32_t task, struct vx_files *chosen, struct record **ret,
	struct vx_err *err)
{
	const struct vx_task *t = &k->g->tasks[task];
	const char *dir = k->ws->projects[t->project].dir;
	const struct decl_globs *dg;
	struct vx_strlist empty = {0};
	int r = vx_key_globs(k, t->decl, &dg, err);
	if (r == 0)
		r = vx_key_select(k, task, dg, &k->table,
			vx_key_own(k, t->project, t->decl->dialect == VX_DIALECT_TURBO), chosen,
			&k->a, &empty);
	if (r == -EOVERFLOW)
		return vx_err_set(err, r,
			"%s: its inputs and outputs take more than %u steps to match with the files there are (write fewer globs, or simpler ones)",
			t->id, VX_MAX_GLOB_STEPS);
	if (r == 0)
		r = vx_key_walk_turbo(k, task, dg, &k->a, chosen, err);
	if (r < 0)
		return r;
	vx_files_sort_unique(chosen);
	if (empty.n) {
		r = check_literals(k, t, dg->files, dir, &empty, err);
		if (r == 0)
			r = check_literals(k, t, dg->ws_files, ".", &empty, err);
		if (r < 0)
			return r;
	}
	r = vx_key_identify(k, t->id, chosen, err);
	if (r < 0)
		return r;
	struct record *rec = vx_arena_alloc(&k->a, sizeof *rec);
	rec->pub.task = task;
	rec->pub.inputs = input_array(k, t->project, chosen);
	rec->pub.n_inputs = chosen->n;
	rec->pub.empty_globs = vx_strlist_done(&empty);
	rec->fixed = k->fixed;
	r = vx_key_stands(k, t->passed, t->n_passed, &rec->passed, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; t->decl->dialect == VX_DIALECT_TURBO && i < chosen->n && !rec->links;
		i++)
		rec->links = (chosen->v[i]->mode & 0170000) == 0120000;
	*ret = rec;
	return vx_key_encode(k, task, rec, err);
}

int vx_key_compute(
	struct vx_keyer *k, uint32_t task, const struct vx_key_record **ret, struct vx_err *err)
{
	int r = freshen(k, err);
	if (r < 0)
		return r;
	struct vx_files chosen = {0};
	struct record taken = {.pub.task = task, .fixed = k->fixed, .thin = true}, *rec = NULL;
	if (vx_seed_take(k, task, &taken))
		rec = vx_arena_dup(&k->a, &taken, sizeof taken);
	else
		r = compute(k, task, &chosen, &rec, err);
	k->st.taken += rec && rec->thin;
	vx_files_free(&chosen);
	if (r < 0)
		return r;
	k->records[task] = rec;
	vx_key_note_uncached(k, task);
	if (!rec->thin)
		vx_seed_note(k, task);
	*ret = &rec->pub;
	return 0;
}

int vx_key_record_now(struct vx_keyer *k, uint32_t task, struct record **ret, struct vx_err *err)
{
	struct vx_files chosen = {0};
	int r = freshen(k, err);
	if (r == 0)
		r = compute(k, task, &chosen, ret, err);
	vx_files_free(&chosen);
	return r;
}

/* The key stays what it was: it has been probed, and dependents fold it. Where the files say
 * otherwise by now, the result is not to be saved. */
int vx_key_fill_one(struct vx_keyer *k, uint32_t task, struct vx_err *err)
{
	struct record *rec = k->records[task], *full = NULL;
	struct vx_files chosen = {0};
	if (!rec || !rec->thin)
		return 0;
	int r = freshen(k, err);
	if (r == 0)
		r = compute(k, task, &chosen, &full, err);
	vx_files_free(&chosen);
	if (r < 0)
		return r;
	full->moved = memcmp(&full->pub.key, &rec->pub.key, sizeof rec->pub.key) != 0;
	full->pub.key = rec->pub.key;
	*rec = *full;
	return 0;
}

int vx_key_fill(struct vx_keyer *k, uint32_t task, struct vx_err *err)
{
	int r = vx_key_fill_one(k, task, err);
	if (r == 0)
		r = vx_key_fill_groups(k, task, err);
	return r < 0 ? r : vx_key_hold_uncached(k, task, err);
}

const struct vx_key_record *vx_key_get(const struct vx_keyer *k, uint32_t task)
{
	return k->records[task] ? &k->records[task]->pub : NULL;
}

void vx_keyer_ran(struct vx_keyer *k, uint32_t task)
{
	const struct vx_task *t = &k->g->tasks[task];
	bool fingerprint = false;
	enum vx_reach reach = vx_key_reach(k, task, &fingerprint);
	k->fixed_dirty |= fingerprint;
	if (t->decl->has_cache) { /* held to its outputs */
		k->all_dirty |= t->decl->cache.out_workspace_files.n > 0;
		if (t->decl->cache.out_files.n)
			mark_dirty(k, t->project);
	} else if (reach != VX_REACH_NONE) {
		k->fixed_dirty |= k->global_set != NULL; /* it may have written such a file */
		if (reach == VX_REACH_WORKSPACE) {
			k->all_dirty = true;
			for (uint32_t p = 0; p < k->ws->n_projects; p++)
				k->writes[p]++;
		} else {
			mark_dirty(k, t->project);
			k->writes[t->project]++;
		}
	}
}

void vx_keyer_stats(const struct vx_keyer *k, struct vx_keyer_stats *ret)
{
	*ret = k->st;
	ret->gits = vx_source_gits(k->src);
	ret->lists = vx_source_lists(k->src);
	ret->source = vx_source_why(k->src);
	ret->said = vx_source_said(k->src);
}

int vx_keyer_remember(struct vx_keyer *k, bool over)
{
	int r = k->o.memory ? vx_source_remember(k->src, &k->table) : 0, q = vx_seed_keep(k, over);
	return r < 0 ? r : q;
}

bool vx_keyer_tracked(struct vx_keyer *k, const char *path)
{
	return vx_source_tracked(k->src, path);
}
