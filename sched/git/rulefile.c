/* Files of rules. See rulefile.h. */
#include "rulefile.h"

#include "fstat.h"

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/map.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MAX_RULES_BYTES (100U << 20) /* one file, as git */

struct kept {
	struct vx_fstat st; /* all 0: too young to be known again */
	bool first;         /* as the first list found it */
	const struct vx_rules *up, *rules;
};

struct vx_rule_memo {
	pthread_mutex_t lock;
	struct vx_arena a;
	struct vx_map by_path; /* 'a' or 'i', and the path -> kept */
	struct kept *v;
	uint32_t n, cap;
	struct vx_map lasting; /* rules that others may hang on, by address */
	bool first_done;
};

static void lasts(struct vx_rule_memo *m, const struct vx_rules *r)
{
	vx_map_put(&m->lasting, vx_arena_dup(&m->a, &r, sizeof(const void *)), sizeof(const void *),
		0);
}

struct vx_rule_memo *vx_rule_memo_new(const struct vx_rules *ignore, const struct vx_rules *attrs)
{
	struct vx_rule_memo *m = vx_xcalloc(1, sizeof *m);
	pthread_mutex_init(&m->lock, NULL);
	lasts(m, NULL);
	lasts(m, ignore);
	lasts(m, attrs);
	return m;
}

void vx_rule_memo_free(struct vx_rule_memo *m)
{
	if (!m)
		return;
	vx_map_free(&m->by_path);
	vx_map_free(&m->lasting);
	free(m->v);
	pthread_mutex_destroy(&m->lock);
	vx_arena_free(&m->a);
	free(m);
}

static bool recall(struct vx_rule_memo *m, const char *key, const struct vx_fstat *st,
	const struct vx_rules *up, const struct vx_rules **ret)
{
	pthread_mutex_lock(&m->lock);
	uint32_t i = vx_map_gets(&m->by_path, key);
	bool found = i != VX_MAP_NONE && m->v[i].up == up && vx_fstat_equal(&m->v[i].st, st);
	if (found)
		*ret = m->v[i].rules;
	pthread_mutex_unlock(&m->lock);
	return found;
}

static const struct vx_rules *parse(
	const struct vx_rule_file *f, const char *text, size_t n, struct vx_arena *a)
{
	return f->attrs ? vx_attr_parse(text, n, f->dir, f->up, a)
			: vx_ignore_parse(text, n, f->dir, f->up, a);
}

static void note(struct vx_rule_memo *m, const char *key, const struct kept *k)
{
	if (m->n == m->cap) {
		m->cap = m->cap ? m->cap * 2 : 16;
		m->v = vx_xrealloc(m->v, m->cap * sizeof *m->v);
	}
	m->v[m->n] = *k;
	vx_map_set(&m->by_path, vx_arena_strdup(&m->a, key), strlen(key), m->n++);
}

/* Parses into the memo; NULL: what it hangs on does not last. */
static const struct vx_rules *keep(struct vx_rule_memo *m, const char *key,
	const struct vx_fstat *st, const struct vx_rule_file *f, const char *text, size_t n)
{
	const struct vx_rules *r = NULL;
	pthread_mutex_lock(&m->lock);
	if (vx_map_get(&m->lasting, &f->up, sizeof(const void *)) != VX_MAP_NONE) {
		struct vx_rule_file own = *f;
		own.dir = vx_arena_strdup(&m->a, f->dir);
		r = parse(&own, text, n, &m->a);
		note(m, key, &(struct kept){*st, !m->first_done, f->up, r});
		lasts(m, r);
	} else if (!m->first_done) {
		note(m, key, &(struct kept){.first = true});
	}
	pthread_mutex_unlock(&m->lock);
	return r;
}

/* That there is one which is not kept. */
static void keep_presence(struct vx_rule_memo *m, const char *key)
{
	pthread_mutex_lock(&m->lock);
	if (!m->first_done)
		note(m, key, &(struct kept){.first = true});
	pthread_mutex_unlock(&m->lock);
}

void vx_rule_memo_first_done(struct vx_rule_memo *m)
{
	pthread_mutex_lock(&m->lock);
	m->first_done = true;
	pthread_mutex_unlock(&m->lock);
}

bool vx_rule_same(struct vx_rule_memo *m, int top_fd, const char *dir)
{
	char key[VX_MAX_PATH + 1] = "i";
	struct stat st;
	struct vx_fstat now = {0};
	if (snprintf(key + 1, sizeof key - 1, "%s%s.gitignore", dir, *dir ? "/" : "") >=
		(int)sizeof key - 1)
		return false;
	bool there = fstatat(top_fd, key + 1, &st, AT_SYMLINK_NOFOLLOW) == 0;
	if (there)
		vx_fstat_of(&st, &now);
	else if (errno != ENOENT)
		return false;
	pthread_mutex_lock(&m->lock);
	uint32_t i = vx_map_gets(&m->by_path, key);
	bool same = there ? i != VX_MAP_NONE && m->v[i].first && m->v[i].st.ino &&
				    vx_fstat_equal(&m->v[i].st, &now)
			  : i == VX_MAP_NONE;
	pthread_mutex_unlock(&m->lock);
	return same;
}

static int failed(int error, const char *what, const char **ret_why)
{
	*ret_why = what;
	return error;
}

int vx_rule_file(const struct vx_rule_file *f, struct vx_rule_memo *memo, struct vx_arena *a,
	const struct vx_rules **ret, uint64_t *ret_since_ns, const char **ret_why)
{
	char key[VX_MAX_PATH + 1];
	const char *path = key + 1;
	struct stat st;
	struct vx_fstat seen;
	uint64_t looked_ns = memo ? vx_wall_ns() : 0;
	key[0] = f->attrs ? 'a' : 'i';
	if (snprintf(key + 1, sizeof key - 1, "%s%s%s", f->dir, *f->dir ? "/" : "", f->name) >=
		(int)sizeof key - 1)
		return failed(-ENAMETOOLONG, "has too long a path", ret_why);
	*ret = f->up;
	*ret_since_ns = 0;
	if (memo && fstatat(f->top_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0) {
		vx_fstat_of(&st, &seen);
		if (recall(memo, key, &seen, f->up, ret)) {
			*ret_since_ns = seen.ctime_ns;
			return 0;
		}
	}
	VX_CLEANUP_FD int fd = vx_open(f->top_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
	if (fd == -ENOENT || fd == -ELOOP)
		return 0;
	if (fd < 0 || fstat(fd, &st) < 0)
		return failed(1, "cannot be read", ret_why);
	if (!S_ISREG(st.st_mode))
		return 0;
	if (st.st_size > (off_t)MAX_RULES_BYTES)
		return failed(1, "is too large", ret_why);
	size_t cap = (size_t)st.st_size + 4096;
	char *text = malloc(cap);
	if (!text)
		return failed(-ENOMEM, "cannot be read", ret_why);
	ssize_t n = vx_read_full(fd, text, cap);
	if (n >= 0 && (size_t)n < cap) {
		vx_fstat_of(&st, &seen);
		*ret_since_ns = seen.ctime_ns;
		const struct vx_rules *kept = NULL;
		if (memo && !vx_fstat_racy(&seen, looked_ns))
			kept = keep(memo, key, &seen, f, text, (size_t)n);
		else if (memo)
			keep_presence(memo, key);
		*ret = kept ? kept : parse(f, text, (size_t)n, a);
	}
	free(text);
	return n < 0 || (size_t)n == cap ? failed(1, "changed while it was read", ret_why) : 0;
}
