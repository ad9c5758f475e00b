/* Interfaces that reach over processes, file systems and namespaces; and attempts from a user
 * namespace of the task's own, where it may have one. */
#include "attempt.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <signal.h>
#include <sys/fanotify.h>
#include <sys/io.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/msg.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/shm.h>
#include <sys/socket.h>
#include <sys/timex.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>

#define FS_SHUTDOWN 0x8004587dUL /* _IOR('X', 125, __u32): of ext4, xfs, f2fs */

static int fanotify(void)
{
	int r = must_fail(fanotify_init(FAN_CLASS_CONTENT, O_RDONLY)) |
		must_fail(fanotify_init(FAN_CLASS_PRE_CONTENT, O_RDONLY));
	/* watching single inodes is anybody's right */
	int fd = fanotify_init(FAN_CLASS_NOTIF | FAN_REPORT_FID, O_RDONLY);

	if (fd < 0)
		return r;
	return r |
	       must_fail(
		       fanotify_mark(fd, FAN_MARK_ADD | FAN_MARK_MOUNT, FAN_OPEN, AT_FDCWD, "/")) |
	       must_fail(fanotify_mark(
		       fd, FAN_MARK_ADD | FAN_MARK_FILESYSTEM, FAN_OPEN, AT_FDCWD, "dist"));
}
static int secret_memory(void)
{
	struct rlimit l;
	int fd = (int)syscall(447 /* memfd_secret */, 0);

	if (fd < 0)
		return HELD;
	getrlimit(RLIMIT_MEMLOCK, &l);
	if (l.rlim_cur == RLIM_INFINITY)
		return cannot("no limit of locked memory");
	size_t n = l.rlim_cur + 4096; /* what cannot be swapped is bounded */
	void *p = ftruncate(fd, (off_t)n) < 0
			  ? MAP_FAILED
			  : mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	return p == MAP_FAILED ? HELD : ESCAPED;
}
static int advise_others(void)
{
	int one = (int)syscall(SYS_pidfd_open, 1, 0);
	struct {
		void *p;
		size_t n;
	} v = {(void *)0x400000, 4096};

	return must_fail(syscall(440 /* process_madvise */, one, &v, 1, MADV_COLD, 0)) |
	       must_fail(syscall(448 /* process_mrelease */, one, 0)) |
	       must_fail(syscall(SYS_kcmp, getpid(), 1, 1, 0, 0)) |
	       must_fail(syscall(SYS_move_pages, 1, 0, NULL, NULL, NULL, 0)) |
	       must_fail(syscall(SYS_migrate_pages, 1, 0, NULL, NULL)) |
	       must_fail(syscall(SYS_get_robust_list, 1, &v.p, &v.n));
}
static int own_descriptor_of_outside(void)
{
	int fd = (int)syscall(SYS_pidfd_open, atoi(env("T_HOSTPID")), 0);

	return must_fail(fd) | must_fail(fcntl(0, F_SETOWN, atoi(env("T_HOSTPID"))));
}
static int port_io(void)
{
	return must_fail(iopl(3)) | must_fail(ioperm(0x80, 1, 1));
}
static int real_time(void)
{
	struct sched_param p = {.sched_priority = 1};

	return must_fail(sched_setscheduler(0, SCHED_FIFO, &p));
}
static int set_clock(void)
{
	struct timespec t;
	struct timex x = {0};

	/* to what it is: an attempt that succeeds must not harm the machine */
	clock_gettime(CLOCK_REALTIME, &t);
	adjtimex(&x);
	x.modes = ADJ_FREQUENCY;
	return must_fail(clock_settime(CLOCK_REALTIME, &t)) | must_fail(adjtimex(&x));
}
/* The file system of a granted directory is the machine's. */
static int freeze_file_system(void)
{
	int d = open("dist", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
	    file = open("dist/f", O_RDWR | O_CREAT | O_CLOEXEC, 0644);
	unsigned long long range[3] = {0, 4096, 0};
	int flags = 0x10 /* FS_IMMUTABLE_FL */,
	    none = 99; /* no way to shut down, which is looked at after the permission */

	int r = must_fail(ioctl(d, FIFREEZE, 0));
	if (r == ESCAPED)
		ioctl(d, FITHAW, 0);
	if (ioctl(d, FS_SHUTDOWN, &none) == 0 || (errno != EPERM && errno != ENOTTY))
		r = ESCAPED;
	r |= must_fail(ioctl(d, FITRIM, range)) | must_fail(ioctl(file, FS_IOC_SETFLAGS, &flags));
	flags = 0;
	ioctl(file, FS_IOC_SETFLAGS, &flags);
	unlink("dist/f");
	return r;
}
static int privileged_attributes(void)
{
	/* VFS_CAP_REVISION_2, effective */
	static const char caps[20] = {1, 0, 0, 2, -1, -1, -1, -1};
	int r;

	close(open("dist/f", O_RDWR | O_CREAT | O_CLOEXEC, 0755));
	r = must_fail(setxattr("dist/f", "security.capability", caps, sizeof caps, 0)) |
	    must_fail(setxattr("dist/f", "trusted.x", "y", 1, 0)) |
	    must_fail(setxattr("/bin/sh", "user.x", "y", 1, 0));
	unlink("dist/f");
	return r;
}
static int own_process_files(void)
{
	int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC), r = HELD;

	if (fd >= 0) /* opening it is fine; asking to be spared is not */
		r = must_fail(write(fd, "-1000", 5));
	fd = open("/proc/self/uid_map", O_WRONLY | O_CLOEXEC);
	r |= fd < 0 ? HELD : must_fail(write(fd, "0 0 1\n", 6));
	fd = open("/proc/self/setgroups", O_WRONLY | O_CLOEXEC);
	return r | (fd < 0 ? HELD : must_fail(write(fd, "allow", 5)));
}
static int ipc_by_number(void)
{
	struct shmid_ds s;
	struct msqid_ds m;
	int r = HELD;

	for (int i = 0; i < 4096; i++)
		r |= must_fail((long)shmat(i, NULL, SHM_RDONLY)) |
		     must_fail(shmctl(i, SHM_STAT, &s)) | must_fail(msgctl(i, MSG_STAT, &m)) |
		     must_fail(semctl(i, 0, GETVAL));
	return r;
}
static int odd_families(void)
{
	static const int families[] = {15 /* key */, 21 /* rds */, 30 /* tipc */,
		31 /* bluetooth */, 38 /* alg */, 39 /* nfc */, 40 /* vsock */, 41 /* kcm */,
		42 /* qipcrtr */, 43 /* smc */, 44 /* xdp */, 45 /* mctp */};
	int r = HELD;

	for (size_t i = 0; i < sizeof families / sizeof *families; i++)
		for (int type = 1; type <= 5; type++)
			r |= must_be(socket(families[i], type, 0), EPERM);
	return r;
}
static int abstract_names(void)
{
	char line[512];
	FILE *f = fopen("/proc/net/unix", "re");
	int r = HELD;

	while (f && fgets(line, sizeof line, f))
		if (strstr(line, env("T_ABSTRACT")))
			r = ESCAPED;
	if (f)
		fclose(f);
	return r;
}
/* A rule set of the task's own lies upon the sandbox; it opens nothing. */
static int landlock(void)
{
	unsigned long long handled[1] = {1ULL << 2 /* READ_FILE */};
	int fd = (int)syscall(444 /* landlock_create_ruleset */, handled, sizeof handled, 0);
	struct {
		unsigned long long allowed;
		int parent;
	} __attribute__((packed)) rule = {1ULL << 2, open("/", O_PATH | O_CLOEXEC)};

	if (fd < 0 || syscall(445, fd, 1, &rule, 0) < 0 || syscall(446, fd, 0) < 0)
		return cannot_call("Landlock");
	return can_read("../b/secret") | can_read(in("T_WS", "secret")) |
	       can_read(in("T_HOME", ".npmrc"));
}
/* A device that was granted: its terminal input is nobody's to push. */
static int granted_device(void)
{
	const char *path = getenv("T_DEVICE");
	int fd = path ? open(path, O_RDWR | O_NOCTTY | O_CLOEXEC) : -1;
	char c = 'x';

	if (fd < 0)
		return path ? cannot_call(path) : cannot("no device is granted");
	return must_be(ioctl(fd, TIOCSTI, &c), EPERM) | must_be(ioctl(fd, TIOCLINUX, &c), EPERM) |
	       must_be(syscall(SYS_ioctl, fd, 0xdeadbeef00000000UL | TIOCLINUX, &c), EPERM) |
	       can_read("/dev/kmsg") | can_read("/dev/mem");
}

/* ---- from a user namespace of our own, which only weakerWhenNested leaves to a task ---- */

static int may_nest(int more)
{
	return unshare(CLONE_NEWUSER | CLONE_NEWNS | more) == 0;
}
static int see_everything(void)
{
	return can_read(in("T_WS", "secret")) | can_read("../b/secret") |
	       can_read(in("T_HOME", ".ssh/id_rsa")) | can_read(in("T_HOME", ".npmrc")) |
	       can_read(in("T_WS", ".vx/cache/entry")) | can_write("src/x") |
	       can_write(in("T_OUT", "secret")) | can_write("work/.git/hooks/new");
}
static int nested_uncover(void)
{
	if (!may_nest(0))
		return HELD;
	int r = must_fail(umount2(env("T_WS"), MNT_DETACH)) |
		must_fail(umount2(in("T_HOME", ".ssh"), MNT_DETACH)) |
		must_fail(umount2(in("T_HOME", ".npmrc"), MNT_DETACH)) |
		must_fail(umount2("src", MNT_DETACH)) | must_fail(umount2("/tmp", MNT_DETACH)) |
		must_fail(umount2("work/.git/hooks", MNT_DETACH));
	return r | see_everything();
}
static int nested_remount(void)
{
	if (!may_nest(0))
		return HELD;
	mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL);
	return must_fail(mount(NULL, "src", NULL, MS_REMOUNT | MS_BIND, NULL)) |
	       must_fail(mount(NULL, "/", NULL, MS_REMOUNT | MS_BIND, NULL)) |
	       must_fail(mount(NULL, "work/.git/hooks", NULL, MS_REMOUNT | MS_BIND, NULL)) |
	       see_everything();
}
static int nested_copy_without_covers(void)
{
	if (!may_nest(0))
		return HELD;
	mkdir("dist/n", 0755);
	int r = must_fail(mount("/", "dist/n", NULL, MS_BIND, NULL)) |
		must_fail(syscall(SYS_open_tree, AT_FDCWD, "/", 1 /* CLONE */)) |
		must_fail(mount(env("T_HOME"), "dist/n", NULL, MS_BIND, NULL));
	/* with its covers it may be copied: they come along, locked */
	if (mount("/", "dist/n", NULL, MS_BIND | MS_REC, NULL) == 0) {
		char path[4096];
		snprintf(path, sizeof path, "dist/n%s", env("T_WS"));
		r |= must_fail(umount2(path, MNT_DETACH));
		snprintf(path, sizeof path, "dist/n%s/secret", env("T_WS"));
		r |= can_read(path);
		snprintf(path, sizeof path, "dist/n%s/.ssh/id_rsa", env("T_HOME"));
		r |= can_read(path);
		snprintf(path, sizeof path, "dist/n%s", in("T_OUT", "secret"));
		r |= can_write(path);
		umount2("dist/n", MNT_DETACH);
	}
	rmdir("dist/n");
	return r;
}
static int nested_move_cover(void)
{
	if (!may_nest(0))
		return HELD;
	mkdir("dist/n", 0755);
	int r = must_fail(mount(env("T_WS"), "dist/n", NULL, MS_MOVE, NULL)) |
		must_fail(mount(in("T_HOME", ".ssh"), "dist/n", NULL, MS_MOVE, NULL)) |
		must_fail(syscall(
			SYS_move_mount, AT_FDCWD, in("T_HOME", ".ssh"), AT_FDCWD, "dist/n", 0));
	rmdir("dist/n");
	return r | see_everything();
}
static int nested_magic_links(void)
{
	char path[4096];
	int r = HELD;

	if (!may_nest(CLONE_NEWPID))
		return HELD;
	for (int pid = 1; pid < 12; pid++) {
		snprintf(path, sizeof path, "/proc/%d/root%s", pid, in("T_WS", "secret"));
		r |= can_read(path);
		snprintf(path, sizeof path, "/proc/%d/cwd/../b/secret", pid);
		r |= can_read(path);
		snprintf(path, sizeof path, "/proc/%d/ns/mnt", pid);
		int fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd >= 0 && pid == 1)
			r |= must_fail(setns(fd, CLONE_NEWNS));
	}
	return r;
}
static int nested_fresh_proc(void)
{
	int status;

	if (!may_nest(CLONE_NEWPID))
		return HELD;
	pid_t p = fork(); /* the first in the new pid namespace */
	if (p == 0) {
		if (mount("proc", "/tmp", "proc", 0, NULL) < 0)
			_exit(HELD);
		_exit(can_write("/tmp/sys/kernel/core_pattern") |
			can_write("/tmp/sys/vm/drop_caches") | can_write("/tmp/sysrq-trigger") |
			can_read("/tmp/kcore") | can_read("/tmp/1/root/nowhere"));
	}
	waitpid(p, &status, 0);
	return WIFEXITED(status) ? WEXITSTATUS(status) : ESCAPED;
}
static int nested_cgroups(void)
{
	static const char *const kinds[] = {"memory", "devices", "freezer", "pids"};
	int r = HELD;

	if (!may_nest(CLONE_NEWCGROUP))
		return HELD;
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (mount("cgroup", "/tmp", "cgroup", 0, kinds[i]) == 0) {
			r |= can_write("/tmp/release_agent") | can_write("/tmp/vx-escape") |
			     can_write("/tmp/cgroup.procs") | can_write("/tmp/devices.allow");
			rmdir("/tmp/vx-escape");
			umount2("/tmp", MNT_DETACH);
		}
	if (mount("cgroup2", "/tmp", "cgroup2", 0, NULL) == 0)
		r |= can_write("/tmp/vx-escape") | can_write("/tmp/cgroup.procs");
	return r;
}
static int nested_device(void)
{
	if (!may_nest(0))
		return HELD;
	if (mount("t", "/tmp", "tmpfs", 0, NULL) < 0)
		return HELD;
	return must_fail(mknod("/tmp/mem", S_IFCHR | 0666, 0x101)) |
	       must_fail(mount("/dev/vda", "/tmp", "ext4", 0, NULL));
}

const struct attempt more_attempts[] = {{"fanotify", fanotify}, {"secret-memory", secret_memory},
	{"advise-others", advise_others}, {"own-descriptor-of-outside", own_descriptor_of_outside},
	{"port-io", port_io}, {"real-time", real_time}, {"set-clock", set_clock},
	{"freeze-file-system", freeze_file_system},
	{"privileged-attributes", privileged_attributes}, {"own-process-files", own_process_files},
	{"ipc-by-number", ipc_by_number}, {"odd-families", odd_families},
	{"abstract-names", abstract_names}, {"landlock", landlock},
	{"granted-device", granted_device}, {"nested-uncover", nested_uncover},
	{"nested-remount", nested_remount},
	{"nested-copy-without-covers", nested_copy_without_covers},
	{"nested-move-cover", nested_move_cover}, {"nested-magic-links", nested_magic_links},
	{"nested-fresh-proc", nested_fresh_proc}, {"nested-cgroups", nested_cgroups},
	{"nested-device", nested_device}, {NULL, NULL}};
