/* The filters, run by an interpreter of classic BPF: for the architectures and entry points that
 * this machine does not have, too. */
#include "vxtest.h"

#include "../../worker/box/seccomp.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/stat.h>

struct prog {
	struct sock_filter f[4096];
	size_t n;
};

static void load(struct prog *p, int fd)
{
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	ssize_t n = read(fd, p->f, sizeof p->f);
	assert_true(n > 0 && n % (ssize_t)sizeof *p->f == 0 && n < (ssize_t)sizeof p->f);
	p->n = (size_t)n / sizeof *p->f;
	close(fd);
}

static void rules(struct prog *p, enum box_arch arch, struct box_seccomp o)
{
	int fd = vx_memfd("rules");

	assert_int_equal(box_seccomp_rules(arch, o, fd), 0);
	load(p, fd);
}

static void newer(struct prog *p, enum box_arch arch)
{
	int fd = vx_memfd("newer");

	assert_int_equal(box_seccomp_newer(arch, fd), 0);
	load(p, fd);
}

/* What the kernel's checker lets through and libseccomp writes. */
static uint32_t run(const struct prog *p, const struct seccomp_data *d)
{
	uint32_t a = 0;

	for (size_t i = 0; i < p->n; i++) {
		const struct sock_filter *f = &p->f[i];
		bool yes = false;
		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			assert_true(f->k % 4 == 0 && f->k < sizeof *d);
			memcpy(&a, (const char *)d + f->k, 4);
			continue;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			continue;
		case BPF_RET | BPF_K:
			return f->k;
		case BPF_JMP | BPF_JA:
			i += f->k;
			continue;
		case BPF_JMP | BPF_JEQ | BPF_K:
			yes = a == f->k;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			yes = a > f->k;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			yes = a >= f->k;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			yes = (a & f->k) != 0;
			break;
		default:
			fail_msg("instruction %zu: code %#x", i, f->code);
		}
		i += yes ? f->jt : f->jf;
	}
	fail_msg("no end");
	return 0;
}

static uint32_t ask(const struct prog *p, uint32_t arch, uint32_t nr, uint64_t a0, uint64_t a1)
{
	struct seccomp_data d = {.nr = (int)nr, .arch = arch, .args = {a0, a1}};

	return run(p, &d);
}

#define ALLOW SECCOMP_RET_ALLOW
#define DENY (SECCOMP_RET_ERRNO | EPERM)
#define NOSYS (SECCOMP_RET_ERRNO | ENOSYS)
#define X32 0x40000000U
#define HIGH 0xffffffff00000000ULL

static const struct box_seccomp strict = {.no_unix = true, .no_net = true};

/* Calls by their numbers: x86-64 (x32 the same but where given), i386, arm64, arm; 0: not there. */
static const struct call {
	const char *name;
	uint32_t x64, x32, i386, arm64, arm;
	uint64_t a0, a1;
	uint32_t want;
	uint64_t a2, a3;
} calls[] = {
	{"read", 0, 0, 3, 63, 3, 0, 0, ALLOW},
	{"openat", 257, 0, 295, 56, 322, 0, 0, ALLOW},
	{"socket(AF_UNIX)", 41, 0, 359, 198, 281, AF_UNIX, SOCK_STREAM, DENY},
	{"socket(AF_UNIX), high half set", 41, 0, 359, 198, 281, HIGH | AF_UNIX, SOCK_STREAM, DENY},
	{"socket(AF_INET)", 41, 0, 359, 198, 281, AF_INET, SOCK_STREAM, ALLOW},
	{"socket(AF_NETLINK)", 41, 0, 359, 198, 281, AF_NETLINK, SOCK_RAW, ALLOW},
	{"socket(AF_VSOCK)", 41, 0, 359, 198, 281, AF_VSOCK, SOCK_STREAM, DENY},
	{"socketpair(stream)", 53, 0, 360, 199, 288, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, ALLOW},
	{"socketpair(dgram)", 53, 0, 360, 199, 288, AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, DENY},
	{"socketpair(raw)", 53, 0, 360, 199, 288, AF_UNIX, SOCK_RAW, DENY},
	{"io_uring_setup", 425, 0, 425, 425, 425, 0, 0, NOSYS},
	{"io_uring_enter", 426, 0, 426, 426, 426, 0, 0, NOSYS},
	{"io_uring_register", 427, 0, 427, 427, 427, 0, 0, NOSYS},
	{"clone3", 435, 0, 435, 435, 435, 0, 0, NOSYS},
	{"clone(thread)", 56, 0, 120, 220, 120,
		CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD, 0, ALLOW},
	{"clone(NEWUSER)", 56, 0, 120, 220, 120, CLONE_NEWUSER | 17, 0, DENY},
	{"clone(NEWNS), high half set", 56, 0, 120, 220, 120, HIGH | CLONE_NEWNS, 0, DENY},
	{"clone(NEWPID)", 56, 0, 120, 220, 120, CLONE_NEWPID, 0, DENY},
	{"unshare(FILES)", 272, 0, 310, 97, 337, CLONE_FILES, 0, ALLOW},
	{"unshare(NEWUSER)", 272, 0, 310, 97, 337, CLONE_NEWUSER, 0, DENY},
	{"unshare(NEWNET)", 272, 0, 310, 97, 337, CLONE_NEWNET, 0, DENY},
	{"unshare(NEWCGROUP)", 272, 0, 310, 97, 337, CLONE_NEWCGROUP, 0, DENY},
	{"unshare(NEWTIME)", 272, 0, 310, 97, 337, 0x80, 0, DENY},
	{"setns", 308, 0, 346, 268, 375, 3, 0, DENY},
	{"ioctl(TIOCSTI)", 16, 514, 54, 29, 54, 0, 0x5412, DENY},
	{"ioctl(TIOCSTI), high half set", 16, 514, 54, 29, 54, 0, HIGH | 0x5412, DENY},
	{"ioctl(TIOCLINUX)", 16, 514, 54, 29, 54, 0, 0x541c, DENY},
	{"ioctl(TIOCGWINSZ)", 16, 514, 54, 29, 54, 0, 0x5413, ALLOW},
	{"keyctl", 250, 0, 288, 219, 311, 0, 0, DENY},
	{"add_key", 248, 0, 286, 217, 309, 0, 0, DENY},
	{"request_key", 249, 0, 287, 218, 310, 0, 0, DENY},
	{"mount", 165, 0, 21, 40, 21, 0, 0, DENY},
	{"umount2", 166, 0, 52, 39, 52, 0, 0, DENY},
	{"umount", 0, 0, 22, 0, 0, 0, 0, DENY},
	{"pivot_root", 155, 0, 217, 41, 218, 0, 0, DENY},
	{"open_tree", 428, 0, 428, 428, 428, 0, 0, DENY},
	{"move_mount", 429, 0, 429, 429, 429, 0, 0, DENY},
	{"fsopen", 430, 0, 430, 430, 430, 0, 0, DENY},
	{"fsconfig", 431, 0, 431, 431, 431, 0, 0, DENY},
	{"fsmount", 432, 0, 432, 432, 432, 0, 0, DENY},
	{"fspick", 433, 0, 433, 433, 433, 0, 0, DENY},
	{"mount_setattr", 442, 0, 442, 442, 442, 0, 0, DENY},
	{"kexec_load", 246, 528, 283, 104, 347, 0, 0, DENY},
	{"kexec_file_load", 320, 0, 0, 294, 0, 0, 0, DENY},
	{"init_module", 175, 0, 128, 105, 128, 0, 0, DENY},
	{"finit_module", 313, 0, 350, 273, 379, 0, 0, DENY},
	{"delete_module", 176, 0, 129, 106, 129, 0, 0, DENY},
	{"bpf", 321, 0, 357, 280, 386, 0, 0, DENY},
	{"perf_event_open", 298, 0, 336, 241, 364, 0, 0, DENY},
	{"userfaultfd", 323, 0, 374, 282, 388, 0, 0, DENY},
	{"open_by_handle_at", 304, 0, 342, 265, 371, 0, 0, DENY},
	{"chmod 0755", 90, 0, 15, 0, 15, 0, 0755, ALLOW},
	{"chmod 01777", 90, 0, 15, 0, 15, 0, 01777, ALLOW},
	{"chmod 04755", 90, 0, 15, 0, 15, 0, 04755, DENY},
	{"chmod 02755, high half set", 90, 0, 15, 0, 15, 0, HIGH | 02755, DENY},
	{"chmod 06755, a file's type beside", 90, 0, 15, 0, 15, 0, S_IFREG | 06755, DENY},
	{"fchmod 04755", 91, 0, 94, 52, 94, 0, 04755, DENY},
	{"fchmod 0644", 91, 0, 94, 52, 94, 0, 0644, ALLOW},
	{"fchmodat 02755", 268, 0, 306, 53, 333, 0, 0, DENY, 02755},
	{"fchmodat 0755", 268, 0, 306, 53, 333, 0, 04000, ALLOW, 0755},
	{"creat 04755", 85, 0, 8, 0, 8, 0, 04755, DENY},
	{"creat 0666", 85, 0, 8, 0, 8, 0, 0666, ALLOW},
	{"mknod 04755", 133, 0, 14, 0, 14, 0, S_IFREG | 04755, DENY},
	{"mknod of a pipe", 133, 0, 14, 0, 14, 0, S_IFIFO | 0644, ALLOW},
	{"mknodat 04755", 259, 0, 297, 33, 324, 0, 0, DENY, S_IFREG | 04755},
	{"open, making 04755", 2, 0, 5, 0, 5, 0, O_CREAT | O_WRONLY, DENY, 04755},
	{"open, making 02755", 2, 0, 5, 0, 5, 0, O_CREAT | O_WRONLY, DENY, 02755},
	{"open, making 0666", 2, 0, 5, 0, 5, 0, O_CREAT | O_WRONLY, ALLOW, 0666},
	{"open, making nothing", 2, 0, 5, 0, 5, 0, O_RDONLY, ALLOW, 04755},
	{"openat, making 04755", 257, 0, 295, 56, 322, 0, 0, DENY, O_CREAT | O_RDWR, 04755},
	{"openat, O_TMPFILE 04755", 257, 0, 295, 56, 322, 0, 0, DENY, 020000000 | O_RDWR, 04755},
	{"openat, making 0755", 257, 0, 295, 56, 322, 0, 0, ALLOW, O_CREAT | O_RDWR, 0755},
	{"openat, making nothing", 257, 0, 295, 56, 322, 0, 0, ALLOW, O_RDWR, 06755},
	{"openat2", 437, 0, 437, 437, 437, 0, 0, NOSYS},
	{"mkdir 02755", 83, 0, 39, 0, 39, 0, 02755, ALLOW},
	{"socketcall", 0, 0, 102, 0, 0, 1, 0, DENY},
	{"execve", 59, 520, 11, 221, 11, 0, 0, ALLOW},
	{"ptrace", 101, 521, 26, 117, 26, 0, 0, ALLOW},
};

static void check(
	const struct prog *p, uint32_t arch, uint32_t nr, const struct call *c, const char *where)
{
	struct seccomp_data d = {.nr = (int)nr, .arch = arch, .args = {c->a0, c->a1, c->a2, c->a3}};
	uint32_t got = run(p, &d);

	if (got != c->want)
		fail_msg("%s on %s (%u): %#x, not %#x", c->name, where, nr, got, c->want);
}

static void every_entry(void **state)
{
	static struct prog x86, arm;

	(void)state;
	rules(&x86, BOX_ARCH_X86_64, strict);
	rules(&arm, BOX_ARCH_ARM64, strict);
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		const struct call *c = &calls[i];
		if (c->x64 || !strcmp(c->name, "read")) {
			check(&x86, AUDIT_ARCH_X86_64, c->x64, c, "x86-64");
			check(&x86, AUDIT_ARCH_X86_64, X32 | (c->x32 ? c->x32 : c->x64), c, "x32");
		}
		if (c->i386)
			check(&x86, AUDIT_ARCH_I386, c->i386, c, "i386");
		if (c->arm64)
			check(&arm, AUDIT_ARCH_AARCH64, c->arm64, c, "arm64");
		if (c->arm)
			check(&arm, AUDIT_ARCH_ARM, c->arm, c, "arm");
	}
	/* no other way into the kernel */
	assert_int_equal(ask(&x86, AUDIT_ARCH_AARCH64, 63, 0, 0), SECCOMP_RET_KILL_PROCESS);
	assert_int_equal(ask(&arm, AUDIT_ARCH_X86_64, 0, 0, 0), SECCOMP_RET_KILL_PROCESS);
}

static void what_is_granted(void **state)
{
	static struct prog p;
	static const uint32_t nested[] = {165, 166, 155, 428, 429, 432, 442, 308};

	(void)state;
	rules(&p, BOX_ARCH_X86_64, (struct box_seccomp){.no_net = true});
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 41, AF_UNIX, SOCK_STREAM), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 53, AF_UNIX, SOCK_DGRAM), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 41, AF_VSOCK, SOCK_STREAM), DENY);
	rules(&p, BOX_ARCH_X86_64, (struct box_seccomp){.no_unix = true});
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 41, AF_UNIX, SOCK_STREAM), DENY);
	/* the host's network is granted whole */
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 41, AF_VSOCK, SOCK_STREAM), ALLOW);
	rules(&p, BOX_ARCH_X86_64,
		(struct box_seccomp){.no_unix = true, .no_net = true, .nesting = true});
	for (size_t i = 0; i < sizeof nested / sizeof *nested; i++)
		assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, nested[i], 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 272, CLONE_NEWUSER, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 435, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 437, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 90, 0, 04755), DENY);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 321, 0, 0), DENY);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 41, AF_UNIX, 0), DENY);
}

static void newer_calls(void **state)
{
	static struct prog p;

	(void)state;
	newer(&p, BOX_ARCH_X86_64);
	for (uint32_t nr = 0; nr < 450; nr++)
		assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, nr, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 511, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 548, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, 100000, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, X32 | 520, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, X32 | 511, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_X86_64, X32 | 548, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_I386, 384, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_I386, 500, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_I386, 512, 0, 0), NOSYS);
	newer(&p, BOX_ARCH_ARM64);
	assert_int_equal(ask(&p, AUDIT_ARCH_AARCH64, 291, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_AARCH64, 439, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_AARCH64, 500, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_ARM, 0x0f0005, 0, 0), ALLOW);
	assert_int_equal(ask(&p, AUDIT_ARCH_ARM, 500, 0, 0), NOSYS);
	assert_int_equal(ask(&p, AUDIT_ARCH_ARM, 0x0f0100, 0, 0), NOSYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(every_entry),
		cmocka_unit_test(what_is_granted), cmocka_unit_test(newer_calls)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
