/* Splits a program into words, numbers and signs. Start with `struct lexer l = { .at = program };`, then lexer_next until TOKEN_END. */
#ifndef LEXER_H
#define LEXER_H

#include "keywords.h"

enum token_kind { TOKEN_END, TOKEN_NEWLINE, TOKEN_NUMBER, TOKEN_NAME, TOKEN_KEYWORD, TOKEN_SIGN, TOKEN_BAD };

struct token {
	enum token_kind kind;
	const char *bytes; /* in the program */
	size_t length;
	double number;        /* TOKEN_NUMBER */
	enum keyword keyword; /* TOKEN_KEYWORD */
	int line;             /* from 1 */
};

struct lexer {
	const char *at;
	int line; /* lines ended so far */
};

struct token lexer_next(struct lexer *l);
char *token_text(const struct token *t); /* a copy, for messages; the caller frees it */

#endif
