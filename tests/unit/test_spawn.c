#include "vxtest.h"
#include "vx/json.h"
#include "vx/spawn.h"
#include "vx/buf.h"
static void smoke(void **st)
{
	(void)st;
	struct vx_json *v = NULL;
	assert_int_equal(vx_json_parse("{\"a\":[1,2]}", 11, 0, "x", &v, NULL), 0);
	vx_json_free(v);
	struct vx_buf b = VX_BUF(1000);
	int status = 0;
	struct vx_spawn s = VX_SPAWN_INIT;
	const char *argv[] = {"sh", "-c", "echo hi", NULL};
	s.path = "/bin/sh";
	s.argv = argv;
	assert_int_equal(vx_spawn_capture(&s, &b, NULL, 0, -1, &status), 0);
	assert_string_equal(vx_buf_str(&b), "hi\n");
	vx_buf_free(&b);
}
int main(void)
{
	const struct CMUnitTest t[] = {cmocka_unit_test(smoke)};
	return cmocka_run_group_tests_name("smoke", t, NULL, NULL);
}
