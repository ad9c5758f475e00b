/* Every bound of the product, by name. Reaching one is an error that names it; nothing is cut
 * silently. */
#ifndef VX_LIMITS_H
#define VX_LIMITS_H

#define VX_MAX_TASKS 1000000U
#define VX_MAX_PROJECTS 100000U
#define VX_MAX_TASK_DEPS 10000U
#define VX_MAX_SLOTS 4096U              /* CPU slots; also the most workers of one run */
#define VX_MAX_CONFIG_BYTES (64U << 20) /* one configuration file or manifest */
#define VX_MAX_JSON_DEPTH 64
#define VX_MAX_JSON_VALUES 4000000U  /* of one JSON document */
#define VX_MAX_YAML_BYTES (4U << 20) /* one YAML file: libyaml is slower than our JSON scanner */
#define VX_MAX_YAML_DEPTH 64
#define VX_MAX_YAML_NODES 200000U
#define VX_MAX_YAML_ANCHORS 256U   /* each is compared with all others */
#define VX_MAX_YAML_DIRECTIVES 16U /* likewise */
#define VX_MAX_LIST 20000U         /* entries of one list in a configuration */
#define VX_MAX_MEMBERS 20000U      /* tasks, scripts or variables that one object declares */
#define VX_MAX_NAME 1024U          /* bytes of the name of a project, a task or a variable */
#define VX_MAX_FILTERS 1000U
#define VX_MAX_GLOB_BYTES (4U << 20) /* of one list of globs, its braces expanded */
/* Elementary steps of matching, so that what a repository says cannot keep us for minutes: about a
 * second's worth. Patterns that people write need thousands of times less. */
#define VX_MAX_GLOB_STEPS 400000000U
/* The same for git's ignore rules and attributes, by thread, and a share for each file on top. */
#define VX_MAX_IGNORE_STEPS 400000000U
#define VX_IGNORE_STEPS_PER_FILE 2000U
#define VX_MAX_GIT_INCLUDES 1000U     /* files that git's configuration includes, one by another */
#define VX_MAX_PATH 4096U             /* bytes, the NUL included */
#define VX_MAX_DESC_BYTES (1U << 20)  /* one task descriptor in shared memory */
#define VX_KEEP_HEAD_BYTES (8U << 20) /* kept output of one task: its first ... */
#define VX_KEEP_TAIL_BYTES (8U << 20) /* ... and its last bytes */
#define VX_MAX_MOUNTS 100000U         /* mounts of one sandbox */
#define VX_MAX_FILES 10000000U        /* files scanned in one workspace */
/* One file whose identity is taken: minutes of hashing. A sparse file may claim much more. */
#define VX_MAX_INPUT_BYTES (1ULL << 40)
#define VX_MAX_LOCKFILE_BYTES (256U << 20) /* one lockfile of a package manager */
/* arguments bubblewrap takes, where it must do the binds itself */
#define VX_MAX_BWRAP_ARGS 9000U
#define VX_MAX_SPAWN_FDS 48U         /* descriptors handed to one program */
#define VX_MAX_TASK_PROCESSES 16384U /* of one task with a cgroup of its own, threads counted */
#define VX_GIT_TIMEOUT_MS 600000     /* one git of vx's own */
#define VX_MAX_TIMEOUT_MS 2147483647
#define VX_DEFAULT_GRACE_MS 2000 /* between SIGTERM and SIGKILL; VX_KILL_GRACE_MS */
/* reading goes on this long after a command's exit while a leftover holds a pipe open */
#define VX_LEFTOVER_READ_MS 250

#endif
