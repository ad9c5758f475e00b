/* Why a sandbox cannot be had: every reason told apart, each with its fix. And the worker's
 * messages to its box host. */
#include "vxtest.h"

#include "../../worker/box/availability.h"
#include "../../worker/box/wire.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/err.h"

#include <errno.h>

static struct verdict_facts good(void)
{
	return (struct verdict_facts){.max_user_namespaces = 10000,
		.apparmor_restricts = -1,
		.unprivileged_clone = -1,
		.seccomp = true};
}

static void expect(const struct verdict_facts *f, enum box_step step, int error, const char *what,
	const char *fix)
{
	struct vx_err e = {0};

	assert_int_equal(verdict(f, step, error, NULL, &e), -ENOTSUP);
	assert_true(!strncmp(e.what, "sandbox not available: ", 23));
	if (!strstr(e.what, what) || !strstr(e.fix, fix))
		fail_msg("%s (%s)", e.what, e.fix);
}

static void reasons(void **state)
{
	struct verdict_facts f = good();

	(void)state;
	expect(&f, BOX_STEP_BWRAP, -ENOENT, "not on the PATH", "apt install bubblewrap");
	expect(&f, BOX_STEP_SECCOMP, -EINVAL, "seccomp", "CONFIG_SECCOMP_FILTER");
	expect(&f, BOX_STEP_BASE, -ENOSYS, "mount_setattr", "5.12");
	expect(&f, BOX_STEP_USERNS, -EINVAL, "no user namespaces", "CONFIG_USER_NS");
	expect(&f, BOX_STEP_USERNS, -ENOSPC, "no further", "max_user_namespaces");
	expect(&f, BOX_STEP_USERNS, -EPERM, "cannot be made", "allow");
	f.max_user_namespaces = 0;
	expect(&f, BOX_STEP_USERNS, -ENOSPC, "switched off", "sysctl -w user.max_user_namespaces=");
	f = good();
	f.unprivileged_clone = 0;
	expect(&f, BOX_STEP_USERNS, -EPERM, "unprivileged_userns_clone",
		"sysctl -w kernel.unprivileged_userns_clone=1");
	f = good();
	f.apparmor_restricts = 1;
	expect(&f, BOX_STEP_BASE, -EACCES, "kernel.apparmor_restrict_unprivileged_userns",
		"bwrap-userns-restrict");
	expect(&f, BOX_STEP_MAPS, -EPERM, "AppArmor", "bwrap-userns-restrict");
	f = good();
	f.in_filter = true;
	expect(&f, BOX_STEP_USERNS, -EPERM, "filter", "weakerWhenNested");
	f = good();
	f.root = true;
	expect(&f, BOX_STEP_MAPS, -EPERM, "root without capabilities", "normal user");
}

static void bubblewrap(void **state)
{
	struct verdict_facts f = good();
	struct vx_err e = {0};

	(void)state;
	assert_int_equal(verdict_bwrap_version("bubblewrap 0.8.0\n", &e), 0);
	assert_int_equal(verdict_bwrap_version("bubblewrap 1.0.0\n", &e), 0);
	assert_int_equal(verdict_bwrap_version("bubblewrap 0.5\n", &e), 0);
	assert_int_equal(verdict_bwrap_version("bubblewrap 0.4.1\n", &e), -ENOTSUP);
	assert_non_null(strstr(e.what, "too old"));
	assert_non_null(strstr(e.fix, "0.5"));
	assert_int_equal(verdict_bwrap_version("GNU tar\n", &e), -ENOTSUP);
	assert_int_equal(
		verdict_bwrap_text(&f,
			"bwrap: Can't mount proc on /newroot/proc: Operation not permitted", &e),
		-ENOTSUP);
	assert_non_null(strstr(e.what, "/proc"));
	assert_non_null(strstr(e.fix, "weakerWhenNested"));
	assert_int_equal(
		verdict_bwrap_text(&f, "bwrap: Unknown option --add-seccomp-fd", &e), -ENOTSUP);
	assert_int_equal(verdict_bwrap_text(&f,
				 "bwrap: Can't find source path /x: No such file or directory", &e),
		0);
}

static void facts_of_a_machine(void **state)
{
	struct verdict_facts f;
	char *dir = vxt_tmpdir();

	(void)state;
	verdict_read_facts(dir, &f);
	assert_int_equal(f.max_user_namespaces, -1);
	assert_false(f.seccomp);
	vxt_write(dir, "proc/sys/user/max_user_namespaces", "0\n");
	vxt_write(dir, "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
	vxt_write(dir, "proc/self/status", "Name:\tx\nSeccomp:\t2\nSeccomp_filters:\t1\n");
	vxt_write(dir, "proc/self/mountinfo", "1 2 0:1 / /proc/acpi ro - tmpfs tmpfs ro\n");
	verdict_read_facts(dir, &f);
	assert_int_equal(f.max_user_namespaces, 0);
	assert_int_equal(f.apparmor_restricts, 1);
	assert_int_equal(f.unprivileged_clone, -1);
	assert_true(f.seccomp && f.in_filter && f.in_container);
	vxt_rm(dir);
}

static void requests_travel(void **state)
{
	static const struct vx_mount mounts[] = {{.kind = VX_MNT_TMPFS,
							 .why = VX_WHY_WALL,
							 .target = "/w",
							 .mode = 0755,
							 .source_is_dir = true},
		{.kind = VX_MNT_BIND,
			.why = VX_WHY_WRITE,
			.source = "/w/\xff\n",
			.target = "/w/\xff\n",
			.grant = "*",
			.writable = true}};
	static const struct vx_placeholder places[] = {
		{"/w/d", "d/", true, false}, {"/o/f", "f", false, true}};
	static const struct vx_skeleton skeleton[] = {{"/w/l", "../x"}, {"/w/p", NULL}};
	static const char *const deny[] = {"/w/d", "/w/d/.vscode"};
	struct vx_sbx_request q = {.mounts = mounts,
				      .n_mounts = 2,
				      .placeholders = places,
				      .n_placeholders = 2,
				      .skeleton = skeleton,
				      .n_skeleton = 2,
				      .deny_in = {deny, 1},
				      .deny_known = {deny + 1, 1},
				      .git_config = true,
				      .wall = "/w",
				      .cwd = "/w/p",
				      .pty = true,
				      .no_unix = true},
			      got;
	struct vx_buf b = VX_BUF(1 << 16);
	struct vx_arena a = {0};
	const char *record;

	(void)state;
	assert_int_equal(box_request_encode(&q, "/w/.vx/sweep", &b), 0);
	assert_int_equal(box_request_decode(b.data, b.len, &a, &got, &record), 0);
	assert_string_equal(record, "/w/.vx/sweep");
	assert_string_equal(got.mounts[1].source, mounts[1].source);
	assert_true(got.mounts[1].writable && !got.mounts[0].writable &&
		    got.mounts[0].source_is_dir && !got.mounts[0].source);
	assert_true(got.placeholders[0].is_dir && got.placeholders[1].outside);
	assert_null(got.skeleton[1].link_target);
	assert_true(got.deny_in.n == 1 && got.deny_known.n == 1 && got.git_config);
	assert_string_equal(got.deny_known.v[0], "/w/d/.vscode");
	assert_true(got.pty && got.no_unix && !got.share_net && !got.nesting);
	/* cut anywhere, or with any byte changed, it is refused or harmless: never a crash, never a
	 * relative path */
	for (size_t n = 0; n < b.len; n++)
		assert_int_equal(box_request_decode(b.data, n, &a, &got, &record), -EBADMSG);
	for (size_t i = 0; i < b.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			b.data[i] = (char)(b.data[i] ^ (1 << bit));
			if (box_request_decode(b.data, b.len, &a, &got, &record) == 0)
				for (uint32_t k = 0; k < got.n_mounts; k++)
					assert_true(got.mounts[k].target[0] == '/' &&
						    got.mounts[k].kind <= VX_MNT_DEVICE);
			b.data[i] = (char)(b.data[i] ^ (1 << bit));
			vx_arena_free(&a);
		}
	vx_buf_free(&b);
	vx_arena_free(&a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(reasons), cmocka_unit_test(bubblewrap),
		cmocka_unit_test(facts_of_a_machine), cmocka_unit_test(requests_travel)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
