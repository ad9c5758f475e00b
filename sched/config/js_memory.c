#include "js_memory.h"

#include "js_driver.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/facts.h"
#include "vx/fd.h"
#include "vx/hash.h"
#include "vx/limits.h"
#include "vx/path.h"
#include "vx/state.h"
#include "vx/secret.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char FILE_NAME[] = ".vx/config-evaluations.json",
		  BASE_NAME[] = "config-evaluations.json";

static const char *hex_of(struct vx_sha256 *c, struct vx_arena *a)
{
	struct vx_digest d;
	char *hex = vx_arena_alloc(a, VX_DIGEST_HEX);

	vx_sha256_done(c, &d);
	vx_hex(d.b, sizeof d.b, hex);
	return hex;
}

static int take_name(void *arg, const struct vx_dirent *e)
{
	vx_strlist_add(((void **)arg)[0], ((void **)arg)[1],
		vx_arena_strndup(((void **)arg)[1], e->name, e->len));
	return 0;
}

/* What stands at a path: where it leads through links, and its bytes, a directory's names, or that
 * nothing does. Recorded as facts of the plan on the way. */
static const char *path_digest(const struct vx_base_dir *root, const char *path, struct vx_arena *a)
{
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_strlist names = {0};
	struct vx_sha256 c;
	char *real = NULL;
	int r = vx_seen_read(root, path, &b);

	vx_sha256_init(&c);
	if (r != -ENOENT && vx_path_canon(a, path, &real) == 0)
		vx_sha256_add(&c, real, strlen(real) + 1);
	if (r == 0)
		vx_sha256_add(&c, vx_buf_str(&b), b.len);
	vx_buf_free(&b);
	if (r == 0)
		return hex_of(&c, a);
	if (r != -EISDIR)
		return r == -ENOENT ? "absent" : vx_arena_printf(a, "error %d", r);
	r = vx_seen_list(root, path, take_name, (void *[]){&names, a});
	vx_strlist_sort_unique(&names);
	for (uint32_t i = 0; i < names.n; i++)
		vx_sha256_add(&c, names.v[i], strlen(names.v[i]) + 1);
	return r < 0 ? "unreadable directory" : vx_arena_printf(a, "dir %s", hex_of(&c, a));
}

static const char *env_digest(const char *name, struct vx_arena *a)
{
	const char *value = getenv(name);
	struct vx_sha256 c;

	if (!value)
		return "unset";
	vx_sha256_init(&c);
	vx_sha256_add(&c, value, strlen(value));
	return hex_of(&c, a);
}

static const char *all_env_digest(struct vx_arena *a)
{
	struct vx_strlist l = {0};
	struct vx_sha256 c;

	for (char **e = environ; *e; e++)
		vx_strlist_add(&l, a, *e);
	vx_strlist_sort_unique(&l);
	vx_sha256_init(&c);
	for (uint32_t i = 0; i < l.n; i++)
		vx_sha256_add(&c, l.v[i], strlen(l.v[i]) + 1);
	return hex_of(&c, a);
}

/* Everything that must be the same before any fact is looked at, bound to the secret of this .vx.
 * NULL: there is none. */
static const char *identity(struct vx_strs files, const char *runtime,
	const struct vx_digest *secret, struct vx_arena *a)
{
	struct vx_sha256 c;
	struct vx_digest d;
	char *hex = vx_arena_alloc(a, VX_DIGEST_HEX);

	vx_sha256_init(&c);
	vx_sha256_add(&c, vx_js_driver, strlen(vx_js_driver) + 1);
	vx_sha256_add(&c, runtime, strlen(runtime) + 1);
	for (uint32_t i = 0; i < files.n; i++)
		vx_sha256_add(&c, files.v[i], strlen(files.v[i]) + 1);
	vx_sha256_done(&c, &d);
	vx_hmac_sha256(secret, sizeof *secret, &d, sizeof d, &d);
	vx_hex(d.b, sizeof d.b, hex);
	return hex;
}

static bool facts_hold(const struct vx_json *v, const struct vx_base_dir *root, struct vx_arena *a)
{
	const struct vx_json *env = vx_json_get(v, "env"), *paths = vx_json_get(v, "paths");
	const char *all = vx_json_str(vx_json_get(v, "allEnv"));

	if (vx_json_type(env) != VX_JSON_OBJECT || vx_json_type(paths) != VX_JSON_OBJECT ||
		vx_json_len(paths) == 0)
		return false;
	if (all && strcmp(all, all_env_digest(a)) != 0)
		return false;
	for (struct vx_json_iter it = vx_json_iter(env); vx_json_next(&it);)
		if (!vx_streq(vx_json_str(it.val), env_digest(it.key, a)))
			return false;
	for (struct vx_json_iter it = vx_json_iter(paths); vx_json_next(&it);)
		if (!vx_streq(vx_json_str(it.val), path_digest(root, it.key, a)))
			return false;
	return true;
}

int js_memory_get(const struct vx_workspace *ws, struct vx_strs files, const char *runtime,
	struct vx_arena *a, struct vx_json **ret_json)
{
	struct vx_base_dir root = {vx_open(AT_FDCWD, ws->root, O_PATH | O_DIRECTORY, 0), ws->root};
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_json *v = NULL;
	struct vx_digest secret;
	VX_CLEANUP_FD int own = root.fd < 0 ? root.fd : vx_state_dir(root.fd, false);
	VX_CLEANUP_FD int fd = own < 0 || vx_state_key(own, false, &secret) < 0
				       ? -1
				       : vx_state_open(own, BASE_NAME, O_RDONLY, 0);
	int found = 0;

	if (fd >= 0 && vx_read_file_fd(fd, &b) == 0 &&
		vx_json_parse(vx_buf_str(&b), b.len, 0, FILE_NAME, &v, NULL) == 0)
		found = vx_streq(vx_json_str(vx_json_get(v, "identity")),
				identity(files, runtime, &secret, a)) &&
			facts_hold(v, &root, a);
	vx_buf_free(&b);
	vx_close(root.fd);
	if (found)
		*ret_json = v;
	else
		vx_json_free(v);
	return found;
}

static struct vx_json *copy(const struct vx_json *v)
{
	struct vx_buf b = VX_BUF(2 * (size_t)VX_MAX_CONFIG_BYTES);
	struct vx_json *out = NULL;

	vx_json_write(v, false, &b);
	if (vx_json_parse(vx_buf_str(&b), b.len, 0, "evaluation", &out, NULL) < 0)
		out = NULL;
	vx_buf_free(&b);
	return out;
}

/* Asked after the digest was taken: was it, by its time stamps, untouched since before start_ns?
 * The kernel's stamps may lag a tick behind. */
static bool settled(const struct vx_base_dir *root, const char *path, uint64_t start_ns)
{
	enum { TICK_NS = 50000000 };
	struct stat st;

	if (fstatat(root->fd, path, &st, 0) < 0)
		return true;
	uint64_t changed = (uint64_t)st.st_ctim.tv_sec * 1000000000 + (uint64_t)st.st_ctim.tv_nsec;
	return changed + TICK_NS < start_ns;
}

static bool put_paths(struct vx_json *to, const struct vx_json *list,
	const struct vx_base_dir *root, uint64_t start_ns, struct vx_arena *a)
{
	for (size_t i = 0; i < vx_json_len(list); i++) {
		const char *path = vx_json_str(vx_json_at(list, i));
		vx_json_set(to, path, vx_json_new_str(path_digest(root, path, a)));
		if (!settled(root, path, start_ns))
			return false;
	}
	return true;
}

void js_memory_put(const struct vx_workspace *ws, struct vx_strs files, const char *runtime,
	uint64_t start_ns, const struct vx_json *answer, struct vx_arena *a)
{
	struct vx_base_dir root = {vx_open(AT_FDCWD, ws->root, O_PATH | O_DIRECTORY, 0), ws->root};
	const struct vx_json *read = vx_json_get(answer, "read"), *names = vx_json_get(read, "env"),
			     *list = vx_json_get(read, "paths");
	struct vx_buf b = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_digest secret;
	VX_CLEANUP_FD int own = root.fd < 0 ? root.fd : vx_state_dir(root.fd, false);

	if (own >= 0 && vx_json_bool(vx_json_get(read, "keep")) &&
		vx_state_key(own, true, &secret) == 0) {
		struct vx_json *v = vx_json_object(), *env = vx_json_object(),
			       *paths = vx_json_object();
		vx_json_set(v, "identity", vx_json_new_str(identity(files, runtime, &secret, a)));
		if (vx_json_bool(vx_json_get(read, "allEnv")))
			vx_json_set(v, "allEnv", vx_json_new_str(all_env_digest(a)));
		for (size_t i = 0; i < vx_json_len(names); i++)
			vx_json_set(env, vx_json_str(vx_json_at(names, i)),
				vx_json_new_str(env_digest(vx_json_str(vx_json_at(names, i)), a)));
		bool whole = put_paths(paths, list, &root, start_ns, a);
		vx_json_set(v, "env", env);
		vx_json_set(v, "paths", paths);
		vx_json_set(v, "results", copy(vx_json_get(answer, "results")));
		vx_json_set(v, "by", copy(vx_json_get(read, "by")));
		vx_json_write(v, false, &b);
		vx_json_free(v);
		/* A configuration may have put a secret of the environment into what it says: that
		 * is evaluated in every run rather than written down. */
		if (whole && !b.overflow && !vx_secrets_in(b.data, b.len))
			(void)vx_write_file_atomic(own, BASE_NAME, b.data, b.len, 0600);
	}
	vx_buf_free(&b);
	vx_close(root.fd);
}
