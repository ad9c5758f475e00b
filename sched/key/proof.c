/* Facts, kept and tested. See proof.h. */
#include "proof.h"

#include "../worktree/files.h"

#include "vx/buf.h"
#include "vx/fd.h"
#include "vx/limits.h"
#include "vx/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

bool vx_fact_sane(const char *at, const char *end)
{
	const struct vx_fact *f = (const void *)at;
	return (size_t)(end - at) >= sizeof *f && f->total % 8 == 0 &&
	       f->total <= (size_t)(end - at) &&
	       sizeof *f + (uint64_t)f->path_len + f->target_len + 2 <= f->total &&
	       vx_fact_path(f)[f->path_len] == 0 &&
	       vx_fact_path(f)[f->path_len + 1 + f->target_len] == 0 && f->kind <= VX_SEEN_NAMES;
}

/* `now`: its stat in front of that. Should it change again while it is listed, it will have another
 * stat than this. */
static bool has_names(
	const struct vx_fact *f, const struct vx_seen_stat *now, struct vx_seen_stat *ret_now)
{
	uint32_t names;
	if (now->dev != f->st.dev || now->ino != f->st.ino || now->mode != f->st.mode ||
		vx_names_in(AT_FDCWD, vx_fact_path(f), vx_dir_file_bit, NULL, &names) < 0 ||
		names != f->names)
		return false;
	if (ret_now)
		*ret_now = *now;
	return true;
}

bool vx_fact_holds(const struct vx_fact *f, struct vx_seen_stat *ret_now)
{
	struct stat st;
	struct vx_seen_stat now;
	if (ret_now)
		*ret_now = f->st;
	int r = f->kind == VX_SEEN_LINK ? lstat(vx_fact_path(f), &st) : stat(vx_fact_path(f), &st);
	if (f->kind == VX_SEEN_ABSENT)
		return r < 0 && (errno == ENOENT || errno == ENOTDIR);
	if (r < 0)
		return false;
	memset(&now, 0, sizeof now);
	vx_seen_stat_of(&st, &now);
	if (memcmp(&now, &f->st, sizeof now) != 0)
		return f->kind == VX_SEEN_NAMES && has_names(f, &now, ret_now);
	char target[VX_MAX_PATH];
	return f->kind != VX_SEEN_LINK ||
	       (vx_readlink(AT_FDCWD, vx_fact_path(f), target, sizeof target) >= 0 &&
		       strcmp(target, vx_fact_path(f) + f->path_len + 1) == 0);
}

void vx_fact_put(struct vx_buf *b, const struct vx_seen *seen)
{
	static const char zero[8];
	struct vx_fact f;
	memset(&f, 0, sizeof f);
	f.st = seen->st;
	f.kind = seen->kind;
	f.names = seen->names;
	f.path_len = (uint32_t)strlen(seen->path);
	f.target_len = seen->target ? (uint32_t)strlen(seen->target) : 0;
	size_t n = sizeof f + f.path_len + f.target_len + 2;
	f.total = (uint32_t)((n + 7) & ~(size_t)7);
	vx_buf_add(b, &f, sizeof f);
	vx_buf_add(b, seen->path, f.path_len + 1);
	vx_buf_add(b, seen->target ? seen->target : "", f.target_len + 1);
	vx_buf_add(b, zero, f.total - n);
}

void vx_fact_forget_stat(struct vx_fact *f)
{
	f->st.ctime_s = INT64_MIN;
}

bool vx_fact_young(const struct vx_seen *seen, uint64_t started_ns)
{
	struct vx_fstat st = {
		.mtime_ns = (uint64_t)seen->st.mtime_s * 1000000000U + seen->st.mtime_ns,
		.ctime_ns = (uint64_t)seen->st.ctime_s * 1000000000U + seen->st.ctime_ns};
	return seen->kind != VX_SEEN_ABSENT && vx_fstat_racy(&st, started_ns);
}
