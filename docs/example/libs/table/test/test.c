#include "check.h"
#include "table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void)
{
	struct table t = { 0 };
	CHECK(table_find(&t, "x") == NULL);
	char name[16];
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		*table_at(&t, name) = i;
	}
	int wrong = 0;
	for (int i = 0; i < 1000; i++) {
		snprintf(name, sizeof(name), "n%d", i);
		const double *value = table_find(&t, name);
		wrong += !value || *value != i;
	}
	CHECK(wrong == 0);
	CHECK(t.n_used == 1000);
	CHECK(table_find(&t, "n1000") == NULL);

	struct table_entry *all = table_by_value(&t);
	CHECK(strcmp(all[0].name, "n999") == 0);
	free(all);
	all = table_by_name(&t);
	CHECK(strcmp(all[1].name, "n1") == 0);
	free(all);
	table_free(&t);
	return CHECK_DONE();
}
