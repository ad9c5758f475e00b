/* Inside the workspace module: package.json and pnpm-workspace.yaml, parsed. Everything lives in
 * the arena given. */
#ifndef VX_MANIFEST_H
#define VX_MANIFEST_H

#include "vx/buf.h"
#include "vx/facts.h"
#include "vx/plan.h"

struct vx_arena;
struct vx_err;

struct vx_dep_spec {
	const char *name, *spec;
	bool peer;
};

/* A named version of a catalog: `catalog` is "default" for the unnamed one. */
struct vx_catalog_entry {
	const char *catalog, *name, *spec;
};

struct vx_manifest {
	const char *name, *version, *package_manager; /* NULL when not given */
	const struct vx_kv *scripts;
	uint32_t n_scripts;
	/* dependencies, devDependencies, optionalDependencies, peerDependencies; manifest order
	 * within each */
	const struct vx_dep_spec *deps;
	uint32_t n_deps;
	bool has_workspaces;
	struct vx_strs workspaces;
	const struct vx_catalog_entry *catalogs; /* Bun's, in the root manifest */
	uint32_t n_catalogs;
};

/* Strings that outlive planning (name, version, scripts) go to `keep`, the rest to `scratch`. */
int vx_manifest_parse(const char *text, size_t n, const char *where, struct vx_arena *keep,
	struct vx_arena *scratch, struct vx_manifest *ret, struct vx_err *err);

/* framework.c: the variables (names with `*`) of the framework that a package is built with, which
 * no package of the workspace is. `p`: that package, with its edges. Static; none where no
 * framework is known. */
struct vx_project;
struct vx_workspace;
struct vx_strs vx_framework_env(
	const struct vx_manifest *m, const struct vx_workspace *ws, const struct vx_project *p);

struct vx_pnpm_workspace {
	struct vx_strs packages;
	int link_workspace_packages, enable_pre_post; /* -1 not given, 0, 1 */
	const char *script_shell, *node_options;      /* NULL not given */
	const struct vx_catalog_entry *catalogs;
	uint32_t n_catalogs;
};

#define VX_PNPM_NONE                                                 \
	(struct vx_pnpm_workspace)                                   \
	{                                                            \
		.link_workspace_packages = -1, .enable_pre_post = -1 \
	}

int vx_pnpm_parse(const char *text, size_t n, const char *where, struct vx_arena *a,
	struct vx_pnpm_workspace *ret, struct vx_err *err);

/* One top-level scalar of a YAML mapping (.yarnrc.yml); *ret is NULL when it is not there. */
int vx_yaml_scalar(const char *text, size_t n, const char *where, const char *key,
	struct vx_arena *a, const char **ret, struct vx_err *err);

/* manager.c */

/* A file of the root directory; 0 and *ret_found false when it is not there. */
int vx_root_text(const struct vx_base_dir *base, const char *rel, struct vx_buf *b, bool *ret_found,
	struct vx_err *err);
/* The value of a key of an .npmrc; NULL: it has none. `text` may be NULL. */
const char *vx_npmrc_value(const char *text, const char *key, struct vx_arena *a);
/* Of `packageManager`, else of the lockfile; 0: nothing tells. */
int vx_pnpm_major(const struct vx_base_dir *base, const char *package_manager, uint32_t files,
	int *ret, struct vx_err *err);

struct vx_pm_facts {
	const char *package_manager; /* of the root manifest; NULL not given */
	uint32_t files;              /* enum vx_dir_files of the root */
	const char *npmrc;           /* its text; NULL: there is none */
	const struct vx_pnpm_workspace *pnpm;
};
int vx_manager_of(const struct vx_base_dir *base, const struct vx_pm_facts *f, struct vx_arena *a,
	struct vx_manager *ret, struct vx_err *err);

#endif
