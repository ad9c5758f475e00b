/* What is taken away again on top of what was granted: credential stores, socket directories. And
 * devices. */
#include "resolve.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

/* Below HOME. A trailing `*` takes every name with that beginning. */
static const char *const stores[] = {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".oci",
	".config/gcloud", ".config/gh", ".config/hub", ".config/op", ".config/doctl",
	".config/rclone", ".config/containers/auth.json", ".config/composer/auth.json",
	".composer/auth.json", ".docker/config.json", ".netrc", ".git-credentials",
	".config/git/credentials", ".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials*",
	".gem/credentials", ".vault-token", ".pgpass", ".my.cnf", ".s3cfg", ".boto",
	".terraform.d/credentials.tfrc.json", ".password-store", ".local/share/keyrings",
	".local/share/kwalletd"};

/* Variables that say where a store is. `below`: it stands for that directory of HOME, and holds the
 * stores that are listed there (and `file`, where that is given); else it names the store itself.
 */
static const struct {
	const char *name, *below, *file;
	bool list; /* several, with ':' between */
} movers[] = {{"XDG_CONFIG_HOME", ".config", NULL, false},
	{"XDG_DATA_HOME", ".local/share", NULL, false}, {"CARGO_HOME", ".cargo", NULL, false},
	{"DOCKER_CONFIG", ".docker", NULL, false}, {"COMPOSER_HOME", ".composer", NULL, false},
	{"PULUMI_HOME", ".pulumi", "credentials.json", false}, {"GNUPGHOME", NULL, NULL, false},
	{"AWS_SHARED_CREDENTIALS_FILE", NULL, NULL, false}, {"AWS_CONFIG_FILE", NULL, NULL, false},
	{"AWS_WEB_IDENTITY_TOKEN_FILE", NULL, NULL, false}, {"KUBECONFIG", NULL, NULL, true},
	{"GH_CONFIG_DIR", NULL, NULL, false}, {"GLAB_CONFIG_DIR", NULL, NULL, false},
	{"NPM_CONFIG_USERCONFIG", NULL, NULL, false},
	{"NPM_CONFIG_GLOBALCONFIG", NULL, NULL, false}, {"PIP_CONFIG_FILE", NULL, NULL, false},
	{"NETRC", NULL, NULL, false}, {"CLOUDSDK_CONFIG", NULL, NULL, false},
	{"CLOUDSDK_AUTH_CREDENTIAL_FILE_OVERRIDE", NULL, NULL, false},
	{"GOOGLE_APPLICATION_CREDENTIALS", NULL, NULL, false},
	{"AZURE_CONFIG_DIR", NULL, NULL, false}, {"AZURE_FEDERATED_TOKEN_FILE", NULL, NULL, false},
	{"OCI_CLI_CONFIG_FILE", NULL, NULL, false}, {"PGPASSFILE", NULL, NULL, false},
	{"PGSERVICEFILE", NULL, NULL, false}, {"TF_CLI_CONFIG_FILE", NULL, NULL, false},
	{"HELM_REGISTRY_CONFIG", NULL, NULL, false}, {"HELM_REPOSITORY_CONFIG", NULL, NULL, false},
	{"REGISTRY_AUTH_FILE", NULL, NULL, false}, {"RCLONE_CONFIG", NULL, NULL, false},
	{"BOTO_CONFIG", NULL, NULL, false}, {"PASSWORD_STORE_DIR", NULL, NULL, false},
	{"BUNDLE_USER_CONFIG", NULL, NULL, false}, {"TWINE_CONFIG_FILE", NULL, NULL, false},
	{"GIT_CREDENTIAL_STORE", NULL, NULL, false}, {"VAULT_TOKEN_FILE", NULL, NULL, false}};

/* npm takes its variables in any case; of the others nobody has two. */
static int mover_of(const char *variable)
{
	size_t n = strcspn(variable, "=");

	for (size_t i = 0; i < sizeof movers / sizeof *movers; i++)
		if (strlen(movers[i].name) == n && !strncasecmp(movers[i].name, variable, n))
			return (int)i;
	return -1;
}

bool vx_sbx_moves_store(const char *variable)
{
	return mover_of(variable) >= 0;
}

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

/* What is a file or a directory, and holds nothing that a task cannot be without: a variable that
 * names the home directory or /dev/null moves no store. */
static int add_moved(struct sbx_work *w, const char *path, struct vx_strlist *found)
{
	static const char *const kernel[] = {
		"/dev", "/proc", "/sys", "/usr", "/etc", "/bin", "/lib"};
	struct sbx_place p = {0}, home = {0};
	int r = sbx_follow(w, path, &p);

	if (r == 0 && w->s->home && w->s->home[0] == '/')
		r = sbx_follow(w, w->s->home, &home);
	if (r == -ELOOP || r == -ENAMETOOLONG)
		return 0;
	if (r < 0 || (p.type != VX_FACT_FILE && p.type != VX_FACT_DIR) ||
		vx_path_within(w->project, p.path) || vx_path_within(w->tmp, p.path) ||
		(home.path && vx_path_within(home.path, p.path)))
		return r;
	for (size_t i = 0; i < sizeof kernel / sizeof *kernel; i++)
		if (vx_path_within(kernel[i], p.path) ||
			(i < 3 && vx_path_within(p.path, kernel[i])))
			return 0;
	vx_strlist_add(found, w->a, p.path);
	return 0;
}

static int moved_to(struct sbx_work *w, int mover, const char *value, struct vx_strlist *found)
{
	const char *below = movers[mover].below, *at = vx_path_join(w->a, w->project, value);
	struct vx_strlist spelled = {0};
	int r = 0;

	if (!below)
		vx_strlist_add(&spelled, w->a, at);
	else if (movers[mover].file)
		vx_strlist_add(&spelled, w->a, vx_path_join(w->a, at, movers[mover].file));
	for (size_t i = 0; below && i < sizeof stores / sizeof *stores; i++) {
		const char *rest = vx_path_below(stores[i], below);
		if (rest && *rest)
			store_names(w, vx_path_join(w->a, at, rest), &spelled);
	}
	for (uint32_t i = 0; i < spelled.n && r == 0; i++)
		r = add_moved(w, spelled.v[i], found);
	return r;
}

static int moved_stores(struct sbx_work *w, struct vx_strlist *found)
{
	int r = 0;

	for (uint32_t i = 0; i < w->s->moves.n && r == 0; i++) {
		int mover = mover_of(w->s->moves.v[i]);
		const char *value = strchr(w->s->moves.v[i], '=');
		while (mover >= 0 && value && *value && r == 0) {
			value += 1;
			size_t n = movers[mover].list ? strcspn(value, ":") : strlen(value);
			if (n)
				r = moved_to(w, mover, vx_arena_strndup(w->a, value, n), found);
			value += n;
		}
	}
	return r;
}

/* The stores that exist, by their canonical paths: below HOME, and below the home directory that
 * the user database knows (sudo keeps or changes HOME), and where variables have moved them. */
int sbx_credentials(struct sbx_work *w, struct vx_strs *ret)
{
	struct vx_strlist found = {0};
	uint32_t before = w->n_skeleton;
	int r = stores_of(w, w->s->home, &found);

	if (r == 0 && !vx_streq(w->s->home, w->f->pw_home))
		r = stores_of(w, w->f->pw_home, &found);
	if (r == 0)
		r = moved_stores(w, &found);
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
