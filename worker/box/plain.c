/* Where only bubblewrap may make user namespaces (its AppArmor profile on Ubuntu 24.04): the whole request as its arguments. Slower, bounded by
 * VX_MAX_BWRAP_ARGS, and paths are resolved by bubblewrap; what is enforced is the same. */
#include "host.h"

#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct args {
	struct vx_buf *b;
	uint32_t n;
};

static void add(struct args *a, const char *s)
{
	vx_buf_add(a->b, s, strlen(s) + 1);
	a->n++;
}

static void add3(struct args *a, const char *option, const char *x, const char *y)
{
	add(a, option);
	add(a, x);
	add(a, y);
}

static void tmpfs(struct args *a, const char *target, mode_t mode)
{
	char perms[16];

	snprintf(perms, sizeof perms, "%04o", (unsigned)mode);
	add(a, "--perms");
	add(a, perms);
	add(a, "--tmpfs");
	add(a, target);
}

static void skeleton(struct args *a, const struct vx_sbx_request *r)
{
	for (uint32_t i = 0; i < r->n_skeleton; i++) {
		if (r->skeleton[i].link_target) {
			add3(a, "--symlink", r->skeleton[i].link_target, r->skeleton[i].path);
		} else {
			add(a, "--dir");
			add(a, r->skeleton[i].path);
		}
	}
}

static void one_mount(struct args *a, const struct vx_mount *m)
{
	switch (m->kind) {
	case VX_MNT_TMPFS:
		tmpfs(a, m->target, m->mode);
		break;
	case VX_MNT_BIND:
		add3(a, m->writable ? "--bind" : "--ro-bind", m->source, m->target);
		break;
	case VX_MNT_HIDE_FILE:
		add3(a, "--ro-bind", "/dev/null", m->target);
		break;
	case VX_MNT_HIDE_DIR:
		tmpfs(a, m->target, 0755);
		break;
	case VX_MNT_DEVICE:
		add3(a, "--dev-bind", m->source, m->target);
		break;
	}
}

int plain_args(struct host *h, struct vx_buf *args, struct vx_err *err)
{
	const struct vx_sbx_request *r = &h->at.r;
	struct args a = {.b = args};
	bool shown = false;

	add3(&a, "--ro-bind", "/", "/");
	add(&a, "--dev");
	add(&a, "/dev");
	for (uint32_t i = 0; i < r->n_mounts; i++) {
		const struct vx_mount *m = &r->mounts[i];
		if (!shown && m->why != VX_WHY_BASE && m->why != VX_WHY_WALL && m->why != VX_WHY_SOCKET) {
			skeleton(&a, r);
			shown = true;
		}
		one_mount(&a, m);
	}
	if (!shown)
		skeleton(&a, r);
	for (uint32_t i = 0; i < r->n_mounts; i++) { /* what is empty stays so */
		const struct vx_mount *m = &r->mounts[i];
		if ((m->kind == VX_MNT_TMPFS && !m->writable) || m->kind == VX_MNT_HIDE_DIR) {
			add(&a, "--remount-ro");
			add(&a, m->target);
		}
	}
	if (a.n > VX_MAX_BWRAP_ARGS) {
		vx_err_set(err, -E2BIG, "sandbox: this needs %u arguments of bubblewrap, more than VX_MAX_BWRAP_ARGS (%u)", a.n, VX_MAX_BWRAP_ARGS);
		return vx_err_fix(err, "grant whole directories, or allow user namespaces to vx itself");
	}
	return 0;
}
