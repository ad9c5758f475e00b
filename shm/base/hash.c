#include "vx/hash.h"

#include "vx/assert.h"

#include <errno.h>
#include <nettle/hmac.h>
#include <nettle/sha1.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <string.h>

_Static_assert(
	sizeof(struct sha256_ctx) <= sizeof(struct vx_sha256), "vx_sha256 holds nettle's context");
_Static_assert(sizeof(struct sha1_ctx) <= sizeof(struct vx_sha1), "vx_sha1 holds nettle's context");
_Static_assert(_Alignof(struct sha256_ctx) <= _Alignof(struct vx_sha256),
	"vx_sha256 is aligned for nettle's context");
_Static_assert(_Alignof(struct sha1_ctx) <= _Alignof(struct vx_sha1),
	"vx_sha1 is aligned for nettle's context");
_Static_assert(VX_DIGEST_BYTES == SHA256_DIGEST_SIZE, "a digest is a SHA-256");

static struct sha256_ctx *ctx256(struct vx_sha256 *c)
{
	return (struct sha256_ctx *)(void *)c->opaque;
}

static struct sha1_ctx *ctx1(struct vx_sha1 *c)
{
	return (struct sha1_ctx *)(void *)c->opaque;
}

void vx_sha256_init(struct vx_sha256 *c)
{
	sha256_init(ctx256(c));
}

void vx_sha256_add(struct vx_sha256 *c, const void *p, size_t n)
{
	if (n)
		sha256_update(ctx256(c), n, p);
}

void vx_sha256_done(struct vx_sha256 *c, struct vx_digest *ret)
{
	sha256_digest(ctx256(c), sizeof ret->b, ret->b);
}

void vx_sha256_of(const void *p, size_t n, struct vx_digest *ret)
{
	struct vx_sha256 c;

	vx_sha256_init(&c);
	vx_sha256_add(&c, p, n);
	vx_sha256_done(&c, ret);
}

bool vx_digest_equal(const struct vx_digest *a, const struct vx_digest *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}

bool vx_digest_zero(const struct vx_digest *d)
{
	static const struct vx_digest zero;
	return vx_digest_equal(d, &zero);
}

void vx_hmac_sha256(const void *key, size_t key_n, const void *p, size_t n, struct vx_digest *ret)
{
	struct hmac_sha256_ctx c;

	hmac_sha256_set_key(&c, key_n, key_n ? key : (const void *)"");
	if (n)
		hmac_sha256_update(&c, n, p);
	hmac_sha256_digest(&c, sizeof ret->b, ret->b);
	explicit_bzero(&c, sizeof c); /* it holds what the key can be computed from */
}

void vx_sha1_init(struct vx_sha1 *c)
{
	sha1_init(ctx1(c));
}

void vx_sha1_add(struct vx_sha1 *c, const void *p, size_t n)
{
	if (n)
		sha1_update(ctx1(c), n, p);
}

void vx_sha1_done(struct vx_sha1 *c, uint8_t ret[20])
{
	sha1_digest(ctx1(c), SHA1_DIGEST_SIZE, ret);
}

void vx_git_blob_id(enum vx_oid_kind kind, const void *p, size_t n, uint8_t *ret)
{
	char head[32];
	int len = snprintf(head, sizeof head, "blob %zu", n);
	size_t head_n = (size_t)len + 1; /* the NUL belongs to it */

	if (kind == VX_OID_SHA1) {
		struct vx_sha1 c;

		vx_sha1_init(&c);
		vx_sha1_add(&c, head, head_n);
		vx_sha1_add(&c, p, n);
		vx_sha1_done(&c, ret);
	} else {
		struct vx_sha256 c;
		struct vx_digest d;

		vx_assert(kind == VX_OID_SHA256);
		vx_sha256_init(&c);
		vx_sha256_add(&c, head, head_n);
		vx_sha256_add(&c, p, n);
		vx_sha256_done(&c, &d);
		memcpy(ret, d.b, sizeof d.b);
	}
}

void vx_hex(const uint8_t *p, size_t n, char *ret)
{
	static const char hex[] = "0123456789abcdef";

	for (size_t i = 0; i < n; i++) {
		ret[2 * i] = hex[p[i] >> 4];
		ret[2 * i + 1] = hex[p[i] & 15];
	}
	ret[2 * n] = '\0';
}

static int nibble(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int vx_unhex(const char *s, size_t n, uint8_t *ret)
{
	for (size_t i = 0; i < 2 * n;
		i++) /* first all, so that ret stays untouched on failure; a NUL ends it too */
		if (nibble(s[i]) < 0)
			return -EINVAL;
	for (size_t i = 0; i < n; i++)
		ret[i] =
			(uint8_t)((unsigned)nibble(s[2 * i]) << 4 | (unsigned)nibble(s[2 * i + 1]));
	return 0;
}
