# No libc: starting one costs more than all that vx-init does.
INIT_CFLAGS := -Os -g -ffreestanding -fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables -fcf-protection=none
INIT_LDFLAGS := -static -no-pie -nostdlib -nostartfiles -Wl,-z,noexecstack
ifneq ($(findstring aarch64,$(shell $(CC) -dumpmachine 2>/dev/null)),)
INIT_CFLAGS := $(filter-out -fcf-protection=none,$(INIT_CFLAGS)) -mno-outline-atomics
endif
