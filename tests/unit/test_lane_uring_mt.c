/* The same lanes through io_uring. */
#define TEST_IO "uring"
#include "test_lane_mt.c"
