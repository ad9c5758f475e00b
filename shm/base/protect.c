#include "vx/protect.h"

#include "vx/assert.h"

#include <stdint.h>
#include <string.h>

/* Lower case. A `*` at an end stands for anything; "PARENT/NAME" counts in a directory PARENT. */
static const char *const anywhere[] = {
	/* shells, and what they start with */
	".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".bash_aliases", ".profile",
	".zshrc", ".zshenv", ".zprofile", ".zlogin", ".zlogout", ".kshrc", ".mkshrc", ".cshrc",
	".tcshrc", ".login", ".logout", ".inputrc", ".config/fish", ".pam_environment", ".xprofile",
	".xinitrc", ".xsessionrc", ".tmux.conf", ".screenrc",
	/* what a shell's hook loads on entering a directory */
	".envrc", ".direnv", ".tool-versions", ".mise*", "mise.toml", "mise.*.toml", ".config/mise",
	".rtx.toml", ".asdfrc",
	/* git, and what runs its hooks */
	".gitconfig", ".config/git", ".husky", ".githooks", ".lefthook*", "lefthook.*",
	".pre-commit-config.yaml", ".overcommit.yml",
	/* editors, debuggers, interpreters that read settings where they are started */
	".vscode", ".idea", ".fleet", ".zed", ".devcontainer", ".devcontainer.json",
	"*.code-workspace", ".vimrc", ".exrc", ".nvimrc", ".nvim.lua", ".emacs", ".dir-locals.el",
	".dir-locals-2.el", ".gdbinit", ".lldbinit", ".rprofile", ".irbrc", ".pryrc", ".psqlrc",
	".sqliterc",
	/* agents */
	".claude", ".mcp.json", ".cursor", ".codex", ".gemini", ".aider*", ".windsurf", ".continue",
	".opencode", "opencode.json", "opencode.jsonc", ".cline*", ".roo", ".kiro", ".amazonq",
	".augment", ".junie", ".crush*",
	/* package managers: registries, hooks, programs of their own */
	".npmrc", ".yarnrc", ".yarnrc.yml", ".yarn/releases", ".yarn/plugins", ".pnpmfile.*",
	"pnpm-workspace.yaml", "bunfig.toml", ".bunfig.toml", ".pnp.*", ".cargo/config",
	".cargo/config.toml", ".bundle/config",
	/* task runners: this one and the one that it takes over from */
	"vx.json", "vx.jsonc", "vx.config.*", "vx.workspace.*", "vx-lock.json", "turbo.json",
	"turbo.jsonc"};
/* gitrepository-layout(5): `commondir` would lead git to another config, `modules` and `worktrees`
 * hold configs and hooks of their own. */
static const char *const in_git[] = {"hooks", "commondir", "modules", "worktrees"};
static const char *const git_config[] = {"config", "config.worktree"};

/* Code points that file systems which fold case leave out of the comparison
 * (Default_Ignorable_Code_Point): first and last of each range. */
static const uint32_t ignored[][2] = {{0xad, 0xad}, {0x34f, 0x34f}, {0x61c, 0x61c},
	{0x115f, 0x1160}, {0x17b4, 0x17b5}, {0x180b, 0x180f}, {0x200b, 0x200f}, {0x202a, 0x202e},
	{0x2060, 0x206f}, {0x3164, 0x3164}, {0xfe00, 0xfe0f}, {0xfeff, 0xfeff}, {0xffa0, 0xffa0},
	{0xfff0, 0xfff8}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a}, {0xe0000, 0xe0fff}};
#define LONG_S 0x17fU  /* folds to s */
#define KELVIN 0x212aU /* folds to k */

/* One UTF-8 sequence that begins with a byte above 0x7f; what is none is one byte. */
static uint32_t decode(const char *s, size_t n, size_t *ret_len)
{
	unsigned char b = (unsigned char)*s;
	size_t len = b >= 0xf0 ? 4 : b >= 0xe0 ? 3 : b >= 0xc0 ? 2 : 1;
	uint32_t c = len > 1 ? b & (0x7fU >> len) : b;

	*ret_len = 1;
	if (len > n || len == 1)
		return UINT32_MAX;
	for (size_t i = 1; i < len; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return UINT32_MAX;
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	}
	*ret_len = len;
	return c;
}

struct folded {
	char s[256]; /* NAME_MAX and a NUL; what is longer is no name */
	size_t n;
};

static bool fold(const char *name, size_t len, struct folded *ret)
{
	ret->n = 0;
	for (size_t i = 0, k; i < len; i += k) {
		unsigned char b = (unsigned char)name[i];
		char out = (char)(b >= 'A' && b <= 'Z' ? b + ('a' - 'A') : b);

		k = 1;
		if (b & 0x80) {
			uint32_t c = decode(name + i, len - i, &k);
			bool skip = false;
			for (size_t r = 0; r < VX_ARRAY_LEN(ignored); r++)
				skip |= c >= ignored[r][0] && c <= ignored[r][1];
			if (skip)
				continue;
			out = c == LONG_S ? 's' : c == KELVIN ? 'k' : (char)b;
		}
		if (ret->n >= sizeof ret->s - 1)
			return false;
		ret->s[ret->n++] = out;
	}
	ret->s[ret->n] = '\0';
	return true;
}

static bool is(const struct folded *f, const char *plain)
{
	return strlen(plain) == f->n && !memcmp(f->s, plain, f->n);
}

/* At most one `*`, which stands for anything. */
static bool matches(const char *pattern, const char *s, size_t n)
{
	const char *star = strchr(pattern, '*');

	if (!star)
		return strlen(pattern) == n && !memcmp(pattern, s, n);
	size_t head = (size_t)(star - pattern), tail = strlen(star + 1);
	return n >= head + tail && !memcmp(pattern, s, head) &&
	       !memcmp(star + 1, s + n - tail, tail);
}

static bool listed(const char *const *v, size_t count, const struct folded *name)
{
	for (size_t i = 0; i < count; i++)
		if (matches(v[i], name->s, name->n))
			return true;
	return false;
}

static bool is_anywhere(const char *parent, size_t parent_len, const struct folded *name)
{
	struct folded dir;

	for (size_t i = 0; i < VX_ARRAY_LEN(anywhere); i++) {
		const char *slash = strchr(anywhere[i], '/'),
			   *own = slash ? slash + 1 : anywhere[i];
		if ((*own != '*' && *own != *name->s) || !matches(own, name->s, name->n))
			continue;
		if (!slash)
			return true;
		size_t n = (size_t)(slash - anywhere[i]);
		if (fold(parent, parent_len, &dir) && dir.n == n && !memcmp(dir.s, anywhere[i], n))
			return true;
	}
	return false;
}

bool vx_protect_same(const char *name, size_t len, const char *plain)
{
	struct folded f;

	return fold(name, len, &f) && is(&f, plain);
}

/* No name of the table begins otherwise, unless it ends in ".code-workspace". */
static bool may_be(const char *name, size_t len)
{
	unsigned char last = (unsigned char)name[len - 1];

	return strchr(".bcfghlmoprtvwBCFGHLMOPRTVW", *name) || (*name & 0x80) ||
	       ((last == 'e' || last == 'E' || (last & 0x80)) && len >= 15);
}

enum vx_protect vx_protect(const char *parent, size_t parent_len, const char *name, size_t len)
{
	struct folded f;

	if (!len || !may_be(name, len) || !fold(name, len, &f))
		return VX_PROTECT_NO;
	if (parent_len >= 4 && vx_protect_same(parent, parent_len, ".git"))
		return listed(in_git, VX_ARRAY_LEN(in_git), &f)           ? VX_PROTECT_IN_GIT
		       : listed(git_config, VX_ARRAY_LEN(git_config), &f) ? VX_PROTECT_GIT_CONFIG
									  : VX_PROTECT_NO;
	if (is(&f, ".git"))
		return VX_PROTECT_GIT;
	if (is(&f, "package.json"))
		return VX_PROTECT_MANIFEST;
	return is_anywhere(parent, parent_len, &f) ? VX_PROTECT_ANYWHERE : VX_PROTECT_NO;
}

bool vx_protect_path(const char *path)
{
	size_t end = strlen(path), name, parent;

	while (end && path[end - 1] == '/')
		end--;
	for (name = end; name && path[name - 1] != '/';)
		name--;
	size_t parent_end = name ? name - 1 : 0;
	for (parent = parent_end; parent && path[parent - 1] != '/';)
		parent--;
	return vx_protect(path + parent, parent_end - parent, path + name, end - name) !=
	       VX_PROTECT_NO;
}
