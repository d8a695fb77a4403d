#pragma once

/*
 * Finds the function that Fiddle calls. Fiddle makes every call without the GVL through one function of its own. So the
 * library of this function does not tell whether the call can be offloaded. The function's argument points to a record
 * that contains the address of the called function. A trial call of a known function shows the address's offset in the
 * record.
 */

#include "offload/policy.h"

#include <ruby.h>

/* Is this one of Fiddle's own functions? */
bool heddle_is_fiddle_function(const heddle_function *function);

/*
 * Returns the function that Fiddle is about to call, or NULL if it is unknown. At first use, makes the trial call,
 * which runs Ruby methods that don't wait. Called with the GVL.
 */
heddle_function *heddle_target_find(const heddle_function *function, const void *argument);

/* Returns the address of a function that does nothing, for the trial call. */
void *heddle_target_probe(void);
