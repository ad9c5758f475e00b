/* Making the memory of a run that had nothing to do. See vx/unchanged.h. */
#include "unchanged_int.h"

#include "../worktree/files.h"
#include "question.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/path.h"
#include "vx/state.h"
#include "vx/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void vx_unchanged_begin(struct vx_unchanged *u)
{
	struct stat st;
	u->broken = u->off;
	u->n_dirs = u->n_files = u->n_facts = 0;
	u->absent.n = u->env.n = 0;
	vx_map_free(&u->dir_of);
	vx_buf_clear(&u->facts);
	vx_close(u->root_fd);
	u->root_fd = vx_open(AT_FDCWD, u->root, O_PATH | O_DIRECTORY, 0);
	u->broken |= u->root_fd < 0 || fstat(u->root_fd, &st) < 0;
	if (!u->broken)
		u->dev = st.st_dev;
}

static struct item *more(struct item **v, uint32_t *n, uint32_t *cap)
{
	if (*n == *cap) {
		*cap = *cap ? *cap * 2 : 1024;
		*v = vx_xrealloc(*v, *cap * sizeof **v);
	}
	return &(*v)[(*n)++];
}

static void add_dir(struct vx_unchanged *u, const char *path, const struct vx_unchanged_stat *st)
{
	uint32_t at = vx_map_get(&u->dir_of, path, strlen(path));
	if (at != VX_MAP_NONE) {
		const struct vx_unchanged_stat *was = &u->dirs[at].st;
		u->broken |= was->ino != st->ino || was->mtime_ns != st->mtime_ns ||
			     was->ctime_ns != st->ctime_ns;
		return;
	}
	struct item *d = more(&u->dirs, &u->n_dirs, &u->cap_dirs);
	*d = (struct item){
		.path = vx_arena_strdup(&u->a, path), .len = (uint32_t)strlen(path), .st = *st};
	d->st.size = 0;
	vx_map_put(&u->dir_of, d->path, d->len, u->n_dirs - 1);
}

void vx_unchanged_item(struct vx_unchanged *u, const char *path, bool directory,
	const struct vx_unchanged_stat *st)
{
	if (u->broken)
		return;
	if (directory) {
		add_dir(u, path, st);
		return;
	}
	struct item *f = more(&u->files, &u->n_files, &u->cap_files);
	*f = (struct item){
		.path = vx_arena_strdup(&u->a, path), .len = (uint32_t)strlen(path), .st = *st};
}

void vx_unchanged_absent(struct vx_unchanged *u, const char *path)
{
	vx_strlist_add(&u->absent, &u->a, vx_arena_strdup(&u->a, path));
}

const struct item *vx_unchanged_known_dir(
	const struct vx_unchanged *u, const char *path, size_t len)
{
	uint32_t at = len ? vx_map_get(&u->dir_of, path, len) : vx_map_get(&u->dir_of, ".", 1);
	return at == VX_MAP_NONE ? NULL : &u->dirs[at];
}

void vx_unchanged_look(struct vx_unchanged *u, const char *path)
{
	struct stat st;
	struct vx_fstat f;
	if (u->broken)
		return;
	if (fstatat(u->root_fd, path, &st, AT_SYMLINK_NOFOLLOW) < 0 || st.st_dev != u->dev) {
		u->broken = true;
		return;
	}
	vx_fstat_of(&st, &f);
	u->broken |= vx_fstat_racy(&f, u->started_ns);
	vx_unchanged_item(u, path, S_ISDIR(st.st_mode),
		&(struct vx_unchanged_stat){f.ino, f.size, f.mtime_ns, f.ctime_ns});
}

void vx_unchanged_fact(struct vx_unchanged *u, const struct vx_seen *seen)
{
	u->broken |= vx_fact_young(seen, u->started_ns);
	vx_fact_put(&u->facts, seen);
	u->n_facts++;
}

/* It is not there now; it was not there during the run either when the directory that would hold it
 * is older than the run. */
static bool long_absent(const struct vx_unchanged *u, const char *path)
{
	struct vx_arena a = {0};
	struct stat st;
	struct vx_fstat f;
	const char *up = path;
	do
		up = vx_path_dir(&a, up);
	while (stat(up, &st) < 0 && strcmp(up, "/") != 0);
	vx_fstat_of(&st, &f);
	vx_arena_free(&a);
	return !vx_fstat_racy(&f, u->started_ns);
}

void vx_unchanged_outside(struct vx_unchanged *u, const char *path)
{
	struct stat st;
	struct vx_seen seen = {.path = path, .kind = VX_SEEN_FILE};
	if (u->broken)
		return;
	if (stat(path, &st) == 0) {
		vx_seen_stat_of(&st, &seen.st);
	} else if ((errno == ENOENT || errno == ENOTDIR) && long_absent(u, path)) {
		seen.kind = VX_SEEN_ABSENT;
	} else {
		u->broken = true;
		return;
	}
	vx_unchanged_fact(u, &seen);
}

uint32_t vx_unchanged_dir(struct vx_unchanged *u, const char *path, size_t len)
{
	for (size_t n = len;;) { /* those above it first or last, it is all one */
		const char *at = n ? vx_arena_strndup(&u->a, path, n) : ".";
		if (!vx_unchanged_known_dir(u, at, n))
			vx_unchanged_look(u, at);
		if (!n || u->broken)
			break;
		const char *slash = memrchr(path, '/', n);
		n = slash ? (size_t)(slash - path) : 0;
	}
	const struct item *d = u->broken ? NULL : vx_unchanged_known_dir(u, path, len);
	u->broken |= !d;
	return d ? (uint32_t)(d - u->dirs) : 0;
}

static size_t dir_len(const char *path)
{
	const char *slash = strrchr(path, '/');
	return slash ? (size_t)(slash - path) : 0;
}

static void finish_absences(struct vx_unchanged *u)
{
	for (uint32_t i = 0; i < u->absent.n && !u->broken; i++) {
		const char *path = u->absent.v[i];
		if (!vx_unchanged_known_dir(u, path, dir_len(path)))
			vx_unchanged_fact(u, &(struct vx_seen){.path = vx_arena_printf(&u->a,
								       "%s/%s", u->root, path),
						     .kind = VX_SEEN_ABSENT});
	}
}

static int dir_cmp(const void *a, const void *b)
{
	return strcmp(((const struct item *)a)->path, ((const struct item *)b)->path);
}

static int file_cmp(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return x->dir != y->dir ? (x->dir < y->dir ? -1 : 1) : strcmp(x->path, y->path);
}

/* Directories in order, files behind them in theirs, each once. */
static void arrange(struct vx_unchanged *u)
{
	for (uint32_t i = 0; i < u->n_files && !u->broken; i++)
		vx_unchanged_dir(u, u->files[i].path, dir_len(u->files[i].path));
	for (uint32_t i = 0, n = u->n_dirs; i < n && !u->broken;
		i++) /* no directory without those above it */
		if (strcmp(u->dirs[i].path, ".") != 0)
			vx_unchanged_dir(u, u->dirs[i].path, dir_len(u->dirs[i].path));
	if (u->broken)
		return;
	qsort(u->dirs, u->n_dirs, sizeof *u->dirs, dir_cmp);
	vx_map_free(&u->dir_of);
	for (uint32_t i = 0; i < u->n_dirs; i++)
		vx_map_put(&u->dir_of, u->dirs[i].path, u->dirs[i].len, i);
	for (uint32_t i = 0; i < u->n_files && !u->broken; i++)
		u->files[i].dir = vx_unchanged_dir(u, u->files[i].path, dir_len(u->files[i].path));
	if (u->n_files)
		qsort(u->files, u->n_files, sizeof *u->files, file_cmp);
	uint32_t w = 0;
	for (uint32_t i = 0; i < u->n_files; i++) {
		if (w && file_cmp(&u->files[w - 1], &u->files[i]) == 0)
			u->broken |= memcmp(&u->files[w - 1].st, &u->files[i].st,
					     sizeof u->files[i].st) != 0;
		else
			u->files[w++] = u->files[i];
	}
	u->n_files = w;
}

static uint32_t put_text(struct vx_buf *text, const char *s)
{
	uint32_t at = (uint32_t)text->len;
	vx_buf_add(text, s, strlen(s) + 1);
	return at;
}

static void put_items(const struct vx_unchanged *u, struct vx_buf *out, struct vx_buf *text)
{
	uint32_t f = 0;
	for (uint32_t i = 0; i < u->n_dirs; i++) {
		const struct item *d = &u->dirs[i];
		struct kept_dir k = {.ino = d->st.ino,
			.mtime_ns = d->st.mtime_ns,
			.ctime_ns = d->st.ctime_ns,
			.first = f};
		for (; f < u->n_files && u->files[f].dir == i; f++)
			k.n++;
		k.path_at = put_text(text, d->path);
		vx_buf_add(out, &k, sizeof k);
	}
	for (uint32_t i = 0; i < u->n_files; i++) {
		const struct item *x = &u->files[i];
		struct kept_file k = {.ino = x->st.ino,
			.size = x->st.size,
			.mtime_ns = x->st.mtime_ns,
			.ctime_ns = x->st.ctime_ns};
		size_t at = dir_len(x->path);
		k.name_at = put_text(text, x->path + (at ? at + 1 : 0));
		vx_buf_add(out, &k, sizeof k);
	}
}

static int write_file(const struct vx_unchanged *u, const struct vx_buf *out)
{
	VX_CLEANUP_FD int dir = vx_open_beneath(u->root_fd, ".vx", O_PATH | O_DIRECTORY, 0);
	if (dir < 0)
		return dir == -ENOENT ? 0 : dir;
	if (vx_secrets_in(out->data, out->len))
		return 0;
	return vx_write_file_atomic(dir, "unchanged", out->data, out->len, 0600);
}

int vx_unchanged_keep(struct vx_unchanged *u, const struct vx_unchanged_answer *a)
{
	finish_absences(u);
	arrange(u);
	struct vx_digest asked = u->asked;
	if (u->broken || u->facts.overflow || !u->n_dirs ||
		vx_state_bind(u->root, true, &asked) < 0)
		return 0;
	struct vx_buf out = VX_BUF(VX_UNCHANGED_MAX_BYTES),
		      text = VX_BUF((uint64_t)UINT32_MAX >> 1);
	struct kept_head h = {.magic = UNCHANGED_MAGIC,
		.build = u->build,
		.asked = asked,
		.env = u->env_digest,
		.made_ns = u->started_ns};
	h.dev = u->dev;
	h.saved_ns = a->saved_ns;
	memcpy(h.store, a->store, sizeof h.store);
	h.n_dirs = u->n_dirs;
	h.n_files = u->n_files;
	h.n_facts = u->n_facts;
	h.n_env = u->env.n;
	h.n_tasks = a->n_tasks;
	h.n_projects = a->n_projects;
	h.broad = a->broad;
	h.whole_env = u->whole_env;
	h.env_at = 0;
	for (uint32_t i = 0; i < u->env.n; i++)
		put_text(&text, u->env.v[i]);
	h.root_at = put_text(&text, u->root);
	h.store_dir_at = put_text(&text, a->store_dir);
	h.printed_at = (uint32_t)text.len;
	h.printed_n = (uint32_t)a->printed_n;
	vx_buf_add(&text, a->printed_n ? a->printed : "", a->printed_n);
	vx_buf_addc(&text, '\0');
	vx_buf_add(&out, &h, sizeof h);
	put_items(u, &out, &text);
	h.facts_at = out.len;
	vx_buf_add(&out, vx_buf_str(&u->facts), u->facts.len);
	h.text_at = out.len;
	vx_buf_add(&out, vx_buf_str(&text), text.len);
	int r = 0;
	if (!out.overflow && !text.overflow) {
		h.bytes = out.len;
		h.sum = vx_question_sum(out.data + sizeof h, out.len - sizeof h);
		memcpy(out.data, &h, sizeof h);
		r = write_file(u, &out);
	}
	vx_buf_free(&out);
	vx_buf_free(&text);
	return r;
}
