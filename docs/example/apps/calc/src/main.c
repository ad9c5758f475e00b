/* calc [-v]: runs the program on stdin; -v lists the variables after it. */
#include "base.h"
#include "columns.h"
#include "eval.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void read_all(struct text *program)
{
	char buf[4096];
	size_t n;
	text_add(program, "");
	while ((n = fread(buf, 1, sizeof(buf), stdin)) > 0)
		text_add_bytes(program, buf, n);
}

static void list_variables(const struct table *variables, struct text *out)
{
	struct table_entry *all = table_by_name(variables);
	struct columns_row *rows = base_alloc(variables->n_used * sizeof(*rows));
	for (size_t i = 0; i < variables->n_used; i++)
		rows[i] = (struct columns_row){ all[i].name, all[i].value };
	columns_print(out, rows, variables->n_used);
	free(rows);
	free(all);
}

int main(int argc, char **argv)
{
	struct text program = { 0 }, out = { 0 }, error = { 0 };
	struct table variables = { 0 };
	read_all(&program);
	text_add(&out, "");
	text_add(&error, "");
	int code = eval_run(program.bytes, &variables, &out, &error);
	if (code == 0 && argc > 1 && strcmp(argv[1], "-v") == 0)
		list_variables(&variables, &out);
	fputs(out.bytes, stdout);
	fputs(error.bytes, stderr);
	text_free(&program);
	text_free(&out);
	text_free(&error);
	table_free(&variables);
	return code;
}
