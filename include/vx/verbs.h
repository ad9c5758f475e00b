/* Verbs that other modules bring: a module that has one declares it here, and main's table takes it from VX_MORE_VERBS. */
#ifndef VX_VERBS_H
#define VX_VERBS_H

#define VX_MORE_VERBS

#endif
