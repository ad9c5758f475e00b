/* Reading and proving the memory of a run that had nothing to do. See vx/unchanged.h. */
#include "unchanged_int.h"

#include "../worktree/files.h"
#include "question.h"
#include "seed.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/key.h"
#include "vx/limits.h"
#include "vx/state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define BY_DESCRIPTOR 6 /* files of a directory from which opening it pays */
#define CHUNK 16

static const char *text_of(const struct vx_unchanged *u, uint32_t at)
{
	const struct kept_head *h = (const void *)u->map;
	/* the text ends with a NUL, so whatever `at` says below its length is a string */
	return u->map + h->text_at + at;
}

/* Do the parts lie where the head says, one after another, and end with a NUL? */
static bool sane(const struct vx_unchanged *u)
{
	const struct kept_head *h = (const void *)u->map;
	uint64_t dirs = (uint64_t)h->n_dirs * sizeof(struct kept_dir),
		 files = (uint64_t)h->n_files * sizeof(struct kept_file);
	uint64_t text = h->bytes > h->text_at ? h->bytes - h->text_at : 0;
	return h->bytes == u->map_bytes && h->facts_at == sizeof *h + dirs + files &&
	       h->facts_at <= h->text_at && h->facts_at % 8 == 0 && text &&
	       u->map[h->bytes - 1] == 0 && h->env_at < text && h->store_dir_at < text &&
	       h->root_at < text && h->n_dirs && h->printed_at <= text &&
	       h->printed_n < text - h->printed_at &&
	       (uint64_t)h->n_facts * sizeof(struct vx_fact) <= h->text_at - h->facts_at;
}

static bool map_file(struct vx_unchanged *u)
{
	struct stat st;
	VX_CLEANUP_FD int root = vx_open(AT_FDCWD, u->root, O_PATH | O_DIRECTORY, 0);
	VX_CLEANUP_FD int fd = root < 0 ? root
					: vx_open_beneath(root, ".vx/unchanged",
						  O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
		(st.st_mode & 022))
		return false;
	if (st.st_size < (off_t)sizeof(struct kept_head) ||
		(uint64_t)st.st_size > VX_UNCHANGED_MAX_BYTES)
		return false;
	/* Never changed in place, only replaced: what is mapped stays. */
	void *p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0);
	if (p == MAP_FAILED)
		return false;
	u->map = p;
	u->map_bytes = (uint64_t)st.st_size;
	const struct kept_head *h = p;
	return h->magic == UNCHANGED_MAGIC && memcmp(&h->build, &u->build, sizeof u->build) == 0 &&
	       memcmp(&h->asked, &u->bound, sizeof u->bound) == 0 && sane(u) &&
	       strcmp(text_of(u, h->root_at), u->root) == 0;
}

static void unmap(struct vx_unchanged *u)
{
	if (u->map)
		munmap((void *)(uintptr_t)u->map, u->map_bytes);
	u->map = NULL;
}

struct vx_unchanged *vx_unchanged_open(const char *root, struct vx_strs asked)
{
	struct vx_unchanged *u = vx_xcalloc(1, sizeof *u);
	const char *off = getenv("VX_NO_SNAPSHOT");
	uint32_t layout[] = {UNCHANGED_LAYOUT, VX_KEY_VERSION, sizeof(struct kept_head)};
	u->root = vx_arena_strdup(&u->a, root);
	u->root_fd = -1;
	u->facts = VX_BUF(VX_UNCHANGED_MAX_BYTES);
	u->started_ns = vx_wall_ns();
	u->off = (off && *off && !vx_streq(off, "0")) ||
		 !vx_question_build(layout, sizeof layout / sizeof *layout, &u->build);
	if (u->off)
		return u;
	vx_question_of(root, asked, &u->asked);
	u->bound = u->asked;
	if (vx_state_bind(root, false, &u->bound) < 0 || !map_file(u)) {
		unmap(u);
		return u;
	}
	const struct kept_head *h = (const void *)u->map;
	u->answer = (struct vx_unchanged_answer){.n_tasks = h->n_tasks,
		.n_projects = h->n_projects,
		.saved_ns = h->saved_ns,
		.store_dir = text_of(u, h->store_dir_at),
		.broad = h->broad != 0,
		.printed = text_of(u, h->printed_at),
		.printed_n = h->printed_n};
	memcpy(u->answer.store, h->store, sizeof h->store);
	return u;
}

const struct vx_unchanged_answer *vx_unchanged_found(const struct vx_unchanged *u)
{
	return u->map ? &u->answer : NULL;
}

void vx_unchanged_close(struct vx_unchanged *u)
{
	if (!u)
		return;
	unmap(u);
	vx_close(u->root_fd);
	free(u->dirs);
	free(u->files);
	vx_map_free(&u->dir_of);
	vx_buf_free(&u->facts);
	vx_arena_free(&u->a);
	free(u);
}

struct proof {
	const struct vx_unchanged *u;
	const struct kept_head *h;
	const struct kept_dir *dirs;
	const struct kept_file *files;
	const char **facts;
	uint64_t text_bytes;
	_Atomic bool broken;
};

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

static bool same(
	const struct stat *st, uint64_t dev, uint64_t ino, uint64_t mtime_ns, uint64_t ctime_ns)
{
	return st->st_ino == ino && ns_of(st->st_mtim) == mtime_ns &&
	       ns_of(st->st_ctim) == ctime_ns && st->st_dev == dev;
}

static bool file_holds(const struct proof *p, const struct kept_file *f, int fd, const char *path)
{
	struct stat st;
	return fstatat(fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
	       same(&st, p->h->dev, f->ino, f->mtime_ns, f->ctime_ns) &&
	       (uint64_t)st.st_size == f->size;
}

/* A directory and its files. The current directory is the root; many files are looked up from a
 * descriptor of their directory, which has a shorter way. */
static bool dir_holds(const struct proof *p, const struct kept_dir *d)
{
	char path[VX_MAX_PATH];
	struct stat st;
	if (d->path_at >= p->text_bytes || d->first > p->h->n_files ||
		d->n > p->h->n_files - d->first)
		return false;
	const char *at = text_of(p->u, d->path_at);
	size_t n = strlen(at);
	if (n + 2 > sizeof path)
		return false;
	bool by_fd = d->n >= BY_DESCRIPTOR;
	VX_CLEANUP_FD int fd =
		by_fd ? vx_open(AT_FDCWD, at, O_PATH | O_DIRECTORY | O_NOFOLLOW, 0) : -1;
	int r = by_fd ? (fd < 0 ? -1 : fstat(fd, &st))
		      : fstatat(AT_FDCWD, at, &st, AT_SYMLINK_NOFOLLOW);
	if (r < 0 || !S_ISDIR(st.st_mode) ||
		!same(&st, p->h->dev, d->ino, d->mtime_ns, d->ctime_ns))
		return false;
	memcpy(path, at, n);
	path[n] = '/';
	for (uint32_t i = d->first; i < d->first + d->n; i++) {
		const struct kept_file *f = &p->files[i];
		if (f->name_at >= p->text_bytes)
			return false;
		const char *name = text_of(p->u, f->name_at);
		size_t k = by_fd ? 0 : strlen(name) + 1;
		if (n + 1 + k > sizeof path)
			return false;
		if (!by_fd)
			memcpy(path + n + 1, name, k);
		if (!file_holds(p, f, by_fd ? fd : AT_FDCWD, by_fd ? name : path))
			return false;
	}
	return true;
}

/* Step 0 is the sum over all bytes: what it would find is an accident, so that the others need not
 * wait for it. */
static void prove_one(void *arg, uint32_t i)
{
	struct proof *p = arg;
	const struct kept_head *h = p->h;
	bool holds;
	if (atomic_load_explicit(&p->broken, memory_order_relaxed))
		return;
	if (i == 0)
		holds = vx_question_sum(p->u->map + sizeof *h, h->bytes - sizeof *h) == h->sum;
	else if (i <= h->n_dirs)
		holds = dir_holds(p, &p->dirs[i - 1]);
	else
		holds = vx_fact_holds((const void *)p->facts[i - 1 - h->n_dirs], NULL);
	if (!holds)
		atomic_store(&p->broken, true);
}

static bool prove(const struct vx_unchanged *u)
{
	const struct kept_head *h = (const void *)u->map;
	struct proof p = {
		.u = u, .h = h, .dirs = (const void *)(h + 1), .text_bytes = h->bytes - h->text_at};
	p.files = (const void *)(p.dirs + h->n_dirs);
	p.facts = vx_xcalloc(h->n_facts + 1, sizeof *p.facts);
	const char *at = u->map + h->facts_at, *end = u->map + h->text_at;
	bool ok = true;
	for (uint32_t i = 0; i < h->n_facts && ok; i++) {
		ok = vx_fact_sane(at, end);
		p.facts[i] = at;
		at += ok ? ((const struct vx_fact *)(const void *)at)->total : 0;
	}
	if (ok)
		vx_parallel(1 + h->n_dirs + h->n_facts, vx_cpus(), CHUNK, prove_one, &p);
	free(p.facts);
	return ok && !atomic_load(&p.broken);
}

static bool same_env(const struct vx_unchanged *u, struct vx_strs forwarded)
{
	const struct kept_head *h = (const void *)u->map;
	struct vx_arena a = {0};
	struct vx_strlist names = {0};
	struct vx_digest now;
	uint32_t at = h->env_at;
	uint64_t text = h->bytes - h->text_at;
	for (uint32_t i = 0; i < h->n_env && at < text; i++) {
		vx_strlist_add(&names, &a, text_of(u, at));
		at += (uint32_t)strlen(text_of(u, at)) + 1;
	}
	vx_seed_env_digest(vx_strlist_done(&names), h->whole_env, forwarded, &now);
	vx_arena_free(&a);
	return memcmp(&now, &h->env, sizeof now) == 0;
}

bool vx_unchanged_holds(struct vx_unchanged *u, struct vx_strs forwarded)
{
	if (!u->map)
		return false;
	const struct kept_head *h = (const void *)u->map;
	uint64_t now = vx_wall_ns();
	if (now < h->made_ns || now - h->made_ns > VX_UNCHANGED_NS || !same_env(u, forwarded))
		return false;
	VX_CLEANUP_FD int back = vx_open(AT_FDCWD, ".", O_PATH | O_DIRECTORY, 0);
	if (back < 0 || chdir(u->root) < 0)
		return false;
	bool holds = prove(u);
	return fchdir(back) == 0 && holds;
}
