#ifndef PARSER_H
#define PARSER_H

#include "lexer.h"
#include "table.h"
#include "text.h"

#include <stdbool.h>

struct parser {
	struct lexer lexer;
	struct token token; /* the next one, not yet taken */
	struct table *variables;
	struct text *error;
	bool failed; /* the first error counts */
	int depth;
};

void parser_take(struct parser *p);
bool parser_take_sign(struct parser *p, char sign);
void parser_fail(struct parser *p, const char *wanted);
double parser_expression(struct parser *p);

#endif
