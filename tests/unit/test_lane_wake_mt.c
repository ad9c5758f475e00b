/* Who is woken for what: vx_lane_doze. */
#include "lanetest.h"

#include "vx/clock.h"

#include <semaphore.h>

static void put(struct lt *t, const char *path)
{
	char *at = vx_arena_printf(&t->a, "%s/%s", t->root, path), *slash = strrchr(at, '/');
	*slash = '\0';
	assert_int_equal(vx_mkdir_p(AT_FDCWD, at, 0777), 0);
	*slash = '/';
	vxt_write(t->root, path, "x");
}

static bool readable(struct lt *t, int timeout_ms)
{
	struct pollfd p = {.fd = vx_lane_fd(t->lane), .events = POLLIN};
	return poll(&p, 1, timeout_ms) == 1;
}

static void save(struct lt *t, uint32_t task, const char *key, const struct vx_outputs *o)
{
	struct vx_save_req r = {
		.task = task, .id = "a#build", .key = lt_key(key), .outputs = *o, .duration_ns = 5};
	vx_lane_save(t->lane, &r);
}

/* Until something stands before what is there now. */
static void wait_for_more(struct lt *t, const struct vx_evt *now)
{
	vxt_wait_for(atomic_load(&t->lane->events) != now);
}

static void next_is(struct lt *t, enum vx_lane_kind kind)
{
	struct vx_lane_event e;
	assert_true(vx_lane_next(t->lane, &e));
	assert_int_equal(e.kind, kind);
}

/* A save that stops where its inputs are looked at again, until it is let go. */
struct stop {
	sem_t there, go;
};

static int stop_here(void *arg, char *ret_what, size_t cap)
{
	struct stop *s = arg;
	(void)ret_what, (void)cap;
	sem_post(&s->there);
	sem_wait(&s->go);
	return 0;
}

static void save_stopping(
	struct lt *t, uint32_t task, const char *key, const struct vx_outputs *o, struct stop *s)
{
	struct vx_save_req r = {.task = task,
		.id = "a#build",
		.key = lt_key(key),
		.outputs = *o,
		.duration_ns = 5,
		.recheck = stop_here,
		.arg = s};
	vx_lane_save(t->lane, &r);
}

static bool gets_there(struct stop *s, int ms)
{
	struct timespec ts;
	clock_gettime(CLOCK_REALTIME, &ts);
	ts.tv_nsec += (long)(ms % 1000) * 1000000;
	ts.tv_sec += ms / 1000 + ts.tv_nsec / 1000000000;
	ts.tv_nsec %= 1000000000;
	return sem_timedwait(&s->there, &ts) == 0;
}

static void test_doze(void **state)
{
	struct lt t = {0};
	struct vx_lane_event e;
	(void)state;
	lt_begin(&t);
	put(&t, "p/a/dist/x");
	put(&t, "p/b/dist/x");
	struct vx_outputs a = lt_outputs(&t, "p/a", "dist/**"),
			  b = lt_outputs(&t, "p/b", "dist/**");

	assert_true(vx_lane_doze(t.lane, true));
	assert_true(vx_lane_doze(t.lane, true)); /* still nothing */
	const struct vx_evt *none = atomic_load(&t.lane->events);
	struct stop stop;
	sem_init(&stop.there, 0, 0);
	sem_init(&stop.go, 0, 0);
	save_stopping(&t, 1, "k1", &a, &stop);
	t.lane->held_ns -= (VX_LANE_HELD_MS + 1) * 1000000ULL;
	assert_true(vx_lane_doze(t.lane, true));
	assert_true(gets_there(&stop, VXT_HANG_MS));
	sem_post(&stop.go);
	wait_for_more(&t, none);
	assert_false(readable(&t, 0)); /* captured, and nobody is woken */
	vx_lane_clean(t.lane, 2, &b);
	assert_true(readable(&t, VXT_HANG_MS)); /* a task waits for that */
	assert_false(vx_lane_doze(t.lane, true));
	assert_false(vx_lane_doze(t.lane, false));
	next_is(&t, VX_LANE_CAPTURED);

	vx_lane_flush(t.lane);
	bool cleaned = false, settled = false;
	while (!cleaned || !settled) {
		lt_next(&t, &e);
		cleaned |= e.kind == VX_LANE_CLEANED;
		settled |= e.kind == VX_LANE_SETTLED;
	}
	assert_false(vx_lane_next(t.lane, &e));
	assert_false(readable(&t, 0)); /* no signal is left over */

	/* one that dozed and then wants to be woken is */
	assert_true(vx_lane_doze(t.lane, true));
	assert_true(vx_lane_doze(t.lane, false));
	save(&t, 3, "k2", &a);
	assert_true(readable(&t, VXT_HANG_MS));
	next_is(&t, VX_LANE_CAPTURED);
	lt_end(&t);
}

static uint32_t threads(struct lt *t)
{
	pthread_mutex_lock(&t->lane->lock);
	uint32_t n = t->lane->back.n_threads;
	pthread_mutex_unlock(&t->lane->lock);
	return n;
}

/* While the caller dozes saves gather: no thread is there for the first ones, and one for all of
 * them. What ends the wait: their number, time, a call that does not doze, a flush, the end. */
static void test_gather(void **state)
{
	struct lt t = {0};
	(void)state;
	for (int how = 0; how < 5; how++) {
		lt_begin(&t);
		put(&t, "p/a/dist/x");
		struct vx_outputs a = lt_outputs(&t, "p/a", "dist/**");
		uint32_t n = how == 0 ? VX_LANE_HELD : VX_LANE_HELD - 1;
		assert_true(vx_lane_doze(t.lane, true));
		for (uint32_t i = 0; i < n; i++) {
			assert_int_equal(threads(&t), 0);
			t.lane->held_ns = vx_now_ns(); /* however slow this machine is */
			assert_true(vx_lane_doze(t.lane, true));
			save(&t, i, vx_arena_printf(&t.a, "k%u", i), &a);
		}
		if (how == 1)
			t.lane->held_ns -= (VX_LANE_HELD_MS + 1) * 1000000ULL;
		if (how < 3)
			vx_lane_doze(t.lane, how < 2);
		else if (how == 3)
			vx_lane_flush(t.lane);
		assert_int_equal(threads(&t), how < 4);
		if (how == 4)
			assert_int_equal(t.lane->n_held, n);
		lt_reopen(&t);
		bool found[VX_LANE_HELD];
		struct vx_entry e[VX_LANE_HELD];
		struct vx_digest keys[VX_LANE_HELD];
		for (uint32_t i = 0; i < n; i++)
			keys[i] = lt_key(vx_arena_printf(&t.a, "k%u", i));
		assert_int_equal(vx_store_probe(t.store, keys, n, found, e), n);
		lt_end(&t);
	}
}

static int dawdle(void *arg, char *ret_what, size_t cap)
{
	(void)arg, (void)ret_what, (void)cap;
	usleep(8000); /* longer than the commit of the one before */
	return 0;
}

/* What is under way when the lane is freed is finished, rows and all. */
static void test_freed(void **state)
{
	enum { N = 6 };
	struct lt t = {0};
	struct vx_digest keys[N];
	struct vx_entry e[N];
	bool found[N];
	(void)state;
	lt_begin(&t);
	put(&t, "p/a/dist/x");
	struct vx_outputs a = lt_outputs(&t, "p/a", "dist/**");
	for (uint32_t i = 0; i < N; i++) {
		keys[i] = lt_key(vx_arena_printf(&t.a, "k%u", i));
		struct vx_save_req r = {.task = i,
			.id = "a#build",
			.key = keys[i],
			.outputs = a,
			.recheck = dawdle};
		vx_lane_save(t.lane, &r);
	}
	lt_reopen(&t);
	assert_int_equal(vx_store_probe(t.store, keys, N, found, e), N);
	lt_end(&t);
}

/* A caller that dozes or sleeps as it comes gets everything, and is never left asleep with
 * something to do. */
static void test_nothing_is_slept_through(void **state)
{
	enum { N = 1200 };
	struct lt t = {0};
	struct vx_lane_event e;
	uint32_t sent = 0, open = 0, seed = 7;
	(void)state;
	lt_begin(&t);
	put(&t, "p/a/dist/x");
	struct vx_outputs a = lt_outputs(&t, "p/a", "dist/**"),
			  none = lt_outputs(&t, "p/none", "dist/**");
	while (sent < N || open) {
		bool doze = rand_r(&seed) % 2;
		for (uint32_t k = (uint32_t)rand_r(&seed) % 6; k && sent < N; k--, sent++, open++) {
			if (rand_r(&seed) % 3)
				vx_lane_clean(t.lane, sent, &none);
			else
				save(&t, sent, vx_arena_printf(&t.a, "k%u", sent), &a);
		}
		if (sent == N)
			vx_lane_flush(t.lane);
		if (open && vx_lane_doze(t.lane, doze))
			assert_true(readable(&t, doze ? 1 : 30000) || doze);
		while (vx_lane_next(t.lane, &e))
			open -= e.kind != VX_LANE_CAPTURED;
	}
	lt_end(&t);
}

static void settle_all(struct lt *t, uint32_t n)
{
	struct vx_lane_event e;
	vx_lane_flush(t->lane);
	while (n) {
		lt_next(t, &e);
		if (!e.ok)
			fail_msg("event %d: %s", (int)e.kind, e.text);
		n -= e.kind == VX_LANE_SETTLED;
	}
}

/* Small saves wait their turn behind a thread that is awake; the third that waits wakes another,
 * and so does any that waits for a large one. */
static void test_turns(void **state)
{
	struct lt t = {0};
	struct stop s[8];
	char path[64];
	(void)state;
	lt_begin(&t);
	for (uint32_t i = 0; i < 8; i++) {
		sem_init(&s[i].there, 0, 0);
		sem_init(&s[i].go, 0, 0);
	}
	put(&t, "p/a/dist/x");
	for (uint32_t i = 0; i <= VX_LANE_SLOW_FILES; i++) {
		snprintf(path, sizeof path, "p/b/dist/%u", i);
		put(&t, path);
	}
	struct vx_outputs small = lt_outputs(&t, "p/a", "dist/**"),
			  large = lt_outputs(&t, "p/b", "dist/**");
	save_stopping(&t, 0, "k0", &small, &s[0]);
	assert_true(gets_there(&s[0], VXT_HANG_MS));
	save_stopping(&t, 1, "k1", &small, &s[1]);
	save_stopping(&t, 2, "k2", &small, &s[2]);
	assert_false(gets_there(&s[1], 50));
	assert_int_equal(t.lane->back.n_threads, 1);
	save_stopping(&t, 3, "k3", &small, &s[3]);
	assert_true(gets_there(&s[1], VXT_HANG_MS));
	for (uint32_t i = 0; i < 4; i++)
		sem_post(&s[i].go);
	settle_all(&t, 4);

	save_stopping(&t, 4, "k4", &small, &s[4]);
	assert_true(gets_there(&s[4], VXT_HANG_MS));
	save_stopping(&t, 5, "k5", &large, &s[5]);
	save_stopping(&t, 6, "k6", &small, &s[6]);
	sem_post(&s[4].go);
	assert_true(gets_there(&s[5], VXT_HANG_MS));
	assert_true(gets_there(&s[6], VXT_HANG_MS)); /* beside the large one */
	save_stopping(&t, 7, "k7", &small, &s[7]);
	sem_post(&s[6].go);
	assert_true(gets_there(&s[7], VXT_HANG_MS)); /* also what comes later */
	sem_post(&s[5].go);
	sem_post(&s[7].go);
	settle_all(&t, 4);
	lt_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_turns),
		cmocka_unit_test(test_doze), cmocka_unit_test(test_gather),
		cmocka_unit_test(test_freed), cmocka_unit_test(test_nothing_is_slept_through)};
	return cmocka_run_group_tests_name("lane_wake", tests, NULL, NULL);
}
