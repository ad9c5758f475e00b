/* Inside the graph module: a graph under construction. Declared tasks are numbered flat:
 * base[project] + index in the project's list. */
#ifndef VX_GRAPH_BUILD_H
#define VX_GRAPH_BUILD_H

#include "vx/arena.h"
#include "vx/graph.h"

struct vx_err;

#define FEW 16U /* tasks of a project that are as well looked at one after another */

struct idlist {
	uint32_t *v;
	uint32_t n, cap;
};

struct builder {
	const struct vx_workspace *ws;
	struct vx_arena *keep;    /* the graph's */
	struct vx_arena *scratch; /* freed when it is built */
	struct vx_err *err;

	uint32_t n_decls;
	uint32_t *base;  /* per project, and one past the last */
	uint32_t *owner; /* per decl: its project */
	uint32_t *name;  /* per decl: id of its name */
	struct vx_map name_ids;
	/* project and name -> decl, of projects that declare more than FEW tasks */
	struct vx_map by_pair;
	struct declared {
		uint32_t project, name;
	} * pairs;               /* its keys, per decl */
	struct vx_strlist names; /* id -> name */

	struct idlist *deps; /* per decl, once resolved */
	/* per decl: projects that its `^name` entries pass through and its key folds */
	struct idlist *through;
	bool *wanted;        /* per decl: in the graph */
	struct idlist queue; /* wanted, not yet resolved */

	uint32_t *seen;   /* per decl: stamp, for uniqueness in one list */
	uint32_t *passed; /* per project: stamp, for ^name */
	uint32_t *noted;  /* per project: stamp, for uniqueness in `through` */
	uint32_t stamp, pass_stamp, note_stamp;
	struct idlist stack;
	uint64_t steps_before; /* of comparing globs: where the count began */
};

void idlist_push(struct idlist *l, struct vx_arena *a, uint32_t x);
const struct vx_task_decl *decl_of(const struct builder *b, uint32_t d);
const char *decl_id(const struct builder *b, uint32_t d, struct vx_arena *a); /* "project#task" */
/* the file that declares it, relative to the root */
const char *decl_source(const struct builder *b, uint32_t d);
uint32_t find_decl(const struct builder *b, uint32_t project, uint32_t name); /* VX_MAP_NONE */
void want(struct builder *b, uint32_t d);

/* depends.c: fills b->deps[d] from the declaration. */
int resolve_depends(struct builder *b, uint32_t d);
/* depends.c: which of a task's deps its key folds, by cache.inputs.tasks. `deps` are decls. */
int resolve_key_deps(struct builder *b, uint32_t d, const struct idlist *deps, struct idlist *ret);

/* order.c: *topo upstream first; a cycle is -ELOOP with its path. */
int order_tasks(
	struct vx_graph *g, struct vx_arena *keep, struct vx_arena *scratch, struct vx_err *err);

/* checks.c: outputs against outputs and inputs of the whole workspace's declarations. */
int check_files(struct builder *b);

#endif
