#include "eval.h"

#include "base.h"
#include "parser.h"

#include <stdlib.h>

void parser_take(struct parser *p)
{
	p->token = p->failed ? (struct token){ .kind = TOKEN_END } : lexer_next(&p->lexer);
}

bool parser_take_sign(struct parser *p, char sign)
{
	if (p->token.kind != TOKEN_SIGN || p->token.bytes[0] != sign)
		return false;
	parser_take(p);
	return true;
}

void parser_fail(struct parser *p, const char *wanted)
{
	if (p->failed)
		return;
	char *found = token_text(&p->token);
	text_add(p->error, "line ");
	text_add_number(p->error, p->token.line);
	text_add(p->error, ": wanted ");
	text_add(p->error, wanted);
	text_add(p->error, ", found ");
	text_add(p->error, found);
	text_add(p->error, "\n");
	free(found);
	p->failed = true;
}

static void let(struct parser *p)
{
	if (p->token.kind != TOKEN_NAME) {
		parser_fail(p, "a name");
		return;
	}
	char *name = base_copy(p->token.bytes, p->token.length);
	parser_take(p);
	if (!parser_take_sign(p, '='))
		parser_fail(p, "'='");
	double value = parser_expression(p);
	if (!p->failed)
		*table_at(p->variables, name) = value;
	free(name);
}

static void statement(struct parser *p, struct text *out)
{
	enum keyword k = p->token.kind == TOKEN_KEYWORD ? p->token.keyword : KEYWORD_NONE;
	if (k != KEYWORD_LET && k != KEYWORD_PRINT) {
		parser_fail(p, "'let' or 'print'");
		return;
	}
	parser_take(p);
	if (k == KEYWORD_LET) {
		let(p);
	} else {
		double value = parser_expression(p);
		if (!p->failed) {
			text_add_number(out, value);
			text_add(out, "\n");
		}
	}
	if (p->token.kind != TOKEN_NEWLINE && p->token.kind != TOKEN_END)
		parser_fail(p, "the end of the line");
}

int eval_run(const char *program, struct table *variables, struct text *out, struct text *error)
{
	struct parser p = { .lexer = { .at = program }, .variables = variables, .error = error };
	parser_take(&p);
	while (!p.failed && p.token.kind != TOKEN_END) {
		if (p.token.kind == TOKEN_NEWLINE)
			parser_take(&p);
		else
			statement(&p, out);
	}
	return p.failed;
}
