/* The index over LMDB: see index.h. */
#include "index.h"
#include "lmdb_check.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <lmdb.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SUM_BYTES 8

struct vx_index {
	MDB_env *env;
	MDB_dbi dbi[VX_DBS];
	bool absent[VX_DBS]; /* read only, and made before there was such a database: as if empty */
	char dir[PATH_MAX];
	bool write, sync;
	atomic_bool checked; /* its pages, by this process */
	atomic_bool damaged;
	/* LMDB was left in the middle of a step: what it holds is not touched again, not even to
	 * free it */
	atomic_bool broken;
	atomic_uint_fast64_t commits, bad_rows;
	pthread_rwlock_t map; /* read: a transaction is open; write: the map is being resized */
};

struct vx_tx {
	struct vx_index *ix;
	MDB_txn *txn;
	uint8_t *scratch;
	size_t scratch_cap;
	bool full; /* MDB_MAP_FULL was seen */
};

static const char *const db_names[VX_DBS] = {
	"meta", "entries", "snaps", "history", "blobs", "places"};

/* ---- faults ---- */

static _Thread_local sigjmp_buf *guard;
static struct sigaction old_segv, old_bus;

static void on_fault(int sig, siginfo_t *si, void *uc)
{
	if (guard)
		siglongjmp(*guard, 1);
	const struct sigaction *old = sig == SIGSEGV ? &old_segv : &old_bus;
	if (old->sa_flags & SA_SIGINFO) {
		old->sa_sigaction(sig, si, uc);
	} else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN) {
		old->sa_handler(sig);
	} else {
		struct sigaction dfl = {.sa_handler = SIG_DFL};
		/* the instruction faults again and the default does its work */
		sigaction(sig, &dfl, NULL);
	}
}

/* Anew with every opening: whoever set a handler of his own meanwhile becomes the one who is handed
 * what is not ours. */
static void install_handlers(void)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	struct sigaction sa = {.sa_sigaction = on_fault,
				 .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK},
			 now;
	pthread_mutex_lock(&lock);
	if (sigaction(SIGSEGV, NULL, &now) == 0 && now.sa_sigaction != on_fault)
		sigaction(SIGSEGV, &sa, &old_segv);
	if (sigaction(SIGBUS, NULL, &now) == 0 && now.sa_sigaction != on_fault)
		sigaction(SIGBUS, &sa, &old_bus);
	pthread_mutex_unlock(&lock);
}

static void on_assert(MDB_env *env, const char *msg)
{
	(void)env;
	(void)msg;
	if (guard)
		siglongjmp(*guard, 1);
}

struct call {
	struct vx_index *ix;
	struct vx_tx *t;
	int (*fn)(struct vx_tx *t, void *arg);
	void *arg;
	bool broke;
};

/* Runs one step with faults caught. -EBADMSG when one was. */
static int guarded(int (*step)(struct call *c), struct call *c)
{
	sigjmp_buf here, *outer = guard;
	if (sigsetjmp(here, 0)) {
		guard = outer;
		c->broke = true;
		atomic_store(&c->ix->broken, true);
		return -EBADMSG;
	}
	guard = &here;
	int r = step(c);
	guard = outer;
	return r;
}

/* Says for later processes that this index is not to be used. */
static int mark_damaged(struct vx_index *ix)
{
	if (!atomic_exchange(&ix->damaged, true) && ix->write) {
		char p[PATH_MAX + 16];
		snprintf(p, sizeof p, "%s.damaged", ix->dir);
		vx_close(vx_open(AT_FDCWD, p, O_CREAT | O_WRONLY | O_NOFOLLOW | O_NONBLOCK, 0666));
	}
	return -EBADMSG;
}

static int code(int rc)
{
	switch (rc) {
	case 0:
		return 0;
	case MDB_NOTFOUND:
		return -ENOENT;
	case MDB_MAP_FULL:
		return -ENOSPC;
	case MDB_READERS_FULL:
		return -EAGAIN;
	case MDB_MAP_RESIZED:
		return -ESTALE;
	case MDB_BAD_VALSIZE:
		return -EINVAL;
	case MDB_PAGE_NOTFOUND:
	case MDB_CORRUPTED:
	case MDB_PANIC:
	case MDB_INVALID:
	case MDB_VERSION_MISMATCH:
	case MDB_CURSOR_FULL:
	case MDB_PAGE_FULL:
	case MDB_INCOMPATIBLE:
	case MDB_BAD_TXN:
	case MDB_BAD_DBI:
		return -EBADMSG;
	default:
		return rc > 0 ? -rc : -EIO;
	}
}

/* ---- checksums ---- */

static uint64_t mix(uint64_t h, uint64_t w)
{
	h ^= w;
	h = (h << 29) | (h >> 35);
	return h * 0x9E3779B97F4A7C15ULL + 0x632BE59BD9B4E019ULL;
}

static uint64_t sum_add(uint64_t h, const uint8_t *p, size_t n)
{
	for (; n >= 8; p += 8, n -= 8) {
		uint64_t w;
		memcpy(&w, p, 8);
		h = mix(h, w);
	}
	uint64_t w = 0;
	memcpy(&w, p, n);
	return mix(h, w ^ (uint64_t)n << 56);
}

static uint64_t sum(enum vx_db db, const void *key, size_t key_n, const void *val, size_t n)
{
	uint64_t h = sum_add(mix(db + 1, key_n), key, key_n);
	return sum_add(mix(h, n), val, n);
}

/* ---- opening ---- */

static int open_dbs(struct vx_index *ix)
{
	MDB_txn *t;
	int rc = mdb_txn_begin(ix->env, NULL, ix->write ? 0 : MDB_RDONLY, &t);
	if (rc)
		return code(rc);
	for (int i = 0; i < VX_DBS && !rc; i++)
		rc = mdb_dbi_open(t, db_names[i], ix->write ? MDB_CREATE : 0, &ix->dbi[i]);
	if (rc) {
		mdb_txn_abort(t);
		return code(rc);
	}
	return code(mdb_txn_commit(t));
}

/* In an index that is there already nothing needs to be written to open it. */
static int open_dbs_read(struct vx_index *ix, bool *ret_new)
{
	MDB_txn *t;
	int rc = mdb_txn_begin(ix->env, NULL, MDB_RDONLY, &t);
	if (rc)
		return code(rc);
	for (int i = 0; i < VX_DBS && !rc; i++) {
		rc = mdb_dbi_open(t, db_names[i], 0, &ix->dbi[i]);
		*ret_new = i == VX_DB_META && rc == MDB_NOTFOUND;
		ix->absent[i] = i == VX_DB_PLACES && rc == MDB_NOTFOUND && !ix->write;
		if (ix->absent[i])
			rc = 0;
	}
	if (rc) {
		mdb_txn_abort(t);
		return code(rc);
	}
	return code(mdb_txn_commit(t));
}

static int check_schema(struct vx_tx *t, void *arg)
{
	(void)arg;
	const void *v;
	size_t n;
	uint32_t schema;
	int r = vx_tx_get(t, VX_DB_META, "schema", 6, &v, &n);
	if (r == -ENOENT && t->ix->write) {
		schema = VX_INDEX_SCHEMA;
		return vx_tx_put(t, VX_DB_META, "schema", 6, &schema, sizeof schema);
	}
	if (r < 0)
		return r;
	if (n != sizeof schema)
		return -EPROTO;
	memcpy(&schema, v, sizeof schema);
	return schema == VX_INDEX_SCHEMA ? 0 : -EPROTO;
}

static int open_env(struct call *c)
{
	struct vx_index *ix = c->ix;
	uint64_t map = *(uint64_t *)c->arg;
	int rc = mdb_env_create(&ix->env);
	if (rc)
		return code(rc);
	mdb_env_set_assert(ix->env, on_assert);
	mdb_env_set_maxdbs(ix->env, VX_DBS);
	mdb_env_set_maxreaders(ix->env, VX_INDEX_READERS);
	rc = mdb_env_set_mapsize(ix->env, map);
	unsigned flags = MDB_NOTLS | (ix->write ? (ix->sync ? 0 : MDB_NOMETASYNC) : MDB_RDONLY);
	if (!rc)
		rc = mdb_env_open(ix->env, ix->dir, flags, 0666);
	/* not even its lock file may be written: rows check themselves */
	if (rc == EACCES && !ix->write) {
		mdb_env_close(ix->env);
		ix->env = NULL;
		if ((rc = mdb_env_create(&ix->env)) == 0) {
			mdb_env_set_assert(ix->env, on_assert);
			mdb_env_set_maxdbs(ix->env, VX_DBS);
			mdb_env_set_mapsize(ix->env, map);
			rc = mdb_env_open(ix->env, ix->dir, flags | MDB_NOLOCK, 0666);
		}
	}
	if (rc)
		return code(rc);
	int dead = 0;
	if (ix->write)
		mdb_reader_check(ix->env, &dead);
	bool is_new = false;
	int r = open_dbs_read(ix, &is_new);
	if (r != -ENOENT || !ix->write)
		return r;
	if (!ix->sync && is_new) /* nothing is in it that could be lost: see vx_index_ready */
		mdb_env_set_flags(ix->env, MDB_NOSYNC, 1);
	return open_dbs(ix);
}

void vx_index_ready(struct vx_index *ix)
{
	if (ix->write)
		mdb_env_set_flags(ix->env, MDB_NOSYNC, 0);
}

static void free_index(struct vx_index *ix)
{
	if (ix->env && !atomic_load(&ix->broken))
		mdb_env_close(ix->env);
	pthread_rwlock_destroy(&ix->map);
	free(ix);
}

/* Opening a FIFO would wait for ever; a link that leads nowhere would be a file made there; what
 * has another name as well is perhaps somebody else's. */
static bool is_odd(const char *dir, const char *name)
{
	char p[PATH_MAX + 16];
	struct stat st;
	snprintf(p, sizeof p, "%s/%s", dir, name);
	return lstat(p, &st) == 0 && (!S_ISREG(st.st_mode) || st.st_nlink != 1);
}

static int open_once(
	const char *dir, bool write, bool sync, uint64_t map_bytes, struct vx_index **ret)
{
	if (is_odd(dir, "data.mdb") || is_odd(dir, "lock.mdb"))
		return -EBADMSG;
	struct vx_index *ix = vx_xcalloc(1, sizeof *ix);
	snprintf(ix->dir, sizeof ix->dir, "%s", dir);
	ix->write = write;
	ix->sync = sync;
	pthread_rwlock_init(&ix->map, NULL);
	uint64_t map = map_bytes ? map_bytes : VX_INDEX_MAP_BYTES;
	int r;
	for (;;) {
		struct call c = {.ix = ix, .arg = &map};
		r = guarded(open_env, &c);
		if ((r != -ENOMEM && r != -ENOSPC) || map < (16U << 20) || map_bytes)
			break;
		/* address space is limited here: a smaller map, grown when needed */
		mdb_env_close(ix->env);
		ix->env = NULL;
		map /= 8;
	}
	if (r == 0)
		r = vx_index_read(ix, check_schema, NULL);
	if (r == -ENOENT || (r == -EACCES && write && vx_index_writable(ix)))
		r = write ? vx_index_write(ix, check_schema, NULL) : -EROFS;
	if (r < 0) {
		free_index(ix);
		return r;
	}
	*ret = ix;
	return 0;
}

/* Renames the damaged index out of the way. Processes that use it keep what they have open. */
static int put_aside(const char *parent, const char *dir, const char *marker)
{
	char aside[PATH_MAX + 64];
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	snprintf(aside, sizeof aside, "%s/tmp/damaged-%lld-%d", parent, (long long)ts.tv_sec,
		(int)getpid());
	int r = vx_mkdir_p(AT_FDCWD, dir, 0777);
	if (r == 0 && rename(dir, aside) < 0)
		r = -errno;
	if (r == 0)
		unlink(marker);
	return r;
}

int vx_index_open(const char *parent, bool write, bool sync, uint64_t map_bytes,
	struct vx_index **ret, bool *ret_aside)
{
	install_handlers();
	char dir[PATH_MAX], marker[PATH_MAX + 16];
	if (snprintf(dir, sizeof dir, "%s/index", parent) >= (int)sizeof dir)
		return -ENAMETOOLONG;
	snprintf(marker, sizeof marker, "%s.damaged", dir);
	struct stat st;
	bool marked = lstat(marker, &st) == 0, aside = false;
	if (marked && !write)
		return -EBADMSG;
	if (!write && stat(dir, &st) < 0)
		return errno == ENOENT ? -EROFS : -errno;
	int r = marked                        ? -EBADMSG
		: write && stat(dir, &st) < 0 ? vx_mkdir_p(AT_FDCWD, dir, 0777)
					      : 0;
	if (r == 0)
		r = open_once(dir, write, sync, map_bytes, ret);
	if (r == -EBADMSG && write && put_aside(parent, dir, marker) == 0) {
		aside = true;
		r = vx_mkdir_p(AT_FDCWD, dir, 0777);
		if (r == 0)
			r = open_once(dir, write, sync, map_bytes, ret);
	}
	if (r == 0)
		*ret_aside = aside;
	return r;
}

void vx_index_close(struct vx_index *ix)
{
	if (ix)
		free_index(ix);
}

bool vx_index_writable(const struct vx_index *ix)
{
	return ix->write && !atomic_load(&ix->damaged);
}

bool vx_index_damaged(const struct vx_index *ix)
{
	return atomic_load(&ix->damaged);
}

bool vx_index_in_place(const struct vx_index *ix)
{
	char p[PATH_MAX + 16];
	struct stat mine, there;
	int fd;
	snprintf(p, sizeof p, "%s/data.mdb", ix->dir);
	return !atomic_load(&ix->damaged) && mdb_env_get_fd(ix->env, &fd) == 0 &&
	       fstat(fd, &mine) == 0 && lstat(p, &there) == 0 && mine.st_ino == there.st_ino &&
	       mine.st_dev == there.st_dev;
}

uint64_t vx_index_commits(const struct vx_index *ix)
{
	return atomic_load(&ix->commits);
}

uint64_t vx_index_bad_rows(const struct vx_index *ix)
{
	return atomic_load(&ix->bad_rows);
}

static int env_bytes(struct call *c)
{
	MDB_envinfo info;
	MDB_stat st;
	mdb_env_info(c->ix->env, &info);
	mdb_env_stat(c->ix->env, &st);
	*(uint64_t *)c->arg = (uint64_t)(info.me_last_pgno + 1) * st.ms_psize;
	return 0;
}

uint64_t vx_index_bytes(struct vx_index *ix)
{
	uint64_t n = 0;
	struct call c = {.ix = ix, .arg = &n};
	guarded(env_bytes, &c);
	return n;
}

/* ---- transactions ---- */

static int resize_map(struct vx_index *ix, bool grow)
{
	pthread_rwlock_wrlock(&ix->map);
	MDB_envinfo info;
	mdb_env_info(ix->env, &info);
	uint64_t want = grow ? (uint64_t)info.me_mapsize * 2 : 0;
	int r = want > VX_INDEX_MAX_MAP_BYTES ? -ENOSPC : code(mdb_env_set_mapsize(ix->env, want));
	pthread_rwlock_unlock(&ix->map);
	return r;
}

static int step_begin(struct call *c)
{
	return code(mdb_txn_begin(
		c->ix->env, NULL, c->t->ix->write && c->arg ? 0 : MDB_RDONLY, &c->t->txn));
}

/* Before the first change: see pages.h. */
static int step_check(struct call *c)
{
	struct vx_index *ix = c->ix;
	MDB_stat st;
	struct stat file;
	int fd;
	mdb_env_stat(ix->env, &st);
	if (mdb_env_get_fd(ix->env, &fd) != 0 || fstat(fd, &file) < 0)
		return -EIO;
	size_t n = (size_t)file.st_size;
	void *map = mmap(NULL, n > 0 ? n : 1, PROT_READ, MAP_SHARED, fd, 0);
	if (map == MAP_FAILED)
		return -errno;
	int r = vx_pages_check(map, n, st.ms_psize, mdb_txn_id(c->t->txn));
	munmap(map, n > 0 ? n : 1);
	if (r == 0)
		atomic_store(&ix->checked, true);
	return r;
}

static int step_run(struct call *c)
{
	return c->fn(c->t, c->arg);
}

static int step_commit(struct call *c)
{
	MDB_txn *t = c->t->txn;
	c->t->txn = NULL;
	return code(mdb_txn_commit(t));
}

static int step_abort(struct call *c)
{
	MDB_txn *t = c->t->txn;
	c->t->txn = NULL;
	mdb_txn_abort(t);
	return 0;
}

/* One attempt, under the map's read lock. */
static int attempt(struct vx_index *ix, bool write, int (*fn)(struct vx_tx *t, void *arg),
	void *arg, bool *ret_full)
{
	struct vx_tx t = {.ix = ix};
	struct call begin = {.ix = ix, .t = &t, .arg = write ? ix : NULL};
	int r = guarded(step_begin, &begin);
	if (r < 0)
		return r;
	struct call run = {.ix = ix, .t = &t, .fn = fn, .arg = arg};
	r = write && !atomic_load(&ix->checked) ? guarded(step_check, &run) : 0;
	if (r == 0)
		r = guarded(step_run, &run);
	if (write && r >= 0 && !t.full) {
		int k = guarded(step_commit, &run);
		if (k == -ENOSPC)
			t.full = true;
		r = k < 0 ? k : r;
		if (k == 0)
			atomic_fetch_add(&ix->commits, 1);
	} else if (t.txn && !run.broke) {
		/* cursors of a step that was left lie on a stack that is gone: such a transaction
		 * goes with its thread */
		guarded(step_abort, &run);
	}
	free(t.scratch);
	*ret_full = t.full;
	return r;
}

static int transact(
	struct vx_index *ix, bool write, int (*fn)(struct vx_tx *t, void *arg), void *arg)
{
	for (int tries = 0;; tries++) {
		if (atomic_load(&ix->damaged))
			return -EBADMSG;
		bool full = false;
		pthread_rwlock_rdlock(&ix->map);
		int r = attempt(ix, write, fn, arg, &full);
		pthread_rwlock_unlock(&ix->map);
		if (r == -EBADMSG)
			return mark_damaged(ix);
		if (full && tries < 40 && resize_map(ix, true) == 0)
			continue;
		if (r == -ESTALE && tries < 40 && resize_map(ix, false) == 0)
			continue;
		int dead;
		if (r == -EAGAIN && tries < 40 && mdb_reader_check(ix->env, &dead) == 0) {
			nanosleep(&(struct timespec){0, 2000000}, NULL);
			continue;
		}
		return r;
	}
}

int vx_index_read(struct vx_index *ix, int (*fn)(struct vx_tx *t, void *arg), void *arg)
{
	return transact(ix, false, fn, arg);
}

int vx_index_write(struct vx_index *ix, int (*fn)(struct vx_tx *t, void *arg), void *arg)
{
	return ix->write ? transact(ix, true, fn, arg) : -EROFS;
}

uint64_t vx_tx_id(const struct vx_tx *t)
{
	return mdb_txn_id(t->txn);
}

uint64_t vx_tx_count(struct vx_tx *t, enum vx_db db)
{
	MDB_stat st = {0};
	mdb_stat(t->txn, t->ix->dbi[db], &st);
	return st.ms_entries;
}

int vx_tx_get(struct vx_tx *t, enum vx_db db, const void *key, size_t key_n, const void **ret,
	size_t *ret_n)
{
	MDB_val k = {key_n, (void *)(uintptr_t)key}, v;
	if (t->ix->absent[db])
		return -ENOENT;
	int rc = mdb_get(t->txn, t->ix->dbi[db], &k, &v);
	if (rc)
		return code(rc);
	uint64_t s = 0;
	const uint8_t *p = (const uint8_t *)v.mv_data + SUM_BYTES;
	if (v.mv_size >= SUM_BYTES)
		memcpy(&s, v.mv_data, SUM_BYTES);
	if (v.mv_size < SUM_BYTES || s != sum(db, key, key_n, p, v.mv_size - SUM_BYTES)) {
		atomic_fetch_add(&t->ix->bad_rows, 1);
		return -ENOENT;
	}
	*ret = p;
	*ret_n = v.mv_size - SUM_BYTES;
	return 0;
}

int vx_tx_put(
	struct vx_tx *t, enum vx_db db, const void *key, size_t key_n, const void *val, size_t n)
{
	vx_assert(key_n <= VX_INDEX_KEY_BYTES);
	if (t->scratch_cap < n + SUM_BYTES) {
		t->scratch_cap = n + SUM_BYTES + 4096;
		t->scratch = vx_xrealloc(t->scratch, t->scratch_cap);
	}
	uint64_t s = sum(db, key, key_n, val, n);
	memcpy(t->scratch, &s, SUM_BYTES);
	if (n)
		memcpy(t->scratch + SUM_BYTES, val, n);
	MDB_val k = {key_n, (void *)(uintptr_t)key}, v = {n + SUM_BYTES, t->scratch};
	int rc = mdb_put(t->txn, t->ix->dbi[db], &k, &v, 0);
	t->full |= rc == MDB_MAP_FULL;
	return code(rc);
}

int vx_tx_del(struct vx_tx *t, enum vx_db db, const void *key, size_t key_n)
{
	MDB_val k = {key_n, (void *)(uintptr_t)key};
	int rc = mdb_del(t->txn, t->ix->dbi[db], &k, NULL);
	t->full |= rc == MDB_MAP_FULL;
	return rc == MDB_NOTFOUND ? 0 : code(rc);
}

int vx_tx_each(struct vx_tx *t, enum vx_db db,
	int (*fn)(void *arg, const void *key, size_t key_n, const void *val, size_t n, bool ok),
	void *arg)
{
	MDB_cursor *cur;
	if (t->ix->absent[db])
		return 0;
	int rc = mdb_cursor_open(t->txn, t->ix->dbi[db], &cur);
	if (rc)
		return code(rc);
	MDB_val k, v;
	int r = 0;
	while (r == 0 && (rc = mdb_cursor_get(cur, &k, &v, MDB_NEXT)) == 0) {
		uint64_t s = 0;
		const uint8_t *p = (const uint8_t *)v.mv_data + SUM_BYTES;
		bool ok = v.mv_size >= SUM_BYTES;
		if (ok) {
			memcpy(&s, v.mv_data, SUM_BYTES);
			ok = s == sum(db, k.mv_data, k.mv_size, p, v.mv_size - SUM_BYTES);
		}
		r = fn(arg, k.mv_data, k.mv_size, ok ? p : NULL, ok ? v.mv_size - SUM_BYTES : 0,
			ok);
	}
	mdb_cursor_close(cur);
	return r ? r : rc == MDB_NOTFOUND ? 0 : code(rc);
}
