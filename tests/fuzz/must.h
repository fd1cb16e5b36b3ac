/* What has to hold in a fuzz target: else it says where it stopped, and stops. */
#ifndef TESTS_FUZZ_MUST_H
#define TESTS_FUZZ_MUST_H

#include <stdio.h>

#define MUST(cond)                                                                                 \
    do {                                                                                           \
        if (!(cond)) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #cond);                             \
            __builtin_trap();                                                                      \
        }                                                                                          \
    } while (0)

#endif
