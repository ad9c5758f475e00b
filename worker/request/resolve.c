/* The order of work, and the mounts in their order. */
#include "resolve.h"

#include "vx/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void sbx_mount(struct sbx_work *w, enum vx_mount_kind kind, enum vx_mount_why why, const char *path,
	const char *grant, bool writable, bool is_dir)
{
	bool bind = kind == VX_MNT_BIND || kind == VX_MNT_DEVICE;

	*SBX_PUSH(w, w->mounts, w->n_mounts, w->cap_mounts) = (struct vx_mount){.kind = kind,
		.why = why,
		.source = bind ? path : NULL,
		.target = path,
		.grant = grant,
		.writable = writable,
		.source_is_dir = is_dir,
		.mode = kind == VX_MNT_TMPFS && why == VX_WHY_BASE ? 01777 : 0755};
}

bool sbx_visible(const struct sbx_work *w, const char *path)
{
	if (!vx_path_within(path, w->s->root) && !vx_path_within(path, w->tmp))
		return true;
	return sbx_covered(&w->reads, path) || sbx_covered(&w->writes, path);
}

/* What this build cannot enforce is refused, never dropped. */
static int refuse_unsupported(struct sbx_work *w)
{
	const struct vx_sbx_decl *d = &w->s->decl;

	if (d->net_allow.n) {
		vx_err_set(w->err, -ENOTSUP,
			"sandbox: allow.network is a list of hosts, and this build cannot filter hosts");
		return vx_err_fix(w->err,
			"write \"network\": true for the whole network, or leave it out for none");
	}
	if (d->net_deny.n && d->net_all) {
		vx_err_set(w->err, -ENOTSUP,
			"sandbox: deny.network is not empty, and this build cannot filter hosts");
		return vx_err_fix(w->err,
			"leave out deny.network for the whole network, or allow.network for none");
	}
	if (d->n_bind_ports && !d->net_all) {
		vx_err_set(w->err, -ENOTSUP,
			"sandbox: allow.localBinding lists ports, and this build cannot forward ports into a sandbox");
		return vx_err_fix(w->err,
			"write \"network\": true, which makes every port reachable, or leave localBinding out");
	}
	return 0;
}

int sbx_path_order(const char *a, const char *b)
{
	for (; *a && *a == *b; a++)
		b++;
	unsigned char x = (unsigned char)*a, y = (unsigned char)*b;
	return (x == '/' ? 1 : x ? x + 1 : 0) - (y == '/' ? 1 : y ? y + 1 : 0);
}

static int bind_order(const void *a, const void *b)
{
	const struct sbx_bind *x = a, *y = b;
	int c = sbx_path_order(x->path, y->path);

	return c                        ? c
	       : x->is_dir != y->is_dir ? (int)y->is_dir - (int)x->is_dir
					: (int)x->why - (int)y->why;
}

static int skeleton_order(const void *a, const void *b)
{
	const struct vx_skeleton *x = a, *y = b;
	int c = sbx_path_order(x->path, y->path);

	return c ? c : !!x->link_target - !!y->link_target;
}

/* Sorts, and drops what another one holds: grants below one directory share its mount, so that
 * rename and link between them work. */
static void merge(struct sbx_binds *b)
{
	uint32_t n = 0;

	if (b->n)
		qsort(b->v, b->n, sizeof *b->v, bind_order);
	for (uint32_t i = 0; i < b->n; i++)
		if (!n || !vx_path_within(b->v[i].path, b->v[n - 1].path))
			b->v[n++] = b->v[i];
	b->n = n;
}

/* A grant that names a credential store lifts its mask; one inside a store is bound on top of the
 * mask. */
static void sort_out_masked(
	struct sbx_work *w, struct sbx_binds *b, struct vx_strs masks, bool writable)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < b->n; i++) {
		const char *mask = sbx_mask_over(masks, b->v[i].path);
		if (mask && vx_streq(mask, b->v[i].path))
			vx_strlist_add(&w->unmasked, w->a, mask);
		if (mask && !vx_streq(mask, b->v[i].path)) {
			struct sbx_bind *late = SBX_PUSH(w, w->late.v, w->late.n, w->late.cap);
			*late = b->v[i];
			late->why = writable ? VX_WHY_WRITE : VX_WHY_READ;
		} else {
			b->v[n++] = b->v[i];
		}
	}
	b->n = n;
}

static int emit_mounts(struct sbx_work *w, struct vx_strs masks)
{
	int r = 0;

	sbx_mount(w, VX_MNT_TMPFS, VX_WHY_BASE, w->tmp, NULL, true, true);
	sbx_mount(w, VX_MNT_TMPFS, VX_WHY_BASE, "/dev/shm", NULL, true, true);
	r = sbx_sockets(w);
	sbx_mount(w, VX_MNT_TMPFS, VX_WHY_WALL, w->s->root, NULL, false, true);
	for (uint32_t i = 0; i < w->reads.n && r == 0; i++) {
		const struct sbx_bind *b = &w->reads.v[i];
		/* Elsewhere the baseline shows it already. */
		if (sbx_covered(&w->writes, b->path) ||
			!(vx_path_within(b->path, w->s->root) || vx_path_within(b->path, w->tmp)))
			continue;
		sbx_mount(w, VX_MNT_BIND, b->why, b->path, b->grant, false, b->is_dir);
	}
	for (uint32_t i = 0; i < w->writes.n && r == 0; i++) {
		sbx_mount(w, VX_MNT_BIND, VX_WHY_WRITE, w->writes.v[i].path, w->writes.v[i].grant,
			true, w->writes.v[i].is_dir);
		r = sbx_denies(w, &w->writes.v[i]);
	}
	if (r == 0)
		r = sbx_masks(w, masks);
	for (uint32_t i = 0; i < w->late.n && r == 0; i++) {
		const struct sbx_bind *b = &w->late.v[i];
		sbx_mount(w, VX_MNT_BIND, b->why, b->path, b->grant, b->why == VX_WHY_WRITE,
			b->is_dir);
		if (b->why == VX_WHY_WRITE)
			r = sbx_denies(w, b);
	}
	if (r == 0)
		r = sbx_devices(w);
	if (r == 0 && w->n_mounts > VX_MAX_MOUNTS)
		r = vx_err_set(w->err, -E2BIG, "sandbox: more mounts than VX_MAX_MOUNTS (%u)",
			VX_MAX_MOUNTS);
	return r;
}

/* The skeleton shows what no mount shows. */
static void finish_skeleton(struct sbx_work *w)
{
	uint32_t n = 0;

	sbx_skeleton(w, w->project, NULL);
	qsort(w->skeleton, w->n_skeleton, sizeof *w->skeleton, skeleton_order);
	for (uint32_t i = 0; i < w->n_skeleton; i++) {
		const char *path = w->skeleton[i].path;
		if (n && vx_streq(w->skeleton[n - 1].path, path))
			continue;
		if (!sbx_covered(&w->reads, path) && !sbx_covered(&w->writes, path) &&
			!vx_streq(path, w->s->root))
			w->skeleton[n++] = w->skeleton[i];
	}
	w->n_skeleton = n;
}

static void fill(struct sbx_work *w, struct vx_sbx_request *ret)
{
	const struct vx_sbx_decl *d = &w->s->decl;
	struct vx_strlist env = {0};

	vx_strlist_add(&env, w->a, "TMPDIR=/tmp");
	vx_strlist_add(&env, w->a, "GIT_DISCOVERY_ACROSS_FILESYSTEM=1");
	*ret = (struct vx_sbx_request){.mounts = w->mounts,
		.n_mounts = w->n_mounts,
		.placeholders = w->places,
		.n_placeholders = w->n_places,
		.skeleton = w->skeleton,
		.n_skeleton = w->n_skeleton,
		.withheld = w->withheld,
		.n_withheld = w->n_withheld,
		.deny_in = vx_strlist_done(&w->deny_in),
		.deny_known = vx_strlist_done(&w->deny_known),
		.git_config = d->git_config,
		.members = w->s->members,
		.protect = vx_strlist_done(&w->protect),
		.wall = w->s->root,
		.cwd = w->project,
		.env = vx_strlist_done(&env),
		.share_net = d->net_all,
		.unix_all = d->unix_all,
		.unix_paths = d->unix_paths,
		.no_unix = !d->unix_all && !d->unix_paths.n,
		.pty = d->pty,
		/* root could mount what root owns: cgroups, say */
		.nesting = d->weaker_when_nested && w->f->uid != 0,
		.weaker = w->s->weaker};
}

static int resolve(struct sbx_work *w, struct vx_sbx_request *ret)
{
	struct sbx_place p = {0};
	struct vx_strs masks = {0};
	int r = refuse_unsupported(w);

	if (r == 0 && vx_streq(w->s->root, "/"))
		r = vx_err_set(w->err, -EPERM,
			"sandbox: the workspace is /, which cannot be hidden from a task");
	w->tmp = "/tmp";
	if (r == 0)
		r = sbx_follow(w, "/tmp", &p);
	if (r < 0)
		return r;
	w->tmp = p.path;
	w->project = vx_path_join(w->a, w->s->root, w->s->project_dir);
	if (vx_path_within(w->tmp, w->s->root))
		return vx_err_set(w->err, -EPERM,
			"sandbox: the workspace holds /tmp, which every task gets for itself");
	r = sbx_find_walls(w);
	if (r == 0)
		r = sbx_compile_members(w);
	if (r == 0)
		r = sbx_find_written(w);
	if (r == 0)
		r = sbx_find_protected(w);
	if (r == 0)
		r = sbx_credentials(w, &masks);
	if (r == 0)
		r = sbx_write_grants(w);
	if (r == 0)
		r = sbx_read_grants(w);
	if (r == 0)
		r = sbx_dependencies(w);
	if (r < 0)
		return r;
	sort_out_masked(w, &w->reads, masks, false);
	sort_out_masked(w, &w->writes, masks, true);
	merge(&w->reads);
	merge(&w->writes);
	merge(&w->late);
	r = emit_mounts(w, masks);
	if (r < 0)
		return r;
	finish_skeleton(w);
	fill(w, ret);
	return 0;
}

int vx_sbx_resolve(const struct vx_sbx_spec *s, const struct vx_sbx_facts *f, struct vx_arena *a,
	struct vx_sbx_request *ret, struct vx_err *err)
{
	struct sbx_work w = {.s = s, .f = f, .a = a, .err = err};
	int r = resolve(&w, ret);

	vx_map_free(&w.known_dirs);
	vx_map_free(&w.bound_dirs);
	return r;
}
