#pragma once

/*
 * Random pauses of offload threads before and after each call, which tests switch on to find race conditions. Only
 * debug and sanitizer builds have them; in other builds heddle_debug_delay does nothing.
 */

#ifdef HEDDLE_DEBUG
#include "system.h"

void heddle_debug_delay(void);
/* Adds a pause of up to `most` ns before and after every call. If `most` is 0, there are no pauses. */
void heddle_threads_set_delay(int64_t most, unsigned seed);
#else
static inline void heddle_debug_delay(void)
{
}
#endif
