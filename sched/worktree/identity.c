/* Identities of files, taken from the bytes on disk; and threads to take many. Format of blob ids:
 * gitformat-pack(5). */
#include "files.h"

#include "vx/clock.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define TRIES 5 /* times that a file may change under our eyes */
#define CHUNK_BYTES (64U << 10)
#define CANCEL_BYTES (8U << 20) /* read between two looks at what cancels */

/* A blob's digest in either format. */
struct blob_hash {
	enum vx_oid_kind kind;
	struct vx_sha1 sha1;
	struct vx_sha256 sha256;
};

static void blob_add(struct blob_hash *h, const void *p, size_t n)
{
	if (h->kind == VX_OID_SHA1)
		vx_sha1_add(&h->sha1, p, n);
	else
		vx_sha256_add(&h->sha256, p, n);
}

static void blob_begin(struct blob_hash *h, enum vx_oid_kind kind, uint64_t size)
{
	char head[32];
	int n = snprintf(head, sizeof head, "blob %llu", (unsigned long long)size);
	h->kind = kind;
	if (kind == VX_OID_SHA1)
		vx_sha1_init(&h->sha1);
	else
		vx_sha256_init(&h->sha256);
	blob_add(h, head, (size_t)n + 1);
}

static void blob_end(struct blob_hash *h, struct vx_oid *ret)
{
	struct vx_digest d = {{0}};
	if (h->kind == VX_OID_SHA1)
		vx_sha1_done(&h->sha1, d.b);
	else
		vx_sha256_done(&h->sha256, &d);
	memset(ret, 0, sizeof *ret);
	memcpy(ret->b, d.b, (size_t)h->kind);
	ret->n = (uint8_t)h->kind;
}

bool vx_canceled(const struct vx_cancel *c)
{
	struct pollfd p = {.fd = c ? c->fd : -1, .events = POLLIN};
	return c && (atomic_load_explicit(&c->asked, memory_order_relaxed) ||
			    (c->fd >= 0 && poll(&p, 1, 0) > 0));
}

/* 0; 1 when the file was not as long as its stat said. */
static int hash_bytes(int fd, enum vx_oid_kind kind, uint64_t size, const struct vx_cancel *cancel,
	struct vx_oid *ret)
{
	char chunk[CHUNK_BYTES];
	struct blob_hash h;
	uint64_t left = size, looked = size;
	blob_begin(&h, kind, size);
	for (;;) {
		ssize_t n = vx_read(fd, chunk, sizeof chunk);
		if (n < 0)
			return (int)n;
		if (n == 0)
			break;
		if ((uint64_t)n > left)
			return 1;
		blob_add(&h, chunk, (size_t)n);
		left -= (uint64_t)n;
		if (looked - left >= CANCEL_BYTES) {
			looked = left;
			if (vx_canceled(cancel))
				return -ECANCELED;
		}
	}
	blob_end(&h, ret);
	return left ? 1 : 0;
}

static int take_link(int root_fd, const char *path, enum vx_oid_kind kind, struct vx_file *f)
{
	VX_CLEANUP_FD int fd = vx_open_beneath(root_fd, path, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
	struct stat st;
	char target[VX_MAX_PATH];
	f->looked_ns = vx_wall_ns();
	if (fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISLNK(st.st_mode))
		return S_ISREG(st.st_mode) ? 1 : -ENOENT;
	ssize_t n = readlinkat(fd, "", target, sizeof target);
	if (n < 0)
		return -errno;
	struct blob_hash h;
	blob_begin(&h, kind, (uint64_t)n);
	blob_add(&h, target, (size_t)n);
	blob_end(&h, &f->oid);
	f->mode = 0120000;
	vx_fstat_of(&st, &f->st);
	return 0;
}

/* Where git does not look at the executable bit, what is recorded of a file stays: whoever listed
 * it has put that in f->mode. */
static uint32_t mode_of(mode_t m, bool trust_exec, uint32_t was)
{
	return !trust_exec && S_ISREG(m) && S_ISREG(was) ? was : vx_git_mode(m, trust_exec);
}

/* 1: it changed meanwhile, look again. */
static int take_once(int root_fd, const char *path, enum vx_oid_kind kind, bool trust_exec,
	const struct vx_cancel *cancel, struct vx_file *f)
{
	VX_CLEANUP_FD int fd =
		vx_open_beneath(root_fd, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0);
	if (fd == -ELOOP)
		return take_link(root_fd, path, kind, f);
	if (fd == -ENOTDIR || fd == -ENXIO)
		return -ENOENT;
	if (fd < 0)
		return fd;
	struct stat before, after;
	f->looked_ns = vx_wall_ns();
	if (fstat(fd, &before) < 0)
		return -errno;
	if (!S_ISREG(before.st_mode))
		return -ENOENT;
	if ((uint64_t)before.st_size > VX_MAX_INPUT_BYTES)
		return -EFBIG;
	struct vx_oid oid;
	int r = hash_bytes(fd, kind, (uint64_t)before.st_size, cancel, &oid);
	if (r)
		return r;
	if (fstat(fd, &after) < 0)
		return -errno;
	struct vx_fstat a, b;
	vx_fstat_of(&before, &a);
	vx_fstat_of(&after, &b);
	if (!vx_fstat_equal(&a, &b))
		return 1;
	f->oid = oid;
	f->mode = mode_of(before.st_mode, trust_exec, f->mode);
	f->st = a;
	return 0;
}

int vx_identity_take(int root_fd, const char *path, enum vx_oid_kind kind, bool trust_exec,
	const struct vx_cancel *cancel, struct vx_file *f)
{
	for (int i = 0; i < TRIES; i++) {
		int r = take_once(root_fd, path, kind, trust_exec, cancel, f);
		if (r == 0)
			f->has_oid = f->hashed = true;
		if (r <= 0)
			return r;
	}
	return -EBUSY;
}

int vx_identity_failed(int r, const char *whose, const char *path, struct vx_err *err)
{
	if (r == -ECANCELED)
		return vx_err_set(
			err, r, "%s: input %s: its reading was stopped with the run", whose, path);
	if (r == -EFBIG) {
		vx_err_set(err, r,
			"%s: input %s is larger than %llu bytes, the most a file may have", whose,
			path, (unsigned long long)VX_MAX_INPUT_BYTES);
		return vx_err_fix(err,
			"remove it (a sparse file claims more than it holds), or take it out of the inputs");
	}
	vx_err_set(err, r, "%s: input %s cannot be read: %s", whose, path,
		r == -EBUSY ? "it keeps changing" : vx_strerror(r));
	return r == -EBUSY ? vx_err_fix(err, "stop what writes to it, or take it out of the inputs")
			   : r;
}

int vx_identity_look(int root_fd, const char *path, bool trust_exec, struct vx_file *f)
{
	VX_CLEANUP_FD int fd = vx_open_beneath(root_fd, path, O_PATH | O_NOFOLLOW, 0);
	if (fd < 0)
		return fd == -ENOTDIR || fd == -ELOOP ? -ENOENT : fd;
	struct stat st;
	f->looked_ns = vx_wall_ns();
	if (fstat(fd, &st) < 0)
		return -errno;
	uint32_t mode = mode_of(st.st_mode, trust_exec, f->mode);
	if (!mode)
		return -ENOENT;
	f->mode = mode;
	vx_fstat_of(&st, &f->st);
	return 0;
}

struct crew {
	uint32_t n, chunk;
	_Atomic uint32_t next;
	void (*fn)(void *arg, uint32_t i);
	void *arg;
};

static void *crew_main(void *p)
{
	struct crew *c = p;
	for (;;) {
		uint32_t i = atomic_fetch_add(&c->next, c->chunk);
		if (i >= c->n)
			return NULL;
		for (uint32_t k = i; k < i + c->chunk && k < c->n; k++)
			c->fn(c->arg, k);
	}
}

uint32_t vx_cpus(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) < 0)
		return 1;
	int n = CPU_COUNT(&set);
	return n < 1 ? 1 : n > 64 ? 64 : (uint32_t)n;
}

void vx_parallel(
	uint32_t n, uint32_t threads, uint32_t chunk, void (*fn)(void *arg, uint32_t i), void *arg)
{
	struct crew c = {.n = n, .chunk = chunk ? chunk : 1, .fn = fn, .arg = arg};
	pthread_t made[64];
	uint32_t n_made = 0, want = threads > 64 ? 64 : threads;
	if (n > c.chunk && want > 1) {
		sigset_t all, old;
		sigfillset(&all);
		pthread_sigmask(SIG_SETMASK, &all, &old);
		while (n_made + 1 < want && (uint64_t)n_made * c.chunk < n &&
			pthread_create(&made[n_made], NULL, crew_main, &c) == 0)
			n_made++;
		pthread_sigmask(SIG_SETMASK, &old, NULL);
	}
	crew_main(&c);
	for (uint32_t i = 0; i < n_made; i++)
		pthread_join(made[i], NULL);
}
