#pragma once

/*
 * Random pauses of offload threads before and after each call, which trials switch on to find races. Only debug and
 * sanitizer builds have them: elsewhere the function is empty.
 */

#ifdef HEDDLE_DEBUG
#include "system.h"

void heddle_debug_delay(void);
/* Every call is preceded and followed by a pause of up to so many ns; 0: none. */
void heddle_threads_set_delay(int64_t most, unsigned seed);
#else
static inline void heddle_debug_delay(void)
{
}
#endif
