/* The scan. See scan.h.
 *
 * A job is a directory. Jobs wait on one stack; threads take from it and push what they find. Each
 * thread has its own arena and lists, joined at the end, so that nothing is shared but the stack.
 * Tracked files go to a slot of their own in one array that is parallel to the index. */
#include "listing.h"
#include "../git/rulefile.h"
#include "scan.h"

#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct job {
	const char *path;     /* relative to the worktree; "" its top */
	uint32_t len, lo, hi; /* entries of the index below it */
	const struct vx_rules *ignore, *attrs;
	uint64_t attrs_ns; /* when one of the files of attributes above was last changed */
	bool ignored;      /* lies in an ignored directory: only what is tracked counts */
	bool modules;      /* lies in a node_modules */
};

struct scan {
	const struct vx_repo *repo;
	const struct vx_scan_opts *o;
	const char *emit; /* put in front of emitted paths: "mount/" or "" */
	size_t strip;     /* cut from them first: the prefix and its slash */
	/* by entry of the index, from `first` on; path NULL where it is not on disk */
	struct vx_file *tracked;
	uint32_t first;
	uint64_t started_ns;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct job *stack;
	uint32_t n, cap, busy;
	int error; /* first failure; ends all */
	char *why;
	size_t why_cap;
};

struct listed {
	const char *path;
	struct vx_dir_memory d;
};

struct worker {
	struct scan *s;
	struct vx_arena *a; /* of this thread; handed over at the end */
	struct vx_files untracked;
	struct vx_strlist nested;
	struct listed *dirs;
	uint32_t n_dirs, cap_dirs;
	uint64_t attr_places;
	struct vx_ignore_budget budget;
	bool not_all;  /* a directory is not among them */
	uint32_t hint; /* the entry of the index that probably comes next */
	struct vx_listing list;
	char path[VX_MAX_PATH];
};

struct name {
	const char *s;
	uint32_t len;
	unsigned char type;
};

static int fail(struct scan *s, int error, const char *what, const char *path)
{
	pthread_mutex_lock(&s->lock);
	if (!s->error) {
		s->error = error;
		snprintf(s->why, s->why_cap, "%s %s", path, what);
		pthread_cond_broadcast(&s->wake);
	}
	pthread_mutex_unlock(&s->lock);
	return error;
}

/* git would take as long: it is not asked. */
static int too_much(struct worker *w, const char *path)
{
	char what[160];
	snprintf(what, sizeof what,
		"takes the rules of .gitignore and .gitattributes past %u steps (write fewer patterns, or simpler ones)",
		VX_MAX_IGNORE_STEPS);
	return fail(w->s, -E2BIG, what, path);
}

static void push(struct scan *s, const struct job *j)
{
	pthread_mutex_lock(&s->lock);
	if (s->n == s->cap) {
		s->cap = s->cap ? s->cap * 2 : 256;
		s->stack = vx_xrealloc(s->stack, s->cap * sizeof *s->stack);
	}
	s->stack[s->n++] = *j;
	pthread_cond_signal(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

static bool pop(struct scan *s, struct job *ret)
{
	pthread_mutex_lock(&s->lock);
	while (!s->n && s->busy && !s->error)
		pthread_cond_wait(&s->wake, &s->lock);
	bool got = s->n && !s->error;
	if (got) {
		*ret = s->stack[--s->n];
		s->busy++;
	}
	pthread_mutex_unlock(&s->lock);
	return got;
}

static void job_done(struct scan *s)
{
	pthread_mutex_lock(&s->lock);
	if (--s->busy == 0 && !s->n)
		pthread_cond_broadcast(&s->wake);
	pthread_mutex_unlock(&s->lock);
}

/* A path as the workspace sees it. */
static const char *emitted(struct worker *w, const char *repo_path, bool stays)
{
	const char *p = repo_path + w->s->strip;
	if (*w->s->emit)
		return vx_arena_printf(w->a, "%s%s", w->s->emit, p);
	return stays ? p : vx_arena_strdup(w->a, p);
}

static void fill(struct worker *w, struct vx_file *f, const char *path, uint32_t mode,
	const struct stat *st, bool tracked)
{
	f->path = path;
	f->len = (uint32_t)strlen(path);
	f->mode = mode;
	f->tracked = tracked;
	f->looked_ns = w->s->started_ns;
	vx_fstat_of(st, &f->st);
	if (!f->has_oid && w->s->o->memory)
		f->has_oid = f->hashed = vx_wtmem_id(
			w->s->o->memory, f->path, f->len, w->s->repo->git.kind, &f->st, &f->oid);
}

/* May the index's id be taken for the bytes on disk? Not where they are converted on their way in,
 * nor where they were written before the attributes in force came to be: what those were when the
 * file was added nobody knows, and git does not look again when attributes change. */
static bool index_counts(const struct worker *w, const struct job *j, const struct vx_ix_entry *e,
	const struct stat *st, size_t base_at)
{
	const struct vx_repo *r = w->s->repo;
	struct vx_fstat now;
	if (r->git.weak_stat || !vx_gitindex_clean(&r->index, e, st, r->git.trust_exec))
		return false;
	if (S_ISLNK(st->st_mode))
		return true;
	vx_fstat_of(st, &now);
	return !r->git.converts_all && now.ctime_ns > j->attrs_ns &&
	       (!j->attrs || !vx_attr_match(j->attrs, e->path, e->len, base_at));
}

/* `dir_fd` and `at`: how to reach it. */
static int on_tracked(struct worker *w, const struct job *j, uint32_t entry, int dir_fd,
	const char *at, size_t base_at)
{
	const struct vx_repo *r = w->s->repo;
	const struct vx_ix_entry *e = &r->index.v[entry];
	struct stat st;
	if (fstatat(dir_fd, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	uint32_t mode = vx_git_mode(st.st_mode, r->git.trust_exec);
	if (!mode)
		return 0;
	if (!r->git.trust_exec && S_ISREG(st.st_mode) && (e->mode & 0111))
		mode = 0100755;
	struct vx_file *f = &w->s->tracked[entry - w->s->first];
	if (index_counts(w, j, e, &st, base_at)) {
		vx_gitindex_oid(&r->index, e, &f->oid);
		f->has_oid = true;
	}
	fill(w, f, emitted(w, e->path, true), mode, &st, true);
	return 0;
}

static int on_untracked(struct worker *w, const char *path, int dir_fd, const char *at)
{
	struct stat st;
	if (fstatat(dir_fd, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT || errno == ENOTDIR ? 0 : -errno;
	uint32_t mode = vx_git_mode(st.st_mode, w->s->repo->git.trust_exec);
	if (!mode)
		return 0;
	if (w->untracked.n > VX_MAX_FILES)
		return -EFBIG;
	struct vx_file *f = vx_arena_alloc(w->a, sizeof *f);
	fill(w, f, emitted(w, path, false), mode, &st, w->s->repo->whole);
	vx_files_add(&w->untracked, f);
	return 0;
}

static bool is_ignored(
	const struct job *j, const char *path, size_t len, size_t base_at, bool is_dir)
{
	return j->ignored ||
	       (j->ignore && vx_ignore_match(j->ignore, path, len, base_at, is_dir) == 1);
}

static int on_dir(struct worker *w, const struct job *j, size_t len, size_t base_at)
{
	struct scan *s = w->s;
	const struct vx_gitindex *x = &s->repo->index;
	const char *name = w->path + base_at;
	if (strcmp(name, ".git") == 0 || strcmp(name, ".vx") == 0)
		return 0;
	uint32_t self = vx_gitindex_lower(x, j->lo, j->hi, w->path, len);
	if (self < j->hi && x->v[self].len == len && x->v[self].mode == 0160000 &&
		memcmp(x->v[self].path, w->path, len) == 0) {
		vx_strlist_add(&w->nested, w->a, emitted(w, w->path, false));
		return 0;
	}
	struct job c = {.len = (uint32_t)len,
		.ignore = j->ignore,
		.attrs = j->attrs,
		.attrs_ns = j->attrs_ns};
	w->path[len] = '/';
	c.lo = vx_gitindex_lower(x, self, j->hi, w->path, len + 1);
	w->path[len] = '/' + 1;
	c.hi = vx_gitindex_lower(x, c.lo, j->hi, w->path, len + 1);
	w->path[len] = '\0';
	c.modules = j->modules || (!s->repo->whole && strcmp(name, "node_modules") == 0);
	if (c.lo == c.hi && c.modules)
		return 0;
	c.ignored = is_ignored(j, w->path, len, base_at, true);
	if (c.lo == c.hi && c.ignored)
		return 0;
	c.path = vx_arena_strndup(w->a, w->path, len);
	push(s, &c);
	return 0;
}

/* The entry of w->path. Listings from memory are sorted, so the one after the last found is tried
 * first. */
static bool find_entry(struct worker *w, const struct job *j, size_t len, uint32_t *ret)
{
	const struct vx_gitindex *x = &w->s->repo->index;
	uint32_t i = w->hint;
	bool found = i >= j->lo && i < j->hi && x->v[i].len == len &&
		     memcmp(x->v[i].path, w->path, len) == 0;
	if (!found) {
		i = vx_gitindex_lower(x, j->lo, j->hi, w->path, len);
		found = i < j->hi && x->v[i].len == len && memcmp(x->v[i].path, w->path, len) == 0;
	}
	w->hint = found ? i + 1 : w->hint;
	*ret = i;
	return found;
}

static int on_name(struct worker *w, const struct job *j, const struct name *n, int dir_fd)
{
	size_t base_at = j->len ? j->len + 1U : 0, len = base_at + n->len;
	if (len + 1 >= sizeof w->path)
		return fail(w->s, -ENAMETOOLONG, "has a name below it that is too long", j->path);
	memcpy(w->path + base_at, n->s, n->len + 1);
	if (vx_ignore_spent(&w->budget, 1))
		return too_much(w, w->path);
	const char *at = dir_fd == w->s->repo->top_fd ? w->path : n->s;
	unsigned char type = n->type;
	if (type == DT_UNKNOWN) {
		struct stat st;
		if (fstatat(dir_fd, at, &st, AT_SYMLINK_NOFOLLOW) < 0)
			return 0;
		type = S_ISDIR(st.st_mode)   ? DT_DIR
		       : S_ISREG(st.st_mode) ? DT_REG
		       : S_ISLNK(st.st_mode) ? DT_LNK
					     : DT_FIFO;
	}
	int r = 0;
	if (type == DT_DIR) {
		r = on_dir(w, j, len, base_at);
	} else if (type == DT_REG || type == DT_LNK) {
		uint32_t i;
		if (find_entry(w, j, len, &i))
			r = on_tracked(w, j, i, dir_fd, at, base_at);
		else if (!j->modules && strcmp(n->s, ".git") != 0 &&
			 !is_ignored(j, w->path, len, base_at, false))
			r = on_untracked(w, w->path, dir_fd, at);
	}
	return r < 0 ? fail(w->s, r, "cannot be looked at", w->path) : r;
}

static int read_rules(struct worker *w, struct job *j, const char *name, bool attrs)
{
	const struct vx_rules **rules = attrs ? &j->attrs : &j->ignore;
	struct vx_rule_file f = {w->s->repo->top_fd, j->path, name, *rules, attrs};
	const char *why;
	uint64_t since_ns;
	int r = vx_rule_file(&f, w->s->o->rules, w->a, rules, &since_ns, &why);
	if (r)
		return fail(w->s, r, why,
			vx_arena_printf(w->a, "%s%s%s", j->path, j->len ? "/" : "", name));
	if (attrs && since_ns > j->attrs_ns)
		j->attrs_ns = since_ns;
	return 0;
}

static const struct vx_ix_entry *entry_of(struct worker *w, const struct job *j, const char *name)
{
	char path[VX_MAX_PATH];
	int n = snprintf(path, sizeof path, "%s%s%s", j->path, j->len ? "/" : "", name);
	const struct vx_gitindex *x = &w->s->repo->index;
	if (n >= (int)sizeof path)
		return NULL;
	uint32_t i = vx_gitindex_lower(x, j->lo, j->hi, path, (size_t)n);
	return i < j->hi && strcmp(x->v[i].path, path) == 0 ? &x->v[i] : NULL;
}

/* What .gitignore and .gitattributes of a directory add. One that is missing from the disk may
 * count from the index; those cases are not guessed at. */
static int enter(struct worker *w, struct job *j, bool has_ignore, bool has_attrs)
{
	int r = 0;
	const struct vx_ix_entry *e;
	if (w->s->repo->whole)
		return 0;
	if (has_ignore && !j->ignored)
		r = read_rules(w, j, ".gitignore", false);
	else if (!has_ignore && (e = entry_of(w, j, ".gitignore")) != NULL &&
		 (e->flags & VX_IX_SKIP_WORKTREE))
		return fail(w->s, 1, "has a .gitignore in the index alone", j->path);
	if (r == 0 && has_attrs)
		r = read_rules(w, j, ".gitattributes", true);
	else if (r == 0 && !has_attrs && entry_of(w, j, ".gitattributes"))
		j->attrs = vx_attr_parse("* text", 6, j->path, j->attrs, w->a);
	return r;
}

static void remember(
	struct worker *w, const struct job *j, const struct vx_dir_memory *d, bool copy)
{
	if (!w->s->o->writer)
		return;
	if (w->n_dirs == w->cap_dirs) {
		w->cap_dirs = w->cap_dirs ? w->cap_dirs * 2 : 256;
		w->dirs = vx_xrealloc(w->dirs, w->cap_dirs * sizeof *w->dirs);
	}
	struct listed *l = &w->dirs[w->n_dirs++];
	l->path = *w->s->emit ? vx_arena_printf(w->a, "%s%s", w->s->emit, j->path) : j->path;
	l->d = *d;
	if (copy)
		l->d.names = vx_listing_sorted(d, w->a);
}

/* A listing in hand: the special names first, then all. */
static int on_listing(struct worker *w, struct job *j, const struct vx_dir_memory *d, int dir_fd)
{
	const char *p;
	if (d->has & VX_DIR_GIT && j->len && j->lo == j->hi &&
		vx_gitrepo_is(vx_arena_printf(w->a, "%s/%s", w->s->repo->git.worktree, j->path))) {
		vx_strlist_add(&w->nested, w->a, emitted(w, j->path, false));
		return 0;
	}
	if (d->has & VX_DIR_ATTRS)
		w->attr_places += vx_scan_place(
			*w->s->emit ? vx_arena_printf(w->a, "%s%s", w->s->emit, j->path) : j->path);
	int r = enter(w, j, d->has & VX_DIR_IGNORE, d->has & VX_DIR_ATTRS);
	memcpy(w->path, j->path, j->len);
	if (j->len)
		w->path[j->len] = '/';
	p = d->names;
	for (uint32_t i = 0; i < d->n_names && r == 0; i++) {
		struct name n = {
			.type = (unsigned char)*p, .s = p + 1, .len = (uint32_t)strlen(p + 1)};
		r = on_name(w, j, &n, dir_fd);
		p += n.len + 2;
	}
	return r;
}

/* A directory that is not there any more, or that may not be read, holds nothing; so says git. */
static bool holds_nothing(int error)
{
	return error == -ENOENT || error == -ENOTDIR || error == -ELOOP || error == -EACCES;
}

/* The listing that is known of the job's directory, where that still has the stat it had (`st`,
 * NULL: not looked at yet). */
static bool from_memory(
	struct worker *w, const struct job *j, const struct stat *st, struct vx_dir_memory *ret)
{
	const struct vx_scan_opts *o = w->s->o;
	struct vx_dir_memory d[2];
	struct vx_fstat now;
	struct stat own;
	uint32_t n = 0;
	if (!o->memory && !o->seen)
		return false;
	const char *key =
		*w->s->emit ? vx_arena_printf(w->a, "%s%s", w->s->emit, j->path) : j->path;
	n += o->seen && vx_wtmem_seen_dir(o->seen, key, &d[n]);
	n += o->memory && vx_wtmem_dir(o->memory, key, strlen(key), &d[n]);
	if (n && !st) {
		st = &own;
		if (fstatat(w->s->repo->top_fd, j->len ? j->path : ".", &own, AT_SYMLINK_NOFOLLOW) <
			0)
			return false;
	}
	if (!n || !S_ISDIR(st->st_mode))
		return false;
	vx_fstat_of(st, &now);
	for (uint32_t i = 0; i < n; i++)
		if (vx_fstat_equal(&now, &d[i].st)) {
			*ret = d[i];
			return true;
		}
	return false;
}

static int run_job(struct worker *w, struct job *j)
{
	struct scan *s = w->s;
	const char *path = j->len ? j->path : ".";
	struct vx_dir_memory d = {0};
	if (from_memory(w, j, NULL, &d)) {
		d.has = vx_listing_special(&d);
		remember(w, j, &d, false);
		return on_listing(w, j, &d, s->repo->top_fd);
	}
	struct stat st;
	uint64_t looked_ns = s->o->writer ? vx_wall_ns() : 0;
	VX_CLEANUP_FD int fd =
		vx_open(s->repo->top_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
	int r = fd < 0               ? fd
		: fstat(fd, &st) < 0 ? -errno
				     : vx_listing_read(fd, &w->list, &d.n_names);
	if (r < 0) {
		w->not_all = true;
		return holds_nothing(r) ? 0 : fail(s, r, "cannot be listed", path);
	}
	d.names = w->list.bytes;
	d.bytes = (uint32_t)w->list.n;
	d.has = vx_listing_special(&d);
	vx_fstat_of(&st, &d.st);
	if (!vx_fstat_racy(&d.st, looked_ns))
		remember(w, j, &d, true);
	else
		w->not_all = true;
	return on_listing(w, j, &d, fd);
}

static void *work(void *p)
{
	struct worker *w = p;
	struct job j;
	vx_ignore_begin(&w->budget);
	while (pop(w->s, &j)) {
		if (run_job(w, &j) == 0 && vx_ignore_spent(&w->budget, 0))
			(void)too_much(w, j.path);
		job_done(w->s);
	}
	return NULL;
}

/* Runs the stack empty: the caller's worker and, above one thread, others. */
static void work_all(struct worker *w, uint32_t n)
{
	pthread_t made[64];
	uint32_t k = 0;
	sigset_t all, old;
	if (n > 1) {
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		while (k + 1 < n && k < 64 && pthread_create(&made[k], NULL, work, &w[k + 1]) == 0)
			k++;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	work(w);
	for (uint32_t i = 0; i < k; i++)
		pthread_join(made[i], NULL);
}

static unsigned char look_at(const struct scan *s, const char *path, struct stat *ret)
{
	struct stat st = {0};
	if (fstatat(s->repo->top_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return DT_WHT;
	*ret = st;
	return S_ISDIR(st.st_mode)   ? DT_DIR
	       : S_ISREG(st.st_mode) ? DT_REG
	       : S_ISLNK(st.st_mode) ? DT_LNK
				     : DT_FIFO;
}

static unsigned char type_at(const struct scan *s, const char *path)
{
	struct stat st;
	return look_at(s, path, &st);
}

/* The rules in a directory that is gone through only. Its listing, where one holds, says whether
 * there are any. */
static int enter_passing(struct worker *w, struct job *j, const struct stat *st, const char *up)
{
	struct vx_dir_memory d;
	if (st && from_memory(w, j, st, &d)) {
		d.has = vx_listing_special(&d);
		return enter(w, j, d.has & VX_DIR_IGNORE, d.has & VX_DIR_ATTRS);
	}
	unsigned char ti = type_at(w->s, vx_arena_printf(w->a, "%s.gitignore", up)),
		      ta = type_at(w->s, vx_arena_printf(w->a, "%s.gitattributes", up));
	return enter(w, j, ti == DT_REG, ta == DT_REG);
}

/* Goes down to `dir` one component at a time, as the scan itself would, so that the rules above it
 * count. Leaves its job on the stack. */
static int descend(struct worker *w, const char *dir)
{
	struct scan *s = w->s;
	struct job j = {.path = "",
		.hi = s->repo->index.n,
		.ignore = s->repo->ignore,
		.attrs = s->repo->attrs,
		.attrs_ns = s->repo->attrs_ns};
	/* of the directory that j is about */
	struct stat st = {0};
	/* a submodule in one: the NUL stands for a name */
	j.modules = *s->emit && vx_below_modules(s->emit, strlen(s->emit) + 1);
	for (const char *p = dir; *p;) {
		const char *slash = strchrnul(p, '/');
		if (j.len && j.lo == j.hi &&
			vx_gitrepo_is(
				vx_arena_printf(w->a, "%s/%s", s->repo->git.worktree, j.path))) {
			vx_strlist_add(&w->nested, w->a, emitted(w, j.path, false));
			return 0;
		}
		const char *up = j.len ? vx_arena_printf(w->a, "%s/", j.path) : "";
		int r = enter_passing(w, &j, j.len ? &st : NULL, up);
		if (r)
			return r;
		struct name n = {.s = vx_arena_strndup(w->a, p, (size_t)(slash - p)),
			.len = (uint32_t)(slash - p)};
		n.type = look_at(s, vx_arena_printf(w->a, "%s%s", up, n.s), &st);
		if (*slash && n.type != DT_DIR)
			return 0;
		memcpy(w->path, up, strlen(up));
		r = on_name(w, &j, &n, s->repo->top_fd);
		if (r || !s->n)
			return r; /* nothing there that counts, or a file */
		j = s->stack[0];
		p = *slash ? slash + 1 : slash;
		if (*p)
			s->n = 0;
	}
	if (!*dir)
		push(s, &j);
	return 0;
}

static int file_cmp(const void *a, const void *b)
{
	return strcmp((*(struct vx_file *const *)a)->path, (*(struct vx_file *const *)b)->path);
}

/* Tracked files stand in the order of the index already; the others are sorted and merged in. */
static void gather(struct scan *s, struct worker *w, uint32_t n, uint32_t count,
	struct vx_files *out, struct vx_strlist *nested)
{
	struct vx_files other = {0};
	for (uint32_t i = 0; i < n; i++) {
		for (uint32_t k = 0; k < w[i].untracked.n; k++)
			vx_files_add(&other, w[i].untracked.v[k]);
		for (uint32_t k = 0; k < w[i].nested.n; k++)
			vx_strlist_add(nested, w[0].a, w[i].nested.v[k]);
		for (uint32_t k = 0; k < w[i].n_dirs; k++)
			vx_wtmem_add_dir(s->o->writer, w[i].dirs[k].path, &w[i].dirs[k].d);
		if (s->o->ret_attr_places)
			*s->o->ret_attr_places += w[i].attr_places;
		if (w[i].not_all && s->o->writer)
			vx_wtmem_not_all(s->o->writer);
	}
	if (other.n)
		qsort(other.v, other.n, sizeof(struct vx_file *), file_cmp);
	uint32_t k = 0;
	for (uint32_t i = 0; i < count; i++) {
		struct vx_file *f = &s->tracked[i];
		if (!f->path)
			continue;
		while (k < other.n && strcmp(other.v[k]->path, f->path) < 0)
			vx_files_add(out, other.v[k++]);
		vx_files_add(out, f);
	}
	while (k < other.n)
		vx_files_add(out, other.v[k++]);
	vx_files_free(&other);
}

int vx_scan(const struct vx_repo *r, const char *dir, const struct vx_scan_opts *o,
	struct vx_arena *a, struct vx_files *out, struct vx_strlist *nested, char *why, size_t cap)
{
	uint32_t n = o->extra && o->threads > 1 ? (o->threads > 64 ? 64 : o->threads) : 1;
	struct scan s = {.repo = r, .o = o, .started_ns = vx_wall_ns(), .why = why, .why_cap = cap};
	struct worker *w = vx_xcalloc(n, sizeof *w);
	size_t k = strlen(dir);
	s.emit = *r->mount ? vx_arena_printf(a, "%s/", r->mount) : "";
	s.strip = *r->prefix ? strlen(r->prefix) + 1 : 0;
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.wake, NULL);
	s.first = vx_gitindex_lower(&r->index, 0, r->index.n, dir, k);
	char *after = vx_arena_printf(a, "%s%c", dir, '/' + 1);
	uint32_t end =
		k ? vx_gitindex_lower(&r->index, s.first, r->index.n, after, k + 1) : r->index.n;
	s.tracked = vx_arena_array(a, (size_t)(end - s.first) + 1, sizeof *s.tracked);
	for (uint32_t i = 0; i < n; i++) {
		w[i].s = &s;
		w[i].a = i ? &o->extra[i - 1] : a;
	}
	vx_ignore_begin(&w[0].budget);
	descend(&w[0], dir);
	if (!s.error)
		work_all(w, n);
	if (!s.error)
		gather(&s, w, n, end - s.first, out, nested);
	for (uint32_t i = 0; i < n; i++) {
		vx_files_free(&w[i].untracked);
		free(w[i].dirs);
		free(w[i].list.bytes);
	}
	free(w);
	free(s.stack);
	pthread_cond_destroy(&s.wake);
	pthread_mutex_destroy(&s.lock);
	return s.error;
}

/* FNV-1a, 64 bits. */
uint64_t vx_scan_place(const char *path)
{
	uint64_t h = 0xcbf29ce484222325;
	for (; *path; path++)
		h = (h ^ (unsigned char)*path) * 0x100000001b3;
	return h;
}

/* What descend() does, asking about each directory on the way and then the path itself. */
int vx_scan_ignored(const struct vx_repo *r, const char *path, bool *ret, char *why, size_t cap)
{
	struct vx_arena a = {0};
	struct vx_scan_opts o = {.threads = 1};
	struct scan s = {.repo = r, .o = &o, .emit = "", .why = why, .why_cap = cap};
	struct worker *w = vx_xcalloc(1, sizeof *w);
	struct job j = {.path = "", .hi = r->index.n, .ignore = r->ignore, .attrs = r->attrs};
	pthread_mutex_init(&s.lock, NULL);
	pthread_cond_init(&s.wake, NULL);
	w->s = &s;
	w->a = &a;
	vx_ignore_begin(&w->budget);
	int res = 0;
	for (const char *p = path; *p && res == 0 && !j.ignored;) {
		const char *slash = strchrnul(p, '/');
		char *upto = vx_arena_strndup(&a, path, (size_t)(slash - path));
		unsigned char ti = type_at(
			&s, vx_arena_printf(&a, "%s%s.gitignore", j.path, j.len ? "/" : ""));
		res = enter(w, &j, ti == DT_REG, false);
		if (res)
			break;
		bool is_directory = *slash || type_at(&s, upto) == DT_DIR;
		j.ignored = is_ignored(
			&j, upto, (size_t)(slash - path), (size_t)(p - path), is_directory);
		j.path = upto;
		j.len = (uint32_t)(slash - path);
		p = *slash ? slash + 1 : slash;
	}
	if (res == 0 && vx_ignore_spent(&w->budget, 1))
		res = too_much(w, path);
	if (res == 0)
		*ret = j.ignored;
	free(w);
	pthread_cond_destroy(&s.wake);
	pthread_mutex_destroy(&s.lock);
	vx_arena_free(&a);
	return res;
}
