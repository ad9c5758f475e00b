/* Assertions that stay on in release builds.
 *
 * vx_assert(cond) is for our own bugs: a state that no input, no file system and no other process
 * can cause. It prints the expression and the place and aborts. What the world can cause is an
 * error return, never an assertion. */
#ifndef VX_ASSERT_H
#define VX_ASSERT_H

#define vx_assert(cond) \
	(__builtin_expect(!!(cond), 1) ? (void)0 : vx_assert_fail(#cond, __FILE__, __LINE__))

#define VX_ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

__attribute__((noreturn, cold)) void vx_assert_fail(const char *expr, const char *file, int line);

#endif
