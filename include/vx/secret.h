/* Values that are secret, and their masking.
 *
 * Secret is the value of a variable whose name holds TOKEN, SECRET, KEY, PASSWORD, PASSWD or
 * CREDENTIAL (in any case) or is declared so (exec.env.secret), when it has six bytes or more. What
 * is hidden is the value without newlines at its end, each of its lines when it has several, and
 * each of these as JSON, HTML, a URL and a quoted shell word spell it. Masks that overlap in a text
 * are hidden as one.
 *
 * The process has one set: every variable of its environment, and what the configurations of the
 * workspace declare, whichever task does. vx_text_* and vx_text_json mask with it, and so does the
 * log of every task: what one of them was given another may come to print. So every line and every
 * file that a run leaves is masked. The set grows while the plan is made, by one thread; afterwards
 * any thread may read it. */
#ifndef VX_SECRET_H
#define VX_SECRET_H

#include "vx/strs.h"

struct vx_buf;
struct vx_masks;

#define VX_MASK_MIN_BYTES 6
#define VX_MASK_TEXT "***"

/* A set: of variables of `env` ("NAME=value"). Immutable; shared by many logs. */
struct vx_masks *vx_masks_new(struct vx_strs env, struct vx_strs secret);
void vx_masks_free(struct vx_masks *m);
/* Where the next mask is, over chunk borders; for the task log. Does a mask begin at p[0]? Returns
 * the length of the longest that is all there (0 none). *ret_partial: a longer one may, the bytes
 * end too early to tell. */
size_t vx_masks_at(const struct vx_masks *m, const uint8_t *p, size_t n, bool *ret_partial);
/* The number of leading bytes of p that begin no mask. */
size_t vx_masks_skip(const struct vx_masks *m, const uint8_t *p, size_t n);
bool vx_masks_none(const struct vx_masks *m);

/* Is a variable of this name secret? */
bool vx_secret_name(const char *name, size_t n, struct vx_strs declared);

/* The process's own set. Learning is cumulative; `env` as above. */
void vx_secrets_learn(struct vx_strs env, struct vx_strs declared);
/* Appends s with every secret value replaced. */
void vx_secrets_mask(struct vx_buf *out, const char *s, size_t n);
bool vx_secrets_in(const char *s, size_t n);
/* The set itself, for logs. */
const struct vx_masks *vx_secrets(void);
/* The set holds nothing: most machines. */
bool vx_secrets_none(void);

#endif
