/* Which package manager runs the scripts, and how. The facts are those of npm 11, pnpm 6 to 12,
 * Yarn 1 and 4 and bun 1.4, measured; docs/running.md, "Package scripts". */
#include "manifest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int vx_root_text(const struct vx_base_dir *base, const char *rel, struct vx_buf *b, bool *ret_found,
	struct vx_err *err)
{
	vx_buf_clear(b);
	int r = vx_seen_read(base, rel, b);
	*ret_found = r == 0;
	if (r == 0 || r == -ENOENT)
		return 0;
	const char *slash = strcmp(base->path, "/") == 0 ? "" : "/";
	if (r == -EFBIG)
		return vx_err_set(err, r,
			"%s%s%s: larger than %u bytes, the most a configuration file may have",
			base->path, slash, rel, VX_MAX_CONFIG_BYTES);
	return vx_err_set(err, r, "cannot read %s%s%s: %s", base->path, slash, rel,
		r == -EINVAL ? "not a regular file" : vx_strerror(r));
}

const char *vx_npmrc_value(const char *text, const char *key, struct vx_arena *a)
{
	size_t n = strlen(key);
	const char *answer = NULL;

	/* the last one counts, as in npm's ini */
	while (text && *text) {
		const char *end = text + strcspn(text, "\r\n"), *p = text + strspn(text, " \t");
		if ((size_t)(end - p) > n && strncmp(p, key, n) == 0) {
			p += n;
			p += strspn(p, " \t");
			if (*p == '=') {
				p++;
				p += strspn(p, " \t\"'");
				const char *e = p;
				while (e < end && !strchr("\"';#", *e))
					e++;
				while (e > p && (e[-1] == ' ' || e[-1] == '\t'))
					e--;
				answer = vx_arena_strndup(a, p, (size_t)(e - p));
			}
		}
		text = end + strspn(end, "\r\n");
	}
	return answer;
}

int vx_pnpm_major(const struct vx_base_dir *base, const char *package_manager, uint32_t files,
	int *ret, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	bool found;

	*ret = 0;
	if (package_manager && vx_starts_with(package_manager, "pnpm@")) {
		*ret = atoi(package_manager + 5);
		return 0;
	}
	if (!(files & VX_HAS_PNPM_LOCK))
		return 0;
	int r = vx_root_text(base, "pnpm-lock.yaml", &b, &found, err);
	const char *v = r == 0 ? strstr(vx_buf_str(&b), "lockfileVersion:") : NULL;
	if (v)
		*ret = atoi(v + 16 + strspn(v + 16, " '\""));
	vx_buf_free(&b);
	return r;
}

/* Yarn from 2 on. Where nothing tells, its lockfile does: the first one of Yarn 1 was no YAML. */
static int is_berry(
	const struct vx_base_dir *base, const struct vx_pm_facts *f, bool *ret, struct vx_err *err)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	bool found;
	int r = 0;

	*ret = true;
	if (f->package_manager && vx_starts_with(f->package_manager, "yarn@")) {
		const char *v = f->package_manager + 5;
		*ret = strcmp(v, "0") != 0 && !vx_starts_with(v, "0.") &&
		       !vx_starts_with(v, "1.") && strcmp(v, "1") != 0;
	} else if (!(f->files & (VX_HAS_YARNRC_YML | VX_HAS_YARN_LOCK))) {
		*ret = false;
	} else if (!(f->files & VX_HAS_YARNRC_YML)) {
		r = vx_root_text(base, "yarn.lock", &b, &found, err);
		*ret = r == 0 && strstr(vx_buf_str(&b), "__metadata:");
		vx_buf_free(&b);
	}
	return r;
}

static int pm_of(const struct vx_base_dir *base, const struct vx_pm_facts *f, enum vx_pm *ret,
	struct vx_err *err)
{
	const char *pm = f->package_manager ? f->package_manager : "";
	bool berry = false;
	int r = 0;

	if (vx_starts_with(pm, "npm@"))
		*ret = VX_PM_NPM;
	else if (vx_starts_with(pm, "pnpm@"))
		*ret = VX_PM_PNPM;
	else if (vx_starts_with(pm, "bun@"))
		*ret = VX_PM_BUN;
	else if (vx_starts_with(pm, "yarn@"))
		*ret = VX_PM_YARN;
	else if (f->files & (VX_HAS_PNPM_WORKSPACE | VX_HAS_PNPM_LOCK))
		*ret = VX_PM_PNPM;
	else if (f->files & VX_HAS_BUN_LOCK)
		*ret = VX_PM_BUN;
	else
		*ret = f->files & VX_HAS_YARN_LOCK ? VX_PM_YARN : VX_PM_NPM;
	if (*ret == VX_PM_YARN)
		r = is_berry(base, f, &berry, err);
	if (*ret == VX_PM_YARN && !berry)
		*ret = VX_PM_YARN_1;
	return r;
}

/* "npm@10.0.0+sha512.abc" -> "10.0.0" */
static const char *version_of(const char *package_manager, struct vx_arena *a)
{
	const char *at = package_manager ? strchr(package_manager, '@') : NULL;

	return at && at[1] >= '0' && at[1] <= '9'
		       ? vx_arena_strndup(a, at + 1, strcspn(at + 1, "+ "))
		       : NULL;
}

/* Settings stand in pnpm-workspace.yaml from 10 on, in .npmrc up to 10. */
static int pnpm_rules(const struct vx_base_dir *base, const struct vx_pm_facts *f,
	struct vx_arena *a, struct vx_manager *m, struct vx_err *err)
{
	int around = f->pnpm->enable_pre_post, major = 0;
	int r = vx_pnpm_major(base, f->package_manager, f->files, &major, err);
	bool yaml = major == 0 || major >= 9, npmrc = major <= 10;
	const char *v = npmrc ? vx_npmrc_value(f->npmrc, "enable-pre-post-scripts", a) : NULL;

	if (!yaml || around < 0)
		around = v ? strcmp(v, "false") != 0 : major == 0 || major >= 9;
	m->runs_around = around > 0;
	if (yaml && f->pnpm->script_shell)
		m->shell = vx_arena_strdup(a, f->pnpm->script_shell);
	if (yaml && f->pnpm->node_options)
		m->node_options = vx_arena_strdup(a, f->pnpm->node_options);
	if (!m->node_options && npmrc)
		m->node_options = vx_npmrc_value(f->npmrc, "node-options", a);
	if (!m->shell && npmrc)
		m->shell = vx_npmrc_value(f->npmrc, "script-shell", a);
	return r;
}

/* Yarn links packages by Plug'n'Play unless told otherwise; where it is not told, what it left
 * tells. */
static int yarn_rules(const struct vx_base_dir *base, const struct vx_pm_facts *f,
	struct vx_manager *m, struct vx_err *err)
{
	struct vx_arena scratch = {0};
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	const char *linker = NULL;
	bool found;
	int r = 0;

	if (f->files & VX_HAS_YARNRC_YML) {
		r = vx_root_text(base, ".yarnrc.yml", &b, &found, err);
		if (r == 0 && found)
			r = vx_yaml_scalar(vx_buf_str(&b), b.len, ".yarnrc.yml", "nodeLinker",
				&scratch, &linker, err);
	}
	m->pnp = linker ? strcmp(linker, "pnp") == 0 : (f->files & VX_HAS_PNP) != 0;
	vx_buf_free(&b);
	vx_arena_free(&scratch);
	return r;
}

int vx_manager_of(const struct vx_base_dir *base, const struct vx_pm_facts *f, struct vx_arena *a,
	struct vx_manager *ret, struct vx_err *err)
{
	struct vx_manager m = {.version = version_of(f->package_manager, a)};
	const char *v;
	int r = pm_of(base, f, &m.pm, err);

	switch (r < 0 ? VX_PM_NPM : m.pm) {
	case VX_PM_NPM:
		/* it runs the script that it was asked for all the same */
		v = vx_npmrc_value(f->npmrc, "ignore-scripts", a);
		m.runs_around = !v || strcmp(v, "true") != 0;
		m.shell = vx_npmrc_value(f->npmrc, "script-shell", a);
		m.node_options = vx_npmrc_value(f->npmrc, "node-options", a);
		break;
	case VX_PM_YARN_1:
		m.runs_around = true;
		m.pnp = (f->files & VX_HAS_PNP) && !(f->files & VX_HAS_YARNRC_YML);
		m.shell = vx_npmrc_value(f->npmrc, "script-shell", a);
		break;
	case VX_PM_YARN:
		r = yarn_rules(base, f, &m, err);
		break;
	case VX_PM_PNPM:
		r = pnpm_rules(base, f, a, &m, err);
		break;
	case VX_PM_BUN:
		m.runs_around = true;
		break;
	}
	if (m.shell && !*m.shell)
		m.shell = NULL;
	*ret = m;
	return r;
}
