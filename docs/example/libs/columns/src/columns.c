#include "columns.h"

#include "base.h"

#include <stdlib.h>
#include <string.h>

void columns_print(struct text *out, const struct columns_row *rows, size_t n)
{
	struct text *numbers = base_alloc(n * sizeof(*numbers));
	size_t left_width = 0, right_width = 0;
	for (size_t i = 0; i < n; i++) {
		text_add_number(&numbers[i], rows[i].right);
		if (strlen(rows[i].left) > left_width)
			left_width = strlen(rows[i].left);
		if (numbers[i].length > right_width)
			right_width = numbers[i].length;
	}
	for (size_t i = 0; i < n; i++) {
		text_add(out, rows[i].left);
		text_add_repeated(out, ' ', left_width - strlen(rows[i].left) + 2 + right_width - numbers[i].length);
		text_add(out, numbers[i].bytes);
		text_add(out, "\n");
		text_free(&numbers[i]);
	}
	free(numbers);
}
