/* Digests, by nettle.
 *
 * SHA-256 for keys and artifacts; SHA-1 or SHA-256 for git object ids ("blob <size>\0" and the
 * bytes; see gitformat-pack(5), hash-function-transition). Every function is thread-safe on
 * separate contexts. */
#ifndef VX_HASH_H
#define VX_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define VX_DIGEST_BYTES 32
#define VX_DIGEST_HEX 65 /* NUL included */

enum vx_oid_kind { VX_OID_SHA1 = 20, VX_OID_SHA256 = 32 }; /* the value is the length in bytes */

struct vx_digest {
	uint8_t b[VX_DIGEST_BYTES];
};

/* A blob id of git. */
struct vx_oid {
	uint8_t b[32];
	uint8_t n; /* 20 or 32 */
};

struct vx_sha256 {
	uint64_t opaque[16]; /* holds nettle's context, checked at compile time in hash.c */
};
struct vx_sha1 {
	uint64_t opaque[16];
};

void vx_sha256_init(struct vx_sha256 *c);
void vx_sha256_add(struct vx_sha256 *c, const void *p, size_t n);
void vx_sha256_done(struct vx_sha256 *c, struct vx_digest *ret);
void vx_sha256_of(const void *p, size_t n, struct vx_digest *ret);
bool vx_digest_equal(const struct vx_digest *a, const struct vx_digest *b);
bool vx_digest_zero(const struct vx_digest *d);
void vx_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n, struct vx_digest *ret);

void vx_sha1_init(struct vx_sha1 *c);
void vx_sha1_add(struct vx_sha1 *c, const void *p, size_t n);
void vx_sha1_done(struct vx_sha1 *c, uint8_t ret[20]);

/* The git blob id of n bytes in memory; writes `kind` bytes to ret. */
void vx_git_blob_id(enum vx_oid_kind kind, const void *p, size_t n, uint8_t *ret);

void vx_hex(const uint8_t *p, size_t n, char *ret);  /* 2 * n digits and a NUL */
int vx_unhex(const char *s, size_t n, uint8_t *ret); /* reads 2 * n digits; -EINVAL */

#endif
