/* --affected against keys: random workspaces, random edits. After each one every task whose key
 * differs between two checkouts must be selected; and where one is selected whose key is the same,
 * its reason must be one of those that say that it could not be told.
 *
 * The keys of a commit are those that the workspace had when it was committed and checked out. The
 * seed of a failure is printed: VX_SEED=N VX_STEPS=N repeat it. */
#ifndef AFFECTED_MODEL_H
#define AFFECTED_MODEL_H

#include "../unit/plantest.h"

#include "vx/affected.h"
#include "vx/key.h"

enum am_kind { AM_VX, AM_TURBO };
#define AM_KEPT 6 /* commits whose keys are known */

struct am_keys {
	struct vx_map ids;
	struct vx_digest *v;
	uint32_t n;
	struct vx_arena a;
};

struct am {
	struct plan p;
	uint64_t rng;
	enum am_kind kind;
	bool programs;                /* some configurations are programs */
	bool embedded;                /* there is a repository that no .gitmodules names */
	struct am_keys kept[AM_KEPT]; /* [0] of HEAD, [i] of HEAD~i */
	uint32_t n_kept;
};

/* What was seen, over all seeds. */
struct am_count {
	uint64_t edits, tasks, moved, selected, beyond;
	uint64_t by_reason[16];
};
static struct am_count am_total;

static void am_git(struct am *m, const char *sub, const char *args)
{
	char cmd[2048];
	const char *out;

	snprintf(cmd, sizeof cmd,
		"cd '%s/%s' && git -c user.name=t -c user.email=t@example.com -c commit.gpgsign=false"
		" -c protocol.file.allow=always -c advice.addEmbeddedRepo=false -c core.safecrlf=false %s 2>&1",
		m->p.dir, sub, args);
	if (vxt_sh(cmd, &out) != 0)
		fail_msg("%s: %s", cmd, out);
}

#include "affected_edit.h"

static void am_keys_free(struct am_keys *k)
{
	vx_map_free(&k->ids);
	vx_arena_free(&k->a);
	*k = (struct am_keys){0};
}

/* Loads the workspace and selects every task of it. False: it is broken. */
static bool am_load(struct am *m, struct vx_evaluations *ret)
{
	struct plan *p = &m->p;

	vx_map_free(&p->ws.by_name);
	vx_map_free(&p->ws.by_dir);
	vx_arena_free(&p->a);
	memset(&p->a, 0, sizeof p->a);
	memset(&p->ws, 0, sizeof p->ws);
	memset(&p->err, 0, sizeof p->err);
	p->r = vx_workspace_load(p->dir, &p->a, &p->ws, &p->err);
	if (p->r == 0)
		p->r = vx_config_load_as(&p->ws, &p->a, NULL, ret, &p->err);
	uint32_t n = 0;
	for (uint32_t i = 0; p->r == 0 && i < p->ws.n_projects; i++)
		n += p->ws.projects[i].n_tasks;
	struct vx_request_task *v = vx_arena_array(&p->a, (size_t)n + 1, sizeof *v);
	p->sel = (struct vx_selection){.tasks = v};
	for (uint32_t i = 0; p->r == 0 && i < p->ws.n_projects; i++)
		for (uint32_t k = 0; k < p->ws.projects[i].n_tasks; k++)
			v[p->sel.n_tasks++] =
				(struct vx_request_task){i, p->ws.projects[i].tasks[k]->name};
	if (p->r == 0)
		p->r = vx_graph_build(&p->ws, &p->sel, NULL, &p->a, &p->g, &p->err);
	return p->r == 0;
}

/* The keys of all tasks of the workspace that is loaded. False: one cannot be made. */
static bool am_take(struct am *m, struct am_keys *ret)
{
	struct vx_keyer_opts ko = {.cancel_fd = -1, .threads = 1};
	struct vx_keyer *k;
	const struct vx_key_record *rec;
	int r = vx_keyer_new(&m->p.ws, &m->p.g, &ko, &k, &m->p.err);

	*ret = (struct am_keys){0};
	if (r < 0)
		return false;
	ret->v = vx_arena_array(&ret->a, (size_t)m->p.g.n_tasks + 1, sizeof *ret->v);
	for (uint32_t i = 0; i < m->p.g.n_tasks && r == 0; i++) {
		uint32_t t = m->p.g.topo[i];
		r = vx_key_compute(k, t, &rec, &m->p.err);
		if (r < 0)
			break;
		vx_map_puts(&ret->ids, vx_arena_strdup(&ret->a, m->p.g.tasks[t].id), ret->n);
		ret->v[ret->n++] = rec->key;
	}
	vx_keyer_free(k);
	if (r < 0)
		am_keys_free(ret);
	return r == 0;
}

/* Why more than needed may be selected: the texts that say that something cannot be told. Of those
 * that say it of the whole commit there are two, of a repository inside that was removed and made
 * anew. They are rare (am_say). */
static const char *const am_reasons[] = {" is a submodule in ", " does not have its commit of ",
	"may read what is written by ", " tells of it is not known",
	" may have changed: git converts it", "attributes of git changed, which may convert ",
	".mjs reads", " reads is not known", "vx.config.mjs changed", "vx.config.mjs was removed",
	" cannot be taken: "};

static bool am_may(const char *reason)
{
	for (size_t i = 0; i < sizeof am_reasons / sizeof *am_reasons; i++)
		if (strstr(reason, am_reasons[i])) {
			am_total.by_reason[i]++;
			return true;
		}
	return false;
}

/* The edits of the step that failed. */
static void am_show(struct am *m)
{
	const char *out;
	char cmd[1024];

	snprintf(cmd, sizeof cmd,
		"cd '%s' && git status --short -uall && git diff HEAD | head -c 6000 && git log --oneline | head -3",
		m->p.dir);
	vxt_sh(cmd, &out);
	fprintf(stderr, "%s\n", out);
}

/* What is selected, against the keys of then and now. */
static void am_judge(struct am *m, const struct am_keys *then, const struct am_keys *now,
	const char *base, const char *what)
{
	struct vx_map chosen = {0};
	const struct vx_selection *sel = &m->p.sel;

	for (uint32_t i = 0; i < sel->n_tasks; i++) {
		uint32_t p = sel->tasks[i].project;
		vx_map_puts(&chosen,
			vx_arena_printf(&m->p.a, "%s#%s",
				p == m->p.ws.root_project ? "//" : m->p.ws.projects[p].name,
				sel->tasks[i].task),
			i);
	}
	for (uint32_t t = 0; t < m->p.g.n_tasks; t++) {
		const char *id = m->p.g.tasks[t].id;
		uint32_t was = vx_map_gets(&then->ids, id), is = vx_map_gets(&now->ids, id),
			 at = vx_map_gets(&chosen, id);
		bool moved = was == VX_MAP_NONE || !vx_digest_equal(&then->v[was], &now->v[is]);
		am_total.tasks++;
		am_total.moved += moved;
		am_total.selected += at != VX_MAP_NONE;
		am_total.beyond += at != VX_MAP_NONE && !moved;
		bool wrong = (moved && at == VX_MAP_NONE) ||
			     (!moved && at != VX_MAP_NONE && !am_may(sel->reasons[at]));
		if (wrong)
			am_show(m);
		if (wrong && moved)
			fail_msg(
				"%s: the key of %s is another one than in %s, and it is not selected",
				what, id, base);
		if (wrong)
			fail_msg("%s: the key of %s is that of %s, but it is selected: %s", what,
				id, base, sel->reasons[at]);
	}
	vx_map_free(&chosen);
}

static void am_forget(struct am *m)
{
	for (uint32_t i = 0; i < m->n_kept; i++)
		am_keys_free(&m->kept[i]);
	m->n_kept = 0;
}

/* The workspace becomes a commit, and what a checkout of it would be. */
static void am_commit(struct am *m)
{
	am_git(m, "vendor/lib", "add -A");
	am_git(m, "vendor/lib", "commit -q --allow-empty -m inside");
	if (m->embedded && access(vxt_path(m->p.dir, "p/c/src/emb/.git"), F_OK) == 0) {
		am_git(m, "p/c/src/emb", "add -A");
		am_git(m, "p/c/src/emb", "commit -q --allow-empty -m inside");
	}
	am_git(m, ".", "add -A");
	am_git(m, ".", "commit -q --allow-empty -m step");
	/* line ends as the attributes have them: every file anew */
	if (vxt_sh(vx_arena_printf(&m->p.a,
			   "cd '%s' && git ls-files -z '*.txt' '*.md' '*.c' | xargs -0r rm -f && git checkout -q -f HEAD -- . 2>&1",
			   m->p.dir),
		    NULL) != 0)
		fail_msg("checkout");
	struct am_keys head;
	assert_true(am_load(m, NULL) && am_take(m, &head));
	if (m->n_kept == AM_KEPT)
		am_keys_free(&m->kept[--m->n_kept]);
	memmove(m->kept + 1, m->kept, m->n_kept * sizeof *m->kept);
	m->kept[0] = head;
	m->n_kept++;
}

static void am_revert(struct am *m)
{
	if (vxt_sh(vx_arena_printf(&m->p.a,
			   "cd '%s' && git -C vendor/lib reset -q --hard && git -C vendor/lib clean -qfd &&"
			   " { [ ! -d p/c/src/emb/.git ] || ! git -C p/c/src/emb rev-parse -q --verify HEAD >/dev/null || git -C p/c/src/emb reset -q --hard; } &&"
			   " git reset -q --hard && git clean -qffd 2>&1",
			   m->p.dir),
		    NULL) != 0)
		fail_msg("revert");
}

static void am_open(struct am *m, uint64_t seed)
{
	static const char *const dirs[] = {"p/a", "p/b", "p/c", "p/d", "p/e", "p/a/in", "q/f"};

	memset(m, 0, sizeof *m);
	m->rng = seed * 0x9e3779b97f4a7c15ULL | 1;
	m->kind = seed % 3 == 0 ? AM_TURBO : AM_VX;
	m->programs = seed % 8 == 1 && vxt_sh("node --version >/dev/null 2>&1", NULL) == 0;
	plan_open(&m->p);
	am_git(m, ".", "init -q -b main .");
	am_write(m, ".gitignore", "dist/\n.vx/\n.env\nnode_modules/\n");
	/* ignored: the same in every commit */
	am_write(m, ".env", "A=1\n");
	am_write(m, "p/a/.env", "A=1\n");
	am_write(m, "vendor/lib/s/package.json", "{\"name\":\"s\",\"version\":\"1.0.0\"}");
	am_write(m, "vendor/lib/s/x", "1\n");
	am_git(m, "vendor/lib", "init -q -b main .");
	am_git(m, "vendor/lib", "add -A");
	am_git(m, "vendor/lib", "commit -qm inside");
	am_write(m, "shared/preset.mjs", "export const cmd = \"a\"\n");
	am_write(m, "shared/preset2.mjs", "export const cmd = \"a\"\n");
	am_write(m, "package.json",
		"{\"name\":\"root\",\"workspaces\":[\"p/*\",\"p/a/in\",\"q/*\",\"vendor/lib/*\"],"
		"\"packageManager\":\"npm@10.0.0\"}\n");
	if (m->kind == AM_TURBO)
		am_write(m, "turbo.json", "{\"tasks\":{\"build\":{\"dependsOn\":[\"^build\"]}}}");
	for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
		char path[64];
		snprintf(path, sizeof path, "%s/package.json", dirs[i]);
		char text[128];
		snprintf(text, sizeof text,
			"{\"name\":\"%s\",\"version\":\"1.0.0\",\"scripts\":{\"build\":\"b\"}}",
			am_name(dirs[i]));
		am_write(m, path, text);
		snprintf(path, sizeof path, "%s/vx.json", dirs[i]);
		if (m->kind == AM_VX)
			am_write(m, path,
				"{\"tasks\":{\"build\":{\"exec\":{\"command\":\"b\"},\"cache\":{\"inputs\":{\"files\":[\"src/**\"]},\"outputs\":{\"files\":[]}}}}}");
	}
	am_commit(m);
}

static void am_close(struct am *m)
{
	am_forget(m);
	plan_close(&m->p);
}

/* One edit, or a few of them. False: what they made is no workspace, and was undone. */
static bool am_step(struct am *m, const char *what)
{
	struct vx_evaluations evaluated = {0};
	struct am_keys now;
	uint32_t edits = 1 + (am_rand(m, 4) ? 0 : am_rand(m, 3));
	bool had = m->embedded;

	for (uint32_t i = 0; i < edits; i++)
		am_edit(m);
	if (!am_load(m, &evaluated) || !am_take(m, &now)) {
		m->embedded = had;
		am_revert(m);
		return false;
	}
	uint32_t back = am_rand(m, 4) ? 0 : am_rand(m, m->n_kept);
	char base[32];
	snprintf(base, sizeof base, "HEAD~%u", back);
	struct vx_affected_opts ao = {.evaluated = &evaluated};
	if (vx_affected_narrow(&m->p.ws, base, &ao, &m->p.a, &m->p.sel, &m->p.err) < 0)
		fail_msg("%s: %s", what, m->p.err.what);
	am_judge(m, &m->kept[back], &now, base, what);
	am_keys_free(&now);
	am_total.edits += edits;
	am_commit(m);
	return true;
}

static void am_run(uint64_t seed, uint32_t steps)
{
	struct am m;

	am_open(&m, seed);
	for (uint32_t i = 0; i < steps; i++) {
		char what[64];
		snprintf(what, sizeof what, "VX_SEED=%llu, step %u", (unsigned long long)seed, i);
		am_step(&m, what);
	}
	am_close(&m);
}

static void am_say(void)
{
	fprintf(stderr,
		"# %llu edits; of %llu tasks %llu had another key, %llu were selected, %llu beyond:\n",
		(unsigned long long)am_total.edits, (unsigned long long)am_total.tasks,
		(unsigned long long)am_total.moved, (unsigned long long)am_total.selected,
		(unsigned long long)am_total.beyond);
	for (size_t i = 0; i < sizeof am_reasons / sizeof *am_reasons; i++)
		if (am_total.by_reason[i])
			fprintf(stderr, "#   %llu \"%s\"\n",
				(unsigned long long)am_total.by_reason[i], am_reasons[i]);
	assert_true(20 * (am_total.by_reason[0] + am_total.by_reason[1]) <= am_total.tasks);
}

#endif
