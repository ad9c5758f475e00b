/* The choice between our own reader and git itself. See source.h. */
#include "source_int.h"

#include "vx/err.h"
#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int vx_source_open(const char *root, uint32_t threads, const struct vx_key_memory *memory, struct vx_source **ret, struct vx_err *err)
{
	(void)memory;
	struct vx_source *s = vx_xcalloc(1, sizeof *s);
	s->root = vx_arena_strdup(&s->a, root);
	s->threads = threads ? threads : vx_cpus();
	s->kind = VX_OID_SHA1;
	s->trust_exec = true;
	pthread_mutex_init(&s->lock, NULL);
	s->root_fd = vx_open(AT_FDCWD, root, O_RDONLY | O_DIRECTORY, 0);
	int r = s->root_fd;
	if (r < 0)
		vx_err_set(err, r, "%s cannot be opened: %s", root, vx_strerror(r));
	if (r >= 0) {
		snprintf(s->why, sizeof s->why, "git: listed by git itself");
		r = vx_git_open(s, err);
	}
	if (r < 0) {
		vx_source_close(s);
		return r;
	}
	*ret = s;
	return 0;
}

void vx_source_close(struct vx_source *s)
{
	if (!s)
		return;
	vx_close(s->root_fd);
	vx_files_free(&s->first);
	vx_map_free(&s->tracked);
	pthread_mutex_destroy(&s->lock);
	vx_arena_free(&s->a);
	free(s);
}

int vx_source_list(struct vx_source *s, const char *dir, struct vx_arena *a, struct vx_files *out, struct vx_err *err)
{
	if (!*dir && s->first_ready) {
		s->first_ready = false;
		*out = s->first;
		s->first = (struct vx_files){0};
		return 0;
	}
	return vx_git_list(s, dir, a, out, err);
}

int vx_source_ignored(struct vx_source *s, const char *path, bool *ret, struct vx_err *err)
{
	return vx_git_ignored(s, path, ret, err);
}

bool vx_source_tracked(const struct vx_source *s, const char *path)
{
	return vx_map_get(&s->tracked, path, strlen(path)) != VX_MAP_NONE;
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

uint32_t vx_source_gits(const struct vx_source *s)
{
	return atomic_load(&s->gits);
}
