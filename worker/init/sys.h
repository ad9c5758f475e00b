/* System calls without a libc: the calling convention of each architecture, and clone with a stack
 * of its own. */
#ifndef VX_INIT_SYS_H
#define VX_INIT_SYS_H

#include <asm/unistd.h>

#if defined(__x86_64__)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long r10 __asm__("r10") = d;
	register long r8 __asm__("r8") = e;
	register long r9 __asm__("r9") = f;
	long ret;

	__asm__ volatile("syscall"
			 : "=a"(ret)
			 : "a"(n), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
			 : "rcx", "r11", "memory");
	return ret;
}

/* The child starts in run() on `stack_top`; run() must not return. */
static inline long sys_clone(unsigned long flags, void *stack_top, void (*run)(void))
{
	long ret;
	register void (*r12)(void) __asm__("r12") = run;
	register long r10 __asm__("r10") = 0;
	register long r8 __asm__("r8") = 0;

	__asm__ volatile(
		"syscall\n\t"
		"test %%rax, %%rax\n\t"
		"jnz 1f\n\t"
		"xor %%ebp, %%ebp\n\t"
		"call *%%r12\n\t"
		"ud2\n"
		"1:"
		: "=a"(ret)
		: "a"(__NR_clone), "D"(flags), "S"(stack_top), "d"(0L), "r"(r10), "r"(r8), "r"(r12)
		: "rcx", "r11", "memory");
	return ret;
}

#define START               \
	".globl _start\n"   \
	"_start:\n"         \
	"	xor %ebp, %ebp\n" \
	"	and $-16, %rsp\n" \
	"	call init_main\n" \
	"	ud2\n"

#elif defined(__aarch64__)

static inline long sys6(long n, long a, long b, long c, long d, long e, long f)
{
	register long x8 __asm__("x8") = n;
	register long x0 __asm__("x0") = a;
	register long x1 __asm__("x1") = b;
	register long x2 __asm__("x2") = c;
	register long x3 __asm__("x3") = d;
	register long x4 __asm__("x4") = e;
	register long x5 __asm__("x5") = f;

	__asm__ volatile("svc #0"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5)
			 : "memory");
	return x0;
}

static inline long sys_clone(unsigned long flags, void *stack_top, void (*run)(void))
{
	register long x8 __asm__("x8") = __NR_clone;
	register long x0 __asm__("x0") = (long)flags;
	register long x1 __asm__("x1") = (long)stack_top;
	register long x2 __asm__("x2") = 0;
	register long x3 __asm__("x3") = 0;
	register long x4 __asm__("x4") = 0;
	register void (*x9)(void) __asm__("x9") = run;

	__asm__ volatile("svc #0\n\t"
			 "cbnz x0, 1f\n\t"
			 "mov x29, #0\n\t"
			 "blr x9\n\t"
			 "brk #0\n"
			 "1:"
			 : "+r"(x0)
			 : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x9)
			 : "memory");
	return x0;
}

#define START             \
	".globl _start\n" \
	"_start:\n"       \
	"	mov x29, #0\n"  \
	"	bl init_main\n" \
	"	brk #0\n"

#else
#error "vx-init knows x86-64 and arm64"
#endif

#define SYS0(n) sys6(n, 0, 0, 0, 0, 0, 0)
#define SYS1(n, a) sys6(n, (long)(a), 0, 0, 0, 0, 0)
#define SYS2(n, a, b) sys6(n, (long)(a), (long)(b), 0, 0, 0, 0)
#define SYS3(n, a, b, c) sys6(n, (long)(a), (long)(b), (long)(c), 0, 0, 0)
#define SYS4(n, a, b, c, d) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), 0, 0)
#define SYS5(n, a, b, c, d, e) sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), 0)
#define SYS6(n, a, b, c, d, e, f) \
	sys6(n, (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f))

#endif
