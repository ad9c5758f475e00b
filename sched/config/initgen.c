#include "vx/initgen.h"

#include "cfg.h"
#include "lockfile_format.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/json.h"

#include <string.h>

static struct vx_json *list_of(struct vx_strs s)
{
	struct vx_json *a = vx_json_array();

	for (uint32_t i = 0; i < s.n; i++)
		vx_json_add(a, vx_json_new_str(s.v[i]));
	return a;
}

static bool listed(const char *const *names, const char *name)
{
	for (; *names; names++)
		if (strcmp(*names, name) == 0)
			return true;
	return false;
}

/* What a package manager runs by itself: around an installation, or around other scripts. */
static bool is_hook(const struct vx_manager *m, const struct vx_project *p, const char *name)
{
	static const char *const alone[] = {"prepare", "install", "preinstall", "postinstall",
		"prepublish", "prepublishOnly", "prepack", "postpack", "dependencies", NULL};

	return listed(alone, name) ||
	       (m->runs_around &&
		       ((vx_starts_with(name, "pre") && cfg_script(p, name + 3)) ||
			       (vx_starts_with(name, "post") && cfg_script(p, name + 4))));
}

static bool can_name_a_task(const char *name)
{
	return *name && !strpbrk(name, "#* \t\r\n") && *name != '^' && *name != '!';
}

static uint32_t finish(struct vx_json *o, struct vx_json *tasks, struct vx_buf *out)
{
	uint32_t n = (uint32_t)vx_json_len(tasks);

	vx_json_set(o, "tasks", tasks);
	if (n) {
		vx_json_write_pretty(o, out);
		if (out->len && out->data[out->len - 1] != '\n')
			vx_buf_addc(out, '\n');
	}
	vx_json_free(o);
	return n;
}

uint32_t vx_init_from_scripts(const struct vx_workspace *ws, const struct vx_project *p,
	struct vx_arena *a, struct vx_buf *out)
{
	static const char *const servers[] = {"dev", "start", "serve", "watch", "preview", NULL};
	struct vx_json *tasks = vx_json_object();

	(void)a;
	for (uint32_t i = 0; i < p->n_scripts; i++) {
		const char *name = p->scripts[i].name, *command = p->scripts[i].value;
		if (is_hook(&ws->manager, p, name) || !can_name_a_task(name) ||
			command[strspn(command, " \t\r\n")] == '\0')
			continue;
		struct vx_json *t = vx_json_object(), *exec = vx_json_object();
		bool upstream = false;
		for (uint32_t k = 0; k < p->n_deps && strcmp(name, "build") == 0; k++)
			upstream = upstream || cfg_script(&ws->projects[p->deps[k]], name);
		if (upstream) {
			struct vx_json *d = vx_json_array();
			vx_json_add(d, vx_json_new_str("^build"));
			vx_json_set(t, "dependsOn", d);
		}
		vx_json_set(exec, "script", vx_json_new_str(name));
		if (listed(servers, name))
			vx_json_set(exec, "persistent", vx_json_object());
		vx_json_set(t, "exec", exec);
		vx_json_set(tasks, name, t);
	}
	return finish(vx_json_object(), tasks, out);
}

/* ---- from turbo.json ---- */

static bool worth_writing(const struct vx_task_decl *t)
{
	return t->has_exec || t->depends_on.n > 0;
}

static bool declared_anywhere(const struct vx_workspace *ws, const char *name)
{
	for (uint32_t p = 0; p < ws->n_projects; p++)
		for (uint32_t i = 0; i < ws->projects[p].n_tasks; i++)
			if (strcmp(ws->projects[p].tasks[i]->name, name) == 0 &&
				worth_writing(ws->projects[p].tasks[i]))
				return true;
	return false;
}

static bool declared_by(const struct vx_project *p, const char *name)
{
	for (uint32_t i = 0; i < p->n_tasks; i++)
		if (strcmp(p->tasks[i]->name, name) == 0 && worth_writing(p->tasks[i]))
			return true;
	return false;
}

/* Edges to what would not be written are left out: an empty node between is no edge at all. */
static struct vx_strs kept_edges(const struct vx_workspace *ws, const struct vx_project *p,
	struct vx_strs deps, struct vx_arena *a)
{
	struct vx_strlist l = {0};

	for (uint32_t i = 0; i < deps.n; i++) {
		const char *d = deps.v[i], *hash = strrchr(d, '#');
		uint32_t q = hash ? vx_map_get(&ws->by_name, d, (size_t)(hash - d)) : VX_MAP_NONE;
		bool keep = *d == '^' ? declared_anywhere(ws, d + 1)
			    : hash    ? q != VX_MAP_NONE && declared_by(&ws->projects[q], hash + 1)
				      : declared_by(p, d);
		if (keep)
			vx_strlist_add(&l, a, d);
	}
	return vx_strlist_done(&l);
}

/* Once a project and pattern: many tasks share one, and each has it twice, for its key and for what
 * it sees. */
static void note_pattern(const struct vx_project *p, const char *task, const char *pattern,
	struct vx_arena *a, struct vx_strlist *notes)
{
	const char *rest = vx_arena_printf(
		a, ": the pattern \"%s\" of variables must be written as names", pattern);
	const char *head = vx_arena_printf(a, "%s#", p->name);

	for (uint32_t i = 0; i < notes->n; i++)
		if (vx_starts_with(notes->v[i], head) && strstr(notes->v[i], rest))
			return;
	vx_strlist_add(notes, a,
		vx_arena_printf(a, "%s%s%s%s", head, task, rest,
			", here and in the project's other tasks that have it"));
}

static void add_names(struct vx_strs s, const struct vx_project *p, const char *task,
	struct vx_strlist *to, struct vx_arena *a, struct vx_strlist *notes)
{
	for (uint32_t i = 0; i < s.n; i++) {
		if (*s.v[i] == '=')
			continue; /* of this run's CI, not of the task */
		if (strchr(s.v[i], '*') || *s.v[i] == '!')
			note_pattern(p, task, s.v[i], a, notes);
		else
			vx_strlist_add(to, a, s.v[i]);
	}
}

static struct vx_strs concat(struct vx_strs x, struct vx_strs y, struct vx_arena *a)
{
	struct vx_strlist l = {0};

	for (uint32_t i = 0; i < x.n; i++)
		vx_strlist_add(&l, a, x.v[i]);
	for (uint32_t i = 0; i < y.n; i++)
		vx_strlist_add(&l, a, y.v[i]);
	return vx_strlist_done(&l);
}

static struct vx_json *task_from_turbo(const struct vx_workspace *ws, const struct vx_project *p,
	const struct vx_task_decl *from, struct vx_arena *a, struct vx_strlist *notes)
{
	static const char *const everything[] = {"**"};
	struct vx_task_decl t = *from;
	struct vx_strlist env = {0}, pass = {0};

	t.depends_on = kept_edges(ws, p, from->depends_on, a);
	add_names(from->exec.pass_through, p, t.name, &pass, a, notes);
	t.exec.pass_through = vx_strlist_done(&pass);
	if (t.has_cache) {
		add_names(ws->settings.global_env, p, t.name, &env, a, notes);
		add_names(from->cache.env, p, t.name, &env, a, notes);
		vx_strlist_sort_unique(&env);
		t.cache.env = vx_strlist_done(&env);
		if (from->cache.default_inputs)
			t.cache.files =
				concat((struct vx_strs){everything, 1}, from->cache.files, a);
		t.cache.workspace_files =
			concat(ws->settings.global_files, from->cache.workspace_files, a);
	}
	if (t.with.n)
		vx_strlist_add(notes, a,
			vx_arena_printf(a,
				"%s#%s: \"with\" has no counterpart; name the tasks together",
				p->name, t.name));
	if (t.exec.script)
		t.exec.command = NULL; /* the name alone is written */
	t.dialect = VX_DIALECT_VX;
	t.source = NULL;
	t.in_project = false;
	if (!t.has_exec && t.depends_on.n == 0)
		return NULL;
	return lock_task_json(&t);
}

uint32_t vx_init_from_turbo(const struct vx_workspace *ws, const struct vx_project *p,
	struct vx_arena *a, struct vx_buf *out, struct vx_strlist *notes)
{
	struct vx_json *tasks = vx_json_object();

	for (uint32_t i = 0; i < p->n_tasks; i++) {
		struct vx_json *t = worth_writing(p->tasks[i])
					    ? task_from_turbo(ws, p, p->tasks[i], a, notes)
					    : NULL;
		if (t)
			vx_json_set(tasks, p->tasks[i]->name, t);
	}
	struct vx_json *o = vx_json_object();
	if (p->tags.n)
		vx_json_set(o, "tags", list_of(p->tags));
	return finish(o, tasks, out);
}
