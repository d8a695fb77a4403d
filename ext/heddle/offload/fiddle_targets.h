#pragma once

/*
 * Finds the function that Fiddle calls. Fiddle makes every call without the GVL through one function of its own, whose
 * library says nothing about the called function. That function's argument points to a record with the address of the
 * called function. A trial call of a known function shows at which offset.
 */

#include "offload/policy.h"

#include <ruby.h>

/* Is this one of Fiddle's own functions? */
bool heddle_is_fiddle_function(const heddle_function *function);

/*
 * The function that Fiddle's call is for, or NULL if it is unknown. The first call finds the offset, by Ruby methods
 * that don't wait. Called with the GVL.
 */
heddle_function *heddle_target_find(const heddle_function *function, const void *argument);

/* The address of a function that does nothing, for the call that shows the offset. */
void *heddle_target_probe(void);
