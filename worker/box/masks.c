/* What is taken away again on top of what was granted: credential stores, socket directories. And
 * devices. */
#include "resolve.h"

#include <errno.h>
#include <string.h>

/* Below HOME. A trailing `*` takes every name with that beginning. */
static const char *const stores[] = {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci",
	".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/doctl",
	".config/rclone", ".config/containers/auth.json", ".config/composer/auth.json",
	".composer/auth.json", ".docker/config.json", ".netrc", ".git-credentials",
	".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials*",
	".gem/credentials", ".vault-token", ".pgpass", ".my.cnf", ".s3cfg", ".boto",
	".terraform.d/credentials.tfrc.json", ".password-store", ".local/share/keyrings",
	".local/share/kwalletd"};

static void store_names(struct sbx_work *w, const char *spelled, struct vx_strlist *ret)
{
	struct vx_strs names = {0};

	if (!vx_ends_with(spelled, "*")) {
		vx_strlist_add(ret, w->a, spelled);
		return;
	}
	if (w->f->list(w->f->self, vx_path_dir(w->a, spelled), w->a, &names) < 0)
		return;
	for (uint32_t i = 0; i < names.n; i++)
		if (sbx_glob_match(vx_path_base(spelled), names.v[i]))
			vx_strlist_add(ret, w->a,
				vx_path_join(w->a, vx_path_dir(w->a, spelled), names.v[i]));
}

static int stores_of(struct sbx_work *w, const char *home_spelled, struct vx_strlist *found)
{
	struct vx_strlist spelled = {0};
	struct sbx_place home = {0}, p = {0};
	int r = home_spelled && home_spelled[0] == '/' ? sbx_follow(w, home_spelled, &home) : 0;

	if (r < 0 || !home_spelled || home_spelled[0] != '/')
		return r;
	for (size_t i = 0; i < sizeof stores / sizeof *stores; i++)
		store_names(w, vx_path_join(w->a, home.path, stores[i]), &spelled);
	for (uint32_t i = 0; i < spelled.n && r == 0; i++) {
		r = sbx_follow(w, spelled.v[i], &p);
		if (r == 0 && p.type != VX_FACT_NONE && !vx_path_within(home.path, p.path))
			vx_strlist_add(found, w->a, p.path);
	}
	return r;
}

/* The stores that exist, by their canonical paths: below HOME, and below the home directory that
 * the user database knows (sudo keeps or changes HOME). */
int sbx_credentials(struct sbx_work *w, struct vx_strs *ret)
{
	struct vx_strlist found = {0};
	uint32_t before = w->n_skeleton;
	int r = stores_of(w, w->s->home, &found);

	if (r == 0 && !vx_streq(w->s->home, w->f->pw_home))
		r = stores_of(w, w->f->pw_home, &found);
	w->n_skeleton = before;
	vx_strlist_sort_unique(&found);
	*ret = vx_strlist_done(&found);
	return r;
}

const char *sbx_mask_over(struct vx_strs masks, const char *path)
{
	for (uint32_t i = 0; i < masks.n; i++)
		if (vx_path_within(path, masks.v[i]))
			return masks.v[i];
	return NULL;
}

static int hide(struct sbx_work *w, const char *path, enum vx_mount_why why)
{
	struct sbx_place p = {0};
	int r = sbx_lstat(w, path, &p);

	if (r < 0 || p.type == VX_FACT_NONE)
		return r;
	bool dir = p.type == VX_FACT_DIR;
	sbx_mount(w, dir ? VX_MNT_HIDE_DIR : VX_MNT_HIDE_FILE, why, path, NULL, false, dir);
	return 0;
}

/* Inside something that is emptied already. */
static bool sbx_mounted_over(const struct sbx_work *w, const char *path)
{
	for (uint32_t i = 0; i < w->n_mounts; i++)
		if (w->mounts[i].kind == VX_MNT_HIDE_DIR &&
			vx_path_within(path, w->mounts[i].target))
			return true;
	return false;
}

/* Pipes with a name that lead to init: a read-only mount does not stop writing to one, and root
 * needs no capability for it. */
static const char *const init_pipes[] = {
	"/run/initctl", "/run/systemd/initctl/fifo", "/etc/initctl"};

/* Walls that would show all the same: outside the workspace, or inside a dependency (those are not
 * cut). Then the credential stores. */
int sbx_masks(struct sbx_work *w, struct vx_strs masks)
{
	int r = 0;

	for (uint32_t i = 0; i < w->n_walls && r == 0; i++)
		if (w->walls[i].kind != SBX_WALL_NESTED && !w->walls[i].granted &&
			sbx_visible(w, w->walls[i].path))
			r = hide(w, w->walls[i].path, VX_WHY_WALL);
	for (size_t i = 0; i < sizeof init_pipes / sizeof *init_pipes && r == 0; i++) {
		struct sbx_place p = {0};
		r = sbx_lstat(w, init_pipes[i], &p);
		if (r == 0 && p.type == VX_FACT_OTHER && !sbx_mounted_over(w, init_pipes[i]))
			r = hide(w, init_pipes[i], VX_WHY_SOCKET);
	}
	for (uint32_t i = 0; i < masks.n && r == 0; i++)
		if (!vx_strs_has(vx_strlist_done(&w->unmasked), masks.v[i]) &&
			sbx_visible(w, masks.v[i]))
			r = hide(w, masks.v[i], VX_WHY_CREDENTIAL);
	return r;
}

/* With a list of sockets, the places where daemons keep theirs are emptied first: a read-only mount
 * does not stop connect(2). */
int sbx_sockets(struct sbx_work *w)
{
	static const char *const usual[] = {"/run", "/var/run"};
	struct vx_strs paths = w->s->decl.unix_paths;
	const char *covered = NULL;
	struct sbx_place p = {0};
	int r = 0;

	if (w->s->decl.unix_all || !paths.n)
		return 0;
	for (uint32_t i = 0; i < 2 && r == 0; i++) {
		r = sbx_follow(w, usual[i], &p);
		if (r == 0 && p.type == VX_FACT_DIR && !(covered && vx_streq(covered, p.path)) &&
			!vx_path_within(w->s->root, p.path)) {
			sbx_mount(w, VX_MNT_HIDE_DIR, VX_WHY_SOCKET, p.path, NULL, false, true);
			covered = p.path;
		}
	}
	if (r == 0)
		r = sbx_follow(w, "/etc/resolv.conf", &p);
	if (r == 0 && p.type == VX_FACT_FILE && covered && vx_path_within(p.path, covered))
		sbx_mount(w, VX_MNT_BIND, VX_WHY_BASE, p.path, NULL, false, false);
	for (uint32_t i = 0; i < paths.n && r == 0; i++) {
		struct sbx_grant g = {0};
		r = sbx_parse_grant(w, "allow.unixSockets", paths.v[i], &g);
		if (r == 0)
			r = sbx_follow(w, g.lexical, &p);
		if (r == 0)
			r = sbx_refuse_task_link(w, "allow.unixSockets", paths.v[i], &p);
		if (r == 0 && p.type == VX_FACT_OTHER)
			sbx_mount(w, VX_MNT_BIND, VX_WHY_SOCKET, p.path, paths.v[i], false, false);
	}
	return r;
}

int sbx_devices(struct sbx_work *w)
{
	int r = 0;

	for (uint32_t i = 0; i < w->s->decl.devices.n && r == 0; i++) {
		const char *text = w->s->decl.devices.v[i];
		struct sbx_place p = {0};

		if (text[0] != '/' || !vx_path_within(vx_path_norm(w->a, text), "/dev") ||
			vx_streq(vx_path_norm(w->a, text), "/dev"))
			return vx_err_set(w->err, -EINVAL,
				"sandbox: allow.devices \"%s\" is not a path below /dev", text);
		r = sbx_follow(w, text, &p);
		if (r == 0 && !vx_path_within(p.path, "/dev"))
			return vx_err_set(w->err, -EPERM,
				"sandbox: allow.devices \"%s\" leads out of /dev, to %s", text,
				p.path);
		if (r == 0 && (p.type == VX_FACT_OTHER || p.type == VX_FACT_DIR))
			sbx_mount(w, VX_MNT_DEVICE, VX_WHY_DEVICE, p.path, text, true,
				p.type == VX_FACT_DIR);
	}
	return r;
}
