/* vx lock: the resolved workspace as vx-lock.json. */
#include "cli.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/config.h"
#include "vx/fd.h"
#include "vx/graph.h"
#include "vx/limits.h"
#include "vx/lock.h"
#include "vx/path.h"
#include "vx/secret.h"
#include "vx/text.h"
#include "vx/verbs.h"
#include "vx/workspace.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

/* Every task of every project, so that a lock never holds a graph that cannot be built. */
static int check_graph(const struct vx_workspace *ws, struct vx_arena *a, struct vx_err *err)
{
	struct vx_selection sel = {0};
	struct vx_graph g;
	uint32_t n = 0;

	for (uint32_t p = 0; p < ws->n_projects; p++)
		n += ws->projects[p].n_tasks;
	struct vx_request_task *tasks = vx_arena_array(a, n ? n : 1, sizeof *tasks);
	for (uint32_t p = 0; p < ws->n_projects; p++)
		for (uint32_t i = 0; i < ws->projects[p].n_tasks; i++)
			tasks[sel.n_tasks++] =
				(struct vx_request_task){p, ws->projects[p].tasks[i]->name};
	sel.tasks = tasks;
	return vx_graph_build(ws, &sel, NULL, a, &g, err);
}

/* The first line in which the two differ. */
static void first_difference(
	const char *old, const char *new, unsigned *ret_line, struct vx_err *err)
{
	unsigned line = 1;

	while (*old && *old == *new) {
		line += *old == '\n';
		old++;
		new ++;
	}
	*ret_line = line;
	vx_err_set(err, -ESTALE,
		VX_LOCK_FILE " is not what the workspace resolves to now (line %u differs)", line);
	vx_err_fix(err, "write it again: vx lock");
}

static int compare(int root_fd, const struct vx_buf *now, struct vx_err *err)
{
	struct vx_buf old = VX_BUF(VX_MAX_CONFIG_BYTES);
	unsigned line;
	int r = vx_read_file(root_fd, VX_LOCK_FILE, &old);

	if (r == -ENOENT) {
		vx_err_set(err, r, "there is no " VX_LOCK_FILE);
		vx_err_fix(err, "write it with: vx lock");
	} else if (r < 0) {
		vx_err_set(err, r, "cannot read " VX_LOCK_FILE ": %s", vx_strerror(r));
	} else if (old.len != now->len ||
		   memcmp(vx_buf_str(&old), vx_buf_str(now), now->len) != 0) {
		first_difference(vx_buf_str(&old), vx_buf_str(now), &line, err);
		r = -ESTALE;
	}
	vx_buf_free(&old);
	return r;
}

/* JSON is UTF-8. What is not (a directory's name, a command) has no place in it. */
static int check_text(const struct vx_buf *text, struct vx_err *err)
{
	const unsigned char *p = (const unsigned char *)text->data;
	size_t at = 0, k;

	while (at < text->len && (k = vx_utf8_len(p + at, text->len - at)))
		at += k;
	if (at == text->len)
		return 0;
	const char *start = text->data + at;
	while (start > text->data && start[-1] != '\n')
		start--;
	start += strspn(start, " ");
	vx_err_set(err, -EILSEQ, "bytes that are not UTF-8 cannot stand in " VX_LOCK_FILE ": %.*s",
		(int)strcspn(start, "\n"), start);
	return vx_err_fix(err, "name or write it in UTF-8");
}

static bool holds_secret(const struct vx_exec_decl *x, const char **ret_what)
{
	*ret_what = "exec.command";
	if (x->command && vx_secrets_in(x->command, strlen(x->command)))
		return true;
	*ret_what = "exec.env.define";
	for (uint32_t i = 0; i < x->n_define; i++)
		if (vx_secrets_in(x->define[i].value, strlen(x->define[i].value)))
			return true;
	return false;
}

/* A program may put a secret of the environment into what it exports; the lock is meant to be
 * committed. (What a JSON file says stands in the repository already.) */
static int check_secrets(const struct vx_workspace *ws, struct vx_err *err)
{
	const char *what;

	for (uint32_t p = 0; p < ws->n_projects; p++)
		for (uint32_t i = 0; i < ws->projects[p].n_tasks; i++) {
			const struct vx_task_decl *t = ws->projects[p].tasks[i];
			const char *file = t->source ? vx_path_base(t->source) : "";
			if (vx_ends_with(file, ".json") || vx_ends_with(file, ".jsonc") ||
				!t->has_exec || !holds_secret(&t->exec, &what))
				continue;
			vx_err_set(err, -EPERM,
				"%s#%s: %s holds the value of a secret variable, and would stand in " VX_LOCK_FILE,
				ws->projects[p].name, t->name, what);
			return vx_err_fix(err,
				"name the variable in exec.env.secret instead of writing its value");
		}
	return 0;
}

static int lock(bool check, struct vx_arena *a, struct vx_err *err)
{
	struct vx_buf text = VX_BUF(VX_MAX_CONFIG_BYTES);
	struct vx_workspace ws;
	char *root;

	int r = vx_workspace_find(".", a, &root, err);
	if (r == 0)
		r = vx_workspace_load(root, a, &ws, err);
	if (r < 0)
		return r;
	r = vx_config_load(&ws, a, err);
	if (r == 0)
		r = vx_workspace_need_all(&ws, err);
	if (r == 0)
		r = check_secrets(&ws, err);
	vx_cli_learn_secrets(&ws);
	vx_cli_warn("lock", ws.warnings);
	if (r == 0)
		r = check_graph(&ws, a, err);
	if (r == 0) {
		vx_lock_write(&ws, &text);
		if (text.overflow)
			r = vx_err_set(err, -EFBIG,
				"the lock would be larger than %u bytes, the most a configuration file may have",
				VX_MAX_CONFIG_BYTES);
	}
	if (r == 0)
		r = check_text(&text, err);
	int fd = r == 0 ? vx_open(AT_FDCWD, root, O_PATH | O_DIRECTORY, 0) : -1;
	if (r == 0 && fd < 0)
		r = vx_err_set(err, fd, "cannot enter %s: %s", root, vx_strerror(fd));
	if (r == 0 && check) {
		r = compare(fd, &text, err);
	} else if (r == 0) {
		r = vx_write_file_atomic(fd, VX_LOCK_FILE, text.data, text.len, 0644);
		if (r < 0)
			vx_err_set(err, r, "cannot write %s/" VX_LOCK_FILE ": %s", root,
				vx_strerror(r));
	}
	if (r == 0 && check)
		vx_say(1, VX_LOCK_FILE " is up to date\n");
	else if (r == 0)
		vx_say(1, VX_LOCK_FILE " written: %u projects\n", ws.n_projects);
	vx_close(fd);
	vx_buf_free(&text);
	vx_map_free(&ws.by_name);
	vx_map_free(&ws.by_dir);
	return r;
}

int vx_cli_lock(int argc, char **argv)
{
	bool check = false;
	struct vx_arena a = {0};
	struct vx_err err = {0};
	int r = vx_cli_flag_only(argc, argv, "--check", &check, &err);

	if (r == 0)
		r = lock(check, &a, &err);
	vx_arena_free(&a);
	return r < 0 ? vx_cli_fail("lock", &err) : 0;
}
