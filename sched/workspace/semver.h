/* Inside the workspace module: what of a text is semver at all. See vx_semver_satisfies in
 * vx/workspace.h. */
#ifndef VX_SEMVER_H
#define VX_SEMVER_H

#include <stdbool.h>

bool vx_semver_is_range(const char *range);
bool vx_semver_is_version(const char *version);

#endif
