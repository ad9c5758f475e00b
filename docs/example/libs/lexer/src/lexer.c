#include "lexer.h"

#include "base.h"
#include "text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static void skip_blanks(struct lexer *l)
{
	while (*l->at == ' ' || *l->at == '\t' || *l->at == '\r')
		l->at++;
	if (*l->at == '#')
		l->at += strcspn(l->at, "\n");
}

struct token lexer_next(struct lexer *l)
{
	skip_blanks(l);
	struct token t = { .kind = TOKEN_BAD, .bytes = l->at, .length = 1, .line = l->line + 1 };
	unsigned char c = (unsigned char)*l->at;
	if (c == '\0') {
		t.kind = TOKEN_END;
		t.length = 0;
	} else if (c == '\n') {
		t.kind = TOKEN_NEWLINE;
		l->line++;
	} else if (isdigit(c)) {
		char *end;
		t.number = strtod(l->at, &end);
		t.kind = TOKEN_NUMBER;
		t.length = (size_t)(end - l->at);
	} else if (isalpha(c)) {
		while (isalnum((unsigned char)t.bytes[t.length]))
			t.length++;
		t.keyword = keyword_find(t.bytes, t.length);
		t.kind = t.keyword == KEYWORD_NONE ? TOKEN_NAME : TOKEN_KEYWORD;
	} else if (strchr("+-*/^()=,", c)) {
		t.kind = TOKEN_SIGN;
	}
	l->at += t.length;
	return t;
}

char *token_text(const struct token *t)
{
	if (t->kind == TOKEN_END)
		return base_copy("the end", 7);
	if (t->kind == TOKEN_NEWLINE)
		return base_copy("the end of the line", 19);
	struct text quoted = { 0 };
	text_add(&quoted, "'");
	text_add_bytes(&quoted, t->bytes, t->length);
	text_add(&quoted, "'");
	return quoted.bytes;
}
