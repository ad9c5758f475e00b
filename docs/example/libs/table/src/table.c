#include "table.h"

#include "base.h"
#include "hash.h"

#include <stdlib.h>
#include <string.h>

static struct table_entry *probe(const struct table *t, const char *name)
{
	size_t i = hash_string(name) & (t->n_slots - 1);
	while (t->slots[i].name && strcmp(t->slots[i].name, name) != 0)
		i = (i + 1) & (t->n_slots - 1);
	return &t->slots[i];
}

static void grow(struct table *t)
{
	struct table old = *t;
	t->n_slots = old.n_slots ? old.n_slots * 2 : 16;
	t->slots = base_alloc(t->n_slots * sizeof(*t->slots));
	for (size_t i = 0; i < old.n_slots; i++)
		if (old.slots[i].name)
			*probe(t, old.slots[i].name) = old.slots[i];
	free(old.slots);
}

double *table_find(const struct table *t, const char *name)
{
	if (t->n_slots == 0)
		return NULL;
	struct table_entry *e = probe(t, name);
	return e->name ? &e->value : NULL;
}

double *table_at(struct table *t, const char *name)
{
	if (4 * (t->n_used + 1) > 3 * t->n_slots)
		grow(t);
	struct table_entry *e = probe(t, name);
	if (!e->name) {
		e->name = base_copy(name, strlen(name));
		t->n_used++;
	}
	return &e->value;
}

void table_free(struct table *t)
{
	for (size_t i = 0; i < t->n_slots; i++)
		free(t->slots[i].name);
	free(t->slots);
	*t = (struct table){ 0 };
}
