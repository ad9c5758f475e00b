/* Named points at which tests kill the process, to prove that dying there leaves nothing wrong.
 *
 * VX_POINT("save.renamed") does nothing in the product. Compiled with VX_TEST_POINTS it kills its
 * own process with SIGKILL when the environment has VX_CRASH_AT=save.renamed, or
 * VX_CRASH_AT=save.renamed:N for the Nth time that the point is passed. VX_POINT_LIST=<file>
 * appends each name that is passed for the first time to a file, so that a driver learns which
 * exist. Any thread. */
#ifndef VX_POINT_H
#define VX_POINT_H

#ifdef VX_TEST_POINTS
void vx_point_hit(const char *name);
#define VX_POINT(name) vx_point_hit(name)
#else
#define VX_POINT(name) ((void)0)
#endif

#endif
