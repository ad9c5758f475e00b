/* What the machine gives this process: CPUs (affinity, cgroup quota) and memory. Sources:
 * cgroups(7), cgroup-v2 "cpu.max", "memory.max"; v1 cpu.cfs_quota_us, memory.limit_in_bytes;
 * proc(5) for /proc/self/cgroup and /proc/meminfo. */
#include "vx/buf.h"
#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/run.h"
#include "vx/spawn.h"
#include "vx/strs.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* First line of a small file, without its newline; false when it cannot be read. */
static bool line_of(const char *path, char *ret, size_t cap)
{
	int fd = vx_open(AT_FDCWD, path, O_RDONLY, 0);
	if (fd < 0)
		return false;
	ssize_t n = vx_read_full(fd, ret, cap - 1);
	vx_close(fd);
	if (n <= 0)
		return false;
	ret[n] = 0;
	ret[strcspn(ret, "\n")] = 0;
	return true;
}

/* Calls f for the cgroup directory of `controller` ("" for v2) and each of its ancestors. */
static void each_cgroup(
	const char *controller, const char *mount, void (*f)(const char *dir, void *arg), void *arg)
{
	struct vx_buf b = VX_BUF(1 << 20);
	char *save = NULL;
	if (vx_read_file(AT_FDCWD, "/proc/self/cgroup", &b))
		goto out;
	for (char *line = strtok_r(b.data, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':'), *path = names ? strchr(names + 1, ':') : NULL;
		if (!path)
			continue;
		*path++ = 0;
		names++;
		bool ours = !*controller ? !*names : false;
		char *inner = NULL;
		for (char *name = strtok_r(names, ",", &inner); *controller && name;
			name = strtok_r(NULL, ",", &inner))
			ours |= !strcmp(name, controller);
		if (!ours)
			continue;
		char dir[VX_MAX_PATH];
		int n = snprintf(dir, sizeof dir, "%s%s", mount, path);
		size_t top = strlen(mount);
		while (n > 0 && (size_t)n < sizeof dir && strlen(dir) >= top) {
			f(dir, arg);
			char *slash = strrchr(dir, '/');
			if (!slash || (size_t)(slash - dir) < top)
				break;
			*slash = 0;
		}
	}
out:
	vx_buf_free(&b);
}

static void quota_v2(const char *dir, void *arg)
{
	char path[VX_MAX_PATH + 16], text[64], *end;
	snprintf(path, sizeof path, "%s/cpu.max", dir);
	if (!line_of(path, text, sizeof text) || !strncmp(text, "max", 3))
		return;
	double quota = strtod(text, &end), period = strtod(end, NULL), *least = arg;
	if (quota > 0 && period > 0 && quota / period < *least)
		*least = quota / period;
}

static void quota_v1(const char *dir, void *arg)
{
	char path[VX_MAX_PATH + 32], text[64];
	double *least = arg;
	snprintf(path, sizeof path, "%s/cpu.cfs_quota_us", dir);
	double quota = line_of(path, text, sizeof text) ? strtod(text, NULL) : -1;
	snprintf(path, sizeof path, "%s/cpu.cfs_period_us", dir);
	double period = line_of(path, text, sizeof text) ? strtod(text, NULL) : 0;
	if (quota > 0 && period > 0 && quota / period < *least)
		*least = quota / period;
}

uint32_t vx_cpu_count(void)
{
	cpu_set_t set;
	double n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
	each_cgroup("", "/sys/fs/cgroup", quota_v2, &n);
	each_cgroup("cpu", "/sys/fs/cgroup/cpu", quota_v1, &n);
	uint32_t whole = (uint32_t)(n + 0.999);
	return whole < 1 ? 1 : whole > VX_MAX_SLOTS ? VX_MAX_SLOTS : whole;
}

struct memory {
	uint64_t free;
};

static void memory_limit(
	const char *dir, const char *limit_name, const char *used_name, struct memory *m)
{
	char path[VX_MAX_PATH + 32], text[64];
	uint64_t limit, used = 0;
	snprintf(path, sizeof path, "%s/%s", dir, limit_name);
	if (!line_of(path, text, sizeof text) || vx_parse_u64(text, UINT64_MAX, &limit))
		return;
	snprintf(path, sizeof path, "%s/%s", dir, used_name);
	if (line_of(path, text, sizeof text))
		(void)vx_parse_u64(text, UINT64_MAX, &used);
	uint64_t left = limit > used ? limit - used : 0;
	if (left < m->free)
		m->free = left;
}

static void memory_v2(const char *dir, void *arg)
{
	memory_limit(dir, "memory.max", "memory.current", arg);
}

static void memory_v1(const char *dir, void *arg)
{
	memory_limit(dir, "memory.limit_in_bytes", "memory.usage_in_bytes", arg);
}

uint64_t vx_memory_free(void)
{
	struct memory m = {.free = UINT64_MAX};
	struct vx_buf b = VX_BUF(1 << 20);
	if (!vx_read_file(AT_FDCWD, "/proc/meminfo", &b)) {
		const char *at = strstr(vx_buf_str(&b), "MemAvailable:");
		if (at)
			m.free = strtoull(at + 13, NULL, 10) << 10;
	}
	vx_buf_free(&b);
	each_cgroup("", "/sys/fs/cgroup", memory_v2, &m);
	each_cgroup("memory", "/sys/fs/cgroup/memory", memory_v1, &m);
	return m.free;
}

int vx_concurrency(const char *text, uint32_t *ret, struct vx_err *err)
{
	uint64_t n;
	char digits[24];
	if (!text) {
		*ret = vx_cpu_count();
		return 0;
	}
	size_t len = strlen(text);
	bool percent = len && text[len - 1] == '%';
	if (len - percent >= sizeof digits || len == 0)
		goto bad;
	memcpy(digits, text, len - percent);
	digits[len - percent] = 0;
	if (vx_parse_u64(digits, UINT32_MAX, &n) || n == 0)
		goto bad;
	if (percent)
		n = ((uint64_t)vx_cpu_count() * n + 50) / 100;
	if (n > VX_MAX_SLOTS) {
		vx_err_set(err, -ERANGE, "concurrency %s is more than the limit of %u slots", text,
			VX_MAX_SLOTS);
		return vx_err_fix(err, "ask for at most %u", VX_MAX_SLOTS);
	}
	*ret = n < 1 ? 1 : (uint32_t)n;
	return 0;
bad:
	vx_err_set(err, -EINVAL, "concurrency %s is not understood", text);
	return vx_err_fix(err, "a number of slots, or a percentage of the CPUs such as 50%%");
}

uint32_t vx_affordable_slots(uint32_t slots, uint64_t *ret_limit)
{
	/* A worker's event and, twice, what a save or a restore holds open; beside them the index,
	 * the ring, pipes and standard streams. */
	enum { PER_SLOT = 7, OTHERS = 48 };
	uint64_t limit = *ret_limit = vx_nofile_raise();
	uint64_t most = limit > OTHERS + PER_SLOT ? (limit - OTHERS) / PER_SLOT : 1;
	return slots < most ? slots : (uint32_t)most;
}
