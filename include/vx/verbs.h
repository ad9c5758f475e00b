/* Verbs that other modules bring: a module that has one declares it here, and main's table takes it
 * from VX_MORE_VERBS. */
#ifndef VX_VERBS_H
#define VX_VERBS_H

int vx_cli_cache(int argc, char **argv);
int vx_cli_lock(int argc, char **argv);
int vx_cli_init(int argc, char **argv);

#define VX_MORE_VERBS {"cache", vx_cli_cache}, {"lock", vx_cli_lock}, {"init", vx_cli_init},

#endif
