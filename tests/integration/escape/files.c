/* Reading and writing past the grants. The project is pkgs/a: src/ is readable; dist/ and work/ are
 * writable. */
#include "attempt.h"

#include <dirent.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>

static int read_sibling(void)
{
	return can_read("../b/secret");
}
static int read_root_file(void)
{
	return can_read("../../secret");
}
static int read_absolute(void)
{
	return can_read(in("T_WS", "pkgs/b/secret"));
}
static int read_through_grant_and_dotdot(void)
{
	return can_read("src/../../b/secret") | can_read("dist/../../../secret");
}
static int read_through_symlink(void)
{
	unlink("dist/link");
	if (symlink("../../b/secret", "dist/link") < 0)
		return cannot_call("symlink");
	int r = can_read("dist/link");
	unlink("dist/link");
	if (symlink(in("T_WS", "secret"), "dist/link") < 0)
		return cannot_call("symlink");
	r |= can_read("dist/link");
	unlink("dist/link");
	return r;
}
static int hard_link_into_grant(void)
{
	return must_fail(link("src/x", "dist/hard")) |
	       must_fail(link(in("T_OUT", "secret"), "dist/hard2")) |
	       must_fail(linkat(AT_FDCWD, "/proc/self/root/etc/passwd", AT_FDCWD, "dist/hard3",
		       AT_SYMLINK_FOLLOW));
}
static int write_read_only_grant(void)
{
	return can_write("src/x") | can_write("src/new") | must_fail(unlink("src/x")) |
	       must_fail(chmod("src/x", 0666)) | must_fail(truncate("src/x", 0));
}
static int write_project_directory(void)
{
	return can_write("new") | can_write("../new") | can_write("../../new");
}
static int write_outside(void)
{
	return can_write(in("T_OUT", "secret")) | can_write(in("T_OUT", "new")) |
	       must_fail(unlink(in("T_OUT", "secret"))) |
	       must_fail(rename(in("T_OUT", "secret"), in("T_OUT", "gone"))) |
	       must_fail(utimensat(AT_FDCWD, in("T_OUT", "secret"), NULL, 0));
}
static int write_through_symlink(void)
{
	unlink("dist/wl");
	if (symlink(in("T_OUT", "secret"), "dist/wl") < 0)
		return cannot_call("symlink");
	int r = can_write("dist/wl");
	unlink("dist/wl");
	return r;
}
static int write_through_proc_root(void)
{
	char path[4096];

	snprintf(path, sizeof path, "/proc/self/root%s", in("T_OUT", "secret"));
	int r = can_write(path);
	snprintf(path, sizeof path, "/proc/self/cwd/../b/secret");
	return r | can_read(path);
}
static int read_host_tmp(void)
{
	return can_read(env("T_TMPFILE"));
}
static int climb_above_root(void)
{
	char path[4096] = "";

	for (int i = 0; i < 60; i++)
		strcat(path, "../");
	if (chdir(path) < 0)
		return cannot_call("chdir");
	return can_read(in("T_WS", "secret") + 1);
}
static int wall_shows_names(void)
{
	DIR *d = opendir(env("T_WS"));
	struct dirent *e;
	int r = HELD;

	while (d && (e = readdir(d)))
		if (e->d_name[0] != '.' && strcmp(e->d_name, "pkgs") != 0) {
			printf("saw %s\n", e->d_name);
			r = ESCAPED;
		}
	return d ? r : cannot_call("opendir");
}
static int read_vx_directory(void)
{
	return can_read(in("T_WS", ".vx/cache/entry")) | can_write(in("T_WS", ".vx/new")) |
	       can_read(in("T_WS", ".vx/../secret"));
}
static int read_git_directory(void)
{
	struct stat st;

	return can_read(in("T_WS", ".git/config")) | must_be(stat(in("T_WS", ".git"), &st), ENOENT);
}
static int write_git_hook(void)
{
	return can_write(in("T_WS", ".git/hooks/pre-commit")) | can_write("../../.git/config");
}
static int write_denied_hook(void)
{
	return can_write("work/.git/hooks/pre-commit") | can_write("work/.git/hooks/new") |
	       can_write("work/.git/config") | must_fail(unlink("work/.git/config"));
}
static int rename_ancestor_of_deny(void)
{
	return must_fail(rename("work/.git", "work/git2")) |
	       must_fail(rename("work/.git/hooks", "work/.git/hooks2")) |
	       must_fail(syscall(SYS_renameat2, AT_FDCWD, "work/.git", AT_FDCWD, "work/sub",
		       2 /* RENAME_EXCHANGE */)) |
	       must_fail(rename("work", "work2"));
}
static int replace_denied_file(void)
{
	close(open("work/evil", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
	return must_fail(rename("work/evil", "work/.bashrc")) | must_fail(unlink("work/.bashrc")) |
	       can_write("work/.bashrc");
}
static int write_nested_deny(void)
{
	return can_write("work/sub/deep/.vscode/settings.json") |
	       can_write("work/sub/deep/.vscode/new") | can_write("work/sub/deep/.mcp.json") |
	       can_write("work/sub/clone/.git/config") |
	       must_fail(unlink("work/sub/clone/.git/config")) |
	       must_fail(unlink("work/sub/deep/.vscode/settings.json")) |
	       must_fail(chmod("work/sub/deep/.mcp.json", 0777)) |
	       must_fail(link("work/sub/deep/.mcp.json", "work/sub/mcp")) |
	       must_fail(truncate("work/sub/deep/.mcp.json", 0));
}
static int rename_ancestor_of_nested_deny(void)
{
	mkdir("dist/swap", 0755);
	int r = must_fail(rename("work/sub/deep/.vscode", "work/sub/deep/v")) |
		must_fail(rename("work/sub/deep", "work/sub/deep2")) |
		must_fail(rename("work/sub", "work/sub2")) |
		must_fail(rename("work/sub/clone/.git", "work/sub/clone/g")) |
		must_fail(syscall(SYS_renameat2, AT_FDCWD, "work/sub/deep", AT_FDCWD, "dist/swap",
			2 /* RENAME_EXCHANGE */)) |
		must_fail(rename("dist/swap", "work/sub/deep")) | must_fail(rmdir("work/sub/deep"));
	rmdir("dist/swap");
	return r;
}
static int replace_nested_deny_from_inside(void)
{
	int d = open("work/sub/deep", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	/* by descriptor, and standing in it */
	return must_fail(renameat(d, ".vscode", d, "v")) | must_fail(unlinkat(d, ".mcp.json", 0)) |
	       (chdir("work/sub/deep") < 0 ? cannot_call("chdir") : HELD) |
	       must_fail(rename(".mcp.json", "m")) | must_fail(symlinkat("/etc", d, ".vscode")) |
	       must_fail(rename("../deep", "../d"));
}
static int write_through_open_parent(void)
{
	int d = open("work/.git", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return must_fail(openat(d, "hooks/new", O_WRONLY | O_CREAT, 0755)) |
	       must_fail(mkdirat(d, "hooks/d", 0755)) |
	       must_fail(symlinkat("/bin/sh", d, "hooks/pre-push")) |
	       must_fail(unlinkat(d, "hooks", AT_REMOVEDIR));
}
static int rename_granted_directory(void)
{
	return must_fail(rename("dist", "dist2")) | must_fail(rmdir("dist")) |
	       must_fail(rename("../a", "../z")) | must_fail(rename("dist", "work/dist"));
}
static int read_credentials(void)
{
	return can_read(in("T_HOME", ".ssh/id_rsa")) | can_read(in("T_HOME", ".npmrc")) |
	       can_read(in("T_HOME", ".docker/config.json")) |
	       can_read(in("T_HOME", ".config/gh/hosts.yml")) |
	       can_read(in("T_HOME", ".config/../.ssh/id_rsa"));
}
static int uncover_credentials(void)
{
	return must_fail(chmod(in("T_HOME", ".npmrc"), 0644)) |
	       must_fail(rename(in("T_HOME", ".ssh"), in("T_HOME", "ssh"))) |
	       must_fail(unlink(in("T_HOME", ".npmrc"))) | can_read(in("T_HOME", ".npmrc"));
}
static int read_through_magic_links(void)
{
	char path[512];
	int r = HELD;
	DIR *d = opendir("/proc");
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (e->d_name[0] < '0' || e->d_name[0] > '9')
			continue;
		snprintf(path, sizeof path, "/proc/%s/root%s", e->d_name, in("T_WS", "secret"));
		r |= can_read(path);
		snprintf(path, sizeof path, "/proc/%s/cwd/../b/secret", e->d_name);
		r |= can_read(path);
	}
	return d ? r : cannot_call("opendir");
}
static int read_proc_mounts_source(void)
{
	/* what /proc/self/mountinfo names must not be reachable under another path */
	return can_read(in("T_WS", "host/etc/passwd")) | can_read("/mnt/host/etc/passwd") |
	       can_read("/mnt/t/etc/passwd") | can_read("/oldroot/etc/passwd") |
	       can_read("/newroot/etc/passwd");
}
static int open_device_memory(void)
{
	return can_read("/dev/mem") | can_write("/dev/mem") | can_read("/dev/kmem") |
	       can_read("/dev/port") | can_read("/dev/kmsg") | can_read("/dev/fuse") |
	       can_read("/dev/vda") | can_read("/dev/sda") | can_read("/dev/nvme0n1");
}
static int make_device(void)
{
	return must_fail(mknod("dist/mem", S_IFCHR | 0666, makedev(1, 1))) |
	       must_fail(mknod("/tmp/disk", S_IFBLK | 0666, makedev(254, 0))) |
	       must_fail(mknod("/dev/shm/mem", S_IFCHR | 0666, makedev(1, 1)));
}
static int write_dev(void)
{
	return can_write("/dev/new") | must_fail(unlink("/dev/null")) |
	       must_fail(symlink("/etc", "/dev/x"));
}
static int read_host_shm(void)
{
	char path[512];

	snprintf(path, sizeof path, "/dev/shm/%s", env("T_SHMNAME"));
	return can_read(path) | must_fail(shm_open(env("T_SHMNAME"), O_RDONLY, 0));
}
static int write_sysfs(void)
{
	return can_write("/sys/power/state") | can_write("/sys/kernel/uevent_helper") |
	       can_write("/sys/kernel/mm/transparent_hugepage/enabled") |
	       can_write("/sys/module/new") | can_write("/sys/kernel/debug/x");
}
static int cgroup_release_agent(void)
{
	int r = can_write("/sys/fs/cgroup/release_agent") | can_write("/sys/fs/cgroup/new") |
		can_write("/sys/fs/cgroup/cgroup.procs");
	static const char *const v1[] = {
		"memory", "pids", "cpu", "devices", "systemd", "freezer", "unified"};
	char path[256];

	for (size_t i = 0; i < sizeof v1 / sizeof *v1; i++) {
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/release_agent", v1[i]);
		r |= can_write(path);
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/vx-escape", v1[i]);
		r |= can_write(path);
		snprintf(path, sizeof path, "/sys/fs/cgroup/%s/devices.allow", v1[i]);
		r |= can_write(path);
	}
	return r;
}
static int write_etc(void)
{
	return can_write("/etc/passwd") | can_write("/etc/ld.so.preload") | can_write("/etc/new") |
	       can_write("/usr/bin/new") | can_write("/var/spool/new");
}
static int overwrite_program(void)
{
	return can_write("/proc/self/exe") | can_write("/proc/1/exe") | can_write("/bin/sh") |
	       can_write(env("T_INIT"));
}
static int open_by_handle(void)
{
	union {
		struct file_handle h;
		char room[sizeof(struct file_handle) + 128];
	} u = {.h = {.handle_bytes = 128}};
	int id, root = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (name_to_handle_at(AT_FDCWD, "/etc", &u.h, &id, 0) < 0)
		return errno == EOPNOTSUPP || errno == EOVERFLOW ? cannot_call("name_to_handle_at")
								 : HELD;
	return must_fail(open_by_handle_at(root, &u.h, O_RDONLY));
}
static int clear_immutable(void)
{
	/* a write mount may be written, not re-flagged: ownership stays with the user */
	return must_fail(chown("dist", getuid() + 1, getgid() + 1)) |
	       must_fail(chown("dist/owned", 0x7ffffff0, 0));
}

const struct attempt file_attempts[] = {{"read-sibling", read_sibling},
	{"read-root-file", read_root_file}, {"read-absolute", read_absolute},
	{"read-through-grant-and-dotdot", read_through_grant_and_dotdot},
	{"read-through-symlink", read_through_symlink},
	{"hard-link-into-grant", hard_link_into_grant},
	{"write-read-only-grant", write_read_only_grant},
	{"write-project-directory", write_project_directory}, {"write-outside", write_outside},
	{"write-through-symlink", write_through_symlink},
	{"write-through-proc-root", write_through_proc_root}, {"read-host-tmp", read_host_tmp},
	{"climb-above-root", climb_above_root}, {"wall-shows-names", wall_shows_names},
	{"read-vx-directory", read_vx_directory}, {"read-git-directory", read_git_directory},
	{"write-git-hook", write_git_hook}, {"write-denied-hook", write_denied_hook},
	{"rename-ancestor-of-deny", rename_ancestor_of_deny},
	{"write-nested-deny", write_nested_deny},
	{"rename-ancestor-of-nested-deny", rename_ancestor_of_nested_deny},
	{"replace-nested-deny-from-inside", replace_nested_deny_from_inside},
	{"replace-denied-file", replace_denied_file},
	{"write-through-open-parent", write_through_open_parent},
	{"rename-granted-directory", rename_granted_directory},
	{"read-credentials", read_credentials}, {"uncover-credentials", uncover_credentials},
	{"read-through-magic-links", read_through_magic_links},
	{"read-proc-mounts-source", read_proc_mounts_source},
	{"open-device-memory", open_device_memory}, {"make-device", make_device},
	{"write-dev", write_dev}, {"read-host-shm", read_host_shm}, {"write-sysfs", write_sysfs},
	{"cgroup-release-agent", cgroup_release_agent}, {"write-etc", write_etc},
	{"overwrite-program", overwrite_program}, {"open-by-handle", open_by_handle},
	{"give-away-ownership", clear_immutable}, {NULL, NULL}};
