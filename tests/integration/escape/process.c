/* Other processes: pid 1, those outside, and what a process may have been left with. */
#include "attempt.h"

#include <dirent.h>
#include <mqueue.h>
#include <signal.h>
#include <sys/ipc.h>
#include <sys/msg.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/shm.h>
#include <sys/uio.h>

static int host_pid(void)
{
	return atoi(env("T_HOSTPID"));
}
static int trace_init(void)
{
	return must_fail(ptrace(PTRACE_ATTACH, 1, 0, 0)) | must_fail(ptrace(PTRACE_SEIZE, 1, 0, 0));
}
static int trace_outside(void)
{
	return must_fail(ptrace(PTRACE_ATTACH, host_pid(), 0, 0));
}
static int read_init_memory(void)
{
	char b[8];
	struct iovec l = {b, 8}, r = {(void *)0x400000, 8};

	return must_fail(process_vm_readv(1, &l, 1, &r, 1, 0)) | can_read("/proc/1/mem") |
	       can_read("/proc/1/environ") | can_read("/proc/1/maps");
}
static int write_init_memory(void)
{
	char b[8] = "";
	struct iovec l = {b, 8}, r = {(void *)0x400000, 8};

	return must_fail(process_vm_writev(1, &l, 1, &r, 1, 0)) |
	       must_fail(open("/proc/1/mem", O_RDWR | O_CLOEXEC));
}
static int steal_init_descriptor(void)
{
	int fd = (int)syscall(SYS_pidfd_open, 1, 0), r = HELD;

	if (fd < 0)
		return cannot_call("pidfd_open");
	for (int i = 0; i < 16; i++)
		r |= must_fail(syscall(438 /* pidfd_getfd */, fd, i, 0));
	return r;
}
static int open_init_descriptor(void)
{
	char path[64];
	int r = HELD;

	for (int i = 0; i < 16; i++) {
		snprintf(path, sizeof path, "/proc/1/fd/%d", i);
		r |= must_fail(open(path, O_RDWR | O_CLOEXEC)) |
		     must_fail(open(path, O_RDONLY | O_CLOEXEC));
	}
	return r;
}
static int kill_init(void)
{
	/* every signal there is; pid 1 takes none from inside */
	for (int s = 1; s < 65; s++)
		kill(1, s);
	usleep(20000);
	return kill(1, 0) == 0 ? HELD : ESCAPED;
}
static int kill_outside(void)
{
	return must_be(kill(host_pid(), SIGKILL), ESRCH);
}
static int kill_everything(void)
{
	/* run.py looks whether its own processes live */
	signal(SIGTERM, SIG_IGN);
	kill(-1, SIGTERM);
	return HELD;
}
static int limits_of_outside(void)
{
	struct rlimit l = {0, 0};

	return must_fail(prlimit(host_pid(), RLIMIT_NOFILE, &l, NULL)) |
	       must_fail(setpriority(PRIO_PROCESS, (id_t)host_pid(), 5));
}
static int see_outside(void)
{
	char path[64];

	snprintf(path, sizeof path, "/proc/%d/cmdline", host_pid());
	int r = can_read(path), n = 0;
	DIR *d = opendir("/proc");
	struct dirent *e;
	while (d && (e = readdir(d)))
		n += e->d_name[0] >= '0' && e->d_name[0] <= '9';
	if (n > 3) {
		printf("%d processes\n", n);
		r = ESCAPED;
	}
	return r;
}
static int leaked_descriptors(void)
{
	int r = HELD;

	for (int fd = 3; fd < 4096; fd++)
		if (fcntl(fd, F_GETFD) >= 0) {
			printf("descriptor %d\n", fd);
			r = ESCAPED;
		}
	return r;
}
static int shared_region(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "re");
	int r = HELD;

	while (f && fgets(line, sizeof line, f))
		if (strstr(line, "memfd:"))
			r = ESCAPED;
	if (f)
		fclose(f);
	return r;
}
static int environment(void)
{
	int r = HELD;

	for (char **e = environ; *e; e++)
		if (!strncmp(*e, "T_HOSTONLY", 10) || !strncmp(*e, "VX_BOX", 6))
			r = ESCAPED;
	return r;
}
static int sysv_ipc(void)
{
	return must_fail(shmget((key_t)atoi(env("T_SHMKEY")), 0, 0)) |
	       must_fail(msgget((key_t)atoi(env("T_SHMKEY")), 0));
}
static int posix_queue(void)
{
	return must_fail(mq_open("/vx-escape", O_RDONLY));
}
static int preload_into_init(void)
{
	/* LD_PRELOAD is in this task's environment: had pid 1 or bwrap loaded it, the library would
	 * have left a mark */
	return access("dist/preload-1", F_OK) == 0 ? ESCAPED : HELD;
}
static int own_session(void)
{
	return getsid(0) == getpid() || getsid(0) == getppid() ? HELD
	       : getsid(0) > 1                                 ? HELD
							       : ESCAPED;
}

const struct attempt process_attempts[] = {{"trace-init", trace_init},
	{"trace-outside", trace_outside}, {"read-init-memory", read_init_memory},
	{"write-init-memory", write_init_memory}, {"steal-init-descriptor", steal_init_descriptor},
	{"open-init-descriptor", open_init_descriptor}, {"kill-init", kill_init},
	{"kill-outside", kill_outside}, {"kill-everything", kill_everything},
	{"limits-of-outside", limits_of_outside}, {"see-outside", see_outside},
	{"leaked-descriptors", leaked_descriptors}, {"shared-region", shared_region},
	{"environment", environment}, {"sysv-ipc", sysv_ipc}, {"posix-queue", posix_queue},
	{"preload-into-init", preload_into_init}, {"own-session", own_session}, {NULL, NULL}};
