/* Have the inputs of a record moved since its key was taken? Any thread: nothing of the keyer is
 * changed, and what is allocated is this call's own. */
#include "key_int.h"
#include "../worktree/scan.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIR_PAYS 4 /* inputs of one directory */

void vx_key_input_of(const struct vx_file *f, struct vx_key_input *ret)
{
	*ret = (struct vx_key_input){.path = f->path,
		.mode = f->mode,
		.oid = f->oid,
		.size = f->st.size,
		.mtime_ns = f->st.mtime_ns,
		.ctime_ns = f->st.ctime_ns,
		.ino = f->st.ino,
		.looked_ns = f->looked_ns};
}

/* One look: the same inode, unchanged since it was hashed. By whatever way it is reached, its bytes
 * are those; `path` is relative to fd. */
static bool as_it_was(struct vx_keyer *k, const struct vx_key_input *in, int fd, const char *path)
{
	struct stat st;
	struct vx_fstat now;
	if (fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return false;
	vx_fstat_of(&st, &now);
	struct vx_fstat was = {in->size, in->mtime_ns, in->ctime_ns, in->ino, now.dev};
	bool exec = vx_source_trusts_exec(k->src);
	return vx_fstat_equal(&now, &was) && !vx_fstat_racy(&was, in->looked_ns) &&
	       vx_git_mode(st.st_mode, true) &&
	       (!exec || vx_git_mode(st.st_mode, true) == in->mode);
}

/* A vx.json's input that has been written since counts as moved though its bytes are the same
 * again, for nobody knows what they were in between. Under a turbo.json the bytes count, as in
 * Turborepo. */
static int input_moved(struct vx_keyer *k, int how, const struct vx_key_input *in)
{
	int fd = vx_source_fd(k->src);
	bool exec = vx_source_trusts_exec(k->src);
	struct vx_file f = {.path = in->path};
	if (as_it_was(k, in, fd, in->path))
		return 0;
	int r = vx_identity_look(fd, in->path, exec, &f);
	if (r == -ENOENT)
		return 1;
	if (r < 0)
		return r;
	struct vx_fstat was = {in->size, in->mtime_ns, in->ctime_ns, in->ino, f.st.dev};
	if (exec && f.mode != in->mode)
		return 1;
	if (vx_fstat_equal(&f.st, &was) && !vx_fstat_racy(&was, in->looked_ns))
		return 0;
	if (how == LOOK_STAT &&
		(f.st.size != in->size || f.st.mtime_ns != in->mtime_ns || f.st.ino != in->ino))
		return 1;
	r = vx_identity_take(fd, in->path, vx_source_kind(k->src), exec, &k->cancel, &f);
	if (r == -ENOENT || r == -EBUSY || r == -EFBIG)
		return 1;
	if (r < 0)
		return r;
	return memcmp(&f.oid, &in->oid, sizeof f.oid) != 0 ||
	       (f.mode != in->mode && (exec || (f.mode ^ in->mode) & 0170000));
}

int vx_key_input_moved(struct vx_keyer *k, const struct vx_key_input *in)
{
	return input_moved(k, LOOK_BYTES, in);
}

static struct watched watched_of(const struct vx_keyer *k, const struct record *r)
{
	const struct vx_task_decl *d = k->g->tasks[r->pub.task].decl;
	return (struct watched){r->pub.inputs, r->pub.n_inputs,
		d->dialect == VX_DIALECT_TURBO ? LOOK_BYTES : LOOK_STAT, vx_key_takes_all(d)};
}

static int manifest_moved(struct vx_keyer *k, const struct record *r, char *ret_what, size_t cap)
{
	if (r->manifest.mode) {
		int res = input_moved(k, watched_of(k, r).how, &r->manifest);
		if (res == 0 && r->manifest.mode == 0120000) {
			struct fixed_file now;
			res = vx_key_read_through(vx_source_fd(k->src), r->manifest.path, &now);
			if (res == 0)
				res = now.present != r->behind.present ||
				      memcmp(&now.digest, &r->behind.digest, sizeof now.digest) !=
					      0;
		}
		if (res)
			snprintf(ret_what, cap, "%s", r->manifest.path);
		return res;
	}
	struct vx_file f = {.path = r->manifest.path};
	int res = vx_identity_look(vx_source_fd(k->src), r->manifest.path, true, &f);
	if (res == -ENOENT)
		return 0;
	snprintf(ret_what, cap, "%s", r->manifest.path);
	return res < 0 ? res : 1;
}

/* The input set as it would be chosen now. */
static int choose_now(
	struct vx_keyer *k, const struct record *r, struct vx_arena *a, struct vx_files *ret)
{
	const struct vx_task *t = &k->g->tasks[r->pub.task];
	const struct decl_globs *dg;
	struct vx_files table = {0}, own = {0};
	struct vx_strlist roots = {0};
	int res = vx_key_globs(k, t->decl, &dg, NULL);
	if (res < 0)
		return res;
	vx_key_input_roots(k, r->pub.task, dg, a, &roots);
	for (uint32_t i = 0; i < roots.n && res == 0; i++)
		res = vx_source_list(k->src, roots.v[i], a, &table, NULL);
	vx_files_sort_unique(&table);
	if (res == 0) {
		vx_key_own_files(k, t->project, t->decl->dialect == VX_DIALECT_TURBO, &table, &own);
		res = vx_key_select(k, r->pub.task, dg, &table, &own, ret, a, NULL);
	}
	if (res == 0)
		res = vx_key_walk_turbo(k, r->pub.task, dg, a, ret, NULL);
	vx_files_sort_unique(ret);
	vx_files_free(&table);
	vx_files_free(&own);
	return res;
}

/* Bytes of the path's directory, the slash included. */
static size_t dir_bytes(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash + 1 - path) : 0;
}

/* The directory that this input and the next ones are in, opened where enough of them are for that
 * to pay: the way to it is then gone once. -1 */
static int open_dir_of(struct vx_keyer *k, const struct watched *w, uint32_t i, size_t *ret_n)
{
	const struct vx_key_input *in = &w->v[i];
	char dir[VX_MAX_PATH];
	size_t n = dir_bytes(in->path);
	*ret_n = n;
	if (!n || n >= sizeof dir || i + DIR_PAYS > w->n ||
		strncmp(in[DIR_PAYS - 1].path, in->path, n) != 0 ||
		dir_bytes(in[DIR_PAYS - 1].path) != n)
		return -1;
	memcpy(dir, in->path, n);
	dir[n] = '\0';
	return openat(vx_source_fd(k->src), dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

static int watched_moved(struct vx_keyer *k, const struct watched *w, const struct vx_key_input *in,
	char *ret_what, size_t cap)
{
	int res = input_moved(k, w->how, in);
	if (res == 1 && w->but_made && vx_key_is_made(k, in->path))
		res = 0;
	if (res)
		snprintf(ret_what, cap, "%s", in->path);
	return res;
}

int vx_key_each_moved(struct vx_keyer *k, const struct watched *w, char *ret_what, size_t cap)
{
	int res = 0, fd = -1;
	const char *of = NULL; /* the path that the directory was opened or not opened for */
	size_t n = 0;
	for (uint32_t i = 0; res == 0 && i < w->n; i++) {
		const struct vx_key_input *in = &w->v[i];
		if (!of || strncmp(in->path, of, n) != 0 || strchr(in->path + n, '/')) {
			vx_close(fd);
			fd = open_dir_of(k, w, i, &n);
			of = in->path;
		}
		if (fd >= 0 && as_it_was(k, in, fd, in->path + n))
			continue;
		res = watched_moved(k, w, in, ret_what, cap);
	}
	vx_close(fd);
	return res;
}

/* Does what a listing has just seen show the input as it was? Else it is looked at by itself. */
static bool seen_same(struct vx_keyer *k, const struct vx_file *now, const struct vx_key_input *in,
	uint64_t since_ns)
{
	struct vx_fstat was = {in->size, in->mtime_ns, in->ctime_ns, in->ino, now->st.dev};
	return now->looked_ns >= since_ns &&
	       (!vx_source_trusts_exec(k->src) || now->mode == in->mode) &&
	       vx_fstat_equal(&now->st, &was) && !vx_fstat_racy(&was, in->looked_ns);
}

static int input_cmp(const void *path, const void *input)
{
	return strcmp(path, ((const struct vx_key_input *)input)->path);
}

static bool is_input(const struct record *r, const char *path)
{
	return r->pub.n_inputs &&
	       bsearch(path, r->pub.inputs, r->pub.n_inputs, sizeof *r->pub.inputs, input_cmp);
}

/* Would the same paths be chosen now? True only where directories prove it: the lists that they
 * were chosen from cannot have changed since the run's first one. */
static bool same_set(struct vx_keyer *k, const struct record *r, struct vx_arena *a)
{
	const struct vx_task *t = &k->g->tasks[r->pub.task];
	const struct decl_globs *dg;
	struct vx_strlist roots = {0};
	if (vx_key_globs(k, t->decl, &dg, NULL) < 0 || r->links ||
		(t->decl->dialect == VX_DIALECT_TURBO && vx_key_names_files(dg)))
		return false; /* what those lead to, or name, is looked for on the disk */
	vx_key_input_roots(k, r->pub.task, dg, a, &roots);
	for (uint32_t i = 0; i < roots.n; i++) {
		int same = vx_source_same(k->src, roots.v[i]);
		if (!same || (same == VX_SAME_FILE && !is_input(r, roots.v[i])))
			return false; /* what is gone is missed when each input is looked at */
	}
	return true;
}

/* Names the first path that is in one of the lists only, or whose file moved. */
int vx_key_list_moved(struct vx_keyer *k, const struct watched *w, const struct vx_files *now,
	uint64_t wall_ns, char *ret_what, size_t cap)
{
	int res = 0;
	for (uint32_t i = 0, j = 0; res == 0 && (i < now->n || j < w->n);) {
		const char *x = i < now->n ? now->v[i]->path : NULL,
			   *y = j < w->n ? w->v[j].path : NULL;
		int c = !x ? 1 : !y ? -1 : strcmp(x, y);
		if (c && w->but_made && vx_key_is_made(k, c < 0 ? x : y)) {
			/* that task's key answers for it */
		} else if (c && (res = vx_key_each_moved(k, w, ret_what, cap)) == 0) {
			/* what went or changed is named before what came */
			snprintf(ret_what, cap, "%s", c < 0 ? x : y);
			res = 1;
		}
		if (!c && !seen_same(k, now->v[i], &w->v[j], wall_ns))
			res = watched_moved(k, w, &w->v[j], ret_what, cap);
		i += c <= 0;
		j += c >= 0;
	}
	return res;
}

int vx_key_files_moved(struct vx_keyer *k, const struct record *r, char *ret_what, size_t cap)
{
	const struct vx_task_decl *d = k->g->tasks[r->pub.task].decl;
	struct watched w = watched_of(k, r);
	struct vx_arena a = {0};
	struct vx_files now = {0};
	uint64_t wall_ns = vx_wall_ns();
	int res = manifest_moved(k, r, ret_what, cap);
	if (res || (!vx_key_takes_all(d) && !vx_key_takes_chosen(d)))
		return res;
	if (same_set(k, r, &a)) {
		res = vx_key_each_moved(k, &w, ret_what, cap);
	} else {
		res = choose_now(k, r, &a, &now);
		if (res == 0)
			res = vx_key_list_moved(k, &w, &now, wall_ns, ret_what, cap);
	}
	vx_files_free(&now);
	vx_arena_free(&a);
	return res;
}

int vx_key_recheck(struct vx_keyer *k, const struct vx_key_record *pub, char *ret_what, size_t cap)
{
	const struct record *r = (const struct record *)pub; /* its first member */
	if (r->thin)
		return -ENODATA;
	if (r->moved) {
		snprintf(ret_what, cap, "%s", k->ws->projects[k->g->tasks[pub->task].project].dir);
		return 1;
	}
	uint64_t since_ns = vx_now_ns();
	int res = vx_key_fixed_moved(k, r->fixed, since_ns, ret_what, cap);
	if (res == 0) /* a command's inputs are listed anew, and the listing has looked at each */
		res = vx_key_files_moved(k, r, ret_what, cap);
	if (res == 0)
		res = vx_key_upstream_moved(k, r, since_ns, ret_what, cap);
	if (res == 0)
		res = vx_key_uncached_moved(k, r, since_ns, ret_what, cap);
	return res;
}
