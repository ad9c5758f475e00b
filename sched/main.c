/* vx: the entry. Hidden verbs first (the same image is fork server, box host and keeper), then what
 * a person types. */
#include "cli/cli.h"

#include "vx/assert.h"
#include "vx/keeper.h"
#include "vx/pool.h"
#include "vx/strs.h"
#include "vx/text.h"
#include "vx/verbs.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
} verbs[] = {{"run", vx_cli_run}, {"info", vx_cli_info}, {"help", vx_cli_help}, VX_MORE_VERBS};

/* A word that is no verb: most often a task, typed as other runners let one. */
static int unknown_verb(const char *word)
{
	const char *names[VX_ARRAY_LEN(verbs)];
	for (size_t i = 0; i < VX_ARRAY_LEN(verbs); i++)
		names[i] = verbs[i].name;
	const char *near = vx_nearest(word, (struct vx_strs){names, VX_ARRAY_LEN(verbs)});
	if (word[0] == '-')
		vx_say(2,
			"vx: %s is no option of vx itself (options follow the verb: vx run --all TASK; vx help lists them)\n",
			word);
	else if (near)
		vx_say(2,
			"vx %s: there is no such verb (did you mean vx %s? a task is run by: vx run %s)\n",
			word, near, word);
	else
		vx_say(2, "vx %s: there is no such verb (if it is a task: vx run %s)\n", word,
			word);
	return 1;
}

/* -C DIR and --cache-dir DIR may stand before the verb: they are moved behind it, where the verb
 * reads them. false: there is no verb. */
static bool rotate_globals(int argc, char **argv)
{
	int i = 1;
	while (i < argc && (!strncmp(argv[i], "-C", 2) || !strncmp(argv[i], "--cache-dir", 11)))
		i += !strcmp(argv[i], "-C") || !strcmp(argv[i], "--cache-dir") ? 2 : 1;
	if (i >= argc)
		return false;
	char *verb = argv[i];
	memmove(argv + 2, argv + 1, (size_t)(i - 1) * sizeof *argv);
	argv[1] = verb;
	return true;
}

int main(int argc, char **argv)
{
	/* a file size limit (ulimit -f) is an error of the write that meets it; commands get the
	 * default again */
	signal(SIGXFSZ, SIG_IGN);
	if (argc > 1 && !strcmp(argv[1], "-forkserver"))
		return vx_forkserver_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "-boxhost"))
		return vx_boxhost_main(argc, argv);
	if (argc > 1 && !strcmp(argv[1], "-keeper"))
		return vx_keeper_main(argc, argv);
	vx_text_locale((const char *const *)environ);
	if (!rotate_globals(argc, argv)) {
		vx_cli_overview(2);
		return 1; /* nothing was asked for: a script that forgot its verb must not pass */
	}
	const char *verb = argv[1];
	if (!strcmp(verb, "--version") || !strcmp(verb, "-V")) {
		vx_say(1, "vx %s\n", vx_version);
		return 0;
	}
	if (!strcmp(verb, "--help") || !strcmp(verb, "-h"))
		verb = "help";
	/* `vx run` finds --help itself: behind `--` it is a command's own. */
	for (int i = 2; i < argc && strcmp(verb, "run") != 0; i++)
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h"))
			return vx_cli_help(2, argv);
	for (size_t i = 0; i < VX_ARRAY_LEN(verbs); i++)
		if (!strcmp(verbs[i].name, verb))
			return verbs[i].run(argc - 1, argv + 1);
	return unknown_verb(verb);
}
