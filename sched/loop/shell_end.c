/* Where a command ends, so that words can be appended to it. POSIX.1-2017, Shell Command Language:
 * 2.2 quoting, 2.3 tokens, 2.6 expansions, 2.7 redirection, 2.9 commands, 2.10 the grammar.
 *
 * Appended words belong to the last simple command, as where package managers append them to a
 * script; behind it may stand blanks, newlines, a comment, and one `;` or `&`. What is not
 * understood, or has no such command at its end (a compound command, an assignment), or where the
 * words would reach another command than the one that is meant (`build | tee log`,
 * `build || true`), is refused. The scan is meant to be certain, not complete. */
#include "loop.h"

#include "vx/assert.h"

#include <errno.h>
#include <string.h>

struct scan {
	const char *p;    /* the next byte */
	const char *why;  /* refused: the reason */
	const char *end;  /* the end of the last word */
	int parens;       /* open subshells */
	int compounds;    /* open if, for, while, until, case, { */
	bool at_command;  /* the next word is a command's first */
	bool has_command; /* the simple command that the last word is of has its name */
	bool wants_word;  /* a redirection waits for its word */
	bool piped;       /* what comes gets the output, or waits for the failure, of another */
	bool closed;      /* the last token closes a compound command */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool is_operator(char c)
{
	return c && strchr("|&;()<>\n", c);
}

static const char *skip_single(const char *p)
{
	p = strchr(p + 1, '\'');
	return p ? p + 1 : NULL;
}

static const char *skip_expansion(const char *p, int depth);

/* p stands on the opening quote. NULL: it is not closed. */
static const char *skip_double(const char *p, int depth)
{
	for (p++; p && *p != '"';) {
		if (!*p)
			return NULL;
		if (*p == '\\' && p[1])
			p += 2;
		else if (*p == '`' || (*p == '$' && (p[1] == '(' || p[1] == '{')))
			p = skip_expansion(p, depth);
		else
			p++;
	}
	return p ? p + 1 : NULL;
}

/* Up to `close`, over quotes and nested expansions. A parenthesis without a partner (a pattern of
 * `case`) ends it too early; what follows is then not understood. */
static const char *skip_nested(const char *p, char close, int depth)
{
	bool word = false; /* a # inside a word is none of a comment */
	while (p && *p && *p != close) {
		bool quote = *p == '\'' || *p == '"', dollar = *p == '`' || *p == '$';
		if (*p == '\\' && p[1])
			p += 2;
		else if (*p == '\'')
			p = skip_single(p);
		else if (*p == '"')
			p = skip_double(p, depth);
		else if (*p == '`' || (*p == '$' && (p[1] == '(' || p[1] == '{')))
			p = skip_expansion(p, depth);
		else if (*p == '(' && close == ')')
			p = depth ? skip_nested(p + 1, ')', depth - 1) : NULL, p = p ? p + 1 : p;
		else if ((*p == '#' && !word && close == ')') || (*p == '<' && p[1] == '<'))
			return NULL; /* comments and here-documents in there are not followed */
		else
			p++;
		if (p)
			word = quote || dollar ||
			       (p[-1] && !is_blank(p[-1]) && !is_operator(p[-1]));
	}
	return p && *p == close ? p : NULL;
}

#define MAX_DEPTH 64 /* of expansions in expansions */

/* p stands on ` or $( or ${. NULL: it is not closed, or not understood. */
static const char *skip_expansion(const char *p, int depth)
{
	if (!depth)
		return NULL;
	if (*p == '`') {
		for (p++; *p && *p != '`'; p++)
			if (*p == '\\' && p[1])
				p++;
		return *p ? p + 1 : NULL;
	}
	p = skip_nested(p + 2, p[1] == '(' ? ')' : '}', depth - 1);
	return p ? p + 1 : NULL;
}

/* The end of the word at p. */
static const char *skip_word(const char *p)
{
	while (p && *p && !is_blank(*p) && !is_operator(*p)) {
		if (*p == '\\' && p[1])
			p += 2;
		else if (*p == '\\' || (*p == '$' && p[1] == '\''))
			return NULL; /* nothing to escape; $'...', which not all shells read alike
				      */
		else if (*p == '\'')
			p = skip_single(p);
		else if (*p == '"')
			p = skip_double(p, MAX_DEPTH);
		else if (*p == '`' || (*p == '$' && (p[1] == '(' || p[1] == '{')))
			p = skip_expansion(p, MAX_DEPTH);
		else
			p++;
	}
	return p;
}

static bool is_one_of(const char *p, size_t n, const char *const *words, size_t n_words)
{
	for (size_t i = 0; i < n_words; i++)
		if (strlen(words[i]) == n && memcmp(words[i], p, n) == 0)
			return true;
	return false;
}

/* A word where a command's name would stand: reserved words, assignments. */
static void first_word(struct scan *s, const char *w, size_t n)
{
	static const char *const open[] = {"if", "for", "while", "until", "case", "select", "{"},
				 *const close[] = {"fi", "done", "esac", "}"},
				 *const go_on[] = {"then", "do", "else", "elif", "!", "time"};
	size_t name = 0;
	if (is_one_of(w, n, open, VX_ARRAY_LEN(open))) {
		s->compounds++;
		/* behind these three stands a word, not a command */
		s->at_command = *w != 'f' && *w != 'c' && *w != 's';
		s->has_command = false;
		return;
	}
	if (is_one_of(w, n, close, VX_ARRAY_LEN(close))) {
		s->compounds--;
		s->closed = true;
		s->at_command = s->has_command = false;
		return;
	}
	if (is_one_of(w, n, go_on, VX_ARRAY_LEN(go_on)))
		return;
	while (name < n && (w[name] == '_' || (w[name] >= 'A' && w[name] <= 'Z') ||
				   (w[name] >= 'a' && w[name] <= 'z') ||
				   (name && w[name] >= '0' && w[name] <= '9')))
		name++;
	if (name && name < n && w[name] == '=')
		return; /* an assignment: the command is still to come */
	s->at_command = false;
	s->has_command = true;
}

static void take_word(struct scan *s)
{
	const char *start = s->p, *end = skip_word(start);
	if (!end) {
		s->why =
			"it has a quote or an expansion that does not end, or one that vx does not follow";
		return;
	}
	s->p = s->end = end;
	if (s->wants_word) {
		s->wants_word = false;
		return;
	}
	/* digits in front of a redirection are its own */
	size_t n = (size_t)(end - start);
	if ((*end == '<' || *end == '>') && strspn(start, "0123456789") >= n)
		return;
	if (s->closed)
		s->why = "it ends in a compound command";
	else if (s->at_command)
		first_word(s, start, n);
}

static void next_command(struct scan *s, bool piped)
{
	s->at_command = true;
	s->has_command = s->closed = false;
	s->piped = piped;
}

static void take_redirection(struct scan *s)
{
	if (s->p[0] == '<' && s->p[1] == '<' && s->p[2] != '<') {
		s->why = "it has a here-document";
		return;
	}
	s->p += s->p[0] == '<' && s->p[1] == '<' ? 3 : 1;
	if (*s->p == '>' || *s->p == '&' || *s->p == '|')
		s->p++;
	s->wants_word = true;
}

static void take_operator(struct scan *s)
{
	char c = *s->p, twice = s->p[1] == c;
	if (s->wants_word) {
		s->why = "a redirection in it leads nowhere";
	} else if (c == '<' || c == '>') {
		take_redirection(s);
	} else if (c == '&' && s->p[1] == '>') {
		s->why = "it has &>, which not all shells read alike";
	} else if (c == '\n' && s->at_command) {
		s->p++; /* behind an operator the line may go on */
	} else if (c == '(') {
		s->parens++;
		s->p++;
		next_command(s, false);
	} else if (c == ')') {
		s->p++;
		if (--s->parens < 0)
			s->why = "it has a parenthesis that vx does not understand";
		next_command(s, false);
		s->at_command = false;
		s->closed = true;
	} else {
		s->p += 1 + (twice && (c == '&' || c == '|' || c == ';'));
		next_command(s, c == '|');
		if (c == ';' && twice)
			s->at_command = true; /* a pattern of `case`, whose `)` is refused */
	}
}

/* The last token that is no blank, newline or comment. */
static void take_blanks(struct scan *s)
{
	for (;;) {
		if (is_blank(*s->p))
			s->p++;
		else if (s->p[0] == '\\' && s->p[1] == '\n')
			s->p += 2;
		else if (*s->p == '#')
			s->p += strcspn(s->p, "\n");
		else
			break;
	}
}

/* What stands between the last word and the end of the text: blanks, newlines, comments and one
 * operator at most. An operator that wants a command behind it is refused. */
static const char *dangling(const char *p)
{
	bool seen = false;
	while (*p) {
		if (is_blank(*p) || *p == '\n') {
			p++;
		} else if (*p == '\\' && p[1] == '\n') {
			p += 2;
		} else if (*p == '#') {
			p += strcspn(p, "\n");
		} else if ((*p == ';' || *p == '&') && p[1] != *p && !seen) {
			seen = true;
			p++;
		} else {
			return "it ends in an operator";
		}
	}
	return NULL;
}

const char *loop_command_end(const char *command, size_t *ret_at)
{
	struct scan s = {.p = command, .at_command = true};
	bool last_piped = false, last_command = false, last_closed = false;
	if (strchr(command, '\r'))
		return "it has a carriage return";
	for (;;) {
		take_blanks(&s);
		if (!*s.p)
			break;
		if (is_operator(*s.p)) {
			bool closes = *s.p == ')';
			take_operator(&s);
			if (closes) {
				last_closed = true;
				s.end = s.p;
			}
		} else {
			take_word(&s);
			last_piped = s.piped;
			last_command = s.has_command;
			last_closed = s.closed;
		}
		if (s.why)
			return s.why;
	}
	if (!s.end)
		return "it is empty";
	if (s.wants_word)
		return "a redirection in it leads nowhere";
	if (s.parens || s.compounds || last_closed)
		return "it ends in a compound command";
	if (!last_command)
		return "it ends in no command that takes words";
	if (last_piped)
		return "its last command comes behind | or ||, so it is not clear which one is to get them";
	const char *why = dangling(s.end);
	if (!why)
		*ret_at = (size_t)(s.end - command);
	return why;
}

int vx_run_check_forwarded(const struct vx_plan *p, struct vx_strs forwarded, struct vx_err *err)
{
	struct vx_arena a = {0};
	struct vx_strs words;
	const struct vx_task *first = NULL, *bad = NULL;
	const char *why = NULL;
	bool any = false;
	size_t at;
	for (uint32_t i = 0; i < p->graph.n_tasks && forwarded.n && !bad; i++) {
		const struct vx_task *t = &p->graph.tasks[i];
		if (!t->requested)
			continue;
		first = first ? first : t;
		if (vx_task_is_group(t))
			continue;
		any = true;
		if (!loop_direct_split(t->decl->exec.command, &a, &words) &&
			(why = loop_command_end(t->decl->exec.command, &at)))
			bad = t;
	}
	vx_arena_free(&a);
	if (bad) {
		vx_err_set(err, -EINVAL,
			"words after -- cannot be appended to the command of %s: %s", bad->id, why);
		return vx_err_fix(err, "let its command end with the one that is to get them");
	}
	if (!first || any)
		return 0;
	vx_err_set(err, -EINVAL, "%s runs no command, so nothing would get the words after --",
		first->id);
	return vx_err_fix(err, "name the task that is to get them");
}
