#include "attempt.h"

const char *env(const char *name)
{
	const char *s = getenv(name);

	if (!s)
		abort();
	return s;
}

const char *in(const char *base, const char *rel)
{
	static char ring[8][4096];
	static int next;
	char *p = ring[next++ % 8];

	snprintf(p, 4096, "%s/%s", env(base), rel);
	return p;
}

int can_read(const char *path)
{
	char c;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd >= 0 && read(fd, &c, 1) == 1 ? ESCAPED : HELD;

	if (r == ESCAPED)
		printf("read %s\n", path);
	if (fd >= 0)
		close(fd);
	return r;
}

int can_write(const char *path)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0 || mkdir(path, 0755) == 0) {
		printf("wrote %s\n", path);
		return ESCAPED;
	}
	return HELD;
}

int cannot(const char *why)
{
	printf("cannot: %s\n", why);
	return CANNOT;
}

int cannot_call(const char *call)
{
	printf("cannot: %s: %s\n", call, strerror(errno));
	return CANNOT;
}

int must_fail(long r)
{
	if (r >= 0)
		printf("succeeded: %ld\n", r);
	return r >= 0 ? ESCAPED : HELD;
}

int must_be(long r, int error)
{
	if (r < 0 && errno == error)
		return HELD;
	printf("%ld, errno %d (%s), not %s\n", r, errno, strerror(errno), strerror(error));
	return ESCAPED;
}

int main(int argc, char **argv)
{
	const struct attempt *const all[] = {
		file_attempts, kernel_attempts, process_attempts, net_attempts, more_attempts};

	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		for (const struct attempt *a = all[i]; a->name; a++) {
			if (argc == 1)
				puts(a->name);
			else if (!strcmp(a->name, argv[1]))
				return a->run();
		}
	return argc == 1 ? 0 : 2;
}
