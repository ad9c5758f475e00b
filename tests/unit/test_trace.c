/* The recorder, and that every file made of it is what its readers expect. */
#include "vxtest.h"

#include "vx/buf.h"
#include "vx/err.h"
#include "vx/json.h"
#include "vx/trace.h"

#include <errno.h>
#include <signal.h>

#define MS 1000000ULL

static char *dir;
static struct vx_trace *trace;
static struct vx_core *core;
static uint64_t now = 1000 * MS;

static int setup(void **state)
{
	(void)state;
	dir = vxt_tmpdir();
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	vx_trace_free(trace);
	vx_core_free(core);
	trace = NULL;
	core = NULL;
	vxt_rm(dir);
	return 0;
}

static void ended(const struct vx_core_decision *d, const struct vx_trace_task *tasks)
{
	struct vx_task_end e = {.task = d->task,
		.id = tasks[d->task].id,
		.result = d->result,
		.cache = d->result == VX_R_HIT ? VX_C_RESTORED : VX_C_MISS,
		.wall_ns = 30 * MS,
		.cpu_ns = 20 * MS,
		.peak_bytes = 5 << 20,
		.key_hex = "00ff"};

	if (d->result == VX_R_FAILED)
		e.status = "exit 3, \"quoted\" </script>";
	vx_trace_ended(trace, now, &e);
}

/* What the loop does: a run of the tasks in which each takes 10 ms, then 10 ms in the lane. */
static int drive(const struct vx_core_opts *o, const struct vx_core_task *ct,
	const struct vx_trace_task *tasks, uint32_t n, uint32_t fails)
{
	struct vx_core_event todo[64];
	struct vx_core_decision d;
	uint32_t first = 0, last = 0;

	core = vx_core_new(o, ct, n);
	for (;;) {
		while (vx_core_next(core, &d)) {
			vx_trace_decision(trace, now, &d);
			now += 10000;
			if (d.what == VX_DO_END)
				return d.code;
			if (d.what == VX_DO_DONE)
				ended(&d, tasks);
			if (d.what == VX_DO_RUN) {
				todo[last++ % 64] = (struct vx_core_event){
					.kind = VX_EV_STARTED, .task = d.task};
				todo[last++ % 64] = (struct vx_core_event){.kind = VX_EV_EXITED,
					.task = d.task,
					.ok = d.task != fails,
					.save = true};
			} else if (d.what == VX_DO_SAVE) {
				todo[last++ % 64] = (struct vx_core_event){
					.kind = VX_EV_CAPTURED, .task = d.task};
				todo[last++ % 64] = (struct vx_core_event){
					.kind = VX_EV_SETTLED, .task = d.task, .ok = true};
			} else if (d.what == VX_DO_RESTORE) {
				todo[last++ % 64] = (struct vx_core_event){
					.kind = VX_EV_RESTORED, .task = d.task, .ok = true};
			} else if (d.what == VX_DO_KEY) {
				todo[last++ % 64] = (struct vx_core_event){
					.kind = VX_EV_KEYED, .task = d.task, .verdict = VX_V_MISS};
			}
		}
		assert_true(first < last);
		now += 5 * MS;
		vx_trace_event(trace, now, &todo[first % 64]);
		vx_core_event(core, &todo[first++ % 64]);
		vx_trace_flush(trace);
	}
}

static const uint32_t on_0[] = {0}, on_1_2[] = {1, 2}, on_3[] = {3};

static int small_run(void)
{
	static const struct vx_core_task ct[] = {{.verdict = VX_V_MISS, .cpus = 1},
		{.verdict = VX_V_HIT, .cpus = 1},
		{.verdict = VX_V_LATE, .cpus = 1, .deps = on_0, .n_deps = 1},
		{.group = true, .deps = on_1_2, .n_deps = 2},
		{.verdict = VX_V_NOCACHE, .cpus = 1, .deps = on_3, .n_deps = 1}};
	static const struct vx_trace_task tasks[] = {{.id = "lib#build"},
		{.id = "odd\xff<name>#build"}, {.id = "app#build", .deps = on_0, .n_deps = 1},
		{.id = "app#all", .deps = on_1_2, .n_deps = 2, .group = true},
		{.id = "app#test", .deps = on_3, .n_deps = 1, .requested = true}};
	struct vx_core_opts o = {.slots = 2, .restore_lane = 2, .save_lane = 2};

	trace = vx_trace_new(tasks, 5, 2, now);
	assert_int_equal(vx_trace_events(trace, vxt_path(dir, "events"), NULL), 0);
	vx_trace_phase(trace, "plan", now - MS, now);
	return drive(&o, ct, tasks, 5, 4);
}

static struct vx_json *parse(const char *name, const char *after, const char *before)
{
	struct vx_buf b = VX_BUF(64 << 20);
	struct vx_err err = {0};
	struct vx_json *v = NULL;

	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, name), &b), 0);
	const char *from = after ? strstr(b.data, after) : b.data;
	assert_non_null(from);
	from += after ? strlen(after) : 0;
	const char *to = before ? strstr(from, before) : b.data + b.len;
	assert_non_null(to);
	if (vx_json_parse(from, (size_t)(to - from), 0, name, &v, &err) < 0)
		fail_msg("%s", err.what);
	vx_buf_free(&b);
	return v;
}

static void finish(int code)
{
	const struct vx_run_end e = {.code = code,
		.wall_ns = 99 * MS,
		.saved_ns = 60000 * MS,
		.missed = 2,
		.restored = 1,
		.nocache = 1,
		.plan_ns = MS,
		.counts = {.total = 4, .executed = 3, .failed = 1, .hits = 1}};
	struct vx_err err = {0};

	assert_int_equal(vx_trace_finish(trace, now, &e, &err), 0);
}

static void events_are_lines(void **state)
{
	struct vx_buf b = VX_BUF(1 << 20);
	char seen[2048] = "";
	int64_t last = 0;

	(void)state;
	assert_int_equal(small_run(), 1);
	finish(1);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, "events"), &b), 0);
	for (char *p = b.data, *nl; (nl = strchr(p, '\n')); p = nl + 1) {
		struct vx_json *v;

		assert_int_equal(vx_json_parse(p, (size_t)(nl - p), 0, "line", &v, NULL), 0);
		strcat(strcat(seen, vx_json_str(vx_json_get(v, "event"))), " ");
		int64_t ns = vx_json_int(vx_json_get(v, "ns"));
		assert_true(ns >= last || strstr(seen, "phase ") == seen + 6);
		if (strcmp(vx_json_str(vx_json_get(v, "event")), "begin") != 0)
			last = ns;
		if (!strcmp(vx_json_str(vx_json_get(v, "event")), "done") &&
			!strcmp(vx_json_str(vx_json_get(v, "task")), "app#test")) {
			assert_string_equal(vx_json_str(vx_json_get(v, "result")), "failed");
			assert_string_equal(vx_json_str(vx_json_get(v, "status")),
				"exit 3, \"quoted\" </script>");
		}
		vx_json_free(v);
	}
	assert_string_equal(seen,
		"begin phase run restore started exited save restored done captured done key settled keyed run started exited save captured done run "
		"settled started exited done end ");
	vx_buf_free(&b);
}

static void critical_path(void **state)
{
	const uint32_t *chain;
	uint32_t n;

	(void)state;
	small_run();
	uint64_t ns = vx_trace_critical(trace, &chain, &n);
	assert_int_equal(n, 3);
	assert_int_equal(chain[0], 0);
	assert_int_equal(chain[1], 2);
	assert_int_equal(chain[2], 4);
	assert_true(ns > 30 * MS);
}

static void chrome_trace(void **state)
{
	unsigned runs = 0, names = 0;

	(void)state;
	small_run();
	finish(1);
	assert_int_equal(vx_trace_write_chrome(trace, vxt_path(dir, "profile.json"), NULL), 0);
	struct vx_json *v = parse("profile.json", NULL, NULL),
		       *events = vx_json_get(v, "traceEvents");
	for (size_t k = 0; k < vx_json_len(events); k++) {
		struct vx_json *e = vx_json_at(events, k);
		const char *ph = vx_json_str(vx_json_get(e, "ph"));

		names += !strcmp(ph, "M");
		if (strcmp(ph, "X") != 0)
			continue;
		assert_true(vx_json_double(vx_json_get(e, "dur")) >= 0);
		runs += !strcmp(vx_json_str(vx_json_get(e, "cat")), "run");
	}
	assert_int_equal(runs, 3);
	assert_true(names >= 6);
	vx_json_free(v);
}

static void html_page(void **state)
{
	char command[PATH_MAX * 2];
	const char *out;

	(void)state;
	small_run();
	finish(1);
	assert_int_equal(vx_trace_write_html(
				 trace, vxt_path(dir, "report.html"), "vx run <all> & more", NULL),
		0);
	struct vx_json *v = parse("report.html", "const D =", ";\nconst $ =");
	assert_int_equal(vx_json_len(vx_json_get(v, "tasks")), 5);
	assert_string_equal(vx_json_str(vx_json_at(vx_json_at(vx_json_get(v, "tasks"), 1), 0)),
		"odd\xef\xbf\xbd"
		"ff<name>#build");
	assert_int_equal(vx_json_len(vx_json_get(v, "critical")), 3);
	vx_json_free(v);
	struct vx_buf b = VX_BUF(1 << 20);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, "report.html"), &b), 0);
	assert_non_null(strstr(b.data, "<h1>vx run &#60;all&#62; &#38; more</h1>"));
	assert_null(strstr(b.data, "://")); /* nothing is fetched */
	assert_ptr_equal(strstr(strstr(b.data, "</script>") + 1, "</script>"), NULL);
	vx_buf_free(&b);
	if (vxt_sh("command -v node", &out) != 0 || access("tests/unit/html_page.js", R_OK) != 0)
		return; /* the script itself is tried where there is a node */
	snprintf(command, sizeof command, "node tests/unit/html_page.js %s 4 'app success' 1 2>&1",
		vxt_path(dir, "report.html"));
	if (vxt_sh(command, &out) != 0)
		fail_msg("%s", out);
}

static void markdown(void **state)
{
	struct vx_buf b = VX_BUF(1 << 20);

	(void)state;
	small_run();
	finish(1);
	assert_int_equal(
		vx_trace_write_markdown(trace, vxt_path(dir, "report.md"), "vx run", NULL), 0);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(dir, "report.md"), &b), 0);
	assert_non_null(strstr(b.data,
		"**failed**: 4 tasks, 3 executed, 1 from the cache, 1 failed, 0 skipped; 99ms, 1m 00s saved, critical path "));
	assert_non_null(strstr(
		b.data, "| app\\#test | exit 3, \"quoted\" \\</script\\> | miss | 30ms |\n"));
	vx_buf_free(&b);
}

static void sinks_that_fail(void **state)
{
	struct vx_err err = {0};
	const struct vx_run_end e = {0};

	(void)state;
	trace = vx_trace_new(NULL, 0, 1, now);
	assert_int_equal(vx_trace_events(trace, vxt_path(dir, "no/such/dir"), &err), -ENOENT);
	assert_non_null(strstr(err.what, "no/such/dir: No such file"));
	assert_int_equal(mkfifo(vxt_path(dir, "fifo"), 0600), 0);
	assert_int_equal(vx_trace_events(trace, vxt_path(dir, "fifo"), &err), -ENXIO);
	assert_int_equal(vx_trace_events(trace, "/dev/full", &err), 0);
	vx_trace_phase(trace, "plan", 1, 2);
	vx_trace_flush(trace);
	assert_int_equal(vx_trace_finish(trace, now, &e, &err), -EIO);
	assert_int_equal(vx_trace_write_chrome(trace, vxt_path(dir, "no/such"), &err), -ENOENT);
	assert_int_equal(vx_trace_write_html(trace, vxt_path(dir, "empty.html"), "none", &err), 0);
	assert_int_equal(
		vx_trace_write_markdown(trace, vxt_path(dir, "empty.md"), "none", &err), 0);
}

static void none_is_fine(void **state)
{
	const struct vx_run_end e = {0};

	(void)state;
	vx_trace_decision(NULL, 0, &(struct vx_core_decision){.what = VX_DO_RUN});
	vx_trace_event(NULL, 0, &(struct vx_core_event){.kind = VX_EV_EXITED});
	vx_trace_ended(NULL, 0, &(struct vx_task_end){0});
	vx_trace_phase(NULL, "plan", 0, 0);
	vx_trace_flush(NULL);
	assert_int_equal(vx_trace_finish(NULL, 0, &e, NULL), 0);
	vx_trace_free(NULL);
}

#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {T(events_are_lines), T(critical_path), T(chrome_trace),
		T(html_page), T(markdown), T(sinks_that_fail), cmocka_unit_test(none_is_fine)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
