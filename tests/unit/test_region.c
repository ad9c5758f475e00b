/* The shared region and its slab allocator. */
#include "vxtest.h"

#include "vx/limits.h"
#include "vx/region.h"
#include "vx/slab.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>

static void layout_and_attach(void **state)
{
	struct vx_region a, b;
	struct vx_request q = {.kind = VX_REQ_RUN, .task = 7}, got;

	(void)state;
	assert_int_equal(vx_region_create(3, vx_slabs_bytes(3), &a), 0);
	assert_int_equal(fcntl(a.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_not_equal(ftruncate(a.fd, 1), 0);
	assert_int_equal(vx_region_attach(fcntl(a.fd, F_DUPFD_CLOEXEC, 3), &b), 0);
	assert_int_equal(vx_region_header(&b)->slots, 3);
	for (uint32_t i = 0; i < 3; i++) {
		struct vx_slot *s = vx_region_slot(&a, i);

		assert_int_equal(vx_slot_check(s), -EPROTO);
		vx_slot_reset(s);
		assert_int_equal(vx_slot_check(vx_region_slot(&b, i)), 0);
		assert_int_equal((uintptr_t)vx_slot_dones(s) % VX_CACHE_LINE, 0);
		assert_int_equal((uintptr_t)vx_slot_output(s) % VX_CACHE_LINE, 0);
	}
	assert_int_equal(vx_ring_push(vx_slot_requests(vx_region_slot(&a, 2)), &q), 0);
	assert_true(vx_ring_empty(vx_slot_requests(vx_region_slot(&b, 1))));
	assert_int_equal(vx_ring_pop(vx_slot_requests(vx_region_slot(&b, 2)), &got), 1);
	assert_int_equal(got.task, 7);
	assert_null(vx_region_arena(&a, vx_slabs_bytes(3), 1));
	assert_null(vx_region_arena(&a, UINT64_MAX, 2));
	assert_null(vx_region_arena(&a, 2, UINT64_MAX));
	assert_non_null(vx_region_arena(&a, vx_slabs_bytes(3) - 1, 1));
	vx_slot_output(vx_region_slot(&b, 0))->bytes = 5;
	assert_int_equal(vx_slot_check(vx_region_slot(&a, 0)), -EPROTO);
	vx_region_close(&b);
	vx_region_close(&a);
}

/* Every byte of the header down to the mutable word matters. */
static void a_changed_header_is_refused(void **state)
{
	struct vx_region a, b;
	unsigned char *h;

	(void)state;
	assert_int_equal(vx_region_create(2, 65536, &a), 0);
	h = a.base;
	for (size_t i = 0; i < offsetof(struct vx_region_header, done_bytes) + 4; i++) {
		h[i] ^= 0x41;
		if (vx_region_attach(a.fd, &b) != -EPROTO)
			fail_msg("byte %zu", i);
		h[i] ^= 0x41;
	}
	vx_region_header(&a)->slots = 0;
	assert_int_equal(vx_region_attach(a.fd, &b), -EPROTO);
	vx_region_header(&a)->slots = VX_MAX_SLOTS + 1;
	assert_int_equal(vx_region_attach(a.fd, &b), -EPROTO);
	vx_region_close(&a);
}

static void an_unsealed_or_foreign_file_is_refused(void **state)
{
	struct vx_region b;
	char zero[8192] = {0};
	int fd = vx_memfd("test"), p[2];

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(vx_region_attach(fd, &b), -EPROTO);
	assert_int_equal(vx_write_full(fd, zero, sizeof zero), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
	assert_int_equal(vx_region_attach(fd, &b), -EPROTO);
	vx_close(fd);
	assert_int_equal(vx_pipe(p), 0);
	assert_int_equal(vx_region_attach(p[0], &b), -EPROTO);
	vx_close(p[0]);
	vx_close(p[1]);
	assert_int_equal(vx_region_attach(-1, &b), -EBADF);
}

static void the_most_slots_cost_no_memory(void **state)
{
	struct vx_region a;
	struct rusage before, after;

	(void)state;
	getrusage(RUSAGE_SELF, &before);
	assert_int_equal(vx_region_create(VX_MAX_SLOTS, vx_slabs_bytes(VX_MAX_SLOTS), &a), 0);
	vx_slot_reset(vx_region_slot(&a, VX_MAX_SLOTS - 1));
	assert_non_null(vx_region_arena(
		&a, vx_slabs_bytes(VX_MAX_SLOTS) - VX_MAX_DESC_BYTES, VX_MAX_DESC_BYTES));
	getrusage(RUSAGE_SELF, &after);
	assert_true(after.ru_maxrss - before.ru_maxrss < 4096); /* KiB */
	vx_region_close(&a);
}

static void slabs(void **state)
{
	struct vx_slabs s;
	uint64_t off[8], again;

	(void)state;
	vx_slabs_init(&s, 4);
	assert_int_equal(vx_slab_alloc(&s, VX_MAX_DESC_BYTES + 1, &again), -E2BIG);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(vx_slab_alloc(&s, 4096, &off[i]), 0);
		assert_int_equal(vx_slab_alloc(&s, VX_MAX_DESC_BYTES, &off[4 + i]), 0);
		assert_true(off[4 + i] + VX_MAX_DESC_BYTES <= vx_slabs_bytes(4));
		for (int k = 0; k < i; k++)
			assert_true(off[k] + 4096 <= off[i] &&
				    off[4 + k] + VX_MAX_DESC_BYTES <= off[4 + i]);
		assert_true(off[i] + 4096 <= off[4]);
	}
	assert_int_equal(vx_slab_alloc(&s, 1, &again), -ENOMEM);
	vx_slab_free(&s, off[2]);
	vx_slab_free(&s, off[6]);
	assert_int_equal(vx_slab_alloc(&s, 0, &again), 0);
	assert_int_equal(again, off[2]);
	assert_int_equal(vx_slab_alloc(&s, 262145, &again), 0);
	assert_int_equal(again, off[6]);
	assert_int_equal(vx_slab_alloc(&s, 4097, &again), 0); /* another class is not used up */
	vx_slabs_done(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(layout_and_attach),
		cmocka_unit_test(a_changed_header_is_refused),
		cmocka_unit_test(an_unsealed_or_foreign_file_is_refused),
		cmocka_unit_test(the_most_slots_cost_no_memory),
		cmocka_unit_test(slabs),
	};

	return cmocka_run_group_tests_name("region", tests, NULL, NULL);
}
