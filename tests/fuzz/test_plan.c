/* Planning's parsers under a great deal of damage: VX_FUZZ_ROUNDS (300,000). See planfuzz.h. With
 * -DVX_LIBFUZZER this file is a libFuzzer target instead:
 *   clang -g -fsanitize=fuzzer,address,undefined -DVX_LIBFUZZER -D_GNU_SOURCE -Iinclude
 *   tests/fuzz/test_plan.c build/asan/libvx.a -ljson-c -lyaml ... */
#ifdef VX_LIBFUZZER
#include "planfuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	planfuzz_one(data, size);
	return 0;
}
#else
#include <stdlib.h>

__attribute__((constructor)) static void more_rounds(void)
{
	setenv("VX_FUZZ_ROUNDS", "300000", 0);
}

#include "../unit/test_planfuzz.c"
#endif
