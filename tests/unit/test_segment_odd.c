/* Segments in bad company: two prunes at once, a power failure, an index that was put aside,
 * limits, file systems that can do less, and things that are no segments. */
#include "segtest.h"

#include "vx/assert.h"

#include <lmdb.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>

/* ---- a system that can do less: these stand before those of the C library ---- */

static bool no_locks, no_holes;
static const char *before_lock; /* what is done before the next exclusive one */

int flock(int fd, int op)
{
	if (no_locks && (op & LOCK_EX)) {
		errno = ENOLCK;
		return -1;
	}
	if (before_lock && (op & LOCK_EX)) {
		assert_int_equal(vxt_sh(before_lock, NULL), 0);
		before_lock = NULL;
	}
	return (int)syscall(SYS_flock, fd, op);
}

int fallocate(int fd, int mode, off_t off, off_t n)
{
	if (no_holes) {
		errno = EOPNOTSUPP;
		return -1;
	}
	return (int)syscall(SYS_fallocate, fd, mode, off, n);
}

/* What happens at a write to a segment: it fails, or the segment is taken away. */
static struct failing {
	struct vx_store *store;
	bool armed, another; /* another one appends meanwhile */
	const char *command;
} failing;

struct failing_io {
	struct vx_io io;
	struct vx_io *inner;
};

static void failing_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n)
{
	struct vx_io *inner = ((struct failing_io *)io)->inner;
	struct vx_io_step *s = &chains[0].steps[0];
	struct vx_store *st = failing.store;
	if (!failing.armed || n != 1 || chains[0].n != 1 || s->op != VX_IO_WRITE) {
		inner->run(inner, chains, n);
		return;
	}
	failing.armed = false;
	if (failing.command) {
		inner->run(inner, chains, n);
		assert_int_equal(vxt_sh(failing.command, NULL), 0);
		failing.command = NULL;
		return;
	}
	assert_int_equal(pwrite(s->fd, s->buf, s->n / 2, (off_t)s->off), s->n / 2);
	if (failing.another) {
		assert_int_equal(st->seg_end, s->off + s->n);
		assert_int_equal(pwrite(s->fd, "another's", 9, (off_t)st->seg_end), 9);
		st->seg_end += 9;
	}
	s->res = -ENOSPC;
}

static void failing_sys(struct vx_io *io, struct vx_io_step *s)
{
	struct vx_io *inner = ((struct failing_io *)io)->inner;
	inner->sys(inner, s);
}

static void failing_free(struct vx_io *io)
{
	vx_io_free(((struct failing_io *)io)->inner);
	free(io);
}

static struct vx_io *failing_new(void *arg, char *ret_name, size_t cap)
{
	struct failing_io *m = vx_xcalloc(1, sizeof *m);
	(void)arg;
	snprintf(ret_name, cap, "failing");
	m->inner = vx_io_blocking_new();
	m->io = (struct vx_io){
		.name = "failing", .run = failing_run, .sys = failing_sys, .free = failing_free};
	return &m->io;
}

/* Another process, as it were. */
static struct vx_store *open_another(struct world *w, bool write)
{
	struct vx_err err = {0};
	struct vx_store *s;
	struct vx_store_opts o = {.dir = vxt_path(w->t.root, ".vx/cache"),
		.workspace = w->t.root,
		.read = true,
		.write = write};
	assert_int_equal(vx_store_open(&o, &s, &err), 0);
	return s;
}

static bool is_in(struct vx_store *s, const char *key)
{
	struct vx_digest d = lt_key(key);
	struct vx_entry e;
	bool found = false;
	assert_true(vx_store_probe(s, &d, 1, &found, &e) >= 0);
	return found;
}

/* While one prune has yet to reclaim what it gave up, another one cuts nothing off that somebody
 * could then append to again; it leaves gaps to the next. */
static void test_two_prunes(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 30000);
	save(&w, "b", 30000);
	save(&w, "c", 30000);
	struct vx_entry a = entry(&w, "a"), c = entry(&w, "c");
	lt_reopen(&w.t);
	struct vx_store *other = open_another(&w, true);
	int lock = vx_segments_lock(other);
	assert_true(lock >= 0);
	assert_true(vx_segments_lock(w.t.store) < 0);
	struct stat before = segment_stat(&w, a.segment);
	vx_json_free(prune_one(&w, "b"));
	vx_json_free(prune_one(&w, "c"));
	struct stat st = segment_stat(&w, a.segment);
	assert_int_equal(st.st_size, before.st_size);
	assert_int_equal(st.st_blocks, before.st_blocks);
	vx_close(lock);
	struct vx_json *j = prune(&w, 0);
	assert_int_equal(num(j, "orphans"), 1);
	assert_int_equal(num(j, "bytes"), c.offset + c.artifact_bytes - a.artifact_bytes);
	vx_json_free(j);
	assert_int_equal(segment_stat(&w, a.segment).st_size, a.artifact_bytes);
	assert_restores(&w, "a");
	vx_store_close(other);
	lt_end(&w.t);
}

/* The power failed before the bytes of the last places had got to the disk: what comes next goes
 * elsewhere, so that no two places overlap. What a prune has cut off is no reason for that. */
static void test_cut_off(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 20000);
	save(&w, "b", 20000);
	save(&w, "c", 20000);
	struct vx_entry a = entry(&w, "a"), c = entry(&w, "c");
	lt_reopen(&w.t);
	vx_json_free(prune_one(&w, "c"));
	assert_int_equal(segment_stat(&w, a.segment).st_size, c.offset);
	save(&w, "d", 500);
	struct vx_entry d = entry(&w, "d");
	assert_true(d.segment == a.segment && d.offset == c.offset);
	lt_reopen(&w.t);
	char path[VX_SEGMENT_PATH];
	vx_segment_path(a.segment, path);
	int fd = vx_open(w.t.store->dir_fd, path, O_WRONLY, 0);
	assert_int_equal(ftruncate(fd, (off_t)(a.artifact_bytes + 1000)), 0);
	vx_close(fd);
	save(&w, "e", 100);
	struct vx_entry e = entry(&w, "e");
	assert_true(e.segment != a.segment);
	assert_false(has(&w, "b") || has(&w, "d"));
	vx_json_free(prune_one(&w, "b"));
	assert_restores(&w, "a");
	assert_restores(&w, "e");
	lt_end(&w.t);
}

static int put_odd_place(struct vx_tx *t, void *arg)
{
	struct vx_digest d = lt_key("nobody's");
	return vx_place_put(t, &d, arg);
}

/* Should places overlap in spite of that: what is given up takes nothing along that is needed,
 * whether somebody appends or not. */
static void test_overlap(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 20000);
	save(&w, "b", 20000);
	save(&w, "c", 20000);
	struct vx_entry b = entry(&w, "b");
	w.t.store->seg_end += 100; /* a gap, so that a prune has something to do */
	save(&w, "d", 3000);
	for (int open = 1; open >= 0; open--) {
		uint64_t off[] = {
			0, b.offset - 1, b.offset, b.offset + 1, b.offset + b.artifact_bytes - 1};
		for (size_t i = 0; i < VX_ARRAY_LEN(off); i++) {
			struct vx_place p = {
				b.segment, off[i], i ? 20000 : VX_SEGMENT_ARTIFACT_BYTES};
			if (!open)
				lt_reopen(&w.t);
			assert_int_equal(vx_index_write(w.t.store->ix, put_odd_place, &p), 0);
			vx_json_free(prune(&w, 0));
			struct vx_digest d = lt_key("nobody's");
			assert_int_equal(vx_place_find(w.t.store, &d, &p), -ENOENT);
			assert_whole(&w);
		}
		assert_restores(&w, "a");
		assert_restores(&w, "b");
		assert_restores(&w, "c");
	}
	lt_end(&w.t);
}

/* A process that has the index open which another one has put aside takes nothing for unneeded. */
static void test_old_index(void **state)
{
	(void)state;
	static const char *const how[] = {
		": >.vx/cache/v1/index.damaged", "rm -r .vx/cache/v1/index"};
	for (int i = 0; i < 2; i++) {
		struct world w;
		struct vx_json *j = NULL;
		struct vx_err err = {0};
		uint64_t n, bytes;
		begin(&w);
		save(&w, "a", 3000);
		struct vx_place gone = {0};
		struct vx_store *old = open_another(&w, true);
		lt_close(&w.t);
		assert_int_equal(lt_sh(&w.t, how[i]), 0);
		lt_open(&w.t);
		save(&w, "b", 3000);
		lt_reopen(&w.t);
		assert_true(is_in(old, "a"));
		assert_int_equal(
			vx_store_prune(old, &(struct vx_prune_opts){.max_bytes = 1}, &j, &err),
			-ESTALE);
		assert_non_null(strstr(err.what, "aside"));
		/* it was put aside in between */
		assert_int_equal(vx_segments_reclaim(old, &gone, 1, &n, &bytes), 0);
		vx_store_close(old);
		assert_restores(&w, "b");
		lt_end(&w.t);
	}
}

/* A limit of file sizes (ulimit -f): a segment that has become too long for it is not gone on with,
 * by the process that has made it so or a later one. */
static void test_size_limit(void **state)
{
	(void)state;
	struct world w;
	struct vx_lane_event e;
	struct rlimit was, few;
	begin(&w);
	save(&w, "a", 20000);
	uint64_t first = entry(&w, "a").segment;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	few = (struct rlimit){1 << 20, was.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	for (int i = 0; i < 2; i++) {
		if (i) {
			lt_close(&w.t);
			assert_int_equal(lt_sh(&w.t, "truncate -s 1020000 .vx/cache/v1/s/*"), 0);
			lt_open(&w.t);
		} else {
			w.t.store->seg_end = 1020000;
		}
		assert_int_equal(lt_sh(&w.t, "head -c 40000 /dev/urandom >p/dist/f"), 0);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &few), 0);
		bool ok = lt_save(&w.t, i ? "c" : "b", &w.o, &e);
		assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
		assert_true(ok);
	}
	struct vx_entry b = entry(&w, "b"), c = entry(&w, "c");
	assert_true(b.segment != first && c.segment != first && c.segment != b.segment);
	lt_reopen(&w.t);
	assert_restores(&w, "a");
	assert_restores(&w, "b");
	assert_restores(&w, "c");
	assert_whole(&w);
	lt_end(&w.t);
}

/* No locks, no saves, and no litter. No holes: what is given up stays a gap that is counted, and
 * goes with its segment. */
static void test_lesser_file_systems(void **state)
{
	(void)state;
	struct world w;
	struct vx_lane_event e;
	begin(&w);
	save(&w, "a", 20000);
	save(&w, "b", 20000);
	save(&w, "c", 20000);
	struct vx_entry b = entry(&w, "b"), c = entry(&w, "c");
	lt_reopen(&w.t);
	no_locks = true;
	assert_int_equal(lt_sh(&w.t, "echo x >>p/dist/f"), 0);
	bool ok = lt_save(&w.t, "d", &w.o, &e);
	no_locks = false;
	assert_false(ok);
	assert_int_equal(segments(&w), 1);
	no_holes = true;
	vx_json_free(prune_one(&w, "b"));
	struct vx_json *j = prune(&w, 0);
	assert_int_equal(num(j, "orphans"), 1);
	vx_json_free(j);
	assert_int_equal(segment_stat(&w, b.segment).st_size, c.offset + c.artifact_bytes);
	assert_restores(&w, "a");
	assert_restores(&w, "c");
	assert_whole(&w);
	vx_json_free(prune(&w, 1));
	no_holes = false;
	assert_int_equal(segments(&w), 0);
	lt_end(&w.t);
}

/* A write that fails leaves nothing where it is the last, and a gap where another one has appended
 * behind it. */
static void test_no_space(void **state)
{
	(void)state;
	for (int another = 0; another < 2; another++) {
		struct world w = {.t = {.new_io = failing_new}};
		struct vx_lane_event e;
		lt_begin(&w.t);
		w.o = lt_outputs(&w.t, "p", "dist/**");
		save(&w, "a", 3000);
		struct vx_entry a = entry(&w, "a");
		assert_int_equal(lt_sh(&w.t, "head -c 5000 /dev/urandom >p/dist/f"), 0);
		failing.store = w.t.store;
		failing.another = another;
		failing.armed = true;
		assert_false(lt_save(&w.t, "b", &w.o, &e));
		assert_non_null(strstr(e.text, "No space left"));
		off_t size = segment_stat(&w, a.segment).st_size;
		assert_true(another ? size > (off_t)a.artifact_bytes + 5000
				    : size == (off_t)a.artifact_bytes);
		assert_int_equal(w.t.store->seg_end, size);
		save(&w, "c", 3000);
		assert_int_equal(entry(&w, "c").offset, size);
		assert_false(has(&w, "b"));
		assert_restores(&w, "a");
		assert_restores(&w, "c");
		assert_whole(&w);
		lt_end(&w.t);
	}
}

/* One that nothing could be written to is not left behind. */
static void test_nothing_written(void **state)
{
	(void)state;
	struct world w = {.t = {.new_io = failing_new}};
	struct vx_lane_event e;
	lt_begin(&w.t);
	w.o = lt_outputs(&w.t, "p", "dist/**");
	vxt_write(w.t.root, "p/dist/f", "x");
	failing = (struct failing){.store = w.t.store, .armed = true};
	assert_false(lt_save(&w.t, "a", &w.o, &e));
	assert_int_equal(segments(&w), 1);
	lt_reopen(&w.t);
	assert_int_equal(segments(&w), 0);
	lt_end(&w.t);
}

/* Where places end at least is noted, in whatever order they are committed; and with VX_FSYNC=1
 * bytes are on the disk before that. */
static void test_noted(void **state)
{
	(void)state;
	struct world w;
	struct vx_lane_stats stats;
	begin(&w);
	save(&w, "a", 20000);
	save(&w, "b", 20000);
	vx_lane_stats(w.t.lane, &stats);
	assert_int_equal(stats.steps[VX_IO_FSYNC], 0);
	struct vx_entry a = entry(&w, "a"), b = entry(&w, "b");
	uint64_t end = 0;
	for (int i = 0; i < 2; i++) {
		assert_true(vx_segment_last(w.t.store, &end) == a.segment);
		assert_int_equal(end, b.offset + b.artifact_bytes);
		struct vx_commit c = {
			.artifact = a.artifact, .place = {a.segment, a.offset, a.artifact_bytes}};
		assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
		assert_int_equal(c.res, 0);
	}
	setenv("VX_FSYNC", "1", 1);
	lt_reopen(&w.t);
	save(&w, "c", 20000);
	vx_lane_stats(w.t.lane, &stats);
	assert_int_equal(stats.steps[VX_IO_FSYNC], 1);
	unsetenv("VX_FSYNC");
	lt_end(&w.t);
}

/* A segment that goes while something is on its way into it costs that, and no more. One that goes
 * between being opened and being locked costs nothing. */
static void test_taken_away_meanwhile(void **state)
{
	(void)state;
	struct world w = {.t = {.new_io = failing_new}};
	struct vx_lane_event e;
	lt_begin(&w.t);
	w.o = lt_outputs(&w.t, "p", "dist/**");
	char cmd[PATH_MAX + 64];
	snprintf(cmd, sizeof cmd, "rm '%s'/.vx/cache/v1/s/*", w.t.root);
	save(&w, "a", 3000);
	assert_int_equal(lt_sh(&w.t, "echo b >>p/dist/f"), 0);
	failing.command = cmd;
	failing.armed = true;
	assert_false(lt_save(&w.t, "b", &w.o, &e));
	assert_non_null(strstr(e.text, "removed meanwhile"));
	save(&w, "c", 3000);
	assert_restores(&w, "c");
	assert_false(has(&w, "a") || has(&w, "b"));
	uint64_t first = entry(&w, "c").segment;
	lt_reopen(&w.t);
	before_lock = cmd;
	save(&w, "d", 3000);
	assert_null(before_lock);
	assert_true(entry(&w, "d").segment != first);
	assert_restores(&w, "d");
	lt_end(&w.t);
}

/* A store made before there were places. */
static void test_before_places(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "small", 3000);
	save(&w, "large", 100000);
	lt_close(&w.t);
	MDB_env *env;
	MDB_txn *t;
	MDB_dbi db;
	assert_int_equal(mdb_env_create(&env), 0);
	assert_int_equal(mdb_env_set_maxdbs(env, 8), 0);
	assert_int_equal(mdb_env_set_mapsize(env, 1 << 30), 0);
	assert_int_equal(mdb_env_open(env, vxt_path(w.t.root, ".vx/cache/v1/index"), 0, 0666), 0);
	assert_int_equal(mdb_txn_begin(env, NULL, 0, &t), 0);
	assert_int_equal(mdb_dbi_open(t, "places", 0, &db), 0);
	assert_int_equal(mdb_drop(t, db, 1), 0);
	assert_int_equal(mdb_txn_commit(t), 0);
	mdb_env_close(env);
	assert_int_equal(lt_sh(&w.t, "rm -r .vx/cache/v1/s"), 0);
	struct vx_store *s = open_another(&w, false);
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t problems;
	assert_true(is_in(s, "large"));
	assert_false(is_in(s, "small"));
	assert_int_equal(vx_store_stats(s, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 2);
	assert_int_equal(num(j, "orphans"), 0);
	vx_json_free(j);
	assert_int_equal(vx_store_verify(s, &j, &problems, &err), 0);
	assert_int_equal(problems, 1);
	vx_json_free(j);
	vx_store_close(s);
	lt_open(&w.t);
	assert_null(vx_store_why(w.t.store));
	assert_true(has(&w, "large"));
	save(&w, "small", 3000);
	assert_restores(&w, "small");
	assert_restores(&w, "large");
	assert_whole(&w);
	lt_end(&w.t);
}

/* What stands where the segment to go on with should be. */
static void test_no_segment(void **state)
{
	(void)state;
	static const char *const how[] = {"rm $f && mkfifo $f", "rm $f && mkdir $f",
		"mv $f x && ln -s ../../../../x $f", "truncate -s 1T $f", ": >$f", "chmod 0 $f",
		"rm -r $d"};
	alarm(VXT_HANG_S);
	for (size_t i = 0; i < VX_ARRAY_LEN(how); i++) {
		struct world w;
		char cmd[PATH_MAX];
		begin(&w);
		save(&w, "a", 3000);
		struct vx_entry a = entry(&w, "a");
		lt_close(&w.t);
		snprintf(cmd, sizeof cmd, "d=.vx/cache/v1/s; f=$(echo $d/*); %s", how[i]);
		assert_int_equal(lt_sh(&w.t, cmd), 0);
		lt_open(&w.t);
		save(&w, "b", 3000);
		assert_true(i == 5 || entry(&w, "b").segment != a.segment);
		assert_restores(&w, "b");
		if (has(&w, "a") && (i != 5 || geteuid() == 0)) /* root reads it all the same */
			assert_restores(&w, "a");
		vx_json_free(prune_one(&w, "b"));
		lt_reopen(&w.t);
		vx_json_free(prune(&w, 1));
		/* nothing is done to what a link leads to */
		assert_int_equal(lt_sh(&w.t, "test ! -f x || test -s x"), 0);
		save(&w, "c", 3000);
		assert_restores(&w, "c");
		lt_end(&w.t);
	}
	/* where no segment can be made: said, and nothing else */
	struct world w;
	struct vx_lane_event e;
	begin(&w);
	assert_int_equal(
		lt_sh(&w.t, "mkdir -p p/dist && echo x >p/dist/f && echo y >.vx/cache/v1/s"), 0);
	assert_false(lt_save(&w.t, "a", &w.o, &e));
	assert_non_null(strstr(e.text, "an artifact could not be written to the cache"));
	save(&w, "large", 100000);
	assert_restores(&w, "large");
	vx_json_free(prune(&w, 1));
	assert_int_equal(lt_sh(&w.t, "test -f .vx/cache/v1/s"), 0);
	lt_end(&w.t);
	alarm(0);
}

/* Whoever goes by what the store was like learns that a segment has gone. */
static void test_stamp(void **state)
{
	(void)state;
	struct world w;
	struct vx_store_stamp a, b;
	begin(&w);
	save(&w, "a", 3000);
	lt_close(&w.t);
	assert_int_equal(vx_store_stamp(vxt_path(w.t.root, ".vx/cache"), &a), 0);
	assert_int_equal(vx_store_stamp(vxt_path(w.t.root, ".vx/cache"), &b), 0);
	assert_memory_equal(&a, &b, sizeof a);
	assert_int_equal(lt_sh(&w.t, "rm .vx/cache/v1/s/*"), 0);
	assert_int_equal(vx_store_stamp(vxt_path(w.t.root, ".vx/cache"), &b), 0);
	assert_memory_not_equal(&a, &b, sizeof a);
	lt_open(&w.t);
	lt_end(&w.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_two_prunes),
		cmocka_unit_test(test_cut_off),
		cmocka_unit_test(test_overlap),
		cmocka_unit_test(test_old_index),
		cmocka_unit_test(test_size_limit),
		cmocka_unit_test(test_lesser_file_systems),
		cmocka_unit_test(test_no_space),
		cmocka_unit_test(test_nothing_written),
		cmocka_unit_test(test_noted),
		cmocka_unit_test(test_taken_away_meanwhile),
		cmocka_unit_test(test_before_places),
		cmocka_unit_test(test_no_segment),
		cmocka_unit_test(test_stamp),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
