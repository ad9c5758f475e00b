/* The journal of a restore, as a crash, a bad disk or somebody who means harm leaves it: recovery
 * acts on whole ones alone, takes things out of its own stage alone, and whatever it is told
 * nothing outside of the workspace is touched, nor .git. */
#include "lanetest.h"

#include "vx/assert.h"
#include "vx/fd.h"
#include "vx/state.h"

#include <sys/un.h>
#include <sys/socket.h>

struct op {
	char kind;
	uint32_t mode;
	const char *path, *stage;
};

/* base/ws is the workspace, base/outside is none of ours. */
struct place {
	char *base, *ws, *outside;
	char *ws_before, *outside_before;
	struct vx_digest secret; /* of ws/.vx */
};

static void put_link(const char *dir, const char *name, const char *target)
{
	assert_int_equal(symlink(target, vxt_path(dir, name)), 0);
}

static char *ws_tree(const struct place *p)
{
	char *files = lt_tree(vxt_path(p->ws, "p")), *git = lt_tree(vxt_path(p->ws, ".git")),
	     *all = NULL;
	assert_true(asprintf(&all, "%s%s", files, git) > 0);
	free(files);
	free(git);
	return all;
}

static void begin(struct place *p)
{
	p->base = vxt_tmpdir();
	p->ws = strdup(vxt_path(p->base, "ws"));
	p->outside = strdup(vxt_path(p->base, "outside"));
	vxt_write(p->ws, "p/dist/f", "old\n");
	vxt_write(p->ws, "p/dist/dir/in", "in\n");
	vxt_write(p->ws, ".git/config", "git\n");
	vxt_write(p->ws, ".vx/stage/1-0/0", "new\n");
	vxt_write(p->ws, ".vx/stage/1-0/1/deep/x", "x\n");
	vxt_write(p->ws, ".vx/keep", "keep\n");
	assert_int_equal(mkdir(vxt_path(p->ws, ".vx/journal"), 0777), 0);
	vxt_write(p->outside, "secret", "secret\n");
	vxt_write(p->outside, "dir/0", "outside\n");
	assert_int_equal(mkdir(vxt_path(p->outside, "empty"), 0777), 0);
	int own = vx_open(AT_FDCWD, vxt_path(p->ws, ".vx"), O_RDONLY | O_DIRECTORY, 0);
	assert_int_equal(vx_state_key(own, true, &p->secret), 0);
	vx_close(own);
	put_link(p->ws, "p/link", "../../outside");
	put_link(p->ws, ".vx/stage/1-0/1/out", "../../../../../outside");
	put_link(p->ws, ".vx/stage/1-0/2", "../../../../outside");
	p->ws_before = ws_tree(p);
	p->outside_before = lt_tree(p->outside);
}

static void end(struct place *p)
{
	free(p->ws_before);
	free(p->outside_before);
	free(p->ws);
	free(p->outside);
	vxt_rm(p->base);
}

static void encode(
	const struct place *p, struct vx_buf *b, uint32_t n, const struct op *v, uint32_t n_ops)
{
	struct vx_digest d;
	vx_buf_add(b, "vx journal 1", 13);
	vx_buf_u32le(b, n);
	for (uint32_t i = 0; i < n_ops; i++) {
		vx_buf_addc(b, v[i].kind);
		vx_buf_u32le(b, v[i].mode);
		vx_buf_add(b, v[i].path, strlen(v[i].path) + 1);
		vx_buf_add(b, v[i].stage, strlen(v[i].stage) + 1);
	}
	vx_journal_seal(&p->secret, b->data, b->len, &d);
	vx_buf_add(b, d.b, sizeof d.b);
}

static void write_bytes(const struct place *p, const char *name, const void *bytes, size_t n)
{
	assert_int_equal(vx_write_file_atomic(AT_FDCWD, vxt_path(p->ws, name), bytes, n, 0600), 0);
}

static void journal(const struct place *p, const struct op *v, uint32_t n)
{
	struct vx_buf b = VX_BUF(1 << 20);
	encode(p, &b, n, v, n);
	write_bytes(p, ".vx/journal/1-0", b.data, b.len);
	vx_buf_free(&b);
}

static void recover(const struct place *p, const char *what)
{
	struct vx_err err = {0};
	int r = vx_lane_recover(p->ws, &err);
	if (r)
		fail_msg("%s: %d %s", what, r, err.what);
	char *now = lt_tree(p->outside);
	if (strcmp(now, p->outside_before) != 0)
		fail_msg("%s: outside is now %s", what, now);
	free(now);
	if (lt_count_below(vxt_path(p->ws, ".vx/journal"), true) ||
		lt_count_below(vxt_path(p->ws, ".vx/stage"), true))
		fail_msg("%s: something is left", what);
	assert_int_equal(access(vxt_path(p->ws, ".vx/keep"), F_OK), 0);
}

static void nothing_done(const struct place *p, const char *what)
{
	recover(p, what);
	char *now = ws_tree(p);
	if (strcmp(now, p->ws_before) != 0)
		fail_msg("%s: the workspace is now %s", what, now);
	free(now);
}

static const struct op good[] = {{'D', 0, "p/dist/f", ""}, {'P', 0, "p/dist/f", "0"},
	{'R', 0, "p/dist/dir", ""}, {'P', S_IFDIR, "p/dist/new", "1"},
	{'M', 0700, "p/dist/new", ""}};

static bool holds(const struct place *p, const char *name, const char *text)
{
	struct vx_buf b = VX_BUF(4096);
	bool same = vx_read_file(AT_FDCWD, vxt_path(p->ws, name), &b) == 0 &&
		    strcmp(vx_buf_str(&b), text) == 0;
	vx_buf_free(&b);
	return same;
}

/* Whole ones that somebody else has written: a clone or an archive brings no secret that counts,
 * not even with the file that held it. */
static void test_not_ours(void **state)
{
	(void)state;
	struct place p;
	struct vx_buf key = VX_BUF(4096);
	begin(&p);
	memset(&p.secret, 0, sizeof p.secret);
	journal(&p, good, VX_ARRAY_LEN(good));
	nothing_done(&p, "by another secret");
	end(&p);

	begin(&p);
	assert_int_equal(vx_read_file(AT_FDCWD, vxt_path(p.ws, ".vx/key"), &key), 0);
	assert_int_equal(unlink(vxt_path(p.ws, ".vx/key")), 0);
	write_bytes(&p, ".vx/other", "", 0); /* takes the inode, should it be given out again */
	write_bytes(&p, ".vx/key", key.data, key.len);
	journal(&p, good, VX_ARRAY_LEN(good));
	nothing_done(&p, "with a copy of the key");
	end(&p);

	begin(&p);
	assert_int_equal(unlink(vxt_path(p.ws, ".vx/key")), 0);
	journal(&p, good, VX_ARRAY_LEN(good));
	nothing_done(&p, "without a key");
	end(&p);

	begin(&p); /* the key itself is a link to one that would do elsewhere */
	assert_int_equal(rename(vxt_path(p.ws, ".vx/key"), vxt_path(p.ws, ".vx/real")), 0);
	put_link(p.ws, ".vx/key", "real");
	journal(&p, good, VX_ARRAY_LEN(good));
	nothing_done(&p, "with a link to the key");
	end(&p);
	vx_buf_free(&key);
}

/* That the journals of this test are journals at all. */
static void test_good(void **state)
{
	(void)state;
	struct place p;
	struct stat st;
	begin(&p);
	journal(&p, good, VX_ARRAY_LEN(good));
	recover(&p, "a good one");
	assert_true(holds(&p, "p/dist/f", "new\n") && holds(&p, "p/dist/dir/in", "in\n") &&
		    holds(&p, "p/dist/new/deep/x", "x\n"));
	assert_int_equal(lstat(vxt_path(p.ws, "p/dist/new"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0700);
	end(&p);
}

static void test_stage_names(void **state)
{
	(void)state;
	static const char *const v[] = {"../../../../outside/secret", "../../../../outside/dir",
		"../../../p/dist/dir", "..", ".", "", "/", "/etc/hostname", "0/", "./0", "0/../0",
		"1/deep", "1/out/secret", "1/out", "2/secret", "00", "01", " 0", "0 ", "+0", "-1",
		"0x0", "99999999999", "1-0", "0\n", "a"};
	for (size_t i = 0; i < VX_ARRAY_LEN(v); i++)
		for (int dir = 0; dir < 2; dir++) {
			struct place p;
			begin(&p);
			journal(&p,
				(struct op[]){{'D', 0, "p/dist/f", ""},
					{'P', dir ? S_IFDIR : 0, "p/dist/got", v[i]}},
				2);
			nothing_done(&p, v[i]);
			end(&p);
		}
	/* outside by its whole path */
	struct place p;
	begin(&p);
	journal(&p, (struct op[]){{'P', 0, "p/dist/got", vxt_path(p.outside, "secret")}}, 1);
	nothing_done(&p, "its whole path");
	end(&p);
}

static void test_paths(void **state)
{
	(void)state;
	static const char *const v[] = {"../outside/secret", "../outside/empty",
		"p/../../outside/secret", "p/dist/../../../outside/secret", "/outside/secret", "/",
		"", ".", "..", ".git/config", ".git", ".vx/keep", ".vx", "p/.git/x", "p//dist/f",
		"p/dist/", "./p/dist/f", "p/link/secret", "p/link/empty", "p/link/dir/0",
		"p/link/new"};
	static const struct op kinds[] = {{'D', 0, "", ""}, {'R', 0, "", ""}, {'M', 0777, "", ""},
		{'P', 0, "", "0"}, {'P', S_IFDIR, "", "1"}};
	for (size_t i = 0; i < VX_ARRAY_LEN(v); i++)
		for (size_t k = 0; k < VX_ARRAY_LEN(kinds); k++) {
			struct place p;
			struct op op = kinds[k];
			begin(&p);
			op.path = v[i];
			journal(&p, &op, 1);
			nothing_done(&p, v[i]);
			end(&p);
		}
	/* a link itself is replaced, never what it leads to */
	struct place p;
	begin(&p);
	journal(&p, (struct op[]){{'M', 0700, "p/link", ""}}, 1);
	nothing_done(&p, "the mode of a link");
	end(&p);
	begin(&p);
	journal(&p, (struct op[]){{'P', 0, "p/link", "0"}}, 1);
	recover(&p, "a link replaced");
	assert_true(holds(&p, "p/link", "new\n"));
	end(&p);
}

static void test_odd_operations(void **state)
{
	(void)state;
	static const struct op v[] = {{'X', 0, "p/dist/f", ""}, {'\0', 0, "p/dist/f", ""},
		{'d', 0, "p/dist/f", ""}, {'D', 0, "p/dist/f", "0"}, {'D', 0777, "p/dist/f", ""},
		{'M', 0100777, "p/dist/dir", ""}, {'M', 010000, "p/dist/dir", ""},
		{'M', 0700, "p/dist/dir", "0"}, {'P', 0777, "p/dist/f", "0"},
		{'P', S_IFDIR | 0777, "p/dist/f", "0"}, {'P', S_IFLNK, "p/dist/f", "0"},
		{'R', 0, "p/dist/dir", "1"}};
	for (size_t i = 0; i < VX_ARRAY_LEN(v); i++) {
		struct place p;
		char what[32];
		snprintf(what, sizeof what, "operation %zu", i);
		begin(&p);
		journal(&p, (struct op[]){good[0], v[i]}, 2);
		nothing_done(&p, what);
		end(&p);
	}
}

/* Cut anywhere, one bit in three flipped, something behind it, another number of operations than it
 * says. */
static void test_damaged(void **state)
{
	(void)state;
	struct place p;
	struct vx_buf b = VX_BUF(1 << 20);
	begin(&p);
	encode(&p, &b, VX_ARRAY_LEN(good), good, VX_ARRAY_LEN(good));
	for (size_t n = 0; n < b.len; n++) {
		write_bytes(&p, ".vx/journal/1-0", b.data, n);
		vxt_write(p.ws, ".vx/stage/1-0/0", "new\n");
		nothing_done(&p, "cut");
	}
	for (size_t bit = 0; bit < b.len * 8; bit += 3) {
		b.data[bit / 8] ^= (char)(1 << bit % 8);
		write_bytes(&p, ".vx/journal/1-0", b.data, b.len);
		b.data[bit / 8] ^= (char)(1 << bit % 8);
		vxt_write(p.ws, ".vx/stage/1-0/0", "new\n");
		nothing_done(&p, "flipped");
	}
	vx_buf_addc(&b, '\0');
	write_bytes(&p, ".vx/journal/1-0", b.data, b.len);
	nothing_done(&p, "longer");
	static const uint32_t counts[] = {
		0, 1, VX_ARRAY_LEN(good) - 1, VX_ARRAY_LEN(good) + 1, 0x7fffffff, UINT32_MAX};
	for (size_t i = 0; i < VX_ARRAY_LEN(counts); i++) {
		vx_buf_clear(&b);
		encode(&p, &b, counts[i], good, VX_ARRAY_LEN(good));
		write_bytes(&p, ".vx/journal/1-0", b.data, b.len);
		vxt_write(p.ws, ".vx/stage/1-0/0", "new\n");
		nothing_done(&p, "another number");
	}
	vx_buf_free(&b);
	end(&p);
}

/* Writes a whole journal that a link then leads to. */
static void journal_outside(struct place *p, const char *name)
{
	struct vx_buf b = VX_BUF(1 << 20);
	encode(p, &b, VX_ARRAY_LEN(good), good, VX_ARRAY_LEN(good));
	assert_int_equal(
		vx_write_file_atomic(AT_FDCWD, vxt_path(p->outside, name), b.data, b.len, 0600), 0);
	vx_buf_free(&b);
	free(p->outside_before);
	p->outside_before = lt_tree(p->outside);
}

static void make_socket(const char *dir, const char *name)
{
	struct sockaddr_un a = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true((size_t)snprintf(a.sun_path, sizeof a.sun_path, "%s", vxt_path(dir, name)) <
		    sizeof a.sun_path);
	assert_int_equal(bind(fd, (struct sockaddr *)&a, sizeof a), 0);
	vx_close(fd);
}

/* No file where the journal is to be, or a place that is a link. */
static void test_other_kinds(void **state)
{
	(void)state;
	struct place p;
	begin(&p);
	journal_outside(&p, "1-0");
	put_link(p.ws, ".vx/journal/1-0", "../../../outside/1-0");
	nothing_done(&p, "a link to a journal");
	vxt_write(p.ws, ".vx/journal/1-0/dir/file", "x");
	nothing_done(&p, "a directory");
	assert_int_equal(mkfifo(vxt_path(p.ws, ".vx/journal/1-0"), 0600), 0);
	nothing_done(&p, "a fifo");
	make_socket(p.ws, ".vx/journal/1-0");
	nothing_done(&p, "a socket");
	assert_int_equal(rmdir(vxt_path(p.ws, ".vx/journal")), 0);
	put_link(p.ws, ".vx/journal", "../../outside");
	vxt_write(p.ws, ".vx/stage/1-0/0", "new\n");
	assert_int_equal(vx_lane_recover(p.ws, NULL), 0);
	assert_int_equal(access(vxt_path(p.ws, ".vx/journal"), F_OK), -1); /* the link */
	nothing_done(&p, "all journals elsewhere");
	end(&p);

	static const char *const gone[] = {".vx/stage", ".vx/stage/1-0"},
				 *const to[] = {"../../outside", "../../../outside/dir"};
	/* the stage elsewhere: nothing is taken from there, nor removed */
	for (int i = 0; i < 2; i++) {
		begin(&p);
		vxt_write(p.outside, "1-0/0", "outside\n");
		free(p.outside_before);
		p.outside_before = lt_tree(p.outside);
		assert_int_equal(vx_rm_rf(AT_FDCWD, vxt_path(p.ws, gone[i])), 0);
		put_link(p.ws, gone[i], to[i]);
		journal(&p, good, VX_ARRAY_LEN(good));
		nothing_done(&p, gone[i]);
		assert_int_equal(access(vxt_path(p.ws, gone[i]), F_OK), -1);
		end(&p);
	}
}

/* Operations put together from all of the above, the sum right. */
static void test_random(void **state)
{
	(void)state;
	static const char *const paths[] = {"p/dist/f", "p/dist/dir", "p/dist/dir/in", "p/link",
		"p/link/secret", "p/link/dir", "p", "p/dist", "p/dist/new", "p/dist/new/out",
		"p/dist/new/out/secret", "p/dist/2", "p/dist/2/secret", "../outside", ".git",
		"p/dist/a/b"};
	static const char *const stages[] = {
		"0", "1", "2", "3", "", "1/out", "../1-0/0", "..", "2/secret"};
	static const uint32_t modes[] = {0, S_IFDIR, 0700, 0777, 07777};
	unsigned seed = 7;
	for (int i = 0; i < 300; i++) {
		struct place p;
		struct op v[6];
		uint32_t n = 1 + (uint32_t)rand_r(&seed) % VX_ARRAY_LEN(v);
		for (uint32_t k = 0; k < n; k++) {
			char kind = "DPPMR"[rand_r(&seed) % 5];
			bool fair = rand_r(&seed) % 8 != 0;
			v[k] = (struct op){kind, modes[(size_t)rand_r(&seed) % VX_ARRAY_LEN(modes)],
				paths[(size_t)rand_r(&seed) % VX_ARRAY_LEN(paths)],
				stages[(size_t)rand_r(&seed) % VX_ARRAY_LEN(stages)]};
			if (fair && kind != 'P') {
				v[k].stage = "";
				v[k].mode = kind == 'M' ? v[k].mode & 07777 : 0;
			} else if (fair) {
				v[k].stage = stages[(size_t)rand_r(&seed) % 4];
				v[k].mode = modes[(size_t)rand_r(&seed) % 2];
			}
		}
		begin(&p);
		journal(&p, v, n);
		recover(&p, "random");
		assert_true(holds(&p, ".git/config", "git\n"));
		end(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_good),
		cmocka_unit_test(test_not_ours),
		cmocka_unit_test(test_stage_names),
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_odd_operations),
		cmocka_unit_test(test_damaged),
		cmocka_unit_test(test_other_kinds),
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
