#include "check.h"
#include "eval.h"

#include <string.h>

static int gives(const char *program, const char *want_out, const char *want_error)
{
	struct table variables = { 0 };
	struct text out = { 0 }, error = { 0 };
	text_add(&out, "");
	text_add(&error, "");
	int code = eval_run(program, &variables, &out, &error);
	int same = strcmp(out.bytes, want_out) == 0 && strcmp(error.bytes, want_error) == 0 && code == (want_error[0] != '\0');
	if (!same)
		printf("%s gives '%s' and '%s'\n", program, out.bytes, error.bytes);
	text_free(&out);
	text_free(&error);
	table_free(&variables);
	return same;
}

int main(void)
{
	CHECK(gives("", "", ""));
	CHECK(gives("print 1 + 2 * 3 - 4 / 8", "6.5\n", ""));
	CHECK(gives("print -(1 + 2) * -3", "9\n", ""));
	CHECK(gives("let x = sqrt(16)\nlet y = x * x\nprint y - x", "12\n", ""));
	CHECK(gives("print max(min(1, 2), 0)\n\n# nothing\nprint 2\n", "1\n2\n", ""));
	CHECK(gives("print 1\nprint z", "1\n", "line 2: wanted a variable that was let before, found 'z'\n"));
	CHECK(gives("print (1", "", "line 1: wanted ')', found the end\n"));
	CHECK(gives("let print = 1", "", "line 1: wanted a name, found 'print'\n"));
	CHECK(gives("print 1 2", "1\n", "line 1: wanted the end of the line, found '2'\n"));
	return CHECK_DONE();
}
