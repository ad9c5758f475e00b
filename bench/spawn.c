/* What it costs to start and reap /bin/true, and whether a large heap makes it slower: vx_spawn
 * beside posix_spawn and fork.
 *
 * usage: spawn [ROUNDS]. Prints one line of JSON per way and heap: microseconds, median and 90th
 * percentile. The ways take turns in every round, so that what else the machine does hits all of
 * them. */
#include "vx/arena.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/spawn.h"

#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { WAYS = 3, HEAP_BYTES = 500 << 20 };

static const char *const argv[] = {"true", NULL};
static const char *const names[WAYS] = {"vx_spawn", "posix_spawn", "fork+exec"};

static pid_t start(int way)
{
	pid_t pid = -1;

	if (way == 0) {
		struct vx_spawn s = VX_SPAWN_INIT;
		int pidfd = -1;

		s.path = "/bin/true";
		s.argv = argv;
		if (vx_spawn(&s, &pid, &pidfd, NULL) < 0)
			return -1;
		vx_close(pidfd);
	} else if (way == 1) {
		if (posix_spawn(&pid, "/bin/true", NULL, NULL, (char **)(uintptr_t)argv, environ) !=
			0)
			return -1;
	} else {
		pid = fork();
		if (pid == 0) {
			execv("/bin/true", (char **)(uintptr_t)argv);
			_exit(127);
		}
	}
	return pid;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

static int measure(int rounds, size_t heap_bytes)
{
	uint64_t *ns = vx_xcalloc((size_t)rounds * WAYS, sizeof *ns);

	for (int i = 0; i < rounds * WAYS; i++) {
		uint64_t begin = vx_now_ns();
		pid_t pid = start(i % WAYS);
		int status = -1;

		if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
			fprintf(stderr, "spawn: %s failed\n", names[i % WAYS]);
			return 1;
		}
		ns[i % WAYS * rounds + i / WAYS] = vx_now_ns() - begin;
	}
	for (int w = 0; w < WAYS; w++) {
		uint64_t *v = ns + (size_t)w * (size_t)rounds;

		qsort(v, (size_t)rounds, sizeof *v, by_value);
		uint64_t p50 = v[rounds / 2], p90 = v[rounds * 9 / 10];
		printf("{\"bench\": \"spawn\", \"way\": \"%s\", \"heap_bytes\": %zu, \"rounds\": %d, \"p50_us\": %.0f, \"p90_us\": %.0f}\n",
			names[w], heap_bytes, rounds, (double)p50 / 1e3, (double)p90 / 1e3);
	}
	free(ns);
	return 0;
}

int main(int argc, char **args)
{
	int rounds = argc > 1 ? atoi(args[1]) : 200;

	if (rounds < 1) {
		fprintf(stderr, "usage: spawn [ROUNDS]\n");
		return 1;
	}
	if (measure(rounds, 0) != 0)
		return 1;

	volatile char *heap = vx_xmalloc(HEAP_BYTES);
	for (size_t i = 0; i < HEAP_BYTES;
		i += 4096) /* small pages where the kernel gives them: what fork must copy */
		heap[i] = 1;
	int rc = measure(rounds / 4 ? rounds / 4 : 1, HEAP_BYTES);
	free((void *)(uintptr_t)heap);
	return rc;
}
