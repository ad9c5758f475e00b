/* What the smaller verbs have in common: -C, --cache-dir, values. */
#include "cli.h"

#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/json.h"
#include "vx/text.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

int vx_cli_chdir(const char *dir, struct vx_err *err)
{
	if (chdir(dir) == 0)
		return 0;
	vx_err_set(err, -errno, "-C %s: %s", dir, vx_strerror(errno));
	return vx_err_fix(err, "name a directory inside the workspace");
}

int vx_cli_value(
	int argc, char **argv, int *i, const char *name, const char **ret, struct vx_err *err)
{
	size_t n = strlen(name);
	if (strncmp(argv[*i], name, n) != 0)
		return 0;
	const char *rest = argv[*i] + n;
	if (*rest == '=' || (*rest && name[1] != '-')) {
		*ret = rest + (*rest == '=');
		return 1;
	}
	if (*rest)
		return 0;
	if (*i + 1 < argc) {
		*ret = argv[++*i];
		return 1;
	}
	vx_err_set(err, -EINVAL, "%s has no value", name);
	return vx_err_fix(err, "vx help %s says which", argv[0]);
}

int vx_cli_flag_only(int argc, char **argv, const char *flag, bool *ret_flag, struct vx_err *err)
{
	for (int i = 1; i < argc; i++) {
		const char *dir = NULL, *unused = NULL;
		int r = vx_cli_value(argc, argv, &i, "-C", &dir, err);
		if (!r)
			/* a global option; these verbs have no use for a cache */
			r = vx_cli_value(argc, argv, &i, "--cache-dir", &unused, err);
		if (r < 0 || (dir && (r = vx_cli_chdir(dir, err)) < 0))
			return r;
		if (r || dir)
			continue;
		if (strcmp(argv[i], flag) != 0) {
			vx_err_set(err, -EINVAL, "\"%.100s\" is no option of this verb", argv[i]);
			return vx_err_fix(err, "vx %s [%s] [-C DIR]", argv[0], flag);
		}
		*ret_flag = true;
	}
	return 0;
}

int vx_cli_fail(const char *verb, const struct vx_err *err)
{
	if (*err->fix)
		vx_say(2, "vx %s: %s (%s)\n", verb, err->what, err->fix);
	else
		vx_say(2, "vx %s: %s\n", verb, err->what);
	return 1;
}

void vx_cli_warn(const char *verb, struct vx_strs warnings)
{
	for (uint32_t i = 0; i < warnings.n; i++)
		vx_say(2, "vx %s: %s\n", verb, warnings.v[i]);
}

void vx_cli_out(const struct vx_buf *made)
{
	(void)vx_write_full(1, vx_buf_str(made), made->len);
}

void vx_cli_json(const struct vx_json *v)
{
	struct vx_buf b = VX_BUF(SIZE_MAX / 4);

	vx_json_write_shown(v, true, &b);
	vx_buf_addc(&b, '\n');
	vx_cli_out(&b);
	vx_buf_free(&b);
}
