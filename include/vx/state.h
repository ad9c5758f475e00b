/* What vx keeps for itself: <root>/.vx, and a store.
 *
 * A repository, an archive or an earlier task may have been there before us, so nothing in them is
 * taken at its word. Paths are opened by descriptor and pass no link; a link, or a directory of
 * another user, is refused by name. Records that a later run acts on (journals, lists of
 * placeholders) or believes (plan, unchanged, evaluations) are bound to a secret in .vx/key. The
 * file is a secret only of the inode that it was made as: a copy of it, out of a clone or an
 * archive, is none, so neither can bring a record that is believed. Losing the key costs what the
 * records would have spared, no more. */
#ifndef VX_STATE_H
#define VX_STATE_H

#include "vx/hash.h"

#include <stdbool.h>
#include <sys/types.h>

struct vx_err;

/* openat2(2) with RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS, never waiting for a FIFO's other
 * end. -ELOOP: a link stands somewhere on the way. */
int vx_state_open(int dirfd, const char *path, int flags, mode_t mode);

/* Opens <root>/.vx; `make`: it and its .gitignore are made when absent. -ELOOP a link, -ENOTDIR no
 * directory, -EUCLEAN another user's (neither ours, nor root's, nor the workspace's owner's). */
int vx_state_dir(int root_fd, bool make);
/* May a directory of this owner be ours? */
bool vx_state_owner_ok(uid_t owner, int root_fd);
/* Fills err for one of those three codes: names what stands in the way along the absolute path
 * `dir`, and how to mend it. Returns r. */
int vx_state_refuse(struct vx_err *err, int r, const char *dir);

/* The secret of a .vx, made when absent. -ENOENT: there is none and it is not to be made;
 * -EOPNOTSUPP: the file system does not say when a file was born. */
int vx_state_key(int vx_fd, bool make, struct vx_digest *ret);
/* Binds a digest to the secret of <root>/.vx. */
int vx_state_bind(const char *root, bool make, struct vx_digest *d);

#endif
