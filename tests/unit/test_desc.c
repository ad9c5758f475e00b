/* Task descriptors: there and back, and everything that is not one. */
#include "vxtest.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/desc.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>

#define STRS(...)                                                                   \
	{                                                                           \
		(const char *const[]){__VA_ARGS__},                                 \
			sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *) \
	}

static const uint16_t ports[] = {1, 8080, 65535};
static const struct vx_sbx_package packages[] = {
	{"@a/b", "packages/b", true}, {"c", "packages/c", false}};
static const struct vx_task_desc sample = {
	.task = 4000000000U,
	.attempt = 65535,
	.id = "pkg#build",
	.argv = STRS("/bin/sh", "-c", "echo \"hi\"", ""),
	.cwd = "/work space/p",
	.env = STRS("PATH=/bin", "EMPTY=", "B=\xff\x01\n"),
	.timeout_ms = VX_MAX_TIMEOUT_MS,
	.grace_ms = 2000,
	.persistent = true,
	.memory_bytes = UINT64_MAX,
	.sandboxed = true,
	.sandbox =
		{
			.decl =
				{
					.read = STRS("src/**", "a"),
					.write = STRS("dist"),
					.net_all = true,
					.bind_all = true,
					.net_allow = STRS("x.org"),
					.net_deny = STRS("y.org"),
					.unix_paths = STRS("/run/a"),
					.bind_ports = ports,
					.n_bind_ports = 3,
					.git_config = true,
					.devices = STRS("/dev/kvm"),
					.protect = STRS("dist/.vscode"),
					.ignore_read = STRS("r"),
					.ignore_write = STRS("w"),
					.ignore_net = STRS("n"),
					.weaker_when_nested = true,
				},
			.root = "/r",
			.project_dir = ".",
			.nested = STRS("p/q"),
			.store_dirs = STRS("/store"),
			.packages = packages,
			.n_packages = 2,
			.members = STRS("p/*", "!p/x"),
			.written = STRS("/r/dist"),
			.narrow = true,
			.home = "",
			.moves = STRS("KUBECONFIG=/k"),
			.record_dir = "/r/.vx/sweep",
			.weaker = true,
		},
};

static void same_strs(struct vx_strs a, struct vx_strs b)
{
	assert_int_equal(a.n, b.n);
	for (uint32_t i = 0; i < a.n; i++)
		assert_string_equal(a.v[i], b.v[i]);
}

static void same_decl(const struct vx_sbx_decl *a, const struct vx_sbx_decl *b)
{
	same_strs(a->read, b->read);
	same_strs(a->write, b->write);
	same_strs(a->net_allow, b->net_allow);
	same_strs(a->net_deny, b->net_deny);
	same_strs(a->unix_paths, b->unix_paths);
	same_strs(a->devices, b->devices);
	same_strs(a->protect, b->protect);
	same_strs(a->ignore_read, b->ignore_read);
	same_strs(a->ignore_write, b->ignore_write);
	same_strs(a->ignore_net, b->ignore_net);
	assert_int_equal(a->n_bind_ports, b->n_bind_ports);
	for (uint32_t i = 0; i < a->n_bind_ports; i++)
		assert_int_equal(a->bind_ports[i], b->bind_ports[i]);
	assert_int_equal(a->net_all << 5 | a->unix_all << 4 | a->bind_all << 3 | a->pty << 2 |
				 a->git_config << 1 | a->weaker_when_nested,
		b->net_all << 5 | b->unix_all << 4 | b->bind_all << 3 | b->pty << 2 |
			b->git_config << 1 | b->weaker_when_nested);
}

static void there_and_back(void **state)
{
	struct vx_task_desc d = sample, e;
	struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);
	struct vx_arena a = {0};

	(void)state;
	assert_int_equal(vx_desc_encode(&d, &b, NULL), 0);
	assert_int_equal(vx_desc_decode(b.data, b.len, &a, &e), 0);
	assert_int_equal(e.task, d.task);
	assert_int_equal(e.attempt, d.attempt);
	assert_string_equal(e.id, d.id);
	same_strs(e.argv, d.argv);
	assert_null(e.argv.v[e.argv.n]);
	assert_string_equal(e.cwd, d.cwd);
	same_strs(e.env, d.env);
	assert_null(e.env.v[e.env.n]);
	assert_int_equal(e.timeout_ms, d.timeout_ms);
	assert_int_equal(e.grace_ms, d.grace_ms);
	assert_true(e.persistent && e.sandboxed);
	assert_true(e.memory_bytes == UINT64_MAX);
	same_decl(&e.sandbox.decl, &d.sandbox.decl);
	assert_string_equal(e.sandbox.root, "/r");
	assert_string_equal(e.sandbox.project_dir, ".");
	same_strs(e.sandbox.nested, d.sandbox.nested);
	same_strs(e.sandbox.store_dirs, d.sandbox.store_dirs);
	same_strs(e.sandbox.members, d.sandbox.members);
	same_strs(e.sandbox.moves, d.sandbox.moves);
	same_strs(e.sandbox.written, d.sandbox.written);
	assert_int_equal(e.sandbox.n_packages, 2);
	for (int i = 0; i < 2; i++) {
		assert_string_equal(e.sandbox.packages[i].name, d.sandbox.packages[i].name);
		assert_string_equal(e.sandbox.packages[i].dir, d.sandbox.packages[i].dir);
		assert_int_equal(e.sandbox.packages[i].keyed, d.sandbox.packages[i].keyed);
		assert_int_equal(e.sandbox.packages[i].declared, d.sandbox.packages[i].declared);
	}
	assert_true(e.sandbox.narrow && e.sandbox.weaker);
	assert_string_equal(e.sandbox.home, "");
	assert_string_equal(e.sandbox.record_dir, "/r/.vx/sweep");
	vx_buf_free(&b);
	vx_arena_free(&a);
}

static void plain(struct vx_buf *b)
{
	struct vx_task_desc d = sample;

	d.sandboxed = false;
	d.env = (struct vx_strs){0};
	assert_int_equal(vx_desc_encode(&d, b, NULL), 0);
}

static void an_empty_environment_and_no_sandbox(void **state)
{
	struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);
	struct vx_arena a = {0};
	struct vx_task_desc e;

	(void)state;
	plain(&b);
	assert_int_equal(vx_desc_decode(b.data, b.len, &a, &e), 0);
	assert_false(e.sandboxed);
	assert_int_equal(e.env.n, 0);
	assert_null(e.env.v[0]);
	vx_buf_free(&b);
	vx_arena_free(&a);
}

static void one_too_large_is_named(void **state)
{
	struct vx_task_desc d = sample;
	struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);
	struct vx_err err = {0};
	char *big = malloc(VX_MAX_DESC_BYTES + 1);

	(void)state;
	memset(big, 'x', VX_MAX_DESC_BYTES);
	big[VX_MAX_DESC_BYTES] = 0;
	d.argv = (struct vx_strs){(const char *const[]){big}, 1};
	assert_int_equal(vx_desc_encode(&d, &b, &err), -E2BIG);
	assert_non_null(strstr(err.what, "pkg#build"));
	assert_non_null(strstr(err.what, "VX_MAX_DESC_BYTES"));
	free(big);
	vx_buf_free(&b);
}

static void refuse(const char *bytes, size_t n)
{
	struct vx_arena a = {0};
	struct vx_task_desc e;

	assert_int_equal(vx_desc_decode(bytes, n, &a, &e), -EBADMSG);
	assert_true(a.used_bytes < 4 * VX_MAX_DESC_BYTES);
	vx_arena_free(&a);
}

static void every_truncation_and_trailing_byte(void **state)
{
	struct vx_task_desc d = sample;
	struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);

	(void)state;
	assert_int_equal(vx_desc_encode(&d, &b, NULL), 0);
	for (size_t n = 0; n < b.len; n++)
		refuse(b.data, n);
	vx_buf_addc(&b, 0);
	refuse(b.data, b.len);
	vx_buf_free(&b);
}

/* Whatever a flipped byte makes of it, decoding ends, and what it accepts is well-formed. */
static void random_damage(void **state)
{
	struct vx_task_desc d = sample, e;
	struct vx_buf b = VX_BUF(VX_MAX_DESC_BYTES);
	uint64_t seed = 0x9e3779b97f4a7c15ULL;
	char *copy;

	(void)state;
	assert_int_equal(vx_desc_encode(&d, &b, NULL), 0);
	copy = malloc(b.len);
	for (int round = 0; round < 20000; round++) {
		struct vx_arena a = {0};
		int r;

		memcpy(copy, b.data, b.len);
		for (int k = 0; k <= round % 4; k++) {
			seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
			copy[(seed >> 33) % b.len] = (char)(seed >> 17);
		}
		r = vx_desc_decode(copy, b.len, &a, &e);
		assert_true(r == 0 || r == -EBADMSG);
		if (r == 0) {
			assert_true(e.argv.n > 0 && e.argv.v[0][0] != 0 && e.cwd[0] == '/' &&
				    e.argv.v[e.argv.n] == NULL);
			for (uint32_t i = 0; i < e.env.n; i++)
				assert_non_null(strchr(e.env.v[i], '='));
		}
		vx_arena_free(&a);
	}
	free(copy);
	vx_buf_free(&b);
}

static void counts_beyond_the_message(void **state)
{
	static const char array32[] = "\xdd\xff\xff\xff\xff", str32[] = "\xdb\xff\xff\xff\xff",
			  map[] = "\x81\x01\x02", ext[] = "\xd4\x01\x02";
	char deep[4096];

	(void)state;
	refuse(array32, 5);
	refuse(str32, 5);
	refuse(map, 3);
	refuse(ext, 3);
	memset(deep, 0x91, sizeof deep);
	deep[sizeof deep - 1] = 0;
	refuse(deep, sizeof deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(an_empty_environment_and_no_sandbox),
		cmocka_unit_test(one_too_large_is_named),
		cmocka_unit_test(every_truncation_and_trailing_byte),
		cmocka_unit_test(random_damage),
		cmocka_unit_test(counts_beyond_the_message),
	};

	return cmocka_run_group_tests_name("desc", tests, NULL, NULL);
}
