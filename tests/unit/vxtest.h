/* What every unit test includes: cmocka with the headers it wants first, and a few helpers.
 * Header-only, since each test is a program of its own.
 *
 * The helpers fail the running test themselves. Directories made by vxt_tmpdir are the test's to
 * remove, by vxt_rm. */
#ifndef VXTEST_H
#define VXTEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* after those four: */
#include <cmocka.h>

#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/keeper.h"

#define VXT_UNUSED __attribute__((unused))

/* main() of a test that runs probes, configurations that are programs, or vx_spawn_capture with
 * `keep` begins with this: it is its own keeper. */
VXT_UNUSED static void vxt_keeper(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-keeper") == 0)
		exit(vx_keeper_main(argc, argv));
}

/* Ends the test as skipped, and says why: tests/run.py passes that on. */
#define vxt_skip(why)                                    \
	do {                                             \
		print_message("# skipped: %s\n", (why)); \
		skip();                                  \
	} while (0)

/* A test waits for what it means, and bounds no time: what takes a millisecond alone takes seconds
 * on a loaded machine. The one limit only catches what will never come. */
enum { VXT_HANG_S = 300, VXT_HANG_MS = VXT_HANG_S * 1000 };

/* Looks every millisecond until `condition` holds. */
#define vxt_wait_for(condition)                                                            \
	do {                                                                               \
		uint64_t vxt_end = vx_now_ns() + VXT_HANG_S * 1000000000ULL;               \
		while (!(condition)) {                                                     \
			if (vx_now_ns() > vxt_end)                                         \
				fail_msg("not so after %d s: %s", VXT_HANG_S, #condition); \
			usleep(1000);                                                      \
		}                                                                          \
	} while (0)

/* A new directory below TMPDIR or /tmp. malloc'ed; vxt_rm removes and frees. */
VXT_UNUSED static char *vxt_tmpdir(void)
{
	const char *tmp = getenv("TMPDIR");
	char path[PATH_MAX];

	snprintf(path, sizeof path, "%s/vx-test-XXXXXX", tmp && *tmp ? tmp : "/tmp");
	assert_non_null(mkdtemp(path));
	char *canonical = realpath(path, NULL);
	assert_non_null(canonical);
	return canonical;
}

VXT_UNUSED static void vxt_rm(char *dir)
{
	assert_int_equal(vx_rm_rf(AT_FDCWD, dir), 0);
	free(dir);
}

/* "dir/name", in one of a few static buffers. */
VXT_UNUSED static const char *vxt_path(const char *dir, const char *name)
{
	static char ring[8][PATH_MAX];
	static unsigned next;
	char *p = ring[next++ % 8];

	assert_true(snprintf(p, PATH_MAX, "%s/%s", dir, name) < PATH_MAX);
	return p;
}

VXT_UNUSED static void vxt_write(const char *dir, const char *name, const char *text)
{
	const char *path = vxt_path(dir, name);
	FILE *f = fopen(path, "we");

	if (!f) { /* its directories first */
		char parent[PATH_MAX];

		strcpy(parent, path);
		*strrchr(parent, '/') = '\0';
		assert_int_equal(vx_mkdir_p(AT_FDCWD, parent, 0777), 0);
		f = fopen(path, "we");
	}
	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
}

/* Runs `sh -c command`, keeps what it prints (static, at most 64 KiB) and returns its exit status,
 * or 128 + the signal. */
VXT_UNUSED static int vxt_sh(const char *command, const char **ret_out)
{
	static char out[64 << 10];
	FILE *f = popen(command, "re");

	assert_non_null(f);
	size_t n = fread(out, 1, sizeof out - 1, f);
	out[n] = '\0';
	int status = pclose(f);
	assert_int_not_equal(status, -1);
	if (ret_out)
		*ret_out = out;
	return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* How many descriptors this process has open: equal before and after means none leaked. */
VXT_UNUSED static int vxt_open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

#endif
