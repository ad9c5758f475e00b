/* Write reach, and the request as JSON. */
#include "resolve.h"

#include "vx/json.h"

#include <string.h>

static bool touches(const char *bind, const char *path)
{
	return vx_path_within(path, bind);
}

static enum vx_reach reach_of(struct sbx_work *w, const char *path)
{
	if (vx_path_within(w->s->root, path))
		return VX_REACH_WORKSPACE;
	if (!vx_path_within(path, w->s->root))
		return VX_REACH_NONE;
	if (!vx_path_within(path, w->project) || vx_streq(w->project, w->s->root))
		return vx_streq(w->project, w->s->root) && !vx_streq(path, w->s->root)
			       ? VX_REACH_PROJECT
			       : VX_REACH_WORKSPACE;
	return VX_REACH_PROJECT;
}

/* Inside another project that is nested in this one: that project's files, so more than this
 * project. */
static bool in_nested(struct sbx_work *w, const char *path)
{
	for (uint32_t i = 0; i < w->s->nested.n; i++) {
		const char *dir = vx_path_join(w->a, w->s->root, w->s->nested.v[i]);
		if (vx_path_within(path, dir) || vx_path_within(dir, path))
			return true;
	}
	return false;
}

enum vx_reach vx_sbx_reach(const struct vx_sbx_spec *s, const struct vx_sbx_facts *f,
	struct vx_strs fingerprint, bool *ret_fingerprint)
{
	struct vx_arena a = {0};
	struct sbx_work w = {.s = s, .f = f, .a = &a, .tmp = "/tmp"};
	enum vx_reach reach = VX_REACH_NONE;
	bool covers = false;

	w.project = vx_path_join(&a, s->root, s->project_dir);
	for (uint32_t i = 0; i < s->decl.write.n; i++) {
		struct sbx_grant g = {0};
		struct sbx_place p = {0};
		enum vx_reach one = VX_REACH_WORKSPACE;

		if (sbx_parse_grant(&w, "allow.write", s->decl.write.v[i], &g) == 0 &&
			sbx_follow(&w, g.lexical, &p) == 0) {
			one = reach_of(&w, p.path);
			if (one == VX_REACH_PROJECT && in_nested(&w, p.path))
				one = VX_REACH_WORKSPACE;
			for (uint32_t k = 0; k < fingerprint.n; k++)
				covers |= touches(
					p.path, vx_path_join(&a, s->root, fingerprint.v[k]));
		} else {
			covers = true; /* when unsure: the wider answer */
		}
		if (one > reach)
			reach = one;
	}
	vx_map_free(&w.known_dirs);
	vx_arena_free(&a);
	*ret_fingerprint = covers;
	return reach;
}

static struct vx_json *strings(struct vx_strs s)
{
	struct vx_json *arr = vx_json_array();

	for (uint32_t i = 0; i < s.n; i++)
		vx_json_add(arr, vx_json_new_str(s.v[i]));
	return arr;
}

static void set_str(struct vx_json *o, const char *key, const char *s)
{
	if (s)
		vx_json_set(o, key, vx_json_new_str(s));
}

static struct vx_json *mount_json(const struct vx_mount *m)
{
	static const char *const kind[] = {"bind", "tmpfs", "hideFile", "hideDir", "device"};
	static const char *const why[] = {"base", "read", "write", "dependency", "credential",
		"deny", "wall", "device", "socket"};
	struct vx_json *o = vx_json_object();

	set_str(o, "kind", kind[m->kind]);
	set_str(o, "why", why[m->why]);
	set_str(o, "target", m->target);
	if (m->source && !vx_streq(m->source, m->target))
		set_str(o, "source", m->source);
	set_str(o, "grant", m->grant);
	vx_json_set(o, "writable", vx_json_new_bool(m->writable));
	return o;
}

struct vx_json *vx_sbx_request_json(const struct vx_sbx_request *r)
{
	struct vx_json *o = vx_json_object(), *mounts = vx_json_array(), *places = vx_json_array(),
		       *skeleton = vx_json_array(), *withheld = vx_json_array();

	for (uint32_t i = 0; i < r->n_mounts; i++)
		vx_json_add(mounts, mount_json(&r->mounts[i]));
	for (uint32_t i = 0; i < r->n_placeholders; i++) {
		struct vx_json *p = vx_json_object();
		set_str(p, "path", r->placeholders[i].path);
		set_str(p, "grant", r->placeholders[i].grant);
		vx_json_set(p, "directory", vx_json_new_bool(r->placeholders[i].is_dir));
		vx_json_add(places, p);
	}
	for (uint32_t i = 0; i < r->n_skeleton; i++) {
		struct vx_json *p = vx_json_object();
		set_str(p, "path", r->skeleton[i].path);
		set_str(p, "link", r->skeleton[i].link_target);
		vx_json_add(skeleton, p);
	}
	for (uint32_t i = 0; i < r->n_withheld; i++) {
		struct vx_json *p = vx_json_object();
		set_str(p, "link", r->withheld[i].link);
		set_str(p, "target", r->withheld[i].target);
		set_str(p, "package", r->withheld[i].package);
		vx_json_add(withheld, p);
	}
	vx_json_set(o, "protectedAllowed", strings(r->protect));
	set_str(o, "wall", r->wall);
	set_str(o, "cwd", r->cwd);
	vx_json_set(o, "mounts", mounts);
	vx_json_set(o, "placeholders", places);
	vx_json_set(o, "skeleton", skeleton);
	vx_json_set(o, "withheld", withheld);
	vx_json_set(o, "deniedNamesIn", strings(r->deny_in));
	vx_json_set(o, "env", strings(r->env));
	vx_json_set(o, "network", vx_json_new_bool(r->share_net));
	vx_json_set(
		o, "unixSockets", r->unix_all ? vx_json_new_bool(true) : strings(r->unix_paths));
	vx_json_set(o, "pty", vx_json_new_bool(r->pty));
	vx_json_set(o, "weaker", vx_json_new_bool(r->weaker));
	return o;
}
