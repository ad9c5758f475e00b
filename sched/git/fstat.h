/* What a stat says of a file, as far as it can prove that the file is the same. */
#ifndef VX_GIT_FSTAT_H
#define VX_GIT_FSTAT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

struct vx_fstat {
	uint64_t size, mtime_ns, ctime_ns, ino, dev;
};

uint32_t vx_git_mode(mode_t m, bool trust_exec); /* 0 for what git does not hold */
void vx_fstat_of(const struct stat *st, struct vx_fstat *ret);
bool vx_fstat_equal(const struct vx_fstat *a, const struct vx_fstat *b);
/* Could the file have changed after the look without its stat showing it? Time stamps move in ticks
 * (4 ms and less; 2 s where no fraction is kept). */
bool vx_fstat_racy(const struct vx_fstat *st, uint64_t looked_ns);

#endif
