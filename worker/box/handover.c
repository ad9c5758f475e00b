/* What the worker hands over with a task: its request and vx-init's payload, each in a memfd. */
#include "handover.h"

#include "wire.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/initproto.h"
#include "vx/path.h"

#include <errno.h>
#include <string.h>

const char *handover_env(struct vx_strs env, const char *name)
{
	size_t n = strlen(name);

	for (uint32_t i = 0; i < env.n; i++)
		if (!strncmp(env.v[i], name, n) && env.v[i][n] == '=')
			return env.v[i] + n + 1;
	return NULL;
}

static bool same_name(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return n == strcspn(b, "=") && !strncmp(a, b, n);
}

/* The task's environment, with what the sandbox sets over it. */
struct vx_strs handover_merge(struct vx_arena *a, struct vx_strs env, struct vx_strs over)
{
	struct vx_strlist out = {0};

	for (uint32_t i = 0; i < env.n; i++) {
		bool kept = true;
		for (uint32_t k = 0; k < over.n; k++)
			kept &= !same_name(env.v[i], over.v[k]);
		if (!kept)
			continue;
		if (same_name(env.v[i], "TMP") ||
			same_name(env.v[i], "TEMP")) /* they mean what TMPDIR means */
			vx_strlist_add(
				&out, a, same_name(env.v[i], "TMP") ? "TMP=/tmp" : "TEMP=/tmp");
		else
			vx_strlist_add(&out, a, env.v[i]);
	}
	for (uint32_t k = 0; k < over.n; k++)
		vx_strlist_add(&out, a, over.v[k]);
	return vx_strlist_done(&out);
}

static uint32_t put(struct vx_buf *b, const char *s)
{
	uint32_t at = (uint32_t)b->len;

	vx_buf_add(b, s, strlen(s) + 1);
	return at;
}

static void put_u64(struct vx_buf *b, size_t at, uint64_t v)
{
	memcpy(b->data + at, &v, sizeof v); /* this machine's own order: vx-init is built for it */
}

/* What a task may open for writing, by where it is mounted; devices and /proc guard themselves. */
static uint32_t put_writable(struct vx_buf *b, const struct vx_sbx_request *q)
{
	uint32_t at = put(b, "/dev");

	put(b, "/proc");
	for (uint32_t i = 0; i < q->n_mounts; i++)
		if (q->mounts[i].writable && q->mounts[i].why != VX_WHY_DENY &&
			!vx_path_within(q->mounts[i].target, "/dev"))
			put(b, q->mounts[i].target);
	put(b, "");
	return at;
}

/* vx/initproto.h. One word stays free before argv, for the shell that runs a script without
 * "#!". */
int handover_payload(
	struct vx_strs argv, struct vx_strs env, const char *cwd, const struct vx_sbx_request *q)
{
	struct vx_buf b = VX_BUF(64U << 20);
	struct vx_init_payload p = {.magic = VX_INIT_MAGIC, .argc = argv.n, .envc = env.n};
	size_t words = 1 + (size_t)argv.n + 1 + env.n + 1;
	const char *path = handover_env(env, "PATH");

	p.argv = sizeof p + 8;
	p.env = p.argv + (argv.n + 1) * 8;
	void *room = vx_buf_reserve(&b, sizeof p + words * 8);
	if (!room)
		return -E2BIG;
	memset(room, 0, sizeof p + words * 8);
	vx_buf_commit(&b, sizeof p + words * 8);
	for (uint32_t i = 0; i < argv.n; i++) {
		uint32_t at = put(&b, argv.v[i]);
		put_u64(&b, p.argv + i * 8, at);
	}
	for (uint32_t i = 0; i < env.n; i++) {
		uint32_t at = put(&b, env.v[i]);
		put_u64(&b, p.env + i * 8, at);
	}
	p.cwd = put(&b, cwd);
	p.path = put(&b, path ? path : "/usr/bin:/bin");
	if (!q->nesting)
		p.writable = put_writable(&b, q);
	p.total_bytes = (uint32_t)b.len;
	int fd = b.overflow ? -E2BIG : vx_memfd("vx-task"), r = fd;
	if (r >= 0) {
		memcpy(b.data, &p, sizeof p);
		r = vx_write_full(fd, b.data, b.len);
	}
	vx_buf_free(&b);
	if (r < 0 && fd >= 0)
		vx_close(fd);
	return r < 0 ? r : fd;
}

int handover_request(const struct vx_sbx_request *q, const char *record_dir)
{
	struct vx_buf b = VX_BUF(BOX_MAX_REQUEST);
	int fd = -1, r = box_request_encode(q, record_dir, &b);

	if (r == 0)
		r = fd = vx_memfd("vx-request");
	if (r >= 0)
		r = vx_write_full(fd, b.data, b.len);
	vx_buf_free(&b);
	if (r < 0)
		vx_close(fd);
	return r < 0 ? r : fd;
}
