/* Inside the workspace module: package edges. */
#ifndef VX_EDGES_H
#define VX_EDGES_H

#include "manifest.h"

struct vx_edge_rules {
	/* a plain range is linked to a local package that satisfies it (not so for pnpm from 9 on,
	 * unless told) */
	bool link_ranges;
	bool turbo;       /* as Turborepo draws them: see target_as_turbo */
	bool alias_links; /* npm:name@range may be linked to a local package called name (pnpm) */
	const struct vx_catalog_entry *catalogs;
	uint32_t n_catalogs;
};

/* Fills ws->projects[i].deps from manifests[i]; ws->by_name and by_dir are complete. */
int vx_edges_make(struct vx_workspace *ws, const struct vx_manifest *manifests,
	const struct vx_edge_rules *rules, struct vx_arena *keep, struct vx_arena *scratch,
	struct vx_err *err);

#endif
