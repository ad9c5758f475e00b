#include "text.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_add_number(struct text *t, double number)
{
	double size = number < 0 ? -number : number;
	bool plain = size < 1e15 && size >= 1e-4; /* 100, not 1e+02 */
	char digits[40];
	for (int precision = 1; precision <= 17; precision++) {
		snprintf(digits, sizeof(digits), "%.*g", precision, number);
		if (strtod(digits, NULL) == number && !(plain && strchr(digits, 'e')))
			break;
	}
	text_add(t, digits);
}
