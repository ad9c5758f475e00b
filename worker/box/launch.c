/* The bubblewrap backend. bwrap gets a clean environment, its options by descriptor, and vx-init as
 * what it runs; vx-init gets the rest. */
#include "host.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/spawn.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define FD_ARGS 6
#define FD_RULES 7
#define FD_NEWER 8
#define COVER_DEPTH 4 /* how deep /proc is searched for files that root's uid may write */

static bool writable_below(int dir, const char *name, int depth)
{
	int fd = openat(dir, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	bool found = false;
	struct dirent *e;
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d) {
		vx_close(fd);
		return false;
	}
	while (!found && (e = readdir(d))) {
		struct stat st;
		if (e->d_name[0] == '.' ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		if (S_ISREG(st.st_mode))
			found = st.st_mode & 0222;
		else if (S_ISDIR(st.st_mode) && depth > 1)
			found = writable_below(dirfd(d), e->d_name, depth - 1);
	}
	closedir(d);
	return found;
}

static bool is_number(const char *s)
{
	return s[strspn(s, "0123456789")] == '\0';
}

/* Root's own uid owns /proc/sys and its kind even without capabilities: all of /proc that it could
 * write is bound read-only over itself. */
int launch_find_covers(struct host *h)
{
	static const char *const known[] = {"sys", "sysrq-trigger", "irq", "bus"};
	int fd = vx_open(AT_FDCWD, "/proc", O_RDONLY | O_DIRECTORY, 0);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;

	if (!d)
		return fd < 0 ? fd : -errno;
	while ((e = readdir(d))) {
		struct stat st;
		bool cover = false;

		if (e->d_name[0] == '.' || is_number(e->d_name) ||
			fstatat(dirfd(d), e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0 ||
			S_ISLNK(st.st_mode))
			continue;
		for (size_t i = 0; i < sizeof known / sizeof *known; i++)
			cover |= !strcmp(known[i], e->d_name);
		if (!cover)
			cover = S_ISDIR(st.st_mode)
					? writable_below(dirfd(d), e->d_name, COVER_DEPTH)
					: (st.st_mode & 0222) != 0;
		if (!cover)
			continue;
		if (h->n_covers == HOST_MAX_COVERS) {
			closedir(d);
			return -E2BIG;
		}
		h->covers[h->n_covers].path = vx_arena_printf(&h->arena, "/proc/%s", e->d_name);
		h->covers[h->n_covers++].is_dir = S_ISDIR(st.st_mode);
	}
	closedir(d);
	return 0;
}

int launch_filter(struct host *h, struct box_seccomp o, struct vx_err *err)
{
	int *fd = &h->rules_fd[(o.no_unix ? 1 : 0) | (o.no_net ? 2 : 0) | (o.nesting ? 4 : 0)],
	    r = 0;

	if (h->newer_fd < 0) {
		h->newer_fd = vx_memfd("vx-filter");
		r = h->newer_fd < 0 ? h->newer_fd : box_seccomp_newer(BOX_ARCH_NATIVE, h->newer_fd);
	}
	if (r == 0 && *fd < 0) {
		*fd = vx_memfd("vx-filter");
		r = *fd < 0 ? *fd : box_seccomp_rules(BOX_ARCH_NATIVE, o, *fd);
	}
	/* bwrap reads from where the descriptor stands, and shares our position. */
	if (r == 0 && (lseek(*fd, 0, SEEK_SET) < 0 || lseek(h->newer_fd, 0, SEEK_SET) < 0))
		r = -errno;
	return r < 0 ? vx_err_set(err, r, "sandbox: cannot make the system call filter: %s",
			       vx_strerror(r))
		     : *fd;
}

static void arg(struct vx_buf *b, const char *s)
{
	vx_buf_add(b, s, strlen(s) + 1);
}

static int make_args(struct host *h, struct vx_buf *b, struct vx_err *err)
{
	/* CAP_SETPCAP is vx-init's alone: with it the bounding set is emptied, which bwrap leaves
	 * full, and then it gives that up too. */
	static const char *const common[] = {"--unshare-pid", "--unshare-ipc", "--unshare-uts",
		"--as-pid-1", "--cap-drop", "ALL", "--cap-add", "CAP_SETPCAP", "--new-session",
		"--die-with-parent", "--chdir", "/"};
	const struct vx_sbx_request *r = &h->at.r;

	if (h->plain) {
		int res = plain_args(h, b, err);
		if (res < 0)
			return res;
	} else {
		arg(b, "--dev-bind");
		arg(b, h->base.base_path);
		arg(b, "/");
	}
	if (!r->weaker) {
		arg(b, "--proc");
		arg(b, "/proc");
		for (uint32_t i = 0; i < h->n_covers && h->plain; i++) {
			arg(b, "--ro-bind");
			arg(b, h->covers[i].path);
			arg(b, h->covers[i].path);
		}
	}
	if (!r->share_net)
		arg(b, "--unshare-net");
	for (size_t i = 0; i < sizeof common / sizeof *common; i++)
		arg(b, common[i]);
	char number[16];
	for (int fd = FD_RULES; fd <= FD_NEWER; fd++) {
		snprintf(number, sizeof number, "%d", fd);
		arg(b, "--add-seccomp-fd");
		arg(b, number);
	}
	return b->overflow ? vx_err_set(err, -E2BIG, "sandbox: bubblewrap's arguments are too long")
			   : 0;
}

static int args_fd(struct host *h, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(BOX_MAX_REQUEST);
	int r = make_args(h, &b, err), fd = -1;

	if (r == 0) {
		r = fd = vx_memfd("vx-args");
		if (r >= 0)
			r = vx_write_full(fd, vx_buf_str(&b), b.len);
		if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
			r = -errno;
		if (r < 0)
			vx_err_set(err, r, "sandbox: cannot pass bubblewrap its arguments: %s",
				vx_strerror(r));
	}
	vx_buf_free(&b);
	if (r < 0)
		vx_close(fd);
	return r < 0 ? r : fd;
}

static int spawn(struct host *h, const int fds[BOX_MAX_FDS], int args, int rules, int control,
	int errors, int checks)
{
	static const char *const envp[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
	const char *const argv[] = {"bwrap", "--args", "6", "/proc/self/fd/5", NULL};
	struct vx_spawn_fd pass[] = {{fds[3], 1}, {errors, 2}, {control, VX_INIT_FD_CONTROL},
		{fds[1], VX_INIT_FD_PAYLOAD}, {h->init, VX_INIT_FD_SELF}, {args, FD_ARGS},
		{rules, FD_RULES}, {h->newer_fd, FD_NEWER}, {fds[4], VX_INIT_FD_STDERR},
		{fds[2], 0}, {checks, VX_INIT_FD_CHECKS}};
	struct vx_spawn s = VX_SPAWN_INIT;

	s.path = h->bwrap;
	s.argv = argv;
	s.envp = envp;
	s.cwd = "/";
	s.fds = pass;
	s.n_fds = sizeof pass / sizeof *pass - (checks < 0 ? 1 : 0);
	s.death_signal = SIGKILL;
	s.join_cgroup_fd = fds[BOX_FIXED_FDS];
	s.join_cgroup_fd2 = fds[BOX_FIXED_FDS + 1];
	return vx_spawn(&s, &h->at.pid, &h->at.pidfd, NULL);
}

int launch(struct host *h, const int fds[BOX_MAX_FDS], struct vx_err *err)
{
	struct box_seccomp o = {.no_unix = h->at.r.no_unix,
		.no_net = !h->at.r.share_net,
		.nesting = h->at.r.nesting};
	int rules = launch_filter(h, o, err), args = -1, checks = -1, pair[2] = {-1, -1},
	    pipe[2] = {-1, -1}, r = rules;

	if (r >= 0)
		r = args = args_fd(h, err);
	if (r >= 0 && h->plain)
		r = checks = plain_checks(h, err);
	if (r >= 0) {
		if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
			r = -errno;
		else
			r = vx_pipe(pipe);
		if (r >= 0)
			r = vx_nonblock(pipe[0]);
		/* vx-init's messages carry its pid, as we see it */
		if (r >= 0 &&
			setsockopt(pair[0], SOL_SOCKET, SO_PASSCRED, &(int){1}, sizeof(int)) < 0)
			r = -errno;
		if (r >= 0)
			r = spawn(h, fds, args, rules, pair[1], pipe[1], checks);
		if (r < 0)
			vx_err_set(
				err, r, "sandbox: cannot start %s: %s", h->bwrap, vx_strerror(r));
	}
	vx_close(args);
	vx_close(checks);
	vx_close(pair[1]);
	vx_close(pipe[1]);
	if (r < 0) {
		vx_close(pair[0]);
		vx_close(pipe[0]);
		return r;
	}
	h->at.control = pair[0];
	h->at.errors = pipe[0];
	return 0;
}
