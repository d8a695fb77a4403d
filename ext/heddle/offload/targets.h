#ifndef HEDDLE_OFFLOAD_TARGETS_H
#define HEDDLE_OFFLOAD_TARGETS_H

/*
 * Fiddle makes every call without the GVL by one function of its own, so that function's library says nothing of what is
 * called. The address of the program's function lies in the call's argument, at a place that a call of a known function
 * shows once.
 */

#include "offload/policy.h"

#include <ruby.h>

/* Is it one of Fiddle's own functions? */
bool heddle_target_needed(const heddle_function *function);

/*
 * The function that the call of Fiddle's is for; NULL where that can't be known. Looks for the place the first time,
 * which calls Ruby methods that don't wait. With the GVL.
 */
heddle_function *heddle_target_find(const heddle_function *function, const void *argument);

/* The address of a function that does nothing, for the call that shows the place. */
void *heddle_target_probe(void);

#endif
