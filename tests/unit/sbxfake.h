/* A file system that exists only in a table, for tests of the resolver; and the task whose request
 * is made. */
#ifndef SBXFAKE_H
#define SBXFAKE_H

#include "vxtest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/sandbox.h"

#include <errno.h>

struct node {
	const char *path;
	enum vx_fact_type type;
	const char *text; /* a link's target, a file's content */
	uid_t uid;
	mode_t mode;
};

static struct node nodes[128];
static uint32_t n_nodes;
static struct vx_arena arena;
static struct vx_sbx_spec spec;
static struct vx_sbx_request req;
static struct vx_err err;
static uid_t run_uid;
static const char *pw_home;

VXT_UNUSED static void add(const char *path, enum vx_fact_type type, const char *text, uid_t uid)
{
	nodes[n_nodes++] = (struct node){path, type, text, uid, type == VX_FACT_DIR ? 0755 : 0644};
}
VXT_UNUSED static void dir(const char *path)
{
	add(path, VX_FACT_DIR, NULL, 1000);
}
VXT_UNUSED static void file(const char *path)
{
	add(path, VX_FACT_FILE, "", 1000);
}
VXT_UNUSED static void sym(const char *path, const char *to)
{
	add(path, VX_FACT_LINK, to, 1000);
}

VXT_UNUSED static const struct node *find(const char *path)
{
	static const struct node top = {"/", VX_FACT_DIR, NULL, 0, 0755};

	if (!strcmp(path, "/"))
		return &top;
	for (uint32_t i = 0; i < n_nodes; i++)
		if (!strcmp(nodes[i].path, path))
			return &nodes[i];
	return NULL;
}

VXT_UNUSED static int fake_lstat(
	void *self, const char *path, enum vx_fact_type *type, uid_t *uid, mode_t *mode)
{
	const struct node *n = find(path);

	(void)self;
	assert_true(path[0] == '/');
	*type = n ? n->type : VX_FACT_NONE;
	if (n)
		*uid = n->uid, *mode = n->mode;
	return 0;
}
VXT_UNUSED static int fake_list(void *self, const char *d, struct vx_arena *a, struct vx_strs *ret)
{
	struct vx_strlist l = {0};
	size_t k = strlen(d);

	(void)self;
	if (!find(d) || find(d)->type != VX_FACT_DIR)
		return -ENOENT;
	for (uint32_t i = 0; i < n_nodes; i++)
		if (!strncmp(nodes[i].path, d, k) && nodes[i].path[k] == '/' &&
			!strchr(nodes[i].path + k + 1, '/'))
			vx_strlist_add(&l, a, nodes[i].path + k + 1);
	*ret = vx_strlist_done(&l);
	return 0;
}
VXT_UNUSED static int fake_readlink(void *self, const char *path, struct vx_arena *a, char **ret)
{
	(void)self;
	*ret = vx_arena_strdup(a, find(path)->text);
	return 0;
}
VXT_UNUSED static int fake_readfile(void *self, const char *path, struct vx_arena *a, char **ret)
{
	const struct node *n = find(path);

	(void)self;
	if (!n || n->type != VX_FACT_FILE)
		return -ENOENT;
	*ret = vx_arena_strdup(a, n->text);
	return 0;
}

VXT_UNUSED static unsigned n_walked; /* directories that were listed by walks */
VXT_UNUSED static int walk_result;
VXT_UNUSED static int fake_walk(void *self, const char *d,
	bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
	void *arg)
{
	struct vx_strs names = {0};

	if (walk_result < 0 || !find(d) || find(d)->type != VX_FACT_DIR)
		return walk_result;
	n_walked++;
	fake_list(self, d, &arena, &names);
	bool enter[128] = {false};
	look(arg, d, NULL, VX_FACT_DIR);
	for (uint32_t i = 0; i < names.n; i++)
		enter[i] = look(arg, d, names.v[i],
			find(vx_arena_printf(&arena, "%s/%s", d, names.v[i]))->type);
	for (uint32_t i = 0; i < names.n; i++)
		if (enter[i])
			fake_walk(self, vx_arena_printf(&arena, "%s/%s", d, names.v[i]), look, arg);
	return 0;
}

VXT_UNUSED static struct vx_sbx_facts facts(void)
{
	return (struct vx_sbx_facts){.lstat = fake_lstat,
		.list = fake_list,
		.readlink = fake_readlink,
		.readfile = fake_readfile,
		.walk = fake_walk,
		.uid = run_uid,
		.pw_home = pw_home};
}

VXT_UNUSED static int resolve(void)
{
	struct vx_sbx_facts f = facts();

	memset(&err, 0, sizeof err);
	memset(&req, 0, sizeof req);
	return vx_sbx_resolve(&spec, &f, &arena, &req, &err);
}

VXT_UNUSED static struct vx_strs list_of(const char *one, const char *two)
{
	struct vx_strlist l = {0};

	vx_strlist_add(&l, &arena, one);
	if (two)
		vx_strlist_add(&l, &arena, two);
	return vx_strlist_done(&l);
}
#define READ(...) (spec.decl.read = list_of(__VA_ARGS__))
#define WRITE(...) (spec.decl.write = list_of(__VA_ARGS__))

VXT_UNUSED static const struct vx_mount *mount_at(const char *target)
{
	const struct vx_mount *m = NULL;

	for (uint32_t i = 0; i < req.n_mounts; i++)
		if (!strcmp(req.mounts[i].target, target))
			m = &req.mounts[i];
	return m;
}
VXT_UNUSED static bool bound(const char *target, bool writable)
{
	const struct vx_mount *m = mount_at(target);

	return m && m->kind == VX_MNT_BIND && m->writable == writable;
}
VXT_UNUSED static const struct vx_skeleton *shown(const char *path)
{
	for (uint32_t i = 0; i < req.n_skeleton; i++)
		if (!strcmp(req.skeleton[i].path, path))
			return &req.skeleton[i];
	return NULL;
}
VXT_UNUSED static uint32_t n_binds(void)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < req.n_mounts; i++)
		n += req.mounts[i].kind == VX_MNT_BIND;
	return n;
}

/* A workspace /w with projects p/a, p/b, p/a/inner, and what surrounds it. */
VXT_UNUSED static int fresh(void **state)
{
	static const char *const base[] = {"/w", "/w/p", "/w/p/a", "/w/p/a/src", "/w/p/b",
		"/w/p/b/lib", "/w/p/a/inner", "/w/.git", "/w/.vx", "/w/.vx/cache", "/home",
		"/home/u", "/home/u/.ssh", "/home/u/.config", "/home/u/.config/gh",
		"/home/u/.cargo", "/tmp", "/etc", "/run", "/dev", "/opt", "/opt/out"};

	(void)state;
	vx_arena_free(&arena);
	n_nodes = 0;
	run_uid = 1000;
	pw_home = NULL;
	for (size_t i = 0; i < sizeof base / sizeof *base; i++)
		dir(base[i]);
	file("/w/package.json");
	file("/w/p/a/package.json");
	file("/w/p/a/src/x.c");
	file("/w/p/a/src/y.c");
	file("/w/p/a/src/z.h");
	file("/w/p/a/inner/secret");
	file("/home/u/.npmrc");
	file("/home/u/.ssh/id");
	file("/home/u/.ssh/known_hosts");
	file("/home/u/.cargo/credentials.toml");
	spec = (struct vx_sbx_spec){.root = "/w",
		.project_dir = "p/a",
		.home = "/home/u",
		.record_dir = "/w/.vx/sweep"};
	spec.store_dirs = list_of("/w/.vx/cache", NULL);
	spec.nested = list_of("p/a/inner", NULL);
	return 0;
}

#endif
