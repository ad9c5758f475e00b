/* Crash points of the test build: see vx/point.h. */
#include "vx/point.h"

#ifdef VX_TEST_POINTS

#include "vx/fd.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAX_POINTS 256

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *seen[MAX_POINTS];
static unsigned times[MAX_POINTS], n_seen;

static void list_point(const char *name)
{
	const char *path = getenv("VX_POINT_LIST");
	int fd = path ? vx_open(AT_FDCWD, path, O_WRONLY | O_APPEND | O_CREAT, 0666) : -1;
	if (fd < 0)
		return;
	char line[128];
	int n = snprintf(line, sizeof line, "%s\n", name);
	vx_write_full(fd, line, (size_t)n);
	vx_close(fd);
}

void vx_point_hit(const char *name)
{
	pthread_mutex_lock(&lock);
	unsigned i = 0;
	while (i < n_seen && strcmp(seen[i], name) != 0)
		i++;
	if (i == n_seen && n_seen < MAX_POINTS) {
		seen[n_seen++] = name;
		list_point(name);
	}
	unsigned count = i < MAX_POINTS ? ++times[i] : 1;
	const char *at = getenv("VX_CRASH_AT");
	if (at) {
		size_t n = strcspn(at, ":");
		unsigned want = at[n] == ':' ? (unsigned)strtoul(at + n + 1, NULL, 10) : 1;
		if (strlen(name) == n && memcmp(at, name, n) == 0 && count == want)
			kill(getpid(), SIGKILL);
	}
	pthread_mutex_unlock(&lock);
}

#endif
