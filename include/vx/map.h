/* Hash map from byte strings to 32-bit values (indexes into somebody's array).
 *
 * Open addressing, keys borrowed: the caller keeps the bytes alive and unchanged. Hashing is seeded
 * per process, so hostile names cannot make it slow. One thread at a time for changes; look-ups
 * from many threads are fine while nobody changes it. */
#ifndef VX_MAP_H
#define VX_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VX_MAP_NONE UINT32_MAX

struct vx_map_slot {
	const char *key;
	uint32_t len, val;
	uint64_t hash;
};

struct vx_map {
	struct vx_map_slot *slots; /* {0} is a valid empty map */
	uint32_t n, cap;
};

/* VX_MAP_NONE when absent */
uint32_t vx_map_get(const struct vx_map *m, const void *key, size_t len);
/* true if it was new; else the old value stays */
bool vx_map_put(struct vx_map *m, const void *key, size_t len, uint32_t val);
/* inserts or replaces */
void vx_map_set(struct vx_map *m, const void *key, size_t len, uint32_t val);
uint32_t vx_map_gets(const struct vx_map *m, const char *key);
bool vx_map_puts(struct vx_map *m, const char *key, uint32_t val);
void vx_map_reserve(struct vx_map *m, uint32_t n);
void vx_map_free(struct vx_map *m);
/* not cryptographic, not stable across builds */
uint64_t vx_hash64(const void *p, size_t n, uint64_t seed);

#endif
