/* docs/schemas against the reader: every member that a schema knows is known to vx, and none that
 * it does not know is. The build runs tests from the source directory; elsewhere (VX_SRC names it)
 * this is skipped. */
#include "plantest.h"

#include "vx/buf.h"
#include "vx/json.h"

static struct vx_json *schema(const char *name)
{
	struct vx_buf b = VX_BUF(1 << 20);
	struct vx_json *v = NULL;
	char path[PATH_MAX];
	const char *src = getenv("VX_SRC");

	snprintf(path, sizeof path, "%s/docs/schemas/%s", src ? src : ".", name);
	if (vx_read_file(AT_FDCWD, path, &b) < 0)
		return NULL;
	assert_int_equal(vx_json_parse(b.data, b.len, 0, path, &v, NULL), 0);
	vx_buf_free(&b);
	return v;
}

struct probe {
	struct plan p;
	const char *file;
	int members;
};

/* Loads a file in which `text` stands at the place that before/after lead to. The value is of no
 * type that any member takes. */
static void ask(struct probe *q, const char *before, const char *after, const char *key, bool known)
{
	char text[8192];

	snprintf(text, sizeof text, "%s\"%s\":3.5%s", before, key, after);
	vxt_write(q->p.dir, q->file, text);
	int r = plan_load(&q->p);
	bool said = strstr(q->p.text, "unknown key") != NULL;
	if (said == known || (!known && r == 0))
		fail_msg("%s: %s", text, q->p.text);
	q->members++;
}

static void walk(struct probe *q, const struct vx_json *s, const char *before, const char *after)
{
	static const char *const alternatives = "oneOf";
	const struct vx_json *props = vx_json_get(s, "properties"),
			     *more = vx_json_get(s, "additionalProperties"),
			     *one = vx_json_get(s, alternatives);
	char b[4096], a[4096];

	for (size_t i = 0; one && i < vx_json_len(one); i++)
		walk(q, vx_json_at(one, i), before, after);
	if (props)
		ask(q, before, after, "zzzz", false);
	for (struct vx_json_iter it = vx_json_iter(props); props && vx_json_next(&it);) {
		ask(q, before, after, it.key, true);
		snprintf(b, sizeof b, "%s\"%s\":{", before, it.key);
		snprintf(a, sizeof a, "}%s", after);
		walk(q, it.val, b, a);
	}
	if (vx_json_type(more) == VX_JSON_OBJECT && vx_json_get(more, "properties")) {
		snprintf(b, sizeof b, "%s\"build\":{", before);
		snprintf(a, sizeof a, "}%s", after);
		walk(q, more, b, a);
	}
}

static void check(const char *name, const char *file, int at_least)
{
	struct vx_json *s = schema(name);
	struct probe q = {.file = file};

	if (!s)
		vxt_skip("no docs/schemas here (VX_SRC names the source directory)");
	plan_open(&q.p);
	vxt_write(q.p.dir, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"p/*\"],\"scripts\":{\"build\":\"x\"}}");
	vxt_write(q.p.dir, "p/a/package.json", "{\"name\":\"a\",\"scripts\":{\"build\":\"x\"}}");
	walk(&q, s, "{", "}");
	assert_true(q.members >= at_least);
	plan_close(&q.p);
	vx_json_free(s);
}

static void test_project(void **state)
{
	(void)state;
	check("project.json", "p/a/vx.json", 50);
}

static void test_workspace(void **state)
{
	(void)state;
	check("workspace.json", "vx.workspace.json", 60);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_project), cmocka_unit_test(test_workspace)};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
