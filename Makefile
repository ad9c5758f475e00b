# vx: one makefile for everything. Sources are found, header dependencies are generated, all output goes to $(B).
#   make            build/vx, build/vx-init, build/libvx.a
#   make check      what is missing is installed (make deps), then everything is built and every test is run
#   make help       the other targets

B ?= build
PREFIX ?= /usr/local
DESTDIR ?=
CC := $(if $(filter default,$(origin CC)),gcc,$(CC))
AR ?= ar
SAN ?=
WERROR ?= $(if $(CI),1,)

.DEFAULT_GOAL := all
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

# ---- flags ----
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wold-style-definition -Wpointer-arith -Wvla -Wformat=2 -Wundef \
	-Wwrite-strings -Wcast-qual -Wlogical-op -Wduplicated-cond -Wimplicit-fallthrough -Wno-missing-field-initializers \
	-Wno-format-truncation
ifneq ($(findstring clang,$(CC)),)
WARN := $(filter-out -Wlogical-op -Wduplicated-cond -Wno-format-truncation,$(WARN))
endif
OPT ?= -O2 -g
HARDEN := $(if $(SAN),,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2) -fstack-protector-strong -fPIE
SANFLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-omit-frame-pointer -fno-sanitize-recover=all)
CPPFLAGS += -D_GNU_SOURCE -Iinclude
ALL_CFLAGS = -std=gnu11 $(OPT) $(WARN) $(HARDEN) $(SANFLAGS) -ffunction-sections -fdata-sections -pthread $(CFLAGS)
ALL_LDFLAGS = -pie -Wl,-z,relro,-z,now -Wl,--gc-sections $(SANFLAGS) $(LDFLAGS)

# ---- sources ----
SRC := $(shell find sched worker shm -name '*.c' -not -path 'worker/init/*' 2>/dev/null | sort)
LIB_SRC := $(filter-out sched/main.c,$(SRC))
MAIN_SRC := $(filter sched/main.c,$(SRC))
INIT_SRC := $(shell find worker/init -name '*.c' 2>/dev/null | sort)
TEST_SRC := $(wildcard $(foreach d,unit model sim fault slow fuzz,tests/$(d)/test_*.c))
TEST_BIN := $(TEST_SRC:%.c=$(B)/%)
FAULT_BIN := $(filter $(B)/tests/fault/%,$(TEST_BIN))
BENCH_SRC := $(wildcard bench/*.c)
BENCH_BIN := $(BENCH_SRC:%.c=$(B)/%)

# Texts in other languages, embedded: NAME.mjs is `extern const char vx_NAME[]`, with a NUL behind it.
TEXTS := $(shell find sched worker shm -name '*.mjs' -o -name '*.html' | sort)

TEXT_OBJ := $(addprefix $(B)/obj/,$(addsuffix .o,$(TEXTS)))
OBJ := $(LIB_SRC:%.c=$(B)/obj/%.o) $(TEXT_OBJ)
OBJ_TP := $(LIB_SRC:%.c=$(B)/obj-tp/%.o) $(TEXT_OBJ)
MAIN_OBJ := $(MAIN_SRC:%.c=$(B)/obj/%.o)
MAIN_TP := $(MAIN_SRC:%.c=$(B)/obj-tp/%.o)
INIT_OBJ := $(INIT_SRC:%.c=$(B)/init/%.o)

PROGRAMS := $(B)/libvx.a $(if $(MAIN_SRC),$(B)/vx) $(if $(INIT_SRC),$(B)/vx-init)
# What only tests need: the library with its failure points compiled in, and vx linked to that.
TEST_PROGRAMS := $(if $(MAIN_SRC),$(B)/vx-test)

.PHONY: bench-sandbox all gate check check-now check-loaded check-slow asan tsan lint bench demo deps install clean help tests FORCE
all: $(PROGRAMS) $(if $(filter build,$(B)),compile_commands.json)
tests: $(TEST_BIN) $(TEST_PROGRAMS)

help:
	@echo 'all (default)  build/vx and build/vx-init'
	@echo 'check          make deps, build with warnings as errors in CI, run every test; the last line is the sum'
	@echo 'check-loaded   the same beside LOAD=8 busy processes: no test may depend on how fast the machine is'
	@echo 'gate           the quick tests only (unit, model, sim), warnings as errors'
	@echo 'check-slow     long tests and fuzzing, with a random seed that is printed (VX_SEED=N repeats it)'
	@echo 'asan, tsan     the same tests built with sanitizers, in build/asan and build/tsan'
	@echo 'lint           clang-format, clang-tidy, cppcheck, shellcheck'
	@echo 'bench, demo    bench/run; docs/example/demo.sh'
	@echo 'deps           installs what is missing (Debian, Ubuntu), as root or by sudo'
	@echo 'install        DESTDIR= PREFIX=/usr/local'
	@echo 'variables      B=build CC=gcc OPT="-O2 -g" CFLAGS= LDFLAGS= WERROR=1 SAN=address,undefined T="tests/unit/test_json.c ..." (check only these)'

# ---- building ----
# The flags live in response files: a changed flag rebuilds, and nothing asks pkg-config while this file is parsed (it may not be installed yet).
define write_if_changed
	@mkdir -p $(@D)
	@$(1) >$@.new || { rm -f $@.new; exit 1; }
	@if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
endef

$(B)/flags/cc: FORCE
	$(call write_if_changed,printf '%s\n' '$(CPPFLAGS) $(ALL_CFLAGS)' '# $(CC)' | grep -v '^#')
$(B)/flags/ld: FORCE
	$(call write_if_changed,echo '$(ALL_LDFLAGS)')
$(B)/flags/libs: .ci/libflags Makefile
	@mkdir -p $(@D)
	@.ci/libflags '$(CC)' >$@.new
	@mv $@.new $@
FORCE:

# -Werror is not among the stamped flags, so that `make` and `make gate` share objects: what compiled with a warning leaves OBJECT.warn, and is compiled again
# where warnings are errors.
ifneq ($(WERROR),)
$(shell find $(B) -name '*.o.warn' -exec sh -c 'for w; do rm -f "$$w" "$${w%.warn}"; done' _ {} + 2>/dev/null)
endif
DIAG = $(if $(WERROR),-Werror) 2>$@.warn; rc=$$?; cat $@.warn >&2; [ -s $@.warn ] || rm -f $@.warn; exit $$rc
COMPILE = @mkdir -p $(@D); echo '  CC      $@'; $(CC) @$(B)/flags/cc -MMD -MP
$(B)/obj/%.o: %.c $(B)/flags/cc
	$(COMPILE) -c -o $@ $< $(DIAG)
$(B)/obj-tp/%.o: %.c $(B)/flags/cc
	$(COMPILE) -DVX_TEST_POINTS=1 -c -o $@ $< $(DIAG)
$(B)/obj/tests/fault/%.o: tests/fault/%.c $(B)/flags/cc
	$(COMPILE) -DVX_TEST_POINTS=1 -Itests/unit -c -o $@ $< $(DIAG)
$(B)/obj/tests/%.o: tests/%.c $(B)/flags/cc
	$(COMPILE) -Itests/unit -c -o $@ $< $(DIAG)

$(TEXT_OBJ): $(B)/obj/%.o: % Makefile
	@mkdir -p $(@D); echo '  TEXT    $@'
	@printf '.section .rodata\n.globl %s\n%s:\n.incbin "%s"\n.byte 0\n.section .note.GNU-stack,"",%%progbits\n' \
		vx_$(basename $(notdir $<)) vx_$(basename $(notdir $<)) $< | $(CC) -x assembler -c -o $@ -

# The list of members is a file, so that a removed source leaves the archive too.
$(B)/libvx.list: FORCE
	$(call write_if_changed,echo '$(OBJ)')
ARCHIVE = @rm -f $@; echo '  AR      $@'; $(AR) rcs $@ $(filter %.o,$^)
$(B)/libvx.a: $(OBJ) $(B)/libvx.list
	$(ARCHIVE)
$(B)/libvx-test.a: $(OBJ_TP) $(B)/libvx.list
	$(ARCHIVE)

LINK = @mkdir -p $(@D); echo '  LD      $@'; $(CC) @$(B)/flags/cc @$(B)/flags/ld -o $@ $(filter %.o,$^) $(filter %.a,$^)
LINK_DEPS := $(B)/flags/ld $(B)/flags/libs
$(B)/vx: $(MAIN_OBJ) $(B)/libvx.a $(LINK_DEPS)
	$(LINK) @$(B)/flags/libs
$(B)/vx-test: $(MAIN_TP) $(B)/libvx-test.a $(LINK_DEPS)
	$(LINK) @$(B)/flags/libs
$(FAULT_BIN): $(B)/tests/fault/%: $(B)/obj/tests/fault/%.o $(B)/libvx-test.a $(LINK_DEPS)
	$(LINK) -lcmocka @$(B)/flags/libs
$(filter-out $(FAULT_BIN),$(TEST_BIN)): $(B)/tests/%: $(B)/obj/tests/%.o $(B)/libvx.a $(LINK_DEPS)
	$(LINK) -lcmocka @$(B)/flags/libs
$(BENCH_BIN): $(B)/bench/%: $(B)/obj/bench/%.o $(B)/libvx.a $(LINK_DEPS)
	$(LINK) @$(B)/flags/libs

# vx-init is small, static and never instrumented. worker/init/flags.mk may set INIT_CFLAGS and INIT_LDFLAGS.
INIT_CFLAGS := -Os -g -fno-pie -fno-stack-protector -fno-asynchronous-unwind-tables
INIT_LDFLAGS := -static -no-pie
-include worker/init/flags.mk
$(B)/init/flags: FORCE
	$(call write_if_changed,echo '$(CPPFLAGS) -std=gnu11 $(WARN) -ffunction-sections -fdata-sections $(INIT_CFLAGS)')
$(B)/init/%.o: %.c $(B)/init/flags
	@mkdir -p $(@D); echo '  CC      $@'; $(CC) @$(B)/init/flags -MMD -MP -c -o $@ $< $(DIAG)
$(B)/vx-init: $(INIT_OBJ) $(B)/init/flags
	@echo '  LD      $@'; $(CC) @$(B)/init/flags -Wl,--gc-sections,--build-id=none -o $@ $(INIT_OBJ) $(INIT_LDFLAGS)

compile_commands.json: Makefile $(B)/libvx.list .ci/compdb
	@.ci/compdb '$(CC) $(CPPFLAGS) $(ALL_CFLAGS)' $(SRC) $(INIT_SRC) $(TEST_SRC) >$@.new && mv $@.new $@

# The order matters not; each object's header dependencies stand beside it.
-include $(OBJ:.o=.d) $(OBJ_TP:.o=.d) $(MAIN_OBJ:.o=.d) $(MAIN_TP:.o=.d) $(INIT_OBJ:.o=.d) $(TEST_SRC:%.c=$(B)/obj/%.d) $(BENCH_SRC:%.c=$(B)/obj/%.d)

# ---- tests ----
# T selects sources or scripts; without it: all of a target's kinds.
T ?=
RUN = env VX_BUILD=$(abspath $(B)) tests/run.py
LOAD ?= 8
QUICK := $(filter $(foreach d,unit model sim,$(B)/tests/$(d)/%),$(TEST_BIN))
CHECK := $(QUICK) $(FAULT_BIN) $(sort $(wildcard tests/integration/*.sh))
SLOW := $(filter $(B)/tests/slow/% $(B)/tests/fuzz/%,$(TEST_BIN)) $(sort $(wildcard tests/slow/*.sh tests/fuzz/*.sh))
pick = $(if $(T),$(patsubst %.c,$(B)/%,$(T)),$(1))

gate:
	@$(MAKE) --no-print-directory WERROR=1 gate-now
gate-now: $(PROGRAMS) $(QUICK)
	@$(RUN) $(call pick,$(QUICK))
check: deps
	@$(MAKE) --no-print-directory check-now
check-now: all tests
	@$(RUN) $(call pick,$(CHECK))
check-loaded: deps
	@$(MAKE) --no-print-directory check-loaded-now
check-loaded-now: all tests
	@tests/load.sh $(LOAD) $(RUN) $(call pick,$(CHECK))
# Seeds are random here alone: what `make check` finds, it finds again.
check-slow: deps
	@$(MAKE) --no-print-directory check-slow-now
check-slow-now: all tests
	@VX_SEED=$${VX_SEED:-$$(date +%s)}; VX_TEST_TIMEOUT=$${VX_TEST_TIMEOUT:-14400}; export VX_SEED VX_TEST_TIMEOUT; \
	$(RUN) $(call pick,$(SLOW)); rc=$$?; echo "seed: VX_SEED=$$VX_SEED"; exit $$rc

SAN_ENV := ASAN_OPTIONS=detect_leaks=1:abort_on_error=1:detect_stack_use_after_return=0 UBSAN_OPTIONS=print_stacktrace=1 \
	LSAN_OPTIONS=suppressions=$(abspath tests/lsan.supp) TSAN_OPTIONS=suppressions=$(abspath tests/tsan.supp):halt_on_error=1
asan:
	@$(SAN_ENV) $(MAKE) --no-print-directory B=build/asan SAN=address,undefined OPT='-O1 -g' check-now
tsan:
	@$(SAN_ENV) $(MAKE) --no-print-directory B=build/tsan SAN=thread OPT='-O1 -g' tsan-now
TSAN_TESTS := $(filter $(B)/tests/unit/test_%_mt $(B)/tests/unit/test_lane% $(B)/tests/sim/test_lane% $(B)/tests/sim/test_%_mt,$(TEST_BIN))
tsan-now: $(PROGRAMS) $(TSAN_TESTS)
	@$(RUN) $(TSAN_TESTS)

lint: compile_commands.json
	@CC='$(CC)' .ci/lint

bench: all $(BENCH_BIN)
	@if [ -x bench/run ]; then VX_BUILD=$(abspath $(B)) bench/run; else echo 'no bench/run'; fi
# Beside bare bubblewrap, and sandbox-runtime where SRT_DIR names the directory that npm has installed it in.
bench-sandbox: all $(B)/bench/sandbox
	@VX_BUILD=$(abspath $(B)) bench/run sandbox
demo: deps
	@$(MAKE) --no-print-directory all
	@if [ -f docs/example/demo.sh ]; then VX_BUILD=$(abspath $(B)) bash docs/example/demo.sh; else echo 'no docs/example/demo.sh'; fi
deps:
	@.ci/deps

# ---- installing ----
install: all
	install -d '$(DESTDIR)$(PREFIX)/bin' '$(DESTDIR)$(PREFIX)/libexec/vx'
	$(if $(MAIN_SRC),install -m 755 $(B)/vx '$(DESTDIR)$(PREFIX)/bin/vx')
	$(if $(INIT_SRC),install -m 755 $(B)/vx-init '$(DESTDIR)$(PREFIX)/libexec/vx/vx-init')
	@DESTDIR='$(DESTDIR)' PREFIX='$(PREFIX)' .ci/install-data
clean:
	rm -rf build compile_commands.json
