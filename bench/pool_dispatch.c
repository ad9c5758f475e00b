/* What dispatching costs without the rest of a run: N tasks through the pool, `slots` at a time.
 *
 *   pool_dispatch [N SLOTS COMMAND [ARG...]]    one JSON line: wall and CPU per task, the
 *                                               scheduler's own CPU, wakes. Default: 2000 2 true */
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/limits.h"
#include "vx/pool.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static double cpu_s(int who)
{
	struct rusage r;

	getrusage(who, &r);
	return (double)r.ru_utime.tv_sec + (double)r.ru_stime.tv_sec +
	       ((double)r.ru_utime.tv_usec + (double)r.ru_stime.tv_usec) / 1e6;
}

struct run {
	struct vx_pool *pool;
	struct vx_task_desc d;
	uint32_t n, sent, over, failed;
};

static void send_next(struct run *r, uint32_t slot)
{
	struct vx_err err = {0};

	if (r->sent == r->n)
		return;
	r->d.task = r->sent++;
	if (vx_pool_run(r->pool, slot, &r->d, &err) < 0) {
		fprintf(stderr, "%s\n", err.what);
		exit(1);
	}
}

static void take(struct run *r)
{
	static struct vx_pool_event e;
	struct pollfd f = {vx_pool_fd(r->pool), POLLIN, 0};
	int got;

	while ((got = vx_pool_next(r->pool, &e)) == 1) {
		if (e.kind != VX_POOL_EXITED && e.kind != VX_POOL_LOST)
			continue;
		r->over++;
		r->failed +=
			e.kind == VX_POOL_LOST || e.done.end != VX_END_EXIT || e.done.code != 0;
		send_next(r, e.slot);
	}
	if (got < 0)
		exit(1);
	if (r->over < r->n)
		poll(&f, 1, -1);
}

int main(int argc, char **argv)
{
	static const char *const usual[] = {"true"};
	struct vx_pool_opts o = {0};
	struct vx_err err = {0};
	struct run r = {.d = {.id = "bench#task", .cwd = "/tmp", .grace_ms = 1000}};
	const char *env[2];
	char path[8192];
	struct vx_pool_stats s;
	uint64_t start;
	double wall;

	if (argc > 1 && strcmp(argv[1], "-forkserver") == 0)
		return vx_forkserver_main(argc, argv);
	snprintf(path, sizeof path, "PATH=%s", getenv("PATH"));
	env[0] = path;
	env[1] = "LC_ALL=C";
	r.d.env = (struct vx_strs){env, 2};
	r.d.argv = argc > 3 ? (struct vx_strs){(const char *const *)argv + 3, (uint32_t)argc - 3}
			    : (struct vx_strs){usual, 1};
	r.n = argc > 3 ? (uint32_t)atoi(argv[1]) : 2000;
	o.slots = argc > 3 ? (uint32_t)atoi(argv[2]) : 2;
	if (r.n == 0 || o.slots == 0 || o.slots > VX_MAX_SLOTS)
		return 64;
	start = vx_now_ns();
	if (vx_pool_start(&o, &r.pool, &err) < 0) {
		fprintf(stderr, "%s\n", err.what);
		return 1;
	}
	for (uint32_t i = 0; i < o.slots; i++)
		send_next(&r, i);
	while (r.over < r.n)
		take(&r);
	vx_pool_stats(r.pool, &s);
	vx_pool_end(r.pool);
	wall = (double)(vx_now_ns() - start) / 1e9;
	printf("{\"tasks\":%u,\"failed\":%u,\"wall_us\":%.1f,\"cpu_us\":%.1f,\"own_cpu_us\":%.1f,\"wakes\":%.2f}\n",
		r.n, r.failed, wall * 1e6 / r.n,
		(cpu_s(RUSAGE_SELF) + cpu_s(RUSAGE_CHILDREN)) * 1e6 / r.n,
		cpu_s(RUSAGE_SELF) * 1e6 / r.n, (double)s.wakes / r.n);
	return r.failed != 0;
}
