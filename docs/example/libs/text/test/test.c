#include "check.h"
#include "text.h"

#include <string.h>

static int number_is(double number, const char *want)
{
	struct text t = { 0 };
	text_add_number(&t, number);
	int same = strcmp(t.bytes, want) == 0;
	text_free(&t);
	return same;
}

int main(void)
{
	struct text t = { 0 };
	text_add(&t, "ab");
	text_add_repeated(&t, '-', 20);
	text_add_bytes(&t, "cde", 1);
	CHECK(t.length == 23);
	CHECK(strcmp(t.bytes, "ab--------------------c") == 0);
	text_free(&t);
	CHECK(t.bytes == NULL);

	CHECK(number_is(3, "3"));
	CHECK(number_is(1200, "1200"));
	CHECK(number_is(0.1, "0.1"));
	CHECK(number_is(1.0 / 3, "0.3333333333333333"));
	CHECK(number_is(-1e300, "-1e+300"));
	return CHECK_DONE();
}
