/* Others at work in the store and in the outputs at the worst moment: between two steps of the lane
 * a hook does what another process might. */
#include "lanetest.h"

#include "vx/fd.h"
#include "vx/state.h"

#include "vx/assert.h"
#include "vx/json.h"
#include "vx/strs.h"

/* What is done behind the lane's back, after a step that it fits; once. */
static struct {
	bool (*fits)(const struct vx_io_step *s);
	/* in the root; %s: the artifact or log that the step concerned, as a path below
	 * .vx/cache/v1/a */
	const char *command;
	const char *root;
	struct vx_lane *give_up; /* instead of the command */
	atomic_bool armed;
} meddle;

struct meddler {
	struct vx_io io;
	struct vx_io *inner;
};

static void after(const struct vx_io_step *s)
{
	char cmd[4 * PATH_MAX];
	if (!atomic_load(&meddle.armed) || s->res < 0 || !meddle.fits(s) ||
		!atomic_exchange(&meddle.armed, false))
		return;
	if (meddle.give_up) {
		vx_lane_give_up(meddle.give_up);
		return;
	}
	snprintf(cmd, sizeof cmd, "cd '%s' && f=.vx/cache/v1/a/[0-9a-f]*/%s && { %s ; }",
		meddle.root, s->op == VX_IO_RENAME ? s->path2 : "", meddle.command);
	assert_int_equal(system(cmd), 0);
}

static void meddler_run(struct vx_io *io, struct vx_io_chain *chains, uint32_t n)
{
	struct vx_io *inner = ((struct meddler *)io)->inner;
	inner->run(inner, chains, n);
	for (uint32_t i = 0; i < n; i++)
		for (uint32_t k = 0; k < chains[i].n; k++)
			after(&chains[i].steps[k]);
}

static void meddler_sys(struct vx_io *io, struct vx_io_step *s)
{
	struct vx_io *inner = ((struct meddler *)io)->inner;
	inner->sys(inner, s);
	after(s);
}

static void meddler_free(struct vx_io *io)
{
	vx_io_free(((struct meddler *)io)->inner);
	free(io);
}

static struct vx_io *meddler_new(void *arg, char *ret_name, size_t cap)
{
	struct meddler *m = vx_xcalloc(1, sizeof *m);
	(void)arg;
	m->inner = vx_io_new(ret_name, cap);
	m->io = (struct vx_io){
		.name = "meddler", .run = meddler_run, .sys = meddler_sys, .free = meddler_free};
	return &m->io;
}

static void arm(const struct lt *t, bool (*fits)(const struct vx_io_step *s), const char *command)
{
	meddle.root = t->root;
	meddle.fits = fits;
	meddle.command = command;
	atomic_store(&meddle.armed, true);
}

static void begin(struct lt *t)
{
	*t = (struct lt){.new_io = meddler_new};
	atomic_store(&meddle.armed, false);
	lt_begin(t);
	assert_int_equal(
		lt_sh(t,
			"mkdir -p p/a/dist/sub && echo one2 >p/a/dist/one && echo two >p/a/dist/sub/two && ln -s one p/a/dist/link"),
		0);
}

static uint32_t problems(struct lt *t)
{
	struct vx_json *j;
	struct vx_err err = {0};
	uint32_t n;
	assert_int_equal(vx_store_verify(t->store, &j, &n, &err), 0);
	vx_json_free(j);
	return n;
}

/* Makes the artifact too large for a segment. */
static void enlarge(struct lt *t)
{
	assert_int_equal(lt_sh(t, "head -c 100000 /dev/urandom >p/a/dist/noise"), 0);
}

static bool renamed_artifact(const struct vx_io_step *s)
{
	return s->op == VX_IO_RENAME && vx_ends_with(s->path2, VX_SUFFIX_TAR);
}

static bool renamed_log(const struct vx_io_step *s)
{
	return s->op == VX_IO_RENAME && vx_ends_with(s->path2, VX_SUFFIX_LOG);
}

/* A prune in another process takes what has been put in place and is not committed yet: there is no
 * row without its files. */
static void test_pruned_before_commit(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	static char noise[200000];
	for (size_t i = 0; i < sizeof noise; i++)
		noise[i] = (char)(rand() % 251);
	begin(&t);
	enlarge(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	for (int large = 0; large < 2; large++) {
		for (int log = 0; log < 2; log++) {
			struct vx_save_req r = {.id = "a#build",
				.key = lt_key("k"),
				.outputs = o,
				.log = noise,
				.log_bytes = sizeof noise};
			lt_reopen(&t); /* what is said once is said anew */
			assert_int_equal(lt_sh(&t, "find .vx/cache/v1/a -type f -delete"), 0);
			arm(&t, log ? renamed_log : renamed_artifact, "rm -f $f");
			if (lt_save_req(&t, &r, &e))
				fail_msg("saved (large %d, log %d, %s)", large, log,
					atomic_load(&meddle.armed) ? "not met" : "met");
			assert_non_null(strstr(e.text, "removed meanwhile"));
			assert_false(atomic_load(&meddle.armed));
			assert_int_equal(problems(&t), 0);
			assert_false(lt_restore(&t, "k", &o, &e));
		}
		assert_int_equal(lt_sh(&t, "head -c 5000000 /dev/urandom >p/a/dist/big"), 0);
	}
	lt_end(&t);
}

static bool reads(const struct vx_io_step *s, const char *suffix)
{
	char proc[48], path[PATH_MAX] = "";
	snprintf(proc, sizeof proc, "/proc/self/fd/%d", s->fd);
	return s->op == VX_IO_READ && s->fd >= 0 && readlink(proc, path, sizeof path - 1) > 0 &&
	       vx_ends_with(path, suffix);
}

static bool read_artifact(const struct vx_io_step *s)
{
	return reads(s, VX_SUFFIX_TAR);
}

static const char damage[] =
	"for f in .vx/cache/v1/a/*/*; do cp -p $f good; cp $f bad; chmod u+w bad; truncate -s 3 bad; printf 'no' >>bad; truncate -s $(stat -c %s $f) bad; mv bad $f; done";

/* While an artifact is found damaged another process saves it anew: the new one stays, file and
 * row. */
static void test_saved_anew_while_dropped(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	begin(&t);
	enlarge(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_true(lt_save(&t, "k", &o, &e));
	char *before = lt_tree(vxt_path(t.root, "p"));
	assert_int_equal(lt_sh(&t, damage), 0);
	assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
	arm(&t, read_artifact, "for f in .vx/cache/v1/a/*/*; do mv -f good $f; done");
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_false(e.ok);
	assert_non_null(strstr(e.text, "damaged"));
	assert_false(atomic_load(&meddle.armed));
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t.root, "p"), before);
	assert_int_equal(problems(&t), 0);
	free(before);
	lt_end(&t);
}

/* Two keys with the same outputs share an artifact; when it is damaged both entries go. */
static void test_shared_artifact_damaged(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	begin(&t);
	enlarge(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_true(lt_save(&t, "k", &o, &e));
	assert_true(lt_save(&t, "l", &o, &e));
	assert_int_equal(lt_count(&t, ".vx/cache/v1/a"), 2); /* a directory and a file */
	assert_int_equal(lt_sh(&t, damage), 0);
	assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
	assert_int_equal(problems(&t), 1);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_false(e.ok);
	assert_int_equal(problems(&t), 0);
	assert_false(lt_restore(&t, "l", &o, &e));
	lt_end(&t);
}

static bool read_output(const struct vx_io_step *s)
{
	return reads(s, "/p/a/dist/one");
}

/* Outputs that change while they are being saved: what was read of them is no result. */
static void test_changed_while_saved(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	static const char *const changes[] = {"echo 2 >>p/a/dist/one", "rm p/a/dist/one",
		"chmod 700 p/a/dist/one", "cp -p p/a/dist/one x && mv x p/a/dist/one",
		"echo 22 >p/a/dist/sub/two", "rm -r p/a/dist/sub", "ln -sfn two p/a/dist/link",
		"rm -rf q && cp -a p/a/dist/sub q && rm -r p/a/dist/sub && ln -s ../../../q p/a/dist/sub",
		"rm -rf q && mv p/a q && ln -s ../q p/a"};
	begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	for (size_t i = 0; i < VX_ARRAY_LEN(changes); i++) {
		lt_reopen(&t);
		assert_int_equal(
			lt_sh(&t,
				"rm -rf p q && mkdir -p p/a/dist/sub && echo one >p/a/dist/one && echo two >p/a/dist/sub/two && ln -s one p/a/dist/link"),
			0);
		arm(&t, read_output, changes[i]);
		if (lt_save(&t, "k", &o, &e) || atomic_load(&meddle.armed))
			fail_msg("%s: saved", changes[i]);
		assert_true(e.text[0]);
		assert_int_equal(problems(&t), 0);
		assert_false(lt_restore(&t, "k", &o, &e));
		assert_int_equal(lt_sh(&t, "test -z \"$(find .vx/cache/v1/tmp -type f)\""), 0);
	}
	lt_end(&t);
}

static bool placed(const struct vx_io_step *s)
{
	return s->op == VX_IO_RENAME && strcmp(s->path2, "one") == 0;
}

/* The tree that all saves of a test start from: saved under "k". Returns lt_tree's text of p. */
static char *begin_saved(struct lt *t, const char *more, const char *globs, struct vx_outputs *ret)
{
	struct vx_lane_event e;
	begin(t);
	assert_int_equal(lt_sh(t, more), 0);
	*ret = lt_outputs(t, "p/a", globs);
	assert_true(lt_save(t, "k", ret, &e));
	return lt_tree(vxt_path(t->root, "p"));
}

/* Restores while `command` is done behind it, after the first step that fits. */
static void restore_meddled(struct lt *t, bool (*fits)(const struct vx_io_step *s),
	const char *command, const struct vx_outputs *o)
{
	struct vx_lane_event e;
	arm(t, fits, command);
	assert_true(lt_restore(t, "k", o, &e));
	assert_true(e.ok);
	assert_false(atomic_load(&meddle.armed));
}

/* Somebody writes to an output that has just been restored: what is there then is not taken for the
 * entry's for ever. */
static void test_changed_after_restore(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	static const char *const changes[] = {"echo 11 >p/a/dist/one", "echo bad >p/a/dist/one",
		"chmod 600 p/a/dist/one", "ln -sf sub/two p/a/dist/one",
		"rm p/a/dist/link; ln -s two p/a/dist/link",
		"rm p/a/dist/sub/two; echo x >p/a/dist/sub/three"};
	struct vx_outputs o;
	char *before = begin_saved(&t, "true", "dist/**", &o);
	for (size_t i = 0; i < VX_ARRAY_LEN(changes); i++) {
		assert_int_equal(lt_sh(&t, "rm p/a/dist/one"), 0);
		restore_meddled(&t, placed, changes[i], &o);
		assert_true(lt_restore(&t, "k", &o, &e));
		if (!e.ok || e.up_to_date)
			fail_msg("%s: taken for what was saved", changes[i]);
		lt_same_tree(vxt_path(t.root, "p"), before);
	}
	free(before);
	lt_end(&t);
}

static bool placed_tree(const struct vx_io_step *s)
{
	return s->op == VX_IO_RENAME && strcmp(s->path2, "dist") == 0;
}

/* The same where nothing was there, and what is there afterwards is known from its making. */
static void test_changed_after_tree(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	static const char *const changes[] = {"echo 11 >p/a/dist/one", "echo bad >p/a/dist/one",
		"chmod 600 p/a/dist/one", "echo x >p/a/dist/new", "mkdir p/a/dist/void",
		"rm p/a/dist/sub/two", "echo x >p/a/dist/sub/new",
		"rm p/a/dist/link; ln -s two p/a/dist/link", "rm -r p/a/dist/sub",
		"mv p/a/dist/sub p/a/dist/bus", "mkdir -p p/a/lib && echo x >p/a/lib/x",
		"rm -r p/a/dist && mkdir p/a/dist"};
	struct vx_outputs o;
	char *before = begin_saved(&t, "true", "dist/** lib/**", &o);
	for (size_t i = 0; i < VX_ARRAY_LEN(changes); i++) {
		assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
		restore_meddled(&t, placed_tree, changes[i], &o);
		assert_true(lt_restore(&t, "k", &o, &e));
		if (!e.ok || e.up_to_date)
			fail_msg("%s: taken for what was saved", changes[i]);
		assert_int_equal(lt_sh(&t, "rm -rf p/a/lib"), 0);
		lt_same_tree(vxt_path(t.root, "p"), before);
		assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_true(e.ok && !e.up_to_date);
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_true(e.ok && e.up_to_date);
	}
	free(before);
	lt_end(&t);
}

static atomic_int pieces;

static bool wrote_piece(const struct vx_io_step *s)
{
	bool piece = s->op == VX_IO_WRITE && s->n > 10000;
	atomic_fetch_add(&pieces, piece);
	return piece;
}

/* The grace is over while something large is being saved. */
static void test_given_up(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_int_equal(lt_sh(&t, "head -c 30000000 /dev/urandom >p/a/dist/big"), 0);
	atomic_store(&pieces, 0);
	meddle.give_up = t.lane;
	arm(&t, wrote_piece, NULL);
	assert_false(lt_save(&t, "k", &o, &e));
	assert_non_null(strstr(e.text, "within the grace"));
	meddle.give_up = NULL;
	assert_true(atomic_load(&pieces) > 0);
	assert_int_equal(
		lt_sh(&t, "test -z \"$(find .vx/cache/v1/tmp .vx/cache/v1/[as] -type f)\""), 0);
	assert_int_equal(problems(&t), 0);
	lt_end(&t);
}

static bool staged(const struct vx_io_step *s)
{
	return s->op == VX_IO_TIMES;
}

/* Where there was no directory when a restore was planned there is one when it comes to it: of
 * another task that is restored, or that runs in it. */
static void test_directory_came_between(void **state)
{
	(void)state;
	struct lt t;
	static const char *const comes[] = {"mkdir p/a/dist && stat -c %i p/a/dist >inode",
		"mkdir -p p/a/dist/other && stat -c %i p/a/dist >inode && echo x >p/a/dist/other/x && ln -s x p/a/dist/one",
		"mkdir -p p/a/dist/sub/deep && stat -c %i p/a/dist >inode && echo x >p/a/dist/sub/x && echo x >p/a/dist/sub/two"};
	static const char *const kept[] = {
		"true", "test $(cat p/a/dist/other/x) = x", "test $(cat p/a/dist/sub/x) = x"};
	struct vx_outputs o;
	char *before = begin_saved(&t,
		"mkdir -p p/a/dist/sub/deep p/a/dist/void && echo d >p/a/dist/sub/deep/d && chmod 750 p/a/dist/void",
		"dist/one dist/link dist/sub/two dist/sub/deep/** dist/void/**", &o);
	for (size_t i = 0; i < VX_ARRAY_LEN(comes); i++) {
		assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
		restore_meddled(&t, staged, comes[i], &o);
		if (lt_sh(&t, kept[i]) || lt_sh(&t, "test $(cat inode) = $(stat -c %i p/a/dist)"))
			fail_msg("%s: is gone", comes[i]);
		assert_int_equal(lt_sh(&t, "rm -rf p/a/dist/other p/a/dist/sub/x"), 0);
		lt_same_tree(vxt_path(t.root, "p"), before);
		assert_int_equal(lt_count(&t, ".vx/stage"), 0);
	}
	free(before);
	lt_end(&t);
}

/* The same after a crash in the middle of it: what is still staged goes where the rest is, beside
 * what others have made. */
static void test_merge_recovered(void **state)
{
	(void)state;
	struct lt t;
	struct vx_fail f = {0};
	struct vx_plan_ops ops = {0};
	struct vx_digest secret;
	begin(&t);
	lt_close(&t);
	assert_int_equal(
		lt_sh(&t,
			"rm -r p && mkdir -p p/a/dist/sub p/a/dist/other .vx/stage/1-0/0/sub/deep .vx/stage/1-0/0/void && echo moved >p/a/dist/sub/moved && "
			"echo x >p/a/dist/other/x && echo left >.vx/stage/1-0/0/sub/left && echo d >.vx/stage/1-0/0/sub/deep/d && "
			"echo file >.vx/stage/1-0/1 && echo old >p/a/file"),
		0);
	vx_ops_add(&ops, OP_PLACE, "p/a/gone", "7", S_IFDIR); /* placed before the crash */
	vx_ops_add(&ops, OP_PLACE, "p/a/dist", "0", S_IFDIR);
	vx_ops_add(&ops, OP_PLACE, "p/a/file", "1", 0);
	struct vx_io *io = vx_io_blocking_new();
	int root = vx_open(AT_FDCWD, t.root, O_RDONLY | O_DIRECTORY, 0);
	int own = vx_state_dir(root, true);
	assert_int_equal(lt_sh(&t, "mkdir -p .vx/journal"), 0);
	struct vx_journal j = {.io = io,
		.stages_fd = vx_open(own, "stage", O_RDONLY | O_DIRECTORY, 0),
		.journals_fd = vx_open(own, "journal", O_RDONLY | O_DIRECTORY, 0),
		.secret = &secret,
		.stage = "1-0"};
	assert_int_equal(vx_state_key(own, true, &secret), 0);
	assert_int_equal(vx_journal_write(&j, &ops, &f), 0);
	vx_close(j.stages_fd);
	vx_close(j.journals_fd);
	vx_close(own);
	assert_int_equal(vx_lane_recover(t.root, NULL), 0);
	assert_int_equal(
		lt_sh(&t,
			"test \"$(cd p/a && cat dist/sub/moved dist/other/x dist/sub/left dist/sub/deep/d file | tr '\\n' ' ')\" = 'moved x left d file ' && "
			"test -d p/a/dist/void && test -z \"$(find .vx/stage .vx/journal -mindepth 1)\""),
		0);
	vx_close(root);
	vx_io_free(io);
	free(ops.v);
	lt_open(&t);
	lt_end(&t);
}

/* The project's directory gave way to a link: its outputs are not taken for none. */
static void test_base_behind_link(void **state)
{
	(void)state;
	struct lt t;
	struct vx_lane_event e;
	begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_int_equal(lt_sh(&t, "mv p q && ln -s q p"), 0);
	assert_false(lt_save(&t, "k", &o, &e));
	assert_non_null(strstr(e.text, "p/a"));
	assert_non_null(strstr(e.text, "link"));
	assert_int_equal(lt_sh(&t, "rm p && mkdir p && ln -s ../q/a p/a"), 0);
	lt_reopen(&t);
	assert_false(lt_save(&t, "k", &o, &e));
	assert_non_null(strstr(e.text, "p/a"));
	assert_int_equal(lt_sh(&t, "rm -r p && mkdir -p p/a"), 0);
	assert_true(lt_save(&t, "k", &o, &e)); /* nothing at all is an outcome */
	assert_int_equal(e.n_outputs, 0);
	lt_end(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_pruned_before_commit),
		cmocka_unit_test(test_saved_anew_while_dropped),
		cmocka_unit_test(test_shared_artifact_damaged),
		cmocka_unit_test(test_changed_while_saved),
		cmocka_unit_test(test_changed_after_restore),
		cmocka_unit_test(test_changed_after_tree),
		cmocka_unit_test(test_given_up),
		cmocka_unit_test(test_directory_came_between),
		cmocka_unit_test(test_merge_recovered),
		cmocka_unit_test(test_base_behind_link),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
