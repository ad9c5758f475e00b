#include "base.h"
#include "table.h"

#include <stdlib.h>
#include <string.h>

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct table_entry *)a)->name, ((const struct table_entry *)b)->name);
}

static int by_value(const void *a, const void *b)
{
	double x = ((const struct table_entry *)a)->value, y = ((const struct table_entry *)b)->value;
	return x > y ? -1 : x < y ? 1 : by_name(a, b);
}

static struct table_entry *sorted(const struct table *t, int (*order)(const void *, const void *))
{
	struct table_entry *all = base_alloc(t->n_used * sizeof(*all));
	size_t n = 0;
	for (size_t i = 0; i < t->n_slots; i++)
		if (t->slots[i].name)
			all[n++] = t->slots[i];
	qsort(all, n, sizeof(*all), order);
	return all;
}

struct table_entry *table_by_name(const struct table *t)
{
	return sorted(t, by_name);
}

struct table_entry *table_by_value(const struct table *t)
{
	return sorted(t, by_value);
}
