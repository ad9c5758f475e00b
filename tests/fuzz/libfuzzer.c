/* One of targets.h as a libFuzzer program: FUZZ_TARGET names the function. Built by
 * libfuzzer.sh. */
#include "targets.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	(void)fuzz_targets;
	(void)planfuzz_corpus;
	(void)planfuzz_one;
	FUZZ_TARGET(data, size);
	return 0;
}
