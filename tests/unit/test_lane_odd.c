/* The lanes with outputs that are odd: names that are ours, very many, far times; and what is said
 * when nothing can be restored. */
#include "lanetest.h"

/* A file of the name .git is never looked at, as the directory is not: what holds one is saved and
 * restored beside it. */
static void test_own_names(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/** made/.vx");
	assert_int_equal(
		lt_sh(&t,
			"mkdir -p p/a/dist/sub/.vx p/a/made && echo x >p/a/dist/x && echo gitdir >p/a/dist/.git && ln -s x p/a/dist/sub/.git && "
			"echo y >p/a/dist/sub/.vx/y && echo z >p/a/made/.vx"),
		0);
	char *before = lt_tree(vxt_path(t.root, "p"));
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(e.n_outputs, 1);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && e.up_to_date);
	assert_int_equal(lt_sh(&t, "rm p/a/dist/x"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t.root, "p"), before);
	lt_clean(&t, &o, &e);
	assert_true(e.ok);
	assert_int_equal(
		lt_sh(&t,
			"test -f p/a/dist/.git && test -h p/a/dist/sub/.git && test -f p/a/dist/sub/.vx/y && test -f p/a/made/.vx && test ! -e p/a/dist/x"),
		0);
	free(before);
	lt_end(&t);
}

/* One look tells that there is nothing to clean; what it cannot tell is left to the lane. */
static void test_clean_already(void **state)
{
	(void)state;
	static const struct {
		const char *outs, *make;
		bool nothing;
	} v[] = {
		{"dist/**", "mkdir -p p/a", true},
		{"dist/**", "true", true}, /* the project is there by now */
		{"dist/** out lib/*.js made", "true", true},
		{"one two three four five", "true", false}, /* too many places */
		{"*.js", "true", false},
		{"dist/** out", "echo 1 >p/a/out", false},
		{"dist/**", "mkdir p/a/dist", false},
		{"dist/sub/x", "true", true},
		{"dist/**", "rmdir p/a/dist && ln -s nowhere p/a/dist", false},
		{"lib/x/**", "ln -s nowhere p/a/lib", false}, /* the way there passes a link */
		{"gone/x/**", "mv p/a p/b && ln -s b p/a", false},
	};
	struct lt t = {0};
	lt_begin(&t);
	for (size_t i = 0; i < sizeof v / sizeof *v; i++) {
		struct vx_outputs o = lt_outputs(&t, "p/a", v[i].outs);
		assert_int_equal(lt_sh(&t, v[i].make), 0);
		if (vx_lane_clean_already(t.lane, &o) != v[i].nothing)
			fail_msg("%s after %s", v[i].outs, v[i].make);
	}
	lt_end(&t);
}

/* Headers count as well: what is small in bytes and large in number is not held in memory. */
static void test_many_small(void **state)
{
	(void)state;
	enum { N = 5000 };
	struct lt t = {0};
	struct vx_lane_event e;
	struct vx_lane_stats st;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_int_equal(
		lt_sh(&t,
			"mkdir -p p/a/dist/d && cd p/a/dist/d && seq 5000 | split -l 1 -a 4 - a-rather-long-name-since-long-names-take-records-of-their-own-"),
		0);
	char *before = lt_tree(vxt_path(t.root, "p"));
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(e.n_outputs, N);
	vx_lane_stats(t.lane, &st);
	assert_true(st.steps[VX_IO_OPEN] < 100);
	assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t.root, "p"), before);
	free(before);
	lt_end(&t);
}

/* Times that do not fit into 64 bits of nanoseconds. */
static void test_far_times(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_int_equal(
		lt_sh(&t,
			"mkdir -p p/a/dist && echo x >p/a/dist/x && touch -d '2400-01-01' p/a/dist/x"),
		0);
	if (lt_sh(&t, "test $(stat -c %Y p/a/dist/x) -gt 13000000000")) {
		lt_end(&t);
		vxt_skip("this file system does not reach the year 2400");
	}
	assert_true(lt_save(&t, "k", &o, &e));
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && e.up_to_date);
	assert_int_equal(lt_sh(&t, "rm p/a/dist/x"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	/* restored now */
	assert_int_equal(lt_sh(&t, "test $(stat -c %Y p/a/dist/x) -lt 9000000000"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && e.up_to_date);
	lt_end(&t);
}

/* What keeps one restore from its work keeps all: it is told once, and does not hush what keeps a
 * save from its own. */
static void test_told_once(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_int_equal(lt_sh(&t, "mkdir -p p/a/dist && echo x >p/a/dist/x"), 0);
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(lt_sh(&t, "rm -rf p/a/dist .vx/stage && : >.vx/stage"), 0);
	for (int i = 0; i < 3; i++) {
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_false(e.ok);
		assert_int_equal(e.text[0] != 0, i == 0);
	}
	assert_int_equal(lt_sh(&t, "rm .vx/stage; rm -rf p/a/dist; mkfifo p/a/dist"), 0);
	assert_false(lt_save(&t, "k2", &o, &e));
	assert_true(e.text[0]);
	lt_end(&t);
}

/* Where a file is to be, a directory holds what is no output of the task: that is nobody's to
 * remove. */
static void test_directory_in_the_way(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/** !dist/f/keep");
	assert_int_equal(
		lt_sh(&t, "mkdir -p p/a/dist && echo x >p/a/dist/f && echo y >p/a/dist/g"), 0);
	char *before = lt_tree(vxt_path(t.root, "p"));
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(
		lt_sh(&t,
			"rm p/a/dist/f && mkdir -p p/a/dist/f/sub/deep && echo z >p/a/dist/f/sub/z && echo mine >p/a/dist/f/keep"),
		0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_false(e.ok);
	if (!strstr(e.text, "p/a/dist/f is a directory"))
		fail_msg("%s", e.text);
	assert_int_equal(lt_sh(&t, "test $(cat p/a/dist/f/keep) = mine"), 0);
	o.additive = true;
	assert_int_equal(
		lt_sh(&t,
			"rm p/a/dist/f/keep && mkdir -p p/a/dist/f/sub && echo others >p/a/dist/f/sub/z"),
		0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_false(e.ok);
	assert_int_equal(lt_sh(&t, "test $(cat p/a/dist/f/sub/z) = others"), 0);
	o.additive = false;
	assert_int_equal(lt_sh(&t, "mkdir -p p/a/dist/f/sub/void/void"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t.root, "p"), before);
	assert_int_equal(lt_count(&t, ".vx/stage"), 0);
	free(before);
	lt_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_names),
		cmocka_unit_test(test_clean_already),
		cmocka_unit_test(test_many_small),
		cmocka_unit_test(test_far_times),
		cmocka_unit_test(test_told_once),
		cmocka_unit_test(test_directory_in_the_way),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
