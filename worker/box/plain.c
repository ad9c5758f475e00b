/* Where only bubblewrap may make user namespaces (its AppArmor profile on Ubuntu 24.04): the whole
 * request as its arguments. Slower, bounded by VX_MAX_BWRAP_ARGS, and paths are resolved by
 * bubblewrap; what is enforced is the same. */
#include "host.h"

#include "vx/err.h"
#include "vx/fd.h"
#include "vx/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

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
	if (!r->pty)
		tmpfs(&a, "/dev/pts", 0755);
	for (uint32_t i = 0; i < r->n_mounts; i++) {
		const struct vx_mount *m = &r->mounts[i];
		if (!shown && m->why != VX_WHY_BASE && m->why != VX_WHY_WALL &&
			m->why != VX_WHY_SOCKET) {
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
	add(&a, "--remount-ro");
	add(&a, "/dev");
	if (a.n > VX_MAX_BWRAP_ARGS) {
		vx_err_set(err, -E2BIG,
			"sandbox: this needs %u arguments of bubblewrap, more than VX_MAX_BWRAP_ARGS (%u)",
			a.n, VX_MAX_BWRAP_ARGS);
		return vx_err_fix(
			err, "grant whole directories, or allow user namespaces to vx itself");
	}
	return 0;
}

static int look(struct host *h, const struct vx_mount *m, struct vx_init_check *ret)
{
	struct stat st;
	int r, fd = vx_open_beneath(h->root_fd, m->source + 1, O_PATH | O_NOFOLLOW, 0);

	if (fd < 0)
		return fd;
	r = fstat(fd, &st) < 0 ? -errno : S_ISDIR(st.st_mode) != m->source_is_dir ? -ESTALE : 0;
	*ret = (struct vx_init_check){
		.ino = st.st_ino, .dev_major = major(st.st_dev), .dev_minor = minor(st.st_dev)};
	vx_close(fd);
	return r;
}

int plain_checks(struct host *h, struct vx_err *err)
{
	const struct vx_sbx_request *r = &h->at.r;
	struct vx_buf b = VX_BUF(BOX_MAX_REQUEST);
	struct vx_init_checks head = {.magic = VX_INIT_MAGIC};
	struct vx_init_check *v = vx_xcalloc(r->n_mounts + 1, sizeof *v);
	const char **path = vx_xcalloc(r->n_mounts + 1, sizeof *path);
	int res = 0, fd = -1;

	for (uint32_t i = 0; i < r->n_mounts && res == 0; i++) {
		if (r->mounts[i].kind != VX_MNT_BIND)
			continue;
		res = look(h, &r->mounts[i], &v[head.count]);
		if (res < 0)
			vx_err_set(err, res, "sandbox: cannot bind %s: %s", r->mounts[i].source,
				res == -ELOOP || res == -ESTALE
					? "it was replaced while the sandbox was built"
					: vx_strerror(res));
		path[head.count++] = r->mounts[i].target;
	}
	uint32_t at = (uint32_t)(sizeof head + head.count * sizeof *v);
	for (uint32_t i = 0; i < head.count; i++) {
		v[i].path = at;
		at += (uint32_t)strlen(path[i]) + 1;
	}
	vx_buf_add(&b, &head, sizeof head);
	vx_buf_add(&b, v, head.count * sizeof *v);
	for (uint32_t i = 0; i < head.count; i++)
		vx_buf_add(&b, path[i], strlen(path[i]) + 1);
	if (res == 0) {
		res = fd = b.overflow ? -E2BIG : vx_memfd("vx-checks");
		if (res >= 0)
			res = vx_write_full(fd, vx_buf_str(&b), b.len);
		if (res < 0)
			vx_err_set(err, res, "sandbox: cannot write down what is to be bound: %s",
				vx_strerror(res));
	}
	vx_buf_free(&b);
	free(v);
	free(path);
	if (res < 0)
		vx_close(fd);
	return res < 0 ? res : fd;
}
