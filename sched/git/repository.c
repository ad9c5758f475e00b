/* Finding a repository and reading its configuration. See repository.h. */
#include "repository.h"

#include "config.h"
#include "ignore.h"

#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/spawn.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define MAX_INCLUDES 10 /* as git: files that include files */
#define MAX_CONF_BYTES (8U << 20)

struct finder {
	struct vx_arena *a;
	struct vx_gitrepo *r;
	char *why;
	size_t cap;
	const char *root; /* the workspace's */
	const char *file; /* being parsed */
	int depth;
	uint32_t n_files; /* read so far */
	bool probing;     /* the file may or may not count: only look whether it matters */
	bool worktree_config, bare;
	int version;
	const char *conf_worktree;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct finder *f, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(f->why, f->cap, fmt, ap);
	va_end(ap);
	return 1;
}

/* Variables that git obeys and that change what repository or file is meant: git itself is asked
 * where one is set. */
static const char *const foreign_env[] = {"GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE",
	"GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY", "GIT_CEILING_DIRECTORIES", "GIT_CONFIG",
	"GIT_CONFIG_COUNT", "GIT_CONFIG_PARAMETERS", "GIT_ATTR_SOURCE", "GIT_NAMESPACE",
	"GIT_DISCOVERY_ACROSS_FILESYSTEM", "GIT_DEFAULT_HASH"};

static int read_seen(struct finder *f, const char *path, struct vx_buf *b)
{
	vx_strlist_add(&f->r->seen, f->a, vx_arena_strdup(f->a, path));
	return vx_read_file(AT_FDCWD, path, b);
}

static int read_line(struct finder *f, const char *path, char ret[VX_MAX_PATH])
{
	struct vx_buf b = VX_BUF(VX_MAX_PATH - 1);
	int r = read_seen(f, path, &b);
	if (r == 0) {
		size_t n = strcspn(vx_buf_str(&b), "\r\n");
		memcpy(ret, vx_buf_str(&b), n);
		ret[n] = '\0';
	}
	vx_buf_free(&b);
	return r;
}

static bool is_dir(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && S_ISDIR(st.st_mode) && access(path, X_OK) == 0;
}

/* HEAD: a link into refs/, "ref: refs/…", or an id. */
static bool valid_head(struct finder *f, const char *gitdir)
{
	char text[VX_MAX_PATH];
	const char *path = vx_arena_printf(f->a, "%s/HEAD", gitdir);
	struct stat st;
	if (lstat(path, &st) < 0)
		return false;
	if (S_ISLNK(st.st_mode))
		return vx_readlink(AT_FDCWD, path, text, sizeof text) > 0 &&
		       vx_starts_with(text, "refs/");
	if (read_line(f, path, text) != 0)
		return false;
	if (vx_starts_with(text, "ref:")) {
		const char *p = text + 4;
		while (isspace((unsigned char)*p))
			p++;
		return vx_starts_with(p, "refs/");
	}
	return strspn(text, "0123456789abcdef") >= 40;
}

static const char *common_of(struct finder *f, const char *gitdir)
{
	char line[VX_MAX_PATH];
	if (read_line(f, vx_arena_printf(f->a, "%s/commondir", gitdir), line) < 0)
		return gitdir;
	return vx_path_join(f->a, gitdir, line);
}

static bool is_gitdir(struct finder *f, const char *gitdir, const char **ret_common)
{
	if (!valid_head(f, gitdir))
		return false;
	*ret_common = common_of(f, gitdir);
	return is_dir(vx_arena_printf(f->a, "%s/objects", *ret_common)) &&
	       is_dir(vx_arena_printf(f->a, "%s/refs", *ret_common));
}

/* What `dir`/.git leads to: 0 a git directory, -ENOENT nothing, -EINVAL a file that does not lead
 * to one. */
static int open_dotgit(
	struct finder *f, const char *dir, const char **ret_gitdir, const char **ret_common)
{
	const char *dot = vx_arena_printf(f->a, "%s/.git", vx_streq(dir, "/") ? "" : dir);
	char line[VX_MAX_PATH];
	struct stat st;
	if (stat(dot, &st) < 0)
		return errno == ENOENT || errno == ENOTDIR ? -ENOENT : -errno;
	if (S_ISDIR(st.st_mode)) {
		*ret_gitdir = dot;
		return is_gitdir(f, dot, ret_common) ? 0 : -ENOENT;
	}
	int r = S_ISREG(st.st_mode) ? read_line(f, dot, line) : -EINVAL;
	if (r < 0)
		return r == -EFBIG ? -EINVAL : r;
	if (!vx_starts_with(line, "gitdir: "))
		return -EINVAL;
	*ret_gitdir = vx_path_join(f->a, dir, line + 8);
	return is_gitdir(f, *ret_gitdir, ret_common) ? 0 : -EINVAL;
}

static const char *home_path(struct finder *f, const char *rest)
{
	const char *home = getenv("HOME");
	return home && *home ? vx_arena_printf(f->a, "%s%s", home, rest) : NULL;
}

/* A path value: "~/x" is expanded, what is relative is so to the file's directory. 1 for a form
 * that is not followed here. */
static int expand_path(struct finder *f, const char *v, const char **ret)
{
	if (!v)
		return refuse(f, "%s: a path is missing", f->file);
	if (vx_starts_with(v, "~/") || vx_streq(v, "~")) {
		*ret = home_path(f, v + 1);
		return *ret ? 0 : refuse(f, "HOME is not set");
	}
	if (*v == '~' || vx_starts_with(v, "%(prefix)"))
		return refuse(f, "%s: the path \"%s\"", f->file, v);
	*ret = vx_path_join(f->a, vx_path_dir(f->a, f->file), v);
	return 0;
}

static int parse_file(struct finder *f, const char *path);

static int include(struct finder *f, const char *value)
{
	const char *path = NULL;
	int r = expand_path(f, value, &path);
	if (r)
		return f->probing ? 0 : r;
	if (f->depth >= MAX_INCLUDES)
		return refuse(f, "%s: includes are nested too deeply", f->file);
	return parse_file(f, path);
}

static bool gitdir_condition(struct finder *f, const char *cond)
{
	struct vx_buf b = VX_BUF(2 * VX_MAX_PATH);
	if (vx_starts_with(cond, "~/"))
		vx_buf_adds(&b, getenv("HOME") ? getenv("HOME") : "");
	else if (vx_starts_with(cond, "./"))
		vx_buf_adds(&b, vx_path_dir(f->a, f->file));
	else if (*cond != '/')
		vx_buf_adds(&b, "**/");
	vx_buf_adds(&b, vx_starts_with(cond, "~/") || vx_starts_with(cond, "./") ? cond + 1 : cond);
	if (vx_ends_with(cond, "/"))
		vx_buf_adds(&b, "**");
	bool yes = vx_wildmatch(vx_buf_str(&b), f->r->gitdir, true);
	vx_buf_free(&b);
	return yes;
}

static bool branch_condition(struct finder *f, const char *cond)
{
	char head[VX_MAX_PATH];
	if (read_line(f, vx_arena_printf(f->a, "%s/HEAD", f->r->gitdir), head) < 0 ||
		!vx_starts_with(head, "ref: refs/heads/"))
		return false;
	return vx_wildmatch(
		vx_arena_printf(f->a, "%s%s", cond, vx_ends_with(cond, "/") ? "**" : ""), head + 16,
		true);
}

/* `includeIf.<condition>.path`. A condition that is not understood matters only if the file that it
 * guards says something that counts. */
static int include_if(struct finder *f, const char *name, const char *value)
{
	size_t n = strlen(name) - strlen("includeif.") - strlen(".path");
	const char *cond = vx_arena_strndup(f->a, name + strlen("includeif."), n);
	if (vx_starts_with(cond, "gitdir:"))
		return gitdir_condition(f, cond + 7) ? include(f, value) : 0;
	if (vx_starts_with(cond, "onbranch:"))
		return branch_condition(f, cond + 9) ? include(f, value) : 0;
	bool was = f->probing;
	f->probing = true;
	int r = include(f, value);
	f->probing = was;
	return r;
}

/* Unlike an include, a relative name here is one in the worktree; an empty one is none. */
static int pattern_file(struct finder *f, const char *v, const char **ret)
{
	if (v && *v && *v != '~' && *v != '%') {
		*ret = vx_path_join(f->a, f->r->worktree, v);
		return 0;
	}
	if (v && !*v) {
		*ret = NULL;
		return 0;
	}
	return expand_path(f, v, ret);
}

static int apply_core(struct finder *f, const char *key, const char *v)
{
	int b = vx_gitconf_bool(v);
	if (vx_streq(key, "excludesfile"))
		return pattern_file(f, v, &f->r->excludes);
	if (vx_streq(key, "attributesfile"))
		return pattern_file(f, v, &f->r->attributes);
	if (vx_streq(key, "worktree")) {
		f->conf_worktree = v ? vx_arena_strdup(f->a, v) : "";
	} else if (vx_streq(key, "checkstat")) {
		f->r->weak_stat |= !v || strcasecmp(v, "default") != 0;
	} else if (vx_streq(key, "autocrlf")) {
		f->r->converts_all = (v && strcasecmp(v, "input") == 0) || b != 0;
	} else if (vx_streq(key, "repositoryformatversion")) {
		f->version = v ? atoi(v) : -1;
	} else if (vx_streq(key, "trustctime")) {
		f->r->weak_stat |= b != 1;
	} else if (vx_streq(key, "filemode")) {
		f->r->trust_exec = b == 1;
	} else if (vx_streq(key, "bare")) {
		f->bare = b != 0;
	} else if (vx_streq(key, "ignorecase") && b != 0) {
		return refuse(f, "core.ignoreCase is set");
	} else if (vx_streq(key, "symlinks") && b != 1) {
		return refuse(f, "core.symlinks is off");
	}
	return 0;
}

static int apply_extension(struct finder *f, const char *key, const char *v)
{
	static const char *const harmless[] = {"noop", "preciousobjects", "partialclone",
		"refstorage", "relativeworktrees", "compatobjectformat"};
	if (vx_streq(key, "objectformat")) {
		if (vx_streq(v, "sha256"))
			f->r->kind = VX_OID_SHA256;
		else if (!vx_streq(v, "sha1"))
			return refuse(f, "extensions.objectFormat is \"%s\"", v ? v : "");
		return 0;
	}
	if (vx_streq(key, "worktreeconfig")) {
		f->worktree_config = vx_gitconf_bool(v) == 1;
		return 0;
	}
	for (size_t i = 0; i < sizeof harmless / sizeof *harmless; i++)
		if (vx_streq(key, harmless[i]))
			return 0;
	return refuse(f, "the extension %s is not known", key);
}

static bool counts(const char *key)
{
	static const char *const keys[] = {"excludesfile", "attributesfile", "worktree",
		"checkstat", "autocrlf", "trustctime", "filemode", "bare", "ignorecase",
		"symlinks"};
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (vx_streq(key, keys[i]))
			return true;
	return false;
}

static int variable(void *arg, const char *name, const char *value)
{
	struct finder *f = arg;
	if (vx_streq(name, "include.path"))
		return include(f, value);
	if (vx_starts_with(name, "includeif.") && vx_ends_with(name, ".path") &&
		strlen(name) > strlen("includeif..path"))
		return include_if(f, name, value);
	if (f->probing)
		return vx_starts_with(name, "core.") && counts(name + 5)
			       ? refuse(f, "%s sets %s under a condition that only git can judge",
					 f->file, name)
			       : 0;
	if (vx_starts_with(name, "core.") && !strchr(name + 5, '.'))
		return apply_core(f, name + 5, value);
	if (vx_starts_with(name, "extensions."))
		return apply_extension(f, name + 11, value);
	return 0;
}

static int parse_file(struct finder *f, const char *path)
{
	struct vx_buf b = VX_BUF(MAX_CONF_BYTES);
	const char *was = f->file;
	int r = read_seen(f, path, &b);
	if (r == 0 && ++f->n_files > VX_MAX_GIT_INCLUDES) {
		(void)refuse(f, "git's configuration includes more than %u files (at %s)",
			VX_MAX_GIT_INCLUDES, path);
		r = -E2BIG; /* git, which has no such limit, is not asked */
	} else if (r == 0) {
		f->file = path;
		f->depth++;
		r = vx_gitconf_parse(vx_buf_str(&b), b.len, variable, f);
		if (r < 0 && r != -E2BIG)
			r = refuse(f, "%s cannot be parsed", path);
		f->depth--;
		f->file = was;
	} else if (r == -ENOENT || r == -ENOTDIR || r == -EACCES) {
		r = 0;
	} else {
		r = refuse(f, "%s cannot be read", path);
	}
	vx_buf_free(&b);
	return r;
}

static bool env_true(const char *name)
{
	const char *v = getenv(name);
	return v && vx_gitconf_bool(v) != 0;
}

/* Where git was installed decides where its system-wide files are. */
static const char *system_dir(struct finder *f)
{
	char git[VX_MAX_PATH];
	if (vx_which_own("git", f->root, git) < 0)
		return "/etc";
	char *prefix = vx_path_dir(f->a, vx_path_dir(f->a, git));
	return vx_streq(prefix, "/usr") || vx_streq(prefix, "/")
		       ? "/etc"
		       : vx_arena_printf(f->a, "%s/etc", prefix);
}

/* System, user, repository, worktree: the later wins. */
static int read_config(struct finder *f)
{
	const char *xdg = getenv("XDG_CONFIG_HOME"), *global = getenv("GIT_CONFIG_GLOBAL"),
		   *sys = getenv("GIT_CONFIG_SYSTEM");
	const char *dir = system_dir(f), *xdg_git = xdg && *xdg
							    ? vx_arena_printf(f->a, "%s/git", xdg)
							    : home_path(f, "/.config/git");
	f->r->excludes = xdg_git ? vx_arena_printf(f->a, "%s/ignore", xdg_git) : NULL;
	f->r->attributes = xdg_git ? vx_arena_printf(f->a, "%s/attributes", xdg_git) : NULL;
	f->r->system_attributes = env_true("GIT_ATTR_NOSYSTEM")
					  ? NULL
					  : vx_arena_printf(f->a, "%s/gitattributes", dir);
	int r = 0;
	if (!env_true("GIT_CONFIG_NOSYSTEM"))
		r = parse_file(f, sys ? sys : vx_arena_printf(f->a, "%s/gitconfig", dir));
	if (r == 0 && global)
		r = *global ? parse_file(f, global) : 0;
	if (r == 0 && !global && xdg_git)
		r = parse_file(f, vx_arena_printf(f->a, "%s/config", xdg_git));
	if (r == 0 && !global && home_path(f, ""))
		r = parse_file(f, home_path(f, "/.gitconfig"));
	if (r == 0)
		r = parse_file(f, vx_arena_printf(f->a, "%s/config", f->r->commondir));
	if (r == 0 && f->worktree_config)
		r = parse_file(f, vx_arena_printf(f->a, "%s/config.worktree", f->r->gitdir));
	return r;
}

static int settle(struct finder *f, const char *worktree, const char *gitdir, const char *common)
{
	char *real_gitdir, *real_common;
	if (vx_path_canon(f->a, gitdir, &real_gitdir) < 0 ||
		vx_path_canon(f->a, common, &real_common) < 0)
		return refuse(f, "%s cannot be resolved", gitdir);
	f->r->worktree = vx_arena_strdup(f->a, worktree);
	f->r->gitdir = real_gitdir;
	f->r->commondir = real_common;
	f->r->kind = VX_OID_SHA1;
	f->r->trust_exec = true;
	int r = read_config(f);
	if (r)
		return r;
	if (f->version < 0 || f->version > 1 || (f->version == 0 && f->r->kind != VX_OID_SHA1))
		return refuse(f, "the repository's format version is %d", f->version);
	if (f->bare)
		return refuse(f, "the repository is bare");
	if (f->conf_worktree) {
		char *real;
		if (vx_path_canon(f->a, vx_path_join(f->a, f->r->gitdir, f->conf_worktree), &real) <
				0 ||
			!vx_streq(real, f->r->worktree))
			return refuse(f, "core.worktree leads elsewhere");
	}
	return 0;
}

int vx_gitrepo_at(const char *dir, const char *root, struct vx_arena *a, struct vx_gitrepo *ret,
	char *why, size_t cap)
{
	struct vx_gitrepo repo = {0};
	struct finder f = {.a = a, .r = &repo, .why = why, .cap = cap, .root = root};
	const char *gitdir = NULL, *common = NULL;
	int r = open_dotgit(&f, dir, &gitdir, &common);
	if (r < 0)
		return r == -EINVAL ? -ENOENT : r;
	r = settle(&f, dir, gitdir, common);
	if (r == 0)
		*ret = repo;
	return r;
}

int vx_gitrepo_find(
	const char *dir, struct vx_arena *a, struct vx_gitrepo *ret, char *why, size_t cap)
{
	struct vx_gitrepo repo = {0};
	struct finder f = {.a = a, .r = &repo, .why = why, .cap = cap, .root = dir};
	struct stat st;
	dev_t dev = 0;
	for (size_t i = 0; i < sizeof foreign_env / sizeof *foreign_env; i++)
		if (getenv(foreign_env[i]))
			return refuse(&f, "%s is set", foreign_env[i]);
	for (const char *d = dir;; d = vx_path_dir(a, d)) {
		const char *gitdir, *common;
		if (stat(d, &st) < 0)
			return -errno;
		if (d != dir && st.st_dev != dev)
			return refuse(&f, "%s is a mount point", d);
		dev = st.st_dev;
		int r = open_dotgit(&f, d, &gitdir, &common);
		if (r == 0) {
			r = settle(&f, d, gitdir, common);
			if (r == 0)
				*ret = repo;
			return r;
		}
		if (r != -ENOENT)
			return refuse(&f, "%s/.git leads nowhere", d);
		if (is_gitdir(&f, d, &common))
			return refuse(&f, "%s is itself a git directory", d);
		if (vx_streq(d, "/"))
			return -ENOENT;
	}
}

bool vx_gitrepo_is(const char *dir)
{
	struct vx_arena a = {0};
	struct vx_gitrepo repo = {0};
	struct finder f = {.a = &a, .r = &repo};
	const char *gitdir, *common;
	int r = open_dotgit(&f, dir, &gitdir, &common);
	vx_arena_free(&a);
	return r == 0 || r == -EACCES;
}
