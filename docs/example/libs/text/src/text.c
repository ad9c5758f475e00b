#include "text.h"

#include "base.h"

#include <stdlib.h>
#include <string.h>

void text_add_bytes(struct text *t, const char *bytes, size_t n)
{
	t->bytes = base_grow(t->bytes, &t->capacity, t->length + n + 1, 1);
	memcpy(t->bytes + t->length, bytes, n);
	t->length += n;
	t->bytes[t->length] = '\0';
}

void text_add(struct text *t, const char *string)
{
	text_add_bytes(t, string, strlen(string));
}

void text_add_repeated(struct text *t, char c, size_t times)
{
	while (times-- > 0)
		text_add_bytes(t, &c, 1);
}

void text_free(struct text *t)
{
	free(t->bytes);
	*t = (struct text){ 0 };
}
