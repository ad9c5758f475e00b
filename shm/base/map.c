#include "vx/map.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/clock.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

static uint64_t process_seed;

static void draw_seed(void)
{
	/* Without entropy yet (early boot) the clock and the pid are still more than a stranger
	 * knows. */
	if (getrandom(&process_seed, sizeof process_seed, GRND_NONBLOCK) !=
		(ssize_t)sizeof process_seed)
		process_seed = vx_now_ns() ^ ((uint64_t)getpid() << 32);
}

static uint64_t seed(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, draw_seed);
	return process_seed;
}

static uint64_t rotl(uint64_t x, int n)
{
	return x << n | x >> (64 - n);
}

static void sip_round(uint64_t v[4])
{
	v[0] += v[1];
	v[2] += v[3];
	v[1] = rotl(v[1], 13) ^ v[0];
	v[3] = rotl(v[3], 16) ^ v[2];
	v[0] = rotl(v[0], 32);
	v[2] += v[1];
	v[0] += v[3];
	v[1] = rotl(v[1], 17) ^ v[2];
	v[3] = rotl(v[3], 21) ^ v[0];
	v[2] = rotl(v[2], 32);
}

/* SipHash with one round a word and three at the end (Aumasson and Bernstein, "SipHash: a fast
 * short-input PRF", 2012). */
uint64_t vx_hash64(const void *p, size_t n, uint64_t key)
{
	const unsigned char *s = p;
	uint64_t k1 = ~rotl(key, 29);
	uint64_t v[4] = {key ^ 0x736f6d6570736575, k1 ^ 0x646f72616e646f6d,
		key ^ 0x6c7967656e657261, k1 ^ 0x7465646279746573};
	uint64_t word, last = (uint64_t)n << 56;
	size_t left = n;

	for (; left >= sizeof word; left -= sizeof word, s += sizeof word) {
		memcpy(&word, s, sizeof word);
		v[3] ^= word;
		sip_round(v);
		v[0] ^= word;
	}
	for (size_t i = 0; i < left; i++)
		last |= (uint64_t)s[i] << (8 * i);
	v[3] ^= last;
	sip_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int i = 0; i < 3; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* The slot that holds the key, or the empty one where it belongs. */
static struct vx_map_slot *find(const struct vx_map *m, const void *key, size_t len, uint64_t hash)
{
	uint32_t mask = m->cap - 1;

	for (uint32_t i = (uint32_t)hash & mask;; i = (i + 1) & mask) {
		struct vx_map_slot *s = &m->slots[i];

		if (!s->key || (s->hash == hash && s->len == len && memcmp(s->key, key, len) == 0))
			return s;
	}
}

static void rehash(struct vx_map *m, uint32_t cap)
{
	struct vx_map old = *m;

	m->slots = vx_xcalloc(cap, sizeof *m->slots);
	m->cap = cap;
	for (uint32_t i = 0; i < old.cap; i++)
		if (old.slots[i].key)
			*find(m, old.slots[i].key, old.slots[i].len, old.slots[i].hash) =
				old.slots[i];
	free(old.slots);
}

void vx_map_reserve(struct vx_map *m, uint32_t n)
{
	uint64_t cap = m->cap ? m->cap : 16;

	while (cap / 4 * 3 < n) /* at most three quarters full */
		cap *= 2;
	vx_assert(cap <= (uint64_t)1 << 31);
	if (cap != m->cap)
		rehash(m, (uint32_t)cap);
}

/* Finds or makes the slot; a made one has its key but no value yet. */
static struct vx_map_slot *slot(struct vx_map *m, const void *key, size_t len, bool *ret_new)
{
	vx_assert(len <= UINT32_MAX);
	vx_map_reserve(m, m->n + 1);

	uint64_t hash = vx_hash64(key, len, seed());
	struct vx_map_slot *s = find(m, key, len, hash);

	*ret_new = !s->key;
	if (*ret_new) {
		*s = (struct vx_map_slot){
			.key = key ? key : "", .len = (uint32_t)len, .hash = hash};
		m->n++;
	}
	return s;
}

uint32_t vx_map_get(const struct vx_map *m, const void *key, size_t len)
{
	if (!m->n)
		return VX_MAP_NONE;

	const struct vx_map_slot *s = find(m, key, len, vx_hash64(key, len, seed()));
	return s->key ? s->val : VX_MAP_NONE;
}

bool vx_map_put(struct vx_map *m, const void *key, size_t len, uint32_t val)
{
	bool made;
	struct vx_map_slot *s = slot(m, key, len, &made);

	if (made)
		s->val = val;
	return made;
}

void vx_map_set(struct vx_map *m, const void *key, size_t len, uint32_t val)
{
	bool made;

	slot(m, key, len, &made)->val = val;
}

uint32_t vx_map_gets(const struct vx_map *m, const char *key)
{
	return vx_map_get(m, key, strlen(key));
}

bool vx_map_puts(struct vx_map *m, const char *key, uint32_t val)
{
	return vx_map_put(m, key, strlen(key), val);
}

void vx_map_free(struct vx_map *m)
{
	free(m->slots);
	*m = (struct vx_map){0};
}
