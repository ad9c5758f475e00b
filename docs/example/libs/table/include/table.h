/* Numbers by name, in a hash table with open addressing. Start with `struct table t = { 0 };`. */
#ifndef TABLE_H
#define TABLE_H

#include <stddef.h>

struct table_entry {
	char *name; /* NULL: free */
	double value;
};

struct table {
	struct table_entry *slots;
	size_t n_slots, n_used; /* n_slots is a power of two */
};

double *table_find(const struct table *t, const char *name); /* NULL when absent */
double *table_at(struct table *t, const char *name);         /* made, as 0, when absent */
void table_free(struct table *t);

/* All entries by name, or by falling value; the caller frees the array, the names stay the table's. */
struct table_entry *table_by_name(const struct table *t);
struct table_entry *table_by_value(const struct table *t);

#endif
