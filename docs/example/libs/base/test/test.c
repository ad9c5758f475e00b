#include "base.h"
#include "check.h"

#include <stdlib.h>
#include <string.h>

int main(void)
{
	size_t capacity = 0;
	int *numbers = base_grow(NULL, &capacity, 1, sizeof(*numbers));
	CHECK(capacity == 8);
	numbers = base_grow(numbers, &capacity, 100, sizeof(*numbers));
	CHECK(capacity == 128);
	numbers[127] = 7;
	CHECK(base_grow(numbers, &capacity, 128, sizeof(*numbers)) == numbers);
	free(numbers);

	char *copy = base_copy("abcdef", 3);
	CHECK(strcmp(copy, "abc") == 0);
	free(copy);
	return CHECK_DONE();
}
