/* vx help [VERB]. */
#include "cli.h"

#include "vx/assert.h"
#include "vx/fd.h"
#include "vx/strs.h"

#include <errno.h>
#include <string.h>

static const char overview[] =
	"vx runs the task graph of a monorepo, remembers every result, and puts a kernel sandbox around each task.\n"
	"\n"
	"  vx run [OPTIONS] [TASK | PKG#TASK ...] [-- ARGS...]   run tasks\n"
	"  vx cache prune|stats|verify                           the cache: make room, sizes, check\n"
	"  vx lock [--check]                                     freeze the resolved workspace; does it still hold?\n"
	"  vx init [--from-turbo]                                write vx.json files from scripts or turbo.json\n"
	"  vx info                                               versions, workspace, cache, sandbox: what a bug report needs\n"
	"  vx help [VERB]                                        this, or a verb's options\n"
	"  vx --version\n"
	"\n"
	"Global options, before or after the verb: -C DIR, --cache-dir DIR.\n";

static const char run_help[] =
	"vx run [OPTIONS] [TASK | PKG#TASK ...] [-- ARGS...]\n"
	"\n"
	"Which tasks (without an option: those of the current directory's project; at the root: its own, else every project's)\n"
	"  --all                       every project that declares the task\n"
	"  --filter PAT, -F PAT        projects by name, {dir}, [git-ref], tag:pattern; with ... for dependencies and dependents; ! excludes\n"
	"  --affected[=BASE]           what changed since BASE\n"
	"  --exclude-dependencies[=NAMES], --only   only what was asked for\n"
	"  -C DIR, --cwd DIR           as if started there\n"
	"How\n"
	"  --concurrency N | N%        CPU slots (default: the CPUs this process may use)\n"
	"  --continue[=never|deps-ok|always]   after a failure (default deps-ok; bare: always)\n"
	"  --retry N                   further attempts after a failure\n"
	"  --timeout MS                time limit of each task's command\n"
	"  --sandbox config|require|off   as declared; refuse tasks without one; run all without\n"
	"  -- ARGS                     appended to the commands of the tasks that are named\n"
	"Cache\n"
	"  --no-cache                  neither read nor write\n"
	"  --force                     run, then save over what is there\n"
	"  --cache local:rw|local:r|local:w|local:   read and write, read, write, neither\n"
	"  --cache-dir DIR             another store\n"
	"  --frozen                    take the workspace from vx-lock.json, evaluate nothing\n"
	"What is shown\n"
	"  --output-logs full|new-only|errors-only|hash-only|none\n"
	"  --dry[=text|json|full]      the plan, and nothing is run; full: with input files, keys and sandboxes\n"
	"  --verbosity N               0 to 3; 2: hits too, and what each task used; 3: also when it starts\n"
	"  --summarize[=PATH]          the run and every part of every key as JSON (vx-summary.json)\n"
	"  --events PATH               one line of JSON for each change of state; - is stdout, all else then goes to stderr\n"
	"  --profile[=PATH]            Chrome trace (vx-profile.json)\n"
	"  --report[=html|markdown]    a page about the run (vx-report.html, vx-report.md)\n"
	"Of Turborepo and Nx also: --framework-inference=false; --parallel=N, --only, --dry-run, --projects or -p, --targets or --target or -t,\n"
	"--skip-nx-cache mean what is above.\n"
	"Environment: VX_CACHE_DIR, VX_TASK_TIMEOUT, VX_KILL_GRACE_MS, CI, NO_COLOR, FORCE_COLOR; docs/cli.md has the others.\n"
	"Exit: 0 all succeeded or hit; 1 something failed or was skipped, or the invocation was wrong; 128 + n interrupted by signal n.\n";

static const char cache_help[] =
	"vx cache prune [--older-than AGE] [--max-size SIZE] [--dry-run]   the least recently used go first; litter goes always\n"
	"vx cache stats                                                    how much there is\n"
	"vx cache verify                                                   reads everything; exit 1 when something is damaged\n"
	"\n"
	"AGE: a number and s, m, h, d or w. SIZE: bytes, or a number and K, M, G or T. All take --format pretty|json, -C DIR, --cache-dir DIR.\n";

static const char lock_help[] =
	"vx lock [--check] [-C DIR]\n\nWrites vx-lock.json, the workspace with every configuration evaluated, for vx run --frozen. --check compares and\n"
	"writes nothing: exit 1 when it no longer holds.\n";

static const char init_help[] =
	"vx init [--from-turbo] [-C DIR]\n\nWrites a vx.json for each project from its scripts, or from turbo.json. Files that are there are left alone.\n";

static const char info_help[] =
	"vx info [--format pretty|json] [-C DIR] [--cache-dir DIR]\n\nPrints versions, the workspace, the cache and the sandbox's verdict on this machine. Changes nothing.\n";

/* Text of ours alone, so it goes out as it is. */
static void page(int fd, const char *text)
{
	(void)vx_write_full(fd, text, strlen(text));
}

void vx_cli_overview(int fd)
{
	page(fd, overview);
}

int vx_cli_help(int argc, char **argv)
{
	static const struct {
		const char *verb, *text;
	} pages[] = {{"run", run_help}, {"cache", cache_help}, {"lock", lock_help},
		{"init", init_help}, {"info", info_help}, {"help", overview}};
	const char *names[VX_ARRAY_LEN(pages)];
	struct vx_err err = {0};
	for (size_t i = 0; i < VX_ARRAY_LEN(pages); i++) {
		names[i] = pages[i].verb;
		if (argc < 2 || !strcmp(argv[1], pages[i].verb)) {
			page(1, argc < 2 ? overview : pages[i].text);
			return 0;
		}
	}
	const char *near = vx_nearest(argv[1], (struct vx_strs){names, VX_ARRAY_LEN(names)});
	vx_err_set(&err, -ENOENT, "there is no verb %s", argv[1]);
	if (near)
		vx_err_fix(&err, "did you mean vx help %s?", near);
	else
		vx_err_fix(&err, "vx help lists them");
	return vx_cli_fail("help", &err);
}
