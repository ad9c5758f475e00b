/* A task's resolved declaration as canonical JSON: a part of its key. Members in a fixed order,
 * absent where they say nothing, so that the same task written in another file format, or inherited
 * instead of repeated, has the same key. exec.resources (placement) is left out. */
#include "cfg.h"

#include "vx/arena.h"
#include "vx/buf.h"
#include "vx/limits.h"

#include <string.h>

static void put_str(struct vx_buf *b, const char *s)
{
	vx_buf_addc(b, '"');
	for (; *s; s++) {
		unsigned char ch = (unsigned char)*s;
		if (ch == '"' || ch == '\\') {
			vx_buf_addc(b, '\\');
			vx_buf_addc(b, *s);
		} else if (ch < 0x20) {
			vx_buf_printf(b, "\\u%04x", ch);
		} else {
			vx_buf_addc(b, *s);
		}
	}
	vx_buf_addc(b, '"');
}

/* `"name":` with the comma that the object needs. */
static void key(struct vx_buf *b, const char *name)
{
	char last = b->len ? b->data[b->len - 1] : '{';

	if (last != '{')
		vx_buf_addc(b, ',');
	put_str(b, name);
	vx_buf_addc(b, ':');
}

static void strs(struct vx_buf *b, const char *name, struct vx_strs s, bool given)
{
	if (!given && s.n == 0)
		return;
	key(b, name);
	vx_buf_addc(b, '[');
	for (uint32_t i = 0; i < s.n; i++) {
		if (i)
			vx_buf_addc(b, ',');
		put_str(b, s.v[i]);
	}
	vx_buf_addc(b, ']');
}

/* Names of variables, without what says which of them are not inferred here: two machines that
 * differ in this alone share keys, in which the values themselves stand. */
static void variables(struct vx_buf *b, const char *name, struct vx_strs s)
{
	bool any = false;

	for (uint32_t i = 0; i < s.n; i++) {
		if (*s.v[i] == '=')
			continue;
		if (!any)
			key(b, name);
		vx_buf_addc(b, any ? ',' : '[');
		any = true;
		put_str(b, s.v[i]);
	}
	if (any)
		vx_buf_addc(b, ']');
}

static void str(struct vx_buf *b, const char *name, const char *s)
{
	if (!s)
		return;
	key(b, name);
	put_str(b, s);
}

static void flag(struct vx_buf *b, const char *name, bool on)
{
	if (!on)
		return;
	key(b, name);
	vx_buf_adds(b, "true");
}

static void number(struct vx_buf *b, const char *name, int64_t n)
{
	if (n < 0)
		return;
	key(b, name);
	vx_buf_printf(b, "%lld", (long long)n);
}

static void put_sandbox(struct vx_buf *b, const struct vx_sbx_decl *s)
{
	key(b, "sandbox");
	vx_buf_addc(b, '{');
	strs(b, "read", s->read, false);
	strs(b, "write", s->write, false);
	flag(b, "netAll", s->net_all);
	strs(b, "net", s->net_allow, false);
	strs(b, "netDeny", s->net_deny, false);
	flag(b, "unixAll", s->unix_all);
	strs(b, "unix", s->unix_paths, false);
	flag(b, "bindAll", s->bind_all);
	if (s->n_bind_ports) {
		key(b, "bind");
		for (uint32_t i = 0; i < s->n_bind_ports; i++)
			vx_buf_printf(b, "%c%u", i ? ',' : '[', s->bind_ports[i]);
		vx_buf_addc(b, ']');
	}
	flag(b, "pty", s->pty);
	flag(b, "gitConfig", s->git_config);
	strs(b, "devices", s->devices, false);
	strs(b, "protected", s->protect, false);
	strs(b, "ignoreRead", s->ignore_read, false);
	strs(b, "ignoreWrite", s->ignore_write, false);
	strs(b, "ignoreNet", s->ignore_net, false);
	flag(b, "weakerWhenNested", s->weaker_when_nested);
	vx_buf_addc(b, '}');
}

static void put_exec(struct vx_buf *b, const struct vx_exec_decl *e)
{
	key(b, "exec");
	vx_buf_addc(b, '{');
	str(b, "command", e->command);
	str(b, "script", e->script);
	str(b, "pre", e->pre);
	str(b, "post", e->post);
	variables(b, "passThrough", e->pass_through);
	if (e->n_define) {
		key(b, "define");
		vx_buf_addc(b, '{');
		for (uint32_t i = 0; i < e->n_define; i++)
			str(b, e->define[i].name, e->define[i].value);
		vx_buf_addc(b, '}');
	}
	strs(b, "secret", e->secret, false);
	number(b, "timeout", e->timeout_ms);
	number(b, "retries", e->retries);
	flag(b, "persistent", e->persistent);
	str(b, "readyWhen", e->ready_when);
	flag(b, "interactive", e->interactive);
	if (e->sandboxed)
		put_sandbox(b, &e->sandbox);
	vx_buf_addc(b, '}');
}

static void put_cache(struct vx_buf *b, const struct vx_cache_decl *d)
{
	key(b, "cache");
	vx_buf_addc(b, '{');
	strs(b, "files", d->files, false);
	strs(b, "workspaceFiles", d->workspace_files, false);
	flag(b, "defaultInputs", d->default_inputs);
	variables(b, "env", d->env);
	strs(b, "runtime", d->runtime, false);
	strs(b, "workspaceRuntime", d->workspace_runtime, false);
	strs(b, "tasks", d->tasks, d->tasks_given);
	strs(b, "outputs", d->out_files, false);
	strs(b, "workspaceOutputs", d->out_workspace_files, false);
	vx_buf_addc(b, '}');
}

const char *cfg_canonical(const struct vx_task_decl *t, struct vx_arena *a)
{
	struct vx_buf b = VX_BUF(2 * (size_t)VX_MAX_CONFIG_BYTES);

	vx_buf_addc(&b, '{');
	str(&b, "description", t->description);
	strs(&b, "dependsOn", t->depends_on, false);
	bool turbo = t->dialect == VX_DIALECT_TURBO;
	if (t->has_exec)
		put_exec(&b, &t->exec);
	else if (turbo)
		variables(&b, "passThrough", t->exec.pass_through);
	/* a turbo.json gives inputs to what is not cached or not run as well, and its key holds
	 * them */
	if (t->has_cache || turbo)
		put_cache(&b, &t->cache);
	flag(&b, "uncached", turbo && !t->has_cache);
	strs(&b, "with", t->with, false);
	flag(&b, "turbo", turbo);
	vx_buf_addc(&b, '}');
	const char *s = vx_arena_strndup(a, vx_buf_str(&b), b.len);
	vx_buf_free(&b);
	return s;
}
