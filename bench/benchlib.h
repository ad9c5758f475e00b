/* Interleaved rounds for the benches in C: every case once per round, medians at the end, as a
 * table and as JSON for bench/run. Header-only. */
#ifndef BENCHLIB_H
#define BENCHLIB_H

#include "vx/clock.h"
#include "vx/fd.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define BENCH_MAX_ROUNDS 41

struct bench_case {
	const char *label;
	void (*prepare)(void *arg); /* not measured; may be NULL */
	void (*run)(void *arg);
	void *arg;
	double wall[BENCH_MAX_ROUNDS], cpu[BENCH_MAX_ROUNDS];
};

static double bench_cpu_ms(void)
{
	double ms = 0;
	for (int who = RUSAGE_CHILDREN; who <= RUSAGE_SELF; who++) {
		struct rusage r;
		getrusage(who, &r);
		ms += (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) * 1e3 +
		      (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec) / 1e3;
	}
	return ms;
}

static int bench_cmp(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

/* Per-unit milliseconds; the first case is what the ratios (of CPU, which a busy machine distorts
 * least) refer to. */
static void bench_rounds(const char *bench, struct bench_case *v, int n, int rounds, double per)
{
	char path[4096];
	const char *build = getenv("VX_BUILD");
	for (int r = -1; r < rounds; r++)
		for (int i = 0; i < n; i++) {
			if (v[i].prepare)
				v[i].prepare(v[i].arg);
			double c = bench_cpu_ms(), t = (double)vx_now_ns() / 1e6;
			v[i].run(v[i].arg);
			if (r < 0)
				continue; /* warm-up */
			v[i].wall[r] = ((double)vx_now_ns() / 1e6 - t) / per;
			v[i].cpu[r] = (bench_cpu_ms() - c) / per;
		}
	snprintf(path, sizeof path, "%s/bench", build ? build : "build");
	mkdir(path, 0777);
	snprintf(path, sizeof path, "%s/bench/%s.json", build ? build : "build", bench);
	FILE *f = fopen(path, "we");
	if (f)
		fprintf(f,
			"{\"bench\": \"%s\", \"rounds\": %d, \"per\": %.0f, \"cpus\": %ld, \"rows\": [",
			bench, rounds, per, sysconf(_SC_NPROCESSORS_ONLN));
	printf("%s (median of %d)\n  %-44s %10s %10s %8s %8s\n", bench, rounds, "", "wall us",
		"CPU us", "wall x", "CPU x");
	for (int i = 0; i < n; i++) {
		qsort(v[i].wall, (size_t)rounds, sizeof(double), bench_cmp);
		qsort(v[i].cpu, (size_t)rounds, sizeof(double), bench_cmp);
		double w = v[i].wall[rounds / 2], c = v[i].cpu[rounds / 2],
		       ratio = c / v[0].cpu[rounds / 2];
		printf("  %-44s %10.1f %10.1f %8.2f %8.2f\n", v[i].label, w * 1e3, c * 1e3,
			w / v[0].wall[rounds / 2], ratio);
		if (f)
			fprintf(f,
				"%s{\"label\": \"%s\", \"wall_ms\": %.4f, \"wall_ms_min\": %.4f, \"wall_ms_max\": %.4f, \"cpu_ms\": %.4f, \"ratio\": %.3f}",
				i ? ", " : "", v[i].label, w, v[i].wall[0], v[i].wall[rounds - 1],
				c, ratio);
	}
	if (f) {
		fprintf(f, "]}\n");
		fclose(f);
	}
}

static void bench_die(const char *what)
{
	fprintf(stderr, "bench: %s\n", what);
	exit(1);
}

static void bench_write(const char *path, const void *p, size_t n)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	if (fd < 0 || vx_write_full(fd, p, n) < 0)
		bench_die(path);
	close(fd);
}

#endif
