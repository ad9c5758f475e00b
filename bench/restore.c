/* What restoring costs: new files, changed files, nothing to do; beside a plain loop that writes
 * the same bytes.
 *
 *   restore [new|over|4k|check]    all without an argument */
#include "benchlib.h"

#include "../sched/lane/lane_int.h"

#include "vx/err.h"

#include <poll.h>

static char root[64];

struct setting {
	struct vx_store *store;
	struct vx_lane *lane;
	struct vx_arena a;
	struct vx_globset *globs;
	uint32_t tasks, files;
	size_t bytes;
	char *text;
};

static struct setting *the;

static void sh(const char *command)
{
	char cmd[600];
	snprintf(cmd, sizeof cmd, "cd %s && %s", root, command);
	if (system(cmd) != 0)
		bench_die(cmd);
}

static struct vx_digest key_of(uint32_t task)
{
	struct vx_digest d;
	char key[64];
	int n = snprintf(key, sizeof key, "%u", task);
	vx_sha256_of(key, (size_t)n, &d);
	return d;
}

static void wait_events(uint32_t n, enum vx_lane_kind kind)
{
	struct vx_lane_event e;
	while (n) {
		if (!vx_lane_next(the->lane, &e)) {
			struct pollfd p = {.fd = vx_lane_fd(the->lane), .events = POLLIN};
			poll(&p, 1, 1000);
			continue;
		}
		if (e.kind == kind && !e.ok)
			bench_die(e.text);
		n -= e.kind == kind;
	}
}

static char (*dirs)[32];

static void write_all(bool mkdirs)
{
	char path[200];
	for (uint32_t t = 0; t < the->tasks; t++) {
		snprintf(path, sizeof path, "%s/%s/dist", root, dirs[t]);
		if (mkdirs)
			vx_mkdir_p(AT_FDCWD, path, 0777);
		for (uint32_t i = 0; i < the->files; i++) {
			snprintf(path, sizeof path, "%s/%s/dist/f%u", root, dirs[t], i);
			bench_write(path, the->text + ((size_t)t * 7919 + (size_t)i * 131) % 100000,
				the->bytes);
		}
	}
}

static void setup(struct setting *s)
{
	struct vx_err err = {0};
	char dir[128];
	the = s;
	snprintf(dir, sizeof dir, "%s/store-%u-%u", root, s->tasks, s->files);
	struct vx_store_opts so = {.dir = dir, .workspace = root, .read = true, .write = true};
	struct vx_strs pat = {(const char *const[]){"dist/**"}, 1};
	if (vx_store_open(&so, &s->store, &err) < 0 ||
		vx_globset_compile(pat, VX_DIALECT_VX, &s->a, &s->globs, &err) < 0)
		bench_die(err.what);
	struct vx_lane_opts lo = {.store = s->store, .root = root, .slots = 2};
	if (vx_lane_new(&lo, &s->lane, &err) < 0)
		bench_die(err.what);
	s->text = malloc(100000 + s->bytes);
	for (size_t i = 0; i < 100000 + s->bytes; i++)
		s->text[i] = (char)(i % 3 ? 'a' + (int)(i % 20) : rand());
	dirs = calloc(s->tasks, sizeof *dirs);
	for (uint32_t t = 0; t < s->tasks; t++)
		snprintf(dirs[t], sizeof dirs[t], "t%u", t);
	write_all(true);
	for (uint32_t t = 0; t < s->tasks; t++) {
		struct vx_save_req r = {.task = t,
			.id = dirs[t],
			.key = key_of(t),
			.outputs = {.files = s->globs, .dir = dirs[t]}};
		vx_lane_save(s->lane, &r);
	}
	vx_lane_flush(s->lane);
	wait_events(s->tasks, VX_LANE_SETTLED);
}

static void teardown(struct setting *s)
{
	vx_lane_free(s->lane);
	vx_store_close(s->store);
	vx_arena_free(&s->a);
	free(s->text);
	free(dirs);
	sh("rm -rf t*");
}

static void restore_all(void *arg)
{
	(void)arg;
	struct vx_digest *keys = calloc(the->tasks, sizeof *keys);
	bool *found = calloc(the->tasks, sizeof *found);
	struct vx_entry *e = calloc(the->tasks, sizeof *e);
	for (uint32_t t = 0; t < the->tasks; t++)
		keys[t] = key_of(t);
	if (vx_store_probe(the->store, keys, the->tasks, found, e) != (int)the->tasks)
		bench_die("an entry is missing");
	for (uint32_t t = 0; t < the->tasks; t++) {
		struct vx_restore_req r = {.task = t,
			.id = dirs[t],
			.entry = e[t],
			.outputs = {.files = the->globs, .dir = dirs[t]}};
		vx_lane_restore(the->lane, &r);
	}
	wait_events(the->tasks, VX_LANE_RESTORED);
	free(keys);
	free(found);
	free(e);
}

static void plain_new(void *arg)
{
	(void)arg;
	write_all(true);
}

static void plain_over(void *arg)
{
	(void)arg;
	write_all(false);
}

/* Renamed away and not removed: some file systems are slow to make files where many have just been
 * deleted, which is not what is asked here. */
static void remove_all(void *arg)
{
	(void)arg;
	static unsigned n;
	char from[200], to[200];
	sh("mkdir -p away");
	for (uint32_t t = 0; t < the->tasks; t++) {
		snprintf(from, sizeof from, "%s/%s/dist", root, dirs[t]);
		snprintf(to, sizeof to, "%s/away/%u", root, n++);
		if (rename(from, to) < 0)
			bench_die("rename");
	}
}

static void spoil_all(void *arg)
{
	(void)arg;
	char path[200];
	for (uint32_t t = 0; t < the->tasks; t++)
		for (uint32_t i = 0; i < the->files; i++) {
			snprintf(path, sizeof path, "%s/%s/dist/f%u", root, dirs[t], i);
			bench_write(path, "spoiled", 7);
		}
}

static void bench_new(void)
{
	struct setting s = {.tasks = 10, .files = 100, .bytes = 8192};
	setup(&s);
	struct bench_case v[] = {{.label = "open, write, close of new files (100 x 8 KB)",
					 .prepare = remove_all,
					 .run = plain_new},
		{.label = "restore of new files", .prepare = remove_all, .run = restore_all}};
	bench_rounds("restore-new", v, 2, 9, 10 * 100);
	teardown(&s);
}

static void bench_over(void)
{
	struct setting s = {.tasks = 10, .files = 100, .bytes = 8192};
	setup(&s);
	struct bench_case v[] = {{.label = "open with O_TRUNC, write, close",
					 .prepare = spoil_all,
					 .run = plain_over},
		{.label = "restore of changed files (staged, renamed)",
			.prepare = spoil_all,
			.run = restore_all}};
	bench_rounds("restore-over", v, 2, 9, 10 * 100);
	teardown(&s);
}

static void bench_small(void)
{
	struct setting s = {.tasks = 500, .files = 1, .bytes = 4096};
	setup(&s);
	struct bench_case v[] = {{.label = "mkdir, open, write, close (1 x 4 KB)",
					 .prepare = remove_all,
					 .run = plain_new},
		{.label = "restore of one new file a task",
			.prepare = remove_all,
			.run = restore_all}};
	bench_rounds("restore-4k", v, 2, 9, 500);
	teardown(&s);
}

static void bench_check(void)
{
	struct setting s = {.tasks = 1600, .files = 2, .bytes = 4096};
	setup(&s);
	struct bench_case v[] = {{.label = "probe and check, everything in place (2 files a task)",
		.run = restore_all}};
	bench_rounds("restore-check", v, 1, 9, 1600);
	teardown(&s);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"new", bench_new}, {"over", bench_over}, {"4k", bench_small},
		{"check", bench_check}};
	const char *tmp = getenv("TMPDIR");
	snprintf(root, sizeof root, "%.40s/vx-bench-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		bench_die("no temporary directory");
	sh("mkdir .vx");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (argc < 2 || strcmp(argv[1], all[i].name) == 0)
			all[i].run();
	vx_rm_rf(AT_FDCWD, root);
	return 0;
}
