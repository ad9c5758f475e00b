/* Which files differ between the commit and now. */
#include "narrow.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/path.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct hashing {
	struct narrower *w;
	struct vx_files files;
	_Atomic int first_error;
	struct vx_file *_Atomic culprit;
};

static void hash_one(void *arg, uint32_t i)
{
	struct hashing *h = arg;
	struct vx_source *src = h->w->now->src;
	struct vx_file *f = h->files.v[i];
	int zero = 0, r = vx_identity_take(vx_source_fd(src), f->path, vx_source_kind(src),
			      vx_source_trusts_exec(src), &h->w->now->cancel, f);

	if (r == -ENOENT)
		f->mode = 0; /* gone meanwhile */
	else if (r < 0 && atomic_compare_exchange_strong(&h->first_error, &zero, r))
		atomic_store(&h->culprit, f);
}

/* Identities of what the commit has too. What it has not has come, whatever it holds. */
static int identify(struct narrower *w)
{
	struct hashing h = {.w = w};
	const struct vx_files *now = &w->now->table, *then = &w->base.files;

	for (uint32_t i = 0; i < now->n; i++)
		if (!now->v[i]->has_oid && vx_files_find(then, now->v[i]->path))
			vx_files_add(&h.files, now->v[i]);
	if (h.files.n)
		vx_parallel(h.files.n, h.files.n < 32 ? 1 : w->now->o.threads, 8, hash_one, &h);
	vx_files_free(&h.files);
	int r = atomic_load(&h.first_error);
	return r < 0 ? vx_identity_failed(r, "--affected", atomic_load(&h.culprit)->path, w->err)
		     : 0;
}

static bool same(const struct vx_file *x, const struct vx_file *y)
{
	return x->mode == y->mode && x->oid.n == y->oid.n &&
	       memcmp(x->oid.b, y->oid.b, x->oid.n) == 0;
}

int changed_find(struct narrower *w)
{
	const struct vx_files *now = &w->now->table, *then = &w->base.files;
	struct vx_strlist changed = {0}, came = {0};
	int r = identify(w);

	for (uint32_t i = 0, j = 0; r == 0 && (i < now->n || j < then->n);) {
		int c = i == now->n    ? 1
			: j == then->n ? -1
				       : strcmp(now->v[i]->path, then->v[j]->path);
		const char *path = c <= 0 ? now->v[i]->path : then->v[j]->path;
		if (c != 0)
			vx_strlist_add(&came, w->a, path);
		if (c != 0 || !same(now->v[i], then->v[j]))
			vx_strlist_add(&changed, w->a, path);
		i += c <= 0;
		j += c >= 0;
	}
	w->changed = vx_strlist_done(&changed);
	w->came_or_went = vx_strlist_done(&came);
	return r;
}

bool changed_has(const struct narrower *w, const char *path)
{
	return w->changed.n && bsearch(&path, w->changed.v, w->changed.n, sizeof *w->changed.v,
				       vx_strcmp_qsort) != NULL;
}
