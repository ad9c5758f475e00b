/* Which commands need no shell, and how to quote a word for those that do. Grammar: POSIX.1-2017,
 * Shell Command Language, 2.2 (quoting), 2.4 (reserved words), 2.14 and the built-ins that dash,
 * bash and busybox add. Anything outside the plain set of bytes goes to the shell. */
#include "loop.h"

#include "vx/assert.h"
#include "vx/strs.h"

#include <stdlib.h>
#include <string.h>

/* Sorted bytewise, for bsearch. */
static const char *const shell_words[] = {
	".",
	"alias",
	"bg",
	"bind",
	"break",
	"builtin",
	"caller",
	"case",
	"cd",
	"chdir",
	"command",
	"compgen",
	"complete",
	"compopt",
	"continue",
	"coproc",
	"declare",
	"dirs",
	"disown",
	"do",
	"done",
	"echo",
	"elif",
	"else",
	"enable",
	"esac",
	"eval",
	"exec",
	"exit",
	"export",
	"false",
	"fc",
	"fg",
	"fi",
	"for",
	"function",
	"getopts",
	"hash",
	"help",
	"history",
	"if",
	"in",
	"jobs",
	"kill",
	"let",
	"local",
	"logout",
	"mapfile",
	"newgrp",
	"popd",
	"printf",
	"pushd",
	"pwd",
	"read",
	"readarray",
	"readonly",
	"return",
	"select",
	"set",
	"shift",
	"shopt",
	"source",
	"suspend",
	"test",
	"then",
	"time",
	"times",
	"trap",
	"true",
	"type",
	"typeset",
	"ulimit",
	"umask",
	"unalias",
	"unset",
	"until",
	"wait",
	"while",
};

static int cmp_word(const void *key, const void *item)
{
	return strcmp(key, *(const char *const *)item);
}

static bool plain(unsigned char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       (c && strchr("_-./:,+@%=", c));
}

bool loop_direct_split(const char *command, struct vx_arena *a, struct vx_strs *ret)
{
	for (const char *s = command; *s; s++)
		if (*s != ' ' && !plain((unsigned char)*s))
			return false;
	struct vx_strlist words = {0};
	char *copy = vx_arena_strdup(a, command), *save = NULL;
	for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save))
		vx_strlist_add(&words, a, w);
	if (!words.n || strchr(words.v[0], '=') || !strcmp(words.v[0], ":"))
		return false;
	if (bsearch(words.v[0], shell_words, VX_ARRAY_LEN(shell_words), sizeof *shell_words,
		    cmp_word))
		return false;
	*ret = vx_strlist_done(&words);
	return true;
}

void loop_shell_quote(const char *arg, struct vx_buf *out)
{
	bool safe = *arg != 0;
	for (const char *s = arg; *s; s++)
		safe &= plain((unsigned char)*s);
	if (safe) {
		vx_buf_adds(out, arg);
		return;
	}
	vx_buf_addc(out, '\'');
	for (const char *s = arg; *s; s++)
		if (*s == '\'')
			vx_buf_adds(out, "'\\''");
		else
			vx_buf_addc(out, *s);
	vx_buf_addc(out, '\'');
}
