#include "fstat.h"

#define TICK_NS 20000000U
#define COARSE_TICK_NS 2000000000U

uint32_t vx_git_mode(mode_t m, bool trust_exec)
{
	if (S_ISLNK(m))
		return 0120000;
	if (!S_ISREG(m))
		return 0;
	return trust_exec && (m & S_IXUSR) ? 0100755 : 0100644;
}

static uint64_t ns_of(struct timespec t)
{
	return (uint64_t)t.tv_sec * 1000000000U + (uint64_t)t.tv_nsec;
}

void vx_fstat_of(const struct stat *st, struct vx_fstat *ret)
{
	ret->size = (uint64_t)st->st_size;
	ret->mtime_ns = ns_of(st->st_mtim);
	ret->ctime_ns = ns_of(st->st_ctim);
	ret->ino = st->st_ino;
	ret->dev = st->st_dev;
}

bool vx_fstat_equal(const struct vx_fstat *a, const struct vx_fstat *b)
{
	return a->size == b->size && a->mtime_ns == b->mtime_ns && a->ctime_ns == b->ctime_ns &&
	       a->ino == b->ino && a->dev == b->dev;
}

bool vx_fstat_racy(const struct vx_fstat *st, uint64_t looked_ns)
{
	bool coarse = st->mtime_ns % 1000000000U == 0 && st->ctime_ns % 1000000000U == 0;
	uint64_t newest = st->mtime_ns > st->ctime_ns ? st->mtime_ns : st->ctime_ns;
	return newest + (coarse ? COARSE_TICK_NS : TICK_NS) >= looked_ns;
}
