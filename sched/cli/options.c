/* Options of `vx run`: one table, one loop. Other runners' spellings are accepted where they mean
 * the same, or refused with ours. */
#include "cli.h"

#include "vx/arena.h"
#include "vx/assert.h"
#include "vx/limits.h"
#include "vx/strs.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum arg { ARG_NONE, ARG_VALUE, ARG_OPTIONAL }; /* OPTIONAL: only as --name=value */

struct parse {
	struct vx_run_opts *o;
	struct vx_strlist words, filters, forwarded;
	struct vx_arena *a;
	struct vx_err *err;
};

struct option {
	const char *name;
	char letter;
	enum arg arg;
	int (*take)(struct parse *p, const char *name, const char *value);
	const char *instead; /* refused: what to write here */
};

static int bad(struct parse *p, const char *name, const char *value, const char *want)
{
	vx_err_set(p->err, -EINVAL, "--%s %s is not understood", name, value);
	return vx_err_fix(p->err, "%s", want);
}

static int take_dir(struct parse *p, const char *name, const char *value)
{
	(void)name;
	return vx_cli_chdir(value, p->err);
}

/* Options without a value set one flag, found by name. */
static int take_flag(struct parse *p, const char *name, const char *value)
{
	(void)value;
	if (!strcmp(name, "all"))
		p->o->all = true;
	else if (!strcmp(name, "force"))
		p->o->force = true;
	else if (!strcmp(name, "frozen"))
		p->o->frozen = true;
	else if (!strcmp(name, "only"))
		p->o->exclude_deps = true;
	else if (!strcmp(name, "help"))
		p->o->help = true;
	else
		p->o->no_cache = true;
	return 0;
}

/* Lists of names, separated by commas where other runners allow that. */
static void add_list(struct parse *p, struct vx_strlist *to, const char *value)
{
	char *copy = vx_arena_strdup(p->a, value), *save = NULL;
	for (char *s = strtok_r(copy, ",", &save); s; s = strtok_r(NULL, ",", &save))
		vx_strlist_add(to, p->a, s);
}

static int take_filter(struct parse *p, const char *name, const char *value)
{
	if (!strcmp(name, "projects"))
		add_list(p, &p->filters, value);
	else
		vx_strlist_add(&p->filters, p->a, value);
	if (p->filters.n <= VX_MAX_FILTERS)
		return 0;
	vx_err_set(p->err, -E2BIG, "--%s: more than %u filters", name, VX_MAX_FILTERS);
	return vx_err_fix(p->err, "name directories or patterns that hold many projects");
}

static int take_target(struct parse *p, const char *name, const char *value)
{
	(void)name;
	add_list(p, &p->words, value);
	return 0;
}

static int take_affected(struct parse *p, const char *name, const char *value)
{
	(void)name;
	p->o->affected = true;
	p->o->affected_base = value;
	return 0;
}

static int take_concurrency(struct parse *p, const char *name, const char *value)
{
	uint32_t n;
	if (!value) { /* Turborepo's bare --parallel lifts the bound, which is not offered here */
		vx_err_set(p->err, -EINVAL, "--%s has no number", name);
		return vx_err_fix(p->err, "use --concurrency N");
	}
	p->o->concurrency = value;
	return vx_concurrency(value, &n, p->err);
}

static int take_continue(struct parse *p, const char *name, const char *value)
{
	static const struct {
		const char *name;
		enum vx_continue policy;
	} words[] = {{"always", VX_CONTINUE_ALWAYS}, {"deps-ok", VX_CONTINUE_DEPS_OK},
		{"never", VX_CONTINUE_NEVER}, {"dependencies-successful", VX_CONTINUE_DEPS_OK}};
	for (size_t i = 0; i < VX_ARRAY_LEN(words); i++)
		if (!value || !strcmp(value, words[i].name)) {
			p->o->policy = words[i].policy;
			return 0;
		}
	return bad(p, name, value, "one of never, deps-ok, always");
}

/* Turborepo's own, for a workspace of its turbo.json. */
static int take_inference(struct parse *p, const char *name, const char *value)
{
	p->o->no_inference = value && !strcmp(value, "false");
	return !value || p->o->no_inference || !strcmp(value, "true")
		       ? 0
		       : bad(p, name, value, "true or false");
}

static int take_number(struct parse *p, const char *name, const char *value)
{
	uint64_t n;
	if (!strcmp(name, "retry")) {
		if (vx_parse_u64(value, 100, &n))
			return bad(p, name, value, "a number from 0 to 100");
		p->o->retry = (int32_t)n;
	} else if (!strcmp(name, "timeout")) {
		if (vx_parse_u64(value, VX_MAX_TIMEOUT_MS, &n))
			return bad(p, name, value, "milliseconds, at most 2147483647");
		p->o->timeout_ms = (int64_t)n;
	} else {
		if (vx_parse_u64(value, 3, &n))
			return bad(p, name, value, "a number from 0 to 3");
		p->o->verbosity = (int)n;
	}
	return 0;
}

static int take_cache(struct parse *p, const char *name, const char *value)
{
	static const struct {
		const char *spec;
		bool read, write;
	} specs[] = {{"local:rw", true, true}, {"local:r", true, false}, {"local:w", false, true},
		{"local:", false, false}};
	for (size_t i = 0; i < VX_ARRAY_LEN(specs); i++)
		if (!strcmp(value, specs[i].spec)) {
			p->o->cache_read = specs[i].read;
			p->o->cache_write = specs[i].write;
			return 0;
		}
	return bad(p, name, value, "one of local:rw, local:r, local:w, local:");
}

static int take_cache_dir(struct parse *p, const char *name, const char *value)
{
	(void)name;
	p->o->cache_dir = value;
	return 0;
}

static int take_exclude(struct parse *p, const char *name, const char *value)
{
	(void)name;
	struct vx_strlist names = {0};
	if (!value)
		p->o->exclude_deps = true;
	else
		add_list(p, &names, value);
	p->o->exclude_names = vx_strlist_done(&names);
	return 0;
}

/* The position of `value` in a list of words, or n. */
static size_t word_index(const char *value, const char *const *words, size_t n)
{
	size_t i = 0;
	while (i < n && strcmp(value, words[i]) != 0)
		i++;
	return i;
}

static int take_logs(struct parse *p, const char *name, const char *value)
{
	return vx_output_logs_parse(value, &p->o->logs)
		       ? bad(p, name, value, "one of full, new-only, errors-only, hash-only, none")
		       : 0;
}

static int take_dry(struct parse *p, const char *name, const char *value)
{
	static const char *const words[] = {"text", "json", "full"};
	static const enum vx_dry dry[] = {VX_DRY_TEXT, VX_DRY_JSON, VX_DRY_FULL};
	size_t i = value ? word_index(value, words, VX_ARRAY_LEN(words)) : 0;
	if (i == VX_ARRAY_LEN(words))
		return bad(p, name, value, "one of text, json, full");
	p->o->dry = dry[i];
	return 0;
}

/* Files about the run; without a path they get a usual name in the current directory. */
static int take_file(struct parse *p, const char *name, const char *value)
{
	if (!strcmp(name, "events"))
		p->o->events_path = value;
	else if (!strcmp(name, "summarize"))
		p->o->summary_path = value ? value : "vx-summary.json";
	else
		p->o->profile_path = value ? value : "vx-profile.json";
	return 0;
}

static int take_report(struct parse *p, const char *name, const char *value)
{
	if (!value || !strcmp(value, "html"))
		p->o->report_html = "vx-report.html";
	else if (!strcmp(value, "markdown"))
		p->o->report_markdown = "vx-report.md";
	else
		return bad(p, name, value, "one of markdown, html");
	return 0;
}

static int take_sandbox(struct parse *p, const char *name, const char *value)
{
	static const char *const words[] = {"config", "require", "off"};
	static const enum vx_sandbox_mode modes[] = {
		VX_SANDBOX_CONFIG, VX_SANDBOX_REQUIRE, VX_SANDBOX_OFF};
	size_t i = word_index(value, words, VX_ARRAY_LEN(words));
	if (i == VX_ARRAY_LEN(words))
		return bad(p, name, value, "one of config, require, off");
	p->o->sandbox = modes[i];
	return 0;
}

static const struct option options[] = {
	{"help", 'h', ARG_NONE, take_flag, NULL},
	{"cwd", 'C', ARG_VALUE, take_dir, NULL},
	{"all", 0, ARG_NONE, take_flag, NULL},
	{"filter", 'F', ARG_VALUE, take_filter, NULL},
	{"affected", 0, ARG_OPTIONAL, take_affected, NULL},
	{"concurrency", 0, ARG_VALUE, take_concurrency, NULL},
	{"parallel", 0, ARG_OPTIONAL, take_concurrency, NULL},
	{"continue", 0, ARG_OPTIONAL, take_continue, NULL},
	{"retry", 0, ARG_VALUE, take_number, NULL},
	{"timeout", 0, ARG_VALUE, take_number, NULL},
	{"verbosity", 0, ARG_VALUE, take_number, NULL},
	{"no-cache", 0, ARG_NONE, take_flag, NULL},
	{"skip-nx-cache", 0, ARG_NONE, take_flag, NULL},
	{"force", 0, ARG_NONE, take_flag, NULL},
	{"frozen", 0, ARG_NONE, take_flag, NULL},
	{"only", 0, ARG_NONE, take_flag, NULL},
	{"cache", 0, ARG_VALUE, take_cache, NULL},
	{"cache-dir", 0, ARG_VALUE, take_cache_dir, NULL},
	{"exclude-dependencies", 0, ARG_OPTIONAL, take_exclude, NULL},
	{"output-logs", 0, ARG_VALUE, take_logs, NULL},
	{"dry", 0, ARG_OPTIONAL, take_dry, NULL},
	{"dry-run", 0, ARG_OPTIONAL, take_dry, NULL},
	{"summarize", 0, ARG_OPTIONAL, take_file, NULL},
	{"events", 0, ARG_VALUE, take_file, NULL},
	{"profile", 0, ARG_OPTIONAL, take_file, NULL},
	{"report", 0, ARG_OPTIONAL, take_report, NULL},
	{"sandbox", 0, ARG_VALUE, take_sandbox, NULL},
	{"framework-inference", 0, ARG_OPTIONAL, take_inference, NULL},
	{"projects", 'p', ARG_VALUE, take_filter, NULL},
	{"target", 't', ARG_VALUE, take_target, NULL},
	{"targets", 0, ARG_VALUE, take_target, NULL},
	/* Turborepo's and Nx's that mean nothing here, or something else: what to write. */
	{"output-style", 0, ARG_VALUE, NULL, "--output-logs"},
	{"log-order", 0, ARG_VALUE, NULL, "nothing: the output of tasks is never interleaved"},
	{"log-prefix", 0, ARG_VALUE, NULL,
		"nothing: lines are named where several tasks stream at once"},
	{"daemon", 0, ARG_NONE, NULL, "nothing: vx has no daemon"},
	{"no-daemon", 0, ARG_NONE, NULL, "nothing: vx has no daemon"},
	{"ui", 0, ARG_VALUE, NULL, "nothing: live rows come with a terminal"},
	{"env-mode", 0, ARG_VALUE, NULL, "envMode in turbo.json"},
	{"color", 0, ARG_NONE, NULL, "FORCE_COLOR=1 in the environment"},
	{"no-color", 0, ARG_NONE, NULL, "NO_COLOR=1 in the environment"},
	{"verbose", 0, ARG_NONE, NULL, "--verbosity 2"},
	{"cache-workers", 0, ARG_VALUE, NULL, "nothing: the cache has lanes of its own"},
	{"remote-only", 0, ARG_NONE, NULL, "--cache: there is no remote cache yet"},
	{"remote-cache-timeout", 0, ARG_VALUE, NULL, "nothing: there is no remote cache yet"},
	{"no-deps", 0, ARG_NONE, NULL, "--filter PKG without the dots"},
	{"include-dependencies", 0, ARG_NONE, NULL, "--filter PKG..."},
	{"ignore", 0, ARG_VALUE, NULL, "--filter '!{DIR}'"},
	{"exclude", 0, ARG_VALUE, NULL, "--filter '!PKG'"},
	{"scope", 0, ARG_VALUE, NULL, "--filter"},
	{"since", 0, ARG_VALUE, NULL, "--affected=BASE"},
	{"base", 0, ARG_VALUE, NULL, "--affected=BASE"},
	{"head", 0, ARG_VALUE, NULL, "--filter '[BASE...HEAD]'"},
	{"global-deps", 0, ARG_VALUE, NULL, "globalDependencies in turbo.json"},
	{"root-turbo-json", 0, ARG_VALUE, NULL, "nothing: turbo.json lies in the root"},
	{"nxBail", 0, ARG_NONE, NULL, "--continue=never"},
	{"nx-bail", 0, ARG_NONE, NULL, "--continue=never"},
};

static const struct option *find(const char *name, size_t n)
{
	for (size_t i = 0; i < VX_ARRAY_LEN(options); i++)
		if ((n == 1 && options[i].letter == name[0]) ||
			(strlen(options[i].name) == n && !memcmp(options[i].name, name, n)))
			return &options[i];
	return NULL;
}

static int unknown(struct parse *p, const char *arg)
{
	const char *names[VX_ARRAY_LEN(options)];
	uint32_t n = 0;
	for (size_t i = 0; i < VX_ARRAY_LEN(options); i++)
		if (!options[i].instead)
			names[n++] = options[i].name;
	const char *word = arg + strspn(arg, "-");
	const char *near = vx_nearest(
		vx_arena_strndup(p->a, word, strcspn(word, "=")), (struct vx_strs){names, n});
	vx_err_set(p->err, -EINVAL, "there is no option %s", arg);
	return near ? vx_err_fix(p->err, "did you mean --%s?", near)
		    : vx_err_fix(p->err, "vx help run lists them");
}

/* One option at argv[i]; returns how many words it took, or -EINVAL. */
static int take_option(struct parse *p, int argc, char **argv, int i)
{
	const char *arg = argv[i], *value = NULL;
	bool is_long = arg[1] == '-';
	const char *name = arg + 1 + is_long;
	size_t len = is_long ? strcspn(name, "=") : 1;
	const struct option *opt = find(name, len);
	if (!opt || (is_long && len == 1))
		return unknown(p, arg);
	if (opt->instead) {
		vx_err_set(p->err, -EINVAL, "--%s is another runner's option", opt->name);
		return vx_err_fix(p->err, "write %s", opt->instead);
	}
	int took = 1;
	if (name[len])
		value = name + len + (name[len] == '=');
	if (opt->arg == ARG_NONE && value) {
		vx_err_set(p->err, -EINVAL, "--%s takes no value", opt->name);
		return vx_err_fix(p->err, "leave %s out", value);
	}
	if (opt->arg == ARG_VALUE && !value) {
		if (i + 1 >= argc) {
			vx_err_set(p->err, -EINVAL, "%s has no value", arg);
			return is_long ? vx_err_fix(p->err,
						 "write --%s VALUE; vx help run says which",
						 opt->name)
				       : vx_err_fix(p->err,
						 "write -%c VALUE; vx help run says which",
						 opt->letter);
		}
		value = argv[i + 1];
		took = 2;
	}
	int r = opt->take(p, opt->name, value);
	return r ? r : took;
}

int vx_cli_parse_run(int argc, char **argv, struct vx_run_opts *o, struct vx_err *err)
{
	static struct vx_arena arena; /* lives as long as the process, like argv */
	struct parse p = {.o = o, .a = &arena, .err = err};
	*o = (struct vx_run_opts){.retry = -1,
		.timeout_ms = -1,
		.cache_read = true,
		.cache_write = true,
		.policy = VX_CONTINUE_DEPS_OK};
	for (int i = 1; i < argc;) {
		if (!strcmp(argv[i], "--")) {
			for (i++; i < argc; i++)
				vx_strlist_add(&p.forwarded, p.a, argv[i]);
			break;
		}
		if (argv[i][0] != '-' || !argv[i][1]) {
			vx_strlist_add(&p.words, p.a, argv[i++]);
			continue;
		}
		int took = take_option(&p, argc, argv, i);
		if (took < 0)
			return took;
		i += took;
	}
	o->words = vx_strlist_done(&p.words);
	o->filters = vx_strlist_done(&p.filters);
	o->forwarded = vx_strlist_done(&p.forwarded);
	return 0;
}
