#include "vx/path.h"

#include "vx/arena.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum { MAX_LINKS = 40 }; /* as the kernel, path_resolution(7) */

/* Removes the last component of the normalised text out[0..n). Returns the new length. */
static size_t pop(const char *out, size_t n)
{
	while (n && out[n - 1] != '/')
		n--;
	while (n > 1 && out[n - 1] == '/')
		n--;
	return n;
}

static bool last_is_dotdot(const char *out, size_t n)
{
	return n >= 2 && out[n - 1] == '.' && out[n - 2] == '.' && (n == 2 || out[n - 3] == '/');
}

char *vx_path_norm(struct vx_arena *a, const char *path)
{
	size_t n = 0;
	bool absolute = path[0] == '/';
	char *out = vx_arena_alloc(a, strlen(path) + 2);

	if (absolute)
		out[n++] = '/';
	for (const char *s = path; *s;) {
		size_t k = strcspn(s, "/");

		if (k == 2 && s[0] == '.' && s[1] == '.' &&
			(absolute || (n && !last_is_dotdot(out, n)))) {
			n = pop(out, n);
			if (!absolute && n == 1 && out[0] == '/')
				n = 0;
		} else if (k && !(k == 1 && s[0] == '.')) {
			if (n && out[n - 1] != '/')
				out[n++] = '/';
			memcpy(out + n, s, k);
			n += k;
		}
		s += k;
		s += *s == '/';
	}
	if (!n)
		out[n++] = '.';
	out[n] = '\0';
	return out;
}

char *vx_path_join(struct vx_arena *a, const char *dir, const char *path)
{
	if (path[0] == '/')
		return vx_path_norm(a, path);
	return vx_path_norm(a, vx_arena_printf(a, "%s/%s", dir[0] ? dir : ".", path));
}

const char *vx_path_below(const char *path, const char *dir)
{
	size_t n = strlen(dir);

	if (strcmp(path, dir) == 0)
		return path + n;
	if (strcmp(dir, ".") == 0) /* every relative path that does not climb out */
		return path[0] == '/' || (path[0] == '.' && path[1] == '.' &&
						 (!path[2] || path[2] == '/'))
			       ? NULL
			       : path;
	if (strcmp(dir, "/") == 0)
		return path[0] == '/' ? path + 1 : NULL;
	return strncmp(path, dir, n) == 0 && path[n] == '/' ? path + n + 1 : NULL;
}

bool vx_path_within(const char *path, const char *dir)
{
	return vx_path_below(path, dir) != NULL;
}

char *vx_path_relative(struct vx_arena *a, const char *from, const char *to)
{
	size_t same = 0; /* length of the common leading components, their '/' included */

	if (strcmp(from, ".") == 0)
		from = "";
	if (strcmp(to, ".") == 0)
		to = "";
	for (size_t i = 0;; i++) {
		bool from_ends = !from[i] || from[i] == '/', to_ends = !to[i] || to[i] == '/';

		if (from_ends && to_ends && i)
			same = i;
		if (!from[i] || from[i] != to[i])
			break;
	}

	const char *f = from + same, *t = to + same;
	size_t up = 0;

	f += *f == '/';
	t += *t == '/';
	for (const char *s = f; *s; s += strcspn(s, "/"), s += *s == '/')
		up++;

	char *out = vx_arena_alloc(a, up * 3 + strlen(t) + 2), *p = out;
	for (size_t i = 0; i < up; i++)
		p = stpcpy(p, i + 1 < up || *t ? "../" : "..");
	strcpy(p, t);
	if (!out[0])
		strcpy(out, ".");
	return out;
}

const char *vx_path_base(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

char *vx_path_dir(struct vx_arena *a, const char *path)
{
	const char *slash = strrchr(path, '/');

	if (!slash)
		return vx_arena_strdup(a, ".");
	return slash == path ? vx_arena_strdup(a, "/")
			     : vx_arena_strndup(a, path, (size_t)(slash - path));
}

/* Resolution as the kernel does it, with what is still to be walked in `rest` and what was resolved
 * in `out`. */
struct canon {
	char out[VX_MAX_PATH], rest[VX_MAX_PATH];
	size_t n;
	unsigned links;
	bool missing; /* out does not exist: nothing below it can be a link */
};

/* `target` comes before what is left of the rest. */
static int push_link(struct canon *c, const char *target, size_t len, const char *after)
{
	char joined[VX_MAX_PATH];
	size_t k = strlen(after);

	if (++c->links > MAX_LINKS)
		return -ELOOP;
	if (len + 1 + k >= sizeof joined)
		return -ENAMETOOLONG;
	memcpy(joined, target, len);
	joined[len] = '/';
	memcpy(joined + len + 1, after, k + 1);
	memcpy(c->rest, joined, len + k + 2);
	if (target[0] == '/')
		c->n = 1; /* out begins with "/" always */
	c->out[c->n] = '\0';
	return 0;
}

/* Appends one component, and follows it where it is a link. `ret_next` is where the walk in c->rest
 * goes on. */
static int canon_step(struct canon *c, const char *s, size_t k, size_t *ret_next)
{
	char target[VX_MAX_PATH];
	size_t parent = c->n;

	if (c->n + 1 + k >= sizeof c->out)
		return -ENAMETOOLONG;
	if (c->n > 1)
		c->out[c->n++] = '/';
	memcpy(c->out + c->n, s, k);
	c->n += k;
	c->out[c->n] = '\0';
	if (c->missing)
		return 0;

	ssize_t len = readlink(c->out, target, sizeof target);
	if (len < 0) {
		if (errno == ENOENT || errno == ENOTDIR)
			c->missing = true;
		else if (errno != EINVAL) /* not a link */
			return -errno;
		return 0;
	}
	if ((size_t)len == sizeof target)
		return -ENAMETOOLONG;
	c->n = parent;
	*ret_next = 0;
	return push_link(c, target, (size_t)len, s + k);
}

static int canon_walk(struct canon *c)
{
	for (size_t at = 0; c->rest[at];) {
		const char *s = c->rest + at;
		size_t k = strcspn(s, "/"), next = at + k + (s[k] == '/');

		if (k == 2 && s[0] == '.' && s[1] == '.') {
			c->n = pop(c->out, c->n);
			c->out[c->n] = '\0';
			/* its parent may well exist; if not, the next component says so again */
			c->missing = false;
		} else if (k && !(k == 1 && s[0] == '.')) {
			int r = canon_step(c, s, k, &next);
			if (r < 0)
				return r;
		}
		at = next;
	}
	return 0;
}

int vx_path_canon(struct vx_arena *a, const char *path, char **ret)
{
	struct canon c = {.n = 1};
	size_t len = strlen(path);

	if (len >= sizeof c.rest)
		return -ENAMETOOLONG;
	memcpy(c.rest, path, len + 1);
	c.out[0] = '/';
	if (path[0] != '/') {
		if (!getcwd(c.out, sizeof c.out))
			return errno == ERANGE ? -ENAMETOOLONG : -errno;
		c.n = strlen(c.out);
	}

	int r = canon_walk(&c);
	if (r < 0)
		return r;
	*ret = vx_arena_strndup(a, c.out, c.n);
	return 0;
}
