/* --summarize: the run as JSON, each task as --dry=full shows it and with how it went.
 * docs/schemas/summary.json describes it. */
#include "loop.h"

#include "vx/assert.h"
#include "vx/clock.h"
#include "vx/fd.h"
#include "vx/json.h"

#include <errno.h>
#include <fcntl.h>

static const char *cache_word(const struct loop *l, uint32_t task)
{
	const struct loop_task *t = &l->t[task];
	if (vx_task_is_group(&l->g->tasks[task]))
		return "group";
	if (t->result == VX_R_NOT_STARTED)
		return "not-started";
	if (t->result == VX_R_HIT)
		return "hit";
	if (!t->executed)
		return "unknown";
	return t->cache == VX_C_MISS ? "miss" : "no-cache";
}

/* How the last attempt was less confined than the task asks for. */
static void less_json(const struct loop *l, uint32_t task, struct vx_json *o)
{
	const struct loop_task *t = &l->t[task];
	const char *words[] = {loop_unboxed(l, task) ? "no sandbox" : NULL,
		t->less & VX_DONE_HOST_PROC ? "host /proc" : NULL,
		t->less & VX_DONE_HOST_PIPES ? "host pipes" : NULL,
		t->less & VX_DONE_NO_MEMORY_LIMIT ? "no memory limit" : NULL};
	struct vx_json *less = NULL;
	for (size_t i = 0; t->executed && i < VX_ARRAY_LEN(words); i++) {
		if (words[i])
			vx_json_add(
				less ? less : (less = vx_json_array()), vx_json_new_str(words[i]));
	}
	if (less)
		vx_json_set(o, "lessConfined", less);
}

static struct vx_json *result_json(const struct loop *l, uint32_t task)
{
	static const char *const words[] = {
		"none", "success", "hit", "failed", "skipped", "aborted", "not-started"};
	const struct loop_task *t = &l->t[task];
	struct vx_json *o = vx_json_object();
	vx_json_set(o, "outcome", vx_json_new_str(words[t->result]));
	if (t->result == VX_R_HIT)
		vx_json_set(o, "upToDate", vx_json_new_bool(t->up_to_date));
	if (t->status && t->result != VX_R_HIT && t->result != VX_R_SUCCESS)
		vx_json_set(o, "status", vx_json_new_str(t->status));
	less_json(l, task, o);
	if (t->executed) {
		vx_json_set(o, "attempts", vx_json_new_int(t->attempt));
		vx_json_set(o, "startMs",
			vx_json_new_double((double)(t->start_ns - l->o->start_ns) / 1e6));
		vx_json_set(
			o, "wallMs", vx_json_new_double((double)(t->end_ns - t->start_ns) / 1e6));
		vx_json_set(o, "cpuMs", vx_json_new_double((double)t->cpu_ns / 1e6));
		if (t->peak_bytes) {
			vx_json_set(o, "peakBytes", vx_json_new_int((int64_t)t->peak_bytes));
			vx_json_set(o, "peakOf",
				vx_json_new_str(t->peak_is_tree ? "tree" : "largest process"));
		}
	}
	return o;
}

static struct vx_json *head_json(const struct loop *l)
{
	struct vx_json *o = vx_json_object(), *selected = vx_json_array();
	vx_json_set(o, "root", vx_json_new_str(l->plan->ws.root));
	for (uint32_t i = 0; i < l->plan->sel.n_projects; i++)
		vx_json_add(selected,
			vx_json_new_str(l->plan->ws.projects[l->plan->sel.projects[i]].name));
	vx_json_set(o, "selected", selected);
	vx_json_set(o, "exitCode", vx_json_new_int(l->code));
	vx_json_set(o, "wallMs", vx_json_new_double((double)(vx_now_ns() - l->o->start_ns) / 1e6));
	vx_json_set(o, "slots", vx_json_new_int(l->slots));
	return o;
}

void loop_write_summary(struct loop *l)
{
	if (!l->o->summary_path)
		return;
	struct vx_buf b = VX_BUF(4ULL << 30);
	struct vx_json *head = head_json(l);
	vx_json_write_shown(head, false, &b);
	vx_json_free(head);
	b.len--; /* the brace comes last */
	vx_buf_adds(&b, ",\"tasks\":[");
	for (uint32_t i = 0; i < l->g->n_tasks; i++) {
		struct vx_task_view v = {.keyer = l->store ? l->keyer : NULL,
			.store_dir = l->store_dir,
			.cache_status = cache_word(l, i),
			.stable = l->t[i].keyed,
			.full = true};
		struct vx_json *o = vx_run_task_json(l->plan, i, &v, &l->arena);
		if (!vx_task_is_group(&l->g->tasks[i]))
			vx_json_set(o, "result", result_json(l, i));
		vx_buf_adds(&b, i ? ",\n" : "\n");
		vx_json_write_shown(o, false, &b);
		vx_json_free(o);
	}
	vx_buf_adds(&b, "]}\n");
	int r = b.overflow
			? -EFBIG
			: vx_write_file_atomic(AT_FDCWD, l->o->summary_path, b.data, b.len, 0644);
	if (r)
		vx_report_warn(l->report, "vx run: --summarize %s: %s", l->o->summary_path,
			vx_strerror(r));
	vx_buf_free(&b);
}
