#pragma once

/*
 * Makes the processor load a record into its caches in advance. In a walk over thousands of records, the processor then
 * need not wait for the memory of each. Any address is allowed, even NULL. Uses no Ruby.
 */

#include "system.h"

enum {
    HEDDLE_CACHE_LINE = 64, /* in bytes; if the processor's lines are longer, some are prefetched twice */
};

static inline void heddle_prefetch(const void *record, size_t size)
{
    for (size_t at = 0; at < size; at += HEDDLE_CACHE_LINE)
        __builtin_prefetch((const char *)record + at);
}
