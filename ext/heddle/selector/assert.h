#pragma once

/*
 * <assert.h> can't be used, because ruby.h defines NDEBUG. Only debug and sanitizer builds evaluate and check the
 * expression.
 */

#include "system.h"

#ifdef HEDDLE_DEBUG
#define HEDDLE_ASSERT(condition)                                                                                      \
    do {                                                                                                              \
        if (!(condition)) {                                                                                           \
            fprintf(stderr, "%s:%d: assertion failed: %s\n", __FILE__, __LINE__, #condition);                         \
            abort();                                                                                                  \
        }                                                                                                             \
    } while (0)
#else
#define HEDDLE_ASSERT(condition) ((void)sizeof(condition))
#endif
