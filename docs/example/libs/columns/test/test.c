#include "check.h"
#include "columns.h"

#include <string.h>

int main(void)
{
	static const struct columns_row rows[] = { { "a", 1 }, { "word", 12.5 }, { "", 100 } };
	struct text out = { 0 };
	columns_print(&out, rows, 3);
	CHECK(strcmp(out.bytes, "a        1\nword  12.5\n       100\n") == 0);
	text_free(&out);
	return CHECK_DONE();
}
