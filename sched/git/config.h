/* A parser of git's configuration files: git-config(1), "Syntax". One callback a variable; the
 * caller follows includes. */
#ifndef VX_GIT_CONFIG_H
#define VX_GIT_CONFIG_H

#include <stddef.h>

/* `name` is "section.key" or "section.subsection.key", section and key in lower case; `value` NULL
 * for a variable without "=". Non-zero ends the parse. */
typedef int vx_gitconf_fn(void *arg, const char *name, const char *value);
/* 0, what the callback returned, or -EINVAL. */
int vx_gitconf_parse(const char *text, size_t n, vx_gitconf_fn *each, void *arg);
/* 1, 0, or -1 when it is no boolean. NULL is true. */
int vx_gitconf_bool(const char *value);

#endif
