/* Listings of directories. See listing.h. */
#include "listing.h"

#include "vx/arena.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define LIST_BYTES (64U << 10)

int vx_listing_read(int fd, struct vx_listing *l, uint32_t *ret_names)
{
	_Alignas(16) char raw[LIST_BYTES];
	l->n = 0;
	*ret_names = 0;
	for (;;) {
		long got = syscall(SYS_getdents64, fd, raw, sizeof raw);
		if (got < 0)
			return -errno;
		if (got == 0)
			return 0;
		if (l->cap - l->n < (size_t)got + 8) {
			l->cap = (l->cap + (size_t)got + 8) * 2;
			l->bytes = vx_xrealloc(l->bytes, l->cap);
		}
		for (long at = 0; at < got;) {
			const struct dirent64 *e =
				(const struct dirent64 *)(const void *)(raw + at);
			at += e->d_reclen;
			if (e->d_name[0] == '.' &&
				(!e->d_name[1] || (e->d_name[1] == '.' && !e->d_name[2])))
				continue;
			size_t n = strlen(e->d_name) + 1;
			l->bytes[l->n++] = (char)e->d_type;
			memcpy(l->bytes + l->n, e->d_name, n);
			l->n += n;
			(*ret_names)++;
		}
	}
}

uint32_t vx_listing_special(const struct vx_dir_memory *d)
{
	uint32_t has = 0;
	const char *p = d->names;
	for (uint32_t i = 0; i < d->n_names; i++, p += strlen(p) + 1) {
		unsigned char type = (unsigned char)*p++;
		if (type == DT_DIR || type == DT_UNKNOWN)
			has |= VX_DIR_BELOW;
		if (p[0] != '.' || p[1] != 'g')
			continue;
		if (type != DT_LNK && strcmp(p, ".gitignore") == 0)
			has |= VX_DIR_IGNORE;
		if (type != DT_LNK && strcmp(p, ".gitattributes") == 0)
			has |= VX_DIR_ATTRS;
		if (strcmp(p, ".git") == 0)
			has |= VX_DIR_GIT;
	}
	return has;
}

static int name_cmp(const void *x, const void *y)
{
	/* behind the type */
	return strcmp(*(const char *const *)x + 1, *(const char *const *)y + 1);
}

const char *vx_listing_sorted(const struct vx_dir_memory *d, struct vx_arena *a)
{
	const char **v = vx_xcalloc(d->n_names + 1, sizeof *v), *p = d->names;
	char *to = vx_arena_alloc(a, d->bytes + 1), *at = to;
	for (uint32_t i = 0; i < d->n_names; i++) {
		v[i] = p;
		p += strlen(p + 1) + 2;
	}
	if (d->n_names > 1)
		qsort(v, d->n_names, sizeof *v, name_cmp);
	for (uint32_t i = 0; i < d->n_names; i++) {
		size_t n = strlen(v[i] + 1) + 2;
		memcpy(at, v[i], n);
		at += n;
	}
	free(v);
	return to;
}
