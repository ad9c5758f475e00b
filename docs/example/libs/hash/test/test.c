#include "check.h"
#include "hash.h"

int main(void)
{
	CHECK(hash_string("") == 0xcbf29ce484222325u);
	CHECK(hash_string("a") == 0xaf63dc4c8601ec8cu);
	CHECK(hash_bytes("foobar", 6) == 0x85944171f73967e8u);
	return CHECK_DONE();
}
