/* Files of rules in a worktree (.gitignore, .gitattributes): read without passing through a link,
 * and parsed.
 *
 * With a memo what was parsed is kept while the memo lives and taken again as long as the file's
 * stat is the same and was old enough when it was read; one look at the file is then all. It also
 * knows what the first list of a run found. Rules hang on those of the directories above (`up`), so
 * only what hangs on lasting ones is kept: on the repository's own or on others of the memo. A memo
 * is locked inside: any thread. */
#ifndef VX_GIT_RULEFILE_H
#define VX_GIT_RULEFILE_H

#include "ignore.h"

struct vx_rule_memo;

/* `ignore` and `attrs`: the repository's own rules, which outlive the memo. */
struct vx_rule_memo *vx_rule_memo_new(const struct vx_rules *ignore, const struct vx_rules *attrs);
void vx_rule_memo_free(struct vx_rule_memo *m);

struct vx_rule_file {
	int top_fd;
	const char *dir, *name; /* the directory, relative to top_fd, and the file in it */
	const struct vx_rules *up;
	bool attrs;
};

/* The rules of a file behind those of `up`; `up` alone where there is no such file. `memo` may be
 * NULL; what is not kept lies in `a`. `ret_since_ns` is the file's ctime, 0 where there is none. 0;
 * 1 or -errno: `ret_why` says what is wrong with dir/name. */
int vx_rule_file(const struct vx_rule_file *f, struct vx_rule_memo *memo, struct vx_arena *a,
	const struct vx_rules **ret, uint64_t *ret_since_ns, const char **ret_why);

/* The first list of the run has ended: what is kept from now on is later news. */
void vx_rule_memo_first_done(struct vx_rule_memo *m);
/* Is dir/.gitignore what the first list of the run found, or is still none there? False where that
 * is not certain. */
bool vx_rule_same(struct vx_rule_memo *m, int top_fd, const char *dir);

#endif
