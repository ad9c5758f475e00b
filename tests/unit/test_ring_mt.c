/* Both rings under two threads, for ThreadSanitizer: the only synchronisation is the rings' own. */
#include "vxtest.h"

#include "vx/ring.h"

#include <errno.h>
#include <pthread.h>
#include <sched.h>

enum { ITEMS = 100000, FRAMES = 20000, OUT_BYTES = 8192 };

static struct vx_ring *ring;
static struct vx_bring *bring;

static void *produce_items(void *arg)
{
	for (uint64_t i = 1; i <= ITEMS; i++) {
		uint64_t item[4] = {i, i * 3, ~i, i << 7};

		while (vx_ring_push(ring, item) == -EAGAIN)
			sched_yield();
	}
	return arg;
}

static void items(void **state)
{
	pthread_t t;
	uint64_t item[4];

	(void)state;
	ring = aligned_alloc(VX_CACHE_LINE, vx_ring_bytes(8, sizeof item));
	vx_ring_init(ring, 8, sizeof item);
	assert_int_equal(pthread_create(&t, NULL, produce_items, NULL), 0);
	for (uint64_t i = 1; i <= ITEMS;) {
		int r = vx_ring_pop(ring, item);

		if (r == 0) {
			sched_yield();
			continue;
		}
		if (r != 1 || item[0] != i || item[1] != i * 3 || item[2] != ~i ||
			item[3] != i << 7)
			fail_msg("item %lu", (unsigned long)i);
		i++;
	}
	pthread_join(t, NULL);
	assert_true(vx_ring_empty(ring));
	free(ring);
}

static void *produce_frames(void *arg)
{
	unsigned char bytes[600];

	for (uint32_t i = 0; i < FRAMES; i++) {
		struct vx_frame f = {.task = i, .stream = 2, .length = (i * 13) % sizeof bytes};

		memset(bytes, (int)i, sizeof bytes);
		while (vx_bring_push(bring, &f, bytes) == -EAGAIN)
			sched_yield();
	}
	return arg;
}

static void frames(void **state)
{
	static unsigned char bytes[VX_FRAME_MAX];
	struct vx_frame f;
	pthread_t t;

	(void)state;
	bring = aligned_alloc(VX_CACHE_LINE, vx_bring_bytes(OUT_BYTES));
	vx_bring_init(bring, OUT_BYTES);
	assert_int_equal(pthread_create(&t, NULL, produce_frames, NULL), 0);
	for (uint32_t i = 0; i < FRAMES;) {
		int r = vx_bring_pop(bring, &f, bytes);

		if (r == 0) {
			sched_yield();
			continue;
		}
		if (r != 1 || f.task != i || f.length != (i * 13) % 600)
			fail_msg("frame %u", i);
		for (uint32_t k = 0; k < f.length; k++)
			if (bytes[k] != (unsigned char)i)
				fail_msg("frame %u byte %u", i, k);
		i++;
	}
	pthread_join(t, NULL);
	free(bring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(items), cmocka_unit_test(frames)};

	return cmocka_run_group_tests_name("ring, threads", tests, NULL, NULL);
}
