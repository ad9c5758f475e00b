/* What saving costs: one output of 4 KB, 100 of 8 KB, one of 64 MB (and others as large); each
 * beside the plainest thing that does the same work without a store.
 *
 *   save [4k|100|64m|read|idle|kinds|1g]    without an argument all but the last two */
#include "benchlib.h"

#include "../sched/lane/lane_int.h"

#include "vx/err.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>

static char root[64];
static char *text; /* 64 MB that compress about as text and binaries do */
#define TEXT_BYTES (64U << 20)

struct setting {
	const char *io;
	struct vx_store *store;
	struct vx_lane *lane;
	uint32_t n, round;
	const char *dir;
	struct vx_arena a;
	struct vx_globset *globs;
	char (*dirs)[64];
	uint64_t idle_ns;
};

static void sh(const char *command)
{
	char cmd[600];
	snprintf(cmd, sizeof cmd, "cd %s && %s", root, command);
	if (system(cmd) != 0)
		bench_die(cmd);
}

static void make_text(void)
{
	unsigned seed = 5;
	for (size_t i = 0; i < TEXT_BYTES;) {
		unsigned r = (unsigned)rand_r(&seed);
		size_t n = r % 24 + 4, back = (r >> 8) % 60000 + 1;
		for (size_t k = 0; k < n && i < TEXT_BYTES; k++, i++)
			text[i] = r & 64 || i < back ? (char)rand_r(&seed) : text[i - back];
	}
}

static void open_lane(struct setting *s)
{
	struct vx_err err = {0};
	char dir[128];
	snprintf(dir, sizeof dir, "%s/store-%s", root, s->io);
	struct vx_store_opts so = {.dir = dir, .workspace = root, .read = true, .write = true};
	if (vx_store_open(&so, &s->store, &err) < 0)
		bench_die(err.what);
	struct vx_lane_opts lo = {.store = s->store, .root = root, .slots = 2};
	if (vx_lane_new(&lo, &s->lane, &err) < 0)
		bench_die(err.what);
	struct vx_strs pat = {(const char *const[]){"dist/**"}, 1};
	if (vx_globset_compile(pat, VX_DIALECT_VX, &s->a, &s->globs, &err) < 0)
		bench_die(err.what);
}

static void close_lane(struct setting *s)
{
	vx_lane_free(s->lane);
	vx_store_close(s->store);
	s->lane = NULL;
}

static struct vx_save_req request(struct setting *s, uint32_t i)
{
	struct vx_save_req r = {.task = i,
		.id = s->dirs[i],
		.outputs = {.files = s->globs, .dir = s->dirs[i]},
		.log = "ok\n",
		.log_bytes = 3};
	char key[64];
	int n = snprintf(key, sizeof key, "%u-%u", s->round, i);
	vx_sha256_of(key, (size_t)n, &r.key);
	return r;
}

static void settle(struct setting *s, uint32_t n)
{
	struct vx_lane_event e;
	while (n) {
		if (!vx_lane_next(s->lane, &e)) {
			struct pollfd p = {.fd = vx_lane_fd(s->lane), .events = POLLIN};
			poll(&p, 1, 1000);
		} else if (e.kind == VX_LANE_SETTLED) {
			if (!e.ok)
				bench_die(e.text);
			n--;
		}
	}
}

/* Outputs that no artifact is there for yet. */
static void renew(void *arg)
{
	struct setting *s = arg;
	s->round++;
	for (uint32_t i = 0; i < s->n; i++) {
		char path[200];
		snprintf(path, sizeof path, "%s/%s/dist/out", root, s->dirs[i]);
		bench_write(path, text + ((size_t)s->round * s->n + i) % 9000 * 4096, 4096);
	}
}

static void save_all(void *arg)
{
	struct setting *s = arg;
	/* the lane's threads read it when they start, with the first save */
	setenv("VX_IO", s->io, 1);
	for (uint32_t i = 0; i < s->n; i++) {
		struct vx_save_req r = request(s, i);
		vx_lane_save(s->lane, &r);
	}
	vx_lane_flush(s->lane);
	settle(s, s->n);
}

/* open, read, compress, write beside, rename: no index, no digest, no check. */
static void plain_4k(void *arg)
{
	struct setting *s = arg;
	struct vx_zip *z = vx_zip_new();
	static char in[65536], out[70000];
	for (uint32_t i = 0; i < s->n; i++) {
		char path[200], tmp[200], dst[200];
		snprintf(path, sizeof path, "%s/%s/dist/out", root, s->dirs[i]);
		snprintf(tmp, sizeof tmp, "%s/plain/t%u", root, i);
		snprintf(dst, sizeof dst, "%s/plain/%u-%u", root, s->round, i);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		ssize_t n = read(fd, in, sizeof in);
		close(fd);
		size_t k = 0;
		vx_zip_all(z, in, (size_t)n, out, sizeof out, &k);
		bench_write(tmp, out, k);
		rename(tmp, dst);
	}
	vx_zip_free(z);
}

static void make_dirs(struct setting *s, uint32_t n, const char *prefix)
{
	s->n = n;
	s->dirs = calloc(n, sizeof *s->dirs);
	for (uint32_t i = 0; i < n; i++) {
		char cmd[200];
		snprintf(s->dirs[i], sizeof s->dirs[i], "%s%u", prefix, i);
		snprintf(cmd, sizeof cmd, "%s/%s/dist", root, s->dirs[i]);
		vx_mkdir_p(AT_FDCWD, cmd, 0777);
	}
}

static void bench_4k(void)
{
	enum { N = 256 };
	struct setting blocking = {.io = "blocking"}, uring = {.io = "uring"},
		       plain = {.io = "plain"};
	make_dirs(&blocking, N, "b");
	make_dirs(&uring, N, "u");
	make_dirs(&plain, N, "p");
	sh("mkdir -p plain");
	open_lane(&blocking);
	open_lane(&uring);
	struct bench_case v[] = {
		{.label = "read, zstd, write, rename; no index",
			.prepare = renew,
			.run = plain_4k,
			.arg = &plain},
		{.label = "save, blocking", .prepare = renew, .run = save_all, .arg = &blocking},
		{.label = "save, io_uring", .prepare = renew, .run = save_all, .arg = &uring},
	};
	bench_rounds("save-4k", v, 3, 9, N);
	struct vx_lane_stats st;
	vx_lane_stats(uring.lane, &st);
	printf("  %llu saves in %llu commits\n", (unsigned long long)st.saves,
		(unsigned long long)st.commits);
	close_lane(&blocking);
	close_lane(&uring);
}

/* From captured to settled, one save at a time. */
static void bench_idle(void)
{
	struct setting s = {.io = "blocking"};
	double ms[41];
	setenv("VX_IO", s.io, 1);
	make_dirs(&s, 1, "i");
	open_lane(&s);
	for (int k = 0; k < 41; k++) {
		struct vx_lane_event e;
		uint64_t captured = 0;
		renew(&s);
		usleep(20000);
		struct vx_save_req r = request(&s, 0);
		vx_lane_save(s.lane, &r);
		for (;;) {
			if (!vx_lane_next(s.lane, &e)) {
				struct pollfd p = {.fd = vx_lane_fd(s.lane), .events = POLLIN};
				poll(&p, 1, 1000);
			} else if (e.kind == VX_LANE_CAPTURED) {
				captured = vx_now_ns();
				/* as a run does when nothing else is under way */
				vx_lane_flush(s.lane);
			} else {
				break;
			}
		}
		ms[k] = (double)(vx_now_ns() - captured) / 1e6;
	}
	qsort(ms, 41, sizeof *ms, bench_cmp);
	printf("idle: captured to settled %.2f ms (median of 41; %.2f to %.2f)\n", ms[20], ms[0],
		ms[40]);
	close_lane(&s);
}

/* ---- 100 files of 8 KB ---- */

static void renew_100(void *arg)
{
	struct setting *s = arg;
	s->round++;
	for (uint32_t i = 0; i < 100; i++) {
		char path[200];
		snprintf(path, sizeof path, "%s/%s/dist/f%02u", root, s->dirs[0], i);
		bench_write(path, text + ((size_t)s->round * 100 + i) % 4000 * 8192, 8192);
	}
}

static int one_dir(void *arg, const struct vx_glob_hit *h)
{
	(void)arg;
	(void)h;
	return 0;
}

/* tar and zstd -1 of the same files in one process: list, stat, read, header, compress, write. */
static void plain_100(void *arg)
{
	struct setting *s = arg;
	struct vx_zip *z = vx_zip_new();
	struct vx_buf b = VX_BUF(64U << 20);
	char path[200];
	snprintf(path, sizeof path, "%s/%s", root, s->dirs[0]);
	int base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	vx_globset_walk(s->globs, base, one_dir, NULL);
	for (uint32_t i = 0; i < 100; i++) {
		struct stat st;
		snprintf(path, sizeof path, "dist/f%02u", i);
		int fd = openat(base, path, O_RDONLY | O_CLOEXEC);
		fstat(fd, &st);
		struct vx_tar_member m = {.path = path,
			.type = VX_TAR_FILE,
			.mode = 0644,
			.size = (uint64_t)st.st_size,
			.mtime_ns = st.st_mtim.tv_sec * 1000000000LL + st.st_mtim.tv_nsec};
		vx_tar_header(&m, &b);
		ssize_t n = read(fd, vx_buf_reserve(&b, 8192), 8192);
		vx_buf_commit(&b, (size_t)n);
		close(fd);
	}
	close(base);
	size_t cap = vx_zip_bound(b.len), n = 0;
	char *out = malloc(cap), tmp[200];
	vx_zip_all(z, b.data, b.len, out, cap, &n);
	snprintf(tmp, sizeof tmp, "%s/plain/t", root);
	snprintf(path, sizeof path, "%s/plain/h%u", root, s->round);
	bench_write(tmp, out, n);
	rename(tmp, path);
	free(out);
	vx_buf_free(&b);
	vx_zip_free(z);
}

static void bench_100(void)
{
	struct setting blocking = {.io = "blocking"}, uring = {.io = "uring"},
		       plain = {.io = "plain"};
	make_dirs(&blocking, 1, "hb");
	make_dirs(&uring, 1, "hu");
	make_dirs(&plain, 1, "hp");
	sh("mkdir -p plain");
	open_lane(&blocking);
	open_lane(&uring);
	plain.globs = uring.globs;
	struct bench_case v[] = {
		{.label = "tar and zstd -1 in one process",
			.prepare = renew_100,
			.run = plain_100,
			.arg = &plain},
		{.label = "save, blocking",
			.prepare = renew_100,
			.run = save_all,
			.arg = &blocking},
		{.label = "save, io_uring", .prepare = renew_100, .run = save_all, .arg = &uring},
	};
	bench_rounds("save-100x8k", v, 3, 21, 1);
	close_lane(&blocking);
	close_lane(&uring);
}

/* ---- reading them ---- */

struct reading {
	struct vx_io *io;
	int base;
	/* 0 plain calls, 1 linked chains with direct descriptors, 2 three rounds: open all, read
	 * all, close all */
	int form;
	char names[100][32];
	char *buf;
};

static void read_files(void *arg)
{
	struct reading *r = arg;
	static struct vx_io_step v[300];
	static struct vx_io_chain c[100];
	for (uint32_t i = 0; i < 100; i++) {
		v[3 * i] = (struct vx_io_step){.op = VX_IO_OPEN,
			.beneath = true,
			.dirfd = r->base,
			.path = r->names[i],
			.flags = O_RDONLY | O_NOFOLLOW,
			.keep = r->form != 1};
		v[3 * i + 1] = (struct vx_io_step){.op = VX_IO_READ,
			.fd = VX_IO_CHAINED,
			.buf = r->buf + 8192 * (size_t)i,
			.n = 8192};
		v[3 * i + 2] = (struct vx_io_step){.op = VX_IO_CLOSE, .fd = VX_IO_CHAINED};
		c[i] = (struct vx_io_chain){&v[3 * i], 3};
	}
	if (r->form == 1) {
		vx_io_run(r->io, c, 100);
	} else if (r->form == 0) {
		for (uint32_t i = 0; i < 100; i++) {
			int fd = (int)vx_io_sys(r->io, &v[3 * i]);
			vx_io_read_at(r->io, fd, v[3 * i + 1].buf, 8192, 0);
			vx_io_close_fd(r->io, fd);
		}
		return;
	} else {
		for (uint32_t k = 0; k < 3; k++) {
			for (uint32_t i = 0; i < 100; i++) {
				if (k)
					v[3 * i + k].fd = (int)v[3 * i].res;
				c[i] = (struct vx_io_chain){&v[3 * i + k], 1};
			}
			vx_io_run(r->io, c, 100);
		}
	}
	for (uint32_t i = 0; i < 100; i++)
		if (v[3 * i + 1].res != 8192)
			bench_die("a read failed");
}

static void bench_read(void)
{
	struct setting s = {.io = "uring"};
	make_dirs(&s, 1, "r");
	renew_100(&s);
	char path[200];
	snprintf(path, sizeof path, "%s/r0/dist", root);
	static struct reading r[3];
	int e = 0;
	static const char *const labels[] = {"read 100 x 8 KB, plain calls",
		"read, io_uring linked chains", "read, io_uring in three rounds"};
	struct bench_case v[3];
	memset(v, 0, sizeof v);
	for (int k = 0; k < 3; k++) {
		r[k].io = k ? vx_io_uring_new(&e) : vx_io_blocking_new();
		if (!r[k].io) {
			printf("io_uring: %s\n", strerror(-e));
			return;
		}
		r[k].base = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		r[k].form = k;
		r[k].buf = malloc(100 * 8192);
		for (int i = 0; i < 100; i++)
			snprintf(r[k].names[i], sizeof r[k].names[i], "f%02d", i);
		v[k] = (struct bench_case){.label = labels[k], .run = read_files, .arg = &r[k]};
	}
	bench_rounds("save-read", v, 3, 41, 1);
	for (int k = 0; k < 3; k++) {
		vx_io_free(r[k].io);
		close(r[k].base);
		free(r[k].buf);
	}
}

/* ---- large ones ---- */

struct large {
	struct setting s;
	uint32_t times; /* TEXT_BYTES so often */
};

/* A new file, as a command finds its outputs cleaned: ext4 writes one that was truncated to disk as
 * soon as it is closed, and every sync then waits for that. */
static void renew_large(void *arg)
{
	struct large *l = arg;
	char path[200];
	l->s.round++;
	text[l->s.round] ^= 1;
	snprintf(path, sizeof path, "%s/plain/big.zst", root);
	unlink(path);
	snprintf(path, sizeof path, "%s/%s/dist/big", root, l->s.dirs[0]);
	unlink(path);
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	for (uint32_t i = 0; i < l->times; i++) {
		text[4096 + i] ^= 1;
		if (fd < 0 || vx_write_full(fd, text, TEXT_BYTES) < 0)
			bench_die(path);
	}
	close(fd);
}

static void zstd_large(void *arg)
{
	struct large *l = arg;
	char cmd[300];
	snprintf(cmd, sizeof cmd, "zstd -1 -q -f %s/dist/big -o plain/big.zst", l->s.dirs[0]);
	sh(cmd);
}

static void save_large(void *arg)
{
	save_all(&((struct large *)arg)->s);
}

static void fill_text(const char *kind)
{
	if (strcmp(kind, "random") == 0) {
		int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
		for (size_t at = 0, n = 1 << 20; at < TEXT_BYTES; at += n)
			if (read(fd, text + at, n) != (ssize_t)n)
				bench_die("/dev/urandom");
		close(fd);
	} else if (strcmp(kind, "lines") == 0) {
		for (size_t i = 0, k = 0; i + 64 < TEXT_BYTES; k++)
			i += (size_t)sprintf(
				text + i, "line %zu of a log that says the same all the time\n", k);
	} else {
		make_text();
	}
}

static void bench_large(const char *name, const char *kind, uint32_t times, int rounds)
{
	struct large l[3] = {
		{{.io = "plain"}, times}, {{.io = "blocking"}, times}, {{.io = "uring"}, times}};
	static const char *const labels[] = {"zstd -1", "save, blocking", "save, io_uring"};
	struct bench_case v[3];
	memset(v, 0, sizeof v);
	fill_text(kind);
	sh("mkdir -p plain");
	for (int i = 0; i < 3; i++) {
		char dir[16];
		snprintf(dir, sizeof dir, "%s%c", name + 5, l[i].s.io[0]);
		make_dirs(&l[i].s, 1, dir);
		if (i)
			open_lane(&l[i].s);
		v[i] = (struct bench_case){.label = labels[i],
			.prepare = renew_large,
			.run = i ? save_large : zstd_large,
			.arg = &l[i]};
	}
	bench_rounds(name, v, 3, rounds, 1);
	close_lane(&l[1].s);
	close_lane(&l[2].s);
}

static void bench_64m(void)
{
	bench_large("save-64m", "", 1, 9);
}

/* Incompressible, and very compressible. */
static void bench_kinds(void)
{
	bench_large("save-random", "random", 1, 9);
	bench_large("save-lines", "lines", 1, 9);
}

static void bench_1g(void)
{
	bench_large("save-1g", "", 16, 3);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} all[] = {{"4k", bench_4k}, {"idle", bench_idle}, {"read", bench_read}, {"100", bench_100},
		{"64m", bench_64m}, {"kinds", bench_kinds}, {"1g", bench_1g}};
	const char *tmp = getenv("TMPDIR");
	snprintf(root, sizeof root, "%.40s/vx-bench-XXXXXX", tmp ? tmp : "/tmp");
	if (!mkdtemp(root))
		bench_die("no temporary directory");
	char path[80];
	snprintf(path, sizeof path, "%s/.vx", root);
	mkdir(path, 0777);
	text = malloc(TEXT_BYTES);
	make_text();
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if ((argc < 2 && i < 5) || (argc > 1 && strcmp(argv[1], all[i].name) == 0))
			all[i].run();
	vx_rm_rf(AT_FDCWD, root);
	free(text);
	return 0;
}
