/* words [N]: the N (10) most frequent words of stdin, with their counts. */
#include "base.h"
#include "columns.h"
#include "table.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

static void count(struct table *counts, struct text *word)
{
	if (word->length > 0)
		++*table_at(counts, word->bytes);
	text_free(word);
}

int main(int argc, char **argv)
{
	size_t most = argc > 1 ? (size_t)atoi(argv[1]) : 10;
	struct table counts = { 0 };
	struct text word = { 0 };
	for (int c; (c = getchar()) != EOF;) {
		char letter = (char)tolower(c);
		if (isalpha(c))
			text_add_bytes(&word, &letter, 1);
		else
			count(&counts, &word);
	}
	count(&counts, &word);

	struct table_entry *all = table_by_value(&counts);
	size_t n = counts.n_used < most ? counts.n_used : most;
	struct columns_row *rows = base_alloc(n * sizeof(*rows));
	for (size_t i = 0; i < n; i++)
		rows[i] = (struct columns_row){ all[i].name, all[i].value };
	struct text out = { 0 };
	text_add(&out, "");
	columns_print(&out, rows, n);
	fputs(out.bytes, stdout);
	text_free(&out);
	free(rows);
	free(all);
	table_free(&counts);
	return 0;
}
