/* Withheld packages. */
#include "hidden_packages.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/path.h"

#include <string.h>
#include <unistd.h>

static const char *const builtins[] = {".", ":", "[", "alias", "bg", "break", "case", "cd",
	"command", "continue", "echo", "eval", "exec", "exit", "export", "false", "fc", "fg", "for",
	"getopts", "hash", "if", "jobs", "kill", "let", "local", "printf", "pwd", "read",
	"readonly", "return", "set", "shift", "test", "times", "trap", "true", "type", "ulimit",
	"umask", "unalias", "unset", "until", "wait", "while"};

static bool plain(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       strchr("_-./@+:", c) != NULL;
}

const char *withheld_program(struct vx_arena *a, struct vx_strs argv)
{
	bool shell =
		argv.n == 3 && vx_streq(vx_path_base(argv.v[0]), "sh") && vx_streq(argv.v[1], "-c");
	const char *text = argv.n == 0 ? ""
			   : shell     ? argv.v[2] + strspn(argv.v[2], " \t\n")
				       : argv.v[0];
	size_t n = 0;

	if (!shell)
		return *text ? text : NULL;
	while (text[n] && plain(text[n]))
		n++;
	if (n == 0 || !strchr(" \t\n;&|<>", text[n]))
		return NULL;
	const char *word = vx_arena_strndup(a, text, n);
	for (size_t i = 0; i < VX_ARRAY_LEN(builtins); i++)
		if (vx_streq(builtins[i], word))
			return NULL;
	return word;
}

const char *withheld_line(struct vx_arena *a, const struct vx_withheld *v, uint32_t n,
	const char *project, const char *path)
{
	for (uint32_t i = 0; i < n; i++) {
		if (!vx_path_within(path, v[i].target))
			continue;
		const char *name = v[i].package, *at = v[i].link;
		/* what is linked is called what it is, but for aliases */
		while (!name && (at = strstr(at, "/node_modules/"))) {
			at += strlen("/node_modules/");
			name = strstr(at, "/node_modules/") ? NULL : at;
		}
		name = name ? name : vx_path_base(v[i].link);
		if (v[i].why != VX_WITHHELD_KEY)
			return vx_arena_printf(a,
				"sandbox: %s is withheld: it was looked for through %s, and %s. Write allow.read \"%s\"",
				path, v[i].link,
				v[i].why == VX_WITHHELD_MEMBER
					? "only members of the workspace are dependencies"
					: "a sandboxed task may have written that link, and no manifest leads there",
				vx_path_relative(a, project, v[i].target));
		return vx_arena_printf(a,
			"sandbox: %s is withheld: it was looked for through %s, and the task's key does not answer for \"%s\". Make the task depend on one of its tasks "
			"(dependsOn \"%s#...\"), or write allow.read \"%s\" and name its files in inputs.workspaceFiles",
			path, v[i].link, name, name, vx_path_relative(a, project, v[i].target));
	}
	return NULL;
}

const char *withheld_find(
	struct vx_arena *a, const char *program, const char *path_var, const char *cwd)
{
	char *canonical;

	if (strchr(program, '/'))
		path_var = "";
	for (const char *dir = path_var; dir;
		dir = strchr(dir, ':') ? strchr(dir, ':') + 1 : NULL) {
		const char *at = vx_path_join(a, cwd, vx_arena_strndup(a, dir, strcspn(dir, ":")));
		if (vx_path_canon(a, vx_path_join(a, at, program), &canonical) == 0 &&
			access(canonical, X_OK) == 0)
			return canonical;
	}
	return NULL;
}
