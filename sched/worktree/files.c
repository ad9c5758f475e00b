/* Tables of files. See files.h. */
#include "files.h"

#include <stdlib.h>
#include <string.h>

void vx_files_add(struct vx_files *t, struct vx_file *f)
{
	if (t->n == t->cap) {
		t->cap = t->cap ? t->cap * 2 : 64;
		t->v = vx_xrealloc(t->v, t->cap * sizeof(struct vx_file *));
	}
	t->v[t->n++] = f;
}

static int file_cmp(const void *a, const void *b)
{
	const struct vx_file *x = *(struct vx_file *const *)a, *y = *(struct vx_file *const *)b;
	return strcmp(x->path, y->path);
}

void vx_files_sort_unique(struct vx_files *t)
{
	bool sorted = true;
	for (uint32_t i = 1; i < t->n && sorted; i++)
		sorted = file_cmp(&t->v[i - 1], &t->v[i]) < 0;
	if (sorted)
		return;
	qsort(t->v, t->n, sizeof(struct vx_file *), file_cmp);
	uint32_t w = 0;
	for (uint32_t i = 0; i < t->n; i++) {
		if (w && file_cmp(&t->v[w - 1], &t->v[i]) == 0) {
			if (t->v[i]->tracked)
				t->v[w - 1] = t->v[i];
			continue;
		}
		t->v[w++] = t->v[i];
	}
	t->n = w;
}

void vx_files_free(struct vx_files *t)
{
	free(t->v);
	*t = (struct vx_files){0};
}

uint32_t vx_files_lower(const struct vx_files *t, const char *p, size_t n)
{
	uint32_t lo = 0, hi = t->n;
	while (lo < hi) {
		uint32_t mid = lo + (hi - lo) / 2;
		const struct vx_file *f = t->v[mid];
		size_t k = f->len < n ? f->len : n;
		int c = memcmp(f->path, p, k);
		if (c < 0 || (c == 0 && f->len < n))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

void vx_files_below(const struct vx_files *t, const char *dir, uint32_t *lo, uint32_t *hi)
{
	if (!*dir || strcmp(dir, ".") == 0) {
		*lo = 0;
		*hi = t->n;
		return;
	}
	size_t n = strlen(dir);
	char *key = vx_xmalloc(n + 2);
	memcpy(key, dir, n);
	key[n] = '/';
	*lo = vx_files_lower(t, key, n + 1);
	key[n] = '/' + 1;
	*hi = vx_files_lower(t, key, n + 1);
	free(key);
}

struct vx_file *vx_files_find(const struct vx_files *t, const char *path)
{
	uint32_t i = vx_files_lower(t, path, strlen(path));
	return i < t->n && strcmp(t->v[i]->path, path) == 0 ? t->v[i] : NULL;
}

static bool within(const char *path, const char *dir, size_t n)
{
	return !n || (strncmp(path, dir, n) == 0 && (path[n] == '/' || !path[n]));
}

void vx_files_splice(struct vx_files *t, const char *dir, const struct vx_files *with)
{
	size_t n = strcmp(dir, ".") == 0 ? 0 : strlen(dir);
	struct vx_files out = {0};
	out.cap = t->n + with->n + 1;
	out.v = vx_xmalloc(out.cap * sizeof(struct vx_file *));
	uint32_t i = 0, j = 0;
	while (i < t->n || j < with->n) {
		if (i < t->n && within(t->v[i]->path, dir, n))
			i++;
		else if (j == with->n || (i < t->n && file_cmp(&t->v[i], &with->v[j]) < 0))
			out.v[out.n++] = t->v[i++];
		else
			out.v[out.n++] = with->v[j++];
	}
	free(t->v);
	*t = out;
}

bool vx_below_modules(const char *path, size_t len)
{
	const char *end = path + len;
	for (const char *p = path; (p = memmem(p, (size_t)(end - p), "node_modules", 12)) != NULL;
		p++)
		if ((p == path || p[-1] == '/') && p + 12 < end && p[12] == '/')
			return true;
	return false;
}
