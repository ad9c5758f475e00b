/* Segments: many small artifacts in one file; who appends to it, what a prune does to it, and what
 * nobody does. */
#include "segtest.h"

#include <sys/file.h>

/* Saves of one store, and of the next one, go to the same file, one behind the other. */
static void test_one_behind_the_other(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 3000);
	struct vx_entry a = entry(&w, "a");
	assert_true(a.segment != 0);
	assert_int_equal(a.offset, 0);
	save(&w, "b", 20000);
	lt_reopen(&w.t);
	save(&w, "c", 500);
	struct vx_entry b = entry(&w, "b"), c = entry(&w, "c");
	assert_true(b.segment == a.segment && c.segment == a.segment);
	assert_int_equal(b.offset, a.artifact_bytes);
	assert_int_equal(c.offset, b.offset + b.artifact_bytes);
	assert_int_equal(segments(&w), 1);
	assert_int_equal(listed(&w), 3);
	assert_whole(&w);
	assert_restores(&w, "a");
	assert_restores(&w, "c");
	/* a large one is a file of its own */
	save(&w, "d", 200000);
	assert_int_equal(entry(&w, "d").segment, 0);
	lt_end(&w.t);
}

/* A segment that somebody appends to, in this process or another, is left to him. */
static void test_one_writer(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 3000);
	uint64_t first = entry(&w, "a").segment;
	char path[VX_SEGMENT_PATH];
	vx_segment_path(first, path);
	lt_reopen(&w.t);
	int fd = vx_open(w.t.store->dir_fd, path, O_RDWR, 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	save(&w, "b", 3000);
	assert_true(entry(&w, "b").segment != first);
	vx_close(fd);
	lt_reopen(&w.t);
	save(&w, "c", 3000); /* the last one begun is tried, not each that there is */
	assert_true(entry(&w, "c").segment == entry(&w, "b").segment);
	assert_int_equal(segments(&w), 2);
	assert_whole(&w);
	assert_restores(&w, "a");
	assert_restores(&w, "b");
	lt_end(&w.t);
}

/* One that is full is not appended to. */
static void test_full(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 3000);
	uint64_t v[2] = {entry(&w, "a").segment};
	w.t.store->seg_end = VX_SEGMENT_BYTES; /* as if it were */
	save(&w, "b", 3000);
	v[1] = entry(&w, "b").segment;
	assert_true(v[1] != v[0]);
	for (int i = 0; i < 2; i++) {
		char path[VX_SEGMENT_PATH];
		vx_segment_path(v[i], path);
		int fd = vx_open(w.t.store->dir_fd, path, O_RDWR, 0);
		/* both are ours: rows may be on their way */
		assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), -1);
		assert_int_equal(ftruncate(fd, VX_SEGMENT_BYTES), 0);
		vx_close(fd);
	}
	lt_reopen(&w.t);
	save(&w, "c", 3000);
	assert_true(entry(&w, "c").segment != v[0] && entry(&w, "c").segment != v[1]);
	assert_restores(&w, "a");
	assert_restores(&w, "b");
	lt_end(&w.t);
}

static void overwrite(struct world *w, const struct vx_entry *e, const char *text)
{
	char path[VX_SEGMENT_PATH];
	vx_segment_path(e->segment, path);
	int fd = vx_open(w->t.store->dir_fd, path, O_RDWR, 0);
	assert_int_equal(pwrite(fd, text, strlen(text), (off_t)e->offset + 50), strlen(text));
	vx_close(fd);
}

/* The same bytes again are not written again; the place goes with the last entry that needs it. */
static void test_shared(void **state)
{
	(void)state;
	struct world w;
	struct vx_lane_event e;
	begin(&w);
	save(&w, "a", 9000);
	assert_true(lt_save(&w.t, "b", &w.o, &e));
	struct vx_entry a = entry(&w, "a"), b = entry(&w, "b");
	assert_true(a.segment == b.segment && a.offset == b.offset);
	assert_int_equal(segment_stat(&w, a.segment).st_size, a.artifact_bytes);
	lt_used_at(&w.t, "a", 1000000000);
	struct vx_json *j = NULL;
	struct vx_err err = {0};
	struct vx_prune_opts o = {.older_than_ns = 86400 * 1000000000ULL};
	assert_int_equal(vx_store_prune(w.t.store, &o, &j, &err), 0);
	assert_int_equal(num(j, "entries"), 1);
	assert_int_equal(num(j, "files"), 0);
	vx_json_free(j);
	assert_restores(&w, "b");
	vx_json_free(prune_one(&w, "b"));
	assert_false(has(&w, "b"));
	/* damaged bytes are not shared: they are written once more */
	save(&w, "c", 9000);
	struct vx_entry c = entry(&w, "c");
	overwrite(&w, &c, "damage");
	assert_true(lt_save(&w.t, "d", &w.o, &e));
	struct vx_entry d = entry(&w, "d");
	assert_true(vx_digest_equal(&c.artifact, &d.artifact) && c.offset != d.offset);
	assert_restores(&w, "c");
	assert_whole(&w);
	lt_end(&w.t);
}

/* Two entries of one artifact that is damaged both go, and nothing is left to trip over. */
static void test_shared_damaged(void **state)
{
	(void)state;
	struct world w;
	struct vx_lane_event e;
	begin(&w);
	save(&w, "a", 9000);
	assert_true(lt_save(&w.t, "b", &w.o, &e));
	save(&w, "c", 9000);
	struct vx_entry a = entry(&w, "a");
	overwrite(&w, &a, "damage");
	assert_int_equal(lt_sh(&w.t, "rm -r p"), 0);
	assert_true(lt_restore(&w.t, "a", &w.o, &e));
	assert_false(e.ok);
	assert_non_null(strstr(e.text, "damaged"));
	assert_int_equal(lt_sh(&w.t, "test ! -e p"), 0);
	assert_false(has(&w, "a") || has(&w, "b"));
	assert_restores(&w, "c");
	assert_whole(&w);
	lt_end(&w.t);
}

/* What is gone from the middle becomes a hole that tar steps over; from the end it is cut off; the
 * last one takes the segment along. */
static void test_holes(void **state)
{
	(void)state;
	struct world w;
	struct vx_json *j;
	begin(&w);
	for (const char *k = "abcdef"; *k; k++)
		save(&w, (char[]){*k, '\0'}, 30000);
	struct vx_entry a = entry(&w, "a"), e = entry(&w, "e"), f = entry(&w, "f");
	uint64_t segment = a.segment;
	for (int open = 0; open < 2; open++) { /* while it is appended to, and not */
		if (!open)
			lt_reopen(&w.t);
		else
			save(&w, "z", 100);
		struct stat before = segment_stat(&w, segment);
		uint64_t bytes = entry(&w, open ? "d" : "b").artifact_bytes;
		j = prune_one(&w, open ? "d" : "b");
		assert_int_equal(num(j, "bytes"), bytes);
		assert_int_equal(num(j, "orphans"), 0);
		vx_json_free(j);
		struct stat after = segment_stat(&w, segment);
		assert_int_equal(after.st_size, before.st_size);
		assert_true(after.st_blocks * 512 <= before.st_blocks * 512 - 20000);
		assert_int_equal(listed(&w), 5); /* z has come, one more has gone */
		assert_whole(&w);
	}
	vx_json_free(prune_one(&w, "z"));
	lt_reopen(&w.t);
	j = prune_one(&w, "f");
	assert_int_equal(num(j, "orphans"), 0);
	vx_json_free(j);
	assert_int_equal(segment_stat(&w, segment).st_size, f.offset);
	assert_int_equal(listed(&w), 3);
	/* a gap that grows is one gap */
	vx_json_free(prune_one(&w, "c"));
	assert_int_equal(listed(&w), 2);
	assert_restores(&w, "a");
	assert_restores(&w, "e");
	j = prune(&w, 1);
	assert_int_equal(num(j, "entries"), 2);
	assert_int_equal(num(j, "bytes"), a.artifact_bytes + e.artifact_bytes);
	assert_int_equal(num(j, "orphans"), 0);
	vx_json_free(j);
	assert_int_equal(segments(&w), 0);
	save(&w, "g", 100); /* though it is the one to try first */
	assert_restores(&w, "g");
	lt_end(&w.t);
}

/* What a process that died left behind its last row: counted, reclaimed, once; and never while
 * somebody appends. */
static void test_gap_of_the_dead(void **state)
{
	(void)state;
	struct world w;
	struct vx_json *j;
	struct vx_err err = {0};
	static char litter[50000];
	begin(&w);
	memset(litter, 'x', sizeof litter);
	save(&w, "a", 3000);
	uint64_t segment = entry(&w, "a").segment;
	char path[VX_SEGMENT_PATH];
	vx_segment_path(segment, path);
	for (int i = 0; i < 2; i++) { /* at the end, and in between */
		int fd = vx_open(w.t.store->dir_fd, path, O_WRONLY | O_APPEND, 0);
		assert_int_equal(write(fd, litter, sizeof litter), sizeof litter);
		vx_close(fd);
		j = prune(&w, 0);
		/* it could be a save's that has yet to commit */
		assert_int_equal(num(j, "orphans"), 0);
		vx_json_free(j);
		if (i)
			w.t.store->seg_end += sizeof litter;
		if (i)
			save(&w, "b", 3000);
		lt_reopen(&w.t);
		assert_int_equal(vx_store_stats(w.t.store, &j, &err), 0);
		assert_int_equal(num(j, "orphans"), 1);
		assert_int_equal(num(j, "orphanBytes"), sizeof litter);
		vx_json_free(j);
		j = prune(&w, 0);
		assert_int_equal(num(j, "orphans"), 1);
		assert_int_equal(num(j, "bytes"), sizeof litter);
		vx_json_free(j);
		j = prune(&w, 0);
		assert_int_equal(num(j, "orphans"), 0);
		assert_int_equal(num(j, "bytes"), 0);
		vx_json_free(j);
		assert_true(segment_stat(&w, segment).st_blocks * 512 < 30000);
		save(&w, "c", 10);
		assert_int_equal(listed(&w), i ? 4 : 2);
	}
	assert_restores(&w, "a");
	assert_restores(&w, "b");
	assert_whole(&w);
	lt_end(&w.t);
}

static int drop_place(struct vx_tx *t, void *arg)
{
	return vx_place_del(t, arg);
}

static int put_place(struct vx_tx *t, void *arg)
{
	const struct vx_commit *c = arg;
	return vx_place_put(t, &c->artifact, &c->place);
}

/* A place that a save meant to use again has gone by its commit: not saved, and said. The row of a
 * place without a segment is a miss. */
static void test_gone_meanwhile(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 3000);
	struct vx_entry a = entry(&w, "a");
	struct vx_row row = {.e = a};
	struct vx_buf b = VX_BUF(4096);
	vx_row_encode(&row, &b);
	struct vx_commit c = {.key = lt_key("b"),
		.row = b.data,
		.row_n = b.len,
		.entry = true,
		.artifact = a.artifact,
		.place = {a.segment, a.offset, a.artifact_bytes},
		.placed = true};
	assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
	assert_int_equal(c.res, 0);
	assert_true(has(&w, "b"));
	c.key = lt_key("c");
	/* it lies elsewhere by now: somebody else has saved the same, and that is as good */
	c.place.off++;
	assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
	assert_int_equal(c.res, 0);
	assert_restores(&w, "c");
	assert_int_equal(entry(&w, "c").offset, a.offset);
	c.place.off--;
	assert_int_equal(vx_index_write(w.t.store->ix, drop_place, &a.artifact), 0);
	assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
	assert_int_equal(c.res, -ENOENT);
	assert_false(has(&w, "c") || has(&w, "a")); /* rows without a place */
	c.place.bytes--;
	assert_int_equal(vx_index_write(w.t.store->ix, put_place, &c), 0);
	assert_false(has(&w, "a")); /* of another size */
	c.place.bytes++;
	c.place.segment ^= 1;
	assert_int_equal(vx_index_write(w.t.store->ix, put_place, &c), 0);
	assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
	assert_int_equal(c.res, -ENOENT); /* in a segment that is not there */
	c.place.segment ^= 1;
	c.placed = false;
	assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
	assert_true(has(&w, "c") && has(&w, "a"));
	/* the segment gone, or too short */
	c.key = lt_key("d");
	c.place.off = 1 << 20;
	assert_int_equal(vx_store_commit(w.t.store, &c, 1), 0);
	assert_int_equal(c.res, -ENOENT);
	assert_int_equal(lt_sh(&w.t, "truncate -s -1 .vx/cache/v1/s/*"), 0);
	assert_false(has(&w, "a"));
	assert_int_equal(lt_sh(&w.t, "rm .vx/cache/v1/s/*"), 0);
	assert_false(has(&w, "a"));
	lt_reopen(&w.t);
	save(&w, "a", 3000);
	assert_restores(&w, "a");
	vx_buf_free(&b);
	lt_end(&w.t);
}

/* The same bytes many times over, by all threads at once: each is saved. */
static void test_same_at_once(void **state)
{
	enum { N = 300 };
	(void)state;
	struct world w;
	struct vx_lane_event e;
	begin(&w);
	assert_int_equal(lt_sh(&w.t, "mkdir -p p/dist && echo f >p/dist/f"), 0);
	for (uint32_t i = 0; i < N; i++) {
		struct vx_save_req r = {.task = i,
			.id = "a#build",
			.key = lt_key(vx_arena_printf(&w.t.a, "%u", i)),
			.outputs = w.o};
		vx_lane_save(w.t.lane, &r);
		if (i % 7 == 0)
			usleep(300);
	}
	vx_lane_flush(w.t.lane);
	for (uint32_t settled = 0; settled < N;) {
		lt_next(&w.t, &e);
		if (!e.ok)
			fail_msg("%s", e.text);
		settled += e.kind == VX_LANE_SETTLED;
	}
	for (uint32_t i = 0; i < N; i++)
		assert_true(has(&w, vx_arena_printf(&w.t.a, "%u", i)));
	assert_whole(&w);
	lt_end(&w.t);
}

/* What was found damaged has been saved anew before it is dropped, elsewhere or (a prune and
 * another save later) in the same place: the new one stays. */
static void test_saved_anew(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 3000);
	struct vx_entry old = entry(&w, "a"), now = old;
	overwrite(&w, &now, "damage");
	old.offset += 7; /* where it lay when it was found damaged */
	assert_int_equal(vx_store_drop(w.t.store, &old, NULL), 0);
	assert_true(has(&w, "a"));
	assert_int_equal(vx_store_drop(w.t.store, &now, NULL), 0);
	assert_false(has(&w, "a"));
	struct vx_place p;
	assert_int_equal(vx_place_find(w.t.store, &now.artifact, &p), -ENOENT);
	save(&w, "a", 3000);
	now = entry(&w, "a");
	assert_int_equal(vx_store_drop(w.t.store, &now, NULL), 0);
	assert_restores(&w, "a");
	lt_end(&w.t);
}

/* A segment that is taken away, or replaced, while it is appended to: the next save begins
 * another. */
static void test_taken_away(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	static const char *const how[] = {"rm .vx/cache/v1/s/*",
		"for f in .vx/cache/v1/s/*; do echo x >other && mv other $f; done"};
	for (int i = 0; i < 2; i++) {
		save(&w, "a", 3000);
		assert_int_equal(lt_sh(&w.t, how[i]), 0);
		save(&w, "b", 3000);
		assert_restores(&w, "b");
		assert_false(has(&w, "a"));
	}
	/* one that has been moved is noticed by the commit */
	struct vx_lane_event e;
	assert_int_equal(
		lt_sh(&w.t, "mkdir away && mv .vx/cache/v1/s/* away && echo c >p/dist/f"), 0);
	assert_false(lt_save(&w.t, "c", &w.o, &e));
	save(&w, "d", 3000);
	assert_restores(&w, "d");
	lt_end(&w.t);
}

/* A place row that says nonsense is none. */
static int bad_place(struct vx_tx *t, void *arg)
{
	const struct vx_entry *e = arg;
	return vx_place_put(
		t, &e->artifact, &(struct vx_place){e->segment, UINT64_MAX - 5, e->artifact_bytes});
}

static void test_nonsense(void **state)
{
	(void)state;
	struct world w;
	begin(&w);
	save(&w, "a", 3000);
	struct vx_entry a = entry(&w, "a");
	assert_int_equal(vx_index_write(w.t.store->ix, bad_place, &a), 0);
	assert_false(has(&w, "a"));
	/* what lies in the directory and is no segment is left alone, and so is what is no file */
	assert_int_equal(
		lt_sh(&w.t,
			"cd .vx/cache/v1/s && echo x >README && echo y >00000000000000zz.tar.zst && echo z >1.tar.zst && mkfifo 0000000000000001.tar.zst && ln -s README 0000000000000002.tar.zst"),
		0);
	lt_reopen(&w.t);
	alarm(VXT_HANG_S);
	vx_json_free(prune(&w, 1));
	alarm(0);
	assert_int_equal(lt_sh(&w.t, "cd .vx/cache/v1/s && test $(ls | wc -l) = 5"), 0);
	lt_end(&w.t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_behind_the_other),
		cmocka_unit_test(test_one_writer),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_shared),
		cmocka_unit_test(test_shared_damaged),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_gap_of_the_dead),
		cmocka_unit_test(test_gone_meanwhile),
		cmocka_unit_test(test_same_at_once),
		cmocka_unit_test(test_saved_anew),
		cmocka_unit_test(test_taken_away),
		cmocka_unit_test(test_nonsense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
