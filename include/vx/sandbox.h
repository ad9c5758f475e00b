/* The sandbox request: what a task may touch, as a pure value.
 *
 *   declaration (config)  ->  spec (resolved by the scheduler, travels in the descriptor)
 *   spec + facts          ->  request (mounts, walls, placeholders, environment), by
 *                         vx_sbx_resolve: no system call of its own
 *   request               ->  tree builder and a backend (worker/box)
 *
 * vx_sbx_resolve asks the file system only through struct vx_sbx_facts, so that unit tests drive it
 * with a fake one. It is linked into the scheduler (--dry=full, write reach) and into the worker
 * (the real thing, when the task starts, since read globs expand then). It knows nothing of
 * bubblewrap. The rules are those of docs/sandbox.md. Everything returned lives in the arena passed
 * in. */
#ifndef VX_SANDBOX_H
#define VX_SANDBOX_H

#include "vx/strs.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct vx_arena;
struct vx_err;
struct vx_json;

/* exec.sandbox as written. Lists keep the file's order. Validated at load (hosts, ports,
 * empties). */
struct vx_sbx_decl {
	struct vx_strs read, write;       /* allow.read, allow.write */
	bool net_all, unix_all, bind_all; /* `true` */
	struct vx_strs net_allow, net_deny;
	struct vx_strs unix_paths;
	const uint16_t *bind_ports;
	uint32_t n_bind_ports;
	bool pty, git_config;
	struct vx_strs devices;
	struct vx_strs protect; /* allow.protected */
	struct vx_strs ignore_read, ignore_write, ignore_net;
	bool weaker_when_nested;
};

/* A workspace package that node_modules may link to. */
struct vx_sbx_package {
	const char *name, *dir; /* dir relative to the root */
	/* the task's key folds a task of this project, directly or through upstream keys */
	bool keyed;
	/* the manifests of the task's project or of the root lead to it */
	bool declared;
};

/* What the scheduler knows and a worker cannot find out. */
struct vx_sbx_spec {
	struct vx_sbx_decl decl;
	const char *root;        /* canonical workspace root */
	const char *project_dir; /* relative to the root; "." for the root project */
	/* directories of projects nested in this one, relative to the root */
	struct vx_strs nested;
	/* canonical: the cache directory and whatever else of ours must stay hidden */
	struct vx_strs store_dirs;
	/* members of the workspace of which something is known: the keyed ones when narrow, and
	 * where `written` is not empty the declared ones */
	const struct vx_sbx_package *packages;
	uint32_t n_packages;
	/* patterns over directories (vx/wsglob.h; `!` subtracts): what they match is a member, or
	 * becomes one with a package.json */
	struct vx_strs members;
	/* absolute: what sandboxed tasks of the workspace may write, of that which this task's
	 * grants and dependencies lead through. A link there may be a task's */
	struct vx_strs written;
	/* the task has `cache` and is not persistent: only keyed packages are granted */
	bool narrow;
	const char *home; /* HOME of who started vx; "" none */
	/* "NAME=value" of what moves a credential store (vx_sbx_moves_store): as vx has it, and as
	 * the task defines it */
	struct vx_strs moves;
	/* .vx/sweep: where what was created is written down for the next run's sweep */
	const char *record_dir;
	/* every sandboxed task of the run accepts the nested profile: used where no /proc can be
	 * mounted, and only there */
	bool weaker;
};

/* How the resolver asks about the file system. Every path given is absolute and, its last component
 * aside, free of links (the resolver follows links itself). Return -errno. `self` is passed
 * through. */
enum vx_fact_type { VX_FACT_NONE, VX_FACT_FILE, VX_FACT_DIR, VX_FACT_LINK, VX_FACT_OTHER };
struct vx_sbx_facts {
	void *self;
	/* absent: 0 and NONE */
	int (*lstat)(void *self, const char *path, enum vx_fact_type *ret_type, uid_t *ret_uid,
		mode_t *ret_mode);
	/* names, any order */
	int (*list)(void *self, const char *dir, struct vx_arena *a, struct vx_strs *ret);
	int (*readlink)(void *self, const char *path, struct vx_arena *a, char **ret);
	/* small files: a worktree's .git */
	int (*readfile)(void *self, const char *path, struct vx_arena *a, char **ret);
	/* Every entry below `dir`, a directory before what it holds, in any other order; links are
	 * not followed. `look` (the directory's path; a name; its type) says whether to enter; a
	 * NULL name says that this directory is the one at hand from now on. An absent `dir` is
	 * empty; what belongs to others and may not be read is left out. -EACCES for what may not
	 * be read and is our own (it could be opened by who runs as us), -EFBIG beyond
	 * VX_MAX_FILES, -ELOOP for what is too deep. */
	int (*walk)(void *self, const char *dir,
		bool (*look)(void *arg, const char *dir, const char *name, enum vx_fact_type type),
		void *arg);
	uid_t uid;           /* who runs the task */
	const char *pw_home; /* the home directory that the user database knows for uid; NULL or ""
				none. Its credentials are hidden, too */
};
struct vx_sbx_facts vx_sbx_real_facts(void); /* the file system as this process sees it, its uid */

enum vx_mount_kind {
	VX_MNT_BIND,      /* `source` on `target`, recursive */
	VX_MNT_TMPFS,     /* empty, private */
	VX_MNT_HIDE_FILE, /* an empty unreadable file over `target`: a credential file */
	VX_MNT_HIDE_DIR,  /* an empty directory over `target` */
	VX_MNT_DEVICE,    /* a device node, bound */
};
enum vx_mount_why {
	VX_WHY_BASE,
	VX_WHY_READ,
	VX_WHY_WRITE,
	VX_WHY_DEPENDENCY,
	VX_WHY_CREDENTIAL,
	VX_WHY_DENY,
	VX_WHY_WALL,
	VX_WHY_DEVICE,
	VX_WHY_SOCKET
};

struct vx_mount {
	enum vx_mount_kind kind;
	enum vx_mount_why why;
	const char *source, *target; /* absolute; source NULL for TMPFS and HIDE */
	const char *grant;           /* the line of config it comes from, or NULL */
	bool writable;
	bool source_is_dir;
	mode_t mode; /* of a TMPFS */
};

/* Something made on the host so that a write grant has something to bind; swept after the attempt
 * when untouched. */
struct vx_placeholder {
	const char *path; /* absolute */
	const char *grant;
	bool is_dir;
	/* outside the project: only directories, failing to make it is no error by itself */
	bool outside;
};

/* A linked package that is not granted. */
enum vx_withheld_why {
	VX_WITHHELD_KEY,    /* the task's key does not answer for it */
	VX_WITHHELD_MEMBER, /* it is no member of the workspace */
	VX_WITHHELD_LINK    /* a task may have written the link, and no manifest leads there */
};
struct vx_withheld {
	const char *link, *target, *package;
	enum vx_withheld_why why;
};

/* a symlink or directory that must show inside the wall for grants to be reachable */
struct vx_skeleton {
	const char *path, *link_target; /* link_target NULL: a directory */
};

struct vx_sbx_request {
	const struct vx_mount *mounts; /* in the order in which they must be made */
	uint32_t n_mounts;
	const struct vx_placeholder *placeholders;
	uint32_t n_placeholders;
	const struct vx_skeleton *skeleton; /* parents before children */
	uint32_t n_skeleton;
	const struct vx_withheld *withheld;
	uint32_t n_withheld;
	/* write grants that are looked through after the attempt: a name that no task may write,
	 * and that ... */
	struct vx_strs deny_in;
	struct vx_strs deny_known; /* ... was not there before, fails the task and is removed */
	bool git_config;           /* .git/config is not among those names */
	struct vx_strs members;    /* as in the spec: where package.json is one of them */
	struct vx_strs protect;    /* allow.protected: those that the task may make all the same */
	const char *wall;          /* the hidden workspace root */
	const char *cwd;
	struct vx_strs env; /* "NAME=value" to set over the task's environment */
	bool share_net;     /* the host's network */
	bool unix_all;
	struct vx_strs unix_paths;
	bool no_unix; /* AF_UNIX sockets cannot be made at all */
	bool pty;
	bool nesting; /* mount calls and namespaces are left to the task (weakerWhenNested) */
	bool weaker;  /* the nested profile: the host's /proc, read-only, instead of an own one */
};

/* Assembles the request. Refusals (walls, escapes, a grant that cannot be written) are -EPERM with
 * the reason, before anything is created. */
int vx_sbx_resolve(const struct vx_sbx_spec *s, const struct vx_sbx_facts *f, struct vx_arena *a,
	struct vx_sbx_request *ret, struct vx_err *err);

/* The absolute path that a line of allow.read or allow.write names, up to its first wildcard, as it
 * is spelled; NULL without HOME where it needs one. `project` is absolute. */
const char *vx_sbx_grant_path(
	const char *text, const char *project, const char *home, struct vx_arena *a);

/* Does this variable ("NAME" or "NAME=value") say where a credential store is? */
bool vx_sbx_moves_store(const char *variable);

/* Where the grants let a command write undeclared files; docs/keys.md, "When a key is taken". From
 * what would be bound, not from how it is spelled. */
enum vx_reach { VX_REACH_NONE, VX_REACH_PROJECT, VX_REACH_WORKSPACE };
/* `fingerprint` are root-relative names of fingerprint files; *ret_fingerprint is true when a write
 * grant covers one. When unsure: the wider answer. */
enum vx_reach vx_sbx_reach(const struct vx_sbx_spec *s, const struct vx_sbx_facts *f,
	struct vx_strs fingerprint, bool *ret_fingerprint);

/* For --dry=full. The caller owns the value. */
struct vx_json *vx_sbx_request_json(const struct vx_sbx_request *r);

#endif
