/* The least a C test needs: CHECK(condition) says what failed and where; CHECK_DONE() ends main. */
#ifndef CHECK_H
#define CHECK_H

#include <stdio.h>

static int check_count, check_failed;

#define CHECK(condition) \
	do { \
		check_count++; \
		if (!(condition)) { \
			check_failed++; \
			printf("%s:%d: failed: %s\n", __FILE__, __LINE__, #condition); \
		} \
	} while (0)

#define CHECK_DONE() (printf("%d checks, %d failed\n", check_count, check_failed), check_failed ? 1 : 0)

#endif
