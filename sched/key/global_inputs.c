/* What is in the key of every task: the fingerprint (lockfiles and package manager settings at the
 * root) and turbo's globalDependencies. */
#include "key_int.h"

#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define N_LOCKFILES 6               /* of the names below, the first */
#define MAX_LINKED_BYTES (1U << 30) /* one file behind a link of globalDependencies */

const char *const vx_fingerprint_names[N_FINGERPRINT] = {"pnpm-lock.yaml", "package-lock.json",
	"npm-shrinkwrap.json", "yarn.lock", "bun.lock", "bun.lockb", "pnpm-workspace.yaml",
	".yarnrc.yml", ".npmrc", "bunfig.toml"};

static size_t max_bytes(const char *name)
{
	for (uint32_t i = 0; i < N_FINGERPRINT; i++)
		if (strcmp(name, vx_fingerprint_names[i]) == 0)
			return i < N_LOCKFILES ? VX_MAX_LOCKFILE_BYTES : VX_MAX_CONFIG_BYTES;
	return strcmp(vx_path_base(name), "package.json") == 0 ? VX_MAX_CONFIG_BYTES
							       : MAX_LINKED_BYTES;
}

/* Links are followed: it is the bytes that the package manager reads that count. */
int vx_key_read_through(int root_fd, const char *name, struct fixed_file *f)
{
	struct stat st;
	*f = (struct fixed_file){.name = name, .looked_ns = vx_wall_ns()};
	if (fstatat(root_fd, name, &st, 0) < 0)
		return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : -errno;
	if (!S_ISREG(st.st_mode))
		return 0;
	struct vx_buf b = VX_BUF(max_bytes(name));
	int r = vx_read_file(root_fd, name, &b);
	if (r == 0) {
		f->present = true;
		vx_fstat_of(&st, &f->st);
		vx_sha256_of(vx_buf_str(&b), b.len, &f->digest);
	}
	vx_buf_free(&b);
	return r == -ENOENT ? 0 : r;
}

int vx_key_read_failed(struct vx_keyer *k, int r, const char *name, struct vx_err *err)
{
	if (r != -EFBIG)
		return vx_err_set(
			err, r, "%s/%s cannot be read: %s", k->ws->root, name, vx_strerror(r));
	vx_err_set(err, r, "%s/%s is larger than %zu bytes, the most such a file may have",
		k->ws->root, name, max_bytes(name));
	return vx_err_fix(err, "remove it, or restore it from git");
}

static bool same_fixed(const struct fixed_file *a, const struct fixed_file *b)
{
	return a->present == b->present && memcmp(&a->digest, &b->digest, sizeof a->digest) == 0;
}

/* Was it written in between? Links to the inode and its mode are no matter of its bytes. */
static bool same_stat(const struct vx_fstat *a, const struct vx_fstat *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ino == b->ino;
}

struct globals {
	struct vx_keyer *k;
	struct vx_key_input *v;
	uint32_t n, cap;
	struct fixed_file *linked;
	uint32_t n_linked, cap_linked;
	const char *culprit; /* that could not be read */
	bool culprit_linked;
};

/* Turborepo hashes the bytes that a link leads to. */
static int add_linked(struct globals *g, const char *path)
{
	struct fixed_file f;
	int r = vx_key_read_through(vx_source_fd(g->k->src), path, &f);
	if (r < 0) {
		g->culprit = path;
		g->culprit_linked = true;
		return r;
	}
	if (g->n_linked == g->cap_linked) {
		g->cap_linked = g->cap_linked ? g->cap_linked * 2 : 4;
		g->linked = vx_xrealloc(g->linked, g->cap_linked * sizeof *g->linked);
	}
	g->linked[g->n_linked++] = f;
	return 0;
}

static int global_found(void *arg, const struct vx_glob_hit *h)
{
	struct globals *g = arg;
	struct vx_file f = {.path = h->path, .len = (uint32_t)h->len};
	if (h->type != VX_GLOB_FILE && h->type != VX_GLOB_LINK)
		return 0;
	int r = vx_identity_take(vx_source_fd(g->k->src), h->path, vx_source_kind(g->k->src),
		vx_source_trusts_exec(g->k->src), &g->k->cancel, &f);
	if (r == -ENOENT)
		return 0;
	if (r < 0) {
		g->culprit = vx_arena_strdup(&g->k->a, h->path);
		return r;
	}
	if (g->n == g->cap) {
		g->cap = g->cap ? g->cap * 2 : 16;
		g->v = vx_xrealloc(g->v, g->cap * sizeof *g->v);
	}
	f.path = vx_arena_strdup(&g->k->a, h->path);
	vx_key_input_of(&f, &g->v[g->n++]);
	return (f.mode & 0170000) == 0120000 ? add_linked(g, f.path) : 0;
}

/* globalDependencies are files on disk, ignored by git or not: an ignored .env is what people name
 * there. */
static int read_globals(struct vx_keyer *k, struct fixed_round *round, struct vx_err *err)
{
	if (!k->ws->settings.turbo || !k->ws->settings.global_files.n)
		return 0;
	int r = 0;
	if (!k->global_set)
		r = vx_globset_compile(
			k->ws->settings.global_files, VX_DIALECT_TURBO, &k->a, &k->global_set, err);
	if (r < 0)
		return r;
	struct globals g = {.k = k};
	pthread_mutex_lock(&k->walk.lock);
	if (!k->walk.memory)
		k->walk.memory = vx_glob_memory_new();
	r = vx_globset_walk_again(
		k->global_set, vx_source_fd(k->src), k->walk.memory, global_found, &g);
	pthread_mutex_unlock(&k->walk.lock);
	if (r < 0) {
		free(g.v);
		free(g.linked);
		if (g.culprit_linked)
			return vx_key_read_failed(k, r, g.culprit, err);
		if (g.culprit)
			return vx_identity_failed(r, "globalDependencies", g.culprit, err);
		return vx_err_set(err, r, "globalDependencies cannot be read: %s", vx_strerror(r));
	}
	struct vx_sha256 h;
	vx_sha256_init(&h);
	for (uint32_t i = 0; i < g.n; i++) {
		vx_sha256_add(&h, g.v[i].path, strlen(g.v[i].path) + 1);
		uint32_t mode = htole32(g.v[i].mode);
		vx_sha256_add(&h, &mode, sizeof mode);
		vx_sha256_add(&h, g.v[i].oid.b, g.v[i].oid.n);
	}
	for (uint32_t i = 0; i < g.n_linked; i++) {
		vx_sha256_add(&h, g.linked[i].name, strlen(g.linked[i].name) + 1);
		vx_sha256_add(&h, g.linked[i].present ? "1" : "0", 1);
		/* zeros of what is not there */
		vx_sha256_add(&h, &g.linked[i].digest, sizeof g.linked[i].digest);
	}
	vx_sha256_done(&h, &round->globals_digest);
	round->linked = vx_arena_dup(&k->a, g.linked, g.n_linked * sizeof *g.linked);
	round->n_linked = g.n_linked;
	free(g.linked);
	round->globals = vx_arena_dup(&k->a, g.v, g.n * sizeof *g.v);
	round->n_globals = g.n;
	free(g.v);
	return 0;
}

static int read_stands(struct vx_keyer *k, struct fixed_round *round, struct vx_err *err)
{
	struct vx_sha256 h;
	int r = vx_key_stands(k, k->root_projects, k->n_root_projects, &round->stands, err);
	if (r < 0)
		return r;
	vx_sha256_init(&h);
	for (uint32_t i = 0; i < k->n_root_projects; i++) {
		const char *name = k->ws->projects[k->root_projects[i]].name;
		vx_sha256_add(&h, name, strlen(name) + 1);
		vx_sha256_add(&h, &round->stands[i]->digest, sizeof round->stands[i]->digest);
	}
	vx_sha256_done(&h, &round->stands_digest);
	return 0;
}

int vx_key_fixed_read(struct vx_keyer *k, struct vx_err *err)
{
	struct fixed_round *round = vx_arena_alloc(&k->a, sizeof *round);
	for (uint32_t i = 0; i < N_FINGERPRINT; i++) {
		int r = vx_key_read_through(
			vx_source_fd(k->src), vx_fingerprint_names[i], &round->v[i]);
		if (r < 0)
			return vx_key_read_failed(k, r, vx_fingerprint_names[i], err);
	}
	int r = read_globals(k, round, err);
	if (r == 0)
		r = read_stands(k, round, err);
	if (r < 0)
		return r;
	bool same = k->fixed != NULL && memcmp(&round->stands_digest, &k->fixed->stands_digest,
						sizeof round->stands_digest) == 0;
	for (uint32_t i = 0; same && i < N_FINGERPRINT; i++)
		same = same_fixed(&round->v[i], &k->fixed->v[i]) &&
		       (k->ws->settings.turbo || same_stat(&round->v[i].st, &k->fixed->v[i].st));
	if (!same || memcmp(&round->globals_digest, &k->fixed->globals_digest,
			     sizeof round->globals_digest) != 0)
		k->fixed = round;
	k->fixed_dirty = false;
	return 0;
}

struct path_list {
	struct vx_arena *a;
	struct vx_strlist l;
};

static int path_found(void *arg, const struct vx_glob_hit *h)
{
	struct path_list *p = arg;
	if (h->type == VX_GLOB_FILE || h->type == VX_GLOB_LINK)
		vx_strlist_add(&p->l, p->a, vx_arena_strndup(p->a, h->path, h->len));
	return 0;
}

/* What globalDependencies match now. Every save asks, and a pattern like "**" + "/.env" means a
 * walk through the whole workspace, in which directories that have not changed cost a stat. A walk
 * that began at since_ns or later is as good as one of our own: saves that waited for it share
 * it. The lock is held. */
static int globals_now(struct vx_keyer *k, uint64_t since_ns, struct vx_strs *ret)
{
	struct global_walk *w = &k->walk;
	if (!w->began_ns || w->began_ns < since_ns) {
		vx_arena_free(&w->a);
		w->a = (struct vx_arena){0};
		w->began_ns = 0;
		struct path_list p = {.a = &w->a};
		uint64_t began_ns = vx_now_ns();
		int r = vx_globset_walk_again(
			k->global_set, vx_source_fd(k->src), w->memory, path_found, &p);
		if (r < 0)
			return r;
		w->paths = vx_strlist_done(&p.l);
		w->began_ns = began_ns;
	}
	*ret = w->paths;
	return 0;
}

/* A file that matches now and was not there when the round was read. Those that are gone are found
 * one by one. */
static int global_came(struct vx_keyer *k, const struct fixed_round *round, uint64_t since_ns,
	char *ret_what, size_t cap)
{
	struct vx_strs now;
	if (!k->global_set)
		return 0;
	pthread_mutex_lock(&k->walk.lock);
	int r = globals_now(k, since_ns, &now);
	for (uint32_t i = 0, j = 0; r == 0 && i < now.n; i++) {
		while (j < round->n_globals && strcmp(round->globals[j].path, now.v[i]) < 0)
			j++;
		if (j < round->n_globals && strcmp(round->globals[j].path, now.v[i]) == 0)
			continue;
		struct stat st; /* what is no file to git is none to the key */
		if (fstatat(vx_source_fd(k->src), now.v[i], &st, AT_SYMLINK_NOFOLLOW) == 0 &&
			vx_git_mode(st.st_mode, true)) {
			snprintf(ret_what, cap, "%s", now.v[i]);
			r = 1;
		}
	}
	pthread_mutex_unlock(&k->walk.lock);
	return r;
}

/* Files of the fingerprint that are known to be absent still, as the root has not changed since
 * they were seen to be. */
static uint32_t absent_still(
	struct vx_keyer *k, const struct fixed_round *round, const struct vx_fstat *root)
{
	struct absent *p = &k->absent;
	pthread_mutex_lock(&p->lock);
	uint32_t mask = p->round == round && vx_fstat_equal(&p->root, root) ? p->mask : 0;
	pthread_mutex_unlock(&p->lock);
	return mask;
}

static void absent_seen(struct vx_keyer *k, const struct fixed_round *round,
	const struct vx_fstat *root, uint32_t mask)
{
	struct absent *p = &k->absent;
	pthread_mutex_lock(&p->lock);
	p->round = round;
	p->root = *root;
	p->mask = mask;
	pthread_mutex_unlock(&p->lock);
}

/* One file of the fingerprint. `ret_absent`: nothing has the name, so that only a change of the
 * root can bring it. */
static int file_moved(struct vx_keyer *k, const struct fixed_file *was, bool *ret_absent)
{
	struct stat st;
	struct vx_fstat now = {0};
	*ret_absent = false;
	if (fstatat(vx_source_fd(k->src), was->name, &st, 0) < 0) {
		if (!was->present && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP)) {
			*ret_absent = errno == ENOENT &&
				      fstatat(vx_source_fd(k->src), was->name, &st,
					      AT_SYMLINK_NOFOLLOW) < 0 &&
				      errno == ENOENT;
			return 0;
		}
	} else {
		vx_fstat_of(&st, &now);
	}
	if (was->present && vx_fstat_equal(&now, &was->st) &&
		!vx_fstat_racy(&was->st, was->looked_ns))
		return 0;
	if (was->present && !k->ws->settings.turbo && !same_stat(&now, &was->st))
		return 1; /* written meanwhile: nobody knows what it was in between */
	struct fixed_file f;
	int r = vx_key_read_through(vx_source_fd(k->src), was->name, &f);
	if (r == -EFBIG) /* what was read was not */
		return 1;
	return r < 0 ? r : !same_fixed(was, &f);
}

static int fingerprint_moved(
	struct vx_keyer *k, const struct fixed_round *round, char *ret_what, size_t cap)
{
	struct stat st;
	struct vx_fstat root = {0};
	uint64_t looked_ns = vx_wall_ns();
	bool can_prove = fstat(vx_source_fd(k->src), &st) == 0;
	if (can_prove)
		vx_fstat_of(&st, &root);
	uint32_t proven = can_prove ? absent_still(k, round, &root) : 0, mask = proven;
	for (uint32_t i = 0; i < N_FINGERPRINT; i++) {
		bool absent;
		if (proven & 1U << i)
			continue;
		int r = file_moved(k, &round->v[i], &absent);
		if (r) {
			snprintf(ret_what, cap, "%s", round->v[i].name);
			return r;
		}
		mask |= (uint32_t)absent << i;
	}
	if (can_prove && mask != proven && !vx_fstat_racy(&root, looked_ns))
		absent_seen(k, round, &root, mask);
	return 0;
}

int vx_key_fixed_moved(struct vx_keyer *k, const struct fixed_round *round, uint64_t since_ns,
	char *ret_what, size_t cap)
{
	int moved = fingerprint_moved(k, round, ret_what, cap);
	if (moved)
		return moved;
	for (uint32_t i = 0; i < round->n_globals; i++) {
		int r = vx_key_input_moved(k, &round->globals[i]);
		if (r) {
			snprintf(ret_what, cap, "%s", round->globals[i].path);
			return r;
		}
	}
	for (uint32_t i = 0; i < round->n_linked; i++) {
		bool absent;
		int r = file_moved(k, &round->linked[i], &absent);
		if (r) {
			snprintf(ret_what, cap, "%s", round->linked[i].name);
			return r;
		}
	}
	for (uint32_t i = 0; i < k->n_root_projects; i++) {
		int r = vx_key_stand_moved(k, round->stands[i], since_ns, ret_what, cap);
		if (r)
			return r;
	}
	return global_came(k, round, since_ns, ret_what, cap);
}
