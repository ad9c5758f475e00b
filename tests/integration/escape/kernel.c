/* Namespaces, mounts, and the rest of the kernel's doors. */
#include "attempt.h"

#include <linux/capability.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <sys/mman.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/swap.h>
#include <sys/time.h>
#include <sys/wait.h>

static int bind_mount(void)
{
	return must_be(mount("/", "dist", NULL, MS_BIND, NULL), EPERM) |
	       must_be(mount(env("T_OUT"), "dist", NULL, MS_BIND | MS_REC, NULL), EPERM);
}
static int mount_tmpfs(void)
{
	return must_be(mount("t", "/tmp", "tmpfs", 0, NULL), EPERM) |
	       must_be(mount("proc", "/tmp", "proc", 0, NULL), EPERM);
}
static int remount_writable(void)
{
	return must_be(mount(NULL, "src", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM) |
	       must_be(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL), EPERM);
}
static int unmount(void)
{
	return must_be(umount2(env("T_WS"), MNT_DETACH), EPERM) |
	       must_be(umount2("src", 0), EPERM) | must_be(umount2("/proc", MNT_DETACH), EPERM) |
	       must_be(umount2(in("T_HOME", ".ssh"), MNT_DETACH), EPERM);
}
static int pivot(void)
{
	return must_be(syscall(SYS_pivot_root, "/tmp", "/tmp"), EPERM);
}
static int change_root(void)
{
	return must_fail(chroot("/tmp"));
}
static int new_mount_api(void)
{
	return must_be(syscall(SYS_open_tree, AT_FDCWD, "/", 1), EPERM) |
	       must_be(syscall(SYS_fsopen, "tmpfs", 0), EPERM) |
	       must_be(syscall(SYS_move_mount, AT_FDCWD, "/tmp", AT_FDCWD, "dist", 0), EPERM) |
	       must_be(syscall(SYS_fsmount, 0, 0, 0), EPERM) |
	       must_be(syscall(SYS_fspick, AT_FDCWD, "/", 0), EPERM) |
	       must_be(syscall(SYS_fsconfig, 0, 0, 0, 0, 0), EPERM) |
	       must_be(syscall(442 /* mount_setattr */, AT_FDCWD, "src", 0, NULL, 0), EPERM);
}
static int unshare_each(void)
{
	static const int flags[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID, CLONE_NEWNET,
		CLONE_NEWIPC, CLONE_NEWUTS, CLONE_NEWCGROUP, 0x80 /* NEWTIME */,
		CLONE_NEWUSER | CLONE_NEWNS, CLONE_NEWUSER | CLONE_FS};
	int r = HELD;

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
		r |= must_be(syscall(SYS_unshare, flags[i]), EPERM);
	/* the kernel reads 32 bits, a filter must too */
	return r | must_fail(syscall(SYS_unshare, 0xffffffff00000000UL | CLONE_NEWUSER));
}
static int clone_namespace(void)
{
	static const unsigned long flags[] = {CLONE_NEWUSER, CLONE_NEWNS, CLONE_NEWPID,
		CLONE_NEWUSER | CLONE_NEWPID, CLONE_NEWNET, CLONE_NEWCGROUP};
	int r = HELD;

	for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) {
		long p = syscall(SYS_clone, flags[i] | SIGCHLD, 0, 0, 0, 0);
		if (p == 0)
			_exit(0);
		r |= must_be(p, EPERM);
	}
	return r;
}
static int clone3_namespace(void)
{
	unsigned long args[11] = {CLONE_NEWUSER};

	args[4] = SIGCHLD;
	return must_be(syscall(435, args, sizeof args), ENOSYS);
}
static int set_namespace(void)
{
	static const char *const ns[] = {"mnt", "user", "net", "pid", "ipc"};
	char path[64];
	int r = HELD;

	for (size_t i = 0; i < sizeof ns / sizeof *ns; i++) {
		for (int who = 0; who < 2; who++) {
			snprintf(path, sizeof path, "/proc/%s/ns/%s", who ? "1" : "self", ns[i]);
			int fd = open(path, O_RDONLY | O_CLOEXEC);
			r |= must_fail(syscall(SYS_setns, fd, 0));
			if (fd >= 0)
				close(fd);
		}
	}
	return r;
}
static int capabilities(void)
{
	struct __user_cap_header_struct h = {_LINUX_CAPABILITY_VERSION_3, 0};
	struct __user_cap_data_struct d[2] = {{0}, {0}};
	int r = HELD;

	syscall(SYS_capget, &h, d);
	if (d[0].effective | d[1].effective | d[0].permitted | d[1].permitted | d[0].inheritable |
		d[1].inheritable)
		r = ESCAPED;
	for (unsigned long c = 0; c < 41; c++)
		if (prctl(PR_CAPBSET_READ, c, 0, 0, 0) == 1 ||
			prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_IS_SET, c, 0, 0) == 1)
			r = ESCAPED;
	if (prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1)
		r = ESCAPED;
	d[0].permitted = d[0].effective = 1U << CAP_SYS_CHROOT;
	return r | must_fail(syscall(SYS_capset, &h, d)) |
	       must_fail(prctl(PR_SET_SECUREBITS, 0, 0, 0, 0));
}
static int change_identity(void)
{
	return must_fail(setuid(getuid() == 0 ? 1 : 0)) | must_fail(setgid(getgid() == 0 ? 1 : 0)) |
	       must_fail(syscall(SYS_setgroups, 0, NULL)) |
	       must_fail(setresuid(getuid() + 1, getuid() + 1, getuid() + 1));
}
static int suid_program(void)
{
	const char *suid = getenv("T_SUID");
	int status;

	if (!suid || access(suid, X_OK) < 0)
		return cannot("no setuid program that another user owns");
	pid_t p = fork();
	if (p == 0) {
		execl(suid, suid, "-u", (char *)NULL);
		_exit(99);
	}
	int out[2];
	if (pipe(out) < 0)
		return cannot_call("pipe");
	waitpid(p, &status, 0);
	p = fork();
	if (p == 0) {
		dup2(out[1], 1);
		execl(suid, suid, "-u", (char *)NULL);
		_exit(99);
	}
	close(out[1]);
	char text[32] = "";
	ssize_t n = read(out[0], text, sizeof text - 1);
	waitpid(p, &status, 0);
	return n > 0 && (uid_t)atoi(text) == getuid() ? HELD : ESCAPED;
}
static int io_uring(void)
{
	char params[256] = {0};

	return must_be(syscall(425, 1, params), ENOSYS) |
	       must_be(syscall(426, 0, 0, 0, 0, 0), ENOSYS) |
	       must_be(syscall(427, 0, 0, 0, 0), ENOSYS);
}
static int keyrings(void)
{
	return must_be(syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, -3, 1), EPERM) |
	       must_be(syscall(SYS_add_key, "user", "x", "y", 1, -2), EPERM) |
	       must_be(syscall(SYS_request_key, "user", "x", NULL, 0), EPERM);
}
static int inject_terminal_input(void)
{
	char c = 'x';

	return must_be(ioctl(0, TIOCSTI, &c), EPERM) |
	       must_be(syscall(SYS_ioctl, 0, 0xffffffff00000000UL | TIOCSTI, &c), EPERM) |
	       must_be(ioctl(0, TIOCLINUX, &c), EPERM);
}
static int open_terminal(void)
{
	return must_fail(open("/dev/tty", O_RDWR | O_CLOEXEC)) |
	       must_fail(open("/dev/ptmx", O_RDWR | O_CLOEXEC)) |
	       must_fail(open("/dev/console", O_RDWR | O_CLOEXEC));
}
static int load_code(void)
{
	return must_be(syscall(SYS_init_module, NULL, 0, ""), EPERM) |
	       must_be(syscall(SYS_finit_module, -1, "", 0), EPERM) |
	       must_be(syscall(SYS_delete_module, "x", 0), EPERM) |
	       must_be(syscall(SYS_kexec_load, 0, 0, NULL, 0), EPERM) |
	       must_be(syscall(SYS_kexec_file_load, -1, -1, 0, "", 0), EPERM);
}
static int bpf_perf_userfaultfd(void)
{
	char attr[128] = {0};

	return must_be(syscall(SYS_bpf, 0, attr, sizeof attr), EPERM) |
	       must_be(syscall(SYS_perf_event_open, attr, 0, -1, -1, 0), EPERM) |
	       must_be(syscall(SYS_userfaultfd, 0), EPERM);
}
static int newer_than_the_rules(void)
{
	int r = HELD;

	for (long n = 457 /* what libseccomp 2.5 does not know */; n < 600; n++)
		if (syscall(n, 0, 0, 0, 0, 0, 0) >= 0 || (errno != ENOSYS && errno != EPERM)) {
			printf("call %ld: errno %d\n", n, errno);
			r = ESCAPED;
		}
	return r;
}
static int machine_wide(void)
{
	struct timeval t = {0, 0};

	return must_fail(sethostname("x", 1)) | must_fail(settimeofday(&t, NULL)) |
	       must_fail(swapon("dist/x", 0)) | must_fail(syscall(SYS_acct, "dist/acct")) |
	       must_fail(syscall(SYS_reboot, 0xfee1dead, 672274793, 0, NULL)) |
	       must_fail(syscall(SYS_syslog, 5, NULL, 0)) | must_fail(nice(-5) == -1 ? -1 : 0);
}
static int sysctls(void)
{
	static const char *const names[] = {"kernel/hostname", "kernel/core_pattern",
		"kernel/modprobe", "kernel/hotplug", "kernel/panic", "kernel/sysrq",
		"vm/overcommit_memory", "vm/drop_caches", "fs/suid_dumpable",
		"fs/binfmt_misc/register", "net/ipv4/ip_forward", "kernel/poweroff_cmd",
		"user/max_user_namespaces"};
	char path[128];
	int r = HELD;

	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		snprintf(path, sizeof path, "/proc/sys/%s", names[i]);
		r |= can_write(path);
	}
	return r;
}
static int core_pattern(void)
{
	/* what stands there is written back: an attempt that succeeds must not hand the machine's
	 * crashes to a program */
	char now[256];
	int in = open("/proc/sys/kernel/core_pattern", O_RDONLY | O_CLOEXEC),
	    out = open("/proc/sys/kernel/core_pattern", O_WRONLY | O_CLOEXEC);
	ssize_t n = in >= 0 ? read(in, now, sizeof now) : -1;

	if (out >= 0 && n > 0)
		(void)!write(out, now, (size_t)n);
	return out >= 0 ? ESCAPED : HELD;
}
static int proc_files(void)
{
	return can_write("/proc/sysrq-trigger") | can_write("/proc/irq/default_smp_affinity") |
	       can_write("/proc/bus/pci/00/00.0") | can_write("/proc/mtrr") |
	       can_write("/proc/acpi/wakeup") | can_write("/proc/scsi/scsi") |
	       can_write("/proc/timer_stats") | can_write("/proc/dynamic_debug/control") |
	       can_read("/proc/kcore") | can_read("/proc/kmsg");
}
static int weaken_filter(void)
{
	/* a second filter that allows everything does not lift the first */
	struct {
		unsigned short code;
		unsigned char jt, jf;
		unsigned k;
	} allow = {6, 0, 0, 0x7fff0000};
	struct {
		unsigned short n;
		void *p;
	} prog = {1, &allow};

	if (prctl(PR_SET_SECCOMP, 2, &prog, 0, 0) < 0)
		return cannot_call("seccomp");
	return must_be(syscall(SYS_unshare, CLONE_NEWUSER), EPERM) |
	       must_be(syscall(SYS_add_key, "user", "x", "y", 1, -2), EPERM);
}
static int memfd_exec(void)
{
	char buf[65536];
	ssize_t n;
	int status, m = memfd_create("x", 0), self = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	while ((n = read(self, buf, sizeof buf)) > 0)
		if (write(m, buf, (size_t)n) != n)
			return cannot_call("memfd_create");
	pid_t p = fork();
	if (p == 0) { /* the copy runs, in the same sandbox */
		char name[64], *argv[] = {name, "read-sibling", NULL};
		snprintf(name, sizeof name, "/proc/self/fd/%d", m);
		execv(name, argv);
		_exit(HELD);
	}
	waitpid(p, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : ESCAPED;
}
static int i386_entry(void)
{
#ifdef __x86_64__
	/* int $0x80 takes i386 numbers: unshare 310, mount 21, socketcall 102, socket 359,
	 * io_uring_setup 425, add_key 286, clone3 435 */
	static const struct {
		int nr;
		unsigned long a, b, c;
		int error;
	} t[] = {{310, CLONE_NEWUSER, 0, 0, EPERM}, {21, 0, 0, 0, EPERM}, {102, 1, 0, 0, EPERM},
		{359, 1, 1, 0, EPERM}, {425, 1, 0, 0, ENOSYS}, {286, 0, 0, 0, EPERM},
		{435, 0, 0, 0, ENOSYS}, {54, 0, TIOCSTI, 0, EPERM}, {336, 0, 0, 0, EPERM},
		{120, CLONE_NEWUSER, 0, 0, EPERM}, {346, -1UL, 0, 0, EPERM}, {357, 0, 0, 0, EPERM},
		{500, 0, 0, 0, ENOSYS}};
	int r = HELD, status;

	for (size_t i = 0; i < sizeof t / sizeof *t; i++) {
		pid_t p = fork(); /* where the kernel has no i386 entry this is a fault */
		if (p == 0) {
			long v;
			__asm__ volatile("int $0x80"
					 : "=a"(v)
					 : "a"((long)t[i].nr), "b"(t[i].a), "c"(t[i].b), "d"(t[i].c)
					 : "memory", "r8", "r9", "r10", "r11");
			if ((int)v != -t[i].error)
				printf("i386 call %d: %ld\n", t[i].nr, v);
			fflush(stdout);
			_exit((int)v == -t[i].error ? HELD : ESCAPED);
		}
		waitpid(p, &status, 0);
		if (WIFSIGNALED(status))
			return cannot("this kernel has no i386 entry");
		r |= WEXITSTATUS(status);
	}
	return r;
#else
	return cannot("another architecture");
#endif
}
static int x32_entry(void)
{
#ifdef __x86_64__
	const long bit = 0x40000000;

	return must_fail(syscall(bit | SYS_unshare, CLONE_NEWUSER)) |
	       must_fail(syscall(bit | SYS_socket, 1, 1, 0)) |
	       must_fail(syscall(bit | SYS_mount, "t", "/tmp", "tmpfs", 0, NULL)) |
	       must_fail(syscall(bit | 425, 1, NULL));
#else
	return cannot("another architecture");
#endif
}

const struct attempt kernel_attempts[] = {{"bind-mount", bind_mount}, {"mount-tmpfs", mount_tmpfs},
	{"remount-writable", remount_writable}, {"unmount", unmount}, {"pivot-root", pivot},
	{"chroot", change_root}, {"new-mount-api", new_mount_api}, {"unshare", unshare_each},
	{"clone-namespace", clone_namespace}, {"clone3", clone3_namespace},
	{"setns", set_namespace}, {"capabilities", capabilities},
	{"change-identity", change_identity}, {"suid-program", suid_program},
	{"io-uring", io_uring}, {"keyrings", keyrings},
	{"inject-terminal-input", inject_terminal_input}, {"open-terminal", open_terminal},
	{"load-code", load_code}, {"bpf-perf-userfaultfd", bpf_perf_userfaultfd},
	{"newer-than-the-rules", newer_than_the_rules}, {"machine-wide", machine_wide},
	{"sysctls", sysctls}, {"core-pattern", core_pattern}, {"proc-files", proc_files},
	{"weaken-filter", weaken_filter}, {"memfd-exec", memfd_exec}, {"i386-entry", i386_entry},
	{"x32-entry", x32_entry}, {NULL, NULL}};
