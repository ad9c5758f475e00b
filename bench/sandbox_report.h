/* What bench/sandbox says in the end: the table, the ratios against their goals, JSON and SVG. */
#ifndef BENCH_SANDBOX_REPORT_H
#define BENCH_SANDBOX_REPORT_H

#define MAX_ROUNDS 201
#define SRT_EVERY 4 /* rounds */
enum way { VX, BWRAP, PLAIN, SRT, WAYS };
static const char *const labels[WAYS] = {"vx", "bare bwrap", "unsandboxed", "sandbox-runtime"};

struct point {
	int grants, concurrency;
	struct vx_task_desc d;
	const char *const *bare;                     /* the same for bubblewrap */
	double wall[WAYS][MAX_ROUNDS], cpu_ms[WAYS]; /* ms per task; in all */
	int rounds[WAYS], tasks[WAYS];
};

static FILE *srt_in; /* NULL: sandbox-runtime is not there */

static void die(const char *what, const char *why);

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median(const double *v, int n, double *ret_min, double *ret_max)
{
	double s[MAX_ROUNDS];

	if (n == 0)
		return *ret_min = *ret_max = 0;
	memcpy(s, v, (size_t)n * sizeof *s);
	qsort(s, (size_t)n, sizeof *s, by_value);
	*ret_min = s[0];
	*ret_max = s[n - 1];
	return s[n / 2];
}

static FILE *result_file(const char *name)
{
	const char *build = getenv("VX_BUILD") ? getenv("VX_BUILD") : "build";
	char path[VX_MAX_PATH];

	snprintf(path, sizeof path, "%s/bench", build);
	vx_mkdir_p(AT_FDCWD, path, 0777);
	snprintf(path, sizeof path, "%s/bench/%s", build, name);
	FILE *f = fopen(path, "we");
	if (!f)
		die(path, strerror(errno));
	return f;
}

static double wall_of(const struct point *p, enum way w)
{
	double lo, hi;

	return median(p->wall[w], p->rounds[w], &lo, &hi);
}

static double cpu_of(const struct point *p, enum way w)
{
	return p->tasks[w] ? p->cpu_ms[w] / p->tasks[w] : 0;
}

/* Median over the rounds of a's wall time to b's in the same round; SRT has a round in
 * SRT_EVERY. */
static double ratio(const struct point *pa, enum way a, const struct point *pb, enum way b)
{
	double r[MAX_ROUNDS], lo, hi;
	int n = 0, step_a = b == SRT && a != SRT ? SRT_EVERY : 1,
	    step_b = a == SRT && b != SRT ? SRT_EVERY : 1;

	for (; n * step_a < pa->rounds[a] && n * step_b < pb->rounds[b]; n++)
		r[n] = pa->wall[a][n * step_a] / pb->wall[b][n * step_b];
	return median(r, n, &lo, &hi);
}

static void report(const struct point *p, int tasks)
{
	char name[128];
	double lo, hi;

	snprintf(name, sizeof name, "sandbox-g%d-c%d.json", p->grants, p->concurrency);
	FILE *f = result_file(name);
	fprintf(f,
		"{\"bench\": \"sandbox, %d grants, concurrency %d\", \"rounds\": %d, \"per\": %d, \"cpus\": %ld, \"rows\": [",
		p->grants, p->concurrency, p->rounds[VX], tasks, sysconf(_SC_NPROCESSORS_ONLN));
	for (int w = 0; w < WAYS; w++) {
		if (!p->rounds[w])
			continue;
		double wall = median(p->wall[w], p->rounds[w], &lo, &hi);
		fprintf(f,
			"%s\n {\"label\": \"%s\", \"wall_ms\": %.3f, \"wall_ms_min\": %.3f, \"wall_ms_max\": %.3f, \"cpu_ms\": %.3f, \"ratio\": %.3f}",
			w ? "," : "", labels[w], wall, lo, hi, cpu_of(p, (enum way)w),
			ratio(p, (enum way)w, p, BWRAP));
	}
	fprintf(f, "\n]}\n");
	fclose(f);
}

/* ---- goals ---- */

static FILE *goals_file;
static int n_missed;

/* A ratio that is to be at most, or (least) at least, `bound`. `cpu` 0: there is none. */
static void goal(const char *what, double value, double cpu, bool least, double bound)
{
	bool met = least ? value >= bound : value <= bound;
	char more[64] = "";

	if (cpu > 0)
		snprintf(more, sizeof more, ", by CPU time %.2f", cpu);
	n_missed += !met;
	printf("%s  %-58s %6.2f (at %s %.2f)%s\n", met ? "met   " : "MISSED", what, value,
		least ? "least" : "most", bound, more);
	fprintf(goals_file,
		"%s\n {\"goal\": \"%s\", \"value\": %.3f, \"cpu\": %.3f, \"%s\": %.2f, \"met\": %s}",
		ftell(goals_file) > 12 ? "," : "", what, value, cpu, least ? "least" : "most",
		bound, met ? "true" : "false");
}

static void goals(const struct point *p, int n_points, double opens)
{
	char what[128];

	goals_file = result_file("sandbox-goals.json");
	fprintf(goals_file, "{\"goals\": [");
	for (int i = 0; i < n_points; i++) {
		snprintf(what, sizeof what, "vx / bare bubblewrap, %d grants, %d at once",
			p[i].grants, p[i].concurrency);
		goal(what, ratio(&p[i], VX, &p[i], BWRAP), cpu_of(&p[i], VX) / cpu_of(&p[i], BWRAP),
			false, 0.95);
	}
	goal("vx with 200 grants / with 2", ratio(&p[2], VX, &p[0], VX),
		cpu_of(&p[2], VX) / cpu_of(&p[0], VX), false, 1.4);
	for (int i = 0; i < n_points && srt_in; i++) {
		snprintf(what, sizeof what, "sandbox-runtime / vx, %d grants, %d at once",
			p[i].grants, p[i].concurrency);
		goal(what, ratio(&p[i], SRT, &p[i], VX), cpu_of(&p[i], SRT) / cpu_of(&p[i], VX),
			true, 6);
	}
	if (!srt_in)
		printf("not measured: sandbox-runtime / vx, at least 6 (npm install @anthropic-ai/sandbox-runtime somewhere, SRT_DIR=there)\n");
	goal("an open inside / outside", opens, 0, false, 1.1);
	fprintf(goals_file, "\n]}\n");
	fclose(goals_file);
	printf(n_missed ? "%d goals missed\n" : "all goals met\n", n_missed);
}

/* One group of bars per point: wall time per task. */
static void draw(const struct point *p, int n_points)
{
	static const char *const color[WAYS] = {"#2a7", "#47b", "#999", "#c63"};
	double top = 1;
	FILE *f = result_file("sandbox.svg");

	for (int i = 0; i < n_points; i++)
		for (int w = 0; w < WAYS; w++)
			if (wall_of(&p[i], (enum way)w) > top)
				top = wall_of(&p[i], (enum way)w);
	fprintf(f,
		"<svg xmlns='http://www.w3.org/2000/svg' width='%d' height='300' font-family='sans-serif' font-size='11'>\n",
		60 + n_points * 130);
	for (int i = 0; i < n_points; i++)
		for (int w = 0; w < WAYS; w++) {
			double v = wall_of(&p[i], (enum way)w), h = v / top * 200;
			int x = 40 + i * 130 + w * 26;
			fprintf(f,
				"<rect x='%d' y='%.1f' width='22' height='%.1f' fill='%s'/><text x='%d' y='%.1f'>%.1f</text>\n",
				x, 240 - h, h, color[w], x, 236 - h, v);
		}
	for (int i = 0; i < n_points; i++)
		fprintf(f, "<text x='%d' y='256'>%d grants, %d at once</text>\n", 40 + i * 130,
			p[i].grants, p[i].concurrency);
	for (int w = 0; w < WAYS; w++)
		fprintf(f, "<text x='%d' y='280' fill='%s'>%s</text>\n", 40 + w * 130, color[w],
			labels[w]);
	fprintf(f, "<text x='40' y='16'>ms per task, median of %d rounds</text></svg>\n",
		p->rounds[VX]);
	fclose(f);
}

#endif
