/* Path text and canonical paths.
 *
 * "Lexical" functions look at bytes only. Canonical ones ask the file system. Paths are bytes, at
 * most VX_MAX_PATH with the NUL. */
#ifndef VX_PATH_H
#define VX_PATH_H

#include <stdbool.h>
#include <stddef.h>

struct vx_arena;

/* Lexical. Removes "." and empty components and resolves ".." against what stands before; a leading
 * ".." stays in a relative path. "" and "." give ".". The result lives in the arena. */
char *vx_path_norm(struct vx_arena *a, const char *path);
/* Lexical. `path` against `dir` (an absolute `path` wins), normalised. */
char *vx_path_join(struct vx_arena *a, const char *dir, const char *path);
/* Lexical: path is `dir` or lies below it. Both normalised and either both absolute or both
 * relative ("." holds every relative path). */
bool vx_path_within(const char *path, const char *dir);
/* Lexical: what remains of `path` below `dir`: "" for dir itself, NULL when outside. Points into
 * `path`. */
const char *vx_path_below(const char *path, const char *dir);
/* Lexical: relative path that leads from directory `from` to `to` (both absolute or both relative
 * to one root, normalised). */
char *vx_path_relative(struct vx_arena *a, const char *from, const char *to);
const char *vx_path_base(const char *path); /* after the last '/'; points into path */
char *vx_path_dir(struct vx_arena *a, const char *path);

/* Canonical absolute path: links resolved. Of a missing path: the canonical form of its longest
 * existing ancestor, then the rest; a dangling link is judged by its target. -ELOOP, -ENAMETOOLONG,
 * -EACCES. */
int vx_path_canon(struct vx_arena *a, const char *path, char **ret);

#endif
