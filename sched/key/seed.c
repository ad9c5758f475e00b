/* Taking over keys of an earlier run. See seed.h. */
#include "seed.h"

#include "key_int.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

_Static_assert(sizeof(struct vx_fstat) == 40 && sizeof(struct vx_oid) == 33,
	"files_digest takes them whole: there is no padding in them");

struct vx_seed_state {
	const struct vx_seed *was; /* NULL none, or it does not fit */
	const uint8_t *stable;     /* of the same plan; NULL unknown */
	struct vx_seed now;
	uint8_t *digested; /* by project and kind: 0 not yet, 1 yes, 2 cannot be */
	bool changed;      /* something of `now` is not in `was` */
};

static void add_str(struct vx_sha256 *c, const char *s)
{
	vx_sha256_add(c, s, strlen(s) + 1);
}

static void fixed_digest(const struct fixed_round *f, struct vx_digest *ret)
{
	struct vx_sha256 c;
	vx_sha256_init(&c);
	for (uint32_t i = 0; i < N_FINGERPRINT; i++) {
		vx_sha256_add(&c, f->v[i].present ? "1" : "0", 1);
		vx_sha256_add(&c, &f->v[i].digest, sizeof f->v[i].digest);
	}
	vx_sha256_add(&c, &f->globals_digest, sizeof f->globals_digest);
	vx_sha256_add(&c, &f->stands_digest, sizeof f->stands_digest);
	uint32_t globals = f->n_globals;
	vx_sha256_add(&c, &globals, sizeof globals);
	vx_sha256_done(&c, ret);
}

void vx_seed_env(
	const struct vx_keyer *k, struct vx_strlist *ret_names, struct vx_arena *a, bool *ret_whole)
{
	const struct vx_task_decl *last = NULL;
	bool whole = false;
	for (uint32_t t = 0; t < k->g->n_tasks; t++) {
		const struct vx_task_decl *d = k->g->tasks[t].decl;
		for (uint32_t i = 0; d != last && i < d->cache.env.n; i++) {
			whole |= d->dialect == VX_DIALECT_TURBO &&
				 strpbrk(d->cache.env.v[i], "*!\\=");
			vx_strlist_add(ret_names, a, d->cache.env.v[i]);
		}
		last = d;
	}
	for (uint32_t i = 0; i < k->ws->settings.global_env.n; i++) {
		whole |= strpbrk(k->ws->settings.global_env.v[i], "*!\\") != NULL;
		vx_strlist_add(ret_names, a, k->ws->settings.global_env.v[i]);
	}
	vx_strlist_sort_unique(ret_names);
	*ret_whole = whole;
}

/* Every variable that some key may fold, and what else of the process it folds. A wildcard takes
 * the whole environment. */
void vx_seed_env_digest(
	struct vx_strs names, bool whole, struct vx_strs forwarded, struct vx_digest *ret)
{
	struct vx_arena a = {0};
	struct vx_sha256 c;
	struct utsname u;
	vx_sha256_init(&c);
	uname(&u);
	add_str(&c, u.sysname);
	add_str(&c, u.machine);
	for (uint32_t i = 0; i < names.n; i++) {
		const char *v = getenv(names.v[i]);
		add_str(&c, names.v[i]);
		add_str(&c, v ? "=" : "");
		add_str(&c, v ? v : "");
	}
	if (whole) {
		struct vx_strlist all = {0};
		for (char **e = environ; *e; e++)
			vx_strlist_add(&all, &a, *e);
		vx_strlist_sort_unique(&all);
		for (uint32_t i = 0; i < all.n; i++)
			add_str(&c, all.v[i]);
	}
	add_str(&c, "");
	for (uint32_t i = 0; i < forwarded.n; i++)
		add_str(&c, forwarded.v[i]);
	vx_sha256_done(&c, ret);
	vx_arena_free(&a);
}

static void env_digest(const struct vx_keyer *k, struct vx_digest *ret)
{
	struct vx_arena a = {0};
	struct vx_strlist names = {0};
	bool whole;
	vx_seed_env(k, &names, &a, &whole);
	vx_seed_env_digest(vx_strlist_done(&names), whole, k->o.forwarded, ret);
	vx_arena_free(&a);
}

void vx_seed_begin(struct vx_keyer *k)
{
	if (!k->o.snapshot)
		return;
	struct vx_seed_state *s = k->seed = vx_xcalloc(1, sizeof *s);
	uint32_t n = k->g->n_tasks, np = k->ws->n_projects;
	const struct vx_seed *was = vx_snapshot_seed(k->o.snapshot);
	s->now.keys = vx_xcalloc(n + 1, sizeof *s->now.keys);
	s->now.reusable = vx_xcalloc(n + 1, 1);
	s->now.projects = vx_xcalloc(2 * (size_t)np + 1, sizeof *s->now.projects);
	s->digested = vx_xcalloc(2 * (size_t)np + 1, 1);
	fixed_digest(k->fixed, &s->now.fixed);
	env_digest(k, &s->now.env);
	if (was)
		s->stable = was->stable;
	if (was && memcmp(&was->fixed, &s->now.fixed, sizeof was->fixed) == 0 &&
		memcmp(&was->env, &s->now.env, sizeof was->env) == 0)
		s->was = was;
	s->changed = s->was == NULL;
}

void vx_seed_free(struct vx_keyer *k)
{
	if (!k->seed)
		return;
	free(k->seed->now.keys);
	free(k->seed->now.reusable);
	free(k->seed->now.projects);
	free(k->seed->now.stable);
	free(k->seed->digested);
	free(k->seed);
}

bool vx_seed_stable(struct vx_keyer *k, uint8_t *ret)
{
	if (!k->seed || !k->seed->stable)
		return false;
	memcpy(ret, k->seed->stable, k->g->n_tasks);
	return true;
}

/* Files of a project with what identifies them. Where an id is not known yet, a stat that cannot
 * lie stands for it; there may be none. */
static bool files_digest(
	struct vx_keyer *k, uint32_t project, bool with_nested, struct vx_digest *ret)
{
	const struct vx_files *own = vx_key_own(k, project, with_nested);
	const struct vx_project *p = &k->ws->projects[project];
	struct vx_sha256 c;
	bool manifest = false;
	vx_sha256_init(&c);
	for (uint32_t i = 0; i < own->n; i++) {
		const struct vx_file *f = own->v[i];
		manifest |= p->manifest && f->mode != 0120000 && strcmp(p->manifest, f->path) == 0;
		struct {
			uint32_t mode, kind; /* kind says which of the two follows */
			union {
				struct vx_oid oid;
				struct vx_fstat st;
			} by;
		} id;
		size_t n = offsetof(__typeof__(id), by) +
			   (f->has_oid ? sizeof id.by.oid : sizeof id.by.st);
		memset(&id, 0, sizeof id);
		id.mode = f->mode;
		id.kind = f->has_oid | (uint32_t)f->tracked << 1;
		if (!f->has_oid && vx_fstat_racy(&f->st, f->looked_ns))
			return false;
		if (f->has_oid)
			id.by.oid = f->oid;
		else
			id.by.st = f->st;
		vx_sha256_add(&c, f->path, f->len + 1);
		vx_sha256_add(&c, &id, n);
	}
	vx_sha256_done(&c, ret);
	return manifest; /* else the key folds a package.json that is not among these */
}

static bool digest_of(struct vx_keyer *k, uint32_t project, bool nested, uint32_t *ret_slot)
{
	struct vx_seed_state *s = k->seed;
	uint32_t slot = 2 * project + nested;
	*ret_slot = slot;
	if (!s->digested[slot])
		s->digested[slot] =
			files_digest(k, project, nested, &s->now.projects[slot]) ? 1 : 2;
	return s->digested[slot] == 1;
}

/* Projects whose files the key folds: the task's own, then those that it passes through. False:
 * there is no digest of one. With `was`: or it is another than it was. */
static bool digests(struct vx_keyer *k, const struct vx_task *t, const struct vx_seed *was)
{
	for (uint32_t i = 0; i <= t->n_passed; i++) {
		uint32_t slot, p = i ? t->passed[i - 1] : t->project;
		bool nested = !i && t->decl->dialect == VX_DIALECT_TURBO;
		if (!digest_of(k, p, nested, &slot) ||
			(was && memcmp(&k->seed->now.projects[slot], &was->projects[slot],
					sizeof was->projects[slot]) != 0))
			return false;
	}
	return true;
}

/* Does the key fold nothing but what the digests cover? */
static bool covered(const struct vx_task *t)
{
	const struct vx_cache_decl *c = &t->decl->cache;
	if (!vx_key_takes_chosen(t->decl))
		return true;
	if (c->workspace_files.n || c->runtime.n || c->workspace_runtime.n)
		return false;
	return t->decl->dialect == VX_DIALECT_VX || (c->default_inputs && !c->files.n);
}

bool vx_seed_take(struct vx_keyer *k, uint32_t task, struct record *r)
{
	struct vx_seed_state *s = k->seed;
	const struct vx_task *t = &k->g->tasks[task];
	if (!s || !s->was || k->generation != 1 || k->o.explain || !s->was->reusable[task] ||
		!covered(t) || !digests(k, t, s->was))
		return false;
	for (uint32_t i = 0; i < t->n_key_deps; i++) {
		uint32_t u = t->key_deps[i];
		if (!k->records[u] || memcmp(&k->records[u]->pub.key, &s->was->keys[u],
					      sizeof s->was->keys[u]) != 0)
			return false;
	}
	r->pub.key = s->was->keys[task];
	s->now.keys[task] = r->pub.key;
	s->now.reusable[task] = 1;
	return true;
}

void vx_seed_note(struct vx_keyer *k, uint32_t task)
{
	struct vx_seed_state *s = k->seed;
	const struct vx_task *t = &k->g->tasks[task];
	if (!s || k->generation != 1)
		return;
	s->now.keys[task] = k->records[task]->pub.key;
	s->now.reusable[task] = !k->records[task]->links && covered(t) && digests(k, t, NULL);
	if (s->now.reusable[task])
		s->changed = true;
}

/* Whether a sandboxed task may write elsewhere was asked of the file system: such an answer is not
 * kept. */
static bool stability_is_pure(const struct vx_keyer *k)
{
	for (uint32_t t = 0; t < k->g->n_tasks; t++) {
		const struct vx_task_decl *d = k->g->tasks[t].decl;
		if (!d->has_cache && d->has_exec && d->exec.sandboxed && d->exec.sandbox.write.n)
			return false;
	}
	return k->stable != NULL;
}

int vx_seed_keep(struct vx_keyer *k, bool over)
{
	struct vx_seed_state *s = k->seed;
	if (!s || !vx_snapshot_keeps(k->o.snapshot) ||
		!(s->changed || (over && vx_snapshot_stale(k->o.snapshot))))
		return 0;
	s->changed = false;
	uint32_t n = k->g->n_tasks;
	free(s->now.stable);
	s->now.stable = NULL;
	if (stability_is_pure(k)) {
		s->now.stable = vx_xcalloc(n + 1, 1);
		memcpy(s->now.stable, k->stable, n);
	}
	return vx_snapshot_keep(k->o.snapshot, &s->now);
}

void vx_seed_copy(
	struct vx_seed *to, const struct vx_seed *from, uint32_t n_tasks, uint32_t n_projects)
{
	memcpy(to->keys, from->keys, n_tasks * sizeof *to->keys);
	memcpy(to->reusable, from->reusable, n_tasks);
	memcpy(to->projects, from->projects, 2 * (size_t)n_projects * sizeof *to->projects);
	if (to->stable && from->stable)
		memcpy(to->stable, from->stable, n_tasks);
	to->fixed = from->fixed;
	to->env = from->env;
}
