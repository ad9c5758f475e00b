#include "vxtest.h"

#include "vx/hash.h"

#include <errno.h>

static const char *hex(const struct vx_digest *d)
{
	static char text[VX_DIGEST_HEX];

	vx_hex(d->b, sizeof d->b, text);
	return text;
}

/* FIPS 180-4's examples. */
static void sha256_known(void **state)
{
	struct vx_digest d;
	struct vx_sha256 c;

	(void)state;
	vx_sha256_of("abc", 3, &d);
	assert_string_equal(
		hex(&d), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
	vx_sha256_of(NULL, 0, &d);
	assert_string_equal(
		hex(&d), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
	vx_sha256_init(&c);
	for (int i = 0; i < 1000000; i += 10)
		vx_sha256_add(&c, "aaaaaaaaaa", 10);
	vx_sha256_add(&c, NULL, 0);
	vx_sha256_done(&c, &d);
	assert_string_equal(
		hex(&d), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* RFC 4231, cases 1, 2 and 6. */
static void hmac_known(void **state)
{
	struct vx_digest d;
	unsigned char key[131];

	(void)state;
	memset(key, 0x0b, 20);
	vx_hmac_sha256(key, 20, "Hi There", 8, &d);
	assert_string_equal(
		hex(&d), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
	vx_hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, &d);
	assert_string_equal(
		hex(&d), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
	memset(key, 0xaa, sizeof key);
	vx_hmac_sha256(
		key, sizeof key, "Test Using Larger Than Block-Size Key - Hash Key First", 54, &d);
	assert_string_equal(
		hex(&d), "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

static void hmac_of_nothing_with_no_key(void **state)
{
	struct vx_digest d;

	(void)state;
	vx_hmac_sha256(NULL, 0, NULL, 0, &d);
	assert_string_equal(
		hex(&d), "b613679a0814d9ec772f95d778c35fc5ff1697c493715653c6c712144292c5ad");
}

static void sha1_known(void **state)
{
	struct vx_sha1 c;
	uint8_t d[20];
	char text[41];

	(void)state;
	vx_sha1_init(&c);
	vx_sha1_add(&c, "a", 1);
	vx_sha1_add(&c, "bc", 2);
	vx_sha1_done(&c, d);
	vx_hex(d, 20, text);
	assert_string_equal(text, "a9993e364706816aba3e25717850c26c9cd0d89d");
}

static void git_ids(void **state)
{
	uint8_t id[32];
	char text[65];

	(void)state;
	vx_git_blob_id(VX_OID_SHA1, NULL, 0, id);
	vx_hex(id, 20, text);
	assert_string_equal(text, "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391");
	vx_git_blob_id(VX_OID_SHA256, NULL, 0, id);
	vx_hex(id, 32, text);
	assert_string_equal(
		text, "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813");
	vx_git_blob_id(VX_OID_SHA1, "hello\n", 6, id);
	vx_hex(id, 20, text);
	assert_string_equal(text, "ce013625030ba8dba906f756967f9e9ca394464a");
}

static void unhex(void **state)
{
	uint8_t b[3] = {9, 9, 9};

	(void)state;
	assert_int_equal(vx_unhex("00fFaB", 3, b), 0);
	assert_memory_equal(b, "\x00\xff\xab", 3);
	assert_int_equal(vx_unhex("00f", 3, b), -EINVAL); /* ends early */
	assert_int_equal(vx_unhex("11111g", 3, b), -EINVAL);
	assert_int_equal(vx_unhex("1111 1", 3, b), -EINVAL);
	assert_memory_equal(b, "\x00\xff\xab", 3); /* untouched */
	assert_int_equal(vx_unhex("", 0, b), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_known),
		cmocka_unit_test(hmac_known),
		cmocka_unit_test(hmac_of_nothing_with_no_key),
		cmocka_unit_test(sha1_known),
		cmocka_unit_test(git_ids),
		cmocka_unit_test(unhex),
	};

	return cmocka_run_group_tests_name("hash", tests, NULL, NULL);
}
