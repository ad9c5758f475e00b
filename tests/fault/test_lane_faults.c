/* Every system call of the lanes is failed in turn, in every way it can fail. Whatever fails: no
 * wrong output, no temporary, no row without its artifact, one line that says what happened; and
 * the next try, without the fault, does what was asked. */
#include "lanetest.h"

#include "vx/json.h"

#include <sys/mount.h>

enum how { H_ERROR, H_SHORT, H_CANCEL };

/* Shared by all objects of a lane. */
static struct {
	atomic_int count;
	int fail_at; /* 0: never */
	enum how how;
	int err;
	atomic_int hit_op; /* which operation was failed, -1 none */
	/* a directory that comes into being while a restore stages its first file */
	const char *comes;
} fault;

struct faulty {
	struct vx_io io;
	struct vx_io *inner;
};

static bool now(const struct vx_io_step *s)
{
	if (atomic_fetch_add(&fault.count, 1) + 1 != fault.fail_at)
		return false;
	atomic_store(&fault.hit_op, (int)s->op);
	return true;
}

/* The step as it fails; what it had to do to leave the process in order is done. */
static void fail_step(struct vx_io *inner, struct vx_io_step *s, int chained)
{
	bool io = s->op == VX_IO_READ || s->op == VX_IO_WRITE;
	s->res = fault.how == H_CANCEL ? -ECANCELED : fault.err;
	if (s->op == VX_IO_CLOSE) {
		struct vx_io_step real = *s;
		if (real.fd == VX_IO_CHAINED)
			real.fd = chained;
		inner->sys(inner, &real);
	} else if (fault.how == H_SHORT && io && s->n > 1) {
		struct vx_io_step real = *s;
		real.n = s->n / 2;
		real.fd = real.fd == VX_IO_CHAINED ? chained : real.fd;
		inner->sys(inner, &real);
		s->res = real.res;
	} else if (fault.how == H_SHORT) {
		s->res = -EINTR;
	}
}

/* Chains step by step, so that one in the middle can fail. */
static void faulty_chain(struct vx_io *inner, struct vx_io_chain *c)
{
	int fd = -1;
	bool ended = false;
	for (uint32_t i = 0; i < c->n; i++) {
		struct vx_io_step *s = &c->steps[i];
		if (ended) {
			s->res = -ECANCELED;
			continue;
		}
		if (now(s)) {
			fail_step(inner, s, fd);
		} else {
			struct vx_io_step real = *s;
			real.fd = real.fd == VX_IO_CHAINED ? fd : real.fd;
			real.keep = true;
			struct vx_io_chain one = {&real, 1};
			inner->run(inner, &one, 1);
			s->res = real.res;
		}
		if (s->op == VX_IO_OPEN && s->res >= 0 && !s->keep)
			fd = (int)s->res;
		if (s->op == VX_IO_CLOSE && s->fd == VX_IO_CHAINED)
			fd = -1;
		ended = s->op != VX_IO_READ &&
			(s->res < 0 || (s->op == VX_IO_WRITE && (size_t)s->res < s->n));
	}
	if (fd >= 0)
		close(fd);
}

static void faulty_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n)
{
	struct vx_io *inner = ((struct faulty *)io)->inner;
	for (uint32_t i = 0; i < n; i++)
		faulty_chain(inner, &chains[i]);
}

static void faulty_sys(struct vx_io *io, struct vx_io_step *s)
{
	struct vx_io *inner = ((struct faulty *)io)->inner;
	if (now(s))
		fail_step(inner, s, -1);
	else
		inner->sys(inner, s);
	if (s->op == VX_IO_TIMES && fault.comes)
		mkdir(fault.comes, 0755);
}

static void faulty_free(struct vx_io *io)
{
	vx_io_free(((struct faulty *)io)->inner);
	free(io);
}

static struct vx_io *faulty_new(void *arg, char *ret_name, size_t cap)
{
	struct faulty *f = vx_xcalloc(1, sizeof *f);
	(void)arg;
	f->inner = vx_io_new(ret_name, cap);
	f->io = (struct vx_io){
		.name = "faulty", .run = faulty_run, .sys = faulty_sys, .free = faulty_free};
	return &f->io;
}

static const struct {
	enum how how;
	int err;
} ways[] = {{H_ERROR, -ENOSPC}, {H_ERROR, -EIO}, {H_ERROR, -EMFILE}, {H_ERROR, -EDQUOT},
	{H_ERROR, -EROFS}, {H_ERROR, -ENOMEM}, {H_ERROR, -EINTR}, {H_ERROR, -EACCES}, {H_SHORT, 0},
	{H_CANCEL, 0}};

/* In a quick run each call fails in two of the ways, which ones turning with the call;
 * VX_ALL_FAULTS=1: in every way. */
static size_t stride(void)
{
	return getenv("VX_ALL_FAULTS") ? 1 : sizeof ways / sizeof *ways / 2;
}

static void arm(int at, size_t way)
{
	atomic_store(&fault.count, 0);
	atomic_store(&fault.hit_op, -1);
	fault.fail_at = at;
	fault.how = ways[way].how;
	fault.err = ways[way].err;
}

static void disarm(void)
{
	fault.fail_at = 0;
}

static const char make_tree[] =
	"rm -rf p && mkdir -p p/a/dist/sub p/a/dist/empty p/a/gen && echo one >p/a/dist/one && head -c 9000 /dev/urandom >p/a/dist/sub/two && "
	"ln -s one p/a/dist/link && echo h >p/a/gen/h && for i in 1 2 3 4 5 6; do echo $i >p/a/dist/sub/n$i; done && chmod 640 p/a/dist/one";

static bool has_stamp(const struct lt *t)
{
	char **names = lt_names(vxt_path(t->root, ".vx"));
	bool has = false;
	for (char **n = names; n && *n; n++) {
		has |= strncmp(*n, "stamp-", 6) == 0;
		free(*n);
	}
	free(names);
	return has;
}

/* What an unlink that failed left is the next run's to remove. Looked at without a shell: it is
 * done for each of thousands of faults. */
static bool litter(struct lt *t, int op)
{
	if (op == VX_IO_UNLINK)
		assert_int_equal(vx_lane_recover(t->root, NULL), 0);
	return lt_count(t, ".vx/stage") || lt_count(t, ".vx/journal") ||
	       lt_count_below(vxt_path(t->root, ".vx/cache/v1/tmp"), false) || has_stamp(t);
}

static void verify_clean(struct lt *t)
{
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t problems;
	assert_int_equal(vx_store_verify(t->store, &j, &problems, &err), 0);
	assert_int_equal(problems, 0);
	vx_json_free(j);
}

static char big_log[200000];

/* One save under a fault. Returns false when the fault came after the last step. */
static bool save_under(struct lt *t, int at, size_t way, const char *before)
{
	struct vx_lane_event e;
	struct vx_save_req r = {.task = 1,
		.id = "a#build",
		.key = lt_key("k"),
		.outputs = lt_outputs(t, "p/a", "dist/** gen/h"),
		.log = big_log,
		.log_bytes = sizeof big_log};
	arm(at, way);
	bool ok = lt_save_req(t, &r, &e);
	int op = atomic_load(&fault.hit_op);
	disarm();
	if (!ok) {
		assert_true(e.text[0]);
		assert_null(strchr(e.text, '\n'));
	}
	assert_true(ok || op >= 0);
	lt_close(t);
	if (litter(t, op))
		fail_msg("litter after operation %d failed (call %d, way %zu)", op, at, way);
	lt_open(t);
	verify_clean(t);
	bool found = lt_restore(t, "k", &r.outputs, &e);
	assert_int_equal(found, ok);
	if (found) {
		assert_int_equal(lt_sh(t, "rm -rf p/a"), 0);
		assert_int_equal(lt_sh(t, "mkdir p/a"), 0);
		assert_true(lt_restore(t, "k", &r.outputs, &e) && e.ok);
		assert_int_equal(e.log_bytes, sizeof big_log);
	}
	lt_same_tree(vxt_path(t->root, "p"), before);
	lt_close(t);
	assert_int_equal(lt_sh(t, "rm -rf .vx && mkdir .vx"), 0);
	lt_open(t);
	return op >= 0;
}

static void test_save(void **state)
{
	(void)state;
	struct lt t = {.new_io = faulty_new};
	bool beside = *state && strcmp(*state, "streamed beside a thread") == 0,
	     stream = beside || (*state && strcmp(*state, "streamed") == 0);
	setenv("VX_IO", *state && !stream ? *state : "blocking", 1);
	for (size_t i = 0; i < sizeof big_log; i++)
		big_log[i] = (char)(rand() % 251);
	lt_begin(&t);
	assert_int_equal(lt_sh(&t, make_tree), 0);
	if (stream) { /* data, a hole, and data */
		char make[200];
		snprintf(make, sizeof make,
			"head -c 1500000 /dev/urandom >p/a/dist/big && truncate -s %d p/a/dist/big && echo end >>p/a/dist/big",
			beside ? 9000000 : 4500000);
		assert_int_equal(lt_sh(&t, make), 0);
	}
	char *before = lt_tree(vxt_path(t.root, "p"));
	size_t step = stride() * (stream && stride() > 1 ? 2 : 1); /* megabytes each time */
	int at = 1;
	for (bool more = true; more; at++)
		for (size_t way = (size_t)at % step; way < sizeof ways / sizeof *ways; way += step)
			more &= save_under(&t, at, way, before);
	assert_true(at > 40);
	free(before);
	lt_end(&t);
}

enum mess { M_GONE, M_GONE_AND_COMES /* dist does, between */, M_CHANGED, M_NONE, M_N };

static void make_mess(const struct lt *t, int m)
{
	if (m == M_GONE || m == M_GONE_AND_COMES) {
		assert_int_equal(vx_rm_rf(AT_FDCWD, vxt_path(t->root, "p/a/dist")), 0);
		assert_int_equal(vx_rm_rf(AT_FDCWD, vxt_path(t->root, "p/a/gen")), 0);
	} else if (m == M_CHANGED) {
		vxt_write(t->root, "p/a/dist/one", "other\n");
		vxt_write(t->root, "p/a/dist/stray", "");
		assert_int_equal(rmdir(vxt_path(t->root, "p/a/dist/empty")), 0);
		assert_int_equal(unlink(vxt_path(t->root, "p/a/dist/link")), 0);
		assert_int_equal(mkdir(vxt_path(t->root, "p/a/dist/link"), 0777), 0);
	}
}

static bool restore_under(struct lt *t, int at, size_t way, int m, const char *before)
{
	struct vx_lane_event e;
	struct vx_outputs o = lt_outputs(t, "p/a", "dist/** gen/h");
	make_mess(t, m);
	fault.comes = m == M_GONE_AND_COMES ? vxt_path(t->root, "p/a/dist") : NULL;
	t->lane->n_causes = 0; /* each is a first one, and told */
	arm(at, way);
	assert_true(lt_restore(t, "k", &o, &e));
	fault.comes = NULL;
	int op = atomic_load(&fault.hit_op);
	disarm();
	if (e.ok) {
		lt_same_tree(vxt_path(t->root, "p"), before);
	} else {
		assert_true(e.text[0]);
		assert_null(strchr(e.text, '\n'));
		assert_null(strstr(e.text, "damaged")); /* the place failed, not the entry */
		assert_true(op >= 0);
	}
	if (litter(t, op))
		fail_msg("litter after operation %d failed (call %d, way %zu)", op, at, way);
	assert_true(lt_restore(t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t->root, "p"), before);
	return op >= 0;
}

static void test_restore(void **state)
{
	(void)state;
	struct lt t = {.new_io = faulty_new};
	struct vx_lane_event e;
	setenv("VX_IO", "blocking", 1);
	lt_begin(&t);
	assert_int_equal(lt_sh(&t, make_tree), 0);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/** gen/h");
	char *before = lt_tree(vxt_path(t.root, "p"));
	disarm();
	assert_true(lt_save(&t, "k", &o, &e));
	for (int m = 0; m < M_N; m++) {
		int at = 1;
		for (bool more = true; more; at++)
			for (size_t way = (size_t)at % stride(); way < sizeof ways / sizeof *ways;
				way += stride())
				more &= restore_under(&t, at, way, m, before);
		assert_true(at > 8);
	}
	free(before);
	lt_end(&t);
}

static void test_clean(void **state)
{
	(void)state;
	struct lt t = {.new_io = faulty_new};
	struct vx_lane_event e;
	setenv("VX_IO", "blocking", 1);
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/** gen/h");
	int at = 1;
	for (bool more = true; more; at++)
		for (size_t way = (size_t)at % stride(); way < sizeof ways / sizeof *ways;
			way += stride()) {
			assert_int_equal(lt_sh(&t, make_tree), 0);
			arm(at, way);
			lt_clean(&t, &o, &e);
			more &= atomic_load(&fault.hit_op) >= 0;
			disarm();
			if (!e.ok) {
				assert_true(e.text[0]);
				lt_clean(&t, &o, &e);
			}
			assert_true(e.ok);
			assert_int_equal(
				lt_sh(&t,
					"test ! -e p/a/dist && test ! -e p/a/gen/h && test -d p/a"),
				0);
		}
	assert_true(at > 20);
	lt_end(&t);
}

/* Chains that came back half done are finished by hand. */
static void test_helpers(void **state)
{
	(void)state;
	char *dir = vxt_tmpdir(), name[32];
	setenv("VX_IO", "blocking", 1);
	int fd = vx_open(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY, 0);
	struct vx_io *io = faulty_new(NULL, name, sizeof name);
	char text[] = "0123456789", back[16];
	for (size_t way = 6; way < 10; way++)
		for (int at = 1; at <= 3 && way != 7; at++) {
			struct vx_io_step v[3] = {{.op = VX_IO_OPEN,
							  .dirfd = fd,
							  .path = "f",
							  .flags = O_WRONLY | O_CREAT | O_TRUNC,
							  .mode = 0644},
				{.op = VX_IO_WRITE, .fd = VX_IO_CHAINED, .buf = text, .n = 10},
				{.op = VX_IO_CLOSE, .fd = VX_IO_CHAINED}};
			struct vx_io_chain c = {v, 3};
			arm(at, way);
			int r = vx_io_careful(io, &c);
			disarm();
			assert_true(r == 0 || at == 3);
			int f = vx_open(fd, "f", O_RDONLY, 0);
			assert_int_equal(vx_read_full(f, back, sizeof back), 10);
			assert_memory_equal(back, text, 10);
			vx_close(f);
		}
	vx_io_free(io);
	vx_close(fd);
	vxt_rm(dir);
}

/* The real thing, where we may mount: a file system of 2 MB that fills up. */
static void test_full_disk(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	unsetenv("VX_IO");
	lt_begin(&t);
	lt_close(&t);
	const char *store = vxt_path(t.root, "small");
	assert_int_equal(vx_mkdir_p(AT_FDCWD, store, 0777), 0);
	if (mount("tmpfs", store, "tmpfs", 0, "size=2m") < 0) {
		lt_open(&t);
		lt_end(&t);
		vxt_skip("no file system can be mounted here");
	}
	setenv("LT_STORE", store, 1);
	lt_open(&t);
	int saved = 0, failed = 0, said = 0;
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	for (int i = 0; i < 12; i++) {
		char key[8];
		snprintf(key, sizeof key, "k%d", i);
		assert_int_equal(
			lt_sh(&t, "mkdir -p p/a/dist && head -c 300000 /dev/urandom >p/a/dist/f"),
			0);
		bool ok = lt_save(&t, key, &o, &e);
		saved += ok;
		failed += !ok;
		said += !ok && e.text[0];
		if (said == 1 && !ok && e.text[0])
			assert_non_null(strstr(e.text, "No space left on device"));
		assert_int_equal(lt_restore(&t, key, &o, &e), ok);
	}
	assert_true(saved > 0 && failed > 0 && said == 1);
	/* large ones are streamed, and compressed and digested in line or by a thread */
	static const char *const large[] = {"head -c 6000000 /dev/urandom >p/a/dist/f",
		"head -c 12000000 /dev/urandom >p/a/dist/f",
		"head -c 9000000 /dev/urandom | base64 >p/a/dist/f"};
	for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
		assert_int_equal(lt_sh(&t, large[i]), 0);
		assert_false(lt_save(&t, "big", &o, &e));
		assert_int_equal(lt_sh(&t, "test -z \"$(find small/v1/tmp -type f)\""), 0);
	}
	verify_clean(&t);
	lt_close(&t);
	unsetenv("LT_STORE");
	assert_int_equal(umount(store), 0);
	lt_open(&t);
	lt_end(&t);
}

/* Where the bytes of an entry's artifact lie. */
static void locate(struct lt *t, const char *key, char ret_path[PATH_MAX], struct vx_entry *ret)
{
	struct vx_digest d = lt_key(key);
	bool found;
	char name[VX_ARTIFACT_PATH];
	assert_int_equal(vx_store_probe(t->store, &d, 1, &found, ret), 1);
	if (ret->segment)
		vx_segment_path(ret->segment, name);
	else
		vx_artifact_path(&ret->artifact, VX_SUFFIX_TAR, name);
	snprintf(ret_path, PATH_MAX, "%s/.vx/cache/v1/%s%s", t->root, ret->segment ? "" : "a/",
		name);
}

/* A segment is written to where it is: the store holds it open. */
static void overwrite(const char *path, const struct vx_buf *b, bool in_place)
{
	if (!in_place) {
		assert_int_equal(vx_write_file_atomic(AT_FDCWD, path, b->data, b->len, 0444), 0);
		return;
	}
	int fd = vx_open(AT_FDCWD, path, O_WRONLY, 0);
	assert_int_equal(pwrite(fd, b->data, b->len, 0), b->len);
	vx_close(fd);
}

/* Row and place as they were. */
static void put_back(struct lt *t, const char *key, const struct vx_entry *e)
{
	struct vx_row row = {.e = *e};
	struct vx_buf b = VX_BUF(4096);
	vx_row_encode(&row, &b);
	struct vx_commit c = {.key = lt_key(key), .row = b.data, .row_n = b.len, .entry = true};
	if (e->segment) {
		c.artifact = e->artifact;
		c.place = (struct vx_place){e->segment, e->offset, e->artifact_bytes};
	}
	assert_int_equal(vx_store_commit(t->store, &c, 1), 0);
	assert_int_equal(c.res, 0);
	vx_buf_free(&b);
}

static void flips(bool large)
{
	struct lt t = {0};
	struct vx_lane_event e;
	struct vx_entry entry;
	char path[PATH_MAX];
	unsetenv("VX_IO");
	lt_begin(&t);
	assert_int_equal(lt_sh(&t, make_tree), 0);
	if (large)
		assert_int_equal(lt_sh(&t, "head -c 70000 /dev/urandom >p/a/dist/sub/noise"), 0);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/** gen/h");
	char *before = lt_tree(vxt_path(t.root, "p"));
	assert_true(lt_save(&t, "before", &o, &e)); /* so that it does not begin a segment */
	assert_int_equal(lt_sh(&t, "touch p/a/dist/one"), 0);
	free(before);
	before = lt_tree(vxt_path(t.root, "p"));
	assert_true(lt_save(&t, "k", &o, &e));
	locate(&t, "k", path, &entry);
	assert_int_equal(entry.segment == 0, large);
	assert_int_equal(entry.offset > 0, !large);
	struct vx_buf clean = VX_BUF(1 << 20);
	assert_int_equal(vx_read_file(AT_FDCWD, path, &clean), 0);
	unsigned seed = 3;
	for (int i = 0; i < 200; i++) {
		size_t bit = (size_t)rand_r(&seed) % (entry.artifact_bytes * 8) +
			     (large ? 0 : entry.offset * 8);
		clean.data[bit / 8] ^= (char)(1 << bit % 8);
		overwrite(path, &clean, !large);
		clean.data[bit / 8] ^= (char)(1 << bit % 8);
		/* it is only looked into when something has to be written */
		assert_int_equal(unlink(vxt_path(t.root, "p/a/dist/sub/n3")), 0);
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_false(e.ok);
		assert_non_null(strstr(e.text, "damaged"));
		assert_int_equal(access(path, F_OK) == 0, !large); /* a segment holds others */
		assert_false(lt_restore(&t, "k", &o, &e));
		vxt_write(t.root, "p/a/dist/sub/n3", "3\n");
		/* run again: another artifact, by its time */
		assert_true(lt_save(&t, "k", &o, &e));
		overwrite(path, &clean, !large);
		put_back(&t, "k", &entry);
	}
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t.root, "p"), before);
	free(before);
	vx_buf_free(&clean);
	lt_end(&t);
}

/* 200 flipped bits of an artifact, in a file of its own and in a segment: never a wrong output,
 * always one line. */
static void test_artifact_flips(void **state)
{
	(void)state;
	flips(false);
	flips(true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_prestate(test_save, (void *)(uintptr_t) "blocking"),
		cmocka_unit_test_prestate(test_save, (void *)(uintptr_t) "uring"),
		cmocka_unit_test_prestate(test_save, (void *)(uintptr_t) "streamed"),
		cmocka_unit_test_prestate(
			test_save, (void *)(uintptr_t) "streamed beside a thread"),
		cmocka_unit_test(test_restore),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_helpers),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_artifact_flips),
	};
	if (getenv("VX_TEST_ONLY")) /* a part of a long campaign: "test_restore" */
		cmocka_set_test_filter(getenv("VX_TEST_ONLY"));
	return cmocka_run_group_tests(tests, NULL, NULL);
}
