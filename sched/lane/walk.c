/* What lies where the outputs are declared to lie: one pass that finds outputs, their stats, and
 * the directories that decide about them. */
#include "lane_int.h"

#include "vx/strs.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct walker {
	struct vx_io *io;
	int root_fd;
	dev_t root_dev;
	const struct vx_globset *set;
	const char *base; /* "" or a directory */
	size_t base_n;    /* of base and its slash */
	const struct vx_strs *nested;
	struct vx_walk *w;
	struct vx_fail *f;
	bool no_link; /* the way to the base has been walked, and passes no link */
	char **todo;  /* directories to list */
	uint32_t n_todo, cap_todo;
	char *list; /* VX_LIST_BYTES */
	struct vx_top *tops;
	uint32_t n_tops, cap_tops;
};

const char *vx_outputs_base(const struct vx_outputs *o)
{
	return !o->dir || strcmp(o->dir, ".") == 0 ? "" : o->dir;
}

bool vx_outputs_none(const struct vx_outputs *o)
{
	return (!o->files || vx_globset_empty(o->files)) &&
	       (!o->workspace_files || vx_globset_empty(o->workspace_files));
}

static bool nested_holds(const struct vx_strs *nested, const char *path)
{
	for (uint32_t i = 0; i < nested->n; i++) {
		size_t n = strlen(nested->v[i]);
		if (strncmp(path, nested->v[i], n) == 0 && (path[n] == '\0' || path[n] == '/'))
			return true;
	}
	return false;
}

bool vx_outputs_match(const struct vx_outputs *o, const char *path)
{
	const char *dir = vx_outputs_base(o);
	size_t n = strlen(dir);
	if (o->workspace_files && vx_globset_match(o->workspace_files, path, strlen(path)))
		return true;
	if (!o->files || nested_holds(&o->nested, path))
		return false;
	if (n && (strncmp(path, dir, n) != 0 || path[n] != '/'))
		return false;
	const char *rel = n ? path + n + 1 : path;
	return vx_globset_match(o->files, rel, strlen(rel));
}

uint64_t vx_fs_now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME_COARSE, &ts); /* what file systems stamp with */
	return (uint64_t)ts.tv_sec * 1000000000 + (uint64_t)ts.tv_nsec;
}

int vx_fail_open(struct vx_fail *f, int r, const char *path)
{
	vx_fail_set(f, r, "open", "%s", path);
	if (r == -EXDEV)
		snprintf(f->text, sizeof f->text,
			"%.400s is a mount or lies in one, and no output is removed, saved or restored there (unmount it, or exclude it from the outputs)",
			path);
	return r;
}

static void add_dir(struct walker *k, const char *path, const struct stat *st)
{
	struct vx_walk *w = k->w;
	if (w->n_dirs == w->cap_dirs) {
		w->cap_dirs = w->cap_dirs ? w->cap_dirs * 2 : 8;
		w->dirs = vx_xrealloc(w->dirs, w->cap_dirs * sizeof *w->dirs);
	}
	struct vx_seen *d = &w->dirs[w->n_dirs++];
	*d = (struct vx_seen){.path = vx_arena_strdup(&w->a, path), .len = (uint32_t)strlen(path)};
	if (st) {
		vx_seen_of(st, d);
		w->elsewhere |= st->st_dev != k->root_dev;
	}
}

static int add_out(
	struct walker *k, int dirfd, const char *name, const char *path, const struct stat *st)
{
	struct vx_walk *w = k->w;
	if (w->n_outs == VX_MAX_FILES)
		return vx_fail_set(
			k->f, -EFBIG, "walk", "%s: more than %u output files", path, VX_MAX_FILES);
	if (w->n_outs == w->cap_outs) {
		w->cap_outs = w->cap_outs ? w->cap_outs * 2 : 16;
		w->outs = vx_xrealloc(w->outs, w->cap_outs * sizeof *w->outs);
	}
	struct vx_out *out = &w->outs[w->n_outs];
	*out = (struct vx_out){
		.seen = {.path = vx_arena_strdup(&w->a, path), .len = (uint32_t)strlen(path)},
		.nlink = (uint32_t)st->st_nlink,
		.uid = st->st_uid,
		.base_n = (uint32_t)k->base_n};
	vx_seen_of(st, &out->seen);
	w->elsewhere |= st->st_dev != k->root_dev;
	if (S_ISREG(st->st_mode))
		w->bytes += (uint64_t)st->st_size;
	if (S_ISLNK(st->st_mode)) {
		char target[VX_MAX_PATH];
		struct vx_io_step s = {.op = VX_IO_READLINK,
			.dirfd = dirfd,
			.path = name,
			.buf = target,
			.n = sizeof target - 1};
		int64_t n = vx_io_sys(k->io, &s);
		if (n < 0)
			return vx_fail_set(k->f, (int)n, "readlink", "%s", path);
		out->target = vx_arena_strndup(&w->a, target, (size_t)n);
	}
	w->n_outs++;
	return 0;
}

/* Nothing above it is an output as a whole: a link here may stand for all that the outputs are. One
 * further in is one of them. */
static void note_top(struct walker *k, const char *path, bool fixed)
{
	const char *rel = path + k->base_n, *slash = strrchr(rel, '/');
	if (slash && vx_globset_match(k->set, rel, (size_t)(slash - rel)))
		return;
	if (!fixed && !vx_globset_may_reach(k->set, rel, strlen(rel)))
		return;
	if (k->n_tops == k->cap_tops) {
		k->cap_tops = k->cap_tops ? k->cap_tops * 2 : 4;
		k->tops = vx_xrealloc(k->tops, k->cap_tops * sizeof *k->tops);
	}
	k->tops[k->n_tops++] = (struct vx_top){vx_arena_strdup(&k->w->a, path), fixed};
}

static int push_dir(struct walker *k, const char *path)
{
	if (k->n_todo == k->cap_todo) {
		k->cap_todo = k->cap_todo ? k->cap_todo * 2 : 16;
		k->todo = vx_xrealloc(k->todo, k->cap_todo * sizeof *k->todo);
	}
	k->todo[k->n_todo++] = vx_arena_strdup(&k->w->a, path);
	return 0;
}

static bool is_own(const char *name)
{
	return strcmp(name, ".git") == 0 || strcmp(name, ".vx") == 0;
}

/* One entry `name` of the directory dirfd; path is its root-relative path. st is filled when type
 * is unknown. `fixed`: an output begins here by name. */
static int visit(
	struct walker *k, int dirfd, const char *name, const char *path, uint8_t type, bool fixed)
{
	struct stat st;
	const char *rel = path + k->base_n;
	if (is_own(name)) /* whatever it is: a file of that name stands for a directory elsewhere,
			     and no artifact may hold it */
		return 0;
	bool match = vx_globset_match(k->set, rel, strlen(rel));
	if (type == DT_UNKNOWN || (match && type != DT_DIR)) {
		int r = vx_io_stat_at(k->io, dirfd, name, &st);
		if (r == -ENOENT)
			return 0;
		if (r < 0)
			return vx_fail_set(k->f, r, "stat", "%s", path);
		type = S_ISDIR(st.st_mode) ? DT_DIR : DT_REG;
	}
	if (type != DT_DIR && match && S_ISLNK(st.st_mode))
		note_top(k, path, fixed);
	if (type != DT_DIR)
		return match ? add_out(k, dirfd, name, path, &st) : 0;
	if (nested_holds(k->nested, path))
		return 0;
	if (match || vx_globset_may_enter(k->set, rel, strlen(rel)))
		return push_dir(k, path);
	return 0;
}

static int list_names(struct walker *k, int fd, const char *dir, uint32_t *ret_n)
{
	char path[VX_MAX_PATH];
	size_t n = strlen(dir);
	memcpy(path, dir, n);
	if (n)
		path[n++] = '/';
	const char *rel = *dir && strlen(dir) >= k->base_n ? dir + k->base_n : "";
	bool enter = !*rel || vx_globset_may_enter(k->set, rel, strlen(rel));
	*ret_n = 0;
	for (;;) {
		struct vx_io_step s = {
			.op = VX_IO_LIST, .fd = fd, .buf = k->list, .n = VX_LIST_BYTES};
		int64_t got = vx_io_sys(k->io, &s);
		if (got < 0)
			return vx_fail_set(k->f, (int)got, "list", "%s", *dir ? dir : ".");
		if (got == 0)
			return 0;
		for (int64_t at = 0; at < got;) {
			const struct vx_dent *e =
				(const struct vx_dent *)(const void *)(k->list + at);
			at += e->reclen;
			if (strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0)
				continue;
			++*ret_n;
			size_t len = strlen(e->name);
			if (!enter)
				continue;
			if (n + len >= sizeof path)
				return vx_fail_set(
					k->f, -ENAMETOOLONG, "walk", "%s/%s", dir, e->name);
			memcpy(path + n, e->name, len + 1);
			int r = visit(k, fd, e->name, path, e->type, false);
			if (r < 0)
				return r;
		}
	}
}

static int open_dir(struct walker *k, const char *dir)
{
	return vx_io_open_inside(
		k->io, k->root_fd, *dir ? dir : ".", k->base_n, O_RDONLY | O_DIRECTORY | O_NOATIME);
}

/* Lists an open directory, and closes it. */
static int list_open(struct walker *k, const char *dir, int fd)
{
	struct stat st;
	int r = vx_io_stat_fd(k->io, fd, &st); /* before its entries are read */
	if (r < 0)
		r = vx_fail_set(k->f, r, "stat", "%s", dir);
	uint32_t n = 0;
	if (r == 0) {
		add_dir(k, dir, &st);
		r = list_names(k, fd, dir, &n);
	}
	const char *rel = strlen(dir) > k->base_n ? dir + k->base_n : "";
	if (r == 0 && n == 0 && *rel && vx_globset_match(k->set, rel, strlen(rel)))
		r = add_out(k, -1, NULL, dir, &st);
	vx_io_close_fd(k->io, fd);
	return r;
}

static int list_dir(struct walker *k, const char *dir)
{
	int fd = open_dir(k, dir);
	if (fd == -ENOENT || fd == -ENOTDIR || fd == -ELOOP) {
		add_dir(k, dir, NULL);
		return 0;
	}
	return fd < 0 ? vx_fail_open(k->f, fd, *dir ? dir : ".") : list_open(k, dir, fd);
}

/* The directories between the base and a prefix: looked at, since one swapped for a link would
 * change what is meant. *ret_fd: the prefix's parent, -1 when it is not there. */
static int open_parents(struct walker *k, char *path, int *ret_fd)
{
	struct stat st;
	*ret_fd = -1;
	for (char *slash = strchr(path + k->base_n, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int r = vx_io_stat_at(k->io, k->root_fd, path, &st);
		bool gone = r == -ENOENT || r == -ENOTDIR;
		if (r < 0 && !gone)
			r = vx_fail_set(k->f, r, "stat", "%s", path);
		else
			add_dir(k, path, gone ? NULL : &st);
		if (r == 0 && S_ISLNK(st.st_mode) && !k->w->through_link)
			k->w->through_link = vx_arena_strdup(&k->w->a, path);
		*slash = '/';
		if (gone)
			return 0;
		if (r < 0)
			return r;
	}
	char *slash = strrchr(path, '/');
	if (slash)
		*slash = '\0';
	int fd = vx_io_open_inside(
		k->io, k->root_fd, slash ? path : ".", k->base_n, O_PATH | O_DIRECTORY);
	if (fd < 0 && fd != -ENOENT && fd != -ENOTDIR && fd != -ELOOP)
		return vx_fail_open(k->f, fd, slash ? path : ".");
	if (slash)
		*slash = '/';
	*ret_fd = fd < 0 ? -1 : fd;
	return 0;
}

/* A prefix that is one name below the base, and that a wildcard follows, is most often a directory
 * or not there: one call says so. False: it is to be looked at step by step. */
static bool walk_at_once(struct walker *k, const char *prefix, const char *path, int *ret)
{
	size_t n = strlen(prefix);
	if (strchr(prefix, '/') || nested_holds(k->nested, path) ||
		!vx_globset_may_enter(k->set, prefix, n))
		return false;
	int fd = open_dir(k, path);
	if (fd < 0 && fd != -ENOENT)
		return false;
	k->no_link = true;
	if (fd < 0)
		add_dir(k, path, NULL);
	*ret = fd < 0 ? 0 : list_open(k, path, fd);
	return true;
}

static int walk_prefix(struct walker *k, const char *prefix, bool literal)
{
	char path[VX_MAX_PATH];
	int fd, r;
	if ((size_t)snprintf(path, sizeof path, "%s%s%s", k->base, k->base_n && *prefix ? "/" : "",
		    prefix) >= sizeof path)
		return vx_fail_set(k->f, -ENAMETOOLONG, "walk", "%s/%s", k->base, prefix);
	if (!*prefix)
		return push_dir(k, path);
	if (!literal && walk_at_once(k, prefix, path, &r))
		return r;
	r = open_parents(k, path, &fd);
	if (r < 0)
		return r;
	struct stat st;
	const char *slash = strrchr(path, '/');
	r = fd < 0 ? -ENOENT : vx_io_stat_at(k->io, fd, slash ? slash + 1 : path, &st);
	if (r == -ENOENT || r == -ENOTDIR) {
		add_dir(k, path, NULL);
		r = 0;
	} else if (r < 0) {
		r = vx_fail_set(k->f, r, "stat", "%s", path);
	} else {
		const char *rel = path + k->base_n;
		size_t n = strlen(rel);
		/* the link is no output, and what the pattern means lies behind it */
		if (S_ISLNK(st.st_mode) && !k->w->through_link &&
			!vx_globset_match(k->set, rel, n) && vx_globset_may_reach(k->set, rel, n))
			k->w->through_link = vx_arena_strdup(&k->w->a, path);
		r = visit(k, fd, slash ? slash + 1 : path, path,
			S_ISDIR(st.st_mode) ? DT_DIR : DT_REG, true);
	}
	vx_io_close_fd(k->io, fd);
	return r;
}

/* Nothing was found: is it because the base itself lies behind a link? */
static int look_at_base(struct walker *k)
{
	if (!*k->base)
		return 0;
	int fd = vx_io_open_beneath(k->io, k->root_fd, k->base, O_PATH | O_DIRECTORY, 0);
	if ((fd == -ELOOP || fd == -ENOTDIR) && !k->w->through_link)
		k->w->through_link = vx_arena_strdup(&k->w->a, k->base);
	vx_io_close_fd(k->io, fd);
	return fd >= 0 || fd == -ELOOP || fd == -ENOTDIR || fd == -ENOENT
		       ? 0
		       : vx_fail_set(k->f, fd, "open", "%s", k->base);
}

static int walk_set(struct walker *k)
{
	int r = 0;
	for (uint32_t i = 0; i < vx_globset_count(k->set) && r == 0; i++)
		if (!vx_globset_prefix_covered(k->set, i) && !vx_globset_prefix_own(k->set, i))
			r = walk_prefix(
				k, vx_globset_prefix(k->set, i), vx_globset_literal(k->set, i));
	while (r == 0 && k->n_todo)
		r = list_dir(k, k->todo[--k->n_todo]);
	return r < 0 || k->w->n_outs || k->no_link ? r : look_at_base(k);
}

static int cmp_out(const void *a, const void *b)
{
	return strcmp(((const struct vx_out *)a)->seen.path, ((const struct vx_out *)b)->seen.path);
}

static int cmp_dir(const void *a, const void *b)
{
	return strcmp(((const struct vx_seen *)a)->path, ((const struct vx_seen *)b)->path);
}

void vx_walk_sort(struct vx_walk *w)
{
	uint32_t k = 0;
	if (w->n_outs)
		qsort(w->outs, w->n_outs, sizeof *w->outs, cmp_out);
	for (uint32_t i = 0; i < w->n_outs; i++)
		if (!k || cmp_out(&w->outs[k - 1], &w->outs[i]) != 0)
			w->outs[k++] = w->outs[i];
	w->n_outs = k;
	if (w->n_dirs)
		qsort(w->dirs, w->n_dirs, sizeof *w->dirs, cmp_dir);
	k = 0;
	for (uint32_t i = 0; i < w->n_dirs; i++)
		if (!k || cmp_dir(&w->dirs[k - 1], &w->dirs[i]) != 0)
			w->dirs[k++] = w->dirs[i];
	w->n_dirs = k;
	w->bytes = 0;
	for (uint32_t i = 0; i < w->n_outs; i++)
		w->bytes += S_ISREG(w->outs[i].seen.mode) ? w->outs[i].seen.size : 0;
}

int vx_walk(struct vx_io *io, int root_fd, dev_t root_dev, const struct vx_outputs *o,
	struct vx_walk *ret, struct vx_fail *f)
{
	static const struct vx_strs none = {0};
	struct walker k = {.io = io, .root_fd = root_fd, .root_dev = root_dev, .w = ret, .f = f};
	*ret = (struct vx_walk){0};
	int r = 0;
	k.list = vx_xmalloc(VX_LIST_BYTES);
	if (o->files && !vx_globset_empty(o->files)) {
		k.set = o->files;
		k.base = vx_outputs_base(o);
		k.base_n = *k.base ? strlen(k.base) + 1 : 0;
		k.nested = &o->nested;
		r = walk_set(&k);
	}
	if (r == 0 && o->workspace_files && !vx_globset_empty(o->workspace_files)) {
		k.set = o->workspace_files;
		k.base = "";
		k.base_n = 0;
		k.no_link = false;
		k.nested = &none;
		k.n_todo = 0;
		r = walk_set(&k);
	}
	free(k.list);
	free(k.todo);
	if (r < 0)
		vx_walk_free(ret);
	else
		vx_walk_sort(ret);
	if (r == 0)
		vx_walk_behind(io, root_fd, o, ret, k.tops, k.n_tops);
	free(k.tops);
	return r;
}

void vx_walk_free(struct vx_walk *w)
{
	vx_arena_free(&w->a);
	free(w->outs);
	free(w->dirs);
	*w = (struct vx_walk){0};
}

const struct vx_seen *vx_walk_dir(const struct vx_walk *w, const char *path, size_t len)
{
	uint32_t lo = 0, hi = w->n_dirs;
	while (lo < hi) {
		uint32_t mid = (lo + hi) / 2;
		int c = strncmp(w->dirs[mid].path, path, len);
		if (c == 0 && w->dirs[mid].len > len)
			c = 1;
		if (c == 0)
			return &w->dirs[mid];
		if (c < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return NULL;
}

bool vx_walk_leads(const struct vx_walk *w, const char *path, size_t len)
{
	for (uint32_t i = 0; i < w->n_outs; i++) {
		const struct vx_out *o = &w->outs[i];
		if (len >= o->base_n && o->seen.len > len && o->seen.path[len] == '/' &&
			memcmp(o->seen.path, path, len) == 0)
			return true;
	}
	return false;
}

const struct vx_out *vx_walk_out(const struct vx_walk *w, const char *path)
{
	struct vx_out key = {.seen = {.path = path}};
	return w->n_outs ? bsearch(&key, w->outs, w->n_outs, sizeof *w->outs, cmp_out) : NULL;
}

void vx_snap_of(const struct vx_walk *w, const struct vx_snap *head, void **ret, size_t *ret_n)
{
	struct vx_buf b = VX_BUF(SIZE_MAX / 2);
	struct vx_snap s = *head;
	s.n_dirs = w->n_dirs;
	s.n_files = w->n_outs;
	vx_snap_begin(&b, &s);
	for (uint32_t i = 0; i < w->n_dirs; i++)
		vx_snap_add(&b, &w->dirs[i]);
	for (uint32_t i = 0; i < w->n_outs; i++)
		vx_snap_add(&b, &w->outs[i].seen);
	*ret = b.data;
	*ret_n = b.len;
}
