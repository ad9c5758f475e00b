/* The choice between our own reader and git itself. See file_list.h. */
#include "file_list_int.h"

#include "vx/err.h"
#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* VX_FILES=git asks git in every case: for comparing, and for whoever meets a difference. */
static int choose(struct vx_source *s, const struct vx_key_memory *memory, struct vx_err *err)
{
	char why[sizeof s->why - 8] = "VX_FILES says so";
	const char *force = getenv("VX_FILES");
	s->keep = memory;
	s->memory = vx_wtmem_load(memory, s->root, &s->a);
	if (!vx_streq(force, "git") && (s->own || vx_own_open(s, why, sizeof why) == 0) &&
		vx_own_list_first(s, why, sizeof why) == 0) {
		snprintf(s->why, sizeof s->why, "index");
		return 0;
	}
	if (s->refused)
		return vx_err_set(err, s->refused, "%s: %s", s->root, why);
	snprintf(s->why, sizeof s->why, "git: %s", why);
	return vx_git_open(s, err);
}

static struct vx_source *begin(const char *root, uint32_t threads)
{
	struct vx_source *s = vx_xcalloc(1, sizeof *s);
	s->root = vx_arena_strdup(&s->a, root);
	s->threads = threads ? threads : vx_cpus();
	s->kind = VX_OID_SHA1;
	s->trust_exec = true;
	s->cancel_fd = -1;
	pthread_mutex_init(&s->lock, NULL);
	s->root_fd = vx_open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
	return s;
}

int vx_source_ahead(const char *root, uint32_t threads, struct vx_source **ret)
{
	char why[sizeof((struct vx_source *)NULL)->why];
	struct vx_source *s = begin(root, threads);
	s->ahead = true;
	if (s->root_fd < 0 || vx_streq(getenv("VX_FILES"), "git") ||
		vx_own_open(s, why, sizeof why) != 0) {
		vx_source_close(s);
		return -EAGAIN;
	}
	*ret = s;
	return 0;
}

int vx_source_list_ahead(struct vx_source *s)
{
	char why[sizeof s->why];
	snprintf(s->why, sizeof s->why, "index");
	return vx_own_list_first(s, why, sizeof why) ? -EAGAIN : 0;
}

int vx_source_adopt(
	struct vx_source *s, int cancel_fd, const struct vx_key_memory *memory, struct vx_err *err)
{
	s->cancel_fd = cancel_fd;
	if (!s->first_ready)
		return choose(s, memory, err);
	s->keep = memory;
	s->memory = vx_wtmem_load(memory, s->root, &s->a);
	for (uint32_t i = 0; i < s->first.n; i++) {
		struct vx_file *f = s->first.v[i];
		if (!f->has_oid)
			f->has_oid = f->hashed =
				vx_wtmem_id(s->memory, f->path, f->len, s->kind, &f->st, &f->oid);
	}
	if (s->own)
		vx_own_distrust(s);
	return 0;
}

int vx_source_open(const char *root, uint32_t threads, int cancel_fd,
	const struct vx_key_memory *memory, struct vx_source **ret, struct vx_err *err)
{
	struct vx_source *s = begin(root, threads);
	s->cancel_fd = cancel_fd;
	int r = s->root_fd;
	if (r < 0)
		vx_err_set(err, r, "%s cannot be opened: %s", root, vx_strerror(r));
	if (r >= 0)
		r = choose(s, memory, err);
	if (r < 0) {
		vx_source_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

int vx_source_given(const char *root, enum vx_oid_kind kind, bool trust_exec,
	const struct vx_files *files, struct vx_source **ret)
{
	struct vx_source *s = begin(root, 1);
	int r = s->root_fd;
	if (r < 0) {
		vx_source_close(s);
		return r;
	}
	s->kind = kind;
	s->trust_exec = trust_exec;
	s->given = files;
	snprintf(s->why, sizeof s->why, "given");
	*ret = s;
	return 0;
}

static void list_given(const struct vx_files *given, const char *dir, struct vx_files *out)
{
	uint32_t lo, hi;
	struct vx_file *itself = *dir ? vx_files_find(given, dir) : NULL;
	if (itself)
		vx_files_add(out, itself);
	vx_files_below(given, dir, &lo, &hi);
	for (uint32_t i = lo; i < hi; i++)
		vx_files_add(out, given->v[i]);
}

void vx_source_close(struct vx_source *s)
{
	if (!s)
		return;
	vx_close(s->root_fd);
	vx_own_close(s->own);
	vx_own_close(s->aside);
	vx_wtmem_free(s->memory);
	vx_files_free(&s->first);
	vx_map_free(&s->tracked);
	vx_map_free(&s->recorded_at);
	free(s->recorded);
	pthread_mutex_destroy(&s->lock);
	vx_arena_free(&s->a);
	free(s);
}

int vx_source_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out,
	struct vx_err *err)
{
	atomic_fetch_add(&s->lists, 1);
	if (s->given) {
		list_given(s->given, dir, out);
		return 0;
	}
	if (!*dir && s->first_ready) {
		s->first_ready = false;
		*out = s->first;
		s->first = (struct vx_files){0};
		return 0;
	}
	return s->own ? vx_own_list(s, dir, a, out, err) : vx_git_list(s, dir, a, out, err);
}

int vx_source_same(struct vx_source *s, const char *dir)
{
	return s->own ? vx_own_same(s, dir) : 0;
}

int vx_source_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err)
{
	if (s->given) {
		*ret = false;
		return 0;
	}
	return s->own ? vx_own_ignored(s, path, ret, err) : vx_git_ignored(s, path, ret, err);
}

int vx_source_remember(struct vx_source *s, const struct vx_files *table)
{
	return s->keep ? vx_own_remember(s, table) : 0;
}

bool vx_source_facts(const struct vx_source *s, const struct vx_list_facts *to)
{
	return s->own && vx_own_facts(s->own, to);
}

int vx_source_tracks_below(struct vx_source *s, const char *dir, struct vx_err *err)
{
	if (s->given) /* nothing is written there */
		return 0;
	return s->own ? vx_own_tracks_below(s->own, dir) : vx_git_tracks_below(s, dir, err);
}

bool vx_source_tracked(const struct vx_source *s, const char *path)
{
	if (s->given)
		return vx_files_find(s->given, path) != NULL;
	if (s->own)
		return vx_own_tracked(s->own, path);
	return vx_map_get(&s->tracked, path, strlen(path)) != VX_MAP_NONE;
}

bool vx_source_recorded(struct vx_source *s, const char *path, struct vx_recorded *ret)
{
	if (s->given)
		return false;
	return s->own ? vx_own_recorded(s->own, path, ret) : vx_git_recorded(s, path, ret);
}

bool vx_source_has_repository(const struct vx_source *s, const char *path)
{
	return s->own ? vx_own_has_repository(s->own, path)
		      : vx_strs_has((struct vx_strs){s->repos.v, s->repos.n}, path);
}

enum vx_oid_kind vx_source_kind(const struct vx_source *s)
{
	return s->kind;
}

bool vx_source_trusts_exec(const struct vx_source *s)
{
	return s->trust_exec;
}

int vx_source_fd(const struct vx_source *s)
{
	return s->root_fd;
}

const char *vx_source_why(const struct vx_source *s)
{
	return s->why;
}

struct vx_strs vx_source_said(const struct vx_source *s)
{
	return (struct vx_strs){s->said.v, s->said.n};
}

uint32_t vx_source_lists(const struct vx_source *s)
{
	return atomic_load(&s->lists);
}

uint32_t vx_source_gits(const struct vx_source *s)
{
	return atomic_load(&s->gits);
}
