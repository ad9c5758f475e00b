/* What a run remembers for the next about the worktree: the listing of each directory and the ids
 * of files that the index could not vouch for.
 *
 * A directory's memory saves its listing, never the stats of its files, and holds while the
 * directory's inode, mtime and ctime are what they were and were old enough when it was listed. An
 * id holds while its file's stat does. Both are blobs in a format of this build alone (a magic with
 * a version); what does not parse is no memory. Loaded memories are immutable; any thread may look
 * things up. */
#ifndef VX_DIRCACHE_H
#define VX_DIRCACHE_H

#include "files.h"

#include "vx/worktree.h"

struct vx_dir_memory {
	struct vx_fstat st;
	uint32_t n_names, bytes;
	const char *names; /* n_names times: a type (DT_...) as one byte, the name, a NUL */
	uint32_t has;      /* VX_DIR_..., of what this run lists; not kept */
};
#define VX_DIR_IGNORE 1U /* a .gitignore that is no link */
#define VX_DIR_ATTRS 2U  /* the same of .gitattributes */
#define VX_DIR_GIT 4U    /* something named .git */
#define VX_DIR_BELOW 8U  /* directories, or what may be one */

struct vx_wtmem;

/* never NULL; empty where there is none */
struct vx_wtmem *vx_wtmem_load(const struct vx_key_memory *m, const char *root, struct vx_arena *a);
void vx_wtmem_free(struct vx_wtmem *m);
bool vx_wtmem_dir(
	const struct vx_wtmem *m, const char *path, size_t len, struct vx_dir_memory *ret);
bool vx_wtmem_id(const struct vx_wtmem *m, const char *path, size_t len, enum vx_oid_kind kind,
	const struct vx_fstat *st, struct vx_oid *ret);

/* Where there were files of attributes (a sum, see vx_scan_place), and up to when a file must have
 * been written for the index's id of it to be doubted. */
struct vx_wtmem_attrs {
	uint64_t places, distrust_ns;
};
/* false: there is no memory */
bool vx_wtmem_attrs(const struct vx_wtmem *m, struct vx_wtmem_attrs *ret);

/* Building the next one. Paths need not be in order. */
struct vx_wtmem_writer;
struct vx_wtmem_writer *vx_wtmem_writer_new(void);
void vx_wtmem_writer_free(struct vx_wtmem_writer *w);
void vx_wtmem_add_dir(struct vx_wtmem_writer *w, const char *path, const struct vx_dir_memory *d);
void vx_wtmem_add_id(struct vx_wtmem_writer *w, const struct vx_file *f);
void vx_wtmem_set_attrs(struct vx_wtmem_writer *w, const struct vx_wtmem_attrs *a);
/* A directory was listed that could not be added (too young, or not to be read): what is there is
 * not all. */
void vx_wtmem_not_all(struct vx_wtmem_writer *w);
/* Every directory, until `each` returns false. False also when they are not all. */
bool vx_wtmem_each_dir(const struct vx_wtmem_writer *w,
	bool (*each)(void *arg, const char *path, const struct vx_dir_memory *d), void *arg);
/* The directories of a writer as they are now, to be looked up while the run lasts, from any
 * thread; names and paths stay the writer's. */
struct vx_wtseen;
struct vx_wtseen *vx_wtmem_seen_new(const struct vx_wtmem_writer *w);
void vx_wtmem_seen_free(struct vx_wtseen *s);
bool vx_wtmem_seen_dir(const struct vx_wtseen *s, const char *path, struct vx_dir_memory *ret);
/* Would storing change nothing? */
bool vx_wtmem_same(const struct vx_wtmem *m, const struct vx_wtmem_writer *w);
int vx_wtmem_store(struct vx_wtmem_writer *w, const struct vx_key_memory *m, const char *root);

#endif
