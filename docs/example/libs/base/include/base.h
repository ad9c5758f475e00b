/* Memory that is there, or the program says so and ends. */
#ifndef BASE_H
#define BASE_H

#include <stddef.h>

void *base_alloc(size_t bytes);                             /* zeroed */
void *base_grow(void *old, size_t *capacity, size_t needed, size_t item_bytes); /* at least doubles; capacity counts items */
char *base_copy(const char *bytes, size_t n);               /* NUL-terminated */
_Noreturn void base_die(const char *what, const char *about);

#endif
