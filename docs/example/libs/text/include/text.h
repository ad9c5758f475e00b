/* A string that grows. Start with `struct text t = { 0 };`. */
#ifndef TEXT_H
#define TEXT_H

#include <stddef.h>

struct text {
	char *bytes; /* NUL-terminated once anything was added */
	size_t length, capacity;
};

void text_add(struct text *t, const char *string);
void text_add_bytes(struct text *t, const char *bytes, size_t n);
void text_add_repeated(struct text *t, char c, size_t times);
void text_add_number(struct text *t, double number); /* shortest plain form that reads back equal */
void text_free(struct text *t);

#endif
