/* The resolver, driven by a file system that exists only in a table. */
#include "sbxfake.h"

#include "vx/buf.h"
#include "vx/json.h"

static void baseline(void **state)
{
	(void)state;
	assert_int_equal(resolve(), 0);
	assert_int_equal(n_binds(), 0);
	assert_string_equal(req.mounts[0].target, "/tmp");
	assert_int_equal(req.mounts[0].mode, 01777);
	assert_string_equal(req.mounts[1].target, "/dev/shm");
	assert_string_equal(req.mounts[2].target, "/w");
	assert_int_equal(req.mounts[2].why, VX_WHY_WALL);
	assert_false(req.mounts[2].writable);
	assert_int_equal(mount_at("/home/u/.ssh")->kind, VX_MNT_HIDE_DIR);
	assert_int_equal(mount_at("/home/u/.npmrc")->kind, VX_MNT_HIDE_FILE);
	assert_non_null(mount_at("/home/u/.config/gh"));
	assert_non_null(mount_at("/home/u/.cargo/credentials.toml"));
	assert_null(mount_at("/home/u/.aws"));
	/* the task starts there even when nothing in it is granted */
	assert_non_null(shown("/w/p/a"));
	assert_false(req.share_net);
	assert_true(req.no_unix);
	assert_true(vx_strs_has(req.env, "TMPDIR=/tmp"));
	assert_true(vx_strs_has(req.env, "GIT_DISCOVERY_ACROSS_FILESYSTEM=1"));
	assert_string_equal(req.cwd, "/w/p/a");
}

static void reads(void **state)
{
	(void)state;
	READ("src", "missing");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/src", false));
	assert_int_equal(n_binds(), 1);
	READ("src/*.c", "../b/**");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/src/x.c", false) && bound("/w/p/a/src/y.c", false) &&
		    bound("/w/p/b", false));
	assert_null(mount_at("/w/p/a/src/z.h"));
	READ("**/*.h", "src/?.c");
	assert_int_equal(resolve(), 0);
	assert_int_equal(n_binds(), 3);
	READ("/w/package.json", "/opt");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/package.json", false));
	assert_null(mount_at("/opt")); /* seen without a mount */
	READ("src/[x].c", NULL);
	file("/w/p/a/src/[x].c");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/src/[x].c", false)); /* brackets are literal */
	READ("*/../x", NULL);
	assert_int_equal(resolve(), -EINVAL);
	READ("", NULL);
	assert_int_equal(resolve(), -EINVAL);
}

static void read_cut_around_walls(void **state)
{
	(void)state;
	READ(".", NULL);
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/a"));
	assert_true(bound("/w/p/a/src", false) && bound("/w/p/a/package.json", false));
	assert_null(mount_at("/w/p/a/inner"));
	assert_null(shown("/w/p/a/inner"));
	/* the root project: .git, .vx, the store and everything nested stay out */
	spec.project_dir = ".";
	spec.nested = list_of("p/a", "p/b");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/package.json", false));
	assert_null(mount_at("/w/.git"));
	assert_null(mount_at("/w/.vx"));
	assert_null(mount_at("/w/p"));
	/* named outright, a nested project is honoured */
	READ(".", "p/a/src");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/src", false));
	READ(".vx/cache", NULL);
	assert_int_equal(resolve(), -EPERM);
	assert_non_null(strstr(err.what, ".vx"));
}

static void read_git(void **state)
{
	(void)state;
	spec.project_dir = ".";
	READ(".", ".git");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/.git", false));
	/* a worktree: .git is a file that leads out of the workspace */
	fresh(NULL);
	find("/w/.git");
	for (uint32_t i = 0; i < n_nodes; i++)
		if (!strcmp(nodes[i].path, "/w/.git"))
			nodes[i] = (struct node){"/w/.git", VX_FACT_FILE,
				"gitdir: /main/.git/worktrees/w\n", 1000, 0644};
	dir("/main");
	dir("/main/.git");
	dir("/main/.git/worktrees");
	dir("/main/.git/worktrees/w");
	add("/main/.git/worktrees/w/commondir", VX_FACT_FILE, "../..\n", 1000);
	assert_int_equal(resolve(), 0);
	/* walled where it really is */
	assert_int_equal(mount_at("/main/.git")->kind, VX_MNT_HIDE_DIR);
	READ("../../.git", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/.git", false));
	/* readable: no mask, and outside the workspace no mount is needed */
	assert_null(mount_at("/main/.git"));
	WRITE("/main/.git/refs/", NULL);
	assert_int_equal(resolve(), -EPERM);
}

static void writes(void **state)
{
	(void)state;
	WRITE("dist/", "out.txt");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/dist", true) && bound("/w/p/a/out.txt", true));
	assert_int_equal(req.n_placeholders, 2);
	assert_true(req.placeholders[0].is_dir && !req.placeholders[1].is_dir &&
		    !req.placeholders[0].outside);
	WRITE("gen/deep/**/*.js", "gen/deep/more/f");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/gen/deep", true));
	assert_null(mount_at("/w/p/a/gen/deep/more/f")); /* shares the mount above it */
	assert_string_equal(req.placeholders[0].path, "/w/p/a/gen");
	assert_string_equal(req.placeholders[1].path, "/w/p/a/gen/deep");
	WRITE("src/", NULL);
	READ(".", "src/x.c");
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/src", true));
	assert_null(mount_at("/w/p/a/src/x.c")); /* read never on top of write */
	assert_int_equal(req.n_placeholders, 0);
	WRITE("package.json/", NULL);
	assert_int_equal(resolve(), -ENOTDIR);
	WRITE("/opt/out/new/", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(req.placeholders[0].outside);
	WRITE("/opt/out/new", NULL);
	assert_int_equal(resolve(), -ENOENT);
	WRITE("/opt/nowhere/new", NULL);
	assert_int_equal(resolve(), -ENOENT);
	assert_non_null(strstr(err.what, "/opt/nowhere"));
}

static void expect_refusal(const char *grant, const char *word)
{
	WRITE(grant, NULL);
	assert_int_equal(resolve(), -EPERM);
	if (!strstr(err.what, word))
		fail_msg("\"%s\": %s", grant, err.what);
	assert_true(err.fix[0] != '\0');
}

static void write_refusals(void **state)
{
	(void)state;
	spec.store_dirs = list_of("/home/u/.cache/vx/store", NULL);
	expect_refusal(".", "nested project");
	expect_refusal("inner/", "nested project");
	expect_refusal("/w", "git directory");
	expect_refusal("../..", "git directory");
	expect_refusal("/", "holds");
	expect_refusal("~", "home");
	expect_refusal("/home", "home");
	expect_refusal("~/.cache/", "cache directory");
	expect_refusal("~/.cache/vx/store/a/", "cache directory");
	expect_refusal("/w/.git/hooks/", "git");
	expect_refusal("/w/.git/objects/", "git");
	expect_refusal("/w/.vx/", "vx");
	expect_refusal(".vscode/", ".vscode");
	expect_refusal("src/.idea/x", ".idea");
	expect_refusal(".mcp.json", ".mcp.json");
	expect_refusal("/proc/sys/", "/proc");
	expect_refusal("/sys/fs/cgroup/", "/sys");
	expect_refusal("/dev/shm/", "/dev");
	assert_int_equal(req.n_placeholders, 0);
	WRITE("inner/dist/", NULL); /* inside a nested project, outright */
	assert_int_equal(resolve(), 0);
	file("/w/.git/config");
	WRITE("/w/.git/config", NULL);
	assert_int_equal(resolve(), -EPERM);
	spec.decl.git_config = true;
	assert_int_equal(resolve(), 0);
}

static void links(void **state)
{
	(void)state;
	sym("/w/p/a/out", "/opt/out");
	sym("/w/p/a/s", "src");
	sym("/w/p/a/loop", "loop");
	sym("/w/p/a/gone", "/opt/gone");
	sym("/w/p/l", "b");
	expect_refusal("out/", "leaves the project");
	WRITE("gone", NULL);
	assert_int_equal(resolve(), -EPERM); /* a dangling link is judged by its target */
	WRITE("s/gen/", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/a/src/gen", true));
	assert_string_equal(shown("/w/p/a/s")->link_target, "src");
	WRITE("loop", NULL);
	assert_int_equal(resolve(), -ELOOP);
	spec.decl.write = (struct vx_strs){0};
	READ("out", NULL);
	assert_int_equal(resolve(), -EPERM);
	READ("../l/lib", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/b/lib", false));
	assert_string_equal(shown("/w/p/l")->link_target, "b");
	sym("/w/p/a/here", "src/nothing");
	WRITE("here", NULL);
	assert_int_equal(resolve(), 0); /* dangling, inside: left alone */
	assert_int_equal(req.n_placeholders, 0);
}

static void credentials(void **state)
{
	(void)state;
	READ("~/.ssh", NULL);
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/home/u/.ssh")); /* named: no mask */
	assert_non_null(mount_at("/home/u/.npmrc"));
	READ("~/.ssh/known_hosts", "~");
	assert_int_equal(resolve(), 0);
	assert_int_equal(mount_at("/home/u/.ssh")->kind, VX_MNT_HIDE_DIR);
	assert_true(bound("/home/u/.ssh/known_hosts", false)); /* bound on top of the mask */
	assert_true(mount_at("/home/u/.ssh/known_hosts") > mount_at("/home/u/.ssh"));
	spec.decl.read = (struct vx_strs){0};
	WRITE("~/.config/", NULL);
	assert_int_equal(resolve(), 0);
	/* after write binds */
	assert_true(mount_at("/home/u/.config/gh") > mount_at("/home/u/.config"));
	spec.home = "";
	WRITE("~/x", NULL);
	assert_int_equal(resolve(), -EINVAL);
	spec.decl.write = (struct vx_strs){0};
	pw_home = "/home/u"; /* HOME says nothing, or something else: the user database knows */
	assert_int_equal(resolve(), 0);
	assert_non_null(mount_at("/home/u/.ssh"));
	spec.home = "/opt";
	assert_int_equal(resolve(), 0);
	assert_non_null(mount_at("/home/u/.ssh"));
}

static void pipes_to_init(void **state)
{
	(void)state;
	add("/run/initctl", VX_FACT_OTHER, NULL, 0);
	assert_int_equal(resolve(), 0);
	assert_int_equal(mount_at("/run/initctl")->kind, VX_MNT_HIDE_FILE);
	spec.decl.unix_paths = list_of("/run/x.sock", NULL);
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/run/initctl")); /* /run is emptied */
}

static void dependencies(void **state)
{
	static const struct vx_sbx_package packages[] = {{"a", "p/a", false, false},
		{"b", "p/b", true, false}, {"c", "p/c", false, false},
		{"in", "p/a/inner", true, false}};

	(void)state;
	dir("/w/p/c");
	dir("/w/node_modules");
	dir("/w/node_modules/left-pad");
	dir("/w/node_modules/@s");
	sym("/w/node_modules/a", "../p/a");
	sym("/w/node_modules/b", "../p/b");
	sym("/w/node_modules/@s/c", "../../p/c");
	sym("/w/node_modules/broken", "../p/none");
	sym("/w/node_modules/root", "..");
	dir("/w/p/a/node_modules");
	sym("/w/p/a/node_modules/b", "../../b");
	sym("/w/p/a/node_modules/in", "../inner");
	sym("/w/p/a/node_modules/lp", "../../../node_modules/left-pad");
	spec.packages = packages;
	spec.n_packages = 4;
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/node_modules", false) && bound("/w/p/a/node_modules", false));
	/* not cut by walls */
	assert_true(
		bound("/w/p/b", false) && bound("/w/p/c", false) && bound("/w/p/a/inner", false));
	/* the project's own link is named */
	assert_string_equal(mount_at("/w/p/b")->grant, "/w/p/a/node_modules/b");
	assert_int_equal(n_binds(), 5);
	assert_int_equal(req.n_withheld, 0);
	spec.narrow = true;
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/b", false) && bound("/w/p/a/inner", false));
	assert_null(mount_at("/w/p/c"));
	assert_int_equal(req.n_withheld, 1);
	assert_string_equal(req.withheld[0].target, "/w/p/c");
	assert_string_equal(req.withheld[0].link, "/w/node_modules/@s/c");
	assert_string_equal(req.withheld[0].package, "c");
	READ("../c", NULL);
	assert_int_equal(resolve(), 0);
	assert_int_equal(req.n_withheld, 0); /* inside a granted directory */
	/* the store inside a dependency stays hidden */
	spec.store_dirs = list_of("/w/node_modules/.cache", NULL);
	dir("/w/node_modules/.cache");
	assert_int_equal(resolve(), 0);
	assert_int_equal(mount_at("/w/node_modules/.cache")->kind, VX_MNT_HIDE_DIR);
}

static void stores_that_variables_move(void **state)
{
	static const char *const v[] = {"XDG_CONFIG_HOME=/x/cfg",
		"KUBECONFIG=:/x/k1:/x/k2:", "npm_config_UserConfig=/x/npmrc",
		"DOCKER_CONFIG=/x/docker", "CARGO_HOME=/x/cargo", "GH_CONFIG_DIR=/home/u",
		"AWS_CONFIG_FILE=/dev/null", "NETRC=/x/none", "AZURE_CONFIG_DIR=/",
		"CLOUDSDK_CONFIG=../../p", "PIP_CONFIG_FILE=pip.conf", "GNUPGHOME=/x/gpg",
		"PULUMI_HOME=/x/pulumi"};
	static const char *const hidden[] = {"/x/cfg/gh", "/x/k1", "/x/k2", "/x/npmrc",
		"/x/docker/config.json", "/x/cargo/credentials.toml", "/x/gpg",
		"/x/pulumi/credentials.json", "/w/p/a/pip.conf"};

	(void)state;
	dir("/x"), dir("/x/cfg"), dir("/x/cfg/gh"), dir("/x/cfg/other"), dir("/x/docker");
	dir("/x/cargo"), dir("/x/gpg"), dir("/x/pulumi"), dir("/x/cargo/bin");
	file("/x/k1"), file("/x/k2"), file("/x/npmrc"), file("/x/docker/config.json");
	file("/x/cargo/credentials.toml"), file("/x/pulumi/credentials.json");
	file("/w/p/a/pip.conf");
	add("/dev/null", VX_FACT_OTHER, NULL, 0);
	spec.moves = (struct vx_strs){v, sizeof v / sizeof *v};
	spec.nested = (struct vx_strs){0};
	READ(".", NULL);
	assert_int_equal(resolve(), 0);
	for (size_t i = 0; i < sizeof hidden / sizeof *hidden; i++) {
		const struct vx_mount *m = mount_at(hidden[i]);
		if (!m || m->why != VX_WHY_CREDENTIAL)
			fail_msg("%s is not hidden", hidden[i]);
	}
	assert_null(mount_at("/x/cfg/other"));
	assert_null(mount_at("/x/cargo/bin"));
	assert_null(mount_at("/home/u"));
	assert_null(mount_at("/dev/null"));
	assert_null(mount_at("/"));
	assert_null(mount_at("/w/p"));
	READ("/x/k1", NULL); /* named */
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/x/k1"));
	assert_non_null(mount_at("/x/k2"));
}

/* Without a name in the spec a member is what the patterns match and what has a manifest. */
static void only_members_are_dependencies(void **state)
{
	(void)state;
	dir("/w/node_modules");
	dir("/w/vendor");
	dir("/w/vendor/x");
	dir("/w/p/c");
	sym("/w/node_modules/b", "../p/b");
	sym("/w/node_modules/c", "../p/c");
	sym("/w/node_modules/x", "../vendor/x");
	sym("/w/node_modules/@all", "../p");
	file("/w/p/b/package.json");
	file("/w/vendor/x/package.json");
	spec.members = list_of("p/*", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/b", false));
	assert_null(mount_at("/w/p/c"));
	assert_null(mount_at("/w/vendor/x"));
	assert_null(mount_at("/w/p"));
	assert_int_equal(req.n_withheld, 2); /* what holds the project is dropped */
	spec.members = list_of("p/*", "!p/b");
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/b"));
}

/* Where a task may write, links are the task's: they grant what manifests lead to, and nothing
 * else. */
static void links_of_tasks_in_node_modules(void **state)
{
	static const struct vx_sbx_package packages[] = {
		{"b", "p/b", true, true}, {"c", "p/c", true, false}};

	(void)state;
	dir("/w/node_modules");
	dir("/w/p/c");
	dir("/w/private");
	dir("/w/p/a/node_modules");
	sym("/w/p/a/node_modules/b", "../../b");
	sym("/w/p/a/node_modules/c", "../../c");
	sym("/w/p/a/node_modules/s", "../../../private");
	spec.packages = packages;
	spec.n_packages = 2;
	spec.written = list_of("/w/p/a/node_modules", NULL); /* by another task */
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/b", false));
	assert_null(mount_at("/w/p/c"));
	assert_null(mount_at("/w/private"));
	spec.written = (struct vx_strs){0};
	WRITE("node_modules/", NULL); /* by this one */
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/b", false));
	assert_null(mount_at("/w/p/c"));
	assert_null(mount_at("/w/private"));
	spec.narrow = true;
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/p/c"));
	WRITE("dist/", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/p/c", false));
	/* node_modules itself */
	fresh(NULL);
	dir("/w/private");
	sym("/w/p/a/node_modules", "../../private");
	spec.nested = (struct vx_strs){0};
	WRITE(".", NULL);
	assert_int_equal(resolve(), 0);
	assert_null(mount_at("/w/private"));
}

static void links_of_tasks_on_the_way(void **state)
{
	(void)state;
	dir("/w/p/a/gen");
	dir("/w/p/a/gen/v1");
	dir("/w/p/a/hidden");
	dir("/w/p/b/dist");
	dir("/w/private");
	sym("/w/p/a/gen/out", "../hidden");
	sym("/w/p/a/gen/current", "v1");
	sym("/w/p/a/alias", "gen");
	sym("/w/p/b/dist/lib", "../../../private");
	add("/run/docker.sock", VX_FACT_OTHER, NULL, 0);
	sym("/w/p/a/gen/sock", "/run/docker.sock");
	READ("gen/out", NULL);
	assert_int_equal(resolve(), 0); /* the developer's */
	WRITE("gen/", NULL);
	assert_int_equal(resolve(), -EPERM);
	assert_non_null(strstr(err.what, "/w/p/a/gen/out"));
	READ("alias/out/x", NULL);
	assert_int_equal(resolve(), -EPERM);
	READ("gen/current", NULL); /* within what the task may write anyway */
	assert_int_equal(resolve(), 0);
	READ("src", NULL);
	WRITE("gen/", "gen/out/");
	assert_int_equal(resolve(), -EPERM);
	WRITE("alias/", "gen/out/**/*.js");
	assert_int_equal(resolve(), -EPERM);
	WRITE("gen/", NULL);
	spec.decl.unix_paths = list_of("gen/sock", NULL);
	assert_int_equal(resolve(), -EPERM);
	spec.decl.unix_paths = (struct vx_strs){0};
	WRITE("out/", NULL);
	READ("../b/dist/lib", NULL);
	assert_int_equal(resolve(), 0);
	assert_true(bound("/w/private", false));
	spec.written = list_of("/w/p/b/dist", NULL);
	assert_int_equal(resolve(), -EPERM);
	assert_non_null(strstr(err.what, "/w/p/b/dist/lib"));
}

static void root_without_capabilities(void **state)
{
	(void)state;
	run_uid = 0;
	expect_refusal("src/", "user 1000");
	WRITE("dist/", NULL); /* ours to make */
	assert_int_equal(resolve(), 0);
	add("/opt/mine", VX_FACT_DIR, NULL, 0);
	WRITE("/opt/mine", NULL);
	assert_int_equal(resolve(), 0);
}

static void not_in_this_build(void **state)
{
	(void)state;
	spec.decl.net_allow = list_of("example.com", NULL);
	assert_int_equal(resolve(), -ENOTSUP);
	spec.decl.net_allow = (struct vx_strs){0};
	spec.decl.net_deny = list_of("*:22", NULL);
	assert_int_equal(resolve(), 0); /* nothing is reachable anyway */
	spec.decl.net_all = true;
	assert_int_equal(resolve(), -ENOTSUP);
	spec.decl.net_deny = (struct vx_strs){0};
	assert_int_equal(resolve(), 0);
	assert_true(req.share_net);
	spec.root = "/";
	assert_int_equal(resolve(), -EPERM);
}

static void sockets_and_devices(void **state)
{
	(void)state;
	add("/run/x.sock", VX_FACT_OTHER, NULL, 0);
	add("/dev/kvm", VX_FACT_OTHER, NULL, 0);
	dir("/dev/dri");
	sym("/dev/out", "/opt");
	spec.decl.unix_paths = list_of("/run/x.sock", "/run/none");
	spec.decl.devices = list_of("/dev/kvm", "/dev/dri");
	assert_int_equal(resolve(), 0);
	assert_int_equal(mount_at("/run")->kind, VX_MNT_HIDE_DIR);
	assert_true(bound("/run/x.sock", false));
	assert_null(mount_at("/run/none"));
	assert_false(req.no_unix);
	assert_int_equal(mount_at("/dev/kvm")->kind, VX_MNT_DEVICE);
	assert_true(mount_at("/dev/dri")->source_is_dir);
	spec.decl.devices = list_of("/etc/passwd", NULL);
	assert_int_equal(resolve(), -EINVAL);
	spec.decl.devices = list_of("/dev/out", NULL);
	assert_int_equal(resolve(), -EPERM);
}

static enum vx_reach reach(const char *grant, bool *fp)
{
	struct vx_sbx_facts f = facts();

	spec.decl.write = grant ? list_of(grant, NULL) : (struct vx_strs){0};
	return vx_sbx_reach(&spec, &f, list_of("package-lock.json", "yarn.lock"), fp);
}

static void write_reach(void **state)
{
	bool fp;

	(void)state;
	assert_int_equal(reach(NULL, &fp), VX_REACH_NONE);
	assert_int_equal(reach("dist/", &fp), VX_REACH_PROJECT);
	assert_false(fp);
	assert_int_equal(reach("gen/**", &fp), VX_REACH_PROJECT);
	assert_int_equal(reach("../b/dist/", &fp), VX_REACH_WORKSPACE);
	assert_int_equal(reach("/opt/out", &fp), VX_REACH_NONE);
	assert_int_equal(reach("/", &fp), VX_REACH_WORKSPACE);
	assert_true(fp);
	assert_int_equal(reach("../../yarn.lock", &fp), VX_REACH_WORKSPACE);
	assert_true(fp);
	/* another project's files */
	assert_int_equal(reach("inner/dist/", &fp), VX_REACH_WORKSPACE);
	assert_int_equal(reach(".", &fp), VX_REACH_WORKSPACE);
	sym("/w/p/a/l", "../b");
	/* by what is bound, not by how it is spelled */
	assert_int_equal(reach("l/", &fp), VX_REACH_WORKSPACE);
	sym("/w/p/a/loop", "loop");
	assert_int_equal(reach("loop", &fp), VX_REACH_WORKSPACE);
	assert_true(fp);
	spec.project_dir = ".";
	spec.nested = list_of("p/a", "p/b");
	assert_int_equal(reach("dist/", &fp), VX_REACH_PROJECT);
	assert_int_equal(reach(".", &fp), VX_REACH_WORKSPACE);
	assert_int_equal(reach("p/", &fp), VX_REACH_WORKSPACE);
	assert_int_equal(reach("yarn.lock", &fp), VX_REACH_PROJECT);
	assert_true(fp);
}

static void as_json(void **state)
{
	struct vx_buf b = VX_BUF(1 << 16);

	(void)state;
	READ("src", NULL);
	WRITE("dist/", NULL);
	assert_int_equal(resolve(), 0);
	struct vx_json *j = vx_sbx_request_json(&req);
	vx_json_write(j, true, &b);
	assert_non_null(
		strstr(b.data, "\"target\":\"/w/p/a/dist\",\"why\":\"write\",\"writable\":true"));
	assert_non_null(strstr(b.data, "\"network\":false"));
	vx_json_free(j);
	vx_buf_free(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(baseline, fresh),
		cmocka_unit_test_setup(reads, fresh),
		cmocka_unit_test_setup(read_cut_around_walls, fresh),
		cmocka_unit_test_setup(read_git, fresh),
		cmocka_unit_test_setup(writes, fresh),
		cmocka_unit_test_setup(write_refusals, fresh),
		cmocka_unit_test_setup(links, fresh),
		cmocka_unit_test_setup(credentials, fresh),
		cmocka_unit_test_setup(pipes_to_init, fresh),
		cmocka_unit_test_setup(dependencies, fresh),
		cmocka_unit_test_setup(stores_that_variables_move, fresh),
		cmocka_unit_test_setup(only_members_are_dependencies, fresh),
		cmocka_unit_test_setup(links_of_tasks_in_node_modules, fresh),
		cmocka_unit_test_setup(links_of_tasks_on_the_way, fresh),
		cmocka_unit_test_setup(root_without_capabilities, fresh),
		cmocka_unit_test_setup(not_in_this_build, fresh),
		cmocka_unit_test_setup(sockets_and_devices, fresh),
		cmocka_unit_test_setup(write_reach, fresh),
		cmocka_unit_test_setup(as_json, fresh),
	};
	int r = cmocka_run_group_tests(tests, NULL, NULL);

	vx_arena_free(&arena);
	return r;
}
