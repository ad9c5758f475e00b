/* The trials of tests/fault/test_death.c, many more of them. */
#define TRIALS 40
#include "../fault/test_death.c"
