#include "vx/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void vx_assert_fail(const char *expr, const char *file, int line)
{
	/* No stdio streams: the process may be anywhere, also between vfork and exec. */
	char text[512];
	int n = snprintf(text, sizeof text,
		"vx: internal error: %s is false at %s:%d; please report this\n", expr, file, line);

	if (n > 0) {
		size_t len = (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
		ssize_t w = write(STDERR_FILENO, text, len);
		(void)w;
	}
	abort();
}
