#include "hash.h"

#include <string.h>

uint64_t hash_bytes(const void *bytes, size_t n)
{
	uint64_t hash = 0xcbf29ce484222325u;
	for (const unsigned char *p = bytes, *end = p + n; p < end; p++)
		hash = (hash ^ *p) * 0x100000001b3u;
	return hash;
}

uint64_t hash_string(const char *string)
{
	return hash_bytes(string, strlen(string));
}
