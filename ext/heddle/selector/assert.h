#pragma once

/*
 * Replaces assert(), which ruby.h disables by defining NDEBUG. The expression is evaluated and checked only in debug
 * and sanitizer builds.
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
