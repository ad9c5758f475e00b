/* FNV-1a, 64 bits. */
#ifndef HASH_H
#define HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash_bytes(const void *bytes, size_t n);
uint64_t hash_string(const char *string);

#endif
