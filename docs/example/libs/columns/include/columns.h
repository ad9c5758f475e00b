/* Rows of two columns, the second aligned to the right. */
#ifndef COLUMNS_H
#define COLUMNS_H

#include "text.h"

struct columns_row {
	const char *left;
	double right;
};

void columns_print(struct text *out, const struct columns_row *rows, size_t n);

#endif
