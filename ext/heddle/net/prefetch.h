#pragma once

/*
 * Asks the processor to load a record into its caches. Worth it for a walk over thousands of records, where each would
 * otherwise be waited for. The address may be any, NULL included. No Ruby here.
 */

#include "system.h"

enum {
    HEDDLE_CACHE_LINE = 64, /* bytes; where lines are longer, some are asked for twice */
};

static inline void heddle_prefetch(const void *record, size_t size)
{
    for (size_t at = 0; at < size; at += HEDDLE_CACHE_LINE)
        __builtin_prefetch((const char *)record + at);
}
