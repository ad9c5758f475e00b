#include "keywords.h"

#include "base.h"

#include <string.h>

static const struct {
	const char *name;
	int arity;
} keywords[] = {
	{ "", 0 },
#define KEYWORD(upper, lower, arity) { lower, arity },
#include "keyword_list.h"
#undef KEYWORD
};

#define N_KEYWORDS (sizeof(keywords) / sizeof(keywords[0]))

enum keyword keyword_find(const char *bytes, size_t n)
{
	for (size_t i = 1; i < N_KEYWORDS; i++)
		if (strlen(keywords[i].name) == n && memcmp(keywords[i].name, bytes, n) == 0)
			return (enum keyword)i;
	return KEYWORD_NONE;
}

const char *keyword_name(enum keyword k)
{
	if ((size_t)k >= N_KEYWORDS)
		base_die("keyword", "no such number");
	return keywords[k].name;
}

int keyword_arity(enum keyword k)
{
	return (size_t)k < N_KEYWORDS ? keywords[k].arity : 0;
}
