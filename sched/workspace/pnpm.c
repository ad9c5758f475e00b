/* The only file that includes libyaml: pnpm-workspace.yaml and the one key of .yarnrc.yml that
 * planning needs. */
#include "manifest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

static int load(
	const char *text, size_t n, const char *where, yaml_document_t *doc, struct vx_err *err)
{
	yaml_parser_t p;

	if (n > VX_MAX_CONFIG_BYTES)
		return vx_err_set(err, -EFBIG,
			"%s: larger than %u bytes, the most a configuration file may have", where,
			VX_MAX_CONFIG_BYTES);
	if (!yaml_parser_initialize(&p))
		return vx_err_set(err, -ENOMEM, "%s: out of memory", where);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	if (yaml_parser_load(&p, doc)) {
		yaml_parser_delete(&p);
		return 0;
	}
	vx_err_set(err, -EINVAL, "%s: line %zu, column %zu: %s%s%s", where, p.problem_mark.line + 1,
		p.problem_mark.column + 1, p.problem ? p.problem : "not YAML",
		p.context ? ", " : "", p.context ? p.context : "");
	yaml_parser_delete(&p);
	return -EINVAL;
}

static const char *scalar(yaml_node_t *n, struct vx_arena *a)
{
	return vx_arena_strndup(a, (const char *)n->data.scalar.value, n->data.scalar.length);
}

static bool is_null(const yaml_node_t *n)
{
	const char *v = (const char *)n->data.scalar.value;

	return n->type == YAML_SCALAR_NODE && n->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       (*v == '\0' || strcmp(v, "~") == 0 || strcmp(v, "null") == 0);
}

static yaml_node_t *member(yaml_document_t *doc, yaml_node_t *map, const char *key)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return NULL;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		yaml_node_t *k = yaml_document_get_node(doc, p->key);
		if (k && k->type == YAML_SCALAR_NODE &&
			strcmp((const char *)k->data.scalar.value, key) == 0) {
			yaml_node_t *v = yaml_document_get_node(doc, p->value);
			return v && !is_null(v) ? v : NULL;
		}
	}
	return NULL;
}

static int fail_at(const char *where, const yaml_node_t *n, const char *what, struct vx_err *err)
{
	return vx_err_set(err, -EINVAL, "%s: line %zu, column %zu: %s", where,
		n->start_mark.line + 1, n->start_mark.column + 1, what);
}

static int take_packages(yaml_document_t *doc, yaml_node_t *seq, const char *where,
	struct vx_arena *a, struct vx_strs *ret, struct vx_err *err)
{
	struct vx_strlist l = {0};

	if (seq->type != YAML_SEQUENCE_NODE)
		return fail_at(where, seq, "`packages` must be a list of patterns", err);
	for (yaml_node_item_t *i = seq->data.sequence.items.start; i < seq->data.sequence.items.top;
		i++) {
		yaml_node_t *n = yaml_document_get_node(doc, *i);
		if (!n || n->type != YAML_SCALAR_NODE)
			return fail_at(
				where, n ? n : seq, "an entry of `packages` must be a string", err);
		vx_strlist_add(&l, a, scalar(n, a));
	}
	*ret = vx_strlist_done(&l);
	return 0;
}

struct catalog_list {
	struct vx_catalog_entry *v;
	uint32_t n, cap;
};

static void take_catalog(yaml_document_t *doc, yaml_node_t *map, const char *catalog,
	struct vx_arena *a, struct catalog_list *l)
{
	if (!map || map->type != YAML_MAPPING_NODE)
		return;
	for (yaml_node_pair_t *p = map->data.mapping.pairs.start; p < map->data.mapping.pairs.top;
		p++) {
		yaml_node_t *k = yaml_document_get_node(doc, p->key),
			    *v = yaml_document_get_node(doc, p->value);
		if (!k || !v || k->type != YAML_SCALAR_NODE || v->type != YAML_SCALAR_NODE)
			continue;
		if (l->n == l->cap) {
			l->cap = l->cap ? l->cap * 2 : 64;
			struct vx_catalog_entry *w = vx_arena_array(a, l->cap, sizeof *w);
			if (l->n)
				memcpy(w, l->v, l->n * sizeof *w);
			l->v = w;
		}
		l->v[l->n++] = (struct vx_catalog_entry){catalog, scalar(k, a), scalar(v, a)};
	}
}

static void take_catalogs(
	yaml_document_t *doc, yaml_node_t *root, struct vx_arena *a, struct vx_pnpm_workspace *w)
{
	struct catalog_list l = {0};
	yaml_node_t *many = member(doc, root, "catalogs");

	take_catalog(doc, member(doc, root, "catalog"), "default", a, &l);
	if (many && many->type == YAML_MAPPING_NODE)
		for (yaml_node_pair_t *p = many->data.mapping.pairs.start;
			p < many->data.mapping.pairs.top; p++) {
			yaml_node_t *k = yaml_document_get_node(doc, p->key);
			if (k && k->type == YAML_SCALAR_NODE)
				take_catalog(doc, yaml_document_get_node(doc, p->value),
					scalar(k, a), a, &l);
		}
	w->catalogs = l.v;
	w->n_catalogs = l.n;
}

int vx_pnpm_parse(const char *text, size_t n, const char *where, struct vx_arena *a,
	struct vx_pnpm_workspace *ret, struct vx_err *err)
{
	struct vx_pnpm_workspace w = {.link_workspace_packages = -1};
	yaml_document_t doc;
	int r = load(text, n, where, &doc, err);

	if (r < 0)
		return r;
	yaml_node_t *root = yaml_document_get_root_node(&doc); /* NULL for an empty file */
	if (root && root->type != YAML_MAPPING_NODE && !is_null(root))
		r = fail_at(where, root, "the file must be a mapping", err);
	yaml_node_t *packages = r == 0 ? member(&doc, root, "packages") : NULL;
	if (packages)
		r = take_packages(&doc, packages, where, a, &w.packages, err);
	yaml_node_t *link = r == 0 ? member(&doc, root, "linkWorkspacePackages") : NULL;
	if (link && link->type == YAML_SCALAR_NODE)
		w.link_workspace_packages =
			strcmp((const char *)link->data.scalar.value, "false") != 0;
	if (r == 0) {
		take_catalogs(&doc, root, a, &w);
		*ret = w;
	}
	yaml_document_delete(&doc);
	return r;
}

int vx_yaml_scalar(const char *text, size_t n, const char *where, const char *key,
	struct vx_arena *a, const char **ret, struct vx_err *err)
{
	yaml_document_t doc;
	int r = load(text, n, where, &doc, err);

	if (r < 0)
		return r;
	yaml_node_t *v = member(&doc, yaml_document_get_root_node(&doc), key);
	*ret = v && v->type == YAML_SCALAR_NODE ? scalar(v, a) : NULL;
	yaml_document_delete(&doc);
	return 0;
}
