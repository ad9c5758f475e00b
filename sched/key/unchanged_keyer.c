/* What a plan and its keys came from, as facts of a memory. See vx/unchanged.h. */
#include "key_int.h"
#include "unchanged_int.h"

#include "vx/path.h"

#include <string.h>

/* What turbo's inputs name is looked for on the disk, ignored by git or not; what they take out is
 * not. */
static bool names_any(struct vx_strs list)
{
	for (uint32_t i = 0; i < list.n; i++)
		if (list.v[i][0] != '!')
			return true;
	return false;
}

/* Does every key fold nothing but the table of files, the plan, the fixed files and the
 * environment? */
static bool keys_are_plain(const struct vx_keyer *k)
{
	if (k->generation != 1 || (k->ws->settings.turbo && k->ws->settings.global_files.n))
		return false;
	for (uint32_t t = 0; t < k->g->n_tasks; t++) {
		const struct vx_task_decl *d = k->g->tasks[t].decl;
		if (!vx_key_takes_chosen(d))
			continue;
		if (k->records[t] && k->records[t]->links)
			return false;
		if (d->cache.runtime.n || d->cache.workspace_runtime.n ||
			(d->dialect == VX_DIALECT_TURBO &&
				(names_any(d->cache.files) || names_any(d->cache.workspace_files))))
			return false;
	}
	return true;
}

struct collect {
	struct vx_unchanged *u;
	struct vx_keyer *k;
};

static bool same_file(const struct vx_seen_stat *a, const struct vx_fstat *b)
{
	return a->ino == b->ino && a->dev == b->dev && a->size == b->size &&
	       (uint64_t)a->mtime_s * 1000000000U + a->mtime_ns == b->mtime_ns &&
	       (uint64_t)a->ctime_s * 1000000000U + a->ctime_ns == b->ctime_ns;
}

/* Is a fact of the plan said already by the directories and files that are known? */
static bool implied(const struct collect *c, const struct vx_fact *f)
{
	const char *rel = vx_path_below(vx_fact_path(f), c->u->root);
	if (!rel)
		return false;
	const char *slash = strrchr(rel, '/');
	const struct item *d;
	const struct vx_file *file;
	switch (f->kind) {
	case VX_SEEN_ABSENT:
		return *rel && vx_unchanged_known_dir(c->u, rel, slash ? (size_t)(slash - rel) : 0);
	case VX_SEEN_DIR:
	case VX_SEEN_NAMES: /* one that has not moved since its names were looked at */
		d = vx_unchanged_known_dir(c->u, rel, strlen(rel));
		return d && same_file(&f->st, &(struct vx_fstat){f->st.size, d->st.mtime_ns,
						      d->st.ctime_ns, d->st.ino, c->u->dev});
	case VX_SEEN_FILE:
		file = vx_files_find(&c->k->table, rel);
		return file && file->mode != 0120000 && same_file(&f->st, &file->st);
	default:
		return false;
	}
}

static bool plan_fact(void *arg, const struct vx_fact *f)
{
	struct collect *c = arg;
	if (!implied(c, f))
		vx_unchanged_fact(c->u, &(struct vx_seen){.path = vx_fact_path(f),
						.target = vx_fact_path(f) + f->path_len + 1,
						.kind = f->kind,
						.names = f->names,
						.st = f->st});
	return true;
}

static bool add_files(struct vx_unchanged *u, const struct vx_files *table)
{
	for (uint32_t i = 0; i < table->n; i++) {
		const struct vx_file *f = table->v[i];
		if (!f->mode || f->st.dev != u->dev || vx_fstat_racy(&f->st, f->looked_ns))
			return false;
		vx_unchanged_item(u, f->path, false,
			&(struct vx_unchanged_stat){.ino = f->st.ino,
				.size = f->st.size,
				.mtime_ns = f->st.mtime_ns,
				.ctime_ns = f->st.ctime_ns});
	}
	return true;
}

static void list_directory(void *self, const char *path, const struct vx_fstat *st)
{
	vx_unchanged_item(self, path, true,
		&(struct vx_unchanged_stat){
			.ino = st->ino, .mtime_ns = st->mtime_ns, .ctime_ns = st->ctime_ns});
}

static void list_look(void *self, const char *path)
{
	vx_unchanged_look(self, path);
}

static void list_outside(void *self, const char *path)
{
	vx_unchanged_outside(self, path);
}

bool vx_unchanged_keyer(struct vx_unchanged *u, struct vx_keyer *k)
{
	struct collect c = {u, k};
	const struct vx_list_facts list = {u, u->dev, list_directory, list_look, list_outside};
	if (u->broken || !k->o.snapshot || !vx_snapshot_keeps(k->o.snapshot) || !keys_are_plain(k))
		return false;
	if (!vx_source_facts(k->src, &list) || !add_files(u, &k->table) ||
		!vx_snapshot_each_fact(k->o.snapshot, plan_fact, &c))
		return false;
	for (uint32_t i = 0; i < N_FINGERPRINT; i++)
		if (k->fixed->v[i].present)
			vx_unchanged_outside(u,
				vx_arena_printf(&u->a, "%s/%s", u->root, vx_fingerprint_names[i]));
	vx_seed_env(k, &u->env, &u->a, &u->whole_env);
	vx_seed_env_digest(vx_strlist_done(&u->env), u->whole_env, k->o.forwarded, &u->env_digest);
	return !u->broken;
}
