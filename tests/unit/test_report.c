/* What a run shows, mode by mode, byte by byte. */
#include "vxtest.h"

#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/report.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <termios.h>

static int out_fd = -1, err_fd = -1;
static struct vx_report *report;
static struct vx_tasklog *logs[16];
static unsigned n_logs;

#define ENV(...) ((const char *const[]){__VA_ARGS__, NULL})
static const char *const no_env[] = {NULL};

static void begin(bool broad, enum vx_output_logs mode, const char *const *env)
{
	struct vx_report_opts o = {.broad = broad,
		.logs = mode,
		.n_tasks = 3,
		.n_projects = 2,
		.slots = 2,
		.env = env};

	out_fd = vx_memfd("out");
	err_fd = vx_memfd("err");
	o.out_fd = out_fd;
	o.err_fd = err_fd;
	report = vx_report_new(&o);
}

static const char *read_all(int fd)
{
	static char text[2][65536];
	static int k;
	char *t = text[k++ % 2];
	ssize_t n = pread(fd, t, sizeof text[0] - 1, 0);

	assert_true(n >= 0);
	t[n] = '\0';
	return t;
}

static int finish(void **state)
{
	(void)state;
	vx_report_free(report);
	report = NULL;
	while (n_logs)
		vx_tasklog_free(logs[--n_logs]);
	out_fd = vx_close(out_fd);
	err_fd = vx_close(err_fd);
	return 0;
}

static const struct vx_tasklog *log_of(const char *text)
{
	struct vx_tasklog *l = vx_tasklog_new(NULL);

	vx_tasklog_add(l, 1, text, strlen(text), NULL, NULL);
	logs[n_logs++] = l;
	return l;
}

static void run(uint32_t task, const char *id, bool requested, const char *text)
{
	vx_report_started(report, task, id, requested, false, 1);
	if (*text)
		vx_report_output(report, task, 1, text, strlen(text));
}

static void ok(uint32_t task, const char *id, bool requested, const char *text)
{
	run(task, id, requested, text);
	vx_report_ended(report, &(struct vx_task_end){.task = task,
					.id = id,
					.requested = requested,
					.result = VX_R_SUCCESS,
					.wall_ns = 1230000000,
					.log = log_of(text),
					.key_hex = "abc123"});
}

static void bad(uint32_t task, const char *id, bool requested, const char *text)
{
	run(task, id, requested, text);
	vx_report_ended(report, &(struct vx_task_end){.task = task,
					.id = id,
					.requested = requested,
					.result = VX_R_FAILED,
					.cache = VX_C_NOCACHE,
					.status = "exit 2",
					.wall_ns = 40000000,
					.log = log_of(text)});
}

static void skipped(uint32_t task, const char *id, const char *why)
{
	vx_report_ended(
		report, &(struct vx_task_end){
				.task = task, .id = id, .result = VX_R_SKIPPED, .status = why});
}

static void hit(uint32_t task, const char *id, bool requested, const char *text)
{
	struct vx_buf b = VX_BUF(1 << 20);

	vx_tasklog_store(log_of(text), &b);
	vx_report_ended(report, &(struct vx_task_end){.task = task,
					.id = id,
					.requested = requested,
					.result = VX_R_HIT,
					.cache = VX_C_RESTORED,
					.wall_ns = 2000000,
					.stored = b.data,
					.stored_bytes = b.len,
					.key_hex = "def456"});
	vx_buf_free(&b);
}

static void end_run(void)
{
	vx_report_finish(
		report, &(struct vx_run_end){.code = 1,
				.wall_ns = 2500000000,
				.plan_ns = 3000000,
				.keys_ns = 4000000,
				.critical_ns = 2000000000,
				.workers = 2,
				.missed = 1,
				.nocache = 1,
				.restored = 1,
				.saved_ns = 61000000000,
				.counts = {.total = 3, .executed = 2, .failed = 1, .hits = 1}});
}

#define FOOTER(failed)                                                               \
	"\ntasks    2 ok, 1 failed of 3 in 2 projects\n"                             \
	"failed   " failed "\n"                                                      \
	"cache    1 miss, 1 restored, 1 no-cache; saved 1m 01s\n"                    \
	"time     2.50s with 2 workers; critical path 2.00s, ideal schedule 2.00s\n" \
	"overhead plan 3ms, keys 4ms\n"

static void broad_pipe(void **state)
{
	(void)state;
	begin(true, VX_LOGS_DEFAULT, no_env);
	ok(0, "a#build", true, "said by a\n");
	bad(1, "b#build", true, "trouble");
	hit(2, "c#build", true, "cached words\n");
	assert_string_equal(read_all(out_fd), "✓    1.23s  ok        miss       a#build\n"
					      "✗     40ms  exit 2    no-cache   b#build\n");
	end_run();
	assert_string_equal(read_all(out_fd), "✓    1.23s  ok        miss       a#build\n"
					      "✗     40ms  exit 2    no-cache   b#build\n"
					      "\n─── b#build: exit 2 after 40ms ───\n"
					      "trouble\n" FOOTER("b#build"));
	assert_string_equal(read_all(err_fd), "");
}

static void focused_streams_raw(void **state)
{
	(void)state;
	begin(false, VX_LOGS_DEFAULT, no_env);
	ok(0, "dep#build", false, "not shown\n");
	run(1, "a#build", true, "one\ntw");
	assert_string_equal(
		read_all(out_fd), "✓    1.23s  ok        miss       dep#build\none\ntw");
	vx_report_output(report, 1, 2, "o", 1);
	vx_report_ended(report, &(struct vx_task_end){.task = 1,
					.id = "a#build",
					.requested = true,
					.result = VX_R_FAILED,
					.status = "exit 2",
					.log = log_of("one\ntwo")});
	end_run();
	assert_string_equal(read_all(out_fd),
		"✓    1.23s  ok        miss       dep#build\none\ntwo\n"
		"✗      0us  exit 2    miss       a#build\n" FOOTER("a#build"));
}

static void focused_hit_replays(void **state)
{
	(void)state;
	begin(false, VX_LOGS_DEFAULT, no_env);
	hit(0, "dep#build", false, "not shown\n");
	hit(1, "a#build", true, "cached words");
	assert_string_equal(
		read_all(out_fd), "cached words\n✓      2ms  cached    restored   a#build\n");
}

static void two_streams_are_named(void **state)
{
	(void)state;
	begin(false, VX_LOGS_DEFAULT, no_env);
	run(0, "a#dev", true, "raw\nhalf");
	run(1, "b#dev", true, "hello\nwor");
	vx_report_output(report, 0, 1, " a line\n", 8);
	vx_report_output(report, 1, 1, "ld\n", 3);
	assert_string_equal(
		read_all(out_fd), "raw\nhalf\nb#dev: hello\na#dev:  a line\nb#dev: world\n");
}

static void full_frames(void **state)
{
	(void)state;
	begin(true, VX_LOGS_FULL, no_env);
	run(0, "a#build", true, "one\n"); /* nothing of it before its end */
	bad(1, "b#build", true, "trouble\n");
	hit(2, "c#build", true, "cached words\n");
	ok(0, "a#build", true, "one\n");
	ok(3, "quiet#build", true, "");
	skipped(4, "d#build", "skipped: b#build failed");
	assert_string_equal(read_all(out_fd),
		"─── b#build: exit 2 after 40ms ───\ntrouble\n✗     40ms  exit 2    no-cache   b#build\n"
		"─── c#build ───\ncached words\n✓      2ms  cached    restored   c#build\n"
		"─── a#build ───\none\n✓    1.23s  ok        miss       a#build\n"
		"✓    1.23s  ok        miss       quiet#build\n"
		"○           skipped: b#build failed -          d#build\n");
	size_t before = strlen(read_all(out_fd));
	end_run();
	assert_string_equal(read_all(out_fd) + before, FOOTER("b#build")); /* shown once */
}

static void ci_is_grouped(void **state)
{
	(void)state;
	begin(false, VX_LOGS_DEFAULT, ENV("CI=true"));
	ok(0, "a#build", true, "one\n");
	assert_string_equal(read_all(out_fd),
		"─── a#build ───\none\n✓    1.23s  ok        miss       a#build\n");
}

static void github(void **state)
{
	char fence[64], want[1024];

	(void)state;
	begin(true, VX_LOGS_DEFAULT, ENV("CI=true", "GITHUB_ACTIONS=true"));
	ok(0, "a#build", true, "::error::not mine\n");
	ok(1, "quiet#build", true, "");
	const char *got = read_all(out_fd);
	assert_int_equal(sscanf(got, "::group::a#build (1.23s)\n::stop-commands::%63s", fence), 1);
	assert_int_equal(strlen(fence), 35);
	snprintf(want, sizeof want,
		"::group::a#build (1.23s)\n::stop-commands::%s\n::error::not mine\n::%s::\n::endgroup::\n✓    1.23s  ok        miss       a#build\n"
		"✓    1.23s  ok        miss       quiet#build\n",
		fence, fence);
	assert_string_equal(got, want);
	size_t before = strlen(got);
	bad(2, "b,x#build", true, "no newline");
	got = read_all(out_fd) + before;
	const char *at = strstr(got, "::stop-commands::");
	assert_int_equal(sscanf(at, "::stop-commands::%63s", fence), 1);
	snprintf(want, sizeof want,
		"::error title=b%%2Cx#build::b,x#build failed: exit 2\n::stop-commands::%s\nno newline\n::%s::\n✗     40ms  exit 2    no-cache   b,x#build\n",
		fence, fence);
	assert_string_equal(got, want);
}

static void hash_only_and_none(void **state)
{
	(void)state;
	begin(true, VX_LOGS_HASH, no_env);
	ok(0, "a#build", true, "one\n");
	hit(1, "b#build", true, "two\n");
	assert_string_equal(read_all(out_fd),
		"✓    1.23s  ok        miss       abc123 a#build\n✓      2ms  cached    restored   def456 b#build\n");
	finish(NULL);
	begin(false, VX_LOGS_NONE, no_env);
	ok(0, "a#build", true, "one\n");
	hit(1, "b#build", true, "two\n");
	bad(2, "c#build", true, "three\n");
	assert_string_equal(read_all(out_fd), "✗     40ms  exit 2    no-cache   c#build\n");
	finish(NULL);
	begin(false, VX_LOGS_ERRORS, no_env);
	ok(0, "a#build", true, "one\n");
	bad(2, "c#build", true, "three\n");
	end_run();
	assert_string_equal(read_all(out_fd),
		"✓    1.23s  ok        miss       a#build\n✗     40ms  exit 2    no-cache   c#build\n"
		"\n─── c#build: exit 2 after 40ms ───\nthree\n" FOOTER("c#build"));
}

static void notes_retries_warnings(void **state)
{
	(void)state;
	begin(true, VX_LOGS_DEFAULT, no_env);
	run(0, "a#build", true, "");
	vx_report_retry(report, 0, 1, "exit 3");
	vx_report_started(report, 0, "a#build", true, false, 2);
	vx_report_ended(report, &(struct vx_task_end){.task = 0,
					.id = "a#build",
					.result = VX_R_SUCCESS,
					.flaky = true,
					.leftover_cut = true,
					.note = "not saved: src/a.c changed while it ran\nmore"});
	vx_report_warn(report, "vx run: %s", "careful");
	vx_report_ended(
		report, &(struct vx_task_end){.task = 1, .id = "b#build", .result = VX_R_ABORTED});
	vx_report_ended(report,
		&(struct vx_task_end){.task = 1, .id = "b#build", .result = VX_R_NOT_STARTED});
	assert_string_equal(read_all(out_fd),
		"↻ attempt 1 of a#build: exit 3; running it again\n"
		"✓      0us  ok, flaky miss       a#build\n"
		"  flaky: a#build passed after a failed attempt\n"
		"  output was cut: something that the command left running held it open\n"
		"  not saved: src/a.c changed while it ran\n  more\n");
	assert_string_equal(read_all(err_fd), "vx run: careful\n");
}

static void servers_of_a_broad_run(void **state)
{
	(void)state;
	begin(true, VX_LOGS_DEFAULT, no_env);
	vx_report_started(report, 0, "a#dev", true, true, 1);
	vx_report_started(report, 1, "b#db", false, true, 1);
	vx_report_output(report, 0, 1, "up\npart", 7);
	vx_report_output(report, 1, 1, "silent\n", 7);
	vx_report_ready(report, 0);
	vx_report_ended(report,
		&(struct vx_task_end){
			.task = 0, .id = "a#dev", .requested = true, .result = VX_R_ABORTED});
	assert_string_equal(read_all(out_fd), "a#dev: up\na#dev: part\n");
}

static void colors(void **state)
{
	(void)state;
	begin(true, VX_LOGS_DEFAULT, ENV("FORCE_COLOR=1"));
	ok(0, "a#build", true, "");
	assert_non_null(strstr(read_all(out_fd), "\033[32m✓\033[0m"));
	finish(NULL);
	begin(true, VX_LOGS_DEFAULT, ENV("FORCE_COLOR=1", "NO_COLOR=1"));
	ok(0, "a#build", true, "");
	assert_null(strchr(read_all(out_fd), '\033'));
	finish(NULL);
	begin(true, VX_LOGS_DEFAULT, ENV("LANG=de_DE.ISO-8859-1"));
	ok(0, "a#build", true, "");
	assert_string_equal(read_all(out_fd), "+    1.23s  ok        miss       a#build\n");
}

static void interrupted_footer(void **state)
{
	(void)state;
	begin(true, VX_LOGS_DEFAULT, no_env);
	vx_report_interrupted(report);
	vx_report_finish(report, &(struct vx_run_end){.signal = SIGINT, .wall_ns = 5000000});
	assert_string_equal(read_all(out_fd),
		"\nended    interrupted by SIGINT\ntasks    none run of 3 in 2 projects\ntime     5ms\noverhead none\n");
}

/* ---- readers that are slow, or gone ---- */

static void nobody_reads(void **state)
{
	int p[2];
	struct vx_report_opts o = {.broad = true, .logs = VX_LOGS_FULL, .env = no_env};

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(vx_pipe(p), 0);
	vx_close(p[0]);
	o.out_fd = p[1];
	report = vx_report_new(&o);
	for (uint32_t k = 0; k < 100; k++)
		ok(0, "a#build", true, "x\n"), vx_tasklog_free(logs[--n_logs]);
	vx_report_finish(report, &(struct vx_run_end){0});
	assert_int_equal(vx_report_next_tick_ms(report, 0), -1);
	vx_report_free(report);
	vx_close(p[1]);
	o.out_fd = -1; /* never open */
	report = vx_report_new(&o);
	ok(0, "a#build", true, "x\n");
	vx_report_finish(report, &(struct vx_run_end){0});
}

static void *slow_reader(void *arg)
{
	static char got[1 << 20];
	size_t n = 0;
	ssize_t r;

	usleep(20000);
	while ((r = read(*(int *)arg, got + n, sizeof got - n - 1)) > 0)
		n += (size_t)r;
	got[n] = '\0';
	return got;
}

static void slow_reader_gets_all(void **state)
{
	int p[2];
	struct vx_report_opts o = {
		.broad = true, .logs = VX_LOGS_FULL, .env = no_env, .err_fd = -1};
	static char big[200001];
	pthread_t thread;
	void *got;

	(void)state;
	assert_int_equal(vx_pipe(p), 0);
	o.out_fd = p[1];
	memset(big, 'x', sizeof big - 1);
	report = vx_report_new(&o);
	ok(0, "a#build", true, big); /* more than a pipe holds, and yet it returns */
	assert_true(vx_report_next_tick_ms(report, vx_now_ns()) > 0);
	ok(1, "b#build", true, "and on\n");
	vx_report_tick(report, vx_now_ns());
	assert_int_equal(pthread_create(&thread, NULL, slow_reader, &p[0]), 0);
	vx_report_finish(report, &(struct vx_run_end){0});
	vx_close(p[1]);
	assert_int_equal(pthread_join(thread, &got), 0);
	assert_non_null(strstr(
		got, "xxx\n✓    1.23s  ok        miss       a#build\n─── b#build ───\nand on\n"));
	assert_non_null(strstr(got, "overhead none\n"));
	vx_close(p[0]);
}

static void a_signal_ends_the_waiting(void **state)
{
	int p[2];
	struct vx_report_opts o = {
		.broad = true, .logs = VX_LOGS_FULL, .env = no_env, .err_fd = -1};
	sigset_t set, old;
	char *big = malloc(5000001);

	(void)state;
	assert_int_equal(vx_pipe(p), 0);
	o.out_fd = p[1];
	memset(big, 'x', 5000000);
	big[5000000] = '\0';
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	assert_int_equal(sigprocmask(SIG_BLOCK, &set, &old), 0);
	raise(SIGTERM);
	report = vx_report_new(&o);
	for (int k = 0; k < 20; k++) /* 100 MB, read by nobody */
		ok(0, "a#build", true, big), vx_tasklog_free(logs[--n_logs]);
	vx_report_finish(report, &(struct vx_run_end){0});
	struct timespec none = {0};
	assert_int_equal(sigtimedwait(&set, NULL, &none), SIGTERM);
	sigprocmask(SIG_SETMASK, &old, NULL);
	free(big);
	vx_close(p[0]);
	vx_close(p[1]);
}

/* ---- a terminal ---- */

static int terminal(int *ret_slave)
{
	int master = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
	struct winsize w = {.ws_row = 10, .ws_col = 40};
	struct termios t;

	assert_true(master >= 0);
	assert_int_equal(grantpt(master), 0);
	assert_int_equal(unlockpt(master), 0);
	*ret_slave = open(ptsname(master), O_RDWR | O_NOCTTY | O_CLOEXEC);
	assert_true(*ret_slave >= 0);
	assert_int_equal(ioctl(*ret_slave, TIOCSWINSZ, &w), 0);
	assert_int_equal(tcgetattr(*ret_slave, &t), 0);
	t.c_oflag &= ~(tcflag_t)OPOST;
	assert_int_equal(tcsetattr(*ret_slave, TCSANOW, &t), 0);
	return master;
}

static const char *screen_got(int master)
{
	static char text[65536];
	size_t n = 0;
	struct pollfd p = {master, POLLIN, 0};

	while (poll(&p, 1, 50) > 0 && (p.revents & POLLIN)) {
		ssize_t r = read(master, text + n, sizeof text - n - 1);
		if (r <= 0)
			break;
		n += (size_t)r;
	}
	text[n] = '\0';
	return text;
}

static void live_rows(void **state)
{
	int slave, master = terminal(&slave);
	uint64_t t0 = vx_now_ns(), ms = 1000000;
	struct vx_report_opts o = {.broad = true,
		.n_tasks = 9,
		.n_projects = 1,
		.slots = 2,
		.start_ns = t0,
		.out_fd = slave,
		.err_fd = -1,
		.env = ENV("TERM=xterm", "NO_COLOR=1", "LANG=en_US.ISO-8859-1")};

	(void)state;
	report = vx_report_new(&o);
	assert_int_equal(vx_report_next_tick_ms(report, t0), 100);
	run(0, "a-project-with-a-long-name#build-and-more", true, "not shown");
	run(1, "b#build", true, "");
	assert_string_equal(screen_got(master), "");
	vx_report_tick(report, t0 + 100 * ms);
	const char *got = screen_got(master);
	assert_non_null(strstr(got, "a-project-with-a-long-name\n")); /* cut at the edge */
	assert_non_null(strstr(got, "b#build\n  0/9  2 running  0.1s\n"));
	ok(1, "b#build", true, "");
	assert_string_equal(screen_got(master), ""); /* not before the next tick */
	vx_report_tick(report, t0 + 110 * ms);
	assert_string_equal(screen_got(master), "");
	assert_int_equal(vx_report_next_tick_ms(report, t0 + 110 * ms), 20);
	vx_report_counts(report, &(struct vx_core_counts){.ready = 3, .saving = 1});
	vx_report_exited(report, 0);
	vx_report_tick(report, t0 + 130 * ms);
	got = screen_got(master);
	/* rubbed out, row, rows again */
	assert_ptr_equal(
		strstr(got, "\r\033[3A\033[J+    1.23s  ok        miss       b#build\n"), got);
	assert_non_null(strstr(got, " 1/9  0 running  3 ready  1 saving  0"));
	vx_report_interrupted(report);
	assert_string_equal(screen_got(master), "\r\033[1A\033[J");
	assert_int_equal(vx_report_next_tick_ms(report, t0 + 500 * ms), -1);
	vx_report_tick(report, t0 + 500 * ms);
	assert_string_equal(screen_got(master), "");
	vx_report_finish(report, &(struct vx_run_end){0});
	assert_null(strchr(screen_got(master), '\033'));
	vx_close(slave);
	vx_close(master);
}

static void stream_on_a_terminal_has_no_rows(void **state)
{
	int slave, master = terminal(&slave);
	struct vx_report_opts o = {.n_tasks = 1,
		.start_ns = vx_now_ns(),
		.out_fd = slave,
		.err_fd = -1,
		.env = ENV("TERM=xterm")};

	(void)state;
	report = vx_report_new(&o);
	run(0, "a#test", true, "pass? ");
	assert_string_equal(screen_got(master), "pass? ");
	vx_report_tick(report, o.start_ns + 1000000000);
	assert_string_equal(screen_got(master), "");
	vx_close(slave);
	vx_close(master);
}

static void formats(void **state)
{
	char b[32];

	(void)state;
	assert_string_equal(vx_fmt_ns(999, b, sizeof b), "0us");
	assert_string_equal(vx_fmt_ns(340000000, b, sizeof b), "340ms");
	assert_string_equal(vx_fmt_ns(1230000000, b, sizeof b), "1.23s");
	assert_string_equal(vx_fmt_ns(125000000000, b, sizeof b), "2m 05s");
	assert_string_equal(vx_fmt_ns(7260000000000, b, sizeof b), "2h 01m");
	assert_string_equal(vx_fmt_bytes(1023, b, sizeof b), "1023 B");
	assert_string_equal(vx_fmt_bytes(1536, b, sizeof b), "1.5 KB");
	assert_string_equal(vx_fmt_bytes(3ULL << 29, b, sizeof b), "1.5 GB");
	assert_string_equal(vx_fmt_bytes(512ULL << 20, b, sizeof b), "512 MB");
	assert_string_equal(vx_fmt_bytes(UINT64_MAX, b, sizeof b), "15.9 EB");
}

#define T(f) cmocka_unit_test_teardown(f, finish)

int main(void)
{
	const struct CMUnitTest tests[] = {T(broad_pipe), T(focused_streams_raw),
		T(focused_hit_replays), T(two_streams_are_named), T(full_frames), T(ci_is_grouped),
		T(github), T(hash_only_and_none), T(notes_retries_warnings),
		T(servers_of_a_broad_run), T(colors), T(interrupted_footer), T(nobody_reads),
		T(slow_reader_gets_all), T(a_signal_ends_the_waiting), T(live_rows),
		T(stream_on_a_terminal_has_no_rows), cmocka_unit_test(formats)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
