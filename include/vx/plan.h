/* The plan's data: workspace, projects, declared tasks, task graph. Types only; workspace.h,
 * config.h, select.h and graph.h fill them.
 *
 * Everything lives in one run arena and is immutable once its maker has returned. Indexes, not
 * pointers, connect things: a project is its index in ws->projects, a task its index in
 * graph->tasks. Directories are relative to the workspace root, normalised, "." for the root
 * itself. */
#ifndef VX_PLAN_H
#define VX_PLAN_H

#include "vx/map.h"
#include "vx/sandbox.h"
#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>

struct vx_kv {
	const char *name, *value;
};

/* Which tool's rules a declaration follows where the two differ (globs, inputs, environment
 * wildcards). */
enum vx_dialect { VX_DIALECT_VX, VX_DIALECT_TURBO };

struct vx_exec_decl {
	const char *command;
	/* The command is the package script of this name, run as the package manager runs it; `pre`
	 * and `post` are the scripts that it runs before and after. NULL: none. */
	const char *script, *pre, *post;
	struct vx_strs pass_through; /* names; under turbo with `*` and `!` */
	const struct vx_kv *define;
	uint32_t n_define;
	struct vx_strs secret;
	int64_t timeout_ms; /* -1 not given, 0 none */
	int32_t retries;    /* -1 not given */
	bool persistent, interactive, exclusive;
	const char *ready_when; /* NULL: ready at once */
	uint32_t cpus;          /* at least 1 */
	uint64_t memory_bytes;  /* 0 not given */
	bool sandboxed;
	struct vx_sbx_decl sandbox;
};

struct vx_cache_decl {
	struct vx_strs files, workspace_files; /* globs; `!` entries included */
	/* turbo: no inputs given, or $TURBO_DEFAULT$: every file of the package (files then adds
	 * and subtracts) */
	bool default_inputs;
	/* turbo: so many of `env`, at its end, come from the framework and not from a file */
	uint32_t n_inferred;
	struct vx_strs env; /* names; under turbo with `*`, `!` and `=` (vx_env_select) */
	struct vx_strs runtime, workspace_runtime;
	struct vx_strs
		tasks; /* which upstream keys are folded: "*", "^*", names; given = !NULL v */
	bool tasks_given;
	struct vx_strs out_files, out_workspace_files;
};

struct vx_task_decl {
	const char *name, *description;
	struct vx_strs depends_on;
	bool has_exec, has_cache; /* neither exec nor ... : a group */
	/* turbo: a persistent task whose `cache` is not false. It is shown, no more */
	bool says_cache;
	struct vx_exec_decl exec;
	struct vx_cache_decl cache;
	struct vx_strs with; /* turbo: started beside this one */
	enum vx_dialect dialect;
	const char *output_logs; /* turbo's outputLogs, NULL when not given */
	/* resolved config as canonical JSON, placement and resources left out: a part of the key */
	const char *canonical;
	/* the file that declared it, for errors: relative to the root, or (in_project) to the
	 * project's directory */
	const char *source;
	bool in_project;
};

/* Of the names that a framework adds this one counts only where VX_SKEW_SWITCH is set to 1. */
#define VX_SKEW_ID "VERCEL_DEPLOYMENT_ID"
#define VX_SKEW_SWITCH "VERCEL_SKEW_PROTECTION_ENABLED"
/* Its value is the prefix of variables that are never inferred. */
#define VX_VENDOR_SWITCH "TURBO_CI_VENDOR_ENV_KEY"

/* Why a project's configuration could not be taken; its tasks are not known then. */
struct vx_broken {
	int code;
	const char *what, *fix;
};

struct vx_project {
	const char *name;
	const char *dir;
	const char *manifest; /* "packages/a/package.json" */
	struct vx_strs tags;
	const struct vx_kv *scripts;
	uint32_t n_scripts;
	const uint32_t *deps; /* package edges (project indexes), in manifest order, unique */
	uint32_t n_deps;
	struct vx_strs nested; /* directories of projects nested in this one */
	/* declaration order; equal ones may be shared between projects */
	const struct vx_task_decl *const *tasks;
	uint32_t n_tasks;
	const char *version; /* of the manifest; NULL when not given */
	/* NULL: whole. See vx_workspace_need. */
	const struct vx_broken *broken;
	/* enum vx_dir_files: which of the files that matter its directory has */
	uint32_t files;
	/* under turbo.json: names (with `*`) of variables that its framework builds into results */
	struct vx_strs framework_env;
};

/* Files of a project's directory that planning cares about; bits of vx_project.files. */
enum vx_dir_files {
	VX_HAS_PACKAGE_JSON = 1,
	VX_HAS_VX_JSON = 2,
	VX_HAS_VX_JSONC = 4,
	VX_HAS_VX_CONFIG_TS = 8, /* vx.config.ts, then in this order .mts .cts .js .mjs .cjs */
	VX_HAS_VX_CONFIG_MTS = 16,
	VX_HAS_VX_CONFIG_CTS = 32,
	VX_HAS_VX_CONFIG_JS = 64,
	VX_HAS_VX_CONFIG_MJS = 128,
	VX_HAS_VX_CONFIG_CJS = 256,
	VX_HAS_TURBO_JSON = 512,
	VX_HAS_TURBO_JSONC = 1024,
	VX_HAS_VX_WORKSPACE_JSON = 2048,
	VX_HAS_VX_WORKSPACE_JSONC = 4096,
	VX_HAS_PNPM_WORKSPACE = 8192,
	VX_HAS_BUN_LOCK = 16384, /* bun.lock or bun.lockb */
	VX_HAS_YARN_LOCK = 32768,
	VX_HAS_PNPM_LOCK = 65536,
	VX_HAS_NPM_LOCK = 131072, /* package-lock.json or npm-shrinkwrap.json */
	VX_HAS_YARNRC_YML = 262144,
	VX_HAS_NPMRC = 524288,
	VX_HAS_PNP = 1048576,             /* .pnp.cjs or .pnp.js */
	VX_HAS_VX_WORKSPACE_TS = 1 << 21, /* vx.workspace.ts, then in the order of vx.config.* */
	VX_HAS_VX_WORKSPACE_MTS = 1 << 22,
	VX_HAS_VX_WORKSPACE_CTS = 1 << 23,
	VX_HAS_VX_WORKSPACE_JS = 1 << 24,
	VX_HAS_VX_WORKSPACE_MJS = 1 << 25,
	VX_HAS_VX_WORKSPACE_CJS = 1 << 26,
	/* configurations that are programs, and all of the workspace */
	VX_CONFIG_PROGRAMS = VX_HAS_VX_CONFIG_TS | VX_HAS_VX_CONFIG_MTS | VX_HAS_VX_CONFIG_CTS |
			     VX_HAS_VX_CONFIG_JS | VX_HAS_VX_CONFIG_MJS | VX_HAS_VX_CONFIG_CJS,
	VX_WORKSPACE_PROGRAMS = VX_HAS_VX_WORKSPACE_TS | VX_HAS_VX_WORKSPACE_MTS |
				VX_HAS_VX_WORKSPACE_CTS | VX_HAS_VX_WORKSPACE_JS |
				VX_HAS_VX_WORKSPACE_MJS | VX_HAS_VX_WORKSPACE_CJS,
	VX_WORKSPACE_CONFIGS =
		VX_HAS_VX_WORKSPACE_JSON | VX_HAS_VX_WORKSPACE_JSONC | VX_WORKSPACE_PROGRAMS,
	VX_HAS_VX_LOCK = 1 << 27, /* vx-lock.json */
	/* what says which tasks a project has */
	VX_HAS_TASKS = VX_HAS_PACKAGE_JSON | VX_HAS_VX_JSON | VX_HAS_VX_JSONC | VX_CONFIG_PROGRAMS |
		       VX_HAS_TURBO_JSON | VX_HAS_TURBO_JSONC,
};

enum vx_ws_kind { VX_WS_SINGLE, VX_WS_NPM, VX_WS_YARN, VX_WS_PNPM, VX_WS_BUN };

/* The package manager whose way of running scripts counts. */
enum vx_pm { VX_PM_NPM, VX_PM_YARN_1, VX_PM_YARN, VX_PM_PNPM, VX_PM_BUN };

struct vx_manager {
	enum vx_pm pm;
	const char *version;      /* of `packageManager`; NULL when it does not say */
	bool runs_around;         /* pre and post scripts */
	bool pnp;                 /* Plug'n'Play: scripts find nothing unless Yarn runs them */
	const char *shell;        /* script-shell; NULL: sh */
	const char *node_options; /* node-options: their NODE_OPTIONS; NULL: as vx has it */
};

struct vx_ws_settings {
	const char *concurrency; /* "4", "50%"; NULL not given */
	const char *cache_dir;   /* as written; NULL not given */
	bool shared_store;
	int64_t timeout_ms; /* -1 not given */
	const char *retention_older_than, *retention_max_size;
	const char *affected_base;
	/* rules; both default true, false under turbo.json */
	bool exclusive_outputs, upfront_keys;
	struct vx_strs global_files, global_env, global_pass_through; /* turbo.json's globals */
	/* tasks come from turbo.json */
	bool turbo;
};

struct vx_workspace {
	const char *root; /* canonical, absolute */
	enum vx_ws_kind kind;
	struct vx_project *projects;
	uint32_t n_projects;
	/* VX_MAP_NONE when the root is not one (it needs a name; without tasks nothing selects
	 * it) */
	uint32_t root_project;
	uint32_t root_files;              /* enum vx_dir_files of the root directory */
	const struct vx_kv *root_scripts; /* of the root manifest, project or not */
	uint32_t n_root_scripts;
	struct vx_map by_name; /* name -> project; "//" too when there is a root project */
	struct vx_map by_dir;  /* directory -> project */
	struct vx_manager manager;
	struct vx_ws_settings settings;
	/* vx_wsglob patterns (`!` subtracts): a directory that they match is a member, or becomes
	 * one with a manifest */
	struct vx_strs members;
	/* a sandboxed task may write outside of its project */
	bool outward_writes;
	struct vx_strs warnings; /* one line each, said once at the start of a run */
};

struct vx_task {
	const char *id; /* "project#task"; "//#task" for the root project */
	uint32_t project;
	const struct vx_task_decl *decl;
	const uint32_t *deps; /* direct upstream tasks, declaration order, unique */
	uint32_t n_deps;
	const uint32_t *dependents;
	uint32_t n_dependents;
	/* those of deps whose keys this key folds (inputs.tasks); all of deps by default */
	const uint32_t *key_deps;
	uint32_t n_key_deps;
	/* Projects that a `^name` of dependsOn passes through, since they declare no such task:
	 * their files are in the key. Sorted, unique. */
	uint32_t n_passed;
	const uint32_t *passed;
	bool requested;
	/* --exclude-dependencies: keyed as ever, since keys downstream fold it, but never probed,
	 * restored or run */
	bool excluded;
};

struct vx_graph {
	struct vx_task *tasks; /* project order, then declaration order */
	uint32_t n_tasks;
	const uint32_t *topo; /* upstream first */
};

/* Runs nothing: has no exec, or is kept out by --exclude-dependencies. (Its key is another matter:
 * that of an excluded task is a task's.) */
static inline bool vx_task_is_group(const struct vx_task *t)
{
	return !t->decl->has_exec || t->excluded;
}

#endif
