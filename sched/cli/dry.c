/* vx run --dry: the plan, and nothing is run. docs/schemas/plan.json describes the JSON. */
#include "cli.h"

#include "vx/assert.h"
#include "vx/buf.h"
#include "vx/clock.h"
#include "vx/json.h"
#include "vx/key.h"
#include "vx/path.h"
#include "vx/sandbox.h"
#include "vx/store.h"
#include "vx/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum status { ST_HIT, ST_MISS, ST_NOCACHE, ST_GROUP, ST_NOT_STARTED, ST_UNKNOWN };
static const char *const status_words[] = {
	"hit", "miss", "no-cache", "group", "not-started", "unknown"};

struct dry {
	const struct vx_run_opts *o;
	struct vx_plan *p;
	struct vx_arena arena;
	char *store_dir;
	struct vx_store *store;
	struct vx_key_memory memory;
	struct vx_keyer *keyer;
	enum status *status;
	bool *stable;
	struct vx_history *history;
};

static int open_all(struct dry *d, struct vx_err *err)
{
	const struct vx_ws_settings *set = &d->p->ws.settings;
	int r = vx_store_dir(d->o->cache_dir, set->cache_dir, set->shared_store, d->p->ws.root,
		&d->arena, &d->store_dir, err);
	struct vx_store_opts so = {.dir = d->store_dir, .workspace = d->p->ws.root, .read = true};
	if (!r)
		r = vx_store_open(&so, &d->store, err);
	if (r)
		return r;
	d->memory = vx_run_key_memory(d->store);
	struct vx_keyer_opts ko = {.forwarded = d->o->forwarded,
		.cache_dir = d->store_dir,
		.mask_key = d->store ? vx_store_mask_key(d->store) : NULL,
		.explain = d->o->dry == VX_DRY_FULL,
		.cancel_fd = -1,
		.memory = &d->memory,
		.ahead = d->p->ahead,
		.snapshot = d->p->snapshot};
	return vx_keyer_new(&d->p->ws, &d->p->graph, &ko, &d->keyer, err);
}

/* Keys of everything, in order; verdicts of what is stable. */
static int judge(struct dry *d, struct vx_err *err)
{
	const struct vx_graph *g = &d->p->graph;
	struct vx_digest *keys = vx_xcalloc(g->n_tasks + 1, sizeof *keys);
	struct vx_entry *entries = vx_xcalloc(g->n_tasks + 1, sizeof *entries);
	bool *found = vx_xcalloc(g->n_tasks + 1, sizeof *found);
	uint32_t *ask = vx_xcalloc(g->n_tasks + 1, sizeof *ask), n = 0;
	int r = 0;
	for (uint32_t i = 0; i < g->n_tasks && !r; i++) {
		uint32_t t = g->topo[i];
		const struct vx_task_decl *decl = g->tasks[t].decl;
		const struct vx_key_record *record;
		r = vx_key_compute(d->keyer, t, &record, err);
		if (r)
			break;
		d->stable[t] = vx_key_stable(d->keyer, t);
		if (vx_task_is_group(&g->tasks[t]))
			d->status[t] = ST_GROUP;
		else if (!decl->has_cache || decl->exec.persistent || d->o->no_cache)
			d->status[t] = ST_NOCACHE;
		else if (!d->stable[t])
			d->status[t] = ST_UNKNOWN;
		else if (d->o->force || !d->o->cache_read)
			d->status[t] = ST_MISS;
		else {
			keys[n] = record->key;
			ask[n++] = t;
		}
	}
	if (!r && n && vx_store_probe(d->store, keys, n, found, entries) < 0)
		memset(found, 0, n);
	for (uint32_t i = 0; !r && i < n; i++)
		d->status[ask[i]] = found[i] ? ST_HIT : ST_MISS;
	free(keys);
	free(entries);
	free(found);
	free(ask);
	return r;
}

/* Will something directly below this task execute? Looks through groups. */
static bool needed(const struct dry *d, uint32_t task)
{
	const struct vx_task *t = &d->p->graph.tasks[task];
	for (uint32_t i = 0; i < t->n_dependents; i++) {
		uint32_t x = t->dependents[i];
		if (d->status[x] == ST_GROUP ? d->p->graph.tasks[x].requested || needed(d, x)
					     : d->status[x] != ST_HIT)
			return true;
	}
	return false;
}

static void judge_servers(struct dry *d)
{
	const struct vx_graph *g = &d->p->graph;
	for (uint32_t t = 0; t < g->n_tasks; t++)
		if (d->status[t] == ST_NOCACHE && g->tasks[t].decl->exec.persistent &&
			!g->tasks[t].requested && !needed(d, t))
			d->status[t] = ST_NOT_STARTED;
}

static void remember(struct dry *d)
{
	uint32_t n = d->p->graph.n_tasks;
	const char **ids = vx_arena_array(&d->arena, n + 1, sizeof *ids);
	for (uint32_t i = 0; i < n; i++)
		ids[i] = d->p->graph.tasks[i].id;
	if (!d->store || vx_store_history_get(d->store, ids, n, d->history) < 0)
		memset(d->history, 0, n * sizeof *d->history);
}

/* Why --affected chose it; NULL where it did not. */
static const char *reason_of(const struct dry *d, const struct vx_task *t)
{
	const struct vx_selection *sel = &d->p->sel;
	for (uint32_t k = 0; d->o->affected && sel->reasons && k < sel->n_tasks; k++)
		if (sel->tasks[k].project == t->project &&
			!strcmp(sel->tasks[k].task, t->decl->name))
			return sel->reasons[k];
	return NULL;
}

static struct vx_json *task_json(struct dry *d, uint32_t i)
{
	const struct vx_task *t = &d->p->graph.tasks[i];
	struct vx_task_view v = {.keyer = d->keyer,
		.store_dir = d->store_dir,
		.cache_status = status_words[d->status[i]],
		.stable = d->stable[i],
		.full = d->o->dry == VX_DRY_FULL,
		.predicted_ns = d->history[i].duration_ns,
		.reason = reason_of(d, t)};
	return vx_run_task_json(d->p, i, &v, &d->arena);
}

/* The whole is written task by task: a plan of ten thousand tasks need not stand in memory as one
 * tree. */
static void print_json(struct dry *d)
{
	struct vx_buf b = VX_BUF(1ULL << 32);
	const struct vx_graph *g = &d->p->graph;
	uint64_t work = 0;
	uint32_t counts[VX_ARRAY_LEN(status_words)] = {0};
	struct vx_json *v = vx_json_new_str(d->p->ws.root);
	vx_buf_adds(&b, "{\"root\":");
	vx_json_write_shown(v, false, &b);
	vx_json_free(v);
	v = vx_json_array();
	for (uint32_t i = 0; i < d->p->sel.n_projects; i++)
		vx_json_add(v, vx_json_new_str(d->p->ws.projects[d->p->sel.projects[i]].name));
	vx_buf_adds(&b, ",\"selected\":");
	vx_json_write_shown(v, false, &b);
	vx_json_free(v);
	vx_buf_adds(&b, ",\"tasks\":[");
	for (uint32_t i = 0; i < g->n_tasks; i++) {
		v = task_json(d, i);
		if (i)
			vx_buf_addc(&b, ',');
		vx_buf_addc(&b, '\n');
		vx_json_write_shown(v, false, &b);
		vx_json_free(v);
		counts[d->status[i]]++;
		if (d->status[i] != ST_HIT && d->status[i] != ST_GROUP &&
			d->status[i] != ST_NOT_STARTED)
			work += d->history[i].duration_ns;
		if (b.len > 1U << 20) {
			vx_cli_out(&b);
			vx_buf_clear(&b);
		}
	}
	vx_buf_printf(
		&b, "],\n\"predicted\":{\"workMs\":%llu", (unsigned long long)(work / 1000000));
	for (size_t i = 0; i < VX_ARRAY_LEN(status_words); i++)
		vx_buf_printf(&b, ",\"%s\":%u", status_words[i], counts[i]);
	vx_buf_adds(&b, "}}\n");
	vx_cli_out(&b);
	vx_buf_free(&b);
}

static void print_text(struct dry *d)
{
	const struct vx_graph *g = &d->p->graph;
	struct vx_buf b = VX_BUF(1ULL << 32);
	for (uint32_t i = 0; i < g->n_tasks; i++) {
		const struct vx_task *t = &g->tasks[g->topo[i]];
		if (vx_task_is_group(t))
			continue;
		const char *reason = reason_of(d, t);
		vx_text_printf(&b, "%-11s %s%s%s%s\n", status_words[d->status[g->topo[i]]], t->id,
			t->requested ? "" : "  (needed)", reason ? "  because " : "",
			reason ? reason : "");
		const struct vx_exec_decl *x = &t->decl->exec;
		const char *const lines[] = {x->pre, x->command, x->post};
		for (size_t k = 0; k < VX_ARRAY_LEN(lines); k++)
			if (lines[k])
				vx_text_printf(&b, "            %s\n", lines[k]);
	}
	if (!g->n_tasks)
		vx_buf_adds(&b, "nothing to run\n");
	vx_cli_out(&b);
	vx_buf_free(&b);
}

int vx_cli_dry(const struct vx_run_opts *o, struct vx_plan *p)
{
	struct dry d = {.o = o, .p = p};
	struct vx_err err = {0};
	if (p->sel.nothing) { /* nothing was planned; who asked for JSON gets it all the same */
		vx_cli_warn("run", (struct vx_strs){&p->sel.nothing, 1});
		print_json(&d);
		return 0;
	}
	uint32_t n = p->graph.n_tasks;
	d.status = vx_arena_array(&d.arena, n + 1, sizeof *d.status);
	d.stable = vx_arena_array(&d.arena, n + 1, sizeof *d.stable);
	d.history = vx_arena_array(&d.arena, n + 1, sizeof *d.history);
	int r = open_all(&d, &err);
	if (!r)
		r = judge(&d, &err);
	if (!r) {
		judge_servers(&d);
		remember(&d);
		struct vx_keyer_stats ks = {0};
		vx_keyer_stats(d.keyer, &ks);
		vx_cli_warn("run", p->ws.warnings);
		vx_cli_warn("run", ks.said);
		if (o->dry == VX_DRY_TEXT)
			print_text(&d);
		else
			print_json(&d);
	}
	vx_keyer_free(d.keyer);
	vx_store_close(d.store);
	vx_arena_free(&d.arena);
	return r ? vx_cli_fail("run", &err) : 0;
}
