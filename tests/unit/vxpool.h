/* For tests that run a pool: the test program is its own fork server. Include after vxtest.h;
 * main() begins with vxp_main(argc, argv). */
#ifndef VXPOOL_H
#define VXPOOL_H

#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/err.h"
#include "vx/limits.h"
#include "vx/pool.h"
#include "vx/proctree.h"
#include "vx/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>

VXT_UNUSED static void vxp_main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "-forkserver") == 0)
		exit(vx_forkserver_main(argc, argv));
	if (argc > 1 && strcmp(argv[1], "-boxhost") == 0)
		exit(vx_boxhost_main(argc, argv));
	/* what gets away from a scheduler under test comes to the test, and no further:
	 * vxp_end_all */
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

/* What one task came to. */
struct vxp_result {
	bool started, over, lost;
	struct vx_done start, done;
	struct vx_buf out, err, both; /* both: in the order of arrival */
	uint64_t last_frame_ns;
};

/* vx-init beside this program's build; NULL when it is not there. */
VXT_UNUSED static const char *vxp_init_path(void)
{
	static char path[4200];
	int n = vx_readlink(AT_FDCWD, "/proc/self/exe", path, 4096);

	assert_true(n > 0);
	for (int up = 0; up < 3; up++) /* build/tests/KIND/NAME */
		*strrchr(path, '/') = 0;
	strcat(path, "/vx-init");
	return access(path, X_OK) == 0 ? path : NULL;
}

VXT_UNUSED static struct vx_pool *vxp_start(uint32_t slots)
{
	struct vx_pool_opts o = {.slots = slots, .init_path = vxp_init_path()};
	static char bwrap[VX_MAX_PATH];
	struct vx_pool *p = NULL;
	struct vx_err err = {0};

	o.bwrap_path = vx_which("bwrap", getenv("PATH"), bwrap) == 0 ? bwrap : NULL;
	if (vx_pool_start(&o, &p, &err) < 0)
		fail_msg("%s", err.what);
	return p;
}

VXT_UNUSED static struct vx_task_desc vxp_desc(uint32_t task, const char *const *argv)
{
	static const char *const env[] = {"PATH=/usr/bin:/bin", "LC_ALL=C", NULL};
	struct vx_task_desc d = {.task = task, .id = "p#t", .cwd = "/", .grace_ms = 500};

	d.env = (struct vx_strs){env, 2};
	d.argv.v = argv;
	while (argv[d.argv.n] != NULL)
		d.argv.n++;
	return d;
}

/* One event, waiting for it at most `ms`; 0 when none came. */
VXT_UNUSED static int vxp_event(struct vx_pool *p, struct vx_pool_event *e, int ms)
{
	uint64_t end = vx_now_ns() + (uint64_t)ms * 1000000;

	for (;;) {
		struct pollfd f = {vx_pool_fd(p), POLLIN, 0};
		int r = vx_pool_next(p, e);
		uint64_t now = vx_now_ns();

		if (r != 0)
			return r;
		if (now >= end)
			return 0;
		poll(&f, 1, (int)((end - now) / 1000000) + 1);
	}
}

VXT_UNUSED static void vxp_take(struct vxp_result *r, const struct vx_pool_event *e)
{
	if (r->out.max == 0)
		r->out = r->err = r->both = VX_BUF(64 << 20);
	if (e->kind == VX_POOL_STARTED) {
		assert_false(r->started);
		r->started = true;
		r->start = e->done;
	} else if (e->kind == VX_POOL_OUTPUT) {
		assert_false(r->over);
		assert_true(e->ns >= r->last_frame_ns);
		r->last_frame_ns = e->ns;
		vx_buf_add(e->stream == 1 ? &r->out : &r->err, e->bytes, e->length);
		vx_buf_add(&r->both, e->bytes, e->length);
	} else {
		assert_false(r->over);
		r->over = true;
		r->lost = e->kind == VX_POOL_LOST;
		r->done = e->done;
	}
}

/* Until the slot's task is over; other slots' events must not come. */
VXT_UNUSED static void vxp_finish(struct vx_pool *p, uint32_t slot, struct vxp_result *r)
{
	struct vx_pool_event e;

	while (!r->over) {
		if (vxp_event(p, &e, VXT_HANG_MS) != 1)
			fail_msg("the task is not over after %d s", VXT_HANG_S);
		assert_int_equal(e.slot, slot);
		vxp_take(r, &e);
	}
}

static bool vxp_has_word(const char *pid, const char *word)
{
	char path[300], buf[4096];
	ssize_t n;
	int fd;

	snprintf(path, sizeof path, "/proc/%s/cmdline", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : 0;
	vx_close(fd);
	if (n <= 0)
		return false;
	buf[n] = 0;
	for (const char *p = buf; p < buf + n; p += strlen(p) + 1)
		if (strcmp(p, word) == 0)
			return true;
	return false;
}

/* The parent of `pid`, -1 where it is gone. */
static pid_t vxp_parent(pid_t pid)
{
	char path[64], buf[512];
	const char *p = NULL;
	ssize_t n;
	int fd, ppid;

	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	n = fd >= 0 ? read(fd, buf, sizeof buf - 1) : 0;
	vx_close(fd);
	if (n > 0) {
		buf[n] = 0;
		p = strrchr(buf, ')');
	}
	return p != NULL && sscanf(p + 1, " %*c %d", &ppid) == 1 ? ppid : -1;
}

/* Is `pid` below this program? Whoever dies between two steps has handed what was below him to one
 * above, so that the way up begins again. */
static bool vxp_below_us(const char *pid, const char *word)
{
	while (vxp_has_word(pid, word)) {
		pid_t at = atoi(pid);

		while (at > 1 && at != getpid())
			at = vxp_parent(at);
		if (at >= 0)
			return at == getpid();
	}
	return false;
}

/* How many processes have `word` as one of their arguments; a zombie has none. Of processes that
 * are below this program, as all are that get away from a pool under test: the same test may be
 * under way elsewhere on the machine. */
VXT_UNUSED static int vxp_alive(const char *word)
{
	DIR *d = opendir("/proc");
	struct dirent *e;
	int found = 0;

	assert_non_null(d);
	while ((e = readdir(d)) != NULL) {
		if (e->d_name[0] >= '1' && e->d_name[0] <= '9' && vxp_below_us(e->d_name, word))
			found++;
	}
	closedir(d);
	return found;
}

/* Cleans up after a failure: everything below this program, schedulers under test included. Killing
 * one by one what a look at /proc shows would end those who sweep, and leave what they would have
 * swept: something whose every generation starts the next is never in the list that is being worked
 * on. */
VXT_UNUSED static void vxp_end_all(void)
{
	vx_tree_end(NULL, NULL, NULL, 0, VXT_HANG_MS);
}

VXT_UNUSED static void vxp_free(struct vxp_result *r)
{
	vx_buf_free(&r->out);
	vx_buf_free(&r->err);
	vx_buf_free(&r->both);
	*r = (struct vxp_result){0};
}

/* One pool for all tests of a program: set-up and tear-down of its group. */
VXT_UNUSED static struct vx_pool *vxp_pool;
VXT_UNUSED static uint32_t vxp_slots = 3;

VXT_UNUSED static int vxp_set_up(void **state)
{
	(void)state;
	vxp_pool = vxp_start(vxp_slots);
	return 0;
}

VXT_UNUSED static int vxp_tear_down(void **state)
{
	(void)state;
	vx_pool_end(vxp_pool);
	return 0;
}

/* A task on its first slot, to the end. */
VXT_UNUSED static struct vxp_result vxp_run(const struct vx_task_desc *d)
{
	struct vxp_result r = {0};
	struct vx_err err = {0};

	if (vx_pool_run(vxp_pool, 0, d, &err) < 0)
		fail_msg("%s", err.what);
	vxp_finish(vxp_pool, 0, &r);
	assert_false(r.lost);
	return r;
}

/* A task that prints first, and then goes on until its time limit: that is as long as the task
 * needs to get there, however slow the machine is. */
VXT_UNUSED static struct vxp_result vxp_run_into_limit(struct vx_task_desc *d)
{
	for (d->timeout_ms = 150; d->timeout_ms < VXT_HANG_MS; d->timeout_ms *= 2) {
		struct vxp_result r = vxp_run(d);

		if (r.both.len > 0)
			return r;
		vxp_free(&r);
	}
	fail_msg("the task has printed nothing after %d s", VXT_HANG_S);
	return (struct vxp_result){0};
}

VXT_UNUSED static struct vxp_result vxp_run_sh(const char *text)
{
	struct vx_task_desc d = vxp_desc(1, (const char *const[]){"/bin/sh", "-c", text, NULL});

	return vxp_run(&d);
}

#endif
