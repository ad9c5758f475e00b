/* Rings: full, empty, wrap-around, corrupt cursors, and two processes at once. */
#include "vxtest.h"

#include "vx/ring.h"

#include <errno.h>
#include <sched.h>
#include <sys/mman.h>

static void *shared(size_t bytes)
{
	void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

static void items_wrap_and_fill(void **state)
{
	struct vx_ring *r = shared(vx_ring_bytes(4, 24));
	char in[24], out[24];

	(void)state;
	vx_ring_init(r, 4, 24);
	assert_true(vx_ring_empty(r));
	assert_int_equal(vx_ring_pop(r, out), 0);
	for (int round = 0; round < 100; round++) {
		for (int i = 0; i < 4; i++) {
			memset(in, round * 4 + i, sizeof in);
			assert_int_equal(vx_ring_push(r, in), 0);
		}
		assert_int_equal(vx_ring_push(r, in), -EAGAIN);
		for (int i = 0; i < 3 + round % 2; i++) {
			memset(in, round * 4 + i, sizeof in);
			assert_int_equal(vx_ring_pop(r, out), 1);
			assert_memory_equal(in, out, sizeof in);
		}
		while (vx_ring_pop(r, out) == 1)
			;
		assert_true(vx_ring_empty(r));
	}
	munmap(r, vx_ring_bytes(4, 24));
}

static void corrupt_cursors_are_refused(void **state)
{
	struct vx_ring *r = shared(vx_ring_bytes(8, 8));
	struct vx_bring *b = shared(vx_bring_bytes(4096));
	struct vx_frame f = {.length = 10};
	char bytes[VX_FRAME_MAX];
	uint64_t v = 1;

	(void)state;
	vx_ring_init(r, 8, 8);
	r->tail = 9;
	assert_int_equal(vx_ring_pop(r, &v), -EBADMSG);
	assert_int_equal(vx_ring_push(r, &v), -EBADMSG);
	r->tail = 0;
	r->head = 1;
	assert_int_equal(vx_ring_pop(r, &v), -EBADMSG);
	assert_int_equal(vx_ring_push(r, &v), -EBADMSG);

	vx_bring_init(b, 4096);
	b->tail = 4097;
	assert_int_equal(vx_bring_pop(b, &f, bytes), -EBADMSG);
	assert_int_equal(vx_bring_space(b), 0);
	assert_int_equal(vx_bring_push(b, &f, bytes), -EBADMSG);
	b->tail = 8; /* less than a header */
	assert_int_equal(vx_bring_pop(b, &f, bytes), -EBADMSG);

	vx_bring_init(b, 4096);
	memset(bytes, 0, sizeof bytes);
	assert_int_equal(vx_bring_push(b, &f, bytes), 0);
	f.length = 17; /* one padded word more than was published */
	memcpy(b->data, &f, sizeof f);
	assert_int_equal(vx_bring_pop(b, &f, bytes), -EBADMSG);
	f.length = VX_FRAME_MAX + 1;
	memcpy(b->data, &f, sizeof f);
	assert_int_equal(vx_bring_pop(b, &f, bytes), -EBADMSG);
	munmap(r, vx_ring_bytes(8, 8));
	munmap(b, vx_bring_bytes(4096));
}

static void frames_wrap_and_fill(void **state)
{
	struct vx_bring *b = shared(vx_bring_bytes(4096));
	unsigned char in[VX_FRAME_MAX], out[VX_FRAME_MAX];
	struct vx_frame f = {0}, g;

	(void)state;
	vx_bring_init(b, 4096);
	assert_int_equal(vx_bring_pop(b, &g, out), 0);
	assert_int_equal(vx_bring_space(b), 4096 - sizeof f);
	for (uint32_t i = 0; i < 3000; i++) {
		f = (struct vx_frame){.task = i,
			.attempt = (uint16_t)i,
			.stream = 1 + i % 2,
			.length = (i * 37) % 700,
			.ns = i};
		memset(in, (int)i, sizeof in);
		assert_int_equal(vx_bring_push(b, &f, in), 0);
		assert_int_equal(vx_bring_pop(b, &g, out), 1);
		assert_memory_equal(&f, &g, sizeof f);
		assert_memory_equal(in, out, f.length);
	}
	f.length = (uint32_t)vx_bring_space(b);
	assert_int_equal(vx_bring_push(b, &f, in), 0);
	assert_int_equal(vx_bring_space(b), 0);
	f.length = 0;
	assert_int_equal(vx_bring_push(b, &f, NULL), -EAGAIN);
	assert_int_equal(vx_bring_pop(b, &g, out), 1);
	assert_int_equal(g.length, 4096 - sizeof f);
	assert_int_equal(vx_bring_used(b), 0);
	munmap(b, vx_bring_bytes(4096));
}

/* A byte stream in frames of odd sizes must come out as it went in. */
static void two_processes(void **state)
{
	enum { TOTAL = 4 << 20 };
	struct vx_bring *b = shared(vx_bring_bytes(16384));
	static unsigned char bytes[VX_FRAME_MAX];
	struct vx_frame f;
	uint32_t at = 0, n = 0;
	int status;
	pid_t pid;

	(void)state;
	vx_bring_init(b, 16384);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		while (at < TOTAL) {
			uint32_t length = 1 + (at * 7919) % 5000;

			if (length > TOTAL - at)
				length = TOTAL - at;
			for (uint32_t i = 0; i < length; i++)
				bytes[i] = (unsigned char)((at + i) * 31);
			f = (struct vx_frame){.task = n, .stream = 1, .length = length};
			while (vx_bring_push(b, &f, bytes) == -EAGAIN)
				sched_yield();
			at += length;
			n++;
		}
		_exit(0);
	}
	while (at < TOTAL) {
		int r = vx_bring_pop(b, &f, bytes);

		assert_true(r >= 0);
		if (r == 0) {
			sched_yield();
			continue;
		}
		assert_int_equal(f.task, n++);
		for (uint32_t i = 0; i < f.length; i++)
			if (bytes[i] != (unsigned char)((at + i) * 31))
				fail_msg("byte %u", at + i);
		at += f.length;
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	munmap(b, vx_bring_bytes(16384));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(items_wrap_and_fill),
		cmocka_unit_test(corrupt_cursors_are_refused),
		cmocka_unit_test(frames_wrap_and_fill),
		cmocka_unit_test(two_processes),
	};

	return cmocka_run_group_tests_name("ring", tests, NULL, NULL);
}
