/* Runs a program of `let NAME = EXPRESSION` and `print EXPRESSION`, a statement a line. */
#ifndef EVAL_H
#define EVAL_H

#include "table.h"
#include "text.h"

/* 0, with what was printed added to `out` and the variables in `variables`; or 1, with the reason added to `error`. */
int eval_run(const char *program, struct table *variables, struct text *out, struct text *error);

#endif
