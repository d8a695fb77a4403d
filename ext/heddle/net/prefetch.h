#pragma once

/*
 * Asks the processor to load a record into its caches. Useful in a walk over thousands of records: otherwise the
 * processor would wait for each of them. Any address is allowed, even NULL. Uses no Ruby.
 */

#include "system.h"

enum {
    HEDDLE_CACHE_LINE = 64, /* bytes; where lines are longer, some are prefetched twice */
};

static inline void heddle_prefetch(const void *record, size_t size)
{
    for (size_t at = 0; at < size; at += HEDDLE_CACHE_LINE)
        __builtin_prefetch((const char *)record + at);
}
