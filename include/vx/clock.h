/* Time. Monotonic nanoseconds for everything that is measured or awaited; wall time only where a
 * file or a user sees it. */
#ifndef VX_CLOCK_H
#define VX_CLOCK_H

#include <stdint.h>

uint64_t vx_now_ns(void);  /* CLOCK_MONOTONIC */
uint64_t vx_wall_ns(void); /* CLOCK_REALTIME, since the epoch */

#endif
