/* Globs: the walk. Directories are read one at a time and closed before the next is opened, so
 * depth costs no descriptors; every directory is opened from the base without passing through a
 * link. */
#include "glob_int.h"
#include "../git/fstat.h"

#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

struct walk {
	const struct vx_globset *s;
	int base_fd;
	struct vx_arena a;
	struct vx_glob_hit *hits;
	size_t n, cap;
	uint64_t since; /* steps */
	struct vx_glob_memory *memory; /* NULL: every directory is read */
};

static void add_hit(struct walk *w, const char *path, size_t len, unsigned char dtype)
{
	if (w->n == w->cap) {
		w->cap = w->cap ? w->cap * 2 : 64;
		w->hits = vx_xrealloc(w->hits, w->cap * sizeof *w->hits);
	}
	struct vx_glob_hit *h = &w->hits[w->n++];
	h->path = vx_arena_strndup(&w->a, path, len);
	h->len = len;
	h->type = dtype == DT_REG   ? VX_GLOB_FILE
		  : dtype == DT_LNK ? VX_GLOB_LINK
		  : dtype == DT_DIR ? VX_GLOB_EMPTY_DIR
				    : VX_GLOB_OTHER;
}

bool vx_globset_may_enter(const struct vx_globset *s, const char *dir, size_t len)
{
	if (!vx_globset_may_reach(s, dir, len))
		return false;
	for (uint32_t i = 0; i < s->n_pos; i++)
		for (uint32_t k = 0; k < s->pos[i].n_alts; k++) {
			const struct vx_galt *a = &s->pos[i].alts[k];
			bool name_modules = s->dialect == VX_DIALECT_VX || a->n_lit == 0;
			if (vx_galt_reach(s, a, dir, len, name_modules) != GR_NO)
				return true;
		}
	return false;
}

static unsigned char type_of_mode(mode_t m)
{
	return S_ISREG(m) ? DT_REG : S_ISLNK(m) ? DT_LNK : S_ISDIR(m) ? DT_DIR : DT_BLK;
}

struct name {
	const char *s;
	unsigned char type;
};

/* A directory as it was last read: its names and their text are one block. */
struct listed {
	struct vx_fstat st;
	uint64_t looked_ns;
	struct name *v;
	size_t n;
};

struct vx_glob_memory {
	struct vx_arena paths;
	struct vx_map by_path;
	struct listed *v;
	uint32_t n, cap;
};

struct vx_glob_memory *vx_glob_memory_new(void)
{
	return vx_xcalloc(1, sizeof(struct vx_glob_memory));
}

void vx_glob_memory_free(struct vx_glob_memory *m)
{
	if (!m)
		return;
	for (uint32_t i = 0; i < m->n; i++)
		free(m->v[i].v);
	free(m->v);
	vx_map_free(&m->by_path);
	vx_arena_free(&m->paths);
	free(m);
}

/* The way to the directory has been gone without links just now: its parent was listed, or opened
 * beneath the base. */
static bool stat_dir(const struct walk *w, const char *dir, struct vx_fstat *ret)
{
	struct stat st;
	if (fstatat(w->base_fd, *dir ? dir : ".", &st, AT_SYMLINK_NOFOLLOW) < 0 ||
		!S_ISDIR(st.st_mode))
		return false;
	vx_fstat_of(&st, ret);
	return true;
}

static const struct listed *known(const struct walk *w, const char *dir, const struct vx_fstat *now)
{
	uint32_t i = vx_map_gets(&w->memory->by_path, dir);
	const struct listed *l = i == VX_MAP_NONE ? NULL : &w->memory->v[i];
	return l && vx_fstat_equal(&l->st, now) && !vx_fstat_racy(&l->st, l->looked_ns) ? l : NULL;
}

/* Keeps a listing that was begun after `st` was looked at, and frees `v`. */
static struct name *keep(struct vx_glob_memory *m, const char *dir, const struct vx_fstat *st,
	uint64_t looked_ns, struct name *v, size_t n)
{
	size_t bytes = n * sizeof *v + 1;
	for (size_t i = 0; i < n; i++)
		bytes += strlen(v[i].s) + 1;
	struct name *to = vx_xmalloc(bytes);
	char *text = (char *)(to + n);
	for (size_t i = 0; i < n; i++) {
		size_t k = strlen(v[i].s) + 1;
		to[i] = (struct name){memcpy(text, v[i].s, k), v[i].type};
		text += k;
	}
	free(v);
	uint32_t at = vx_map_gets(&m->by_path, dir);
	if (at == VX_MAP_NONE) {
		if (m->n == m->cap) {
			m->cap = m->cap ? m->cap * 2 : 64;
			m->v = vx_xrealloc(m->v, m->cap * sizeof *m->v);
		}
		at = m->n++;
		m->v[at].v = NULL;
		vx_map_puts(&m->by_path, vx_arena_strdup(&m->paths, dir), at);
	}
	free(m->v[at].v);
	m->v[at] = (struct listed){*st, looked_ns, to, n};
	return to;
}

/* The entries of a directory. -ENOENT, -ENOTDIR, -ELOOP: it is not there as a directory. */
static int read_dir(struct walk *w, const char *dir, struct name **ret, size_t *ret_n)
{
	int fd = vx_open_beneath(w->base_fd, *dir ? dir : ".", O_RDONLY | O_DIRECTORY, 0);
	if (fd < 0)
		return fd;
	DIR *d = fdopendir(fd);
	if (!d) {
		int e = -errno;
		vx_close(fd);
		return e;
	}
	struct name *v = NULL;
	size_t n = 0, cap = 0;
	int r = 0;
	for (;;) {
		errno = 0;
		struct dirent *e = readdir(d);
		if (!e) {
			r = -errno;
			break;
		}
		if (e->d_name[0] == '.' &&
			(!e->d_name[1] || (e->d_name[1] == '.' && !e->d_name[2])))
			continue;
		unsigned char type = e->d_type;
		struct stat st;
		if (type == DT_UNKNOWN) {
			if (fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
				continue;
			type = type_of_mode(st.st_mode);
		}
		if (n == cap) {
			cap = cap ? cap * 2 : 32;
			v = vx_xrealloc(v, cap * sizeof *v);
		}
		v[n++] = (struct name){vx_arena_strdup(&w->a, e->d_name), type};
	}
	closedir(d);
	if (r < 0) {
		free(v);
		return r;
	}
	*ret = v;
	*ret_n = n;
	return 0;
}

/* As read_dir, or as the memory has it. ret_own: the caller frees the names. */
static int list_dir(
	struct walk *w, const char *dir, struct name **ret, size_t *ret_n, bool *ret_own)
{
	struct vx_fstat st;
	uint64_t looked_ns = w->memory ? vx_wall_ns() : 0;
	bool keeps = w->memory && stat_dir(w, dir, &st);
	const struct listed *l = keeps ? known(w, dir, &st) : NULL;
	*ret_own = !keeps;
	if (l) {
		*ret = l->v;
		*ret_n = l->n;
		return 0;
	}
	int r = read_dir(w, dir, ret, ret_n);
	if (r == 0 && keeps)
		*ret = keep(w->memory, dir, &st, looked_ns, *ret, *ret_n);
	return r;
}

static int walk_dir(struct walk *w, char *path, size_t len);

static int visit(struct walk *w, char *path, size_t len, unsigned char type)
{
	if (type != DT_DIR) {
		if (vx_globset_match(w->s, path, len))
			add_hit(w, path, len, type);
		return w->n > VX_MAX_FILES ? -EFBIG : 0;
	}
	const char *base = memrchr(path, '/', len);
	base = base ? base + 1 : path;
	if (strcmp(base, ".git") == 0 || strcmp(base, ".vx") == 0)
		return 0;
	bool enter = vx_globset_may_enter(w->s, path, len);
	if (!enter && !vx_globset_match(w->s, path, len))
		return 0;
	return walk_dir(w, path, len);
}

/* `path` has room for VX_MAX_PATH bytes; it is restored to `len` bytes. */
static int walk_dir(struct walk *w, char *path, size_t len)
{
	struct name *v = NULL;
	size_t n = 0;
	bool own;
	int r = list_dir(w, path, &v, &n, &own);
	if (r == -ENOENT || r == -ENOTDIR || r == -ELOOP)
		return 0;
	if (r < 0)
		return r;
	if (n == 0 && len > 0 && vx_globset_match(w->s, path, len))
		add_hit(w, path, len, DT_DIR);
	bool enter = vx_globset_may_enter(w->s, path, len);
	for (size_t i = 0; i < n && r == 0 && enter; i++) {
		size_t k = strlen(v[i].s), at = len ? len + 1 : 0;
		if (at + k >= VX_MAX_PATH) {
			r = -ENAMETOOLONG;
			break;
		}
		if (len)
			path[len] = '/';
		memcpy(path + at, v[i].s, k + 1);
		r = vx_glob_spent(w->since) ? -E2BIG : visit(w, path, at + k, v[i].type);
		path[len] = '\0';
	}
	if (own)
		free(v);
	return r;
}

bool vx_globset_prefix_covered(const struct vx_globset *s, uint32_t i)
{
	const char *p = s->pos[i].prefix;
	for (uint32_t k = 0; k < s->n_pos; k++) {
		const char *q = s->pos[k].prefix;
		size_t m = strlen(q);
		if (k == i || strncmp(p, q, m) != 0 || (m && p[m] && p[m] != '/'))
			continue;
		if (p[m] || k < i)
			return true;
	}
	return false;
}

bool vx_globset_prefix_own(const struct vx_globset *s, uint32_t i)
{
	for (const char *p = s->pos[i].prefix;; p++) {
		const char *slash = strchrnul(p, '/');
		size_t n = (size_t)(slash - p);
		if ((n == 4 && memcmp(p, ".git", 4) == 0) || (n == 3 && memcmp(p, ".vx", 3) == 0))
			return true;
		if (!*slash)
			return false;
		p = slash;
	}
}

/* Begins at a literal prefix: its parents are not listed. */
static int walk_prefix(struct walk *w, const char *prefix)
{
	char path[VX_MAX_PATH];
	size_t len = strlen(prefix);
	if (len >= sizeof path)
		return 0;
	memcpy(path, prefix, len + 1);
	if (!len)
		return walk_dir(w, path, 0);
	char *slash = memrchr(path, '/', len);
	int parent = w->base_fd;
	if (slash) {
		*slash = '\0';
		parent = vx_open_beneath(w->base_fd, path, O_PATH | O_DIRECTORY, 0);
		*slash = '/';
		if (parent == -ENOENT || parent == -ENOTDIR || parent == -ELOOP)
			return 0;
		if (parent < 0)
			return parent;
	}
	struct stat st;
	int r = fstatat(parent, slash ? slash + 1 : path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno
											: 0;
	if (slash)
		vx_close(parent);
	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 ? r : visit(w, path, len, type_of_mode(st.st_mode));
}

static int hit_cmp(const void *a, const void *b)
{
	return strcmp(((const struct vx_glob_hit *)a)->path, ((const struct vx_glob_hit *)b)->path);
}

int vx_globset_walk(const struct vx_globset *s, int base_fd,
	int (*found)(void *arg, const struct vx_glob_hit *h), void *arg)
{
	return vx_globset_walk_again(s, base_fd, NULL, found, arg);
}

int vx_globset_walk_again(const struct vx_globset *s, int base_fd, struct vx_glob_memory *m,
	int (*found)(void *arg, const struct vx_glob_hit *h), void *arg)
{
	struct walk w = {.s = s, .base_fd = base_fd, .memory = m, .since = vx_glob_steps()};
	int r = 0;
	for (uint32_t i = 0; i < s->n_pos && r == 0; i++)
		if (!vx_globset_prefix_covered(s, i) && !vx_globset_prefix_own(s, i))
			r = walk_prefix(&w, s->pos[i].prefix);
	if (r == 0 && w.n)
		qsort(w.hits, w.n, sizeof *w.hits, hit_cmp);
	for (size_t i = 0; i < w.n && r == 0; i++)
		r = found(arg, &w.hits[i]);
	free(w.hits);
	vx_arena_free(&w.a);
	return r;
}
