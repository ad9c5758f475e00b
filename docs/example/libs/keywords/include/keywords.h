/* The language's keywords, as listed in keywords.txt. */
#ifndef KEYWORDS_H
#define KEYWORDS_H

#include <stddef.h>

enum keyword {
	KEYWORD_NONE,
#define KEYWORD(upper, lower, arity) KEYWORD_##upper,
#include "keyword_list.h"
#undef KEYWORD
};

enum keyword keyword_find(const char *bytes, size_t n);
const char *keyword_name(enum keyword k);
int keyword_arity(enum keyword k); /* 0: a statement, not a function */

#endif
