#include "check.h"
#include "keywords.h"

#include <string.h>

int main(void)
{
	CHECK(keyword_find("let", 3) == KEYWORD_LET);
	CHECK(keyword_find("letter", 6) == KEYWORD_NONE);
	CHECK(keyword_find("letter", 3) == KEYWORD_LET);
	CHECK(strcmp(keyword_name(KEYWORD_SQRT), "sqrt") == 0);
	CHECK(keyword_arity(KEYWORD_PRINT) == 0);
	CHECK(keyword_arity(KEYWORD_MAX) == 2);
	return CHECK_DONE();
}
