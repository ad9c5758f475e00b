/* The lanes from outside: what is saved comes back exactly, whatever lies in the way. */
#include "lanetest.h"

#include <sys/time.h>

static void make_dist(struct lt *t)
{
	assert_int_equal(
		lt_sh(t,
			"mkdir -p p/a/dist/sub/deep p/a/dist/empty p/a/src && echo one >p/a/dist/one && echo two >p/a/dist/sub/two && : >p/a/dist/nil && "
			"head -c 300000 /dev/urandom >p/a/dist/sub/deep/blob && ln -s ../one p/a/dist/sub/link && ln -s /nowhere p/a/dist/dangling && "
			"chmod 755 p/a/dist/one && chmod 600 p/a/dist/sub/two && chmod 700 p/a/dist/sub && echo src >p/a/src/x && "
			"touch -h -d '2001-02-03 04:05:06.789012345' p/a/dist/sub/link p/a/dist/sub/two && touch -d '1960-01-01 00:00:00.5' p/a/dist/nil"),
		0);
}

static void test_round_trip(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	make_dist(&t);
	char *before = lt_tree(vxt_path(t.root, "p"));
	assert_true(lt_save(&t, "k1", &o, &e));
	assert_int_equal(e.n_outputs, 7);
	assert_true(e.bytes > 300000);
	/* in place: nothing is written */
	assert_true(lt_restore(&t, "k1", &o, &e));
	assert_true(e.ok && e.up_to_date);
	assert_int_equal(e.log_bytes, 3);
	assert_memory_equal(e.log, "log", 3);
	/* all gone */
	lt_reopen(&t);
	assert_int_equal(lt_sh(&t, "rm -rf p/a/dist"), 0);
	assert_true(lt_restore(&t, "k1", &o, &e));
	assert_true(e.ok && !e.up_to_date);
	lt_same_tree(vxt_path(t.root, "p"), before);
	assert_true(lt_restore(&t, "k1", &o, &e));
	assert_true(e.ok && e.up_to_date);
	/* in parts: changed, removed, added, swapped kinds */
	assert_int_equal(
		lt_sh(&t,
			"cd p/a/dist && echo stray >stray && mkdir -p more/stray && : >more/stray/x && rm one && ln -s /etc/passwd one && echo 2 >sub/two && "
			"rm -r empty && rm sub/link && mkdir sub/link && : >sub/link/file"),
		0);
	assert_true(lt_restore(&t, "k1", &o, &e));
	assert_true(e.ok && !e.up_to_date);
	lt_same_tree(vxt_path(t.root, "p"), before);
	assert_int_equal(lt_count(&t, ".vx/stage"), 0);
	assert_int_equal(lt_count(&t, ".vx/journal"), 0);
	assert_false(lt_restore(&t, "other", &o, &e));
	free(before);
	lt_end(&t);
}

/* Forged times, swapped directories: seen. */
static void test_forgeries(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	static const char *const forge[] = {
		/* same size, same mtime */
		"cp -p p/a/dist/one p/ref && echo ONE >p/a/dist/one && touch -r p/ref p/a/dist/one",
		/* copies with the times kept */
		"cp -rp p/a/dist p/copy && rm -r p/a/dist && mv p/copy p/a/dist",
		/* every stat below is equal */
		"mv p/a/dist p/a/real && ln -s real p/a/dist",
		"chmod 640 p/a/dist/one",
		"touch p/a/dist/zzz",
		"mkdir p/a/dist/newdir",
		"rm p/a/dist/sub/link",
		"ln p/a/dist/one p/hard && echo 123 >p/hard", /* through a hard link */
		"rm -r p/a/dist && echo file >p/a/dist",
	};
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	for (size_t i = 0; i < sizeof forge / sizeof *forge; i++) {
		assert_int_equal(lt_sh(&t, "rm -rf p"), 0);
		make_dist(&t);
		char *before = lt_tree(vxt_path(t.root, "p/a/dist"));
		assert_true(lt_save(&t, "k", &o, &e));
		assert_int_equal(lt_sh(&t, forge[i]), 0);
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_true(e.ok);
		lt_same_tree(vxt_path(t.root, "p/a/dist"), before);
		free(before);
	}
	/* The copied tree is equal in content: nothing was written. And a hard link was replaced,
	 * not written through. */
	assert_int_equal(lt_sh(&t, "rm -rf p"), 0);
	make_dist(&t);
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(
		lt_sh(&t, "cp -a p/a/dist p/copy && rm -r p/a/dist && mv p/copy p/a/dist"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && e.up_to_date && e.bytes == 0);
	lt_end(&t);
}

static int moved(void *arg, char *what, size_t cap)
{
	snprintf(what, cap, "%s", (const char *)arg);
	return 1;
}

static void test_moved_inputs(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	make_dist(&t);
	struct vx_save_req r = {.task = 1,
		.id = "a#build",
		.key = lt_key("k"),
		.outputs = lt_outputs(&t, "p/a", "dist/**"),
		.recheck = moved,
		.arg = (void *)(uintptr_t) "p/a/src/x"};
	assert_false(lt_save_req(&t, &r, &e));
	assert_true(e.moved);
	assert_non_null(strstr(e.text, "p/a/src/x"));
	assert_false(lt_restore(&t, "k", &r.outputs, &e));
	assert_int_equal(
		lt_sh(&t, "test -z \"$(find .vx/cache/v1/[as] .vx/cache/v1/tmp -type f)\""), 0);
	lt_end(&t);
}

static void test_no_outputs(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs none = {.dir = "p/a"}, some = lt_outputs(&t, "p/a", "dist/**");
	assert_int_equal(lt_sh(&t, "mkdir -p p/a"), 0);
	assert_true(lt_save(&t, "k", &none, &e));
	assert_int_equal(e.bytes, 0);
	assert_true(lt_restore(&t, "k", &none, &e));
	assert_true(e.ok && e.up_to_date);
	/* declared, but none were made: a hit takes away what is there */
	assert_true(lt_save(&t, "k2", &some, &e));
	assert_true(lt_restore(&t, "k2", &some, &e));
	assert_true(e.ok && e.up_to_date);
	assert_int_equal(lt_sh(&t, "mkdir -p p/a/dist && : >p/a/dist/x"), 0);
	assert_true(lt_restore(&t, "k2", &some, &e));
	assert_true(e.ok && !e.up_to_date);
	assert_int_equal(lt_sh(&t, "test ! -e p/a/dist"), 0);
	assert_int_equal(lt_sh(&t, "test -z \"$(find .vx/cache/v1/[as] -type f)\""), 0);
	lt_end(&t);
}

static void test_refused(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	static const char *const make[] = {"mkfifo p/a/dist/pipe",
		"cp /bin/true p/a/dist/tool && chmod 4755 p/a/dist/tool",
		"python3 -c 'import socket; socket.socket(1).bind(\"p/a/dist/s\")'"};
	static const char *const said[] = {"p/a/dist/pipe is a FIFO",
		"p/a/dist/tool is a set-id program", "p/a/dist/s is a socket"};
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**"),
			  behind = lt_outputs(&t, "p/a", "out/dist/**");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(lt_sh(&t, "rm -rf p"), 0);
		make_dist(&t);
		assert_int_equal(lt_sh(&t, make[i]), 0);
		lt_reopen(&t); /* the same cause is said once per run */
		assert_false(lt_save(&t, "k", &o, &e));
		assert_non_null(strstr(e.text, said[i]));
	}
	assert_int_equal(
		lt_sh(&t,
			"mkdir -p p/elsewhere/dist && : >p/elsewhere/dist/x && ln -s ../elsewhere p/a/out"),
		0);
	lt_reopen(&t);
	assert_false(lt_save(&t, "k", &behind, &e));
	assert_non_null(strstr(e.text, "p/a/out"));
	assert_false(lt_save(&t, "k", &behind, &e));
	assert_string_equal(e.text, "");
	struct vx_lane_stats s;
	vx_lane_stats(t.lane, &s);
	assert_int_equal(s.failed, 2);
	lt_end(&t);
}

static bool is_tracked(void *arg, const char *path)
{
	(void)arg;
	return strcmp(path, "p/a/dist/kept") == 0;
}

static void test_clean(void **state)
{
	(void)state;
	struct lt t = {.tracked = is_tracked};
	struct vx_lane_event e;
	lt_begin(&t);
	make_dist(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/** gen/out.h *.tmp !dist/spared");
	assert_int_equal(
		lt_sh(&t,
			"mkdir -p p/a/gen p/a/dist/.git p/a/dist/node_modules/m && : >p/a/gen/out.h && : >p/a/x.tmp && : >p/a/dist/kept && : >p/a/dist/spared && "
			": >p/a/dist/.git/HEAD && : >p/a/dist/node_modules/m/i && mkdir -p out && : >out/victim && ln -s ../../../out p/a/dist/away && chmod 555 p/a/dist/sub"),
		0);
	lt_clean(&t, &o, &e);
	assert_true(e.ok);
	assert_int_equal(
		lt_sh(&t,
			"test \"$(cd p && find . ! -type d | LC_ALL=C sort | tr '\\n' ' ')\" = "
			"'./a/dist/.git/HEAD ./a/dist/kept ./a/dist/node_modules/m/i ./a/dist/spared ./a/src/x '"),
		0);
	assert_int_equal(
		lt_sh(&t, "test -e out/victim && test -d p/a/gen && test ! -e p/a/dist/sub"), 0);
	/* all of it gone: the directory too */
	assert_int_equal(
		lt_sh(&t, "rm -rf p/a/dist && mkdir -p p/a/dist/x/y && : >p/a/dist/x/y/z"), 0);
	lt_clean(&t, &o, &e);
	assert_true(e.ok);
	assert_int_equal(lt_sh(&t, "test ! -e p/a/dist && test -d p/a"), 0);
	lt_end(&t);
}

static void test_nested_and_workspace(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	static const char *const nested[] = {"p/a/inner"};
	lt_begin(&t);
	struct vx_outputs o = {.files = lt_globs(&t, "**/*.out"),
		.dir = "p/a",
		.workspace_files = lt_globs(&t, "top/gen/**"),
		.nested = {nested, 1}};
	assert_int_equal(
		lt_sh(&t,
			"mkdir -p p/a/inner p/a/x top/gen && : >p/a/inner/i.out && echo 1 >p/a/x/x.out && echo 2 >p/a/y.out && echo 3 >top/gen/z && : >top/other"),
		0);
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(e.n_outputs, 3);
	lt_clean(&t, &o, &e);
	assert_int_equal(
		lt_sh(&t,
			"test -e p/a/inner/i.out && test ! -e p/a/x/x.out && test ! -e p/a/y.out && test ! -e top/gen && test -e top/other"),
		0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	assert_int_equal(
		lt_sh(&t,
			"grep -q 1 p/a/x/x.out && grep -q 2 p/a/y.out && grep -q 3 top/gen/z && test -e p/a/inner/i.out"),
		0);
	/* Beside the outputs everything may change without a write. */
	assert_int_equal(lt_sh(&t, ": >p/a/new && mkdir p/a/newdir && : >top/new"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && e.up_to_date);
	lt_end(&t);
}

static void test_additive(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	o.additive = true;
	make_dist(&t);
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(lt_sh(&t, ": >p/a/dist/others && rm p/a/dist/one"), 0);
	lt_clean(&t, &o, &e);
	assert_true(e.ok);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && !e.up_to_date);
	assert_int_equal(lt_sh(&t, "test -e p/a/dist/others && grep -q one p/a/dist/one"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok && e.up_to_date);
	lt_end(&t);
}

/* A directory of the outputs is swapped for a link to the very same files elsewhere: that is not
 * the outputs in their place. */
static void test_swapped_for_a_link(void **state)
{
	(void)state;
	static const struct {
		/* refused: the place is no output itself, so it is not ours to replace */
		const char *files, *swap, *refused;
	} v[] = {{"dist/**", "mv p/a/dist away && ln -s ../../away p/a/dist", NULL},
		{"dist/**", "mv p/a/dist/sub away && ln -s ../../../away p/a/dist/sub", NULL},
		{"dist/sub/*", "mv p/a/dist away && ln -s ../../away p/a/dist", "p/a/dist"},
		{"dist/*/two", "mv p/a/dist/sub away && ln -s ../../../away p/a/dist/sub",
			"p/a/dist/sub"},
		{"dist/sub/two", "mv p/a/dist/sub away && ln -s ../../../away p/a/dist/sub",
			"p/a/dist/sub"}};
	for (size_t k = 0; k < 2 * (sizeof v / sizeof *v); k++) {
		size_t i = k / 2;
		struct lt t = {0};
		struct vx_lane_event e;
		lt_begin(&t);
		struct vx_outputs o = lt_outputs(&t, "p/a", v[i].files);
		o.additive = k % 2; /* or not: the same is true */
		make_dist(&t);
		char *before = lt_tree(vxt_path(t.root, "p"));
		assert_true(lt_save(&t, "k", &o, &e));
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_true(e.ok && e.up_to_date);
		assert_int_equal(lt_sh(&t, v[i].swap), 0);
		char *away = lt_tree(vxt_path(t.root, "away"));
		assert_true(lt_restore(&t, "k", &o, &e));
		assert_false(e.up_to_date);
		assert_int_equal(e.ok, !v[i].refused);
		if (v[i].refused) {
			char text[128];
			snprintf(text, sizeof text,
				"%s is a symbolic link, and links are not followed", v[i].refused);
			if (!strstr(e.text, text))
				fail_msg("%s", e.text);
		} else if (i == 0 || !o.additive) {
			lt_same_tree(vxt_path(t.root, "p"), before);
		} else {
			assert_int_equal(
				lt_sh(&t,
					"test ! -L p/a/dist/sub && test -d p/a/dist/sub && cmp p/a/dist/sub/two away/two"),
				0);
		}
		lt_same_tree(vxt_path(t.root, "away"), away);
		free(before);
		free(away);
		lt_end(&t);
	}
}

static void test_not_portable(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	char cmd[PATH_MAX + 128];
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	struct vx_digest key = lt_key("k");
	bool found;
	struct vx_entry entry;
	static const char *const how[] = {"printf %s \"xx$W/yy\" >p/a/dist/f",
		"ln -s $W/p p/a/dist/l",
		"{ head -c 5242880 /dev/zero; printf %s \"$W\"; } >p/a/dist/big",
		"{ head -c 5242860 /dev/zero; printf %s \"$W\"; head -c 100 /dev/zero; } >p/a/dist/big"};
	for (int i = 0; i < 4; i++) {
		assert_int_equal(
			lt_sh(&t, "rm -rf p && mkdir -p p/a/dist && : >p/a/dist/plain"), 0);
		snprintf(cmd, sizeof cmd, "W='%s'; %s", t.root, how[i]);
		assert_int_equal(lt_sh(&t, cmd), 0);
		assert_true(lt_save(&t, "k", &o, &e));
		assert_int_equal(vx_store_probe(t.store, &key, 1, &found, &entry), 1);
		assert_false(entry.portable);
		assert_true(lt_restore(&t, "k", &o, &e));
	}
	/* another workspace on the same store does not take it */
	char *copy = t.store->workspace;
	t.store->workspace = (char *)(uintptr_t) "/somewhere/else";
	assert_int_equal(vx_store_probe(t.store, &key, 1, &found, &entry), 0);
	t.store->workspace = copy;
	lt_end(&t);
}

/* Makes p/a/dist and saves it under "k". */
static void save_dist(
	struct lt *t, const char *command, struct vx_outputs *ret_o, struct vx_lane_event *ret)
{
	lt_begin(t);
	*ret_o = lt_outputs(t, "p/a", "dist/**");
	assert_int_equal(lt_sh(t, command), 0);
	assert_true(lt_save(t, "k", ret_o, ret));
}

static void test_large_streamed(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	struct vx_outputs o;
	save_dist(&t,
		"mkdir -p p/a/dist && head -c 9000001 /dev/urandom >p/a/dist/big && truncate -s 30000000 p/a/dist/sparse && echo end >>p/a/dist/sparse && "
		"truncate -s 20000000 p/a/dist/zeros && echo small >p/a/dist/small",
		&o, &e);
	char *before = lt_tree(vxt_path(t.root, "p"));
	/* the same again makes the same artifact */
	assert_true(lt_save(&t, "k2", &o, &e));
	assert_int_equal(lt_sh(&t, "test $(find .vx/cache/v1/a -type f | wc -l) = 1"), 0);
	assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	lt_same_tree(vxt_path(t.root, "p"), before);
	assert_int_equal(lt_sh(&t, "test $(du -k p/a/dist/sparse | cut -f1) -lt 1000"), 0);
	free(before);
	lt_end(&t);
}

/* Holes are neither read nor written: a gigabyte that holds two words. */
static void test_holes(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	struct vx_outputs o;
	save_dist(&t,
		"mkdir -p p/a/dist && cd p/a/dist && truncate -s 400000000 begin end all && printf one >one && truncate -s 1000003 one && "
		"dd if=one of=begin bs=3 count=1 conv=notrunc 2>/dev/null && printf two >>end && "
		"dd if=/dev/urandom of=end bs=1000 count=3 seek=200001 conv=notrunc 2>/dev/null",
		&o, &e);
	assert_true(e.bytes < 2000000);
	assert_int_equal(lt_sh(&t, "mv p/a/dist was"), 0);
	assert_true(lt_restore(&t, "k", &o, &e));
	assert_true(e.ok);
	assert_int_equal(
		lt_sh(&t,
			"for f in begin end one; do cmp was/$f p/a/dist/$f || exit 1; done; "
			"test $(stat -c %s p/a/dist/all) = 400000000 && test $(du -k p/a/dist | cut -f1) -lt 3000"),
		0);
	lt_end(&t);
}

/* Damage is a miss that is said, and the damaged is gone. */
static void test_damage(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	/* one bit: what stands there differs from run to run, since artifacts hold times */
	static const char *const damage[] = {
		"b=$(od -An -tu1 -j50 -N1 $f); printf \"\\\\$(printf %03o $((b ^ 1)))\" | dd of=$f bs=1 seek=50 conv=notrunc 2>/dev/null",
		"truncate -s -1 $f", ": >$f", "rm -f $f"};
	lt_begin(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	for (int i = 0; i < 4; i++) {
		char cmd[512];
		struct vx_digest key = lt_key("k");
		struct vx_restore_req r = {.task = 1, .id = "a#build", .outputs = o};
		bool found;
		assert_int_equal(lt_sh(&t, "rm -rf p && mkdir -p .vx/stage"), 0);
		make_dist(&t);
		assert_true(lt_save(&t, "k", &o, &e));
		assert_int_equal(vx_store_probe(t.store, &key, 1, &found, &r.entry), 1);
		assert_int_equal(lt_sh(&t, "echo old >p/a/dist/one && rm p/a/dist/nil"), 0);
		char *before = lt_tree(vxt_path(t.root, "p"));
		snprintf(cmd, sizeof cmd,
			"f=$(find .vx/cache/v1/a -name '*.tar.zst') && chmod u+w $f && %s",
			damage[i]);
		assert_int_equal(lt_sh(&t, cmd), 0);
		vx_lane_restore(t.lane, &r);
		lt_next(&t, &e);
		assert_false(e.ok);
		assert_non_null(strstr(e.text, "damaged"));
		lt_same_tree(vxt_path(t.root, "p"), before);
		free(before);
		assert_int_equal(vx_store_probe(t.store, &key, 1, &found, &r.entry), 0);
		assert_int_equal(
			lt_sh(&t,
				"test -z \"$(find .vx/cache/v1/[as] -type f)\" && test -z \"$(find .vx/stage -mindepth 1)\""),
			0);
	}
	lt_end(&t);
}

static void test_many(void **state)
{
	(void)state;
	enum { N = 400 };
	struct lt t = {0};
	struct vx_lane_event e;
	static char ids[N][32], dirs[N][32];
	lt_begin(&t);
	assert_int_equal(
		lt_sh(&t,
			"for i in $(seq 0 399); do mkdir -p p/$i/dist && echo $i >p/$i/dist/f && head -c 2000 /dev/urandom >p/$i/dist/g; done"),
		0);
	struct vx_globset *g = lt_globs(&t, "dist/**");
	struct vx_digest keys[N];
	for (int i = 0; i < N; i++) {
		snprintf(ids[i], sizeof ids[i], "%d#build", i);
		snprintf(dirs[i], sizeof dirs[i], "p/%d", i);
		keys[i] = lt_key(ids[i]);
		struct vx_save_req r = {.task = (uint32_t)i,
			.id = ids[i],
			.key = keys[i],
			.outputs = {.files = g, .dir = dirs[i]},
			.log = ids[i],
			.log_bytes = strlen(ids[i])};
		vx_lane_save(t.lane, &r);
	}
	vx_lane_flush(t.lane);
	static uint8_t seen[N];
	memset(seen, 0, sizeof seen);
	for (int left = N; left;) {
		lt_next(&t, &e);
		if (e.kind == VX_LANE_CAPTURED) {
			assert_int_equal(seen[e.task]++, 0);
			continue;
		}
		assert_true(e.kind == VX_LANE_SETTLED && e.ok);
		assert_int_equal(seen[e.task]++, 1);
		left--;
	}
	struct vx_lane_stats s;
	vx_lane_stats(t.lane, &s);
	assert_int_equal(s.saves, N);
	assert_int_equal(s.commit_rows, N);
	assert_true(s.commits * 16 <= N);
	if (strcmp(s.io, "io_uring") == 0)
		assert_memory_equal(s.ring_ops, s.steps, sizeof s.steps);
	char *before = lt_tree(vxt_path(t.root, "p"));
	for (int round = 0; round < 2; round++) {
		static bool found[N];
		static struct vx_entry entries[N];
		lt_reopen(&t);
		assert_int_equal(vx_store_probe(t.store, keys, N, found, entries), N);
		if (round == 0)
			assert_int_equal(
				lt_sh(&t, "rm -rf p && mkdir p && mkdir $(seq -f 'p/%g' 0 399)"),
				0);
		for (int i = 0; i < N; i++) {
			struct vx_restore_req r = {.task = (uint32_t)i,
				.id = ids[i],
				.entry = entries[i],
				.outputs = {.files = g, .dir = dirs[i]}};
			vx_lane_restore(t.lane, &r);
		}
		for (int left = N; left; left--) {
			lt_next(&t, &e);
			assert_true(e.ok);
			assert_int_equal(e.up_to_date, round);
			assert_int_equal(e.log_bytes, strlen(ids[e.task]));
			assert_memory_equal(e.log, ids[e.task], e.log_bytes);
		}
		lt_same_tree(vxt_path(t.root, "p"), before);
		vx_lane_stats(t.lane, &s);
		assert_true(s.commits <= 16); /* of snapshots: nobody waits for them */
	}
	free(before);
	lt_end(&t);
}

/* VX_FSYNC=1: every artifact is synced before it is renamed; by the ring where there is one. */
static void test_fsync(void **state)
{
	(void)state;
	struct lt t = {0};
	struct vx_lane_event e;
	struct vx_lane_stats s;
	setenv("VX_FSYNC", "1", 1);
	lt_begin(&t);
	unsetenv("VX_FSYNC");
	make_dist(&t);
	struct vx_outputs o = lt_outputs(&t, "p/a", "dist/**");
	assert_true(lt_save(&t, "k", &o, &e));
	assert_int_equal(lt_sh(&t, "head -c 5000000 /dev/urandom >p/a/dist/big"), 0);
	assert_true(lt_save(&t, "k2", &o, &e)); /* streamed */
	vx_lane_stats(t.lane, &s);
	assert_int_equal(s.steps[VX_IO_FSYNC], 2);
	assert_int_equal(s.commits, 2);
	if (strcmp(s.io, "io_uring") == 0)
		assert_memory_equal(s.ring_ops, s.steps, sizeof s.steps);
	assert_int_equal(lt_sh(&t, "rm -r p/a/dist"), 0);
	assert_true(lt_restore(&t, "k2", &o, &e) && e.ok);
	lt_end(&t);
}

static void test_interrupt(void **state)
{
	(void)state;
	enum { N = 200 };
	struct lt t = {0};
	struct vx_lane_event e;
	lt_begin(&t);
	make_dist(&t);
	struct vx_save_req r = {.id = "a#build", .outputs = lt_outputs(&t, "p/a", "dist/**")};
	for (uint32_t i = 0; i < N; i++) {
		char key[16];
		snprintf(key, sizeof key, "k%u", i);
		r.task = i;
		r.key = lt_key(key);
		vx_lane_save(t.lane, &r);
	}
	vx_lane_interrupt(t.lane);
	r.task = N;
	vx_lane_save(t.lane, &r);
	int settled = 0, dropped = 0;
	while (settled < N + 1) {
		lt_next(&t, &e);
		settled += e.kind == VX_LANE_SETTLED;
		dropped += e.kind == VX_LANE_SETTLED && strcmp(e.text, "dropped") == 0;
	}
	assert_true(dropped > 0);
	lt_close(&t);
	assert_int_equal(lt_sh(&t, "test -z \"$(find .vx/cache/v1/tmp -mindepth 1)\""), 0);
	lt_open(&t);
	lt_end(&t);
}

#ifndef TEST_IO
#define TEST_IO "blocking"
#endif

int main(void)
{
	setenv("VX_IO", TEST_IO, 1);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_forgeries),
		cmocka_unit_test(test_moved_inputs),
		cmocka_unit_test(test_no_outputs),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_clean),
		cmocka_unit_test(test_nested_and_workspace),
		cmocka_unit_test(test_additive),
		cmocka_unit_test(test_swapped_for_a_link),
		cmocka_unit_test(test_not_portable),
		cmocka_unit_test(test_large_streamed),
		cmocka_unit_test(test_holes),
		cmocka_unit_test(test_damage),
		cmocka_unit_test(test_many),
		cmocka_unit_test(test_fsync),
		cmocka_unit_test(test_interrupt),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
