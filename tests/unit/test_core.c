/* The core's rules one by one. Each test feeds events and reads the decisions as text: "run 0/1;
 * done 2 hit; stop 1 TERM; end 0". */
#include "vxtest.h"

#include "vx/core.h"

#include <signal.h>

static struct vx_core *core;

static const char *decisions(void)
{
	static const char *const what[] = {
		"", "key", "restore", "run", "save", "stop", "retry", "done", "end"};
	static const char *const results[] = {
		"", "ok", "hit", "failed", "skipped", "aborted", "not-started"};
	static char out[4096];
	struct vx_core_decision d;
	size_t n = 0;

	out[0] = '\0';
	while (vx_core_next(core, &d)) {
		n += (size_t)snprintf(out + n, sizeof out - n, "%s%s", n ? "; " : "", what[d.what]);
		if (d.what == VX_DO_END)
			n += (size_t)snprintf(out + n, sizeof out - n, " %d", d.code);
		else
			n += (size_t)snprintf(out + n, sizeof out - n, " %u", d.task);
		if (d.what == VX_DO_RUN || d.what == VX_DO_RETRY)
			n += (size_t)snprintf(out + n, sizeof out - n, "/%u%s", d.attempt,
				d.what == VX_DO_RUN && d.unsaved ? " unsaved" : "");
		if (d.what == VX_DO_STOP)
			n += (size_t)snprintf(out + n, sizeof out - n, " %s",
				d.signal == SIGKILL   ? "KILL"
				: d.signal == SIGTERM ? "TERM"
						      : "INT");
		if (d.what == VX_DO_DONE)
			n += (size_t)snprintf(out + n, sizeof out - n, " %s%s", results[d.result],
				d.flaky ? " flaky" : "");
		if (d.what == VX_DO_DONE && d.result == VX_R_SKIPPED)
			n += (size_t)snprintf(out + n, sizeof out - n, " by %u", d.blocker);
		assert_true(n < sizeof out);
	}
	return out;
}

#define expect(text) assert_string_equal(decisions(), text)

static void say(enum vx_core_kind kind, uint32_t task)
{
	vx_core_event(core,
		&(struct vx_core_event){
			.kind = kind, .task = task, .ok = true, .save = true, .signal = SIGINT});
}

static void fails(uint32_t task)
{
	vx_core_event(core, &(struct vx_core_event){.kind = VX_EV_EXITED, .task = task});
}

static void keyed(uint32_t task, enum vx_verdict v)
{
	vx_core_event(
		core, &(struct vx_core_event){.kind = VX_EV_KEYED, .task = task, .verdict = v});
}

static void damaged(uint32_t task)
{
	vx_core_event(core, &(struct vx_core_event){.kind = VX_EV_RESTORED, .task = task});
}

#define DEPS(...)                                \
	.deps = (const uint32_t[]){__VA_ARGS__}, \
	.n_deps = sizeof((uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t)
#define NOCACHE .verdict = VX_V_NOCACHE, .cpus = 1
#define MISS .verdict = VX_V_MISS, .cpus = 1

static void start_with(struct vx_core_opts o, const struct vx_core_task *t, uint32_t n)
{
	o.restore_lane = o.restore_lane ? o.restore_lane : 4;
	o.save_lane = o.save_lane ? o.save_lane : 4;
	core = vx_core_new(&o, t, n);
}

#define start(o, t) start_with((struct vx_core_opts)o, t, sizeof(t) / sizeof *(t))
#define OPTS(...)           \
	{                   \
		__VA_ARGS__ \
	}

static int end(void **state)
{
	(void)state;
	vx_core_free(core);
	core = NULL;
	return 0;
}

static void nothing(void **state)
{
	(void)state;
	core = vx_core_new(&(struct vx_core_opts){.slots = 1}, NULL, 0);
	expect("end 0");
	expect("");
}

static void longest_path_first(void **state)
{
	/* 3 is short but leads to a long one; 1 is unknown: the mean of the known, (10 + 60 + 20) /
	 * 3 = 30 */
	const struct vx_core_task t[] = {{NOCACHE, .predicted_ns = 20000000}, {NOCACHE},
		{NOCACHE, .predicted_ns = 60000000, DEPS(3)}, {NOCACHE, .predicted_ns = 10000000}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("run 3/1");
	say(VX_EV_EXITED, 3);
	expect("done 3 ok; run 2/1");
	say(VX_EV_EXITED, 2);
	expect("done 2 ok; run 1/1");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; run 0/1");
	say(VX_EV_EXITED, 0);
	expect("done 0 ok; end 0");
}

static void weight_then_declaration(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE}, {NOCACHE}, {NOCACHE, .weight = 2}};

	(void)state;
	start(OPTS(.slots = 3), t);
	expect("run 2/1; run 0/1; run 1/1");
}

static void wide_task_is_not_passed(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE, .weight = 3},
		{.verdict = VX_V_NOCACHE, .cpus = 9, .weight = 2}, {NOCACHE, .weight = 1}};

	(void)state;
	start(OPTS(.slots = 2), t);
	expect("run 0/1"); /* 1 takes both slots, cut from 9; 2 would fit but waits behind it */
	say(VX_EV_EXITED, 0);
	expect("done 0 ok; run 1/1");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; run 2/1");
}

static void exclusive_and_too_big_run_alone(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE, .exclusive = true},
		{NOCACHE, .memory_bytes = 200}, {NOCACHE, .memory_bytes = 60},
		{NOCACHE, .memory_bytes = 60}, {NOCACHE}};

	(void)state;
	start(OPTS(.slots = 4, .memory_bytes = 100), t);
	expect("run 0/1");
	say(VX_EV_EXITED, 0);
	expect("done 0 ok; run 1/1");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; run 2/1");
	say(VX_EV_EXITED, 2);
	expect("done 2 ok; run 3/1; run 4/1");
}

static void skips_name_the_root(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE}, {.group = true, DEPS(0)}, {NOCACHE, DEPS(1)},
		{MISS, DEPS(2)}, {NOCACHE}, {.verdict = VX_V_LATE, DEPS(3, 4)}};

	(void)state;
	start(OPTS(.slots = 2), t);
	expect("run 0/1; run 4/1");
	fails(0);
	expect("done 0 failed; done 2 skipped by 0; done 3 skipped by 0; done 5 skipped by 0");
	say(VX_EV_EXITED, 4);
	expect("done 4 ok; end 1");
}

static void never_stops_dispatch(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE}, {NOCACHE, .retries = 3}, {NOCACHE},
		{NOCACHE, DEPS(0)}, {.verdict = VX_V_HIT}};

	(void)state;
	start(OPTS(.slots = 2, .policy = VX_CONTINUE_NEVER, .restore_lane = 1), t);
	expect("run 0/1; run 1/1; restore 4");
	fails(0);
	expect("done 0 failed; done 3 skipped by 0");
	fails(1); /* finishes its attempt, gets no other */
	expect("done 1 failed");
	say(VX_EV_RESTORED, 4);
	expect("done 4 hit; done 2 aborted; end 1");
}

static void always_runs_unsaved(void **state)
{
	const struct vx_core_task t[] = {
		{NOCACHE}, {MISS, DEPS(0)}, {.verdict = VX_V_LATE, DEPS(1)}};

	(void)state;
	start(OPTS(.slots = 1, .policy = VX_CONTINUE_ALWAYS), t);
	expect("run 0/1");
	fails(0);
	expect("done 0 failed; run 1/1 unsaved");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; key 2");
	keyed(2, VX_V_MISS);
	expect("run 2/1 unsaved");
	say(VX_EV_EXITED, 2);
	expect("done 2 ok; end 1");
}

static void hit_ignores_failed_upstream_until_damaged(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE}, {.verdict = VX_V_HIT, .cpus = 1, DEPS(0)},
		{.verdict = VX_V_HIT, .cpus = 1, DEPS(0)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("run 0/1; restore 1; restore 2");
	fails(0);
	expect("done 0 failed");
	say(VX_EV_RESTORED, 1);
	expect("done 1 hit");
	damaged(2);
	expect("done 2 skipped by 0; end 1");
}

static void retries_and_flaky(void **state)
{
	const struct vx_core_task t[] = {{MISS, .retries = 2}, {NOCACHE, .retries = 1}};

	(void)state;
	start(OPTS(.slots = 2), t);
	expect("run 0/1; run 1/1");
	fails(0);
	expect("retry 0/1; run 0/2");
	fails(1);
	expect("retry 1/1; run 1/2");
	fails(1);
	expect("done 1 failed");
	say(VX_EV_EXITED, 0);
	expect("save 0");
	say(VX_EV_CAPTURED, 0);
	expect("done 0 ok flaky");
	say(VX_EV_SETTLED, 0);
	expect("end 1");
}

static void lost_once_is_no_retry(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE}, {NOCACHE, .retries = 1}};

	(void)state;
	start(OPTS(.slots = 2), t);
	expect("run 0/1; run 1/1");
	say(VX_EV_LOST, 0);
	expect("retry 0/1; run 0/2");
	say(VX_EV_LOST, 0);
	expect("done 0 failed");
	say(VX_EV_LOST, 1);
	expect("retry 1/1; run 1/2");
	fails(1);
	expect("retry 1/2; run 1/3");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok flaky; end 1");
}

static void captured_releases_settled_ends(void **state)
{
	const struct vx_core_task t[] = {{MISS}, {MISS}, {NOCACHE, DEPS(0)}};

	(void)state;
	start(OPTS(.slots = 2, .save_lane = 1), t);
	expect("run 0/1; run 1/1");
	say(VX_EV_EXITED, 0);
	say(VX_EV_EXITED, 1);
	expect("save 0"); /* the other waits for the lane, its slot is free */
	say(VX_EV_CAPTURED, 0);
	expect("done 0 ok; run 2/1");
	say(VX_EV_EXITED, 2);
	expect("done 2 ok");
	say(VX_EV_SETTLED, 0);
	expect("save 1");
	/* could not be saved: no failure */
	vx_core_event(core, &(struct vx_core_event){.kind = VX_EV_SETTLED, .task = 1});
	expect("done 1 ok; end 0");
}

static void moved_inputs_spoil_what_follows(void **state)
{
	const struct vx_core_task t[] = {{MISS}, {.group = true, DEPS(0)}, {MISS, DEPS(1)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("run 0/1");
	say(VX_EV_EXITED, 0);
	expect("save 0");
	vx_core_event(
		core, &(struct vx_core_event){.kind = VX_EV_SETTLED, .task = 0, .moved = true});
	expect("done 0 ok; run 2/1 unsaved");
	say(VX_EV_EXITED, 2);
	expect("done 2 ok; end 0");
}

/* A server that is spoilt from the start spoils what runs beside it; a task, what comes after
 * it. */
static void spoilt_from_the_start(void **state)
{
	const struct vx_core_task t[] = {{.verdict = VX_V_NOCACHE, .persistent = true, .cpus = 1},
		{MISS, DEPS(0)}, {NOCACHE}, {MISS, DEPS(2)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("run 0/1");
	vx_core_event(
		core, &(struct vx_core_event){.kind = VX_EV_STARTED, .task = 0, .moved = true});
	expect("run 1/1 unsaved");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; stop 0 TERM; run 2/1");
	vx_core_event(core, &(struct vx_core_event){
				    .kind = VX_EV_EXITED, .task = 2, .ok = true, .moved = true});
	expect("done 2 ok; run 3/1 unsaved");
	say(VX_EV_EXITED, 3);
	expect("done 3 ok");
	fails(0);
	expect("done 0 ok; end 0");
}

static void key_that_fails(void **state)
{
	const struct vx_core_task t[] = {
		{.verdict = VX_V_FAILED}, {NOCACHE, DEPS(0)}, {.verdict = VX_V_LATE}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("done 0 failed; done 1 skipped by 0; key 2");
	keyed(2, VX_V_FAILED);
	expect("done 2 failed; end 1");
}

static void server_of_hits_is_not_started(void **state)
{
	const struct vx_core_task t[] = {{.verdict = VX_V_NOCACHE, .persistent = true, .cpus = 1},
		{.group = true, DEPS(0)}, {.verdict = VX_V_HIT, .cpus = 1, DEPS(1)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("restore 2");
	say(VX_EV_RESTORED, 2);
	expect("done 2 hit; done 0 not-started; end 0");
}

static void damaged_hit_starts_the_server(void **state)
{
	const struct vx_core_task t[] = {
		{.verdict = VX_V_NOCACHE, .persistent = true, .waits_ready = true, .cpus = 1},
		{.group = true, DEPS(0)}, {.verdict = VX_V_HIT, .cpus = 1, DEPS(1)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("restore 2");
	damaged(2);
	expect("run 0/1");
	say(VX_EV_STARTED, 0);
	expect("");
	say(VX_EV_READY, 0);
	expect("run 2/1"); /* in the slot that the server gave back */
	say(VX_EV_EXITED, 2);
	expect("stop 0 TERM; save 2");
	vx_core_event(core, &(struct vx_core_event){.kind = VX_EV_GRACE_OVER, .task = 0});
	expect("stop 0 KILL");
	fails(0);
	say(VX_EV_SETTLED, 2);
	expect("done 0 ok; done 2 ok; end 0");
}

static void requested_server_keeps_the_run(void **state)
{
	const struct vx_core_task t[] = {
		{.verdict = VX_V_NOCACHE, .persistent = true, .requested = true, .cpus = 1},
		{NOCACHE, DEPS(0)}, {.verdict = VX_V_NOCACHE, .persistent = true, .cpus = 1},
		{.group = true, .requested = true, DEPS(2)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("run 0/1");
	say(VX_EV_STARTED, 0);
	expect("run 1/1");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; run 2/1"); /* requested by its group */
	say(VX_EV_STARTED, 2);
	expect("");
	fails(0); /* one exits: the foreground is over, and a bad exit after ready fails the run */
	expect("done 0 failed; stop 2 TERM");
	fails(2);
	expect("done 2 ok; end 1");
}

static void server_that_dies_early(void **state)
{
	const struct vx_core_task t[] = {{.verdict = VX_V_NOCACHE,
						 .persistent = true,
						 .waits_ready = true,
						 .cpus = 1,
						 .retries = 5},
		{NOCACHE, DEPS(0)}};

	(void)state;
	start(OPTS(.slots = 1), t);
	expect("run 0/1");
	say(VX_EV_STARTED, 0);
	say(VX_EV_EXITED, 0); /* well, but before it was ready */
	expect("done 0 failed; done 1 skipped by 0; end 1");
}

static void requested_server_lost_for_good(void **state)
{
	const struct vx_core_task t[] = {{.verdict = VX_V_NOCACHE,
						 .persistent = true,
						 .requested = true,
						 .waits_ready = true,
						 .cpus = 1},
		{.verdict = VX_V_NOCACHE, .persistent = true, .requested = true, .cpus = 1}};

	(void)state;
	start(OPTS(.slots = 2), t);
	expect("run 0/1; run 1/1");
	say(VX_EV_STARTED, 1);
	say(VX_EV_LOST, 0);
	expect("retry 0/1; run 0/2");
	say(VX_EV_LOST, 0); /* one of them is over: the foreground, too */
	expect("done 0 failed; stop 1 TERM");
	say(VX_EV_EXITED, 1);
	expect("done 1 ok; end 1");
}

static void first_signal_then_grace(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE, .retries = 2},
		{.verdict = VX_V_NOCACHE, .persistent = true, .requested = true, .cpus = 1}, {MISS},
		{MISS}, {NOCACHE, DEPS(0)}, {.verdict = VX_V_HIT}, {.verdict = VX_V_LATE}};

	(void)state;
	start(OPTS(.slots = 4, .save_lane = 1), t);
	expect("run 0/1; run 1/1; run 2/1; run 3/1; restore 5; key 6");
	say(VX_EV_STARTED, 1);
	say(VX_EV_EXITED, 2);
	say(VX_EV_EXITED, 3);
	expect("save 2");
	say(VX_EV_INTERRUPT, VX_CORE_ALL);
	/* 3: its save was queued and is dropped */
	expect("stop 0 INT; stop 1 INT; done 3 ok; done 4 aborted");
	keyed(6, VX_V_MISS);
	say(VX_EV_RESTORED, 5);
	expect("done 6 aborted; done 5 hit");
	fails(1);
	expect("done 1 aborted");
	say(VX_EV_GRACE_OVER, VX_CORE_ALL);
	expect("stop 0 KILL");
	say(VX_EV_EXITED, 0);
	expect("done 0 aborted");
	say(VX_EV_CAPTURED, 2);
	expect("done 2 ok");
	say(VX_EV_SETTLED, 2);
	expect("end 130");
}

static void second_signal_is_now(void **state)
{
	const struct vx_core_task t[] = {{NOCACHE}};

	(void)state;
	start(OPTS(.slots = 4), t);
	expect("run 0/1");
	vx_core_event(core, &(struct vx_core_event){.kind = VX_EV_INTERRUPT, .signal = SIGHUP});
	expect("stop 0 TERM");
	say(VX_EV_STARTED, 0); /* it had been under way */
	say(VX_EV_INTERRUPT, VX_CORE_ALL);
	expect("stop 0 KILL");
	say(VX_EV_LOST, 0);
	expect("done 0 aborted; end 129");
}

static void counts(void **state)
{
	const struct vx_core_task t[] = {{.verdict = VX_V_NOCACHE, .cpus = 2}, {NOCACHE}, {NOCACHE},
		{.verdict = VX_V_HIT}, {.group = true}};
	struct vx_core_counts n;

	(void)state;
	start(OPTS(.slots = 3), t);
	decisions();
	vx_core_counts(core, &n);
	assert_int_equal(n.total, 4);
	assert_int_equal(n.running, 2);
	assert_int_equal(n.slots_used, 3);
	assert_int_equal(n.ready, 1);
	assert_int_equal(n.restoring, 1);
	say(VX_EV_RESTORED, 3);
	fails(0);
	decisions();
	vx_core_counts(core, &n);
	assert_int_equal(n.done, 2);
	assert_int_equal(n.hits, 1);
	assert_int_equal(n.failed, 1);
	assert_int_equal(n.executed, 1);
}

#define T(f) cmocka_unit_test_teardown(f, end)

int main(void)
{
	const struct CMUnitTest tests[] = {T(nothing), T(longest_path_first),
		T(weight_then_declaration), T(wide_task_is_not_passed),
		T(exclusive_and_too_big_run_alone), T(skips_name_the_root), T(never_stops_dispatch),
		T(always_runs_unsaved), T(hit_ignores_failed_upstream_until_damaged),
		T(retries_and_flaky), T(lost_once_is_no_retry), T(captured_releases_settled_ends),
		T(moved_inputs_spoil_what_follows), T(spoilt_from_the_start), T(key_that_fails),
		T(server_of_hits_is_not_started), T(damaged_hit_starts_the_server),
		T(requested_server_keeps_the_run), T(server_that_dies_early),
		T(requested_server_lost_for_good), T(first_signal_then_grace),
		T(second_signal_is_now), T(counts)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
