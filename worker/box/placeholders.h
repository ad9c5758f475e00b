/* Placeholders: what is made on the host so that a write grant has something to bind; its sweep;
 * and the record of an attempt, which says what is to be looked at when nobody lives to do it.
 *
 * Before anything is made it is written down in record_dir, in a file of this box host's that stays
 * locked (flock) while the host lives: filled while an attempt is under way, empty in between,
 * removed in the end. Whoever finds a record that nobody locks sweeps the placeholders, and looks
 * for names that no task may make (denies.h): one that has appeared is said and never removed, for
 * a person may have made it since. Every path is opened below `root_fd` without following links.
 *
 * A record: "vx-sweep 2\n", a line by which it is told to be ours (bound to .vx/key: any other one
 * leads to nothing), then items, each a tag, text and NUL: 'f' or 'd' a placeholder, in order of
 * creation; of the look 'w' the workspace, 'c' "1" with gitConfig, 'm' members, 'p' what
 * allow.protected admits, 'k' names that were there, 'i' directories to look through. */
#ifndef VX_PLACEHOLDERS_H
#define VX_PLACEHOLDERS_H

#include "vx/sandbox.h"

struct vx_buf;
struct vx_err;

/* One per box host. */
struct place_record {
	int fd, dir_fd;
	char name[32], head[256];
	size_t head_n;
};

#define PLACE_RECORD_INIT ((struct place_record){.fd = -1, .dir_fd = -1})

struct place_set {
	int root_fd;
	const struct vx_placeholder *v; /* the request's */
	uint32_t n;
	bool *made; /* n, malloc'ed: those that we made, not found */
};

#define PLACE_SET_INIT ((struct place_set){.root_fd = -1})

/* On failure nothing is left. -errno with a text that names the grant; -EPERM where an attempt of
 * an earlier host was cut short and left what no task may make. */
int place_make(struct place_set *p, struct place_record *rec, int root_fd, const char *record_dir,
	const struct vx_sbx_request *r, struct vx_err *err);
/* Removes what is untouched; `untouched` (may be NULL) is told the file grants that named nothing,
 * one line each. Idempotent. */
void place_sweep(struct place_set *p, struct vx_buf *untouched);
/* The attempt has been swept and looked through. */
void place_record_clear(struct place_record *rec);
void place_record_close(struct place_record *rec); /* the host ends */

#endif
