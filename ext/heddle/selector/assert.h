#pragma once

/* <assert.h> is of no use here: ruby.h defines NDEBUG. Debug and sanitizer builds check, others don't evaluate. */

#include "system.h"

#ifdef HEDDLE_DEBUG
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
