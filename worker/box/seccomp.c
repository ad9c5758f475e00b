/* The rules, by libseccomp; and the guard above them. */
#include "seccomp.h"

#include "vx/assert.h"
#include "vx/fd.h"

#include <asm/ioctls.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <sched.h>
#include <seccomp.h>
#include <stdlib.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/stat.h>

#define LOW_HALF 0xffffffffULL /* the kernel looks at 32 bits of these arguments, so must we */
#define TYPE_BITS 0xfULL       /* of socket(2)'s type; the rest are flags */
#define X32_BIT 0x40000000U
#define X32_FIRST 512U /* calls that x32 has for itself */
#define X32_LAST 547U
#define HIGHEST_TRIED 1024
#define NEW_TMPFILE 020000000U /* of O_TMPFILE what is not O_DIRECTORY, the same everywhere */

static const char *const always_eperm[] = {"keyctl", "add_key", "request_key", "kexec_load",
	"kexec_file_load", "init_module", "finit_module", "delete_module", "create_module", "bpf",
	"perf_event_open", "userfaultfd", "open_by_handle_at", "socketcall"};
static const char *const always_enosys[] = {
	"io_uring_setup", "io_uring_enter", "io_uring_register", "clone3"};
static const char *const mounts_eperm[] = {"mount", "umount", "umount2", "pivot_root", "open_tree",
	"move_mount", "fsopen", "fsconfig", "fsmount", "fspick", "mount_setattr", "open_tree_attr",
	"setns"};
static const uint32_t namespaces[] = {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
	CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};
#define NEWTIME 0x80U /* of unshare alone: in clone it is part of the exit signal */
/* Families that a network namespace contains. All others are refused without a network: vsock leads
 * to the hypervisor, AF_ALG to the kernel's ciphers, of which nothing here has need. */
static const int contained[] = {AF_UNSPEC, AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET};
#define HIGHEST_FAMILY 64

static uint32_t native_arch(enum box_arch arch)
{
	if (arch == BOX_ARCH_X86_64)
		return SCMP_ARCH_X86_64;
	if (arch == BOX_ARCH_ARM64)
		return SCMP_ARCH_AARCH64;
	return seccomp_arch_native();
}

static int one(
	scmp_filter_ctx c, uint32_t action, const char *name, uint32_t n, struct scmp_arg_cmp arg)
{
	int nr = seccomp_syscall_resolve_name(name);

	if (nr == __NR_SCMP_ERROR) /* this libseccomp does not know it: then it is above the guard,
				      or of no architecture here */
		return 0;
	return seccomp_rule_add_array(c, action, nr, n, &arg);
}

static int list(scmp_filter_ctx c, uint32_t action, const char *const *names, size_t n)
{
	int r = 0;

	for (size_t i = 0; i < n && r == 0; i++)
		r = one(c, action, names[i], 0, (struct scmp_arg_cmp){0});
	return r;
}

static int sockets(scmp_filter_ctx c, struct box_seccomp o)
{
	int r = 0;

	/* An end of a datagram pair could be connected anew, to any socket with a name; a stream's
	 * cannot. SOCK_RAW means SOCK_DGRAM to unix(7). */
	if (o.no_unix)
		r = one(c, SCMP_ACT_ERRNO(EPERM), "socketpair", 1,
			SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, TYPE_BITS, SOCK_DGRAM));
	if (o.no_unix && r == 0)
		r = one(c, SCMP_ACT_ERRNO(EPERM), "socketpair", 1,
			SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, TYPE_BITS, SOCK_RAW));
	if (o.no_unix && r == 0)
		r = one(c, SCMP_ACT_ERRNO(EPERM), "socket", 1,
			SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW_HALF, AF_UNIX));
	for (int f = 0; f <= HIGHEST_FAMILY && o.no_net && r == 0; f++) {
		bool fine = false;
		for (size_t i = 0; i < VX_ARRAY_LEN(contained); i++)
			fine |= contained[i] == f;
		if (!fine)
			r = one(c, SCMP_ACT_ERRNO(EPERM), "socket", 1,
				SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, LOW_HALF, (uint64_t)f));
	}
	return r;
}

static int namespaces_rules(scmp_filter_ctx c)
{
	int r = list(c, SCMP_ACT_ERRNO(EPERM), mounts_eperm, VX_ARRAY_LEN(mounts_eperm));

	for (size_t i = 0; i < VX_ARRAY_LEN(namespaces) && r == 0; i++) {
		struct scmp_arg_cmp has =
			SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, namespaces[i], namespaces[i]);
		r = one(c, SCMP_ACT_ERRNO(EPERM), "clone", 1, has);
		if (r == 0)
			r = one(c, SCMP_ACT_ERRNO(EPERM), "unshare", 1, has);
	}
	return r ? r
		 : one(c, SCMP_ACT_ERRNO(EPERM), "unshare", 1,
			   SCMP_CMP64(0, SCMP_CMP_MASKED_EQ, NEWTIME, NEWTIME));
}

/* No file is made set-id, and none becomes so. mkdir(2) leaves such bits out by itself; fchmodat2
 * is above the guard where libseccomp does not know it. The mode of openat2 stands in memory, which
 * a filter does not see: programs fall back to openat. An inner sandbox needs it, and what that
 * makes is looked through afterwards. */
static int set_id_rules(scmp_filter_ctx c, bool nesting)
{
	static const struct {
		const char *name;
		unsigned mode, flags; /* which arguments; flags 0: the mode always counts */
	} calls[] = {{"chmod", 1, 0}, {"fchmod", 1, 0}, {"fchmodat", 2, 0}, {"fchmodat2", 2, 0},
		{"creat", 1, 0}, {"mknod", 1, 0}, {"mknodat", 2, 0}, {"open", 2, 1},
		{"openat", 3, 2}};
	static const uint64_t bits[] = {S_ISUID, S_ISGID}, makes[] = {O_CREAT, NEW_TMPFILE};
	int r = 0;

	for (size_t i = 0; i < VX_ARRAY_LEN(calls) * 4 && r == 0; i++) {
		unsigned flags = calls[i / 4].flags;
		int nr = seccomp_syscall_resolve_name(calls[i / 4].name);
		uint64_t bit = bits[i & 1], make = makes[i >> 1 & 1];
		struct scmp_arg_cmp arg[] = {
			SCMP_CMP64(calls[i / 4].mode, SCMP_CMP_MASKED_EQ, bit, bit),
			SCMP_CMP64(flags, SCMP_CMP_MASKED_EQ, make, make)};
		if (nr == __NR_SCMP_ERROR || (!flags && (i & 2)))
			continue;
		r = seccomp_rule_add_array(c, SCMP_ACT_ERRNO(EPERM), nr, flags ? 2 : 1, arg);
	}
	if (r == 0 && !nesting)
		r = one(c, SCMP_ACT_ERRNO(ENOSYS), "openat2", 0, (struct scmp_arg_cmp){0});
	return r;
}

static int rules(scmp_filter_ctx c, struct box_seccomp o)
{
	int r = list(c, SCMP_ACT_ERRNO(EPERM), always_eperm, VX_ARRAY_LEN(always_eperm));

	if (r == 0)
		r = list(c, SCMP_ACT_ERRNO(ENOSYS), always_enosys, VX_ARRAY_LEN(always_enosys));
	if (r == 0)
		r = one(c, SCMP_ACT_ERRNO(EPERM), "ioctl", 1,
			SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW_HALF, TIOCSTI));
	if (r == 0)
		r = one(c, SCMP_ACT_ERRNO(EPERM), "ioctl", 1,
			SCMP_CMP64(1, SCMP_CMP_MASKED_EQ, LOW_HALF, TIOCLINUX));
	if (r == 0)
		r = set_id_rules(c, o.nesting);
	if (r == 0)
		r = sockets(c, o);
	return r == 0 && !o.nesting ? namespaces_rules(c) : r;
}

int box_seccomp_rules(enum box_arch arch, struct box_seccomp o, int fd)
{
	scmp_filter_ctx c = seccomp_init(SCMP_ACT_ALLOW);
	uint32_t want = native_arch(arch);
	int r = c ? 0 : -ENOMEM;

	if (r == 0 && want != seccomp_arch_native()) {
		r = seccomp_arch_add(c, want);
		if (r == 0)
			r = seccomp_arch_remove(c, SCMP_ARCH_NATIVE);
	}
	if (r == 0 && want == SCMP_ARCH_X86_64) {
		r = seccomp_arch_add(c, SCMP_ARCH_X86);
		if (r == 0)
			r = seccomp_arch_add(c, SCMP_ARCH_X32);
	}
	if (r == 0 && want == SCMP_ARCH_AARCH64)
		r = seccomp_arch_add(c, SCMP_ARCH_ARM);
	if (r == 0) /* any other way into the kernel: there is none that a program needs */
		r = seccomp_attr_set(c, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS);
	if (r == 0)
		r = rules(c, o);
	if (r == 0)
		r = seccomp_export_bpf(c, fd);
	if (c)
		seccomp_release(c);
	return r;
}

static uint32_t last_known(uint32_t arch)
{
	for (int n = HIGHEST_TRIED; n > 0; n--) {
		char *name = seccomp_syscall_resolve_num_arch(arch, n);
		if (name) {
			free(name);
			return (uint32_t)n;
		}
	}
	return 0;
}

/* One architecture's part: numbers above `last` are answered ENOSYS, but for the range [lo, hi];
 * x32's mark is taken off first. */
static size_t newer_part(
	struct sock_filter *f, uint32_t audit, uint32_t last, uint32_t lo, uint32_t hi)
{
	const struct sock_filter part[] = {
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, audit, 0, 7),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0 /* nr */),
		BPF_STMT(BPF_ALU | BPF_AND | BPF_K, ~X32_BIT),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, last, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, lo, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, hi, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};

	for (size_t i = 0; i < VX_ARRAY_LEN(part); i++)
		f[i] = part[i];
	return VX_ARRAY_LEN(part);
}

int box_seccomp_newer(enum box_arch arch, int fd)
{
	struct sock_filter f[64];
	size_t n = 0;
	uint32_t want = native_arch(arch);

	f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4 /* arch */);
	if (want == SCMP_ARCH_X86_64) {
		uint32_t last = last_known(SCMP_ARCH_X86_64);
		/* 512 to 547 are x32's own; entered without its mark they are unknown to the kernel
		 * anyway. */
		n += newer_part(f + n, AUDIT_ARCH_X86_64, last, X32_FIRST, X32_LAST);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4);
		n += newer_part(
			f + n, AUDIT_ARCH_I386, last_known(SCMP_ARCH_X86), UINT32_MAX, UINT32_MAX);
	} else if (want == SCMP_ARCH_AARCH64) {
		n += newer_part(f + n, AUDIT_ARCH_AARCH64, last_known(SCMP_ARCH_AARCH64),
			UINT32_MAX, UINT32_MAX);
		f[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 4);
		/* 32-bit arm has private calls far above the table (cacheflush, set_tls). */
		n += newer_part(
			f + n, AUDIT_ARCH_ARM, last_known(SCMP_ARCH_ARM), 0x0f0000, 0x0f00ff);
	} else {
		n += newer_part(f + n, want, last_known(want), UINT32_MAX, UINT32_MAX);
	}
	/* other architectures: the rules' affair */
	f[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	return vx_write_full(fd, f, n * sizeof *f);
}
