/* The files of the commit, and its room. See base.h. */
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
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_TREE_BYTES ((size_t)1 << 30) /* what `git ls-tree` prints of one repository */
#define MAX_ROOM_BYTES ((size_t)1 << 30) /* what is written of one repository at a time */
#define MAX_NESTED 32U                   /* submodules inside submodules */
#define MAX_ROUNDS 8                     /* loads, until one asks for no further file */

static void cannot_tell(struct base *b, const char *why)
{
	if (!b->untold)
		b->untold = why;
}

bool base_holds(const struct vx_files *t, const char *path)
{
	uint32_t lo, hi;

	if (vx_files_find(t, path))
		return true;
	vx_files_below(t, path, &lo, &hi);
	return lo < hi;
}

/* ---- trees ---- */

static int list_repo(struct base *b, const char *dir, const char *commit, uint32_t depth);

/* A submodule. Where it is not checked out it has no files, then as now. git is started only in one
 * that the index around it records. */
static int list_submodule(struct base *b, const char *dir, const char *commit, uint32_t depth)
{
	struct vx_recorded now;

	if (!vx_source_has_repository(b->now_source, dir))
		return 0;
	if (!vx_source_recorded(b->now_source, dir, &now) || now.mode != 0160000)
		cannot_tell(b, vx_arena_printf(b->a, "%s is a submodule in %s, and is none now",
				       dir, b->since));
	else if (depth == MAX_NESTED)
		cannot_tell(b, vx_arena_printf(b->a, "%s: submodules are nested more than %u deep",
				       dir, MAX_NESTED));
	else
		return list_repo(b, dir, commit, depth + 1);
	return 0;
}

/* Names that no checkout has: a tree that holds one was made by hand. */
static bool is_odd(const char *path)
{
	for (const char *p = path;; p++) {
		size_t n = strcspn(p, "/");
		if (n == 0 || (n == 1 && *p == '.') || (n == 2 && !memcmp(p, "..", 2)) ||
			(n == 4 && !strncasecmp(p, ".git", 4)))
			return true;
		p += n;
		if (!*p)
			return false;
	}
}

/* "MODE TYPE ID<TAB>PATH" */
static int read_entry(
	struct base *b, const char *entry, const char *dir, uint32_t repo, uint32_t depth)
{
	const char *tab = strchr(entry, '\t'), *id = tab;
	uint32_t mode = (uint32_t)strtoul(entry, NULL, 8);

	while (id && id > entry && id[-1] != ' ')
		id--;
	if (!id || id == entry || is_odd(tab + 1)) {
		cannot_tell(b, vx_arena_printf(b->a, "%s holds what vx does not understand: %.80s",
				       b->since, entry));
		return 0;
	}
	size_t hex = (size_t)(tab - id);
	const char *path = *dir ? vx_arena_printf(b->a, "%s/%s", dir, tab + 1)
				: vx_arena_strdup(b->a, tab + 1);
	if (strlen(path) >= VX_MAX_PATH) {
		cannot_tell(b, vx_arena_printf(b->a, "%s has a path of more than %u bytes",
				       b->since, VX_MAX_PATH - 1));
		return 0;
	}
	if (mode == 0160000)
		return list_submodule(b, path, vx_arena_strndup(b->a, id, hex), depth);
	struct tree_file *t = vx_arena_alloc(b->a, sizeof *t);
	t->repo = repo;
	t->f = (struct vx_file){.path = path,
		.len = (uint32_t)strlen(path),
		.mode = mode == 0120000 ? mode
			: mode & 0111   ? 0100755
					: 0100644,
		.tracked = true,
		.has_oid = true,
		.oid.n = (uint8_t)(hex / 2)};
	if (hex != 2 * (size_t)b->kind || vx_unhex(id, hex / 2, t->f.oid.b) < 0)
		cannot_tell(b, vx_arena_printf(b->a, "%s has object names of another kind",
				       *dir ? dir : b->since));
	vx_files_add(&b->files, &t->f);
	return 0;
}

static int list_repo(struct base *b, const char *dir, const char *commit, uint32_t depth)
{
	const char *cwd = *dir ? vx_arena_printf(b->a, "%s/%s", b->now->root, dir) : b->now->root;
	const char *const args[] = {"ls-tree", "-r", "-z", commit, NULL};
	struct vx_buf out = VX_BUF(MAX_TREE_BYTES), errout = VX_BUF(64U << 10);
	uint32_t repo = b->repos.n;
	int status = 0;

	vx_strlist_add(&b->repos, b->a, dir);
	int r = vx_git_run(&b->git, cwd, args, &out, &errout, &status, b->err);
	if (r == 0 && status != 0 && *dir)
		cannot_tell(b, vx_arena_printf(b->a,
				       "the submodule %s does not have its commit of %s, %.12s",
				       dir, b->since, commit));
	else if (r == 0 && status != 0)
		cannot_tell(
			b, vx_arena_printf(b->a, "git cannot list %s: %.*s", b->since,
				   (int)strcspn(vx_buf_str(&errout), "\n"), vx_buf_str(&errout)));
	for (size_t at = 0; r == 0 && status == 0 && at < out.len;) {
		r = read_entry(b, out.data + at, dir, repo, depth);
		at += strlen(out.data + at) + 1;
	}
	vx_buf_free(&out);
	vx_buf_free(&errout);
	return r;
}

int base_list(struct base *b)
{
	int r = list_repo(b, "", b->commit, 0);

	vx_files_sort_unique(&b->files);
	return r;
}

/* ---- the room ---- */

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

/* Nothing in the room is reached through a link that the commit holds. */
static int write_file(struct base *b, const char *path, const void *p, size_t n, mode_t mode)
{
	const char *dir = vx_path_dir(b->a, path);

	for (const char *d = dir; strcmp(d, ".") != 0; d = vx_path_dir(b->a, d))
		if (vx_files_find(&b->files, d)) {
			cannot_tell(b, vx_arena_printf(b->a, "%s holds %s twice", b->since, d));
			return 0;
		}
	int r = strcmp(dir, ".") != 0 ? vx_mkdir_p(b->room_fd, dir, 0700) : 0;
	VX_CLEANUP_FD int fd =
		r < 0 ? r : vx_open_beneath(b->room_fd, path, O_WRONLY | O_CREAT | O_EXCL, mode);
	r = fd < 0 ? fd : vx_write_full(fd, p, n);
	return r < 0 && r != -EEXIST ? cannot_write(b, path, r) : 0;
}

/* A link that leads out of the workspace, or to what git does not know, leads to what is there
 * now. */
static int write_link(struct base *b, const char *path, const char *target)
{
	const char *dir = vx_path_dir(b->a, path);
	const char *to = vx_path_join(b->a, dir, target);

	if (*target != '/' && (vx_starts_with(to, "..") || !base_holds(&b->files, to)))
		target = vx_path_join(b->a, b->now->root, to);
	int r = strcmp(dir, ".") != 0 ? vx_mkdir_p(b->room_fd, dir, 0700) : 0;
	if (r == 0 && symlinkat(target, b->room_fd, path) < 0 && errno != EEXIST)
		r = -errno;
	return r < 0 ? cannot_write(b, path, r) : 0;
}

/* One answer of `git cat-file --batch`; `*at` moves behind it. */
static int take_blob(struct base *b, const struct vx_buf *out, size_t *at, struct tree_file *t)
{
	const char *head = out->data + *at, *nl = memchr(head, '\n', out->len - *at);
	unsigned long long size = 0;
	int r;

	if (!nl || sscanf(head, "%*64s blob %llu", &size) != 1 ||
		(size_t)(nl + 1 - out->data) + size >= out->len) {
		cannot_tell(b, vx_arena_printf(
				       b->a, "%s of %s is not in this clone", t->f.path, b->since));
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

int base_text(struct base *b, const struct vx_file *f, struct vx_buf *out)
{
	const struct tree_file *t = (const struct tree_file *)f;
	struct vx_buf name = VX_BUF(256), answer = VX_BUF(MAX_ROOM_BYTES);
	char hex[65];

	vx_hex(f->oid.b, f->oid.n, hex);
	vx_buf_printf(&name, "%s\n", hex);
	int r = vx_git_blobs(&b->git, vx_path_join(b->a, b->now->root, b->repos.v[t->repo]), &name,
		&answer, b->err);
	const char *nl = r == 0 ? memchr(answer.data, '\n', answer.len) : NULL;
	unsigned long long size = 0;
	if (r == 0 && (!nl || sscanf(answer.data, "%*64s blob %llu", &size) != 1 ||
			      (size_t)(nl + 1 - answer.data) + size >= answer.len))
		cannot_tell(b,
			vx_arena_printf(b->a, "%s of %s is not in this clone", f->path, b->since));
	else if (r == 0)
		vx_buf_add(out, nl + 1, size);
	vx_buf_free(&name);
	vx_buf_free(&answer);
	return r;
}

/* What is unchanged is copied from the workspace: a checkout of the commit would have those bytes,
 * which are not the blob's where attributes convert them. */
static int copy_unchanged(struct base *b, struct tree_file *t, bool *ret_done)
{
	const struct vx_file *now = vx_files_find(b->now_files, t->f.path);
	struct vx_buf bytes = VX_BUF(MAX_ROOM_BYTES);

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
	struct vx_buf names = VX_BUF(MAX_TREE_BYTES), out = VX_BUF(MAX_ROOM_BYTES);
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
			(void)vx_mkdir_p(b->room_fd, to, 0700);
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

/* A file that git knows neither now nor in the commit: it is what it is. */
static int copy_ignored(struct base *b, const char *dir, const char *name)
{
	const char *path = strcmp(dir, ".") == 0 ? name : vx_arena_printf(b->a, "%s/%s", dir, name);
	struct vx_buf bytes = VX_BUF(MAX_ROOM_BYTES);

	if (vx_files_find(b->now_files, path) || vx_files_find(&b->files, path))
		return 0;
	int r = vx_read_file(AT_FDCWD, vx_arena_printf(b->a, "%s/%s", b->now->root, path), &bytes);
	if (r == 0)
		r = write_file(b, path, vx_buf_str(&bytes), bytes.len, 0600);
	else /* gone meanwhile, or nothing that is read */
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
			cannot_tell(
				b, vx_arena_printf(b->a, "the workspace of %s cannot be loaded: %s",
					   b->since, err.what));
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
