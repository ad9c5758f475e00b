/* The parts of a key, in their order. A part is u32le length and bytes of its label, u64le length
 * and bytes of its value. docs/keys.md lists them. */
#include "key_int.h"

#include "vx/assert.h"
#include "vx/limits.h"
#include "vx/secret.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

struct encoder {
	struct vx_keyer *k;
	struct vx_sha256 h;
	struct vx_key_part *parts; /* malloc'ed; explain only */
	uint32_t n, cap;
};

static void hash_part(struct encoder *e, const char *label, const void *value, size_t n)
{
	uint32_t label_n = (uint32_t)strlen(label), l = htole32(label_n);
	uint64_t v = htole64((uint64_t)n);
	vx_sha256_add(&e->h, &l, sizeof l);
	vx_sha256_add(&e->h, label, label_n);
	vx_sha256_add(&e->h, &v, sizeof v);
	vx_sha256_add(&e->h, value, n);
}

static void show(struct encoder *e, const char *label, const char *value)
{
	if (!e->k->o.explain)
		return;
	if (e->n == e->cap) {
		e->cap = e->cap ? e->cap * 2 : 32;
		e->parts = vx_xrealloc(e->parts, e->cap * sizeof *e->parts);
	}
	e->parts[e->n++] = (struct vx_key_part){vx_arena_strdup(&e->k->a, label), value};
}

static void part(struct encoder *e, const char *label, const char *value)
{
	hash_part(e, label, value, strlen(value));
	if (e->k->o.explain)
		show(e, label, vx_arena_strdup(&e->k->a, value));
}

static void part_hex(
	struct encoder *e, const char *label, const void *value, size_t n, const char *prefix)
{
	hash_part(e, label, value, n);
	if (!e->k->o.explain)
		return;
	char *hex = vx_arena_alloc(&e->k->a, 2 * n + 1);
	vx_hex(value, n, hex);
	show(e, label, vx_arena_printf(&e->k->a, "%s%s", prefix, hex));
}

static void encode_fixed(struct encoder *e)
{
	static struct utsname u;
	char label[64], platform[160];
	if (!u.sysname[0]) /* keys are encoded by one thread */
		uname(&u);
	snprintf(platform, sizeof platform, "%s/%s", u.sysname, u.machine);
	snprintf(label, sizeof label, "%d", VX_KEY_VERSION);
	part(e, "version", label);
	part(e, "platform", platform);
}

static void encode_fingerprint(struct encoder *e, const struct fixed_round *f)
{
	char label[64];
	for (uint32_t i = 0; i < N_FINGERPRINT; i++)
		if (f->v[i].present) {
			snprintf(label, sizeof label, "fingerprint:%s", f->v[i].name);
			part_hex(e, label, f->v[i].digest.b, sizeof f->v[i].digest.b, "sha256:");
		}
	if (e->k->n_root_projects)
		part_hex(e, "rootDependencies", f->stands_digest.b, sizeof f->stands_digest.b,
			"sha256:");
	if (f->n_globals)
		part_hex(e, "globalFiles", f->globals_digest.b, sizeof f->globals_digest.b,
			"sha256:");
	for (uint32_t i = 0; i < f->n_globals && e->k->o.explain; i++) {
		char hex[65];
		vx_hex(f->globals[i].oid.b, f->globals[i].oid.n, hex);
		show(e, vx_arena_printf(&e->k->a, "globalFile:%s", f->globals[i].path),
			vx_arena_strdup(&e->k->a, hex));
	}
}

/* "mode " when it is not a plain file, and the id in hex. */
static size_t identity_text(const struct vx_key_input *in, char ret[80])
{
	size_t n = 0;
	if (in->mode != 0100644)
		n = (size_t)sprintf(ret, "%o ", in->mode);
	vx_hex(in->oid.b, in->oid.n, ret + n);
	return n + 2 * (size_t)in->oid.n;
}

/* The manifest, ignored by git or not. */
static int encode_manifest(
	struct encoder *e, const struct vx_project *p, struct record *rec, struct vx_err *err)
{
	struct vx_keyer *k = e->k;
	const char *path = p->manifest;
	if (!path)
		path = vx_key_dir_is_root(p->dir)
			       ? "package.json"
			       : vx_arena_printf(&k->a, "%s/package.json", p->dir);
	struct vx_file *f = vx_files_find(&k->table, path),
		       own = {.path = path, .len = (uint32_t)strlen(path)};
	int r = 0;
	if (!f) {
		f = &own;
		r = vx_identity_take(vx_source_fd(k->src), path, vx_source_kind(k->src),
			vx_source_trusts_exec(k->src), &k->cancel, f);
	} else if (!f->has_oid) {
		r = vx_identity_take(vx_source_fd(k->src), path, vx_source_kind(k->src),
			vx_source_trusts_exec(k->src), &k->cancel, f);
	}
	if (r == -ENOENT) {
		rec->manifest.path = path;
		part(e, "package.json", "");
		return 0;
	}
	if (r < 0)
		return vx_identity_failed(r, e->k->g->tasks[rec->pub.task].id, path, err);
	char text[80];
	vx_key_input_of(f, &rec->manifest);
	identity_text(&rec->manifest, text);
	part(e, "package.json", text);
	if (rec->manifest.mode != 0120000)
		return 0;
	r = vx_key_read_through(vx_source_fd(k->src), path, &rec->behind);
	if (r < 0)
		return vx_key_read_failed(k, r, path, err);
	part_hex(e, "package.json behind its link", rec->behind.digest.b,
		rec->behind.present ? sizeof rec->behind.digest.b : 0, "sha256:");
	return 0;
}

/* A variable's value, told apart from unset. What is secret by its name, or because the task says
 * so, is shown as an HMAC only. */
static void env_part(struct encoder *e, const char *kind, const char *name, const char *value,
	const struct vx_task_decl *d)
{
	struct vx_keyer *k = e->k;
	char *label = malloc(strlen(kind) + strlen(name) + 2),
	     *text = value ? malloc(strlen(value) + 2) : NULL;
	if (!label || (value && !text))
		abort();
	sprintf(label, "%s:%s", kind, name);
	if (text)
		sprintf(text, "=%s", value);
	hash_part(e, label, text ? text : "", text ? strlen(text) : 0);
	if (k->o.explain) {
		const char *shown = text ? vx_arena_strdup(&k->a, text) : "";
		if (value && vx_secret_name(name, strlen(name), d->exec.secret)) {
			struct vx_digest mac;
			char hex[VX_DIGEST_HEX] = "?";
			if (k->o.mask_key) {
				vx_hmac_sha256(k->o.mask_key, 32, value, strlen(value), &mac);
				vx_hex(mac.b, sizeof mac.b, hex);
			}
			shown = vx_arena_printf(&k->a, "sha256:%s", hex);
		}
		show(e, label, shown);
	}
	free(label);
	free(text);
}

static bool is_plain_name(const char *n, enum vx_dialect d)
{
	return d == VX_DIALECT_VX || (n[0] != '!' && n[0] != '=' && !strpbrk(n, "*\\"));
}

/* Names that a list gives plainly or selects by a wildcard, sorted, each with its value or as
 * unset. */
static void encode_env(struct encoder *e, const char *kind, struct vx_strs list,
	const struct vx_task_decl *d, enum vx_dialect dialect)
{
	struct vx_arena a = {0};
	struct vx_strlist names = {0};
	struct vx_strs set = vx_env_select(list, (const char *const *)environ, dialect, &a);
	for (uint32_t i = 0; i < set.n; i++)
		vx_strlist_add(&names, &a, vx_arena_strndup(&a, set.v[i], strcspn(set.v[i], "=")));
	for (uint32_t i = 0; i < list.n; i++)
		if (is_plain_name(list.v[i], dialect) && !getenv(list.v[i]))
			vx_strlist_add(&names, &a, list.v[i]);
	vx_strlist_sort_unique(&names);
	for (uint32_t i = 0; i < names.n; i++)
		env_part(e, kind, names.v[i], getenv(names.v[i]), d);
	vx_arena_free(&a);
}

static int encode_probes(struct encoder *e, const char *kind, struct vx_strs list, const char *cwd,
	const char *task_id, struct vx_err *err)
{
	for (uint32_t i = 0; i < list.n; i++) {
		const struct probe_result *p;
		if (e->k->o.unprobed) {
			part(e, kind, list.v[i]);
			continue;
		}
		int r = vx_key_probe(e->k, cwd, list.v[i], &p, task_id, err);
		if (r < 0)
			return r;
		part(e, kind, list.v[i]);
		hash_part(e, "stdout", p->out, p->out_n);
		show(e, "stdout", p->out);
		hash_part(e, "stderr", p->err, p->err_n);
		show(e, "stderr", p->err);
	}
	return 0;
}

static int digest_cmp(const void *a, const void *b)
{
	return memcmp((*(const struct vx_key_record *const *)a)->key.b,
		(*(const struct vx_key_record *const *)b)->key.b, VX_DIGEST_BYTES);
}

static void encode_upstream(struct encoder *e, const struct vx_task *t)
{
	struct vx_keyer *k = e->k;
	const struct vx_key_record **up = vx_xcalloc(t->n_key_deps + 1, sizeof *up);
	for (uint32_t i = 0; i < t->n_key_deps; i++) {
		vx_assert(k->records[t->key_deps[i]]);
		up[i] = &k->records[t->key_deps[i]]->pub;
	}
	qsort(up, t->n_key_deps, sizeof *up, digest_cmp);
	for (uint32_t i = 0; i < t->n_key_deps; i++) {
		hash_part(e, "upstream", up[i]->key.b, VX_DIGEST_BYTES);
		if (k->o.explain) {
			char hex[VX_DIGEST_HEX];
			vx_hex(up[i]->key.b, VX_DIGEST_BYTES, hex);
			show(e, vx_arena_printf(&k->a, "upstream:%s", k->g->tasks[up[i]->task].id),
				vx_arena_strdup(&k->a, hex));
		}
	}
	free(up);
}

/* Projects that are passed through: name and files of each. */
static void encode_passed(struct encoder *e, const struct vx_task *t, const struct record *r)
{
	struct vx_keyer *k = e->k;
	for (uint32_t i = 0; i < t->n_passed; i++) {
		const char *name = k->ws->projects[t->passed[i]].name;
		hash_part(e, "passed", name, strlen(name));
		hash_part(e, "files", r->passed[i]->digest.b, VX_DIGEST_BYTES);
		if (k->o.explain) {
			char hex[VX_DIGEST_HEX];
			vx_hex(r->passed[i]->digest.b, VX_DIGEST_BYTES, hex);
			show(e, vx_arena_printf(&k->a, "passed:%s", name),
				vx_arena_printf(&k->a, "sha256:%s", hex));
		}
	}
}

static void encode_inputs(struct encoder *e, const struct vx_key_record *r)
{
	char value[VX_MAX_PATH + 96];
	for (uint32_t i = 0; i < r->n_inputs; i++) {
		size_t n = strlen(r->inputs[i].path) + 1;
		memcpy(value, r->inputs[i].path, n);
		n += identity_text(&r->inputs[i], value + n);
		hash_part(e, "file", value, n);
	}
}

static int encode_all(
	struct encoder *e, const struct vx_task *t, struct record *r, struct vx_err *err)
{
	struct vx_keyer *k = e->k;
	const struct vx_project *p = &k->ws->projects[t->project];
	const struct vx_task_decl *d = t->decl;
	encode_fixed(e);
	part(e, "task", t->id);
	encode_fingerprint(e, r->fixed);
	int res = encode_manifest(e, p, r, err);
	if (res < 0)
		return res;
	part(e, "config", d->canonical ? d->canonical : "");
	for (uint32_t i = 0; t->requested && i < k->o.forwarded.n; i++)
		part(e, "arg", k->o.forwarded.v[i]);
	if (k->ws->settings.turbo)
		encode_env(e, "globalEnv", k->ws->settings.global_env, d, VX_DIALECT_TURBO);
	if (vx_key_takes_chosen(d))
		encode_env(e, "env", d->cache.env, d, d->dialect);
	if (d->has_cache && d->has_exec) {
		res = encode_probes(e, "runtime", d->cache.runtime, p->dir, t->id, err);
		if (res == 0)
			res = encode_probes(
				e, "workspaceRuntime", d->cache.workspace_runtime, ".", t->id, err);
		if (res < 0)
			return res;
		r->pub.folds_runtime = d->cache.runtime.n || d->cache.workspace_runtime.n;
	}
	encode_upstream(e, t);
	encode_passed(e, t, r);
	encode_inputs(e, &r->pub);
	return 0;
}

int vx_key_encode(struct vx_keyer *k, uint32_t task, struct record *r, struct vx_err *err)
{
	struct encoder e = {.k = k};
	vx_sha256_init(&e.h);
	int res = encode_all(&e, &k->g->tasks[task], r, err);
	if (res == 0) {
		vx_sha256_done(&e.h, &r->pub.key);
		if (e.n)
			r->pub.parts = vx_arena_dup(&k->a, e.parts, e.n * sizeof *e.parts);
		r->pub.n_parts = e.n;
	}
	free(e.parts);
	return res;
}
