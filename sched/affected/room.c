/* The room: the files of the commit that are needed as files, and the workspace that they make. See
 * base.h. */
#include "base.h"

#include "../key/key_int.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/glob.h"
#include "vx/limits.h"
#include "vx/lock.h"
#include "vx/path.h"
#include "vx/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_ROUNDS 8 /* loads, until one asks for no further file */

static int make_room(struct base *b)
{
	const char *tmp = getenv("TMPDIR");
	char *path = vx_arena_printf(b->a, "%s/vx-base.XXXXXX", tmp && *tmp == '/' ? tmp : "/tmp");
	char *real = NULL;
	int r = mkdtemp(path) ? 0 : -errno;

	if (r == 0)
		r = vx_path_canon(b->a, path, &real);
	if (r == 0) {
		b->room = real;
		b->room_fd = vx_open(AT_FDCWD, real, O_RDONLY | O_DIRECTORY, 0);
		r = b->room_fd < 0 ? b->room_fd : 0;
	}
	if (r < 0)
		return vx_err_set(b->err, r, "%s cannot be made, for files of %s: %s", path,
			b->since, vx_strerror(r));
	return 0;
}

static int cannot_write(struct base *b, const char *path, int r)
{
	return vx_err_set(b->err, r, "%s of %s cannot be written to %s: %s", path, b->since,
		b->room, vx_strerror(r));
}

/* The directories of a path. 1: something of the commit stands in the place of one. Nothing in the
 * room is reached through a link that the commit holds. */
static int make_dirs(struct base *b, const char *path)
{
	const char *dir = vx_path_dir(b->a, path);

	if (strcmp(dir, ".") == 0)
		return 0;
	for (const char *d = dir; strcmp(d, ".") != 0; d = vx_path_dir(b->a, d))
		if (vx_files_find(&b->files, d))
			return 1;
	int r = vx_mkdir_p(b->room_fd, dir, 0700);
	return r < 0 ? cannot_write(b, path, r) : 0;
}

/* make_dirs for what the commit itself holds. */
static int make_own_dirs(struct base *b, const char *path)
{
	int r = make_dirs(b, path);

	if (r == 1)
		base_cannot_tell(b, vx_arena_printf(b->a,
					    "%s holds a file and a directory of one name around %s",
					    b->since, path));
	return r;
}

static int write_bytes(struct base *b, const char *path, const void *p, size_t n, mode_t mode)
{
	VX_CLEANUP_FD int fd = vx_open_beneath(b->room_fd, path, O_WRONLY | O_CREAT | O_EXCL, mode);
	int r = fd < 0 ? fd : vx_write_full(fd, p, n);

	return r < 0 && r != -EEXIST ? cannot_write(b, path, r) : 0;
}

static int write_file(struct base *b, const char *path, const void *p, size_t n, mode_t mode)
{
	int r = make_own_dirs(b, path);

	return r == 0 ? write_bytes(b, path, p, n, mode) : r < 0 ? r : 0;
}

/* A link that leads out of the workspace, or to what git does not know, leads to what is there
 * now. */
static int write_link(struct base *b, const char *path, const char *target)
{
	const char *dir = vx_path_dir(b->a, path);
	const char *to = vx_path_join(b->a, dir, target);

	if (*target != '/' && (vx_starts_with(to, "..") || !base_holds(&b->files, to)))
		target = vx_path_join(b->a, b->now->root, to);
	int r = make_own_dirs(b, path);
	if (r == 0 && symlinkat(target, b->room_fd, path) < 0 && errno != EEXIST)
		r = cannot_write(b, path, -errno);
	return r < 0 ? r : 0;
}

/* One answer of `git cat-file --batch`; `*at` moves behind it. */
static int take_blob(struct base *b, const struct vx_buf *out, size_t *at, struct tree_file *t)
{
	const char *head = out->data + *at, *nl = memchr(head, '\n', out->len - *at);
	unsigned long long size = 0;
	int r;

	if (!nl || sscanf(head, "%*64s blob %llu", &size) != 1 ||
		(size_t)(nl + 1 - out->data) + size >= out->len) {
		base_cannot_tell(b, vx_arena_printf(b->a, "%s of %s is not in this clone",
					    t->f.path, b->since));
		*at = out->len;
		return 0;
	}
	if (t->f.mode == 0120000)
		r = write_link(b, t->f.path, vx_arena_strndup(b->a, nl + 1, size));
	else
		r = write_file(b, t->f.path, nl + 1, size, t->f.mode & 0777);
	*at = (size_t)(nl + 1 - out->data) + size + 1;
	t->written = true;
	return r;
}

/* What is unchanged is copied from the workspace: a checkout of the commit would have those bytes,
 * which are not the blob's where attributes convert them. */
static int copy_unchanged(struct base *b, struct tree_file *t, bool *ret_done)
{
	const struct vx_file *now = vx_files_find(b->now_files, t->f.path);
	struct vx_buf bytes = VX_BUF(BASE_MAX_BYTES);

	*ret_done = false;
	if (t->f.mode == 0120000 || !now || !now->has_oid || now->mode != t->f.mode ||
		now->oid.n != t->f.oid.n || memcmp(now->oid.b, t->f.oid.b, now->oid.n) != 0)
		return 0;
	if (vx_read_file(AT_FDCWD, vx_path_join(b->a, b->now->root, t->f.path), &bytes) < 0) {
		vx_buf_free(&bytes);
		return 0;
	}
	*ret_done = t->written = true;
	int r = write_file(b, t->f.path, vx_buf_str(&bytes), bytes.len, t->f.mode & 0777);
	vx_buf_free(&bytes);
	return r;
}

/* Writes files, those of one repository at a time: plain ones first, so that none is written
 * through a link. */
static int write_some(struct base *b, const struct vx_files *some, uint32_t repo, bool links)
{
	struct vx_buf names = VX_BUF(BASE_MAX_BYTES), out = VX_BUF(BASE_MAX_BYTES);
	struct vx_files mine = {0};
	size_t at = 0;
	int r = 0;

	for (uint32_t i = 0; i < some->n && r == 0; i++) {
		struct tree_file *t = (struct tree_file *)some->v[i];
		char hex[65];
		bool done;
		if (t->repo != repo || t->written || (t->f.mode == 0120000) != links)
			continue;
		r = copy_unchanged(b, t, &done);
		if (r < 0 || done)
			continue;
		vx_hex(t->f.oid.b, t->f.oid.n, hex);
		vx_buf_printf(&names, "%s\n", hex);
		vx_files_add(&mine, &t->f);
	}
	if (mine.n && r == 0)
		r = vx_git_blobs(&b->git, vx_path_join(b->a, b->now->root, b->repos.v[repo]),
			&names, &out, b->err);
	for (uint32_t i = 0; i < mine.n && r == 0 && !b->untold; i++)
		r = take_blob(b, &out, &at, (struct tree_file *)mine.v[i]);
	vx_files_free(&mine);
	vx_buf_free(&names);
	vx_buf_free(&out);
	return r;
}

static int write_all(struct base *b, const struct vx_files *some)
{
	int r = 0;

	for (int links = 0; links < 2; links++)
		for (uint32_t i = 0; i < b->repos.n && r == 0 && !b->untold; i++)
			r = write_some(b, some, i, links);
	return r;
}

/* ---- what is needed as a file ---- */

bool base_is_program(const char *path)
{
	const char *name = vx_path_base(path);
	uint32_t bit = vx_dir_file_bit(name, strlen(name));

	return (bit & VX_CONFIG_PROGRAMS) || ((bit & VX_WORKSPACE_PROGRAMS) && name == path);
}

/* Read by planning, or by keys from the root. */
static bool is_read(const char *path)
{
	const char *name = vx_path_base(path);

	if (base_is_program(path))
		return false;
	if (vx_dir_file_bit(name, strlen(name)) || strcmp(name, ".gitattributes") == 0)
		return true;
	if (name != path)
		return false;
	for (uint32_t i = 0; i < N_FINGERPRINT; i++)
		if (strcmp(name, vx_fingerprint_names[i]) == 0)
			return true;
	return strcmp(name, VX_LOCK_FILE) == 0;
}

/* Links, since anything may be reached through them, and what they lead to. */
static void add_linked(struct base *b, const struct vx_files *links, struct vx_files *ret)
{
	for (uint32_t i = 0; i < links->n; i++) {
		char target[VX_MAX_PATH];
		if (vx_readlink(b->room_fd, links->v[i]->path, target, sizeof target) < 0)
			continue;
		const char *to = vx_path_join(b->a, vx_path_dir(b->a, links->v[i]->path), target);
		struct vx_file *f = vx_files_find(&b->files, to);
		if (f && f->mode != 0120000)
			vx_files_add(ret, f);
		else if (*target != '/' && base_holds(&b->files, to))
			(void)make_dirs(b, vx_arena_printf(b->a, "%s/.", to));
	}
}

static int write_read(struct base *b)
{
	struct vx_files some = {0}, links = {0}, linked = {0};

	for (uint32_t i = 0; i < b->files.n; i++) {
		struct vx_file *f = b->files.v[i];
		if (f->mode == 0120000)
			vx_files_add(&links, f);
		if (f->mode == 0120000 || is_read(f->path))
			vx_files_add(&some, f);
	}
	int r = write_all(b, &some);
	if (r == 0 && !b->untold) {
		add_linked(b, &links, &linked);
		r = write_all(b, &linked);
	}
	vx_files_free(&some);
	vx_files_free(&links);
	vx_files_free(&linked);
	return r;
}

static int copy_ignored(struct base *b, const char *dir, const char *name);

/* A link as it is, and the file of the workspace that it leads to. */
static int copy_ignored_link(struct base *b, const char *path, const char *target)
{
	const char *dir = vx_path_dir(b->a, path), *to = vx_path_join(b->a, dir, target);
	int r = make_dirs(b, path);

	if (r == 0 && symlinkat(target, b->room_fd, path) < 0)
		/* there already: it has been followed */
		return errno == EEXIST ? 0 : cannot_write(b, path, -errno);
	if (r != 0)
		return r < 0 ? r : 0;
	return *target == '/' || vx_starts_with(to, "..") ? 0 : copy_ignored(b, ".", to);
}

/* A file that git knows neither now nor in the commit: it is what it is. */
static int copy_ignored(struct base *b, const char *dir, const char *name)
{
	const char *path = strcmp(dir, ".") == 0 ? name : vx_arena_printf(b->a, "%s/%s", dir, name);
	struct vx_buf bytes = VX_BUF(BASE_MAX_BYTES);
	char target[VX_MAX_PATH];

	if (vx_files_find(b->now_files, path) || vx_files_find(&b->files, path))
		return 0;
	if (vx_readlink(AT_FDCWD, vx_arena_printf(b->a, "%s/%s", b->now->root, path), target,
		    sizeof target) >= 0)
		return copy_ignored_link(b, path, target);
	int r = vx_read_file(AT_FDCWD, vx_arena_printf(b->a, "%s/%s", b->now->root, path), &bytes);
	/* (else it is gone meanwhile, or nothing that is read) */
	r = r == 0 ? make_dirs(b, path) : 1;
	if (r == 0)
		r = write_bytes(b, path, vx_buf_str(&bytes), bytes.len, 0600);
	else if (r > 0)
		r = 0;
	vx_buf_free(&bytes);
	return r;
}

static int copy_all_ignored(struct base *b)
{
	int r = 0;

	for (uint32_t p = 0; p <= b->now->n_projects && r == 0; p++) {
		bool root = p == b->now->n_projects;
		uint32_t files = root ? b->now->root_files : b->now->projects[p].files;
		for (uint32_t bit = 1; bit && bit <= files && r == 0; bit <<= 1) {
			const char *name = files & bit ? vx_dir_file_name(bit) : NULL;
			if (name && !base_is_program(name))
				r = copy_ignored(b, root ? "." : b->now->projects[p].dir, name);
		}
	}
	for (uint32_t i = 0; i < N_FINGERPRINT && r == 0; i++)
		r = copy_ignored(b, ".", vx_fingerprint_names[i]);
	return r;
}

/* Configurations that are programs are there by name: what they say is given. */
static int touch_programs(struct base *b, const struct vx_evaluations *evaluated)
{
	int r = 0;

	for (uint32_t i = 0; i < evaluated->n && r == 0; i++)
		r = write_file(b, evaluated->v[i].file, "", 0, 0600);
	return r;
}

/* Files that the commit has and that the load has asked for in vain. */
static void add_missed(struct base *b, const struct vx_facts *facts, struct vx_files *ret)
{
	for (uint32_t i = 0; i < facts->n; i++) {
		const char *rel = facts->v[i].kind == VX_SEEN_ABSENT
					  ? vx_path_below(facts->v[i].path, b->room)
					  : NULL;
		struct vx_file *f = rel && *rel ? vx_files_find(&b->files, rel) : NULL;
		if (f && !base_is_program(rel) && !((struct tree_file *)f)->written)
			vx_files_add(ret, f);
	}
}

struct globals {
	struct base *b;
	int r;
};

static int global_found(void *arg, const struct vx_glob_hit *h)
{
	struct globals *g = arg;

	if (h->type == VX_GLOB_FILE || h->type == VX_GLOB_LINK)
		g->r = copy_ignored(g->b, ".", vx_arena_strndup(g->b->a, h->path, h->len));
	return g->r;
}

/* globalDependencies are read from the disk: those of the commit, and ignored files. */
static int write_globals(struct base *b)
{
	struct vx_globset *set;
	struct vx_files some = {0};
	struct globals g = {.b = b};

	if (!b->ws.settings.turbo || !b->ws.settings.global_files.n)
		return 0;
	int r = vx_globset_compile(
		b->ws.settings.global_files, VX_DIALECT_TURBO, b->a, &set, b->err);
	for (uint32_t i = 0; r == 0 && i < b->files.n; i++)
		if (vx_globset_match(set, b->files.v[i]->path, b->files.v[i]->len))
			vx_files_add(&some, b->files.v[i]);
	if (r == 0)
		r = write_all(b, &some);
	vx_files_free(&some);
	if (r < 0 || b->untold)
		return r;
	VX_CLEANUP_FD int root = vx_open(AT_FDCWD, b->now->root, O_RDONLY | O_DIRECTORY, 0);
	r = root < 0 ? root : vx_globset_walk(set, root, global_found, &g);
	if (g.r < 0 || r == 0)
		return g.r;
	return vx_err_set(
		b->err, r, "globalDependencies of %s cannot be read: %s", b->since, vx_strerror(r));
}

static int load(struct base *b, const struct vx_evaluations *evaluated, bool frozen,
	struct vx_facts *facts, struct vx_err *err)
{
	vx_map_free(&b->ws.by_name);
	vx_map_free(&b->ws.by_dir);
	b->ws = (struct vx_workspace){0};
	vx_facts_init(facts, b->a);
	vx_facts_use(facts);
	int r = frozen ? vx_lock_read(b->room, b->a, &b->ws, err)
		       : vx_workspace_load(b->room, b->a, &b->ws, err);
	if (r == 0 && !frozen)
		r = vx_config_load_as(&b->ws, b->a, evaluated, NULL, err);
	vx_facts_use(NULL);
	return r;
}

int base_load(struct base *b, const struct vx_evaluations *evaluated, bool frozen)
{
	int r = make_room(b);

	if (r == 0)
		r = write_read(b);
	if (r == 0 && !b->untold)
		r = copy_all_ignored(b);
	if (r == 0 && !b->untold)
		r = touch_programs(b, evaluated);
	for (int round = 0; r == 0 && !b->untold; round++) {
		struct vx_facts facts = {0};
		struct vx_files missed = {0};
		struct vx_err err = {0};
		int loaded = load(b, evaluated, frozen, &facts, &err);
		add_missed(b, &facts, &missed);
		bool again = missed.n && round < MAX_ROUNDS;
		r = again ? write_all(b, &missed) : 0;
		vx_files_free(&missed);
		if (again)
			continue;
		if (loaded < 0)
			base_cannot_tell(
				b, vx_arena_printf(b->a, "the workspace of %s cannot be loaded: %s",
					   b->since, base_said(b, &err)));
		break;
	}
	return r < 0 || b->untold ? r : write_globals(b);
}

void base_free(struct base *b)
{
	vx_map_free(&b->ws.by_name);
	vx_map_free(&b->ws.by_dir);
	vx_files_free(&b->files);
	if (!b->room)
		return;
	vx_close(b->room_fd);
	(void)vx_rm_rf(AT_FDCWD, b->room);
}
