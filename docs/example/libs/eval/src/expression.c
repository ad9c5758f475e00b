#include "parser.h"

#include "base.h"

#include <stdlib.h>

#define MAX_DEPTH 200

static double sum(struct parser *p);

/* Newton's method, so that nothing but libc is linked. */
static double square_root(double x)
{
	if (x <= 0)
		return 0;
	double root = x > 1 ? x : 1;
	for (int i = 0; i < 2000; i++) {
		double next = (root + x / root) / 2;
		if (next >= root)
			break;
		root = next;
	}
	return root;
}

static double call(struct parser *p)
{
	enum keyword function = p->token.keyword;
	int arity = keyword_arity(function);
	if (arity == 0) {
		parser_fail(p, "a value");
		return 0;
	}
	parser_take(p);
	double value[2] = { 0, 0 };
	if (!parser_take_sign(p, '('))
		parser_fail(p, "'('");
	for (int i = 0; i < arity; i++) {
		if (i > 0 && !parser_take_sign(p, ','))
			parser_fail(p, "','");
		value[i] = sum(p);
	}
	if (!parser_take_sign(p, ')'))
		parser_fail(p, "')'");
	switch (function) {
	case KEYWORD_ABS:
		return value[0] < 0 ? -value[0] : value[0];
	case KEYWORD_SQRT:
		return square_root(value[0]);
	case KEYWORD_MIN:
		return value[0] < value[1] ? value[0] : value[1];
	case KEYWORD_MAX:
		return value[0] > value[1] ? value[0] : value[1];
	default:
		base_die(keyword_name(function), "is a function without a meaning");
	}
}

static double variable(struct parser *p)
{
	char *name = base_copy(p->token.bytes, p->token.length);
	const double *found = table_find(p->variables, name);
	double value = found ? *found : 0;
	if (!found)
		parser_fail(p, "a variable that was let before");
	free(name);
	parser_take(p);
	return value;
}

static double atom(struct parser *p)
{
	if (p->token.kind == TOKEN_NUMBER) {
		double number = p->token.number;
		parser_take(p);
		return number;
	}
	if (p->token.kind == TOKEN_NAME)
		return variable(p);
	if (p->token.kind == TOKEN_KEYWORD)
		return call(p);
	if (parser_take_sign(p, '-'))
		return -atom(p);
	if (parser_take_sign(p, '(')) {
		double value = sum(p);
		if (!parser_take_sign(p, ')'))
			parser_fail(p, "')'");
		return value;
	}
	parser_fail(p, "a value");
	return 0;
}

static double product(struct parser *p)
{
	double value = atom(p);
	for (;;) {
		if (parser_take_sign(p, '*'))
			value *= atom(p);
		else if (parser_take_sign(p, '/'))
			value /= atom(p);
		else
			return value;
	}
}

static double sum(struct parser *p)
{
	if (++p->depth > MAX_DEPTH)
		parser_fail(p, "fewer parentheses");
	if (p->failed)
		return 0;
	double value = product(p);
	for (;;) {
		if (parser_take_sign(p, '+'))
			value += product(p);
		else if (parser_take_sign(p, '-'))
			value -= product(p);
		else
			break;
	}
	p->depth--;
	return value;
}

double parser_expression(struct parser *p)
{
	p->depth = 0;
	return sum(p);
}
