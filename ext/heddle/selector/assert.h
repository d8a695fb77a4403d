#pragma once

/* <assert.h> is of no use here: ruby.h defines NDEBUG. Debug and sanitizer builds check, others don't evaluate. */

#ifdef HEDDLE_DEBUG
#include <stdio.h>
#include <stdlib.h>
#define HEDDLE_ASSERT(condition)                                                                                      \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);                                 \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)
#else
#define HEDDLE_ASSERT(condition) ((void)sizeof(condition))
#endif
