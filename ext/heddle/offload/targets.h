#pragma once

/*
 * Finds the function that a call of Fiddle is for. Fiddle makes every call without the GVL by one function of its own,
 * so that function's library says nothing about the call. The address of the called function is in the argument, at an
 * offset that a call of a known function shows once.
 */

#include "offload/policy.h"

#include <ruby.h>

/* Is it one of Fiddle's own functions? */
bool heddle_target_needed(const heddle_function *function);

/*
 * The function that Fiddle's call is for; NULL where it is unknown. The first time it looks for the offset, which calls
 * Ruby methods that don't wait. With the GVL.
 */
heddle_function *heddle_target_find(const heddle_function *function, const void *argument);

/* The address of a function that does nothing, for the call that shows the offset. */
void *heddle_target_probe(void);
