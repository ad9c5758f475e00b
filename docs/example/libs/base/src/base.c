#include "base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void base_die(const char *what, const char *about)
{
	fprintf(stderr, "%s: %s\n", what, about);
	exit(1);
}

void *base_alloc(size_t bytes)
{
	void *p = calloc(1, bytes ? bytes : 1);
	if (!p)
		base_die("memory", "no more");
	return p;
}

void *base_grow(void *old, size_t *capacity, size_t needed, size_t item_bytes)
{
	if (needed <= *capacity)
		return old;
	size_t grown = *capacity ? *capacity * 2 : 8;
	while (grown < needed)
		grown *= 2;
	void *p = realloc(old, grown * item_bytes);
	if (!p)
		base_die("memory", "no more");
	*capacity = grown;
	return p;
}

char *base_copy(const char *bytes, size_t n)
{
	char *copy = base_alloc(n + 1);
	memcpy(copy, bytes, n);
	return copy;
}
