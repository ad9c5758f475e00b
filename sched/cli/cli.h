/* The command line: verbs, options, help. Each verb is a function of its own arguments that returns
 * the process's exit code; errors go to stderr as one line. */
#ifndef VX_CLI_H
#define VX_CLI_H

#include "vx/err.h"
#include "vx/run.h"

struct vx_buf;
struct vx_json;

int vx_cli_run(int argc, char **argv);
int vx_cli_info(int argc, char **argv);
int vx_cli_help(int argc, char **argv);
void vx_cli_overview(int fd);

/* Options of `vx run` into *o (arrays live for the process). 0, or -EINVAL with the line to
 * print. */
int vx_cli_parse_run(int argc, char **argv, struct vx_run_opts *o, struct vx_err *err);

/* The workspace's root and where the process stands in it: ret->root, ret->cwd. */
int vx_cli_root(struct vx_plan *ret, struct vx_err *err);

/* Workspace, configurations, selection and graph for what *o asks. Also on failure *ret holds what
 * was found so far (ret->ws.root). */
int vx_cli_plan(const struct vx_run_opts *o, struct vx_plan *ret, struct vx_err *err);

/* Every task's declared secrets, for masking: before anything that configurations say is shown. */
void vx_cli_learn_secrets(const struct vx_workspace *ws);

/* What vx prints is made by text.h (lines) and vx_json_write_shown (documents) alone: nothing in
 * sched/ uses stdio's output functions, which tests/integration/layering.sh checks.
 *
 * Prints "vx VERB: what (fix)" and returns 1. */
int vx_cli_fail(const char *verb, const struct vx_err *err);
void vx_cli_warn(const char *verb, struct vx_strs warnings);
/* To stdout: what those two have made. A reader that went away changes nothing. */
void vx_cli_out(const struct vx_buf *made);
void vx_cli_json(const struct vx_json *v); /* pretty */

/* -C: changes there. 0, or a negative code with the line to print. */
int vx_cli_chdir(const char *dir, struct vx_err *err);
/* `--name VALUE` or `--name=VALUE` (one letter: -nVALUE too) at argv[*i]: 1 and the value, *i at
 * the last word of it; 0 another option; -EINVAL without a value. argv[0] is the verb. */
int vx_cli_value(
	int argc, char **argv, int *i, const char *name, const char **ret, struct vx_err *err);
/* The arguments of a verb with one flag beside the global options. */
int vx_cli_flag_only(int argc, char **argv, const char *flag, bool *ret_flag, struct vx_err *err);

/* The plan on stdout: text, JSON, or JSON with every input and part of every key. Returns the exit
 * code. */
int vx_cli_dry(const struct vx_run_opts *o, struct vx_plan *p);

/* vx-init beside the binary (build tree) or in ../libexec/vx; NULL when there is none. */
const char *vx_cli_init_path(void);
/* A program on our own PATH, but of no package and not of the workspace (`root`; NULL none):
 * vx_which_own, looked for once. NULL. Static storage. */
const char *vx_cli_program(const char *name, const char *root);

extern const char vx_version[];

#endif
