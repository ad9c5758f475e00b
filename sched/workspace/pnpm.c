/* The only file that includes libyaml: pnpm-workspace.yaml and the one key of .yarnrc.yml that
 * planning needs. */
#include "manifest.h"

#include "vx/arena.h"
#include "vx/err.h"
#include "vx/limits.h"

#include <errno.h>
#include <string.h>
#include <yaml.h>

static int not_yaml(const yaml_parser_t *p, const char *where, struct vx_err *err)
{
	return vx_err_set(err, -EINVAL, "%s: line %zu, column %zu: %s%s%s", where,
		p->problem_mark.line + 1, p->problem_mark.column + 1,
		p->problem ? p->problem : "not YAML", p->context ? ", " : "",
		p->context ? p->context : "");
}

static int too_much(
	const char *where, size_t line, uint32_t limit, const char *what, struct vx_err *err)
{
	vx_err_set(err, -E2BIG, "%s: line %zu: more than %u %s", where, line, limit, what);
	return vx_err_fix(err, "no package manager writes such a file: see what has made it");
}

/* Directives are all read in one step, and each is compared with those before it. */
static int check_directives(const char *text, size_t n, const char *where, struct vx_err *err)
{
	uint32_t count = 0;
	size_t line = 1;

	for (const char *p = text, *end = text + n; p && p < end; line++) {
		if (*p == '%' && ++count > VX_MAX_YAML_DIRECTIVES)
			return too_much(where, line, VX_MAX_YAML_DIRECTIVES, "directives", err);
		p = memchr(p, '\n', (size_t)(end - p));
		p += p != NULL;
	}
	return 0;
}

struct amount {
	uint32_t depth, nodes, anchors;
};

/* One event against the limits; *ret_end: the document that counts is over. */
static int count_event(struct amount *a, const yaml_event_t *e, const char *where, bool *ret_end,
	struct vx_err *err)
{
	size_t line = e->start_mark.line + 1;
	const yaml_char_t *anchor =
		e->type == YAML_SCALAR_EVENT           ? e->data.scalar.anchor
		: e->type == YAML_SEQUENCE_START_EVENT ? e->data.sequence_start.anchor
		: e->type == YAML_MAPPING_START_EVENT  ? e->data.mapping_start.anchor
						       : NULL;

	*ret_end = e->type == YAML_DOCUMENT_END_EVENT || e->type == YAML_STREAM_END_EVENT;
	a->anchors += anchor != NULL;
	if (e->type == YAML_SEQUENCE_START_EVENT || e->type == YAML_MAPPING_START_EVENT)
		a->depth++;
	if (e->type == YAML_SEQUENCE_END_EVENT || e->type == YAML_MAPPING_END_EVENT)
		a->depth--;
	else
		a->nodes++;
	if (a->depth > VX_MAX_YAML_DEPTH)
		return too_much(where, line, VX_MAX_YAML_DEPTH, "levels of nesting", err);
	if (a->nodes > VX_MAX_YAML_NODES)
		return too_much(where, line, VX_MAX_YAML_NODES, "values", err);
	return a->anchors > VX_MAX_YAML_ANCHORS
		       ? too_much(where, line, VX_MAX_YAML_ANCHORS, "anchors", err)
		       : 0;
}

/* libyaml takes time with the square of nesting and of anchors: the document is looked through
 * event by event before it is loaded, and left at the first limit. */
static int check_limits(const char *text, size_t n, const char *where, struct vx_err *err)
{
	yaml_parser_t p;
	yaml_event_t e;
	struct amount a = {0};
	bool end = false;
	int r = n > VX_MAX_YAML_BYTES
			? vx_err_set(err, -EFBIG,
				  "%s: larger than %u bytes, the most a YAML file may have", where,
				  VX_MAX_YAML_BYTES)
			: check_directives(text, n, where, err);

	if (r < 0)
		return r;
	if (!yaml_parser_initialize(&p))
		return vx_err_set(err, -ENOMEM, "%s: out of memory", where);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	while (r == 0 && !end) {
		if (!yaml_parser_parse(&p, &e)) {
			r = not_yaml(&p, where, err);
			break;
		}
		r = count_event(&a, &e, where, &end, err);
		yaml_event_delete(&e);
	}
	yaml_parser_delete(&p);
	return r;
}

static int load(
	const char *text, size_t n, const char *where, yaml_document_t *doc, struct vx_err *err)
{
	yaml_parser_t p;
	int r = check_limits(text, n, where, err);

	if (r < 0)
		return r;
	if (!yaml_parser_initialize(&p))
		return vx_err_set(err, -ENOMEM, "%s: out of memory", where);
	yaml_parser_set_input_string(&p, (const unsigned char *)text, n);
	if (!yaml_parser_load(&p, doc))
		r = not_yaml(&p, where, err);
	yaml_parser_delete(&p);
	return r;
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

/* -1: not given */
static int flag(yaml_document_t *doc, yaml_node_t *map, const char *key)
{
	const yaml_node_t *v = member(doc, map, key);

	return v && v->type == YAML_SCALAR_NODE
		       ? strcmp((const char *)v->data.scalar.value, "false") != 0
		       : -1;
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
	struct vx_pnpm_workspace w = VX_PNPM_NONE;
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
	if (r == 0) {
		yaml_node_t *shell = member(&doc, root, "scriptShell");
		w.link_workspace_packages = flag(&doc, root, "linkWorkspacePackages");
		w.enable_pre_post = flag(&doc, root, "enablePrePostScripts");
		if (shell && shell->type == YAML_SCALAR_NODE)
			w.script_shell = scalar(shell, a);
		yaml_node_t *node = member(&doc, root, "nodeOptions");
		if (node && node->type == YAML_SCALAR_NODE)
			w.node_options = scalar(node, a);
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
