#include "vx/clock.h"

#include <time.h>

static uint64_t read_ns(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t); /* cannot fail for these clocks and a valid pointer */
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

uint64_t vx_now_ns(void)
{
	return read_ns(CLOCK_MONOTONIC);
}

uint64_t vx_wall_ns(void)
{
	return read_ns(CLOCK_REALTIME);
}
