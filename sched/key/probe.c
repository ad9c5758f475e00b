/* Runtime probes: commands whose output is part of a key. Each runs once per directory, command and
 * run; they are killed with the run. */
#include "key_int.h"

#include "vx/buf.h"
#include "vx/limits.h"
#include "vx/spawn.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define MAX_PROBE_BYTES (16U << 20) /* each of stdout and stderr */

static int run(struct vx_keyer *k, const char *cwd, const char *command, struct probe_result *ret)
{
	struct vx_buf out = VX_BUF(MAX_PROBE_BYTES), errout = VX_BUF(MAX_PROBE_BYTES);
	const char *argv[] = {"sh", "-c", command, NULL};
	struct vx_spawn sp = VX_SPAWN_INIT;
	sp.path = "/bin/sh";
	sp.argv = argv;
	sp.cwd = cwd;
	sp.keep = true;
	int r = vx_spawn_capture(&sp, &out, &errout, 0, k->o.cancel_fd, &ret->status);
	if (r == 0) {
		ret->out = vx_arena_strndup(&k->a, vx_buf_str(&out), out.len);
		ret->out_n = out.len;
		ret->err = vx_arena_strndup(&k->a, vx_buf_str(&errout), errout.len);
		ret->err_n = errout.len;
	}
	vx_buf_free(&out);
	vx_buf_free(&errout);
	k->st.probes++;
	return r;
}

static int failed(
	const struct probe_result *p, const char *command, const char *task_id, struct vx_err *err)
{
	const char *say = p->err_n ? p->err : p->out;
	char how[64];
	if (WIFEXITED(p->status))
		snprintf(how, sizeof how, "exited with %d", WEXITSTATUS(p->status));
	else
		snprintf(how, sizeof how, "was ended by %s", vx_signal_name(WTERMSIG(p->status)));
	return vx_err_set(err, -ECHILD, "%s: runtime input \"%s\" %s%s%.*s", task_id, command, how,
		*say ? ": " : "", (int)strcspn(say, "\n"), say);
}

int vx_key_probe(struct vx_keyer *k, const char *cwd_rel, const char *command,
	const struct probe_result **ret, const char *task_id, struct vx_err *err)
{
	const char *cwd = vx_key_dir_is_root(cwd_rel)
				  ? k->ws->root
				  : vx_arena_printf(&k->a, "%s/%s", k->ws->root, cwd_rel);
	size_t n = strlen(cwd) + strlen(command) + 1;
	char *name = vx_arena_alloc(&k->a, n + 1);
	strcpy(name, cwd);
	strcpy(name + strlen(cwd) + 1, command);
	uint32_t i = vx_map_get(&k->probes, name, n);
	if (i == VX_MAP_NONE) {
		struct probe_result p = {0};
		int r = run(k, cwd, command, &p);
		if (r == -ECANCELED)
			return vx_err_set(err, r,
				"%s: runtime input \"%s\" was stopped with the run", task_id,
				command);
		if (r == -EFBIG)
			return vx_err_set(err, r,
				"%s: runtime input \"%s\" printed more than %u bytes", task_id,
				command, MAX_PROBE_BYTES);
		if (r < 0)
			return vx_err_set(err, r,
				"%s: runtime input \"%s\" could not be started: %s", task_id,
				command, vx_strerror(r));
		if (k->n_results == k->cap_results) {
			k->cap_results = k->cap_results ? k->cap_results * 2 : 16;
			k->results = vx_xrealloc(k->results, k->cap_results * sizeof *k->results);
		}
		i = k->n_results++;
		k->results[i] = p;
		vx_map_put(&k->probes, name, n, i);
	}
	if (k->results[i].status != 0)
		return failed(&k->results[i], command, task_id, err);
	*ret = &k->results[i];
	return 0;
}
